
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * What a new connection sends before any command: who it is, questions about
 * the server, the scripts; and for messages, the channels.
 */


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_REDIS)


#include "ngx_mcp_redis_conn_types.h"


/* commands of a handshake besides the scripts */
#define NGX_MCP_REDIS_STEPS  7


static ngx_int_t ngx_mcp_redis_greet(ngx_mcp_redis_conn_t *conn,
    ngx_mcp_redis_cmd_t *cmd);
static ngx_int_t ngx_mcp_redis_add(ngx_mcp_redis_conn_t *conn,
    ngx_mcp_redis_cmd_t *cmd, ngx_mcp_redis_reply_pt handler, ngx_str_t *argv,
    ngx_uint_t argc);
static void ngx_mcp_redis_read_password(ngx_mcp_redis_t *rd);
static ngx_int_t ngx_mcp_redis_add_scripts(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_auth_reply(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_name_reply(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_step_reply(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_info_reply(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_script_reply(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_step_failed(ngx_mcp_redis_conn_t *conn,
    redisReply *reply);
static void ngx_mcp_redis_step(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_subscribe_all(ngx_mcp_redis_conn_t *conn);
static void ngx_mcp_redis_subscribe_reply(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);


static ngx_str_t  ngx_mcp_redis_sections[] = {
    ngx_string("server"),
    ngx_string("memory"),
    ngx_string("persistence"),
    ngx_string("replication")
};


/* all of it is written at once */

void
ngx_mcp_redis_handshake(ngx_mcp_redis_conn_t *conn)
{
    ngx_pool_t           *pool;
    ngx_mcp_redis_cmd_t  *cmds;

    pool = conn->peer.connection->pool;

    conn->steps = 0;
    conn->replica = 0;
    conn->server_loading = 0;
    ngx_memzero(&conn->server, sizeof(ngx_mcp_redis_server_t));

    cmds = ngx_pcalloc(pool, (NGX_MCP_REDIS_STEPS + NGX_MCP_REDIS_SCRIPTS)
                             * sizeof(ngx_mcp_redis_cmd_t));

    if (cmds == NULL) {
        ngx_mcp_redis_lost(conn, "no memory", 0);
        return;
    }

    conn->scripts = cmds + NGX_MCP_REDIS_STEPS;

    if (ngx_mcp_redis_greet(conn, cmds) != NGX_OK
        || ngx_mcp_redis_add_scripts(conn) != NGX_OK)
    {
        ngx_mcp_redis_lost(conn, "no memory", 0);
        return;
    }

    ngx_post_event(&conn->flush, &ngx_posted_events);
}


static ngx_int_t
ngx_mcp_redis_greet(ngx_mcp_redis_conn_t *conn, ngx_mcp_redis_cmd_t *cmd)
{
    u_char              name[64], number[NGX_INT_T_LEN];
    ngx_str_t           argv[3];
    ngx_uint_t          i, n;
    ngx_mcp_redis_t    *rd;
    static const char  *purposes[] = { "reads", "changes", "messages" };

    rd = conn->rd;

    if (rd->conf->password_file.len) {
        ngx_mcp_redis_read_password(rd);

        n = 1;
        ngx_str_set(&argv[0], "AUTH");

        if (rd->conf->user.len) {
            argv[n++] = rd->conf->user;
        }

        argv[n++] = rd->password;

        if (ngx_mcp_redis_add(conn, cmd++, ngx_mcp_redis_auth_reply, argv, n)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (rd->conf->database) {
        ngx_str_set(&argv[0], "SELECT");
        argv[1].data = number;
        argv[1].len = ngx_sprintf(number, "%ui", rd->conf->database) - number;

        if (ngx_mcp_redis_add(conn, cmd++, ngx_mcp_redis_step_reply, argv, 2)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ngx_str_set(&argv[0], "CLIENT");
    ngx_str_set(&argv[1], "SETNAME");
    argv[2].data = name;
    argv[2].len = ngx_sprintf(name, "nginx-mcp-tasks-%s-%P",
                              purposes[conn->number], ngx_pid)
                  - name;

    if (ngx_mcp_redis_add(conn, cmd++, ngx_mcp_redis_name_reply, argv, 3)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* one section each: before 7.0 there could be only one */

    ngx_str_set(&argv[0], "INFO");

    for (i = 0; i < 4; i++) {
        argv[1] = ngx_mcp_redis_sections[i];

        if (ngx_mcp_redis_add(conn, cmd++, ngx_mcp_redis_info_reply, argv, 2)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_redis_add(ngx_mcp_redis_conn_t *conn, ngx_mcp_redis_cmd_t *cmd,
    ngx_mcp_redis_reply_pt handler, ngx_str_t *argv, ngx_uint_t argc)
{
    if (ngx_mcp_redis_format(conn->peer.connection->pool, cmd, argv, argc)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    cmd->handler = handler;
    cmd->data = conn;
    cmd->own = 1;

    ngx_queue_insert_tail(&conn->own, &cmd->queue);
    conn->steps++;

    return NGX_OK;
}


/* the file is read again if its password was wrong: it may be corrected */

static void
ngx_mcp_redis_read_password(ngx_mcp_redis_t *rd)
{
    size_t       len;
    u_char       buf[NGX_MCP_REDIS_PASSWORD];
    const char  *err;

    if (!rd->reread) {
        return;
    }

    len = ngx_mcp_redis_password(rd->conf, buf, &err);

    if (len) {
        ngx_memcpy(rd->password.data, buf, len);
        rd->password.len = len;
        return;
    }

    if (!rd->unreadable) {
        rd->unreadable = 1;
        ngx_log_error(NGX_LOG_WARN, rd->log, ngx_errno,
                      "redis \"%V\": password_file \"%V\" %s",
                      &rd->conf->name, &rd->conf->password_file, err);
    }
}


static ngx_int_t
ngx_mcp_redis_add_scripts(ngx_mcp_redis_conn_t *conn)
{
    ngx_str_t   argv[3];
    ngx_uint_t  i;

    ngx_str_set(&argv[0], "SCRIPT");
    ngx_str_set(&argv[1], "LOAD");

    for (i = 0; i < NGX_MCP_REDIS_SCRIPTS; i++) {
        argv[2] = ngx_mcp_redis_scripts[i].text;

        if (ngx_mcp_redis_add(conn, &conn->scripts[i],
                              ngx_mcp_redis_script_reply, argv, 3)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* the server has lost them; commands that are written later find them */

void
ngx_mcp_redis_load_scripts(ngx_mcp_redis_conn_t *conn)
{
    ngx_uint_t  i;

    if (conn->loading) {
        return;
    }

    conn->loading = NGX_MCP_REDIS_SCRIPTS;

    for (i = 0; i < NGX_MCP_REDIS_SCRIPTS; i++) {
        ngx_queue_insert_tail(&conn->own, &conn->scripts[i].queue);
    }
}


static void
ngx_mcp_redis_auth_reply(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_conn_t  *conn;

    conn = cmd->data;

    conn->rd->reread = (reply->type == REDIS_REPLY_ERROR);

    ngx_mcp_redis_step_reply(cmd, reply);
}


/* the name is for operators; a user that may not set it can do without */

static void
ngx_mcp_redis_name_reply(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR
        && ngx_strncmp(reply->str, "NOPERM", 6) == 0)
    {
        ngx_mcp_redis_step(cmd->data);
        return;
    }

    ngx_mcp_redis_step_reply(cmd, reply);
}


static void
ngx_mcp_redis_step_reply(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    if (ngx_mcp_redis_step_failed(cmd->data, reply) == NGX_OK) {
        ngx_mcp_redis_step(cmd->data);
    }
}


static void
ngx_mcp_redis_info_reply(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_conn_t  *conn;

    conn = cmd->data;

    if (ngx_mcp_redis_step_failed(conn, reply) != NGX_OK) {
        return;
    }

    if (reply->type == REDIS_REPLY_STRING) {
        ngx_mcp_redis_info(conn, (u_char *) reply->str, reply->len);
    }

    ngx_mcp_redis_step(conn);
}


static void
ngx_mcp_redis_script_reply(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_conn_t  *conn;

    conn = cmd->data;

    if (ngx_mcp_redis_step_failed(conn, reply) != NGX_OK) {
        return;
    }

    if (conn->loading) {
        conn->loading--;

    } else {
        ngx_mcp_redis_step(conn);
    }
}


/* closes the connection unless the step has succeeded */

static ngx_int_t
ngx_mcp_redis_step_failed(ngx_mcp_redis_conn_t *conn, redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ERROR) {
        return NGX_OK;
    }

    if (ngx_mcp_redis_is_temporary(reply)) {
        ngx_mcp_redis_lost(conn, reply->str, 0);

    } else {
        ngx_mcp_redis_refuse(conn, "%s", reply->str);
    }

    return NGX_ERROR;
}


static void
ngx_mcp_redis_step(ngx_mcp_redis_conn_t *conn)
{
    if (--conn->steps) {
        return;
    }

    if (conn->state == NGX_MCP_REDIS_HANDSHAKE
        && ngx_mcp_redis_accept(conn) != NGX_OK)
    {
        return;
    }

    if (conn->state == NGX_MCP_REDIS_HANDSHAKE
        && conn->number == NGX_MCP_REDIS_MESSAGES && conn->rd->nchannels)
    {
        ngx_mcp_redis_subscribe_all(conn);
        return;
    }

    ngx_mcp_redis_ready(conn);
}


/* a command for each channel: with several, their slots could differ */

static void
ngx_mcp_redis_subscribe_all(ngx_mcp_redis_conn_t *conn)
{
    ngx_str_t         argv[2];
    ngx_uint_t        i;
    ngx_mcp_redis_t  *rd;

    rd = conn->rd;

    conn->state = NGX_MCP_REDIS_SUBSCRIBING;
    conn->subscribing = 0;
    conn->subscriptions = ngx_pcalloc(conn->peer.connection->pool,
                                      rd->nchannels
                                      * sizeof(ngx_mcp_redis_cmd_t));

    if (conn->subscriptions == NULL) {
        ngx_mcp_redis_lost(conn, "no memory", 0);
        return;
    }

    ngx_str_set(&argv[0], "SSUBSCRIBE");

    for (i = 0; i < rd->nchannels; i++) {
        argv[1] = rd->channels[i];

        if (ngx_mcp_redis_add(conn, &conn->subscriptions[i],
                              ngx_mcp_redis_subscribe_reply, argv, 2)
            != NGX_OK)
        {
            ngx_mcp_redis_lost(conn, "no memory", 0);
            return;
        }

        conn->subscribing |= (uint64_t) 1 << i;
    }

    ngx_post_event(&conn->flush, &ngx_posted_events);
}


/* the server has ended a subscription, as it does if a slot moves */

void
ngx_mcp_redis_resubscribe(ngx_mcp_redis_conn_t *conn, u_char *name, size_t len)
{
    ngx_uint_t   i, up;
    ngx_str_t   *channels;

    channels = conn->rd->channels;

    if (conn->subscriptions == NULL) {
        return;
    }

    for (i = 0; i < conn->rd->nchannels; i++) {

        if (channels[i].len != len
            || ngx_memcmp(channels[i].data, name, len) != 0
            || (conn->subscribing & ((uint64_t) 1 << i)))
        {
            continue;
        }

        conn->subscribing |= (uint64_t) 1 << i;
        conn->steps++;
        ngx_queue_insert_tail(&conn->own, &conn->subscriptions[i].queue);
        ngx_post_event(&conn->flush, &ngx_posted_events);

        up = (conn->state == NGX_MCP_REDIS_UP);
        conn->state = NGX_MCP_REDIS_SUBSCRIBING;
        ngx_add_timer(&conn->timer, conn->rd->conf->timeout);

        /* messages may be lost until it is confirmed */

        if (up) {
            conn->rd->hooks->down(conn->rd->data, conn->number);
        }

        return;
    }
}


static void
ngx_mcp_redis_subscribe_reply(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_conn_t  *conn;

    conn = cmd->data;

    conn->subscribing &= ~((uint64_t) 1 << (cmd - conn->subscriptions));

    ngx_mcp_redis_step_reply(cmd, reply);
}


#endif /* NGX_MCP_REDIS */
