
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Arithmetic with JSON numbers as they are written: exact, of any size. */


#ifndef _NGX_MCP_NUMBER_H_INCLUDED_
#define _NGX_MCP_NUMBER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_equal.h"


/* beyond every number that ngx_mcp_json_integer() knows */
#define NGX_MCP_NUMBER_MAX  1000000000000000000LL
#define NGX_MCP_NUMBER_MIN  (-NGX_MCP_NUMBER_MAX)

/* significant digits that a divisor may have */
#define NGX_MCP_DIVISOR  18


/* digits times 10 to the exp; the digits are not divisible by 10 */

typedef struct {
    uint64_t  digits;
    int64_t   exp;
} ngx_mcp_divisor_t;


/* less than, equal to or greater than zero, as memcmp() */
ngx_int_t ngx_mcp_number_cmp(ngx_mcp_decimal_t *a, ngx_mcp_decimal_t *b);
ngx_uint_t ngx_mcp_number_is_integer(ngx_mcp_decimal_t *d);

/* NGX_DECLINED: it is not positive, or has too many digits */
ngx_int_t ngx_mcp_number_divisor(ngx_mcp_decimal_t *d,
    ngx_mcp_divisor_t *divisor);
ngx_uint_t ngx_mcp_number_divides(ngx_mcp_divisor_t *divisor,
    ngx_mcp_decimal_t *d);

/* NGX_DECLINED: it is not a non-negative integer; a large one is SIZE_MAX */
ngx_int_t ngx_mcp_number_size(ngx_mcp_decimal_t *d, size_t *size);


#endif /* _NGX_MCP_NUMBER_H_INCLUDED_ */
