
/* worker/claim: a worker gets tasks of some tools, or waits for them. */


#include "ngx_mcp_worker.h"
#include "ngx_mcp_hash.h"


#define NGX_MCP_CLAIM_MAX  32

#define NGX_MCP_WANT_WORK                                                     \
    (NGX_MCP_WANT_TOOL                                                        \
     | NGX_MCP_WANT(NGX_MCP_PARAMS)                                           \
     | NGX_MCP_WANT(NGX_MCP_METADATA)                                         \
     | NGX_MCP_WANT(NGX_MCP_RESPONSES))


typedef struct {
    ngx_mcp_wait_t     wait;    /* must be the first */
    ngx_str_t          tools[NGX_MCP_CLAIM_TOOLS];
    ngx_uint_t         ntools;
    ngx_uint_t         max;
    uint32_t           lease;
    ngx_str_t          worker;
    uint32_t           drains;  /* known of */
    uint64_t           sum;     /* of the tools */
    ngx_array_t        found;   /* of .._view_t */
    ngx_mcp_out_t      answer;
    ngx_mcp_op_sync_t  sync;
} ngx_mcp_claiming_t;


/*
 * Who waits for the same tools is woken together; if one of them finds
 * nothing, neither do the others, until this process is woken again.
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
static ngx_int_t ngx_mcp_claim_found(ngx_mcp_claiming_t *c, ngx_mcp_view_t *v);
static ngx_int_t ngx_mcp_claim_done(ngx_http_request_t *r, ngx_mcp_op_t *o);
static void ngx_mcp_claim_render(ngx_mcp_out_t *out, ngx_mcp_view_t *v);


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
        return ngx_mcp_twice(r, ctx);
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
        err = "max is not an integer from 1 to 32";
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
        return "tools is not an array";
    }

    ngx_mcp_json_iter(&it, tools);

    while (ngx_mcp_json_next(&it, NULL, &value) == NGX_OK) {

        if (c->ntools == NGX_MCP_CLAIM_TOOLS) {
            return "more than 64 tools";
        }

        if (value.type != NGX_MCP_JSON_STRING
            || ngx_mcp_json_string(r->pool, &value,
                                   &c->tools[c->ntools])
               != NGX_OK)
        {
            return "a tool is not a string";
        }

        c->ntools++;
    }

    return c->ntools ? NULL : "tools is empty";
}


/* what it calls itself, or else where it is */

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
        return "worker is not a string of 1 to 64 bytes";
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

    /* and whether it has to drain */

    hash = ngx_mcp_zone_hash(lcf->zone, NGX_MCP_NAMES, &c->worker);
    c->wait.watches[i].key = ngx_mcp_signal_name(hash);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_claim_look(ngx_mcp_wait_t *w)
{
    ngx_pool_t            *pool;
    ngx_uint_t             n, more, drain, reason;
    ngx_mcp_out_t          out;
    ngx_mcp_claiming_t    *c;
    ngx_mcp_op_claim_t     op;
    ngx_mcp_op_update_t    release;
    static ngx_mcp_idle_t  idle;

    more = 0;
    drain = 0;
    reason = NGX_MCP_OK;
    c = (ngx_mcp_claiming_t *) w;
    ngx_memzero(&out, sizeof(ngx_mcp_out_t));

    if (w->parked
        && idle.zone == w->zone
        && idle.sum == c->sum
        && idle.wakeups == ngx_mcp_wakeups
        && c->drains == ngx_mcp_zone_drains(w->zone)
        && ngx_current_msec < w->until && !ngx_exiting)
    {
        return NGX_DECLINED;
    }

    c->drains = ngx_mcp_zone_drains(w->zone);

    /* of its own, since many looks find nothing */

    pool = ngx_create_pool(1024, w->r->connection->log);
    if (pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (n = 0; n < c->max && !ngx_exiting; n++) {

        ngx_memzero(&op, sizeof(ngx_mcp_op_claim_t));
        op.op.type = NGX_MCP_OP_CLAIM;
        op.op.pool = pool;
        op.tools = c->tools;
        op.ntools = c->ntools;
        op.lease_time = c->lease;
        op.worker = c->worker;
        op.want = NGX_MCP_WANT_WORK;
        op.watch = (n == 0);

        if (ngx_mcp_now(w->zone, &op.op) != NGX_OK || !op.found) {
            more = op.more;
            drain = op.drain;
            reason = op.op.reason;
            break;
        }

        if (ngx_mcp_claim_found(c, &op.view) != NGX_OK) {
            /* nobody would know that he has it */
            ngx_mcp_release(&release, &op.view);
            release.op.pool = pool;
            (void) ngx_mcp_now(w->zone, &release.op);
            break;
        }

        if (n == 0) {
            ngx_mcp_out_answer(&out, w->r, w->ctx, 1024);
            ngx_mcp_out_lit(&out, "{\"tasks\":[");

        } else {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_claim_render(&out, &op.view);
        ngx_mcp_known(w->r, w->ctx, &op.view);
    }

    ngx_destroy_pool(pool);

    if (n == 0 && reason != NGX_MCP_OK) {
        return ngx_mcp_worker_refused(w->r, w->ctx, reason, NULL);
    }

    if (n == 0) {

        if (ngx_current_msec < w->until && !drain && !ngx_exiting) {

            if (more) {
                /* to look again in another turn */
                w->missed = 1;

            } else {
                idle.zone = w->zone;
                idle.sum = c->sum;
                idle.wakeups = ngx_mcp_wakeups;
            }

            return NGX_DECLINED;
        }

        ngx_mcp_out_answer(&out, w->r, w->ctx, 64);
        ngx_mcp_out_lit(&out, "{\"tasks\":[");
    }

    ngx_mcp_out_lit(&out, "]");
    ngx_mcp_worker_told(&out, NULL, drain);
    ngx_mcp_out_lit(&out, "}");

    if (n == 0) {
        return ngx_mcp_out_result(w->r, &out);
    }

    c->answer = out;

    /* nobody begins with what could be claimed again after a crash */

    c->sync.op.type = NGX_MCP_OP_SYNC;

    return ngx_mcp_run(w->r, &c->sync.op, ngx_mcp_claim_done);
}


/* what was claimed is given back, if that cannot be saved */

static ngx_int_t
ngx_mcp_claim_found(ngx_mcp_claiming_t *c, ngx_mcp_view_t *v)
{
    ngx_mcp_view_t  *claimed;

    if (c->found.elts == NULL
        && ngx_array_init(&c->found, c->wait.r->pool, 1,
                          sizeof(ngx_mcp_view_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    claimed = ngx_array_push(&c->found);
    if (claimed == NULL) {
        return NGX_ERROR;
    }

    *claimed = *v;
    c->sync.changed = ngx_max(c->sync.changed, v->changed);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_claim_done(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_uint_t            i;
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_view_t       *claimed;
    ngx_mcp_claiming_t   *c;
    ngx_mcp_op_update_t   op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    c = (ngx_mcp_claiming_t *)
            ((u_char *) o - offsetof(ngx_mcp_claiming_t, sync));

    if (o->reason == NGX_MCP_OK) {
        return ngx_mcp_out_result(r, &c->answer);
    }

    claimed = c->found.elts;

    for (i = 0; i < c->found.nelts; i++) {
        ngx_mcp_release(&op, &claimed[i]);
        op.op.pool = r->pool;
        (void) ngx_mcp_now(c->wait.zone, &op.op);
    }

    return ngx_mcp_refused(r, ctx, o->reason);
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

    /* tasks/create has them under another name */

    if (v->method.len != call.len
        || ngx_strncmp(v->method.data, call.data, call.len) != 0)
    {
        arguments = other;
    }

    ngx_mcp_out_lit(out, "{\"taskId\":\"");
    (void) ngx_mcp_id_text(buf, &v->id);
    ngx_mcp_out_add(out, buf, NGX_MCP_ID_TEXT);
    ngx_mcp_out_lit(out, "\",\"lease\":\"");
    ngx_mcp_out_add(out, buf, ngx_sprintf(buf, "%016xL", v->task.lease) - buf);
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
