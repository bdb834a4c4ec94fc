
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Failpoints, most of them in critical sections, at which the test build can
 * kill or stop the process.  Other builds contain none of this code.
 */


#ifndef _NGX_MCP_FAILPOINT_H_INCLUDED_
#define _NGX_MCP_FAILPOINT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_TEST)

/* the compiler must not move memory accesses across a failpoint */

#define ngx_mcp_failpoint(label)                                              \
    __asm__ volatile ("" ::: "memory");                                       \
    ngx_mcp_failpoint_hit(label);                                             \
    __asm__ volatile ("" ::: "memory")

void ngx_mcp_failpoint_arm(const char *label, ngx_uint_t hit);
void ngx_mcp_failpoint_signal(int signo);
void ngx_mcp_failpoint_note(char *buf, size_t size);
void ngx_mcp_failpoint_hit(const char *label);
ngx_uint_t ngx_mcp_failpoint_hits(void);

#else

#define ngx_mcp_failpoint(label)

#endif


#endif /* _NGX_MCP_FAILPOINT_H_INCLUDED_ */
