
/*
 * The REST view: tasks for browsers and for clients that speak plain HTTP.
 * It lies below the endpoint, and what goes wrong is told as problem+json.
 */


#include "ngx_mcp_module.h"


/* room for the text of a problem */
#define NGX_HTTP_MCP_TASKS_PROBLEM    256

#define NGX_HTTP_MCP_TASKS_REST_PAGE  50


static ngx_http_mcp_tasks_resource_t *ngx_http_mcp_tasks_rest_find(
    ngx_http_mcp_tasks_resource_t *list, ngx_str_t *name);
static void ngx_http_mcp_tasks_rest_body(ngx_http_request_t *r);
static const char *ngx_http_mcp_tasks_rest_title(ngx_uint_t status);


static ngx_http_mcp_tasks_resource_t  ngx_http_mcp_tasks_rest_all[] = {
    { ngx_string("tasks"), NGX_HTTP_MCP_TASKS_READS|NGX_HTTP_POST,
      "GET, HEAD, POST, OPTIONS",
      ngx_http_mcp_tasks_rest_list, ngx_http_mcp_tasks_rest_create },
    { ngx_string("tasks/events"), NGX_HTTP_GET, "GET, OPTIONS",
      ngx_http_mcp_tasks_owner_events, NULL },
    { ngx_null_string, 0, NULL, NULL, NULL }
};


/* below tasks/ID */

static ngx_http_mcp_tasks_resource_t  ngx_http_mcp_tasks_rest_one[] = {
    { ngx_string(""), NGX_HTTP_MCP_TASKS_READS, "GET, HEAD, OPTIONS",
      ngx_http_mcp_tasks_rest_read, NULL },
    { ngx_string("/result"), NGX_HTTP_MCP_TASKS_READS, "GET, HEAD, OPTIONS",
      ngx_http_mcp_tasks_rest_result, NULL },
    { ngx_string("/poll"), NGX_HTTP_MCP_TASKS_READS, "GET, HEAD, OPTIONS",
      ngx_http_mcp_tasks_poll, NULL },
    { ngx_string("/events"), NGX_HTTP_GET, "GET, OPTIONS",
      ngx_http_mcp_tasks_events, NULL },
    { ngx_string("/cancel"), NGX_HTTP_POST, "POST, OPTIONS",
      NULL, ngx_http_mcp_tasks_rest_cancel },
    { ngx_string("/input"), NGX_HTTP_POST, "POST, OPTIONS",
      NULL, ngx_http_mcp_tasks_rest_input },
    { ngx_null_string, 0, NULL, NULL, NULL }
};


static ngx_http_mcp_tasks_resources_t  ngx_http_mcp_tasks_rest_resources = {
    ngx_http_mcp_tasks_rest_all,
    ngx_string("tasks/"),
    ngx_http_mcp_tasks_rest_one
};


/* path is what follows the location, without a leading slash */

ngx_int_t
ngx_http_mcp_tasks_rest(ngx_http_request_t *r, ngx_str_t *path)
{
    ngx_http_mcp_tasks_ctx_t       *ctx;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;
    ngx_http_mcp_tasks_resource_t  *resource;
    static ngx_str_t                nothing = ngx_string("not_found");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_tasks_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->rest = 1;
    ctx->era = NGX_HTTP_MCP_TASKS_MODERN;
    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);

    if (ngx_http_mcp_tasks_owner(r, &ctx->owner) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    resource = ngx_http_mcp_tasks_rest_route(ctx,
                                   &ngx_http_mcp_tasks_rest_resources, path);

    if (resource == NULL) {
        return ngx_http_mcp_tasks_problem(r, NGX_HTTP_NOT_FOUND, &nothing,
                                          NULL);
    }

    if (r->method == NGX_HTTP_OPTIONS) {
        return ngx_http_mcp_tasks_options(r, resource->allow);
    }

    if (!(resource->methods & r->method)) {
        return ngx_http_mcp_tasks_rest_allow(r, resource->allow);
    }

    /* nothing at all is nothing of any type */

    if (r->method == NGX_HTTP_POST
        && (r->headers_in.content_length_n > 0 || r->headers_in.chunked)
        && !ngx_http_mcp_tasks_is_json(r))
    {
        return ngx_http_mcp_tasks_rest_type(r);
    }

    if (!ngx_http_mcp_tasks_stored_ready(lcf->zone)) {
        return ngx_http_mcp_tasks_rest_refused(r,
                                        NGX_HTTP_MCP_TASKS_STORE_UNAVAILABLE);
    }

    return ngx_http_mcp_tasks_rest_serve(r, ctx, resource);
}


/* what it is, and of which task, if of one */

