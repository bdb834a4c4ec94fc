
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The event stream of a waiting request.  Buffers are reused when they are
 * sent, and a slow client gets nothing new before that.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_batch.h"


static ngx_chain_t *ngx_mcp_wait_buf(ngx_mcp_wait_t *w, size_t size);
static ngx_int_t ngx_mcp_wait_retry(ngx_mcp_wait_t *w, ngx_uint_t retry,
    ngx_uint_t last);
static ngx_int_t ngx_mcp_wait_output(ngx_mcp_wait_t *w, ngx_chain_t *out,
    ngx_uint_t last);


/* sends the header of the stream, and its first event if it has one */

ngx_int_t
ngx_mcp_wait_open(ngx_mcp_wait_t *w)
{
    ngx_int_t            rc;
    ngx_str_t            value;
    ngx_http_request_t  *r;

    r = w->r;

    r->headers_out.status = NGX_HTTP_OK;
    ngx_str_set(&r->headers_out.content_type, "text/event-stream");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    ngx_http_clear_content_length(r);

    if (ngx_mcp_no_store(r) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_str_set(&value, "no");

    if (ngx_mcp_add_header(r, "X-Accel-Buffering", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return NGX_ERROR;
    }

    w->stream = 1;
    ngx_mcp_wait_count(w, 0, 1);

    return (w->first && w->first(w) == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/*
 * Buffers are reused when they are sent, so that a long stream does not grow.
 * They are in the pool of the request, because filters may refer to them until
 * the request ends.
 */

static ngx_chain_t *
ngx_mcp_wait_buf(ngx_mcp_wait_t *w, size_t size)
{
    ngx_buf_t    *b;
    ngx_pool_t   *pool;
    ngx_chain_t  *cl;

    pool = w->r->pool;

    cl = ngx_chain_get_free_buf(pool, &w->free);
    if (cl == NULL) {
        return NULL;
    }

    b = cl->buf;

    /* a buffer that was used for a shared event still has its own memory */

    if ((size_t) (b->end - b->start) < size) {
        b->start = ngx_palloc(pool, size + size / 2);
        if (b->start == NULL) {
            return NULL;
        }

        b->end = b->start + size + size / 2;
    }

    b->pos = b->start;
    b->last = b->start;
    b->memory = 0;
    b->temporary = 1;
    b->tag = (ngx_buf_tag_t) &ngx_http_mcp_tasks_module;

    return cl;
}


/* sends an event; a client can resume after its id, which may be NULL */

ngx_int_t
ngx_mcp_wait_message(ngx_mcp_wait_t *w, ngx_str_t *id, ngx_str_t *message)
{
    ngx_chain_t  *out;

    if (w->ctx->element) {
        w = ngx_mcp_batch_stream(w->ctx);
    }

    out = ngx_mcp_wait_buf(w, ngx_mcp_sse_size(id, message));
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf->last = ngx_mcp_sse_event(out->buf->last, id, message);

    return ngx_mcp_wait_output(w, out, 0);
}


/* sends text that consists of complete events */

ngx_int_t
ngx_mcp_wait_text(ngx_mcp_wait_t *w, ngx_str_t *text)
{
    ngx_chain_t  *out;

    out = ngx_mcp_wait_buf(w, text->len);
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf->last = ngx_cpymem(out->buf->last, text->data, text->len);

    return ngx_mcp_wait_output(w, out, 0);
}


/* sends the last event of the stream */

ngx_int_t
ngx_mcp_wait_end(ngx_mcp_wait_t *w, ngx_str_t *message)
{
    ngx_str_t    *id;
    ngx_chain_t  *out;

    id = w->last_id.len ? &w->last_id : NULL;

    out = ngx_mcp_wait_buf(w, ngx_mcp_sse_size(id, message));
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf->last = ngx_mcp_sse_event(out->buf->last, id, message);

    return ngx_mcp_wait_output(w, out, 1);
}


/* sends an event that other streams send as well, without copying it */

ngx_int_t
ngx_mcp_wait_share(ngx_mcp_wait_t *w, ngx_mcp_sse_shared_t *shared)
{
    ngx_buf_t    *b;
    ngx_chain_t  *out;

    out = ngx_mcp_wait_buf(w, 0);
    if (out == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_sse_unshare(w->shared);
    w->shared = shared;
    shared->refs++;

    b = out->buf;
    b->pos = shared->data;
    b->last = shared->data + shared->len;
    b->temporary = 0;
    b->memory = 1;

    return ngx_mcp_wait_output(w, out, 0);
}


/* sends an empty comment, which keeps the connection alive */

ngx_int_t
ngx_mcp_wait_comment(ngx_mcp_wait_t *w)
{
    ngx_chain_t  *out;

    out = ngx_mcp_wait_buf(w, 3);
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf->last = ngx_cpymem(out->buf->last, ":\n\n", 3);

    return ngx_mcp_wait_output(w, out, 0);
}


/* begins the stream, with the time after which clients reconnect */

ngx_int_t
ngx_mcp_wait_begin(ngx_mcp_wait_t *w)
{
    return ngx_mcp_wait_retry(w, NGX_MCP_RETRY, 0);
}


/*
 * Ends the stream.  If the worker process exits, clients reconnect to another
 * one, at random times, so that they do not come all at once.
 */

ngx_int_t
ngx_mcp_wait_close(ngx_mcp_wait_t *w)
{
    if (ngx_exiting) {
        return ngx_mcp_wait_retry(w, 50 + ngx_random() % 450, 1);
    }

    if (!w->stream && ngx_mcp_wait_open(w) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_send_special(w->r, NGX_HTTP_LAST);
}


static ngx_int_t
ngx_mcp_wait_retry(ngx_mcp_wait_t *w, ngx_uint_t retry, ngx_uint_t last)
{
    ngx_chain_t  *out;

    out = ngx_mcp_wait_buf(w, NGX_MCP_RETRY_LEN);
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf->last = ngx_sprintf(out->buf->last, "retry: %ui\n\n", retry);

    return ngx_mcp_wait_output(w, out, last);
}


static ngx_int_t
ngx_mcp_wait_output(ngx_mcp_wait_t *w, ngx_chain_t *out, ngx_uint_t last)
{
    ngx_int_t   rc;
    ngx_buf_t  *b;

    if (!w->stream && ngx_mcp_wait_open(w) != NGX_OK) {
        return NGX_ERROR;
    }

    b = out->buf;
    b->flush = 1;
    b->last_buf = (last && w->r == w->r->main);
    b->last_in_chain = last;

    w->alive = ngx_current_msec;

    rc = ngx_http_output_filter(w->r, out);

    ngx_chain_update_chains(w->r->pool, &w->free, &w->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_mcp_tasks_module);

    if (rc == NGX_ERROR || last) {
        return rc;
    }

    return ngx_mcp_wait_sending(w);
}


/* frees sent buffers; waits up to send_timeout for a client to read the rest */

ngx_int_t
ngx_mcp_wait_sending(ngx_mcp_wait_t *w)
{
    ngx_event_t               *wev;
    ngx_chain_t               *out;
    ngx_http_core_loc_conf_t  *clcf;

    wev = w->r->connection->write;
    clcf = ngx_http_get_module_loc_conf(w->r, ngx_http_core_module);
    out = NULL;

    ngx_chain_update_chains(w->r->pool, &w->free, &w->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_mcp_tasks_module);

    if (w->busy == NULL) {
        ngx_mcp_sse_unshare(w->shared);
        w->shared = NULL;
    }

    if (!ngx_mcp_wait_busy(w)) {

        /* limit_rate uses the same timer for its delays */

        if (wev->timer_set && !wev->delayed) {
            ngx_del_timer(wev);
        }

        return NGX_OK;
    }

    if (!wev->delayed && !wev->timer_set) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    return ngx_handle_write_event(wev, clcf->send_lowat);
}
