
/*
 * The way of tasks into a database and back into a zone: nothing is lost on
 * it, nothing is written that need not be, and what cannot be used is refused.
 */


#include <stdio.h>
#include <sqlite3.h>

#include "libtest.h"
#include "ngx_mcp_db.h"
#include "ngx_mcp_recover.h"


#define WALL  1700000000000ULL


typedef struct {
    ngx_mcp_zone_t  *zone;
    ngx_mcp_load_t   load;
} load_t;


static char                        dir[64];
static char                        path[128];
static ngx_mcp_db_t     db;
static ngx_mcp_batch_t  batch;
static char                        big[3 * NGX_MCP_SAVE_BYTES];


static void
init_db(void)
{
    ngx_memzero(&db, sizeof(db));
    db.path = path;
    db.user = (ngx_uid_t) -1;
    db.group = (ngx_gid_t) -1;
}


static void
remove_db(void)
{
    char         name[160];
    ngx_uint_t   i;
    const char  *suffix[] = { "", "-wal", "-shm" };

    ngx_mcp_db_close(&db);

    for (i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffix[i]);
        (void) unlink(name);
    }
}


static ngx_mcp_zone_t *
stored_zone(size_t size)
{
    ngx_mcp_zone_t  *zone;

    zone = test_zone(size, 0);
    zone->table->sh->durable = 1;
    zone->table->sh->saved = 0;
    zone->table->sh->safe = 0;
    zone->table->sh->instance = 7;

    return zone;
}


static void
collect(ngx_mcp_zone_t *zone)
{
    (void) ngx_mcp_batch_init(&batch, ngx_cycle->log);

    while (ngx_mcp_save_locked(zone->table, &batch) == NGX_AGAIN) {
        (void) ngx_mcp_batch_grow(&batch, ngx_cycle->log);
    }

    batch.now = ngx_current_msec;
    batch.wall = WALL;
}


/* everything that there is to save, in as many commits as it takes */

static ngx_uint_t
save(ngx_mcp_zone_t *zone)
{
    uint64_t    saved;
    ngx_uint_t  n;

    for (n = 0; ngx_mcp_has_unsaved(zone->table); n++) {
        saved = zone->table->sh->saved;
        collect(zone);

        if (ngx_mcp_db_write(&db, &batch) != NGX_OK) {
            diag("write: %s", db.error);
            return 0;
        }

        ngx_mcp_saved_locked(zone->table, &batch);

        if (zone->table->sh->saved <= saved) {
            diag("saved does not grow");
            return 0;
        }
    }

    return n;
}


static ngx_int_t
load_row(void *data, ngx_mcp_record_t *rec)
{
    load_t  *l = data;

    ngx_mcp_load_locked(l->zone->table, &l->load, rec);

    return NGX_OK;
}


static ngx_int_t
load_zone(load_t *l, size_t size)
{
    ngx_int_t  rc;

    l->zone = test_zone(size, 0);
    l->load.now = ngx_current_msec;

    ngx_mcp_load_begin_locked(l->zone->table, NULL, &l->load);
    rc = ngx_mcp_db_read(&db, load_row, l);
    ngx_mcp_load_end_locked(l->zone->table, &l->load);

    return rc;
}


static sqlite3_int64
number(const char *sql)
{
    sqlite3        *other;
    sqlite3_stmt   *stmt;
    sqlite3_int64   n;

    n = -1;

    if (sqlite3_open(path, &other) == SQLITE_OK
        && sqlite3_prepare_v2(other, sql, -1, &stmt, NULL) == SQLITE_OK)
    {
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            n = sqlite3_column_int64(stmt, 0);
        }

        (void) sqlite3_finalize(stmt);
    }

    (void) sqlite3_close(other);

    return n;
}


static void
execute(const char *sql)
{
    char     *err;
    sqlite3  *other;

    err = NULL;

    if (sqlite3_open(path, &other) != SQLITE_OK
        || sqlite3_exec(other, sql, NULL, NULL, &err) != SQLITE_OK)
    {
        diag("%s: %s", sql, err ? err : "not opened");
    }

    (void) sqlite3_close(other);
}


