
#include "libcrash.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_mirror.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_record_change.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_slot.h"

#include <stdio.h>


typedef struct {
    uint64_t  seq;
    uint64_t  changed;
    size_t    len[NGX_MCP_PAYLOADS];
    u_char    data[NGX_MCP_PAYLOADS][2048];
} crash_row_t;


#define SESSION  "a session"
#define STREAM   ngx_mcp_stream(1, 0, 7)
#define OTHER    ngx_mcp_stream(1, 0, 8)

/* processes that hold calls */
#define PROCESS    ngx_mcp_stream(2, 0, 1)
#define NEIGHBOUR  ngx_mcp_stream(3, 0, 1)

#define NAME_60  "a name of sixty characters, which is just below the limit..."

static ngx_mcp_view_t   held;       /* a running task */
static ngx_mcp_view_t   asking;     /* one that waits for input */
static ngx_mcp_id_t     waiting;    /* one that is queued */
static char                        big[1500];

/* tasks of a session: its client knows of all but one */
static ngx_mcp_view_t   walking;    /* runs; it knows the latest */
static ngx_mcp_view_t   moving;     /* runs, and changed since */
static ngx_mcp_view_t   puzzled;    /* waits for input */
static ngx_mcp_view_t   secret;

/* calls of a process, in this order, and the last of its neighbour */
static ngx_mcp_view_t   brisk;      /* runs, idempotent */
static ngx_mcp_view_t   fragile;    /* runs, but only once */
static ngx_mcp_view_t   curious;    /* waits for input */
static ngx_mcp_view_t   patient;    /* waits for its turn */
static ngx_mcp_view_t   bound;      /* does so */
static ngx_mcp_view_t   last;       /* does so */

/* what a store on disk has of each task, and the batch it got last */
static crash_row_t                 rows[64];
static ngx_uint_t                  nrows;
static ngx_mcp_batch_t  batch;

ngx_uint_t                         crash_stored;

static uint64_t                    rewound;    /* the least that was told */
static uint64_t                    cursor;     /* of a process that waits */
static uint64_t                    woken;
static ngx_uint_t                  recovered, recoveries;


static void
wake(ngx_mcp_table_t *t, uint64_t processes)
{
    woken |= processes;
}


/*
 * Its client was told of everything but the last change; one of the tasks is
 * not announced, though it is not what it was any more.
 */

static void
add_session(ngx_mcp_zone_t *zone)
{
    ngx_uint_t            i;
    ngx_mcp_view_t       *v[4] = { &walking, &moving, &puzzled,
                                   &secret };
    ngx_mcp_op_session_t  op;

    for (i = 0; i < 4; i++) {
        test_session = SESSION;
        (void) test_create(zone, i % 2 ? "alice" : "dora", "walk", "{}", NULL);
        test_session = NULL;

        (void) test_claim(zone, "walk", v[i]);

        if (v[i] != &secret) {
            (void) test_event(zone, &v[i]->id, NGX_MCP_EV_ANNOUNCE, 0, 0,
                              NULL);
        }

        (void) test_move(zone, &v[i]->id, v[i]->task.lease_token, i, "going");
    }

    (void) test_event(zone, &puzzled.id, NGX_MCP_EV_ASK,
                      puzzled.task.lease_token, NGX_MCP_REQUESTS,
                      "{\"where\": {}}");

    ngx_memzero(&op, sizeof(op));
    (void) test_read_session(zone, &op, SESSION, STREAM);

    (void) test_move(zone, &moving.id, moving.task.lease_token, 5, "faster");
}


static void
hold(ngx_mcp_zone_t *zone, uint64_t holder, ngx_uint_t calls, const char *tool,
    ngx_mcp_id_t *id)
{
    test_holder = holder;
    test_calls = calls;

    (void) test_create(zone, "alice", tool, "{\"c\": 1}", id);

    test_holder = 0;
    test_calls = 0;
}


static void
add_calls(ngx_mcp_zone_t *zone)
{
    hold(zone, PROCESS, NGX_MCP_IDEMPOTENT, "call", &brisk.id);
    hold(zone, PROCESS, 0, "fetch", &fragile.id);
    hold(zone, PROCESS, NGX_MCP_IDEMPOTENT, "call", &curious.id);
    hold(zone, PROCESS, 0, "call", &patient.id);
    hold(zone, PROCESS, NGX_MCP_BOUND, "call", &bound.id);
    hold(zone, NEIGHBOUR, 0, "fetch", &last.id);

    (void) test_run(zone, &brisk.id, PROCESS, 0, 0, &brisk);
    (void) test_run(zone, &fragile.id, PROCESS, 0, 0, &fragile);
    (void) test_run(zone, &curious.id, PROCESS, 0, 0, &curious);
    (void) test_event(zone, &curious.id, NGX_MCP_EV_ASK,
                      curious.task.lease_token, NGX_MCP_REQUESTS,
                      "{\"why\": {}}");
}


/* somebody waits for everything there is, so that all changes are signalled */

