
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The REST surface: tasks for browsers and for other clients of plain HTTP.
 * Its URIs are below the MCP endpoint, and its errors are problem+json.
 */


#include "ngx_mcp_rest.h"


#define NGX_MCP_REST_PAGE  50


static ngx_mcp_resource_t *ngx_mcp_rest_find(ngx_mcp_resource_t *list,
    ngx_str_t *name);
static void ngx_mcp_rest_body(ngx_http_request_t *r);
static void ngx_mcp_rest_render(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_zone_t *zone);


static ngx_mcp_resource_t  ngx_mcp_rest_all[] = {
    { ngx_string("tasks"), NGX_MCP_READS|NGX_HTTP_POST,
      "GET, HEAD, POST, OPTIONS",
      ngx_mcp_rest_list, ngx_mcp_rest_create },
    { ngx_string("tasks/events"), NGX_HTTP_GET, "GET, OPTIONS",
      ngx_mcp_owner_events, NULL },
    { ngx_null_string, 0, NULL, NULL, NULL }
};


/* below tasks/ID */

static ngx_mcp_resource_t  ngx_mcp_rest_one[] = {
    { ngx_string(""), NGX_MCP_READS, "GET, HEAD, OPTIONS",
      ngx_mcp_rest_read, NULL },
    { ngx_string("/result"), NGX_MCP_READS, "GET, HEAD, OPTIONS",
      ngx_mcp_rest_result, NULL },
    { ngx_string("/poll"), NGX_MCP_READS, "GET, HEAD, OPTIONS",
      ngx_mcp_poll, NULL },
    { ngx_string("/events"), NGX_HTTP_GET, "GET, OPTIONS",
      ngx_mcp_events, NULL },
    { ngx_string("/cancel"), NGX_HTTP_POST, "POST, OPTIONS",
      NULL, ngx_mcp_rest_cancel },
    { ngx_string("/input"), NGX_HTTP_POST, "POST, OPTIONS",
      NULL, ngx_mcp_rest_input },
    { ngx_null_string, 0, NULL, NULL, NULL }
};


static ngx_mcp_resources_t  ngx_mcp_rest_resources = {
    ngx_mcp_rest_all,
    ngx_string("tasks/"),
    ngx_mcp_rest_one
};


static ngx_mcp_renderer_t  ngx_mcp_rest_renderer = {
    NGX_MCP_WANT_REST, ngx_mcp_rest_render
};


/* path: the URI after the location, without a leading slash */

ngx_int_t
ngx_mcp_rest(ngx_http_request_t *r, ngx_str_t *path)
{
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_loc_conf_t  *lcf;
    ngx_mcp_resource_t  *resource;
    static ngx_str_t     nothing = ngx_string("not_found");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->rest = 1;
    ctx->era = NGX_MCP_MODERN;
    ctx->renderer = &ngx_mcp_rest_renderer;
    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);

    if (ngx_mcp_owner(r, &ctx->owner) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    resource = ngx_mcp_rest_route(ctx, &ngx_mcp_rest_resources, path);

    if (resource == NULL) {
        return ngx_mcp_problem(r, NGX_HTTP_NOT_FOUND, &nothing, NULL);
    }

    if (r->method == NGX_HTTP_OPTIONS) {
        return ngx_mcp_options(r, resource->allow);
    }

    if (!(resource->methods & r->method)) {
        return ngx_mcp_rest_allow(r, resource->allow);
    }

    /* also without a body: pages of other origins need a preflight then */

    if (r->method == NGX_HTTP_POST && !ngx_mcp_is_json(r)) {
        return ngx_mcp_rest_type(r);
    }

    if (!lcf->zone->ready) {
        return ngx_mcp_problem_refused(r, NGX_MCP_STORE_UNAVAILABLE);
    }

    return ngx_mcp_rest_serve(r, ctx, resource);
}


/*
 * Finds the resource of a path, and sets ctx->task_id if the path has a task
 * id.  NULL: there is no such resource.
 */

ngx_mcp_resource_t *
ngx_mcp_rest_route(ngx_mcp_ctx_t *ctx, ngx_mcp_resources_t *resources,
    ngx_str_t *path)
{
    u_char              *p, *end;
    size_t               len;
    ngx_str_t            rest;
    ngx_mcp_resource_t  *resource;

    resource = ngx_mcp_rest_find(resources->all, path);

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

    resource = ngx_mcp_rest_find(resources->one, &rest);

    if (resource == NULL) {
        ngx_str_null(&ctx->task_id);
    }

    return resource;
}


