
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The stream of a session, in the legacy era: GET on the endpoint.  It reports
 * changes of the tasks of the session and delivers their questions, except for
 * tasks with a waiting tasks/result, which delivers them.
 */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_later.h"
#include "ngx_mcp_rest.h"


/* tasks for each look */
#define NGX_MCP_STREAM_BATCH  16

typedef struct {
    ngx_mcp_wait_t  wait;         /* must be the first */
    uint64_t        after;        /* last change received; 0: unknown */
    uint64_t        from;         /* last change before the stream */
    uint32_t        opened;       /* number of the stream; 0: not opened */
    ngx_uint_t      known;        /* from is known */
} ngx_mcp_stream_t;


static ngx_int_t ngx_mcp_stream_first(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_stream_look(ngx_mcp_wait_t *w);
static void ngx_mcp_stream_leave(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_stream_notify(ngx_mcp_stream_t *s,
    ngx_mcp_op_session_t *op, ngx_mcp_view_t *v);
static ngx_int_t ngx_mcp_stream_send(ngx_mcp_stream_t *s, ngx_mcp_out_t *out,
    ngx_mcp_view_t *v, ngx_uint_t last);


ngx_int_t
ngx_mcp_stream_open(ngx_http_request_t *r)
{
    ngx_int_t            rc;
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_stream_t    *s;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));
    s = ngx_pcalloc(r->pool, sizeof(ngx_mcp_stream_t));

    if (ctx == NULL || s == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_mcp_owner(r, &ctx->owner) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_mcp_session_check(r, ctx);

    if (rc == NGX_DONE) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_RPC_INVALID_REQUEST,
                             "Invalid Request: the Mcp-Session-Id header is "
                             "missing", NULL);
    }

    if (rc != NGX_OK) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_NOT_FOUND,
                             NGX_MCP_RPC_NO_SESSION, "Session not found",
                             NULL);
    }

    rc = ngx_mcp_resume(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    s->after = ngx_mcp_last_change(r, lcf->zone);
    s->from = s->after;
    s->known = (s->from != 0);

    ngx_mcp_wait_init(&s->wait, r, ctx);
    s->wait.watches = &s->wait.watch;
    s->wait.nwatches = 1;
    s->wait.watch.key = ngx_mcp_signal_name(
                            ngx_mcp_zone_hash(lcf->zone, NGX_MCP_SESSION,
                                              &ctx->session));
    s->wait.stream_id = ngx_mcp_stream_new(lcf->zone->local);
    s->wait.session = 1;
    s->wait.pin.kind = NGX_MCP_PIN_SESSION;
    s->wait.pin.name = ctx->session;
    s->wait.limited = 1;
    s->wait.streams = 1;
    s->wait.look = ngx_mcp_stream_look;
    s->wait.first = ngx_mcp_stream_first;
    s->wait.until = NGX_MCP_NEVER;

    return ngx_mcp_wait(&s->wait);
}


/*
 * An id without data, so that a client whose connection is lost before the
 * first message can resume.  It is the change before that message; the number
 * of the stream is added, because the event of that change may have the same
 * id.  If no change was delivered before, the first change of the zone is
 * taken: it created a task, which is not reported.
 */

static ngx_int_t
ngx_mcp_stream_first(ngx_mcp_wait_t *w)
{
    u_char               buf[NGX_MCP_CHANGE_LEN + 1 + 16], *p;
    ngx_str_t            id;
    ngx_mcp_stream_t    *s;
    ngx_mcp_loc_conf_t  *lcf;
    static ngx_str_t     empty = ngx_string("");

    s = (ngx_mcp_stream_t *) w;

    if (!s->known || !ngx_mcp_primes(w->r, w->ctx)) {
        return NGX_OK;
    }

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    p = ngx_mcp_change_id(buf, lcf->zone, ngx_max(s->from, 1));
    p = ngx_sprintf(p, ".%xL", w->stream_id);

    id.data = buf;
    id.len = p - buf;

    return ngx_mcp_wait_message(w, &id, &empty);
}


