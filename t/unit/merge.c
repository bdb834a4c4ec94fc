
/* Results of an upstream, with our capabilities and tools put in. */


#include "libtest.h"
#include "ngx_mcp_merge.h"

#include <stdio.h>


#define INITIALIZE  NGX_MCP_MERGE_INITIALIZE
#define DISCOVER    NGX_MCP_MERGE_DISCOVER
#define TOOLS       NGX_MCP_MERGE_TOOLS

/* what is said in an expectation for what is always the same */
#define VERSION   "\"protocolVersion\":\"2025-11-25\""
#define TASKS     "\"tasks\":{\"cancel\":{},"                                 \
                  "\"requests\":{\"tools\":{\"call\":{}}}}"
#define LISTS     "\"tasks\":{\"list\":{},\"cancel\":{},"                     \
                  "\"requests\":{\"tools\":{\"call\":{}}}}"
#define ONE       "\"io.modelcontextprotocol/tasks\":{}"
#define TWO       "\"io.github.nginx-mcp-tasks/extended\":{}"
#define OPTIONAL  "\"execution\":{\"taskSupport\":\"optional\"}"


/* names that came to own() and support(), each with a space after it */
static u_char  asked[512];
static size_t  asked_len;


/* ours begin with "our"; the others forbid, require or allow by their name */

static ngx_uint_t
own(void *data, ngx_str_t *name)
{
    size_t  n;

    if (data != &asked_len) {
        printf("Bail out! the data is not what was given\n");
        exit(2);
    }

    n = ngx_min(name->len, sizeof(asked) - 1 - asked_len);
    memcpy(asked + asked_len, name->data, n);
    asked_len += n;

    if (asked_len < sizeof(asked) - 1) {
        asked[asked_len++] = ' ';
    }

    return name->len >= 3 && memcmp(name->data, "our", 3) == 0;
}


static ngx_str_t *
support(void *data, ngx_str_t *name)
{
    static ngx_str_t  optional = ngx_string("optional");
    static ngx_str_t  required = ngx_string("required");
    static ngx_str_t  forbidden = ngx_string("forbidden");

    if (data != &asked_len) {
        printf("Bail out! the data is not what was given\n");
        exit(2);
    }

    switch (name->len ? name->data[0] : '\0') {
    case 'r':
        return &required;
    case 'f':
        return &forbidden;
    default:
        return &optional;
    }
}


static ngx_mcp_merge_by_t
by(ngx_uint_t kind)
{
    ngx_mcp_merge_by_t  m;

    ngx_memzero(&m, sizeof(m));
    m.kind = kind;
    m.own = own;
    m.support = support;
    m.data = &asked_len;

    return m;
}


static ngx_mcp_json_t
parse(ngx_str_t *s)
{
    const char      *err;
    ngx_mcp_json_t   value;

    ngx_memzero(&value, sizeof(value));

    if (ngx_mcp_json_parse(s, &value, &err) != NGX_OK) {
        diag("%s: %.*s", err, (int) s->len, (char *) s->data);
        value.type = NGX_MCP_JSON_NONE;
    }

    return value;
}


/* in memory of exactly that size, so that a sanitizer sees a read too far */

static ngx_int_t
merge(ngx_mcp_merge_by_t *m, const char *text, ngx_str_t *out)
{
    ngx_str_t       s;
    ngx_mcp_json_t  result;

    asked_len = 0;
    ngx_str_null(out);

    s = str(text);
    s.data = ngx_pnalloc(test_pool, s.len);
    memcpy(s.data, text, s.len);

    result = parse(&s);

    return ngx_mcp_merge(test_pool, &result, m, out);
}


/* want: NULL if it is declined */

