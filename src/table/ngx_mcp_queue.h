
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Queues: a tool's claimable tasks, one FIFO per priority; and the background
 * calls of the zone.
 */


#ifndef _NGX_MCP_QUEUE_H_INCLUDED_
#define _NGX_MCP_QUEUE_H_INCLUDED_


#include "ngx_mcp_table.h"


void ngx_mcp_queue_insert_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_queue_remove_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
ngx_mcp_slot_t *ngx_mcp_queue_first_locked(ngx_mcp_table_t *t,
    ngx_str_t *tools, uint32_t *hashes, ngx_uint_t n);


#endif /* _NGX_MCP_QUEUE_H_INCLUDED_ */
