
/* All tasks of a zone, by their last change: pages, news, and what filters. */


#include "libtest.h"
#include "ngx_mcp_recover.h"

#include <stdio.h>


#define MANY  3000

#define OK    NGX_MCP_OK


static ngx_mcp_zone_t  *zone;
static ngx_mcp_id_t     ids[MANY];


static ngx_uint_t
change(int i)
{
    return test_event(zone, &ids[i], NGX_MCP_EV_ANNOTATE, 0,
                      NGX_MCP_METADATA, "{}");
}


static void
recent(ngx_mcp_op_recent_t *op)
{
    op->op.type = NGX_MCP_OP_RECENT;
    op->op.pool = test_pool;
    op->want = NGX_MCP_WANT_OWNER | NGX_MCP_WANT_TOOL;

    (void) test_submit(zone, &op->op);
}


static int
same(ngx_mcp_view_t *view, int i)
{
    return ngx_memcmp(&view->id, &ids[i], sizeof(ngx_mcp_id_t))
           == 0;
}


/* the number of tasks that pages of so many have, in order; -1: they do not */

static int
walk(ngx_mcp_criteria_t *filter, ngx_uint_t limit)
{
    int                  n;
    uint64_t             last;
    ngx_uint_t           i;
    ngx_mcp_op_recent_t  op;

    ngx_memzero(&op, sizeof(op));
    op.criteria = *filter;
    op.limit = limit;
    last = (uint64_t) -1;
    n = 0;

    do {
        recent(&op);

        for (i = 0; i < op.n; i++) {
            if (op.views[i].changed >= last) {
                return -1;
            }

            last = op.views[i].changed;
            n++;
        }

        op.after = op.next;

    } while (op.next.seq);

    return n;
}


static void
test_pages(void)
{
    ngx_str_t            owner;
    ngx_mcp_criteria_t   filter;
    ngx_mcp_op_recent_t  op;

    ngx_memzero(&filter, sizeof(filter));

    is(walk(&filter, 100), MANY, "all tasks are found, in order");
    is(walk(&filter, 7), MANY, "by small pages, too");

    filter.tool = str("odd");
    is(walk(&filter, 50), MANY / 2, "those of a tool");

    filter.tool = str("none");
    is(walk(&filter, 50), 0, "none of a tool that nobody called");

    ngx_memzero(&filter, sizeof(filter));
    owner = str("bob");
    filter.owner = &owner;
    is(walk(&filter, 50), MANY / 3, "those of an owner");

    owner = str("");
    is(walk(&filter, 50), 0, "none without an owner");

    ngx_memzero(&filter, sizeof(filter));
    filter.states = 1 << NGX_MCP_CANCELLED;
    is(walk(&filter, 50), 1, "the one that was cancelled");

    ngx_memzero(&op, sizeof(op));
    op.limit = 1;
    recent(&op);
    filter.states = 0;
    filter.from = op.views[0].task.created + 1;
    is(walk(&filter, 50), 0, "none is as young as that");

    filter.from = 0;
    filter.to = op.views[0].task.created;
    is(walk(&filter, 50), MANY, "all are as old as that");
    filter.to = 1;
    is(walk(&filter, 50), 0, "none is older");
}


static void
test_places(void)
{
    int                  i;
    ngx_mcp_op_recent_t  op;

    ngx_memzero(&op, sizeof(op));
    op.limit = 10;
    recent(&op);

    /* the last of the page is changed: the next page begins after its place */

    op.after = op.next;
    is(change(MANY - 10), OK, "the last task of the page changes");
    op.limit = 1;
    recent(&op);
    ok(op.n == 1 && op.lost == 0 && same(&op.views[0], MANY - 11),
       "the page goes on where it was");

    /* too far from the front */

    for (i = 0; i < NGX_MCP_LIST_SCAN + 10; i++) {
        (void) change(i);
    }

    is(change(MANY - 11), OK, "so does another");
    op.after.seq = op.views[0].changed;
    op.after.hint = 0;
    recent(&op);
    ok(op.lost == 1 && op.n == 0 && op.next.seq == 0, "the place is lost");
}


