
#include "ngx_mcp_module.h"


/*
 * Each process looks after the sweep now and then: if the one whose job it is
 * has died, or fell behind, another takes it over.
 */
#define NGX_MCP_SWEEP_LOOK   2000
#define NGX_MCP_SWEEP_LATE   500

/* between two batches, so that requests get their turn */
#define NGX_MCP_SWEEP_PAUSE  1


static void ngx_mcp_sweep_handler(ngx_event_t *ev);
static void ngx_mcp_sweep_at(ngx_mcp_zone_t *zone, uint64_t time);


ngx_int_t
ngx_mcp_sweep_init(ngx_cycle_t *cycle, ngx_mcp_zone_conf_t *zcf)
{
    zcf->dummy.fd = (ngx_socket_t) -1;

    zcf->sweep.handler = ngx_mcp_sweep_handler;
    zcf->sweep.data = &zcf->dummy;
    zcf->sweep.log = cycle->log;
    zcf->sweep.cancelable = 1;
    zcf->dummy.data = zcf;

    zcf->zone.sweep_at = ngx_mcp_sweep_at;

    ngx_add_timer(&zcf->sweep, NGX_MCP_SWEEP_PAUSE);

    return NGX_OK;
}


static void
ngx_mcp_sweep_handler(ngx_event_t *ev)
{
    uint64_t              now;
    ngx_msec_t            delay;
    ngx_connection_t     *c;
    ngx_mcp_header_t     *sh;
    ngx_mcp_op_sweep_t    op;
    ngx_mcp_zone_conf_t  *zcf;

    c = ev->data;
    zcf = c->data;
    sh = zcf->zone.table.sh;
    now = ngx_current_msec;
    delay = NGX_MCP_SWEEP_LOOK;

    /* read without the lock: a wrong guess costs a look, not a task */

    if (sh->sweep_at <= now
        && (sh->sweeper == (uint64_t) ngx_pid
            || sh->sweep_at + NGX_MCP_SWEEP_LATE <= now))
    {
        ngx_memzero(&op, sizeof(ngx_mcp_op_sweep_t));
        op.op.type = NGX_MCP_OP_SWEEP;
        op.limit = NGX_MCP_SWEEP_BATCH;

        (void) ngx_mcp_submit(&zcf->zone, &op.op);

        ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ev->log, 0,
                       "mcp tasks sweep \"%V\": %ui done, next %uL",
                       &zcf->zone.name, op.done, op.next);
    }

    if (zcf->zone.table.recovered) {
        zcf->zone.table.recovered = 0;

        ngx_log_error(NGX_LOG_WARN, ev->log, 0,
                      "zone \"%V\" was left half-changed by a process that "
                      "died, and has been recovered", &zcf->zone.name);
    }

    if (sh->sweeper == (uint64_t) ngx_pid && sh->sweep_at < now + delay) {
        delay = (sh->sweep_at > now) ? (ngx_msec_t) (sh->sweep_at - now)
                                     : NGX_MCP_SWEEP_PAUSE;
    }

    ngx_add_timer(ev, delay);
}


/* something will be due before the next look */

static void
ngx_mcp_sweep_at(ngx_mcp_zone_t *zone, uint64_t time)
{
    ngx_msec_t            delay;
    ngx_mcp_zone_conf_t  *zcf;

    zcf = (ngx_mcp_zone_conf_t *) zone;

    delay = (time > ngx_current_msec) ? (ngx_msec_t) (time - ngx_current_msec)
                                      : NGX_MCP_SWEEP_PAUSE;

    if (delay < NGX_MCP_SWEEP_LOOK) {
        ngx_add_timer(&zcf->sweep, delay);
    }
}