static void
test_open(void)
{
    struct stat  sb;

    init_db();

    ok(ngx_mcp_db_check(&db) == NGX_DECLINED, "there is none");
    ok(stat(path, &sb) == -1, "and looking made none");

    ok(ngx_mcp_db_open(&db) == NGX_OK, "one is made: %s", db.error);
    ok(db.created, "which is said");
    ok(stat(path, &sb) == 0 && (sb.st_mode & 0777) == 0600,
       "for nobody else's eyes");
    is(number("PRAGMA application_id"), NGX_MCP_DB_APPLICATION,
       "it says what it is");
    is(number("PRAGMA user_version"), NGX_MCP_DB_VERSION, "and its version");

    ngx_mcp_db_close(&db);
    ok(ngx_mcp_db_check(&db) == NGX_OK, "it can be used");
    ok(ngx_mcp_db_open(&db) == NGX_OK && !db.created,
       "it is opened again");

    remove_db();
}


/* as if whoever has made it had died before it could write a task */

static void
test_made(void)
{
    uint64_t         value[2];
    ngx_mcp_zone_t  *zone;

    init_db();
    zone = stored_zone(256 * 1024);
    db.instance = zone->table->sh->instance;
    db.secret[0] = 7;
    db.secret[1] = 0x8000000000000009ULL;

    ok(ngx_mcp_db_open(&db) == NGX_OK, "one is made");
    ngx_mcp_db_close(&db);

    ok(ngx_mcp_db_open(&db) == NGX_OK && !db.created,
       "another process opens it");
    ngx_memzero(value, sizeof(value));
    ok(ngx_mcp_db_get(&db, "instance", value, 1) == NGX_OK
       && value[0] == zone->table->sh->instance, "it says whose it is");
    ok(ngx_mcp_db_get(&db, "secret", value, 2) == NGX_OK
       && value[0] == 7 && value[1] == 0x8000000000000009ULL,
       "and has the secret");

    (void) test_create(zone, "ann", "dig", "{}", NULL);
    is(save(zone), 1, "a task is saved");

    ok(ngx_mcp_db_empty(&db, zone->table->sh->instance) == NGX_OK,
       "it is emptied: %s", db.error);
    is(number("SELECT count(*) FROM task"), 0, "it has no tasks");
    is(number("SELECT count(*) FROM payload"), 0, "nor their bytes");
    ok(ngx_mcp_db_get(&db, "seq", value, 1) == NGX_OK
       && value[0] == 0, "nothing is saved");
    ok(ngx_mcp_db_empty(&db, 1) == NGX_DECLINED, "but not by another");

    /* one that is nobody's */

    execute("DELETE FROM meta");
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    is(save(zone), 1, "an empty one may be anybody's");

    remove_db();
}


/* tasks in every state, with all that they may have */

static void
make_tasks(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id)
{
    ngx_uint_t      i;
    ngx_mcp_view_t  v;

    test_token = "\"a token\"";
    test_session = "a session";
    (void) test_create(zone, "a\"l\xffice", "dig", "{\"a\": 1.0}", &id[0]);
    test_token = NULL;
    test_session = NULL;

    for (i = 1; i < 8; i++) {
        (void) test_create(zone, i % 2 ? "" : "bob", "dig",
                           "{\"n\": 12345678901234567890}", &id[i]);
    }

    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease, NGX_MCP_RESULT, "{\"r\": 1}");
    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_FAIL, v.task.lease,
                      NGX_MCP_MESSAGE, "no");
    (void) test_claim(zone, "dig", &v);
    ngx_current_msec += 1000;
    (void) test_event(zone, &v.id, NGX_MCP_EV_ASK, v.task.lease,
                      NGX_MCP_REQUESTS, "{\"q\": {}}");
    (void) test_claim(zone, "dig", &v);
    (void) test_move(zone, &v.id, v.task.lease, 0.25, "a quarter");
    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_RETRY, v.task.lease, 0, NULL);
    (void) test_event(zone, &id[6], NGX_MCP_EV_CANCEL, 0,
                      NGX_MCP_MESSAGE, "why not");
}


/* what must not be the same on the other side is made so */

static void
normal(ngx_mcp_view_t *v)
{
    v->task.holder = 0;
    v->task.worker = 0;
    v->task.flags |= NGX_MCP_ANNOUNCED;

    if (v->task.state == NGX_MCP_RUNNING) {
        v->task.step_end = 0;
    }
}


static int
same_str(ngx_str_t *a, ngx_str_t *b)
{
    return a->len == b->len
           && (a->len == 0 || ngx_memcmp(a->data, b->data, a->len) == 0);
}


