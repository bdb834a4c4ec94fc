
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The tools of a location, read from a file with the configuration. */


#ifndef _NGX_MCP_TOOLS_H_INCLUDED_
#define _NGX_MCP_TOOLS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_schema.h"


typedef enum {
    NGX_MCP_OPTIONAL = 0,
    NGX_MCP_REQUIRED,
    NGX_MCP_FORBIDDEN
} ngx_mcp_support_e;


/* where a client finds a question that is asked while it waits */

typedef enum {
    NGX_MCP_INPUT_TASK = 0,
    NGX_MCP_INPUT_CALL,
    NGX_MCP_INPUT_FIRST        /* in the response; then it gets the task */
} ngx_mcp_input_e;


/* a value that is not set is NGX_CONF_UNSET_MSEC or NGX_CONF_UNSET */

typedef struct {
    ngx_str_t          name;
    ngx_str_t          pattern;    /* gateway: names, as configured */
#if (NGX_PCRE)
    ngx_regex_t       *regex;
#endif
    ngx_uint_t         idempotent; /* gateway: may be called again */
    ngx_str_t          definition; /* JSON without policy and last "}" */
    ngx_array_t       *params;     /* arguments repeated in headers */
    ngx_mcp_schema_t  *input;      /* of arguments; NULL: any */
    ngx_mcp_schema_t  *output;     /* of structuredContent; NULL: any */
    ngx_uint_t         support;    /* ngx_mcp_support_e */
    ngx_uint_t         asks;       /* ngx_mcp_input_e */
    ngx_msec_t         after;      /* then the client gets the task */
    ngx_msec_t         lease;
    ngx_msec_t         backoff;
    ngx_msec_t         queue_timeout;
    ngx_msec_t         run_timeout;
    ngx_msec_t         ttl;
    ngx_int_t          attempts;
    ngx_int_t          priority;
    ngx_uint_t         retry;      /* NGX_MCP_RETRY_*, not the default */
} ngx_mcp_tool_t;


char *ngx_mcp_tools_read(ngx_conf_t *cf, ngx_str_t *file, ngx_array_t **tools);

/*
 * A result of tools/list, as an upstream sends it: the tools have a name and an
 * input schema, and nothing else is read.
 */
char *ngx_mcp_tools_read_schemas(ngx_conf_t *cf, ngx_str_t *file,
    ngx_array_t **tools);

ngx_str_t *ngx_mcp_support_name(ngx_uint_t support);
ngx_mcp_tool_t *ngx_mcp_tool_find(ngx_array_t *tools, ngx_str_t *name);

/* a mask of NGX_MCP_RETRY_*; 0: unknown word */
ngx_uint_t ngx_mcp_retry_word(ngx_str_t *word);

/* whether any of them has an outputSchema */
ngx_uint_t ngx_mcp_tools_output(ngx_array_t *tools);

/* ngx_mcp_regex.c; NULL: nginx is built without PCRE */
ngx_mcp_schema_regex_t *ngx_mcp_regex(void);


#endif /* _NGX_MCP_TOOLS_H_INCLUDED_ */
