
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* JSON values as schemas see them: by what they mean, not how they look. */


#include "ngx_mcp_schema_types.h"


#define NGX_MCP_HASH_SEED   14695981039346656037ULL
#define NGX_MCP_HASH_PRIME  1099511628211ULL


static uint64_t ngx_mcp_hash_bytes(uint64_t hash, u_char *p, size_t len);
static uint64_t ngx_mcp_hash_string(ngx_str_t *text);
static uint64_t ngx_mcp_hash_number(ngx_str_t *text);
static ngx_uint_t ngx_mcp_value_equal_array(ngx_mcp_json_t *a,
    ngx_mcp_json_t *b, int64_t *steps);
static ngx_uint_t ngx_mcp_value_equal_object(ngx_mcp_json_t *a,
    ngx_mcp_json_t *b, int64_t *steps);
static u_char *ngx_mcp_value_utf8(u_char *dst, uint32_t code);
static u_char *ngx_mcp_value_char(u_char *p, u_char *end, uint32_t *code);
static u_char *ngx_mcp_pointer_token(u_char *p, u_char *last,
    ngx_mcp_json_t *key);


/*
 * Equal values have equal hashes.  The members of an object are added up, as
 * their order does not matter.  The depth is that of the JSON scanner.
 */

uint64_t
ngx_mcp_value_hash(ngx_mcp_json_t *value, int64_t *steps)
{
    uint64_t              hash, member;
    ngx_mcp_json_t        key, item;
    ngx_mcp_json_iter_t   it;

    *steps -= 1 + value->text.len / NGX_MCP_VALIDATE_STEP;

    if (*steps < 0) {
        return 0;
    }

    switch (value->type) {

    case NGX_MCP_JSON_STRING:
        return ngx_mcp_hash_string(&value->text);

    case NGX_MCP_JSON_NUMBER:
        return ngx_mcp_hash_number(&value->text);

    case NGX_MCP_JSON_ARRAY:
    case NGX_MCP_JSON_OBJECT:
        break;

    default:
        return value->type;
    }

    hash = NGX_MCP_HASH_SEED + value->type;

    ngx_mcp_json_iter(&it, value);

    while (ngx_mcp_json_next(&it, &key, &item) == NGX_OK) {

        member = ngx_mcp_value_hash(&item, steps);

        if (value->type == NGX_MCP_JSON_ARRAY) {
            hash = (hash ^ member) * NGX_MCP_HASH_PRIME;
            hash ^= hash >> 29;
            continue;
        }

        member = (member ^ ngx_mcp_hash_string(&key.text)) * NGX_MCP_HASH_PRIME;
        hash += member ^ member >> 31;
    }

    return hash;
}


static uint64_t
ngx_mcp_hash_bytes(uint64_t hash, u_char *p, size_t len)
{
    while (len--) {
        hash = (hash ^ *p++) * NGX_MCP_HASH_PRIME;
    }

    return hash;
}


static uint64_t
ngx_mcp_hash_string(ngx_str_t *text)
{
    u_char    *p, *end, buf[4];
    uint64_t   hash;
    uint32_t   code;

    p = text->data + 1;
    end = text->data + text->len - 1;
    hash = NGX_MCP_HASH_SEED + NGX_MCP_JSON_STRING;

    while (p < end) {

        if (*p != '\\') {
            hash = (hash ^ *p++) * NGX_MCP_HASH_PRIME;
            continue;
        }

        p = ngx_mcp_value_char(p, end, &code);
        hash = ngx_mcp_hash_bytes(hash, buf,
                                  ngx_mcp_value_utf8(buf, code) - buf);
    }

    return hash ^ hash >> 32;
}


