
/* The table by way of operations: lives of tasks, limits, lists, claims. */


#include "libtest.h"
#include "ngx_mcp_arena.h"

#include <stdio.h>
#include <sys/mman.h>


#define PARAMS  NGX_MCP_PARAMS
#define RESULT  NGX_MCP_RESULT


static int
same(ngx_str_t *s, const char *text)
{
    return s->len == ngx_strlen(text)
           && ngx_memcmp(s->data, text, s->len) == 0;
}


static void
test_entries(void)
{
    u_char           text[NGX_MCP_ID_TEXT + 1];
    ngx_mcp_id_t     id;
    ngx_mcp_view_t   v;
    ngx_mcp_zone_t  *zone;

    zone = test_zone(1 << 20, 0);

    is(test_create(zone, "alice", "dig", "{\"n\": 12345678901234567890}", &id),
       NGX_MCP_OK, "create");

    *ngx_mcp_id_text(text, &id) = '\0';
    diag("id %s", text);

    is(test_get(zone, &id, &v), NGX_MCP_OK, "get");
    ok(same(&v.owner, "alice") && same(&v.tool, "dig")
       && same(&v.method, "tools/call"), "owner, tool and method");
    ok(same(&v.payload[PARAMS], "{\"n\": 12345678901234567890}"),
       "params byte for byte");
    is(v.task.version, 1, "first version");
    is(v.task.state, NGX_MCP_QUEUED, "queued");

    ok(!test_claim(zone, "other", &v), "no claim for another tool");
    ok(test_claim(zone, "dig", &v), "claim");
    is(v.task.state, NGX_MCP_RUNNING, "running");
    is(v.task.attempt, 1, "first attempt");
    ok(v.task.lease_token != 0, "lease token");
    ok(!test_claim(zone, "dig", NULL), "nothing more to claim");

    is(test_event(zone, &id, NGX_MCP_EV_COMPLETE, v.task.lease_token + 1,
                  RESULT, "{}"),
       NGX_MCP_LEASE_LOST, "a wrong token is refused");
    is(test_event(zone, &id, NGX_MCP_EV_COMPLETE, v.task.lease_token,
                  RESULT, "{\"content\": []}"),
       NGX_MCP_OK, "complete");
    is(test_event(zone, &id, NGX_MCP_EV_CANCEL, 0, 0, NULL),
       NGX_MCP_TERMINAL, "terminal states do not change");

    (void) test_get(zone, &id, &v);
    ok(same(&v.payload[RESULT], "{\"content\": []}"), "result");
    is(v.task.version, 3, "third version");

    ok(test_check(zone) == NULL, "table is consistent");

    is(test_delete(zone, &id), NGX_MCP_OK, "delete");
    is(test_get(zone, &id, &v), NGX_MCP_NOT_FOUND, "gone");
    is(zone->table->sh->block.used, 0, "no block is left");
    is(zone->table->sh->names[NGX_MCP_OWNER]
       + zone->table->sh->names[NGX_MCP_TOOL], 0, "no name is left");
    ok(test_check(zone) == NULL, "table is consistent");
}


static void
test_sizes(void)
{
    size_t           n;
    ngx_uint_t       bad;
    ngx_mcp_id_t     id;
    ngx_mcp_view_t   v;
    ngx_mcp_zone_t  *zone;
    static char      big[70000], name[2000];

    zone = test_zone(4 << 20, 0);
    bad = 0;

    for (n = 0; n < 70000; n += (n < 1300) ? 1 : 997) {
        memset(big, 'a' + n % 26, n);
        big[n] = '\0';

        memset(name, 'A' + n % 26, n % 1024 + 1);
        name[n % 1024 + 1] = '\0';

        if (test_create(zone, name, name, big, &id) != NGX_MCP_OK
            || test_get(zone, &id, &v) != NGX_MCP_OK
            || !same(&v.payload[PARAMS], big)
            || !same(&v.owner, name)
            || !same(&v.tool, name)
            || (n % 100 == 0 && test_check(zone))
            || test_delete(zone, &id) != NGX_MCP_OK)
        {
            bad++;
        }

        ngx_reset_pool(test_pool);
    }

    is(bad, 0, "payloads and names of every length come back");
    is(zone->table->sh->block.used, 0, "and leave nothing behind");

    memset(name, 'x', 1025);
    name[1025] = '\0';
    is(test_create(zone, name, "t", "{}", &id), NGX_MCP_INVALID_NAME,
       "an owner that is too long");
    is(test_create(zone, "o", name, "{}", &id), NGX_MCP_INVALID_NAME,
       "a tool name that is too long");
    is(test_create(zone, "o", "", "{}", &id), NGX_MCP_INVALID_NAME,
       "an empty tool name");
}


