
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The worker surface: workers claim tasks here and report their progress and
 * results.  Without "public", only clients on this machine have access.
 */


#include "ngx_mcp_worker.h"
#include "ngx_mcp_amend.h"
#include "ngx_mcp_input.h"
#include "ngx_mcp_question.h"
#include "ngx_mcp_result.h"


/* the most members that a method has besides taskId and lease */
#define NGX_MCP_UPDATE_MEMBERS  3


typedef struct {
    ngx_mcp_wait_t  wait;    /* must be the first */
    uint64_t        lease_token;
} ngx_mcp_answers_t;


/* an update by the worker that holds the task */

typedef struct {
    ngx_mcp_op_update_t  op;      /* must be the first */
} ngx_mcp_worker_update_t;


/* a result, until it is known which tool it is of */

typedef struct {
    ngx_mcp_amend_t      amend;   /* must be the first */
    ngx_mcp_json_t       result;
    ngx_mcp_mismatch_t   mismatch;
    ngx_str_t            text;    /* of the mismatch; empty: none */
} ngx_mcp_completing_t;


/* an error that requires URLs, until it is known who has called */

typedef struct {
    ngx_mcp_amend_t      amend;   /* must be the first */
    ngx_mcp_json_t       error;
    ngx_mcp_json_t       message;
} ngx_mcp_failing_t;


