
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Actions of the operator on tasks, tools and workers. */


#include "ngx_mcp_console.h"
#include "ngx_mcp_gateway.h"


/* a new task, and its background call until that begins */

typedef struct {
    ngx_mcp_op_create_t  op;      /* must be the first */
    ngx_mcp_job_t       *job;     /* NULL: none, or begun */
} ngx_mcp_retrying_t;


typedef struct {
    ngx_mcp_op_control_t  op;      /* must be the first */
    const char           *what;    /* "tool" or "worker" */
    const char           *flag;    /* "paused" or "draining" */
} ngx_mcp_controlling_t;


static ngx_int_t ngx_mcp_retry_read(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_retry_refused(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_retry_job(ngx_http_request_t *r,
    ngx_mcp_retrying_t *retry, ngx_mcp_view_t *v);
static void ngx_mcp_retry_left(void *data);
static ngx_int_t ngx_mcp_retry_created(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_retry_done(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_console_deleted(ngx_http_request_t *r,
    ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_control(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t type, ngx_uint_t on);
static ngx_int_t ngx_mcp_controlled(ngx_http_request_t *r, ngx_mcp_op_t *o);


/*
 * A finished task never changes.  A retry creates a new task with the same
 * arguments and policy, without a reference to the old one.
 */

ngx_int_t
ngx_mcp_console_retry(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_rest_get(r, ctx, ngx_mcp_retry_read);
}


static ngx_int_t
ngx_mcp_retry_read(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_new_t       *nt;
    ngx_mcp_view_t      *v;
    ngx_mcp_retrying_t  *retry;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    v = &((ngx_mcp_op_get_t *) o)->view;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    if (!ngx_mcp_retryable(lcf->zone, v)) {
        return ngx_mcp_retry_refused(r);
    }

    retry = ngx_mcp_op(r, NGX_MCP_OP_CREATE, sizeof(ngx_mcp_retrying_t));
    if (retry == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    nt = &retry->op.task;
    nt->owner = v->owner;
    nt->tool = v->tool;
    nt->method = v->method;
    nt->params = v->payload[NGX_MCP_PARAMS];
    nt->metadata = v->payload[NGX_MCP_METADATA];
    nt->policy = v->task.policy;
    nt->ttl = v->task.ttl;
    nt->max_payload = lcf->max_payload;
    nt->max_owner_bytes = lcf->max_owner_bytes;
    nt->max_owner_tasks = (uint32_t) lcf->max_owner_tasks;

    if (nt->policy.route
        && ngx_mcp_retry_job(r, retry, v) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_request_op(r, &retry->op.op, ngx_mcp_retry_created);
}


static ngx_int_t
ngx_mcp_retry_refused(ngx_http_request_t *r)
{
    static ngx_str_t  reason = ngx_string("not_retryable");

    return ngx_mcp_problem(r, NGX_HTTP_CONFLICT, &reason, NULL);
}


/* this worker process runs the call, as if it had taken it over */

static ngx_int_t
ngx_mcp_retry_job(ngx_http_request_t *r, ngx_mcp_retrying_t *retry,
    ngx_mcp_view_t *v)
{
    ngx_pool_cleanup_t  *cln;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    retry->job = ngx_mcp_job_again(lcf->zone, v);
    if (retry->job == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_mcp_retry_left;
    cln->data = retry;
    retry->op.task.holder = ngx_mcp_job_holder(retry->job);

    return NGX_OK;
}


/* the request is freed, and with it a background call that has not begun */

static void
ngx_mcp_retry_left(void *data)
{
    ngx_mcp_retrying_t *retry = data;

    if (retry->job) {
        ngx_mcp_job_free(retry->job);
    }
}


static ngx_int_t
ngx_mcp_retry_created(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    u_char              *p;
    ngx_str_t            value;
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_job_t       *job;
    ngx_mcp_retrying_t  *retry;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    retry = (ngx_mcp_retrying_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    job = retry->job;

    if (job) {
        retry->job = NULL;
        ngx_mcp_job_begin(job, &retry->op.view);
    }

    ctx->id = retry->op.view.id;

    /* relative to the URI of the retried task */

    p = ngx_pnalloc(r->pool, 3 + NGX_MCP_ID_TEXT);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    value.data = p;
    value.len = 3 + NGX_MCP_ID_TEXT;
    p = ngx_cpymem(p, "../", 3);
    (void) ngx_mcp_id_text(p, &ctx->id);

    if (ngx_mcp_add_header(r, "Location", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_rest_get(r, ctx, ngx_mcp_retry_done);
}


static ngx_int_t
ngx_mcp_retry_done(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    return ngx_mcp_rest_send(r, ctx, &((ngx_mcp_op_get_t *) o)->view,
                             NGX_HTTP_CREATED);
}


/* Deletes a task in any state.  The next request of its worker is refused. */

ngx_int_t
ngx_mcp_console_delete(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_op_delete_t  *op;

    op = ngx_mcp_op(r, NGX_MCP_OP_DELETE, sizeof(ngx_mcp_op_delete_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op->id = ctx->id;

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_console_deleted);
}


static ngx_int_t
ngx_mcp_console_deleted(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    return ngx_mcp_rest_none(r);
}


ngx_int_t
ngx_mcp_console_pause(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_control(r, ctx, NGX_MCP_OP_PAUSE, 1);
}


ngx_int_t
ngx_mcp_console_unpause(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_control(r, ctx, NGX_MCP_OP_PAUSE, 0);
}


ngx_int_t
ngx_mcp_console_drain(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_control(r, ctx, NGX_MCP_OP_DRAIN, 1);
}


ngx_int_t
ngx_mcp_console_undrain(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_control(r, ctx, NGX_MCP_OP_DRAIN, 0);
}


/* pauses a tool or drains a worker, or ends that; the body has the name */

static ngx_int_t
ngx_mcp_control(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_uint_t type,
    ngx_uint_t on)
{
    ngx_mcp_json_t          name;
    ngx_mcp_controlling_t  *c;
    ngx_mcp_member_t        members[] = {
        { ngx_null_string, &name }
    };

    c = ngx_mcp_op(r, type, sizeof(ngx_mcp_controlling_t));
    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (type == NGX_MCP_OP_PAUSE) {
        c->what = "tool";
        c->flag = "paused";

    } else {
        c->what = "worker";
        c->flag = "draining";
    }

    c->op.on = on;
    members[0].name.data = (u_char *) c->what;
    members[0].name.len = ngx_strlen(c->what);

    if (ngx_mcp_json_members(&ctx->body, members, 1) != NGX_OK) {
        return ngx_mcp_problem_invalid(r, "duplicate member in the body");
    }

    if (name.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &name, &c->op.name)
           != NGX_OK)
    {
        return ngx_mcp_problem_invalid(r, "tool or worker must be a string");
    }

    return ngx_mcp_request_op(r, &c->op.op, ngx_mcp_controlled);
}


static ngx_int_t
ngx_mcp_controlled(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_str_t               text;
    ngx_mcp_out_t           out;
    ngx_mcp_controlling_t  *c;

    c = (ngx_mcp_controlling_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    ngx_mcp_out_init(&out, r->pool, 64 + c->op.name.len);
    ngx_mcp_out_lit(&out, "{\"");
    ngx_mcp_out_text(&out, c->what);
    ngx_mcp_out_lit(&out, "\":");
    ngx_mcp_out_string(&out, &c->op.name);
    ngx_mcp_out_lit(&out, ",\"");
    ngx_mcp_out_text(&out, c->flag);
    ngx_mcp_out_lit(&out, "\":");
    ngx_mcp_out_flag(&out, c->op.on);
    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &text) != NGX_OK
        || ngx_mcp_no_store(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_send(r, NGX_HTTP_OK, &text, 1);
}
