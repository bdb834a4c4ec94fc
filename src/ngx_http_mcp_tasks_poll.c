
/* Long-poll: a task as soon as it is newer than what the client knows. */


#include "ngx_http_mcp_tasks_module.h"


typedef struct {
    ngx_http_mcp_tasks_wait_t   wait;         /* must be the first */
    uint64_t                    version;      /* known to the client */
} ngx_http_mcp_tasks_poll_t;


static ngx_int_t ngx_http_mcp_tasks_poll_look(ngx_http_mcp_tasks_wait_t *w);
static ngx_int_t ngx_http_mcp_tasks_poll_arg(ngx_http_request_t *r,
    const char *name, size_t len, ngx_int_t *value);


ngx_int_t
ngx_http_mcp_tasks_poll(ngx_http_request_t *r, ngx_http_mcp_tasks_ctx_t *ctx,
    ngx_http_mcp_tasks_id_t *id)
{
    ngx_int_t                       timeout, version;
    ngx_http_mcp_tasks_poll_t      *p;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;
    static ngx_str_t                invalid = ngx_string("invalid_argument");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    timeout = lcf->poll_timeout;
    version = 0;

    if (ngx_http_mcp_tasks_poll_arg(r, "timeout", 7, &timeout) != NGX_OK
        || ngx_http_mcp_tasks_poll_arg(r, "version", 7, &version) != NGX_OK)
    {
        return ngx_http_mcp_tasks_problem(r, NGX_HTTP_BAD_REQUEST,
                                          &invalid);
    }

    p = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_tasks_poll_t));
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p->version = version;

    ngx_http_mcp_tasks_wait_init(&p->wait, r, ctx);
    p->wait.id = *id;
    p->wait.task = 1;
    p->wait.limited = 1;
    p->wait.look = ngx_http_mcp_tasks_poll_look;
    p->wait.until = ngx_current_msec
                    + ngx_min((ngx_msec_t) timeout, lcf->max_poll_timeout);

    return ngx_http_mcp_tasks_wait(&p->wait);
}


/* a number; the value stays as it is, if there is none */

static ngx_int_t
ngx_http_mcp_tasks_poll_arg(ngx_http_request_t *r, const char *name,
    size_t len, ngx_int_t *value)
{
    ngx_str_t  arg;

    if (ngx_http_arg(r, (u_char *) name, len, &arg) != NGX_OK) {
        return NGX_OK;
    }

    *value = ngx_atoi(arg.data, arg.len);

    return (*value == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_mcp_tasks_poll_look(ngx_http_mcp_tasks_wait_t *w)
{
    u_char                       etag[NGX_INT64_LEN + 2];
    ngx_str_t                    text, value;
    ngx_http_mcp_tasks_out_t     out;
    ngx_http_mcp_tasks_poll_t   *p;
    ngx_http_mcp_tasks_op_get_t  op;

    p = (ngx_http_mcp_tasks_poll_t *) w;

    ngx_memzero(&op, sizeof(ngx_http_mcp_tasks_op_get_t));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_GET;
    op.op.pool = w->r->pool;
    op.id = w->id;
    op.owner = &w->ctx->owner;
    op.watch = 1;

    /* the record alone; its bytes only if it is to be sent */

    if (ngx_http_mcp_tasks_now(w->zcf, &op.op) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (op.op.reason == NGX_HTTP_MCP_TASKS_OK
        && op.view.task.version <= p->version
        && !ngx_http_mcp_tasks_terminal(op.view.task.state))
    {
        return (ngx_current_msec < w->until && !ngx_exiting)
               ? NGX_DECLINED : ngx_http_mcp_tasks_rest_none(w->r);
    }

    op.want = NGX_HTTP_MCP_TASKS_WANT_REST;

    if (op.op.reason == NGX_HTTP_MCP_TASKS_OK
        && ngx_http_mcp_tasks_now(w->zcf, &op.op) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (op.op.reason != NGX_HTTP_MCP_TASKS_OK) {
        return ngx_http_mcp_tasks_rest_refused(w->r, op.op.reason);
    }

    ngx_http_mcp_tasks_known(w->r, w->ctx, &op.view);

    ngx_http_mcp_tasks_out_init(&out, w->r->pool, 512);
    ngx_http_mcp_tasks_render_rest(&out, &op.view, 1);

    value.len = ngx_sprintf(etag, "\"%uL\"", op.view.task.version) - etag;
    value.data = ngx_pnalloc(w->r->pool, value.len);

    if (value.data == NULL
        || ngx_http_mcp_tasks_out_end(&out, &text) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(value.data, etag, value.len);

    if (ngx_http_mcp_tasks_add_header(w->r, "ETag", &value) != NGX_OK
        || ngx_http_mcp_tasks_no_store(w->r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_tasks_send(w->r, NGX_HTTP_OK, &text, 1);
}