static void
becomes(ngx_mcp_merge_by_t *m, const char *text, const char *want,
    const char *name)
{
    ngx_int_t  rc;
    ngx_str_t  out;

    rc = merge(m, text, &out);

    if (want == NULL) {
        is(rc, NGX_DECLINED, "declined: %s", name);

    } else if (!ok(rc == NGX_OK && out.len == strlen(want)
                   && memcmp(out.data, want, out.len) == 0
                   && parse(&out).text.len == out.len, "%s", name))
    {
        diag("rc %ld, got      %.*s", (long) rc, (int) out.len,
             (char *) out.data);
        diag("       expected %s", want);
    }

    ngx_reset_pool(test_pool);
}


static void
test_initialize(void)
{
    ngx_mcp_merge_by_t  m;

    m = by(INITIALIZE);

    becomes(&m, "{" VERSION ",\"capabilities\":{}}",
            "{" VERSION ",\"capabilities\":{" TASKS "}}", "none were there");
    becomes(&m, "{" VERSION ",\"capabilities\":{\"tools\":{}},\"a\":[1]}",
            "{" VERSION ",\"capabilities\":{\"tools\":{}," TASKS "},"
            "\"a\":[1]}",
            "others were there");
    becomes(&m, "{ \"capabilities\" : { \"tools\" : { } } ,\n " VERSION " }",
            "{ \"capabilities\" : { \"tools\" : { }," TASKS " } ,\n "
            VERSION " }",
            "space stays, in any order");
    becomes(&m, "{" VERSION ",\"capabilities\":{ }}",
            "{" VERSION ",\"capabilities\":{" TASKS " }}", "nothing but space");
    becomes(&m, "{" VERSION ",\"capabilities\":{\"tasks\" : {\"a\":[{}]},"
            " \"x\":{\"tasks\":1}}}",
            "{" VERSION ",\"capabilities\":{\"tasks\" : "
            "{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}},"
            " \"x\":{\"tasks\":1}}}",
            "the upstream's are replaced where they are");
    becomes(&m, "{" VERSION ",\"capabilities\":{\"t\\u0061sks\":null}}",
            "{" VERSION ",\"capabilities\":{\"t\\u0061sks\":"
            "{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}}}",
            "also with an escape in the name");
    becomes(&m, "{" VERSION "}",
            "{" VERSION ",\"capabilities\":{" TASKS "}}", "no capabilities");
    becomes(&m, "{" VERSION ",\"capabilities\":null,\"a\":1}",
            "{" VERSION ",\"capabilities\":{" TASKS "},\"a\":1}",
            "null is none");
    becomes(&m, "{\"protocolVersion\":\"2025-11\\u002d25\"}",
            "{\"protocolVersion\":\"2025-11\\u002d25\","
            "\"capabilities\":{" TASKS "}}",
            "a version with an escape");

    m.lists = 1;
    becomes(&m, "{" VERSION ",\"capabilities\":{\"tools\":{}}}",
            "{" VERSION ",\"capabilities\":{\"tools\":{}," LISTS "}}",
            "tasks/list is offered");

    m.offers = 1;
    becomes(&m, "{" VERSION ",\"capabilities\":{\"tools\":{\"a\":1}}}",
            "{" VERSION ",\"capabilities\":{\"tools\":{\"a\":1}," LISTS "}}",
            "tools stay as they are");
    becomes(&m, "{" VERSION ",\"capabilities\":{\"prompts\":{}}}",
            "{" VERSION ",\"capabilities\":{\"prompts\":{}," LISTS ","
            "\"tools\":{}}}",
            "tools are added");
    becomes(&m, "{" VERSION ",\"capabilities\":{}}",
            "{" VERSION ",\"capabilities\":{" LISTS ",\"tools\":{}}}",
            "tools and nothing else");
    becomes(&m, "{" VERSION ",\"capabilities\":{\"tools\":null}}",
            "{" VERSION ",\"capabilities\":{\"tools\":{}," LISTS "}}",
            "tools that were null");
    becomes(&m, "{" VERSION "}",
            "{" VERSION ",\"capabilities\":{" LISTS ",\"tools\":{}}}",
            "tools without capabilities");
}


