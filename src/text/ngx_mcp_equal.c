
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_equal.h"


/* numbers with more digits in the exponent are compared as text only */
#define NGX_MCP_EXPONENT  15


/* a key, and which of the objects in a text it is of */

typedef struct {
    ngx_str_t   text;       /* with the quotes */
    ngx_uint_t  object;     /* number of the object that has the key */
} ngx_mcp_key_t;


static ngx_int_t ngx_mcp_string_cmp(ngx_str_t *a, ngx_str_t *b);
static u_char *ngx_mcp_string_char(u_char *p, u_char *end, uint32_t *code);
static ngx_int_t ngx_mcp_keys(ngx_array_t *keys, ngx_str_t *text);
static int ngx_libc_cdecl ngx_mcp_key_cmp(const void *one, const void *two);


ngx_uint_t
ngx_mcp_json_same(ngx_mcp_json_t *a, ngx_mcp_json_t *b)
{
    return ngx_mcp_string_cmp(&a->text, &b->text) == 0;
}


/* Both strings include their quotes. */

static ngx_int_t
ngx_mcp_string_cmp(ngx_str_t *a, ngx_str_t *b)
{
    u_char    *p, *q, *p_end, *q_end;
    uint32_t   c, d;

    p = a->data + 1;
    p_end = a->data + a->len - 1;
    q = b->data + 1;
    q_end = b->data + b->len - 1;

    while (p < p_end && q < q_end) {

        if (*p == *q && *p != '\\') {
            p++;
            q++;
            continue;
        }

        p = ngx_mcp_string_char(p, p_end, &c);
        q = ngx_mcp_string_char(q, q_end, &d);

        if (c != d) {
            return (c < d) ? -1 : 1;
        }
    }

    return (p < p_end) - (q < q_end);
}


/*
 * Decodes one character, escaped or not.  If p points to a continuation byte,
 * the first bytes of this character are the same in both strings: the
 * continuation bytes then have the same order as the characters.
 */

static u_char *
ngx_mcp_string_char(u_char *p, u_char *end, uint32_t *code)
{
    u_char      *next;
    ngx_uint_t   n;

    if (*p == '\\') {
        next = ngx_mcp_json_code_point(p, end, code);

        /* an unpaired surrogate is compared by its code */

        return next ? next : p + sizeof("\\ud800") - 1;
    }

    n = (*p < 0xc0) ? 0 : (*p < 0xe0) ? 1 : (*p < 0xf0) ? 2 : 3;

    *code = n ? *p & (0x3f >> n) : *p;

    for (p++; n && p < end; n--, p++) {
        *code = *code << 6 | (*p & 0x3f);
    }

    return p;
}


/* Digits are compared, not doubles: two long numbers may differ in the last. */

ngx_uint_t
ngx_mcp_json_same_number(ngx_mcp_json_t *a, ngx_mcp_json_t *b)
{
    u_char             c;
    ngx_mcp_decimal_t  x, y;

    if (a->text.len == b->text.len
        && ngx_memcmp(a->text.data, b->text.data, a->text.len) == 0)
    {
        return 1;
    }

    if (ngx_mcp_decimal(&a->text, &x) != NGX_OK
        || ngx_mcp_decimal(&b->text, &y) != NGX_OK
        || x.minus != y.minus
        || x.exp != y.exp)
    {
        return 0;
    }

    do {
        c = ngx_mcp_decimal_next(&x);

        if (c != ngx_mcp_decimal_next(&y)) {
            return 0;
        }

    } while (c);

    return 1;
}


/* NGX_DECLINED: the exponent is too large. */

