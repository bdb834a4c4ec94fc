
/*
 * Random operations on a small zone, each compared with a model that knows
 * nothing of hashes, wheels or blocks.  Along the way the table's invariants
 * are checked, and it is wrecked and recovered.  The seed is printed:
 * MCP_TASKS_SEED repeats a run, MCP_TASKS_OPS makes it longer.
 */


#include <stdio.h>
#include <time.h>

#include "libtest.h"
#include "ngx_http_mcp_tasks_arena.h"
#include "ngx_http_mcp_tasks_names.h"
#include "ngx_http_mcp_tasks_recover.h"


#define MAX      300
#define OWNERS   5
#define TOOLS    4
#define BYTES    6000

#define NEVER    NGX_HTTP_MCP_TASKS_NEVER


typedef struct {
    int                        live;
    ngx_http_mcp_tasks_id_t    id;
    uint64_t                   seq;
    int                        owner;
    int                        tool;
    int                        priority;
    int                        state;
    uint64_t                   version;
    uint64_t                   lease;
    int                        attempt;
    int                        attempts;
    uint64_t                   expires;
    uint64_t                   step;
    uint64_t                   phase;
    double                     progress;
    uint64_t                   batch;        /* when it became claimable */
    uint64_t                   seed[NGX_HTTP_MCP_TASKS_PAYLOADS];
    size_t                     len[NGX_HTTP_MCP_TASKS_PAYLOADS];
} model_t;


static model_t                     tasks[MAX];
static uint64_t                    rnd_state;
static uint64_t                    batch;
static ngx_uint_t                  errors;
static ngx_uint_t                  ops;
static ngx_http_mcp_tasks_zone_t  *zone;

static const char  *owners[OWNERS] = {
    "", "alice", "bob",
    "an owner whose name is too long for the first block of a name, "
    "and then some",
    "C=DE, O=Example, OU=A department with a rather long name, CN=a client "
    "certificate, emailAddress=someone@example.org, serialNumber=0123456789"
};
static const char  *tools[TOOLS] = {
    "dig", "x", "render_a_film", "t/\xc3\xa4"
};

static const uint32_t  lease_ms = 300, queue_ms = 2000, run_ms = 1500;
static const uint32_t  backoff_ms = 50;


#define fail(...)                                                             \
    do {                                                                      \
        if (errors++ < 20) {                                                  \
            printf("# op %lu, line %d: ", (unsigned long) ops, __LINE__);     \
            printf(__VA_ARGS__);                                              \
            printf("\n");                                                     \
        }                                                                     \
    } while (0)

#define expect(got, want, what)                                               \
    if ((uint64_t) (got) != (uint64_t) (want)) {                              \
        fail("%s: got %llu, expected %llu", what,                             \
             (unsigned long long) (got), (unsigned long long) (want));        \
    }


static uint64_t
rnd(uint64_t n)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;

    return n ? (rnd_state >> 11) % n : 0;
}


static void
fill(u_char *p, uint64_t seed, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        p[i] = (u_char) (seed + i * (seed | 1) + i / 251);
    }
}


/* at times small, so that slots run out before blocks do */

static size_t
random_len(void)
{
    if (ops / 20000 % 2) {
        return rnd(60);
    }

    switch (rnd(8)) {
    case 0:
        return 0;
    case 1:
        return 120 + rnd(10);
    case 2:
        return rnd(BYTES);
    default:
        return rnd(200);
    }
}


