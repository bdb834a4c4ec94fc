
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Tasks as JSON, as each era and REST show them. */


#include "ngx_mcp_http.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_question.h"
#include "ngx_mcp_result.h"


typedef struct {
    ngx_str_t  error;       /* a JSON-RPC error */
    ngx_str_t  message;     /* a status message */
} ngx_mcp_failure_t;


static ngx_str_t *ngx_mcp_render_message(ngx_uint_t era, ngx_mcp_view_t *v);
static ngx_mcp_failure_t *ngx_mcp_render_cause(ngx_mcp_view_t *v);
static ngx_uint_t ngx_mcp_render_has(ngx_mcp_view_t *v,
    ngx_mcp_json_t *object);
static void ngx_mcp_render_question_id(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_json_t *key);
static void ngx_mcp_render_with_meta(ngx_mcp_out_t *out,
    ngx_mcp_json_t *object, ngx_mcp_view_t *v, ngx_uint_t has_meta,
    ngx_uint_t what);
static void ngx_mcp_render_replaced(ngx_mcp_out_t *out, ngx_mcp_json_t *object,
    ngx_mcp_view_t *v, ngx_uint_t what);
static void ngx_mcp_render_others(ngx_mcp_out_t *out, ngx_mcp_json_t *object,
    ngx_str_t *except);
static void ngx_mcp_render_meta(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_uint_t what);
static void ngx_mcp_render_related(ngx_mcp_out_t *out, ngx_mcp_view_t *v);


#define NGX_MCP_RELATED_TASK  "io.modelcontextprotocol/related-task"

#define ngx_mcp_failure(message, reason)                                      \
    { ngx_string("{\"code\":" ngx_value(NGX_MCP_RPC_TASK_FAILED) ","          \
                 "\"message\":\"" message "\","                               \
                 "\"data\":{\"reason\":\"" reason "\"}}"),                    \
      ngx_string("\"" message "\"") }


/* in the order of ngx_mcp_meta_e */

static ngx_str_t  ngx_mcp_meta_names[] = {
    ngx_null_string,
    ngx_string(NGX_MCP_RELATED_TASK),
    ngx_string(NGX_MCP_META_SERVER_KEY)
};


ngx_str_t *
ngx_mcp_render_status(ngx_uint_t era, ngx_mcp_task_t *task)
{
    /* isError means failed in the legacy era, completed in the modern era */

    if (era == NGX_MCP_LEGACY
        && task->state == NGX_MCP_COMPLETED
        && task->flags & NGX_MCP_TOOL_ERROR)
    {
        return ngx_mcp_status_name(NGX_MCP_FAILED);
    }

    return ngx_mcp_status_name(task->state);
}


/* the members of a task, without braces */

void
ngx_mcp_render_task(ngx_mcp_out_t *out, ngx_uint_t era, ngx_mcp_view_t *v)
{
    u_char           id[NGX_MCP_ID_TEXT];
    ngx_str_t       *message;
    ngx_mcp_task_t  *task;

    task = &v->task;
    message = ngx_mcp_render_message(era, v);

    ngx_mcp_out_lit(out, "\"taskId\":\"");
    (void) ngx_mcp_id_text(id, &v->id);
    ngx_mcp_out_add(out, id, sizeof(id));
    ngx_mcp_out_lit(out, "\",\"status\":\"");
    ngx_mcp_out_str(out, ngx_mcp_render_status(era, task));
    ngx_mcp_out_lit(out, "\"");

    if (message->len) {
        ngx_mcp_out_lit(out, ",\"statusMessage\":");
        ngx_mcp_out_str(out, message);
    }

    ngx_mcp_out_lit(out, ",\"createdAt\":");
    ngx_mcp_out_time(out, task->created);
    ngx_mcp_out_lit(out, ",\"lastUpdatedAt\":");
    ngx_mcp_out_time(out, task->updated);

    if (era == NGX_MCP_LEGACY) {
        ngx_mcp_out_lit(out, ",\"ttl\":");

    } else {
        ngx_mcp_out_lit(out, ",\"ttlMs\":");
    }

    if (task->ttl == NGX_MCP_NEVER) {
        ngx_mcp_out_lit(out, "null");

    } else {
        ngx_mcp_out_number(out, task->ttl);
    }

    if (era == NGX_MCP_LEGACY) {
        ngx_mcp_out_lit(out, ",\"pollInterval\":");

    } else {
        ngx_mcp_out_lit(out, ",\"pollIntervalMs\":");
    }

    ngx_mcp_out_number(out, task->policy.poll_interval);
}


