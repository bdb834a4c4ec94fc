
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The methods tools/call and tasks/create. */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_later.h"
#include "ngx_mcp_gateway.h"
#include "ngx_mcp_amend.h"
#include "ngx_mcp_input.h"
#include "ngx_mcp_failpoint.h"


typedef struct ngx_mcp_calling_s  ngx_mcp_calling_t;

struct ngx_mcp_calling_s {
    ngx_mcp_op_create_t  op;      /* must be the first */
    ngx_uint_t           mode;    /* NGX_MCP_WAIT_* */
    ngx_msec_t           after;   /* ms to wait for the result; 0: none */
    ngx_uint_t           plain;   /* 1: the client gets no task */
    ngx_mcp_job_t       *job;     /* background call, until it begins */
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_zone_t      *zone;    /* for ngx_mcp_announce() */
    ngx_mcp_id_t         id;      /* of the task of a plain call */
};


static ngx_mcp_calling_t *ngx_mcp_calling(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_str_t *name, ngx_mcp_tool_t *tool);
static const char *ngx_mcp_call_requested(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_new_t *nt);
static ngx_int_t ngx_mcp_call_support(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_tool_t *tool, ngx_mcp_json_t *task,
    ngx_uint_t *wants);
static ngx_int_t ngx_mcp_call_arguments(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_tool_t *tool, ngx_mcp_json_t *arguments,
    ngx_uint_t task);
static ngx_int_t ngx_mcp_call_task(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_uint_t wants, ngx_uint_t passes);
static ngx_uint_t ngx_mcp_call_is_retry(ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_call_job(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_mcp_calling_t *call);
static void ngx_mcp_call_left(void *data);
static ngx_int_t ngx_mcp_call_resume(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_calling_t *call);
static ngx_int_t ngx_mcp_called_again(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_called(ngx_http_request_t *r, ngx_mcp_op_t *o);
static void ngx_mcp_announce(void *data);


ngx_int_t
ngx_mcp_tools_call(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_uint_t                 wants, passes;
    ngx_mcp_tool_t            *tool;
    ngx_mcp_request_params_t  *params;
    ngx_mcp_loc_conf_t        *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    params = &ctx->params;

    if (params->name.type == NGX_MCP_JSON_DUPLICATE
        || params->arguments.type == NGX_MCP_JSON_DUPLICATE
        || params->task.type == NGX_MCP_JSON_DUPLICATE
        || params->ttl.type == NGX_MCP_JSON_DUPLICATE)
    {
        return ngx_mcp_duplicate(r, ctx);
    }

    if (params->name.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &params->name, &ctx->tool)
           != NGX_OK)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, "name must be a string");
    }

    if (params->arguments.type != NGX_MCP_JSON_NONE
        && params->arguments.type != NGX_MCP_JSON_OBJECT)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "arguments must be an object");
    }

    tool = lcf->tools ? ngx_mcp_tool_find(lcf->tools, &ctx->tool)
                      : NULL;
    passes = (tool == NULL && lcf->pass.len);

    if (passes) {
        tool = ngx_mcp_route_find(lcf, &ctx->tool);
    }

    if (tool == NULL) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "unknown tool, tools/list returns all names");
    }

    if (ctx->era == NGX_MCP_MODERN) {
        params->ttl.type = NGX_MCP_JSON_NONE;

        if (!passes
            && !ngx_mcp_modern_params(r, tool, &params->arguments))
        {
            return ngx_mcp_mismatch(r, ctx,
                                    "Header mismatch: an Mcp-Param header is "
                                    "missing, duplicate, or different from "
                                    "arguments");
        }
    }

    rc = ngx_mcp_call_support(r, ctx, tool, &params->task, &wants);

    if (rc == NGX_DECLINED && passes) {
        rc = ngx_mcp_pass_check_era(r, ctx);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_mcp_call_arguments(r, ctx,
                                    passes ? ngx_mcp_route_schema(lcf,
                                                                  &ctx->tool)
                                           : tool,
                                    &params->arguments, wants);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (passes && !wants) {
        return ngx_mcp_pass(r, ctx);
    }

    return ngx_mcp_call_task(r, ctx, tool, wants, passes);
}


