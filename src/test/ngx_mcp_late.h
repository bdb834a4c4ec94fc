
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

/*
 * What happens to attempts and detached changes, in all processes; in the
 * memory after these numbers.
 */

#define ngx_mcp_late_away(zone)  (&ngx_mcp_late_count(zone)[NGX_MCP_OPS])

typedef enum {
    NGX_MCP_LATE_HERE = 0,
    NGX_MCP_LATE_AWAY,        /* refused: the store is unavailable */
    NGX_MCP_LATE_UNSURE,      /* done, but answered as failed */
    NGX_MCP_LATE_NO_MEMORY    /* not submitted */
} ngx_mcp_late_away_e;

/* operations pending in this process */
extern ngx_uint_t       ngx_mcp_late_pending;


#endif /* _NGX_MCP_LATE_H_INCLUDED_ */
