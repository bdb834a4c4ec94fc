
/*
 * Owners and tools: found by name, counted, and gone with their last task.
 */


#ifndef _NGX_HTTP_MCP_TASKS_NAMES_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_NAMES_H_INCLUDED_


#include "ngx_mcp_table.h"


uint32_t ngx_http_mcp_tasks_name_hash(ngx_http_mcp_tasks_table_t *t,
    ngx_uint_t kind, ngx_str_t *text);
uint32_t ngx_http_mcp_tasks_name_find_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_uint_t kind, ngx_str_t *text, uint32_t hash);
ngx_uint_t ngx_http_mcp_tasks_name_blocks(ngx_str_t *text);
uint32_t ngx_http_mcp_tasks_name_new_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_uint_t kind, ngx_str_t *text, uint32_t hash);
void ngx_http_mcp_tasks_name_link_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t n);
void ngx_http_mcp_tasks_name_unref_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t n);
ngx_uint_t ngx_http_mcp_tasks_name_is_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t n, ngx_str_t *text);
u_char *ngx_http_mcp_tasks_name_read_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t n, u_char *p);
void ngx_http_mcp_tasks_name_rest(ngx_http_mcp_tasks_name_t *name,
    ngx_http_mcp_tasks_chain_t *chain);


#endif /* _NGX_HTTP_MCP_TASKS_NAMES_H_INCLUDED_ */
