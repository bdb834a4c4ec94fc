
/*
 * What is counted: entries of tools and workers, times, and what is left of
 * it all after a crash.
 */


#include "libtest.h"
#include "ngx_mcp_stats.h"

#include <stdio.h>


#define RESULT  NGX_MCP_RESULT


static ngx_mcp_op_stats_t  stats;


static ngx_mcp_op_stats_t *
look(ngx_mcp_zone_t *zone)
{
    ngx_memzero(&stats, sizeof(stats));
    stats.op.type = NGX_MCP_OP_STATS;
    stats.detail = 1;
    (void) test_submit(zone, &stats.op);

    return &stats;
}


static ngx_mcp_tool_view_t *
tool(ngx_mcp_zone_t *zone, const char *name)
{
    ngx_uint_t            i;
    ngx_mcp_tool_stat_t  *s;

    (void) look(zone);

    for (i = 0; i < stats.ntools; i++) {
        s = &stats.tool_views[i].stat;

        if (s->len == strlen(name) && memcmp(s->name, name, s->len) == 0) {
            return &stats.tool_views[i];
        }
    }

    return NULL;
}


static ngx_mcp_worker_stat_t *
worker(ngx_mcp_zone_t *zone, const char *name)
{
    ngx_uint_t              i;
    ngx_mcp_worker_stat_t  *s;

    (void) look(zone);

    for (i = 0; i < stats.nworkers; i++) {
        s = &stats.worker_views[i];

        if (s->len == strlen(name) && memcmp(s->name, name, s->len) == 0) {
            return s;
        }
    }

    return NULL;
}


static ngx_uint_t
claim(ngx_mcp_zone_t *zone, const char *name, const char *by,
    ngx_mcp_view_t *view)
{
    ngx_str_t           tools[1];
    ngx_mcp_op_claim_t  op;

    tools[0] = str(name);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CLAIM;
    op.tools = tools;
    op.ntools = 1;
    op.worker = str(by);
    (void) test_submit(zone, &op.op);

    if (op.n && view) {
        *view = *op.views;
    }

    return op.n;
}


static void
test_bounds(void)
{
    ngx_uint_t           i, bad;
    ngx_mcp_histogram_t  h, one;

    ngx_memzero(&h, sizeof(h));

    for (bad = 0, i = 0; i < NGX_MCP_BUCKETS - 1; i++) {
        ngx_memzero(&one, sizeof(one));
        ngx_mcp_stats_time(&one, ngx_mcp_bounds[i]);
        bad += (one.bucket[i] != 1);
        ngx_mcp_stats_time(&one, ngx_mcp_bounds[i] + 1);
        bad += (one.bucket[i] != 1 || one.bucket[i + 1] != 1);
        bad += (one.sum != 2 * ngx_mcp_bounds[i] + 1);
    }

    is(bad, 0, "a bound belongs to its bucket, more to the next");

    ngx_mcp_stats_time(&h, 0);
    ngx_mcp_stats_time(&h, (uint64_t) 1 << 40);
    is(h.bucket[0], 1, "no time at all");
    is(h.bucket[NGX_MCP_BUCKETS - 1], 1, "and ages");
    is(h.sum, (uint64_t) 1 << 40, "the sum");
}


