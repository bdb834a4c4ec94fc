
#include <stdio.h>

#include "libcrash.h"
#include "ngx_http_mcp_tasks_recover.h"


#define NAME_60  "a name of sixty characters, which is just below the limit..."

static ngx_http_mcp_tasks_view_t   held;       /* a running task */
static ngx_http_mcp_tasks_view_t   asking;     /* one that waits for input */
static ngx_http_mcp_tasks_id_t     waiting;    /* one that is queued */
static char                        big[1500];


ngx_http_mcp_tasks_zone_t *
crash_zone(void)
{
    ngx_uint_t                   i;
    ngx_http_mcp_tasks_id_t      id;
    ngx_http_mcp_tasks_zone_t   *zone;
    ngx_http_mcp_tasks_view_t    v;

    ngx_current_msec = 100000;
    memset(big, 'b', sizeof(big) - 1);

    zone = test_zone(CRASH_ZONE, 24);

    for (i = 0; i < 10; i++) {
        (void) test_create(zone, i % 2 ? "alice" : "bob", i % 3 ? "dig" : "x",
                           i % 4 ? "{\"a\": 1}" : big, &id);
    }

    /* holes in slots and blocks, and every state */

    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_HTTP_MCP_TASKS_EV_COMPLETE,
                      v.task.lease, NGX_HTTP_MCP_TASKS_RESULT, "{\"r\": 1}");
    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_HTTP_MCP_TASKS_EV_RETRY, v.task.lease,
                      0, NULL);
    (void) test_claim(zone, "dig", &asking);
    (void) test_event(zone, &asking.id, NGX_HTTP_MCP_TASKS_EV_ASK,
                      asking.task.lease, NGX_HTTP_MCP_TASKS_REQUESTS, big);
    (void) test_claim(zone, "dig", &held);
    (void) test_event(zone, &held.id, NGX_HTTP_MCP_TASKS_EV_PROGRESS,
                      held.task.lease, NGX_HTTP_MCP_TASKS_MESSAGE, "half");
    (void) test_claim(zone, "x", &v);
    (void) test_delete(zone, &v.id);

    waiting = id;

    return zone;
}


static void
held_event(ngx_http_mcp_tasks_zone_t *zone, ngx_uint_t type, ngx_uint_t kind,
    const char *bytes)
{
    (void) test_event(zone, &held.id, type, held.task.lease, kind, bytes);
}


static void
run_create(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_create(zone, "alice", "dig", big, NULL);
}

static void
run_create_names(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_create(zone, NAME_60 NAME_60 NAME_60, "new_tool" NAME_60 "123",
                       "{}", NULL);
}

static void
run_create_token(ngx_http_mcp_tasks_zone_t *zone)
{
    test_token = "\"token\"";
    (void) test_create(zone, "alice", "dig", "{}", NULL);
    test_token = NULL;
}

static void
prepare_token(ngx_http_mcp_tasks_zone_t *zone)
{
    test_token = "\"token\"";
    (void) test_create(zone, "alice", "dig", "{}", &waiting);
    test_token = NULL;
}

static void
run_refused(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_event(zone, &waiting, NGX_HTTP_MCP_TASKS_EV_ANSWER, 0,
                      NGX_HTTP_MCP_TASKS_RESPONSES, big);
}

static void
run_claim(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_claim(zone, "x", NULL);
}

static void
run_heartbeat(ngx_http_mcp_tasks_zone_t *zone)
{
    held_event(zone, NGX_HTTP_MCP_TASKS_EV_HEARTBEAT, 0, NULL);
}

static void
run_progress(ngx_http_mcp_tasks_zone_t *zone)
{
    held_event(zone, NGX_HTTP_MCP_TASKS_EV_PROGRESS,
               NGX_HTTP_MCP_TASKS_MESSAGE, "three quarters");
}

static void
run_ask(ngx_http_mcp_tasks_zone_t *zone)
{
    held_event(zone, NGX_HTTP_MCP_TASKS_EV_ASK, NGX_HTTP_MCP_TASKS_REQUESTS,
               "{\"q\": {}}");
}

