
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_json.h"

#if (__SSE2__)
#include <emmintrin.h>
#endif


/* a 64-bit word that has c in each of its bytes */
#define NGX_MCP_JSON_EACH(c)  (0x0101010101010101ULL * (c))


static u_char *ngx_mcp_json_space(u_char *p, u_char *end);
static u_char *ngx_mcp_json_key(u_char *p, u_char *end, ngx_mcp_json_t *key,
    const char **err);
static ngx_mcp_json_t *ngx_mcp_json_named(ngx_mcp_shape_t **shape,
    ngx_mcp_json_t *key, void *base);
static u_char *ngx_mcp_json_scalar(u_char *p, u_char *end, ngx_uint_t *type,
    const char **err);
static u_char *ngx_mcp_json_text(u_char *p, u_char *end, const char **err);
static u_char *ngx_mcp_json_escaped(u_char *p, u_char *end, const char **err);
static u_char *ngx_mcp_json_number(u_char *p, u_char *end, const char **err);
static u_char *ngx_mcp_json_unescape(u_char *p, u_char *end, u_char *dst,
    size_t *len);


ngx_int_t
ngx_mcp_json_parse(ngx_str_t *text, ngx_mcp_json_t *value, const char **err)
{
    return ngx_mcp_json_shape(text, value, NULL, NULL, err);
}


/*
 * Open containers are a stack of bits, where 1 is an object and 0 an array.
 * For the first NGX_MCP_JSON_SHAPES levels, open[] has the value that ends
 * with the container, or NULL, and within[] the members to be found in it.
 */