static uint64_t
ngx_mcp_hash_number(ngx_str_t *text)
{
    u_char             c;
    uint64_t           hash;
    ngx_mcp_decimal_t  d;

    hash = NGX_MCP_HASH_SEED + NGX_MCP_JSON_NUMBER;

    if (ngx_mcp_decimal(text, &d) != NGX_OK) {
        /* equal only if written in the same way */
        return ngx_mcp_hash_bytes(hash, text->data, text->len);
    }

    hash ^= (uint64_t) d.exp * 2 + d.minus;

    while ((c = ngx_mcp_decimal_next(&d)) != 0) {
        hash = (hash ^ c) * NGX_MCP_HASH_PRIME;
    }

    return hash ^ hash >> 32;
}


ngx_uint_t
ngx_mcp_value_equal(ngx_mcp_json_t *a, ngx_mcp_json_t *b, int64_t *steps)
{
    *steps -= 1 + a->text.len / NGX_MCP_VALIDATE_STEP;

    if (a->type != b->type || *steps < 0) {
        return 0;
    }

    switch (a->type) {

    case NGX_MCP_JSON_STRING:
        return ngx_mcp_json_same(a, b);

    case NGX_MCP_JSON_NUMBER:
        return ngx_mcp_json_same_number(a, b);

    case NGX_MCP_JSON_ARRAY:
        return ngx_mcp_value_equal_array(a, b, steps);

    case NGX_MCP_JSON_OBJECT:
        return ngx_mcp_value_equal_object(a, b, steps);

    default:
        return 1;
    }
}


static ngx_uint_t
ngx_mcp_value_equal_array(ngx_mcp_json_t *a, ngx_mcp_json_t *b, int64_t *steps)
{
    ngx_int_t             rc;
    ngx_mcp_json_t        x, y;
    ngx_mcp_json_iter_t   i, j;

    ngx_mcp_json_iter(&i, a);
    ngx_mcp_json_iter(&j, b);

    for ( ;; ) {
        rc = ngx_mcp_json_next(&i, NULL, &x);

        if (ngx_mcp_json_next(&j, NULL, &y) != rc) {
            return 0;
        }

        if (rc == NGX_DONE) {
            return 1;
        }

        if (!ngx_mcp_value_equal(&x, &y, steps)) {
            return 0;
        }
    }
}


/* as many members, and each of one in the other */

static ngx_uint_t
ngx_mcp_value_equal_object(ngx_mcp_json_t *a, ngx_mcp_json_t *b,
    int64_t *steps)
{
    ngx_int_t             n;
    ngx_mcp_json_t        key, x, other, y;
    ngx_mcp_json_iter_t   i, j;

    ngx_mcp_json_iter(&i, a);
    n = 0;

    while (ngx_mcp_json_next(&i, &key, &x) == NGX_OK) {

        *steps -= 1 + b->text.len / NGX_MCP_VALIDATE_STEP;

        if (*steps < 0) {
            return 0;
        }

        ngx_mcp_json_iter(&j, b);

        do {
            if (ngx_mcp_json_next(&j, &other, &y) != NGX_OK) {
                return 0;
            }

        } while (!ngx_mcp_json_same(&key, &other));

        if (!ngx_mcp_value_equal(&x, &y, steps)) {
            return 0;
        }

        n++;
    }

    ngx_mcp_json_iter(&j, b);

    while (ngx_mcp_json_next(&j, &other, &y) == NGX_OK) {
        n--;
    }

    return n == 0;
}


ngx_int_t
ngx_mcp_value_string(ngx_pool_t *pool, ngx_mcp_json_t *value, ngx_str_t *s)
{
    u_char    *p, *end, *dst;
    uint32_t   code;

    s->data = value->text.data + 1;
    s->len = value->text.len - 2;

    if (memchr(s->data, '\\', s->len) == NULL) {
        return NGX_OK;
    }

    p = s->data;
    end = p + s->len;

    dst = ngx_pnalloc(pool, s->len);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    s->data = dst;

    while (p < end) {

        if (*p != '\\') {
            *dst++ = *p++;
            continue;
        }

        p = ngx_mcp_value_char(p, end, &code);

        if (code >= 0xd800 && code <= 0xdfff) {
            code = 0xfffd;
        }

        dst = ngx_mcp_value_utf8(dst, code);
    }

    s->len = dst - s->data;

    return NGX_OK;
}


