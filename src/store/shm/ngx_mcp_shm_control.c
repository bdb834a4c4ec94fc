
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Control by an operator: a paused tool starts no more tasks, and a draining
 * worker receives no more tasks, until they are resumed.  Both are flags in
 * the entries of the statistics, which survive a crash.
 */


#include "ngx_mcp_shm.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"


static void ngx_mcp_pause_locked(ngx_mcp_table_t *t, ngx_uint_t entry,
    uint32_t hash, ngx_uint_t on);


ngx_int_t
ngx_mcp_shm_pause(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_control_t *op = (ngx_mcp_op_control_t *) o;

    uint32_t          hash;
    ngx_uint_t        entry;
    ngx_mcp_table_t  *t;

    t = zone->table;
    hash = ngx_mcp_name_hash(t, NGX_MCP_TOOL, &op->name);

    ngx_mcp_lock(t);

    entry = ngx_mcp_stats_is_other(&op->name)
            ? NGX_MCP_OTHER
            : ngx_mcp_stats_find_tool_locked(t, &op->name, hash);

    if (entry < t->sh->tool_stats) {
        ngx_mcp_pause_locked(t, entry, hash, op->on);

    } else {
        o->reason = NGX_MCP_TOOL_NOT_FOUND;
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}


static void
ngx_mcp_pause_locked(ngx_mcp_table_t *t, ngx_uint_t entry, uint32_t hash,
    ngx_uint_t on)
{
    t->tool_stats[entry].paused = (on != 0);

    /* background calls in the queue: one of another tool may be the next */

    ngx_mcp_signal_name_locked(t, NGX_MCP_CAPACITY);

    if (on) {
        return;
    }

    /* workers waiting for tasks of the tool */

    if (entry == NGX_MCP_OTHER) {
        /* the tools that share this entry are unknown */
        ngx_mcp_signal_all_locked(t);

    } else {
        ngx_mcp_signal_name_locked(t, hash);
    }
}


ngx_int_t
ngx_mcp_shm_drain(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_op_control_t *op = (ngx_mcp_op_control_t *) o;

    uint32_t          hash;
    ngx_uint_t        entry;
    ngx_mcp_table_t  *t;

    t = zone->table;
    hash = ngx_mcp_name_hash(t, NGX_MCP_NAMES, &op->name);

    ngx_mcp_lock(t);

    entry = ngx_mcp_stats_find_worker_locked(t, &op->name, hash);

    if (entry < t->sh->worker_stats) {
        t->worker_stats[entry].draining = (op->on != 0);
        t->sh->drains++;

        /* the worker may be waiting for a task */

        ngx_mcp_signal_name_locked(t, hash);

    } else {
        o->reason = NGX_MCP_WORKER_NOT_FOUND;
    }

    ngx_mcp_unlock(t);

    return NGX_OK;
}
