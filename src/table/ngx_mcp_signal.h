
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Notifying processes of changes that they wait for.
 *
 * A process that waits for a task sets its bit in the task's slot; to wait for
 * tasks that may not exist yet (of an owner, a session or a tool) it sets its
 * bit under the hash of the name.  The process that makes a change writes a
 * signal for these processes into the zone's log, clears their bits, and wakes
 * them after it has released the lock.  A signal contains only the key of what
 * changed.  A process that reads the task and continues to wait sets its bit
 * again before it releases the lock.
 *
 * Signals may be lost.  If the log has wrapped around before a process has
 * read it, the process checks everything it waits for; all processes do so
 * after a recovery.  Each process also reads the log at intervals without a
 * wake-up, so a lost wake-up causes only a short delay.
 */


#ifndef _NGX_MCP_SIGNAL_H_INCLUDED_
#define _NGX_MCP_SIGNAL_H_INCLUDED_


#include "ngx_mcp_table.h"


/*
 * A stream is identified by the place of its process, the incarnation of that
 * place, and a number in the process.  When the process has died, the place
 * gets a new incarnation, and the stream is no longer alive.
 */

#define ngx_mcp_stream(place, incarnation, n)                                 \
    ((uint64_t) (place) << 56 | ((uint64_t) (incarnation) & 0xffffff) << 32   \
     | (uint32_t) (n))

#define ngx_mcp_stream_alive(t, stream)                                       \
    ((stream)                                                                 \
     && ((stream) >> 32 & 0xffffff)                                           \
        == ((t)->sh->incarnations[(stream) >> 56] & 0xffffff))


void ngx_mcp_await_task_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_await_name_locked(ngx_mcp_table_t *t, uint32_t hash);
void ngx_mcp_await_key_locked(ngx_mcp_table_t *t, uint64_t key);

void ngx_mcp_signal_task_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_signal_name_locked(ngx_mcp_table_t *t, uint32_t hash);
void ngx_mcp_signal_key_locked(ngx_mcp_table_t *t, uint64_t key);
void ngx_mcp_signal_all_locked(ngx_mcp_table_t *t);

ngx_uint_t ngx_mcp_signal_read(ngx_mcp_table_t *t, uint64_t *cursor,
    ngx_mcp_signal_t *signals, ngx_uint_t n);


#endif /* _NGX_MCP_SIGNAL_H_INCLUDED_ */
