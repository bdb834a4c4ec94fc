
/* Which JSON values mean the same, and which keys are duplicate. */


#include "libtest.h"
#include "ngx_mcp_equal.h"
#include "ngx_mcp_input.h"


static void
test_strings(void)
{
    u_char           one[1024], two[2048], *p;
    ngx_str_t        s;
    ngx_uint_t       i;
    const char      *err;
    ngx_mcp_json_t   a, b;
    static struct {
        const char  *a;
        const char  *b;
        ngx_uint_t   same;
    } cases[] = {
        { "\"\"", "\"\"", 1 },
        { "\"\"", "\"a\"", 0 },
        { "\"a\"", "\"ab\"", 0 },
        { "\"a\"", "\"\\u0061\"", 1 },
        { "\"a\\u0062c\"", "\"\\u0061bc\"", 1 },
        { "\"\\u00e9\"", "\"\xc3\xa9\"", 1 },
        { "\"\\u00E9\"", "\"\\u00e9\"", 1 },
        { "\"\xc3\xa9\"", "\"\xc3\xa8\"", 0 },
        { "\"\\u20ac\"", "\"\xe2\x82\xac\"", 1 },
        { "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"", 1 },
        { "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x81\"", 0 },
        { "\"\\ud83d\"", "\"\\uD83D\"", 1 },
        { "\"\\ud83d\"", "\"\\ud83d\\ude00\"", 0 },
        { "\"\\ud83da\"", "\"\\ud83d\\u0061\"", 1 },
        { "\"\\u0000\"", "\"\\u0000\"", 1 },
        { "\"\\u0000\"", "\"\"", 0 },
        { "\"\\/\"", "\"/\"", 1 },
        { "\"\\n\"", "\"\\u000A\"", 1 },
        { "\"\\\\\"", "\"\\u005c\"", 1 },
        { "\"\\\\n\"", "\"\\n\"", 0 },
        { "\"\\\"\"", "\"\\u0022\"", 1 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        a = test_json(cases[i].a);
        b = test_json(cases[i].b);
        is(ngx_mcp_json_same(&a, &b), cases[i].same, "%s and %s: %s",
           cases[i].a, cases[i].b, cases[i].same ? "the same" : "not the same");
        is(ngx_mcp_json_same(&b, &a), cases[i].same, "and the other way round");
    }

    /* longer than any buffer for keys */

    ngx_memset(one, 'k', sizeof(one));
    one[0] = one[sizeof(one) - 1] = '"';

    p = ngx_cpymem(two, "\"\\u006b", 7);
    ngx_memcpy(p, one + 2, sizeof(one) - 2);

    s.data = one;
    s.len = sizeof(one);
    (void) ngx_mcp_json_parse(&s, &a, &err);
    s.data = two;
    s.len = 7 + sizeof(one) - 2;
    (void) ngx_mcp_json_parse(&s, &b, &err);

    ok(ngx_mcp_json_same(&a, &b), "a long key, once escaped");
}


static void
test_numbers(void)
{
    ngx_uint_t       i;
    ngx_mcp_json_t   a, b;
    static struct {
        const char  *a;
        const char  *b;
        ngx_uint_t   same;
    } cases[] = {
        { "42", "42", 1 },
        { "42", "43", 0 },
        { "42", "-42", 0 },
        { "42", "42.0", 1 },
        { "42", "42.000", 1 },
        { "42", "4.2e1", 1 },
        { "42", "4.2E+1", 1 },
        { "42", "420e-1", 1 },
        { "42", "0.42e2", 1 },
        { "42", "0.00042e5", 1 },
        { "42", "42e0", 1 },
        { "42", "42e00", 1 },
        { "42", "42e-0", 1 },
        { "42", "42e1", 0 },
        { "42", "402", 0 },
        { "42", "4.02e1", 0 },
        { "42", "420", 0 },
        { "4200", "42e2", 1 },
        { "1000000", "1e6", 1 },
        { "0", "-0", 1 },
        { "0", "0.0", 1 },
        { "0", "0e7", 1 },
        { "-0.00", "0e-99999999999999999999", 1 },
        { "0", "1", 0 },
        { "0.1", "1e-1", 1 },
        { "0.1", "0.10", 1 },
        { "0.1", "0.01", 0 },
        { "10.01", "1001e-2", 1 },
        { "10.01", "100.1e-1", 1 },
        { "10.01", "1.001", 0 },
        { "9007199254740993", "9007199254740992", 0 },
        { "9007199254740993", "9007199254740993.0", 1 },
        { "12345678901234567890123", "12345678901234567890123.0", 1 },
        { "12345678901234567890123", "12345678901234567890124", 0 },
        { "1e400", "10e399", 1 },
        { "1e400", "1e401", 0 },
        { "1e99999999999999999999", "1e99999999999999999999", 1 },
        { "1e99999999999999999999", "1e99999999999999999998", 0 },
        { "1e00000000000000000000001", "10", 1 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        a = test_json(cases[i].a);
        b = test_json(cases[i].b);
        is(ngx_mcp_json_same_number(&a, &b), cases[i].same, "%s and %s: %s",
           cases[i].a, cases[i].b, cases[i].same ? "the same" : "not the same");
        is(ngx_mcp_json_same_number(&b, &a), cases[i].same,
           "and the other way round");
    }
}


static void
test_unique(void)
{
    ngx_uint_t       i;
    ngx_mcp_json_t   v;
    static struct {
        const char  *text;
        ngx_int_t    rc;
    } cases[] = {
        { "{}", NGX_OK },
        { "[]", NGX_OK },
        { "7", NGX_OK },
        { "\"a\"", NGX_OK },
        { "{\"a\":1,\"b\":2}", NGX_OK },
        { "{\"a\":1,\"a\":1}", NGX_DECLINED },
        { "{\"a\":1,\"b\":2,\"a\":1}", NGX_DECLINED },
        { "{\"a\":1,\"\\u0061\":1}", NGX_DECLINED },
        { "{\"\":1,\"\":1}", NGX_DECLINED },
        { "{\"a\" : 1 , \"a\"  :\t1}", NGX_DECLINED },
        { "{\"a\":\"a\"}", NGX_OK },
        { "{\"a\":\"b\",\"b\":\"a\"}", NGX_OK },
        { "{\"a\":\"\\\"a\\\":1\"}", NGX_OK },
        { "{\"a\":{\"a\":{\"a\":1}}}", NGX_OK },
        { "{\"a\":{\"a\":1},\"b\":{\"a\":1}}", NGX_OK },
        { "{\"a\":{\"x\":1,\"x\":2}}", NGX_DECLINED },
        { "{\"a\":{\"x\":1},\"x\":1,\"a\":1}", NGX_DECLINED },
        { "[{\"a\":1},{\"a\":1}]", NGX_OK },
        { "[{\"a\":1},{\"b\":1,\"b\":1}]", NGX_DECLINED },
        { "{\"a\":[\"x\",\"x\",{\"x\":[\"x\"]}]}", NGX_OK },
        { "{\"a\":[{\"x\":1,\"y\":[],\"x\":2}]}", NGX_DECLINED },
        { "{\"a\":[],\"b\":{},\"a\":[]}", NGX_DECLINED },
        { "{\"a\":true,\"A\":false,\"aa\":null}", NGX_OK },
        { "{\"\xc3\xa9\":1,\"\\u00e9\":2}", NGX_DECLINED },
        { "{\"\\ud800\":1,\"\\uD800\":2}", NGX_DECLINED },
        { "{\"\\u0000\":1,\"\\u0000\":2}", NGX_DECLINED }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        v = test_json(cases[i].text);
        is(ngx_mcp_json_unique(test_pool, &v), cases[i].rc, "%s %s",
           cases[i].text, cases[i].rc ? "has a key twice" : "is unique");
    }
}


/* a hundred thousand keys in one object take milliseconds, not minutes */

static void
test_many(void)
{
    char            *text, *p;
    ngx_uint_t       i, n;
    ngx_mcp_json_t   v;

    n = 100000;
    text = malloc(16 * n + 64);
    p = text;
    *p++ = '{';

    for (i = 0; i < n; i++) {
        p += sprintf(p, "\"k%06d\":1,", (int) (i * 7919 % n));
    }

    (void) sprintf(p, "\"x\":1}");
    v = test_json(text);
    is(ngx_mcp_json_unique(test_pool, &v), NGX_OK, "many keys");

    (void) sprintf(p, "\"k\\u0030%05d\":1}", 4711);
    v = test_json(text);
    is(ngx_mcp_json_unique(test_pool, &v), NGX_DECLINED,
       "many keys, one of them twice");

    /* as deep as JSON may be */

    for (p = text, i = 0; i < NGX_MCP_JSON_DEPTH; i++) {
        p += sprintf(p, "{\"a\":");
    }

    *p++ = '1';

    for (i = 0; i < NGX_MCP_JSON_DEPTH; i++) {
        *p++ = '}';
    }

    *p = '\0';
    v = test_json(text);
    is(ngx_mcp_json_unique(test_pool, &v), NGX_OK, "deep");

    free(text);
}


static void
test_refused(void)
{
    const char      *err;
    ngx_mcp_json_t   v;

    v = test_json("{\"a\":{\"b\":1,\"b\":1}}");

    err = ngx_mcp_input_metadata(test_pool, &v);
    ok(err && strcmp(err, "duplicate key in metadata") == 0, "metadata");

    err = ngx_mcp_input_answers(test_pool, &v);
    ok(err && strcmp(err, "duplicate key in the answers") == 0, "answers");

    v = test_json("{\"a\":{\"b\":1}}");
    ok(ngx_mcp_input_metadata(test_pool, &v) == NULL
       && ngx_mcp_input_answers(test_pool, &v) == NULL, "neither");
}


int
main(void)
{
    test_pool = ngx_create_pool(65536, ngx_cycle->log);

    test_strings();
    test_numbers();
    test_unique();
    test_many();
    test_refused();

    ngx_destroy_pool(test_pool);

    return done_testing();
}
