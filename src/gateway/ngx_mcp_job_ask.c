
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Questions of the upstream and their answers.
 *
 * A legacy server sends questions as requests on the stream of the call, and
 * receives each answer in a message of its own.  A modern server ends a round
 * trip with its questions, and receives the answers with the next one.  In a
 * task, each question has a key that is never used again.
 */


#include "ngx_mcp_job.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_equal.h"
#include "ngx_mcp_input.h"
#include "ngx_mcp_question.h"


/* limit of open requests: a server could make nginx answer any number */
#define NGX_MCP_JOB_MAX_REQUESTS  8

/* limit of round trips in a row without a question */
#define NGX_MCP_JOB_MAX_EMPTY  16


static ngx_uint_t ngx_mcp_job_answers_itself(ngx_mcp_job_t *job,
    ngx_mcp_rpc_t *rpc);
static ngx_int_t ngx_mcp_job_keep(ngx_mcp_job_t *job, ngx_str_t *id,
    ngx_str_t *request);
static ngx_int_t ngx_mcp_job_input_read(ngx_mcp_job_t *job,
    ngx_mcp_json_t *result, ngx_mcp_json_t *requests, ngx_mcp_json_t *state);
static void ngx_mcp_job_pass_questions(ngx_mcp_job_t *job,
    ngx_mcp_json_t *result);
static ngx_int_t ngx_mcp_job_with_params(ngx_mcp_job_t *job,
    ngx_mcp_json_t *requests);
static ngx_int_t ngx_mcp_job_key(ngx_mcp_job_t *job, ngx_mcp_question_t *q,
    ngx_str_t *responses);
static ngx_uint_t ngx_mcp_job_used(ngx_mcp_job_t *job, ngx_mcp_question_t *q,
    ngx_str_t *responses);
static void ngx_mcp_job_ask(ngx_mcp_job_t *job);
static ngx_uint_t ngx_mcp_job_saved(ngx_mcp_job_t *job, ngx_mcp_view_t *v);
static void ngx_mcp_job_asked(ngx_mcp_job_t *job, ngx_uint_t reason);
static ngx_int_t ngx_mcp_job_requests(ngx_mcp_job_t *job, ngx_str_t *responses,
    ngx_pool_t *pool, ngx_str_t *text);
static void ngx_mcp_job_remove(ngx_mcp_job_t *job, ngx_uint_t i);
static ngx_mcp_question_t *ngx_mcp_job_withdrawn_one(ngx_mcp_job_t *job);
static void ngx_mcp_job_unask(ngx_mcp_job_t *job, ngx_mcp_question_t *q);
static void ngx_mcp_job_unasked(ngx_mcp_job_t *job, ngx_uint_t reason);
static ngx_int_t ngx_mcp_job_reply(ngx_mcp_job_t *job, ngx_str_t *id,
    const char *kind, ngx_str_t *value, ngx_uint_t answer);
static ngx_int_t ngx_mcp_job_replies(ngx_mcp_job_t *job, ngx_str_t *responses);
static ngx_int_t ngx_mcp_job_next(ngx_mcp_job_t *job, ngx_str_t *responses);
static void ngx_mcp_job_forget(ngx_mcp_job_t *job);


/* Legacy: handles a request on the stream of the call. */

void
ngx_mcp_job_question(ngx_mcp_job_t *job, ngx_mcp_rpc_t *rpc)
{
    ngx_str_t      request;
    ngx_mcp_out_t  out;

    if (ngx_mcp_job_answers_itself(job, rpc)) {
        return;
    }

    ngx_mcp_out_init(&out, job->round_pool, rpc->params.text.len
                                                 + rpc->method.len + 64);
    ngx_mcp_out_lit(&out, "{\"method\":");
    ngx_mcp_out_string(&out, &rpc->method);
    ngx_mcp_out_lit(&out, ",\"params\":");

    if (rpc->params.type == NGX_MCP_JSON_NONE) {
        ngx_mcp_out_lit(&out, "{}");

    } else {
        ngx_mcp_out_str(&out, &rpc->params.text);
    }

    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &request) != NGX_OK) {
        job->invalid = 1;
        return;
    }

    if (ngx_mcp_job_refuses(job, &rpc->id.text, &request)) {
        return;
    }

    if (ngx_mcp_job_keep(job, &rpc->id.text, &request) != NGX_OK) {
        job->invalid = 1;
        return;
    }

    /* if questions are open already, this one is asked after them */

    if (!ngx_mcp_job_is_asked(job->state) && !ngx_mcp_job_waits(job)) {
        ngx_mcp_job_ask_pending(job);
    }
}


