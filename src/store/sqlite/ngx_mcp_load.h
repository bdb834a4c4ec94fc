
/* Filling a zone with the tasks of a database. */


#ifndef _NGX_MCP_LOAD_H_INCLUDED_
#define _NGX_MCP_LOAD_H_INCLUDED_


#include "ngx_mcp_table.h"
#include "ngx_mcp_record.h"


/* how far a load has come, and what it would take */

typedef struct {
    uint64_t    tasks;
    uint64_t    blocks;
    uint64_t    expired;
    uint64_t    seq;               /* the largest */
    ngx_uint_t  full;              /* it did not fit */
    uint64_t    now;
    uint64_t    store;             /* the same, in store time */
    int64_t     ahead;             /* of the wall clock, was store time */
    uint64_t    away;              /* ms that nobody was there */

    /* what is wrong with which task; NULL: nothing */
    const char *wrong;
    uint64_t    row;
} ngx_mcp_load_t;


void ngx_mcp_load_begin_locked(ngx_mcp_table_t *t, uint64_t *secret,
    ngx_mcp_load_t *load);
void ngx_mcp_load_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load,
    ngx_mcp_record_t *rec);
ngx_int_t ngx_mcp_load_end_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load);


#endif /* _NGX_MCP_LOAD_H_INCLUDED_ */
