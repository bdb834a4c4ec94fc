
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Tasks of all owners, as the console shows them. */


#include "ngx_mcp_console.h"
#include "ngx_mcp_gateway.h"


static ngx_uint_t ngx_mcp_console_states(ngx_str_t *status);
static ngx_int_t ngx_mcp_console_listed(ngx_http_request_t *r,
    ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_console_gone(ngx_http_request_t *r);
static void ngx_mcp_render_members_of_row(ngx_mcp_out_t *out,
    ngx_mcp_view_t *v);
static void ngx_mcp_render_payload(ngx_mcp_out_t *out, const char *name,
    ngx_str_t *text);
static void ngx_mcp_render_history(ngx_mcp_out_t *out, ngx_mcp_view_t *v);
static const char *ngx_mcp_event_name(ngx_uint_t event);


/* cursors of the console are sealed for this name, which no owner has */

static ngx_str_t  ngx_mcp_console_owner = ngx_string("\0console");


/* GET api/tasks: the latest change first */

ngx_int_t
ngx_mcp_console_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t             cursor;
    const char           *err;
    ngx_mcp_wanted_t     *wanted;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_op_recent_t  *op;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    op = ngx_mcp_op(r, NGX_MCP_OP_RECENT, sizeof(ngx_mcp_op_recent_t));
    wanted = ngx_palloc(r->pool, sizeof(ngx_mcp_wanted_t));

    if (op == NULL || wanted == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    err = ngx_mcp_console_wanted(r, wanted);

    if (err == NULL
        && ngx_mcp_rest_limit(r, &op->limit) != NGX_OK)
    {
        err = "limit must be an integer from 1 to 100";
    }

    if (err == NULL
        && ngx_mcp_rest_text(r, "cursor", &cursor) != NGX_OK)
    {
        err = "invalid percent-encoding in the query";
    }

    if (err) {
        return ngx_mcp_problem_invalid(r, err);
    }

    /* it may be of an earlier incarnation of the zone */

    if (cursor.len
        && ngx_mcp_cursor_parse(lcf->zone, &cursor,
                                &ngx_mcp_console_owner,
                                &op->after)
           != NGX_OK)
    {
        return ngx_mcp_console_gone(r);
    }

    op->criteria = ngx_mcp_console_criteria(wanted);
    op->want = NGX_MCP_WANT_ROW;

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_console_listed);
}


/* parses the criteria of the query; returns NULL, or an error message */

const char *
ngx_mcp_console_wanted(ngx_http_request_t *r, ngx_mcp_wanted_t *wanted)
{
    ngx_str_t            status, arg;
    ngx_mcp_criteria_t  *criteria;

    ngx_memzero(wanted, sizeof(ngx_mcp_wanted_t));
    wanted->min_age = -1;
    wanted->max_age = -1;
    criteria = &wanted->criteria;

    if (ngx_mcp_rest_text(r, "status", &status) != NGX_OK
        || ngx_mcp_rest_text(r, "tool", &criteria->tool) != NGX_OK
        || ngx_mcp_rest_text(r, "owner", &wanted->owner) != NGX_OK)
    {
        return "invalid percent-encoding in the query";
    }

    /* an empty owner means tasks without an owner */

    if (ngx_http_arg(r, (u_char *) "owner", 5, &arg) == NGX_OK) {
        criteria->owner = &wanted->owner;
    }

    if (status.len) {
        criteria->states = ngx_mcp_console_states(&status);

        if (criteria->states == 0) {
            return "status must be queued, running, working, input_required, "
                   "completed, failed or cancelled";
        }
    }

    if (ngx_mcp_rest_arg(r, "minAge", &wanted->min_age) != NGX_OK
        || ngx_mcp_rest_arg(r, "maxAge", &wanted->max_age)
           != NGX_OK)
    {
        return "minAge and maxAge must be integers, in seconds, not negative";
    }

    return NULL;
}


/* a mask for a phase or a status; 0: unknown */

static ngx_uint_t
ngx_mcp_console_states(ngx_str_t *status)
{
    ngx_str_t   *name;
    ngx_uint_t   state;

    for (state = NGX_MCP_QUEUED;
         state <= NGX_MCP_RUNNING;
         state++)
    {
        name = ngx_mcp_state_name(state);

        if (status->len == name->len
            && ngx_memcmp(status->data, name->data, name->len) == 0)
        {
            return 1u << state;
        }
    }

    return ngx_mcp_states_of(NGX_MCP_MODERN, status);
}


/* converts ages to times */

