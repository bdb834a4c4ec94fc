
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Conditional updates.  A change is computed from a copy of the task and is
 * applied only if the version of the task is still the same.  Otherwise the
 * task is read and the change is computed again.
 */


#ifndef _NGX_MCP_AMEND_H_INCLUDED_
#define _NGX_MCP_AMEND_H_INCLUDED_


#include "ngx_mcp_http_types.h"


typedef struct ngx_mcp_amend_s  ngx_mcp_amend_t;

/*
 * Computes the operation from the task that was read.  NGX_DECLINED: submit the
 * operation, or call done() if its reason is not NGX_MCP_OK or there is nothing
 * to change.  Any other value finalizes the request.
 */
typedef ngx_int_t (*ngx_mcp_amend_pt)(ngx_http_request_t *r,
    ngx_mcp_amend_t *a, ngx_mcp_op_get_t *task);


struct ngx_mcp_amend_s {
    ngx_mcp_op_update_t  op;        /* must be the first */
    ngx_uint_t           read;      /* payloads that make() needs, a mask */
    ngx_mcp_amend_pt     make;      /* called for each try */
    ngx_mcp_done_pt      done;      /* called once, at the end */

    ngx_uint_t           nothing;   /* 1: there is nothing to change */

    ngx_http_request_t  *r;
    ngx_mcp_zone_t      *zone;
    ngx_mcp_op_get_t    *task;      /* the task that was read */
    ngx_uint_t           tries;     /* that had a version conflict */

    ngx_queue_t          queue;     /* in one of the queues of the process */
    ngx_uint_t           turn;      /* 1: it runs; 0: it waits or is done */
    ngx_event_t          event;     /* posted when its turn comes */
    /* debug logs read the fd of what event.data points to */
    struct {
        ngx_mcp_amend_t  *data;
        ngx_event_t      *read;
        ngx_event_t      *write;
        ngx_socket_t      fd;
    } ident;
};


/*
 * Needs op.id, op.owner, read, make and done.  make() may set the rest of op.
 * Returns the value to finalize the request with.
 */
ngx_int_t ngx_mcp_amend(ngx_http_request_t *r, ngx_mcp_amend_t *a);

/* asks questions for the holder of the lease; op has id, owner and event */
ngx_int_t ngx_mcp_ask(ngx_http_request_t *r, ngx_mcp_op_update_t *op,
    ngx_mcp_json_t *requests, ngx_mcp_done_pt done);
/*
 * Answers some or all of the open questions of a task.  The reason is
 * NGX_MCP_VERSION_CONFLICT if version is neither 0 nor the version of the task.
 */
ngx_int_t ngx_mcp_answer(ngx_http_request_t *r, ngx_mcp_id_t *id,
    uint64_t version, ngx_mcp_json_t *answers, ngx_mcp_done_pt done);


#endif /* _NGX_MCP_AMEND_H_INCLUDED_ */
