
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Opening, checking and configuring a database. */


#include "ngx_mcp_db.h"


#if (NGX_MCP_SQLITE)

#include <sqlite3.h>


/* offsets in the header of a database file */
#define NGX_MCP_DB_MAGIC        "SQLite format 3"
#define NGX_MCP_DB_HEADER       100
#define NGX_MCP_DB_FORMAT_AT    18
#define NGX_MCP_DB_VERSION_AT   60
#define NGX_MCP_DB_APP_AT       68

/* the format with a write-ahead log */
#define NGX_MCP_DB_WAL          2

/* virtual machine instructions between two checks of the time limit */
#define NGX_MCP_DB_STEPS        100000

/* older versions lack it, but ngx_mcp_db_check() refuses links as well */
#ifndef SQLITE_OPEN_NOFOLLOW
#define SQLITE_OPEN_NOFOLLOW               0
#endif


static ngx_uint_t ngx_mcp_db_beside(ngx_mcp_db_t *db, const char *suffix);
static ngx_int_t ngx_mcp_db_make(ngx_mcp_db_t *db);
static ngx_int_t ngx_mcp_db_setup(ngx_mcp_db_t *db);
static void ngx_mcp_db_limit(ngx_mcp_db_t *db);
static int ngx_mcp_db_progress(void *data);
static uint64_t ngx_mcp_db_now(void);
static ngx_int_t ngx_mcp_db_wal(ngx_mcp_db_t *db);
static ngx_int_t ngx_mcp_db_mode(ngx_mcp_db_t *db, const char *sql,
    char mode[8]);
static ngx_int_t ngx_mcp_db_sync_dir(ngx_mcp_db_t *db);
static ngx_int_t ngx_mcp_db_files(ngx_mcp_db_t *db);


/* sets db->error from SQLite's last error; always returns NGX_ERROR */

ngx_int_t
ngx_mcp_db_fail(ngx_mcp_db_t *db, const char *what)
{
    const char  *why;

    if (db->sqlite == NULL) {
        why = "out of memory";

    } else if (sqlite3_errcode(db->sqlite) == SQLITE_INTERRUPT) {
        why = "timed out";

    } else {
        why = sqlite3_errmsg(db->sqlite);
    }

    (void) sqlite3_snprintf(sizeof(db->error), db->error, "%s: %s", what, why);

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


/*
 * Whether there is a file with this suffix that is not empty, or that is not a
 * regular file.
 */

static ngx_uint_t
ngx_mcp_db_beside(ngx_mcp_db_t *db, const char *suffix)
{
    char         path[NGX_MAX_PATH + 16];
    struct stat  sb;

    (void) sqlite3_snprintf(sizeof(path), path, "%s%s", db->path, suffix);

    return lstat(path, &sb) == 0 && (sb.st_size || !S_ISREG(sb.st_mode));
}


/*
 * Checks the file without SQLite, which might create files.  NGX_DECLINED: it
 * does not exist.
 */

ngx_int_t
ngx_mcp_db_check(ngx_mcp_db_t *db)
{
    u_char    buf[NGX_MCP_DB_HEADER];
    ssize_t   n;
    ngx_fd_t  fd;
    int32_t   version;
    uint32_t  app;

    fd = open(db->path, O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOFOLLOW);

    if (fd == -1) {
        if (ngx_errno == NGX_ENOENT) {
            return NGX_DECLINED;
        }

        if (ngx_errno == NGX_ELOOP) {
            /* the log would be elsewhere, and the lock file not unique */
            (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                    "is a symbolic link; only its directory "
                                    "may be one");
            return NGX_ERROR;
        }

        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "cannot be opened: %s", strerror(ngx_errno));
        return NGX_ERROR;
    }

    n = read(fd, buf, sizeof(buf));
    (void) close(fd);

    if (ngx_mcp_db_beside(db, "-journal")) {

        if (n == (ssize_t) sizeof(buf)
            && (buf[NGX_MCP_DB_FORMAT_AT] == NGX_MCP_DB_WAL
                || buf[NGX_MCP_DB_FORMAT_AT + 1] == NGX_MCP_DB_WAL))
        {
            /* SQLite would roll it back, and delete a file named in it */
            (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                    "has a \"-journal\" file that does not "
                                    "belong to it");
            return NGX_ERROR;
        }

        /* an interrupted creation, which SQLite rolls back */
        return NGX_OK;
    }

    if (n == 0) {
        /* nothing was written yet */
        return NGX_OK;
    }

    if (n != (ssize_t) sizeof(buf)
        || ngx_memcmp(buf, NGX_MCP_DB_MAGIC,
                      sizeof(NGX_MCP_DB_MAGIC))
           != 0)
    {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "is not an SQLite database");
        return NGX_ERROR;
    }

    ngx_memcpy(&app, buf + NGX_MCP_DB_APP_AT, 4);
    ngx_memcpy(&version, buf + NGX_MCP_DB_VERSION_AT, 4);
    app = ntohl(app);
    version = (int32_t) ntohl((uint32_t) version);

    if (app == 0 && version == 0
        && ngx_mcp_db_beside(db, "-wal"))
    {
        /* the header may still be in the log */
        return NGX_OK;
    }

    if (app != NGX_MCP_DB_APPLICATION) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "is not a database of the mcp_tasks module");
        return NGX_ERROR;
    }

    if (version < 0 || version > NGX_MCP_DB_VERSION) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "has schema version %d, but this module "
                                "supports only versions up to %d",
                                version, NGX_MCP_DB_VERSION);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* creates the database if it does not exist; closes it again on failure */

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

    ngx_mcp_db_deadline(db, 1);

    if (ngx_mcp_db_setup(db) != NGX_OK
        || ngx_mcp_db_prepare(db) != NGX_OK
        || ngx_mcp_db_files(db) != NGX_OK)
    {
        ngx_mcp_db_close(db);
        return NGX_ERROR;
    }

    ngx_mcp_db_deadline(db, 0);

    return NGX_OK;
}


