
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The status in the text format of Prometheus, version 0.0.4. */


#include "ngx_mcp_status.h"


#define NGX_MCP_PREFIX  "nginx_mcp_tasks_"


static ngx_mcp_figure_t *ngx_mcp_status_metric(ngx_mcp_out_t *out,
    ngx_str_t *zone, ngx_mcp_figures_t *of, ngx_mcp_figure_t *f);
static void ngx_mcp_status_sample(ngx_mcp_out_t *out, ngx_str_t *zone,
    ngx_mcp_figures_t *of, ngx_uint_t i, ngx_mcp_figure_t *f);
static void ngx_mcp_status_buckets(ngx_mcp_out_t *out, ngx_str_t *zone,
    ngx_mcp_figures_t *of, ngx_uint_t i, ngx_mcp_figure_t *f);
static void ngx_mcp_status_begin(ngx_mcp_out_t *out, ngx_mcp_figure_t *f,
    const char *suffix, ngx_str_t *zone, ngx_mcp_figures_t *of, ngx_uint_t i);
static void ngx_mcp_status_label(ngx_mcp_out_t *out, const char *name,
    ngx_str_t *value);
static const char *ngx_mcp_status_type(ngx_mcp_figure_t *f);


void
ngx_mcp_status_prometheus(ngx_mcp_out_t *out, ngx_str_t *zone,
    ngx_mcp_figures_t *all)
{
    ngx_uint_t         i;
    ngx_mcp_figure_t  *f;

    for (i = 0; i < NGX_MCP_FIGURES; i++) {

        if (all[i].n == 0) {
            continue;
        }

        for (f = all[i].figures; f->key; /* void */ ) {
            f = ngx_mcp_status_metric(out, zone, &all[i], f);
        }
    }
}


/* writes all samples of a metric; returns the first figure of the next one */

static ngx_mcp_figure_t *
ngx_mcp_status_metric(ngx_mcp_out_t *out, ngx_str_t *zone,
    ngx_mcp_figures_t *of, ngx_mcp_figure_t *f)
{
    ngx_uint_t         i;
    ngx_mcp_figure_t  *g;

    ngx_mcp_out_lit(out, "# HELP " NGX_MCP_PREFIX);
    ngx_mcp_out_text(out, f->metric);
    ngx_mcp_out_lit(out, " ");
    ngx_mcp_out_text(out, f->help);
    ngx_mcp_out_lit(out, "\n# TYPE " NGX_MCP_PREFIX);
    ngx_mcp_out_text(out, f->metric);
    ngx_mcp_out_lit(out, " ");
    ngx_mcp_out_text(out, ngx_mcp_status_type(f));
    ngx_mcp_out_lit(out, "\n");

    g = f;

    for (i = 0; i < of->n; i++) {
        for (g = f; g->key && ngx_strcmp(g->metric, f->metric) == 0; g++) {
            ngx_mcp_status_sample(out, zone, of, i, g);
        }
    }

    return g;
}


static void
ngx_mcp_status_sample(ngx_mcp_out_t *out, ngx_str_t *zone,
    ngx_mcp_figures_t *of, ngx_uint_t i, ngx_mcp_figure_t *f)
{
    ngx_str_t  value;

    if (f->type == NGX_MCP_FIGURE_TIMES) {
        ngx_mcp_status_buckets(out, zone, of, i, f);
        return;
    }

    ngx_mcp_status_begin(out, f, "", zone, of, i);

    if (f->label) {
        value.data = (u_char *) f->key;
        value.len = ngx_strlen(f->key);
        ngx_mcp_out_lit(out, ",");
        ngx_mcp_status_label(out, f->label, &value);
    }

    ngx_mcp_out_lit(out, "} ");

    if (f->type == NGX_MCP_FIGURE_MS) {
        ngx_mcp_out_seconds(out, ngx_mcp_figure(of, i, f));
    } else {
        ngx_mcp_out_number(out, ngx_mcp_figure(of, i, f));
    }

    ngx_mcp_out_lit(out, "\n");
}


static void
ngx_mcp_status_buckets(ngx_mcp_out_t *out, ngx_str_t *zone,
    ngx_mcp_figures_t *of, ngx_uint_t i, ngx_mcp_figure_t *f)
{
    uint64_t              n;
    ngx_uint_t            k;
    ngx_mcp_histogram_t  *h;

    h = ngx_mcp_figure_times(of, i, f);
    n = 0;

    for (k = 0; k < NGX_MCP_BUCKETS; k++) {
        n += h->bucket[k];

        ngx_mcp_status_begin(out, f, "_bucket", zone, of, i);
        ngx_mcp_out_lit(out, ",le=\"");
        ngx_mcp_out_bound(out, k);
        ngx_mcp_out_lit(out, "\"} ");
        ngx_mcp_out_number(out, n);
        ngx_mcp_out_lit(out, "\n");
    }

    ngx_mcp_status_begin(out, f, "_sum", zone, of, i);
    ngx_mcp_out_lit(out, "} ");
    ngx_mcp_out_seconds(out, h->sum);

    ngx_mcp_out_lit(out, "\n");
    ngx_mcp_status_begin(out, f, "_count", zone, of, i);
    ngx_mcp_out_lit(out, "} ");
    ngx_mcp_out_number(out, n);
    ngx_mcp_out_lit(out, "\n");
}


/* begins a sample with the labels of all samples; others may follow */

static void
ngx_mcp_status_begin(ngx_mcp_out_t *out, ngx_mcp_figure_t *f,
    const char *suffix, ngx_str_t *zone, ngx_mcp_figures_t *of, ngx_uint_t i)
{
    ngx_mcp_out_lit(out, NGX_MCP_PREFIX);
    ngx_mcp_out_text(out, f->metric);
    ngx_mcp_out_text(out, suffix);
    ngx_mcp_out_lit(out, "{");
    ngx_mcp_status_label(out, "zone", zone);

    if (of->names) {
        ngx_mcp_out_lit(out, ",");
        ngx_mcp_status_label(out, of->label, &of->names[i]);
    }
}


/* the value may be any UTF-8 text */

static void
ngx_mcp_status_label(ngx_mcp_out_t *out, const char *name, ngx_str_t *value)
{
    u_char  *p, *start, *end;

    ngx_mcp_out_text(out, name);
    ngx_mcp_out_lit(out, "=\"");

    start = value->data;
    end = start + value->len;

    for (p = start; p < end; p++) {

        if (*p != '\\' && *p != '"' && *p != '\n') {
            continue;
        }

        ngx_mcp_out_add(out, start, p - start);
        ngx_mcp_out_lit(out, "\\");

        start = p;

        if (*p == '\n') {
            ngx_mcp_out_lit(out, "n");
            start++;
        }
    }

    ngx_mcp_out_add(out, start, end - start);
    ngx_mcp_out_lit(out, "\"");
}


static const char *
ngx_mcp_status_type(ngx_mcp_figure_t *f)
{
    size_t  len;

    if (f->type == NGX_MCP_FIGURE_TIMES) {
        return "histogram";
    }

    len = ngx_strlen(f->metric);

    return (len > 6 && ngx_strcmp(f->metric + len - 6, "_total") == 0)
           ? "counter" : "gauge";
}