/*
 * Determines whether the client gets a task.  NGX_DECLINED: the tool allows
 * that; any other value finalizes the request.
 */

static ngx_int_t
ngx_mcp_call_support(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_mcp_json_t *task, ngx_uint_t *wants)
{
    if (ctx->era == NGX_MCP_MODERN) {
        *wants = ctx->tasks && tool->support != NGX_MCP_FORBIDDEN;

        return (!*wants && tool->support == NGX_MCP_REQUIRED)
               ? ngx_mcp_no_capability(r, ctx) : NGX_DECLINED;
    }

    *wants = ctx->tasks && task->type != NGX_MCP_JSON_NONE;

    if (*wants && task->type != NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, "task must be an object");
    }

    if ((*wants && tool->support == NGX_MCP_FORBIDDEN)
        || (!*wants && tool->support == NGX_MCP_REQUIRED))
    {
        return ngx_mcp_error(r, ctx, NGX_HTTP_OK, NGX_MCP_RPC_NO_METHOD,
                             *wants ? "The tool cannot be called as a task, "
                                      "omit params.task"
                                    : "The tool must be called as a task, "
                                      "add params.task", NULL);
    }

    return NGX_DECLINED;
}


/*
 * Whether the arguments match the tool's schema; NGX_DECLINED: they do.  In the
 * legacy era, a call that asks for a task must not be answered with a result
 * of the tool, which is no CreateTaskResult; an error is always allowed.
 */

