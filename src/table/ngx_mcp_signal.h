
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Telling processes that something changed which they wait for.
 *
 * A process that waits for a task leaves its bit in the task's slot; for what
 * may not exist yet (the tasks of an owner, of a session, or for a tool to be
 * claimed) it does so under the hash of the name.  Who makes a change writes
 * a signal into the zone's log for the processes found there, takes the bits
 * away, and wakes these processes once the lock is free.  A signal says what
 * to look at, never what is to be seen.  Whoever looks and goes on waiting
 * leaves the bit again, in the same hold of the lock.
 *
 * None of this is needed to know the truth.  A process that finds that the
 * log has overtaken it looks at everything, and so do all after a recovery;
 * and since each reads the log now and then without being woken, a wake-up
 * that was lost delays nobody for long.
 */


#ifndef _NGX_MCP_SIGNAL_H_INCLUDED_
#define _NGX_MCP_SIGNAL_H_INCLUDED_


#include "ngx_mcp_table.h"


/*
 * A stream is known by the place of its process, by which of the processes
 * that had this place it is, and by a number there: others see whether it may
 * still be alive.
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
