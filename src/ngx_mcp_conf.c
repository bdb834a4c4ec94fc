
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The settings of a location: parsing, defaults, inheritance and checks. */


#include "ngx_mcp_conf.h"
#include "ngx_mcp_gateway.h"


typedef enum {
    NGX_MCP_ARG_TIME = 0,
    NGX_MCP_ARG_LIMIT,      /* a time, or "off" */
    NGX_MCP_ARG_NUMBER,
    NGX_MCP_ARG_SIZE
} ngx_mcp_arg_e;


/*
 * Parameters of directives with several values.  A value with an empty name is
 * given without one, and must be the first argument of its directive.
 */

typedef struct {
    const char  *directive;
    const char  *name;
    ngx_uint_t   type;
    size_t       offset;
} ngx_mcp_arg_t;


#define ngx_mcp_arg(directive, name, type, field)                             \
    { "mcp_tasks_" directive, name, NGX_MCP_ARG_ ## type,                     \
      offsetof(ngx_mcp_loc_conf_t, field) }


static ngx_mcp_arg_t  ngx_mcp_args[] = {
    ngx_mcp_arg("ttl", "", LIMIT, ttl),
    ngx_mcp_arg("ttl", "max=", LIMIT, max_ttl),
    ngx_mcp_arg("retention", "completed=", LIMIT, keep_completed),
    ngx_mcp_arg("retention", "failed=", LIMIT, keep_failed),
    ngx_mcp_arg("retention", "cancelled=", LIMIT, keep_cancelled),
    ngx_mcp_arg("timeout", "queue=", LIMIT, queue_timeout),
    ngx_mcp_arg("timeout", "run=", LIMIT, run_timeout),
    ngx_mcp_arg("limit", "tasks=", NUMBER, max_owner_tasks),
    ngx_mcp_arg("limit", "bytes=", SIZE, max_owner_bytes),
    ngx_mcp_arg("limit", "payload=", SIZE, max_payload),
    ngx_mcp_arg("poll_timeout", "", TIME, poll_timeout),
    ngx_mcp_arg("poll_timeout", "max=", TIME, max_poll_timeout),
    ngx_mcp_arg("max_waiters", "", NUMBER, max_waiters),
    ngx_mcp_arg("max_waiters", "zone=", NUMBER, max_zone_waiters),
    ngx_mcp_arg("max_running", "", NUMBER, max_running),
    ngx_mcp_arg("max_running", "tool=", NUMBER, max_tool_running),
    ngx_mcp_arg("retries", "", NUMBER, retries),
    ngx_mcp_arg("retries", "backoff=", TIME, backoff),
    ngx_mcp_arg("client_policy", "timeout=", TIME, client_timeout),
    ngx_mcp_arg("client_policy", "priority=", NUMBER, client_priority),
    { NULL, NULL, 0, 0 }
};


static void ngx_mcp_conf_merge_values(ngx_mcp_loc_conf_t *prev,
    ngx_mcp_loc_conf_t *conf);
static ngx_int_t ngx_mcp_check_values(ngx_conf_t *cf,
    ngx_mcp_loc_conf_t *conf);
static ngx_int_t ngx_mcp_zero(ngx_conf_t *cf, const char *directive);
static ngx_int_t ngx_mcp_set_arg(ngx_str_t *value, ngx_mcp_arg_t *arg,
    void *conf);


