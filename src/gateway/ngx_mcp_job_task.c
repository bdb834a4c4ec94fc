
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Attempts of a job: how they begin, and how their outcome is stored. */


#include "ngx_mcp_job.h"
#include "ngx_mcp_result.h"


/* buffer for the text of a failure */
#define NGX_MCP_JOB_REASON  2048

/* time an exiting process tries to store an outcome, in milliseconds */
#define NGX_MCP_JOB_EXIT    5000


static void ngx_mcp_job_attempt_done(ngx_mcp_job_t *job, ngx_uint_t reason);
static void ngx_mcp_job_begun(ngx_mcp_job_t *job);
static void ngx_mcp_job_end(ngx_mcp_job_t *job, ngx_uint_t event);
static void ngx_mcp_job_finished(ngx_mcp_job_t *job, ngx_uint_t reason);
static void ngx_mcp_job_keep(ngx_mcp_job_t *job);
static void ngx_mcp_job_lost(ngx_mcp_job_t *job);
static void ngx_mcp_job_not_finished(ngx_mcp_job_t *job, ngx_uint_t reason);
static ngx_uint_t ngx_mcp_job_is_final(ngx_uint_t reason);
static ngx_uint_t ngx_mcp_job_may_retry(ngx_mcp_job_t *job);
static ngx_str_t ngx_mcp_job_reason(ngx_mcp_job_t *job);


/* in the order of ngx_mcp_failed_e */

static struct {
    const char  *reason;
    const char  *message;
} ngx_mcp_failures[] = {
    { "failed", "The call failed" },
    { "upstream_unreachable", "No connection to the upstream server" },
    { "upstream_timeout", "The upstream server did not respond in time" },
    { "upstream_status", "The upstream server returned an HTTP error" },
    { "upstream_closed", "The upstream response is incomplete" },
    { "upstream_invalid", NGX_MCP_BAD_RESPONSE },
    { "upstream_too_large", "The upstream response is too large" },
    { "no_memory", "nginx has not enough memory for the response" },
    { "upstream_question", NGX_MCP_BAD_QUESTION },
    { "url_declined", "A URL that the upstream server requires was declined" },
    { "upstream_cancelled", "The upstream server has cancelled its task" },
    { "shutdown", "nginx shut down before the call ended" }
};


/* Submits an attempt; the call is sent when the store allows it. */

void
ngx_mcp_job_attempt(ngx_mcp_job_t *job)
{
    ngx_mcp_op_attempt_t  *op;

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_ATTEMPT) != NGX_OK) {
        return;
    }

    op = &job->op.attempt;

    ngx_memzero(op, sizeof(ngx_mcp_op_attempt_t));
    op->op.type = NGX_MCP_OP_ATTEMPT;
    op->op.pool = job->pool;
    op->id = job->id;
    op->holder = job->holder;
    op->max_zone = (uint32_t) job->lcf->max_running;
    op->max_tool = (uint32_t) job->lcf->max_tool_running;

    job->pass = job->zone->jobs->passes;

    (void) ngx_mcp_job_submit(job, &op->op, ngx_mcp_job_attempt_done);
}


/*
 * The call is sent only after the attempt is stored: after a crash, a call
 * that is not idempotent must not be sent again.
 */

static void
ngx_mcp_job_attempt_done(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    uint64_t         left;
    ngx_msec_t       delay;
    ngx_mcp_task_t  *task;

    switch (reason) {

    case NGX_MCP_OK:
        if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_BEGUN) == NGX_OK) {
            ngx_mcp_job_begun(job);
        }

        break;

    case NGX_MCP_LIMIT_RUNNING:
        if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_FULL) == NGX_OK) {
            ngx_mcp_jobs_line_up(job);
            ngx_mcp_job_stay(job);
        }

        break;

    case NGX_MCP_STATE_INVALID:
    case NGX_MCP_STORE_UNAVAILABLE:
    case NGX_MCP_STORE_FAILED:
    case NGX_MCP_REASONS:
        delay = NGX_MCP_JOB_AGAIN;
        task = &job->op.attempt.view.task;

        if (reason == NGX_MCP_STATE_INVALID && task->state == NGX_MCP_QUEUED) {
            /* the task's backoff time has not ended yet */
            left = (task->step_end > ngx_current_msec)
                   ? task->step_end - ngx_current_msec : 1;
            delay = (ngx_msec_t) ngx_min(left, NGX_MAX_INT32_VALUE);
        }

        if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_DELAYED) == NGX_OK) {
            ngx_mcp_job_delay(job, delay);
        }

        break;

    default:
        ngx_mcp_job_over(job);
    }

    if (job->done) {
        ngx_mcp_jobs_tried(job, reason);
    }
}


