
/* What the parts of the module that know HTTP have in common. */


#ifndef _NGX_MCP_MODULE_H_INCLUDED_
#define _NGX_MCP_MODULE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_mcp_op.h"
#include "ngx_mcp_rpc.h"
#include "ngx_mcp_out.h"
#include "ngx_mcp_tools.h"
#include "ngx_mcp_sse.h"
#include "ngx_mcp_wake.h"
#include "ngx_mcp_stored.h"


#define NGX_MCP_NAME      "nginx-mcp-tasks"
#define NGX_MCP_VERSION   "0.1.0"


#define NGX_MCP_SERVER_INFO                                                   \
    "{\"name\":\"" NGX_MCP_NAME "\","                                         \
    "\"version\":\"" NGX_MCP_VERSION "\"}"

/* of status messages and reasons, as JSON */
#define NGX_MCP_MAX_MESSAGE  1024

/* what we add to the tasks of the specification */
#define NGX_MCP_EXTENSION  "org.nginx.mcp-tasks/extended"


/* a zone of one configuration; the zone itself lives on when it is reloaded */

typedef struct {
    ngx_mcp_zone_t    zone;      /* must be the first */
    ngx_shm_zone_t   *shm_zone;
    uint64_t          max_tasks;
    ngx_mcp_local_t   local;
    ngx_mcp_stored_t  stored;
    ngx_array_t       gateways;  /* of .._loc_conf_t * */
    ngx_event_t       sweep;
    ngx_connection_t  dummy;     /* debug logs want an fd of it */
} ngx_mcp_zone_conf_t;


typedef struct {
    ngx_array_t  zones;     /* of .._zone_conf_t * */
} ngx_mcp_main_conf_t;


typedef struct {
    /* of the surface that the location is; not inherited */
    ngx_mcp_zone_conf_t       *zone;
    ngx_http_core_loc_conf_t  *location;
    ngx_http_handler_pt        handler;
    ngx_flag_t                 open;      /* to others than loopback */
    ngx_flag_t                 admin;     /* the console changes tasks */
    ngx_uint_t                 format;    /* of the status */

    ngx_http_complex_value_t  *owner;
    ngx_array_t               *tools;     /* of .._tool_t */
    ngx_array_t               *names;     /* of .._server_name_t */
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
    ngx_array_t               *routes;    /* of .._tool_t */
    ngx_uint_t                 max_running;
    ngx_uint_t                 max_tool_running;
    uint32_t                   route;     /* of the tasks made here */
    ngx_http_conf_ctx_t       *conf_ctx;  /* of its server */

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
} ngx_mcp_said_t;


/* what is known of a request */

typedef struct ngx_mcp_ctx_s {
    ngx_mcp_rpc_t              rpc;       /* must be the first */
    ngx_uint_t                 era;
    ngx_str_t                  owner;     /* empty: not identified */
    ngx_str_t                  session;   /* legacy; empty: none */

    ngx_mcp_said_t             said;

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

    ngx_uint_t                 merge;     /* with what the upstream says */
    struct ngx_mcp_merged_s   *merged;
    ngx_mcp_loc_conf_t        *lcf;       /* of what was passed */
    struct ngx_mcp_job_s      *job;       /* the call waits for it */

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
} ngx_mcp_ctx_t;


/* whose tasks the request may see; NULL: anybody's */
#define ngx_mcp_whose(ctx)                                                    \
    ((ctx)->console ? NULL : &(ctx)->owner)


typedef struct ngx_mcp_merged_s  ngx_mcp_merged_t;

typedef ngx_int_t (*ngx_mcp_method_pt)(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);

typedef struct {
    ngx_str_t          name;
    ngx_mcp_method_pt  handler;
} ngx_mcp_method_t;


/* goes on after an operation, and returns what to finalize with */

typedef ngx_int_t (*ngx_mcp_done_pt)(ngx_http_request_t *r, ngx_mcp_op_t *op);


/* the members of a request's params that are looked for */
#define ngx_mcp_members(ctx, members, n)                                      \
    ngx_mcp_json_members(&(ctx)->rpc.params, members, n)


/* ngx_mcp_endpoint.c */

