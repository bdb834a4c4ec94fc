
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The operations of waiting requests, in shared memory. */


#include "ngx_mcp_shm.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_signal.h"


/* tasks of a session examined for questions, the last changed first */
#define NGX_MCP_SESSION_ASKING  1024


static void ngx_mcp_count_wait_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_op_wait_t *op);
static void ngx_mcp_leave_session_locked(ngx_mcp_table_t *t,
    ngx_mcp_op_wait_t *op);
static void ngx_mcp_end_session_locked(ngx_mcp_table_t *t, uint64_t seal);
static void ngx_mcp_ask_again_locked(ngx_mcp_table_t *t,
    ngx_mcp_delivery_t *delivery, uint64_t before);
static void ngx_mcp_changes_find_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found);
static void ngx_mcp_session_find_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found);


/* NGX_MCP_LIMIT_WAITERS: too many requests wait already */

ngx_int_t
ngx_mcp_shm_wait(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_wait_t *op = (ngx_mcp_op_wait_t *) o;

    ngx_mcp_slot_t    *s;
    ngx_mcp_table_t   *t;
    ngx_mcp_header_t  *sh;

    t = zone->table;
    sh = t->sh;
    s = NULL;

    ngx_mcp_lock_read(t);

    if (op->id) {
        s = ngx_mcp_find_locked(t, op->id, op->owner, ngx_current_msec);
        if (s == NULL) {
            op->op.reason = NGX_MCP_NOT_FOUND;
        }
    }

    /* a request for a task that has ended does not wait */

    if (op->op.reason == NGX_MCP_OK
        && !(s && ngx_mcp_terminal(s->body.task.state))
        && ((op->max_zone && sh->waiting >= op->max_zone)
            || (s && op->max_task && s->epoch == sh->epoch
                && s->waiting >= op->max_task)))
    {
        op->op.reason = NGX_MCP_LIMIT_WAITERS;
        sh->count.refused[NGX_MCP_LIMIT_WAITERS]++;
    }

    if (op->op.reason == NGX_MCP_OK) {
        ngx_mcp_count_wait_locked(t, s, op);
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}


/*
 * Counts are valid for one epoch: when a process dies, a new epoch begins, and
 * each process counts its requests again.
 */

static void
ngx_mcp_count_wait_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_op_wait_t *op)
{
    op->epoch = t->sh->epoch;
    t->sh->waiting++;

    if (s == NULL) {
        return;
    }

    if (s->epoch != op->epoch) {
        s->epoch = op->epoch;
        s->waiting = 0;
        s->results = 0;
    }

    s->waiting = (uint16_t) ngx_min(s->waiting + 1, 0xffff);

    if (op->result) {
        s->results = (uint16_t) ngx_min(s->results + 1, 0xffff);
    }
}


/*
 * Questions that the leaving stream has asked, and that are not answered, have
 * to be asked by another stream.  So have those that the stream of the session
 * left to a tasks/result request that leaves now.  Touching the task makes it
 * a change for the stream of the session.
 */