static void
test_changes(void)
{
    int                  i;
    ngx_mcp_op_recent_t  op;

    ngx_memzero(&op, sizeof(op));
    op.changes = 1;
    op.limit = 10;
    recent(&op);
    ok(op.n == 0 && op.next.seq == zone->table->sh->seq && !op.lost,
       "news begin now");

    op.after = op.next;
    (void) change(5);
    (void) change(6);
    (void) change(5);
    recent(&op);
    ok(op.n == 2 && same(&op.views[0], 6) && same(&op.views[1], 5)
       && !op.more, "the earliest change first, each task once");

    op.after = op.next;
    recent(&op);
    is(op.n, 0, "nothing new");

    op.criteria.tool = str("odd");
    (void) change(7);
    (void) change(8);
    recent(&op);
    ok(op.n == 1 && same(&op.views[0], 7), "news of a tool");
    op.after = op.next;
    recent(&op);
    is(op.n, 0, "what did not pass is not looked at again");

    ngx_memzero(&op.criteria, sizeof(op.criteria));

    for (i = 0; i < 25; i++) {
        (void) change(i);
    }

    op.limit = 10;
    recent(&op);
    ok(op.n == 10 && op.more && same(&op.views[9], 9), "some of many");
    op.after = op.next;
    op.limit = 100;
    recent(&op);
    ok(op.n == 15 && !op.more && same(&op.views[14], 24), "and the rest");
    op.after = op.next;

    (void) change(24);

    for (i = 0; i < NGX_MCP_LIST_SCAN + 10; i++) {
        (void) change(i + 30);
    }

    recent(&op);
    ok(op.lost && op.n == 0 && op.next.seq == zone->table->sh->seq,
       "too far behind is told");
}


/* before anything has changed */

static void
test_first(void)
{
    ngx_mcp_op_recent_t  op;

    zone = test_zone(1 << 20, 0);
    ngx_memzero(&op, sizeof(op));
    op.changes = 1;
    op.limit = 10;
    recent(&op);
    is(op.n + op.more + op.lost, 0, "news of an empty zone");

    op.after = op.next;
    recent(&op);
    is(op.n + op.more + op.lost, 0, "nothing yet");

    (void) test_create(zone, "o", "t", "{}", NULL);
    (void) test_create(zone, "o", "t", "{}", NULL);
    op.after = op.next;
    recent(&op);
    is(op.n, 2, "then the first tasks");

    op.after = op.next;
    recent(&op);
    is(op.n, 0, "once");
}


static void
test_recovery(void)
{
    int                 n;
    ngx_mcp_table_t    *t;
    ngx_mcp_criteria_t  filter;

    t = zone->table;
    ngx_memzero(&filter, sizeof(filter));

    ok(ngx_mcp_check_locked(t) == NULL, "the list is in order");

    t->slots[17].recent.next = 17;
    ok(ngx_mcp_check_locked(t) != NULL, "and if not, that is seen");

    t->sh->dirty = 1;
    ngx_mcp_lock(t);
    ngx_mcp_unlock(t);

    ok(ngx_mcp_check_locked(t) == NULL, "and mended");
    n = walk(&filter, 100);
    is(n, MANY, "with all tasks");
}


int
main(void)
{
    int  i;

    zone = test_zone(8 * 1024 * 1024, MANY + 1);
    ngx_cached_time->sec = 1000;

    for (i = 0; i < MANY; i++) {
        (void) test_create(zone, i % 3 ? "alice" : "bob",
                           i % 2 ? "odd" : "even", "{}", &ids[i]);
    }

    is(test_event(zone, &ids[MANY - 1], NGX_MCP_EV_CANCEL, 0, 0,
                  NULL),
       OK, "one is cancelled");

    test_pages();
    test_places();
    test_changes();
    test_recovery();

    test_first();

    return done_testing();
}
