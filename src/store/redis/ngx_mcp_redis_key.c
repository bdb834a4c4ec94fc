
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The names of keys, and other arguments of commands. */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_hash.h"


#if (NGX_MCP_REDIS)


/* the score of a queue's entry: the priority, then its turn */
#define NGX_MCP_REDIS_TURNS  46


/*
 * Owners are known by a keyed hash, so that keys have a bounded length and
 * show no names.  The record has the name, which is compared on every read.
 */

void
ngx_mcp_redis_owner(ngx_mcp_redis_store_t *st, ngx_str_t *owner, u_char *hash)
{
    ngx_mcp_seal_t  seal;

    ngx_mcp_seal(&seal, st->zone->secret, NGX_MCP_SEAL_OWNER, owner, NULL, 0);
    ngx_memcpy(hash, seal.word, sizeof(seal.word));
}


/* the partition of a new task: all tasks of an owner are in one */

ngx_uint_t
ngx_mcp_redis_home(ngx_mcp_redis_store_t *st, ngx_str_t *owner,
    ngx_str_t *session)
{
    ngx_str_t   *name;
    ngx_uint_t   n;

    n = st->conf->partitions;

    if (n == 1) {
        return 0;
    }

    name = owner->len ? owner : session;

    return (name->len ? ngx_mcp_siphash(st->zone->secret, name->data,
                                        name->len)
                      : (uint64_t) ngx_random())
           % n;
}


ngx_uint_t
ngx_mcp_redis_partition_of(ngx_mcp_redis_store_t *st, ngx_mcp_id_t *id)
{
    return (st->conf->partitions == 1)
           ? 0 : ngx_mcp_redis_partition(id, st->zone->secret,
                                         st->conf->partitions);
}


ngx_str_t
ngx_mcp_redis_key(ngx_mcp_redis_store_t *st, ngx_pool_t *pool,
    ngx_uint_t partition, const char *kind, const void *data, size_t len)
{
    ngx_str_t  none;

    ngx_str_null(&none);

    return ngx_mcp_redis_key2(st, pool, partition, kind, data, len, &none);
}


ngx_str_t
ngx_mcp_redis_key2(ngx_mcp_redis_store_t *st, ngx_pool_t *pool,
    ngx_uint_t partition, const char *kind, const void *data, size_t len,
    ngx_str_t *more)
{
    u_char     *p;
    ngx_str_t   key;

    key.data = ngx_pnalloc(pool, st->conf->prefix.len + st->zone->name.len
                                 + sizeof("::{}") - 1 + NGX_INT_T_LEN
                                 + ngx_strlen(kind) + len + more->len);
    if (key.data == NULL) {
        key.len = 0;
        return key;
    }

    p = ngx_sprintf(key.data, "%V:%V:{%ui}%s", &st->conf->prefix,
                    &st->zone->name, partition, kind);

    if (len) {
        p = ngx_cpymem(p, data, len);
    }

    if (more->len) {
        p = ngx_cpymem(p, more->data, more->len);
    }

    key.len = p - key.data;

    return key;
}


ngx_str_t
ngx_mcp_redis_number(ngx_pool_t *pool, uint64_t n)
{
    ngx_str_t  text;

    text.len = 0;
    text.data = ngx_pnalloc(pool, NGX_INT64_LEN);

    if (text.data) {
        text.len = ngx_sprintf(text.data, "%uL", n) - text.data;
    }

    return text;
}


/* the next deadline in store time; empty: none */

ngx_str_t
ngx_mcp_redis_deadline(ngx_pool_t *pool, ngx_mcp_task_t *task, uint64_t now,
    uint64_t store_now)
{
    uint64_t   time;
    ngx_str_t  none;

    time = ngx_mcp_task_deadline(task);

    if (time >= NGX_MCP_RECORD_COUNT) {
        ngx_str_set(&none, "");
        return none;
    }

    time = (time > now) ? store_now + (time - now)
                        : store_now - ngx_min(now - time, store_now);

    return ngx_mcp_redis_number(pool, time);
}


/* the part of the score that the priority gives; empty: not claimable */

ngx_str_t
ngx_mcp_redis_base(ngx_pool_t *pool, ngx_mcp_task_t *task)
{
    uint64_t   base;
    ngx_str_t  none;

    if (task->policy.route || !ngx_mcp_task_claimable(task)) {
        ngx_str_set(&none, "");
        return none;
    }

    base = NGX_MCP_PRIORITIES - 1 - task->policy.priority;

    return ngx_mcp_redis_number(pool, base << NGX_MCP_REDIS_TURNS);
}


/* the server that the connections of this process were opened to */

ngx_str_t
ngx_mcp_redis_run(ngx_mcp_redis_store_t *st)
{
    ngx_str_t  run;

    run.data = st->rd->server.run_id;
    run.len = sizeof(st->rd->server.run_id);

    return run;
}


#endif /* NGX_MCP_REDIS */
