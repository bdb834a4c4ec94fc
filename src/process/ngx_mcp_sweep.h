
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The timer that lets time pass for the tasks of a zone: one process at a time
 * sweeps, and all look now and then whether it does.
 */


#ifndef _NGX_MCP_SWEEP_H_INCLUDED_
#define _NGX_MCP_SWEEP_H_INCLUDED_


#include "ngx_mcp_wake.h"


void ngx_mcp_sweep_init(ngx_cycle_t *cycle, ngx_mcp_local_t *local,
    ngx_int_t (*swept)(void *data));
void ngx_mcp_sweep_at(ngx_mcp_local_t *local, uint64_t time);


#endif /* _NGX_MCP_SWEEP_H_INCLUDED_ */
