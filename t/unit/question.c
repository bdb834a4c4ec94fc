
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Questions: what may be asked, URLs, and ids of the legacy era. */


#include "libtest.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_question.h"


#define FORM(schema)                                                          \
    "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\","       \
    "\"requestedSchema\":" schema "}}"

#define FIELD(field)                                                          \
    FORM("{\"type\":\"object\",\"properties\":{\"f\":" field "}}")

#define URL(rest)                                                             \
    "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\"," rest   \
    "}}"

#define SAMPLE(rest)                                                          \
    "{\"method\":\"sampling/createMessage\",\"params\":{" rest "}}"

#define MESSAGE(content)                                                      \
    SAMPLE("\"maxTokens\":1,\"messages\":[{\"role\":\"user\",\"content\":"    \
           content "}]")


/* "" if it may be asked, else where and why not */

static const char *
check(ngx_uint_t kind, const char *text)
{
    u_char              *p;
    ngx_mcp_json_t       json;
    ngx_mcp_mismatch_t   m;

    json = test_json(text);

    switch (ngx_mcp_question_check(test_pool, kind, &json, &m)) {

    case NGX_OK:
        return "";

    case NGX_DECLINED:
        p = ngx_pnalloc(test_pool, 1024);
        (void) ngx_snprintf(p, 1024, "%V: %s%s%V%Z", &m.pointer, m.keyword,
                            m.name.len ? " " : "", &m.name);
        return (char *) p;

    default:
        return "not checked";
    }
}


static void
same(const char *got, const char *want, const char *what)
{
    if (!ok(ngx_strcmp(got, want) == 0, "%s", what)) {
        diag("got %s", got);
    }
}


static void
test_valid(void)
{
    ngx_uint_t          i;
    static const char  *good[] = {
        FORM("{\"type\":\"object\",\"properties\":{}}"),
        FORM("{\"$schema\":\"s\",\"type\":\"object\",\"required\":[\"a\"],"
             "\"properties\":{}}"),
        FIELD("{\"type\":\"string\",\"minLength\":1,\"format\":\"email\"}"),
        FIELD("{\"type\":\"string\",\"enum\":[\"a\"],\"enumNames\":[\"A\"]}"),
        FIELD("{\"type\":\"string\",\"oneOf\":[{\"const\":\"a\","
              "\"title\":\"A\"}],\"default\":\"a\"}"),
        FIELD("{\"type\":\"number\",\"minimum\":0.5,\"default\":1e3}"),
        FIELD("{\"type\":\"integer\",\"maximum\":9,\"title\":\"t\"}"),
        FIELD("{\"type\":\"boolean\",\"default\":true}"),
        FIELD("{\"type\":\"array\",\"minItems\":1,\"items\":"
              "{\"type\":\"string\",\"enum\":[\"a\"]},\"default\":[\"a\"]}"),
        FIELD("{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"a\","
              "\"title\":\"A\"}]}}"),
        "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\","
        "\"_meta\":{\"a\":1},\"message\":\"\",\"requestedSchema\":"
        "{\"type\":\"object\",\"properties\":{}}}}",
        URL("\"message\":\"m\",\"url\":\"https://a.example/\""),
        URL("\"message\":\"m\",\"url\":\"https:\\/\\/a.example\","
            "\"elicitationId\":\"1\""),
        SAMPLE("\"messages\":[],\"maxTokens\":10"),
        SAMPLE("\"messages\":[],\"maxTokens\":1,\"temperature\":0.5,"
               "\"systemPrompt\":\"\",\"stopSequences\":[\"a\"],"
               "\"includeContext\":\"thisServer\",\"metadata\":{\"a\":null},"
               "\"modelPreferences\":{\"costPriority\":1,\"hints\":[{}]},"
               "\"toolChoice\":{\"mode\":\"auto\"},\"tools\":[{\"name\":\"t\","
               "\"inputSchema\":{\"type\":\"object\"}}]"),
        MESSAGE("{\"type\":\"text\",\"text\":\"t\",\"annotations\":"
                "{\"audience\":[\"user\"],\"priority\":0.5}}"),
        MESSAGE("{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"a/b\"}"),
        MESSAGE("[]"),
        MESSAGE("[{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"a/b\"},"
                "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"n\","
                "\"input\":{}}]"),
        MESSAGE("{\"type\":\"tool_result\",\"toolUseId\":\"1\",\"content\":["
                "{\"type\":\"resource_link\",\"name\":\"n\",\"uri\":\"u:\"},"
                "{\"type\":\"resource\",\"resource\":{\"uri\":\"u:\","
                "\"blob\":\"\"}},{\"type\":\"text\",\"text\":\"t\"}]}"),
        "{\"method\":\"roots/list\"}",
        "{\"method\":\"roots/list\",\"params\":{}}",
        "{\"params\":{\"_meta\":{}},\"method\":\"roots\\/list\"}",
        NULL
    };

    for (i = 0; good[i]; i++) {
        same(check(NGX_MCP_QUESTION_ONE, good[i]), "", good[i]);
    }
}