ngx_int_t
ngx_mcp_json_shape(ngx_str_t *text, ngx_mcp_json_t *value,
    ngx_mcp_shape_t *shape, void *base, const char **err)
{
    u_char           *p, *end;
    uint64_t          stack[NGX_MCP_JSON_DEPTH / 64];
    ngx_uint_t        depth, type, object, first;
    ngx_mcp_json_t    key, *named;
    ngx_mcp_json_t   *open[NGX_MCP_JSON_SHAPES];
    ngx_mcp_shape_t  *within[NGX_MCP_JSON_SHAPES];
    ngx_mcp_shape_t  *members;

    p = text->data;
    end = p + text->len;
    depth = 0;
    object = 0;
    first = 0;
    named = value;
    members = shape;
    ngx_memzero(stack, sizeof(stack));

    p = ngx_mcp_json_space(p, end);

    for ( ;; ) {

        /* a value, or the end of an empty container */

        if (p == end) {
            *err = "unexpected end of input";
            return NGX_DECLINED;
        }

        if (!(first && *p == (object ? '}' : ']'))) {

            if (object) {
                p = ngx_mcp_json_key(p, end, &key, err);
                if (p == NULL) {
                    return NGX_DECLINED;
                }
            }

            if (depth) {
                members = (object && depth <= NGX_MCP_JSON_SHAPES)
                          ? within[depth - 1] : NULL;
                named = members ? ngx_mcp_json_named(&members, &key,
                                                     base)
                                : NULL;
            }

            if (named) {
                named->text.data = p;
            }

            if (*p == '{' || *p == '[') {

                if (depth == NGX_MCP_JSON_DEPTH) {
                    *err = "nested deeper than 128 levels";
                    return NGX_DECLINED;
                }

                if (depth < NGX_MCP_JSON_SHAPES) {
                    open[depth] = named;
                    within[depth] = members;
                }

                object = (*p++ == '{');
                first = 1;

                if (named) {
                    named->type = object ? NGX_MCP_JSON_OBJECT
                                         : NGX_MCP_JSON_ARRAY;
                }

                stack[depth / 64] &= ~((uint64_t) 1 << (depth % 64));
                stack[depth / 64] |= (uint64_t) object << (depth % 64);
                depth++;

                p = ngx_mcp_json_space(p, end);
                continue;
            }

            p = ngx_mcp_json_scalar(p, end, &type, err);
            if (p == NULL) {
                return NGX_DECLINED;
            }

            if (named) {
                named->text.len = p - named->text.data;
                named->type = type;
            }

            if (depth == 0) {
                break;
            }
        }

        /* after a value: any number of container ends, then a comma */

        for ( ;; ) {
            p = ngx_mcp_json_space(p, end);

            if (p == end) {
                *err = "unexpected end of input";
                return NGX_DECLINED;
            }

            if (*p != (object ? '}' : ']')) {
                break;
            }

            p++;

            depth--;

            if (depth < NGX_MCP_JSON_SHAPES && open[depth]) {
                open[depth]->text.len = p - open[depth]->text.data;
            }

            if (depth == 0) {
                goto done;
            }

            object = stack[(depth - 1) / 64] >> ((depth - 1) % 64) & 1;
        }

        if (*p != ',') {
            *err = "expected a comma or a closing bracket";
            return NGX_DECLINED;
        }

        p = ngx_mcp_json_space(p + 1, end);
        first = 0;
    }

done:

    if (ngx_mcp_json_space(p, end) != end) {
        *err = "unexpected characters after the value";
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/*
 * Returns the value to be set for a key, and replaces the shape by that of
 * the value's own members.  NULL: the shape does not name the key, or the
 * member is duplicate.
 */

static ngx_mcp_json_t *
ngx_mcp_json_named(ngx_mcp_shape_t **shape, ngx_mcp_json_t *key, void *base)
{
    size_t            len;
    ngx_mcp_json_t   *value;
    ngx_mcp_shape_t  *s;

    len = key->text.len - 2;

    for (s = *shape; s->name.len; s++) {
        if (s->name.len == len
            && ngx_memcmp(s->name.data, key->text.data + 1, len) == 0)
        {
            goto found;
        }
    }

    /* keys with escapes are valid but rare */

    if (memchr(key->text.data, '\\', key->text.len) != NULL) {
        for (s = *shape; s->name.len; s++) {
            if (ngx_mcp_json_is(key, &s->name)) {
                goto found;
            }
        }
    }

    *shape = NULL;

    return NULL;

found:

    value = (ngx_mcp_json_t *) ((u_char *) base + s->value);

    if (value->type != NGX_MCP_JSON_NONE) {
        value->type = NGX_MCP_JSON_DUPLICATE;
        *shape = NULL;
        return NULL;
    }

    *shape = s->members;

    return value;
}


static u_char *
ngx_mcp_json_space(u_char *p, u_char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }

    return p;
}


/*
 * Reads a key, the colon and the space after it.  Returns the first character
 * of the value, which is before the end; NULL: an error.
 */

static u_char *
ngx_mcp_json_key(u_char *p, u_char *end, ngx_mcp_json_t *key, const char **err)
{
    if (*p != '"') {
        *err = "expected an object key in double quotes";
        return NULL;
    }

    key->text.data = p;

    p = ngx_mcp_json_text(p, end, err);
    if (p == NULL) {
        return NULL;
    }

    key->text.len = p - key->text.data;

    p = ngx_mcp_json_space(p, end);

    if (p < end && *p != ':') {
        *err = "expected a colon after an object key";
        return NULL;
    }

    if (p < end) {
        p = ngx_mcp_json_space(p + 1, end);
    }

    if (p == end) {
        *err = "unexpected end of input";
        return NULL;
    }

    return p;
}


static u_char *
ngx_mcp_json_scalar(u_char *p, u_char *end, ngx_uint_t *type, const char **err)
{
    size_t  left;

    left = end - p;

    switch (*p) {

    case '"':
        *type = NGX_MCP_JSON_STRING;
        return ngx_mcp_json_text(p, end, err);

    case 't':
        if (left >= 4 && ngx_memcmp(p, "true", 4) == 0) {
            *type = NGX_MCP_JSON_TRUE;
            return p + 4;
        }

        break;

    case 'f':
        if (left >= 5 && ngx_memcmp(p, "false", 5) == 0) {
            *type = NGX_MCP_JSON_FALSE;
            return p + 5;
        }

        break;

    case 'n':
        if (left >= 4 && ngx_memcmp(p, "null", 4) == 0) {
            *type = NGX_MCP_JSON_NULL;
            return p + 4;
        }

        break;

    default:
        if (*p == '-' || (*p >= '0' && *p <= '9')) {
            *type = NGX_MCP_JSON_NUMBER;
            return ngx_mcp_json_number(p, end, err);
        }
    }

    *err = "invalid or missing value";

    return NULL;
}


/*
 * Skips plain bytes of a string, 16 or 8 at a time.  Quotes, backslashes,
 * control characters and bytes above 0x7f are not plain.  Returns a position
 * at or before the first byte that is not plain, never after it.  In a word,
 * the borrow of a subtraction may mark plain bytes too.  On little-endian
 * machines these follow the first byte that is not plain; on others the whole
 * word is left to the caller.
 */

static ngx_inline u_char *
ngx_mcp_json_plain(u_char *p, u_char *end)
{
    uint64_t  word, found;

#if (__SSE2__)
    __m128i   text, special;

    while (end - p >= 16) {
        text = _mm_loadu_si128((__m128i *) p);

        /* the comparison is signed: bytes above 0x7f are below a space too */

        special = _mm_or_si128(_mm_cmplt_epi8(text, _mm_set1_epi8(0x20)),
                               _mm_or_si128(
                                   _mm_cmpeq_epi8(text, _mm_set1_epi8('"')),
                                   _mm_cmpeq_epi8(text, _mm_set1_epi8('\\'))));
        found = _mm_movemask_epi8(special);

        if (found) {
            return p + __builtin_ctzll(found);
        }

        p += 16;
    }
#endif

    while (end - p >= 8) {
        ngx_memcpy(&word, p, 8);

        found = (word
                 | (word - NGX_MCP_JSON_EACH(0x20))
                 | ((word ^ NGX_MCP_JSON_EACH('"'))
                    - NGX_MCP_JSON_EACH(1))
                 | ((word ^ NGX_MCP_JSON_EACH('\\'))
                    - NGX_MCP_JSON_EACH(1)))
                & NGX_MCP_JSON_EACH(0x80);

        if (found) {
#if (NGX_HAVE_LITTLE_ENDIAN)
            p += __builtin_ctzll(found) / 8;
#endif
            break;
        }

        p += 8;
    }

    return p;
}


static u_char *
ngx_mcp_json_text(u_char *p, u_char *end, const char **err)
{
    for (p++; /* void */ ; /* void */ ) {

        p = ngx_mcp_json_plain(p, end);

        if (p == end) {
            break;
        }

        if (*p == '"') {
            return p + 1;
        }

        if (*p == '\\') {
            p = ngx_mcp_json_escaped(p, end, err);

        } else if (*p < 0x20) {
            *err = "unescaped control character in a string";
            return NULL;

        } else if (*p < 0x80) {
            p++;
            continue;

        } else {
            p = ngx_mcp_json_utf8(p, end);

            if (p == NULL) {
                *err = "invalid UTF-8 in a string";
            }
        }

        if (p == NULL) {
            return NULL;
        }
    }

    *err = "unterminated string";

    return NULL;
}


static u_char *
ngx_mcp_json_escaped(u_char *p, u_char *end, const char **err)
{
    ngx_uint_t  i;

    *err = "invalid escape sequence in a string";

    if (end - p < 2) {
        return NULL;
    }

    switch (p[1]) {

    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r':
    case 't':
        return p + 2;

    case 'u':
        if (end - p < 6) {
            return NULL;
        }

        for (i = 2; i < 6; i++) {
            if (ngx_hextoi(p + i, 1) == NGX_ERROR) {
                return NULL;
            }
        }

        return p + 6;
    }

    return NULL;
}


/* RFC 3629: overlong forms, surrogates and codes above U+10FFFF are invalid. */

u_char *
ngx_mcp_json_utf8(u_char *p, u_char *end)
{
    u_char      c, min, max;
    ngx_uint_t  n;

    c = *p;
    min = 0x80;
    max = 0xbf;

    if (c >= 0xc2 && c <= 0xdf) {
        n = 1;

    } else if (c >= 0xe0 && c <= 0xef) {
        n = 2;
        min = (c == 0xe0) ? 0xa0 : 0x80;
        max = (c == 0xed) ? 0x9f : 0xbf;

    } else if (c >= 0xf0 && c <= 0xf4) {
        n = 3;
        min = (c == 0xf0) ? 0x90 : 0x80;
        max = (c == 0xf4) ? 0x8f : 0xbf;

    } else {
        return NULL;
    }

    if ((size_t) (end - p) <= n || p[1] < min || p[1] > max) {
        return NULL;
    }

    for (p += 2; n > 1; n--, p++) {
        if ((*p & 0xc0) != 0x80) {
            return NULL;
        }
    }

    return p;
}


static u_char *
ngx_mcp_json_digits(u_char *p, u_char *end)
{
    u_char  *start;

    for (start = p; p < end && *p >= '0' && *p <= '9'; p++) { /* void */ }

    return (p == start) ? NULL : p;
}


static u_char *
ngx_mcp_json_number(u_char *p, u_char *end, const char **err)
{
    *err = "invalid number";

    if (*p == '-') {
        p++;
    }

    if (p < end && *p == '0') {
        p++;

    } else {
        p = ngx_mcp_json_digits(p, end);
        if (p == NULL) {
            return NULL;
        }
    }

    if (p < end && *p == '.') {
        p = ngx_mcp_json_digits(p + 1, end);
        if (p == NULL) {
            return NULL;
        }
    }

    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;

        if (p < end && (*p == '+' || *p == '-')) {
            p++;
        }

        p = ngx_mcp_json_digits(p, end);
        if (p == NULL) {
            return NULL;
        }
    }

    if (p < end && *p >= '0' && *p <= '9') {
        return NULL;
    }

    return p;
}