static void
test_times(void)
{
    ngx_mcp_id_t          id;
    ngx_mcp_view_t        v;
    ngx_mcp_zone_t       *zone;
    ngx_mcp_tool_view_t  *t;

    zone = test_zone(1 << 20, 0);
    (void) test_create(zone, "o", "dig", "{}", &id);

    ngx_current_msec += 400;
    is(tool(zone, "dig")->oldest, 400, "the age of what is queued");
    is(stats.oldest, 400, "of the zone as well");

    (void) claim(zone, "dig", NULL, &v);
    t = tool(zone, "dig");
    is(t->oldest, 0, "nothing is queued");
    is(t->stat.count.wait.sum, 400, "the time it waited");
    is(t->stat.count.wait.bucket[4], 1, "in its bucket");
    is(t->stat.count.claimed, 1, "a claim");

    /* people may think as long as they like */

    ngx_current_msec += 30;
    (void) test_event(zone, &id, NGX_MCP_EV_ASK, v.task.lease_token, 0, NULL);
    ngx_current_msec += 100000;
    (void) test_event(zone, &id, NGX_MCP_EV_ANSWER_ALL, 0, 0, NULL);
    ngx_current_msec += 12;
    (void) test_event(zone, &id, NGX_MCP_EV_RETRY, v.task.lease_token, 0, NULL);

    t = tool(zone, "dig");
    is(t->stat.count.run.sum, 42, "the time it ran, without that for input");
    is(t->stat.count.requeued, 1, "it is queued again");

    /* the backoff is no waiting for a worker */

    ngx_current_msec += 999;
    is(tool(zone, "dig")->oldest, 0, "not to be claimed yet");
    ngx_current_msec += 1;
    (void) test_sweep(zone, 10);
    ngx_current_msec += 7;
    is(tool(zone, "dig")->oldest, 7, "since it may be claimed");
    (void) claim(zone, "dig", NULL, &v);
    is(tool(zone, "dig")->stat.count.wait.sum, 407, "it waited for that long");

    /* it ends while it asks */

    ngx_current_msec += 5;
    (void) test_event(zone, &id, NGX_MCP_EV_ASK, v.task.lease_token, 0, NULL);
    ngx_current_msec += 5000;
    (void) test_event(zone, &id, NGX_MCP_EV_CANCEL, 0, 0, NULL);
    is(tool(zone, "dig")->stat.count.run.sum, 47, "the second attempt");
    is(stats.task_counters.run.sum, 47, "of the zone as well");
    is(stats.task_counters.cancelled, 1, "it is cancelled");

    /* cancelled in the queue: it never ran */

    (void) test_create(zone, "o", "dig", "{}", &id);
    (void) test_event(zone, &id, NGX_MCP_EV_CANCEL, 0, 0, NULL);
    t = tool(zone, "dig");
    is(t->stat.count.run.bucket[0] + t->stat.count.run.bucket[1]
       + t->stat.count.run.bucket[2], 2, "two attempts have ended");
    is(t->stat.count.cancelled, 2, "and two tasks");
}


static void
test_counters(void)
{
    ngx_uint_t                i, sum;
    ngx_mcp_id_t              id;
    ngx_mcp_view_t            v;
    ngx_mcp_zone_t           *zone;
    ngx_mcp_task_counters_t  *f;

    zone = test_zone(1 << 20, 0);

    for (i = 0; i < 6; i++) {
        (void) test_create(zone, "o", "t", "{}", &id);
    }

    (void) test_delete(zone, &id);
    (void) claim(zone, "t", NULL, &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease_token, RESULT, "{}");
    (void) test_delete(zone, &v.id);
    (void) claim(zone, "t", NULL, &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_FAIL, v.task.lease_token,
                      RESULT, "{}");
    (void) claim(zone, "t", NULL, &v);
    is(test_event(zone, &v.id, NGX_MCP_EV_FAIL, 1, RESULT, "{}"),
       NGX_MCP_LEASE_LOST, "a stale token");

    /* the lease is lost, later the queue times out, then all expires */

    ngx_current_msec += 30000;
    (void) test_sweep(zone, 100);
    is(look(zone)->task_counters.leases_lost, 1, "a lease is lost");
    is(stats.count.stale_leases, 1, "a token was stale");
    is(stats.count.sweep_batch, 1, "one was swept");
    is(stats.count.sweep_lag, 0, "in time");

    ngx_current_msec += 700000;
    (void) test_sweep(zone, 100);
    is(look(zone)->task_counters.failed, 4, "the others fail in the queue");
    ok(stats.count.sweep_lag_max >= 69000, "they were swept late");

    (void) test_create(zone, "o", "t", "{}", &id);
    ngx_current_msec += 86400000;
    (void) test_sweep(zone, 1);
    (void) test_sweep(zone, 1000);
    (void) test_sweep(zone, 1000);

    f = &look(zone)->task_counters;
    sum = f->completed + f->failed + f->cancelled + f->lapsed + f->dropped;
    is(f->created, 7, "all that were created");
    is(sum, f->created, "came to one end each");
    is(f->dropped, 1, "one was deleted");
    is(stats.count.deleted, 2, "with one that had ended");
    is(stats.slots_used, 0, "nothing is left");
    is(tool(zone, "t")->stat.count.created, 7, "the tool is remembered");
    is(tool(zone, "t")->stat.tool, 0, "though its name is gone");
    ok(memcmp(&tool(zone, "t")->stat.count, &stats.task_counters,
              sizeof(stats.task_counters)) == 0,
       "the only tool has the figures of the zone");
    ok(test_check(zone) == NULL, "table is consistent");
}


