
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The status as JSON. */


#include "ngx_mcp_status.h"
#include "ngx_mcp_store.h"


static void ngx_mcp_status_members(ngx_mcp_out_t *out, ngx_mcp_figures_t *of,
    ngx_uint_t i);
static void ngx_mcp_status_store(ngx_mcp_out_t *out, ngx_mcp_zone_t *zone,
    ngx_mcp_figures_t *of);
static void ngx_mcp_status_key(ngx_mcp_out_t *out, const char *key);
static void ngx_mcp_status_times(ngx_mcp_out_t *out, ngx_mcp_histogram_t *h);


void
ngx_mcp_status_json(ngx_mcp_out_t *out, ngx_mcp_zone_t *zone,
    ngx_mcp_figures_t *all)
{
    ngx_uint_t  i, k;

    ngx_mcp_out_lit(out, "{\"zone\":");
    ngx_mcp_out_string(out, &zone->name);
    ngx_mcp_status_members(out, &all[0], 0);

    for (i = 1; i < NGX_MCP_FIGURES; i++) {

        if (all[i].list == NULL) {
            ngx_mcp_status_store(out, zone, &all[i]);
            continue;
        }

        ngx_mcp_out_lit(out, ",");
        ngx_mcp_status_key(out, all[i].list);
        ngx_mcp_out_lit(out, "[");

        for (k = 0; k < all[i].n; k++) {
            if (k) {
                ngx_mcp_out_lit(out, ",");
            }

            ngx_mcp_out_lit(out, "{\"name\":");
            ngx_mcp_out_string(out, &all[i].names[k]);
            ngx_mcp_status_members(out, &all[i], k);
            ngx_mcp_out_lit(out, "}");
        }

        ngx_mcp_out_lit(out, "]");
    }

    ngx_mcp_out_lit(out, "}\n");
}


static void
ngx_mcp_status_store(ngx_mcp_out_t *out, ngx_mcp_zone_t *zone,
    ngx_mcp_figures_t *of)
{
    ngx_str_t            error;
    ngx_mcp_op_stats_t  *op;
    static const char   *syncs[] = { "always", "everysec", "off" };

    if (of->n == 0) {
        return;
    }

    op = (ngx_mcp_op_stats_t *) of->data;

    ngx_mcp_out_lit(out, ",\"store\":{\"type\":");
    ngx_mcp_out_string(out, &zone->store->name);
    ngx_mcp_out_lit(out, ",\"sync\":\"");
    ngx_mcp_out_text(out, syncs[ngx_min(op->disk.sync, 2)]);
    ngx_mcp_out_lit(out, "\"");

    ngx_mcp_status_members(out, of, 0);

    if (op->disk.error[0]) {
        error.data = op->disk.error;
        error.len = ngx_strlen(error.data);
        ngx_mcp_out_lit(out, ",\"lastError\":");
        ngx_mcp_out_string(out, &error);
    }

    ngx_mcp_out_lit(out, "}");
}


/* figures as members, each after a comma; a group is an object */

static void
ngx_mcp_status_members(ngx_mcp_out_t *out, ngx_mcp_figures_t *of, ngx_uint_t i)
{
    const char        *group;
    ngx_mcp_figure_t  *f;

    group = NULL;

    for (f = of->figures; f->key; f++) {

        ngx_mcp_out_lit(out, ",");

        if (f->group && f->group != group) {
            ngx_mcp_status_key(out, f->group);
            ngx_mcp_out_lit(out, "{");
        }

        group = f->group;

        ngx_mcp_status_key(out, f->key);

        switch (f->type) {

        case NGX_MCP_FIGURE_MS:
            ngx_mcp_out_seconds(out, ngx_mcp_figure(of, i, f));
            break;

        case NGX_MCP_FIGURE_TIMES:
            ngx_mcp_status_times(out, ngx_mcp_figure_times(of, i, f));
            break;

        default:
            ngx_mcp_out_number(out, ngx_mcp_figure(of, i, f));
        }

        if (group && f[1].group != group) {
            ngx_mcp_out_lit(out, "}");
        }
    }
}


static void
ngx_mcp_status_key(ngx_mcp_out_t *out, const char *key)
{
    ngx_mcp_out_lit(out, "\"");
    ngx_mcp_out_text(out, key);
    ngx_mcp_out_lit(out, "\":");
}


/* buckets are cumulative, as those of Prometheus */

static void
ngx_mcp_status_times(ngx_mcp_out_t *out, ngx_mcp_histogram_t *h)
{
    uint64_t    n;
    ngx_uint_t  i;

    n = 0;
    ngx_mcp_out_lit(out, "{\"buckets\":{");

    for (i = 0; i < NGX_MCP_BUCKETS; i++) {
        n += h->bucket[i];

        if (i) {
            ngx_mcp_out_lit(out, ",");
        }

        ngx_mcp_out_lit(out, "\"");
        ngx_mcp_out_bound(out, i);
        ngx_mcp_out_lit(out, "\":");
        ngx_mcp_out_number(out, n);
    }

    ngx_mcp_out_lit(out, "},\"sum\":");
    ngx_mcp_out_seconds(out, h->sum);
    ngx_mcp_out_lit(out, ",\"count\":");
    ngx_mcp_out_number(out, n);
    ngx_mcp_out_lit(out, "}");
}