static void
ngx_mcp_job_begun(ngx_mcp_job_t *job)
{
    ngx_mcp_task_t  *task;

    task = &job->op.attempt.view.task;

    job->lease_token = task->lease_token;
    job->attempt = task->attempt;
    job->empty_round_trips = 0;
    job->reached = 0;

    if (ngx_mcp_job_send(job, NULL) != NGX_OK) {
        /* no connection or no memory: the upstream has not seen the call */
        job->failure = NGX_MCP_FAILED_UNREACHABLE;
        ngx_mcp_job_post(job);
    }
}


/* The result is a part of the response, which is kept until it is stored. */

void
ngx_mcp_job_complete(ngx_mcp_job_t *job, ngx_str_t *result, ngx_uint_t flags)
{
    ngx_mcp_json_t  object;

    job->result = *result;
    job->flags = flags;
    ngx_str_null(&job->diagnosis);

    if (flags & NGX_MCP_TOOL_ERROR) {
        object.text = *result;
        object.type = NGX_MCP_JSON_OBJECT;

        ngx_mcp_result_message(job->pool, &object, &job->diagnosis);
    }

    ngx_mcp_job_end(job, NGX_MCP_EV_COMPLETE);
}


/* The upstream has responded with a JSON-RPC error. */

void
ngx_mcp_job_error(ngx_mcp_job_t *job, ngx_str_t *error)
{
    job->result = *error;
    job->flags = NGX_MCP_RPC_ERROR;
    ngx_mcp_error_message(job->pool, error, &job->diagnosis);

    ngx_mcp_job_end(job, NGX_MCP_EV_FAIL);
}


/* The call has failed for the reason in job->failure; it may be tried again. */

void
ngx_mcp_job_failed(ngx_mcp_job_t *job)
{
    if (job->lease_token == 0) {

        /* the call was not sent, and no other process will send it */

        if (ngx_mcp_job_orphaned(job->zone, &job->id) != NGX_OK) {
            ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
            return;
        }

        ngx_mcp_job_over(job);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "background call failed: %s, task %V",
                  ngx_mcp_failures[job->failure].reason,
                  &job->sender.task_id);

    if (job->failure != NGX_MCP_FAILED_CANCELLED) {
        ngx_mcp_job_follow_cancel(job);
    }

    ngx_mcp_job_end(job, NGX_MCP_EV_RETRY);
}


/* Fails a task that no process can run.  NGX_ERROR: no memory. */

ngx_int_t
ngx_mcp_job_orphaned(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id)
{
    ngx_mcp_op_update_t  *op;

    op = ngx_mcp_later_op(zone, NGX_MCP_OP_UPDATE);
    if (op == NULL) {
        return NGX_ERROR;
    }

    op->id = *id;
    op->event.type = NGX_MCP_EV_ORPHANED;
    ngx_mcp_later(&op->op);

    return NGX_OK;
}


static void
ngx_mcp_job_end(ngx_mcp_job_t *job, ngx_uint_t event)
{
    if (job->state != NGX_MCP_JOB_KEPT) {
        job->ended = ngx_current_msec;
    }

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_END) != NGX_OK) {
        return;
    }

    job->end = event;

    if (!ngx_mcp_job_waits(job)) {
        ngx_mcp_job_end_submit(job);
    }
}


/* Submits an outcome again that the store did not accept before. */

void
ngx_mcp_job_end_again(ngx_mcp_job_t *job)
{
    ngx_mcp_job_end(job, job->end);
}


