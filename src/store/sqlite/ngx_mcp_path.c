
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The path of a database, and whether worker processes can write to it. */


#include "ngx_mcp_sqlite.h"


#if (NGX_MCP_SQLITE_STORE)

#include <grp.h>


static ngx_int_t ngx_mcp_path_real(ngx_conf_t *cf, ngx_str_t *path);
static u_char *ngx_mcp_path_dir(u_char *dir, ngx_str_t *path);
static ngx_uint_t ngx_mcp_path_writable(const char *path,
    ngx_core_conf_t *ccf);


/* completes the configuration when all parameters are read */

ngx_int_t
ngx_mcp_path_conf(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ngx_array_t *zones)
{
    u_char             *p;
    ngx_uint_t          i;
    ngx_mcp_zone_t    **z;
    ngx_mcp_sqlite_t   *st;

    st = zone->store_data;

    if (ngx_conf_full_name(cf->cycle, &st->path, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    if (st->path.len < NGX_MAX_PATH
        && ngx_mcp_path_real(cf, &st->path) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (st->path.len + sizeof("-lock") > NGX_MAX_PATH) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the path of the store is longer than %d bytes: "
                           "\"%V\"", (int) (NGX_MAX_PATH - sizeof("-lock")),
                           &st->path);
        return NGX_ERROR;
    }

    z = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        if (z[i]->store == zone->store && zone->store->same(zone, z[i])) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "the store \"%V\" is already used by zone "
                               "\"%V\"", &st->path, &z[i]->name);
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

    st->threads = ngx_thread_pool_add(cf, NULL);
    if (st->threads == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_sqlite_zone(zone);

    return NGX_OK;
}


/* resolves links of the directory, so that a file has only one name */

static ngx_int_t
ngx_mcp_path_real(ngx_conf_t *cf, ngx_str_t *path)
{
    char    *real;
    u_char  *p, *name, dir[NGX_MAX_PATH];

    name = ngx_mcp_path_dir(dir, path);
    real = realpath((char *) dir, NULL);

    if (real == NULL) {
        /* ngx_mcp_path_check() reports that it does not exist */
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


/* whether the database can be used; checked with each configuration */

ngx_int_t
ngx_mcp_path_check(ngx_mcp_zone_t *zone)
{
    int                rc;
    u_char             dir[NGX_MAX_PATH];
    struct stat        sb;
    ngx_log_t         *log;
    ngx_core_conf_t   *ccf;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    log = st->cycle->log;
    ccf = (ngx_core_conf_t *) ngx_get_conf(st->cycle->conf_ctx,
                                           ngx_core_module);

    (void) ngx_mcp_path_dir(dir, &st->path);

    rc = stat((char *) dir, &sb);

    if (rc == -1 || !S_ISDIR(sb.st_mode)) {
        ngx_log_error(NGX_LOG_EMERG, log, (rc == -1) ? ngx_errno : NGX_ENOTDIR,
                      "the directory \"%s\" of the store of zone \"%V\" "
                      "does not exist", dir, &zone->name);
        return NGX_ERROR;
    }

    if (!ngx_mcp_path_writable((char *) dir, ccf)
        || !ngx_mcp_path_writable(st->db.path, ccf)
        || !ngx_mcp_path_writable((char *) st->lock.data, ccf))
    {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "the store \"%V\" of zone \"%V\", its lock file or its "
                      "directory is not writable by worker processes",
                      &st->path, &zone->name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* copies the directory of a path, and returns the name of the file */

static u_char *
ngx_mcp_path_dir(u_char *dir, ngx_str_t *path)
{
    size_t  len;

    len = path->len;

    while (len > 1 && path->data[len - 1] != '/') {
        len--;
    }

    (void) ngx_cpystrn(dir, path->data, ngx_max(len, 2));

    return path->data + len;
}


/*
 * Whether worker processes can write to it.  What does not exist will be
 * created by them.
 */

static ngx_uint_t
ngx_mcp_path_writable(const char *path, ngx_core_conf_t *ccf)
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


#endif /* NGX_MCP_SQLITE_STORE */
