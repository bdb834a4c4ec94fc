
/*
 * The worker surface: programs that do the work claim tasks here, and tell
 * how they get on.  It fails closed: without "public" it answers only clients
 * on this machine.
 */


#include "ngx_http_mcp_tasks_module.h"
#include "ngx_http_mcp_tasks_hash.h"
#include "ngx_http_mcp_tasks_input.h"
#include "ngx_http_mcp_tasks_names.h"
#include "ngx_http_mcp_tasks_signal.h"


#define NGX_HTTP_MCP_TASKS_CLAIM_MAX   32
#define NGX_HTTP_MCP_TASKS_WORKER_WAIT 60000
#define NGX_HTTP_MCP_TASKS_ASK_TRIES   10

/* members of their own that methods have, beside the task and the lease */
#define NGX_HTTP_MCP_TASKS_HELD_OWN    3

#define NGX_HTTP_MCP_TASKS_WANT_WORK                                          \
    (NGX_HTTP_MCP_TASKS_WANT_TOOL                                             \
     | NGX_HTTP_MCP_TASKS_WANT(NGX_HTTP_MCP_TASKS_PARAMS)                     \
     | NGX_HTTP_MCP_TASKS_WANT(NGX_HTTP_MCP_TASKS_METADATA)                   \
     | NGX_HTTP_MCP_TASKS_WANT(NGX_HTTP_MCP_TASKS_RESPONSES))


typedef struct {
    ngx_http_mcp_tasks_wait_t        wait;    /* must be the first */
    ngx_str_t                        tools[NGX_HTTP_MCP_TASKS_CLAIM_TOOLS];
    ngx_uint_t                       ntools;
    ngx_uint_t                       max;
    uint32_t                         lease;
    ngx_str_t                        worker;
    uint32_t                         drains;  /* known of */
    uint64_t                         sum;     /* of the tools */
    ngx_array_t                      found;   /* of .._view_t */
    ngx_http_mcp_tasks_out_t         answer;
    ngx_http_mcp_tasks_op_sync_t     sync;
} ngx_http_mcp_tasks_claiming_t;


/*
 * Who waits for the same tools is woken together; if one of them finds
 * nothing, neither do the others, until this process is woken again.
 */

typedef struct {
    uint64_t                         sum;
    ngx_uint_t                       wakeups;
    ngx_http_mcp_tasks_zone_conf_t  *zcf;
} ngx_http_mcp_tasks_idle_t;


typedef struct {
    ngx_http_mcp_tasks_wait_t        wait;    /* must be the first */
    uint64_t                         lease;
} ngx_http_mcp_tasks_answers_t;


/* what workers say of a task that they hold */

typedef struct {
    ngx_http_mcp_tasks_op_update_t   op;      /* must be the first */
    ngx_http_mcp_tasks_json_t        requests;
    ngx_uint_t                       tries;
} ngx_http_mcp_tasks_holding_t;


typedef struct {
    ngx_http_mcp_tasks_op_get_t      op;      /* must be the first */
    ngx_http_mcp_tasks_holding_t    *holding;
} ngx_http_mcp_tasks_asking_t;


