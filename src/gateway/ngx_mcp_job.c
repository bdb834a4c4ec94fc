
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Jobs: tool calls through the gateway that are tasks.  A job exists in the
 * worker process that received the call, from the creation of the task to its
 * end.  All changes post one event, whose handler reads the task and decides
 * what to do next.
 */


#include "ngx_mcp_job.h"


/* time for open requests to end after the job is over, in milliseconds */
#define NGX_MCP_JOB_LINGER   1000

/* maximum time between two events of a job that waits, in milliseconds */
#define NGX_MCP_JOB_STAY     3600000


/* debug logging of nginx reads fd of a connection from the event's data */

typedef char  ngx_mcp_job_ident_fits[
    offsetof(ngx_mcp_job_t, ident.fd) - offsetof(ngx_mcp_job_t, ident)
    == offsetof(ngx_connection_t, fd) ? 1 : -1
];


static ngx_mcp_job_t *ngx_mcp_job_create(ngx_mcp_loc_conf_t *lcf,
    ngx_mcp_tool_t *tool);
static void ngx_mcp_job_start(ngx_mcp_job_t *job);
static void ngx_mcp_job_event(ngx_event_t *ev);
static void ngx_mcp_job_next(ngx_mcp_job_t *job);
static void ngx_mcp_job_linger(ngx_mcp_job_t *job, ngx_uint_t late);
static void ngx_mcp_job_look(ngx_mcp_job_t *job);
static void ngx_mcp_job_continue(ngx_mcp_job_t *job, ngx_mcp_task_t *task);
static void ngx_mcp_job_more(ngx_mcp_job_t *job);


/*
 * Creates a job for a client's call, before there is a task.  Sets *bound if
 * no other process may run the call.  NULL: no memory.
 */

ngx_mcp_job_t *
ngx_mcp_job_new(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_uint_t *bound)
{
    ngx_mcp_job_t       *job;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    job = ngx_mcp_job_create(lcf, tool);
    if (job == NULL) {
        return NULL;
    }

    if (ngx_mcp_sender_copy(&job->sender, r, lcf, bound) != NGX_OK
        || ngx_mcp_job_params(job, &ctx->rpc.params) != NGX_OK)
    {
        ngx_mcp_job_free(job);
        return NULL;
    }

    /* no other process has the session and the client's capabilities */

    if (ctx->era == NGX_MCP_LEGACY) {
        *bound = 1;
    }

    return job;
}


static ngx_mcp_job_t *
ngx_mcp_job_create(ngx_mcp_loc_conf_t *lcf, ngx_mcp_tool_t *tool)
{
    ngx_pool_t     *pool;
    ngx_mcp_job_t  *job;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    job = ngx_pcalloc(pool, sizeof(ngx_mcp_job_t));

    if (job == NULL
        || ngx_array_init(&job->questions, pool, 2,
                          sizeof(ngx_mcp_question_t))
           != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return NULL;
    }

    ngx_queue_init(&job->outgoing);
    job->pool = pool;
    job->lcf = lcf;
    job->zone = lcf->zone;
    job->sender.pool = pool;
    job->asks = (tool->asks != NGX_MCP_INPUT_TASK);
    job->idempotent = tool->idempotent;
    job->holder = ngx_mcp_stream_new(job->zone->local);

    job->ident.fd = (ngx_socket_t) -1;
    job->ident.data = job;
    job->event.data = &job->ident;
    job->event.handler = ngx_mcp_job_event;
    job->event.log = ngx_cycle->log;

    return job;
}


/* No operation may be in progress, and no request may be open. */

void
ngx_mcp_job_free(ngx_mcp_job_t *job)
{
    if (job->state != NGX_MCP_JOB_NEW) {
        ngx_queue_remove(&job->queue);
        ngx_mcp_unwatch(&job->watch);
    }

    if (job->queued) {
        ngx_queue_remove(&job->turn);
    }

    if (job->unpin) {
        ngx_mcp_later(&job->unpin->op);
    }

    if (job->event.timer_set) {
        ngx_del_timer(&job->event);
    }

    if (job->event.posted) {
        ngx_delete_posted_event(&job->event);
    }

    if (job->caller) {
        job->caller->job = NULL;
    }

    if (job->text) {
        ngx_free(job->text);
    }

    ngx_mcp_job_note_drop(job);
    ngx_mcp_job_notify_free(job);
    ngx_mcp_sse_reader_free(&job->sse);

    ngx_mcp_job_drop(job, job->round_pool);
    ngx_destroy_pool(job->pool);
}


