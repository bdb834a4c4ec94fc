
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The lock of a zone, if somebody else has it: see ngx_mcp_table.h. */


#ifndef _NGX_MCP_LOCK_H_INCLUDED_
#define _NGX_MCP_LOCK_H_INCLUDED_


#include "ngx_mcp_table_types.h"


/*
 * So long, in ms, nobody holds the lock who runs: the process was stopped, or
 * its memory swapped out, or it rebuilds a very large table
 */
#define NGX_MCP_LOCK_LONG  1000


void ngx_mcp_lock_wait(ngx_mcp_table_t *t);
uint64_t ngx_mcp_lock_held(ngx_mcp_table_t *t);


#endif /* _NGX_MCP_LOCK_H_INCLUDED_ */
