
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Operations of a zone with a store on disk: they are done in shared memory,
 * and may have to wait until their changes are saved.
 */


#include "ngx_mcp_sqlite.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_SQLITE_STORE)


/*
 * Without sync=always, operations wait only if a change was not saved for so
 * many ms: a second, minus what the time of an event loop may lag behind.
 */
#define NGX_MCP_SQLITE_LATE  900


/* what an operation changes in saved data */

typedef enum {
    NGX_MCP_SQLITE_NOTHING = 0,
    NGX_MCP_SQLITE_CHANGES,

    /* work begins: refused if it could be lost, even if detached */
    NGX_MCP_SQLITE_BEGINS
} ngx_mcp_sqlite_e;


typedef struct {
    ngx_queue_t    queue;    /* in st->parked */
    ngx_mcp_op_t  *op;
    uint64_t       changed;  /* waits for this change */
} ngx_mcp_parked_t;


static void ngx_mcp_sqlite_refuse(ngx_mcp_header_t *sh, ngx_mcp_op_t *op,
    ngx_uint_t reason);
static ngx_uint_t ngx_mcp_sqlite_changes(ngx_mcp_op_t *op);
static ngx_uint_t ngx_mcp_sqlite_late(ngx_mcp_table_t *t);
static uint64_t ngx_mcp_sqlite_changed(ngx_mcp_op_t *op);
static ngx_int_t ngx_mcp_sqlite_not_ready(ngx_mcp_op_t *op);
static void ngx_mcp_sqlite_ready_handler(ngx_event_t *ev);
static void ngx_mcp_sqlite_done(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_sqlite_undo(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
static void ngx_mcp_sqlite_release(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op,
    ngx_mcp_view_t *claimed);


void
ngx_mcp_sqlite_zone(ngx_mcp_zone_t *zone)
{
    zone->ready = 0;
    ngx_mcp_sqlite_of(zone)->fd = -1;
}


void
ngx_mcp_sqlite_process(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone)
{
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;

    ngx_queue_init(&st->parked);

    st->ready.handler = ngx_mcp_sqlite_ready_handler;
    st->ready.data = &zone->dummy;
    st->ready.log = cycle->log;

    ngx_mcp_watch(zone->local, &st->saved, NGX_MCP_SAVED, &st->ready);

    ngx_mcp_writer_process(cycle, zone);
}


ngx_int_t
ngx_mcp_sqlite_look_up(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    if (!zone->ready) {
        op->reason = NGX_MCP_STORE_UNAVAILABLE;
        return NGX_OK;
    }

    return ngx_mcp_shm_submit(zone, op);
}


/*
 * NGX_AGAIN: done in memory; the handler is called when the change is saved,
 * or when saving failed.
 */

ngx_int_t
ngx_mcp_sqlite_op(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    uint64_t           changed;
    ngx_int_t          rc;
    ngx_uint_t         changes;
    ngx_mcp_header_t  *sh;
    ngx_mcp_parked_t  *parked;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    sh = zone->table->sh;

    if (!zone->ready) {
        rc = ngx_mcp_sqlite_not_ready(op);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    changes = ngx_mcp_sqlite_changes(op);

    if (changes && !sh->disk.up
        && (!op->detached || changes == NGX_MCP_SQLITE_BEGINS))
    {
        ngx_mcp_sqlite_refuse(sh, op, NGX_MCP_STORE_UNAVAILABLE);
        return NGX_OK;
    }

    /* allocated first, because nothing may fail after the operation */

    parked = NULL;

    if (changes && op->handler && !op->detached
        && (st->sync == NGX_MCP_SYNC_ALWAYS
            || ngx_mcp_sqlite_late(zone->table)))
    {
        parked = ngx_palloc(op->pool, sizeof(ngx_mcp_parked_t));
        if (parked == NULL) {
            return NGX_ERROR;
        }
    }

    rc = ngx_mcp_shm_submit(zone, op);

    if (rc != NGX_OK || op->reason != NGX_MCP_OK || parked == NULL) {
        return rc;
    }

    changed = ngx_mcp_sqlite_changed(op);

    if (changed <= ngx_mcp_save_of(zone->table)->safe) {
        return NGX_OK;
    }

    parked->op = op;
    parked->changed = changed;
    ngx_queue_insert_tail(&st->parked, &parked->queue);

    ngx_mcp_writer_kick(zone);

    return NGX_AGAIN;
}


/* counted without the lock, which another process may hold for long */

static void
ngx_mcp_sqlite_refuse(ngx_mcp_header_t *sh, ngx_mcp_op_t *op,
    ngx_uint_t reason)
{
    op->reason = reason;

    (void) __atomic_fetch_add(&sh->count.refused[reason], 1, __ATOMIC_RELAXED);
}


/* a heartbeat is not saved: leases start again when tasks are loaded */

static ngx_uint_t
ngx_mcp_sqlite_changes(ngx_mcp_op_t *op)
{
    switch (op->type) {

    case NGX_MCP_OP_UPDATE:
        return (((ngx_mcp_op_update_t *) op)->event.type
                == NGX_MCP_EV_HEARTBEAT)
               ? NGX_MCP_SQLITE_NOTHING
               : NGX_MCP_SQLITE_CHANGES;

    case NGX_MCP_OP_CLAIM:
    case NGX_MCP_OP_ATTEMPT:
        return NGX_MCP_SQLITE_BEGINS;

    case NGX_MCP_OP_CREATE:
    case NGX_MCP_OP_DELETE:
        return NGX_MCP_SQLITE_CHANGES;

    default:
        return NGX_MCP_SQLITE_NOTHING;
    }
}


/*
 * Whether saving is late: even without sync=always, no more than about one
 * second of changes may be unsaved.  Reads without the lock.
 */

static ngx_uint_t
ngx_mcp_sqlite_late(ngx_mcp_table_t *t)
{
    uint64_t  since;

    since = ngx_mcp_save_of(t)->since;

    return since && ngx_current_msec >= since + NGX_MCP_SQLITE_LATE;
}


/* the number of the change that the operation has made */

static uint64_t
ngx_mcp_sqlite_changed(ngx_mcp_op_t *op)
{
    uint64_t             changed;
    ngx_uint_t           i;
    ngx_mcp_op_claim_t  *claim;

    switch (op->type) {

    case NGX_MCP_OP_CREATE:
        return ((ngx_mcp_op_create_t *) op)->view.changed;

    case NGX_MCP_OP_UPDATE:
        return ((ngx_mcp_op_update_t *) op)->view.changed;

    case NGX_MCP_OP_ATTEMPT:
        return ((ngx_mcp_op_attempt_t *) op)->view.changed;

    case NGX_MCP_OP_CLAIM:
        claim = (ngx_mcp_op_claim_t *) op;

        for (changed = 0, i = 0; i < claim->n; i++) {
            changed = ngx_max(changed, claim->views[i].changed);
        }

        return changed;

    default: /* NGX_MCP_OP_DELETE */
        return ((ngx_mcp_op_delete_t *) op)->changed;
    }
}


/*
 * The zone is not loaded yet, or another instance has the database.
 * NGX_DECLINED: the operation is possible nevertheless.
 */

static ngx_int_t
ngx_mcp_sqlite_not_ready(ngx_mcp_op_t *op)
{
    ngx_mcp_op_sweep_t    *sweep;
    ngx_mcp_op_orphans_t  *orphans;

    switch (op->type) {

    case NGX_MCP_OP_STATS:
    case NGX_MCP_OP_LEAVE:
    case NGX_MCP_OP_PIN:
    case NGX_MCP_OP_UNPIN:
        return NGX_DECLINED;

    case NGX_MCP_OP_SWEEP:
        sweep = (ngx_mcp_op_sweep_t *) op;
        sweep->done = 0;
        sweep->next = NGX_MCP_NEVER;
        return NGX_OK;

    case NGX_MCP_OP_ORPHANS:
        orphans = (ngx_mcp_op_orphans_t *) op;
        orphans->n = 0;
        orphans->more = 0;
        return NGX_OK;

    default:
        op->reason = NGX_MCP_STORE_UNAVAILABLE;
        return NGX_OK;
    }
}


static void
ngx_mcp_sqlite_ready_handler(ngx_event_t *ev)
{
    ngx_connection_t  *c;
    ngx_mcp_zone_t    *zone;

    c = ev->data;
    zone = c->data;

    if (!zone->ready) {
        (void) ngx_mcp_attach_try(zone, ev->log);
    }

    ngx_mcp_sqlite_answer(zone);
}


/*
 * Answers the operations whose changes are saved, or failed to be saved.  The
 * numbers are compared again after the signal is awaited, so that no commit is
 * missed.
 */

void
ngx_mcp_sqlite_answer(ngx_mcp_zone_t *zone)
{
    uint64_t           safe, failed;
    ngx_mcp_table_t   *t;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    t = zone->table;

    for ( ;; ) {
        ngx_mcp_sqlite_done(zone);

        if (ngx_queue_empty(&st->parked)) {
            return;
        }

        safe = ngx_mcp_save_of(t)->safe;
        failed = ngx_mcp_save_of(t)->failed;

        ngx_mcp_lock_read(t);
        ngx_mcp_await_key_locked(t, NGX_MCP_SAVED);
        ngx_mcp_unlock(t);

        if (safe == ngx_mcp_save_of(t)->safe
            && failed == ngx_mcp_save_of(t)->failed)
        {
            return;
        }
    }
}


static void
ngx_mcp_sqlite_done(ngx_mcp_zone_t *zone)
{
    ngx_queue_t       *q, *next, done;
    ngx_mcp_op_t      *op;
    ngx_mcp_save_t    *sv;
    ngx_mcp_parked_t  *parked;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    sv = ngx_mcp_save_of(zone->table);

    ngx_queue_init(&done);

    for (q = ngx_queue_head(&st->parked);
         q != ngx_queue_sentinel(&st->parked);
         q = next)
    {
        next = ngx_queue_next(q);
        parked = ngx_queue_data(q, ngx_mcp_parked_t, queue);
        op = parked->op;

        if (parked->changed > sv->safe) {

            if (parked->changed > sv->failed && zone->ready) {
                continue;
            }

            if (ngx_mcp_sqlite_undo(zone, op) == NGX_OK) {
                ngx_mcp_sqlite_refuse(zone->table->sh, op,
                                      NGX_MCP_STORE_FAILED);
            }
        }

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&done, q);
    }

    /* handlers may submit new operations */

    while (!ngx_queue_empty(&done)) {
        q = ngx_queue_head(&done);
        ngx_queue_remove(q);

        parked = ngx_queue_data(q, ngx_mcp_parked_t, queue);
        op = parked->op;
        op->handler(op);
    }
}


/*
 * The response will be an error, so the change is undone if no client knows of
 * it: a new task, a claim, or a call that has not started.  Other changes
 * remain, and will be saved later.  NGX_DECLINED: the change was saved in the
 * meantime, other clients may know of it, and the operation succeeds.
 */

static ngx_int_t
ngx_mcp_sqlite_undo(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    ngx_uint_t           i;
    ngx_mcp_op_claim_t  *claim;
    ngx_mcp_op_delete_t  remove;

    if (op->type == NGX_MCP_OP_CREATE) {
        ngx_memzero(&remove, sizeof(ngx_mcp_op_delete_t));
        remove.op.type = NGX_MCP_OP_DELETE;
        remove.op.pool = op->pool;
        remove.id = ((ngx_mcp_op_create_t *) op)->view.id;
        remove.unsaved = ((ngx_mcp_op_create_t *) op)->view.changed;

        (void) ngx_mcp_shm_submit(zone, &remove.op);

        return remove.op.reason == NGX_MCP_STATE_INVALID
               ? NGX_DECLINED : NGX_OK;
    }

    if (op->type == NGX_MCP_OP_ATTEMPT) {
        ngx_mcp_sqlite_release(zone, op, &((ngx_mcp_op_attempt_t *) op)->view);
    }

    if (op->type == NGX_MCP_OP_CLAIM) {
        claim = (ngx_mcp_op_claim_t *) op;

        for (i = 0; i < claim->n; i++) {
            ngx_mcp_sqlite_release(zone, op, &claim->views[i]);
        }

        claim->n = 0;
    }

    return NGX_OK;
}


static void
ngx_mcp_sqlite_release(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op,
    ngx_mcp_view_t *claimed)
{
    ngx_mcp_op_update_t  release;

    ngx_memzero(&release, sizeof(ngx_mcp_op_update_t));
    ngx_mcp_release(&release, claimed);
    release.op.type = NGX_MCP_OP_UPDATE;
    release.op.pool = op->pool;

    (void) ngx_mcp_shm_submit(zone, &release.op);
}


#endif /* NGX_MCP_SQLITE_STORE */
