
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Directives of a gateway: the location that messages are passed to, and
 * settings of the upstream's tools.
 */


#include "ngx_mcp_gateway.h"


/* default of mcp_tasks_max_running */
#define NGX_MCP_MAX_RUNNING  256


typedef struct {
    const char  *name;
    size_t       offset;     /* in ngx_mcp_tool_t */
    ngx_uint_t   limit;      /* 1: may be "off", but not 0 */
} ngx_mcp_route_time_t;


static ngx_int_t ngx_mcp_pass_arg(ngx_conf_t *cf, ngx_str_t *value,
    ngx_mcp_loc_conf_t *lcf);
static char *ngx_mcp_route_name(ngx_conf_t *cf, ngx_str_t *value,
    ngx_mcp_tool_t *tool);
static ngx_int_t ngx_mcp_route_arg(ngx_str_t *arg, ngx_mcp_tool_t *tool);
static ngx_int_t ngx_mcp_route_time(ngx_str_t *arg, ngx_mcp_tool_t *tool);
static ngx_int_t ngx_mcp_route_retry(ngx_str_t *arg, ngx_mcp_tool_t *tool);
static ngx_int_t ngx_mcp_route_word(ngx_str_t *arg, ngx_mcp_tool_t *tool);
static void ngx_mcp_route_init(ngx_mcp_tool_t *tool);
static void ngx_mcp_route_defaults(ngx_mcp_tool_t *tool);


static ngx_mcp_route_time_t  ngx_mcp_route_times[] = {
    { "after=", offsetof(ngx_mcp_tool_t, after), 0 },
    { "timeout=", offsetof(ngx_mcp_tool_t, run_timeout), 1 },
    { "ttl=", offsetof(ngx_mcp_tool_t, ttl), 1 },
    { NULL, 0, 0 }
};


char *
ngx_mcp_set_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i, off;

    if (lcf->pass.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    off = (ngx_strcmp(value[1].data, "off") == 0);

    if (!off && value[1].data[0] != '/') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid URI \"%V\", must begin with \"/\" or be "
                           "\"off\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        switch (off ? NGX_ERROR : ngx_mcp_pass_arg(cf, &value[i], lcf)) {

        case NGX_OK:
            continue;

        case NGX_DECLINED:
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "parameter \"%V\" is duplicate", &value[i]);
            break;

        case NGX_ERROR:
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\", must be "
                               "\"era=legacy\", \"era=modern\" or "
                               "\"schemas=FILE\" after a URI", &value[i]);
        }

        return NGX_CONF_ERROR;
    }

    if (lcf->pass_eras == 0) {
        lcf->pass_eras = NGX_MCP_PASS_LEGACY | NGX_MCP_PASS_MODERN;
    }

    if (off) {
        ngx_str_set(&lcf->pass, "");

    } else {
        lcf->pass = value[1];
    }

    return NGX_CONF_OK;
}


/*
 * NGX_DECLINED: the parameter is duplicate; NGX_ERROR: it is invalid;
 * NGX_ABORT: the error is logged.
 */

static ngx_int_t
ngx_mcp_pass_arg(ngx_conf_t *cf, ngx_str_t *value, ngx_mcp_loc_conf_t *lcf)
{
    ngx_str_t   file;
    ngx_uint_t  era;

    if (ngx_strncmp(value->data, "schemas=", 8) == 0 && value->len > 8) {

        if (lcf->schemas) {
            return NGX_DECLINED;
        }

        file.data = value->data + 8;
        file.len = value->len - 8;

        return (ngx_conf_full_name(cf->cycle, &file, 1) == NGX_OK
                && ngx_mcp_tools_read_schemas(cf, &file, &lcf->schemas)
                   == NGX_CONF_OK)
               ? NGX_OK : NGX_ABORT;
    }

    if (ngx_strcmp(value->data, "era=legacy") == 0) {
        era = NGX_MCP_PASS_LEGACY;

    } else if (ngx_strcmp(value->data, "era=modern") == 0) {
        era = NGX_MCP_PASS_MODERN;

    } else {
        return NGX_ERROR;
    }

    if (lcf->pass_eras) {
        return NGX_DECLINED;
    }

    lcf->pass_eras = era;

    return NGX_OK;
}