static void
test_older(void)
{
    ngx_mcp_merge_by_t  m;

    m = by(INITIALIZE);
    m.lists = 1;

#define OLD  "\"protocolVersion\":\"2025-06-18\""

    becomes(&m, "{" OLD ",\"capabilities\":{}}",
            "{" OLD ",\"capabilities\":{}}", "nothing to remove");
    becomes(&m, "{" OLD ",\"capabilities\":{\"tasks\":{\"list\":{}}}}",
            "{" OLD ",\"capabilities\":{}}", "the only one is removed");
    becomes(&m, "{" OLD ",\"capabilities\":{ \"tasks\" : { } }}",
            "{" OLD ",\"capabilities\":{ }}", "with space");
    becomes(&m, "{" OLD ",\"capabilities\":{ \"tasks\": {} , \"a\": 1 }}",
            "{" OLD ",\"capabilities\":{ \"a\": 1 }}", "the first");
    becomes(&m, "{" OLD ",\"capabilities\":{ \"a\": 1, \"tasks\": {} }}",
            "{" OLD ",\"capabilities\":{ \"a\": 1 }}", "the last");
    becomes(&m, "{" OLD ",\"capabilities\":{\"a\":1 ,\n\"tasks\":{}, \"b\":2}}",
            "{" OLD ",\"capabilities\":{\"a\":1, \"b\":2}}", "in the midst");
    becomes(&m, "{\"tasks\":1," OLD ",\"capabilities\":{\"a\":{\"tasks\":1}}}",
            "{\"tasks\":1," OLD ",\"capabilities\":{\"a\":{\"tasks\":1}}}",
            "elsewhere it stays");
    becomes(&m, "{ " OLD " }", "{ " OLD " }", "no capabilities");
    becomes(&m, "{" OLD ",\"capabilities\":null}",
            "{" OLD ",\"capabilities\":null}", "nor if they are null");
    becomes(&m, "{\"protocolVersion\":\"2025-11-25 \",\"capabilities\":"
            "{\"tasks\":1}}",
            "{\"protocolVersion\":\"2025-11-25 \",\"capabilities\":{}}",
            "almost a version with tasks");

    m.offers = 1;
    becomes(&m, "{" OLD ",\"capabilities\":{\"tasks\":{}}}",
            "{" OLD ",\"capabilities\":{\"tools\":{}}}", "tools instead");
    becomes(&m, "{" OLD ",\"capabilities\":{ \"tasks\": {}, \"a\": 1 }}",
            "{" OLD ",\"capabilities\":{ \"a\": 1,\"tools\":{} }}",
            "tools beside another one");
    becomes(&m, "{" OLD "}", "{" OLD ",\"capabilities\":{\"tools\":{}}}",
            "tools alone");
}


