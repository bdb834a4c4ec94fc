
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Commands: their format, the queues, writing them, and their time limits.
 */


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_REDIS)


#include "ngx_mcp_redis_conn_types.h"


static ngx_mcp_redis_cmd_t *ngx_mcp_redis_next(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_fill(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_expire_sent(ngx_mcp_redis_conn_t *conn,
    ngx_queue_t *expired);
static void ngx_mcp_redis_expire(ngx_queue_t *queue, ngx_queue_t *expired);
static ngx_msec_t ngx_mcp_redis_interval(ngx_mcp_redis_conn_t *conn);


#define ngx_mcp_redis_is_over(until)                                          \
    ((ngx_msec_int_t) (ngx_current_msec - (until)) >= 0)


/* "*ARGUMENTS", then "$LENGTH" and the bytes of each argument */

static ngx_int_t
ngx_mcp_redis_format_parts(ngx_pool_t *pool, ngx_mcp_redis_cmd_t *cmd,
    ngx_str_t *first, ngx_uint_t n, ngx_str_t *argv, ngx_uint_t argc)
{
    size_t       len;
    u_char      *p;
    ngx_str_t   *arg;
    ngx_uint_t   i;

    len = NGX_INT_T_LEN + 3;

    for (i = 0; i < n + argc; i++) {
        arg = i < n ? &first[i] : &argv[i - n];
        len += NGX_SIZE_T_LEN + 5 + arg->len;
    }

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    cmd->text.data = p;
    p = ngx_sprintf(p, "*%ui" CRLF, n + argc);

    for (i = 0; i < n + argc; i++) {
        arg = i < n ? &first[i] : &argv[i - n];
        p = ngx_sprintf(p, "$%uz" CRLF, arg->len);

        if (arg->len) {
            p = ngx_cpymem(p, arg->data, arg->len);
        }

        *p++ = CR;
        *p++ = LF;
    }

    cmd->text.len = p - cmd->text.data;

    return NGX_OK;
}


ngx_int_t
ngx_mcp_redis_format(ngx_pool_t *pool, ngx_mcp_redis_cmd_t *cmd,
    ngx_str_t *argv, ngx_uint_t argc)
{
    cmd->script = 0;

    return ngx_mcp_redis_format_parts(pool, cmd, NULL, 0, argv, argc);
}


ngx_int_t
ngx_mcp_redis_format_script(ngx_pool_t *pool, ngx_mcp_redis_cmd_t *cmd,
    ngx_uint_t script, ngx_str_t *argv, ngx_uint_t argc)
{
    ngx_str_t  first[2];

    ngx_str_set(&first[0], "EVALSHA");

    first[1].data = ngx_mcp_redis_scripts[script].sha1;
    first[1].len = sizeof(ngx_mcp_redis_scripts[script].sha1);

    cmd->script = script + 1;

    return ngx_mcp_redis_format_parts(pool, cmd, first, 2, argv, argc);
}


ngx_int_t
ngx_mcp_redis_send(ngx_mcp_redis_t *rd, ngx_uint_t number,
    ngx_mcp_redis_cmd_t *cmd)
{
    ngx_mcp_redis_conn_t  *conn;

    if (rd->closed || rd->refused || number >= NGX_MCP_REDIS_COMMANDS) {
        return NGX_DECLINED;
    }

    /* a single command may be longer: it could never be sent otherwise */

    if (rd->in_flight >= NGX_MCP_REDIS_MAX_COMMANDS
        || (rd->in_flight
            && cmd->text.len + rd->in_flight_bytes > NGX_MCP_REDIS_MAX_BYTES))
    {
        return NGX_DECLINED;
    }

    conn = rd->conns[number];

    if (conn->wanted && conn->state != NGX_MCP_REDIS_UP
        && ngx_mcp_redis_is_over(conn->away + rd->conf->timeout))
    {
        return NGX_DECLINED;
    }

    cmd->until = ngx_current_msec + rd->conf->timeout;
    cmd->sent = 0;
    cmd->own = 0;

    ngx_queue_insert_tail(&conn->waiting, &cmd->queue);

    conn->pending++;
    rd->in_flight++;
    rd->in_flight_bytes += cmd->text.len;

    if (!conn->check.timer_set) {
        ngx_add_timer(&conn->check, ngx_mcp_redis_interval(conn));
    }

    if (conn->state == NGX_MCP_REDIS_UP) {
        ngx_post_event(&conn->flush, &ngx_posted_events);

    } else if (!conn->wanted) {
        ngx_mcp_redis_begin(conn);
    }

    return NGX_OK;
}


/* ends a command of a caller, which is in no queue any more */

void
ngx_mcp_redis_done(ngx_mcp_redis_conn_t *conn, ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply)
{
    conn->pending--;
    conn->rd->in_flight--;
    conn->rd->in_flight_bytes -= cmd->text.len;

    if (conn->pending == 0 && ngx_exiting && conn->check.timer_set) {
        ngx_del_timer(&conn->check);
    }

    cmd->handler(cmd, reply);
}


/* the next command to write */

static ngx_mcp_redis_cmd_t *
ngx_mcp_redis_next(ngx_mcp_redis_conn_t *conn)
{
    ngx_queue_t          *q;
    ngx_mcp_redis_cmd_t  *cmd;

    if (!ngx_queue_empty(&conn->own)) {
        q = ngx_queue_head(&conn->own);

    } else if (conn->state == NGX_MCP_REDIS_UP
               && !ngx_queue_empty(&conn->waiting))
    {
        q = ngx_queue_head(&conn->waiting);

    } else {
        return NULL;
    }

    cmd = ngx_queue_data(q, ngx_mcp_redis_cmd_t, queue);
    ngx_queue_remove(q);

    if (ngx_queue_empty(&conn->sent)) {
        conn->active = ngx_current_msec;
    }

    ngx_queue_insert_tail(&conn->sent, q);

    if (cmd->sent && !cmd->own) {
        conn->rd->resent++;
    }

    cmd->sent = 1;

    return cmd;
}


/* copies commands to the output, as many as there is room for */

static void
ngx_mcp_redis_fill(ngx_mcp_redis_conn_t *conn)
{
    size_t                n;
    ngx_buf_t            *b;
    ngx_mcp_redis_cmd_t  *cmd;

    b = conn->output;

    if (b->pos == b->last) {
        b->pos = b->start;
        b->last = b->start;
    }

    while (b->last < b->end) {

        if (conn->partial == NULL) {
            conn->partial = ngx_mcp_redis_next(conn);
            conn->copied = 0;

            if (conn->partial == NULL) {
                return;
            }
        }

        cmd = conn->partial;
        n = ngx_min((size_t) (b->end - b->last), cmd->text.len - conn->copied);

        b->last = ngx_cpymem(b->last, cmd->text.data + conn->copied, n);
        conn->copied += n;

        if (conn->copied == cmd->text.len) {
            conn->partial = NULL;
        }
    }
}


void
ngx_mcp_redis_flush(ngx_mcp_redis_conn_t *conn)
{
    ssize_t            n;
    ngx_buf_t         *b;
    ngx_connection_t  *c;

    if (conn->state < NGX_MCP_REDIS_HANDSHAKE) {
        return;
    }

    b = conn->output;
    c = conn->peer.connection;

    for ( ;; ) {
        ngx_mcp_redis_fill(conn);

        if (b->pos == b->last) {
            break;
        }

        n = c->send(c, b->pos, b->last - b->pos);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n <= 0) {
            ngx_mcp_redis_lost(conn, "writing failed", ngx_socket_errno);
            return;
        }

        b->pos += n;
    }

    if (ngx_handle_write_event(c->write, 0) != NGX_OK) {
        ngx_mcp_redis_lost(conn, "writing failed", 0);
    }
}


void
ngx_mcp_redis_flush_handler(ngx_event_t *ev)
{
    ngx_mcp_redis_flush(ev->data);
}


/* sends a command again, after a while */

void
ngx_mcp_redis_delay(ngx_mcp_redis_conn_t *conn, ngx_mcp_redis_cmd_t *cmd)
{
    ngx_queue_insert_tail(&conn->delayed, &cmd->queue);

    if (!conn->delay.timer_set) {
        ngx_add_timer(&conn->delay, NGX_MCP_REDIS_DELAY);
    }
}


void
ngx_mcp_redis_delay_handler(ngx_event_t *ev)
{
    ngx_queue_t           *q;
    ngx_mcp_redis_conn_t  *conn;

    conn = ev->data;

    /* these are older than all that wait */

    while (!ngx_queue_empty(&conn->delayed)) {
        q = ngx_queue_last(&conn->delayed);
        ngx_queue_remove(q);
        ngx_queue_insert_head(&conn->waiting, q);
    }

    if (conn->state == NGX_MCP_REDIS_UP) {
        ngx_mcp_redis_flush(conn);
    }
}


/* after the connection is lost: commands without a reply are sent again */

void
ngx_mcp_redis_requeue(ngx_mcp_redis_conn_t *conn)
{
    ngx_queue_t          *q;
    ngx_mcp_redis_cmd_t  *cmd;

    while (!ngx_queue_empty(&conn->sent)) {
        q = ngx_queue_last(&conn->sent);
        cmd = ngx_queue_data(q, ngx_mcp_redis_cmd_t, queue);
        ngx_queue_remove(q);

        if (!cmd->own) {
            ngx_queue_insert_head(&conn->waiting, q);

        } else if (cmd->handler == NULL) {
            ngx_free(cmd);
        }
    }

    ngx_queue_init(&conn->own);

    conn->partial = NULL;
    conn->loading = 0;
}


/* runs regularly while commands are pending */

void
ngx_mcp_redis_check_handler(ngx_event_t *ev)
{
    ngx_queue_t            expired, *q;
    ngx_mcp_redis_cmd_t   *cmd;
    ngx_mcp_redis_conn_t  *conn;

    conn = ev->data;

    if (conn->state == NGX_MCP_REDIS_UP && !ngx_queue_empty(&conn->sent)
        && ngx_mcp_redis_is_over(conn->active + conn->rd->conf->timeout / 2))
    {
        ngx_mcp_redis_lost(conn, "the server does not reply", 0);
    }

    ngx_queue_init(&expired);

    ngx_mcp_redis_expire_sent(conn, &expired);
    ngx_mcp_redis_expire(&conn->waiting, &expired);
    ngx_mcp_redis_expire(&conn->delayed, &expired);

    while (!ngx_queue_empty(&expired)) {
        q = ngx_queue_head(&expired);
        cmd = ngx_queue_data(q, ngx_mcp_redis_cmd_t, queue);
        ngx_queue_remove(q);

        ngx_mcp_redis_done(conn, cmd, NULL);
    }

    if (conn->pending && !conn->check.timer_set) {
        ngx_add_timer(&conn->check, ngx_mcp_redis_interval(conn));
    }

    ngx_mcp_redis_idle(conn);
}


/*
 * The reply of an expired command may still arrive: a placeholder receives it.
 * A command that is not written completely cannot be replaced.
 */

static void
ngx_mcp_redis_expire_sent(ngx_mcp_redis_conn_t *conn, ngx_queue_t *expired)
{
    ngx_queue_t          *q, *next;
    ngx_mcp_redis_cmd_t  *cmd, *none;

    for (q = ngx_queue_head(&conn->sent);
         q != ngx_queue_sentinel(&conn->sent);
         q = next)
    {
        next = ngx_queue_next(q);
        cmd = ngx_queue_data(q, ngx_mcp_redis_cmd_t, queue);

        if (cmd->own || !ngx_mcp_redis_is_over(cmd->until)) {
            continue;
        }

        none = NULL;

        if (cmd != conn->partial) {
            none = ngx_calloc(sizeof(ngx_mcp_redis_cmd_t), conn->rd->log);
        }

        if (none == NULL) {
            ngx_mcp_redis_lost(conn, "the server does not reply", 0);
            return;
        }

        none->own = 1;

        ngx_queue_insert_after(q, &none->queue);
        ngx_queue_remove(q);
        ngx_queue_insert_tail(expired, q);
    }
}


static void
ngx_mcp_redis_expire(ngx_queue_t *queue, ngx_queue_t *expired)
{
    ngx_queue_t          *q, *next;
    ngx_mcp_redis_cmd_t  *cmd;

    for (q = ngx_queue_head(queue); q != ngx_queue_sentinel(queue); q = next) {
        next = ngx_queue_next(q);
        cmd = ngx_queue_data(q, ngx_mcp_redis_cmd_t, queue);

        if (ngx_mcp_redis_is_over(cmd->until)) {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(expired, q);
        }
    }
}


static ngx_msec_t
ngx_mcp_redis_interval(ngx_mcp_redis_conn_t *conn)
{
    return ngx_max(ngx_min(conn->rd->conf->timeout / 20, 200), 10);
}


#endif /* NGX_MCP_REDIS */
