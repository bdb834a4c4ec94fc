
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_table.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_lock.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_queue.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_stats.h"
#include "ngx_mcp_wheel.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_record.h"


/* the table is the slab pool's only allocation */
#define ngx_mcp_table_base(shpool)  ((u_char *) (shpool)->data)


static uint32_t ngx_mcp_ceil_pow2(uint64_t n);
static void ngx_mcp_table_pointers(ngx_mcp_table_t *t, ngx_mcp_layout_t *l);
static ngx_uint_t ngx_mcp_new_check_locked(ngx_mcp_table_t *t,
    ngx_mcp_new_t *nt, uint32_t owner, uint32_t tool, uint32_t session);
static ngx_uint_t ngx_mcp_change_decide_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_event_t *ev, ngx_mcp_change_t **change,
    ngx_mcp_change_t *last, int64_t *growth);
static ngx_uint_t ngx_mcp_change_check_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_change_t *change, int64_t *growth);
static uint64_t ngx_mcp_after_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    uint64_t n);
static void ngx_mcp_change_commit_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_uint_t changes);
static void ngx_mcp_account_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    int64_t growth);
static void ngx_mcp_reindex_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t state);
static void ngx_mcp_running_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t before, ngx_uint_t after);


/*
 * Divides size bytes.  The id hash has at least one bucket per task; the name
 * hash has a quarter of that, because there are fewer names than tasks; blocks
 * get all that remains after the slots.  NGX_DECLINED: the zone is too small
 * for so many tasks, or max_tasks is out of range.  The result depends only on
 * the arguments, so that every process computes the same layout.
 */

ngx_int_t
ngx_mcp_table_layout(ngx_mcp_layout_t *l, size_t size, uint64_t max_tasks)
{
    size_t    offset, left;
    uint64_t  tasks;

    tasks = max_tasks ? max_tasks : size / NGX_MCP_BYTES_PER_TASK;

    if (tasks < NGX_MCP_MIN_TASKS || tasks >= 0x7fffffff) {
        return NGX_DECLINED;
    }

    l->tasks = (uint32_t) tasks;
    l->hash_size = ngx_mcp_ceil_pow2(tasks);
    l->name_size = ngx_max(l->hash_size / 4, 64);

    offset = ngx_align(sizeof(ngx_mcp_header_t), ngx_cacheline_size);

    l->hash = offset;
    offset += (size_t) l->hash_size * sizeof(uint32_t);

    l->names = offset;
    offset += (size_t) l->name_size * sizeof(uint32_t);

    /* if a process is behind by more signals, it checks everything */

    l->log_size = ngx_min(ngx_mcp_ceil_pow2(tasks / 4), 8192);
    l->log = offset = ngx_align(offset, ngx_cacheline_size);
    offset += (size_t) l->log_size * sizeof(ngx_mcp_signal_t);

    ngx_mcp_stats_layout(l, size, &offset);

    l->slots = offset = ngx_align(offset, ngx_cacheline_size);
    offset += (size_t) (tasks + 1) * sizeof(ngx_mcp_slot_t);

    l->map = offset = ngx_align(offset, ngx_cacheline_size);

    /* each task needs a block for its params; names need some, too */

    if (offset + (tasks + 8) * NGX_MCP_BLOCK_SIZE > size) {
        return NGX_DECLINED;
    }

    /* each block takes one more bit, in the map */

    left = size - offset;
    l->blocks = (uint32_t) ngx_min((uint64_t) left * 8
                                / (NGX_MCP_BLOCK_SIZE * 8 + 1),
                                   0xfffffff0);
    l->blocks -= ngx_min(l->blocks, 2);

    offset += ngx_mcp_map_size(l->blocks);

    l->block = ngx_align(offset, NGX_MCP_BLOCK_SIZE);
    l->size = l->block + (size_t) l->blocks * NGX_MCP_BLOCK_SIZE;

    /* the blocks without the reserve, see ngx_mcp_reserve() */

    return (l->size <= size && l->blocks - l->blocks / 16 >= tasks + 8)
           ? NGX_OK : NGX_DECLINED;
}


/* what ngx_slab_init() leaves of a zone's size, or a little less */

