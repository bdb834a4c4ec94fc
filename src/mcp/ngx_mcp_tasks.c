
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The methods tasks/..., and answers of legacy clients to questions. */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_amend.h"
#include "ngx_mcp_input.h"


#define NGX_MCP_PAGE  50


/* an update of metadata, which is merged with the current metadata */

typedef struct {
    ngx_mcp_amend_t  amend;      /* must be the first */
    ngx_mcp_json_t   metadata;
} ngx_mcp_metadata_update_t;


static ngx_int_t ngx_mcp_task_id(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *value, ngx_mcp_id_t *id);
static ngx_int_t ngx_mcp_got(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_listed(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_cancelled(ngx_http_request_t *r, ngx_mcp_op_t *o);
static void ngx_mcp_update_op(ngx_http_request_t *r, ngx_mcp_op_update_t *op,
    ngx_uint_t event);
static ngx_int_t ngx_mcp_update_note(ngx_http_request_t *r,
    ngx_mcp_amend_t *amend, ngx_mcp_op_get_t *task);
static ngx_int_t ngx_mcp_updated(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_answered(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_reported(ngx_http_request_t *r, ngx_mcp_op_t *o);


/* NGX_DECLINED: the id is set; any other value finalizes the request */

static ngx_int_t
ngx_mcp_task_id(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *value, ngx_mcp_id_t *id)
{
    ngx_str_t  text;

    if (ctx->era == NGX_MCP_MODERN && !ctx->tasks) {
        return ngx_mcp_no_capability(r, ctx);
    }

    if (value->type != NGX_MCP_JSON_STRING) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, "taskId must be a string");
    }

    if (ngx_mcp_json_string(r->pool, value, &text) != NGX_OK
        || ngx_mcp_id_parse(id, &text) != NGX_OK)
    {
        /* an invalid id and an unknown id have the same response */
        return ngx_mcp_refused(r, ctx, NGX_MCP_NOT_FOUND);
    }

    ctx->task_id = text;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_only_id(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_mcp_id_t *id)
{
    if (ctx->params.id.type == NGX_MCP_JSON_DUPLICATE) {
        return ngx_mcp_duplicate(r, ctx);
    }

    return ngx_mcp_task_id(r, ctx, &ctx->params.id, id);
}


ngx_int_t
ngx_mcp_tasks_get(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t          rc;
    ngx_mcp_id_t       id;
    ngx_mcp_op_get_t  *op;

    rc = ngx_mcp_only_id(r, ctx, &id);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    op = ngx_mcp_op(r, NGX_MCP_OP_GET, sizeof(ngx_mcp_op_get_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op->id = id;
    op->owner = &ctx->owner;
    op->want = (ctx->era == NGX_MCP_MODERN)
               ? NGX_MCP_WANT_DETAIL : NGX_MCP_WANT_TASK;

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_got);
}


static ngx_int_t
ngx_mcp_got(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t     *ctx;
    ngx_mcp_out_t      out;
    ngx_mcp_op_get_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_get_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_refused(r, ctx, o->reason);
    }

    ngx_mcp_set_task(r, ctx, &op->view);

    ngx_mcp_out_answer(&out, r, ctx,
                       512 + op->view.payload[NGX_MCP_RESULT].len);
    ngx_mcp_out_lit(&out, "{");

    if (ctx->era == NGX_MCP_MODERN) {
        ngx_mcp_out_lit(&out, "\"resultType\":\"complete\","
                        NGX_MCP_SERVER_META ",");
    }

    ngx_mcp_render_task(&out, ctx->era, &op->view);

    if (ctx->era == NGX_MCP_MODERN) {
        ngx_mcp_render_detail(&out, &op->view, ctx->can);
    }

    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_result(r, &out);
}


ngx_int_t
ngx_mcp_tasks_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t     rc;
    ngx_mcp_id_t  id;

    rc = ngx_mcp_only_id(r, ctx, &id);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return ngx_mcp_wait_outcome(r, ctx, &id, NGX_MCP_WAIT_RESULT, 0);
}


ngx_int_t
ngx_mcp_tasks_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    int64_t               n;
    ngx_str_t             s;
    ngx_mcp_json_t        cursor, status, tool, limit;
    ngx_mcp_op_list_t    *op;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_member_t      members[] = {
        { ngx_string("cursor"), &cursor },
        { ngx_string("status"), &status },
        { ngx_string("tool"), &tool },
        { ngx_string("limit"), &limit }
    };

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    /* without an owner a task can be accessed only by its id */

    if (ctx->owner.len == 0) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_OK, NGX_MCP_RPC_NO_METHOD,
                             "tasks/list requires an owner, the request has "
                             "none", NULL);
    }

    op = ngx_mcp_op(r, NGX_MCP_OP_LIST, sizeof(ngx_mcp_op_list_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_members(ctx, members, 4) != NGX_OK) {
        return ngx_mcp_duplicate(r, ctx);
    }

    op->owner = ctx->owner;
    op->limit = NGX_MCP_PAGE;
    op->want = NGX_MCP_WANT_TASK;

    if (cursor.type != NGX_MCP_JSON_NONE
        && (cursor.type != NGX_MCP_JSON_STRING
            || ngx_mcp_json_string(r->pool, &cursor, &s) != NGX_OK
            || ngx_mcp_cursor_parse(lcf->zone, &s,
                                    &op->owner, &op->after)
               != NGX_OK))
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "cursor must be nextCursor of an earlier page");
    }

    if (tool.type != NGX_MCP_JSON_NONE
        && (tool.type != NGX_MCP_JSON_STRING
            || ngx_mcp_json_string(r->pool, &tool, &op->tool)
               != NGX_OK))
    {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, "tool must be a string");
    }

    if (limit.type != NGX_MCP_JSON_NONE) {

        if (ngx_mcp_json_integer(&limit, &n) != NGX_OK
            || n < 1 || n > NGX_MCP_LIST_MAX)
        {
            return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                                   "limit must be an integer from 1 to 100");
        }

        op->limit = n;
    }

    if (status.type != NGX_MCP_JSON_NONE) {

        if (status.type == NGX_MCP_JSON_STRING
            && ngx_mcp_json_string(r->pool, &status, &s) == NGX_OK)
        {
            op->states = ngx_mcp_states_of(ctx->era, &s);
        }

        if (op->states == 0) {
            return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                                   "status must be working, input_required, "
                                   "completed, failed or cancelled");
        }
    }

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_listed);
}


