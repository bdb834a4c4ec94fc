
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

/* so long it keeps the store from another instance that waits for it */
#define NGX_MCP_JOB_KEEP     10000

#define NGX_MCP_JOB_ORPHANS  32

/* tools of which no more may run now, in one look for whose turn it is */
#define NGX_MCP_JOB_FULL     NGX_MCP_STAT_TOOLS


typedef char  ngx_mcp_job_ident_fits[
    offsetof(ngx_mcp_job_t, ident.fd) - offsetof(ngx_mcp_job_t, ident)
    == offsetof(ngx_connection_t, fd) ? 1 : -1
];


static ngx_mcp_job_t *ngx_mcp_job_create(ngx_mcp_loc_conf_t *lcf,
    ngx_mcp_tool_t *tool);
static void ngx_mcp_job_start(ngx_mcp_job_t *job);
static ngx_uint_t ngx_mcp_job_run(ngx_mcp_job_t *job);
static void ngx_mcp_job_saved(ngx_mcp_op_t *op);
static ngx_uint_t ngx_mcp_job_may(ngx_mcp_job_t *job);
static void ngx_mcp_job_line_up(ngx_mcp_job_t *job);
static void ngx_mcp_job_turn(ngx_event_t *ev);
static ngx_uint_t ngx_mcp_job_full(ngx_str_t **full, ngx_mcp_job_t *job);
static void ngx_mcp_job_event(ngx_event_t *ev);
static void ngx_mcp_job_look(ngx_mcp_job_t *job);
static void ngx_mcp_job_more(ngx_mcp_job_t *job);
static void ngx_mcp_job_stay(ngx_mcp_job_t *job);
static void ngx_mcp_job_adopt(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v,
    uint64_t holder);
static void ngx_mcp_job_give_up(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v);


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

    ngx_queue_init(&job->letters);
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
    if (job->begun) {
        ngx_queue_remove(&job->queue);
        ngx_mcp_unwatch(&job->watch);
    }

    if (job->turns) {
        ngx_queue_remove(&job->turn);
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

    ngx_mcp_job_burn(job);
    ngx_mcp_feed_free(&job->feed);

    ngx_mcp_job_drop(job, job->round);
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
    job->begun = 1;

    job->sender.task_id.data = ngx_pnalloc(job->pool, NGX_MCP_ID_TEXT);
    if (job->sender.task_id.data) {
        (void) ngx_mcp_id_text(job->sender.task_id.data, &v->id);
        job->sender.task_id.len = NGX_MCP_ID_TEXT;
    }

    ngx_queue_insert_tail(&job->zone->jobs->all, &job->queue);
    ngx_mcp_watch(job->zone->local, &job->watch, ngx_mcp_signal_id(&v->id),
                  &job->event);

    /*
     * After all that the process has to do now: so calls go out one after the
     * other, and so do answers to their clients.  A server or a client that
     * would be asleep again by the time of the next one is woken once, which
     * is a seventh of the time that the whole life of a call takes.
     */

    job->fresh = 1;
    ngx_mcp_job_post(job);
}


