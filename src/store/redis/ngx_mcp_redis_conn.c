
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The connections of a process: when they are opened, lost, opened again and
 * closed, and what is logged about it.
 */


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_REDIS)


#include <ngx_sha1.h>

#include "ngx_mcp_redis_conn_types.h"


static ngx_mcp_redis_conn_t *ngx_mcp_redis_create(ngx_cycle_t *cycle,
    ngx_mcp_redis_t *rd, ngx_uint_t number);
static void ngx_mcp_redis_hash_scripts(void);
static void ngx_mcp_redis_timer_handler(ngx_event_t *ev);
static void ngx_mcp_redis_fail(ngx_mcp_redis_t *rd, ngx_uint_t level,
    u_char *text, size_t len);
static void ngx_mcp_redis_end(ngx_mcp_redis_conn_t *conn, ngx_msec_t delay);
static void ngx_mcp_redis_cancel(ngx_mcp_redis_conn_t *conn,
    ngx_queue_t *queue);


ngx_mcp_redis_t *
ngx_mcp_redis_init(ngx_cycle_t *cycle, ngx_mcp_redis_conf_t *conf,
    ngx_mcp_redis_hooks_t *hooks, void *data)
{
    ngx_uint_t        i;
    ngx_mcp_redis_t  *rd;

    ngx_mcp_redis_hash_scripts();

    rd = ngx_pcalloc(cycle->pool, sizeof(ngx_mcp_redis_t));
    if (rd == NULL) {
        return NULL;
    }

    rd->conf = conf;
    rd->hooks = hooks;
    rd->data = data;
    rd->log = cycle->log;

    rd->password.data = ngx_pnalloc(cycle->pool, NGX_MCP_REDIS_PASSWORD);
    if (rd->password.data == NULL) {
        return NULL;
    }

    if (conf->password.len) {
        ngx_memcpy(rd->password.data, conf->password.data, conf->password.len);
        rd->password.len = conf->password.len;
    }

    /*
     * nginx logs every attempt to connect that fails; here, the same error is
     * logged once
     */

    rd->quiet = *cycle->log;

    if (!(rd->quiet.log_level & NGX_LOG_DEBUG_ALL)) {
        rd->quiet.log_level = NGX_LOG_ALERT;
    }

    for (i = 0; i < NGX_MCP_REDIS_CONNS; i++) {
        rd->conns[i] = ngx_mcp_redis_create(cycle, rd, i);

        if (rd->conns[i] == NULL) {
            return NULL;
        }
    }

    return rd;
}


static ngx_mcp_redis_conn_t *
ngx_mcp_redis_create(ngx_cycle_t *cycle, ngx_mcp_redis_t *rd,
    ngx_uint_t number)
{
    ngx_mcp_redis_conn_t  *conn;

    conn = ngx_pcalloc(cycle->pool, sizeof(ngx_mcp_redis_conn_t));
    if (conn == NULL) {
        return NULL;
    }

    conn->ident = -1;
    conn->rd = rd;
    conn->number = number;
    conn->backoff = rd->conf->retry;

    ngx_queue_init(&conn->own);
    ngx_queue_init(&conn->waiting);
    ngx_queue_init(&conn->sent);
    ngx_queue_init(&conn->delayed);

    conn->flush.handler = ngx_mcp_redis_flush_handler;
    conn->flush.data = conn;
    conn->flush.log = rd->log;

    /* commands that are pending keep the process alive by "check" alone */

    conn->timer.handler = ngx_mcp_redis_timer_handler;
    conn->timer.data = conn;
    conn->timer.log = rd->log;
    conn->timer.cancelable = 1;

    conn->delay.handler = ngx_mcp_redis_delay_handler;
    conn->delay.data = conn;
    conn->delay.log = rd->log;
    conn->delay.cancelable = 1;

    conn->check.handler = ngx_mcp_redis_check_handler;
    conn->check.data = conn;
    conn->check.log = rd->log;

    return conn;
}


/* EVALSHA needs the hash before the server has replied to SCRIPT LOAD */

static void
ngx_mcp_redis_hash_scripts(void)
{
    u_char                   hash[20];
    ngx_uint_t               i;
    ngx_sha1_t               sha1;
    ngx_mcp_redis_script_t  *script;

    for (i = 0; i < NGX_MCP_REDIS_SCRIPTS; i++) {
        script = &ngx_mcp_redis_scripts[i];

        ngx_sha1_init(&sha1);
        ngx_sha1_update(&sha1, script->text.data, script->text.len);
        ngx_sha1_final(hash, &sha1);

        (void) ngx_hex_dump(script->sha1, hash, sizeof(hash));
    }
}


