
/*
 * Whether a record may become a task.  What comes from a store is no better
 * than what comes from a client: somebody may have written there, or the disk
 * may have failed.  What is said of single values, see ngx_mcp_record_set(),
 * was looked at already; here it is what they say together, and the bytes.
 */


#ifndef _NGX_MCP_VALID_H_INCLUDED_
#define _NGX_MCP_VALID_H_INCLUDED_


#include "ngx_mcp_record.h"


/* a whole record in store time: NULL, or the field or payload that is wrong */

const char *ngx_mcp_record_valid(ngx_mcp_record_t *rec);


#endif /* _NGX_MCP_VALID_H_INCLUDED_ */
