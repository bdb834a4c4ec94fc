
/* Blocks and chains of blocks. */


#ifndef _NGX_HTTP_MCP_TASKS_ARENA_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_ARENA_H_INCLUDED_


#include "ngx_mcp_table.h"


#define ngx_http_mcp_tasks_blocks_for(len)                                    \
    (((len) + NGX_HTTP_MCP_TASKS_BLOCK_DATA - 1)                              \
     / NGX_HTTP_MCP_TASKS_BLOCK_DATA)

#define ngx_http_mcp_tasks_available(store)                                   \
    ((store)->end - 1 - (store)->used)

#define ngx_http_mcp_tasks_reserve(store)  ((store)->end / 16)


uint32_t ngx_http_mcp_tasks_block_alloc_locked(ngx_http_mcp_tasks_table_t *t);
void ngx_http_mcp_tasks_block_free_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t n);

void ngx_http_mcp_tasks_chain_write_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_chain_t *chain, ngx_str_t *parts, ngx_uint_t n);
u_char *ngx_http_mcp_tasks_chain_read_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_chain_t *chain, u_char *p);
void ngx_http_mcp_tasks_chain_free_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_chain_t *chain);


#endif /* _NGX_HTTP_MCP_TASKS_ARENA_H_INCLUDED_ */