static void
test_tools(void)
{
    char             name[200];
    ngx_uint_t       i, end;
    ngx_mcp_id_t     id;
    ngx_mcp_zone_t  *zone;

    zone = test_zone(8 << 20, 0);
    end = zone->table->sh->tool_stats_end;
    is(end, NGX_MCP_STAT_TOOLS, "a large zone has all entries");

    (void) test_create(zone, "o", "other", "{}", NULL);
    (void) test_create(zone, "o", "bad \xff", "{}", NULL);
    (void) test_create(zone, "o", "half \xc3", "{}", NULL);
    (void) test_create(zone, "o", "surrogate \xed\xa0\x80", "{}", NULL);
    memset(name, 'x', 129);
    name[129] = '\0';
    (void) test_create(zone, "o", name, "{}", NULL);
    is(tool(zone, "other")->stat.count.created, 5, "names that have no entry");
    is(stats.ntools, 1, "and do not get one");

    name[128] = '\0';
    (void) test_create(zone, "o", name, "{}", NULL);
    is(tool(zone, name)->stat.count.created, 1, "a name that is just right");
    (void) test_create(zone, "o", "\xc3\xa4", "{}", NULL);
    is(tool(zone, "\xc3\xa4")->stat.count.created, 1, "beyond ASCII");

    for (i = 3; i < end + 10; i++) {
        sprintf(name, "tool%d", (int) i);
        (void) test_create(zone, "o", name, "{}", &id);

        if (i % 2) {
            (void) test_delete(zone, &id);
        }
    }

    is(look(zone)->ntools, end, "all entries are taken");
    is(tool(zone, "other")->stat.count.created, 15, "the others share one");
    is(tool(zone, "other")->stat.states[NGX_MCP_QUEUED], 10,
       "with the tasks that they have");
    ngx_current_msec += 70;
    is(tool(zone, "other")->oldest, 70, "the oldest of these");
    while (claim(zone, "other", NULL, NULL)) { /* void */ }
    (void) test_create(zone, "o", "tool5", "{}", NULL);
    ngx_current_msec += 5;
    is(tool(zone, "other")->oldest, 75, "is another one's");
    is(tool(zone, "tool5")->oldest, 5, "who has an entry has its own age");
    (void) test_create(zone, "o", "tool5", "{}", NULL);
    is(tool(zone, "tool5")->stat.count.created, 3, "who has one keeps it");
    ok(test_check(zone) == NULL, "table is consistent");

    zone = test_zone(32768, 8);
    ok(zone && zone->table->sh->tool_stats_end >= 1, "the smallest zone");
    (void) test_create(zone, "o", "a", "{}", NULL);
    (void) test_create(zone, "o", "b", "{}", NULL);
    (void) test_create(zone, "o", "c", "{}", NULL);
    (void) claim(zone, "a", "w1", NULL);
    (void) claim(zone, "b", "w2", NULL);
    is(look(zone)->task_counters.created, 3, "counts, too");
    ngx_current_msec += 9;
    is(look(zone)->oldest, 9, "and finds the oldest, whoever shares an entry");
    ok(test_check(zone) == NULL, "table is consistent");
}


