
/* What is found in a result, and the flags of a task that has it. */


#include "libtest.h"
#include "ngx_mcp_result.h"


#define READ   NGX_MCP_RESULT_READ
#define TYPE   NGX_MCP_HAS_TYPE
#define META   NGX_MCP_HAS_META
#define ERROR  NGX_MCP_TOOL_ERROR


static struct {
    const char  *text;
    ngx_uint_t   flags;
    ngx_uint_t   type;
    ngx_uint_t   is_error;
    ngx_uint_t   meta;
} results[] = {
    { "{}", READ, 0, 0, 0 },
    { "{ }", READ, 0, 0, 0 },
    { "{\"content\":[],\"x\":{\"_meta\":{},\"resultType\":1}}", READ,
      0, 0, 0 },
    { "{\"resultType\":\"complete\"}", READ|TYPE, NGX_MCP_JSON_STRING, 0, 0 },
    { "{\"resultType\":null}", READ|TYPE, NGX_MCP_JSON_NULL, 0, 0 },
    { "{\"resulttype\":1,\"resultTypes\":1,\"meta\":1,\"is_error\":true}",
      READ, 0, 0, 0 },
    { "{\"result\\u0054ype\":1}", READ|TYPE, NGX_MCP_JSON_NUMBER, 0, 0 },
    { "{\"_meta\":{}}", READ|META, 0, 0, NGX_MCP_JSON_OBJECT },
    { "{\"\\u005fmeta\":[]}", READ|META, 0, 0, NGX_MCP_JSON_ARRAY },
    { "{\"isError\":true}", READ|ERROR, 0, NGX_MCP_JSON_TRUE, 0 },
    { "{\"isError\":false}", READ, 0, NGX_MCP_JSON_FALSE, 0 },
    { "{\"isError\":\"true\"}", READ, 0, NGX_MCP_JSON_STRING, 0 },
    { "{\"isError\":true,\"isError\":true}", READ, 0,
      NGX_MCP_JSON_DUPLICATE, 0 },
    { "{\"_meta\":{},\"_meta\":{},\"isError\":true,\"resultType\":1}",
      READ|TYPE|ERROR|META, NGX_MCP_JSON_NUMBER, NGX_MCP_JSON_TRUE,
      NGX_MCP_JSON_DUPLICATE },
    { "{\"resultType\":1,\"resultType\":2,\"resultType\":3,\"_meta\":0}",
      READ|TYPE|META, NGX_MCP_JSON_DUPLICATE, 0, NGX_MCP_JSON_NUMBER },
    { NULL, 0, 0, 0, 0 }
};


int
main(void)
{
    ngx_str_t          text;
    ngx_uint_t         i;
    const char        *err;
    ngx_mcp_json_t     object;
    ngx_mcp_result_t   result;

    for (i = 0; results[i].text; i++) {
        text = str(results[i].text);

        is(ngx_mcp_json_parse(&text, &object, &err), NGX_OK, "%s",
           results[i].text);

        ngx_memset(&result, 0xff, sizeof(result));
        ngx_mcp_result_read(&object, &result);

        is(result.flags, results[i].flags, "  its flags");
        is(result.type.type, results[i].type, "  resultType");
        is(result.is_error.type, results[i].is_error, "  isError");
        is(result.meta.type, results[i].meta, "  _meta");
    }

    return done_testing();
}
