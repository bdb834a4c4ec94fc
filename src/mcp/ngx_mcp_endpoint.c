
/*
 * The MCP endpoint: checks a request as HTTP and as JSON-RPC, decides which
 * era it is of, and leaves the rest to that.  What lies below is REST.
 */


#include "ngx_mcp_gateway.h"


#define ngx_mcp_said(member)                                                  \
    offsetof(ngx_mcp_ctx_t, said.member)


static ngx_int_t ngx_mcp_get(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_not_allowed(ngx_http_request_t *r);
static void ngx_mcp_message(ngx_http_request_t *r);
static ngx_uint_t ngx_mcp_is_batch(ngx_http_request_t *r, ngx_str_t *body);
static ngx_uint_t ngx_mcp_hint(ngx_mcp_ctx_t *ctx, ngx_mcp_id_t *id);
static ngx_int_t ngx_mcp_is_modern(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);


static ngx_mcp_shape_t  ngx_mcp_extensions[] = {
    { ngx_string("io.modelcontextprotocol/tasks"),
      ngx_mcp_said(tasks), NULL },
    { ngx_string(NGX_MCP_EXTENSION),
      ngx_mcp_said(extended), NULL },
    { ngx_null_string, 0, NULL }
};


static ngx_mcp_shape_t  ngx_mcp_capabilities[] = {
    { ngx_string("extensions"), ngx_mcp_said(extensions),
      ngx_mcp_extensions },
    { ngx_string("elicitation"), ngx_mcp_said(elicitation), NULL },
    { ngx_string("sampling"), ngx_mcp_said(sampling), NULL },
    { ngx_string("roots"), ngx_mcp_said(roots), NULL },
    { ngx_null_string, 0, NULL }
};


static ngx_mcp_shape_t  ngx_mcp_meta[] = {
    { ngx_string("progressToken"), ngx_mcp_said(token), NULL },
    { ngx_string("io.modelcontextprotocol/protocolVersion"),
      ngx_mcp_said(version), NULL },
    { ngx_string("io.modelcontextprotocol/clientInfo"),
      ngx_mcp_said(client), NULL },
    { ngx_string("io.modelcontextprotocol/clientCapabilities"),
      ngx_mcp_said(capabilities),
      ngx_mcp_capabilities },
    { ngx_null_string, 0, NULL }
};


static ngx_mcp_shape_t  ngx_mcp_wanted[] = {
    { ngx_string("ttl"), ngx_mcp_said(ttl), NULL },
    { ngx_null_string, 0, NULL }
};


static ngx_mcp_shape_t  ngx_mcp_params[] = {
    { ngx_string("taskId"), ngx_mcp_said(id), NULL },
    { ngx_string("name"), ngx_mcp_said(name), NULL },
    { ngx_string("arguments"), ngx_mcp_said(arguments), NULL },
    { ngx_string("task"), ngx_mcp_said(task),
      ngx_mcp_wanted },
    { ngx_string("_meta"), ngx_mcp_said(meta),
      ngx_mcp_meta },
    { ngx_null_string, 0, NULL }
};


ngx_int_t
ngx_mcp_handler(ngx_http_request_t *r)
{
    ngx_str_t            path;
    ngx_uint_t           endpoint;
    ngx_mcp_loc_conf_t  *lcf;
    static ngx_str_t     origin = ngx_string("origin_not_allowed");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    /* conditions are not for answers to what has been done already */
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
        return ngx_mcp_options(r, "GET, POST, DELETE, OPTIONS");
    }

    if (!ngx_mcp_stored_ready(lcf->zone)
        && r->method & (NGX_HTTP_GET|NGX_HTTP_DELETE))
    {
        return ngx_mcp_rest_refused(r, NGX_MCP_STORE_UNAVAILABLE);
    }

    switch (r->method) {

    case NGX_HTTP_POST:
        break;

    case NGX_HTTP_GET:
        return lcf->pass.len ? ngx_mcp_pass_other(r)
                             : ngx_mcp_get(r);

    case NGX_HTTP_DELETE:
        return lcf->pass.len ? ngx_mcp_pass_other(r)
                             : ngx_mcp_session_end(r);

    default:
        return ngx_mcp_not_allowed(r);
    }

    if (lcf->pass.len == 0 && !ngx_mcp_accepts(r)) {
        return ngx_mcp_refuse(r, 406,
                     NGX_MCP_RPC_INVALID_REQUEST,
                     "Invalid Request: Accept must allow application/json "
                              "and text/event-stream");
    }

    return ngx_mcp_post(r, ngx_mcp_message);
}