size_t
ngx_mcp_table_usable(size_t size)
{
    size_t  fixed, pages;

    fixed = sizeof(ngx_slab_pool_t)
            + ngx_pagesize_shift * (sizeof(ngx_slab_page_t)
                                    + sizeof(ngx_slab_stat_t));

    if (size < fixed + 2 * ngx_pagesize) {
        return 0;
    }

    pages = (size - fixed) / (ngx_pagesize + sizeof(ngx_slab_page_t));

    return (pages - 1) * ngx_pagesize;
}


/*
 * Takes all pages of a new slab pool.  NGX_DECLINED: the zone is too small.
 * The magic is written last: without it the table is not complete.
 */

ngx_int_t
ngx_mcp_table_create(ngx_mcp_table_t *t, ngx_slab_pool_t *shpool,
    uint64_t max_tasks)
{
    size_t             size;
    ngx_mcp_header_t  *sh;
    ngx_mcp_layout_t   l;

    size = shpool->pfree * ngx_pagesize;

    if (ngx_mcp_table_layout(&l, size, max_tasks) != NGX_OK) {
        return NGX_DECLINED;
    }

    shpool->data = ngx_slab_alloc(shpool, size);
    if (shpool->data == NULL) {
        return NGX_ERROR;
    }

    shpool->log_nomem = 0;

    sh = (ngx_mcp_header_t *) ngx_mcp_table_base(shpool);

    ngx_memzero(sh, l.slots);

    if (ngx_mcp_random(sh->secret, sizeof(sh->secret)) != NGX_OK) {
        return NGX_ERROR;
    }

    sh->layout = NGX_MCP_LAYOUT;
    sh->slot_size = sizeof(ngx_mcp_slot_t);
    sh->size = size;
    sh->max_tasks = max_tasks;
    sh->hash_mask = l.hash_size - 1;
    sh->name_mask = l.name_size - 1;
    sh->log_mask = l.log_size - 1;

    /* slots and blocks are not touched until they are used */

    sh->slot.fresh = 1;
    sh->slot.end = l.tasks + 1;
    sh->block.fresh = 1;
    sh->block.end = l.blocks;

    sh->sweep_at = NGX_MCP_NEVER;

    t->shpool = shpool;
    ngx_mcp_table_pointers(t, &l);
    ngx_mcp_stats_create(t, &l);

    ngx_mcp_barrier();

    sh->magic = NGX_MCP_MAGIC;

    return NGX_OK;
}


/* an existing table, whose magic and layout the caller has checked */

void
ngx_mcp_table_attach(ngx_mcp_table_t *t, ngx_slab_pool_t *shpool)
{
    ngx_mcp_header_t  *sh;
    ngx_mcp_layout_t   l;

    sh = (ngx_mcp_header_t *) ngx_mcp_table_base(shpool);

    (void) ngx_mcp_table_layout(&l, sh->size, sh->max_tasks);

    t->shpool = shpool;
    ngx_mcp_table_pointers(t, &l);
}


static void
ngx_mcp_table_pointers(ngx_mcp_table_t *t, ngx_mcp_layout_t *l)
{
    u_char  *base;

    base = ngx_mcp_table_base(t->shpool);

    t->sh = (ngx_mcp_header_t *) base;
    t->hash = (uint32_t *) (base + l->hash);
    t->names = (uint32_t *) (base + l->names);
    t->log = (ngx_mcp_signal_t *) (base + l->log);
    t->tool_stats = (ngx_mcp_tool_stat_t *) (base + l->tool_stat);
    t->worker_stats = (ngx_mcp_worker_stat_t *) (base + l->worker_stat);
    t->slots = (ngx_mcp_slot_t *) (base + l->slots);
    t->map = (uint64_t *) (base + l->map);
    t->blocks = (ngx_mcp_block_t *) (base + l->block);
}


/*
 * Takes the lock to change the table.  If the process dies before it unlocks,
 * the next process that takes the lock recovers the table.
 */

void
ngx_mcp_lock(ngx_mcp_table_t *t)
{
    ngx_mcp_lock_read(t);

    t->sh->dirty = (uint32_t) ngx_pid;
    ngx_mcp_barrier();

    ngx_mcp_failpoint("lock");
}


/*
 * Takes the lock to read, or to change only what needs no recovery: counters,
 * and what waits for tasks.
 */