void
ngx_mcp_job_end_submit(ngx_mcp_job_t *job)
{
    ngx_mcp_op_update_t  *op;

    if (job->end != NGX_MCP_EV_RETRY) {
        op = ngx_mcp_job_change(job, job->end, job->pool);
        op->event.flags = (uint8_t) job->flags;
        op->change.payload[NGX_MCP_RESULT] = job->result;
        op->change.diagnosis = job->diagnosis;

        (void) ngx_mcp_job_submit(job, &op->op, ngx_mcp_job_finished);
        return;
    }

    op = ngx_mcp_job_change(job, ngx_mcp_job_may_retry(job)
                                 ? NGX_MCP_EV_RETRY
                                 : NGX_MCP_EV_FAIL, job->pool);
    op->change.payload[NGX_MCP_RESULT] = ngx_mcp_job_reason(job);

    ngx_str_set(&op->change.diagnosis, "");

    if (op->change.payload[NGX_MCP_RESULT].len == 0) {
        ngx_mcp_job_keep(job);
        return;
    }

    op->event.flags = NGX_MCP_RPC_ERROR;
    ngx_mcp_error_message(job->pool, &op->change.payload[NGX_MCP_RESULT],
                          &op->change.diagnosis);

    /* the text of a failure is short: the limit does not apply */

    op->change.max_payload = 0;

    /* the questions of a failed attempt are removed */

    ngx_str_set(&op->change.payload[NGX_MCP_REQUESTS], "");

    (void) ngx_mcp_job_submit(job, &op->op, ngx_mcp_job_not_finished);
}


static void
ngx_mcp_job_finished(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    if (reason == NGX_MCP_LEASE_LOST) {
        ngx_mcp_job_lost(job);
        return;
    }

    if (ngx_mcp_job_is_final(reason)) {
        ngx_mcp_job_over(job);
        return;
    }

    if (ngx_mcp_job_unsaved(reason)) {
        ngx_mcp_job_keep(job);
        return;
    }

    /* the tool has run, but its result cannot be stored: no retry */

    job->reached = 1;
    job->idempotent = 0;
    job->failure = NGX_MCP_FAILED_TOO_LARGE;
    ngx_mcp_job_failed(job);
}


/*
 * Keeps the outcome until the store is available again.  An exiting process
 * does not wait long, and not at all if the store belongs to another instance
 * of nginx: it does not get that back.
 */

static void
ngx_mcp_job_keep(ngx_mcp_job_t *job)
{
    if (ngx_exiting
        && (!job->zone->ready
            || ngx_current_msec - job->ended >= NGX_MCP_JOB_EXIT))
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "outcome of background call not saved, because the "
                      "store is unavailable or used by another instance of "
                      "nginx, task %V", &job->sender.task_id);
        ngx_mcp_job_over(job);
        return;
    }

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_KEEP) == NGX_OK) {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
    }
}


/*
 * The attempt has ended without this outcome.  The next event finds out if the
 * task is repeated, or has another holder.  The outcome is submitted again only
 * if the task still looks unchanged after some time.
 */

static void
ngx_mcp_job_lost(ngx_mcp_job_t *job)
{
    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_KEEP) == NGX_OK) {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
        ngx_mcp_job_post(job);
    }
}


static void
ngx_mcp_job_not_finished(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    ngx_mcp_op_update_t  *op;

    op = &job->op.update;

    if (reason == NGX_MCP_LEASE_LOST) {
        ngx_mcp_job_lost(job);
        return;
    }

    if (ngx_mcp_job_is_final(reason)) {

        if (reason == NGX_MCP_OK && op->view.task.state == NGX_MCP_QUEUED) {
            ngx_mcp_job_restart(job);

        } else {
            ngx_mcp_job_over(job);
        }

        return;
    }

    if (ngx_mcp_job_unsaved(reason)) {
        ngx_mcp_job_keep(job);
        return;
    }

    if (op->change.payload[NGX_MCP_RESULT].len) {
        /* the task fails without a reason if the zone has no space for it */
        ngx_str_null(&op->change.payload[NGX_MCP_RESULT]);
        op->event.type = NGX_MCP_EV_FAIL;
        op->event.flags = 0;

        (void) ngx_mcp_job_submit(job, &op->op, ngx_mcp_job_not_finished);
        return;
    }

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_KEEP) == NGX_OK) {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
    }
}


