
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Requests: the body in one piece, header values, and the context. */


#include "ngx_mcp_http.h"


static ngx_int_t ngx_mcp_body_file(ngx_http_request_t *r, ngx_buf_t *b,
    u_char *p);
static ngx_uint_t ngx_mcp_accepted_types(ngx_http_request_t *r,
    ngx_uint_t *json, ngx_uint_t *sse);
static void ngx_mcp_accept(ngx_str_t *value, ngx_uint_t *json,
    ngx_uint_t *sse);
static void ngx_mcp_ctx_cleanup(void *data);


/*
 * The body as one string.  It may be in one buffer, in several buffers, in a
 * temporary file, or in buffers and a file.  Only a single buffer is not
 * copied.
 */

ngx_int_t
ngx_mcp_body(ngx_http_request_t *r, ngx_str_t *body)
{
    u_char       *p;
    ngx_buf_t    *b;
    ngx_chain_t  *in, *cl;

    ngx_str_null(body);

    if (r->request_body == NULL || r->request_body->bufs == NULL) {
        return NGX_OK;
    }

    in = r->request_body->bufs;

    if (in->next == NULL && !in->buf->in_file) {
        body->data = in->buf->pos;
        body->len = in->buf->last - in->buf->pos;
        return NGX_OK;
    }

    for (cl = in; cl; cl = cl->next) {
        body->len += ngx_buf_size(cl->buf);
    }

    body->data = ngx_pnalloc(r->pool, body->len);
    if (body->data == NULL) {
        return NGX_ERROR;
    }

    p = body->data;

    for (cl = in; cl; cl = cl->next) {
        b = cl->buf;

        if (!b->in_file) {

            /* the last buffer of a chunked body may have no memory */

            if (b->last != b->pos) {
                p = ngx_cpymem(p, b->pos, b->last - b->pos);
            }

            continue;
        }

        if (ngx_mcp_body_file(r, b, p) != NGX_OK) {
            return NGX_ERROR;
        }

        p += b->file_last - b->file_pos;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_body_file(ngx_http_request_t *r, ngx_buf_t *b, u_char *p)
{
    off_t    pos;
    ssize_t  n;

    for (pos = b->file_pos; pos < b->file_last; pos += n, p += n) {

        n = ngx_read_file(b->file, p, (size_t) (b->file_last - pos), pos);

        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (n == 0) {
            ngx_log_error(NGX_LOG_CRIT, r->connection->log, 0,
                          "temporary file \"%V\" was truncated",
                          &b->file->name);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* the next header of that name, from header i of the part on; NULL: none */

static ngx_inline ngx_table_elt_t *
ngx_mcp_next_header(ngx_list_part_t **part, ngx_uint_t *i, ngx_str_t *name)
{
    ngx_table_elt_t  *h;

    for ( ;; ) {

        if (*i >= (*part)->nelts) {
            if ((*part)->next == NULL) {
                return NULL;
            }

            *part = (*part)->next;
            *i = 0;
            continue;
        }

        h = (ngx_table_elt_t *) (*part)->elts + (*i)++;

        if (h->key.len == name->len
            && ngx_memcmp(h->lowcase_key, name->data, name->len) == 0)
        {
            return h;
        }
    }
}


/*
 * Returns the number of headers of that name, which is given in lower case.
 * The value is that of the first one; it is unchanged if there is none.
 */

ngx_uint_t
ngx_mcp_header(ngx_http_request_t *r, ngx_str_t *name, ngx_str_t *value)
{
    ngx_uint_t        i, n;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    n = 0;
    i = 0;
    part = &r->headers_in.headers.part;

    while ((h = ngx_mcp_next_header(&part, &i, name)) != NULL) {
        if (n++ == 0) {
            *value = h->value;
        }
    }

    return n;
}


ngx_uint_t
ngx_mcp_is_json(ngx_http_request_t *r)
{
    ngx_str_t         type;
    static ngx_str_t  json = ngx_string("application/json");

    if (r->headers_in.content_type == NULL) {
        return 0;
    }

    type = r->headers_in.content_type->value;

    return ngx_mcp_media_type(&type, &json);
}


/* both types, since the server chooses; no header means any type */

ngx_uint_t
ngx_mcp_accepts(ngx_http_request_t *r)
{
    ngx_uint_t  json, sse;

    return !ngx_mcp_accepted_types(r, &json, &sse) || (json && sse);
}


/* for GET, where the response is always a stream */

ngx_uint_t
ngx_mcp_accepts_stream(ngx_http_request_t *r)
{
    ngx_uint_t  json, sse;

    return !ngx_mcp_accepted_types(r, &json, &sse) || sse;
}


/* returns 1 if there is an Accept header, and which types it contains */

static ngx_uint_t
ngx_mcp_accepted_types(ngx_http_request_t *r, ngx_uint_t *json,
    ngx_uint_t *sse)
{
    ngx_uint_t         i, found;
    ngx_list_part_t   *part;
    ngx_table_elt_t   *h;
    static ngx_str_t   accept = ngx_string("accept");

    *json = 0;
    *sse = 0;
    found = 0;
    i = 0;
    part = &r->headers_in.headers.part;

    /* the list may be split into several headers */

    while ((h = ngx_mcp_next_header(&part, &i, &accept)) != NULL) {
        found = 1;
        ngx_mcp_accept(&h->value, json, sse);
    }

    return found;
}


static void
ngx_mcp_accept(ngx_str_t *value, ngx_uint_t *json, ngx_uint_t *sse)
{
    u_char            *p, *end, *comma;
    ngx_str_t          item;
    ngx_uint_t         any;
    static ngx_str_t   application_json = ngx_string("application/json");
    static ngx_str_t   application = ngx_string("application/*");
    static ngx_str_t   event_stream = ngx_string("text/event-stream");
    static ngx_str_t   text = ngx_string("text/*");
    static ngx_str_t   all = ngx_string("*/*");
    static ngx_str_t   usual = ngx_string("application/json, "
                                          "text/event-stream");

    /* almost every client sends exactly this value */

    if (value->len == usual.len
        && ngx_memcmp(value->data, usual.data, usual.len) == 0)
    {
        *json = 1;
        *sse = 1;
        return;
    }

    end = value->data + value->len;

    for (p = value->data; p < end; p = comma + 1) {

        comma = ngx_strlchr(p, end, ',');
        if (comma == NULL) {
            comma = end;
        }

        item.data = p;
        item.len = comma - p;

        any = ngx_mcp_media_type(&item, &all);

        *json |= any
                 || ngx_mcp_media_type(&item, &application_json)
                 || ngx_mcp_media_type(&item, &application);
        *sse |= any
                || ngx_mcp_media_type(&item, &event_stream)
                || ngx_mcp_media_type(&item, &text);
    }
}


/* compares media types without parameters, such as "; charset=utf-8" */

ngx_uint_t
ngx_mcp_media_type(ngx_str_t *s, ngx_str_t *type)
{
    u_char  *p, *end;

    p = s->data;
    end = p + s->len;

    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    /* fast tests first: the first letter, then equality in lower case */

    if ((size_t) (end - p) < type->len
        || ngx_tolower(*p) != *type->data
        || (ngx_memcmp(p, type->data, type->len) != 0
            && ngx_strncasecmp(p, type->data, type->len) != 0))
    {
        return 0;
    }

    p += type->len;

    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    return p == end || *p == ';';
}


/*
 * Returns 1 if the URI is the location itself, with or without a slash.
 * Otherwise path is the rest of the URI; it is empty if the URI only begins
 * with the same characters.
 */

ngx_uint_t
ngx_mcp_is_location(ngx_http_request_t *r, ngx_str_t *path)
{
    size_t                     len;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_mcp_loc_conf_t        *lcf;

    /* the location of the surface, also inside of "if" and "limit_except" */

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


/*
 * An internal redirect clears the contexts of a request, but keeps its pool.  A
 * cleanup in the pool refers to the context, so that filters, variables and the
 * log can find it.
 */

ngx_int_t
ngx_mcp_set_ctx(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_mcp_ctx_cleanup;
    cln->data = ctx;

    return NGX_OK;
}


static void
ngx_mcp_ctx_cleanup(void *data)
{
    /* only the address of this function is used */
}


/* the context of a request, also after a redirect; NULL: none */

ngx_mcp_ctx_t *
ngx_mcp_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;
    ngx_mcp_ctx_t       *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (ctx || !r->internal) {
        return ctx;
    }

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_mcp_ctx_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}
