
/* The status as JSON. */


#include "ngx_mcp_status.h"
#include "ngx_mcp_stats.h"


static void ngx_http_mcp_tasks_status_members(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_figures_t *of, ngx_uint_t i);
static void ngx_http_mcp_tasks_status_store(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_zone_conf_t *zcf, ngx_http_mcp_tasks_figures_t *of);
static void ngx_http_mcp_tasks_status_key(ngx_http_mcp_tasks_out_t *out,
    const char *key);
static void ngx_http_mcp_tasks_status_times(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_histogram_t *h);


void
ngx_http_mcp_tasks_status_json(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_zone_conf_t *zcf, ngx_http_mcp_tasks_figures_t *all)
{
    ngx_uint_t  i, k;

    ngx_http_mcp_tasks_out_lit(out, "{\"zone\":");
    ngx_http_mcp_tasks_out_string(out, &zcf->zone.name);
    ngx_http_mcp_tasks_status_members(out, &all[0], 0);

    for (i = 1; i < NGX_HTTP_MCP_TASKS_FIGURES; i++) {

        if (all[i].list == NULL) {
            ngx_http_mcp_tasks_status_store(out, zcf, &all[i]);
            continue;
        }

        ngx_http_mcp_tasks_out_lit(out, ",");
        ngx_http_mcp_tasks_status_key(out, all[i].list);
        ngx_http_mcp_tasks_out_lit(out, "[");

        for (k = 0; k < all[i].n; k++) {
            if (k) {
                ngx_http_mcp_tasks_out_lit(out, ",");
            }

            ngx_http_mcp_tasks_out_lit(out, "{\"name\":");
            ngx_http_mcp_tasks_out_string(out, &all[i].names[k]);
            ngx_http_mcp_tasks_status_members(out, &all[i], k);
            ngx_http_mcp_tasks_out_lit(out, "}");
        }

        ngx_http_mcp_tasks_out_lit(out, "]");
    }

    ngx_http_mcp_tasks_out_lit(out, "}\n");
}


static void
ngx_http_mcp_tasks_status_store(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_zone_conf_t *zcf, ngx_http_mcp_tasks_figures_t *of)
{
    ngx_str_t                       error;
    ngx_http_mcp_tasks_op_stats_t  *op;
    static const char              *syncs[] = { "always", "everysec", "off" };

    if (of->n == 0) {
        return;
    }

    ngx_http_mcp_tasks_out_lit(out, ",\"store\":{\"type\":\"sqlite\","
                                    "\"sync\":\"");
    ngx_http_mcp_tasks_out_text(out, syncs[zcf->stored.sync]);
    ngx_http_mcp_tasks_out_lit(out, "\"");

    ngx_http_mcp_tasks_status_members(out, of, 0);

    op = (ngx_http_mcp_tasks_op_stats_t *) of->data;

    if (op->disk.error[0]) {
        error.data = op->disk.error;
        error.len = ngx_strlen(error.data);
        ngx_http_mcp_tasks_out_lit(out, ",\"lastError\":");
        ngx_http_mcp_tasks_out_string(out, &error);
    }

    ngx_http_mcp_tasks_out_lit(out, "}");
}


/* each after a comma; those of a group are an object of their own */

static void
ngx_http_mcp_tasks_status_members(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_figures_t *of, ngx_uint_t i)
{
    const char                   *group;
    ngx_http_mcp_tasks_figure_t  *f;

    group = NULL;

    for (f = of->figures; f->key; f++) {

        ngx_http_mcp_tasks_out_lit(out, ",");

        if (f->group && f->group != group) {
            ngx_http_mcp_tasks_status_key(out, f->group);
            ngx_http_mcp_tasks_out_lit(out, "{");
        }

        group = f->group;

        ngx_http_mcp_tasks_status_key(out, f->key);

        switch (f->type) {

        case NGX_HTTP_MCP_TASKS_FIGURE_MS:
            ngx_http_mcp_tasks_out_seconds(out,
                                        ngx_http_mcp_tasks_figure(of, i, f));
            break;

        case NGX_HTTP_MCP_TASKS_FIGURE_TIMES:
            ngx_http_mcp_tasks_status_times(out,
                                  ngx_http_mcp_tasks_figure_times(of, i, f));
            break;

        default:
            ngx_http_mcp_tasks_out_number(out,
                                        ngx_http_mcp_tasks_figure(of, i, f));
        }

        if (group && f[1].group != group) {
            ngx_http_mcp_tasks_out_lit(out, "}");
        }
    }
}


static void
ngx_http_mcp_tasks_status_key(ngx_http_mcp_tasks_out_t *out, const char *key)
{
    ngx_http_mcp_tasks_out_lit(out, "\"");
    ngx_http_mcp_tasks_out_text(out, key);
    ngx_http_mcp_tasks_out_lit(out, "\":");
}


/* how many took no longer than each bound, which is as Prometheus does it */

static void
ngx_http_mcp_tasks_status_times(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_histogram_t *h)
{
    uint64_t    n;
    ngx_uint_t  i;

    n = 0;
    ngx_http_mcp_tasks_out_lit(out, "{\"buckets\":{");

    for (i = 0; i < NGX_HTTP_MCP_TASKS_BUCKETS; i++) {
        n += h->bucket[i];

        if (i) {
            ngx_http_mcp_tasks_out_lit(out, ",");
        }

        ngx_http_mcp_tasks_out_lit(out, "\"");
        ngx_http_mcp_tasks_out_bound(out, i);
        ngx_http_mcp_tasks_out_lit(out, "\":");
        ngx_http_mcp_tasks_out_number(out, n);
    }

    ngx_http_mcp_tasks_out_lit(out, "},\"sum\":");
    ngx_http_mcp_tasks_out_seconds(out, h->sum);
    ngx_http_mcp_tasks_out_lit(out, ",\"count\":");
    ngx_http_mcp_tasks_out_number(out, n);
    ngx_http_mcp_tasks_out_lit(out, "}");
}
