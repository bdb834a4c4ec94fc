
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* A call in the background, as the process that runs it knows it. */


#ifndef _NGX_MCP_JOB_TYPES_H_INCLUDED_
#define _NGX_MCP_JOB_TYPES_H_INCLUDED_


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_detached.h"
#include "ngx_mcp_sse_reader.h"
#include "ngx_mcp_job_state.h"
#include "ngx_mcp_later.h"
#include "ngx_mcp_wake.h"


/* of a zone, in this process */

typedef struct ngx_mcp_jobs_s {
    ngx_queue_t            all;
    ngx_queue_t            turns;      /* those that may not run yet */
    ngx_mcp_watch_t        capacity;   /* for one of them */
    ngx_event_t            turn;
    ngx_uint_t             turned;     /* how often they were tried */
    ngx_mcp_op_orphans_t  *orphans;    /* under way */
    ngx_event_t            again;      /* the store did not answer */
    ngx_uint_t             died;       /* another process, meanwhile */
    ngx_msec_t             exiting;    /* since when */
} ngx_mcp_jobs_t;


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
    ngx_str_t   key;         /* as JSON, of the task's */
    ngx_str_t   id;          /* of the upstream's */
    ngx_str_t   request;     /* method and params */
    uint64_t    version;     /* of the task, when it was not withdrawn */
    ngx_uint_t  withdrawn;   /* as soon as that can be submitted */
} ngx_mcp_question_t;


/* progress that waits for another operation; the latest is enough */

typedef struct {
    ngx_pool_t  *pool;
    double       progress;    /* negative: none */
    double       total;
    ngx_str_t    message;
    ngx_uint_t   after;       /* questions that wait, too */
} ngx_mcp_note_t;


/* an operation was answered; NGX_MCP_REASONS: there was no memory */

typedef void (*ngx_mcp_job_pt)(ngx_mcp_job_t *job, ngx_uint_t reason);


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


/* a message beside the call, until the upstream has taken it */

typedef struct {
    ngx_queue_t          queue;
    ngx_pool_t          *pool;
    ngx_mcp_job_t       *job;
    ngx_mcp_detached_t  *request;     /* while it is sent */
    ngx_str_t            text;
    ngx_msec_t           due;
    ngx_uint_t           tries;
    ngx_uint_t           status;      /* of the answer; 0: none */
    unsigned             answer:1;    /* the call waits for it */
    unsigned             again:1;     /* it may be taken later */
} ngx_mcp_notify_t;


struct ngx_mcp_job_s {
    ngx_queue_t           queue;       /* of all in this process */
    ngx_queue_t           turn;        /* of those that wait for it */
    ngx_pool_t           *pool;
    ngx_pool_t           *round_pool;  /* goes with the round */
    ngx_mcp_zone_t       *zone;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_ctx_t        *caller;      /* waits for the call itself */
    ngx_mcp_sender_t      sender;

    ngx_mcp_id_t          id;
    uint64_t              seq;           /* of the task */
    uint64_t              holder;
    uint64_t              lease_token;   /* 0: does not run */
    ngx_uint_t            attempt;
    ngx_str_t             params;        /* as they go out */
    ngx_str_t             token;         /* of progress, as JSON */
    ngx_str_t             rpc_id;        /* of the present round */
    ngx_uint_t            rounds;
    ngx_uint_t            empty_rounds;  /* in a row, with no question */

    ngx_mcp_watch_t       watch;       /* of the task */
    ngx_mcp_op_pin_t     *unpin;       /* when it is freed */
    uint64_t              version;     /* of the task, as far as known */

    /*
     * One operation at a time: what comes meanwhile waits until it is
     * answered.  What it refers to is kept until then.
     */
    union {
        ngx_mcp_op_pin_t      pin;
        ngx_mcp_op_attempt_t  attempt;
        ngx_mcp_op_update_t   update;
    } op;
    ngx_mcp_job_pt        answered;
    ngx_pool_t           *kept;
    ngx_mcp_note_t       *note;
    ngx_uint_t            turned;      /* of all, when it was submitted */

    /* posted when there is something to look at; a timer, too */
    ngx_event_t           event;
    struct {
        ngx_mcp_job_t  *data;
        ngx_event_t    *read;
        ngx_event_t    *write;
        ngx_socket_t    fd;
    } ident;

    ngx_queue_t           outgoing;    /* not delivered yet */
    ngx_uint_t            requests;    /* to the upstream, under way */
    ngx_mcp_detached_t   *call;        /* the one that counts */

    /* the response */
    ngx_mcp_sse_reader_t  sse;
    ngx_pool_t           *message;     /* what it is read with */
    u_char               *text;
    size_t                len;
    size_t                size;
    ngx_msec_t            last_read;   /* when it last came */

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
    ngx_uint_t            unasked;     /* which one is being withdrawn */
    ngx_str_t             request_state;  /* as JSON */

    /* how it ended: with a result, in the text or the feed, or why not */
    ngx_uint_t            end;         /* event of the task */
    ngx_uint_t            flags;
    ngx_str_t             result;
    ngx_uint_t            why;         /* the call failed */
    ngx_uint_t            status;
    u_char               *reason;      /* that, as JSON */

    /* changed by ngx_mcp_job_enter() only */
    ngx_uint_t            state;

    /* facts */
    unsigned              busy:1;      /* with an operation */
    unsigned              done:1;      /* that was answered just now */
    unsigned              queued:1;    /* among those that wait for a turn */
    unsigned              asks:1;      /* before it is a task */
    unsigned              idempotent:1;
    unsigned              stream:1;    /* the response is one */
    unsigned              met:1;       /* there was a connection */
    unsigned              reached:1;   /* the upstream may know */
    unsigned              answers:1;   /* are in the round */
    unsigned              invalid:1;   /* had what it must not */
};


#endif /* _NGX_MCP_JOB_TYPES_H_INCLUDED_ */
