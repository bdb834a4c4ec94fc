
/*
 * Random operations on a small zone, each compared with a model that knows
 * nothing of hashes, wheels or blocks.  Along the way the table's invariants
 * are checked, and it is wrecked and recovered.  The seed is printed:
 * MCP_TASKS_SEED repeats a run, MCP_TASKS_OPS makes it longer.
 */


#include <stdio.h>
#include <time.h>

#include "libtest.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"


#define MAX      300
#define OWNERS   5
#define TOOLS    4
#define BYTES    6000
#define SESSIONS 3
#define READERS  8
#define PLACES   3
#define STREAMS  7
#define WAITERS  40
#define WORKERS  3
#define BEHIND   NGX_MCP_SESSION_NEWS

#define NEVER    NGX_MCP_NEVER


typedef struct {
    int           live;
    ngx_mcp_id_t  id;
    uint64_t      seq;
    int           owner;
    int           tool;
    int           priority;
    int           state;
    uint64_t      version;
    uint64_t      lease;
    int           attempt;
    int           attempts;
    uint64_t      expires;
    uint64_t      step;
    uint64_t      phase;
    int           cause;
    double        progress;
    uint64_t      batch;        /* when it became claimable */
    uint64_t      since;        /* in its phase, or a time */
    int           worker;       /* -1: none */
    int           session;      /* -1: none */
    int           announced;
    uint64_t      changed;
    uint64_t      turned;
    uint64_t      moved;
    double        peak;
    uint64_t      carrier;
    ngx_uint_t    waiting;
    ngx_uint_t    results;
    int           held;         /* by a process of ours */
    uint64_t      holder;
    int           calls;
    uint32_t      lease_time;
    int           refused;      /* and not told of room since */
    uint32_t      max_zone;
    uint32_t      max_tool;
    uint64_t      seed[NGX_MCP_PAYLOADS];
    size_t        len[NGX_MCP_PAYLOADS];
} model_t;


/* a session's client: what it was told, and by which stream */

typedef struct {
    uint64_t  told;
    uint64_t  stream;
    uint32_t  opened;
    uint32_t  epoch;
} model_session_t;


/* somebody who is told of an owner's tasks */

typedef struct {
    int       owner;
    uint64_t  after;
    uint64_t  hint;
} model_reader_t;


/* a request that waits */

typedef struct {
    int           used;
    int           task;         /* for none, if it is not */
    ngx_mcp_id_t  id;
    int           result;
    uint64_t      stream;
    uint32_t      epoch;
} model_waiter_t;


/* what became of the tasks of a tool */

typedef struct {
    uint64_t  created;
    uint64_t  ended[NGX_MCP_STATES];
    uint64_t  lapsed;
    uint64_t  dropped;
    uint64_t  claimed;
    uint64_t  requeued;
    uint64_t  leases_lost;
    uint64_t  runs;
    uint64_t  waited;       /* ms */
    uint64_t  ran;
} model_fates_t;


typedef struct {
    uint64_t  claimed;
    uint64_t  completed;
    uint64_t  failed;
    uint64_t  seen;
} model_worker_t;


static model_t                     tasks[MAX];
static model_fates_t               fates[TOOLS];
static model_worker_t              workers[WORKERS];
static model_session_t             sessions[SESSIONS];
static model_reader_t              readers[READERS];
static model_waiter_t              waiters[WAITERS];
static int                         paused[TOOLS];
static int                         draining[WORKERS];
static uint64_t                    streams[STREAMS];
static uint32_t                    lives[PLACES];
static uint32_t                    stream_number;
static uint32_t                    epoch;
static ngx_uint_t                  waiting;
static uint64_t                    dropped_news;
static ngx_uint_t                  told_news, asked, touched, limited;
static ngx_uint_t                  began, refused, overtaken, adopted, orphans;
static ngx_uint_t                  controls;
static uint64_t                    room_cursor;
static uint64_t                    rnd_state;
static uint64_t                    batch;
static ngx_uint_t                  errors;
static ngx_uint_t                  ops;
static ngx_mcp_zone_t  *zone;

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

static const char  *worker_names[WORKERS] = {
    "ann", "127.0.0.1", "b/\xc3\xb6"
};

