
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* From replies of Redis to copies of tasks, and to the mirror. */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_mirror.h"
#include "ngx_mcp_valid.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_REDIS)


static ngx_int_t ngx_mcp_redis_others(ngx_mcp_redis_call_t *call,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_text(ngx_mcp_redis_call_t *call,
    redisReply *reply, ngx_str_t *text);
static ngx_int_t ngx_mcp_redis_history(ngx_mcp_redis_call_t *call,
    ngx_mcp_view_t *view);


/*
 * Reads a task into call->rr, with monotonic times: from the string of the
 * task, and if they are given, the string of its result and the hash of its
 * other payloads.  NGX_DECLINED: there is no task.  NGX_ABORT: it is invalid.
 */

ngx_int_t
ngx_mcp_redis_load(ngx_mcp_redis_call_t *call, redisReply *task,
    redisReply *result, redisReply *others)
{
    u_char                  *p;
    const char              *what;
    ngx_uint_t               i;
    ngx_mcp_record_t        *rec;
    ngx_mcp_redis_record_t  *rr;

    rr = &call->rr;
    rec = &rr->rec;

    if (task->type == REDIS_REPLY_NIL) {
        return NGX_DECLINED;
    }

    if (task->type != REDIS_REPLY_STRING || task->len < NGX_MCP_REDIS_HEAD) {
        what = "type";
        goto invalid;
    }

    /* the reply is freed before the operation is done */

    p = ngx_pnalloc(call->pool, task->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, task->str, task->len);

    if (ngx_mcp_redis_decode(rr, &call->id, p, task->len, &what) != NGX_OK) {
        goto invalid;
    }

    ngx_memcpy(call->expected, p, sizeof(call->expected));
    ngx_str_null(&call->worker);

    call->whole = (others != NULL);

    if (result && result->type == REDIS_REPLY_STRING
        && ngx_mcp_redis_text(call, result, &rec->payload[NGX_MCP_RESULT])
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (others && ngx_mcp_redis_others(call, others) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; others && i < NGX_MCP_PAYLOADS; i++) {
        if (rec->payload[i].len != rr->lengths[i]) {
            what = "length";
            goto invalid;
        }
    }

    if (others) {
        rec->mask = NGX_MCP_RECORD_ALL;

        what = ngx_mcp_record_valid(rec);
        if (what) {
            goto invalid;
        }
    }

    ngx_mcp_record_from_store(rec, ngx_current_msec,
                              ngx_mcp_redis_now(call->st->zone));

    return NGX_OK;

invalid:

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "redis: invalid record of a task in zone \"%V\": %s",
                  &call->st->zone->name, what);

    return NGX_ABORT;
}


/* the hash of the payloads that most tasks do not have */

static ngx_int_t
ngx_mcp_redis_others(ngx_mcp_redis_call_t *call, redisReply *reply)
{
    size_t       i;
    ngx_str_t   *text;
    ngx_uint_t   n;
    redisReply  *name;

    if (reply->type != REDIS_REPLY_ARRAY) {
        return NGX_OK;
    }

    for (i = 0; i + 1 < reply->elements; i += 2) {
        name = reply->element[i];

        if (name->type != REDIS_REPLY_STRING || name->len != 1) {
            continue;
        }

        if (name->str[0] == 'w') {
            text = &call->worker;

        } else {
            n = ngx_mcp_record_payload((ngx_uint_t) (name->str[0] - '0'));

            if (n == NGX_MCP_PAYLOADS || n == NGX_MCP_PARAMS
                || n == NGX_MCP_RESULT)
            {
                continue;
            }

            text = &call->rr.rec.payload[n];
        }

        if (ngx_mcp_redis_text(call, reply->element[i + 1], text) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_redis_text(ngx_mcp_redis_call_t *call, redisReply *reply,
    ngx_str_t *text)
{
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0) {
        ngx_str_null(text);
        return NGX_OK;
    }

    text->len = reply->len;
    text->data = ngx_pnalloc(call->pool, reply->len);

    if (text->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(text->data, reply->str, reply->len);

    return NGX_OK;
}


/* whether the wanted parts include some that are in the hash */

ngx_uint_t
ngx_mcp_redis_needs_others(ngx_mcp_redis_record_t *rr, ngx_uint_t want)
{
    ngx_uint_t  i;

    if (want & NGX_MCP_WANT_WORKER && rr->worker_len) {
        return 1;
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (i != NGX_MCP_PARAMS && i != NGX_MCP_RESULT
            && want & NGX_MCP_WANT(i) && rr->lengths[i])
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Only this function checks the owner of a task that was read from Redis; see
 * ngx_mcp_find_locked().
 */

ngx_uint_t
ngx_mcp_redis_visible(ngx_mcp_redis_call_t *call, ngx_str_t *owner)
{
    ngx_mcp_record_t  *rec;

    rec = &call->rr.rec;

    return ngx_current_msec < rec->task.expires
           && (owner == NULL
               || (owner->len == rec->owner.len
                   && ngx_memcmp(owner->data, rec->owner.data, owner->len)
                      == 0));
}


ngx_int_t
ngx_mcp_redis_view(ngx_mcp_redis_call_t *call, ngx_uint_t want,
    ngx_mcp_view_t *view)
{
    ngx_uint_t         i;
    ngx_mcp_record_t  *rec;

    rec = &call->rr.rec;

    ngx_memzero(view, sizeof(ngx_mcp_view_t));

    view->id = rec->id;
    view->seq = rec->seq;
    view->changed = rec->changed;
    view->turned = rec->turned;
    view->moved = rec->moved;
    view->task = rec->task;
    view->owner = rec->owner;
    view->tool = rec->tool;
    view->token = rec->token;
    view->worker = call->worker;
    view->method = rec->method;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (want & NGX_MCP_WANT(i)) {
            view->payload[i] = rec->payload[i];
        }
    }

    return (want & NGX_MCP_WANT_HISTORY) ? ngx_mcp_redis_history(call, view)
                                         : NGX_OK;
}


static ngx_int_t
ngx_mcp_redis_history(ngx_mcp_redis_call_t *call, ngx_mcp_view_t *view)
{
    ngx_uint_t                i;
    ngx_mcp_record_t         *rec;
    ngx_mcp_history_entry_t   entries[NGX_MCP_HISTORY_MAX];

    rec = &call->rr.rec;

    view->nhistory = ngx_mcp_history_read(rec->history.data, rec->history.len,
                                          rec->task.created, entries,
                                          &view->dropped);

    view->history = ngx_pcalloc(call->pool, (view->nhistory + 1)
                                            * sizeof(ngx_mcp_view_history_t));
    if (view->history == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < view->nhistory; i++) {
        view->history[i].at = entries[i].at;
        view->history[i].event = entries[i].event;
        view->history[i].state = entries[i].state;
    }

    ngx_mcp_view_attempts(view);

    return NGX_OK;
}


/* puts the task, with all payloads, into the memory of this machine */

void
ngx_mcp_redis_mirror(ngx_mcp_redis_call_t *call)
{
    ngx_int_t         rc;
    ngx_uint_t        local;
    ngx_mcp_zone_t   *zone;
    ngx_mcp_table_t  *t;

    zone = call->st->zone;
    t = zone->table;
    local = (call->rr.seat == ngx_mcp_redis_shared(zone)->seat)
            ? NGX_MCP_MIRROR_LOCAL : 0;

    ngx_mcp_lock(t);
    rc = ngx_mcp_mirror_put_locked(t, &call->rr.rec, local);
    ngx_mcp_unlock(t);

    if (rc == NGX_ABORT) {
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "zone \"%V\" is too small: no memory for the mirror of "
                      "a task", &zone->name);
    }
}


/*
 * After a change of this process: requests that wait for the task here need
 * not wait for the message.
 */

void
ngx_mcp_redis_remember(ngx_mcp_redis_call_t *call)
{
    ngx_uint_t        known;
    ngx_mcp_table_t  *t;

    t = call->st->zone->table;

    ngx_mcp_lock_read(t);
    known = (ngx_mcp_find_locked(t, &call->id, NULL, 0) != NULL);
    ngx_mcp_unlock(t);

    if (known || ngx_mcp_terminal(call->rr.rec.task.state)) {
        ngx_mcp_redis_mirror(call);
    }
}


#endif /* NGX_MCP_REDIS */
