
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * subscriptions/listen, in the modern era: a stream of notifications about the
 * tasks that the client names.  Each one contains the complete task.
 */


#include "ngx_mcp_methods.h"


#define NGX_MCP_LISTEN_MAX  256


typedef struct {
    ngx_mcp_id_t  id;
    uint64_t      version;    /* last sent; 0: none */
} ngx_mcp_subscribed_t;


typedef struct {
    ngx_mcp_wait_t         wait;   /* must be the first */
    ngx_mcp_subscribed_t  *tasks;  /* one for each watch */
    ngx_uint_t             asked;  /* 1: there was a list of tasks */
} ngx_mcp_listen_t;


static const char *ngx_mcp_listen_tasks(ngx_mcp_listen_t *l,
    ngx_mcp_json_t *ids);
static ngx_uint_t ngx_mcp_listen_has(ngx_mcp_listen_t *l, ngx_mcp_id_t *id);
static void ngx_mcp_listen_find(ngx_mcp_listen_t *l);
static ngx_int_t ngx_mcp_listen_get(ngx_mcp_listen_t *l,
    ngx_mcp_subscribed_t *task, ngx_mcp_op_get_t *op);
static ngx_int_t ngx_mcp_listen_look(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_listen_begin(ngx_mcp_listen_t *l);
static ngx_int_t ngx_mcp_listen_notify(ngx_mcp_listen_t *l,
    ngx_mcp_subscribed_t *task);
static ngx_int_t ngx_mcp_listen_end(ngx_mcp_listen_t *l);
static void ngx_mcp_listen_meta(ngx_mcp_out_t *out, ngx_mcp_listen_t *l);
static void ngx_mcp_listen_id(ngx_mcp_out_t *out, ngx_mcp_listen_t *l);


ngx_int_t
ngx_mcp_listen(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    const char        *err;
    ngx_mcp_json_t     notifications, ids;
    ngx_mcp_listen_t  *l;
    ngx_mcp_member_t   members[] = {
        { ngx_string("notifications"), &notifications }
    };
    ngx_mcp_member_t   filter[] = {
        { ngx_string("taskIds"), &ids }
    };

    l = ngx_pcalloc(r->pool, sizeof(ngx_mcp_listen_t));
    if (l == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_members(ctx, members, 1) != NGX_OK
        || ngx_mcp_json_members(&notifications, filter, 1)
           != NGX_OK)
    {
        return ngx_mcp_duplicate(r, ctx);
    }

    if (notifications.type != NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK,
                               "notifications must be an object");
    }

    ngx_mcp_wait_init(&l->wait, r, ctx);

    if (ids.type != NGX_MCP_JSON_NONE) {

        if (!ctx->tasks) {
            return ngx_mcp_no_capability(r, ctx);
        }

        l->asked = 1;
        err = ngx_mcp_listen_tasks(l, &ids);

        if (err) {
            return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
        }
    }

    l->wait.limited = 1;
    l->wait.streams = 1;
    l->wait.look = ngx_mcp_listen_look;
    l->wait.until = NGX_MCP_NEVER;

    return ngx_mcp_wait(&l->wait);
}


/*
 * Parses the list of ids.  Invalid and duplicate ids are ignored.  Returns
 * NULL, or an error message.
 */