/* Responds to pings and to requests that cannot be a question. */

static ngx_uint_t
ngx_mcp_job_answers_itself(ngx_mcp_job_t *job, ngx_mcp_rpc_t *rpc)
{
    ngx_uint_t        i;
    static ngx_str_t  empty = ngx_string("{}");
    static ngx_str_t  ping = ngx_string("ping");
    static ngx_str_t  unknown = ngx_string("{\"code\":-32601,"
                                       "\"message\":\"Method not found\"}");
    static ngx_str_t  many = ngx_string("{\"code\":-32603,"
                                "\"message\":\"More than 64 open requests\"}");
    static ngx_str_t  questions[] = {
        ngx_string("elicitation/create"),
        ngx_string("sampling/createMessage"),
        ngx_string("roots/list"),
        ngx_null_string
    };

    if (rpc->method.len == ping.len
        && ngx_strncmp(rpc->method.data, ping.data, ping.len) == 0)
    {
        ngx_mcp_job_answer(job, &rpc->id.text, "result", &empty);
        return 1;
    }

    if (job->questions.nelts >= NGX_MCP_MAX_QUESTIONS) {
        ngx_mcp_job_answer(job, &rpc->id.text, "error", &many);
        return 1;
    }

    for (i = 0; questions[i].len; i++) {
        if (rpc->method.len == questions[i].len
            && ngx_strncmp(rpc->method.data, questions[i].data,
                           questions[i].len)
               == 0)
        {
            return 0;
        }
    }

    ngx_mcp_job_answer(job, &rpc->id.text, "error", &unknown);

    return 1;
}


/* Above the limit nothing is sent: it would use up all connections. */

void
ngx_mcp_job_answer(ngx_mcp_job_t *job, ngx_str_t *id, const char *kind,
    ngx_str_t *value)
{
    if (job->requests <= NGX_MCP_JOB_MAX_REQUESTS) {
        (void) ngx_mcp_job_reply(job, id, kind, value, 0);
    }
}


