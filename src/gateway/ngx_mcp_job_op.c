
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Operations of a job on its task.  There is one at a time; the latest
 * progress, questions, withdrawals and the outcome wait for it and are
 * submitted in the order in which they were received.
 */


#include "ngx_mcp_job.h"


static void ngx_mcp_job_op_handler(ngx_mcp_op_t *op);
static void ngx_mcp_job_op_done(ngx_mcp_job_t *job, ngx_uint_t reason);
static ngx_int_t ngx_mcp_job_unpin_op(ngx_mcp_job_t *job);
static void ngx_mcp_job_pinned(ngx_mcp_job_t *job, ngx_uint_t reason);
static void ngx_mcp_job_note_add(ngx_mcp_job_t *job, ngx_mcp_note_t *n);
static void ngx_mcp_job_note_submit(ngx_mcp_job_t *job, ngx_mcp_note_t *n);
static void ngx_mcp_job_note_free(ngx_mcp_job_t *job, ngx_mcp_note_t *n);
static void ngx_mcp_job_noted(ngx_mcp_job_t *job, ngx_uint_t reason);


/*
 * Submits an operation; none may be in progress.  NGX_OK: it is complete, and
 * the function was called; NGX_AGAIN: the function is called later.
 */

ngx_int_t
ngx_mcp_job_submit(ngx_mcp_job_t *job, ngx_mcp_op_t *op,
    ngx_mcp_job_pt answered)
{
    ngx_int_t  rc;

    op->handler = ngx_mcp_job_op_handler;
    op->data = job;
    job->answered = answered;

    rc = ngx_mcp_submit(job->zone, op);

    if (rc == NGX_AGAIN) {
        job->busy = 1;
        job->done = 0;
        return NGX_AGAIN;
    }

    ngx_mcp_job_op_done(job, (rc == NGX_OK) ? op->reason : NGX_MCP_REASONS);

    return NGX_OK;
}


/*
 * The job stays busy until the posted event submits what waits: otherwise
 * later operations could be submitted first.
 */

static void
ngx_mcp_job_op_handler(ngx_mcp_op_t *op)
{
    ngx_mcp_job_t *job = op->data;

    ngx_pool_t  *pool;

    pool = job->kept;
    job->kept = NULL;
    job->done = 1;

    ngx_mcp_job_op_done(job, op->reason);

    if (pool) {
        ngx_destroy_pool(pool);
    }

    ngx_mcp_job_post(job);
}


static void
ngx_mcp_job_op_done(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    if (reason == NGX_MCP_OK) {

        switch (job->op.update.op.type) {

        case NGX_MCP_OP_UPDATE:
            job->version = job->op.update.view.task.version;
            break;

        case NGX_MCP_OP_ATTEMPT:
            job->version = job->op.attempt.view.task.version;
            break;
        }
    }

    job->answered(job, reason);
}


/* Submits what has been waiting for an operation to complete. */

void
ngx_mcp_job_pending(ngx_mcp_job_t *job)
{
    ngx_mcp_note_t  *n;

    n = job->note;

    if (!job->busy && n && !n->after) {
        job->note = NULL;
        ngx_mcp_job_note_submit(job, n);
    }

    if (!job->busy) {
        ngx_mcp_job_ask_pending(job);
    }

    n = job->note;

    if (!job->busy && n) {
        job->note = NULL;
        ngx_mcp_job_note_submit(job, n);
    }

    if (!job->busy && job->state == NGX_MCP_JOB_ENDING) {
        ngx_mcp_job_end_submit(job);
    }
}


/*
 * Pins the task, so that the job can read it at any time without waiting.  The
 * operation that unpins it is allocated first: unpinning must not fail.
 */

void
ngx_mcp_job_pin(ngx_mcp_job_t *job)
{
    ngx_mcp_op_pin_t  *op;

    if (ngx_mcp_job_unpin_op(job) != NGX_OK) {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    op = &job->op.pin;

    ngx_memzero(op, sizeof(ngx_mcp_op_pin_t));
    op->op.type = NGX_MCP_OP_PIN;
    op->op.pool = job->pool;
    op->kind = NGX_MCP_PIN_TASKS;
    op->ids = &job->id;
    op->n = 1;

    (void) ngx_mcp_job_submit(job, &op->op, ngx_mcp_job_pinned);
}


static ngx_int_t
ngx_mcp_job_unpin_op(ngx_mcp_job_t *job)
{
    ngx_mcp_op_pin_t  *op;

    op = ngx_mcp_later_op(job->zone, NGX_MCP_OP_UNPIN);
    if (op == NULL) {
        return NGX_ERROR;
    }

    op->kind = NGX_MCP_PIN_TASKS;
    op->n = 1;
    op->ids = ngx_palloc(op->op.pool, sizeof(ngx_mcp_id_t));

    if (op->ids == NULL) {
        ngx_mcp_later_free(&op->op);
        return NGX_ERROR;
    }

    *op->ids = job->id;
    job->unpin = op;

    return NGX_OK;
}


static void
ngx_mcp_job_pinned(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    if (!job->op.pin.held) {
        ngx_mcp_later_free(&job->unpin->op);
        job->unpin = NULL;
    }

    if (reason == NGX_MCP_NOT_FOUND) {
        ngx_mcp_job_over(job);

    } else if (reason != NGX_MCP_OK) {
        ngx_mcp_job_delay(job, NGX_MCP_JOB_AGAIN);

    } else if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_PINNED) == NGX_OK) {
        ngx_mcp_job_post(job);
    }
}


