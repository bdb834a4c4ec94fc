
/*
 * The jobs of a zone in this process: whose turn it is to run, calls that are
 * taken over from processes that died, and the end of this one.
 */


#include "ngx_mcp_job.h"


/* so long it keeps the store from another instance that waits for it */
#define NGX_MCP_JOB_KEEP     10000

#define NGX_MCP_JOB_ORPHANS  32

/* tools of which no more may run now, in one look for whose turn it is */
#define NGX_MCP_JOB_FULL     NGX_MCP_STAT_TOOLS


static void ngx_mcp_jobs_turn(ngx_event_t *ev);
static ngx_uint_t ngx_mcp_jobs_full(ngx_str_t **full, ngx_mcp_job_t *job);
static void ngx_mcp_jobs_again(ngx_event_t *ev);
static void ngx_mcp_jobs_ask_orphans(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_jobs_submit_orphans(ngx_mcp_zone_t *zone);
static void ngx_mcp_jobs_orphans_handler(ngx_mcp_op_t *op);
static ngx_uint_t ngx_mcp_jobs_adopt(ngx_mcp_zone_t *zone,
    ngx_mcp_op_orphans_t *op);
static void ngx_mcp_job_adopt(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v,
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


/* as the zone has them: one that was taken over may come before others */

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


/* there may be room for another one, of whichever process */

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

    zone->jobs->turned++;

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
         * Its tool has enough or is paused, or all together have enough; or
         * this is not known yet, and then the next one is not tried before.
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
 * The store has told later whether a job may run.  If so, there may be room
 * for another one; if not, there may be since it was tried.
 */

void
ngx_mcp_jobs_tried(ngx_mcp_job_t *job, ngx_uint_t reason)
{
    ngx_mcp_jobs_t  *jobs;

    jobs = job->zone->jobs;

    if (ngx_queue_empty(&jobs->turns)
        || (reason == NGX_MCP_LIMIT_RUNNING && job->turned == jobs->turned))
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
 * A process has died: its calls fail, or are run by whoever comes first, and
 * tasks that it did not announce are
 */

void
ngx_mcp_jobs_orphans(void *data)
{
    ngx_mcp_zone_t *zone = data;

    /* who exits begins nothing new; words are read without the lock */

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

    c = ev->data;

    ngx_mcp_jobs_orphans(c->data);
}


static void
ngx_mcp_jobs_ask_orphans(ngx_mcp_zone_t *zone)
{
    while (ngx_mcp_jobs_submit_orphans(zone) == NGX_OK) { /* void */ }
}


/* NGX_OK: there may be more; NGX_DONE: that was all; NGX_AGAIN: not yet */

static ngx_int_t
ngx_mcp_jobs_submit_orphans(ngx_mcp_zone_t *zone)
{
    ngx_int_t              rc;
    ngx_uint_t             more;
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

    more = ngx_mcp_jobs_adopt(zone, op);

    ngx_destroy_pool(pool);

    return more ? NGX_OK : NGX_DONE;
}


static void
ngx_mcp_jobs_orphans_handler(ngx_mcp_op_t *op)
{
    ngx_uint_t       more;
    ngx_mcp_zone_t  *zone;

    zone = op->data;

    more = ngx_mcp_jobs_adopt(zone, (ngx_mcp_op_orphans_t *) op);
    more |= zone->jobs->died;

    zone->jobs->orphans = NULL;
    zone->jobs->died = 0;

    ngx_destroy_pool(op->pool);

    if (more && !ngx_exiting) {
        ngx_mcp_jobs_ask_orphans(zone);
    }
}


/* whether there may be more of them */

static ngx_uint_t
ngx_mcp_jobs_adopt(ngx_mcp_zone_t *zone, ngx_mcp_op_orphans_t *op)
{
    ngx_uint_t  i;

    if (op->op.reason != NGX_MCP_OK) {
        /* it is asked again: nobody else may be alive to do so */
        ngx_add_timer(&zone->jobs->again, NGX_MCP_JOB_AGAIN);
        return 0;
    }

    for (i = 0; i < op->n; i++) {
        ngx_mcp_job_adopt(zone, &op->views[i], op->holder);
    }

    return op->more;
}


static void
ngx_mcp_job_adopt(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v, uint64_t holder)
{
    ngx_mcp_job_t  *job;

    job = ngx_mcp_job_again(zone, v);

    if (job == NULL) {
        ngx_mcp_job_orphaned(zone, &v->id);
        return;
    }

    job->holder = holder;
    ngx_mcp_job_begin(job, v);
}