ngx_http_mcp_tasks_resource_t *
ngx_http_mcp_tasks_rest_route(ngx_http_mcp_tasks_ctx_t *ctx,
    ngx_http_mcp_tasks_resources_t *resources, ngx_str_t *path)
{
    u_char                         *p, *end;
    size_t                          len;
    ngx_str_t                       rest;
    ngx_http_mcp_tasks_resource_t  *resource;

    resource = ngx_http_mcp_tasks_rest_find(resources->all, path);

    if (resource) {
        return resource;
    }

    len = resources->tasks.len;

    if (path->len <= len
        || ngx_strncmp(path->data, resources->tasks.data, len) != 0)
    {
        return NULL;
    }

    end = path->data + path->len;
    ctx->task_id.data = path->data + len;

    p = ngx_strlchr(ctx->task_id.data, end, '/');

    if (p == NULL) {
        p = end;
    }

    ctx->task_id.len = p - ctx->task_id.data;
    rest.data = p;
    rest.len = end - p;

    resource = ngx_http_mcp_tasks_rest_find(resources->one, &rest);

    if (resource == NULL) {
        ngx_str_null(&ctx->task_id);
    }

    return resource;
}


/* the method is one of those that may be */

ngx_int_t
ngx_http_mcp_tasks_rest_serve(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_http_mcp_tasks_resource_t *resource)
{
    ngx_int_t  rc;

    /* what was never an id is answered like one that is unknown */

    if (ctx->task_id.data
        && ngx_http_mcp_tasks_id_parse(&ctx->id, &ctx->task_id) != NGX_OK)
    {
        ngx_str_null(&ctx->task_id);
        return ngx_http_mcp_tasks_rest_refused(r,
                                               NGX_HTTP_MCP_TASKS_NOT_FOUND);
    }

    if (r->method == NGX_HTTP_POST) {
        ctx->then = resource->post;
        rc = ngx_http_read_client_request_body(r,
                                               ngx_http_mcp_tasks_rest_body);

        return (rc >= NGX_HTTP_SPECIAL_RESPONSE) ? rc : NGX_DONE;
    }

    rc = ngx_http_discard_request_body(r);

    return (rc == NGX_OK) ? resource->read(r, ctx) : rc;
}


