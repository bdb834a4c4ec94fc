
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_recover.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_queue.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"


/*
 * A list of slots to be sorted by a key.  It is linked by a member that is
 * rebuilt afterwards, so sorting needs no memory.
 */

typedef struct {
    size_t  link;      /* uint32_t */
    size_t  key;       /* uint64_t */
} ngx_mcp_sort_t;


#define ngx_mcp_sort_link(t, sort, n)                                         \
    (*(uint32_t *) ((u_char *) ngx_mcp_slot(t, n) + (sort)->link))
#define ngx_mcp_sort_key(t, sort, n)                                          \
    (*(uint64_t *) ((u_char *) ngx_mcp_slot(t, n) + (sort)->key))


static void ngx_mcp_reset_locked(ngx_mcp_table_t *t);
static ngx_int_t ngx_mcp_mark_slot_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s);
static void ngx_mcp_mark_name_locked(ngx_mcp_table_t *t, uint32_t n);
static void ngx_mcp_mark_chain_locked(ngx_mcp_table_t *t,
    ngx_mcp_chain_t *chain);
static void ngx_mcp_restore_order_locked(ngx_mcp_table_t *t, uint32_t list);
static void ngx_mcp_restore_changes_locked(ngx_mcp_table_t *t, uint32_t list);
static void ngx_mcp_restore_queues_locked(ngx_mcp_table_t *t, uint32_t list);
static void ngx_mcp_restore_blocks_locked(ngx_mcp_table_t *t);
static uint32_t ngx_mcp_sort_locked(ngx_mcp_table_t *t, ngx_mcp_sort_t *sort,
    uint32_t list);
static uint32_t ngx_mcp_sort_merge_locked(ngx_mcp_table_t *t,
    ngx_mcp_sort_t *sort, uint32_t a, uint32_t b);


static ngx_mcp_sort_t  ngx_mcp_sort_created = {
    offsetof(ngx_mcp_slot_t, by_seq[0].next),
    offsetof(ngx_mcp_slot_t, seq)
};

static ngx_mcp_sort_t  ngx_mcp_sort_changed = {
    offsetof(ngx_mcp_slot_t, by_change[0].next),
    offsetof(ngx_mcp_slot_t, body.changed)
};

static ngx_mcp_sort_t  ngx_mcp_sort_removed = {
    offsetof(ngx_mcp_slot_t, hash_next),
    offsetof(ngx_mcp_slot_t, body.changed)
};

static ngx_mcp_sort_t  ngx_mcp_sort_queued = {
    offsetof(ngx_mcp_slot_t, queue_next),
    offsetof(ngx_mcp_slot_t, body.queue_seq)
};


/*
 * Called by the process that takes the lock and finds the table dirty.  Relies
 * only on the slots, the journal and the blocks that slots refer to.  If this
 * process dies, too, the next one that takes the lock starts again.
 */

void
ngx_mcp_recover_locked(ngx_mcp_table_t *t)
{
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    if (sh->journal) {
        ngx_mcp_slot(t, sh->journal)->body = sh->change;
        ngx_mcp_failpoint("recover_journal");
        ngx_mcp_barrier();
        sh->journal = 0;
        ngx_mcp_barrier();
    }

    ngx_mcp_rebuild_locked(t);

    sh->count.recoveries++;
    t->recovered++;

    ngx_mcp_barrier();
    sh->dirty = 0;
    ngx_mcp_barrier();
}


/* rebuilds all that is derived from the slots; the journal must be empty */