static const char  *session_names[SESSIONS] = {
    "s", "another session",
    "a session with the longest name of all, which is 64 characters.."
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
    int        session_seen[SESSIONS];
    size_t     n;
    ngx_str_t  s;

    memset(session_seen, 0, sizeof(session_seen));
    memset(owner_seen, 0, sizeof(owner_seen));
    memset(tool_seen, 0, sizeof(tool_seen));

    for (n = 0, i = 0; i < MAX; i++) {
        if (!tasks[i].live) {
            continue;
        }

        for (k = 0; k < NGX_MCP_PAYLOADS; k++) {
            n += ngx_mcp_blocks_for(tasks[i].len[k]
                            + (k == NGX_MCP_PARAMS
                               ? 10 + NGX_MCP_HISTORY : 0));
        }

        if (!owner_seen[tasks[i].owner]++) {
            s = str(owners[tasks[i].owner]);
            n += ngx_mcp_name_blocks(&s);
        }

        if (!tool_seen[tasks[i].tool]++) {
            s = str(tools[tasks[i].tool]);
            n += ngx_mcp_name_blocks(&s);
        }

        if (tasks[i].session != -1 && !session_seen[tasks[i].session]++) {
            s = str(session_names[tasks[i].session]);
            n += ngx_mcp_name_blocks(&s);
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


/* one with questions, if there is any */

static model_t *
pick_asking(void)
{
    int  i, k;

    k = rnd(MAX);

    for (i = 0; i < MAX; i++) {
        if (tasks[(i + k) % MAX].live
            && tasks[(i + k) % MAX].state == NGX_MCP_INPUT_REQUIRED)
        {
            return &tasks[(i + k) % MAX];
        }
    }

    return pick();
}


static model_t *
pick_held(void)
{
    int  i, k;

    k = rnd(MAX);

    for (i = 0; i < MAX; i++) {
        if (tasks[(i + k) % MAX].live && tasks[(i + k) % MAX].held) {
            return &tasks[(i + k) % MAX];
        }
    }

    return NULL;
}


/* an attempt is over, if there was one */

static void
ran(model_t *m, uint64_t now)
{
    if (m->state == NGX_MCP_QUEUED) {
        return;
    }

    fates[m->tool].runs++;
    fates[m->tool].ran += (m->state == NGX_MCP_RUNNING)
                          ? now - m->since : m->since;
}


static void
end(model_t *m, int state, int cause, uint64_t now)
{
    static const int  keep[] = { 0, 0, 0, 0, 2, 3, 1 };

    ran(m, now);
    fates[m->tool].ended[state]++;
    m->state = state;
    m->cause = cause;
    m->step = NEVER;
    m->phase = NEVER;
    m->expires = ngx_max(m->expires, now + keep[state] * 1000);
}


static void
requeue(model_t *m, uint64_t now, uint64_t delay)
{
    ran(m, now);
    fates[m->tool].requeued++;
    m->since = now + delay;
    m->state = NGX_MCP_QUEUED;
    m->lease = 0;
    m->progress = -1;
    m->step = delay ? now + delay : NEVER;
    m->phase = now + delay + queue_ms;
    m->batch = batch;
}


static uint64_t
lease_end(model_t *m, uint64_t now)
{
    return m->lease_time == NGX_MCP_UNLIMITED
           ? NEVER : now + m->lease_time;
}


static uint64_t
backoff(model_t *m)
{
    return (uint64_t) backoff_ms << (m->attempt - 1);
}


static const char *
status(int state)
{
    return (char *) ngx_mcp_status_name(state)->data;
}


/*
 * A change, if it is one to those who are told of changes.  Its number is the
 * table's to choose, but it has to be greater than any before.
 */

static void
made(model_t *m, model_t *old, int noted, uint64_t before, uint64_t changed)
{
    int  announced, moved;

    announced = (m->announced != old->announced);

    if (m->version == old->version && !announced) {
        return;
    }

    if (changed <= before) {
        fail("a change without a number of its own");
    }

    moved = (m->progress > m->peak);
    m->changed = changed;
    m->peak = ngx_max(m->peak, m->progress);

    if ((announced && m->turned) || noted
        || strcmp(status(m->state), status(old->state)) != 0)
    {
        m->turned = changed;
    }

    if ((announced && m->moved) || moved) {
        m->moved = changed;
    }
}


static int
alive(uint64_t stream)
{
    return stream && lives[stream >> 56] == (stream >> 32 & 0xffffff);
}


/* one of those that there are; a new one, if its process has died */

static uint64_t
any_stream(void)
{
    int  i;

    i = rnd(STREAMS);

    if (!alive(streams[i])) {
        streams[i] = ngx_mcp_stream(i % PLACES, lives[i % PLACES],
                                    ++stream_number);
    }

    return streams[i];
}


static ngx_uint_t
model_carry(model_t *m, uint64_t stream, int yields)
{
    if (m->state != NGX_MCP_INPUT_REQUIRED
        || alive(m->carrier)
        || (yields && m->results))
    {
        return 0;
    }

    if (stream) {
        m->carrier = stream;
        asked++;
    }

    return 1;
}


static model_t *
find(ngx_mcp_id_t *id)
{
    int  i;

    for (i = 0; i < MAX; i++) {
        if (tasks[i].live && memcmp(&tasks[i].id, id, sizeof(*id)) == 0) {
            return &tasks[i];
        }
    }

    return NULL;
}


/* a session lives as long as one of its tasks */

static int
session_lives(int session)
{
    int  i;

    for (i = 0; i < MAX; i++) {
        if (tasks[i].live && tasks[i].session == session) {
            return 1;
        }
    }

    return 0;
}


static void
end_sessions(void)
{
    int  i;

    for (i = 0; i < SESSIONS; i++) {
        if (!session_lives(i)) {
            ngx_memzero(&sessions[i], sizeof(model_session_t));
        }
    }
}


static void
do_create(void)
{
    int                   i, k, session;
    u_char                buf[3][BYTES];
    size_t                need, before;
    model_t              *m;
    ngx_mcp_op_create_t   op;

    for (i = 0; i < MAX && tasks[i].live; i++) { /* void */ }

    m = (i < MAX) ? &tasks[i] : NULL;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CREATE;
    op.op.pool = test_pool;

    i = rnd(OWNERS);
    k = rnd(TOOLS);
    op.task.owner = str(owners[i]);
    op.task.tool = str(tools[k]);
    op.task.method = str("tools/call");
    session = (int) rnd(SESSIONS + 1) - 1;
    op.task.session = str(session == -1 ? NULL : session_names[session]);
    op.task.ttl = rnd(4) ? 1000 + rnd(20000)
                         : rnd(4) ? 1 + rnd(100) : NEVER;
    op.task.policy.priority = rnd(NGX_MCP_PRIORITIES);
    op.task.policy.lease = lease_ms;
    op.task.policy.queue_timeout = queue_ms;
    op.task.policy.run_timeout = run_ms;
    op.task.policy.backoff = backoff_ms;
    op.task.policy.keep_completed = 2;
    op.task.policy.keep_failed = 3;
    op.task.policy.keep_cancelled = 1;
    op.task.policy.attempts = 1 + rnd(3);
    op.task.max_payload = 5500;

    if (rnd(3) == 0) {
        op.task.holder = any_stream();
        op.task.policy.route = 1 + rnd(5);
        op.task.policy.calls = rnd(4) ? rnd(2) : rnd(4);
        op.task.policy.lease = rnd(2) ? lease_ms
                                      : NGX_MCP_UNLIMITED;
    }

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

    if (ngx_mcp_submit(zone, &op.op) != NGX_OK) {
        fail("create failed");
        return;
    }

    if (op.task.params.len > 5500 || op.task.metadata.len > 5500
        || op.task.message.len > 5500)
    {
        expect(op.op.reason, NGX_MCP_PAYLOAD_TOO_LARGE, "create");
        return;
    }

    if (m == NULL) {
        expect(op.op.reason, NGX_MCP_LIMIT_TASKS, "create");
        return;
    }

    m->live = 1;
    m->owner = i;
    m->tool = k;
    m->session = session;
    ngx_memzero(m->len, sizeof(m->len));
    m->len[NGX_MCP_PARAMS] = op.task.params.len;
    m->len[NGX_MCP_METADATA] = op.task.metadata.len;
    m->len[NGX_MCP_MESSAGE] = op.task.message.len;
    need = used_blocks() - before;

    if (before + need + zone->table->sh->block.end / 16
        > zone->table->sh->block.end - 1)
    {
        m->live = 0;
        expect(op.op.reason, NGX_MCP_ZONE_FULL, "create");
        return;
    }

    expect(op.op.reason, NGX_MCP_OK, "create");

    if (op.op.reason != NGX_MCP_OK) {
        m->live = 0;
        return;
    }

    m->id = op.view.id;
    m->seq = op.view.seq;
    m->priority = op.task.policy.priority;
    m->state = NGX_MCP_QUEUED;
    m->version = 1;
    m->lease = 0;
    m->attempt = 0;
    m->attempts = op.task.policy.attempts;
    m->expires = (op.task.ttl == NEVER) ? NEVER
                                        : ngx_current_msec + op.task.ttl;
    m->step = NEVER;
    m->phase = ngx_current_msec + queue_ms;
    m->progress = -1;
    m->since = ngx_current_msec;
    m->worker = -1;
    fates[m->tool].created++;
    m->batch = ++batch;
    m->announced = (session == -1);
    m->changed = op.view.seq;
    m->turned = 0;
    m->moved = 0;
    m->peak = -1;
    m->carrier = 0;
    m->waiting = 0;
    m->results = 0;
    m->cause = NGX_MCP_CAUSE_NONE;
    m->held = (op.task.policy.route != 0);
    m->holder = op.task.holder;
    m->calls = op.task.policy.calls;
    m->lease_time = op.task.policy.lease;
    m->refused = 0;

    for (i = 0; i < 3; i++) {
        m->seed[i] = ops + i;
    }
}


static void
compare_task(model_t *m, ngx_mcp_view_t *v)
{
    expect(v->task.state, m->state, "state");
    expect(v->task.version, m->version, "version");
    expect(v->task.lease, m->lease, "lease");
    expect(v->task.attempt, m->attempt, "attempt");
    expect(v->task.expires, m->expires, "expires");
    expect(v->task.step_end, m->step, "step");
    expect(v->task.phase_end, m->phase, "phase");
    expect(v->task.cause, m->cause, "cause");
    expect(v->task.holder, m->holder, "holder");
    expect(v->seq, m->seq, "seq");
    expect(v->changed, m->changed, "changed");
    expect(v->turned, m->turned, "turned");
    expect(v->moved, m->moved, "moved");
    expect((v->task.flags & NGX_MCP_ANNOUNCED) != 0, m->announced,
           "announced");

    if (v->task.progress != m->progress) {
        fail("progress");
    }
}


static void
compare(model_t *m, ngx_mcp_view_t *v)
{
    int     k;
    u_char  buf[BYTES];

    compare_task(m, v);

    if (v->owner.len != strlen(owners[m->owner])
        || memcmp(v->owner.data, owners[m->owner], v->owner.len) != 0)
    {
        fail("owner");
    }

    for (k = 0; k < NGX_MCP_PAYLOADS; k++) {
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
    model_t           *m;
    ngx_str_t          owner;
    ngx_uint_t         expected;
    ngx_mcp_op_get_t   op;

    m = rnd(10) ? pick() : pick_asking();

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_GET;
    op.op.pool = test_pool;
    op.want = NGX_MCP_WANT_ALL;
    op.watch = rnd(2);
    op.carrier = rnd(2) ? any_stream() : 0;
    expected = NGX_MCP_OK;

    if (m == NULL || rnd(20) == 0) {
        (void) ngx_mcp_id_new(&op.id);
        expected = NGX_MCP_NOT_FOUND;

    } else {
        op.id = m->id;

        if (rnd(2)) {
            owner = str(owners[rnd(OWNERS)]);
            op.owner = &owner;

            if (strcmp((char *) owner.data, owners[m->owner]) != 0) {
                expected = NGX_MCP_NOT_FOUND;
            }
        }

        if (ngx_current_msec >= m->expires) {
            expected = NGX_MCP_NOT_FOUND;
        }
    }

    (void) ngx_mcp_submit(zone, &op.op);
    expect(op.op.reason, expected, "get");

    if (op.op.reason == NGX_MCP_OK && m) {
        compare(m, &op.view);
        expect(op.view.asks, model_carry(m, op.carrier, 0), "asks");
    }
}


static void
do_claim(void)
{
    int                  i, tool, worker;
    model_t             *m, *best, old;
    uint64_t             before;
    ngx_str_t            name;
    ngx_mcp_op_claim_t   op;

    tool = rnd(TOOLS);
    name = str(tools[tool]);

    for (best = NULL, i = 0; i < MAX; i++) {
        m = &tasks[i];

        if (m->live && m->tool == tool && !m->held && !paused[tool]
            && m->state == NGX_MCP_QUEUED
            && m->step == NEVER
            && (best == NULL || m->priority > best->priority
                || (m->priority == best->priority && m->batch < best->batch)))
        {
            best = m;
        }
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CLAIM;
    op.op.pool = test_pool;
    op.tools = &name;
    op.ntools = 1;
    op.want = NGX_MCP_WANT_ALL;
    op.watch = rnd(2);
    worker = (int) rnd(WORKERS + 1) - 1;
    op.worker = str(worker == -1 ? NULL : worker_names[worker]);
    before = zone->table->sh->seq;

    if (worker != -1) {
        workers[worker].seen = ngx_current_msec;
    }

    if (worker != -1 && draining[worker]) {
        best = NULL;
    }

    (void) ngx_mcp_submit(zone, &op.op);
    expect(op.found, best != NULL, "claim");
    expect(op.drain, worker != -1 && draining[worker], "drain");
    expect(op.more, 0, "more to claim");

    if (!op.found || best == NULL) {
        return;
    }

    /* those that became claimable in one sweep are equals */

    m = find(&op.view.id);

    if (m == NULL || m->tool != tool || m->priority != best->priority
        || m->batch != best->batch)
    {
        fail("claimed another task than the first");
        return;
    }

    old = *m;
    m->state = NGX_MCP_RUNNING;
    m->version++;
    m->lease = op.view.task.lease;
    m->attempt++;
    m->step = ngx_current_msec + lease_ms;
    m->phase = ngx_current_msec + run_ms;
    fates[tool].claimed++;
    fates[tool].waited += ngx_current_msec - m->since;
    m->since = ngx_current_msec;
    m->worker = worker;

    if (worker != -1) {
        workers[worker].claimed++;
    }

    made(m, &old, 0, before, op.view.changed);

    compare(m, &op.view);
}


static int
runs(model_t *m)
{
    return m->live && m->held
           && (m->state == NGX_MCP_RUNNING
               || m->state == NGX_MCP_INPUT_REQUIRED);
}


/* how many calls run, of a tool or, if it is -1, of all */

static uint32_t
running(int tool)
{
    int       i;
    uint32_t  n;

    for (n = 0, i = 0; i < MAX; i++) {
        n += runs(&tasks[i]) && (tool == -1 || tasks[i].tool == tool);
    }

    return n;
}


static int
waits(model_t *m)
{
    return m->live && m->held && m->state == NGX_MCP_QUEUED
           && m->step == NEVER;
}


/* a call that waits may run, if those who wait for longer leave room for it */

static int
may_run(model_t *m, uint32_t max_zone, uint32_t max_tool)
{
    int       i;
    uint32_t  zone_calls, tool_calls;
    model_t  *b;

    zone_calls = running(-1);
    tool_calls = running(m->tool);

    for (i = 0; i < MAX; i++) {
        b = &tasks[i];

        if (waits(b) && b->seq < m->seq && alive(b->holder)
            && !paused[b->tool]
            && (max_tool == 0 || running(b->tool) < max_tool))
        {
            zone_calls++;
            tool_calls += (b->tool == m->tool);
        }
    }

    return !paused[m->tool]
           && (max_zone == 0 || zone_calls < max_zone)
           && (max_tool == 0 || tool_calls < max_tool);
}


/* the one that has waited for longest, of those whose process is alive */

static model_t *
pick_first(void)
{
    int       i;
    model_t  *first;

    for (first = NULL, i = 0; i < MAX; i++) {
        if (waits(&tasks[i]) && alive(tasks[i].holder)
            && (first == NULL || tasks[i].seq < first->seq))
        {
            first = &tasks[i];
        }
    }

    return first;
}


/* who was refused and may run now has been told, and looks again */

static void
check_room(void)
{
    int               i, told;
    ngx_uint_t        n, k;
    ngx_mcp_signal_t  signals[16];

    told = 0;

    do {
        n = ngx_mcp_signal_read(zone->table, &room_cursor, signals, 16);

        for (k = 0; k < ngx_min(n, 16); k++) {
            told |= (n > 16 || signals[k].key == NGX_MCP_ROOM);
        }

    } while (n && n <= 16);

    for (i = 0; i < MAX; i++) {

        if (!tasks[i].refused) {
            continue;
        }

        if (told || !waits(&tasks[i]) || !alive(tasks[i].holder)) {
            tasks[i].refused = 0;

        } else if (may_run(&tasks[i], tasks[i].max_zone, tasks[i].max_tool)) {
            fail("a call may run, and is not told");
        }
    }
}


static void
check_running(void)
{
    int                i;
    uint32_t           n;
    ngx_str_t          name;
    ngx_uint_t         holding;
    ngx_mcp_table_t   *t;

    t = zone->table;

    for (holding = 0, i = 0; i < MAX; i++) {
        holding += tasks[i].live && tasks[i].held
                   && tasks[i].state < NGX_MCP_COMPLETED;
    }

    expect(t->sh->holding, holding, "calls that are held");
    expect(t->sh->running, running(-1), "calls that run");

    for (i = 0; i < TOOLS; i++) {
        name = str(tools[i]);
        n = ngx_mcp_name_find_locked(t, NGX_MCP_TOOL,
                &name, ngx_mcp_name_hash(t, NGX_MCP_TOOL, &name));
        expect(n ? ngx_mcp_name(t, n)->running : 0, running(i),
               "calls of a tool that run");
    }
}


/* what the event does to the model; the reason it is refused with */

static ngx_uint_t
model_event(model_t *m, ngx_mcp_event_t *ev)
{
    int       run, input;
    uint64_t  now;

    now = ngx_current_msec;
    run = (m->state == NGX_MCP_RUNNING);
    input = (m->state == NGX_MCP_INPUT_REQUIRED);

    if (ngx_mcp_fenced(ev->type)) {
        if (ev->lease == 0 || ev->lease != m->lease) {
            return NGX_MCP_LEASE_LOST;
        }
    }

    if (ev->type == NGX_MCP_EV_ANNOUNCE) {
        m->announced = 1;
        return NGX_MCP_OK;
    }

    if (m->state >= NGX_MCP_COMPLETED) {
        return NGX_MCP_TERMINAL;
    }

    switch (ev->type) {

    case NGX_MCP_EV_HEARTBEAT:
        if (run) {
            m->step = lease_end(m, now);
        }

        return NGX_MCP_OK;

    case NGX_MCP_EV_PROGRESS:
    case NGX_MCP_EV_REPORT:
        if (!run && !input) {
            return NGX_MCP_STATE_INVALID;
        }

        if (ev->progress < m->progress) {
            return NGX_MCP_PROGRESS_BACKWARDS;
        }

        m->progress = ev->progress;

        if (run && ev->type == NGX_MCP_EV_PROGRESS) {
            m->step = lease_end(m, now);
        }

        break;

    case NGX_MCP_EV_ASK:
        if (!run) {
            return NGX_MCP_STATE_INVALID;
        }

        m->state = NGX_MCP_INPUT_REQUIRED;
        m->carrier = 0;
        m->step = NEVER;
        m->phase = (m->phase > now) ? m->phase - now : 0;
        m->since = now - m->since;
        break;

    case NGX_MCP_EV_COMPLETE:
        end(m, NGX_MCP_COMPLETED, NGX_MCP_CAUSE_NONE, now);
        break;

    case NGX_MCP_EV_FAIL:
        end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_NONE, now);
        break;

    case NGX_MCP_EV_RETRY:
        if (m->attempt >= m->attempts) {
            end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_NONE, now);

        } else {
            requeue(m, now, backoff(m));
        }

        break;

    case NGX_MCP_EV_RELEASE:
        batch++;
        requeue(m, now, 0);
        m->attempt--;
        break;

    case NGX_MCP_EV_ANSWER:
        if (!input) {
            return NGX_MCP_STATE_INVALID;
        }

        break;

    case NGX_MCP_EV_ANSWER_ALL:
        if (!input) {
            return NGX_MCP_STATE_INVALID;
        }

        m->state = NGX_MCP_RUNNING;
        m->step = lease_end(m, now);
        m->phase += now;
        m->since = now - m->since;
        break;

    case NGX_MCP_EV_CANCEL:
        end(m, NGX_MCP_CANCELLED, NGX_MCP_CAUSE_CANCELLED, now);
        break;

    case NGX_MCP_EV_ORPHANED:
        if (ev->holder == 0
            || m->calls & NGX_MCP_BOUND
            || ((run || input)
                && (!(m->calls & NGX_MCP_IDEMPOTENT)
                    || m->attempt >= m->attempts)))
        {
            end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_PROCESS_LOST, now);

        } else if (run || input) {
            requeue(m, now, backoff(m));
        }

        m->holder = ev->holder;
        break;
    }

    m->version++;

    return NGX_MCP_OK;
}


/* what it means for the worker that has the task */

static void
model_work(model_t *m, ngx_uint_t event)
{
    if (m->worker == -1 || !ngx_mcp_fenced(event)) {
        return;
    }

    workers[m->worker].seen = ngx_current_msec;

    switch (event) {
    case NGX_MCP_EV_COMPLETE:
        workers[m->worker].completed++;
        break;
    case NGX_MCP_EV_FAIL:
    case NGX_MCP_EV_RETRY:
        workers[m->worker].failed++;
        break;
    }
}


static void
do_event(void)
{
    int                   k, dropped, noted;
    model_fates_t         were;
    u_char                buf[BYTES];
    size_t                need, room;
    model_t              *m, next;
    uint64_t              before;
    ngx_uint_t            expected;
    ngx_mcp_op_update_t   op;

    m = pick();

    if (m == NULL) {
        return;
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.op.pool = test_pool;
    op.id = m->id;
    op.want = NGX_MCP_WANT_ALL;

    do {
        op.event.type = rnd(NGX_MCP_EV_REPORT + 1);
    } while (op.event.type == NGX_MCP_EV_CLAIM);

    if (rnd(m->announced ? 30 : 3) == 0) {
        op.event.type = NGX_MCP_EV_ANNOUNCE;

    } else if (m->state == NGX_MCP_RUNNING && rnd(3) == 0) {
        op.event.type = NGX_MCP_EV_ASK;
    }

    if (m->held && !alive(m->holder) && rnd(4) == 0) {
        op.event.type = NGX_MCP_EV_ORPHANED;
        op.event.holder = rnd(2) ? any_stream() : 0;
    }

    op.event.lease = rnd(10) ? m->lease : rnd(2) ? rnd(1000) : 0;
    op.event.progress = rnd(100) / 100.0;

    k = rnd(NGX_MCP_PAYLOADS - 1) + 1;

    if (rnd(3)) {
        op.change.payload[k].data = buf;
        op.change.payload[k].len = random_len();
        fill(buf, ops, op.change.payload[k].len);
    }

    op.change.max_payload = 5800;
    op.version = rnd(5) ? 0 : m->version + (rnd(2) ? 0 : 1);

    dropped = 0;
    next = *m;
    were = fates[m->tool];
    expected = model_event(&next, &op.event);

    need = ngx_mcp_blocks_for(op.change.payload[k].len);
    room = zone->table->sh->block.end - 1 - used_blocks();

    if (expected == NGX_MCP_OK) {

        if (op.change.payload[k].len > 5800) {
            expected = NGX_MCP_PAYLOAD_TOO_LARGE;

        } else if (need > room) {

            if (op.event.type == NGX_MCP_EV_CANCEL) {
                dropped = 1;

            } else {
                expected = NGX_MCP_ZONE_FULL;
            }
        }
    }

    if (op.version && op.version != m->version) {
        expected = NGX_MCP_VERSION_CONFLICT;
    }

    if (ngx_current_msec >= m->expires) {
        expected = NGX_MCP_NOT_FOUND;
    }

    before = zone->table->sh->seq;
    noted = (k == NGX_MCP_MESSAGE && !dropped
             && op.change.payload[k].data
             && (m->len[k] || op.change.payload[k].len));

    (void) ngx_mcp_submit(zone, &op.op);
    expect(op.op.reason, expected, "event");

    if (op.op.reason != NGX_MCP_OK) {
        fates[m->tool] = were;
        return;
    }

    model_work(&next, op.event.type);
    made(&next, m, noted, before, op.view.changed);
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
               ngx_current_msec < m->expires ? NGX_MCP_OK
                                             : NGX_MCP_NOT_FOUND,
               "delete");
        m->live = (ngx_current_msec >= m->expires);
        fates[m->tool].dropped += (!m->live
                                   && m->state < NGX_MCP_COMPLETED);
        end_sessions();
    }
}


static void
model_time(model_t *m, uint64_t now)
{
    while (m->live) {

        if (now >= m->expires) {
            m->live = 0;
            fates[m->tool].lapsed += (m->state < NGX_MCP_COMPLETED);

        } else if (m->state == NGX_MCP_QUEUED && now >= m->phase) {
            end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_QUEUE_TIMEOUT, now);
            m->version++;

        } else if (m->state == NGX_MCP_QUEUED && now >= m->step) {
            m->step = NEVER;
            m->batch = batch;

        } else if (m->state == NGX_MCP_RUNNING && now >= m->phase) {
            end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_RUN_TIMEOUT, now);
            m->version++;

        } else if (m->state == NGX_MCP_RUNNING && now >= m->step) {
            m->version++;
            fates[m->tool].leases_lost++;

            if (m->attempt >= m->attempts) {
                end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_LEASE_LOST, now);

            } else {
                requeue(m, now, backoff(m));
            }

        } else {
            return;
        }
    }
}