ngx_int_t
ngx_http_mcp_tasks_rest_allow(ngx_http_request_t *r, const char *allow)
{
    ngx_str_t         value;
    static ngx_str_t  reason = ngx_string("method_not_allowed");

    value.data = (u_char *) allow;
    value.len = ngx_strlen(allow);

    if (ngx_http_mcp_tasks_add_header(r, "Allow", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_tasks_problem(r, NGX_HTTP_NOT_ALLOWED, &reason, NULL);
}


ngx_int_t
ngx_http_mcp_tasks_rest_type(ngx_http_request_t *r)
{
    static ngx_str_t  reason = ngx_string("unsupported_media_type");

    return ngx_http_mcp_tasks_problem(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                      &reason,
                                      "Content-Type must be application/json");
}


static ngx_http_mcp_tasks_resource_t *
ngx_http_mcp_tasks_rest_find(ngx_http_mcp_tasks_resource_t *list,
    ngx_str_t *name)
{
    /* a name of no length may be nowhere */

    for ( /* void */ ; list->methods; list++) {
        if (list->name.len == name->len
            && (name->len == 0
                || ngx_strncmp(list->name.data, name->data, name->len) == 0))
        {
            return list;
        }
    }

    return NULL;
}


static void
ngx_http_mcp_tasks_rest_body(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_str_t                  text;
    const char                *err;
    ngx_http_mcp_tasks_ctx_t  *ctx;
    static ngx_str_t           json = ngx_string("invalid_json");

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    r->lingering_close = 0;

    if (ngx_http_mcp_tasks_body(r, &text) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (text.len == 0) {
        ngx_str_set(&text, "{}");
    }

    if (ngx_http_mcp_tasks_json_parse(&text, &ctx->body, &err) != NGX_OK) {
        rc = ngx_http_mcp_tasks_problem(r, NGX_HTTP_BAD_REQUEST, &json, err);

    } else if (ctx->body.type != NGX_HTTP_MCP_TASKS_JSON_OBJECT) {
        rc = ngx_http_mcp_tasks_rest_invalid(r, "the body is not an object");

    } else {
        rc = ctx->then(r, ctx);
    }

    ngx_http_finalize_request(r, rc);
}


/* a number of the query; the value stays as it is, if there is none */

ngx_int_t
ngx_http_mcp_tasks_rest_arg(ngx_http_request_t *r, const char *name,
    ngx_int_t *value)
{
    ngx_str_t  arg;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &arg) != NGX_OK) {
        return NGX_OK;
    }

    *value = ngx_atoi(arg.data, arg.len);

    return (*value == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/* how many tasks a page has */

ngx_int_t
ngx_http_mcp_tasks_rest_limit(ngx_http_request_t *r, ngx_uint_t *limit)
{
    ngx_int_t  n;

    n = NGX_HTTP_MCP_TASKS_REST_PAGE;

    if (ngx_http_mcp_tasks_rest_arg(r, "limit", &n) != NGX_OK
        || n < 1 || n > NGX_HTTP_MCP_TASKS_LIST_MAX)
    {
        return NGX_ERROR;
    }

    *limit = n;

    return NGX_OK;
}


/* an operation was refused, or there is no room to wait */

ngx_int_t
ngx_http_mcp_tasks_rest_refused(ngx_http_request_t *r, ngx_uint_t reason)
{
    ngx_uint_t  status;

    switch (reason) {

    case NGX_HTTP_MCP_TASKS_NOT_FOUND:
    case NGX_HTTP_MCP_TASKS_TOOL_NOT_FOUND:
    case NGX_HTTP_MCP_TASKS_WORKER_NOT_FOUND:
        status = NGX_HTTP_NOT_FOUND;
        break;

    case NGX_HTTP_MCP_TASKS_TERMINAL:
    case NGX_HTTP_MCP_TASKS_STATE_INVALID:
    case NGX_HTTP_MCP_TASKS_VERSION_CONFLICT:
        status = NGX_HTTP_CONFLICT;
        break;

    case NGX_HTTP_MCP_TASKS_PAYLOAD_TOO_LARGE:
        status = NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
        break;

    case NGX_HTTP_MCP_TASKS_INVALID_NAME:
    case NGX_HTTP_MCP_TASKS_INVALID_CURSOR:
        status = NGX_HTTP_BAD_REQUEST;
        break;

    case NGX_HTTP_MCP_TASKS_LIMIT_WAITERS:
    case NGX_HTTP_MCP_TASKS_LIMIT_OWNER_TASKS:
    case NGX_HTTP_MCP_TASKS_LIMIT_OWNER_BYTES:
        status = NGX_HTTP_TOO_MANY_REQUESTS;
        break;

    case NGX_HTTP_MCP_TASKS_LIMIT_TASKS:
    case NGX_HTTP_MCP_TASKS_ZONE_FULL:
    case NGX_HTTP_MCP_TASKS_STORE_UNAVAILABLE:
    case NGX_HTTP_MCP_TASKS_STORE_FAILED:
        status = NGX_HTTP_SERVICE_UNAVAILABLE;
        break;

    default:
        status = NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_tasks_problem(r, status,
                                      ngx_http_mcp_tasks_reason_name(reason),
                                      NULL);
}


ngx_int_t
ngx_http_mcp_tasks_rest_invalid(ngx_http_request_t *r, const char *detail)
{
    static ngx_str_t  reason = ngx_string("invalid_argument");

    return ngx_http_mcp_tasks_problem(r, NGX_HTTP_BAD_REQUEST, &reason,
                                      detail);
}


/* reasons and details are words of ours and need no escaping */

ngx_int_t
ngx_http_mcp_tasks_problem(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *reason, const char *detail)
{
    u_char     *p, *end;
    ngx_int_t   rc;
    ngx_str_t   text, retry;

    if (r->request_body == NULL) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (ngx_http_mcp_tasks_no_store(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (status == NGX_HTTP_TOO_MANY_REQUESTS
        || status == NGX_HTTP_SERVICE_UNAVAILABLE)
    {
        ngx_str_set(&retry, "1");

        if (ngx_http_mcp_tasks_add_header(r, "Retry-After", &retry) != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    text.data = ngx_pnalloc(r->pool, NGX_HTTP_MCP_TASKS_PROBLEM);
    if (text.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    end = text.data + NGX_HTTP_MCP_TASKS_PROBLEM;

    p = ngx_slprintf(text.data, end,
                     "{\"title\":\"%s\",\"status\":%ui,\"reason\":\"%V\"",
                     ngx_http_mcp_tasks_rest_title(status), status, reason);

    if (detail) {
        p = ngx_slprintf(p, end - 1, ",\"detail\":\"%s\"", detail);
    }

    *p++ = '}';
    text.len = p - text.data;

    ngx_str_set(&r->headers_out.content_type, "application/problem+json");

    return ngx_http_mcp_tasks_send(r, status, &text, 1);
}


static const char *
ngx_http_mcp_tasks_rest_title(ngx_uint_t status)
{
    switch (status) {
    case NGX_HTTP_BAD_REQUEST:
        return "Bad Request";
    case NGX_HTTP_FORBIDDEN:
        return "Forbidden";
    case NGX_HTTP_NOT_FOUND:
        return "Not Found";
    case NGX_HTTP_NOT_ALLOWED:
        return "Method Not Allowed";
    case NGX_HTTP_CONFLICT:
        return "Conflict";
    case NGX_HTTP_MCP_TASKS_GONE:
        return "Gone";
    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return "Content Too Large";
    case NGX_HTTP_UNSUPPORTED_MEDIA_TYPE:
        return "Unsupported Media Type";
    case NGX_HTTP_TOO_MANY_REQUESTS:
        return "Too Many Requests";
    case NGX_HTTP_SERVICE_UNAVAILABLE:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}


/* nothing new, nothing more to come, or nothing left */

ngx_int_t
ngx_http_mcp_tasks_rest_none(ngx_http_request_t *r)
{
    if (ngx_http_mcp_tasks_no_store(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_send_header(r);
}


/* the client has it already */

ngx_int_t
ngx_http_mcp_tasks_rest_unmodified(ngx_http_request_t *r)
{
    r->headers_out.status = NGX_HTTP_NOT_MODIFIED;
    r->header_only = 1;

    return ngx_http_send_header(r);
}