/*
 * The status message.  A task that has failed has a diagnosis, which was stored
 * with its end, or is that of the cause.  If there is a cause, the stored
 * message was reported before the end.
 */

static ngx_str_t *
ngx_mcp_render_message(ngx_uint_t era, ngx_mcp_view_t *v)
{
    ngx_str_t         *message;
    static ngx_str_t   failed = ngx_string("\"The task failed\"");

    message = &v->payload[NGX_MCP_MESSAGE];

    if (!ngx_mcp_terminal(v->task.state)) {
        return message;
    }

    if (v->task.state == NGX_MCP_FAILED
        && v->task.cause != NGX_MCP_CAUSE_NONE)
    {
        return &ngx_mcp_render_cause(v)->message;
    }

    /* stored by an earlier release, or in a zone without room for it */

    if (message->len == 0
        && ngx_mcp_render_status(era, &v->task)
           == ngx_mcp_status_name(NGX_MCP_FAILED))
    {
        return &failed;
    }

    return message;
}


/* the result of the call that created the task */

void
ngx_mcp_render_created(ngx_mcp_out_t *out, ngx_uint_t era, ngx_mcp_view_t *v)
{
    if (era == NGX_MCP_LEGACY) {
        ngx_mcp_out_lit(out, "{\"task\":{");
        ngx_mcp_render_task(out, era, v);
        ngx_mcp_out_lit(out, "}}");

    } else {
        ngx_mcp_out_lit(out, "{\"resultType\":\"task\","
                        NGX_MCP_SERVER_META ",");
        ngx_mcp_render_task(out, era, v);
        ngx_mcp_out_lit(out, "}");
    }
}


/*
 * The members that the modern era adds in some states, after a comma.  can: the
 * questions that the client can answer, a mask of NGX_MCP_CAN_*.
 */

void
ngx_mcp_render_detail(ngx_mcp_out_t *out, ngx_mcp_view_t *v, ngx_uint_t can)
{
    switch (v->task.state) {

    case NGX_MCP_INPUT_REQUIRED:
        ngx_mcp_out_lit(out, ",\"inputRequests\":");
        ngx_mcp_question_modern(out, &v->payload[NGX_MCP_REQUESTS], can);
        break;

    case NGX_MCP_COMPLETED:
        ngx_mcp_out_lit(out, ",");
        ngx_mcp_render_outcome(out, NGX_MCP_MODERN, v, NGX_MCP_META_NONE);
        break;

    case NGX_MCP_FAILED:
        ngx_mcp_out_lit(out, ",\"error\":");
        ngx_mcp_render_error(out, NGX_MCP_MODERN, v);
        break;
    }
}


/* a task for REST; detail adds its open questions, its result or its error */

void
ngx_mcp_render_rest(ngx_mcp_out_t *out, ngx_mcp_view_t *v, ngx_uint_t detail)
{
    ngx_mcp_out_lit(out, "{");
    ngx_mcp_render_short(out, v);

    if (detail) {
        ngx_mcp_render_detail(out, v, NGX_MCP_CAN_ALL);
    }

    ngx_mcp_out_lit(out, "}");
}


/* the members of a task for REST, without detail and without braces */