void
ngx_mcp_json_iter(ngx_mcp_json_iter_t *it, ngx_mcp_json_t *value)
{
    it->object = (value->type == NGX_MCP_JSON_OBJECT);
    it->pos = value->text.data + 1;
    it->end = value->text.data + value->text.len - 1;
}


ngx_int_t
ngx_mcp_json_next(ngx_mcp_json_iter_t *it, ngx_mcp_json_t *key,
    ngx_mcp_json_t *value)
{
    u_char  *p;

    p = ngx_mcp_json_space(it->pos, it->end);

    if (p == it->end) {
        return NGX_DONE;
    }

    if (it->object) {
        key->text.data = p;
        key->type = NGX_MCP_JSON_STRING;
        p = ngx_mcp_json_skip_string(p, it->end);
        key->text.len = p - key->text.data;

        p = ngx_mcp_json_space(p, it->end) + 1;
        p = ngx_mcp_json_space(p, it->end);
    }

    value->text.data = p;
    p = ngx_mcp_json_skip(p, it->end, &value->type);
    value->text.len = p - value->text.data;

    p = ngx_mcp_json_space(p, it->end);

    it->pos = (p < it->end) ? p + 1 : p;

    return NGX_OK;
}


/* Returns the end of a value, which must be valid, and its type. */

