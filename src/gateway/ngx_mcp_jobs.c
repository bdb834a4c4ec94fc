
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * All jobs of a zone in this process: the order in which they run, calls taken
 * over from processes that died, and the exit of this process.
 */


#include "ngx_mcp_job.h"


/* time an exiting process keeps the store from a new instance, milliseconds */
#define NGX_MCP_JOB_KEEP     10000

/* maximum number of calls taken over in one operation */
#define NGX_MCP_JOB_ORPHANS  32

/* maximum number of tools remembered as full in one pass over the jobs */
#define NGX_MCP_JOB_FULL     NGX_MCP_STAT_TOOLS


static void ngx_mcp_jobs_turn(ngx_event_t *ev);
static ngx_uint_t ngx_mcp_jobs_full(ngx_str_t **full, ngx_mcp_job_t *job);
static void ngx_mcp_jobs_again(ngx_event_t *ev);
static void ngx_mcp_jobs_ask_orphans(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_jobs_submit_orphans(ngx_mcp_zone_t *zone);
static void ngx_mcp_jobs_orphans_handler(ngx_mcp_op_t *op);
static ngx_int_t ngx_mcp_jobs_adopt(ngx_mcp_zone_t *zone,
    ngx_mcp_op_orphans_t *op);
static ngx_int_t ngx_mcp_job_adopt(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v,
    uint64_t holder);


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
    jobs->turn.handler = ngx_mcp_jobs_turn;
    jobs->turn.log = cycle->log;

    jobs->again.data = &zone->dummy;
    jobs->again.handler = ngx_mcp_jobs_again;
    jobs->again.log = cycle->log;
    jobs->again.cancelable = 1;

    ngx_mcp_watch(zone->local, &jobs->capacity,
                  ngx_mcp_signal_name(NGX_MCP_CAPACITY), &jobs->turn);

    return NGX_OK;
}


/*
 * Adds a job to those that wait, in the order of creation of their tasks: a
 * job that was taken over may be older than others.
 */

void
ngx_mcp_jobs_line_up(ngx_mcp_job_t *job)
{
    ngx_queue_t    *q, *turns;
    ngx_mcp_job_t  *before;

    if (job->queued) {
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
    job->queued = 1;
}


/* Tries jobs that wait: a call of any process may have ended. */

static void
ngx_mcp_jobs_turn(ngx_event_t *ev)
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

    zone->jobs->passes++;

    for (q = ngx_queue_head(&zone->jobs->turns);
         q != ngx_queue_sentinel(&zone->jobs->turns);
         q = next)
    {
        next = ngx_queue_next(q);
        job = ngx_queue_data(q, ngx_mcp_job_t, turn);

        if (job->state != NGX_MCP_JOB_TURN || ngx_mcp_jobs_full(full, job)) {
            continue;
        }

        ngx_mcp_job_attempt(job);

        if (job->state != NGX_MCP_JOB_TURN) {
            ngx_queue_remove(&job->turn);
            job->queued = 0;
        }

        if (job->state != NGX_MCP_JOB_TURN
            && job->state != NGX_MCP_JOB_BEGINNING)
        {
            continue;
        }

        /*
         * The limit of the tool or of the zone is reached, or the tool is
         * paused, or the operation is not complete yet.  The next job of this
         * tool is not tried in this pass.
         */

        if (n == NGX_MCP_JOB_FULL) {
            return;
        }

        full[n++] = &job->sender.tool;
        full[n] = NULL;
    }
}


static ngx_uint_t
ngx_mcp_jobs_full(ngx_str_t **full, ngx_mcp_job_t *job)
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


/*
 * Called if the store has answered an attempt later.  If the job may run, the
 * next one may run, too.  If not, the jobs are tried again only if a pass was
 * made since the attempt was submitted.
 */

void
ngx_mcp_jobs_tried(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    ngx_mcp_jobs_t  *jobs;

    jobs = job->zone->jobs;

    if (ngx_queue_empty(&jobs->turns)
        || (reason == NGX_MCP_LIMIT_RUNNING && job->pass == jobs->passes))
    {
        return;
    }

    ngx_post_event(&jobs->turn, &ngx_posted_events);
}


void
ngx_mcp_jobs_exit(void *data)
{
    ngx_mcp_zone_t *zone = data;

    ngx_queue_t    *q;
    ngx_mcp_job_t  *job;

    zone->jobs->exiting = ngx_current_msec;

    /* without a timer the process would exit before the next event */

    for (q = ngx_queue_head(&zone->jobs->all);
         q != ngx_queue_sentinel(&zone->jobs->all);
         q = ngx_queue_next(q))
    {
        job = ngx_queue_data(q, ngx_mcp_job_t, queue);
        ngx_mcp_job_stay(job);
    }
}


/*
 * Called when this process exits and another instance of nginx waits for the
 * database.  Returns 1 if the database may be released: all jobs are over, or
 * NGX_MCP_JOB_KEEP has passed.  In the latter case the remaining jobs are
 * cancelled, and the other instance treats them as those of a dead process.
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

        if (job->state == NGX_MCP_JOB_OVER) {
            continue;
        }

        if (!late) {
            return 0;
        }

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "background call aborted, because another instance "
                      "of nginx needs the store, task %V",
                      &job->sender.task_id);

        ngx_mcp_job_cancel(job);
    }

    return 1;
}


/*
 * A process has died.  Its calls fail or are taken over by the process that
 * submits this operation first, which also announces tasks that the dead
 * process did not announce.
 */

