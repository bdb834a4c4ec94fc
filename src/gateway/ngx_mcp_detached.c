
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Detached requests.  Each is a real request on a real connection whose socket
 * has no peer, so that all of nginx, proxying above all, works as it does for
 * a client's request.  The module's filters catch the response.
 */


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_detached.h"


/*
 * The module may be built without the stub_status module and loaded into an
 * nginx that has it, or the other way round.
 */

#if !(NGX_STAT_STUB)
extern ngx_atomic_t  *ngx_stat_active;
#endif

#pragma weak ngx_stat_active


static ngx_connection_t *ngx_mcp_detached_connection(void);
static ngx_socket_t ngx_mcp_detached_number(void);
static ngx_int_t ngx_mcp_detached_init(ngx_mcp_detached_t *d,
    ngx_connection_t *c, ngx_mcp_sender_t *sender);
static ngx_int_t ngx_mcp_detached_request(ngx_http_request_t *r,
    ngx_mcp_sender_t *sender, ngx_str_t *body, ngx_str_t *last_id);
static ngx_int_t ngx_mcp_detached_line(ngx_http_request_t *r,
    ngx_mcp_sender_t *sender);
static ngx_int_t ngx_mcp_detached_headers(ngx_http_request_t *r,
    ngx_mcp_sender_t *sender);
static ngx_int_t ngx_mcp_detached_header(ngx_http_request_t *r,
    ngx_table_elt_t *from);
static ngx_table_elt_t *ngx_mcp_detached_add(ngx_http_request_t *r,
    const char *key, const char *lowcase, ngx_str_t *value);
static ngx_int_t ngx_mcp_detached_body(ngx_http_request_t *r, ngx_str_t *body);
static ngx_int_t ngx_mcp_detached_ctx(ngx_http_request_t *r,
    ngx_mcp_sender_t *sender);
static void ngx_mcp_detached_event(ngx_event_t *ev);
static ngx_chain_t *ngx_mcp_detached_send(ngx_connection_t *c, ngx_chain_t *in,
    off_t limit);
static void ngx_mcp_detached_done(void *data);
static u_char *ngx_mcp_detached_log(ngx_log_t *log, u_char *buf, size_t len);


static ngx_socket_t  ngx_mcp_detached_socket = (ngx_socket_t) -1;


ngx_mcp_detached_t *
ngx_mcp_detached(ngx_mcp_sender_t *sender, ngx_str_t *body, ngx_str_t *last_id,
    ngx_mcp_reader_t *reader, void *data)
{
    ngx_connection_t    *c;
    ngx_pool_cleanup_t  *cln;
    ngx_http_request_t  *r;
    ngx_mcp_detached_t  *d;

    c = ngx_mcp_detached_connection();
    if (c == NULL) {
        return NULL;
    }

    d = ngx_pcalloc(c->pool, sizeof(ngx_mcp_detached_t));

    if (d == NULL
        || ngx_mcp_detached_init(d, c, sender) != NGX_OK)
    {
        goto failed;
    }

    r = ngx_http_create_request(c);
    if (r == NULL) {
        goto failed;
    }

    c->data = r;
    d->r = r;
    d->reader = reader;
    d->data = data;

    /*
     * The cleanup is added first and so runs last, when nothing in nginx
     * refers to the request: a thread may use it after its termination.
     */

    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (cln == NULL
        || ngx_mcp_detached_request(r, sender, body, last_id)
           != NGX_OK)
    {
        r->logged = 1;
        ngx_http_free_request(r, 0);
        goto failed;
    }

    cln->handler = ngx_mcp_detached_done;
    cln->data = d;

    return d;

failed:

    ngx_http_close_connection(c);

    return NULL;
}


/*
 * An unbound datagram socket never becomes readable and is never closed by a
 * peer.  All detached requests of a process share one socket, as nginx's QUIC
 * streams do: opening and closing a socket for each request took a tenth of
 * the time of a call.
 */

