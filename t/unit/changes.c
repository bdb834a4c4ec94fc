
/*
 * What owners and sessions are told: the order of changes, what counts as
 * news of which kind, who asks a task's questions, and who waits.
 */


#include "libtest.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_order.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_signal.h"

#include <stdio.h>


#define MANY    20000

#define OK      NGX_MCP_OK
#define STREAM  ngx_mcp_stream(1, 0, 1)
#define OTHER   NEXT(1)
#define NEXT(n) ngx_mcp_stream(2, 0, n)


static ngx_mcp_zone_t  *zone;
static ngx_mcp_id_t     ids[MANY];
static uint32_t                    slots[MANY];
static u_char                      seen[MANY];


static uint64_t
rnd(uint64_t n)
{
    static uint64_t  state = 88172645463325252ULL;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;

    return (state >> 11) % n;
}


static ngx_mcp_slot_t *
slot(ngx_mcp_id_t *id)
{
    return ngx_mcp_find_locked(zone->table, id, NULL, 0);
}


#define body(id)  (&slot(id)->body)


static ngx_uint_t
change(ngx_mcp_id_t *id)
{
    return test_event(zone, id, NGX_MCP_EV_ANNOTATE, 0,
                      NGX_MCP_METADATA, "{}");
}


static uint32_t
name(ngx_uint_t kind, const char *text)
{
    ngx_str_t  s;

    s = str(text);

    return ngx_mcp_name_find_locked(zone->table, kind, &s,
                                    ngx_mcp_name_hash(zone->table, kind, &s));
}


#define delivery(session)                                                     \
    (&ngx_mcp_name(zone->table,                                               \
                     name(NGX_MCP_SESSION, session))->u.delivery)


/* the task that changed first after that, by looking at all of them */

static uint32_t
since(uint64_t after)
{
    int              i;
    uint32_t         n;
    ngx_mcp_slot_t  *s, *best;

    n = 0;
    best = NULL;

    for (i = 0; i < MANY; i++) {
        s = ngx_mcp_slot(zone->table, slots[i]);

        if (s->body.changed > after
            && (best == NULL || s->body.changed < best->body.changed))
        {
            best = s;
            n = slots[i];
        }
    }

    return n;
}


static int
number(ngx_mcp_id_t *id)
{
    int       i;
    uint32_t  n;

    n = ngx_mcp_index(zone->table, slot(id));

    /* tasks got their slots in order, with those of others in between */

    for (i = ngx_min(n, MANY) - 1; i >= 0; i--) {
        if (slots[i] == n) {
            return i;
        }
    }

    return -1;
}


static void
test_order(void)
{
    int               i;
    uint32_t          owner;
    uint64_t          after, hint;
    ngx_uint_t        bad, lanes;
    ngx_mcp_id_t      other, gone;
    ngx_mcp_table_t  *t;

    zone = test_zone(64 << 20, 0);
    t = zone->table;
    lanes = 0;

    for (i = 0; i < MANY; i++) {

        if (i == 5000) {
            (void) test_create(zone, "bob", "dig", "{}", &other);
            (void) test_create(zone, "alice", "dig", "{}", &gone);
        }

        (void) test_create(zone, "alice", "dig", "{}", &ids[i]);
        slots[i] = ngx_mcp_index(t, slot(&ids[i]));
        lanes += (ngx_mcp_order_level(t,
                                      &ngx_mcp_by_change, slot(&ids[i])) != 0);
        ngx_reset_pool(test_pool);
    }

    ok(lanes > MANY / 64 / 2 && lanes < MANY / 64 * 2,
       "%lu of %d tasks are on a fast lane", (unsigned long) lanes, MANY);

    for (i = 0; i < MANY; i++) {
        (void) change(&ids[rnd(MANY)]);
        ngx_reset_pool(test_pool);
    }

    owner = name(NGX_MCP_OWNER, "alice");
    hint = ngx_mcp_index(t, slot(&gone));
    after = body(&gone)->changed;
    (void) change(&other);
    (void) test_create(zone, "bob", "dig", "{}", NULL);
    (void) test_delete(zone, &gone);

    is(ngx_mcp_order_since_locked(t, owner, after, hint),
       since(after), "the task that the hint is for is gone");
    is(ngx_mcp_order_since_locked(t, owner, body(&other)->changed,
                                  ngx_mcp_index(t,
                                                slot(&other))),
       0, "the hint is of another owner");
    is(ngx_mcp_order_since_locked(t, owner, 0, 0), since(0),
       "the first of all");
    is(ngx_mcp_order_since_locked(t, owner, t->sh->seq, 0), 0,
       "none after the last");
    is(ngx_mcp_order_since_locked(t, owner, (uint64_t) -2, 1), 0,
       "none after any");

    for (bad = 0, i = 0; i < 400; i++) {

        after = rnd(t->sh->seq + 10);
        hint = slots[rnd(MANY)];

        switch (i % 5) {
        case 0:
            hint = 0;
            break;
        case 1:
            /* it is where it was */
            after = ngx_mcp_slot(t, hint)->body.changed;
            break;
        case 2:
            /* it has changed since */
            after = ngx_mcp_slot(t, hint)->body.changed;
            (void) change(&ngx_mcp_slot(t, hint)->id);
            break;
        case 3:
            /* it never was */
            hint = rnd(2) ? t->sh->slot.fresh + rnd(10) : (uint64_t) -1;
            break;
        }

        bad += (ngx_mcp_order_since_locked(t, owner, after, hint)
                != since(after));
    }

    is(bad, 0, "whatever the hint, the next change is found");
    ok(test_check(zone) == NULL, "table is consistent");
}


