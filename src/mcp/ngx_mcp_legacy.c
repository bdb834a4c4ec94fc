
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The legacy era: revisions up to 2025-11-25, which begin with initialize. */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_gateway.h"


ngx_int_t
ngx_mcp_legacy(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t            value;
    ngx_mcp_method_t    *m;
    ngx_mcp_loc_conf_t  *lcf;
    ngx_mcp_revision_t  *rev;
    static ngx_str_t     header = ngx_string("mcp-protocol-version");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    rev = NULL;

    if (ngx_mcp_header(r, &header, &value)) {
        rev = ngx_mcp_revision(&value);

        if (rev == NULL && lcf->pass.len && lcf->schemas == NULL) {
            /* the upstream may support that revision */
            return ngx_mcp_pass(r, ctx);
        }

        if (rev == NULL || rev->modern) {
            return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                                 NGX_MCP_RPC_INVALID_REQUEST,
                                 "Invalid Request: unsupported version in "
                                 "MCP-Protocol-Version", NULL);
        }
    }

    if (lcf->pass.len) {

        /*
         * The upstream has sessions of its own and knows what its client has
         * declared.
         */

        ctx->can = NGX_MCP_CAN_ALL;

    } else if (ngx_mcp_session_check(r, ctx) == NGX_DECLINED) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_NOT_FOUND,
                             NGX_MCP_RPC_NO_SESSION, "Session not found",
                             NULL);
    }

    /* the header, or else the session, or else what serves most clients */

    if (rev) {
        ctx->revision = rev;

    } else if (ctx->revision == NULL) {
        ctx->revision = ngx_mcp_legacy_latest;
    }

    ctx->tasks = ctx->revision->tasks;
    ctx->extended = ctx->tasks;

    switch (ctx->rpc.kind) {
    case NGX_MCP_RPC_NOTIFICATION:
        return ngx_mcp_notification(r, ctx);
    case NGX_MCP_RPC_RESPONSE:
        return ngx_mcp_response(r, ctx);
    }

    m = ngx_mcp_method(ctx);

    if (m == NULL || !ngx_mcp_method_is_for(m, ctx)) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_OK, NGX_MCP_RPC_NO_METHOD,
                             "Method not found", NULL);
    }

    return m->handler(r, ctx);
}


ngx_int_t
ngx_mcp_initialize(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_uint_t           can;
    ngx_mcp_out_t        out;
    ngx_mcp_json_t       version, capabilities, info;
    ngx_mcp_json_t       elicitation, sampling, roots;
    ngx_mcp_revision_t  *rev;
    ngx_mcp_member_t     members[] = {
        { ngx_string("protocolVersion"), &version },
        { ngx_string("capabilities"), &capabilities },
        { ngx_string("clientInfo"), &info }
    };
    ngx_mcp_member_t     declared[] = {
        { ngx_string("elicitation"), &elicitation },
        { ngx_string("sampling"), &sampling },
        { ngx_string("roots"), &roots }
    };

    if (ngx_mcp_members(ctx, members, 3) != NGX_OK
        || ngx_mcp_json_members(&capabilities, declared, 3) != NGX_OK)
    {
        return ngx_mcp_duplicate(r, ctx);
    }

    if (version.type != NGX_MCP_JSON_STRING) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "protocolVersion must be a string");
    }

    if (capabilities.type != NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "capabilities must be an object");
    }

    if (info.type != NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "clientInfo must be an object");
    }

    for (rev = ngx_mcp_legacy_latest; rev->name.len; rev++) {
        if (ngx_mcp_json_is(&version, &rev->name)) {
            break;
        }
    }

    if (rev->name.len == 0) {
        rev = ngx_mcp_legacy_latest;
    }

    ctx->params.client = info;
    can = ngx_mcp_can(&elicitation, &sampling, &roots, rev->modes);

    if (ngx_mcp_session_new(r, ctx, rev, can) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_mcp_out_answer(&out, r, ctx, 512);
    ngx_mcp_out_lit(&out, "{\"protocolVersion\":\"");
    ngx_mcp_out_str(&out, &rev->name);
    ngx_mcp_out_lit(&out, "\",\"capabilities\":{\"tools\":{}");

    if (rev->tasks) {
        ngx_mcp_out_lit(&out, ",\"tasks\":{");

        /* only identified owners can list tasks */

        if (ctx->owner.len) {
            ngx_mcp_out_lit(&out, "\"list\":{},");
        }

        ngx_mcp_out_lit(&out, "\"cancel\":{},\"requests\":"
                        "{\"tools\":{\"call\":{}}}}");
    }

    ngx_mcp_out_lit(&out, "},\"serverInfo\":" NGX_MCP_SERVER_INFO "}");

    return ngx_mcp_out_result(r, &out);
}


ngx_int_t
ngx_mcp_ping(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    static ngx_str_t  empty = ngx_string("{}");

    return ngx_mcp_result(r, ctx, &empty);
}
