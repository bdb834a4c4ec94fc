
/*
 * How long the lock is held: measured in the test build, for benchmarks.
 * Other builds contain nothing of it.
 */


#ifndef _NGX_MCP_HOLD_H_INCLUDED_
#define _NGX_MCP_HOLD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_TEST)

/* ns; the process may have been interrupted, if the clock is on the wall */
#define NGX_MCP_HOLD_LONG  50000

typedef struct {
    uint32_t  clock;             /* which one; 0: none */
    uint32_t  reserved;
    uint64_t  since;             /* ns, as all here */
    uint64_t  sum;
    uint64_t  rare;              /* of the long ones */
    uint64_t  longest;
    uint64_t  times;
} ngx_mcp_hold_t;

void ngx_mcp_hold_begin(ngx_mcp_hold_t *hold);
void ngx_mcp_hold_end(ngx_mcp_hold_t *hold);

#else

#define ngx_mcp_hold_begin(hold)
#define ngx_mcp_hold_end(hold)

#endif


#endif /* _NGX_MCP_HOLD_H_INCLUDED_ */