void *
ngx_mcp_create_loc_conf(ngx_conf_t *cf)
{
    ngx_mcp_loc_conf_t  *lcf;

    /*
     * set by ngx_pcalloc():
     *
     *     lcf->zone = NULL;
     *     lcf->open = 0;
     *     lcf->admin = 0;
     *     lcf->format = NGX_MCP_FORMAT_ANY;
     *     lcf->owner = NULL;
     *     lcf->pass = { 0, NULL };
     */

    lcf = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_loc_conf_t));
    if (lcf == NULL) {
        return NULL;
    }

    lcf->tools = NGX_CONF_UNSET_PTR;
    lcf->origins = NGX_CONF_UNSET_PTR;
    lcf->any_origin = NGX_CONF_UNSET;
    lcf->ttl = NGX_CONF_UNSET_MSEC;
    lcf->max_ttl = NGX_CONF_UNSET_MSEC;
    lcf->keep_completed = NGX_CONF_UNSET_MSEC;
    lcf->keep_failed = NGX_CONF_UNSET_MSEC;
    lcf->keep_cancelled = NGX_CONF_UNSET_MSEC;
    lcf->queue_timeout = NGX_CONF_UNSET_MSEC;
    lcf->run_timeout = NGX_CONF_UNSET_MSEC;
    lcf->poll_interval = NGX_CONF_UNSET_MSEC;
    lcf->keepalive = NGX_CONF_UNSET_MSEC;
    lcf->poll_timeout = NGX_CONF_UNSET_MSEC;
    lcf->max_poll_timeout = NGX_CONF_UNSET_MSEC;
    lcf->max_waiters = NGX_CONF_UNSET_UINT;
    lcf->max_zone_waiters = NGX_CONF_UNSET_UINT;
    lcf->lease = NGX_CONF_UNSET_MSEC;
    lcf->backoff = NGX_CONF_UNSET_MSEC;
    lcf->retries = NGX_CONF_UNSET_UINT;
    lcf->client_timeout = NGX_CONF_UNSET_MSEC;
    lcf->client_priority = NGX_CONF_UNSET_UINT;
    lcf->max_owner_tasks = NGX_CONF_UNSET_UINT;
    lcf->max_owner_bytes = NGX_CONF_UNSET_SIZE;
    lcf->max_payload = NGX_CONF_UNSET_SIZE;
    lcf->routes = NGX_CONF_UNSET_PTR;
    lcf->max_running = NGX_CONF_UNSET_UINT;
    lcf->max_tool_running = NGX_CONF_UNSET_UINT;

    return lcf;
}


/*
 * A ttl that exceeds its maximum is an error only if it is set at this level.
 */

