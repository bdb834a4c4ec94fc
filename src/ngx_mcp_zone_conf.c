
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The directive mcp_tasks_zone: its parameters, and the memory of the zone. */


#include "ngx_mcp_conf.h"
#include "ngx_mcp_gateway.h"
#include "ngx_mcp_shm.h"
#include "ngx_mcp_store.h"
#include "ngx_mcp_sweep.h"


static ngx_int_t ngx_mcp_zone_store(ngx_conf_t *cf, ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_zone_kind(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *arg);
static void ngx_mcp_zone_unknown(ngx_conf_t *cf, ngx_str_t *arg);
static ssize_t ngx_mcp_zone_memory(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *arg);
static ngx_int_t ngx_mcp_zone_tasks(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *arg);
static ngx_int_t ngx_mcp_zone_param(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *arg);
static ngx_int_t ngx_mcp_zone_large(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ssize_t size);
static ngx_int_t ngx_mcp_zone_resized(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ssize_t size);
static ngx_shm_zone_t *ngx_mcp_zone_in_use(ngx_conf_t *cf, ngx_str_t *name);
static ngx_uint_t ngx_mcp_zone_same(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *old);
static ngx_int_t ngx_mcp_zone_local(ngx_conf_t *cf, ngx_mcp_main_conf_t *mcf,
    ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_zone_add(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ssize_t size);
static ngx_int_t ngx_mcp_zone_init(ngx_shm_zone_t *shm_zone, void *data);


char *
ngx_mcp_set_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_main_conf_t *mcf = conf;

    ssize_t          size;
    ngx_str_t       *value;
    ngx_uint_t       i, stored;
    ngx_mcp_zone_t  *zone;

    zone = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_zone_t));
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_mcp_zone_store(cf, zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    size = 0;
    stored = 0;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "zone=", 5) == 0
            && zone->name.len == 0)
        {
            size = ngx_mcp_zone_memory(cf, zone, &value[i]);

            if (size == NGX_ERROR) {
                return NGX_CONF_ERROR;
            }

            continue;
        }

        if (ngx_strncmp(value[i].data, "max_tasks=", 10) == 0
            && zone->max_tasks == 0)
        {
            if (ngx_mcp_zone_tasks(cf, zone, &value[i]) != NGX_OK) {
                return NGX_CONF_ERROR;
            }

            continue;
        }

        if (ngx_strncmp(value[i].data, "store=", 6) == 0 && !stored) {
            stored = 1;
            continue;
        }

        if (ngx_mcp_zone_param(cf, zone, &value[i]) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    if (zone->name.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" must have \"zone\" parameter", &cmd->name);
        return NGX_CONF_ERROR;
    }

    zone->submit = zone->store ? zone->store->submit : ngx_mcp_shm_submit;
    zone->lookup = zone->store ? zone->store->lookup : ngx_mcp_shm_submit;
    zone->pins = zone->store ? zone->store->pins : 0;
    zone->ready = 1;

    if ((zone->store && zone->store->conf(cf, zone, &mcf->zones) != NGX_OK)
        || ngx_mcp_zone_large(cf, zone, size) != NGX_OK
        || ngx_mcp_zone_resized(cf, zone, size) != NGX_OK
        || ngx_mcp_zone_local(cf, mcf, zone) != NGX_OK
        || ngx_mcp_zone_add(cf, zone, size) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* "store=" is read first, since it defines which other parameters are valid */

static ngx_int_t
ngx_mcp_zone_store(ngx_conf_t *cf, ngx_mcp_zone_t *zone)
{
    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_strncmp(value[i].data, "store=", 6) == 0) {
            return ngx_mcp_zone_kind(cf, zone, &value[i]);
        }
    }

    return NGX_OK;
}


/* "store=NAME:ARGUMENT" */

static ngx_int_t
ngx_mcp_zone_kind(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ngx_str_t *arg)
{
    ngx_str_t          name, rest;
    ngx_mcp_store_t  **kind;

    name.data = arg->data + 6;
    rest.data = ngx_strlchr(name.data, arg->data + arg->len, ':');

    if (rest.data == NULL || rest.data + 1 == arg->data + arg->len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\", must be "
                           "\"store=name:argument\", for example "
                           "\"store=sqlite:path\"", arg);
        return NGX_ERROR;
    }

    name.len = rest.data - name.data;
    rest.data++;
    rest.len = arg->data + arg->len - rest.data;

    for (kind = ngx_mcp_stores; *kind; kind++) {
        if ((*kind)->name.len == name.len
            && ngx_strncmp((*kind)->name.data, name.data, name.len) == 0)
        {
            zone->store = *kind;
            return zone->store->create(cf, zone, &rest);
        }
    }

    ngx_mcp_zone_unknown(cf, arg);

    return NGX_ERROR;
}


