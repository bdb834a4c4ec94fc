
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_signal.h"


static void ngx_mcp_signal_locked(ngx_mcp_table_t *t, uint64_t *processes,
    uint64_t key);


void
ngx_mcp_await_task_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    s->waiters |= t->self;
}


void
ngx_mcp_await_name_locked(ngx_mcp_table_t *t, uint32_t hash)
{
    ngx_mcp_await_key_locked(t, ngx_mcp_signal_name(hash));
}


void
ngx_mcp_await_key_locked(ngx_mcp_table_t *t, uint64_t key)
{
    t->sh->awaited[key] |= t->self;
}


void
ngx_mcp_signal_task_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    if (s->waiters) {
        ngx_mcp_signal_locked(t, &s->waiters, ngx_mcp_signal_id(&s->id));
    }
}


void
ngx_mcp_signal_name_locked(ngx_mcp_table_t *t, uint32_t hash)
{
    ngx_mcp_signal_key_locked(t, ngx_mcp_signal_name(hash));
}


void
ngx_mcp_signal_key_locked(ngx_mcp_table_t *t, uint64_t key)
{
    if (t->sh->awaited[key]) {
        ngx_mcp_signal_locked(t, &t->sh->awaited[key], key);
    }
}


static void
ngx_mcp_signal_locked(ngx_mcp_table_t *t, uint64_t *processes, uint64_t key)
{
    ngx_mcp_signal_t  *sig;
    ngx_mcp_header_t  *sh;

    sh = t->sh;
    sig = &t->log[sh->logged & sh->log_mask];

    /*
     * pairs with the fence in ngx_mcp_signal_read(): a reader that sees a
     * part of the new entry also sees the present value of logged
     */

    __atomic_thread_fence(__ATOMIC_RELEASE);

    sig->processes = *processes;
    sig->key = key;

    /* readers take no lock: an entry is complete before it is counted */

    __atomic_store_n(&sh->logged, sh->logged + 1, __ATOMIC_RELEASE);

    t->wake |= *processes;
    *processes = 0;

    sh->count.signals += ngx_mcp_signal_is_change(key);
}


/* makes the log overtake every cursor: all processes check everything */

void
ngx_mcp_signal_all_locked(ngx_mcp_table_t *t)
{
    t->sh->logged += t->sh->log_mask + 1;
    t->wake = (uint64_t) -1;
}


/*
 * Copies up to n signals after the cursor, for any process, and advances the
 * cursor; needs no lock.  Returns their number, or n + 1 if signals were lost.
 * The oldest entry of the ring may be overwritten at the same time, so it is
 * never read.
 */

ngx_uint_t
ngx_mcp_signal_read(ngx_mcp_table_t *t, uint64_t *cursor,
    ngx_mcp_signal_t *signals, ngx_uint_t n)
{
    uint64_t           end;
    ngx_uint_t         i;
    ngx_mcp_header_t  *sh;

    sh = t->sh;
    end = __atomic_load_n(&sh->logged, __ATOMIC_ACQUIRE);

    if (end - *cursor <= sh->log_mask) {

        for (i = 0; i < n && i < end - *cursor; i++) {
            signals[i] = t->log[(*cursor + i) & sh->log_mask];
        }

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        end = __atomic_load_n(&sh->logged, __ATOMIC_RELAXED);

        if (end - *cursor <= sh->log_mask) {
            *cursor += i;
            return i;
        }
    }

    *cursor = end;

    return n + 1;
}