static void
test_discover(void)
{
    ngx_mcp_merge_by_t  m;

    m = by(DISCOVER);

    becomes(&m, "{}",
            "{\"capabilities\":{\"extensions\":{" ONE "," TWO "}}}",
            "nothing was there");
    becomes(&m, "{\"capabilities\":{}}",
            "{\"capabilities\":{\"extensions\":{" ONE "," TWO "}}}",
            "no extensions");
    becomes(&m, "{\"capabilities\":{\"extensions\":{}}}",
            "{\"capabilities\":{\"extensions\":{" ONE "," TWO "}}}",
            "empty extensions");
    becomes(&m, "{\"capabilities\":{\"extensions\":null}}",
            "{\"capabilities\":{\"extensions\":{" ONE "," TWO "}}}",
            "null extensions");
    becomes(&m, "{ \"a\": 1.0, \"capabilities\": { \"extensions\": "
            "{ \"b/c\": {} }, \"tools\": {} }, \"d\": [ ] }",
            "{ \"a\": 1.0, \"capabilities\": { \"extensions\": "
            "{ \"b/c\": {}," ONE "," TWO " }, \"tools\": {} }, \"d\": [ ] }",
            "others stay");
    becomes(&m, "{\"capabilities\":{\"extensions\":{\"z\":1,"
            "\"io.github.nginx-mcp-tasks/extended\": {\"a\":[]} ,"
            "\"io.modelcontextprotocol\\/tasks\":{\"b\":{}},\"y\":2}}}",
            "{\"capabilities\":{\"extensions\":{\"z\":1,"
            "\"io.github.nginx-mcp-tasks/extended\": {} ,"
            "\"io.modelcontextprotocol\\/tasks\":{},\"y\":2}}}",
            "those of the upstream are replaced where they are");
    becomes(&m, "{\"capabilities\":{\"extensions\":{" TWO "}}}",
            "{\"capabilities\":{\"extensions\":{" TWO "," ONE "}}}",
            "one was there");
    becomes(&m, "{\"capabilities\":{\"tasks\":{\"list\":{}},\"a\":1}}",
            "{\"capabilities\":{\"a\":1,\"extensions\":{" ONE "," TWO "}}}",
            "tasks are removed");
    becomes(&m, "{\"capabilities\":{ \"tasks\":{} }}",
            "{\"capabilities\":{ \"extensions\":{" ONE "," TWO "} }}",
            "even if nothing is left");

    m.offers = 1;
    becomes(&m, "{\"capabilities\":{\"a\":1}}",
            "{\"capabilities\":{\"a\":1,\"extensions\":{" ONE "," TWO "},"
            "\"tools\":{}}}",
            "tools are added");
    becomes(&m, "{\"capabilities\":{\"tools\":{\"listChanged\":true}}}",
            "{\"capabilities\":{\"tools\":{\"listChanged\":true},"
            "\"extensions\":{" ONE "," TWO "}}}",
            "or stay as they are");
    becomes(&m, "{}",
            "{\"capabilities\":{\"extensions\":{" ONE "," TWO "},"
            "\"tools\":{}}}",
            "all is made");
}


static void
test_tools(void)
{
    ngx_mcp_merge_by_t  m;

    m = by(TOOLS);

    becomes(&m, "{\"tools\":[]}", "{\"tools\":[]}", "no tools");
    becomes(&m, "{ \"a\" : 1 , \"tools\" : [ { \"name\" : \"b\" } ] }",
            "{ \"a\" : 1 , \"tools\" : [ { \"name\" : \"b\" } ] }",
            "nothing to change");
    becomes(&m, "{\"tools\":[{\"name\":\"a\",\"execution\":"
            "{\"taskSupport\":\"required\"}},{\"execution\":3,"
            "\"name\":\"b\"}]}",
            "{\"tools\":[{\"name\":\"a\",\"execution\":"
            "{\"taskSupport\":\"required\"}},{\"execution\":3,"
            "\"name\":\"b\"}]}",
            "tools are not touched");

    becomes(&m, "{\"tools\":[{\"name\":\"our\"}]}", "{\"tools\":[]}",
            "the only one is ours");
    becomes(&m, "{\"tools\":[ {\"name\":\"our\"} ]}", "{\"tools\":[ ]}",
            "with space");
    becomes(&m, "{\"tools\":[ {\"name\":\"our\"} , {\"name\":\"b\"} ]}",
            "{\"tools\":[ {\"name\":\"b\"} ]}", "the first");
    becomes(&m, "{\"tools\":[ {\"name\":\"a\"} , {\"name\":\"our\"} ]}",
            "{\"tools\":[ {\"name\":\"a\"} ]}", "the last");
    becomes(&m, "{\"tools\":[{\"name\":\"a\"},\n {\"name\":\"our\"},\n\n "
            "{\"name\":\"b\"}],\"nextCursor\":\"x\"}",
            "{\"tools\":[{\"name\":\"a\"},\n\n {\"name\":\"b\"}],"
            "\"nextCursor\":\"x\"}",
            "in the midst");
    becomes(&m, "{\"tools\":[{\"name\":\"our\"},{\"name\":\"ours\"},"
            "{\"name\":\"a\"},{\"name\":\"our1\"},{\"name\":\"our2\"}]}",
            "{\"tools\":[{\"name\":\"a\"}]}", "several");

    m.tools = str("{\"name\":\"our\"},{\"name\":\"ours\"}");
    becomes(&m, "{\"tools\":[]}",
            "{\"tools\":[{\"name\":\"our\"},{\"name\":\"ours\"}]}",
            "ours instead of nothing");
    becomes(&m, "{\"tools\":[ ]}",
            "{\"tools\":[{\"name\":\"our\"},{\"name\":\"ours\"} ]}",
            "with space in it");
    becomes(&m, "{\"tools\":[ {\"name\":\"b\"} ],\"tool\":[]}",
            "{\"tools\":[ {\"name\":\"b\"},{\"name\":\"our\"},"
            "{\"name\":\"ours\"} ],\"tool\":[]}",
            "ours come after the upstream's");
    becomes(&m, "{\"tools\":[ {\"name\":\"our\"} ]}",
            "{\"tools\":[ {\"name\":\"our\"},{\"name\":\"ours\"} ]}",
            "and instead of them");
}


