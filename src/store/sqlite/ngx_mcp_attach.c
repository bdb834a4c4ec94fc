
/*
 * Whose a database is: the locks beside it, what nginx is told before it
 * starts, and filling a zone.
 */


#include "ngx_mcp_stored.h"
#include "ngx_mcp_shm.h"
#include "ngx_mcp_signal.h"


#if (NGX_MCP_STORED)

#include <grp.h>


/*
 * Rows of tasks that expired are kept for a day, in ms: the clock may be wrong
 * when the machine has just started.
 */
#define NGX_MCP_ATTACH_KEEP    86400000

/* tasks that are loaded in one hold of the lock */
#define NGX_MCP_ATTACH_ROWS    1000

/* an instance in the lock file: a number, hexadecimal, and a line feed */
#define NGX_MCP_INSTANCE_LEN   17


typedef struct {
    ngx_mcp_table_t  *table;
    ngx_mcp_load_t    load;
    ngx_uint_t        n;
} ngx_mcp_filling_t;


static ngx_int_t ngx_mcp_attach_path(ngx_conf_t *cf, ngx_str_t *path);
static u_char *ngx_mcp_attach_dir(u_char *dir, ngx_str_t *path);
static ngx_int_t ngx_mcp_attach_check(ngx_mcp_zone_t *zone,
    ngx_cycle_t *cycle);
static ngx_uint_t ngx_mcp_attach_writable(const char *path,
    ngx_core_conf_t *ccf);
static ngx_fd_t ngx_mcp_attach_open(ngx_mcp_zone_t *zone, ngx_log_t *log);
static uint64_t ngx_mcp_attach_instance(ngx_fd_t fd);
static ngx_int_t ngx_mcp_attach_name(ngx_mcp_zone_t *zone, ngx_fd_t fd,
    uint64_t instance);
static ngx_int_t ngx_mcp_attach_again(ngx_mcp_zone_t *zone, ngx_log_t *log);
static ngx_int_t ngx_mcp_attach_ours(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_attach_own(ngx_mcp_zone_t *zone, ngx_fd_t fd,
    ngx_log_t *log);
static ngx_int_t ngx_mcp_attach_fill(ngx_mcp_zone_t *zone, ngx_mcp_db_t *db,
    uint64_t instance, ngx_log_t *log);
static ngx_int_t ngx_mcp_attach_row(void *data, ngx_mcp_record_t *rec);
static void ngx_mcp_attach_full(ngx_mcp_zone_t *zone, ngx_mcp_load_t *load,
    ngx_mcp_db_t *db);


/* the path is known, and whatever else was said */

ngx_int_t
ngx_mcp_attach_conf(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ngx_array_t *zones)
{
    u_char             *p;
    ngx_uint_t          i;
    ngx_mcp_zone_t    **z;
    ngx_mcp_stored_t   *st;

    st = zone->stored;

    if (ngx_conf_full_name(cf->cycle, &st->path, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    if (st->path.len < NGX_MAX_PATH
        && ngx_mcp_attach_path(cf, &st->path) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (st->path.len + sizeof("-lock") > NGX_MAX_PATH) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the path \"%V\" is too long", &st->path);
        return NGX_ERROR;
    }

    z = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        if (z[i]->store == zone->store && zone->store->same(zone, z[i])) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "the store \"%V\" is that of zone \"%V\" "
                               "already", &st->path, &z[i]->name);
            return NGX_ERROR;
        }
    }

    p = ngx_pnalloc(cf->pool, st->path.len + sizeof("-lock"));
    if (p == NULL) {
        return NGX_ERROR;
    }

    st->lock.data = p;
    p = ngx_cpymem(p, st->path.data, st->path.len);
    p = ngx_cpymem(p, "-lock", sizeof("-lock"));
    st->lock.len = p - st->lock.data - 1;

    st->cycle = cf->cycle;
    st->db.path = (char *) st->path.data;
    st->db.sync = st->sync;
    st->db.user = (ngx_uid_t) -1;
    st->db.group = (ngx_gid_t) -1;

    st->threads = ngx_thread_pool_add(cf, NULL);
    if (st->threads == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_stored_zone(zone);

    return NGX_OK;
}