static ngx_int_t
ngx_mcp_call_arguments(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_mcp_json_t *arguments, ngx_uint_t task)
{
    ngx_int_t           rc;
    ngx_str_t           text;
    ngx_mcp_mismatch_t  mismatch;

    rc = ngx_mcp_arguments_check(r->pool, tool, arguments, &mismatch, &text);

    if (rc == NGX_OK) {
        return NGX_DECLINED;
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (task && ctx->era == NGX_MCP_LEGACY) {
        return ngx_mcp_arguments_error(r, ctx, "arguments", &mismatch, &text);
    }

    return ngx_mcp_arguments_result(r, ctx, &text);
}


/*
 * Creates a task for the call.  The client receives it only if wants is set;
 * otherwise it receives the result and never the task.
 */

static ngx_int_t
ngx_mcp_call_task(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_uint_t wants, ngx_uint_t passes)
{
    ngx_int_t           rc;
    const char         *err;
    ngx_mcp_calling_t  *call;

    call = ngx_mcp_calling(r, ctx, &ctx->tool, tool);
    if (call == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    err = ngx_mcp_call_requested(r, ctx, &call->op.task);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    if (passes && ngx_mcp_call_job(r, ctx, tool, call) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!wants) {
        /* no task for the client: its session's stream does not report it */
        call->plain = 1;
        call->mode = NGX_MCP_WAIT_CALL;
        ngx_str_null(&call->op.task.session);

        if (ctx->era == NGX_MCP_LEGACY) {

            /* notifications/cancelled finds the task by this id */

            rc = ngx_mcp_call_id(r, ctx, &ctx->rpc.id, &call->id);

            if (rc == NGX_ERROR) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            if (rc == NGX_OK) {
                call->op.id = &call->id;
            }
        }

    } else if (ctx->era == NGX_MCP_MODERN) {

        if (tool->asks == NGX_MCP_INPUT_FIRST && ngx_mcp_call_is_retry(ctx)) {
            call->mode = NGX_MCP_WAIT_TASK;

        } else {
            call->mode = NGX_MCP_WAIT_AFTER;
            call->after = tool->after;
        }
    }

    if (ctx->era == NGX_MCP_MODERN && !passes) {
        ctx->asked = (!wants || tool->asks != NGX_MCP_INPUT_TASK);
        return ngx_mcp_call_resume(r, ctx, call);
    }

    return ngx_mcp_request_op(r, &call->op.op, ngx_mcp_called);
}


/*
 * "input=first": the client has seen the questions, and gets a task now.  An
 * upstream may ask without a request state.
 */

static ngx_uint_t
ngx_mcp_call_is_retry(ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_json_t    responses, state;
    ngx_mcp_member_t  members[] = {
        { ngx_string("inputResponses"), &responses },
        { ngx_string("requestState"), &state }
    };

    (void) ngx_mcp_members(ctx, members, 2);

    return responses.type != NGX_MCP_JSON_NONE
           || state.type != NGX_MCP_JSON_NONE;
}


/* what the client requests of its task; returns NULL, or an error message */

static const char *
ngx_mcp_call_requested(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_new_t *nt)
{
    const char                *err;
    ngx_mcp_loc_conf_t        *lcf;
    ngx_mcp_request_params_t  *params;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    params = &ctx->params;

    err = ngx_mcp_token(r->pool, &params->token, &nt->token);

    if (err == NULL) {
        err = ngx_mcp_ttl(lcf, &params->ttl, &nt->ttl);
    }

    /* the others are additions to MCP */

    if (err == NULL && ctx->extended) {
        err = ngx_mcp_client_timeout(lcf, &params->timeout, &nt->policy);
    }

    if (err == NULL && ctx->extended) {
        err = ngx_mcp_client_priority(lcf, &params->priority, &nt->policy);
    }

    return err;
}


/* creates the background call, which this worker process will run */

static ngx_int_t
ngx_mcp_call_job(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_mcp_calling_t *call)
{
    ngx_uint_t           bound;
    ngx_pool_cleanup_t  *cln;
    ngx_mcp_new_t       *nt;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    call->job = ngx_mcp_job_new(r, ctx, tool, &bound);
    if (call->job == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_mcp_call_left;
    cln->data = call;
    call->ctx = ctx;

    nt = &call->op.task;
    nt->holder = ngx_mcp_job_holder(call->job);
    nt->policy.route = lcf->route;
    nt->policy.calls |= (uint8_t) ((bound ? NGX_MCP_BOUND : 0)
                                   | (tool->idempotent
                                      ? NGX_MCP_IDEMPOTENT : 0));

    return NGX_OK;
}


/* the request is freed, and with it a background call that has not begun */

static void
ngx_mcp_call_left(void *data)
{
    ngx_mcp_calling_t *call = data;

    if (call->job) {
        ngx_mcp_job_free(call->job);
    }

    ngx_mcp_job_left(call->ctx);
}


/* modern: a new call, with answers or without, or the next round trip */

static ngx_int_t
ngx_mcp_call_resume(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_calling_t *call)
{
    ngx_int_t               rc;
    ngx_mcp_resumed_call_t  resumed;

    rc = ngx_mcp_request_state_parse(r, ctx, &resumed);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (resumed.state.type == NGX_MCP_JSON_NONE) {

        if (resumed.responses.type != NGX_MCP_JSON_NONE) {
            call->op.task.responses = resumed.responses.text;
        }

        return ngx_mcp_request_op(r, &call->op.op, ngx_mcp_called);
    }

    if (resumed.responses.type == NGX_MCP_JSON_NONE) {
        resumed.responses.type = NGX_MCP_JSON_OBJECT;
        ngx_str_set(&resumed.responses.text, "{}");
    }

    ctx->call = call;

    return ngx_mcp_answer(r, &resumed.id, resumed.version, &resumed.responses,
                          ngx_mcp_called_again);
}


/* the answers of the next round trip are stored, or refused */

static ngx_int_t
ngx_mcp_called_again(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_op_update_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_update_t *) o;

    switch (o->reason) {

    case NGX_MCP_OK:
        /* without answers nothing has changed, and op->view is empty */
        return ngx_mcp_wait_outcome(r, ctx, &op->id, ctx->call->mode,
                                    ctx->call->after);

    case NGX_MCP_NOT_FOUND:
    case NGX_MCP_TERMINAL:
    case NGX_MCP_STATE_INVALID:
    case NGX_MCP_VERSION_CONFLICT:
        return ngx_mcp_request_state_invalid(r, ctx);
    }

    return ngx_mcp_refused(r, ctx, o->reason);
}


/*
 * An addition to MCP.  The action may be any name, whether a tool of that name
 * is listed or not.
 */

ngx_int_t
ngx_mcp_tasks_create(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t             rc;
    ngx_str_t             text;
    const char           *err;
    ngx_mcp_tool_t       *tool;
    ngx_mcp_json_t        action, params, metadata, token;
    ngx_mcp_calling_t    *call;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_mismatch_t    mismatch;
    ngx_mcp_member_t      members[] = {
        { ngx_string("action"), &action },
        { ngx_string("params"), &params },
        { ngx_string("metadata"), &metadata },
        { ngx_string("progressToken"), &token },
        { ngx_string("ttl"), &ctx->params.ttl },
        { ngx_string("timeout"), &ctx->params.timeout },
        { ngx_string("priority"), &ctx->params.priority }
    };

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (ngx_mcp_members(ctx, members, 7) != NGX_OK) {
        return ngx_mcp_duplicate(r, ctx);
    }

    if (action.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &action, &ctx->tool)
           != NGX_OK)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, "action must be a string");
    }

    if (params.type != NGX_MCP_JSON_NONE
        && params.type != NGX_MCP_JSON_OBJECT)
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "params.params must be an object");
    }

    err = ngx_mcp_input_metadata(r->pool, &metadata);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    tool = lcf->tools ? ngx_mcp_tool_find(lcf->tools, &ctx->tool)
                      : NULL;

    rc = ngx_mcp_arguments_check(r->pool, tool, &params, &mismatch, &text);

    if (rc == NGX_DECLINED) {
        return ngx_mcp_arguments_error(r, ctx, "params.params", &mismatch,
                                       &text);
    }

    call = ngx_mcp_calling(r, ctx, &ctx->tool, tool);
    if (rc != NGX_OK || call == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    call->op.task.metadata = metadata.text;

    if (token.type != NGX_MCP_JSON_NONE) {
        ctx->params.token = token;
    }

    err = ngx_mcp_call_requested(r, ctx, &call->op.task);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    return ngx_mcp_request_op(r, &call->op.op, ngx_mcp_called);
}


