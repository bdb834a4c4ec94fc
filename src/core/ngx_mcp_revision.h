
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The supported revisions of MCP. */


#ifndef _NGX_MCP_REVISION_H_INCLUDED_
#define _NGX_MCP_REVISION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* of names that this module adds to MCP */
#define NGX_MCP_NAMESPACE      "io.github.nginx-mcp-tasks/"

/* the extension with the methods and members that this module adds to MCP */
#define NGX_MCP_EXTENSION      NGX_MCP_NAMESPACE "extended"

/* its name in 0.1.0, accepted from clients until the release after the next */
#define NGX_MCP_EXTENSION_OLD  "org.nginx.mcp-tasks/extended"


typedef struct {
    ngx_str_t  name;
    unsigned   number:8;          /* in session ids: must not change */
    unsigned   modern:1;          /* stateless; else with initialize */
    unsigned   tasks:1;           /* has the capability "tasks" */
    unsigned   modes:1;           /* elicitation has modes */
    unsigned   batches:1;         /* accepts JSON-RPC batches */
} ngx_mcp_revision_t;


/* the latest is first; an empty name ends the list */
extern ngx_mcp_revision_t  ngx_mcp_revisions[];

/* the latest of each era */
#define ngx_mcp_modern_latest  (&ngx_mcp_revisions[0])
#define ngx_mcp_legacy_latest  (&ngx_mcp_revisions[1])


ngx_mcp_revision_t *ngx_mcp_revision(ngx_str_t *name);
ngx_mcp_revision_t *ngx_mcp_revision_of(ngx_uint_t number);


#endif /* _NGX_MCP_REVISION_H_INCLUDED_ */