char *
ngx_mcp_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_mcp_loc_conf_t *prev = parent;
    ngx_mcp_loc_conf_t *conf = child;

    ngx_uint_t  own_ttl;

    own_ttl = (conf->ttl != NGX_CONF_UNSET_MSEC);

    if (ngx_mcp_conf_merge_surface(cf, prev, conf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    ngx_mcp_conf_merge_values(prev, conf);

    if (ngx_mcp_check_values(cf, conf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (conf->ttl > conf->max_ttl) {

        if (own_ttl) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"mcp_tasks_ttl\" must not exceed its \"max\" "
                               "parameter, which is %M ms", conf->max_ttl);
            return NGX_CONF_ERROR;
        }

        /* the default ttl, or one of an outer level, is limited silently */

        conf->ttl = conf->max_ttl;
    }

    return ngx_mcp_conf_merge_pass(cf, prev, conf);
}


/* values that are not set are inherited, or get their default */

static void
ngx_mcp_conf_merge_values(ngx_mcp_loc_conf_t *prev, ngx_mcp_loc_conf_t *conf)
{
    if (conf->owner == NULL) {
        conf->owner = prev->owner;
    }

    /* mcp_tasks_allow_origin sets both */

    if (conf->any_origin == NGX_CONF_UNSET) {
        conf->any_origin = prev->any_origin;
        conf->origins = prev->origins;
    }

    ngx_conf_merge_value(conf->any_origin, prev->any_origin, 0);
    ngx_conf_merge_ptr_value(conf->origins, prev->origins, NULL);
    ngx_conf_merge_ptr_value(conf->tools, prev->tools, NULL);

    ngx_conf_merge_msec_value(conf->ttl, prev->ttl, 86400000);
    ngx_conf_merge_msec_value(conf->max_ttl, prev->max_ttl, 604800000);
    ngx_conf_merge_msec_value(conf->keep_completed, prev->keep_completed,
                              86400000);
    ngx_conf_merge_msec_value(conf->keep_failed, prev->keep_failed, 86400000);
    ngx_conf_merge_msec_value(conf->keep_cancelled, prev->keep_cancelled,
                              3600000);
    ngx_conf_merge_msec_value(conf->queue_timeout, prev->queue_timeout,
                              600000);
    ngx_conf_merge_msec_value(conf->run_timeout, prev->run_timeout, 3600000);
    ngx_conf_merge_msec_value(conf->poll_interval, prev->poll_interval, 1000);
    ngx_conf_merge_msec_value(conf->keepalive, prev->keepalive, 15000);
    ngx_conf_merge_msec_value(conf->poll_timeout, prev->poll_timeout, 30000);
    ngx_conf_merge_msec_value(conf->max_poll_timeout, prev->max_poll_timeout,
                              60000);
    ngx_conf_merge_uint_value(conf->max_waiters, prev->max_waiters, 100);
    ngx_conf_merge_uint_value(conf->max_zone_waiters, prev->max_zone_waiters,
                              10000);
    ngx_conf_merge_msec_value(conf->lease, prev->lease, 30000);
    ngx_conf_merge_msec_value(conf->backoff, prev->backoff, 1000);
    ngx_conf_merge_uint_value(conf->retries, prev->retries, 2);

    ngx_conf_merge_msec_value(conf->client_timeout, prev->client_timeout, 0);
    ngx_conf_merge_uint_value(conf->client_priority, prev->client_priority,
                              NGX_MCP_PRIORITIES);

    ngx_conf_merge_uint_value(conf->max_owner_tasks, prev->max_owner_tasks, 0);
    ngx_conf_merge_size_value(conf->max_owner_bytes, prev->max_owner_bytes, 0);
    ngx_conf_merge_size_value(conf->max_payload, prev->max_payload,
                              1024 * 1024);
}


static ngx_int_t
ngx_mcp_check_values(ngx_conf_t *cf, ngx_mcp_loc_conf_t *conf)
{
    /* some clients poll without a pause if the interval is 0 */

    if (conf->poll_interval == 0) {
        return ngx_mcp_zero(cf, "mcp_tasks_poll_interval");
    }

    if (conf->lease == 0) {
        return ngx_mcp_zero(cf, "mcp_tasks_lease");
    }

    /* task records keep both in 32 bits */

    if (conf->poll_interval >= NGX_MCP_UNLIMITED
        || conf->lease >= NGX_MCP_UNLIMITED)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"mcp_tasks_poll_interval\" and "
                           "\"mcp_tasks_lease\" must not exceed 49 days");
        return NGX_ERROR;
    }

    if (conf->ttl == 0 || conf->max_ttl == 0) {
        return ngx_mcp_zero(cf, "mcp_tasks_ttl");
    }

    if (conf->keepalive == 0) {
        return ngx_mcp_zero(cf, "mcp_tasks_keepalive");
    }

    if (conf->retries > 254) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"mcp_tasks_retries\" must not exceed 254");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_zero(ngx_conf_t *cf, const char *directive)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%s\" must not be zero", directive);

    return NGX_ERROR;
}


