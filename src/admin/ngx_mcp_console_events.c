
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Changes of tasks, as an event stream for the console.  A stream sends a few
 * batches in a second, each with the current state of the tasks that have
 * changed.  Between the batches a change does not wake the worker process for
 * the stream, so that changes cost no more than without a console.
 */


#include "ngx_mcp_console.h"


/* rows in a batch, and ms between batches */
#define NGX_MCP_CONSOLE_BATCH  100
#define NGX_MCP_CONSOLE_REST   250

/* looks for one batch, if the criteria match few tasks */
#define NGX_MCP_CONSOLE_LOOKS  8

/* backlog of changes that causes a reset, and ms to wait after it */
#define NGX_MCP_CONSOLE_FAR    2000
#define NGX_MCP_CONSOLE_RESET  1000


typedef struct {
    ngx_mcp_wait_t    wait;       /* must be the first */
    ngx_mcp_wanted_t  wanted;
    ngx_mcp_cursor_t  after;      /* the last change read */
    ngx_uint_t        lost;       /* 1: send a reset */
} ngx_mcp_follow_t;


static ngx_int_t ngx_mcp_follow_look(ngx_mcp_wait_t *w);
static ngx_int_t ngx_mcp_follow_read(ngx_mcp_follow_t *f, ngx_mcp_out_t *out,
    ngx_uint_t *more);
static void ngx_mcp_follow_id(ngx_mcp_follow_t *f, ngx_mcp_out_t *out,
    uint64_t change);


/* GET api/events, with the criteria of the list */

ngx_int_t
ngx_mcp_console_events(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    const char          *err;
    ngx_mcp_follow_t    *f;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    f = ngx_pcalloc(r->pool, sizeof(ngx_mcp_follow_t));
    if (f == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    err = ngx_mcp_console_wanted(r, &f->wanted);

    if (err) {
        return ngx_mcp_problem_invalid(r, err);
    }

    /* an unknown change is of another incarnation of the zone */

    if (ngx_mcp_is_resumed(r)) {
        f->after.seq = ngx_mcp_last_change(r, lcf->zone);

        if (f->after.seq == 0
            || f->after.seq > ngx_mcp_zone_changes(lcf->zone))
        {
            f->after.seq = 0;
            f->lost = 1;
        }
    }

    ngx_mcp_wait_init(&f->wait, r, ctx);
    f->wait.watches = &f->wait.watch;
    f->wait.nwatches = 1;
    f->wait.watch.key = ngx_mcp_signal_name(NGX_MCP_ANY);
    f->wait.pin.kind = NGX_MCP_PIN_ZONE;
    f->wait.limited = 1;
    f->wait.streams = 1;
    f->wait.look = ngx_mcp_follow_look;
    f->wait.until = NGX_MCP_NEVER;

    return ngx_mcp_wait(&f->wait);
}


static ngx_int_t
ngx_mcp_follow_look(ngx_mcp_wait_t *w)
{
    ngx_int_t          rc;
    ngx_str_t          text;
    ngx_pool_t        *pool;
    ngx_uint_t         first, more;
    ngx_mcp_out_t      out;
    ngx_mcp_follow_t  *f;

    f = (ngx_mcp_follow_t *) w;
    first = (f->after.seq == 0 && f->after.hint == 0);

    if (!w->stream && ngx_mcp_wait_begin(w) == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (ngx_exiting) {
        return ngx_mcp_wait_close(w);
    }

    pool = ngx_create_pool(4096, w->r->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_out_init(&out, pool, 2048);
    rc = ngx_mcp_follow_read(f, &out, &more);

    w->not_before = ngx_current_msec + NGX_MCP_CONSOLE_REST;

    if (f->lost) {
        f->lost = 0;
        more = 0;
        w->not_before = ngx_current_msec + NGX_MCP_CONSOLE_RESET;
        ngx_mcp_out_lit(&out, "event: reset\ndata: {}\n");
        ngx_mcp_follow_id(f, &out, f->after.seq);
        ngx_mcp_out_lit(&out, "\n");

    } else if (first) {
        /* not an event: sets the id from which to resume */
        ngx_mcp_follow_id(f, &out, f->after.seq);
        ngx_mcp_out_lit(&out, "\n");
    }

    if (rc == NGX_OK) {
        rc = ngx_mcp_out_end(&out, &text);
    }

    if (rc == NGX_OK && text.len) {
        rc = ngx_mcp_wait_text(w, &text);
    }

    ngx_destroy_pool(pool);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    w->missed = (more != 0);

    return NGX_DECLINED;
}


/* writes a batch of rows; a row has no line feed, so it is one line of data */

static ngx_int_t
ngx_mcp_follow_read(ngx_mcp_follow_t *f, ngx_mcp_out_t *out, ngx_uint_t *more)
{
    uint64_t              last;
    ngx_uint_t            i, n, looks;
    ngx_mcp_wait_t       *w;
    ngx_mcp_op_recent_t   op;

    w = &f->wait;
    n = 0;
    looks = 0;
    *more = 0;

    do {
        ngx_memzero(&op, sizeof(ngx_mcp_op_recent_t));
        op.op.type = NGX_MCP_OP_RECENT;
        op.op.pool = out->pool;
        op.criteria = ngx_mcp_console_criteria(&f->wanted);
        op.changes = 1;
        op.after = f->after;
        op.limit = NGX_MCP_CONSOLE_BATCH - n;
        op.want = NGX_MCP_WANT_ROW;
        op.watch = 1;

        if (ngx_mcp_lookup(w->zone, &op.op) != NGX_OK) {
            return NGX_ERROR;
        }

        f->after = op.next;
        f->lost |= op.lost;

        for (i = 0; i < op.n; i++) {
            ngx_mcp_follow_id(f, out, op.views[i].changed);
            ngx_mcp_out_lit(out, "data: ");
            ngx_mcp_render_row(out, &op.views[i]);
            ngx_mcp_out_lit(out, "\n\n");
        }

        n += op.n;

    } while (op.more && n < NGX_MCP_CONSOLE_BATCH
             && ++looks < NGX_MCP_CONSOLE_LOOKS);

    *more = op.more;

    /* read without the lock: it need not be the latest number */

    last = ngx_mcp_zone_changes(w->zone);

    if (op.more && last > f->after.seq + NGX_MCP_CONSOLE_FAR) {
        f->lost = 1;
        f->after.seq = last;
        f->after.hint = 0;
    }

    return NGX_OK;
}


static void
ngx_mcp_follow_id(ngx_mcp_follow_t *f, ngx_mcp_out_t *out, uint64_t change)
{
    u_char  buf[NGX_MCP_CHANGE_LEN], *p;

    p = ngx_mcp_change_id(buf, f->wait.zone, change);

    ngx_mcp_out_lit(out, "id: ");
    ngx_mcp_out_add(out, buf, p - buf);
    ngx_mcp_out_lit(out, "\n");
}