/* the legacy era's stream; the modern era has none */

static ngx_int_t
ngx_mcp_get(ngx_http_request_t *r)
{
    ngx_str_t         value, *version;
    static ngx_str_t  header = ngx_string("mcp-protocol-version");

    version = &ngx_mcp_modern_version;

    if (ngx_mcp_header(r, &header, &value)
        && value.len == version->len
        && ngx_strncmp(value.data, version->data, value.len) == 0)
    {
        return ngx_mcp_not_allowed(r);
    }

    if (!ngx_mcp_accepts_stream(r)) {
        return ngx_mcp_refuse(r, 406,
                     NGX_MCP_RPC_INVALID_REQUEST,
                     "Invalid Request: Accept must allow text/event-stream");
    }

    return ngx_mcp_stream_open(r);
}


static ngx_int_t
ngx_mcp_not_allowed(ngx_http_request_t *r)
{
    ngx_str_t  allow;

    ngx_str_set(&allow, "GET, POST, DELETE, OPTIONS");

    if (ngx_mcp_add_header(r, "Allow", &allow) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_refuse(r, NGX_HTTP_NOT_ALLOWED,
                          NGX_MCP_RPC_INVALID_REQUEST,
                          "Invalid Request: use POST");
}


/* reads the body of a POST; what follows returns what to finalize with */

ngx_int_t
ngx_mcp_post(ngx_http_request_t *r, ngx_http_client_body_handler_pt handler)
{
    ngx_int_t  rc;

    if (!ngx_mcp_is_json(r)) {
        return ngx_mcp_refuse(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                     NGX_MCP_RPC_INVALID_REQUEST,
                     "Invalid Request: Content-Type is not application/json");
    }

    rc = ngx_http_read_client_request_body(r, handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


/* the location itself, with or without a slash; else, what lies below it */

ngx_uint_t
ngx_mcp_is_location(ngx_http_request_t *r, ngx_str_t *path)
{
    size_t                     len;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_mcp_loc_conf_t        *lcf;

    /* the location itself, also where a block inside of it applies */

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    clcf = lcf->location;
    ngx_str_null(path);

    if (clcf->exact_match || clcf->named
#if (NGX_PCRE)
        || clcf->regex
#endif
       )
    {
        return 1;
    }

    len = clcf->name.len;

    if (len && clcf->name.data[len - 1] == '/') {
        len--;
    }

    if (r->uri.len <= len + 1) {
        return r->uri.len <= len || r->uri.data[len] == '/';
    }

    if (r->uri.data[len] == '/') {
        path->data = r->uri.data + len + 1;
        path->len = r->uri.len - len - 1;
    }

    return 0;
}


ngx_int_t
ngx_mcp_refuse(ngx_http_request_t *r, ngx_uint_t status, ngx_int_t code,
    const char *why)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_mcp_error(r, NULL, status, code, why, NULL);
}


/*
 * The message in the body, and its sender.  NGX_DECLINED: go on; else it is
 * what to finalize with.
 */

ngx_int_t
ngx_mcp_read(ngx_http_request_t *r, ngx_mcp_ctx_t **pctx)
{
    u_char                message[256];
    ngx_int_t             rc;
    ngx_str_t             body;
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_rpc_error_t   err;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);
    *pctx = ctx;

    /*
     * The body is there, all of it: no reason to linger for the rest when the
     * process exits, which would take seconds if the client does not close.
     */

    r->lingering_close = 0;

    if (ngx_mcp_body(r, &body) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_mcp_rpc_parse(r->pool, &body, ngx_mcp_params, &ctx->rpc, &err);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED && ngx_mcp_is_batch(r, &body)) {
        /* of a revision that had them: the upstream may know it */
        return ngx_mcp_pass(r, ctx);
    }

    if (rc == NGX_DECLINED) {
        *ngx_snprintf(message, sizeof(message) - 1, "%s: %s", err.message,
                      err.detail) = '\0';

        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client sent an invalid JSON-RPC message: %s",
                      err.detail);

        return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST, err.code,
                             (char *) message, NULL);
    }

    rc = ngx_mcp_owner(r, &ctx->owner);

    if (rc == NGX_DECLINED) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "the value of \"mcp_tasks_owner\" is too long");
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ngx_mcp_stored_ready(lcf->zone)) {
        return ngx_mcp_refused(r, ctx, NGX_MCP_STORE_UNAVAILABLE);
    }

    return NGX_DECLINED;
}


