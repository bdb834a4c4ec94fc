
#include "ngx_http_mcp_tasks_recover.h"
#include "ngx_http_mcp_tasks_arena.h"
#include "ngx_http_mcp_tasks_names.h"
#include "ngx_http_mcp_tasks_order.h"
#include "ngx_http_mcp_tasks_wheel.h"


/*
 * Every statement that ngx_http_mcp_tasks_table.h makes about the table, held
 * against the table.  Slow on purpose: for tests and for the operator's
 * doubts, not for a request.
 */

typedef struct {
    uint32_t    tasks;
    uint32_t    states[NGX_HTTP_MCP_TASKS_STATES];
    uint32_t    queued;
    uint32_t    timed;
    uint32_t    blocks;
    uint32_t    tokens;
    uint32_t    names[NGX_HTTP_MCP_TASKS_NAMES];
    uint64_t    bytes;
} ngx_http_mcp_tasks_tally_t;


static const char *ngx_http_mcp_tasks_check_slot_locked(
    ngx_http_mcp_tasks_table_t *t, ngx_http_mcp_tasks_slot_t *s,
    ngx_http_mcp_tasks_tally_t *tally);
static const char *ngx_http_mcp_tasks_check_chain_locked(
    ngx_http_mcp_tasks_table_t *t, ngx_http_mcp_tasks_chain_t *chain,
    ngx_http_mcp_tasks_tally_t *tally);
static const char *ngx_http_mcp_tasks_check_names_locked(
    ngx_http_mcp_tasks_table_t *t, ngx_http_mcp_tasks_tally_t *tally);
static const char *ngx_http_mcp_tasks_check_owner_locked(
    ngx_http_mcp_tasks_table_t *t, uint32_t n);
static const char *ngx_http_mcp_tasks_check_tool_locked(
    ngx_http_mcp_tasks_table_t *t, uint32_t n,
    ngx_http_mcp_tasks_tally_t *tally);
static const char *ngx_http_mcp_tasks_check_wheel_locked(
    ngx_http_mcp_tasks_table_t *t, ngx_http_mcp_tasks_tally_t *tally);
static const char *ngx_http_mcp_tasks_check_free_locked(
    ngx_http_mcp_tasks_table_t *t, ngx_http_mcp_tasks_tally_t *tally);


/* NULL, or what is wrong */

const char *
ngx_http_mcp_tasks_check_locked(ngx_http_mcp_tasks_table_t *t)
{
    uint32_t                      n;
    ngx_uint_t                    i;
    const char                   *err;
    ngx_http_mcp_tasks_slot_t    *s;
    ngx_http_mcp_tasks_tally_t    tally;
    ngx_http_mcp_tasks_header_t  *sh;

    sh = t->sh;

    ngx_memzero(&tally, sizeof(ngx_http_mcp_tasks_tally_t));
    ngx_memzero(t->map, ngx_http_mcp_tasks_map_size((size_t) sh->block.end));

    if (sh->magic != NGX_HTTP_MCP_TASKS_MAGIC) {
        return "wrong magic";
    }

    if (sh->journal) {
        return "a change is left in the journal";
    }

    for (n = 1; n < sh->slot.fresh; n++) {
        s = ngx_http_mcp_tasks_slot(t, n);

        if (s->body.task.state == NGX_HTTP_MCP_TASKS_FREE) {
            continue;
        }

        err = ngx_http_mcp_tasks_check_slot_locked(t, s, &tally);
        if (err) {
            return err;
        }
    }

    err = ngx_http_mcp_tasks_check_names_locked(t, &tally);
    if (err) {
        return err;
    }

    err = ngx_http_mcp_tasks_check_wheel_locked(t, &tally);
    if (err) {
        return err;
    }

    err = ngx_http_mcp_tasks_check_free_locked(t, &tally);
    if (err) {
        return err;
    }

    for (i = 0; i < NGX_HTTP_MCP_TASKS_STATES; i++) {
        if (tally.states[i] != sh->states[i]) {
            return "tasks by state are miscounted";
        }
    }

    if (tally.bytes != sh->bytes) {
        return "payload bytes are miscounted";
    }

    return NULL;
}


