
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The check of a table: every invariant in ngx_mcp_table_types.h is verified.
 * This takes long under the lock, so it is for tests and for operators, not
 * for requests.
 */


#include "ngx_mcp_recover.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_wheel.h"
#include "ngx_mcp_changes.h"


/* what is counted in the slots, to be compared with the header and lists */

typedef struct {
    uint32_t  tasks;
    uint32_t  states[NGX_MCP_STATES];
    uint32_t  queued;
    uint32_t  running;
    uint32_t  holding;
    uint32_t  timed;
    uint32_t  removed;        /* slots kept for the store */
    uint32_t  blocks;
    uint32_t  tokens;
    uint32_t  sessions;
    uint32_t  known;          /* in the list of their session */
    uint32_t  unannounced;    /* with a session */
    uint32_t  names[NGX_MCP_NAMES];
    uint64_t  bytes;

    struct {
        uint32_t  states[NGX_MCP_STATES];
        uint32_t  running;
        uint32_t  tool;
    } tools[NGX_MCP_STAT_TOOLS];
} ngx_mcp_tally_t;


static const char *ngx_mcp_check_slot_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_chain_locked(ngx_mcp_table_t *t,
    ngx_mcp_chain_t *chain, ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_names_locked(ngx_mcp_table_t *t,
    ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_owner_locked(ngx_mcp_table_t *t, uint32_t n);
static const char *ngx_mcp_check_session_locked(ngx_mcp_table_t *t, uint32_t n,
    ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_unannounced_locked(ngx_mcp_table_t *t,
    ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_order_locked(ngx_mcp_table_t *t,
    ngx_mcp_order_t *order, uint32_t n, uint32_t expected);
static const char *ngx_mcp_check_queue_locked(ngx_mcp_table_t *t,
    ngx_mcp_queue_t *q, uint32_t tool, ngx_uint_t priority,
    ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_tool_locked(ngx_mcp_table_t *t, uint32_t n,
    ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_wheel_locked(ngx_mcp_table_t *t,
    ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_stats_locked(ngx_mcp_table_t *t,
    ngx_mcp_tally_t *tally);
static const char *ngx_mcp_check_free_locked(ngx_mcp_table_t *t,
    ngx_mcp_tally_t *tally);


/* returns NULL, or the first violation that is found */

const char *
ngx_mcp_check_locked(ngx_mcp_table_t *t)
{
    uint32_t           n;
    ngx_uint_t         i;
    const char        *err;
    ngx_mcp_slot_t    *s;
    ngx_mcp_tally_t    tally;
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    ngx_memzero(&tally, sizeof(ngx_mcp_tally_t));
    ngx_memzero(t->map, ngx_mcp_map_size((size_t) sh->block.end));

    if (sh->magic != NGX_MCP_MAGIC) {
        return "wrong magic";
    }

    if (sh->journal) {
        return "an unfinished change in the journal";
    }

    if (sh->tool_stats > sh->tool_stats_end
        || sh->worker_stats > sh->worker_stats_end)
    {
        return "too many statistics entries";
    }

    for (n = 1; n < sh->slot.fresh; n++) {
        s = ngx_mcp_slot(t, n);

        if (s->body.task.state == NGX_MCP_FREE) {
            tally.removed += (s->body.task.flags & NGX_MCP_REMOVED) != 0;
            continue;
        }

        err = ngx_mcp_check_slot_locked(t, s, &tally);
        if (err) {
            return err;
        }
    }

    err = ngx_mcp_check_order_locked(t, &ngx_mcp_recent, 0, tally.tasks);
    if (err) {
        return err;
    }

    err = t->persist ? t->persist->check(t) : NULL;
    if (err) {
        return err;
    }

    err = ngx_mcp_check_names_locked(t, &tally);
    if (err) {
        return err;
    }

    err = ngx_mcp_check_unannounced_locked(t, &tally);
    if (err) {
        return err;
    }

    err = ngx_mcp_check_wheel_locked(t, &tally);
    if (err) {
        return err;
    }

    err = ngx_mcp_check_free_locked(t, &tally);
    if (err) {
        return err;
    }

    err = ngx_mcp_check_stats_locked(t, &tally);
    if (err) {
        return err;
    }

    for (i = 0; i < NGX_MCP_STATES; i++) {
        if (tally.states[i] != sh->states[i]) {
            return "wrong number of tasks by state";
        }
    }

    if (tally.bytes != sh->bytes) {
        return "wrong number of payload bytes";
    }

    return NULL;
}


static const char *
ngx_mcp_check_slot_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_tally_t *tally)
{
    ngx_uint_t       i, stat;
    const char      *err;
    ngx_mcp_task_t  *task;

    task = &s->body.task;

    if (task->state >= NGX_MCP_STATES) {
        return "a task has an unknown state";
    }

    /* at time 0, so that no task has expired */

    if (ngx_mcp_find_locked(t, &s->id, NULL, 0) != s) {
        return "a task is not found by its id";
    }

    if (s->seq > t->sh->seq || s->body.queue_seq > t->sh->seq
        || s->body.changed > t->sh->seq)
    {
        return "a task has a sequence number from the future";
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        err = ngx_mcp_check_chain_locked(t, &s->body.payload[i], tally);
        if (err) {
            return err;
        }
    }

    if (s->body.payload[NGX_MCP_PARAMS].len
        < (uint32_t) s->method_len + NGX_MCP_HISTORY)
    {
        return "a task's method is longer than its payload";
    }

    tally->bytes += ngx_mcp_bytes(s);

    if (ngx_mcp_task_listed(task) != s->queued) {
        return "a task is queued but not claimable, or the reverse";
    }

    if ((ngx_mcp_task_deadline(task) != NGX_MCP_NEVER) != (s->bucket != 0)) {
        return "a task with a deadline is not in the wheel, or the reverse";
    }

    stat = ngx_mcp_name(t, s->tool)->stat;

    if (stat >= t->sh->tool_stats) {
        return "a tool refers to a missing statistics entry";
    }

    tally->tools[stat].states[task->state]++;
    tally->tools[stat].running += ngx_mcp_task_runs(task);

    tally->tasks++;
    tally->tokens += (s->token != 0);
    tally->sessions += (s->session != 0);
    tally->known += ngx_mcp_changes_has(s) ? 1 : 0;
    tally->unannounced += (s->session && !ngx_mcp_changes_has(s)) ? 1 : 0;
    tally->states[task->state]++;
    tally->queued += s->queued;
    tally->running += ngx_mcp_task_runs(task);
    tally->timed += (s->bucket != 0);

    return NULL;
}


static const char *
ngx_mcp_check_chain_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain,
    ngx_mcp_tally_t *tally)
{
    uint32_t  n, left;

    n = chain->last;

    for (left = ngx_mcp_blocks_for(chain->len); left; left--) {

        if (n == 0 || n >= t->sh->block.fresh) {
            return "a chain has an invalid block index";
        }

        if (ngx_mcp_map_mark(t, n)) {
            return "a block is used twice";
        }

        tally->blocks++;
        n = ngx_mcp_block(t, n)->next;
    }

    if (n != chain->last) {
        return "a chain does not match its length";
    }

    return NULL;
}


static const char *
ngx_mcp_check_names_locked(ngx_mcp_table_t *t, ngx_mcp_tally_t *tally)
{
    uint32_t          i, n;
    uint64_t          tasks[NGX_MCP_NAMES];
    uint64_t          bytes[NGX_MCP_NAMES];
    const char       *err;
    ngx_mcp_name_t   *name;
    ngx_mcp_chain_t   chain;

    ngx_memzero(tasks, sizeof(tasks));
    ngx_memzero(bytes, sizeof(bytes));

    /* first: the check of a tool relies on this queue */

    err = ngx_mcp_check_queue_locked(t, &t->sh->held, 0, 0, tally);
    if (err) {
        return err;
    }

    for (i = 0; i <= t->sh->name_mask; i++) {

        for (n = t->names[i]; n; n = name->next) {

            if (n >= t->sh->block.fresh || ngx_mcp_map_mark(t, n)) {
                return "a name's block is used twice";
            }

            tally->blocks++;
            name = ngx_mcp_name(t, n);

            if ((name->hash & t->sh->name_mask) != i || name->tasks == 0) {
                return "a name is in the wrong bucket or has no tasks";
            }

            ngx_mcp_name_rest(name, &chain);

            err = ngx_mcp_check_chain_locked(t, &chain, tally);
            if (err) {
                return err;
            }

            tasks[name->kind] += name->tasks;
            bytes[name->kind] += name->bytes;

            tally->names[name->kind]++;

            if (name->kind == NGX_MCP_OWNER) {
                err = ngx_mcp_check_owner_locked(t, n);

            } else if (name->kind == NGX_MCP_TOOL) {
                err = ngx_mcp_check_tool_locked(t, n, tally);

            } else if (name->kind == NGX_MCP_SESSION) {
                err = ngx_mcp_check_session_locked(t, n, tally);

            } else if (name->u.task
                       && ngx_mcp_slot(t, name->u.task)->token != n)
            {
                return "a token refers to another task";
            }

            if (err) {
                return err;
            }
        }
    }

    if (tasks[0] != tally->tasks || tasks[1] != tally->tasks
        || tasks[2] != tally->tokens || tasks[3] != tally->sessions
        || bytes[0] != tally->bytes || bytes[1] != tally->bytes
        || ngx_memcmp(tally->names, t->sh->names, sizeof(tally->names)) != 0)
    {
        return "wrong number of tasks of names";
    }

    if (tally->known != 0) {
        return "a task is not in the list of its session";
    }

    if (tally->queued != 0) {
        return "a claimable task is not in its queue";
    }

    if (tally->running != t->sh->running
        || tally->holding != t->sh->holding)
    {
        return "wrong number of running calls";
    }

    return NULL;
}


static const char *
ngx_mcp_check_owner_locked(ngx_mcp_table_t *t, uint32_t n)
{
    uint32_t         i;
    uint64_t         bytes;
    const char      *err;
    ngx_mcp_slot_t  *s;
    ngx_mcp_name_t  *name;

    name = ngx_mcp_name(t, n);

    err = ngx_mcp_check_order_locked(t, &ngx_mcp_by_seq, n, name->tasks);
    if (err == NULL) {
        err = ngx_mcp_check_order_locked(t, &ngx_mcp_by_change, n,
                                         name->tasks);
    }

    if (err) {
        return err;
    }

    bytes = 0;

    for (i = name->u.owned.by_seq[0]; i; i = s->by_seq[0].next) {
        s = ngx_mcp_slot(t, i);
        bytes += ngx_mcp_bytes(s);
    }

    return (bytes == name->bytes) ? NULL : "wrong number of an owner's bytes";
}


static const char *
ngx_mcp_check_session_locked(ngx_mcp_table_t *t, uint32_t n,
    ngx_mcp_tally_t *tally)
{
    uint32_t             i, tasks, undelivered;
    const char          *err;
    ngx_mcp_slot_t      *s;
    ngx_mcp_delivery_t  *delivery;

    delivery = &ngx_mcp_name(t, n)->u.delivery;
    tasks = 0;
    undelivered = 0;

    for (i = delivery->changes; i; i = s->changes.next) {
        s = ngx_mcp_slot(t, i);

        if (!ngx_mcp_changes_has(s) || tasks++ >= tally->tasks) {
            return "a session's list has a foreign task or a loop";
        }

        undelivered += (s->body.changed > delivery->delivered);
    }

    err = ngx_mcp_check_order_locked(t, &ngx_mcp_changes, n, tasks);
    if (err) {
        return err;
    }

    tally->known -= tasks;

    return (undelivered == delivery->undelivered)
           ? NULL : "wrong number of undelivered changes of a session";
}


static const char *
ngx_mcp_check_unannounced_locked(ngx_mcp_table_t *t, ngx_mcp_tally_t *tally)
{
    uint32_t         i, prev;
    ngx_mcp_slot_t  *s;

    prev = 0;

    for (i = t->sh->unannounced; i; i = s->changes.next) {
        s = ngx_mcp_slot(t, i);

        if (s->body.task.state == NGX_MCP_FREE
            || s->session == 0 || ngx_mcp_changes_has(s)
            || s->changes.prev != prev
            || tally->unannounced-- == 0)
        {
            return "the list of unannounced tasks has a foreign task or a loop";
        }

        prev = i;
    }

    return tally->unannounced
           ? "a task is not in the list of unannounced tasks" : NULL;
}


/* each level has exactly the tasks of level 0 that belong to it, in order */

static const char *
ngx_mcp_check_order_locked(ngx_mcp_table_t *t, ngx_mcp_order_t *order,
    uint32_t n, uint32_t expected)
{
    uint32_t         i, prev, tasks, lane;
    ngx_uint_t       level;
    ngx_mcp_slot_t  *s, *before;
    ngx_mcp_link_t  *link;

    for (level = 0; level < order->levels; level++) {

        prev = 0;
        tasks = 0;
        lane = ngx_mcp_order_front(t, order, n)[level];

        for (i = ngx_mcp_order_front(t, order, n)[0];
             i;
             i = link[0].next)
        {
            s = ngx_mcp_slot(t, i);
            link = ngx_mcp_order_link(order, s);

            if (ngx_mcp_order_name(order, s) != n
                || s->body.task.state == NGX_MCP_FREE
                || tasks++ >= expected)
            {
                return "a list has a foreign task or a loop";
            }

            if (ngx_mcp_order_level(t, order, s) < level) {
                continue;
            }

            before = ngx_mcp_slot(t, prev);

            if (lane != i
                || link[level].prev != prev
                || (prev && ngx_mcp_order_key(order, before)
                            <= ngx_mcp_order_key(order, s)))
            {
                return "a list is out of order";
            }

            prev = i;
            lane = link[level].next;
        }

        if (lane || tasks != expected) {
            return "a list is incomplete";
        }
    }

    return NULL;
}


static const char *
ngx_mcp_check_tool_locked(ngx_mcp_table_t *t, uint32_t n,
    ngx_mcp_tally_t *tally)
{
    uint32_t         i, running;
    ngx_uint_t       p;
    const char      *err;
    ngx_mcp_slot_t  *s;
    ngx_mcp_name_t  *tool;

    tool = ngx_mcp_name(t, n);

    for (p = 0; p < NGX_MCP_PRIORITIES; p++) {
        err = ngx_mcp_check_queue_locked(t, &tool->u.queue[p], n, p, tally);
        if (err) {
            return err;
        }
    }

    running = 0;

    if (tool->stat) {
        tally->tools[tool->stat].tool = n;
    }

    for (i = t->sh->held.head; i; i = s->queue_next) {
        s = ngx_mcp_slot(t, i);
        running += (s->tool == n
                    && ngx_mcp_task_runs(&s->body.task));
    }

    return (running == tool->running)
           ? NULL : "wrong number of a tool's running calls";
}


/* the names and gauges of the tools' entries */

static const char *
ngx_mcp_check_stats_locked(ngx_mcp_table_t *t, ngx_mcp_tally_t *tally)
{
    uint32_t              i;
    ngx_str_t             name;
    ngx_mcp_tool_stat_t  *stat;

    for (i = 0; i < t->sh->tool_stats; i++) {
        stat = &t->tool_stats[i];
        name.data = stat->name;
        name.len = stat->len;

        if (stat->tool != tally->tools[i].tool
            || (stat->tool
                && !ngx_mcp_name_is_locked(t, stat->tool, &name)))
        {
            return "a statistics entry belongs to another tool";
        }

        if (stat->running != tally->tools[i].running
            || ngx_memcmp(stat->states, tally->tools[i].states,
                          sizeof(stat->states)) != 0)
        {
            return "wrong number of a tool's tasks";
        }
    }

    return NULL;
}


/* the queue of a tool and a priority; tool 0: that of background calls */

static const char *
ngx_mcp_check_queue_locked(ngx_mcp_table_t *t, ngx_mcp_queue_t *q,
    uint32_t tool, ngx_uint_t priority, ngx_mcp_tally_t *tally)
{
    uint32_t          i, prev;
    ngx_mcp_slot_t   *s;
    ngx_mcp_task_t   *task;

    prev = 0;

    for (i = q->head; i; i = s->queue_next) {
        s = ngx_mcp_slot(t, i);
        task = &s->body.task;

        if (!s->queued
            || (task->policy.route != 0) != (tool == 0)
            || (tool && (s->tool != tool || task->policy.priority != priority))
            || s->queue_prev != prev
            || tally->queued == 0
            || (prev && ngx_mcp_slot(t, prev)->body.queue_seq
                        >= s->body.queue_seq))
        {
            return "a queue has a foreign task or is out of order";
        }

        tally->queued--;
        tally->holding += (tool == 0);
        prev = i;
    }

    return (q->tail == prev) ? NULL : "a queue has the wrong tail";
}


static const char *
ngx_mcp_check_wheel_locked(ngx_mcp_table_t *t, ngx_mcp_tally_t *tally)
{
    uint32_t          i, prev;
    uint64_t          deadline, bit;
    ngx_uint_t        bucket, level;
    ngx_mcp_slot_t   *s;
    ngx_mcp_wheel_t  *wheel;

    wheel = &t->sh->wheel;

    for (bucket = 0;
         bucket < NGX_MCP_WHEEL_LEVELS
                  * NGX_MCP_WHEEL_SLOTS;
         bucket++)
    {
        prev = 0;

        for (i = wheel->head[bucket]; i; i = s->wheel_next) {
            s = ngx_mcp_slot(t, i);

            if (s->bucket != bucket + 1 || s->wheel_prev != prev
                || s->body.task.state == NGX_MCP_FREE
                || tally->timed-- == 0)
            {
                return "the wheel has a foreign task or a loop";
            }

            /* a higher level than necessary is valid, a lower one is not */

            deadline = ngx_mcp_task_deadline(&s->body.task);
            level = bucket / NGX_MCP_WHEEL_SLOTS;

            if (level < ngx_mcp_wheel_bucket(wheel->base, deadline)
                        / NGX_MCP_WHEEL_SLOTS)
            {
                return "a task would be swept before its deadline";
            }

            prev = i;
        }

        bit = wheel->map[bucket / NGX_MCP_WHEEL_SLOTS]
              >> (bucket % NGX_MCP_WHEEL_SLOTS) & 1;

        if (bit != (wheel->head[bucket] != 0)) {
            return "the wheel's map does not match its buckets";
        }
    }

    if (tally->timed != 0) {
        return "a task with a deadline is not in its bucket";
    }

    return NULL;
}


static const char *
ngx_mcp_check_free_locked(ngx_mcp_table_t *t, ngx_mcp_tally_t *tally)
{
    uint32_t           n, free;
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    for (free = 0, n = sh->slot.free; n; free++) {
        if (n >= sh->slot.fresh || free >= sh->slot.fresh
            || ngx_mcp_slot(t, n)->body.task.state
               != NGX_MCP_FREE)
        {
            return "a task is on the free list";
        }

        n = ngx_mcp_slot(t, n)->hash_next;
    }

    if (sh->slot.used != tally->tasks + tally->removed
        || sh->slot.used + free + 1 != sh->slot.fresh)
    {
        return "wrong number of used or free slots";
    }

    for (free = 0, n = sh->block.free; n; free++) {
        if (n >= sh->block.fresh || ngx_mcp_map_mark(t, n)) {
            return "a block in use is on the free list";
        }

        n = ngx_mcp_block(t, n)->next;
    }

    if (sh->block.used != tally->blocks
        || sh->block.used + free + 1 != sh->block.fresh)
    {
        return "wrong number of used or free blocks";
    }

    return NULL;
}
