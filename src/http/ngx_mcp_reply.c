
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Responses: headers, and JSON-RPC results and errors. */


#include "ngx_mcp_http.h"
#include "ngx_mcp_batch.h"


static ngx_str_t  ngx_mcp_json_type = ngx_string("application/json");


static ngx_buf_t *ngx_mcp_joined(ngx_http_request_t *r, ngx_str_t *parts,
    ngx_uint_t n);


/*
 * Sends a response, or the last event if the request is a stream.  A single
 * part is not copied and has to exist as long as the request.
 */

ngx_int_t
ngx_mcp_send(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t *parts,
    ngx_uint_t n)
{
    size_t          len;
    ngx_buf_t      *b;
    ngx_int_t       rc;
    ngx_str_t       text;
    ngx_chain_t     out;
    ngx_mcp_ctx_t  *ctx;

    b = ngx_mcp_joined(r, parts, n);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    len = b->last - b->pos;
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    text.data = b->pos;
    text.len = len;

    if (r != r->main && ctx && ctx->element) {
        return ngx_mcp_batch_answer(ctx, status, &text);
    }

    if (ctx && ctx->wait && ctx->wait->stream) {
        /* the header was sent earlier: this is the last event */
        return ngx_mcp_wait_end(ctx->wait, &text);
    }

    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    r->headers_out.status = status;
    r->headers_out.content_length_n = len;

    if (r->headers_out.content_type.len == 0) {
        r->headers_out.content_type = ngx_mcp_json_type;
    }

    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static ngx_buf_t *
ngx_mcp_joined(ngx_http_request_t *r, ngx_str_t *parts, ngx_uint_t n)
{
    size_t      len;
    ngx_buf_t  *b;
    ngx_uint_t  i;

    if (n == 1) {
        b = ngx_calloc_buf(r->pool);

        if (b) {
            b->pos = parts[0].data;
            b->last = parts[0].data + parts[0].len;
            b->memory = 1;
        }

        return b;
    }

    for (len = 0, i = 0; i < n; i++) {
        len += parts[i].len;
    }

    b = ngx_create_temp_buf(r->pool, len);

    for (i = 0; b && i < n; i++) {
        if (parts[i].len) {
            b->last = ngx_cpymem(b->last, parts[i].data, parts[i].len);
        }
    }

    return b;
}


ngx_int_t
ngx_mcp_add_header(ngx_http_request_t *r, const char *key, ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));
    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value = *value;

    return NGX_OK;
}


/* begins a response; the caller writes the result next */

void
ngx_mcp_out_answer(ngx_mcp_out_t *out, ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, size_t size)
{
    ngx_mcp_out_init(out, r->pool, size + ctx->rpc.id.text.len + 64);
    ngx_mcp_out_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    ngx_mcp_out_str(out, &ctx->rpc.id.text);
    ngx_mcp_out_lit(out, ",\"result\":");
}


/* ends and sends a response begun by ngx_mcp_out_answer() */

ngx_int_t
ngx_mcp_out_result(ngx_http_request_t *r, ngx_mcp_out_t *out)
{
    ngx_str_t  text;

    ngx_mcp_out_lit(out, "}");

    if (ngx_mcp_out_end(out, &text) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_send(r, NGX_HTTP_OK, &text, 1);
}


ngx_int_t
ngx_mcp_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_str_t *result)
{
    ngx_mcp_out_t  out;

    ngx_mcp_out_answer(&out, r, ctx, result->len);
    ngx_mcp_out_str(&out, result);

    return ngx_mcp_out_result(r, &out);
}


/*
 * Sends a JSON-RPC error.  The message is not escaped; data is JSON or NULL.
 * The error has no id if ctx is NULL or the id could not be read; in a batch,
 * it is null, also for a response, whose id is not one of the client's ids.
 */

ngx_int_t
ngx_mcp_error(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_uint_t status,
    ngx_int_t code, const char *message, ngx_str_t *data)
{
    u_char      buf[NGX_INT_T_LEN];
    ngx_str_t   parts[10];
    ngx_uint_t  n;

    n = 0;

    if (ctx) {
        ctx->error = code;
    }

    ngx_str_set(&parts[n], "{\"jsonrpc\":\"2.0\"");
    n++;

    if (ctx && ctx->element
        && (ctx->rpc.id.type == NGX_MCP_JSON_NONE
            || ctx->rpc.kind == NGX_MCP_RPC_RESPONSE))
    {
        ngx_str_set(&parts[n], ",\"id\":null");
        n++;

    } else if (ctx && ctx->rpc.id.type != NGX_MCP_JSON_NONE) {
        ngx_str_set(&parts[n], ",\"id\":");
        n++;
        parts[n++] = ctx->rpc.id.text;
    }

    ngx_str_set(&parts[n], ",\"error\":{\"code\":");
    n++;
    parts[n].data = buf;
    parts[n].len = ngx_sprintf(buf, "%i", code) - buf;
    n++;
    ngx_str_set(&parts[n], ",\"message\":\"");
    n++;
    parts[n].data = (u_char *) message;
    parts[n].len = ngx_strlen(message);
    n++;

    if (data) {
        ngx_str_set(&parts[n], "\",\"data\":");
        n++;
        parts[n++] = *data;
        ngx_str_set(&parts[n], "}}");

    } else {
        ngx_str_set(&parts[n], "\"}}");
    }

    n++;

    return ngx_mcp_send(r, status, parts, n);
}


ngx_int_t
ngx_mcp_invalid(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_uint_t status,
    const char *what)
{
    u_char  buf[256];

    *ngx_snprintf(buf, sizeof(buf) - 1, "Invalid params: %s", what) = '\0';

    return ngx_mcp_error(r, ctx, status, NGX_MCP_RPC_INVALID_PARAMS,
                         (char *) buf, NULL);
}


ngx_int_t
ngx_mcp_duplicate(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, "duplicate member in params");
}


/* sends the error for an operation that was refused for this reason */

ngx_int_t
ngx_mcp_refused(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_uint_t reason)
{
    u_char              buf[64];
    ngx_str_t           data;
    ngx_uint_t          status;
    ngx_mcp_refusal_t  *refusal;

    if (ctx->rest) {
        return ngx_mcp_problem_refused(r, reason);
    }

    refusal = ngx_mcp_reason(reason);
    status = NGX_HTTP_OK;

    if (refusal->code == NGX_MCP_RPC_STORE) {
        status = refusal->status;
        ngx_str_set(&data, "1");

        if (ngx_mcp_add_header(r, "Retry-After", &data) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    data.data = buf;
    data.len = ngx_sprintf(buf, "{\"reason\":\"%V\"}", &refusal->word) - buf;

    return ngx_mcp_error(r, ctx, status, refusal->code, refusal->text, &data);
}


/* the response may differ the next time */

ngx_int_t
ngx_mcp_no_store(ngx_http_request_t *r)
{
    ngx_str_t  value;

    ngx_str_set(&value, "no-store");

    return ngx_mcp_add_header(r, "Cache-Control", &value);
}


/* 202 without a body, for a notification or a response */

ngx_int_t
ngx_mcp_accepted(ngx_http_request_t *r)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    if (ctx && ctx->element) {
        /* no part of the response to a batch */
        return NGX_OK;
    }

    r->headers_out.status = NGX_HTTP_ACCEPTED;
    r->headers_out.content_length_n = 0;
    r->header_only = 1;

    return ngx_http_send_header(r);
}
