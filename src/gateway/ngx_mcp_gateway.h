
/*
 * The gateway: MCP servers behind nginx that know nothing of tasks.
 *
 * What is not ours goes to the upstream by an internal redirect, and back.  A
 * call that becomes a task is a job: a request of its own to the upstream,
 * which lives on when the client leaves.
 */


#ifndef _NGX_HTTP_MCP_TASKS_GATEWAY_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_GATEWAY_H_INCLUDED_


#include "ngx_mcp_module.h"
#include "ngx_mcp_feed.h"


/* a variable that has its value */

typedef struct {
    ngx_uint_t                     index;
    ngx_http_variable_value_t      value;
} ngx_http_mcp_tasks_kept_t;


/* headers and the like that every request of a job has, from the client's */

typedef struct {
    ngx_pool_t                    *pool;
    ngx_http_conf_ctx_t           *conf_ctx;
    ngx_http_addr_conf_t          *addr_conf;
    ngx_str_t                      uri;
    ngx_str_t                      args;
    ngx_str_t                      server;      /* the name in Host */
    ngx_array_t                    headers;     /* of ngx_table_elt_t */
    ngx_array_t                    variables;   /* of .._kept_t */
    struct sockaddr               *sockaddr;
    socklen_t                      socklen;
    ngx_str_t                      addr_text;
    struct sockaddr               *local_sockaddr;
    socklen_t                      local_socklen;

    /* for variables */
    ngx_uint_t                     era;
    ngx_str_t                      tool;
    ngx_str_t                      task_id;
    ngx_str_t                      client;
} ngx_http_mcp_tasks_sender_t;


/* a request without a client, and who reads its response */

typedef struct ngx_http_mcp_tasks_detached_s  ngx_http_mcp_tasks_detached_t;

typedef struct {
    /* the header has come: NGX_OK, or NGX_ERROR to end it */
    ngx_int_t                    (*header)(ngx_http_mcp_tasks_detached_t *d);
    ngx_int_t                    (*body)(ngx_http_mcp_tasks_detached_t *d,
                                         u_char *p, size_t n);
    /* that was all of it; may be NULL */
    void                         (*whole)(ngx_http_mcp_tasks_detached_t *d);
    /* it is over, in whichever way; called exactly once */
    void                         (*done)(ngx_http_mcp_tasks_detached_t *d);
} ngx_http_mcp_tasks_reader_t;

struct ngx_http_mcp_tasks_detached_s {
    ngx_http_connection_t          hc;          /* must be the first */
    ngx_http_log_ctx_t             log_ctx;
    ngx_http_request_t            *r;
    ngx_http_mcp_tasks_reader_t   *reader;
    void                          *data;
    unsigned                       headed:1;    /* a header has come */
    unsigned                       whole:1;     /* the body has, too */
    unsigned                       refused:1;   /* its reader wants no more */
};


/* what comes for a result, at most: without a limit there is one, too */

#define ngx_http_mcp_tasks_job_max(job)                                       \
    (((job)->lcf->max_payload ? (job)->lcf->max_payload                       \
                              : NGX_HTTP_MCP_TASKS_JOB_MAX)                   \
     + NGX_HTTP_MCP_TASKS_JOB_FRAME)

/* a stream is asked for more so many times, if nothing comes */
#define NGX_HTTP_MCP_TASKS_JOB_RESUMES  10

/* without memory, in milliseconds */
#define NGX_HTTP_MCP_TASKS_JOB_AGAIN  1000

#define NGX_HTTP_MCP_TASKS_JOB_MAX    (64 * 1024 * 1024)
#define NGX_HTTP_MCP_TASKS_JOB_FRAME  65536


/* a question of the upstream, and how the task calls it */

typedef struct {
    ngx_str_t                      key;         /* as JSON, of the task's */
    ngx_str_t                      id;          /* of the upstream's */
    ngx_str_t                      request;     /* method and params */
} ngx_http_mcp_tasks_question_t;


/* why a call failed */

