
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
#include "ngx_mcp_redis.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_TEST)


typedef struct ngx_mcp_probe_s  ngx_mcp_probe_t;

struct ngx_mcp_probe_s {
    ngx_http_request_t  *r;
    ngx_mcp_zone_t      *zone;
    ngx_str_t            answer;
    u_char              *pos;
    u_char              *end;

    ngx_mcp_op_t        *op;      /* that is submitted, or NULL */
    void               (*print)(ngx_mcp_probe_t *p);
    ngx_uint_t           left;    /* tasks to create */
    ngx_uint_t           later;   /* the response is sent by the handler */
};


typedef struct {
    ngx_str_t  name;
    void     (*handler)(ngx_mcp_probe_t *p);
} ngx_mcp_probe_op_t;


/* what a response contains; with more, the lock would be taken twice */
#define NGX_MCP_PROBE_WANT                                                    \
    (NGX_MCP_WANT_ALL & ~(NGX_MCP_WANT_WORKER                                 \
                          | NGX_MCP_WANT_HISTORY))


static ngx_int_t ngx_mcp_probe_handler(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_probe_send(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_print(ngx_mcp_probe_t *p, ngx_int_t rc);
static void ngx_mcp_probe_done(ngx_mcp_op_t *op);
static void ngx_mcp_probe_text(ngx_mcp_probe_t *p, const char *name,
    ngx_str_t *text);
static void ngx_mcp_probe_create(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_create_rest(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_create_one(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_created(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_get(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_got(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_list(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_listed(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_claim(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_claimed(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_event(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_changed(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_delete(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_leave(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_stats(ngx_mcp_probe_t *p);
static void ngx_mcp_probe_counted(ngx_mcp_probe_t *p);
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
    ngx_str_t            name;
    ngx_mcp_probe_t     *p;
    ngx_mcp_loc_conf_t  *lcf;
    ngx_mcp_probe_op_t  *op;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    p = ngx_pcalloc(r->pool, sizeof(ngx_mcp_probe_t) + 65536);

    if (p == NULL || ngx_http_arg(r, (u_char *) "op", 2, &name) != NGX_OK) {
        return NGX_HTTP_BAD_REQUEST;
    }

    p->r = r;
    p->zone = lcf->zone;
    p->answer.data = (u_char *) (p + 1);
    p->end = p->answer.data + 65536;
    p->pos = ngx_slprintf(p->answer.data, p->end, "{\"pid\":%P", ngx_pid);

    for (op = ngx_mcp_probe_ops; op->handler; op++) {
        if (op->name.len == name.len
            && ngx_strncmp(op->name.data, name.data, name.len) == 0)
        {
            op->handler(p);
            break;
        }
    }

    if (p->later) {
        r->main->count++;
        return NGX_DONE;
    }

    return ngx_mcp_probe_send(p);
}


static ngx_int_t
ngx_mcp_probe_send(ngx_mcp_probe_t *p)
{
    p->pos = ngx_slprintf(p->pos, p->end, "}\n");
    p->answer.len = p->pos - p->answer.data;

    return ngx_mcp_send(p->r, NGX_HTTP_OK, &p->answer, 1);
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


static void *
ngx_mcp_probe_new(ngx_mcp_probe_t *p, ngx_uint_t type, size_t size)
{
    p->op = ngx_pcalloc(p->r->pool, size);

    if (p->op) {
        p->op->type = type;
        p->op->pool = p->r->pool;
        p->op->handler = ngx_mcp_probe_done;
        p->op->data = p;
    }

    return p->op;
}


static void
ngx_mcp_probe_submit(ngx_mcp_probe_t *p)
{
    ngx_int_t  rc;

    /* in memory and at once, unless the tasks are elsewhere */

#if (NGX_MCP_REDIS)

    if (p->zone->store == &ngx_mcp_redis_store) {
        rc = ngx_mcp_submit(p->zone, p->op);

    } else

#endif

    {
        rc = ngx_mcp_shm_submit(p->zone, p->op);
    }

    if (rc == NGX_AGAIN) {
        p->later = 1;
        return;
    }

    p->later = 0;

    if (p->left == 0) {
        ngx_mcp_probe_print(p, rc);
    }
}


static void
ngx_mcp_probe_print(ngx_mcp_probe_t *p, ngx_int_t rc)
{
    if (rc != NGX_OK) {
        p->pos = ngx_slprintf(p->pos, p->end, ",\"reason\":\"error\"");
        return;
    }

    p->pos = ngx_slprintf(p->pos, p->end, ",\"reason\":\"%V\"",
                          ngx_mcp_reason_name(p->op->reason));

    if (p->print) {
        p->print(p);
    }
}


static void
ngx_mcp_probe_done(ngx_mcp_op_t *op)
{
    ngx_mcp_probe_t   *p;
    ngx_connection_t  *c;

    p = op->data;
    c = p->r->connection;
    p->later = 0;

    if (p->left) {
        ngx_mcp_probe_create_rest(p);

    } else {
        ngx_mcp_probe_print(p, NGX_OK);
    }

    if (!p->later) {
        ngx_http_finalize_request(p->r, ngx_mcp_probe_send(p));
        ngx_http_run_posted_requests(c);
    }
}


static void
ngx_mcp_probe_view(ngx_mcp_probe_t *p, ngx_mcp_view_t *v)
{
    u_char  id[NGX_MCP_ID_TEXT];

    p->pos = ngx_slprintf(p->pos, p->end,
                          ",\"id\":\"%*s\",\"state\":\"%V\",\"version\":%uL,"
                          "\"lease\":\"%uxL\",\"attempt\":%ui",
                          (size_t) (ngx_mcp_id_text(id, &v->id)
                                    - id), id,
                          ngx_mcp_state_name(v->task.state),
                          v->task.version, v->task.lease_token,
                          (ngx_uint_t) v->task.attempt);

    ngx_mcp_probe_text(p, "params", &v->payload[NGX_MCP_PARAMS]);
    ngx_mcp_probe_text(p, "result", &v->payload[NGX_MCP_RESULT]);
}


static void
ngx_mcp_probe_text(ngx_mcp_probe_t *p, const char *name, ngx_str_t *text)
{
    p->pos = ngx_slprintf(p->pos, p->end, ",\"%s\":\"", name);

    if ((size_t) (p->end - p->pos) > 6 * text->len) {
        p->pos = (u_char *) ngx_escape_json(p->pos, text->data, text->len);
    }

    p->pos = ngx_slprintf(p->pos, p->end, "\"");
}


/* with n: so many, and the response is for the last one */

static void
ngx_mcp_probe_create(ngx_mcp_probe_t *p)
{
    p->left = ngx_mcp_probe_number(p, "n", 1);

    ngx_mcp_probe_create_rest(p);
}


static void
ngx_mcp_probe_create_rest(ngx_mcp_probe_t *p)
{
    while (p->left && !p->later) {
        p->left--;
        ngx_mcp_probe_create_one(p);
    }
}


static void
ngx_mcp_probe_create_one(ngx_mcp_probe_t *p)
{
    ngx_mcp_op_create_t  *op;

    op = ngx_mcp_probe_new(p, NGX_MCP_OP_CREATE, sizeof(ngx_mcp_op_create_t));
    if (op == NULL) {
        return;
    }

    op->task.owner = ngx_mcp_probe_arg(p, "owner");
    op->task.tool = ngx_mcp_probe_arg(p, "tool");
    op->task.params = ngx_mcp_probe_arg(p, "params");
    op->task.ttl = ngx_mcp_probe_number(p, "ttl", 3600000);
    op->task.policy.lease = ngx_mcp_probe_number(p, "lease", 60000);
    op->task.policy.queue_timeout = 600000;
    op->task.policy.run_timeout = 3600000;
    op->task.policy.attempts = 3;
    op->task.policy.backoff = 10;

    p->print = ngx_mcp_probe_created;
    ngx_mcp_probe_submit(p);
}


static void
ngx_mcp_probe_created(ngx_mcp_probe_t *p)
{
    if (p->op->reason == NGX_MCP_OK) {
        ngx_mcp_probe_view(p, &((ngx_mcp_op_create_t *) p->op)->view);
    }
}


static void
ngx_mcp_probe_get(ngx_mcp_probe_t *p)
{
    ngx_str_t          id;
    ngx_mcp_op_get_t  *op;

    op = ngx_mcp_probe_new(p, NGX_MCP_OP_GET,
                           sizeof(ngx_mcp_op_get_t) + sizeof(ngx_str_t));
    if (op == NULL) {
        return;
    }

    op->want = NGX_MCP_PROBE_WANT;

    id = ngx_mcp_probe_arg(p, "id");
    op->owner = (ngx_str_t *) (op + 1);
    *op->owner = ngx_mcp_probe_arg(p, "owner");
    op->asker = ngx_mcp_probe_number(p, "asker", 0);
    (void) ngx_mcp_id_parse(&op->id, &id);

    p->print = ngx_mcp_probe_got;
    ngx_mcp_probe_submit(p);
}


static void
ngx_mcp_probe_got(ngx_mcp_probe_t *p)
{
    if (p->op->reason == NGX_MCP_OK) {
        ngx_mcp_probe_view(p, &((ngx_mcp_op_get_t *) p->op)->view);
    }
}


static void
ngx_mcp_probe_list(ngx_mcp_probe_t *p)
{
    ngx_str_t           cursor;
    ngx_mcp_op_list_t  *op;

    op = ngx_mcp_probe_new(p, NGX_MCP_OP_LIST, sizeof(ngx_mcp_op_list_t));
    if (op == NULL) {
        return;
    }

    op->owner = ngx_mcp_probe_arg(p, "owner");
    op->limit = ngx_mcp_probe_number(p, "limit", 50);
    cursor = ngx_mcp_probe_arg(p, "cursor");

    if (cursor.len
        && ngx_mcp_cursor_parse(p->zone, &cursor, &op->owner, &op->after)
           != NGX_OK)
    {
        p->pos = ngx_slprintf(p->pos, p->end,
                              ",\"reason\":\"invalid_cursor\"");
        return;
    }

    p->print = ngx_mcp_probe_listed;
    ngx_mcp_probe_submit(p);
}


static void
ngx_mcp_probe_listed(ngx_mcp_probe_t *p)
{
    ngx_mcp_op_list_t *op = (ngx_mcp_op_list_t *) p->op;

    p->pos = ngx_slprintf(p->pos, p->end, ",\"n\":%ui", op->n);

    if (op->next.seq) {
        p->pos = ngx_slprintf(p->pos, p->end, ",\"cursor\":\"");
        p->pos = ngx_mcp_cursor_text(p->zone, p->pos, &op->owner, &op->next);
        p->pos = ngx_slprintf(p->pos, p->end, "\"");
    }
}


static void
ngx_mcp_probe_claim(ngx_mcp_probe_t *p)
{
    ngx_mcp_op_claim_t  *op;

    op = ngx_mcp_probe_new(p, NGX_MCP_OP_CLAIM,
                           sizeof(ngx_mcp_op_claim_t) + sizeof(ngx_str_t));
    if (op == NULL) {
        return;
    }

    op->tools = (ngx_str_t *) (op + 1);
    op->tools[0] = ngx_mcp_probe_arg(p, "tool");
    op->ntools = 1;
    op->want = NGX_MCP_PROBE_WANT;

    p->print = ngx_mcp_probe_claimed;
    ngx_mcp_probe_submit(p);
}


static void
ngx_mcp_probe_claimed(ngx_mcp_probe_t *p)
{
    ngx_mcp_op_claim_t *op = (ngx_mcp_op_claim_t *) p->op;

    if (op->n) {
        ngx_mcp_probe_view(p, op->views);
    }
}


static void
ngx_mcp_probe_event(ngx_mcp_probe_t *p)
{
    u_char                buf[sizeof("ffffffffffffffff")];
    ngx_str_t             id, lease;
    ngx_mcp_op_update_t  *op;

    op = ngx_mcp_probe_new(p, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_op_update_t));
    if (op == NULL) {
        return;
    }

    op->want = NGX_MCP_PROBE_WANT;
    op->event.type = ngx_mcp_probe_number(p, "event", 0);
    op->event.progress = -1;
    op->change.payload[NGX_MCP_RESULT] = ngx_mcp_probe_arg(p, "result");

    id = ngx_mcp_probe_arg(p, "id");
    (void) ngx_mcp_id_parse(&op->id, &id);

    lease = ngx_mcp_probe_arg(p, "lease");
    (void) ngx_cpystrn(buf, lease.data, ngx_min(lease.len + 1, sizeof(buf)));
    op->event.lease_token = strtoull((char *) buf, NULL, 16);

    p->print = ngx_mcp_probe_changed;
    ngx_mcp_probe_submit(p);
}


static void
ngx_mcp_probe_changed(ngx_mcp_probe_t *p)
{
    if (p->op->reason == NGX_MCP_OK) {
        ngx_mcp_probe_view(p, &((ngx_mcp_op_update_t *) p->op)->view);
    }
}


static void
ngx_mcp_probe_delete(ngx_mcp_probe_t *p)
{
    ngx_str_t             id;
    ngx_mcp_op_delete_t  *op;

    op = ngx_mcp_probe_new(p, NGX_MCP_OP_DELETE, sizeof(ngx_mcp_op_delete_t));
    if (op == NULL) {
        return;
    }

    id = ngx_mcp_probe_arg(p, "id");
    (void) ngx_mcp_id_parse(&op->id, &id);

    ngx_mcp_probe_submit(p);
}


/* as the stream that asked the questions of a task */

static void
ngx_mcp_probe_leave(ngx_mcp_probe_t *p)
{
    ngx_str_t           text;
    ngx_mcp_op_wait_t  *op;

    op = ngx_mcp_probe_new(p, NGX_MCP_OP_LEAVE, sizeof(ngx_mcp_op_wait_t));
    if (op == NULL) {
        return;
    }

    op->id = &op->task;
    op->asker = ngx_mcp_probe_number(p, "asker", 0);
    text = ngx_mcp_probe_arg(p, "id");
    (void) ngx_mcp_id_parse(&op->task, &text);

    ngx_mcp_probe_submit(p);
}


static void
ngx_mcp_probe_stats(ngx_mcp_probe_t *p)
{
    if (ngx_mcp_probe_new(p, NGX_MCP_OP_STATS, sizeof(ngx_mcp_op_stats_t))) {
        p->print = ngx_mcp_probe_counted;
        ngx_mcp_probe_submit(p);
    }
}


static void
ngx_mcp_probe_counted(ngx_mcp_probe_t *p)
{
    ngx_uint_t           i;
    ngx_mcp_op_stats_t  *op;

    op = (ngx_mcp_op_stats_t *) p->op;

    for (i = 1; i < NGX_MCP_STATES; i++) {
        p->pos = ngx_slprintf(p->pos, p->end, ",\"%V\":%uD",
                              ngx_mcp_state_name(i), op->states[i]);
    }

    p->pos = ngx_slprintf(p->pos, p->end,
                          ",\"slots\":%uD,\"used\":%uD,\"blocks\":%uD,"
                          "\"created\":%uL,\"expired\":%uL,\"sweeps\":%uL,"
                          "\"swept\":%uL,\"leases_lost\":%uL,"
                          "\"recoveries\":%uL,\"changes_dropped\":%uL",
                          op->slots, op->slots_used, op->blocks,
                          op->task_counters.created, op->count.expired,
                          op->count.sweeps, op->count.swept,
                          op->task_counters.leases_lost,
                          op->count.recoveries, op->count.changes_dropped);
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
