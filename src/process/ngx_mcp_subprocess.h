
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A function that runs in a process of its own, with the rights of a worker
 * process.
 *
 * Worker processes can write to some files that the master has to read before
 * they are there.  What such a file says must never be read as root; and if
 * reading it fails in a way that nobody thought of, the master says so and
 * lives.  Memory of zones is shared with that process; nothing else that it
 * changes lasts.  It logs why it fails.
 */


#ifndef _NGX_MCP_SUBPROCESS_H_INCLUDED_
#define _NGX_MCP_SUBPROCESS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef ngx_int_t (*ngx_mcp_subprocess_pt)(void *data);


/*
 * For so long, in ms, it may do without a sign of life.  NGX_ABORT: it did not
 * come to its end, and why says what became of it.
 */

ngx_int_t ngx_mcp_subprocess(ngx_cycle_t *cycle, ngx_mcp_subprocess_pt run,
    void *data, ngx_msec_t timeout, const char **why);
void ngx_mcp_subprocess_alive(void);


#endif /* _NGX_MCP_SUBPROCESS_H_INCLUDED_ */
