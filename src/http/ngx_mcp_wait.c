
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Requests that wait.  A parked request looks when a key that it watches is
 * signalled, when its timer expires, and when the worker process is about to
 * exit.  Where the protocol allows it, the response is a stream of events,
 * which keeps the connection alive and reports changes.
 *
 * The functions here and in the other ngx_mcp_wait files never hold the lock of
 * the zone: they access tasks through operations only.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_batch.h"


/* debug logs read the fd of an event's data as that of a connection */

typedef char  ngx_mcp_ident_fits[
    offsetof(ngx_mcp_wait_t, ident.fd) - offsetof(ngx_mcp_wait_t, ident)
    == offsetof(ngx_connection_t, fd) ? 1 : -1
];


static void ngx_mcp_wait_handler(ngx_mcp_op_t *op);
static void ngx_mcp_wait_watch(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_unpark(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_event(ngx_event_t *ev);
static void ngx_mcp_wait_continue(ngx_mcp_wait_t *w, ngx_int_t rc);
static ngx_int_t ngx_mcp_wait_tick(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_next(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_timer(ngx_mcp_wait_t *w);
static void ngx_mcp_wait_write(ngx_http_request_t *r);
static void ngx_mcp_wait_cleanup(void *data);
static void ngx_mcp_wait_free(void *data);


void
ngx_mcp_wait_init(ngx_mcp_wait_t *w, ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    w->r = r;
    w->ctx = ctx;
    w->zone = lcf->zone;
}


/*
 * Waits until look() ends the request.  Returns the value to finalize with;
 * NGX_DONE: the request is parked, or waits for an operation.
 */

ngx_int_t
ngx_mcp_wait(ngx_mcp_wait_t *w)
{
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

    cln = ngx_mcp_cleanup_add(r);
    last = ngx_pool_cleanup_add(r->pool, 0);

    if (cln == NULL || last == NULL) {
        if (w->aborted) {
            w->aborted(w);
        }

        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_mcp_wait_cleanup;
    cln->data = w;
    last->handler = ngx_mcp_wait_free;
    last->data = w;

    if (w->ctx->element) {
        /* the batch keeps the connection alive */
        w->streams = 0;
        w->at_once = 0;
    }

    if (w->at_once && ngx_mcp_wait_open(w) != NGX_OK) {
        return NGX_ERROR;
    }

    /* allocated before it is counted, so that leaving cannot fail */

    if ((w->limited || w->stream_id) && ngx_mcp_wait_prepare(w) != NGX_OK) {
        return ngx_mcp_wait_over(w, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    return w->limited ? ngx_mcp_wait_enter(w) : ngx_mcp_wait_pin(w);
}


/*
 * Stores whether the request has a response: aborted() is not called then.
 * NGX_ERROR means that nothing can be sent to the client.
 */

ngx_int_t
ngx_mcp_wait_over(ngx_mcp_wait_t *w, ngx_int_t rc)
{
    w->over = (rc != NGX_ERROR);

    return rc;
}


/* the first look; parks the request if it has to wait */

ngx_int_t
ngx_mcp_wait_first(ngx_mcp_wait_t *w)
{
    ngx_int_t            rc;
    ngx_event_t         *rev;
    ngx_http_request_t  *r;

    r = w->r;
    rc = w->look(w);

    if (rc != NGX_DECLINED && rc != NGX_BUSY) {
        return ngx_mcp_wait_over(w, rc);
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
    ngx_mcp_wait_again(w);
    ngx_mcp_wait_next(w);

    return NGX_DONE;
}


/*
 * Submits an operation for look(), which has to return the value of this
 * function.  The request is not freed before the operation is completed, but it
 * may end (w->left).  The function done() is called even then, so that it can
 * undo a change whose result cannot be sent.
 */

ngx_int_t
ngx_mcp_wait_op(ngx_mcp_wait_t *w, ngx_mcp_op_t *op,
    ngx_int_t (*done)(ngx_mcp_wait_t *w, ngx_mcp_op_t *op))
{
    ngx_int_t  rc;

    op->handler = ngx_mcp_wait_handler;
    op->data = w;

    rc = ngx_mcp_submit(w->zone, op);

    switch (rc) {

    case NGX_OK:
        return done(w, op);

    case NGX_AGAIN:
        w->done = done;
        w->running = 1;
        w->r->main->blocked++;
        return NGX_BUSY;

    default:
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
}


static void
ngx_mcp_wait_handler(ngx_mcp_op_t *op)
{
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_mcp_wait_t      *w;

    w = op->data;
    r = w->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    w->running = 0;
    r->main->blocked--;

    rc = w->done(w, op);

    if (w->left) {
        ngx_http_finalize_request(r, NGX_ERROR);

    } else {
        ngx_mcp_wait_continue(w, rc);
    }

    ngx_http_run_posted_requests(c);
}


#if (NGX_MCP_TEST)

/* the request whose look() waits for the operation; NULL: none */

ngx_http_request_t *
ngx_mcp_wait_request(ngx_mcp_op_t *op)
{
    return (op->handler == ngx_mcp_wait_handler)
           ? ((ngx_mcp_wait_t *) op->data)->r : NULL;
}

#endif


/* the worker process exits: all requests look once more, and end */

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


/* counts requests for the status; limits have counters of their own */

void
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


/* ends the wait; the response may not be sent completely */

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
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_mcp_wait_t      *w;

    c = ev->data;
    w = c->data;
    r = w->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module) != w->ctx) {
        /* an internal redirect: another handler has the request */
        ngx_mcp_wait_unpark(w);
        return;
    }

    if (w->running) {
        w->missed = 1;
        return;
    }

    ngx_mcp_wait_continue(w, ngx_mcp_wait_tick(w));
    ngx_http_run_posted_requests(c);
}


static void
ngx_mcp_wait_continue(ngx_mcp_wait_t *w, ngx_int_t rc)
{
    if (rc == NGX_DECLINED || rc == NGX_BUSY) {
        ngx_mcp_wait_next(w);
        return;
    }

    ngx_mcp_wait_unpark(w);
    ngx_http_finalize_request(w->r, ngx_mcp_wait_over(w, rc));
}


/* looks, unless data is unsent or it is too early; returns as look() does */

static ngx_int_t
ngx_mcp_wait_tick(ngx_mcp_wait_t *w)
{
    ngx_int_t            rc;
    ngx_mcp_loc_conf_t  *lcf;

    if (w->ctx->element && ngx_mcp_batch_hold(w->ctx)) {
        w->missed = 1;

    } else if (ngx_mcp_wait_busy(w)) {

        /* a slow client later gets the latest state, not a backlog of events */

        if (ngx_exiting) {
            return NGX_ERROR;
        }

        w->missed = 1;

    } else if (ngx_current_msec < w->not_before && !ngx_exiting) {
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

    return NGX_DECLINED;
}


/* if there is more to send, other events are handled first */

static void
ngx_mcp_wait_next(ngx_mcp_wait_t *w)
{
    if (w->running) {
        /* ngx_mcp_wait_handler() continues */
        return;
    }

    if (w->missed && !ngx_mcp_wait_busy(w)
        && ngx_current_msec >= w->not_before)
    {
        ngx_post_event(&w->event, &ngx_posted_next_events);
    }

    ngx_mcp_wait_timer(w);
}


/* sets the timer for the next look without a signal */

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

    if (w->missed && ngx_current_msec < w->not_before) {
        next = ngx_min(next, w->not_before);
    }

    if (next == NGX_MCP_NEVER) {
        return;
    }

    next = (next > ngx_current_msec) ? next - ngx_current_msec : 1;

    /* no comment is sent while an event is unsent */

    if (ngx_mcp_wait_busy(w)) {
        next = ngx_max(next, 1000);
    }

    /* a timer that expires too early is set again: cheaper than to move it */

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
        /* an internal redirect */
        return;
    }

    if (!ngx_mcp_wait_busy(w)) {

        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    /* send_timeout applies between two writes */

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

    ngx_mcp_wait_unpark(w);

    if (w->stream) {
        ngx_mcp_wait_count(w, 0, -1);
    }

    w->left = 1;

    if (!w->entering && !w->pinning) {
        ngx_mcp_wait_leave(w);
    }

    if (!w->over && w->aborted) {
        w->aborted(w);
    }
}


/* filters may refer to the shared event as long as the pool exists */

static void
ngx_mcp_wait_free(void *data)
{
    ngx_mcp_wait_t *w = data;

    ngx_mcp_sse_unshare(w->shared);
}
