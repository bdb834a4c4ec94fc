
/*
 * The MCP endpoint: checks a request as HTTP and as JSON-RPC, decides which
 * era it is of, and leaves the rest to that.
 */


#include "ngx_http_mcp_tasks_module.h"


static ngx_uint_t ngx_http_mcp_tasks_is_endpoint(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_tasks_refuse(ngx_http_request_t *r,
    ngx_uint_t status, const char *why);
static void ngx_http_mcp_tasks_post(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_tasks_message(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_tasks_is_modern(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);


ngx_int_t
ngx_http_mcp_tasks_handler(ngx_http_request_t *r)
{
    ngx_int_t         rc;
    ngx_table_elt_t  *h;

    if (!ngx_http_mcp_tasks_is_endpoint(r)) {
        return NGX_HTTP_NOT_FOUND;
    }

    if (r->method != NGX_HTTP_POST) {
        h = ngx_list_push(&r->headers_out.headers);
        if (h == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_memzero(h, sizeof(ngx_table_elt_t));
        h->hash = 1;
        ngx_str_set(&h->key, "Allow");
        ngx_str_set(&h->value, "POST");

        return ngx_http_mcp_tasks_refuse(r, NGX_HTTP_NOT_ALLOWED,
                                         "Invalid Request: use POST");
    }

    if (!ngx_http_mcp_tasks_is_json(r)) {
        return ngx_http_mcp_tasks_refuse(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                     "Invalid Request: Content-Type is not application/json");
    }

    if (!ngx_http_mcp_tasks_accepts(r)) {
        return ngx_http_mcp_tasks_refuse(r, 406,
                     "Invalid Request: Accept must allow application/json "
                     "and text/event-stream");
    }

    rc = ngx_http_read_client_request_body(r, ngx_http_mcp_tasks_post);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


/* the location itself, with or without a slash; what lies below is not */

static ngx_uint_t
ngx_http_mcp_tasks_is_endpoint(ngx_http_request_t *r)
{
    size_t                     len;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->exact_match || clcf->named || clcf->noname
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

    return r->uri.len <= len
           || (r->uri.len == len + 1 && r->uri.data[len] == '/');
}


static ngx_int_t
ngx_http_mcp_tasks_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *why)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_mcp_tasks_error(r, NULL, status,
                                    NGX_HTTP_MCP_TASKS_RPC_INVALID_REQUEST,
                                    why, NULL);
}


static void
ngx_http_mcp_tasks_post(ngx_http_request_t *r)
{
    ngx_http_finalize_request(r, ngx_http_mcp_tasks_message(r));
}


static ngx_int_t
ngx_http_mcp_tasks_message(ngx_http_request_t *r)
{
    u_char                           message[256];
    ngx_int_t                        rc;
    ngx_str_t                        body;
    ngx_http_mcp_tasks_ctx_t        *ctx;
    ngx_http_mcp_tasks_rpc_error_t   err;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_tasks_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);

    if (ngx_http_mcp_tasks_body(r, &body) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_mcp_tasks_rpc_parse(r->pool, &body, &ctx->rpc, &err);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        *ngx_snprintf(message, sizeof(message) - 1, "%s: %s", err.message,
                      err.detail) = '\0';

        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client sent an invalid JSON-RPC message: %s",
                      err.detail);

        return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_BAD_REQUEST, err.code,
                                        (char *) message, NULL);
    }

    rc = ngx_http_mcp_tasks_is_modern(r, ctx);

    if (rc == NGX_ERROR) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_BAD_REQUEST,
                                          "a member stands twice");
    }

    return (rc == NGX_OK) ? ngx_http_mcp_tasks_modern(r, ctx)
                          : ngx_http_mcp_tasks_legacy(r, ctx);
}


/*
 * Requests of the modern era say so in their _meta.  Who says so in the
 * header only, or asks what only the modern era knows, means that era too,
 * and learns there what is missing.
 */

static ngx_int_t
ngx_http_mcp_tasks_is_modern(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_str_t                    value, *version;
    ngx_http_mcp_tasks_member_t  meta[] = {
        { ngx_string("_meta"), &ctx->meta }
    };
    ngx_http_mcp_tasks_member_t  members[] = {
        { ngx_string("io.modelcontextprotocol/protocolVersion"),
          &ctx->version }
    };
    static ngx_str_t             header = ngx_string("MCP-Protocol-Version");
    static ngx_str_t             discover = ngx_string("server/discover");

    if (ngx_http_mcp_tasks_json_members(&ctx->rpc.params, meta, 1) != NGX_OK
        || ngx_http_mcp_tasks_json_members(&ctx->meta, members, 1) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->version.type != NGX_HTTP_MCP_TASKS_JSON_NONE
        || (ctx->rpc.method.len == discover.len
            && ngx_strncmp(ctx->rpc.method.data, discover.data, discover.len)
               == 0))
    {
        return NGX_OK;
    }

    version = &ngx_http_mcp_tasks_modern_version;

    if (ngx_http_mcp_tasks_header(r, &header, &value)
        && value.len == version->len
        && ngx_strncmp(value.data, version->data, value.len) == 0)
    {
        return NGX_OK;
    }

    return NGX_DECLINED;
}


/* the eras answer an unknown method with a status of their own */

ngx_int_t
ngx_http_mcp_tasks_call(ngx_http_request_t *r, ngx_http_mcp_tasks_ctx_t *ctx,
    ngx_http_mcp_tasks_method_t *methods, ngx_uint_t status)
{
    ngx_str_t                    *name;
    ngx_http_mcp_tasks_method_t  *m;

    name = &ctx->rpc.method;

    for (m = methods; m->handler; m++) {
        if (m->name.len == name->len
            && ngx_strncmp(m->name.data, name->data, name->len) == 0)
        {
            return m->handler(r, ctx);
        }
    }

    return ngx_http_mcp_tasks_error(r, ctx, status,
                                    NGX_HTTP_MCP_TASKS_RPC_NO_METHOD,
                                    "Method not found", NULL);
}
