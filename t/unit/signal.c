
/*
 * Signals: two ways into one zone, as two processes have, and who is told of
 * what the other does.
 */


#include "libtest.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_signal.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>


#define ONE   1
#define TWO   ((uint64_t) 1 << 63)

#define OK    NGX_MCP_OK
#define FULL  NGX_MCP_LIMIT_RUNNING

/* in place of the key of a signal */
#define ANY   ((uint64_t) 1 << 62)


static ngx_mcp_zone_t  *one, *two;
static uint64_t                    woken_by[2];
static uint64_t                    cursor;


static void
wake(ngx_mcp_table_t *t, uint64_t processes)
{
    woken_by[t == two->table] |= processes;
}


static void
begin(size_t size, uint64_t max_tasks)
{
    static ngx_mcp_zone_t   other;
    static ngx_mcp_table_t  table;

    ngx_current_msec = 1000000;

    one = test_zone(size, max_tasks);
    one->table->self = ONE;

    /* names are never in the same place by accident */

    one->table->sh->secret[0] = 0;
    one->table->sh->secret[1] = 0;

    one->table->woken = wake;

    two = &other;
    ngx_memzero(two, sizeof(other));
    two->submit = one->submit;
    two->lookup = one->lookup;
    two->table = &table;
    ngx_memzero(&table, sizeof(table));
    ngx_mcp_table_attach(two->table, one->table->shpool);
    two->table->self = TWO;
    two->table->woken = wake;

    cursor = 0;
    ngx_memzero(woken_by, sizeof(woken_by));
}


/*
 * Which processes are told of the key by what happened since the last call;
 * of any key, if it is ANY.  Who writes a signal has to wake whom it is for,
 * and nobody else.
 */

static uint64_t
woken(uint64_t key)
{
    uint64_t          all, processes;
    ngx_uint_t        i, n;
    ngx_mcp_signal_t  signals[16];

    all = processes = 0;

    do {
        n = ngx_mcp_signal_read(one->table, &cursor, signals, 16);

        if (n > 16) {
            return (uint64_t) -1;
        }

        for (i = 0; i < n; i++) {
            all |= signals[i].processes;

            if (signals[i].key == key || key == ANY) {
                processes |= signals[i].processes;
            }
        }

    } while (n);

    if (all != (woken_by[0] | woken_by[1])) {
        diag("signals for %llx, but woken were %llx", (unsigned long long) all,
             (unsigned long long) (woken_by[0] | woken_by[1]));
        processes = (uint64_t) -1;
    }

    ngx_memzero(woken_by, sizeof(woken_by));

    return processes;
}


static uint64_t
name_key(ngx_uint_t kind, const char *name)
{
    ngx_str_t  text;

    text = str(name);

    return ngx_mcp_signal_name(ngx_mcp_name_hash(one->table, kind, &text));
}


#define OWNER(name)    name_key(NGX_MCP_OWNER, name)
#define TOOL(name)     name_key(NGX_MCP_TOOL, name)
#define SESSION(name)  name_key(NGX_MCP_SESSION, name)
#define TASK(id)       ngx_mcp_signal_id(id)
#define CAPACITY       ngx_mcp_signal_name(NGX_MCP_CAPACITY)

/* who holds a call: the first of each process, and one that is dead */

#define HOLDER_ONE     ngx_mcp_stream(1, 0, 1)
#define HOLDER_TWO     ngx_mcp_stream(2, 0, 1)
#define HOLDER_DEAD    ngx_mcp_stream(3, 0, 1)


static void
watch(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id)
{
    ngx_mcp_op_get_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_GET;
    op.id = *id;
    op.watch = 1;

    (void) test_submit(zone, &op.op);
}


static void
watch_owner(ngx_mcp_zone_t *zone, const char *owner)
{
    ngx_mcp_op_changes_t  op;

    ngx_memzero(&op, sizeof(op));
    op.watch = 1;

    (void) test_read_changes(zone, &op, owner);
}


static ngx_uint_t
watch_session(ngx_mcp_zone_t *zone, const char *session, uint64_t stream,
    ngx_uint_t opening)
{
    ngx_mcp_op_session_t  op;

    ngx_memzero(&op, sizeof(op));
    op.watch = 1;
    op.opened = opening ? 0 : 1;

    (void) test_read_session(zone, &op, session, stream);

    return op.silent;
}


