
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Changes the upstream's responses to initialize, server/discover and
 * tools/list.  A JSON response is held back until it is complete; of a stream,
 * each event is sent when it is complete.
 */


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_filter.h"
#include "ngx_mcp_sse_reader.h"
#include "ngx_mcp_merge.h"
#include "ngx_mcp_sse_writer.h"


/*
 * Maximum size of a response.  A response with a larger Content-Length is
 * passed unchanged; without Content-Length, exceeding it is an error.
 */
#define NGX_MCP_MERGE_FILTER_MAX  (16 * 1024 * 1024)


struct ngx_mcp_merge_filter_s {
    ngx_http_request_t   *r;
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_sse_reader_t  sse;
    ngx_msec_t            retry;    /* last retry sent to the client */
    size_t                size;     /* bytes received */

    /* a JSON response as received, or the events to be sent */
    ngx_mcp_out_t        out;
    unsigned             stream:1;  /* the response is a stream */
    unsigned             held:1;    /* header and body are held back */
};


static ngx_int_t ngx_mcp_merge_filter_read(ngx_mcp_merge_filter_t *m,
    ngx_chain_t *in, ngx_uint_t *last);
static ngx_int_t ngx_mcp_merge_filter_event(void *data,
    ngx_mcp_sse_reader_t *sse, ngx_str_t *text);
static ngx_int_t ngx_mcp_merge_filter_message(ngx_mcp_merge_filter_t *m,
    ngx_str_t *text);
static ngx_str_t ngx_mcp_merge_filter_tools(ngx_mcp_merge_filter_t *m);
static ngx_uint_t ngx_mcp_merge_filter_own(void *data, ngx_str_t *name);
static ngx_str_t *ngx_mcp_merge_filter_support(void *data, ngx_str_t *name);
static ngx_chain_t *ngx_mcp_merge_filter_chain(ngx_http_request_t *r,
    ngx_str_t *text, ngx_uint_t last);
static void ngx_mcp_merge_filter_free(void *data);


/*
 * Sets ctx->merge_filter if the response is to be changed.  The header of a
 * JSON response is sent with the body, since its length is not known before.
 */