/* all of them by pages, some of which change in the meantime */

static void
test_pages(ngx_uint_t hints, ngx_uint_t changes)
{
    int                   i;
    uint64_t              last, more;
    ngx_uint_t            k, n, total, twice, disorder;
    ngx_mcp_op_changes_t  op;

    ngx_memzero(&op, sizeof(op));
    ngx_memzero(seen, sizeof(seen));
    last = 0;
    more = total = twice = disorder = 0;

    while ((n = test_read_changes(zone, &op, "alice")) != 0) {

        for (k = 0; k < n; k++) {
            i = number(&op.views[k].id);
            disorder += (i == -1 || op.views[k].changed <= last);
            last = op.views[k].changed;

            if (i != -1) {
                twice += (seen[i] != 0);
                seen[i] = 1;
            }
        }

        total += n;

        if (!hints) {
            op.hint = 0;
        }

        /* one that was read, or will be: the rest of the pages tell of it */

        if (changes && total < MANY) {
            i = rnd(MANY);
            (void) change(&ids[i]);

            if (seen[i] == 1) {
                seen[i] = 2;
                more++;
            }
        }

        ngx_reset_pool(test_pool);
    }

    is(disorder, 0, "pages%s: in the order of changes, of nobody else",
       hints ? "" : " without hints");
    is(total, MANY + more, "all of them");
    is(twice, more, "again only what changed again");
    is(op.after, last, "the cursor is at the last");
    is(test_read_changes(zone, &op, "alice"), 0, "there is nothing more");

    (void) change(&ids[7]);
    is(test_read_changes(zone, &op, "alice"), 1, "a change");
    ok(number(&op.views[0].id) == 7, "of this task");
    is(test_read_changes(zone, &op, "nobody"), 0, "nobody else's");
}


static void
test_touch(void)
{
    uint64_t         changed;
    ngx_mcp_body_t   before;

    before = *body(&ids[3]);

    ngx_mcp_lock(zone->table);
    ngx_mcp_touch_locked(zone->table, slot(&ids[3]));
    ngx_mcp_unlock(zone->table);

    changed = body(&ids[3])->changed;

    ok(changed > before.changed && changed == zone->table->sh->seq,
       "touched, it is the last that changed");

    is(body(&ids[3])->revision, before.revision + 1, "which is a write");

    before.changed = changed;
    before.revision++;
    ok(memcmp(&before, body(&ids[3]), sizeof(before)) == 0,
       "nothing else about it has");
    is(ngx_mcp_order_since_locked(zone->table,
                                  slot(&ids[3])->owner,
                                  changed - 1, 0),
       slots[3], "it is the one to be told");
    ok(test_check(zone) == NULL, "table is consistent");
}


/* a task of a session, claimed */

