
/*
 * Waking processes, and who waits in this one.
 *
 * The master makes a fixed number of eventfds, once; every worker process of
 * every later generation inherits all of them and takes one for itself, so
 * that any two can reach each other, also while a reload overlaps.  A wake-up
 * carries nothing: who is woken reads the logs of its zones.
 */


#ifndef _NGX_MCP_WAKE_H_INCLUDED_
#define _NGX_MCP_WAKE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_mcp_op.h"


/* lists of those who wait: names in the first ones, then tasks */
#define NGX_MCP_WATCH_TASKS  4096
#define NGX_MCP_WATCH_LISTS                                                   \
    (NGX_MCP_KEYS + NGX_MCP_WATCH_TASKS)


typedef struct {
    ngx_queue_t   queue;
    uint64_t      key;        /* see signal.h */
    ngx_event_t  *event;      /* posted when it is signalled */
    ngx_uint_t    fired;
} ngx_mcp_watch_t;


/* of a zone, in this process */

typedef struct {
    ngx_queue_t       *watches;    /* lists of them */
    ngx_queue_t        waits;      /* all parked requests */
    ngx_queue_t        jobs;       /* calls in the background */
    ngx_queue_t        turns;      /* those that may not run yet */
    ngx_mcp_watch_t    room;       /* for one of them */
    ngx_event_t        turn;
    ngx_msec_t         exiting;    /* since when */
    uint64_t           cursor;     /* in the log */
    uint32_t           epoch;
    ngx_mcp_present_t  present;    /* requests that wait here */
} ngx_mcp_local_t;


ngx_int_t ngx_mcp_wake_module(ngx_cycle_t *cycle);
ngx_int_t ngx_mcp_wake_process(ngx_cycle_t *cycle);
void ngx_mcp_wake_exit(ngx_cycle_t *cycle);

void ngx_mcp_watch(ngx_mcp_local_t *local, ngx_mcp_watch_t *watch,
    uint64_t key, ngx_event_t *event);
void ngx_mcp_unwatch(ngx_mcp_watch_t *watch);

uint64_t ngx_mcp_stream_new(ngx_mcp_table_t *t);
void ngx_mcp_present(ngx_mcp_table_t *t, ngx_mcp_local_t *local);

/* grows whenever something may have changed for those who wait here */
extern ngx_uint_t  ngx_mcp_wakeups;


#endif /* _NGX_MCP_WAKE_H_INCLUDED_ */