static void
test_private(void)
{
    ngx_mcp_merge_by_t  m;

    m = by(TOOLS);

    becomes(&m, "{\"tools\":[],\"cacheScope\":\"public\"}",
            "{\"tools\":[],\"cacheScope\":\"public\"}",
            "the scope is the upstream's");

    m.private = 1;

    becomes(&m, "{\"tools\":[]}", "{\"tools\":[]}", "no scope");
    becomes(&m, "{\"tools\":[] , \"cacheScope\" : \"public\" , \"a\":1}",
            "{\"tools\":[] , \"cacheScope\" : \"private\" , \"a\":1}",
            "a scope after the tools");
    becomes(&m, "{\"c\\u0061cheScope\":\"public\",\"tools\":"
            "[{\"name\":\"our\"},{\"name\":\"cacheScope\"}]}",
            "{\"c\\u0061cheScope\":\"private\",\"tools\":"
            "[{\"name\":\"cacheScope\"}]}",
            "and before them");
    becomes(&m, "{\"tools\":[],\"cacheScope\":null}",
            "{\"tools\":[],\"cacheScope\":\"private\"}", "whatever it is");
    becomes(&m, "{\"tools\":[],\"cacheScope\":1,\"cacheScope\":2}", NULL,
            "two scopes");
}


static void
test_names(void)
{
    ngx_mcp_merge_by_t  m;

    m = by(TOOLS);

    becomes(&m, "{\"tools\":[{\"n\\u0061me\":\"o\\u0075r\"},"
            "{\"name\":\"\\\"\\u00e9\\ud83d\\ude00\\/\"},"
            "{\"name\":\"\xc3\xa9\xe2\x82\xac\"},{\"name\":\"\"},"
            "{\"name\":\"\\u006fu\\u0072\"}]}",
            "{\"tools\":[{\"name\":\"\\\"\\u00e9\\ud83d\\ude00\\/\"},"
            "{\"name\":\"\xc3\xa9\xe2\x82\xac\"},{\"name\":\"\"}]}",
            "escapes stay");
    asked[asked_len] = '\0';
    ok(strcmp((char *) asked, "our \"\xc3\xa9\xf0\x9f\x98\x80/ "
                              "\xc3\xa9\xe2\x82\xac  our ") == 0,
       "but the names that are asked for have none");
}


