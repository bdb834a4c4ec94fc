
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_trace.h"
#include "ngx_mcp_out.h"


/* version, trace id, parent id and flags, with the dashes between them */
#define NGX_MCP_TRACEPARENT_LEN      55
/* later versions may append fields */
#define NGX_MCP_TRACEPARENT_MAX      128

#define NGX_MCP_TRACESTATE_MAX       512
#define NGX_MCP_TRACESTATE_MEMBERS   32
#define NGX_MCP_TRACESTATE_PART      256

#define NGX_MCP_BAGGAGE_MAX          8192


static ngx_uint_t ngx_mcp_trace_hex(u_char *p, size_t n, ngx_uint_t nonzero);
static ngx_uint_t ngx_mcp_tracestate_member(u_char *p, u_char *last);
static ngx_int_t ngx_mcp_trace_value(ngx_pool_t *pool, ngx_mcp_json_t *member,
    ngx_uint_t i, ngx_str_t *value);
static void ngx_mcp_trace_members(ngx_mcp_out_t *out, ngx_mcp_trace_t *trace,
    ngx_mcp_json_t *meta);
static ngx_uint_t ngx_mcp_trace_name(ngx_mcp_json_t *key);


ngx_str_t  ngx_mcp_trace_names[NGX_MCP_TRACES] = {
    ngx_string("traceparent"),
    ngx_string("tracestate"),
    ngx_string("baggage")
};


