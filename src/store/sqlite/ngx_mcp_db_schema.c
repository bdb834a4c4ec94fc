
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The schema of a database: creating, checking and migrating it. */


#include "ngx_mcp_db.h"


#if (NGX_MCP_SQLITE)

#include <sqlite3.h>


static ngx_int_t ngx_mcp_db_compare(ngx_mcp_db_t *db, int64_t version);
static ngx_int_t ngx_mcp_db_same_tables(ngx_mcp_db_t *db, sqlite3_stmt *stmt,
    sqlite3_stmt *ref_stmt);
static int ngx_mcp_db_steps_execute(sqlite3 *sqlite, int64_t from, int64_t to);
static ngx_int_t ngx_mcp_db_migrate(ngx_mcp_db_t *db, int64_t version);


/*
 * One step for each version.  The table "task" has the fields of a task
 * without its payloads, so that a change of state does not write them again.
 * The table "payload" has these; its key is eight times the key of the task,
 * plus the number of the payload.  The view "tasks" is for people.
 */

static const char  *ngx_mcp_db_steps[] = {

    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
    " WITHOUT ROWID;"

    "CREATE TABLE task ("
    " seq INTEGER PRIMARY KEY,"
    " id TEXT NOT NULL,"
    " owner TEXT NOT NULL,"
    " tool TEXT NOT NULL,"
    " method TEXT,"
    " token TEXT,"
    " session TEXT,"
    " state TEXT NOT NULL,"
    " version INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " progress REAL,"
    " total REAL,"
    " cause INTEGER NOT NULL,"
    " flags INTEGER NOT NULL,"
    " lease INTEGER NOT NULL,"
    " created_at INTEGER NOT NULL,"
    " updated_at INTEGER NOT NULL,"
    " expires_at INTEGER,"
    " step_end_at INTEGER,"
    " phase_end_at INTEGER,"
    " phase_left INTEGER,"
    " since_at INTEGER,"
    " ran INTEGER,"
    " changed INTEGER NOT NULL,"
    " turned INTEGER NOT NULL,"
    " moved INTEGER NOT NULL,"
    " queue_seq INTEGER NOT NULL,"
    " peak REAL,"
    " ttl INTEGER,"
    " lease_time INTEGER,"
    " queue_timeout INTEGER,"
    " run_timeout INTEGER,"
    " backoff INTEGER,"
    " poll_interval INTEGER,"
    " keep_completed INTEGER,"
    " keep_failed INTEGER,"
    " keep_cancelled INTEGER,"
    " route INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL,"
    " priority INTEGER NOT NULL,"
    " calls INTEGER NOT NULL);"

    "CREATE TABLE payload (key INTEGER PRIMARY KEY, data TEXT NOT NULL);"

    "CREATE VIEW tasks AS SELECT"
    " id, owner, tool, method,"
    " CASE state WHEN 'queued' THEN 'working' WHEN 'running' THEN 'working'"
    " ELSE state END AS status,"
    " state AS phase, version, attempt, attempts, priority, progress, total,"
    " CASE cause WHEN 1 THEN 'lease_lost' WHEN 2 THEN 'queue_timeout'"
    " WHEN 3 THEN 'run_timeout' WHEN 4 THEN 'cancelled'"
    " WHEN 5 THEN 'process_lost' END AS cause,"
    " strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch')"
    " AS created,"
    " strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000.0, 'unixepoch')"
    " AS updated,"
    " strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1000.0, 'unixepoch')"
    " AS expires,"
    " created_at, updated_at, expires_at,"
    " (SELECT data FROM payload WHERE key = seq * 8) AS params,"
    " (SELECT data FROM payload WHERE key = seq * 8 + 1) AS metadata,"
    " (SELECT data FROM payload WHERE key = seq * 8 + 2) AS message,"
    " CASE flags & 1 WHEN 0 THEN"
    " (SELECT data FROM payload WHERE key = seq * 8 + 3) END AS result,"
    " CASE flags & 1 WHEN 1 THEN"
    " (SELECT data FROM payload WHERE key = seq * 8 + 3) END AS error,"
    " (SELECT data FROM payload WHERE key = seq * 8 + 4) AS input_requests,"
    " (SELECT data FROM payload WHERE key = seq * 8 + 5) AS input_responses,"
    " seq FROM task;",

    /* history entries, in the encoding of ngx_mcp_history.h */

    "ALTER TABLE task ADD COLUMN history BLOB;",

    /* grows with every write; 0: written by an older release */

    "ALTER TABLE task ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;",

    /* ids are unique; an id is written once, so the index costs little */

    "CREATE UNIQUE INDEX task_id ON task (id);"
};


/* there is a step for each version */

typedef char  ngx_mcp_db_steps_fit[
    sizeof(ngx_mcp_db_steps) / sizeof(char *) == NGX_MCP_DB_VERSION ? 1 : -1
];


/* refuses databases of other applications and of later versions */