u_char *
ngx_mcp_json_skip(u_char *p, u_char *end, ngx_uint_t *type)
{
    ngx_uint_t  depth;

    switch (*p) {

    case '"':
        *type = NGX_MCP_JSON_STRING;
        return ngx_mcp_json_skip_string(p, end);

    case 't':
        *type = NGX_MCP_JSON_TRUE;
        return p + 4;

    case 'f':
        *type = NGX_MCP_JSON_FALSE;
        return p + 5;

    case 'n':
        *type = NGX_MCP_JSON_NULL;
        return p + 4;

    case '{':
        *type = NGX_MCP_JSON_OBJECT;
        break;

    case '[':
        *type = NGX_MCP_JSON_ARRAY;
        break;

    default:
        *type = NGX_MCP_JSON_NUMBER;

        while ((*p >= '0' && *p <= '9') || *p == '-' || *p == '+'
               || *p == '.' || *p == 'e' || *p == 'E')
        {
            p++;
        }

        return p;
    }

    depth = 0;

    do {
        switch (*p) {

        case '"':
            p = ngx_mcp_json_skip_string(p, end);
            continue;

        case '{': case '[':
            depth++;
            break;

        case '}': case ']':
            depth--;
            break;
        }

        p++;

    } while (depth);

    return p;
}


