
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The payloads and names of a task, and their limits. */


#ifndef _NGX_MCP_PAYLOAD_H_INCLUDED_
#define _NGX_MCP_PAYLOAD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_id.h"
#include "ngx_mcp_task.h"


#define NGX_MCP_MAX_NAME      1024
#define NGX_MCP_MAX_METHOD    255

/* a progress token and its owner's index fit into one block of a name */
#define NGX_MCP_MAX_TOKEN     60

/* the longest name of a worker */
#define NGX_MCP_WORKER_NAME   64

/* bytes of a status message or a reason, as JSON text */
#define NGX_MCP_MAX_MESSAGE   1024


/* payloads are stored and returned byte for byte */

typedef enum {
    NGX_MCP_PARAMS = 0,       /* in a table with method and history */
    NGX_MCP_METADATA,
    NGX_MCP_MESSAGE,
    NGX_MCP_RESULT,           /* or error, see the flags */
    NGX_MCP_REQUESTS,         /* questions */
    NGX_MCP_RESPONSES,        /* answers */

    NGX_MCP_PAYLOADS
} ngx_mcp_payload_e;


/* names are shared by all tasks that have them */

typedef enum {
    NGX_MCP_OWNER = 0,
    NGX_MCP_TOOL,
    NGX_MCP_TOKEN,
    NGX_MCP_SESSION,

    NGX_MCP_NAMES
} ngx_mcp_name_e;


typedef struct {
    ngx_str_t         owner;
    ngx_str_t         tool;
    ngx_str_t         token;             /* empty: none */
    ngx_str_t         session;           /* empty: none */
    ngx_str_t         method;
    ngx_str_t         params;
    ngx_str_t         metadata;
    ngx_str_t         message;
    ngx_str_t         responses;         /* answers to later questions */
    ngx_mcp_policy_t  policy;
    uint64_t          holder;            /* see ngx_mcp_task_t */
    uint64_t          ttl;               /* ms */
    uint64_t          now;               /* monotonic, ms */
    uint64_t          wall;              /* wall clock, ms */

    /* limits; 0: none */
    size_t            max_payload;
    uint64_t          max_owner_bytes;
    uint32_t          max_owner_tasks;

    /* computed by the caller before it takes the lock */
    ngx_mcp_id_t      id;
    uint32_t          owner_hash;
    uint32_t          tool_hash;
    uint32_t          session_hash;
} ngx_mcp_new_t;


/* payloads to replace: data NULL keeps the old one, len 0 deletes it */

typedef struct {
    ngx_str_t  payload[NGX_MCP_PAYLOADS];
    ngx_str_t  diagnosis;          /* the status message, if the event ends
                                      the task; data NULL: none */
    size_t     max_payload;        /* 0: no limit */
    uint64_t   max_owner_bytes;    /* 0: no limit */
} ngx_mcp_change_t;


#endif /* _NGX_MCP_PAYLOAD_H_INCLUDED_ */
