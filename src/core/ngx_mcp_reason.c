
#include "ngx_mcp_reason.h"


static ngx_str_t  ngx_mcp_reasons[] = {
    ngx_string("ok"),
    ngx_string("task_not_found"),
    ngx_string("task_terminal"),
    ngx_string("task_state_invalid"),
    ngx_string("lease_lost"),
    ngx_string("progress_backwards"),
    ngx_string("version_conflict"),
    ngx_string("limit_tasks"),
    ngx_string("limit_owner_tasks"),
    ngx_string("limit_owner_bytes"),
    ngx_string("payload_too_large"),
    ngx_string("zone_full"),
    ngx_string("limit_waiters"),
    ngx_string("limit_running"),
    ngx_string("store_unavailable"),
    ngx_string("store_failed"),
    ngx_string("invalid_name"),
    ngx_string("invalid_cursor"),
    ngx_string("tool_not_found"),
    ngx_string("worker_not_found")
};

static ngx_str_t  ngx_mcp_unknown_reason = ngx_string("unknown");


ngx_str_t *
ngx_mcp_reason_name(ngx_uint_t reason)
{
    if (reason >= sizeof(ngx_mcp_reasons) / sizeof(ngx_str_t)) {
        return &ngx_mcp_unknown_reason;
    }

    return &ngx_mcp_reasons[reason];
}