ngx_int_t
ngx_mcp_db_schema(ngx_mcp_db_t *db)
{
    int64_t  app, version, tables;

    if (ngx_mcp_db_number(db, "PRAGMA application_id", &app)
        != NGX_OK
        || ngx_mcp_db_number(db, "PRAGMA user_version", &version)
           != NGX_OK
        || ngx_mcp_db_number(db,
                             "SELECT count(*) FROM sqlite_master", &tables)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (app != NGX_MCP_DB_APPLICATION
        && (app || version || tables))
    {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "is not a database of the mcp_tasks module");
        return NGX_ERROR;
    }

    if (version < 0 || version > NGX_MCP_DB_VERSION) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "has schema version %lld, but this module "
                                "supports only versions up to %d",
                                (long long) version,
                                NGX_MCP_DB_VERSION);
        return NGX_ERROR;
    }

    if (ngx_mcp_db_compare(db, version) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_db_migrate(db, version);
}


/*
 * A schema may contain code, which would run with each statement.  So it has
 * to be, word for word, what the steps create in an empty database.
 */

static ngx_int_t
ngx_mcp_db_compare(ngx_mcp_db_t *db, int64_t version)
{
    sqlite3            *ref;
    ngx_int_t           rc;
    sqlite3_stmt       *stmt, *ref_stmt;
    static const char   list[] = "SELECT type, name, tbl_name, sql"
                                 " FROM sqlite_master"
                                 " WHERE name NOT LIKE 'sqlite_stat%'"
                                 " ORDER BY type, name";

    ref = NULL;
    stmt = NULL;
    ref_stmt = NULL;
    rc = NGX_ERROR;

    if (sqlite3_open_v2(":memory:", &ref,
                        SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE
                        |SQLITE_OPEN_NOMUTEX, NULL)
        != SQLITE_OK
        || ngx_mcp_db_steps_execute(ref, 0, version) != SQLITE_OK
        || sqlite3_prepare_v2(ref, list, -1, &ref_stmt, NULL) != SQLITE_OK)
    {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "has a schema that cannot be checked: %s",
                                ref ? sqlite3_errmsg(ref) : "out of memory");

    } else if (sqlite3_prepare_v2(db->sqlite, list, -1, &stmt, NULL)
               != SQLITE_OK)
    {
        rc = ngx_mcp_db_fail(db, "cannot be read");

    } else {
        rc = ngx_mcp_db_same_tables(db, stmt, ref_stmt);
    }

    (void) sqlite3_finalize(stmt);
    (void) sqlite3_finalize(ref_stmt);
    (void) sqlite3_close_v2(ref);

    return rc;
}


static ngx_int_t
ngx_mcp_db_same_tables(ngx_mcp_db_t *db, sqlite3_stmt *stmt,
    sqlite3_stmt *ref_stmt)
{
    int          i, rc, expected;
    const char  *a, *b;

    do {
        rc = sqlite3_step(stmt);
        expected = sqlite3_step(ref_stmt);

        if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
            return ngx_mcp_db_fail(db, "cannot be read");
        }

        for (i = 0; rc == SQLITE_ROW && rc == expected && i < 4; i++) {
            a = (char *) sqlite3_column_text(stmt, i);
            b = (char *) sqlite3_column_text(ref_stmt, i);

            if ((a == NULL) != (b == NULL) || (a && ngx_strcmp(a, b) != 0)) {
                expected = SQLITE_ERROR;
            }
        }

        if (rc != expected) {
            /* names from another schema are not logged */
            (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                    "has a schema that was changed by another "
                                    "program");
            return NGX_ERROR;
        }

    } while (rc == SQLITE_ROW);

    return NGX_OK;
}


static int
ngx_mcp_db_steps_execute(sqlite3 *sqlite, int64_t from, int64_t to)
{
    int  rc;

    for (rc = SQLITE_OK; rc == SQLITE_OK && from < to; from++) {
        rc = sqlite3_exec(sqlite, ngx_mcp_db_steps[from], NULL, NULL, NULL);
    }

    return rc;
}


/*
 * Runs all missing steps, or none.  A new database gets its instance in the
 * same transaction, since the process may die before it writes more.  If this
 * fails, the caller closes the database, which rolls back.
 */

static ngx_int_t
ngx_mcp_db_migrate(ngx_mcp_db_t *db, int64_t version)
{
    char  sql[256];

    if (version == NGX_MCP_DB_VERSION) {
        return NGX_OK;
    }

    if (ngx_mcp_db_begin(db) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_mcp_db_steps_execute(db->sqlite, version, NGX_MCP_DB_VERSION)
        != SQLITE_OK)
    {
        return ngx_mcp_db_fail(db, "cannot be initialized");
    }

    if (version == 0 && db->instance) {
        (void) sqlite3_snprintf(sizeof(sql), sql,
                                "INSERT INTO meta VALUES"
                                " ('instance', '%016llx'),"
                                " ('secret', '%016llx%016llx')",
                                (unsigned long long) db->instance,
                                (unsigned long long) db->secret[0],
                                (unsigned long long) db->secret[1]);

        if (ngx_mcp_db_exec(db, sql, "cannot be initialized") != NGX_OK) {
            return NGX_ERROR;
        }
    }

    (void) sqlite3_snprintf(sizeof(sql), sql,
                            "PRAGMA application_id = %d;"
                            "PRAGMA user_version = %d; COMMIT",
                            NGX_MCP_DB_APPLICATION,
                            NGX_MCP_DB_VERSION);

    return ngx_mcp_db_exec(db, sql, "cannot be initialized");
}


#endif /* NGX_MCP_SQLITE */
