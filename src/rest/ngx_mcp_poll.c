
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Long poll: returns a task as soon as its version is newer than the version
 * that the client knows.
 */


#include "ngx_mcp_rest.h"


typedef struct {
    ngx_mcp_wait_t  wait;         /* must be the first */
    uint64_t        version;      /* known to the client */
} ngx_mcp_poll_t;


static ngx_int_t ngx_mcp_poll_look(ngx_mcp_wait_t *w);


ngx_int_t
ngx_mcp_poll(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t            timeout, version;
    ngx_mcp_poll_t      *p;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    timeout = lcf->poll_timeout;
    version = 0;

    if (ngx_mcp_rest_arg(r, "timeout", &timeout) != NGX_OK
        || ngx_mcp_rest_arg(r, "version", &version) != NGX_OK)
    {
        return ngx_mcp_problem_invalid(r,
                                       "timeout and version must be integers, "
                                       "not negative");
    }

    p = ngx_pcalloc(r->pool, sizeof(ngx_mcp_poll_t));
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p->version = version;

    ngx_mcp_wait_init(&p->wait, r, ctx);
    p->wait.id = ctx->id;
    p->wait.task = 1;
    p->wait.limited = 1;
    p->wait.look = ngx_mcp_poll_look;
    p->wait.until = ngx_current_msec
                    + ngx_min((ngx_msec_t) timeout, lcf->max_poll_timeout);

    return ngx_mcp_wait(&p->wait);
}


static ngx_int_t
ngx_mcp_poll_look(ngx_mcp_wait_t *w)
{
    ngx_mcp_poll_t    *p;
    ngx_mcp_op_get_t   op;

    p = (ngx_mcp_poll_t *) w;

    ngx_memzero(&op, sizeof(ngx_mcp_op_get_t));
    op.op.type = NGX_MCP_OP_GET;
    op.op.pool = w->r->pool;
    op.id = w->id;
    op.owner = &w->ctx->owner;
    op.watch = 1;

    /* the payloads are read only if the task is sent */

    if (ngx_mcp_lookup(w->zone, &op.op) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (op.op.reason == NGX_MCP_OK
        && op.view.task.version <= p->version
        && !ngx_mcp_terminal(op.view.task.state))
    {
        return (ngx_current_msec < w->until && !ngx_exiting)
               ? NGX_DECLINED : ngx_mcp_rest_none(w->r);
    }

    op.want = NGX_MCP_WANT_REST;

    if (op.op.reason == NGX_MCP_OK
        && ngx_mcp_lookup(w->zone, &op.op) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (op.op.reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(w->r, op.op.reason);
    }

    return ngx_mcp_rest_send(w->r, w->ctx, &op.view, NGX_HTTP_OK);
}