static void
test_limits(void)
{
    ngx_uint_t            n, rc;
    ngx_mcp_id_t          id, last;
    ngx_mcp_view_t        v;
    ngx_mcp_zone_t       *zone;
    ngx_mcp_op_create_t   op;
    static char           big[20001];

    zone = test_zone(1 << 20, 100);

    for (n = 0; n < 100; n++) {
        if (test_create(zone, "o", "t", "{}", &last) != NGX_MCP_OK) {
            break;
        }
    }

    is(n, 100, "max_tasks tasks fit");
    is(test_create(zone, "o", "t", "{}", &id), NGX_MCP_LIMIT_TASKS,
       "one more is refused");
    is(test_get(zone, &last, &v), NGX_MCP_OK, "nothing is evicted");
    (void) test_delete(zone, &last);
    is(test_create(zone, "o", "t", "{}", &id), NGX_MCP_OK,
       "a free slot is used again");
    ok(test_check(zone) == NULL, "table is consistent");

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CREATE;
    op.op.pool = test_pool;
    op.task.tool = str("t");
    op.task.params = str("{\"a\": 1}");
    op.task.owner = str("p");
    op.task.ttl = 1000;
    test_policy(&op.task.policy);

    zone = test_zone(1 << 20, 0);
    op.task.max_owner_tasks = 2;

    for (n = 0; n < 3; n++) {
        (void) ngx_mcp_submit(zone, &op.op);
    }

    is(op.op.reason, NGX_MCP_LIMIT_OWNER_TASKS,
       "the third task of an owner who may have two");

    op.task.owner = str("q");
    (void) ngx_mcp_submit(zone, &op.op);
    is(op.op.reason, NGX_MCP_OK, "another owner may still");

    op.task.max_owner_tasks = 0;
    op.task.max_owner_bytes = 20;

    for (n = 0; n < 2; n++) {
        (void) ngx_mcp_submit(zone, &op.op);
    }

    is(op.op.reason, NGX_MCP_LIMIT_OWNER_BYTES,
       "more bytes than the owner may have");

    op.task.max_owner_bytes = 0;
    op.task.max_payload = 7;
    (void) ngx_mcp_submit(zone, &op.op);
    is(op.op.reason, NGX_MCP_PAYLOAD_TOO_LARGE, "a payload that is too large");

    is(zone->table->sh->slot.used, 4, "what was refused left nothing");
    is(zone->table->sh->count.refused[NGX_MCP_PAYLOAD_TOO_LARGE], 1,
       "refusals are counted by reason");
    ok(test_check(zone) == NULL, "table is consistent");

    /* limits are lifted as soon as something expires */

    op.task.max_payload = 0;
    op.task.max_owner_tasks = 2;
    op.task.owner = str("p");
    ngx_current_msec += 1000;
    (void) test_sweep(zone, 100);
    is(zone->table->sh->count.expired, 4, "all expire");
    (void) ngx_mcp_submit(zone, &op.op);
    is(op.op.reason, NGX_MCP_OK, "the owner has room again");

    /* blocks run out before slots do */

    zone = test_zone(1 << 20, 0);
    memset(big, 'x', 20000);

    for (n = 0; n < 1000; n++) {
        rc = test_create(zone, "o", "t", big, &id);
        if (rc != NGX_MCP_OK) {
            break;
        }

        last = id;
    }

    is(rc, NGX_MCP_ZONE_FULL, "a full zone says so");
    ok(n > 30, "after %d tasks of 20000 bytes in 1 MB", (int) n);

    /* new tasks leave some room for the others to finish */

    ok(test_claim(zone, "t", &v), "a full zone still hands out work");
    is(test_event(zone, &v.id, NGX_MCP_EV_COMPLETE, v.task.lease_token,
                  RESULT, big),
       NGX_MCP_OK, "and takes its result");
    ok(test_check(zone) == NULL, "table is consistent");

    do {
        (void) test_claim(zone, "t", &v);
        rc = test_event(zone, &v.id, NGX_MCP_EV_COMPLETE, v.task.lease_token,
                        RESULT, big);
    } while (rc == NGX_MCP_OK);

    is(rc, NGX_MCP_ZONE_FULL, "until a result does not fit any more");
    (void) test_get(zone, &v.id, &v);
    is(v.task.state, NGX_MCP_RUNNING, "then the task goes on");

    (void) test_delete(zone, &last);
    is(test_event(zone, &v.id, NGX_MCP_EV_COMPLETE, v.task.lease_token,
                  RESULT, big),
       NGX_MCP_OK, "once there is room it is taken");

    do {
        (void) test_claim(zone, "t", &v);
        rc = test_event(zone, &v.id, NGX_MCP_EV_PROGRESS, v.task.lease_token,
                        NGX_MCP_MESSAGE, big);
    } while (rc == NGX_MCP_OK);

    is(test_event(zone, &v.id, NGX_MCP_EV_CANCEL, 0,
                  NGX_MCP_MESSAGE, big),
       NGX_MCP_OK, "cancelling never fails for lack of room");
    (void) test_get(zone, &v.id, &v);
    is(v.payload[NGX_MCP_MESSAGE].len, 0, "but for its message");
    ok(test_check(zone) == NULL, "table is consistent");
}