/* an empty file that only the worker processes can read */

static ngx_int_t
ngx_mcp_db_make(ngx_mcp_db_t *db)
{
    ngx_fd_t  fd;

    fd = open(db->path, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600);

    if (fd == -1) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "cannot be created: %s", strerror(ngx_errno));
        return NGX_ERROR;
    }

    (void) close(fd);

    db->created = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_db_setup(ngx_mcp_db_t *db)
{
    ngx_mcp_db_limit(db);

    if (ngx_mcp_db_sync(db) != NGX_OK
        || ngx_mcp_db_exec(db,
                           "PRAGMA temp_store = MEMORY;"
                           "PRAGMA trusted_schema = OFF;"
                           "PRAGMA cell_size_check = ON;"
                           "PRAGMA mmap_size = 0;"
                           "PRAGMA journal_size_limit = 67108864",
                           "cannot be set up")
           != NGX_OK
        || ngx_mcp_db_schema(db) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /*
     * The schema comes first: then the main file of a new database has its
     * application id, and not only the log, and a database of another
     * application is not changed.
     */

    if (ngx_mcp_db_wal(db) != NGX_OK) {
        return NGX_ERROR;
    }

    /* the first read creates the log, whose inode is needed */

    return ngx_mcp_db_exec(db, "SELECT 1 FROM meta LIMIT 1", "cannot be read");
}


/* a modified file must not be able to run code, or to use too much memory */

static void
ngx_mcp_db_limit(ngx_mcp_db_t *db)
{
    ngx_uint_t  i;
    static struct {
        int  id;
        int  value;
    } limits[] = {
        { SQLITE_LIMIT_ATTACHED, 0 },
        { SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
        { SQLITE_LIMIT_WORKER_THREADS, 0 },
        { SQLITE_LIMIT_SQL_LENGTH, 65536 },
        { SQLITE_LIMIT_VDBE_OP, 65536 },
        { SQLITE_LIMIT_EXPR_DEPTH, 64 },
        { SQLITE_LIMIT_COLUMN, 128 },
        { SQLITE_LIMIT_COMPOUND_SELECT, 4 }
    };

    (void) sqlite3_busy_timeout(db->sqlite, NGX_MCP_DB_BUSY);
    (void) sqlite3_extended_result_codes(db->sqlite, 1);
    (void) sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void) sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0,
                             NULL);
#ifdef SQLITE_DBCONFIG_ENABLE_VIEW
    (void) sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
#endif

    for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        (void) sqlite3_limit(db->sqlite, limits[i].id, limits[i].value);
    }

    if (db->longest) {
        (void) sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH,
                             (int) ngx_min(ngx_max(db->longest, 1048576),
                                           1000000000));
    }

    sqlite3_progress_handler(db->sqlite, NGX_MCP_DB_STEPS,
                             ngx_mcp_db_progress, db);
}