/* there was nothing, but a claim has not looked at all that there is */

static ngx_uint_t  more;


/* whether a task was claimed instead */

static ngx_uint_t
watch_tools(ngx_mcp_zone_t *zone, const char *tool, const char *other,
    ngx_mcp_view_t *v)
{
    ngx_str_t           tools[2];
    ngx_mcp_op_claim_t  op;

    tools[0] = str(tool);
    tools[1] = str(other);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CLAIM;
    op.tools = tools;
    op.ntools = other ? 2 : 1;
    op.watch = 1;

    (void) test_submit(zone, &op.op);

    if (op.n && v) {
        *v = *op.views;
    }

    more = op.more;

    return op.n;
}


static ngx_uint_t
event(ngx_mcp_zone_t *zone, ngx_mcp_view_t *v, ngx_uint_t type)
{
    return test_event(zone, &v->id, type, v->task.lease_token, 0, NULL);
}


static void
test_tasks(void)
{
    ngx_mcp_id_t    id, other;
    ngx_mcp_view_t  v;

    begin(1 << 20, 0);

    (void) test_create(one, "alice", "dig", "{}", &id);
    (void) test_create(one, "alice", "else", "{}", &other);
    (void) test_claim(two, "dig", &v);
    is(one->table->sh->logged, 0, "nothing is signalled if nobody waits");
    is(woken(ANY), 0, "nobody is woken then");

    watch(one, &id);
    is(woken(ANY), 0, "waiting is not worth a signal");

    is(event(two, &v, NGX_MCP_EV_HEARTBEAT), OK, "heartbeat");
    is(woken(ANY), 0, "tells nobody");

    is(test_event(two, &other, NGX_MCP_EV_ANNOTATE, 0,
                  NGX_MCP_METADATA, "{}"), OK, "another task");
    is(woken(ANY), 0, "tells nobody");

    is(event(two, &v, NGX_MCP_EV_PROGRESS), OK, "progress");
    is(woken_by[0], 0, "who did nothing wakes nobody");
    is(woken_by[1], ONE, "who made the change wakes the one that waits");
    is(woken(TASK(&id)), ONE, "a change tells the one that waits");

    is(event(two, &v, NGX_MCP_EV_PROGRESS), OK, "progress");
    is(woken(ANY), 0, "told once, it has to look before it is told again");

    watch(one, &id);
    watch(two, &id);
    is(event(two, &v, NGX_MCP_EV_PROGRESS), OK, "progress");
    is(one->table->sh->logged, 2, "one signal");
    is(woken(TASK(&id)), ONE | TWO, "for two that wait");

    watch(two, &id);
    is(event(two, &v, NGX_MCP_EV_PROGRESS), OK, "progress");
    is(woken(TASK(&id)), TWO, "also for the one that makes the change");

    watch(one, &id);
    is(event(two, &v, NGX_MCP_EV_ANSWER),
       NGX_MCP_STATE_INVALID, "what is refused");
    is(woken(ANY), 0, "tells nobody");
    is(event(two, &v, NGX_MCP_EV_COMPLETE), OK, "complete");
    is(woken(TASK(&id)), ONE, "is told");

    watch(one, &id);
    is(test_delete(two, &id), OK, "delete");
    is(woken(TASK(&id)), ONE, "is told");

    watch(one, &other);
    watch(two, &other);
    ngx_current_msec += 2 * 86400000;
    ok(test_sweep(two, 100) > 0, "expiry, by a sweep");
    is(woken(TASK(&other)), ONE | TWO, "is told");
    is(test_get(one, &other, NULL), NGX_MCP_NOT_FOUND, "is gone");

    /* whoever gets this slot next has nothing to do with it */

    (void) test_create(one, "alice", "dig", "{}", &id);
    (void) test_create(one, "alice", "dig", "{}", &other);
    (void) test_claim(two, "dig", &v);
    is(woken(ANY), 0, "new tasks come with nobody who waits for them");

    one->table->self = 0;
    watch(one, &id);
    (void) event(two, &v, NGX_MCP_EV_PROGRESS);
    is(woken(ANY), 0, "a process without a bit is not told");

    is(one->table->sh->count.signals, one->table->sh->logged,
       "signals are counted");
    ok(test_check(one) == NULL, "table is consistent");
}