static void ngx_mcp_worker_message(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_worker_heartbeat(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_worker_progress(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_worker_ask(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_worker_answers(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_answers_look(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_worker_complete(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_complete(ngx_http_request_t *r,
    ngx_mcp_op_update_t *op, ngx_mcp_json_t *result);
static ngx_int_t ngx_mcp_complete_check(ngx_http_request_t *r,
    ngx_mcp_amend_t *amend, ngx_mcp_op_get_t *task);
static ngx_int_t ngx_mcp_complete_fail(ngx_http_request_t *r,
    ngx_mcp_completing_t *c);
static ngx_int_t ngx_mcp_completed(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_worker_fail(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_fail_url(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_op_update_t *op, ngx_mcp_json_t *error, ngx_mcp_json_t *message);
static ngx_int_t ngx_mcp_fail_ask(ngx_http_request_t *r,
    ngx_mcp_amend_t *amend, ngx_mcp_op_get_t *task);
static ngx_int_t ngx_mcp_worker_release(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);

static ngx_mcp_worker_update_t *ngx_mcp_worker_update(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_uint_t event, ngx_mcp_member_t *members,
    ngx_uint_t n, ngx_int_t *rc);
static ngx_int_t ngx_mcp_worker_updated(ngx_http_request_t *r, ngx_mcp_op_t *o);


static ngx_mcp_method_t  ngx_mcp_worker_methods[] = {
    { ngx_string("worker/claim"), ngx_mcp_worker_claim, 0, 0, 0 },
    { ngx_string("worker/heartbeat"), ngx_mcp_worker_heartbeat, 0, 0, 0 },
    { ngx_string("worker/progress"), ngx_mcp_worker_progress, 0, 0, 0 },
    { ngx_string("worker/ask"), ngx_mcp_worker_ask, 0, 0, 0 },
    { ngx_string("worker/answers"), ngx_mcp_worker_answers, 0, 0, 0 },
    { ngx_string("worker/complete"), ngx_mcp_worker_complete, 0, 0, 0 },
    { ngx_string("worker/fail"), ngx_mcp_worker_fail, 0, 0, 0 },
    { ngx_string("worker/release"), ngx_mcp_worker_release, 0, 0, 0 },
    { ngx_null_string, NULL, 0, 0, 0 }
};


ngx_int_t
ngx_mcp_worker_handler(ngx_http_request_t *r)
{
    ngx_str_t            allow;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    r->disable_not_modified = 1;

    if (!lcf->open && !ngx_mcp_local(r)) {
        return ngx_mcp_refuse(r, NGX_HTTP_FORBIDDEN,
                              NGX_MCP_RPC_INVALID_REQUEST,
                              "Invalid Request: only clients on the local "
                              "machine are allowed");
    }

    /* pages of other origins have no access */

    if (!ngx_mcp_same_origin(r)) {
        return ngx_mcp_refuse(r, NGX_HTTP_FORBIDDEN,
                              NGX_MCP_RPC_INVALID_REQUEST,
                              "Invalid Request: Origin or Host is not allowed");
    }

    if (r->method != NGX_HTTP_POST) {
        ngx_str_set(&allow, "POST");

        if (ngx_mcp_add_header(r, "Allow", &allow) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_mcp_refuse(r, NGX_HTTP_NOT_ALLOWED,
                              NGX_MCP_RPC_INVALID_REQUEST,
                              "Invalid Request: HTTP method not allowed, use "
                              "POST");
    }

    return ngx_mcp_post(r, ngx_mcp_worker_message);
}


static void
ngx_mcp_worker_message(ngx_http_request_t *r)
{
    ngx_int_t          rc;
    ngx_mcp_ctx_t     *ctx;
    ngx_mcp_method_t  *m;

    rc = ngx_mcp_read(r, &ctx);

    if (rc == NGX_DECLINED
        && ctx->rpc.kind != NGX_MCP_RPC_REQUEST)
    {
        rc = ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                           NGX_MCP_RPC_INVALID_REQUEST,
                           "Invalid Request: id and method are required", NULL);
    }

    if (rc == NGX_DECLINED) {
        m = ngx_mcp_method_find(ngx_mcp_worker_methods, &ctx->rpc.method);
        rc = m ? m->handler(r, ctx) : NGX_DECLINED;
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_mcp_error(r, ctx, NGX_HTTP_OK,
                           NGX_MCP_RPC_NO_METHOD,
                           "Method not found", NULL);
    }

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_mcp_worker_heartbeat(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    int64_t                   n;
    ngx_int_t                 rc;
    const char               *err;
    ngx_mcp_json_t            lease;
    ngx_mcp_worker_update_t  *h;
    ngx_mcp_member_t          members[] = {
        { ngx_string("leaseMs"), &lease }
    };

    h = ngx_mcp_worker_update(r, ctx, NGX_MCP_EV_HEARTBEAT, members, 1, &rc);
    if (h == NULL) {
        return rc;
    }

    n = 0;
    err = ngx_mcp_worker_ms(&lease, 86400000, &n);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    h->op.event.lease_time = (uint32_t) n;

    return ngx_mcp_request_op(r, &h->op.op, ngx_mcp_worker_updated);
}


static ngx_int_t
ngx_mcp_worker_progress(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t                 rc;
    const char               *err;
    ngx_mcp_json_t            progress, total, message;
    ngx_mcp_worker_update_t  *h;
    ngx_mcp_member_t          members[] = {
        { ngx_string("progress"), &progress },
        { ngx_string("total"), &total },
        { ngx_string("message"), &message }
    };

    h = ngx_mcp_worker_update(r, ctx, NGX_MCP_EV_PROGRESS, members, 3, &rc);
    if (h == NULL) {
        return rc;
    }

    err = ngx_mcp_progress_args(&progress, &total, &message, &h->op);
    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    return ngx_mcp_request_op(r, &h->op.op, ngx_mcp_worker_updated);
}


static ngx_int_t
ngx_mcp_worker_ask(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t                 rc;
    ngx_mcp_json_t            requests, message;
    ngx_mcp_worker_update_t  *h;
    ngx_mcp_member_t          members[] = {
        { ngx_string("inputRequests"), &requests },
        { ngx_string("message"), &message }
    };

    h = ngx_mcp_worker_update(r, ctx, NGX_MCP_EV_ASK, members, 2, &rc);
    if (h == NULL) {
        return rc;
    }

    if (message.type != NGX_MCP_JSON_NONE) {

        if (message.type != NGX_MCP_JSON_STRING
            || message.text.len > NGX_MCP_MAX_MESSAGE)
        {
            return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                                   "message must be a JSON string of at most "
                                   "1024 bytes");
        }

        h->op.change.payload[NGX_MCP_MESSAGE] = message.text;
    }

    return ngx_mcp_ask(r, &h->op, &requests, ngx_mcp_worker_updated);
}


static ngx_int_t
ngx_mcp_worker_answers(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    int64_t                   n;
    ngx_int_t                 rc;
    const char               *err;
    ngx_mcp_json_t            wait;
    ngx_mcp_answers_t        *a;
    ngx_mcp_worker_update_t  *h;
    ngx_mcp_member_t          members[] = {
        { ngx_string("waitMs"), &wait }
    };

    h = ngx_mcp_worker_update(r, ctx, NGX_MCP_EV_HEARTBEAT, members, 1, &rc);
    if (h == NULL) {
        return rc;
    }

    n = 0;
    err = ngx_mcp_worker_ms(&wait, 3600000, &n);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    a = ngx_pcalloc(r->pool, sizeof(ngx_mcp_answers_t));
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->lease_token = h->op.event.lease_token;
    ngx_mcp_wait_init(&a->wait, r, ctx);
    a->wait.id = h->op.id;
    a->wait.task = 1;
    a->wait.look = ngx_mcp_answers_look;
    a->wait.until = ngx_current_msec
                    + ngx_min(n, NGX_MCP_WORKER_WAIT);

    return ngx_mcp_wait(&a->wait);
}


static ngx_int_t
ngx_mcp_answers_look(ngx_mcp_wait_t *w)
{
    ngx_mcp_out_t        out;
    ngx_mcp_view_t      *v;
    ngx_mcp_op_get_t     op;
    ngx_mcp_answers_t   *a;

    a = (ngx_mcp_answers_t *) w;

    ngx_memzero(&op, sizeof(ngx_mcp_op_get_t));
    op.op.type = NGX_MCP_OP_GET;
    op.op.pool = w->r->pool;
    op.id = w->id;
    op.watch = 1;

    /* the payloads are read only if there is something to send */

    if (ngx_mcp_lookup(w->zone, &op.op) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    v = &op.view;

    if (op.op.reason == NGX_MCP_OK
        && v->task.state == NGX_MCP_INPUT_REQUIRED
        && v->task.lease_token == a->lease_token
        && ngx_current_msec < w->until && !ngx_exiting)
    {
        return NGX_DECLINED;
    }

    if (op.op.reason == NGX_MCP_OK) {
        op.want = NGX_MCP_WANT(NGX_MCP_RESPONSES);

        if (ngx_mcp_lookup(w->zone, &op.op) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (op.op.reason == NGX_MCP_OK
        && (a->lease_token == 0 || v->task.lease_token != a->lease_token))
    {
        op.op.reason = NGX_MCP_LEASE_LOST;
    }

    if (op.op.reason != NGX_MCP_OK) {
        return ngx_mcp_worker_refused(w->r, w->ctx, op.op.reason, NULL);
    }

    if (ngx_mcp_terminal(v->task.state)) {
        return ngx_mcp_worker_refused(w->r, w->ctx, NGX_MCP_TERMINAL, v);
    }

    ngx_mcp_out_answer(&out, w->r, w->ctx,
                       128 + v->payload[NGX_MCP_RESPONSES].len);
    ngx_mcp_out_lit(&out, "{\"inputResponses\":");

    if (v->payload[NGX_MCP_RESPONSES].len) {
        ngx_mcp_out_str(&out, &v->payload[NGX_MCP_RESPONSES]);

    } else {
        ngx_mcp_out_lit(&out, "{}");
    }

    ngx_mcp_worker_flags(&out, v, v->drain);
    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_result(w->r, &out);
}


static ngx_int_t
ngx_mcp_worker_complete(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t                 rc;
    ngx_mcp_json_t            object;
    ngx_mcp_result_t          result;
    ngx_mcp_loc_conf_t       *lcf;
    ngx_mcp_worker_update_t  *h;
    ngx_mcp_member_t          members[] = {
        { ngx_string("result"), &object }
    };

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    h = ngx_mcp_worker_update(r, ctx, NGX_MCP_EV_COMPLETE, members, 1, &rc);
    if (h == NULL) {
        return rc;
    }

    if (object.type != NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, "result must be an object");
    }

    ngx_mcp_result_read(&object, &result);

    /* what is sent must not have a member twice */

    if (result.type.type == NGX_MCP_JSON_DUPLICATE
        || result.meta.type == NGX_MCP_JSON_DUPLICATE)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "duplicate resultType or _meta in result");
    }

    switch (result.is_error.type) {

    case NGX_MCP_JSON_NONE:
    case NGX_MCP_JSON_FALSE:
    case NGX_MCP_JSON_TRUE:
        break;

    case NGX_MCP_JSON_DUPLICATE:
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "duplicate isError in result");

    default:
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "isError must be a boolean");
    }

    h->op.event.flags = result.flags;
    h->op.change.payload[NGX_MCP_RESULT] = object.text;

    if (result.is_error.type == NGX_MCP_JSON_TRUE) {
        ngx_mcp_result_message(r->pool, &object, &h->op.change.diagnosis);
    }

    if (lcf->tools && result.is_error.type != NGX_MCP_JSON_TRUE
        && ngx_mcp_tools_output(lcf->tools))
    {
        return ngx_mcp_complete(r, &h->op, &object);
    }

    return ngx_mcp_request_op(r, &h->op.op, ngx_mcp_worker_updated);
}


/* which schema applies is known when the task has been read */

static ngx_int_t
ngx_mcp_complete(ngx_http_request_t *r, ngx_mcp_op_update_t *op,
    ngx_mcp_json_t *result)
{
    ngx_mcp_completing_t  *c;

    c = ngx_pcalloc(r->pool, sizeof(ngx_mcp_completing_t));
    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    c->result = *result;
    c->amend.op = *op;
    c->amend.read = NGX_MCP_WANT_TOOL;
    c->amend.make = ngx_mcp_complete_check;
    c->amend.done = ngx_mcp_completed;

    return ngx_mcp_amend(r, &c->amend);
}


static ngx_int_t
ngx_mcp_complete_check(ngx_http_request_t *r, ngx_mcp_amend_t *amend,
    ngx_mcp_op_get_t *task)
{
    ngx_int_t              rc;
    ngx_mcp_json_t         content;
    ngx_mcp_tool_t        *tool;
    ngx_mcp_loc_conf_t    *lcf;
    ngx_mcp_completing_t  *c;
    ngx_mcp_member_t       members[] = {
        { ngx_string("structuredContent"), &content }
    };

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    c = (ngx_mcp_completing_t *) amend;

    tool = ngx_mcp_tool_find(lcf->tools, &task->view.tool);

    if (tool == NULL || tool->output == NULL || c->text.len) {
        return NGX_DECLINED;
    }

    if (ngx_mcp_json_members(&c->result, members, 1) != NGX_OK) {
        ngx_str_set(&c->text, "is duplicate");

    } else if (content.type == NGX_MCP_JSON_NONE) {
        ngx_str_set(&c->text, "is missing, the tool has an outputSchema");

    } else {
        rc = ngx_mcp_schema_check(r->pool, tool->output, &content,
                                  &c->mismatch, &c->text);

        if (rc != NGX_DECLINED) {
            return (rc == NGX_OK) ? NGX_DECLINED
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    return ngx_mcp_complete_fail(r, c);
}


/* the attempt ends as one that the worker itself gives up for good */

static ngx_int_t
ngx_mcp_complete_fail(ngx_http_request_t *r, ngx_mcp_completing_t *c)
{
    ngx_str_t             message;
    ngx_mcp_out_t         out;
    ngx_mcp_op_update_t  *op;

    op = &c->amend.op;

    ngx_mcp_out_init(&out, r->pool, c->text.len + 64);
    ngx_mcp_out_lit(&out, "Invalid result: structuredContent: ");
    ngx_mcp_out_str(&out, &c->text);

    if (ngx_mcp_out_end(&out, &message) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_mcp_out_init(&out, r->pool, message.len + 64);
    ngx_mcp_out_lit(&out, "{\"code\":-32603,\"message\":");
    ngx_mcp_out_string(&out, &message);
    ngx_mcp_out_lit(&out, "}");

    op->event.type = NGX_MCP_EV_FAIL;
    op->event.flags = NGX_MCP_RPC_ERROR;

    if (ngx_mcp_out_end(&out, &op->change.payload[NGX_MCP_RESULT]) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_mcp_error_message(r->pool, &op->change.payload[NGX_MCP_RESULT],
                          &op->change.diagnosis);

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_completed(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t         *ctx;
    ngx_mcp_completing_t  *c;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    c = (ngx_mcp_completing_t *) o;

    if (o->reason != NGX_MCP_OK || c->text.len == 0) {
        return ngx_mcp_worker_updated(r, o);
    }

    ngx_mcp_set_task(r, ctx, &c->amend.op.view);

    return ngx_mcp_arguments_error(r, ctx, "structuredContent", &c->mismatch,
                                   &c->text);
}


static ngx_int_t
ngx_mcp_worker_fail(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    int64_t                   n;
    ngx_int_t                 rc;
    const char               *err;
    ngx_mcp_json_t            error, retryable, delay, code, message;
    ngx_mcp_worker_update_t  *h;
    ngx_mcp_member_t          members[] = {
        { ngx_string("error"), &error },
        { ngx_string("retryable"), &retryable },
        { ngx_string("delayMs"), &delay }
    };
    ngx_mcp_member_t          inner[] = {
        { ngx_string("code"), &code },
        { ngx_string("message"), &message }
    };

    h = ngx_mcp_worker_update(r, ctx, NGX_MCP_EV_FAIL, members, 3, &rc);
    if (h == NULL) {
        return rc;
    }

    if (error.type != NGX_MCP_JSON_OBJECT
        || ngx_mcp_json_members(&error, inner, 2) != NGX_OK
        || ngx_mcp_json_integer(&code, &n) != NGX_OK
        || message.type != NGX_MCP_JSON_STRING)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "error must be an object with code, an "
                               "integer, and message, a string");
    }

    n = 0;
    err = ngx_mcp_worker_ms(&delay, 86400000, &n);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    if (retryable.type != NGX_MCP_JSON_NONE
        && retryable.type != NGX_MCP_JSON_FALSE
        && retryable.type != NGX_MCP_JSON_TRUE)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "retryable must be a boolean");
    }

    if (retryable.type == NGX_MCP_JSON_TRUE) {
        h->op.event.type = NGX_MCP_EV_RETRY;
        h->op.event.delay = (uint32_t) n;
    }

    h->op.event.flags = NGX_MCP_RPC_ERROR;
    h->op.change.payload[NGX_MCP_RESULT] = error.text;
    ngx_mcp_error_message(r->pool, &error.text, &h->op.change.diagnosis);

    if (ngx_mcp_question_is_error(&error)) {
        return ngx_mcp_fail_url(r, ctx, &h->op, &error, &message);
    }

    return ngx_mcp_request_op(r, &h->op.op, ngx_mcp_worker_updated);
}


/*
 * The error -32042 is only for clients of the legacy era, which open the URLs
 * and call again.  Other clients are asked to open them.
 */

static ngx_int_t
ngx_mcp_fail_url(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_op_update_t *op, ngx_mcp_json_t *error, ngx_mcp_json_t *message)
{
    ngx_int_t            rc;
    ngx_str_t            text;
    ngx_mcp_failing_t   *f;
    ngx_mcp_mismatch_t   mismatch;

    rc = ngx_mcp_question_check(r->pool, NGX_MCP_QUESTION_ERROR, error,
                                &mismatch);
    rc = ngx_mcp_mismatch_text(r->pool, rc, &mismatch, &text);

    if (rc == NGX_DECLINED) {
        return ngx_mcp_mismatch_error(r, ctx, "error", "invalid_question",
                                      &mismatch, &text);
    }

    f = ngx_pcalloc(r->pool, sizeof(ngx_mcp_failing_t));
    if (rc != NGX_OK || f == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    f->error = *error;
    f->message = *message;
    f->amend.op = *op;
    f->amend.read = NGX_MCP_WANT(NGX_MCP_RESPONSES);
    f->amend.make = ngx_mcp_fail_ask;
    f->amend.done = ngx_mcp_worker_updated;

    return ngx_mcp_amend(r, &f->amend);
}


/* the worker has ended its attempt: the answers are for the next one */

static ngx_int_t
ngx_mcp_fail_ask(ngx_http_request_t *r, ngx_mcp_amend_t *amend,
    ngx_mcp_op_get_t *task)
{
    const char           *err;
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_out_t         out;
    ngx_mcp_json_t        requests;
    ngx_mcp_failing_t    *f;
    ngx_mcp_op_update_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    f = (ngx_mcp_failing_t *) amend;
    op = &amend->op;

    if (!(task->view.task.policy.calls & NGX_MCP_ASKABLE)) {
        return NGX_DECLINED;
    }

    /* the version makes the keys unique: no two errors find the same */

    ngx_mcp_out_init(&out, r->pool, f->error.text.len + 256);
    ngx_mcp_question_of_error(&out, &f->error, task->view.task.version);

    requests.type = NGX_MCP_JSON_OBJECT;

    if (ngx_mcp_out_end(&out, &requests.text) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    err = ngx_mcp_input_check(&requests,
                              &task->view.payload[NGX_MCP_RESPONSES]);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    op->event.type = NGX_MCP_EV_ASK;
    op->event.release = 1;
    op->event.flags = 0;
    op->change.payload[NGX_MCP_REQUESTS] = requests.text;
    ngx_str_null(&op->change.payload[NGX_MCP_RESULT]);

    if (f->message.text.len <= NGX_MCP_MAX_MESSAGE) {
        op->change.payload[NGX_MCP_MESSAGE] = f->message.text;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_worker_release(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t                 rc;
    ngx_mcp_worker_update_t  *h;

    h = ngx_mcp_worker_update(r, ctx, NGX_MCP_EV_RELEASE, NULL, 0, &rc);
    if (h == NULL) {
        return rc;
    }

    return ngx_mcp_request_op(r, &h->op.op, ngx_mcp_worker_updated);
}


/*
 * Creates an update from taskId, lease and the members of the method.  NULL: rc
 * is the value to finalize with.
 */

static ngx_mcp_worker_update_t *
ngx_mcp_worker_update(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t event, ngx_mcp_member_t *members, ngx_uint_t n, ngx_int_t *rc)
{
    ngx_str_t                 text;
    ngx_mcp_json_t            id, lease;
    ngx_mcp_worker_update_t  *h;
    ngx_mcp_loc_conf_t       *lcf;
    ngx_mcp_member_t          all[2 + NGX_MCP_UPDATE_MEMBERS] = {
        { ngx_string("taskId"), &id },
        { ngx_string("lease"), &lease }
    };

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    /* all members in one pass, because the text may be long */

    if (n) {
        ngx_memcpy(&all[2], members, n * sizeof(ngx_mcp_member_t));
    }

    if (ngx_mcp_members(ctx, all, 2 + n) != NGX_OK) {
        *rc = ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                              "duplicate member in params");
        return NULL;
    }

    if (id.type != NGX_MCP_JSON_STRING
        || lease.type != NGX_MCP_JSON_STRING)
    {
        *rc = ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                              "taskId and lease must be strings");
        return NULL;
    }

    h = ngx_mcp_op(r, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_worker_update_t));

    if (h == NULL
        || ngx_mcp_json_string(r->pool, &id, &text) == NGX_ERROR)
    {
        *rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
        return NULL;
    }

    if (ngx_mcp_id_parse(&h->op.id, &text) != NGX_OK) {
        *rc = ngx_mcp_worker_refused(r, ctx, NGX_MCP_NOT_FOUND, NULL);
        return NULL;
    }

    ctx->task_id = text;

    h->op.event.type = event;
    h->op.event.lease_token = ngx_mcp_lease_token(&lease);
    h->op.event.progress = -1;
    h->op.change.max_payload = lcf->max_payload;

    return h;
}


/* the response to an update */

static ngx_int_t
ngx_mcp_worker_updated(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_out_t         out;
    ngx_mcp_op_update_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_update_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_worker_refused(r, ctx, o->reason, &op->view);
    }

    ngx_mcp_set_task(r, ctx, &op->view);

    ngx_mcp_out_answer(&out, r, ctx, 128);
    ngx_mcp_out_lit(&out, "{\"phase\":\"");
    ngx_mcp_out_str(&out, ngx_mcp_state_name(op->view.task.state));
    ngx_mcp_out_lit(&out, "\"");
    ngx_mcp_worker_flags(&out, &op->view, op->view.drain);
    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_result(r, &out);
}


/*
 * In every response: whether the task is cancelled, and whether the worker is
 * to drain, that is, to claim no more tasks.
 */

void
ngx_mcp_worker_flags(ngx_mcp_out_t *out, ngx_mcp_view_t *v, ngx_uint_t drain)
{
    if (v && v->task.state == NGX_MCP_CANCELLED) {
        ngx_mcp_out_lit(out, ",\"cancelled\":true");

    } else {
        ngx_mcp_out_lit(out, ",\"cancelled\":false");
    }

    if (drain || ngx_exiting) {
        ngx_mcp_out_lit(out, ",\"drain\":true");

    } else {
        ngx_mcp_out_lit(out, ",\"drain\":false");
    }
}


/* the task may be NULL; its state is sent only if it has ended */

ngx_int_t
ngx_mcp_worker_refused(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t reason, ngx_mcp_view_t *v)
{
    ngx_str_t      data;
    ngx_mcp_out_t  out;

    switch (reason) {

    case NGX_MCP_NOT_FOUND:
    case NGX_MCP_LEASE_LOST:
    case NGX_MCP_TERMINAL:
        break;

    default:
        return ngx_mcp_refused(r, ctx, reason);
    }

    /* in all these cases the worker no longer holds the task */

    ngx_mcp_out_init(&out, r->pool, 128);
    ngx_mcp_out_lit(&out, "{\"reason\":\"");
    ngx_mcp_out_str(&out, ngx_mcp_reason_name(reason));
    ngx_mcp_out_lit(&out, "\"");

    if (reason != NGX_MCP_TERMINAL) {
        v = NULL;
    }

    if (v) {
        ngx_mcp_out_lit(&out, ",\"phase\":\"");
        ngx_mcp_out_str(&out, ngx_mcp_state_name(v->task.state));
        ngx_mcp_out_lit(&out, "\"");
    }

    ngx_mcp_worker_flags(&out, v, v && v->drain);
    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &data) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_error(r, ctx, NGX_HTTP_OK, NGX_MCP_RPC_LEASE,
                         "The worker no longer holds the task", &data);
}


/* returns NULL, or an error message; ms is unchanged if there is no value */

const char *
ngx_mcp_worker_ms(ngx_mcp_json_t *value, int64_t max, int64_t *ms)
{
    if (value->type == NGX_MCP_JSON_NONE) {
        return NULL;
    }

    if (ngx_mcp_json_integer(value, ms) != NGX_OK
        || *ms < 0 || *ms > max)
    {
        return "leaseMs and delayMs must be integers from 0 to 86400000, "
               "waitMs from 0 to 3600000";
    }

    return NULL;
}