static void ngx_http_mcp_tasks_worker_message(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_tasks_worker_claim(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static const char *ngx_http_mcp_tasks_claim_tools(ngx_http_request_t *r,
    ngx_http_mcp_tasks_json_t *tools, ngx_http_mcp_tasks_claiming_t *c);
static const char *ngx_http_mcp_tasks_claim_worker(ngx_http_request_t *r,
    ngx_http_mcp_tasks_json_t *worker, ngx_http_mcp_tasks_claiming_t *c);
static ngx_int_t ngx_http_mcp_tasks_claim_watch(ngx_http_request_t *r,
    ngx_http_mcp_tasks_claiming_t *c);
static ngx_int_t ngx_http_mcp_tasks_claim_look(ngx_http_mcp_tasks_wait_t *w);
static ngx_int_t ngx_http_mcp_tasks_claim_found(
    ngx_http_mcp_tasks_claiming_t *c, ngx_http_mcp_tasks_view_t *v);
static ngx_int_t ngx_http_mcp_tasks_claim_done(ngx_http_request_t *r,
    ngx_http_mcp_tasks_op_t *o);
static void ngx_http_mcp_tasks_claim_render(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_view_t *v);
static ngx_int_t ngx_http_mcp_tasks_worker_heartbeat(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_worker_progress(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_worker_ask(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_ask_read(ngx_http_request_t *r,
    ngx_http_mcp_tasks_holding_t *h);
static ngx_int_t ngx_http_mcp_tasks_ask_check(ngx_http_request_t *r,
    ngx_http_mcp_tasks_op_t *o);
static ngx_int_t ngx_http_mcp_tasks_ask_done(ngx_http_request_t *r,
    ngx_http_mcp_tasks_op_t *o);
static ngx_int_t ngx_http_mcp_tasks_worker_answers(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_answers_look(ngx_http_mcp_tasks_wait_t *w);
static ngx_int_t ngx_http_mcp_tasks_worker_complete(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_worker_fail(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_tasks_worker_release(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx);

static ngx_http_mcp_tasks_holding_t *ngx_http_mcp_tasks_holding(
    ngx_http_request_t *r, ngx_http_mcp_tasks_ctx_t *ctx, ngx_uint_t event,
    ngx_http_mcp_tasks_member_t *members, ngx_uint_t n, ngx_int_t *rc);
static ngx_int_t ngx_http_mcp_tasks_held(ngx_http_request_t *r,
    ngx_http_mcp_tasks_op_t *o);
static void ngx_http_mcp_tasks_worker_told(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_view_t *v, ngx_uint_t drain);
static ngx_int_t ngx_http_mcp_tasks_worker_refused(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_uint_t reason,
    ngx_http_mcp_tasks_view_t *v);
static const char *ngx_http_mcp_tasks_worker_ms(
    ngx_http_mcp_tasks_json_t *value, int64_t max, int64_t *ms);


static ngx_http_mcp_tasks_method_t  ngx_http_mcp_tasks_worker_methods[] = {
    { ngx_string("worker/claim"), ngx_http_mcp_tasks_worker_claim },
    { ngx_string("worker/heartbeat"), ngx_http_mcp_tasks_worker_heartbeat },
    { ngx_string("worker/progress"), ngx_http_mcp_tasks_worker_progress },
    { ngx_string("worker/ask"), ngx_http_mcp_tasks_worker_ask },
    { ngx_string("worker/answers"), ngx_http_mcp_tasks_worker_answers },
    { ngx_string("worker/complete"), ngx_http_mcp_tasks_worker_complete },
    { ngx_string("worker/fail"), ngx_http_mcp_tasks_worker_fail },
    { ngx_string("worker/release"), ngx_http_mcp_tasks_worker_release },
    { ngx_null_string, NULL }
};


ngx_int_t
ngx_http_mcp_tasks_worker_handler(ngx_http_request_t *r)
{
    ngx_str_t                       allow;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    r->disable_not_modified = 1;

    if (!lcf->open && !ngx_http_mcp_tasks_local(r)) {
        return ngx_http_mcp_tasks_refuse(r, NGX_HTTP_FORBIDDEN,
                     NGX_HTTP_MCP_TASKS_RPC_INVALID_REQUEST,
                     "Invalid Request: workers on this machine only");
    }

    /* no page in a browser is a worker */

    if (!ngx_http_mcp_tasks_origin(r)) {
        return ngx_http_mcp_tasks_refuse(r, NGX_HTTP_FORBIDDEN,
                     NGX_HTTP_MCP_TASKS_RPC_INVALID_REQUEST,
                     "Invalid Request: Origin or Host is not allowed");
    }

    if (r->method != NGX_HTTP_POST) {
        ngx_str_set(&allow, "POST");

        if (ngx_http_mcp_tasks_add_header(r, "Allow", &allow) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_mcp_tasks_refuse(r, NGX_HTTP_NOT_ALLOWED,
                     NGX_HTTP_MCP_TASKS_RPC_INVALID_REQUEST,
                     "Invalid Request: use POST");
    }

    return ngx_http_mcp_tasks_post(r, ngx_http_mcp_tasks_worker_message);
}


static void
ngx_http_mcp_tasks_worker_message(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_http_mcp_tasks_ctx_t  *ctx;

    rc = ngx_http_mcp_tasks_read(r, &ctx);

    if (rc == NGX_DECLINED
        && ctx->rpc.kind != NGX_HTTP_MCP_TASKS_RPC_REQUEST)
    {
        rc = ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                                      NGX_HTTP_MCP_TASKS_RPC_INVALID_REQUEST,
                                      "Invalid Request: id is missing", NULL);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_mcp_tasks_dispatch(r, ctx,
                                         ngx_http_mcp_tasks_worker_methods);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_OK,
                                      NGX_HTTP_MCP_TASKS_RPC_NO_METHOD,
                                      "Method not found", NULL);
    }

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_http_mcp_tasks_worker_claim(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    int64_t                         n;
    const char                     *err;
    ngx_http_mcp_tasks_json_t       tools, max, wait, lease, worker;
    ngx_http_mcp_tasks_claiming_t  *c;
    ngx_http_mcp_tasks_member_t     members[] = {
        { ngx_string("tools"), &tools },
        { ngx_string("max"), &max },
        { ngx_string("waitMs"), &wait },
        { ngx_string("leaseMs"), &lease },
        { ngx_string("worker"), &worker }
    };

    c = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_tasks_claiming_t));
    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_mcp_tasks_members(ctx, members, 5) != NGX_OK) {
        return ngx_http_mcp_tasks_twice(r, ctx);
    }

    err = ngx_http_mcp_tasks_claim_tools(r, &tools, c);

    if (err == NULL) {
        err = ngx_http_mcp_tasks_claim_worker(r, &worker, c);
    }

    n = 1;

    if (err == NULL && max.type != NGX_HTTP_MCP_TASKS_JSON_NONE
        && (ngx_http_mcp_tasks_json_integer(&max, &n) != NGX_OK
            || n < 1 || n > NGX_HTTP_MCP_TASKS_CLAIM_MAX))
    {
        err = "max is not an integer from 1 to 32";
    }

    c->max = n;
    n = 0;

    if (err == NULL) {
        err = ngx_http_mcp_tasks_worker_ms(&lease, 86400000, &n);
    }

    c->lease = (uint32_t) n;
    n = 0;

    if (err == NULL) {
        err = ngx_http_mcp_tasks_worker_ms(&wait, 3600000, &n);
    }

    if (err) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    if (ngx_http_mcp_tasks_claim_watch(r, c) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_mcp_tasks_wait_init(&c->wait, r, ctx);
    c->wait.look = ngx_http_mcp_tasks_claim_look;
    c->wait.until = ngx_current_msec
                    + ngx_min(n, NGX_HTTP_MCP_TASKS_WORKER_WAIT);

    return ngx_http_mcp_tasks_wait(&c->wait);
}


static const char *
ngx_http_mcp_tasks_claim_tools(ngx_http_request_t *r,
    ngx_http_mcp_tasks_json_t *tools, ngx_http_mcp_tasks_claiming_t *c)
{
    ngx_http_mcp_tasks_json_t       value;
    ngx_http_mcp_tasks_json_iter_t  it;

    if (tools->type != NGX_HTTP_MCP_TASKS_JSON_ARRAY) {
        return "tools is not an array";
    }

    ngx_http_mcp_tasks_json_iter(&it, tools);

    while (ngx_http_mcp_tasks_json_next(&it, NULL, &value) == NGX_OK) {

        if (c->ntools == NGX_HTTP_MCP_TASKS_CLAIM_TOOLS) {
            return "more than 64 tools";
        }

        if (value.type != NGX_HTTP_MCP_TASKS_JSON_STRING
            || ngx_http_mcp_tasks_json_string(r->pool, &value,
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
ngx_http_mcp_tasks_claim_worker(ngx_http_request_t *r,
    ngx_http_mcp_tasks_json_t *worker, ngx_http_mcp_tasks_claiming_t *c)
{
    if (worker->type == NGX_HTTP_MCP_TASKS_JSON_NONE) {
        c->worker = r->connection->addr_text;
        return NULL;
    }

    if (worker->type != NGX_HTTP_MCP_TASKS_JSON_STRING
        || ngx_http_mcp_tasks_json_string(r->pool, worker, &c->worker)
           != NGX_OK
        || c->worker.len == 0
        || c->worker.len > NGX_HTTP_MCP_TASKS_WORKER_NAME)
    {
        return "worker is not a string of 1 to 64 bytes";
    }

    return NULL;
}


static ngx_int_t
ngx_http_mcp_tasks_claim_watch(ngx_http_request_t *r,
    ngx_http_mcp_tasks_claiming_t *c)
{
    uint32_t                        hash;
    ngx_uint_t                      i;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    c->wait.nwatches = c->ntools + 1;
    c->wait.watches = ngx_pcalloc(r->pool, c->wait.nwatches
                                        * sizeof(ngx_http_mcp_tasks_watch_t));
    if (c->wait.watches == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < c->ntools; i++) {
        hash = ngx_http_mcp_tasks_name_hash(&lcf->zone->zone.table,
                                     NGX_HTTP_MCP_TASKS_TOOL, &c->tools[i]);

        c->sum = ngx_http_mcp_tasks_mix(c->sum + hash + 1);
        c->wait.watches[i].key = ngx_http_mcp_tasks_signal_name(hash);
    }

    /* and whether it has to drain */

    hash = ngx_http_mcp_tasks_name_hash(&lcf->zone->zone.table,
                                        NGX_HTTP_MCP_TASKS_NAMES, &c->worker);
    c->wait.watches[i].key = ngx_http_mcp_tasks_signal_name(hash);

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_tasks_claim_look(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_pool_t                       *pool;
    ngx_uint_t                        n, more, drain, reason;
    ngx_http_mcp_tasks_out_t          out;
    ngx_http_mcp_tasks_claiming_t    *c;
    ngx_http_mcp_tasks_op_claim_t     op;
    ngx_http_mcp_tasks_op_update_t    release;
    static ngx_http_mcp_tasks_idle_t  idle;

    more = 0;
    drain = 0;
    reason = NGX_HTTP_MCP_TASKS_OK;
    c = (ngx_http_mcp_tasks_claiming_t *) w;
    ngx_memzero(&out, sizeof(ngx_http_mcp_tasks_out_t));

    if (w->parked
        && idle.zcf == w->zcf
        && idle.sum == c->sum
        && idle.wakeups == ngx_http_mcp_tasks_wakeups
        && c->drains == w->zcf->zone.table.sh->drains
        && ngx_current_msec < w->until && !ngx_exiting)
    {
        return NGX_DECLINED;
    }

    c->drains = w->zcf->zone.table.sh->drains;

    /* of its own, since many looks find nothing */

    pool = ngx_create_pool(1024, w->r->connection->log);
    if (pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (n = 0; n < c->max && !ngx_exiting; n++) {

        ngx_memzero(&op, sizeof(ngx_http_mcp_tasks_op_claim_t));
        op.op.type = NGX_HTTP_MCP_TASKS_OP_CLAIM;
        op.op.pool = pool;
        op.tools = c->tools;
        op.ntools = c->ntools;
        op.lease_time = c->lease;
        op.worker = c->worker;
        op.want = NGX_HTTP_MCP_TASKS_WANT_WORK;
        op.watch = (n == 0);

        if (ngx_http_mcp_tasks_now(w->zcf, &op.op) != NGX_OK || !op.found) {
            more = op.more;
            drain = op.drain;
            reason = op.op.reason;
            break;
        }

        if (ngx_http_mcp_tasks_claim_found(c, &op.view) != NGX_OK) {
            /* nobody would know that he has it */
            ngx_http_mcp_tasks_release(&release, &op.view);
            release.op.pool = pool;
            (void) ngx_http_mcp_tasks_now(w->zcf, &release.op);
            break;
        }

        if (n == 0) {
            ngx_http_mcp_tasks_out_answer(&out, w->r, w->ctx, 1024);
            ngx_http_mcp_tasks_out_lit(&out, "{\"tasks\":[");

        } else {
            ngx_http_mcp_tasks_out_lit(&out, ",");
        }

        ngx_http_mcp_tasks_claim_render(&out, &op.view);
        ngx_http_mcp_tasks_known(w->r, w->ctx, &op.view);
    }

    ngx_destroy_pool(pool);

    if (n == 0 && reason != NGX_HTTP_MCP_TASKS_OK) {
        return ngx_http_mcp_tasks_worker_refused(w->r, w->ctx, reason, NULL);
    }

    if (n == 0) {

        if (ngx_current_msec < w->until && !drain && !ngx_exiting) {

            if (more) {
                /* to look again in another turn */
                w->missed = 1;

            } else {
                idle.zcf = w->zcf;
                idle.sum = c->sum;
                idle.wakeups = ngx_http_mcp_tasks_wakeups;
            }

            return NGX_DECLINED;
        }

        ngx_http_mcp_tasks_out_answer(&out, w->r, w->ctx, 64);
        ngx_http_mcp_tasks_out_lit(&out, "{\"tasks\":[");
    }

    ngx_http_mcp_tasks_out_lit(&out, "]");
    ngx_http_mcp_tasks_worker_told(&out, NULL, drain);
    ngx_http_mcp_tasks_out_lit(&out, "}");

    if (n == 0) {
        return ngx_http_mcp_tasks_out_result(w->r, &out);
    }

    c->answer = out;

    /* nobody begins with what could be claimed again after a crash */

    c->sync.op.type = NGX_HTTP_MCP_TASKS_OP_SYNC;

    return ngx_http_mcp_tasks_run(w->r, &c->sync.op,
                                  ngx_http_mcp_tasks_claim_done);
}


/* what was claimed is given back, if that cannot be saved */

static ngx_int_t
ngx_http_mcp_tasks_claim_found(ngx_http_mcp_tasks_claiming_t *c,
    ngx_http_mcp_tasks_view_t *v)
{
    ngx_http_mcp_tasks_view_t  *claimed;

    if (c->found.elts == NULL
        && ngx_array_init(&c->found, c->wait.r->pool, 1,
                          sizeof(ngx_http_mcp_tasks_view_t))
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
ngx_http_mcp_tasks_claim_done(ngx_http_request_t *r,
    ngx_http_mcp_tasks_op_t *o)
{
    ngx_uint_t                       i;
    ngx_http_mcp_tasks_ctx_t        *ctx;
    ngx_http_mcp_tasks_view_t       *claimed;
    ngx_http_mcp_tasks_claiming_t   *c;
    ngx_http_mcp_tasks_op_update_t   op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    c = (ngx_http_mcp_tasks_claiming_t *)
            ((u_char *) o - offsetof(ngx_http_mcp_tasks_claiming_t, sync));

    if (o->reason == NGX_HTTP_MCP_TASKS_OK) {
        return ngx_http_mcp_tasks_out_result(r, &c->answer);
    }

    claimed = c->found.elts;

    for (i = 0; i < c->found.nelts; i++) {
        ngx_http_mcp_tasks_release(&op, &claimed[i]);
        op.op.pool = r->pool;
        (void) ngx_http_mcp_tasks_now(c->wait.zcf, &op.op);
    }

    return ngx_http_mcp_tasks_refused(r, ctx, o->reason);
}


/* arguments and _meta as the client sent them */

static void
ngx_http_mcp_tasks_claim_render(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_view_t *v)
{
    u_char                       buf[NGX_HTTP_MCP_TASKS_ID_TEXT];
    ngx_http_mcp_tasks_json_t    params, arguments, other, meta;
    ngx_http_mcp_tasks_member_t  members[] = {
        { ngx_string("arguments"), &arguments },
        { ngx_string("params"), &other },
        { ngx_string("_meta"), &meta }
    };
    static ngx_str_t             call = ngx_string("tools/call");

    params.text = v->payload[NGX_HTTP_MCP_TASKS_PARAMS];
    params.type = params.text.len ? NGX_HTTP_MCP_TASKS_JSON_OBJECT
                                  : NGX_HTTP_MCP_TASKS_JSON_NONE;

    (void) ngx_http_mcp_tasks_json_members(&params, members, 3);

    /* tasks/create has them under another name */

    if (v->method.len != call.len
        || ngx_strncmp(v->method.data, call.data, call.len) != 0)
    {
        arguments = other;
    }

    ngx_http_mcp_tasks_out_lit(out, "{\"taskId\":\"");
    (void) ngx_http_mcp_tasks_id_text(buf, &v->id);
    ngx_http_mcp_tasks_out_add(out, buf, NGX_HTTP_MCP_TASKS_ID_TEXT);
    ngx_http_mcp_tasks_out_lit(out, "\",\"lease\":\"");
    ngx_http_mcp_tasks_out_add(out, buf,
                       ngx_sprintf(buf, "%016xL", v->task.lease) - buf);
    ngx_http_mcp_tasks_out_lit(out, "\",\"leaseMs\":");
    ngx_http_mcp_tasks_out_number(out, v->task.step_end - ngx_current_msec);

    if (v->task.phase_end != NGX_HTTP_MCP_TASKS_NEVER) {
        ngx_http_mcp_tasks_out_lit(out, ",\"deadlineMs\":");
        ngx_http_mcp_tasks_out_number(out,
                                      v->task.phase_end - ngx_current_msec);
    }

    ngx_http_mcp_tasks_out_lit(out, ",\"attempt\":");
    ngx_http_mcp_tasks_out_number(out, v->task.attempt);
    ngx_http_mcp_tasks_out_lit(out, ",\"attempts\":");
    ngx_http_mcp_tasks_out_number(out, v->task.policy.attempts);
    ngx_http_mcp_tasks_out_lit(out, ",\"tool\":");
    ngx_http_mcp_tasks_out_string(out, &v->tool);
    ngx_http_mcp_tasks_out_lit(out, ",\"arguments\":");

    if (arguments.type == NGX_HTTP_MCP_TASKS_JSON_OBJECT) {
        ngx_http_mcp_tasks_out_str(out, &arguments.text);

    } else {
        ngx_http_mcp_tasks_out_lit(out, "{}");
    }

    if (meta.type == NGX_HTTP_MCP_TASKS_JSON_OBJECT) {
        ngx_http_mcp_tasks_out_lit(out, ",\"_meta\":");
        ngx_http_mcp_tasks_out_str(out, &meta.text);
    }

    if (v->payload[NGX_HTTP_MCP_TASKS_METADATA].len) {
        ngx_http_mcp_tasks_out_lit(out, ",\"metadata\":");
        ngx_http_mcp_tasks_out_str(out,
                                   &v->payload[NGX_HTTP_MCP_TASKS_METADATA]);
    }

    if (v->payload[NGX_HTTP_MCP_TASKS_RESPONSES].len) {
        ngx_http_mcp_tasks_out_lit(out, ",\"inputResponses\":");
        ngx_http_mcp_tasks_out_str(out,
                                   &v->payload[NGX_HTTP_MCP_TASKS_RESPONSES]);
    }

    ngx_http_mcp_tasks_out_lit(out, "}");
}


static ngx_int_t
ngx_http_mcp_tasks_worker_heartbeat(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    int64_t                        n;
    ngx_int_t                      rc;
    const char                    *err;
    ngx_http_mcp_tasks_json_t      lease;
    ngx_http_mcp_tasks_holding_t  *h;
    ngx_http_mcp_tasks_member_t    members[] = {
        { ngx_string("leaseMs"), &lease }
    };

    h = ngx_http_mcp_tasks_holding(r, ctx, NGX_HTTP_MCP_TASKS_EV_HEARTBEAT,
                                   members, 1, &rc);
    if (h == NULL) {
        return rc;
    }

    n = 0;
    err = ngx_http_mcp_tasks_worker_ms(&lease, 86400000, &n);

    if (err) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    h->op.event.lease_time = (uint32_t) n;

    return ngx_http_mcp_tasks_run(r, &h->op.op, ngx_http_mcp_tasks_held);
}


static ngx_int_t
ngx_http_mcp_tasks_worker_progress(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_int_t                      rc;
    const char                    *err;
    ngx_http_mcp_tasks_json_t      progress, total, message;
    ngx_http_mcp_tasks_holding_t  *h;
    ngx_http_mcp_tasks_member_t    members[] = {
        { ngx_string("progress"), &progress },
        { ngx_string("total"), &total },
        { ngx_string("message"), &message }
    };

    h = ngx_http_mcp_tasks_holding(r, ctx, NGX_HTTP_MCP_TASKS_EV_PROGRESS,
                                   members, 3, &rc);
    if (h == NULL) {
        return rc;
    }

    err = ngx_http_mcp_tasks_progress_args(&progress, &total, &message,
                                           &h->op);
    if (err) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    return ngx_http_mcp_tasks_run(r, &h->op.op, ngx_http_mcp_tasks_held);
}


static ngx_int_t
ngx_http_mcp_tasks_worker_ask(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_int_t                      rc;
    ngx_http_mcp_tasks_holding_t  *h;
    ngx_http_mcp_tasks_json_t      requests, message;
    ngx_http_mcp_tasks_member_t    members[] = {
        { ngx_string("inputRequests"), &requests },
        { ngx_string("message"), &message }
    };

    h = ngx_http_mcp_tasks_holding(r, ctx, NGX_HTTP_MCP_TASKS_EV_ASK,
                                   members, 2, &rc);
    if (h == NULL) {
        return rc;
    }

    h->requests = requests;

    if (message.type != NGX_HTTP_MCP_TASKS_JSON_NONE) {

        if (message.type != NGX_HTTP_MCP_TASKS_JSON_STRING
            || message.text.len > NGX_HTTP_MCP_TASKS_MAX_MESSAGE)
        {
            return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                             "message is not a string of at most 1024 bytes");
        }

        h->op.change.payload[NGX_HTTP_MCP_TASKS_MESSAGE] = message.text;
    }

    return ngx_http_mcp_tasks_ask_read(r, h);
}


/* the keys of questions must not be those of questions answered before */

static ngx_int_t
ngx_http_mcp_tasks_ask_read(ngx_http_request_t *r,
    ngx_http_mcp_tasks_holding_t *h)
{
    ngx_http_mcp_tasks_asking_t  *a;

    a = ngx_http_mcp_tasks_op(r, NGX_HTTP_MCP_TASKS_OP_GET,
                              sizeof(ngx_http_mcp_tasks_asking_t));
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->holding = h;
    a->op.id = h->op.id;
    a->op.want = NGX_HTTP_MCP_TASKS_WANT(NGX_HTTP_MCP_TASKS_RESPONSES);

    return ngx_http_mcp_tasks_run(r, &a->op.op, ngx_http_mcp_tasks_ask_check);
}


static ngx_int_t
ngx_http_mcp_tasks_ask_check(ngx_http_request_t *r, ngx_http_mcp_tasks_op_t *o)
{
    const char                    *err;
    ngx_http_mcp_tasks_ctx_t      *ctx;
    ngx_http_mcp_tasks_asking_t   *a;
    ngx_http_mcp_tasks_holding_t  *h;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    a = (ngx_http_mcp_tasks_asking_t *) o;
    h = a->holding;

    if (o->reason != NGX_HTTP_MCP_TASKS_OK) {
        return ngx_http_mcp_tasks_worker_refused(r, ctx, o->reason, NULL);
    }

    err = ngx_http_mcp_tasks_input_check(&h->requests,
                         &a->op.view.payload[NGX_HTTP_MCP_TASKS_RESPONSES]);

    if (err) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    h->op.version = a->op.view.task.version;
    h->op.change.payload[NGX_HTTP_MCP_TASKS_REQUESTS] = h->requests.text;

    return ngx_http_mcp_tasks_run(r, &h->op.op, ngx_http_mcp_tasks_ask_done);
}


static ngx_int_t
ngx_http_mcp_tasks_ask_done(ngx_http_request_t *r, ngx_http_mcp_tasks_op_t *o)
{
    ngx_http_mcp_tasks_holding_t  *h;

    h = (ngx_http_mcp_tasks_holding_t *) o;

    if (o->reason == NGX_HTTP_MCP_TASKS_VERSION_CONFLICT
        && ++h->tries < NGX_HTTP_MCP_TASKS_ASK_TRIES)
    {
        return ngx_http_mcp_tasks_ask_read(r, h);
    }

    return ngx_http_mcp_tasks_held(r, o);
}


static ngx_int_t
ngx_http_mcp_tasks_worker_answers(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    int64_t                        n;
    ngx_int_t                      rc;
    const char                    *err;
    ngx_http_mcp_tasks_json_t      wait;
    ngx_http_mcp_tasks_answers_t  *a;
    ngx_http_mcp_tasks_holding_t  *h;
    ngx_http_mcp_tasks_member_t    members[] = {
        { ngx_string("waitMs"), &wait }
    };

    h = ngx_http_mcp_tasks_holding(r, ctx, NGX_HTTP_MCP_TASKS_EV_HEARTBEAT,
                                   members, 1, &rc);
    if (h == NULL) {
        return rc;
    }

    n = 0;
    err = ngx_http_mcp_tasks_worker_ms(&wait, 3600000, &n);

    if (err) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    a = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_tasks_answers_t));
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->lease = h->op.event.lease;
    ngx_http_mcp_tasks_wait_init(&a->wait, r, ctx);
    a->wait.id = h->op.id;
    a->wait.task = 1;
    a->wait.look = ngx_http_mcp_tasks_answers_look;
    a->wait.until = ngx_current_msec
                    + ngx_min(n, NGX_HTTP_MCP_TASKS_WORKER_WAIT);

    return ngx_http_mcp_tasks_wait(&a->wait);
}


static ngx_int_t
ngx_http_mcp_tasks_answers_look(ngx_http_mcp_tasks_wait_t *w)
{
    ngx_http_mcp_tasks_out_t        out;
    ngx_http_mcp_tasks_view_t      *v;
    ngx_http_mcp_tasks_op_get_t     op;
    ngx_http_mcp_tasks_answers_t   *a;

    a = (ngx_http_mcp_tasks_answers_t *) w;

    ngx_memzero(&op, sizeof(ngx_http_mcp_tasks_op_get_t));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_GET;
    op.op.pool = w->r->pool;
    op.id = w->id;
    op.watch = 1;

    /* bytes only when there is something to tell */

    if (ngx_http_mcp_tasks_now(w->zcf, &op.op) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    v = &op.view;

    if (op.op.reason == NGX_HTTP_MCP_TASKS_OK
        && v->task.state == NGX_HTTP_MCP_TASKS_INPUT_REQUIRED
        && v->task.lease == a->lease
        && ngx_current_msec < w->until && !ngx_exiting)
    {
        return NGX_DECLINED;
    }

    if (op.op.reason == NGX_HTTP_MCP_TASKS_OK) {
        op.want = NGX_HTTP_MCP_TASKS_WANT(NGX_HTTP_MCP_TASKS_RESPONSES);

        if (ngx_http_mcp_tasks_now(w->zcf, &op.op) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (op.op.reason == NGX_HTTP_MCP_TASKS_OK
        && (a->lease == 0 || v->task.lease != a->lease))
    {
        op.op.reason = NGX_HTTP_MCP_TASKS_LEASE_LOST;
    }

    if (op.op.reason != NGX_HTTP_MCP_TASKS_OK) {
        return ngx_http_mcp_tasks_worker_refused(w->r, w->ctx, op.op.reason,
                                                 NULL);
    }

    if (ngx_http_mcp_tasks_terminal(v->task.state)) {
        return ngx_http_mcp_tasks_worker_refused(w->r, w->ctx,
                                          NGX_HTTP_MCP_TASKS_TERMINAL, v);
    }

    ngx_http_mcp_tasks_out_answer(&out, w->r, w->ctx,
                        128 + v->payload[NGX_HTTP_MCP_TASKS_RESPONSES].len);
    ngx_http_mcp_tasks_out_lit(&out, "{\"inputResponses\":");

    if (v->payload[NGX_HTTP_MCP_TASKS_RESPONSES].len) {
        ngx_http_mcp_tasks_out_str(&out,
                                   &v->payload[NGX_HTTP_MCP_TASKS_RESPONSES]);

    } else {
        ngx_http_mcp_tasks_out_lit(&out, "{}");
    }

    ngx_http_mcp_tasks_worker_told(&out, v, v->drain);
    ngx_http_mcp_tasks_out_lit(&out, "}");

    return ngx_http_mcp_tasks_out_result(w->r, &out);
}


static ngx_int_t
ngx_http_mcp_tasks_worker_complete(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_int_t                      rc;
    ngx_http_mcp_tasks_json_t      result, is_error;
    ngx_http_mcp_tasks_holding_t  *h;
    ngx_http_mcp_tasks_member_t    members[] = {
        { ngx_string("result"), &result }
    };
    ngx_http_mcp_tasks_member_t    inner[] = {
        { ngx_string("isError"), &is_error }
    };

    h = ngx_http_mcp_tasks_holding(r, ctx, NGX_HTTP_MCP_TASKS_EV_COMPLETE,
                                   members, 1, &rc);
    if (h == NULL) {
        return rc;
    }

    if (result.type != NGX_HTTP_MCP_TASKS_JSON_OBJECT
        || ngx_http_mcp_tasks_json_members(&result, inner, 1) != NGX_OK)
    {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                          "result is not an object");
    }

    if (is_error.type != NGX_HTTP_MCP_TASKS_JSON_NONE
        && is_error.type != NGX_HTTP_MCP_TASKS_JSON_FALSE
        && is_error.type != NGX_HTTP_MCP_TASKS_JSON_TRUE)
    {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                          "isError is not a boolean");
    }

    if (is_error.type == NGX_HTTP_MCP_TASKS_JSON_TRUE) {
        h->op.event.flags = NGX_HTTP_MCP_TASKS_TOOL_ERROR;
    }

    h->op.change.payload[NGX_HTTP_MCP_TASKS_RESULT] = result.text;

    return ngx_http_mcp_tasks_run(r, &h->op.op, ngx_http_mcp_tasks_held);
}


static ngx_int_t
ngx_http_mcp_tasks_worker_fail(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    int64_t                        n;
    ngx_int_t                      rc;
    const char                    *err;
    ngx_http_mcp_tasks_json_t      error, retryable, delay, code, message;
    ngx_http_mcp_tasks_holding_t  *h;
    ngx_http_mcp_tasks_member_t    members[] = {
        { ngx_string("error"), &error },
        { ngx_string("retryable"), &retryable },
        { ngx_string("delayMs"), &delay }
    };
    ngx_http_mcp_tasks_member_t    inner[] = {
        { ngx_string("code"), &code },
        { ngx_string("message"), &message }
    };

    h = ngx_http_mcp_tasks_holding(r, ctx, NGX_HTTP_MCP_TASKS_EV_FAIL,
                                   members, 3, &rc);
    if (h == NULL) {
        return rc;
    }

    if (error.type != NGX_HTTP_MCP_TASKS_JSON_OBJECT
        || ngx_http_mcp_tasks_json_members(&error, inner, 2) != NGX_OK
        || ngx_http_mcp_tasks_json_integer(&code, &n) != NGX_OK
        || message.type != NGX_HTTP_MCP_TASKS_JSON_STRING)
    {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                   "error is not an object with a code and a message");
    }

    n = 0;
    err = ngx_http_mcp_tasks_worker_ms(&delay, 86400000, &n);

    if (err) {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    if (retryable.type != NGX_HTTP_MCP_TASKS_JSON_NONE
        && retryable.type != NGX_HTTP_MCP_TASKS_JSON_FALSE
        && retryable.type != NGX_HTTP_MCP_TASKS_JSON_TRUE)
    {
        return ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                          "retryable is not a boolean");
    }

    if (retryable.type == NGX_HTTP_MCP_TASKS_JSON_TRUE) {
        h->op.event.type = NGX_HTTP_MCP_TASKS_EV_RETRY;
        h->op.event.delay = (uint32_t) n;
    }

    h->op.event.flags = NGX_HTTP_MCP_TASKS_RPC_ERROR;
    h->op.change.payload[NGX_HTTP_MCP_TASKS_RESULT] = error.text;

    return ngx_http_mcp_tasks_run(r, &h->op.op, ngx_http_mcp_tasks_held);
}


static ngx_int_t
ngx_http_mcp_tasks_worker_release(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx)
{
    ngx_int_t                      rc;
    ngx_http_mcp_tasks_holding_t  *h;

    h = ngx_http_mcp_tasks_holding(r, ctx, NGX_HTTP_MCP_TASKS_EV_RELEASE,
                                   NULL, 0, &rc);
    if (h == NULL) {
        return rc;
    }

    return ngx_http_mcp_tasks_run(r, &h->op.op, ngx_http_mcp_tasks_held);
}


/*
 * Which task, by what right, and the members that the method has of its own.
 * NULL: rc is what to finalize with.
 */

static ngx_http_mcp_tasks_holding_t *
ngx_http_mcp_tasks_holding(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_uint_t event,
    ngx_http_mcp_tasks_member_t *members, ngx_uint_t n, ngx_int_t *rc)
{
    ngx_str_t                       text;
    ngx_http_mcp_tasks_json_t       id, lease;
    ngx_http_mcp_tasks_holding_t   *h;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;
    ngx_http_mcp_tasks_member_t     all[2 + NGX_HTTP_MCP_TASKS_HELD_OWN] = {
        { ngx_string("taskId"), &id },
        { ngx_string("lease"), &lease }
    };

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    /* all in one pass: the text may be long */

    if (n) {
        ngx_memcpy(&all[2], members, n * sizeof(ngx_http_mcp_tasks_member_t));
    }

    if (ngx_http_mcp_tasks_members(ctx, all, 2 + n) != NGX_OK) {
        *rc = ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                         "a member stands twice");
        return NULL;
    }

    if (id.type != NGX_HTTP_MCP_TASKS_JSON_STRING
        || lease.type != NGX_HTTP_MCP_TASKS_JSON_STRING)
    {
        *rc = ngx_http_mcp_tasks_invalid(r, ctx, NGX_HTTP_OK,
                                         "taskId and lease must be strings");
        return NULL;
    }

    h = ngx_http_mcp_tasks_op(r, NGX_HTTP_MCP_TASKS_OP_UPDATE,
                              sizeof(ngx_http_mcp_tasks_holding_t));

    if (h == NULL
        || ngx_http_mcp_tasks_json_string(r->pool, &id, &text) == NGX_ERROR)
    {
        *rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
        return NULL;
    }

    if (ngx_http_mcp_tasks_id_parse(&h->op.id, &text) != NGX_OK) {
        *rc = ngx_http_mcp_tasks_worker_refused(r, ctx,
                                          NGX_HTTP_MCP_TASKS_NOT_FOUND, NULL);
        return NULL;
    }

    ctx->task_id = text;

    h->op.event.type = event;
    h->op.event.lease = ngx_http_mcp_tasks_lease(&lease);
    h->op.event.progress = -1;
    h->op.change.max_payload = lcf->max_payload;

    return h;
}


/* 0, which no task has, if it is no token at all */

uint64_t
ngx_http_mcp_tasks_lease(ngx_http_mcp_tasks_json_t *value)
{
    u_char     *p;
    uint64_t    lease;
    ngx_int_t   n;
    ngx_uint_t  i;

    if (value->type != NGX_HTTP_MCP_TASKS_JSON_STRING
        || value->text.len != 18)
    {
        return 0;
    }

    p = value->text.data + 1;

    for (lease = 0, i = 0; i < 16; i += 4) {
        n = ngx_hextoi(p + i, 4);

        if (n == NGX_ERROR) {
            return 0;
        }

        lease = lease << 16 | n;
    }

    return lease;
}


static ngx_int_t
ngx_http_mcp_tasks_held(ngx_http_request_t *r, ngx_http_mcp_tasks_op_t *o)
{
    ngx_http_mcp_tasks_ctx_t        *ctx;
    ngx_http_mcp_tasks_out_t         out;
    ngx_http_mcp_tasks_op_update_t  *op;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);
    op = (ngx_http_mcp_tasks_op_update_t *) o;

    if (o->reason != NGX_HTTP_MCP_TASKS_OK) {
        return ngx_http_mcp_tasks_worker_refused(r, ctx, o->reason, &op->view);
    }

    ngx_http_mcp_tasks_known(r, ctx, &op->view);

    ngx_http_mcp_tasks_out_answer(&out, r, ctx, 128);
    ngx_http_mcp_tasks_out_lit(&out, "{\"phase\":\"");
    ngx_http_mcp_tasks_out_str(&out,
                       ngx_http_mcp_tasks_state_name(op->view.task.state));
    ngx_http_mcp_tasks_out_lit(&out, "\"");
    ngx_http_mcp_tasks_worker_told(&out, &op->view, op->view.drain);
    ngx_http_mcp_tasks_out_lit(&out, "}");

    return ngx_http_mcp_tasks_out_result(r, &out);
}


/* told in every answer: whether to stop this, and whether to stop at all */

static void
ngx_http_mcp_tasks_worker_told(ngx_http_mcp_tasks_out_t *out,
    ngx_http_mcp_tasks_view_t *v, ngx_uint_t drain)
{
    if (v && v->task.state == NGX_HTTP_MCP_TASKS_CANCELLED) {
        ngx_http_mcp_tasks_out_lit(out, ",\"cancelled\":true");

    } else {
        ngx_http_mcp_tasks_out_lit(out, ",\"cancelled\":false");
    }

    if (drain || ngx_exiting) {
        ngx_http_mcp_tasks_out_lit(out, ",\"drain\":true");

    } else {
        ngx_http_mcp_tasks_out_lit(out, ",\"drain\":false");
    }
}


static ngx_int_t
ngx_http_mcp_tasks_worker_refused(ngx_http_request_t *r,
    ngx_http_mcp_tasks_ctx_t *ctx, ngx_uint_t reason,
    ngx_http_mcp_tasks_view_t *v)
{
    ngx_str_t                 data;
    ngx_http_mcp_tasks_out_t  out;

    switch (reason) {

    case NGX_HTTP_MCP_TASKS_NOT_FOUND:
    case NGX_HTTP_MCP_TASKS_LEASE_LOST:
    case NGX_HTTP_MCP_TASKS_TERMINAL:
        break;

    default:
        return ngx_http_mcp_tasks_refused(r, ctx, reason);
    }

    /* whatever the reason: this worker has nothing to do with it any more */

    ngx_http_mcp_tasks_out_init(&out, r->pool, 128);
    ngx_http_mcp_tasks_out_lit(&out, "{\"reason\":\"");
    ngx_http_mcp_tasks_out_str(&out, ngx_http_mcp_tasks_reason_name(reason));
    ngx_http_mcp_tasks_out_lit(&out, "\"");

    if (reason != NGX_HTTP_MCP_TASKS_TERMINAL) {
        v = NULL;
    }

    if (v) {
        ngx_http_mcp_tasks_out_lit(&out, ",\"phase\":\"");
        ngx_http_mcp_tasks_out_str(&out,
                               ngx_http_mcp_tasks_state_name(v->task.state));
        ngx_http_mcp_tasks_out_lit(&out, "\"");
    }

    ngx_http_mcp_tasks_worker_told(&out, v, v && v->drain);
    ngx_http_mcp_tasks_out_lit(&out, "}");

    if (ngx_http_mcp_tasks_out_end(&out, &data) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_tasks_error(r, ctx, NGX_HTTP_OK,
                                    NGX_HTTP_MCP_TASKS_RPC_LEASE,
                                    "The task is not yours any more", &data);
}


static const char *
ngx_http_mcp_tasks_worker_ms(ngx_http_mcp_tasks_json_t *value, int64_t max,
    int64_t *ms)
{
    if (value->type == NGX_HTTP_MCP_TASKS_JSON_NONE) {
        return NULL;
    }

    if (ngx_http_mcp_tasks_json_integer(value, ms) != NGX_OK
        || *ms < 0 || *ms > max)
    {
        return "a time is not an integer of milliseconds, or too long";
    }

    return NULL;
}