static void
await_all(ngx_mcp_table_t *t)
{
    uint32_t  n;

    for (n = 1; n < t->sh->slot.fresh; n++) {
        ngx_mcp_await_task_locked(t, ngx_mcp_slot(t, n));
    }

    for (n = 0; n < NGX_MCP_AWAITED; n++) {
        ngx_mcp_await_name_locked(t, n);
    }
}


/* copies what there is to save, and what would be in the database then */

static void
write_rows(ngx_mcp_zone_t *zone)
{
    ngx_uint_t         i, k;
    crash_row_t       *row;
    ngx_mcp_record_t  *rec;

    (void) ngx_mcp_batch_init(&batch, ngx_cycle->log);

    while (ngx_mcp_save_locked(zone->table, &batch) == NGX_AGAIN) {
        (void) ngx_mcp_batch_grow(&batch, ngx_cycle->log);
    }

    for (i = 0; i < batch.ndeletions; i++) {
        for (k = 0; k < nrows; k++) {
            if (rows[k].seq == batch.deletions[i]) {
                rows[k] = rows[--nrows];
                break;
            }
        }
    }

    for (i = 0; i < batch.n; i++) {
        rec = &batch.records[i];

        for (k = 0; k < nrows && rows[k].seq != rec->seq; k++) { /* void */ }

        row = &rows[k];

        if (k == nrows) {
            ngx_memzero(row, sizeof(crash_row_t));
            row->seq = rec->seq;
            nrows++;
        }

        row->changed = rec->changed;

        for (k = 0; k < NGX_MCP_PAYLOADS; k++) {
            if (rec->mask & (1u << k)) {
                row->len[k] = rec->payload[k].len;
                ngx_memcpy(row->data[k], rec->payload[k].data, row->len[k]);
            }
        }
    }
}


/*
 * The zone has a store: most of it is saved, something is not, and of what
 * was saved just now the table does not know yet.
 */

static void
add_store(ngx_mcp_zone_t *zone)
{
    ngx_mcp_id_t    id[2];
    ngx_mcp_view_t  v;

    nrows = 0;
    ngx_mcp_save_attach(zone->table, 0);
    ngx_mcp_save_of(zone->table)->instance = 1;

    ngx_mcp_save_all_locked(zone->table);
    write_rows(zone);
    ngx_mcp_saved_locked(zone->table, &batch);

    (void) test_create(zone, "alice", "saved", "{\"s\": 1}", &id[0]);
    (void) test_create(zone, "bob", "saved", "{\"s\": 2}", &id[1]);
    (void) test_claim(zone, "saved", &v);
    (void) test_event(zone, &held.id, NGX_MCP_EV_PROGRESS,
                      held.task.lease_token, NGX_MCP_MESSAGE, "more");
    (void) test_delete(zone, &id[1]);

    write_rows(zone);

    (void) test_event(zone, &v.id, NGX_MCP_EV_PROGRESS,
                      v.task.lease_token, NGX_MCP_MESSAGE, "since");
    (void) test_event(zone, &walking.id, NGX_MCP_EV_PROGRESS,
                      walking.task.lease_token, NGX_MCP_MESSAGE, "too");
    (void) test_create(zone, "bob", "unsaved", "{}", &id[1]);
    (void) test_delete(zone, &id[0]);
    (void) test_delete(zone, &id[1]);
}


ngx_mcp_zone_t *
crash_zone(void)
{
    ngx_uint_t        i;
    ngx_mcp_id_t      id;
    ngx_mcp_zone_t   *zone;
    ngx_mcp_view_t    v;

    ngx_current_msec = 100000;
    memset(big, 'b', sizeof(big) - 1);

    zone = test_zone(CRASH_ZONE, 32);

    for (i = 0; i < 10; i++) {
        (void) test_create(zone, i % 2 ? "alice" : "bob", i % 3 ? "dig" : "x",
                           i % 4 ? "{\"a\": 1}" : big, &id);
    }

    /* holes in slots and blocks, and every state */

    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease_token, NGX_MCP_RESULT, "{\"r\": 1}");
    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_RETRY, v.task.lease_token, 0,
                      NULL);
    (void) test_claim(zone, "dig", &asking);
    (void) test_event(zone, &asking.id, NGX_MCP_EV_ASK, asking.task.lease_token,
                      NGX_MCP_REQUESTS, big);
    (void) test_claim(zone, "dig", &held);
    (void) test_event(zone, &held.id, NGX_MCP_EV_PROGRESS,
                      held.task.lease_token, NGX_MCP_MESSAGE, "half");

    add_session(zone);
    add_calls(zone);

    (void) test_claim(zone, "x", &v);
    (void) test_delete(zone, &v.id);

    if (crash_stored) {
        add_store(zone);
    }

    waiting = id;
    rewound = (uint64_t) -1;

    zone->table->self = 4;
    zone->table->woken = wake;
    await_all(zone->table);

    ngx_reset_pool(test_pool);

    return zone;
}