/* what time does to a task is told as well */

static void
test_time(void)
{
    ngx_mcp_id_t    id;
    ngx_mcp_view_t  v;

    begin(1 << 20, 0);

    (void) test_create(one, "alice", "dig", "{}", &id);
    watch(one, &id);
    ngx_current_msec += 700000;
    (void) test_sweep(two, 100);
    is(woken(TASK(&id)), ONE, "a queue timeout is told");

    (void) test_create(one, "alice", "dig", "{}", &id);
    watch(one, &id);
    ngx_current_msec += 700000;
    ok(!test_claim(two, "dig", NULL), "a claim finds it first");
    is(woken(TASK(&id)), ONE, "and it is told, too");

    (void) test_create(one, "alice", "dig", "{}", &id);
    (void) test_claim(two, "dig", &v);
    watch(one, &id);
    ngx_current_msec += 40000;
    (void) test_sweep(two, 100);
    is(woken(TASK(&id)), ONE, "a lost lease is told");
}


static void
test_names(void)
{
    ngx_uint_t         silent;
    uint64_t           first, second;
    ngx_mcp_id_t       id;
    ngx_mcp_view_t     v;
    ngx_mcp_op_wait_t  leave;

    begin(1 << 20, 0);

    watch_owner(one, "alice");
    watch_owner(two, "bob");
    (void) test_create(two, "alice", "dig", "{}", &id);
    is(woken(OWNER("alice")), ONE, "a new task wakes who waits for its owner");
    (void) test_claim(two, "dig", &v);
    is(woken(ANY), 0, "once");

    watch_owner(one, "alice");
    (void) event(one, &v, NGX_MCP_EV_HEARTBEAT);
    is(woken(ANY), 0, "not of a heartbeat");
    (void) event(one, &v, NGX_MCP_EV_PROGRESS);
    is(woken(OWNER("alice")), ONE, "of a change");

    watch_owner(one, "alice");
    (void) event(one, &v, NGX_MCP_EV_RETRY);
    (void) woken(ANY);
    watch_owner(one, "alice");
    ngx_current_msec += 5000;
    (void) test_sweep(two, 100);
    is(woken(ANY), 0, "not that a backoff is over");
    (void) test_event(two, &id, NGX_MCP_EV_CANCEL, 0, 0, NULL);
    is(woken(OWNER("alice")), ONE, "of the end");

    /* a session */

    first = ngx_mcp_stream(1, 0, 1);
    second = ngx_mcp_stream(2, 0, 1);

    silent = watch_session(one, "s", first, 1);
    is(silent, 0, "a stream speaks for a session that has no task yet");
    test_session = "s";
    (void) test_create(two, "carol", "walk", "{}", &id);
    test_session = NULL;
    (void) test_claim(two, "walk", &v);
    is(woken(ANY), 0, "what its client does not know of is not told");
    (void) event(two, &v, NGX_MCP_EV_ANNOUNCE);
    is(woken(SESSION("s")), ONE, "it is when it was announced");
    (void) event(two, &v, NGX_MCP_EV_PROGRESS);
    is(woken(ANY), 0, "once");
    silent = watch_session(one, "s", first, 0);
    is(silent, 0, "the stream goes on");
    (void) event(two, &v, NGX_MCP_EV_PROGRESS);
    is(woken(SESSION("s")), ONE, "a change is told");
    silent = watch_session(one, "s", first, 1);

    silent = watch_session(two, "s", second, 1);
    is(silent, 0, "another stream takes over");
    is(woken(SESSION("s")), ONE, "the one before learns of it");
    is(watch_session(one, "s", first, 0), 1, "and is silent");
    (void) woken(ANY);
    (void) event(one, &v, NGX_MCP_EV_PROGRESS);
    is(woken(SESSION("s")), ONE | TWO, "both look when something changes");

    (void) watch_session(one, "s", first, 0);
    ngx_memzero(&leave, sizeof(leave));
    leave.op.type = NGX_MCP_OP_LEAVE;
    leave.asker = second;
    leave.session = str("s");
    (void) test_submit(two, &leave.op);
    is(leave.ended, 1, "the one that speaks leaves");
    is(woken(SESSION("s")), ONE, "the one that is silent learns of it");
    is(watch_session(one, "s", first, 0), 0, "and speaks");

    leave.ended = 0;
    (void) test_submit(two, &leave.op);
    is(leave.ended, 0, "one that is silent leaves");
    is(woken(ANY), 0, "which nobody has to know");
}


