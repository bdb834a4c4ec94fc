
/*
 * Changes that nobody waits for: a request has ended, or a process has died,
 * and something has to be said of it.  Such a change owns its memory, outlives
 * whoever submits it, and is submitted again until the store has done it.
 */


#ifndef _NGX_MCP_LATER_H_INCLUDED_
#define _NGX_MCP_LATER_H_INCLUDED_


#include "ngx_mcp_op_types.h"


/*
 * UPDATE, DELETE, WAIT, LEAVE, PIN or UNPIN with all its members 0, and a pool
 * of its own for what it refers to; NULL: no memory.  It is to be submitted or
 * freed by one of the functions below, and belongs to them from then on.
 */
void *ngx_mcp_later_op(ngx_mcp_zone_t *zone, ngx_uint_t type);

void ngx_mcp_later(ngx_mcp_op_t *op);
void ngx_mcp_later_free(ngx_mcp_op_t *op);

/* of what is about to be pinned; NULL: no memory */
ngx_mcp_op_t *ngx_mcp_unpin_op(ngx_mcp_zone_t *zone, ngx_mcp_op_pin_t *pin);

ngx_int_t ngx_mcp_later_str(ngx_mcp_op_t *op, ngx_str_t *dst, ngx_str_t *src);


#endif /* _NGX_MCP_LATER_H_INCLUDED_ */
