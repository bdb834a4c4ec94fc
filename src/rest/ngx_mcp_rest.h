
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The REST surface, and functions that the console shares with it. */


#ifndef _NGX_MCP_REST_H_INCLUDED_
#define _NGX_MCP_REST_H_INCLUDED_


#include "ngx_mcp_http.h"
#include "ngx_mcp_wait.h"


/* ngx_mcp_rest.c */

#define NGX_MCP_READS  (NGX_HTTP_GET|NGX_HTTP_HEAD)

/* a resource and its methods; a list ends with an entry without methods */

typedef struct {
    ngx_str_t          name;
    ngx_uint_t         methods;   /* a mask */
    const char        *allow;     /* value of the header Allow */
    ngx_mcp_method_pt  read;      /* all methods without a body */
    ngx_mcp_method_pt  post;      /* after the body was parsed */
} ngx_mcp_resource_t;

typedef struct {
    ngx_mcp_resource_t  *all;      /* full paths */
    ngx_str_t            tasks;    /* prefix of paths with a task id */
    ngx_mcp_resource_t  *one;      /* paths after that id */
} ngx_mcp_resources_t;

ngx_int_t ngx_mcp_rest(ngx_http_request_t *r, ngx_str_t *path);
ngx_mcp_resource_t *ngx_mcp_rest_route(ngx_mcp_ctx_t *ctx,
    ngx_mcp_resources_t *resources, ngx_str_t *path);
ngx_int_t ngx_mcp_rest_serve(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_resource_t *resource);
ngx_int_t ngx_mcp_rest_allow(ngx_http_request_t *r, const char *allow);
ngx_int_t ngx_mcp_rest_type(ngx_http_request_t *r);
ngx_int_t ngx_mcp_rest_none(ngx_http_request_t *r);
ngx_int_t ngx_mcp_rest_unmodified(ngx_http_request_t *r);
ngx_int_t ngx_mcp_rest_arg(ngx_http_request_t *r, const char *name,
    ngx_int_t *value);
ngx_int_t ngx_mcp_rest_limit(ngx_http_request_t *r, ngx_uint_t *limit);

/* ngx_mcp_rest_tasks.c */

ngx_int_t ngx_mcp_rest_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_rest_create(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_rest_read(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_rest_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_rest_cancel(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_rest_input(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_rest_get(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_done_pt done);
ngx_int_t ngx_mcp_rest_send(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_view_t *v, ngx_uint_t status);
ngx_int_t ngx_mcp_rest_text(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);
ngx_uint_t ngx_mcp_rest_known(ngx_http_request_t *r, ngx_str_t *etag);

/* ngx_mcp_poll.c, ngx_mcp_events.c */

ngx_int_t ngx_mcp_poll(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_events(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_owner_events(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
u_char *ngx_mcp_change_id(u_char *p, ngx_mcp_zone_t *zone, uint64_t changed);
uint64_t ngx_mcp_last_change(ngx_http_request_t *r, ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_is_resumed(ngx_http_request_t *r);

#define NGX_MCP_CHANGE_LEN  (9 + NGX_INT64_LEN)


#endif /* _NGX_MCP_REST_H_INCLUDED_ */
