
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Background calls: starting one, and taking over the calls of processes that
 * died.
 */


#include "ngx_mcp_shm.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"


/* calls examined to find one that has precedence */
#define NGX_MCP_ATTEMPT_LOOK  1024


static ngx_uint_t ngx_mcp_attempt_check_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_op_attempt_t *op, uint64_t now);
static ngx_uint_t ngx_mcp_tool_full_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_op_attempt_t *op);
static ngx_uint_t ngx_mcp_attempt_before_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_op_attempt_t *op);
static void ngx_mcp_orphans_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found);
static ngx_uint_t ngx_mcp_announce_locked(ngx_mcp_table_t *t,
    ngx_uint_t limit);


/*
 * NGX_MCP_LIMIT_RUNNING: the call has to wait, and this process is woken when
 * there may be capacity.
 */

ngx_int_t
ngx_mcp_shm_attempt(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_attempt_t *op = (ngx_mcp_op_attempt_t *) o;

    ngx_mcp_slot_t   *s;
    ngx_mcp_event_t   ev;
    ngx_mcp_table_t  *t;

    t = zone->table;

    ngx_memzero(&ev, sizeof(ngx_mcp_event_t));
    ev.type = NGX_MCP_EV_CLAIM;
    ngx_mcp_event_time(&ev);

    if (ngx_mcp_random_token(&ev.lease_token) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_mcp_lock(t);

    s = ngx_mcp_find_locked(t, &op->id, NULL, ev.now);

    if (s == NULL) {
        o->reason = NGX_MCP_NOT_FOUND;
        ngx_mcp_unlock(t);
        return NGX_OK;
    }

    o->reason = ngx_mcp_attempt_check_locked(t, s, op, ev.now);

    if (o->reason == NGX_MCP_OK) {
        o->reason = ngx_mcp_change_locked(t, s, &ev, NULL);
    }

    if (o->reason == NGX_MCP_LIMIT_RUNNING) {
        ngx_mcp_await_name_locked(t, NGX_MCP_CAPACITY);

    } else if (o->reason == NGX_MCP_OK
               && t->sh->holding > t->sh->running)
    {
        /* calls that waited for this one to start have their turn */
        ngx_mcp_signal_name_locked(t, NGX_MCP_CAPACITY);
    }

    (void) ngx_mcp_view_locked(t, s, 0, &op->view, NULL);
    ngx_mcp_await_task_locked(t, s);

    ngx_mcp_shm_unlock(zone);

    return NGX_OK;
}


/*
 * Only whether the limits of this machine allow the call to start, for a store
 * that starts it itself.  This process is woken if they may do so later.
 */

ngx_int_t
ngx_mcp_shm_attempt_check(ngx_mcp_zone_t *zone, ngx_mcp_op_attempt_t *op)
{
    uint64_t          now;
    ngx_mcp_slot_t   *s;
    ngx_mcp_table_t  *t;

    t = zone->table;
    now = ngx_current_msec;

    ngx_mcp_lock_read(t);

    s = ngx_mcp_find_locked(t, &op->id, NULL, now);

    if (s == NULL) {
        op->op.reason = NGX_MCP_NOT_FOUND;

    } else if (ngx_mcp_task_due(&s->body.task, now) != NGX_MCP_EVENTS) {
        /* the sweeper ends it */
        op->op.reason = NGX_MCP_STATE_INVALID;

    } else {
        op->op.reason = ngx_mcp_attempt_check_locked(t, s, op, now);
    }

    if (s) {
        (void) ngx_mcp_view_locked(t, s, 0, &op->view, NULL);
        ngx_mcp_await_task_locked(t, s);
    }

    if (op->op.reason == NGX_MCP_LIMIT_RUNNING) {
        ngx_mcp_await_name_locked(t, NGX_MCP_CAPACITY);
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}


/* NGX_MCP_OK: the call may start now */

static ngx_uint_t
ngx_mcp_attempt_check_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_op_attempt_t *op, uint64_t now)
{
    ngx_uint_t       due;
    ngx_mcp_event_t  ev;

    if (s->body.task.holder != op->holder) {
        return NGX_MCP_LEASE_LOST;
    }

    /* its time may be over, though it is not swept yet */

    due = ngx_mcp_task_due(&s->body.task, now);

    if (due != NGX_MCP_EVENTS) {
        ngx_memzero(&ev, sizeof(ngx_mcp_event_t));
        ev.type = due;
        ngx_mcp_event_time(&ev);
        (void) ngx_mcp_change_locked(t, s, &ev, NULL);
    }

    if (ngx_mcp_terminal(s->body.task.state)) {
        return NGX_MCP_TERMINAL;
    }

    if (!ngx_mcp_task_claimable(&s->body.task)) {
        return NGX_MCP_STATE_INVALID;
    }

    if (ngx_mcp_tool_stat(t, s)->paused
        || (op->max_zone && t->sh->running >= op->max_zone)
        || ngx_mcp_tool_full_locked(t, s, op)
        || ngx_mcp_attempt_before_locked(t, s, op))
    {
        return NGX_MCP_LIMIT_RUNNING;
    }

    return NGX_MCP_OK;
}


static ngx_uint_t
ngx_mcp_tool_full_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_op_attempt_t *op)
{
    return op->max_tool
           && ngx_mcp_name(t, s->tool)->running >= op->max_tool;
}


