
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The memory of a zone: the size it needs, creating it and attaching to it. */


#include "ngx_mcp_shm.h"


/* 0, or the size that max_tasks needs, if this size is too small */

size_t
ngx_mcp_shm_zone_need(size_t size, uint64_t max_tasks)
{
    size_t            need;
    ngx_mcp_layout_t  l;

    for (need = size;
         ngx_mcp_table_layout(&l, ngx_mcp_table_usable(need), max_tasks)
         != NGX_OK;
         need += ngx_max(need / 64, ngx_pagesize))
    {
        /* void */
    }

    return (need == size) ? 0 : need;
}


/*
 * Whether the tasks of the old zone fit into a new one.  This reads without
 * the lock: if more tasks are added, loading them into the new zone fails.
 */

ngx_uint_t
ngx_mcp_shm_zone_fits(ngx_mcp_zone_t *old, size_t size, uint64_t max_tasks)
{
    ngx_mcp_header_t  *sh;
    ngx_mcp_layout_t   l;

    sh = old->table->sh;

    return ngx_mcp_table_layout(&l, ngx_mcp_table_usable(size), max_tasks)
           == NGX_OK
           && sh->slot.used <= l.tasks && sh->block.used < l.blocks;
}


ngx_int_t
ngx_mcp_shm_zone_create(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) zone->shm_zone->shm.addr;

    if (ngx_mcp_table_create(zone->table, shpool, zone->max_tasks) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "zone \"%V\" cannot be initialized: it is too small, "
                      "or no random numbers are available", &zone->name);
        return NGX_ERROR;
    }

    zone->secret = zone->table->sh->secret;

    return NGX_OK;
}


/* the zone exists and was created by an earlier configuration */

ngx_int_t
ngx_mcp_shm_zone_attach(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    ngx_slab_pool_t   *shpool;
    ngx_mcp_header_t  *sh;

    shpool = (ngx_slab_pool_t *) zone->shm_zone->shm.addr;
    sh = shpool->data;

    if (sh == NULL
        || sh->magic != NGX_MCP_MAGIC
        || sh->layout != NGX_MCP_LAYOUT
        || sh->slot_size != sizeof(ngx_mcp_slot_t))
    {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "zone \"%V\" was created by an incompatible version "
                      "of the mcp_tasks module; restart nginx to create it "
                      "again", &zone->name);
        return NGX_ERROR;
    }

    if (sh->max_tasks != zone->max_tasks) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "max_tasks of zone \"%V\" cannot be changed from "
                      "%uL to %uL while it is in use; restart nginx to "
                      "change it", &zone->name, sh->max_tasks,
                      zone->max_tasks);
        return NGX_ERROR;
    }

    ngx_mcp_table_attach(zone->table, shpool);
    zone->secret = zone->table->sh->secret;

    return NGX_OK;
}