static void
test_claims(void)
{
    ngx_uint_t      found;
    ngx_mcp_view_t  v;

    begin(1 << 20, 0);

    ok(!watch_tools(one, "dig", NULL, NULL), "nothing to claim");
    (void) test_create(two, "alice", "other", "{}", NULL);
    is(woken(ANY), 0, "a task for another tool");
    (void) test_create(two, "alice", "dig", "{}", NULL);
    is(woken(TOOL("dig")), ONE, "a new task wakes who waits for the tool");
    (void) test_create(two, "alice", "dig", "{}", NULL);
    is(woken(ANY), 0, "once");

    ok(watch_tools(one, "dig", NULL, &v), "it is claimed");
    (void) test_create(two, "alice", "dig", "{}", NULL);
    is(woken(ANY), 0, "who got a task does not wait for more");
    ok(test_claim(two, "dig", NULL) && test_claim(two, "dig", NULL),
       "the others are claimed");

    ok(!watch_tools(one, "dig", NULL, NULL), "nothing to claim");
    (void) event(two, &v, NGX_MCP_EV_RELEASE);
    is(woken(TOOL("dig")), ONE, "a release wakes");

    (void) test_claim(two, "dig", &v);
    ok(!watch_tools(one, "dig", NULL, NULL), "nothing to claim");
    (void) event(two, &v, NGX_MCP_EV_RETRY);
    is(woken(ANY), 0, "a retry with a backoff does not wake yet");
    ngx_current_msec += 500;
    (void) test_sweep(two, 100);
    is(woken(ANY), 0, "nor while it lasts");
    ngx_current_msec += 501;
    (void) test_sweep(two, 100);
    is(woken(TOOL("dig")), ONE, "the end of the backoff wakes");
    ok(test_claim(two, "dig", &v), "it may be claimed");

    /* all that run lose their lease */

    ok(!watch_tools(one, "dig", NULL, NULL), "nothing to claim");
    ngx_current_msec += 40000;
    (void) test_sweep(two, 100);
    is(woken(ANY), 0, "a lost lease does not wake, there is a backoff");
    ngx_current_msec += 10000;
    (void) test_sweep(two, 100);
    is(woken(TOOL("dig")), ONE, "its end does");

    for (found = 0; test_claim(two, "dig", NULL); found++) { /* void */ }

    ok(found > 1, "and there is more than one");

    /* several tools at once */

    ok(test_claim(two, "other", &v), "a task of another tool");
    ok(!watch_tools(one, "dig", "other", NULL), "nothing for either");
    ok(!watch_tools(two, "other", NULL, NULL), "nothing for the other");
    (void) event(two, &v, NGX_MCP_EV_RELEASE);
    is(woken(TOOL("other")), ONE | TWO, "both wait for the second");
    ok(test_check(one) == NULL, "table is consistent");
}


/* one claim skips only so many tasks whose time is over */

static void
test_skipped(void)
{
    int             i;
    ngx_mcp_id_t    id;
    ngx_mcp_view_t  v;

    begin(1 << 20, 0);

    for (i = 0; i < 100; i++) {
        (void) test_create(one, "alice", "dig", "{}", NULL);
    }

    ngx_current_msec += 600000;
    (void) test_create(one, "alice", "dig", "{}", &id);

    /* the sweep is late; whoever has to wait is to look again for the last */

    for (i = 0; i < 10; i++) {
        if (watch_tools(two, "dig", NULL, &v)) {
            break;
        }

        if (!more) {
            i = 10;
        }
    }

    ok(i < 10 && ngx_memcmp(&v.id, &id, sizeof(id)) == 0,
       "a claim does not wait while there is something to claim");
    ok(!watch_tools(two, "dig", NULL, NULL) && !more, "but then it does");

    (void) test_sweep(one, 1000);
    ok(test_check(one) == NULL, "table is consistent");
}


static void
hold(uint64_t holder, const char *tool, ngx_mcp_id_t *id)
{
    test_holder = holder;
    (void) test_create(one, "alice", tool, "{}", id);
    test_holder = 0;
}