static void
test_workers(void)
{
    char             name[80];
    ngx_uint_t       i;
    ngx_mcp_view_t   v, w;
    ngx_mcp_zone_t  *zone;

    zone = test_zone(4 << 20, 0);

    for (i = 0; i < 6; i++) {
        (void) test_create(zone, "o", "t", "{}", NULL);
    }

    ok(claim(zone, "t", "ann", &v), "a claim");
    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease_token, RESULT, "{}");
    (void) claim(zone, "t", "ann", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_FAIL, v.task.lease_token,
                      RESULT, "{}");
    (void) claim(zone, "t", "ann", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_RETRY, v.task.lease_token,
                      RESULT, "{}");
    is(worker(zone, "ann")->claimed, 3, "claims");
    is(worker(zone, "ann")->completed, 1, "completed");
    is(worker(zone, "ann")->failed, 2, "failed");
    is(stats.workers, 1, "seen lately");

    (void) claim(zone, "t", NULL, &w);
    is(look(zone)->nworkers, 1, "who is not known is not counted");
    (void) claim(zone, "t", "bad \xff", NULL);
    is(look(zone)->nworkers, 1, "nor one that cannot be shown");

    (void) claim(zone, "t", "bob", &v);
    ngx_current_msec += 1000;
    (void) test_event(zone, &v.id, NGX_MCP_EV_HEARTBEAT, v.task.lease_token, 0,
                      NULL);
    is(worker(zone, "bob")->seen, ngx_current_msec, "a heartbeat is seen");
    is(worker(zone, "ann")->seen, ngx_current_msec - 1000, "that of another");

    /* those that were seen last are remembered */

    for (i = 0; i < NGX_MCP_STAT_WORKERS - 1; i++) {
        sprintf(name, "worker%d", (int) i);
        ngx_current_msec++;
        (void) claim(zone, "none", name, NULL);
    }

    is(look(zone)->nworkers, NGX_MCP_STAT_WORKERS, "all entries");
    ok(worker(zone, "ann") == NULL, "the first is forgotten");
    ok(worker(zone, "bob") != NULL, "the second is not");

    ngx_current_msec++;
    (void) claim(zone, "none", "another", NULL);
    ok(worker(zone, "bob") == NULL, "then it is, too");
    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease_token, RESULT, "{}");
    is(worker(zone, "another")->completed, 0,
       "what it had is not the credit of the one that has its entry");
    is(look(zone)->task_counters.completed, 2, "but is done");

    ngx_current_msec += 120000;
    is(look(zone)->workers, 0, "nobody was seen lately");

    memset(name, 'x', 65);
    name[65] = '\0';
    (void) claim(zone, "none", name, NULL);
    ok(worker(zone, name) == NULL, "a name that is too long");
    ok(test_check(zone) == NULL, "table is consistent");
}


static void
test_recovery(void)
{
    ngx_uint_t            i;
    ngx_mcp_view_t        v;
    ngx_mcp_zone_t       *zone;
    ngx_mcp_table_t      *t;
    ngx_mcp_op_stats_t    before;
    ngx_mcp_tool_view_t   tools[3];

    zone = test_zone(1 << 20, 0);
    t = zone->table;

    for (i = 0; i < 9; i++) {
        (void) test_create(zone, "o", i % 3 ? "a" : "b", "{}", NULL);
    }

    (void) test_create(zone, "o", "other", "{}", NULL);
    (void) claim(zone, "a", "ann", &v);
    (void) claim(zone, "b", "bob", NULL);
    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease_token, RESULT, "{}");

    before = *look(zone);
    is(before.ntools, 3, "three entries");
    ngx_memcpy(tools, before.tool_views, sizeof(tools));

    ngx_memset(t->sh->states, 0xaa, sizeof(t->sh->states));

    for (i = 0; i < t->sh->tool_stats; i++) {
        ngx_memset(t->tool_stats[i].states, 0xbb,
                   sizeof(t->tool_stats[i].states));
        t->tool_stats[i].running = 4711;
        t->tool_stats[i].tool = 4711;
    }

    t->sh->dirty = 1;

    ok(test_check(zone) == NULL, "the table is recovered");
    (void) look(zone);
    ok(memcmp(stats.tool_views, tools, sizeof(tools)) == 0,
       "what tools have is found, what they had is kept");
    ok(memcmp(&stats.task_counters, &before.task_counters,
              sizeof(before.task_counters))
       == 0, "the zone's counters are kept");
    ok(memcmp(stats.states, before.states, sizeof(before.states)) == 0,
       "and its tasks are counted");
    is(stats.count.recoveries, 1, "a recovery is counted");
    is(worker(zone, "ann")->completed, 1, "workers are remembered");
}


static void
test_present(void)
{
    ngx_mcp_zone_t    *zone;
    ngx_mcp_header_t  *sh;

    zone = test_zone(1 << 20, 0);
    sh = zone->table->sh;

    sh->present[0].waiting = 3;
    sh->present[0].streams = 1;
    sh->present[NGX_MCP_PROCESSES - 1].waiting = 4;
    is(look(zone)->waiting, 7, "requests that wait in all processes");
    is(stats.streams, 1, "and streams");
}


int
main(void)
{
    ngx_current_msec = 5000;

    test_bounds();
    test_times();
    test_counters();
    test_tools();
    test_workers();
    test_recovery();
    test_present();

    return done_testing();
}