void
ngx_mcp_lock_read(ngx_mcp_table_t *t)
{
    if (!ngx_shmtx_trylock(&t->shpool->mutex)) {
        ngx_mcp_lock_wait(t);
    }

    t->sh->locked = (uint32_t) ngx_current_msec | 1;

    if (t->sh->dirty) {
        ngx_mcp_recover_locked(t);
    }

    ngx_mcp_hold_begin(&t->sh->hold);
}


/*
 * Releases the lock, then wakes the processes that were signalled: that needs
 * system calls, which are not made under the lock.
 */

void
ngx_mcp_unlock(ngx_mcp_table_t *t)
{
    uint64_t  wake;

    wake = t->wake;
    t->wake = 0;

    if (t->sh->dirty) {
        ngx_mcp_failpoint("unlock");

        ngx_mcp_barrier();
        t->sh->dirty = 0;
        ngx_mcp_barrier();
    }

    ngx_mcp_failpoint("unlocked");

    t->sh->locked = 0;

    ngx_mcp_hold_end(&t->sh->hold);

    ngx_shmtx_unlock(&t->shpool->mutex);

    if (wake && t->woken) {
        t->woken(t, wake);
    }
}


/*
 * Only this function checks the owner of a task that is given by its id.  NULL
 * is returned for a task of another owner, and for an expired task that was
 * not swept yet.  If owner is NULL, the caller is nginx itself, and a task of
 * any owner is found.
 */

ngx_mcp_slot_t *
ngx_mcp_find_locked(ngx_mcp_table_t *t, ngx_mcp_id_t *id, ngx_str_t *owner,
    uint64_t now)
{
    uint32_t         n;
    ngx_mcp_slot_t  *s;

    for (n = t->hash[ngx_mcp_id_hash(id) & t->sh->hash_mask];
         n;
         n = s->hash_next)
    {
        s = ngx_mcp_slot(t, n);

        if (ngx_memcmp(&s->id, id, sizeof(ngx_mcp_id_t)) != 0) {
            continue;
        }

        if (now >= s->body.task.expires
            || (owner
                && !ngx_mcp_name_is_locked(t, s->owner, owner)))
        {
            return NULL;
        }

        return s;
    }

    return NULL;
}


/*
 * The name of a progress token is the index of its owner followed by the text,
 * so that owners do not share tokens.  Returns 0 if there is none and create
 * is 0; the caller has checked the length, and that a block is free.
 */

uint32_t
ngx_mcp_token_locked(ngx_mcp_table_t *t, uint32_t owner, ngx_str_t *token,
    ngx_uint_t create)
{
    u_char     buf[sizeof(uint32_t) + NGX_MCP_MAX_TOKEN];
    uint32_t   n, hash;
    ngx_str_t  text;

    ngx_memcpy(buf, &owner, sizeof(uint32_t));
    ngx_memcpy(buf + sizeof(uint32_t), token->data, token->len);
    text.data = buf;
    text.len = sizeof(uint32_t) + token->len;

    hash = ngx_mcp_name_hash(t, NGX_MCP_TOKEN, &text);
    n = ngx_mcp_name_find_locked(t, NGX_MCP_TOKEN, &text, hash);
    if (n == 0 && create) {
        n = ngx_mcp_name_new_locked(t, NGX_MCP_TOKEN, &text, hash);
    }

    return n;
}


/* the newest task with the owner's progress token; NULL: none */

ngx_mcp_slot_t *
ngx_mcp_find_token_locked(ngx_mcp_table_t *t, ngx_str_t *owner,
    ngx_str_t *token, uint64_t now)
{
    uint32_t         n;
    ngx_mcp_slot_t  *s;

    if (token->len > NGX_MCP_MAX_TOKEN) {
        return NULL;
    }

    n = ngx_mcp_name_find_locked(t, NGX_MCP_OWNER, owner,
                                 ngx_mcp_name_hash(t, NGX_MCP_OWNER, owner));
    if (n == 0) {
        return NULL;
    }

    n = ngx_mcp_token_locked(t, n, token, 0);

    if (n == 0 || ngx_mcp_name(t, n)->u.task == 0) {
        return NULL;
    }

    s = ngx_mcp_slot(t, ngx_mcp_name(t, n)->u.task);

    return (now < s->body.task.expires) ? s : NULL;
}


