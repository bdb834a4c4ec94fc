
/*
 * A mirror: records of an ordinary table, which stands for the store, are put
 * into another one.  What clients read and wait for there is what the store
 * had when the record was read.
 */


#include "libtest.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_mirror.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_slot.h"

#include <stdio.h>
#include <stdlib.h>


#define SELF     4
#define SESSION  "a session"
#define STREAM   ngx_mcp_stream(1, 0, 7)

#define LOCAL    NGX_MCP_MIRROR_LOCAL
#define FORCE    NGX_MCP_MIRROR_FORCE

#define TASKS    48


static ngx_mcp_zone_t  *source, *mirror;
static uint64_t         cursor;
static ngx_uint_t       invalid;


static void
zones(size_t size, uint64_t max_tasks)
{
    source = test_zone(4 << 20, 0);
    mirror = test_zone(size, max_tasks);
    mirror->table->mirror = 1;
    mirror->table->self = SELF;
    cursor = 0;
}


static void
load(ngx_mcp_id_t *id, ngx_mcp_record_t *rec)
{
    u_char           *p;
    ngx_mcp_slot_t   *s;
    ngx_mcp_table_t  *t;

    t = source->table;
    s = ngx_mcp_find_locked(t, id, NULL, 0);
    p = ngx_palloc(test_pool, ngx_mcp_slot_size_locked(t, s,
                                                       NGX_MCP_RECORD_ALL));
    (void) ngx_mcp_slot_read_locked(t, s, NGX_MCP_RECORD_ALL, rec, p);
}


static ngx_int_t
put_record(ngx_mcp_record_t *rec, ngx_uint_t flags)
{
    ngx_int_t  rc;

    ngx_mcp_lock(mirror->table);
    rc = ngx_mcp_mirror_put_locked(mirror->table, rec, flags);
    ngx_mcp_unlock(mirror->table);

    invalid += (test_check(mirror) != NULL);

    return rc;
}


static ngx_int_t
put(ngx_mcp_id_t *id, ngx_uint_t flags)
{
    ngx_mcp_record_t  rec;

    load(id, &rec);

    return put_record(&rec, flags);
}


static ngx_mcp_slot_t *
copy_of(ngx_mcp_id_t *id)
{
    return ngx_mcp_find_locked(mirror->table, id, NULL, 0);
}


/* whether this process was signalled since, for the key */

static ngx_uint_t
signalled(uint64_t key)
{
    ngx_uint_t        i, n, found;
    ngx_mcp_signal_t  signals[64];

    n = ngx_mcp_signal_read(mirror->table, &cursor, signals, 64);

    for (found = 0, i = 0; i < n && n <= 64; i++) {
        found |= (signals[i].key == key && signals[i].processes & SELF);
    }

    return found;
}


static void
watch(ngx_mcp_id_t *id)
{
    ngx_mcp_op_get_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_GET;
    op.id = *id;
    op.watch = 1;
    (void) test_submit(mirror, &op.op);
}


static ngx_uint_t
same_str(ngx_str_t *a, ngx_str_t *b)
{
    return a->len == b->len
           && (a->len == 0 || ngx_memcmp(a->data, b->data, a->len) == 0);
}


/* what a client reads is what the record says; the numbers are others */

static const char *
differs(ngx_mcp_view_t *v, ngx_mcp_record_t *rec)
{
    ngx_uint_t       i;
    ngx_mcp_task_t  *a, *b;

    a = &v->task;
    b = &rec->task;

    if (a->version != b->version || a->state != b->state
        || a->attempt != b->attempt || a->cause != b->cause
        || a->created != b->created || a->updated != b->updated
        || a->expires != b->expires || a->step_end != b->step_end
        || a->phase_end != b->phase_end || a->since != b->since
        || a->lease_token != b->lease_token || a->progress != b->progress
        || a->total != b->total || a->ttl != b->ttl
        || a->policy.lease != b->policy.lease
        || (a->flags & NGX_MCP_FLAGS_SAVED) != b->flags)
    {
        return "task";
    }

    if (!same_str(&v->owner, &rec->owner) || !same_str(&v->tool, &rec->tool)
        || !same_str(&v->token, &rec->token)
        || !same_str(&v->method, &rec->method))
    {
        return "names";
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (!same_str(&v->payload[i], &rec->payload[i])) {
            return (char *) ngx_mcp_payload_fields[i].name.data;
        }
    }

    return NULL;
}