/* calls at once are limited, and wait for each other */

static void
test_capacity(void)
{
    ngx_mcp_id_t    a, b, c, d;
    ngx_mcp_view_t  v, w;

    begin(1 << 20, 0);

    hold(HOLDER_ONE, "dig", &a);
    hold(HOLDER_ONE, "dig", &b);
    hold(HOLDER_TWO, "dig", &c);

    is(test_run(one, &a, HOLDER_ONE, 1, 0, &v), OK, "a call runs");
    is(one->table->sh->logged, 0, "others have not tried, and are not told");
    is(test_run(two, &c, HOLDER_TWO, 1, 0, NULL), FULL, "another waits");
    is(test_run(one, &b, HOLDER_ONE, 1, 0, NULL), FULL, "one more, too");
    is(woken(CAPACITY), 0, "who waits tells nobody");
    is(one->table->sh->awaited[CAPACITY], ONE | TWO, "both wait for room");

    hold(HOLDER_TWO, "walk", &d);
    is(woken(CAPACITY), 0, "a new call makes no room");

    is(event(one, &v, NGX_MCP_EV_COMPLETE), OK, "it ends");
    is(woken(CAPACITY), ONE | TWO, "which makes room");
    is(one->table->sh->awaited[CAPACITY], 0, "and is told once");

    is(test_run(two, &c, HOLDER_TWO, 1, 0, NULL), FULL,
       "there is room, but another has waited for longer");
    is(woken(CAPACITY), 0, "nobody is told");
    is(test_run(one, &b, HOLDER_ONE, 1, 0, &v), OK, "this one runs");
    is(woken(CAPACITY), TWO, "who let it go first looks again");

    is(test_run(two, &c, HOLDER_TWO, 1, 0, NULL), FULL, "there is no room");
    is(event(one, &v, NGX_MCP_EV_RETRY), OK, "it is to be retried");
    is(woken(CAPACITY), TWO, "meanwhile there is room");
    is(test_run(two, &c, HOLDER_TWO, 1, 0, &w), OK, "for the one that waits");
    is(test_run(one, &b, HOLDER_ONE, 1, 0, NULL),
       NGX_MCP_STATE_INVALID, "it is not tried yet");
    is(event(two, &w, NGX_MCP_EV_COMPLETE), OK, "the other ends");
    is(woken(CAPACITY), 0, "who does not wait for room is not told");

    ngx_current_msec += 1000;
    is(test_run(one, &b, HOLDER_ONE, 1, 0, &v), OK, "it is tried again");
    is(test_run(two, &d, HOLDER_TWO, 1, 0, NULL), FULL, "another waits");
    is(test_run(one, &a, HOLDER_ONE, 1, 0, NULL), NGX_MCP_TERMINAL,
       "one that has ended is not run");
    is(test_run(one, &d, HOLDER_ONE, 1, 0, NULL),
       NGX_MCP_LEASE_LOST, "nor one that another has");
    ngx_memzero(&a, sizeof(a));
    is(test_run(one, &a, HOLDER_ONE, 1, 0, NULL), NGX_MCP_NOT_FOUND,
       "nor one that is not there");
    is(woken(CAPACITY), 0, "none of these makes room");
    is(event(one, &v, NGX_MCP_EV_RELEASE), OK, "it is given back");
    is(woken(CAPACITY), TWO, "which does");

    /* a tool may have enough, while there is room for others */

    begin(1 << 20, 0);

    hold(HOLDER_ONE, "dig", &a);
    hold(HOLDER_ONE, "dig", &b);
    hold(HOLDER_TWO, "walk", &c);
    hold(HOLDER_TWO, "walk", &d);

    is(test_run(two, &c, HOLDER_TWO, 0, 1, NULL), OK, "nobody is in its way");
    is(test_run(two, &d, HOLDER_TWO, 0, 1, NULL), FULL, "its tool is full");
    is(test_run(one, &a, HOLDER_ONE, 0, 1, &v), OK, "the other is not");
    is(woken(CAPACITY), TWO, "who waits looks again");
    is(test_run(one, &b, HOLDER_ONE, 0, 1, NULL), FULL, "now it is");
    is(one->table->sh->running, 2, "two run");
    ok(test_check(one) == NULL, "table is consistent");
}


