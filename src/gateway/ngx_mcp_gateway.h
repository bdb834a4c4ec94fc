
/*
 * The gateway: MCP servers behind nginx that know nothing of tasks.
 *
 * What is not ours goes to the upstream by an internal redirect, and back.  A
 * call that becomes a task is a job: a request of its own to the upstream,
 * which lives on when the client leaves.
 */


#ifndef _NGX_MCP_GATEWAY_H_INCLUDED_
#define _NGX_MCP_GATEWAY_H_INCLUDED_


#include "ngx_mcp_module.h"
#include "ngx_mcp_feed.h"


/* a variable that has its value */

typedef struct {
    ngx_uint_t                 index;
    ngx_http_variable_value_t  value;
} ngx_mcp_kept_t;


/* headers and the like that every request of a job has, from the client's */

typedef struct {
    ngx_pool_t            *pool;
    ngx_http_conf_ctx_t   *conf_ctx;
    ngx_http_addr_conf_t  *addr_conf;
    ngx_str_t              uri;
    ngx_str_t              args;
    ngx_str_t              server;      /* the name in Host */
    ngx_array_t            headers;     /* of ngx_table_elt_t */
    ngx_array_t            variables;   /* of .._kept_t */
    struct sockaddr       *sockaddr;
    socklen_t              socklen;
    ngx_str_t              addr_text;
    struct sockaddr       *local_sockaddr;
    socklen_t              local_socklen;

    /* for variables */
    ngx_uint_t             era;
    ngx_str_t              tool;
    ngx_str_t              task_id;
    ngx_str_t              client;
} ngx_mcp_sender_t;


/* a request without a client, and who reads its response */

typedef struct ngx_mcp_detached_s  ngx_mcp_detached_t;

typedef struct {
    /* the header has come: NGX_OK, or NGX_ERROR to end it */
    ngx_int_t  (*header)(ngx_mcp_detached_t *d);
    ngx_int_t  (*body)(ngx_mcp_detached_t *d, u_char *p, size_t n);
    /* that was all of it; may be NULL */
    void       (*whole)(ngx_mcp_detached_t *d);
    /* it is over, in whichever way; called exactly once */
    void       (*done)(ngx_mcp_detached_t *d);
} ngx_mcp_reader_t;

struct ngx_mcp_detached_s {
    ngx_http_connection_t  hc;          /* must be the first */
    ngx_http_log_ctx_t     log_ctx;
    ngx_http_request_t    *r;
    ngx_mcp_reader_t      *reader;
    void                  *data;
    unsigned               headed:1;    /* a header has come */
    unsigned               whole:1;     /* the body has, too */
    unsigned               refused:1;   /* its reader wants no more */
};


/* what comes for a result, at most: without a limit there is one, too */

#define ngx_mcp_job_max(job)                                                  \
    (((job)->lcf->max_payload ? (job)->lcf->max_payload                       \
                              : NGX_MCP_JOB_MAX)                              \
     + NGX_MCP_JOB_FRAME)

/* a stream is asked for more so many times, if nothing comes */
#define NGX_MCP_JOB_RESUMES  10

/* without memory, in milliseconds */
#define NGX_MCP_JOB_AGAIN  1000

#define NGX_MCP_JOB_MAX    (64 * 1024 * 1024)
#define NGX_MCP_JOB_FRAME  65536


/* a question of the upstream, and how the task calls it */

typedef struct {
    ngx_str_t  key;         /* as JSON, of the task's */
    ngx_str_t  id;          /* of the upstream's */
    ngx_str_t  request;     /* method and params */
} ngx_mcp_question_t;


/* why a call failed */

typedef enum {
    NGX_MCP_FAILED_NOT = 0,
    NGX_MCP_FAILED_UNREACHABLE,
    NGX_MCP_FAILED_TIMED_OUT,
    NGX_MCP_FAILED_BAD_STATUS,
    NGX_MCP_FAILED_CUT_SHORT,
    NGX_MCP_FAILED_NOT_VALID,
    NGX_MCP_FAILED_TOO_LARGE,
    NGX_MCP_FAILED_SHUTDOWN
} ngx_mcp_failed_e;


typedef struct ngx_mcp_job_s  ngx_mcp_job_t;


/* a message beside the call, until the upstream has taken it */

typedef struct {
    ngx_queue_t     queue;
    ngx_pool_t     *pool;
    ngx_mcp_job_t  *job;
    ngx_mcp_detached_t *request;     /* while it is sent */
    ngx_str_t       text;
    ngx_msec_t      due;
    ngx_uint_t      tries;
    ngx_uint_t      status;      /* of the answer; 0: none */
    unsigned        answer:1;    /* the call waits for it */
    unsigned        again:1;     /* it may be taken later */
} ngx_mcp_letter_t;


