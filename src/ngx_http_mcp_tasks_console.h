
/* The operator console. */


#ifndef _NGX_HTTP_MCP_TASKS_CONSOLE_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_CONSOLE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* made of the files in console/ by the build: the page, and the value of the
   header Content-Security-Policy that lets its own script run and no other */

extern ngx_str_t  ngx_http_mcp_tasks_console_page;
extern ngx_str_t  ngx_http_mcp_tasks_console_csp;


#endif /* _NGX_HTTP_MCP_TASKS_CONSOLE_H_INCLUDED_ */
