
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The JSON-RPC envelope: what came, and the frame of what goes. */


#ifndef _NGX_MCP_RPC_H_INCLUDED_
#define _NGX_MCP_RPC_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_code.h"
#include "ngx_mcp_json.h"


typedef enum {
    NGX_MCP_RPC_REQUEST = 0,
    NGX_MCP_RPC_NOTIFICATION,
    NGX_MCP_RPC_RESPONSE
} ngx_mcp_rpc_e;


typedef struct {
    ngx_uint_t      kind;
    ngx_mcp_json_t  id;         /* NONE: none, or not readable */
    ngx_str_t       method;
    ngx_mcp_json_t  params;     /* NONE or an object */
    ngx_mcp_json_t  result;
    ngx_mcp_json_t  error;

    /* as they came */
    ngx_mcp_json_t  version;
    ngx_mcp_json_t  verb;
} ngx_mcp_rpc_t;


typedef struct {
    ngx_int_t    code;
    const char  *message;
    const char  *detail;     /* may be NULL */
} ngx_mcp_rpc_error_t;


/*
 * NGX_OK; NGX_DECLINED with an error; NGX_ERROR.  The shape is that of params,
 * with offsets from rpc, and may be NULL.
 */
ngx_int_t ngx_mcp_rpc_parse(ngx_pool_t *pool, ngx_str_t *body,
    ngx_mcp_shape_t *params, ngx_mcp_rpc_t *rpc, ngx_mcp_rpc_error_t *err);

ngx_uint_t ngx_mcp_rpc_same_id(ngx_mcp_json_t *a, ngx_mcp_json_t *b);


#endif /* _NGX_MCP_RPC_H_INCLUDED_ */
