
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Requests and responses: functions that the surfaces share. */


#ifndef _NGX_MCP_HTTP_H_INCLUDED_
#define _NGX_MCP_HTTP_H_INCLUDED_


#include "ngx_mcp_http_types.h"
#include "ngx_mcp_op.h"
#include "ngx_mcp_tools.h"
#include "ngx_mcp_version.h"


/* nginx does not define these statuses */
#define NGX_MCP_HTTP_GONE           410
#define NGX_MCP_HTTP_UNPROCESSABLE  422


/* finds members of the params of a request, see ngx_mcp_json_members() */
#define ngx_mcp_members(ctx, members, n)                                      \
    ngx_mcp_json_members(&(ctx)->rpc.params, members, n)


/* ngx_mcp_request.c */

ngx_int_t ngx_mcp_body(ngx_http_request_t *r, ngx_str_t *body);
ngx_uint_t ngx_mcp_header(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value);
ngx_uint_t ngx_mcp_is_json(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_media_type(ngx_str_t *s, ngx_str_t *type);
ngx_uint_t ngx_mcp_accepts(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_accepts_stream(ngx_http_request_t *r);

ngx_uint_t ngx_mcp_is_location(ngx_http_request_t *r, ngx_str_t *path);

/* the context of a request, which survives an internal redirect */
ngx_int_t ngx_mcp_set_ctx(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_mcp_ctx_t *ngx_mcp_ctx(ngx_http_request_t *r);

/* ngx_mcp_message.c */

ngx_int_t ngx_mcp_post(ngx_http_request_t *r,
    ngx_http_client_body_handler_pt handler);
ngx_int_t ngx_mcp_read(ngx_http_request_t *r, ngx_mcp_ctx_t **ctx);
ngx_int_t ngx_mcp_read_message(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *message);
ngx_int_t ngx_mcp_identify(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_refuse(ngx_http_request_t *r, ngx_uint_t status,
    ngx_int_t code, const char *why);
ngx_mcp_method_t *ngx_mcp_method_find(ngx_mcp_method_t *methods,
    ngx_str_t *name);

/* ngx_mcp_rpc_batch.c */

ngx_http_cleanup_t *ngx_mcp_cleanup_add(ngx_http_request_t *r);

/* ngx_mcp_reply.c */

ngx_int_t ngx_mcp_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *parts, ngx_uint_t n);
ngx_int_t ngx_mcp_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *result);
ngx_int_t ngx_mcp_error(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t status, ngx_int_t code, const char *message, ngx_str_t *data);
ngx_int_t ngx_mcp_invalid(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t status, const char *what);
ngx_int_t ngx_mcp_duplicate(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_refused(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t reason);
void ngx_mcp_out_answer(ngx_mcp_out_t *out, ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, size_t size);
ngx_int_t ngx_mcp_out_result(ngx_http_request_t *r, ngx_mcp_out_t *out);
ngx_int_t ngx_mcp_add_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value);
ngx_int_t ngx_mcp_no_store(ngx_http_request_t *r);
ngx_int_t ngx_mcp_accepted(ngx_http_request_t *r);

/* ngx_mcp_problem.c */

ngx_int_t ngx_mcp_problem(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *reason, const char *detail);
ngx_int_t ngx_mcp_problem_invalid(ngx_http_request_t *r, const char *detail);
ngx_int_t ngx_mcp_problem_refused(ngx_http_request_t *r, ngx_uint_t reason);

/* ngx_mcp_era.c */

ngx_uint_t ngx_mcp_header_batches(ngx_http_request_t *r);
void ngx_mcp_out_revisions(ngx_mcp_out_t *out, ngx_uint_t eras);
ngx_int_t ngx_mcp_legacy_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_modern_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_unsupported(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t eras);
ngx_int_t ngx_mcp_mismatch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *message);
ngx_int_t ngx_mcp_no_capability(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_missing_capability(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *data);

/* ngx_mcp_args.c, ngx_mcp_create.c */

const char *ngx_mcp_token(ngx_pool_t *pool, ngx_mcp_json_t *token,
    ngx_str_t *value);
const char *ngx_mcp_ttl(ngx_mcp_loc_conf_t *lcf, ngx_mcp_json_t *ttl,
    uint64_t *value);
const char *ngx_mcp_client_timeout(ngx_mcp_loc_conf_t *lcf,
    ngx_mcp_json_t *timeout, ngx_mcp_policy_t *policy);
const char *ngx_mcp_client_priority(ngx_mcp_loc_conf_t *lcf,
    ngx_mcp_json_t *priority, ngx_mcp_policy_t *policy);
const char *ngx_mcp_progress_args(ngx_mcp_json_t *progress,
    ngx_mcp_json_t *total, ngx_mcp_json_t *message, ngx_mcp_op_update_t *op);
uint64_t ngx_mcp_lease_token(ngx_mcp_json_t *value);
ngx_uint_t ngx_mcp_states_of(ngx_uint_t era, ngx_str_t *status);
void *ngx_mcp_create_op(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *name, ngx_mcp_tool_t *tool, size_t size);

/* ngx_mcp_tracing.c */

ngx_int_t ngx_mcp_tracing(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_trace_keep(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_arguments.c */

ngx_int_t ngx_mcp_schema_check(ngx_pool_t *pool, ngx_mcp_schema_t *schema,
    ngx_mcp_json_t *value, ngx_mcp_mismatch_t *mismatch, ngx_str_t *text);
ngx_int_t ngx_mcp_arguments_check(ngx_pool_t *pool, ngx_mcp_tool_t *tool,
    ngx_mcp_json_t *arguments, ngx_mcp_mismatch_t *mismatch, ngx_str_t *text);
ngx_int_t ngx_mcp_arguments_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *text);
ngx_int_t ngx_mcp_arguments_error(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *of, ngx_mcp_mismatch_t *mismatch, ngx_str_t *text);
ngx_int_t ngx_mcp_mismatch_error(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *of, const char *reason, ngx_mcp_mismatch_t *mismatch,
    ngx_str_t *text);
ngx_int_t ngx_mcp_mismatch_text(ngx_pool_t *pool, ngx_int_t rc,
    ngx_mcp_mismatch_t *mismatch, ngx_str_t *text);
ngx_int_t ngx_mcp_arguments_problem(ngx_http_request_t *r,
    ngx_mcp_mismatch_t *mismatch, ngx_str_t *text);

/* ngx_mcp_origin.c, ngx_mcp_session.c */

ngx_uint_t ngx_mcp_origin(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_same_origin(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_local(ngx_http_request_t *r);
ngx_int_t ngx_mcp_session_new(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_revision_t *rev, ngx_uint_t can);
ngx_int_t ngx_mcp_session_check(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_session_end(ngx_http_request_t *r);
ngx_int_t ngx_mcp_owner(ngx_http_request_t *r, ngx_str_t *owner);
ngx_int_t ngx_mcp_options(ngx_http_request_t *r, const char *allow);

/* ngx_mcp_request_op.c */

ngx_int_t ngx_mcp_request_op(ngx_http_request_t *r, ngx_mcp_op_t *op,
    ngx_mcp_done_pt done);
#if (NGX_MCP_TEST)
ngx_http_request_t *ngx_mcp_op_request(ngx_mcp_op_t *op);
#endif
void *ngx_mcp_op(ngx_http_request_t *r, ngx_uint_t type, size_t size);

/* ngx_mcp_render.c */

#define NGX_MCP_WANT_TASK  NGX_MCP_WANT(NGX_MCP_MESSAGE)
#define NGX_MCP_WANT_DETAIL                                                   \
    (NGX_MCP_WANT(NGX_MCP_MESSAGE)                                            \
     | NGX_MCP_WANT(NGX_MCP_RESULT)                                           \
     | NGX_MCP_WANT(NGX_MCP_REQUESTS))

#define NGX_MCP_WANT_REST  (NGX_MCP_WANT_DETAIL | NGX_MCP_WANT_TOOL)

/* what ngx_mcp_render_outcome() adds to the _meta of a result */

typedef enum {
    NGX_MCP_META_NONE = 0,
    NGX_MCP_META_RELATED,      /* the task; replaces another one */
    NGX_MCP_META_IDENTIFIED    /* this server, unless one is named */
} ngx_mcp_meta_e;

void ngx_mcp_render_task(ngx_mcp_out_t *out, ngx_uint_t era,
    ngx_mcp_view_t *v);
void ngx_mcp_render_created(ngx_mcp_out_t *out, ngx_uint_t era,
    ngx_mcp_view_t *v);
void ngx_mcp_render_detail(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_uint_t can);
void ngx_mcp_render_rest(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_uint_t detail);
void ngx_mcp_render_short(ngx_mcp_out_t *out, ngx_mcp_view_t *v);
void ngx_mcp_render_progress(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_str_t *token, ngx_uint_t related);
void ngx_mcp_render_outcome(ngx_mcp_out_t *out, ngx_uint_t era,
    ngx_mcp_view_t *v, ngx_uint_t meta);
void ngx_mcp_render_question(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_json_t *key, ngx_mcp_json_t *question);
void ngx_mcp_render_cursor(ngx_mcp_out_t *out, ngx_mcp_zone_t *zone,
    ngx_str_t *owner, ngx_mcp_cursor_t *next);
void ngx_mcp_render_tool(ngx_mcp_out_t *out, ngx_array_t *tools, ngx_uint_t i,
    ngx_uint_t support);
void ngx_mcp_render_error(ngx_mcp_out_t *out, ngx_uint_t era,
    ngx_mcp_view_t *v);
void ngx_mcp_render_url_required(ngx_mcp_out_t *out, ngx_mcp_json_t *error);
ngx_str_t *ngx_mcp_render_status(ngx_uint_t era, ngx_mcp_task_t *task);

/* ngx_mcp_variables.c */

ngx_int_t ngx_mcp_client(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
void ngx_mcp_set_task(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_view_t *v);

ngx_int_t ngx_mcp_add_variables(ngx_conf_t *cf);


#endif /* _NGX_MCP_HTTP_H_INCLUDED_ */