ngx_int_t
ngx_mcp_shm_leave(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_wait_t *op = (ngx_mcp_op_wait_t *) o;

    ngx_uint_t         asked, counted;
    ngx_mcp_slot_t    *s;
    ngx_mcp_table_t   *t;
    ngx_mcp_header_t  *sh;

    t = zone->table;
    sh = t->sh;
    s = NULL;

    ngx_mcp_lock(t);

    counted = (op->counted && op->epoch == sh->epoch);

    if (counted && sh->waiting) {
        sh->waiting--;
    }

    if (op->id) {
        s = ngx_mcp_find_locked(t, op->id, op->owner, ngx_current_msec);
    }

    if (s && counted && s->epoch == sh->epoch) {
        s->waiting -= (s->waiting != 0);
        s->results -= (op->result && s->results);
    }

    asked = (s && op->asker && s->asker == op->asker);

    if (asked) {
        s->asker = 0;
    }

    if (s && (asked || op->result)
        && ngx_mcp_asks_locked(t, s, 0, 0))
    {
        ngx_mcp_touch_locked(t, s);
    }

    if (op->session.len) {
        ngx_mcp_leave_session_locked(t, op);
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}


static void
ngx_mcp_leave_session_locked(ngx_mcp_table_t *t, ngx_mcp_op_wait_t *op)
{
    uint32_t             n, hash;
    ngx_mcp_delivery_t  *delivery;

    if (op->seal) {
        ngx_mcp_end_session_locked(t, op->seal);
    }

    hash = ngx_mcp_name_hash(t, NGX_MCP_SESSION, &op->session);
    n = ngx_mcp_name_find_locked(t, NGX_MCP_SESSION, &op->session, hash);
    delivery = n ? &ngx_mcp_name(t, n)->u.delivery : NULL;

    if (delivery && delivery->stream && delivery->stream == op->asker) {
        ngx_mcp_ask_again_locked(t, delivery, delivery->stream);
        delivery->stream = 0;
        op->ended = 1;
    }

    /* another stream takes its place, or has to end too */

    if (op->ended) {
        ngx_mcp_signal_name_locked(t, hash);
    }
}


/*
 * If the set is full, one of its sessions is replaced, and could be used
 * again.  The words are read without the lock, so they are never moved.
 */

static void
ngx_mcp_end_session_locked(ngx_mcp_table_t *t, uint64_t seal)
{
    ngx_uint_t          i;
    volatile uint64_t  *set;

    set = ngx_mcp_ended(t, seal);

    for (i = 0; i < NGX_MCP_SESSION_SET; i++) {
        if (set[i] == 0 || set[i] == seal) {
            set[i] = seal;
            return;
        }
    }

    set[(seal >> 32) % NGX_MCP_SESSION_SET] = seal;
}


/*
 * Called when another stream takes over the session, or a process has died.
 * Questions asked by the stream before, or by a stream of a dead process, are
 * to be asked again. 0: there is no stream before.
 */

static void
ngx_mcp_ask_again_locked(ngx_mcp_table_t *t, ngx_mcp_delivery_t *delivery,
    uint64_t before)
{
    uint32_t         n, next;
    ngx_uint_t       i;
    ngx_mcp_slot_t  *s;

    n = delivery->changes;

    for (i = 0; n && i < NGX_MCP_SESSION_ASKING; i++) {
        s = ngx_mcp_slot(t, n);
        next = s->changes.next;

        if (s->body.task.state == NGX_MCP_INPUT_REQUIRED
            && (s->asker == before || !ngx_mcp_stream_alive(t, s->asker)))
        {
            s->asker = 0;

            if (s->body.changed <= delivery->delivered) {
                ngx_mcp_touch_locked(t, s);
            }
        }

        n = next;
    }

    delivery->epoch = t->sh->epoch;
}


/*
 * Whether the stream has to ask the questions of this task; it is then stored
 * as the asker.  Stream 0: whether any stream could ask.  The stream of a
 * session yields to tasks/result requests.
 */

ngx_uint_t
ngx_mcp_asks_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s, uint64_t stream,
    ngx_uint_t yields)
{
    if (s->body.task.state != NGX_MCP_INPUT_REQUIRED
        || ngx_mcp_stream_alive(t, s->asker)
        || (yields && s->epoch == t->sh->epoch && s->results))
    {
        return 0;
    }

    if (stream) {
        s->asker = stream;
    }

    return 1;
}


ngx_int_t
ngx_mcp_shm_changes(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_changes_t *op = (ngx_mcp_op_changes_t *) o;

    u_char           *p;
    ngx_uint_t        i;
    ngx_mcp_found_t   found;
    ngx_mcp_table_t  *t;

    t = zone->table;
    found.hash = ngx_mcp_name_hash(t, NGX_MCP_OWNER, &op->owner);

    op->views = ngx_mcp_find_lock(t, o, &op->limit, &found,
                                  ngx_mcp_changes_find_locked,
                                  ngx_mcp_lock_read);
    if (op->views == NULL) {
        return NGX_ERROR;
    }

    for (p = found.buf.data, i = 0; i < found.n; i++) {
        p = ngx_mcp_view_locked(t, ngx_mcp_slot(t, found.slots[i]), op->want,
                                &op->views[i], p);
        op->after = op->views[i].changed;
        op->hint = found.slots[i];
    }

    ngx_mcp_unlock(t);

    op->n = found.n;

    return NGX_OK;
}