static void
ngx_mcp_job_start(ngx_mcp_job_t *job)
{
    ngx_mcp_jobs_t  *jobs;

    jobs = job->zone->jobs;
    job->fresh = 0;

    if (ngx_queue_empty(&jobs->turns)) {
        (void) ngx_mcp_job_run(job);
        return;
    }

    /* those who wait come first */

    ngx_mcp_job_line_up(job);
    ngx_post_event(&jobs->turn, &ngx_posted_events);
    ngx_mcp_job_post(job);
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


void
ngx_mcp_job_post(ngx_mcp_job_t *job)
{
    ngx_post_event(&job->event, &ngx_posted_events);
}


/* there is no more to do, but to let go of what is still under way */

void
ngx_mcp_job_over(ngx_mcp_job_t *job)
{
    job->over = 1;

    if (job->event.timer_set) {
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


/* begins the call, if it may; whether it has to wait for its turn */

static ngx_uint_t
ngx_mcp_job_run(ngx_mcp_job_t *job)
{
    ngx_mcp_op_run_t  *op;

    op = &job->run;

    ngx_memzero(op, sizeof(ngx_mcp_op_run_t));
    op->op.type = NGX_MCP_OP_RUN;
    op->op.pool = job->pool;
    op->op.handler = ngx_mcp_job_saved;
    op->op.data = job;
    op->id = job->id;
    op->holder = job->holder;
    op->max_zone = (uint32_t) job->lcf->max_running;
    op->max_tool = (uint32_t) job->lcf->max_tool_running;

    switch (ngx_mcp_submit(job->zone, &op->op)) {

    case NGX_OK:
        return ngx_mcp_job_may(job);

    case NGX_AGAIN:
        /* it is not free to go meanwhile */
        job->begins = 1;
        job->requests++;
        return 0;

    default:
        ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
        return 0;
    }
}


/* that it has begun will not be forgotten: a call is not made twice */

static void
ngx_mcp_job_saved(ngx_mcp_op_t *op)
{
    ngx_mcp_job_t  *job;

    job = op->data;
    job->begins = 0;
    job->requests--;

    if (job->over) {
        ngx_mcp_job_post(job);
        return;
    }

    (void) ngx_mcp_job_may(job);
}


static ngx_uint_t
ngx_mcp_job_may(ngx_mcp_job_t *job)
{
    uint64_t           end;
    ngx_mcp_op_run_t  *op;

    op = &job->run;

    switch (op->op.reason) {

    case NGX_MCP_OK:
        break;

    case NGX_MCP_STORE_UNAVAILABLE:
    case NGX_MCP_STORE_FAILED:
        ngx_mcp_job_wait(job, NGX_MCP_JOB_AGAIN);
        return 0;

    case NGX_MCP_LIMIT_RUNNING:

        ngx_mcp_job_line_up(job);
        ngx_mcp_job_stay(job);
        return 1;

    case NGX_MCP_STATE_INVALID:
        /* it is tried again, but not yet */
        end = op->view.task.step_end;
        ngx_mcp_job_wait(job, end > ngx_current_msec
                              ? end - ngx_current_msec : 1);
        return 0;

    default:
        ngx_mcp_job_over(job);
        return 0;
    }

    job->lease = op->view.task.lease;
    job->attempt = op->view.task.attempt;
    job->bare = 0;
    job->reached = 0;

    if (ngx_mcp_job_send(job, NULL) != NGX_OK) {
        /* no connection left, or no memory: nobody has seen it */
        job->why = NGX_MCP_FAILED_UNREACHABLE;
        ngx_mcp_job_post(job);
    }

    return 0;
}


/* as the zone has them: one that was taken over may come before others */

static void
ngx_mcp_job_line_up(ngx_mcp_job_t *job)
{
    ngx_queue_t    *q, *turns;
    ngx_mcp_job_t  *before;

    if (job->turns) {
        return;
    }

    turns = &job->zone->jobs->turns;

    for (q = ngx_queue_last(turns);
         q != ngx_queue_sentinel(turns);
         q = ngx_queue_prev(q))
    {
        before = ngx_queue_data(q, ngx_mcp_job_t, turn);

        if (before->seq < job->seq) {
            break;
        }
    }

    ngx_queue_insert_after(q, &job->turn);
    job->turns = 1;
}


/* there may be room for another one, of whichever process */

static void
ngx_mcp_job_turn(ngx_event_t *ev)
{
    ngx_str_t         *full[NGX_MCP_JOB_FULL + 1];
    ngx_uint_t         n;
    ngx_queue_t       *q, *next;
    ngx_connection_t  *c;
    ngx_mcp_job_t     *job;
    ngx_mcp_zone_t    *zone;

    c = ev->data;
    zone = c->data;
    n = 0;
    full[0] = NULL;

    for (q = ngx_queue_head(&zone->jobs->turns);
         q != ngx_queue_sentinel(&zone->jobs->turns);
         q = next)
    {
        next = ngx_queue_next(q);
        job = ngx_queue_data(q, ngx_mcp_job_t, turn);

        if (job->over || ngx_mcp_job_full(full, job)) {
            continue;
        }

        if (!ngx_mcp_job_run(job)) {
            ngx_queue_remove(&job->turn);
            job->turns = 0;
            continue;
        }

        /* its tool has enough or is paused, or all together have enough */

        if (n == NGX_MCP_JOB_FULL) {
            return;
        }

        full[n++] = &job->sender.tool;
        full[n] = NULL;
    }
}


static ngx_uint_t
ngx_mcp_job_full(ngx_str_t **full, ngx_mcp_job_t *job)
{
    for ( /* void */ ; *full; full++) {
        if ((*full)->len == job->sender.tool.len
            && ngx_memcmp((*full)->data, job->sender.tool.data, (*full)->len)
               == 0)
        {
            return 1;
        }
    }

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

    if (job->fresh && !job->over) {
        ngx_mcp_job_start(job);
        return;
    }

    if (!job->over) {
        ngx_mcp_job_look(job);
    }

    if (!job->over) {
        ngx_mcp_job_stay(job);
        return;
    }

    if (job->requests == 0) {
        ngx_mcp_job_free(job);
        return;
    }

    /* its upstream may have a good end, so that the connection is kept */

    if (late) {
        ngx_mcp_job_hang_up(job);

        if (job->call) {
            ngx_mcp_detached_end(job->call);
            return;
        }
    }

    if (!ev->timer_set) {
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

    if (op.op.reason != NGX_MCP_OK
        || ngx_mcp_terminal(task->state)
        || task->holder != job->holder
        || (job->lease && task->lease != job->lease))
    {
        ngx_mcp_job_cancel(job);
        return;
    }

    if (job->lease == 0) {

        if (!job->turns && !job->begins) {
            (void) ngx_mcp_job_run(job);
        }

        return;
    }

    if (job->late) {
        ngx_mcp_job_finish(job, job->late);
        return;
    }

    ngx_mcp_job_letters(job);

    if (job->over) {
        return;
    }

    if (job->call == NULL && job->resumes) {
        ngx_mcp_job_more(job);

    } else if (job->call == NULL && !job->concluded) {
        ngx_mcp_job_failed(job);
        return;
    }

    if (job->waits && task->state == NGX_MCP_RUNNING) {
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

static void
ngx_mcp_job_stay(ngx_mcp_job_t *job)
{
    ngx_msec_t        time, passed;
    ngx_core_conf_t  *ccf;

    if (!ngx_exiting || job->requests || job->event.timer_set || job->over) {
        return;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                           ngx_core_module);
    time = NGX_MCP_JOB_STAY;

    if (ccf->shutdown_timeout) {
        passed = ngx_current_msec - job->zone->jobs->exiting;

        if (passed >= ccf->shutdown_timeout) {
            job->why = NGX_MCP_FAILED_SHUTDOWN;
            ngx_mcp_job_failed(job);
            return;
        }

        time = ccf->shutdown_timeout - passed;
    }

    ngx_mcp_job_wait(job, time);
}


ngx_int_t
ngx_mcp_jobs_init(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone)
{
    ngx_mcp_jobs_t  *jobs;

    jobs = ngx_pcalloc(cycle->pool, sizeof(ngx_mcp_jobs_t));
    if (jobs == NULL) {
        return NGX_ERROR;
    }

    zone->jobs = jobs;

    ngx_queue_init(&jobs->all);
    ngx_queue_init(&jobs->turns);

    jobs->turn.data = &zone->dummy;
    jobs->turn.handler = ngx_mcp_job_turn;
    jobs->turn.log = cycle->log;

    ngx_mcp_watch(zone->local, &jobs->room, ngx_mcp_signal_name(NGX_MCP_ROOM),
                  &jobs->turn);

    return NGX_OK;
}


void
ngx_mcp_jobs_exit(void *data)
{
    ngx_mcp_zone_t *zone = data;

    ngx_queue_t    *q;
    ngx_mcp_job_t  *job;

    zone->jobs->exiting = ngx_current_msec;

    /* at once: if there is no timer, the process exits without another look */

    for (q = ngx_queue_head(&zone->jobs->all);
         q != ngx_queue_sentinel(&zone->jobs->all);
         q = ngx_queue_next(q))
    {
        job = ngx_queue_data(q, ngx_mcp_job_t, queue);
        ngx_mcp_job_stay(job);
    }
}


/*
 * We exit, and another instance waits for the database.  Calls may end before
 * it gets that, but not for as long as they like: what is left then is to it
 * as if this process had died.  Whether we may let go.
 */

ngx_uint_t
ngx_mcp_jobs_leave(ngx_mcp_zone_t *zone)
{
    ngx_uint_t      late;
    ngx_queue_t    *q, *next;
    ngx_mcp_job_t  *job;

    late = (ngx_current_msec - zone->jobs->exiting >= NGX_MCP_JOB_KEEP);

    for (q = ngx_queue_head(&zone->jobs->all);
         q != ngx_queue_sentinel(&zone->jobs->all);
         q = next)
    {
        next = ngx_queue_next(q);
        job = ngx_queue_data(q, ngx_mcp_job_t, queue);

        if (job->over) {
            continue;
        }

        if (!late) {
            return 0;
        }

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "call in the background is given up for another "
                      "instance of nginx, task %V", &job->sender.task_id);

        ngx_mcp_job_cancel(job);
    }

    return 1;
}


/* a process has died: its calls fail, or are run by whoever comes first */

void
ngx_mcp_jobs_orphans(void *data)
{
    ngx_mcp_zone_t *zone = data;

    ngx_uint_t             i;
    ngx_pool_t            *pool;
    ngx_mcp_op_orphans_t   op;

    /* who exits begins nothing new; words are read without the lock */

    if (ngx_exiting || !ngx_mcp_zone_has_calls(zone)) {
        return;
    }

    do {
        pool = ngx_create_pool(4096, ngx_cycle->log);
        if (pool == NULL) {
            return;
        }

        ngx_memzero(&op, sizeof(ngx_mcp_op_orphans_t));
        op.op.type = NGX_MCP_OP_ORPHANS;
        op.op.pool = pool;
        op.limit = NGX_MCP_JOB_ORPHANS;
        op.want = NGX_MCP_WANT_TOOL
                  | NGX_MCP_WANT(NGX_MCP_PARAMS);

        op.holder = ngx_mcp_stream_new(zone->local);

        if (ngx_mcp_now(zone, &op.op) != NGX_OK) {
            op.n = 0;
            op.more = 0;
        }

        for (i = 0; i < op.n; i++) {
            ngx_mcp_job_adopt(zone, &op.views[i], op.holder);
        }

        ngx_destroy_pool(pool);

    } while (op.more);
}


static void
ngx_mcp_job_adopt(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v, uint64_t holder)
{
    ngx_mcp_job_t  *job;

    job = ngx_mcp_job_again(zone, v);

    if (job == NULL) {
        ngx_mcp_job_give_up(zone, v);
        return;
    }

    job->holder = holder;
    ngx_mcp_job_begin(job, v);
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


static void
ngx_mcp_job_give_up(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v)
{
    ngx_mcp_op_update_t  op;

    ngx_memzero(&op, sizeof(ngx_mcp_op_update_t));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.id = v->id;
    op.event.type = NGX_MCP_EV_ORPHANED;

    (void) ngx_mcp_now(zone, &op.op);
}
