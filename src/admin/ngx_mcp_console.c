
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The operator console: a page, and below it the resources that the page uses.
 * It shows the tasks of all owners.  Without "public", only clients on this
 * machine have access; without "admin", it is read-only.  Pages of other
 * origins never have access.
 */


#include "ngx_mcp_console.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_status.h"


static ngx_int_t ngx_mcp_console_serve(ngx_http_request_t *r, ngx_str_t *path);
static ngx_int_t ngx_mcp_console_headers(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_console_slash(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_console_send(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_console_zone(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_console_zone_done(ngx_http_request_t *r,
    ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_console_task(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);


static ngx_mcp_resource_t  ngx_mcp_console_all[] = {
    { ngx_string(""), NGX_MCP_READS, "GET, HEAD",
      ngx_mcp_console_send, NULL },
    { ngx_string("api/zone"), NGX_MCP_READS, "GET, HEAD",
      ngx_mcp_console_zone, NULL },
    { ngx_string("api/tasks"), NGX_MCP_READS, "GET, HEAD",
      ngx_mcp_console_list, NULL },
    { ngx_string("api/events"), NGX_HTTP_GET, "GET",
      ngx_mcp_console_events, NULL },
    { ngx_string("api/tools/pause"), NGX_HTTP_POST, "POST",
      NULL, ngx_mcp_console_pause },
    { ngx_string("api/tools/resume"), NGX_HTTP_POST, "POST",
      NULL, ngx_mcp_console_unpause },
    { ngx_string("api/workers/drain"), NGX_HTTP_POST, "POST",
      NULL, ngx_mcp_console_drain },
    { ngx_string("api/workers/resume"), NGX_HTTP_POST, "POST",
      NULL, ngx_mcp_console_undrain },
    { ngx_null_string, 0, NULL, NULL, NULL }
};


/* below api/tasks/ID */

static ngx_mcp_resource_t  ngx_mcp_console_one[] = {
    { ngx_string(""), NGX_MCP_READS|NGX_HTTP_DELETE,
      "GET, HEAD, DELETE", ngx_mcp_console_task, NULL },
    { ngx_string("/cancel"), NGX_HTTP_POST, "POST",
      NULL, ngx_mcp_rest_cancel },
    { ngx_string("/retry"), NGX_HTTP_POST, "POST",
      NULL, ngx_mcp_console_retry },
    { ngx_string("/input"), NGX_HTTP_POST, "POST",
      NULL, ngx_mcp_rest_input },
    { ngx_null_string, 0, NULL, NULL, NULL }
};


static ngx_mcp_resources_t  ngx_mcp_console_resources = {
    ngx_mcp_console_all,
    ngx_string("api/tasks/"),
    ngx_mcp_console_one
};


static ngx_mcp_renderer_t  ngx_mcp_console_renderer = {
    NGX_MCP_WANT_CONSOLE, ngx_mcp_render_console
};


ngx_int_t
ngx_mcp_console_handler(ngx_http_request_t *r)
{
    ngx_str_t            path;
    ngx_uint_t           self;
    ngx_mcp_loc_conf_t  *lcf;
    static ngx_str_t     local = ngx_string("not_local");
    static ngx_str_t     origin = ngx_string("origin_not_allowed");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    r->disable_not_modified = 1;

    if (ngx_mcp_console_headers(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!lcf->open && !ngx_mcp_local(r)) {
        return ngx_mcp_problem(r, NGX_HTTP_FORBIDDEN, &local, NULL);
    }

    if (!ngx_mcp_same_origin(r)) {
        return ngx_mcp_problem(r, NGX_HTTP_FORBIDDEN, &origin, NULL);
    }

    self = ngx_mcp_is_location(r, &path);

    if (self && r->uri.data[r->uri.len - 1] != '/') {
        return ngx_mcp_console_slash(r);
    }

    if (!self && path.len == 0) {
        /* only the first characters are those of the location */
        return NGX_HTTP_NOT_FOUND;
    }

    return ngx_mcp_console_serve(r, &path);
}


static ngx_int_t
ngx_mcp_console_serve(ngx_http_request_t *r, ngx_str_t *path)
{
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_loc_conf_t  *lcf;
    ngx_mcp_resource_t  *resource;
    static ngx_str_t     nothing = ngx_string("not_found");
    static ngx_str_t     read_only = ngx_string("read_only");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->rest = 1;
    ctx->console = 1;
    ctx->era = NGX_MCP_MODERN;
    ctx->renderer = &ngx_mcp_console_renderer;
    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);

    resource = ngx_mcp_rest_route(ctx, &ngx_mcp_console_resources, path);

    if (resource == NULL) {
        return ngx_mcp_problem(r, NGX_HTTP_NOT_FOUND, &nothing, NULL);
    }

    if (!(resource->methods & r->method)) {
        return ngx_mcp_rest_allow(r, resource->allow);
    }

    if (!(r->method & NGX_MCP_READS) && !lcf->admin) {
        return ngx_mcp_problem(r, NGX_HTTP_FORBIDDEN, &read_only, NULL);
    }

    if (r->method == NGX_HTTP_POST && !ngx_mcp_is_json(r)) {
        return ngx_mcp_rest_type(r);
    }

    return ngx_mcp_rest_serve(r, ctx, resource);
}


/* headers of all responses of the console */

static ngx_int_t
ngx_mcp_console_headers(ngx_http_request_t *r)
{
    ngx_uint_t  i;
    static struct {
        const char  *name;
        ngx_str_t    value;
    } headers[] = {
        { "X-Content-Type-Options", ngx_string("nosniff") },
        { "X-Frame-Options", ngx_string("DENY") },
        { "Referrer-Policy", ngx_string("no-referrer") },
        { "Cross-Origin-Opener-Policy", ngx_string("same-origin") },
        { "Cross-Origin-Resource-Policy", ngx_string("same-origin") }
    };

    for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (ngx_mcp_add_header(r, headers[i].name,
                               &headers[i].value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* redirects to the location with a slash, where the page is */

static ngx_int_t
ngx_mcp_console_slash(ngx_http_request_t *r)
{
    u_char           *p;
    size_t            escape;
    ngx_table_elt_t  *h;

    escape = 2 * ngx_escape_uri(NULL, r->uri.data, r->uri.len, NGX_ESCAPE_URI);

    p = ngx_pnalloc(r->pool, r->uri.len + escape + 1);
    h = ngx_list_push(&r->headers_out.headers);

    if (p == NULL || h == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));
    h->hash = 1;
    ngx_str_set(&h->key, "Location");
    h->value.data = p;
    p = (u_char *) ngx_escape_uri(p, r->uri.data, r->uri.len, NGX_ESCAPE_URI);
    *p++ = '/';
    h->value.len = p - h->value.data;

    /* nginx makes it absolute, depending on absolute_redirect */

    r->headers_out.location = h;

    return NGX_HTTP_MOVED_PERMANENTLY;
}


/* sends the page */

static ngx_int_t
ngx_mcp_console_send(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t         tag, value, *page;
    static u_char     etag[18];
    static uint64_t   key[2];

    page = &ngx_mcp_console_page;
    tag.data = etag;
    tag.len = sizeof(etag);

    if (etag[0] == '\0') {
        (void) ngx_sprintf(etag, "\"%016xL\"",
                           ngx_mcp_siphash(key, page->data, page->len));
    }

    ngx_str_set(&value, "no-cache");

    if (ngx_mcp_add_header(r, "Cache-Control", &value) != NGX_OK
        || ngx_mcp_add_header(r, "ETag", &tag) != NGX_OK
        || ngx_mcp_add_header(r, "Content-Security-Policy",
                              &ngx_mcp_console_csp)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_rest_known(r, &tag)) {
        return ngx_mcp_rest_unmodified(r);
    }

    ngx_str_set(&r->headers_out.content_type, "text/html; charset=utf-8");

    return ngx_mcp_send(r, NGX_HTTP_OK, page, 1);
}


/* GET api/zone: the figures of the status, and whether changes are allowed */

static ngx_int_t
ngx_mcp_console_zone(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_status_read(r, ngx_mcp_console_zone_done);
}


static ngx_int_t
ngx_mcp_console_zone_done(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_str_t            text;
    ngx_mcp_out_t        out;
    ngx_mcp_loc_conf_t  *lcf;
    ngx_mcp_figures_t    all[NGX_MCP_FIGURES];

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (ngx_mcp_status_figures(r, (ngx_mcp_op_stats_t *) o, all) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_mcp_out_init(&out, r->pool, 16384);
    ngx_mcp_out_lit(&out, "{\"zone\":");
    ngx_mcp_out_bytes(&out, &lcf->zone->name);
    ngx_mcp_out_lit(&out, ",\"admin\":");
    ngx_mcp_out_flag(&out, lcf->admin);
    ngx_mcp_out_lit(&out, ",\"version\":\"" NGX_MCP_VERSION "\",\"now\":");
    ngx_mcp_out_time(&out, ngx_mcp_wall());
    ngx_mcp_out_lit(&out, ",\"status\":");
    ngx_mcp_status_json(&out, lcf->zone, all);
    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &text) != NGX_OK
        || ngx_mcp_no_store(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_send(r, NGX_HTTP_OK, &text, 1);
}


static ngx_int_t
ngx_mcp_console_task(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return (r->method == NGX_HTTP_DELETE)
           ? ngx_mcp_console_delete(r, ctx)
           : ngx_mcp_rest_read(r, ctx);
}
