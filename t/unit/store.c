
/*
 * The way of tasks into a database and back into a zone: nothing is lost on
 * it, nothing is written that need not be, and what cannot be used is refused.
 */


#include "libstore.h"

#include <stdio.h>
#include <sqlite3.h>


static char  big[3 * NGX_MCP_SAVE_BYTES];


static void
test_open(void)
{
    struct stat  sb;

    store_init();

    ok(ngx_mcp_db_check(&store_db) == NGX_DECLINED, "there is none");
    ok(stat(store_path, &sb) == -1, "and looking made none");

    ok(ngx_mcp_db_open(&store_db) == NGX_OK, "one is made: %s", store_db.error);
    ok(store_db.created, "which is said");
    ok(stat(store_path, &sb) == 0 && (sb.st_mode & 0777) == 0600,
       "for nobody else's eyes");
    is(store_number("PRAGMA application_id"), NGX_MCP_DB_APPLICATION,
       "it says what it is");
    is(store_number("PRAGMA user_version"), NGX_MCP_DB_VERSION,
       "and its version");

    ngx_mcp_db_close(&store_db);
    ok(ngx_mcp_db_check(&store_db) == NGX_OK, "it can be used");
    ok(ngx_mcp_db_open(&store_db) == NGX_OK && !store_db.created,
       "it is opened again");

    store_remove();
}


/* as if whoever has made it had died before it could write a task */

static void
test_made(void)
{
    uint64_t         value[2];
    ngx_mcp_zone_t  *zone;

    store_init();
    zone = store_zone(256 * 1024);
    store_db.instance = STORE_SAVE(zone)->instance;
    store_db.secret[0] = 7;
    store_db.secret[1] = 0x8000000000000009ULL;

    ok(ngx_mcp_db_open(&store_db) == NGX_OK, "one is made");
    ngx_mcp_db_close(&store_db);

    ok(ngx_mcp_db_open(&store_db) == NGX_OK && !store_db.created,
       "another process opens it");
    ngx_memzero(value, sizeof(value));
    ok(ngx_mcp_db_get(&store_db, "instance", value, 1) == NGX_OK
       && value[0] == STORE_SAVE(zone)->instance, "it says whose it is");
    ok(ngx_mcp_db_get(&store_db, "secret", value, 2) == NGX_OK
       && value[0] == 7 && value[1] == 0x8000000000000009ULL,
       "and has the secret");

    (void) test_create(zone, "ann", "dig", "{}", NULL);
    is(store_save(zone), 1, "a task is saved");

    ok(ngx_mcp_db_empty(&store_db, STORE_SAVE(zone)->instance) == NGX_OK,
       "it is emptied: %s", store_db.error);
    is(store_number("SELECT count(*) FROM task"), 0, "it has no tasks");
    is(store_number("SELECT count(*) FROM payload"), 0, "nor their bytes");
    ok(ngx_mcp_db_get(&store_db, "seq", value, 1) == NGX_OK
       && value[0] == 0, "nothing is saved");
    ok(ngx_mcp_db_empty(&store_db, 1) == NGX_DECLINED, "but not by another");

    /* one that is nobody's */

    store_execute("DELETE FROM meta");
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    is(store_save(zone), 1, "an empty one may be anybody's");

    store_remove();
}


/* tasks in every state, with all that they may have */

/* what must not be the same on the other side is made so */