static const char *
ngx_http_mcp_tasks_check_slot_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s, ngx_http_mcp_tasks_tally_t *tally)
{
    ngx_uint_t                  i;
    const char                 *err;
    ngx_http_mcp_tasks_task_t  *task;

    task = &s->body.task;

    if (task->state >= NGX_HTTP_MCP_TASKS_STATES) {
        return "a task has an unknown state";
    }

    /* asked as of the beginning of time, so that none has expired */

    if (ngx_http_mcp_tasks_find_locked(t, &s->id, NULL, 0) != s) {
        return "a task is not found by its id";
    }

    if (s->seq > t->sh->seq || s->body.queue_seq > t->sh->seq) {
        return "a task is from the future";
    }

    for (i = 0; i < NGX_HTTP_MCP_TASKS_PAYLOADS; i++) {
        err = ngx_http_mcp_tasks_check_chain_locked(t, &s->body.payload[i],
                                                    tally);
        if (err) {
            return err;
        }

        tally->bytes += s->body.payload[i].len;
    }

    if (s->body.payload[NGX_HTTP_MCP_TASKS_PARAMS].len < s->method_len) {
        return "a task's method is longer than what holds it";
    }

    if (ngx_http_mcp_tasks_task_claimable(task) != s->queued) {
        return "a task is in a queue and not claimable, or the reverse";
    }

    if ((ngx_http_mcp_tasks_task_deadline(task) != NGX_HTTP_MCP_TASKS_NEVER)
        != (s->bucket != 0))
    {
        return "a task with a deadline is not in the wheel, or the reverse";
    }

    tally->tasks++;
    tally->tokens += (s->token != 0);
    tally->states[task->state]++;
    tally->queued += s->queued;
    tally->timed += (s->bucket != 0);

    return NULL;
}


static const char *
ngx_http_mcp_tasks_check_chain_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_chain_t *chain, ngx_http_mcp_tasks_tally_t *tally)
{
    uint32_t  n, left;

    n = chain->last;

    for (left = ngx_http_mcp_tasks_blocks_for(chain->len); left; left--) {

        if (n == 0 || n >= t->sh->block.fresh) {
            return "a chain leads out of the blocks";
        }

        if (ngx_http_mcp_tasks_map_mark(t, n)) {
            return "a block is used twice";
        }

        tally->blocks++;
        n = ngx_http_mcp_tasks_block(t, n)->next;
    }

    if (n != chain->last) {
        return "a chain is longer or shorter than its bytes";
    }

    return NULL;
}


static const char *
ngx_http_mcp_tasks_check_names_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_tally_t *tally)
{
    uint32_t                     i, n;
    uint64_t                     tasks[NGX_HTTP_MCP_TASKS_NAMES];
    uint64_t                     bytes[NGX_HTTP_MCP_TASKS_NAMES];
    const char                  *err;
    ngx_http_mcp_tasks_name_t   *name;
    ngx_http_mcp_tasks_chain_t   chain;

    ngx_memzero(tasks, sizeof(tasks));
    ngx_memzero(bytes, sizeof(bytes));

    for (i = 0; i <= t->sh->name_mask; i++) {

        for (n = t->names[i]; n; n = name->next) {

            if (n >= t->sh->block.fresh || ngx_http_mcp_tasks_map_mark(t, n)) {
                return "a name's block is used twice";
            }

            tally->blocks++;
            name = ngx_http_mcp_tasks_name(t, n);

            if ((name->hash & t->sh->name_mask) != i || name->tasks == 0) {
                return "a name is in the wrong bucket or has no task";
            }

            ngx_http_mcp_tasks_name_rest(name, &chain);

            err = ngx_http_mcp_tasks_check_chain_locked(t, &chain, tally);
            if (err) {
                return err;
            }

            tasks[name->kind] += name->tasks;
            bytes[name->kind] += name->bytes;

            tally->names[name->kind]++;

            if (name->kind == NGX_HTTP_MCP_TASKS_OWNER) {
                err = ngx_http_mcp_tasks_check_owner_locked(t, n);

            } else if (name->kind == NGX_HTTP_MCP_TASKS_TOOL) {
                err = ngx_http_mcp_tasks_check_tool_locked(t, n, tally);

            } else if (name->u.task
                       && ngx_http_mcp_tasks_slot(t, name->u.task)->token != n)
            {
                return "a token leads to another task";
            }

            if (err) {
                return err;
            }
        }
    }

    if (tasks[0] != tally->tasks || tasks[1] != tally->tasks
        || tasks[2] != tally->tokens
        || bytes[0] != tally->bytes || bytes[1] != tally->bytes
        || ngx_memcmp(tally->names, t->sh->names, sizeof(tally->names)) != 0)
    {
        return "names miscount their tasks";
    }

    if (tally->queued != 0) {
        return "a claimable task is not in its queue";
    }

    return NULL;
}


static const char *
ngx_http_mcp_tasks_check_owner_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t n)
{
    uint32_t                    i, prev, tasks, lane;
    uint64_t                    bytes;
    ngx_uint_t                  level, p;
    ngx_http_mcp_tasks_slot_t  *s;
    ngx_http_mcp_tasks_name_t  *name;

    name = ngx_http_mcp_tasks_name(t, n);

    for (level = 0; level < NGX_HTTP_MCP_TASKS_ORDER_LEVELS; level++) {

        prev = 0;
        tasks = 0;
        bytes = 0;
        lane = name->u.newest[level];

        /* each lane is the part of the list below that belongs on it */

        for (i = name->u.newest[0]; i; i = s->order_next[0]) {
            s = ngx_http_mcp_tasks_slot(t, i);

            if (s->owner != n || s->body.task.state == NGX_HTTP_MCP_TASKS_FREE
                || tasks++ >= name->tasks)
            {
                return "an owner's list has a stranger or a loop";
            }

            for (p = 0; p < NGX_HTTP_MCP_TASKS_PAYLOADS; p++) {
                bytes += s->body.payload[p].len;
            }

            if (ngx_http_mcp_tasks_order_level(t, s->seq) < level) {
                continue;
            }

            if (lane != i
                || s->order_prev[level] != prev
                || (prev && ngx_http_mcp_tasks_slot(t, prev)->seq <= s->seq))
            {
                return "an owner's list is out of order";
            }

            prev = i;
            lane = s->order_next[level];
        }

        if (lane || tasks != name->tasks || bytes != name->bytes) {
            return "an owner's list is not complete";
        }
    }

    return NULL;
}


