
/*
 * Why an operation was refused.  The names go to clients in error.data.reason
 * and are stable; the numbers are internal.
 */


#ifndef _NGX_HTTP_MCP_TASKS_REASON_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_REASON_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef enum {
    NGX_HTTP_MCP_TASKS_OK = 0,

    NGX_HTTP_MCP_TASKS_NOT_FOUND,
    NGX_HTTP_MCP_TASKS_TERMINAL,
    NGX_HTTP_MCP_TASKS_STATE_INVALID,
    NGX_HTTP_MCP_TASKS_LEASE_LOST,
    NGX_HTTP_MCP_TASKS_PROGRESS_BACKWARDS,
    NGX_HTTP_MCP_TASKS_VERSION_CONFLICT,

    NGX_HTTP_MCP_TASKS_LIMIT_TASKS,
    NGX_HTTP_MCP_TASKS_LIMIT_OWNER_TASKS,
    NGX_HTTP_MCP_TASKS_LIMIT_OWNER_BYTES,
    NGX_HTTP_MCP_TASKS_PAYLOAD_TOO_LARGE,
    NGX_HTTP_MCP_TASKS_ZONE_FULL,
    NGX_HTTP_MCP_TASKS_LIMIT_WAITERS,
    NGX_HTTP_MCP_TASKS_LIMIT_RUNNING,

    NGX_HTTP_MCP_TASKS_INVALID_NAME,
    NGX_HTTP_MCP_TASKS_INVALID_CURSOR,

    NGX_HTTP_MCP_TASKS_REASONS
} ngx_http_mcp_tasks_reason_e;


ngx_str_t *ngx_http_mcp_tasks_reason_name(ngx_uint_t reason);


#endif /* _NGX_HTTP_MCP_TASKS_REASON_H_INCLUDED_ */
