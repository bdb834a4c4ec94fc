
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Functions of a zone for layers that do not access its table. */


#include "ngx_mcp_zone.h"
#include "ngx_mcp_op.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_table.h"


static void ngx_mcp_zone_swept(ngx_mcp_op_t *op);


/*
 * These functions read the header without the lock.  The values either never
 * change, or a wrong one only causes another look.
 */


/* number of the last change */

uint64_t
ngx_mcp_zone_changes(ngx_mcp_zone_t *zone)
{
    return zone->table->sh->seq;
}


/* incremented when a worker is drained or resumed */

uint32_t
ngx_mcp_zone_drains(ngx_mcp_zone_t *zone)
{
    return zone->table->sh->drains;
}


/* whether processes hold calls or unannounced tasks, which others take over */

ngx_uint_t
ngx_mcp_zone_held(ngx_mcp_zone_t *zone)
{
    ngx_mcp_header_t  *sh;

    sh = zone->table->sh;

    return sh->held.head != 0 || sh->unannounced != 0;
}


/* the seal identifies the session */

ngx_uint_t
ngx_mcp_zone_session_ended(ngx_mcp_zone_t *zone, uint64_t seal)
{
    volatile uint64_t  *set, *end;

    set = ngx_mcp_ended(zone->table, seal);

    for (end = set + NGX_MCP_SESSION_SET; set < end; set++) {
        if (*set == seal) {
            return 1;
        }
    }

    return 0;
}


uint32_t
ngx_mcp_zone_hash(ngx_mcp_zone_t *zone, ngx_uint_t kind, ngx_str_t *name)
{
    return ngx_mcp_name_hash(zone->table, kind, name);
}


/* handles one batch of due tasks; NGX_AGAIN: a sweep is pending */

ngx_int_t
ngx_mcp_zone_sweep(void *data)
{
    ngx_mcp_zone_t *zone = data;

    ngx_int_t            rc;
    ngx_mcp_op_sweep_t  *op;

    if (zone->sweeping) {
        return NGX_AGAIN;
    }

    op = &zone->sweep;

    ngx_memzero(op, sizeof(ngx_mcp_op_sweep_t));
    op->op.type = NGX_MCP_OP_SWEEP;
    op->op.detached = 1;
    op->op.handler = ngx_mcp_zone_swept;
    op->op.data = zone;
    op->limit = NGX_MCP_SWEEP_BATCH;

    rc = ngx_mcp_submit(zone, &op->op);

    if (rc == NGX_AGAIN) {
        zone->sweeping = 1;
        return NGX_AGAIN;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp tasks sweep of zone \"%V\": %ui done, next at %uL",
                   &zone->name, op->done, op->next);

    return rc;
}


static void
ngx_mcp_zone_swept(ngx_mcp_op_t *op)
{
    ngx_mcp_zone_t  *zone;

    zone = op->data;
    zone->sweeping = 0;

    if (op->reason == NGX_MCP_OK && zone->sweep_at) {
        zone->sweep_at(zone->local, zone->sweep.next);
    }
}
