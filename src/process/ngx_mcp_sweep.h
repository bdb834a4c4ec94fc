
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The timer that handles the deadlines of a zone's tasks.  One process at a
 * time is the sweeper; all others check regularly that it is not late.
 */


#ifndef _NGX_MCP_SWEEP_H_INCLUDED_
#define _NGX_MCP_SWEEP_H_INCLUDED_


#include "ngx_mcp_wake.h"


void ngx_mcp_sweep_init(ngx_cycle_t *cycle, ngx_mcp_local_t *local,
    ngx_int_t (*swept)(void *data));
void ngx_mcp_sweep_at(ngx_mcp_local_t *local, uint64_t time);


#endif /* _NGX_MCP_SWEEP_H_INCLUDED_ */
