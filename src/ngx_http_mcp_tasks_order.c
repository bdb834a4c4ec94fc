
#include "ngx_http_mcp_tasks_order.h"
#include "ngx_http_mcp_tasks_hash.h"


/* the number of fast lanes that a task is on */

ngx_uint_t
ngx_http_mcp_tasks_order_level(ngx_http_mcp_tasks_table_t *t, uint64_t seq)
{
    uint64_t    h;
    ngx_uint_t  level;

    h = ngx_http_mcp_tasks_mix(seq ^ t->sh->secret[0]);

    for (level = 0; level < NGX_HTTP_MCP_TASKS_ORDER_LEVELS - 1; level++) {
        if (h & 63) {
            break;
        }

        h >>= 6;
    }

    return level;
}


void
ngx_http_mcp_tasks_order_insert_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s)
{
    uint32_t                    n, *newest;
    ngx_uint_t                  i, level;
    ngx_http_mcp_tasks_name_t  *owner;

    n = ngx_http_mcp_tasks_index(t, s);
    owner = ngx_http_mcp_tasks_name(t, s->owner);
    level = ngx_http_mcp_tasks_order_level(t, s->seq);

    for (i = 0; i <= level; i++) {
        newest = &owner->u.newest[i];

        s->order_prev[i] = 0;
        s->order_next[i] = *newest;

        if (*newest) {
            ngx_http_mcp_tasks_slot(t, *newest)->order_prev[i] = n;
        }

        ngx_http_mcp_tasks_failpoint("order_insert");

        *newest = n;
    }
}


void
ngx_http_mcp_tasks_order_remove_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s)
{
    uint32_t    prev, next;
    ngx_uint_t  i, level;

    level = ngx_http_mcp_tasks_order_level(t, s->seq);

    for (i = 0; i <= level; i++) {
        prev = s->order_prev[i];
        next = s->order_next[i];

        if (next) {
            ngx_http_mcp_tasks_slot(t, next)->order_prev[i] = prev;
        }

        ngx_http_mcp_tasks_failpoint("order_remove");

        if (prev) {
            ngx_http_mcp_tasks_slot(t, prev)->order_next[i] = next;

        } else {
            ngx_http_mcp_tasks_name(t, s->owner)->u.newest[i] = next;
        }
    }
}


/*
 * The newest task of the owner that is older than seq; of all, if seq is 0.
 * The slot that the task with that number had is where to look first.
 */

uint32_t
ngx_http_mcp_tasks_order_after_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t owner, uint64_t seq, uint64_t hint)
{
    uint32_t                    n, next;
    ngx_uint_t                  i;
    ngx_http_mcp_tasks_name_t  *name;
    ngx_http_mcp_tasks_slot_t  *s;

    name = ngx_http_mcp_tasks_name(t, owner);

    if (seq == 0) {
        return name->u.newest[0];
    }

    if (hint < t->sh->slot.fresh) {
        s = ngx_http_mcp_tasks_slot(t, hint);

        if (s->seq == seq && s->owner == owner
            && s->body.task.state != NGX_HTTP_MCP_TASKS_FREE)
        {
            return s->order_next[0];
        }
    }

    n = 0;
    next = 0;

    for (i = NGX_HTTP_MCP_TASKS_ORDER_LEVELS; i-- > 0; /* void */) {

        next = n ? ngx_http_mcp_tasks_slot(t, n)->order_next[i]
                 : name->u.newest[i];

        while (next && ngx_http_mcp_tasks_slot(t, next)->seq >= seq) {
            n = next;
            next = ngx_http_mcp_tasks_slot(t, n)->order_next[i];
        }
    }

    return next;
}