ngx_int_t
ngx_mcp_merge_filter_header(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_http_output_header_filter_pt next)
{
    ngx_pool_cleanup_t      *cln;
    ngx_mcp_merge_filter_t  *m;
    static ngx_str_t         json = ngx_string("application/json");

    if (r->headers_out.status != NGX_HTTP_OK
        || r->headers_out.content_encoding
        || r->headers_out.content_length_n > NGX_MCP_MERGE_FILTER_MAX)
    {
        return next(r);
    }

    m = ngx_pcalloc(r->pool, sizeof(ngx_mcp_merge_filter_t));
    if (m == NULL) {
        return NGX_ERROR;
    }

    m->r = r;
    m->ctx = ctx;

    m->stream = ngx_mcp_is_stream(r);

    if (!m->stream
        && !ngx_mcp_media_type(&r->headers_out.content_type, &json))
    {
        return next(r);
    }

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_etag(r);

    r->filter_need_in_memory = 1;

    if (m->stream) {

        cln = ngx_pool_cleanup_add(r->pool, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        ngx_mcp_sse_reader_init(&m->sse, NGX_MCP_MERGE_FILTER_MAX,
                                r->connection->log);
        cln->handler = ngx_mcp_merge_filter_free;
        cln->data = &m->sse;

        ctx->merge_filter = m;

        return next(r);
    }

    ngx_mcp_out_init(&m->out, r->pool, 4096);
    m->held = 1;
    ctx->merge_filter = m;

    return NGX_OK;
}


static void
ngx_mcp_merge_filter_free(void *data)
{
    ngx_mcp_sse_reader_free(data);
}


ngx_int_t
ngx_mcp_merge_filter_body(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_chain_t *in, ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next)
{
    ngx_int_t                rc;
    ngx_str_t                text;
    ngx_uint_t               last;
    ngx_chain_t             *out;
    ngx_mcp_merge_filter_t  *m;

    m = ctx->merge_filter;
    last = 0;

    if (in == NULL) {
        return m->held ? NGX_OK : next(r, NULL);
    }

    if (m->stream) {
        ngx_mcp_out_init(&m->out, r->pool, 1024);
    }

    if (ngx_mcp_merge_filter_read(m, in, &last) != NGX_OK) {
        return NGX_ERROR;
    }

    if (m->held && !last) {
        return NGX_OK;
    }

    if (ngx_mcp_out_end(&m->out, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    if (m->held) {
        m->held = 0;
        ngx_mcp_out_init(&m->out, r->pool, text.len + 1024);

        if (ngx_mcp_merge_filter_message(m, &text) != NGX_OK
            || ngx_mcp_out_end(&m->out, &text) != NGX_OK)
        {
            return NGX_ERROR;
        }

        r->headers_out.content_length_n = text.len;

        rc = next_header(r);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            return rc;
        }
    }

    out = ngx_mcp_merge_filter_chain(r, &text, last);
    if (out == NULL) {
        return NGX_ERROR;
    }

    return next(r, out);
}


static ngx_int_t
ngx_mcp_merge_filter_read(ngx_mcp_merge_filter_t *m, ngx_chain_t *in,
    ngx_uint_t *last)
{
    size_t      n;
    ngx_buf_t  *b;

    for ( /* void */ ; in; in = in->next) {
        b = in->buf;
        n = ngx_buf_in_memory(b) ? b->last - b->pos : 0;
        m->size += n;

        if (m->size > NGX_MCP_MERGE_FILTER_MAX) {
            ngx_log_error(NGX_LOG_ERR, m->r->connection->log, 0,
                          "upstream sent a response larger than %d bytes",
                          NGX_MCP_MERGE_FILTER_MAX);
            return NGX_ERROR;
        }

        if (m->stream) {

            if (n && ngx_mcp_sse_reader_read(&m->sse, b->pos, n,
                                             ngx_mcp_merge_filter_event, m)
                     != NGX_OK)
            {
                return NGX_ERROR;
            }

        } else {
            ngx_mcp_out_add(&m->out, b->pos, n);
        }

        b->pos = b->last;

        if (b->last_buf) {
            *last = 1;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_merge_filter_event(void *data, ngx_mcp_sse_reader_t *sse,
    ngx_str_t *text)
{
    ngx_mcp_merge_filter_t *m = data;

    u_char        *p;
    size_t         size;
    ngx_str_t      merged, *id;
    ngx_mcp_out_t  out;

    if (sse->retry != m->retry) {
        m->retry = sse->retry;
        ngx_mcp_out_lit(&m->out, "retry: ");
        ngx_mcp_out_number(&m->out, sse->retry);
        ngx_mcp_out_lit(&m->out, "\n");
    }

    /* m->out is the message for a moment, then the stream again */

    out = m->out;
    ngx_mcp_out_init(&m->out, m->r->pool, text->len + 1024);

    if (ngx_mcp_merge_filter_message(m, text) != NGX_OK
        || ngx_mcp_out_end(&m->out, &merged) != NGX_OK)
    {
        return NGX_ERROR;
    }

    m->out = out;

    id = sse->id.len ? &sse->id : NULL;
    size = ngx_mcp_sse_size(id, &merged);

    p = ngx_pnalloc(m->r->pool, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_out_add(&m->out, p, ngx_mcp_sse_event(p, id, &merged) - p);

    return NGX_OK;
}


/* Writes a message to m->out; the response to the request is merged. */

static ngx_int_t
ngx_mcp_merge_filter_message(ngx_mcp_merge_filter_t *m, ngx_str_t *text)
{
    u_char               *p;
    ngx_str_t             result;
    ngx_mcp_rpc_t         rpc;
    ngx_mcp_merge_by_t    merging;
    ngx_mcp_rpc_error_t   err;

    if (ngx_mcp_rpc_parse(m->r->pool, text, NULL, &rpc, &err)
        != NGX_OK
        || rpc.kind != NGX_MCP_RPC_RESPONSE
        || !ngx_mcp_rpc_same_id(&rpc.id, &m->ctx->rpc.id)
        || rpc.result.type == NGX_MCP_JSON_NONE)
    {
        ngx_mcp_out_str(&m->out, text);
        return NGX_OK;
    }

    ngx_memzero(&merging, sizeof(ngx_mcp_merge_by_t));
    merging.kind = m->ctx->merge;
    merging.lists = (m->ctx->owner.len != 0);
    merging.supports = m->ctx->tasks;
    merging.offers = (m->ctx->lcf->tools != NULL);

    /* clients that are told apart may be shown different tools of the module */

    merging.private = (merging.offers && m->ctx->lcf->owner);
    merging.tools = ngx_mcp_merge_filter_tools(m);
    merging.own = ngx_mcp_merge_filter_own;
    merging.support = ngx_mcp_merge_filter_support;
    merging.data = m;

    switch (ngx_mcp_merge(m->r->pool, &rpc.result, &merging, &result)) {
    case NGX_OK:
        p = rpc.result.text.data;
        ngx_mcp_out_add(&m->out, text->data, p - text->data);
        ngx_mcp_out_str(&m->out, &result);
        p += rpc.result.text.len;
        ngx_mcp_out_add(&m->out, p, text->data + text->len - p);
        return NGX_OK;

    case NGX_DECLINED:
        ngx_mcp_out_str(&m->out, text);
        return NGX_OK;

    default:
        return NGX_ERROR;
    }
}


/* Returns the module's tools for the first page; empty for others. */

static ngx_str_t
ngx_mcp_merge_filter_tools(ngx_mcp_merge_filter_t *m)
{
    ngx_str_t         text;
    ngx_uint_t        i;
    ngx_array_t      *tools;
    ngx_mcp_out_t     out;
    ngx_mcp_json_t    cursor;
    ngx_mcp_member_t  members[] = {
        { ngx_string("cursor"), &cursor }
    };

    ngx_str_null(&text);
    tools = m->ctx->lcf->tools;

    (void) ngx_mcp_json_members(&m->ctx->rpc.params, members, 1);

    if (tools == NULL || m->ctx->merge != NGX_MCP_MERGE_TOOLS
        || cursor.type != NGX_MCP_JSON_NONE)
    {
        return text;
    }

    ngx_mcp_out_init(&out, m->r->pool, 4096);

    for (i = 0; i < tools->nelts; i++) {

        if (i) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_render_tool(&out, tools, i, m->ctx->tasks);
    }

    if (ngx_mcp_out_end(&out, &text) != NGX_OK) {
        ngx_str_null(&text);
    }

    return text;
}


static ngx_uint_t
ngx_mcp_merge_filter_own(void *data, ngx_str_t *name)
{
    ngx_mcp_merge_filter_t *m = data;

    return m->ctx->lcf->tools
           && ngx_mcp_tool_find(m->ctx->lcf->tools, name) != NULL;
}


static ngx_str_t *
ngx_mcp_merge_filter_support(void *data, ngx_str_t *name)
{
    ngx_mcp_merge_filter_t *m = data;

    return ngx_mcp_support_name(
               ngx_mcp_route_find(m->ctx->lcf, name)->support);
}


static ngx_chain_t *
ngx_mcp_merge_filter_chain(ngx_http_request_t *r, ngx_str_t *text,
    ngx_uint_t last)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = ngx_calloc_buf(r->pool);
    cl = ngx_alloc_chain_link(r->pool);

    if (b == NULL || cl == NULL) {
        return NULL;
    }

    if (text->len) {
        b->start = text->data;
        b->pos = text->data;
        b->last = text->data + text->len;
        b->end = b->last;
        b->temporary = 1;

    } else if (!last) {
        b->sync = 1;
    }

    b->flush = !last;
    b->last_buf = last;
    b->last_in_chain = last;

    cl->buf = b;
    cl->next = NULL;

    return cl;
}
