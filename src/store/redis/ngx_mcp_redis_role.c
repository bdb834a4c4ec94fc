
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The processes of a machine and the Redis server: attaching to it, and the
 * listener, the one process that receives messages for the machine, measures
 * the server's clock and sweeps.
 */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_mirror.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_REDIS)


/* interval of the timer, ms */
#define NGX_MCP_REDIS_TICK     50

/* interval of beats, and how many may be missed */
#define NGX_MCP_REDIS_BEAT     500
#define NGX_MCP_REDIS_MISSED   3

/* a listener without a sign of life for so long is replaced, ms */
#define NGX_MCP_REDIS_SILENT   2000

/* data that cannot be used is looked at again after so many ms */
#define NGX_MCP_REDIS_REFUSED  1000

/* a jump of the server's clock, ms: it was set */
#define NGX_MCP_REDIS_JUMP     1000


/* a command of the store itself, with memory of its own */

typedef struct {
    ngx_mcp_redis_cmd_t     cmd;
    ngx_mcp_redis_store_t  *st;
    ngx_pool_t             *pool;
    ngx_msec_t              sent;
} ngx_mcp_redis_own_t;


static void ngx_mcp_redis_tick(ngx_event_t *ev);
static void ngx_mcp_redis_up(void *data, ngx_uint_t conn, ngx_uint_t first);
static void ngx_mcp_redis_down(void *data, ngx_uint_t conn);
static ngx_mcp_redis_own_t *ngx_mcp_redis_own(ngx_mcp_redis_store_t *st,
    ngx_mcp_redis_reply_pt handler);
static ngx_int_t ngx_mcp_redis_own_send(ngx_mcp_redis_own_t *own,
    ngx_uint_t script, ngx_str_t *argv, ngx_uint_t argc);
