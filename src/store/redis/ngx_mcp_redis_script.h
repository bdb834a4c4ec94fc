
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The scripts that Redis runs, in lua/; embed.sh makes a C source of them.
 * Each change of a task is one script: either all of it happens or nothing.
 */


#ifndef _NGX_MCP_REDIS_SCRIPT_H_INCLUDED_
#define _NGX_MCP_REDIS_SCRIPT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef enum {
    NGX_MCP_REDIS_CREATE = 0,
    NGX_MCP_REDIS_COMMIT,
    NGX_MCP_REDIS_REMOVE,
    NGX_MCP_REDIS_CLAIM,
    NGX_MCP_REDIS_WATCH,
    NGX_MCP_REDIS_AWAIT,
    NGX_MCP_REDIS_ATTACH,
    NGX_MCP_REDIS_OPEN,

    NGX_MCP_REDIS_SCRIPTS
} ngx_mcp_redis_script_e;


/* flags of create */
#define NGX_MCP_REDIS_HAS_TOKEN   0x01
#define NGX_MCP_REDIS_KEEP_RECENT 0x02

/* flags of commit */
#define NGX_MCP_REDIS_CHANGED     0x01     /* a new number for "changed" */
#define NGX_MCP_REDIS_TURNED      0x02     /* the same for "turned" */
#define NGX_MCP_REDIS_MOVED       0x04     /* and for "moved" */
#define NGX_MCP_REDIS_REQUEUED    0x08     /* a new number for "queue_seq" */
#define NGX_MCP_REDIS_RECENT      0x10     /* the zone has recent=on */
#define NGX_MCP_REDIS_ANNOUNCE    0x20     /* to the session */
#define NGX_MCP_REDIS_ALL         0x40     /* to all machines */

/* the first number of a reply */
#define NGX_MCP_SCRIPT_DONE       1
#define NGX_MCP_SCRIPT_REPEATED   2
#define NGX_MCP_SCRIPT_REFUSED    0
#define NGX_MCP_SCRIPT_OTHER_RUN  (-9)


typedef struct {
    ngx_str_t  name;
    ngx_str_t  text;
    u_char     sha1[40];     /* in hexadecimal; set by ngx_mcp_redis_init() */
} ngx_mcp_redis_script_t;


/* by ngx_mcp_redis_script_e */
extern ngx_mcp_redis_script_t  ngx_mcp_redis_scripts[];


#endif /* _NGX_MCP_REDIS_SCRIPT_H_INCLUDED_ */