typedef enum {
    NGX_HTTP_MCP_TASKS_FAILED_NOT = 0,
    NGX_HTTP_MCP_TASKS_FAILED_UNREACHABLE,
    NGX_HTTP_MCP_TASKS_FAILED_TIMED_OUT,
    NGX_HTTP_MCP_TASKS_FAILED_BAD_STATUS,
    NGX_HTTP_MCP_TASKS_FAILED_CUT_SHORT,
    NGX_HTTP_MCP_TASKS_FAILED_NOT_VALID,
    NGX_HTTP_MCP_TASKS_FAILED_TOO_LARGE,
    NGX_HTTP_MCP_TASKS_FAILED_SHUTDOWN
} ngx_http_mcp_tasks_failed_e;


typedef struct ngx_http_mcp_tasks_job_s  ngx_http_mcp_tasks_job_t;


/* a message beside the call, until the upstream has taken it */

typedef struct {
    ngx_queue_t                    queue;
    ngx_pool_t                    *pool;
    ngx_http_mcp_tasks_job_t      *job;
    ngx_http_mcp_tasks_detached_t *request;     /* while it is sent */
    ngx_str_t                      text;
    ngx_msec_t                     due;
    ngx_uint_t                     tries;
    ngx_uint_t                     status;      /* of the answer; 0: none */
    unsigned                       answer:1;    /* the call waits for it */
    unsigned                       again:1;     /* it may be taken later */
} ngx_http_mcp_tasks_letter_t;


struct ngx_http_mcp_tasks_job_s {
    ngx_queue_t                    queue;       /* of all in this process */
    ngx_queue_t                    turn;        /* of those that wait for it */
    ngx_pool_t                    *pool;
    ngx_pool_t                    *round;       /* goes with the round */
    ngx_http_mcp_tasks_zone_conf_t  *zcf;
    ngx_http_mcp_tasks_loc_conf_t *lcf;
    ngx_http_mcp_tasks_ctx_t      *caller;      /* waits for the call itself */
    ngx_http_mcp_tasks_sender_t    sender;

    ngx_http_mcp_tasks_id_t        id;
    uint64_t                       seq;         /* of the task */
    uint64_t                       holder;
    uint64_t                       lease;       /* 0: does not run */
    ngx_uint_t                     attempt;
    ngx_str_t                      params;      /* as they go out */
    ngx_str_t                      token;       /* of progress, as JSON */
    ngx_str_t                      rpc_id;      /* of the present round */
    ngx_uint_t                     rounds;
    ngx_uint_t                     bare;        /* in a row, with no question */

    ngx_http_mcp_tasks_watch_t     watch;       /* of the task */
    ngx_http_mcp_tasks_op_run_t    run;         /* the last attempt's */

    /* posted when there is something to look at; a timer, too */
    ngx_event_t                    event;
    struct {
        ngx_http_mcp_tasks_job_t  *data;
        ngx_event_t               *read;
        ngx_event_t               *write;
        ngx_socket_t               fd;
    } ident;

    ngx_queue_t                    letters;     /* not delivered yet */
    ngx_uint_t                     requests;    /* under way */
    ngx_http_mcp_tasks_detached_t *call;        /* the one that counts */

    /* the response */
    ngx_http_mcp_tasks_feed_t      feed;
    u_char                        *text;
    size_t                         len;
    size_t                         size;
    ngx_msec_t                     heard;       /* when it last came */

    /* later: a stream that ended too early, from its last event on, or a
     * round that did not get through */
    ngx_str_t                      last_id;
    ngx_str_t                      body;
    ngx_msec_t                     resume_at;
    ngx_uint_t                     resumed;     /* without anything new */

    /* in the order in which they came; the first ones are being asked */
    ngx_array_t                    questions;
    ngx_uint_t                     asked;
    ngx_uint_t                     keys;        /* made so far */
    ngx_str_t                      state;       /* requestState, as JSON */

