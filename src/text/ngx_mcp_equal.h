
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Compares JSON values by what they mean, not by how they are written. */


#ifndef _NGX_MCP_EQUAL_H_INCLUDED_
#define _NGX_MCP_EQUAL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/* an exponent that is not computed with; all others are nearer to zero */
#define NGX_MCP_DECIMAL_FAR  4000000000000000000LL


/*
 * A number: the digits from pos to end, times 10 to the power of exp.  Leading
 * and trailing zeros are removed; a decimal point between the digits is not.
 */

typedef struct {
    u_char     *pos;
    u_char     *end;
    int64_t     exp;
    ngx_uint_t  minus;      /* unsigned  minus:1; */
} ngx_mcp_decimal_t;


/*
 * Both values must come from the parser.  The first function compares two
 * strings, whatever their escapes; the second one compares two numbers: 42,
 * 42.0 and 4.2e1 are equal.
 */
ngx_uint_t ngx_mcp_json_same(ngx_mcp_json_t *a, ngx_mcp_json_t *b);
ngx_uint_t ngx_mcp_json_same_number(ngx_mcp_json_t *a, ngx_mcp_json_t *b);

/*
 * NGX_OK; NGX_DECLINED: an object, at any depth, has a duplicate key;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_json_unique(ngx_pool_t *pool, ngx_mcp_json_t *value);

/*
 * Zero has no digits.  NGX_DECLINED: the exponent has more than 15 digits, and
 * exp is NGX_MCP_DECIMAL_FAR, or minus that.
 */
ngx_int_t ngx_mcp_decimal(ngx_str_t *text, ngx_mcp_decimal_t *d);
u_char ngx_mcp_decimal_next(ngx_mcp_decimal_t *d);


#endif /* _NGX_MCP_EQUAL_H_INCLUDED_ */
