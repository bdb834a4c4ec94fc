
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Conditional updates, see ngx_mcp_amend.h.  Updates of one task are serialized
 * within a worker process, so that its requests do not conflict with each
 * other.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_amend.h"
#include "ngx_mcp_input.h"
#include "ngx_mcp_question.h"


/*
 * A try fails only if another operation has changed the task after it was read,
 * so each failed try means that another change has succeeded.
 */
#define NGX_MCP_AMEND_TRIES   100

/* queues of updates in this worker process, by a byte of the task id */
#define NGX_MCP_AMEND_QUEUES  64


typedef struct {
    ngx_mcp_op_get_t   op;          /* must be the first */
    ngx_mcp_amend_t   *amend;
} ngx_mcp_amended_t;


typedef struct {
    ngx_mcp_amend_t  amend;         /* must be the first */
    ngx_mcp_json_t   requests;
    ngx_uint_t       valid;         /* the questions were checked before */
} ngx_mcp_asking_t;


typedef struct {
    ngx_mcp_amend_t  amend;         /* must be the first */
    ngx_mcp_json_t   answers;
    uint64_t         version;       /* of the task that asked; 0: any */
} ngx_mcp_answering_t;


static ngx_uint_t ngx_mcp_amend_turn(ngx_mcp_amend_t *a);
static void ngx_mcp_amend_event(ngx_event_t *ev);
static ngx_int_t ngx_mcp_amend_read(ngx_http_request_t *r, ngx_mcp_amend_t *a);
static ngx_int_t ngx_mcp_amend_submit(ngx_http_request_t *r,
    ngx_mcp_amend_t *a, ngx_mcp_op_t *op, ngx_mcp_done_pt done);