static void
run_answer(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_event(zone, &asking.id, NGX_HTTP_MCP_TASKS_EV_ANSWER_ALL, 0,
                      NGX_HTTP_MCP_TASKS_REQUESTS, "");
}

static void
run_complete(ngx_http_mcp_tasks_zone_t *zone)
{
    held_event(zone, NGX_HTTP_MCP_TASKS_EV_COMPLETE, NGX_HTTP_MCP_TASKS_RESULT,
               big);
}

static void
run_fail(ngx_http_mcp_tasks_zone_t *zone)
{
    held_event(zone, NGX_HTTP_MCP_TASKS_EV_FAIL, NGX_HTTP_MCP_TASKS_MESSAGE,
               "no");
}

static void
run_retry(ngx_http_mcp_tasks_zone_t *zone)
{
    held_event(zone, NGX_HTTP_MCP_TASKS_EV_RETRY, 0, NULL);
}

static void
run_release(ngx_http_mcp_tasks_zone_t *zone)
{
    held_event(zone, NGX_HTTP_MCP_TASKS_EV_RELEASE, 0, NULL);
}

static void
run_cancel(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_event(zone, &waiting, NGX_HTTP_MCP_TASKS_EV_CANCEL, 0,
                      NGX_HTTP_MCP_TASKS_MESSAGE, "changed my mind");
}

static void
run_delete(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_delete(zone, &asking.id);
}

static void
prepare_last_of_name(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_create(zone, NAME_60 NAME_60, NAME_60 NAME_60, big, &waiting);
}

static void
run_delete_last(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_delete(zone, &waiting);
}

/* leases lost, backoffs over, timeouts, tasks moving down the wheel */

static void
prepare_due(ngx_http_mcp_tasks_zone_t *zone)
{
    ngx_current_msec += 600000;
}

static void
prepare_expired(ngx_http_mcp_tasks_zone_t *zone)
{
    ngx_current_msec += 2 * 86400000;
}

static void
run_sweep(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_sweep(zone, 1000);
}

/* recovery may be cut short as well */

static void
prepare_dirty(ngx_http_mcp_tasks_zone_t *zone)
{
    ngx_memzero(zone->table.hash, 8);
    zone->table.sh->dirty = 1;
}

static void
prepare_journal(ngx_http_mcp_tasks_zone_t *zone)
{
    ngx_http_mcp_tasks_header_t  *sh;
    ngx_http_mcp_tasks_slot_t    *s;

    sh = zone->table.sh;
    s = ngx_http_mcp_tasks_find_locked(&zone->table, &waiting, NULL, 0);

    sh->change = s->body;
    sh->change.task.version++;
    sh->journal = ngx_http_mcp_tasks_index(&zone->table, s);
    sh->dirty = 1;
}

static void
run_recover(ngx_http_mcp_tasks_zone_t *zone)
{
    (void) test_get(zone, &waiting, NULL);
}


crash_case_t  crash_cases[] = {
    { "create", NULL, run_create },
    { "create with new names", NULL, run_create_names },
    { "create with a token", NULL, run_create_token },
    { "delete with a token", prepare_token, run_delete_last },
    { "refused", NULL, run_refused },
    { "claim", NULL, run_claim },
    { "heartbeat", NULL, run_heartbeat },
    { "progress", NULL, run_progress },
    { "ask", NULL, run_ask },
    { "answer", NULL, run_answer },
    { "complete", NULL, run_complete },
    { "fail", NULL, run_fail },
    { "retry", NULL, run_retry },
    { "release", NULL, run_release },
    { "cancel", NULL, run_cancel },
    { "delete", NULL, run_delete },
    { "delete the last of a name", prepare_last_of_name, run_delete_last },
    { "sweep", prepare_due, run_sweep },
    { "expiry", prepare_expired, run_sweep },
    { "recovery", prepare_dirty, run_recover },
    { "recovery of a change", prepare_journal, run_recover },
    { NULL, NULL, NULL }
};


