
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Changes without a waiting request, for example after a request ended or a
 * process died.  Such an operation owns its memory, outlives its caller, and
 * is submitted again until the store accepts it.
 */


#ifndef _NGX_MCP_LATER_H_INCLUDED_
#define _NGX_MCP_LATER_H_INCLUDED_


#include "ngx_mcp_op_types.h"


/*
 * Creates UPDATE, DELETE, WAIT, LEAVE, PIN or UNPIN, with all members 0 and a
 * pool of its own for what it refers to; NULL: no memory.  The caller fills it
 * in and passes it to ngx_mcp_later() or ngx_mcp_later_free(), which own it
 * from then on.
 */
void *ngx_mcp_later_op(ngx_mcp_zone_t *zone, ngx_uint_t type);

void ngx_mcp_later(ngx_mcp_op_t *op);
void ngx_mcp_later_free(ngx_mcp_op_t *op);

/*
 * The UNPIN for a pin, created in advance so that unpinning cannot fail; NULL:
 * no memory.
 */
ngx_mcp_op_t *ngx_mcp_unpin_op(ngx_mcp_zone_t *zone, ngx_mcp_op_pin_t *pin);

ngx_int_t ngx_mcp_later_str(ngx_mcp_op_t *op, ngx_str_t *dst, ngx_str_t *src);


#endif /* _NGX_MCP_LATER_H_INCLUDED_ */