ngx_int_t
ngx_mcp_detached_process(ngx_cycle_t *cycle)
{
    if (ngx_mcp_detached_socket != (ngx_socket_t) -1) {
        return NGX_OK;
    }

    ngx_mcp_detached_socket = ngx_socket(AF_UNIX,
                                  SOCK_DGRAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (ngx_mcp_detached_socket == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_socket_errno,
                      "socket() for background calls failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_connection_t *
ngx_mcp_detached_connection(void)
{
    ngx_log_t         *log;
    ngx_pool_t        *pool;
    ngx_socket_t       s;
    ngx_connection_t  *c;

    s = ngx_mcp_detached_number();

    if (s == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_socket_errno,
                      "fcntl(F_DUPFD_CLOEXEC) for a background call failed");
        return NULL;
    }

    c = ngx_get_connection(s, ngx_cycle->log);
    pool = c ? ngx_create_pool(1024, ngx_cycle->log) : NULL;
    log = pool ? ngx_palloc(pool, sizeof(ngx_log_t)) : NULL;

    if (log == NULL) {

        if (pool) {
            ngx_destroy_pool(pool);
        }

        if (c) {
            ngx_free_connection(c);
        }

        if (s != ngx_mcp_detached_socket) {
            (void) ngx_close_socket(s);
        }

        return NULL;
    }

    c->shared = (s == ngx_mcp_detached_socket);

    *log = *ngx_cycle->log;

    c->pool = pool;
    c->log = log;
    pool->log = log;
    c->read->log = log;
    c->write->log = log;

    /* ngx_http_close_connection() decrements the counter */

    if (&ngx_stat_active) {
        (void) ngx_atomic_fetch_add(ngx_stat_active, 1);
    }

    return c;
}


/*
 * With epoll, the shared socket is never added to the event loop, see
 * ngx_mcp_detached_init().  Other event methods need a file descriptor of its
 * own for each connection.
 */

static ngx_socket_t
ngx_mcp_detached_number(void)
{
    if (ngx_event_flags & NGX_USE_EPOLL_EVENT) {
        return ngx_mcp_detached_socket;
    }

    return fcntl(ngx_mcp_detached_socket, F_DUPFD_CLOEXEC, 0);
}


static ngx_int_t
ngx_mcp_detached_init(ngx_mcp_detached_t *d, ngx_connection_t *c,
    ngx_mcp_sender_t *sender)
{
    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);
    c->start_time = ngx_current_msec;

    d->log_ctx.connection = c;
    c->log->connection = c->number;
    c->log->data = &d->log_ctx;
    c->log->handler = ngx_mcp_detached_log;
    c->log->action = "running a background call";
    c->log_error = NGX_ERROR_INFO;

    d->hc.conf_ctx = sender->conf_ctx;
    d->hc.addr_conf = sender->addr_conf;
    c->data = &d->hc;

    c->sockaddr = sender->sockaddr;
    c->socklen = sender->socklen;
    c->addr_text = sender->addr_text;
    c->local_sockaddr = sender->local_sockaddr;
    c->local_socklen = sender->local_socklen;

    c->recv = ngx_recv;
    c->send = ngx_send;
    c->recv_chain = ngx_recv_chain;
    c->send_chain = ngx_mcp_detached_send;

    c->read->handler = ngx_mcp_detached_event;
    c->write->handler = ngx_mcp_detached_event;
    c->write->ready = 1;

    if (ngx_event_flags & NGX_USE_EPOLL_EVENT) {
        /* nginx does not add events that are already active */
        c->read->active = 1;
        c->write->active = 1;
    }

    /* the socket is not TCP */

    c->tcp_nodelay = NGX_TCP_NODELAY_DISABLED;
    c->tcp_nopush = NGX_TCP_NOPUSH_DISABLED;

    c->buffer = ngx_create_temp_buf(c->pool, 1);

    return c->buffer ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_mcp_detached_request(ngx_http_request_t *r, ngx_mcp_sender_t *sender,
    ngx_str_t *body, ngx_str_t *last_id)
{
    r->internal = 1;
    r->disable_not_modified = 1;

    if (body) {
        r->method = NGX_HTTP_POST;
        ngx_str_set(&r->method_name, "POST");

    } else {
        r->method = NGX_HTTP_GET;
        ngx_str_set(&r->method_name, "GET");
    }

    if (ngx_mcp_detached_line(r, sender) != NGX_OK
        || ngx_mcp_detached_headers(r, sender) != NGX_OK
        || ngx_mcp_detached_ctx(r, sender) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return body ? ngx_mcp_detached_body(r, body)
                : ngx_mcp_detached_add(r, "Last-Event-ID",
                                       "last-event-id", last_id)
                  ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_mcp_detached_line(ngx_http_request_t *r, ngx_mcp_sender_t *sender)
{
    u_char  *p;

    ngx_str_set(&r->http_protocol, "HTTP/1.1");
    r->http_version = NGX_HTTP_VERSION_11;
    r->uri = sender->uri;
    r->args = sender->args;
    ngx_http_set_exten(r);

    p = ngx_pnalloc(r->pool, r->method_name.len + sizeof(" ? HTTP/1.1")
                             + r->uri.len + r->args.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    r->request_line.data = p;
    p = ngx_cpymem(p, r->method_name.data, r->method_name.len);
    *p++ = ' ';
    r->unparsed_uri.data = p;
    p = ngx_cpymem(p, r->uri.data, r->uri.len);

    if (r->args.len) {
        *p++ = '?';
        p = ngx_cpymem(p, r->args.data, r->args.len);
    }

    r->unparsed_uri.len = p - r->unparsed_uri.data;
    p = ngx_cpymem(p, " HTTP/1.1", 9);
    r->request_line.len = p - r->request_line.data;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_detached_headers(ngx_http_request_t *r, ngx_mcp_sender_t *sender)
{
    ngx_uint_t        i;
    ngx_table_elt_t  *h;
    ngx_mcp_kept_t   *kept;

    if (ngx_list_init(&r->headers_in.headers, r->pool,
                      sender->headers.nelts + 2, sizeof(ngx_table_elt_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    kept = sender->variables.elts;

    for (i = 0; i < sender->variables.nelts; i++) {
        r->variables[kept[i].index] = kept[i].value;
    }

    r->headers_in.server = sender->server;
    h = sender->headers.elts;

    for (i = 0; i < sender->headers.nelts; i++) {
        if (ngx_mcp_detached_header(r, &h[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_detached_header(ngx_http_request_t *r, ngx_table_elt_t *from)
{
    ngx_table_elt_t            *h;
    ngx_http_header_t          *hh;
    ngx_http_core_main_conf_t  *cmcf;

    h = ngx_list_push(&r->headers_in.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = *from;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    hh = ngx_hash_find(&cmcf->headers_in_hash, h->hash, h->lowcase_key,
                       h->key.len);
    if (hh == NULL) {
        return NGX_OK;
    }

    if (hh->offset == offsetof(ngx_http_headers_in_t, host)) {
        /* the handler would select a server, which is already known */
        r->headers_in.host = h;
        return NGX_OK;
    }

    return hh->handler ? hh->handler(r, h, hh->offset) : NGX_OK;
}


static ngx_table_elt_t *
ngx_mcp_detached_add(ngx_http_request_t *r, const char *key,
    const char *lowcase, ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_in.headers);
    if (h == NULL) {
        return NULL;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->lowcase_key = (u_char *) lowcase;
    h->hash = ngx_hash_key(h->lowcase_key, h->key.len);
    h->value = *value;

    return h;
}


static ngx_int_t
ngx_mcp_detached_body(ngx_http_request_t *r, ngx_str_t *body)
{
    ngx_buf_t                *b;
    ngx_str_t                 length;
    ngx_chain_t              *cl;
    ngx_http_request_body_t  *rb;

    rb = ngx_pcalloc(r->pool, sizeof(ngx_http_request_body_t));
    b = ngx_create_temp_buf(r->pool, body->len);
    cl = ngx_alloc_chain_link(r->pool);
    length.data = ngx_pnalloc(r->pool, NGX_SIZE_T_LEN);

    if (rb == NULL || b == NULL || cl == NULL || length.data == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_cpymem(b->last, body->data, body->len);
    b->last_buf = 1;

    cl->buf = b;
    cl->next = NULL;

    rb->bufs = cl;
    r->request_body = rb;

    length.len = ngx_sprintf(length.data, "%uz", body->len) - length.data;

    r->headers_in.content_length_n = body->len;
    r->headers_in.content_length = ngx_mcp_detached_add(r,
                                 "Content-Length", "content-length", &length);

    return r->headers_in.content_length ? NGX_OK : NGX_ERROR;
}


/* The context has the values of the module's variables. */

static ngx_int_t
ngx_mcp_detached_ctx(ngx_http_request_t *r, ngx_mcp_sender_t *sender)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->detached = 1;
    ctx->era = sender->era;
    ctx->tool = sender->tool;
    ctx->task_id = sender->task_id;
    ctx->client = sender->client;
    ctx->trace = &sender->trace;
    ngx_str_set(&ctx->rpc.method, "tools/call");

    return ngx_mcp_set_ctx(r, ctx);
}


void
ngx_mcp_detached_start(ngx_mcp_detached_t *d)
{
    ngx_connection_t  *c;

    c = d->r->connection;

    ngx_http_handler(d->r);
    ngx_http_run_posted_requests(c);
}


void
ngx_mcp_detached_end(ngx_mcp_detached_t *d)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = d->r;
    c = r->connection;

    r->main->count++;
    ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
    ngx_http_run_posted_requests(c);
}


ngx_mcp_detached_t *
ngx_mcp_is_detached(ngx_http_request_t *r)
{
    if (r->connection->send_chain != ngx_mcp_detached_send) {
        return NULL;
    }

    return (ngx_mcp_detached_t *) r->http_connection;
}


static void
ngx_mcp_detached_event(ngx_event_t *ev)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    c = ev->data;
    r = c->data;

    ngx_http_set_log_request(c->log, r);

    if (c->close) {
        /* the worker process exits: worker_shutdown_timeout has expired */
        r->main->count++;
        ngx_http_finalize_request(r, NGX_ERROR);

    } else if (ev->write) {
        r->write_event_handler(r);

    } else {
        r->read_event_handler(r);
    }

    ngx_http_run_posted_requests(c);
}


/* Discards output; its address also identifies detached requests. */

static ngx_chain_t *
ngx_mcp_detached_send(ngx_connection_t *c, ngx_chain_t *in, off_t limit)
{
    for ( /* void */ ; in; in = in->next) {
        c->sent += ngx_buf_size(in->buf);
    }

    return NULL;
}


static void
ngx_mcp_detached_done(void *data)
{
    ngx_mcp_detached_t *d = data;

    d->reader->done(d);
}


static u_char *
ngx_mcp_detached_log(ngx_log_t *log, u_char *buf, size_t len)
{
    u_char              *p;
    ngx_http_request_t  *r;
    ngx_http_log_ctx_t  *ctx;

    p = buf;

    if (log->action) {
        p = ngx_snprintf(buf, len, " while %s", log->action);
        len -= p - buf;
    }

    ctx = log->data;
    r = ctx->request;

    return r ? r->log_handler(r, ctx->current_request, p, len) : p;
}