/* everything that is due happens */

static void
sweep(void)
{
    int              i;
    model_t          old;
    uint64_t         before;
    ngx_uint_t       limit;
    ngx_mcp_slot_t  *s;

    before = zone->table->sh->seq;
    limit = 1 + rnd(50);

    for (i = 0; test_sweep(zone, limit) == limit; i++) {
        if (i > 10000) {
            fail("the sweep does not end");
            return;
        }
    }

    batch++;

    for (i = 0; i < MAX; i++) {
        if (!tasks[i].live) {
            continue;
        }

        old = tasks[i];
        model_time(&tasks[i], ngx_current_msec);

        if (!tasks[i].live) {
            continue;
        }

        s = ngx_mcp_find_locked(zone->table, &tasks[i].id, NULL, 0);

        if (s == NULL) {
            fail("a task is lost");

        } else {
            made(&tasks[i], &old, 0, before, s->body.changed);
        }
    }

    end_sessions();

    expect(zone->table->sh->slot.used, live(), "tasks after a sweep");
}


static void
do_time(void)
{
    ngx_current_msec += rnd(20) ? rnd(20) : rnd(30000);
    sweep();
}


static int
newer(const void *a, const void *b)
{
    const model_t  *x = *(model_t **) a, *y = *(model_t **) b;

    return (x->seq < y->seq) - (x->seq > y->seq);
}


