
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Allocation of blocks, and chains of blocks. */


#ifndef _NGX_MCP_ARENA_H_INCLUDED_
#define _NGX_MCP_ARENA_H_INCLUDED_


#include "ngx_mcp_table.h"


#define ngx_mcp_blocks_for(len)                                               \
    (((len) + NGX_MCP_BLOCK_DATA - 1)                                         \
     / NGX_MCP_BLOCK_DATA)

/* how many are free in a free list */
#define ngx_mcp_available(list)  ((list)->end - 1 - (list)->used)

/* how many of these are not for new tasks */
#define ngx_mcp_reserve(list)  ((list)->end / 16)


uint32_t ngx_mcp_block_alloc_locked(ngx_mcp_table_t *t);
void ngx_mcp_block_free_locked(ngx_mcp_table_t *t, uint32_t n);

void ngx_mcp_chain_write_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain,
    ngx_str_t *parts, ngx_uint_t n);
u_char *ngx_mcp_chain_read_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain,
    u_char *p);
ngx_uint_t ngx_mcp_chain_is_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain,
    ngx_str_t *bytes);
void ngx_mcp_chain_free_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain);


#endif /* _NGX_MCP_ARENA_H_INCLUDED_ */
