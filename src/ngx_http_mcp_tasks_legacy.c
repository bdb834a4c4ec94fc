
/*
 * The legacy era: revisions up to 2025-11-25, opened with initialize.
 */


#include "ngx_http_mcp_tasks_module.h"


static ngx_int_t ngx_http_mcp_tasks_initialize(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_ping(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);


/* the first one is offered to a client that asks for what is unknown */

static ngx_str_t  ngx_http_mcp_tasks_legacy_versions[] = {
    ngx_string("2025-11-25"),
    ngx_string("2025-06-18"),
    ngx_string("2025-03-26"),
    ngx_null_string
};


static ngx_http_mcp_tasks_method_t  ngx_http_mcp_tasks_legacy_methods[] = {
    { ngx_string("initialize"), ngx_http_mcp_tasks_initialize },
    { ngx_string("ping"), ngx_http_mcp_tasks_ping },
    { ngx_null_string, NULL }
};


ngx_int_t
ngx_http_mcp_tasks_legacy(ngx_http_request_t *r, ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_str_t         value, *v;
    static ngx_str_t  header = ngx_string("MCP-Protocol-Version");

    if (ngx_http_mcp_tasks_header(r, &header, &value)) {

        for (v = ngx_http_mcp_tasks_legacy_versions; v->len; v++) {
            if (value.len == v->len
                && ngx_strncmp(value.data, v->data, v->len) == 0)
            {
                break;
            }
        }

        if (v->len == 0) {
            return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                              NGX_HTTP_MCP_TASKS_RPC_INVALID_REQUEST,
                              "Invalid Request: unsupported "
                              "MCP-Protocol-Version", NULL);
        }
    }

    if (ctx->rpc.kind != NGX_HTTP_MCP_TASKS_RPC_REQUEST) {
        return ngx_http_mcp_tasks_accepted(r);
    }

    return ngx_http_mcp_tasks_call(r, ctx, ngx_http_mcp_tasks_legacy_methods,
                                   NGX_HTTP_OK);
}


static ngx_int_t
ngx_http_mcp_tasks_initialize(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    u_char                       *p, *end;
    ngx_str_t                    *v, result;
    ngx_http_mcp_tasks_json_t     version, capabilities, info;
    ngx_http_mcp_tasks_member_t   members[] = {
        { ngx_string("protocolVersion"), &version },
        { ngx_string("capabilities"), &capabilities },
        { ngx_string("clientInfo"), &info }
    };

    if (ngx_http_mcp_tasks_json_members(&ctx->rpc.params, members, 3)
        != NGX_OK)
    {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                          "a member stands twice");
    }

    if (version.type != NGX_HTTP_MCP_TASKS_JSON_STRING) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                          "protocolVersion is not a string");
    }

    if (capabilities.type != NGX_HTTP_MCP_TASKS_JSON_OBJECT) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                          "capabilities is not an object");
    }

    if (info.type != NGX_HTTP_MCP_TASKS_JSON_OBJECT) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                          "clientInfo is not an object");
    }

    for (v = ngx_http_mcp_tasks_legacy_versions; v->len; v++) {
        if (ngx_http_mcp_tasks_json_is(&version, v)) {
            break;
        }
    }

    if (v->len == 0) {
        v = ngx_http_mcp_tasks_legacy_versions;
    }

    p = ngx_pnalloc(r->pool, 256);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    result.data = p;
    end = p + 256;

    p = ngx_slprintf(p, end, "{\"protocolVersion\":\"%V\",\"capabilities\":{},"
                     "\"serverInfo\":{\"name\":\"" NGX_HTTP_MCP_TASKS_NAME
                     "\",\"version\":\"" NGX_HTTP_MCP_TASKS_VERSION "\"}}", v);
    result.len = p - result.data;

    return ngx_http_mcp_tasks_result(r, ctx, &result);
}


static ngx_int_t
ngx_http_mcp_tasks_ping(ngx_http_request_t *r, ngx_http_mcp_tasks_ctx_t *ctx)
{
    static ngx_str_t  empty = ngx_string("{}");

    return ngx_http_mcp_tasks_result(r, ctx, &empty);
}
