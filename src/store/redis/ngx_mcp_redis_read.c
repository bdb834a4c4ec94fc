
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Reading a task. */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_REDIS)


static ngx_uint_t ngx_mcp_redis_ended(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
static void ngx_mcp_redis_got(ngx_mcp_redis_cmd_t *cmd, redisReply *reply);
static void ngx_mcp_redis_got_result(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_got_all(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_got_task(ngx_mcp_redis_call_t *call,
    ngx_int_t rc);


ngx_int_t
ngx_mcp_redis_get(ngx_mcp_redis_call_t *call)
{
    ngx_int_t          rc;
    ngx_str_t          argv[2];
    ngx_mcp_op_get_t  *op;

    op = (ngx_mcp_op_get_t *) call->op;

    /* tasks that have ended never change */

    if (ngx_mcp_redis_ended(call->st->zone, call->op)) {
        rc = ngx_mcp_shm_submit(call->st->zone, call->op);

        if (rc != NGX_OK || op->op.reason == NGX_MCP_OK) {
            ngx_mcp_redis_shared(call->st->zone)->hits++;
            return rc;
        }
    }

    ngx_str_set(&argv[0], "GET");
    argv[1] = ngx_mcp_redis_key(call->st, call->pool, call->partition, "t",
                                &call->id, sizeof(ngx_mcp_id_t));

    return ngx_mcp_redis_call(call, 0, NGX_MCP_REDIS_READS, ngx_mcp_redis_got,
                              argv, 2);
}


/* whether the mirror has the task, and it has ended */

static ngx_uint_t
ngx_mcp_redis_ended(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    ngx_uint_t        ended;
    ngx_mcp_slot_t   *s;
    ngx_mcp_table_t  *t;

    t = zone->table;

    if (t->sh->slot.used == 0) {
        return 0;
    }

    ngx_mcp_lock_read(t);

    s = ngx_mcp_find_locked(t, &((ngx_mcp_op_get_t *) op)->id, NULL,
                            ngx_current_msec);
    ended = (s && ngx_mcp_terminal(s->body.task.state));

    ngx_mcp_unlock(t);

    return ended;
}


static void
ngx_mcp_redis_got(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_int_t              rc;
    ngx_str_t              argv[2];
    ngx_mcp_redis_call_t  *call;
    ngx_mcp_op_get_t      *op;

    call = cmd->data;
    op = (ngx_mcp_op_get_t *) call->op;

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                               NGX_MCP_STORE_UNAVAILABLE));
        return;
    }

    rc = ngx_mcp_redis_load(call, reply, NULL, NULL);

    if (rc != NGX_OK || !ngx_mcp_redis_visible(call, op->owner)) {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_got_task(call, rc));
        return;
    }

    /* several keys have to be read in one step, if they can change */

    if (ngx_mcp_redis_needs_others(&call->rr, op->want)) {
        ngx_mcp_redis_finish(call,
                             ngx_mcp_redis_watch_read(call, NULL, 0,
                                                     ngx_mcp_redis_got_all));
        return;
    }

    if (op->want & NGX_MCP_WANT(NGX_MCP_RESULT)
        && call->rr.lengths[NGX_MCP_RESULT])
    {
        ngx_str_set(&argv[0], "GET");
        argv[1] = ngx_mcp_redis_key(call->st, call->pool, call->partition,
                                    "r", &call->id, sizeof(ngx_mcp_id_t));

        ngx_mcp_redis_finish(call,
                             ngx_mcp_redis_call(call, 0, NGX_MCP_REDIS_READS,
                                                ngx_mcp_redis_got_result,
                                                argv, 2));
        return;
    }

    ngx_mcp_redis_finish(call, ngx_mcp_redis_got_task(call, NGX_OK));
}


