
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
