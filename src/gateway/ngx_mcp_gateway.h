
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The gateway: MCP servers behind nginx that know nothing of tasks.
 *
 * What is not ours goes to the upstream by an internal redirect, and back.  A
 * call that becomes a task is a job: a request of its own to the upstream,
 * which lives on when the client leaves.
 */


#ifndef _NGX_MCP_GATEWAY_H_INCLUDED_
#define _NGX_MCP_GATEWAY_H_INCLUDED_


#include "ngx_mcp_http.h"


typedef struct ngx_mcp_job_s  ngx_mcp_job_t;

/* answers a message that does not go to the upstream */
typedef ngx_int_t (*ngx_mcp_ours_pt)(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);


/* ngx_mcp_route.c */

char *ngx_mcp_set_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_tool(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_conf_merge_pass(ngx_conf_t *cf, ngx_mcp_loc_conf_t *prev,
    ngx_mcp_loc_conf_t *conf);
ngx_mcp_tool_t *ngx_mcp_route_find(ngx_mcp_loc_conf_t *lcf, ngx_str_t *name);

/* ngx_mcp_pass.c */

ngx_int_t ngx_mcp_pass(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_pass_message(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t modern, ngx_mcp_ours_pt ours);
ngx_int_t ngx_mcp_pass_speaks(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
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

/* hooks of the process */
void ngx_mcp_jobs_orphans(void *data);
void ngx_mcp_jobs_exit(void *data);


#endif /* _NGX_MCP_GATEWAY_H_INCLUDED_ */
