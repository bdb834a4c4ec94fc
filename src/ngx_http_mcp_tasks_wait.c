
/*
 * Requests that wait: for the outcome of a task, or for work.  A parked
 * request looks now and then whether it is over; meanwhile, where the
 * protocol allows it, it is a stream of events that keeps the connection
 * alive and carries progress and questions.
 */


#include "ngx_http_mcp_tasks_module.h"


#define NGX_HTTP_MCP_TASKS_WAIT_MIN   10
#define NGX_HTTP_MCP_TASKS_WAIT_MAX   200


static void ngx_http_mcp_tasks_wait_timer(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_tasks_wait_tick(ngx_http_mcp_tasks_wait_t *w);
static void ngx_http_mcp_tasks_wait_write(ngx_http_request_t *r);
static void ngx_http_mcp_tasks_wait_cleanup(void *data);
static ngx_int_t ngx_http_mcp_tasks_wait_open(ngx_http_mcp_tasks_wait_t *w);
static ngx_int_t ngx_http_mcp_tasks_wait_output(ngx_http_mcp_tasks_wait_t *w,
    ngx_str_t *text, ngx_uint_t last);
static void ngx_http_mcp_tasks_wait_sent(ngx_http_mcp_tasks_wait_t *w);

static ngx_int_t ngx_http_mcp_tasks_outcome_look(ngx_http_mcp_tasks_wait_t *w);
static ngx_int_t ngx_http_mcp_tasks_outcome_news(ngx_http_mcp_tasks_wait_t *w,
    ngx_http_mcp_tasks_view_t *v);
static ngx_int_t ngx_http_mcp_tasks_outcome_ask(ngx_http_mcp_tasks_wait_t *w,
    ngx_http_mcp_tasks_view_t *v);
static ngx_int_t ngx_http_mcp_tasks_outcome_end(ngx_http_mcp_tasks_wait_t *w,
    ngx_http_mcp_tasks_view_t *v);
static void ngx_http_mcp_tasks_outcome_gone(ngx_http_mcp_tasks_wait_t *w);


/* returns what to finalize with: NGX_DONE, if the request is parked */

ngx_int_t
ngx_http_mcp_tasks_wait(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_int_t            rc;
    ngx_event_t         *rev;
    ngx_http_cleanup_t  *cln;
    ngx_http_request_t  *r;

    r = w->r;
    w->alive = ngx_current_msec;
    w->progress = -1;

    rc = w->look(w);

    if (rc != NGX_AGAIN) {
        w->over = 1;
        return rc;
    }

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_mcp_tasks_wait_cleanup;
    cln->data = w;

    w->ctx->wait = w;
    w->parked = 1;
    w->delay = NGX_HTTP_MCP_TASKS_WAIT_MIN;

    w->dummy.fd = (ngx_socket_t) -1;
    w->dummy.data = w;
    w->timer.data = &w->dummy;
    w->timer.handler = ngx_http_mcp_tasks_wait_timer;
    w->timer.log = r->connection->log;

    ngx_add_timer(&w->timer, w->delay);

    rev = r->connection->read;

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_mcp_tasks_wait_write;

    if (rev->ready) {
        ngx_post_event(rev, &ngx_posted_events);

    } else if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->main->count++;

    return NGX_DONE;
}


static void
ngx_http_mcp_tasks_wait_timer(ngx_event_t *ev)
{
    ngx_int_t                   rc;
    ngx_connection_t           *c;
    ngx_http_request_t         *r;
    ngx_http_mcp_tasks_wait_t  *w;

    c = ev->data;
    w = c->data;
    r = w->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    rc = ngx_http_mcp_tasks_wait_tick(w);

    if (rc != NGX_AGAIN) {
        w->over = 1;
        ngx_http_finalize_request(r, rc);
    }

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_mcp_tasks_wait_tick(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_int_t                       rc;
    ngx_str_t                       comment;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    /* a slow reader gets the latest when it can take it, not a backlog */

    if (w->pool == NULL) {

        rc = w->look(w);

        if (rc != NGX_AGAIN) {
            return rc;
        }

        if (w->streams && w->pool == NULL
            && ngx_current_msec - w->alive >= lcf->keepalive)
        {
            ngx_str_set(&comment, ":\n\n");

            rc = ngx_http_mcp_tasks_wait_output(w, &comment, 0);

            if (rc == NGX_ERROR) {
                return rc;
            }
        }
    }

    w->delay = ngx_min(w->delay * 2, NGX_HTTP_MCP_TASKS_WAIT_MAX);
    ngx_add_timer(&w->timer, w->delay);

    return NGX_AGAIN;
}


static void
ngx_http_mcp_tasks_wait_write(ngx_http_request_t *r)
{
    ngx_event_t                *wev;
    ngx_http_mcp_tasks_ctx_t   *ctx;
    ngx_http_core_loc_conf_t   *clcf;

    wev = r->connection->write;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "client timed out");
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (ctx->wait->pool == NULL) {
        return;
    }

    if (ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    ngx_http_mcp_tasks_wait_sent(ctx->wait);

    if (ctx->wait->pool) {

        if (!wev->timer_set) {
            ngx_add_timer(wev, clcf->send_timeout);
        }

        if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

    } else if (wev->timer_set) {
        ngx_del_timer(wev);
    }
}


static void
ngx_http_mcp_tasks_wait_cleanup(void *data)
{
    ngx_http_mcp_tasks_wait_t *w = data;

    if (w->timer.timer_set) {
        ngx_del_timer(&w->timer);
    }

    if (!w->over && w->gone) {
        w->gone(w);
    }

    if (w->pool) {
        ngx_destroy_pool(w->pool);
        w->pool = NULL;
    }
}


/* one JSON-RPC message as an event of the stream */

ngx_int_t
ngx_http_mcp_tasks_wait_send(ngx_http_mcp_tasks_wait_t *w, ngx_str_t *message)
{
    return ngx_http_mcp_tasks_wait_output(w, message, 0);
}


/* the last message: alone, if there is no stream yet */

ngx_int_t
ngx_http_mcp_tasks_wait_end(ngx_http_mcp_tasks_wait_t *w, ngx_str_t *message)
{
    if (!w->stream) {
        return ngx_http_mcp_tasks_send(w->r, NGX_HTTP_OK, message, 1);
    }

    return ngx_http_mcp_tasks_wait_output(w, message, 1);
}


static ngx_int_t
ngx_http_mcp_tasks_wait_open(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_int_t            rc;
    ngx_str_t            value;
    ngx_http_request_t  *r;

    r = w->r;

    r->headers_out.status = NGX_HTTP_OK;
    ngx_str_set(&r->headers_out.content_type, "text/event-stream");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    ngx_http_clear_content_length(r);

    ngx_str_set(&value, "no-store");

    if (ngx_http_mcp_tasks_add_header(r, "Cache-Control", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_str_set(&value, "no");

    if (ngx_http_mcp_tasks_add_header(r, "X-Accel-Buffering", &value)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return NGX_ERROR;
    }

    w->stream = 1;

    return NGX_OK;
}


/*
 * A pool of its own for each event, so that a long stream does not grow.  A
 * comment goes as it is; a message gets its lines marked as data.
 */

static ngx_int_t
ngx_http_mcp_tasks_wait_output(ngx_http_mcp_tasks_wait_t *w, ngx_str_t *text,
    ngx_uint_t last)
{
    u_char       *p, *end;
    size_t        len;
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_pool_t   *pool;
    ngx_chain_t  *out;

    if (!w->stream && ngx_http_mcp_tasks_wait_open(w) != NGX_OK) {
        return NGX_ERROR;
    }

    end = text->data + text->len;
    len = text->len + sizeof("event: message\ndata: \n\n");

    for (p = text->data; p < end; p++) {
        if (*p == '\n' || *p == '\r') {
            len += sizeof("data: ");
        }
    }

    /* what comes last, or while the one before is still going, is rare */

    pool = w->r->pool;

    if (!last && w->pool == NULL) {
        pool = ngx_create_pool(len + 512, w->r->connection->log);
        if (pool == NULL) {
            return NGX_ERROR;
        }

        w->pool = pool;
    }

    b = ngx_create_temp_buf(pool, len);
    out = ngx_alloc_chain_link(pool);

    if (b == NULL || out == NULL) {
        return NGX_ERROR;
    }

    if (text->data[0] == ':') {
        b->last = ngx_cpymem(b->last, text->data, text->len);

    } else {
        b->last = ngx_cpymem(b->last, "event: message\ndata: ", 21);

        for (p = text->data; p < end; p++) {
            if (*p == '\n' || *p == '\r') {
                b->last = ngx_cpymem(b->last, "\ndata: ", 7);

            } else {
                *b->last++ = *p;
            }
        }

        b->last = ngx_cpymem(b->last, "\n\n", 2);
    }

    b->flush = 1;
    b->last_buf = last;
    b->last_in_chain = last;
    out->buf = b;
    out->next = NULL;

    w->alive = ngx_current_msec;

    rc = ngx_http_output_filter(w->r, out);

    if (rc == NGX_ERROR || last) {
        return rc;
    }

    ngx_http_mcp_tasks_wait_sent(w);

    if (w->pool
        && ngx_handle_write_event(w->r->connection->write, 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_mcp_tasks_wait_sent(ngx_http_mcp_tasks_wait_t *w)
{
    if (w->pool && w->r->out == NULL && !w->r->connection->buffered) {
        ngx_destroy_pool(w->pool);
        w->pool = NULL;
    }
}


/* until the task ends, or until it is time to hand it out */

ngx_int_t
ngx_http_mcp_tasks_wait_outcome(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_http_mcp_tasks_id_t *id,
    ngx_uint_t mode, ngx_msec_t after)
{
    ngx_http_mcp_tasks_wait_t  *w;

    w = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_tasks_wait_t));
    if (w == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    w->r = r;
    w->ctx = ctx;
    w->id = *id;
    w->mode = mode;
    w->look = ngx_http_mcp_tasks_outcome_look;
    w->gone = ngx_http_mcp_tasks_outcome_gone;
    w->streams = 1;
    w->until = (mode == NGX_HTTP_MCP_TASKS_WAIT_AFTER)
               ? ngx_current_msec + after : NGX_HTTP_MCP_TASKS_NEVER;

    return ngx_http_mcp_tasks_wait(w);
}


static ngx_int_t
ngx_http_mcp_tasks_outcome_look(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_pool_t                     *pool;
    ngx_int_t                       rc;
    ngx_http_mcp_tasks_op_get_t     op;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    pool = ngx_create_pool(1024, w->r->connection->log);
    if (pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&op, sizeof(ngx_http_mcp_tasks_op_get_t));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_GET;
    op.op.pool = pool;
    op.id = w->id;
    op.owner = &w->ctx->owner;
    op.want = NGX_HTTP_MCP_TASKS_WANT_DETAIL;

    if (ngx_http_mcp_tasks_submit(&lcf->zone->zone, &op.op) != NGX_OK) {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else if (op.op.reason != NGX_HTTP_MCP_TASKS_OK) {
        rc = w->stream ? NGX_ERROR
                       : ngx_http_mcp_tasks_refused(w->r, w->ctx,
                                                    op.op.reason);

    } else {
        ngx_http_mcp_tasks_known(w->r, w->ctx, &op.view);
        rc = ngx_http_mcp_tasks_outcome_news(w, &op.view);
    }

    ngx_destroy_pool(pool);

    return rc;
}


static ngx_int_t
ngx_http_mcp_tasks_outcome_news(ngx_http_mcp_tasks_wait_t *w,
    ngx_http_mcp_tasks_view_t *v)
{
    ngx_str_t                 message;
    ngx_http_mcp_tasks_out_t  out;

    if (ngx_http_mcp_tasks_terminal(v->task.state)) {
        return ngx_http_mcp_tasks_outcome_end(w, v);
    }

    if (w->mode == NGX_HTTP_MCP_TASKS_WAIT_AFTER
        && (ngx_current_msec >= w->until || ngx_exiting
            || v->task.state == NGX_HTTP_MCP_TASKS_INPUT_REQUIRED))
    {
        ngx_http_mcp_tasks_out_init(&out, w->r->pool, 512);
        ngx_http_mcp_tasks_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
        ngx_http_mcp_tasks_out_str(&out, &w->ctx->rpc.id.text);
        ngx_http_mcp_tasks_out_lit(&out, ",\"result\":");
        ngx_http_mcp_tasks_render_created(&out, w->ctx->era, v);
        ngx_http_mcp_tasks_out_lit(&out, "}");

        if (ngx_http_mcp_tasks_out_end(&out, &message) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_mcp_tasks_wait_end(w, &message);
    }

    if (ngx_exiting) {
        v->task.cause = NGX_HTTP_MCP_TASKS_CAUSE_NONE;
        ngx_str_set(&v->payload[NGX_HTTP_MCP_TASKS_RESULT],
                    "{\"code\":-32012,\"message\":\"The server is going down, "
                    "the task goes on\",\"data\":"
                    "{\"reason\":\"result_not_ready\"}}");
        return ngx_http_mcp_tasks_outcome_end(w, v);
    }

    if (v->task.version == w->version) {
        return NGX_AGAIN;
    }

    w->version = v->task.version;

    if (v->task.state == NGX_HTTP_MCP_TASKS_INPUT_REQUIRED) {
        return ngx_http_mcp_tasks_outcome_ask(w, v);
    }

    if (w->ctx->token.type == NGX_HTTP_MCP_TASKS_JSON_NONE
        || w->mode == NGX_HTTP_MCP_TASKS_WAIT_RESULT
        || v->task.progress < 0
        || v->task.progress <= w->progress)
    {
        return NGX_AGAIN;
    }

    w->progress = v->task.progress;

    ngx_http_mcp_tasks_out_init(&out, w->r->pool, 256);
    ngx_http_mcp_tasks_out_lit(&out, "{\"jsonrpc\":\"2.0\","
                               "\"method\":\"notifications/progress\","
                               "\"params\":{\"progressToken\":");
    ngx_http_mcp_tasks_out_str(&out, &w->ctx->token.text);
    ngx_http_mcp_tasks_out_lit(&out, ",\"progress\":");
    ngx_http_mcp_tasks_out_real(&out, v->task.progress);

    if (v->task.total >= 0) {
        ngx_http_mcp_tasks_out_lit(&out, ",\"total\":");
        ngx_http_mcp_tasks_out_real(&out, v->task.total);
    }

    if (v->payload[NGX_HTTP_MCP_TASKS_MESSAGE].len) {
        ngx_http_mcp_tasks_out_lit(&out, ",\"message\":");
        ngx_http_mcp_tasks_out_str(&out,
                                   &v->payload[NGX_HTTP_MCP_TASKS_MESSAGE]);
    }

    ngx_http_mcp_tasks_out_lit(&out, "}}");

    if (ngx_http_mcp_tasks_out_end(&out, &message) != NGX_OK
        || ngx_http_mcp_tasks_wait_send(w, &message) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


/* legacy: as requests on the stream; modern clients get the task instead */

static ngx_int_t
ngx_http_mcp_tasks_outcome_ask(ngx_http_mcp_tasks_wait_t *w,
    ngx_http_mcp_tasks_view_t *v)
{
    ngx_str_t                        message;
    ngx_http_mcp_tasks_out_t         out;
    ngx_http_mcp_tasks_json_t        requests, key, value;
    ngx_http_mcp_tasks_json_iter_t   it;

    if (w->ctx->era == NGX_HTTP_MCP_TASKS_MODERN) {
        ngx_http_mcp_tasks_outcome_gone(w);
        return w->stream ? NGX_ERROR
                         : ngx_http_mcp_tasks_no_capability(w->r, w->ctx);
    }

    requests.type = NGX_HTTP_MCP_TASKS_JSON_OBJECT;
    requests.text = v->payload[NGX_HTTP_MCP_TASKS_REQUESTS];

    ngx_http_mcp_tasks_json_iter(&it, &requests);

    while (ngx_http_mcp_tasks_json_next(&it, &key, &value) == NGX_OK) {

        ngx_http_mcp_tasks_out_init(&out, w->r->pool, value.text.len + 256);
        ngx_http_mcp_tasks_render_question(&out, v, &key, &value);

        if (ngx_http_mcp_tasks_out_end(&out, &message) != NGX_OK
            || ngx_http_mcp_tasks_wait_send(w, &message) == NGX_ERROR)
        {
            return NGX_ERROR;
        }
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_mcp_tasks_outcome_end(ngx_http_mcp_tasks_wait_t *w,
    ngx_http_mcp_tasks_view_t *v)
{
    ngx_str_t                        message;
    ngx_http_mcp_tasks_out_t         out;
    ngx_http_mcp_tasks_op_delete_t   op;
    ngx_http_mcp_tasks_loc_conf_t   *lcf;

    ngx_http_mcp_tasks_out_init(&out, w->r->pool,
                            256 + v->payload[NGX_HTTP_MCP_TASKS_RESULT].len);
    ngx_http_mcp_tasks_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    ngx_http_mcp_tasks_out_str(&out, &w->ctx->rpc.id.text);
    ngx_http_mcp_tasks_out_lit(&out, ",");
    ngx_http_mcp_tasks_render_outcome(&out, w->ctx->era, v,
                             w->mode == NGX_HTTP_MCP_TASKS_WAIT_RESULT);
    ngx_http_mcp_tasks_out_lit(&out, "}");

    if (ngx_http_mcp_tasks_out_end(&out, &message) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (w->mode != NGX_HTTP_MCP_TASKS_WAIT_RESULT
        && ngx_http_mcp_tasks_terminal(v->task.state))
    {
        /* the client never got to know the task: nobody will ask for it */

        lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

        ngx_memzero(&op, sizeof(ngx_http_mcp_tasks_op_delete_t));
        op.op.type = NGX_HTTP_MCP_TASKS_OP_DELETE;
        op.op.pool = w->r->pool;
        op.id = w->id;
        (void) ngx_http_mcp_tasks_submit(&lcf->zone->zone, &op.op);
    }

    return ngx_http_mcp_tasks_wait_end(w, &message);
}


/* in the modern era going away cancels a call, but never a task */

static void
ngx_http_mcp_tasks_outcome_gone(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_http_mcp_tasks_op_update_t   op;
    ngx_http_mcp_tasks_loc_conf_t   *lcf;

    if (w->ctx->era != NGX_HTTP_MCP_TASKS_MODERN) {
        return;
    }

    lcf = ngx_http_get_module_loc_conf(w->r, ngx_http_mcp_tasks_module);

    ngx_memzero(&op, sizeof(ngx_http_mcp_tasks_op_update_t));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_UPDATE;
    op.op.pool = w->r->pool;
    op.id = w->id;
    op.owner = &w->ctx->owner;
    op.event.type = NGX_HTTP_MCP_TASKS_EV_CANCEL;

    (void) ngx_http_mcp_tasks_submit(&lcf->zone->zone, &op.op);
}