static void
test_invalid(void)
{
    ngx_uint_t    i;
    static struct {
        const char  *text;
        const char  *where;
    } bad[] = {
        { "{}", ": required method" },
        { "{\"method\":\"m\",\"params\":{}}", "/method: enum" },
        { "{\"method\":\"elicitation/create\"}", ": required params" },
        { "{\"method\":\"sampling/createMessage\"}", ": required params" },
        { "{\"method\":\"roots/list\",\"params\":[]}", "/params: type" },
        { "{\"method\":\"roots/list\",\"params\":{\"_meta\":1}}",
          "/params/_meta: type" },
        { "{\"method\":\"elicitation/create\",\"params\":{}}",
          "/params: required message" },
        { "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\"}}",
          "/params: required requestedSchema" },
        { "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"x\","
          "\"message\":\"m\"}}", "/params/mode: const" },
        { FORM("{\"type\":\"object\"}"),
          "/params/requestedSchema: required properties" },
        { FORM("{\"type\":\"array\",\"properties\":{}}"),
          "/params/requestedSchema/type: const" },
        { FIELD("{\"type\":\"object\",\"properties\":{}}"),
          "/params/requestedSchema/properties/f/type: enum" },
        { FIELD("{\"enum\":[\"a\"]}"),
          "/params/requestedSchema/properties/f: required type" },
        { FIELD("{\"type\":\"number\",\"minimum\":\"1\"}"),
          "/params/requestedSchema/properties/f/minimum: type" },
        { FIELD("{\"type\":\"string\",\"format\":\"uuid\"}"),
          "/params/requestedSchema/properties/f: anyOf" },
        { FIELD("{\"type\":\"string\",\"default\":1}"),
          "/params/requestedSchema/properties/f/default: type" },
        { FIELD("{\"type\":\"array\",\"items\":{\"type\":\"number\"}}"),
          "/params/requestedSchema/properties/f/items: anyOf" },
        { URL("\"url\":\"https://a\""), "/params: required message" },
        { URL("\"message\":\"m\""), "/params: required url" },
        { URL("\"message\":\"m\",\"url\":1"), "/params/url: type" },
        { URL("\"message\":\"m\",\"url\":\"javascript:alert(1)\""),
          "/params/url: format" },
        { URL("\"message\":\"m\",\"url\":\"https://a\\u0000\""),
          "/params/url: format" },
        { URL("\"message\":\"m\",\"url\":\"https://a\","
              "\"url\":\"https://b\""), "/params/url: properties" },
        { URL("\"message\":\"m\",\"url\":\"https://a\","
              "\"elicitationId\":1"), "/params/elicitationId: type" },
        { SAMPLE("\"messages\":[]"), "/params: required maxTokens" },
        { SAMPLE("\"messages\":[],\"maxTokens\":1.5"),
          "/params/maxTokens: type" },
        { MESSAGE("\"text\""), "/params/messages/0/content: type" },
        { MESSAGE("{\"type\":\"video\"}"),
          "/params/messages/0/content/type: enum" },
        { MESSAGE("[{\"type\":\"text\"}]"),
          "/params/messages/0/content/0: required text" },
        { NULL, NULL }
    };

    for (i = 0; bad[i].text; i++) {
        same(check(NGX_MCP_QUESTION_ONE, bad[i].text), bad[i].where,
             bad[i].text);
    }

    same(check(NGX_MCP_QUESTION_ALL, "{\"a\":{\"method\":\"roots/list\"},"
               "\"b~/\":" URL("\"message\":\"m\",\"url\":\"x\"") "}"),
         "/b~0~1/params/url: format", "the key is in the pointer");
    same(check(NGX_MCP_QUESTION_ALL, "{\"a\":{\"method\":\"x\"}}"),
         "/a/method: enum", "of what does not fit, too");
    same(check(NGX_MCP_QUESTION_ALL, "{\"a\":{\"method\":\"roots/list\"}}"),
         "", "all fit");
}