/*
 * Creates a task.  Returns NGX_MCP_OK, or the reason why it is refused; then
 * nothing is changed.  The caller has checked the lengths of all names.
 */

ngx_uint_t
ngx_mcp_new_locked(ngx_mcp_table_t *t, ngx_mcp_new_t *nt,
    ngx_mcp_slot_t **slot)
{
    uint32_t          n, owner, tool, session;
    ngx_str_t         parts[3];
    ngx_uint_t        rc;
    ngx_mcp_body_t   *body;
    ngx_mcp_task_t    task;
    ngx_mcp_slot_t   *s;
    static u_char     history[NGX_MCP_HISTORY];

    owner = ngx_mcp_name_find_locked(t, NGX_MCP_OWNER, &nt->owner,
                                     nt->owner_hash);
    tool = ngx_mcp_name_find_locked(t, NGX_MCP_TOOL, &nt->tool, nt->tool_hash);
    session = nt->session.len
              ? ngx_mcp_name_find_locked(t,
                                         NGX_MCP_SESSION, &nt->session,
                                         nt->session_hash)
              : 0;

    rc = ngx_mcp_new_check_locked(t, nt, owner, tool, session);

    if (rc != NGX_MCP_OK) {
        t->sh->count.refused[rc]++;
        return rc;
    }

    /* all slots and blocks are available: nothing can fail from here on */

    n = ngx_mcp_slot_alloc_locked(t);
    s = ngx_mcp_slot(t, n);
    body = &s->body;

    ngx_mcp_failpoint("new_slot");

    if (owner == 0) {
        owner = ngx_mcp_name_new_locked(t, NGX_MCP_OWNER, &nt->owner,
                                        nt->owner_hash);
    }

    if (tool == 0) {
        tool = ngx_mcp_name_new_locked(t, NGX_MCP_TOOL, &nt->tool,
                                       nt->tool_hash);
    }

    if (session == 0 && nt->session.len) {
        session = ngx_mcp_name_new_locked(t, NGX_MCP_SESSION, &nt->session,
                                          nt->session_hash);
    }

    s->id = nt->id;
    s->seq = ++t->sh->seq;
    s->owner = owner;
    s->tool = tool;
    s->session = session;
    s->waiters = 0;
    s->pinned = 0;
    s->asker = 0;
    s->epoch = t->sh->epoch;
    s->waiting = 0;
    s->results = 0;
    s->token = nt->token.len
               ? ngx_mcp_token_locked(t, owner, &nt->token, 1) : 0;
    s->method_len = (uint8_t) nt->method.len;
    s->written = NGX_MCP_RECORD_ALL;

    parts[0] = nt->method;
    parts[1] = nt->params;
    parts[2].data = history;
    parts[2].len = sizeof(history);

    ngx_memzero(body->payload, sizeof(body->payload));

    ngx_mcp_chain_write_locked(t, &body->payload[NGX_MCP_PARAMS], parts, 3);
    ngx_mcp_history_init_locked(t, s);

    ngx_mcp_chain_write_locked(t, &body->payload[NGX_MCP_METADATA],
                               &nt->metadata, 1);
    ngx_mcp_chain_write_locked(t, &body->payload[NGX_MCP_MESSAGE],
                               &nt->message, 1);
    ngx_mcp_chain_write_locked(t, &body->payload[NGX_MCP_RESPONSES],
                               &nt->responses, 1);

    body->revision = 1;
    body->queue_seq = s->seq;
    body->changed = s->seq;
    body->turned = 0;
    body->moved = 0;
    body->peak = -1;

    ngx_mcp_task_init(&task, &nt->policy, nt->ttl, nt->now, nt->wall);
    task.state = NGX_MCP_FREE;
    task.holder = nt->holder;

    if (session == 0) {
        /* there is no session to announce it to */
        task.flags = NGX_MCP_ANNOUNCED;
    }

    body->task = task;

    ngx_mcp_failpoint("new_filled");

    /* now the task exists */

    ngx_mcp_barrier();
    body->task.state = NGX_MCP_QUEUED;
    ngx_mcp_barrier();

    ngx_mcp_failpoint("new_published");

    ngx_mcp_link_locked(t, s);
    ngx_mcp_order_insert_locked(t, &ngx_mcp_by_seq, s);
    ngx_mcp_changes_put_locked(t, s);
    ngx_mcp_queue_insert_locked(t, s);

    ngx_mcp_stats_created_locked(t, s);

    *slot = s;

    return NGX_MCP_OK;
}


