
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Waking worker processes, and the watches of this one.
 *
 * The master creates eventfds, which every worker process of every later
 * generation inherits.  Each worker process claims one of them, its place; so
 * any two worker processes can wake each other, also during a reload.  A
 * wake-up carries no data: the process that is woken reads the logs of its
 * zones.
 */


#ifndef _NGX_MCP_WAKE_H_INCLUDED_
#define _NGX_MCP_WAKE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_mcp_key.h"
#include "ngx_mcp_stats_types.h"


typedef struct {
    ngx_queue_t   queue;
    uint64_t      key;        /* see ngx_mcp_key.h */
    ngx_event_t  *event;      /* posted by a signal */
    ngx_uint_t    fired;      /* set by a signal, cleared by its user */
} ngx_mcp_watch_t;


/* what this process has of a zone */

typedef struct ngx_mcp_local_s  ngx_mcp_local_t;

struct ngx_mcp_local_s {
    ngx_str_t               *name;
    struct ngx_mcp_table_s  *table;
    void                    *data;       /* argument of hooks */

    ngx_queue_t             *watches;    /* lists, by key */
    uint64_t                 cursor;     /* next signal in the log */
    uint32_t                 epoch;      /* the last one handled */
    ngx_mcp_present_t        present;    /* requests that wait here */

    /* see ngx_mcp_sweep.h */
    ngx_event_t              sweep;
    ngx_connection_t         dummy;      /* debug logging reads its fd */
    ngx_int_t              (*swept)(void *data);
};


/* hooks of the layers above, called per zone; NULLs end the list */

typedef struct {
    void  (*died)(void *data);   /* another process has died */
    void  (*exits)(void *data);  /* this process begins to exit */
} ngx_mcp_hooks_t;


ngx_int_t ngx_mcp_wake_module(ngx_cycle_t *cycle);
ngx_int_t ngx_mcp_wake_process(ngx_cycle_t *cycle, ngx_array_t *locals,
    ngx_mcp_hooks_t *hooks);
void ngx_mcp_wake_exit(void);

void ngx_mcp_watch(ngx_mcp_local_t *local, ngx_mcp_watch_t *watch,
    uint64_t key, ngx_event_t *event);
void ngx_mcp_unwatch(ngx_mcp_watch_t *watch);

uint64_t ngx_mcp_stream_new(ngx_mcp_local_t *local);
void ngx_mcp_present(ngx_mcp_local_t *local);

/* grows when a task that this process waits for may have changed */
extern ngx_uint_t  ngx_mcp_wakeups;


#endif /* _NGX_MCP_WAKE_H_INCLUDED_ */