/* why an event ends a task is its message, if it does end it */

static ngx_uint_t
test_diagnosis_event(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v, ngx_uint_t type,
    const char *result, const char *diagnosis)
{
    ngx_uint_t           rc;
    ngx_mcp_op_update_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.id = v->id;
    op.event.type = type;
    op.event.lease_token = v->task.lease_token;
    op.event.progress = -1;
    op.change.payload[RESULT] = str(result);
    op.change.diagnosis = str(diagnosis);

    rc = test_submit(zone, &op.op);
    (void) test_get(zone, &v->id, v);

    return rc;
}


static void
test_diagnosis(void)
{
    ngx_uint_t        n, attempts;
    ngx_mcp_id_t      id, other;
    ngx_mcp_view_t    v;
    ngx_mcp_zone_t   *zone;
    ngx_mcp_table_t  *t;
    static char       big[1 << 20];

    zone = test_zone(1 << 20, 0);
    t = zone->table;

    (void) test_create(zone, "o", "t", "{}", &id);
    (void) test_claim(zone, "t", &v);
    attempts = v.task.policy.attempts;
    (void) test_event(zone, &id, NGX_MCP_EV_PROGRESS, v.task.lease_token,
                      NGX_MCP_MESSAGE, "\"half\"");

    for (n = 1; n < attempts; n++) {
        is(test_diagnosis_event(zone, &v, NGX_MCP_EV_RETRY, "{}", "\"no\""),
           NGX_MCP_OK, "attempt %d fails", (int) n);
        is(v.task.state, NGX_MCP_QUEUED, "the task is queued again");
        ok(same(&v.payload[NGX_MCP_MESSAGE], "\"half\""), "its message stays");
        ngx_current_msec += 5000;
        (void) test_sweep(zone, 100);
        (void) test_claim(zone, "t", &v);
    }

    is(test_diagnosis_event(zone, &v, NGX_MCP_EV_RETRY, "{}", "\"no\""),
       NGX_MCP_OK, "the last attempt fails");
    is(v.task.state, NGX_MCP_FAILED, "the task fails");
    ok(same(&v.payload[NGX_MCP_MESSAGE], "\"no\""),
       "the diagnosis is its message");
    ok(test_check(zone) == NULL, "table is consistent");

    /* without room for it */

    (void) test_create(zone, "o", "t", "{}", &id);
    (void) test_claim(zone, "t", &v);
    (void) test_event(zone, &id, NGX_MCP_EV_PROGRESS, v.task.lease_token,
                      NGX_MCP_MESSAGE, "\"half\"");

    memset(big, 'x', sizeof(big) - 1);

    (void) test_create(zone, "o", "other", "{}", &other);

    for (n = sizeof(big) - 1;
         ngx_mcp_blocks_for(n) + 3 > ngx_mcp_available(&t->sh->block);
         n--)
    {
        /* void */
    }

    big[n] = '\0';
    (void) test_event(zone, &other, NGX_MCP_EV_ANNOTATE, 0, NGX_MCP_METADATA,
                      big);
    big[1000] = '\0';

    is(test_diagnosis_event(zone, &v, NGX_MCP_EV_FAIL, "{}", big),
       NGX_MCP_OK, "no room: the task fails all the same");
    is(v.task.state, NGX_MCP_FAILED, "it has failed");
    is(v.payload[NGX_MCP_MESSAGE].len, 0, "the message of before is deleted");
    ok(test_check(zone) == NULL, "table is consistent");
}


