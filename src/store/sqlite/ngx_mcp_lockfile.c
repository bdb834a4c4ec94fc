
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The lock file of a database: locks, and the instance that owns the database.
 * See ngx_mcp_sqlite.h for the meaning of each lock.
 */


#include "ngx_mcp_sqlite.h"


#if (NGX_MCP_SQLITE_STORE)


/* the contents: an instance in hexadecimal, and a line feed */
#define NGX_MCP_INSTANCE_LEN   17


/*
 * Opens or creates the lock file.  A compromised worker process could change
 * its directory, so links are not followed.  Returns -1 on failure.
 */

ngx_fd_t
ngx_mcp_lockfile_open(ngx_mcp_zone_t *zone, ngx_log_t *log)
{
    char              *name;
    ngx_fd_t           fd;
    ngx_err_t          err;
    struct stat        sb;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;

    name = (char *) st->lock.data;

    fd = open(name, O_RDWR|O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK);

    if (fd == -1 && ngx_errno == NGX_ENOENT) {
        fd = open(name, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC|O_NOFOLLOW, 0600);
    }

    if (fd == -1 || fstat(fd, &sb) == -1) {
        err = ngx_errno;

    } else if (!S_ISREG(sb.st_mode) || sb.st_nlink != 1) {
        err = NGX_EPERM;

    } else {
        return fd;
    }

    if (!st->logged) {
        st->logged = 1;
        ngx_log_error(NGX_LOG_EMERG, log, err,
                      "the lock file \"%V\" cannot be opened", &st->lock);
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return -1;
}


/* NGX_DECLINED: another process has it */

ngx_int_t
ngx_mcp_lockfile_lock(ngx_fd_t fd, off_t byte, int type)
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
ngx_mcp_lockfile_wanted(ngx_mcp_zone_t *zone)
{
    struct flock  fl;

    ngx_memzero(&fl, sizeof(struct flock));
    fl.l_type = F_WRLCK;
    fl.l_whence = SEEK_SET;
    fl.l_start = NGX_MCP_LOCK_WANTED;
    fl.l_len = 1;

    return fcntl(ngx_mcp_sqlite_of(zone)->fd, F_OFD_GETLK, &fl) == 0
           && fl.l_type != F_UNLCK;
}


/* whether the lock file was removed or replaced since it was opened */

ngx_uint_t
ngx_mcp_lockfile_lost(ngx_mcp_zone_t *zone)
{
    struct stat        sb, there;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;

    return st->fd != -1
           && (fstat(st->fd, &sb) == -1
               || stat((char *) st->lock.data, &there) == -1
               || sb.st_dev != there.st_dev
               || sb.st_ino != there.st_ino);
}


/* whether the lock file still says that the database belongs to this zone */

ngx_uint_t
ngx_mcp_lockfile_holds(ngx_mcp_zone_t *zone)
{
    return zone->ready
           && !ngx_mcp_lockfile_lost(zone)
           && ngx_mcp_lockfile_instance(ngx_mcp_sqlite_of(zone)->fd)
              == ngx_mcp_save_of(zone->table)->instance;
}


/* the instance in the lock file; 0: none */

uint64_t
ngx_mcp_lockfile_instance(ngx_fd_t fd)
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


/* writes the instance, and stores in the zone which lock file it is */

ngx_int_t
ngx_mcp_lockfile_name(ngx_mcp_zone_t *zone, ngx_fd_t fd, uint64_t instance)
{
    u_char             buf[NGX_MCP_INSTANCE_LEN + 1];
    struct stat        sb;
    ngx_mcp_save_t    *sv;

    sv = ngx_mcp_save_of(zone->table);

    (void) ngx_sprintf(buf, "%016xL\n", instance);

    if (fstat(fd, &sb) == -1
        || pwrite(fd, buf, NGX_MCP_INSTANCE_LEN, 0) != NGX_MCP_INSTANCE_LEN)
    {
        ngx_memcpy(ngx_mcp_sqlite_of(zone)->db.error,
                   "has a lock file that cannot be written",
                   sizeof("has a lock file that cannot be written"));
        return NGX_ERROR;
    }

    sv->lock_device = sb.st_dev;
    sv->lock_inode = sb.st_ino;

    return NGX_OK;
}


#endif /* NGX_MCP_SQLITE_STORE */