void
ngx_mcp_render_short(ngx_mcp_out_t *out, ngx_mcp_view_t *v)
{
    ngx_mcp_render_task(out, NGX_MCP_MODERN, v);
    ngx_mcp_out_lit(out, ",\"tool\":");
    ngx_mcp_out_string(out, &v->tool);
    ngx_mcp_out_lit(out, ",\"version\":");
    ngx_mcp_out_number(out, v->task.version);

    if (v->task.progress >= 0) {
        ngx_mcp_out_lit(out, ",\"progress\":");
        ngx_mcp_out_real(out, v->task.progress);
    }

    if (v->task.total >= 0) {
        ngx_mcp_out_lit(out, ",\"total\":");
        ngx_mcp_out_real(out, v->task.total);
    }
}


/* a progress notification for the token; related adds the task id to _meta */

void
ngx_mcp_render_progress(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_str_t *token, ngx_uint_t related)
{
    ngx_str_t  *message;

    message = &v->payload[NGX_MCP_MESSAGE];

    ngx_mcp_out_lit(out, "{\"jsonrpc\":\"2.0\","
                    "\"method\":\"notifications/progress\","
                    "\"params\":{\"progressToken\":");
    ngx_mcp_out_str(out, token);
    ngx_mcp_out_lit(out, ",\"progress\":");
    ngx_mcp_out_real(out, v->task.progress);

    if (v->task.total >= 0) {
        ngx_mcp_out_lit(out, ",\"total\":");
        ngx_mcp_out_real(out, v->task.total);
    }

    /* the message of a task that has failed does not belong to its progress */

    if (message->len
        && v->task.state != NGX_MCP_FAILED
        && !(v->task.flags & NGX_MCP_TOOL_ERROR))
    {
        ngx_mcp_out_lit(out, ",\"message\":");
        ngx_mcp_out_str(out, message);
    }

    if (related) {
        ngx_mcp_out_lit(out, ",\"_meta\":{");
        ngx_mcp_render_related(out, v);
        ngx_mcp_out_lit(out, "}");
    }

    ngx_mcp_out_lit(out, "}}");
}


/*
 * The error of a task that has ended without a result: the error that was
 * reported, or an error for the cause of the end.
 */

void
ngx_mcp_render_error(ngx_mcp_out_t *out, ngx_uint_t era, ngx_mcp_view_t *v)
{
    ngx_mcp_json_t  error;

    error.type = NGX_MCP_JSON_OBJECT;
    error.text = v->payload[NGX_MCP_RESULT];

    /* if there is a cause, a stored error is that of an earlier attempt */

    if (v->task.cause != NGX_MCP_CAUSE_NONE || error.text.len == 0) {
        ngx_mcp_out_str(out, &ngx_mcp_render_cause(v)->error);
        return;
    }

    if (era == NGX_MCP_LEGACY || !ngx_mcp_question_is_error(&error)) {
        ngx_mcp_out_str(out, &error.text);
        return;
    }

    ngx_mcp_render_url_required(out, &error);
}


/* the error -32042 for a modern client: that era has no such code */

void
ngx_mcp_render_url_required(ngx_mcp_out_t *out, ngx_mcp_json_t *error)
{
    ngx_mcp_json_t    message;
    ngx_mcp_member_t  members[] = {
        { ngx_string("message"), &message }
    };

    (void) ngx_mcp_json_members(error, members, 1);

    ngx_mcp_out_lit(out, "{\"code\":" ngx_value(NGX_MCP_RPC_TASK_FAILED)
                         ",\"message\":");

    if (message.type == NGX_MCP_JSON_STRING) {
        ngx_mcp_out_str(out, &message.text);

    } else {
        ngx_mcp_out_lit(out, "\"\"");
    }

    ngx_mcp_out_lit(out, ",\"data\":{\"reason\":"
                         "\"url_elicitation_required\"}}");
}