/*
 * What befalls a call, and whether that makes room for the one that waits
 * after it: if it is not running any more, or does not wait any more.
 */

typedef struct {
    const char  *name;
    ngx_uint_t   event;
    ngx_uint_t   running;           /* before it */
    ngx_uint_t   frees;
} ending_t;


/* beside the events: */

#define DELETED   NGX_MCP_EVENTS
#define TIMED     (NGX_MCP_EVENTS + 1)
#define EXPIRED   (NGX_MCP_EVENTS + 2)
#define ADOPTED   (NGX_MCP_EVENTS + 3)
#define CLAIMED   (NGX_MCP_EVENTS + 4)

static ending_t  endings[] = {
    { "heartbeat", NGX_MCP_EV_HEARTBEAT, 1, 0 },
    { "progress", NGX_MCP_EV_PROGRESS, 1, 0 },
    { "a report", NGX_MCP_EV_REPORT, 1, 0 },
    { "a question", NGX_MCP_EV_ASK, 1, 0 },
    { "metadata", NGX_MCP_EV_ANNOTATE, 1, 0 },
    { "announcement", NGX_MCP_EV_ANNOUNCE, 1, 0 },
    { "refusal", NGX_MCP_EV_ANSWER, 1, 0 },
    { "completion", NGX_MCP_EV_COMPLETE, 1, 1 },
    { "failure", NGX_MCP_EV_FAIL, 1, 1 },
    { "retry", NGX_MCP_EV_RETRY, 1, 1 },
    { "release", NGX_MCP_EV_RELEASE, 1, 1 },
    { "cancellation", NGX_MCP_EV_CANCEL, 1, 1 },
    { "loss of its process", NGX_MCP_EV_ORPHANED, 1, 1 },
    { "deletion", DELETED, 1, 1 },
    { "timeout", TIMED, 1, 1 },
    { "expiry", EXPIRED, 1, 1 },
    { "adoption", ADOPTED, 1, 1 },
    { "a worker's claim of another task", CLAIMED, 1, 0 },

    { "metadata", NGX_MCP_EV_ANNOTATE, 0, 0 },
    { "announcement", NGX_MCP_EV_ANNOUNCE, 0, 0 },
    { "refusal", NGX_MCP_EV_COMPLETE, 0, 0 },
    { "cancellation", NGX_MCP_EV_CANCEL, 0, 1 },
    { "loss of its process", NGX_MCP_EV_ORPHANED, 0, 1 },
    { "deletion", DELETED, 0, 1 },
    { "timeout", TIMED, 0, 1 },
    { "expiry", EXPIRED, 0, 1 },
    { "adoption", ADOPTED, 0, 0 },
    { "a worker's claim of another task", CLAIMED, 0, 0 },

    { NULL, 0, 0, 0 }
};


static void
befall(ending_t *r, ngx_mcp_view_t *v)
{
    ngx_mcp_view_t  w;

    switch (r->event) {

    case DELETED:
        (void) test_delete(one, &v->id);
        break;

    case TIMED:
        ngx_current_msec += 595000;
        (void) test_sweep(one, 100);
        break;

    case EXPIRED:
        ngx_current_msec += 86400000;
        (void) test_sweep(one, 100);
        break;

    case ADOPTED:
        one->table->sh->incarnations[3]++;
        one->table->sh->epoch++;
        is(test_orphans(one, HOLDER_ONE), 1, "adopted");
        break;

    case CLAIMED:
        (void) test_claim(one, "other", &w);
        (void) event(one, &w, NGX_MCP_EV_COMPLETE);
        break;

    default:
        (void) event(one, v, r->event);
    }
}


static void
test_befallen(void)
{
    ending_t        *r;
    ngx_mcp_id_t     id, next;
    ngx_mcp_view_t   v;

    for (r = endings; r->name; r++) {
        begin(1 << 20, 0);

        (void) test_create(one, "alice", "other", "{}", NULL);

        test_calls = NGX_MCP_IDEMPOTENT;
        hold(HOLDER_DEAD, "dig", &id);
        test_calls = 0;
        ngx_current_msec += 5000;
        hold(HOLDER_TWO, "dig", &next);

        (void) test_get(one, &id, &v);

        if (r->running) {
            is(test_run(one, &id, HOLDER_DEAD, 1, 0, &v), OK, "one runs");
        }

        is(test_run(two, &next, HOLDER_TWO, 1, 0, NULL), FULL,
           "one waits for another");
        (void) woken(ANY);

        befall(r, &v);

        is(woken(CAPACITY), r->frees ? TWO : 0, "%s of a call that %s: %s",
           r->name, r->running ? "runs" : "waits",
           r->frees ? "told" : "not told");
        ok(test_check(one) == NULL, "table is consistent");
    }
}


