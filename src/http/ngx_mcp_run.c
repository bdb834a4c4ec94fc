
/*
 * Operations on behalf of a request: whether the store answers at once or
 * later, the same function goes on with the result.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_input.h"


/* others may change the task between our reading it and our answering */
#define NGX_MCP_ANSWER_TRIES  10


typedef struct {
    ngx_http_request_t  *r;
    ngx_mcp_done_pt      done;
} ngx_mcp_run_t;


typedef struct {
    ngx_mcp_op_update_t  op;        /* must be the first */
    ngx_mcp_json_t       answers;
    uint64_t             version;   /* asked then; 0: whenever */
    ngx_mcp_done_pt      done;
    ngx_uint_t           tries;
} ngx_mcp_answering_t;


typedef struct {
    ngx_mcp_op_get_t      op;        /* must be the first */
    ngx_mcp_answering_t  *answering;
} ngx_mcp_asked_t;


static void ngx_mcp_run_handler(ngx_mcp_op_t *op);
static ngx_int_t ngx_mcp_answer_read(ngx_http_request_t *r,
    ngx_mcp_answering_t *a);
static ngx_int_t ngx_mcp_answer_merge(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_answer_done(ngx_http_request_t *r, ngx_mcp_op_t *o);


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


ngx_int_t
ngx_mcp_run(ngx_http_request_t *r, ngx_mcp_op_t *op, ngx_mcp_done_pt done)
{
    ngx_int_t            rc;
    ngx_mcp_run_t       *run;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    run = ngx_palloc(r->pool, sizeof(ngx_mcp_run_t));
    if (run == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    run->r = r;
    run->done = done;

    op->pool = r->pool;
    op->handler = ngx_mcp_run_handler;
    op->data = run;

    rc = ngx_mcp_submit(lcf->zone, op);

    if (rc == NGX_OK) {
        return done(r, op);
    }

    if (rc == NGX_AGAIN) {

        /*
         * A client that goes meanwhile is not noticed.  Whatever else ends
         * the request (its main one, or a shutdown that has lasted too long)
         * has to wait, as it does for a thread that reads a file.
         */

        r->read_event_handler = ngx_http_block_reading;
        r->write_event_handler = ngx_http_request_empty_handler;
        r->main->count++;
        r->main->blocked++;

        return NGX_DONE;
    }

    return NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/*
 * For requests that wait: they look again anyway, and what they look at must
 * be there at once.  A store that answers later has to keep a copy of the
 * records for them.  They bring the zone, since their end may come when an
 * internal redirect has taken them elsewhere.
 */

ngx_int_t
ngx_mcp_now(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    ngx_int_t  rc;

    rc = ngx_mcp_submit(zone, op);

    if (rc == NGX_AGAIN) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "operation %ui was not answered at once", op->type);
        ngx_debug_point();
        return NGX_ERROR;
    }

    return rc;
}


static void
ngx_mcp_run_handler(ngx_mcp_op_t *op)
{
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_mcp_run_t       *run;

    run = op->data;
    r = run->r;
    c = r->connection;

    r->main->blocked--;

    rc = run->done(r, op);

    if (rc == NGX_DONE && c->error && r->main->blocked == 0) {
        /* it waits for something else, and nobody for it */
        rc = NGX_ERROR;
    }

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


/*
 * Answers to the questions of a task.  Which of them are still open, and what
 * becomes of the record, is worked out from a copy; it counts if the task has
 * not changed meanwhile.
 */

ngx_int_t
ngx_mcp_answer(ngx_http_request_t *r, ngx_mcp_id_t *id, uint64_t version,
    ngx_mcp_json_t *answers, ngx_mcp_done_pt done)
{
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_answering_t  *a;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    a = ngx_mcp_op(r, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_answering_t));
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->op.id = *id;
    a->op.owner = ngx_mcp_whose(ctx);
    a->answers = *answers;
    a->version = version;
    a->done = done;

    return ngx_mcp_answer_read(r, a);
}


static ngx_int_t
ngx_mcp_answer_read(ngx_http_request_t *r, ngx_mcp_answering_t *a)
{
    ngx_mcp_asked_t  *asked;

    asked = ngx_mcp_op(r, NGX_MCP_OP_GET, sizeof(ngx_mcp_asked_t));
    if (asked == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    asked->answering = a;
    asked->op.id = a->op.id;
    asked->op.owner = a->op.owner;
    asked->op.want = NGX_MCP_WANT(NGX_MCP_REQUESTS)
                     | NGX_MCP_WANT(NGX_MCP_RESPONSES);

    return ngx_mcp_run(r, &asked->op.op, ngx_mcp_answer_merge);
}


static ngx_int_t
ngx_mcp_answer_merge(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_str_t            *payload;
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_asked_t      *asked;
    ngx_mcp_merge_t       merge;
    ngx_mcp_answering_t  *a;
    ngx_mcp_loc_conf_t   *lcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    asked = (ngx_mcp_asked_t *) o;
    a = asked->answering;
    a->op.view = asked->op.view;

    if (a->version && o->reason == NGX_MCP_OK
        && a->version != asked->op.view.task.version)
    {
        a->op.op.reason = NGX_MCP_VERSION_CONFLICT;
        return a->done(r, &a->op.op);
    }

    if (o->reason != NGX_MCP_OK
        || asked->op.view.task.state != NGX_MCP_INPUT_REQUIRED)
    {
        a->op.op.reason = o->reason;

        /* MCP has it that late answers are ignored, plain HTTP has 409 */

        if (ctx->rest && o->reason == NGX_MCP_OK) {
            a->op.op.reason =
                     ngx_mcp_terminal(asked->op.view.task.state)
                     ? NGX_MCP_TERMINAL
                     : NGX_MCP_STATE_INVALID;
        }

        return a->done(r, &a->op.op);
    }

    payload = asked->op.view.payload;

    if (ngx_mcp_input_merge(r->pool,
                            &payload[NGX_MCP_REQUESTS],
                            &payload[NGX_MCP_RESPONSES],
                            &a->answers, &merge)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (merge.taken == 0) {
        a->op.op.reason = NGX_MCP_OK;
        return a->done(r, &a->op.op);
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    a->op.op.type = NGX_MCP_OP_UPDATE;
    a->op.version = asked->op.view.task.version;
    a->op.event.type = merge.left ? NGX_MCP_EV_ANSWER
                                  : NGX_MCP_EV_ANSWER_ALL;
    a->op.change.payload[NGX_MCP_REQUESTS] = merge.requests;
    a->op.change.payload[NGX_MCP_RESPONSES] = merge.responses;
    a->op.change.max_payload = lcf->max_payload;
    a->op.change.max_owner_bytes = lcf->max_owner_bytes;

    return ngx_mcp_run(r, &a->op.op, ngx_mcp_answer_done);
}


static ngx_int_t
ngx_mcp_answer_done(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_answering_t  *a;

    a = (ngx_mcp_answering_t *) o;

    if (o->reason == NGX_MCP_VERSION_CONFLICT
        && ++a->tries < NGX_MCP_ANSWER_TRIES)
    {
        return ngx_mcp_answer_read(r, a);
    }

    return a->done(r, o);
}
