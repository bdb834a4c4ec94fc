
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The store "sqlite": its parameters, and its interface to zones. */


#include "ngx_mcp_sqlite.h"


#if (NGX_MCP_SQLITE_STORE)


static ngx_int_t ngx_mcp_sqlite_create(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *argument);
static ngx_int_t ngx_mcp_sqlite_param(ngx_mcp_zone_t *zone, ngx_str_t *arg);
static ngx_uint_t ngx_mcp_sqlite_same(ngx_mcp_zone_t *zone,
    ngx_mcp_zone_t *other);
static ngx_int_t ngx_mcp_sqlite_init_zone(ngx_mcp_zone_t *zone,
    ngx_uint_t kept);
static void ngx_mcp_sqlite_status(ngx_mcp_zone_t *zone,
    ngx_mcp_op_stats_t *stats);


static ngx_str_t  ngx_mcp_sqlite_params[] = {
    ngx_string("sync"),
    ngx_null_string
};


ngx_mcp_store_t  ngx_mcp_sqlite_store = {
    ngx_string("sqlite"),
    ngx_mcp_sqlite_params,
    ngx_mcp_sqlite_create,
    ngx_mcp_sqlite_param,
    ngx_mcp_path_conf,
    ngx_mcp_sqlite_same,
    ngx_mcp_sqlite_init_zone,
    ngx_mcp_sqlite_process,
    ngx_mcp_writer_exit,
    ngx_mcp_sqlite_op,
    ngx_mcp_sqlite_look_up,
    0,
    1,
    ngx_mcp_sqlite_status
};


static ngx_int_t
ngx_mcp_sqlite_create(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *argument)
{
    ngx_mcp_sqlite_t  *st;

    st = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_sqlite_t));
    if (st == NULL) {
        return NGX_ERROR;
    }

    st->path = *argument;
    zone->store_data = st;

    return NGX_OK;
}


/* "sync=", at most once */

static ngx_int_t
ngx_mcp_sqlite_param(ngx_mcp_zone_t *zone, ngx_str_t *arg)
{
    ngx_uint_t         i;
    ngx_mcp_sqlite_t  *st;
    static struct {
        ngx_str_t   name;
        ngx_uint_t  sync;
    } syncs[] = {
        { ngx_string("sync=always"), NGX_MCP_SYNC_ALWAYS },
        { ngx_string("sync=everysec"), NGX_MCP_SYNC_EVERYSEC },
        { ngx_string("sync=off"), NGX_MCP_SYNC_OFF }
    };

    st = zone->store_data;

    for (i = 0; i < sizeof(syncs) / sizeof(syncs[0]); i++) {
        if (arg->len == syncs[i].name.len && !st->synced
            && ngx_strncmp(arg->data, syncs[i].name.data, arg->len) == 0)
        {
            st->sync = syncs[i].sync;
            st->synced = 1;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static ngx_uint_t
ngx_mcp_sqlite_same(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *other)
{
    ngx_str_t  *a, *b;

    a = &ngx_mcp_sqlite_of(zone)->path;
    b = &ngx_mcp_sqlite_of(other)->path;

    return a->len == b->len && ngx_memcmp(a->data, b->data, a->len) == 0;
}


static ngx_int_t
ngx_mcp_sqlite_init_zone(ngx_mcp_zone_t *zone, ngx_uint_t kept)
{
    ngx_mcp_save_attach(zone->table, kept);

    /* no value can be larger than the zone */
    ngx_mcp_sqlite_of(zone)->db.longest = zone->shm_zone->shm.size;

    return kept ? ngx_mcp_path_check(zone) : ngx_mcp_attach_zone(zone);
}


static void
ngx_mcp_sqlite_status(ngx_mcp_zone_t *zone, ngx_mcp_op_stats_t *stats)
{
    ngx_mcp_table_t  *t;

    t = zone->table;

    ngx_mcp_lock_read(t);

    stats->disk = t->sh->disk;
    stats->unsaved = ngx_mcp_save_count_locked(t);

    ngx_mcp_unlock(t);
}


#endif /* NGX_MCP_SQLITE_STORE */
