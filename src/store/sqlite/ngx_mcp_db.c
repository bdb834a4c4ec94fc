
#include "ngx_mcp_db.h"


#if (NGX_MCP_SQLITE)

#include <sqlite3.h>


/* where the header of the file says what it is */
#define NGX_MCP_DB_MAGIC        "SQLite format 3"
#define NGX_MCP_DB_HEADER       100
#define NGX_MCP_DB_VERSION_AT   60
#define NGX_MCP_DB_APP_AT       68

/* older versions have it not, but links were looked for already */
#ifndef SQLITE_OPEN_NOFOLLOW
#define SQLITE_OPEN_NOFOLLOW               0
#endif


static ngx_uint_t ngx_mcp_db_beside(ngx_mcp_db_t *db, const char *suffix);
static ngx_int_t ngx_mcp_db_make(ngx_mcp_db_t *db);
static ngx_int_t ngx_mcp_db_setup(ngx_mcp_db_t *db);
static ngx_int_t ngx_mcp_db_schema(ngx_mcp_db_t *db);
static ngx_int_t ngx_mcp_db_migrate(ngx_mcp_db_t *db, int64_t version);
static ngx_int_t ngx_mcp_db_files(ngx_mcp_db_t *db);


/*
 * A step for each version.  Of a task, the row in "task" has all but its
 * bytes, so that a change does not have to write them again; those are in
 * "payload", whose key is eight times that of the task, plus their kind.  The
 * view "tasks" is for people.
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

    /* the changes of state, as history.h has them */

    "ALTER TABLE task ADD COLUMN history BLOB;"
};


/* what there is now: the one that the text above leads to */

typedef char  ngx_mcp_db_steps_fit[
    sizeof(ngx_mcp_db_steps) / sizeof(char *) == NGX_MCP_DB_VERSION ? 1 : -1
];


ngx_int_t
ngx_mcp_db_fail(ngx_mcp_db_t *db, const char *what)
{
    (void) sqlite3_snprintf(sizeof(db->error), db->error, "%s: %s", what,
                            db->sqlite ? sqlite3_errmsg(db->sqlite)
                                       : "out of memory");
    return NGX_ERROR;
}


ngx_int_t
ngx_mcp_db_exec(ngx_mcp_db_t *db, const char *sql, const char *what)
{
    if (sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return ngx_mcp_db_fail(db, what);
    }

    return NGX_OK;
}


/* whether there is something in a file beside it */

static ngx_uint_t
ngx_mcp_db_beside(ngx_mcp_db_t *db, const char *suffix)
{
    char         path[NGX_MAX_PATH + 16];
    struct stat  sb;

    (void) sqlite3_snprintf(sizeof(path), path, "%s%s", db->path, suffix);

    return stat(path, &sb) == 0 && sb.st_size;
}


/*
 * Without touching anything: to open a database may make files.  NGX_DECLINED:
 * there is none.
 */

