
/*
 * What a job does to its task.
 */


#include "ngx_mcp_job.h"


static void ngx_mcp_job_keep(ngx_mcp_job_t *job, ngx_mcp_op_update_t *op);
static ngx_uint_t ngx_mcp_job_settled(ngx_uint_t reason);
static void ngx_mcp_job_anew(ngx_mcp_job_t *job);
static ngx_uint_t ngx_mcp_job_may_retry(ngx_mcp_job_t *job);
static ngx_str_t ngx_mcp_job_reason(ngx_mcp_job_t *job, u_char *buf,
    size_t size);


/* in the order of ngx_mcp_failed_e */

static struct {
    const char  *reason;
    const char  *message;
} ngx_mcp_failures[] = {
    { "failed", "The call failed" },
    { "upstream_unreachable", "The server could not be reached" },
    { "upstream_timeout", "The server did not answer in time" },
    { "upstream_status", "The server refused the call" },
    { "upstream_closed", "The server did not finish its answer" },
    { "upstream_invalid", "The server's answer is not valid" },
    { "upstream_too_large", "The server's answer is too large" },
    { "shutdown", "The call was ended by a shutdown" }
};


ngx_int_t
ngx_mcp_job_get(ngx_mcp_job_t *job, ngx_mcp_op_get_t *op, ngx_uint_t want,
    ngx_pool_t *pool)
{
    ngx_memzero(op, sizeof(ngx_mcp_op_get_t));
    op->op.type = NGX_MCP_OP_GET;
    op->op.pool = pool;
    op->id = job->id;
    op->want = want;
    op->watch = 1;

    return ngx_mcp_now(job->zone, &op->op);
}


void
ngx_mcp_job_change(ngx_mcp_job_t *job, ngx_mcp_op_update_t *op,
    ngx_uint_t event)
{
    ngx_memzero(op, sizeof(ngx_mcp_op_update_t));
    op->op.type = NGX_MCP_OP_UPDATE;
    op->op.pool = job->pool;
    op->id = job->id;
    op->event.type = event;
    op->event.lease = job->lease;
    op->event.progress = -1;
    op->event.total = -1;
    op->change.max_payload = job->lcf->max_payload;
}


/* why it was refused, or NGX_MCP_OK */

ngx_uint_t
ngx_mcp_job_update(ngx_mcp_job_t *job, ngx_mcp_op_update_t *op)
{
    if (ngx_mcp_now(job->zone, &op->op) != NGX_OK) {
        return NGX_MCP_REASONS;
    }

    return op->op.reason;
}


void
ngx_mcp_job_complete(ngx_mcp_job_t *job, ngx_str_t *result, ngx_uint_t flags)
{
    ngx_mcp_op_update_t  op;

    ngx_mcp_job_change(job, &op, NGX_MCP_EV_COMPLETE);
    op.event.flags = (uint8_t) flags;
    op.change.payload[NGX_MCP_RESULT] = *result;

    ngx_mcp_job_finish(job, &op);
}


/* the upstream's own error */

void
ngx_mcp_job_error(ngx_mcp_job_t *job, ngx_str_t *error)
{
    ngx_mcp_op_update_t  op;

    ngx_mcp_job_change(job, &op, NGX_MCP_EV_FAIL);
    op.event.flags = NGX_MCP_RPC_ERROR;
    op.change.payload[NGX_MCP_RESULT] = *error;

    ngx_mcp_job_finish(job, &op);
}


void
ngx_mcp_job_finish(ngx_mcp_job_t *job, ngx_mcp_op_update_t *op)
{
    ngx_uint_t  reason;

    reason = ngx_mcp_job_update(job, op);

    if (ngx_mcp_job_settled(reason)) {
        ngx_mcp_job_over(job);
        return;
    }

    if (reason == NGX_MCP_STORE_UNAVAILABLE) {
        ngx_mcp_job_keep(job, op);
        return;
    }

    /* it was done, but there is no room for what came of it */

    job->reached = 1;
    job->idempotent = 0;
    job->why = NGX_MCP_FAILED_TOO_LARGE;
    ngx_mcp_job_failed(job);
}


/* what came of it has to wait for the store; who exits gets that no more */

static void
ngx_mcp_job_keep(ngx_mcp_job_t *job, ngx_mcp_op_update_t *op)
{
    ngx_str_t            *result;
    ngx_mcp_op_update_t  *late;

    if (ngx_exiting) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "the end of a call in the background came too late, "
                      "another instance of nginx has the store, task %V",
                      &job->sender.task_id);
        ngx_mcp_job_over(job);
        return;
    }

    if (op != job->late) {
        late = ngx_palloc(job->pool, sizeof(ngx_mcp_op_update_t));
        if (late == NULL) {
            ngx_mcp_job_over(job);
            return;
        }

        *late = *op;
        result = &late->change.payload[NGX_MCP_RESULT];
        result->data = ngx_pstrdup(job->pool, result);

        if (result->data == NULL) {
            ngx_mcp_job_over(job);
            return;
        }

        job->late = late;
        job->concluded = 1;
    }

    ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
}