/* Other processes use it to check that the process of this job is alive. */

uint64_t
ngx_mcp_job_holder(ngx_mcp_job_t *job)
{
    return job->holder;
}


/* Called when the task exists. */

void
ngx_mcp_job_begin(ngx_mcp_job_t *job, ngx_mcp_view_t *v)
{
    job->id = v->id;
    job->seq = v->seq;

    job->sender.task_id.data = ngx_pnalloc(job->pool, NGX_MCP_ID_TEXT);
    if (job->sender.task_id.data) {
        (void) ngx_mcp_id_text(job->sender.task_id.data, &v->id);
        job->sender.task_id.len = NGX_MCP_ID_TEXT;
    }

    ngx_queue_insert_tail(&job->zone->jobs->all, &job->queue);
    ngx_mcp_watch(job->zone->local, &job->watch, ngx_mcp_signal_id(&v->id),
                  &job->event);

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_CREATED) == NGX_OK) {
        ngx_mcp_job_pin(job);
    }
}


/*
 * Called in a posted event, after all events that are already pending.  Thus
 * several calls are sent one right after the other, and so are the responses
 * to clients.  A server or a client that would go to sleep between two
 * messages wakes up once, which saves a seventh of the total time of a call.
 */

static void
ngx_mcp_job_start(ngx_mcp_job_t *job)
{
    ngx_mcp_jobs_t  *jobs;

    jobs = job->zone->jobs;

    if (ngx_queue_empty(&jobs->turns)) {
        ngx_mcp_job_attempt(job);
        return;
    }

    /* jobs that already wait have to be tried first */

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_FULL) == NGX_OK) {
        ngx_mcp_jobs_line_up(job);
        ngx_post_event(&jobs->turn, &ngx_posted_events);
        ngx_mcp_job_post(job);
    }
}


/* The client waits for the call, and gets its result if it is fast enough. */

void
ngx_mcp_job_caller(ngx_mcp_job_t *job, ngx_mcp_ctx_t *ctx)
{
    job->caller = ctx;
    ctx->job = job;
}


/* The client does not wait any more: it got the task, or disconnected. */

void
ngx_mcp_job_left(ngx_mcp_ctx_t *ctx)
{
    if (ctx->job) {
        ctx->job->caller = NULL;
        ctx->job = NULL;
    }
}


/* Returns what ngx_mcp_job_apply() does, and logs invalid events. */

ngx_int_t
ngx_mcp_job_enter(ngx_mcp_job_t *job, ngx_uint_t event)
{
    ngx_int_t  rc;

    rc = ngx_mcp_job_apply(&job->state, event);

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp tasks job:%p event:%ui rc:%i state:%s",
                   job, event, rc, ngx_mcp_job_state_name(job->state));

    if (rc == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "unexpected event %ui in state \"%s\" of background "
                      "call, task %V", event,
                      ngx_mcp_job_state_name(job->state),
                      &job->sender.task_id);
        ngx_debug_point();
    }

    return rc;
}


void
ngx_mcp_job_post(ngx_mcp_job_t *job)
{
    ngx_post_event(&job->event, &ngx_posted_events);
}


/* Ends the job, which is freed when its open requests have ended. */

void
ngx_mcp_job_over(ngx_mcp_job_t *job)
{
    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_OVER) == NGX_OK
        && job->event.timer_set)
    {
        ngx_del_timer(&job->event);
    }

    ngx_mcp_job_post(job);
}


/* Sets the timer, unless it expires earlier anyway. */

void
ngx_mcp_job_wait(ngx_mcp_job_t *job, ngx_msec_t time)
{
    ngx_msec_t  due;

    time = ngx_min(time, NGX_MCP_JOB_STAY);
    due = ngx_current_msec + time;

    if (job->event.timer_set
        && (ngx_msec_int_t) (job->event.timer.key - due) <= 0)
    {
        return;
    }

    ngx_add_timer(&job->event, time);
}


/*
 * Delays the next try of a refused operation.  The timer alone is not enough:
 * the job also has events in the meantime, such as the one that is posted when
 * an operation completes.
 */