static int
same_task(ngx_mcp_view_t *a, ngx_mcp_view_t *b)
{
    ngx_uint_t  i;

    normal(a);
    normal(b);

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (!same_str(&a->payload[i], &b->payload[i])) {
            return 0;
        }
    }

    if (a->nhistory != b->nhistory || a->dropped != b->dropped) {
        return 0;
    }

    for (i = 0; i < a->nhistory; i++) {
        if (a->history[i].at != b->history[i].at
            || a->history[i].event != b->history[i].event
            || a->history[i].state != b->history[i].state)
        {
            return 0;
        }
    }

    return ngx_memcmp(&a->task, &b->task, sizeof(a->task)) == 0
           && a->seq == b->seq && a->changed == b->changed
           && a->turned == b->turned && a->moved == b->moved
           && same_str(&a->owner, &b->owner) && same_str(&a->tool, &b->tool)
           && same_str(&a->token, &b->token)
           && same_str(&a->method, &b->method);
}


static void
test_there_and_back(void)
{
    load_t                l;
    uint64_t              time;
    ngx_uint_t            i, same;
    ngx_mcp_id_t          id[8];
    ngx_mcp_view_t        a, b;
    ngx_mcp_zone_t       *zone;
    ngx_mcp_op_session_t  op;

    init_db();
    (void) ngx_mcp_db_open(&db);

    ngx_current_msec = 1000000;
    zone = stored_zone(256 * 1024);
    make_tasks(zone, id);

    /* it is new, so it gets the instance of whoever comes first */

    is(save(zone), 1, "tasks in every state are saved");
    ok(test_check(zone) == NULL, "the table fits together");
    is(zone->table->sh->unsaved, 0, "and has nothing left to save");

    ngx_memzero(&l, sizeof(l));
    l.load.wall = WALL;
    ok(load_zone(&l, 512 * 1024) == NGX_OK, "they come back: %s", db.error);
    ok(test_check(l.zone) == NULL, "into a table that fits together");
    is(l.load.tasks, 8, "all of them");

    for (same = 0, i = 0; i < 8; i++) {
        (void) test_get(zone, &id[i], &a);
        (void) test_get(l.zone, &id[i], &b);
        same += same_task(&a, &b);
    }

    is(same, 8, "as they were");
    ok(b.nhistory == 0 && a.nhistory == 0, "one that nothing happened to");
    (void) test_get(l.zone, &id[0], &b);
    is(b.nhistory, 2, "and one that was claimed and completed");

    ngx_memzero(&op, sizeof(op));
    is(test_read_session(l.zone, &op, "a session",
                         1), 1, "a session is told of its task");

    (void) test_claim(l.zone, "dig", &a);
    (void) test_claim(zone, "dig", &b);
    ok(ngx_memcmp(&a.id, &b.id, sizeof(a.id)) == 0,
       "the same one is claimed next");
    ok(l.zone->table->sh->seq > zone->table->sh->seq,
       "no change has a number that was given before");
    is(l.zone->table->sh->unsaved, 1, "and only what changed is to be saved");

    /* an hour later, on a machine that was started a minute ago */

    time = ngx_current_msec;
    ngx_current_msec = 60000;
    ngx_memzero(&l, sizeof(l));
    l.load.wall = WALL + 3600000;
    (void) load_zone(&l, 256 * 1024);

    for (same = 0, i = 0; i < 8; i++) {
        ngx_current_msec = time;
        (void) test_get(zone, &id[i], &a);
        ngx_current_msec = 60000;
        same += (test_get(l.zone, &id[i], &b) == NGX_MCP_OK
                 && a.task.expires - time
                    == b.task.expires - 60000 + 3600000);
    }

    is(same, 8, "time has passed for all of them");

    (void) test_get(l.zone, &id[2], &b);
    is(b.task.phase_end, 3599000, "but not while one waits for input");

    (void) test_get(l.zone, &id[3], &b);
    is(b.task.step_end, 60000 + b.task.policy.lease,
       "and a lease begins anew");
    is(test_sweep(l.zone, 100), 4,
       "what ran out is found: two queued, one after a backoff, one running");
    ok(test_check(l.zone) == NULL, "the table fits together");

    remove_db();
}


