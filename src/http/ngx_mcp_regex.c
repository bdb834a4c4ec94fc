
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Patterns of schemas, by nginx's regular expressions. */


#include "ngx_mcp_tools.h"
#include "ngx_mcp_pattern.h"


#if (NGX_PCRE)

static ngx_int_t ngx_mcp_regex_compile(ngx_pool_t *pool, ngx_str_t *pattern,
    void **regex, ngx_str_t *err);
static ngx_int_t ngx_mcp_regex_match(void *regex, ngx_str_t *s);


static ngx_mcp_schema_regex_t  ngx_mcp_regex_pcre = {
    ngx_mcp_regex_compile,
    ngx_mcp_regex_match
};

#endif


ngx_mcp_schema_regex_t *
ngx_mcp_regex(void)
{
#if (NGX_PCRE)
    return &ngx_mcp_regex_pcre;
#else
    return NULL;
#endif
}


#if (NGX_PCRE)

static ngx_int_t
ngx_mcp_regex_compile(ngx_pool_t *pool, ngx_str_t *pattern, void **regex,
    ngx_str_t *err)
{
    u_char                errstr[NGX_MAX_CONF_ERRSTR];
    const char           *what;
    ngx_regex_compile_t   rc;

    ngx_memzero(&rc, sizeof(ngx_regex_compile_t));

    what = ngx_mcp_pattern_pcre(pool, pattern, &rc.pattern);

    if (what) {
        err->data = (u_char *) what;
        err->len = ngx_strlen(what);
        return NGX_ERROR;
    }

    rc.pool = pool;
    rc.err.data = errstr;
    rc.err.len = NGX_MAX_CONF_ERRSTR;

    if (ngx_regex_compile(&rc) != NGX_OK) {
        err->len = rc.err.len;
        err->data = ngx_pstrdup(pool, &rc.err);

        if (err->data == NULL) {
            err->len = 0;
        }

        return NGX_ERROR;
    }

    *regex = rc.regex;

    return NGX_OK;
}


/* the limit is in the pattern: nginx has no parameter for it */

static ngx_int_t
ngx_mcp_regex_match(void *regex, ngx_str_t *s)
{
    ngx_int_t  n;

    n = ngx_regex_exec((ngx_regex_t *) regex, s, NULL, 0);

    if (n >= 0) {
        return NGX_OK;
    }

    return (n == NGX_REGEX_NO_MATCHED) ? NGX_DECLINED : NGX_ABORT;
}

#endif
