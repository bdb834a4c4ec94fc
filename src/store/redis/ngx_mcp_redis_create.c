
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* New tasks. */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_REDIS)


/* keys and arguments of the script, without the payloads */
#define NGX_MCP_REDIS_ARGS  24


static ngx_int_t ngx_mcp_redis_new_id(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_new(ngx_mcp_redis_call_t *call);
static ngx_int_t ngx_mcp_redis_send_new(ngx_mcp_redis_call_t *call,
    ngx_str_t *text);
static ngx_uint_t ngx_mcp_redis_new_others(ngx_mcp_new_t *nt,
    ngx_str_t *argv);
static void ngx_mcp_redis_created(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);


ngx_int_t
ngx_mcp_redis_create(ngx_mcp_redis_call_t *call)
{
    size_t                size;
    ngx_str_t             text;
    ngx_mcp_new_t        *nt;
    ngx_mcp_op_create_t  *op;

    op = (ngx_mcp_op_create_t *) call->op;
    nt = &op->task;

    if (nt->owner.len > NGX_MCP_MAX_NAME
        || nt->tool.len > NGX_MCP_MAX_NAME
        || nt->tool.len == 0
        || nt->token.len > NGX_MCP_MAX_TOKEN
        || nt->session.len > NGX_MCP_NAME_INLINE
        || nt->method.len > NGX_MCP_MAX_METHOD)
    {
        return ngx_mcp_redis_over(call, NGX_MCP_INVALID_NAME);
    }

    if (nt->max_payload
        && (nt->params.len > nt->max_payload
            || nt->metadata.len > nt->max_payload
            || nt->message.len > nt->max_payload
            || nt->responses.len > nt->max_payload))
    {
        return ngx_mcp_redis_over(call, NGX_MCP_PAYLOAD_TOO_LARGE);
    }

    /* sent again: with the id of before, so that it is done once */

    if (call->data == NULL && ngx_mcp_redis_new_id(call) != NGX_OK) {
        return NGX_ERROR;
    }

    call->data = op;
    ngx_mcp_redis_new(call);

    size = ngx_mcp_redis_rest_size(&call->rr);

    text.len = NGX_MCP_REDIS_HEAD + size;
    text.data = ngx_pnalloc(call->pool, text.len);

    if (text.data == NULL) {
        return NGX_ERROR;
    }

    return ngx_mcp_redis_send_new(call, &text);
}


/*
 * The partition is a part of the id.  An id that the caller has chosen is kept,
 * unless a task has it.
 */

static ngx_int_t
ngx_mcp_redis_new_id(ngx_mcp_redis_call_t *call)
{
    ngx_mcp_new_t          *nt;
    ngx_mcp_op_create_t    *op;
    ngx_mcp_redis_store_t  *st;

    op = (ngx_mcp_op_create_t *) call->op;
    nt = &op->task;
    st = call->st;

    if (op->id && call->tries == 0) {
        call->id = *op->id;
        call->partition = ngx_mcp_redis_partition_of(st, &call->id);

    } else {

        if (ngx_mcp_id_new(&call->id) != NGX_OK) {
            return NGX_ERROR;
        }

        call->partition = ngx_mcp_redis_home(st, &nt->owner, &nt->session);

        if (st->conf->partitions > 1) {
            ngx_mcp_redis_place(&call->id, st->zone->secret,
                                st->conf->partitions, call->partition);
        }
    }

    nt->id = call->id;

    return NGX_OK;
}


static void
ngx_mcp_redis_new(ngx_mcp_redis_call_t *call)
{
    ngx_mcp_new_t           *nt;
    ngx_mcp_record_t        *rec;
    ngx_mcp_redis_record_t  *rr;

    nt = &((ngx_mcp_op_create_t *) call->op)->task;
    rr = &call->rr;
    rec = &rr->rec;

    nt->now = ngx_current_msec;
    nt->wall = ngx_mcp_wall();

    ngx_memzero(rr, sizeof(ngx_mcp_redis_record_t));

    rec->id = call->id;
    rec->revision = 1;
    rec->peak = -1;
    rec->owner = nt->owner;
    rec->tool = nt->tool;
    rec->token = nt->token;
    rec->session = nt->session;
    rec->method = nt->method;
    rec->payload[NGX_MCP_PARAMS] = nt->params;
    rec->payload[NGX_MCP_METADATA] = nt->metadata;
    rec->payload[NGX_MCP_MESSAGE] = nt->message;
    rec->payload[NGX_MCP_RESPONSES] = nt->responses;
    rec->history.data = rr->history;
    rec->history.len = sizeof(rr->history);

    ngx_mcp_task_init(&rec->task, &nt->policy, nt->ttl, nt->now, nt->wall);
    rec->task.holder = nt->holder;

    if (nt->session.len == 0) {
        /* there is no session to announce it to */
        rec->task.flags = NGX_MCP_ANNOUNCED;
    }

    rr->lengths[NGX_MCP_PARAMS] = (uint32_t) nt->params.len;
    rr->lengths[NGX_MCP_METADATA] = (uint32_t) nt->metadata.len;
    rr->lengths[NGX_MCP_MESSAGE] = (uint32_t) nt->message.len;
    rr->lengths[NGX_MCP_RESPONSES] = (uint32_t) nt->responses.len;

    if (nt->holder) {
        rr->seat = (uint32_t) ngx_mcp_redis_shared(call->st->zone)->seat;
    }

    ngx_mcp_redis_owner(call->st, &nt->owner, rr->owner_hash);
    ngx_mcp_redis_token_push(rr, call->token);
}


static ngx_int_t
ngx_mcp_redis_send_new(ngx_mcp_redis_call_t *call, ngx_str_t *text)
{
    uint64_t                 now, store_now, limit;
    ngx_str_t                argv[NGX_MCP_REDIS_ARGS + 2 * NGX_MCP_PAYLOADS];
    ngx_uint_t               n, p;
    ngx_pool_t              *pool;
    ngx_mcp_new_t           *nt;
    ngx_mcp_redis_store_t   *st;
    ngx_mcp_redis_record_t  *rr;

    nt = &((ngx_mcp_op_create_t *) call->op)->task;
    st = call->st;
    rr = &call->rr;
    pool = call->pool;
    p = call->partition;
    now = nt->now;
    store_now = ngx_mcp_redis_now(st->zone);
    limit = st->max_tasks / st->conf->partitions;

    ngx_str_set(&argv[0], "9");
    argv[1] = ngx_mcp_redis_key(st, pool, p, "t", &call->id, 16);
    argv[2] = ngx_mcp_redis_key(st, pool, p, "x", &call->id, 16);
    argv[3] = ngx_mcp_redis_key(st, pool, p, "i", rr->owner_hash, 16);
    argv[4] = ngx_mcp_redis_key(st, pool, p, "d", NULL, 0);
    argv[5] = ngx_mcp_redis_key(st, pool, p, "q", nt->tool.data, nt->tool.len);
    argv[6] = ngx_mcp_redis_key(st, pool, p, "c", NULL, 0);
    argv[7] = ngx_mcp_redis_key(st, pool, p, "m", NULL, 0);
    argv[8] = ngx_mcp_redis_key(st, pool, p, "w", NULL, 0);
    argv[9] = nt->token.len
              ? ngx_mcp_redis_key2(st, pool, p, "k", rr->owner_hash, 16,
                                   &nt->token)
              : argv[1];

    argv[10] = ngx_mcp_redis_run(st);
    argv[11].data = (u_char *) &call->id;
    argv[11].len = sizeof(ngx_mcp_id_t);
    argv[12].data = call->token;
    argv[12].len = sizeof(call->token);
    argv[13].data = rr->owner_hash;
    argv[13].len = sizeof(rr->owner_hash);
    argv[14] = ngx_mcp_redis_number(pool, st->max_tasks
                                          ? ngx_max(limit, 1) : 0);
    argv[15] = ngx_mcp_redis_number(pool, nt->max_owner_tasks);
    argv[16] = ngx_mcp_redis_number(pool, nt->max_owner_bytes);
    argv[17] = ngx_mcp_redis_number(pool, nt->method.len + nt->params.len
                                          + nt->metadata.len + nt->message.len
                                          + nt->responses.len);
    argv[20] = ngx_mcp_redis_deadline(pool, &rr->rec.task, now, store_now);
    argv[21] = ngx_mcp_redis_base(pool, &rr->rec.task);
    argv[22] = nt->tool;
    argv[23] = ngx_mcp_redis_number(pool,
                              (nt->token.len ? NGX_MCP_REDIS_HAS_TOKEN : 0)
                              | (st->recent ? NGX_MCP_REDIS_KEEP_RECENT : 0));

    ngx_mcp_record_to_store(&rr->rec, now, store_now);
    ngx_mcp_redis_encode_head(text->data, rr);
    (void) ngx_mcp_redis_encode_rest(text->data + NGX_MCP_REDIS_HEAD, rr);
    ngx_mcp_record_from_store(&rr->rec, now, store_now);

    argv[18].data = text->data;
    argv[18].len = NGX_MCP_REDIS_HEAD;
    argv[19].data = text->data + NGX_MCP_REDIS_HEAD;
    argv[19].len = text->len - NGX_MCP_REDIS_HEAD;

    n = ngx_mcp_redis_new_others(nt, &argv[24]);

    return ngx_mcp_redis_eval(call, NGX_MCP_REDIS_CHANGES,
                              NGX_MCP_REDIS_CREATE, ngx_mcp_redis_created,
                              argv, 24 + n);
}


static ngx_uint_t
ngx_mcp_redis_new_others(ngx_mcp_new_t *nt, ngx_str_t *argv)
{
    ngx_uint_t  n;

    n = 0;

    if (nt->metadata.len) {
        ngx_str_set(&argv[n], "1");
        argv[n + 1] = nt->metadata;
        n += 2;
    }

    if (nt->message.len) {
        ngx_str_set(&argv[n], "2");
        argv[n + 1] = nt->message;
        n += 2;
    }

    if (nt->responses.len) {
        ngx_str_set(&argv[n], "5");
        argv[n + 1] = nt->responses;
        n += 2;
    }

    return n;
}


static void
ngx_mcp_redis_created(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    int64_t                code;
    ngx_int_t              rc;
    ngx_uint_t             reason;
    ngx_mcp_record_t      *rec;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;
    rec = &call->rr.rec;

    if (ngx_mcp_redis_code(call, reply, &code) != NGX_OK) {
        return;
    }

    switch (code) {

    case 1:
    case 2:
        if (reply->elements == 2
            && reply->element[1]->type == REDIS_REPLY_INTEGER)
        {
            rec->seq = reply->element[1]->integer;
            rec->changed = rec->seq;
            rec->queue_seq = rec->seq;
        }

        rc = ngx_mcp_redis_view(call, 0,
                                &((ngx_mcp_op_create_t *) call->op)->view);

        if (rc == NGX_OK) {
            rc = ngx_mcp_redis_over(call, NGX_MCP_OK);
        }

        ngx_mcp_redis_finish(call, rc);
        return;

    case 0:
        /* a task has this id: with another one */

        call->data = NULL;
        call->tries++;
        ngx_mcp_redis_finish(call, call->start(call));
        return;

    case -1:
        reason = NGX_MCP_LIMIT_TASKS;
        break;

    case -2:
        reason = NGX_MCP_LIMIT_OWNER_TASKS;
        break;

    case -3:
        reason = NGX_MCP_LIMIT_OWNER_BYTES;
        break;

    default:
        reason = NGX_MCP_STORE_FAILED;
    }

    ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call, reason));
}


#endif /* NGX_MCP_REDIS */