static void
test_masks(void)
{
    uint64_t          rows;
    ngx_mcp_id_t      id, other;
    ngx_mcp_view_t    v;
    ngx_mcp_zone_t   *zone;

    init_db();
    (void) ngx_mcp_db_open(&db);

    zone = stored_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", &id);
    (void) test_create(zone, "ann", "dig", "{}", &other);

    collect(zone);
    is(batch.n, 2, "two are new");
    is(batch.records[0].mask, NGX_MCP_UNSAVED_ALL, "all of them");
    ok(ngx_mcp_db_write(&db, &batch) == NGX_OK, "written");

    /* one changes before that is known */

    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_PROGRESS,
                      v.task.lease, NGX_MCP_MESSAGE, "half");
    ngx_mcp_saved_locked(zone->table, &batch);

    is(zone->table->sh->unsaved, 1, "one has changed meanwhile");
    ok(test_check(zone) == NULL, "which the table knows");

    collect(zone);
    is(batch.n, 1, "and which is to be saved");
    is(batch.records[0].mask, NGX_MCP_UNSAVED_ALL,
       "with all bytes, to be on the safe side");
    (void) save(zone);

    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease, NGX_MCP_RESULT, "[]");
    collect(zone);
    is(batch.records[0].mask, NGX_MCP_WANT(
                                                 NGX_MCP_RESULT),
       "then only those that changed");
    is(batch.records[0].payload[NGX_MCP_PARAMS].len, 0,
       "the others are not even copied");
    (void) save(zone);
    is(number("SELECT count(*) FROM tasks WHERE status = 'completed' "
              "AND params = '{}' AND message = 'half' AND result = '[]'"), 1,
       "and are in the database all the same");

    (void) test_event(zone, &other, NGX_MCP_EV_CANCEL, 0, NGX_MCP_MESSAGE, "");
    (void) save(zone);
    rows = number("SELECT count(*) FROM payload");
    (void) test_delete(zone, &other);
    ok(test_get(zone, &other, NULL) == NGX_MCP_NOT_FOUND, "one is removed");
    is(zone->table->sh->slot.used, 2, "its slot stays");
    is(save(zone), 1, "until its row is removed, too");
    is(zone->table->sh->slot.used, 1, "and no longer");
    is(number("SELECT count(*) FROM task"), 1, "which it is");
    is(number("SELECT count(*) FROM payload"), rows - 1, "with its bytes");
    ok(test_check(zone) == NULL, "the table fits together");

    ngx_mcp_save_all_locked(zone->table);
    is(zone->table->sh->unsaved, 1, "all can be saved once more");
    ok(test_check(zone) == NULL, "the table fits together");
    is(save(zone), 1, "and is");

    remove_db();
}


static void
test_many(void)
{
    load_t           l;
    ngx_uint_t       i, commits;
    ngx_mcp_zone_t  *zone;

    init_db();
    (void) ngx_mcp_db_open(&db);
    memset(big, 'b', sizeof(big) - 1);

    zone = stored_zone(24 * 1024 * 1024);

    for (i = 0; i < 5000; i++) {
        (void) test_create(zone, i % 2 ? "ann" : "bob", "dig", "{}", NULL);

        if (i == 700) {
            (void) test_create(zone, "ann", "dig", big, NULL);
        }
    }

    commits = save(zone);
    ok(commits >= 5001 / NGX_MCP_SAVE_TASKS && commits < 20,
       "many are saved in %d commits", (int) commits);
    is(number("SELECT count(*) FROM task"), 5001, "all of them");
    is(number("SELECT max(length(data)) FROM payload"), sizeof(big) - 1,
       "also one that is larger than a batch");

    ngx_memzero(&l, sizeof(l));
    l.load.wall = WALL;
    ok(load_zone(&l, 24 * 1024 * 1024) == NGX_OK && !l.load.full,
       "they come back: %s", db.error);
    ok(test_check(l.zone) == NULL, "the table fits together");
    is(l.zone->table->sh->bytes, zone->table->sh->bytes, "with all bytes");

    ngx_memzero(&l, sizeof(l));
    l.load.wall = WALL;
    ok(load_zone(&l, 1024 * 1024) == NGX_OK && l.load.full,
       "they do not fit into a small zone");
    is(l.load.tasks, 5001, "which is known to the last one");
    ok(l.load.blocks >= zone->table->sh->block.used,
       "and how much it would take");
    ok(test_check(l.zone) == NULL, "the table fits together");

    /* all at once, in more than one commit */

    ngx_current_msec += 100ULL * 86400 * 1000;

    while (test_sweep(zone, 256)) { /* void */ }

    is(zone->table->sh->ngone, 5001, "they expire, all at once");
    collect(zone);
    ok(batch.ngone == NGX_MCP_SAVE_GONE && batch.more
       && batch.upto < zone->table->sh->seq,
       "more than go into one commit, which is known");
    (void) save(zone);
    is(number("SELECT count(*) FROM task"), 0, "no row is left");
    is(number("SELECT count(*) FROM payload"), 0, "nor bytes");
    is(zone->table->sh->slot.used, 0, "nor a slot in use");
    ok(test_check(zone) == NULL, "the table fits together");

    remove_db();
}