/* serves a request whose method is allowed */

ngx_int_t
ngx_mcp_rest_serve(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_resource_t *resource)
{
    ngx_int_t  rc;

    /* an invalid id and an unknown id have the same response */

    if (ctx->task_id.data
        && ngx_mcp_id_parse(&ctx->id, &ctx->task_id) != NGX_OK)
    {
        ngx_str_null(&ctx->task_id);
        return ngx_mcp_problem_refused(r, NGX_MCP_NOT_FOUND);
    }

    if (r->method == NGX_HTTP_POST) {
        ctx->body_handler = resource->post;
        rc = ngx_http_read_client_request_body(r, ngx_mcp_rest_body);

        return (rc >= NGX_HTTP_SPECIAL_RESPONSE) ? rc : NGX_DONE;
    }

    rc = ngx_http_discard_request_body(r);

    return (rc == NGX_OK) ? resource->read(r, ctx) : rc;
}


ngx_int_t
ngx_mcp_rest_allow(ngx_http_request_t *r, const char *allow)
{
    ngx_str_t         value;
    static ngx_str_t  reason = ngx_string("method_not_allowed");

    value.data = (u_char *) allow;
    value.len = ngx_strlen(allow);

    if (ngx_mcp_add_header(r, "Allow", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_problem(r, NGX_HTTP_NOT_ALLOWED, &reason, NULL);
}


ngx_int_t
ngx_mcp_rest_type(ngx_http_request_t *r)
{
    static ngx_str_t  reason = ngx_string("unsupported_media_type");

    return ngx_mcp_problem(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                           &reason,
                           "Content-Type must be application/json");
}


static ngx_mcp_resource_t *
ngx_mcp_rest_find(ngx_mcp_resource_t *list, ngx_str_t *name)
{
    /* the data of an empty name may be NULL */

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
ngx_mcp_rest_body(ngx_http_request_t *r)
{
    ngx_int_t         rc;
    ngx_str_t         text;
    const char       *err;
    ngx_mcp_ctx_t    *ctx;
    static ngx_str_t  json = ngx_string("invalid_json");

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    r->lingering_close = 0;

    if (ngx_mcp_body(r, &text) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (text.len == 0) {
        ngx_str_set(&text, "{}");
    }

    if (ngx_mcp_json_parse(&text, &ctx->body, &err) != NGX_OK) {
        rc = ngx_mcp_problem(r, NGX_HTTP_BAD_REQUEST, &json, err);

    } else if (ctx->body.type != NGX_MCP_JSON_OBJECT) {
        rc = ngx_mcp_problem_invalid(r, "the body must be a JSON object");

    } else {
        rc = ctx->body_handler(r, ctx);
    }

    ngx_http_finalize_request(r, rc);
}


static void
ngx_mcp_rest_render(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_zone_t *zone)
{
    ngx_mcp_render_rest(out, v, 1);
}


/* a number of the query; the value is unchanged if it is missing */

ngx_int_t
ngx_mcp_rest_arg(ngx_http_request_t *r, const char *name, ngx_int_t *value)
{
    ngx_str_t  arg;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &arg) != NGX_OK) {
        return NGX_OK;
    }

    *value = ngx_atoi(arg.data, arg.len);

    return (*value == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/* the number of tasks in a page */

ngx_int_t
ngx_mcp_rest_limit(ngx_http_request_t *r, ngx_uint_t *limit)
{
    ngx_int_t  n;

    n = NGX_MCP_REST_PAGE;

    if (ngx_mcp_rest_arg(r, "limit", &n) != NGX_OK
        || n < 1 || n > NGX_MCP_LIST_MAX)
    {
        return NGX_ERROR;
    }

    *limit = n;

    return NGX_OK;
}


/* 204: there is no task to send, or it was removed */

ngx_int_t
ngx_mcp_rest_none(ngx_http_request_t *r)
{
    if (ngx_mcp_no_store(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_send_header(r);
}


/* 304: the client has this version */

ngx_int_t
ngx_mcp_rest_unmodified(ngx_http_request_t *r)
{
    r->headers_out.status = NGX_HTTP_NOT_MODIFIED;
    r->header_only = 1;

    return ngx_http_send_header(r);
}