static const char *
ngx_mcp_listen_tasks(ngx_mcp_listen_t *l, ngx_mcp_json_t *ids)
{
    ngx_str_t             text;
    ngx_uint_t            n;
    ngx_pool_t           *pool;
    ngx_mcp_json_t        value;
    ngx_mcp_id_t         *id;
    ngx_mcp_json_iter_t   it;

    if (ids->type != NGX_MCP_JSON_ARRAY) {
        return "taskIds must be an array";
    }

    n = 0;
    ngx_mcp_json_iter(&it, ids);

    while (ngx_mcp_json_next(&it, NULL, &value) == NGX_OK) {
        if (value.type != NGX_MCP_JSON_STRING) {
            return "taskIds must contain only strings";
        }

        if (++n > NGX_MCP_LISTEN_MAX) {
            return "taskIds must not have more than 256 members";
        }
    }

    pool = l->wait.r->pool;

    l->wait.pin.ids = ngx_palloc(pool, n * sizeof(ngx_mcp_id_t));
    l->tasks = ngx_pcalloc(pool, n * sizeof(ngx_mcp_subscribed_t));
    l->wait.watches = ngx_pcalloc(pool, n * sizeof(ngx_mcp_watch_t));

    if (l->wait.pin.ids == NULL || l->tasks == NULL
        || l->wait.watches == NULL)
    {
        return "out of memory";
    }

    ngx_mcp_json_iter(&it, ids);

    while (ngx_mcp_json_next(&it, NULL, &value) == NGX_OK) {
        id = &l->wait.pin.ids[l->wait.pin.n];

        if (ngx_mcp_json_string(pool, &value, &text) == NGX_OK
            && ngx_mcp_id_parse(id, &text) == NGX_OK
            && !ngx_mcp_listen_has(l, id))
        {
            l->wait.pin.n++;
        }
    }

    return NULL;
}


/* whether the id is already in the list */

static ngx_uint_t
ngx_mcp_listen_has(ngx_mcp_listen_t *l, ngx_mcp_id_t *id)
{
    ngx_uint_t  i;

    for (i = 0; i < l->wait.pin.n; i++) {
        if (ngx_memcmp(&l->wait.pin.ids[i], id, sizeof(ngx_mcp_id_t)) == 0) {
            return 1;
        }
    }

    return 0;
}


/*
 * Finds the tasks that exist, and watches only these.  The tasks have to be
 * pinned.
 */

static void
ngx_mcp_listen_find(ngx_mcp_listen_t *l)
{
    ngx_uint_t             i;
    ngx_mcp_wait_t        *w;
    ngx_mcp_subscribed_t  *task;
    ngx_mcp_op_get_t       op;

    w = &l->wait;

    for (i = 0; i < w->pin.n; i++) {
        task = &l->tasks[w->nwatches];
        task->id = w->pin.ids[i];

        if (ngx_mcp_listen_get(l, task, &op) == NGX_OK) {
            w->watches[w->nwatches].key = ngx_mcp_signal_id(&task->id);
            w->watches[w->nwatches].fired = 1;
            w->nwatches++;
        }
    }
}


/* reads a task without its payloads; NGX_DECLINED: not found */

