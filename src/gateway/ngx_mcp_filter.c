
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Header and body filters.  They pass responses to detached requests to their
 * readers, and change some of the upstream's responses to clients.
 */


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_detached.h"
#include "ngx_mcp_filter.h"


static ngx_int_t ngx_mcp_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_body_filter(ngx_http_request_t *r, ngx_chain_t *in);
static ngx_int_t ngx_mcp_merge_header(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_merge_body(ngx_http_request_t *r, ngx_chain_t *in);
static ngx_int_t ngx_mcp_catch_header(ngx_http_request_t *r,
    ngx_mcp_detached_t *d);
static ngx_int_t ngx_mcp_catch_body(ngx_http_request_t *r,
    ngx_mcp_detached_t *d, ngx_chain_t *in);
static void ngx_mcp_unbuffered(ngx_http_request_t *r);
static void ngx_mcp_one_origin(ngx_http_request_t *r);


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


/*
 * The filters are installed in every configuration.  The filter chain is
 * global: if a reload fails after this call, worker processes started later
 * have the old configuration, but the filter chain of the new one.
 */

ngx_int_t
ngx_mcp_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_mcp_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_mcp_body_filter;

    return ngx_mcp_accel_init(cf);
}


static ngx_int_t
ngx_mcp_header_filter(ngx_http_request_t *r)
{
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_detached_t  *d;

    if (r != r->main) {
        return ngx_http_next_header_filter(r);
    }

    d = ngx_mcp_is_detached(r);

    if (d) {
        return ngx_mcp_catch_header(r, d);
    }

    ctx = ngx_mcp_ctx(r);

    if (ctx == NULL || !ctx->passed) {
        return ngx_http_next_header_filter(r);
    }

    /* internal redirects clear the context; the body filter needs it */

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);

    ngx_mcp_pass_encodings(ctx);
    ngx_mcp_unbuffered(r);
    ngx_mcp_one_origin(r);

    return ngx_mcp_url_filter_header(r, ctx, ngx_mcp_merge_header);
}


static ngx_int_t
ngx_mcp_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_detached_t  *d;

    if (r != r->main) {
        return ngx_http_next_body_filter(r, in);
    }

    d = ngx_mcp_is_detached(r);

    if (d) {
        return ngx_mcp_catch_body(r, d, in);
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (ctx && ctx->url_filter) {
        return ngx_mcp_url_filter_body(r, ctx, in, ngx_mcp_merge_header,
                                       ngx_mcp_merge_body);
    }

    return ngx_mcp_merge_body(r, in);
}


static ngx_int_t
ngx_mcp_merge_header(ngx_http_request_t *r)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (ctx->merge) {
        return ngx_mcp_merge_filter_header(r, ctx, ngx_http_next_header_filter);
    }

    return ngx_http_next_header_filter(r);
}


static ngx_int_t
ngx_mcp_merge_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (ctx && ctx->merge_filter) {
        return ngx_mcp_merge_filter_body(r, ctx, in,
                                         ngx_http_next_header_filter,
                                         ngx_http_next_body_filter);
    }

    return ngx_http_next_body_filter(r, in);
}


static ngx_int_t
ngx_mcp_catch_header(ngx_http_request_t *r, ngx_mcp_detached_t *d)
{
    ngx_mcp_unbuffered(r);

    r->header_sent = 1;
    r->filter_need_in_memory = 1;
    d->header = 1;

    if (d->reader->header(d) != NGX_OK) {
        d->refused = 1;
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_catch_body(ngx_http_request_t *r, ngx_mcp_detached_t *d,
    ngx_chain_t *in)
{
    size_t      n;
    ngx_buf_t  *b;

    for ( /* void */ ; in; in = in->next) {
        b = in->buf;

        if (ngx_buf_in_memory(b)) {
            n = b->last - b->pos;
            r->connection->sent += n;

            if (n && !d->refused
                && d->reader->body(d, b->pos, n) != NGX_OK)
            {
                d->refused = 1;
                return NGX_ERROR;
            }

            b->pos = b->last;
        }

        if (b->in_file) {
            b->file_pos = b->file_last;
        }

        if (b->last_buf && !d->whole) {
            d->whole = 1;

            if (d->reader->whole) {
                d->reader->whole(d);
            }
        }
    }

    return NGX_OK;
}


/* Events must not be delayed, even if proxy_buffering is on. */

static void
ngx_mcp_unbuffered(ngx_http_request_t *r)
{
    ngx_http_upstream_t  *u;

    u = r->upstream;

    if (u && u->buffering && !u->cacheable && !u->store
        && ngx_mcp_is_stream(r))
    {
        u->buffering = 0;
    }
}


ngx_uint_t
ngx_mcp_is_stream(ngx_http_request_t *r)
{
    ngx_str_t  *type;

    type = &r->headers_out.content_type;

    return type->len >= sizeof("text/event-stream") - 1
           && ngx_strncasecmp(type->data, (u_char *) "text/event-stream",
                              sizeof("text/event-stream") - 1)
              == 0;
}


/*
 * Removes duplicate CORS headers: browsers reject a response that has both
 * the module's and the upstream's.
 */

static void
ngx_mcp_one_origin(ngx_http_request_t *r)
{
    ngx_uint_t        i, j, seen[2];
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;
    static ngx_str_t  names[] = {
        ngx_string("Access-Control-Allow-Origin"),
        ngx_string("Access-Control-Expose-Headers")
    };

    seen[0] = 0;
    seen[1] = 0;
    part = &r->headers_out.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        for (j = 0; j < 2; j++) {
            if (h[i].hash
                && h[i].key.len == names[j].len
                && ngx_strncasecmp(h[i].key.data, names[j].data, names[j].len)
                   == 0)
            {
                /* the first one is the module's, if the module added one */

                if (seen[j]) {
                    h[i].hash = 0;
                }

                seen[j] = 1;
            }
        }
    }
}
