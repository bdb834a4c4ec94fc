
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* worker/claim: a worker claims tasks of some tools, or waits for them. */


#include "ngx_mcp_worker.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_later.h"


#define NGX_MCP_CLAIM_MAX  32

#define NGX_MCP_WANT_WORK                                                     \
    (NGX_MCP_WANT_TOOL                                                        \
     | NGX_MCP_WANT(NGX_MCP_PARAMS)                                           \
     | NGX_MCP_WANT(NGX_MCP_METADATA)                                         \
     | NGX_MCP_WANT(NGX_MCP_RESPONSES))


typedef struct {
    ngx_mcp_wait_t      wait;    /* must be the first */
    ngx_str_t           tools[NGX_MCP_CLAIM_TOOLS];
    ngx_uint_t          ntools;
    ngx_uint_t          max;     /* tasks */
    uint32_t            lease;   /* ms; 0: the lease of the task */
    ngx_str_t           worker;  /* name of the worker */
    uint32_t            drains;  /* drains of the zone at that look */
    uint64_t            sum;     /* hash of the tools */
    ngx_uint_t          wakeups; /* at that look */
    ngx_pool_t         *pool;    /* for each look; NULL: no look */
    ngx_mcp_op_claim_t  op;
} ngx_mcp_claiming_t;


/*
 * All requests that wait for the same tools are woken together.  If one of them
 * finds no task, the others find none either, until this worker process is
 * woken again.
 */

typedef struct {
    uint64_t         sum;
    ngx_uint_t       wakeups;
    ngx_mcp_zone_t  *zone;
} ngx_mcp_idle_t;


static const char *ngx_mcp_claim_tools(ngx_http_request_t *r,
    ngx_mcp_json_t *tools, ngx_mcp_claiming_t *c);
static const char *ngx_mcp_claim_worker(ngx_http_request_t *r,
    ngx_mcp_json_t *worker, ngx_mcp_claiming_t *c);
static ngx_int_t ngx_mcp_claim_watch(ngx_http_request_t *r,
    ngx_mcp_claiming_t *c);
static ngx_int_t ngx_mcp_claim_look(ngx_mcp_wait_t *w);
static ngx_uint_t ngx_mcp_claim_idle(ngx_mcp_claiming_t *c);
static ngx_int_t ngx_mcp_claim_done(ngx_mcp_wait_t *w, ngx_mcp_op_t *o);
static void ngx_mcp_claim_release(ngx_mcp_claiming_t *c);
static ngx_int_t ngx_mcp_claim_none(ngx_mcp_claiming_t *c);
static ngx_int_t ngx_mcp_claim_answer(ngx_mcp_claiming_t *c);
static void ngx_mcp_claim_render(ngx_mcp_out_t *out, ngx_mcp_view_t *v);


static ngx_mcp_idle_t  ngx_mcp_idle;


ngx_int_t
ngx_mcp_worker_claim(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    int64_t              n;
    const char          *err;
    ngx_mcp_json_t       tools, max, wait, lease, worker;
    ngx_mcp_claiming_t  *c;
    ngx_mcp_member_t     members[] = {
        { ngx_string("tools"), &tools },
        { ngx_string("max"), &max },
        { ngx_string("waitMs"), &wait },
        { ngx_string("leaseMs"), &lease },
        { ngx_string("worker"), &worker }
    };

    c = ngx_pcalloc(r->pool, sizeof(ngx_mcp_claiming_t));
    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_members(ctx, members, 5) != NGX_OK) {
        return ngx_mcp_duplicate(r, ctx);
    }

    err = ngx_mcp_claim_tools(r, &tools, c);

    if (err == NULL) {
        err = ngx_mcp_claim_worker(r, &worker, c);
    }

    n = 1;

    if (err == NULL && max.type != NGX_MCP_JSON_NONE
        && (ngx_mcp_json_integer(&max, &n) != NGX_OK
            || n < 1 || n > NGX_MCP_CLAIM_MAX))
    {
        err = "max must be an integer from 1 to 32";
    }

    c->max = n;
    n = 0;

    if (err == NULL) {
        err = ngx_mcp_worker_ms(&lease, 86400000, &n);
    }

    c->lease = (uint32_t) n;
    n = 0;

    if (err == NULL) {
        err = ngx_mcp_worker_ms(&wait, 3600000, &n);
    }

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    if (ngx_mcp_claim_watch(r, c) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_mcp_wait_init(&c->wait, r, ctx);
    c->wait.look = ngx_mcp_claim_look;
    c->wait.until = ngx_current_msec
                    + ngx_min(n, NGX_MCP_WORKER_WAIT);

    return ngx_mcp_wait(&c->wait);
}


