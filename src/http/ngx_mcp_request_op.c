
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Operations of a request: the same function continues with the result, whether
 * the store completes the operation at once or later.
 */


#include "ngx_mcp_http.h"


typedef struct {
    ngx_http_request_t  *r;
    ngx_mcp_done_pt      done;
} ngx_mcp_request_op_t;


static void ngx_mcp_request_op_handler(ngx_mcp_op_t *op);


/* returns a struct that begins with ngx_mcp_op_t, zeroed; NULL: no memory */

void *
ngx_mcp_op(ngx_http_request_t *r, ngx_uint_t type, size_t size)
{
    ngx_mcp_op_t  *op;

    op = ngx_pcalloc(r->pool, size);

    if (op) {
        op->type = type;
    }

    return op;
}


/*
 * Submits an operation.  Returns the value to finalize the request with: that
 * of done(), or NGX_DONE if done() is called later, or
 * NGX_HTTP_INTERNAL_SERVER_ERROR if the operation was not submitted.
 */

ngx_int_t
ngx_mcp_request_op(ngx_http_request_t *r, ngx_mcp_op_t *op,
    ngx_mcp_done_pt done)
{
    ngx_int_t              rc;
    ngx_mcp_request_op_t  *rop;
    ngx_mcp_loc_conf_t    *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    rop = ngx_palloc(r->pool, sizeof(ngx_mcp_request_op_t));
    if (rop == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rop->r = r;
    rop->done = done;

    op->pool = r->pool;
    op->handler = ngx_mcp_request_op_handler;
    op->data = rop;

    rc = ngx_mcp_submit(lcf->zone, op);

    if (rc == NGX_OK) {
        return done(r, op);
    }

    if (rc == NGX_AGAIN) {

        /*
         * A closed connection is not noticed until the operation is completed.
         * Whatever else ends the request, such as its main request or the end
         * of a long shutdown, has to wait, as for a thread that reads a file.
         */

        r->read_event_handler = ngx_http_block_reading;
        r->write_event_handler = ngx_http_request_empty_handler;
        r->main->count++;
        r->main->blocked++;

        return NGX_DONE;
    }

    return NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static void
ngx_mcp_request_op_handler(ngx_mcp_op_t *op)
{
    ngx_int_t              rc;
    ngx_connection_t      *c;
    ngx_http_request_t    *r;
    ngx_mcp_request_op_t  *rop;

    rop = op->data;
    r = rop->r;
    c = r->connection;

    r->main->blocked--;

    rc = rop->done(r, op);

    if (rc == NGX_DONE && c->error && r->main->blocked == 0) {
        /* the request waits again, but its connection is closed */
        rc = NGX_ERROR;
    }

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


#if (NGX_MCP_TEST)

/* the request that waits for the operation; NULL: none */

ngx_http_request_t *
ngx_mcp_op_request(ngx_mcp_op_t *op)
{
    return (op->handler == ngx_mcp_request_op_handler)
           ? ((ngx_mcp_request_op_t *) op->data)->r : NULL;
}

#endif