static void
normal(ngx_mcp_view_t *v)
{
    v->task.holder = 0;
    v->task.worker = 0;
    v->task.flags |= NGX_MCP_ANNOUNCED|NGX_MCP_LOADED;

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
    store_load_t          l;
    uint64_t              time;
    ngx_uint_t            i, same;
    ngx_mcp_id_t          id[8];
    ngx_mcp_view_t        a, b;
    ngx_mcp_zone_t       *zone;
    ngx_mcp_op_session_t  op;

    store_init();
    (void) ngx_mcp_db_open(&store_db);

    ngx_current_msec = 1000000;
    zone = store_zone(256 * 1024);
    store_tasks(zone, id);

    /* it is new, so it gets the instance of whoever comes first */

    is(store_save(zone), 1, "tasks in every state are saved");
    ok(test_check(zone) == NULL, "the table fits together");
    is(STORE_SAVE(zone)->unsaved, 0, "and has nothing left to save");

    ngx_memzero(&l, sizeof(l));
    l.load.store_now = STORE_WALL;
    ok(store_load(&l, 512 * 1024) == NGX_OK,
       "they come back: %s", store_db.error);
    ok(test_check(l.zone) == NULL, "into a table that fits together");
    is(l.load.tasks, 8, "all of them");

    for (same = 0, i = 0; i < 8; i++) {
        (void) test_get(zone, &id[i], &a);
        (void) test_get(l.zone, &id[i], &b);
        same += same_task(&a, &b);
    }

    is(same, 8, "as they were");
    is(store_number("SELECT revision FROM task WHERE id = (SELECT id FROM task"
              " WHERE state = 'completed')"), 3, "with their revisions");
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
    is(STORE_SAVE(l.zone)->unsaved, 1, "and only what changed is to be saved");

    /* an hour later, on a machine that was started a minute ago */

    time = ngx_current_msec;
    ngx_current_msec = 60000;
    ngx_memzero(&l, sizeof(l));
    l.load.store_now = STORE_WALL + 3600000;
    (void) store_load(&l, 256 * 1024);

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

    store_remove();
}


static void
test_masks(void)
{
    uint64_t          rows;
    ngx_mcp_id_t      id, other;
    ngx_mcp_view_t    v;
    ngx_mcp_zone_t   *zone;

    store_init();
    (void) ngx_mcp_db_open(&store_db);

    zone = store_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", &id);
    (void) test_create(zone, "ann", "dig", "{}", &other);

    store_collect(zone);
    is(store_batch.n, 2, "two are new");
    is(store_batch.records[0].mask, NGX_MCP_RECORD_ALL, "all of them");
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_OK, "written");

    /* one changes before that is known */

    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_PROGRESS,
                      v.task.lease_token, NGX_MCP_MESSAGE, "half");
    ngx_mcp_saved_locked(zone->table, &store_batch);

    is(STORE_SAVE(zone)->unsaved, 1, "one has changed meanwhile");
    ok(test_check(zone) == NULL, "which the table knows");

    store_collect(zone);
    is(store_batch.n, 1, "and which is to be saved");
    is(store_batch.records[0].mask, NGX_MCP_RECORD_ALL,
       "with all bytes, to be on the safe side");
    (void) store_save(zone);

    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease_token, NGX_MCP_RESULT, "[]");
    store_collect(zone);
    is(store_batch.records[0].mask, NGX_MCP_WANT(
                                                 NGX_MCP_RESULT),
       "then only those that changed");
    is(store_batch.records[0].payload[NGX_MCP_PARAMS].len, 0,
       "the others are not even copied");
    (void) store_save(zone);
    is(store_number("SELECT count(*) FROM tasks WHERE status = 'completed' "
              "AND params = '{}' AND message = 'half' AND result = '[]'"), 1,
       "and are in the database all the same");

    (void) test_event(zone, &other, NGX_MCP_EV_CANCEL, 0, NGX_MCP_MESSAGE, "");
    (void) store_save(zone);
    rows = store_number("SELECT count(*) FROM payload");
    (void) test_delete(zone, &other);
    ok(test_get(zone, &other, NULL) == NGX_MCP_NOT_FOUND, "one is removed");
    is(zone->table->sh->slot.used, 2, "its slot stays");
    is(store_save(zone), 1, "until its row is removed, too");
    is(zone->table->sh->slot.used, 1, "and no longer");
    is(store_number("SELECT count(*) FROM task"), 1, "which it is");
    is(store_number("SELECT count(*) FROM payload"), rows - 1,
       "with its bytes");
    ok(test_check(zone) == NULL, "the table fits together");

    ngx_mcp_save_all_locked(zone->table);
    is(STORE_SAVE(zone)->unsaved, 1, "all can be saved once more");
    ok(test_check(zone) == NULL, "the table fits together");
    is(store_save(zone), 1, "and is");

    store_remove();
}