static ngx_int_t
ngx_mcp_job_keep(ngx_mcp_job_t *job, ngx_str_t *id, ngx_str_t *request)
{
    ngx_mcp_question_t  *q;

    q = ngx_array_push(&job->questions);
    if (q == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(q, sizeof(ngx_mcp_question_t));

    q->id.len = id->len;
    q->id.data = ngx_pstrdup(job->round_pool, id);
    q->request.len = request->len;
    q->request.data = ngx_pstrdup(job->round_pool, request);

    if (q->id.data == NULL || q->request.data == NULL) {
        job->questions.nelts--;
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Modern: handles a result that has questions, a request state, or both. */

void
ngx_mcp_job_input_required(ngx_mcp_job_t *job, ngx_mcp_json_t *result)
{
    ngx_mcp_json_t  requests, state;

    if (ngx_mcp_job_input_read(job, result, &requests, &state) != NGX_OK) {
        ngx_mcp_job_failed(job);
        return;
    }

    if (job->caller && job->asks && job->remote.len == 0) {

        /* not "input=task": the client still waits, and gets the questions */

        ngx_mcp_job_pass_questions(job, result);
        return;
    }

    ngx_str_null(&job->request_state);

    if (state.type == NGX_MCP_JSON_STRING) {
        job->request_state.len = state.text.len;
        job->request_state.data = ngx_pstrdup(job->round_pool, &state.text);

        if (job->request_state.data == NULL) {
            job->request_state.len = 0;
        }
    }

    job->empty_round_trips = (requests.type == NGX_MCP_JSON_NONE)
                             ? job->empty_round_trips + 1 : 0;

    if (job->empty_round_trips > NGX_MCP_JOB_MAX_EMPTY
        || ngx_mcp_job_questions(job, &requests) != NGX_OK)
    {
        job->failure = NGX_MCP_FAILED_NOT_VALID;
        ngx_mcp_job_failed(job);
        return;
    }

    ngx_mcp_job_round_ended(job);
}


/* Asks; without questions, the next event starts the next round trip. */

void
ngx_mcp_job_round_ended(ngx_mcp_job_t *job)
{
    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_INPUT_REQUIRED) == NGX_OK
        && job->questions.nelts
        && !ngx_mcp_job_waits(job))
    {
        ngx_mcp_job_ask(job);
    }
}


/* NGX_ERROR: the failure is set; without questions, requests are NONE. */

static ngx_int_t
ngx_mcp_job_input_read(ngx_mcp_job_t *job, ngx_mcp_json_t *result,
    ngx_mcp_json_t *requests, ngx_mcp_json_t *state)
{
    ngx_str_t         none;
    ngx_mcp_member_t  members[] = {
        { ngx_string("inputRequests"), requests },
        { ngx_string("requestState"), state }
    };

    ngx_str_null(&none);

    if (ngx_mcp_json_members(result, members, 2) != NGX_OK
        || ngx_mcp_job_with_params(job, requests) != NGX_OK
        || (state->type != NGX_MCP_JSON_NONE
            && state->type != NGX_MCP_JSON_STRING)
        || (requests->type != NGX_MCP_JSON_NONE
            && ngx_mcp_input_check(requests, &none))
        || (requests->type == NGX_MCP_JSON_NONE
            && state->type == NGX_MCP_JSON_NONE))
    {
        job->failure = NGX_MCP_FAILED_NOT_VALID;
        return NGX_ERROR;
    }

    return (requests->type == NGX_MCP_JSON_NONE)
           ? NGX_OK
           : ngx_mcp_job_check(job, NGX_MCP_QUESTION_ALL, requests);
}


/* The questions are the result of the call, without ids of the legacy era. */

static void
ngx_mcp_job_pass_questions(ngx_mcp_job_t *job, ngx_mcp_json_t *result)
{
    u_char            *end;
    ngx_str_t          text;
    ngx_mcp_out_t      out;
    ngx_mcp_json_t     requests;
    ngx_mcp_member_t   members[] = {
        { ngx_string("inputRequests"), &requests }
    };

    (void) ngx_mcp_json_members(result, members, 1);

    if (requests.type == NGX_MCP_JSON_NONE) {
        ngx_mcp_job_complete(job, &result->text, 0);
        return;
    }

    end = requests.text.data + requests.text.len;

    ngx_mcp_out_init(&out, job->pool, result->text.len);
    ngx_mcp_out_add(&out, result->text.data,
                    requests.text.data - result->text.data);
    ngx_mcp_question_modern(&out, &requests.text, NGX_MCP_CAN_ALL);
    ngx_mcp_out_add(&out, end, result->text.data + result->text.len - end);

    if (ngx_mcp_out_end(&out, &text) != NGX_OK) {
        ngx_mcp_job_not_asked(job, NGX_MCP_FAILED_NO_MEMORY);
        return;
    }

    ngx_mcp_job_complete(job, &text, 0);
}


/*
 * Adds empty params to questions without params, which MCP allows for some
 * methods.  An empty object of questions becomes NGX_MCP_JSON_NONE.
 */

static ngx_int_t
ngx_mcp_job_with_params(ngx_mcp_job_t *job, ngx_mcp_json_t *requests)
{
    ngx_uint_t           n;
    ngx_mcp_out_t        out;
    ngx_mcp_json_t       key, value, method, params;
    ngx_mcp_json_iter_t  it;
    ngx_mcp_member_t     members[] = {
        { ngx_string("method"), &method },
        { ngx_string("params"), &params }
    };

    if (requests->type != NGX_MCP_JSON_OBJECT) {
        return NGX_OK;
    }

    ngx_mcp_out_init(&out, job->round_pool, requests->text.len + 64);
    ngx_mcp_out_lit(&out, "{");

    ngx_mcp_json_iter(&it, requests);

    for (n = 0;
         ngx_mcp_json_next(&it, &key, &value) == NGX_OK;
         n++)
    {
        if (n) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_out_str(&out, &key.text);
        ngx_mcp_out_lit(&out, ":");

        if (ngx_mcp_json_members(&value, members, 2) == NGX_OK
            && method.type == NGX_MCP_JSON_STRING
            && params.type == NGX_MCP_JSON_NONE)
        {
            ngx_mcp_out_lit(&out, "{\"method\":");
            ngx_mcp_out_str(&out, &method.text);
            ngx_mcp_out_lit(&out, ",\"params\":{}}");

        } else {
            ngx_mcp_out_str(&out, &value.text);
        }
    }

    ngx_mcp_out_lit(&out, "}");

    if (n == 0) {
        requests->type = NGX_MCP_JSON_NONE;
    }

    return ngx_mcp_out_end(&out, &requests->text);
}


ngx_int_t
ngx_mcp_job_questions(ngx_mcp_job_t *job, ngx_mcp_json_t *requests)
{
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;

    if (requests->type == NGX_MCP_JSON_NONE) {
        return NGX_OK;
    }

    ngx_mcp_json_iter(&it, requests);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {
        if (ngx_mcp_job_keep(job, &key.text, &value.text) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Tells if questions or withdrawals wait for the operation in progress. */

ngx_uint_t
ngx_mcp_job_asks_pending(ngx_mcp_job_t *job)
{
    switch (job->state) {

    case NGX_MCP_JOB_CALLING:
    case NGX_MCP_JOB_RESUMING:
        return job->questions.nelts != 0;

    case NGX_MCP_JOB_CALLING_ASKED:
    case NGX_MCP_JOB_RESUMING_ASKED:
        return ngx_mcp_job_withdrawn_one(job) != NULL;

    case NGX_MCP_JOB_INPUT_REQUIRED:
        return job->questions.nelts && job->asked == 0;

    default:
        return 0;
    }
}


void
ngx_mcp_job_ask_pending(ngx_mcp_job_t *job)
{
    if (!ngx_mcp_job_asks_pending(job) || ngx_mcp_job_delayed(job)) {
        return;
    }

    if (ngx_mcp_job_is_open(job->state) && ngx_mcp_job_is_asked(job->state)) {
        ngx_mcp_job_unask(job, ngx_mcp_job_withdrawn_one(job));
        return;
    }

    ngx_mcp_job_ask(job);
}


/* Stores all questions in the task, which becomes input_required. */

static void
ngx_mcp_job_ask(ngx_mcp_job_t *job)
{
    ngx_str_t             text;
    ngx_pool_t           *pool;
    ngx_mcp_op_get_t      get;
    ngx_mcp_op_update_t  *op;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    if (ngx_mcp_job_get(job, &get,
                        NGX_MCP_WANT(NGX_MCP_REQUESTS)
                        | NGX_MCP_WANT(NGX_MCP_RESPONSES), pool)
        != NGX_OK
        || get.op.reason == NGX_MCP_STORE_UNAVAILABLE)
    {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);

    } else if (ngx_mcp_job_saved(job, &get.view)) {

        if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_ASK) == NGX_OK) {
            ngx_mcp_job_post(job);
        }

    } else if (ngx_mcp_job_requests(job,
                                    &get.view.payload[NGX_MCP_RESPONSES],
                                    pool, &text)
               != NGX_OK)
    {
        job->asked = 0;
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);

    } else if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_ASK) == NGX_OK) {
        op = ngx_mcp_job_change(job, NGX_MCP_EV_ASK, pool);
        op->change.payload[NGX_MCP_REQUESTS] = text;

        if (ngx_mcp_job_submit(job, &op->op, ngx_mcp_job_asked) == NGX_AGAIN) {
            job->kept = pool;
            return;
        }
    }

    ngx_destroy_pool(pool);
}