static void
ngx_mcp_changes_find_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found)
{
    ngx_mcp_op_changes_t *op = (ngx_mcp_op_changes_t *) o;

    uint32_t         n, last, owner;
    ngx_uint_t       scanned;
    ngx_mcp_slot_t  *s;

    op->more = 0;

    if (op->watch) {
        ngx_mcp_await_name_locked(t, found->hash);
    }

    owner = ngx_mcp_name_find_locked(t, NGX_MCP_OWNER, &op->owner,
                                     found->hash);
    if (owner == 0) {
        return;
    }

    n = ngx_mcp_order_since_locked(t, owner, op->after, op->hint);
    last = 0;

    for (scanned = 0;
         n && found->n < op->limit && scanned < NGX_MCP_LIST_SCAN;
         scanned++)
    {
        s = ngx_mcp_slot(t, n);

        if (ngx_current_msec < s->body.task.expires) {
            found->slots[found->n++] = n;
            found->size += ngx_mcp_view_size_locked(t, s, op->want);
        }

        last = n;
        n = s->by_change[0].prev;
    }

    op->more = (n != 0);

    if (last && found->n == 0) {

        /* all of them have expired: continue after them */

        op->after = ngx_mcp_slot(t, last)->body.changed;
        op->hint = last;
    }
}


ngx_int_t
ngx_mcp_shm_session(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_session_t *op = (ngx_mcp_op_session_t *) o;

    u_char           *p;
    ngx_uint_t        i;
    ngx_mcp_slot_t   *s;
    ngx_mcp_view_t   *view;
    ngx_mcp_found_t   found;
    ngx_mcp_table_t  *t;

    t = zone->table;
    found.hash = ngx_mcp_name_hash(t, NGX_MCP_SESSION, &op->session);

    op->views = ngx_mcp_find_lock(t, o, &op->limit, &found,
                                  ngx_mcp_session_find_locked, ngx_mcp_lock);
    if (op->views == NULL) {
        return NGX_ERROR;
    }

    op->n = 0;

    for (p = found.buf.data, i = 0; i < found.n; i++) {
        s = ngx_mcp_slot(t, found.slots[i]);
        ngx_mcp_changes_delivered_locked(t, s);

        if (ngx_current_msec >= s->body.task.expires) {
            continue;
        }

        view = &op->views[op->n++];
        p = ngx_mcp_view_locked(t, s, op->want, view, p);
        view->asks = !op->mute && ngx_mcp_asks_locked(t, s, op->stream, 1);
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}


/*
 * The stream that was opened last delivers for the session: the client may
 * know long before nginx that an earlier one is broken.
 */

static void
ngx_mcp_session_find_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found)
{
    ngx_mcp_op_session_t *op = (ngx_mcp_op_session_t *) o;

    uint32_t             n, session;
    ngx_mcp_slot_t      *s;
    ngx_mcp_delivery_t  *delivery;

    op->silent = 0;
    op->delivered = 0;

    session = ngx_mcp_name_find_locked(t, NGX_MCP_SESSION, &op->session,
                                       found->hash);

    if (op->opened == 0) {
        t->sh->opened += 1 + (t->sh->opened == (uint32_t) -1);
        op->opened = t->sh->opened;
    }

    if (session) {
        delivery = &ngx_mcp_name(t, session)->u.delivery;

        if (delivery->stream != op->stream
            && ngx_mcp_stream_alive(t, delivery->stream)
            && (int32_t) (op->opened - delivery->opened) < 0)
        {
            op->silent = 1;

        } else if (delivery->stream != op->stream) {
            ngx_mcp_ask_again_locked(t, delivery, delivery->stream);

            /* the stream before has to learn that it is silent now */

            ngx_mcp_signal_name_locked(t, found->hash);
            delivery->stream = op->stream;
            delivery->opened = op->opened;

            if (op->after) {
                ngx_mcp_changes_rewind_locked(t, session, op->after);
            }

        } else if (delivery->epoch != t->sh->epoch) {
            /* its own questions are not asked again */
            ngx_mcp_ask_again_locked(t, delivery, 0);
        }

        op->after = 0;
        op->delivered = delivery->delivered;
    }

    if (op->watch) {
        ngx_mcp_await_name_locked(t, found->hash);
    }

    if (session == 0 || op->silent) {
        return;
    }

    n = ngx_mcp_changes_first_locked(t, session);

    while (n && found->n < op->limit) {
        s = ngx_mcp_slot(t, n);

        found->slots[found->n++] = n;
        found->size += ngx_mcp_view_size_locked(t, s, op->want);

        n = s->changes.prev;
    }
}
