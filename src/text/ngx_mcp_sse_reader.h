
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Reads server-sent events, as the HTML standard defines them, from chunks of
 * any size.  Comments and unknown fields use no memory, however long they are.
 */


#ifndef _NGX_MCP_SSE_READER_H_INCLUDED_
#define _NGX_MCP_SSE_READER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* first size of the data buffer; a larger one is freed after its event */
#define NGX_MCP_SSE_SIZE  4096

/* maximum length of an event id, a longer one is ignored */
#define NGX_MCP_SSE_ID    256


typedef struct ngx_mcp_sse_reader_s  ngx_mcp_sse_reader_t;

/*
 * Called for each event of type "message" that has data.  The data is valid
 * until the handler returns.  A handler that sets data->data to NULL takes the
 * data, must free it with ngx_free(), and must return NGX_OK.  A handler that
 * returns anything else may free the reader.
 */
typedef ngx_int_t (*ngx_mcp_sse_reader_pt)(void *ctx,
    ngx_mcp_sse_reader_t *reader, ngx_str_t *data);


struct ngx_mcp_sse_reader_s {
    ngx_str_t   id;              /* last event id, or empty */
    ngx_msec_t  retry;           /* last retry field, 0: none */

    /* the members below are private: the data of the current event */

    u_char     *data;
    size_t      len;
    size_t      size;            /* size of the buffer */
    size_t      max;             /* maximum len */
    ngx_log_t  *log;

    /* the current line */

    ngx_uint_t  state;           /* ngx_mcp_sse_reader_state_e */
    ngx_uint_t  field;           /* ngx_mcp_sse_reader_field_e */
    size_t      got;             /* bytes read of the name or the value */
    ngx_msec_t  number;          /* value of a retry field so far */
    u_char      name[sizeof("event") - 1];

    /*
     * An id moves from line_id to next_id at the end of its line, and to id at
     * the end of its event.  The three buffers are one allocation, made when
     * the first id is read.
     */

    u_char     *line_id;
    u_char     *next_id;
    size_t      next_len;

    unsigned    bom:2;           /* bytes of the mark read, 3: past it */
    unsigned    cr:1;            /* last byte was a CR, a LF is skipped */
    unsigned    filled:1;        /* the event has a data field */
    unsigned    other:1;         /* the event's type is not "message" */
};


/* max is the maximum size of the data of one event, in bytes */
void ngx_mcp_sse_reader_init(ngx_mcp_sse_reader_t *reader, size_t max,
    ngx_log_t *log);

/*
 * Reads a chunk and calls the handler for each event that ends in it.
 * NGX_DECLINED: the data of an event is larger than max; NGX_ERROR: no memory;
 * or the handler's return value, if it is not NGX_OK.  After any of these the
 * rest of the chunk is not read, and the reader can only be freed.
 */
ngx_int_t ngx_mcp_sse_reader_read(ngx_mcp_sse_reader_t *reader, u_char *p,
    size_t n, ngx_mcp_sse_reader_pt handler, void *ctx);

void ngx_mcp_sse_reader_free(ngx_mcp_sse_reader_t *reader);


#endif /* _NGX_MCP_SSE_READER_H_INCLUDED_ */
