
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Revisions of the protocol, and errors that only one era defines. */


#include "ngx_mcp_http.h"


static ngx_int_t ngx_mcp_version_refuse(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_uint_t eras, ngx_int_t code);


/* the revisions of the eras in the mask, as a JSON array */

void
ngx_mcp_out_revisions(ngx_mcp_out_t *out, ngx_uint_t eras)
{
    ngx_uint_t           n;
    ngx_mcp_revision_t  *rev;

    n = 0;
    ngx_mcp_out_lit(out, "[");

    for (rev = ngx_mcp_revisions; rev->name.len; rev++) {

        if (!(eras & (rev->modern ? NGX_MCP_PASS_MODERN
                                  : NGX_MCP_PASS_LEGACY)))
        {
            continue;
        }

        if (n++) {
            ngx_mcp_out_lit(out, ",");
        }

        ngx_mcp_out_string(out, &rev->name);
    }

    ngx_mcp_out_lit(out, "]");
}


/* tells if a client with this MCP-Protocol-Version header may send a batch */

ngx_uint_t
ngx_mcp_header_batches(ngx_http_request_t *r)
{
    ngx_str_t            value;
    ngx_mcp_revision_t  *rev;
    static ngx_str_t     header = ngx_string("mcp-protocol-version");

    /* the only revision that has batches has no such header */

    if (ngx_mcp_header(r, &header, &value) == 0) {
        return 1;
    }

    rev = ngx_mcp_revision(&value);

    return rev && rev->batches;
}


/* a legacy request to a gateway whose upstream supports the modern era only */

ngx_int_t
ngx_mcp_legacy_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_version_refuse(r, ctx, NGX_MCP_PASS_MODERN,
                                  NGX_MCP_RPC_INVALID_PARAMS);
}


/*
 * A modern request to a gateway whose upstream supports the legacy era only.
 * An error of the modern era would tell a client of both eras that the server
 * is modern, so that it would not fall back to "initialize".
 */

ngx_int_t
ngx_mcp_modern_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_version_refuse(r, ctx, NGX_MCP_PASS_LEGACY,
                                  NGX_MCP_RPC_INVALID_PARAMS);
}


ngx_int_t
ngx_mcp_unsupported(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_uint_t eras)
{
    return ngx_mcp_version_refuse(r, ctx, eras, NGX_MCP_RPC_VERSION);
}


static ngx_int_t
ngx_mcp_version_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t eras, ngx_int_t code)
{
    ngx_str_t      data;
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, r->pool, 128);
    ngx_mcp_out_lit(&out, "{\"supported\":");
    ngx_mcp_out_revisions(&out, eras);

    /* the version is returned as the JSON text that was received */

    if (ctx->params.version.type != NGX_MCP_JSON_NONE) {
        ngx_mcp_out_lit(&out, ",\"requested\":");
        ngx_mcp_out_str(&out, &ctx->params.version.text);
    }

    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &data) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST, code,
                         "Unsupported protocol version", &data);
}


ngx_int_t
ngx_mcp_mismatch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *message)
{
    return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                         NGX_MCP_RPC_HEADER_MISMATCH, message, NULL);
}


/* the client has not declared the tasks extension */

ngx_int_t
ngx_mcp_no_capability(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    static ngx_str_t  data = ngx_string(
        "{\"requiredCapabilities\":{\"extensions\":"
        "{\"io.modelcontextprotocol/tasks\":{}}}}");

    return ngx_mcp_missing_capability(r, ctx, &data);
}


/* data: the missing capabilities, as JSON */

ngx_int_t
ngx_mcp_missing_capability(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *data)
{
    return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST, NGX_MCP_RPC_CAPABILITY,
                         "Missing required client capability", data);
}
