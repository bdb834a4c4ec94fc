
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Directives that only the test build has. */


#ifndef _NGX_MCP_PROBE_H_INCLUDED_
#define _NGX_MCP_PROBE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


char *ngx_mcp_probe(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_stub(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


#endif /* _NGX_MCP_PROBE_H_INCLUDED_ */