static ngx_uint_t
list(ngx_mcp_zone_t *zone, ngx_mcp_op_list_t *op, const char *owner,
    ngx_mcp_cursor_t *after, ngx_uint_t limit)
{
    ngx_memzero(op, sizeof(ngx_mcp_op_list_t));
    op->op.type = NGX_MCP_OP_LIST;
    op->op.pool = test_pool;
    op->owner = str(owner);

    if (after) {
        op->after = *after;
    }

    op->limit = limit;
    op->want = NGX_MCP_WANT_TOOL;

    (void) ngx_mcp_submit(zone, &op->op);

    return op->n;
}


static void
test_list(void)
{
    ngx_uint_t          i, bad, total, pages;
    uint64_t            seq;
    ngx_mcp_cursor_t    cursor;
    ngx_mcp_id_t        id[3000];
    ngx_mcp_view_t      v;
    ngx_mcp_zone_t     *zone;
    ngx_mcp_op_list_t   op;

    zone = test_zone(16 << 20, 0);

    is(list(zone, &op, "a", NULL, 10), 0, "no tasks, no page");
    is(op.next.seq, 0, "and no cursor");

    for (i = 0; i < 3000; i++) {
        (void) test_create(zone, i % 3 ? "a" : "b", i % 2 ? "t" : "u", "{}",
                           &id[i]);
    }

    is(list(zone, &op, "a", NULL, 1000), 100, "at most 100 a page");

    ngx_memzero(&cursor, sizeof(cursor));

    for (seq = ~0ULL, bad = 0, total = 0, pages = 0;
         pages < 1000;
         pages++)
    {
        (void) list(zone, &op, "a", &cursor, 7);

        for (i = 0; i < op.n; i++) {
            bad += (op.views[i].seq >= seq);
            seq = op.views[i].seq;
        }

        total += op.n;
        cursor = op.next;

        /* life goes on between the pages */

        (void) test_create(zone, "a", "t", "{}", NULL);

        if (cursor.seq == 0) {
            break;
        }
    }

    is(total, 2000, "every task on exactly one page");
    is(bad, 0, "newest first");

    /* the whole page is removed, and the cursor still holds */

    (void) list(zone, &op, "b", NULL, 50);
    cursor = op.next;
    seq = op.views[49].seq;

    for (i = 0; i < 50; i++) {
        (void) test_delete(zone, &op.views[i].id);
    }

    is(list(zone, &op, "b", &cursor, 50), 50, "a page after a removed page");
    is(op.views[0].seq, seq - 3, "goes on where that one ended");

    /* filters */

    op.tool = str("t");
    op.after.seq = 0;
    op.states = 1 << NGX_MCP_QUEUED;
    (void) ngx_mcp_submit(zone, &op.op);

    for (bad = 0, i = 0; i < op.n; i++) {
        bad += !same(&op.views[i].tool, "t");
    }

    ok(op.n == 50 && bad == 0, "filtered by tool and state");

    (void) test_event(zone, &id[0], NGX_MCP_EV_CANCEL, 0, 0, NULL);
    op.tool.len = 0;
    op.states = 1 << NGX_MCP_CANCELLED;
    op.after.seq = 0;

    for (total = 0, pages = 0; pages < 100; pages++) {
        (void) ngx_mcp_submit(zone, &op.op);
        total += op.n;
        op.after = op.next;

        if (op.next.seq == 0) {
            break;
        }
    }

    is(total, 1, "a rare state is found");
    ok(pages <= 2, "in bounded pages (%d)", (int) pages + 1);

    op.tool = str("none");
    op.after.seq = 0;
    (void) ngx_mcp_submit(zone, &op.op);
    ok(op.n == 0 && op.next.seq == 0, "an unknown tool has no tasks");

    is(test_get(zone, &id[0], &v), NGX_MCP_OK, "get");
    ok(test_check(zone) == NULL, "table is consistent");
}