static void
test_supports(void)
{
    ngx_mcp_merge_by_t  m;

    m = by(TOOLS);
    m.supports = 1;

    becomes(&m, "{\"tools\":[{\"name\":\"a\"}]}",
            "{\"tools\":[{\"name\":\"a\"," OPTIONAL "}]}", "optional");
    becomes(&m, "{\"tools\":[{\"name\":\"r\"},{\"name\":\"f\"}]}",
            "{\"tools\":[{\"name\":\"r\",\"execution\":"
            "{\"taskSupport\":\"required\"}},{\"name\":\"f\",\"execution\":"
            "{\"taskSupport\":\"forbidden\"}}]}",
            "required and forbidden");
    becomes(&m, "{\"tools\":[{\"name\":\"a\",\"execution\":{}}]}",
            "{\"tools\":[{\"name\":\"a\"," OPTIONAL "}]}", "empty execution");
    becomes(&m, "{\"tools\":[{\"name\":\"a\",\"execution\":null}]}",
            "{\"tools\":[{\"name\":\"a\"," OPTIONAL "}]}", "null execution");
    becomes(&m, "{\"tools\":[ { \"execution\" : { \"x\" : 1.50 } ,"
            " \"name\" : \"a\" } ] }",
            "{\"tools\":[ { \"execution\" : { \"x\" : 1.50,"
            "\"taskSupport\":\"optional\" } , \"name\" : \"a\" } ] }",
            "its other members stay");
    becomes(&m, "{\"tools\":[{\"execution\":{\"a\":1, \"taskSupport\" : "
            "\"required\" ,\"b\":2},\"name\":\"a\"}]}",
            "{\"tools\":[{\"execution\":{\"a\":1, \"taskSupport\" : "
            "\"required\" ,\"b\":2},\"name\":\"a\"}]}",
            "what the upstream requires stays");
    becomes(&m, "{\"tools\":[{\"execution\":{\"taskSupport\":\"forbidden\"},"
            "\"name\":\"a\"}]}",
            "{\"tools\":[{" OPTIONAL ",\"name\":\"a\"}]}",
            "anything else that it says is replaced");
    becomes(&m, "{\"tools\":[{\"execution\":{\"taskSupport\":[{}]},"
            "\"name\":\"a\"}]}",
            "{\"tools\":[{" OPTIONAL ",\"name\":\"a\"}]}", "whatever it is");
    becomes(&m, "{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"name\":[],"
            "\"execution\":{\"taskSupport\":1}},\"taskSupport\":2}]}",
            "{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"name\":[],"
            "\"execution\":{\"taskSupport\":1}},\"taskSupport\":2,"
            OPTIONAL "}]}",
            "elsewhere it stays");

    m.tools = str("{\"name\":\"our\",\"execution\":{}}");
    becomes(&m, "{\"tools\":[{\"name\":\"our\",\"execution\":3},"
            "{\"name\":\"a\"}]}",
            "{\"tools\":[{\"name\":\"a\"," OPTIONAL "},"
            "{\"name\":\"our\",\"execution\":{}}]}",
            "ours say it themselves");
}