static void
test_many(void)
{
    store_load_t          l;
    ngx_uint_t            i, commits;
    ngx_mcp_id_t          id;
    ngx_mcp_zone_t       *zone;
    ngx_mcp_op_create_t   c;

    store_init();
    (void) ngx_mcp_db_open(&store_db);
    memset(big, 'b', sizeof(big) - 1);
    ngx_memcpy(big, "{\"b\":\"", 6);
    ngx_memcpy(big + sizeof(big) - 3, "\"}", 2);

    zone = store_zone(24 * 1024 * 1024);

    for (i = 0; i < 5000; i++) {
        (void) test_create(zone, i % 2 ? "ann" : "bob", "dig", "{}", NULL);

        if (i == 700) {
            (void) test_create(zone, "ann", "dig", big, NULL);
        }
    }

    commits = store_save(zone);
    ok(commits >= 5001 / NGX_MCP_SAVE_TASKS && commits < 20,
       "many are saved in %d commits", (int) commits);
    is(store_number("SELECT count(*) FROM task"), 5001, "all of them");
    is(store_number("SELECT max(length(data)) FROM payload"), sizeof(big) - 1,
       "also one that is larger than a store_batch");

    ngx_memzero(&l, sizeof(l));
    l.load.store_now = STORE_WALL;
    ok(store_load(&l, 24 * 1024 * 1024) == NGX_OK && !l.load.full,
       "they come back: %s", store_db.error);
    ok(test_check(l.zone) == NULL, "the table fits together");
    is(l.zone->table->sh->bytes, zone->table->sh->bytes, "with all bytes");

    ngx_memzero(&l, sizeof(l));
    l.load.store_now = STORE_WALL;
    ok(store_load(&l, 1024 * 1024) == NGX_OK && l.load.full,
       "they do not fit into a small zone");
    is(l.load.tasks, 5001, "which is known to the last one");
    ok(l.load.blocks >= zone->table->sh->block.used,
       "and how much it would take");
    ok(test_check(l.zone) == NULL, "the table fits together");

    /* all at once, in more than one commit */

    ngx_current_msec += 100ULL * 86400 * 1000;

    while (test_sweep(zone, 256)) { /* void */ }

    is(STORE_SAVE(zone)->ndeletions, 5001, "they expire, all at once");
    store_collect(zone);
    ok(store_batch.ndeletions == NGX_MCP_SAVE_DELETIONS && store_batch.more
       && store_batch.upto < zone->table->sh->seq,
       "more than go into one commit, which is known");

    /* ids are unique in the database: the old row has to be deleted first */

    id = ngx_mcp_slot(zone->table, STORE_SAVE(zone)->deletions.tail)->id;

    ngx_memzero(&c, sizeof(c));
    c.op.type = NGX_MCP_OP_CREATE;
    c.task.tool = str("dig");
    c.task.ttl = 1000;
    test_policy(&c.task.policy);
    c.id = &id;
    (void) ngx_mcp_submit(zone, &c.op);
    ok(ngx_memcmp(&c.view.id, &id, sizeof(id)) == 0,
       "a new task has the id of the last deleted one");

    (void) store_save(zone);
    is(store_number("SELECT count(*) FROM task"), 1, "and is saved");
    ok(test_check(zone) == NULL, "the table fits together");
    (void) test_delete(zone, &id);

    (void) store_save(zone);
    is(store_number("SELECT count(*) FROM task"), 0, "no row is left");
    is(store_number("SELECT count(*) FROM payload"), 0, "nor bytes");
    is(zone->table->sh->slot.used, 0, "nor a slot in use");
    ok(test_check(zone) == NULL, "the table fits together");

    store_remove();
}


