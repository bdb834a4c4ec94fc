
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


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
     * NGX_DECLINED: keep waiting; NGX_BUSY: ngx_mcp_wait_op() has submitted an
     * operation; any other value finalizes the request
     */
    ngx_int_t          (*look)(ngx_mcp_wait_t *w);
    /* continues after the operation; returns the same values */
    ngx_int_t          (*done)(ngx_mcp_wait_t *w, ngx_mcp_op_t *op);
    /* the request ends without a response; may be NULL */
    void               (*aborted)(ngx_mcp_wait_t *w);
    /* sends the first event of the stream, may set last_id; may be NULL */
    ngx_int_t          (*first)(ngx_mcp_wait_t *w);

    ngx_mcp_op_pin_t     pin;       /* what look() reads */
    ngx_mcp_op_t        *unpin;     /* submitted at the end; NULL: no pin */
    ngx_mcp_op_wait_t   *enter;     /* NULL: not limited */
    ngx_mcp_op_wait_t   *leave;     /* submitted at the end; may be NULL */

    ngx_queue_t          queue;     /* zone->waits */
    ngx_mcp_watch_t      watch;     /* of the task, or of one name */
    ngx_mcp_watch_t     *watches;   /* that one, or several */
    ngx_uint_t           nwatches;

    ngx_mcp_id_t         id;        /* if task is set */
    uint64_t             until;     /* monotonic ms; NEVER: no limit */
    uint64_t             alive;     /* when it last sent something */
    uint64_t             not_before;  /* look() is not called before */
    uint64_t             stream_id; /* 0: does not deliver questions */
    ngx_str_t            last_id;   /* of the last event; empty: none */

    /* posted when a watched key is signalled; also the timer */
    ngx_event_t          event;

    /* debug logs read the fd of what event.data points to */
    struct {
        ngx_mcp_wait_t  *data;
        ngx_event_t     *read;
        ngx_event_t     *write;
        ngx_socket_t     fd;
    } ident;

    ngx_chain_t           *free;    /* sent, to be reused */
    ngx_chain_t           *busy;    /* not sent yet */
    ngx_mcp_sse_shared_t  *shared;  /* what busy buffers refer to */

    uint32_t             epoch;     /* in which it was counted */
    unsigned             task:1;    /* waits for the task id */
    unsigned             result:1;  /* tasks/result */
    unsigned             session:1; /* the stream of a session */
    unsigned             limited:1; /* max_waiters applies */
    unsigned             streams:1; /* SSE may be used */
    unsigned             at_once:1; /* SSE is used from the beginning */
    unsigned             stream:1;  /* SSE is used: header sent */
    unsigned             parked:1;  /* in zone->waits */
    unsigned             counted:1; /* as a waiter, by the store */
    unsigned             entering:1; /* WAIT is not completed */
    unsigned             pinning:1; /* PIN is not completed */
    unsigned             running:1; /* ngx_mcp_wait_op() is not completed */
    unsigned             left:1;    /* the request has ended */
    unsigned             missed:1;  /* has to look again */
    unsigned             over:1;    /* the request has its response */
};

/*
 * Data is not sent yet: it is in busy buffers, or the buffers were returned but
 * the connection still has the data.
 */
#define ngx_mcp_wait_busy(w)  ((w)->busy || (w)->r->connection->buffered)

void ngx_mcp_wait_init(ngx_mcp_wait_t *w, ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
ngx_int_t ngx_mcp_wait(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_op(ngx_mcp_wait_t *w, ngx_mcp_op_t *op,
    ngx_int_t (*done)(ngx_mcp_wait_t *w, ngx_mcp_op_t *op));
ngx_int_t ngx_mcp_wait_open(ngx_mcp_wait_t *w);
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

/* hooks of the worker process */
void ngx_mcp_wait_all(void *data);
void ngx_mcp_wait_recount(void *data);


/* for the ngx_mcp_wait files only */

ngx_int_t ngx_mcp_wait_over(ngx_mcp_wait_t *w, ngx_int_t rc);
ngx_int_t ngx_mcp_wait_first(ngx_mcp_wait_t *w);
void ngx_mcp_wait_count(ngx_mcp_wait_t *w, ngx_int_t waiting,
    ngx_int_t streams);

/* ngx_mcp_wait_register.c */
ngx_int_t ngx_mcp_wait_prepare(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_enter(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_pin(ngx_mcp_wait_t *w);
void ngx_mcp_wait_again(ngx_mcp_wait_t *w);
void ngx_mcp_wait_leave(ngx_mcp_wait_t *w);

/* ngx_mcp_wait_send.c */
ngx_int_t ngx_mcp_wait_comment(ngx_mcp_wait_t *w);
ngx_int_t ngx_mcp_wait_sending(ngx_mcp_wait_t *w);


#endif /* _NGX_MCP_WAIT_H_INCLUDED_ */
