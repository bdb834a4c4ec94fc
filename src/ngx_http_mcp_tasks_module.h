
/* What the parts of the module that know HTTP have in common. */


#ifndef _NGX_HTTP_MCP_TASKS_MODULE_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_MODULE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_mcp_tasks_op.h"
#include "ngx_http_mcp_tasks_rpc.h"


#define NGX_HTTP_MCP_TASKS_NAME      "nginx-mcp-tasks"
#define NGX_HTTP_MCP_TASKS_VERSION   "0.1.0"


/* a zone of one configuration; the zone itself lives on when it is reloaded */

typedef struct {
    ngx_http_mcp_tasks_zone_t     zone;      /* must be the first */
    ngx_shm_zone_t               *shm_zone;
    uint64_t                      max_tasks;
    ngx_event_t                   sweep;
    ngx_connection_t              dummy;     /* debug logs want an fd of it */
} ngx_http_mcp_tasks_zone_conf_t;


typedef struct {
    ngx_array_t                   zones;     /* of .._zone_conf_t * */
} ngx_http_mcp_tasks_main_conf_t;


typedef struct {
    ngx_http_mcp_tasks_zone_conf_t  *zone;
} ngx_http_mcp_tasks_loc_conf_t;


/* what is known of a request to the MCP endpoint */

typedef struct {
    ngx_http_mcp_tasks_rpc_t      rpc;
    ngx_http_mcp_tasks_json_t     meta;      /* params._meta */
    ngx_http_mcp_tasks_json_t     version;   /* of the protocol, from there */
} ngx_http_mcp_tasks_ctx_t;


typedef ngx_int_t (*ngx_http_mcp_tasks_method_pt)(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);

typedef struct {
    ngx_str_t                     name;
    ngx_http_mcp_tasks_method_pt  handler;
} ngx_http_mcp_tasks_method_t;


/* ngx_http_mcp_tasks_endpoint.c */

ngx_int_t ngx_http_mcp_tasks_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_mcp_tasks_call(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_http_mcp_tasks_method_t *methods,
    ngx_uint_t status);

/* ngx_http_mcp_tasks_legacy.c, ngx_http_mcp_tasks_modern.c */

ngx_int_t ngx_http_mcp_tasks_legacy(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
ngx_int_t ngx_http_mcp_tasks_modern(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);

extern ngx_str_t  ngx_http_mcp_tasks_modern_version;

/* ngx_http_mcp_tasks_request.c */

ngx_int_t ngx_http_mcp_tasks_body(ngx_http_request_t *r, ngx_str_t *body);
ngx_uint_t ngx_http_mcp_tasks_header(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value);
ngx_uint_t ngx_http_mcp_tasks_is_json(ngx_http_request_t *r);
ngx_uint_t ngx_http_mcp_tasks_accepts(ngx_http_request_t *r);

/* ngx_http_mcp_tasks_reply.c */

ngx_int_t ngx_http_mcp_tasks_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *parts, ngx_uint_t n);
ngx_int_t ngx_http_mcp_tasks_result(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_str_t *result);
ngx_int_t ngx_http_mcp_tasks_error(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_uint_t status, ngx_int_t code,
    const char *message, ngx_str_t *data);
ngx_int_t ngx_http_mcp_tasks_invalid(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_uint_t status, const char *what);
ngx_int_t ngx_http_mcp_tasks_accepted(ngx_http_request_t *r);

/* ngx_http_mcp_tasks_sweep.c */

ngx_int_t ngx_http_mcp_tasks_sweep_init(ngx_cycle_t *cycle,
    ngx_http_mcp_tasks_zone_conf_t *zcf);

/* ngx_http_mcp_tasks_probe.c, in the test build only */

char *ngx_http_mcp_tasks_probe(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_mcp_tasks_module.c */

ngx_http_mcp_tasks_zone_conf_t *ngx_http_mcp_tasks_zone_arg(ngx_conf_t *cf,
    ngx_str_t *value);

extern ngx_module_t  ngx_http_mcp_tasks_module;


#endif /* _NGX_HTTP_MCP_TASKS_MODULE_H_INCLUDED_ */
