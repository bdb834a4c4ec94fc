
/*
 * Places inside the critical sections where the test build can kill the
 * process.  Other builds contain nothing of it.
 */


#ifndef _NGX_HTTP_MCP_TASKS_FAILPOINT_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_FAILPOINT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_HTTP_MCP_TASKS_TEST)

/* barriers: the compiler must not move stores across the place */

#define ngx_http_mcp_tasks_failpoint(label)                                   \
    __asm__ volatile ("" ::: "memory");                                       \
    ngx_http_mcp_tasks_failpoint_hit(label);                                  \
    __asm__ volatile ("" ::: "memory")

void ngx_http_mcp_tasks_failpoint_arm(const char *label, ngx_uint_t hit);
void ngx_http_mcp_tasks_failpoint_note(char *buf, size_t size);
void ngx_http_mcp_tasks_failpoint_hit(const char *label);
ngx_uint_t ngx_http_mcp_tasks_failpoint_hits(void);

#else

#define ngx_http_mcp_tasks_failpoint(label)

#endif


#endif /* _NGX_HTTP_MCP_TASKS_FAILPOINT_H_INCLUDED_ */