static void
ngx_mcp_redis_got_result(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_uint_t             i;
    ngx_mcp_record_t      *rec;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;
    rec = &call->rr.rec;

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                               NGX_MCP_STORE_UNAVAILABLE));
        return;
    }

    /* a task may be removed between the two reads */

    if (reply->type != REDIS_REPLY_STRING
        || reply->len != call->rr.lengths[NGX_MCP_RESULT])
    {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_got_task(call,
                                                          NGX_DECLINED));
        return;
    }

    rec->payload[NGX_MCP_RESULT].len = reply->len;
    rec->payload[NGX_MCP_RESULT].data = ngx_pnalloc(call->pool, reply->len);

    if (rec->payload[NGX_MCP_RESULT].data == NULL) {
        ngx_mcp_redis_finish(call, NGX_ERROR);
        return;
    }

    ngx_memcpy(rec->payload[NGX_MCP_RESULT].data, reply->str, reply->len);

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (rec->payload[i].len != call->rr.lengths[i]) {
            break;
        }
    }

    call->whole = (i == NGX_MCP_PAYLOADS);

    ngx_mcp_redis_finish(call, ngx_mcp_redis_got_task(call, NGX_OK));
}


static void
ngx_mcp_redis_got_all(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    int64_t                code;
    ngx_int_t              rc;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;

    if (ngx_mcp_redis_code(call, reply, &code) != NGX_OK) {
        return;
    }

    rc = (code == 1 && reply->elements == 4)
         ? ngx_mcp_redis_load(call, reply->element[1], reply->element[2],
                              reply->element[3])
         : NGX_DECLINED;

    ngx_mcp_redis_finish(call, ngx_mcp_redis_got_task(call, rc));
}


static ngx_int_t
ngx_mcp_redis_got_task(ngx_mcp_redis_call_t *call, ngx_int_t rc)
{
    ngx_mcp_op_get_t  *op;

    op = (ngx_mcp_op_get_t *) call->op;

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_ABORT) {
        return ngx_mcp_redis_over(call, NGX_MCP_STORE_FAILED);
    }

    if (rc == NGX_DECLINED || !ngx_mcp_redis_visible(call, op->owner)) {
        return ngx_mcp_redis_over(call, NGX_MCP_NOT_FOUND);
    }

    if (call->whole && ngx_mcp_terminal(call->rr.rec.task.state)) {
        call->rr.rec.mask = NGX_MCP_RECORD_ALL;
        ngx_mcp_redis_mirror(call);
    }

    if (ngx_mcp_redis_view(call, op->want, &op->view) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_redis_over(call, NGX_MCP_OK);
}


/*
 * Reads all parts of a task in one step, and registers this machine under the
 * fields, which are keys of what it waits for.
 */

ngx_int_t
ngx_mcp_redis_watch_read(ngx_mcp_redis_call_t *call, ngx_str_t *fields,
    ngx_uint_t n, ngx_mcp_redis_reply_pt handler)
{
    ngx_str_t               argv[16];
    ngx_uint_t              i, p;
    ngx_pool_t             *pool;
    ngx_mcp_redis_store_t  *st;

    st = call->st;
    pool = call->pool;
    p = call->partition;

    ngx_str_set(&argv[0], "5");
    argv[1] = ngx_mcp_redis_key(st, pool, p, "t", &call->id, 16);
    argv[2] = ngx_mcp_redis_key(st, pool, p, "r", &call->id, 16);
    argv[3] = ngx_mcp_redis_key(st, pool, p, "x", &call->id, 16);
    argv[4] = ngx_mcp_redis_key(st, pool, p, "w", NULL, 0);
    argv[5] = ngx_mcp_redis_key(st, pool, p, "m", NULL, 0);
    argv[6] = ngx_mcp_redis_run(st);

    if (n) {
        argv[7] = ngx_mcp_redis_number(pool,
                                       ngx_mcp_redis_shared(st->zone)->seat);
    } else {
        ngx_str_set(&argv[7], "");
    }

    for (i = 0; i < n; i++) {
        argv[8 + i] = fields[i];
    }

    return ngx_mcp_redis_eval(call, NGX_MCP_REDIS_READS, NGX_MCP_REDIS_WATCH,
                              handler, argv, 8 + n);
}


#endif /* NGX_MCP_REDIS */
