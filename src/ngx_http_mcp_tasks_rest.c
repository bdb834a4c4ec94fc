
/*
 * The REST view: tasks for browsers and for clients that speak plain HTTP.
 * It lies below the endpoint, and what goes wrong is told as problem+json.
 */


#include "ngx_http_mcp_tasks_module.h"


static ngx_int_t ngx_http_mcp_tasks_rest_route(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_str_t *path);
static ngx_int_t ngx_http_mcp_tasks_rest_task(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_str_t *id, ngx_str_t *what);


/* path is what follows the location, without a leading slash */

ngx_int_t
ngx_http_mcp_tasks_rest(ngx_http_request_t *r, ngx_str_t *path)
{
    ngx_int_t                  rc;
    ngx_str_t                  allow;
    ngx_http_mcp_tasks_ctx_t  *ctx;
    static ngx_str_t           method = ngx_string("method_not_allowed");

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_tasks_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->rest = 1;
    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_mcp_tasks_owner(r, &ctx->owner) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r->method != NGX_HTTP_GET) {
        ngx_str_set(&allow, "GET, OPTIONS");

        if (ngx_http_mcp_tasks_add_header(r, "Allow", &allow) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_mcp_tasks_problem(r, NGX_HTTP_NOT_ALLOWED,
                                          &method);
    }

    return ngx_http_mcp_tasks_rest_route(r, ctx, path);
}


static ngx_int_t
ngx_http_mcp_tasks_rest_route(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_str_t *path)
{
    u_char            *p;
    ngx_str_t          id, what;
    static ngx_str_t   nothing = ngx_string("not_found");

    if (path->len == sizeof("tasks/events") - 1
        && ngx_strncmp(path->data, "tasks/events", path->len) == 0)
    {
        return ngx_http_mcp_tasks_owner_events(r, ctx);
    }

    if (path->len > 6 && ngx_strncmp(path->data, "tasks/", 6) == 0) {

        id.data = path->data + 6;
        p = ngx_strlchr(id.data, path->data + path->len, '/');

        if (p) {
            id.len = p - id.data;
            what.data = p + 1;
            what.len = path->data + path->len - what.data;

            return ngx_http_mcp_tasks_rest_task(r, ctx, &id, &what);
        }
    }

    return ngx_http_mcp_tasks_problem(r, NGX_HTTP_NOT_FOUND, &nothing);
}


static ngx_int_t
ngx_http_mcp_tasks_rest_task(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_str_t *text, ngx_str_t *what)
{
    ngx_http_mcp_tasks_id_t  id;
    static ngx_str_t         nothing = ngx_string("not_found");

    if (ngx_http_mcp_tasks_id_parse(&id, text) != NGX_OK) {
        return ngx_http_mcp_tasks_rest_refused(r, NGX_HTTP_MCP_TASKS_NOT_FOUND);
    }

    ctx->task_id = *text;

    if (what->len == 4 && ngx_strncmp(what->data, "poll", 4) == 0) {
        return ngx_http_mcp_tasks_poll(r, ctx, &id);
    }

    if (what->len == 6 && ngx_strncmp(what->data, "events", 6) == 0) {
        return ngx_http_mcp_tasks_events(r, ctx, &id);
    }

    return ngx_http_mcp_tasks_problem(r, NGX_HTTP_NOT_FOUND, &nothing);
}


/* an operation was refused, or there is no room to wait */

ngx_int_t
ngx_http_mcp_tasks_rest_refused(ngx_http_request_t *r, ngx_uint_t reason)
{
    ngx_uint_t  status;

    switch (reason) {

    case NGX_HTTP_MCP_TASKS_NOT_FOUND:
        status = NGX_HTTP_NOT_FOUND;
        break;

    case NGX_HTTP_MCP_TASKS_LIMIT_WAITERS:
        status = NGX_HTTP_TOO_MANY_REQUESTS;
        break;

    default:
        status = NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_tasks_problem(r, status,
                                      ngx_http_mcp_tasks_reason_name(reason));
}


/* reasons are words of ours and need no escaping */

ngx_int_t
ngx_http_mcp_tasks_problem(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *reason)
{
    u_char       buf[128];
    ngx_int_t    rc;
    ngx_str_t    text, retry;
    const char  *title;

    switch (status) {
    case NGX_HTTP_BAD_REQUEST:
        title = "Bad Request";
        break;
    case NGX_HTTP_FORBIDDEN:
        title = "Forbidden";
        break;
    case NGX_HTTP_NOT_FOUND:
        title = "Not Found";
        break;
    case NGX_HTTP_NOT_ALLOWED:
        title = "Method Not Allowed";
        break;
    case NGX_HTTP_TOO_MANY_REQUESTS:
        title = "Too Many Requests";
        break;
    default:
        title = "Internal Server Error";
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (status == NGX_HTTP_TOO_MANY_REQUESTS) {
        ngx_str_set(&retry, "1");

        if (ngx_http_mcp_tasks_add_header(r, "Retry-After", &retry) != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    text.data = buf;
    text.len = ngx_snprintf(buf, sizeof(buf),
                            "{\"title\":\"%s\",\"status\":%ui,"
                            "\"reason\":\"%V\"}", title, status, reason)
               - buf;

    ngx_str_set(&r->headers_out.content_type, "application/problem+json");

    return ngx_http_mcp_tasks_send(r, status, &text, 1);
}


/* nothing new, or nothing more to come */

ngx_int_t
ngx_http_mcp_tasks_rest_none(ngx_http_request_t *r)
{
    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_send_header(r);
}
