
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Adds the capabilities and tools of this module to a result of the upstream.
 * Everything else in the result is copied byte for byte.
 */


#ifndef _NGX_MCP_MERGE_H_INCLUDED_
#define _NGX_MCP_MERGE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/* the method that has the result: initialize, server/discover, tools/list */

typedef enum {
    NGX_MCP_MERGE_INITIALIZE = 1,
    NGX_MCP_MERGE_DISCOVER,
    NGX_MCP_MERGE_TOOLS
} ngx_mcp_merge_e;


typedef struct {
    ngx_uint_t    kind;        /* ngx_mcp_merge_e */
    ngx_uint_t    lists;       /* clients may call tasks/list */
    ngx_uint_t    offers;      /* the module has tools, on any page */

    /* the members below are used for NGX_MCP_MERGE_TOOLS only */

    ngx_uint_t    supports;    /* set taskSupport of each upstream tool */
    ngx_uint_t    private;     /* set cacheScope to "private" */
    ngx_str_t     tools;       /* tools to add: "{...},{...}" or empty */

    /* 1: the module has a tool of this name, the upstream's is removed */
    ngx_uint_t  (*own)(void *data, ngx_str_t *name);

    /* "optional", "required" or "forbidden"; called if supports is set */
    ngx_str_t  *(*support)(void *data, ngx_str_t *name);

    void         *data;
} ngx_mcp_merge_by_t;


/*
 * NGX_OK with the new text of the result; NGX_DECLINED: the result is not
 * valid for its method, and the caller should pass it unchanged; NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_mcp_merge(ngx_pool_t *pool, ngx_mcp_json_t *result,
    ngx_mcp_merge_by_t *m, ngx_str_t *text);


#endif /* _NGX_MCP_MERGE_H_INCLUDED_ */
