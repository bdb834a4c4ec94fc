
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The MCP endpoint: checks a request as HTTP and as JSON-RPC, determines its
 * era and calls the code of that era.  URIs below the endpoint belong to REST.
 */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_gateway.h"
#include "ngx_mcp_rest.h"


#define NGX_MCP_ENDPOINT_METHODS  "GET, POST, DELETE, OPTIONS"
#define NGX_MCP_MODERN_METHODS    "POST, OPTIONS"


static ngx_int_t ngx_mcp_get(ngx_http_request_t *r);
static ngx_uint_t ngx_mcp_header_is_modern(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_not_allowed(ngx_http_request_t *r, char *allow);
static void ngx_mcp_message(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_dispatch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
static ngx_uint_t ngx_mcp_hint(ngx_mcp_ctx_t *ctx, ngx_mcp_id_t *id);


ngx_int_t
ngx_mcp_handler(ngx_http_request_t *r)
{
    ngx_str_t            path;
    ngx_uint_t           endpoint;
    ngx_mcp_loc_conf_t  *lcf;
    static ngx_str_t     origin = ngx_string("origin_not_allowed");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    /* the request has been executed: conditional headers do not apply */
    r->disable_not_modified = 1;

    endpoint = ngx_mcp_is_location(r, &path);

    if (!endpoint
        && (path.len < 5 || ngx_strncmp(path.data, "tasks", 5) != 0))
    {
        return NGX_HTTP_NOT_FOUND;
    }

    if (!ngx_mcp_origin(r)) {

        if (!endpoint) {
            return ngx_mcp_problem(r, NGX_HTTP_FORBIDDEN, &origin, NULL);
        }

        return ngx_mcp_refuse(r, NGX_HTTP_FORBIDDEN,
                              NGX_MCP_RPC_INVALID_REQUEST,
                              "Invalid Request: Origin or Host is not allowed");
    }

    if (!endpoint) {
        return ngx_mcp_rest(r, &path);
    }

    if (r->method == NGX_HTTP_OPTIONS) {
        return ngx_mcp_options(r, NGX_MCP_ENDPOINT_METHODS);
    }

    if (lcf->pass.len == 0
        && r->method != NGX_HTTP_POST
        && ngx_mcp_header_is_modern(r))
    {
        /* streams and sessions are of the legacy era */
        return ngx_mcp_not_allowed(r, NGX_MCP_MODERN_METHODS);
    }

    if (!lcf->zone->ready && r->method & (NGX_HTTP_GET|NGX_HTTP_DELETE)) {
        return ngx_mcp_problem_refused(r, NGX_MCP_STORE_UNAVAILABLE);
    }

    switch (r->method) {

    case NGX_HTTP_POST:
        break;

    case NGX_HTTP_GET:
        return lcf->pass.len ? ngx_mcp_pass_other(r) : ngx_mcp_get(r);

    case NGX_HTTP_DELETE:
        return lcf->pass.len ? ngx_mcp_pass_other(r) : ngx_mcp_session_end(r);

    default:
        return ngx_mcp_not_allowed(r, NGX_MCP_ENDPOINT_METHODS);
    }

    if (lcf->pass.len == 0 && !ngx_mcp_accepts(r)) {
        return ngx_mcp_refuse(r, 406, NGX_MCP_RPC_INVALID_REQUEST,
                              "Invalid Request: Accept must allow "
                              "application/json and text/event-stream");
    }

    return ngx_mcp_post(r, ngx_mcp_message);
}


/* the stream of a session */

static ngx_int_t
ngx_mcp_get(ngx_http_request_t *r)
{
    if (!ngx_mcp_accepts_stream(r)) {
        return ngx_mcp_refuse(r, 406, NGX_MCP_RPC_INVALID_REQUEST,
                              "Invalid Request: Accept must allow "
                              "text/event-stream");
    }

    return ngx_mcp_stream_open(r);
}


static ngx_uint_t
ngx_mcp_header_is_modern(ngx_http_request_t *r)
{
    ngx_str_t         value, *version;
    static ngx_str_t  header = ngx_string("mcp-protocol-version");

    version = &ngx_mcp_modern_latest->name;

    return ngx_mcp_header(r, &header, &value)
           && value.len == version->len
           && ngx_strncmp(value.data, version->data, value.len) == 0;
}


static ngx_int_t
ngx_mcp_not_allowed(ngx_http_request_t *r, char *allow)
{
    ngx_str_t  value;

    value.data = (u_char *) allow;
    value.len = ngx_strlen(allow);

    if (ngx_mcp_add_header(r, "Allow", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_refuse(r, NGX_HTTP_NOT_ALLOWED, NGX_MCP_RPC_INVALID_REQUEST,
                          "Invalid Request: HTTP method not allowed, use POST");
}


static void
ngx_mcp_message(ngx_http_request_t *r)
{
    ngx_int_t            rc, modern;
    ngx_uint_t           known;
    ngx_mcp_id_t         id;
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    rc = ngx_mcp_read(r, &ctx);

    if (rc != NGX_DECLINED) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    known = ngx_mcp_hint(ctx, &id);

    if (known) {
        ngx_mcp_hint_hash(lcf->zone, &id);
    }

    modern = ngx_mcp_is_modern(r, ctx);

    if (modern == NGX_ERROR) {
        rc = ngx_mcp_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                             "duplicate _meta, or duplicate protocolVersion or "
                             "progressToken in _meta");

    } else if (lcf->pass.len) {
        rc = ngx_mcp_pass_message(r, ctx, modern == NGX_OK, ngx_mcp_dispatch);
    }

    if (known) {
        ngx_mcp_hint_task(lcf->zone, &id);
    }

    if (rc == NGX_DECLINED) {
        ctx->era = (modern == NGX_OK) ? NGX_MCP_MODERN
                                      : NGX_MCP_LEGACY;
        rc = ngx_mcp_dispatch(r, ctx);
    }

    ngx_http_finalize_request(r, rc);
}


/* handles a message that is not for the upstream */

static ngx_int_t
ngx_mcp_dispatch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return (ctx->era == NGX_MCP_MODERN) ? ngx_mcp_modern(r, ctx)
                                        : ngx_mcp_legacy(r, ctx);
}


/*
 * Parses the first four bytes of the task id, which locate the task in the
 * table, so that its memory can be prefetched.  Returns 0 if there is no task
 * id.
 */

static ngx_uint_t
ngx_mcp_hint(ngx_mcp_ctx_t *ctx, ngx_mcp_id_t *id)
{
    ngx_mcp_json_t  *params;

    params = &ctx->params.id;

    return params->type == NGX_MCP_JSON_STRING
           && params->text.len == NGX_MCP_ID_TEXT + 2
           && ngx_mcp_unhex(id->data, params->text.data + 1,
                            sizeof(uint32_t))
              == NGX_OK;
}


/*
 * A modern request has its version in _meta.  A request with the modern version
 * in the header only, or for server/discover, is also taken as modern, so that
 * the error says what is missing.  NGX_OK: modern; NGX_DECLINED: legacy;
 * NGX_ERROR: a member is duplicated.
 */

ngx_int_t
ngx_mcp_is_modern(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    static ngx_str_t  discover = ngx_string("server/discover");

    if (ctx->params.meta.type == NGX_MCP_JSON_DUPLICATE
        || ctx->params.version.type == NGX_MCP_JSON_DUPLICATE
        || ctx->params.token.type == NGX_MCP_JSON_DUPLICATE)
    {
        return NGX_ERROR;
    }

    if (ctx->params.version.type != NGX_MCP_JSON_NONE
        || (ctx->rpc.method.len == discover.len
            && ngx_strncmp(ctx->rpc.method.data, discover.data, discover.len)
               == 0))
    {
        return NGX_OK;
    }

    return ngx_mcp_header_is_modern(r) ? NGX_OK : NGX_DECLINED;
}