void
ngx_mcp_jobs_orphans(void *data)
{
    ngx_mcp_zone_t *zone = data;

    /* an exiting process takes over nothing; the check needs no lock */

    if (ngx_exiting || !ngx_mcp_zone_held(zone)) {
        return;
    }

    if (zone->jobs->orphans) {
        zone->jobs->died = 1;
        return;
    }

    ngx_mcp_jobs_ask_orphans(zone);
}


static void
ngx_mcp_jobs_again(ngx_event_t *ev)
{
    ngx_connection_t  *c;
    ngx_mcp_zone_t    *zone;

    c = ev->data;
    zone = c->data;

    if (zone->jobs->unadopted) {
        zone->jobs->unadopted = 0;
        ngx_mcp_jobs_orphans_handler(&zone->jobs->orphans->op);
        return;
    }

    ngx_mcp_jobs_orphans(zone);
}


static void
ngx_mcp_jobs_ask_orphans(ngx_mcp_zone_t *zone)
{
    while (ngx_mcp_jobs_submit_orphans(zone) == NGX_OK) { /* void */ }
}


/*
 * NGX_OK: there may be more orphans; NGX_DONE: there are no more, or the store
 * has failed; NGX_AGAIN: the operation is in progress, or no memory for all
 * jobs; NGX_ERROR: no memory.
 */

static ngx_int_t
ngx_mcp_jobs_submit_orphans(ngx_mcp_zone_t *zone)
{
    ngx_int_t              rc;
    ngx_pool_t            *pool;
    ngx_mcp_op_orphans_t  *op;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    op = pool ? ngx_pcalloc(pool, sizeof(ngx_mcp_op_orphans_t)) : NULL;

    if (op == NULL) {

        if (pool) {
            ngx_destroy_pool(pool);
        }

        ngx_add_timer(&zone->jobs->again, NGX_MCP_JOB_AGAIN);
        return NGX_ERROR;
    }

    op->op.type = NGX_MCP_OP_ORPHANS;
    op->op.pool = pool;
    op->op.handler = ngx_mcp_jobs_orphans_handler;
    op->op.data = zone;
    op->limit = NGX_MCP_JOB_ORPHANS;
    op->want = NGX_MCP_WANT_TOOL | NGX_MCP_WANT(NGX_MCP_PARAMS);
    op->holder = ngx_mcp_stream_new(zone->local);

    rc = ngx_mcp_submit(zone, &op->op);

    if (rc == NGX_AGAIN) {
        zone->jobs->orphans = op;
        return NGX_AGAIN;
    }

    if (rc != NGX_OK) {
        op->op.reason = NGX_MCP_REASONS;
    }

    rc = ngx_mcp_jobs_adopt(zone, op);

    if (rc != NGX_AGAIN) {
        ngx_destroy_pool(pool);
    }

    return rc;
}


static void
ngx_mcp_jobs_orphans_handler(ngx_mcp_op_t *op)
{
    ngx_int_t        rc;
    ngx_uint_t       more;
    ngx_mcp_zone_t  *zone;

    zone = op->data;

    rc = ngx_mcp_jobs_adopt(zone, (ngx_mcp_op_orphans_t *) op);

    if (rc == NGX_AGAIN) {
        return;
    }

    more = (rc == NGX_OK) | zone->jobs->died;

    zone->jobs->orphans = NULL;
    zone->jobs->died = 0;

    ngx_destroy_pool(op->pool);

    if (more && !ngx_exiting) {
        ngx_mcp_jobs_ask_orphans(zone);
    }
}


/*
 * NGX_OK: there may be more orphans; NGX_DONE: there are no more, or the store
 * has failed; NGX_AGAIN: no memory, the timer continues with the same ones.
 */

static ngx_int_t
ngx_mcp_jobs_adopt(ngx_mcp_zone_t *zone, ngx_mcp_op_orphans_t *op)
{
    if (op->op.reason != NGX_MCP_OK) {
        /* tried again: there may be no other process that does */
        ngx_add_timer(&zone->jobs->again, NGX_MCP_JOB_AGAIN);
        return NGX_DONE;
    }

    while (op->n) {

        if (ngx_mcp_job_adopt(zone, op->views, op->holder) != NGX_OK) {
            zone->jobs->orphans = op;
            zone->jobs->unadopted = 1;
            ngx_add_timer(&zone->jobs->again, NGX_MCP_JOB_AGAIN);
            return NGX_AGAIN;
        }

        op->views++;
        op->n--;
    }

    return op->more ? NGX_OK : NGX_DONE;
}


/*
 * Creates a job for a task that the store has assigned to the holder.
 * NGX_ERROR: no memory.
 */

static ngx_int_t
ngx_mcp_job_adopt(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v, uint64_t holder)
{
    ngx_mcp_job_t  *job;

    if (ngx_mcp_job_gateway(zone, v) == NULL) {
        return ngx_mcp_job_orphaned(zone, &v->id);
    }

    job = ngx_mcp_job_again(zone, v);
    if (job == NULL) {
        return NGX_ERROR;
    }

    job->holder = holder;
    ngx_mcp_job_begin(job, v);

    return NGX_OK;
}
