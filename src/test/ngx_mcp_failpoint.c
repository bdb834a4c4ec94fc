
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Test build only: failpoints, see ngx_mcp_failpoint.h. */


#include "ngx_mcp_failpoint.h"


#if (NGX_MCP_TEST)


static const char  *ngx_mcp_failpoint_label;
static ngx_uint_t   ngx_mcp_failpoint_at;
static ngx_uint_t   ngx_mcp_failpoint_count;
static char        *ngx_mcp_failpoint_last;
static size_t       ngx_mcp_failpoint_size;
static int          ngx_mcp_failpoint_signo = SIGKILL;


/*
 * Kills the process at the hit-th failpoint with this label, or at the hit-th
 * failpoint at all if label is NULL.  With hit 0, never.
 */

void
ngx_mcp_failpoint_arm(const char *label, ngx_uint_t hit)
{
    ngx_mcp_failpoint_label = label;
    ngx_mcp_failpoint_at = hit;
    ngx_mcp_failpoint_count = 0;
}


/*
 * Sets the signal to use instead of SIGKILL.  With SIGSTOP the process waits
 * at the failpoint for SIGCONT.
 */

void
ngx_mcp_failpoint_signal(int signo)
{
    ngx_mcp_failpoint_signo = signo;
}


/*
 * Sets where to write the label of the failpoint that was hit.  The memory has
 * to outlive the process.
 */

void
ngx_mcp_failpoint_note(char *buf, size_t size)
{
    ngx_mcp_failpoint_last = buf;
    ngx_mcp_failpoint_size = size;
}


/* how many failpoints with the label were passed since it was armed */

ngx_uint_t
ngx_mcp_failpoint_hits(void)
{
    return ngx_mcp_failpoint_count;
}


void
ngx_mcp_failpoint_hit(const char *label)
{
    if (ngx_mcp_failpoint_label
        && ngx_strcmp(ngx_mcp_failpoint_label, label) != 0)
    {
        return;
    }

    if (++ngx_mcp_failpoint_count == ngx_mcp_failpoint_at) {
        if (ngx_mcp_failpoint_last) {
            (void) ngx_cpystrn((u_char *) ngx_mcp_failpoint_last,
                               (u_char *) label, ngx_mcp_failpoint_size);
        }

        (void) kill(ngx_getpid(), ngx_mcp_failpoint_signo);

        while (ngx_mcp_failpoint_signo == SIGKILL) {
            (void) pause();
        }
    }
}


#endif /* NGX_MCP_TEST */
