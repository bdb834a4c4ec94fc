
/* The operator console. */


#ifndef _NGX_HTTP_MCP_TASKS_CONSOLE_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_CONSOLE_H_INCLUDED_


#include "ngx_mcp_module.h"


/* what a row shows, and a task with all there is to it */

#define NGX_HTTP_MCP_TASKS_WANT_ROW                                           \
    (NGX_HTTP_MCP_TASKS_WANT_TASK | NGX_HTTP_MCP_TASKS_WANT_OWNER             \
     | NGX_HTTP_MCP_TASKS_WANT_TOOL | NGX_HTTP_MCP_TASKS_WANT_WORKER)

#define NGX_HTTP_MCP_TASKS_WANT_CONSOLE                                       \
    (NGX_HTTP_MCP_TASKS_WANT_ALL & ~NGX_HTTP_MCP_TASKS_WANT_TOKEN)


/* made of the files in console/ by the build: the page, and the value of the
   header Content-Security-Policy that lets its own script run and no other */

extern ngx_str_t  ngx_http_mcp_tasks_console_page;
extern ngx_str_t  ngx_http_mcp_tasks_console_csp;


/* which tasks somebody wants to see */

typedef struct {
    ngx_http_mcp_tasks_filter_t   filter;
    ngx_str_t                     owner;      /* if the filter has one */
    ngx_int_t                     min_age;    /* seconds; -1: any */
    ngx_int_t                     max_age;
} ngx_http_mcp_tasks_wanted_t;


/* ngx_mcp_console.c */

ngx_int_t ngx_http_mcp_tasks_console_handler(ngx_http_request_t *r);

/* ngx_mcp_console_tasks.c */

ngx_int_t ngx_http_mcp_tasks_console_list(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
const char *ngx_http_mcp_tasks_console_wanted(ngx_http_request_t *r,
    ngx_http_mcp_tasks_wanted_t *wanted);
ngx_http_mcp_tasks_filter_t ngx_http_mcp_tasks_console_filter(
    ngx_http_mcp_tasks_wanted_t *wanted);
void ngx_http_mcp_tasks_render_row(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_view_t *v);
void ngx_http_mcp_tasks_render_console(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_view_t *v, ngx_http_mcp_tasks_zone_conf_t *zcf);
ngx_uint_t ngx_http_mcp_tasks_retryable(ngx_http_mcp_tasks_zone_conf_t *zcf,
    ngx_http_mcp_tasks_view_t *v);

/* ngx_mcp_console_actions.c */

ngx_int_t ngx_http_mcp_tasks_console_retry(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
ngx_int_t ngx_http_mcp_tasks_console_delete(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
ngx_int_t ngx_http_mcp_tasks_console_pause(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
ngx_int_t ngx_http_mcp_tasks_console_unpause(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
ngx_int_t ngx_http_mcp_tasks_console_drain(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
ngx_int_t ngx_http_mcp_tasks_console_undrain(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);

/* ngx_mcp_console_events.c */

ngx_int_t ngx_http_mcp_tasks_console_events(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);


#endif /* _NGX_HTTP_MCP_TASKS_CONSOLE_H_INCLUDED_ */
