
/* The revisions of the protocol, and the errors that only one era has. */


#include "ngx_mcp_http.h"


/* the first one is offered to a client that asks for what is unknown */

ngx_str_t  ngx_mcp_legacy_versions[] = {
    ngx_string("2025-11-25"),
    ngx_string("2025-06-18"),
    ngx_string("2025-03-26"),
    ngx_null_string
};


ngx_str_t  ngx_mcp_modern_version = ngx_string("2026-07-28");


/* whether it is the revision that knows tasks */

ngx_uint_t
ngx_mcp_legacy_tasks(ngx_str_t *version)
{
    ngx_str_t  *v;

    v = ngx_mcp_legacy_versions;

    return version->len == v->len
           && ngx_strncmp(version->data, v->data, v->len) == 0;
}


/* a gateway whose upstream is of the other era */

ngx_int_t
ngx_mcp_legacy_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    static ngx_str_t  data = ngx_string("{\"supported\":[\"2026-07-28\"]}");

    return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                         NGX_MCP_RPC_INVALID_PARAMS,
                         "Unsupported protocol version", &data);
}


/* a gateway whose upstream is of the other era */

ngx_int_t
ngx_mcp_modern_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_unsupported(r, ctx, "[" NGX_MCP_LEGACY_VERSIONS "]");
}


ngx_int_t
ngx_mcp_unsupported(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *supported)
{
    ngx_str_t      data;
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, r->pool, 128);
    ngx_mcp_out_lit(&out, "{\"supported\":");
    ngx_mcp_out_add(&out, (u_char *) supported, ngx_strlen(supported));

    /* the version goes back as the JSON that it came as */

    if (ctx->said.version.type != NGX_MCP_JSON_NONE) {
        ngx_mcp_out_lit(&out, ",\"requested\":");
        ngx_mcp_out_str(&out, &ctx->said.version.text);
    }

    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &data) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST, NGX_MCP_RPC_VERSION,
                         "Unsupported protocol version", &data);
}


ngx_int_t
ngx_mcp_mismatch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *message)
{
    return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                         NGX_MCP_RPC_HEADER_MISMATCH, message, NULL);
}


/* the client cannot do what this needs */

ngx_int_t
ngx_mcp_no_capability(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    static ngx_str_t  data = ngx_string(
        "{\"requiredCapabilities\":{\"extensions\":"
        "{\"io.modelcontextprotocol/tasks\":{}}}}");

    return ngx_mcp_lacks(r, ctx, &data);
}


ngx_int_t
ngx_mcp_lacks(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_str_t *data)
{
    return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST, NGX_MCP_RPC_CAPABILITY,
                         "Missing required client capability", data);
}
