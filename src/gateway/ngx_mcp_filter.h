
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

/* ngx_mcp_merge_filter.c */

/* next is the header filter after this module's; called now or with the body */
ngx_int_t ngx_mcp_merge_filter_header(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_http_output_header_filter_pt next);
ngx_int_t ngx_mcp_merge_filter_body(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_chain_t *in, ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next);


#endif /* _NGX_MCP_FILTER_H_INCLUDED_ */
