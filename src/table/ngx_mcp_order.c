
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_order.h"
#include "ngx_mcp_hash.h"


static uint32_t ngx_mcp_order_find_locked(ngx_mcp_table_t *t,
    ngx_mcp_order_t *order, uint32_t owner, uint64_t key);


ngx_mcp_order_t  ngx_mcp_by_seq = {
    offsetof(ngx_mcp_slot_t, by_seq),
    offsetof(ngx_mcp_slot_t, seq),
    offsetof(ngx_mcp_slot_t, owner),
    offsetof(ngx_mcp_name_t, u.owned.by_seq),
    NGX_MCP_ORDER_LEVELS, 0
};


ngx_mcp_order_t  ngx_mcp_by_change = {
    offsetof(ngx_mcp_slot_t, by_change),
    offsetof(ngx_mcp_slot_t, body.changed),
    offsetof(ngx_mcp_slot_t, owner),
    offsetof(ngx_mcp_name_t, u.owned.by_change),
    NGX_MCP_ORDER_LEVELS, 0
};


/* one level: a session reads only NGX_MCP_SESSION_CHANGES from the front */

ngx_mcp_order_t  ngx_mcp_changes = {
    offsetof(ngx_mcp_slot_t, changes),
    offsetof(ngx_mcp_slot_t, body.changed),
    offsetof(ngx_mcp_slot_t, session),
    offsetof(ngx_mcp_name_t, u.delivery.changes),
    1, 0
};


/* one level: readers begin at the front or continue from a known task */

ngx_mcp_order_t  ngx_mcp_recent = {
    offsetof(ngx_mcp_slot_t, recent),
    offsetof(ngx_mcp_slot_t, body.changed),
    0,
    offsetof(ngx_mcp_header_t, recent),
    1, 1
};


/* the highest level of a task in a list; it never changes */

ngx_uint_t
ngx_mcp_order_level(ngx_mcp_table_t *t, ngx_mcp_order_t *order,
    ngx_mcp_slot_t *s)
{
    uint64_t    h;
    ngx_uint_t  level;

    h = ngx_mcp_mix(s->seq ^ t->sh->secret[0]);

    for (level = 0; level < order->levels - 1; level++) {
        if (h & 63) {
            break;
        }

        h >>= 6;
    }

    return level;
}


/* at the front: the key must be greater than all keys in the list */

void
ngx_mcp_order_insert_locked(ngx_mcp_table_t *t, ngx_mcp_order_t *order,
    ngx_mcp_slot_t *s)
{
    uint32_t         n, *front;
    ngx_uint_t       i, level;
    ngx_mcp_link_t  *link;
    ngx_mcp_slot_t  *old;

    n = ngx_mcp_index(t, s);
    front = ngx_mcp_order_front(t, order, ngx_mcp_order_name(order, s));
    link = ngx_mcp_order_link(order, s);
    level = ngx_mcp_order_level(t, order, s);

    for (i = 0; i <= level; i++) {
        link[i].prev = 0;
        link[i].next = front[i];

        if (front[i]) {
            old = ngx_mcp_slot(t, front[i]);
            ngx_mcp_order_link(order, old)[i].prev = n;
        }

        ngx_mcp_failpoint("order_insert");

        front[i] = n;
    }
}


void
ngx_mcp_order_remove_locked(ngx_mcp_table_t *t, ngx_mcp_order_t *order,
    ngx_mcp_slot_t *s)
{
    uint32_t         prev, next;
    ngx_uint_t       i, level;
    ngx_mcp_link_t  *link;
    ngx_mcp_slot_t  *other;

    link = ngx_mcp_order_link(order, s);
    level = ngx_mcp_order_level(t, order, s);

    for (i = 0; i <= level; i++) {
        prev = link[i].prev;
        next = link[i].next;

        if (next) {
            other = ngx_mcp_slot(t, next);
            ngx_mcp_order_link(order, other)[i].prev = prev;
        }

        ngx_mcp_failpoint("order_remove");

        if (prev) {
            other = ngx_mcp_slot(t, prev);
            ngx_mcp_order_link(order, other)[i].next = next;

        } else {
            ngx_mcp_order_front(t, order,
                                ngx_mcp_order_name(order, s))[i] = next;
        }
    }
}


/*
 * The owner's newest task that is older than seq; if seq is 0, the newest of
 * all; 0: none.  The hint is the slot of the task seq, or 0: if that task
 * still exists, there is no search.
 */

uint32_t
ngx_mcp_order_after_locked(ngx_mcp_table_t *t, uint32_t owner, uint64_t seq,
    uint64_t hint)
{
    uint32_t         n;
    ngx_mcp_name_t  *name;
    ngx_mcp_slot_t  *s;

    name = ngx_mcp_name(t, owner);

    if (seq == 0) {
        return name->u.owned.by_seq[0];
    }

    if (hint && hint < t->sh->slot.fresh) {
        s = ngx_mcp_slot(t, hint);

        if (s->seq == seq && s->owner == owner
            && s->body.task.state != NGX_MCP_FREE)
        {
            return s->by_seq[0].next;
        }
    }

    n = ngx_mcp_order_find_locked(t, &ngx_mcp_by_seq, owner, seq);

    return n ? ngx_mcp_slot(t, n)->by_seq[0].next
             : name->u.owned.by_seq[0];
}


/*
 * The owner's task with the first change after that one; 0: none.  The hint is
 * the slot of the task with that change, or 0.
 */

uint32_t
ngx_mcp_order_since_locked(ngx_mcp_table_t *t, uint32_t owner,
    uint64_t changed, uint64_t hint)
{
    ngx_mcp_slot_t  *s;

    if (hint && hint < t->sh->slot.fresh) {
        s = ngx_mcp_slot(t, hint);

        if (s->body.changed == changed && s->owner == owner
            && s->body.task.state != NGX_MCP_FREE)
        {
            return s->by_change[0].prev;
        }
    }

    return ngx_mcp_order_find_locked(t, &ngx_mcp_by_change, owner,
                                     changed + 1);
}


/* the last task, from the front, whose key is not less than key; 0: none */

static uint32_t
ngx_mcp_order_find_locked(ngx_mcp_table_t *t, ngx_mcp_order_t *order,
    uint32_t owner, uint64_t key)
{
    uint32_t         n, next;
    ngx_uint_t       i;
    ngx_mcp_slot_t  *s;

    n = 0;

    for (i = order->levels; i-- > 0; /* void */) {

        next = n ? ngx_mcp_order_link(order,
                                      ngx_mcp_slot(t, n))[i].next
                 : ngx_mcp_order_front(t, order, owner)[i];

        while (next) {
            s = ngx_mcp_slot(t, next);

            if (ngx_mcp_order_key(order, s) < key) {
                break;
            }

            n = next;
            next = ngx_mcp_order_link(order, s)[i].next;
        }
    }

    return n;
}