static void
test_urls(void)
{
    ngx_str_t           url;
    ngx_uint_t          i;
    static const char  *good[] = {
        "https://a", "HTTPS://A.Example", "https://a/", "https://a?b",
        "https://a#b", "https://a:443/b?c=d%20e&f=@g#h", "https://1.2.3.4",
        "https://[2001:db8::1]:8443/", "https://a_b-c.example/~x(y)*!$',;",
        "http://localhost", "http://LOCALHOST:3000/a", "http://127.0.0.1/",
        "http://127.255.255.255:1", "http://[::1]:65535/x", NULL
    };
    static const char  *bad[] = {
        "", "a", "/a", "//a", "https:", "https:/a", "https://", "https:///a",
        "https://?", "https://:443", "ftp://a", "javascript:alert(1)",
        "data:text/html,x", "file:///etc/passwd", " https://a", "https://a ",
        "https://a/ b", "https://a/\n", "https://a\t", "https://a/\x7f",
        "https://u@a", "https://u:p@a", "https://@a", "https://a:b@c",
        "https://a\\b", "https://a/\\b", "https://a\\@b", "https://a/\"",
        "https://a/<b>", "https://a/%", "https://a/%4", "https://a/%zz",
        "https://a:0", "https://a:65536", "https://a:", "https://a:1x",
        "https://a:123456", "https://%61", "https://\xc3\xa4.example",
        "https://a/\xc3\xa4", "https://.a", "https://[]", "https://[::1",
        "https://[x]", "https://[::1]x", "https://a,b", "https://a^",
        "http://a", "http://localhost.example", "http://127.0.0.1.example",
        "http://127.0.0", "http://127.0.0.256", "http://127.0.0.0.1",
        "http://128.0.0.1", "http://127.a.b.c", "http://[::2]",
        "http://[::1].a", "http://user@localhost", NULL
    };

    for (i = 0; good[i]; i++) {
        url = str(good[i]);
        ok(ngx_mcp_question_url(&url), "%s", good[i]);
    }

    for (i = 0; bad[i]; i++) {
        url = str(bad[i]);
        ok(!ngx_mcp_question_url(&url), "not %s", bad[i]);
    }
}


static void
test_modern(void)
{
    ngx_str_t      requests, text;
    ngx_uint_t     i;
    ngx_mcp_out_t  out;
    static struct {
        const char  *asked;
        const char  *modern;
    } all[] = {
        { "{ \"a\" : {\"method\": \"roots/list\"} }",
          "{\"a\":{\"method\": \"roots/list\"}}" },
        { "{\"a\":" URL("\"message\":\"m\", \"url\":\"u\"") "}", NULL },
        { "{\"a\":{\"method\":\"elicitation/create\",\"params\":"
          "{\"elicitationId\":\"1\"}}}", NULL },
        { "{\"a\": " URL("\"elicitationId\":\"1\", \"url\" : \"u\"") " ,\"b\":"
          "{\"method\":\"roots/list\"},\"c\":" URL("\"url\":\"u\","
          "\"elicitation\\u0049d\":\"2\"") "}",
          "{\"a\":" URL("\"url\":\"u\"") ",\"b\":"
          "{\"method\":\"roots/list\"},\"c\":" URL("\"url\":\"u\"") "}" }
    };

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        requests = str(all[i].asked);

        ngx_mcp_out_init(&out, test_pool, 16);
        ngx_mcp_question_modern(&out, &requests, NGX_MCP_CAN_ALL);

        if (all[i].modern) {
            requests = str(all[i].modern);
        }

        ok(ngx_mcp_out_end(&out, &text) == NGX_OK
           && text.len == requests.len
           && ngx_memcmp(text.data, requests.data, text.len) == 0,
           "%s", all[i].asked);
    }

    requests = str("{\"a\":{\"method\":\"roots/list\"},\"b\":"
                   URL("\"url\":\"u\"") ",\"c\":" URL("\"url\":\"v\"") "}");

    ngx_mcp_out_init(&out, test_pool, 16);
    ngx_mcp_question_modern(&out, &requests, NGX_MCP_CAN_URL);
    requests = str("{\"b\":" URL("\"url\":\"u\"") ",\"c\":"
                   URL("\"url\":\"v\"") "}");
    ok(ngx_mcp_out_end(&out, &text) == NGX_OK && text.len == requests.len
       && ngx_memcmp(text.data, requests.data, text.len) == 0,
       "only what the client can answer");
}


