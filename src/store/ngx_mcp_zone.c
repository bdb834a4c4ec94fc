
#include "ngx_mcp_zone.h"
#include "ngx_mcp_op.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_table.h"


static void ngx_mcp_zone_swept(ngx_mcp_op_t *op);


/*
 * Words of the header that never change, or that may be read without the
 * lock, since whoever reads them looks again.
 */


/* the number of the last change */

uint64_t
ngx_mcp_zone_changes(ngx_mcp_zone_t *zone)
{
    return zone->table->sh->seq;
}


/* grows when a worker is to drain, or to go on */

uint32_t
ngx_mcp_zone_drains(ngx_mcp_zone_t *zone)
{
    return zone->table->sh->drains;
}


/* whether processes have anything that they would leave behind */

ngx_uint_t
ngx_mcp_zone_held(ngx_mcp_zone_t *zone)
{
    ngx_mcp_header_t  *sh;

    sh = zone->table->sh;

    return sh->held.head != 0 || sh->unannounced != 0;
}


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


/* lets time pass for one batch of tasks; NGX_AGAIN: that is under way */

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
