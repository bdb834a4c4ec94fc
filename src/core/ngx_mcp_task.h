
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A task's record and the rules by which it changes.
 *
 * Only this unit decides which event is legal in which state.  It uses no
 * requests, no shared memory and no clock: the caller supplies the record,
 * the event and the time.
 */


#ifndef _NGX_MCP_TASK_H_INCLUDED_
#define _NGX_MCP_TASK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_reason.h"


/* a time that never comes, or a duration without limit */
#define NGX_MCP_NEVER       ((uint64_t) -1)

/* the same in the 32-bit durations of a policy */
#define NGX_MCP_UNLIMITED   ((uint32_t) -1)

#define NGX_MCP_PRIORITIES  4


/* FREE is the state of a slot without a task; no event leaves this state */

typedef enum {
    NGX_MCP_FREE = 0,
    NGX_MCP_QUEUED,
    NGX_MCP_RUNNING,
    NGX_MCP_INPUT_REQUIRED,
    NGX_MCP_COMPLETED,
    NGX_MCP_FAILED,
    NGX_MCP_CANCELLED,

    NGX_MCP_STATES
} ngx_mcp_state_e;


#define ngx_mcp_terminal(state)  ((state) >= NGX_MCP_COMPLETED)


typedef enum {
    /* from the worker or job that runs the task; need its lease token */
    NGX_MCP_EV_HEARTBEAT = 0,
    NGX_MCP_EV_PROGRESS,
    NGX_MCP_EV_ASK,
    NGX_MCP_EV_COMPLETE,
    NGX_MCP_EV_FAIL,
    NGX_MCP_EV_RETRY,        /* the attempt failed, another may succeed */
    NGX_MCP_EV_RELEASE,      /* returned, the attempt does not count */

    /* from a claim, and from the owner */
    NGX_MCP_EV_CLAIM,
    NGX_MCP_EV_ANSWER,       /* some questions stay open */
    NGX_MCP_EV_ANSWER_ALL,   /* no question stays open */
    NGX_MCP_EV_CANCEL,
    NGX_MCP_EV_ANNOTATE,     /* metadata only */
    NGX_MCP_EV_REPORT,       /* progress, by its progress token */

    /* from the clock */
    NGX_MCP_EV_READY,        /* the backoff is over */
    NGX_MCP_EV_LEASE_LOST,
    NGX_MCP_EV_QUEUE_TIMEOUT,
    NGX_MCP_EV_RUN_TIMEOUT,
    NGX_MCP_EV_EXPIRE,

    NGX_MCP_EV_ANNOUNCE,     /* the call that created it was answered */
    NGX_MCP_EV_ORPHANED,     /* the process that holds it died */

    NGX_MCP_EVENTS
} ngx_mcp_event_e;


#define ngx_mcp_fenced(event)  ((event) <= NGX_MCP_EV_RELEASE)


/* why a task ended, if neither a result nor an error shows it */

typedef enum {
    NGX_MCP_CAUSE_NONE = 0,
    NGX_MCP_CAUSE_LEASE_LOST,
    NGX_MCP_CAUSE_QUEUE_TIMEOUT,
    NGX_MCP_CAUSE_RUN_TIMEOUT,
    NGX_MCP_CAUSE_CANCELLED,
    NGX_MCP_CAUSE_PROCESS_LOST
} ngx_mcp_cause_e;


/* flags of a task */

/* the payload is a JSON-RPC error object, not a result */
#define NGX_MCP_RPC_ERROR    0x01
/* a result with isError true; its status depends on the protocol era */
#define NGX_MCP_TOOL_ERROR   0x02

/* the call that created the task was answered, or there is no session */
#define NGX_MCP_ANNOUNCED    0x04
/* a free slot, kept until the store has deleted its copy of the task */
#define NGX_MCP_REMOVED      0x08

/* the next two flags are valid; not set for results stored by 0.1.0 */
#define NGX_MCP_RESULT_READ  0x10
/* a result with the member resultType */
#define NGX_MCP_HAS_TYPE     0x20
/* a result with the member _meta */
#define NGX_MCP_HAS_META     0x40

/*
 * of a cancelled task, which has no result: the client has cancelled its call
 * and expects no response
 */
#define NGX_MCP_UNANSWERED   0x20

/* the task was loaded from a store and has had no new version since */
#define NGX_MCP_LOADED       0x80

/* the flags that are saved; the others belong to the slot */
#define NGX_MCP_FLAGS_SAVED  0x77


/* flags of a call; the first two are of a background call */

/* the call may safely run more than once */
#define NGX_MCP_IDEMPOTENT     0x01
/* only the process that holds the call has the data to run it */
#define NGX_MCP_BOUND          0x02
/* the client can be asked to open a URL, instead of the error -32042 */
#define NGX_MCP_ASKABLE        0x04