/* half of a surrogate pair stands for itself */

static u_char *
ngx_mcp_value_char(u_char *p, u_char *end, uint32_t *code)
{
    u_char  *next;

    next = ngx_mcp_json_code_point(p, end, code);

    return next ? next : p + sizeof("\\ud800") - 1;
}


static u_char *
ngx_mcp_value_utf8(u_char *dst, uint32_t code)
{
    if (code < 0x80) {
        *dst++ = (u_char) code;
        return dst;
    }

    if (code < 0x800) {
        *dst++ = (u_char) (0xc0 | code >> 6);
        *dst++ = (u_char) (0x80 | (code & 0x3f));
        return dst;
    }

    if (code < 0x10000) {
        *dst++ = (u_char) (0xe0 | code >> 12);

    } else {
        *dst++ = (u_char) (0xf0 | code >> 18);
        *dst++ = (u_char) (0x80 | (code >> 12 & 0x3f));
    }

    *dst++ = (u_char) (0x80 | (code >> 6 & 0x3f));
    *dst++ = (u_char) (0x80 | (code & 0x3f));

    return dst;
}


/* from the root down to the value that is there, or has its key there */

ngx_int_t
ngx_mcp_value_pointer(ngx_pool_t *pool, ngx_mcp_json_t *root, u_char *where,
    ngx_str_t *pointer)
{
    u_char               *p, *last;
    ngx_uint_t            n;
    ngx_mcp_json_t        value, key, item;
    ngx_mcp_json_iter_t   it;

    pointer->data = ngx_pnalloc(pool, NGX_MCP_SCHEMA_POINTER + sizeof("..."));
    if (pointer->data == NULL) {
        return NGX_ERROR;
    }

    p = pointer->data;
    last = p + NGX_MCP_SCHEMA_POINTER;
    value = *root;

    while (where > value.text.data && p < last) {

        ngx_mcp_json_iter(&it, &value);
        ngx_str_null(&key.text);

        for (n = 0; /* void */ ; n++) {

            if (ngx_mcp_json_next(&it, &key, &item) != NGX_OK) {
                goto done;
            }

            if (where < item.text.data + item.text.len) {
                break;
            }
        }

        if (value.type == NGX_MCP_JSON_OBJECT) {
            p = ngx_mcp_pointer_token(p, last, &key);

        } else {
            p = ngx_slprintf(p, last, "/%ui", n);
        }

        value = item;
    }

done:

    if (p == last) {
        /* it may end within a character */

        while ((p[-1] & 0xc0) == 0x80) {
            p--;
        }

        p = (p[-1] & 0x80) ? p - 1 : p;
        p = ngx_cpymem(p, "...", 3);
    }

    pointer->len = p - pointer->data;

    return NGX_OK;
}


static u_char *
ngx_mcp_pointer_token(u_char *p, u_char *last, ngx_mcp_json_t *key)
{
    u_char    *src, *end, *next, buf[4];
    uint32_t   code;

    src = key->text.data + 1;
    end = key->text.data + key->text.len - 1;

    *p++ = '/';

    while (src < end && p < last) {

        buf[0] = *src;
        next = buf + 1;

        if (*src == '\\') {
            src = ngx_mcp_value_char(src, end, &code);
            code = (code >= 0xd800 && code <= 0xdfff) ? 0xfffd : code;
            next = ngx_mcp_value_utf8(buf, code);

        } else {
            src++;
        }

        if (buf[0] == '~' || buf[0] == '/') {
            buf[1] = (buf[0] == '~') ? '0' : '1';
            buf[0] = '~';
            next = buf + 2;
        }

        p = ngx_cpymem(p, buf, ngx_min(next - buf, last - p));
    }

    return p;
}