static void
begin(const char *session, const char *token, ngx_mcp_view_t *v)
{
    test_session = session;
    test_token = token;
    (void) test_create(zone, "alice", "dig", "{}", NULL);
    test_session = NULL;
    test_token = NULL;

    (void) test_claim(zone, "dig", v);
}


#define event(v, type)                                                        \
    test_event(zone, &(v)->id, type, (v)->task.lease_token, 0, NULL)


static void
test_kinds(void)
{
    uint64_t         changed;
    ngx_mcp_body_t  *b;
    ngx_mcp_view_t   v;

    ngx_current_msec = 1000;
    zone = test_zone(1 << 20, 0);

    /* without a session */

    begin(NULL, NULL, &v);
    b = body(&v.id);
    ok(b->task.flags & NGX_MCP_ANNOUNCED, "a task without a session is known");
    is(b->changed, zone->table->sh->seq, "a claim is a change");
    is(b->turned, 0, "but clients do not see that a task runs");
    is(b->moved, 0, "nor is it progress");

    changed = b->changed;
    is(event(&v, NGX_MCP_EV_ANNOUNCE), OK, "announced again");
    is(event(&v, NGX_MCP_EV_HEARTBEAT), OK, "a heartbeat");
    is(b->changed, changed, "neither is a change");

    (void) test_move(zone, &v.id, v.task.lease_token, 0, NULL);
    ok(b->moved == b->changed && b->changed > changed,
       "a first progress of zero is one");
    is(b->turned, 0, "and not another status");

    changed = b->changed;
    (void) test_move(zone, &v.id, v.task.lease_token, 0, NULL);
    ok(b->changed > changed && b->moved == changed && b->turned == 0,
       "the same progress is a change, but no news");

    (void) test_move(zone, &v.id, v.task.lease_token, -1, "digging");
    is(b->turned, b->changed, "a message is of the status");
    is(b->moved, changed, "not of progress");

    (void) test_move(zone, &v.id, v.task.lease_token, 3, "deep");
    ok(b->turned == b->changed && b->moved == b->changed,
       "without a token, so is a message that comes with progress");

    changed = b->changed;
    (void) change(&v.id);
    ok(b->changed > changed && b->turned == changed && b->moved == changed,
       "metadata is a change, but no news");

    (void) test_event(zone, &v.id, NGX_MCP_EV_PROGRESS,
                      v.task.lease_token, NGX_MCP_MESSAGE, "");
    is(b->turned, b->changed, "no message any more");
    changed = b->changed;
    (void) test_event(zone, &v.id, NGX_MCP_EV_PROGRESS,
                      v.task.lease_token, NGX_MCP_MESSAGE, "");
    is(b->turned, changed, "none, as before");

    (void) event(&v, NGX_MCP_EV_ASK);
    is(b->turned, b->changed, "questions are another status");
    changed = b->changed;
    (void) event(&v, NGX_MCP_EV_ANSWER);
    ok(b->changed > changed && b->turned == changed,
       "some of the answers are not");
    (void) event(&v, NGX_MCP_EV_ANSWER_ALL);
    is(b->turned, b->changed, "the last one is");

    /* another attempt */

    changed = b->changed;
    (void) event(&v, NGX_MCP_EV_RETRY);
    ok(b->changed > changed && b->turned == changed && b->task.progress < 0,
       "a retry is not, to clients");
    changed = b->changed;
    ngx_current_msec += 1000;
    (void) test_sweep(zone, 10);
    is(b->changed, changed, "the end of a backoff is no change");

    changed = b->moved;
    (void) test_claim(zone, "dig", &v);
    (void) test_move(zone, &v.id, v.task.lease_token, 2, NULL);
    is(b->moved, changed, "progress below that of another attempt is none");
    (void) test_move(zone, &v.id, v.task.lease_token, 3, NULL);
    is(b->moved, changed, "nor is the same");
    (void) test_move(zone, &v.id, v.task.lease_token, 3.5, NULL);
    is(b->moved, b->changed, "beyond, it is");

    (void) event(&v, NGX_MCP_EV_COMPLETE);
    is(b->turned, b->changed, "the end is another status");

    /* with a token, messages go with the progress */

    begin(NULL, "\"token\"", &v);
    b = body(&v.id);
    (void) test_move(zone, &v.id, v.task.lease_token, 1, "one");
    ok(b->moved == b->changed && b->turned == 0,
       "a message that comes with progress is told with it");
    (void) test_move(zone, &v.id, v.task.lease_token, 1, "still");
    ok(b->moved < b->changed && b->turned == b->changed,
       "without progress it is of the status");
    (void) test_move(zone, &v.id, v.task.lease_token, -1, "and still");
    is(b->turned, b->changed, "likewise if there is none at all");
    ok(test_check(zone) == NULL, "table is consistent");
}


