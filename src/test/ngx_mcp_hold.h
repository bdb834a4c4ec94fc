
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * How long the lock is held: measured in the test build, for benchmarks.
 * Other builds contain none of this code.
 */


#ifndef _NGX_MCP_HOLD_H_INCLUDED_
#define _NGX_MCP_HOLD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_TEST)

/* ns; with a clock of real time, a long hold may be a preempted process */
#define NGX_MCP_HOLD_LONG  50000

typedef struct {
    uint32_t  clock;             /* clockid_t; 0: not measuring */
    uint32_t  reserved;
    uint64_t  since;             /* all times in ns */
    uint64_t  sum;               /* of all holds */
    uint64_t  rare;              /* of the long holds */
    uint64_t  longest;
    uint64_t  times;             /* number of holds */
} ngx_mcp_hold_t;

void ngx_mcp_hold_begin(ngx_mcp_hold_t *hold);
void ngx_mcp_hold_end(ngx_mcp_hold_t *hold);

#else

#define ngx_mcp_hold_begin(hold)
#define ngx_mcp_hold_end(hold)

#endif


#endif /* _NGX_MCP_HOLD_H_INCLUDED_ */