/* a process begins a call that it has; at times one that another has */

static ngx_uint_t
model_run(model_t *m, ngx_mcp_op_run_t *op)
{
    uint64_t  now;

    now = ngx_current_msec;

    if (now >= m->expires) {
        return NGX_MCP_NOT_FOUND;
    }

    if (op->holder != m->holder) {
        return NGX_MCP_LEASE_LOST;
    }

    model_time(m, now);

    if (m->state >= NGX_MCP_COMPLETED) {
        return NGX_MCP_TERMINAL;
    }

    if (!waits(m)) {
        return NGX_MCP_STATE_INVALID;
    }

    if (!may_run(m, op->max_zone, op->max_tool)) {
        overtaken += !paused[m->tool]
                     && (op->max_zone == 0 || running(-1) < op->max_zone)
                     && (op->max_tool == 0 || running(m->tool) < op->max_tool);
        m->refused = 1;
        m->max_zone = op->max_zone;
        m->max_tool = op->max_tool;
        return NGX_MCP_LIMIT_RUNNING;
    }

    fates[m->tool].claimed++;
    fates[m->tool].waited += now - m->since;
    m->since = now;
    m->state = NGX_MCP_RUNNING;
    m->version++;
    m->attempt++;
    m->step = lease_end(m, now);
    m->phase = now + run_ms;

    return NGX_MCP_OK;
}


