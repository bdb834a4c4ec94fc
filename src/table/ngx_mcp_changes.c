
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
 * Compares the task's next body with the present one, and numbers the change in
 * the next body.  Returns what ngx_mcp_changes_rule() does.
 */

ngx_uint_t
ngx_mcp_changes_made_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_body_t *body)
{
    ngx_uint_t       changes;
    ngx_mcp_body_t  *old;

    old = &s->body;

    changes = ngx_mcp_changes_rule(&old->task, &body->task, body->peak,
                                   (body->turned ? NGX_MCP_TURNED : 0)
                                   | (body->moved ? NGX_MCP_MOVED : 0),
                                   body->payload[NGX_MCP_MESSAGE].last
                                   != old->payload[NGX_MCP_MESSAGE].last,
                                   s->token);

    if (changes == 0) {
        return 0;
    }

    body->changed = ++t->sh->seq;

    if (changes & NGX_MCP_TURNED) {
        body->turned = body->changed;
    }

    if (changes & NGX_MCP_MOVED) {
        body->moved = body->changed;
    }

    body->peak = ngx_max(body->peak, body->task.progress);

    return changes;
}


/* removes a task from the lists by change: before a change or a removal */

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
            delivery->undelivered--;
        }

    } else if (s->session) {
        ngx_mcp_unannounced_take_locked(t, s);
    }
}


/* after a change: inserts the task again, and signals what waits for it */

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


/* inserts a task into the lists by change, without signals */

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
            delivery->undelivered++;
        }

    } else if (s->session) {
        ngx_mcp_unannounced_put_locked(t, s);
    }
}


/* if the task's process dies, another finds the task here and announces it */

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
 * The session's task with the first undelivered change; 0: none.  If more than
 * NGX_MCP_SESSION_CHANGES tasks have undelivered changes, the oldest of these
 * are dropped.
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

    if (delivery->undelivered > seen) {
        t->sh->count.changes_dropped += delivery->undelivered - seen;
        delivery->undelivered = seen;
        delivery->delivered = ngx_mcp_slot(t, next)->body.changed;
    }

    return n;
}


/* the task must be the one from ngx_mcp_changes_first_locked() */

void
ngx_mcp_changes_delivered_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_delivery_t  *delivery;

    delivery = &ngx_mcp_name(t, s->session)->u.delivery;

    delivery->undelivered--;
    delivery->delivered = s->body.changed;
}


/* moves a session to the position that its client has sent */

void
ngx_mcp_changes_rewind_locked(ngx_mcp_table_t *t, uint32_t session,
    uint64_t from)
{
    uint32_t             n;
    ngx_mcp_slot_t      *s;
    ngx_mcp_delivery_t  *delivery;

    /* the number comes from a client: it must not exceed the last change */

    from = ngx_min(from, t->sh->seq);

    delivery = &ngx_mcp_name(t, session)->u.delivery;
    delivery->undelivered = 0;
    delivery->delivered = from;

    /* older changes would be dropped anyway */

    for (n = delivery->changes;
         n && delivery->undelivered < NGX_MCP_SESSION_CHANGES;
         n = s->changes.next)
    {
        s = ngx_mcp_slot(t, n);

        if (s->body.changed <= from) {
            return;
        }

        delivery->undelivered++;
    }

    if (n) {
        delivery->delivered = ngx_max(from, ngx_mcp_slot(t, n)->body.changed);
    }
}