static ngx_uint_t
ngx_mcp_new_check_locked(ngx_mcp_table_t *t, ngx_mcp_new_t *nt, uint32_t owner,
    uint32_t tool, uint32_t session)
{
    size_t           bytes, blocks;
    ngx_mcp_name_t  *name;

    if (nt->max_payload
        && (nt->params.len > nt->max_payload
            || nt->metadata.len > nt->max_payload
            || nt->message.len > nt->max_payload
            || nt->responses.len > nt->max_payload))
    {
        return NGX_MCP_PAYLOAD_TOO_LARGE;
    }

    bytes = nt->method.len + nt->params.len + nt->metadata.len
            + nt->message.len + nt->responses.len;

    if (owner) {
        name = ngx_mcp_name(t, owner);

        if (nt->max_owner_tasks && name->tasks >= nt->max_owner_tasks) {
            return NGX_MCP_LIMIT_OWNER_TASKS;
        }

        bytes += name->bytes;
    }

    if (nt->max_owner_bytes && bytes > nt->max_owner_bytes) {
        return NGX_MCP_LIMIT_OWNER_BYTES;
    }

    if (ngx_mcp_available(&t->sh->slot) == 0) {
        return NGX_MCP_LIMIT_TASKS;
    }

    blocks = ngx_mcp_blocks_for(nt->method.len + nt->params.len
                                + NGX_MCP_HISTORY)
             + ngx_mcp_blocks_for(nt->metadata.len)
             + ngx_mcp_blocks_for(nt->message.len)
             + ngx_mcp_blocks_for(nt->responses.len)
             + (owner ? 0 : ngx_mcp_name_blocks(&nt->owner))
             + (tool ? 0 : ngx_mcp_name_blocks(&nt->tool))
             + (session || nt->session.len == 0
                ? 0 : ngx_mcp_name_blocks(&nt->session))
             + (nt->token.len ? 1 : 0);

    /* the reserve, so that existing tasks can get their results */

    blocks += ngx_mcp_reserve(&t->sh->block);

    if (blocks > ngx_mcp_available(&t->sh->block)) {
        return NGX_MCP_ZONE_FULL;
    }

    return NGX_MCP_OK;
}


/* the caller has made sure that a slot is available; its state is FREE */

uint32_t
ngx_mcp_slot_alloc_locked(ngx_mcp_table_t *t)
{
    uint32_t             n;
    ngx_mcp_freelist_t  *list;

    list = &t->sh->slot;
    n = list->free;

    if (n) {
        list->free = ngx_mcp_slot(t, n)->hash_next;

    } else {
        n = list->fresh;

        /* recovery reads all slots below fresh, so this one must be FREE */
        ngx_mcp_slot(t, n)->body.task.state = NGX_MCP_FREE;
        ngx_mcp_slot(t, n)->body.task.flags = 0;

        ngx_mcp_barrier();
        list->fresh++;
    }

    list->used++;

    return n;
}


void
ngx_mcp_slot_free_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    s->body.task.flags = 0;
    s->hash_next = t->sh->slot.free;
    t->sh->slot.free = ngx_mcp_index(t, s);
    t->sh->slot.used--;
}


/*
 * Adds a task to the id hash, the wheel and the gauges, for a new task and for
 * recovery.  The caller inserts it into the lists that keep an order: by
 * creation, by change, and the queue.
 */

void
ngx_mcp_link_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    uint32_t        *bucket;
    ngx_mcp_name_t  *token;

    bucket = &t->hash[ngx_mcp_id_hash(&s->id) & t->sh->hash_mask];
    s->hash_next = *bucket;

    ngx_mcp_failpoint("link");

    *bucket = ngx_mcp_index(t, s);

    s->queued = 0;

    ngx_mcp_account_locked(t, s, ngx_mcp_bytes(s));
    ngx_mcp_name(t, s->owner)->tasks++;
    ngx_mcp_name(t, s->tool)->tasks++;
    ngx_mcp_stats_state_locked(t, s, NGX_MCP_FREE, s->body.task.state);

    ngx_mcp_running_locked(t, s, 0, ngx_mcp_task_runs(&s->body.task));

    if (s->session) {
        ngx_mcp_name(t, s->session)->tasks++;
    }

    if (s->token) {
        token = ngx_mcp_name(t, s->token);
        token->tasks++;

        if (token->u.task == 0
            || ngx_mcp_slot(t, token->u.task)->seq < s->seq)
        {
            token->u.task = ngx_mcp_index(t, s);
        }
    }

    ngx_mcp_wheel_insert_locked(t, s);
}


