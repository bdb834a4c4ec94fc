
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* What is counted in a zone: see ngx_mcp_stats.h for who counts it. */


#ifndef _NGX_MCP_STATS_TYPES_H_INCLUDED_
#define _NGX_MCP_STATS_TYPES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_payload.h"
#include "ngx_mcp_reason.h"


/* of a histogram; the last has no bound */
#define NGX_MCP_BUCKETS       12

/* tools that are counted apart; longer names share an entry */
#define NGX_MCP_STAT_TOOLS    128
#define NGX_MCP_STAT_NAME     128

/* the entry of tools that have none of their own, and what it is called */
#define NGX_MCP_OTHER       0
#define NGX_MCP_OTHER_NAME  "other"

/* why a store on disk failed, with a zero at its end */
#define NGX_MCP_STORE_ERROR   256


/* how long something took: how often up to each bound, and in all */

typedef struct {
    uint64_t  bucket[NGX_MCP_BUCKETS];
    uint64_t  sum;               /* ms */
} ngx_mcp_histogram_t;


/* what became of tasks: of all in the zone, and of those of a tool */

typedef struct {
    uint64_t             created;
    uint64_t             completed;
    uint64_t             failed;
    uint64_t             cancelled;
    uint64_t             lapsed;            /* expired, not ended */
    uint64_t             dropped;           /* deleted, not ended */
    uint64_t             claimed;
    uint64_t             requeued;
    uint64_t             leases_lost;

    /* until claimed; of an attempt, without the time it waits for input */
    ngx_mcp_histogram_t  wait;
    ngx_mcp_histogram_t  run;
} ngx_mcp_task_counters_t;


typedef struct {
    uint64_t  expired;           /* ended or not */
    uint64_t  deleted;
    uint64_t  stale_leases;
    uint64_t  sweeps;
    uint64_t  swept;
    uint64_t  sweep_lag;         /* ms, of the last */
    uint64_t  sweep_lag_max;
    uint64_t  sweep_batch;       /* tasks of the last */
    uint64_t  recoveries;
    uint64_t  changes_dropped;
    uint64_t  signals;
    uint64_t  lock_waits;        /* long ones */
    uint64_t  lock_wait_max;     /* ms */

    /* added to without the lock: not split between cache lines */
    uint64_t  refused[NGX_MCP_REASONS] __attribute__((aligned(8)));
} ngx_mcp_counters_t;


/*
 * Of a tool; outlives its name.  The first entry is for all the tools that
 * have none of their own.
 */

typedef struct {
    ngx_mcp_task_counters_t  count;

    /* gauges, rebuilt by recovery */
    uint32_t         states[NGX_MCP_STATES];
    uint32_t         running;           /* calls */
    uint32_t         tool;              /* name, 0: none now */

    uint32_t         paused;            /* no task is begun */
    uint16_t         len;
    u_char           name[NGX_MCP_STAT_NAME];
} ngx_mcp_tool_stat_t;


/* of a worker; the one that was not seen for longest makes room for another */

typedef struct {
    uint64_t  seen;              /* monotonic, ms */
    uint64_t  seen_wall;
    uint64_t  claimed;
    uint64_t  completed;
    uint64_t  failed;
    uint32_t  incarnation;       /* how many had it */
    uint32_t  draining;          /* gets no more tasks */
    uint16_t  len;
    u_char    name[NGX_MCP_WORKER_NAME];
} ngx_mcp_worker_stat_t;


/* of a store on disk: how it gets on */

typedef struct {
    uint64_t             up;                /* the last commit did */
    uint64_t             commits;
    uint64_t             rows;
    uint64_t             failures;
    uint64_t             last_wall;         /* when one was made */
    ngx_mcp_histogram_t  time;              /* of commits */
    uint64_t             sync;              /* as configured last */
    u_char               error[NGX_MCP_STORE_ERROR];
} ngx_mcp_store_stat_t;


/* requests of a process; its own affair, until it is dead */

typedef struct {
    uint32_t  waiting;
    uint32_t  streams;
} ngx_mcp_present_t;


extern const uint32_t  ngx_mcp_bounds[];


#endif /* _NGX_MCP_STATS_TYPES_H_INCLUDED_ */
