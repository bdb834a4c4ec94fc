
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Waits for the outcome of a task, for a call or for tasks/result. */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_later.h"
#include "ngx_mcp_gateway.h"


typedef struct {
    ngx_mcp_wait_t  wait;         /* must be the first */
    ngx_uint_t      mode;         /* NGX_MCP_WAIT_* */
    uint64_t        version;      /* last handled; 0: none */
    double          progress;     /* last sent; -1: none */
    ngx_uint_t      resumed;      /* by GET, after a POST */
} ngx_mcp_outcome_t;


static ngx_mcp_outcome_t *ngx_mcp_outcome_new(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_id_t *id, ngx_uint_t mode);
static ngx_int_t ngx_mcp_outcome_first(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_outcome_look(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_outcome_asker(ngx_mcp_outcome_t *o,
    ngx_mcp_op_get_t *op);
static ngx_uint_t ngx_mcp_outcome_due(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v);
static ngx_int_t ngx_mcp_outcome_notify(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v,
    ngx_pool_t *pool);
static ngx_int_t ngx_mcp_outcome_task(ngx_mcp_outcome_t *o,
    ngx_mcp_view_t *v);
static ngx_int_t ngx_mcp_outcome_exit(ngx_mcp_outcome_t *o);
static ngx_int_t ngx_mcp_outcome_ask(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v,
    ngx_pool_t *pool);
static ngx_int_t ngx_mcp_outcome_input_required(ngx_mcp_outcome_t *o,
    ngx_mcp_view_t *v);
static ngx_int_t ngx_mcp_outcome_progress(ngx_mcp_outcome_t *o,
    ngx_mcp_view_t *v, ngx_pool_t *pool);
static ngx_int_t ngx_mcp_outcome_end(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v);
static ngx_int_t ngx_mcp_outcome_unanswered(ngx_mcp_outcome_t *o);
static ngx_int_t ngx_mcp_outcome_remove(ngx_mcp_outcome_t *o);
static void ngx_mcp_outcome_sent(void *data);
static void ngx_mcp_outcome_abort(ngx_mcp_wait_t *w);


/*
 * Waits until the task ends or, with NGX_MCP_WAIT_AFTER, until the time is
 * over: then the response is the task.  With NGX_MCP_WAIT_TASK it is the task
 * at once, even if it has ended.  Returns the value to finalize with.
 */

ngx_int_t
ngx_mcp_wait_outcome(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_id_t *id, ngx_uint_t mode, ngx_msec_t after)
{
    ngx_mcp_outcome_t  *o;

    o = ngx_mcp_outcome_new(r, ctx, id, mode);
    if (o == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (mode == NGX_MCP_WAIT_AFTER) {
        o->wait.until = ngx_current_msec + after;
    }

    return ngx_mcp_wait(&o->wait);
}


/*
 * Continues to wait after the connection of the first request was lost: the
 * client has all messages up to that progress.
 */

ngx_int_t
ngx_mcp_resume_outcome(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_id_t *id, ngx_uint_t mode, double progress)
{
    ngx_mcp_outcome_t  *o;

    o = ngx_mcp_outcome_new(r, ctx, id, mode);
    if (o == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    o->progress = progress;
    o->resumed = 1;
    o->wait.limited = 1;
    o->wait.at_once = 1;

    return ngx_mcp_wait(&o->wait);
}


static ngx_mcp_outcome_t *
ngx_mcp_outcome_new(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_id_t *id, ngx_uint_t mode)
{
    ngx_mcp_outcome_t   *o;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    o = ngx_pcalloc(r->pool, sizeof(ngx_mcp_outcome_t));
    if (o == NULL) {
        return NULL;
    }

    o->mode = mode;
    o->progress = -1;

    ngx_mcp_wait_init(&o->wait, r, ctx);
    o->wait.id = *id;
    o->wait.look = ngx_mcp_outcome_look;
    o->wait.aborted = ngx_mcp_outcome_abort;
    o->wait.task = 1;
    o->wait.streams = 1;

    if (mode == NGX_MCP_WAIT_RESULT) {
        o->wait.result = 1;
        o->wait.limited = 1;
    }

    if (ctx->era == NGX_MCP_LEGACY) {
        o->wait.first = ngx_mcp_outcome_first;

        if (ctx->can) {
            o->wait.stream_id = ngx_mcp_stream_new(lcf->zone->local);
        }
    }

    o->wait.until = NGX_MCP_NEVER;

    return o;
}


/* an id without data, by which the client can resume; sets that of the last */

static ngx_int_t
ngx_mcp_outcome_first(ngx_mcp_wait_t *w)
{
    u_char              buf[NGX_MCP_RESUME_LEN];
    ngx_str_t           id;
    ngx_mcp_outcome_t  *o;
    static ngx_str_t    empty = ngx_string("");

    o = (ngx_mcp_outcome_t *) w;

    if (!ngx_mcp_resumable(w->r, w->ctx)) {
        return NGX_OK;
    }

    w->last_id.data = ngx_pnalloc(w->r->pool, NGX_MCP_RESUME_LEN);
    if (w->last_id.data == NULL) {
        return NGX_ERROR;
    }

    w->last_id.len = ngx_mcp_resume_id(w->last_id.data, w, o->mode, -1, 1)
                     - w->last_id.data;

    id.data = buf;
    id.len = ngx_mcp_resume_id(buf, w, o->mode, o->progress, 0) - buf;

    return ngx_mcp_wait_message(w, &id, &empty);
}


static ngx_int_t
ngx_mcp_outcome_look(ngx_mcp_wait_t *w)
{
    ngx_int_t           rc;
    ngx_pool_t         *pool;
    ngx_mcp_op_get_t    op;
    ngx_mcp_outcome_t  *o;

    o = (ngx_mcp_outcome_t *) w;

    ngx_memzero(&op, sizeof(ngx_mcp_op_get_t));
    op.op.type = NGX_MCP_OP_GET;
    op.op.pool = w->r->pool;
    op.id = w->id;
    op.owner = &w->ctx->owner;
    op.watch = 1;

    /* the payloads are read only if there is something to send */

    if (ngx_mcp_lookup(w->zone, &op.op) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (op.op.reason == NGX_MCP_OK
        && !ngx_mcp_outcome_due(o, &op.view))
    {
        return NGX_DECLINED;
    }

    pool = ngx_create_pool(1024, w->r->connection->log);
    if (pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op.op.pool = pool;
    op.want = NGX_MCP_WANT_DETAIL | (o->resumed ? NGX_MCP_WANT_TOKEN : 0);

    if (op.op.reason == NGX_MCP_OK
        && (ngx_mcp_lookup(w->zone, &op.op) != NGX_OK
            || ngx_mcp_outcome_asker(o, &op) != NGX_OK))
    {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else if (op.op.reason != NGX_MCP_OK) {
        rc = ngx_mcp_refused(w->r, w->ctx, op.op.reason);

    } else {
        ngx_mcp_set_task(w->r, w->ctx, &op.view);
        rc = ngx_mcp_outcome_notify(o, &op.view, pool);
    }

    ngx_destroy_pool(pool);

    return rc;
}


/*
 * Legacy: this stream becomes the one that asks, but only if its client can
 * answer one of the questions; otherwise it would keep another stream from
 * asking.
 */

static ngx_int_t
ngx_mcp_outcome_asker(ngx_mcp_outcome_t *o, ngx_mcp_op_get_t *op)
{
    if (op->op.reason != NGX_MCP_OK || !op->view.asks) {
        return NGX_OK;
    }

    if (o->wait.stream_id == 0
        || !ngx_mcp_questions_any(&op->view.payload[NGX_MCP_REQUESTS],
                                  o->wait.ctx->can))
    {
        op->view.asks = 0;
        return NGX_OK;
    }

    op->asker = o->wait.stream_id;

    return ngx_mcp_lookup(o->wait.zone, &op->op);
}


/* whether there may be something to send */

static ngx_uint_t
ngx_mcp_outcome_due(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v)
{
    return v->task.version != o->version
           || ngx_mcp_terminal(v->task.state)
           || v->asks
           || ngx_current_msec >= o->wait.until
           || ngx_exiting;
}


/* sends what there is to send; NGX_DECLINED: keep waiting */

static ngx_int_t
ngx_mcp_outcome_notify(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v,
    ngx_pool_t *pool)
{
    o->version = v->task.version;

    if (o->mode == NGX_MCP_WAIT_TASK) {
        return ngx_mcp_outcome_task(o, v);
    }

    if (ngx_mcp_terminal(v->task.state)) {
        return ngx_mcp_outcome_end(o, v);
    }

    if (o->mode == NGX_MCP_WAIT_AFTER
        && (ngx_current_msec >= o->wait.until || ngx_exiting
            || (v->task.state == NGX_MCP_INPUT_REQUIRED
                && !o->wait.ctx->asked)))
    {
        return ngx_mcp_outcome_task(o, v);
    }

    if (ngx_exiting) {
        return ngx_mcp_outcome_exit(o);
    }

    if (v->task.state == NGX_MCP_INPUT_REQUIRED) {
        return ngx_mcp_outcome_ask(o, v, pool);
    }

    return ngx_mcp_outcome_progress(o, v, pool);
}


/* the response is the task; the background call continues without a caller */

static ngx_int_t
ngx_mcp_outcome_task(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v)
{
    ngx_mcp_out_t  out;

    ngx_mcp_job_left(o->wait.ctx);

    ngx_mcp_out_answer(&out, o->wait.r, o->wait.ctx, 512);
    ngx_mcp_render_created(&out, o->wait.ctx->era, v);

    return ngx_mcp_out_result(o->wait.r, &out);
}


/*
 * The worker process exits.  A client that can resume the stream reconnects.
 * Other legacy clients may ask for the task by its id.  A modern client without
 * tasks never gets the id, so its call is cancelled.
 */

static ngx_int_t
ngx_mcp_outcome_exit(ngx_mcp_outcome_t *o)
{
    ngx_str_t        data;
    ngx_mcp_ctx_t   *ctx;
    ngx_mcp_out_t    out;

    ctx = o->wait.ctx;

    if (ngx_mcp_resumable(o->wait.r, ctx)) {
        return ngx_mcp_wait_close(&o->wait);
    }

    ngx_mcp_outcome_abort(&o->wait);

    ngx_mcp_out_init(&out, o->wait.r->pool, 128);
    ngx_mcp_out_lit(&out, "{\"reason\":\"result_not_ready\"");

    if (ctx->tasks) {
        ngx_mcp_out_lit(&out, ",\"taskId\":\"");
        ngx_mcp_out_str(&out, &ctx->task_id);
        ngx_mcp_out_lit(&out, "\"");
    }

    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &data) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_error(o->wait.r, ctx, NGX_HTTP_OK, NGX_MCP_RPC_NOT_READY,
                         (ctx->era == NGX_MCP_MODERN)
                         ? "The server is shutting down, the call is cancelled"
                         : "The server is shutting down, the task continues",
                         &data);
}


static ngx_int_t
ngx_mcp_outcome_ask(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v, ngx_pool_t *pool)
{
    ngx_int_t  rc;

    if (o->wait.ctx->era == NGX_MCP_MODERN) {
        return ngx_mcp_outcome_input_required(o, v);
    }

    if (!v->asks) {
        /* another stream delivers the questions, or this one has */
        return NGX_DECLINED;
    }

    rc = ngx_mcp_wait_ask(&o->wait, v, pool);

    return (rc == NGX_OK) ? NGX_DECLINED : rc;
}


/* modern: the response to the call is the questions, for this round trip */

static ngx_int_t
ngx_mcp_outcome_input_required(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v)
{
    u_char       buf[128];
    ngx_str_t    data;
    const char  *capability;

    capability = ngx_mcp_request_state_missing(o->wait.ctx, v);

    if (capability == NULL) {
        return ngx_mcp_request_state_ask(o->wait.r, o->wait.ctx, v);
    }

    /* the client can never answer: the call is cancelled */

    ngx_mcp_outcome_abort(&o->wait);

    data.data = buf;
    data.len = ngx_sprintf(buf, "{\"requiredCapabilities\":{%s}}", capability)
               - buf;

    return ngx_mcp_missing_capability(o->wait.r, o->wait.ctx, &data);
}


/*
 * Legacy: sends the questions of a task as requests on the stream, except for
 * those that the client has not declared to answer.
 */

ngx_int_t
ngx_mcp_wait_ask(ngx_mcp_wait_t *w, ngx_mcp_view_t *v, ngx_pool_t *pool)
{
    ngx_str_t             message;
    ngx_mcp_out_t         out;
    ngx_mcp_json_t        requests, key, value;
    ngx_mcp_json_iter_t   it;

    requests.type = NGX_MCP_JSON_OBJECT;
    requests.text = v->payload[NGX_MCP_REQUESTS];

    ngx_mcp_json_iter(&it, &requests);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (!ngx_mcp_question_is_for(&value, w->ctx->can)) {
            continue;
        }

        ngx_mcp_out_init(&out, pool, value.text.len + 256);
        ngx_mcp_render_question(&out, v, &key, &value);

        if (ngx_mcp_out_end(&out, &message) != NGX_OK
            || ngx_mcp_wait_message(w, NULL, &message) == NGX_ERROR)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_outcome_progress(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v,
    ngx_pool_t *pool)
{
    u_char         buf[NGX_MCP_RESUME_LEN];
    ngx_str_t      id, message, *token;
    ngx_mcp_out_t  out;

    /* the token is empty if there is none */

    token = o->resumed ? &v->token : &o->wait.ctx->params.token.text;

    if (token->len == 0
        || o->mode == NGX_MCP_WAIT_RESULT
        || v->task.progress < 0
        || v->task.progress <= o->progress)
    {
        return NGX_DECLINED;
    }

    ngx_mcp_out_init(&out, pool, 256);
    ngx_mcp_render_progress(&out, v, token, 0);

    /* the id of the first event is that of a client without this progress */

    if (ngx_mcp_out_end(&out, &message) != NGX_OK
        || (!o->wait.stream && ngx_mcp_wait_open(&o->wait) != NGX_OK))
    {
        return NGX_ERROR;
    }

    o->progress = v->task.progress;

    id.data = buf;
    id.len = o->wait.last_id.len
             ? ngx_mcp_resume_id(buf, &o->wait, o->mode, o->progress, 0) - buf
             : 0;

    if (ngx_mcp_wait_message(&o->wait, id.len ? &id : NULL, &message)
        == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_outcome_end(ngx_mcp_outcome_t *o, ngx_mcp_view_t *v)
{
    ngx_str_t            message;
    ngx_uint_t           meta;
    ngx_http_request_t  *r;
    ngx_mcp_out_t        out;

    r = o->wait.r;

    if (o->mode == NGX_MCP_WAIT_CALL
        && v->task.state == NGX_MCP_CANCELLED
        && (v->task.flags & NGX_MCP_UNANSWERED))
    {
        return ngx_mcp_outcome_unanswered(o);
    }

    meta = NGX_MCP_META_NONE;

    if (o->mode == NGX_MCP_WAIT_RESULT) {
        meta = NGX_MCP_META_RELATED;

    } else if (o->wait.ctx->era == NGX_MCP_MODERN
               && v->task.policy.route == 0)
    {
        /* the result of an upstream says itself who has produced it */
        meta = NGX_MCP_META_IDENTIFIED;
    }

    ngx_mcp_out_init(&out, r->pool, 384 + v->payload[NGX_MCP_RESULT].len);
    ngx_mcp_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    ngx_mcp_out_str(&out, &o->wait.ctx->rpc.id.text);
    ngx_mcp_out_lit(&out, ",");
    ngx_mcp_render_outcome(&out, o->wait.ctx->era, v, meta);
    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &message) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (o->mode != NGX_MCP_WAIT_RESULT
        && ngx_mcp_outcome_remove(o) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_mcp_send(r, NGX_HTTP_OK, &message, 1);
}


/*
 * The client has cancelled the call and gets no response.  If it can resume the
 * stream, the last event tells it that there is nothing to resume.
 */

static ngx_int_t
ngx_mcp_outcome_unanswered(ngx_mcp_outcome_t *o)
{
    ngx_mcp_wait_t    *w;
    static ngx_str_t   empty = ngx_string("");

    w = &o->wait;

    if (w->ctx->element) {
        /* no part of the response to a batch */
        return NGX_OK;
    }

    if (!w->stream && ngx_mcp_wait_open(w) != NGX_OK) {
        return NGX_ERROR;
    }

    return w->last_id.len ? ngx_mcp_wait_end(w, &empty)
                          : ngx_http_send_special(w->r, NGX_HTTP_LAST);
}


/*
 * The client did not receive the task id, so the task can be removed: now, or
 * when the response has been sent, if the client could resume the stream.
 */

static ngx_int_t
ngx_mcp_outcome_remove(ngx_mcp_outcome_t *o)
{
    ngx_http_cleanup_t   *cln;
    ngx_mcp_op_delete_t  *op;

    if (o->wait.last_id.len) {
        cln = ngx_mcp_cleanup_add(o->wait.r);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_mcp_outcome_sent;
        cln->data = o;

        return NGX_OK;
    }

    op = ngx_mcp_later_op(o->wait.zone, NGX_MCP_OP_DELETE);

    if (op) {
        op->id = o->wait.id;
        ngx_mcp_later(&op->op);
    }

    return NGX_OK;
}


/*
 * The request has ended.  The task is kept if a part of the response was not
 * sent: the client may resume the stream.  It is also kept if other requests
 * wait for it, of which one may be the resumed stream of this call.
 */

static void
ngx_mcp_outcome_sent(void *data)
{
    ngx_mcp_outcome_t *o = data;

    ngx_connection_t     *c;
    ngx_mcp_op_delete_t  *op;

    c = o->wait.r->connection;

    if (!o->wait.over || c->error || c->timedout || c->buffered) {
        return;
    }

    op = ngx_mcp_later_op(o->wait.zone, NGX_MCP_OP_DELETE);

    if (op) {
        op->id = o->wait.id;
        op->waiting = 1 + o->wait.counted;
        ngx_mcp_later(&op->op);
    }
}


/*
 * In the modern era a closed connection cancels the call, but only as long as
 * the client has not received the task.
 */

static void
ngx_mcp_outcome_abort(ngx_mcp_wait_t *w)
{
    ngx_mcp_op_update_t  *op;

    if (w->ctx->era != NGX_MCP_MODERN) {
        return;
    }

    op = ngx_mcp_later_op(w->zone, NGX_MCP_OP_UPDATE);

    if (op) {
        op->id = w->id;
        op->event.type = NGX_MCP_EV_CANCEL;
        ngx_mcp_later(&op->op);
    }
}
