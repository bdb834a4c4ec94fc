
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Adding tasks of a database to a zone. */


#include "ngx_mcp_load.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_slot.h"


/*
 * Changes that may have been made but are not in the database: as many as in
 * about a second, and so many for each ms since the last commit, for example
 * if the database is a backup.  Their numbers are not used again.
 */
#define NGX_MCP_LOAD_MARGIN       1000000
#define NGX_MCP_LOAD_PER_MS       1000
#define NGX_MCP_LOAD_MAX_ELAPSED  (10 * 365 * 86400000ULL)


static void ngx_mcp_load_times(ngx_mcp_load_t *load, ngx_mcp_record_t *rec);
static ngx_int_t ngx_mcp_load_unique_locked(ngx_mcp_table_t *t,
    ngx_mcp_load_t *load);


/*
 * Removes all tasks of the zone, and sets the secret of the tasks that follow;
 * NULL: the zone keeps its own.
 */

void
ngx_mcp_load_begin_locked(ngx_mcp_table_t *t, uint64_t *secret,
    ngx_mcp_load_t *load)
{
    ngx_mcp_save_t    *sv;
    ngx_mcp_header_t  *sh;

    sv = ngx_mcp_save_of(t);
    sh = t->sh;

    sv->instance = 0;
    sv->rewrite = 0;
    sv->saved = NGX_MCP_NEVER;
    sv->safe = NGX_MCP_NEVER;
    sv->since = 0;
    sv->since_next = 0;

    sh->journal = 0;
    sh->slot.fresh = 1;
    sh->block.fresh = 1;

    if (secret) {
        sh->secret[0] = secret[0];
        sh->secret[1] = secret[1];
    }

    ngx_mcp_rebuild_locked(t);

    /* as close as possible to the deadlines that follow */
    sh->wheel.base = load->now;
}


/* Adds a task.  If the zone is full, it is only counted. */

void
ngx_mcp_load_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load,
    ngx_mcp_record_t *rec)
{
    size_t  blocks;

    load->seq = ngx_max(load->seq, rec->seq);
    load->seq = ngx_max(load->seq, rec->changed);
    load->seq = ngx_max(load->seq, rec->queue_seq);
    load->seq = ngx_max(load->seq, rec->task.version);
    load->seq = ngx_max(load->seq, rec->revision);

    blocks = ngx_mcp_slot_blocks_locked(t, rec);

    load->tasks++;
    load->blocks += blocks;

    if (ngx_mcp_available(&t->sh->slot) == 0
        || blocks > ngx_mcp_available(&t->sh->block))
    {
        load->full = 1;
    }

    if (load->full) {
        return;
    }

    ngx_mcp_load_times(load, rec);
    (void) ngx_mcp_slot_write_locked(t, rec, 0);
}


/*
 * Converts the times of a record.  Deadlines are the same as if nginx had been
 * running, except for leases, which workers could not extend: these start
 * again.  Holders are dead, and workers get new entries.
 */

static void
ngx_mcp_load_times(ngx_mcp_load_t *load, ngx_mcp_record_t *rec)
{
    uint64_t         lease, updated;
    ngx_mcp_task_t  *task;

    task = &rec->task;

    /* the lease that was granted may be longer than that of the policy */

    lease = task->policy.lease;
    updated = task->updated + load->clock_diff;

    if (task->step_end > updated) {
        lease = ngx_max(lease, task->step_end - updated);
    }

    ngx_mcp_record_from_store(rec, load->now, load->store_now);

    if (task->state == NGX_MCP_RUNNING
        && task->step_end != NGX_MCP_NEVER)
    {
        lease = (task->policy.lease == NGX_MCP_UNLIMITED)
                ? NGX_MCP_NEVER : load->now + lease;

        task->step_end = ngx_max(task->step_end, lease);
    }

    task->holder = 0;
    task->worker = 0;

    /* the response to the call may have been sent */
    task->flags |= NGX_MCP_ANNOUNCED|NGX_MCP_LOADED;
}


/*
 * Rebuilds everything that follows from the slots.  NGX_ERROR: tasks
 * contradict each other, and load->field and load->row say where.
 */

ngx_int_t
ngx_mcp_load_end_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load)
{
    ngx_mcp_save_t    *sv;
    ngx_mcp_header_t  *sh;

    sv = ngx_mcp_save_of(t);
    sh = t->sh;

    ngx_mcp_rebuild_locked(t);

    sh->seq = ngx_max(sh->seq, load->seq) + NGX_MCP_LOAD_MARGIN
              + ngx_min(load->elapsed, NGX_MCP_LOAD_MAX_ELAPSED)
                * NGX_MCP_LOAD_PER_MS;

    sv->saved = sh->seq;
    sv->safe = sh->seq;
    sv->failed = 0;

    /* a new epoch: calls of earlier processes have to be taken over */
    sh->epoch++;
    sh->waiting = 0;

    return ngx_mcp_load_unique_locked(t, load);
}


/* uniqueness that lists and hashes rely on, see ngx_mcp_check_locked() */

static ngx_int_t
ngx_mcp_load_unique_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load)
{
    uint32_t         n;
    ngx_mcp_slot_t  *s, *next;

    for (n = t->sh->recent; n; n = s->recent.next) {
        s = ngx_mcp_slot(t, n);
        next = s->recent.next ? ngx_mcp_slot(t, s->recent.next) : NULL;
        load->row = s->seq;

        if (next && next->body.changed == s->body.changed) {
            load->field = "changed";
            return NGX_ERROR;
        }

        next = (s->queued && s->queue_next) ? ngx_mcp_slot(t, s->queue_next)
                                            : NULL;

        if (next && next->body.queue_seq == s->body.queue_seq) {
            load->field = "queue_seq";
            return NGX_ERROR;
        }

        if (ngx_mcp_find_locked(t, &s->id, NULL, 0) != s) {
            load->field = "id";
            return NGX_ERROR;
        }
    }

    /* leave enough numbers for future changes */

    if (t->sh->seq > NGX_MCP_RECORD_COUNT / 2) {
        load->field = "changed";
        return NGX_ERROR;
    }

    return NGX_OK;
}
