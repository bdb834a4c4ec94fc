
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Opening a connection: the address, the socket, TLS; and closing it.
 */


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_REDIS)


#include "ngx_mcp_redis_conn_types.h"


static void ngx_mcp_redis_resolve(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_resolved(ngx_resolver_ctx_t *ctx);
static void ngx_mcp_redis_connect_addr(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_connect_handler(ngx_event_t *ev);
static void ngx_mcp_redis_connected(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_established(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_write_handler(ngx_event_t *wev);

#if (NGX_SSL)
static void ngx_mcp_redis_tls(ngx_mcp_redis_conn_t *conn);
static ngx_int_t ngx_mcp_redis_tls_name(ngx_mcp_redis_conn_t *conn,
    ngx_connection_t *c);
static void ngx_mcp_redis_tls_handler(ngx_connection_t *c);
static ngx_uint_t ngx_mcp_redis_tls_matches(ngx_connection_t *c,
    ngx_str_t *name);
#endif


void
ngx_mcp_redis_connect(ngx_mcp_redis_conn_t *conn)
{
    ngx_url_t             *url;
    ngx_mcp_redis_conf_t  *conf;

    conf = conn->rd->conf;
    url = &conf->url;

    if (url->naddrs) {
        conn->peer.sockaddr = url->addrs[0].sockaddr;
        conn->peer.socklen = url->addrs[0].socklen;
        conn->peer.name = &url->addrs[0].name;

        ngx_mcp_redis_connect_addr(conn);
        return;
    }

    ngx_mcp_redis_resolve(conn);
}


static void
ngx_mcp_redis_resolve(ngx_mcp_redis_conn_t *conn)
{
    ngx_msec_t                 timeout;
    ngx_resolver_ctx_t        *ctx;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = conn->rd->conf->clcf;

    ctx = ngx_resolve_start(clcf->resolver, NULL);

    if (ctx == NULL || ctx == NGX_NO_RESOLVER) {
        ngx_mcp_redis_lost(conn, "the name cannot be resolved", 0);
        return;
    }

    timeout = clcf->resolver_timeout;

    if (timeout == NGX_CONF_UNSET_MSEC) {
        timeout = 30000;
    }

    if (conn->naddrs) {
        timeout = ngx_min(timeout, conn->rd->conf->connect_timeout);
    }

    ctx->name = conn->rd->conf->url.host;
    ctx->handler = ngx_mcp_redis_resolved;
    ctx->data = conn;
    ctx->timeout = timeout;
    ctx->cancelable = 1;

    conn->state = NGX_MCP_REDIS_RESOLVING;
    conn->resolving = ctx;

    /* the handler may be called at once; it frees the context */

    if (ngx_resolve_name(ctx) != NGX_OK) {
        conn->resolving = NULL;
        ngx_mcp_redis_lost(conn, "the name cannot be resolved", 0);
    }
}


static void
ngx_mcp_redis_resolved(ngx_resolver_ctx_t *ctx)
{
    ngx_uint_t             i;
    const char            *err;
    ngx_mcp_redis_conn_t  *conn;

    conn = ctx->data;
    err = NULL;

    if (ctx->state) {
        err = ngx_resolver_strerror(ctx->state);

    } else if (ctx->naddrs) {
        conn->naddrs = ngx_min(ctx->naddrs, NGX_MCP_REDIS_ADDRS);

        for (i = 0; i < conn->naddrs; i++) {
            conn->socklens[i] = ctx->addrs[i].socklen;
            ngx_memcpy(&conn->sockaddrs[i], ctx->addrs[i].sockaddr,
                       ctx->addrs[i].socklen);
            ngx_inet_set_port(&conn->sockaddrs[i].sockaddr,
                              conn->rd->conf->url.port);
        }
    }

    conn->resolving = NULL;
    ngx_resolve_name_done(ctx);

    /* without an answer the last addresses are used */

    if (conn->naddrs == 0) {
        ngx_mcp_redis_lost(conn, err ? err : "the name has no address", 0);
        return;
    }

    i = conn->addr++ % conn->naddrs;

    conn->peer.sockaddr = &conn->sockaddrs[i].sockaddr;
    conn->peer.socklen = conn->socklens[i];
    conn->peer.name = &conn->rd->conf->url.host;

    ngx_mcp_redis_connect_addr(conn);
}


static void
ngx_mcp_redis_connect_addr(ngx_mcp_redis_conn_t *conn)
{
    ngx_int_t               rc;
    ngx_connection_t       *c;
    ngx_peer_connection_t  *pc;

    pc = &conn->peer;

    pc->get = ngx_event_get_peer;
    pc->log = &conn->rd->quiet;
    pc->log_error = NGX_ERROR_INFO;
    pc->so_keepalive = 1;
    pc->connection = NULL;

    ngx_set_socket_errno(0);

    rc = ngx_event_connect_peer(pc);

    if (rc == NGX_ERROR || rc == NGX_BUSY || rc == NGX_DECLINED) {
        pc->connection = NULL;
        ngx_mcp_redis_lost(conn, "connecting failed", ngx_socket_errno);
        return;
    }

    c = pc->connection;
    c->data = conn;

    c->pool = ngx_create_pool(1024, conn->rd->log);
    if (c->pool == NULL) {
        ngx_mcp_redis_lost(conn, "no memory", 0);
        return;
    }

    /* closed by ngx_close_idle_connections() if the process exits */

    c->idle = 1;

    c->read->handler = ngx_mcp_redis_connect_handler;
    c->write->handler = ngx_mcp_redis_connect_handler;

    conn->state = NGX_MCP_REDIS_CONNECTING;
    ngx_add_timer(&conn->timer, conn->rd->conf->connect_timeout);

    if (rc == NGX_OK) {
        ngx_mcp_redis_connected(conn);
    }
}


static void
ngx_mcp_redis_connect_handler(ngx_event_t *ev)
{
    int                    err;
    socklen_t              len;
    ngx_connection_t      *c;
    ngx_mcp_redis_conn_t  *conn;

    c = ev->data;
    conn = c->data;

    if (c->close) {
        c->close = 0;
        ngx_mcp_redis_idle(conn);
        return;
    }

    err = 0;
    len = sizeof(int);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, (void *) &err, &len) == -1) {
        err = ngx_socket_errno;
    }

    if (err) {
        ngx_mcp_redis_lost(conn, "connecting failed", err);
        return;
    }

    if (ev->write) {
        ngx_mcp_redis_connected(conn);
    }
}


static void
ngx_mcp_redis_connected(ngx_mcp_redis_conn_t *conn)
{
    ngx_connection_t  *c;

    c = conn->peer.connection;

    /* a failure is logged, and harmless */

    if (c->tcp_nodelay == NGX_TCP_NODELAY_UNSET) {
        (void) ngx_tcp_nodelay(c);
    }

    c->log = conn->rd->log;
    c->read->log = c->log;
    c->write->log = c->log;

#if (NGX_SSL)

    if (conn->rd->conf->tls) {
        ngx_mcp_redis_tls(conn);
        return;
    }

#endif

    ngx_mcp_redis_established(conn);
}


/* the bytes of the protocol can be exchanged */

static void
ngx_mcp_redis_established(ngx_mcp_redis_conn_t *conn)
{
    ngx_connection_t  *c;

    c = conn->peer.connection;

    conn->reader = redisReaderCreate();
    conn->input = ngx_palloc(c->pool, NGX_MCP_REDIS_INPUT);
    conn->output = ngx_create_temp_buf(c->pool, NGX_MCP_REDIS_OUTPUT);

    if (conn->reader == NULL || conn->input == NULL || conn->output == NULL) {
        ngx_mcp_redis_lost(conn, "no memory", 0);
        return;
    }

    c->idle = 1;
    c->read->handler = ngx_mcp_redis_read_handler;
    c->write->handler = ngx_mcp_redis_write_handler;

    /* a server that executes a slow command needs more time than to connect */

    conn->state = NGX_MCP_REDIS_HANDSHAKE;
    ngx_add_timer(&conn->timer, ngx_max(conn->rd->conf->connect_timeout,
                                        conn->rd->conf->timeout / 2));

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        ngx_mcp_redis_lost(conn, "reading failed", 0);
        return;
    }

    /* there may be input already: an error, or what came with TLS */

    if (c->read->ready) {
        ngx_post_event(c->read, &ngx_posted_events);
    }

    ngx_mcp_redis_handshake(conn);
}


static void
ngx_mcp_redis_write_handler(ngx_event_t *wev)
{
    ngx_connection_t  *c;

    c = wev->data;

    ngx_mcp_redis_flush(c->data);
}


/* frees the socket and all that belongs to it; calls no handlers */

void
ngx_mcp_redis_disconnect(ngx_mcp_redis_conn_t *conn)
{
    ngx_pool_t        *pool;
    ngx_connection_t  *c;

    conn->incarnation++;

    if (conn->resolving) {
        ngx_resolve_name_done(conn->resolving);
        conn->resolving = NULL;
    }

    if (conn->reader) {
        redisReaderFree(conn->reader);
        conn->reader = NULL;
    }

    conn->input = NULL;
    conn->output = NULL;
    conn->scripts = NULL;
    conn->subscriptions = NULL;

    c = conn->peer.connection;

    if (c == NULL) {
        return;
    }

    conn->peer.connection = NULL;

#if (NGX_SSL)

    if (c->ssl) {
        c->ssl->no_wait_shutdown = 1;
        (void) ngx_ssl_shutdown(c);
    }

#endif

    pool = c->pool;

    ngx_close_connection(c);

    if (pool) {
        ngx_destroy_pool(pool);
    }
}


#if (NGX_SSL)


static void
ngx_mcp_redis_tls(ngx_mcp_redis_conn_t *conn)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    c = conn->peer.connection;

    if (ngx_ssl_create_connection(conn->rd->conf->ssl, c, NGX_SSL_CLIENT)
        != NGX_OK
        || ngx_mcp_redis_tls_name(conn, c) != NGX_OK)
    {
        ngx_mcp_redis_lost(conn, "TLS cannot be set up", 0);
        return;
    }

    /* its handlers do not look at c->close */

    c->idle = 0;

    rc = ngx_ssl_handshake(c);

    if (rc == NGX_AGAIN) {
        c->ssl->handler = ngx_mcp_redis_tls_handler;
        return;
    }

    ngx_mcp_redis_tls_handler(c);
}