struct ngx_mcp_job_s {
    ngx_queue_t           queue;       /* of all in this process */
    ngx_queue_t           turn;        /* of those that wait for it */
    ngx_pool_t           *pool;
    ngx_pool_t           *round;       /* goes with the round */
    ngx_mcp_zone_conf_t  *zcf;
    ngx_mcp_loc_conf_t *lcf;
    ngx_mcp_ctx_t        *caller;      /* waits for the call itself */
    ngx_mcp_sender_t      sender;

    ngx_mcp_id_t          id;
    uint64_t              seq;         /* of the task */
    uint64_t              holder;
    uint64_t              lease;       /* 0: does not run */
    ngx_uint_t            attempt;
    ngx_str_t             params;      /* as they go out */
    ngx_str_t             token;       /* of progress, as JSON */
    ngx_str_t             rpc_id;      /* of the present round */
    ngx_uint_t            rounds;
    ngx_uint_t            bare;        /* in a row, with no question */

    ngx_mcp_watch_t       watch;       /* of the task */
    ngx_mcp_op_run_t      run;         /* the last attempt's */

    /* posted when there is something to look at; a timer, too */
    ngx_event_t           event;
    struct {
        ngx_mcp_job_t  *data;
        ngx_event_t    *read;
        ngx_event_t    *write;
        ngx_socket_t    fd;
    } ident;

    ngx_queue_t           letters;     /* not delivered yet */
    ngx_uint_t            requests;    /* under way */
    ngx_mcp_detached_t *call;        /* the one that counts */

    /* the response */
    ngx_mcp_feed_t        feed;
    u_char               *text;
    size_t                len;
    size_t                size;
    ngx_msec_t            heard;       /* when it last came */

    /* later: a stream that ended too early, from its last event on, or a
     * round that did not get through */
    ngx_str_t             last_id;
    ngx_str_t             body;
    ngx_msec_t            resume_at;
    ngx_uint_t            resumed;     /* without anything new */

    /* in the order in which they came; the first ones are being asked */
    ngx_array_t           questions;
    ngx_uint_t            asked;
    ngx_uint_t            keys;        /* made so far */
    ngx_str_t             state;       /* requestState, as JSON */

    ngx_uint_t            why;         /* the call failed */
    ngx_mcp_op_update_t *late;       /* how it ended, not told */
    ngx_uint_t            status;

    unsigned              begun:1;     /* is in the queue */
    unsigned              fresh:1;     /* has not begun to run */
    unsigned              turns:1;     /* waits for its turn */
    unsigned              begins:1;    /* as soon as that is saved */
    unsigned              asks:1;      /* before it is a task */
    unsigned              idempotent:1;
    unsigned              stream:1;    /* the response is one */
    unsigned              met:1;       /* there was a connection */
    unsigned              reached:1;   /* the upstream may know */
    unsigned              answers:1;   /* are in the round */
    unsigned              strange:1;   /* had what it must not */
    unsigned              resumes:1;   /* is to be asked for more */
    unsigned              concluded:1; /* the round is */
    unsigned              waits:1;     /* for answers */
    unsigned              over:1;      /* so is the task, for us */
};


/* ngx_mcp_pass.c */

