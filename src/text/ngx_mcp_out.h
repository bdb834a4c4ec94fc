
/* Text that grows while it is written. */


#ifndef _NGX_HTTP_MCP_TASKS_OUT_H_INCLUDED_
#define _NGX_HTTP_MCP_TASKS_OUT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef struct {
    ngx_pool_t   *pool;
    u_char       *start;
    u_char       *pos;
    u_char       *end;
    ngx_uint_t    failed;          /* unsigned  failed:1; */
} ngx_http_mcp_tasks_out_t;


#define ngx_http_mcp_tasks_out_lit(out, text)                                 \
    ngx_http_mcp_tasks_out_add(out, (u_char *) text, sizeof(text) - 1)
#define ngx_http_mcp_tasks_out_str(out, s)                                    \
    ngx_http_mcp_tasks_out_add(out, (s)->data, (s)->len)
#define ngx_http_mcp_tasks_out_text(out, text)                                \
    ngx_http_mcp_tasks_out_add(out, (u_char *) text, ngx_strlen(text))


/* NULL: no memory, now or before */
u_char *ngx_http_mcp_tasks_out_room(ngx_http_mcp_tasks_out_t *out, size_t len);


/* mostly of words that the compiler knows, and there mostly is room */

static ngx_inline void
ngx_http_mcp_tasks_out_add(ngx_http_mcp_tasks_out_t *out, u_char *p,
    size_t len)
{
    u_char  *dst;

    dst = out->pos;

    if ((size_t) (out->end - dst) < len) {
        dst = ngx_http_mcp_tasks_out_room(out, len);
    }

    if (dst && len) {
        out->pos = ngx_cpymem(dst, p, len);
    }
}


void ngx_http_mcp_tasks_out_init(ngx_http_mcp_tasks_out_t *out,
    ngx_pool_t *pool, size_t size);
void ngx_http_mcp_tasks_out_number(ngx_http_mcp_tasks_out_t *out, uint64_t n);
void ngx_http_mcp_tasks_out_flag(ngx_http_mcp_tasks_out_t *out, ngx_uint_t on);
void ngx_http_mcp_tasks_out_real(ngx_http_mcp_tasks_out_t *out, double n);
void ngx_http_mcp_tasks_out_time(ngx_http_mcp_tasks_out_t *out, uint64_t ms);
void ngx_http_mcp_tasks_out_seconds(ngx_http_mcp_tasks_out_t *out,
    uint64_t ms);
void ngx_http_mcp_tasks_out_string(ngx_http_mcp_tasks_out_t *out,
    ngx_str_t *s);
void ngx_http_mcp_tasks_out_bytes(ngx_http_mcp_tasks_out_t *out,
    ngx_str_t *s);

/* NGX_ERROR if it ran out of memory anywhere on the way */
ngx_int_t ngx_http_mcp_tasks_out_end(ngx_http_mcp_tasks_out_t *out,
    ngx_str_t *s);


#endif /* _NGX_HTTP_MCP_TASKS_OUT_H_INCLUDED_ */