static ngx_mcp_failure_t *
ngx_mcp_render_cause(ngx_mcp_view_t *v)
{
    static ngx_mcp_failure_t  lease_lost = ngx_mcp_failure(
                       "The lease expired, and the task is not tried again",
                       "lease_lost");
    static ngx_mcp_failure_t  queue_timeout = ngx_mcp_failure(
                       "No worker claimed the task in time", "task_timeout");
    static ngx_mcp_failure_t  turn_timeout = ngx_mcp_failure(
                       "The call did not start in time",
                       "task_timeout");
    static ngx_mcp_failure_t  run_timeout = ngx_mcp_failure(
                       "The task exceeded its run time", "task_timeout");
    static ngx_mcp_failure_t  cancelled = ngx_mcp_failure(
                       "The task was cancelled", "task_cancelled");
    static ngx_mcp_failure_t  process_lost = ngx_mcp_failure(
                       "The nginx process that ran the call exited",
                       "process_lost");
    static ngx_mcp_failure_t  failed = ngx_mcp_failure(
                       "The task failed, its error was not stored",
                       "task_failed");

    switch (v->task.cause) {
    case NGX_MCP_CAUSE_LEASE_LOST:
        return &lease_lost;
    case NGX_MCP_CAUSE_QUEUE_TIMEOUT:
        return v->task.policy.route ? &turn_timeout : &queue_timeout;
    case NGX_MCP_CAUSE_RUN_TIMEOUT:
        return &run_timeout;
    case NGX_MCP_CAUSE_CANCELLED:
        return &cancelled;
    case NGX_MCP_CAUSE_PROCESS_LOST:
        return &process_lost;
    default:
        return &failed;
    }
}


/* the member "result" or "error" of the JSON-RPC response to the call */

void
ngx_mcp_render_outcome(ngx_mcp_out_t *out, ngx_uint_t era, ngx_mcp_view_t *v,
    ngx_uint_t meta)
{
    ngx_uint_t      flags;
    ngx_mcp_json_t  result;

    if (v->task.state != NGX_MCP_COMPLETED) {
        ngx_mcp_out_lit(out, "\"error\":");
        ngx_mcp_render_error(out, era, v);
        return;
    }

    result.text = v->payload[NGX_MCP_RESULT];
    result.type = NGX_MCP_JSON_OBJECT;

    flags = ngx_mcp_render_has(v, &result);

    ngx_mcp_out_lit(out, "\"result\":{");

    if (era == NGX_MCP_MODERN
        && !(flags & NGX_MCP_HAS_TYPE))
    {
        ngx_mcp_out_lit(out, "\"resultType\":\"complete\"");

        if (meta || ngx_mcp_json_filled(&result)) {
            ngx_mcp_out_lit(out, ",");
        }
    }

    if (meta) {
        ngx_mcp_render_with_meta(out, &result, v, flags & NGX_MCP_HAS_META,
                                 meta);

    } else {
        ngx_mcp_out_add(out, result.text.data + 1, result.text.len - 2);
    }

    ngx_mcp_out_lit(out, "}");
}


/*
 * What the result contains, as flags of the task.  A task that an older release
 * has stored has no such flags: its result is parsed.
 */

static ngx_uint_t
ngx_mcp_render_has(ngx_mcp_view_t *v, ngx_mcp_json_t *object)
{
    ngx_mcp_result_t  result;

    if (v->task.flags & NGX_MCP_RESULT_READ) {
        return v->task.flags;
    }

    ngx_mcp_result_read(object, &result);

    return result.flags;
}


/* a question of the task, as a JSON-RPC request of the legacy era */

