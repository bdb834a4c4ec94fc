
/* Requests that wait: see ngx_mcp_wait.c. */


#ifndef _NGX_MCP_WAIT_H_INCLUDED_
#define _NGX_MCP_WAIT_H_INCLUDED_


#include "ngx_mcp_http_types.h"
#include "ngx_mcp_sse_writer.h"
#include "ngx_mcp_wake.h"


typedef struct ngx_mcp_wait_s  ngx_mcp_wait_t;

struct ngx_mcp_wait_s {
    ngx_http_request_t  *r;
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_zone_t      *zone;

    /*
     * NGX_DECLINED: not over yet; NGX_BUSY: an operation was submitted by
     * ngx_mcp_wait_op(); else it is what to finalize with
     */
    ngx_int_t          (*look)(ngx_mcp_wait_t *w);
    /* the same for what follows the operation */
    ngx_int_t          (*done)(ngx_mcp_wait_t *w, ngx_mcp_op_t *op);
    /* the request ends; not if it was answered.  May be NULL */
    void               (*gone)(ngx_mcp_wait_t *w);

    ngx_mcp_op_pin_t     pin;       /* what it looks at; the task, if any */
    ngx_mcp_op_t        *unpin;     /* to be submitted in the end */
    ngx_mcp_op_wait_t   *enter;
    ngx_mcp_op_wait_t   *leave;

    ngx_queue_t          queue;     /* of all in this process */
    ngx_mcp_watch_t      watch;     /* of the task, if it has one */
    ngx_mcp_watch_t     *watches;   /* or of several things */
    ngx_uint_t           nwatches;

    ngx_mcp_id_t         id;
    uint64_t             until;     /* monotonic; NEVER: no limit */
    uint64_t             alive;     /* when something was sent */
    uint64_t             rests;     /* and does not look before */
    uint64_t             stream_id; /* 0: it asks nothing */

    /* posted when there is something to look at; a timer, too */
    ngx_event_t          event;

    /* debug logs want an fd of what an event is for */
    struct {
        ngx_mcp_wait_t  *data;
        ngx_event_t     *read;
        ngx_event_t     *write;
        ngx_socket_t     fd;
    } ident;

    ngx_chain_t           *free;
    ngx_chain_t           *busy;    /* not sent yet */
    ngx_mcp_sse_shared_t  *shared;  /* what busy buffers refer to */

    uint32_t             epoch;
    unsigned             task:1;    /* waits for that id */
    unsigned             result:1;  /* is tasks/result */
    unsigned             session:1; /* speaks for its session */
    unsigned             limited:1; /* counts as a waiter */
    unsigned             streams:1; /* SSE may be used */
    unsigned             stream:1;  /* and is */
    unsigned             parked:1;
    unsigned             counted:1;
    unsigned             entering:1;
    unsigned             pinning:1;
    unsigned             running:1; /* an operation of a look */
    unsigned             left:1;    /* the request has ended */
    unsigned             missed:1;  /* there is more to tell */
    unsigned             over:1;
};

/* what was told is on its way: there may be bytes of it that no buffer of
 * ours holds any more, but the connection does */
#define ngx_mcp_wait_busy(w)  ((w)->busy || (w)->r->connection->buffered)

void ngx_mcp_wait_init(ngx_mcp_wait_t *w, ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_wait(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_op(ngx_mcp_wait_t *w, ngx_mcp_op_t *op,
    ngx_int_t (*done)(ngx_mcp_wait_t *w, ngx_mcp_op_t *op));
ngx_int_t ngx_mcp_wait_begin(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_message(ngx_mcp_wait_t *w, ngx_str_t *id,
    ngx_str_t *message);
ngx_int_t ngx_mcp_wait_text(ngx_mcp_wait_t *w, ngx_str_t *text);
ngx_int_t ngx_mcp_wait_share(ngx_mcp_wait_t *w, ngx_mcp_sse_shared_t *shared);
ngx_int_t ngx_mcp_wait_end(ngx_mcp_wait_t *w, ngx_str_t *message);
ngx_int_t ngx_mcp_wait_close(ngx_mcp_wait_t *w);

#if (NGX_MCP_TEST)
ngx_http_request_t *ngx_mcp_wait_request(ngx_mcp_op_t *op);
#endif

/* hooks of the process */
void ngx_mcp_wait_all(void *data);
void ngx_mcp_wait_recount(void *data);


/* between the files that have them */

ngx_int_t ngx_mcp_wait_over(ngx_mcp_wait_t *w, ngx_int_t rc);
ngx_int_t ngx_mcp_wait_first(ngx_mcp_wait_t *w);
void ngx_mcp_wait_count(ngx_mcp_wait_t *w, ngx_int_t waiting,
    ngx_int_t streams);

/* ngx_mcp_wait_place.c */
ngx_int_t ngx_mcp_wait_prepare(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_enter(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_pin(ngx_mcp_wait_t *w);
void ngx_mcp_wait_again(ngx_mcp_wait_t *w);
void ngx_mcp_wait_leave(ngx_mcp_wait_t *w);

/* ngx_mcp_wait_send.c */
ngx_int_t ngx_mcp_wait_comment(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_sending(ngx_mcp_wait_t *w);


#endif /* _NGX_MCP_WAIT_H_INCLUDED_ */