static ngx_int_t
ngx_mcp_listen_get(ngx_mcp_listen_t *l, ngx_mcp_subscribed_t *task,
    ngx_mcp_op_get_t *op)
{
    ngx_memzero(op, sizeof(ngx_mcp_op_get_t));
    op->op.type = NGX_MCP_OP_GET;
    op->id = task->id;
    op->owner = &l->wait.ctx->owner;
    op->watch = 1;

    if (ngx_mcp_lookup(l->wait.zone, &op->op) != NGX_OK) {
        return NGX_ERROR;
    }

    return (op->op.reason == NGX_MCP_OK) ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_listen_look(ngx_mcp_wait_t *w)
{
    ngx_uint_t         i;
    ngx_mcp_listen_t  *l;

    l = (ngx_mcp_listen_t *) w;

    if (!w->stream) {
        ngx_mcp_listen_find(l);

        if (ngx_mcp_listen_begin(l) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < w->nwatches; i++) {

        if (!w->watches[i].fired) {
            continue;
        }

        if (ngx_mcp_wait_busy(w)) {
            /* the rest follows when this is sent */
            w->missed = 1;
            break;
        }

        w->watches[i].fired = 0;

        if (ngx_mcp_listen_notify(l, &l->tasks[i]) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    return ngx_exiting ? ngx_mcp_listen_end(l) : NGX_DECLINED;
}


/*
 * Acknowledges the subscription.  Only notifications about tasks are supported,
 * and only about tasks that exist.
 */

static ngx_int_t
ngx_mcp_listen_begin(ngx_mcp_listen_t *l)
{
    u_char          id[NGX_MCP_ID_TEXT];
    ngx_str_t       message;
    ngx_uint_t      i;
    ngx_mcp_out_t   out;

    ngx_mcp_out_init(&out, l->wait.r->pool,
                     256 + l->wait.nwatches * (sizeof(id) + 3));
    ngx_mcp_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"method\":"
                    "\"notifications/subscriptions/acknowledged\","
                    "\"params\":{");
    ngx_mcp_listen_meta(&out, l);
    ngx_mcp_out_lit(&out, ",\"notifications\":{");

    if (l->asked) {
        ngx_mcp_out_lit(&out, "\"taskIds\":[");

        for (i = 0; i < l->wait.nwatches; i++) {
            (void) ngx_mcp_id_text(id, &l->tasks[i].id);

            if (i) {
                ngx_mcp_out_lit(&out, ",");
            }

            ngx_mcp_out_lit(&out, "\"");
            ngx_mcp_out_add(&out, id, sizeof(id));
            ngx_mcp_out_lit(&out, "\"");
        }

        ngx_mcp_out_lit(&out, "]");
    }

    ngx_mcp_out_lit(&out, "}}}");

    if (ngx_mcp_out_end(&out, &message) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_wait_message(&l->wait, NULL, &message);
}


/* sends the task if its version has changed */

static ngx_int_t
ngx_mcp_listen_notify(ngx_mcp_listen_t *l, ngx_mcp_subscribed_t *task)
{
    ngx_int_t          rc;
    ngx_str_t          message;
    ngx_pool_t        *pool;
    ngx_mcp_out_t      out;
    ngx_mcp_op_get_t   op;

    rc = ngx_mcp_listen_get(l, task, &op);

    if (rc != NGX_OK || op.view.task.version == task->version) {
        /* MCP has no notification for a task that was removed */
        return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
    }

    pool = ngx_create_pool(2048, l->wait.r->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    op.op.pool = pool;
    op.want = NGX_MCP_WANT_DETAIL;

    rc = ngx_mcp_lookup(l->wait.zone, &op.op);

    if (rc == NGX_OK && op.op.reason == NGX_MCP_OK) {
        task->version = op.view.task.version;

        ngx_mcp_out_init(&out, pool, 512);
        ngx_mcp_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"method\":"
                        "\"notifications/tasks\",\"params\":{");
        ngx_mcp_listen_meta(&out, l);
        ngx_mcp_out_lit(&out, ",");
        ngx_mcp_render_task(&out, NGX_MCP_MODERN, &op.view);
        ngx_mcp_render_detail(&out, &op.view, l->wait.ctx->can);
        ngx_mcp_out_lit(&out, "}}");

        rc = ngx_mcp_out_end(&out, &message);

        if (rc == NGX_OK) {
            rc = ngx_mcp_wait_message(&l->wait, NULL, &message);
        }
    }

    ngx_destroy_pool(pool);

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/* the response to the request, which ends the stream */

static ngx_int_t
ngx_mcp_listen_end(ngx_mcp_listen_t *l)
{
    ngx_mcp_out_t  out;

    ngx_mcp_out_answer(&out, l->wait.r, l->wait.ctx, 384);
    ngx_mcp_out_lit(&out, "{\"resultType\":\"complete\","
                    "\"_meta\":{" NGX_MCP_META_SERVER ",");
    ngx_mcp_listen_id(&out, l);
    ngx_mcp_out_lit(&out, "}}");

    return ngx_mcp_out_result(l->wait.r, &out);
}


static void
ngx_mcp_listen_meta(ngx_mcp_out_t *out, ngx_mcp_listen_t *l)
{
    ngx_mcp_out_lit(out, "\"_meta\":{");
    ngx_mcp_listen_id(out, l);
    ngx_mcp_out_lit(out, "}");
}


static void
ngx_mcp_listen_id(ngx_mcp_out_t *out, ngx_mcp_listen_t *l)
{
    ngx_mcp_out_lit(out, "\"io.modelcontextprotocol/subscriptionId\":");
    ngx_mcp_out_str(out, &l->wait.ctx->rpc.id.text);
}
