
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Test build only: a store that delays all operations and answers. */


#ifndef _NGX_MCP_LATE_H_INCLUDED_
#define _NGX_MCP_LATE_H_INCLUDED_


#include "ngx_mcp_store.h"


extern ngx_mcp_store_t  ngx_mcp_late_store;

/* an array, how many of each operation were submitted, in all processes */
ngx_atomic_t *ngx_mcp_late_count(ngx_mcp_zone_t *zone);

/* operations pending in this process */
extern ngx_uint_t       ngx_mcp_late_pending;


#endif /* _NGX_MCP_LATE_H_INCLUDED_ */
