
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Statistics.  Counters are those of this machine; the numbers of tasks are
 * those of all machines.
 */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_REDIS)


static ngx_int_t ngx_mcp_redis_numbers(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_counted(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);


ngx_int_t
ngx_mcp_redis_stats(ngx_mcp_redis_call_t *call)
{
    ngx_int_t            rc;
    ngx_mcp_op_stats_t  *op;

    op = (ngx_mcp_op_stats_t *) call->op;

    rc = ngx_mcp_shm_submit(call->st->zone, call->op);

    if (rc != NGX_OK
        || !ngx_mcp_redis_is_up(call->st->rd, NGX_MCP_REDIS_READS))
    {
        return rc;
    }

    ngx_memzero(op->states, sizeof(op->states));
    op->bytes = 0;

    return ngx_mcp_redis_numbers(call);
}


/* one partition after the other */

static ngx_int_t
ngx_mcp_redis_numbers(ngx_mcp_redis_call_t *call)
{
    ngx_int_t   rc;
    ngx_str_t   argv[9];

    ngx_str_set(&argv[0], "HMGET");
    argv[1] = ngx_mcp_redis_key(call->st, call->pool, call->partition, "m",
                                NULL, 0);
    ngx_str_set(&argv[2], "s1");
    ngx_str_set(&argv[3], "s2");
    ngx_str_set(&argv[4], "s3");
    ngx_str_set(&argv[5], "s4");
    ngx_str_set(&argv[6], "s5");
    ngx_str_set(&argv[7], "s6");
    ngx_str_set(&argv[8], "b");

    rc = ngx_mcp_redis_call(call, 0, NGX_MCP_REDIS_READS,
                            ngx_mcp_redis_counted, argv, 9);

    /* the status has to be shown, above all if the store is away */

    return (rc == NGX_OK) ? ngx_mcp_redis_over(call, NGX_MCP_OK) : rc;
}


static void
ngx_mcp_redis_counted(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    uint64_t               n;
    ngx_uint_t             i;
    ngx_mcp_op_stats_t    *op;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;
    op = (ngx_mcp_op_stats_t *) call->op;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY
        || reply->elements != NGX_MCP_STATES)
    {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call, NGX_MCP_OK));
        return;
    }

    for (i = 0; i < NGX_MCP_STATES; i++) {
        n = (reply->element[i]->type == REDIS_REPLY_STRING)
            ? strtoull(reply->element[i]->str, NULL, 10) : 0;

        if (i + 1 < NGX_MCP_STATES) {
            op->states[i + 1] += (uint32_t) n;

        } else {
            op->bytes += n;
        }
    }

    if (++call->partition < call->st->conf->partitions) {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_numbers(call));
        return;
    }

    ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call, NGX_MCP_OK));
}


#endif /* NGX_MCP_REDIS */
