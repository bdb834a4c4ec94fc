
/*
 * Changes that are worked out from a copy of the task.  They count if the task
 * has not changed meanwhile; else they are worked out anew.
 */


#ifndef _NGX_MCP_AMEND_H_INCLUDED_
#define _NGX_MCP_AMEND_H_INCLUDED_


#include "ngx_mcp_http_types.h"


typedef struct ngx_mcp_amend_s  ngx_mcp_amend_t;

/*
 * Works out the operation, of a task that was found.  NGX_DECLINED: go on, with
 * done() if there is a reason now, or nothing to change; else it is what to
 * finalize with.
 */
typedef ngx_int_t (*ngx_mcp_amend_pt)(ngx_http_request_t *r,
    ngx_mcp_amend_t *a, ngx_mcp_op_get_t *task);


struct ngx_mcp_amend_s {
    ngx_mcp_op_update_t  op;        /* must be the first */
    ngx_uint_t           read;      /* which bytes are wanted before */
    ngx_mcp_amend_pt     make;
    ngx_mcp_done_pt      done;

    ngx_uint_t           nothing;   /* is to be changed */

    ngx_http_request_t  *r;
    ngx_mcp_zone_t      *zone;
    ngx_mcp_op_get_t    *task;
    ngx_uint_t           tries;

    ngx_queue_t          queue;     /* of those in this process */
    ngx_uint_t           turn;      /* it has, or has had */
    ngx_event_t          event;     /* it gets it */
    struct {
        ngx_mcp_amend_t  *data;
        ngx_event_t      *read;
        ngx_event_t      *write;
        ngx_socket_t      fd;
    } ident;
};


/* with id, owner and the members of its own of the struct filled in */
ngx_int_t ngx_mcp_amend(ngx_http_request_t *r, ngx_mcp_amend_t *a);

/* questions of whoever holds the task: the operation has id, owner and event */
ngx_int_t ngx_mcp_ask(ngx_http_request_t *r, ngx_mcp_op_update_t *op,
    ngx_mcp_json_t *requests, ngx_mcp_done_pt done);
ngx_int_t ngx_mcp_answer(ngx_http_request_t *r, ngx_mcp_id_t *id,
    uint64_t version, ngx_mcp_json_t *answers, ngx_mcp_done_pt done);


#endif /* _NGX_MCP_AMEND_H_INCLUDED_ */
