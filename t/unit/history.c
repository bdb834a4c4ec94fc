
/* A task's history: what is kept of it, for how long, and how it is read. */


#include "libtest.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_stats.h"

#include <stdio.h>


#define OK         NGX_MCP_OK

#define CLAIM      NGX_MCP_EV_CLAIM
#define RELEASE    NGX_MCP_EV_RELEASE
#define COMPLETE   NGX_MCP_EV_COMPLETE
#define ASK        NGX_MCP_EV_ASK
#define ANSWERED   NGX_MCP_EV_ANSWER_ALL


static ngx_mcp_zone_t  *zone;


static void
later(ngx_uint_t ms)
{
    uint64_t  wall;

    wall = (uint64_t) ngx_cached_time->sec * 1000 + ngx_cached_time->msec + ms;
    ngx_cached_time->sec = wall / 1000;
    ngx_cached_time->msec = wall % 1000;
    ngx_current_msec += ms;
}


static void
get(ngx_mcp_id_t *id, ngx_mcp_view_t *view)
{
    is(test_get(zone, id, view), OK, "the task is there");
}


static ngx_uint_t
claim(ngx_mcp_view_t *view, const char *worker)
{
    ngx_uint_t          rc;
    ngx_str_t           tool;
    ngx_mcp_op_claim_t  op;

    ngx_memzero(&op, sizeof(op));
    tool = str("t");
    op.op.type = NGX_MCP_OP_CLAIM;
    op.tools = &tool;
    op.ntools = 1;
    op.worker = str(worker);

    rc = test_submit(zone, &op.op);

    if (op.n == 0) {
        return NGX_MCP_NOT_FOUND;
    }

    *view = *op.views;

    return rc;
}


static void
test_entries(void)
{
    uint64_t                 created;
    ngx_mcp_id_t             id;
    ngx_mcp_view_t           view, held;
    ngx_mcp_view_history_t  *h;

    is(test_create(zone, "o", "t", "{}", &id), OK, "a task");
    get(&id, &view);
    is(view.nhistory, 0, "has no history yet");
    is(view.worker.len, 0, "and no worker");
    created = view.task.created;

    later(250);
    is(claim(&held, "render-1"), OK, "it is claimed");
    later(90000);
    is(test_event(zone, &id, ASK, held.task.lease_token,
                  NGX_MCP_REQUESTS, "{}"), OK, "it asks");
    is(test_move(zone, &id, held.task.lease_token, 0.5, "\"half\""), OK,
       "it makes progress");
    later(600000);
    is(test_event(zone, &id, ANSWERED, 0, NGX_MCP_REQUESTS, ""),
       OK, "it is answered, ten minutes later");
    later(1);
    is(test_event(zone, &id, RELEASE, held.task.lease_token, 0, NULL), OK,
       "it is given back");
    is(claim(&held, "render-2"), OK, "it is claimed again");
    is(test_event(zone, &id, COMPLETE, held.task.lease_token,
                  NGX_MCP_RESULT, "{}"), OK, "it ends");

    get(&id, &view);
    h = view.history;

    is(view.nhistory, 6, "each change of state is there, and no other");
    is(view.dropped, 0, "none has gone");
    ok(view.worker.len == 8 && ngx_strncmp(view.worker.data, "render-2", 8)
       == 0, "the worker is known");

    ok(h[0].event == CLAIM && h[0].at == created + 250 && h[0].attempt == 1
       && h[0].state == NGX_MCP_RUNNING && h[0].worker.len == 8
       && ngx_strncmp(h[0].worker.data, "render-1", 8) == 0, "claimed");
    ok(h[1].event == ASK && h[1].at == created + 90250 && h[1].attempt == 1
       && h[1].state == NGX_MCP_INPUT_REQUIRED
       && h[1].worker.len == 0, "asked");
    ok(h[2].event == ANSWERED && h[2].at == created + 690250
       && h[2].state == NGX_MCP_RUNNING, "answered");
    ok(h[3].event == RELEASE && h[3].at == created + 690251
       && h[3].attempt == 0 && h[3].state == NGX_MCP_QUEUED,
       "released: the attempt does not count");
    ok(h[4].event == CLAIM && h[4].attempt == 1 && h[4].worker.len == 8
       && ngx_strncmp(h[4].worker.data, "render-2", 8) == 0,
       "claimed by another");
    ok(h[5].event == COMPLETE && h[5].attempt == 1
       && h[5].state == NGX_MCP_COMPLETED, "completed");
}


/* as a store does it: the bytes are written, and read into a slot */

static void
reload(ngx_mcp_id_t *id)
{
    u_char          *p, bytes[NGX_MCP_BLOCK_DATA];
    size_t           len;
    ngx_mcp_slot_t  *s;

    s = ngx_mcp_find_locked(zone->table, id, NULL, ngx_current_msec);
    len = ngx_mcp_history_bytes_locked(zone->table, s, &p);
    ngx_memcpy(bytes, p, len);
    ngx_memset(p, 0xff, len);

    ngx_mcp_history_load_locked(zone->table, s, bytes, len);
}


