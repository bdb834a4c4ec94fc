
/*
 * Whose a database is: a zone gets it, fills itself from it, shares it with
 * the processes that have the same memory, and lets go of it.
 */


#include "ngx_mcp_sqlite.h"
#include "ngx_mcp_subprocess.h"
#include "ngx_mcp_shm.h"
#include "ngx_mcp_signal.h"


#if (NGX_MCP_SQLITE_STORE)


/* a little more than SQLite itself is given, in ms */
#define NGX_MCP_ATTACH_TIMEOUT  (NGX_MCP_DB_PATIENCE + 5000)


static ngx_int_t ngx_mcp_attach_first(void *data);
static ngx_int_t ngx_mcp_attach_check(ngx_mcp_zone_t *zone,
    ngx_cycle_t *cycle);
static ngx_uint_t ngx_mcp_attach_join(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_attach_take(ngx_mcp_zone_t *zone, ngx_log_t *log);
static ngx_int_t ngx_mcp_attach_again(ngx_mcp_zone_t *zone, ngx_log_t *log);
static ngx_int_t ngx_mcp_attach_ours(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_attach_own(ngx_mcp_zone_t *zone, ngx_fd_t fd,
    ngx_log_t *log);


/*
 * In the master, when the zone is new.  If nobody has the database, the zone
 * is filled before anybody asks for something; else workers will do it as
 * soon as they can.  The files are the workers', so the master leaves them to
 * a process with their rights.
 */

ngx_int_t
ngx_mcp_attach_zone(ngx_mcp_zone_t *zone)
{
    ngx_int_t          rc;
    const char        *why;
    ngx_cycle_t       *cycle;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    cycle = st->cycle;

    if (ngx_mcp_path_check(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_subprocess(cycle, ngx_mcp_attach_first, zone,
                            NGX_MCP_ATTACH_TIMEOUT, &why);

    if (rc == NGX_ABORT) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the store \"%V\" of zone \"%V\" could not be read: %s",
                      &st->path, &zone->name, why);
    }

    return (rc == NGX_OK) ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_mcp_attach_first(void *data)
{
    ngx_mcp_zone_t *zone = data;

    ngx_fd_t           fd;
    ngx_int_t          rc;
    ngx_cycle_t       *cycle;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    cycle = st->cycle;

    if (ngx_mcp_attach_check(zone, cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_test_config) {
        return NGX_OK;
    }

    fd = ngx_mcp_lockfile_open(zone, cycle->log);
    if (fd == -1) {
        return NGX_ERROR;
    }

    rc = NGX_OK;

    if (ngx_mcp_lockfile_lock(fd, NGX_MCP_LOCK_ZONE, F_WRLCK) == NGX_OK) {
        rc = ngx_mcp_attach_own(zone, fd, cycle->log);

        if (rc != NGX_OK) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "tasks of zone \"%V\" cannot be loaded: \"%V\" %s",
                          &zone->name, &st->path, st->db.error);
        }
    }

    /* a worker process has its own */

    (void) close(fd);

    return rc;
}


/* what can be known without touching anything */

static ngx_int_t
ngx_mcp_attach_check(ngx_mcp_zone_t *zone, ngx_cycle_t *cycle)
{
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;

    if (ngx_mcp_db_check(&st->db) == NGX_ERROR) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the store of zone \"%V\" cannot be used: \"%V\" %s",
                      &zone->name, &st->path, st->db.error);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* NGX_OK: from now on the zone is what the database has, and ours */

ngx_int_t
ngx_mcp_attach_try(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    ngx_int_t          rc;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;

    if (ngx_exiting) {
        return NGX_DECLINED;
    }

    if (ngx_mcp_lockfile_lost(zone)) {
        ngx_mcp_attach_leave(zone);
    }

    if (st->fd == -1) {
        st->fd = ngx_mcp_lockfile_open(zone, log);

        if (st->fd == -1) {
            return NGX_ERROR;
        }
    }

    if (!ngx_mcp_attach_join(zone)) {
        rc = ngx_mcp_attach_take(zone, log);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (st->wanting) {
        (void) ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_WANTED, F_UNLCK);
        st->wanting = 0;
    }

    zone->ready = 1;
    st->logged = 0;

    return NGX_OK;
}


/* another process of ours has filled the zone: its lock is shared */

static ngx_uint_t
ngx_mcp_attach_join(ngx_mcp_zone_t *zone)
{
    ngx_fd_t  fd;
    uint64_t  instance;

    fd = ngx_mcp_sqlite_of(zone)->fd;

    if (ngx_mcp_lockfile_lock(fd, NGX_MCP_LOCK_ZONE, F_RDLCK) != NGX_OK) {
        return 0;
    }

    instance = ngx_mcp_save_of(zone->table)->instance;

    if (instance && instance == ngx_mcp_lockfile_instance(fd)) {
        return 1;
    }

    (void) ngx_mcp_lockfile_lock(fd, NGX_MCP_LOCK_ZONE, F_UNLCK);

    return 0;
}


/* nobody else may have the lock, up to when the zone is filled */

static ngx_int_t
ngx_mcp_attach_take(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    ngx_int_t          rc;
    ngx_mcp_save_t    *sv;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    sv = ngx_mcp_save_of(zone->table);

    if (!st->wanting) {
        (void) ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_WANTED, F_RDLCK);
        st->wanting = 1;
    }

    if (ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_ZONE, F_WRLCK) != NGX_OK) {
        if (!st->logged) {
            st->logged = 1;
            ngx_log_error(NGX_LOG_NOTICE, log, 0,
                          "zone \"%V\" waits until other processes release "
                          "the store \"%V\"", &zone->name, &st->path);
        }

        return NGX_DECLINED;
    }

    rc = NGX_OK;

    if (sv->instance == 0) {
        rc = ngx_mcp_attach_own(zone, st->fd, log);

    } else if (sv->instance != ngx_mcp_lockfile_instance(st->fd)) {
        rc = ngx_mcp_attach_again(zone, log);

    } /* else: another process of ours was faster */

    if (rc != NGX_OK) {
        (void) ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_ZONE, F_UNLCK);

        if (rc == NGX_ERROR) {
            ngx_mcp_writer_failed(zone, st->db.error);
        }

        return rc;
    }

    (void) ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_ZONE, F_RDLCK);

    return NGX_OK;
}


