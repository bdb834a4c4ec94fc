
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * An output buffer that grows.  A failed allocation is remembered, and what is
 * written after it is ignored: only ngx_mcp_out_end() has to be checked.
 */


#ifndef _NGX_MCP_OUT_H_INCLUDED_
#define _NGX_MCP_OUT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef struct {
    ngx_pool_t  *pool;
    u_char      *start;
    u_char      *pos;             /* end of the text */
    u_char      *end;             /* end of the buffer */
    ngx_uint_t   failed;          /* unsigned  failed:1; */
} ngx_mcp_out_t;


#define ngx_mcp_out_lit(out, text)                                            \
    ngx_mcp_out_add(out, (u_char *) text, sizeof(text) - 1)
#define ngx_mcp_out_str(out, s)  ngx_mcp_out_add(out, (s)->data, (s)->len)
#define ngx_mcp_out_text(out, text)                                           \
    ngx_mcp_out_add(out, (u_char *) text, ngx_strlen(text))


/* returns pos with room for len bytes; NULL: no memory, now or before */
u_char *ngx_mcp_out_reserve(ngx_mcp_out_t *out, size_t len);


/* inline, since most calls have a constant length and enough room */

static ngx_inline void
ngx_mcp_out_add(ngx_mcp_out_t *out, u_char *p, size_t len)
{
    u_char  *dst;

    dst = out->pos;

    if ((size_t) (out->end - dst) < len) {
        dst = ngx_mcp_out_reserve(out, len);
    }

    if (dst && len) {
        out->pos = ngx_cpymem(dst, p, len);
    }
}


void ngx_mcp_out_init(ngx_mcp_out_t *out, ngx_pool_t *pool, size_t size);
void ngx_mcp_out_number(ngx_mcp_out_t *out, uint64_t n);
void ngx_mcp_out_flag(ngx_mcp_out_t *out, ngx_uint_t on);
void ngx_mcp_out_real(ngx_mcp_out_t *out, double n);
void ngx_mcp_out_time(ngx_mcp_out_t *out, uint64_t ms);
void ngx_mcp_out_seconds(ngx_mcp_out_t *out, uint64_t ms);
void ngx_mcp_out_string(ngx_mcp_out_t *out, ngx_str_t *s);
void ngx_mcp_out_bytes(ngx_mcp_out_t *out, ngx_str_t *s);

/* NGX_ERROR: an allocation has failed since ngx_mcp_out_init() */
ngx_int_t ngx_mcp_out_end(ngx_mcp_out_t *out, ngx_str_t *s);


#endif /* _NGX_MCP_OUT_H_INCLUDED_ */
