
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The trace context of a request, which a task that it creates keeps. */


#include "ngx_mcp_http.h"


static ngx_uint_t ngx_mcp_trace_headers(ngx_http_request_t *r,
    ngx_str_t *headers);


static ngx_mcp_trace_t  ngx_mcp_no_trace;


/* sets ctx->trace, which is determined on first use; NGX_ERROR: no memory */

ngx_int_t
ngx_mcp_tracing(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t         headers[NGX_MCP_TRACES];
    ngx_uint_t        n;
    ngx_mcp_json_t   *meta;
    ngx_mcp_trace_t  *trace;

    if (ctx->trace) {
        return NGX_OK;
    }

    meta = ctx->params.trace;
    n = ngx_mcp_trace_headers(r, headers);

    if (n == 0
        && meta[NGX_MCP_TRACEPARENT].type == NGX_MCP_JSON_NONE
        && meta[NGX_MCP_TRACESTATE].type == NGX_MCP_JSON_NONE
        && meta[NGX_MCP_BAGGAGE].type == NGX_MCP_JSON_NONE)
    {
        ctx->trace = &ngx_mcp_no_trace;
        return NGX_OK;
    }

    trace = ngx_palloc(r->pool, sizeof(ngx_mcp_trace_t));

    if (trace == NULL
        || ngx_mcp_trace_read(r->pool, meta, n ? headers : NULL, trace)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->trace = trace;

    return NGX_OK;
}


/*
 * A header that is duplicate is not used.  Returns 0 if there are none at all,
 * and then leaves the values as they are.
 */

static ngx_uint_t
ngx_mcp_trace_headers(ngx_http_request_t *r, ngx_str_t *headers)
{
    ngx_uint_t        i, k, n, found[NGX_MCP_TRACES];
    ngx_str_t        *name;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    n = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {

        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            /* most headers of a request have other first letters */

            if (h[i].lowcase_key[0] != 't' && h[i].lowcase_key[0] != 'b') {
                continue;
            }

            for (k = 0; k < NGX_MCP_TRACES; k++) {
                name = &ngx_mcp_trace_names[k];

                if (h[i].key.len != name->len
                    || ngx_memcmp(h[i].lowcase_key, name->data, name->len)
                       != 0)
                {
                    continue;
                }

                if (n++ == 0) {
                    ngx_memzero(found, sizeof(found));
                    ngx_memzero(headers, sizeof(ngx_str_t) * NGX_MCP_TRACES);
                }

                if (found[k]++ == 0) {
                    headers[k] = h[i].value;

                } else {
                    ngx_str_null(&headers[k]);
                }
            }
        }
    }

    return n;
}


/*
 * Writes a trace context from headers into the "_meta" of the params, and
 * removes invalid values there, before a task is created with these params.
 */

ngx_int_t
ngx_mcp_trace_keep(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_json_t  *meta, *params;

    if (ngx_mcp_tracing(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    meta = &ctx->params.meta;
    params = &ctx->rpc.params;

    if ((ctx->trace->add == 0 && !ctx->trace->drop)
        || params->type != NGX_MCP_JSON_OBJECT
        || (meta->type != NGX_MCP_JSON_NONE
            && meta->type != NGX_MCP_JSON_OBJECT))
    {
        return NGX_OK;
    }

    return ngx_mcp_trace_write(r->pool, ctx->trace, params, meta,
                               &params->text);
}
