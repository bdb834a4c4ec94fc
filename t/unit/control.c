
/*
 * What an operator says: a paused tool's tasks are not begun, a worker that
 * drains gets none; and who has to be told when they go on.
 */


#include "libtest.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"

#include <stdio.h>


#define OK      NGX_MCP_OK
#define FULL    NGX_MCP_LIMIT_RUNNING
#define HOLDER  ngx_mcp_stream(1, 0, 1)

#define pause(zone, tool, on)                                                 \
    test_control(zone, NGX_MCP_OP_PAUSE, tool, on)
#define drain(zone, worker, on)                                               \
    test_control(zone, NGX_MCP_OP_DRAIN, worker, on)


/* of two tools, as a worker that waits if there is nothing */

static ngx_mcp_op_claim_t  claimed;

static ngx_uint_t
claim(ngx_mcp_zone_t *zone, const char *a, const char *b, const char *by)
{
    ngx_str_t  tools[2];

    tools[0] = str(a);
    tools[1] = str(b);

    ngx_memzero(&claimed, sizeof(claimed));
    claimed.op.type = NGX_MCP_OP_CLAIM;
    claimed.tools = tools;
    claimed.ntools = b ? 2 : 1;
    claimed.worker = str(by);
    claimed.watch = 1;
    (void) test_submit(zone, &claimed.op);

    return claimed.n;
}


/* whether those who wait for the name are told since the last call */

static uint64_t  cursor;

static ngx_uint_t
woken(ngx_mcp_zone_t *zone, uint32_t hash)
{
    ngx_uint_t        i, n, found;
    ngx_mcp_signal_t  signals[16];

    found = 0;

    do {
        n = ngx_mcp_signal_read(zone->table, &cursor, signals, 16);

        if (n > 16) {
            return 16;
        }

        for (i = 0; i < n; i++) {
            found += (signals[i].key == ngx_mcp_signal_name(hash));
        }

    } while (n);

    return found;
}


static uint32_t
hash(ngx_mcp_zone_t *zone, ngx_uint_t kind, const char *name)
{
    ngx_str_t  s;

    s = str(name);

    return ngx_mcp_name_hash(zone->table, kind, &s);
}


static ngx_mcp_zone_t *
begin(void)
{
    ngx_mcp_zone_t  *zone;

    ngx_current_msec = 1000000;
    zone = test_zone(1 << 20, 0);
    zone->table->self = 1;
    zone->table->sh->secret[0] = 0;
    zone->table->sh->secret[1] = 0;
    cursor = 0;

    return zone;
}


static void
test_pause(void)
{
    ngx_mcp_id_t     id;
    ngx_mcp_zone_t  *zone;

    zone = begin();

    is(pause(zone, "dig", 1), NGX_MCP_TOOL_NOT_FOUND,
       "a tool that never had a task");
    is(pause(zone, "", 1), NGX_MCP_TOOL_NOT_FOUND, "no name");

    (void) test_create(zone, "o", "dig", "{}", &id);
    (void) test_create(zone, "o", "walk", "{}", NULL);
    is(pause(zone, "dig", 1), OK, "paused");
    is(pause(zone, "dig", 1), OK, "again");

    ok(claim(zone, "dig", "walk", "w") && claimed.views->task.state,
       "a claim passes it over");
    ok(!claim(zone, "dig", "walk", "w"), "and finds no more");
    is(claimed.more, 0, "there is nothing to come back for");

    (void) woken(zone, 0);
    is(test_create(zone, "o", "dig", "{}", NULL), OK, "tasks may be made");
    ok(!claim(zone, "dig", NULL, "w"), "nothing of it alone");

    /* the name goes with the last task, the flag does not */

    (void) test_delete(zone, &id);
    zone->table->sh->dirty = 1;
    ok(!claim(zone, "dig", NULL, "w"), "also after a crash");
    is(zone->table->sh->count.recoveries, 1, "which there was");

    (void) woken(zone, 0);
    is(pause(zone, "dig", 0), OK, "goes on");
    is(woken(zone, hash(zone, NGX_MCP_TOOL, "dig")), 1, "who waits is told");
    ok(claim(zone, "dig", NULL, "w"), "and gets it");
    ok(test_check(zone) == NULL, "all fits together");
}


static void
test_pause_outlives(void)
{
    ngx_mcp_id_t     id;
    ngx_mcp_zone_t  *zone;

    zone = begin();

    (void) test_create(zone, "o", "dig", "{}", &id);
    (void) pause(zone, "dig", 1);
    (void) test_delete(zone, &id);
    is(zone->table->sh->names[NGX_MCP_TOOL], 0, "no tool is left");

    (void) test_create(zone, "o", "dig", "{}", &id);
    ok(!claim(zone, "dig", NULL, "w"), "its next task is paused");
}