static int
ngx_mcp_db_progress(void *data)
{
    ngx_mcp_db_t *db = data;

    return db->until && ngx_mcp_db_now() > db->until;
}


/*
 * Starts the time limit of NGX_MCP_DB_TIMEOUT for the next reads, or ends it.
 */

void
ngx_mcp_db_deadline(ngx_mcp_db_t *db, ngx_uint_t on)
{
    db->until = on ? ngx_mcp_db_now() + NGX_MCP_DB_TIMEOUT : 0;
}


static uint64_t
ngx_mcp_db_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


/*
 * The switch to a write-ahead log would leave a journal after a crash, which
 * ngx_mcp_db_check() refuses, so the journal is in memory: only one sector is
 * written.  The removal of an earlier journal has to be durable first.
 */

static ngx_int_t
ngx_mcp_db_wal(ngx_mcp_db_t *db)
{
    char  mode[8];

    if (ngx_mcp_db_mode(db, "PRAGMA journal_mode", mode) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_strcmp(mode, "wal") == 0) {
        return NGX_OK;
    }

    if (ngx_mcp_db_sync_dir(db) != NGX_OK
        || ngx_mcp_db_mode(db, "PRAGMA journal_mode = MEMORY", mode) != NGX_OK
        || ngx_mcp_db_mode(db, "PRAGMA journal_mode = WAL", mode) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_strcmp(mode, "wal") != 0) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "cannot use a write-ahead log here");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_db_mode(ngx_mcp_db_t *db, const char *sql, char mode[8])
{
    int            rc;
    sqlite3_stmt  *stmt;

    if (sqlite3_prepare_v2(db->sqlite, sql, -1, &stmt, NULL) != SQLITE_OK) {
        return ngx_mcp_db_fail(db, "cannot be read");
    }

    rc = sqlite3_step(stmt);
    mode[0] = '\0';

    if (rc == SQLITE_ROW) {
        (void) sqlite3_snprintf(8, mode, "%s", sqlite3_column_text(stmt, 0));
    }

    (void) sqlite3_finalize(stmt);

    return (rc == SQLITE_ROW) ? NGX_OK : ngx_mcp_db_fail(db, "cannot be read");
}


static ngx_int_t
ngx_mcp_db_sync_dir(ngx_mcp_db_t *db)
{
    int       rc;
    char      dir[NGX_MAX_PATH + 1], *slash;
    ngx_fd_t  fd;

    (void) sqlite3_snprintf(sizeof(dir), dir, "%s", db->path);
    slash = strrchr(dir, '/');

    if (slash == NULL || db->sync == NGX_MCP_SYNC_OFF) {
        return NGX_OK;
    }

    slash[slash == dir] = '\0';
    fd = open(dir, O_RDONLY|O_CLOEXEC|O_DIRECTORY);
    rc = (fd == -1) ? -1 : fsync(fd);

    if (rc == -1) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "is in a directory that cannot be synced: %s",
                                strerror(ngx_errno));
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return (rc == -1) ? NGX_ERROR : NGX_OK;
}


/* sets the sync mode; not allowed within a transaction */

ngx_int_t
ngx_mcp_db_sync(ngx_mcp_db_t *db)
{
    db->synced = db->sync;

    return ngx_mcp_db_exec(db,
                           db->sync == NGX_MCP_SYNC_OFF
                           ? "PRAGMA synchronous = OFF"
                           : "PRAGMA synchronous = FULL", "cannot be set up");
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
    ngx_uint_t      i;
    sqlite3_stmt  **stmt[] = {
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


/* remembers the files, so that ngx_mcp_db_same() detects other ones */

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


/* whether the path still refers to the files that are open */

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
                                "has another write-ahead log than before");
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
                                "is missing: %s",
                                strerror(ngx_errno));
        return NGX_ERROR;
    }

    if (stat(name, wal) == -1) {
        (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                "has no write-ahead log any more: %s",
                                strerror(ngx_errno));
        return NGX_ERROR;
    }

    return NGX_OK;
}


#endif /* NGX_MCP_SQLITE */