static ngx_uint_t
ngx_mcp_is_batch(ngx_http_request_t *r, ngx_str_t *body)
{
    size_t               i;
    ngx_str_t            version;
    ngx_mcp_loc_conf_t  *lcf;
    static ngx_str_t     only = ngx_string("2025-03-26");
    static ngx_str_t     header = ngx_string("mcp-protocol-version");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (lcf->pass.len == 0) {
        return 0;
    }

    if (ngx_mcp_header(r, &header, &version)
        && (version.len != only.len
            || ngx_strncmp(version.data, only.data, only.len) != 0))
    {
        return 0;
    }

    for (i = 0; i < body->len; i++) {
        switch (body->data[i]) {
        case ' ':
        case '\t':
        case CR:
        case LF:
            continue;
        default:
            return body->data[i] == '[';
        }
    }

    return 0;
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
        ngx_mcp_hint_place(&lcf->zone->zone, &id);
    }

    modern = ngx_mcp_is_modern(r, ctx);

    if (modern == NGX_ERROR) {
        rc = ngx_mcp_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                             "a member stands twice");

    } else if (lcf->pass.len) {
        rc = ngx_mcp_pass_message(r, ctx, modern == NGX_OK);
    }

    if (known) {
        ngx_mcp_hint_task(&lcf->zone->zone, &id);
    }

    if (rc == NGX_DECLINED) {
        ctx->era = (modern == NGX_OK) ? NGX_MCP_MODERN
                                      : NGX_MCP_LEGACY;
        rc = (modern == NGX_OK) ? ngx_mcp_modern(r, ctx)
                                : ngx_mcp_legacy(r, ctx);
    }

    ngx_http_finalize_request(r, rc);
}


/* the first of what an id is made of says where its task is to be found */

static ngx_uint_t
ngx_mcp_hint(ngx_mcp_ctx_t *ctx, ngx_mcp_id_t *id)
{
    ngx_mcp_json_t  *said;

    said = &ctx->said.id;

    return said->type == NGX_MCP_JSON_STRING
           && said->text.len == NGX_MCP_ID_TEXT + 2
           && ngx_mcp_unhex(id->data, said->text.data + 1,
                            sizeof(uint32_t))
              == NGX_OK;
}


/*
 * Requests of the modern era say so in their _meta.  Who says so in the
 * header only, or asks what only the modern era knows, means that era too,
 * and learns there what is missing.
 */

static ngx_int_t
ngx_mcp_is_modern(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t         value, *version;
    static ngx_str_t  header = ngx_string("mcp-protocol-version");
    static ngx_str_t  discover = ngx_string("server/discover");

    if (ctx->said.meta.type == NGX_MCP_JSON_TWICE
        || ctx->said.version.type == NGX_MCP_JSON_TWICE
        || ctx->said.token.type == NGX_MCP_JSON_TWICE)
    {
        return NGX_ERROR;
    }

    if (ctx->said.version.type != NGX_MCP_JSON_NONE
        || (ctx->rpc.method.len == discover.len
            && ngx_strncmp(ctx->rpc.method.data, discover.data, discover.len)
               == 0))
    {
        return NGX_OK;
    }

    version = &ngx_mcp_modern_version;

    if (ngx_mcp_header(r, &header, &value)
        && value.len == version->len
        && ngx_strncmp(value.data, version->data, value.len) == 0)
    {
        return NGX_OK;
    }

    return NGX_DECLINED;
}


/* NGX_DECLINED: there is no such method in that list */

ngx_int_t
ngx_mcp_dispatch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_method_t *methods)
{
    ngx_str_t         *name;
    ngx_mcp_method_t  *m;

    name = &ctx->rpc.method;

    for (m = methods; m->handler; m++) {
        if (m->name.len == name->len
            && ngx_strncmp(m->name.data, name->data, name->len) == 0)
        {
            return m->handler(r, ctx);
        }
    }

    return NGX_DECLINED;
}