static void
do_run(void)
{
    int                late;
    model_t           *m, old;
    uint64_t           before;
    ngx_uint_t         expected;
    ngx_mcp_op_run_t   op;

    m = rnd(2) ? pick_first() : NULL;
    m = m ? m : pick_held();

    if (m == NULL) {
        return;
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_RUN;
    op.op.pool = test_pool;
    op.id = m->id;
    op.holder = rnd(20) ? m->holder : any_stream();
    op.max_zone = rnd(4) ? 4 + rnd(20) : 0;
    op.max_tool = rnd(2) ? 1 + rnd(6) : 0;

    /* before it is swept */

    late = (rnd(20) == 0);

    if (late) {
        ngx_current_msec += rnd(2) ? rnd(100) : rnd(3000);
    }

    old = *m;
    before = zone->table->sh->seq;
    expected = model_run(m, &op);

    (void) ngx_mcp_submit(zone, &op.op);
    expect(op.op.reason, expected, "run");

    if (expected != NGX_MCP_NOT_FOUND) {

        if (expected == NGX_MCP_OK) {
            m->lease = op.view.task.lease;
            began++;
        }

        refused += (expected == NGX_MCP_LIMIT_RUNNING);
        made(m, &old, 0, before, op.view.changed);
        compare_task(m, &op.view);
    }

    if (late) {
        check_room();
        sweep();
    }
}


/* a tool is paused or goes on, a worker is drained or goes on */

static void
do_control(void)
{
    int                   i;
    ngx_uint_t            reason;
    ngx_mcp_op_control_t  op;

    ngx_memzero(&op, sizeof(op));
    op.on = rnd(3) == 0;

    if (rnd(2)) {
        i = rnd(TOOLS);
        op.op.type = NGX_MCP_OP_PAUSE;
        op.name = str(tools[i]);
        reason = NGX_MCP_TOOL_NOT_FOUND;

        if (fates[i].created) {
            paused[i] = (int) op.on;
            reason = NGX_MCP_OK;
        }

    } else {
        i = rnd(WORKERS);
        op.op.type = NGX_MCP_OP_DRAIN;
        op.name = str(worker_names[i]);
        reason = NGX_MCP_WORKER_NOT_FOUND;

        if (workers[i].seen) {
            draining[i] = (int) op.on;
            reason = NGX_MCP_OK;
        }
    }

    (void) ngx_mcp_submit(zone, &op.op);
    expect(op.op.reason, reason, "control");
    controls += (reason == NGX_MCP_OK && op.on);
}


static int
older(const void *a, const void *b)
{
    return newer(b, a);
}


/* the calls of the dead, in the order in which they came */

static void
do_orphans(void)
{
    int                    i, n;
    model_t               *sorted[MAX], old;
    uint64_t               before;
    ngx_uint_t             k;
    ngx_mcp_event_t        ev;
    ngx_mcp_slot_t        *s;
    ngx_mcp_op_orphans_t   op;

    for (n = 0, i = 0; i < MAX; i++) {
        if (tasks[i].live && tasks[i].held && !alive(tasks[i].holder)
            && tasks[i].state < NGX_MCP_COMPLETED)
        {
            sorted[n++] = &tasks[i];
        }
    }

    qsort(sorted, n, sizeof(model_t *), older);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_ORPHANS;
    op.op.pool = test_pool;
    op.holder = rnd(3) ? any_stream() : 0;
    op.limit = rnd(2) ? 1 + rnd(5) : NGX_MCP_LIST_MAX;
    op.want = NGX_MCP_WANT_ALL;

    before = zone->table->sh->seq;
    n = ngx_min((int) op.limit, n);

    (void) ngx_mcp_submit(zone, &op.op);
    expect(op.more, (int) op.limit == n, "more orphans");

    ngx_memzero(&ev, sizeof(ev));
    ev.type = NGX_MCP_EV_ORPHANED;
    ev.holder = op.holder;

    for (k = 0, i = 0; i < n; i++) {
        old = *sorted[i];
        expect(model_event(sorted[i], &ev), NGX_MCP_OK, "orphaned");
        sorted[i]->len[NGX_MCP_REQUESTS] = 0;

        s = ngx_mcp_find_locked(zone->table, &old.id, NULL, 0);

        if (s == NULL) {
            fail("a call is lost");
            return;
        }

        made(sorted[i], &old, 0, before, s->body.changed);
        orphans++;

        if (sorted[i]->state == NGX_MCP_QUEUED) {

            if (k == op.n) {
                fail("a call was not handed over");
                return;
            }

            compare(sorted[i], &op.views[k++]);
            adopted++;
        }
    }

    expect(op.n, k, "calls handed over");
}


static void
do_list(void)
{
    int                 i, n, k, owner;
    model_t            *sorted[MAX];
    ngx_mcp_op_list_t   op;

    owner = rnd(OWNERS);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LIST;
    op.op.pool = test_pool;
    op.owner = str(owners[owner]);
    op.limit = 1 + rnd(40);
    op.want = NGX_MCP_WANT_ALL;
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
        (void) ngx_mcp_submit(zone, &op.op);

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


static int
earlier(const void *a, const void *b)
{
    const model_t  *x = *(model_t **) a, *y = *(model_t **) b;

    return (x->changed > y->changed) - (x->changed < y->changed);
}


/* those of an owner or of a session that changed, in this order */

static int
changed_since(model_t **sorted, int owner, int session, uint64_t after)
{
    int       i, n;
    model_t  *m;

    for (n = 0, i = 0; i < MAX; i++) {
        m = &tasks[i];

        if (m->live && m->changed > after
            && (owner == -1 || m->owner == owner)
            && (session == -1 || (m->session == session && m->announced)))
        {
            sorted[n++] = m;
        }
    }

    qsort(sorted, n, sizeof(model_t *), earlier);

    return n;
}


/* an owner's tasks that changed since somebody looked last */

static void
do_news(void)
{
    int                 i, n, k;
    model_t            *sorted[MAX];
    model_reader_t     *reader;
    ngx_mcp_op_news_t   op;

    reader = &readers[rnd(READERS)];

    if (rnd(50) == 0) {
        reader->owner = rnd(OWNERS);
        reader->after = 0;
    }

    if (rnd(5) == 0) {
        reader->hint = rnd(MAX + 10);
    }

    n = changed_since(sorted, reader->owner, -1, reader->after);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_NEWS;
    op.op.pool = test_pool;
    op.owner = str(owners[reader->owner]);
    op.after = reader->after;
    op.hint = reader->hint;
    op.want = NGX_MCP_WANT_ALL;
    op.watch = rnd(2);

    k = 0;

    do {
        op.limit = 1 + rnd(40);
        (void) ngx_mcp_submit(zone, &op.op);
        expect(op.n, ngx_min((int) op.limit, n - k), "news");

        for (i = 0; i < (int) op.n && k < n; i++, k++) {
            compare(sorted[k], &op.views[i]);
        }

        expect(op.after, k ? sorted[k - 1]->changed : reader->after, "cursor");

    } while (op.n && errors == 0 && rnd(10));

    reader->after = op.after;
    reader->hint = op.hint;
}


/* what the stream before asked, or one that is dead, is to be asked again */

static void
model_regain(int k, uint64_t seq)
{
    int               i, n;
    model_t          *sorted[MAX];
    model_session_t  *session;

    session = &sessions[k];
    n = changed_since(sorted, -1, k, 0);

    for (i = n - 1; i >= 0; i--) {

        if (sorted[i]->state != NGX_MCP_INPUT_REQUIRED
            || (sorted[i]->carrier != session->stream
                && alive(sorted[i]->carrier)))
        {
            continue;
        }

        sorted[i]->carrier = 0;

        if (sorted[i]->changed <= session->told) {
            sorted[i]->changed = ++seq;
            touched++;
        }
    }

    session->epoch = epoch;
}


static void
do_session(void)
{
    int                    i, n, k, from, newer;
    model_t               *sorted[MAX];
    uint32_t               opened;
    uint64_t               after, seq;
    model_session_t       *session;
    ngx_mcp_op_session_t   op;

    k = rnd(SESSIONS);
    session = &sessions[k];

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_SESSION;
    op.op.pool = test_pool;
    op.session = str(session_names[k]);
    op.stream = (alive(session->stream) && rnd(4)) ? session->stream
                                                   : any_stream();
    op.opened = rnd(5) ? session->opened + 1 - rnd(3) : 0;
    op.after = rnd(2) ? 0 : rnd(zone->table->sh->seq + 100);
    op.limit = 1 + rnd(60);
    op.want = NGX_MCP_WANT_ALL;
    op.watch = rnd(2);

    from = n = 0;
    seq = zone->table->sh->seq;
    opened = op.opened ? op.opened : zone->table->sh->opened + 1;
    newer = ((int32_t) (opened - session->opened) >= 0);

    if (session_lives(k)
        && (newer || op.stream == session->stream || !alive(session->stream)))
    {
        if (op.stream != session->stream) {
            model_regain(k, seq);
            session->stream = op.stream;
            session->opened = opened;
            after = op.after;

        } else {
            if (session->epoch != epoch) {
                model_regain(k, seq);
            }

            after = 0;
        }

        if (after) {
            for (i = 0; i < MAX; i++) {
                seq = tasks[i].live ? ngx_max(seq, tasks[i].changed) : seq;
            }

            after = ngx_min(after, seq);
            n = changed_since(sorted, -1, k, after);
            session->told = (n > BEHIND) ? sorted[n - BEHIND - 1]->changed
                                         : after;
        }

        n = changed_since(sorted, -1, k, session->told);

        if (n > BEHIND) {
            from = n - BEHIND;
            dropped_news += from;
            session->told = sorted[from - 1]->changed;
        }
    }

    (void) ngx_mcp_submit(zone, &op.op);

    expect(op.silent, session_lives(k) && op.stream != session->stream,
           "silent");
    expect(op.n, ngx_min((int) op.limit, n - from), "a session's news");
    expect(zone->table->sh->count.news_dropped, dropped_news, "dropped");

    for (i = 0; i < (int) op.n && from < n; i++, from++) {
        compare(sorted[from], &op.views[i]);
        expect(op.views[i].asks, model_carry(sorted[from], op.stream, 1),
               "a session asks");
        session->told = sorted[from]->changed;
        told_news++;
    }
}


/* a request begins to wait */

static void
do_wait(void)
{
    int                 i;
    model_t            *m;
    ngx_uint_t          expected;
    model_waiter_t     *w;
    ngx_mcp_op_wait_t   op;

    for (i = 0; i < WAITERS && waiters[i].used; i++) { /* void */ }

    if (i == WAITERS) {
        return;
    }

    w = &waiters[i];
    m = rnd(4) ? rnd(2) ? pick() : pick_asking() : NULL;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_WAIT;
    op.op.pool = test_pool;
    op.id = m ? &m->id : NULL;
    op.max_task = 1 + rnd(3);
    op.max_zone = 5 + rnd(20);
    op.result = rnd(2);

    expected = NGX_MCP_OK;

    if ((waiting >= op.max_zone || (m && m->waiting >= op.max_task))
        && (m == NULL || m->state < NGX_MCP_COMPLETED))
    {
        expected = NGX_MCP_LIMIT_WAITERS;
    }

    (void) ngx_mcp_submit(zone, &op.op);
    expect(op.op.reason, expected, "wait");

    if (op.op.reason != NGX_MCP_OK) {
        limited++;
        return;
    }

    expect(op.epoch, epoch, "epoch");

    w->used = 1;
    w->task = (m != NULL);
    w->result = op.result;
    w->stream = any_stream();
    w->epoch = op.epoch;
    waiting++;

    if (m) {
        w->id = m->id;
        m->waiting++;
        m->results += op.result;
    }

    expect(zone->table->sh->waiting, waiting, "waiting");
}


/* another ceases to; at times it spoke for a session */

static void
do_leave(void)
{
    int                 k, ended, mine;
    model_t            *m;
    uint64_t            seq;
    model_waiter_t     *w;
    ngx_mcp_op_wait_t   op;
    ngx_mcp_slot_t     *s;

    w = &waiters[rnd(WAITERS)];

    if (!w->used) {
        return;
    }

    k = rnd(SESSIONS);
    w->used = 0;
    m = w->task ? find(&w->id) : NULL;

    if (m && rnd(2)) {
        /* as it happens to those that ask */
        w->stream = m->carrier ? m->carrier : w->stream;
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LEAVE;
    op.op.pool = test_pool;
    op.id = w->task ? &w->id : NULL;
    op.result = w->result;
    op.counted = 1;
    op.epoch = w->epoch;
    op.carrier = w->stream;

    if (rnd(4) == 0) {
        op.session = str(session_names[k]);
        op.carrier = rnd(2) ? op.carrier : any_stream();
    }

    seq = zone->table->sh->seq;
    ended = (op.session.len && session_lives(k)
             && sessions[k].stream && sessions[k].stream == op.carrier);

    (void) ngx_mcp_submit(zone, &op.op);
    expect(op.ended, ended, "ended");

    if (w->epoch == epoch) {
        waiting--;

        if (m) {
            m->waiting--;
            m->results -= w->result;
        }
    }

    expect(zone->table->sh->waiting, waiting, "waiting");

    mine = (m && m->carrier == op.carrier);

    if (mine) {
        m->carrier = 0;
    }

    if (m && (mine || w->result) && model_carry(m, 0, 0)) {
        s = ngx_mcp_find_locked(zone->table, &m->id, NULL, 0);
        touched++;

        if (s->body.changed <= seq) {
            fail("left without a question being asked again");
        }

        m->changed = ++seq;
    }

    if (ended) {
        model_regain(k, seq);
        sessions[k].stream = 0;
    }
}


/* a process dies, and another has its place; those who wait count anew */

static void
do_death(void)
{
    int                i;
    ngx_mcp_header_t  *sh;

    sh = zone->table->sh;
    i = rnd(PLACES);

    sh->lives[i] = ++lives[i];
    sh->epoch = ++epoch;
    sh->waiting = 0;
    waiting = 0;
    ngx_mcp_signal_all_locked(zone->table);

    for (i = 0; i < MAX; i++) {
        tasks[i].waiting = 0;
        tasks[i].results = 0;
    }

    for (i = 0; i < WAITERS; i++) {
        if (waiters[i].used && !alive(waiters[i].stream)) {
            waiters[i].used = 0;
        }
    }
}


/* the figures of a tool, which are always there for these few */

static void
compare_fates(int tool, ngx_mcp_tool_view_t *v)
{
    int               i, states[NGX_MCP_STATES];
    uint64_t          waits, runs, oldest;
    model_fates_t    *f;
    ngx_mcp_fates_t  *count;

    f = &fates[tool];
    count = &v->stat.count;
    waits = runs = oldest = 0;

    for (i = 0; i < NGX_MCP_BUCKETS; i++) {
        waits += count->wait.bucket[i];
        runs += count->run.bucket[i];
    }

    expect(count->created, f->created, "created");
    expect(count->completed, f->ended[NGX_MCP_COMPLETED], "completed");
    expect(count->failed, f->ended[NGX_MCP_FAILED], "failed");
    expect(count->cancelled, f->ended[NGX_MCP_CANCELLED], "cancelled");
    expect(count->lapsed, f->lapsed, "lapsed");
    expect(count->dropped, f->dropped, "dropped");
    expect(count->claimed, f->claimed, "claimed");
    expect(count->requeued, f->requeued, "requeued");
    expect(count->leases_lost, f->leases_lost, "leases lost");
    expect(waits, f->claimed, "times waited");
    expect(count->wait.sum, f->waited, "time waited");
    expect(runs, f->runs, "times run");
    expect(count->run.sum, f->ran, "time run");

    memset(states, 0, sizeof(states));

    for (i = 0; i < MAX; i++) {
        if (!tasks[i].live || tasks[i].tool != tool) {
            continue;
        }

        states[tasks[i].state]++;

        if (tasks[i].state == NGX_MCP_QUEUED
            && tasks[i].step == NEVER)
        {
            oldest = ngx_max(oldest, ngx_current_msec - tasks[i].since);
        }
    }

    for (i = 1; i < NGX_MCP_STATES; i++) {
        expect(v->stat.states[i], states[i], "tasks of a tool by state");
    }

    /* those that one sweep makes claimable come in any order */

    if (v->oldest > oldest) {
        fail("the oldest waits for %lu, not for %lu",
             (unsigned long) v->oldest, (unsigned long) oldest);
    }
}


static void
do_stats(void)
{
    int                 i;
    ngx_uint_t          k, found;
    ngx_str_t           name;
    ngx_mcp_op_stats_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_STATS;
    op.op.pool = test_pool;
    op.detail = 1;
    (void) ngx_mcp_submit(zone, &op.op);

    for (found = 0, i = 0; i < TOOLS; i++) {
        name = str(tools[i]);

        for (k = 1; k < op.ntools; k++) {
            if (op.tool_views[k].stat.len == name.len
                && memcmp(op.tool_views[k].stat.name, name.data, name.len)
                   == 0)
            {
                compare_fates(i, &op.tool_views[k]);
                expect(op.tool_views[k].stat.paused, paused[i],
                       "whether a tool is paused");
                found++;
            }
        }
    }

    expect(found + 1, op.ntools, "tools");
    expect(op.tool_views[0].stat.count.created, 0, "other tools");

    for (found = 0, i = 0; i < WORKERS; i++) {
        name = str(worker_names[i]);

        for (k = 0; k < op.nworkers; k++) {
            if (op.worker_views[k].len == name.len
                && memcmp(op.worker_views[k].name, name.data, name.len) == 0)
            {
                expect(op.worker_views[k].claimed, workers[i].claimed,
                       "claims of a worker");
                expect(op.worker_views[k].completed, workers[i].completed,
                       "completed by a worker");
                expect(op.worker_views[k].failed, workers[i].failed,
                       "failed by a worker");
                expect(op.worker_views[k].seen, workers[i].seen,
                       "when a worker was seen");
                expect(op.worker_views[k].draining, draining[i],
                       "whether it drains");
                found++;
            }
        }
    }

    expect(found, op.nworkers, "workers");
}


/* what a process that dies may leave behind, and worse */

static void
wreck_names(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_name_t  *name;

    name = ngx_mcp_name(t, s->owner);
    ngx_memset(&name->u, 0xaa, sizeof(name->u));

    name = ngx_mcp_name(t, s->tool);
    ngx_memset(&name->u, 0x99, sizeof(name->u));
    name->running += 3;

    if (s->session) {
        name = ngx_mcp_name(t, s->session);
        name->tasks = 12345;
        name->u.told.news = 12345678;
        name->u.told.behind = 4711;
    }
}


/* but not the number of the last change, which all that is told relies on */

static void
do_wreck(void)
{
    uint32_t          i;
    ngx_mcp_table_t  *t;

    t = zone->table;

    for (i = 0; i <= t->sh->hash_mask; i++) {
        t->hash[i] = (uint32_t) rnd(1u << 31);
    }

    ngx_memset(t->names, 0xff, (t->sh->name_mask + 1) * 4);
    ngx_memset(t->sh->wheel.head, 0xee, sizeof(t->sh->wheel.head));
    ngx_memset(t->sh->wheel.map, 0xdd, sizeof(t->sh->wheel.map));
    ngx_memset(t->sh->states, 0xcc, sizeof(t->sh->states));

    for (i = 0; i < t->sh->tool_stats; i++) {
        ngx_memset(t->tool_stats[i].states, 0x99,
                   sizeof(t->tool_stats[i].states));
        t->tool_stats[i].running = (uint32_t) rnd(1u << 31);
        t->tool_stats[i].tool = (uint32_t) rnd(1u << 31);
    }

    for (i = 1; i < t->sh->slot.fresh; i++) {

        if (t->slots[i].body.task.state != NGX_MCP_FREE) {
            wreck_names(t, &t->slots[i]);
        }

        ngx_memset(&t->slots[i].hash_next, 0xbb,
                   offsetof(ngx_mcp_slot_t, method_len)
                   - offsetof(ngx_mcp_slot_t, hash_next));
    }

    t->sh->block.free = 12345678;
    t->sh->block.used = 1;
    t->sh->slot.free = 87654321;
    t->sh->slot.used = 9;
    t->sh->bytes = 5;
    t->sh->held.head = 1;
    t->sh->held.tail = 87654321;
    t->sh->holding = 777;
    t->sh->running = 666;
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
    zone->table->self = 1;
    ngx_current_msec = 1 + rnd(1 << 30);
    checks = wrecks = most = 0;

    for (ops = 0; ops < n && errors == 0; ops++) {

        i = rnd(100);

        if (i < 25) {
            do_create();

        } else if (i < 42) {
            do_get();

        } else if (i < 53) {
            do_claim();

        } else if (i < 58) {
            do_run();

        } else if (i < 84) {
            do_event();

        } else if (i < 86) {
            do_delete();

        } else if (i < 91) {
            do_time();

        } else if (i < 92) {
            do_list();

        } else if (i < 94) {
            do_news();

        } else if (i < 96) {
            do_session();

        } else if (i < 98) {
            do_wait();

        } else if (rnd(50) == 0) {
            do_control();

        } else if (i < 99 || rnd(10) > 2) {
            do_leave();

        } else if (rnd(3)) {
            do_orphans();

        } else {
            do_death();
        }

        check_room();

        most = ngx_max(most, zone->table->sh->slot.used);
        ngx_reset_pool(test_pool);

        if (rnd(500) == 0) {
            checks++;

            if (test_check(zone)) {
                fail("the table is not consistent");
            }

            expect(zone->table->sh->block.used, used_blocks(), "blocks used");
            check_running();
            do_stats();
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
    is(zone->table->sh->count.recoveries, wrecks, "recoveries are counted");
    is(most, MAX, "the zone was full at times");
    ok(zone->table->sh->count.refused[NGX_MCP_ZONE_FULL] > 100,
       "blocks ran out at times");

    ok(told_news > n / 1000 && asked > n / 1000 && touched > n / 10000
       && limited > n / 10000,
       "sessions were told %lu times, %lu times somebody asked, %lu times "
       "again, %lu could not wait", (unsigned long) told_news,
       (unsigned long) asked, (unsigned long) touched,
       (unsigned long) limited);

    ok(began > n / 200 && refused > n / 1000 && overtaken > n / 5000
       && orphans > n / 2000 && adopted > n / 10000,
       "%lu calls began, %lu had to wait, %lu times for another, %lu lost "
       "their process, and %lu found another", (unsigned long) began,
       (unsigned long) refused, (unsigned long) overtaken,
       (unsigned long) orphans, (unsigned long) adopted);

    ok(controls > n / 50000, "%lu times a tool was paused, or a worker "
       "drained", (unsigned long) controls);

    return done_testing();
}
