
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The changes that owners and sessions have not received yet.
 *
 * Every change has a number, and a task that changes moves to the front of its
 * owner's list by change.  A client that knows the number of the last change
 * it received finds all later changes there, each task once, in its latest
 * state.
 *
 * A session has a list of its own, and the zone stores how much of it was
 * delivered, so that a client can reconnect without sending a position.  A
 * task enters this list when it is announced: the process that answers the
 * call does so after the response.  Until then the task is in the zone's list
 * of unannounced tasks, where other processes find it if that process dies.
 */


#ifndef _NGX_MCP_CHANGES_H_INCLUDED_
#define _NGX_MCP_CHANGES_H_INCLUDED_


#include "ngx_mcp_table.h"


/* which numbers a change sets, as bits */

#define NGX_MCP_CHANGED  1
#define NGX_MCP_TURNED   2
#define NGX_MCP_MOVED    4


/*
 * Compares a task with itself before a change.  Returns 0 if nothing has to be
 * delivered.  A change of the status or message sets "turned", new progress
 * sets "moved".  A message that comes with progress is a part of that progress,
 * if the client has sent a progress token.
 *
 * The peak and the numbers that are set are those of before; message says that
 * the message was replaced.  Inline: a table needs this for every change.
 */

static ngx_inline ngx_uint_t
ngx_mcp_changes_rule(ngx_mcp_task_t *old, ngx_mcp_task_t *task, double peak,
    ngx_uint_t set, ngx_uint_t message, ngx_uint_t token)
{
    ngx_uint_t  announced, moved, changes;

    announced = ((task->flags ^ old->flags) & NGX_MCP_ANNOUNCED);

    if (task->version == old->version && !announced) {
        return 0;
    }

    moved = (task->progress > peak);
    changes = NGX_MCP_CHANGED;

    /*
     * changes before the announcement were not delivered, so they count now;
     * queued and running are the same status for clients
     */

    if ((announced && (set & NGX_MCP_TURNED))
        || ngx_mcp_status_name(task->state) != ngx_mcp_status_name(old->state)
        || (message && !(moved && token)))
    {
        changes |= NGX_MCP_TURNED;
    }

    if ((announced && (set & NGX_MCP_MOVED)) || moved) {
        changes |= NGX_MCP_MOVED;
    }

    return changes;
}


ngx_uint_t ngx_mcp_changes_made_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_body_t *body);
void ngx_mcp_changes_take_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_changes_put_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_changes_insert_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

uint32_t ngx_mcp_changes_first_locked(ngx_mcp_table_t *t, uint32_t session);
void ngx_mcp_changes_delivered_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_changes_rewind_locked(ngx_mcp_table_t *t, uint32_t session,
    uint64_t from);


/* whether a task is in the list of its session */

#define ngx_mcp_changes_has(s)                                                \
    ((s)->session                                                             \
     && (s)->body.task.flags & NGX_MCP_ANNOUNCED)


#endif /* _NGX_MCP_CHANGES_H_INCLUDED_ */
