
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * What a task carries beside its record: bytes and names, and how much of
 * them there may be.
 */


#ifndef _NGX_MCP_PAYLOAD_H_INCLUDED_
#define _NGX_MCP_PAYLOAD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_id.h"
#include "ngx_mcp_task.h"


#define NGX_MCP_MAX_NAME      1024
#define NGX_MCP_MAX_METHOD    255

/* a token fits into the block of a name, after the number of its owner */
#define NGX_MCP_MAX_TOKEN     60

/* workers have no names that are longer */
#define NGX_MCP_WORKER_NAME   64


/* the exact bytes that a task carries */

typedef enum {
    NGX_MCP_PARAMS = 0,       /* and the history, see there */
    NGX_MCP_METADATA,
    NGX_MCP_MESSAGE,
    NGX_MCP_RESULT,           /* or error, as the flags say */
    NGX_MCP_REQUESTS,
    NGX_MCP_RESPONSES,

    NGX_MCP_PAYLOADS
} ngx_mcp_payload_e;


/* who or what a task belongs to */

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
    ngx_str_t         responses;         /* to what it will ask */
    ngx_mcp_policy_t  policy;
    uint64_t          holder;            /* of the task */
    uint64_t          ttl;
    uint64_t          now;
    uint64_t          wall;

    /* limits; 0: none */
    size_t            max_payload;
    uint64_t          max_owner_bytes;
    uint32_t          max_owner_tasks;

    /* made by the caller, before it takes the lock */
    ngx_mcp_id_t      id;
    uint32_t          owner_hash;
    uint32_t          tool_hash;
    uint32_t          session_hash;
} ngx_mcp_new_t;


/* bytes to replace: data NULL keeps what is there, len 0 removes it */

typedef struct {
    ngx_str_t  payload[NGX_MCP_PAYLOADS];
    size_t     max_payload;
    uint64_t   max_owner_bytes;
} ngx_mcp_change_t;


#endif /* _NGX_MCP_PAYLOAD_H_INCLUDED_ */
