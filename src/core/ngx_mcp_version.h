
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

/* in results of the modern era: a member of _meta, and a _meta of its own */

#define NGX_MCP_META_SERVER_KEY  "io.modelcontextprotocol/serverInfo"

#define NGX_MCP_META_SERVER                                                   \
    "\"" NGX_MCP_META_SERVER_KEY "\":" NGX_MCP_SERVER_INFO

#define NGX_MCP_SERVER_META  "\"_meta\":{" NGX_MCP_META_SERVER "}"


#endif /* _NGX_MCP_VERSION_H_INCLUDED_ */