/* whatever the params leave of their last block: some entries fit, in order */

static void
test_sizes(void)
{
    u_char           params[400];
    size_t           len;
    ngx_uint_t       i, kept, least, most, bad;
    ngx_mcp_id_t     id;
    ngx_mcp_view_t   view, held;

    bad = 0;
    least = 1000;
    most = 0;

    for (len = 2; len < 300; len++) {
        ngx_memset(params, ' ', len);
        params[0] = '{';
        params[len - 1] = '}';
        params[len] = '\0';

        if (test_create(zone, "o", "t", (char *) params, &id) != OK) {
            bad++;
        }

        for (i = 0; i < 40; i++) {
            later(100);
            bad += (claim(&held, "w") != OK);
            later(7);
            bad += (test_event(zone, &id, RELEASE, held.task.lease_token, 0,
                               NULL)
                    != OK);
        }

        (void) test_get(zone, &id, &view);
        kept = view.nhistory;

        reload(&id);
        (void) test_get(zone, &id, &view);
        bad += (view.nhistory != kept);

        least = ngx_min(least, kept);
        most = ngx_max(most, kept);

        bad += (kept + view.dropped != 80);
        bad += (view.payload[NGX_MCP_PARAMS].len != len
                || ngx_memcmp(view.payload[NGX_MCP_PARAMS].data,
                              params, len)
                   != 0);

        for (i = 0; i < kept; i++) {
            bad += (view.history[kept - 1 - i].event
                    != (ngx_uint_t) (i % 2 ? CLAIM : RELEASE));
            bad += (view.history[kept - 1 - i].at
                    != view.task.created + 107 * (40 - i / 2)
                       - (i % 2 ? 7 : 0));
        }

        bad += (test_delete(zone, &id) != OK);
    }

    is(bad, 0, "params and history are right, whatever their length");
    ok(least >= 6, "at least six changes are kept (%d)", (int) least);
    ok(most <= NGX_MCP_HISTORY_MAX, "never too many (%d)", (int) most);
    ok(test_check(zone) == NULL, "the table is in order");
}


static void
test_clock(void)
{
    ngx_mcp_id_t    id;
    ngx_mcp_view_t  view, held;

    (void) test_create(zone, "o", "t", "{}", &id);
    ngx_cached_time->sec -= 3600;
    is(claim(&held, "w"), OK, "claimed, when the clock was set back");
    get(&id, &view);
    is(view.history[0].at, view.task.created, "not before it was created");

    ngx_cached_time->sec += 3600 * 24 * 365 * 40ULL;
    is(test_event(zone, &id, COMPLETE, held.task.lease_token,
                  NGX_MCP_RESULT, "{}"), OK,
       "completed forty years later");
    get(&id, &view);
    is(view.nhistory, 2, "both are told");
    is(view.history[1].at, view.task.updated, "and when");
}


/* bytes that nobody wrote: nothing is read beyond them, nor written */

static void
test_garbage(void)
{
    u_char                  *p, *q, bytes[NGX_MCP_BLOCK_DATA];
    size_t                   room;
    uint64_t                 state;
    ngx_uint_t               round, i, n, size, dropped, bad;
    ngx_mcp_id_t             id;
    ngx_mcp_history_entry_t  entries[NGX_MCP_HISTORY_MAX];
    ngx_mcp_slot_t          *s;

    state = 1;
    bad = 0;

    (void) test_create(zone, "o", "t", "{\"a\":\"some bytes before it\"}", &id);
    s = ngx_mcp_find_locked(zone->table, &id, NULL, ngx_current_msec);
    room = ngx_mcp_history_bytes_locked(zone->table, s, &q);
    ngx_memcpy(bytes, q + room, sizeof(uint64_t));

    for (round = 0; round < 20000; round++) {
        size = NGX_MCP_HISTORY
               + round % (sizeof(bytes) - NGX_MCP_HISTORY + 1);
        p = ngx_alloc(size, ngx_cycle->log);

        for (i = 0; i < size; i++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            p[i] = (u_char) (state >> 33);
        }

        n = ngx_mcp_history_read(p, size, 1, entries, &dropped);
        bad += (n > NGX_MCP_HISTORY_MAX);

        ngx_mcp_history_load_locked(zone->table, s, p, size);
        bad += (q[0] + 7u > room
                || ngx_memcmp(bytes, q + room, sizeof(uint64_t)) != 0);

        ngx_free(p);
    }

    is(bad, 0, "garbage is read without harm");
    ok(test_check(zone) == NULL, "the table is in order");
}


int
main(void)
{
    zone = test_zone(4 * 1024 * 1024, 100);
    ngx_cached_time->sec = 1700000000;
    ngx_current_msec = 100000;

    test_entries();
    test_sizes();
    test_clock();
    test_garbage();

    return done_testing();
}