ngx_int_t
ngx_mcp_db_check(ngx_mcp_db_t *db)
{
    u_char    buf[NGX_MCP_DB_HEADER];
    ssize_t   n;
    ngx_fd_t  fd;
    uint32_t  app, version;

    fd = open(db->path, O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOFOLLOW);

    if (fd == -1) {
        if (ngx_errno == NGX_ENOENT) {
            return NGX_DECLINED;
        }

        if (ngx_errno == NGX_ELOOP) {
            /* its log would be elsewhere, and the lock not the only one */
            (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                    "is a symbolic link; only directories "
                                    "may be links");
            return NGX_ERROR;
        }

        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "cannot be opened: %s", strerror(ngx_errno));
        return NGX_ERROR;
    }

    n = read(fd, buf, sizeof(buf));
    (void) close(fd);

    if (n == 0 || ngx_mcp_db_beside(db, "-journal")) {
        /* nothing was ever written, or it will be seen when it is opened */
        return NGX_OK;
    }

    if (n != (ssize_t) sizeof(buf)
        || ngx_memcmp(buf, NGX_MCP_DB_MAGIC,
                      sizeof(NGX_MCP_DB_MAGIC))
           != 0)
    {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "is not a database");
        return NGX_ERROR;
    }

    ngx_memcpy(&app, buf + NGX_MCP_DB_APP_AT, 4);
    ngx_memcpy(&version, buf + NGX_MCP_DB_VERSION_AT, 4);
    app = ntohl(app);
    version = ntohl(version);

    if (app == 0 && version == 0
        && ngx_mcp_db_beside(db, "-wal"))
    {
        /* the log may say more */
        return NGX_OK;
    }

    if (app != NGX_MCP_DB_APPLICATION) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "is not a database of mcp_tasks");
        return NGX_ERROR;
    }

    if (version > NGX_MCP_DB_VERSION) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "has version %u of the schema, and this "
                                "module knows no later one than %d",
                                version, NGX_MCP_DB_VERSION);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_db_open(ngx_mcp_db_t *db)
{
    int        rc;
    sqlite3   *sqlite;
    ngx_int_t  n;

    db->created = 0;
    db->error[0] = '\0';

    n = ngx_mcp_db_check(db);

    if (n == NGX_DECLINED) {
        n = ngx_mcp_db_make(db);
    }

    if (n != NGX_OK) {
        return NGX_ERROR;
    }

    sqlite = NULL;
    rc = sqlite3_open_v2(db->path, &sqlite,
                         SQLITE_OPEN_READWRITE|SQLITE_OPEN_NOMUTEX
                         |SQLITE_OPEN_NOFOLLOW, NULL);
    db->sqlite = sqlite;

    if (rc != SQLITE_OK) {
        (void) ngx_mcp_db_fail(db, "cannot be opened");
        ngx_mcp_db_close(db);
        return NGX_ERROR;
    }

    if (ngx_mcp_db_setup(db) != NGX_OK
        || ngx_mcp_db_prepare(db) != NGX_OK
        || ngx_mcp_db_files(db) != NGX_OK)
    {
        ngx_mcp_db_close(db);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* an empty file, for nobody else's eyes */

static ngx_int_t
ngx_mcp_db_make(ngx_mcp_db_t *db)
{
    ngx_fd_t  fd;

    fd = open(db->path, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600);

    if (fd == -1
        || (db->user != (ngx_uid_t) -1
            && fchown(fd, db->user, db->group) == -1))
    {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "cannot be created: %s", strerror(ngx_errno));
        if (fd != -1) {
            (void) close(fd);
        }

        return NGX_ERROR;
    }

    (void) close(fd);

    db->created = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_db_setup(ngx_mcp_db_t *db)
{
    int            rc;
    char           mode[8];
    sqlite3_stmt  *stmt;

    (void) sqlite3_busy_timeout(db->sqlite, NGX_MCP_DB_BUSY);
    (void) sqlite3_extended_result_codes(db->sqlite, 1);
    (void) sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);

    if (ngx_mcp_db_sync(db) != NGX_OK
        || ngx_mcp_db_exec(db,
                           "PRAGMA temp_store = MEMORY;"
                           "PRAGMA trusted_schema = OFF;"
                           "PRAGMA journal_size_limit = 67108864",
                           "cannot be set up")
           != NGX_OK
        || ngx_mcp_db_schema(db) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /*
     * Only now, so that the header of a new database has what it is known by,
     * and not just its log; and so that others' stay as they are.
     */

    if (sqlite3_prepare_v2(db->sqlite, "PRAGMA journal_mode = WAL", -1, &stmt,
                           NULL)
        != SQLITE_OK)
    {
        return ngx_mcp_db_fail(db, "cannot be read");
    }

    rc = sqlite3_step(stmt);
    mode[0] = '\0';

    if (rc == SQLITE_ROW) {
        (void) sqlite3_snprintf(sizeof(mode), mode, "%s",
                                sqlite3_column_text(stmt, 0));
    }

    (void) sqlite3_finalize(stmt);

    if (rc != SQLITE_ROW) {
        return ngx_mcp_db_fail(db, "cannot be read");
    }

    if (ngx_strcmp(mode, "wal") != 0) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "cannot have a write-ahead log here");
        return NGX_ERROR;
    }

    /* the first look at it makes the log */

    return ngx_mcp_db_exec(db, "SELECT 1 FROM meta LIMIT 1", "cannot be read");
}


/* not within a transaction */

ngx_int_t
ngx_mcp_db_sync(ngx_mcp_db_t *db)
{
    db->synced = db->sync;

    return ngx_mcp_db_exec(db,
                           db->sync == NGX_MCP_SYNC_OFF
                           ? "PRAGMA synchronous = OFF"
                           : "PRAGMA synchronous = FULL", "cannot be set up");
}


static ngx_int_t
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
                                "is not a database of mcp_tasks");
        return NGX_ERROR;
    }

    if (version > NGX_MCP_DB_VERSION) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "has version %lld of the schema, and this "
                                "module knows no later one than %d",
                                (long long) version,
                                NGX_MCP_DB_VERSION);
        return NGX_ERROR;
    }

    return ngx_mcp_db_migrate(db, version);
}


/*
 * All steps that are missing, or none.  A new database says from the very
 * beginning whose it is: whoever made it may not live to write more.
 */

