
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The operator console. */


#ifndef _NGX_MCP_CONSOLE_H_INCLUDED_
#define _NGX_MCP_CONSOLE_H_INCLUDED_


#include "ngx_mcp_rest.h"


/* parts of a task that a row shows, and that the details show */

#define NGX_MCP_WANT_ROW                                                      \
    (NGX_MCP_WANT_TASK | NGX_MCP_WANT_OWNER                                   \
     | NGX_MCP_WANT_TOOL | NGX_MCP_WANT_WORKER)

#define NGX_MCP_WANT_CONSOLE  (NGX_MCP_WANT_ALL & ~NGX_MCP_WANT_TOKEN)


/*
 * Generated from the files in console/ by the build: the page, and the value of
 * the header Content-Security-Policy, which allows only the script of the page.
 */

extern ngx_str_t  ngx_mcp_console_page;
extern ngx_str_t  ngx_mcp_console_csp;


/* criteria of a query, with ages instead of times */

typedef struct {
    ngx_mcp_criteria_t  criteria;
    ngx_str_t           owner;    /* of criteria, if it has one */
    ngx_int_t           min_age;  /* seconds; -1: any */
    ngx_int_t           max_age;  /* the same */
} ngx_mcp_wanted_t;


/* ngx_mcp_console.c */

ngx_int_t ngx_mcp_console_handler(ngx_http_request_t *r);

/* ngx_mcp_console_tasks.c */

ngx_int_t ngx_mcp_console_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
const char *ngx_mcp_console_wanted(ngx_http_request_t *r,
    ngx_mcp_wanted_t *wanted);
ngx_mcp_criteria_t ngx_mcp_console_criteria(ngx_mcp_wanted_t *wanted);
void ngx_mcp_render_row(ngx_mcp_out_t *out, ngx_mcp_view_t *v);
void ngx_mcp_render_console(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_retryable(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v);

/* ngx_mcp_console_actions.c */

ngx_int_t ngx_mcp_console_retry(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_console_delete(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_console_pause(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_console_unpause(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_console_drain(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_console_undrain(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_console_events.c */

ngx_int_t ngx_mcp_console_events(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);


#endif /* _NGX_MCP_CONSOLE_H_INCLUDED_ */