static void
test_expired(void)
{
    load_t           l;
    uint64_t         n;
    ngx_mcp_zone_t  *zone;

    init_db();
    (void) ngx_mcp_db_open(&db);

    zone = stored_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    (void) save(zone);
    execute("UPDATE task SET expires_at = 1699999999999 WHERE seq = 1");

    ok(ngx_mcp_db_expire(&db, WALL, &n) == NGX_OK,
       "what ran out meanwhile is removed");
    is(n, 1, "one task");
    is(number("SELECT count(*) FROM payload"), 1, "with its bytes");

    ngx_memzero(&l, sizeof(l));
    l.load.wall = WALL;
    (void) load_zone(&l, 256 * 1024);
    is(l.load.tasks, 1, "the other one comes back");

    remove_db();
}


/* a change that was overtaken: by another one of the same task */

static void
test_overtaken(void)
{
    uint64_t         first;
    ngx_uint_t       i;
    ngx_mcp_id_t     id;
    ngx_mcp_view_t   v;
    ngx_mcp_zone_t  *zone;

    init_db();
    zone = stored_zone(4 * 1024 * 1024);

    ngx_current_msec = 100001;
    (void) test_create(zone, "ann", "dig", "{}", &id);
    first = zone->table->sh->seq;
    is(zone->table->sh->since, 100001, "the time of the first change");

    for (i = 0; i < 2 * NGX_MCP_SAVE_TASKS; i++) {
        (void) test_create(zone, "ann", "fill", "{}", NULL);
    }

    ngx_current_msec += 500;
    (void) test_claim(zone, "dig", &v);

    collect(zone);
    ngx_mcp_saved_locked(zone->table, &batch);
    ok(batch.more && zone->table->sh->saved > first, "others are saved first");
    ok(zone->table->sh->safe < first, "and it is not said to be");
    is(zone->table->sh->since, 100001, "its time stays");

    /* one that begins while everything else is under way */

    collect(zone);
    ngx_mcp_saved_locked(zone->table, &batch);
    collect(zone);
    ok(!batch.more, "the rest");
    ngx_current_msec += 200;
    (void) test_move(zone, &v.id, v.task.lease, 0.5, "half");
    ngx_mcp_saved_locked(zone->table, &batch);
    ok(zone->table->sh->safe == batch.upto, "now it is saved");
    is(zone->table->sh->since, 100701, "but not what came after");

    collect(zone);
    ngx_mcp_saved_locked(zone->table, &batch);
    ok(zone->table->sh->safe == zone->table->sh->seq, "in the end all is");
    is(zone->table->sh->since, 0, "and there is no time");

    /* what nothing has overtaken does not wait for others */

    for (i = 0; i < 2 * NGX_MCP_SAVE_TASKS; i++) {
        (void) test_create(zone, "ann", "fill", "{}", NULL);
    }

    collect(zone);
    ngx_mcp_saved_locked(zone->table, &batch);
    ok(batch.more && zone->table->sh->safe == batch.upto,
       "each is safe with its commit");

    remove_db();
}


/* who is not, or not any more, the one whose database it is */

static void
test_fence(void)
{
    uint64_t          other;
    ngx_mcp_zone_t   *zone;

    init_db();
    (void) ngx_mcp_db_open(&db);

    zone = stored_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    collect(zone);
    ok(ngx_mcp_db_write(&db, &batch) == NGX_OK, "it is ours");

    other = 8;
    (void) ngx_mcp_db_set(&db, "instance", &other, 1);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    collect(zone);
    ok(ngx_mcp_db_write(&db, &batch) == NGX_DECLINED,
       "another instance has it now: %s", db.error);
    is(number("SELECT count(*) FROM task"), 1, "nothing is written");

    remove_db();
}