/* The change is stored, or this job must not change the task any more. */

static ngx_uint_t
ngx_mcp_job_is_final(ngx_uint_t reason)
{
    switch (reason) {
    case NGX_MCP_OK:
    case NGX_MCP_TERMINAL:
    case NGX_MCP_NOT_FOUND:
    case NGX_MCP_STATE_INVALID:
        return 1;
    default:
        return 0;
    }
}


/* The store may accept the change later, or there was no memory. */

ngx_uint_t
ngx_mcp_job_unsaved(ngx_uint_t reason)
{
    return reason == NGX_MCP_STORE_UNAVAILABLE
           || reason == NGX_MCP_STORE_FAILED
           || reason == NGX_MCP_REASONS;
}


/* Prepares another attempt. */

void
ngx_mcp_job_restart(ngx_mcp_job_t *job)
{
    ngx_mcp_detached_t  *call;

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_RETRY) != NGX_OK) {
        return;
    }

    call = job->call;

    job->call = NULL;
    job->delayed = 0;
    job->lease_token = 0;
    job->failure = NGX_MCP_FAILED_NOT;
    job->asked = 0;
    job->questions.nelts = 0;
    ngx_mcp_job_follow_clear(job);
    ngx_mcp_job_note_drop(job);
    ngx_mcp_job_post(job);

    if (call) {
        /* the rest of its response belongs to the failed attempt */
        ngx_mcp_detached_end(call);
    }
}


/*
 * A call that the upstream has not received may be sent again.  A call that it
 * may have received is sent again only if the tool is idempotent and the
 * failure may be temporary.
 */

static ngx_uint_t
ngx_mcp_job_may_retry(ngx_mcp_job_t *job)
{
    if (job->failure == NGX_MCP_FAILED_SHUTDOWN) {
        return 0;
    }

    if (!job->reached) {
        return job->failure == NGX_MCP_FAILED_UNREACHABLE;
    }

    return job->idempotent
           && (job->failure == NGX_MCP_FAILED_UNREACHABLE
               || job->failure == NGX_MCP_FAILED_TIMED_OUT
               || job->failure == NGX_MCP_FAILED_CUT_SHORT
               || (job->failure == NGX_MCP_FAILED_BAD_STATUS
                   && job->status >= NGX_HTTP_BAD_GATEWAY
                   && job->status <= NGX_HTTP_GATEWAY_TIME_OUT));
}


/* Returns the failure as a JSON-RPC error; empty: no memory. */

static ngx_str_t
ngx_mcp_job_reason(ngx_mcp_job_t *job)
{
    u_char     *p, *last;
    ngx_str_t   text;

    ngx_str_null(&text);

    if (job->reason == NULL) {
        job->reason = ngx_pnalloc(job->pool, NGX_MCP_JOB_REASON);
        if (job->reason == NULL) {
            return text;
        }
    }

    last = job->reason + NGX_MCP_JOB_REASON;

    p = ngx_slprintf(job->reason, last, "{\"code\":%d,\"message\":\"%s\","
                     "\"data\":{\"reason\":\"%s\"",
                     NGX_MCP_RPC_UPSTREAM,
                     ngx_mcp_failures[job->failure].message,
                     ngx_mcp_failures[job->failure].reason);

    if (job->failure == NGX_MCP_FAILED_BAD_STATUS) {
        p = ngx_slprintf(p, last, ",\"status\":%ui", job->status);
    }

    /* the names in it may be long when they are escaped */

    if (job->failure == NGX_MCP_FAILED_BAD_QUESTION
        && job->detail.len && job->detail.len < NGX_MCP_JOB_REASON / 2)
    {
        p = ngx_slprintf(p, last, ",\"detail\":%V", &job->detail);
    }

    p = ngx_slprintf(p, last, "}}");

    text.data = job->reason;
    text.len = p - job->reason;

    return text;
}