static void
held_event(ngx_mcp_zone_t *zone, ngx_uint_t type, ngx_uint_t kind,
    const char *bytes)
{
    (void) test_event(zone, &held.id, type, held.task.lease_token, kind, bytes);
}


static void
run_create(ngx_mcp_zone_t *zone)
{
    (void) test_create(zone, "alice", "dig", big, NULL);
}

static void
run_create_names(ngx_mcp_zone_t *zone)
{
    (void) test_create(zone, NAME_60 NAME_60 NAME_60, "new_tool" NAME_60 "123",
                       "{}", NULL);
}

static void
run_create_token(ngx_mcp_zone_t *zone)
{
    test_token = "\"token\"";
    (void) test_create(zone, "alice", "dig", "{}", NULL);
    test_token = NULL;
}

static void
prepare_token(ngx_mcp_zone_t *zone)
{
    test_token = "\"token\"";
    (void) test_create(zone, "alice", "dig", "{}", &waiting);
    test_token = NULL;
}

static void
run_refused(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &waiting, NGX_MCP_EV_ANSWER, 0, NGX_MCP_RESPONSES,
                      big);
}

static void
run_claim(ngx_mcp_zone_t *zone)
{
    (void) test_claim(zone, "x", NULL);
}

static void
run_heartbeat(ngx_mcp_zone_t *zone)
{
    held_event(zone, NGX_MCP_EV_HEARTBEAT, 0, NULL);
}

static void
run_progress(ngx_mcp_zone_t *zone)
{
    held_event(zone, NGX_MCP_EV_PROGRESS, NGX_MCP_MESSAGE, "three quarters");
}

static void
run_ask(ngx_mcp_zone_t *zone)
{
    held_event(zone, NGX_MCP_EV_ASK, NGX_MCP_REQUESTS, "{\"q\": {}}");
}

static void
run_answer(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &asking.id, NGX_MCP_EV_ANSWER_ALL, 0,
                      NGX_MCP_REQUESTS, "");
}

static void
run_complete(ngx_mcp_zone_t *zone)
{
    held_event(zone, NGX_MCP_EV_COMPLETE, NGX_MCP_RESULT, big);
}

static void
run_fail(ngx_mcp_zone_t *zone)
{
    held_event(zone, NGX_MCP_EV_FAIL, NGX_MCP_MESSAGE, "no");
}

static void
run_retry(ngx_mcp_zone_t *zone)
{
    held_event(zone, NGX_MCP_EV_RETRY, 0, NULL);
}

static void
run_release(ngx_mcp_zone_t *zone)
{
    held_event(zone, NGX_MCP_EV_RELEASE, 0, NULL);
}

static void
run_cancel(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &waiting, NGX_MCP_EV_CANCEL, 0,
                      NGX_MCP_MESSAGE, "changed my mind");
}

static void
run_delete(ngx_mcp_zone_t *zone)
{
    (void) test_delete(zone, &asking.id);
}

static void
prepare_last_of_name(ngx_mcp_zone_t *zone)
{
    (void) test_create(zone, NAME_60 NAME_60, NAME_60 NAME_60, big, &waiting);
}

static void
run_delete_last(ngx_mcp_zone_t *zone)
{
    (void) test_delete(zone, &waiting);
}

static void
create_for(ngx_mcp_zone_t *zone, const char *session)
{
    test_session = session;
    (void) test_create(zone, "alice", "walk", "{}", &waiting);
    test_session = NULL;
}

static void
run_create_session(ngx_mcp_zone_t *zone)
{
    create_for(zone, "another session");
}

static void
prepare_last_of_session(ngx_mcp_zone_t *zone)
{
    ngx_mcp_op_session_t  op;

    create_for(zone, "another session");
    (void) test_event(zone, &waiting, NGX_MCP_EV_ANNOUNCE, 0, 0, NULL);
    ngx_memzero(&op, sizeof(op));
    (void) test_read_session(zone, &op, "another session", OTHER);
    await_all(zone->table);
}

static void
run_create_for_session(ngx_mcp_zone_t *zone)
{
    create_for(zone, SESSION);
}

static void
run_announce(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &secret.id, NGX_MCP_EV_ANNOUNCE, 0, 0, NULL);
}

static void
run_session_progress(ngx_mcp_zone_t *zone)
{
    (void) test_move(zone, &walking.id, walking.task.lease_token, 7, "run");
}

static void
run_session_complete(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &moving.id, NGX_MCP_EV_COMPLETE,
                      moving.task.lease_token, NGX_MCP_RESULT, big);
}

/* two more are behind */

static void
prepare_behind(ngx_mcp_zone_t *zone)
{
    run_announce(zone);
    run_session_progress(zone);
    await_all(zone->table);
}

static void
run_session_read(ngx_mcp_zone_t *zone)
{
    ngx_mcp_op_session_t  op;

    ngx_memzero(&op, sizeof(op));
    op.watch = 1;
    (void) test_read_session(zone, &op, SESSION, STREAM);
}

