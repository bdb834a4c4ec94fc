
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The variables $mcp_..., for log_format, map and other directives. */


#include "ngx_mcp_http.h"


static ngx_int_t ngx_mcp_variable_str(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_mcp_variable_client(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_mcp_variable_status(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_mcp_variable_era(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_mcp_variable_trace(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_mcp_variable_error(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


static ngx_http_variable_t  ngx_mcp_vars[] = {

    { ngx_string("mcp_method"), NULL, ngx_mcp_variable_str,
      offsetof(ngx_mcp_ctx_t, rpc.method),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_tool"), NULL, ngx_mcp_variable_str,
      offsetof(ngx_mcp_ctx_t, tool), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_task_id"), NULL, ngx_mcp_variable_str,
      offsetof(ngx_mcp_ctx_t, task_id),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_client"), NULL, ngx_mcp_variable_client,
      offsetof(ngx_mcp_ctx_t, client),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_task_status"), NULL, ngx_mcp_variable_status,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_era"), NULL, ngx_mcp_variable_era,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_traceparent"), NULL, ngx_mcp_variable_trace,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_error"), NULL, ngx_mcp_variable_error,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_mcp_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_mcp_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static void
ngx_mcp_variable_set(ngx_http_variable_value_t *v, ngx_str_t *s)
{
    if (s == NULL || s->len == 0) {
        v->not_found = 1;
        return;
    }

    v->len = s->len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->data = s->data;
}


/*
 * Values from clients may contain any byte.  A log escapes them, but a header
 * does not: control characters are replaced by spaces.
 */

static ngx_int_t
ngx_mcp_variable_str(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char         *p;
    ngx_str_t       s;
    ngx_uint_t      i;
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_mcp_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    s = *(ngx_str_t *) ((u_char *) ctx + data);
    p = NULL;

    for (i = 0; i < s.len; i++) {

        if (s.data[i] >= 0x20 && s.data[i] != 0x7f) {
            continue;
        }

        if (p == NULL) {
            p = ngx_pnalloc(r->pool, s.len);
            if (p == NULL) {
                return NGX_ERROR;
            }

            ngx_memcpy(p, s.data, s.len);
            s.data = p;
        }

        p[i] = ' ';
    }

    ngx_mcp_variable_set(v, &s);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_variable_client(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_mcp_ctx(r);

    if (ctx && ngx_mcp_client(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_variable_str(r, v, data);
}


static ngx_int_t
ngx_mcp_variable_status(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_mcp_ctx(r);

    ngx_mcp_variable_set(v, ctx ? ctx->status : NULL);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_variable_era(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_mcp_ctx_t    *ctx;
    static ngx_str_t  legacy = ngx_string("legacy");
    static ngx_str_t  modern = ngx_string("modern");

    ctx = ngx_mcp_ctx(r);

    ngx_mcp_variable_set(v, (ctx == NULL || ctx->rest) ? NULL
                           : (ctx->era == NGX_MCP_MODERN) ? &modern
                                                          : &legacy);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_variable_trace(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_mcp_ctx(r);

    if (ctx && ngx_mcp_tracing(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_mcp_variable_set(v, ctx ? &ctx->trace->value[NGX_MCP_TRACEPARENT]
                                : NULL);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_variable_error(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t       s;
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_mcp_ctx(r);

    if (ctx == NULL || ctx->error == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    s.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (s.data == NULL) {
        return NGX_ERROR;
    }

    s.len = ngx_sprintf(s.data, "%i", ctx->error) - s.data;
    ngx_mcp_variable_set(v, &s);

    return NGX_OK;
}


/* clientInfo as "name/version", computed on first use */

ngx_int_t
ngx_mcp_client(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t         s;
    ngx_mcp_out_t     out;
    ngx_mcp_json_t    name, version;
    ngx_mcp_member_t  members[] = {
        { ngx_string("name"), &name },
        { ngx_string("version"), &version }
    };

    if (ctx->client.len
        || ngx_mcp_json_members(&ctx->params.client, members, 2)
           != NGX_OK
        || name.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &name, &ctx->client)
           != NGX_OK
        || version.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &version, &s) != NGX_OK)
    {
        return NGX_OK;
    }

    ngx_mcp_out_init(&out, r->pool, ctx->client.len + s.len + 1);
    ngx_mcp_out_str(&out, &ctx->client);
    ngx_mcp_out_lit(&out, "/");
    ngx_mcp_out_str(&out, &s);

    return ngx_mcp_out_end(&out, &ctx->client);
}


/* sets the task id and the status of the request's task, for variables */

void
ngx_mcp_set_task(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_mcp_view_t *v)
{
    u_char  *p;

    ctx->status = ngx_mcp_render_status(ctx->era, &v->task);

    if (ctx->task_id.len) {
        return;
    }

    p = ngx_pnalloc(r->pool, NGX_MCP_ID_TEXT);

    if (p) {
        (void) ngx_mcp_id_text(p, &v->id);
        ctx->task_id.data = p;
        ctx->task_id.len = NGX_MCP_ID_TEXT;
    }
}