static size_t
used_blocks(void)
{
    int        i, k, owner_seen[OWNERS], tool_seen[TOOLS];
    size_t     n;
    ngx_str_t  s;

    memset(owner_seen, 0, sizeof(owner_seen));
    memset(tool_seen, 0, sizeof(tool_seen));

    for (n = 0, i = 0; i < MAX; i++) {
        if (!tasks[i].live) {
            continue;
        }

        for (k = 0; k < NGX_HTTP_MCP_TASKS_PAYLOADS; k++) {
            n += ngx_http_mcp_tasks_blocks_for(tasks[i].len[k]
                            + (k == NGX_HTTP_MCP_TASKS_PARAMS ? 10 : 0));
        }

        if (!owner_seen[tasks[i].owner]++) {
            s = str(owners[tasks[i].owner]);
            n += ngx_http_mcp_tasks_name_blocks(&s);
        }

        if (!tool_seen[tasks[i].tool]++) {
            s = str(tools[tasks[i].tool]);
            n += ngx_http_mcp_tasks_name_blocks(&s);
        }
    }

    return n;
}


static int
live(void)
{
    int  i, n;

    for (n = 0, i = 0; i < MAX; i++) {
        n += tasks[i].live;
    }

    return n;
}


static model_t *
pick(void)
{
    int  i, k;

    k = rnd(MAX);

    for (i = 0; i < MAX; i++) {
        if (tasks[(i + k) % MAX].live) {
            return &tasks[(i + k) % MAX];
        }
    }

    return NULL;
}


static void
end(model_t *m, int state, uint64_t now)
{
    static const int  keep[] = { 0, 0, 0, 0, 2, 3, 1 };

    m->state = state;
    m->step = NEVER;
    m->phase = NEVER;
    m->expires = ngx_max(m->expires, now + keep[state] * 1000);
}


static void
requeue(model_t *m, uint64_t now, uint64_t delay)
{
    m->state = NGX_HTTP_MCP_TASKS_QUEUED;
    m->lease = 0;
    m->progress = -1;
    m->step = delay ? now + delay : NEVER;
    m->phase = now + delay + queue_ms;
    m->batch = batch;
}


static uint64_t
backoff(model_t *m)
{
    return (uint64_t) backoff_ms << (m->attempt - 1);
}


static void
do_create(void)
{
    int                              i, k;
    u_char                           buf[3][BYTES];
    size_t                           need, before;
    model_t                         *m;
    ngx_http_mcp_tasks_op_create_t   op;

    for (i = 0; i < MAX && tasks[i].live; i++) { /* void */ }

    m = (i < MAX) ? &tasks[i] : NULL;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_CREATE;
    op.op.pool = test_pool;

    i = rnd(OWNERS);
    k = rnd(TOOLS);
    op.task.owner = str(owners[i]);
    op.task.tool = str(tools[k]);
    op.task.method = str("tools/call");
    op.task.ttl = rnd(4) ? 1000 + rnd(20000)
                         : rnd(4) ? 1 + rnd(100) : NEVER;
    op.task.policy.priority = rnd(NGX_HTTP_MCP_TASKS_PRIORITIES);
    op.task.policy.lease = lease_ms;
    op.task.policy.queue_timeout = queue_ms;
    op.task.policy.run_timeout = run_ms;
    op.task.policy.backoff = backoff_ms;
    op.task.policy.keep_completed = 2;
    op.task.policy.keep_failed = 3;
    op.task.policy.keep_cancelled = 1;
    op.task.policy.attempts = 1 + rnd(3);
    op.task.max_payload = 5500;

    op.task.params.len = random_len();
    op.task.params.data = buf[0];
    op.task.metadata.len = rnd(3) ? 0 : random_len();
    op.task.metadata.data = buf[1];
    op.task.message.len = rnd(3) ? 0 : random_len();
    op.task.message.data = buf[2];

    fill(buf[0], ops, op.task.params.len);
    fill(buf[1], ops + 1, op.task.metadata.len);
    fill(buf[2], ops + 2, op.task.message.len);

    before = used_blocks();

    if (ngx_http_mcp_tasks_submit(zone, &op.op) != NGX_OK) {
        fail("create failed");
        return;
    }

    if (op.task.params.len > 5500 || op.task.metadata.len > 5500
        || op.task.message.len > 5500)
    {
        expect(op.op.reason, NGX_HTTP_MCP_TASKS_PAYLOAD_TOO_LARGE, "create");
        return;
    }

    if (m == NULL) {
        expect(op.op.reason, NGX_HTTP_MCP_TASKS_LIMIT_TASKS, "create");
        return;
    }

    m->live = 1;
    m->owner = i;
    m->tool = k;
    ngx_memzero(m->len, sizeof(m->len));
    m->len[NGX_HTTP_MCP_TASKS_PARAMS] = op.task.params.len;
    m->len[NGX_HTTP_MCP_TASKS_METADATA] = op.task.metadata.len;
    m->len[NGX_HTTP_MCP_TASKS_MESSAGE] = op.task.message.len;
    need = used_blocks() - before;

    if (before + need + zone->table.sh->block.end / 16
        > zone->table.sh->block.end - 1)
    {
        m->live = 0;
        expect(op.op.reason, NGX_HTTP_MCP_TASKS_ZONE_FULL, "create");
        return;
    }

    expect(op.op.reason, NGX_HTTP_MCP_TASKS_OK, "create");

    if (op.op.reason != NGX_HTTP_MCP_TASKS_OK) {
        m->live = 0;
        return;
    }

    m->id = op.view.id;
    m->seq = op.view.seq;
    m->priority = op.task.policy.priority;
    m->state = NGX_HTTP_MCP_TASKS_QUEUED;
    m->version = 1;
    m->lease = 0;
    m->attempt = 0;
    m->attempts = op.task.policy.attempts;
    m->expires = (op.task.ttl == NEVER) ? NEVER
                                        : ngx_current_msec + op.task.ttl;
    m->step = NEVER;
    m->phase = ngx_current_msec + queue_ms;
    m->progress = -1;
    m->batch = ++batch;

    for (i = 0; i < 3; i++) {
        m->seed[i] = ops + i;
    }
}


