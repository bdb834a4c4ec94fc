
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The figures of the status surface, which are the same in each format: their
 * names, and where they are stored.
 */


#ifndef _NGX_MCP_STATUS_H_INCLUDED_
#define _NGX_MCP_STATUS_H_INCLUDED_


#include "ngx_mcp_rest.h"


typedef enum {
    NGX_MCP_FIGURE_32 = 0,
    NGX_MCP_FIGURE_64,
    NGX_MCP_FIGURE_MS,             /* ms, shown in seconds */
    NGX_MCP_FIGURE_TIMES           /* a histogram of ms */
} ngx_mcp_figure_e;


/*
 * Figures of one group are adjacent, and so are figures of one metric, which
 * differ in a label whose value is the key.  A list ends with an entry without
 * a key.
 */

typedef struct {
    const char  *group;                       /* in JSON; NULL: none */
    const char  *key;
    const char  *metric;                      /* without the prefix */
    const char  *label;                       /* NULL: none */
    const char  *help;                        /* of the metric */
    ngx_uint_t   type;                        /* ngx_mcp_figure_e */
    size_t       offset;                      /* in an element of the data */
} ngx_mcp_figure_t;


/* figures of the zone, of its tools, of its workers, or of its store */

typedef struct {
    ngx_mcp_figure_t  *figures;
    const char        *list;       /* in JSON; NULL: not a list */
    const char        *label;
    u_char            *data;       /* n elements */
    size_t             size;       /* of an element */
    ngx_uint_t         n;          /* 0: no figures */
    ngx_str_t         *names;      /* of elements; NULL: none */
} ngx_mcp_figures_t;

#define NGX_MCP_FIGURES  4


ngx_int_t ngx_mcp_status_handler(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_status_format(ngx_str_t *name);
ngx_int_t ngx_mcp_status_read(ngx_http_request_t *r, ngx_mcp_done_pt done);
ngx_int_t ngx_mcp_status_figures(ngx_http_request_t *r, ngx_mcp_op_stats_t *op,
    ngx_mcp_figures_t *all);

uint64_t ngx_mcp_figure(ngx_mcp_figures_t *of, ngx_uint_t i,
    ngx_mcp_figure_t *f);

#define ngx_mcp_figure_times(of, i, f)                                        \
    ((ngx_mcp_histogram_t *)                                                  \
     ((of)->data + (i) * (of)->size + (f)->offset))


void ngx_mcp_out_bound(ngx_mcp_out_t *out, ngx_uint_t bucket);

void ngx_mcp_status_json(ngx_mcp_out_t *out, ngx_mcp_zone_t *zone,
    ngx_mcp_figures_t *all);
void ngx_mcp_status_prometheus(ngx_mcp_out_t *out, ngx_str_t *zone,
    ngx_mcp_figures_t *all);


#endif /* _NGX_MCP_STATUS_H_INCLUDED_ */