/* the task has changed, or is not ours to change any more */

static ngx_uint_t
ngx_mcp_job_settled(ngx_uint_t reason)
{
    switch (reason) {
    case NGX_MCP_OK:
    case NGX_MCP_TERMINAL:
    case NGX_MCP_NOT_FOUND:
    case NGX_MCP_LEASE_LOST:
    case NGX_MCP_STATE_INVALID:
        return 1;
    default:
        return 0;
    }
}


/* the call has failed, for our own reason: it is tried again where it may */

void
ngx_mcp_job_failed(ngx_mcp_job_t *job)
{
    u_char               buf[512];
    ngx_uint_t           reason;
    ngx_mcp_op_update_t  op;

    job->concluded = 1;

    if (job->lease == 0) {

        /* it has not even begun, and nobody else may begin it */

        ngx_mcp_job_change(job, &op, NGX_MCP_EV_ORPHANED);
        (void) ngx_mcp_job_update(job, &op);
        ngx_mcp_job_over(job);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "call in the background failed: %s, task %V",
                  ngx_mcp_failures[job->why].reason,
                  &job->sender.task_id);

    ngx_mcp_job_change(job, &op,
                       ngx_mcp_job_may_retry(job)
                       ? NGX_MCP_EV_RETRY
                       : NGX_MCP_EV_FAIL);
    op.event.flags = NGX_MCP_RPC_ERROR;
    op.change.payload[NGX_MCP_RESULT]
        = ngx_mcp_job_reason(job, buf, sizeof(buf));

    /* our own words are short enough, whatever the limit */

    op.change.max_payload = 0;

    /* questions of an attempt that is over are questions no more */

    ngx_str_set(&op.change.payload[NGX_MCP_REQUESTS], "");

    reason = ngx_mcp_job_update(job, &op);

    if (!ngx_mcp_job_settled(reason)) {
        /* better without a reason than not at all */
        ngx_str_null(&op.change.payload[NGX_MCP_RESULT]);
        op.event.type = NGX_MCP_EV_FAIL;
        op.event.flags = 0;
        reason = ngx_mcp_job_update(job, &op);
    }

    if (!ngx_mcp_job_settled(reason)) {
        /* it looks again, and finds that the call is over */
        job->concluded = 0;
        ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    if (reason != NGX_MCP_OK
        || op.view.task.state != NGX_MCP_QUEUED)
    {
        ngx_mcp_job_over(job);
        return;
    }

    ngx_mcp_job_anew(job);
}


/* another attempt, when it is time */

static void
ngx_mcp_job_anew(ngx_mcp_job_t *job)
{
    if (job->call) {
        /* what it still says is of an attempt that is over */
        ngx_mcp_detached_end(job->call);
    }

    job->lease = 0;
    job->waits = 0;
    job->why = NGX_MCP_FAILED_NOT;
    job->asked = 0;
    job->questions.nelts = 0;
    ngx_mcp_job_post(job);
}


/*
 * What the upstream never saw may be sent again.  What it may have begun, if
 * that does no harm, and if the failure was one on the way.
 */

static ngx_uint_t
ngx_mcp_job_may_retry(ngx_mcp_job_t *job)
{
    if (job->why == NGX_MCP_FAILED_SHUTDOWN) {
        return 0;
    }

    if (!job->reached) {
        return job->why == NGX_MCP_FAILED_UNREACHABLE;
    }

    return job->idempotent
           && (job->why == NGX_MCP_FAILED_UNREACHABLE
               || job->why == NGX_MCP_FAILED_TIMED_OUT
               || job->why == NGX_MCP_FAILED_CUT_SHORT
               || (job->why == NGX_MCP_FAILED_BAD_STATUS
                   && job->status >= NGX_HTTP_BAD_GATEWAY
                   && job->status <= NGX_HTTP_GATEWAY_TIME_OUT));
}


static ngx_str_t
ngx_mcp_job_reason(ngx_mcp_job_t *job, u_char *buf, size_t size)
{
    u_char     *p;
    ngx_str_t   text;

    p = ngx_snprintf(buf, size, "{\"code\":%d,\"message\":\"%s\","
                     "\"data\":{\"reason\":\"%s\"",
                     NGX_MCP_RPC_UPSTREAM,
                     ngx_mcp_failures[job->why].message,
                     ngx_mcp_failures[job->why].reason);

    if (job->why == NGX_MCP_FAILED_BAD_STATUS) {
        p = ngx_snprintf(p, buf + size - p, ",\"status\":%ui", job->status);
    }

    p = ngx_snprintf(p, buf + size - p, "}}");

    text.data = buf;
    text.len = p - buf;

    return text;
}
