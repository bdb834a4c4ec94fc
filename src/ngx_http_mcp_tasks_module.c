
#include "ngx_mcp_conf.h"
#include "ngx_mcp_console.h"
#include "ngx_mcp_gateway.h"
#include "ngx_mcp_methods.h"
#include "ngx_mcp_probe.h"
#include "ngx_mcp_shm.h"
#include "ngx_mcp_status.h"
#include "ngx_mcp_store.h"
#include "ngx_mcp_sweep.h"
#include "ngx_mcp_worker.h"


static char *ngx_mcp_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_mcp_tasks(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static ngx_int_t ngx_mcp_zone_store(ngx_conf_t *cf, ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_zone_kind(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *arg);
static void ngx_mcp_zone_unknown(ngx_conf_t *cf, ngx_str_t *arg);
static ngx_int_t ngx_mcp_zone_param(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *arg);
static ngx_int_t ngx_mcp_zone_local(ngx_conf_t *cf, ngx_mcp_main_conf_t *mcf,
    ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_zone_check(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ssize_t size);
static ngx_uint_t ngx_mcp_zone_same(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *old);
static ngx_int_t ngx_mcp_init_zone(ngx_shm_zone_t *shm_zone, void *data);
static void *ngx_mcp_create_main_conf(ngx_conf_t *cf);
static char *ngx_mcp_worker(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_mcp_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_mcp_console(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_mcp_surface(ngx_conf_t *cf, void *conf,
    ngx_http_handler_pt handler);
static ngx_int_t ngx_mcp_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_mcp_init_process(ngx_cycle_t *cycle);
static ngx_int_t ngx_mcp_init_zones(ngx_cycle_t *cycle,
    ngx_mcp_main_conf_t *mcf);
static void ngx_mcp_exit_process(ngx_cycle_t *cycle);


static ngx_command_t  ngx_mcp_commands[] = {

    { ngx_string("mcp_tasks_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1234,
      ngx_mcp_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_mcp_tasks,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_worker"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_worker,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_mcp_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_console"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_mcp_console,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_tools"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_mcp_set_tools,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_owner"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_mcp_set_owner,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_allow_origin"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_mcp_set_origin,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_ttl"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_args,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_retention"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_mcp_set_args,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_args,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_limit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_mcp_set_args,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_poll_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_args,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_max_waiters"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_args,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_pass"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_tool"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_mcp_set_tool,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_max_running"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_args,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_retries"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_args,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_poll_interval"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_mcp_loc_conf_t, poll_interval),
      NULL },

    { ngx_string("mcp_tasks_lease"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_mcp_loc_conf_t, lease),
      NULL },

    { ngx_string("mcp_tasks_keepalive"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_mcp_loc_conf_t, keepalive),
      NULL },

#if (NGX_MCP_TEST)

    { ngx_string("mcp_tasks_probe"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_mcp_probe,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_stub"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_stub,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

#endif

      ngx_null_command
};


static ngx_http_module_t  ngx_http_mcp_tasks_module_ctx = {
    ngx_mcp_add_variables,                 /* preconfiguration */
    ngx_mcp_filter_init,                   /* postconfiguration */

    ngx_mcp_create_main_conf,              /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_mcp_create_loc_conf,               /* create location configuration */
    ngx_mcp_merge_loc_conf                 /* merge location configuration */
};


ngx_module_t  ngx_http_mcp_tasks_module = {
    NGX_MODULE_V1,
    &ngx_http_mcp_tasks_module_ctx,        /* module context */
    ngx_mcp_commands,                      /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_mcp_init_module,                   /* init module */
    ngx_mcp_init_process,                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_mcp_exit_process,                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static char *
ngx_mcp_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_main_conf_t *mcf = conf;

    u_char          *p;
    ssize_t          size;
    uint64_t         max_tasks;
    ngx_int_t        n;
    ngx_str_t       *value, name, s;
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
    ngx_str_null(&name);
    size = 0;
    max_tasks = 0;
    stored = 0;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "zone=", 5) == 0 && name.len == 0) {

            name.data = value[i].data + 5;
            p = ngx_strlchr(name.data, value[i].data + value[i].len, ':');

            if (p == NULL || p == name.data) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid zone \"%V\", must be "
                                   "\"zone=name:size\"", &value[i]);
                return NGX_CONF_ERROR;
            }

            name.len = p - name.data;
            s.data = p + 1;
            s.len = value[i].data + value[i].len - s.data;
            size = ngx_parse_size(&s);

            if (size == NGX_ERROR) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid zone size \"%V\"", &value[i]);
                return NGX_CONF_ERROR;
            }

            continue;
        }

        if (ngx_strncmp(value[i].data, "max_tasks=", 10) == 0
            && max_tasks == 0)
        {
            n = ngx_atoi(value[i].data + 10, value[i].len - 10);

            if (n < NGX_MCP_MIN_TASKS || n >= 0x7fffffff) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid number of tasks \"%V\", must be "
                                   "between %d and %d", &value[i],
                                   NGX_MCP_MIN_TASKS, 0x7ffffffe);
                return NGX_CONF_ERROR;
            }

            max_tasks = n;
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

    if (name.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" must have \"zone\" parameter", &cmd->name);
        return NGX_CONF_ERROR;
    }

    zone->name = name;
    zone->submit = ngx_mcp_shm;
    zone->max_tasks = max_tasks;
    zone->ready = 1;

    if ((zone->store && zone->store->conf(cf, zone, &mcf->zones) != NGX_OK)
        || ngx_mcp_zone_check(cf, zone, size) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_mcp_zone_local(cf, mcf, zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    zone->shm_zone = ngx_shared_memory_add(cf, &name, size,
                                           &ngx_http_mcp_tasks_module);
    if (zone->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (zone->shm_zone->data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_zone \"%V\" is duplicate", &name);
        return NGX_CONF_ERROR;
    }

    zone->shm_zone->init = ngx_mcp_init_zone;
    zone->shm_zone->data = zone;

    return NGX_CONF_OK;
}


/* what belongs to a zone, beside its memory */

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


/* "store=" comes first, wherever it is: it says what others mean */

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
                           "invalid parameter \"%V\"", arg);
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
                       "unknown store in \"%V\", stores of this module: %*s",
                       arg, (size_t) (p - buf), buf);
}