static void ngx_mcp_redis_attach(ngx_mcp_redis_store_t *st);
static void ngx_mcp_redis_attached(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static const char *ngx_mcp_redis_adopt(ngx_mcp_redis_store_t *st,
    redisReply *reply);
static void ngx_mcp_redis_open_partition(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_take(ngx_mcp_redis_store_t *st);
static void ngx_mcp_redis_subscribe_own(ngx_mcp_redis_store_t *st);
static void ngx_mcp_redis_beat(ngx_mcp_redis_store_t *st);
static void ngx_mcp_redis_ignored(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_time(ngx_mcp_redis_cmd_t *cmd, redisReply *reply);
static void ngx_mcp_redis_is_ready(ngx_mcp_redis_store_t *st);
static void ngx_mcp_redis_clock(ngx_mcp_zone_t *zone, uint64_t time);


static ngx_mcp_redis_hooks_t  ngx_mcp_redis_hooks = {
    ngx_mcp_redis_up,
    ngx_mcp_redis_down,
    ngx_mcp_redis_message
};


void
ngx_mcp_redis_process(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone)
{
    ngx_uint_t              i;
    ngx_mcp_redis_store_t  *st;

    st = zone->store_data;

    st->zone = zone;
    zone->ready = 0;

    if (ngx_mcp_redis_shared(zone)->offset) {
        /* an earlier process has attached the machine */
        ngx_mcp_redis_is_ready(st);
    }

    for (i = 0; i < NGX_MCP_REDIS_QUEUES; i++) {
        ngx_queue_init(&st->queues[i]);
    }

    ngx_rbtree_init(&st->pins, &st->sentinel, ngx_rbtree_insert_value);

    st->rd = ngx_mcp_redis_init(cycle, st->conf, &ngx_mcp_redis_hooks, st);
    if (st->rd == NULL) {
        return;
    }

    st->timer.handler = ngx_mcp_redis_tick;
    st->timer.data = &zone->dummy;
    st->timer.log = cycle->log;
    st->timer.cancelable = 1;

    ngx_add_timer(&st->timer, 1);
}


void
ngx_mcp_redis_exit(ngx_mcp_zone_t *zone)
{
    ngx_mcp_redis_store_t  *st;

    st = zone->store_data;

    if (st->listening) {
        ngx_mcp_redis_shared(zone)->listener = 0;
        st->listening = 0;
    }

    if (st->rd) {
        ngx_mcp_redis_close(st->rd);
    }
}


static void
ngx_mcp_redis_tick(ngx_event_t *ev)
{
    ngx_connection_t        *c;
    ngx_mcp_zone_t          *zone;
    ngx_mcp_redis_store_t   *st;
    ngx_mcp_redis_shared_t  *sh;

    c = ev->data;
    zone = c->data;
    st = zone->store_data;
    sh = ngx_mcp_redis_shared(zone);

    ngx_mcp_redis_open(st->rd, NGX_MCP_REDIS_READS);
    ngx_mcp_redis_open(st->rd, NGX_MCP_REDIS_CHANGES);

    if (ngx_mcp_redis_is_up(st->rd, NGX_MCP_REDIS_CHANGES)) {

        if (st->opened < st->conf->partitions) {
            ngx_mcp_redis_reopen(st);

        } else {
            ngx_mcp_redis_take(st);
        }
    }

    if (st->listening) {
        sh->beat = ngx_current_msec;
        sh->up = ngx_mcp_redis_is_up(st->rd, NGX_MCP_REDIS_CHANGES);

        ngx_mcp_redis_beat(st);
        ngx_mcp_redis_sweep(st);
    }

    if (st->relooking || st->relooks != sh->relooks) {
        st->relooks = sh->relooks;
        ngx_mcp_redis_relook(st);
    }

    if (!ngx_exiting) {
        ngx_add_timer(ev, NGX_MCP_REDIS_TICK);
    }
}


static void
ngx_mcp_redis_up(void *data, ngx_uint_t conn, ngx_uint_t first)
{
    ngx_mcp_redis_store_t *st = data;

    if (conn == NGX_MCP_REDIS_MESSAGES) {

        /* messages may have been lost: all processes look again */

        ngx_mcp_redis_shared(st->zone)->relooks++;
        st->beats = 0;
        return;
    }

    if (first) {
        st->opened = 0;
        st->opening = 0;
    }

    if (conn == NGX_MCP_REDIS_CHANGES) {
        ngx_mcp_redis_reopen(st);
    }
}


static void
ngx_mcp_redis_down(void *data, ngx_uint_t conn)
{
    ngx_mcp_redis_store_t *st = data;

    if (conn == NGX_MCP_REDIS_CHANGES) {
        st->opening = 0;
    }
}


static ngx_mcp_redis_own_t *
ngx_mcp_redis_own(ngx_mcp_redis_store_t *st, ngx_mcp_redis_reply_pt handler)
{
    ngx_pool_t           *pool;
    ngx_mcp_redis_own_t  *own;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    own = ngx_pcalloc(pool, sizeof(ngx_mcp_redis_own_t));
    if (own == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    own->st = st;
    own->pool = pool;
    own->sent = ngx_current_msec;
    own->cmd.handler = handler;
    own->cmd.data = own;

    return own;
}


/* script: its number, or NGX_MCP_REDIS_SCRIPTS for a plain command */

static ngx_int_t
ngx_mcp_redis_own_send(ngx_mcp_redis_own_t *own, ngx_uint_t script,
    ngx_str_t *argv, ngx_uint_t argc)
{
    ngx_int_t   rc;
    ngx_uint_t  i;

    for (i = 0; i < argc; i++) {
        if (argv[i].data == NULL) {
            ngx_destroy_pool(own->pool);
            return NGX_ERROR;
        }
    }

    rc = (script == NGX_MCP_REDIS_SCRIPTS)
         ? ngx_mcp_redis_format(own->pool, &own->cmd, argv, argc)
         : ngx_mcp_redis_format_script(own->pool, &own->cmd, script, argv,
                                       argc);

    if (rc != NGX_OK
        || ngx_mcp_redis_send(own->st->rd, NGX_MCP_REDIS_CHANGES, &own->cmd)
           != NGX_OK)
    {
        ngx_destroy_pool(own->pool);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Makes the server accept scripts of this process: all machines agree on the
 * layout of the data and on the secret, and each partition knows the server.
 */

void
ngx_mcp_redis_reopen(ngx_mcp_redis_store_t *st)
{
    if (st->opening
        || (st->refused
            && ngx_current_msec - st->refused < NGX_MCP_REDIS_REFUSED))
    {
        return;
    }

    st->opening = 1;
    st->opened = 0;

    ngx_mcp_redis_attach(st);
}


static void
ngx_mcp_redis_attach(ngx_mcp_redis_store_t *st)
{
    u_char                  *secret;
    ngx_str_t                argv[6];
    ngx_pool_t              *pool;
    ngx_mcp_redis_own_t     *own;
    ngx_mcp_redis_shared_t  *sh;

    sh = ngx_mcp_redis_shared(st->zone);

    own = ngx_mcp_redis_own(st, ngx_mcp_redis_attached);
    if (own == NULL) {
        st->opening = 0;
        return;
    }

    pool = own->pool;

    /* the secret of a new zone is random, and the first one is kept */

    secret = ngx_pnalloc(pool, 16);
    if (secret) {
        ngx_memcpy(secret, st->zone->secret, 16);
    }

    ngx_str_set(&argv[0], "1");
    argv[1] = ngx_mcp_redis_key(st, pool, 0, "meta", NULL, 0);
    argv[2] = ngx_mcp_redis_number(pool, NGX_MCP_REDIS_SCHEMA);
    argv[3] = ngx_mcp_redis_number(pool, st->conf->partitions);
    argv[4].data = secret;
    argv[4].len = 16;
    ngx_str_set(&argv[5], "1");

    if (sh->attached) {
        ngx_str_set(&argv[5], "0");
    }

    if (ngx_mcp_redis_own_send(own, NGX_MCP_REDIS_ATTACH, argv, 6) != NGX_OK) {
        st->opening = 0;
    }
}


static void
ngx_mcp_redis_attached(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_str_t               argv[4];
    ngx_uint_t              i;
    const char             *error;
    ngx_mcp_redis_own_t    *own, *open;
    ngx_mcp_redis_store_t  *st;

    own = cmd->data;
    st = own->st;

    if (reply == NULL) {
        st->opening = 0;
        ngx_destroy_pool(own->pool);
        return;
    }

    error = ngx_mcp_redis_adopt(st, reply);

    ngx_destroy_pool(own->pool);

    if (error) {
        if (ngx_strcmp(st->rd->error, error) != 0) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "redis: zone \"%V\" cannot be used: %s",
                          &st->zone->name, error);
        }

        (void) ngx_cpystrn(st->rd->error, (u_char *) error,
                           sizeof(st->rd->error));
        st->zone->ready = 0;
        st->opening = 0;
        st->refused = ngx_current_msec;
        return;
    }

    st->refused = 0;

    for (i = 0; i < st->conf->partitions; i++) {
        open = ngx_mcp_redis_own(st, ngx_mcp_redis_open_partition);

        if (open == NULL) {
            break;
        }

        ngx_str_set(&argv[0], "2");
        argv[1] = ngx_mcp_redis_key(st, open->pool, i, "m", NULL, 0);
        argv[2] = ngx_mcp_redis_key(st, open->pool, i, "w", NULL, 0);
        argv[3] = ngx_mcp_redis_run(st);

        if (ngx_mcp_redis_own_send(open, NGX_MCP_REDIS_OPEN, argv, 4)
            != NGX_OK)
        {
            break;
        }
    }

    if (i < st->conf->partitions) {
        /* the timer tries it again */
        st->opening = 0;
    }
}


/* checks what all machines have in common; NULL: it is as it has to be */

static const char *
ngx_mcp_redis_adopt(ngx_mcp_redis_store_t *st, redisReply *reply)
{
    redisReply              **e;
    ngx_mcp_table_t          *t;
    ngx_mcp_redis_shared_t   *sh;

    t = st->zone->table;
    sh = ngx_mcp_redis_shared(st->zone);
    e = reply->element;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4
        || e[0]->type != REDIS_REPLY_INTEGER
        || e[1]->type != REDIS_REPLY_INTEGER
        || e[2]->type != REDIS_REPLY_STRING || e[2]->len != 16
        || e[3]->type != REDIS_REPLY_INTEGER)
    {
        return "the data of the zone in Redis is invalid";
    }

    if (e[0]->integer != NGX_MCP_REDIS_SCHEMA) {
        return "the data in Redis was written by an incompatible version of "
               "the module";
    }

    if (e[1]->integer != (long long) st->conf->partitions) {
        return "the zone has another number of partitions in Redis";
    }

    ngx_mcp_lock(t);

    if (!sh->attached) {
        ngx_memcpy(t->sh->secret, e[2]->str, 16);
        sh->seat = e[3]->integer;
        t->sh->seq = (sh->seat & 0xfff) << NGX_MCP_REDIS_NUMBERS;
        sh->attached = 1;
    }

    ngx_mcp_unlock(t);

    if (ngx_memcmp(t->sh->secret, e[2]->str, 16) != 0) {
        return "the zone was created anew in Redis; restart nginx to use it";
    }

    return NULL;
}


static void
ngx_mcp_redis_open_partition(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_own_t    *own;
    ngx_mcp_redis_store_t  *st;

    own = cmd->data;
    st = own->st;

    ngx_destroy_pool(own->pool);

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        st->opening = 0;
        return;
    }

    if (++st->opened < st->conf->partitions) {
        return;
    }

    st->opening = 0;

    /* registrations may be lost with the server, or never were there */

    ngx_mcp_redis_relook(st);

    if (ngx_mcp_redis_shared(st->zone)->offset) {
        ngx_mcp_redis_is_ready(st);
        return;
    }

    /* the time of the server has to be known first */

    st->beat = 0;
    ngx_mcp_redis_beat(st);
}


/* one process of the machine is the listener */

static void
ngx_mcp_redis_take(ngx_mcp_redis_store_t *st)
{
    ngx_mcp_table_t         *t;
    ngx_mcp_redis_shared_t  *sh;

    t = st->zone->table;
    sh = ngx_mcp_redis_shared(st->zone);

    if (st->listening) {

        if (sh->listener != (uint64_t) ngx_pid) {
            /* this process was taken for dead */
            st->listening = 0;
            return;
        }

        if (ngx_exiting) {
            sh->listener = 0;
            st->listening = 0;
        }

        return;
    }

    if (ngx_exiting
        || (sh->listener
            && ngx_current_msec - sh->beat < NGX_MCP_REDIS_SILENT))
    {
        return;
    }

    ngx_mcp_lock_read(t);

    if (sh->listener == 0
        || ngx_current_msec - sh->beat >= NGX_MCP_REDIS_SILENT)
    {
        sh->listener = ngx_pid;
        sh->beat = ngx_current_msec;
        st->listening = 1;
    }

    ngx_mcp_unlock(t);

    if (st->listening) {
        ngx_mcp_redis_subscribe_own(st);
    }
}


static void
ngx_mcp_redis_subscribe_own(ngx_mcp_redis_store_t *st)
{
    ngx_str_t                seat;
    ngx_uint_t               i, n;
    ngx_pool_t              *pool;

    if (st->subscribed) {
        /* messages were read while another process was the listener */
        ngx_mcp_redis_shared(st->zone)->relooks++;
        return;
    }

    n = st->conf->partitions;
    pool = ngx_cycle->pool;

    st->channels = ngx_palloc(pool, 2 * n * sizeof(ngx_str_t));
    seat = ngx_mcp_redis_number(pool, ngx_mcp_redis_shared(st->zone)->seat);

    if (st->channels == NULL || seat.data == NULL) {
        return;
    }

    for (i = 0; i < n; i++) {
        st->channels[2 * i] = ngx_mcp_redis_key(st, pool, i, "n", seat.data,
                                                seat.len);
        st->channels[2 * i + 1] = ngx_mcp_redis_key(st, pool, i, "all", NULL,
                                                    0);
    }

    ngx_mcp_redis_subscribe(st->rd, st->channels, 2 * n);
    ngx_mcp_redis_open(st->rd, NGX_MCP_REDIS_MESSAGES);

    st->subscribed = 1;
}


/*
 * Tests the whole path of a message, and measures the server's clock.  If
 * echoes are missing, messages are, too.
 */

static void
ngx_mcp_redis_beat(ngx_mcp_redis_store_t *st)
{
    ngx_str_t                argv[3];
    ngx_mcp_redis_own_t     *own;

    if (st->beat && ngx_current_msec - st->beat < NGX_MCP_REDIS_BEAT) {
        return;
    }

    st->beat = ngx_current_msec;

    own = ngx_mcp_redis_own(st, ngx_mcp_redis_time);

    if (own) {
        ngx_str_set(&argv[0], "TIME");
        (void) ngx_mcp_redis_own_send(own, NGX_MCP_REDIS_SCRIPTS, argv, 1);
    }

    if (!st->subscribed
        || !ngx_mcp_redis_is_up(st->rd, NGX_MCP_REDIS_MESSAGES))
    {
        return;
    }

    own = ngx_mcp_redis_own(st, ngx_mcp_redis_ignored);

    if (own) {
        ngx_str_set(&argv[0], "SPUBLISH");
        argv[1] = st->channels[0];
        ngx_str_set(&argv[2], "b");

        if (ngx_mcp_redis_own_send(own, NGX_MCP_REDIS_SCRIPTS, argv, 3)
            == NGX_OK
            && ++st->beats > NGX_MCP_REDIS_MISSED)
        {
            st->beats = 0;
            ngx_mcp_redis_renew(st->rd, NGX_MCP_REDIS_MESSAGES,
                                "messages are not received");
        }
    }
}


static void
ngx_mcp_redis_ignored(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_own_t  *own;

    own = cmd->data;

    ngx_destroy_pool(own->pool);
}


static void
ngx_mcp_redis_time(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    uint64_t                sec, usec;
    ngx_msec_t              sent;
    ngx_mcp_redis_own_t    *own;
    ngx_mcp_redis_store_t  *st;

    own = cmd->data;
    st = own->st;
    sent = own->sent;

    ngx_destroy_pool(own->pool);

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY
        || reply->elements != 2
        || reply->element[0]->type != REDIS_REPLY_STRING
        || reply->element[1]->type != REDIS_REPLY_STRING)
    {
        return;
    }

    sec = strtoull(reply->element[0]->str, NULL, 10);
    usec = strtoull(reply->element[1]->str, NULL, 10);

    /* a reply that took long says little about the clock */

    if (ngx_mcp_redis_shared(st->zone)->offset == 0
        || ngx_current_msec - sent < 100)
    {
        ngx_mcp_redis_clock(st->zone, sec * 1000 + usec / 1000);
    }

    if (st->opened == st->conf->partitions) {
        ngx_mcp_redis_is_ready(st);
    }
}


/*
 * From now on operations wait for the server while it is away.  Before, the
 * secret of the zone is unknown, so that not even a session can be checked.
 */

static void
ngx_mcp_redis_is_ready(ngx_mcp_redis_store_t *st)
{
    if (!st->zone->ready) {
        st->zone->ready = 1;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "redis: zone \"%V\" is ready", &st->zone->name);
    }
}


/*
 * Small differences are drift, and are followed.  A jump means that the clock
 * of the server was set: store time continues as if it had not been.
 */

static void
ngx_mcp_redis_clock(ngx_mcp_zone_t *zone, uint64_t time)
{
    int64_t                  offset, diff;
    ngx_mcp_redis_shared_t  *sh;

    sh = ngx_mcp_redis_shared(zone);
    offset = (int64_t) time - (int64_t) ngx_current_msec;

    if (sh->offset == 0) {
        sh->offset = offset;
        return;
    }

    diff = offset - sh->offset;

    if (diff > NGX_MCP_REDIS_JUMP || diff < -NGX_MCP_REDIS_JUMP) {
        return;
    }

    sh->offset += diff / 8;
}


#endif /* NGX_MCP_REDIS */