static int
older(const void *a, const void *b)
{
    const crash_record_t  *x = a, *y = b;

    return (x->seq > y->seq) - (x->seq < y->seq);
}


void
crash_dump(ngx_http_mcp_tasks_zone_t *zone, crash_dump_t *dump)
{
    uint32_t                     n;
    ngx_uint_t                   i;
    crash_record_t              *r;
    ngx_http_mcp_tasks_slot_t   *s;
    ngx_http_mcp_tasks_view_t    v;
    ngx_http_mcp_tasks_table_t  *t;

    t = &zone->table;
    dump->n = 0;

    for (n = 1; n < t->sh->slot.fresh; n++) {
        s = ngx_http_mcp_tasks_slot(t, n);

        if (s->body.task.state == NGX_HTTP_MCP_TASKS_FREE) {
            continue;
        }

        r = &dump->records[dump->n++];
        r->seq = s->seq;

        /* found by its id, as any client finds it */

        if (test_get(zone, &s->id, &v) != NGX_HTTP_MCP_TASKS_OK) {
            r->len = 0;
            continue;
        }

        /* claims draw a token each time */

        if (v.task.lease) {
            v.task.lease = 1;
        }

        r->len = 0;

#define add(p, l)                                                             \
        ngx_memcpy(r->data + r->len, p, l);                                   \
        r->len += l

        add(&v.task, sizeof(v.task));
        add(v.owner.data, v.owner.len);
        add(v.tool.data, v.tool.len);
        add(v.method.data, v.method.len);

        for (i = 0; i < NGX_HTTP_MCP_TASKS_PAYLOADS; i++) {
            add(&v.payload[i].len, sizeof(size_t));
            add(v.payload[i].data, v.payload[i].len);
        }
    }

    qsort(dump->records, dump->n, sizeof(crash_record_t), older);
    ngx_reset_pool(test_pool);
}


static crash_record_t *
record(crash_dump_t *dump, uint64_t seq)
{
    ngx_uint_t  i;

    for (i = 0; i < dump->n; i++) {
        if (dump->records[i].seq == seq) {
            return &dump->records[i];
        }
    }

    return NULL;
}


static int
same(crash_record_t *a, crash_record_t *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }

    return a->len == b->len && ngx_memcmp(a->data, b->data, a->len) == 0;
}


/* every task is as before or as after: none is lost, none in between */

const char *
crash_judge(crash_dump_t *before, crash_dump_t *after, crash_dump_t *now)
{
    ngx_uint_t       i;
    uint64_t         seq;
    crash_record_t  *r;

    for (i = 0; i < before->n + after->n + now->n; i++) {

        seq = (i < before->n)
              ? before->records[i].seq
              : (i < before->n + after->n)
                ? after->records[i - before->n].seq
                : now->records[i - before->n - after->n].seq;

        r = record(now, seq);

        if (!same(r, record(before, seq)) && !same(r, record(after, seq))) {
            return r ? "a task is neither as before nor as after"
                     : "a task is lost";
        }
    }

    return NULL;
}


/* a whole life still works */

const char *
crash_usable(ngx_http_mcp_tasks_zone_t *zone)
{
    ngx_http_mcp_tasks_id_t    id;
    ngx_http_mcp_tasks_view_t  v;

    if (test_create(zone, "carol", "after", big, &id) != NGX_HTTP_MCP_TASKS_OK
        || !test_claim(zone, "after", &v)
        || ngx_memcmp(&v.id, &id, sizeof(id)) != 0
        || test_event(zone, &id, NGX_HTTP_MCP_TASKS_EV_COMPLETE, v.task.lease,
                      NGX_HTTP_MCP_TASKS_RESULT, big) != NGX_HTTP_MCP_TASKS_OK
        || test_delete(zone, &id) != NGX_HTTP_MCP_TASKS_OK)
    {
        return "the table cannot be used";
    }

    return test_check(zone);
}
