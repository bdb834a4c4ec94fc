
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Which tasks are not saved yet, and copies of them for the writer. */


#include "ngx_mcp_save.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_slot.h"


/* each payload has a bit in the slot */

typedef char  ngx_mcp_written_fits[
    NGX_MCP_PAYLOADS <= 7 ? 1 : -1
];


/* the header of a zone has room for it */

typedef char  ngx_mcp_save_fits[
    sizeof(ngx_mcp_save_t) <= NGX_MCP_STORE_AREA ? 1 : -1
];


static void ngx_mcp_save_put_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
static void ngx_mcp_save_take_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
static void ngx_mcp_save_removed_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
static void ngx_mcp_save_notify_locked(ngx_mcp_table_t *t);
static ngx_uint_t ngx_mcp_save_safe_locked(ngx_mcp_table_t *t,
    uint64_t changed);
static void ngx_mcp_save_reset_locked(ngx_mcp_table_t *t);
static void ngx_mcp_save_restore_locked(ngx_mcp_table_t *t, uint32_t removed);
static const char *ngx_mcp_save_check_locked(ngx_mcp_table_t *t);
static const char *ngx_mcp_save_check_deletions_locked(ngx_mcp_table_t *t);
static void ngx_mcp_save_since_locked(ngx_mcp_table_t *t);
static ngx_uint_t ngx_mcp_save_deletions_locked(ngx_mcp_table_t *t,
    ngx_mcp_batch_t *batch, uint64_t *left);


static ngx_mcp_persist_t  ngx_mcp_save_hooks = {
    ngx_mcp_save_put_locked,
    ngx_mcp_save_take_locked,
    ngx_mcp_save_removed_locked,
    ngx_mcp_save_notify_locked,
    ngx_mcp_save_safe_locked,
    ngx_mcp_save_reset_locked,
    ngx_mcp_save_restore_locked,
    ngx_mcp_save_check_locked
};


/*
 * Called for each table of a zone with such a store.  With kept, the memory
 * has the contents of an earlier configuration with the same store.
 */

void
ngx_mcp_save_attach(ngx_mcp_table_t *t, ngx_uint_t kept)
{
    ngx_mcp_save_t  *sv;

    if (!kept) {
        /* changes are not saved until the zone is loaded */

        sv = ngx_mcp_save_of(t);
        sv->saved = NGX_MCP_NEVER;
        sv->safe = NGX_MCP_NEVER;
    }

    t->persist = &ngx_mcp_save_hooks;
}


/* a task has changed, and is now the first in the list of changes */

static void
ngx_mcp_save_put_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_save_t  *sv;

    sv = ngx_mcp_save_of(t);

    if (s->body.changed <= sv->saved) {
        return;
    }

    ngx_mcp_save_since_locked(t);

    if (sv->oldest == 0) {
        sv->oldest = ngx_mcp_index(t, s);
    }

    sv->unsaved++;
}


/*
 * A task leaves its place in the list of changes.  If its change is not saved,
 * operations may wait for it, see "overtaken".
 */

static void
ngx_mcp_save_take_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_save_t  *sv;

    sv = ngx_mcp_save_of(t);

    if (s->body.changed > sv->saved) {
        sv->overtaken++;
        sv->unsaved--;

        if (sv->oldest == ngx_mcp_index(t, s)) {
            sv->oldest = s->recent.prev;
        }
    }
}


/*
 * The slot is kept until the row is deleted.  Until then hash_next links it.
 */

static void
ngx_mcp_save_removed_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    uint32_t         n;
    ngx_mcp_save_t  *sv;

    n = ngx_mcp_index(t, s);
    sv = ngx_mcp_save_of(t);

    ngx_mcp_save_since_locked(t);

    s->body.changed = ++t->sh->seq;
    s->hash_next = 0;

    ngx_mcp_failpoint("save_removed");

    if (sv->deletions.tail) {
        ngx_mcp_slot(t, sv->deletions.tail)->hash_next = n;

    } else {
        sv->deletions.head = n;
    }

    sv->deletions.tail = n;
    sv->ndeletions++;
}


