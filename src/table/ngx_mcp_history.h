
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


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


#ifndef _NGX_MCP_HISTORY_H_INCLUDED_
#define _NGX_MCP_HISTORY_H_INCLUDED_


#include "ngx_mcp_table.h"


/* bytes that are there for it at least, and entries that may be at most */
#define NGX_MCP_HISTORY      32
#define NGX_MCP_HISTORY_MAX  60


typedef struct {
    uint64_t  at;                 /* wall clock, ms */
    uint32_t  worker;             /* of a claim, see ngx_mcp_stats.h; 0: none */
    uint8_t   event;
    uint8_t   state;              /* after it */
} ngx_mcp_history_entry_t;


void ngx_mcp_history_init_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_history_add_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev);
size_t ngx_mcp_history_bytes_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    u_char **bytes);

/* of a record: what a history has, and nothing later than so many ms */
ngx_int_t ngx_mcp_history_valid(u_char *p, size_t len, uint64_t latest);

void ngx_mcp_history_load_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    u_char *bytes, size_t len);

ngx_uint_t ngx_mcp_history_read(u_char *p, size_t size, uint64_t created,
    ngx_mcp_history_entry_t *entry, ngx_uint_t *dropped);


#endif /* _NGX_MCP_HISTORY_H_INCLUDED_ */
