
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Reads server-sent events, as the HTML standard defines them, from pieces of
 * any size.  Only what is needed of a line is kept: comments and fields that
 * are not known cost no memory, however long they are.
 */


#ifndef _NGX_MCP_SSE_READER_H_INCLUDED_
#define _NGX_MCP_SSE_READER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* what a buffer has at first, and what it may keep from event to event */
#define NGX_MCP_SSE_SIZE  4096

/* a longer id is ignored */
#define NGX_MCP_SSE_ID    256


typedef struct ngx_mcp_sse_reader_s  ngx_mcp_sse_reader_t;

/*
 * The data is there until the handler returns.  A handler that sets its
 * address to NULL, and returns NGX_OK, has to free it.  One that returns
 * anything else than NGX_OK may have freed the feed.
 */
typedef ngx_int_t (*ngx_mcp_sse_reader_pt)(void *ctx,
    ngx_mcp_sse_reader_t *reader, ngx_str_t *data);


struct ngx_mcp_sse_reader_s {
    ngx_str_t   id;              /* of the last event; empty: it has none */
    ngx_msec_t  retry;           /* 0: none was sent */

    /* the rest is private; first the data of the event that is being read */

    u_char     *data;
    size_t      len;
    size_t      size;
    size_t      max;
    ngx_log_t  *log;

    /* the line that is being read, and how much of its name or value */

    ngx_uint_t  state;
    ngx_uint_t  field;
    size_t      got;
    ngx_msec_t  number;
    u_char      name[sizeof("event") - 1];

    /*
     * An id counts at the end of its line, and is known with its event: three
     * of them, there as soon as the first one comes.
     */

    u_char     *line_id;
    u_char     *next_id;
    size_t      next_len;

    unsigned    bom:2;           /* bytes of it; all: it cannot come now */
    unsigned    cr:1;            /* a LF would belong to the CR before it */
    unsigned    filled:1;        /* there was a data field */
    unsigned    other:1;         /* the event is not a message */
};


/* max: how many bytes the data of an event may have */
void ngx_mcp_sse_reader_init(ngx_mcp_sse_reader_t *reader, size_t max,
    ngx_log_t *log);

/*
 * NGX_OK; NGX_DECLINED: the data of an event is larger than max; NGX_ERROR:
 * no memory; or what the handler returned, if it is not NGX_OK.  In all cases
 * but the first the rest of the piece is not read, and reading ends there.
 */
ngx_int_t ngx_mcp_sse_reader_read(ngx_mcp_sse_reader_t *reader, u_char *p,
    size_t n, ngx_mcp_sse_reader_pt handler, void *ctx);

void ngx_mcp_sse_reader_free(ngx_mcp_sse_reader_t *reader);


#endif /* _NGX_MCP_SSE_READER_H_INCLUDED_ */
