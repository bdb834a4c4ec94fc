
/* What is known of a location and of a request, by all that know HTTP. */


#ifndef _NGX_MCP_HTTP_TYPES_H_INCLUDED_
#define _NGX_MCP_HTTP_TYPES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_mcp_zone.h"
#include "ngx_mcp_out.h"
#include "ngx_mcp_revision.h"
#include "ngx_mcp_rpc.h"


/* of status messages and reasons, as JSON */
#define NGX_MCP_MAX_MESSAGE  1024

/* what we add to the tasks of the specification */
#define NGX_MCP_EXTENSION  "org.nginx.mcp-tasks/extended"


typedef struct ngx_mcp_ctx_s           ngx_mcp_ctx_t;
typedef struct ngx_mcp_merge_filter_s  ngx_mcp_merge_filter_t;


typedef struct {
    /* of the surface that the location is; not inherited */
    ngx_mcp_zone_t            *zone;
    ngx_http_core_loc_conf_t  *location;
    ngx_http_handler_pt        handler;
    ngx_flag_t                 open;      /* to others than loopback */
    ngx_flag_t                 admin;     /* the console changes tasks */
    ngx_uint_t                 format;    /* of the status */

    ngx_http_complex_value_t  *owner;
    ngx_array_t               *tools;     /* of ngx_mcp_tool_t */
    ngx_array_t               *names;     /* of ngx_mcp_server_name_t */
    ngx_array_t               *origins;   /* of ngx_str_t */
    ngx_flag_t                 any_origin;

    ngx_msec_t                 ttl;
    ngx_msec_t                 max_ttl;
    ngx_msec_t                 keep_completed;
    ngx_msec_t                 keep_failed;
    ngx_msec_t                 keep_cancelled;
    ngx_msec_t                 queue_timeout;
    ngx_msec_t                 run_timeout;
    ngx_msec_t                 poll_interval;
    ngx_msec_t                 keepalive;
    ngx_msec_t                 poll_timeout;
    ngx_msec_t                 max_poll_timeout;
    ngx_uint_t                 max_waiters;
    ngx_uint_t                 max_zone_waiters;
    ngx_msec_t                 lease;
    ngx_msec_t                 backoff;
    ngx_uint_t                 retries;

    ngx_uint_t                 max_owner_tasks;
    size_t                     max_owner_bytes;
    size_t                     max_payload;

    /* of a gateway */
    ngx_str_t                  pass;      /* URI; empty: none */
    ngx_uint_t                 pass_eras;
    ngx_array_t               *routes;    /* of ngx_mcp_tool_t */
    ngx_uint_t                 max_running;
    ngx_uint_t                 max_tool_running;
    uint32_t                   route;     /* of the tasks made here */
    ngx_http_conf_ctx_t       *conf_ctx;  /* of its server */

    /* a body that is no message: NGX_DECLINED, or what to finalize with */
    ngx_int_t                (*unparsed)(ngx_http_request_t *r,
                                         ngx_mcp_ctx_t *ctx, ngx_str_t *body);

#if (NGX_MCP_TEST)
    ngx_str_t                  stub[2];   /* the answer */
#endif
} ngx_mcp_loc_conf_t;


typedef enum {
    NGX_MCP_FORMAT_ANY = 0,       /* as the client wants it */
    NGX_MCP_FORMAT_JSON,
    NGX_MCP_FORMAT_PROMETHEUS
} ngx_mcp_format_e;


/* what an upstream speaks */
#define NGX_MCP_PASS_LEGACY  1
#define NGX_MCP_PASS_MODERN  2


typedef enum {
    NGX_MCP_LEGACY = 0,
    NGX_MCP_MODERN
} ngx_mcp_era_e;


/* what most requests have in their params, found when they are parsed */

