
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Statistics of the zone, of each tool, and of each worker.
 *
 * The number of entries is fixed.  A tool gets an entry with its first task
 * and keeps it; when all are in use, further tools share the first entry,
 * which is called "other".  A new worker reuses the entry of the worker that
 * was least recently seen.  Counting takes a few additions; only a tool's
 * first task and a worker's claim search the hashes of all entries.
 *
 * If a process dies, a counter may be one too low.  The numbers of tasks by
 * state are gauges: recovery counts them again.
 */


#ifndef _NGX_MCP_STATS_H_INCLUDED_
#define _NGX_MCP_STATS_H_INCLUDED_


#include "ngx_mcp_table.h"


/* a worker in a task's record: its entry, and the entry's incarnation */

#define ngx_mcp_worker_id(index, incarnation)                                 \
    ((uint32_t) (incarnation) << 8 | ((uint32_t) (index) + 1))

#define ngx_mcp_tool_stat(t, s)                                               \
    (&(t)->tool_stats[ngx_mcp_name(t, (s)->tool)->stat])


void ngx_mcp_stats_layout(ngx_mcp_layout_t *l, size_t size, size_t *offset);
void ngx_mcp_stats_create(ngx_mcp_table_t *t, ngx_mcp_layout_t *l);
void ngx_mcp_stats_reset_locked(ngx_mcp_table_t *t);

ngx_uint_t ngx_mcp_stats_find_tool_locked(ngx_mcp_table_t *t, ngx_str_t *name,
    uint32_t hash);
ngx_uint_t ngx_mcp_stats_find_worker_locked(ngx_mcp_table_t *t,
    ngx_str_t *name, uint32_t hash);
ngx_uint_t ngx_mcp_stats_is_other(ngx_str_t *name);

ngx_uint_t ngx_mcp_stats_tool_locked(ngx_mcp_table_t *t, ngx_str_t *name,
    uint32_t hash);
uint32_t ngx_mcp_stats_worker_locked(ngx_mcp_table_t *t, ngx_str_t *name,
    uint32_t hash, ngx_mcp_event_t *ev);

ngx_mcp_worker_stat_t *ngx_mcp_stats_worker_of_locked(ngx_mcp_table_t *t,
    uint32_t worker);

void ngx_mcp_stats_state_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t from, ngx_uint_t to);
void ngx_mcp_stats_created_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_stats_changed_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev, ngx_uint_t from, uint64_t age);
void ngx_mcp_stats_removed_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t expired);
void ngx_mcp_stats_swept_locked(ngx_mcp_table_t *t, ngx_uint_t tasks,
    uint64_t lag);
void ngx_mcp_stats_time(ngx_mcp_histogram_t *h, uint64_t ms);


#endif /* _NGX_MCP_STATS_H_INCLUDED_ */