ngx_int_t ngx_mcp_handler(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_is_location(ngx_http_request_t *r, ngx_str_t *path);
ngx_int_t ngx_mcp_dispatch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_method_t *methods);
ngx_int_t ngx_mcp_read(ngx_http_request_t *r, ngx_mcp_ctx_t **ctx);
ngx_int_t ngx_mcp_refuse(ngx_http_request_t *r, ngx_uint_t status,
    ngx_int_t code, const char *why);
ngx_int_t ngx_mcp_post(ngx_http_request_t *r,
    ngx_http_client_body_handler_pt handler);

/* ngx_mcp_legacy.c, ngx_mcp_modern.c */

ngx_int_t ngx_mcp_legacy(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_modern(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

ngx_uint_t ngx_mcp_modern_params(ngx_http_request_t *r, ngx_mcp_tool_t *tool,
    ngx_mcp_json_t *arguments);
ngx_int_t ngx_mcp_mismatch(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *message);
ngx_int_t ngx_mcp_no_capability(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_lacks(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *data);

ngx_uint_t ngx_mcp_legacy_tasks(ngx_str_t *version);
ngx_int_t ngx_mcp_legacy_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_modern_refuse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

extern ngx_str_t  ngx_mcp_modern_version;

/* ngx_mcp_origin.c, ngx_mcp_session.c */

ngx_uint_t ngx_mcp_origin(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_same_origin(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_local(ngx_http_request_t *r);
ngx_int_t ngx_mcp_session_new(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_session_check(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_session_end(ngx_http_request_t *r);
ngx_int_t ngx_mcp_owner(ngx_http_request_t *r, ngx_str_t *owner);
ngx_int_t ngx_mcp_options(ngx_http_request_t *r, const char *allow);

/* ngx_mcp_call.c: tools/list, tools/call, tasks/create */

ngx_int_t ngx_mcp_tools_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
const char *ngx_mcp_token(ngx_pool_t *pool, ngx_mcp_json_t *token,
    ngx_str_t *value);
ngx_int_t ngx_mcp_tools_call(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_create(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_mcp_op_create_t *ngx_mcp_call_new(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_str_t *name, ngx_mcp_tool_t *tool);
const char *ngx_mcp_call_ttl(ngx_mcp_loc_conf_t *lcf, ngx_mcp_json_t *ttl,
    uint64_t *value);

/* ngx_mcp_tasks.c: tasks/... */

ngx_int_t ngx_mcp_tasks_get(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_list(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_cancel(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_update(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_tasks_progress(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
const char *ngx_mcp_progress_args(ngx_mcp_json_t *progress,
    ngx_mcp_json_t *total, ngx_mcp_json_t *message, ngx_mcp_op_update_t *op);
ngx_int_t ngx_mcp_response(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_uint_t ngx_mcp_states_of(ngx_uint_t era, ngx_str_t *status);

/* ngx_mcp_run.c */

ngx_int_t ngx_mcp_run(ngx_http_request_t *r, ngx_mcp_op_t *op,
    ngx_mcp_done_pt done);
ngx_int_t ngx_mcp_now(ngx_mcp_zone_conf_t *zcf, ngx_mcp_op_t *op);
void *ngx_mcp_op(ngx_http_request_t *r, ngx_uint_t type, size_t size);
ngx_int_t ngx_mcp_answer(ngx_http_request_t *r, ngx_mcp_id_t *id,
    uint64_t version, ngx_mcp_json_t *answers, ngx_mcp_done_pt done);

/* ngx_mcp_render.c */

#define NGX_MCP_WANT_TASK                                                     \
    NGX_MCP_WANT(NGX_MCP_MESSAGE)
#define NGX_MCP_WANT_DETAIL                                                   \
    (NGX_MCP_WANT(NGX_MCP_MESSAGE)                                            \
     | NGX_MCP_WANT(NGX_MCP_RESULT)                                           \
     | NGX_MCP_WANT(NGX_MCP_REQUESTS))

#define NGX_MCP_WANT_REST                                                     \
    (NGX_MCP_WANT_DETAIL | NGX_MCP_WANT_TOOL)

void ngx_mcp_render_task(ngx_mcp_out_t *out, ngx_uint_t era,
    ngx_mcp_view_t *v);
void ngx_mcp_render_created(ngx_mcp_out_t *out, ngx_uint_t era,
    ngx_mcp_view_t *v);
void ngx_mcp_render_detail(ngx_mcp_out_t *out, ngx_mcp_view_t *v);
void ngx_mcp_render_rest(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_uint_t detail);
void ngx_mcp_render_short(ngx_mcp_out_t *out, ngx_mcp_view_t *v);
void ngx_mcp_render_progress(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_str_t *token, ngx_uint_t related);
void ngx_mcp_render_outcome(ngx_mcp_out_t *out, ngx_uint_t era,
    ngx_mcp_view_t *v, ngx_uint_t related);
void ngx_mcp_render_question(ngx_mcp_out_t *out, ngx_mcp_view_t *v,
    ngx_mcp_json_t *key, ngx_mcp_json_t *question);
void ngx_mcp_render_cursor(ngx_mcp_out_t *out, ngx_mcp_zone_t *zone,
    ngx_str_t *owner, ngx_mcp_cursor_t *next);
void ngx_mcp_render_tool(ngx_mcp_out_t *out, ngx_array_t *tools, ngx_uint_t i,
    ngx_uint_t support);
void ngx_mcp_render_error(ngx_mcp_out_t *out, ngx_mcp_view_t *v);
ngx_str_t *ngx_mcp_render_status(ngx_uint_t era, ngx_mcp_task_t *task);

/* ngx_mcp_wait.c */

typedef struct ngx_mcp_wait_s  ngx_mcp_wait_t;

struct ngx_mcp_wait_s {
    ngx_http_request_t   *r;
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_zone_conf_t  *zcf;

    /* NGX_DECLINED: not over yet; else it is what to finalize with */
    ngx_int_t           (*look)(ngx_mcp_wait_t *w);
    /* the request ends; not if it was answered.  May be NULL */
    void                (*gone)(ngx_mcp_wait_t *w);

    ngx_queue_t           queue;     /* of all in this process */
    ngx_mcp_watch_t       watch;     /* of the task, if it has one */
    ngx_mcp_watch_t      *watches;   /* or of several things */
    ngx_uint_t            nwatches;

    ngx_mcp_id_t          id;
    uint64_t              until;     /* monotonic; NEVER: no limit */
    uint64_t              alive;     /* when something was sent */
    uint64_t              rests;     /* and does not look before */
    uint64_t              stream_id; /* 0: it asks nothing */

    /* posted when there is something to look at; a timer, too */
    ngx_event_t           event;

    /* debug logs want an fd of what an event is for */
    struct {
        ngx_mcp_wait_t  *data;
        ngx_event_t     *read;
        ngx_event_t     *write;
        ngx_socket_t     fd;
    } ident;

    ngx_chain_t          *free;
    ngx_chain_t          *busy;      /* not sent yet */
    ngx_mcp_shared_t     *shared;    /* what busy buffers refer to */

    uint32_t              epoch;
    unsigned              task:1;    /* waits for that id */
    unsigned              result:1;  /* is tasks/result */
    unsigned              session:1; /* speaks for its session */
    unsigned              limited:1; /* counts as a waiter */
    unsigned              streams:1; /* SSE may be used */
    unsigned              stream:1;  /* and is */
    unsigned              parked:1;
    unsigned              counted:1;
    unsigned              missed:1;  /* there is more to tell */
    unsigned              over:1;
};

/* what was told is on its way: there may be bytes of it that no buffer of
 * ours holds any more, but the connection does */
#define ngx_mcp_wait_busy(w)                                                  \
    ((w)->busy || (w)->r->connection->buffered)

void ngx_mcp_wait_init(ngx_mcp_wait_t *w, ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_wait(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_begin(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_message(ngx_mcp_wait_t *w, ngx_str_t *id,
    ngx_str_t *message);
ngx_int_t ngx_mcp_wait_text(ngx_mcp_wait_t *w, ngx_str_t *text);
ngx_int_t ngx_mcp_wait_share(ngx_mcp_wait_t *w, ngx_mcp_shared_t *shared);
ngx_int_t ngx_mcp_wait_end(ngx_mcp_wait_t *w, ngx_str_t *message);
ngx_int_t ngx_mcp_wait_close(ngx_mcp_wait_t *w);
void ngx_mcp_wait_all(ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_wait_recount(ngx_mcp_zone_conf_t *zcf);

/* ngx_mcp_outcome.c */

ngx_int_t ngx_mcp_wait_outcome(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_id_t *id, ngx_uint_t mode, ngx_msec_t after);
ngx_int_t ngx_mcp_wait_ask(ngx_mcp_wait_t *w, ngx_mcp_view_t *v,
    ngx_pool_t *pool);

/* why an outcome is waited for */
#define NGX_MCP_WAIT_CALL     0    /* a plain call */
#define NGX_MCP_WAIT_AFTER    1    /* then hand out the task */
#define NGX_MCP_WAIT_RESULT   2    /* tasks/result */

/* ngx_mcp_rest.c */

/* nginx has no name for it */
#define NGX_MCP_GONE   410

#define NGX_MCP_READS  (NGX_HTTP_GET|NGX_HTTP_HEAD)

/* what there is, and what may be done with it; a list ends without methods */

typedef struct {
    ngx_str_t          name;
    ngx_uint_t         methods;
    const char        *allow;
    ngx_mcp_method_pt  read;      /* or any without a body */
    ngx_mcp_method_pt  post;
} ngx_mcp_resource_t;

typedef struct {
    ngx_mcp_resource_t  *all;
    ngx_str_t            tasks;    /* an id follows it, and then: */
    ngx_mcp_resource_t  *one;
} ngx_mcp_resources_t;

ngx_int_t ngx_mcp_rest(ngx_http_request_t *r, ngx_str_t *path);
ngx_mcp_resource_t *ngx_mcp_rest_route(ngx_mcp_ctx_t *ctx,
    ngx_mcp_resources_t *resources, ngx_str_t *path);
ngx_int_t ngx_mcp_rest_serve(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_resource_t *resource);
ngx_int_t ngx_mcp_rest_allow(ngx_http_request_t *r, const char *allow);
ngx_int_t ngx_mcp_rest_type(ngx_http_request_t *r);
ngx_int_t ngx_mcp_problem(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *reason, const char *detail);
ngx_int_t ngx_mcp_rest_invalid(ngx_http_request_t *r, const char *detail);
ngx_int_t ngx_mcp_rest_refused(ngx_http_request_t *r, ngx_uint_t reason);
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
u_char *ngx_mcp_change_id(u_char *p, ngx_mcp_table_t *t, uint64_t changed);
uint64_t ngx_mcp_last_change(ngx_http_request_t *r, ngx_mcp_table_t *t);
ngx_uint_t ngx_mcp_is_resumed(ngx_http_request_t *r);

#define NGX_MCP_CHANGE_LEN  (9 + NGX_INT64_LEN)

/* ngx_mcp_stream.c, ngx_mcp_listen.c */

ngx_int_t ngx_mcp_stream_open(ngx_http_request_t *r);
ngx_int_t ngx_mcp_listen(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_rounds.c */

typedef struct {
    ngx_mcp_json_t  responses; /* NONE: it is the first round */
    ngx_mcp_json_t  state;
    ngx_mcp_id_t    id;        /* from the state */
    uint64_t        version;
} ngx_mcp_round_t;

ngx_int_t ngx_mcp_round_parse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_round_t *round);
ngx_int_t ngx_mcp_round_invalid(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_round_ask(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_view_t *v);
const char *ngx_mcp_round_lacks(ngx_mcp_ctx_t *ctx, ngx_mcp_view_t *v);

/* ngx_mcp_worker.c */

ngx_int_t ngx_mcp_worker_handler(ngx_http_request_t *r);
uint64_t ngx_mcp_lease(ngx_mcp_json_t *value);

/* ngx_mcp_status.c */

ngx_int_t ngx_mcp_status_handler(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_status_format(ngx_str_t *name);

/* ngx_mcp_variables.c */

ngx_int_t ngx_mcp_client(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
void ngx_mcp_known(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_view_t *v);

ngx_int_t ngx_mcp_add_variables(ngx_conf_t *cf);

/* ngx_mcp_conf.c */

void *ngx_mcp_create_loc_conf(ngx_conf_t *cf);
char *ngx_mcp_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);
char *ngx_mcp_set_owner(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_tools(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_origin(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_args(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_mcp_route.c */

char *ngx_mcp_set_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_tool(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_merge_pass(ngx_conf_t *cf, ngx_mcp_loc_conf_t *prev,
    ngx_mcp_loc_conf_t *conf);
ngx_mcp_tool_t *ngx_mcp_route_find(ngx_mcp_loc_conf_t *lcf, ngx_str_t *name);

/* ngx_mcp_pass.c: what is known of a request, also redirected */

ngx_mcp_ctx_t *ngx_mcp_ctx(ngx_http_request_t *r);

/* ngx_mcp_request.c */

ngx_int_t ngx_mcp_body(ngx_http_request_t *r, ngx_str_t *body);
ngx_uint_t ngx_mcp_header(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value);
ngx_uint_t ngx_mcp_is_json(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_media_type(ngx_str_t *s, ngx_str_t *type);
ngx_uint_t ngx_mcp_accepts(ngx_http_request_t *r);
ngx_uint_t ngx_mcp_accepts_stream(ngx_http_request_t *r);

/* ngx_mcp_reply.c */

ngx_int_t ngx_mcp_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *parts, ngx_uint_t n);
ngx_int_t ngx_mcp_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *result);
ngx_int_t ngx_mcp_error(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t status, ngx_int_t code, const char *message, ngx_str_t *data);
ngx_int_t ngx_mcp_invalid(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t status, const char *what);
ngx_int_t ngx_mcp_twice(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_refused(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t reason);
void ngx_mcp_out_answer(ngx_mcp_out_t *out, ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, size_t size);
ngx_int_t ngx_mcp_out_result(ngx_http_request_t *r, ngx_mcp_out_t *out);
ngx_int_t ngx_mcp_add_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value);
ngx_int_t ngx_mcp_no_store(ngx_http_request_t *r);
ngx_int_t ngx_mcp_accepted(ngx_http_request_t *r);

/* ngx_mcp_sweep.c */

ngx_int_t ngx_mcp_sweep_init(ngx_cycle_t *cycle, ngx_mcp_zone_conf_t *zcf);

/* ngx_mcp_stored.c */

void ngx_mcp_stored_zone(ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_stored_process(ngx_cycle_t *cycle, ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_stored_look(ngx_mcp_zone_conf_t *zcf);

/* ngx_mcp_writer.c */

void ngx_mcp_writer_process(ngx_cycle_t *cycle, ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_writer_kick(ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_writer_failed(ngx_mcp_zone_conf_t *zcf, const char *why);
void ngx_mcp_writer_exit(ngx_mcp_zone_conf_t *zcf);

/* ngx_mcp_attach.c */

char *ngx_mcp_attach_conf(ngx_conf_t *cf, ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_attach_user(ngx_mcp_zone_conf_t *zcf);
ngx_int_t ngx_mcp_attach_zone(ngx_mcp_zone_conf_t *zcf);
ngx_int_t ngx_mcp_attach_kept(ngx_mcp_zone_conf_t *zcf);
ngx_int_t ngx_mcp_attach_try(ngx_mcp_zone_conf_t *zcf, ngx_log_t *log);
ngx_uint_t ngx_mcp_attach_lost(ngx_mcp_zone_conf_t *zcf);
ngx_uint_t ngx_mcp_attach_holds(ngx_mcp_zone_conf_t *zcf);
ngx_uint_t ngx_mcp_attach_wanted(ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_attach_leave(ngx_mcp_zone_conf_t *zcf);
ngx_int_t ngx_mcp_attach_lock(ngx_fd_t fd, off_t byte, int type);

/* in the test build only: ngx_mcp_probe.c, .._stub.c */

char *ngx_mcp_probe(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_stub(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_mcp_tasks_module.c */

ngx_mcp_zone_conf_t *ngx_mcp_zone_arg(ngx_conf_t *cf, ngx_str_t *value);

extern ngx_module_t  ngx_http_mcp_tasks_module;


#endif /* _NGX_MCP_MODULE_H_INCLUDED_ */
