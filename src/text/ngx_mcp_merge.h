
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Puts what we offer into what an upstream has answered: capabilities and
 * tools.  Bytes are spliced; all that is not ours stays as it came.
 */


#ifndef _NGX_MCP_MERGE_H_INCLUDED_
#define _NGX_MCP_MERGE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/* of which method it is the result */

typedef enum {
    NGX_MCP_MERGE_INITIALIZE = 1,
    NGX_MCP_MERGE_DISCOVER,
    NGX_MCP_MERGE_TOOLS
} ngx_mcp_merge_e;


typedef struct {
    ngx_uint_t    kind;
    ngx_uint_t    lists;       /* tasks/list is offered */
    ngx_uint_t    offers;      /* there are tools of ours, on any page */

    /* the rest is for lists of tools */

    ngx_uint_t    supports;    /* tools say what their taskSupport is */
    ngx_str_t     tools;       /* ours for this page, "{...},{...}" or empty */

    /* whether we have a tool of that name; the upstream's is left out */
    ngx_uint_t  (*own)(void *data, ngx_str_t *name);

    /* "optional", "required" or "forbidden"; only if supports */
    ngx_str_t  *(*support)(void *data, ngx_str_t *name);

    void         *data;
} ngx_mcp_merge_by_t;


/*
 * NGX_OK with the new text of the result; NGX_DECLINED: it is not what such a
 * result has to be, and should be passed on as it is; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_merge(ngx_pool_t *pool, ngx_mcp_json_t *result,
    ngx_mcp_merge_by_t *m, ngx_str_t *text);


#endif /* _NGX_MCP_MERGE_H_INCLUDED_ */
