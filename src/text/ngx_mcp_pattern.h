
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Regular expressions of ECMA-262, as JSON Schema has them, for the PCRE
 * library.
 */


#ifndef _NGX_MCP_PATTERN_H_INCLUDED_
#define _NGX_MCP_PATTERN_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* how often the library may backtrack until it gives up */
#define NGX_MCP_PATTERN_LIMIT  "10000"


/* NULL and the pattern, or what is wrong with it; "no memory" is one */
const char *ngx_mcp_pattern_pcre(ngx_pool_t *pool, ngx_str_t *pattern,
    ngx_str_t *pcre);


#endif /* _NGX_MCP_PATTERN_H_INCLUDED_ */