static void
test_expired(void)
{
    store_load_t     l;
    uint64_t         n;
    ngx_mcp_zone_t  *zone;

    store_init();
    (void) ngx_mcp_db_open(&store_db);

    zone = store_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    (void) store_save(zone);
    store_execute("UPDATE task SET expires_at = 1699999999999 WHERE seq = 1");

    ok(ngx_mcp_db_expire(&store_db, STORE_WALL, &n) == NGX_OK,
       "what ran out meanwhile is removed");
    is(n, 1, "one task");
    is(store_number("SELECT count(*) FROM payload"), 1, "with its bytes");

    ngx_memzero(&l, sizeof(l));
    l.load.store_now = STORE_WALL;
    (void) store_load(&l, 256 * 1024);
    is(l.load.tasks, 1, "the other one comes back");

    store_remove();
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

    store_init();
    zone = store_zone(4 * 1024 * 1024);

    ngx_current_msec = 100001;
    (void) test_create(zone, "ann", "dig", "{}", &id);
    first = zone->table->sh->seq;
    is(STORE_SAVE(zone)->since, 100001, "the time of the first change");

    for (i = 0; i < 2 * NGX_MCP_SAVE_TASKS; i++) {
        (void) test_create(zone, "ann", "fill", "{}", NULL);
    }

    ngx_current_msec += 500;
    (void) test_claim(zone, "dig", &v);

    store_collect(zone);
    ngx_mcp_saved_locked(zone->table, &store_batch);
    ok(store_batch.more && STORE_SAVE(zone)->saved > first,
       "others are saved first");
    ok(STORE_SAVE(zone)->safe < first, "and it is not said to be");
    is(STORE_SAVE(zone)->since, 100001, "its time stays");

    /* one that begins while everything else is under way */

    store_collect(zone);
    ngx_mcp_saved_locked(zone->table, &store_batch);
    store_collect(zone);
    ok(!store_batch.more, "the rest");
    ngx_current_msec += 200;
    (void) test_move(zone, &v.id, v.task.lease_token, 0.5, "\"half\"");
    ngx_mcp_saved_locked(zone->table, &store_batch);
    ok(STORE_SAVE(zone)->safe == store_batch.upto, "now it is saved");
    is(STORE_SAVE(zone)->since, 100701, "but not what came after");

    store_collect(zone);
    ngx_mcp_saved_locked(zone->table, &store_batch);
    ok(STORE_SAVE(zone)->safe == zone->table->sh->seq, "in the end all is");
    is(STORE_SAVE(zone)->since, 0, "and there is no time");

    /* what nothing has overtaken does not wait for others */

    for (i = 0; i < 2 * NGX_MCP_SAVE_TASKS; i++) {
        (void) test_create(zone, "ann", "fill", "{}", NULL);
    }

    store_collect(zone);
    ngx_mcp_saved_locked(zone->table, &store_batch);
    ok(store_batch.more && STORE_SAVE(zone)->safe == store_batch.upto,
       "each is safe with its commit");

    store_remove();
}


/* what is wrong is seen, and mended by whoever recovers the table */

static void
test_broken(void)
{
    ngx_uint_t        i;
    const char       *err;
    ngx_mcp_id_t      id[3];
    ngx_mcp_save_t    good;
    ngx_mcp_zone_t   *zone;
    static struct {
        size_t        word;          /* of 32 bits */
        const char   *message;
    } words[] = {
        { offsetof(ngx_mcp_save_t, unsaved), "number of unsaved tasks" },
        { offsetof(ngx_mcp_save_t, oldest), "number of unsaved tasks" },
        { offsetof(ngx_mcp_save_t, deletions.head),
          "in the list of deletions" },
        { offsetof(ngx_mcp_save_t, deletions.tail), "number of deletions" },
        { offsetof(ngx_mcp_save_t, ndeletions), "number of deletions" }
    };

    zone = store_zone(256 * 1024);

    for (i = 0; i < 3; i++) {
        (void) test_create(zone, "ann", "dig", "{}", &id[i]);
    }

    (void) test_delete(zone, &id[0]);
    ok(test_check(zone) == NULL, "two are not saved, one has to go");
    good = *STORE_SAVE(zone);

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        (*(uint32_t *) ((u_char *) STORE_SAVE(zone) + words[i].word))++;
        err = ngx_mcp_check_locked(zone->table);
        ok(err && strstr(err, words[i].message), "it is seen: %s",
           err ? err : "nothing");

        ngx_mcp_rebuild_locked(zone->table);
        ok(ngx_memcmp(&good, STORE_SAVE(zone), sizeof(good)) == 0,
           "and mended");
    }

    STORE_SAVE(zone)->safe = 1;
    err = ngx_mcp_check_locked(zone->table);
    ok(err && strstr(err, "ahead of saved"), "nor can more be safe: %s", err);

    STORE_SAVE(zone)->safe = 0;
    STORE_SAVE(zone)->since = 0;
    err = ngx_mcp_check_locked(zone->table);
    ok(err && strstr(err, "have no time"), "nor have no time: %s", err);

    ngx_mcp_rebuild_locked(zone->table);
    ok(test_check(zone) == NULL, "which is mended, too");
}


