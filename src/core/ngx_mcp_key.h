
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A key is the number of something that a process can wait for: one task, all
 * tasks of an owner, a session or a tool, or an event of the zone.  See
 * ngx_mcp_signal.h for how processes are notified.
 */


#ifndef _NGX_MCP_KEY_H_INCLUDED_
#define _NGX_MCP_KEY_H_INCLUDED_


#include "ngx_mcp_id.h"


/* keys of owners, sessions and tools: the hash of the name modulo this */
#define NGX_MCP_AWAITED       256

/* these and the two keys without a name */
#define NGX_MCP_KEYS          (NGX_MCP_AWAITED + 2)


/* the key of a task: a part of its id, which is random, and the top bit */

static ngx_inline uint64_t
ngx_mcp_signal_id(const ngx_mcp_id_t *id)
{
    uint64_t  key;

    ngx_memcpy(&key, id->data, sizeof(uint64_t));

    return key | ((uint64_t) 1 << 63);
}


/* the key of a name; names of any kind may share a key */

#define ngx_mcp_signal_name(hash)  ((uint64_t) ((hash) % NGX_MCP_AWAITED))

/* in place of a hash: a background call may be able to begin */
#define NGX_MCP_CAPACITY  0
/* in place of a hash: a task of any owner has changed */
#define NGX_MCP_ANY   1

/* keys without a name: there are changes to save; changes were saved */
#define NGX_MCP_UNSAVED  NGX_MCP_AWAITED
#define NGX_MCP_SAVED    (NGX_MCP_AWAITED + 1)

#define ngx_mcp_signal_is_name(key)  (((key) >> 63) == 0)

/* the key stands for changes of tasks, not for saving them */
#define ngx_mcp_signal_is_change(key)                                         \
    ((key) != NGX_MCP_UNSAVED && (key) != NGX_MCP_SAVED)


#endif /* _NGX_MCP_KEY_H_INCLUDED_ */