void
ngx_mcp_render_question(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_json_t *key, ngx_mcp_json_t *question)
{
    ngx_uint_t        url;
    ngx_mcp_json_t    method, params, id;
    ngx_mcp_member_t  members[] = {
        { ngx_string("method"), &method },
        { ngx_string("params"), &params }
    };
    ngx_mcp_member_t  members_of_params[] = {
        { ngx_string("elicitationId"), &id }
    };

    url = ngx_mcp_question_is_url(question, &params);

    (void) ngx_mcp_json_members(question, members, 2);

    if (params.type == NGX_MCP_JSON_NONE) {
        params.type = NGX_MCP_JSON_OBJECT;
        ngx_str_set(&params.text, "{}");
    }

    ngx_mcp_out_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    ngx_mcp_render_question_id(out, v, key);
    ngx_mcp_out_lit(out, ",\"method\":");
    ngx_mcp_out_str(out, &method.text);
    ngx_mcp_out_lit(out, ",\"params\":{");

    if (url
        && ngx_mcp_json_members(&params, members_of_params, 1) == NGX_OK
        && id.type == NGX_MCP_JSON_NONE)
    {
        ngx_mcp_out_lit(out, "\"elicitationId\":");
        ngx_mcp_render_question_id(out, v, key);
        ngx_mcp_out_lit(out, ",");
    }

    ngx_mcp_render_with_meta(out, &params, v, 1, NGX_MCP_META_RELATED);
    ngx_mcp_out_lit(out, "}}");
}


/* what identifies the question: the task id, a slash, the key */

static void
ngx_mcp_render_question_id(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_json_t *key)
{
    u_char  id[NGX_MCP_ID_TEXT];

    (void) ngx_mcp_id_text(id, &v->id);

    ngx_mcp_out_lit(out, "\"");
    ngx_mcp_out_add(out, id, sizeof(id));
    ngx_mcp_out_lit(out, "/");
    ngx_mcp_out_add(out, key->text.data + 1, key->text.len - 1);
}


/*
 * The members of an object, with what is added to its _meta.  If has_meta is 0,
 * the object has no _meta.
 */

static void
ngx_mcp_render_with_meta(ngx_mcp_out_t *out, ngx_mcp_json_t *object,
    ngx_mcp_view_t *v, ngx_uint_t has_meta, ngx_uint_t what)
{
    u_char            *p, *end;
    ngx_mcp_json_t     meta, present;
    ngx_mcp_member_t   members[] = {
        { ngx_string("_meta"), &meta }
    };
    ngx_mcp_member_t   members_of_meta[] = {
        { ngx_mcp_meta_names[what], &present }
    };

    meta.type = NGX_MCP_JSON_NONE;
    present.type = NGX_MCP_JSON_NONE;

    if (has_meta) {
        (void) ngx_mcp_json_members(object, members, 1);
    }

    if (meta.type == NGX_MCP_JSON_OBJECT
        && ngx_mcp_json_members(&meta, members_of_meta, 1) != NGX_OK)
    {
        ngx_mcp_render_replaced(out, object, v, what);
        return;
    }

    p = object->text.data + 1;
    end = object->text.data + object->text.len - 1;

    if (present.type != NGX_MCP_JSON_NONE && what == NGX_MCP_META_IDENTIFIED) {
        ngx_mcp_out_add(out, p, end - p);
        return;
    }

    if ((meta.type != NGX_MCP_JSON_NONE && meta.type != NGX_MCP_JSON_OBJECT)
        || present.type != NGX_MCP_JSON_NONE)
    {
        ngx_mcp_render_replaced(out, object, v, what);
        return;
    }

    if (meta.type == NGX_MCP_JSON_OBJECT) {

        /* up to the brace of _meta, the new member, then the rest */

        ngx_mcp_out_add(out, p, meta.text.data + 1 - p);
        ngx_mcp_render_meta(out, v, what);

        if (ngx_mcp_json_filled(&meta)) {
            ngx_mcp_out_lit(out, ",");
        }

        p = meta.text.data + 1;

    } else {
        ngx_mcp_out_lit(out, "\"_meta\":{");
        ngx_mcp_render_meta(out, v, what);
        ngx_mcp_out_lit(out, "}");

        if (ngx_mcp_json_filled(object)) {
            ngx_mcp_out_lit(out, ",");
        }
    }

    ngx_mcp_out_add(out, p, end - p);
}