u_char *
ngx_mcp_json_skip_string(u_char *p, u_char *end)
{
    for (p++; /* void */ ; p++) {

        p = ngx_mcp_json_plain(p, end);

        if (*p == '"') {
            return p + 1;
        }

        if (*p == '\\') {
            p++;
        }
    }
}


ngx_int_t
ngx_mcp_json_members(ngx_mcp_json_t *object, ngx_mcp_member_t *members,
    ngx_uint_t n)
{
    ngx_uint_t            i, escaped;
    ngx_mcp_json_t        key, value;
    ngx_mcp_json_iter_t   it;

    for (i = 0; i < n; i++) {
        members[i].value->type = NGX_MCP_JSON_NONE;
        ngx_str_null(&members[i].value->text);
    }

    if (object->type != NGX_MCP_JSON_OBJECT) {
        return NGX_OK;
    }

    ngx_mcp_json_iter(&it, object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        escaped = (memchr(key.text.data, '\\', key.text.len) != NULL);

        for (i = 0; i < n; i++) {

            if ((!escaped && key.text.len != members[i].name.len + 2)
                || !ngx_mcp_json_is(&key, &members[i].name))
            {
                continue;
            }

            if (members[i].value->type != NGX_MCP_JSON_NONE) {
                return NGX_DECLINED;
            }

            *members[i].value = value;
            break;
        }
    }

    return NGX_OK;
}


ngx_uint_t
ngx_mcp_json_is(ngx_mcp_json_t *string, ngx_str_t *s)
{
    u_char   buf[4], *p, *end, *q, *last;
    size_t   len;

    p = string->text.data + 1;
    len = string->text.len - 2;

    /* an escape is longer than the character that it encodes */

    if (len == s->len) {
        return len == 0
               || (ngx_memcmp(p, s->data, len) == 0
                   && memchr(p, '\\', len) == NULL);
    }

    if (len < s->len || memchr(p, '\\', len) == NULL) {
        return 0;
    }

    end = p + len;
    q = s->data;
    last = q + s->len;

    while (p < end) {

        if (*p != '\\') {
            if (q == last || *p++ != *q++) {
                return 0;
            }

            continue;
        }

        p = ngx_mcp_json_unescape(p, end, buf, &len);

        if (p == NULL
            || (size_t) (last - q) < len
            || ngx_memcmp(q, buf, len) != 0)
        {
            return 0;
        }

        q += len;
    }

    return q == last;
}


ngx_int_t
ngx_mcp_json_string(ngx_pool_t *pool, ngx_mcp_json_t *value, ngx_str_t *s)
{
    u_char  *p, *end, *dst;
    size_t   len;

    p = value->text.data + 1;
    len = value->text.len - 2;

    if (memchr(p, '\\', len) == NULL) {
        s->data = p;
        s->len = len;
        return NGX_OK;
    }

    dst = ngx_pnalloc(pool, len);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    s->data = dst;
    end = p + len;

    while (p < end) {

        if (*p != '\\') {
            *dst++ = *p++;
            continue;
        }

        p = ngx_mcp_json_unescape(p, end, dst, &len);
        if (p == NULL) {
            return NGX_DECLINED;
        }

        dst += len;
    }

    s->len = dst - s->data;

    return NGX_OK;
}


