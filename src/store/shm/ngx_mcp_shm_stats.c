
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The statistics of a zone.  They are copied in pieces, and the lock is
 * released after each, so that no process waits long.  The counters of tools
 * may therefore be newer than those of the zone.
 */


#include "ngx_mcp_shm.h"
#include "ngx_mcp_lock.h"
#include "ngx_mcp_stats.h"


/* entries copied while the lock is held once */
#define NGX_MCP_STATS_PIECE   16

/* background calls examined to find the waiting ones */
#define NGX_MCP_STATS_LOOK    1024

/*
 * To find the tools that share an entry, all names are examined: so many of
 * them, or of the buckets of the hash, while the lock is held once, and so
 * many times at most.
 */
#define NGX_MCP_STATS_NAMES   1024
#define NGX_MCP_STATS_HASH    16384
#define NGX_MCP_STATS_HOLDS   8

/* a worker counts as active for this time after a request, ms */
#define NGX_MCP_STATS_ACTIVE  120000


static void ngx_mcp_stats_zone_locked(ngx_mcp_table_t *t,
    ngx_mcp_op_stats_t *op);
static void ngx_mcp_stats_present(ngx_mcp_table_t *t, ngx_mcp_op_stats_t *op);
static void ngx_mcp_stats_workers_locked(ngx_mcp_table_t *t,
    ngx_mcp_op_stats_t *op);
static void ngx_mcp_stats_tools_locked(ngx_mcp_table_t *t,
    ngx_mcp_op_stats_t *op);
static uint64_t ngx_mcp_stats_queued_locked(ngx_mcp_table_t *t, uint32_t tool);
static void ngx_mcp_stats_others(ngx_mcp_table_t *t,
    ngx_mcp_tool_view_t *view);
static uint64_t ngx_mcp_stats_others_locked(ngx_mcp_table_t *t,
    uint32_t *bucket);
static void ngx_mcp_stats_held_locked(ngx_mcp_table_t *t,
    ngx_mcp_op_stats_t *op, uint64_t *oldest);


