
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * What owners and sessions have not been told yet.
 *
 * Every change gets a number, and a task that changes moves to the front of
 * its owner's list by change: whoever knows the number of the last change he
 * was told of finds there what is new, each task once, in its latest state.
 *
 * A session has such a list of its own, and the zone remembers how much of it
 * was told, so that its client may come back on another connection without
 * saying where it was.  A task is in there once its client knows of it: the
 * process that answers the call announces it afterwards.  Until then it is in
 * a list of the zone, where others find it if that process dies.
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
    uint64_t delivered);


#define ngx_mcp_changes_has(s)                                                \
    ((s)->session                                                             \
     && (s)->body.task.flags & NGX_MCP_ANNOUNCED)


#endif /* _NGX_MCP_CHANGES_H_INCLUDED_ */