/*
 * The same for an object that relates to a task of another server already, or
 * whose _meta is not an object, or where one of them is duplicate.  Parsers
 * take the last of two members, so neither may remain.
 */

static void
ngx_mcp_render_replaced(ngx_mcp_out_t *out, ngx_mcp_json_t *object,
    ngx_mcp_view_t *v, ngx_uint_t what)
{
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;
    static ngx_str_t     meta = ngx_string("_meta");

    ngx_mcp_out_lit(out, "\"_meta\":{");
    ngx_mcp_render_meta(out, v, what);

    ngx_mcp_json_iter(&it, object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {
        if (value.type == NGX_MCP_JSON_OBJECT
            && ngx_mcp_json_is(&key, &meta))
        {
            ngx_mcp_render_others(out, &value, &ngx_mcp_meta_names[what]);
            break;
        }
    }

    ngx_mcp_out_lit(out, "}");
    ngx_mcp_render_others(out, object, &meta);
}


/* all members but those with this key, each after a comma */

static void
ngx_mcp_render_others(ngx_mcp_out_t *out, ngx_mcp_json_t *object,
    ngx_str_t *except)
{
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;

    ngx_mcp_json_iter(&it, object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (ngx_mcp_json_is(&key, except)) {
            continue;
        }

        ngx_mcp_out_lit(out, ",");
        ngx_mcp_out_str(out, &key.text);
        ngx_mcp_out_lit(out, ":");
        ngx_mcp_out_str(out, &value.text);
    }
}


/* a member of _meta */

static void
ngx_mcp_render_meta(ngx_mcp_out_t *out, ngx_mcp_view_t *v, ngx_uint_t what)
{
    if (what == NGX_MCP_META_RELATED) {
        ngx_mcp_render_related(out, v);

    } else {
        ngx_mcp_out_lit(out, NGX_MCP_META_SERVER);
    }
}


static void
ngx_mcp_render_related(ngx_mcp_out_t *out, ngx_mcp_view_t *v)
{
    u_char  id[NGX_MCP_ID_TEXT];

    (void) ngx_mcp_id_text(id, &v->id);

    ngx_mcp_out_lit(out, "\"" NGX_MCP_RELATED_TASK "\":{\"taskId\":\"");
    ngx_mcp_out_add(out, id, sizeof(id));
    ngx_mcp_out_lit(out, "\"}");
}


/* the definition of a tool; support adds execution.taskSupport */

void
ngx_mcp_render_tool(ngx_mcp_out_t *out, ngx_array_t *tools, ngx_uint_t i,
    ngx_uint_t support)
{
    ngx_mcp_tool_t  *tool;

    tool = (ngx_mcp_tool_t *) tools->elts + i;

    ngx_mcp_out_str(out, &tool->definition);

    if (support) {
        ngx_mcp_out_lit(out, ",\"execution\":{\"taskSupport\":\"");
        ngx_mcp_out_str(out, ngx_mcp_support_name(tool->support));
        ngx_mcp_out_lit(out, "\"}");
    }

    ngx_mcp_out_lit(out, "}");
}


/* the member "nextCursor" after a comma, if there is a next page */

void
ngx_mcp_render_cursor(ngx_mcp_out_t *out, ngx_mcp_zone_t *zone,
    ngx_str_t *owner, ngx_mcp_cursor_t *next)
{
    u_char  text[NGX_MCP_CURSOR_LEN];

    if (next->seq == 0) {
        return;
    }

    (void) ngx_mcp_cursor_text(zone, text, owner, next);

    ngx_mcp_out_lit(out, ",\"nextCursor\":\"");
    ngx_mcp_out_add(out, text, sizeof(text));
    ngx_mcp_out_lit(out, "\"");
}