char *
ngx_mcp_set_owner(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t                         *value;
    ngx_http_compile_complex_value_t   ccv;

    if (lcf->owner) {
        return "is duplicate";
    }

    value = cf->args->elts;

    lcf->owner = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (lcf->owner == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = lcf->owner;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_mcp_set_tools(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t  *value;

    if (lcf->tools != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_conf_full_name(cf->cycle, &value[1], 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_mcp_tools_read(cf, &value[1], &lcf->tools);
}


char *
ngx_mcp_set_origin(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t   *value, *s;
    ngx_uint_t   i;

    if (lcf->any_origin != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;
    lcf->any_origin = 0;

    lcf->origins = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                    sizeof(ngx_str_t));
    if (lcf->origins == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "any") == 0) {
            lcf->any_origin = 1;
            continue;
        }

        s = ngx_array_push(lcf->origins);
        if (s == NULL) {
            return NGX_CONF_ERROR;
        }

        *s = value[i];
        ngx_strlow(s->data, s->data, s->len);
    }

    return NGX_CONF_OK;
}


/* parameters that are not given are not inherited: clients may not use them */

char *
ngx_mcp_set_client_policy(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    char       *rv;
    ngx_str_t  *value;

    if (lcf->client_timeout != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts != 2 || ngx_strcmp(value[1].data, "off") != 0) {

        rv = ngx_mcp_set_args(cf, cmd, conf);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (lcf->client_timeout == 0) {
        (void) ngx_mcp_zero(cf, "mcp_tasks_client_policy timeout=");
        return NGX_CONF_ERROR;
    }

    if (lcf->client_priority != NGX_CONF_UNSET_UINT
        && lcf->client_priority >= NGX_MCP_PRIORITIES)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"mcp_tasks_client_policy priority=\" must not "
                           "exceed 3");
        return NGX_CONF_ERROR;
    }

    ngx_conf_init_msec_value(lcf->client_timeout, 0);
    ngx_conf_init_uint_value(lcf->client_priority, NGX_MCP_PRIORITIES);

    return NGX_CONF_OK;
}


/* sets the parameters of any directive listed in ngx_mcp_args */

char *
ngx_mcp_set_args(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    size_t          len;
    ngx_int_t       rc;
    ngx_str_t      *value, s;
    ngx_uint_t      i;
    ngx_mcp_arg_t  *arg;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        rc = NGX_ERROR;

        for (arg = ngx_mcp_args; arg->directive; arg++) {

            len = ngx_strlen(arg->name);

            if (ngx_strcmp(arg->directive, cmd->name.data) != 0
                || (len == 0) != (i == 1 && ngx_strchr(value[i].data, '=')
                                            == NULL)
                || ngx_strncmp(value[i].data, arg->name, len) != 0)
            {
                continue;
            }

            s.data = value[i].data + len;
            s.len = value[i].len - len;

            rc = ngx_mcp_set_arg(&s, arg, conf);
            break;
        }

        if (rc == NGX_DECLINED) {
            return "is duplicate";
        }

        if (rc != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" in \"%V\" directive",
                               &value[i], &cmd->name);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/*
 * All values are machine words, and NGX_CONF_UNSET until they are set.
 * Returns NGX_DECLINED if the parameter is a duplicate, and NGX_ERROR if the
 * value is invalid.
 */

static ngx_int_t
ngx_mcp_set_arg(ngx_str_t *value, ngx_mcp_arg_t *arg, void *conf)
{
    ngx_int_t   n;
    ngx_int_t  *field;

    field = (ngx_int_t *) ((u_char *) conf + arg->offset);

    if (*field != NGX_CONF_UNSET) {
        return NGX_DECLINED;
    }

    switch (arg->type) {

    case NGX_MCP_ARG_TIME:
    case NGX_MCP_ARG_LIMIT:

        if (arg->type == NGX_MCP_ARG_LIMIT
            && value->len == 3 && ngx_strncmp(value->data, "off", 3) == 0)
        {
            n = NGX_MCP_UNLIMITED;
            break;
        }

        n = ngx_parse_time(value, 0);

        if ((uint64_t) n >= NGX_MCP_UNLIMITED) {
            return NGX_ERROR;
        }

        break;

    case NGX_MCP_ARG_SIZE:
        n = ngx_parse_size(value);
        break;

    default:
        n = ngx_atoi(value->data, value->len);

        if (n > (ngx_int_t) NGX_MAX_UINT32_VALUE) {
            return NGX_ERROR;
        }
    }

    if (n == NGX_ERROR) {
        return NGX_ERROR;
    }

    *field = n;

    return NGX_OK;
}
