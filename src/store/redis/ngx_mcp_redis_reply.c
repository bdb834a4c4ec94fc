
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Input of a connection: replies, which go to their commands, and messages.
 */


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_REDIS)


#include "ngx_mcp_redis_conn_types.h"


static ngx_int_t ngx_mcp_redis_replies(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_reply(ngx_mcp_redis_conn_t *conn,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_message(ngx_mcp_redis_conn_t *conn,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_again(ngx_mcp_redis_conn_t *conn,
    ngx_mcp_redis_cmd_t *cmd, redisReply *reply);
static ngx_uint_t ngx_mcp_redis_is_error(redisReply *reply, ngx_str_t *codes);
static void ngx_mcp_redis_read_close(ngx_connection_t *c);


/* the server cannot execute a command now, and has not done so */

static ngx_str_t  ngx_mcp_redis_temporary[] = {
    ngx_string("LOADING "),
    ngx_string("BUSY "),
    ngx_string("MASTERDOWN "),
    ngx_string("TRYAGAIN "),
    ngx_string("NOREPLICAS "),
    ngx_string("MISCONF "),
    ngx_string("CLUSTERDOWN "),
    ngx_string("ERR max number of clients "),
    ngx_null_string
};

/* this connection will not do; another one may */

static ngx_str_t  ngx_mcp_redis_stale[] = {
    ngx_string("READONLY "),
    ngx_string("NOAUTH "),
    ngx_string("WRONGPASS "),
    ngx_null_string
};

static ngx_str_t  ngx_mcp_redis_noscript[] = {
    ngx_string("NOSCRIPT "),
    ngx_null_string
};


void
ngx_mcp_redis_read_handler(ngx_event_t *rev)
{
    ssize_t                n;
    ngx_connection_t      *c;
    ngx_mcp_redis_conn_t  *conn;

    c = rev->data;
    conn = c->data;

    if (c->close) {
        ngx_mcp_redis_read_close(c);
        return;
    }

    for ( ;; ) {
        n = c->recv(c, conn->input, NGX_MCP_REDIS_INPUT);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n == 0) {
            ngx_mcp_redis_lost(conn, "the server closed the connection", 0);
            return;
        }

        if (n < 0) {
            ngx_mcp_redis_lost(conn, "reading failed", ngx_socket_errno);
            return;
        }

        conn->active = ngx_current_msec;

        if (redisReaderFeed(conn->reader, (char *) conn->input, n)
            != REDIS_OK
            || conn->reader->len - conn->reader->pos > NGX_MCP_REDIS_MAX_REPLY)
        {
            ngx_mcp_redis_lost(conn, "a reply is too large", 0);
            return;
        }

        if (ngx_mcp_redis_replies(conn) != NGX_OK) {
            return;
        }
    }

    if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        ngx_mcp_redis_lost(conn, "reading failed", 0);
        return;
    }

    ngx_mcp_redis_idle(conn);
}


/* the process exits (see ngx_close_idle_connections()), now or soon */

static void
ngx_mcp_redis_read_close(ngx_connection_t *c)
{
    ngx_mcp_redis_conn_t  *conn;

    conn = c->data;
    c->close = 0;

    /* the time of worker_shutdown_timeout is over */

    if (c->error) {
        ngx_mcp_redis_close(conn->rd);
        return;
    }

    ngx_mcp_redis_idle(conn);
}


/* NGX_DONE: the connection was closed meanwhile */

static ngx_int_t
ngx_mcp_redis_replies(ngx_mcp_redis_conn_t *conn)
{
    void        *reply;
    ngx_uint_t   incarnation;

    incarnation = conn->incarnation;

    for ( ;; ) {
        reply = NULL;

        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK) {
            ngx_mcp_redis_lost(conn, conn->reader->errstr, 0);
            return NGX_DONE;
        }

        if (reply == NULL) {
            return NGX_OK;
        }

        ngx_mcp_redis_reply(conn, reply);

        freeReplyObject(reply);

        if (conn->incarnation != incarnation) {
            return NGX_DONE;
        }
    }
}


