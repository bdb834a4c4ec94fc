
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A task's record and the rules by which it changes.
 *
 * This is the only place that knows which event is legal in which state.  It
 * knows neither requests, nor shared memory, nor a clock: stores bring the
 * record, the event and the time.
 */


#ifndef _NGX_MCP_TASK_H_INCLUDED_
#define _NGX_MCP_TASK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_reason.h"


#define NGX_MCP_NEVER       ((uint64_t) -1)

/* no upper bound on a time that the policy keeps in 32 bits */
#define NGX_MCP_UNLIMITED   ((uint32_t) -1)

#define NGX_MCP_PRIORITIES  4


/* FREE is the state of a slot without a task: no event leads out of it */

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
    /* by the one who runs the task: fenced by the lease token */
    NGX_MCP_EV_HEARTBEAT = 0,
    NGX_MCP_EV_PROGRESS,
    NGX_MCP_EV_ASK,
    NGX_MCP_EV_COMPLETE,
    NGX_MCP_EV_FAIL,
    NGX_MCP_EV_RETRY,        /* failed, but worth another attempt */
    NGX_MCP_EV_RELEASE,      /* given back untouched */

    /* by the dispatcher and by the owner */
    NGX_MCP_EV_CLAIM,
    NGX_MCP_EV_ANSWER,       /* some of the questions */
    NGX_MCP_EV_ANSWER_ALL,   /* the last of the questions */
    NGX_MCP_EV_CANCEL,
    NGX_MCP_EV_ANNOTATE,     /* metadata only */
    NGX_MCP_EV_REPORT,       /* progress, by its token */

    /* by time */
    NGX_MCP_EV_READY,        /* the backoff is over */
    NGX_MCP_EV_LEASE_LOST,
    NGX_MCP_EV_QUEUE_TIMEOUT,
    NGX_MCP_EV_RUN_TIMEOUT,
    NGX_MCP_EV_EXPIRE,

    NGX_MCP_EV_ANNOUNCE,     /* the owner knows of it now */
    NGX_MCP_EV_ORPHANED,     /* its process is dead */

    NGX_MCP_EVENTS
} ngx_mcp_event_e;


#define ngx_mcp_fenced(event)  ((event) <= NGX_MCP_EV_RELEASE)


/* why a task ended, where no result or error of its own says so */

typedef enum {
    NGX_MCP_CAUSE_NONE = 0,
    NGX_MCP_CAUSE_LEASE_LOST,
    NGX_MCP_CAUSE_QUEUE_TIMEOUT,
    NGX_MCP_CAUSE_RUN_TIMEOUT,
    NGX_MCP_CAUSE_CANCELLED,
    NGX_MCP_CAUSE_PROCESS_LOST
} ngx_mcp_cause_e;


/* flags */

/* the payload is a JSON-RPC error object, not a result */
#define NGX_MCP_RPC_ERROR    0x01
/* a result whose isError is true: each era calls that another status */
#define NGX_MCP_TOOL_ERROR   0x02

/* of any task: the answer to the call that created it has been sent */
#define NGX_MCP_ANNOUNCED    0x04
/* of a slot that is free, but kept until a store has removed its copy */
#define NGX_MCP_REMOVED      0x08

/* the next two are known: they are not for results that 0.1.0 stored */
#define NGX_MCP_RESULT_READ  0x10
/* a result with the member resultType */
#define NGX_MCP_HAS_TYPE     0x20
/* a result with the member _meta */
#define NGX_MCP_HAS_META     0x40

/* of a task that came from a store, and has had no new version since */
#define NGX_MCP_LOADED       0x80

/* those that are of the task, and not of its place in memory */
#define NGX_MCP_FLAGS_SAVED  0x77


/* of a call that a process of ours runs */

/* running it once more does no harm */
#define NGX_MCP_IDEMPOTENT  0x01
/* only the process that has it knows what it takes to run it */
#define NGX_MCP_BOUND       0x02


/* set when the task is created, never changed afterwards */

typedef struct {
    uint32_t  lease;             /* ms */
    uint32_t  queue_timeout;     /* ms */
    uint32_t  run_timeout;       /* ms, of one attempt */
    uint32_t  backoff;           /* ms, doubles */
    uint32_t  poll_interval;     /* ms */
    uint32_t  keep_completed;    /* seconds */
    uint32_t  keep_failed;       /* seconds */
    uint32_t  keep_cancelled;    /* seconds */
    uint32_t  route;             /* 0: workers claim it */
    uint8_t   attempts;
    uint8_t   priority;
    uint8_t   calls;             /* flags, see above */
} ngx_mcp_policy_t;


typedef struct {
    uint64_t          version;
    uint64_t          created;           /* wall clock, ms */
    uint64_t          updated;           /* wall clock, ms */
    uint64_t          ttl;               /* ms, as told */
    uint64_t          expires;           /* monotonic, ms */

    /*
     * monotonic, ms: when the present step runs out.  Queued: the end of the
     * backoff, NEVER if the task may be claimed now.  Running: the end of the
     * lease.  Otherwise NEVER: a lease does not run while people think.
     */
    uint64_t          step_end;

    /*
     * queued: the queue timeout; running: the run timeout, both monotonic;
     * input required: how much of the run timeout is left, a duration
     */
    uint64_t          phase_end;

    /*
     * queued: since when the task may be claimed, which may lie ahead;
     * running: since when, both monotonic; input required: for how long it
     * has run so far, a duration
     */
    uint64_t          since;

    uint64_t          lease_token;       /* token, 0: none */
    uint64_t          holder;            /* with a route: who has it;
                                            who is to announce it;
                                            see ngx_mcp_signal.h */
    double            progress;          /* negative: none */
    double            total;             /* negative: none */

    ngx_mcp_policy_t  policy;

    uint8_t           attempt;
    uint8_t           state;
    uint8_t           flags;
    uint8_t           cause;
    uint32_t          worker;            /* that has or had it,
                                            see ngx_mcp_stats.h */
} ngx_mcp_task_t;


typedef struct {
    ngx_uint_t  type;
    uint64_t    now;               /* monotonic, ms */
    uint64_t    wall;              /* ms */
    uint64_t    lease_token;       /* token */
    uint64_t    holder;            /* of an orphan; 0: none */
    uint32_t    lease_time;        /* 0: as the policy says */
    uint32_t    delay;             /* of a retry, likewise */
    uint32_t    worker;            /* of a claim; 0: none */
    double      progress;
    double      total;
    uint8_t     flags;
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
