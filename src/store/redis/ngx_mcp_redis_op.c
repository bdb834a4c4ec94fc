
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Operations of a zone in Redis, from submit to the answer.
 *
 * Operations of one process on one task are done in the order in which they
 * were submitted: while a change is pending, later operations on the task
 * wait.  Reads do not wait for each other.
 */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_REDIS)


/* delay before a call begins again, ms */
#define NGX_MCP_REDIS_PAUSE  10


typedef struct {
    ngx_mcp_redis_start_pt   start;   /* NULL: done in this machine's memory */
    ngx_mcp_submit_pt        local;
    size_t                   id;      /* offset of the task's id; 0: none */
    ngx_uint_t               change;
} ngx_mcp_redis_op_t;


static ngx_uint_t ngx_mcp_redis_blocked(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_next(ngx_queue_t *queue, uint64_t key);
static void ngx_mcp_redis_timer(ngx_event_t *ev);
static ngx_int_t ngx_mcp_redis_nothing(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_redis_empty(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o);


#define id_of(type)  offsetof(type, id)

/* in the order of ngx_mcp_op_e */

static ngx_mcp_redis_op_t  ngx_mcp_redis_ops[NGX_MCP_OPS] = {
    { ngx_mcp_redis_create, NULL, 0, 0 },
    { ngx_mcp_redis_get, NULL, id_of(ngx_mcp_op_get_t), 0 },
    { ngx_mcp_redis_list, NULL, 0, 0 },
    { ngx_mcp_redis_claim, NULL, 0, 0 },
    { ngx_mcp_redis_update, NULL, id_of(ngx_mcp_op_update_t), 1 },
    { ngx_mcp_redis_delete, NULL, id_of(ngx_mcp_op_delete_t), 1 },
    { NULL, ngx_mcp_redis_nothing, 0, 0 },                   /* SWEEP */
    { ngx_mcp_redis_stats, NULL, 0, 0 },
    { ngx_mcp_redis_wait, NULL, 0, 0 },
    { NULL, ngx_mcp_shm_submit, 0, 0 },                      /* LEAVE */
    { NULL, ngx_mcp_redis_lookup, 0, 0 },                    /* CHANGES */
    { NULL, ngx_mcp_redis_lookup, 0, 0 },                    /* SESSION */
    { ngx_mcp_redis_attempt, NULL, id_of(ngx_mcp_op_attempt_t), 1 },
    { NULL, ngx_mcp_redis_empty, 0, 0 },                     /* ORPHANS */
    { ngx_mcp_redis_recent, NULL, 0, 0 },
    { NULL, ngx_mcp_shm_submit, 0, 0 },                      /* PAUSE */
    { NULL, ngx_mcp_shm_submit, 0, 0 },                      /* DRAIN */
    { ngx_mcp_redis_pin, NULL, 0, 0 },
    { NULL, ngx_mcp_redis_unpin, 0, 0 }
};


ngx_int_t
ngx_mcp_redis_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    ngx_mcp_redis_op_t     *desc;
    ngx_mcp_redis_call_t   *call;
    ngx_mcp_redis_store_t  *st;

    st = zone->store_data;
    desc = &ngx_mcp_redis_ops[op->type];

    if (desc->start == NULL) {
        return desc->local(zone, op);
    }

    if (!zone->ready) {

        if (op->type == NGX_MCP_OP_STATS) {
            return ngx_mcp_shm_submit(zone, op);
        }

        op->reason = NGX_MCP_STORE_UNAVAILABLE;
        return NGX_OK;
    }

    call = ngx_pcalloc(op->pool, sizeof(ngx_mcp_redis_call_t));
    if (call == NULL
        || ngx_mcp_random(call->token, sizeof(call->token)) != NGX_OK)
    {
        return NGX_ERROR;
    }

    call->st = st;
    call->op = op;
    call->pool = op->pool;
    call->start = desc->start;
    call->change = desc->change;
    call->until = ngx_current_msec + st->conf->timeout;

    if (desc->id) {
        ngx_memcpy(&call->id, (u_char *) op + desc->id, sizeof(ngx_mcp_id_t));
        call->key = ngx_mcp_signal_id(&call->id);
        call->partition = ngx_mcp_redis_partition_of(st, &call->id);
    }

    return ngx_mcp_redis_start(call);
}


ngx_int_t
ngx_mcp_redis_start(ngx_mcp_redis_call_t *call)
{
    ngx_int_t     rc;
    ngx_queue_t  *queue;

    queue = &call->st->queues[call->key % NGX_MCP_REDIS_QUEUES];

    if (ngx_mcp_redis_blocked(call)) {
        ngx_queue_insert_tail(queue, &call->queue);
        return NGX_AGAIN;
    }

    call->started = 1;
    ngx_queue_insert_tail(queue, &call->queue);

    rc = call->start(call);

    if (rc != NGX_AGAIN) {
        ngx_queue_remove(&call->queue);
        ngx_mcp_redis_next(queue, call->key);
    }

    return rc;
}


/* whether a change of the same task is pending */

static ngx_uint_t
ngx_mcp_redis_blocked(ngx_mcp_redis_call_t *call)
{
    ngx_queue_t           *q, *queue;
    ngx_mcp_redis_call_t  *before;

    if (call->key == 0) {
        return 0;
    }

    queue = &call->st->queues[call->key % NGX_MCP_REDIS_QUEUES];

    for (q = ngx_queue_head(queue);
         q != ngx_queue_sentinel(queue);
         q = ngx_queue_next(q))
    {
        before = ngx_queue_data(q, ngx_mcp_redis_call_t, queue);

        if (before->key == call->key && before->change) {
            return 1;
        }
    }

    return 0;
}


/* The call is done; the answer was given by start(), or is given now. */

void
ngx_mcp_redis_finish(ngx_mcp_redis_call_t *call, ngx_int_t rc)
{
    uint64_t               key;
    ngx_queue_t           *queue;
    ngx_mcp_op_t          *op;

    if (rc == NGX_AGAIN) {
        return;
    }

    op = call->op;
    key = call->key;
    queue = &call->st->queues[key % NGX_MCP_REDIS_QUEUES];

    if (rc == NGX_ERROR) {
        op->reason = NGX_MCP_STORE_FAILED;
    }

    ngx_queue_remove(&call->queue);

    /* the handler may free the call */

    op->handler(op);

    ngx_mcp_redis_next(queue, key);
}


/* starts what has waited for a change of the task: up to the next change */

static void
ngx_mcp_redis_next(ngx_queue_t *queue, uint64_t key)
{
    ngx_int_t              rc;
    ngx_uint_t             change;
    ngx_queue_t           *q;
    ngx_mcp_redis_call_t  *call;

    if (key == 0) {
        return;
    }

again:

    for (q = ngx_queue_head(queue);
         q != ngx_queue_sentinel(queue);
         q = ngx_queue_next(q))
    {
        call = ngx_queue_data(q, ngx_mcp_redis_call_t, queue);

        if (call->key != key) {
            continue;
        }

        if (call->started) {

            if (call->change) {
                return;
            }

            continue;
        }

        change = call->change;
        call->started = 1;

        rc = call->start(call);

        if (rc != NGX_AGAIN) {
            ngx_mcp_redis_finish(call, rc);
            return;
        }

        if (change) {
            return;
        }

        /* the queue may have changed */
        goto again;
    }
}


/* for the end of a start function: the operation is done */

ngx_int_t
ngx_mcp_redis_over(ngx_mcp_redis_call_t *call, ngx_uint_t reason)
{
    call->op->reason = reason;

    if (reason == NGX_MCP_STORE_UNAVAILABLE && call->unsure) {
        call->op->reason = NGX_MCP_STORE_FAILED;
    }

    return NGX_OK;
}


/* starts the call again, unless its time is over */

ngx_int_t
ngx_mcp_redis_again(ngx_mcp_redis_call_t *call, ngx_msec_t delay)
{
    if ((ngx_msec_int_t) (call->until - ngx_current_msec) <= 0) {
        return ngx_mcp_redis_over(call, NGX_MCP_STORE_UNAVAILABLE);
    }

    call->tries++;

    call->ident.fd = (ngx_socket_t) -1;
    call->ident.data = call;
    call->timer.data = &call->ident;
    call->timer.handler = ngx_mcp_redis_timer;
    call->timer.log = ngx_cycle->log;

    ngx_add_timer(&call->timer, delay);

    return NGX_AGAIN;
}


static void
ngx_mcp_redis_timer(ngx_event_t *ev)
{
    ngx_connection_t      *c;
    ngx_mcp_redis_call_t  *call;

    c = ev->data;
    call = c->data;

    ngx_mcp_redis_finish(call, call->start(call));
}


/* Sends a command.  NGX_OK: it cannot be sent, the operation is done. */

ngx_int_t
ngx_mcp_redis_call(ngx_mcp_redis_call_t *call, ngx_uint_t n, ngx_uint_t conn,
    ngx_mcp_redis_reply_pt handler, ngx_str_t *argv, ngx_uint_t argc)
{
    ngx_uint_t            i;
    ngx_mcp_redis_cmd_t  *cmd;

    for (i = 0; i < argc; i++) {
        if (argv[i].data == NULL && argv[i].len == 0) {
            return NGX_ERROR;
        }
    }

    cmd = &call->cmd[n];
    ngx_memzero(cmd, sizeof(ngx_mcp_redis_cmd_t));
    cmd->handler = handler;
    cmd->data = call;

    if (ngx_mcp_redis_format(call->pool, cmd, argv, argc) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_mcp_redis_send(call->st->rd, conn, cmd) != NGX_OK) {
        return ngx_mcp_redis_over(call, NGX_MCP_STORE_UNAVAILABLE);
    }

    return NGX_AGAIN;
}


/* the same for a script; argv begins with the number of keys */

ngx_int_t
ngx_mcp_redis_eval(ngx_mcp_redis_call_t *call, ngx_uint_t conn,
    ngx_uint_t script, ngx_mcp_redis_reply_pt handler, ngx_str_t *argv,
    ngx_uint_t argc)
{
    ngx_uint_t            i;
    ngx_mcp_redis_cmd_t  *cmd;

    for (i = 0; i < argc; i++) {
        if (argv[i].data == NULL) {

            if (argv[i].len) {
                return NGX_ERROR;
            }

            ngx_str_set(&argv[i], "");
        }
    }

    cmd = &call->cmd[0];
    ngx_memzero(cmd, sizeof(ngx_mcp_redis_cmd_t));
    cmd->handler = handler;
    cmd->data = call;

    if (ngx_mcp_redis_format_script(call->pool, cmd, script, argv, argc)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_mcp_redis_send(call->st->rd, conn, cmd) != NGX_OK) {
        return ngx_mcp_redis_over(call, NGX_MCP_STORE_UNAVAILABLE);
    }

    return NGX_AGAIN;
}


ngx_int_t
ngx_mcp_redis_code(ngx_mcp_redis_call_t *call, redisReply *reply,
    int64_t *code)
{
    if (reply == NULL) {
        call->unsure |= call->cmd[0].sent;
        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                               NGX_MCP_STORE_UNAVAILABLE));
        return NGX_DECLINED;
    }

    if (reply->type == REDIS_REPLY_ERROR) {

        /* "OOM": the server may have memory again later */

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "redis: operation %ui failed: %*s", call->op->type,
                      ngx_min((size_t) reply->len, 200), reply->str);

        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                        ngx_strncmp(reply->str, "OOM", 3) == 0
                        ? NGX_MCP_ZONE_FULL : NGX_MCP_STORE_FAILED));
        return NGX_DECLINED;
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0
        || reply->element[0]->type != REDIS_REPLY_INTEGER)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "redis: invalid reply to operation %ui",
                      call->op->type);
        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                                      NGX_MCP_STORE_FAILED));
        return NGX_DECLINED;
    }

    *code = reply->element[0]->integer;

    if (*code == NGX_MCP_SCRIPT_OTHER_RUN) {

        /* another server than the one that the script was made for */

        ngx_mcp_redis_reopen(call->st);
        ngx_mcp_redis_finish(call, ngx_mcp_redis_again(call,
                                                       NGX_MCP_REDIS_PAUSE));
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* the sweeper has its own timer: deadlines are in Redis */

static ngx_int_t
ngx_mcp_redis_nothing(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_sweep_t *op = (ngx_mcp_op_sweep_t *) o;

    op->done = 0;
    op->next = NGX_MCP_NEVER;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_redis_empty(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_orphans_t *op = (ngx_mcp_op_orphans_t *) o;

    op->n = 0;
    op->more = 0;

    return NGX_OK;
}


#endif /* NGX_MCP_REDIS */
