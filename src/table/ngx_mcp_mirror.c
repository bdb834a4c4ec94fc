
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_mirror.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_queue.h"
#include "ngx_mcp_slot.h"


/* payloads of a copy that a record replaces */

typedef struct {
    ngx_uint_t  mask;
    size_t      blocks;       /* that they need */
    int64_t     growth;       /* bytes */
} ngx_mcp_mirror_diff_t;


static ngx_int_t ngx_mcp_mirror_insert_locked(ngx_mcp_table_t *t,
    ngx_mcp_record_t *rec, ngx_uint_t flags);
static ngx_int_t ngx_mcp_mirror_replace_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_record_t *rec, ngx_uint_t flags);
static void ngx_mcp_mirror_task(ngx_mcp_record_t *rec, ngx_uint_t flags,
    ngx_mcp_task_t *task);
static void ngx_mcp_mirror_diff_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_record_t *rec, ngx_mcp_mirror_diff_t *diff);
static ngx_uint_t ngx_mcp_mirror_asked(ngx_mcp_task_t *old,
    ngx_mcp_task_t *task);
static ngx_uint_t ngx_mcp_mirror_number_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_record_t *rec, ngx_mcp_body_t *next);
static ngx_int_t ngx_mcp_mirror_room_locked(ngx_mcp_table_t *t,
    ngx_mcp_record_t *rec, ngx_mcp_slot_t *keep, size_t blocks);
static ngx_mcp_slot_t *ngx_mcp_mirror_victim_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *keep, ngx_uint_t *examined);
static ngx_uint_t ngx_mcp_mirror_evictable_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s);


ngx_int_t
ngx_mcp_mirror_put_locked(ngx_mcp_table_t *t, ngx_mcp_record_t *rec,
    ngx_uint_t flags)
{
    ngx_mcp_slot_t  *s;

    /* at time 0 expired tasks are found, too */

    s = ngx_mcp_find_locked(t, &rec->id, NULL, 0);

    if (s == NULL) {
        return ngx_mcp_mirror_insert_locked(t, rec, flags);
    }

    if (rec->revision <= s->body.revision
        && !(flags & NGX_MCP_MIRROR_FORCE))
    {
        return NGX_DECLINED;
    }

    return ngx_mcp_mirror_replace_locked(t, s, rec, flags);
}


/*
 * Clients may have missed what happened before the copy arrived: if the task
 * has turned or moved at all, it has done so now.
 */

static ngx_int_t
ngx_mcp_mirror_insert_locked(ngx_mcp_table_t *t, ngx_mcp_record_t *rec,
    ngx_uint_t flags)
{
    ngx_mcp_slot_t    *s;
    ngx_mcp_record_t   copy;

    if (ngx_mcp_mirror_room_locked(t, rec, NULL, 0) != NGX_OK) {
        return NGX_ABORT;
    }

    copy = *rec;
    copy.seq = ++t->sh->seq;
    copy.changed = copy.seq;
    copy.queue_seq = copy.seq;
    copy.turned = rec->turned ? copy.seq : 0;
    copy.moved = rec->moved ? copy.seq : 0;

    ngx_mcp_mirror_task(rec, flags, &copy.task);

    s = ngx_mcp_slot_write_locked(t, &copy, NGX_MCP_RECORD_ALL);

    ngx_mcp_link_locked(t, s);
    ngx_mcp_order_insert_locked(t, &ngx_mcp_by_seq, s);
    ngx_mcp_changes_put_locked(t, s);

    if (ngx_mcp_task_listed(&s->body.task)) {
        ngx_mcp_queue_insert_locked(t, s);
    }

    return NGX_OK;
}


/* as ngx_mcp_change_locked(), but the next body comes from the record */