/* whose files will be */

void
ngx_mcp_attach_user(ngx_mcp_zone_t *zone)
{
    ngx_core_conf_t   *ccf;
    ngx_mcp_stored_t  *st;

    st = zone->stored;
    ccf = (ngx_core_conf_t *) ngx_get_conf(st->cycle->conf_ctx,
                                           ngx_core_module);

    if (geteuid() == 0 && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT) {
        st->db.user = ccf->user;
        st->db.group = ccf->group;
    }
}


/*
 * In the master, when the zone is new.  If nobody has the database, the zone
 * is filled before anybody asks for something; else workers will do it as
 * soon as they can.
 */

ngx_int_t
ngx_mcp_attach_zone(ngx_mcp_zone_t *zone)
{
    ngx_fd_t           fd;
    ngx_int_t          rc;
    ngx_cycle_t       *cycle;
    ngx_mcp_stored_t  *st;

    st = zone->stored;
    cycle = st->cycle;

    /* until it is filled it has nothing, and saves nothing */

    zone->table->sh->durable = 1;

    if (ngx_mcp_attach_kept(zone) != NGX_OK
        || ngx_mcp_attach_check(zone, cycle) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_test_config) {
        return NGX_OK;
    }

    fd = ngx_mcp_attach_open(zone, cycle->log);
    if (fd == -1) {
        return NGX_ERROR;
    }

    rc = NGX_OK;

    if (ngx_mcp_attach_lock(fd, NGX_MCP_LOCK_ZONE, F_WRLCK) == NGX_OK) {
        rc = ngx_mcp_attach_own(zone, fd, cycle->log);

        if (rc != NGX_OK) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "zone \"%V\" cannot be filled: \"%V\" %s",
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
    ngx_mcp_stored_t  *st;

    st = zone->stored;

    if (ngx_mcp_db_check(&st->db) == NGX_ERROR) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the store of zone \"%V\" cannot be used: \"%V\" %s",
                      &zone->name, &st->path, st->db.error);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* and this also of a zone that there was before: the user may be another */

ngx_int_t
ngx_mcp_attach_kept(ngx_mcp_zone_t *zone)
{
    u_char             dir[NGX_MAX_PATH];
    struct stat        sb;
    ngx_log_t         *log;
    ngx_core_conf_t   *ccf;
    ngx_mcp_stored_t  *st;

    st = zone->stored;
    log = st->cycle->log;
    ccf = (ngx_core_conf_t *) ngx_get_conf(st->cycle->conf_ctx,
                                           ngx_core_module);

    (void) ngx_mcp_attach_dir(dir, &st->path);

    if (stat((char *) dir, &sb) == -1 || !S_ISDIR(sb.st_mode)) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "the directory \"%s\" of the store of zone \"%V\" is "
                      "not there", dir, &zone->name);
        return NGX_ERROR;
    }

    if (!ngx_mcp_attach_writable((char *) dir, ccf)
        || !ngx_mcp_attach_writable(st->db.path, ccf)
        || !ngx_mcp_attach_writable((char *) st->lock.data, ccf))
    {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "the store \"%V\" of zone \"%V\", or its directory, "
                      "cannot be written by worker processes", &st->path,
                      &zone->name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* the directory of a file; what is returned is the file's own name */

static u_char *
ngx_mcp_attach_dir(u_char *dir, ngx_str_t *path)
{
    size_t  len;

    len = path->len;

    while (len > 1 && path->data[len - 1] != '/') {
        len--;
    }

    (void) ngx_cpystrn(dir, path->data, ngx_max(len, 2));

    return path->data + len;
}


/* one file has one name, however its directory was spelled */

static ngx_int_t
ngx_mcp_attach_path(ngx_conf_t *cf, ngx_str_t *path)
{
    char    *real;
    u_char  *p, *name, dir[NGX_MAX_PATH];

    name = ngx_mcp_attach_dir(dir, path);
    real = realpath((char *) dir, NULL);

    if (real == NULL) {
        /* that it is not there will be said */
        return NGX_OK;
    }

    p = ngx_pnalloc(cf->pool, ngx_strlen(real) + path->len + 2);
    if (p == NULL) {
        free(real);
        return NGX_ERROR;
    }

    path->len = ngx_sprintf(p, "%s/%s%Z", ngx_strcmp(real, "/") ? real : "",
                            name)
                - p - 1;
    path->data = p;
    free(real);

    return NGX_OK;
}


/* by those who will be the workers; what is not there yet will be theirs */

static ngx_uint_t
ngx_mcp_attach_writable(const char *path, ngx_core_conf_t *ccf)
{
    int          i, n;
    gid_t        groups[64];
    struct stat  sb;

    if (stat(path, &sb) == -1) {
        return (ngx_errno == NGX_ENOENT);
    }

    if (geteuid() != 0 || ccf->user == (ngx_uid_t) NGX_CONF_UNSET_UINT) {
        return access(path, W_OK) == 0;
    }

    if (ccf->user == 0) {
        return 1;
    }

    if (sb.st_uid == ccf->user) {
        return (sb.st_mode & S_IWUSR) != 0;
    }

    n = sizeof(groups) / sizeof(gid_t);

    if (getgrouplist(ccf->username, ccf->group, groups, &n) == -1) {
        n = 0;
    }

    for (i = 0; i < n; i++) {
        if (sb.st_gid == groups[i]) {
            return (sb.st_mode & S_IWGRP) != 0;
        }
    }

    return (sb.st_mode & S_IWOTH) != 0;
}


/*
 * The directory is the workers', who may be anybody's by now, and this may be
 * the master: no links, and nothing is given away that was there.
 */

static ngx_fd_t
ngx_mcp_attach_open(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    char              *name;
    ngx_fd_t           fd;
    ngx_err_t          err;
    ngx_uint_t         made;
    struct stat        sb;
    ngx_mcp_stored_t  *st;

    st = zone->stored;

    name = (char *) st->lock.data;
    made = 0;

    fd = open(name, O_RDWR|O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK);

    if (fd == -1 && ngx_errno == NGX_ENOENT) {
        fd = open(name, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC|O_NOFOLLOW, 0600);
        made = 1;
    }

    if (fd == -1 || fstat(fd, &sb) == -1
        || (made && geteuid() == 0 && st->db.user != (ngx_uid_t) -1
            && fchown(fd, st->db.user, st->db.group) == -1))
    {
        err = ngx_errno;

    } else if (!S_ISREG(sb.st_mode) || sb.st_nlink != 1) {
        err = NGX_EPERM;

    } else {
        return fd;
    }

    if (!st->told) {
        st->told = 1;
        ngx_log_error(NGX_LOG_EMERG, log, err,
                      "the lock \"%V\" cannot be opened", &st->lock);
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return -1;
}


/* NGX_DECLINED: somebody else has it */

ngx_int_t
ngx_mcp_attach_lock(ngx_fd_t fd, off_t byte, int type)
{
    struct flock  fl;

    ngx_memzero(&fl, sizeof(struct flock));
    fl.l_type = (short) type;
    fl.l_whence = SEEK_SET;
    fl.l_start = byte;
    fl.l_len = 1;

    return (fcntl(fd, F_OFD_SETLK, &fl) == 0) ? NGX_OK : NGX_DECLINED;
}


/* whether another instance waits for the database */

ngx_uint_t
ngx_mcp_attach_wanted(ngx_mcp_zone_t *zone)
{
    struct flock  fl;

    ngx_memzero(&fl, sizeof(struct flock));
    fl.l_type = F_WRLCK;
    fl.l_whence = SEEK_SET;
    fl.l_start = NGX_MCP_LOCK_WANTED;
    fl.l_len = 1;

    return fcntl(ngx_mcp_stored_of(zone)->fd, F_OFD_GETLK, &fl) == 0
           && fl.l_type != F_UNLCK;
}


/* somebody may have removed the lock, and others have another one */

ngx_uint_t
ngx_mcp_attach_lost(ngx_mcp_zone_t *zone)
{
    struct stat        sb, there;
    ngx_mcp_stored_t  *st;

    st = zone->stored;

    return st->fd != -1
           && (fstat(st->fd, &sb) == -1
               || stat((char *) st->lock.data, &there) == -1
               || sb.st_dev != there.st_dev
               || sb.st_ino != there.st_ino);
}


/* whether the lock still says that the database is our zone's */

ngx_uint_t
ngx_mcp_attach_holds(ngx_mcp_zone_t *zone)
{
    return zone->ready
           && !ngx_mcp_attach_lost(zone)
           && ngx_mcp_attach_instance(ngx_mcp_stored_of(zone)->fd)
              == zone->table->sh->instance;
}


/* NGX_OK: from now on the zone is what the database has, and ours */

ngx_int_t
ngx_mcp_attach_try(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    ngx_int_t          rc;
    ngx_mcp_header_t  *sh;
    ngx_mcp_stored_t  *st;

    st = zone->stored;
    sh = zone->table->sh;

    if (ngx_exiting) {
        return NGX_DECLINED;
    }

    if (ngx_mcp_attach_lost(zone)) {
        ngx_mcp_attach_leave(zone);
    }

    if (st->fd == -1) {
        st->fd = ngx_mcp_attach_open(zone, log);

        if (st->fd == -1) {
            return NGX_ERROR;
        }
    }

    if (ngx_mcp_attach_lock(st->fd, NGX_MCP_LOCK_ZONE, F_RDLCK) == NGX_OK) {
        if (sh->instance
            && sh->instance == ngx_mcp_attach_instance(st->fd))
        {
            goto attached;
        }

        (void) ngx_mcp_attach_lock(st->fd, NGX_MCP_LOCK_ZONE, F_UNLCK);
    }

    if (!st->wanting) {
        (void) ngx_mcp_attach_lock(st->fd, NGX_MCP_LOCK_WANTED, F_RDLCK);
        st->wanting = 1;
    }

    if (ngx_mcp_attach_lock(st->fd, NGX_MCP_LOCK_ZONE, F_WRLCK) != NGX_OK) {
        if (!st->told) {
            st->told = 1;
            ngx_log_error(NGX_LOG_NOTICE, log, 0,
                          "zone \"%V\" waits for others to let go of the "
                          "store \"%V\"", &zone->name, &st->path);
        }

        return NGX_DECLINED;
    }

    rc = NGX_OK;

    if (sh->instance == 0) {
        rc = ngx_mcp_attach_own(zone, st->fd, log);

    } else if (sh->instance != ngx_mcp_attach_instance(st->fd)) {
        rc = ngx_mcp_attach_again(zone, log);

    } /* else: another process of ours was faster */

    if (rc != NGX_OK) {
        (void) ngx_mcp_attach_lock(st->fd, NGX_MCP_LOCK_ZONE, F_UNLCK);

        if (rc == NGX_ERROR) {
            ngx_mcp_writer_failed(zone, st->db.error);
        }

        return rc;
    }

    (void) ngx_mcp_attach_lock(st->fd, NGX_MCP_LOCK_ZONE, F_RDLCK);

attached:

    if (st->wanting) {
        (void) ngx_mcp_attach_lock(st->fd, NGX_MCP_LOCK_WANTED, F_UNLCK);
        st->wanting = 0;
    }

    zone->ready = 1;
    st->told = 0;

    return NGX_OK;
}


void
ngx_mcp_attach_leave(ngx_mcp_zone_t *zone)
{
    ngx_mcp_stored_t  *st;

    st = zone->stored;

    if (st->fd != -1) {
        (void) close(st->fd);
        st->fd = -1;
    }

    zone->ready = 0;
    st->wanting = 0;
}


/* 0: none */

static uint64_t
ngx_mcp_attach_instance(ngx_fd_t fd)
{
    char      buf[NGX_MCP_INSTANCE_LEN + 1];
    ssize_t   n;

    n = pread(fd, buf, NGX_MCP_INSTANCE_LEN, 0);

    if (n != NGX_MCP_INSTANCE_LEN) {
        return 0;
    }

    buf[n] = '\0';

    return strtoull(buf, NULL, 16);
}


/* the lock says whose the database is, and the zone which lock that is */

static ngx_int_t
ngx_mcp_attach_name(ngx_mcp_zone_t *zone, ngx_fd_t fd, uint64_t instance)
{
    u_char             buf[NGX_MCP_INSTANCE_LEN + 1];
    struct stat        sb;
    ngx_mcp_header_t  *sh;

    sh = zone->table->sh;

    (void) ngx_sprintf(buf, "%016xL\n", instance);

    if (fstat(fd, &sb) == -1
        || pwrite(fd, buf, NGX_MCP_INSTANCE_LEN, 0) != NGX_MCP_INSTANCE_LEN)
    {
        ngx_memcpy(ngx_mcp_stored_of(zone)->db.error,
                   "its lock cannot be written",
                   sizeof("its lock cannot be written"));
        return NGX_ERROR;
    }

    sh->disk.lock_device = sb.st_dev;
    sh->disk.lock_inode = sb.st_ino;

    return NGX_OK;
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
    ngx_mcp_header_t  *sh;
    ngx_mcp_stored_t  *st;

    st = zone->stored;
    sh = zone->table->sh;

    rc = ngx_mcp_attach_ours(zone);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_OK) {
        writer = (ngx_pid_t) sh->writer;

        if (writer && writer != ngx_pid
            && (kill(writer, 0) == 0 || ngx_errno != NGX_ESRCH))
        {
            /* it sees soon that its lock is gone */
            return NGX_DECLINED;
        }

        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "the lock \"%V\" of zone \"%V\" was not there, a new "
                      "one is used", &st->lock, &zone->name);

        return ngx_mcp_attach_name(zone, st->fd, sh->instance);
    }

    if (fstat(st->fd, &sb) == -1
        || sh->disk.lock_device != (uint64_t) sb.st_dev
        || sh->disk.lock_inode != (uint64_t) sb.st_ino)
    {
        (void) ngx_cpystrn((u_char *) st->db.error,
                           (u_char *) "and its lock are not those of this "
                           "zone any more; restart nginx to read it",
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
    ngx_mcp_header_t  *sh;

    db = &ngx_mcp_stored_of(zone)->db;
    sh = zone->table->sh;

    if (stat(db->path, &sb) == -1 && ngx_errno == NGX_ENOENT) {
        /* the writer makes another */
        return NGX_OK;
    }

    db->instance = sh->instance;
    db->secret[0] = sh->secret[0];
    db->secret[1] = sh->secret[1];

    if (ngx_mcp_db_open(db) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_db_get(db, "instance", &instance, 1);

    if (rc == NGX_OK && instance != sh->instance) {
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
    ngx_mcp_header_t  *sh;

    db = &ngx_mcp_stored_of(zone)->db;
    t = zone->table;
    sh = t->sh;

    if (ngx_mcp_lease_new(&instance) != NGX_OK) {
        return NGX_ERROR;
    }

    db->instance = instance;
    db->secret[0] = sh->secret[0];
    db->secret[1] = sh->secret[1];

    if (ngx_mcp_db_open(db) != NGX_OK) {
        return NGX_ERROR;
    }

    /* one transaction, so that nobody's commit comes between */

    rc = ngx_mcp_db_begin(db);

    if (rc == NGX_OK) {
        rc = ngx_mcp_attach_fill(zone, db, instance, log);
        rc = ngx_mcp_db_commit(db, rc);
    }

    if (rc == NGX_OK) {
        sh->disk.device = db->device;
        sh->disk.inode = db->inode;
        sh->disk.up = 1;
        sh->disk.error[0] = '\0';
        sh->writer = 0;

        rc = ngx_mcp_attach_name(zone, fd, instance);
    }

    if (rc == NGX_OK) {
        ngx_mcp_lock(t);
        sh->instance = instance;

        /* other processes of ours wait for this */
        ngx_mcp_signal_all_locked(t);
        ngx_mcp_unlock(t);
    }

    ngx_mcp_db_close(db);

    return rc;
}


static ngx_int_t
ngx_mcp_attach_fill(ngx_mcp_zone_t *zone, ngx_mcp_db_t *db, uint64_t instance,
    ngx_log_t *log)
{
    uint64_t           secret[2], seq;
    ngx_int_t          rc, known;
    ngx_time_t        *tp;
    ngx_mcp_load_t    *load;
    ngx_mcp_table_t   *t;
    ngx_mcp_filling_t  filling;

    t = zone->table;
    tp = ngx_timeofday();

    ngx_memzero(&filling, sizeof(ngx_mcp_filling_t));
    filling.table = t;
    load = &filling.load;
    load->now = ngx_current_msec;
    load->wall = (uint64_t) tp->sec * 1000 + tp->msec;

    if (ngx_mcp_db_expire(db,
                          load->wall - NGX_MCP_ATTACH_KEEP,
                          &load->expired)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    known = ngx_mcp_db_get(db, "secret", secret, 2);
    rc = ngx_mcp_db_get(db, "seq", &seq, 1);

    if (known == NGX_ERROR || rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    load->seq = (rc == NGX_OK) ? seq : 0;

    ngx_mcp_lock(t);

    ngx_mcp_load_begin_locked(t, known == NGX_OK ? secret : NULL,
                              load);
    rc = ngx_mcp_db_read(db, ngx_mcp_attach_row, &filling);

    if (rc == NGX_OK && load->full) {
        ngx_mcp_attach_full(zone, load, db);
        rc = NGX_ERROR;
    }

    if (rc == NGX_OK) {
        ngx_mcp_load_end_locked(t, load);
    }

    ngx_mcp_unlock(t);

    if (rc != NGX_OK
        || (known != NGX_OK
            && ngx_mcp_db_set(db, "secret", t->sh->secret, 2)
               != NGX_OK)
        || ngx_mcp_db_set(db, "seq", (uint64_t *) &t->sh->saved, 1)
           != NGX_OK
        || ngx_mcp_db_set(db, "instance", &instance, 1) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "zone \"%V\" has %uL tasks from \"%V\", %uL had expired",
                  &zone->name, load->tasks, &ngx_mcp_stored_of(zone)->path,
                  load->expired);

    return NGX_OK;
}


/* others are let in now and then: what is there so far is whole */

static ngx_int_t
ngx_mcp_attach_row(void *data, ngx_mcp_record_t *rec)
{
    ngx_mcp_filling_t *filling = data;

    /* a time of the wall clock yet */

    if (rec->body.task.expires != NGX_MCP_NEVER
        && rec->body.task.expires <= filling->load.wall)
    {
        filling->load.seq = ngx_max(filling->load.seq, rec->seq);
        filling->load.expired++;
        return NGX_OK;
    }

    ngx_mcp_load_locked(filling->table, &filling->load, rec);

    if (++filling->n % NGX_MCP_ATTACH_ROWS == 0) {
        ngx_mcp_unlock(filling->table);
        ngx_mcp_lock(filling->table);
    }

    return NGX_OK;
}


/* says what it would take */

static void
ngx_mcp_attach_full(ngx_mcp_zone_t *zone, ngx_mcp_load_t *load,
    ngx_mcp_db_t *db)
{
    u_char           *p;
    size_t            size;
    ngx_mcp_layout_t  l;

    if (zone->max_tasks && load->tasks > zone->max_tasks) {
        p = ngx_slprintf((u_char *) db->error,
                         (u_char *) db->error + sizeof(db->error) - 1,
                         "has %uL tasks, and max_tasks is %uL", load->tasks,
                         zone->max_tasks);
        *p = '\0';
        return;
    }

    for (size = zone->shm_zone->shm.size; /* void */ ; size += size / 16) {

        if (ngx_mcp_table_layout(&l,
                                 ngx_mcp_table_usable(size),
                                 zone->max_tasks)
            == NGX_OK
            && l.tasks >= load->tasks && l.blocks > load->blocks + 1)
        {
            break;
        }
    }

    p = ngx_slprintf((u_char *) db->error,
                     (u_char *) db->error + sizeof(db->error) - 1,
                     "has %uL tasks, which need a zone of at least %uzm",
                     load->tasks, size / 1048576 + 1);
    *p = '\0';
}


#endif /* NGX_MCP_STORED */
