
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The store "redis": its parameters, and its interface to zones. */


#include "ngx_mcp_redis.h"


#if (NGX_MCP_REDIS)


static ngx_int_t ngx_mcp_redis_store_create(ngx_conf_t *cf,
    ngx_mcp_zone_t *zone, ngx_str_t *argument);
static ngx_int_t ngx_mcp_redis_store_param(ngx_mcp_zone_t *zone,
    ngx_str_t *arg);
static ngx_int_t ngx_mcp_redis_store_conf(ngx_conf_t *cf,
    ngx_mcp_zone_t *zone, ngx_array_t *zones);
static ngx_uint_t ngx_mcp_redis_store_same(ngx_mcp_zone_t *zone,
    ngx_mcp_zone_t *other);
static ngx_int_t ngx_mcp_redis_store_zone(ngx_mcp_zone_t *zone,
    ngx_uint_t kept);
static void ngx_mcp_redis_store_status(ngx_mcp_zone_t *zone,
    ngx_mcp_op_stats_t *stats);


static ngx_str_t  ngx_mcp_redis_params[] = {
    ngx_string("recent"),
    ngx_null_string
};


ngx_mcp_store_t  ngx_mcp_redis_store = {
    ngx_string("redis"),
    ngx_mcp_redis_params,
    ngx_mcp_redis_store_create,
    ngx_mcp_redis_store_param,
    ngx_mcp_redis_store_conf,
    ngx_mcp_redis_store_same,
    ngx_mcp_redis_store_zone,
    ngx_mcp_redis_process,
    ngx_mcp_redis_exit,
    ngx_mcp_redis_submit,
    ngx_mcp_redis_lookup,
    1,
    1,
    ngx_mcp_redis_store_status
};


static ngx_int_t
ngx_mcp_redis_store_create(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *argument)
{
    ngx_mcp_redis_store_t  *st;

    st = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_redis_store_t));
    if (st == NULL) {
        return NGX_ERROR;
    }

    st->block = *argument;
    st->zone = zone;
    st->recent = 1;

    zone->store_data = st;

    return NGX_OK;
}


/* "recent=on|off", at most once */

static ngx_int_t
ngx_mcp_redis_store_param(ngx_mcp_zone_t *zone, ngx_str_t *arg)
{
    ngx_mcp_redis_store_t  *st;

    st = zone->store_data;

    if (st->recent_set) {
        return NGX_DECLINED;
    }

    if (arg->len == 9 && ngx_strncmp(arg->data, "recent=on", 9) == 0) {
        st->recent = 1;

    } else if (arg->len == 10 && ngx_strncmp(arg->data, "recent=off", 10) == 0)
    {
        st->recent = 0;

    } else {
        return NGX_DECLINED;
    }

    st->recent_set = 1;

    return NGX_OK;
}


/*
 * "max_tasks=" limits the tasks in Redis; the memory of the zone is for the
 * mirror, which has as many slots as fit.
 */

static ngx_int_t
ngx_mcp_redis_store_conf(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_array_t *zones)
{
    u_char                 *p;
    ngx_mcp_redis_store_t  *st;

    st = zone->store_data;

    st->conf = ngx_mcp_redis_conf(cf, &st->block);

    if (st->conf == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown server \"%V\" in \"store=redis:%V\", must "
                           "be defined by \"mcp_tasks_redis\" before it is "
                           "used", &st->block, &st->block);
        return NGX_ERROR;
    }

    p = zone->name.data + zone->name.len;

    if (ngx_strlchr(zone->name.data, p, '{')
        || ngx_strlchr(zone->name.data, p, '}'))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the name of zone \"%V\" has braces, which are not "
                           "allowed with \"store=redis\"", &zone->name);
        return NGX_ERROR;
    }

    st->max_tasks = zone->max_tasks;
    zone->max_tasks = 0;

    return NGX_OK;
}


static ngx_uint_t
ngx_mcp_redis_store_same(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *other)
{
    ngx_mcp_redis_conf_t  *a, *b;

    a = ngx_mcp_redis_of(zone)->conf;
    b = ngx_mcp_redis_of(other)->conf;

    return a->database == b->database
           && a->partitions == b->partitions
           && a->prefix.len == b->prefix.len
           && ngx_memcmp(a->prefix.data, b->prefix.data, a->prefix.len) == 0
           && a->url.url.len == b->url.url.len
           && ngx_memcmp(a->url.url.data, b->url.url.data, a->url.url.len)
              == 0;
}


/* nothing to load: the mirror is filled when tasks are read */

static ngx_int_t
ngx_mcp_redis_store_zone(ngx_mcp_zone_t *zone, ngx_uint_t kept)
{
    return NGX_OK;
}


static void
ngx_mcp_redis_store_status(ngx_mcp_zone_t *zone, ngx_mcp_op_stats_t *stats)
{
    ngx_mcp_redis_store_t  *st;

    st = zone->store_data;

    stats->disk.up = (zone->ready
                      && ngx_mcp_redis_is_up(st->rd, NGX_MCP_REDIS_CHANGES));

    (void) ngx_cpystrn(stats->disk.error, st->rd->error,
                       sizeof(stats->disk.error));
}


#endif /* NGX_MCP_REDIS */
