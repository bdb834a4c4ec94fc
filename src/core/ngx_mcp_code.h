
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* JSON-RPC error codes: those of the specifications and the module's own. */


#ifndef _NGX_MCP_CODE_H_INCLUDED_
#define _NGX_MCP_CODE_H_INCLUDED_


/* of JSON-RPC */
#define NGX_MCP_RPC_PARSE             -32700
#define NGX_MCP_RPC_INVALID_REQUEST   -32600
#define NGX_MCP_RPC_NO_METHOD         -32601
#define NGX_MCP_RPC_INVALID_PARAMS    -32602
#define NGX_MCP_RPC_INTERNAL          -32603

/* of this module */
#define NGX_MCP_RPC_NO_SESSION        -32001
#define NGX_MCP_RPC_LIMIT             -32010
#define NGX_MCP_RPC_LEASE             -32011
#define NGX_MCP_RPC_NOT_READY         -32012
#define NGX_MCP_RPC_TASK_FAILED       -32013
#define NGX_MCP_RPC_UPSTREAM          -32014
#define NGX_MCP_RPC_STORE             -32015

/* of MCP */
#define NGX_MCP_RPC_HEADER_MISMATCH   -32020
#define NGX_MCP_RPC_CAPABILITY        -32021
#define NGX_MCP_RPC_VERSION           -32022


#endif /* _NGX_MCP_CODE_H_INCLUDED_ */
