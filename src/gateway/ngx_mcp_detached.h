
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Detached requests: requests to the upstream that have no client connection.
 * The sender holds what they take from the client's request.
 */


#ifndef _NGX_MCP_DETACHED_H_INCLUDED_
#define _NGX_MCP_DETACHED_H_INCLUDED_


#include "ngx_mcp_http_types.h"


/* the value of a variable in the client's request */

typedef struct {
    ngx_uint_t                 index;   /* in r->variables */
    ngx_http_variable_value_t  value;
} ngx_mcp_kept_t;


/* what all requests of a job have in common */

typedef struct {
    ngx_pool_t            *pool;
    ngx_http_conf_ctx_t   *conf_ctx;
    ngx_http_addr_conf_t  *addr_conf;
    ngx_str_t              uri;         /* of the location that proxies */
    ngx_str_t              args;
    ngx_str_t              server;      /* name in the Host header */
    ngx_array_t            headers;     /* of ngx_table_elt_t */
    ngx_str_t              name;        /* Mcp-Name of the call, if replaced */
    ngx_array_t            variables;   /* of ngx_mcp_kept_t */
    struct sockaddr       *sockaddr;
    socklen_t              socklen;
    ngx_str_t              addr_text;
    struct sockaddr       *local_sockaddr;
    socklen_t              local_socklen;

    /* for the module's variables */
    ngx_uint_t             era;         /* selects the protocol, too */
    ngx_str_t              tool;
    ngx_str_t              task_id;
    ngx_str_t              client;
    ngx_mcp_trace_t        trace;
} ngx_mcp_sender_t;


typedef struct ngx_mcp_detached_s  ngx_mcp_detached_t;

/* callbacks for the response of a detached request */

typedef struct {
    /* the header was received; NGX_ERROR ends the request */
    ngx_int_t  (*header)(ngx_mcp_detached_t *d);

    /* a part of the body was received; NGX_ERROR ends the request */
    ngx_int_t  (*body)(ngx_mcp_detached_t *d, u_char *p, size_t n);

    /* the response is complete; may be NULL */
    void       (*whole)(ngx_mcp_detached_t *d);

    /* the request has ended, successfully or not; called exactly once */
    void       (*done)(ngx_mcp_detached_t *d);
} ngx_mcp_reader_t;

struct ngx_mcp_detached_s {
    ngx_http_connection_t  hc;          /* must be the first */
    ngx_http_log_ctx_t     log_ctx;
    ngx_http_request_t    *r;
    ngx_mcp_reader_t      *reader;
    void                  *data;        /* the reader's */
    unsigned               header:1;    /* the header was received */
    unsigned               whole:1;     /* the whole body was received */
    unsigned               refused:1;   /* the reader returned an error */
};


/* ngx_mcp_detached.c */

/*
 * Creates a request, which ngx_mcp_detached_start() then runs: a POST with the
 * body, which is copied, or, if body is NULL, a GET with Last-Event-ID.  The
 * request refers to memory of the sender, which must outlive it.  NULL: no
 * memory or no connection.
 */
ngx_mcp_detached_t *ngx_mcp_detached(ngx_mcp_sender_t *sender, ngx_str_t *body,
    ngx_str_t *last_id, ngx_mcp_reader_t *reader, void *data);

/* the request may have ended when this returns */
void ngx_mcp_detached_start(ngx_mcp_detached_t *d);

/* must not be called from the request's own handlers and callbacks */
void ngx_mcp_detached_end(ngx_mcp_detached_t *d);

/* NULL: a client's request */
ngx_mcp_detached_t *ngx_mcp_is_detached(ngx_http_request_t *r);

/* ngx_mcp_sender.c */

/*
 * Fills the sender from a client's request.  Sets *bound to 1 if the call
 * depends on this client, so that no other process may run it, else to 0.
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_sender_copy(ngx_mcp_sender_t *sender, ngx_http_request_t *r,
    ngx_mcp_loc_conf_t *lcf, ngx_uint_t *bound);

/* fills the sender for a call that has no client; NGX_ERROR: no memory */
ngx_int_t ngx_mcp_sender_make(ngx_mcp_sender_t *sender,
    ngx_mcp_loc_conf_t *lcf, ngx_str_t *tool);

/* adds headers with the trace context in "_meta"; NGX_ERROR: no memory */
ngx_int_t ngx_mcp_sender_trace(ngx_mcp_sender_t *sender, ngx_mcp_json_t *meta);

void ngx_mcp_sender_method(ngx_mcp_sender_t *sender, ngx_str_t *method,
    ngx_str_t *name);


#endif /* _NGX_MCP_DETACHED_H_INCLUDED_ */