void
ngx_mcp_job_delay(ngx_mcp_job_t *job, ngx_msec_t time)
{
    time = ngx_min(time, NGX_MCP_JOB_STAY);

    job->delayed = 1;
    job->due = ngx_current_msec + time;

    ngx_mcp_job_wait(job, time);
}


ngx_uint_t
ngx_mcp_job_delayed(ngx_mcp_job_t *job)
{
    ngx_msec_int_t  left;

    if (!job->delayed) {
        return 0;
    }

    left = (ngx_msec_int_t) (job->due - ngx_current_msec);

    if (left > 0) {
        ngx_mcp_job_wait(job, left);
        return 1;
    }

    job->delayed = 0;

    return 0;
}


static void
ngx_mcp_job_event(ngx_event_t *ev)
{
    ngx_uint_t         late;
    ngx_connection_t  *c;
    ngx_mcp_job_t     *job;

    c = ev->data;
    job = c->data;
    late = ev->timedout;
    ev->timedout = 0;

    if (job->done) {
        job->done = 0;
        job->busy = 0;
    }

    if (job->state == NGX_MCP_JOB_FRESH) {
        ngx_mcp_job_start(job);
        return;
    }

    if (job->state != NGX_MCP_JOB_OVER) {
        ngx_mcp_job_next(job);
    }

    if (job->state != NGX_MCP_JOB_OVER) {
        ngx_mcp_job_stay(job);
        return;
    }

    ngx_mcp_job_linger(job, late);
}


static void
ngx_mcp_job_next(ngx_mcp_job_t *job)
{
    if (job->state == NGX_MCP_JOB_PINNING) {

        if (!job->busy && !ngx_mcp_job_delayed(job)) {
            ngx_mcp_job_pin(job);
        }

        return;
    }

    /* the operation in progress reports whatever a look would find */

    if (job->state != NGX_MCP_JOB_ENDING) {
        ngx_mcp_job_look(job);
    }

    if (job->state != NGX_MCP_JOB_OVER) {
        ngx_mcp_job_pending(job);
    }
}


/*
 * Frees the job, but waits some time for open requests: if they end by
 * themselves, connections to the upstream can be kept alive.
 */

static void
ngx_mcp_job_linger(ngx_mcp_job_t *job, ngx_uint_t late)
{
    if (job->requests == 0 && !job->busy) {
        ngx_mcp_job_free(job);
        return;
    }

    if (late) {
        ngx_mcp_job_notify_close(job);

        if (job->call) {
            ngx_mcp_detached_end(job->call);
            return;
        }
    }

    if (!job->event.timer_set) {
        ngx_mcp_job_wait(job, NGX_MCP_JOB_LINGER);
    }
}


/* Reads the task and continues the job, or ends it if the task was lost. */