/* another stream takes over, and its client says that it knows nothing */

static void
prepare_rewind(ngx_mcp_zone_t *zone)
{
    rewound = 1;
}

static void
run_session_rewind(ngx_mcp_zone_t *zone)
{
    ngx_mcp_op_session_t  op;

    ngx_memzero(&op, sizeof(op));
    op.after = 1;
    op.want = NGX_MCP_WANT_ALL;
    (void) test_read_session(zone, &op, SESSION, OTHER);
}

/* one stream has asked the questions of a task, which nobody answered */

static void
prepare_asker(ngx_mcp_zone_t *zone)
{
    ngx_mcp_find_locked(zone->table, &puzzled.id, NULL, 0)->asker = OTHER;
}

static void
run_leave(ngx_mcp_zone_t *zone)
{
    ngx_mcp_op_wait_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LEAVE;
    op.id = &puzzled.id;
    op.asker = OTHER;

    (void) test_submit(zone, &op.op);
}

/* the stream that speaks for the session */

static void
run_leave_session(ngx_mcp_zone_t *zone)
{
    ngx_mcp_op_wait_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LEAVE;
    op.asker = STREAM;
    op.session = str(SESSION);

    (void) test_submit(zone, &op.op);
}

static void
run_session_delete(ngx_mcp_zone_t *zone)
{
    (void) test_delete(zone, &moving.id);
}

static void
run_call_create(ngx_mcp_zone_t *zone)
{
    hold(zone, NEIGHBOUR, 0, "another tool", NULL);
}

static void
run_call(ngx_mcp_zone_t *zone)
{
    (void) test_run(zone, &patient.id, PROCESS, 0, 0, NULL);
}

/* others wait for longer */

static void
run_call_refused(ngx_mcp_zone_t *zone)
{
    (void) test_run(zone, &last.id, NEIGHBOUR, 0, 0, NULL);
}

/* it has waited for too long, which nobody has swept yet */

static void
prepare_call_late(ngx_mcp_zone_t *zone)
{
    ngx_current_msec += 600000;
}

static void
run_call_ask(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &brisk.id, NGX_MCP_EV_ASK, brisk.task.lease_token,
                      NGX_MCP_REQUESTS, big);
}

static void
run_call_complete(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &brisk.id, NGX_MCP_EV_COMPLETE,
                      brisk.task.lease_token, NGX_MCP_RESULT, big);
}

static void
run_call_retry(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &fragile.id, NGX_MCP_EV_RETRY,
                      fragile.task.lease_token, 0, NULL);
}

static void
run_call_cancel(ngx_mcp_zone_t *zone)
{
    (void) test_event(zone, &patient.id, NGX_MCP_EV_CANCEL, 0,
                      NGX_MCP_MESSAGE, "no more");
}

static void
run_call_delete(ngx_mcp_zone_t *zone)
{
    (void) test_delete(zone, &curious.id);
}

/* another has its place, and what it had is to be taken over, or fails */

static void
prepare_orphans(ngx_mcp_zone_t *zone)
{
    zone->table->sh->incarnations[2]++;
    zone->table->sh->epoch++;
}

static void
run_orphans(ngx_mcp_zone_t *zone)
{
    (void) test_orphans(zone, NEIGHBOUR);
}

static void
run_orphans_fail(ngx_mcp_zone_t *zone)
{
    (void) test_orphans(zone, 0);
}

/* leases lost, backoffs over, timeouts, tasks moving down the wheel */

static void
prepare_due(ngx_mcp_zone_t *zone)
{
    ngx_current_msec += 600000;
}

static void
prepare_expired(ngx_mcp_zone_t *zone)
{
    ngx_current_msec += 2 * 86400000;
}

static void
run_sweep(ngx_mcp_zone_t *zone)
{
    (void) test_sweep(zone, 1000);
}

/* recovery may be cut short as well */

/* the commit of the last batch is over */

static void
run_saved(ngx_mcp_zone_t *zone)
{
    ngx_mcp_lock(zone->table);
    ngx_mcp_saved_locked(zone->table, &batch);
    ngx_mcp_unlock(zone->table);
}

static void
prepare_dirty(ngx_mcp_zone_t *zone)
{
    ngx_memzero(zone->table->hash, 8);
    zone->table->sh->dirty = 1;
}

static void
prepare_journal(ngx_mcp_zone_t *zone)
{
    ngx_mcp_header_t  *sh;
    ngx_mcp_slot_t    *s;

    sh = zone->table->sh;
    s = ngx_mcp_find_locked(zone->table, &waiting, NULL, 0);

    sh->change = s->body;
    sh->change.task.version++;
    sh->journal = ngx_mcp_index(zone->table, s);
    sh->dirty = 1;
}

static void
run_recover(ngx_mcp_zone_t *zone)
{
    (void) test_get(zone, &waiting, NULL);
}


static void
run_pause(ngx_mcp_zone_t *zone)
{
    (void) test_control(zone, NGX_MCP_OP_PAUSE, "dig", 1);
}