/* tells the server which name is expected; addresses are not sent */

static ngx_int_t
ngx_mcp_redis_tls_name(ngx_mcp_redis_conn_t *conn, ngx_connection_t *c)
{
    u_char     *p;
    ngx_str_t  *name;

    name = &conn->rd->conf->tls_name;

    if (name->len == 0 || name->data[0] == '['
        || ngx_inet_addr(name->data, name->len) != INADDR_NONE)
    {
        return NGX_OK;
    }

    p = ngx_pnalloc(c->pool, name->len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(p, name->data, name->len + 1);

    if (SSL_set_tlsext_host_name(c->ssl->connection, (char *) p) == 0) {
        ngx_ssl_error(NGX_LOG_ERR, c->log, 0,
                      "SSL_set_tlsext_host_name(\"%s\") failed", p);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_mcp_redis_tls_handler(ngx_connection_t *c)
{
    long                   rc;
    ngx_mcp_redis_conf_t  *conf;
    ngx_mcp_redis_conn_t  *conn;

    conn = c->data;
    conf = conn->rd->conf;

    if (!c->ssl->handshaked) {
        ngx_mcp_redis_lost(conn, "the TLS handshake failed", 0);
        return;
    }

    if (conf->tls_verify) {
        rc = SSL_get_verify_result(c->ssl->connection);

        if (rc != X509_V_OK) {
            ngx_mcp_redis_refuse(conn, "the TLS certificate is not trusted "
                                 "(%l: %s)", rc,
                                 X509_verify_cert_error_string(rc));
            return;
        }

        if (!ngx_mcp_redis_tls_matches(c, &conf->tls_name)) {
            ngx_mcp_redis_refuse(conn, "the TLS certificate does not match "
                                 "\"%V\"", &conf->tls_name);
            return;
        }
    }

    ngx_mcp_redis_established(conn);
}


/* nginx itself compares names only, not addresses */

static ngx_uint_t
ngx_mcp_redis_tls_matches(ngx_connection_t *c, ngx_str_t *name)
{
    int         rc;
    X509       *cert;
    u_char      text[NGX_SOCKADDR_STRLEN];
    ngx_str_t   addr;

    addr = *name;

    if (addr.len > 2 && addr.data[0] == '[') {
        addr.data++;
        addr.len -= 2;

    } else if (ngx_inet_addr(addr.data, addr.len) == INADDR_NONE) {
        return ngx_ssl_check_host(c, name) == NGX_OK;
    }

    if (addr.len >= sizeof(text)) {
        return 0;
    }

    (void) ngx_cpystrn(text, addr.data, addr.len + 1);

    cert = SSL_get_peer_certificate(c->ssl->connection);
    if (cert == NULL) {
        return 0;
    }

    rc = X509_check_ip_asc(cert, (char *) text, 0);
    X509_free(cert);

    return rc == 1;
}


#endif


#endif /* NGX_MCP_REDIS */
