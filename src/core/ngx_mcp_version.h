
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The name and version of the module. */


#ifndef _NGX_MCP_VERSION_H_INCLUDED_
#define _NGX_MCP_VERSION_H_INCLUDED_


#define NGX_MCP_NAME      "nginx-mcp-tasks"
#define NGX_MCP_VERSION   "0.1.0"

#define NGX_MCP_SERVER_INFO                                                   \
    "{\"name\":\"" NGX_MCP_NAME "\","                                         \
    "\"version\":\"" NGX_MCP_VERSION "\"}"


#endif /* _NGX_MCP_VERSION_H_INCLUDED_ */