static const char *
ngx_http_mcp_tasks_check_tool_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t n, ngx_http_mcp_tasks_tally_t *tally)
{
    uint32_t                     i, prev;
    ngx_uint_t                   p;
    ngx_http_mcp_tasks_slot_t   *s;
    ngx_http_mcp_tasks_queue_t  *q;

    for (p = 0; p < NGX_HTTP_MCP_TASKS_PRIORITIES; p++) {
        q = &ngx_http_mcp_tasks_name(t, n)->u.queue[p];
        prev = 0;

        for (i = q->head; i; i = s->queue_next) {
            s = ngx_http_mcp_tasks_slot(t, i);

            if (s->tool != n || !s->queued
                || s->body.task.policy.priority != p
                || s->queue_prev != prev
                || tally->queued == 0
                || (prev && ngx_http_mcp_tasks_slot(t, prev)->body.queue_seq
                            >= s->body.queue_seq))
            {
                return "a queue has a stranger or is out of order";
            }

            tally->queued--;
            prev = i;
        }

        if (q->tail != prev) {
            return "a queue has the wrong end";
        }
    }

    return NULL;
}


static const char *
ngx_http_mcp_tasks_check_wheel_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_tally_t *tally)
{
    uint32_t                     i, prev;
    uint64_t                     deadline, bit;
    ngx_uint_t                   bucket, level;
    ngx_http_mcp_tasks_slot_t   *s;
    ngx_http_mcp_tasks_wheel_t  *wheel;

    wheel = &t->sh->wheel;

    for (bucket = 0;
         bucket < NGX_HTTP_MCP_TASKS_WHEEL_LEVELS
                  * NGX_HTTP_MCP_TASKS_WHEEL_SLOTS;
         bucket++)
    {
        prev = 0;

        for (i = wheel->head[bucket]; i; i = s->wheel_next) {
            s = ngx_http_mcp_tasks_slot(t, i);

            if (s->bucket != bucket + 1 || s->wheel_prev != prev
                || s->body.task.state == NGX_HTTP_MCP_TASKS_FREE
                || tally->timed-- == 0)
            {
                return "the wheel has a stranger or a loop";
            }

            /* a task may wait higher up than it must, never lower */

            deadline = ngx_http_mcp_tasks_task_deadline(&s->body.task);
            level = bucket / NGX_HTTP_MCP_TASKS_WHEEL_SLOTS;

            if (level < ngx_http_mcp_tasks_wheel_bucket(wheel->base, deadline)
                        / NGX_HTTP_MCP_TASKS_WHEEL_SLOTS)
            {
                return "a task would be swept before its time";
            }

            prev = i;
        }

        bit = wheel->map[bucket / NGX_HTTP_MCP_TASKS_WHEEL_SLOTS]
              >> (bucket % NGX_HTTP_MCP_TASKS_WHEEL_SLOTS) & 1;

        if (bit != (wheel->head[bucket] != 0)) {
            return "the wheel's map does not fit its buckets";
        }
    }

    if (tally->timed != 0) {
        return "a task with a deadline is not in its bucket";
    }

    return NULL;
}


static const char *
ngx_http_mcp_tasks_check_free_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_tally_t *tally)
{
    uint32_t                      n, free;
    ngx_http_mcp_tasks_header_t  *sh;

    sh = t->sh;

    for (free = 0, n = sh->slot.free; n; free++) {
        if (n >= sh->slot.fresh || free >= sh->slot.fresh
            || ngx_http_mcp_tasks_slot(t, n)->body.task.state
               != NGX_HTTP_MCP_TASKS_FREE)
        {
            return "a task is on the free list";
        }

        n = ngx_http_mcp_tasks_slot(t, n)->hash_next;
    }

    if (sh->slot.used != tally->tasks
        || sh->slot.used + free + 1 != sh->slot.fresh)
    {
        return "slots are lost or miscounted";
    }

    for (free = 0, n = sh->block.free; n; free++) {
        if (n >= sh->block.fresh || ngx_http_mcp_tasks_map_mark(t, n)) {
            return "a block in use is on the free list";
        }

        n = ngx_http_mcp_tasks_block(t, n)->next;
    }

    if (sh->block.used != tally->blocks
        || sh->block.used + free + 1 != sh->block.fresh)
    {
        return "blocks are lost or miscounted";
    }

    return NULL;
}