ngx_mcp_criteria_t
ngx_mcp_console_criteria(ngx_mcp_wanted_t *wanted)
{
    uint64_t            seconds;
    ngx_mcp_criteria_t  criteria;

    criteria = wanted->criteria;
    seconds = ngx_mcp_wall() / 1000;

    if (wanted->max_age >= 0) {
        criteria.from = ngx_mcp_wall()
                        - ngx_min((uint64_t) wanted->max_age, seconds) * 1000;
    }

    if (wanted->min_age >= 0) {
        criteria.to = ngx_mcp_wall()
                      - ngx_min((uint64_t) wanted->min_age, seconds) * 1000;
    }

    return criteria;
}


static ngx_int_t
ngx_mcp_console_listed(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_str_t             text;
    ngx_uint_t            i;
    ngx_mcp_out_t         out;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_op_recent_t  *op;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    op = (ngx_mcp_op_recent_t *) o;

    if (o->reason != NGX_MCP_OK) {
        return ngx_mcp_problem_refused(r, o->reason);
    }

    if (op->lost) {
        return ngx_mcp_console_gone(r);
    }

    ngx_mcp_out_init(&out, r->pool, 128 + op->n * 512);
    ngx_mcp_out_lit(&out, "{\"tasks\":[");

    for (i = 0; i < op->n; i++) {

        if (i) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_render_row(&out, &op->views[i]);
    }

    ngx_mcp_out_lit(&out, "]");
    ngx_mcp_render_cursor(&out, lcf->zone, &ngx_mcp_console_owner, &op->next);
    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &text) != NGX_OK
        || ngx_mcp_no_store(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_send(r, NGX_HTTP_OK, &text, 1);
}


static ngx_int_t
ngx_mcp_console_gone(ngx_http_request_t *r)
{
    static ngx_str_t  reason = ngx_string("cursor_gone");

    return ngx_mcp_problem(r, NGX_MCP_HTTP_GONE, &reason, NULL);
}


void
ngx_mcp_render_row(ngx_mcp_out_t *out, ngx_mcp_view_t *v)
{
    ngx_mcp_out_lit(out, "{");
    ngx_mcp_render_members_of_row(out, v);
    ngx_mcp_out_lit(out, "}");
}


static void
ngx_mcp_render_members_of_row(ngx_mcp_out_t *out, ngx_mcp_view_t *v)
{
    ngx_mcp_task_t  *task;

    task = &v->task;

    ngx_mcp_render_short(out, v);
    ngx_mcp_out_lit(out, ",\"owner\":");
    ngx_mcp_out_bytes(out, &v->owner);
    ngx_mcp_out_lit(out, ",\"phase\":\"");
    ngx_mcp_out_str(out, ngx_mcp_state_name(task->state));
    ngx_mcp_out_lit(out, "\",\"attempt\":");
    ngx_mcp_out_number(out, task->attempt);
    ngx_mcp_out_lit(out, ",\"attempts\":");
    ngx_mcp_out_number(out, task->policy.attempts);

    if (task->policy.route) {
        ngx_mcp_out_lit(out, ",\"kind\":\"gateway\"");

    } else {
        ngx_mcp_out_lit(out, ",\"kind\":\"queue\"");
    }

    /* a task that is queued again has no worker */

    if (v->worker.len && task->state != NGX_MCP_QUEUED) {
        ngx_mcp_out_lit(out, ",\"worker\":");
        ngx_mcp_out_bytes(out, &v->worker);
    }

    ngx_mcp_out_lit(out, ",\"expiresAt\":");

    if (task->expires == NGX_MCP_NEVER) {
        ngx_mcp_out_lit(out, "null");

    } else {
        ngx_mcp_out_time(out, ngx_mcp_wall()
                         + task->expires - ngx_current_msec);
    }

    if (task->state == NGX_MCP_COMPLETED
        && task->flags & NGX_MCP_TOOL_ERROR)
    {
        ngx_mcp_out_lit(out, ",\"isError\":true");
    }
}


/* a task with all details */

void
ngx_mcp_render_console(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_zone_t *zone)
{
    ngx_str_t  *payload;

    payload = v->payload;

    ngx_mcp_out_lit(out, "{");
    ngx_mcp_render_members_of_row(out, v);

    ngx_mcp_out_lit(out, ",\"method\":");
    ngx_mcp_out_string(out, &v->method);
    ngx_mcp_render_payload(out, "params", &payload[NGX_MCP_PARAMS]);
    ngx_mcp_render_payload(out, "metadata", &payload[NGX_MCP_METADATA]);

    switch (v->task.state) {

    case NGX_MCP_INPUT_REQUIRED:
        ngx_mcp_render_payload(out, "inputRequests",
                               &payload[NGX_MCP_REQUESTS]);
        break;

    case NGX_MCP_COMPLETED:
        ngx_mcp_render_payload(out, "result", &payload[NGX_MCP_RESULT]);
        break;

    case NGX_MCP_FAILED:
        ngx_mcp_out_lit(out, ",\"error\":");
        /* as it was reported */
        ngx_mcp_render_error(out, NGX_MCP_LEGACY, v);
        break;
    }

    ngx_mcp_render_payload(out, "inputResponses", &payload[NGX_MCP_RESPONSES]);
    ngx_mcp_render_history(out, v);
    ngx_mcp_out_lit(out, ",\"retryable\":");
    ngx_mcp_out_flag(out, ngx_mcp_retryable(zone, v));
    ngx_mcp_out_lit(out, "}");
}


