
/*
 * The tasks of an owner, newest first.
 *
 * A list in which every 64th task, on average, is also on a fast lane, and
 * every 64th of these on a second one.  Tasks come in at the front and leave
 * anywhere without a search; a page is found again by its cursor in a few
 * hundred steps at a million tasks, even if the task there is gone.  Who is
 * on a lane depends on the zone's secret: nobody can thin a lane on purpose.
 */


#ifndef _NGX_HTTP_MCP_TASKS_ORDER_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_ORDER_H_INCLUDED_


#include "ngx_http_mcp_tasks_table.h"


ngx_uint_t ngx_http_mcp_tasks_order_level(ngx_http_mcp_tasks_table_t *t,
    uint64_t seq);
void ngx_http_mcp_tasks_order_insert_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s);
void ngx_http_mcp_tasks_order_remove_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s);
uint32_t ngx_http_mcp_tasks_order_after_locked(ngx_http_mcp_tasks_table_t *t,
    uint32_t owner, uint64_t seq, uint64_t hint);


#endif /* _NGX_HTTP_MCP_TASKS_ORDER_H_INCLUDED_ */
