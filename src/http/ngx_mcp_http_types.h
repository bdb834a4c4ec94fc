
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The configuration of a location, and the context of a request. */


#ifndef _NGX_MCP_HTTP_TYPES_H_INCLUDED_
#define _NGX_MCP_HTTP_TYPES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_mcp_zone.h"
#include "ngx_mcp_out.h"
#include "ngx_mcp_revision.h"
#include "ngx_mcp_rpc.h"
#include "ngx_mcp_trace.h"


typedef struct ngx_mcp_ctx_s           ngx_mcp_ctx_t;
typedef struct ngx_mcp_element_s       ngx_mcp_element_t;
typedef struct ngx_mcp_merge_filter_s  ngx_mcp_merge_filter_t;
typedef struct ngx_mcp_url_filter_s    ngx_mcp_url_filter_t;


typedef struct {
    /* the surface of the location; not inherited */
    ngx_mcp_zone_t            *zone;
    ngx_http_core_loc_conf_t  *location;
    ngx_http_handler_pt        handler;
    ngx_flag_t                 open;      /* public: not only for loopback */
    ngx_flag_t                 admin;     /* the console may change tasks */
    ngx_uint_t                 format;    /* ngx_mcp_format_e, of the status */

    ngx_http_complex_value_t  *owner;
    ngx_array_t               *tools;     /* of ngx_mcp_tool_t */
    ngx_array_t               *names;     /* of ngx_http_server_name_t */
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

    /* what clients may request at most; 0, NGX_MCP_PRIORITIES: nothing */
    ngx_msec_t                 client_timeout;
    ngx_uint_t                 client_priority;

    ngx_uint_t                 max_owner_tasks;
    size_t                     max_owner_bytes;
    size_t                     max_payload;

    /* a gateway */
    ngx_str_t                  pass;      /* URI; empty: not a gateway */
    ngx_uint_t                 pass_eras; /* mask of NGX_MCP_PASS_* */
    ngx_array_t               *schemas;   /* of ngx_mcp_tool_t; may be NULL */
    ngx_array_t               *routes;    /* of ngx_mcp_tool_t */
    ngx_uint_t                 max_running;
    ngx_uint_t                 max_tool_running;
    uint32_t                   route;     /* identifies it in its tasks */
    ngx_http_conf_ctx_t       *conf_ctx;  /* of the server block */

    /*
     * Handles a body that is not a JSON-RPC message; may be NULL.
     * NGX_DECLINED: the body is invalid; any other value finalizes the request.
     */
    ngx_int_t                (*unparsed)(ngx_http_request_t *r,
                                         ngx_mcp_ctx_t *ctx, ngx_str_t *body);

#if (NGX_MCP_TEST)
    ngx_str_t                  stub[2];   /* response, around the id */
#endif
} ngx_mcp_loc_conf_t;


typedef enum {
    NGX_MCP_FORMAT_ANY = 0,       /* depends on the Accept header */
    NGX_MCP_FORMAT_JSON,
    NGX_MCP_FORMAT_PROMETHEUS
} ngx_mcp_format_e;


/* the eras that an upstream supports, a mask */
#define NGX_MCP_PASS_LEGACY  1
#define NGX_MCP_PASS_MODERN  2


typedef enum {
    NGX_MCP_LEGACY = 0,
    NGX_MCP_MODERN
} ngx_mcp_era_e;


/* members of params that many methods use, found when a message is parsed */

typedef struct {
    ngx_mcp_json_t  id;        /* taskId */
    ngx_mcp_json_t  name;
    ngx_mcp_json_t  arguments;
    ngx_mcp_json_t  task;      /* legacy: requests a task */
    ngx_mcp_json_t  ttl;       /* of the requested task */

    /* members of _meta */
    ngx_mcp_json_t  meta;
    ngx_mcp_json_t  version;   /* protocolVersion */
    ngx_mcp_json_t  token;     /* progressToken */
    ngx_mcp_json_t  client;    /* clientInfo */
    ngx_mcp_json_t  capabilities;
    ngx_mcp_json_t  trace[NGX_MCP_TRACES];
    ngx_mcp_json_t  timeout;   /* of an attempt */
    ngx_mcp_json_t  priority;

    /* members of the client's capabilities */
    ngx_mcp_json_t  elicitation;
    ngx_mcp_json_t  sampling;
    ngx_mcp_json_t  roots;
    ngx_mcp_json_t  extensions;
    ngx_mcp_json_t  tasks;     /* the tasks extension */
    ngx_mcp_json_t  extended;  /* NGX_MCP_EXTENSION */
    ngx_mcp_json_t  extended_old;
} ngx_mcp_request_params_t;


