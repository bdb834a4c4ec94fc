
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

/* of the SDKs, for the legacy era */
#define NGX_MCP_RPC_NO_SESSION        -32001

/*
 * Of this module, outside of -32768 to -32000: MCP 2026-07-28 forbids new
 * codes in -32000 to -32019 and reserves -32020 to -32099 for itself.
 */
#define NGX_MCP_RPC_LIMIT             -31010
#define NGX_MCP_RPC_LEASE             -31011
#define NGX_MCP_RPC_NOT_READY         -31012
#define NGX_MCP_RPC_TASK_FAILED       -31013
#define NGX_MCP_RPC_UPSTREAM          -31014
#define NGX_MCP_RPC_STORE             -31015

/* of MCP */
#define NGX_MCP_RPC_HEADER_MISMATCH   -32020
#define NGX_MCP_RPC_CAPABILITY        -32021
#define NGX_MCP_RPC_VERSION           -32022

/* of MCP 2025-11-25; must not be sent in the modern era */
#define NGX_MCP_RPC_URL_REQUIRED      -32042


#endif /* _NGX_MCP_CODE_H_INCLUDED_ */
