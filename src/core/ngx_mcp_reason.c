
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_reason.h"
#include "ngx_mcp_code.h"


static ngx_mcp_refusal_t  ngx_mcp_reasons[] = {

    { ngx_string("ok"),
      NGX_MCP_RPC_INTERNAL, 500, "Internal error" },
    { ngx_string("task_not_found"),
      NGX_MCP_RPC_INVALID_PARAMS, 404, "Task not found" },
    { ngx_string("task_terminal"),
      NGX_MCP_RPC_INVALID_PARAMS, 409, "The task has ended" },
    { ngx_string("task_state_invalid"),
      NGX_MCP_RPC_INVALID_PARAMS, 409,
      "Not allowed in the current state of the task" },
    { ngx_string("lease_lost"),
      NGX_MCP_RPC_LEASE, 500, "The lease token is not valid" },
    { ngx_string("progress_backwards"),
      NGX_MCP_RPC_INVALID_PARAMS, 500, "Progress must not decrease" },
    { ngx_string("version_conflict"),
      NGX_MCP_RPC_INTERNAL, 409, "Internal error" },

    { ngx_string("limit_tasks"),
      NGX_MCP_RPC_LIMIT, 503, "Too many tasks in the zone, retry later" },
    { ngx_string("limit_owner_tasks"),
      NGX_MCP_RPC_LIMIT, 429, "The owner has too many tasks" },
    { ngx_string("limit_owner_bytes"),
      NGX_MCP_RPC_LIMIT, 429, "The tasks of the owner exceed the size limit" },
    { ngx_string("payload_too_large"),
      NGX_MCP_RPC_INVALID_PARAMS, 413,
      "The data exceeds the payload limit of a task" },
    { ngx_string("zone_full"),
      NGX_MCP_RPC_LIMIT, 503, "Not enough memory in the zone, retry later" },
    { ngx_string("limit_waiters"),
      NGX_MCP_RPC_LIMIT, 429, "Too many requests are waiting, retry later" },
    { ngx_string("limit_running"),
      NGX_MCP_RPC_INTERNAL, 500, "Internal error" },

    { ngx_string("store_unavailable"),
      NGX_MCP_RPC_STORE, 503, "The store is unavailable, retry later" },
    { ngx_string("store_failed"),
      NGX_MCP_RPC_STORE, 503,
      "The store failed, check the task before you retry" },

    { ngx_string("invalid_name"),
      NGX_MCP_RPC_INVALID_PARAMS, 400,
      "The tool name is empty or longer than 1024 bytes" },
    { ngx_string("invalid_cursor"),
      NGX_MCP_RPC_INTERNAL, 400, "Internal error" },

    { ngx_string("tool_not_found"),
      NGX_MCP_RPC_INTERNAL, 404, "Internal error" },
    { ngx_string("worker_not_found"),
      NGX_MCP_RPC_INTERNAL, 404, "Internal error" },

    /* NGX_MCP_REASONS and greater numbers */
    { ngx_string("unknown"),
      NGX_MCP_RPC_INTERNAL, 500, "Internal error" }
};


/* the entries are in the order of ngx_mcp_reason_e, with one more */

typedef char  ngx_mcp_reasons_fit[
    sizeof(ngx_mcp_reasons) / sizeof(ngx_mcp_refusal_t) == NGX_MCP_REASONS + 1
    ? 1 : -1
];


ngx_mcp_refusal_t *
ngx_mcp_reason(ngx_uint_t reason)
{
    return &ngx_mcp_reasons[ngx_min(reason, NGX_MCP_REASONS)];
}