/* how a surface renders a task, and which parts of it that needs */

typedef struct {
    ngx_uint_t       want;
    void           (*render)(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
                             ngx_mcp_zone_t *zone);
} ngx_mcp_renderer_t;


/* the context of a request */

struct ngx_mcp_ctx_s {
    ngx_mcp_rpc_t              rpc;       /* must be the first */
    ngx_uint_t                 era;       /* ngx_mcp_era_e */
    ngx_str_t                  owner;     /* empty: not identified */
    ngx_str_t                  session;   /* legacy; empty: none */

    ngx_mcp_request_params_t   params;
    ngx_mcp_revision_t        *revision;  /* legacy: of the request */
    ngx_uint_t                 can;       /* mask of NGX_MCP_CAN_* */

    /* the client supports tasks, and NGX_MCP_EXTENSION */
    unsigned                   tasks:1;
    unsigned                   extended:1;

    unsigned                   asked:1;   /* questions end the call */
    unsigned                   rest:1;    /* REST or console, no JSON-RPC */
    unsigned                   console:1; /* sees the tasks of all owners */
    unsigned                   passed:1;  /* to the upstream */
    unsigned                   detached:1; /* nginx made it, for a job */

    ngx_uint_t                 merge;     /* NGX_MCP_MERGE_*; 0: nothing */
    ngx_mcp_merge_filter_t    *merge_filter;
    ngx_mcp_url_filter_t      *url_filter;
    ngx_array_t               *encodings; /* the client's, while passed */
    ngx_mcp_loc_conf_t        *lcf;       /* of the gateway, if passed */
    struct ngx_mcp_job_s      *job;       /* that this call waits for */

    ngx_mcp_renderer_t        *renderer;  /* for REST and the console */

    /* REST and console: the task, the handler of the body, and the body */
    ngx_mcp_id_t               id;
    ngx_int_t                (*body_handler)(ngx_http_request_t *r,
                                             struct ngx_mcp_ctx_s *ctx);
    ngx_mcp_json_t             body;

    /* values of variables */
    ngx_str_t                  tool;
    ngx_str_t                  task_id;
    ngx_str_t                 *status;    /* NULL: no task */
    ngx_str_t                  client;
    ngx_mcp_trace_t           *trace;     /* NULL: not determined yet */
    ngx_int_t                  error;     /* JSON-RPC code; 0: none */

    struct ngx_mcp_calling_s  *call;
    struct ngx_mcp_wait_s     *wait;
    ngx_mcp_element_t         *element;   /* of a batch; NULL: not in one */
};


/* the owner whose tasks the request may access; NULL: all owners */
#define ngx_mcp_visible_owner(ctx)  ((ctx)->console ? NULL : &(ctx)->owner)


typedef ngx_int_t (*ngx_mcp_method_pt)(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);

/* the clients that may call a method, in one of the eras */

typedef enum {
    NGX_MCP_CALLERS_NONE = 0,
    NGX_MCP_CALLERS_ALL,
    NGX_MCP_CALLERS_TASKS,      /* clients that support tasks */
    NGX_MCP_CALLERS_EXTENDED    /* clients with NGX_MCP_EXTENSION */
} ngx_mcp_callers_e;


/* the offset of a member of params in the request's context */
#define ngx_mcp_param_offset(member)  offsetof(ngx_mcp_ctx_t, params.member)

typedef struct {
    ngx_str_t          name;
    ngx_mcp_method_pt  handler;

    /* of the endpoint: which clients may call it, ngx_mcp_callers_e */
    ngx_uint_t         legacy;
    ngx_uint_t         modern;
    size_t             repeated;  /* offset of what Mcp-Name repeats; 0: none */
} ngx_mcp_method_t;


/* continues a request after an operation; returns the value to finalize with */

typedef ngx_int_t (*ngx_mcp_done_pt)(ngx_http_request_t *r, ngx_mcp_op_t *op);


extern ngx_module_t  ngx_http_mcp_tasks_module;


#endif /* _NGX_MCP_HTTP_TYPES_H_INCLUDED_ */