static ngx_int_t
ngx_mcp_listed(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_uint_t           i;
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_out_t        out;
    ngx_mcp_op_list_t   *op;
    ngx_mcp_loc_conf_t  *lcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_list_t *) o;

    ngx_mcp_out_answer(&out, r, ctx, 256 + op->n * 288);
    ngx_mcp_out_lit(&out, "{");

    if (ctx->era == NGX_MCP_MODERN) {
        ngx_mcp_out_lit(&out, "\"resultType\":\"complete\","
                        NGX_MCP_SERVER_META ","
                        "\"ttlMs\":0,\"cacheScope\":\"private\",");
    }

    ngx_mcp_out_lit(&out, "\"tasks\":[");

    for (i = 0; i < op->n; i++) {

        if (i) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_out_lit(&out, "{");
        ngx_mcp_render_task(&out, ctx->era, &op->views[i]);
        ngx_mcp_out_lit(&out, "}");
    }

    ngx_mcp_out_lit(&out, "]");

    ngx_mcp_render_cursor(&out, lcf->zone, &op->owner, &op->next);
    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_result(r, &out);
}


/* an addition to MCP: a reason, which becomes the status message */

ngx_int_t
ngx_mcp_tasks_cancel(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t             rc;
    ngx_mcp_json_t        id, reason;
    ngx_mcp_op_update_t  *op;
    ngx_mcp_member_t      members[] = {
        { ngx_string("taskId"), &id },
        { ngx_string("reason"), &reason }
    };

    op = ngx_mcp_op(r, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_op_update_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_members(ctx, members, 2) != NGX_OK) {
        return ngx_mcp_duplicate(r, ctx);
    }

    rc = ngx_mcp_task_id(r, ctx, &id, &op->id);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ctx->extended && reason.type != NGX_MCP_JSON_NONE) {

        if (reason.type != NGX_MCP_JSON_STRING
            || reason.text.len > NGX_MCP_MAX_MESSAGE)
        {
            return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                                   "reason must be a JSON string of at most "
                                   "1024 bytes");
        }

        op->change.payload[NGX_MCP_MESSAGE] = reason.text;
    }

    op->owner = &ctx->owner;
    op->event.type = NGX_MCP_EV_CANCEL;
    op->want = NGX_MCP_WANT_TASK;

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_cancelled);
}