typedef struct {
    ngx_mcp_json_t  id;        /* taskId */
    ngx_mcp_json_t  name;
    ngx_mcp_json_t  arguments;
    ngx_mcp_json_t  task;      /* what kind of it is wanted */
    ngx_mcp_json_t  ttl;       /* of that */

    /* of _meta */
    ngx_mcp_json_t  meta;
    ngx_mcp_json_t  version;   /* of the protocol */
    ngx_mcp_json_t  token;     /* progressToken */
    ngx_mcp_json_t  client;
    ngx_mcp_json_t  capabilities;

    /* of the client's capabilities */
    ngx_mcp_json_t  elicitation;
    ngx_mcp_json_t  sampling;
    ngx_mcp_json_t  roots;
    ngx_mcp_json_t  extensions;
    ngx_mcp_json_t  tasks;
    ngx_mcp_json_t  extended;
} ngx_mcp_request_params_t;


/* how a task is shown, and what of it that takes */

typedef struct {
    ngx_uint_t       want;
    void           (*render)(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
                             ngx_mcp_zone_t *zone);
} ngx_mcp_shows_t;


/* what is known of a request */

struct ngx_mcp_ctx_s {
    ngx_mcp_rpc_t              rpc;       /* must be the first */
    ngx_uint_t                 era;
    ngx_str_t                  owner;     /* empty: not identified */
    ngx_str_t                  session;   /* legacy; empty: none */

    ngx_mcp_request_params_t   params;

    /* the client knows: tasks; and what we add to them */
    unsigned                   tasks:1;
    unsigned                   extended:1;

    /* and can answer these, in the modern era */
    unsigned                   elicitation:1;
    unsigned                   sampling:1;
    unsigned                   roots:1;

    unsigned                   asked:1;   /* as long as it is a call */
    unsigned                   rest:1;    /* not JSON-RPC at all */
    unsigned                   console:1; /* sees the tasks of all */
    unsigned                   passed:1;  /* to the upstream */
    unsigned                   detached:1; /* no client waits for it */

    ngx_uint_t                 merge;     /* with what the upstream says */
    ngx_mcp_merge_filter_t    *merge_filter;
    ngx_mcp_loc_conf_t        *lcf;       /* of what was passed */
    struct ngx_mcp_job_s      *job;       /* the call waits for it */

    ngx_mcp_shows_t           *shows;     /* tasks, over plain HTTP */

    /* of REST: which task, what to do with the body, and the body */
    ngx_mcp_id_t               id;
    ngx_int_t                (*then)(ngx_http_request_t *r,
                                     struct ngx_mcp_ctx_s *ctx);
    ngx_mcp_json_t             body;

    /* for variables */
    ngx_str_t                  tool;
    ngx_str_t                  task_id;
    ngx_str_t                 *status;
    ngx_str_t                  client;
    ngx_int_t                  error;

    struct ngx_mcp_calling_s  *call;
    struct ngx_mcp_wait_s     *wait;
};


/* whose tasks the request may see; NULL: anybody's */
#define ngx_mcp_whose(ctx)  ((ctx)->console ? NULL : &(ctx)->owner)


typedef ngx_int_t (*ngx_mcp_method_pt)(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);

/* who may call a method, in one of the eras */

typedef enum {
    NGX_MCP_NOBODY = 0,
    NGX_MCP_ANYBODY,
    NGX_MCP_IF_TASKS,           /* whoever knows tasks */
    NGX_MCP_IF_EXTENDED         /* and what we add to them */
} ngx_mcp_callers_e;


/* what a request's params have, in its context */
#define ngx_mcp_param_offset(member)  offsetof(ngx_mcp_ctx_t, params.member)

typedef struct {
    ngx_str_t          name;
    ngx_mcp_method_pt  handler;

    /* of the endpoint */
    ngx_uint_t         legacy;
    ngx_uint_t         modern;
    size_t             repeated;  /* in Mcp-Name; 0: nothing is */
} ngx_mcp_method_t;


/* goes on after an operation, and returns what to finalize with */

typedef ngx_int_t (*ngx_mcp_done_pt)(ngx_http_request_t *r, ngx_mcp_op_t *op);


extern ngx_module_t  ngx_http_mcp_tasks_module;


#endif /* _NGX_MCP_HTTP_TYPES_H_INCLUDED_ */