static ngx_int_t ngx_mcp_amend_make(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_amend_done(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_queue_t *ngx_mcp_amend_queue(ngx_mcp_amend_t *a);
static ngx_uint_t ngx_mcp_amend_same(ngx_mcp_amend_t *a, ngx_mcp_amend_t *b);
static void ngx_mcp_amend_end(ngx_mcp_amend_t *a);
static ngx_int_t ngx_mcp_ask_check(ngx_http_request_t *r,
    ngx_mcp_amend_t *amend, ngx_mcp_op_get_t *task);
static ngx_int_t ngx_mcp_ask_valid(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *requests);
static ngx_int_t ngx_mcp_answer_apply(ngx_http_request_t *r,
    ngx_mcp_amend_t *a, ngx_mcp_op_get_t *task);


static ngx_queue_t  ngx_mcp_amends[NGX_MCP_AMEND_QUEUES];


ngx_int_t
ngx_mcp_amend(ngx_http_request_t *r, ngx_mcp_amend_t *a)
{
    ngx_mcp_amended_t   *read;
    ngx_mcp_loc_conf_t  *lcf;

    read = ngx_mcp_op(r, NGX_MCP_OP_GET, sizeof(ngx_mcp_amended_t));
    if (read == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    read->amend = a;
    read->op.id = a->op.id;
    read->op.owner = a->op.owner;
    read->op.want = a->read;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    a->r = r;
    a->zone = lcf->zone;
    a->task = &read->op;

    if (ngx_mcp_amend_turn(a)) {
        return ngx_mcp_amend_read(r, a);
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;
    r->main->count++;
    r->main->blocked++;

    return NGX_DONE;
}


/*
 * Adds an update to its queue.  Returns 1 if it may begin at once; 0 if an
 * earlier update of the same task is not done, then its event is posted later.
 */

static ngx_uint_t
ngx_mcp_amend_turn(ngx_mcp_amend_t *a)
{
    ngx_queue_t      *q, *queue;
    ngx_mcp_amend_t  *before;

    queue = ngx_mcp_amend_queue(a);
    a->turn = 1;

    for (q = ngx_queue_last(queue);
         q != ngx_queue_sentinel(queue);
         q = ngx_queue_prev(q))
    {
        before = ngx_queue_data(q, ngx_mcp_amend_t, queue);

        if (ngx_mcp_amend_same(a, before)) {
            a->turn = 0;
            break;
        }
    }

    ngx_queue_insert_tail(queue, &a->queue);

    if (!a->turn) {
        a->ident.fd = (ngx_socket_t) -1;
        a->ident.data = a;
        a->event.data = &a->ident;
        a->event.handler = ngx_mcp_amend_event;
        a->event.log = a->r->connection->log;
    }

    return a->turn;
}


static ngx_queue_t *
ngx_mcp_amend_queue(ngx_mcp_amend_t *a)
{
    ngx_queue_t  *queue;

    queue = &ngx_mcp_amends[a->op.id.data[0] % NGX_MCP_AMEND_QUEUES];

    if (queue->next == NULL) {
        ngx_queue_init(queue);
    }

    return queue;
}


static ngx_uint_t
ngx_mcp_amend_same(ngx_mcp_amend_t *a, ngx_mcp_amend_t *b)
{
    return a->zone == b->zone
           && ngx_memcmp(&a->op.id, &b->op.id, sizeof(ngx_mcp_id_t)) == 0;
}


/* removes an update from its queue and starts the next one of the same task */

static void
ngx_mcp_amend_end(ngx_mcp_amend_t *a)
{
    ngx_queue_t      *q, *queue;
    ngx_mcp_amend_t  *next;

    queue = ngx_mcp_amend_queue(a);

    for (q = ngx_queue_next(&a->queue);
         q != ngx_queue_sentinel(queue);
         q = ngx_queue_next(q))
    {
        next = ngx_queue_data(q, ngx_mcp_amend_t, queue);

        if (ngx_mcp_amend_same(a, next)) {
            ngx_post_event(&next->event, &ngx_posted_events);
            break;
        }
    }

    ngx_queue_remove(&a->queue);
    a->turn = 0;
}


/* continues a request that ngx_mcp_amend() has parked */

static void
ngx_mcp_amend_event(ngx_event_t *ev)
{
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_mcp_amend_t     *a;
    ngx_http_request_t  *r;

    c = ev->data;
    a = c->data;
    r = a->r;
    c = r->connection;

    a->turn = 1;
    r->main->blocked--;

    rc = ngx_mcp_amend_read(r, a);

    if (rc == NGX_DONE && c->error && r->main->blocked == 0) {
        rc = NGX_ERROR;
    }

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_mcp_amend_read(ngx_http_request_t *r, ngx_mcp_amend_t *a)
{
    return ngx_mcp_amend_submit(r, a, &a->task->op, ngx_mcp_amend_make);
}


static ngx_int_t
ngx_mcp_amend_submit(ngx_http_request_t *r, ngx_mcp_amend_t *a,
    ngx_mcp_op_t *op, ngx_mcp_done_pt done)
{
    ngx_int_t  rc;

    rc = ngx_mcp_request_op(r, op, done);

    if (rc == NGX_HTTP_INTERNAL_SERVER_ERROR && a->turn) {
        /* the operation was not submitted: done() is not called */
        ngx_mcp_amend_end(a);
    }

    return rc;
}


static ngx_int_t
ngx_mcp_amend_make(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_int_t         rc;
    ngx_mcp_amend_t  *a;

    a = ((ngx_mcp_amended_t *) o)->amend;

    a->op.op.reason = o->reason;
    a->op.view = a->task->view;
    a->op.version = a->task->view.task.version;

    if (o->reason == NGX_MCP_OK) {
        rc = a->make(r, a, a->task);

        if (rc != NGX_DECLINED) {
            ngx_mcp_amend_end(a);
            return rc;
        }
    }

    if (a->op.op.reason != NGX_MCP_OK || a->nothing) {
        ngx_mcp_amend_end(a);
        return a->done(r, &a->op.op);
    }

    return ngx_mcp_amend_submit(r, a, &a->op.op, ngx_mcp_amend_done);
}


static ngx_int_t
ngx_mcp_amend_done(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_amend_t  *a;

    a = (ngx_mcp_amend_t *) o;

    if (o->reason == NGX_MCP_VERSION_CONFLICT
        && ++a->tries < NGX_MCP_AMEND_TRIES)
    {
        return ngx_mcp_amend_read(r, a);
    }

    ngx_mcp_amend_end(a);

    return a->done(r, o);
}


ngx_int_t
ngx_mcp_ask(ngx_http_request_t *r, ngx_mcp_op_update_t *op,
    ngx_mcp_json_t *requests, ngx_mcp_done_pt done)
{
    ngx_mcp_asking_t  *a;

    a = ngx_pcalloc(r->pool, sizeof(ngx_mcp_asking_t));
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->requests = *requests;
    a->amend.op = *op;
    a->amend.read = NGX_MCP_WANT(NGX_MCP_RESPONSES);
    a->amend.make = ngx_mcp_ask_check;
    a->amend.done = done;

    return ngx_mcp_amend(r, &a->amend);
}


/* a new question must not have the key of a question that was answered */

static ngx_int_t
ngx_mcp_ask_check(ngx_http_request_t *r, ngx_mcp_amend_t *amend,
    ngx_mcp_op_get_t *task)
{
    ngx_int_t          rc;
    const char        *err;
    ngx_mcp_ctx_t     *ctx;
    ngx_mcp_asking_t  *a;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    a = (ngx_mcp_asking_t *) amend;

    err = ngx_mcp_input_check(&a->requests,
                              &task->view.payload[NGX_MCP_RESPONSES]);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    if (!a->valid) {
        rc = ngx_mcp_ask_valid(r, ctx, &a->requests);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        a->valid = 1;
    }

    amend->op.change.payload[NGX_MCP_REQUESTS] = a->requests.text;

    return NGX_DECLINED;
}


/* NGX_DECLINED: the questions are valid; any other value finalizes */

static ngx_int_t
ngx_mcp_ask_valid(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *requests)
{
    ngx_int_t           rc;
    ngx_str_t           text;
    ngx_mcp_mismatch_t  mismatch;

    rc = ngx_mcp_question_check(r->pool, NGX_MCP_QUESTION_ALL, requests,
                                &mismatch);
    rc = ngx_mcp_mismatch_text(r->pool, rc, &mismatch, &text);

    if (rc == NGX_OK) {
        return NGX_DECLINED;
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_mismatch_error(r, ctx, "inputRequests", "invalid_question",
                                  &mismatch, &text);
}


ngx_int_t
ngx_mcp_answer(ngx_http_request_t *r, ngx_mcp_id_t *id, uint64_t version,
    ngx_mcp_json_t *answers, ngx_mcp_done_pt done)
{
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_answering_t  *a;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    a = ngx_mcp_op(r, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_answering_t));
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->answers = *answers;
    a->version = version;

    a->amend.read = NGX_MCP_WANT(NGX_MCP_REQUESTS)
                    | NGX_MCP_WANT(NGX_MCP_RESPONSES);
    a->amend.make = ngx_mcp_answer_apply;
    a->amend.done = done;
    a->amend.op.id = *id;
    a->amend.op.owner = ngx_mcp_visible_owner(ctx);
    a->amend.op.change.max_payload = lcf->max_payload;
    a->amend.op.change.max_owner_bytes = lcf->max_owner_bytes;

    return ngx_mcp_amend(r, &a->amend);
}


static ngx_int_t
ngx_mcp_answer_apply(ngx_http_request_t *r, ngx_mcp_amend_t *amend,
    ngx_mcp_op_get_t *task)
{
    ngx_uint_t             *reason;
    ngx_mcp_ctx_t          *ctx;
    ngx_mcp_input_change_t  input;
    ngx_mcp_answering_t    *a;
    ngx_mcp_op_update_t    *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    a = (ngx_mcp_answering_t *) amend;
    op = &amend->op;
    reason = &op->op.reason;

    if (a->version && a->version != task->view.task.version) {
        *reason = NGX_MCP_VERSION_CONFLICT;
        return NGX_DECLINED;
    }

    if (task->view.task.state != NGX_MCP_INPUT_REQUIRED) {

        /* MCP ignores late answers, REST responds with 409 */

        if (ctx->rest) {
            *reason = ngx_mcp_terminal(task->view.task.state)
                      ? NGX_MCP_TERMINAL
                      : NGX_MCP_STATE_INVALID;
        }

        amend->nothing = 1;
        return NGX_DECLINED;
    }

    if (ngx_mcp_input_add_answers(r->pool,
                                  &task->view.payload[NGX_MCP_REQUESTS],
                                  &task->view.payload[NGX_MCP_RESPONSES],
                                  &a->answers, &input)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (input.taken == 0) {
        amend->nothing = 1;
        return NGX_DECLINED;
    }

    op->event.type = input.left ? NGX_MCP_EV_ANSWER : NGX_MCP_EV_ANSWER_ALL;
    op->change.payload[NGX_MCP_REQUESTS] = input.requests;
    op->change.payload[NGX_MCP_RESPONSES] = input.responses;

    return NGX_DECLINED;
}
