
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* All tasks of the zone by their last change, for the console. */


#include "ngx_mcp_shm.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_signal.h"


/* criteria with resolved names */

typedef struct {
    ngx_mcp_criteria_t  *criteria;
    uint32_t             owner;    /* indexes of names; 0: any */
    uint32_t             tool;
} ngx_mcp_matcher_t;


static void ngx_mcp_recent_find_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found);
static ngx_uint_t ngx_mcp_recent_seek_locked(ngx_mcp_table_t *t,
    ngx_mcp_op_recent_t *op, uint32_t *place);
static ngx_uint_t ngx_mcp_matcher_locked(ngx_mcp_table_t *t,
    ngx_mcp_criteria_t *criteria, ngx_mcp_matcher_t *matcher);
static uint32_t ngx_mcp_matcher_name_locked(ngx_mcp_table_t *t, ngx_uint_t kind,
    ngx_str_t *name);
static ngx_uint_t ngx_mcp_matches(ngx_mcp_matcher_t *matcher,
    ngx_mcp_slot_t *s);


ngx_int_t
ngx_mcp_shm_recent(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_recent_t *op = (ngx_mcp_op_recent_t *) o;

    u_char           *p;
    ngx_uint_t        i;
    ngx_mcp_found_t   found;
    ngx_mcp_table_t  *t;

    t = zone->table;

    op->views = ngx_mcp_find_lock(t, o, &op->limit, &found,
                                  ngx_mcp_recent_find_locked,
                                  ngx_mcp_lock_read);
    if (op->views == NULL) {
        return NGX_ERROR;
    }

    op->n = found.n;

    for (p = found.buf.data, i = 0; i < op->n; i++) {
        p = ngx_mcp_view_locked(t, ngx_mcp_slot(t, found.slots[i]), op->want,
                                &op->views[i], p);
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}


static void
ngx_mcp_recent_find_locked(ngx_mcp_table_t *t, ngx_mcp_op_t *o,
    ngx_mcp_found_t *found)
{
    ngx_mcp_op_recent_t *op = (ngx_mcp_op_recent_t *) o;

    uint32_t           n;
    ngx_uint_t         scanned, any;
    ngx_mcp_slot_t    *s;
    ngx_mcp_matcher_t  matcher;

    op->more = 0;
    op->next = op->after;
    op->lost = ngx_mcp_recent_seek_locked(t, op, &n);

    if (op->watch) {
        ngx_mcp_await_name_locked(t, NGX_MCP_ANY);
    }

    any = ngx_mcp_matcher_locked(t, &op->criteria, &matcher);

    for (scanned = 0;
         n && found->n < op->limit && scanned < NGX_MCP_LIST_SCAN;
         scanned++)
    {
        s = ngx_mcp_slot(t, n);

        if (any && ngx_mcp_matches(&matcher, s)) {
            found->slots[found->n++] = n;
            found->size += ngx_mcp_view_size_locked(t, s, op->want);
        }

        op->next.seq = s->body.changed;
        op->next.hint = n;
        n = op->changes ? s->recent.prev : s->recent.next;
    }

    op->more = (n != 0);

    if (!op->changes && n == 0) {
        op->next.seq = 0;
    }
}


/*
 * Finds the task to continue with.  If the last task was removed or has
 * changed, its place is searched for from the front, for a limited number of
 * steps.  Returns 1 if the place was not found: then pages end, and changes
 * continue after the last change.
 */

static ngx_uint_t
ngx_mcp_recent_seek_locked(ngx_mcp_table_t *t, ngx_mcp_op_recent_t *op,
    uint32_t *place)
{
    uint32_t         n, prev;
    ngx_uint_t       i;
    ngx_mcp_slot_t  *s;

    n = t->sh->recent;

    if (op->after.seq == 0 && op->after.hint == 0) {
        *place = op->changes ? 0 : n;

        if (op->changes) {
            /* seq may be 0: the hint makes it a cursor */
            op->next.seq = t->sh->seq;
            op->next.hint = (uint64_t) -1;
        }

        return 0;
    }

    if (op->after.hint && op->after.hint < t->sh->slot.fresh) {
        s = ngx_mcp_slot(t, op->after.hint);

        if (s->body.changed == op->after.seq
            && s->body.task.state != NGX_MCP_FREE)
        {
            *place = op->changes ? s->recent.prev : s->recent.next;
            return 0;
        }
    }

    for (prev = 0, i = 0; n; i++) {
        s = ngx_mcp_slot(t, n);

        if (s->body.changed < op->after.seq + (op->changes != 0)) {
            break;
        }

        if (i == NGX_MCP_LIST_SCAN) {
            op->next.seq = op->changes ? t->sh->seq : 0;
            *place = 0;
            return 1;
        }

        prev = n;
        n = s->recent.next;
    }

    *place = op->changes ? prev : n;

    return 0;
}


/* 0: no task can match, since a name does not exist */

static ngx_uint_t
ngx_mcp_matcher_locked(ngx_mcp_table_t *t, ngx_mcp_criteria_t *criteria,
    ngx_mcp_matcher_t *matcher)
{
    matcher->criteria = criteria;
    matcher->owner = 0;
    matcher->tool = 0;

    if (criteria->owner) {
        matcher->owner = ngx_mcp_matcher_name_locked(t, NGX_MCP_OWNER,
                                                     criteria->owner);
        if (matcher->owner == 0) {
            return 0;
        }
    }

    if (criteria->tool.len) {
        matcher->tool = ngx_mcp_matcher_name_locked(t, NGX_MCP_TOOL,
                                                    &criteria->tool);
        if (matcher->tool == 0) {
            return 0;
        }
    }

    return 1;
}


static uint32_t
ngx_mcp_matcher_name_locked(ngx_mcp_table_t *t, ngx_uint_t kind,
    ngx_str_t *name)
{
    return ngx_mcp_name_find_locked(t, kind, name,
                                    ngx_mcp_name_hash(t, kind, name));
}


static ngx_uint_t
ngx_mcp_matches(ngx_mcp_matcher_t *matcher, ngx_mcp_slot_t *s)
{
    ngx_mcp_task_t      *task;
    ngx_mcp_criteria_t  *criteria;

    task = &s->body.task;
    criteria = matcher->criteria;

    return (matcher->owner == 0 || s->owner == matcher->owner)
           && (matcher->tool == 0 || s->tool == matcher->tool)
           && (criteria->states == 0
               || criteria->states & ngx_mcp_list_bit(task))
           && task->created >= criteria->from
           && (criteria->to == 0 || task->created <= criteria->to)
           && ngx_current_msec < task->expires;
}