/* of no zone, but of its store; or of a store, where there is none */

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
                                   "\"%V\" needs a \"store\"", name);
                return NGX_ERROR;
            }
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\"", arg);

    return NGX_ERROR;
}


/*
 * Before anything is made: whether the zone is large enough, and whether it
 * is the size of the one that is in use.  nginx itself would silently replace
 * that by a new one, and every task would be lost, unless a store has them.
 */

static ngx_int_t
ngx_mcp_zone_check(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ssize_t size)
{
    size_t            need;
    uint64_t          max_tasks;
    ngx_str_t        *name;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_shm_zone_t   *old;

    name = &zone->name;
    max_tasks = zone->max_tasks;

    if (size < (ssize_t) (8 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" is too small, must be at least %uzk",
                           name, 8 * ngx_pagesize / 1024);
        return NGX_ERROR;
    }

    need = ngx_mcp_shm_zone_need(size, max_tasks);

    if (need) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" is too small for max_tasks=%uL, "
                           "must be at least %uzk", name, max_tasks,
                           need / 1024 + 1);
        return NGX_ERROR;
    }

    if (cf->cycle->old_cycle == NULL) {
        return NGX_OK;
    }

    part = (ngx_list_part_t *) &cf->cycle->old_cycle->shared_memory.part;
    old = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                break;
            }

            part = part->next;
            old = part->elts;
            i = 0;
        }

        if (old[i].tag == &ngx_http_mcp_tasks_module
            && old[i].shm.size != (size_t) size
            && old[i].shm.name.len == name->len
            && ngx_strncmp(old[i].shm.name.data, name->data, name->len) == 0)
        {
            if (zone->store
                && ngx_mcp_zone_same(zone, old[i].data))
            {
                if (ngx_mcp_shm_zone_fits(old[i].data, size, max_tasks)) {
                    continue;
                }

                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "the tasks of zone \"%V\" would not fit "
                                   "into %uz bytes", name, (size_t) size);
                return NGX_ERROR;
            }

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "the size of zone \"%V\" cannot be changed "
                               "from %uz to %uz while it is in use: its tasks "
                               "would be lost; restart nginx to change it",
                               name, old[i].shm.size, (size_t) size);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* whether two configurations have the same store, or none */

static ngx_uint_t
ngx_mcp_zone_same(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *old)
{
    return zone->store == old->store
           && (zone->store == NULL || zone->store->same(zone, old));
}


static ngx_int_t
ngx_mcp_init_zone(ngx_shm_zone_t *shm_zone, void *data)
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


static char *
ngx_mcp_tasks(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_mcp_surface(cf, conf, ngx_mcp_handler);
}


static char *
ngx_mcp_worker(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t  *value;

    value = cf->args->elts;

    if (cf->args->nelts == 3) {
        if (ngx_strcmp(value[2].data, "public") != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"", &value[2]);
            return NGX_CONF_ERROR;
        }

        lcf->open = 1;
    }

    return ngx_mcp_surface(cf, conf, ngx_mcp_worker_handler);
}


