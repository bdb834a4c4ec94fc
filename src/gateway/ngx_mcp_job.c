
/*
 * Jobs: calls of tools behind the gateway that are tasks.  A job lives in the
 * process that got the call, from when the task is made until it has ended;
 * whatever happens to it, one function looks what is to be done.
 */


#include "ngx_mcp_job.h"


/* a response that goes on after what it was for, in milliseconds */
#define NGX_MCP_JOB_LINGER   1000

/* a process that exits waits so long for a job, or comes back */
#define NGX_MCP_JOB_STAY     3600000


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
static void ngx_mcp_job_go_on(ngx_mcp_job_t *job, ngx_mcp_task_t *task);
static void ngx_mcp_job_more(ngx_mcp_job_t *job);


/* of a client's call, before there is a task; NULL: no memory */

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

    /* no other process knows the session, or what the client can do */

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
    job->asks = tool->asks;
    job->idempotent = tool->idempotent;
    job->holder = ngx_mcp_stream_new(job->zone->local);

    job->ident.fd = (ngx_socket_t) -1;
    job->ident.data = job;
    job->event.data = &job->ident;
    job->event.handler = ngx_mcp_job_event;
    job->event.log = ngx_cycle->log;

    return job;
}


/* nothing of it is under way */

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


/* by which others see whether the process that has it is alive */

uint64_t
ngx_mcp_job_holder(ngx_mcp_job_t *job)
{
    return job->holder;
}


/* the task is there */

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
 * After all that the process has to do now: so calls go out one after the
 * other, and so do answers to their clients.  A server or a client that would
 * be asleep again by the time of the next one is woken once, which is a
 * seventh of the time that the whole life of a call takes.
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

    /* those who wait come first */

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_FULL) == NGX_OK) {
        ngx_mcp_jobs_line_up(job);
        ngx_post_event(&jobs->turn, &ngx_posted_events);
        ngx_mcp_job_post(job);
    }
}


/* the call is answered directly, if it is quick enough */

void
ngx_mcp_job_caller(ngx_mcp_job_t *job, ngx_mcp_ctx_t *ctx)
{
    job->caller = ctx;
    ctx->job = job;
}


/* it has got the task instead, or has gone */

void
ngx_mcp_job_left(ngx_mcp_ctx_t *ctx)
{
    if (ctx->job) {
        ctx->job->caller = NULL;
        ctx->job = NULL;
    }
}


/* NGX_OK: it is in the state that the event leads to */

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


/* there is no more to do, but to let go of what is still under way */

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


/* it looks again then, or before */

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

        if (!job->busy) {
            ngx_mcp_job_pin(job);
        }

        return;
    }

    /* an answer is to come that says all that a look would */

    if (job->state != NGX_MCP_JOB_ENDING) {
        ngx_mcp_job_look(job);
    }

    if (job->state != NGX_MCP_JOB_OVER) {
        ngx_mcp_job_pending(job);
    }
}


/* its upstream may have a good end, so that the connection is kept */

static void
ngx_mcp_job_linger(ngx_mcp_job_t *job, ngx_uint_t late)
{
    if (job->requests == 0 && !job->busy) {
        ngx_mcp_job_free(job);
        return;
    }

    if (late) {
        ngx_mcp_job_hang_up(job);

        if (job->call) {
            ngx_mcp_detached_end(job->call);
            return;
        }
    }

    if (!job->event.timer_set) {
        ngx_mcp_job_wait(job, NGX_MCP_JOB_LINGER);
    }
}


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
        /* that is not for ever, and says nothing of the task */
        ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
        return;
    }

    if (op.op.reason == NGX_MCP_OK && task->version < job->version) {
        /* what was changed by this job is not to be seen yet */
        return;
    }

    if (op.op.reason != NGX_MCP_OK
        || ngx_mcp_terminal(task->state)
        || task->holder != job->holder
        || (job->lease_token && task->lease_token != job->lease_token))
    {
        ngx_mcp_job_cancel(job);
        return;
    }

    switch (job->state) {

    case NGX_MCP_JOB_READY:
        ngx_mcp_job_attempt(job);
        return;

    case NGX_MCP_JOB_TURN:
    case NGX_MCP_JOB_BEGINNING:
        return;

    case NGX_MCP_JOB_KEPT:
        ngx_mcp_job_end_again(job);
        return;

    default:
        ngx_mcp_job_go_on(job, task);
    }
}


/* the call, its questions, and what is to be said to the upstream */

static void
ngx_mcp_job_go_on(ngx_mcp_job_t *job, ngx_mcp_task_t *task)
{
    ngx_mcp_job_notify_retry(job);

    if (ngx_mcp_job_is_resuming(job->state)) {
        ngx_mcp_job_more(job);

    } else if (ngx_mcp_job_is_open(job->state) && job->call == NULL) {
        ngx_mcp_job_failed(job);
        return;
    }

    if (ngx_mcp_job_is_asked(job->state)
        && task->state == NGX_MCP_RUNNING
        && !job->busy)
    {
        ngx_mcp_job_answered(job);
    }
}


/* what is to be asked again, but not before its time */

static void
ngx_mcp_job_more(ngx_mcp_job_t *job)
{
    ngx_msec_int_t  left;

    left = (ngx_msec_int_t) (job->resume_at - ngx_current_msec);

    if (left > 0) {
        ngx_mcp_job_wait(job, left);

    } else if (ngx_mcp_job_resume(job) != NGX_OK) {
        job->why = NGX_MCP_FAILED_UNREACHABLE;
        job->reached = 1;
        ngx_mcp_job_failed(job);
    }
}


/*
 * A process that exits stays for its jobs, as long as it may.  With a request
 * under way nginx sees to that itself.
 */

void
ngx_mcp_job_stay(ngx_mcp_job_t *job)
{
    ngx_msec_t        time, passed;
    ngx_core_conf_t  *ccf;

    if (!ngx_exiting || job->requests || job->event.timer_set
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
            /* as soon as that is answered */
            ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
            return;
        }

        if (passed >= ccf->shutdown_timeout) {
            job->why = NGX_MCP_FAILED_SHUTDOWN;
            ngx_mcp_job_failed(job);
            return;
        }

        time = ccf->shutdown_timeout - passed;
    }

    ngx_mcp_job_wait(job, time);
}


/* NULL: there is no such gateway any more, or no memory */

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


/* the one that the task came through, if there is no doubt which it was */

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
