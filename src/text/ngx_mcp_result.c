
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_result.h"


/*
 * Called once for each result, when it is stored: a result may be sent many
 * times and must not be scanned each time.  ngx_mcp_json_members() is not used
 * since it stops at a duplicate member: the caller decides which duplicates
 * are errors.
 */

void
ngx_mcp_result_read(ngx_mcp_json_t *object, ngx_mcp_result_t *result)
{
    ngx_uint_t            i;
    ngx_mcp_json_t        key, value;
    ngx_mcp_json_iter_t   it;
    ngx_mcp_member_t      members[] = {
        { ngx_string("resultType"), &result->type },
        { ngx_string("isError"), &result->is_error },
        { ngx_string("_meta"), &result->meta }
    };

    ngx_memzero(result, sizeof(ngx_mcp_result_t));

    ngx_mcp_json_iter(&it, object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {

            if (!ngx_mcp_json_is(&key, &members[i].name)) {
                continue;
            }

            if (members[i].value->type == NGX_MCP_JSON_NONE) {
                *members[i].value = value;

            } else {
                members[i].value->type = NGX_MCP_JSON_DUPLICATE;
            }

            break;
        }
    }

    result->flags = NGX_MCP_RESULT_READ;

    if (result->type.type != NGX_MCP_JSON_NONE) {
        result->flags |= NGX_MCP_HAS_TYPE;
    }

    if (result->is_error.type == NGX_MCP_JSON_TRUE) {
        result->flags |= NGX_MCP_TOOL_ERROR;
    }

    if (result->meta.type != NGX_MCP_JSON_NONE) {
        result->flags |= NGX_MCP_HAS_META;
    }
}