/*
 * Whether calls that wait longer, in any process, need all of the remaining
 * capacity.  The calls examined are running ones, whose number is limited, and
 * waiting ones whose tool is paused or at its limit.  If there are too many of
 * them, the call may start.
 */

static ngx_uint_t
ngx_mcp_attempt_before_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_op_attempt_t *op)
{
    uint32_t         n, zone, tool;
    ngx_uint_t       i;
    ngx_mcp_slot_t  *b;

    if (t->sh->holding - t->sh->running == 1) {
        /* this is the only waiting call */
        return 0;
    }

    zone = t->sh->running;
    tool = ngx_mcp_name(t, s->tool)->running;
    n = t->sh->held.head;

    for (i = 0; n && i < NGX_MCP_ATTEMPT_LOOK; i++) {
        b = ngx_mcp_slot(t, n);
        n = b->queue_next;

        if (b == s) {
            return 0;
        }

        if (!ngx_mcp_task_claimable(&b->body.task)
            || !ngx_mcp_stream_alive(t, b->body.task.holder)
            || ngx_mcp_tool_stat(t, b)->paused
            || ngx_mcp_tool_full_locked(t, b, op))
        {
            continue;
        }

        zone++;
        tool += (b->tool == s->tool);

        if ((op->max_zone && zone >= op->max_zone)
            || (op->max_tool && tool >= op->max_tool))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * A call of a dead process is passed to op->holder if it may be run again, or
 * else fails.
 */

ngx_int_t
ngx_mcp_shm_orphans(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_orphans_t *op = (ngx_mcp_op_orphans_t *) o;

    u_char           *p;
    ngx_uint_t        i;
    ngx_mcp_slot_t   *s;
    ngx_mcp_event_t   ev;
    ngx_mcp_found_t   found;
    ngx_mcp_table_t  *t;
    ngx_mcp_change_t  change;

    t = zone->table;

    ngx_memzero(&ev, sizeof(ngx_mcp_event_t));
    ev.type = NGX_MCP_EV_ORPHANED;
    ev.holder = op->holder;
    ngx_mcp_event_time(&ev);

    /* the questions of the lost attempt are removed */

    ngx_memzero(&change, sizeof(ngx_mcp_change_t));
    ngx_str_set(&change.payload[NGX_MCP_REQUESTS], "");

    op->n = 0;
    op->views = ngx_mcp_find_lock(t, o, &op->limit, &found,
                                  ngx_mcp_orphans_locked, ngx_mcp_lock);
    if (op->views == NULL) {
        return NGX_ERROR;
    }

    for (p = found.buf.data, i = 0; i < found.n; i++) {
        s = ngx_mcp_slot(t, found.slots[i]);

        if (ngx_mcp_change_locked(t, s, &ev, &change)
            == NGX_MCP_OK
            && !ngx_mcp_terminal(s->body.task.state))
        {
            p = ngx_mcp_view_locked(t, s, op->want, &op->views[op->n++], p);
        }
    }

    op->more = (ngx_mcp_announce_locked(t, op->limit) == op->limit
                || found.n == op->limit);

    if (!op->more) {
        /* no process has to search again, until another one dies */
        t->sh->orphaned = t->sh->epoch;
    }

    ngx_mcp_shm_unlock(zone);

    return NGX_OK;
}


/* finds the calls of dead processes */

static void
ngx_mcp_orphans_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found)
{
    ngx_mcp_op_orphans_t *op = (ngx_mcp_op_orphans_t *) o;

    uint32_t         n;
    ngx_mcp_slot_t  *s;

    if (t->sh->orphaned == t->sh->epoch) {
        return;
    }

    for (n = t->sh->held.head; n && found->n < op->limit; n = s->queue_next) {
        s = ngx_mcp_slot(t, n);

        if (!ngx_mcp_stream_alive(t, s->body.task.holder)) {
            found->slots[found->n++] = n;
            found->size += ngx_mcp_view_size_locked(t, s, op->want);
        }
    }
}


/*
 * Announces tasks whose process died after it may have sent the response, and
 * before it announced them.  If the response was lost, the stream of the
 * session reports a task that the client does not know, which is harmless.
 * Returns the number of tasks.
 */

static ngx_uint_t
ngx_mcp_announce_locked(ngx_mcp_table_t *t, ngx_uint_t limit)
{
    uint32_t         n;
    ngx_uint_t       done;
    ngx_mcp_slot_t  *s;
    ngx_mcp_event_t  ev;

    if (t->sh->orphaned == t->sh->epoch) {
        return 0;
    }

    ngx_memzero(&ev, sizeof(ngx_mcp_event_t));
    ev.type = NGX_MCP_EV_ANNOUNCE;
    ngx_mcp_event_time(&ev);

    for (done = 0, n = t->sh->unannounced; n && done < limit; /* void */ ) {
        s = ngx_mcp_slot(t, n);
        n = s->changes.next;

        if (!ngx_mcp_stream_alive(t, s->body.task.holder)) {
            (void) ngx_mcp_change_locked(t, s, &ev, NULL);
            done++;
        }
    }

    return done;
}