static void
test_cursor(void)
{
    u_char            text[NGX_MCP_CURSOR_LEN];
    ngx_str_t         s, a, b;
    ngx_uint_t        i, bad;
    ngx_mcp_zone_t   *zone;
    ngx_mcp_cursor_t  c, d;

    zone = test_zone(1 << 20, 0);
    a = str("a");
    b = str("b");
    s.data = text;
    s.len = sizeof(text);
    c.seq = 123456789;
    c.hint = 4711;

    (void) ngx_mcp_cursor_text(zone, text, &a, &c);

    ok(ngx_mcp_cursor_parse(zone, &s, &a, &d) == NGX_OK
       && d.seq == 123456789 && d.hint == 4711, "a cursor comes back");
    ok(ngx_mcp_cursor_parse(zone, &s, &b, &d) == NGX_DECLINED,
       "not for another owner");

    for (bad = 0, i = 0; i < sizeof(text); i++) {
        text[i] = (text[i] == '0') ? '1' : '0';
        bad += (ngx_mcp_cursor_parse(zone, &s, &a, &d) == NGX_OK);
        (void) ngx_mcp_cursor_text(zone, text, &a, &c);
    }

    is(bad, 0, "nor with any digit changed");

    text[5] = 'x';
    ok(ngx_mcp_cursor_parse(zone, &s, &a, &d) == NGX_DECLINED,
       "nor with what is no digit");
    s.len--;
    ok(ngx_mcp_cursor_parse(zone, &s, &a, &d) == NGX_DECLINED,
       "nor cut short");
}


static void
test_claims(void)
{
    ngx_str_t            tools[3];
    ngx_uint_t           i;
    ngx_mcp_id_t         id[8];
    ngx_mcp_zone_t      *zone;
    ngx_mcp_view_t       v;
    ngx_mcp_op_claim_t   op;
    ngx_mcp_op_create_t  c;
    static struct {
        const char  *tool;
        ngx_uint_t   priority;
    } tasks[] = {
        { "a", 1 }, { "b", 1 }, { "a", 3 }, { "b", 2 }, { "c", 3 }, { "a", 0 }
    };
    static ngx_uint_t    order[] = { 2, 4, 3, 0, 1, 5 };

    zone = test_zone(1 << 20, 0);

    for (i = 0; i < 6; i++) {
        ngx_memzero(&c, sizeof(c));
        c.op.type = NGX_MCP_OP_CREATE;
        c.task.tool = str(tasks[i].tool);
        c.task.ttl = 3600000;
        test_policy(&c.task.policy);
        c.task.policy.priority = tasks[i].priority;
        (void) ngx_mcp_submit(zone, &c.op);
        id[i] = c.view.id;
    }

    tools[0] = str("c");
    tools[1] = str("b");
    tools[2] = str("a");

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CLAIM;
    op.op.pool = test_pool;
    op.tools = tools;
    op.ntools = 3;

    for (i = 0; i < 6; i++) {
        (void) ngx_mcp_submit(zone, &op.op);
        ok(op.n && ngx_memcmp(&op.views->id, &id[order[i]], 16) == 0,
           "claim %d is the most urgent, then the oldest", (int) i + 1);
    }

    (void) ngx_mcp_submit(zone, &op.op);
    ok(!op.n, "then there is nothing");

    /* a lost lease queues the task again, after the backoff */

    ngx_current_msec += 30000;
    is(test_sweep(zone, 100) > 0, 1, "leases are lost");
    ok(!test_claim(zone, "b", NULL), "not at once");
    ngx_current_msec += 1000;
    (void) test_sweep(zone, 100);
    ok(test_claim(zone, "b", &v), "but after the backoff");
    is(v.task.attempt, 2, "as the second attempt");
    is(zone->table->sh->task_counters.leases_lost, 6,
       "lost leases are counted");

    /* a queue timeout that was not swept yet */

    ngx_current_msec += 600000;
    ok(!test_claim(zone, "a", &v), "what timed out is not handed out");
    (void) test_get(zone, &id[0], &v);
    is(v.task.state, NGX_MCP_FAILED, "but has failed");
    is(v.task.cause, NGX_MCP_CAUSE_QUEUE_TIMEOUT, "and why");
    ok(test_check(zone) == NULL, "table is consistent");
}


