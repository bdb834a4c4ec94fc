
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Parses the JSON-RPC envelope of a message. */


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
    ngx_uint_t      kind;       /* ngx_mcp_rpc_e */
    ngx_mcp_json_t  id;         /* NONE: missing or invalid */
    ngx_str_t       method;     /* decoded; empty in a response */
    ngx_mcp_json_t  params;     /* NONE or an object */
    ngx_mcp_json_t  result;
    ngx_mcp_json_t  error;

    /* set by the parser, checked by ngx_mcp_rpc_parse() */
    ngx_mcp_json_t  version;    /* "jsonrpc" */
    ngx_mcp_json_t  verb;       /* "method", not decoded */
} ngx_mcp_rpc_t;


typedef struct {
    ngx_int_t    code;
    const char  *message;
    const char  *detail;     /* may be NULL */
} ngx_mcp_rpc_error_t;


/*
 * NGX_OK; NGX_DECLINED with err set, and with the id if it is valid;
 * NGX_ERROR: no memory.  The shape names members of params, with offsets from
 * rpc, and may be NULL.
 */
ngx_int_t ngx_mcp_rpc_parse(ngx_pool_t *pool, ngx_str_t *body,
    ngx_mcp_shape_t *params, ngx_mcp_rpc_t *rpc, ngx_mcp_rpc_error_t *err);

/* compares two ids or two progress tokens */
ngx_uint_t ngx_mcp_rpc_same_id(ngx_mcp_json_t *a, ngx_mcp_json_t *b);


#endif /* _NGX_MCP_RPC_H_INCLUDED_ */
