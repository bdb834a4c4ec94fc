
#include "ngx_mcp_news.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_signal.h"


/*
 * Whether a change is news, and of what kind: the status with its message, or
 * progress.  The message that comes with progress is told with it, if there
 * is a token to do so.
 */

ngx_uint_t
ngx_http_mcp_tasks_news_made_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s, ngx_http_mcp_tasks_body_t *body)
{
    ngx_uint_t                  announced, moved, noted;
    ngx_http_mcp_tasks_body_t  *old;

    old = &s->body;
    announced = ((body->task.flags ^ old->task.flags)
                 & NGX_HTTP_MCP_TASKS_ANNOUNCED);

    if (body->task.version == old->task.version && !announced) {
        return 0;
    }

    body->changed = ++t->sh->seq;

    moved = (body->task.progress > body->peak);
    noted = (body->payload[NGX_HTTP_MCP_TASKS_MESSAGE].last
             != old->payload[NGX_HTTP_MCP_TASKS_MESSAGE].last);

    /*
     * what happened before the client knew the task has been told to nobody;
     * clients do not see whether a task is queued or runs
     */

    if ((announced && body->turned)
        || ngx_http_mcp_tasks_status_name(body->task.state)
           != ngx_http_mcp_tasks_status_name(old->task.state)
        || (noted && !(moved && s->token)))
    {
        body->turned = body->changed;
    }

    if ((announced && body->moved) || moved) {
        body->moved = body->changed;
    }

    body->peak = ngx_max(body->peak, body->task.progress);

    return 1;
}


/* before a change, and at the end */

void
ngx_http_mcp_tasks_news_take_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s)
{
    ngx_http_mcp_tasks_told_t  *told;

    if (s->body.changed > t->sh->saved) {
        ngx_http_mcp_tasks_save_take_locked(t, s);
    }

    ngx_http_mcp_tasks_order_remove_locked(t, &ngx_http_mcp_tasks_recent, s);
    ngx_http_mcp_tasks_order_remove_locked(t, &ngx_http_mcp_tasks_by_change,
                                           s);

    if (ngx_http_mcp_tasks_news_has(s)) {
        ngx_http_mcp_tasks_order_remove_locked(t, &ngx_http_mcp_tasks_news, s);

        told = &ngx_http_mcp_tasks_name(t, s->session)->u.told;

        if (s->body.changed > told->told) {
            told->behind--;
        }
    }
}


/* after a change */

void
ngx_http_mcp_tasks_news_put_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s)
{
    ngx_http_mcp_tasks_news_insert_locked(t, s);

    ngx_http_mcp_tasks_signal_task_locked(t, s);
    ngx_http_mcp_tasks_signal_name_locked(t, NGX_HTTP_MCP_TASKS_ANY);
    ngx_http_mcp_tasks_signal_name_locked(t,
                              ngx_http_mcp_tasks_name(t, s->owner)->hash);

    if (ngx_http_mcp_tasks_news_has(s)) {
        ngx_http_mcp_tasks_signal_name_locked(t,
                              ngx_http_mcp_tasks_name(t, s->session)->hash);
    }
}


void
ngx_http_mcp_tasks_news_insert_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s)
{
    ngx_http_mcp_tasks_told_t  *told;

    ngx_http_mcp_tasks_order_insert_locked(t, &ngx_http_mcp_tasks_recent, s);

    if (s->body.changed > t->sh->saved) {
        ngx_http_mcp_tasks_save_put_locked(t, s);
    }

    ngx_http_mcp_tasks_order_insert_locked(t, &ngx_http_mcp_tasks_by_change,
                                           s);

    if (ngx_http_mcp_tasks_news_has(s)) {
        ngx_http_mcp_tasks_order_insert_locked(t, &ngx_http_mcp_tasks_news, s);

        told = &ngx_http_mcp_tasks_name(t, s->session)->u.told;

        if (s->body.changed > told->told) {
            told->behind++;
        }
    }
}


/*
 * The task of a session that changed first of those it was not told of; 0:
 * none.  Too far behind, it misses the oldest.
 */

uint32_t
ngx_http_mcp_tasks_news_first_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t session)
{
    uint32_t                    n, next, seen;
    ngx_http_mcp_tasks_told_t  *told;

    told = &ngx_http_mcp_tasks_name(t, session)->u.told;
    n = 0;
    next = told->news;

    for (seen = 0; seen < NGX_HTTP_MCP_TASKS_SESSION_NEWS; seen++) {

        if (next == 0
            || ngx_http_mcp_tasks_slot(t, next)->body.changed <= told->told)
        {
            return n;
        }

        n = next;
        next = ngx_http_mcp_tasks_slot(t, n)->news.next;
    }

    if (told->behind > seen) {
        t->sh->count.news_dropped += told->behind - seen;
        told->behind = seen;
        told->told = ngx_http_mcp_tasks_slot(t, next)->body.changed;
    }

    return n;
}


/* it is told now */

void
ngx_http_mcp_tasks_news_told_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s)
{
    ngx_http_mcp_tasks_told_t  *told;

    told = &ngx_http_mcp_tasks_name(t, s->session)->u.told;

    told->behind--;
    told->told = s->body.changed;
}


/* the client says that it knows less than it was told, or more */

void
ngx_http_mcp_tasks_news_rewind_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t session, uint64_t from)
{
    uint32_t                    n;
    ngx_http_mcp_tasks_slot_t  *s;
    ngx_http_mcp_tasks_told_t  *told;

    /* a client may say anything, but nobody knows what is yet to come */

    from = ngx_min(from, t->sh->seq);

    told = &ngx_http_mcp_tasks_name(t, session)->u.told;
    told->behind = 0;
    told->told = from;

    /* what lies farther back would be dropped anyway */

    for (n = told->news;
         n && told->behind < NGX_HTTP_MCP_TASKS_SESSION_NEWS;
         n = s->news.next)
    {
        s = ngx_http_mcp_tasks_slot(t, n);

        if (s->body.changed <= from) {
            return;
        }

        told->behind++;
    }

    if (n) {
        told->told = ngx_max(from,
                             ngx_http_mcp_tasks_slot(t, n)->body.changed);
    }
}