/*
 * Called after changes: wakes the writer, and this process once they are
 * saved.
 */

static void
ngx_mcp_save_notify_locked(ngx_mcp_table_t *t)
{
    if (ngx_mcp_has_unsaved(t)) {
        ngx_mcp_await_key_locked(t, NGX_MCP_SAVED);
        ngx_mcp_signal_key_locked(t, NGX_MCP_UNSAVED);
    }
}


/* whether a change can no longer be lost */

static ngx_uint_t
ngx_mcp_save_safe_locked(ngx_mcp_table_t *t, uint64_t changed)
{
    return changed <= ngx_mcp_save_of(t)->safe;
}


uint32_t
ngx_mcp_save_count_locked(ngx_mcp_table_t *t)
{
    return ngx_mcp_save_of(t)->unsaved + ngx_mcp_save_of(t)->ndeletions;
}


/* called before a rebuild, which puts the unsaved tasks again */

static void
ngx_mcp_save_reset_locked(ngx_mcp_table_t *t)
{
    ngx_mcp_save_t  *sv;

    sv = ngx_mcp_save_of(t);

    sv->unsaved = 0;
    sv->oldest = 0;
    sv->deletions.head = 0;
    sv->deletions.tail = 0;
    sv->ndeletions = 0;
}


/*
 * Called after a rebuild, with the removed slots in the order of their
 * removal.
 */

static void
ngx_mcp_save_restore_locked(ngx_mcp_table_t *t, uint32_t removed)
{
    uint32_t         n;
    ngx_mcp_save_t  *sv;

    sv = ngx_mcp_save_of(t);
    sv->deletions.head = removed;

    if (removed) {
        ngx_mcp_save_since_locked(t);
    }

    for (n = removed; n; n = ngx_mcp_slot(t, n)->hash_next) {
        sv->deletions.tail = n;
        sv->ndeletions++;
    }
}


/* NULL, or what is inconsistent */

static const char *
ngx_mcp_save_check_locked(ngx_mcp_table_t *t)
{
    uint32_t         n, last, unsaved;
    ngx_mcp_save_t  *sv;
    ngx_mcp_slot_t  *s;

    sv = ngx_mcp_save_of(t);
    last = 0;
    unsaved = 0;

    for (n = 1; n < t->sh->slot.fresh; n++) {
        s = ngx_mcp_slot(t, n);
        unsaved += (s->body.task.state != NGX_MCP_FREE
                    && s->body.changed > sv->saved);
    }

    for (n = t->sh->recent; n; n = s->recent.next) {
        s = ngx_mcp_slot(t, n);

        if (s->body.changed <= sv->saved) {
            break;
        }

        last = n;
    }

    if (unsaved != sv->unsaved || last != sv->oldest) {
        return "wrong number of unsaved tasks";
    }

    if (sv->safe > sv->saved) {
        return "synced changes are ahead of saved changes";
    }

    if (ngx_mcp_has_unsaved(t) && sv->since == 0) {
        return "unsaved changes have no time";
    }

    return ngx_mcp_save_check_deletions_locked(t);
}


static const char *
ngx_mcp_save_check_deletions_locked(ngx_mcp_table_t *t)
{
    uint32_t         n, last, total;
    uint64_t         decided;
    ngx_mcp_save_t  *sv;
    ngx_mcp_slot_t  *s;

    sv = ngx_mcp_save_of(t);
    last = 0;
    decided = 0;

    for (total = 0, n = sv->deletions.head; n; total++) {
        s = ngx_mcp_slot(t, n);

        if (total >= t->sh->slot.fresh
            || s->body.task.state != NGX_MCP_FREE
            || !(s->body.task.flags & NGX_MCP_REMOVED)
            || s->body.changed < decided)
        {
            return "invalid entry in the list of deletions";
        }

        decided = s->body.changed;
        last = n;
        n = s->hash_next;
    }

    if (total != sv->ndeletions || last != sv->deletions.tail) {
        return "wrong number of deletions";
    }

    return NULL;
}