static void
test_put(void)
{
    ngx_mcp_id_t      id;
    ngx_mcp_view_t    v;
    ngx_mcp_record_t  first, rec;

    zones(1 << 20, 0);

    test_token = "\"token\"";
    (void) test_create(source, "alice", "dig", "{\"n\": 1.0}", &id);
    test_token = NULL;

    load(&id, &first);
    is(put_record(&first, 0), NGX_OK, "a new copy");
    ok(test_get(mirror, &id, &v) == NGX_MCP_OK && differs(&v, &first) == NULL,
       "is read as it is in the store");
    is(put_record(&first, 0), NGX_DECLINED, "the same again");
    is(mirror->table->sh->states[NGX_MCP_QUEUED], 1, "is counted once");

    (void) test_claim(source, "dig", &v);
    (void) test_move(source, &id, v.task.lease_token, 3, "\"three\"");

    load(&id, &rec);
    is(put_record(&rec, 0), NGX_OK, "a later revision");
    ok(test_get(mirror, &id, &v) == NGX_MCP_OK && differs(&v, &rec) == NULL,
       "replaces the copy");
    is(v.nhistory, 1, "with its history");
    is(put_record(&first, 0), NGX_DECLINED, "an earlier one does not");
    is(copy_of(&id)->body.revision, rec.revision, "the revision");
    is(put_record(&first, FORCE), NGX_OK, "unless the store has gone back");
    ok(test_get(mirror, &id, &v) == NGX_MCP_OK && differs(&v, &first) == NULL,
       "which is read then");
    is(put_record(&rec, 0), NGX_OK, "and forward again");

    is(mirror->table->sh->task_counters.created
       + mirror->table->sh->task_counters.claimed, 0, "nothing is counted");
    is(mirror->table->sh->states[NGX_MCP_RUNNING], 1, "but gauges");

    rec.task.expires = 0;
    rec.revision++;
    is(put_record(&rec, 0), NGX_OK, "one that has expired long ago");
    is(test_get(mirror, &id, NULL), NGX_MCP_NOT_FOUND, "is not read");

    ngx_mcp_mirror_remove_locked(mirror->table, &id);
    ngx_mcp_mirror_remove_locked(mirror->table, &id);
    ok(copy_of(&id) == NULL && mirror->table->sh->block.used == 0, "removed");
    is(invalid, 0, "the mirror was consistent after every step");
}


