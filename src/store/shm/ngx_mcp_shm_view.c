
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Copies of tasks, in memory of the caller. */


#include "ngx_mcp_shm.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_stats.h"


static size_t ngx_mcp_view_history_size_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s);
static u_char *ngx_mcp_view_history_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_view_t *view, u_char *p);
static ngx_uint_t ngx_mcp_history_entries_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s, ngx_mcp_history_entry_t *entries, ngx_uint_t *dropped);
static u_char *ngx_mcp_view_worker_locked(ngx_mcp_table_t *t, uint32_t worker,
    ngx_str_t *name, u_char *p);


/*
 * Finds up to *limit tasks, and returns with the lock held and with enough
 * memory to copy them.  NULL: there is no memory, and the lock is not held.
 * The find function runs again, from its beginning, if the buffer was too
 * small.
 */

ngx_mcp_view_t *
ngx_mcp_find_lock(ngx_mcp_table_t *t, ngx_mcp_op_t *op, ngx_uint_t *limit,
    ngx_mcp_found_t *found, ngx_mcp_find_pt find, ngx_mcp_lock_pt lock)
{
    ngx_mcp_view_t  *views;

    *limit = ngx_max(1, ngx_min(*limit, NGX_MCP_LIST_MAX));

    views = ngx_palloc(op->pool, *limit * sizeof(ngx_mcp_view_t));
    if (views == NULL) {
        return NULL;
    }

    ngx_memzero(&found->buf, sizeof(ngx_mcp_view_buf_t));
    found->buf.pool = op->pool;
    found->size = ngx_max(NGX_MCP_VIEW_BYTES, *limit * 32);

    for ( ;; ) {

        if (ngx_mcp_view_buf_grow(&found->buf, found->size) != NGX_OK) {
            return NULL;
        }

        lock(t);

        found->n = 0;
        found->size = 0;

        find(t, op, found);

        if (found->size <= found->buf.size) {
            return views;
        }

        ngx_mcp_unlock(t);
    }
}


ngx_int_t
ngx_mcp_view_buf_grow(ngx_mcp_view_buf_t *buf, size_t size)
{
    if (size <= buf->size) {
        return NGX_OK;
    }

    /* a task may grow before the lock is taken again */

    if (buf->size) {
        size += size / 4;
    }

    buf->data = ngx_pnalloc(buf->pool, size);
    if (buf->data == NULL) {
        return NGX_ERROR;
    }

    buf->size = size;

    return NGX_OK;
}


/* bytes that ngx_mcp_view_locked() may write */

size_t
ngx_mcp_view_size_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t want)
{
    size_t      size;
    ngx_uint_t  i;

    size = 0;

    if (want & NGX_MCP_WANT_OWNER) {
        size += ngx_mcp_name(t, s->owner)->len;
    }

    if (want & NGX_MCP_WANT_TOOL) {
        size += ngx_mcp_name(t, s->tool)->len;
    }

    if (want & NGX_MCP_WANT_TOKEN && s->token) {
        size += ngx_mcp_name(t, s->token)->len;
    }

    if (want & NGX_MCP_WANT_WORKER) {
        size += NGX_MCP_WORKER_NAME;
    }

    if (want & NGX_MCP_WANT_HISTORY) {
        size += ngx_mcp_view_history_size_locked(t, s);
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (want & NGX_MCP_WANT(i)) {
            size += s->body.payload[i].len;
        }
    }

    return size;
}


/* copies the wanted parts to p, and returns the end of them */