void
ngx_mcp_attach_leave(ngx_mcp_zone_t *zone)
{
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;

    if (st->fd != -1) {
        (void) close(st->fd);
        st->fd = -1;
    }

    zone->ready = 0;
    st->wanting = 0;
}


/*
 * The zone has tasks, and the lock is not its own.  That alone says little:
 * somebody may have removed the old one, which others of our processes still
 * have.  If the database is ours, so is the new lock.  If it is another
 * zone's, ours is filled anew, but only if it is the same lock: then nobody
 * works with what would be thrown away.
 */

static ngx_int_t
ngx_mcp_attach_again(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    ngx_int_t          rc;
    ngx_pid_t          writer;
    struct stat        sb;
    ngx_mcp_save_t    *sv;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    sv = ngx_mcp_save_of(zone->table);

    rc = ngx_mcp_attach_ours(zone);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_OK) {
        writer = (ngx_pid_t) sv->writer;

        if (writer && writer != ngx_pid
            && (kill(writer, 0) == 0 || ngx_errno != NGX_ESRCH))
        {
            /* it sees soon that its lock is gone */
            return NGX_DECLINED;
        }

        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "the lock file \"%V\" of zone \"%V\" was removed, "
                      "a new one is used", &st->lock, &zone->name);

        return ngx_mcp_lockfile_name(zone, st->fd, sv->instance);
    }

    if (fstat(st->fd, &sb) == -1
        || sv->lock_device != (uint64_t) sb.st_dev
        || sv->lock_inode != (uint64_t) sb.st_ino)
    {
        (void) ngx_cpystrn((u_char *) st->db.error,
                           (u_char *) "and its lock file were replaced; "
                           "restart nginx to load the new database",
                           sizeof(st->db.error));
        return NGX_ERROR;
    }

    return ngx_mcp_attach_own(zone, st->fd, log);
}


/* NGX_DECLINED: the database is not, or not any more, that of our zone */

static ngx_int_t
ngx_mcp_attach_ours(ngx_mcp_zone_t *zone)
{
    uint64_t           instance;
    ngx_int_t          rc;
    struct stat        sb;
    ngx_mcp_db_t      *db;
    ngx_mcp_save_t    *sv;

    db = &ngx_mcp_sqlite_of(zone)->db;
    sv = ngx_mcp_save_of(zone->table);

    if (stat(db->path, &sb) == -1 && ngx_errno == NGX_ENOENT) {
        /* the writer makes another */
        return NGX_OK;
    }

    db->instance = sv->instance;
    db->secret[0] = zone->secret[0];
    db->secret[1] = zone->secret[1];

    if (ngx_mcp_db_open(db) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_db_get(db, "instance", &instance, 1);

    if (rc == NGX_OK && instance != sv->instance) {
        rc = NGX_DECLINED;
    }

    ngx_mcp_db_close(db);

    return rc;
}


/*
 * Nobody else has the database now.  Its contents become the zone's, and the
 * zone's instance that of both files.
 */

static ngx_int_t
ngx_mcp_attach_own(ngx_mcp_zone_t *zone, ngx_fd_t fd, ngx_log_t *log)
{
    uint64_t           instance;
    ngx_int_t          rc;
    ngx_mcp_db_t      *db;
    ngx_mcp_table_t   *t;
    ngx_mcp_save_t    *sv;

    db = &ngx_mcp_sqlite_of(zone)->db;
    t = zone->table;
    sv = ngx_mcp_save_of(t);

    if (ngx_mcp_random_token(&instance) != NGX_OK) {
        return NGX_ERROR;
    }

    db->instance = instance;
    db->secret[0] = zone->secret[0];
    db->secret[1] = zone->secret[1];

    if (ngx_mcp_db_open(db) != NGX_OK) {
        return NGX_ERROR;
    }

    /* one transaction, so that nobody's commit comes between */

    rc = ngx_mcp_db_begin(db);

    if (rc == NGX_OK) {
        rc = ngx_mcp_fill(zone, db, instance, log);
        rc = ngx_mcp_db_commit(db, rc);
    }

    if (rc == NGX_OK) {
        sv->device = db->device;
        sv->inode = db->inode;
        t->sh->disk.up = 1;
        t->sh->disk.error[0] = '\0';
        sv->writer = 0;

        rc = ngx_mcp_lockfile_name(zone, fd, instance);
    }

    if (rc == NGX_OK) {
        ngx_mcp_lock(t);
        sv->instance = instance;

        /* other processes of ours wait for this */
        ngx_mcp_signal_all_locked(t);
        ngx_mcp_unlock(t);
    }

    ngx_mcp_db_close(db);

    return rc;
}


#endif /* NGX_MCP_SQLITE_STORE */
