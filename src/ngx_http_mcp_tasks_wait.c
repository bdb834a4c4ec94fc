
/*
 * Requests that wait.  A parked request looks now and then whether it is
 * over.  Meanwhile, where the protocol allows it, it is a stream of events
 * that keeps the connection alive and carries what is worth telling.
 */


#include "ngx_http_mcp_tasks_module.h"


#define NGX_HTTP_MCP_TASKS_WAIT_MIN   10
#define NGX_HTTP_MCP_TASKS_WAIT_MAX   200


static void ngx_http_mcp_tasks_wait_timer(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_tasks_wait_tick(ngx_http_mcp_tasks_wait_t *w);
static void ngx_http_mcp_tasks_wait_write(ngx_http_request_t *r);
static void ngx_http_mcp_tasks_wait_cleanup(void *data);
static ngx_int_t ngx_http_mcp_tasks_wait_open(ngx_http_mcp_tasks_wait_t *w);
static ngx_chain_t *ngx_http_mcp_tasks_wait_buf(ngx_http_mcp_tasks_wait_t *w,
    size_t size);
static ngx_int_t ngx_http_mcp_tasks_wait_output(ngx_http_mcp_tasks_wait_t *w,
    ngx_str_t *text, ngx_uint_t last);
static ngx_int_t ngx_http_mcp_tasks_wait_sending(ngx_http_mcp_tasks_wait_t *w);


/* returns what to finalize with: NGX_DONE, if the request is parked */

ngx_int_t
ngx_http_mcp_tasks_wait(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_int_t            rc;
    ngx_event_t         *rev;
    ngx_http_cleanup_t  *cln;
    ngx_http_request_t  *r;

    r = w->r;
    w->ctx->wait = w;
    w->alive = ngx_current_msec;
    w->delay = NGX_HTTP_MCP_TASKS_WAIT_MIN;

    w->dummy.fd = (ngx_socket_t) -1;
    w->dummy.data = w;
    w->timer.data = &w->dummy;
    w->timer.handler = ngx_http_mcp_tasks_wait_timer;
    w->timer.log = r->connection->log;

    cln = ngx_http_cleanup_add(r, 0);

    if (cln == NULL) {
        if (w->gone) {
            w->gone(w);
        }

        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_mcp_tasks_wait_cleanup;
    cln->data = w;

    rc = w->look(w);

    if (rc != NGX_DECLINED) {
        w->over = 1;
        return rc;
    }

    rev = r->connection->read;

    if (rev->ready) {
        ngx_post_event(rev, &ngx_posted_events);

    } else if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_mcp_tasks_wait_write;
    r->main->count++;

    ngx_add_timer(&w->timer, w->delay);

    return NGX_DONE;
}


static void
ngx_http_mcp_tasks_wait_timer(ngx_event_t *ev)
{
    ngx_int_t                   rc;
    ngx_connection_t           *c;
    ngx_http_request_t         *r;
    ngx_http_mcp_tasks_wait_t  *w;

    c = ev->data;
    w = c->data;
    r = w->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    rc = ngx_http_mcp_tasks_wait_tick(w);

    if (rc != NGX_DECLINED) {
        /* who cannot be sent to has gone */
        w->over = (rc != NGX_ERROR);
        ngx_http_finalize_request(r, rc);
    }

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_mcp_tasks_wait_tick(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_int_t                       rc;
    ngx_str_t                       comment;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    if (w->busy) {

        /* a slow reader gets the latest when it can take it, no backlog */

        if (ngx_exiting) {
            return NGX_ERROR;
        }

    } else {
        rc = w->look(w);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        if (w->streams && w->busy == NULL
            && ngx_current_msec - w->alive >= lcf->keepalive)
        {
            ngx_str_set(&comment, ":\n\n");

            if (ngx_http_mcp_tasks_wait_output(w, &comment, 0) == NGX_ERROR) {
                return NGX_ERROR;
            }
        }
    }

    w->delay = ngx_min(w->delay * 2, NGX_HTTP_MCP_TASKS_WAIT_MAX);
    ngx_add_timer(&w->timer, w->delay);

    return NGX_DECLINED;
}


static void
ngx_http_mcp_tasks_wait_write(ngx_http_request_t *r)
{
    ngx_event_t                *wev;
    ngx_http_mcp_tasks_ctx_t   *ctx;
    ngx_http_mcp_tasks_wait_t  *w;

    wev = r->connection->write;
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    w = ctx->wait;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "client timed out");
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (w->busy == NULL) {
        return;
    }

    if (!wev->delayed && ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (ngx_http_mcp_tasks_wait_sending(w) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
    }
}


static void
ngx_http_mcp_tasks_wait_cleanup(void *data)
{
    ngx_http_mcp_tasks_wait_t *w = data;

    if (w->timer.timer_set) {
        ngx_del_timer(&w->timer);
    }

    if (!w->over && w->gone) {
        w->gone(w);
    }
}


/* one JSON-RPC message as an event of the stream */

ngx_int_t
ngx_http_mcp_tasks_wait_send(ngx_http_mcp_tasks_wait_t *w, ngx_str_t *message)
{
    return ngx_http_mcp_tasks_wait_output(w, message, 0);
}


/* the last message of a stream */

ngx_int_t
ngx_http_mcp_tasks_wait_end(ngx_http_mcp_tasks_wait_t *w, ngx_str_t *message)
{
    return ngx_http_mcp_tasks_wait_output(w, message, 1);
}


static ngx_int_t
ngx_http_mcp_tasks_wait_open(ngx_http_mcp_tasks_wait_t *w)
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

    ngx_str_set(&value, "no-store");

    if (ngx_http_mcp_tasks_add_header(r, "Cache-Control", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_str_set(&value, "no");

    if (ngx_http_mcp_tasks_add_header(r, "X-Accel-Buffering", &value)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return NGX_ERROR;
    }

    w->stream = 1;

    return NGX_OK;
}


/*
 * Buffers come back when they are sent, so that a long stream does not grow;
 * they live in the request's pool, since filters may refer to them until the
 * request ends.
 */

static ngx_chain_t *
ngx_http_mcp_tasks_wait_buf(ngx_http_mcp_tasks_wait_t *w, size_t size)
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


/* a comment goes as it is; a message gets its lines marked as data */

static ngx_int_t
ngx_http_mcp_tasks_wait_output(ngx_http_mcp_tasks_wait_t *w, ngx_str_t *text,
    ngx_uint_t last)
{
    u_char       *p, *end;
    size_t        len;
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t  *out;

    if (!w->stream && ngx_http_mcp_tasks_wait_open(w) != NGX_OK) {
        return NGX_ERROR;
    }

    end = text->data + text->len;
    len = text->len + sizeof("event: message\ndata: \n\n");

    for (p = text->data; p < end; p++) {
        if (*p == '\n' || *p == '\r') {
            len += sizeof("data: ");
        }
    }

    out = ngx_http_mcp_tasks_wait_buf(w, len);
    if (out == NULL) {
        return NGX_ERROR;
    }

    b = out->buf;

    if (text->data[0] == ':') {
        b->last = ngx_cpymem(b->last, text->data, text->len);

    } else {
        b->last = ngx_cpymem(b->last, "event: message\ndata: ", 21);

        for (p = text->data; p < end; p++) {
            if (*p == '\n' || *p == '\r') {
                b->last = ngx_cpymem(b->last, "\ndata: ", 7);

            } else {
                *b->last++ = *p;
            }
        }

        b->last = ngx_cpymem(b->last, "\n\n", 2);
    }

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

    return ngx_http_mcp_tasks_wait_sending(w);
}


/* what is not sent yet: wait for the client to take it, but not for ever */

static ngx_int_t
ngx_http_mcp_tasks_wait_sending(ngx_http_mcp_tasks_wait_t *w)
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

        /* limit_rate uses the same timer for its own pauses */

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