/*
 * Ends of an attempt that another attempt may follow.  The flags are saved as
 * the difference from the default: tasks of older releases have none.
 */

#define NGX_MCP_RETRY_TIMEOUT  0x10  /* the run timeout */
#define NGX_MCP_RETRY_LEASE    0x20  /* the lease or the process was lost */
#define NGX_MCP_RETRY_ERROR    0x40  /* an error that may be temporary */

#define NGX_MCP_RETRY_DEFAULT  (NGX_MCP_RETRY_LEASE|NGX_MCP_RETRY_ERROR)

/* all flags of a policy that may be saved */
#define NGX_MCP_CALLS          0x77


/* set when the task is created, never changed afterwards */

typedef struct {
    uint32_t  lease;             /* ms */
    uint32_t  queue_timeout;     /* ms */
    uint32_t  run_timeout;       /* ms, per attempt */
    uint32_t  backoff;           /* ms, doubles per attempt */
    uint32_t  poll_interval;     /* ms */
    uint32_t  keep_completed;    /* seconds */
    uint32_t  keep_failed;       /* seconds */
    uint32_t  keep_cancelled;    /* seconds */
    uint32_t  route;             /* of a background call;
                                    0: workers claim the task */
    uint8_t   attempts;          /* at most */
    uint8_t   priority;          /* the highest is claimed first */
    uint8_t   calls;             /* flags of a call, and the
                                    retries that are not the default */
} ngx_mcp_policy_t;


typedef struct {
    uint64_t          version;           /* grows with visible changes */
    uint64_t          created;           /* wall clock, ms */
    uint64_t          updated;           /* wall clock, ms */
    uint64_t          ttl;               /* ms, as sent to the client */
    uint64_t          expires;           /* monotonic, ms */

    /*
     * when the current step ends, monotonic, ms.  Queued: the end of the
     * backoff, NEVER if the task can be claimed now.  Running: the end of the
     * lease.  Otherwise NEVER: the lease is suspended while a question is
     * open.
     */
    uint64_t          step_end;

    /*
     * queued: when the queue timeout ends; running: when the run timeout
     * ends, both monotonic, ms; input required: the rest of the run timeout,
     * a duration, ms
     */
    uint64_t          phase_end;

    /*
     * queued: when the task became claimable, or will; running: when the
     * attempt began, moved forward by the time it waited for input; both
     * monotonic, ms; input required: how long the attempt has run so far,
     * a duration, ms
     */
    uint64_t          since;

    uint64_t          lease_token;       /* 0: none; input required: the
                                            answers are for the next claim */
    uint64_t          holder;            /* the stream that runs the
                                            background call or announces
                                            the task; see ngx_mcp_signal.h;
                                            0: none */
    double            progress;          /* negative: none */
    double            total;             /* negative: none */

    ngx_mcp_policy_t  policy;

    uint8_t           attempt;           /* attempts begun */
    uint8_t           state;
    uint8_t           flags;
    uint8_t           cause;
    uint32_t          worker;            /* of the last claim, 0: none;
                                            see ngx_mcp_stats.h */
} ngx_mcp_task_t;


typedef struct {
    ngx_uint_t  type;
    uint64_t    now;               /* monotonic, ms */
    uint64_t    wall;              /* wall clock, ms */
    uint64_t    lease_token;
    uint64_t    holder;            /* next one of an orphan; 0: none */
    uint32_t    lease_time;        /* ms; 0: the policy's */
    uint32_t    delay;             /* of a retry, ms; 0: the backoff */
    uint32_t    worker;            /* of a claim; 0: none */
    double      progress;          /* negative: none */
    double      total;             /* negative: none */
    uint8_t     flags;             /* added when the task ends */
    uint8_t     release;           /* EV_ASK: the attempt ends, it does not
                                      count */
} ngx_mcp_event_t;


void ngx_mcp_task_init(ngx_mcp_task_t *task, ngx_mcp_policy_t *policy,
    uint64_t ttl, uint64_t now, uint64_t wall);
ngx_uint_t ngx_mcp_task_apply(ngx_mcp_task_t *task, ngx_mcp_event_t *ev);
uint64_t ngx_mcp_task_deadline(ngx_mcp_task_t *task);
ngx_uint_t ngx_mcp_task_due(ngx_mcp_task_t *task, uint64_t now);
ngx_uint_t ngx_mcp_task_claimable(ngx_mcp_task_t *task);
ngx_uint_t ngx_mcp_task_listed(ngx_mcp_task_t *task);
ngx_uint_t ngx_mcp_task_runs(ngx_mcp_task_t *task);
uint64_t ngx_mcp_task_age(ngx_mcp_task_t *task, uint64_t now);

ngx_str_t *ngx_mcp_state_name(ngx_uint_t state);
ngx_str_t *ngx_mcp_status_name(ngx_uint_t state);


#endif /* _NGX_MCP_TASK_H_INCLUDED_ */