char *
ngx_mcp_set_tool(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_int_t        rc;
    ngx_str_t       *value;
    ngx_uint_t       i;
    ngx_mcp_tool_t  *tool;

    value = cf->args->elts;

    if (lcf->routes == NGX_CONF_UNSET_PTR) {
        lcf->routes = ngx_array_create(cf->pool, 4, sizeof(ngx_mcp_tool_t));
        if (lcf->routes == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    tool = lcf->routes->elts;

    for (i = 0; i < lcf->routes->nelts; i++) {
        if (tool[i].pattern.len == value[1].len
            && ngx_strcmp(tool[i].pattern.data, value[1].data) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate tool \"%V\"", &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    tool = ngx_array_push(lcf->routes);
    if (tool == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_mcp_route_init(tool);

    if (ngx_mcp_route_name(cf, &value[1], tool) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        rc = ngx_mcp_route_arg(&value[i], tool);

        if (rc != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               (rc == NGX_DECLINED)
                               ? "parameter \"%V\" is duplicate"
                               : "invalid parameter \"%V\" in "
                                 "\"mcp_tasks_tool\" directive", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    if (tool->asks != NGX_CONF_UNSET_UINT
        && tool->asks != NGX_MCP_INPUT_TASK
        && tool->after == NGX_CONF_UNSET_MSEC)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"input=%s\" of tool \"%V\" requires the "
                           "\"after\" parameter",
                           (tool->asks == NGX_MCP_INPUT_CALL) ? "call"
                                                              : "first",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    ngx_mcp_route_defaults(tool);

    if (tool->retry & NGX_MCP_RETRY_TIMEOUT && !tool->idempotent) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"retry_on=timeout\" of tool \"%V\" requires "
                           "the \"idempotent\" parameter", &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_mcp_route_name(ngx_conf_t *cf, ngx_str_t *value, ngx_mcp_tool_t *tool)
{
#if (NGX_PCRE)
    u_char               errstr[NGX_MAX_CONF_ERRSTR];
    ngx_regex_compile_t  rc;
#endif

    tool->pattern = *value;

    if (value->len == 0 || value->len > NGX_MCP_MAX_NAME) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the name of a tool must have 1 to %d bytes: \"%V\"",
                           NGX_MCP_MAX_NAME, value);
        return NGX_CONF_ERROR;
    }

    if (value->data[0] != '~') {
        tool->name = *value;
        return NGX_CONF_OK;
    }

#if (NGX_PCRE)

    ngx_memzero(&rc, sizeof(ngx_regex_compile_t));
    rc.pattern.data = value->data + 1;
    rc.pattern.len = value->len - 1;

    if (rc.pattern.len && rc.pattern.data[0] == '*') {
        rc.pattern.data++;
        rc.pattern.len--;
        rc.options = NGX_REGEX_CASELESS;
    }

    if (rc.pattern.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "empty regex in tool \"%V\"",
                           value);
        return NGX_CONF_ERROR;
    }

    rc.pool = cf->pool;
    rc.err.len = NGX_MAX_CONF_ERRSTR;
    rc.err.data = errstr;

    if (ngx_regex_compile(&rc) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V", &rc.err);
        return NGX_CONF_ERROR;
    }

    tool->regex = rc.regex;

    return NGX_CONF_OK;

#else

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "using regex \"%V\" requires PCRE library", value);
    return NGX_CONF_ERROR;

#endif
}


/* NGX_DECLINED: the parameter is duplicate; NGX_ERROR: it is invalid. */

static ngx_int_t
ngx_mcp_route_arg(ngx_str_t *arg, ngx_mcp_tool_t *tool)
{
    ngx_int_t  n;

    if (ngx_strncmp(arg->data, "retries=", 8) == 0) {

        if (tool->attempts != NGX_CONF_UNSET) {
            return NGX_DECLINED;
        }

        n = ngx_atoi(arg->data + 8, arg->len - 8);

        if (n == NGX_ERROR || n > 254) {
            return NGX_ERROR;
        }

        tool->attempts = n + 1;
        return NGX_OK;
    }

    if (ngx_strncmp(arg->data, "retry_on=", 9) == 0) {
        return ngx_mcp_route_retry(arg, tool);
    }

    n = ngx_mcp_route_time(arg, tool);

    return (n == NGX_DONE) ? ngx_mcp_route_word(arg, tool) : n;
}


/* NGX_DONE: not a time parameter. */

static ngx_int_t
ngx_mcp_route_time(ngx_str_t *arg, ngx_mcp_tool_t *tool)
{
    size_t                 len;
    ngx_str_t              s;
    ngx_int_t              n;
    ngx_msec_t            *field;
    ngx_mcp_route_time_t  *time;

    for (time = ngx_mcp_route_times; time->name; time++) {

        len = ngx_strlen(time->name);

        if (ngx_strncmp(arg->data, time->name, len) != 0) {
            continue;
        }

        field = (ngx_msec_t *) ((u_char *) tool + time->offset);

        if (*field != NGX_CONF_UNSET_MSEC) {
            return NGX_DECLINED;
        }

        s.data = arg->data + len;
        s.len = arg->len - len;

        if (time->limit && s.len == 3 && ngx_strncmp(s.data, "off", 3) == 0) {
            *field = NGX_MCP_UNLIMITED;
            return NGX_OK;
        }

        n = ngx_parse_time(&s, 0);

        /* times of a task have 32 bits; a limit of 0 is not useful */

        if (n == NGX_ERROR || (uint64_t) n >= NGX_MCP_UNLIMITED
            || (n == 0 && time->limit))
        {
            return NGX_ERROR;
        }

        *field = n;
        return NGX_OK;
    }

    return NGX_DONE;
}


/* words separated by commas, or "off" */

static ngx_int_t
ngx_mcp_route_retry(ngx_str_t *arg, ngx_mcp_tool_t *tool)
{
    u_char      *p, *last;
    ngx_str_t    word;
    ngx_uint_t   end;

    if (tool->retry != NGX_CONF_UNSET_UINT) {
        return NGX_DECLINED;
    }

    tool->retry = NGX_MCP_RETRY_DEFAULT;

    if (ngx_strcmp(arg->data + 9, "off") == 0) {
        return NGX_OK;
    }

    last = arg->data + arg->len;

    for (p = arg->data + 9; p <= last; p = word.data + word.len + 1) {

        word.data = p;

        for ( /* void */ ; p < last && *p != ','; p++) { /* void */ }

        word.len = p - word.data;
        end = ngx_mcp_retry_word(&word);

        if (end == 0 || (tool->retry ^ NGX_MCP_RETRY_DEFAULT) & end) {
            return NGX_ERROR;
        }

        tool->retry ^= end;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_route_word(ngx_str_t *arg, ngx_mcp_tool_t *tool)
{
    ngx_uint_t  i, *field;
    static struct {
        const char  *word;
        size_t       offset;
        ngx_uint_t   value;
    } words[] = {
        { "support=optional", offsetof(ngx_mcp_tool_t, support),
          NGX_MCP_OPTIONAL },
        { "support=required", offsetof(ngx_mcp_tool_t, support),
          NGX_MCP_REQUIRED },
        { "support=forbidden", offsetof(ngx_mcp_tool_t, support),
          NGX_MCP_FORBIDDEN },
        { "input=task", offsetof(ngx_mcp_tool_t, asks), NGX_MCP_INPUT_TASK },
        { "input=call", offsetof(ngx_mcp_tool_t, asks), NGX_MCP_INPUT_CALL },
        { "input=first", offsetof(ngx_mcp_tool_t, asks), NGX_MCP_INPUT_FIRST },
        { "idempotent", offsetof(ngx_mcp_tool_t, idempotent), 1 },
        { NULL, 0, 0 }
    };

    for (i = 0; words[i].word; i++) {
        if (ngx_strcmp(arg->data, words[i].word) != 0) {
            continue;
        }

        field = (ngx_uint_t *) ((u_char *) tool + words[i].offset);

        if (*field != NGX_CONF_UNSET_UINT) {
            return NGX_DECLINED;
        }

        *field = words[i].value;
        return NGX_OK;
    }

    return NGX_ERROR;
}


static void
ngx_mcp_route_init(ngx_mcp_tool_t *tool)
{
    ngx_memzero(tool, sizeof(ngx_mcp_tool_t));

    tool->support = NGX_CONF_UNSET_UINT;
    tool->asks = NGX_CONF_UNSET_UINT;
    tool->idempotent = NGX_CONF_UNSET_UINT;
    tool->after = NGX_CONF_UNSET_MSEC;
    tool->lease = NGX_MCP_UNLIMITED;
    tool->backoff = NGX_CONF_UNSET_MSEC;
    tool->queue_timeout = NGX_CONF_UNSET_MSEC;
    tool->run_timeout = NGX_CONF_UNSET_MSEC;
    tool->ttl = NGX_CONF_UNSET_MSEC;
    tool->attempts = NGX_CONF_UNSET;
    tool->priority = 1;
    tool->retry = NGX_CONF_UNSET_UINT;
}


/* Other parameters that are not set are inherited from the location. */

static void
ngx_mcp_route_defaults(ngx_mcp_tool_t *tool)
{
    ngx_conf_init_uint_value(tool->support, NGX_MCP_OPTIONAL);
    ngx_conf_init_uint_value(tool->asks, NGX_MCP_INPUT_TASK);
    ngx_conf_init_uint_value(tool->idempotent, 0);
    ngx_conf_init_uint_value(tool->retry, 0);
    ngx_conf_init_msec_value(tool->after, 0);
}


char *
ngx_mcp_conf_merge_pass(ngx_conf_t *cf, ngx_mcp_loc_conf_t *prev,
    ngx_mcp_loc_conf_t *conf)
{
    uint32_t                   route;
    ngx_http_core_srv_conf_t  *cscf;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_mcp_loc_conf_t       **gateway;

    if (conf->pass.data == NULL) {
        conf->pass = prev->pass;
        conf->pass_eras = prev->pass_eras;
        conf->schemas = prev->schemas;
    }

    if (conf->pass.len) {
        conf->unparsed = ngx_mcp_pass_unparsed;
    }

    ngx_conf_merge_ptr_value(conf->routes, prev->routes, NULL);
    ngx_conf_merge_uint_value(conf->max_running, prev->max_running,
                              NGX_MCP_MAX_RUNNING);
    ngx_conf_merge_uint_value(conf->max_tool_running, prev->max_tool_running,
                              0);

    if (conf->zone == NULL || conf->pass.len == 0) {
        return NGX_CONF_OK;
    }

    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    conf->conf_ctx = cscf->ctx;

    if (clcf->noname) {
        conf->route = prev->route;
        return NGX_CONF_OK;
    }

    /* a task stores this hash: other processes find the location by it */

    ngx_crc32_init(route);
    ngx_crc32_update(&route, cscf->server_name.data, cscf->server_name.len);
    ngx_crc32_update(&route, clcf->name.data, clcf->name.len);
    ngx_crc32_update(&route, conf->pass.data, conf->pass.len);
    ngx_crc32_final(route);

    conf->route = route ? route : 1;

    gateway = ngx_array_push(&conf->zone->gateways);
    if (gateway == NULL) {
        return NGX_CONF_ERROR;
    }

    *gateway = conf;

    return NGX_CONF_OK;
}


/* Finds settings by the exact name first, then by regex in their order. */

ngx_mcp_tool_t *
ngx_mcp_route_find(ngx_mcp_loc_conf_t *lcf, ngx_str_t *name)
{
#if (NGX_PCRE)
    ngx_uint_t             i;
#endif
    ngx_mcp_tool_t        *tool;
    static ngx_mcp_tool_t  any;

    if (any.lease == 0) {
        ngx_mcp_route_init(&any);
        ngx_mcp_route_defaults(&any);
    }

    if (lcf->routes == NULL) {
        return &any;
    }

    tool = ngx_mcp_tool_find(lcf->routes, name);

    if (tool) {
        return tool;
    }

#if (NGX_PCRE)

    tool = lcf->routes->elts;

    for (i = 0; i < lcf->routes->nelts; i++) {
        if (tool[i].regex && ngx_regex_exec(tool[i].regex, name, NULL, 0) >= 0)
        {
            return &tool[i];
        }
    }

#endif

    return &any;
}


ngx_mcp_tool_t *
ngx_mcp_route_schema(ngx_mcp_loc_conf_t *lcf, ngx_str_t *name)
{
    return lcf->schemas ? ngx_mcp_tool_find(lcf->schemas, name) : NULL;
}
