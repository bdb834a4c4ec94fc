
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_number.h"


/* more zeros than this add no factor to what 18 digits may have */
#define NGX_MCP_NUMBER_ZEROS  64


static int64_t ngx_mcp_number_top(ngx_mcp_decimal_t *d);
static ngx_int_t ngx_mcp_number_cmp_digits(ngx_mcp_decimal_t a,
    ngx_mcp_decimal_t b);


/* without a sign, first by the place of the first digit, then by digits */

ngx_int_t
ngx_mcp_number_cmp(ngx_mcp_decimal_t *a, ngx_mcp_decimal_t *b)
{
    int64_t     x, y;
    ngx_int_t   rc;
    ngx_uint_t  zero_a, zero_b;

    zero_a = (a->pos == a->end);
    zero_b = (b->pos == b->end);

    if (zero_a || zero_b) {
        return zero_a ? (zero_b ? 0 : (b->minus ? 1 : -1))
                      : (a->minus ? -1 : 1);
    }

    if (a->minus != b->minus) {
        return a->minus ? -1 : 1;
    }

    x = ngx_mcp_number_top(a);
    y = ngx_mcp_number_top(b);

    rc = (x != y) ? (x < y ? -1 : 1) : ngx_mcp_number_cmp_digits(*a, *b);

    return a->minus ? -rc : rc;
}


/* how many digits there are before the point, if it had no exponent */

static int64_t
ngx_mcp_number_top(ngx_mcp_decimal_t *d)
{
    int64_t  n;

    n = d->end - d->pos;

    if (memchr(d->pos, '.', (size_t) n) != NULL) {
        n--;
    }

    return d->exp + n;
}


/* copies: reading digits moves the position */

static ngx_int_t
ngx_mcp_number_cmp_digits(ngx_mcp_decimal_t a, ngx_mcp_decimal_t b)
{
    u_char  c, d;

    do {
        c = ngx_mcp_decimal_next(&a);
        d = ngx_mcp_decimal_next(&b);

        if (c != d) {
            return (c < d) ? -1 : 1;
        }

    } while (c);

    return 0;
}


/* the last digit is not a zero */

ngx_uint_t
ngx_mcp_number_is_integer(ngx_mcp_decimal_t *d)
{
    return d->pos == d->end || d->exp >= 0;
}


ngx_int_t
ngx_mcp_number_divisor(ngx_mcp_decimal_t *d, ngx_mcp_divisor_t *divisor)
{
    u_char             c;
    ngx_uint_t         n;
    ngx_mcp_decimal_t  copy;

    if (d->minus || d->pos == d->end) {
        return NGX_DECLINED;
    }

    copy = *d;
    divisor->digits = 0;
    divisor->exp = d->exp;

    for (n = 0; (c = ngx_mcp_decimal_next(&copy)) != 0; n++) {
        if (n == NGX_MCP_DIVISOR) {
            return NGX_DECLINED;
        }

        divisor->digits = divisor->digits * 10 + (c - '0');
    }

    return NGX_OK;
}


/*
 * a * 10^x is a multiple of b * 10^y if b divides a * 10^(x - y).  If x is
 * less than y, b * 10^(y - x) must divide a, which does not end in a zero.
 */

ngx_uint_t
ngx_mcp_number_divides(ngx_mcp_divisor_t *divisor, ngx_mcp_decimal_t *d)
{
    u_char             c;
    int64_t            zeros;
    uint64_t           rest;
    ngx_mcp_decimal_t  copy;

    if (d->pos == d->end) {
        return 1;
    }

    zeros = d->exp - divisor->exp;

    if (zeros < 0) {
        return 0;
    }

    copy = *d;
    rest = 0;

    /* ten times 18 digits fit into 64 bits */

    while ((c = ngx_mcp_decimal_next(&copy)) != 0) {
        rest = (rest * 10 + (c - '0')) % divisor->digits;
    }

    for (zeros = ngx_min(zeros, NGX_MCP_NUMBER_ZEROS); zeros && rest; zeros--) {
        rest = rest * 10 % divisor->digits;
    }

    return rest == 0;
}


ngx_int_t
ngx_mcp_number_size(ngx_mcp_decimal_t *d, size_t *size)
{
    u_char             c;
    int64_t            zeros;
    ngx_mcp_decimal_t  copy;

    if (d->minus || !ngx_mcp_number_is_integer(d)) {
        return NGX_DECLINED;
    }

    *size = 0;

    if (d->pos == d->end) {
        return NGX_OK;
    }

    if (ngx_mcp_number_top(d) > (int64_t) NGX_SIZE_T_LEN - 2) {
        *size = (size_t) -1;
        return NGX_OK;
    }

    copy = *d;
    zeros = d->exp;

    while ((c = ngx_mcp_decimal_next(&copy)) != 0) {
        *size = *size * 10 + (c - '0');
    }

    while (zeros--) {
        *size *= 10;
    }

    return NGX_OK;
}