static void
test_waiting(void)
{
    uint64_t              key, changed, after;
    ngx_mcp_id_t          id;
    ngx_mcp_view_t        v;
    ngx_mcp_op_changes_t  op;
    ngx_mcp_op_session_t  sop;

    zones(1 << 20, 0);

    test_session = SESSION;
    (void) test_create(source, "alice", "dig", "{}", &id);
    test_session = NULL;
    key = ngx_mcp_signal_id(&id);

    ngx_memzero(&op, sizeof(op));
    ngx_memzero(&sop, sizeof(sop));
    op.watch = 1;
    sop.watch = 1;

    is(test_read_changes(mirror, &op, "alice"), 0, "an owner without tasks");
    is(test_read_session(mirror, &sop, SESSION, STREAM), 0, "a session");

    (void) put(&id, 0);
    ok(signalled(ngx_mcp_signal_name(ngx_mcp_name(mirror->table,
                                                  copy_of(&id)->owner)->hash)),
       "the owner is signalled");
    is(test_read_changes(mirror, &op, "alice"), 1, "and reads the task");
    is(test_read_session(mirror, &sop, SESSION, STREAM), 0,
       "which is not announced to the session");

    watch(&id);
    (void) test_claim(source, "dig", &v);
    (void) put(&id, 0);
    ok(signalled(key), "what waits for a task is signalled");
    is(test_read_changes(mirror, &op, "alice"), 1, "it has changed");

    after = copy_of(&id)->body.turned;
    changed = copy_of(&id)->body.changed;
    watch(&id);
    (void) test_event(source, &id, NGX_MCP_EV_HEARTBEAT, v.task.lease_token,
                      0, NULL);
    is(put(&id, 0), NGX_OK, "a heartbeat");
    ok(!signalled(key) && copy_of(&id)->body.changed == changed,
       "is not a change");
    is(copy_of(&id)->body.turned, after, "queued and running are one status");

    (void) test_event(source, &id, NGX_MCP_EV_ANNOUNCE, 0, 0, NULL);
    (void) put(&id, 0);
    ok(signalled(key) && copy_of(&id)->body.changed > changed,
       "an announcement is one");
    is(test_read_session(mirror, &sop, SESSION, STREAM), 1,
       "the session is told");

    (void) test_move(source, &id, v.task.lease_token, 3, "\"three\"");
    (void) put(&id, 0);
    changed = copy_of(&id)->body.changed;
    ok(copy_of(&id)->body.turned == changed
       && copy_of(&id)->body.moved == changed, "progress with a message");

    (void) test_move(source, &id, v.task.lease_token, 4, "\"three\"");
    (void) put(&id, 0);
    ok(copy_of(&id)->body.turned == changed
       && copy_of(&id)->body.moved > changed, "with the same message");

    (void) test_move(source, &id, v.task.lease_token, 9, NULL);
    (void) test_event(source, &id, NGX_MCP_EV_RELEASE, v.task.lease_token, 0,
                      NULL);
    (void) put(&id, 0);
    ok(copy_of(&id)->body.peak == 9
       && copy_of(&id)->body.moved == copy_of(&id)->body.changed,
       "progress that was made in between");
    is(test_read_session(mirror, &sop, SESSION, STREAM), 1, "in one change");

    watch(&id);
    ngx_mcp_mirror_remove_locked(mirror->table, &id);
    ok(signalled(key), "a task that is gone is signalled");
    is(invalid, 0, "the mirror was consistent after every step");
}


static void
test_questions(void)
{
    ngx_mcp_id_t        id;
    ngx_mcp_view_t      v;
    ngx_mcp_slot_t     *s;
    ngx_mcp_op_wait_t   op;

    zones(1 << 20, 0);

    (void) test_create(source, "alice", "dig", "{}", &id);
    (void) test_claim(source, "dig", &v);
    (void) test_event(source, &id, NGX_MCP_EV_ASK, v.task.lease_token,
                      NGX_MCP_REQUESTS, "{\"a\": {}, \"b\": {}}");
    (void) put(&id, 0);

    s = copy_of(&id);
    s->asker = STREAM;
    s->waiting = 1;
    (void) ngx_mcp_mirror_pin_locked(mirror->table, s);

    (void) test_event(source, &id, NGX_MCP_EV_ANSWER, 0, NGX_MCP_REQUESTS,
                      "{\"b\": {}}");
    (void) put(&id, 0);
    ok(s->asker == STREAM && s->waiting == 1 && s->pinned == SELF,
       "an answer leaves the asker, waiters and pins");

    ngx_current_msec += 5;
    (void) test_event(source, &id, NGX_MCP_EV_ANSWER_ALL, 0, NGX_MCP_REQUESTS,
                      "");
    ngx_current_msec += 5;
    (void) test_event(source, &id, NGX_MCP_EV_ASK, v.task.lease_token,
                      NGX_MCP_REQUESTS, "{\"b\": {}}");
    (void) put(&id, 0);
    is(s->asker, 0, "the same question again has no asker");

    /* a stream that leaves makes the task a change */

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LEAVE;
    op.id = &id;
    op.asker = STREAM;
    s->asker = STREAM;
    (void) test_submit(mirror, &op.op);

    (void) test_event(source, &id, NGX_MCP_EV_ANNOTATE, 0, NGX_MCP_METADATA,
                      "{}");
    is(put(&id, 0), NGX_OK, "but not another revision");
    is(invalid, 0, "the mirror was consistent after every step");
}


