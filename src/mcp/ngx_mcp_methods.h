
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The MCP endpoint: eras and methods. */


#ifndef _NGX_MCP_METHODS_H_INCLUDED_
#define _NGX_MCP_METHODS_H_INCLUDED_


#include "ngx_mcp_http.h"
#include "ngx_mcp_wait.h"


/* ngx_mcp_endpoint.c */

ngx_int_t ngx_mcp_handler(ngx_http_request_t *r);
ngx_int_t ngx_mcp_is_modern(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_methods.c */

ngx_mcp_method_t *ngx_mcp_method(ngx_mcp_ctx_t *ctx);
ngx_uint_t ngx_mcp_method_is_for(ngx_mcp_method_t *m, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_legacy.c, ngx_mcp_modern.c */

ngx_int_t ngx_mcp_legacy(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_initialize(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_ping(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_modern(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_discover(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_uint_t ngx_mcp_modern_params(ngx_http_request_t *r, ngx_mcp_tool_t *tool,
    ngx_mcp_json_t *arguments);

/* ngx_mcp_legacy_batch.c */

ngx_int_t ngx_mcp_legacy_batch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *body);

/* ngx_mcp_tools_list.c: tools/list */

ngx_int_t ngx_mcp_tools_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_call.c: tools/call, tasks/create */

ngx_int_t ngx_mcp_tools_call(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_create(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_notification.c */

ngx_int_t ngx_mcp_notification(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_call_id(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *request, ngx_mcp_id_t *id);

/* ngx_mcp_tasks.c: tasks/... */

ngx_int_t ngx_mcp_tasks_get(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_cancel(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_update(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_progress(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_response(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_outcome.c */

ngx_int_t ngx_mcp_wait_outcome(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_id_t *id, ngx_uint_t mode, ngx_msec_t after);
ngx_int_t ngx_mcp_wait_ask(ngx_mcp_wait_t *w, ngx_mcp_view_t *v,
    ngx_pool_t *pool);

ngx_int_t ngx_mcp_resume_outcome(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_id_t *id, ngx_uint_t mode, double progress);

/* what a request waits for */
#define NGX_MCP_WAIT_CALL     0    /* the result of a call */
#define NGX_MCP_WAIT_AFTER    1    /* the same for a time, then the task */
#define NGX_MCP_WAIT_TASK     2    /* nothing: the response is the task */
#define NGX_MCP_WAIT_RESULT   3    /* tasks/result */

/* ngx_mcp_resume.c */

/* the maximum length of the id of an event */
#define NGX_MCP_RESUME_LEN    256

ngx_uint_t ngx_mcp_primes(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_uint_t ngx_mcp_resumable(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
u_char *ngx_mcp_resume_id(u_char *p, ngx_mcp_wait_t *w, ngx_uint_t mode,
    double progress, ngx_uint_t ended);
ngx_int_t ngx_mcp_resume(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_stream.c, ngx_mcp_listen.c */

ngx_int_t ngx_mcp_stream_open(ngx_http_request_t *r);
ngx_int_t ngx_mcp_listen(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_request_state.c */

typedef struct {
    ngx_mcp_json_t  responses; /* NONE: no answers */
    ngx_mcp_json_t  state;     /* NONE: the first round trip */
    ngx_mcp_id_t    id;        /* from the state */
    uint64_t        version;   /* from the state */
} ngx_mcp_resumed_call_t;

ngx_int_t ngx_mcp_request_state_parse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_resumed_call_t *resumed);
ngx_int_t ngx_mcp_request_state_invalid(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_request_state_ask(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_view_t *v);
const char *ngx_mcp_request_state_missing(ngx_mcp_ctx_t *ctx,
    ngx_mcp_view_t *v);


#endif /* _NGX_MCP_METHODS_H_INCLUDED_ */
