
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Checks whether a record may become a task.  Data from a store is not trusted
 * more than data from a client: somebody may have written to the database, or
 * the disk may have failed.  ngx_mcp_record_set() has already checked each
 * value; this checks whether the values fit together, and the payloads.
 */


#ifndef _NGX_MCP_VALID_H_INCLUDED_
#define _NGX_MCP_VALID_H_INCLUDED_


#include "ngx_mcp_record.h"


/* the last millisecond whose year has four digits */
#define NGX_MCP_VALID_DATE   253402300799999ULL


/* a record in store time; NULL: valid, or the name of the invalid field */

const char *ngx_mcp_record_valid(ngx_mcp_record_t *rec);


#endif /* _NGX_MCP_VALID_H_INCLUDED_ */
