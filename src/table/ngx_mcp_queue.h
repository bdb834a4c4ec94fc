
/* The tasks of a tool that may be claimed: a FIFO for each priority. */


#ifndef _NGX_HTTP_MCP_TASKS_QUEUE_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_QUEUE_H_INCLUDED_


#include "ngx_mcp_table.h"


void ngx_http_mcp_tasks_queue_insert_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s);
void ngx_http_mcp_tasks_queue_remove_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s);
ngx_http_mcp_tasks_slot_t *ngx_http_mcp_tasks_queue_first_locked(
    ngx_http_mcp_tasks_table_t *t, ngx_str_t *tools, uint32_t *hashes,
    ngx_uint_t n);


#endif /* _NGX_HTTP_MCP_TASKS_QUEUE_H_INCLUDED_ */
