
/*
 * What somebody else may have written into a database: it is refused, with the
 * row and the column, or it becomes a table that fits together; whatever it is,
 * nothing else happens.
 */


#include "libstore.h"

#include <stdio.h>
#include <sqlite3.h>


#define ZONE  (256 * 1024)


static ngx_mcp_zone_t  *zone;
static ngx_mcp_id_t     id[8];

/* how often it was refused, loaded, or could not be written at all */
static ngx_uint_t       refused, loaded, kept;


static const char *const  values[] = {
    "NULL", "-1", "0", "1", "3", "4", "255", "256", "65536", "4294967295",
    "4294967296", "4503599627370497", "9223372036854775807",
    "-9223372036854775808", "0.5", "9e999", "-9e999", "''", "'x'", "x'ff00'",
    "hex(zeroblob(31))", "hex(zeroblob(600))", "zeroblob(300)",
    "'running'", "'completed'", "'input_required'", "'free'", "'{}'", "'[]'",
    "'\"s\"'", "x'00'", "x'ffffffffffffffffffffffff'",
    "x'0300000000000047ffffffffffffffffffff01'"
};


/* what is there now, into a zone that is emptied first */

static ngx_int_t
load(store_load_t *l)
{
    ngx_memzero(l, sizeof(store_load_t));
    l->zone = zone;
    l->load.store_now = STORE_WALL;

    return store_fill(l);
}


/* tasks are read, and time passes until there are none */

static const char *
live(store_load_t *l)
{
    uint64_t         now;
    ngx_uint_t       i;
    const char      *err;
    ngx_mcp_view_t   v;

    err = ngx_mcp_check_locked(zone->table);

    for (i = 0; err == NULL && i < 8; i++) {
        (void) test_get(zone, &id[i], &v);
        (void) test_claim(zone, "dig", &v);
    }

    now = ngx_current_msec;

    for (i = 0; err == NULL && i < 8; i++) {
        ngx_current_msec += 86400000;
        (void) test_sweep(zone, 100);
        err = ngx_mcp_check_locked(zone->table);
    }

    ngx_current_msec = now;

    return err;
}


/* in a transaction that is taken back; NULL, or what was wrong */

static const char *
wrote(const char *sql)
{
    sqlite3      *sqlite;
    const char   *err;
    store_load_t  l;

    sqlite = store_db.sqlite;
    err = NULL;

    (void) sqlite3_exec(sqlite, "BEGIN", NULL, NULL, NULL);

    if (sqlite3_exec(sqlite, sql, NULL, NULL, NULL) != SQLITE_OK) {
        kept++;

    } else if (load(&l) == NGX_OK) {
        loaded++;
        err = live(&l);

    } else {
        refused++;
        err = strstr(store_db.error, "has an invalid task: row ")
              ? NULL : store_db.error;
    }

    (void) sqlite3_exec(sqlite, "ROLLBACK", NULL, NULL, NULL);

    return err;
}


/* every column of every task gets every value */

static void
test_columns(void)
{
    char         sql[512];
    ngx_uint_t   i, n, v, bad;
    const char  *err;

    for (i = 0; i < ngx_mcp_nfields; i++) {

        for (bad = 0, n = 1; n <= 8; n++) {
            for (v = 0; v < sizeof(values) / sizeof(values[0]); v++) {

                snprintf(sql, sizeof(sql), "UPDATE task SET %s = %s WHERE seq"
                         " = (SELECT seq FROM task ORDER BY seq LIMIT 1"
                         " OFFSET %d)", ngx_mcp_fields[i].name, values[v],
                         (int) n - 1);
                err = wrote(sql);

                if (err) {
                    diag("%s: %s", sql, err);
                    bad++;
                }
            }
        }

        is(bad, 0, "anything in \"%s\"", ngx_mcp_fields[i].name);
    }

    ok(refused > 1000 && loaded > 1000 && kept > 100,
       "refused %d times, loaded %d times, impossible %d times",
       (int) refused, (int) loaded, (int) kept);
}


