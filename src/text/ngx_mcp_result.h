
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * What the result of a call says of itself.
 */


#ifndef _NGX_MCP_RESULT_H_INCLUDED_
#define _NGX_MCP_RESULT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"
#include "ngx_mcp_task.h"


/* the first of each; its type is NGX_MCP_JSON_TWICE if there are more */

typedef struct {
    ngx_mcp_json_t  type;
    ngx_mcp_json_t  is_error;
    ngx_mcp_json_t  meta;
    uint8_t         flags;      /* of a task that completes with it */
} ngx_mcp_result_t;


void ngx_mcp_result_read(ngx_mcp_json_t *object, ngx_mcp_result_t *result);


#endif /* _NGX_MCP_RESULT_H_INCLUDED_ */