static char *
ngx_mcp_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    char        *rv;
    ngx_str_t   *value, s;
    ngx_uint_t   i;

    rv = ngx_mcp_surface(cf, conf, ngx_mcp_status_handler);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "public") == 0 && !lcf->open) {
            lcf->open = 1;
            continue;
        }

        if (ngx_strncmp(value[i].data, "format=", 7) == 0
            && lcf->format == NGX_MCP_FORMAT_ANY)
        {
            s.data = value[i].data + 7;
            s.len = value[i].len - 7;
            lcf->format = ngx_mcp_status_format(&s);

            if (lcf->format != NGX_MCP_FORMAT_ANY) {
                continue;
            }
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\"", &value[i]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_mcp_console(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    char                      *rv;
    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;

    rv = ngx_mcp_surface(cf, conf, ngx_mcp_console_handler);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "admin") == 0 && !lcf->admin) {
            lcf->admin = 1;
            continue;
        }

        if (ngx_strcmp(value[i].data, "public") == 0 && !lcf->open) {
            lcf->open = 1;
            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\"", &value[i]);
        return NGX_CONF_ERROR;
    }

    clcf = lcf->location;

    if (clcf->exact_match || clcf->named
#if (NGX_PCRE)
        || clcf->regex
#endif
       )
    {
        return "needs a location that is given by a prefix";
    }

    /* a page knows what is below it by the slash */

    if (clcf->name.len && clcf->name.data[clcf->name.len - 1] == '/') {
        clcf->auto_redirect = 1;
    }

    return NGX_CONF_OK;
}


static char *
ngx_mcp_surface(ngx_conf_t *cf, void *conf, ngx_http_handler_pt handler)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    if (lcf->zone) {
        return "is duplicate";
    }

    value = cf->args->elts;

    lcf->zone = ngx_mcp_zone_arg(cf, &value[1]);
    if (lcf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = handler;

    lcf->location = clcf;
    lcf->handler = handler;

    return NGX_CONF_OK;
}


/* "zone=NAME" of a location */

ngx_mcp_zone_t *
ngx_mcp_zone_arg(ngx_conf_t *cf, ngx_str_t *value)
{
    ngx_str_t              name;
    ngx_uint_t             i;
    ngx_mcp_zone_t       **zones;
    ngx_mcp_main_conf_t   *mcf;

    if (value->len <= 5 || ngx_strncmp(value->data, "zone=", 5) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\"", value);
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
                       "unknown zone \"%V\", mcp_tasks_zone must define it "
                       "before it is used", &name);
    return NULL;
}


static void *
ngx_mcp_create_main_conf(ngx_conf_t *cf)
{
    ngx_mcp_main_conf_t  *mcf;

    mcf = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_main_conf_t));
    if (mcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&mcf->zones, cf->pool, 2, sizeof(ngx_mcp_zone_t *))
        != NGX_OK
        || ngx_array_init(&mcf->locals, cf->pool, 2,
                          sizeof(ngx_mcp_local_t *))
           != NGX_OK)
    {
        return NULL;
    }

    return mcf;
}


static ngx_int_t
ngx_mcp_init_module(ngx_cycle_t *cycle)
{
    ngx_mcp_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle,
                                              ngx_http_mcp_tasks_module);

    if (mcf == NULL || mcf->zones.nelts == 0) {
        return NGX_OK;
    }

    return ngx_mcp_wake_module(cycle);
}


static ngx_int_t
ngx_mcp_init_process(ngx_cycle_t *cycle)
{
    ngx_mcp_main_conf_t     *mcf;
    static ngx_mcp_hooks_t   hooks[] = {
        { ngx_mcp_wait_recount, ngx_mcp_wait_all },
        { ngx_mcp_jobs_orphans, ngx_mcp_jobs_exit },
        { NULL, NULL }
    };

    /* not in the cache manager, nor without an http block */

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    mcf = ngx_http_cycle_get_module_main_conf(cycle,
                                              ngx_http_mcp_tasks_module);
    if (mcf == NULL) {
        return NGX_OK;
    }

    if (ngx_mcp_wake_process(cycle, &mcf->locals, hooks) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_init_zones(cycle, mcf);
}


static ngx_int_t
ngx_mcp_init_zones(ngx_cycle_t *cycle, ngx_mcp_main_conf_t *mcf)
{
    ngx_uint_t        i;
    ngx_mcp_zone_t  **zones;

    zones = mcf->zones.elts;

    for (i = 0; i < mcf->zones.nelts; i++) {

        if (ngx_mcp_jobs_init(cycle, zones[i]) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_mcp_sweep_init(cycle, zones[i]->local, ngx_mcp_zone_sweep);

        if (zones[i]->gateways.nelts
            && ngx_mcp_detached_process(cycle) != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (zones[i]->store) {
            zones[i]->store->init_process(cycle, zones[i]);
        }
    }

    return NGX_OK;
}


static void
ngx_mcp_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t             i;
    ngx_mcp_zone_t       **zones;
    ngx_mcp_main_conf_t   *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle,
                                              ngx_http_mcp_tasks_module);

    for (i = 0; mcf && i < mcf->zones.nelts; i++) {
        zones = mcf->zones.elts;

        if (zones[i]->store) {
            zones[i]->store->exit_process(zones[i]);
        }
    }

    ngx_mcp_wake_exit();
}
