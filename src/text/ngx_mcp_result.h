
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Reads the members of a call's result that this module depends on, and why a
 * call has failed.
 */


#ifndef _NGX_MCP_RESULT_H_INCLUDED_
#define _NGX_MCP_RESULT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"
#include "ngx_mcp_payload.h"


/* type NGX_MCP_JSON_DUPLICATE: a duplicate member, text is the first one */

typedef struct {
    ngx_mcp_json_t  type;       /* "resultType" */
    ngx_mcp_json_t  is_error;   /* "isError" */
    ngx_mcp_json_t  meta;       /* "_meta" */
    uint8_t         flags;      /* result flags of the task */
} ngx_mcp_result_t;


/* the object must come from the parser */
void ngx_mcp_result_read(ngx_mcp_json_t *object, ngx_mcp_result_t *result);

/*
 * The status message of a failed call, from its result or its error: a JSON
 * string of at most NGX_MCP_MAX_MESSAGE bytes.  It may be a part of the text.
 */
void ngx_mcp_result_message(ngx_pool_t *pool, ngx_mcp_json_t *object,
    ngx_str_t *message);
void ngx_mcp_error_message(ngx_pool_t *pool, ngx_str_t *error,
    ngx_str_t *message);


#endif /* _NGX_MCP_RESULT_H_INCLUDED_ */
