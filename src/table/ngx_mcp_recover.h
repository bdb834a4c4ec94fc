
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Recovery: if a process died while it held the lock, all data that is derived
 * from the slots is rebuilt.  And a check of the table's invariants.
 */


#ifndef _NGX_MCP_RECOVER_H_INCLUDED_
#define _NGX_MCP_RECOVER_H_INCLUDED_


#include "ngx_mcp_table.h"


void ngx_mcp_recover_locked(ngx_mcp_table_t *t);
void ngx_mcp_rebuild_locked(ngx_mcp_table_t *t);
const char *ngx_mcp_check_locked(ngx_mcp_table_t *t);


/* sets the bit of a block in the scratch map, and returns its old value */

static ngx_inline ngx_uint_t
ngx_mcp_map_mark(ngx_mcp_table_t *t, uint32_t n)
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


#define ngx_mcp_map_size(nblocks)  (((nblocks) + 63) / 64 * 8)


#endif /* _NGX_MCP_RECOVER_H_INCLUDED_ */
