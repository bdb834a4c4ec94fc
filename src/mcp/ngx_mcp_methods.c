
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The methods of the endpoint, in both eras. */


#include "ngx_mcp_methods.h"


/* the most frequent methods come first */

static ngx_mcp_method_t  ngx_mcp_methods[] = {

    { ngx_string("tasks/get"), ngx_mcp_tasks_get,
      NGX_MCP_CALLERS_TASKS, NGX_MCP_CALLERS_ALL, ngx_mcp_param_offset(id) },
    { ngx_string("tools/call"), ngx_mcp_tools_call,
      NGX_MCP_CALLERS_ALL, NGX_MCP_CALLERS_ALL, ngx_mcp_param_offset(name) },
    { ngx_string("tasks/result"), ngx_mcp_tasks_result,
      NGX_MCP_CALLERS_TASKS, NGX_MCP_CALLERS_NONE, 0 },
    { ngx_string("tasks/update"), ngx_mcp_tasks_update,
      NGX_MCP_CALLERS_TASKS, NGX_MCP_CALLERS_ALL, ngx_mcp_param_offset(id) },
    { ngx_string("tasks/cancel"), ngx_mcp_tasks_cancel,
      NGX_MCP_CALLERS_TASKS, NGX_MCP_CALLERS_ALL, ngx_mcp_param_offset(id) },
    { ngx_string("tasks/list"), ngx_mcp_tasks_list,
      NGX_MCP_CALLERS_TASKS, NGX_MCP_CALLERS_EXTENDED, 0 },
    { ngx_string("tasks/create"), ngx_mcp_tasks_create,
      NGX_MCP_CALLERS_TASKS, NGX_MCP_CALLERS_EXTENDED, 0 },
    { ngx_string("tasks/send"), ngx_mcp_tasks_create,
      NGX_MCP_CALLERS_TASKS, NGX_MCP_CALLERS_EXTENDED, 0 },
    { ngx_string("tasks/progress"), ngx_mcp_tasks_progress,
      NGX_MCP_CALLERS_TASKS, NGX_MCP_CALLERS_EXTENDED, 0 },
    { ngx_string("tools/list"), ngx_mcp_tools_list,
      NGX_MCP_CALLERS_ALL, NGX_MCP_CALLERS_ALL, 0 },
    { ngx_string("subscriptions/listen"), ngx_mcp_listen,
      NGX_MCP_CALLERS_NONE, NGX_MCP_CALLERS_ALL, 0 },
    { ngx_string("server/discover"), ngx_mcp_discover,
      NGX_MCP_CALLERS_NONE, NGX_MCP_CALLERS_ALL, 0 },
    { ngx_string("initialize"), ngx_mcp_initialize,
      NGX_MCP_CALLERS_ALL, NGX_MCP_CALLERS_NONE, 0 },
    { ngx_string("ping"), ngx_mcp_ping,
      NGX_MCP_CALLERS_ALL, NGX_MCP_CALLERS_NONE, 0 },

    { ngx_null_string, NULL, 0, 0, 0 }
};


ngx_mcp_method_t *
ngx_mcp_method(ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_method_find(ngx_mcp_methods, &ctx->rpc.method);
}


/* whether a client of that era with these capabilities may call the method */

ngx_uint_t
ngx_mcp_method_is_for(ngx_mcp_method_t *m, ngx_mcp_ctx_t *ctx)
{
    switch ((ctx->era == NGX_MCP_MODERN) ? m->modern : m->legacy) {

    case NGX_MCP_CALLERS_ALL:
        return 1;

    case NGX_MCP_CALLERS_TASKS:
        return ctx->tasks;

    case NGX_MCP_CALLERS_EXTENDED:
        return ctx->extended;

    default: /* NGX_MCP_CALLERS_NONE */
        return 0;
    }
}
