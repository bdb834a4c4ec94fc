
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Submitting operations, and helpers for callers. */


#ifndef _NGX_MCP_OP_H_INCLUDED_
#define _NGX_MCP_OP_H_INCLUDED_


#include "ngx_mcp_op_types.h"


/* wall clock, ms */

static ngx_inline uint64_t
ngx_mcp_wall(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


ngx_int_t ngx_mcp_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
ngx_int_t ngx_mcp_lookup(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);

void ngx_mcp_release(ngx_mcp_op_update_t *op, ngx_mcp_view_t *claimed);

u_char *ngx_mcp_cursor_text(ngx_mcp_zone_t *zone, u_char *p, ngx_str_t *owner,
    ngx_mcp_cursor_t *cursor);
ngx_int_t ngx_mcp_cursor_parse(ngx_mcp_zone_t *zone, ngx_str_t *text,
    ngx_str_t *owner, ngx_mcp_cursor_t *cursor);

/*
 * Prefetch into the CPU cache, before a task is looked up: first the entry of
 * the hash table, then the slot, while the request is parsed in between.  Both
 * are hints only and take no lock.
 */
void ngx_mcp_hint_hash(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id);
void ngx_mcp_hint_task(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id);


#endif /* _NGX_MCP_OP_H_INCLUDED_ */