/*
 * Counts in job->asked the questions that are in the task already: a store
 * that has failed may have saved them.  A key that was not saved is not in the
 * task, because no key is used twice.
 */

static ngx_uint_t
ngx_mcp_job_saved(ngx_mcp_job_t *job, ngx_mcp_view_t *v)
{
    ngx_uint_t           i;
    ngx_mcp_json_t       ignored;
    ngx_mcp_question_t  *q;

    q = job->questions.elts;

    for (i = 0; i < job->questions.nelts; i++) {

        if (q[i].key.len == 0
            || (!ngx_mcp_input_answer(&v->payload[NGX_MCP_REQUESTS],
                                      &q[i].key, &ignored)
                && !ngx_mcp_input_answer(&v->payload[NGX_MCP_RESPONSES],
                                         &q[i].key, &ignored)))
        {
            break;
        }
    }

    job->asked = i;

    return i != 0;
}


static void
ngx_mcp_job_asked(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    switch (reason) {

    case NGX_MCP_OK:
        return;

    case NGX_MCP_TERMINAL:
    case NGX_MCP_NOT_FOUND:
    case NGX_MCP_LEASE_LOST:
        ngx_mcp_job_post(job);
        return;
    }

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_NOT_ASKED) != NGX_OK) {
        /* the call has ended in the meantime */
        return;
    }

    if (ngx_mcp_job_unsaved(reason)) {
        job->asked = 0;
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    ngx_mcp_job_not_asked(job, NGX_MCP_FAILED_TOO_LARGE);
}