/* stores the time of an unsaved change; odd, since 0 means none */

static void
ngx_mcp_save_since_locked(ngx_mcp_table_t *t)
{
    ngx_mcp_save_t  *sv;

    sv = ngx_mcp_save_of(t);

    if (sv->since == 0) {
        sv->since = ngx_current_msec | 1;
    }

    if (sv->since_next == 0) {
        sv->since_next = ngx_current_msec | 1;
    }
}


ngx_int_t
ngx_mcp_batch_init(ngx_mcp_batch_t *batch, ngx_log_t *log)
{
    if (batch->records) {
        return NGX_OK;
    }

    batch->records = ngx_alloc(NGX_MCP_SAVE_TASKS
                               * sizeof(ngx_mcp_record_t), log);
    batch->slots = ngx_alloc(NGX_MCP_SAVE_TASKS * sizeof(uint32_t), log);
    batch->deletions = ngx_alloc(NGX_MCP_SAVE_DELETIONS * sizeof(uint64_t),
                                 log);
    batch->need = 65536;

    if (batch->records == NULL || batch->slots == NULL
        || batch->deletions == NULL)
    {
        ngx_mcp_batch_free(batch);
        return NGX_ERROR;
    }

    return ngx_mcp_batch_grow(batch, log);
}


/* Called without the lock.  The contents of the old buffer are lost. */

ngx_int_t
ngx_mcp_batch_grow(ngx_mcp_batch_t *batch, ngx_log_t *log)
{
    u_char  *data;

    data = ngx_alloc(batch->need, log);
    if (data == NULL) {
        return NGX_ERROR;
    }

    if (batch->data) {
        ngx_free(batch->data);
    }

    batch->data = data;
    batch->size = batch->need;

    return NGX_OK;
}


void
ngx_mcp_batch_free(ngx_mcp_batch_t *batch)
{
    if (batch->records) {
        ngx_free(batch->records);
    }

    if (batch->slots) {
        ngx_free(batch->slots);
    }

    if (batch->deletions) {
        ngx_free(batch->deletions);
    }

    if (batch->data) {
        ngx_free(batch->data);
    }

    ngx_memzero(batch, sizeof(ngx_mcp_batch_t));
}


/*
 * Copies the next changes into the batch.  NGX_AGAIN: the buffer is too small,
 * and the caller has to release the lock, grow the batch and call again.
 */

ngx_int_t
ngx_mcp_save_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch)
{
    u_char          *p;
    size_t           size;
    uint32_t         n;
    uint64_t         left;
    ngx_mcp_save_t  *sv;
    ngx_mcp_slot_t  *s;

    sv = ngx_mcp_save_of(t);

    batch->n = 0;
    batch->need = 0;
    batch->instance = sv->instance;
    batch->clock = sv->clock;
    batch->upto = t->sh->seq;
    batch->more = ngx_mcp_save_deletions_locked(t, batch, &left);
    p = batch->data;

    for (n = sv->oldest; n; n = s->recent.prev) {
        s = ngx_mcp_slot(t, n);
        ngx_mcp_prefetch(t, s->recent.prev);

        if (s->body.changed > left) {

            /*
             * A later change than that of a deletion that did not fit: the task
             * may have the id of the deleted one, and ids are unique.
             */

            break;
        }

        size = ngx_mcp_slot_size_locked(t, s, s->written);

        if (size > (size_t) (batch->data + batch->size - p)) {

            batch->need = (p - batch->data) + size;

            if (batch->n == 0
                || batch->need <= NGX_MCP_SAVE_BYTES)
            {
                batch->need = ngx_max(batch->need,
                                      ngx_min(batch->size * 2,
                                              NGX_MCP_SAVE_BYTES));
                return NGX_AGAIN;
            }

            break;
        }

        if (batch->n == NGX_MCP_SAVE_TASKS) {
            break;
        }

        p = ngx_mcp_slot_read_locked(t, s, s->written,
                                     &batch->records[batch->n], p);
        batch->slots[batch->n] = n;
        batch->n++;
    }

    if (n) {
        batch->upto = batch->n ? batch->records[batch->n - 1].changed : left;
        batch->more = 1;
    }

    /* the batch ends before the first deletion that did not fit */

    batch->upto = ngx_min(batch->upto, left);
    batch->overtaken = sv->overtaken;
    sv->since_next = 0;

    return NGX_OK;
}