static void
test_calls_held(void)
{
    ngx_mcp_id_t       id;
    ngx_mcp_view_t     v;
    ngx_mcp_slot_t    *s;
    ngx_mcp_header_t  *sh;

    zones(1 << 20, 0);
    sh = mirror->table->sh;

    test_holder = ngx_mcp_stream(2, 0, 1);
    (void) test_create(source, "alice", "call", "{}", &id);

    (void) put(&id, 0);
    s = copy_of(&id);
    ok(sh->holding == 0 && s->body.task.policy.route == 0
       && s->body.task.holder == 0, "a call of another machine");

    (void) test_run(source, &id, test_holder, 0, 0, &v);
    (void) put(&id, 0);
    is(sh->running, 0, "does not run here");

    (void) test_event(source, &id, NGX_MCP_EV_RETRY, v.task.lease_token, 0,
                      NULL);
    (void) put(&id, LOCAL);
    ok(sh->holding == 1 && sh->running == 0
       && s->body.task.holder == test_holder, "this machine takes it over");

    ngx_current_msec += 5000;
    (void) test_sweep(source, 10);
    (void) put(&id, LOCAL);
    (void) test_run(source, &id, test_holder, 0, 0, &v);
    (void) put(&id, LOCAL);
    ok(sh->holding == 1 && sh->running == 1, "and runs it");

    (void) test_event(source, &id, NGX_MCP_EV_HEARTBEAT, v.task.lease_token,
                      0, NULL);
    (void) put(&id, 0);
    ok(sh->holding == 0 && sh->running == 0, "and loses it");

    (void) test_event(source, &id, NGX_MCP_EV_COMPLETE, v.task.lease_token,
                      NGX_MCP_RESULT, "{}");
    (void) put(&id, LOCAL);
    ok(sh->holding == 0 && sh->running == 0, "until it ends");

    test_holder = 0;

    ngx_mcp_await_name_locked(mirror->table, 0);
    (void) test_create(source, "alice", "dig", "{}", &id);
    (void) put(&id, 0);
    mirror->table->sh->awaited[ngx_mcp_signal_name(
        ngx_mcp_name(mirror->table, copy_of(&id)->tool)->hash)] |= SELF;
    (void) test_claim(source, "dig", &v);
    (void) put(&id, 0);
    (void) test_event(source, &id, NGX_MCP_EV_RELEASE, v.task.lease_token, 0,
                      NULL);
    (void) put(&id, 0);
    ok(!signalled(ngx_mcp_signal_name(
           ngx_mcp_name(mirror->table, copy_of(&id)->tool)->hash)),
       "workers are not woken by copies");
    is(invalid, 0, "the mirror was consistent after every step");
}


