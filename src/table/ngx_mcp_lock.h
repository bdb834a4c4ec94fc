
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Waiting for the lock of a zone; ngx_mcp_table.h has ngx_mcp_lock(). */


#ifndef _NGX_MCP_LOCK_H_INCLUDED_
#define _NGX_MCP_LOCK_H_INCLUDED_


#include "ngx_mcp_table_types.h"


/*
 * A running process does not hold the lock for so long, in ms: the process was
 * stopped, or its memory was swapped out, or it rebuilds a very large table
 */
#define NGX_MCP_LOCK_LONG  1000


void ngx_mcp_lock_wait(ngx_mcp_table_t *t);
uint64_t ngx_mcp_lock_held(ngx_mcp_table_t *t);


#endif /* _NGX_MCP_LOCK_H_INCLUDED_ */
