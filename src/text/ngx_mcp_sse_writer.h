
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Server-sent events: framing, and text that many streams send at once.
 */


#ifndef _NGX_MCP_SSE_WRITER_H_INCLUDED_
#define _NGX_MCP_SSE_WRITER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* when to come back after a cut, in milliseconds */
#define NGX_MCP_RETRY      1000
#define NGX_MCP_RETRY_LEN  (sizeof("retry: \n\n") + NGX_INT_T_LEN)


/* one event; freed when the last stream that refers to it has sent it */

typedef struct {
    ngx_uint_t  refs;
    size_t      len;
    u_char     *data;
} ngx_mcp_sse_shared_t;


size_t ngx_mcp_sse_size(ngx_str_t *id, ngx_str_t *text);
u_char *ngx_mcp_sse_event(u_char *p, ngx_str_t *id, ngx_str_t *text);

ngx_mcp_sse_shared_t *ngx_mcp_sse_share(ngx_str_t *id, ngx_str_t *text,
    ngx_log_t *log);
void ngx_mcp_sse_unshare(ngx_mcp_sse_shared_t *shared);


#endif /* _NGX_MCP_SSE_WRITER_H_INCLUDED_ */
