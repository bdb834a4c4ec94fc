
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The module: its directives, and its initialization and exit in each process.
 */


#include "ngx_mcp_conf.h"
#include "ngx_mcp_gateway.h"
#include "ngx_mcp_probe.h"
#include "ngx_mcp_question.h"
#include "ngx_mcp_store.h"
#include "ngx_mcp_sweep.h"
#include "ngx_mcp_wait.h"


static void *ngx_mcp_create_main_conf(ngx_conf_t *cf);
static ngx_int_t ngx_mcp_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_mcp_init_process(ngx_cycle_t *cycle);
static ngx_int_t ngx_mcp_init_zones(ngx_cycle_t *cycle,
    ngx_mcp_main_conf_t *mcf);
static void ngx_mcp_exit_process(ngx_cycle_t *cycle);


static ngx_command_t  ngx_mcp_commands[] = {

    { ngx_string("mcp_tasks_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1234,
      ngx_mcp_set_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_mcp_set_endpoint,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_worker"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_worker,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_mcp_set_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_tasks_console"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_mcp_set_console,
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

    { ngx_string("mcp_tasks_client_policy"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_mcp_set_client_policy,
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
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
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


/*
 * Runs in the master.  The schemas of questions are compiled and the
 * descriptors that wake worker processes are created here, so that all worker
 * processes inherit them.
 */

static ngx_int_t
ngx_mcp_init_module(ngx_cycle_t *cycle)
{
    ngx_mcp_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle,
                                              ngx_http_mcp_tasks_module);

    if (mcf == NULL || mcf->zones.nelts == 0) {
        return NGX_OK;
    }

    if (ngx_mcp_question_init(cycle->pool) != NGX_OK) {
        return NGX_ERROR;
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

    /* only worker processes use zones; mcf is NULL without an http block */

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


/* starts the timers, jobs and store of each zone in this process */

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


/* the stores go first: they may still have changes to save */

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
