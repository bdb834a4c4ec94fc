
/*
 * The legacy era: revisions up to 2025-11-25, opened with initialize.
 */


#include "ngx_mcp_gateway.h"


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
    { ngx_string("tools/list"), ngx_http_mcp_tasks_tools_list },
    { ngx_string("tools/call"), ngx_http_mcp_tasks_tools_call },
    { ngx_null_string, NULL }
};


/* since 2025-11-25; ours among them */

static ngx_http_mcp_tasks_method_t
    ngx_http_mcp_tasks_legacy_task_methods[] =
{
    { ngx_string("tasks/get"), ngx_http_mcp_tasks_tasks_get },
    { ngx_string("tasks/result"), ngx_http_mcp_tasks_tasks_result },
    { ngx_string("tasks/list"), ngx_http_mcp_tasks_tasks_list },
    { ngx_string("tasks/cancel"), ngx_http_mcp_tasks_tasks_cancel },
    { ngx_string("tasks/create"), ngx_http_mcp_tasks_tasks_create },
    { ngx_string("tasks/send"), ngx_http_mcp_tasks_tasks_create },
    { ngx_string("tasks/update"), ngx_http_mcp_tasks_tasks_update },
    { ngx_string("tasks/progress"), ngx_http_mcp_tasks_tasks_progress },
    { ngx_null_string, NULL }
};


ngx_int_t
ngx_http_mcp_tasks_legacy(ngx_http_request_t *r, ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_int_t                       rc;
    ngx_str_t                       value, *v;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;
    static ngx_str_t                header = ngx_string(
                                                    "mcp-protocol-version");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    v = ngx_http_mcp_tasks_legacy_versions;

    if (ngx_http_mcp_tasks_header(r, &header, &value)) {

        for ( /* void */ ; v->len; v++) {
            if (value.len == v->len
                && ngx_strncmp(value.data, v->data, v->len) == 0)
            {
                break;
            }
        }

        if (v->len == 0 && lcf->pass.len) {
            /* the upstream may know it */
            return ngx_http_mcp_tasks_pass(r, ctx);
        }

        if (v->len == 0) {
            return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                              NGX_HTTP_MCP_TASKS_RPC_INVALID_REQUEST,
                              "Invalid Request: unsupported "
                              "MCP-Protocol-Version", NULL);
        }
    }

    /* only the latest of them knows tasks */

    ctx->tasks = (v == ngx_http_mcp_tasks_legacy_versions);
    ctx->extended = ctx->tasks;

    /* sessions of a gateway are the upstream's affair */

    if (lcf->pass.len == 0
        && ngx_http_mcp_tasks_session_check(r, ctx) == NGX_DECLINED)
    {
        return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_NOT_FOUND,
                                        NGX_HTTP_MCP_TASKS_RPC_NO_SESSION,
                                        "Session not found", NULL);
    }

    switch (ctx->rpc.kind) {
    case NGX_HTTP_MCP_TASKS_RPC_NOTIFICATION:
        return ngx_http_mcp_tasks_accepted(r);
    case NGX_HTTP_MCP_TASKS_RPC_RESPONSE:
        return ngx_http_mcp_tasks_response(r, ctx);
    }

    rc = ngx_http_mcp_tasks_dispatch(r, ctx,
                                     ngx_http_mcp_tasks_legacy_methods);

    if (rc == NGX_DECLINED && ctx->tasks) {
        rc = ngx_http_mcp_tasks_dispatch(r, ctx,
                                   ngx_http_mcp_tasks_legacy_task_methods);
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_OK,
                                        NGX_HTTP_MCP_TASKS_RPC_NO_METHOD,
                                        "Method not found", NULL);
    }

    return rc;
}


/* whether it is the revision that knows tasks */

ngx_uint_t
ngx_http_mcp_tasks_legacy_tasks(ngx_str_t *version)
{
    ngx_str_t  *v;

    v = ngx_http_mcp_tasks_legacy_versions;

    return version->len == v->len
           && ngx_strncmp(version->data, v->data, v->len) == 0;
}


/* a gateway whose upstream is of the other era */

ngx_int_t
ngx_http_mcp_tasks_legacy_refuse(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    static ngx_str_t  data = ngx_string("{\"supported\":[\"2026-07-28\"]}");

    return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                                    NGX_HTTP_MCP_TASKS_RPC_INVALID_PARAMS,
                                    "Unsupported protocol version", &data);
}


static ngx_int_t
ngx_http_mcp_tasks_initialize(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_str_t                    *v;
    ngx_http_mcp_tasks_out_t      out;
    ngx_http_mcp_tasks_json_t     version, capabilities, info;
    ngx_http_mcp_tasks_member_t   members[] = {
        { ngx_string("protocolVersion"), &version },
        { ngx_string("capabilities"), &capabilities },
        { ngx_string("clientInfo"), &info }
    };

    if (ngx_http_mcp_tasks_members(ctx, members, 3) != NGX_OK) {
        return ngx_http_mcp_tasks_twice(r, ctx);
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

    ctx->said.client = info;

    if (ngx_http_mcp_tasks_session_new(r, ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_mcp_tasks_out_answer(&out, r, ctx, 512);
    ngx_http_mcp_tasks_out_lit(&out, "{\"protocolVersion\":\"");
    ngx_http_mcp_tasks_out_str(&out, v);
    ngx_http_mcp_tasks_out_lit(&out, "\",\"capabilities\":{\"tools\":{}");

    if (v == ngx_http_mcp_tasks_legacy_versions) {
        ngx_http_mcp_tasks_out_lit(&out, ",\"tasks\":{");

        /* nobody can list who is not told from others */

        if (ctx->owner.len) {
            ngx_http_mcp_tasks_out_lit(&out, "\"list\":{},");
        }

        ngx_http_mcp_tasks_out_lit(&out, "\"cancel\":{},\"requests\":"
                                         "{\"tools\":{\"call\":{}}}}");
    }

    ngx_http_mcp_tasks_out_lit(&out, "},\"serverInfo\":"
                               NGX_HTTP_MCP_TASKS_SERVER_INFO "}");

    return ngx_http_mcp_tasks_out_result(r, &out);
}


static ngx_int_t
ngx_http_mcp_tasks_ping(ngx_http_request_t *r, ngx_http_mcp_tasks_ctx_t *ctx)
{
    static ngx_str_t  empty = ngx_string("{}");

    return ngx_http_mcp_tasks_result(r, ctx, &empty);
}
