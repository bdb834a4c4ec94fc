
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Adding the tasks of a database to a zone. */


#ifndef _NGX_MCP_LOAD_H_INCLUDED_
#define _NGX_MCP_LOAD_H_INCLUDED_


#include "ngx_mcp_table.h"
#include "ngx_mcp_record.h"


/* the progress of a load, and what the tasks need */

typedef struct {
    uint64_t    tasks;             /* all, even if full */
    uint64_t    blocks;            /* likewise */
    uint64_t    expired;           /* tasks not loaded */
    uint64_t    seq;               /* the largest number */
    ngx_uint_t  full;              /* the zone is too small */
    uint64_t    now;               /* monotonic, ms */
    uint64_t    store_now;         /* the same in store time */
    int64_t     clock_diff;        /* store time minus wall clock,
                                      at the last commit */
    uint64_t    elapsed;           /* ms since the last commit */

    /* the invalid field, and seq of the task; NULL: none */
    const char *field;
    uint64_t    row;
} ngx_mcp_load_t;


void ngx_mcp_load_begin_locked(ngx_mcp_table_t *t, uint64_t *secret,
    ngx_mcp_load_t *load);
void ngx_mcp_load_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load,
    ngx_mcp_record_t *rec);
ngx_int_t ngx_mcp_load_end_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load);


#endif /* _NGX_MCP_LOAD_H_INCLUDED_ */
