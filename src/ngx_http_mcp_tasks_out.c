
#include <stdio.h>

#include "ngx_http_mcp_tasks_out.h"


void
ngx_http_mcp_tasks_out_init(ngx_http_mcp_tasks_out_t *out, ngx_pool_t *pool,
    size_t size)
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
ngx_http_mcp_tasks_out_room(ngx_http_mcp_tasks_out_t *out, size_t len)
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
ngx_http_mcp_tasks_out_number(ngx_http_mcp_tasks_out_t *out, uint64_t n)
{
    u_char   buf[NGX_INT64_LEN], *p;

    p = buf + sizeof(buf);

    do {
        *--p = (u_char) ('0' + n % 10);
        n /= 10;
    } while (n);

    ngx_http_mcp_tasks_out_add(out, p, buf + sizeof(buf) - p);
}


/* the shortest digits that mean the same number */

void
ngx_http_mcp_tasks_out_real(ngx_http_mcp_tasks_out_t *out, double n)
{
    int   precision;
    char  buf[32];

    for (precision = 15; precision <= 17; precision++) {
        (void) snprintf(buf, sizeof(buf), "%.*g", precision, n);

        if (strtod(buf, NULL) == n) {
            break;
        }
    }

    ngx_http_mcp_tasks_out_add(out, (u_char *) buf, ngx_strlen(buf));
}


/* two of them */

static ngx_inline u_char *
ngx_http_mcp_tasks_out_digits(u_char *p, uint32_t n)
{
    *p++ = (u_char) ('0' + n / 10);
    *p++ = (u_char) ('0' + n % 10);

    return p;
}


/*
 * A wall clock time as ISO 8601, with the quotes.  Each event has two of them,
 * and a format string would be half of what it takes to write the event.
 */

void
ngx_http_mcp_tasks_out_time(ngx_http_mcp_tasks_out_t *out, uint64_t ms)
{
    u_char    *dst;
    ngx_tm_t   tm;

    dst = ngx_http_mcp_tasks_out_room(out,
                                      sizeof("\"2026-07-28T00:00:00.000Z\""));
    if (dst == NULL) {
        return;
    }

    ngx_gmtime((time_t) (ms / 1000), &tm);
    ms %= 1000;

    *dst++ = '"';
    dst = ngx_http_mcp_tasks_out_digits(dst, tm.ngx_tm_year / 100);
    dst = ngx_http_mcp_tasks_out_digits(dst, tm.ngx_tm_year % 100);
    *dst++ = '-';
    dst = ngx_http_mcp_tasks_out_digits(dst, tm.ngx_tm_mon);
    *dst++ = '-';
    dst = ngx_http_mcp_tasks_out_digits(dst, tm.ngx_tm_mday);
    *dst++ = 'T';
    dst = ngx_http_mcp_tasks_out_digits(dst, tm.ngx_tm_hour);
    *dst++ = ':';
    dst = ngx_http_mcp_tasks_out_digits(dst, tm.ngx_tm_min);
    *dst++ = ':';
    dst = ngx_http_mcp_tasks_out_digits(dst, tm.ngx_tm_sec);
    *dst++ = '.';
    dst = ngx_http_mcp_tasks_out_digits(dst, ms / 10);
    *dst++ = (u_char) ('0' + ms % 10);
    *dst++ = 'Z';
    *dst++ = '"';

    out->pos = dst;
}


/* a duration, as a number of seconds */

void
ngx_http_mcp_tasks_out_seconds(ngx_http_mcp_tasks_out_t *out, uint64_t ms)
{
    ngx_uint_t  unit;

    ngx_http_mcp_tasks_out_number(out, ms / 1000);

    ms %= 1000;

    if (ms) {
        ngx_http_mcp_tasks_out_lit(out, ".");
    }

    /* no zeros at the end */

    for (unit = 100; ms; unit /= 10) {
        ngx_http_mcp_tasks_out_number(out, ms / unit);
        ms %= unit;
    }
}


/* text as a JSON string, with the quotes */

void
ngx_http_mcp_tasks_out_string(ngx_http_mcp_tasks_out_t *out, ngx_str_t *s)
{
    u_char  *dst;

    dst = ngx_http_mcp_tasks_out_room(out, s->len + 2
                             + ngx_escape_json(NULL, s->data, s->len));
    if (dst) {
        *dst++ = '"';
        dst = (u_char *) ngx_escape_json(dst, s->data, s->len);
        *dst++ = '"';
        out->pos = dst;
    }
}


ngx_int_t
ngx_http_mcp_tasks_out_end(ngx_http_mcp_tasks_out_t *out, ngx_str_t *s)
{
    if (out->failed) {
        return NGX_ERROR;
    }

    s->data = out->start;
    s->len = out->pos - out->start;

    return NGX_OK;
}