static void
run_resume(ngx_mcp_zone_t *zone)
{
    (void) test_control(zone, NGX_MCP_OP_PAUSE, "dig", 0);
}


/* a task as another machine has left it; its bytes stay until the next one */

static void
changed(ngx_mcp_zone_t *zone, ngx_mcp_view_t *task, ngx_uint_t type,
    ngx_uint_t kind, const char *bytes, ngx_mcp_record_t *rec)
{
    ngx_uint_t                i;
    ngx_mcp_slot_t           *s;
    ngx_mcp_event_t           ev;
    ngx_mcp_change_t          change;
    ngx_mcp_record_change_t   rc;
    static u_char             buf[16384];

    s = ngx_mcp_find_locked(zone->table, &task->id, NULL, 0);
    (void) ngx_mcp_slot_read_locked(zone->table, s, NGX_MCP_RECORD_ALL, rec,
                                    buf);

    ngx_memzero(&ev, sizeof(ev));
    ev.type = type;
    ev.now = ngx_current_msec;
    ev.wall = rec->task.updated + 5;
    ev.lease_token = rec->task.lease_token;
    ev.progress = 50;
    ev.total = -1;

    ngx_memzero(&change, sizeof(change));
    change.payload[kind] = str(bytes);

    ngx_memzero(&rc, sizeof(rc));

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        rc.lengths[i] = (uint32_t) rec->payload[i].len;
    }

    (void) ngx_mcp_record_change(rec, &ev, &change, &rc);
}

static void
mirror_put(ngx_mcp_zone_t *zone, ngx_mcp_record_t *rec, ngx_uint_t flags)
{
    ngx_mcp_lock(zone->table);
    (void) ngx_mcp_mirror_put_locked(zone->table, rec, flags);
    ngx_mcp_unlock(zone->table);
}

static void
mirror_new(ngx_mcp_zone_t *zone, const char *owner, const char *session)
{
    ngx_mcp_record_t  rec;

    changed(zone, &asking, NGX_MCP_EV_ANSWER, NGX_MCP_RESPONSES, "{}", &rec);

    rec.id.data[0] ^= 0x55;
    rec.owner = str(owner);
    rec.session = str(session);
    rec.token = str("\"token\"");

    mirror_put(zone, &rec, 0);
}

static void
run_mirror_insert(ngx_mcp_zone_t *zone)
{
    mirror_new(zone, NAME_60 NAME_60, "another session");
}

static void
run_mirror_complete(ngx_mcp_zone_t *zone)
{
    ngx_mcp_record_t  rec;

    changed(zone, &held, NGX_MCP_EV_COMPLETE, NGX_MCP_RESULT, big, &rec);
    rec.payload[NGX_MCP_MESSAGE] = str("done");
    mirror_put(zone, &rec, NGX_MCP_MIRROR_LOCAL);
}

static void
run_mirror_ask(ngx_mcp_zone_t *zone)
{
    ngx_mcp_record_t  rec;

    changed(zone, &held, NGX_MCP_EV_ASK, NGX_MCP_REQUESTS, big, &rec);
    mirror_put(zone, &rec, NGX_MCP_MIRROR_LOCAL);
}

static void
run_mirror_release(ngx_mcp_zone_t *zone)
{
    ngx_mcp_record_t  rec;

    changed(zone, &held, NGX_MCP_EV_RELEASE, NGX_MCP_MESSAGE, "", &rec);
    mirror_put(zone, &rec, NGX_MCP_MIRROR_LOCAL);
}

static void
run_mirror_session(ngx_mcp_zone_t *zone)
{
    ngx_mcp_record_t  rec;

    changed(zone, &secret, NGX_MCP_EV_ANNOUNCE, NGX_MCP_MESSAGE, "well", &rec);
    mirror_put(zone, &rec, NGX_MCP_MIRROR_LOCAL);
}

/* a call that waits, and one that runs, are another machine's now */

static void
run_mirror_call(ngx_mcp_zone_t *zone)
{
    ngx_mcp_record_t  rec;

    changed(zone, &patient, NGX_MCP_EV_ANNOTATE, NGX_MCP_METADATA, "{}", &rec);
    mirror_put(zone, &rec, 0);
}

static void
run_mirror_running(ngx_mcp_zone_t *zone)
{
    ngx_mcp_record_t  rec;

    changed(zone, &brisk, NGX_MCP_EV_HEARTBEAT, NGX_MCP_METADATA, "{}", &rec);
    mirror_put(zone, &rec, 0);
}

/* nobody waits for anything, and there is no free slot */

static void
prepare_mirror_full(ngx_mcp_zone_t *zone)
{
    uint32_t  n;

    while (!crash_stored
           && test_create(zone, "alice", "dig", "{}", NULL) == NGX_MCP_OK)
    {
        /* void */
    }

    for (n = 1; n < zone->table->sh->slot.fresh; n++) {
        ngx_mcp_slot(zone->table, n)->waiters = 0;
    }
}