/* a member with a payload, which is JSON; nothing if it is empty */

static void
ngx_mcp_render_payload(ngx_mcp_out_t *out, const char *name, ngx_str_t *text)
{
    if (text->len) {
        ngx_mcp_out_lit(out, ",\"");
        ngx_mcp_out_text(out, name);
        ngx_mcp_out_lit(out, "\":");
        ngx_mcp_out_str(out, text);
    }
}


/* the creation has no entry: it is added, unless entries were dropped */

static void
ngx_mcp_render_history(ngx_mcp_out_t *out, ngx_mcp_view_t *v)
{
    ngx_uint_t               i;
    ngx_mcp_view_history_t  *m;

    ngx_mcp_out_lit(out, ",\"history\":[");

    if (v->dropped == 0) {
        ngx_mcp_out_lit(out, "{\"at\":");
        ngx_mcp_out_time(out, v->task.created);
        ngx_mcp_out_lit(out, ",\"event\":\"created\","
                        "\"phase\":\"queued\"}");
    }

    for (i = 0; i < v->nhistory; i++) {
        m = &v->history[i];

        if (i || v->dropped == 0) {
            ngx_mcp_out_lit(out, ",");
        }

        ngx_mcp_out_lit(out, "{\"at\":");
        ngx_mcp_out_time(out, m->at);
        ngx_mcp_out_lit(out, ",\"event\":\"");
        ngx_mcp_out_text(out, ngx_mcp_event_name(m->event));
        ngx_mcp_out_lit(out, "\",\"phase\":\"");
        ngx_mcp_out_str(out, ngx_mcp_state_name(m->state));
        ngx_mcp_out_lit(out, "\"");

        if (m->attempt) {
            ngx_mcp_out_lit(out, ",\"attempt\":");
            ngx_mcp_out_number(out, m->attempt);
        }

        if (m->worker.len) {
            ngx_mcp_out_lit(out, ",\"worker\":");
            ngx_mcp_out_bytes(out, &m->worker);
        }

        ngx_mcp_out_lit(out, "}");
    }

    ngx_mcp_out_lit(out, "],\"historyDropped\":");
    ngx_mcp_out_number(out, v->dropped ? v->dropped + 1 : 0);
}


static const char *
ngx_mcp_event_name(ngx_uint_t event)
{
    switch (event) {
    case NGX_MCP_EV_CLAIM:
        return "claimed";
    case NGX_MCP_EV_ASK:
        return "asked";
    case NGX_MCP_EV_ANSWER:
    case NGX_MCP_EV_ANSWER_ALL:
        return "answered";
    case NGX_MCP_EV_COMPLETE:
        return "completed";
    case NGX_MCP_EV_FAIL:
        return "failed";
    case NGX_MCP_EV_RETRY:
        return "retried";
    case NGX_MCP_EV_RELEASE:
        return "released";
    case NGX_MCP_EV_CANCEL:
        return "cancelled";
    case NGX_MCP_EV_LEASE_LOST:
        return "lease_lost";
    case NGX_MCP_EV_QUEUE_TIMEOUT:
        return "queue_timeout";
    case NGX_MCP_EV_RUN_TIMEOUT:
        return "run_timeout";
    case NGX_MCP_EV_ORPHANED:
        return "process_lost";
    default:
        return "changed";
    }
}


/*
 * A task that did not succeed can be retried.  A call to an upstream can be
 * retried only if any worker process can make it from the record.
 */

ngx_uint_t
ngx_mcp_retryable(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v)
{
    ngx_mcp_task_t  *task;

    task = &v->task;

    if (task->state != NGX_MCP_FAILED
        && task->state != NGX_MCP_CANCELLED
        && !(task->state == NGX_MCP_COMPLETED
             && task->flags & NGX_MCP_TOOL_ERROR))
    {
        return 0;
    }

    return task->policy.route == 0
           || (!(task->policy.calls & NGX_MCP_BOUND)
               && ngx_mcp_job_gateway(zone, v));
}
