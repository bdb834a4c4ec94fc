
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Arguments that modern clients repeat in headers.  A tool's schema marks them
 * with "x-mcp-header"; the argument and the header must have the same value.
 */


#ifndef _NGX_MCP_PARAMS_H_INCLUDED_
#define _NGX_MCP_PARAMS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <jansson.h>

#include "ngx_mcp_json.h"


typedef struct {
    ngx_str_t    header;     /* name of the header, in lower case */
    ngx_array_t  path;       /* of ngx_str_t: property names, outer first */
} ngx_mcp_param_t;


/*
 * Collects the marks of a schema into an array of ngx_mcp_param_t.  Returns
 * NULL or an error message.
 */
const char *ngx_mcp_params_read(ngx_pool_t *pool, json_t *schema,
    ngx_array_t **params);

/*
 * Finds the value of a marked argument; its type is NGX_MCP_JSON_NONE if it is
 * missing or null.  NGX_DECLINED: a key on the path is duplicate, so that the
 * value is ambiguous.
 */
ngx_int_t ngx_mcp_params_value(ngx_mcp_param_t *param,
    ngx_mcp_json_t *arguments, ngx_mcp_json_t *value);

/* tells if a header, already decoded, has the same value as an argument */
ngx_uint_t ngx_mcp_params_same(ngx_str_t *header, ngx_mcp_json_t *value);


#endif /* _NGX_MCP_PARAMS_H_INCLUDED_ */
