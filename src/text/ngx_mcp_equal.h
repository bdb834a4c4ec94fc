
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Which JSON values mean the same, however they are written. */


#ifndef _NGX_MCP_EQUAL_H_INCLUDED_
#define _NGX_MCP_EQUAL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/* for values that were parsed: two strings, two numbers */
ngx_uint_t ngx_mcp_json_same(ngx_mcp_json_t *a, ngx_mcp_json_t *b);
ngx_uint_t ngx_mcp_json_same_number(ngx_mcp_json_t *a, ngx_mcp_json_t *b);

/* NGX_DECLINED: an object, at whatever depth, has a key twice */
ngx_int_t ngx_mcp_json_unique(ngx_pool_t *pool, ngx_mcp_json_t *value);


#endif /* _NGX_MCP_EQUAL_H_INCLUDED_ */