/* bytes of all payloads and the method, without those for the history */

uint64_t
ngx_mcp_bytes(ngx_mcp_slot_t *s)
{
    uint64_t    bytes;
    ngx_uint_t  i;

    for (bytes = 0, i = 0; i < NGX_MCP_PAYLOADS; i++) {
        bytes += s->body.payload[i].len;
    }

    return bytes - NGX_MCP_HISTORY;
}


/*
 * The only function that applies an event to a task.  Returns NGX_MCP_OK, or
 * the reason why it is refused; then the task is unchanged.  If the process
 * dies meanwhile, the task is either as before or as after the change.
 *
 * After EV_EXPIRE the task is removed, and s must not be used.  change may be
 * NULL.
 */

ngx_uint_t
ngx_mcp_change_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev, ngx_mcp_change_t *change)
{
    int64_t           growth;
    uint64_t          age;
    ngx_uint_t        i, rc, changes, state;
    ngx_mcp_body_t   *next;
    ngx_mcp_chain_t   old[NGX_MCP_PAYLOADS];
    ngx_mcp_change_t  last;

    next = &t->sh->change;
    state = s->body.task.state;
    age = ngx_mcp_task_age(&s->body.task, ev->now);

    rc = ngx_mcp_change_decide_locked(t, s, ev, &change, &last, &growth);

    if (rc != NGX_MCP_OK) {
        t->sh->count.refused[rc]++;
        t->sh->count.stale_leases += (rc == NGX_MCP_LEASE_LOST);
        return rc;
    }

    if (next->task.state == NGX_MCP_FREE) {
        ngx_mcp_stats_removed_locked(t, s, 1);
        ngx_mcp_remove_locked(t, s);
        return NGX_MCP_OK;
    }

    ngx_memzero(old, sizeof(old));

    for (i = 0; change && i < NGX_MCP_PAYLOADS; i++) {
        if (change->payload[i].data) {
            old[i] = next->payload[i];
            s->written |= 1u << i;
            ngx_mcp_chain_write_locked(t, &next->payload[i],
                                       &change->payload[i], 1);
        }
    }

    if (ngx_mcp_task_listed(&next->task)
        && !ngx_mcp_task_listed(&s->body.task))
    {
        next->queue_seq = ++t->sh->seq;
    }

    changes = ngx_mcp_changes_made_locked(t, s, next);

    ngx_mcp_commit_locked(t, s, changes, growth);

    if (s->body.task.state != state) {
        ngx_mcp_history_add_locked(t, s, ev);
    }

    ngx_mcp_stats_changed_locked(t, s, ev, state, age);

    if (changes) {
        ngx_mcp_changes_put_locked(t, s);
    }

    if (ev->type == NGX_MCP_EV_ASK) {
        /* new questions: any stream may send them */
        s->asker = 0;
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        ngx_mcp_chain_free_locked(t, &old[i]);
    }

    return NGX_MCP_OK;
}


/*
 * Computes the next body, without its payloads, and how many bytes these grow;
 * or returns the reason of a refusal.  The body is built in the journal, which
 * is not valid until sh->journal is set.  A change that ends the task with a
 * diagnosis is replaced by last.
 */