static const char *
ngx_mcp_claim_tools(ngx_http_request_t *r, ngx_mcp_json_t *tools,
    ngx_mcp_claiming_t *c)
{
    ngx_mcp_json_t       value;
    ngx_mcp_json_iter_t  it;

    if (tools->type != NGX_MCP_JSON_ARRAY) {
        return "tools must be an array";
    }

    ngx_mcp_json_iter(&it, tools);

    while (ngx_mcp_json_next(&it, NULL, &value) == NGX_OK) {

        if (c->ntools == NGX_MCP_CLAIM_TOOLS) {
            return "tools must not have more than 64 members";
        }

        if (value.type != NGX_MCP_JSON_STRING
            || ngx_mcp_json_string(r->pool, &value,
                                   &c->tools[c->ntools])
               != NGX_OK)
        {
            return "tools must contain only strings";
        }

        c->ntools++;
    }

    return c->ntools ? NULL : "tools must not be empty";
}


/* the name of the worker, by default its address */

static const char *
ngx_mcp_claim_worker(ngx_http_request_t *r, ngx_mcp_json_t *worker,
    ngx_mcp_claiming_t *c)
{
    if (worker->type == NGX_MCP_JSON_NONE) {
        c->worker = r->connection->addr_text;
        return NULL;
    }

    if (worker->type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, worker, &c->worker)
           != NGX_OK
        || c->worker.len == 0
        || c->worker.len > NGX_MCP_WORKER_NAME)
    {
        return "worker must be a string of 1 to 64 bytes";
    }

    return NULL;
}


