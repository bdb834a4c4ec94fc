
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Why an operation was refused.  Clients receive the names in
 * error.data.reason, so names must not change; the numbers are internal.
 */


#ifndef _NGX_MCP_REASON_H_INCLUDED_
#define _NGX_MCP_REASON_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef enum {
    NGX_MCP_OK = 0,

    NGX_MCP_NOT_FOUND,
    NGX_MCP_TERMINAL,
    NGX_MCP_STATE_INVALID,
    NGX_MCP_LEASE_LOST,
    NGX_MCP_PROGRESS_BACKWARDS,
    NGX_MCP_VERSION_CONFLICT,

    NGX_MCP_LIMIT_TASKS,
    NGX_MCP_LIMIT_OWNER_TASKS,
    NGX_MCP_LIMIT_OWNER_BYTES,
    NGX_MCP_PAYLOAD_TOO_LARGE,
    NGX_MCP_ZONE_FULL,
    NGX_MCP_LIMIT_WAITERS,
    NGX_MCP_LIMIT_RUNNING,

    NGX_MCP_STORE_UNAVAILABLE,
    NGX_MCP_STORE_FAILED,

    NGX_MCP_INVALID_NAME,
    NGX_MCP_INVALID_CURSOR,

    NGX_MCP_TOOL_NOT_FOUND,
    NGX_MCP_WORKER_NOT_FOUND,

    NGX_MCP_REASONS
} ngx_mcp_reason_e;


/* what a client receives */

typedef struct {
    ngx_str_t    word;              /* for programs, does not change */
    ngx_int_t    code;              /* in JSON-RPC */
    ngx_uint_t   status;            /* in plain HTTP */
    const char  *text;              /* for humans */
} ngx_mcp_refusal_t;


ngx_mcp_refusal_t *ngx_mcp_reason(ngx_uint_t reason);

#define ngx_mcp_reason_name(reason)  (&ngx_mcp_reason(reason)->word)


#endif /* _NGX_MCP_REASON_H_INCLUDED_ */
