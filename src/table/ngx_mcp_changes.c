
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_changes.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_signal.h"


static void ngx_mcp_unannounced_put_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s);
static void ngx_mcp_unannounced_take_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s);


/*
 * Whether a change is news, and of what kind: the status with its message, or
 * progress.  The message that comes with progress is told with it, if there
 * is a token to do so.
 */

ngx_uint_t
ngx_mcp_changes_made_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_body_t *body)
{
    ngx_uint_t       announced, moved, noted;
    ngx_mcp_body_t  *old;

    old = &s->body;
    announced = ((body->task.flags ^ old->task.flags) & NGX_MCP_ANNOUNCED);

    if (body->task.version == old->task.version && !announced) {
        return 0;
    }

    body->changed = ++t->sh->seq;

    moved = (body->task.progress > body->peak);
    noted = (body->payload[NGX_MCP_MESSAGE].last
             != old->payload[NGX_MCP_MESSAGE].last);

    /*
     * what happened before the client knew the task has been told to nobody;
     * clients do not see whether a task is queued or runs
     */

    if ((announced && body->turned)
        || ngx_mcp_status_name(body->task.state)
           != ngx_mcp_status_name(old->task.state)
        || (noted && !(moved && s->token)))
    {
        body->turned = body->changed;
    }

    if ((announced && body->moved) || moved) {
        body->moved = body->changed;
    }

    body->peak = ngx_max(body->peak, body->task.progress);

    return 1;
}


/* before a change, and at the end */

void
ngx_mcp_changes_take_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_delivery_t  *delivery;

    if (t->persist) {
        t->persist->take(t, s);
    }

    ngx_mcp_order_remove_locked(t, &ngx_mcp_recent, s);
    ngx_mcp_order_remove_locked(t, &ngx_mcp_by_change, s);

    if (ngx_mcp_changes_has(s)) {
        ngx_mcp_order_remove_locked(t, &ngx_mcp_changes, s);

        delivery = &ngx_mcp_name(t, s->session)->u.delivery;

        if (s->body.changed > delivery->delivered) {
            delivery->behind--;
        }

    } else if (s->session) {
        ngx_mcp_unannounced_take_locked(t, s);
    }
}


/* after a change */

void
ngx_mcp_changes_put_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_changes_insert_locked(t, s);

    ngx_mcp_signal_task_locked(t, s);
    ngx_mcp_signal_name_locked(t, NGX_MCP_ANY);
    ngx_mcp_signal_name_locked(t, ngx_mcp_name(t, s->owner)->hash);

    if (ngx_mcp_changes_has(s)) {
        ngx_mcp_signal_name_locked(t, ngx_mcp_name(t, s->session)->hash);
    }
}


void
ngx_mcp_changes_insert_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_delivery_t  *delivery;

    ngx_mcp_order_insert_locked(t, &ngx_mcp_recent, s);

    if (t->persist) {
        t->persist->put(t, s);
    }

    ngx_mcp_order_insert_locked(t, &ngx_mcp_by_change, s);

    if (ngx_mcp_changes_has(s)) {
        ngx_mcp_order_insert_locked(t, &ngx_mcp_changes, s);

        delivery = &ngx_mcp_name(t, s->session)->u.delivery;

        if (s->body.changed > delivery->delivered) {
            delivery->behind++;
        }

    } else if (s->session) {
        ngx_mcp_unannounced_put_locked(t, s);
    }
}


/* its process is to announce it, or others if that dies before */

static void
ngx_mcp_unannounced_put_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    uint32_t  n;

    n = ngx_mcp_index(t, s);

    s->changes.prev = 0;
    s->changes.next = t->sh->unannounced;

    if (s->changes.next) {
        ngx_mcp_slot(t, s->changes.next)->changes.prev = n;
    }

    t->sh->unannounced = n;
}


static void
ngx_mcp_unannounced_take_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    if (s->changes.prev) {
        ngx_mcp_slot(t, s->changes.prev)->changes.next = s->changes.next;

    } else {
        t->sh->unannounced = s->changes.next;
    }

    if (s->changes.next) {
        ngx_mcp_slot(t, s->changes.next)->changes.prev = s->changes.prev;
    }
}


/*
 * The task of a session that changed first of those it was not told of; 0:
 * none.  Too far behind, it misses the oldest.
 */

uint32_t
ngx_mcp_changes_first_locked(ngx_mcp_table_t *t, uint32_t session)
{
    uint32_t             n, next, seen;
    ngx_mcp_delivery_t  *delivery;

    delivery = &ngx_mcp_name(t, session)->u.delivery;
    n = 0;
    next = delivery->changes;

    for (seen = 0; seen < NGX_MCP_SESSION_CHANGES; seen++) {

        if (next == 0
            || ngx_mcp_slot(t, next)->body.changed <= delivery->delivered)
        {
            return n;
        }

        n = next;
        next = ngx_mcp_slot(t, n)->changes.next;
    }

    if (delivery->behind > seen) {
        t->sh->count.changes_dropped += delivery->behind - seen;
        delivery->behind = seen;
        delivery->delivered = ngx_mcp_slot(t, next)->body.changed;
    }

    return n;
}


/* it is told now */

void
ngx_mcp_changes_delivered_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_delivery_t  *delivery;

    delivery = &ngx_mcp_name(t, s->session)->u.delivery;

    delivery->behind--;
    delivery->delivered = s->body.changed;
}


/* the client says that it knows less than it was told, or more */

void
ngx_mcp_changes_rewind_locked(ngx_mcp_table_t *t, uint32_t session,
    uint64_t from)
{
    uint32_t             n;
    ngx_mcp_slot_t      *s;
    ngx_mcp_delivery_t  *delivery;

    /* a client may say anything, but nobody knows what is yet to come */

    from = ngx_min(from, t->sh->seq);

    delivery = &ngx_mcp_name(t, session)->u.delivery;
    delivery->behind = 0;
    delivery->delivered = from;

    /* what lies farther back would be dropped anyway */

    for (n = delivery->changes;
         n && delivery->behind < NGX_MCP_SESSION_CHANGES;
         n = s->changes.next)
    {
        s = ngx_mcp_slot(t, n);

        if (s->body.changed <= from) {
            return;
        }

        delivery->behind++;
    }

    if (n) {
        delivery->delivered = ngx_max(from, ngx_mcp_slot(t, n)->body.changed);
    }
}