static void
test_files(void)
{
    int               rc;
    char              name[160];
    sqlite3          *lock;
    ngx_mcp_zone_t   *zone;

    init_db();
    (void) ngx_mcp_db_open(&db);
    zone = stored_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    collect(zone);
    ok(ngx_mcp_db_write(&db, &batch) == NGX_OK, "all is well");

    /* somebody else writes, and does not end */

    (void) sqlite3_open(path, &lock);
    (void) sqlite3_exec(lock, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    ok(ngx_mcp_db_write(&db, &batch) == NGX_ERROR
       && strstr(db.error, "locked"), "locked: %s", db.error);
    (void) sqlite3_close(lock);
    ok(ngx_mcp_db_write(&db, &batch) == NGX_OK, "not any more");

    snprintf(name, sizeof(name), "%s-wal", path);
    (void) unlink(name);
    ok(ngx_mcp_db_write(&db, &batch) == NGX_ERROR
       && strstr(db.error, "log"), "without its log: %s", db.error);
    remove_db();

    init_db();
    (void) ngx_mcp_db_open(&db);
    snprintf(name, sizeof(name), "%s.away", path);
    rc = rename(path, name);
    ok(rc == 0 && ngx_mcp_db_write(&db, &batch) == NGX_ERROR
       && strstr(db.error, "not there"), "without itself: %s", db.error);
    (void) close(open(path, O_CREAT|O_RDWR, 0600));
    ok(ngx_mcp_db_write(&db, &batch) == NGX_ERROR
       && strstr(db.error, "replaced"), "with another: %s", db.error);
    (void) rename(name, path);
    ok(ngx_mcp_db_write(&db, &batch) == NGX_OK,
       "with itself again: %s", db.error);

    remove_db();
}


static void
refused(const char *what, const char *why)
{
    init_db();
    ok(ngx_mcp_db_check(&db) == NGX_ERROR && strstr(db.error, why),
       "%s is refused: %s", what, db.error);
    ok(ngx_mcp_db_open(&db) == NGX_ERROR && strstr(db.error, why),
       "also when it is to be opened: %s", db.error);
    remove_db();
}


static void
test_refused(void)
{
    FILE            *f;
    load_t           l;
    ngx_int_t        rc;
    ngx_mcp_zone_t  *zone;

    f = fopen(path, "w");
    fprintf(f, "%0200d", 7);
    fclose(f);
    refused("what is no database", "not a database");

    execute("CREATE TABLE mine (a)");
    refused("somebody else's", "not a database of");

    init_db();
    (void) ngx_mcp_db_open(&db);
    ngx_mcp_db_close(&db);
    execute("PRAGMA user_version = 99");
    refused("a later one", "version 99");

    init_db();
    (void) ngx_mcp_db_open(&db);
    zone = stored_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    (void) save(zone);
    execute("UPDATE task SET state = 'lazy'");
    ngx_memzero(&l, sizeof(l));
    ok(load_zone(&l, 256 * 1024) == NGX_ERROR
       && strstr(db.error, "not valid"), "a strange task: %s", db.error);
    remove_db();

    /* in the middle of a page */

    init_db();
    (void) ngx_mcp_db_open(&db);
    zone = stored_zone(1024 * 1024);

    for (rc = 0; rc < 400; rc++) {
        (void) test_create(zone, "ann", "dig", "{}", NULL);
    }

    (void) save(zone);
    ngx_mcp_db_close(&db);
    f = fopen(path, "r+");
    fseek(f, 5 * 4096, SEEK_SET);

    for (rc = 0; rc < 8 * 4096; rc++) {
        fputc(0xa5, f);
    }

    fclose(f);

    init_db();
    rc = ngx_mcp_db_open(&db);

    if (rc == NGX_OK) {
        ngx_memzero(&l, sizeof(l));
        rc = load_zone(&l, 1024 * 1024);
    }

    ok(rc == NGX_ERROR && strstr(db.error, "malformed"), "corrupt: %s",
       db.error);
    remove_db();
}


int
main(void)
{
    snprintf(dir, sizeof(dir), "/tmp/mcp_tasks_store_XXXXXX");

    if (mkdtemp(dir) == NULL) {
        return 2;
    }

    snprintf(path, sizeof(path), "%s/tasks.db", dir);
    ngx_cached_time->sec = WALL / 1000;

    test_open();
    test_made();
    test_there_and_back();
    test_masks();
    test_many();
    test_expired();
    test_overtaken();
    test_fence();
    test_files();
    test_refused();

    ngx_mcp_batch_free(&batch);
    (void) rmdir(dir);

    return done_testing();
}