static ngx_int_t
ngx_mcp_claim_watch(ngx_http_request_t *r, ngx_mcp_claiming_t *c)
{
    uint32_t             hash;
    ngx_uint_t           i;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    c->wait.nwatches = c->ntools + 1;
    c->wait.watches = ngx_pcalloc(r->pool, c->wait.nwatches
                                        * sizeof(ngx_mcp_watch_t));
    if (c->wait.watches == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < c->ntools; i++) {
        hash = ngx_mcp_zone_hash(lcf->zone, NGX_MCP_TOOL, &c->tools[i]);

        c->sum = ngx_mcp_mix(c->sum + hash + 1);
        c->wait.watches[i].key = ngx_mcp_signal_name(hash);
    }

    /* the last one is signalled when the worker is to drain */

    hash = ngx_mcp_zone_hash(lcf->zone, NGX_MCP_NAMES, &c->worker);
    c->wait.watches[i].key = ngx_mcp_signal_name(hash);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_claim_look(ngx_mcp_wait_t *w)
{
    ngx_int_t            rc;
    ngx_mcp_claiming_t  *c;
    ngx_mcp_op_claim_t  *op;

    c = (ngx_mcp_claiming_t *) w;
    op = &c->op;

    if (w->parked && ngx_mcp_claim_idle(c)) {
        return NGX_DECLINED;
    }

    if (ngx_exiting) {
        op->n = 0;
        return ngx_mcp_claim_answer(c);
    }

    c->drains = ngx_mcp_zone_drains(w->zone);
    c->wakeups = ngx_mcp_wakeups;

    /* a pool for each look, because most looks find nothing */

    c->pool = ngx_create_pool(2048, w->r->connection->log);
    if (c->pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(op, sizeof(ngx_mcp_op_claim_t));
    op->op.type = NGX_MCP_OP_CLAIM;
    op->op.pool = c->pool;
    op->tools = c->tools;
    op->ntools = c->ntools;
    op->max = c->max;
    op->lease_time = c->lease;
    op->worker = c->worker;
    op->want = NGX_MCP_WANT_WORK;
    op->watch = 1;

    rc = ngx_mcp_wait_op(w, &op->op, ngx_mcp_claim_done);

    if (rc != NGX_BUSY && c->pool) {
        ngx_destroy_pool(c->pool);
        c->pool = NULL;
    }

    return rc;
}


/* whether another request has just found no task for the same tools */

static ngx_uint_t
ngx_mcp_claim_idle(ngx_mcp_claiming_t *c)
{
    return ngx_mcp_idle.zone == c->wait.zone
           && ngx_mcp_idle.sum == c->sum
           && ngx_mcp_idle.wakeups == ngx_mcp_wakeups
           && c->drains == ngx_mcp_zone_drains(c->wait.zone)
           && ngx_current_msec < c->wait.until && !ngx_exiting;
}


/*
 * The operation is completed, so with sync=always the claim is committed before
 * the worker receives the task: it is not claimed again after a crash.
 */

static ngx_int_t
ngx_mcp_claim_done(ngx_mcp_wait_t *w, ngx_mcp_op_t *o)
{
    ngx_int_t            rc;
    ngx_mcp_claiming_t  *c;

    c = (ngx_mcp_claiming_t *) w;

    if (w->left) {
        ngx_mcp_claim_release(c);
        rc = NGX_ERROR;

    } else if (o->reason != NGX_MCP_OK) {
        rc = ngx_mcp_worker_refused(w->r, w->ctx, o->reason, NULL);

    } else if (c->op.n == 0 && !c->op.drain
               && ngx_current_msec < w->until && !ngx_exiting)
    {
        rc = ngx_mcp_claim_none(c);

    } else {
        rc = ngx_mcp_claim_answer(c);
    }

    ngx_destroy_pool(c->pool);
    c->pool = NULL;

    return rc;
}


/* the worker has closed the connection: its tasks are queued again */

static void
ngx_mcp_claim_release(ngx_mcp_claiming_t *c)
{
    ngx_uint_t            i;
    ngx_mcp_op_update_t  *op;

    for (i = 0; i < c->op.n; i++) {
        op = ngx_mcp_later_op(c->wait.zone, NGX_MCP_OP_UPDATE);
        if (op == NULL) {
            /* the leases will expire */
            return;
        }

        ngx_mcp_release(op, &c->op.views[i]);
        ngx_mcp_later(&op->op);
    }
}


static ngx_int_t
ngx_mcp_claim_none(ngx_mcp_claiming_t *c)
{
    if (c->op.more) {
        /* it looks again, after other events */
        c->wait.missed = 1;

    } else {
        ngx_mcp_idle.zone = c->wait.zone;
        ngx_mcp_idle.sum = c->sum;
        ngx_mcp_idle.wakeups = c->wakeups;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_claim_answer(ngx_mcp_claiming_t *c)
{
    ngx_uint_t       i;
    ngx_mcp_out_t    out;
    ngx_mcp_wait_t  *w;

    w = &c->wait;

    ngx_mcp_out_answer(&out, w->r, w->ctx, c->op.n ? 1024 : 64);
    ngx_mcp_out_lit(&out, "{\"tasks\":[");

    for (i = 0; i < c->op.n; i++) {
        if (i) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_claim_render(&out, &c->op.views[i]);
        ngx_mcp_set_task(w->r, w->ctx, &c->op.views[i]);
    }

    ngx_mcp_out_lit(&out, "]");
    ngx_mcp_worker_flags(&out, NULL, c->op.drain);
    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_result(w->r, &out);
}


/* arguments and _meta as the client sent them */

static void
ngx_mcp_claim_render(ngx_mcp_out_t *out, ngx_mcp_view_t *v)
{
    u_char            buf[NGX_MCP_ID_TEXT];
    ngx_mcp_json_t    params, arguments, other, meta;
    ngx_mcp_member_t  members[] = {
        { ngx_string("arguments"), &arguments },
        { ngx_string("params"), &other },
        { ngx_string("_meta"), &meta }
    };
    static ngx_str_t  call = ngx_string("tools/call");

    params.text = v->payload[NGX_MCP_PARAMS];
    params.type = params.text.len ? NGX_MCP_JSON_OBJECT
                                  : NGX_MCP_JSON_NONE;

    (void) ngx_mcp_json_members(&params, members, 3);

    /* tasks/create has the arguments in "params" */

    if (v->method.len != call.len
        || ngx_strncmp(v->method.data, call.data, call.len) != 0)
    {
        arguments = other;
    }

    ngx_mcp_out_lit(out, "{\"taskId\":\"");
    (void) ngx_mcp_id_text(buf, &v->id);
    ngx_mcp_out_add(out, buf, NGX_MCP_ID_TEXT);
    ngx_mcp_out_lit(out, "\",\"lease\":\"");
    ngx_mcp_out_add(out, buf,
                    ngx_sprintf(buf, "%016xL", v->task.lease_token) - buf);
    ngx_mcp_out_lit(out, "\",\"leaseMs\":");
    ngx_mcp_out_number(out, v->task.step_end - ngx_current_msec);

    if (v->task.phase_end != NGX_MCP_NEVER) {
        ngx_mcp_out_lit(out, ",\"deadlineMs\":");
        ngx_mcp_out_number(out, v->task.phase_end - ngx_current_msec);
    }

    ngx_mcp_out_lit(out, ",\"attempt\":");
    ngx_mcp_out_number(out, v->task.attempt);
    ngx_mcp_out_lit(out, ",\"attempts\":");
    ngx_mcp_out_number(out, v->task.policy.attempts);
    ngx_mcp_out_lit(out, ",\"tool\":");
    ngx_mcp_out_string(out, &v->tool);
    ngx_mcp_out_lit(out, ",\"arguments\":");

    if (arguments.type == NGX_MCP_JSON_OBJECT) {
        ngx_mcp_out_str(out, &arguments.text);

    } else {
        ngx_mcp_out_lit(out, "{}");
    }

    if (meta.type == NGX_MCP_JSON_OBJECT) {
        ngx_mcp_out_lit(out, ",\"_meta\":");
        ngx_mcp_out_str(out, &meta.text);
    }

    if (v->payload[NGX_MCP_METADATA].len) {
        ngx_mcp_out_lit(out, ",\"metadata\":");
        ngx_mcp_out_str(out, &v->payload[NGX_MCP_METADATA]);
    }

    if (v->payload[NGX_MCP_RESPONSES].len) {
        ngx_mcp_out_lit(out, ",\"inputResponses\":");
        ngx_mcp_out_str(out, &v->payload[NGX_MCP_RESPONSES]);
    }

    ngx_mcp_out_lit(out, "}");
}
