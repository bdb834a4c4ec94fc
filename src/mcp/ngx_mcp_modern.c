
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The modern era: revision 2026-07-28.  Every request carries its version and
 * the capabilities of the client, and headers repeat what intermediaries need.
 */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_params.h"


static ngx_int_t ngx_mcp_modern_check(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_method_t *m);
static ngx_int_t ngx_mcp_modern_headers(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_method_t *m);
static ngx_uint_t ngx_mcp_modern_name(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_method_t *m);
static ngx_int_t ngx_mcp_decoded(ngx_http_request_t *r, ngx_str_t *value);
static ngx_uint_t ngx_mcp_modern_supported(ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_modern_capabilities(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);


ngx_int_t
ngx_mcp_modern(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t          rc;
    ngx_mcp_method_t  *m;

    if (ctx->rpc.kind == NGX_MCP_RPC_RESPONSE) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_RPC_INVALID_REQUEST,
                             "Invalid Request: responses are not accepted, "
                             "send answers in inputResponses", NULL);
    }

    m = ngx_mcp_method(ctx);
    rc = ngx_mcp_modern_check(r, ctx, m);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ctx->rpc.kind == NGX_MCP_RPC_NOTIFICATION) {
        return ngx_mcp_accepted(r);
    }

    if (m == NULL || !ngx_mcp_method_is_for(m, ctx)) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_NOT_FOUND, NGX_MCP_RPC_NO_METHOD,
                             "Method not found", NULL);
    }

    return m->handler(r, ctx);
}


/* NGX_DECLINED: the request is valid; any other value: an error was sent */

static ngx_int_t
ngx_mcp_modern_check(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_method_t *m)
{
    ngx_int_t         rc;
    ngx_str_t         value;
    static ngx_str_t  version = ngx_string("mcp-protocol-version");

    if (ctx->params.version.type != NGX_MCP_JSON_STRING) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                               "_meta must contain the string "
                               "io.modelcontextprotocol/protocolVersion");
    }

    if (ngx_mcp_header(r, &version, &value) != 1
        || !ngx_mcp_json_is(&ctx->params.version, &value))
    {
        return ngx_mcp_mismatch(r, ctx,
                                "Header mismatch: MCP-Protocol-Version is "
                                "missing, duplicate, or different from "
                                "protocolVersion in _meta");
    }

    if (!ngx_mcp_json_is(&ctx->params.version, &ngx_mcp_modern_latest->name)) {
        return ngx_mcp_unsupported(r, ctx, ngx_mcp_modern_supported(ctx));
    }

    if (ctx->rpc.kind == NGX_MCP_RPC_NOTIFICATION) {
        /* the specification requires no other header for a notification */
        return NGX_DECLINED;
    }

    rc = ngx_mcp_modern_capabilities(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return ngx_mcp_modern_headers(r, ctx, m);
}


/*
 * The eras whose revisions are listed as supported.  A legacy revision in _meta
 * is refused, so it must not be in the list: the client would try it again.
 */

static ngx_uint_t
ngx_mcp_modern_supported(ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_revision_t  *rev;

    for (rev = ngx_mcp_revisions; rev->name.len; rev++) {
        if (!rev->modern && ngx_mcp_json_is(&ctx->params.version, &rev->name)) {
            return NGX_MCP_PASS_MODERN;
        }
    }

    return NGX_MCP_PASS_LEGACY | NGX_MCP_PASS_MODERN;
}


static ngx_int_t
ngx_mcp_modern_capabilities(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_request_params_t  *params;

    params = &ctx->params;

    if (params->client.type == NGX_MCP_JSON_DUPLICATE
        || params->capabilities.type != NGX_MCP_JSON_OBJECT)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                               "_meta must contain the object "
                               "io.modelcontextprotocol/clientCapabilities, "
                               "and clientInfo at most once");
    }

    if (params->extensions.type == NGX_MCP_JSON_DUPLICATE
        || params->elicitation.type == NGX_MCP_JSON_DUPLICATE
        || params->sampling.type == NGX_MCP_JSON_DUPLICATE
        || params->roots.type == NGX_MCP_JSON_DUPLICATE
        || params->tasks.type == NGX_MCP_JSON_DUPLICATE
        || params->extended.type == NGX_MCP_JSON_DUPLICATE
        || params->extended_old.type == NGX_MCP_JSON_DUPLICATE)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                               "duplicate member in "
                               "io.modelcontextprotocol/clientCapabilities");
    }

    ctx->tasks = (params->tasks.type == NGX_MCP_JSON_OBJECT);
    ctx->extended = (params->extended.type == NGX_MCP_JSON_OBJECT
                     || params->extended_old.type == NGX_MCP_JSON_OBJECT);
    ctx->can = ngx_mcp_can(&params->elicitation, &params->sampling,
                           &params->roots, 1);

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_modern_headers(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_method_t *m)
{
    ngx_str_t         value, *name;
    static ngx_str_t  method = ngx_string("mcp-method");

    name = &ctx->rpc.method;

    if (ngx_mcp_header(r, &method, &value) != 1
        || value.len != name->len
        || ngx_strncmp(value.data, name->data, name->len) != 0)
    {
        return ngx_mcp_mismatch(r, ctx,
                                "Header mismatch: Mcp-Method is missing, "
                                "duplicate, or different from method");
    }

    if (!ngx_mcp_modern_name(r, ctx, m)) {
        return ngx_mcp_mismatch(r, ctx,
                                "Header mismatch: Mcp-Name is missing, "
                                "duplicate, or different from name or taskId "
                                "in params");
    }

    return NGX_DECLINED;
}