ngx_int_t
ngx_mcp_decimal(ngx_str_t *text, ngx_mcp_decimal_t *d)
{
    u_char      *p, *end, *point, *last;
    ngx_uint_t   minus, digits;

    ngx_memzero(d, sizeof(ngx_mcp_decimal_t));

    end = text->data + text->len;
    d->minus = (*text->data == '-');
    d->end = text->data + d->minus;
    point = NULL;
    last = NULL;

    for (p = d->end; p < end && *p != 'e' && *p != 'E'; p++) {

        if (*p == '.') {
            point = p;

        } else if (*p != '0') {
            d->pos = d->pos ? d->pos : p;
            last = p;
        }
    }

    if (last == NULL) {
        /* all zeros are equal: the sign and the exponent do not matter */

        d->minus = 0;
        d->pos = d->end;
        return NGX_OK;
    }

    point = point ? point : p;
    d->end = last + 1;

    if (p < end) {
        p++;
        minus = (*p == '-');
        p += (*p == '-' || *p == '+');

        while (p < end && *p == '0') {
            p++;
        }

        for (digits = 0; p < end; p++) {
            if (++digits > NGX_MCP_EXPONENT) {
                d->exp = minus ? -NGX_MCP_DECIMAL_FAR : NGX_MCP_DECIMAL_FAR;
                return NGX_DECLINED;
            }

            d->exp = d->exp * 10 + (*p - '0');
        }

        d->exp = minus ? -d->exp : d->exp;
    }

    /* the last digit becomes the units digit */

    d->exp += (last < point) ? point - last - 1 : point - last;

    return NGX_OK;
}


/* Returns 0 after the last digit. */

u_char
ngx_mcp_decimal_next(ngx_mcp_decimal_t *d)
{
    if (d->pos < d->end && *d->pos == '.') {
        d->pos++;
    }

    return (d->pos < d->end) ? *d->pos++ : 0;
}


/*
 * The keys are sorted, since the number of keys in a request has no limit and
 * comparing each with each would take quadratic time.
 */

ngx_int_t
ngx_mcp_json_unique(ngx_pool_t *pool, ngx_mcp_json_t *value)
{
    ngx_uint_t      i;
    ngx_array_t     keys;
    ngx_mcp_key_t  *key;

    if (ngx_array_init(&keys, pool, 16, sizeof(ngx_mcp_key_t)) != NGX_OK
        || ngx_mcp_keys(&keys, &value->text) != NGX_OK)
    {
        return NGX_ERROR;
    }

    key = keys.elts;

    ngx_qsort(key, keys.nelts, sizeof(ngx_mcp_key_t), ngx_mcp_key_cmp);

    for (i = 1; i < keys.nelts; i++) {
        if (ngx_mcp_key_cmp(&key[i - 1], &key[i]) == 0) {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/*
 * Collects the keys of all objects in a text that was parsed.  A string is a
 * key if a colon follows it.  Containers are numbered in the order in which
 * they begin.
 */

static ngx_int_t
ngx_mcp_keys(ngx_array_t *keys, ngx_str_t *text)
{
    u_char         *p, *end, *start;
    ngx_uint_t      depth, n, within[NGX_MCP_JSON_DEPTH + 1];
    ngx_mcp_key_t  *key;

    p = text->data;
    end = p + text->len;
    depth = 0;
    n = 0;
    within[0] = 0;

    while (p < end) {

        switch (*p) {

        case '"':
            start = p;
            p = ngx_mcp_json_skip_string(p, end);

            key = ngx_array_push(keys);
            if (key == NULL) {
                return NGX_ERROR;
            }

            key->text.data = start;
            key->text.len = p - start;
            key->object = within[depth];

            while (p < end && *p <= ' ') {
                p++;
            }

            if (p == end || *p != ':') {
                keys->nelts--;
            }

            continue;

        case '{': case '[':
            within[++depth] = ++n;
            break;

        case '}': case ']':
            depth--;
            break;
        }

        p++;
    }

    return NGX_OK;
}


static int ngx_libc_cdecl
ngx_mcp_key_cmp(const void *one, const void *two)
{
    ngx_mcp_key_t  *a, *b;

    a = (ngx_mcp_key_t *) one;
    b = (ngx_mcp_key_t *) two;

    if (a->object != b->object) {
        return (a->object < b->object) ? -1 : 1;
    }

    return (int) ngx_mcp_string_cmp(&a->text, &b->text);
}