    ngx_uint_t                     why;         /* the call failed */
    ngx_http_mcp_tasks_op_update_t *late;       /* how it ended, not told */
    ngx_uint_t                     status;

    unsigned                       begun:1;     /* is in the queue */
    unsigned                       fresh:1;     /* has not begun to run */
    unsigned                       turns:1;     /* waits for its turn */
    unsigned                       begins:1;    /* as soon as that is saved */
    unsigned                       asks:1;      /* before it is a task */
    unsigned                       idempotent:1;
    unsigned                       stream:1;    /* the response is one */
    unsigned                       met:1;       /* there was a connection */
    unsigned                       reached:1;   /* the upstream may know */
    unsigned                       answers:1;   /* are in the round */
    unsigned                       strange:1;   /* had what it must not */
    unsigned                       resumes:1;   /* is to be asked for more */
    unsigned                       concluded:1; /* the round is */
    unsigned                       waits:1;     /* for answers */
    unsigned                       over:1;      /* so is the task, for us */
};


/* ngx_mcp_pass.c */

ngx_int_t ngx_http_mcp_tasks_pass(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
ngx_int_t ngx_http_mcp_tasks_pass_message(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_uint_t modern);
ngx_int_t ngx_http_mcp_tasks_pass_speaks(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
ngx_int_t ngx_http_mcp_tasks_pass_other(ngx_http_request_t *r);
ngx_int_t ngx_http_mcp_tasks_mark(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);

/* ngx_mcp_filter.c */

ngx_int_t ngx_http_mcp_tasks_filter_init(ngx_conf_t *cf);
ngx_uint_t ngx_http_mcp_tasks_is_stream(ngx_http_request_t *r);

/* ngx_mcp_merged.c */

ngx_int_t ngx_http_mcp_tasks_merged_header(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_http_output_header_filter_pt next);
ngx_int_t ngx_http_mcp_tasks_merged_body(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_chain_t *in,
    ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next);

/* ngx_mcp_detached.c */

ngx_int_t ngx_http_mcp_tasks_detached_process(ngx_cycle_t *cycle);
ngx_http_mcp_tasks_detached_t *ngx_http_mcp_tasks_detached(
    ngx_http_mcp_tasks_sender_t *sender, ngx_str_t *body, ngx_str_t *last_id,
    ngx_http_mcp_tasks_reader_t *reader, void *data);
void ngx_http_mcp_tasks_detached_run(ngx_http_mcp_tasks_detached_t *d);
void ngx_http_mcp_tasks_detached_end(ngx_http_mcp_tasks_detached_t *d);
ngx_http_mcp_tasks_detached_t *ngx_http_mcp_tasks_is_detached(
    ngx_http_request_t *r);

/* ngx_mcp_sender.c */

ngx_int_t ngx_http_mcp_tasks_sender_copy(ngx_http_mcp_tasks_sender_t *sender,
    ngx_http_request_t *r, ngx_http_mcp_tasks_loc_conf_t *lcf,
    ngx_uint_t *bound);
ngx_int_t ngx_http_mcp_tasks_sender_make(ngx_http_mcp_tasks_sender_t *sender,
    ngx_http_mcp_tasks_loc_conf_t *lcf, ngx_str_t *tool);

/* ngx_mcp_job.c */

ngx_http_mcp_tasks_job_t *ngx_http_mcp_tasks_job_new(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_http_mcp_tasks_tool_t *tool,
    ngx_uint_t *bound);
ngx_http_mcp_tasks_job_t *ngx_http_mcp_tasks_job_again(
    ngx_http_mcp_tasks_zone_conf_t *zcf, ngx_http_mcp_tasks_view_t *v);
ngx_http_mcp_tasks_loc_conf_t *ngx_http_mcp_tasks_job_gateway(
    ngx_http_mcp_tasks_zone_conf_t *zcf, ngx_http_mcp_tasks_view_t *v);
void ngx_http_mcp_tasks_job_begin(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_view_t *v);
void ngx_http_mcp_tasks_job_free(ngx_http_mcp_tasks_job_t *job);
void ngx_http_mcp_tasks_job_caller(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_ctx_t *ctx);
void ngx_http_mcp_tasks_job_left(ngx_http_mcp_tasks_ctx_t *ctx);
void ngx_http_mcp_tasks_job_post(ngx_http_mcp_tasks_job_t *job);
void ngx_http_mcp_tasks_job_over(ngx_http_mcp_tasks_job_t *job);
void ngx_http_mcp_tasks_job_wait(ngx_http_mcp_tasks_job_t *job,
    ngx_msec_t time);
void ngx_http_mcp_tasks_jobs_init(ngx_http_mcp_tasks_zone_conf_t *zcf);
void ngx_http_mcp_tasks_jobs_orphans(ngx_http_mcp_tasks_zone_conf_t *zcf);
void ngx_http_mcp_tasks_jobs_exit(ngx_http_mcp_tasks_zone_conf_t *zcf);
ngx_uint_t ngx_http_mcp_tasks_jobs_leave(ngx_http_mcp_tasks_zone_conf_t *zcf);

/* ngx_mcp_job_task.c: the job's task */

ngx_int_t ngx_http_mcp_tasks_job_get(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_op_get_t *op, ngx_uint_t want, ngx_pool_t *pool);
void ngx_http_mcp_tasks_job_change(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_op_update_t *op, ngx_uint_t event);
ngx_uint_t ngx_http_mcp_tasks_job_update(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_op_update_t *op);
void ngx_http_mcp_tasks_job_finish(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_op_update_t *op);
void ngx_http_mcp_tasks_job_complete(ngx_http_mcp_tasks_job_t *job,
    ngx_str_t *result, ngx_uint_t flags);
void ngx_http_mcp_tasks_job_error(ngx_http_mcp_tasks_job_t *job,
    ngx_str_t *error);
void ngx_http_mcp_tasks_job_failed(ngx_http_mcp_tasks_job_t *job);

/* ngx_mcp_job_send.c: what goes to the upstream */

ngx_int_t ngx_http_mcp_tasks_job_params(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_json_t *params);
void ngx_http_mcp_tasks_job_drop(ngx_http_mcp_tasks_job_t *job,
    ngx_pool_t *round);
ngx_int_t ngx_http_mcp_tasks_job_send(ngx_http_mcp_tasks_job_t *job,
    ngx_str_t *responses);
ngx_int_t ngx_http_mcp_tasks_job_resume(ngx_http_mcp_tasks_job_t *job);
ngx_int_t ngx_http_mcp_tasks_job_tell(ngx_http_mcp_tasks_job_t *job,
    ngx_str_t *message, ngx_uint_t answer);
void ngx_http_mcp_tasks_job_letters(ngx_http_mcp_tasks_job_t *job);
void ngx_http_mcp_tasks_job_hang_up(ngx_http_mcp_tasks_job_t *job);
void ngx_http_mcp_tasks_job_burn(ngx_http_mcp_tasks_job_t *job);
void ngx_http_mcp_tasks_job_cancel(ngx_http_mcp_tasks_job_t *job);

/* ngx_mcp_job_read.c: what comes from there */

extern ngx_http_mcp_tasks_reader_t  ngx_http_mcp_tasks_job_reader;
ngx_uint_t ngx_http_mcp_tasks_job_connected(ngx_http_request_t *r);

/* ngx_mcp_job_ask.c: questions and answers */

void ngx_http_mcp_tasks_job_question(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_rpc_t *rpc);
void ngx_http_mcp_tasks_job_round(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_json_t *result);
void ngx_http_mcp_tasks_job_answered(ngx_http_mcp_tasks_job_t *job);
void ngx_http_mcp_tasks_job_withdrawn(ngx_http_mcp_tasks_job_t *job,
    ngx_http_mcp_tasks_json_t *params);


#endif /* _NGX_HTTP_MCP_TASKS_GATEWAY_H_INCLUDED_ */
