
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Runs a function in a child process, with the rights of a worker process.
 *
 * The master has to read some files that worker processes can write, before
 * it starts worker processes.  Such a file must not be parsed as root; and if
 * parsing it crashes or hangs, the master must report that and survive.  The
 * child shares the memory of zones with the master; its other changes are
 * lost.  The function logs its own errors.
 */


#ifndef _NGX_MCP_SUBPROCESS_H_INCLUDED_
#define _NGX_MCP_SUBPROCESS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef ngx_int_t (*ngx_mcp_subprocess_pt)(void *data);


/*
 * Blocks until run() returns or the child ends.  NGX_OK: run() returned
 * NGX_OK; NGX_ERROR: it returned something else, or the child did not get the
 * rights; NGX_ABORT: run() did not return, and *reason is the cause.
 *
 * The child is killed if it does not call ngx_mcp_subprocess_alive() for
 * timeout ms.
 */

ngx_int_t ngx_mcp_subprocess(ngx_cycle_t *cycle, ngx_mcp_subprocess_pt run,
    void *data, ngx_msec_t timeout, const char **reason);
void ngx_mcp_subprocess_alive(void);


#endif /* _NGX_MCP_SUBPROCESS_H_INCLUDED_ */
