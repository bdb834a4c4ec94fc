
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_wheel.h"


#define NGX_MCP_WHEEL_BITS   6
#define NGX_MCP_WHEEL_MASK   (NGX_MCP_WHEEL_SLOTS - 1)
#define NGX_MCP_WHEEL_SPAN                                                    \
    ((uint64_t) 1 << (NGX_MCP_WHEEL_BITS                                      \
                      * NGX_MCP_WHEEL_LEVELS))


static uint64_t ngx_mcp_wheel_first_locked(ngx_mcp_table_t *t,
    ngx_uint_t *bucket);
static void ngx_mcp_wheel_prefetch(ngx_mcp_table_t *t, uint32_t n);


/*
 * The level is that of the highest digit, to base 64, in which the deadline
 * differs from the base.  The base may advance up to the beginning of the
 * first bucket in use without changing the level of any task.
 */

ngx_uint_t
ngx_mcp_wheel_bucket(uint64_t base, uint64_t deadline)
{
    uint64_t    diff;
    ngx_uint_t  level;

    if (deadline < base) {
        deadline = base;
    }

    diff = deadline ^ base;

    if (diff >= NGX_MCP_WHEEL_SPAN) {

        /* beyond the range of the wheel: the last bucket, to be moved later */

        deadline = base | (NGX_MCP_WHEEL_SPAN - 1);
        diff = deadline ^ base;
    }

    level = diff ? (63 - __builtin_clzll(diff)) / NGX_MCP_WHEEL_BITS
                 : 0;

    return level * NGX_MCP_WHEEL_SLOTS
           + ((deadline >> (level * NGX_MCP_WHEEL_BITS)) & NGX_MCP_WHEEL_MASK);
}


void
ngx_mcp_wheel_insert_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    uint32_t          n, *head;
    uint64_t          deadline;
    ngx_uint_t        bucket;
    ngx_mcp_wheel_t  *wheel;

    deadline = ngx_mcp_task_deadline(&s->body.task);

    if (deadline == NGX_MCP_NEVER) {
        s->bucket = 0;
        return;
    }

    wheel = &t->sh->wheel;
    bucket = ngx_mcp_wheel_bucket(wheel->base, deadline);
    head = &wheel->head[bucket];
    n = ngx_mcp_index(t, s);

    s->bucket = (uint16_t) (bucket + 1);
    s->wheel_prev = 0;
    s->wheel_next = *head;

    if (*head) {
        ngx_mcp_slot(t, *head)->wheel_prev = n;
    }

    ngx_mcp_failpoint("wheel_insert");

    *head = n;
    wheel->map[bucket / NGX_MCP_WHEEL_SLOTS]
        |= (uint64_t) 1 << (bucket & NGX_MCP_WHEEL_MASK);
}


void
ngx_mcp_wheel_remove_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_uint_t        bucket;
    ngx_mcp_wheel_t  *wheel;

    if (s->bucket == 0) {
        return;
    }

    wheel = &t->sh->wheel;
    bucket = s->bucket - 1;

    if (s->wheel_next) {
        ngx_mcp_slot(t, s->wheel_next)->wheel_prev = s->wheel_prev;
    }

    ngx_mcp_failpoint("wheel_remove");

    if (s->wheel_prev) {
        ngx_mcp_slot(t, s->wheel_prev)->wheel_next = s->wheel_next;

    } else {
        wheel->head[bucket] = s->wheel_next;

        if (s->wheel_next == 0) {
            wheel->map[bucket / NGX_MCP_WHEEL_SLOTS]
                &= ~((uint64_t) 1 << (bucket & NGX_MCP_WHEEL_MASK));
        }
    }

    s->bucket = 0;
}


/*
 * The time of the next ngx_mcp_wheel_step_locked(), not later than the next
 * deadline; NGX_MCP_NEVER: the wheel is empty.
 */

uint64_t
ngx_mcp_wheel_next_locked(ngx_mcp_table_t *t)
{
    ngx_uint_t  bucket;

    return ngx_mcp_wheel_first_locked(t, &bucket);
}


/*
 * One step of a sweep, so that the caller can limit the work done under the
 * lock.  NGX_AGAIN: one task was moved to a lower level; NGX_OK: a due task
 * was removed from the wheel; NGX_DECLINED: nothing is due.
 */

ngx_int_t
ngx_mcp_wheel_step_locked(ngx_mcp_table_t *t, uint64_t now,
    ngx_mcp_slot_t **due)
{
    uint64_t         start;
    ngx_uint_t       bucket;
    ngx_mcp_slot_t  *s;

    start = ngx_mcp_wheel_first_locked(t, &bucket);

    if (start > now) {
        /* a base near the present time saves moves later */
        t->sh->wheel.base = ngx_max(t->sh->wheel.base, now);
        return NGX_DECLINED;
    }

    t->sh->wheel.base = start;

    s = ngx_mcp_slot(t, t->sh->wheel.head[bucket]);
    ngx_mcp_wheel_prefetch(t, s->wheel_next);
    ngx_mcp_wheel_remove_locked(t, s);

    /* a task that is due skips the lower levels */

    if (ngx_mcp_task_deadline(&s->body.task) > now) {
        ngx_mcp_wheel_insert_locked(t, s);
        return NGX_AGAIN;
    }

    *due = s;

    return NGX_OK;
}


/*
 * Prefetches what the next step will use, and the slot of the step after it:
 * tasks that expire have rarely been used lately, so they are not cached.
 */

static void
ngx_mcp_wheel_prefetch(ngx_mcp_table_t *t, uint32_t n)
{
    ngx_uint_t       i;
    ngx_mcp_slot_t  *s;

    if (n == 0) {
        return;
    }

    s = ngx_mcp_slot(t, n);

    ngx_mcp_prefetch(t, s->wheel_next);

    __builtin_prefetch(&t->hash[ngx_mcp_id_hash(&s->id) & t->sh->hash_mask]);

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (s->body.payload[i].len) {
            __builtin_prefetch(ngx_mcp_block(t, s->body.payload[i].last));
        }
    }
}


/*
 * The bucket that begins first, and the time when it does.  If several begin
 * at the same time, the one of the highest level: its tasks must move down
 * before the lower buckets are swept.
 */

static uint64_t
ngx_mcp_wheel_first_locked(ngx_mcp_table_t *t, ngx_uint_t *bucket)
{
    uint64_t          map, start, first;
    ngx_uint_t        level, shift, n;
    ngx_mcp_wheel_t  *wheel;

    wheel = &t->sh->wheel;
    first = NGX_MCP_NEVER;
    *bucket = 0;

    for (level = NGX_MCP_WHEEL_LEVELS; level-- > 0; /* void */) {
        map = wheel->map[level];

        if (map == 0) {
            continue;
        }

        n = __builtin_ctzll(map);
        shift = level * NGX_MCP_WHEEL_BITS;

        start = wheel->base >> shift;
        start &= ~(uint64_t) NGX_MCP_WHEEL_MASK;
        start = (start | n) << shift;

        if (start < first) {
            first = start;
            *bucket = level * NGX_MCP_WHEEL_SLOTS + n;
        }
    }

    return first;
}