static ngx_mcp_calling_t *
ngx_mcp_calling(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_str_t *name,
    ngx_mcp_tool_t *tool)
{
    ngx_mcp_calling_t  *call;

    call = ngx_mcp_create_op(r, ctx, name, tool, sizeof(ngx_mcp_calling_t));

    if (call) {
        call->mode = NGX_MCP_WAIT_AFTER;
    }

    return call;
}


/* the task is created, or refused */

static ngx_int_t
ngx_mcp_called(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_http_cleanup_t  *cln;
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_out_t        out;
    ngx_mcp_job_t       *job;
    ngx_mcp_calling_t   *call;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    call = (ngx_mcp_calling_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_refused(r, ctx, o->reason);
    }

    ngx_mcp_set_task(r, ctx, &call->op.view);

    if (call->job) {

        if (call->after) {
            ngx_mcp_job_caller(call->job, ctx);
        }

        job = call->job;
        call->job = NULL;
        ngx_mcp_job_begin(job, &call->op.view);
    }

    if (call->plain || call->after) {
        return ngx_mcp_wait_outcome(r, ctx, &call->op.view.id, call->mode,
                                    call->after);
    }

    if (ctx->session.len) {
        cln = ngx_mcp_cleanup_add(r);
        if (cln == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        cln->handler = ngx_mcp_announce;
        cln->data = call;
        call->zone = lcf->zone;
    }

    ngx_mcp_out_answer(&out, r, ctx, 512);
    ngx_mcp_render_created(&out, ctx->era, &call->op.view);

    return ngx_mcp_out_result(r, &out);
}


/*
 * The response has been sent completely: from now on the stream of the session
 * may report the task.
 */

static void
ngx_mcp_announce(void *data)
{
    ngx_mcp_calling_t *call = data;

    ngx_mcp_op_update_t  *op;

    ngx_mcp_failpoint("announce");

    op = ngx_mcp_later_op(call->zone, NGX_MCP_OP_UPDATE);

    if (op) {
        op->id = call->op.view.id;
        op->event.type = NGX_MCP_EV_ANNOUNCE;
        ngx_mcp_later(&op->op);
    }
}