static ngx_int_t
ngx_mcp_cancelled(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_out_t         out;
    ngx_mcp_op_update_t  *op;
    static ngx_str_t      complete =
                                ngx_string("{\"resultType\":\"complete\","
                                           NGX_MCP_SERVER_META "}");

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_update_t *) o;

    /* the modern era only acknowledges a request to cancel */

    if (ctx->era == NGX_MCP_MODERN
        && (o->reason == NGX_MCP_OK
            || o->reason == NGX_MCP_TERMINAL))
    {
        ngx_mcp_set_task(r, ctx, &op->view);
        return ngx_mcp_result(r, ctx, &complete);
    }

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_refused(r, ctx, o->reason);
    }

    ngx_mcp_set_task(r, ctx, &op->view);

    ngx_mcp_out_answer(&out, r, ctx, 512);
    ngx_mcp_out_lit(&out, "{");
    ngx_mcp_render_task(&out, ctx->era, &op->view);
    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_result(r, &out);
}


/*
 * The tasks extension has inputResponses.  Additions to MCP are metadata, which
 * is merged, and status "input_required" with inputRequests, which needs the
 * lease token.
 */

ngx_int_t
ngx_mcp_tasks_update(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t                   rc;
    const char                 *err;
    ngx_mcp_json_t              value, responses, metadata, status;
    ngx_mcp_json_t              requests, lease;
    ngx_mcp_metadata_update_t  *n;
    ngx_mcp_member_t            members[] = {
        { ngx_string("taskId"), &value },
        { ngx_string("inputResponses"), &responses },
        { ngx_string("metadata"), &metadata },
        { ngx_string("status"), &status },
        { ngx_string("inputRequests"), &requests },
        { ngx_string("lease"), &lease }
    };

    n = ngx_mcp_op(r, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_metadata_update_t));
    if (n == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_members(ctx, members, 6) != NGX_OK) {
        return ngx_mcp_duplicate(r, ctx);
    }

    n->metadata = metadata;

    rc = ngx_mcp_task_id(r, ctx, &value, &n->amend.op.id);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ctx->extended && status.type != NGX_MCP_JSON_NONE) {

        if (status.type != NGX_MCP_JSON_STRING
            || !ngx_mcp_json_is(&status,
                                ngx_mcp_status_name(
                                                      NGX_MCP_INPUT_REQUIRED)))
        {
            return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                                   "status must be input_required");
        }

        n->amend.op.event.lease_token = ngx_mcp_lease_token(&lease);

        ngx_mcp_update_op(r, &n->amend.op, NGX_MCP_EV_ASK);

        return ngx_mcp_ask(r, &n->amend.op, &requests, ngx_mcp_updated);
    }

    if (ctx->extended && metadata.type != NGX_MCP_JSON_NONE) {

        err = ngx_mcp_input_metadata(r->pool, &metadata);

        if (err) {
            return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
        }

        ngx_mcp_update_op(r, &n->amend.op, NGX_MCP_EV_ANNOTATE);
        n->amend.op.want |= NGX_MCP_WANT(NGX_MCP_METADATA);
        n->amend.read = NGX_MCP_WANT(NGX_MCP_METADATA);
        n->amend.make = ngx_mcp_update_note;
        n->amend.done = ngx_mcp_updated;

        return ngx_mcp_amend(r, &n->amend);
    }

    if (responses.type != NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "inputResponses must be an object");
    }

    err = ngx_mcp_input_answers(r->pool, &responses);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    return ngx_mcp_answer(r, &n->amend.op.id, 0, &responses, ngx_mcp_updated);
}


static void
ngx_mcp_update_op(ngx_http_request_t *r, ngx_mcp_op_update_t *op,
    ngx_uint_t event)
{
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_loc_conf_t  *lcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    op->owner = &ctx->owner;
    op->event.type = event;
    op->change.max_payload = lcf->max_payload;
    op->change.max_owner_bytes = lcf->max_owner_bytes;
    op->want |= NGX_MCP_WANT_TASK;
}


static ngx_int_t
ngx_mcp_update_note(ngx_http_request_t *r, ngx_mcp_amend_t *amend,
    ngx_mcp_op_get_t *task)
{
    ngx_int_t                   rc;
    ngx_mcp_ctx_t              *ctx;
    ngx_mcp_metadata_update_t  *n;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    n = (ngx_mcp_metadata_update_t *) amend;

    rc = ngx_mcp_input_patch(r->pool, &task->view.payload[NGX_MCP_METADATA],
                             &n->metadata,
                             &amend->op.change.payload[NGX_MCP_METADATA]);

    if (rc == NGX_DECLINED) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "metadata would become larger than 64 members "
                               "or 65536 bytes");
    }

    return (rc == NGX_OK) ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_mcp_updated(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_out_t         out;
    ngx_mcp_op_update_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_update_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_refused(r, ctx, o->reason);
    }

    ngx_mcp_set_task(r, ctx, &op->view);

    ngx_mcp_out_answer(&out, r, ctx, 256);
    ngx_mcp_out_lit(&out, "{");

    if (ctx->era == NGX_MCP_MODERN) {
        ngx_mcp_out_lit(&out, "\"resultType\":\"complete\","
                        NGX_MCP_SERVER_META);
    }

    if (op->view.payload[NGX_MCP_METADATA].len) {

        if (ctx->era == NGX_MCP_MODERN) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_out_lit(&out, "\"metadata\":");
        ngx_mcp_out_str(&out, &op->view.payload[NGX_MCP_METADATA]);
    }

    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_result(r, &out);
}


