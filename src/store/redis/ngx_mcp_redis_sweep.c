
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Deadlines: TTLs, leases and timeouts.  One machine at a time sweeps a
 * partition, which spares work; if two do, the second finds the task changed.
 */


#include "ngx_mcp_redis.h"


#if (NGX_MCP_REDIS)


/* interval of sweeps, ms */
#define NGX_MCP_REDIS_SWEEP  100

/* tasks that are handled at a time */
#define NGX_MCP_REDIS_BATCH  64

/* the sweeper of a partition is replaced after so many ms */
#define NGX_MCP_REDIS_LEASE  "5000"


typedef struct {
    ngx_mcp_op_t           op;
    ngx_mcp_redis_call_t   call;
} ngx_mcp_redis_swept_t;


static ngx_mcp_redis_call_t *ngx_mcp_redis_sweep_call(
    ngx_mcp_redis_store_t *st, ngx_mcp_redis_start_pt start,
    ngx_uint_t partition);
static void ngx_mcp_redis_sweep_begin(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_sweep_end(ngx_mcp_op_t *op);
static ngx_int_t ngx_mcp_redis_sweep_lease(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_sweep_set(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_sweep_owner(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_sweep_ids(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);


/* called by the listener's timer */

void
ngx_mcp_redis_sweep(ngx_mcp_redis_store_t *st)
{
    ngx_uint_t             i;
    ngx_mcp_redis_call_t  *call;

    if (!st->zone->ready || st->sweeping
        || ngx_current_msec - st->swept < NGX_MCP_REDIS_SWEEP)
    {
        return;
    }

    st->swept = ngx_current_msec;

    for (i = 0; i < st->conf->partitions; i++) {
        call = ngx_mcp_redis_sweep_call(st, ngx_mcp_redis_sweep_lease, i);

        if (call) {
            ngx_mcp_redis_sweep_begin(call);
        }
    }
}


static ngx_mcp_redis_call_t *
ngx_mcp_redis_sweep_call(ngx_mcp_redis_store_t *st,
    ngx_mcp_redis_start_pt start, ngx_uint_t partition)
{
    ngx_pool_t             *pool;
    ngx_mcp_redis_call_t   *call;
    ngx_mcp_redis_swept_t  *swept;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    swept = ngx_pcalloc(pool, sizeof(ngx_mcp_redis_swept_t));
    if (swept == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    swept->op.type = NGX_MCP_OP_SWEEP;
    swept->op.pool = pool;
    swept->op.handler = ngx_mcp_redis_sweep_end;
    swept->op.data = st;

    call = &swept->call;
    call->st = st;
    call->op = &swept->op;
    call->pool = pool;
    call->start = start;
    call->partition = partition;
    call->until = ngx_current_msec + st->conf->timeout;

    (void) ngx_mcp_random(call->token, sizeof(call->token));

    return call;
}


static void
ngx_mcp_redis_sweep_begin(ngx_mcp_redis_call_t *call)
{
    call->st->sweeping++;

    if (ngx_mcp_redis_start(call) != NGX_AGAIN) {
        ngx_mcp_redis_sweep_end(call->op);
    }
}


static void
ngx_mcp_redis_sweep_end(ngx_mcp_op_t *op)
{
    ngx_mcp_redis_store_t  *st;

    st = op->data;
    st->sweeping--;

    ngx_destroy_pool(op->pool);
}


static ngx_int_t
ngx_mcp_redis_sweep_lease(ngx_mcp_redis_call_t *call)
{
    ngx_int_t               rc;
    ngx_str_t               argv[6];
    ngx_mcp_redis_store_t  *st;

    st = call->st;

    ngx_str_set(&argv[0], "SET");
    argv[1] = ngx_mcp_redis_key(st, call->pool, call->partition, "L", NULL, 0);
    argv[2] = ngx_mcp_redis_number(call->pool,
                                   ngx_mcp_redis_shared(st->zone)->seat);
    ngx_str_set(&argv[3], "NX");
    ngx_str_set(&argv[4], "PX");
    ngx_str_set(&argv[5], NGX_MCP_REDIS_LEASE);

    rc = ngx_mcp_redis_call(call, 0, NGX_MCP_REDIS_CHANGES,
                            ngx_mcp_redis_sweep_set, argv, 6);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    ngx_str_set(&argv[0], "GET");

    rc = ngx_mcp_redis_call(call, 1, NGX_MCP_REDIS_CHANGES,
                            ngx_mcp_redis_sweep_owner, argv, 2);

    /* the first reply must not come to a call that is freed */

    if (rc != NGX_AGAIN) {
        call->unsure = 1;
    }

    return NGX_AGAIN;
}


static void
ngx_mcp_redis_sweep_set(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;

    if (call->unsure) {
        ngx_mcp_redis_finish(call, NGX_OK);
    }
}


static void
ngx_mcp_redis_sweep_owner(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    uint64_t                seat;
    ngx_str_t               argv[7];
    ngx_mcp_redis_call_t   *call;
    ngx_mcp_redis_store_t  *st;

    call = cmd->data;
    st = call->st;
    seat = ngx_mcp_redis_shared(st->zone)->seat;

    if (reply == NULL || reply->type != REDIS_REPLY_STRING
        || strtoull(reply->str, NULL, 10) != seat)
    {
        ngx_mcp_redis_finish(call, NGX_OK);
        return;
    }

    ngx_str_set(&argv[0], "ZRANGEBYSCORE");
    argv[1] = ngx_mcp_redis_key(st, call->pool, call->partition, "d", NULL, 0);
    ngx_str_set(&argv[2], "-inf");
    argv[3] = ngx_mcp_redis_number(call->pool, ngx_mcp_redis_now(st->zone));
    ngx_str_set(&argv[4], "LIMIT");
    ngx_str_set(&argv[5], "0");
    argv[6] = ngx_mcp_redis_number(call->pool, NGX_MCP_REDIS_BATCH);

    ngx_mcp_redis_finish(call,
                         ngx_mcp_redis_call(call, 0, NGX_MCP_REDIS_CHANGES,
                                            ngx_mcp_redis_sweep_ids, argv,
                                            7));
}


static void
ngx_mcp_redis_sweep_ids(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    size_t                  i;
    ngx_mcp_redis_call_t   *call, *due;

    call = cmd->data;

    for (i = 0;
         reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
         i++)
    {
        if (reply->element[i]->type != REDIS_REPLY_STRING
            || reply->element[i]->len != sizeof(ngx_mcp_id_t))
        {
            continue;
        }

        due = ngx_mcp_redis_sweep_call(call->st, ngx_mcp_redis_due,
                                       call->partition);
        if (due == NULL) {
            break;
        }

        ngx_memcpy(&due->id, reply->element[i]->str, sizeof(ngx_mcp_id_t));
        due->key = ngx_mcp_signal_id(&due->id);
        due->change = 1;

        ngx_mcp_redis_sweep_begin(due);
    }

    ngx_mcp_redis_finish(call, NGX_OK);
}


#endif /* NGX_MCP_REDIS */
