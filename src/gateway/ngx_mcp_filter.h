
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Filters for responses of the upstream. */


#ifndef _NGX_MCP_FILTER_H_INCLUDED_
#define _NGX_MCP_FILTER_H_INCLUDED_


#include "ngx_mcp_http_types.h"


/* ngx_mcp_filter.c */

/* tells if the response is text/event-stream */
ngx_uint_t ngx_mcp_is_stream(ngx_http_request_t *r);

/* ngx_mcp_url_error.c */

typedef struct {
    ngx_mcp_ctx_t  *ctx;
    ngx_pool_t     *pool;
    ngx_log_t      *log;
    ngx_str_t       text;         /* replaces the message */
    ngx_uint_t      status;       /* of HTTP, if the header is not sent */
} ngx_mcp_url_error_t;

/*
 * Sets text and status if the message must not be sent to a modern client; NULL
 * is one that is too large to be checked.  NGX_DECLINED: it may be sent;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_url_error(ngx_mcp_url_error_t *e, ngx_str_t *message);

/* ngx_mcp_url_filter.c */

/* whether the response to a passed message is filtered */
#define ngx_mcp_url_filter_is_for(ctx)                                        \
    ((ctx)->era == NGX_MCP_MODERN && (ctx)->rpc.kind == NGX_MCP_RPC_REQUEST)

/* as for the merge filter, which is the next one */
ngx_int_t ngx_mcp_url_filter_header(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_http_output_header_filter_pt next);
ngx_int_t ngx_mcp_url_filter_body(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_chain_t *in, ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next);

/* ngx_mcp_merge_filter.c */

/* next is the header filter after this module's; called now or with the body */
ngx_int_t ngx_mcp_merge_filter_header(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_http_output_header_filter_pt next);
ngx_int_t ngx_mcp_merge_filter_body(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_chain_t *in, ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next);


#endif /* _NGX_MCP_FILTER_H_INCLUDED_ */
