
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The operations in shared memory.  Memory for the results is allocated before
 * the lock is taken, and tasks are copied out while it is held.  If the memory
 * is too small, the lock is released, and the operation starts again with
 * more.  No operation returns NGX_AGAIN.
 */


#include "ngx_mcp_shm.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_queue.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"
#include "ngx_mcp_wheel.h"


/* expired queued tasks that one claim skips */
#define NGX_MCP_CLAIM_SKIP   64


/* hashes of the names in a claim */

typedef struct {
    uint32_t  tools[NGX_MCP_CLAIM_TOOLS];
    uint32_t  worker;
} ngx_mcp_claim_t;


static ngx_int_t ngx_mcp_shm_create(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_shm_get(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_shm_list(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
static void ngx_mcp_shm_page_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found);
static ngx_int_t ngx_mcp_shm_claim(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_shm_claim_one(ngx_mcp_zone_t *zone,
    ngx_mcp_op_claim_t *op, ngx_mcp_claim_t *claim);
static void ngx_mcp_shm_none_locked(ngx_mcp_table_t *t, ngx_mcp_op_claim_t *op,
    ngx_mcp_claim_t *claim);
static ngx_mcp_slot_t *ngx_mcp_shm_next_locked(ngx_mcp_table_t *t,
    ngx_mcp_op_claim_t *op, uint32_t *hashes);
static ngx_int_t ngx_mcp_shm_update(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_shm_delete(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_shm_sweep(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_shm_pin(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);


static ngx_mcp_submit_pt  ngx_mcp_shm[] = {
    ngx_mcp_shm_create,
    ngx_mcp_shm_get,
    ngx_mcp_shm_list,
    ngx_mcp_shm_claim,
    ngx_mcp_shm_update,
    ngx_mcp_shm_delete,
    ngx_mcp_shm_sweep,
    ngx_mcp_shm_stats,
    ngx_mcp_shm_wait,
    ngx_mcp_shm_leave,
    ngx_mcp_shm_changes,
    ngx_mcp_shm_session,
    ngx_mcp_shm_attempt,
    ngx_mcp_shm_orphans,
    ngx_mcp_shm_recent,
    ngx_mcp_shm_pause,
    ngx_mcp_shm_drain,
    ngx_mcp_shm_pin,
    ngx_mcp_shm_pin
};


/* any operation or lookup; done and answered at once */

ngx_int_t
ngx_mcp_shm_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    return ngx_mcp_shm[o->type](zone, o);
}


static ngx_int_t
ngx_mcp_shm_create(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_create_t *op = (ngx_mcp_op_create_t *) o;

    ngx_mcp_new_t    *nt;
    ngx_mcp_slot_t   *s;
    ngx_mcp_table_t  *t;

    t = zone->table;
    nt = &op->task;

    if (nt->owner.len > NGX_MCP_MAX_NAME
        || nt->tool.len > NGX_MCP_MAX_NAME
        || nt->tool.len == 0
        || nt->token.len > NGX_MCP_MAX_TOKEN
        || nt->session.len > NGX_MCP_NAME_INLINE
        || nt->method.len > NGX_MCP_MAX_METHOD)
    {
        op->op.reason = NGX_MCP_INVALID_NAME;
        return NGX_OK;
    }

    if (ngx_mcp_id_new(&nt->id) != NGX_OK) {
        return NGX_ERROR;
    }

    nt->owner_hash = ngx_mcp_name_hash(t, NGX_MCP_OWNER, &nt->owner);
    nt->tool_hash = ngx_mcp_name_hash(t, NGX_MCP_TOOL, &nt->tool);
    nt->session_hash = ngx_mcp_name_hash(t, NGX_MCP_SESSION, &nt->session);

    nt->now = ngx_current_msec;
    nt->wall = ngx_mcp_wall();

    /* page faults happen here, and not while the lock is held */
    ngx_mcp_prefetch_new(t);
    ngx_mcp_lock(t);

    /* at time 0 expired tasks are found, too */

    if (op->id && ngx_mcp_find_locked(t, op->id, NULL, 0) == NULL) {
        nt->id = *op->id;
    }

    op->op.reason = ngx_mcp_new_locked(t, nt, &s);

    if (op->op.reason == NGX_MCP_OK) {
        (void) ngx_mcp_view_locked(t, s, 0, &op->view, NULL);
    }

    ngx_mcp_shm_unlock(zone);

    return NGX_OK;
}


void
ngx_mcp_hint_hash(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id)
{
    ngx_mcp_table_t  *t;

    t = zone->table;

    __builtin_prefetch(&t->hash[ngx_mcp_id_hash(id) & t->sh->hash_mask]);
}


void
ngx_mcp_hint_task(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id)
{
    ngx_mcp_prefetch_task(zone->table, id);
}


static ngx_int_t
ngx_mcp_shm_get(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_get_t *op = (ngx_mcp_op_get_t *) o;

    size_t              size;
    ngx_mcp_view_buf_t  buf;
    ngx_mcp_slot_t     *s;
    ngx_mcp_table_t    *t;

    t = zone->table;
    size = op->want ? NGX_MCP_VIEW_BYTES : 0;
    ngx_memzero(&buf, sizeof(ngx_mcp_view_buf_t));
    buf.pool = op->op.pool;

    ngx_mcp_prefetch_task(t, &op->id);

    for ( ;; ) {

        if (ngx_mcp_view_buf_grow(&buf, size) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_mcp_lock_read(t);

        s = ngx_mcp_find_locked(t, &op->id, op->owner, ngx_current_msec);
        if (s == NULL) {
            op->op.reason = NGX_MCP_NOT_FOUND;
            break;
        }

        size = ngx_mcp_view_size_locked(t, s, op->want);

        if (size <= buf.size) {
            (void) ngx_mcp_view_locked(t, s, op->want, &op->view, buf.data);

            /*
             * Both change only data that recovery does not need, so the lock
             * for reading is enough.
             */

            if (op->watch) {
                ngx_mcp_await_task_locked(t, s);
            }

            op->view.asks = ngx_mcp_asks_locked(t, s, op->asker, 0);
            break;
        }

        ngx_mcp_unlock(t);
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_shm_list(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_list_t *op = (ngx_mcp_op_list_t *) o;

    u_char           *p;
    ngx_uint_t        i;
    ngx_mcp_found_t   found;
    ngx_mcp_table_t  *t;

    t = zone->table;
    found.hash = ngx_mcp_name_hash(t, NGX_MCP_OWNER, &op->owner);

    op->views = ngx_mcp_find_lock(t, o, &op->limit, &found,
                                  ngx_mcp_shm_page_locked, ngx_mcp_lock_read);
    if (op->views == NULL) {
        return NGX_ERROR;
    }

    op->n = found.n;

    for (p = found.buf.data, i = 0; i < op->n; i++) {
        p = ngx_mcp_view_locked(t, ngx_mcp_slot(t, found.slots[i]), op->want,
                                &op->views[i], p);
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}


/*
 * Finds the tasks of a page, newest first, and sets the cursor of the next
 * page.
 */

static void
ngx_mcp_shm_page_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found)
{
    ngx_mcp_op_list_t *op = (ngx_mcp_op_list_t *) o;

    uint32_t         n, owner, tool;
    ngx_uint_t       scanned;
    ngx_mcp_slot_t  *s;

    op->next.seq = 0;
    tool = 0;

    owner = ngx_mcp_name_find_locked(t, NGX_MCP_OWNER, &op->owner,
                                     found->hash);
    if (owner == 0) {
        return;
    }

    if (op->tool.len) {
        tool = ngx_mcp_name_find_locked(t, NGX_MCP_TOOL,
                   &op->tool, ngx_mcp_name_hash(t, NGX_MCP_TOOL, &op->tool));
        if (tool == 0) {
            return;
        }
    }

    n = ngx_mcp_order_after_locked(t, owner, op->after.seq, op->after.hint);

    for (scanned = 0;
         n && found->n < op->limit && scanned < NGX_MCP_LIST_SCAN;
         scanned++)
    {
        s = ngx_mcp_slot(t, n);

        if ((tool == 0 || s->tool == tool)
            && (op->states == 0
                || op->states & ngx_mcp_list_bit(&s->body.task))
            && ngx_current_msec < s->body.task.expires)
        {
            found->slots[found->n++] = n;
            found->size += ngx_mcp_view_size_locked(t, s, op->want);
        }

        op->next.hint = n;
        n = s->by_seq[0].next;
        op->next.seq = n ? s->seq : 0;
    }
}


/*
 * The lock is taken once for each task, so that it is never held for long.
 * Memory is allocated for one view first, since most claims are for one task
 * or find none.
 */

static ngx_int_t
ngx_mcp_shm_claim(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_claim_t *op = (ngx_mcp_op_claim_t *) o;

    ngx_int_t         rc;
    ngx_uint_t        i, size;
    ngx_mcp_view_t   *views;
    ngx_mcp_claim_t   claim;

    op->n = 0;
    op->more = 0;
    op->drain = 0;
    op->views = NULL;
    op->max = ngx_max(op->max, 1);
    op->ntools = ngx_min(op->ntools, NGX_MCP_CLAIM_TOOLS);

    for (i = 0; i < op->ntools; i++) {
        claim.tools[i] = ngx_mcp_name_hash(zone->table, NGX_MCP_TOOL,
                                           &op->tools[i]);
    }

    claim.worker = ngx_mcp_name_hash(zone->table, NGX_MCP_NAMES, &op->worker);
    size = 0;
    rc = NGX_ERROR;

    do {
        if (op->n == size) {
            size = op->n ? op->max : 1;

            views = ngx_palloc(o->pool, size * sizeof(ngx_mcp_view_t));
            if (views == NULL) {
                break;
            }

            if (op->n) {
                *views = *op->views;
            }

            op->views = views;
        }

        rc = ngx_mcp_shm_claim_one(zone, op, &claim);

    } while (rc == NGX_OK && op->n < op->max);

    if (op->n) {
        /* these tasks are claimed, even if the last attempt failed */
        o->reason = NGX_MCP_OK;
        return NGX_OK;
    }

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/* NGX_DECLINED: there is no task */

static ngx_int_t
ngx_mcp_shm_claim_one(ngx_mcp_zone_t *zone, ngx_mcp_op_claim_t *op,
    ngx_mcp_claim_t *claim)
{
    size_t                  size;
    ngx_int_t               rc;
    ngx_mcp_view_buf_t      buf;
    ngx_mcp_slot_t         *s;
    ngx_mcp_event_t         ev;
    ngx_mcp_table_t        *t;
    ngx_mcp_worker_stat_t  *stat;

    t = zone->table;
    rc = NGX_DECLINED;

    ngx_memzero(&ev, sizeof(ngx_mcp_event_t));
    ev.type = NGX_MCP_EV_CLAIM;
    ev.lease_time = op->lease_time;
    ngx_mcp_event_time(&ev);

    if (ngx_mcp_random_token(&ev.lease_token) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_memzero(&buf, sizeof(ngx_mcp_view_buf_t));
    buf.pool = op->op.pool;
    size = NGX_MCP_VIEW_BYTES;

    for ( ;; ) {

        if (ngx_mcp_view_buf_grow(&buf, size) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_mcp_lock(t);

        ev.worker = ngx_mcp_stats_worker_locked(t, &op->worker, claim->worker,
                                                &ev);
        stat = ngx_mcp_stats_worker_of_locked(t, ev.worker);

        if (stat && stat->draining) {
            op->drain = 1;
            break;
        }

        s = ngx_mcp_shm_next_locked(t, op, claim->tools);

        if (s == NULL) {
            ngx_mcp_shm_none_locked(t, op, claim);
            break;
        }

        size = ngx_mcp_view_size_locked(t, s, op->want);

        if (size <= buf.size) {

            /* claims often come in series */
            ngx_mcp_prefetch(t, s->queue_next);

            op->op.reason = ngx_mcp_change_locked(t, s, &ev, NULL);

            if (op->op.reason == NGX_MCP_OK) {
                (void) ngx_mcp_view_locked(t, s, op->want, &op->views[op->n++],
                                           buf.data);
                rc = NGX_OK;
            }

            break;
        }

        ngx_mcp_shm_unlock(zone);
    }

    ngx_mcp_shm_unlock(zone);

    return rc;
}


/* a claim with at least one task does not wait for more */

static void
ngx_mcp_shm_none_locked(ngx_mcp_table_t *t, ngx_mcp_op_claim_t *op,
    ngx_mcp_claim_t *claim)
{
    ngx_uint_t  i;

    if (op->n) {
        return;
    }

    if (op->watch) {
        for (i = 0; i < op->ntools; i++) {
            ngx_mcp_await_name_locked(t, claim->tools[i]);
        }

        /* an operator may drain the worker while it waits */
        ngx_mcp_await_name_locked(t, claim->worker);
    }

    /* the limit of skipped tasks may be reached */

    op->more = (op->ntools
                && ngx_mcp_queue_first_locked(t, op->tools, claim->tools,
                                              op->ntools));
}


/* a random lease token or instance; never 0, which means none */

ngx_int_t
ngx_mcp_random_token(uint64_t *token)
{
    do {
        if (ngx_mcp_random(token, sizeof(uint64_t)) != NGX_OK) {
            return NGX_ERROR;
        }
    } while (*token == 0);

    return NGX_OK;
}


/*
 * The next task to claim.  Tasks whose time is over, and that are not swept
 * yet, must not be claimed: they are changed here.
 */

static ngx_mcp_slot_t *
ngx_mcp_shm_next_locked(ngx_mcp_table_t *t, ngx_mcp_op_claim_t *op,
    uint32_t *hashes)
{
    ngx_uint_t        n;
    ngx_mcp_slot_t   *s;
    ngx_mcp_event_t   ev;

    ngx_memzero(&ev, sizeof(ngx_mcp_event_t));
    ngx_mcp_event_time(&ev);

    for (n = 0; n < NGX_MCP_CLAIM_SKIP; n++) {
        s = ngx_mcp_queue_first_locked(t, op->tools, hashes, op->ntools);
        if (s == NULL) {
            return NULL;
        }

        ev.type = ngx_mcp_task_due(&s->body.task, ev.now);

        if (ev.type == NGX_MCP_EVENTS) {
            return s;
        }

        (void) ngx_mcp_change_locked(t, s, &ev, NULL);
    }

    return NULL;
}


static ngx_int_t
ngx_mcp_shm_update(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_update_t *op = (ngx_mcp_op_update_t *) o;

    size_t              size, added;
    ngx_uint_t          i;
    ngx_mcp_view_buf_t  buf;
    ngx_mcp_slot_t     *s;
    ngx_mcp_table_t    *t;

    t = zone->table;
    ngx_mcp_event_time(&op->event);

    /* clients without an owner share the empty name: they need the id */

    if (op->token.len && op->owner->len == 0) {
        op->op.reason = NGX_MCP_NOT_FOUND;
        return NGX_OK;
    }

    ngx_mcp_prefetch_task(t, &op->id);

    for (added = 0, i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (op->want & NGX_MCP_WANT(i)) {
            added += op->change.payload[i].len;
        }
    }

    ngx_memzero(&buf, sizeof(ngx_mcp_view_buf_t));
    buf.pool = op->op.pool;
    size = (op->want & NGX_MCP_WANT_ALL) ? NGX_MCP_VIEW_BYTES + added : 0;

    for ( ;; ) {

        if (ngx_mcp_view_buf_grow(&buf, size) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_mcp_lock(t);

        s = op->token.len
            ? ngx_mcp_find_token_locked(t, op->owner, &op->token,
                                        op->event.now)
            : ngx_mcp_find_locked(t, &op->id, op->owner, op->event.now);
        if (s == NULL) {
            op->op.reason = NGX_MCP_NOT_FOUND;
            t->sh->count.refused[NGX_MCP_NOT_FOUND]++;
            break;
        }

        if (op->version && op->version != s->body.task.version) {
            op->op.reason = NGX_MCP_VERSION_CONFLICT;
            t->sh->count.refused[NGX_MCP_VERSION_CONFLICT]++;
            break;
        }

        /* checked before the change, because nothing may fail after it */

        size = ngx_mcp_view_size_locked(t, s, op->want) + added;

        if (size <= buf.size) {
            op->op.reason = ngx_mcp_change_locked(t, s, &op->event,
                                                  &op->change);

            /* also if it was refused: a worker needs the final state */

            if (op->want != NGX_MCP_WANT_NOTHING) {
                (void) ngx_mcp_view_locked(t, s, op->want, &op->view,
                                           buf.data);
            }

            break;
        }

        ngx_mcp_shm_unlock(zone);
    }

    ngx_mcp_shm_unlock(zone);

    return NGX_OK;
}


/* with op->unsaved, undoes a creation, if that change is not saved yet */

static ngx_int_t
ngx_mcp_shm_delete(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_delete_t *op = (ngx_mcp_op_delete_t *) o;

    ngx_mcp_slot_t   *s;
    ngx_mcp_table_t  *t;

    t = zone->table;

    ngx_mcp_lock(t);

    s = ngx_mcp_find_locked(t, &op->id, op->owner, ngx_current_msec);
    if ((op->unsaved && ngx_mcp_is_saved_locked(t, op->unsaved))
        || (op->waiting && s && s->epoch == t->sh->epoch
            && s->waiting >= op->waiting))
    {
        op->op.reason = NGX_MCP_STATE_INVALID;

    } else if (s) {
        ngx_mcp_stats_removed_locked(t, s, 0);
        ngx_mcp_remove_locked(t, s);
        op->changed = s->body.changed;

    } else {
        op->op.reason = NGX_MCP_NOT_FOUND;
        t->sh->count.refused[NGX_MCP_NOT_FOUND]++;
    }

    ngx_mcp_shm_unlock(zone);

    return NGX_OK;
}


/* pins have no effect: all tasks are in memory */

static ngx_int_t
ngx_mcp_shm_pin(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    return NGX_OK;
}


/* Handles a batch of due tasks.  This process becomes the sweeper. */

static ngx_int_t
ngx_mcp_shm_sweep(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_sweep_t *op = (ngx_mcp_op_sweep_t *) o;

    uint64_t          lag, late;
    ngx_int_t         rc;
    ngx_mcp_slot_t   *s;
    ngx_mcp_event_t   ev;
    ngx_mcp_table_t  *t;

    t = zone->table;
    op->done = 0;
    lag = 0;

    ngx_memzero(&ev, sizeof(ngx_mcp_event_t));
    ngx_mcp_event_time(&ev);

    ngx_mcp_lock(t);

    while (op->done < op->limit) {

        rc = ngx_mcp_wheel_step_locked(t, ev.now, &s);

        if (rc == NGX_DECLINED) {
            break;
        }

        op->done++;

        if (rc == NGX_OK) {
            late = ev.now - ngx_mcp_task_deadline(&s->body.task);
            lag = ngx_max(lag, late);

            ev.type = ngx_mcp_task_due(&s->body.task, ev.now);
            (void) ngx_mcp_change_locked(t, s, &ev, NULL);
        }
    }

    op->next = ngx_mcp_wheel_next_locked(t);

    t->sh->sweeper = ngx_pid;
    t->sh->sweep_at = op->next;

    ngx_mcp_stats_swept_locked(t, op->done, lag);
    ngx_mcp_unsaved_locked(t);

    ngx_mcp_unlock(t);

    return NGX_OK;
}


/*
 * Releases the lock after a change.  If the change has an earlier deadline
 * than the next sweep, this process becomes the sweeper, so that no other
 * process has to be woken.
 */

void
ngx_mcp_shm_unlock(ngx_mcp_zone_t *zone)
{
    uint64_t           next;
    ngx_mcp_header_t  *sh;

    sh = zone->table->sh;
    ngx_mcp_unsaved_locked(zone->table);
    next = ngx_mcp_wheel_next_locked(zone->table);

    if (next < sh->sweep_at) {
        sh->sweep_at = next;
        sh->sweeper = ngx_pid;

        ngx_mcp_unlock(zone->table);

        if (zone->sweep_at) {
            zone->sweep_at(zone->local, next);
        }

        return;
    }

    ngx_mcp_unlock(zone->table);
}


void
ngx_mcp_event_time(ngx_mcp_event_t *ev)
{
    ev->now = ngx_current_msec;
    ev->wall = ngx_mcp_wall();
}