/* what happened before the client knew of the task is told afterwards */

static void
test_announced(void)
{
    uint64_t              changed;
    ngx_mcp_body_t       *b;
    ngx_mcp_view_t        v, w;
    ngx_mcp_op_changes_t  changes;
    ngx_mcp_op_session_t  op;

    zone = test_zone(1 << 20, 0);
    ngx_memzero(&op, sizeof(op));
    ngx_memzero(&changes, sizeof(changes));

    begin("s", NULL, &v);
    b = body(&v.id);
    is(test_read_session(zone, &op, "s", STREAM), 0, "a session's task");
    is(test_read_changes(zone, &changes, "alice"), 1, "its owner may see it");

    (void) event(&v, NGX_MCP_EV_ANNOUNCE);
    is(b->task.version, v.task.version, "announced, it is the same version");
    ok(b->changed == zone->table->sh->seq && b->turned == 0 && b->moved == 0,
       "it has not turned nor moved");
    is(test_read_session(zone, &op, "s", STREAM), 1, "there is news");
    is(op.delivered, 0, "the first");
    is(op.views[0].changed, b->changed, "of this change");
    is(test_read_session(zone, &op, "s", STREAM), 0, "once");
    is(op.delivered, b->changed, "up to here");

    changed = b->changed;
    (void) event(&v, NGX_MCP_EV_ANNOUNCE);
    is(b->changed, changed, "announced again, it is no change");

    (void) event(&v, NGX_MCP_EV_COMPLETE);
    is(test_read_session(zone, &op, "s", STREAM), 1, "the end");
    ok(op.views[0].turned > op.delivered && op.views[0].moved <= op.delivered,
       "is another status");

    begin("s", "\"token\"", &w);
    b = body(&w.id);
    (void) test_move(zone, &w.id, w.task.lease_token, 1, "one");
    changed = b->changed;
    (void) event(&w, NGX_MCP_EV_COMPLETE);
    is(test_read_session(zone, &op, "s", STREAM), 0, "one that ends too early");
    (void) event(&w, NGX_MCP_EV_ANNOUNCE);
    ok(b->turned == b->changed && b->moved == b->changed,
       "when announced, it turns and moves");
    is(test_read_session(zone, &op, "s", STREAM), 1, "there is news");
    ok(op.views[0].turned > op.delivered && op.views[0].moved > op.delivered
       && op.delivered < op.views[0].changed, "of both kinds");

    begin("s", "\"other\"", &v);
    b = body(&v.id);
    (void) test_move(zone, &v.id, v.task.lease_token, 1, "one");
    (void) event(&v, NGX_MCP_EV_ANNOUNCE);
    ok(b->turned == 0 && b->moved == b->changed, "one that only moved");

    /* the session lives as long as its tasks */

    is(delivery("s")->undelivered, 1, "it is behind by one");
    (void) test_delete(zone, &v.id);
    is(delivery("s")->undelivered, 0, "which is deleted");
    is(test_read_session(zone, &op, "s", STREAM), 0, "there is no news");
    ok(test_check(zone) == NULL, "table is consistent");
}


/* in the order of changes, up to a bound; the dropped ones are counted */

