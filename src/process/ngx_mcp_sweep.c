
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_sweep.h"
#include "ngx_mcp_table.h"
#include "ngx_mcp_lock.h"


/*
 * Each process checks the sweep at this interval, in ms.  If the sweep is late
 * by so many ms, because the sweeper died or is slow, it becomes the sweeper.
 */
#define NGX_MCP_SWEEP_LOOK   2000
#define NGX_MCP_SWEEP_LATE   500

/* ms between two batches, so that requests are handled in between */
#define NGX_MCP_SWEEP_PAUSE  1


static void ngx_mcp_sweep_handler(ngx_event_t *ev);


/*
 * swept() handles one batch of due tasks.  If it returns NGX_AGAIN, the batch
 * completes later, and ngx_mcp_sweep_at() is called then.
 */

void
ngx_mcp_sweep_init(ngx_cycle_t *cycle, ngx_mcp_local_t *local,
    ngx_int_t (*swept)(void *data))
{
    local->swept = swept;
    local->dummy.fd = (ngx_socket_t) -1;
    local->dummy.data = local;

    local->sweep.handler = ngx_mcp_sweep_handler;
    local->sweep.data = &local->dummy;
    local->sweep.log = cycle->log;
    local->sweep.cancelable = 1;

    ngx_add_timer(&local->sweep, NGX_MCP_SWEEP_PAUSE);
}


static void
ngx_mcp_sweep_handler(ngx_event_t *ev)
{
    uint64_t           now;
    ngx_msec_t         delay;
    ngx_uint_t         under_way;
    ngx_connection_t  *c;
    ngx_mcp_table_t   *t;
    ngx_mcp_local_t   *local;

    c = ev->data;
    local = c->data;
    t = local->table;
    now = ngx_current_msec;
    delay = NGX_MCP_SWEEP_LOOK;
    under_way = 0;

    /*
     * read without the lock: a stale value delays a sweep to the next check,
     * or causes one more.  If a stopped process seems to hold the lock, this
     * one does not wait for it.
     */

    if (t->sh->sweep_at <= now
        && (t->sh->sweeper == (uint64_t) ngx_pid
            || t->sh->sweep_at + NGX_MCP_SWEEP_LATE <= now)
        && ngx_mcp_lock_held(t) == 0)
    {
        under_way = (local->swept(local->data) == NGX_AGAIN);
    }

    if (t->recovered) {
        t->recovered = 0;

        ngx_log_error(NGX_LOG_WARN, ev->log, 0,
                      "zone \"%V\" was recovered after a process died while "
                      "changing it", local->name);
    }

    /* a batch under way sets the timer when it completes */

    if (!under_way && t->sh->sweeper == (uint64_t) ngx_pid
        && t->sh->sweep_at < now + delay)
    {
        delay = (t->sh->sweep_at > now)
                ? (ngx_msec_t) (t->sh->sweep_at - now)
                : NGX_MCP_SWEEP_PAUSE;
    }

    ngx_add_timer(ev, delay);
}


/* a task is due at that time (monotonic, ms), maybe before the next check */

void
ngx_mcp_sweep_at(ngx_mcp_local_t *local, uint64_t time)
{
    ngx_msec_t  delay;

    delay = (time > ngx_current_msec) ? (ngx_msec_t) (time - ngx_current_msec)
                                      : NGX_MCP_SWEEP_PAUSE;

    if (delay < NGX_MCP_SWEEP_LOOK) {
        ngx_add_timer(&local->sweep, delay);
    }
}
