
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Common parts of the operations in shared memory. */


#ifndef _NGX_MCP_SHM_H_INCLUDED_
#define _NGX_MCP_SHM_H_INCLUDED_


#include "ngx_mcp_op.h"
#include "ngx_mcp_zone.h"
#include "ngx_mcp_table.h"


/* enough for most tasks, so that the lock is taken only once */
#define NGX_MCP_VIEW_BYTES   576


/* a buffer for copies, allocated before the lock is taken */

typedef struct {
    u_char      *data;
    size_t       size;
    ngx_pool_t  *pool;
} ngx_mcp_view_buf_t;


/* the tasks that an operation has found */

typedef struct {
    uint32_t            slots[NGX_MCP_LIST_MAX];
    ngx_uint_t          n;
    size_t              size;   /* bytes needed for the copies */
    ngx_mcp_view_buf_t  buf;
    uint32_t            hash;   /* of the name that was searched for */
} ngx_mcp_found_t;


typedef void (*ngx_mcp_find_pt)(ngx_mcp_table_t *t, ngx_mcp_op_t *op,
    ngx_mcp_found_t *found);
typedef void (*ngx_mcp_lock_pt)(ngx_mcp_table_t *t);


/* the bit of a task among the states of a list */

static ngx_inline ngx_uint_t
ngx_mcp_list_bit(ngx_mcp_task_t *task)
{
    return (task->state == NGX_MCP_COMPLETED
            && task->flags & NGX_MCP_TOOL_ERROR)
           ? NGX_MCP_LIST_ERROR : 1u << task->state;
}


ngx_int_t ngx_mcp_view_buf_grow(ngx_mcp_view_buf_t *buf, size_t size);
ngx_mcp_view_t *ngx_mcp_find_lock(ngx_mcp_table_t *t, ngx_mcp_op_t *op,
    ngx_uint_t *limit, ngx_mcp_found_t *found, ngx_mcp_find_pt find,
    ngx_mcp_lock_pt lock);
size_t ngx_mcp_view_size_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t want);
u_char *ngx_mcp_view_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t want, ngx_mcp_view_t *view, u_char *p);
void ngx_mcp_view_attempts(ngx_mcp_view_t *view);
ngx_uint_t ngx_mcp_asks_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    uint64_t stream, ngx_uint_t yields);

void ngx_mcp_shm_unlock(ngx_mcp_zone_t *zone);
void ngx_mcp_event_time(ngx_mcp_event_t *ev);
ngx_int_t ngx_mcp_random_token(uint64_t *token);

ngx_int_t ngx_mcp_shm_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);

/* ngx_mcp_shm_zone.c */

size_t ngx_mcp_shm_zone_need(size_t size, uint64_t max_tasks);
ngx_uint_t ngx_mcp_shm_zone_fits(ngx_mcp_zone_t *old, size_t size,
    uint64_t max_tasks);
ngx_int_t ngx_mcp_shm_zone_create(ngx_mcp_zone_t *zone, ngx_log_t *log);
ngx_int_t ngx_mcp_shm_zone_attach(ngx_mcp_zone_t *zone, ngx_log_t *log);

/* ngx_mcp_shm_recent.c */

ngx_int_t ngx_mcp_shm_recent(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);

/* ngx_mcp_shm_job.c */

ngx_int_t ngx_mcp_shm_attempt(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
ngx_int_t ngx_mcp_shm_attempt_check(ngx_mcp_zone_t *zone,
    ngx_mcp_op_attempt_t *op);
ngx_int_t ngx_mcp_shm_orphans(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);

/* ngx_mcp_shm_stats.c */

ngx_int_t ngx_mcp_shm_stats(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);

/* ngx_mcp_shm_control.c */

ngx_int_t ngx_mcp_shm_pause(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
ngx_int_t ngx_mcp_shm_drain(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);

/* ngx_mcp_shm_wait.c */

ngx_int_t ngx_mcp_shm_wait(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
ngx_int_t ngx_mcp_shm_leave(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
ngx_int_t ngx_mcp_shm_changes(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
ngx_int_t ngx_mcp_shm_session(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);


#endif /* _NGX_MCP_SHM_H_INCLUDED_ */