static void
test_sweeps(void)
{
    ngx_uint_t           i, bad;
    ngx_mcp_id_t         id;
    ngx_mcp_zone_t      *zone;
    ngx_mcp_op_sweep_t   op;
    ngx_mcp_op_create_t  c;

    zone = test_zone(64 << 20, 0);
    ngx_memzero(&c, sizeof(c));
    c.op.type = NGX_MCP_OP_CREATE;
    c.task.tool = str("t");
    test_policy(&c.task.policy);
    c.task.policy.queue_timeout = NGX_MCP_UNLIMITED;

    /* TTLs from a millisecond to centuries */

    ngx_current_msec = 1000000;

    for (i = 0; i < 20000; i++) {
        c.task.ttl = (i % 40 == 39) ? NGX_MCP_NEVER
                                    : ((uint64_t) 1 << (i % 40)) + i;
        (void) ngx_mcp_submit(zone, &c.op);
    }

    ok(test_check(zone) == NULL, "table is consistent");

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_SWEEP;
    op.limit = 100;
    op.next = 1000000;

    for (i = 0, bad = 0; i < 100000; i++) {

        if (op.next == NGX_MCP_NEVER) {
            break;
        }

        /* to the very moment, never past it */

        ngx_current_msec = op.next;
        (void) ngx_mcp_submit(zone, &op.op);
        bad += (op.done > 100);
    }

    is(zone->table->sh->count.expired, 19500, "every task with a TTL expires");
    is(zone->table->sh->slot.used, 500, "the others stay");
    is(bad, 0, "batches are bounded");
    ok(i < 99999, "the wheel is looked at %d times", (int) i);
    ok(test_check(zone) == NULL, "table is consistent");

    /* never too early: a task expires at its time, not before */

    zone = test_zone(1 << 20, 0);
    c.task.ttl = 12345;
    (void) ngx_mcp_submit(zone, &c.op);
    id = c.view.id;

    ngx_current_msec += 12344;
    (void) test_sweep(zone, 100);
    is(test_get(zone, &id, NULL), NGX_MCP_OK,
       "a millisecond before its time a task is there");
    ngx_current_msec += 1;
    is(test_get(zone, &id, NULL), NGX_MCP_NOT_FOUND,
       "at its time it is gone, swept or not");
    is(zone->table->sh->slot.used, 1, "(it was not)");
    (void) test_sweep(zone, 100);
    is(zone->table->sh->slot.used, 0, "(now it is)");
}


static ngx_uint_t
report(ngx_mcp_zone_t *zone, const char *owner, const char *token,
    double progress, ngx_mcp_view_t *v)
{
    ngx_str_t            name;
    ngx_mcp_op_update_t  op;

    name = str(owner);
    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.op.pool = test_pool;
    op.owner = &name;
    op.token = str(token);
    op.event.type = NGX_MCP_EV_REPORT;
    op.event.progress = progress;
    (void) ngx_mcp_submit(zone, &op.op);
    *v = op.view;

    return op.op.reason;
}


