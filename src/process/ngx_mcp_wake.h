
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


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

#include "ngx_mcp_key.h"
#include "ngx_mcp_stats_types.h"


typedef struct {
    ngx_queue_t   queue;
    uint64_t      key;        /* see ngx_mcp_key.h */
    ngx_event_t  *event;      /* posted when it is signalled */
    ngx_uint_t    fired;
} ngx_mcp_watch_t;


/* a zone, in this process */

typedef struct ngx_mcp_local_s  ngx_mcp_local_t;

struct ngx_mcp_local_s {
    ngx_str_t               *name;
    struct ngx_mcp_table_s  *table;
    void                    *data;       /* what hooks are called with */

    ngx_queue_t             *watches;    /* lists of them */
    uint64_t                 cursor;     /* in the log */
    uint32_t                 epoch;
    ngx_mcp_present_t        present;    /* requests that wait here */

    /* see ngx_mcp_sweep.h */
    ngx_event_t              sweep;
    ngx_connection_t         dummy;      /* debug logs want an fd of it */
    ngx_int_t              (*swept)(void *data);
};


/* what layers above do when this happens; a list ends without them */

typedef struct {
    void  (*died)(void *data);   /* another process */
    void  (*exits)(void *data);  /* this one is about to */
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

/* grows whenever something may have changed for those who wait here */
extern ngx_uint_t  ngx_mcp_wakeups;


#endif /* _NGX_MCP_WAKE_H_INCLUDED_ */