/*
 * Reads the task, which must be pinned, without waiting.  NGX_OK: the operation
 * has a reason; NGX_ERROR: no memory.
 */

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

    return ngx_mcp_lookup(job->zone, &op->op);
}


/*
 * Prepares an update of the task; no operation may be in progress.  Memory that
 * the update refers to must exist until the operation is complete.
 */

ngx_mcp_op_update_t *
ngx_mcp_job_change(ngx_mcp_job_t *job, ngx_uint_t event, ngx_pool_t *pool)
{
    ngx_mcp_op_update_t  *op;

    op = &job->op.update;

    ngx_memzero(op, sizeof(ngx_mcp_op_update_t));
    op->op.type = NGX_MCP_OP_UPDATE;
    op->op.pool = pool;
    op->op.detached = 1;
    op->id = job->id;
    op->event.type = event;
    op->event.lease_token = job->lease_token;
    op->event.progress = -1;
    op->event.total = -1;
    op->change.max_payload = job->lcf->max_payload;

    return op;
}


/*
 * Allocates a note in the pool of the message that is being read, or in a pool
 * of its own if there is none.  NULL: no memory.
 */

ngx_mcp_note_t *
ngx_mcp_job_note_new(ngx_mcp_job_t *job, ngx_str_t *message)
{
    ngx_pool_t      *pool;
    ngx_mcp_note_t  *n;

    pool = job->message ? job->message
                        : ngx_create_pool(2048, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    n = ngx_pcalloc(pool, sizeof(ngx_mcp_note_t));
    if (n == NULL) {
        goto failed;
    }

    n->pool = pool;
    n->progress = -1;
    n->total = -1;

    if (message->len) {
        n->message.len = message->len;
        n->message.data = ngx_pstrdup(pool, message);

        if (n->message.data == NULL) {
            goto failed;
        }
    }

    return n;

failed:

    if (pool != job->message) {
        ngx_destroy_pool(pool);
    }

    return NULL;
}


/* Stores the note in the task, now or after the operation in progress. */

void
ngx_mcp_job_note(ngx_mcp_job_t *job, ngx_mcp_note_t *n)
{
    if (ngx_mcp_job_waits(job)) {
        ngx_mcp_job_note_add(job, n);
        return;
    }

    ngx_mcp_job_note_submit(job, n);
}


/*
 * Combines a note with the one that waits already.  The result is the same as
 * if both were submitted: progress that decreases is ignored.
 */

static void
ngx_mcp_job_note_add(ngx_mcp_job_t *job, ngx_mcp_note_t *n)
{
    ngx_mcp_note_t  *old;

    old = job->note;

    if (old) {

        if (n->progress >= 0 && n->progress < old->progress) {
            ngx_mcp_job_note_free(job, n);
            return;
        }

        if (n->message.len == 0) {
            old->progress = n->progress;
            old->total = n->total;
            old->after = ngx_mcp_job_asks_pending(job);
            ngx_mcp_job_note_free(job, n);
            return;
        }

        if (n->progress < 0) {
            n->progress = old->progress;
            n->total = old->total;
        }

        ngx_mcp_job_note_drop(job);
    }

    n->after = ngx_mcp_job_asks_pending(job);
    job->note = n;

    if (n->pool == job->message) {
        job->message = NULL;
    }
}


static void
ngx_mcp_job_note_submit(ngx_mcp_job_t *job, ngx_mcp_note_t *n)
{
    ngx_mcp_op_update_t  *op;

    op = ngx_mcp_job_change(job, NGX_MCP_EV_PROGRESS, n->pool);
    op->event.progress = n->progress;
    op->event.total = n->total;
    op->change.payload[NGX_MCP_MESSAGE] = n->message;

    if (ngx_mcp_job_submit(job, &op->op, ngx_mcp_job_noted) != NGX_AGAIN) {
        ngx_mcp_job_note_free(job, n);
        return;
    }

    job->kept = n->pool;

    if (n->pool == job->message) {
        job->message = NULL;
    }
}


static void
ngx_mcp_job_note_free(ngx_mcp_job_t *job, ngx_mcp_note_t *n)
{
    if (n->pool != job->message) {
        ngx_destroy_pool(n->pool);
    }
}


static void
ngx_mcp_job_noted(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    /* void: a note that the task does not accept is dropped */
}


void
ngx_mcp_job_note_drop(ngx_mcp_job_t *job)
{
    if (job->note) {
        ngx_destroy_pool(job->note->pool);
        job->note = NULL;
    }
}