static ngx_int_t
ngx_mcp_mirror_replace_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_record_t *rec, ngx_uint_t flags)
{
    ngx_uint_t              i, changes, asked;
    ngx_mcp_body_t         *next;
    ngx_mcp_chain_t         old[NGX_MCP_PAYLOADS];
    ngx_mcp_mirror_diff_t   diff;

    ngx_mcp_mirror_diff_locked(t, s, rec, &diff);

    if (ngx_mcp_mirror_room_locked(t, rec, s, diff.blocks) != NGX_OK) {
        return NGX_ABORT;
    }

    next = &t->sh->change;
    *next = s->body;
    next->revision = rec->revision;
    ngx_mcp_mirror_task(rec, flags, &next->task);

    ngx_memzero(old, sizeof(old));

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (diff.mask & (1u << i)) {
            old[i] = next->payload[i];
            s->written |= 1u << i;
            ngx_mcp_chain_write_locked(t, &next->payload[i], &rec->payload[i],
                                       1);
        }
    }

    if (s->queued
        && next->task.policy.route != s->body.task.policy.route)
    {
        /* the call has moved to or from this machine: to another queue */
        ngx_mcp_queue_remove_locked(t, s);
    }

    if (!s->queued && ngx_mcp_task_listed(&next->task)) {
        next->queue_seq = ++t->sh->seq;
    }

    asked = ngx_mcp_mirror_asked(&s->body.task, &next->task);
    changes = ngx_mcp_mirror_number_locked(t, s, rec, next);

    ngx_mcp_commit_locked(t, s, changes, diff.growth);

    ngx_mcp_history_load_locked(t, s, rec->history.data, rec->history.len);

    if (changes) {
        ngx_mcp_changes_put_locked(t, s);
    }

    if (asked) {
        /* new questions: any stream may send them */
        s->asker = 0;
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        ngx_mcp_chain_free_locked(t, &old[i]);
    }

    return NGX_OK;
}


/* the task as this machine keeps it */

static void
ngx_mcp_mirror_task(ngx_mcp_record_t *rec, ngx_uint_t flags,
    ngx_mcp_task_t *task)
{
    *task = rec->task;
    task->flags &= NGX_MCP_FLAGS_SAVED;

    /* a search at time 0 finds every task */
    task->expires = ngx_max(task->expires, 1);

    if (!(flags & NGX_MCP_MIRROR_LOCAL)) {
        task->policy.route = 0;
        task->holder = 0;
    }
}


/* equal payloads keep their blocks; method and params never change */

static void
ngx_mcp_mirror_diff_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_record_t *rec, ngx_mcp_mirror_diff_t *diff)
{
    ngx_str_t        *bytes;
    ngx_uint_t        i;
    ngx_mcp_chain_t  *chain;

    ngx_memzero(diff, sizeof(ngx_mcp_mirror_diff_t));

    for (i = NGX_MCP_PARAMS + 1; i < NGX_MCP_PAYLOADS; i++) {
        chain = &s->body.payload[i];
        bytes = &rec->payload[i];

        if (!ngx_mcp_chain_is_locked(t, chain, bytes)) {
            diff->mask |= 1u << i;
            diff->blocks += ngx_mcp_blocks_for(bytes->len);
            diff->growth += (int64_t) bytes->len - chain->len;
        }
    }
}


/*
 * Whether there was an EV_ASK since.  The questions alone do not show it: an
 * answer removes some of them, and a task may ask the same again.  But while a
 * task waits for input, neither its attempt nor the time that it has run
 * changes.
 */

static ngx_uint_t
ngx_mcp_mirror_asked(ngx_mcp_task_t *old, ngx_mcp_task_t *task)
{
    return task->state == NGX_MCP_INPUT_REQUIRED
           && (old->state != NGX_MCP_INPUT_REQUIRED
               || old->attempt != task->attempt
               || old->lease_token != task->lease_token
               || old->since != task->since);
}


/*
 * Numbers what clients see.  The record may be several changes later than the
 * copy, with a higher progress in between.
 */

static ngx_uint_t
ngx_mcp_mirror_number_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_record_t *rec, ngx_mcp_body_t *next)
{
    ngx_uint_t  changes;

    changes = ngx_mcp_changes_made_locked(t, s, next);

    if (changes && rec->peak > next->peak) {
        next->peak = rec->peak;
        next->moved = next->changed;
    }

    return changes;
}


void
ngx_mcp_mirror_remove_locked(ngx_mcp_table_t *t, ngx_mcp_id_t *id)
{
    ngx_mcp_slot_t  *s;

    s = ngx_mcp_find_locked(t, id, NULL, 0);

    if (s) {
        ngx_mcp_remove_locked(t, s);
    }
}


ngx_uint_t
ngx_mcp_mirror_pin_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    s->pinned |= t->self;

    return t->self != 0;
}


/* a bit that nobody waits with would keep the copy until its next change */

void
ngx_mcp_mirror_unpin_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    s->pinned &= ~t->self;
    s->waiters &= ~t->self;
}


