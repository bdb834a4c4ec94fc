
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Event streams for browsers: of a task, or of all tasks of an owner. */


#include "ngx_mcp_rest.h"
#include "ngx_mcp_hash.h"


/* tasks for each look at the tasks of an owner */
#define NGX_MCP_EVENTS_BATCH  32


typedef struct {
    ngx_mcp_wait_t  wait;       /* must be the first */
    uint64_t        version;    /* last sent; 0: none */
} ngx_mcp_events_t;


typedef struct {
    ngx_mcp_wait_t  wait;       /* must be the first */
    uint64_t        after;      /* the last change sent; 0: none */
    uint64_t        hint;       /* see ngx_mcp_op_changes_t */
} ngx_mcp_owner_events_t;


/*
 * The task that was read last, as an event.  All streams of one task are woken
 * together: the first one reads the task for all of them.  The event is valid
 * until this worker process is woken again.
 */

typedef struct {
    ngx_mcp_zone_t        *zone;
    ngx_mcp_id_t           id;
    uint64_t               version;
    ngx_uint_t             terminal;
    ngx_uint_t             wakeups; /* when it was read */
    ngx_mcp_sse_shared_t  *event;   /* NULL: none */
    ngx_pool_t            *pool;    /* to render it in */
} ngx_mcp_latest_t;