void
ngx_mcp_redis_open(ngx_mcp_redis_t *rd, ngx_uint_t number)
{
    if (!rd->closed && !rd->conns[number]->wanted) {
        ngx_mcp_redis_begin(rd->conns[number]);
    }
}


ngx_uint_t
ngx_mcp_redis_is_up(ngx_mcp_redis_t *rd, ngx_uint_t number)
{
    return rd->conns[number]->state == NGX_MCP_REDIS_UP;
}


void
ngx_mcp_redis_subscribe(ngx_mcp_redis_t *rd, ngx_str_t *channels,
    ngx_uint_t n)
{
    ngx_mcp_redis_conn_t  *conn;

    rd->channels = channels;
    rd->nchannels = ngx_min(n, NGX_MCP_REDIS_MAX_CHANNELS);

    conn = rd->conns[NGX_MCP_REDIS_MESSAGES];

    /* on a new connection: the server confirms exactly these */

    if (conn->wanted && !rd->closed) {
        ngx_mcp_redis_shut(conn);
        ngx_mcp_redis_begin(conn);
    }
}


void
ngx_mcp_redis_begin(ngx_mcp_redis_conn_t *conn)
{
    if (!conn->wanted) {
        conn->wanted = 1;
        conn->away = ngx_current_msec;
    }

    ngx_mcp_redis_connect(conn);
}


/* the time of a state is over, or it is time to connect again */

static void
ngx_mcp_redis_timer_handler(ngx_event_t *ev)
{
    ngx_mcp_redis_conn_t  *conn;

    conn = ev->data;

    if (conn->state == NGX_MCP_REDIS_CLOSED) {

        if (ngx_exiting && conn->pending == 0) {
            ngx_mcp_redis_shut(conn);
            return;
        }

        ngx_mcp_redis_begin(conn);
        return;
    }

    ngx_mcp_redis_lost(conn, conn->state < NGX_MCP_REDIS_HANDSHAKE
                             ? "connecting timed out"
                             : "the server does not reply to a new connection",
                       0);
}


/* the handshake is done, and channels are subscribed to */

void
ngx_mcp_redis_ready(ngx_mcp_redis_conn_t *conn)
{
    ngx_uint_t        first;
    ngx_mcp_redis_t  *rd;

    rd = conn->rd;

    first = !rd->known
            || ngx_memcmp(rd->server.run_id, conn->server.run_id,
                          sizeof(rd->server.run_id))
               != 0;

    rd->known = 1;
    rd->server = conn->server;

    if (conn->timer.timer_set) {
        ngx_del_timer(&conn->timer);
    }

    conn->state = NGX_MCP_REDIS_UP;
    conn->backoff = rd->conf->retry;

    if (conn->was_up) {
        rd->reconnects++;
    }

    conn->was_up = 1;

    if (rd->failing) {
        rd->failing = 0;
        ngx_log_error(NGX_LOG_NOTICE, rd->log, 0,
                      "redis \"%V\": connected", &rd->conf->name);
    }

    ngx_post_event(&conn->flush, &ngx_posted_events);

    rd->hooks->up(rd->data, conn->number, first);
}


/* the connection failed; it is tried again */

void
ngx_mcp_redis_lost(ngx_mcp_redis_conn_t *conn, const char *what,
    ngx_err_t err)
{
    u_char      *p, *last, text[256];
    ngx_uint_t   up;
    ngx_msec_t   delay;

    last = text + sizeof(text) - 1;
    p = ngx_slprintf(text, last, "%s", what);

    if (err) {
        p = ngx_slprintf(p, last, " (%d: ", err);
        p = ngx_strerror(err, p, last - p);
        p = ngx_slprintf(p, last, ")");
    }

    ngx_mcp_redis_fail(conn->rd, NGX_LOG_WARN, text, p - text);

    up = (conn->state == NGX_MCP_REDIS_UP);

    /* a random part of it, so that machines do not come back all at once */

    delay = 1 + (ngx_msec_t) ngx_random() % conn->backoff;
    conn->backoff = ngx_min(conn->backoff * 2, conn->rd->conf->max_retry);

    ngx_mcp_redis_end(conn, delay);

    if (up) {
        conn->rd->hooks->down(conn->rd->data, conn->number);
    }
}