static void
test_eviction(void)
{
    ngx_uint_t       i, kept, bad;
    ngx_mcp_id_t     id[200], ended[2];
    ngx_mcp_view_t   v;
    ngx_mcp_slot_t  *s;

    zones(1 << 20, 100);

    /* two that have ended; one of them is read while it waits to be evicted */

    for (i = 0; i < 2; i++) {
        (void) test_create(source, "alice", "end", "{}", &ended[i]);
        (void) test_claim(source, "end", &v);
        (void) test_event(source, &ended[i], NGX_MCP_EV_COMPLETE,
                          v.task.lease_token, NGX_MCP_RESULT, "{}");
        (void) put(&ended[i], 0);
        watch(&ended[i]);
    }

    copy_of(&ended[0])->epoch = mirror->table->sh->epoch;
    copy_of(&ended[0])->waiting = 1;

    for (bad = 0, i = 0; i < 200; i++) {
        (void) test_create(source, "alice", "dig", "{}", &id[i]);
        bad += (put(&id[i], 0) != NGX_OK);

        if (i < 60) {
            (void) ngx_mcp_mirror_pin_locked(mirror->table, copy_of(&id[i]));

        } else if (i < 80) {
            watch(&id[i]);
        }

        ngx_reset_pool(test_pool);
    }

    is(bad, 0, "there is room for twice as many tasks as slots");

    for (kept = 0, i = 0; i < 80; i++) {
        kept += (copy_of(&id[i]) != NULL);
    }

    is(kept, 80, "none was evicted that is pinned or awaited");
    ok(copy_of(&ended[0]) != NULL, "nor an ended one that a request waits for");
    ok(copy_of(&id[199]) != NULL, "the last one is there");
    is(mirror->table->sh->slot.used, 100, "all slots are in use");

    for (i = 1; i <= 100; i++) {
        s = ngx_mcp_slot(mirror->table, i);
        (void) ngx_mcp_mirror_pin_locked(mirror->table, s);
    }

    is(put(&id[100], 0), NGX_ABORT, "all are pinned");

    for (i = 0; i < 3; i++) {
        ngx_mcp_mirror_unpin_locked(mirror->table, copy_of(&id[i + 60]));
    }

    is(put(&id[100], 0), NGX_OK, "one is not");
    is(invalid, 0, "the mirror was consistent after every step");
}


/* blocks run out before slots do */

static void
test_eviction_blocks(void)
{
    ngx_int_t        rc;
    ngx_uint_t       i, bad;
    ngx_mcp_id_t     id[120];
    ngx_mcp_view_t   v;
    static char      big[3000], huge[60000];

    zones(256 * 1024, 100);
    memset(big, 'b', sizeof(big) - 1);

    for (bad = 0, i = 0; i < 120; i++) {
        (void) test_create(source, i % 2 ? "alice" : "bob", "dig", big,
                           &id[i]);
        bad += (put(&id[i], 0) != NGX_OK);
        ngx_reset_pool(test_pool);
    }

    is(bad, 0, "new copies get the blocks of others");

    (void) test_claim(source, "dig", &v);
    (void) put(&v.id, 0);

    for (rc = NGX_OK, i = 0; rc == NGX_OK && i < 20; i++) {
        /* its own slot is examined next */
        mirror->table->sh->evict = ngx_mcp_index(mirror->table,
                                                 copy_of(&v.id)) - 1;
        memset(huge, 'c' + i, 20000);
        huge[20000] = '\0';
        (void) test_event(source, &v.id, NGX_MCP_EV_PROGRESS,
                          v.task.lease_token, i % 2 ? NGX_MCP_MESSAGE
                                                    : NGX_MCP_METADATA, huge);
        rc = put(&v.id, 0);
    }

    is(rc, NGX_OK, "and so do changes");
    ok(copy_of(&v.id) != NULL, "which do not evict their own copy");

    for (i = 1; i < mirror->table->sh->slot.fresh; i++) {
        (void) ngx_mcp_mirror_pin_locked(mirror->table,
                                         ngx_mcp_slot(mirror->table, i));
    }

    for (rc = NGX_OK, i = NGX_MCP_METADATA;
         rc == NGX_OK && i < NGX_MCP_PAYLOADS;
         i++)
    {
        memset(huge, 'd', sizeof(huge) - 1);
        (void) test_event(source, &v.id, NGX_MCP_EV_PROGRESS,
                          v.task.lease_token, i, huge);
        rc = put(&v.id, 0);
    }

    is(rc, NGX_ABORT, "until there is no room");
    is(invalid, 0, "the mirror was consistent after every step");
}