static void
test_bounds(void)
{
    int                   i;
    char                  text[700];
    uint64_t              last, seq;
    ngx_uint_t            n, bad, total;
    ngx_mcp_op_session_t  op;

    zone = test_zone(4 << 20, 0);
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';

    for (i = 0; i < 300; i++) {
        test_session = "s";
        (void) test_create(zone, "alice", "dig", text, &ids[i]);
        test_session = NULL;
    }

    for (i = 0; i < 300; i++) {
        (void) test_event(zone, &ids[299 - i], NGX_MCP_EV_ANNOUNCE, 0, 0,
                          NULL);
    }

    is(delivery("s")->undelivered, 300, "behind by more than it is told of");

    /* more bytes than it has room for at first, so it takes the lock twice */

    ngx_memzero(&op, sizeof(op));
    op.want = NGX_MCP_WANT_ALL;
    last = bad = total = 0;

    while ((n = test_read_session(zone, &op, "s", STREAM)) != 0) {

        for (i = 0; i < (int) n; i++) {
            bad += (op.views[i].changed <= last
                    || memcmp(&op.views[i].id, &ids[255 - total - i],
                              sizeof(op.views[i].id)) != 0);
            last = op.views[i].changed;
        }

        total += n;
        op.limit = 90;
        bad += (test_check(zone) != NULL);
    }

    is(total, NGX_MCP_SESSION_CHANGES, "as many as it may be behind");
    is(bad, 0, "the last ones, in the order of changes");
    is(zone->table->sh->count.changes_dropped,
       300 - NGX_MCP_SESSION_CHANGES, "the others are counted once");

    /* from where the client says it was */

    op.opened = 0;
    op.after = body(&ids[10])->changed;
    op.limit = 100;
    is(test_read_session(zone, &op, "s", OTHER), 10, "told again");
    ok(op.opened != 0, "the session is taken over");
    ok(test_check(zone) == NULL, "table is consistent");

    op.opened = 0;
    op.after = 1;
    total = 0;

    while ((n = test_read_session(zone, &op, "s", NEXT(2))) != 0) {
        total += n;
    }

    is(total, NGX_MCP_SESSION_CHANGES, "told of all it may be again");
    ok(test_check(zone) == NULL, "table is consistent");

    /* what it says to know it is not told */

    for (i = 0; i < 20; i++) {
        (void) change(&ids[i]);
    }

    op.opened = 0;
    op.after = body(&ids[14])->changed;
    is(test_read_session(zone, &op, "s", NEXT(3)), 5, "it knew more");
    ok(test_check(zone) == NULL, "table is consistent");

    op.after = 1;
    is(test_read_session(zone, &op, "s", NEXT(3)), 0,
       "going on, it does not matter where the client was");

    /* a client that makes numbers up */

    op.opened = 0;
    op.after = zone->table->sh->seq + 1000000;
    is(test_read_session(zone, &op, "s", NEXT(4)), 0, "it knows the future");
    (void) change(&ids[3]);
    is(test_read_session(zone, &op, "s", NEXT(4)), 1,
       "it is told when the future comes");

    /* what has expired is not told, and not waited for */

    (void) change(&ids[3]);
    (void) change(&ids[4]);
    body(&ids[3])->task.expires = ngx_current_msec;
    is(test_read_session(zone, &op, "s", NEXT(4)), 1, "one of two has expired");
    is(delivery("s")->undelivered, 0, "nothing is left");

    /* recovery does not begin anew */

    (void) change(&ids[5]);
    (void) change(&ids[6]);
    last = delivery("s")->delivered;
    seq = zone->table->sh->seq;
    zone->table->sh->dirty = 1;
    ok(test_check(zone) == NULL, "recovered");
    is(delivery("s")->delivered, last, "what it was told is known");
    is(delivery("s")->stream, NEXT(4), "and who tells it");
    is(zone->table->sh->seq, seq, "no number is given twice");
    is(test_read_session(zone, &op, "s", NEXT(4)), 2, "it is told of the rest");
}


/* whether the stream is to ask */

static ngx_uint_t
asks(ngx_mcp_id_t *id, uint64_t stream)
{
    ngx_mcp_op_get_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_GET;
    op.id = *id;
    op.asker = stream;

    (void) test_submit(zone, &op.op);

    return op.view.asks;
}


static ngx_uint_t
wait_op(ngx_mcp_op_wait_t *op, ngx_uint_t type, ngx_mcp_id_t *id)
{
    op->op.type = type;
    op->op.reason = OK;
    op->id = id;

    return test_submit(zone, &op->op);
}


#define enter(op, id)  wait_op(op, NGX_MCP_OP_WAIT, id)
#define leave(op, id)  wait_op(op, NGX_MCP_OP_LEAVE, id)