static void
test_pause_other(void)
{
    int              i;
    char             name[32];
    ngx_mcp_zone_t  *zone;

    zone = begin();

    for (i = 0; zone->table->sh->tool_stats < zone->table->sh->tool_stats_end;
         i++)
    {
        (void) sprintf(name, "tool%d", i);
        (void) test_create(zone, "o", name, "{}", NULL);
    }

    (void) test_create(zone, "o", "late", "{}", NULL);
    is(pause(zone, "late", 1), NGX_MCP_TOOL_NOT_FOUND,
       "a tool without an entry of its own");

    is(pause(zone, "other", 1), OK, "all of these together");
    ok(!claim(zone, "late", NULL, "w"), "are paused");
    ok(claim(zone, "tool0", NULL, "w"), "and no others");
    (void) woken(zone, 0);
    is(pause(zone, "other", 0), OK, "go on");
    is(woken(zone, 0), 16, "everybody looks at everything");
    ok(claim(zone, "late", NULL, "w"), "and so they do");
}


static void
test_pause_calls(void)
{
    ngx_mcp_id_t     dig, walk;
    ngx_mcp_zone_t  *zone;

    zone = begin();
    test_holder = HOLDER;

    (void) test_create(zone, "o", "dig", "{}", &dig);
    (void) test_create(zone, "o", "walk", "{}", &walk);
    test_holder = 0;

    is(test_run(zone, &walk, HOLDER, 1, 0, NULL), FULL,
       "the other one comes first");
    (void) woken(zone, 0);
    (void) pause(zone, "dig", 1);
    is(woken(zone, NGX_MCP_CAPACITY), 1, "until it is paused");
    is(test_run(zone, &dig, HOLDER, 1, 0, NULL), FULL, "which waits");
    is(test_run(zone, &walk, HOLDER, 1, 0, NULL), OK, "then this one");
    is(test_run(zone, &dig, HOLDER, 0, 0, NULL), FULL, "without limits, too");

    (void) woken(zone, 0);
    (void) pause(zone, "dig", 0);
    is(woken(zone, NGX_MCP_CAPACITY), 1, "it is told when it goes on");
    is(test_run(zone, &dig, HOLDER, 2, 0, NULL), OK, "and runs");
    ok(test_check(zone) == NULL, "all fits together");
}


static void
test_drain(void)
{
    int              i;
    char             name[32];
    uint32_t         worker;
    ngx_mcp_id_t     id;
    ngx_mcp_view_t   v;
    ngx_mcp_zone_t  *zone;

    zone = begin();
    worker = hash(zone, NGX_MCP_NAMES, "w1");

    is(drain(zone, "w1", 1), NGX_MCP_WORKER_NOT_FOUND,
       "a worker that nobody has seen");
    is(drain(zone, "", 1), NGX_MCP_WORKER_NOT_FOUND, "no name");

    (void) test_create(zone, "o", "dig", "{}", &id);
    ok(claim(zone, "dig", NULL, "w1"), "it has a task");
    ok(!claim(zone, "dig", NULL, "w1"), "and waits for another");
    is(claimed.drain, 0, "nothing keeps it from that");

    (void) woken(zone, 0);
    is(drain(zone, "w1", 1), OK, "drained");
    is(woken(zone, worker), 1, "it is told where it waits");
    (void) test_create(zone, "o", "dig", "{}", NULL);
    ok(!claim(zone, "dig", NULL, "w1") && claimed.drain, "no task for it");
    is(claimed.more, 0, "now");

    (void) test_get(zone, &id, &v);
    is(v.drain, 1, "what it says of its task tells it, too");
    ok(v.worker.len == 2 && memcmp(v.worker.data, "w1", 2) == 0,
       "whose it is");

    ok(claim(zone, "dig", NULL, "w2") && !claimed.drain,
       "another one gets it");

    zone->table->sh->dirty = 1;
    ok(!claim(zone, "dig", NULL, "w1") && claimed.drain,
       "a crash changes nothing");

    is(drain(zone, "w1", 0), OK, "goes on");
    (void) test_create(zone, "o", "dig", "{}", NULL);
    ok(claim(zone, "dig", NULL, "w1") && !claimed.drain, "it gets tasks");

    /* others take its entry, and it comes back as a new one */

    (void) drain(zone, "w1", 1);

    for (i = 0; i < NGX_MCP_STAT_WORKERS; i++) {
        ngx_current_msec++;
        (void) sprintf(name, "more%d", i);
        (void) claim(zone, "nix", NULL, name);
        is(claimed.drain, 0, "%s does not drain", name);
    }

    (void) test_get(zone, &id, &v);
    is(v.drain, 0, "it is forgotten");
    is(v.worker.len, 0, "so is its name");
    (void) claim(zone, "nix", NULL, "w1");
    is(claimed.drain, 0, "and it is a new one when it comes back");
    ok(test_check(zone) == NULL, "all fits together");
}


int
main(void)
{
    test_pause();
    test_pause_outlives();
    test_pause_other();
    test_pause_calls();
    test_drain();

    return done_testing();
}