void
ngx_mcp_rebuild_locked(ngx_mcp_table_t *t)
{
    uint32_t           n, created, changed, queued, removed;
    ngx_mcp_slot_t    *s;
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    ngx_mcp_reset_locked(t);

    created = 0;
    changed = 0;
    queued = 0;
    removed = 0;

    /* from the last to the first: the lists are then almost sorted */

    for (n = sh->slot.fresh - 1; n; n--) {
        s = ngx_mcp_slot(t, n);

        if (t->persist && s->body.task.state == NGX_MCP_FREE
            && s->body.task.flags & NGX_MCP_REMOVED)
        {
            /* the store has not deleted its copy yet */

            sh->slot.used++;
            sh->seq = ngx_max(sh->seq, s->body.changed);
            s->hash_next = removed;
            removed = n;
            continue;
        }

        if (s->body.task.state == NGX_MCP_FREE
            || ngx_mcp_mark_slot_locked(t, s) != NGX_OK)
        {
            s->body.task.state = NGX_MCP_FREE;
            s->hash_next = sh->slot.free;
            sh->slot.free = n;
            continue;
        }

        /* the process died before it removed the task */
        s->body.task.flags &= ~NGX_MCP_REMOVED;

        ngx_mcp_link_locked(t, s);

        sh->slot.used++;
        sh->seq = ngx_max(sh->seq, s->seq);
        sh->seq = ngx_max(sh->seq, s->body.queue_seq);
        sh->seq = ngx_max(sh->seq, s->body.changed);

        s->by_seq[0].next = created;
        created = n;
        s->by_change[0].next = changed;
        changed = n;

        if (ngx_mcp_task_listed(&s->body.task)) {
            s->queue_next = queued;
            queued = n;
        }
    }

    ngx_mcp_failpoint("recover_slots");

    ngx_mcp_restore_order_locked(t, created);
    ngx_mcp_restore_changes_locked(t, changed);
    ngx_mcp_restore_queues_locked(t, queued);
    ngx_mcp_restore_blocks_locked(t);

    if (t->persist) {
        removed = ngx_mcp_sort_locked(t, &ngx_mcp_sort_removed, removed);
        t->persist->restore(t, removed);
    }

    /* the sweeper may have died: any process may sweep at once */

    sh->sweeper = 0;
    sh->sweep_at = 0;

    /* the process that died may have made changes without signals */

    ngx_mcp_signal_all_locked(t);
}


static void
ngx_mcp_reset_locked(ngx_mcp_table_t *t)
{
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    ngx_memzero(t->hash, ((size_t) sh->hash_mask + 1) * sizeof(uint32_t));
    ngx_memzero(t->names, ((size_t) sh->name_mask + 1) * sizeof(uint32_t));
    ngx_memzero(t->map, ngx_mcp_map_size((size_t) sh->block.end));
    ngx_memzero(sh->wheel.map, sizeof(sh->wheel.map));
    ngx_memzero(sh->wheel.head, sizeof(sh->wheel.head));
    ngx_memzero(sh->names, sizeof(sh->names));

    sh->slot.free = 0;
    sh->slot.used = 0;
    sh->block.free = 0;
    sh->block.used = 0;
    sh->bytes = 0;
    sh->held.head = 0;
    sh->held.tail = 0;
    sh->holding = 0;
    sh->recent = 0;
    sh->unannounced = 0;

    ngx_mcp_stats_reset_locked(t);

    if (t->persist) {
        t->persist->reset(t);
    }
}


/*
 * Marks the blocks of a task as used, and restores its names.  NGX_DECLINED: an
 * index is out of range, which never happens if slots are complete.
 */

static ngx_int_t
ngx_mcp_mark_slot_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    uint32_t    end;
    ngx_uint_t  i;

    end = t->sh->block.fresh;

    if (s->body.task.state >= NGX_MCP_STATES
        || s->owner == 0 || s->owner >= end
        || s->tool == 0 || s->tool >= end
        || s->token >= end
        || s->session >= end)
    {
        return NGX_DECLINED;
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (s->body.payload[i].last >= end) {
            return NGX_DECLINED;
        }
    }

    ngx_mcp_mark_name_locked(t, s->owner);
    ngx_mcp_mark_name_locked(t, s->tool);

    if (s->token) {
        ngx_mcp_mark_name_locked(t, s->token);
    }

    if (s->session) {
        ngx_mcp_mark_name_locked(t, s->session);
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        ngx_mcp_mark_chain_locked(t, &s->body.payload[i]);
    }

    return NGX_OK;
}


static void
ngx_mcp_mark_name_locked(ngx_mcp_table_t *t, uint32_t n)
{
    ngx_mcp_name_t   *name;
    ngx_mcp_chain_t   chain;

    if (ngx_mcp_map_mark(t, n)) {
        return;
    }

    t->sh->block.used++;

    name = ngx_mcp_name(t, n);
    name->tasks = 0;
    name->bytes = 0;
    name->running = 0;
    name->stat = (name->stat < t->sh->tool_stats) ? name->stat
                                                  : NGX_MCP_OTHER;

    if (name->kind == NGX_MCP_SESSION) {
        /* what was delivered cannot be rebuilt, so it is kept */
        name->u.delivery.changes = 0;
        name->u.delivery.undelivered = 0;

    } else {
        ngx_memzero(&name->u, sizeof(name->u));
    }

    ngx_mcp_name_rest(name, &chain);
    ngx_mcp_mark_chain_locked(t, &chain);

    ngx_mcp_name_link_locked(t, n);
}