/*
 * Copies deletions into the batch.  Returns 1 if some did not fit; left is
 * then the last change before them, and NGX_MCP_NEVER otherwise.
 */

static ngx_uint_t
ngx_mcp_save_deletions_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch,
    uint64_t *left)
{
    uint32_t         n;
    ngx_mcp_slot_t  *s;

    batch->ndeletions = 0;
    *left = NGX_MCP_NEVER;

    for (n = ngx_mcp_save_of(t)->deletions.head; n; n = s->hash_next) {
        s = ngx_mcp_slot(t, n);

        if (batch->ndeletions == NGX_MCP_SAVE_DELETIONS) {
            *left = s->body.changed - 1;
            return 1;
        }

        batch->deletions[batch->ndeletions++] = s->seq;
    }

    return 0;
}


/* called without the lock: converts the batch to store time */

void
ngx_mcp_batch_times(ngx_mcp_batch_t *batch, uint64_t now, uint64_t wall)
{
    ngx_uint_t  i;

    batch->clock.now = now;
    batch->clock.wall = wall;

    for (i = 0; i < batch->n; i++) {
        ngx_mcp_record_to_store(&batch->records[i], now,
                                batch->clock.offset + now);
    }
}


/*
 * Called when the batch is committed.  Tasks that have changed since are still
 * unsaved.
 */

void
ngx_mcp_saved_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch)
{
    ngx_uint_t         i;
    ngx_mcp_save_t    *sv;
    ngx_mcp_slot_t    *s;
    ngx_mcp_record_t  *rec;

    sv = ngx_mcp_save_of(t);

    for (i = 0; i < batch->n; i++) {
        rec = &batch->records[i];
        s = ngx_mcp_slot(t, batch->slots[i]);

        if (s->seq == rec->seq && s->body.changed == rec->changed) {
            s->written = 0;
        }
    }

    ngx_mcp_failpoint("saved_tasks");

    while (sv->oldest) {
        s = ngx_mcp_slot(t, sv->oldest);

        if (s->body.changed > batch->upto) {
            break;
        }

        sv->oldest = s->recent.prev;
        sv->unsaved--;
    }

    for (i = 0; i < batch->ndeletions && sv->deletions.head; i++) {
        s = ngx_mcp_slot(t, sv->deletions.head);

        if (s->seq != batch->deletions[i]) {
            break;
        }

        sv->deletions.head = s->hash_next;

        if (sv->deletions.head == 0) {
            sv->deletions.tail = 0;
        }

        sv->ndeletions--;

        ngx_mcp_failpoint("saved_deletions");

        ngx_mcp_slot_free_locked(t, s);
    }

    ngx_mcp_failpoint("saved_upto");

    sv->saved = ngx_max(sv->saved, batch->upto);

    if (!batch->more) {
        sv->overtaken_saved = batch->overtaken;
        sv->since = sv->since_next;
    }

    if (batch->overtaken == sv->overtaken_saved) {
        sv->safe = sv->saved;
    }
}


/* marks all tasks as unsaved, to write them to an empty database */

void
ngx_mcp_save_all_locked(ngx_mcp_table_t *t)
{
    uint32_t         n;
    ngx_mcp_save_t  *sv;
    ngx_mcp_slot_t  *s;

    sv = ngx_mcp_save_of(t);

    ngx_mcp_save_since_locked(t);

    sv->safe = 0;
    sv->saved = 0;
    sv->unsaved = 0;
    sv->oldest = 0;

    for (n = t->sh->recent; n; n = s->recent.next) {
        s = ngx_mcp_slot(t, n);
        s->written = NGX_MCP_RECORD_ALL;
        sv->oldest = n;
        sv->unsaved++;
    }
}
