
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Connections to a Redis server.  hiredis parses replies; nginx does all input
 * and output.
 *
 * A command belongs to its connection from ngx_mcp_redis_send() until its
 * handler is called.  If the connection is lost, commands without a reply are
 * sent again on the next one: every command must have the same effect when it
 * is executed twice.  The handler is always called, exactly once, and never
 * from within ngx_mcp_redis_send().
 */


#ifndef _NGX_MCP_REDIS_CONN_H_INCLUDED_
#define _NGX_MCP_REDIS_CONN_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>

#include <hiredis/hiredis.h>

#include "ngx_mcp_redis_conf.h"


/* the connections of a process; each is opened when it is first used */

typedef enum {
    NGX_MCP_REDIS_READS = 0,
    NGX_MCP_REDIS_CHANGES,

    NGX_MCP_REDIS_COMMANDS,      /* number of connections for commands */

    NGX_MCP_REDIS_MESSAGES = NGX_MCP_REDIS_COMMANDS,

    NGX_MCP_REDIS_CONNS
} ngx_mcp_redis_conn_e;


typedef struct ngx_mcp_redis_s      ngx_mcp_redis_t;
typedef struct ngx_mcp_redis_cmd_s  ngx_mcp_redis_cmd_t;

/*
 * reply is NULL if there is none: cmd->sent tells if the command may have been
 * executed.  The reply is freed after the handler returns.  An error reply
 * that stands for a temporary state of the server (LOADING, BUSY, MASTERDOWN,
 * READONLY, TRYAGAIN, NOSCRIPT, NOREPLICAS, NOAUTH and the like) is handled by
 * the connection, which sends the command again until its time is over.
 */
typedef void (*ngx_mcp_redis_reply_pt)(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);


struct ngx_mcp_redis_cmd_s {
    ngx_queue_t              queue;      /* of the connection */
    ngx_str_t                text;       /* in the protocol's format; set by
                                            ngx_mcp_redis_format() */
    ngx_mcp_redis_reply_pt   handler;
    void                    *data;       /* of the caller */
    ngx_msec_t               until;      /* set by ngx_mcp_redis_send() */
    ngx_uint_t               script;     /* ngx_mcp_redis_script_e + 1;
                                            0: a plain command */
    unsigned                 sent:1;     /* may have been executed */
    unsigned                 own:1;      /* of the connection itself */
};


/*
 * Formats a command into memory of the pool, which has to exist until the
 * handler is called.  A script is given by its number; argv then begins with
 * the number of keys as text, the keys, and the arguments.  NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_mcp_redis_format(ngx_pool_t *pool, ngx_mcp_redis_cmd_t *cmd,
    ngx_str_t *argv, ngx_uint_t argc);
ngx_int_t ngx_mcp_redis_format_script(ngx_pool_t *pool,
    ngx_mcp_redis_cmd_t *cmd, ngx_uint_t script, ngx_str_t *argv,
    ngx_uint_t argc);

/*
 * Queues a command.  NGX_DECLINED: the server is away for longer than the
 * configured time, its checks have failed, or too much is in flight; nothing
 * was sent, and the handler is not called.
 */
ngx_int_t ngx_mcp_redis_send(ngx_mcp_redis_t *rd, ngx_uint_t conn,
    ngx_mcp_redis_cmd_t *cmd);


/* what the user of the connections registers, see ngx_mcp_redis_init() */

typedef struct {
    /*
     * A connection is open and authenticated, and the checks of the server
     * have passed.  first: the server is another one than before (run_id), or
     * this is the first connection of the process.
     */
    void  (*up)(void *data, ngx_uint_t conn, ngx_uint_t first);

    /* a connection is lost */
    void  (*down)(void *data, ngx_uint_t conn);

    /* a message on a channel that this process has subscribed to */
    void  (*message)(void *data, ngx_str_t *channel, ngx_str_t *text);
} ngx_mcp_redis_hooks_t;


/* the server, as the checks of a new connection have found it */

typedef struct {
    u_char      run_id[40];
    u_char      version[16];         /* text, ends with NUL */
    ngx_uint_t  valkey;
    ngx_uint_t  appendonly;
    uint64_t    memory;              /* bytes used */
    uint64_t    max_memory;          /* 0: no limit */
    u_char      policy[32];          /* of evictions, ends with NUL */
} ngx_mcp_redis_server_t;


struct ngx_mcp_redis_s {
    ngx_mcp_redis_conf_t         *conf;
    ngx_mcp_redis_hooks_t        *hooks;
    void                         *data;       /* of the hooks */
    ngx_log_t                    *log;

    ngx_mcp_redis_server_t        server;
    ngx_uint_t                    accepted;   /* the checks have passed */
    u_char                        error[256]; /* the last one, ends with NUL */

    /* numbers for the status */
    uint64_t                      resent;
    uint64_t                      reconnects;
    ngx_uint_t                    in_flight;  /* commands */
    size_t                        in_flight_bytes;

    ngx_str_t                    *channels;   /* of the messages */
    ngx_uint_t                    nchannels;

    ngx_str_t                     password;   /* may be newer than conf's */
    ngx_log_t                     quiet;      /* logs alerts only */

    unsigned                      known:1;    /* there was a server before */
    unsigned                      refused:1;  /* the checks have failed */
    unsigned                      failing:1;  /* error was logged */
    unsigned                      reread:1;   /* the password was wrong */
    unsigned                      unreadable:1;  /* warned of its file */
    unsigned                      warned:1;   /* no AOF */
    unsigned                      evicts:1;   /* warned of the policy */
    unsigned                      closed:1;

    struct ngx_mcp_redis_conn_s  *conns[NGX_MCP_REDIS_CONNS];
};


/* called once per process and zone; connects nothing yet */
ngx_mcp_redis_t *ngx_mcp_redis_init(ngx_cycle_t *cycle,
    ngx_mcp_redis_conf_t *conf, ngx_mcp_redis_hooks_t *hooks, void *data);

/* opens a connection before there is a command for it */
void ngx_mcp_redis_open(ngx_mcp_redis_t *rd, ngx_uint_t conn);

/* opens a connection anew: its user found out that it does not work */
void ngx_mcp_redis_renew(ngx_mcp_redis_t *rd, ngx_uint_t conn,
    const char *why);

/* whether commands can be sent now */
ngx_uint_t ngx_mcp_redis_is_up(ngx_mcp_redis_t *rd, ngx_uint_t conn);

/*
 * The channels of the connection for messages, at most 64; they are subscribed
 * to again on each new connection, and up() is called when the server has
 * confirmed all of them.  The strings have to exist until the process exits.
 */
void ngx_mcp_redis_subscribe(ngx_mcp_redis_t *rd, ngx_str_t *channels,
    ngx_uint_t n);

/* closes everything; the handlers of pending commands are called */
void ngx_mcp_redis_close(ngx_mcp_redis_t *rd);


#endif /* _NGX_MCP_REDIS_CONN_H_INCLUDED_ */