static void
compare(model_t *m, ngx_http_mcp_tasks_view_t *v)
{
    int     k;
    u_char  buf[BYTES];

    expect(v->task.state, m->state, "state");
    expect(v->task.version, m->version, "version");
    expect(v->task.lease, m->lease, "lease");
    expect(v->task.attempt, m->attempt, "attempt");
    expect(v->task.expires, m->expires, "expires");
    expect(v->task.step_end, m->step, "step");
    expect(v->task.phase_end, m->phase, "phase");
    expect(v->seq, m->seq, "seq");

    if (v->task.progress != m->progress) {
        fail("progress");
    }

    if (v->owner.len != strlen(owners[m->owner])
        || memcmp(v->owner.data, owners[m->owner], v->owner.len) != 0)
    {
        fail("owner");
    }

    for (k = 0; k < NGX_HTTP_MCP_TASKS_PAYLOADS; k++) {
        fill(buf, m->seed[k], m->len[k]);

        if (v->payload[k].len != m->len[k]
            || memcmp(v->payload[k].data, buf, m->len[k]) != 0)
        {
            fail("payload %d: %lu bytes, expected %lu", k,
                 (unsigned long) v->payload[k].len,
                 (unsigned long) m->len[k]);
        }
    }
}


static void
do_get(void)
{
    model_t                      *m;
    ngx_str_t                     owner;
    ngx_uint_t                    expected;
    ngx_http_mcp_tasks_op_get_t   op;

    m = pick();

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_GET;
    op.op.pool = test_pool;
    op.want = NGX_HTTP_MCP_TASKS_WANT_ALL;
    expected = NGX_HTTP_MCP_TASKS_OK;

    if (m == NULL || rnd(20) == 0) {
        (void) ngx_http_mcp_tasks_id_new(&op.id);
        expected = NGX_HTTP_MCP_TASKS_NOT_FOUND;

    } else {
        op.id = m->id;

        if (rnd(2)) {
            owner = str(owners[rnd(OWNERS)]);
            op.owner = &owner;

            if (strcmp((char *) owner.data, owners[m->owner]) != 0) {
                expected = NGX_HTTP_MCP_TASKS_NOT_FOUND;
            }
        }

        if (ngx_current_msec >= m->expires) {
            expected = NGX_HTTP_MCP_TASKS_NOT_FOUND;
        }
    }

    (void) ngx_http_mcp_tasks_submit(zone, &op.op);
    expect(op.op.reason, expected, "get");

    if (op.op.reason == NGX_HTTP_MCP_TASKS_OK && m) {
        compare(m, &op.view);
    }
}


