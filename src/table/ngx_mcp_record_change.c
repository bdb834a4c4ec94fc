
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_record_change.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_history.h"


static ngx_uint_t ngx_mcp_record_change_payloads(ngx_mcp_change_t **change,
    ngx_mcp_change_t *last, ngx_uint_t state, ngx_mcp_record_change_t *rc);
static ngx_uint_t ngx_mcp_record_change_check(ngx_mcp_change_t *change);
static void ngx_mcp_record_change_write(ngx_mcp_record_t *rec,
    ngx_mcp_change_t *change, ngx_mcp_record_change_t *rc);


ngx_uint_t
ngx_mcp_record_change(ngx_mcp_record_t *rec, ngx_mcp_event_t *ev,
    ngx_mcp_change_t *change, ngx_mcp_record_change_t *rc)
{
    ngx_uint_t        reason, changes;
    ngx_mcp_task_t    task;
    ngx_mcp_change_t  last;

    rc->growth = 0;
    rc->changed = 0;
    rc->turned = 0;
    rc->moved = 0;
    rc->requeued = 0;
    rc->written = 0;
    rc->diagnosed = 0;
    rc->removed = 0;

    task = rec->task;

    reason = ngx_mcp_task_apply(&task, ev);

    if (reason != NGX_MCP_OK) {
        return reason;
    }

    if (task.state == NGX_MCP_FREE) {
        rc->removed = 1;
        return NGX_MCP_OK;
    }

    if (change) {
        reason = ngx_mcp_record_change_payloads(&change, &last, task.state,
                                                rc);
        if (reason != NGX_MCP_OK) {
            return reason;
        }

        ngx_mcp_record_change_write(rec, change, rc);
    }

    changes = ngx_mcp_changes_rule(&rec->task, &task, rec->peak,
                                   (rec->turned ? NGX_MCP_TURNED : 0)
                                   | (rec->moved ? NGX_MCP_MOVED : 0),
                                   rc->written & (1u << NGX_MCP_MESSAGE),
                                   rec->token.len);
    if (changes) {
        rc->changed = 1;
        rc->turned = (changes & NGX_MCP_TURNED) != 0;
        rc->moved = (changes & NGX_MCP_MOVED) != 0;
        rec->peak = ngx_max(rec->peak, task.progress);
    }

    rc->requeued = (ngx_mcp_task_listed(&task)
                    && !ngx_mcp_task_listed(&rec->task));

    if (task.state != rec->task.state
        && rec->history.len >= NGX_MCP_HISTORY_MIN)
    {
        ngx_mcp_history_append(rec->history.data, rec->history.len,
                               task.created, ev->wall, ev->type, task.state,
                               ev->worker);
    }

    rec->task = task;
    rec->revision++;

    return NGX_MCP_OK;
}


/*
 * Checks the payloads.  A change that ends the task with a diagnosis is
 * replaced by last.
 */

static ngx_uint_t
ngx_mcp_record_change_payloads(ngx_mcp_change_t **change,
    ngx_mcp_change_t *last, ngx_uint_t state, ngx_mcp_record_change_t *rc)
{
    if ((*change)->diagnosis.data && ngx_mcp_terminal(state)) {
        *last = **change;
        *change = last;
        last->payload[NGX_MCP_MESSAGE] = last->diagnosis;

        if (!rc->plain && ngx_mcp_record_change_check(last) == NGX_MCP_OK) {
            rc->diagnosed = 1;
            return NGX_MCP_OK;
        }

        /* the message of before is not a diagnosis: it is deleted */

        ngx_str_set(&last->payload[NGX_MCP_MESSAGE], "");
    }

    return ngx_mcp_record_change_check(*change);
}


static ngx_uint_t
ngx_mcp_record_change_check(ngx_mcp_change_t *change)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {

        if (change->payload[i].data && change->max_payload
            && change->payload[i].len > change->max_payload)
        {
            return NGX_MCP_PAYLOAD_TOO_LARGE;
        }
    }

    return NGX_MCP_OK;
}


static void
ngx_mcp_record_change_write(ngx_mcp_record_t *rec, ngx_mcp_change_t *change,
    ngx_mcp_record_change_t *rc)
{
    ngx_str_t   *p;
    ngx_uint_t   i;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        p = &change->payload[i];

        /* deleting what does not exist is not a change */

        if (p->data == NULL || (p->len == 0 && rc->lengths[i] == 0)) {
            continue;
        }

        rc->growth += (int64_t) p->len - rc->lengths[i];
        rc->lengths[i] = (uint32_t) p->len;
        rc->written |= 1u << i;

        rec->payload[i] = *p;
        rec->mask |= 1u << i;
    }
}