/* a task that was loaded skips versions once, whatever happens before */

static void
test_versions(void)
{
    store_load_t     l;
    uint64_t         revision;
    ngx_mcp_id_t     id;
    ngx_mcp_view_t   v;
    ngx_mcp_slot_t  *s;
    ngx_mcp_zone_t  *zone;

    store_init();
    (void) ngx_mcp_db_open(&store_db);

    zone = store_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", &id);
    (void) test_claim(zone, "dig", &v);
    (void) store_save(zone);

    ngx_memzero(&l, sizeof(l));
    l.load.store_now = STORE_WALL;
    (void) store_load(&l, 256 * 1024);
    s = ngx_mcp_find_locked(l.zone->table, &id, NULL, 0);
    is(s->body.task.version, 2, "it is as it was");

    (void) test_event(l.zone, &id, NGX_MCP_EV_HEARTBEAT, v.task.lease_token, 0,
                      NULL);
    revision = s->body.revision;
    ok(revision > 1000000, "revisions skip what may have been given away");
    (void) test_event(l.zone, &id, NGX_MCP_EV_HEARTBEAT, v.task.lease_token, 0,
                      NULL);
    ngx_mcp_lock(l.zone->table);
    ngx_mcp_touch_locked(l.zone->table, s);
    ngx_mcp_unlock(l.zone->table);
    is(s->body.task.version, 2, "writes that are no version");
    is(s->body.revision, revision + 2, "are counted");

    revision = l.zone->table->sh->seq + 1;
    (void) test_event(l.zone, &id, NGX_MCP_EV_PROGRESS, v.task.lease_token, 0,
                      NULL);
    is(s->body.task.version, revision, "the next one skips");
    ok(revision > 1000000, "by as many as may have been seen");
    (void) test_event(l.zone, &id, NGX_MCP_EV_PROGRESS, v.task.lease_token, 0,
                      NULL);
    is(s->body.task.version, revision + 1, "but only that");
    is(store_save(l.zone), 0, "it belongs to another");

    store_remove();
}


/* who is not, or not any more, the one whose database it is */

static void
test_fence(void)
{
    uint64_t          other;
    ngx_mcp_zone_t   *zone;

    store_init();
    (void) ngx_mcp_db_open(&store_db);

    zone = store_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    store_collect(zone);
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_OK, "it is ours");

    other = 8;
    (void) ngx_mcp_db_set(&store_db, "instance", &other, 1);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    store_collect(zone);
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_DECLINED,
       "another instance has it now: %s", store_db.error);
    is(store_number("SELECT count(*) FROM task"), 1, "nothing is written");

    store_remove();
}


static void
test_files(void)
{
    int               rc;
    char              name[160];
    sqlite3          *lock;
    ngx_mcp_zone_t   *zone;

    store_init();
    (void) ngx_mcp_db_open(&store_db);
    zone = store_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    store_collect(zone);
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_OK, "all is well");

    /* somebody else writes, and does not end */

    (void) sqlite3_open(store_path, &lock);
    (void) sqlite3_exec(lock, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_ERROR
       && strstr(store_db.error, "locked"), "locked: %s", store_db.error);
    (void) sqlite3_close(lock);
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_OK, "not any more");

    snprintf(name, sizeof(name), "%s-wal", store_path);
    (void) unlink(name);
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_ERROR
       && strstr(store_db.error, "log"), "without its log: %s", store_db.error);
    store_remove();

    store_init();
    (void) ngx_mcp_db_open(&store_db);
    snprintf(name, sizeof(name), "%s.away", store_path);
    rc = rename(store_path, name);
    ok(rc == 0 && ngx_mcp_db_write(&store_db, &store_batch) == NGX_ERROR
       && strstr(store_db.error, "is missing"),
       "without itself: %s", store_db.error);
    (void) close(open(store_path, O_CREAT|O_RDWR, 0600));
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_ERROR
       && strstr(store_db.error, "replaced"),
       "with another: %s", store_db.error);
    (void) rename(name, store_path);
    ok(ngx_mcp_db_write(&store_db, &store_batch) == NGX_OK,
       "with itself again: %s", store_db.error);

    store_remove();
}