static void
test_clear(void)
{
    uint32_t          next;
    uint64_t          logged;
    ngx_uint_t        i, calls, kept;
    ngx_mcp_id_t      id[600];
    ngx_mcp_table_t  *t;

    zones(4 << 20, 1000);
    t = mirror->table;

    for (i = 0; i < 600; i++) {
        (void) test_create(source, "alice", "dig", "{}", &id[i]);
        (void) put(&id[i], 0);

        if (i % 3 == 0) {
            (void) ngx_mcp_mirror_pin_locked(t, copy_of(&id[i]));
        }

        if (i % 6 == 0) {
            copy_of(&id[i])->pinned = 2;
        }

        if (i % 5 == 0) {
            watch(&id[i]);
        }

        ngx_reset_pool(test_pool);
    }

    logged = t->sh->logged;
    ngx_mcp_lock(t);

    for (next = 0, calls = 1; ngx_mcp_mirror_clear_locked(t, &next); calls++) {
        /* void */
    }

    ngx_mcp_unlock(t);

    for (kept = 0, i = 0; i < 600; i++) {
        kept += (copy_of(&id[i]) != NULL) == (i % 3 == 0);
    }

    is(kept, 600, "only pinned copies stay");
    is(calls, 3, "after three parts");
    is(t->sh->logged, logged, "nobody is signalled");
    ok(test_check(mirror) == NULL, "and all is consistent");

    for (next = 0, calls = 1;
         ngx_mcp_mirror_unpin_dead_locked(t, SELF, &next);
         calls++)
    {
        /* void */
    }

    for (next = 0; ngx_mcp_mirror_clear_locked(t, &next); /* void */ ) {
        /* void */
    }

    is(t->sh->slot.used, 100, "a dead process does not keep its copies");
    ok(test_check(mirror) == NULL, "and all is consistent");
}


/* what the store had when the copy was made */

typedef struct {
    ngx_mcp_id_t      id;
    ngx_uint_t        lives;          /* in the store */
    ngx_uint_t        copied;
    ngx_uint_t        pinned;
    uint64_t          changed;        /* of the copy */
    ngx_mcp_record_t  rec;
} model_t;


static model_t   model[TASKS];
static ngx_pool_t  *pool;


static void
random_event(model_t *m)
{
    ngx_str_t             text;
    ngx_uint_t            i;
    ngx_mcp_slot_t       *s;
    ngx_mcp_op_update_t   op;
    static char           bytes[600];

    s = ngx_mcp_find_locked(source->table, &m->id, NULL, 0);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.id = m->id;
    op.event.type = (ngx_uint_t) random() % NGX_MCP_EV_READY;
    op.event.lease_token = s->body.task.lease_token;
    op.event.progress = random() % 20 - 1;
    op.event.total = -1;

    if (op.event.type == NGX_MCP_EV_CLAIM) {
        op.event.lease_token = 1 + random() % 1000;
    }

    if ((op.event.type == NGX_MCP_EV_COMPLETE
         || op.event.type == NGX_MCP_EV_FAIL
         || op.event.type == NGX_MCP_EV_CANCEL) && random() % 4)
    {
        op.event.type = NGX_MCP_EV_ANNOUNCE;
    }

    memset(bytes, 'a' + random() % 26, sizeof(bytes));
    text.data = (u_char *) bytes;

    for (i = NGX_MCP_METADATA; i < NGX_MCP_PAYLOADS; i++) {
        if (random() % 4 == 0) {
            text.len = (size_t) random() % 3 * (size_t) random() % 600;
            op.change.payload[i] = text;
        }
    }

    (void) test_submit(source, &op.op);
}


/* the record outlives the step: copies keep their old content */

static void
keep_record(model_t *m)
{
    ngx_pool_t  *last;

    last = test_pool;
    test_pool = pool;
    load(&m->id, &m->rec);
    test_pool = last;
}


