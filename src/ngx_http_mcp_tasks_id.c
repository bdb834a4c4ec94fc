
#include <sys/random.h>

#include "ngx_http_mcp_tasks_id.h"


#define NGX_HTTP_MCP_TASKS_RANDOM_POOL  512


/* where the bytes of a UUID's text stand, two digits each */

static const u_char  ngx_http_mcp_tasks_id_pos[NGX_HTTP_MCP_TASKS_ID_LEN] = {
    0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34
};


/* what a lower case hexadecimal digit stands for, plus 1; 0: it is none */

static const u_char  ngx_http_mcp_tasks_hex[256] = {
    ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6,
    ['6'] = 7, ['7'] = 8, ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12,
    ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16
};


static ngx_int_t
ngx_http_mcp_tasks_getrandom(u_char *p, size_t len)
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
 * One system call serves many ids.  The pool belongs to one process: a child
 * must not hand out the bytes that its parent holds, hence the pid; used
 * bytes are wiped, so that no later leak of memory reveals an id.
 */

ngx_int_t
ngx_http_mcp_tasks_random(void *buf, size_t len)
{
    static u_char     pool[NGX_HTTP_MCP_TASKS_RANDOM_POOL];
    static size_t     used = NGX_HTTP_MCP_TASKS_RANDOM_POOL;
    static ngx_pid_t  pid;

    if (len > sizeof(pool)) {
        return ngx_http_mcp_tasks_getrandom(buf, len);
    }

    if (pid != ngx_pid || used + len > sizeof(pool)) {

        if (ngx_http_mcp_tasks_getrandom(pool, sizeof(pool)) != NGX_OK) {
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
ngx_http_mcp_tasks_id_new(ngx_http_mcp_tasks_id_t *id)
{
    if (ngx_http_mcp_tasks_random(id->data, NGX_HTTP_MCP_TASKS_ID_LEN)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* RFC 9562: version 4, variant 10 */

    id->data[6] = (id->data[6] & 0x0f) | 0x40;
    id->data[8] = (id->data[8] & 0x3f) | 0x80;

    return NGX_OK;
}


/* NGX_DECLINED: there is something else than lower case digits */

ngx_int_t
ngx_http_mcp_tasks_unhex(u_char *dst, u_char *src, size_t n)
{
    ngx_uint_t  hi, lo;

    for ( /* void */ ; n; n--) {
        hi = ngx_http_mcp_tasks_hex[*src++];
        lo = ngx_http_mcp_tasks_hex[*src++];

        if (hi == 0 || lo == 0) {
            return NGX_DECLINED;
        }

        *dst++ = (u_char) ((hi - 1) << 4 | (lo - 1));
    }

    return NGX_OK;
}


/* only the text that we give out: lower case, so that an id has one spelling */

ngx_int_t
ngx_http_mcp_tasks_id_parse(ngx_http_mcp_tasks_id_t *id, ngx_str_t *text)
{
    u_char  *p;

    p = text->data;

    return (text->len == NGX_HTTP_MCP_TASKS_ID_TEXT
            && p[8] == '-' && p[13] == '-' && p[18] == '-' && p[23] == '-'
            && ngx_http_mcp_tasks_unhex(id->data, p, 4) == NGX_OK
            && ngx_http_mcp_tasks_unhex(id->data + 4, p + 9, 2) == NGX_OK
            && ngx_http_mcp_tasks_unhex(id->data + 6, p + 14, 2) == NGX_OK
            && ngx_http_mcp_tasks_unhex(id->data + 8, p + 19, 2) == NGX_OK
            && ngx_http_mcp_tasks_unhex(id->data + 10, p + 24, 6) == NGX_OK)
           ? NGX_OK : NGX_DECLINED;
}


u_char *
ngx_http_mcp_tasks_id_text(u_char *p, const ngx_http_mcp_tasks_id_t *id)
{
    u_char             *q;
    ngx_uint_t          i;
    static const char   hex[] = "0123456789abcdef";

    p[8] = p[13] = p[18] = p[23] = '-';

    for (i = 0; i < NGX_HTTP_MCP_TASKS_ID_LEN; i++) {
        q = p + ngx_http_mcp_tasks_id_pos[i];
        q[0] = hex[id->data[i] >> 4];
        q[1] = hex[id->data[i] & 15];
    }

    return p + NGX_HTTP_MCP_TASKS_ID_TEXT;
}