ngx_uint_t
ngx_mcp_mirror_clear_locked(ngx_mcp_table_t *t, uint32_t *next)
{
    uint32_t         n, end;
    ngx_mcp_slot_t  *s;

    n = ngx_max(*next, 1);
    end = ngx_min(n + NGX_MCP_MIRROR_STEP, t->sh->slot.fresh);

    for ( /* void */ ; n < end; n++) {
        s = ngx_mcp_slot(t, n);

        if (s->body.task.state != NGX_MCP_FREE && s->pinned == 0) {
            s->waiters = 0;
            ngx_mcp_remove_locked(t, s);
        }
    }

    *next = n;

    return n < t->sh->slot.fresh;
}


ngx_uint_t
ngx_mcp_mirror_unpin_dead_locked(ngx_mcp_table_t *t, uint64_t live,
    uint32_t *next)
{
    uint32_t         n, end;
    ngx_mcp_slot_t  *s;

    n = ngx_max(*next, 1);
    end = ngx_min(n + NGX_MCP_MIRROR_STEP, t->sh->slot.fresh);

    for ( /* void */ ; n < end; n++) {
        s = ngx_mcp_slot(t, n);
        s->pinned &= live;
        s->waiters &= live;
    }

    *next = n;

    return n < t->sh->slot.fresh;
}


/*
 * Evicts copies until there is room: for the blocks that replace payloads of
 * the copy to keep, or for a new copy, if that is NULL.  The reserve is for
 * copies that exist, as in ngx_mcp_new_locked().
 */

static ngx_int_t
ngx_mcp_mirror_room_locked(ngx_mcp_table_t *t, ngx_mcp_record_t *rec,
    ngx_mcp_slot_t *keep, size_t blocks)
{
    ngx_uint_t         n, examined;
    ngx_mcp_slot_t    *s;
    ngx_mcp_header_t  *sh;

    sh = t->sh;
    examined = 0;

    for (n = 0; /* void */ ; n++) {

        if (keep == NULL) {
            /* an evicted copy may have been the last one with a name */
            blocks = ngx_mcp_slot_blocks_locked(t, rec)
                     + ngx_mcp_reserve(&sh->block);
        }

        if (blocks <= ngx_mcp_available(&sh->block)
            && (keep || ngx_mcp_available(&sh->slot)))
        {
            return NGX_OK;
        }

        if (n == NGX_MCP_MIRROR_EVICT) {
            return NGX_ABORT;
        }

        s = ngx_mcp_mirror_victim_locked(t, keep, &examined);
        if (s == NULL) {
            return NGX_ABORT;
        }

        ngx_mcp_remove_locked(t, s);
    }
}


/*
 * The list by change has no tail, so that no change has to maintain it.  The
 * least recently changed copy among the next few is a good choice, too.  First
 * are those that have not ended: nobody keeps them up to date.
 */

static ngx_mcp_slot_t *
ngx_mcp_mirror_victim_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *keep,
    ngx_uint_t *examined)
{
    uint32_t           i;
    uint64_t           key, least;
    ngx_uint_t         n;
    ngx_mcp_slot_t    *s, *victim;
    ngx_mcp_header_t  *sh;

    sh = t->sh;
    victim = NULL;
    least = 0;
    n = 0;

    for (i = 1;
         i < sh->slot.fresh && n < NGX_MCP_MIRROR_SAMPLE
         && *examined < NGX_MCP_MIRROR_EXAMINE;
         i++)
    {
        if (++sh->evict >= sh->slot.fresh) {
            sh->evict = 1;
        }

        (*examined)++;
        s = ngx_mcp_slot(t, sh->evict);

        if (s == keep || !ngx_mcp_mirror_evictable_locked(t, s)) {
            continue;
        }

        key = ngx_mcp_terminal(s->body.task.state) ? s->body.changed : 0;

        if (victim == NULL || key < least) {
            victim = s;
            least = key;
        }

        n++;
    }

    return victim;
}


/*
 * The bit of a process among the waiters may stay when its requests have left.
 * If the task has ended, only the number of waiting requests counts.
 */

static ngx_uint_t
ngx_mcp_mirror_evictable_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    if (s->body.task.state == NGX_MCP_FREE || s->pinned
        || (s->waiting && s->epoch == t->sh->epoch))
    {
        return 0;
    }

    return s->waiters == 0 || ngx_mcp_terminal(s->body.task.state);
}