void
ngx_mcp_redis_renew(ngx_mcp_redis_t *rd, ngx_uint_t conn, const char *why)
{
    if (rd->conns[conn] && rd->conns[conn]->state == NGX_MCP_REDIS_UP) {
        ngx_mcp_redis_lost(rd->conns[conn], why, 0);
    }
}


/* the server must not be used, or does not accept this client */

void
ngx_mcp_redis_refuse(ngx_mcp_redis_conn_t *conn, const char *fmt, ...)
{
    u_char      *p, text[256];
    va_list      args;
    ngx_uint_t   up;

    va_start(args, fmt);
    p = ngx_vslprintf(text, text + sizeof(text) - 1, fmt, args);
    va_end(args);

    ngx_mcp_redis_fail(conn->rd, NGX_LOG_ERR, text, p - text);

    conn->rd->accepted = 0;
    conn->rd->refused = 1;

    up = (conn->state == NGX_MCP_REDIS_UP);

    ngx_mcp_redis_end(conn, NGX_MCP_REDIS_REFUSED);

    if (up) {
        conn->rd->hooks->down(conn->rd->data, conn->number);
    }
}


/* keeps the error for the status, and logs it unless it was the last one */

static void
ngx_mcp_redis_fail(ngx_mcp_redis_t *rd, ngx_uint_t level, u_char *text,
    size_t len)
{
    size_t  i;

    /* a part of it may be the text of the server */

    for (i = 0; i < len; i++) {
        if (text[i] < 0x20 || text[i] == 0x7f) {
            text[i] = ' ';
        }
    }

    text[len] = '\0';

    if (rd->failing && ngx_strcmp(rd->error, text) == 0) {
        return;
    }

    rd->failing = 1;
    (void) ngx_cpystrn(rd->error, text, sizeof(rd->error));

    ngx_log_error(level, rd->log, 0, "redis \"%V\" at %V: %s",
                  &rd->conf->name, &rd->conf->url.url, text);
}


/* closes the connection, to open it again after a while */

static void
ngx_mcp_redis_end(ngx_mcp_redis_conn_t *conn, ngx_msec_t delay)
{
    if (conn->state == NGX_MCP_REDIS_UP) {
        conn->away = ngx_current_msec;
    }

    ngx_mcp_redis_shut(conn);

    if (ngx_exiting && conn->pending == 0) {
        return;
    }

    conn->wanted = 1;

    ngx_add_timer(&conn->timer, delay);
}


/* closes the connection; a command opens it again */

void
ngx_mcp_redis_shut(ngx_mcp_redis_conn_t *conn)
{
    ngx_mcp_redis_requeue(conn);
    ngx_mcp_redis_disconnect(conn);

    if (conn->timer.timer_set) {
        ngx_del_timer(&conn->timer);
    }

    if (conn->flush.posted) {
        ngx_delete_posted_event(&conn->flush);
    }

    conn->state = NGX_MCP_REDIS_CLOSED;
    conn->wanted = 0;
}


/* a process that exits closes what it does not need any more */

void
ngx_mcp_redis_idle(ngx_mcp_redis_conn_t *conn)
{
    if (ngx_exiting && conn->pending == 0 && conn->wanted) {
        ngx_mcp_redis_shut(conn);
    }
}


void
ngx_mcp_redis_close(ngx_mcp_redis_t *rd)
{
    ngx_uint_t             i;
    ngx_mcp_redis_conn_t  *conn;

    rd->closed = 1;

    for (i = 0; i < NGX_MCP_REDIS_CONNS; i++) {
        conn = rd->conns[i];

        ngx_mcp_redis_shut(conn);

        if (conn->check.timer_set) {
            ngx_del_timer(&conn->check);
        }

        if (conn->delay.timer_set) {
            ngx_del_timer(&conn->delay);
        }
    }

    for (i = 0; i < NGX_MCP_REDIS_CONNS; i++) {
        ngx_mcp_redis_cancel(rd->conns[i], &rd->conns[i]->delayed);
        ngx_mcp_redis_cancel(rd->conns[i], &rd->conns[i]->waiting);
    }
}


static void
ngx_mcp_redis_cancel(ngx_mcp_redis_conn_t *conn, ngx_queue_t *queue)
{
    ngx_queue_t  *q;

    while (!ngx_queue_empty(queue)) {
        q = ngx_queue_head(queue);
        ngx_queue_remove(q);

        ngx_mcp_redis_done(conn,
                           ngx_queue_data(q, ngx_mcp_redis_cmd_t, queue),
                           NULL);
    }
}


#endif /* NGX_MCP_REDIS */