static void
test_askers(void)
{
    uint64_t              changed, stream;
    ngx_mcp_view_t        v;
    ngx_mcp_op_wait_t     op, result;
    ngx_mcp_op_session_t  changes;

    zone = test_zone(1 << 20, 0);
    ngx_memzero(&op, sizeof(op));
    ngx_memzero(&result, sizeof(result));
    ngx_memzero(&changes, sizeof(changes));

    begin("s", NULL, &v);
    (void) event(&v, NGX_MCP_EV_ANNOUNCE);

    is(asks(&v.id, STREAM), 0, "there are no questions");
    (void) event(&v, NGX_MCP_EV_ASK);
    is(asks(&v.id, 0), 1, "somebody could ask");
    is(asks(&v.id, STREAM), 1, "one stream does");
    is(asks(&v.id, STREAM), 0, "once");
    is(asks(&v.id, OTHER), 0, "no other does");
    is(asks(&v.id, 0), 0, "nobody else could");

    is(test_read_session(zone, &changes, "s", OTHER), 1, "the session's hears");
    is(changes.views[0].asks, 0, "and does not ask");

    /* it leaves */

    changed = body(&v.id)->changed;
    op.asker = OTHER;
    is(leave(&op, &v.id), OK, "another one leaves");
    is(body(&v.id)->changed, changed, "which does not matter");
    op.asker = STREAM;
    is(leave(&op, &v.id), OK, "the one that asked leaves");
    ok(body(&v.id)->changed > changed && body(&v.id)->turned <= changed,
       "it is as if the task had changed");
    is(test_read_session(zone, &changes, "s", OTHER), 1, "the session's hears");
    is(changes.views[0].asks, 1, "and asks");
    is(asks(&v.id, STREAM), 0, "it is the one that does");

    /* its process dies */

    zone->table->sh->incarnations[2]++;
    is(asks(&v.id, STREAM), 1, "the process of the one that asked is gone");
    is(asks(&v.id, OTHER), 0, "that was an earlier one, it asks no more");

    /* other questions */

    (void) event(&v, NGX_MCP_EV_ANSWER_ALL);
    is(asks(&v.id, STREAM), 0, "answered");
    changed = body(&v.id)->changed;
    is(leave(&op, &v.id), OK, "the one that asked leaves");
    is(body(&v.id)->changed, changed, "which is no news");
    (void) event(&v, NGX_MCP_EV_ASK);
    is(asks(&v.id, STREAM), 1, "other questions");
    (void) event(&v, NGX_MCP_EV_ANSWER_ALL);
    (void) event(&v, NGX_MCP_EV_ASK);
    is(asks(&v.id, STREAM), 1, "are asked, even by the same");
    (void) event(&v, NGX_MCP_EV_ANSWER_ALL);

    /* tasks/result comes first */

    stream = ngx_mcp_stream(2, 1, 5);
    result.result = 1;
    is(enter(&result, &v.id), OK, "tasks/result waits");
    (void) event(&v, NGX_MCP_EV_ASK);
    is(test_read_session(zone, &changes, "s", stream), 1,
       "the session's hears");
    is(changes.views[0].asks, 0, "and leaves it to tasks/result");
    is(asks(&v.id, STREAM), 1, "which asks");
    result.counted = 1;
    result.asker = STREAM;
    is(leave(&result, &v.id), OK, "and leaves");
    is(test_read_session(zone, &changes, "s", stream), 1,
       "the session's hears");
    is(changes.views[0].asks, 1, "and asks");
    (void) event(&v, NGX_MCP_EV_ANSWER_ALL);

    is(enter(&result, &v.id), OK, "tasks/result waits");
    (void) event(&v, NGX_MCP_EV_ASK);
    is(test_read_session(zone, &changes, "s", stream), 1,
       "the session's hears");
    is(changes.views[0].asks, 0, "and leaves it to tasks/result");
    is(leave(&result, &v.id), OK, "which leaves before it has asked");
    is(test_read_session(zone, &changes, "s", stream), 1,
       "the session's hears");
    is(changes.n ? changes.views[0].asks : 0, 1, "and asks");
    (void) event(&v, NGX_MCP_EV_ANSWER_ALL);

    /* two of them */

    (void) enter(&result, &v.id);
    (void) enter(&result, &v.id);
    (void) event(&v, NGX_MCP_EV_ASK);
    (void) test_read_session(zone, &changes, "s", stream);
    result.asker = STREAM;
    is(asks(&v.id, STREAM), 1, "one of two tasks/result asks");
    result.asker = ngx_mcp_stream(1, 0, 2);
    changed = body(&v.id)->changed;
    (void) leave(&result, &v.id);
    is(body(&v.id)->changed, changed, "that the other leaves is no news");
    result.asker = STREAM;
    (void) leave(&result, &v.id);
    is(test_read_session(zone, &changes, "s", stream), 1, "both have left");
    is(changes.views[0].asks, 1, "the session's asks");
    (void) event(&v, NGX_MCP_EV_ANSWER_ALL);

    /* those of the dead */

    is(enter(&result, &v.id), OK, "tasks/result waits");
    zone->table->sh->epoch++;
    zone->table->sh->waiting = 0;
    (void) event(&v, NGX_MCP_EV_ASK);
    is(test_read_session(zone, &changes, "s", stream), 1, "its process dies");
    is(changes.views[0].asks, 1, "the session's asks");
    ok(test_check(zone) == NULL, "table is consistent");
}


