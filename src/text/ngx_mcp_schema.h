
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * JSON Schema 2020-12: schemas are compiled when nginx is configured, values
 * are validated as text, without a tree, in bounded time.
 */


#ifndef _NGX_MCP_SCHEMA_H_INCLUDED_
#define _NGX_MCP_SCHEMA_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/*
 * The time that a validation may take: so many steps, and more for each byte
 * of the value.  A step is one schema applied to one value, or 16 bytes that
 * are compared or skipped.
 */
#define NGX_MCP_SCHEMA_STEPS  200000
#define NGX_MCP_SCHEMA_BYTE   4

/* schemas that are applied within each other */
#define NGX_MCP_SCHEMA_DEPTH  256

/* subschemas of one schema */
#define NGX_MCP_SCHEMA_NODES  10000

/* bytes of a pointer that is reported; the rest is cut off */
#define NGX_MCP_SCHEMA_POINTER  256


typedef struct ngx_mcp_schema_s  ngx_mcp_schema_t;


/* regular expressions, which need a library */

typedef struct {
    /* NGX_OK, or NGX_ERROR: err is set, or there is no memory */
    ngx_int_t   (*compile)(ngx_pool_t *pool, ngx_str_t *pattern,
                           void **regex, ngx_str_t *err);

    /* NGX_OK, NGX_DECLINED: no match, NGX_ABORT: it takes too long */
    ngx_int_t   (*match)(void *regex, ngx_str_t *s);
} ngx_mcp_schema_regex_t;


/* where a value does not match, and why */

typedef struct {
    ngx_str_t    pointer;   /* JSON pointer into the value; UTF-8, not JSON */
    const char  *keyword;
    ngx_str_t    name;      /* of a missing property; UTF-8, not JSON */
} ngx_mcp_mismatch_t;


/*
 * The text must live as long as the schema.  Without regex, patterns are
 * errors.  NGX_DECLINED: err says what is wrong and where; NGX_ERROR: there
 * is no memory.
 */
ngx_int_t ngx_mcp_schema_compile(ngx_pool_t *pool, ngx_mcp_json_t *text,
    ngx_mcp_schema_regex_t *regex, ngx_mcp_schema_t **schema, ngx_str_t *err);

/*
 * For a value that was parsed.  NGX_DECLINED: the first mismatch is set;
 * NGX_ABORT: too many steps; NGX_ERROR: there is no memory.
 */
ngx_int_t ngx_mcp_schema_validate(ngx_mcp_schema_t *schema, ngx_pool_t *pool,
    ngx_mcp_json_t *value, ngx_mcp_mismatch_t *mismatch);


#endif /* _NGX_MCP_SCHEMA_H_INCLUDED_ */