static void
ngx_mcp_mark_chain_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain)
{
    uint32_t  n, left;

    n = chain->last;

    for (left = ngx_mcp_blocks_for(chain->len); left; left--) {

        if (n == 0 || n >= t->sh->block.fresh) {
            return;
        }

        (void) ngx_mcp_map_mark(t, n);
        t->sh->block.used++;
        n = ngx_mcp_block(t, n)->next;
    }
}


static void
ngx_mcp_restore_order_locked(ngx_mcp_table_t *t, uint32_t list)
{
    uint32_t         n;
    ngx_mcp_slot_t  *s;

    n = ngx_mcp_sort_locked(t, &ngx_mcp_sort_created, list);
    while (n) {
        s = ngx_mcp_slot(t, n);
        n = s->by_seq[0].next;
        ngx_mcp_order_insert_locked(t, &ngx_mcp_by_seq, s);
    }
}


static void
ngx_mcp_restore_changes_locked(ngx_mcp_table_t *t, uint32_t list)
{
    uint32_t         n;
    ngx_mcp_slot_t  *s;

    n = ngx_mcp_sort_locked(t, &ngx_mcp_sort_changed, list);
    while (n) {
        s = ngx_mcp_slot(t, n);
        n = s->by_change[0].next;
        ngx_mcp_changes_insert_locked(t, s);
    }
}


static void
ngx_mcp_restore_queues_locked(ngx_mcp_table_t *t, uint32_t list)
{
    uint32_t  n, next;

    list = ngx_mcp_sort_locked(t, &ngx_mcp_sort_queued, list);

    for (n = list; n; n = next) {
        next = ngx_mcp_slot(t, n)->queue_next;
        ngx_mcp_queue_insert_locked(t, ngx_mcp_slot(t, n));
    }
}


static void
ngx_mcp_restore_blocks_locked(ngx_mcp_table_t *t)
{
    uint32_t             n;
    ngx_mcp_freelist_t  *list;

    list = &t->sh->block;

    for (n = list->fresh - 1; n; n--) {

        if (ngx_mcp_map_mark(t, n)) {
            continue;
        }

        ngx_mcp_block(t, n)->next = list->free;
        list->free = n;
    }
}


/*
 * A natural merge sort.  The list is split into runs that are sorted already;
 * bin i holds 2^i merged runs or none, like a digit of a binary counter.
 */

static uint32_t
ngx_mcp_sort_locked(ngx_mcp_table_t *t, ngx_mcp_sort_t *sort, uint32_t list)
{
    uint32_t    n, next, run, bin[32];
    ngx_uint_t  i;

    ngx_memzero(bin, sizeof(bin));

    while (list) {

        for (run = n = list; /* void */ ; n = next) {
            next = ngx_mcp_sort_link(t, sort, n);

            if (next == 0
                || ngx_mcp_sort_key(t, sort, next)
                   < ngx_mcp_sort_key(t, sort, n))
            {
                break;
            }
        }

        ngx_mcp_sort_link(t, sort, n) = 0;
        list = next;

        for (i = 0; i < 31 && bin[i]; i++) {
            run = ngx_mcp_sort_merge_locked(t, sort, bin[i], run);
            bin[i] = 0;
        }

        bin[i] = ngx_mcp_sort_merge_locked(t, sort, bin[i], run);
    }

    for (run = 0, i = 0; i < 32; i++) {
        run = ngx_mcp_sort_merge_locked(t, sort, bin[i], run);
    }

    return run;
}


static uint32_t
ngx_mcp_sort_merge_locked(ngx_mcp_table_t *t, ngx_mcp_sort_t *sort, uint32_t a,
    uint32_t b)
{
    uint32_t  head, *tail;

    tail = &head;

    while (a && b) {

        if (ngx_mcp_sort_key(t, sort, a) <= ngx_mcp_sort_key(t, sort, b)) {
            *tail = a;
            tail = &ngx_mcp_sort_link(t, sort, a);
            a = *tail;

        } else {
            *tail = b;
            tail = &ngx_mcp_sort_link(t, sort, b);
            b = *tail;
        }
    }

    *tail = a ? a : b;

    return head;
}
