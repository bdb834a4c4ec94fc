
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Applying an event to a task outside of a table, with the same decisions as
 * ngx_mcp_change_locked().  A store that keeps its tasks elsewhere loads a
 * record, changes it, and saves it unless somebody else was faster.
 *
 * Numbers of changes are assigned by the store: this function says which are
 * needed.  The limit of an owner's bytes is checked by the store, too.  If a
 * diagnosis exceeds it, the event is applied again to the record of before,
 * with plain set.
 */


#ifndef _NGX_MCP_RECORD_CHANGE_H_INCLUDED_
#define _NGX_MCP_RECORD_CHANGE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_record.h"


typedef struct {
    /* of the record's payloads, before and after; params without method */
    uint32_t    lengths[NGX_MCP_PAYLOADS];

    /* there is no room for the diagnosis: the task ends without it */
    ngx_uint_t  plain;

    int64_t     growth;        /* of all payloads, bytes */
    ngx_uint_t  changed;       /* clients see a change: it needs a number */
    ngx_uint_t  turned;        /* that number is also that of turned */
    ngx_uint_t  moved;         /* and that of moved */
    ngx_uint_t  requeued;      /* it needs a new queue_seq */
    ngx_uint_t  written;       /* payloads in the record that are new, as
                                  bits; with length 0: deleted */
    ngx_uint_t  diagnosed;     /* the message is the diagnosis */
    ngx_uint_t  removed;       /* EV_EXPIRE: the task is to be removed */
} ngx_mcp_record_change_t;


/*
 * Returns NGX_MCP_OK, or the reason of a refusal.  If it is refused or removed,
 * the record is unchanged, and so are the lengths.  The times of the record are
 * monotonic.  Its history is changed in place.  change may be NULL; the record
 * then refers to the payloads in it.  What EV_ASK does to the asker is left to
 * the caller.
 */

ngx_uint_t ngx_mcp_record_change(ngx_mcp_record_t *rec, ngx_mcp_event_t *ev,
    ngx_mcp_change_t *change, ngx_mcp_record_change_t *rc);


#endif /* _NGX_MCP_RECORD_CHANGE_H_INCLUDED_ */