/* names share the places for those that wait: too many are told, not too few */

static void
test_collisions(void)
{
    int       i;
    char      name[24];
    uint64_t  key;

    begin(1 << 20, 0);

    key = TOOL("dig");

    for (i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "tool%d", i);

        if (TOOL(name) == key) {
            break;
        }
    }

    is(TOOL(name), key, "\"dig\" and \"%s\" are in the same place", name);

    (void) watch_tools(one, "dig", NULL, NULL);
    (void) watch_tools(two, name, NULL, NULL);
    (void) test_create(one, "alice", "dig", "{}", NULL);
    is(woken(key), ONE | TWO, "both are told");
    ok(watch_tools(one, "dig", NULL, NULL), "the one gets the task");
    ok(!watch_tools(two, name, NULL, NULL), "the other waits again");
    (void) test_create(one, "alice", name, "{}", NULL);
    is(woken(key), TWO, "and is told again");

    /* also names of different kinds */

    for (i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "owner%d", i);

        if (OWNER(name) == key) {
            break;
        }
    }

    watch_owner(one, name);
    (void) watch_tools(two, "dig", NULL, NULL);
    (void) test_create(one, name, "else", "{}", NULL);
    is(woken(key), ONE | TWO, "an owner and a tool in the same place");
}


/* the n-th signal of all, if nothing else was signalled */

static void
write_signal(ngx_mcp_table_t *t, uint64_t n)
{
    ngx_mcp_slot_t  s;

    ngx_memcpy(s.id.data, &n, sizeof(uint64_t));
    s.waiters = ngx_mcp_mix(n) | 1;

    ngx_mcp_signal_task_locked(t, &s);
}


static int
is_signal(ngx_mcp_signal_t *signal, uint64_t n)
{
    return signal->key == (n | (uint64_t) 1 << 63)
           && signal->processes == (ngx_mcp_mix(n) | 1);
}


static void
write_signals(ngx_mcp_table_t *t, uint64_t n)
{
    ngx_mcp_lock(t);

    while (n--) {
        write_signal(t, t->sh->logged);
    }

    ngx_mcp_unlock(t);
}


/* in batches; how many came out as they went in */

static ngx_uint_t
read_signals(ngx_uint_t batch)
{
    ngx_uint_t        i, n, good;
    ngx_mcp_signal_t  signals[64];

    good = 0;

    do {
        n = ngx_mcp_signal_read(two->table, &cursor, signals, batch);

        if (n > batch) {
            return (ngx_uint_t) -1;
        }

        for (i = 0; i < n; i++) {
            good += is_signal(&signals[i], cursor - n + i);
        }

    } while (n);

    return good;
}


