
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Names of owners, tools, tokens and sessions.  Each is stored once, counts
 * the tasks that refer to it, and is freed with the last of them.
 */


#ifndef _NGX_MCP_NAMES_H_INCLUDED_
#define _NGX_MCP_NAMES_H_INCLUDED_


#include "ngx_mcp_table.h"


uint32_t ngx_mcp_name_hash(ngx_mcp_table_t *t, ngx_uint_t kind,
    ngx_str_t *text);
uint32_t ngx_mcp_name_find_locked(ngx_mcp_table_t *t, ngx_uint_t kind,
    ngx_str_t *text, uint32_t hash);
ngx_uint_t ngx_mcp_name_blocks(ngx_str_t *text);
uint32_t ngx_mcp_name_new_locked(ngx_mcp_table_t *t, ngx_uint_t kind,
    ngx_str_t *text, uint32_t hash);
void ngx_mcp_name_link_locked(ngx_mcp_table_t *t, uint32_t n);
void ngx_mcp_name_unref_locked(ngx_mcp_table_t *t, uint32_t n);
ngx_uint_t ngx_mcp_name_is_locked(ngx_mcp_table_t *t, uint32_t n,
    ngx_str_t *text);
u_char *ngx_mcp_name_read_locked(ngx_mcp_table_t *t, uint32_t n, u_char *p);
void ngx_mcp_name_rest(ngx_mcp_name_t *name, ngx_mcp_chain_t *chain);


#endif /* _NGX_MCP_NAMES_H_INCLUDED_ */
