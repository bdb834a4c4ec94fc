
/* Which JSON values mean the same, however they are written. */


#ifndef _NGX_MCP_EQUAL_H_INCLUDED_
#define _NGX_MCP_EQUAL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/* an exponent that is not computed with; all others are nearer to zero */
#define NGX_MCP_DECIMAL_FAR  4000000000000000000LL


/* a number: its digits without zeros around them, times 10 to the exp */

typedef struct {
    u_char     *pos;
    u_char     *end;
    int64_t     exp;
    ngx_uint_t  minus;      /* unsigned  minus:1; */
} ngx_mcp_decimal_t;


/* for values that were parsed: two strings, two numbers */
ngx_uint_t ngx_mcp_json_same(ngx_mcp_json_t *a, ngx_mcp_json_t *b);
ngx_uint_t ngx_mcp_json_same_number(ngx_mcp_json_t *a, ngx_mcp_json_t *b);

/* NGX_DECLINED: an object, at whatever depth, has a key twice */
ngx_int_t ngx_mcp_json_unique(ngx_pool_t *pool, ngx_mcp_json_t *value);

/*
 * Zero has no digits.  NGX_DECLINED: the exponent has more than 15 digits, and
 * exp is NGX_MCP_DECIMAL_FAR, or minus that.
 */
ngx_int_t ngx_mcp_decimal(ngx_str_t *text, ngx_mcp_decimal_t *d);
u_char ngx_mcp_decimal_next(ngx_mcp_decimal_t *d);


#endif /* _NGX_MCP_EQUAL_H_INCLUDED_ */
