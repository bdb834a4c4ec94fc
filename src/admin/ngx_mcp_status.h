
/*
 * The figures that the status surface shows, the same in each format: what
 * they are called there, and where they are kept.
 */


#ifndef _NGX_MCP_STATUS_H_INCLUDED_
#define _NGX_MCP_STATUS_H_INCLUDED_


#include "ngx_mcp_rest.h"


typedef enum {
    NGX_MCP_FIGURE_32 = 0,
    NGX_MCP_FIGURE_64,
    NGX_MCP_FIGURE_MS,             /* shown in seconds */
    NGX_MCP_FIGURE_TIMES           /* a histogram of these */
} ngx_mcp_figure_e;


/*
 * Those of one group stand together, and so do those of one metric, which
 * differ in a label: its value is the key.  A list ends without a key.
 */

typedef struct {
    const char  *group;                       /* in JSON; NULL: none */
    const char  *key;
    const char  *metric;                      /* without the prefix */
    const char  *label;                       /* NULL: none */
    const char  *help;                        /* of the metric */
    ngx_uint_t   type;
    size_t       offset;
} ngx_mcp_figure_t;


/* what the figures are of: the zone, tools, workers, or its store */

typedef struct {
    ngx_mcp_figure_t  *figures;
    const char        *list;       /* in JSON; NULL: is no list */
    const char        *label;
    u_char            *data;
    size_t             size;       /* of each */
    ngx_uint_t         n;
    ngx_str_t         *names;
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
