
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Batches.  Each message is executed as a subrequest, an element, which shares
 * the connection and the headers of the client's request and has a context and
 * a pool of its own.  No phase is run for it: its handler gets the owner of the
 * batch, which is never evaluated again.
 *
 * The client's request waits, as other requests do, and looks whenever an
 * element has started or ended.  Responses of elements are collected and sent
 * as one array.  The response becomes a stream of events as soon as an element
 * has an event to send, the connection has to be kept alive, or the collected
 * responses are large.
 *
 * Elements are started one after the other, but do not wait for each other.
 * While the client does not read, no element is started and none that waits
 * looks, so that unsent responses do not accumulate.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_batch.h"


/* bytes of collected responses, after which they are sent as a stream */
#define NGX_MCP_BATCH_COLLECT  (256 * 1024)


typedef struct ngx_mcp_batch_s  ngx_mcp_batch_t;

/* a cleanup in the main request, which refers to memory of an element */

typedef struct ngx_mcp_batch_cleanup_s  ngx_mcp_batch_cleanup_t;

struct ngx_mcp_batch_cleanup_s {
    ngx_http_cleanup_t       *cln;
    ngx_mcp_batch_cleanup_t  *next;
};


struct ngx_mcp_element_s {
    ngx_mcp_batch_t             *batch;
    ngx_mcp_json_t               message;
    ngx_str_t                    answer;    /* empty: none, or sent */
    ngx_pool_t                  *pool;      /* NULL: not started, or freed */
    ngx_http_request_t          *r;
    ngx_mcp_ctx_t               *ctx;
    ngx_mcp_batch_cleanup_t     *cleanups;
    ngx_http_post_subrequest_t   ended_handler;
    unsigned                     ended:1;
};


struct ngx_mcp_batch_s {
    ngx_mcp_wait_t       wait;      /* must be the first */
    ngx_mcp_method_pt    handler;
    ngx_mcp_element_t   *elements;
    ngx_uint_t           n;
    ngx_uint_t           next;      /* the element to be started */
    ngx_uint_t           ended;     /* number of elements */
    ngx_uint_t           first;     /* the first that is not freed */
    ngx_uint_t           answers;   /* not sent */
    size_t               size;      /* of these answers */
    ngx_uint_t           status;    /* of the response, if it is not 200 */
    unsigned             starting:1;  /* an element is posted */
    unsigned             ok:1;      /* a message has the status 200 */
};


