
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Fills in a new task from the configuration of its location. */


#include "ngx_mcp_http.h"
#include "ngx_mcp_wake.h"


/*
 * Returns a struct of that size that begins with the operation; NULL: no
 * memory.  The tool is NULL if it is not listed.  This worker process holds a
 * task of a session until it is announced, see ngx_mcp_announce().
 */

void *
ngx_mcp_create_op(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_str_t *name,
    ngx_mcp_tool_t *tool, size_t size)
{
    ngx_mcp_new_t        *nt;
    ngx_mcp_policy_t     *policy;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_op_create_t  *op;

    op = ngx_mcp_op(r, NGX_MCP_OP_CREATE, size);

    if (op == NULL || ngx_mcp_trace_keep(r, ctx) != NGX_OK) {
        return NULL;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    nt = &op->task;
    nt->owner = ctx->owner;
    nt->session = ctx->session;
    nt->holder = ctx->session.len ? ngx_mcp_stream_new(lcf->zone->local) : 0;
    nt->tool = *name;
    nt->method = ctx->rpc.method;
    nt->params = ctx->rpc.params.text;
    nt->max_payload = lcf->max_payload;
    nt->max_owner_bytes = lcf->max_owner_bytes;
    nt->max_owner_tasks = (uint32_t) lcf->max_owner_tasks;

#define ngx_mcp_own(field)                                                    \
    (tool && tool->field != NGX_CONF_UNSET_MSEC ? tool->field : lcf->field)

#define ngx_mcp_seconds(ms)                                                   \
    ((ms) == NGX_MCP_UNLIMITED ? NGX_MCP_UNLIMITED                            \
                               : (uint32_t) (((ms) + 999) / 1000))

    policy = &nt->policy;
    policy->lease = (uint32_t) ngx_mcp_own(lease);
    policy->backoff = (uint32_t) ngx_mcp_own(backoff);
    policy->queue_timeout = (uint32_t) ngx_mcp_own(queue_timeout);
    policy->run_timeout = (uint32_t) ngx_mcp_own(run_timeout);
    policy->poll_interval = (uint32_t) lcf->poll_interval;
    policy->keep_completed = ngx_mcp_seconds(lcf->keep_completed);
    policy->keep_failed = ngx_mcp_seconds(lcf->keep_failed);
    policy->keep_cancelled = ngx_mcp_seconds(lcf->keep_cancelled);
    policy->attempts = (uint8_t) (tool && tool->attempts != NGX_CONF_UNSET
                                  ? tool->attempts
                                  : (ngx_int_t) lcf->retries + 1);
    policy->priority = tool ? (uint8_t) tool->priority : 1;
    policy->calls = (uint8_t) ((tool ? tool->retry : 0)
                               | ((ctx->rest || ctx->era == NGX_MCP_MODERN)
                                  ? NGX_MCP_ASKABLE : 0));

    nt->ttl = ngx_mcp_own(ttl);

    if (nt->ttl == NGX_MCP_UNLIMITED) {
        nt->ttl = NGX_MCP_NEVER;
    }

    return op;
}
