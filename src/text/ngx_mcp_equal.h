
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Compares JSON values by what they mean, not by how they are written. */


#ifndef _NGX_MCP_EQUAL_H_INCLUDED_
#define _NGX_MCP_EQUAL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/*
 * Both values must come from the parser.  The first function compares two
 * strings, whatever their escapes; the second one compares two numbers: 42,
 * 42.0 and 4.2e1 are equal.
 */
ngx_uint_t ngx_mcp_json_same(ngx_mcp_json_t *a, ngx_mcp_json_t *b);
ngx_uint_t ngx_mcp_json_same_number(ngx_mcp_json_t *a, ngx_mcp_json_t *b);

/*
 * NGX_OK; NGX_DECLINED: an object, at any depth, has a duplicate key;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_json_unique(ngx_pool_t *pool, ngx_mcp_json_t *value);


#endif /* _NGX_MCP_EQUAL_H_INCLUDED_ */
