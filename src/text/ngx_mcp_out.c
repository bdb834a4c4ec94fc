
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_out.h"
#include "ngx_mcp_json.h"

#include <stdio.h>


static void ngx_mcp_out_second(u_char *p, time_t second);
static void ngx_mcp_out_escaped(ngx_mcp_out_t *out, ngx_str_t *s);


void
ngx_mcp_out_init(ngx_mcp_out_t *out, ngx_pool_t *pool, size_t size)
{
    out->pool = pool;
    out->failed = 0;
    out->start = ngx_pnalloc(pool, size);
    out->pos = out->start;
    out->end = out->start + size;

    if (out->start == NULL) {
        out->end = NULL;
        out->failed = 1;
    }
}


u_char *
ngx_mcp_out_reserve(ngx_mcp_out_t *out, size_t len)
{
    u_char  *p;
    size_t   size;

    if (out->failed) {
        return NULL;
    }

    if ((size_t) (out->end - out->pos) >= len) {
        return out->pos;
    }

    size = 2 * (out->end - out->start) + len;

    p = ngx_pnalloc(out->pool, size);
    if (p == NULL) {
        out->failed = 1;
        return NULL;
    }

    out->pos = ngx_cpymem(p, out->start, out->pos - out->start);
    out->start = p;
    out->end = p + size;

    return out->pos;
}


void
ngx_mcp_out_number(ngx_mcp_out_t *out, uint64_t n)
{
    u_char   buf[NGX_INT64_LEN], *p;

    p = buf + sizeof(buf);

    do {
        *--p = (u_char) ('0' + n % 10);
        n /= 10;
    } while (n);

    ngx_mcp_out_add(out, p, buf + sizeof(buf) - p);
}


/* Writes the fewest digits, but at least 15, that read back as n. */

void
ngx_mcp_out_real(ngx_mcp_out_t *out, double n)
{
    int   precision;
    char  buf[32];

    for (precision = 15; precision <= 17; precision++) {
        (void) snprintf(buf, sizeof(buf), "%.*g", precision, n);

        if (strtod(buf, NULL) == n) {
            break;
        }
    }

    ngx_mcp_out_add(out, (u_char *) buf, ngx_strlen(buf));
}


void
ngx_mcp_out_flag(ngx_mcp_out_t *out, ngx_uint_t on)
{
    if (on) {
        ngx_mcp_out_lit(out, "true");

    } else {
        ngx_mcp_out_lit(out, "false");
    }
}


/* Writes two digits. */

static ngx_inline u_char *
ngx_mcp_out_digits(u_char *p, uint32_t n)
{
    *p++ = (u_char) ('0' + n / 10);
    *p++ = (u_char) ('0' + n % 10);

    return p;
}


/*
 * Writes a time in ISO 8601 format, with the quotes.  Many times in a list of
 * tasks are in the same second: the text of the last second is kept.
 */

void
ngx_mcp_out_time(ngx_mcp_out_t *out, uint64_t ms)
{
    u_char           *dst;
    uint64_t          second;
    static u_char     text[] = "\"1970-01-01T00:00:00.";
    static uint64_t   last;

    dst = ngx_mcp_out_reserve(out, sizeof("\"2026-07-28T00:00:00.000Z\""));
    if (dst == NULL) {
        return;
    }

    second = ms / 1000;
    ms %= 1000;

    if (second != last) {
        ngx_mcp_out_second(text + 1, (time_t) second);
        last = second;
    }

    dst = ngx_cpymem(dst, text, sizeof(text) - 1);
    dst = ngx_mcp_out_digits(dst, ms / 10);
    *dst++ = (u_char) ('0' + ms % 10);
    *dst++ = 'Z';
    *dst++ = '"';

    out->pos = dst;
}


static void
ngx_mcp_out_second(u_char *p, time_t second)
{
    ngx_tm_t  tm;

    ngx_gmtime(second, &tm);

    p = ngx_mcp_out_digits(p, tm.ngx_tm_year / 100);
    p = ngx_mcp_out_digits(p, tm.ngx_tm_year % 100) + 1;
    p = ngx_mcp_out_digits(p, tm.ngx_tm_mon) + 1;
    p = ngx_mcp_out_digits(p, tm.ngx_tm_mday) + 1;
    p = ngx_mcp_out_digits(p, tm.ngx_tm_hour) + 1;
    p = ngx_mcp_out_digits(p, tm.ngx_tm_min) + 1;
    (void) ngx_mcp_out_digits(p, tm.ngx_tm_sec);
}


/* Writes a duration in seconds. */

void
ngx_mcp_out_seconds(ngx_mcp_out_t *out, uint64_t ms)
{
    ngx_uint_t  unit;

    ngx_mcp_out_number(out, ms / 1000);

    ms %= 1000;

    if (ms) {
        ngx_mcp_out_lit(out, ".");
    }

    /* the loop ends before trailing zeros */

    for (unit = 100; ms; unit /= 10) {
        ngx_mcp_out_number(out, ms / unit);
        ms %= unit;
    }
}


/* Writes UTF-8 text as a JSON string, with the quotes. */

void
ngx_mcp_out_string(ngx_mcp_out_t *out, ngx_str_t *s)
{
    ngx_mcp_out_lit(out, "\"");
    ngx_mcp_out_escaped(out, s);
    ngx_mcp_out_lit(out, "\"");
}


static void
ngx_mcp_out_escaped(ngx_mcp_out_t *out, ngx_str_t *s)
{
    u_char  *dst;

    dst = ngx_mcp_out_reserve(out, s->len
                             + ngx_escape_json(NULL, s->data, s->len));
    if (dst) {
        out->pos = (u_char *) ngx_escape_json(dst, s->data, s->len);
    }
}


/* Writes any bytes as a JSON string: each invalid byte becomes U+FFFD. */

void
ngx_mcp_out_bytes(ngx_mcp_out_t *out, ngx_str_t *s)
{
    u_char     *p, *next, *start, *end;
    ngx_str_t   part;

    start = s->data;
    end = start + s->len;

    ngx_mcp_out_lit(out, "\"");

    for (p = start; p < end; p = next) {

        next = *p < 0x80 ? p + 1 : ngx_mcp_json_utf8(p, end);

        if (next == NULL) {
            part.data = start;
            part.len = p - start;
            ngx_mcp_out_escaped(out, &part);
            ngx_mcp_out_lit(out, "\xef\xbf\xbd");

            next = start = p + 1;
        }
    }

    part.data = start;
    part.len = end - start;
    ngx_mcp_out_escaped(out, &part);

    ngx_mcp_out_lit(out, "\"");
}


ngx_int_t
ngx_mcp_out_end(ngx_mcp_out_t *out, ngx_str_t *s)
{
    if (out->failed) {
        return NGX_ERROR;
    }

    s->data = out->start;
    s->len = out->pos - out->start;

    return NGX_OK;
}
