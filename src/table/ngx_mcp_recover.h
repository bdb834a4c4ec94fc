
/*
 * After a process died while it held the lock: everything that is derived
 * from the slots is made anew.  And the check that it all fits together.
 */


#ifndef _NGX_HTTP_MCP_TASKS_RECOVER_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_RECOVER_H_INCLUDED_


#include "ngx_mcp_table.h"


void ngx_http_mcp_tasks_recover_locked(ngx_http_mcp_tasks_table_t *t);
void ngx_http_mcp_tasks_rebuild_locked(ngx_http_mcp_tasks_table_t *t);
const char *ngx_http_mcp_tasks_check_locked(ngx_http_mcp_tasks_table_t *t);


/* the scratch map, a bit for each block; returns what the bit was */

static ngx_inline ngx_uint_t
ngx_http_mcp_tasks_map_mark(ngx_http_mcp_tasks_table_t *t, uint32_t n)
{
    uint64_t  bit, *word;

    word = &t->map[n / 64];
    bit = (uint64_t) 1 << (n & 63);

    if (*word & bit) {
        return 1;
    }

    *word |= bit;

    return 0;
}


#define ngx_http_mcp_tasks_map_size(nblocks)  (((nblocks) + 63) / 64 * 8)


#endif /* _NGX_HTTP_MCP_TASKS_RECOVER_H_INCLUDED_ */