static void
test_declined(void)
{
    ngx_mcp_merge_by_t  m;

    m = by(INITIALIZE);
    becomes(&m, "[]", NULL, "an array");
    becomes(&m, "null", NULL, "null");
    becomes(&m, "\"{}\"", NULL, "a string");
    becomes(&m, "{}", NULL, "no version");
    becomes(&m, "{\"protocolVersion\":1,\"capabilities\":{}}", NULL,
            "a version that is not a string");
    becomes(&m, "{" VERSION "," VERSION ",\"capabilities\":{}}", NULL,
            "two versions");
    becomes(&m, "{" VERSION ",\"capabilities\":[]}", NULL,
            "capabilities are not an object");
    becomes(&m, "{" VERSION ",\"capabilities\":{},\"capabilities\":{}}", NULL,
            "capabilities twice");
    becomes(&m, "{" VERSION ",\"capabilities\":{\"tasks\":{},"
            "\"task\\u0073\":{}}}", NULL, "tasks twice");
    m.offers = 1;
    becomes(&m, "{" VERSION ",\"capabilities\":{\"tools\":{},\"tools\":{}}}",
            NULL, "tools twice");

    m = by(DISCOVER);
    becomes(&m, "1", NULL, "a number");
    becomes(&m, "{\"capabilities\":true}", NULL,
            "capabilities are not an object");
    becomes(&m, "{\"capabilities\":{\"extensions\":[]}}", NULL,
            "extensions are not an object");
    becomes(&m, "{\"capabilities\":{\"extensions\":{},\"extensions\":{}}}",
            NULL, "extensions twice");
    becomes(&m, "{\"capabilities\":{\"extensions\":{" ONE "," ONE "}}}",
            NULL, "an extension twice");
    becomes(&m, "{\"capabilities\":{\"tasks\":1,\"tasks\":1}}",
            NULL, "tasks twice");

    m = by(TOOLS);
    becomes(&m, "[{\"name\":\"a\"}]", NULL, "an array");
    becomes(&m, "{}", NULL, "no tools");
    becomes(&m, "{\"tools\":{}}", NULL, "tools are not an array");
    becomes(&m, "{\"tools\":null}", NULL, "tools are null");
    becomes(&m, "{\"tools\":[],\"tools\":[]}", NULL, "tools twice");
    becomes(&m, "{\"tools\":[{\"name\":\"a\"},[]]}", NULL,
            "a tool is not an object");
    becomes(&m, "{\"tools\":[\"name\"]}", NULL, "a tool is a string");
    becomes(&m, "{\"tools\":[{\"title\":\"a\"}]}", NULL,
            "a tool without a name");
    becomes(&m, "{\"tools\":[{\"name\":1}]}", NULL,
            "a name that is not a string");
    becomes(&m, "{\"tools\":[{\"name\":\"a\",\"name\":\"a\"}]}", NULL,
            "a tool with two names");
    becomes(&m, "{\"tools\":[{\"name\":\"\\ud800\"}]}", NULL,
            "a name that is not text");
    m.supports = 1;
    becomes(&m, "{\"tools\":[{\"name\":\"a\",\"execution\":[]}]}", NULL,
            "execution is not an object");
    becomes(&m, "{\"tools\":[{\"name\":\"a\",\"execution\":{},"
            "\"execution\":{}}]}", NULL, "execution twice");
    becomes(&m, "{\"tools\":[{\"name\":\"a\",\"execution\":"
            "{\"taskSupport\":1,\"taskSupport\":2}}]}", NULL,
            "taskSupport twice");
}


static uint64_t  seed = 88172645463325252ULL;


static uint32_t
draw(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;

    return (uint32_t) ((seed >> 11) % n);
}


/* a text and what is to become of it, written side by side */

typedef struct {
    char   *text;
    size_t  text_len;
    char   *want;
    size_t  want_len;
} pair_t;


static void
both(pair_t *p, const char *s)
{
    p->text_len += sprintf(p->text + p->text_len, "%s", s);
    p->want_len += sprintf(p->want + p->want_len, "%s", s);
}


static const char *
space(void)
{
    static const char *spaces[] = { "", "", " ", "\n  ", "\t", "\r\n" };

    return spaces[draw(6)];
}


/* a tool in one of the forms there are, to which support is added */