static void
do_claim(void)
{
    int                             i, tool;
    model_t                        *m, *best;
    ngx_str_t                       name;
    ngx_http_mcp_tasks_op_claim_t   op;

    tool = rnd(TOOLS);
    name = str(tools[tool]);

    for (best = NULL, i = 0; i < MAX; i++) {
        m = &tasks[i];

        if (m->live && m->tool == tool
            && m->state == NGX_HTTP_MCP_TASKS_QUEUED
            && m->step == NEVER
            && (best == NULL || m->priority > best->priority
                || (m->priority == best->priority && m->batch < best->batch)))
        {
            best = m;
        }
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_CLAIM;
    op.op.pool = test_pool;
    op.tools = &name;
    op.ntools = 1;
    op.want = NGX_HTTP_MCP_TASKS_WANT_ALL;

    (void) ngx_http_mcp_tasks_submit(zone, &op.op);
    expect(op.found, best != NULL, "claim");

    if (!op.found || best == NULL) {
        return;
    }

    /* those that became claimable in one sweep are equals */

    for (m = tasks; m < tasks + MAX; m++) {
        if (m->live && memcmp(&m->id, &op.view.id, 16) == 0) {
            break;
        }
    }

    if (m == tasks + MAX || m->tool != tool || m->priority != best->priority
        || m->batch != best->batch)
    {
        fail("claimed another task than the first");
        return;
    }

    m->state = NGX_HTTP_MCP_TASKS_RUNNING;
    m->version++;
    m->lease = op.view.task.lease;
    m->attempt++;
    m->step = ngx_current_msec + lease_ms;
    m->phase = ngx_current_msec + run_ms;

    compare(m, &op.view);
}


/* what the event does to the model; the reason it is refused with */

static ngx_uint_t
model_event(model_t *m, ngx_http_mcp_tasks_event_t *ev)
{
    int       run, input;
    uint64_t  now;

    now = ngx_current_msec;
    run = (m->state == NGX_HTTP_MCP_TASKS_RUNNING);
    input = (m->state == NGX_HTTP_MCP_TASKS_INPUT_REQUIRED);

    if (ngx_http_mcp_tasks_fenced(ev->type)) {
        if (ev->lease == 0 || ev->lease != m->lease) {
            return NGX_HTTP_MCP_TASKS_LEASE_LOST;
        }
    }

    if (m->state >= NGX_HTTP_MCP_TASKS_COMPLETED) {
        return NGX_HTTP_MCP_TASKS_TERMINAL;
    }

    switch (ev->type) {

    case NGX_HTTP_MCP_TASKS_EV_HEARTBEAT:
        if (run) {
            m->step = now + lease_ms;
        }

        return NGX_HTTP_MCP_TASKS_OK;

    case NGX_HTTP_MCP_TASKS_EV_PROGRESS:
    case NGX_HTTP_MCP_TASKS_EV_REPORT:
        if (!run && !input) {
            return NGX_HTTP_MCP_TASKS_STATE_INVALID;
        }

        if (ev->progress < m->progress) {
            return NGX_HTTP_MCP_TASKS_PROGRESS_BACKWARDS;
        }

        m->progress = ev->progress;

        if (run && ev->type == NGX_HTTP_MCP_TASKS_EV_PROGRESS) {
            m->step = now + lease_ms;
        }

        break;

    case NGX_HTTP_MCP_TASKS_EV_ASK:
        if (!run) {
            return NGX_HTTP_MCP_TASKS_STATE_INVALID;
        }

        m->state = NGX_HTTP_MCP_TASKS_INPUT_REQUIRED;
        m->step = NEVER;
        m->phase = (m->phase > now) ? m->phase - now : 0;
        break;

    case NGX_HTTP_MCP_TASKS_EV_COMPLETE:
        end(m, NGX_HTTP_MCP_TASKS_COMPLETED, now);
        break;

    case NGX_HTTP_MCP_TASKS_EV_FAIL:
        end(m, NGX_HTTP_MCP_TASKS_FAILED, now);
        break;

    case NGX_HTTP_MCP_TASKS_EV_RETRY:
        if (m->attempt >= m->attempts) {
            end(m, NGX_HTTP_MCP_TASKS_FAILED, now);

        } else {
            requeue(m, now, backoff(m));
        }

        break;

    case NGX_HTTP_MCP_TASKS_EV_RELEASE:
        batch++;
        requeue(m, now, 0);
        m->attempt--;
        break;

    case NGX_HTTP_MCP_TASKS_EV_ANSWER:
        if (!input) {
            return NGX_HTTP_MCP_TASKS_STATE_INVALID;
        }

        break;

    case NGX_HTTP_MCP_TASKS_EV_ANSWER_ALL:
        if (!input) {
            return NGX_HTTP_MCP_TASKS_STATE_INVALID;
        }

        m->state = NGX_HTTP_MCP_TASKS_RUNNING;
        m->step = now + lease_ms;
        m->phase += now;
        break;

    case NGX_HTTP_MCP_TASKS_EV_CANCEL:
        end(m, NGX_HTTP_MCP_TASKS_CANCELLED, now);
        break;
    }

    m->version++;

    return NGX_HTTP_MCP_TASKS_OK;
}


static void
do_event(void)
{
    int                              k, dropped;
    u_char                           buf[BYTES];
    size_t                           need, room;
    model_t                         *m, next;
    ngx_uint_t                       expected;
    ngx_http_mcp_tasks_op_update_t   op;

    m = pick();

    if (m == NULL) {
        return;
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_UPDATE;
    op.op.pool = test_pool;
    op.id = m->id;
    op.want = NGX_HTTP_MCP_TASKS_WANT_ALL;

    do {
        op.event.type = rnd(NGX_HTTP_MCP_TASKS_EV_REPORT + 1);
    } while (op.event.type == NGX_HTTP_MCP_TASKS_EV_CLAIM);

    op.event.lease = rnd(10) ? m->lease : rnd(2) ? rnd(1000) : 0;
    op.event.progress = rnd(100) / 100.0;

    k = rnd(NGX_HTTP_MCP_TASKS_PAYLOADS - 1) + 1;

    if (rnd(3)) {
        op.change.payload[k].data = buf;
        op.change.payload[k].len = random_len();
        fill(buf, ops, op.change.payload[k].len);
    }

    op.change.max_payload = 5800;
    op.version = rnd(5) ? 0 : m->version + (rnd(2) ? 0 : 1);

    dropped = 0;
    next = *m;
    expected = model_event(&next, &op.event);

    need = ngx_http_mcp_tasks_blocks_for(op.change.payload[k].len);
    room = zone->table.sh->block.end - 1 - used_blocks();

    if (expected == NGX_HTTP_MCP_TASKS_OK) {

        if (op.change.payload[k].len > 5800) {
            expected = NGX_HTTP_MCP_TASKS_PAYLOAD_TOO_LARGE;

        } else if (need > room) {

            if (op.event.type == NGX_HTTP_MCP_TASKS_EV_CANCEL) {
                dropped = 1;

            } else {
                expected = NGX_HTTP_MCP_TASKS_ZONE_FULL;
            }
        }
    }

    if (op.version && op.version != m->version) {
        expected = NGX_HTTP_MCP_TASKS_VERSION_CONFLICT;
    }

    if (ngx_current_msec >= m->expires) {
        expected = NGX_HTTP_MCP_TASKS_NOT_FOUND;
    }

    (void) ngx_http_mcp_tasks_submit(zone, &op.op);
    expect(op.op.reason, expected, "event");

    if (op.op.reason != NGX_HTTP_MCP_TASKS_OK) {
        return;
    }

    *m = next;

    if (op.change.payload[k].data && !dropped) {
        m->len[k] = op.change.payload[k].len;
        m->seed[k] = ops;
    }

    compare(m, &op.view);
}


static void
do_delete(void)
{
    model_t  *m;

    m = pick();

    if (m) {
        expect(test_delete(zone, &m->id),
               ngx_current_msec < m->expires ? NGX_HTTP_MCP_TASKS_OK
                                             : NGX_HTTP_MCP_TASKS_NOT_FOUND,
               "delete");
        m->live = (ngx_current_msec >= m->expires);
    }
}


static void
model_time(model_t *m, uint64_t now)
{
    while (m->live) {

        if (now >= m->expires) {
            m->live = 0;

        } else if (m->state == NGX_HTTP_MCP_TASKS_QUEUED && now >= m->phase) {
            end(m, NGX_HTTP_MCP_TASKS_FAILED, now);
            m->version++;

        } else if (m->state == NGX_HTTP_MCP_TASKS_QUEUED && now >= m->step) {
            m->step = NEVER;
            m->batch = batch;

        } else if (m->state == NGX_HTTP_MCP_TASKS_RUNNING && now >= m->phase) {
            end(m, NGX_HTTP_MCP_TASKS_FAILED, now);
            m->version++;

        } else if (m->state == NGX_HTTP_MCP_TASKS_RUNNING && now >= m->step) {
            m->version++;

            if (m->attempt >= m->attempts) {
                end(m, NGX_HTTP_MCP_TASKS_FAILED, now);

            } else {
                requeue(m, now, backoff(m));
            }

        } else {
            return;
        }
    }
}


static void
do_time(void)
{
    int         i;
    ngx_uint_t  limit;

    ngx_current_msec += rnd(20) ? rnd(20) : rnd(30000);
    limit = 1 + rnd(50);

    for (i = 0; test_sweep(zone, limit) == limit; i++) {
        if (i > 10000) {
            fail("the sweep does not end");
            return;
        }
    }

    batch++;

    for (i = 0; i < MAX; i++) {
        if (tasks[i].live) {
            model_time(&tasks[i], ngx_current_msec);
        }
    }

    expect(zone->table.sh->slot.used, live(), "tasks after a sweep");
}


static int
newer(const void *a, const void *b)
{
    const model_t  *x = *(model_t **) a, *y = *(model_t **) b;

    return (x->seq < y->seq) - (x->seq > y->seq);
}


static void
do_list(void)
{
    int                            i, n, k, owner;
    model_t                       *sorted[MAX];
    ngx_http_mcp_tasks_op_list_t   op;

    owner = rnd(OWNERS);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_HTTP_MCP_TASKS_OP_LIST;
    op.op.pool = test_pool;
    op.owner = str(owners[owner]);
    op.limit = 1 + rnd(40);
    op.want = NGX_HTTP_MCP_TASKS_WANT_ALL;
    op.states = rnd(2) ? 0 : rnd(128);

    for (n = 0, i = 0; i < MAX; i++) {
        if (tasks[i].live && tasks[i].owner == owner
            && (op.states == 0 || (op.states & 1u << tasks[i].state)))
        {
            sorted[n++] = &tasks[i];
        }
    }

    qsort(sorted, n, sizeof(model_t *), newer);

    k = 0;

    do {
        (void) ngx_http_mcp_tasks_submit(zone, &op.op);

        for (i = 0; i < (int) op.n && k < n; i++, k++) {
            compare(sorted[k], &op.views[i]);
        }

        if (i < (int) op.n) {
            fail("a page has too many tasks");
        }

        op.after = op.next;

    } while (op.next.seq);

    expect(k, n, "listed tasks");
}


/* what a process that dies may leave behind, and worse */

static void
do_wreck(void)
{
    uint32_t                     i;
    ngx_http_mcp_tasks_table_t  *t;

    t = &zone->table;

    for (i = 0; i <= t->sh->hash_mask; i++) {
        t->hash[i] = (uint32_t) rnd(1u << 31);
    }

    ngx_memset(t->names, 0xff, (t->sh->name_mask + 1) * 4);
    ngx_memset(t->sh->wheel.head, 0xee, sizeof(t->sh->wheel.head));
    ngx_memset(t->sh->wheel.map, 0xdd, sizeof(t->sh->wheel.map));
    ngx_memset(t->sh->states, 0xcc, sizeof(t->sh->states));

    for (i = 1; i < t->sh->slot.fresh; i++) {
        ngx_memset(&t->slots[i].hash_next, 0xbb,
                   offsetof(ngx_http_mcp_tasks_slot_t, method_len)
                   - offsetof(ngx_http_mcp_tasks_slot_t, hash_next));
    }

    t->sh->block.free = 12345678;
    t->sh->block.used = 1;
    t->sh->slot.free = 87654321;
    t->sh->slot.used = 9;
    t->sh->seq = 0;
    t->sh->bytes = 5;
    t->sh->dirty = 1;
}


int
main(void)
{
    char        *p;
    ngx_uint_t   n, i, checks, wrecks, most;

    p = getenv("MCP_TASKS_SEED");
    rnd_state = p ? strtoull(p, NULL, 0)
                  : ((uint64_t) time(NULL) << 20 | (getpid() & 0xfffff));
    diag("MCP_TASKS_SEED=%llu", (unsigned long long) rnd_state);
    rnd_state |= 1;

    p = getenv("MCP_TASKS_OPS");
    n = p ? strtoull(p, NULL, 0) : 1000000;

    zone = test_zone(256 * 1024, MAX);
    ngx_current_msec = 1 + rnd(1 << 30);
    checks = wrecks = most = 0;

    for (ops = 0; ops < n && errors == 0; ops++) {

        i = rnd(100);

        if (i < 25) {
            do_create();

        } else if (i < 45) {
            do_get();

        } else if (i < 60) {
            do_claim();

        } else if (i < 90) {
            do_event();

        } else if (i < 93) {
            do_delete();

        } else if (i < 99) {
            do_time();

        } else {
            do_list();
        }

        most = ngx_max(most, zone->table.sh->slot.used);
        ngx_reset_pool(test_pool);

        if (rnd(500) == 0) {
            checks++;

            if (test_check(zone)) {
                fail("the table is not consistent");
            }

            expect(zone->table.sh->block.used, used_blocks(), "blocks used");
        }

        if (rnd(1000) == 0) {
            wrecks++;
            do_wreck();

            if (test_check(zone)) {
                fail("the table was not recovered");
            }
        }
    }

    is(errors, 0, "%lu operations agree with the model", (unsigned long) ops);
    ok(ops == n && checks > n / 1000 && wrecks > n / 2000,
       "%lu checks, %lu recoveries", (unsigned long) checks,
       (unsigned long) wrecks);
    is(zone->table.sh->count.recoveries, wrecks, "recoveries are counted");
    is(most, MAX, "the zone was full at times");
    ok(zone->table.sh->count.refused[NGX_HTTP_MCP_TASKS_ZONE_FULL] > 100,
       "blocks ran out at times");

    return done_testing();
}