/* the error of the legacy era, and the same as questions */

#define ERROR(links)                                                          \
    "{\"code\":-32042,\"message\":\"m\",\"data\":{\"elicitations\":" links  \
    "}}"

#define LINK(url, rest)                                                       \
    "{\"mode\":\"url\",\"message\":\"m\",\"url\":\"" url "\"" rest "}"


static void
test_error(void)
{
    ngx_str_t       text;
    ngx_uint_t      i;
    ngx_mcp_out_t   out;
    ngx_mcp_json_t  error;
    static struct {
        const char  *text;
        const char  *where;
    } all[] = {
        { ERROR("[" LINK("https://a", ",\"elicitationId\":\"1\"") "]"), "" },
        { "{\"code\":-32042,\"message\":\"m\"}", ": required data" },
        { "{\"code\":-32042,\"data\":[]}", "/data: type" },
        { "{\"code\":-32042,\"data\":{}}", "/data: required elicitations" },
        { ERROR("{}"), "/data/elicitations: type" },
        { ERROR("[]"), "/data/elicitations: minItems" },
        { ERROR("[1]"), "/data/elicitations/0: type" },
        { ERROR("[" LINK("https://a", "") "]"),
          "/data/elicitations/0: required elicitationId" },
        { ERROR("[{\"message\":\"m\",\"url\":\"https://a\","
                "\"elicitationId\":\"1\"}]"),
          "/data/elicitations/0: required mode" },
        { ERROR("[" LINK("https://a", ",\"elicitationId\":\"1\"") ","
                LINK("http://a", ",\"elicitationId\":\"2\"") "]"),
          "/data/elicitations/1/url: format" },
        { ERROR("[" LINK("https://a", ",\"elicitationId\":\"1\"") "],"
                "\"elicitations\":[]"),
          "/data/elicitations: properties" },
        { NULL, NULL }
    };

    for (i = 0; all[i].text; i++) {
        same(check(NGX_MCP_QUESTION_ERROR, all[i].text), all[i].where,
             all[i].text);
    }

    error = test_json(ERROR("[" LINK("https://a", ",\"elicitationId\":\"1\"")
                            ", " LINK("https://b", ",\"elicitationId\":2")
                            "]"));

    ok(ngx_mcp_question_is_error(&error), "an error that requires URLs");

    ngx_mcp_out_init(&out, test_pool, 16);
    ngx_mcp_question_of_error(&out, &error, 7);
    ngx_mcp_out_add(&out, (u_char *) "", 1);
    ok(ngx_mcp_out_end(&out, &text) == NGX_OK, "as questions");
    same((char *) text.data,
         "{\"url-7-1\":{\"method\":\"elicitation/create\",\"params\":"
         LINK("https://a", ",\"elicitationId\":\"1\"") "},"
         "\"url-7-2\":{\"method\":\"elicitation/create\",\"params\":"
         LINK("https://b", ",\"elicitationId\":2") "}}", "with keys");

    error = test_json("{\"code\":-32043,\"message\":\"m\"}");
    ok(!ngx_mcp_question_is_error(&error), "another error");
    error = test_json("{\"code\":\"-32042\"}");
    ok(!ngx_mcp_question_is_error(&error), "not a number");
}


int
main(void)
{
    test_pool = ngx_create_pool(65536, ngx_cycle->log);

    ok(ngx_mcp_question_init(test_pool) == NGX_OK, "the schemas compile");

    test_valid();
    test_invalid();
    test_urls();
    test_modern();
    test_error();

    ngx_destroy_pool(test_pool);

    return done_testing();
}