static void
run_mirror_evict(ngx_mcp_zone_t *zone)
{
    mirror_new(zone, "alice", SESSION);
}

static void
run_mirror_remove(ngx_mcp_zone_t *zone)
{
    ngx_mcp_lock(zone->table);
    ngx_mcp_mirror_remove_locked(zone->table, &moving.id);
    ngx_mcp_unlock(zone->table);
}

static void
prepare_mirror_pins(ngx_mcp_zone_t *zone)
{
    uint32_t  n;

    for (n = 1; n < zone->table->sh->slot.fresh; n++) {
        if (n % 8) {
            (void) ngx_mcp_mirror_pin_locked(zone->table,
                                             ngx_mcp_slot(zone->table, n));
        }
    }
}

static void
run_mirror_clear(ngx_mcp_zone_t *zone)
{
    uint32_t  next;

    next = 0;
    ngx_mcp_lock(zone->table);
    (void) ngx_mcp_mirror_clear_locked(zone->table, &next);
    ngx_mcp_unlock(zone->table);
}


crash_case_t  crash_cases[] = {
    { "create", NULL, run_create },
    { "create with new names", NULL, run_create_names },
    { "create with a token", NULL, run_create_token },
    { "delete with a token", prepare_token, run_delete_last },
    { "refused", NULL, run_refused },
    { "claim", NULL, run_claim },
    { "heartbeat", NULL, run_heartbeat },
    { "progress", NULL, run_progress },
    { "ask", NULL, run_ask },
    { "answer", NULL, run_answer },
    { "complete", NULL, run_complete },
    { "fail", NULL, run_fail },
    { "retry", NULL, run_retry },
    { "release", NULL, run_release },
    { "cancel", NULL, run_cancel },
    { "delete", NULL, run_delete },
    { "delete the last of a name", prepare_last_of_name, run_delete_last },
    { "create with a new session", NULL, run_create_session },
    { "create with a session", NULL, run_create_for_session },
    { "announce", NULL, run_announce },
    { "progress of a session's task", NULL, run_session_progress },
    { "completion of a session's task", NULL, run_session_complete },
    { "delete a session's task", NULL, run_session_delete },
    { "delete the last of a session", prepare_last_of_session,
      run_delete_last },
    { "a session is told", prepare_behind, run_session_read },
    { "a session is told again", prepare_rewind, run_session_rewind },
    { "a stream with a question leaves", prepare_asker, run_leave },
    { "a session's stream leaves", NULL, run_leave_session },
    { "create a call", NULL, run_call_create },
    { "run a call", NULL, run_call },
    { "run a call before its turn", NULL, run_call_refused },
    { "run a call too late", prepare_call_late, run_call },
    { "a call asks", NULL, run_call_ask },
    { "complete a call", NULL, run_call_complete },
    { "retry a call", NULL, run_call_retry },
    { "cancel a call that waits", NULL, run_call_cancel },
    { "delete a call", NULL, run_call_delete },
    { "take over calls", prepare_orphans, run_orphans },
    { "lose calls", prepare_orphans, run_orphans_fail },
    { "pause a tool", NULL, run_pause },
    { "a tool goes on", run_pause, run_resume },
    { "sweep", prepare_due, run_sweep },
    { "expiry", prepare_expired, run_sweep },
    { "insert a copy", NULL, run_mirror_insert },
    { "a copy completes", NULL, run_mirror_complete },
    { "a copy asks", NULL, run_mirror_ask },
    { "a copy is queued", NULL, run_mirror_release },
    { "a copy is announced", NULL, run_mirror_session },
    { "the copy of a waiting call moves", NULL, run_mirror_call },
    { "the copy of a running call moves", NULL, run_mirror_running },
    { "evict a copy", prepare_mirror_full, run_mirror_evict },
    { "remove a copy", NULL, run_mirror_remove },
    { "clear copies", prepare_mirror_pins, run_mirror_clear },
    { "a commit", NULL, run_saved },
    { "recovery", prepare_dirty, run_recover },
    { "recovery of a change", prepare_journal, run_recover },
    { NULL, NULL, NULL }
};


static int
older(const void *a, const void *b)
{
    const crash_record_t  *x = a, *y = b;

    return (x->seq > y->seq) - (x->seq < y->seq);
}


static void
dump_sessions(ngx_mcp_table_t *t, crash_dump_t *dump)
{
    uint32_t          i, n;
    crash_session_t  *session;
    ngx_mcp_name_t   *name;

    dump->nsessions = 0;

    for (i = 0; i <= t->sh->name_mask; i++) {
        for (n = t->names[i]; n; n = name->next) {
            name = ngx_mcp_name(t, n);

            if (name->kind == NGX_MCP_SESSION) {
                session = &dump->sessions[dump->nsessions++];
                session->len = name->len;
                session->delivered = name->u.delivery.delivered;
                (void) ngx_mcp_name_read_locked(t, n, session->name);
            }
        }
    }
}