static ngx_int_t
ngx_mcp_db_migrate(ngx_mcp_db_t *db, int64_t version)
{
    char     sql[256];
    int64_t  was;

    if (version == NGX_MCP_DB_VERSION) {
        return NGX_OK;
    }

    if (ngx_mcp_db_begin(db) != NGX_OK) {
        return NGX_ERROR;
    }

    was = version;

    for ( /* void */ ; version < NGX_MCP_DB_VERSION; version++) {
        if (ngx_mcp_db_exec(db,
                            ngx_mcp_db_steps[version],
                            "its schema cannot be made")
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (was == 0 && db->instance) {
        (void) sqlite3_snprintf(sizeof(sql), sql,
                                "INSERT INTO meta VALUES"
                                " ('instance', '%016llx'),"
                                " ('secret', '%016llx%016llx')",
                                (unsigned long long) db->instance,
                                (unsigned long long) db->secret[0],
                                (unsigned long long) db->secret[1]);

        if (ngx_mcp_db_exec(db, sql, "its schema cannot be made") != NGX_OK) {
            return NGX_ERROR;
        }
    }

    (void) sqlite3_snprintf(sizeof(sql), sql,
                            "PRAGMA application_id = %d;"
                            "PRAGMA user_version = %d; COMMIT",
                            NGX_MCP_DB_APPLICATION,
                            NGX_MCP_DB_VERSION);

    return ngx_mcp_db_exec(db, sql, "its schema cannot be made");
}


ngx_int_t
ngx_mcp_db_number(ngx_mcp_db_t *db, const char *sql, int64_t *value)
{
    int            rc;
    sqlite3_stmt  *stmt;

    if (sqlite3_prepare_v2(db->sqlite, sql, -1, &stmt, NULL) != SQLITE_OK) {
        return ngx_mcp_db_fail(db, "cannot be read");
    }

    rc = sqlite3_step(stmt);
    *value = (rc == SQLITE_ROW) ? sqlite3_column_int64(stmt, 0) : 0;

    (void) sqlite3_finalize(stmt);

    if (rc != SQLITE_ROW) {
        return ngx_mcp_db_fail(db, "cannot be read");
    }

    return NGX_OK;
}


void
ngx_mcp_db_close(ngx_mcp_db_t *db)
{
    ngx_uint_t   i;
    sqlite3_stmt **stmt[] = {
        (sqlite3_stmt **) &db->task, (sqlite3_stmt **) &db->payload,
        (sqlite3_stmt **) &db->no_payload, (sqlite3_stmt **) &db->no_task,
        (sqlite3_stmt **) &db->no_payloads, (sqlite3_stmt **) &db->meta,
        (sqlite3_stmt **) &db->set_meta
    };

    for (i = 0; i < sizeof(stmt) / sizeof(stmt[0]); i++) {
        (void) sqlite3_finalize(*stmt[i]);
        *stmt[i] = NULL;
    }

    if (db->sqlite) {
        (void) sqlite3_close_v2(db->sqlite);
        db->sqlite = NULL;
    }
}


/* which files these are, so that others in their place are noticed */

static ngx_int_t
ngx_mcp_db_files(ngx_mcp_db_t *db)
{
    struct stat  st, wal;

    if (ngx_mcp_db_stat(db, &st, &wal) != NGX_OK) {
        return NGX_ERROR;
    }

    db->device = st.st_dev;
    db->inode = st.st_ino;
    db->wal = wal.st_ino;

    return NGX_OK;
}


ngx_int_t
ngx_mcp_db_same(ngx_mcp_db_t *db)
{
    struct stat  st, wal;

    if (ngx_mcp_db_stat(db, &st, &wal) != NGX_OK) {
        return NGX_ERROR;
    }

    if (st.st_dev != (dev_t) db->device || st.st_ino != (ino_t) db->inode) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "was replaced by another file");
        return NGX_ERROR;
    }

    if (wal.st_ino != (ino_t) db->wal) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "its write-ahead log was replaced");
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_db_stat(ngx_mcp_db_t *db, struct stat *st, struct stat *wal)
{
    char  name[NGX_MAX_PATH + 5];

    (void) sqlite3_snprintf(sizeof(name), name, "%s-wal", db->path);

    if (stat(db->path, st) == -1) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "is not there any more: %s",
                                strerror(ngx_errno));
        return NGX_ERROR;
    }

    if (stat(name, wal) == -1) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "its write-ahead log is not there any more: "
                                "%s", strerror(ngx_errno));
        return NGX_ERROR;
    }

    return NGX_OK;
}


#endif /* NGX_MCP_SQLITE */
