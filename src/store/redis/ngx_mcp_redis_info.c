
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * What INFO says about a server, and whether it can be used.  The text comes
 * from the network: lines that are not understood are ignored.
 */


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_REDIS)


#include "ngx_mcp_redis_conn_types.h"


typedef void (*ngx_mcp_redis_info_pt)(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);

typedef struct {
    ngx_str_t              name;
    ngx_mcp_redis_info_pt  set;
} ngx_mcp_redis_info_t;


static void ngx_mcp_redis_set_run_id(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_set_redis(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_set_valkey(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_set_role(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_set_loading(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_set_aof(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_set_policy(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_set_memory(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_set_limit(ngx_mcp_redis_conn_t *conn,
    ngx_str_t *value);
static void ngx_mcp_redis_warn(ngx_mcp_redis_conn_t *conn);


static ngx_mcp_redis_info_t  ngx_mcp_redis_infos[] = {
    { ngx_string("run_id"), ngx_mcp_redis_set_run_id },
    { ngx_string("redis_version"), ngx_mcp_redis_set_redis },
    { ngx_string("valkey_version"), ngx_mcp_redis_set_valkey },
    { ngx_string("role"), ngx_mcp_redis_set_role },
    { ngx_string("loading"), ngx_mcp_redis_set_loading },
    { ngx_string("aof_enabled"), ngx_mcp_redis_set_aof },
    { ngx_string("maxmemory_policy"), ngx_mcp_redis_set_policy },
    { ngx_string("used_memory"), ngx_mcp_redis_set_memory },
    { ngx_string("maxmemory"), ngx_mcp_redis_set_limit },
    { ngx_null_string, NULL }
};


/* lines of "NAME:VALUE" */

void
ngx_mcp_redis_info(ngx_mcp_redis_conn_t *conn, u_char *p, size_t len)
{
    u_char                *last, *end, *colon;
    ngx_str_t              value;
    ngx_mcp_redis_info_t  *info;

    last = p + len;

    for ( /* void */ ; p < last; p = end + 1) {
        end = ngx_strlchr(p, last, LF);

        if (end == NULL) {
            end = last;
        }

        colon = ngx_strlchr(p, end, ':');

        if (colon == NULL) {
            continue;
        }

        value.data = colon + 1;
        value.len = end - value.data;

        if (value.len && value.data[value.len - 1] == CR) {
            value.len--;
        }

        for (info = ngx_mcp_redis_infos; info->set; info++) {
            if (info->name.len == (size_t) (colon - p)
                && ngx_strncmp(info->name.data, p, info->name.len) == 0)
            {
                info->set(conn, &value);
                break;
            }
        }
    }
}


static void
ngx_mcp_redis_set_run_id(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    if (value->len == sizeof(conn->server.run_id)) {
        ngx_memcpy(conn->server.run_id, value->data, value->len);
    }
}


/* Valkey says this too, for clients that do not know it */

static void
ngx_mcp_redis_set_redis(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    if (!conn->server.valkey) {
        (void) ngx_cpystrn(conn->server.version, value->data,
                           ngx_min(value->len + 1,
                                   sizeof(conn->server.version)));
    }
}


static void
ngx_mcp_redis_set_valkey(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    conn->server.valkey = 0;
    ngx_mcp_redis_set_redis(conn, value);
    conn->server.valkey = 1;
}


static void
ngx_mcp_redis_set_role(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    conn->replica = (value->len != 6
                     || ngx_strncmp(value->data, "master", 6) != 0);
}


static void
ngx_mcp_redis_set_loading(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    conn->server_loading = (value->len == 1 && value->data[0] == '1');
}


static void
ngx_mcp_redis_set_aof(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    conn->server.appendonly = (value->len == 1 && value->data[0] == '1');
}


static void
ngx_mcp_redis_set_policy(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    (void) ngx_cpystrn(conn->server.policy, value->data,
                       ngx_min(value->len + 1, sizeof(conn->server.policy)));
}


static void
ngx_mcp_redis_set_memory(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    off_t  size;

    size = ngx_atoof(value->data, value->len);
    conn->server.memory = size == NGX_ERROR ? 0 : (uint64_t) size;
}


static void
ngx_mcp_redis_set_limit(ngx_mcp_redis_conn_t *conn, ngx_str_t *value)
{
    off_t  size;

    size = ngx_atoof(value->data, value->len);
    conn->server.max_memory = size == NGX_ERROR ? 0 : (uint64_t) size;
}


/* whether the server can be used; otherwise the connection is closed */

ngx_int_t
ngx_mcp_redis_accept(ngx_mcp_redis_conn_t *conn)
{
    u_char                  *dot;
    ngx_int_t                major;
    ngx_mcp_redis_server_t  *server;

    server = &conn->server;

    if (server->run_id[0] == '\0') {
        ngx_mcp_redis_refuse(conn, "INFO has no run_id");
        return NGX_ERROR;
    }

    dot = (u_char *) ngx_strchr(server->version, '.');
    major = dot ? ngx_atoi(server->version, dot - server->version) : NGX_ERROR;

    if (major < 7) {
        ngx_mcp_redis_refuse(conn, "version \"%s\" of the server is not "
                             "supported, 7.0 or later is needed",
                             server->version);
        return NGX_ERROR;
    }

    if (conn->server_loading) {
        ngx_mcp_redis_lost(conn, "the server is loading its data", 0);
        return NGX_ERROR;
    }

    if (conn->replica) {
        ngx_mcp_redis_refuse(conn, "the server is a replica");
        return NGX_ERROR;
    }

    if (ngx_strncmp(server->policy, "allkeys-", 8) == 0) {
        ngx_mcp_redis_refuse(conn, "the server's maxmemory-policy \"%s\" "
                             "evicts tasks, \"noeviction\" is needed",
                             server->policy);
        return NGX_ERROR;
    }

    conn->rd->accepted = 1;
    conn->rd->refused = 0;

    ngx_mcp_redis_warn(conn);

    return NGX_OK;
}


static void
ngx_mcp_redis_warn(ngx_mcp_redis_conn_t *conn)
{
    ngx_mcp_redis_t  *rd;

    rd = conn->rd;

    if (ngx_strncmp(conn->server.policy, "volatile-", 9) == 0 && !rd->evicts) {
        rd->evicts = 1;
        ngx_log_error(NGX_LOG_WARN, rd->log, 0,
                      "redis \"%V\": maxmemory-policy is \"%s\", "
                      "\"noeviction\" is recommended",
                      &rd->conf->name, conn->server.policy);
    }

    if (!conn->server.appendonly && !rd->warned) {
        rd->warned = 1;
        ngx_log_error(NGX_LOG_WARN, rd->log, 0,
                      "redis \"%V\": appendonly is off, tasks are lost "
                      "if the server restarts", &rd->conf->name);
    }
}


#endif /* NGX_MCP_REDIS */