/* whether Mcp-Name is correct, for the methods that require it */

static ngx_uint_t
ngx_mcp_modern_name(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_method_t *m)
{
    ngx_str_t         value;
    ngx_mcp_json_t   *source;
    static ngx_str_t  header = ngx_string("mcp-name");

    if (m == NULL || m->repeated == 0) {
        return 1;
    }

    source = (ngx_mcp_json_t *) ((u_char *) ctx + m->repeated);

    if (source->type != NGX_MCP_JSON_STRING) {
        /* the handler of the method reports this error */
        return 1;
    }

    return ngx_mcp_header(r, &header, &value) == 1
           && ngx_mcp_decoded(r, &value) == NGX_OK
           && ngx_mcp_json_is(source, &value);
}


/* decodes "=?base64?...?=", which a header needs for some characters */

static ngx_int_t
ngx_mcp_decoded(ngx_http_request_t *r, ngx_str_t *value)
{
    size_t     pad;
    ngx_str_t  src, dst;

    if (value->len < sizeof("=?base64?" "?=") - 1
        || ngx_strncmp(value->data, "=?base64?", 9) != 0
        || ngx_strncmp(value->data + value->len - 2, "?=", 2) != 0)
    {
        return NGX_OK;
    }

    src.data = value->data + 9;
    src.len = value->len - 11;

    dst.data = ngx_pnalloc(r->pool, ngx_base64_decoded_length(src.len));
    if (dst.data == NULL || ngx_decode_base64(&dst, &src) != NGX_OK) {
        return NGX_ERROR;
    }

    /*
     * ngx_decode_base64() accepts text without padding and ignores what follows
     * the padding
     */

    for (pad = 0; pad < 2 && pad < src.len; pad++) {
        if (src.data[src.len - 1 - pad] != '=') {
            break;
        }
    }

    if (src.len % 4 != 0 || dst.len != src.len / 4 * 3 - pad) {
        return NGX_ERROR;
    }

    *value = dst;

    return NGX_OK;
}


/* whether the headers that the tool's schema requires match the arguments */

ngx_uint_t
ngx_mcp_modern_params(ngx_http_request_t *r, ngx_mcp_tool_t *tool,
    ngx_mcp_json_t *arguments)
{
    ngx_str_t         header;
    ngx_uint_t        i, n;
    ngx_mcp_json_t    value;
    ngx_mcp_param_t  *param;

    param = tool->params->elts;

    for (i = 0; i < tool->params->nelts; i++) {

        if (ngx_mcp_params_value(&param[i], arguments, &value) != NGX_OK) {
            return 0;
        }

        n = ngx_mcp_header(r, &param[i].header, &header);

        if (value.type == NGX_MCP_JSON_NONE) {
            if (n) {
                return 0;
            }

            continue;
        }

        if (n != 1
            || ngx_mcp_decoded(r, &header) != NGX_OK
            || !ngx_mcp_params_same(&header, &value))
        {
            return 0;
        }
    }

    return 1;
}


ngx_int_t
ngx_mcp_discover(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_out_t  out;

    ngx_mcp_out_answer(&out, r, ctx, 512);
    ngx_mcp_out_lit(&out, "{\"resultType\":\"complete\","
                    "\"supportedVersions\":");
    ngx_mcp_out_revisions(&out, NGX_MCP_PASS_LEGACY | NGX_MCP_PASS_MODERN);
    ngx_mcp_out_lit(&out, ",\"capabilities\":{\"tools\":{},\"extensions\":{"
                    "\"io.modelcontextprotocol/tasks\":{},"
                    "\"" NGX_MCP_EXTENSION "\":{}}},"
                    NGX_MCP_SERVER_META ","
                    "\"ttlMs\":3600000,\"cacheScope\":\"public\"}");

    return ngx_mcp_out_result(r, &out);
}
