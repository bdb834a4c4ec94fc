
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Ownership of a database: a zone takes it, loads its tasks, shares it with
 * all processes that use the same memory, and releases it.
 */


#include "ngx_mcp_sqlite.h"
#include "ngx_mcp_subprocess.h"
#include "ngx_mcp_shm.h"
#include "ngx_mcp_signal.h"


#if (NGX_MCP_SQLITE_STORE)


/* ms, a little more than SQLite may take */
#define NGX_MCP_ATTACH_TIMEOUT  (NGX_MCP_DB_TIMEOUT + 5000)


static ngx_int_t ngx_mcp_attach_first(void *data);
static ngx_int_t ngx_mcp_attach_check(ngx_mcp_zone_t *zone,
    ngx_cycle_t *cycle);
static ngx_uint_t ngx_mcp_attach_join(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_attach_take(ngx_mcp_zone_t *zone, ngx_log_t *log);
static ngx_int_t ngx_mcp_attach_again(ngx_mcp_zone_t *zone, ngx_log_t *log);
static ngx_int_t ngx_mcp_attach_owned(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_attach_own(ngx_mcp_zone_t *zone, ngx_fd_t fd,
    ngx_log_t *log);


/*
 * Called in the master for a new zone.  If no other instance has the database,
 * the zone is loaded before requests are served; otherwise worker processes
 * load it as soon as they can.  The files belong to the worker processes, and
 * the master must not read them as root, so a process with their rights does
 * it.
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


/* runs in a subprocess, with the rights of a worker process */

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

    /* worker processes open the file themselves */

    (void) close(fd);

    return rc;
}


/* checks the database without creating or changing a file */

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


/*
 * Tries to take or share the database.  NGX_OK: the zone has its tasks and is
 * ready.  NGX_DECLINED: another instance still has it, or the process exits.
 * NGX_ERROR: it cannot be used.
 */

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

    if (st->wanted) {
        (void) ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_WANTED, F_UNLCK);
        st->wanted = 0;
    }

    zone->ready = 1;
    st->logged = 0;

    return NGX_OK;
}


/*
 * Whether another process of this instance has loaded the zone: shares its
 * lock.
 */

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


/*
 * Takes the lock exclusively until the zone is loaded, and shares it
 * afterwards.
 */

static ngx_int_t
ngx_mcp_attach_take(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    ngx_int_t          rc;
    ngx_mcp_save_t    *sv;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    sv = ngx_mcp_save_of(zone->table);

    if (!st->wanted) {
        (void) ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_WANTED, F_RDLCK);
        st->wanted = 1;
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

    } /* else: another process of this instance was faster */

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


/* closing the lock file releases all of its locks */

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
    st->wanted = 0;
}


/*
 * The zone has tasks, but the lock file does not name its instance.  Somebody
 * may have removed the lock file, and other processes of this instance still
 * have the old one.  If the database belongs to this instance, the new lock
 * file is used.  If it belongs to another instance, the zone is loaded again,
 * but only if it is still the same lock file: then no process uses the tasks
 * that are discarded.
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

    rc = ngx_mcp_attach_owned(zone);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_OK) {
        writer = (ngx_pid_t) sv->writer;

        if (writer && writer != ngx_pid
            && (kill(writer, 0) == 0 || ngx_errno != NGX_ESRCH))
        {
            /* it will notice soon that its lock file is gone */
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


/*
 * NGX_OK: the database belongs to this instance, or does not exist.
 * NGX_DECLINED: it belongs to another instance.
 */

static ngx_int_t
ngx_mcp_attach_owned(ngx_mcp_zone_t *zone)
{
    uint64_t           instance;
    ngx_int_t          rc;
    struct stat        sb;
    ngx_mcp_db_t      *db;
    ngx_mcp_save_t    *sv;

    db = &ngx_mcp_sqlite_of(zone)->db;
    sv = ngx_mcp_save_of(zone->table);

    if (stat(db->path, &sb) == -1 && ngx_errno == NGX_ENOENT) {
        /* the writer creates a new one */
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
 * Loads the zone, and makes its new instance the owner of the database and of
 * the lock file.  The caller has locked NGX_MCP_LOCK_ZONE exclusively.  Takes
 * the lock of the table.
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

    /* a single transaction: nobody can commit in between */

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

        /* other processes of this instance wait for it */
        ngx_mcp_signal_all_locked(t);
        ngx_mcp_unlock(t);
    }

    ngx_mcp_db_close(db);

    return rc;
}


#endif /* NGX_MCP_SQLITE_STORE */
