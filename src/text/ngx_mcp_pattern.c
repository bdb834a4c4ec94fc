
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_pattern.h"
#include "ngx_mcp_out.h"


#define NGX_MCP_PATTERN_START  "(*LIMIT_MATCH=" NGX_MCP_PATTERN_LIMIT ")(*UTF)"

/* white space and ends of lines that PCRE does not count as such */
#define NGX_MCP_PATTERN_SPACE                                                 \
    "\\s\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"       \
    "\\x{205f}\\x{3000}\\x{feff}"
#define NGX_MCP_PATTERN_LINES  "\\n\\r\\x{2028}\\x{2029}"


static const char *ngx_mcp_pattern_group(u_char *p, u_char *end);
static u_char *ngx_mcp_pattern_escape(ngx_mcp_out_t *out, u_char *p,
    u_char *end, ngx_uint_t class, const char **err);
static u_char *ngx_mcp_pattern_code(ngx_mcp_out_t *out, u_char *p,
    u_char *end, const char **err);


const char *
ngx_mcp_pattern_pcre(ngx_pool_t *pool, ngx_str_t *pattern, ngx_str_t *pcre)
{
    u_char         *p, *end;
    ngx_uint_t      class;
    const char     *err;
    ngx_mcp_out_t   out;

    p = pattern->data;
    end = p + pattern->len;
    class = 0;
    err = NULL;

    ngx_mcp_out_init(&out, pool, pattern->len + 64);
    ngx_mcp_out_lit(&out, NGX_MCP_PATTERN_START);

    while (p < end) {

        if (*p == '\\') {
            p = ngx_mcp_pattern_escape(&out, p + 1, end, class, &err);

            if (p == NULL) {
                return err;
            }

            continue;
        }

        if (class) {
            if (*p == '[') {
                /* PCRE would look for a POSIX class */
                ngx_mcp_out_lit(&out, "\\");
            }

            class = (*p != ']');

        } else if (*p == '[') {

            if (end - p >= 2 && p[1] == ']') {
                ngx_mcp_out_lit(&out, "(?!)");
                p += 2;
                continue;
            }

            if (end - p >= 3 && p[1] == '^' && p[2] == ']') {
                ngx_mcp_out_lit(&out, "[\\s\\S]");
                p += 3;
                continue;
            }

            class = 1;

        } else if (*p == '(') {
            err = ngx_mcp_pattern_group(p, end);

            if (err) {
                return err;
            }

        } else if (*p == '$') {
            ngx_mcp_out_lit(&out, "\\z");
            p++;
            continue;

        } else if (*p == '.') {
            ngx_mcp_out_lit(&out, "[^" NGX_MCP_PATTERN_LINES "]");
            p++;
            continue;
        }

        if (*p == '\0') {
            ngx_mcp_out_lit(&out, "\\x00");
            p++;
            continue;
        }

        ngx_mcp_out_add(&out, p++, 1);
    }

    /* older libraries take a string that ends with a NUL */

    ngx_mcp_out_add(&out, (u_char *) "", 1);

    if (ngx_mcp_out_end(&out, pcre) != NGX_OK) {
        return "no memory";
    }

    pcre->len--;

    return NULL;
}


/* PCRE has more kinds of groups, some of which change the limits */

static const char *
ngx_mcp_pattern_group(u_char *p, u_char *end)
{
    size_t  left;

    left = end - p;

    if (left < 2 || (p[1] != '?' && p[1] != '*')) {
        return NULL;
    }

    if (p[1] == '?' && left > 2) {

        switch (p[2]) {

        case ':': case '=': case '!':
            return NULL;

        case '<':
            if (left > 3
                && (p[3] == '=' || p[3] == '!' || p[3] == '_' || p[3] == '$'
                    || ((p[3] | 0x20) >= 'a' && (p[3] | 0x20) <= 'z')))
            {
                return NULL;
            }
        }
    }

    return "a group that ECMA-262 does not have";
}


/* after the backslash; NULL: err is set */

static u_char *
ngx_mcp_pattern_escape(ngx_mcp_out_t *out, u_char *p, u_char *end,
    ngx_uint_t class, const char **err)
{
    u_char  c;

    if (p == end) {
        *err = "a backslash at the end";
        return NULL;
    }

    c = *p;

    switch (c) {

    case 'u':
        return ngx_mcp_pattern_code(out, p + 1, end, err);

    case 'v':
        ngx_mcp_out_lit(out, "\\x0b");
        return p + 1;

    case '0':
        ngx_mcp_out_lit(out, "\\x00");
        return p + 1;

    case 's':
        if (class) {
            ngx_mcp_out_lit(out, NGX_MCP_PATTERN_SPACE);

        } else {
            ngx_mcp_out_lit(out, "[" NGX_MCP_PATTERN_SPACE "]");
        }

        return p + 1;

    case 'S':
        if (!class) {
            ngx_mcp_out_lit(out, "[^" NGX_MCP_PATTERN_SPACE "]");
            return p + 1;
        }

        break;

    case 'b': case 'B': case 'c': case 'd': case 'D': case 'f': case 'k':
    case 'n': case 'p': case 'P': case 'r': case 't': case 'w': case 'W':
    case 'x':
        break;

    default:
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') {
            *err = "an escape that ECMA-262 does not have";
            return NULL;
        }
    }

    ngx_mcp_out_lit(out, "\\");
    ngx_mcp_out_add(out, p, 1);

    return p + 1;
}


/* \uXXXX, a pair of them, or \u{XXXX}: after the u */

static u_char *
ngx_mcp_pattern_code(ngx_mcp_out_t *out, u_char *p, u_char *end,
    const char **err)
{
    u_char     *brace, buf[sizeof("\\x{10ffff}")];
    ngx_int_t   code, low;

    *err = "an invalid \\u escape";

    if (p < end && *p == '{') {
        brace = ngx_strlchr(p, end, '}');
        code = brace ? ngx_hextoi(p + 1, brace - p - 1) : NGX_ERROR;
        p = brace ? brace + 1 : p;

    } else {
        code = (end - p >= 4) ? ngx_hextoi(p, 4) : NGX_ERROR;
        p += 4;

        if (code >= 0xd800 && code <= 0xdbff && end - p >= 6
            && p[0] == '\\' && p[1] == 'u')
        {
            low = ngx_hextoi(p + 2, 4);

            if (low >= 0xdc00 && low <= 0xdfff) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                p += 6;
            }
        }
    }

    if (code < 0 || code > 0x10ffff) {
        return NULL;
    }

    ngx_mcp_out_add(out, buf, ngx_sprintf(buf, "\\x{%xi}", code) - buf);

    return p;
}