static void
test_payloads(void)
{
    char                sql[512];
    ngx_uint_t          i, n, v, bad;
    const char         *err;
    static const char  *const  texts[] = {
        "'{'", "'{}'", "' {}'", "'{} '", "'\"s\"'", "'\"'", "'null'", "'1'",
        "'[]'", "x'7b00'", "x'7b22ff223a317d'", "'{\"a\":1,\"a\":2}'",
        "'{\"q\":{\"method\":\"m\",\"params\":{}}}'", "'{\"q\":1}'",
        "'{\"isError\":true}'", "'{\"resultType\":\"x\",\"_meta\":{}}'",
        "hex(zeroblob(3000))", "1", "zeroblob(10)"
    };

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {

        for (bad = 0, n = 1; n <= 8; n++) {
            for (v = 0; v < sizeof(texts) / sizeof(texts[0]); v++) {

                snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO payload"
                         " SELECT seq * 8 + %d, %s FROM task ORDER BY seq"
                         " LIMIT 1 OFFSET %d",
                         (int) ngx_mcp_payload_fields[i].number, texts[v],
                         (int) n - 1);
                err = wrote(sql);

                if (err) {
                    diag("%s: %s", sql, err);
                    bad++;
                }
            }
        }

        is(bad, 0, "anything as %s", ngx_mcp_payload_fields[i].name.data);
    }
}


/* what was found by attack, and what nothing else would notice */

static void
test_known(void)
{
    char          sql[512];
    ngx_uint_t    i;
    store_load_t  l;
    static struct {
        const char  *sql;
        const char  *column;
    } known[] = {
        { "token = '\"' || hex(zeroblob(30)) || '\"'", "token" },
        { "token = 'abc'", "token" },
        { "priority = 4", "priority" },
        { "method = hex(zeroblob(128))", "method" },
        { "progress = 9e999", "progress" },
        { "peak = 9e999", "peak" },
        { "tool = ''", "tool" },
        { "seq = -seq", "seq" },
        { "seq = 0", "seq" },
        { "changed = 0", "changed" },
        { "changed = (SELECT max(changed) FROM task) + (seq =="
          " (SELECT max(seq) FROM task))", "changed" },
        { "queue_seq = 7", "queue_seq" },
        { "version = 0", "version" },
        { "version = 4503599627370497", "version" },
        { "created_at = 253402300800000", "created_at" },
        { "lease = 1", "lease" },
        { "history = x'01'", "history" },
        { "history = x'0200000000000034' || x'00'", "history" },
        { "history = x'02000000000000e701'", "history" },
        { "state = 'completed'", "result" },
        { "state = 'completed', phase_end_at = 9e15", "phase_end_at" },
        { "state = 'completed', phase_end_at = 1", "phase_end_at" },
        { "state = 'failed', step_end_at = 1", "step_end_at" },
        { "state = 'running', attempt = 1", "lease" },
        { "state = 'running', lease = 1, attempt = 0", "attempt" },
        { "state = 'input_required', lease = 1, attempt = 1",
          "input_requests" },
        { "state = 'input_required', attempt = 1", "input_requests" },
        { "state = 'input_required', attempt = 1, route = 1", "lease" },
        { "state = 'input_required', attempt = 0", "attempt" },
        { "calls = 8", "calls" },
        { "state = 'cancelled'", "cause" },
        { "state = 'failed', cause = 4", "cause" },
        { "state = 'failed', cause = 6", "cause" },
        { "cause = 1", "cause" },
        { "flags = 1", "flags" },
        { "flags = 128", "flags" }
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        (void) sqlite3_exec(store_db.sqlite, "BEGIN", NULL, NULL, NULL);

        /* those that nobody has claimed, and that have no deadline yet */

        snprintf(sql, sizeof(sql), "UPDATE OR REPLACE task SET phase_end_at ="
                 " NULL, step_end_at = NULL, cause = 0, %s"
                 " WHERE state = 'queued'", known[i].sql);

        if (sqlite3_exec(store_db.sqlite, sql, NULL, NULL, NULL)
            != SQLITE_OK)
        {
            diag("%s: %s", sql, sqlite3_errmsg(store_db.sqlite));
        }

        snprintf(sql, sizeof(sql), "column \"%s\"", known[i].column);
        ok(load(&l) == NGX_ERROR && strstr(store_db.error, sql),
           "%s: %s", known[i].sql, store_db.error);

        (void) sqlite3_exec(store_db.sqlite, "ROLLBACK", NULL, NULL, NULL);
    }

    ok(load(&l) == NGX_OK && live(&l) == NULL, "as it was, it is loaded");
}


