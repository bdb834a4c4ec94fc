
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The method tools/list. */


#include "ngx_mcp_methods.h"


#define NGX_MCP_TOOLS_PAGE  100


static int64_t ngx_mcp_tools_first(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t n);


ngx_int_t
ngx_mcp_tools_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    int64_t              first;
    ngx_uint_t           i, n, last;
    ngx_mcp_out_t        out;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    n = lcf->tools ? lcf->tools->nelts : 0;
    first = ngx_mcp_tools_first(r, ctx, n);

    if (first < 0) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "cursor must be nextCursor of an earlier page");
    }

    last = ngx_min(n, (ngx_uint_t) first + NGX_MCP_TOOLS_PAGE);

    ngx_mcp_out_answer(&out, r, ctx, 4096);
    ngx_mcp_out_lit(&out, "{");

    if (ctx->era == NGX_MCP_MODERN) {
        ngx_mcp_out_lit(&out, "\"resultType\":\"complete\",");
    }

    ngx_mcp_out_lit(&out, "\"tools\":[");

    for (i = first; i < last; i++) {

        if (i > (ngx_uint_t) first) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_render_tool(&out, lcf->tools, i,
                            ctx->era == NGX_MCP_LEGACY
                            && ctx->tasks);
    }

    ngx_mcp_out_lit(&out, "]");

    if (last < n) {
        ngx_mcp_out_lit(&out, ",\"nextCursor\":\"");
        ngx_mcp_out_number(&out, last);
        ngx_mcp_out_lit(&out, "\"");
    }

    if (ctx->era == NGX_MCP_MODERN) {
        ngx_mcp_out_lit(&out,
                        "," NGX_MCP_SERVER_META ","
                        "\"ttlMs\":300000,\"cacheScope\":");

        /* clients that are told apart may be shown different tools */

        if (lcf->owner) {
            ngx_mcp_out_lit(&out, "\"private\"");

        } else {
            ngx_mcp_out_lit(&out, "\"public\"");
        }
    }

    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_result(r, &out);
}


/*
 * Tools are in the order of the file.  A cursor is the number of the first tool
 * of a page, which is a multiple of the page size.  Returns -1 if the cursor is
 * invalid.
 */

static int64_t
ngx_mcp_tools_first(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_uint_t n)
{
    int64_t           first;
    ngx_mcp_json_t    cursor, number;
    ngx_mcp_member_t  members[] = {
        { ngx_string("cursor"), &cursor }
    };

    (void) ngx_mcp_json_members(&ctx->rpc.params, members, 1);

    if (cursor.type == NGX_MCP_JSON_NONE) {
        return 0;
    }

    if (cursor.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &cursor, &number.text) != NGX_OK
        || number.text.len == 0)
    {
        return -1;
    }

    number.type = NGX_MCP_JSON_NUMBER;

    if (ngx_mcp_json_integer(&number, &first) != NGX_OK
        || first <= 0 || first >= (int64_t) n
        || first % NGX_MCP_TOOLS_PAGE)
    {
        return -1;
    }

    return first;
}
