
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_queue.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_signal.h"


/* background calls of all tools share one queue */

static ngx_mcp_queue_t *
ngx_mcp_queue_of(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_name_t  *tool;

    if (s->body.task.policy.route) {
        return &t->sh->held;
    }

    tool = ngx_mcp_name(t, s->tool);

    return &tool->u.queue[s->body.task.policy.priority];
}


/* at the end: its queue_seq must be greater than all in the queue */

void
ngx_mcp_queue_insert_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    uint32_t          n;
    ngx_mcp_queue_t  *q;

    n = ngx_mcp_index(t, s);
    q = ngx_mcp_queue_of(t, s);

    s->queued = 1;
    s->queue_next = 0;
    s->queue_prev = q->tail;

    if (q->tail) {
        ngx_mcp_slot(t, q->tail)->queue_next = n;

    } else {
        q->head = n;
    }

    ngx_mcp_failpoint("queue_insert");

    q->tail = n;

    if (s->body.task.policy.route) {
        t->sh->holding++;
        return;
    }

    if (t->mirror) {
        /* workers claim the task from the store, which notifies them */
        return;
    }

    ngx_mcp_signal_name_locked(t, ngx_mcp_name(t, s->tool)->hash);
}


void
ngx_mcp_queue_remove_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_queue_t  *q;

    q = ngx_mcp_queue_of(t, s);

    if (s->queue_prev) {
        ngx_mcp_slot(t, s->queue_prev)->queue_next = s->queue_next;

    } else {
        q->head = s->queue_next;
    }

    ngx_mcp_failpoint("queue_remove");

    if (s->queue_next) {
        ngx_mcp_slot(t, s->queue_next)->queue_prev = s->queue_prev;

    } else {
        q->tail = s->queue_prev;
    }

    s->queued = 0;

    if (s->body.task.policy.route) {
        t->sh->holding--;

        /* other calls may have waited for this one to begin */
        ngx_mcp_signal_name_locked(t, NGX_MCP_CAPACITY);
    }
}


/*
 * The task to claim next among the n tools: the one with the highest priority,
 * then the one that was queued first.  Paused tools are skipped.  NULL: none.
 */

ngx_mcp_slot_t *
ngx_mcp_queue_first_locked(ngx_mcp_table_t *t, ngx_str_t *tools,
    uint32_t *hashes, ngx_uint_t n)
{
    uint32_t         head, name;
    ngx_int_t        p;
    ngx_uint_t       i;
    ngx_mcp_slot_t  *s, *first;

    first = NULL;

    for (i = 0; i < n; i++) {

        name = ngx_mcp_name_find_locked(t, NGX_MCP_TOOL, &tools[i], hashes[i]);
        if (name == 0
            || t->tool_stats[ngx_mcp_name(t, name)->stat].paused)
        {
            continue;
        }

        for (p = NGX_MCP_PRIORITIES - 1; p >= 0; p--) {
            head = ngx_mcp_name(t, name)->u.queue[p].head;

            if (head == 0) {
                continue;
            }

            s = ngx_mcp_slot(t, head);

            if (first == NULL
                || s->body.task.policy.priority
                   > first->body.task.policy.priority
                || (s->body.task.policy.priority
                    == first->body.task.policy.priority
                    && s->body.queue_seq < first->body.queue_seq))
            {
                first = s;
            }

            break;
        }
    }

    return first;
}
