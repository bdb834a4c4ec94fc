
/*
 * Requests that wait.  A parked request looks when it is told that something
 * has changed, when its time is up, and when the process is to exit.  Where
 * the protocol allows it, it is a stream of events meanwhile, which keeps the
 * connection alive and carries what is worth telling.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_wait.h"


/* an event's data is taken for a connection where its fd is logged */

typedef char  ngx_mcp_ident_fits[
    offsetof(ngx_mcp_wait_t, ident.fd) - offsetof(ngx_mcp_wait_t, ident)
    == offsetof(ngx_connection_t, fd) ? 1 : -1
];


static ngx_int_t ngx_mcp_wait_enter(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_op(ngx_mcp_wait_t *w, ngx_mcp_op_wait_t *op,
    ngx_uint_t type);
static void ngx_mcp_wait_count(ngx_mcp_wait_t *w, ngx_int_t waiting,
    ngx_int_t streams);
static void ngx_mcp_wait_watch(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_unpark(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_event(ngx_event_t *ev);
static ngx_int_t ngx_mcp_wait_tick(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_next(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_timer(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_write(ngx_http_request_t *r);
static void ngx_mcp_wait_cleanup(void *data);
static void ngx_mcp_wait_free(void *data);
static ngx_int_t ngx_mcp_wait_open(ngx_mcp_wait_t *w);
static ngx_chain_t *ngx_mcp_wait_buf(ngx_mcp_wait_t *w, size_t size);
static ngx_int_t ngx_mcp_wait_comment(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_wait_retry(ngx_mcp_wait_t *w, ngx_uint_t retry,
    ngx_uint_t last);
static ngx_int_t ngx_mcp_wait_output(ngx_mcp_wait_t *w, ngx_chain_t *out,
    ngx_uint_t last);
static ngx_int_t ngx_mcp_wait_sending(ngx_mcp_wait_t *w);


void
ngx_mcp_wait_init(ngx_mcp_wait_t *w, ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    w->r = r;
    w->ctx = ctx;
    w->zone = lcf->zone;
}


/* returns what to finalize with: NGX_DONE, if the request is parked */

ngx_int_t
ngx_mcp_wait(ngx_mcp_wait_t *w)
{
    ngx_int_t            rc;
    ngx_event_t         *rev;
    ngx_http_request_t  *r;
    ngx_http_cleanup_t  *cln;
    ngx_pool_cleanup_t  *last;

    r = w->r;
    w->ctx->wait = w;
    w->alive = ngx_current_msec;

    w->ident.fd = (ngx_socket_t) -1;
    w->ident.data = w;
    w->event.data = &w->ident;
    w->event.handler = ngx_mcp_wait_event;
    w->event.log = r->connection->log;

    cln = ngx_http_cleanup_add(r, 0);
    last = ngx_pool_cleanup_add(r->pool, 0);

    if (cln == NULL || last == NULL) {
        if (w->gone) {
            w->gone(w);
        }

        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_mcp_wait_cleanup;
    cln->data = w;
    last->handler = ngx_mcp_wait_free;
    last->data = w;

    rc = ngx_mcp_wait_enter(w);

    if (rc == NGX_DECLINED) {
        rc = w->look(w);
    }

    if (rc != NGX_DECLINED) {
        /* who cannot be sent to has gone */
        w->over = (rc != NGX_ERROR);
        return rc;
    }

    rev = r->connection->read;

    if (rev->ready) {
        ngx_post_event(rev, &ngx_posted_events);

    } else if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_mcp_wait_write;
    r->main->count++;

    ngx_mcp_wait_watch(w);
    ngx_mcp_wait_next(w);

    return NGX_DONE;
}


/*
 * It is one of those who wait from now on, if there is room for it.
 * NGX_DECLINED: go on; else it is what to finalize with.
 */

static ngx_int_t
ngx_mcp_wait_enter(ngx_mcp_wait_t *w)
{
    ngx_mcp_op_wait_t    op;
    ngx_mcp_loc_conf_t  *lcf;

    if (!w->limited) {
        return NGX_DECLINED;
    }

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    ngx_mcp_wait_op(w, &op, NGX_MCP_OP_WAIT);
    op.max_task = lcf->max_waiters;
    op.max_zone = lcf->max_zone_waiters;

    if (ngx_mcp_now(w->zone, &op.op) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (op.op.reason != NGX_MCP_OK) {
        return ngx_mcp_refused(w->r, w->ctx, op.op.reason);
    }

    w->counted = 1;
    w->epoch = op.epoch;

    return NGX_DECLINED;
}


static void
ngx_mcp_wait_op(ngx_mcp_wait_t *w, ngx_mcp_op_wait_t *op, ngx_uint_t type)
{
    ngx_memzero(op, sizeof(ngx_mcp_op_wait_t));
    op->op.type = type;
    op->id = w->task ? &w->id : NULL;
    op->owner = &w->ctx->owner;
    op->result = w->result;
}


/* the process exits: all have to end */

void
ngx_mcp_wait_all(void *data)
{
    ngx_mcp_zone_t *zone = data;

    ngx_queue_t     *q;
    ngx_mcp_wait_t  *w;

    for (q = ngx_queue_head(&zone->waits);
         q != ngx_queue_sentinel(&zone->waits);
         q = ngx_queue_next(q))
    {
        w = ngx_queue_data(q, ngx_mcp_wait_t, queue);
        ngx_post_event(&w->event, &ngx_posted_events);
    }
}


/* a process has died, and nobody knows how many waited there */

void
ngx_mcp_wait_recount(void *data)
{
    ngx_mcp_zone_t *zone = data;

    ngx_queue_t        *q;
    ngx_mcp_wait_t     *w;
    ngx_mcp_op_wait_t   op;

    for (q = ngx_queue_head(&zone->waits);
         q != ngx_queue_sentinel(&zone->waits);
         q = ngx_queue_next(q))
    {
        w = ngx_queue_data(q, ngx_mcp_wait_t, queue);

        if (!w->counted || w->epoch == zone->local->epoch) {
            continue;
        }

        /* without limits: it was admitted before */

        ngx_mcp_wait_op(w, &op, NGX_MCP_OP_WAIT);

        if (ngx_mcp_submit(zone, &op.op) == NGX_OK
            && op.op.reason == NGX_MCP_OK)
        {
            w->epoch = op.epoch;
        }
    }
}


/* for those who look at the server, not for limits */

static void
ngx_mcp_wait_count(ngx_mcp_wait_t *w, ngx_int_t waiting, ngx_int_t streams)
{
    ngx_mcp_local_t  *local;

    local = w->zone->local;
    local->present.waiting += (int32_t) waiting;
    local->present.streams += (int32_t) streams;

    ngx_mcp_present(local);
}


static void
ngx_mcp_wait_watch(ngx_mcp_wait_t *w)
{
    ngx_uint_t        i;
    ngx_mcp_local_t  *local;

    local = w->zone->local;

    ngx_queue_insert_tail(&w->zone->waits, &w->queue);
    w->parked = 1;
    ngx_mcp_wait_count(w, 1, 0);

    if (w->task) {
        w->watches = &w->watch;
        w->nwatches = 1;
        w->watch.key = ngx_mcp_signal_id(&w->id);
    }

    for (i = 0; i < w->nwatches; i++) {
        ngx_mcp_watch(local, &w->watches[i], w->watches[i].key, &w->event);
    }
}


/* it is over, though what was answered may take its time to be sent */

static void
ngx_mcp_wait_unpark(ngx_mcp_wait_t *w)
{
    ngx_uint_t  i;

    if (w->event.timer_set) {
        ngx_del_timer(&w->event);
    }

    if (w->event.posted) {
        ngx_delete_posted_event(&w->event);
    }

    if (w->parked) {
        w->parked = 0;
        ngx_queue_remove(&w->queue);
        ngx_mcp_wait_count(w, -1, 0);

        for (i = 0; i < w->nwatches; i++) {
            ngx_mcp_unwatch(&w->watches[i]);
        }
    }
}


static void
ngx_mcp_wait_event(ngx_event_t *ev)
{
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_mcp_wait_t      *w;

    c = ev->data;
    w = c->data;
    r = w->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module) != w->ctx) {
        /* it was redirected, and is not ours any more */
        ngx_mcp_wait_unpark(w);
        return;
    }

    rc = ngx_mcp_wait_tick(w);

    if (rc != NGX_DECLINED) {
        ngx_mcp_wait_unpark(w);

        /* who cannot be sent to has gone */
        w->over = (rc != NGX_ERROR);
        ngx_http_finalize_request(r, rc);
    }

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_mcp_wait_tick(ngx_mcp_wait_t *w)
{
    ngx_int_t            rc;
    ngx_mcp_loc_conf_t  *lcf;

    if (ngx_mcp_wait_busy(w)) {

        /* a slow reader gets the latest when it can take it, no backlog */

        if (ngx_exiting) {
            return NGX_ERROR;
        }

        w->missed = 1;

    } else if (ngx_current_msec < w->rests && !ngx_exiting) {
        w->missed = 1;

    } else {
        w->missed = 0;
        rc = w->look(w);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

        if (w->streams && !ngx_mcp_wait_busy(w)
            && ngx_current_msec - w->alive >= lcf->keepalive
            && ngx_mcp_wait_comment(w) == NGX_ERROR)
        {
            return NGX_ERROR;
        }
    }

    ngx_mcp_wait_next(w);

    return NGX_DECLINED;
}


/* who has much to tell lets others have their turn in between */

static void
ngx_mcp_wait_next(ngx_mcp_wait_t *w)
{
    if (w->missed && !ngx_mcp_wait_busy(w)
        && ngx_current_msec >= w->rests)
    {
        ngx_post_event(&w->event, &ngx_posted_next_events);
    }

    ngx_mcp_wait_timer(w);
}


/* when to look without being told */

static void
ngx_mcp_wait_timer(ngx_mcp_wait_t *w)
{
    uint64_t             next;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);
    next = w->until;

    if (w->streams) {
        next = ngx_min(next, w->alive + lcf->keepalive);
    }

    if (w->missed && ngx_current_msec < w->rests) {
        next = ngx_min(next, w->rests);
    }

    if (next == NGX_MCP_NEVER) {
        return;
    }

    next = (next > ngx_current_msec) ? next - ngx_current_msec : 1;

    /* an unsent event is not followed by a comment */

    if (ngx_mcp_wait_busy(w)) {
        next = ngx_max(next, 1000);
    }

    /* one that comes too early looks again: cheaper than to move it */

    if (w->event.timer_set
        && (ngx_msec_int_t) (w->event.timer.key
                             - (ngx_current_msec + (ngx_msec_t) next)) <= 0)
    {
        return;
    }

    ngx_add_timer(&w->event, (ngx_msec_t) next);
}


static void
ngx_mcp_wait_write(ngx_http_request_t *r)
{
    ngx_event_t     *wev;
    ngx_mcp_ctx_t   *ctx;
    ngx_mcp_wait_t  *w;

    wev = r->connection->write;
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    w = ctx ? ctx->wait : NULL;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "client timed out");
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (w == NULL) {
        /* redirected meanwhile */
        return;
    }

    if (!ngx_mcp_wait_busy(w)) {

        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    /* it is between two writes that a client may not take too long */

    if (wev->timer_set && !wev->delayed) {
        ngx_del_timer(wev);
    }

    if (!wev->delayed && ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (ngx_mcp_wait_sending(w) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (w->missed && !ngx_mcp_wait_busy(w)) {
        ngx_post_event(&w->event, &ngx_posted_events);
    }
}


static void
ngx_mcp_wait_cleanup(void *data)
{
    ngx_mcp_wait_t *w = data;

    ngx_mcp_op_wait_t  op;

    ngx_mcp_wait_unpark(w);

    if (w->stream) {
        ngx_mcp_wait_count(w, 0, -1);
    }

    if (w->counted || w->stream_id) {
        ngx_mcp_wait_op(w, &op, NGX_MCP_OP_LEAVE);
        op.carrier = w->stream_id;

        if (w->session) {
            op.session = w->ctx->session;
        }

        op.counted = w->counted;
        op.epoch = w->epoch;

        (void) ngx_mcp_now(w->zone, &op.op);
    }

    if (!w->over && w->gone) {
        w->gone(w);
    }
}


/* filters may refer to it as long as the pool lives */

static void
ngx_mcp_wait_free(void *data)
{
    ngx_mcp_wait_t *w = data;

    ngx_mcp_unshare(w->shared);
}


static ngx_int_t
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

    return NGX_OK;
}


/*
 * Buffers come back when they are sent, so that a long stream does not grow;
 * they live in the request's pool, since filters may refer to them until the
 * request ends.
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

    /* one that shared its bytes still has its own */

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


/* an event of the stream; it may have an id by which to resume */

ngx_int_t
ngx_mcp_wait_message(ngx_mcp_wait_t *w, ngx_str_t *id, ngx_str_t *message)
{
    ngx_chain_t  *out;

    out = ngx_mcp_wait_buf(w, ngx_mcp_sse_size(id, message));
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf->last = ngx_mcp_sse_event(out->buf->last, id, message);

    return ngx_mcp_wait_output(w, out, 0);
}


/* several events, as they go out */

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


/* the last one */

ngx_int_t
ngx_mcp_wait_end(ngx_mcp_wait_t *w, ngx_str_t *message)
{
    ngx_chain_t  *out;

    out = ngx_mcp_wait_buf(w, ngx_mcp_sse_size(NULL, message));
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf->last = ngx_mcp_sse_event(out->buf->last, NULL, message);

    return ngx_mcp_wait_output(w, out, 1);
}


/* an event that other streams send as well: its bytes are not copied */

ngx_int_t
ngx_mcp_wait_share(ngx_mcp_wait_t *w, ngx_mcp_shared_t *shared)
{
    ngx_buf_t    *b;
    ngx_chain_t  *out;

    out = ngx_mcp_wait_buf(w, 0);
    if (out == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_unshare(w->shared);
    w->shared = shared;
    shared->refs++;

    b = out->buf;
    b->pos = shared->data;
    b->last = shared->data + shared->len;
    b->temporary = 0;
    b->memory = 1;

    return ngx_mcp_wait_output(w, out, 0);
}


static ngx_int_t
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


/* a stream begins: when to come back after it was cut */

ngx_int_t
ngx_mcp_wait_begin(ngx_mcp_wait_t *w)
{
    return ngx_mcp_wait_retry(w, NGX_MCP_RETRY, 0);
}


/*
 * It ends.  If that is because the process exits, another one is there to go
 * on, but not everybody needs to come back in the same moment.
 */

ngx_int_t
ngx_mcp_wait_close(ngx_mcp_wait_t *w)
{
    if (ngx_exiting) {
        return ngx_mcp_wait_retry(w, 50 + ngx_random() % 450, 1);
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


/* what is not sent yet: wait for the client to take it, but not for ever */

static ngx_int_t
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
        ngx_mcp_unshare(w->shared);
        w->shared = NULL;
    }

    if (!ngx_mcp_wait_busy(w)) {

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
