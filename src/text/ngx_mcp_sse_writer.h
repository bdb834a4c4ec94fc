
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Writes server-sent events, and shares an event between many streams. */


#ifndef _NGX_MCP_SSE_WRITER_H_INCLUDED_
#define _NGX_MCP_SSE_WRITER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* time before a client reconnects, in milliseconds, and its field's length */
#define NGX_MCP_RETRY      1000
#define NGX_MCP_RETRY_LEN  (sizeof("retry: \n\n") + NGX_INT_T_LEN)


/* one event; freed by the last ngx_mcp_sse_unshare() */

typedef struct {
    ngx_uint_t  refs;       /* 1 after ngx_mcp_sse_share() */
    size_t      len;
    u_char     *data;
} ngx_mcp_sse_shared_t;


/* the maximum size of an event; id may be NULL */
size_t ngx_mcp_sse_size(ngx_str_t *id, ngx_str_t *text);

/* writes an event to p and returns its end */
u_char *ngx_mcp_sse_event(u_char *p, ngx_str_t *id, ngx_str_t *text);

/* NULL: no memory */
ngx_mcp_sse_shared_t *ngx_mcp_sse_share(ngx_str_t *id, ngx_str_t *text,
    ngx_log_t *log);
void ngx_mcp_sse_unshare(ngx_mcp_sse_shared_t *shared);


#endif /* _NGX_MCP_SSE_WRITER_H_INCLUDED_ */
