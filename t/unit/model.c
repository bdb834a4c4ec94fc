
/*
 * Random operations on a small zone, each compared with a model that knows
 * nothing of hashes, wheels or blocks (libmodel.h).  Along the way the table's
 * invariants are checked, and it is wrecked and recovered.  The seed is
 * printed: MCP_TASKS_SEED repeats a run, MCP_TASKS_OPS makes it longer.
 */


#include "libmodel.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_recover.h"

#include <time.h>


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
        name->u.delivery.changes = 12345678;
        name->u.delivery.undelivered = 4711;
    }
}


/* but not the number of the last change, which all that is told relies on */

static void
do_wreck(void)
{
    uint32_t          i;
    ngx_mcp_table_t  *t;

    t = model.zone->table;

    for (i = 0; i <= t->sh->hash_mask; i++) {
        t->hash[i] = (uint32_t) model_rnd(1u << 31);
    }

    ngx_memset(t->names, 0xff, (t->sh->name_mask + 1) * 4);
    ngx_memset(t->sh->wheel.head, 0xee, sizeof(t->sh->wheel.head));
    ngx_memset(t->sh->wheel.map, 0xdd, sizeof(t->sh->wheel.map));
    ngx_memset(t->sh->states, 0xcc, sizeof(t->sh->states));

    for (i = 0; i < t->sh->tool_stats; i++) {
        ngx_memset(t->tool_stats[i].states, 0x99,
                   sizeof(t->tool_stats[i].states));
        t->tool_stats[i].running = (uint32_t) model_rnd(1u << 31);
        t->tool_stats[i].tool = (uint32_t) model_rnd(1u << 31);
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
    uint64_t     seed;
    ngx_uint_t   n, i, checks, wrecks, most;

    p = getenv("MCP_TASKS_SEED");
    seed = p ? strtoull(p, NULL, 0)
             : ((uint64_t) time(NULL) << 20 | (getpid() & 0xfffff));
    diag("MCP_TASKS_SEED=%llu", (unsigned long long) seed);
    model_seed(seed);

    p = getenv("MCP_TASKS_OPS");
    n = p ? strtoull(p, NULL, 0) : 1000000;

    model.zone = test_zone(256 * 1024, MAX);
    model.zone->table->self = 1;
    ngx_current_msec = 1 + model_rnd(1 << 30);
    checks = wrecks = most = 0;

    for (model.ops = 0; model.ops < n && model.errors == 0; model.ops++) {

        i = model_rnd(100);

        if (i < 25) {
            model_do_create();

        } else if (i < 42) {
            model_do_get();

        } else if (i < 53) {
            model_do_claim();

        } else if (i < 58) {
            model_do_run();

        } else if (i < 84) {
            model_do_event();

        } else if (i < 86) {
            model_do_delete();

        } else if (i < 91) {
            model_do_time();

        } else if (i < 92) {
            model_do_list();

        } else if (i < 94) {
            model_do_changes();

        } else if (i < 96) {
            model_do_session();

        } else if (i < 98) {
            model_do_wait();

        } else if (model_rnd(50) == 0) {
            model_do_control();

        } else if (i < 99 || model_rnd(10) > 2) {
            model_do_leave();

        } else if (model_rnd(3)) {
            model_do_orphans();

        } else {
            model_do_death();
        }

        model_check_capacity();

        most = ngx_max(most, model.zone->table->sh->slot.used);
        ngx_reset_pool(test_pool);

        if (model_rnd(500) == 0) {
            checks++;

            if (test_check(model.zone)) {
                fail("the table is not consistent");
            }

            expect(model.zone->table->sh->block.used, model_used_blocks(),
                   "blocks used");
            model_check_running();
            model_do_stats();
        }

        if (model_rnd(1000) == 0) {
            wrecks++;
            do_wreck();

            if (test_check(model.zone)) {
                fail("the table was not recovered");
            }
        }
    }

    is(model.errors, 0, "%lu operations agree with the model",
       (unsigned long) model.ops);
    ok(model.ops == n && checks > n / 1000 && wrecks > n / 2000,
       "%lu checks, %lu recoveries", (unsigned long) checks,
       (unsigned long) wrecks);
    is(model.zone->table->sh->count.recoveries, wrecks,
       "recoveries are counted");
    is(most, MAX, "the zone was full at times");
    ok(model.zone->table->sh->count.refused[NGX_MCP_ZONE_FULL] > 100,
       "blocks ran out at times");

    ok(model.delivered_changes > n / 1000 && model.asked > n / 1000
       && model.touched > n / 10000 && model.limited > n / 10000,
       "sessions were told %lu times, %lu times somebody asked, %lu times "
       "again, %lu could not wait", (unsigned long) model.delivered_changes,
       (unsigned long) model.asked, (unsigned long) model.touched,
       (unsigned long) model.limited);

    ok(model.began > n / 200 && model.refused > n / 1000
       && model.overtaken > n / 5000 && model.orphans > n / 2000
       && model.adopted > n / 10000,
       "%lu calls began, %lu had to wait, %lu times for another, %lu lost "
       "their process, and %lu found another", (unsigned long) model.began,
       (unsigned long) model.refused, (unsigned long) model.overtaken,
       (unsigned long) model.orphans, (unsigned long) model.adopted);

    ok(model.announced > n / 5000, "%lu tasks were announced in place of a "
       "process", (unsigned long) model.announced);

    ok(model.controls > n / 50000, "%lu times a tool was paused, or a worker "
       "drained", (unsigned long) model.controls);

    return done_testing();
}
