
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Requests to the upstream that have no client, and for whom they speak. */


#ifndef _NGX_MCP_DETACHED_H_INCLUDED_
#define _NGX_MCP_DETACHED_H_INCLUDED_


#include "ngx_mcp_http_types.h"


/* a variable that has its value */

typedef struct {
    ngx_uint_t                 index;
    ngx_http_variable_value_t  value;
} ngx_mcp_kept_t;


/* headers and the like that every request of a job has, from the client's */

typedef struct {
    ngx_pool_t            *pool;
    ngx_http_conf_ctx_t   *conf_ctx;
    ngx_http_addr_conf_t  *addr_conf;
    ngx_str_t              uri;
    ngx_str_t              args;
    ngx_str_t              server;      /* the name in Host */
    ngx_array_t            headers;     /* of ngx_table_elt_t */
    ngx_array_t            variables;   /* of .._kept_t */
    struct sockaddr       *sockaddr;
    socklen_t              socklen;
    ngx_str_t              addr_text;
    struct sockaddr       *local_sockaddr;
    socklen_t              local_socklen;

    /* for variables */
    ngx_uint_t             era;
    ngx_str_t              tool;
    ngx_str_t              task_id;
    ngx_str_t              client;
} ngx_mcp_sender_t;


/* a request without a client, and who reads its response */

typedef struct ngx_mcp_detached_s  ngx_mcp_detached_t;

typedef struct {
    /* the header has come: NGX_OK, or NGX_ERROR to end it */
    ngx_int_t  (*header)(ngx_mcp_detached_t *d);
    ngx_int_t  (*body)(ngx_mcp_detached_t *d, u_char *p, size_t n);
    /* that was all of it; may be NULL */
    void       (*whole)(ngx_mcp_detached_t *d);
    /* it is over, in whichever way; called exactly once */
    void       (*done)(ngx_mcp_detached_t *d);
} ngx_mcp_reader_t;

struct ngx_mcp_detached_s {
    ngx_http_connection_t  hc;          /* must be the first */
    ngx_http_log_ctx_t     log_ctx;
    ngx_http_request_t    *r;
    ngx_mcp_reader_t      *reader;
    void                  *data;
    unsigned               headed:1;    /* a header has come */
    unsigned               whole:1;     /* the body has, too */
    unsigned               refused:1;   /* its reader wants no more */
};


/* ngx_mcp_detached.c */

ngx_mcp_detached_t *ngx_mcp_detached(ngx_mcp_sender_t *sender, ngx_str_t *body,
    ngx_str_t *last_id, ngx_mcp_reader_t *reader, void *data);
void ngx_mcp_detached_start(ngx_mcp_detached_t *d);
void ngx_mcp_detached_end(ngx_mcp_detached_t *d);
ngx_mcp_detached_t *ngx_mcp_is_detached(ngx_http_request_t *r);

/* ngx_mcp_sender.c */

ngx_int_t ngx_mcp_sender_copy(ngx_mcp_sender_t *sender, ngx_http_request_t *r,
    ngx_mcp_loc_conf_t *lcf, ngx_uint_t *bound);
ngx_int_t ngx_mcp_sender_make(ngx_mcp_sender_t *sender,
    ngx_mcp_loc_conf_t *lcf, ngx_str_t *tool);


#endif /* _NGX_MCP_DETACHED_H_INCLUDED_ */