static void
test_tokens(void)
{
    char                 long_token[128];
    ngx_uint_t           i;
    ngx_mcp_id_t         id[4];
    ngx_mcp_view_t       v;
    ngx_mcp_zone_t      *zone;
    ngx_mcp_op_create_t  c;
    static const char   *owners[] = { "a", "b", "a", "a" };
    static const char   *tokens[] = { "1", "1", "\"x\"", "1" };

    zone = test_zone(1 << 20, 0);

    for (i = 0; i < 4; i++) {
        ngx_memzero(&c, sizeof(c));
        c.op.type = NGX_MCP_OP_CREATE;
        c.task.owner = str(owners[i]);
        c.task.tool = str("t");
        c.task.token = str(tokens[i]);
        c.task.ttl = 3600000;
        test_policy(&c.task.policy);
        (void) ngx_mcp_submit(zone, &c.op);
        id[i] = c.view.id;
    }

    is(report(zone, "a", "1", 0.5, &v), NGX_MCP_STATE_INVALID,
       "no progress before the task runs");

    while (test_claim(zone, "t", NULL)) { /* void */ }

    is(report(zone, "a", "1", 0.5, &v), NGX_MCP_OK, "by token");
    ok(ngx_memcmp(&v.id, &id[3], 16) == 0, "the newest with that token");
    ok(v.task.progress == 0.5, "has the progress");
    is(report(zone, "b", "1", 0.25, &v), NGX_MCP_OK, "by token");
    ok(ngx_memcmp(&v.id, &id[1], 16) == 0, "another owner's, another task");
    is(report(zone, "b", "\"x\"", 1, &v), NGX_MCP_NOT_FOUND,
       "not by the token of another owner");
    is(report(zone, "c", "1", 1, &v), NGX_MCP_NOT_FOUND,
       "nor by one without tasks");
    ok(test_check(zone) == NULL, "table is consistent");

    zone->table->sh->dirty = 1;
    is(report(zone, "a", "1", 0.75, &v), NGX_MCP_OK, "recovery finds tokens");
    ok(ngx_memcmp(&v.id, &id[3], 16) == 0, "of the newest again");
    ok(test_check(zone) == NULL, "table is consistent");

    (void) test_delete(zone, &id[3]);
    is(report(zone, "a", "1", 1, &v), NGX_MCP_NOT_FOUND,
       "the newest is gone, and the token with it");

    for (i = 0; i < 3; i++) {
        (void) test_delete(zone, &id[i]);
    }

    is(zone->table->sh->block.used, 0, "nothing is left behind");

    memset(long_token, 'x', 100);
    long_token[100] = '\0';
    is(report(zone, "a", long_token, 1, &v), NGX_MCP_NOT_FOUND,
       "a token that is too long");
    c.task.token = str(long_token);
    (void) ngx_mcp_submit(zone, &c.op);
    is(c.op.reason, NGX_MCP_INVALID_NAME, "is refused");
}


/* a create with an id of its own */

static void
test_given_ids(void)
{
    ngx_uint_t           i;
    ngx_mcp_id_t         id, other;
    ngx_mcp_zone_t      *zone;
    ngx_mcp_op_create_t  c;

    zone = test_zone(1 << 20, 0);

    (void) ngx_mcp_id_new(&id);

    ngx_memzero(&c, sizeof(c));
    c.op.type = NGX_MCP_OP_CREATE;
    c.task.owner = str("a");
    c.task.tool = str("t");
    c.task.ttl = 1000;
    test_policy(&c.task.policy);
    c.id = &id;

    for (i = 0; i < 2; i++) {
        (void) ngx_mcp_submit(zone, &c.op);
        is(c.op.reason, NGX_MCP_OK, "created with an id");
        ok(ngx_memcmp(&c.view.id, &id, sizeof(id)) == 0, "that is used");

        c.task.owner = str("b");
        (void) ngx_mcp_submit(zone, &c.op);
        is(c.op.reason, NGX_MCP_OK, "a task has the id: created with another");
        other = c.view.id;
        ok(ngx_memcmp(&other, &id, sizeof(id)) != 0, "a different one");
        ok(test_check(zone) == NULL, "table is consistent");

        c.task.owner = str("a");
        (void) test_delete(zone, &other);
        (void) test_delete(zone, &id);
    }

    (void) ngx_mcp_submit(zone, &c.op);
    ngx_current_msec += 2000;
    (void) ngx_mcp_submit(zone, &c.op);
    ok(ngx_memcmp(&c.view.id, &id, sizeof(id)) != 0,
       "an expired task has its id until it is swept");
    ok(test_check(zone) == NULL, "table is consistent");
}