ngx_int_t
ngx_mcp_shm_stats(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_stats_t *op = (ngx_mcp_op_stats_t *) o;

    uint64_t          oldest[NGX_MCP_STAT_TOOLS];
    ngx_uint_t        i, end;
    ngx_mcp_table_t  *t;

    t = zone->table;
    op->ntools = 0;
    op->nworkers = 0;
    op->lock_held = ngx_mcp_lock_held(t);

    if (op->lock_held) {

        /*
         * The holder of the lock does not run.  Operators need the statistics
         * even if it stopped in the middle of a change, so they are read
         * without the lock, and no link is followed.
         */

        op->detail = 0;
        op->oldest = 0;
        ngx_mcp_stats_zone_locked(t, op);
        ngx_mcp_stats_workers_locked(t, op);
        ngx_mcp_stats_present(t, op);
        return NGX_OK;
    }

    if (op->detail) {

        /* the maximum number of entries never changes */

        op->tool_views = ngx_palloc(o->pool, t->sh->tool_stats_end
                                     * sizeof(ngx_mcp_tool_view_t));
        op->worker_views = ngx_palloc(o->pool, t->sh->worker_stats_end
                                   * sizeof(ngx_mcp_worker_stat_t));

        if (op->tool_views == NULL || op->worker_views == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_mcp_lock_read(t);
    ngx_mcp_stats_zone_locked(t, op);
    ngx_mcp_stats_workers_locked(t, op);
    end = t->sh->tool_stats;
    ngx_mcp_unlock(t);

    ngx_mcp_stats_present(t, op);

    if (!op->detail) {
        return NGX_OK;
    }

    ngx_memzero(oldest, sizeof(oldest));

    ngx_mcp_lock_read(t);
    ngx_mcp_stats_held_locked(t, op, oldest);
    ngx_mcp_unlock(t);

    while (op->ntools < end) {
        ngx_mcp_lock_read(t);
        ngx_mcp_stats_tools_locked(t, op);
        ngx_mcp_unlock(t);
    }

    ngx_mcp_stats_others(t, &op->tool_views[NGX_MCP_OTHER]);
    op->oldest = 0;

    for (i = 0; i < op->ntools; i++) {
        op->tool_views[i].oldest = ngx_max(op->tool_views[i].oldest,
                                           oldest[i]);
        op->oldest = ngx_max(op->oldest, op->tool_views[i].oldest);
    }

    return NGX_OK;
}


static void
ngx_mcp_stats_zone_locked(ngx_mcp_table_t *t, ngx_mcp_op_stats_t *op)
{
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    op->count = sh->count;
    op->task_counters = sh->task_counters;
    ngx_memcpy(op->states, sh->states, sizeof(op->states));
    op->owners = sh->names[NGX_MCP_OWNER];
    op->tools = sh->names[NGX_MCP_TOOL];
    op->sessions = sh->names[NGX_MCP_SESSION];
    op->bytes = sh->bytes;
    op->slots = sh->slot.end - 1;
    op->slots_used = sh->slot.used;
    op->blocks = sh->block.end - 1;
    op->blocks_used = sh->block.used;
    op->sweep_at = sh->sweep_at;
    op->running = sh->running;
}


/* each process writes its own entry, without the lock */

static void
ngx_mcp_stats_present(ngx_mcp_table_t *t, ngx_mcp_op_stats_t *op)
{
    ngx_uint_t  i;

    op->waiting = 0;
    op->streams = 0;

    for (i = 0; i < NGX_MCP_PROCESSES; i++) {
        op->waiting += t->sh->present[i].waiting;
        op->streams += t->sh->present[i].streams;
    }
}


static void
ngx_mcp_stats_workers_locked(ngx_mcp_table_t *t, ngx_mcp_op_stats_t *op)
{
    uint32_t  i;

    op->workers = 0;

    for (i = 0; i < t->sh->worker_stats; i++) {
        op->workers += (t->worker_stats[i].seen
                        + NGX_MCP_STATS_ACTIVE > ngx_current_msec);
    }

    if (op->detail) {
        op->nworkers = t->sh->worker_stats;
        ngx_memcpy(op->worker_views, t->worker_stats,
                   op->nworkers * sizeof(ngx_mcp_worker_stat_t));
    }
}


/* continues after the entries copied so far */

static void
ngx_mcp_stats_tools_locked(ngx_mcp_table_t *t, ngx_mcp_op_stats_t *op)
{
    ngx_uint_t            end;
    ngx_mcp_tool_view_t  *view;

    end = ngx_min(op->ntools + NGX_MCP_STATS_PIECE, t->sh->tool_stats);

    for ( /* void */ ; op->ntools < end; op->ntools++) {
        view = &op->tool_views[op->ntools];
        view->stat = t->tool_stats[op->ntools];
        view->oldest = ngx_mcp_stats_queued_locked(t, view->stat.tool);
    }
}


/*
 * Age of the oldest queued task of a tool, ms.  A queue is in order, so the
 * first task of each priority is its oldest.
 */

static uint64_t
ngx_mcp_stats_queued_locked(ngx_mcp_table_t *t, uint32_t tool)
{
    uint32_t          n;
    uint64_t          age, oldest;
    ngx_uint_t        i;
    ngx_mcp_queue_t  *q;

    oldest = 0;

    if (tool == 0) {
        return 0;
    }

    q = ngx_mcp_name(t, tool)->u.queue;

    for (i = 0; i < NGX_MCP_PRIORITIES; i++) {
        n = q[i].head;

        if (n) {
            age = ngx_mcp_task_age(&ngx_mcp_slot(t, n)->body.task,
                                   ngx_current_msec);
            oldest = ngx_max(oldest, age);
        }
    }

    return oldest;
}


/* the oldest queued task of all tools that share the entry "other" */

static void
ngx_mcp_stats_others(ngx_mcp_table_t *t, ngx_mcp_tool_view_t *view)
{
    uint32_t    bucket;
    uint64_t    oldest;
    ngx_uint_t  i;

    if (view->stat.states[NGX_MCP_QUEUED] == 0) {
        return;
    }

    bucket = 0;

    for (i = 0; i < NGX_MCP_STATS_HOLDS; i++) {

        ngx_mcp_lock_read(t);
        oldest = ngx_mcp_stats_others_locked(t, &bucket);
        ngx_mcp_unlock(t);

        view->oldest = ngx_max(view->oldest, oldest);

        if (bucket > t->sh->name_mask) {
            break;
        }
    }
}


/* examines a part of the hash, and advances bucket */

static uint64_t
ngx_mcp_stats_others_locked(ngx_mcp_table_t *t, uint32_t *bucket)
{
    uint32_t         n, end;
    uint64_t         age, oldest;
    ngx_uint_t       names;
    ngx_mcp_name_t  *name;

    end = ngx_min(*bucket + NGX_MCP_STATS_HASH, t->sh->name_mask + 1);
    oldest = 0;

    for (names = 0;
         *bucket < end && names < NGX_MCP_STATS_NAMES;
         (*bucket)++)
    {
        for (n = t->names[*bucket]; n; n = name->next) {
            name = ngx_mcp_name(t, n);
            names++;

            if (name->kind == NGX_MCP_TOOL
                && name->stat == NGX_MCP_OTHER)
            {
                age = ngx_mcp_stats_queued_locked(t, n);
                oldest = ngx_max(oldest, age);
            }
        }
    }

    return oldest;
}


/*
 * Background calls that wait to start are not in queues, but in the held list.
 */

static void
ngx_mcp_stats_held_locked(ngx_mcp_table_t *t, ngx_mcp_op_stats_t *op,
    uint64_t *oldest)
{
    uint32_t         n;
    uint64_t         age;
    ngx_uint_t       i, stat;
    ngx_mcp_slot_t  *s;

    n = t->sh->held.head;

    for (i = 0; n && i < NGX_MCP_STATS_LOOK; i++) {
        s = ngx_mcp_slot(t, n);
        n = s->queue_next;

        if (ngx_mcp_task_claimable(&s->body.task)) {
            stat = ngx_mcp_name(t, s->tool)->stat;
            age = ngx_mcp_task_age(&s->body.task, ngx_current_msec);
            oldest[stat] = ngx_max(oldest[stat], age);
        }
    }
}
