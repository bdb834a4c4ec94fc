
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Arguments that clients of the modern era repeat in headers: a tool's schema
 * marks them with "x-mcp-header", and body and header must say the same.
 */


#ifndef _NGX_MCP_PARAMS_H_INCLUDED_
#define _NGX_MCP_PARAMS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <jansson.h>

#include "ngx_mcp_json.h"


typedef struct {
    ngx_str_t    header;     /* in lower case */
    ngx_array_t  path;       /* of ngx_str_t: property names */
} ngx_mcp_param_t;


/* NULL, or what is wrong with the marks */
const char *ngx_mcp_params_read(ngx_pool_t *pool, json_t *schema,
    ngx_array_t **params);

/*
 * The value that the mark of a parameter means; NONE if there is none.
 * NGX_DECLINED: its key is duplicate, so nobody knows which one counts.
 */
ngx_int_t ngx_mcp_params_value(ngx_mcp_param_t *param,
    ngx_mcp_json_t *arguments, ngx_mcp_json_t *value);

/* whether a header, decoded, says the same as the value */
ngx_uint_t ngx_mcp_params_same(ngx_str_t *header, ngx_mcp_json_t *value);


#endif /* _NGX_MCP_PARAMS_H_INCLUDED_ */
