
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * How the store knows a waiting request: the request is counted, and what it
 * looks at is pinned.  Both operations may be completed later, and the request
 * may end before that.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_wait.h"
#include "ngx_mcp_later.h"


static ngx_int_t ngx_mcp_wait_entered(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_wait_pinned(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_mcp_wait_t *ngx_mcp_wait_of(ngx_http_request_t *r);
static void ngx_mcp_wait_recounted(ngx_mcp_op_t *op);
static void ngx_mcp_wait_counted(ngx_mcp_wait_t *w);


/* counts the request as a waiter, if the limits allow it */

ngx_int_t
ngx_mcp_wait_enter(ngx_mcp_wait_t *w)
{
    ngx_int_t            rc;
    ngx_mcp_op_wait_t   *op;
    ngx_mcp_loc_conf_t  *lcf;

    op = ngx_mcp_op(w->r, NGX_MCP_OP_WAIT, sizeof(ngx_mcp_op_wait_t));
    if (op == NULL) {
        return ngx_mcp_wait_over(w, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    op->id = w->task ? &w->id : NULL;
    op->owner = &w->ctx->owner;
    op->result = w->result;
    op->max_task = lcf->max_waiters;
    op->max_zone = lcf->max_zone_waiters;

    w->enter = op;
    w->entering = 1;

    rc = ngx_mcp_request_op(w->r, &op->op, ngx_mcp_wait_entered);

    if (rc != NGX_DONE && w->entering) {
        w->entering = 0;
        w->over = 1;
    }

    return rc;
}


/* allocates the operation that ends the wait, so that leaving cannot fail */

ngx_int_t
ngx_mcp_wait_prepare(ngx_mcp_wait_t *w)
{
    ngx_mcp_op_wait_t  *op;

    op = ngx_mcp_later_op(w->zone, NGX_MCP_OP_LEAVE);
    if (op == NULL) {
        return NGX_ERROR;
    }

    w->leave = op;
    op->result = w->result;
    op->asker = w->stream_id;

    if (w->task) {
        op->task = w->id;
        op->id = &op->task;
    }

    return w->session
           ? ngx_mcp_later_str(&op->op, &op->session, &w->ctx->session)
           : NGX_OK;
}


static ngx_int_t
ngx_mcp_wait_entered(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_wait_t  *w;

    w = ngx_mcp_wait_of(r);
    w->entering = 0;

    if (o->reason == NGX_MCP_OK) {
        w->counted = 1;
        w->epoch = w->enter->epoch;
    }

    if (w->left) {
        ngx_mcp_wait_leave(w);
        return NGX_ERROR;
    }

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_wait_over(w, ngx_mcp_refused(r, w->ctx, o->reason));
    }

    return ngx_mcp_wait_pin(w);
}


/* pins what look() reads: it stays in memory until it is unpinned */

ngx_int_t
ngx_mcp_wait_pin(ngx_mcp_wait_t *w)
{
    ngx_int_t  rc;

    if (w->task) {
        w->pin.ids = &w->id;
        w->pin.n = 1;
    }

    if (!w->zone->pins
        || (w->pin.kind == NGX_MCP_PIN_TASKS && w->pin.n == 0))
    {
        return ngx_mcp_wait_first(w);
    }

    w->unpin = ngx_mcp_unpin_op(w->zone, &w->pin);
    if (w->unpin == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    w->pin.op.type = NGX_MCP_OP_PIN;
    w->pinning = 1;

    rc = ngx_mcp_request_op(w->r, &w->pin.op, ngx_mcp_wait_pinned);

    if (rc != NGX_DONE) {
        w->pinning = 0;
    }

    return rc;
}


static ngx_int_t
ngx_mcp_wait_pinned(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_wait_t  *w;

    w = ngx_mcp_wait_of(r);
    w->pinning = 0;

    if (!w->pin.held) {
        ngx_mcp_later_free(w->unpin);
        w->unpin = NULL;
    }

    if (w->left) {
        ngx_mcp_wait_leave(w);
        return NGX_ERROR;
    }

    /* over is not set: aborted() is called, as for a closed connection */

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_refused(r, w->ctx, o->reason);
    }

    return ngx_mcp_wait_first(w);
}


static ngx_mcp_wait_t *
ngx_mcp_wait_of(ngx_http_request_t *r)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    return ctx->wait;
}


/*
 * Another worker process has died, and the number of its waiters is not known.
 * The counters begin at 0 in a new epoch, and all waiters in the remaining
 * processes are counted again.
 */

void
ngx_mcp_wait_recount(void *data)
{
    ngx_mcp_zone_t *zone = data;

    ngx_queue_t     *q;
    ngx_mcp_wait_t  *w;

    for (q = ngx_queue_head(&zone->waits);
         q != ngx_queue_sentinel(&zone->waits);
         q = ngx_queue_next(q))
    {
        w = ngx_queue_data(q, ngx_mcp_wait_t, queue);

        ngx_mcp_wait_again(w);
    }
}


/* counts the request in the current epoch, if it is not */

void
ngx_mcp_wait_again(ngx_mcp_wait_t *w)
{
    ngx_mcp_op_wait_t  *op;

    op = w->enter;

    if (!w->counted || w->entering
        || (int32_t) (w->epoch - w->zone->local->epoch) >= 0)
    {
        return;
    }

    /* without limits, because it was admitted before */

    op->max_task = 0;
    op->max_zone = 0;
    op->op.handler = ngx_mcp_wait_recounted;
    op->op.data = w;

    switch (ngx_mcp_submit(w->zone, &op->op)) {

    case NGX_OK:
        ngx_mcp_wait_counted(w);
        break;

    case NGX_AGAIN:

        /*
         * The request may end meanwhile.  If its client closes the connection,
         * "blocked" keeps it in memory; after a response, only "count" does.
         */

        w->entering = 1;
        w->r->main->blocked++;
        w->r->main->count++;
        break;
    }
}


static void
ngx_mcp_wait_recounted(ngx_mcp_op_t *op)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_mcp_wait_t      *w;

    w = op->data;
    r = w->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    w->entering = 0;
    r->main->blocked--;
    ngx_mcp_wait_counted(w);

    if (w->left) {
        ngx_mcp_wait_leave(w);
        ngx_http_finalize_request(r, NGX_ERROR);

    } else {

        if (w->parked) {
            /* another process may have died since */
            ngx_mcp_wait_again(w);
        }

        ngx_http_finalize_request(r, NGX_DONE);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_mcp_wait_counted(ngx_mcp_wait_t *w)
{
    if (w->enter->op.reason == NGX_MCP_OK) {
        w->epoch = w->enter->epoch;
    }
}


/*
 * Ends the wait in the store.  WAIT and PIN of the request have to be
 * completed, since their results decide what is undone.
 */

void
ngx_mcp_wait_leave(ngx_mcp_wait_t *w)
{
    if (w->leave) {
        w->leave->counted = w->counted;
        w->leave->epoch = w->epoch;

        if (w->counted || w->stream_id) {
            ngx_mcp_later(&w->leave->op);

        } else {
            ngx_mcp_later_free(&w->leave->op);
        }

        w->leave = NULL;
    }

    if (w->unpin) {
        ngx_mcp_later(w->unpin);
        w->unpin = NULL;
    }
}
