
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The statistics of a zone: see ngx_mcp_stats.h. */


#ifndef _NGX_MCP_STATS_TYPES_H_INCLUDED_
#define _NGX_MCP_STATS_TYPES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_payload.h"
#include "ngx_mcp_reason.h"


/* of a histogram; the last has no bound */
#define NGX_MCP_BUCKETS       12

/* entries of tools; tools with longer names share the entry "other" */
#define NGX_MCP_STAT_TOOLS    128
#define NGX_MCP_STAT_NAME     128

/* the entry of all tools without an entry of their own */
#define NGX_MCP_OTHER       0
#define NGX_MCP_OTHER_NAME  "other"

/* length of a store's error message, with the terminating zero */
#define NGX_MCP_STORE_ERROR   256


/* durations, as numbers per bucket; buckets are not cumulative */

typedef struct {
    uint64_t  bucket[NGX_MCP_BUCKETS];
    uint64_t  sum;               /* ms */
} ngx_mcp_histogram_t;


/* counters of tasks, for the zone and for each tool */

typedef struct {
    uint64_t             created;
    uint64_t             completed;
    uint64_t             failed;
    uint64_t             cancelled;
    uint64_t             lapsed;            /* expired before the end */
    uint64_t             dropped;           /* deleted before the end */
    uint64_t             claimed;
    uint64_t             requeued;
    uint64_t             leases_lost;

    ngx_mcp_histogram_t  wait;              /* from claimable to claim */
    ngx_mcp_histogram_t  run;               /* of attempts, without the
                                               time waiting for input */
} ngx_mcp_task_counters_t;


typedef struct {
    uint64_t  expired;           /* tasks in any state */
    uint64_t  deleted;           /* tasks in any state */
    uint64_t  stale_leases;      /* requests with a lost lease */
    uint64_t  sweeps;
    uint64_t  swept;             /* steps of the wheel */
    uint64_t  sweep_lag;         /* ms, maximum of the last sweep */
    uint64_t  sweep_lag_max;     /* ms */
    uint64_t  sweep_batch;       /* steps of the last sweep */
    uint64_t  recoveries;
    uint64_t  changes_dropped;   /* not delivered to a session */
    uint64_t  signals;           /* of changes */
    uint64_t  lock_waits;        /* long ones */
    uint64_t  lock_wait_max;     /* ms */

    /* by reason; some are added without the lock: aligned for that */
    uint64_t  refused[NGX_MCP_REASONS] __attribute__((aligned(8)));
} ngx_mcp_counters_t;


/*
 * A tool's entry, which stays when the tool's name is freed.  The first entry
 * is for all tools without an entry of their own.
 */

typedef struct {
    ngx_mcp_task_counters_t  count;

    /* gauges, rebuilt by recovery */
    uint32_t         states[NGX_MCP_STATES];
    uint32_t         running;           /* background calls */
    uint32_t         tool;              /* name, 0: no tasks now */

    uint32_t         paused;            /* its tasks are not claimed */
    uint16_t         len;
    u_char           name[NGX_MCP_STAT_NAME];
} ngx_mcp_tool_stat_t;


/* a worker's entry; the least recently seen worker's is reused */

typedef struct {
    uint64_t  seen;              /* monotonic, ms */
    uint64_t  seen_wall;         /* wall clock, ms */
    uint64_t  claimed;
    uint64_t  completed;
    uint64_t  failed;
    uint32_t  incarnation;       /* workers that have had the entry */
    uint32_t  draining;          /* gets no more tasks */
    uint16_t  len;
    u_char    name[NGX_MCP_WORKER_NAME];
} ngx_mcp_worker_stat_t;


/* the status of a store on disk */

typedef struct {
    uint64_t             up;                /* 0: changes are not saved */
    uint64_t             commits;
    uint64_t             rows;              /* tasks saved or deleted */
    uint64_t             failures;
    uint64_t             last_wall;         /* of a commit, wall clock, ms */
    ngx_mcp_histogram_t  time;              /* of commits */
    uint64_t             sync;              /* as configured last */
    u_char               error[NGX_MCP_STORE_ERROR];    /* empty: none */
} ngx_mcp_store_stat_t;


/* written only by the process itself, without the lock, until it dies */

typedef struct {
    uint32_t  waiting;           /* requests that wait */
    uint32_t  streams;           /* open streams */
} ngx_mcp_present_t;


/* upper bounds of the buckets, ms */
extern const uint32_t  ngx_mcp_bounds[];


#endif /* _NGX_MCP_STATS_TYPES_H_INCLUDED_ */
