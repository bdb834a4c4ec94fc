
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Tasks over plain HTTP: REST, and in part the console. */


#include "ngx_mcp_rest.h"
#include "ngx_mcp_amend.h"
#include "ngx_mcp_input.h"


static const char *ngx_mcp_rest_criteria(ngx_http_request_t *r,
    ngx_mcp_op_list_t *op);
static ngx_int_t ngx_mcp_rest_listed(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_rest_params(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *arguments);
static ngx_int_t ngx_mcp_rest_created(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_rest_location(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_rest_got(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_rest_ended(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_rest_failed(ngx_http_request_t *r, ngx_mcp_view_t *v);
static ngx_int_t ngx_mcp_rest_changed(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_rest_answered(ngx_http_request_t *r, ngx_mcp_op_t *o);


/* GET tasks: the tasks of the owner, newest first */

ngx_int_t
ngx_mcp_rest_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    const char         *err;
    ngx_mcp_op_list_t  *op;
    static ngx_str_t    no_owner = ngx_string("owner_required");

    if (ctx->owner.len == 0) {
        return ngx_mcp_problem(r, NGX_HTTP_FORBIDDEN, &no_owner, NULL);
    }

    op = ngx_mcp_op(r, NGX_MCP_OP_LIST, sizeof(ngx_mcp_op_list_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op->owner = ctx->owner;
    op->want = NGX_MCP_WANT_TASK | NGX_MCP_WANT_TOOL;

    err = ngx_mcp_rest_criteria(r, op);

    if (err) {
        return ngx_mcp_problem_invalid(r, err);
    }

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_rest_listed);
}


/* parses the query; returns NULL, or an error message */

static const char *
ngx_mcp_rest_criteria(ngx_http_request_t *r, ngx_mcp_op_list_t *op)
{
    ngx_str_t            cursor, status;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (ngx_mcp_rest_limit(r, &op->limit) != NGX_OK) {
        return "limit must be an integer from 1 to 100";
    }

    if (ngx_mcp_rest_text(r, "tool", &op->tool) != NGX_OK
        || ngx_mcp_rest_text(r, "status", &status) != NGX_OK
        || ngx_mcp_rest_text(r, "cursor", &cursor) != NGX_OK)
    {
        return "invalid percent-encoding in the query";
    }

    if (status.len) {
        op->states = ngx_mcp_states_of(NGX_MCP_MODERN, &status);
        if (op->states == 0) {
            return "status must be working, input_required, completed, failed "
                   "or cancelled";
        }
    }

    if (cursor.len
        && ngx_mcp_cursor_parse(lcf->zone, &cursor,
                                &op->owner, &op->after)
           != NGX_OK)
    {
        return "cursor must be nextCursor of an earlier page";
    }

    return NULL;
}


/* a text of the query, decoded; empty: missing; NGX_DECLINED: invalid escape */

ngx_int_t
ngx_mcp_rest_text(ngx_http_request_t *r, const char *name, ngx_str_t *value)
{
    u_char     *p, *dst, *src;
    size_t      i;
    ngx_str_t   arg;

    ngx_str_null(value);

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &arg) != NGX_OK) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, arg.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    /* "+" is a space, as in forms and URLSearchParams */

    for (i = 0; i < arg.len; i++) {

        /*
         * ngx_unescape_uri() would drop an incomplete escape, and the criterion
         * would change
         */

        if (arg.data[i] == '%'
            && (arg.len - i < 3 || ngx_hextoi(&arg.data[i + 1], 2) < 0))
        {
            return NGX_DECLINED;
        }

        p[i] = (arg.data[i] == '+') ? ' ' : arg.data[i];
    }

    dst = p;
    src = p;
    ngx_unescape_uri(&dst, &src, arg.len, 0);

    value->data = p;
    value->len = dst - p;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_rest_listed(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_str_t            text;
    ngx_uint_t           i;
    ngx_mcp_out_t        out;
    ngx_mcp_op_list_t   *op;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_list_t *) o;

    ngx_mcp_out_init(&out, r->pool, 128 + op->n * 320);
    ngx_mcp_out_lit(&out, "{\"tasks\":[");

    for (i = 0; i < op->n; i++) {

        if (i) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_render_rest(&out, &op->views[i], 0);
    }

    ngx_mcp_out_lit(&out, "]");

    ngx_mcp_render_cursor(&out, lcf->zone, &op->owner, &op->next);
    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &text) != NGX_OK
        || ngx_mcp_no_store(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_send(r, NGX_HTTP_OK, &text, 1);
}


/* POST tasks: tool, arguments, ttlMs, timeoutMs, priority, metadata */

ngx_int_t
ngx_mcp_rest_create(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t             rc;
    ngx_str_t             text;
    const char           *err;
    ngx_mcp_tool_t       *tool;
    ngx_mcp_json_t        name, arguments, ttl, metadata, timeout, priority;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_mismatch_t    mismatch;
    ngx_mcp_op_create_t  *op;
    ngx_mcp_member_t      members[] = {
        { ngx_string("tool"), &name },
        { ngx_string("arguments"), &arguments },
        { ngx_string("ttlMs"), &ttl },
        { ngx_string("metadata"), &metadata },
        { ngx_string("timeoutMs"), &timeout },
        { ngx_string("priority"), &priority }
    };

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (ngx_mcp_json_members(&ctx->body, members, 6) != NGX_OK) {
        return ngx_mcp_problem_invalid(r, "duplicate member in the body");
    }

    if (name.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &name, &ctx->tool)
           != NGX_OK)
    {
        return ngx_mcp_problem_invalid(r, "tool must be a string");
    }

    if (arguments.type != NGX_MCP_JSON_NONE
        && arguments.type != NGX_MCP_JSON_OBJECT)
    {
        return ngx_mcp_problem_invalid(r, "arguments must be an object");
    }

    err = ngx_mcp_input_metadata(r->pool, &metadata);

    if (err) {
        return ngx_mcp_problem_invalid(r, err);
    }

    tool = lcf->tools ? ngx_mcp_tool_find(lcf->tools, &ctx->tool)
                      : NULL;

    if (tool == NULL && lcf->pass.len) {
        /* tools of the upstream can be called only over MCP */
        return ngx_mcp_problem_invalid(r,
                                       "unknown tool, only tools of the "
                                       "mcp_tasks_tools file can be used here");
    }

    if (tool && tool->support == NGX_MCP_FORBIDDEN) {
        return ngx_mcp_problem_invalid(r,
                                       "the tool cannot be called as a task");
    }

    rc = ngx_mcp_arguments_check(r->pool, tool, &arguments, &mismatch, &text);

    if (rc == NGX_DECLINED) {
        return ngx_mcp_arguments_problem(r, &mismatch, &text);
    }

    if (rc != NGX_OK || ngx_mcp_rest_params(r, ctx, &arguments) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op = ngx_mcp_create_op(r, ctx, &ctx->tool, tool,
                           sizeof(ngx_mcp_op_create_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op->task.metadata = metadata.text;

    err = ngx_mcp_ttl(lcf, &ttl, &op->task.ttl);

    if (err) {
        return ngx_mcp_problem_invalid(r,
                                       "ttlMs must be a positive integer or "
                                       "null");
    }

    if (ngx_mcp_client_timeout(lcf, &timeout, &op->task.policy)) {
        return ngx_mcp_problem_invalid(r,
                                       "timeoutMs must be a positive integer");
    }

    err = ngx_mcp_client_priority(lcf, &priority, &op->task.policy);

    if (err) {
        return ngx_mcp_problem_invalid(r, err);
    }

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_rest_created);
}


/* the params of an equivalent tools/call, so that workers see no difference */

static ngx_int_t
ngx_mcp_rest_params(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *arguments)
{
    ngx_mcp_out_t  out;

    ngx_str_set(&ctx->rpc.method, "tools/call");

    ngx_mcp_out_init(&out, r->pool, ctx->tool.len + arguments->text.len + 64);
    ngx_mcp_out_lit(&out, "{\"name\":");
    ngx_mcp_out_string(&out, &ctx->tool);

    if (arguments->type == NGX_MCP_JSON_OBJECT) {
        ngx_mcp_out_lit(&out, ",\"arguments\":");
        ngx_mcp_out_str(&out, &arguments->text);
    }

    ngx_mcp_out_lit(&out, "}");

    ctx->rpc.params.type = NGX_MCP_JSON_OBJECT;

    return ngx_mcp_out_end(&out, &ctx->rpc.params.text);
}


static ngx_int_t
ngx_mcp_rest_created(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_op_create_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_create_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    op->view.tool = ctx->tool;
    ngx_mcp_set_task(r, ctx, &op->view);

    if (ngx_mcp_rest_location(r, ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_rest_send(r, ctx, &op->view, NGX_HTTP_CREATED);
}


/* the URI of the new task is below the URI of the request */

static ngx_int_t
ngx_mcp_rest_location(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    u_char     *p;
    size_t      escape;
    ngx_str_t   value;

    escape = 2 * ngx_escape_uri(NULL, r->uri.data, r->uri.len, NGX_ESCAPE_URI);

    p = ngx_pnalloc(r->pool, r->uri.len + escape + 1 + ctx->task_id.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value.data = p;
    p = (u_char *) ngx_escape_uri(p, r->uri.data, r->uri.len, NGX_ESCAPE_URI);
    *p++ = '/';
    p = ngx_cpymem(p, ctx->task_id.data, ctx->task_id.len);
    value.len = p - value.data;

    return ngx_mcp_add_header(r, "Location", &value);
}


ngx_int_t
ngx_mcp_rest_read(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_rest_get(r, ctx, ngx_mcp_rest_got);
}


ngx_int_t
ngx_mcp_rest_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_rest_get(r, ctx, ngx_mcp_rest_ended);
}


/* reads the task of the request, with the parts that the surface shows */

ngx_int_t
ngx_mcp_rest_get(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_done_pt done)
{
    ngx_mcp_op_get_t  *op;

    op = ngx_mcp_op(r, NGX_MCP_OP_GET, sizeof(ngx_mcp_op_get_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op->id = ctx->id;
    op->owner = ngx_mcp_visible_owner(ctx);
    op->want = ctx->renderer->want;

    return ngx_mcp_request_op(r, &op->op, done);
}


static ngx_int_t
ngx_mcp_rest_got(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t     *ctx;
    ngx_mcp_op_get_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_get_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    return ngx_mcp_rest_send(r, ctx, &op->view, NGX_HTTP_OK);
}


/* sends the result as the tool returned it */

static ngx_int_t
ngx_mcp_rest_ended(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t     *ctx;
    ngx_mcp_view_t    *v;
    ngx_mcp_op_get_t  *op;
    static ngx_str_t   not_ready = ngx_string("result_not_ready");

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_get_t *) o;
    v = &op->view;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    ngx_mcp_set_task(r, ctx, v);

    if (!ngx_mcp_terminal(v->task.state)) {
        return ngx_mcp_problem(r, NGX_HTTP_CONFLICT, &not_ready, NULL);
    }

    if (ngx_mcp_no_store(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (v->task.state == NGX_MCP_COMPLETED) {
        return ngx_mcp_send(r, NGX_HTTP_OK, &v->payload[NGX_MCP_RESULT], 1);
    }

    return ngx_mcp_rest_failed(r, v);
}


/* the task has no result: sends its error in a problem */

static ngx_int_t
ngx_mcp_rest_failed(ngx_http_request_t *r, ngx_mcp_view_t *v)
{
    ngx_str_t      text;
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, r->pool, 512);
    ngx_mcp_out_lit(&out, "{\"title\":\"Conflict\",\"status\":409,"
                    "\"reason\":\"task_");
    ngx_mcp_out_str(&out, ngx_mcp_status_name(v->task.state));
    ngx_mcp_out_lit(&out, "\",\"error\":");
    ngx_mcp_render_error(&out, NGX_MCP_MODERN, v);
    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &text) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&r->headers_out.content_type, "application/problem+json");

    return ngx_mcp_send(r, NGX_HTTP_CONFLICT, &text, 1);
}


ngx_int_t
ngx_mcp_rest_cancel(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_json_t        reason;
    ngx_mcp_op_update_t  *op;
    ngx_mcp_member_t      members[] = {
        { ngx_string("reason"), &reason }
    };

    op = ngx_mcp_op(r, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_op_update_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_json_members(&ctx->body, members, 1) != NGX_OK) {
        return ngx_mcp_problem_invalid(r, "duplicate member in the body");
    }

    if (reason.type != NGX_MCP_JSON_NONE) {

        if (reason.type != NGX_MCP_JSON_STRING
            || reason.text.len > NGX_MCP_MAX_MESSAGE)
        {
            return ngx_mcp_problem_invalid(r,
                       "reason must be a JSON string of at most 1024 bytes");
        }

        op->change.payload[NGX_MCP_MESSAGE] = reason.text;
    }

    op->id = ctx->id;
    op->owner = ngx_mcp_visible_owner(ctx);
    op->event.type = NGX_MCP_EV_CANCEL;
    op->want = ctx->renderer->want;

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_rest_changed);
}


static ngx_int_t
ngx_mcp_rest_changed(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_op_update_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_update_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    return ngx_mcp_rest_send(r, ctx, &op->view, NGX_HTTP_OK);
}


ngx_int_t
ngx_mcp_rest_input(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    const char        *err;
    ngx_mcp_json_t     responses;
    ngx_mcp_member_t   members[] = {
        { ngx_string("inputResponses"), &responses }
    };

    if (ngx_mcp_json_members(&ctx->body, members, 1) != NGX_OK) {
        return ngx_mcp_problem_invalid(r, "duplicate member in the body");
    }

    if (responses.type != NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_problem_invalid(r, "inputResponses must be an object");
    }

    err = ngx_mcp_input_answers(r->pool, &responses);

    if (err) {
        return ngx_mcp_problem_invalid(r, err);
    }

    return ngx_mcp_answer(r, &ctx->id, 0, &responses, ngx_mcp_rest_answered);
}


/* sends the current task, which may have more open questions */

static ngx_int_t
ngx_mcp_rest_answered(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    return ngx_mcp_rest_get(r, ctx, ngx_mcp_rest_got);
}


/* sends a task, or 304 if the client has this version */

ngx_int_t
ngx_mcp_rest_send(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_mcp_view_t *v,
    ngx_uint_t status)
{
    ngx_str_t            text, etag;
    ngx_mcp_out_t        out;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    ngx_mcp_set_task(r, ctx, v);

    etag.data = ngx_pnalloc(r->pool, NGX_INT64_LEN + 2);
    if (etag.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    etag.len = ngx_sprintf(etag.data, "\"%uL\"", v->task.version) - etag.data;

    if (ngx_mcp_add_header(r, "ETag", &etag) != NGX_OK
        || ngx_mcp_no_store(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)
        && ngx_mcp_rest_known(r, &etag))
    {
        return ngx_mcp_rest_unmodified(r);
    }

    ngx_mcp_out_init(&out, r->pool, 512 + v->payload[NGX_MCP_RESULT].len);

    ctx->renderer->render(&out, v, lcf->zone);

    if (ngx_mcp_out_end(&out, &text) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_send(r, status, &text, 1);
}


/* whether If-None-Match contains the tag, weak or strong, or is "*" */

ngx_uint_t
ngx_mcp_rest_known(ngx_http_request_t *r, ngx_str_t *etag)
{
    u_char            *p, *end;
    ngx_str_t          list;
    static ngx_str_t   header = ngx_string("if-none-match");

    if (ngx_mcp_header(r, &header, &list) != 1) {
        return 0;
    }

    p = list.data;
    end = list.data + list.len;

    if (list.len == 1 && *p == '*') {
        return 1;
    }

    while (p < end) {

        if (end - p >= 2 && p[0] == 'W' && p[1] == '/') {
            p += 2;
        }

        if ((size_t) (end - p) >= etag->len
            && ngx_strncmp(p, etag->data, etag->len) == 0)
        {
            return 1;
        }

        while (p < end && *p != ',') { p++; }
        while (p < end && (*p == ',' || *p == ' ' || *p == '\t')) { p++; }
    }

    return 0;
}
