
/*
 * The modern era: revision 2026-07-28, where every request carries its
 * version and capabilities, and headers repeat what intermediaries need.
 */


#include "ngx_http_mcp_tasks_module.h"


static ngx_int_t ngx_http_mcp_tasks_modern_check(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_mismatch(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, const char *message);
static ngx_int_t ngx_http_mcp_tasks_unsupported(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_discover(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);


#define NGX_HTTP_MCP_TASKS_VERSIONS                                           \
    "[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\"]"


ngx_str_t  ngx_http_mcp_tasks_modern_version = ngx_string("2026-07-28");


static ngx_http_mcp_tasks_method_t  ngx_http_mcp_tasks_modern_methods[] = {
    { ngx_string("server/discover"), ngx_http_mcp_tasks_discover },
    { ngx_null_string, NULL }
};


ngx_int_t
ngx_http_mcp_tasks_modern(ngx_http_request_t *r, ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (ctx->rpc.kind == NGX_HTTP_MCP_TASKS_RPC_RESPONSE) {
        return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                      NGX_HTTP_MCP_TASKS_RPC_INVALID_REQUEST,
                      "Invalid Request: clients send no responses", NULL);
    }

    rc = ngx_http_mcp_tasks_modern_check(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ctx->rpc.kind == NGX_HTTP_MCP_TASKS_RPC_NOTIFICATION) {
        return ngx_http_mcp_tasks_accepted(r);
    }

    return ngx_http_mcp_tasks_call(r, ctx, ngx_http_mcp_tasks_modern_methods,
                                   NGX_HTTP_NOT_FOUND);
}


/* NGX_DECLINED: nothing to complain about; else the complaint was sent */

static ngx_int_t
ngx_http_mcp_tasks_modern_check(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_str_t                    value, *name;
    ngx_http_mcp_tasks_json_t    capabilities;
    ngx_http_mcp_tasks_member_t  members[] = {
        { ngx_string("io.modelcontextprotocol/clientCapabilities"),
          &capabilities }
    };
    static ngx_str_t             version = ngx_string("MCP-Protocol-Version");
    static ngx_str_t             method = ngx_string("Mcp-Method");

    if (ctx->version.type != NGX_HTTP_MCP_TASKS_JSON_STRING) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                          "io.modelcontextprotocol/protocolVersion is "
                          "missing in _meta");
    }

    if (ngx_http_mcp_tasks_header(r, &version, &value) != 1
        || !ngx_http_mcp_tasks_json_is(&ctx->version, &value))
    {
        return ngx_http_mcp_tasks_mismatch(r, ctx,
                          "Header mismatch: MCP-Protocol-Version is not "
                          "what _meta says");
    }

    if (!ngx_http_mcp_tasks_json_is(&ctx->version,
                                    &ngx_http_mcp_tasks_modern_version))
    {
        return ngx_http_mcp_tasks_unsupported(r, ctx);
    }

    if (ctx->rpc.kind == NGX_HTTP_MCP_TASKS_RPC_NOTIFICATION) {
        /* the specification asks for no other header of a notification */
        return NGX_DECLINED;
    }

    if (ngx_http_mcp_tasks_json_members(&ctx->meta, members, 1) != NGX_OK
        || capabilities.type != NGX_HTTP_MCP_TASKS_JSON_OBJECT)
    {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                          "io.modelcontextprotocol/clientCapabilities is "
                          "missing in _meta");
    }

    name = &ctx->rpc.method;

    if (ngx_http_mcp_tasks_header(r, &method, &value) != 1
        || value.len != name->len
        || ngx_strncmp(value.data, name->data, name->len) != 0)
    {
        return ngx_http_mcp_tasks_mismatch(r, ctx,
                          "Header mismatch: Mcp-Method is not the method");
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_mcp_tasks_mismatch(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, const char *message)
{
    return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                                    NGX_HTTP_MCP_TASKS_RPC_HEADER_MISMATCH,
                                    message, NULL);
}


static ngx_int_t
ngx_http_mcp_tasks_unsupported(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    size_t      len;
    ngx_str_t   data;

    len = sizeof("{\"supported\":" NGX_HTTP_MCP_TASKS_VERSIONS
                 ",\"requested\":}") - 1 + ctx->version.text.len;

    data.data = ngx_pnalloc(r->pool, len);
    if (data.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the version goes back as the JSON that it came as */

    data.len = ngx_sprintf(data.data,
                           "{\"supported\":" NGX_HTTP_MCP_TASKS_VERSIONS
                           ",\"requested\":%V}", &ctx->version.text)
               - data.data;

    return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                                    NGX_HTTP_MCP_TASKS_RPC_VERSION,
                                    "Unsupported protocol version", &data);
}


static ngx_int_t
ngx_http_mcp_tasks_discover(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    static ngx_str_t  result = ngx_string(
        "{\"resultType\":\"complete\","
        "\"supportedVersions\":" NGX_HTTP_MCP_TASKS_VERSIONS ","
        "\"capabilities\":{},"
        "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":"
        "{\"name\":\"" NGX_HTTP_MCP_TASKS_NAME "\","
        "\"version\":\"" NGX_HTTP_MCP_TASKS_VERSION "\"}},"
        "\"ttlMs\":3600000,\"cacheScope\":\"public\"}");

    return ngx_http_mcp_tasks_result(r, ctx, &result);
}