static void
test_waits(void)
{
    ngx_uint_t         i, limits;
    ngx_mcp_id_t       a, b;
    ngx_mcp_op_wait_t  op, old;
    ngx_mcp_header_t  *sh;

    zone = test_zone(1 << 20, 0);
    sh = zone->table->sh;
    limits = 0;

    (void) test_create(zone, "alice", "dig", "{}", &a);
    (void) test_create(zone, "alice", "dig", "{}", &b);

    ngx_memzero(&op, sizeof(op));
    op.max_task = 2;
    op.max_zone = 4;
    op.counted = 1;

    is(enter(&op, &a), OK, "one waits for a task");
    is(enter(&op, &a), OK, "another");
    limits += (enter(&op, &a) == NGX_MCP_LIMIT_WAITERS);
    is(limits, 1, "no third");
    is(enter(&op, &b), OK, "one for another task");
    is(enter(&op, NULL), OK, "one for no task");
    limits += (enter(&op, NULL) == NGX_MCP_LIMIT_WAITERS);
    limits += (enter(&op, &b) == NGX_MCP_LIMIT_WAITERS);
    is(limits, 3, "no more in the zone");
    is(sh->count.refused[NGX_MCP_LIMIT_WAITERS], limits, "they are counted");
    is(sh->waiting, 4, "four wait");

    is(leave(&op, &a), OK, "one leaves");
    is(enter(&op, &b), OK, "another comes");
    is(leave(&op, NULL), OK, "one leaves");
    is(enter(&op, &a), OK, "another comes");
    is(sh->waiting, 4, "four wait");

    /* it will be answered at once */

    (void) test_event(zone, &b, NGX_MCP_EV_CANCEL, 0, 0, NULL);
    is(enter(&op, &b), OK, "no limit for a task that has ended");
    is(leave(&op, &b), OK, "it leaves");

    /* whose process dies does not leave; all others count anew */

    old = op;
    sh->epoch++;
    sh->waiting = 0;
    is(enter(&op, &a), OK, "counted anew");
    is(op.epoch, sh->epoch, "in the new epoch");
    is(slot(&a)->waiting, 1, "the task's as well");
    is(leave(&old, &a), OK, "one of the old epoch leaves");
    is(leave(&old, &b), OK, "and another");
    is(sh->waiting, 1, "it was not counted in this one");
    is(slot(&a)->waiting, 1, "nor was it for the task");

    old = op;
    old.counted = 0;
    is(leave(&old, &a), OK, "one leaves that was not counted");
    is(sh->waiting, 1, "it does not count");

    (void) test_delete(zone, &a);
    is(enter(&op, &a), NGX_MCP_NOT_FOUND, "a task that is gone");
    is(leave(&op, &a), OK, "who waited for it leaves");
    is(leave(&op, &a), OK, "once too often");
    is(sh->waiting, 0, "nobody waits");

    /* more than the task's count holds */

    op.max_task = 0;
    op.max_zone = 0;
    op.result = 1;

    for (i = 0; i < 70000; i++) {
        (void) enter(&op, &b);
        ngx_reset_pool(test_pool);
    }

    is(sh->waiting, 70000, "very many");
    ok(slot(&b)->waiting == 0xffff && slot(&b)->results == 0xffff,
       "no overflow");

    sh->waiting = 0;
    (void) leave(&op, &b);
    is(sh->waiting, 0, "no underflow");
}


