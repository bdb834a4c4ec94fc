
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


/* status messages of results with isError, then of errors */

static struct {
    const char  *text;
    const char  *message;
} messages[] = {
    { "{\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}", "\"no\"" },
    { "{\"content\":[ 1,[],{},{\"text\":\"x\"},{\"type\":\"text\"},"
      "{\"type\":\"text\",\"text\":\"\"},{\"type\":\"text\",\"text\":2},"
      "{ \"text\" : \"\\u0000\\ud800\" , \"type\" : \"t\\u0065xt\" } ]}",
      "\"\\u0000\\ud800\"" },
    { "{\"content\":[{\"type\":\"text\",\"type\":\"text\",\"text\":\"x\"}]}",
      "\"The tool returned an error\"" },
    { "{\"content\":[],\"content\":[]}", "\"The tool returned an error\"" },
    { "{\"content\":\"x\"}", "\"The tool returned an error\"" },
    { "{}", "\"The tool returned an error\"" },
    { NULL, NULL },
    { "{\"code\":1,\"message\":\"a\\\"b\"}", "\"a\\\"b\"" },
    { "{\"message\":\"\"}", "\"The task failed\"" },
    { "{\"message\":1}", "\"The task failed\"" },
    { "{\"message\":\"a\",\"message\":\"a\"}", "\"The task failed\"" },
    { "{}", "\"The task failed\"" },
    { NULL, NULL }
};


/* characters as JSON has them; the last one is an unpaired surrogate */

static const char  *characters[] = {
    "x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\\n", "\\\\",
    "\\\"", "\\u00e9", "\\ud83d\\ude00", "\\ud83d"
};


static void
test_messages(ngx_pool_t *pool)
{
    ngx_str_t        text, message;
    ngx_uint_t       i, error;
    const char      *err;
    ngx_mcp_json_t   object;

    for (error = 0, i = 0; error < 2; i++) {

        if (messages[i].text == NULL) {
            error++;
            continue;
        }

        text = str(messages[i].text);
        (void) ngx_mcp_json_parse(&text, &object, &err);

        if (error) {
            ngx_mcp_error_message(pool, &text, &message);

        } else {
            ngx_mcp_result_message(pool, &object, &message);
        }

        ok(message.len == strlen(messages[i].message)
           && memcmp(message.data, messages[i].message, message.len) == 0,
           "the message of %s", messages[i].text);
    }
}


/* whatever the length is, the message is JSON and ends with a character */

static void
test_cut(ngx_pool_t *pool)
{
    size_t           n, len, whole;
    u_char           buf[2048], *p;
    ngx_str_t        text, message;
    ngx_uint_t       i, wrong;
    const char      *err;
    ngx_mcp_json_t   value;

    for (i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
        len = strlen(characters[i]);
        wrong = 0;

        for (n = 950; n < 1100; n++) {
            p = ngx_cpymem(buf, "{\"message\":\"", 12);
            p = ngx_cpymem(p, "a", n % 7 > 0);

            while ((size_t) (p - buf) < n + 11) {
                p = ngx_cpymem(p, characters[i], len);
            }

            whole = p + 1 - (buf + 11);
            p = ngx_cpymem(p, "\"}", 2);

            text.data = buf;
            text.len = p - buf;

            ngx_mcp_error_message(pool, &text, &message);

            wrong += (message.len > NGX_MCP_MAX_MESSAGE
                      || ngx_mcp_json_parse(&message, &value, &err) != NGX_OK
                      || value.type != NGX_MCP_JSON_STRING);

            if (whole <= NGX_MCP_MAX_MESSAGE) {
                wrong += (message.len != whole);
                continue;
            }

            wrong += (message.len + len <= NGX_MCP_MAX_MESSAGE
                      || memcmp(message.data + message.len - 4, "...\"", 4) != 0
                      || (message.len - (n % 7 > 0) - 5) % len != 0);
        }

        is(wrong, 0, "messages of %s, cut", characters[i]);
    }
}


int
main(void)
{
    ngx_str_t          text;
    ngx_uint_t         i;
    ngx_pool_t        *pool;
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

    pool = ngx_create_pool(4096, ngx_cycle->log);
    test_messages(pool);
    test_cut(pool);
    ngx_destroy_pool(pool);

    return done_testing();
}