u_char *
ngx_mcp_view_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s, ngx_uint_t want,
    ngx_mcp_view_t *view, u_char *p)
{
    ngx_str_t              *str;
    ngx_uint_t              i;
    ngx_mcp_worker_stat_t  *stat;

    ngx_memzero(&view->owner, sizeof(ngx_mcp_view_t)
                              - offsetof(ngx_mcp_view_t, owner));

    view->id = s->id;
    view->seq = s->seq;
    view->changed = s->body.changed;
    view->turned = s->body.turned;
    view->moved = s->body.moved;
    view->task = s->body.task;
    view->asks = 0;

    stat = ngx_mcp_stats_worker_of_locked(t, s->body.task.worker);
    view->drain = (stat && stat->draining);

    if (want & NGX_MCP_WANT_OWNER) {
        view->owner.data = p;
        p = ngx_mcp_name_read_locked(t, s->owner, p);
        view->owner.len = p - view->owner.data;
    }

    if (want & NGX_MCP_WANT_TOOL) {
        view->tool.data = p;
        p = ngx_mcp_name_read_locked(t, s->tool, p);
        view->tool.len = p - view->tool.data;
    }

    if (want & NGX_MCP_WANT_TOKEN && s->token) {
        /* the index of its owner precedes the token */
        view->token.data = p + sizeof(uint32_t);
        p = ngx_mcp_name_read_locked(t, s->token, p);
        view->token.len = p - view->token.data;
    }

    if (want & NGX_MCP_WANT_WORKER) {
        p = ngx_mcp_view_worker_locked(t, s->body.task.worker, &view->worker,
                                       p);
    }

    if (want & NGX_MCP_WANT_HISTORY) {
        p = ngx_mcp_view_history_locked(t, s, view, p);
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {

        if (!(want & NGX_MCP_WANT(i))) {
            continue;
        }

        str = &view->payload[i];
        str->data = p;
        p = ngx_mcp_chain_read_locked(t, &s->body.payload[i], p);
        str->len = p - str->data;

        if (i == NGX_MCP_PARAMS) {
            view->method.data = str->data;
            view->method.len = s->method_len;
            str->data += s->method_len;
            str->len -= s->method_len + NGX_MCP_HISTORY;
        }
    }

    return p;
}


static size_t
ngx_mcp_view_history_size_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    size_t                   size;
    ngx_uint_t               i, n, dropped;
    ngx_mcp_history_entry_t  entries[NGX_MCP_HISTORY_MAX];

    n = ngx_mcp_history_entries_locked(t, s, entries, &dropped);

    /*
     * Room for one more entry, which a change may add, and for the alignment.
     */

    size = NGX_ALIGNMENT + (n + 1) * sizeof(ngx_mcp_view_history_t)
           + NGX_MCP_WORKER_NAME;

    for (i = 0; i < n; i++) {
        size += entries[i].worker ? NGX_MCP_WORKER_NAME : 0;
    }

    return size;
}


static u_char *
ngx_mcp_view_history_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_view_t *view, u_char *p)
{
    ngx_uint_t               i, n;
    ngx_mcp_history_entry_t  entries[NGX_MCP_HISTORY_MAX];
    ngx_mcp_view_history_t  *entry;

    n = ngx_mcp_history_entries_locked(t, s, entries, &view->dropped);

    view->history = (ngx_mcp_view_history_t *) ngx_align_ptr(p, NGX_ALIGNMENT);
    view->nhistory = n;
    p = (u_char *) (view->history + n);

    for (i = n; i-- > 0; /* void */) {
        entry = &view->history[i];
        entry->at = entries[i].at;
        entry->event = entries[i].event;
        entry->state = entries[i].state;

        p = ngx_mcp_view_worker_locked(t, entries[i].worker, &entry->worker, p);
    }

    ngx_mcp_view_attempts(view);

    return p;
}


/* numbers the attempts of a history, from the current one backwards */

void
ngx_mcp_view_attempts(ngx_mcp_view_t *view)
{
    ngx_uint_t               i, attempt;
    ngx_mcp_view_history_t  *entry;

    attempt = view->task.attempt;

    for (i = view->nhistory; i-- > 0; /* void */) {
        entry = &view->history[i];
        entry->attempt = attempt;

        if (entry->event == NGX_MCP_EV_CLAIM) {
            /* each claim has incremented it */
            attempt--;

        } else if (entry->event == NGX_MCP_EV_RELEASE
                   || (entry->event == NGX_MCP_EV_ANSWER_ALL
                       && entry->state == NGX_MCP_QUEUED))
        {
            attempt++;
        }
    }
}


static ngx_uint_t
ngx_mcp_history_entries_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_history_entry_t *entries, ngx_uint_t *dropped)
{
    u_char  *bytes;
    size_t   size;

    size = ngx_mcp_history_bytes_locked(t, s, &bytes);

    return ngx_mcp_history_read(bytes, size, s->body.task.created, entries,
                                dropped);
}


/* the name is known as long as the worker has an entry in the statistics */

static u_char *
ngx_mcp_view_worker_locked(ngx_mcp_table_t *t, uint32_t worker,
    ngx_str_t *name, u_char *p)
{
    ngx_mcp_worker_stat_t  *stat;

    ngx_str_null(name);

    stat = ngx_mcp_stats_worker_of_locked(t, worker);

    if (stat) {
        name->data = p;
        name->len = stat->len;
        p = ngx_cpymem(p, stat->name, stat->len);
    }

    return p;
}