void
crash_dump(ngx_mcp_zone_t *zone, crash_dump_t *dump)
{
    uint32_t          n;
    ngx_uint_t        i;
    crash_record_t   *r;
    ngx_mcp_slot_t   *s;
    ngx_mcp_view_t    v;
    ngx_mcp_table_t  *t;

    t = zone->table;
    dump->n = 0;

    for (n = 1; n < t->sh->slot.fresh; n++) {
        s = ngx_mcp_slot(t, n);

        if (s->body.task.state == NGX_MCP_FREE) {
            continue;
        }

        r = &dump->records[dump->n++];
        r->seq = s->seq;

        /* found by its id, as any client finds it */

        if (test_get(zone, &s->id, &v) != NGX_MCP_OK) {
            r->len = 0;
            continue;
        }

        /* claims draw a token each time */

        if (v.task.lease_token) {
            v.task.lease_token = 1;
        }

        r->len = 0;

#define add(p, l)                                                             \
        ngx_memcpy(r->data + r->len, p, l);                                   \
        r->len += l

        add(&v.task, sizeof(v.task));
        add(v.owner.data, v.owner.len);
        add(v.tool.data, v.tool.len);
        add(v.method.data, v.method.len);

        for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
            add(&v.payload[i].len, sizeof(size_t));
            add(v.payload[i].data, v.payload[i].len);
        }

        add(&s->body.queue_seq, sizeof(uint64_t));
        add(&s->body.changed, sizeof(uint64_t));
        add(&s->body.turned, sizeof(uint64_t));
        add(&s->body.moved, sizeof(uint64_t));
        add(&s->body.peak, sizeof(double));

        if (s->session) {
            r->len = ngx_mcp_name_read_locked(t, s->session,
                                              r->data + r->len)
                     - r->data;
        }
    }

    dump_sessions(t, dump);

    qsort(dump->records, dump->n, sizeof(crash_record_t), older);
    ngx_reset_pool(test_pool);
}


static crash_record_t *
record(crash_dump_t *dump, uint64_t seq)
{
    ngx_uint_t  i;

    for (i = 0; i < dump->n; i++) {
        if (dump->records[i].seq == seq) {
            return &dump->records[i];
        }
    }

    return NULL;
}


static int
same(crash_record_t *a, crash_record_t *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }

    return a->len == b->len && ngx_memcmp(a->data, b->data, a->len) == 0;
}


static crash_session_t *
session_in(crash_dump_t *dump, crash_session_t *like)
{
    ngx_uint_t  i;

    for (i = 0; i < dump->nsessions; i++) {
        if (dump->sessions[i].len == like->len
            && ngx_memcmp(dump->sessions[i].name, like->name, like->len) == 0)
        {
            return &dump->sessions[i];
        }
    }

    return NULL;
}


/* a session is not told everything once more, nor is news withheld from it */

static const char *
judge_sessions(crash_dump_t *before, crash_dump_t *after, crash_dump_t *now)
{
    uint64_t          from, to;
    ngx_uint_t        i;
    crash_session_t  *b, *a, *s;

    for (i = 0; i < before->nsessions; i++) {
        s = &before->sessions[i];

        if (session_in(after, s) && session_in(now, s) == NULL) {
            return "a session is lost";
        }
    }

    for (i = 0; i < now->nsessions; i++) {
        s = &now->sessions[i];
        b = session_in(before, s);
        a = session_in(after, s);

        if (b == NULL && a == NULL) {
            return "a session comes from nowhere";
        }

        b = b ? b : a;
        a = a ? a : b;

        from = ngx_min(b->delivered, rewound);
        to = ngx_max(a->delivered, b->delivered);

        if (s->delivered < from || s->delivered > to) {
            return "a session was told something else";
        }
    }

    return NULL;
}


/* every task is as before or as after: none is lost, none in between */

const char *
crash_judge(crash_dump_t *before, crash_dump_t *after, crash_dump_t *now)
{
    ngx_uint_t       i;
    uint64_t         seq;
    crash_record_t  *r;

    for (i = 0; i < before->n + after->n + now->n; i++) {

        seq = (i < before->n)
              ? before->records[i].seq
              : (i < before->n + after->n)
                ? after->records[i - before->n].seq
                : now->records[i - before->n - after->n].seq;

        r = record(now, seq);

        if (!same(r, record(before, seq)) && !same(r, record(after, seq))) {
            return r ? "a task is neither as before nor as after"
                     : "a task is lost";
        }
    }

    return judge_sessions(before, after, now);
}


/* from here on somebody waits: what will be recovered is to be told */

void
crash_mark(ngx_mcp_zone_t *zone)
{
    cursor = zone->table->sh->logged;
    recoveries = zone->table->sh->count.recoveries;
    recovered = zone->table->recovered;
    woken = 0;
}


/* whoever died had something to tell, and nobody knows what */

