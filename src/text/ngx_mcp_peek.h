
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Tells whether a JSON-RPC message may be an error, from as few of its bytes
 * as possible.  A result then need not be held back, however large it is.
 */


#ifndef _NGX_MCP_PEEK_H_INCLUDED_
#define _NGX_MCP_PEEK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef enum {
    NGX_MCP_PEEK_MORE = 0,       /* not known yet */
    NGX_MCP_PEEK_PASS,           /* not an error, or not a message */
    NGX_MCP_PEEK_HOLD            /* an error, unless the rest is invalid */
} ngx_mcp_peek_e;


/* the longest name that matters, "result" or "method" or "params" */
#define NGX_MCP_PEEK_NAME  6


/* the members are private */

typedef struct {
    ngx_uint_t  verdict;         /* ngx_mcp_peek_e */
    ngx_uint_t  state;
    ngx_uint_t  depth;           /* containers around the position */
    size_t      len;             /* of the name so far */
    u_char      name[NGX_MCP_PEEK_NAME];

    unsigned    escape:1;        /* the last byte was a backslash */
    unsigned    escaped:1;       /* the name has an escape */
    unsigned    error:1;         /* the value may be that of "error" */
    unsigned    result:1;        /* the value is that of "result" */
} ngx_mcp_peek_t;


#define ngx_mcp_peek_init(peek)  ngx_memzero(peek, sizeof(ngx_mcp_peek_t))

/*
 * Reads the next bytes of the message and returns the verdict, which does not
 * change once it is not NGX_MCP_PEEK_MORE.
 */
ngx_uint_t ngx_mcp_peek(ngx_mcp_peek_t *peek, u_char *p, size_t n);


#endif /* _NGX_MCP_PEEK_H_INCLUDED_ */