static void
test_layouts(void)
{
    size_t             size;
    uint64_t           max;
    ngx_uint_t         n, bad;
    ngx_slab_pool_t   *sp;
    ngx_mcp_zone_t    *zone;
    ngx_mcp_table_t    t;
    ngx_mcp_layout_t   l;

    for (bad = 0, n = 0, size = 32768; size < (64 << 20); size += size / 7) {

        for (max = 0; max < 5000; max = max ? max * 3 : 8) {

            if (ngx_mcp_table_layout(&l,
                                     ngx_mcp_table_usable(size), max)
                != NGX_OK)
            {
                continue;
            }

            n++;
            zone = test_zone(size, max);

            bad += (zone == NULL || l.size > size
                    || (max && l.tasks != max)
                    || l.block % 128);

            if (zone) {
                munmap(zone->table->shpool, size);
            }
        }
    }

    ok(n > 100 && bad == 0,
       "what the configuration accepts can be made (%d layouts)", (int) n);

    ok(ngx_mcp_table_layout(&l, 8192, 0) == NGX_DECLINED,
       "too small for anything");
    ok(ngx_mcp_table_layout(&l, 1 << 20, 10000) == NGX_DECLINED,
       "too small for so many tasks");
    ok(ngx_mcp_table_layout(&l, 1 << 20, 0) == NGX_OK
       && l.tasks == 512, "a task for 2048 bytes by default");

    sp = test_slab(1 << 20);
    ok(ngx_mcp_table_create(&t, sp, 1 << 20) == NGX_DECLINED,
       "and no table is made of it");

    zone = test_zone(1 << 20, 0);
    ngx_memzero(&t, sizeof(t));
    ngx_mcp_table_attach(&t, zone->table->shpool);
    ok(ngx_memcmp(&t, zone->table, sizeof(t)) == 0,
       "attaching finds what creating made");
}


/* every write adds one, also those that are no new version */

static void
test_revisions(void)
{
    uint64_t         revision, version;
    ngx_uint_t       i;
    ngx_mcp_id_t     id;
    ngx_mcp_view_t   v;
    ngx_mcp_zone_t  *zone;
    ngx_mcp_body_t  *body;
    static struct {
        const char  *name;
        ngx_uint_t   event;
        ngx_uint_t   seen;       /* as a version */
        ngx_uint_t   refused;
    } *w, writes[] = {
        { "a heartbeat", NGX_MCP_EV_HEARTBEAT, 0, 0 },
        { "progress", NGX_MCP_EV_PROGRESS, 1, 0 },
        { "its being announced", NGX_MCP_EV_ANNOUNCE, 0, 0 },
        { "an answer that is refused", NGX_MCP_EV_ANSWER, 0, 1 },
        { "another attempt", NGX_MCP_EV_RETRY, 1, 0 },
        { "the end of the backoff", NGX_MCP_EV_READY, 0, 0 }
    };

    zone = test_zone(256 * 1024, 0);
    test_session = "a session";
    (void) test_create(zone, "ann", "dig", "{}", &id);
    test_session = NULL;

    body = &ngx_mcp_find_locked(zone->table, &id, NULL, 0)->body;
    is(body->revision, 1, "the revision of a new task");
    (void) test_claim(zone, "dig", &v);
    is(body->revision, 2, "and of one that was claimed");

    for (i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        w = &writes[i];
        revision = body->revision;
        version = body->task.version;

        if (w->event == NGX_MCP_EV_READY) {
            ngx_current_msec += 1000;
            is(test_sweep(zone, 10), 1, "time passes");

        } else {
            is(test_event(zone, &id, w->event, v.task.lease_token, 0, NULL)
               != 0, w->refused, "%s", w->name);
        }

        is(body->revision, revision + !w->refused, "%s: the revision",
           w->name);
        is(body->task.version, version + w->seen, "%s: the version", w->name);
    }

    ok(test_check(zone) == NULL, "the table fits together");
}


int
main(void)
{
    ngx_current_msec = 5000;

    test_entries();
    test_sizes();
    test_limits();
    test_diagnosis();
    test_list();
    test_cursor();
    test_claims();
    test_sweeps();
    test_tokens();
    test_given_ids();
    test_layouts();
    test_revisions();

    return done_testing();
}
