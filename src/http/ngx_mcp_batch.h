
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Batches: several messages in one request, see ngx_mcp_batch.c. */


#ifndef _NGX_MCP_BATCH_H_INCLUDED_
#define _NGX_MCP_BATCH_H_INCLUDED_


#include "ngx_mcp_http_types.h"
#include "ngx_mcp_wait.h"


/* messages in a batch; NGX_MCP_BATCH_TEXT says the same */
#define NGX_MCP_BATCH_MAX   64
#define NGX_MCP_BATCH_TEXT  "64"


/*
 * Executes a batch, an array with 1 to NGX_MCP_BATCH_MAX messages.  The handler
 * is called for each message, with a request and a context of its own; the
 * owner is that of ctx.  Returns the value to finalize with.
 */
ngx_int_t ngx_mcp_batch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *messages, ngx_mcp_method_pt handler);

/* the functions below are for ctx->element, which is not NULL */

/* the response to a message; it has to exist as long as the element's pool */
ngx_int_t ngx_mcp_batch_answer(ngx_mcp_ctx_t *ctx, ngx_uint_t status,
    ngx_str_t *answer);

/* the wait that sends the events of the element */
ngx_mcp_wait_t *ngx_mcp_batch_stream(ngx_mcp_ctx_t *ctx);

/*
 * Tells if the element has to wait with its response, because others are not
 * sent yet.  Its wait gets an event when it may look again.
 */
ngx_uint_t ngx_mcp_batch_hold(ngx_mcp_ctx_t *ctx);


#endif /* _NGX_MCP_BATCH_H_INCLUDED_ */