static ngx_uint_t
ngx_mcp_change_decide_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev, ngx_mcp_change_t **change, ngx_mcp_change_t *last,
    int64_t *growth)
{
    ngx_uint_t       rc;
    ngx_mcp_body_t  *next;

    next = &t->sh->change;
    *next = s->body;
    *growth = 0;

    rc = ngx_mcp_task_apply(&next->task, ev);

    if (rc != NGX_MCP_OK) {
        return rc;
    }

    next->revision = ngx_mcp_after_locked(t, s, next->revision);

    if (next->task.version != s->body.task.version) {
        next->task.version = ngx_mcp_after_locked(t, s, s->body.task.version);
        next->task.flags &= ~NGX_MCP_LOADED;
    }

    if (*change == NULL) {
        return NGX_MCP_OK;
    }

    if ((*change)->diagnosis.data && ngx_mcp_terminal(next->task.state)) {
        *last = **change;
        *change = last;
        last->payload[NGX_MCP_MESSAGE] = last->diagnosis;

        if (ngx_mcp_change_check_locked(t, s, last, growth) == NGX_MCP_OK) {
            return NGX_MCP_OK;
        }

        /*
         * Without room for the diagnosis the task ends all the same.  The
         * message of before is deleted, since it is not a diagnosis.
         */

        ngx_str_set(&last->payload[NGX_MCP_MESSAGE], "");
        *growth = 0;
    }

    rc = ngx_mcp_change_check_locked(t, s, *change, growth);

    if (rc == NGX_MCP_ZONE_FULL && ev->type == NGX_MCP_EV_CANCEL) {

        /* cancelling frees memory: it must not fail for lack of it */

        *change = NULL;
        *growth = 0;
        return NGX_MCP_OK;
    }

    return rc;
}


/*
 * The next version or revision.  Before a restart, clients may have seen later
 * versions of a loaded task that were never saved.  These were not greater than
 * sh->seq at that time.  At each start sh->seq jumps beyond all of its old
 * values, and the jump is saved before anything else; so the next version is
 * made greater than sh->seq.
 */

static uint64_t
ngx_mcp_after_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s, uint64_t n)
{
    if (s->body.task.flags & NGX_MCP_LOADED) {
        n = ngx_max(n, t->sh->seq);
    }

    return n + 1;
}


/*
 * Makes the complete change in the journal the task's body, and updates what
 * follows from it.  If there are changes to deliver, the task is not in the
 * lists by change afterwards: the caller inserts it again.
 */

void
ngx_mcp_commit_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t changes, int64_t growth)
{
    ngx_uint_t  state, runs;

    state = s->body.task.state;
    runs = ngx_mcp_task_runs(&s->body.task);

    ngx_mcp_change_commit_locked(t, s, changes);

    ngx_mcp_account_locked(t, s, growth);
    ngx_mcp_reindex_locked(t, s, state);
    ngx_mcp_running_locked(t, s, runs, ngx_mcp_task_runs(&s->body.task));
}


static void
ngx_mcp_change_commit_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t changes)
{
    ngx_mcp_failpoint("change_ready");

    ngx_mcp_barrier();
    t->sh->journal = ngx_mcp_index(t, s);
    ngx_mcp_barrier();

    ngx_mcp_failpoint("change_decided");

    if (changes) {
        ngx_mcp_changes_take_locked(t, s);
    }

#if (NGX_MCP_TEST)
    s->body.task = t->sh->change.task;
    ngx_mcp_failpoint("change_half");
#endif

    s->body = t->sh->change;

    ngx_mcp_failpoint("change_copied");

    ngx_mcp_barrier();
    t->sh->journal = 0;
    ngx_mcp_barrier();

    ngx_mcp_failpoint("change_done");
}


/* counts as a change, so that the task is delivered once more */

void
ngx_mcp_touch_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_changes_take_locked(t, s);

    /*
     * single words that do not depend on each other: no journal is needed;
     * in a mirror the revision is that of the store, which is not changed
     */

    if (!t->mirror) {
        s->body.revision = ngx_mcp_after_locked(t, s, s->body.revision);
    }

    s->body.changed = ++t->sh->seq;

    ngx_mcp_failpoint("touch");

    ngx_mcp_changes_put_locked(t, s);
}


static ngx_uint_t
ngx_mcp_change_check_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_change_t *change, int64_t *growth)
{
    size_t           blocks;
    ngx_str_t       *p;
    ngx_uint_t       i;
    ngx_mcp_name_t  *owner;

    blocks = 0;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        p = &change->payload[i];

        if (p->data == NULL) {
            continue;
        }

        if (change->max_payload && p->len > change->max_payload) {
            return NGX_MCP_PAYLOAD_TOO_LARGE;
        }

        /* the old blocks are freed only after the change */

        blocks += ngx_mcp_blocks_for(p->len);
        *growth += (int64_t) p->len - s->body.payload[i].len;
    }

    owner = ngx_mcp_name(t, s->owner);

    if (change->max_owner_bytes
        && *growth > 0
        && owner->bytes + *growth > change->max_owner_bytes)
    {
        return NGX_MCP_LIMIT_OWNER_BYTES;
    }

    if (blocks > ngx_mcp_available(&t->sh->block)) {
        return NGX_MCP_ZONE_FULL;
    }

    return NGX_MCP_OK;
}


