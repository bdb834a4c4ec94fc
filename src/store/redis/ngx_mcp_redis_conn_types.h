
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A connection, for the files that implement it.
 *
 * A command is in one of three queues: "waiting" before it is written, "sent"
 * until its reply, "delayed" if the server has asked to try later.  If the
 * connection is lost, those in "sent" go back to the front of "waiting".
 * Commands of the connection itself (handshake, scripts) are in "own" before
 * they are written; they go first, and end with the connection.
 *
 * A connection and its queues exist until the process exits.  Only the socket
 * and the parser are freed, and "incarnation" changes when they are.  A handler
 * may close everything: after each handler its caller compares the number.
 */


#ifndef _NGX_MCP_REDIS_CONN_TYPES_H_INCLUDED_
#define _NGX_MCP_REDIS_CONN_TYPES_H_INCLUDED_


#include "ngx_mcp_redis_conn.h"
#include "ngx_mcp_redis_script.h"


#define NGX_MCP_REDIS_MAX_COMMANDS  1024
#define NGX_MCP_REDIS_MAX_BYTES     (8 * 1024 * 1024)

/* a longer reply, or longer part of one, is a protocol error */
#define NGX_MCP_REDIS_MAX_REPLY     (256 * 1024 * 1024)

#define NGX_MCP_REDIS_INPUT         32768
#define NGX_MCP_REDIS_OUTPUT        65536

/* addresses of a name */
#define NGX_MCP_REDIS_ADDRS         8

/* a server that was refused is tried again after this time */
#define NGX_MCP_REDIS_REFUSED       1000

/* a command that the server could not execute yet is sent again after it */
#define NGX_MCP_REDIS_DELAY         50

#define NGX_MCP_REDIS_MAX_CHANNELS  64


typedef enum {
    NGX_MCP_REDIS_CLOSED = 0,    /* opened again if timer is set */
    NGX_MCP_REDIS_RESOLVING,
    NGX_MCP_REDIS_CONNECTING,    /* with the TLS handshake */
    NGX_MCP_REDIS_HANDSHAKE,
    NGX_MCP_REDIS_SUBSCRIBING,
    NGX_MCP_REDIS_UP
} ngx_mcp_redis_state_e;


typedef struct ngx_mcp_redis_conn_s {
    /* debug logs of timers read a descriptor here, as in ngx_connection_t */
    void                    *unused[3];
    ngx_int_t                ident;

    ngx_mcp_redis_t         *rd;
    ngx_uint_t               number;       /* ngx_mcp_redis_conn_e */
    ngx_uint_t               state;        /* ngx_mcp_redis_state_e */
    ngx_uint_t               incarnation;

    ngx_peer_connection_t    peer;
    redisReader             *reader;
    u_char                  *input;
    ngx_buf_t               *output;

    ngx_queue_t              own;
    ngx_queue_t              waiting;
    ngx_queue_t              sent;
    ngx_queue_t              delayed;
    ngx_mcp_redis_cmd_t     *partial;      /* in sent, not yet all in output */
    size_t                   copied;       /* bytes of it */

    ngx_event_t              flush;        /* posted: there is output */
    ngx_event_t              timer;        /* of the state; or to try again */
    ngx_event_t              delay;        /* of delayed commands */
    ngx_event_t              check;        /* set while commands are pending */

    ngx_uint_t               pending;      /* commands of callers */
    ngx_uint_t               steps;        /* of the handshake, to be done */
    ngx_uint_t               loading;      /* scripts that are loaded again */
    ngx_msec_t               away;         /* since when, if not up */
    ngx_msec_t               active;       /* last input, or first output */
    ngx_msec_t               backoff;

    /* commands of the handshake that may be needed again */
    ngx_mcp_redis_cmd_t     *scripts;
    ngx_mcp_redis_cmd_t     *subscriptions;
    uint64_t                 subscribing;  /* a bit: not yet confirmed */

    ngx_mcp_redis_server_t   server;       /* what INFO has said so far */
    unsigned                 replica:1;
    unsigned                 server_loading:1;

    unsigned                 wanted:1;     /* was opened */
    unsigned                 was_up:1;

    ngx_resolver_ctx_t      *resolving;
    ngx_uint_t               naddrs;
    ngx_uint_t               addr;         /* the next one to try */
    ngx_sockaddr_t           sockaddrs[NGX_MCP_REDIS_ADDRS];
    socklen_t                socklens[NGX_MCP_REDIS_ADDRS];
} ngx_mcp_redis_conn_t;


/* ngx_mcp_redis_conn.c */

void ngx_mcp_redis_begin(ngx_mcp_redis_conn_t *conn);
void ngx_mcp_redis_ready(ngx_mcp_redis_conn_t *conn);
void ngx_mcp_redis_lost(ngx_mcp_redis_conn_t *conn, const char *what,
    ngx_err_t err);
void ngx_mcp_redis_refuse(ngx_mcp_redis_conn_t *conn, const char *fmt, ...);
void ngx_mcp_redis_idle(ngx_mcp_redis_conn_t *conn);
void ngx_mcp_redis_shut(ngx_mcp_redis_conn_t *conn);

/* ngx_mcp_redis_connect.c */

void ngx_mcp_redis_connect(ngx_mcp_redis_conn_t *conn);
void ngx_mcp_redis_disconnect(ngx_mcp_redis_conn_t *conn);

/* ngx_mcp_redis_handshake.c */

void ngx_mcp_redis_handshake(ngx_mcp_redis_conn_t *conn);
void ngx_mcp_redis_load_scripts(ngx_mcp_redis_conn_t *conn);
void ngx_mcp_redis_resubscribe(ngx_mcp_redis_conn_t *conn, u_char *name,
    size_t len);

/* ngx_mcp_redis_info.c */

void ngx_mcp_redis_info(ngx_mcp_redis_conn_t *conn, u_char *p, size_t len);
ngx_int_t ngx_mcp_redis_accept(ngx_mcp_redis_conn_t *conn);

/* ngx_mcp_redis_cmd.c */

void ngx_mcp_redis_flush(ngx_mcp_redis_conn_t *conn);
void ngx_mcp_redis_flush_handler(ngx_event_t *ev);
void ngx_mcp_redis_delay(ngx_mcp_redis_conn_t *conn, ngx_mcp_redis_cmd_t *cmd);
void ngx_mcp_redis_delay_handler(ngx_event_t *ev);
void ngx_mcp_redis_check_handler(ngx_event_t *ev);
void ngx_mcp_redis_done(ngx_mcp_redis_conn_t *conn, ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
void ngx_mcp_redis_requeue(ngx_mcp_redis_conn_t *conn);

/* ngx_mcp_redis_reply.c */

void ngx_mcp_redis_read_handler(ngx_event_t *rev);
ngx_uint_t ngx_mcp_redis_is_temporary(redisReply *reply);


#endif /* _NGX_MCP_REDIS_CONN_TYPES_H_INCLUDED_ */