ngx_int_t ngx_mcp_pass(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_pass_message(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t modern);
ngx_int_t ngx_mcp_pass_speaks(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_pass_other(ngx_http_request_t *r);
ngx_int_t ngx_mcp_mark(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);

/* ngx_mcp_filter.c */

ngx_int_t ngx_mcp_filter_init(ngx_conf_t *cf);
ngx_uint_t ngx_mcp_is_stream(ngx_http_request_t *r);

/* ngx_mcp_merged.c */

ngx_int_t ngx_mcp_merged_header(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_http_output_header_filter_pt next);
ngx_int_t ngx_mcp_merged_body(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_chain_t *in, ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next);

/* ngx_mcp_detached.c */

ngx_int_t ngx_mcp_detached_process(ngx_cycle_t *cycle);
ngx_mcp_detached_t *ngx_mcp_detached(ngx_mcp_sender_t *sender, ngx_str_t *body,
    ngx_str_t *last_id, ngx_mcp_reader_t *reader, void *data);
void ngx_mcp_detached_run(ngx_mcp_detached_t *d);
void ngx_mcp_detached_end(ngx_mcp_detached_t *d);
ngx_mcp_detached_t *ngx_mcp_is_detached(ngx_http_request_t *r);

/* ngx_mcp_sender.c */

ngx_int_t ngx_mcp_sender_copy(ngx_mcp_sender_t *sender, ngx_http_request_t *r,
    ngx_mcp_loc_conf_t *lcf, ngx_uint_t *bound);
ngx_int_t ngx_mcp_sender_make(ngx_mcp_sender_t *sender,
    ngx_mcp_loc_conf_t *lcf, ngx_str_t *tool);

/* ngx_mcp_job.c */

ngx_mcp_job_t *ngx_mcp_job_new(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_tool_t *tool, ngx_uint_t *bound);
ngx_mcp_job_t *ngx_mcp_job_again(ngx_mcp_zone_conf_t *zcf, ngx_mcp_view_t *v);
ngx_mcp_loc_conf_t *ngx_mcp_job_gateway(ngx_mcp_zone_conf_t *zcf,
    ngx_mcp_view_t *v);
void ngx_mcp_job_begin(ngx_mcp_job_t *job, ngx_mcp_view_t *v);
void ngx_mcp_job_free(ngx_mcp_job_t *job);
void ngx_mcp_job_caller(ngx_mcp_job_t *job, ngx_mcp_ctx_t *ctx);
void ngx_mcp_job_left(ngx_mcp_ctx_t *ctx);
void ngx_mcp_job_post(ngx_mcp_job_t *job);
void ngx_mcp_job_over(ngx_mcp_job_t *job);
void ngx_mcp_job_wait(ngx_mcp_job_t *job, ngx_msec_t time);
void ngx_mcp_jobs_init(ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_jobs_orphans(ngx_mcp_zone_conf_t *zcf);
void ngx_mcp_jobs_exit(ngx_mcp_zone_conf_t *zcf);
ngx_uint_t ngx_mcp_jobs_leave(ngx_mcp_zone_conf_t *zcf);

/* ngx_mcp_job_task.c: the job's task */

ngx_int_t ngx_mcp_job_get(ngx_mcp_job_t *job, ngx_mcp_op_get_t *op,
    ngx_uint_t want, ngx_pool_t *pool);
void ngx_mcp_job_change(ngx_mcp_job_t *job, ngx_mcp_op_update_t *op,
    ngx_uint_t event);
ngx_uint_t ngx_mcp_job_update(ngx_mcp_job_t *job, ngx_mcp_op_update_t *op);
void ngx_mcp_job_finish(ngx_mcp_job_t *job, ngx_mcp_op_update_t *op);
void ngx_mcp_job_complete(ngx_mcp_job_t *job, ngx_str_t *result,
    ngx_uint_t flags);
void ngx_mcp_job_error(ngx_mcp_job_t *job, ngx_str_t *error);
void ngx_mcp_job_failed(ngx_mcp_job_t *job);

/* ngx_mcp_job_send.c: what goes to the upstream */

ngx_int_t ngx_mcp_job_params(ngx_mcp_job_t *job, ngx_mcp_json_t *params);
void ngx_mcp_job_drop(ngx_mcp_job_t *job, ngx_pool_t *round);
ngx_int_t ngx_mcp_job_send(ngx_mcp_job_t *job, ngx_str_t *responses);
ngx_int_t ngx_mcp_job_resume(ngx_mcp_job_t *job);
ngx_int_t ngx_mcp_job_tell(ngx_mcp_job_t *job, ngx_str_t *message,
    ngx_uint_t answer);
void ngx_mcp_job_letters(ngx_mcp_job_t *job);
void ngx_mcp_job_hang_up(ngx_mcp_job_t *job);
void ngx_mcp_job_burn(ngx_mcp_job_t *job);
void ngx_mcp_job_cancel(ngx_mcp_job_t *job);

/* ngx_mcp_job_read.c: what comes from there */

extern ngx_mcp_reader_t  ngx_mcp_job_reader;
ngx_uint_t ngx_mcp_job_connected(ngx_http_request_t *r);

/* ngx_mcp_job_ask.c: questions and answers */

void ngx_mcp_job_question(ngx_mcp_job_t *job, ngx_mcp_rpc_t *rpc);
void ngx_mcp_job_round(ngx_mcp_job_t *job, ngx_mcp_json_t *result);
void ngx_mcp_job_answered(ngx_mcp_job_t *job);
void ngx_mcp_job_withdrawn(ngx_mcp_job_t *job, ngx_mcp_json_t *params);


#endif /* _NGX_MCP_GATEWAY_H_INCLUDED_ */
