
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The block mcp_tasks_redis.  It is a directive of a module of its own, so that
 * the main module does not depend on the stores that are built in.
 */


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_REDIS)


#include "ngx_mcp_redis_conf.h"


#define NGX_MCP_REDIS_PORT        6379
#define NGX_MCP_REDIS_MAX_PREFIX  64


typedef char *(*ngx_mcp_redis_set_pt)(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);

/* a directive of the block; the offset is that of what it sets */

typedef struct {
    ngx_str_t              name;
    ngx_uint_t             args;        /* at most, without the name */
    ngx_mcp_redis_set_pt   set;
    char                *(*slot)(ngx_conf_t *cf, ngx_command_t *cmd,
                                 void *conf);
    ngx_uint_t             offset;
} ngx_mcp_redis_line_t;


static void *ngx_mcp_redis_create_main_conf(ngx_conf_t *cf);
static ngx_int_t ngx_mcp_redis_postconfiguration(ngx_conf_t *cf);
static char *ngx_mcp_redis_block(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_mcp_redis_line(ngx_conf_t *cf, ngx_command_t *dummy,
    void *conf);
static char *ngx_mcp_redis_set_server(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);
static char *ngx_mcp_redis_set_password_file(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);
static char *ngx_mcp_redis_set_prefix(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);
static char *ngx_mcp_redis_set_partitions(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);
static char *ngx_mcp_redis_set_retry(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);
static char *ngx_mcp_redis_defaults(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);
static char *ngx_mcp_redis_check_tls(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);

#if (NGX_SSL)
static char *ngx_mcp_redis_init_tls(ngx_conf_t *cf,
    ngx_mcp_redis_conf_t *conf);
#endif


extern ngx_module_t  ngx_http_mcp_tasks_redis_module;


static ngx_command_t  ngx_mcp_redis_commands[] = {

    { ngx_string("mcp_tasks_redis"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_BLOCK|NGX_CONF_TAKE1,
      ngx_mcp_redis_block,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_mcp_redis_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_mcp_redis_postconfiguration,       /* postconfiguration */

    ngx_mcp_redis_create_main_conf,        /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_mcp_tasks_redis_module = {
    NGX_MODULE_V1,
    &ngx_mcp_redis_module_ctx,             /* module context */
    ngx_mcp_redis_commands,                /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_mcp_redis_line_t  ngx_mcp_redis_lines[] = {

    { ngx_string("server"), 1, ngx_mcp_redis_set_server, NULL, 0 },

    { ngx_string("user"), 1, NULL, ngx_conf_set_str_slot,
      offsetof(ngx_mcp_redis_conf_t, user) },

    { ngx_string("password_file"), 1, ngx_mcp_redis_set_password_file,
      NULL, 0 },

    { ngx_string("database"), 1, NULL, ngx_conf_set_num_slot,
      offsetof(ngx_mcp_redis_conf_t, database) },

    { ngx_string("prefix"), 1, ngx_mcp_redis_set_prefix, NULL, 0 },

    { ngx_string("partitions"), 1, ngx_mcp_redis_set_partitions, NULL, 0 },

    { ngx_string("timeout"), 1, NULL, ngx_conf_set_msec_slot,
      offsetof(ngx_mcp_redis_conf_t, timeout) },

    { ngx_string("connect_timeout"), 1, NULL, ngx_conf_set_msec_slot,
      offsetof(ngx_mcp_redis_conf_t, connect_timeout) },

    { ngx_string("retry"), 2, ngx_mcp_redis_set_retry, NULL, 0 },

    { ngx_string("tls"), 1, NULL, ngx_conf_set_flag_slot,
      offsetof(ngx_mcp_redis_conf_t, tls) },

    { ngx_string("tls_trusted_certificate"), 1, NULL, ngx_conf_set_str_slot,
      offsetof(ngx_mcp_redis_conf_t, tls_trusted) },

    { ngx_string("tls_name"), 1, NULL, ngx_conf_set_str_slot,
      offsetof(ngx_mcp_redis_conf_t, tls_name) },

    { ngx_string("tls_verify"), 1, NULL, ngx_conf_set_flag_slot,
      offsetof(ngx_mcp_redis_conf_t, tls_verify) },

    { ngx_string("tls_verify_depth"), 1, NULL, ngx_conf_set_num_slot,
      offsetof(ngx_mcp_redis_conf_t, tls_depth) },

    { ngx_null_string, 0, NULL, NULL, 0 }
};


/* an array of pointers: a zone keeps one while others are added */

static void *
ngx_mcp_redis_create_main_conf(ngx_conf_t *cf)
{
    return ngx_array_create(cf->pool, 1, sizeof(ngx_mcp_redis_conf_t *));
}


ngx_mcp_redis_conf_t *
ngx_mcp_redis_conf(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t              i;
    ngx_array_t            *blocks;
    ngx_mcp_redis_conf_t  **conf;

    blocks = ngx_http_conf_get_module_main_conf(cf,
                                              ngx_http_mcp_tasks_redis_module);
    conf = blocks->elts;

    for (i = 0; i < blocks->nelts; i++) {
        if (conf[i]->name.len == name->len
            && ngx_strncmp(conf[i]->name.data, name->data, name->len) == 0)
        {
            return conf[i];
        }
    }

    return NULL;
}


/* the resolver may be configured after the block */

static ngx_int_t
ngx_mcp_redis_postconfiguration(ngx_conf_t *cf)
{
    ngx_uint_t              i;
    ngx_array_t            *blocks;
    ngx_resolver_t         *resolver;
    ngx_mcp_redis_conf_t  **conf;

    blocks = ngx_http_conf_get_module_main_conf(cf,
                                              ngx_http_mcp_tasks_redis_module);
    conf = blocks->elts;

    for (i = 0; i < blocks->nelts; i++) {

        if (conf[i]->url.naddrs) {
            continue;
        }

        /* nginx adds an empty one where there is none */

        resolver = conf[i]->clcf->resolver;

        if (resolver == NULL || resolver->connections.nelts == 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "no \"resolver\" is defined at the http level to "
                          "resolve \"%V\" in %s:%ui",
                          &conf[i]->url.host, conf[i]->file, conf[i]->line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static char *
ngx_mcp_redis_block(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_array_t  *blocks = conf;

    char                  *rv;
    ngx_str_t             *value;
    ngx_conf_t             save;
    ngx_mcp_redis_conf_t  *rcf, **slot;

    value = cf->args->elts;

    if (value[1].len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"mcp_tasks_redis\" has an empty name");
        return NGX_CONF_ERROR;
    }

    if (ngx_mcp_redis_conf(cf, &value[1])) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_redis \"%V\" is duplicate", &value[1]);
        return NGX_CONF_ERROR;
    }

    rcf = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_redis_conf_t));
    slot = ngx_array_push(blocks);

    if (rcf == NULL || slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = rcf;

    rcf->name = value[1];
    rcf->cycle = cf->cycle;
    rcf->clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    rcf->file = cf->conf_file->file.name.data;
    rcf->line = cf->conf_file->line;

    rcf->database = NGX_CONF_UNSET_UINT;
    rcf->partitions = NGX_CONF_UNSET_UINT;
    rcf->timeout = NGX_CONF_UNSET_MSEC;
    rcf->connect_timeout = NGX_CONF_UNSET_MSEC;
    rcf->retry = NGX_CONF_UNSET_MSEC;
    rcf->max_retry = NGX_CONF_UNSET_MSEC;
    rcf->tls = NGX_CONF_UNSET;
    rcf->tls_verify = NGX_CONF_UNSET;
    rcf->tls_depth = NGX_CONF_UNSET_UINT;

    save = *cf;
    cf->handler = ngx_mcp_redis_line;
    cf->handler_conf = (void *) rcf;

    rv = ngx_conf_parse(cf, NULL);

    *cf = save;

    return rv == NGX_CONF_OK ? ngx_mcp_redis_defaults(cf, rcf) : rv;
}


static char *
ngx_mcp_redis_line(ngx_conf_t *cf, ngx_command_t *dummy, void *conf)
{
    char                  *rv;
    ngx_str_t             *value;
    ngx_command_t          cmd;
    ngx_mcp_redis_line_t  *line;

    value = cf->args->elts;

    if (ngx_strcmp(value[0].data, "include") == 0) {
        return ngx_conf_include(cf, dummy, conf);
    }

    for (line = ngx_mcp_redis_lines; line->name.len; line++) {
        if (ngx_strcmp(value[0].data, line->name.data) == 0) {
            break;
        }
    }

    if (line->name.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown directive \"%V\" in mcp_tasks_redis",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    if (cf->args->nelts < 2 || cf->args->nelts > line->args + 1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of arguments in \"%V\" directive",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&cmd, sizeof(ngx_command_t));
    cmd.name = line->name;
    cmd.offset = line->offset;

    rv = line->set ? line->set(cf, conf) : line->slot(cf, &cmd, conf);

    if (rv == NGX_CONF_OK || rv == NGX_CONF_ERROR) {
        return rv;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" directive %s: \"%V\"",
                       &value[0], rv, &value[1]);

    return NGX_CONF_ERROR;
}


static char *
ngx_mcp_redis_set_server(ngx_conf_t *cf, ngx_mcp_redis_conf_t *conf)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    if (conf->url.url.len) {
        return "is duplicate";
    }

    conf->url.url = value[1];
    conf->url.default_port = NGX_MCP_REDIS_PORT;
    conf->url.no_resolve = 1;

    if (value[1].len == 0) {
        return "has an invalid value";
    }

    if (ngx_parse_url(cf->pool, &conf->url) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in server \"%V\"",
                           conf->url.err ? conf->url.err : "no memory",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_mcp_redis_set_password_file(ngx_conf_t *cf, ngx_mcp_redis_conf_t *conf)
{
    ngx_str_t   *value;
    const char  *err;

    value = cf->args->elts;

    if (conf->password_file.len) {
        return "is duplicate";
    }

    conf->password_file = value[1];

    if (ngx_conf_full_name(cf->cycle, &conf->password_file, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    conf->password.data = ngx_pnalloc(cf->pool, NGX_MCP_REDIS_PASSWORD);
    if (conf->password.data == NULL) {
        return NGX_CONF_ERROR;
    }

    conf->password.len = ngx_mcp_redis_password(conf, conf->password.data,
                                                &err);

    if (conf->password.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "password_file \"%V\" %s", &conf->password_file,
                           err);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


size_t
ngx_mcp_redis_password(ngx_mcp_redis_conf_t *conf, u_char *buf,
    const char **err)
{
    size_t     len;
    ssize_t    n;
    u_char     text[NGX_MCP_REDIS_PASSWORD + 2];
    ngx_fd_t   fd;
    ngx_err_t  failed;

    fd = ngx_open_file(conf->password_file.data, NGX_FILE_RDONLY,
                       NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        *err = "cannot be opened";
        return 0;
    }

    n = ngx_read_fd(fd, text, sizeof(text));
    failed = ngx_errno;

    (void) ngx_close_file(fd);

    if (n == -1) {
        ngx_set_errno(failed);
        *err = "cannot be read";
        return 0;
    }

    for (len = 0; len < (size_t) n; len++) {
        if (text[len] == LF || text[len] == CR || text[len] == '\0') {
            break;
        }
    }

    ngx_set_errno(0);

    if (len == 0) {
        *err = "has no password in its first line";
        return 0;
    }

    if (len > NGX_MCP_REDIS_PASSWORD) {
        *err = "has a password of more than 512 bytes";
        return 0;
    }

    ngx_memcpy(buf, text, len);

    return len;
}


/* "{}" are the hash tag of partitions */

static char *
ngx_mcp_redis_set_prefix(ngx_conf_t *cf, ngx_mcp_redis_conf_t *conf)
{
    size_t      i;
    ngx_str_t  *value;

    value = cf->args->elts;

    if (conf->prefix.len) {
        return "is duplicate";
    }

    if (value[1].len == 0) {
        return "has an empty value";
    }

    if (value[1].len > NGX_MCP_REDIS_MAX_PREFIX) {
        return "has a value of more than 64 bytes";
    }

    for (i = 0; i < value[1].len; i++) {
        if (value[1].data[i] == '{' || value[1].data[i] == '}') {
            return "has a brace in its value";
        }
    }

    conf->prefix = value[1];

    return NGX_CONF_OK;
}


static char *
ngx_mcp_redis_set_partitions(ngx_conf_t *cf, ngx_mcp_redis_conf_t *conf)
{
    ngx_int_t   n;
    ngx_str_t  *value;

    value = cf->args->elts;

    if (conf->partitions != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    n = ngx_atoi(value[1].data, value[1].len);

    if (n < 1 || n > NGX_MCP_REDIS_PARTITIONS || (n & (n - 1)) != 0) {
        return "needs a power of two up to 16384";
    }

    conf->partitions = n;

    return NGX_CONF_OK;
}


static char *
ngx_mcp_redis_set_retry(ngx_conf_t *cf, ngx_mcp_redis_conf_t *conf)
{
    ngx_int_t   n;
    ngx_str_t  *value, time;

    value = cf->args->elts;

    if (conf->retry != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    n = ngx_parse_time(&value[1], 0);

    if (n == NGX_ERROR || n == 0) {
        return "has an invalid value";
    }

    conf->retry = n;

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(value[2].data, "max=", 4) == 0) {
        time.data = value[2].data + 4;
        time.len = value[2].len - 4;
        n = ngx_parse_time(&time, 0);

        if (n != NGX_ERROR && n > 0) {
            conf->max_retry = n;
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" of \"retry\"", &value[2]);

    return NGX_CONF_ERROR;
}


static char *
ngx_mcp_redis_defaults(ngx_conf_t *cf, ngx_mcp_redis_conf_t *conf)
{
    if (conf->url.url.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_redis \"%V\" has no \"server\"",
                           &conf->name);
        return NGX_CONF_ERROR;
    }

    if (conf->user.len && conf->password_file.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_redis \"%V\" has a \"user\", "
                           "but no \"password_file\"", &conf->name);
        return NGX_CONF_ERROR;
    }

    if (conf->prefix.len == 0) {
        ngx_str_set(&conf->prefix, "mt");
    }

    ngx_conf_init_uint_value(conf->database, 0);
    ngx_conf_init_uint_value(conf->partitions, 1);
    ngx_conf_init_msec_value(conf->timeout, 5000);
    ngx_conf_init_msec_value(conf->connect_timeout, 1000);
    ngx_conf_init_msec_value(conf->retry, 50);
    ngx_conf_init_msec_value(conf->max_retry, ngx_max(conf->retry, 2000));

    if (conf->timeout == 0 || conf->connect_timeout == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_redis \"%V\" has a \"%s\" of zero",
                           &conf->name, conf->timeout == 0
                                        ? "timeout" : "connect_timeout");
        return NGX_CONF_ERROR;
    }

    if (conf->max_retry < conf->retry) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_redis \"%V\": \"max=\" of \"retry\" is "
                           "less than its time", &conf->name);
        return NGX_CONF_ERROR;
    }

    return ngx_mcp_redis_check_tls(cf, conf);
}


static char *
ngx_mcp_redis_check_tls(ngx_conf_t *cf, ngx_mcp_redis_conf_t *conf)
{
    ngx_flag_t  given;

    given = conf->tls_trusted.len || conf->tls_name.len
            || conf->tls_verify != NGX_CONF_UNSET
            || conf->tls_depth != NGX_CONF_UNSET_UINT;

    ngx_conf_init_value(conf->tls, 0);
    ngx_conf_init_value(conf->tls_verify, 1);
    ngx_conf_init_uint_value(conf->tls_depth, 1);

    if (!conf->tls) {

        if (given) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "mcp_tasks_redis \"%V\" has TLS parameters, "
                               "but not \"tls on\"", &conf->name);
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

#if (NGX_SSL)

    return ngx_mcp_redis_init_tls(cf, conf);

#else

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"tls\" of mcp_tasks_redis \"%V\" needs an nginx "
                       "that is built with TLS", &conf->name);
    return NGX_CONF_ERROR;

#endif
}


#if (NGX_SSL)


static char *
ngx_mcp_redis_init_tls(ngx_conf_t *cf, ngx_mcp_redis_conf_t *conf)
{
    ngx_str_t            ciphers = ngx_string("DEFAULT");
    ngx_pool_cleanup_t  *cln;

    if (conf->tls_name.len == 0 && conf->url.family != AF_UNIX) {
        conf->tls_name = conf->url.host;
    }

    if (conf->tls_verify && conf->tls_name.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_redis \"%V\" has no \"tls_name\", "
                           "which a unix socket needs", &conf->name);
        return NGX_CONF_ERROR;
    }

    if (conf->tls_verify && conf->tls_trusted.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "mcp_tasks_redis \"%V\" has no "
                           "\"tls_trusted_certificate\", which \"tls_verify\" "
                           "needs", &conf->name);
        return NGX_CONF_ERROR;
    }

    conf->ssl = ngx_pcalloc(cf->pool, sizeof(ngx_ssl_t));
    if (conf->ssl == NULL) {
        return NGX_CONF_ERROR;
    }

    conf->ssl->log = cf->log;

    if (ngx_ssl_create(conf->ssl, NGX_SSL_TLSv1_2|NGX_SSL_TLSv1_3, NULL)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        ngx_ssl_cleanup_ctx(conf->ssl);
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_ssl_cleanup_ctx;
    cln->data = conf->ssl;

    if (ngx_ssl_ciphers(cf, conf->ssl, &ciphers, 0) != NGX_OK
        || ngx_ssl_trusted_certificate(cf, conf->ssl, &conf->tls_trusted,
                                       conf->tls_depth)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


#endif


#endif /* NGX_MCP_REDIS */
