
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * What a process may wait for, as a number: a task, or whatever belongs to an
 * owner, a session or a tool.  See ngx_mcp_signal.h for how it is told.
 */


#ifndef _NGX_MCP_KEY_H_INCLUDED_
#define _NGX_MCP_KEY_H_INCLUDED_


#include "ngx_mcp_id.h"


/* those who wait for an owner, session or tool, by the hash of its name */
#define NGX_MCP_AWAITED       256

/* and what else may be awaited */
#define NGX_MCP_KEYS          (NGX_MCP_AWAITED + 2)


/* of a task: ids are random */

static ngx_inline uint64_t
ngx_mcp_signal_id(const ngx_mcp_id_t *id)
{
    uint64_t  key;

    ngx_memcpy(&key, id->data, sizeof(uint64_t));

    return key | ((uint64_t) 1 << 63);
}


/* of a name: all with the same hash, whatever their kind */

#define ngx_mcp_signal_name(hash)  ((uint64_t) ((hash) % NGX_MCP_AWAITED))

/* in place of a hash: one call less is running, or waits to */
#define NGX_MCP_CAPACITY  0
/* some task, whosever it is, has changed */
#define NGX_MCP_ANY   1

/* no names: there is something to save, for the one who does; it is saved */
#define NGX_MCP_UNSAVED  NGX_MCP_AWAITED
#define NGX_MCP_SAVED    (NGX_MCP_AWAITED + 1)

#define ngx_mcp_signal_is_name(key)  (((key) >> 63) == 0)

/* somebody waits for a change, and not for its being saved */
#define ngx_mcp_signal_is_change(key)                                         \
    ((key) != NGX_MCP_UNSAVED && (key) != NGX_MCP_SAVED)


#endif /* _NGX_MCP_KEY_H_INCLUDED_ */