/* bytes of no task do not hide those of others */

static void
test_foreign(void)
{
    store_load_t    l;
    ngx_mcp_view_t  v;

    (void) sqlite3_exec(store_db.sqlite, "BEGIN;"
                        "INSERT INTO payload VALUES (-9, '{}'), (7, '{}'),"
                        " (9223372036854775807, '{}')", NULL, NULL, NULL);

    ok(load(&l) == NGX_OK && test_get(zone, &id[0], &v) == NGX_MCP_OK
       && v.payload[NGX_MCP_PARAMS].len, "strange bytes are left alone");

    (void) sqlite3_exec(store_db.sqlite, "ROLLBACK", NULL, NULL, NULL);
}


static void
opens(const char *sql, const char *why)
{
    store_init();
    store_db.sync = NGX_MCP_SYNC_OFF;
    (void) ngx_mcp_db_open(&store_db);
    ngx_mcp_db_close(&store_db);

    store_execute(sql);

    if (why) {
        ok(ngx_mcp_db_open(&store_db) == NGX_ERROR
           && strstr(store_db.error, why), "%s: %s", sql, store_db.error);

    } else {
        ok(ngx_mcp_db_open(&store_db) == NGX_OK, "%s: %s", sql,
           store_db.error);
    }

    store_remove();
}


static void
test_schemas(void)
{
    opens("PRAGMA user_version = -1", "version -1");
    opens("PRAGMA user_version = 0", "schema that was changed");
    opens("PRAGMA user_version = 1", "schema that was changed");
    opens("CREATE TABLE mine (a)", "schema that was changed");
    opens("CREATE INDEX mine ON task (owner)", "schema that was changed");
    opens("CREATE TRIGGER mine AFTER UPDATE ON task BEGIN DELETE FROM task;"
          " END", "schema that was changed");
    opens("CREATE TRIGGER mine AFTER INSERT ON meta BEGIN SELECT"
          " load_extension('x'); END", "schema that was changed");
    opens("DROP VIEW tasks", "schema that was changed");
    opens("DROP VIEW tasks; CREATE VIEW tasks AS SELECT 1",
          "schema that was changed");
    opens("DROP INDEX task_id", "schema that was changed");
    opens("ALTER TABLE task ADD COLUMN mine AS (abs(-9223372036854775808))",
          "schema that was changed");
    opens("DROP TABLE task; CREATE VIEW task AS WITH RECURSIVE c(x) AS (SELECT"
          " 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
          "schema that was changed");
    opens("ANALYZE", NULL);
    opens("VACUUM", NULL);
    opens("PRAGMA journal_mode = DELETE", NULL);
}


int
main(void)
{
    if (store_begin() != NGX_OK) {
        return 2;
    }

    ngx_current_msec = 1000000;

    store_init();
    store_db.sync = NGX_MCP_SYNC_OFF;
    (void) ngx_mcp_db_open(&store_db);
    zone = store_zone(ZONE);
    store_tasks(zone, id);
    is(store_save(zone), 1, "tasks in every state are saved");

    test_columns();
    test_payloads();
    test_known();
    test_foreign();

    store_remove();

    test_schemas();
    store_end();

    return done_testing();
}
