
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The directives that make a location one of the surfaces of a zone. */


#include "ngx_mcp_conf.h"
#include "ngx_mcp_console.h"
#include "ngx_mcp_methods.h"
#include "ngx_mcp_status.h"
#include "ngx_mcp_worker.h"


static char *ngx_mcp_surface(ngx_conf_t *cf, void *conf,
    ngx_http_handler_pt handler);
static ngx_array_t *ngx_mcp_server_names(ngx_conf_t *cf);


char *
ngx_mcp_set_endpoint(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_mcp_surface(cf, conf, ngx_mcp_handler);
}


char *
ngx_mcp_set_worker(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t  *value;

    value = cf->args->elts;

    if (cf->args->nelts == 3) {
        if (ngx_strcmp(value[2].data, "public") != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\", must be \"public\"",
                               &value[2]);
            return NGX_CONF_ERROR;
        }

        lcf->open = 1;
    }

    return ngx_mcp_surface(cf, conf, ngx_mcp_worker_handler);
}


char *
ngx_mcp_set_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
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
                           "invalid or duplicate parameter \"%V\", allowed "
                           "are \"public\", \"format=json\" and "
                           "\"format=prometheus\"", &value[i]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_mcp_set_console(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
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
                           "invalid or duplicate parameter \"%V\", allowed "
                           "are \"admin\" and \"public\"", &value[i]);
        return NGX_CONF_ERROR;
    }

    clcf = lcf->location;

    if (clcf->exact_match || clcf->named
#if (NGX_PCRE)
        || clcf->regex
#endif
       )
    {
        return "is allowed only in a prefix location";
    }

    /* links of the page are relative and need the trailing slash */

    if (clcf->name.len && clcf->name.data[clcf->name.len - 1] == '/') {
        clcf->auto_redirect = 1;
    }

    return NGX_CONF_OK;
}


/* a location has at most one surface */

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


/*
 * "if" and "limit_except" blocks belong to the surface of their location.
 * nginx keeps the content handler of the location in an "if" block, but not in
 * a "limit_except" block.
 */

ngx_int_t
ngx_mcp_conf_merge_surface(ngx_conf_t *cf, ngx_mcp_loc_conf_t *prev,
    ngx_mcp_loc_conf_t *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->noname && conf->zone == NULL) {
        conf->zone = prev->zone;
        conf->open = prev->open;
        conf->admin = prev->admin;
        conf->format = prev->format;
        conf->location = prev->location;
        conf->handler = prev->handler;
    }

    if (conf->handler == ngx_mcp_handler) {
        /* a gateway passes batches to its upstream */
        conf->unparsed = ngx_mcp_legacy_batch;
    }

    if (clcf->lmt_excpt && clcf->handler == NULL && conf->zone) {
        clcf->handler = conf->handler;
    }

    if (conf->zone == NULL) {
        return NGX_OK;
    }

    conf->names = ngx_mcp_server_names(cf);

    return conf->names ? NGX_OK : NGX_ERROR;
}


/*
 * A copy, since nginx keeps server names only while it reads the
 * configuration.
 */

static ngx_array_t *
ngx_mcp_server_names(ngx_conf_t *cf)
{
    void                      *p;
    ngx_uint_t                 n;
    ngx_array_t               *names;
    ngx_http_core_srv_conf_t  *cscf;

    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    n = cscf->server_names.nelts;

    names = ngx_array_create(cf->pool, ngx_max(n, 1),
                             sizeof(ngx_http_server_name_t));

    if (names && n) {
        p = ngx_array_push_n(names, n);
        ngx_memcpy(p, cscf->server_names.elts,
                   n * sizeof(ngx_http_server_name_t));
    }

    return names;
}
