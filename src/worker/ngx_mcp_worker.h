
/* What the methods of the worker surface have in common. */


#ifndef _NGX_HTTP_MCP_TASKS_WORKER_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_WORKER_H_INCLUDED_


#include "ngx_mcp_module.h"


/* for how long a worker may wait, in milliseconds */
#define NGX_HTTP_MCP_TASKS_WORKER_WAIT  60000


ngx_int_t ngx_http_mcp_tasks_worker_claim(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
void ngx_http_mcp_tasks_worker_told(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_view_t *v, ngx_uint_t drain);
ngx_int_t ngx_http_mcp_tasks_worker_refused(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_uint_t reason,
    ngx_http_mcp_tasks_view_t *v);
const char *ngx_http_mcp_tasks_worker_ms(ngx_http_mcp_tasks_json_t *value,
    int64_t max, int64_t *ms);


#endif /* _NGX_HTTP_MCP_TASKS_WORKER_H_INCLUDED_ */
