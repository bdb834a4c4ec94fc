
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Test build only: how long the lock is held, see ngx_mcp_hold.h. */


#include "ngx_mcp_hold.h"

#include <time.h>


#if (NGX_MCP_TEST)


static ngx_inline uint64_t
ngx_mcp_hold_now(ngx_mcp_hold_t *hold)
{
    struct timespec  ts;

    (void) clock_gettime((clockid_t) hold->clock, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


/* the struct is in the zone, and only the holder of the lock writes it */

void
ngx_mcp_hold_begin(ngx_mcp_hold_t *hold)
{
    hold->since = hold->clock ? ngx_mcp_hold_now(hold) : 0;
}


void
ngx_mcp_hold_end(ngx_mcp_hold_t *hold)
{
    uint64_t  ns;

    /* measuring was started while the lock was held */

    if (hold->since == 0) {
        return;
    }

    ns = ngx_mcp_hold_now(hold) - hold->since;

    hold->sum += ns;
    hold->rare += (ns >= NGX_MCP_HOLD_LONG) ? ns : 0;
    hold->longest = ngx_max(hold->longest, ns);
    hold->times++;
}


#endif /* NGX_MCP_TEST */