const char *
crash_signalled(ngx_mcp_zone_t *zone)
{
    uint64_t          from;
    ngx_mcp_signal_t  signals[8];

    from = cursor;

    if (zone->table->sh->count.recoveries != recoveries
        && ngx_mcp_signal_read(zone->table, &from, signals, 8) <= 8)
    {
        return "processes do not learn of a recovery";
    }

    if (zone->table->recovered != recovered && woken != (uint64_t) -1) {
        return "processes are not woken after a recovery";
    }

    return NULL;
}


static crash_row_t *
row_of(uint64_t seq)
{
    ngx_uint_t  i;

    for (i = 0; i < nrows; i++) {
        if (rows[i].seq == seq) {
            return &rows[i];
        }
    }

    return NULL;
}


/* what the table takes for saved is so, and no row is forgotten */

const char *
crash_saved(ngx_mcp_zone_t *zone)
{
    u_char            data[2048];
    uint32_t          n;
    ngx_uint_t        i, live;
    crash_row_t      *row;
    ngx_mcp_slot_t   *s;
    ngx_mcp_table_t  *t;

    t = zone->table;
    live = 0;

    for (n = 1; crash_stored && n < t->sh->slot.fresh; n++) {
        s = ngx_mcp_slot(t, n);

        if (s->body.task.state == NGX_MCP_FREE) {
            continue;
        }

        row = row_of(s->seq);
        live += (row != NULL);

        if (s->body.changed <= ngx_mcp_save_of(t)->saved
            && (row == NULL || row->changed != s->body.changed))
        {
            return "a task counts as saved, and is not";
        }

        for (i = 0; i < NGX_MCP_PAYLOADS; i++) {

            if (s->written & (1u << i)) {
                continue;
            }

            (void) ngx_mcp_chain_read_locked(t, &s->body.payload[i], data);
            if (row == NULL
                || row->len[i] + (i ? 0 : s->method_len
                                          + NGX_MCP_HISTORY)
                   != s->body.payload[i].len
                || ngx_memcmp(row->data[i], data + (i ? 0 : s->method_len),
                              row->len[i])
                   != 0)
            {
                return "bytes count as saved, and are not";
            }
        }
    }

    for (n = ngx_mcp_save_of(t)->deletions.head; n; n = s->hash_next) {
        s = ngx_mcp_slot(t, n);
        live += (row_of(s->seq) != NULL);
    }

    return (crash_stored && live != nrows) ? "a row is forgotten" : NULL;
}


/* a call runs, unless another has to come first, and ends */

static ngx_uint_t
call_usable(ngx_mcp_zone_t *zone)
{
    ngx_uint_t      rc;
    ngx_mcp_id_t    id;
    ngx_mcp_view_t  v;

    hold(zone, NEIGHBOUR, 0, "after", &id);
    rc = test_run(zone, &id, NEIGHBOUR, 0, 0, &v);

    if (rc != NGX_MCP_OK
        && rc != NGX_MCP_LIMIT_RUNNING)
    {
        return 0;
    }

    rc = test_event(zone, &id, rc ? NGX_MCP_EV_CANCEL
                                  : NGX_MCP_EV_COMPLETE,
                    v.task.lease_token, NGX_MCP_MESSAGE, "over");

    return rc == NGX_MCP_OK
           && test_delete(zone, &id) == NGX_MCP_OK;
}


/* a zone may be full; then a task leaves */

static void
make_room(ngx_mcp_zone_t *zone)
{
    uint32_t          n;
    ngx_mcp_table_t  *t;

    t = zone->table;

    for (n = 1; ngx_mcp_available(&t->sh->slot) == 0; n++) {
        if (ngx_mcp_slot(t, n)->body.task.state != NGX_MCP_FREE) {
            (void) test_delete(zone, &ngx_mcp_slot(t, n)->id);
        }
    }
}


/* a whole life still works */

const char *
crash_usable(ngx_mcp_zone_t *zone)
{
    ngx_mcp_id_t          id;
    ngx_mcp_view_t        v;
    ngx_mcp_op_session_t  op;

    make_room(zone);

    ngx_memzero(&op, sizeof(op));
    test_session = "a new session";

    if (test_create(zone, "carol", "after", big, &id) != NGX_MCP_OK
        || !test_claim(zone, "after", &v)
        || ngx_memcmp(&v.id, &id, sizeof(id)) != 0
        || test_event(zone, &id, NGX_MCP_EV_COMPLETE, v.task.lease_token,
                      NGX_MCP_RESULT, big) != NGX_MCP_OK
        || test_read_session(zone, &op, "a new session", OTHER) != 0
        || test_event(zone, &id, NGX_MCP_EV_ANNOUNCE, 0, 0, NULL)
           != NGX_MCP_OK
        || test_read_session(zone, &op, "a new session", OTHER) != 1
        || test_read_session(zone, &op, "a new session", OTHER) != 0
        || test_delete(zone, &id) != NGX_MCP_OK
        || !call_usable(zone))
    {
        test_session = NULL;
        return "the table cannot be used";
    }

    test_session = NULL;

    return test_check(zone);
}