static void
refused(const char *what, const char *why)
{
    store_init();
    ok(ngx_mcp_db_check(&store_db) == NGX_ERROR && strstr(store_db.error, why),
       "%s is refused: %s", what, store_db.error);
    ok(ngx_mcp_db_open(&store_db) == NGX_ERROR && strstr(store_db.error, why),
       "also when it is to be opened: %s", store_db.error);
    store_remove();
}


static void
test_refused(void)
{
    FILE            *f;
    store_load_t     l;
    ngx_int_t        rc;
    ngx_mcp_zone_t  *zone;

    f = fopen(store_path, "w");
    fprintf(f, "%0200d", 7);
    fclose(f);
    refused("what is no database", "not an SQLite database");

    store_execute("CREATE TABLE mine (a)");
    refused("somebody else's", "not a database of");

    store_init();
    (void) ngx_mcp_db_open(&store_db);
    ngx_mcp_db_close(&store_db);
    store_execute("PRAGMA user_version = 99");
    refused("a later one", "version 99");

    store_init();
    (void) ngx_mcp_db_open(&store_db);
    zone = store_zone(256 * 1024);
    (void) test_create(zone, "ann", "dig", "{}", NULL);
    (void) store_save(zone);
    store_execute("UPDATE task SET state = 'lazy'");
    ngx_memzero(&l, sizeof(l));
    ok(store_load(&l, 256 * 1024) == NGX_ERROR
       && strstr(store_db.error, "column \"state\""), "an invalid task: %s",
       store_db.error);

    store_execute("UPDATE task SET state = 'queued', priority = 4");
    ok(store_load(&l, 256 * 1024) == NGX_ERROR
       && strstr(store_db.error, "column \"priority\""),
       "one that would be in no "
       "queue: %s", store_db.error);
    store_execute("UPDATE task SET priority = 1, token = hex(zeroblob(31))");
    ok(store_load(&l, 256 * 1024) == NGX_ERROR
       && strstr(store_db.error, "column \"token\""),
       "one with a token that is too "
       "long: %s", store_db.error);
    store_remove();

    /* in the middle of a page */

    store_init();
    (void) ngx_mcp_db_open(&store_db);
    zone = store_zone(1024 * 1024);

    for (rc = 0; rc < 400; rc++) {
        (void) test_create(zone, "ann", "dig", "{}", NULL);
    }

    (void) store_save(zone);
    ngx_mcp_db_close(&store_db);
    f = fopen(store_path, "r+");
    fseek(f, 5 * 4096, SEEK_SET);

    for (rc = 0; rc < 8 * 4096; rc++) {
        fputc(0xa5, f);
    }

    fclose(f);

    store_init();
    rc = ngx_mcp_db_open(&store_db);

    if (rc == NGX_OK) {
        ngx_memzero(&l, sizeof(l));
        rc = store_load(&l, 1024 * 1024);
    }

    ok(rc == NGX_ERROR && strstr(store_db.error, "malformed"), "corrupt: %s",
       store_db.error);
    store_remove();
}


int
main(void)
{
    if (store_begin() != NGX_OK) {
        return 2;
    }

    test_open();
    test_made();
    test_there_and_back();
    test_masks();
    test_many();
    test_expired();
    test_overtaken();
    test_broken();
    test_versions();
    test_fence();
    test_files();
    test_refused();

    store_end();

    return done_testing();
}
