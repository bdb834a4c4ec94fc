
#include "ngx_mcp_load.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_slot.h"


/*
 * How many changes may have been made that nothing saved tells of: in a second
 * or so, and for each ms of what may be lost, as with a backup.
 */
#define NGX_MCP_LOAD_AHEAD   1000000
#define NGX_MCP_LOAD_PER_MS  1000
#define NGX_MCP_LOAD_AWAY    (10 * 365 * 86400000ULL)


static void ngx_mcp_load_times(ngx_mcp_load_t *load, ngx_mcp_record_t *rec);
static ngx_int_t ngx_mcp_load_unique_locked(ngx_mcp_table_t *t,
    ngx_mcp_load_t *load);


/*
 * The zone is emptied, whatever is in there, and gets the secret of those
 * tasks that are to come.
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

    /* as near as possible to what will be due */
    sh->wheel.base = load->now;
}


/* what does not fit is counted all the same */

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
    ngx_mcp_slot_write_locked(t, rec);
}


/*
 * Deadlines are where they would be had we been there all the time, but for
 * leases: nobody could prolong his.  Processes that had calls are dead, and
 * workers are counted anew.
 */

static void
ngx_mcp_load_times(ngx_mcp_load_t *load, ngx_mcp_record_t *rec)
{
    uint64_t         lease, updated;
    ngx_mcp_task_t  *task;

    task = &rec->task;

    /* as long as whoever has it was given, which may be more than usual */

    lease = task->policy.lease;
    updated = task->updated + load->ahead;

    if (task->step_end > updated) {
        lease = ngx_max(lease, task->step_end - updated);
    }

    ngx_mcp_record_from_store(rec, load->now, load->store);

    if (task->state == NGX_MCP_RUNNING
        && task->step_end != NGX_MCP_NEVER)
    {
        lease = (task->policy.lease == NGX_MCP_UNLIMITED)
                ? NGX_MCP_NEVER : load->now + lease;

        task->step_end = ngx_max(task->step_end, lease);
    }

    task->holder = 0;
    task->worker = 0;

    /* the answer to the call may have been sent */
    task->flags |= NGX_MCP_ANNOUNCED|NGX_MCP_LOADED;
}


/*
 * Everything else follows from the slots.  NGX_ERROR: these contradict each
 * other, and load->wrong says where.
 */

ngx_int_t
ngx_mcp_load_end_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load)
{
    ngx_mcp_save_t    *sv;
    ngx_mcp_header_t  *sh;

    sv = ngx_mcp_save_of(t);
    sh = t->sh;

    ngx_mcp_rebuild_locked(t);

    sh->seq = ngx_max(sh->seq, load->seq) + NGX_MCP_LOAD_AHEAD
              + ngx_min(load->away, NGX_MCP_LOAD_AWAY) * NGX_MCP_LOAD_PER_MS;

    sv->saved = sh->seq;
    sv->safe = sh->seq;
    sv->failed = 0;

    /* calls of processes that were here before have to be looked after */
    sh->epoch++;
    sh->waiting = 0;

    return ngx_mcp_load_unique_locked(t, load);
}


/* what lists and hashes rely on, see ngx_mcp_check_locked() */

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
            load->wrong = "changed";
            return NGX_ERROR;
        }

        next = (s->queued && s->queue_next) ? ngx_mcp_slot(t, s->queue_next)
                                            : NULL;

        if (next && next->body.queue_seq == s->body.queue_seq) {
            load->wrong = "queue_seq";
            return NGX_ERROR;
        }

        if (ngx_mcp_find_locked(t, &s->id, NULL, 0) != s) {
            load->wrong = "id";
            return NGX_ERROR;
        }
    }

    /* there has to be room for what will be */

    if (t->sh->seq > NGX_MCP_RECORD_COUNT / 2) {
        load->wrong = "changed";
        return NGX_ERROR;
    }

    return NGX_OK;
}