static void
ngx_mcp_zone_unknown(ngx_conf_t *cf, ngx_str_t *arg)
{
    u_char             buf[256], *p;
    ngx_mcp_store_t  **kind;

    p = buf;

    for (kind = ngx_mcp_stores; *kind; kind++) {
        p = ngx_slprintf(p, buf + sizeof(buf), "%s\"%V\"",
                         (p == buf) ? "" : ", ", &(*kind)->name);
    }

    if (p == buf) {
        p = ngx_slprintf(p, buf + sizeof(buf), "none");
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown store in \"%V\", available stores: %*s",
                       arg, (size_t) (p - buf), buf);
}


/* "zone=NAME:SIZE": the size, or NGX_ERROR */

static ssize_t
ngx_mcp_zone_memory(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ngx_str_t *arg)
{
    u_char     *p, *last;
    ssize_t     size;
    ngx_str_t   s;

    zone->name.data = arg->data + 5;
    last = arg->data + arg->len;
    p = ngx_strlchr(zone->name.data, last, ':');

    if (p == NULL || p == zone->name.data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid zone \"%V\", must be \"zone=name:size\"",
                           arg);
        return NGX_ERROR;
    }

    zone->name.len = p - zone->name.data;

    s.data = p + 1;
    s.len = last - s.data;
    size = ngx_parse_size(&s);

    if (size == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid zone size \"%V\", must be a size such as "
                           "\"512k\" or \"16m\"", arg);
    }

    return size;
}


/* "max_tasks=NUMBER" */

static ngx_int_t
ngx_mcp_zone_tasks(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ngx_str_t *arg)
{
    ngx_int_t  n;

    n = ngx_atoi(arg->data + 10, arg->len - 10);

    if (n < NGX_MCP_MIN_TASKS || n >= 0x7fffffff) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of tasks \"%V\", must be "
                           "between %d and %d", arg, NGX_MCP_MIN_TASKS,
                           0x7ffffffe);
        return NGX_ERROR;
    }

    zone->max_tasks = n;

    return NGX_OK;
}


/*
 * A parameter of the store; without a store, it is an error that names the
 * cause.
 */

static ngx_int_t
ngx_mcp_zone_param(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ngx_str_t *arg)
{
    ngx_str_t         *name;
    ngx_mcp_store_t  **kind;

    if (zone->store && zone->store->param(zone, arg) == NGX_OK) {
        return NGX_OK;
    }

    for (kind = ngx_mcp_stores; *kind && zone->store == NULL; kind++) {
        for (name = (*kind)->params; name->len; name++) {
            if (arg->len > name->len
                && ngx_strncmp(arg->data, name->data, name->len) == 0
                && arg->data[name->len] == '=')
            {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "\"%V\" requires the \"store\" parameter",
                                   name);
                return NGX_ERROR;
            }
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid or duplicate parameter \"%V\" in "
                       "\"mcp_tasks_zone\" directive", arg);

    return NGX_ERROR;
}


/* whether the zone has room for its header and for max_tasks */

static ngx_int_t
ngx_mcp_zone_large(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ssize_t size)
{
    size_t  need;

    if (size < (ssize_t) (8 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" is too small, must be at least %uzk",
                           &zone->name, 8 * ngx_pagesize / 1024);
        return NGX_ERROR;
    }

    need = ngx_mcp_shm_zone_need(size, zone->max_tasks);

    if (need) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" is too small for max_tasks=%uL, "
                           "must be at least %uzk", &zone->name,
                           zone->max_tasks, need / 1024 + 1);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Refuses a new size for a zone that is in use.  nginx would silently create a
 * new zone, and all tasks would be lost, unless the store keeps them and they
 * fit into the new zone.  Runs before anything is created, so that the old
 * configuration stays in use.
 */

static ngx_int_t
ngx_mcp_zone_resized(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ssize_t size)
{
    ngx_shm_zone_t  *old;

    old = ngx_mcp_zone_in_use(cf, &zone->name);

    if (old == NULL || old->shm.size == (size_t) size) {
        return NGX_OK;
    }

    if (zone->store == NULL || !zone->store->keeps
        || !ngx_mcp_zone_same(zone, old->data))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the size of zone \"%V\" cannot be changed "
                           "from %uz to %uz while it is in use: its tasks "
                           "would be lost; restart nginx to change it",
                           &zone->name, old->shm.size, (size_t) size);
        return NGX_ERROR;
    }

    if (!ngx_mcp_shm_zone_fits(old->data, size, zone->max_tasks)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the tasks of zone \"%V\" do not fit into %uz "
                           "bytes or max_tasks; use larger values",
                           &zone->name, (size_t) size);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* the zone with this name in the previous cycle; NULL: none */