ngx_uint_t
ngx_mcp_traceparent_valid(ngx_str_t *s)
{
    u_char  *p, *last;

    p = s->data;

    if (s->len < NGX_MCP_TRACEPARENT_LEN
        || s->len > NGX_MCP_TRACEPARENT_MAX
        || p[2] != '-' || p[35] != '-' || p[52] != '-'
        || !ngx_mcp_trace_hex(p, 2, 0)
        || !ngx_mcp_trace_hex(p + 3, 32, 1)
        || !ngx_mcp_trace_hex(p + 36, 16, 1)
        || !ngx_mcp_trace_hex(p + 53, 2, 0)
        || (p[0] == 'f' && p[1] == 'f'))
    {
        return 0;
    }

    if (s->len == NGX_MCP_TRACEPARENT_LEN) {
        return 1;
    }

    /* a later version, with fields that are not known yet */

    if ((p[0] == '0' && p[1] == '0') || p[NGX_MCP_TRACEPARENT_LEN] != '-') {
        return 0;
    }

    last = p + s->len;

    for (p += NGX_MCP_TRACEPARENT_LEN; p < last; p++) {
        if (*p != '-' && (*p < '0' || *p > '9') && (*p < 'a' || *p > 'z')) {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_mcp_trace_hex(u_char *p, size_t n, ngx_uint_t nonzero)
{
    u_char      *last;
    ngx_uint_t   set;

    set = 0;

    for (last = p + n; p < last; p++) {

        if ((*p < '0' || *p > '9') && (*p < 'a' || *p > 'f')) {
            return 0;
        }

        set |= (*p != '0');
    }

    return set || !nonzero;
}


/* members "key=value" between commas; empty members are allowed */

ngx_uint_t
ngx_mcp_tracestate_valid(ngx_str_t *s)
{
    u_char      *p, *end, *last;
    ngx_uint_t   n;

    if (s->len == 0 || s->len > NGX_MCP_TRACESTATE_MAX) {
        return 0;
    }

    p = s->data;
    last = p + s->len;

    for (n = 0; p <= last; p = end + 1) {

        end = ngx_strlchr(p, last, ',');
        if (end == NULL) {
            end = last;
        }

        for ( /* void */ ; p < end && *p == ' '; p++) { /* void */ }

        if (p < end
            && (++n > NGX_MCP_TRACESTATE_MEMBERS
                || !ngx_mcp_tracestate_member(p, end)))
        {
            return 0;
        }
    }

    return n > 0;
}


static ngx_uint_t
ngx_mcp_tracestate_member(u_char *p, u_char *last)
{
    u_char  *start;

    for ( /* void */ ; last[-1] == ' '; last--) { /* void */ }

    for (start = p; p < last && *p != '='; p++) {

        if ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')) {
            continue;
        }

        if (p == start
            || (*p != '_' && *p != '-' && *p != '*' && *p != '/' && *p != '@'))
        {
            return 0;
        }
    }

    if (p == start || p - start > NGX_MCP_TRACESTATE_PART || p == last) {
        return 0;
    }

    for (start = ++p; p < last; p++) {
        if (*p < 0x20 || *p > 0x7e || *p == '=') {
            return 0;
        }
    }

    return p > start && p - start <= NGX_MCP_TRACESTATE_PART;
}


/* only the characters are checked: who uses a baggage knows its members */

ngx_uint_t
ngx_mcp_baggage_valid(ngx_str_t *s)
{
    u_char      *p, *last;
    ngx_uint_t   pair;

    if (s->len > NGX_MCP_BAGGAGE_MAX) {
        return 0;
    }

    pair = 0;
    last = s->data + s->len;

    for (p = s->data; p < last; p++) {

        if (*p < 0x20 || *p > 0x7e || *p == '"' || *p == '\\') {
            return 0;
        }

        pair |= (*p == '=' && p > s->data);
    }

    return pair;
}


ngx_int_t
ngx_mcp_trace_read(ngx_pool_t *pool, ngx_mcp_json_t *meta, ngx_str_t *headers,
    ngx_mcp_trace_t *trace)
{
    ngx_str_t   *value;
    ngx_uint_t   i, belongs;

    ngx_memzero(trace, sizeof(ngx_mcp_trace_t));
    value = trace->value;

    for (i = 0; i < NGX_MCP_TRACES; i++) {

        if (ngx_mcp_trace_value(pool, &meta[i], i, &value[i]) == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (i == NGX_MCP_TRACESTATE && value[NGX_MCP_TRACEPARENT].len == 0) {
            ngx_str_null(&value[i]);
        }

        trace->drop |= (meta[i].type != NGX_MCP_JSON_NONE && value[i].len == 0);
    }

    if (headers == NULL) {
        return NGX_OK;
    }

    belongs = 0;

    if (value[NGX_MCP_TRACEPARENT].len == 0
        && ngx_mcp_traceparent_valid(&headers[NGX_MCP_TRACEPARENT]))
    {
        value[NGX_MCP_TRACEPARENT] = headers[NGX_MCP_TRACEPARENT];
        trace->add |= 1u << NGX_MCP_TRACEPARENT;
        belongs = 1;
    }

    if (belongs && ngx_mcp_tracestate_valid(&headers[NGX_MCP_TRACESTATE])) {
        value[NGX_MCP_TRACESTATE] = headers[NGX_MCP_TRACESTATE];
        trace->add |= 1u << NGX_MCP_TRACESTATE;
    }

    if (value[NGX_MCP_BAGGAGE].len == 0
        && ngx_mcp_baggage_valid(&headers[NGX_MCP_BAGGAGE]))
    {
        value[NGX_MCP_BAGGAGE] = headers[NGX_MCP_BAGGAGE];
        trace->add |= 1u << NGX_MCP_BAGGAGE;
    }

    return NGX_OK;
}


/* NGX_DECLINED: missing or invalid, the value is empty */

static ngx_int_t
ngx_mcp_trace_value(ngx_pool_t *pool, ngx_mcp_json_t *member, ngx_uint_t i,
    ngx_str_t *value)
{
    ngx_int_t   rc;
    ngx_str_t   s;
    ngx_uint_t  valid;

    if (member->type != NGX_MCP_JSON_STRING) {
        return NGX_DECLINED;
    }

    rc = ngx_mcp_json_string(pool, member, &s);

    if (rc != NGX_OK) {
        return rc;
    }

    switch (i) {
    case NGX_MCP_TRACEPARENT:
        valid = ngx_mcp_traceparent_valid(&s);
        break;
    case NGX_MCP_TRACESTATE:
        valid = ngx_mcp_tracestate_valid(&s);
        break;
    default:
        valid = ngx_mcp_baggage_valid(&s);
    }

    if (!valid) {
        return NGX_DECLINED;
    }

    *value = s;

    return NGX_OK;
}


ngx_int_t
ngx_mcp_trace_write(ngx_pool_t *pool, ngx_mcp_trace_t *trace,
    ngx_mcp_json_t *params, ngx_mcp_json_t *meta, ngx_str_t *text)
{
    size_t          size;
    u_char         *p, *last;
    ngx_uint_t      i;
    ngx_mcp_out_t   out;

    for (size = 64, i = 0; i < NGX_MCP_TRACES; i++) {
        size += ngx_mcp_trace_names[i].len + trace->value[i].len + 8;
    }

    p = params->text.data;
    last = p + params->text.len;

    ngx_mcp_out_init(&out, pool, params->text.len + size);

    if (meta->type == NGX_MCP_JSON_NONE) {
        ngx_mcp_out_lit(&out, "{\"_meta\":");
        ngx_mcp_trace_members(&out, trace, meta);

        if (ngx_mcp_json_filled(params)) {
            ngx_mcp_out_lit(&out, ",");
        }

        p++;

    } else {
        ngx_mcp_out_add(&out, p, meta->text.data - p);
        ngx_mcp_trace_members(&out, trace, meta);
        p = meta->text.data + meta->text.len;
    }

    ngx_mcp_out_add(&out, p, last - p);

    return ngx_mcp_out_end(&out, text);
}


/* the values to add, and the members of "_meta" except for invalid ones */

static void
ngx_mcp_trace_members(ngx_mcp_out_t *out, ngx_mcp_trace_t *trace,
    ngx_mcp_json_t *meta)
{
    ngx_uint_t           i, first;
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;

    first = 1;
    ngx_mcp_out_lit(out, "{");

    for (i = 0; i < NGX_MCP_TRACES; i++) {

        if (!(trace->add & 1u << i)) {
            continue;
        }

        if (!first) {
            ngx_mcp_out_lit(out, ",");
        }

        first = 0;
        ngx_mcp_out_string(out, &ngx_mcp_trace_names[i]);
        ngx_mcp_out_lit(out, ":");
        ngx_mcp_out_string(out, &trace->value[i]);
    }

    if (meta->type == NGX_MCP_JSON_NONE) {
        ngx_mcp_out_lit(out, "}");
        return;
    }

    if (!trace->drop) {

        if (!first && ngx_mcp_json_filled(meta)) {
            ngx_mcp_out_lit(out, ",");
        }

        ngx_mcp_out_add(out, meta->text.data + 1, meta->text.len - 1);
        return;
    }

    ngx_mcp_json_iter(&it, meta);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        i = ngx_mcp_trace_name(&key);

        /* what is not added and is valid was read from this member */

        if (i < NGX_MCP_TRACES
            && (trace->add & 1u << i || trace->value[i].len == 0))
        {
            continue;
        }

        if (!first) {
            ngx_mcp_out_lit(out, ",");
        }

        first = 0;
        ngx_mcp_out_str(out, &key.text);
        ngx_mcp_out_lit(out, ":");
        ngx_mcp_out_str(out, &value.text);
    }

    ngx_mcp_out_lit(out, "}");
}


/* NGX_MCP_TRACES: another member */

static ngx_uint_t
ngx_mcp_trace_name(ngx_mcp_json_t *key)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_TRACES; i++) {
        if (ngx_mcp_json_is(key, &ngx_mcp_trace_names[i])) {
            break;
        }
    }

    return i;
}
