
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_id.h"

#include <sys/random.h>


#define NGX_MCP_RANDOM_POOL  512

/* a 64-bit word with c in each byte */
#define NGX_MCP_EACH(c)      (0x0101010101010101ULL * (c))


/* the value of a lower case hexadecimal digit, plus 1; 0: not a digit */

static const u_char  ngx_mcp_digit[256] = {
    ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6,
    ['6'] = 7, ['7'] = 8, ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12,
    ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16
};


static ngx_int_t
ngx_mcp_getrandom(u_char *p, size_t len)
{
    ssize_t  n;

    while (len) {
        n = getrandom(p, len, 0);

        if (n == -1) {
            if (ngx_errno == NGX_EINTR) {
                continue;
            }

            return NGX_ERROR;
        }

        p += n;
        len -= n;
    }

    return NGX_OK;
}


/*
 * One system call serves many ids.  The pool belongs to one process, hence the
 * pid: a child must not return the bytes in its parent's pool.  Used bytes are
 * wiped, so that a later memory disclosure does not reveal an id.
 */

ngx_int_t
ngx_mcp_random(void *buf, size_t len)
{
    static u_char     pool[NGX_MCP_RANDOM_POOL];
    static size_t     used = NGX_MCP_RANDOM_POOL;
    static ngx_pid_t  pid;

    if (len > sizeof(pool)) {
        return ngx_mcp_getrandom(buf, len);
    }

    if (pid != ngx_pid || used + len > sizeof(pool)) {

        if (ngx_mcp_getrandom(pool, sizeof(pool)) != NGX_OK) {
            return NGX_ERROR;
        }

        pid = ngx_pid;
        used = 0;
    }

    ngx_memcpy(buf, pool + used, len);
    ngx_memzero(pool + used, len);
    used += len;

    return NGX_OK;
}


ngx_int_t
ngx_mcp_id_new(ngx_mcp_id_t *id)
{
    if (ngx_mcp_random(id->data, NGX_MCP_ID_LEN) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_mcp_id_form(id);

    return NGX_OK;
}


/* makes an id of random bytes, or of a keyed hash */

void
ngx_mcp_id_form(ngx_mcp_id_t *id)
{
    /* RFC 9562: version 4, variant 10 */

    id->data[6] = (id->data[6] & 0x0f) | 0x40;
    id->data[8] = (id->data[8] & 0x3f) | 0x80;
}


#if (NGX_HAVE_LITTLE_ENDIAN)

/*
 * Eight digits at once.  A byte with bit 0x40 is decoded as a letter.  The
 * digits are valid if all values are less than 16 and encoding them returns
 * the same text.
 */

static ngx_inline ngx_int_t
ngx_mcp_unhex_word(u_char *dst, u_char *src)
{
    uint32_t  low;
    uint64_t  text, value, letter;

    ngx_memcpy(&text, src, sizeof(uint64_t));

    letter = text >> 6 & NGX_MCP_EACH(0x01);
    value = (text & NGX_MCP_EACH(0x0f)) + letter * 9;
    letter = (value + NGX_MCP_EACH(0x76)) >> 7
             & NGX_MCP_EACH(0x01);

    if ((value & NGX_MCP_EACH(0xf0))
        || text != value + NGX_MCP_EACH('0')
                   + letter * ('a' - '0' - 10))
    {
        return NGX_DECLINED;
    }

    value = (value << 4 | value >> 8) & 0x00ff00ff00ff00ffULL;
    value = (value | value >> 8) & 0x0000ffff0000ffffULL;
    low = (uint32_t) (value | value >> 16);

    ngx_memcpy(dst, &low, sizeof(uint32_t));

    return NGX_OK;
}


/* the reverse: four bytes to eight digits */

static ngx_inline void
ngx_mcp_hex_word(u_char *dst, const u_char *src)
{
    uint32_t  low;
    uint64_t  text, value, letter;

    ngx_memcpy(&low, src, sizeof(uint32_t));

    value = low;
    value = (value | value << 16) & 0x0000ffff0000ffffULL;
    value = (value | value << 8) & 0x00ff00ff00ff00ffULL;
    value = (value >> 4 | value << 8) & NGX_MCP_EACH(0x0f);

    letter = (value + NGX_MCP_EACH(0x76)) >> 7
             & NGX_MCP_EACH(0x01);
    text = value + NGX_MCP_EACH('0') + letter * ('a' - '0' - 10);

    ngx_memcpy(dst, &text, sizeof(uint64_t));
}

#endif


/* writes 2 * n digits and returns their end */

u_char *
ngx_mcp_hex(u_char *dst, const void *data, size_t n)
{
    const u_char       *src = data;
    static const char   digits[] = "0123456789abcdef";

#if (NGX_HAVE_LITTLE_ENDIAN)

    for ( /* void */ ; n >= 4; n -= 4, src += 4, dst += 8) {
        ngx_mcp_hex_word(dst, src);
    }

#endif

    for ( /* void */ ; n; n--, src++) {
        *dst++ = digits[*src >> 4];
        *dst++ = digits[*src & 15];
    }

    return dst;
}


/* reads 2 * n digits; NGX_DECLINED: not all are lower case digits */

ngx_int_t
ngx_mcp_unhex(u_char *dst, u_char *src, size_t n)
{
    ngx_uint_t  hi, lo;

#if (NGX_HAVE_LITTLE_ENDIAN)

    for ( /* void */ ; n >= 4; n -= 4, src += 8, dst += 4) {
        if (ngx_mcp_unhex_word(dst, src) != NGX_OK) {
            return NGX_DECLINED;
        }
    }

#endif

    for ( /* void */ ; n; n--) {
        hi = ngx_mcp_digit[*src++];
        lo = ngx_mcp_digit[*src++];

        if (hi == 0 || lo == 0) {
            return NGX_DECLINED;
        }

        *dst++ = (u_char) ((hi - 1) << 4 | (lo - 1));
    }

    return NGX_OK;
}


/* NGX_DECLINED: not an id.  Only lower case is valid: an id has one spelling */

ngx_int_t
ngx_mcp_id_parse(ngx_mcp_id_t *id, ngx_str_t *text)
{
    u_char  *p, digits[2 * NGX_MCP_ID_LEN];

    p = text->data;

    if (text->len != NGX_MCP_ID_TEXT
        || p[8] != '-' || p[13] != '-' || p[18] != '-' || p[23] != '-')
    {
        return NGX_DECLINED;
    }

    ngx_memcpy(digits, p, 8);
    ngx_memcpy(digits + 8, p + 9, 4);
    ngx_memcpy(digits + 12, p + 14, 4);
    ngx_memcpy(digits + 16, p + 19, 4);
    ngx_memcpy(digits + 20, p + 24, 12);

    return ngx_mcp_unhex(id->data, digits, NGX_MCP_ID_LEN);
}


u_char *
ngx_mcp_id_text(u_char *p, const ngx_mcp_id_t *id)
{
    u_char  digits[2 * NGX_MCP_ID_LEN];

    (void) ngx_mcp_hex(digits, id->data, NGX_MCP_ID_LEN);

    p[8] = p[13] = p[18] = p[23] = '-';

    ngx_memcpy(p, digits, 8);
    ngx_memcpy(p + 9, digits + 8, 4);
    ngx_memcpy(p + 14, digits + 12, 4);
    ngx_memcpy(p + 19, digits + 16, 4);
    ngx_memcpy(p + 24, digits + 20, 12);

    return p + NGX_MCP_ID_TEXT;
}