static const char *
random_put(model_t *m)
{
    uint64_t          revision, version, changed;
    ngx_int_t         rc;
    ngx_uint_t        announced;
    ngx_mcp_slot_t   *s;
    ngx_mcp_record_t  rec;

    s = copy_of(&m->id);
    revision = s ? s->body.revision : 0;
    version = s ? s->body.task.version : 0;
    announced = s ? s->body.task.flags & NGX_MCP_ANNOUNCED : 0;
    changed = s ? s->body.changed : 0;

    load(&m->id, &rec);
    rc = put_record(&rec, (ngx_uint_t) random() % 2);

    if (rc == NGX_ABORT) {
        return "no room";
    }

    if ((rc == NGX_OK) != (rec.revision > revision)) {
        return "declined, or not declined";
    }

    if (rc == NGX_OK) {
        keep_record(m);
        s = copy_of(&m->id);

        if ((s->body.changed > changed)
            != (version != rec.task.version
                || announced != (rec.task.flags & NGX_MCP_ANNOUNCED)))
        {
            return "a change without a number, or the reverse";
        }

        m->copied = 1;
        m->changed = s->body.changed;
    }

    return NULL;
}


static void
random_create(model_t *m)
{
    ngx_memzero(m, sizeof(model_t));

    test_session = random() % 2 ? SESSION : NULL;
    test_token = random() % 2 ? "\"token\"" : NULL;
    test_holder = random() % 3 ? 0 : ngx_mcp_stream(2, 0, 1);

    if (test_create(source, random() % 2 ? "alice" : "bob",
                    random() % 2 ? "dig" : "walk", "{}", &m->id)
        == NGX_MCP_OK)
    {
        m->lives = 1;
    }

    test_session = NULL;
    test_token = NULL;
    test_holder = 0;
}


static const char *
random_step(model_t *m)
{
    ngx_mcp_slot_t  *s;

    if (!m->lives) {
        random_create(m);
        return NULL;
    }

    switch (random() % 10) {

    case 0:
    case 1:
    case 2:
    case 3:
        random_event(m);
        return NULL;

    case 4:
        s = copy_of(&m->id);

        if (s && m->pinned) {
            ngx_mcp_mirror_unpin_locked(mirror->table, s);
            m->pinned = 0;

        } else if (s && random() % 3 == 0) {
            m->pinned = ngx_mcp_mirror_pin_locked(mirror->table, s);
        }

        return NULL;

    case 5:
        if (random() % 8 == 0) {
            (void) test_delete(source, &m->id);
            ngx_mcp_mirror_remove_locked(mirror->table, &m->id);
            ngx_memzero(m, sizeof(model_t));
        }

        return NULL;

    default:
        return random_put(m);
    }
}


static const char *
judge(void)
{
    ngx_uint_t      i;
    const char     *err;
    ngx_mcp_view_t  v;

    for (i = 0; i < TASKS; i++) {

        if (!model[i].copied) {
            continue;
        }

        if (copy_of(&model[i].id) == NULL) {

            if (model[i].pinned) {
                return "a pinned copy was evicted";
            }

            model[i].copied = 0;
            continue;
        }

        (void) test_get(mirror, &model[i].id, &v);
        err = differs(&v, &model[i].rec);

        if (err) {
            return err;
        }

        if (v.changed != model[i].changed) {
            return "changed";
        }
    }

    return NULL;
}


static void
test_model(void)
{
    ngx_uint_t   n;
    const char  *err;

    srandom(7);
    zones(64 * 1024, 30);
    pool = ngx_create_pool(65536, ngx_cycle->log);

    err = NULL;

    for (n = 0; n < 40000 && err == NULL; n++) {
        ngx_current_msec += random() % 3;

        err = random_step(&model[random() % TASKS]);

        if (err == NULL) {
            err = judge();
        }

        ngx_reset_pool(test_pool);
    }

    ok(err == NULL, "%lu random steps%s%s", (unsigned long) n,
       err ? ", but " : "", err ? err : "");
    is(invalid, 0, "the mirror was consistent after every step");
}


int
main(void)
{
    ngx_current_msec = 100000;

    test_put();
    test_waiting();
    test_questions();
    test_calls_held();
    test_eviction();
    test_eviction_blocks();
    test_clear();
    test_model();

    return done_testing();
}
