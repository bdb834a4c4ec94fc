
/*
 * A task's last changes of state: when, by which event, and who claimed it.
 *
 * They lie behind the params, in what these leave of their last block, and a
 * little is kept free for them there; so they cost most tasks nothing.  The
 * times are kept as differences: an entry takes three to six bytes.  If there
 * is no room for another, the oldest goes.
 *
 * Nothing depends on them, hence they are not journaled: whoever dies while
 * writing leaves none.
 */


#ifndef _NGX_HTTP_MCP_TASKS_HISTORY_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_HISTORY_H_INCLUDED_


#include "ngx_mcp_table.h"


/* bytes that are there for it at least, and entries that may be at most */
#define NGX_HTTP_MCP_TASKS_HISTORY      32
#define NGX_HTTP_MCP_TASKS_HISTORY_MAX  60


typedef struct {
    uint64_t    at;                 /* wall clock, ms */
    uint32_t    worker;             /* of a claim, see stats.h; 0: none */
    uint8_t     event;
    uint8_t     state;              /* after it */
} ngx_http_mcp_tasks_past_t;


void ngx_http_mcp_tasks_history_init_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s);
void ngx_http_mcp_tasks_history_add_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s, ngx_http_mcp_tasks_event_t *ev);
size_t ngx_http_mcp_tasks_history_bytes_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s, u_char **bytes);

void ngx_http_mcp_tasks_history_load_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_slot_t *s, u_char *bytes, size_t len);

ngx_uint_t ngx_http_mcp_tasks_history_read(u_char *p, size_t size,
    uint64_t created, ngx_http_mcp_tasks_past_t *past, ngx_uint_t *dropped);


#endif /* _NGX_HTTP_MCP_TASKS_HISTORY_H_INCLUDED_ */