static void
random_tool(pair_t *p, ngx_uint_t i, ngx_uint_t supports)
{
    char        buf[256];
    ngx_uint_t  form;

    form = draw(4);

    sprintf(buf, "{%s\"name\"%s:%s\"tool%lu\"%s,%s\"inputSchema\":{\"type\":"
            "\"object\",\"x\":[1,{\"name\":\"our\"},\"}]\"]}", space(),
            space(), space(), (unsigned long) i, space(), space());
    both(p, buf);

    switch (form) {

    case 0:
        break;

    case 1:
        both(p, " , \"execution\": {\"a\":1");
        break;

    case 2:
        both(p, ",\"execution\" :{\"b\": {} , \"taskSupport\": ");
        p->text_len += sprintf(p->text + p->text_len, "\"forbidden\"");
        p->want_len += sprintf(p->want + p->want_len, "\"%s\"",
                               supports ? "optional" : "forbidden");
        both(p, ",\"c\":\"\\\"\"}");
        break;

    default:
        both(p, ",\"execution\":{");
        break;
    }

    if (supports && form == 0) {
        p->want_len += sprintf(p->want + p->want_len, "," OPTIONAL);

    } else if (supports && form != 2) {
        p->want_len += sprintf(p->want + p->want_len,
                               "%s\"taskSupport\":\"optional\"",
                               form == 1 ? "," : "");
    }

    both(p, (form == 1 || form == 3) ? "} }" : " }");
}


/*
 * Of the space and the comma before a tool: those that are left out take
 * them along, and the first that stays has what was before the first one.
 */

static void
random_list(pair_t *p, ngx_mcp_merge_by_t *m, ngx_uint_t n)
{
    char        gap[16], lead[16];
    ngx_uint_t  i, kept;

    p->text_len = 0;
    p->want_len = 0;
    kept = 0;
    lead[0] = '\0';

    both(p, "{ \"_meta\":{\"tools\":[1]} ,\"tools\" : [");

    for (i = 0; i < n; i++) {

        sprintf(gap, "%s%s%s", i ? space() : "", i ? "," : "", space());
        p->text_len += sprintf(p->text + p->text_len, "%s", gap);

        if (i == 0) {
            strcpy(lead, gap);
        }

        if (draw(3) == 0) {
            p->text_len += sprintf(p->text + p->text_len,
                                   "{\"a\":[]%s,\"name\":\"our%lu\"}", space(),
                                   (unsigned long) i);
            continue;
        }

        p->want_len += sprintf(p->want + p->want_len, "%s",
                               kept++ ? gap : lead);
        random_tool(p, i, m->supports);
    }

    if (m->tools.len) {
        p->want_len += sprintf(p->want + p->want_len, "%s%.*s",
                               kept ? "," : lead, (int) m->tools.len,
                               (char *) m->tools.data);
    }

    both(p, space());
    both(p, "], \"nextCursor\":\"abc\" }");
}


static void
test_random(void)
{
    pair_t               p;
    ngx_int_t            rc;
    ngx_str_t            out;
    ngx_uint_t           i, bad;
    ngx_mcp_merge_by_t   m;

    m = by(TOOLS);
    p.text = malloc(1 << 20);
    p.want = malloc(1 << 20);

    if (p.text == NULL || p.want == NULL) {
        exit(2);
    }

    bad = 0;

    for (i = 0; i < 3000 && bad == 0; i++) {

        m.supports = draw(2);
        m.tools = str(draw(2) ? "{\"name\":\"our0\"}" : "");

        /* now and then hundreds of them */

        random_list(&p, &m, i % 100 ? draw(6) : 500 + draw(500));

        rc = merge(&m, p.text, &out);

        if (rc != NGX_OK || out.len != p.want_len
            || memcmp(out.data, p.want, out.len) != 0
            || parse(&out).text.len != out.len)
        {
            bad++;
            diag("round %lu, rc %ld", (unsigned long) i, (long) rc);
            diag("text     %.1000s", p.text);
            diag("got      %.*s", (int) ngx_min(out.len, 1000),
                 (char *) out.data);
            diag("expected %.1000s", p.want);
        }

        ngx_reset_pool(test_pool);
    }

    is(bad, 0, "%lu lists by chance", (unsigned long) i);

    free(p.text);
    free(p.want);
}


int
main(void)
{
    test_pool = ngx_create_pool(65536, ngx_cycle->log);

    test_initialize();
    test_older();
    test_discover();
    test_tools();
    test_private();
    test_names();
    test_supports();
    test_declined();
    test_random();

    ngx_destroy_pool(test_pool);

    return done_testing();
}
