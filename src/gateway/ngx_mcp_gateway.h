
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The gateway: adds tasks to MCP servers that do not support them.
 *
 * Messages that the module does not handle itself are passed to the upstream
 * by an internal redirect.  A call that becomes a task is a job: it has its
 * own requests to the upstream, which do not depend on the client's connection.
 */


#ifndef _NGX_MCP_GATEWAY_H_INCLUDED_
#define _NGX_MCP_GATEWAY_H_INCLUDED_


#include "ngx_mcp_http.h"


/* messages of errors, for background calls and for passed responses */
#define NGX_MCP_BAD_RESPONSE  "The upstream response is not valid"
#define NGX_MCP_BAD_QUESTION  "The upstream server asked an invalid question"


typedef struct ngx_mcp_job_s  ngx_mcp_job_t;

/* handles a message that is not passed to the upstream */
typedef ngx_int_t (*ngx_mcp_dispatch_pt)(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);


/* ngx_mcp_route.c */

char *ngx_mcp_set_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_tool(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_conf_merge_pass(ngx_conf_t *cf, ngx_mcp_loc_conf_t *prev,
    ngx_mcp_loc_conf_t *conf);

/* never NULL: without a matching directive it returns the defaults */
ngx_mcp_tool_t *ngx_mcp_route_find(ngx_mcp_loc_conf_t *lcf, ngx_str_t *name);

/* only name and input are set; NULL: the schema is not known */
ngx_mcp_tool_t *ngx_mcp_route_schema(ngx_mcp_loc_conf_t *lcf, ngx_str_t *name);

/* ngx_mcp_pass.c */

/* passes the request to the upstream */
ngx_int_t ngx_mcp_pass(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* restores the Accept-Encoding headers that were changed for the upstream */
void ngx_mcp_pass_encodings(ngx_mcp_ctx_t *ctx);

ngx_int_t ngx_mcp_pass_message(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t modern, ngx_mcp_dispatch_pt dispatch);
/* the same, if the upstream supports the era of the message */
ngx_int_t ngx_mcp_pass_on(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

ngx_int_t ngx_mcp_pass_check_era(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_pass_other(ngx_http_request_t *r);
ngx_int_t ngx_mcp_pass_unparsed(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *body);

/* ngx_mcp_accel.c */

ngx_int_t ngx_mcp_accel_init(ngx_conf_t *cf);

/* ngx_mcp_filter.c */

ngx_int_t ngx_mcp_filter_init(ngx_conf_t *cf);

/* ngx_mcp_detached.c */

ngx_int_t ngx_mcp_detached_process(ngx_cycle_t *cycle);

/* ngx_mcp_job.c */

/*
 * The first two functions create a job that has no task yet: it must be passed
 * to ngx_mcp_job_begin() when its task exists, or to ngx_mcp_job_free().
 */
ngx_mcp_job_t *ngx_mcp_job_new(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_uint_t *bound);
ngx_mcp_job_t *ngx_mcp_job_again(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v);
ngx_mcp_loc_conf_t *ngx_mcp_job_gateway(ngx_mcp_zone_t *zone,
    ngx_mcp_view_t *v);
uint64_t ngx_mcp_job_holder(ngx_mcp_job_t *job);
void ngx_mcp_job_begin(ngx_mcp_job_t *job, ngx_mcp_view_t *v);
void ngx_mcp_job_free(ngx_mcp_job_t *job);
void ngx_mcp_job_caller(ngx_mcp_job_t *job, ngx_mcp_ctx_t *ctx);
void ngx_mcp_job_left(ngx_mcp_ctx_t *ctx);

/* ngx_mcp_jobs.c */

ngx_int_t ngx_mcp_jobs_init(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_jobs_leave(ngx_mcp_zone_t *zone);

/* hooks of the worker process: another process died; this one exits */
void ngx_mcp_jobs_orphans(void *data);
void ngx_mcp_jobs_exit(void *data);


#endif /* _NGX_MCP_GATEWAY_H_INCLUDED_ */
