
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Validation of records read from a store. */


#include "ngx_mcp_valid.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_input.h"
#include "ngx_mcp_json.h"
#include "ngx_mcp_result.h"


/* flags of a completed task that its result determines */
#define NGX_MCP_VALID_FLAGS  (NGX_MCP_TOOL_ERROR|NGX_MCP_RESULT_READ          \
                              |NGX_MCP_HAS_TYPE|NGX_MCP_HAS_META)


static const char *ngx_mcp_valid_state(ngx_mcp_record_t *rec);
static const char *ngx_mcp_valid_end(ngx_mcp_record_t *rec);
static const char *ngx_mcp_valid_bytes(ngx_mcp_record_t *rec);
static const char *ngx_mcp_valid_result(ngx_mcp_record_t *rec);
static ngx_uint_t ngx_mcp_valid_json(ngx_str_t *text, ngx_uint_t type,
    ngx_mcp_json_t *value);


const char *
ngx_mcp_record_valid(ngx_mcp_record_t *rec)
{
    const char      *field;
    ngx_mcp_json_t   token;

    if (rec->seq == 0) {
        return "seq";
    }

    if (rec->changed == 0) {
        return "changed";
    }

    if (rec->tool.len == 0) {
        return "tool";
    }

    if (rec->token.len
        && !ngx_mcp_valid_json(&rec->token, NGX_MCP_JSON_STRING, &token)
        && !ngx_mcp_valid_json(&rec->token, NGX_MCP_JSON_NUMBER, &token))
    {
        return "token";
    }

    if (rec->task.version == 0) {
        return "version";
    }

    if (rec->task.policy.calls & ~NGX_MCP_CALLS) {
        return "calls";
    }

    if (rec->task.created > NGX_MCP_VALID_DATE) {
        return "created_at";
    }

    if (rec->task.updated > NGX_MCP_VALID_DATE) {
        return "updated_at";
    }

    if (ngx_mcp_history_valid(rec->history.data, rec->history.len,
                              NGX_MCP_VALID_DATE - rec->task.created)
        != NGX_OK)
    {
        return "history";
    }

    field = ngx_mcp_valid_state(rec);

    return field ? field : ngx_mcp_valid_bytes(rec);
}


/* the invariants that ngx_mcp_task.c keeps and relies on */

static const char *
ngx_mcp_valid_state(ngx_mcp_record_t *rec)
{
    ngx_mcp_task_t  *task;

    task = &rec->task;

    switch (task->state) {

    case NGX_MCP_QUEUED:
        if (task->lease_token) {
            return "lease";
        }

        /* the next claim increments it */
        if (task->attempt == 0xff) {
            return "attempt";
        }

        break;

    case NGX_MCP_RUNNING:
    case NGX_MCP_INPUT_REQUIRED:
        /* only workers release a task when they ask */

        if (task->lease_token == 0
            && (task->state == NGX_MCP_RUNNING || task->policy.route))
        {
            return "lease";
        }

        if (task->attempt == 0) {
            return "attempt";
        }

        if (task->state == NGX_MCP_INPUT_REQUIRED
            && task->step_end != NGX_MCP_NEVER)
        {
            return "step_end_at";
        }

        break;

    default: /* terminal */
        return ngx_mcp_valid_end(rec);
    }

    if (task->cause != NGX_MCP_CAUSE_NONE) {
        return "cause";
    }

    return (task->flags & ~NGX_MCP_ANNOUNCED) ? "flags" : NULL;
}


static const char *
ngx_mcp_valid_end(ngx_mcp_record_t *rec)
{
    ngx_uint_t       flags;
    ngx_mcp_task_t  *task;

    task = &rec->task;
    flags = NGX_MCP_ANNOUNCED;

    if (task->step_end != NGX_MCP_NEVER) {
        return "step_end_at";
    }

    if (task->phase_end != NGX_MCP_NEVER) {
        return "phase_end_at";
    }

    switch (task->state) {

    case NGX_MCP_COMPLETED:
        if (task->cause != NGX_MCP_CAUSE_NONE) {
            return "cause";
        }

        flags |= NGX_MCP_VALID_FLAGS;
        break;

    case NGX_MCP_FAILED:
        if (task->cause == NGX_MCP_CAUSE_CANCELLED) {
            return "cause";
        }

        flags |= NGX_MCP_RPC_ERROR;
        break;

    default: /* NGX_MCP_CANCELLED */
        if (task->cause != NGX_MCP_CAUSE_CANCELLED) {
            return "cause";
        }

        flags |= NGX_MCP_UNANSWERED;
    }

    return (task->flags & ~flags) ? "flags" : NULL;
}


/* payloads are sent without being parsed again, so they must be valid now */

static const char *
ngx_mcp_valid_bytes(ngx_mcp_record_t *rec)
{
    ngx_str_t       *text;
    ngx_uint_t       i, type;
    ngx_mcp_json_t   value[NGX_MCP_PAYLOADS];

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        text = &rec->payload[i];
        type = (i == NGX_MCP_MESSAGE) ? NGX_MCP_JSON_STRING
                                      : NGX_MCP_JSON_OBJECT;

        value[i].type = NGX_MCP_JSON_NONE;

        if (text->len && !ngx_mcp_valid_json(text, type, &value[i])) {
            return (char *) ngx_mcp_payload_fields[i].name.data;
        }
    }

    /* older releases accepted duplicate keys */

    if (value[NGX_MCP_METADATA].type != NGX_MCP_JSON_NONE
        && ngx_mcp_input_size(&value[NGX_MCP_METADATA]))
    {
        return "metadata";
    }

    if (value[NGX_MCP_REQUESTS].type != NGX_MCP_JSON_NONE
        && ngx_mcp_input_check(&value[NGX_MCP_REQUESTS],
                               &rec->payload[NGX_MCP_RESPONSES]))
    {
        return "input_requests";
    }

    if (rec->task.state == NGX_MCP_INPUT_REQUIRED
        && rec->payload[NGX_MCP_REQUESTS].len == 0)
    {
        return "input_requests";
    }

    /* a background call needs its params to be sent again */

    if (rec->task.policy.route && rec->payload[NGX_MCP_PARAMS].len == 0) {
        return "params";
    }

    return ngx_mcp_valid_result(rec);
}


static const char *
ngx_mcp_valid_result(ngx_mcp_record_t *rec)
{
    ngx_uint_t        flags;
    ngx_mcp_json_t    object;
    ngx_mcp_result_t  result;

    if (rec->task.state != NGX_MCP_COMPLETED) {
        return NULL;
    }

    object.text = rec->payload[NGX_MCP_RESULT];
    object.type = NGX_MCP_JSON_OBJECT;

    if (object.text.len == 0) {
        return "result";
    }

    ngx_mcp_result_read(&object, &result);
    flags = rec->task.flags;

    if (!(flags & NGX_MCP_RESULT_READ)) {
        /* an older release set only this flag */
        result.flags &= NGX_MCP_TOOL_ERROR;
    }

    return ((flags ^ result.flags) & NGX_MCP_VALID_FLAGS) ? "flags" : NULL;
}


/* exactly one value of this type, without white space around it */

static ngx_uint_t
ngx_mcp_valid_json(ngx_str_t *text, ngx_uint_t type, ngx_mcp_json_t *value)
{
    const char  *err;

    return ngx_mcp_json_parse(text, value, &err) == NGX_OK
           && value->type == type
           && value->text.len == text->len;
}
