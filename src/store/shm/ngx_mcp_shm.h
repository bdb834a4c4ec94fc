
/* What the operations of the store in shared memory have in common. */


#ifndef _NGX_HTTP_MCP_TASKS_SHM_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_SHM_H_INCLUDED_


#include "ngx_mcp_op.h"


/* holds most tasks' bytes, so that the lock is taken once */
#define NGX_HTTP_MCP_TASKS_VIEW_BYTES   576


/* what is copied out under the lock was allocated before */

typedef struct {
    u_char      *data;
    size_t       size;
    ngx_pool_t  *pool;
} ngx_http_mcp_tasks_room_t;


/* tasks that an operation found */

typedef struct {
    uint32_t                    slots[NGX_HTTP_MCP_TASKS_LIST_MAX];
    ngx_uint_t                  n;
    size_t                      size;       /* of the bytes that are wanted */
    ngx_http_mcp_tasks_room_t   room;
    uint32_t                    hash;       /* of the name they belong to */
} ngx_http_mcp_tasks_found_t;


typedef void (*ngx_http_mcp_tasks_find_pt)(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_op_t *op, ngx_http_mcp_tasks_found_t *found);
typedef void (*ngx_http_mcp_tasks_lock_pt)(ngx_http_mcp_tasks_table_t *t);


/* of the states that a list may be limited to */

static ngx_inline ngx_uint_t
ngx_http_mcp_tasks_list_bit(ngx_http_mcp_tasks_task_t *task)
{
    return (task->state == NGX_HTTP_MCP_TASKS_COMPLETED
            && task->flags & NGX_HTTP_MCP_TASKS_TOOL_ERROR)
           ? NGX_HTTP_MCP_TASKS_LIST_ERROR : 1u << task->state;
}


ngx_int_t ngx_http_mcp_tasks_room(ngx_http_mcp_tasks_room_t *room,
    size_t size);
ngx_http_mcp_tasks_view_t *ngx_http_mcp_tasks_find_lock(
    ngx_http_mcp_tasks_table_t *t, ngx_http_mcp_tasks_op_t *op,
    ngx_uint_t *limit, ngx_http_mcp_tasks_found_t *found,
    ngx_http_mcp_tasks_find_pt find, ngx_http_mcp_tasks_lock_pt lock);
size_t ngx_http_mcp_tasks_view_size_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s, ngx_uint_t want);
u_char *ngx_http_mcp_tasks_view_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s, ngx_uint_t want,
    ngx_http_mcp_tasks_view_t *view, u_char *p);
ngx_uint_t ngx_http_mcp_tasks_carry_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s, uint64_t stream, ngx_uint_t yields);

void ngx_http_mcp_tasks_shm_unlock(ngx_http_mcp_tasks_zone_t *zone);
void ngx_http_mcp_tasks_event_time(ngx_http_mcp_tasks_event_t *ev);
ngx_int_t ngx_http_mcp_tasks_lease_new(uint64_t *lease);

/* ngx_mcp_shm_recent.c */

ngx_int_t ngx_http_mcp_tasks_shm_recent(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);

/* ngx_mcp_shm_run.c */

ngx_int_t ngx_http_mcp_tasks_shm_run(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);
ngx_int_t ngx_http_mcp_tasks_shm_orphans(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);

/* ngx_mcp_shm_stats.c */

ngx_int_t ngx_http_mcp_tasks_shm_stats(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);

/* ngx_mcp_shm_control.c */

ngx_int_t ngx_http_mcp_tasks_shm_pause(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);
ngx_int_t ngx_http_mcp_tasks_shm_drain(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);

/* ngx_mcp_shm_wait.c */

ngx_int_t ngx_http_mcp_tasks_shm_wait(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);
ngx_int_t ngx_http_mcp_tasks_shm_leave(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);
ngx_int_t ngx_http_mcp_tasks_shm_news(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);
ngx_int_t ngx_http_mcp_tasks_shm_session(ngx_http_mcp_tasks_zone_t *zone,
    ngx_http_mcp_tasks_op_t *o);


#endif /* _NGX_HTTP_MCP_TASKS_SHM_H_INCLUDED_ */
