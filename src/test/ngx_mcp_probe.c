
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Test build only: one operation on the table for each HTTP request, with
 * arguments in the query, and control of failpoints.  Each response contains
 * the pid of the process.
 */


#include "ngx_mcp_conf.h"
#include "ngx_mcp_http.h"
#include "ngx_mcp_wake.h"
#include "ngx_mcp_late.h"
#include "ngx_mcp_probe.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_TEST)


typedef struct {
    ngx_http_request_t  *r;
    ngx_mcp_zone_t      *zone;
    u_char              *pos;
    u_char              *end;
} ngx_mcp_probe_t;


typedef struct {
    ngx_str_t  name;
    void     (*handler)(ngx_mcp_probe_t *p);
} ngx_mcp_probe_op_t;


/* what a response contains; with more, the lock would be taken twice */
#define NGX_MCP_PROBE_WANT                                                    \
    (NGX_MCP_WANT_ALL & ~(NGX_MCP_WANT_WORKER                                 \
                          | NGX_MCP_WANT_HISTORY))


static ngx_int_t ngx_mcp_probe_handler(ngx_http_request_t *r);
static void ngx_mcp_probe_create(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_get(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_list(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_claim(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_event(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_delete(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_leave(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_stats(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_check(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_die(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_waits(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_hold(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_late(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_stream(ngx_mcp_probe_t *p);


static ngx_mcp_probe_op_t  ngx_mcp_probe_ops[] = {
    { ngx_string("create"), ngx_mcp_probe_create },
    { ngx_string("get"), ngx_mcp_probe_get },
    { ngx_string("list"), ngx_mcp_probe_list },
    { ngx_string("claim"), ngx_mcp_probe_claim },
    { ngx_string("event"), ngx_mcp_probe_event },
    { ngx_string("delete"), ngx_mcp_probe_delete },
    { ngx_string("leave"), ngx_mcp_probe_leave },
    { ngx_string("stats"), ngx_mcp_probe_stats },
    { ngx_string("check"), ngx_mcp_probe_check },
    { ngx_string("die"), ngx_mcp_probe_die },
    { ngx_string("waits"), ngx_mcp_probe_waits },
    { ngx_string("hold"), ngx_mcp_probe_hold },
    { ngx_string("late"), ngx_mcp_probe_late },
    { ngx_string("stream"), ngx_mcp_probe_stream },
    { ngx_null_string, NULL }
};


char *
ngx_mcp_probe(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    value = cf->args->elts;

    lcf->zone = ngx_mcp_zone_arg(cf, &value[1]);
    if (lcf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_mcp_probe_handler;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_mcp_probe_handler(ngx_http_request_t *r)
{
    ngx_str_t            name, answer;
    ngx_mcp_probe_t      p;
    ngx_mcp_loc_conf_t  *lcf;
    ngx_mcp_probe_op_t  *op;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    p.r = r;
    p.zone = lcf->zone;
    answer.data = ngx_pnalloc(r->pool, 65536);

    if (answer.data == NULL
        || ngx_http_arg(r, (u_char *) "op", 2, &name) != NGX_OK)
    {
        return NGX_HTTP_BAD_REQUEST;
    }

    p.end = answer.data + 65536;
    p.pos = ngx_slprintf(answer.data, p.end, "{\"pid\":%P", ngx_pid);

    for (op = ngx_mcp_probe_ops; op->handler; op++) {
        if (op->name.len == name.len
            && ngx_strncmp(op->name.data, name.data, name.len) == 0)
        {
            op->handler(&p);
            break;
        }
    }

    p.pos = ngx_slprintf(p.pos, p.end, "}\n");
    answer.len = p.pos - answer.data;

    return ngx_mcp_send(r, NGX_HTTP_OK, &answer, 1);
}


static ngx_str_t
ngx_mcp_probe_arg(ngx_mcp_probe_t *p, const char *name)
{
    u_char     *src, *dst;
    ngx_str_t   value;

    if (ngx_http_arg(p->r, (u_char *) name, ngx_strlen(name), &value)
        != NGX_OK)
    {
        ngx_str_null(&value);
        return value;
    }

    src = value.data;
    dst = ngx_pnalloc(p->r->pool, value.len);

    if (dst) {
        value.data = dst;
        ngx_unescape_uri(&dst, &src, value.len, 0);
        value.len = dst - value.data;
    }

    return value;
}


static uint64_t
ngx_mcp_probe_number(ngx_mcp_probe_t *p, const char *name, uint64_t number)
{
    ngx_str_t  value;

    value = ngx_mcp_probe_arg(p, name);

    return value.len ? (uint64_t) ngx_atoi(value.data, value.len) : number;
}


static void
ngx_mcp_probe_submit(ngx_mcp_probe_t *p, ngx_mcp_op_t *op)
{
    op->pool = p->r->pool;

    /* in memory and at once, with any store */

    if (ngx_mcp_shm_submit(p->zone, op) != NGX_OK) {
        p->pos = ngx_slprintf(p->pos, p->end, ",\"reason\":\"error\"");
        return;
    }

    p->pos = ngx_slprintf(p->pos, p->end, ",\"reason\":\"%V\"",
                          ngx_mcp_reason_name(op->reason));
}


static void
ngx_mcp_probe_view(ngx_mcp_probe_t *p, ngx_mcp_view_t *v)
{
    u_char  id[NGX_MCP_ID_TEXT];

    p->pos = ngx_slprintf(p->pos, p->end,
                          ",\"id\":\"%*s\",\"state\":\"%V\",\"version\":%uL,"
                          "\"lease\":\"%uxL\",\"attempt\":%ui,"
                          "\"params\":\"%V\",\"result\":\"%V\"",
                          (size_t) (ngx_mcp_id_text(id, &v->id)
                                    - id), id,
                          ngx_mcp_state_name(v->task.state),
                          v->task.version, v->task.lease_token,
                          (ngx_uint_t) v->task.attempt,
                          &v->payload[NGX_MCP_PARAMS],
                          &v->payload[NGX_MCP_RESULT]);
}


static void
ngx_mcp_probe_create(ngx_mcp_probe_t *p)
{
    uint64_t             i, n;
    ngx_mcp_op_create_t  op;

    n = ngx_mcp_probe_number(p, "n", 1);

    for (i = 0; i < n; i++) {
        ngx_memzero(&op, sizeof(op));
        op.op.type = NGX_MCP_OP_CREATE;
        op.op.pool = p->r->pool;
        op.task.owner = ngx_mcp_probe_arg(p, "owner");
        op.task.tool = ngx_mcp_probe_arg(p, "tool");
        op.task.params = ngx_mcp_probe_arg(p, "params");
        op.task.ttl = ngx_mcp_probe_number(p, "ttl", 3600000);
        op.task.policy.lease = ngx_mcp_probe_number(p, "lease", 60000);
        op.task.policy.queue_timeout = 600000;
        op.task.policy.run_timeout = 3600000;
        op.task.policy.attempts = 3;
        op.task.policy.backoff = 10;

        if (i + 1 < n) {
            (void) ngx_mcp_shm_submit(p->zone, &op.op);
        }
    }

    ngx_mcp_probe_submit(p, &op.op);

    if (op.op.reason == NGX_MCP_OK) {
        ngx_mcp_probe_view(p, &op.view);
    }
}


static void
ngx_mcp_probe_get(ngx_mcp_probe_t *p)
{
    ngx_str_t         id, owner;
    ngx_mcp_op_get_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_GET;
    op.want = NGX_MCP_PROBE_WANT;

    id = ngx_mcp_probe_arg(p, "id");
    owner = ngx_mcp_probe_arg(p, "owner");
    op.owner = &owner;
    op.asker = ngx_mcp_probe_number(p, "asker", 0);
    (void) ngx_mcp_id_parse(&op.id, &id);

    ngx_mcp_probe_submit(p, &op.op);

    if (op.op.reason == NGX_MCP_OK) {
        ngx_mcp_probe_view(p, &op.view);
    }
}


static void
ngx_mcp_probe_list(ngx_mcp_probe_t *p)
{
    ngx_str_t          cursor;
    ngx_mcp_op_list_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LIST;
    op.owner = ngx_mcp_probe_arg(p, "owner");
    op.limit = ngx_mcp_probe_number(p, "limit", 50);
    cursor = ngx_mcp_probe_arg(p, "cursor");

    if (cursor.len
        && ngx_mcp_cursor_parse(p->zone, &cursor, &op.owner,
                                &op.after)
           != NGX_OK)
    {
        p->pos = ngx_slprintf(p->pos, p->end,
                              ",\"reason\":\"invalid_cursor\"");
        return;
    }

    ngx_mcp_probe_submit(p, &op.op);

    p->pos = ngx_slprintf(p->pos, p->end, ",\"n\":%ui", op.n);

    if (op.next.seq) {
        p->pos = ngx_slprintf(p->pos, p->end, ",\"cursor\":\"");
        p->pos = ngx_mcp_cursor_text(p->zone, p->pos, &op.owner, &op.next);
        p->pos = ngx_slprintf(p->pos, p->end, "\"");
    }
}


static void
ngx_mcp_probe_claim(ngx_mcp_probe_t *p)
{
    ngx_str_t           tool;
    ngx_mcp_op_claim_t  op;

    tool = ngx_mcp_probe_arg(p, "tool");

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CLAIM;
    op.tools = &tool;
    op.ntools = 1;
    op.want = NGX_MCP_PROBE_WANT;

    ngx_mcp_probe_submit(p, &op.op);

    if (op.n) {
        ngx_mcp_probe_view(p, op.views);
    }
}


static void
ngx_mcp_probe_event(ngx_mcp_probe_t *p)
{
    u_char               buf[sizeof("ffffffffffffffff")];
    ngx_str_t            id, lease;
    ngx_mcp_op_update_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.want = NGX_MCP_PROBE_WANT;
    op.event.type = ngx_mcp_probe_number(p, "event", 0);
    op.event.progress = -1;
    op.change.payload[NGX_MCP_RESULT] = ngx_mcp_probe_arg(p, "result");

    id = ngx_mcp_probe_arg(p, "id");
    (void) ngx_mcp_id_parse(&op.id, &id);

    lease = ngx_mcp_probe_arg(p, "lease");
    (void) ngx_cpystrn(buf, lease.data, ngx_min(lease.len + 1, sizeof(buf)));
    op.event.lease_token = strtoull((char *) buf, NULL, 16);

    ngx_mcp_probe_submit(p, &op.op);

    if (op.op.reason == NGX_MCP_OK) {
        ngx_mcp_probe_view(p, &op.view);
    }
}


static void
ngx_mcp_probe_delete(ngx_mcp_probe_t *p)
{
    ngx_str_t            id;
    ngx_mcp_op_delete_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_DELETE;
    id = ngx_mcp_probe_arg(p, "id");
    (void) ngx_mcp_id_parse(&op.id, &id);

    ngx_mcp_probe_submit(p, &op.op);
}


/* as the stream that asked the questions of a task */

static void
ngx_mcp_probe_leave(ngx_mcp_probe_t *p)
{
    ngx_str_t          text;
    ngx_mcp_id_t       id;
    ngx_mcp_op_wait_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LEAVE;
    op.id = &id;
    op.asker = ngx_mcp_probe_number(p, "asker", 0);
    text = ngx_mcp_probe_arg(p, "id");
    (void) ngx_mcp_id_parse(&id, &text);

    ngx_mcp_probe_submit(p, &op.op);
}


static void
ngx_mcp_probe_stats(ngx_mcp_probe_t *p)
{
    ngx_uint_t          i;
    ngx_mcp_op_stats_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_STATS;

    ngx_mcp_probe_submit(p, &op.op);

    for (i = 1; i < NGX_MCP_STATES; i++) {
        p->pos = ngx_slprintf(p->pos, p->end, ",\"%V\":%uD",
                              ngx_mcp_state_name(i), op.states[i]);
    }

    p->pos = ngx_slprintf(p->pos, p->end,
                          ",\"slots\":%uD,\"used\":%uD,\"blocks\":%uD,"
                          "\"created\":%uL,\"expired\":%uL,\"sweeps\":%uL,"
                          "\"swept\":%uL,\"leases_lost\":%uL,"
                          "\"recoveries\":%uL,\"changes_dropped\":%uL",
                          op.slots, op.slots_used, op.blocks,
                          op.task_counters.created, op.count.expired,
                          op.count.sweeps, op.count.swept,
                          op.task_counters.leases_lost,
                          op.count.recoveries, op.count.changes_dropped);
}


static void
ngx_mcp_probe_check(ngx_mcp_probe_t *p)
{
    const char  *err;

    ngx_mcp_lock_read(p->zone->table);
    err = ngx_mcp_check_locked(p->zone->table);
    ngx_mcp_unlock(p->zone->table);

    p->pos = ngx_slprintf(p->pos, p->end, ",\"check\":\"%s\"",
                          err ? err : "ok");
}


/* kills or stops this process when it passes the failpoint */

static void
ngx_mcp_probe_die(ngx_mcp_probe_t *p)
{
    ngx_str_t    label;
    static char  buf[64];

    label = ngx_mcp_probe_arg(p, "at");
    (void) ngx_cpystrn((u_char *) buf, label.data,
                       ngx_min(label.len + 1, sizeof(buf)));

    ngx_mcp_failpoint_signal((int) ngx_mcp_probe_number(p, "signal",
                                                        SIGKILL));
    ngx_mcp_failpoint_arm(buf, 1);
}


/*
 * How many requests wait in the zone, and for the task; how often this process
 * was woken for waiting requests; and the pid of the writer, which is woken by
 * all changes.
 */

static void
ngx_mcp_probe_waits(ngx_mcp_probe_t *p)
{
    ngx_str_t         text, owner;
    ngx_uint_t        zone, task;
    ngx_mcp_id_t      id;
    ngx_mcp_slot_t   *s;
    ngx_mcp_table_t  *t;

    t = p->zone->table;
    text = ngx_mcp_probe_arg(p, "id");
    owner = ngx_mcp_probe_arg(p, "owner");
    task = 0;

    ngx_mcp_lock_read(t);

    zone = t->sh->waiting;

    if (ngx_mcp_id_parse(&id, &text) == NGX_OK) {
        s = ngx_mcp_find_locked(t, &id, &owner, ngx_current_msec);

        if (s && s->epoch == t->sh->epoch) {
            task = s->waiting;
        }
    }

    ngx_mcp_unlock(t);

    p->pos = ngx_slprintf(p->pos, p->end,
                          ",\"zone\":%ui,\"task\":%ui,\"wakeups\":%ui,"
                          "\"writer\":%uA",
                          zone, task, ngx_mcp_wakeups,
                          ngx_mcp_save_of(t)->writer);
}


/*
 * How long all processes have held the lock since the last call, in ns;
 * "clock" is what measuring itself has added.  Sets the clock to use from now
 * on.
 */

static void
ngx_mcp_probe_hold(ngx_mcp_probe_t *p)
{
    uint64_t          i;
    ngx_mcp_hold_t    hold, none;
    ngx_mcp_table_t  *t;

    t = p->zone->table;

    ngx_mcp_lock_read(t);

    hold = t->sh->hold;

    ngx_memzero(&t->sh->hold, sizeof(ngx_mcp_hold_t));
    t->sh->hold.clock = ngx_mcp_probe_number(p, "clock", 0);

    ngx_mcp_unlock(t);

    ngx_memzero(&none, sizeof(ngx_mcp_hold_t));
    none.clock = hold.clock;

    for (i = 0; i < 10000; i++) {
        ngx_mcp_hold_begin(&none);
        ngx_mcp_hold_end(&none);
    }

    p->pos = ngx_slprintf(p->pos, p->end,
                          ",\"held\":%uL,\"rare\":%uL,\"longest\":%uL,"
                          "\"times\":%uL,\"clock\":%uL",
                          hold.sum, hold.rare, hold.longest, hold.times,
                          none.sum * hold.times / 10000);
}


/*
 * How often each operation was submitted to the late store, and how many are
 * pending in this process.  Sets what happens from now on.
 */

static void
ngx_mcp_probe_late(ngx_mcp_probe_t *p)
{
    ngx_uint_t     i;
    ngx_atomic_t  *count;

    count = ngx_mcp_late_count(p->zone);

    if (count) {
        *ngx_mcp_late_away(p->zone) = ngx_mcp_probe_number(p, "away",
                                                *ngx_mcp_late_away(p->zone));
    }

    p->pos = ngx_slprintf(p->pos, p->end, ",\"pending\":%ui,\"ops\":[",
                          ngx_mcp_late_pending);

    for (i = 0; count && i < NGX_MCP_OPS; i++) {
        p->pos = ngx_slprintf(p->pos, p->end, "%s%uA", i ? "," : "", count[i]);
    }

    p->pos = ngx_slprintf(p->pos, p->end, "]");
}


/* The number of a new stream in this process, as a string. */

static void
ngx_mcp_probe_stream(ngx_mcp_probe_t *p)
{
    p->pos = ngx_slprintf(p->pos, p->end, ",\"stream\":\"%016xL\"",
                          ngx_mcp_stream_new(p->zone->local));
}


#endif /* NGX_MCP_TEST */