/* what has expired and was not swept yet is passed by, not all at once */

static void
test_expired(void)
{
    int                   i, looks;
    ngx_mcp_id_t          id, last;
    ngx_mcp_op_changes_t  op;

    zone = test_zone(4 << 20, 4000);

    for (i = 0; i < 2500; i++) {
        (void) test_create(zone, "alice", "dig", "{}", &id);
        body(&id)->task.expires = ngx_current_msec;
    }

    (void) test_create(zone, "alice", "dig", "{}", &last);

    ngx_memzero(&op, sizeof(op));
    op.limit = 10;

    for (looks = 1;
         test_read_changes(zone, &op, "alice") == 0 && op.more;
         looks++)
    {
        ngx_reset_pool(test_pool);
    }

    is(op.n, 1, "who has not expired is told of");
    ok(op.n && ngx_memcmp(&op.views[0].id, &last, sizeof(last)) == 0,
       "the right one");
    is(looks, 3, "after so many looks");
    ok(!op.more, "there is no more");
}


#define ANNOUNCER  ngx_mcp_stream(5, 0, 1)


/* which of the tasks are announced, a bit each */

static ngx_uint_t
announced(ngx_mcp_view_t *v, ngx_uint_t n)
{
    ngx_uint_t  i, bits;

    for (bits = 0, i = 0; i < n; i++) {
        bits |= (body(&v[i].id)->task.flags & NGX_MCP_ANNOUNCED) ? 1u << i : 0;
    }

    return bits;
}


/* a process dies after the answer, before it has announced the task */

static void
test_unannounced(void)
{
    ngx_uint_t            i;
    ngx_mcp_view_t        v[6];
    ngx_mcp_op_session_t  op;

    zone = test_zone(1 << 20, 0);
    ngx_memzero(&op, sizeof(op));

    /* the last two belong to a process that lives on */

    for (i = 0; i < 6; i++) {
        test_announcer = (i < 4) ? ANNOUNCER : NEXT(i);
        begin("s", NULL, &v[i]);
        test_announcer = 0;
    }

    ok(test_check(zone) == NULL, "six are to be announced");

    (void) event(&v[0], NGX_MCP_EV_ANNOUNCE);
    (void) event(&v[1], NGX_MCP_EV_COMPLETE);
    (void) test_delete(zone, &v[2].id);
    v[2] = v[3];
    ok(test_check(zone) == NULL, "one is, one has ended, one is gone");

    (void) test_orphans(zone, STREAM);
    is(announced(v, 6), 1, "nobody has died");

    zone->table->sh->incarnations[5]++;
    (void) test_orphans(zone, STREAM);
    is(announced(v, 6), 1, "nobody knows that it died");

    zone->table->sh->epoch++;
    (void) test_orphans(zone, STREAM);
    is(announced(v, 6), 0x0f, "others announce its tasks, and only these");
    ok(test_check(zone) == NULL, "table is consistent");

    is(test_read_session(zone, &op, "s", STREAM), 3, "the session is told");
    ok(op.views[1].turned > op.delivered || op.views[2].turned > op.delivered,
       "of the end, too");

    zone->table->sh->dirty = 1;
    zone->table->sh->incarnations[2]++;
    zone->table->sh->epoch++;
    (void) test_orphans(zone, STREAM);
    is(announced(v, 6), 0x3f, "after a recovery it is known whose they are");
    ok(test_check(zone) == NULL, "table is consistent");
}


int
main(void)
{
    test_order();
    test_pages(1, 0);
    test_pages(0, 0);
    test_pages(1, 1);
    test_touch();
    test_kinds();
    test_announced();
    test_unannounced();
    test_bounds();
    test_askers();
    test_waits();
    test_expired();

    return done_testing();
}
