
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The history of a task: its last changes of state, with their times, events
 * and the workers that claimed it.
 *
 * The history is stored after the params, in the unused rest of their last
 * block, where NGX_MCP_HISTORY bytes are reserved; most tasks need no extra
 * block for it.  Times are stored as differences: an entry takes three to six
 * bytes.  If there is no room for a new entry, the oldest is dropped.
 *
 * Nothing depends on the history, so it is not journaled: if a process dies
 * while it writes, the history is empty afterwards.
 */


#ifndef _NGX_MCP_HISTORY_H_INCLUDED_
#define _NGX_MCP_HISTORY_H_INCLUDED_


#include "ngx_mcp_table.h"


/* bytes reserved for it, and the maximum number of entries */
#define NGX_MCP_HISTORY      32
#define NGX_MCP_HISTORY_MAX  60

/* bytes of a history without entries */
#define NGX_MCP_HISTORY_MIN  7


typedef struct {
    uint64_t  at;                 /* wall clock, ms */
    uint32_t  worker;             /* of a claim, see ngx_mcp_stats.h; 0: none */
    uint8_t   event;
    uint8_t   state;              /* after the event */
} ngx_mcp_history_entry_t;


void ngx_mcp_history_init_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_history_add_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev);
size_t ngx_mcp_history_bytes_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    u_char **bytes);

/* a history outside of a table: size bytes, all zero if it has no entries */
void ngx_mcp_history_append(u_char *p, size_t size, uint64_t created,
    uint64_t wall, ngx_uint_t event, ngx_uint_t state, uint32_t worker);

/* NGX_OK, if no entry is malformed or later than latest ms after creation */
ngx_int_t ngx_mcp_history_valid(u_char *p, size_t len, uint64_t latest);

void ngx_mcp_history_load_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    u_char *bytes, size_t len);

ngx_uint_t ngx_mcp_history_read(u_char *p, size_t size, uint64_t created,
    ngx_mcp_history_entry_t *entry, ngx_uint_t *dropped);


#endif /* _NGX_MCP_HISTORY_H_INCLUDED_ */