static void
test_log(void)
{
    uint64_t          size;
    ngx_uint_t        n;
    ngx_mcp_signal_t  signals[64];

    begin(256 * 1024, 100);
    size = one->table->sh->log_mask + 1;

    is(size, 64, "a small log");
    is(read_signals(8), 0, "there is nothing in it");

    write_signals(one->table, 5);
    is(read_signals(8), 5, "less than a batch");
    write_signals(one->table, 8);
    is(read_signals(8), 8, "a batch");
    write_signals(one->table, 37);
    is(read_signals(8), 37, "several batches");
    write_signals(one->table, size - 1);
    is(read_signals(1), size - 1, "nearly all of the log, one at a time");
    write_signals(one->table, size - 1);
    is(read_signals(64), size - 1, "nearly all of it, at once");
    is(cursor, one->table->sh->logged, "up to the end");

    write_signals(one->table, size);
    n = ngx_mcp_signal_read(two->table, &cursor, signals, 8);
    is(n, 9, "more than could be told apart from those being written");
    is(cursor, one->table->sh->logged, "goes on from the end");
    is(read_signals(8), 0, "there is nothing more");

    write_signals(one->table, 10 * size + 7);
    n = ngx_mcp_signal_read(two->table, &cursor, signals, 1);
    is(n, 2, "many times the log");
    write_signals(one->table, 3);
    is(read_signals(8), 3, "those after that");

    /* one read a part of them when the others came */

    write_signals(one->table, 20);
    n = ngx_mcp_signal_read(two->table, &cursor, signals, 8);
    is(n, 8, "a part of them");
    write_signals(one->table, size - 12);
    n = ngx_mcp_signal_read(two->table, &cursor, signals, 8);
    is(n, 9, "the rest was overtaken");

    is(one->table->sh->count.signals, one->table->sh->logged,
       "they are counted");

    /* everybody */

    ngx_memzero(woken_by, sizeof(woken_by));
    one->table->sh->awaited[3] = TWO;

    ngx_mcp_lock(one->table);
    ngx_mcp_signal_all_locked(one->table);
    is(woken_by[0], 0, "nobody is woken before the lock is free");
    ngx_mcp_unlock(one->table);

    is(woken_by[0], (uint64_t) -1, "all are woken");
    n = ngx_mcp_signal_read(two->table, &cursor, signals, 64);
    is(n, 65, "nobody knows for what");
    is(one->table->sh->awaited[3], TWO, "they still wait");

    ngx_memzero(woken_by, sizeof(woken_by));
    ngx_mcp_lock(one->table);
    ngx_mcp_unlock(one->table);
    is(woken_by[0], 0, "they are woken once");
}


/*
 * One process writes as fast as it can, and another reads without the lock.
 * It writes long enough for the reader to be overtaken at every place, and
 * pauses at times, so that the reader is not overtaken always.
 */

static void
test_race(void)
{
    int                status;
    pid_t              pid;
    time_t             end;
    uint64_t           from, now, read, overtaken, broken, rnd;
    ngx_uint_t         i, n, batch;
    volatile int      *stop;
    ngx_mcp_signal_t   signals[128];

    begin(256 * 1024, 100);

    stop = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_ANON|MAP_SHARED, -1, 0);

    if (stop == MAP_FAILED) {
        exit(2);
    }

    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        ngx_pid = getpid();
        two->table->woken = NULL;

        for (rnd = 1; !*stop; rnd++) {
            n = ngx_mcp_mix(rnd);
            write_signals(two->table, n % 29 + 1);

            if (n >> 32 & 1) {
                (void) sched_yield();
            }
        }

        _exit(0);
    }

    if (pid == -1) {
        exit(2);
    }

    read = overtaken = broken = 0;
    cursor = 0;

    end = time(NULL) + 5;

    for (rnd = 1; read + overtaken < 2000000 && time(NULL) < end; rnd++) {
        batch = ngx_mcp_mix(rnd) % 96 + 1;
        from = cursor;

        /* nearly overtaken is where it gets difficult */

        for (i = 0;
             rnd % 4 && i < 1000
             && one->table->sh->logged - from < 64 - rnd % 8;
             i++)
        { /* void */ }

        if (i == 1000) {
            (void) sched_yield();
        }

        memset(signals, 0xee, sizeof(signals));
        n = ngx_mcp_signal_read(one->table, &cursor, signals, batch);
        now = one->table->sh->logged;

        if (n > batch) {
            overtaken++;
            broken += (cursor <= from || cursor > now);
            continue;
        }

        broken += (cursor != from + n || cursor > now);

        for (i = 0; i < n; i++) {
            broken += !is_signal(&signals[i], from + i);
        }

        read += n;
    }

    *stop = 1;

    if (waitpid(pid, &status, 0) != pid) {
        exit(2);
    }

    is(broken, 0, "signals read without the lock are whole and in order");
    ok(read > 1000, "%llu of them", (unsigned long long) read);
    ok(overtaken > 10, "overtaken %llu times", (unsigned long long) overtaken);
    ok(test_check(one) == NULL, "table is consistent");

    (void) munmap((void *) stop, 4096);
}


int
main(void)
{
    test_tasks();
    test_time();
    test_names();
    test_claims();
    test_skipped();
    test_capacity();
    test_befallen();
    test_collisions();
    test_log();
    test_race();

    return done_testing();
}