/* The questions cannot be stored: the call cannot continue or be retried. */

void
ngx_mcp_job_not_asked(ngx_mcp_job_t *job, ngx_uint_t failure)
{
    job->failure = failure;
    job->reached = 1;
    job->idempotent = 0;
    ngx_mcp_job_failed(job);
}


/* Writes all questions as inputRequests and counts them in job->asked. */

static ngx_int_t
ngx_mcp_job_requests(ngx_mcp_job_t *job, ngx_str_t *responses,
    ngx_pool_t *pool, ngx_str_t *text)
{
    ngx_uint_t           i;
    ngx_mcp_out_t        out;
    ngx_mcp_question_t  *q;

    ngx_mcp_out_init(&out, pool, 1024);
    ngx_mcp_out_lit(&out, "{");

    q = job->questions.elts;
    job->asked = 0;

    for (i = 0; i < job->questions.nelts; i++) {

        if (ngx_mcp_job_key(job, &q[i], responses) != NGX_OK) {
            return NGX_ERROR;
        }

        if (i) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_out_str(&out, &q[i].key);
        ngx_mcp_out_lit(&out, ":");
        ngx_mcp_out_str(&out, &q[i].request);
        job->asked++;
    }

    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_end(&out, text);
}


/* Chooses the key: the upstream's, if it has one that was not used before. */