static void
ngx_mcp_account_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s, int64_t growth)
{
    ngx_mcp_name(t, s->owner)->bytes += growth;
    ngx_mcp_name(t, s->tool)->bytes += growth;
    t->sh->bytes += growth;
}


static void
ngx_mcp_reindex_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s, ngx_uint_t state)
{
    ngx_uint_t  listed;

    ngx_mcp_stats_state_locked(t, s, state, s->body.task.state);

    ngx_mcp_failpoint("reindex");

    ngx_mcp_wheel_remove_locked(t, s);
    ngx_mcp_wheel_insert_locked(t, s);

    listed = ngx_mcp_task_listed(&s->body.task);

    if (s->queued && !listed) {
        ngx_mcp_queue_remove_locked(t, s);

    } else if (!s->queued && listed) {
        ngx_mcp_queue_insert_locked(t, s);
    }
}


/*
 * Counts running background calls.  Their number is limited: when a call ends,
 * the processes with waiting calls are signalled.
 */

static void
ngx_mcp_running_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t before, ngx_uint_t after)
{
    if (before == after) {
        return;
    }

    t->sh->running += after - before;
    ngx_mcp_name(t, s->tool)->running += after - before;
    ngx_mcp_tool_stat(t, s)->running += after - before;

    if (before) {
        ngx_mcp_signal_name_locked(t, NGX_MCP_CAPACITY);
    }
}


/* with a store, the slot is freed only when the store has deleted its copy */

void
ngx_mcp_remove_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    int64_t      bytes;
    uint32_t     n, *p;
    ngx_uint_t   i;

    n = ngx_mcp_index(t, s);
    p = &t->hash[ngx_mcp_id_hash(&s->id) & t->sh->hash_mask];

    /* used at the end */
    __builtin_prefetch(p);

    ngx_mcp_stats_state_locked(t, s, s->body.task.state, NGX_MCP_FREE);
    ngx_mcp_running_locked(t, s, ngx_mcp_task_runs(&s->body.task), 0);

    ngx_mcp_failpoint("remove");

    if (t->persist) {
        s->body.task.flags |= NGX_MCP_REMOVED;
    }

    /* now the task no longer exists */

    ngx_mcp_barrier();
    s->body.task.state = NGX_MCP_FREE;
    ngx_mcp_barrier();

    ngx_mcp_failpoint("remove_free");

    ngx_mcp_changes_take_locked(t, s);
    ngx_mcp_order_remove_locked(t, &ngx_mcp_by_seq, s);
    ngx_mcp_wheel_remove_locked(t, s);
    ngx_mcp_signal_task_locked(t, s);

    if (s->queued) {
        ngx_mcp_queue_remove_locked(t, s);
    }

    bytes = (int64_t) ngx_mcp_bytes(s);

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        ngx_mcp_chain_free_locked(t, &s->body.payload[i]);
    }

    ngx_mcp_account_locked(t, s, -bytes);
    ngx_mcp_name_unref_locked(t, s->owner);
    ngx_mcp_name_unref_locked(t, s->tool);

    if (s->session) {
        ngx_mcp_name_unref_locked(t, s->session);
    }

    if (s->token) {
        if (ngx_mcp_name(t, s->token)->u.task == n) {
            ngx_mcp_name(t, s->token)->u.task = 0;
        }

        ngx_mcp_name_unref_locked(t, s->token);
    }

    while (*p != n) {
        p = &ngx_mcp_slot(t, *p)->hash_next;
    }

    *p = s->hash_next;

    ngx_mcp_failpoint("remove_slot");

    if (t->persist) {
        t->persist->removed(t, s);
        return;
    }

    ngx_mcp_slot_free_locked(t, s);
}


static uint32_t
ngx_mcp_ceil_pow2(uint64_t n)
{
    uint32_t  p;

    for (p = 64; p < n; p <<= 1) { /* void */ }

    return p;
}