static ngx_int_t ngx_mcp_batch_look(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_batch_start(ngx_mcp_batch_t *b);
static ngx_int_t ngx_mcp_batch_request(ngx_mcp_element_t *e);
static void ngx_mcp_batch_run(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_batch_ended(ngx_http_request_t *r, void *data,
    ngx_int_t rc);
static void ngx_mcp_batch_post(ngx_mcp_batch_t *b);
static ngx_int_t ngx_mcp_batch_flush(ngx_mcp_batch_t *b);
static ngx_int_t ngx_mcp_batch_array(ngx_mcp_batch_t *b);
static void ngx_mcp_batch_resume(ngx_mcp_batch_t *b);
static void ngx_mcp_batch_sent(ngx_mcp_batch_t *b);
static void ngx_mcp_batch_free(void *data);


ngx_int_t
ngx_mcp_batch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *messages, ngx_mcp_method_pt handler)
{
    ngx_uint_t            i;
    ngx_mcp_json_t        message;
    ngx_mcp_batch_t      *b;
    ngx_pool_cleanup_t   *cln;
    ngx_mcp_json_iter_t   it;

    b = ngx_pcalloc(r->pool, sizeof(ngx_mcp_batch_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (b == NULL || cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (ngx_mcp_json_iter(&it, messages);
         ngx_mcp_json_next(&it, NULL, &message) == NGX_OK;
         b->n++)
    {
        if (b->n == NGX_MCP_BATCH_MAX) {
            return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                                 NGX_MCP_RPC_INVALID_REQUEST,
                                 "Invalid Request: a batch must not have more "
                                 "than " NGX_MCP_BATCH_TEXT " messages", NULL);
        }
    }

    if (b->n == 0) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_RPC_INVALID_REQUEST,
                             "Invalid Request: a batch must have at least one "
                             "message", NULL);
    }

    b->elements = ngx_pcalloc(r->pool, b->n * sizeof(ngx_mcp_element_t));
    if (b->elements == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_mcp_batch_free;
    cln->data = b;

    ngx_mcp_json_iter(&it, messages);

    for (i = 0; i < b->n; i++) {
        b->elements[i].batch = b;
        (void) ngx_mcp_json_next(&it, NULL, &b->elements[i].message);
    }

    b->handler = handler;

    ngx_mcp_wait_init(&b->wait, r, ctx);
    b->wait.look = ngx_mcp_batch_look;
    b->wait.until = NGX_MCP_NEVER;
    b->wait.streams = 1;

    return ngx_mcp_wait(&b->wait);
}


static ngx_int_t
ngx_mcp_batch_look(ngx_mcp_wait_t *w)
{
    ngx_int_t         rc;
    ngx_mcp_batch_t  *b;

    b = (ngx_mcp_batch_t *) w;

    if (b->ended == b->n && !w->stream) {
        return ngx_mcp_batch_array(b);
    }

    if (w->stream || b->size > NGX_MCP_BATCH_COLLECT) {
        rc = ngx_mcp_batch_flush(b);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (ngx_mcp_wait_busy(w)) {
        w->missed = 1;
        return NGX_DECLINED;
    }

    if (w->stream) {
        ngx_mcp_batch_sent(b);
    }

    ngx_mcp_batch_resume(b);

    if (b->next < b->n && !b->starting) {
        return ngx_mcp_batch_start(b);
    }

    return NGX_DECLINED;
}


/* nginx runs the subrequest after this event */

static ngx_int_t
ngx_mcp_batch_start(ngx_mcp_batch_t *b)
{
    ngx_mcp_element_t  *e;

    e = &b->elements[b->next];

    e->pool = ngx_create_pool(4096, b->wait.r->connection->log);

    if (e->pool == NULL || ngx_mcp_batch_request(e) != NGX_OK) {
        return NGX_ERROR;
    }

    b->next++;
    b->starting = 1;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_batch_request(ngx_mcp_element_t *e)
{
    size_t                      size;
    ngx_mcp_ctx_t              *ctx;
    ngx_http_request_t         *r, *sr;
    ngx_http_variable_value_t  *variables;
    ngx_http_core_main_conf_t  *cmcf;

    r = e->batch->wait.r;
    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    size = cmcf->variables.nelts * sizeof(ngx_http_variable_value_t);

    ctx = ngx_pcalloc(e->pool, sizeof(ngx_mcp_ctx_t));
    variables = ngx_palloc(e->pool, size);

    if (ctx == NULL || variables == NULL) {
        return NGX_ERROR;
    }

    ctx->owner = e->batch->wait.ctx->owner;
    ctx->element = e;

    e->ctx = ctx;
    e->ended_handler.handler = ngx_mcp_batch_ended;
    e->ended_handler.data = e;

    if (ngx_http_subrequest(r, &r->uri, &r->args, &sr, &e->ended_handler,
                            NGX_HTTP_SUBREQUEST_CLONE
                            |NGX_HTTP_SUBREQUEST_BACKGROUND)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* values that it adds, for its log line, are in its own pool */

    ngx_memcpy(variables, r->variables, size);

    e->r = sr;
    sr->pool = e->pool;
    sr->variables = variables;
    sr->write_event_handler = ngx_mcp_batch_run;

    ngx_http_set_ctx(sr, ctx, ngx_http_mcp_tasks_module);

    return NGX_OK;
}


static void
ngx_mcp_batch_run(ngx_http_request_t *r)
{
    ngx_int_t         rc;
    ngx_mcp_ctx_t    *ctx;
    ngx_mcp_batch_t  *b;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    b = ctx->element->batch;

    r->write_event_handler = ngx_http_request_empty_handler;

    b->starting = 0;
    ngx_mcp_batch_post(b);

    if (r->connection->error) {
        /* the client has closed the connection */
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    rc = ngx_mcp_read_message(r, ctx, &ctx->element->message);

    if (rc == NGX_DECLINED) {
        rc = b->handler(r, ctx);
    }

    ngx_http_finalize_request(r, rc);
}


/* called by nginx before it finalizes an element with this value */

static ngx_int_t
ngx_mcp_batch_ended(ngx_http_request_t *r, void *data, ngx_int_t rc)
{
    ngx_mcp_element_t *e = data;

    if (e->ended || rc == NGX_ERROR || rc == NGX_HTTP_CLIENT_CLOSED_REQUEST) {
        /* the value ends the client's request */
        return rc;
    }

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE && e->answer.len == 0) {
        rc = ngx_mcp_error(r, e->ctx, rc, NGX_MCP_RPC_INTERNAL,
                           "Internal error", NULL);

        if (rc != NGX_OK) {
            rc = NGX_ERROR;
        }
    }

    e->ended = 1;
    e->batch->ended++;
    ngx_mcp_batch_post(e->batch);

    return rc;
}


/* the batch looks later, unless it has ended */

static void
ngx_mcp_batch_post(ngx_mcp_batch_t *b)
{
    if (b->wait.parked) {
        ngx_post_event(&b->wait.event, &ngx_posted_events);
    }
}


ngx_int_t
ngx_mcp_batch_answer(ngx_mcp_ctx_t *ctx, ngx_uint_t status, ngx_str_t *answer)
{
    ngx_mcp_batch_t  *b;

    b = ctx->element->batch;

    ctx->element->answer = *answer;
    b->answers++;
    b->size += answer->len;

    if (status == NGX_HTTP_OK) {
        b->ok = 1;
    }

    b->status = ngx_max(b->status, status);

    return NGX_OK;
}


ngx_mcp_wait_t *
ngx_mcp_batch_stream(ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_batch_t  *b;

    b = ctx->element->batch;

    if (!b->wait.stream) {
        /* the event begins the stream: collected responses can be sent */
        ngx_mcp_batch_post(b);
    }

    return &b->wait;
}


ngx_uint_t
ngx_mcp_batch_hold(ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_wait_t   *w;
    ngx_mcp_batch_t  *b;

    b = ctx->element->batch;
    w = &b->wait;

    if (ngx_exiting
        || (!ngx_mcp_wait_busy(w) && b->size <= NGX_MCP_BATCH_COLLECT))
    {
        return 0;
    }

    w->missed = 1;

    return 1;
}


/*
 * Sends the collected responses as events.  NGX_DECLINED: the batch has not
 * ended, or the client has to read first.
 */

static ngx_int_t
ngx_mcp_batch_flush(ngx_mcp_batch_t *b)
{
    ngx_int_t           rc;
    ngx_str_t           answer;
    ngx_uint_t          i;
    ngx_mcp_wait_t     *w;
    ngx_mcp_element_t  *e;

    w = &b->wait;

    for (i = b->first; b->answers && i < b->next; i++) {
        e = &b->elements[i];

        if (!e->ended || e->answer.len == 0) {
            continue;
        }

        if (ngx_mcp_wait_busy(w) && !ngx_exiting) {
            w->missed = 1;
            return NGX_DECLINED;
        }

        answer = e->answer;
        ngx_str_null(&e->answer);
        b->size -= answer.len;
        b->answers--;

        if (b->answers == 0 && b->ended == b->n) {
            return ngx_mcp_wait_end(w, &answer);
        }

        rc = ngx_mcp_wait_message(w, NULL, &answer);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    if (b->ended == b->n) {
        /* the last message was a notification or a response */
        return ngx_http_send_special(w->r, NGX_HTTP_LAST);
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_batch_array(ngx_mcp_batch_t *b)
{
    ngx_str_t    parts[2 * NGX_MCP_BATCH_MAX + 1];
    ngx_uint_t   i, n;

    if (b->answers == 0) {
        return ngx_mcp_accepted(b->wait.r);
    }

    n = 0;

    for (i = 0; i < b->n; i++) {

        if (b->elements[i].answer.len == 0) {
            continue;
        }

        parts[n].data = (u_char *) (n ? "," : "[");
        parts[n++].len = 1;
        parts[n++] = b->elements[i].answer;
    }

    ngx_str_set(&parts[n], "]");
    n++;

    return ngx_mcp_send(b->wait.r, b->ok ? NGX_HTTP_OK : b->status, parts, n);
}


/* elements that ngx_mcp_batch_hold() has stopped look again */

static void
ngx_mcp_batch_resume(ngx_mcp_batch_t *b)
{
    ngx_uint_t          i;
    ngx_mcp_wait_t     *w;
    ngx_mcp_element_t  *e;

    for (i = b->first; i < b->next; i++) {
        e = &b->elements[i];
        w = e->ended ? NULL : e->ctx->wait;

        if (w && w->parked && w->missed) {
            ngx_post_event(&w->event, &ngx_posted_events);
        }
    }
}


/*
 * Adds a cleanup to a request.  Cleanups of an element belong to the client's
 * request, too, but an element is freed earlier: this function is used instead
 * of ngx_http_cleanup_add().
 */

ngx_http_cleanup_t *
ngx_mcp_cleanup_add(ngx_http_request_t *r)
{
    ngx_mcp_ctx_t            *ctx;
    ngx_mcp_batch_cleanup_t  *c;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (ctx == NULL || ctx->element == NULL) {
        return ngx_http_cleanup_add(r, 0);
    }

    c = ngx_palloc(r->pool, sizeof(ngx_mcp_batch_cleanup_t));
    if (c == NULL) {
        return NULL;
    }

    c->cln = ngx_http_cleanup_add(r, 0);
    if (c->cln == NULL) {
        return NULL;
    }

    c->next = ctx->element->cleanups;
    ctx->element->cleanups = c;

    return c->cln;
}


/*
 * Frees elements whose responses are sent.  An element whose wait is being
 * counted again remains until the request ends.
 */

static void
ngx_mcp_batch_sent(ngx_mcp_batch_t *b)
{
    ngx_uint_t                i;
    ngx_mcp_element_t        *e;
    ngx_http_cleanup_pt       handler;
    ngx_mcp_batch_cleanup_t  *c;

    for (i = b->first; i < b->next; i++) {
        e = &b->elements[i];

        if (e->pool == NULL || !e->ended || e->answer.len
            || (e->ctx->wait && e->ctx->wait->entering))
        {
            continue;
        }

        for (c = e->cleanups; c; c = c->next) {
            handler = c->cln->handler;

            if (handler) {
                c->cln->handler = NULL;
                handler(c->cln->data);
            }
        }

        ngx_http_set_ctx(e->r, NULL, ngx_http_mcp_tasks_module);
        ngx_destroy_pool(e->pool);
        e->pool = NULL;
    }

    while (b->first < b->next && b->elements[b->first].pool == NULL) {
        b->first++;
    }
}


/* the request is freed, and with it all elements */

static void
ngx_mcp_batch_free(void *data)
{
    ngx_mcp_batch_t *b = data;

    ngx_uint_t  i;

    for (i = 0; i < b->n; i++) {
        if (b->elements[i].pool) {
            ngx_destroy_pool(b->elements[i].pool);
        }
    }
}
