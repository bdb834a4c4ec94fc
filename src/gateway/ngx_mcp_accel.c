
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Ignores X-Accel-... headers of the upstream.
 *
 * With these headers an upstream can make nginx send a response from any
 * location, including internal ones, and control rate and buffering.  An MCP
 * server must not do that, whatever proxy_ignore_headers is set to.
 *
 * All upstream modules find the handler of a response header in one table of
 * the main configuration.  The handlers below replace nginx's own in this
 * table, and call nginx's own for all other requests.
 */


#include "ngx_mcp_gateway.h"


#define NGX_MCP_ACCELS  5


static void **ngx_mcp_accel_find(ngx_hash_t *hash, ngx_str_t *name);
static ngx_int_t ngx_mcp_accel_handler(ngx_http_request_t *r,
    ngx_table_elt_t *h, ngx_uint_t offset);


static ngx_str_t  ngx_mcp_accel_names[NGX_MCP_ACCELS] = {
    ngx_string("x-accel-redirect"),
    ngx_string("x-accel-expires"),
    ngx_string("x-accel-limit-rate"),
    ngx_string("x-accel-buffering"),
    ngx_string("x-accel-charset")
};


/* nginx's own entries, which are the same in each configuration */
static ngx_http_upstream_header_t  ngx_mcp_accels[NGX_MCP_ACCELS];


/* nginx creates a new table for each configuration, before this is called. */

ngx_int_t
ngx_mcp_accel_init(ngx_conf_t *cf)
{
    void                           **value;
    ngx_uint_t                       i;
    ngx_http_upstream_header_t      *header;
    ngx_http_upstream_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);

    for (i = 0; i < NGX_MCP_ACCELS; i++) {

        value = ngx_mcp_accel_find(&umcf->headers_in_hash,
                                   &ngx_mcp_accel_names[i]);

        if (value == NULL) {
            /* this version of nginx ignores the header */
            continue;
        }

        header = ngx_palloc(cf->pool, sizeof(ngx_http_upstream_header_t));
        if (header == NULL) {
            return NGX_ERROR;
        }

        *header = *(ngx_http_upstream_header_t *) *value;
        ngx_mcp_accels[i] = *header;
        header->handler = ngx_mcp_accel_handler;
        *value = header;
    }

    return NGX_OK;
}


/* Like ngx_hash_find(), but returns the address of the value. */

static void **
ngx_mcp_accel_find(ngx_hash_t *hash, ngx_str_t *name)
{
    ngx_hash_elt_t  *elt;

    elt = hash->buckets[ngx_hash_key(name->data, name->len) % hash->size];

    if (elt == NULL) {
        return NULL;
    }

    while (elt->value) {

        if (elt->len == name->len
            && ngx_memcmp(elt->name, name->data, name->len) == 0)
        {
            return &elt->value;
        }

        elt = (ngx_hash_elt_t *) ngx_align_ptr(&elt->name[0] + elt->len,
                                               sizeof(void *));
    }

    return NULL;
}


/* Headers in responses to subrequests, as of auth_request, are not ignored. */

static ngx_int_t
ngx_mcp_accel_handler(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_uint_t offset)
{
    ngx_uint_t      i;
    ngx_mcp_ctx_t  *ctx;

    ctx = (r == r->main) ? ngx_mcp_ctx(r) : NULL;

    if (ctx && (ctx->passed || ctx->detached)) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "mcp tasks ignored upstream header \"%V\"", &h->key);
        return NGX_OK;
    }

    for (i = 0; i < NGX_MCP_ACCELS; i++) {
        if (h->key.len == ngx_mcp_accel_names[i].len
            && ngx_strncasecmp(h->key.data, ngx_mcp_accel_names[i].data,
                               h->key.len)
               == 0)
        {
            return ngx_mcp_accels[i].handler(r, h, offset);
        }
    }

    return NGX_OK;
}
