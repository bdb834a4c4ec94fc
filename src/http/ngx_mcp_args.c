
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Arguments that several surfaces share.  A function that returns a string
 * returns NULL if the argument is valid, otherwise an error message.
 */


#include "ngx_mcp_http.h"


/*
 * Parses a progress token.  A string is always written with the same escapes,
 * so that equal tokens are equal as text.  The value is unchanged if there is
 * no token.
 */

const char *
ngx_mcp_token(ngx_pool_t *pool, ngx_mcp_json_t *token, ngx_str_t *value)
{
    int64_t        n;
    ngx_str_t      s;
    ngx_mcp_out_t  out;

    if (token->type == NGX_MCP_JSON_NONE) {
        return NULL;
    }

    *value = token->text;

    if (token->type == NGX_MCP_JSON_STRING) {

        if (ngx_mcp_json_string(pool, token, &s) == NGX_OK) {
            ngx_mcp_out_init(&out, pool, s.len + 2);
            ngx_mcp_out_string(&out, &s);

            if (ngx_mcp_out_end(&out, value) != NGX_OK) {
                return "progressToken could not be stored";
            }
        }

    } else if (ngx_mcp_json_integer(token, &n) != NGX_OK) {
        return "progressToken must be a string or an integer";
    }

    if (value->len > NGX_MCP_MAX_TOKEN) {
        return "progressToken must not be longer than 60 bytes of JSON";
    }

    return NULL;
}


/*
 * Parses the requested ttl and limits it to max_ttl; null requests max_ttl.
 * The value is unchanged if there is no ttl.
 */

const char *
ngx_mcp_ttl(ngx_mcp_loc_conf_t *lcf, ngx_mcp_json_t *ttl, uint64_t *value)
{
    int64_t   n;
    uint64_t  max;

    max = (lcf->max_ttl == NGX_MCP_UNLIMITED)
          ? NGX_MCP_NEVER : lcf->max_ttl;

    switch (ttl->type) {

    case NGX_MCP_JSON_NONE:
        return NULL;

    case NGX_MCP_JSON_NULL:
        *value = max;
        return NULL;
    }

    if (ngx_mcp_json_integer(ttl, &n) != NGX_OK || n <= 0) {
        return "ttl must be a positive integer or null";
    }

    *value = ngx_min((uint64_t) n, max);

    return NULL;
}


/*
 * Parses the requested run timeout and limits it to what the operator allows,
 * or to the tool's own one if that is longer.  It is ignored if the operator
 * allows none.
 */

const char *
ngx_mcp_client_timeout(ngx_mcp_loc_conf_t *lcf, ngx_mcp_json_t *timeout,
    ngx_mcp_policy_t *policy)
{
    int64_t   n;
    uint64_t  max;

    if (timeout->type == NGX_MCP_JSON_NONE || lcf->client_timeout == 0) {
        return NULL;
    }

    if (ngx_mcp_json_integer(timeout, &n) != NGX_OK || n <= 0) {
        return "timeout must be a positive integer";
    }

    max = ngx_max(lcf->client_timeout, policy->run_timeout);
    policy->run_timeout = (uint32_t) ngx_min((uint64_t) n, max);

    return NULL;
}


/* the same for the requested priority */

const char *
ngx_mcp_client_priority(ngx_mcp_loc_conf_t *lcf, ngx_mcp_json_t *priority,
    ngx_mcp_policy_t *policy)
{
    int64_t   n;
    uint64_t  max;

    if (priority->type == NGX_MCP_JSON_NONE
        || lcf->client_priority == NGX_MCP_PRIORITIES)
    {
        return NULL;
    }

    if (ngx_mcp_json_integer(priority, &n) != NGX_OK
        || n < 0 || n >= NGX_MCP_PRIORITIES)
    {
        return "priority must be an integer from 0 to 3";
    }

    max = ngx_max(lcf->client_priority, policy->priority);
    policy->priority = (uint8_t) ngx_min((uint64_t) n, max);

    return NULL;
}


/*
 * Parses progress that a worker or a client reports.  The numbers of the event
 * are -1 if they are missing.
 */

const char *
ngx_mcp_progress_args(ngx_mcp_json_t *progress, ngx_mcp_json_t *total,
    ngx_mcp_json_t *message, ngx_mcp_op_update_t *op)
{
    op->event.progress = -1;
    op->event.total = -1;

    if (progress->type != NGX_MCP_JSON_NONE
        && (ngx_mcp_json_real(progress, &op->event.progress)
            != NGX_OK
            || op->event.progress < 0))
    {
        return "progress must be a number, not negative";
    }

    if (total->type == NGX_MCP_JSON_NONE) {

        if (op->event.progress > 1) {
            return "progress must be from 0 to 1 if there is no total";
        }

    } else if (ngx_mcp_json_real(total, &op->event.total) != NGX_OK
               || op->event.total < 0
               || op->event.total < op->event.progress)
    {
        return "total must be a number, not negative and not less than "
               "progress";
    }

    if (message->type == NGX_MCP_JSON_NONE) {
        return NULL;
    }

    if (message->type != NGX_MCP_JSON_STRING
        || message->text.len > NGX_MCP_MAX_MESSAGE)
    {
        return "message must be a JSON string of at most 1024 bytes";
    }

    op->change.payload[NGX_MCP_MESSAGE] = message->text;

    return NULL;
}


/* returns 0, which is never a lease token, if the text is not a lease token */

uint64_t
ngx_mcp_lease_token(ngx_mcp_json_t *value)
{
    u_char     *p;
    uint64_t    lease;
    ngx_int_t   n;
    ngx_uint_t  i;

    if (value->type != NGX_MCP_JSON_STRING
        || value->text.len != 18)
    {
        return 0;
    }

    p = value->text.data + 1;

    for (lease = 0, i = 0; i < 16; i += 4) {
        n = ngx_hextoi(p + i, 4);

        if (n == NGX_ERROR) {
            return 0;
        }

        lease = lease << 16 | n;
    }

    return lease;
}


/* a mask of the states that have this status; 0: unknown status */

ngx_uint_t
ngx_mcp_states_of(ngx_uint_t era, ngx_str_t *status)
{
    ngx_str_t      *name;
    ngx_uint_t      state, states;
    ngx_mcp_task_t  task;

    ngx_memzero(&task, sizeof(ngx_mcp_task_t));

    for (states = 0, state = NGX_MCP_QUEUED;
         state < NGX_MCP_STATES;
         state++)
    {
        name = ngx_mcp_status_name(state);

        if (status->len == name->len
            && ngx_memcmp(status->data, name->data, name->len) == 0)
        {
            states |= 1u << state;
        }
    }

    /* the status of a completed task with isError depends on the era */

    task.state = NGX_MCP_COMPLETED;
    task.flags = NGX_MCP_TOOL_ERROR;

    name = ngx_mcp_render_status(era, &task);

    if (status->len == name->len
        && ngx_memcmp(status->data, name->data, name->len) == 0)
    {
        states |= NGX_MCP_LIST_ERROR;
    }

    return states;
}
