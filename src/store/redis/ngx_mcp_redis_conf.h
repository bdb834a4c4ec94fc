
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The block mcp_tasks_redis: a server, and how to use it. */


#ifndef _NGX_MCP_REDIS_CONF_H_INCLUDED_
#define _NGX_MCP_REDIS_CONF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_MCP_REDIS_PARTITIONS  16384
#define NGX_MCP_REDIS_PASSWORD    512


typedef struct {
    ngx_str_t                  name;
    ngx_url_t                  url;            /* of the server */
    ngx_http_core_loc_conf_t  *clcf;           /* its resolver */
    ngx_str_t                  user;           /* empty: none */
    ngx_str_t                  password_file;  /* empty: none */
    ngx_str_t                  password;       /* its contents at start */
    ngx_str_t                  prefix;         /* of keys, "mt" */
    ngx_uint_t                 database;
    ngx_uint_t                 partitions;     /* a power of two */

    ngx_msec_t                 timeout;
    ngx_msec_t                 connect_timeout;
    ngx_msec_t                 retry;
    ngx_msec_t                 max_retry;

    ngx_flag_t                 tls;
    ngx_flag_t                 tls_verify;
    ngx_str_t                  tls_name;       /* empty: the server's host */
    ngx_str_t                  tls_trusted;
    ngx_uint_t                 tls_depth;

#if (NGX_SSL)
    ngx_ssl_t                 *ssl;
#endif

    ngx_cycle_t               *cycle;

    u_char                    *file;           /* where the block is */
    ngx_uint_t                 line;
} ngx_mcp_redis_conf_t;


/* the block with that name; NULL: there is none (yet) */
ngx_mcp_redis_conf_t *ngx_mcp_redis_conf(ngx_conf_t *cf, ngx_str_t *name);

/*
 * The first line of the password file.  Returns its length, or 0 after it has
 * set *err to the reason; errno is 0 if the file itself is not valid.
 */
size_t ngx_mcp_redis_password(ngx_mcp_redis_conf_t *conf, u_char *buf,
    const char **err);


#endif /* _NGX_MCP_REDIS_CONF_H_INCLUDED_ */
