
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Deadlines: a hierarchical timing wheel over the slots.
 *
 * Level 0 has a bucket for each of the 64 milliseconds around the base, which
 * is the time up to which the wheel was swept; level 1 has a bucket for each
 * 64 ms of the 4 seconds around it, and so on up to 139 years.  Insertion and
 * removal take constant time.  Before its deadline a task moves down at most
 * once per level.
 */


#ifndef _NGX_MCP_WHEEL_H_INCLUDED_
#define _NGX_MCP_WHEEL_H_INCLUDED_


#include "ngx_mcp_table.h"


void ngx_mcp_wheel_insert_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_wheel_remove_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
uint64_t ngx_mcp_wheel_next_locked(ngx_mcp_table_t *t);
ngx_int_t ngx_mcp_wheel_step_locked(ngx_mcp_table_t *t, uint64_t now,
    ngx_mcp_slot_t **due);
ngx_uint_t ngx_mcp_wheel_bucket(uint64_t base, uint64_t deadline);


#endif /* _NGX_MCP_WHEEL_H_INCLUDED_ */
