
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Batches, which MCP has in one revision only: 2025-03-26. */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_batch.h"


static ngx_uint_t ngx_mcp_legacy_batches(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_legacy_element(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);


/*
 * Handles a body that is not a message.  NGX_DECLINED: the body is not JSON, or
 * not an array, or the client must not send batches.
 */

ngx_int_t
ngx_mcp_legacy_batch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *body)
{
    ngx_int_t        rc;
    const char      *err;
    ngx_mcp_json_t   messages;

    if (r != r->main
        || ngx_mcp_json_parse(body, &messages, &err) != NGX_OK
        || messages.type != NGX_MCP_JSON_ARRAY)
    {
        return NGX_DECLINED;
    }

    rc = ngx_mcp_identify(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_mcp_session_check(r, ctx) == NGX_DECLINED) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_NOT_FOUND,
                             NGX_MCP_RPC_NO_SESSION, "Session not found",
                             NULL);
    }

    if (!ngx_mcp_legacy_batches(r, ctx)) {
        return NGX_DECLINED;
    }

    return ngx_mcp_batch(r, ctx, &messages, ngx_mcp_legacy_element);
}


/* tells if the client may send a batch; the header may be missing */

static ngx_uint_t
ngx_mcp_legacy_batches(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_header_batches(r)
           && (ctx->revision == NULL || ctx->revision->batches);
}


/* handles a message of a batch */

static ngx_int_t
ngx_mcp_legacy_element(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_method_t  *m;

    switch (ngx_mcp_is_modern(r, ctx)) {

    case NGX_ERROR:
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                               "duplicate _meta, or duplicate protocolVersion "
                               "or progressToken in _meta");

    case NGX_OK:
        return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_RPC_INVALID_REQUEST,
                             "Invalid Request: a message of revision "
                             "2026-07-28 must not be part of a batch", NULL);
    }

    m = (ctx->rpc.kind == NGX_MCP_RPC_REQUEST) ? ngx_mcp_method(ctx) : NULL;

    if (m && m->handler == ngx_mcp_initialize) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_RPC_INVALID_REQUEST,
                             "Invalid Request: initialize must not be part of "
                             "a batch", NULL);
    }

    ctx->era = NGX_MCP_LEGACY;

    return ngx_mcp_legacy(r, ctx);
}