static void
ngx_mcp_job_look(ngx_mcp_job_t *job)
{
    ngx_mcp_task_t    *task;
    ngx_mcp_op_get_t   op;

    if (ngx_mcp_job_get(job, &op, 0, job->pool) != NGX_OK) {
        ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    task = &op.view.task;

    if (op.op.reason == NGX_MCP_STORE_UNAVAILABLE && !ngx_exiting) {
        /* this is temporary, and the task may be unchanged */
        ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    if (op.op.reason == NGX_MCP_OK && task->version < job->version) {
        /* the last change made by this job is not visible yet */
        return;
    }

    if (op.op.reason != NGX_MCP_OK
        || ngx_mcp_terminal(task->state)
        || task->holder != job->holder)
    {
        ngx_mcp_job_cancel(job);
        return;
    }

    if (job->lease_token && task->lease_token != job->lease_token) {

        /*
         * No other job has attempts of this task: the attempt has timed out
         * and is repeated, after the operation in progress.
         */

        if (!job->busy) {
            ngx_mcp_job_repeat_attempt(job);
        }

        return;
    }

    switch (job->state) {

    case NGX_MCP_JOB_READY:
        if (!ngx_mcp_job_delayed(job)) {
            ngx_mcp_job_attempt(job);
        }

        return;

    case NGX_MCP_JOB_TURN:
    case NGX_MCP_JOB_BEGINNING:
        return;

    case NGX_MCP_JOB_KEPT:
        if (!ngx_mcp_job_delayed(job)) {
            ngx_mcp_job_end_again(job);
        }

        return;

    default:
        ngx_mcp_job_continue(job, task);
    }
}


/* Continues a call that has a lease. */

static void
ngx_mcp_job_continue(ngx_mcp_job_t *job, ngx_mcp_task_t *task)
{
    ngx_mcp_job_notify_retry(job);

    if (ngx_mcp_job_is_resuming(job->state)) {
        ngx_mcp_job_more(job);

    } else if (ngx_mcp_job_is_open(job->state) && job->call == NULL) {
        ngx_mcp_job_failed(job);
        return;
    }

    if (job->state == NGX_MCP_JOB_INPUT_REQUIRED
        && ngx_mcp_job_asks_pending(job))
    {
        /* the questions are not stored yet */
        return;
    }

    if (ngx_mcp_job_is_asked(job->state)
        && task->state == NGX_MCP_RUNNING
        && !job->busy)
    {
        ngx_mcp_job_answered(job);
    }
}


/* Repeats the request, when the time has come. */

static void
ngx_mcp_job_more(ngx_mcp_job_t *job)
{
    ngx_msec_int_t  left;

    left = (ngx_msec_int_t) (job->resume_at - ngx_current_msec);

    if (left > 0) {
        ngx_mcp_job_wait(job, left);

    } else if (job->call) {
        /* its response is complete; its end posts the event again */
        ngx_mcp_detached_end(job->call);

    } else if (ngx_mcp_job_resume(job) != NGX_OK) {
        job->failure = NGX_MCP_FAILED_UNREACHABLE;
        job->reached = 1;
        ngx_mcp_job_failed(job);
    }
}


/*
 * Keeps an exiting worker process running until its jobs are over, but not
 * longer than worker_shutdown_timeout.  A timer does this; while a request is
 * open, its connection does.  A job that polls always has one or the other.
 */

void
ngx_mcp_job_stay(ngx_mcp_job_t *job)
{
    ngx_msec_t        time, passed;
    ngx_core_conf_t  *ccf;

    if (!ngx_exiting || job->requests
        || (job->event.timer_set && !job->renew)
        || job->state == NGX_MCP_JOB_OVER)
    {
        return;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                           ngx_core_module);
    time = NGX_MCP_JOB_STAY;

    if (ccf->shutdown_timeout) {
        passed = ngx_current_msec - job->zone->jobs->exiting;

        if (passed >= ccf->shutdown_timeout && job->busy) {
            /* the job can fail after the operation in progress */
            ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
            return;
        }

        if (passed >= ccf->shutdown_timeout) {
            job->failure = NGX_MCP_FAILED_SHUTDOWN;
            ngx_mcp_job_failed(job);
            return;
        }

        time = ccf->shutdown_timeout - passed;
    }

    ngx_mcp_job_wait(job, time);
}


/*
 * Creates a job for a task whose process died, or that is retried.  NULL: the
 * configuration has no such gateway, or no memory.
 */

ngx_mcp_job_t *
ngx_mcp_job_again(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v)
{
    ngx_mcp_job_t       *job;
    ngx_mcp_json_t       params;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_mcp_job_gateway(zone, v);

    if (lcf == NULL) {
        return NULL;
    }

    job = ngx_mcp_job_create(lcf, ngx_mcp_route_find(lcf, &v->tool));
    if (job == NULL) {
        return NULL;
    }

    params.type = NGX_MCP_JSON_OBJECT;
    params.text = v->payload[NGX_MCP_PARAMS];

    if (ngx_mcp_sender_make(&job->sender, lcf, &v->tool) != NGX_OK
        || ngx_mcp_job_params(job, &params) != NGX_OK)
    {
        ngx_mcp_job_free(job);
        return NULL;
    }

    return job;
}


/* Finds the location that created the task.  NULL: none, or more than one. */

ngx_mcp_loc_conf_t *
ngx_mcp_job_gateway(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v)
{
    ngx_uint_t            i;
    ngx_mcp_loc_conf_t   *lcf, **gateway;

    lcf = NULL;
    gateway = zone->gateways.elts;

    for (i = 0; i < zone->gateways.nelts; i++) {

        if (gateway[i]->route != v->task.policy.route) {
            continue;
        }

        if (lcf) {
            return NULL;
        }

        lcf = gateway[i];
    }

    return lcf;
}