static ngx_int_t
ngx_mcp_job_key(ngx_mcp_job_t *job, ngx_mcp_question_t *q,
    ngx_str_t *responses)
{
    u_char     *p;
    ngx_str_t   base;

    if (job->sender.era == NGX_MCP_MODERN) {
        base = q->id;
        q->key = q->id;

    } else {
        ngx_str_set(&base, "\"question\"");
        q->key.len = 0;
    }

    while (q->key.len == 0
           || ngx_mcp_job_used(job, q, responses))
    {
        p = ngx_pnalloc(job->round_pool, base.len + NGX_INT_T_LEN + 1);
        if (p == NULL) {
            return NGX_ERROR;
        }

        q->key.data = p;
        p = ngx_cpymem(p, base.data, base.len - 1);
        p = ngx_sprintf(p, "-%ui\"", ++job->keys);
        q->key.len = p - q->key.data;
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_mcp_job_used(ngx_mcp_job_t *job, ngx_mcp_question_t *q,
    ngx_str_t *responses)
{
    ngx_mcp_json_t       a, b, ignored;
    ngx_mcp_question_t  *before;

    if (ngx_mcp_input_answer(responses, &q->key, &ignored)) {
        return 1;
    }

    a.text = q->key;

    for (before = job->questions.elts; before != q; before++) {
        b.text = before->key;

        if (ngx_mcp_json_same(&a, &b)) {
            return 1;
        }
    }

    return 0;
}


/*
 * Legacy: the server has cancelled a question.  It is removed from the task;
 * if no other question is open, the task becomes working again.
 */

void
ngx_mcp_job_withdrawn(ngx_mcp_job_t *job, ngx_mcp_json_t *params)
{
    ngx_uint_t           i;
    ngx_mcp_json_t       id, own;
    ngx_mcp_question_t  *q;
    ngx_mcp_member_t     members[] = {
        { ngx_string("requestId"), &id }
    };

    (void) ngx_mcp_json_members(params, members, 1);

    q = job->questions.elts;

    for (i = 0; i < job->questions.nelts; i++) {
        own.text = q[i].id;
        own.type = (own.text.data[0] == '"') ? NGX_MCP_JSON_STRING
                                             : NGX_MCP_JSON_NUMBER;

        if (ngx_mcp_rpc_same_id(&id, &own)) {
            break;
        }
    }

    if (i == job->questions.nelts) {
        return;
    }

    if (i >= job->asked) {
        ngx_mcp_job_remove(job, i);
        return;
    }

    q[i].withdrawn = 1;

    if (!ngx_mcp_job_waits(job)) {
        ngx_mcp_job_ask_pending(job);
    }
}


static void
ngx_mcp_job_remove(ngx_mcp_job_t *job, ngx_uint_t i)
{
    ngx_mcp_question_t  *q;

    q = job->questions.elts;

    job->asked -= (i < job->asked);
    job->questions.nelts--;

    for ( /* void */ ; i < job->questions.nelts; i++) {
        q[i] = q[i + 1];
    }
}


static ngx_mcp_question_t *
ngx_mcp_job_withdrawn_one(ngx_mcp_job_t *job)
{
    ngx_uint_t           i;
    ngx_mcp_question_t  *q;

    q = job->questions.elts;

    for (i = 0; i < job->asked; i++) {
        if (q[i].withdrawn) {
            return &q[i];
        }
    }

    return NULL;
}


/* Submits a withdrawal; no operation may be in progress. */

static void
ngx_mcp_job_unask(ngx_mcp_job_t *job, ngx_mcp_question_t *q)
{
    ngx_pool_t             *pool;
    ngx_mcp_json_t          key;
    ngx_mcp_input_change_t  input;
    ngx_mcp_op_get_t        get;
    ngx_mcp_op_update_t    *op;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    if (ngx_mcp_job_get(job, &get,
                        NGX_MCP_WANT(NGX_MCP_REQUESTS), pool)
        != NGX_OK
        || get.op.reason == NGX_MCP_STORE_UNAVAILABLE)
    {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
        ngx_destroy_pool(pool);
        return;
    }

    if (get.op.reason == NGX_MCP_OK
        && (get.view.task.version < job->version
            || get.view.task.version == q->version))
    {
        /* this version is outdated: the job waits for the current one */
        ngx_destroy_pool(pool);
        return;
    }

    input.taken = 0;
    key.type = NGX_MCP_JSON_STRING;
    key.text = q->key;

    if (get.op.reason == NGX_MCP_OK
        && get.view.task.state == NGX_MCP_INPUT_REQUIRED
        && ngx_mcp_input_drop(pool,
                              &get.view.payload[NGX_MCP_REQUESTS],
                              &key, &input)
           != NGX_OK)
    {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
        ngx_destroy_pool(pool);
        return;
    }

    q->withdrawn = 0;

    if (input.taken) {
        q->version = get.view.task.version;
        job->unasked = q - (ngx_mcp_question_t *) job->questions.elts;

        op = ngx_mcp_job_change(job, input.left
                                     ? NGX_MCP_EV_ANSWER
                                     : NGX_MCP_EV_ANSWER_ALL, pool);
        op->version = q->version;
        op->change.payload[NGX_MCP_REQUESTS] = input.requests;

        if (ngx_mcp_job_submit(job, &op->op, ngx_mcp_job_unasked)
            == NGX_AGAIN)
        {
            job->kept = pool;
            return;
        }
    }

    ngx_destroy_pool(pool);
}


static void
ngx_mcp_job_unasked(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    ngx_mcp_question_t  *q;

    if (reason == NGX_MCP_OK) {
        ngx_mcp_job_remove(job, job->unasked);
        return;
    }

    q = job->questions.elts;
    q += job->unasked;

    if (reason == NGX_MCP_VERSION_CONFLICT) {
        /* another question was answered in the meantime */
        q->withdrawn = 1;
        ngx_mcp_job_post(job);

    } else if (ngx_mcp_job_unsaved(reason)) {
        q->withdrawn = 1;
        q->version = 0;
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
    }
}


/* The task is running again: all questions are answered or withdrawn. */

void
ngx_mcp_job_answered(ngx_mcp_job_t *job)
{
    ngx_int_t          rc;
    ngx_str_t         *responses;
    ngx_pool_t        *pool;
    ngx_mcp_op_get_t   op;

    if (job->sender.era == NGX_MCP_MODERN && job->call) {
        /* ends the old request first; its end posts the event again */
        ngx_mcp_detached_end(job->call);
        return;
    }

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    rc = ngx_mcp_job_get(job, &op, NGX_MCP_WANT(NGX_MCP_RESPONSES), pool);

    if (rc != NGX_OK || op.op.reason == NGX_MCP_STORE_UNAVAILABLE) {
        ngx_destroy_pool(pool);
        ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    if (op.op.reason == NGX_MCP_OK
        && ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_ANSWERED) == NGX_OK)
    {
        responses = &op.view.payload[NGX_MCP_RESPONSES];

        rc = (job->sender.era == NGX_MCP_MODERN)
             ? ngx_mcp_job_next(job, responses)
             : ngx_mcp_job_replies(job, responses);
    }

    ngx_destroy_pool(pool);

    if (rc != NGX_OK) {
        job->failure = (rc == NGX_DECLINED) ? NGX_MCP_FAILED_DECLINED
                                            : NGX_MCP_FAILED_UNREACHABLE;
        ngx_mcp_job_failed(job);
    }
}


/* Legacy: sends a message for each answer. */

static ngx_int_t
ngx_mcp_job_replies(ngx_mcp_job_t *job, ngx_str_t *responses)
{
    ngx_uint_t           i;
    ngx_mcp_json_t       answer, error;
    ngx_mcp_question_t  *q;
    ngx_mcp_member_t     members[] = {
        { ngx_string("error"), &error }
    };

    q = job->questions.elts;

    for (i = 0; i < job->asked; i++) {

        if (!ngx_mcp_input_answer(responses, &q[i].key, &answer)) {
            continue;
        }

        /* a client's error is stored as an answer with a member "error" */

        (void) ngx_mcp_json_members(&answer, members, 1);

        if (ngx_mcp_job_reply(job, &q[i].id,
                              error.type == NGX_MCP_JSON_OBJECT
                              ? "error" : "result",
                              error.type == NGX_MCP_JSON_OBJECT
                              ? &error.text : &answer.text, 1)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ngx_mcp_job_forget(job);

    if (job->questions.nelts && !ngx_mcp_job_waits(job)) {
        ngx_mcp_job_ask_pending(job);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_job_reply(ngx_mcp_job_t *job, ngx_str_t *id, const char *kind,
    ngx_str_t *value, ngx_uint_t answer)
{
    ngx_int_t       rc;
    ngx_str_t       message;
    ngx_pool_t     *pool;
    ngx_mcp_out_t   out;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_out_init(&out, pool, id->len + value->len + 64);
    ngx_mcp_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    ngx_mcp_out_str(&out, id);
    ngx_mcp_out_lit(&out, ",\"");
    ngx_mcp_out_add(&out, (u_char *) kind, ngx_strlen(kind));
    ngx_mcp_out_lit(&out, "\":");
    ngx_mcp_out_str(&out, value);
    ngx_mcp_out_lit(&out, "}");

    rc = ngx_mcp_out_end(&out, &message);

    if (rc == NGX_OK) {
        rc = ngx_mcp_job_notify(job, &message, answer);
    }

    ngx_destroy_pool(pool);

    return rc;
}


/*
 * Modern: sends the call again, with the answers under the upstream's keys.
 * NGX_DECLINED: a URL that the call requires was not opened.
 */

static ngx_int_t
ngx_mcp_job_next(ngx_mcp_job_t *job, ngx_str_t *responses)
{
    ngx_int_t            rc;
    ngx_str_t            text;
    ngx_uint_t           i, n;
    ngx_mcp_out_t        out;
    ngx_mcp_json_t       answer;
    ngx_mcp_question_t  *q;

    ngx_mcp_out_init(&out, job->round_pool, responses->len + 64);
    ngx_mcp_out_lit(&out, "{");

    q = job->questions.elts;

    for (n = 0, i = 0; i < job->asked; i++) {

        if (!ngx_mcp_input_answer(responses, &q[i].key, &answer)) {
            continue;
        }

        if (q[i].required) {

            if (!ngx_mcp_job_accepted(&answer)) {
                return NGX_DECLINED;
            }

            continue;
        }

        if (n++) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_out_str(&out, &q[i].id);
        ngx_mcp_out_lit(&out, ":");
        ngx_mcp_out_str(&out, &answer.text);
    }

    ngx_mcp_out_lit(&out, "}");

    rc = ngx_mcp_out_end(&out, &text);

    ngx_mcp_job_forget(job);

    return (rc == NGX_OK) ? ngx_mcp_job_send(job, &text) : rc;
}


/* Removes the questions that were asked. */

static void
ngx_mcp_job_forget(ngx_mcp_job_t *job)
{
    ngx_uint_t           i, left;
    ngx_mcp_question_t  *q;

    q = job->questions.elts;
    left = job->questions.nelts - job->asked;

    for (i = 0; i < left; i++) {
        q[i] = q[i + job->asked];
    }

    job->questions.nelts = left;
    job->asked = 0;
}
