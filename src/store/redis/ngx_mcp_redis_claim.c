
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Claims.  A script finds the next task of a partition and changes it; if
 * there is none, it notes that this machine waits.  A claim that is sent again
 * receives the task that it got before.
 */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_shm.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"


#if (NGX_MCP_REDIS)


/* keys and arguments of the script, without those of the tools */
#define NGX_MCP_REDIS_ARGS  15


typedef struct {
    ngx_mcp_redis_call_t   task;         /* reads the claimed task */
    ngx_uint_t             tried;        /* partitions without a task */
    ngx_uint_t             waits;        /* registers, if there is none */
    uint64_t               lease_token;
    uint64_t               ring;
    ngx_str_t             *tools;        /* those that are not paused */
    ngx_uint_t             ntools;
} ngx_mcp_redis_claiming_t;


static ngx_int_t ngx_mcp_redis_claim_next(ngx_mcp_redis_call_t *call);
static ngx_uint_t ngx_mcp_redis_drains(ngx_mcp_redis_call_t *call,
    ngx_mcp_redis_claiming_t *c);
static ngx_int_t ngx_mcp_redis_claim_send(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_claimed(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_claimed_task(ngx_mcp_redis_call_t *call,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_claim_none(ngx_mcp_redis_call_t *call);


ngx_int_t
ngx_mcp_redis_claim(ngx_mcp_redis_call_t *call)
{
    ngx_mcp_op_claim_t        *op;
    ngx_mcp_redis_claiming_t  *c;

    op = (ngx_mcp_op_claim_t *) call->op;

    if (call->data) {
        /* again, for the same task */
        return ngx_mcp_redis_claim_send(call);
    }

    op->n = 0;
    op->more = 0;
    op->drain = 0;
    op->max = ngx_max(op->max, 1);
    op->ntools = ngx_min(op->ntools, NGX_MCP_CLAIM_TOOLS);

    c = ngx_pcalloc(call->pool, sizeof(ngx_mcp_redis_claiming_t));
    if (c == NULL) {
        return NGX_ERROR;
    }

    op->views = ngx_palloc(call->pool, op->max * sizeof(ngx_mcp_view_t));
    c->tools = ngx_palloc(call->pool, (op->ntools + 1) * sizeof(ngx_str_t));

    if (op->views == NULL || c->tools == NULL) {
        return NGX_ERROR;
    }

    call->data = c;
    call->partition = call->st->partition;

    return ngx_mcp_redis_claim_next(call);
}


static ngx_int_t
ngx_mcp_redis_claim_next(ngx_mcp_redis_call_t *call)
{
    ngx_mcp_op_claim_t        *op;
    ngx_mcp_redis_shared_t    *sh;
    ngx_mcp_redis_claiming_t  *c;

    op = (ngx_mcp_op_claim_t *) call->op;
    sh = ngx_mcp_redis_shared(call->st->zone);
    c = call->data;

    if (ngx_mcp_redis_drains(call, c)) {
        op->drain = 1;
        return ngx_mcp_redis_over(call, NGX_MCP_OK);
    }

    if (c->ntools == 0) {
        return ngx_mcp_redis_over(call, NGX_MCP_OK);
    }

    if (ngx_mcp_random_token(&c->lease_token) != NGX_OK) {
        return NGX_ERROR;
    }

    c->ring = ngx_atomic_fetch_add((ngx_atomic_t *) &sh->claims, 1)
              % NGX_MCP_REDIS_RING;
    c->tried = 0;

    /* with one partition, looking and registering is one step */

    c->waits = (op->watch && op->n == 0 && call->st->conf->partitions == 1);

    return ngx_mcp_redis_claim_send(call);
}


/*
 * Counts the worker, and finds out whether it is draining and which tools are
 * not paused.  The process is registered for wake-ups before the script is
 * sent: the message about a new task may come before the script's reply.
 */

static ngx_uint_t
ngx_mcp_redis_drains(ngx_mcp_redis_call_t *call, ngx_mcp_redis_claiming_t *c)
{
    uint32_t                hash, hashes[NGX_MCP_CLAIM_TOOLS];
    ngx_uint_t              i, entry, drains;
    ngx_mcp_event_t         ev;
    ngx_mcp_table_t        *t;
    ngx_mcp_op_claim_t     *op;
    ngx_mcp_worker_stat_t  *stat;

    op = (ngx_mcp_op_claim_t *) call->op;
    t = call->st->zone->table;

    ngx_memzero(&ev, sizeof(ngx_mcp_event_t));
    ngx_mcp_event_time(&ev);
    hash = ngx_mcp_name_hash(t, NGX_MCP_NAMES, &op->worker);

    for (i = 0; i < op->ntools; i++) {
        hashes[i] = ngx_mcp_name_hash(t, NGX_MCP_TOOL, &op->tools[i]);
    }

    ngx_mcp_lock(t);

    stat = ngx_mcp_stats_worker_of_locked(t,
               ngx_mcp_stats_worker_locked(t, &op->worker, hash, &ev));
    drains = (stat && stat->draining);

    for (c->ntools = 0, i = 0; i < op->ntools; i++) {
        entry = ngx_mcp_stats_find_tool_locked(t, &op->tools[i], hashes[i]);

        if (entry >= t->sh->tool_stats || !t->tool_stats[entry].paused) {
            c->tools[c->ntools++] = op->tools[i];
        }

        if (op->watch && op->n == 0) {
            ngx_mcp_await_name_locked(t, hashes[i]);
        }
    }

    if (op->watch && op->n == 0) {
        ngx_mcp_await_name_locked(t, hash);
    }

    ngx_mcp_unlock(t);

    return drains;
}


static ngx_int_t
ngx_mcp_redis_claim_send(ngx_mcp_redis_call_t *call)
{
    u_char                    *token;
    ngx_str_t                  argv[NGX_MCP_REDIS_ARGS
                                    + 2 * NGX_MCP_CLAIM_TOOLS];
    ngx_uint_t                 i, n, p;
    ngx_pool_t                *pool;
    ngx_mcp_op_claim_t        *op;
    ngx_mcp_redis_store_t     *st;
    ngx_mcp_redis_shared_t    *sh;
    ngx_mcp_redis_claiming_t  *c;

    op = (ngx_mcp_op_claim_t *) call->op;
    st = call->st;
    sh = ngx_mcp_redis_shared(st->zone);
    pool = call->pool;
    p = call->partition;
    c = call->data;

    token = ngx_pnalloc(pool, sizeof(uint64_t));
    if (token == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < sizeof(uint64_t); i++) {
        token[i] = (u_char) (c->lease_token >> (56 - 8 * i));
    }

    argv[0] = ngx_mcp_redis_number(pool, 5 + c->ntools);
    argv[1] = ngx_mcp_redis_key(st, pool, p, "d", NULL, 0);
    argv[2] = ngx_mcp_redis_key(st, pool, p, "c", NULL, 0);
    argv[3] = ngx_mcp_redis_key(st, pool, p, "m", NULL, 0);
    argv[4] = ngx_mcp_redis_key(st, pool, p, "w", NULL, 0);
    argv[6] = ngx_mcp_redis_number(pool, sh->seat);
    argv[5] = ngx_mcp_redis_key(st, pool, p, "s", argv[6].data, argv[6].len);
    n = 6;

    for (i = 0; i < c->ntools; i++) {
        argv[n++] = ngx_mcp_redis_key(st, pool, p, "q", c->tools[i].data,
                                      c->tools[i].len);
    }

    argv[n++] = ngx_mcp_redis_run(st);
    argv[n].data = token;
    argv[n++].len = sizeof(uint64_t);
    argv[n++] = ngx_mcp_redis_number(pool, c->ring);
    argv[n++] = ngx_mcp_redis_number(pool, ngx_mcp_redis_now(st->zone));
    argv[n++] = ngx_mcp_redis_number(pool, ngx_mcp_wall());
    argv[n++] = ngx_mcp_redis_number(pool, op->lease_time);
    argv[n++] = op->worker;

    if (c->waits) {
        argv[n++] = ngx_mcp_redis_number(pool, sh->seat);

    } else {
        ngx_str_set(&argv[n], "");
        n++;
    }

    argv[n++] = ngx_mcp_redis_number(pool, st->recent ? 1 : 0);

    for (i = 0; i < c->ntools; i++) {
        argv[n++] = c->tools[i];
    }

    return ngx_mcp_redis_eval(call, NGX_MCP_REDIS_CHANGES,
                              NGX_MCP_REDIS_CLAIM, ngx_mcp_redis_claimed,
                              argv, n);
}


static void
ngx_mcp_redis_claimed(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    int64_t                code;
    ngx_mcp_op_claim_t    *op;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;
    op = (ngx_mcp_op_claim_t *) call->op;

    if (op->n && (reply == NULL || reply->type == REDIS_REPLY_ERROR)) {

        /* what is claimed is claimed; the last one may come back by itself */

        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call, NGX_MCP_OK));
        return;
    }

    if (ngx_mcp_redis_code(call, reply, &code) != NGX_OK) {
        return;
    }

    ngx_mcp_redis_finish(call, (code > 0 && reply->elements == 4)
                               ? ngx_mcp_redis_claimed_task(call, reply)
                               : ngx_mcp_redis_claim_none(call));
}


static ngx_int_t
ngx_mcp_redis_claimed_task(ngx_mcp_redis_call_t *call, redisReply *reply)
{
    ngx_int_t                  rc;
    redisReply                *id;
    ngx_mcp_op_claim_t        *op;
    ngx_mcp_redis_call_t      *task;
    ngx_mcp_redis_claiming_t  *c;

    op = (ngx_mcp_op_claim_t *) call->op;
    c = call->data;
    task = &c->task;
    id = reply->element[1];

    ngx_memzero(task, sizeof(ngx_mcp_redis_call_t));
    task->st = call->st;
    task->op = call->op;
    task->pool = call->pool;
    task->partition = call->partition;

    if (id->type != REDIS_REPLY_STRING || id->len != sizeof(ngx_mcp_id_t)) {
        return ngx_mcp_redis_over(call, NGX_MCP_STORE_FAILED);
    }

    ngx_memcpy(&task->id, id->str, sizeof(ngx_mcp_id_t));

    rc = ngx_mcp_redis_load(task, reply->element[2], NULL, reply->element[3]);

    if (rc == NGX_ABORT) {
        return op->n ? ngx_mcp_redis_over(call, NGX_MCP_OK)
                     : ngx_mcp_redis_over(call, NGX_MCP_STORE_FAILED);
    }

    if (rc != NGX_OK
        || ngx_mcp_redis_view(task, op->want, &op->views[op->n]) != NGX_OK)
    {
        return NGX_ERROR;
    }

    op->n++;
    call->st->partition = call->partition;
    ngx_mcp_redis_remember(task);

    return (op->n < op->max) ? ngx_mcp_redis_claim_next(call)
                             : ngx_mcp_redis_over(call, NGX_MCP_OK);
}


/*
 * Tries the other partitions.  If none has a task, the machine is registered
 * in all of them, which looks for a task again in the same step.
 */

static ngx_int_t
ngx_mcp_redis_claim_none(ngx_mcp_redis_call_t *call)
{
    ngx_uint_t                 n;
    ngx_mcp_op_claim_t        *op;
    ngx_mcp_redis_claiming_t  *c;

    op = (ngx_mcp_op_claim_t *) call->op;
    c = call->data;
    n = call->st->conf->partitions;

    if (++c->tried < n) {
        call->partition = (call->partition + 1) % n;
        return ngx_mcp_redis_claim_send(call);
    }

    if (op->watch && op->n == 0 && !c->waits) {
        c->waits = 1;
        c->tried = 0;
        return ngx_mcp_redis_claim_send(call);
    }

    return ngx_mcp_redis_over(call, NGX_MCP_OK);
}


#endif /* NGX_MCP_REDIS */