static ngx_int_t ngx_mcp_events_look(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_events_read(ngx_mcp_wait_t *w,
    ngx_mcp_latest_t *latest);
static ngx_int_t ngx_mcp_owner_events_look(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_owner_events_notify(ngx_mcp_owner_events_t *e,
    ngx_mcp_op_changes_t *op);
static uint32_t ngx_mcp_zone_incarnation(ngx_mcp_zone_t *zone);
static uint64_t ngx_mcp_last_number(ngx_str_t *text);
static ngx_uint_t ngx_mcp_last_event(ngx_http_request_t *r, ngx_str_t *id);


static ngx_mcp_latest_t  ngx_mcp_latest;


ngx_int_t
ngx_mcp_events(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t          last;
    ngx_mcp_events_t  *e;

    e = ngx_pcalloc(r->pool, sizeof(ngx_mcp_events_t));
    if (e == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_last_event(r, &last)) {
        e->version = ngx_mcp_last_number(&last);
    }

    ngx_mcp_wait_init(&e->wait, r, ctx);
    e->wait.id = ctx->id;
    e->wait.task = 1;
    e->wait.limited = 1;
    e->wait.streams = 1;
    e->wait.look = ngx_mcp_events_look;
    e->wait.until = NGX_MCP_NEVER;

    return ngx_mcp_wait(&e->wait);
}


static ngx_int_t
ngx_mcp_events_look(ngx_mcp_wait_t *w)
{
    ngx_int_t            rc;
    ngx_mcp_events_t    *e;
    ngx_mcp_latest_t    *latest;
    ngx_mcp_loc_conf_t  *lcf;

    e = (ngx_mcp_events_t *) w;
    latest = &ngx_mcp_latest;
    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    /* the first look of a stream has to check the owner of the task */

    if (!w->stream
        || latest->wakeups != ngx_mcp_wakeups
        || latest->zone != lcf->zone
        || latest->event == NULL
        || ngx_memcmp(&latest->id, &w->id, sizeof(ngx_mcp_id_t))
           != 0)
    {
        rc = ngx_mcp_events_read(w, latest);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (!w->stream) {

        if (e->version > latest->version) {
            /* no client has received this version: send the current one */
            e->version = 0;
        }

        if (latest->terminal && latest->version <= e->version) {
            /* a browser reconnects after a stream ends, but not after 204 */
            return ngx_mcp_rest_none(w->r);
        }

        if (ngx_mcp_wait_begin(w) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    if (latest->version > e->version) {
        e->version = latest->version;

        if (ngx_mcp_wait_share(w, latest->event) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    if (latest->terminal || ngx_exiting) {
        return ngx_mcp_wait_close(w);
    }

    return NGX_DECLINED;
}


/* NGX_DECLINED: latest is set; any other value finalizes the request */

static ngx_int_t
ngx_mcp_events_read(ngx_mcp_wait_t *w, ngx_mcp_latest_t *latest)
{
    u_char               buf[NGX_INT64_LEN];
    ngx_int_t            rc;
    ngx_str_t            id, text;
    ngx_mcp_out_t        out;
    ngx_mcp_op_get_t     op;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    ngx_mcp_sse_unshare(latest->event);
    latest->event = NULL;

    /* created once; it is reset after each event */

    if (latest->pool == NULL) {
        latest->pool = ngx_create_pool(2048, ngx_cycle->log);
        if (latest->pool == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_memzero(&op, sizeof(ngx_mcp_op_get_t));
    op.op.type = NGX_MCP_OP_GET;
    op.op.pool = latest->pool;
    op.id = w->id;
    op.owner = &w->ctx->owner;
    op.watch = 1;
    op.want = NGX_MCP_WANT_REST;

    rc = ngx_mcp_lookup(w->zone, &op.op);

    if (rc == NGX_OK && op.op.reason == NGX_MCP_OK) {
        ngx_mcp_set_task(w->r, w->ctx, &op.view);

        ngx_mcp_out_init(&out, latest->pool, 512);
        ngx_mcp_render_rest(&out, &op.view, 1);

        id.data = buf;
        id.len = ngx_sprintf(buf, "%uL", op.view.task.version) - buf;

        if (ngx_mcp_out_end(&out, &text) == NGX_OK) {
            latest->event = ngx_mcp_sse_share(&id, &text,
                                              w->r->connection->log);
        }

        latest->zone = lcf->zone;
        latest->id = w->id;
        latest->version = op.view.task.version;
        latest->terminal = ngx_mcp_terminal(op.view.task.state);
        latest->wakeups = ngx_mcp_wakeups;
    }

    ngx_reset_pool(latest->pool);

    if (latest->event) {
        return NGX_DECLINED;
    }

    if (rc != NGX_OK || op.op.reason == NGX_MCP_OK) {
        return w->stream ? NGX_ERROR : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the task was removed, so the stream ends */

    return w->stream ? ngx_mcp_wait_close(w)
                     : ngx_mcp_problem_refused(w->r, op.op.reason);
}


ngx_int_t
ngx_mcp_owner_events(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_loc_conf_t      *lcf;
    ngx_mcp_owner_events_t  *e;
    static ngx_str_t         no_owner = ngx_string("owner_required");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    /* without an owner a task can be accessed only by its id */

    if (ctx->owner.len == 0) {
        return ngx_mcp_problem(r, NGX_HTTP_FORBIDDEN, &no_owner, NULL);
    }

    e = ngx_pcalloc(r->pool, sizeof(ngx_mcp_owner_events_t));
    if (e == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    e->after = ngx_mcp_last_change(r, lcf->zone);

    ngx_mcp_wait_init(&e->wait, r, ctx);
    e->wait.watches = &e->wait.watch;
    e->wait.nwatches = 1;
    e->wait.watch.key = ngx_mcp_signal_name(
                            ngx_mcp_zone_hash(lcf->zone, NGX_MCP_OWNER,
                                              &ctx->owner));
    e->wait.pin.kind = NGX_MCP_PIN_OWNER;
    e->wait.pin.name = ctx->owner;
    e->wait.limited = 1;
    e->wait.streams = 1;
    e->wait.look = ngx_mcp_owner_events_look;
    e->wait.until = NGX_MCP_NEVER;

    return ngx_mcp_wait(&e->wait);
}


static ngx_int_t
ngx_mcp_owner_events_look(ngx_mcp_wait_t *w)
{
    ngx_int_t                rc;
    ngx_pool_t              *pool;
    ngx_mcp_op_changes_t     op;
    ngx_mcp_owner_events_t  *e;

    e = (ngx_mcp_owner_events_t *) w;

    if (!w->stream && ngx_mcp_wait_begin(w) == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (ngx_exiting) {
        return ngx_mcp_wait_close(w);
    }

    pool = ngx_create_pool(4096, w->r->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&op, sizeof(ngx_mcp_op_changes_t));
    op.op.type = NGX_MCP_OP_CHANGES;
    op.op.pool = pool;
    op.owner = w->ctx->owner;
    op.after = e->after;
    op.hint = e->hint;
    op.limit = NGX_MCP_EVENTS_BATCH;
    op.want = NGX_MCP_WANT_TOOL | NGX_MCP_WANT_TASK;
    op.watch = 1;

    rc = ngx_mcp_lookup(w->zone, &op.op);

    if (rc == NGX_OK) {
        e->after = op.after;
        e->hint = op.hint;
        rc = ngx_mcp_owner_events_notify(e, &op);
    }

    ngx_destroy_pool(pool);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    /* the rest follows when these are sent */

    w->missed = (op.more != 0);

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_owner_events_notify(ngx_mcp_owner_events_t *e, ngx_mcp_op_changes_t *op)
{
    u_char               buf[NGX_MCP_CHANGE_LEN];
    ngx_str_t            id, text;
    ngx_uint_t           i;
    ngx_mcp_out_t        out;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(e->wait.r, ngx_http_mcp_tasks_module);
    id.data = buf;

    for (i = 0; i < op->n; i++) {
        ngx_mcp_out_init(&out, op->op.pool, 512);
        ngx_mcp_render_rest(&out, &op->views[i], 0);

        id.len = ngx_mcp_change_id(buf, lcf->zone,
                                   op->views[i].changed)
                 - buf;

        if (ngx_mcp_out_end(&out, &text) != NGX_OK
            || ngx_mcp_wait_message(&e->wait, &id, &text)
               == NGX_ERROR)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* the id of an event: the incarnation of the zone, and the change */

u_char *
ngx_mcp_change_id(u_char *p, ngx_mcp_zone_t *zone, uint64_t changed)
{
    return ngx_sprintf(p, "%08xD-%uL", ngx_mcp_zone_incarnation(zone), changed);
}


/* the last change that the client has; 0: none, or of another incarnation */

uint64_t
ngx_mcp_last_change(ngx_http_request_t *r, ngx_mcp_zone_t *zone)
{
    u_char     *p;
    ngx_str_t   id;

    if (!ngx_mcp_last_event(r, &id)
        || id.len <= 9 || id.data[8] != '-'
        || ngx_hextoi(id.data, 8) != (ngx_int_t) ngx_mcp_zone_incarnation(zone))
    {
        return 0;
    }

    id.data += 9;
    id.len -= 9;

    /* the first event of a session stream has its number, too */

    p = ngx_strlchr(id.data, id.data + id.len, '.');

    if (p) {
        id.len = p - id.data;
    }

    return ngx_mcp_last_number(&id);
}


/* whether the client has sent an event id, valid or not */

ngx_uint_t
ngx_mcp_is_resumed(ngx_http_request_t *r)
{
    ngx_str_t  id;

    return ngx_mcp_last_event(r, &id);
}


/* derived from the secret, which each incarnation of the zone has of its own */

static uint32_t
ngx_mcp_zone_incarnation(ngx_mcp_zone_t *zone)
{
    return (uint32_t) ngx_mcp_siphash(zone->secret,
                                      (u_char *) "life", 4);
}


static ngx_uint_t
ngx_mcp_last_event(ngx_http_request_t *r, ngx_str_t *id)
{
    static ngx_str_t  name = ngx_string("last-event-id");

    return ngx_mcp_header(r, &name, id) == 1;
}


/* 0, the beginning, if the text is not a number */

static uint64_t
ngx_mcp_last_number(ngx_str_t *text)
{
    ngx_int_t  n;

    n = ngx_atoi(text->data, text->len);

    return (n == NGX_ERROR) ? 0 : (uint64_t) n;
}
