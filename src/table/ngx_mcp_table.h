
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The task table: creating, finding, changing and removing tasks. */


#ifndef _NGX_MCP_TABLE_H_INCLUDED_
#define _NGX_MCP_TABLE_H_INCLUDED_


#include "ngx_mcp_table_types.h"
#include "ngx_mcp_failpoint.h"


/*
 * When a process is killed, all its writes up to some instruction are visible
 * to others, so only reordering by the compiler must be prevented.
 */

#define ngx_mcp_barrier()  __asm__ volatile ("" ::: "memory")


#define ngx_mcp_slot(t, n)   (&(t)->slots[n])
#define ngx_mcp_block(t, n)  (&(t)->blocks[n])
#define ngx_mcp_name(t, n)  ((ngx_mcp_name_t *) &(t)->blocks[n])

/*
 * In a large zone most slots are not in the cache.  Prefetching the next slot
 * while one is handled hides most of the latency.
 */

#define ngx_mcp_prefetch(t, n)                                                \
    __builtin_prefetch((u_char *) ngx_mcp_slot(t, n));                        \
    __builtin_prefetch((u_char *) ngx_mcp_slot(t, n) + 64);                   \
    __builtin_prefetch((u_char *) ngx_mcp_slot(t, n) + 128);                  \
    __builtin_prefetch((u_char *) ngx_mcp_slot(t, n) + 192)

/* the set that contains the seal of a session, if the session was ended */

#define ngx_mcp_ended(t, seal)                                                \
    (&(t)->sh->ended[(seal) % (NGX_MCP_SESSIONS                               \
                               / NGX_MCP_SESSION_SET)                         \
                     * NGX_MCP_SESSION_SET])

#define ngx_mcp_index(t, s)  ((uint32_t) ((s) - (t)->slots))


/*
 * Called before the lock is taken: prefetches what will be needed, so that
 * cache misses do not prolong the time under the lock.  Other processes may
 * change the table meanwhile, so the values read here are only hints.
 */

static ngx_inline void
ngx_mcp_prefetch_task(ngx_mcp_table_t *t, ngx_mcp_id_t *id)
{
    uint32_t  n;

    n = t->hash[ngx_mcp_id_hash(id) & t->sh->hash_mask];
    ngx_mcp_prefetch(t, n);
}


/* the same for a new task: its pages may have to be mapped by the kernel */

static ngx_inline void
ngx_mcp_prefetch_new(ngx_mcp_table_t *t)
{
    uint32_t  n;

    n = t->sh->slot.free ? t->sh->slot.free : t->sh->slot.fresh;

    if (n < t->sh->slot.end) {
        (void) *(volatile u_char *) ngx_mcp_slot(t, n);
        (void) *((volatile u_char *) ngx_mcp_slot(t, n + 1) - 1);
    }

    n = t->sh->block.free ? t->sh->block.free : t->sh->block.fresh + 1;

    if (n < t->sh->block.end) {
        (void) *(volatile u_char *) ngx_mcp_block(t, n);
    }
}


/* notifies the store: called after changes, before the lock is released */

static ngx_inline void
ngx_mcp_unsaved_locked(ngx_mcp_table_t *t)
{
    if (t->persist) {
        t->persist->notify(t);
    }
}


/* whether a change is saved; always 0 without a store */

static ngx_inline ngx_uint_t
ngx_mcp_is_saved_locked(ngx_mcp_table_t *t, uint64_t changed)
{
    return t->persist && t->persist->saved(t, changed);
}


ngx_int_t ngx_mcp_table_layout(ngx_mcp_layout_t *l, size_t size,
    uint64_t max_tasks);
size_t ngx_mcp_table_usable(size_t size);
ngx_int_t ngx_mcp_table_create(ngx_mcp_table_t *t, ngx_slab_pool_t *shpool,
    uint64_t max_tasks);
void ngx_mcp_table_attach(ngx_mcp_table_t *t, ngx_slab_pool_t *shpool);

void ngx_mcp_lock(ngx_mcp_table_t *t);
void ngx_mcp_lock_read(ngx_mcp_table_t *t);
void ngx_mcp_unlock(ngx_mcp_table_t *t);

ngx_mcp_slot_t *ngx_mcp_find_locked(ngx_mcp_table_t *t, ngx_mcp_id_t *id,
    ngx_str_t *owner, uint64_t now);
ngx_mcp_slot_t *ngx_mcp_find_token_locked(ngx_mcp_table_t *t, ngx_str_t *owner,
    ngx_str_t *token, uint64_t now);
ngx_uint_t ngx_mcp_new_locked(ngx_mcp_table_t *t, ngx_mcp_new_t *nt,
    ngx_mcp_slot_t **slot);
ngx_uint_t ngx_mcp_change_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev, ngx_mcp_change_t *change);
void ngx_mcp_commit_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t changes, int64_t growth);
uint32_t ngx_mcp_slot_alloc_locked(ngx_mcp_table_t *t);
void ngx_mcp_slot_free_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
uint32_t ngx_mcp_token_locked(ngx_mcp_table_t *t, uint32_t owner,
    ngx_str_t *token, ngx_uint_t create);
void ngx_mcp_remove_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
uint64_t ngx_mcp_bytes(ngx_mcp_slot_t *s);
void ngx_mcp_link_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_touch_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);


#endif /* _NGX_MCP_TABLE_H_INCLUDED_ */