/* an addition to MCP: reports progress by the progress token of the call */

ngx_int_t
ngx_mcp_tasks_progress(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    const char           *err;
    ngx_mcp_json_t        token, progress, total, message;
    ngx_mcp_op_update_t  *op;
    ngx_mcp_member_t      members[] = {
        { ngx_string("progressToken"), &token },
        { ngx_string("progress"), &progress },
        { ngx_string("total"), &total },
        { ngx_string("message"), &message }
    };

    op = ngx_mcp_op(r, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_op_update_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_members(ctx, members, 4) != NGX_OK) {
        return ngx_mcp_duplicate(r, ctx);
    }

    err = ngx_mcp_token(r->pool, &token, &op->token);

    if (err == NULL && token.type == NGX_MCP_JSON_NONE) {
        err = "progressToken is missing";
    }

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    err = ngx_mcp_progress_args(&progress, &total, &message, op);

    if (err == NULL && op->event.progress < 0) {
        err = "progress is missing";
    }

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    op->owner = &ctx->owner;
    op->event.type = NGX_MCP_EV_REPORT;

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_reported);
}


static ngx_int_t
ngx_mcp_reported(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t    *ctx;
    static ngx_str_t  data = ngx_string(
                                "{\"reason\":\"invalid_progress_token\"}");

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (o->reason == NGX_MCP_NOT_FOUND) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_OK, NGX_MCP_RPC_INVALID_PARAMS,
                             "Invalid params: no task of this owner has this "
                             "progressToken", &data);
    }

    return ngx_mcp_updated(r, o);
}


/*
 * Legacy era: the answer of a client to a question that a stream has delivered.
 * The id of the response identifies the question: the task id, a slash, the
 * key.
 */

ngx_int_t
ngx_mcp_response(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t        text, key, *value;
    const char      *err;
    ngx_mcp_id_t     id;
    ngx_mcp_out_t    out;
    ngx_mcp_json_t   answers;

    /* the client may use other escapes than the question had */

    if (ctx->rpc.id.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &ctx->rpc.id, &text)
           != NGX_OK
        || text.len <= NGX_MCP_ID_TEXT
        || text.data[NGX_MCP_ID_TEXT] != '/')
    {
        /* not an answer to a question of a task: ignored */
        return ngx_mcp_accepted(r);
    }

    key.data = text.data + NGX_MCP_ID_TEXT + 1;
    key.len = text.len - NGX_MCP_ID_TEXT - 1;
    text.len = NGX_MCP_ID_TEXT;

    if (ngx_mcp_id_parse(&id, &text) != NGX_OK) {
        return ngx_mcp_accepted(r);
    }

    ctx->task_id = text;

    ngx_mcp_out_init(&out, r->pool, ctx->rpc.result.text.len
                                    + ctx->rpc.id.text.len + 32);
    ngx_mcp_out_lit(&out, "{");
    ngx_mcp_out_string(&out, &key);
    ngx_mcp_out_lit(&out, ":");

    if (ctx->rpc.error.type != NGX_MCP_JSON_NONE) {
        value = &ctx->rpc.error.text;
        ngx_mcp_out_lit(&out, "{\"error\":");
        ngx_mcp_out_str(&out, value);
        ngx_mcp_out_lit(&out, "}}");

    } else {
        value = &ctx->rpc.result.text;
        ngx_mcp_out_str(&out, value);
        ngx_mcp_out_lit(&out, "}");
    }

    if (ngx_mcp_out_end(&out, &answers.text) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    answers.type = NGX_MCP_JSON_OBJECT;

    err = ngx_mcp_input_answers(r->pool, &answers);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_BAD_REQUEST, err);
    }

    return ngx_mcp_answer(r, &id, 0, &answers, ngx_mcp_answered);
}


static ngx_int_t
ngx_mcp_answered(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    switch (o->reason) {

    case NGX_MCP_OK:
    case NGX_MCP_NOT_FOUND:
    case NGX_MCP_TERMINAL:
    case NGX_MCP_STATE_INVALID:
        return ngx_mcp_accepted(r);
    }

    return ngx_mcp_refused(r, ctx, o->reason);
}
