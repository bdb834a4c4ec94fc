
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A mirror: a table with copies of tasks that a store shares with other
 * machines.  It has the tasks that somebody waits for here, and tasks that have
 * ended, which never change.  The copies are linked like the tasks of any
 * table, so that reading, waiting, checking and recovery are the same, but
 * nobody claims, changes or sweeps them here.
 *
 * Revisions and versions are those of the store.  The numbers of changes and
 * the order of creation are those of this machine: a copy gets the next number
 * when it arrives.
 *
 * A process pins the copies that it needs.  When there is no room, others are
 * evicted.  Pins are bits of processes, like waiters, so each process counts
 * its own requests.
 */


#ifndef _NGX_MCP_MIRROR_H_INCLUDED_
#define _NGX_MCP_MIRROR_H_INCLUDED_


#include "ngx_mcp_table.h"
#include "ngx_mcp_record.h"


/* evicted at most for one new copy, and slots examined for that */
#define NGX_MCP_MIRROR_EVICT    64
#define NGX_MCP_MIRROR_EXAMINE  1024

/* copies that may be evicted, of which the least recently changed one is */
#define NGX_MCP_MIRROR_SAMPLE   8

/* slots handled by one call of the functions for all slots */
#define NGX_MCP_MIRROR_STEP     256


/* flags of ngx_mcp_mirror_put_locked() */

/* this machine runs the background call; others do not count as held here */
#define NGX_MCP_MIRROR_LOCAL    1
/* replace the copy in any case: the store may have lost its last changes */
#define NGX_MCP_MIRROR_FORCE    2


/*
 * Inserts a copy, or replaces the one with the same id, and signals what waits
 * for it if clients see a change.  The record has all payloads, its times are
 * monotonic, and the caller has validated it.
 *
 * NGX_DECLINED: the copy has this revision or a later one.  NGX_ABORT: there is
 * no room; a copy with the same id is then obsolete.
 */

ngx_int_t ngx_mcp_mirror_put_locked(ngx_mcp_table_t *t, ngx_mcp_record_t *rec,
    ngx_uint_t flags);

/* the task no longer exists: what waits for it is signalled */
void ngx_mcp_mirror_remove_locked(ngx_mcp_table_t *t, ngx_mcp_id_t *id);

/* returns 0 if this process has no place, so it cannot pin */
ngx_uint_t ngx_mcp_mirror_pin_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

/* no request of this process waits for the task any more */
void ngx_mcp_mirror_unpin_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

/*
 * These handle a part of all slots and return 1 until all are done.  The caller
 * sets *next to 0 before the first call.
 */

/* removes copies that nobody has pinned, without signals */
ngx_uint_t ngx_mcp_mirror_clear_locked(ngx_mcp_table_t *t, uint32_t *next);

/*
 * Clears the bits of processes that are not in live.  A new process may have
 * the bit of a dead one, so before its first pin it does this without its own.
 */
ngx_uint_t ngx_mcp_mirror_unpin_dead_locked(ngx_mcp_table_t *t, uint64_t live,
    uint32_t *next);


#endif /* _NGX_MCP_MIRROR_H_INCLUDED_ */