static ngx_shm_zone_t *
ngx_mcp_zone_in_use(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_shm_zone_t   *old;

    if (cf->cycle->old_cycle == NULL) {
        return NULL;
    }

    part = (ngx_list_part_t *) &cf->cycle->old_cycle->shared_memory.part;
    old = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return NULL;
            }

            part = part->next;
            old = part->elts;
            i = 0;
        }

        if (old[i].tag == &ngx_http_mcp_tasks_module
            && old[i].shm.name.len == name->len
            && ngx_strncmp(old[i].shm.name.data, name->data, name->len) == 0)
        {
            return &old[i];
        }
    }
}


/* whether both zones have the same store, or both have none */

static ngx_uint_t
ngx_mcp_zone_same(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *old)
{
    return zone->store == old->store
           && (zone->store == NULL || zone->store->same(zone, old));
}


/* the parts of a zone outside of shared memory */

static ngx_int_t
ngx_mcp_zone_local(ngx_conf_t *cf, ngx_mcp_main_conf_t *mcf,
    ngx_mcp_zone_t *zone)
{
    ngx_mcp_zone_t   **z;
    ngx_mcp_local_t  **l;

    zone->table = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_table_t));
    zone->local = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_local_t));

    if (zone->table == NULL || zone->local == NULL
        || ngx_array_init(&zone->gateways, cf->pool, 1, sizeof(void *))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_queue_init(&zone->waits);

    zone->dummy.fd = (ngx_socket_t) -1;
    zone->dummy.data = zone;
    zone->sweep_at = ngx_mcp_sweep_at;
    zone->leaves = ngx_mcp_jobs_leave;

    zone->local->name = &zone->name;
    zone->local->table = zone->table;
    zone->local->data = zone;

    z = ngx_array_push(&mcf->zones);
    l = ngx_array_push(&mcf->locals);

    if (z == NULL || l == NULL) {
        return NGX_ERROR;
    }

    *z = zone;
    *l = zone->local;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_zone_add(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ssize_t size)
{
    zone->shm_zone = ngx_shared_memory_add(cf, &zone->name, size,
                                           &ngx_http_mcp_tasks_module);
    if (zone->shm_zone == NULL) {
        return NGX_ERROR;
    }

    if (zone->shm_zone->data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_zone \"%V\" is duplicate", &zone->name);
        return NGX_ERROR;
    }

    zone->shm_zone->init = ngx_mcp_zone_init;
    zone->shm_zone->data = zone;

    return NGX_OK;
}


/*
 * Called by nginx when the memory of the zone exists.  The contents are kept
 * if the zone was in use in the previous cycle, or if the memory already has
 * them.
 */

static ngx_int_t
ngx_mcp_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_mcp_zone_t *old = data;

    ngx_log_t       *log;
    ngx_uint_t       kept;
    ngx_mcp_zone_t  *zone;

    zone = shm_zone->data;
    log = shm_zone->shm.log;
    kept = (old || shm_zone->shm.exists);

    if (old && !ngx_mcp_zone_same(zone, old)) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "the store of zone \"%V\" cannot be changed while the "
                      "zone is in use; restart nginx to change it",
                      &zone->name);
        return NGX_ERROR;
    }

    if ((kept ? ngx_mcp_shm_zone_attach(zone, log)
              : ngx_mcp_shm_zone_create(zone, log))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return zone->store ? zone->store->init_zone(zone, kept) : NGX_OK;
}


/* "zone=NAME" of a surface; NULL: an error was logged */

ngx_mcp_zone_t *
ngx_mcp_zone_arg(ngx_conf_t *cf, ngx_str_t *value)
{
    ngx_str_t              name;
    ngx_uint_t             i;
    ngx_mcp_zone_t       **zones;
    ngx_mcp_main_conf_t   *mcf;

    if (value->len <= 5 || ngx_strncmp(value->data, "zone=", 5) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\", must be \"zone=name\"",
                           value);
        return NULL;
    }

    name.data = value->data + 5;
    name.len = value->len - 5;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_tasks_module);
    zones = mcf->zones.elts;

    for (i = 0; i < mcf->zones.nelts; i++) {
        if (zones[i]->name.len == name.len
            && ngx_strncmp(zones[i]->name.data, name.data, name.len)
               == 0)
        {
            return zones[i];
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown zone \"%V\", must be defined by "
                       "\"mcp_tasks_zone\" before it is used", &name);
    return NULL;
}
