
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The worker surface. */


#ifndef _NGX_MCP_WORKER_H_INCLUDED_
#define _NGX_MCP_WORKER_H_INCLUDED_


#include "ngx_mcp_http.h"
#include "ngx_mcp_wait.h"


/* the longest wait of a worker's request, in milliseconds */
#define NGX_MCP_WORKER_WAIT  60000


ngx_int_t ngx_mcp_worker_handler(ngx_http_request_t *r);

ngx_int_t ngx_mcp_worker_claim(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
void ngx_mcp_worker_flags(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_uint_t drain);
ngx_int_t ngx_mcp_worker_refused(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t reason, ngx_mcp_view_t *v);
const char *ngx_mcp_worker_ms(ngx_mcp_json_t *value, int64_t max, int64_t *ms);


#endif /* _NGX_MCP_WORKER_H_INCLUDED_ */
