
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A background call (job).  It exists in the memory of one worker process; the
 * task is in the store.
 */


#ifndef _NGX_MCP_JOB_TYPES_H_INCLUDED_
#define _NGX_MCP_JOB_TYPES_H_INCLUDED_


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_detached.h"
#include "ngx_mcp_sse_reader.h"
#include "ngx_mcp_job_state.h"
#include "ngx_mcp_later.h"
#include "ngx_mcp_wake.h"


/* the jobs of a zone in this process */

typedef struct ngx_mcp_jobs_s {
    ngx_queue_t            all;
    ngx_queue_t            turns;      /* jobs that wait to run, by seq */
    ngx_mcp_watch_t        capacity;   /* posts turn when a call may run */
    ngx_event_t            turn;       /* tries the jobs that wait */
    ngx_uint_t             passes;     /* number of times they were tried */
    ngx_mcp_op_orphans_t  *orphans;    /* in progress, or NULL */
    ngx_uint_t             unadopted;  /* it is done, but no memory for jobs */
    ngx_event_t            again;      /* timer: repeats that operation */
    ngx_uint_t             died;       /* a process died during orphans */
    ngx_msec_t             exiting;    /* time when the exit began */
} ngx_mcp_jobs_t;


/* maximum size of a response: that of a result, plus the envelope */

#define ngx_mcp_job_max(job)                                                  \
    (((job)->lcf->max_payload ? (job)->lcf->max_payload                       \
                              : NGX_MCP_JOB_MAX)                              \
     + NGX_MCP_JOB_FRAME)

/* a request is repeated this many times in a row without a new event */
#define NGX_MCP_JOB_RESUMES  10

/* delay after a failed allocation or operation, in milliseconds */
#define NGX_MCP_JOB_AGAIN  1000

/* maximum size of a result without a configured limit, and of the envelope */
#define NGX_MCP_JOB_MAX    (64 * 1024 * 1024)
#define NGX_MCP_JOB_FRAME  65536


/* a question of the upstream */

typedef struct {
    ngx_str_t   key;         /* key in the task, JSON; empty: not asked */
    ngx_str_t   id;          /* the upstream's id or key, JSON */
    ngx_str_t   request;     /* method and params, JSON */
    uint64_t    version;     /* task version of the last withdrawal */
    ngx_uint_t  withdrawn;   /* the withdrawal is still to be submitted */
    ngx_uint_t  required;    /* made of an error: the call is sent again
                                without the answer */
} ngx_mcp_question_t;


/* progress to be stored after the current operation; only the latest is kept */

typedef struct {
    ngx_pool_t  *pool;
    double       progress;    /* negative: none */
    double       total;       /* negative: none */
    ngx_str_t    message;     /* JSON string, or empty */
    ngx_uint_t   after;       /* submit after questions that also wait */
} ngx_mcp_note_t;


/* called when an operation is complete; NGX_MCP_REASONS: no memory */

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
    NGX_MCP_FAILED_NO_MEMORY,
    NGX_MCP_FAILED_BAD_QUESTION,
    NGX_MCP_FAILED_DECLINED,
    NGX_MCP_FAILED_CANCELLED,
    NGX_MCP_FAILED_SHUTDOWN
} ngx_mcp_failed_e;


/* a message sent beside the call, kept until the upstream accepts it */

typedef struct {
    ngx_queue_t          queue;       /* in job->outgoing */
    ngx_pool_t          *pool;
    ngx_mcp_job_t       *job;
    ngx_mcp_detached_t  *request;     /* NULL: not being sent */
    ngx_str_t            text;
    ngx_msec_t           due;         /* time of the next try */
    ngx_uint_t           tries;
    ngx_uint_t           status;      /* HTTP status, 0: no response */
    unsigned             answer:1;    /* the call cannot continue without it */
    unsigned             again:1;     /* the last error may be temporary */
} ngx_mcp_notify_t;


struct ngx_mcp_job_s {
    ngx_queue_t           queue;       /* in jobs->all */
    ngx_queue_t           turn;        /* in jobs->turns, if queued */
    ngx_pool_t           *pool;
    ngx_pool_t           *round_pool;  /* of the current round trip */
    ngx_mcp_zone_t       *zone;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_ctx_t        *caller;      /* client that waits, or NULL */
    ngx_mcp_sender_t      sender;

    ngx_mcp_id_t          id;
    uint64_t              seq;           /* of the task */
    uint64_t              holder;        /* identifies job and process */
    uint64_t              lease_token;   /* 0: not running */
    ngx_uint_t            attempt;
    ngx_str_t             params;        /* as sent to the upstream */
    ngx_str_t             token;         /* progress token, JSON */
    ngx_str_t             rpc_id;        /* id of the current round trip */
    ngx_uint_t            round_trips;   /* so far */
    ngx_uint_t            empty_round_trips;    /* in a row, no questions */