/*
 * Decodes the escape at p into 1 to 4 bytes, which are fewer than the escape
 * has.  Returns its end; NULL: an escaped NUL or an unpaired surrogate.
 */

static u_char *
ngx_mcp_json_unescape(u_char *p, u_char *end, u_char *dst, size_t *len)
{
    uint32_t    code;
    ngx_uint_t  n;

    p = ngx_mcp_json_code_point(p, end, &code);

    if (p == NULL || code == 0) {
        return NULL;
    }

    n = (code < 0x80) ? 1 : (code < 0x800) ? 2 : (code < 0x10000) ? 3 : 4;
    *len = n;

    if (n == 1) {
        *dst = (u_char) code;
        return p;
    }

    /* the number of leading one bits is the number of bytes */

    *dst++ = (u_char) (0xf00 >> n | code >> (6 * (n - 1)));

    while (--n) {
        *dst++ = (u_char) (0x80 | (code >> (6 * (n - 1)) & 0x3f));
    }

    return p;
}


/* An unpaired surrogate is not a character; code is set to it all the same. */

u_char *
ngx_mcp_json_code_point(u_char *p, u_char *end, uint32_t *code)
{
    uint32_t  low;

    switch (p[1]) {
    case 'b':
        *code = '\b';
        return p + 2;
    case 'f':
        *code = '\f';
        return p + 2;
    case 'n':
        *code = '\n';
        return p + 2;
    case 'r':
        *code = '\r';
        return p + 2;
    case 't':
        *code = '\t';
        return p + 2;
    case 'u':
        break;
    default:
        *code = p[1];
        return p + 2;
    }

    *code = (uint32_t) ngx_hextoi(p + 2, 4);
    p += 6;

    if (*code < 0xd800 || *code > 0xdfff) {
        return p;
    }

    if (*code > 0xdbff || end - p < 6 || p[0] != '\\' || p[1] != 'u') {
        return NULL;
    }

    low = (uint32_t) ngx_hextoi(p + 2, 4);

    if (low < 0xdc00 || low > 0xdfff) {
        return NULL;
    }

    *code = 0x10000 + ((*code - 0xd800) << 10 | (low - 0xdc00));

    return p + 6;
}


ngx_uint_t
ngx_mcp_json_filled(ngx_mcp_json_t *value)
{
    u_char  *end;

    end = value->text.data + value->text.len - 1;

    return ngx_mcp_json_space(value->text.data + 1, end) != end;
}


ngx_int_t
ngx_mcp_json_integer(ngx_mcp_json_t *value, int64_t *n)
{
    u_char      *p, *end;
    uint64_t     v;
    ngx_uint_t   minus;

    if (value->type != NGX_MCP_JSON_NUMBER) {
        return NGX_DECLINED;
    }

    p = value->text.data;
    end = p + value->text.len;
    minus = (*p == '-');
    p += minus;

    if (end - p > 18) {
        return NGX_DECLINED;
    }

    for (v = 0; p < end; p++) {
        if (*p < '0' || *p > '9') {
            return NGX_DECLINED;
        }

        v = v * 10 + (*p - '0');
    }

    *n = minus ? -(int64_t) v : (int64_t) v;

    return NGX_OK;
}


ngx_int_t
ngx_mcp_json_real(ngx_mcp_json_t *value, double *n)
{
    char    *end;
    u_char   buf[64];

    if (value->type != NGX_MCP_JSON_NUMBER
        || value->text.len >= sizeof(buf))
    {
        return NGX_DECLINED;
    }

    (void) ngx_cpystrn(buf, value->text.data, value->text.len + 1);
    *n = strtod((char *) buf, &end);

    return (*end == '\0' && *n >= -1e300 && *n <= 1e300) ? NGX_OK
                                                         : NGX_DECLINED;
}