static ngx_int_t
ngx_mcp_stream_look(ngx_mcp_wait_t *w)
{
    ngx_int_t              rc;
    ngx_uint_t             i;
    ngx_pool_t            *pool;
    ngx_mcp_stream_t      *s;
    ngx_mcp_op_session_t   op;

    s = (ngx_mcp_stream_t *) w;

    if (ngx_exiting
        || ngx_mcp_session_check(w->r, w->ctx) != NGX_OK)
    {
        if (!w->stream && ngx_mcp_wait_begin(w) == NGX_ERROR) {
            return NGX_ERROR;
        }

        ngx_mcp_stream_leave(w);
        return ngx_mcp_wait_close(w);
    }

    pool = ngx_create_pool(4096, w->r->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&op, sizeof(ngx_mcp_op_session_t));
    op.op.type = NGX_MCP_OP_SESSION;
    op.op.pool = pool;
    op.session = w->ctx->session;
    op.stream = w->stream_id;
    op.opened = s->opened;
    op.after = s->after;
    op.mute = (w->ctx->can == 0);
    op.limit = NGX_MCP_STREAM_BATCH;
    op.want = NGX_MCP_WANT_TASK | NGX_MCP_WANT_TOKEN
              | NGX_MCP_WANT(NGX_MCP_REQUESTS);
    op.watch = 1;

    rc = ngx_mcp_lookup(w->zone, &op.op);

    if (rc == NGX_OK && !w->stream) {
        s->from = op.delivered ? op.delivered : s->from;
        s->known = 1;
    }

    /*
     * The header is sent only after the first look has registered the stream,
     * since the client may open another stream as soon as it has the header.
     */

    if (rc == NGX_OK && !w->stream
        && ngx_mcp_wait_begin(w) == NGX_ERROR)
    {
        rc = NGX_ERROR;
    }

    for (i = 0; rc == NGX_OK && i < op.n; i++) {
        rc = ngx_mcp_stream_notify(s, &op, &op.views[i]);
    }

    ngx_destroy_pool(pool);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    s->opened = op.opened;
    s->after = op.after;

    w->missed = (op.n != 0);

    return NGX_DECLINED;
}


/*
 * The id of an event tells a client that resumes that it has received all
 * changes up to this one.  If a change has several messages, only the last one
 * carries the id.  Questions have no id.
 */

static ngx_int_t
ngx_mcp_stream_notify(ngx_mcp_stream_t *s, ngx_mcp_op_session_t *op,
    ngx_mcp_view_t *v)
{
    ngx_uint_t      moved;
    ngx_mcp_out_t   out;

    moved = (v->moved > op->delivered && v->token.len && v->task.progress >= 0);

    if (v->turned > op->delivered) {
        ngx_mcp_out_init(&out, op->op.pool, 512);
        ngx_mcp_out_lit(&out, "{\"jsonrpc\":\"2.0\","
                        "\"method\":\"notifications/tasks/status\","
                        "\"params\":{");
        ngx_mcp_render_task(&out, NGX_MCP_LEGACY, v);
        ngx_mcp_out_lit(&out, "}}");

        if (ngx_mcp_stream_send(s, &out, v, !moved && !v->asks)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (moved) {
        ngx_mcp_out_init(&out, op->op.pool, 512);
        ngx_mcp_render_progress(&out, v, &v->token, 1);

        if (ngx_mcp_stream_send(s, &out, v, !v->asks) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (v->asks) {
        return ngx_mcp_wait_ask(&s->wait, v, op->op.pool);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_stream_send(ngx_mcp_stream_t *s, ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_uint_t last)
{
    u_char               buf[NGX_MCP_CHANGE_LEN];
    ngx_str_t            id, message;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(s->wait.r, ngx_http_mcp_tasks_module);

    id.data = buf;
    id.len = ngx_mcp_change_id(buf, lcf->zone, v->changed) - buf;

    if (ngx_mcp_out_end(out, &message) != NGX_OK
        || ngx_mcp_wait_message(&s->wait, last ? &id : NULL,
                                &message)
           == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Releases the questions that were delivered here and are not answered: another
 * stream will deliver them.
 */

static void
ngx_mcp_stream_leave(ngx_mcp_wait_t *w)
{
    ngx_mcp_op_wait_t  *op;

    op = ngx_mcp_later_op(w->zone, NGX_MCP_OP_LEAVE);
    if (op == NULL) {
        return;
    }

    op->asker = w->stream_id;

    if (ngx_mcp_later_str(&op->op, &op->session, &w->ctx->session) != NGX_OK) {
        ngx_mcp_later_free(&op->op);
        return;
    }

    ngx_mcp_later(&op->op);
}