    ngx_mcp_watch_t       watch;       /* of the task */
    ngx_mcp_op_pin_t     *unpin;       /* submitted when the job is freed */
    uint64_t              version;     /* task version of the last change */

    /*
     * A job has one operation at a time.  Later ones wait until it is
     * complete.  The pool in kept holds what it refers to until then.
     */
    union {
        ngx_mcp_op_pin_t      pin;
        ngx_mcp_op_attempt_t  attempt;
        ngx_mcp_op_update_t   update;
    } op;
    ngx_mcp_job_pt        answered;
    ngx_pool_t           *kept;
    ngx_mcp_note_t       *note;        /* progress that waits, or NULL */
    ngx_uint_t            pass;        /* jobs->passes at the attempt */
    ngx_msec_t            due;         /* if delayed: time of the next try */

    /*
     * Posted when the task or a request may have changed; also the timer.
     * The structure ident replaces ngx_connection_t as the event's data.
     */
    ngx_event_t           event;
    struct {
        ngx_mcp_job_t  *data;
        ngx_event_t    *read;
        ngx_event_t    *write;
        ngx_socket_t    fd;
    } ident;

    ngx_queue_t           outgoing;    /* of ngx_mcp_notify_t */
    ngx_uint_t            requests;    /* open requests to the upstream */
    ngx_mcp_detached_t   *call;        /* the current round trip, or NULL */

    /* the response */
    ngx_mcp_sse_reader_t  sse;
    ngx_pool_t           *message;     /* of the event being read, or NULL */
    u_char               *text;        /* body or last event, ngx_alloc() */
    size_t                len;
    size_t                size;
    ngx_msec_t            last_read;   /* time of the last bytes */

    /*
     * For a request to be repeated: a GET from the last event of a stream that
     * ended too early, or else the body of the round trip.
     */
    ngx_str_t             last_id;     /* empty: repeat the body */
    ngx_str_t             body;
    ngx_msec_t            resume_at;
    ngx_uint_t            resumed;     /* repeats since the last event */

    /* in the order received; the first ones, in number asked, are asked */
    ngx_array_t           questions;   /* of ngx_mcp_question_t */
    ngx_uint_t            asked;
    ngx_uint_t            keys;        /* keys generated so far */
    ngx_uint_t            unasked;     /* index of the one being withdrawn */
    ngx_str_t             request_state;  /* JSON string, or empty */

    /* the upstream's own task, if the tool requires one */
    ngx_str_t             remote;         /* its id, JSON; empty: none */
    ngx_str_t             remote_name;    /* the id as the value of a header */
    ngx_array_t           remote_keys;    /* of uint64_t: answered questions */
    uint64_t              remote_message; /* hash of its status message */

    /* the outcome; the result is in text, or in the event being read */
    ngx_uint_t            end;         /* event of the task */
    ngx_msec_t            ended;       /* time when it was known */
    ngx_uint_t            flags;       /* of the result */
    ngx_str_t             result;      /* a result or an error, JSON */
    ngx_str_t             diagnosis;   /* why it failed, JSON; or empty */
    ngx_uint_t            failure;     /* ngx_mcp_failed_e */
    ngx_uint_t            status;      /* HTTP status, 0: no response */
    ngx_str_t             detail;      /* of FAILED_BAD_QUESTION: a JSON
                                          string, or empty */
    u_char               *reason;      /* buffer for the failure as JSON */

    /* changed by ngx_mcp_job_enter() only */
    ngx_uint_t            state;       /* ngx_mcp_job_state_e */

    unsigned              busy:1;      /* an operation is in progress */
    unsigned              done:1;      /* it is complete, event is posted */
    unsigned              delayed:1;   /* a refused operation waits until due */
    unsigned              queued:1;    /* in jobs->turns */
    unsigned              asks:1;      /* questions may answer the call */
    unsigned              idempotent:1;
    unsigned              stream:1;    /* the response is a stream */
    unsigned              connected:1; /* the last request was connected */
    unsigned              reached:1;   /* the upstream may have seen the call */
    unsigned              answers:1;   /* the round trip has answers */
    unsigned              as_task:1;   /* asks the upstream for a task */
    unsigned              renew:1;     /* the next request is a new one */
    unsigned              invalid:1;   /* an invalid message was received */
};


#endif /* _NGX_MCP_JOB_TYPES_H_INCLUDED_ */