static void
ngx_mcp_redis_reply(ngx_mcp_redis_conn_t *conn, redisReply *reply)
{
    ngx_queue_t          *q;
    ngx_mcp_redis_cmd_t  *cmd;

    if (conn->number == NGX_MCP_REDIS_MESSAGES
        && ngx_mcp_redis_message(conn, reply) == NGX_OK)
    {
        return;
    }

    if (ngx_queue_empty(&conn->sent)) {

        /* for instance, there are too many clients */

        ngx_mcp_redis_lost(conn, reply->type == REDIS_REPLY_ERROR
                                 ? reply->str
                                 : "the server sent an unexpected reply", 0);
        return;
    }

    q = ngx_queue_head(&conn->sent);
    cmd = ngx_queue_data(q, ngx_mcp_redis_cmd_t, queue);

    if (cmd == conn->partial) {
        ngx_mcp_redis_lost(conn, reply->type == REDIS_REPLY_ERROR
                                 ? reply->str
                                 : "the server sent an unexpected reply", 0);
        return;
    }

    if (!cmd->own && reply->type == REDIS_REPLY_ERROR
        && ngx_mcp_redis_again(conn, cmd, reply) == NGX_OK)
    {
        return;
    }

    ngx_queue_remove(q);

    if (!cmd->own) {
        ngx_mcp_redis_done(conn, cmd, reply);

    } else if (cmd->handler) {
        cmd->handler(cmd, reply);

    } else {
        ngx_free(cmd);
    }
}


/* NGX_DECLINED: not a message */

static ngx_int_t
ngx_mcp_redis_message(ngx_mcp_redis_conn_t *conn, redisReply *reply)
{
    ngx_uint_t    i;
    ngx_str_t     channel, text;
    redisReply  **part;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3) {
        return NGX_DECLINED;
    }

    part = reply->element;

    for (i = 0; i < 2; i++) {
        if (part[i]->type != REDIS_REPLY_STRING) {
            return NGX_DECLINED;
        }
    }

    if (ngx_strcmp(part[0]->str, "sunsubscribe") == 0) {
        ngx_mcp_redis_resubscribe(conn, (u_char *) part[1]->str, part[1]->len);
        return NGX_OK;
    }

    if (ngx_strcmp(part[0]->str, "smessage") != 0
        || part[2]->type != REDIS_REPLY_STRING)
    {
        return NGX_DECLINED;
    }

    channel.data = (u_char *) part[1]->str;
    channel.len = part[1]->len;
    text.data = (u_char *) part[2]->str;
    text.len = part[2]->len;

    conn->rd->hooks->message(conn->rd->data, &channel, &text);

    return NGX_OK;
}


/* NGX_OK: the command, the first of those sent, will be sent again */

static ngx_int_t
ngx_mcp_redis_again(ngx_mcp_redis_conn_t *conn, ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply)
{
    if (ngx_mcp_redis_is_error(reply, ngx_mcp_redis_stale)) {
        ngx_mcp_redis_lost(conn, reply->str, 0);
        return NGX_OK;
    }

    if (cmd->script && ngx_mcp_redis_is_error(reply, ngx_mcp_redis_noscript)) {
        ngx_queue_remove(&cmd->queue);
        ngx_queue_insert_tail(&conn->waiting, &cmd->queue);

        ngx_mcp_redis_load_scripts(conn);
        ngx_post_event(&conn->flush, &ngx_posted_events);

        return NGX_OK;
    }

    if (ngx_mcp_redis_is_temporary(reply)) {
        ngx_queue_remove(&cmd->queue);
        ngx_mcp_redis_delay(conn, cmd);

        return NGX_OK;
    }

    return NGX_DECLINED;
}


ngx_uint_t
ngx_mcp_redis_is_temporary(redisReply *reply)
{
    return ngx_mcp_redis_is_error(reply, ngx_mcp_redis_temporary);
}


static ngx_uint_t
ngx_mcp_redis_is_error(redisReply *reply, ngx_str_t *codes)
{
    for ( /* void */ ; codes->len; codes++) {
        if (ngx_strncmp(reply->str, codes->data, codes->len) == 0) {
            return 1;
        }
    }

    return 0;
}


#endif /* NGX_MCP_REDIS */
