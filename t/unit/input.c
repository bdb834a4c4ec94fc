
/* Questions and answers, ids, merged metadata, and text that grows. */


#include "libtest.h"
#include "ngx_mcp_input.h"
#include "ngx_mcp_out.h"
#include "ngx_mcp_rpc.h"


static int
same(ngx_str_t *s, const char *text)
{
    if (s->len == ngx_strlen(text) && ngx_memcmp(s->data, text, s->len) == 0) {
        return 1;
    }

    diag("got %.*s", (int) s->len, s->data);

    return 0;
}


static void
test_questions(void)
{
    ngx_uint_t           i;
    ngx_str_t            none, some;
    ngx_mcp_json_t       v;
    static const char   *bad[] = {
        "[]", "1", "{}", "{\"a\":1}", "{\"a\":{}}",
        "{\"a\":{\"method\":1,\"params\":{}}}",
        "{\"a\":{\"method\":\"m\",\"params\":[]}}",
        "{\"a\":{\"method\":\"m\",\"params\":{}},\"b\":null}",
        NULL
    };

    none = str("");
    some = str("{\"a\":{\"action\":\"accept\"}}");

    for (i = 0; bad[i]; i++) {
        v = test_json(bad[i]);
        ok(ngx_mcp_input_check(&v, &none) != NULL, "%s is refused", bad[i]);
    }

    v = test_json("{\"a\":{\"method\":\"m\",\"params\":{}}}");
    ok(ngx_mcp_input_check(&v, &none) == NULL, "a new key");
    ok(ngx_mcp_input_check(&v, &some) != NULL, "a used key");

    v = test_json("{\"a\":{\"method\":\"m\"}}");
    ok(ngx_mcp_input_check(&v, &none) == NULL, "without params");

    v = test_json("{\"\\u0061\":{\"method\":\"m\",\"params\":{}}}");
    ok(ngx_mcp_input_check(&v, &some) != NULL, "a used key in disguise");
}


static void
test_merge(void)
{
    ngx_str_t               requests, responses;
    ngx_mcp_json_t          answers;
    ngx_mcp_input_change_t  m;

    requests = str("{ \"a\": {\"q\": 1} , \"b\":{\"q\":2}}");
    responses = str("");

    answers = test_json("{\"b\": {\"n\": 1.0}, \"zzz\": 1}");
    is(ngx_mcp_input_add_answers(test_pool, &requests, &responses,
                                 &answers, &m), NGX_OK, "merge");
    is(m.taken, 1, "one is taken");
    is(m.left, 1, "one is left");
    ok(same(&m.requests, "{\"a\":{\"q\": 1}}"), "which");
    ok(same(&m.responses, "{\"b\":{\"n\": 1.0}}"), "the answer as it came");

    requests = m.requests;
    responses = m.responses;
    answers = test_json("{\"b\": 5}");
    (void) ngx_mcp_input_add_answers(test_pool, &requests, &responses,
                                     &answers, &m);
    is(m.taken, 0, "an answered key is not taken again");

    answers = test_json("{\"\\u0061\": true}");
    (void) ngx_mcp_input_add_answers(test_pool, &requests, &responses,
                                     &answers, &m);
    is(m.taken, 1, "the last one, its key escaped");
    is(m.left, 0, "none is left");
    is(m.requests.len, 0, "no questions");
    ok(same(&m.responses, "{\"b\":{\"n\": 1.0},\"a\":true}"), "all answers");
}


static void
test_drop(void)
{
    ngx_uint_t              i;
    ngx_str_t               requests;
    ngx_mcp_json_t          key;
    ngx_mcp_input_change_t  m;
    static struct {
        const char  *requests;
        const char  *key;
        ngx_uint_t   taken;
        ngx_uint_t   left;
        const char  *result;
    } cases[] = {
        { "{\"a\":1,\"b\":2,\"c\":3}", "\"a\"", 1, 2,
          "{\"b\":2,\"c\":3}" },
        { "{\"a\":1,\"b\":2,\"c\":3}", "\"b\"", 1, 2,
          "{\"a\":1,\"c\":3}" },
        { "{\"a\":1,\"b\":2,\"c\":3}", "\"c\"", 1, 2,
          "{\"a\":1,\"b\":2}" },
        { "{ \"a\" : {\"q\": 1.0} , \"b\":[2] }", "\"b\"", 1, 1,
          "{\"a\":{\"q\": 1.0}}" },
        { "{\"a\":1,\"b\":2}", "\"ab\"", 0, 2, "{\"a\":1,\"b\":2}" },
        { "{\"a\":1,\"b\":2}", "\"\"", 0, 2, "{\"a\":1,\"b\":2}" },
        { "{\"a\":{\"b\":2}}", "\"b\"", 0, 1, "{\"a\":{\"b\":2}}" },
        { "{\"a\":1,\"\\u0062\":2}", "\"b\"", 1, 1, "{\"a\":1}" },
        { "{\"a\":1,\"b\":2}", "\"\\u0062\"", 1, 1, "{\"a\":1}" },
        { "{\"a\":1}", "\"a\"", 1, 0, "" },
        { "{}", "\"a\"", 0, 0, "" },
        { "", "\"a\"", 0, 0, "" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        requests = str(cases[i].requests);
        key = test_json(cases[i].key);
        m.taken = m.left = 99;

        is(ngx_mcp_input_drop(test_pool, &requests, &key, &m),
           NGX_OK, "%s without %s", cases[i].requests, cases[i].key);
        is(m.taken, cases[i].taken, "whether it was there");
        is(m.left, cases[i].left, "how many are left");
        ok(same(&m.requests, cases[i].result), "which");
    }
}


static void
test_answer(void)
{
    ngx_uint_t           i, found;
    ngx_str_t            responses, key;
    ngx_mcp_json_t       answer;
    static const char   *cases[][3] = {
        { "{\"a\": {\"x\": 1.0} , \"b\":[2]}", "\"a\"",
          "{\"x\": 1.0}" },
        { "{\"a\":1,\"b\":[2]}", "\"b\"", "[2]" },
        { "{\"a\":1,\"b\":null}", "\"b\"", "null" },
        { "{\"\\u0061\":1}", "\"a\"", "1" },
        { "{\"a\":1}", "\"\\u0061\"", "1" },
        { "{\"a\":{\"b\":1}}", "\"b\"", NULL },
        { "{\"ab\":1}", "\"a\"", NULL },
        { "{\"a\":1}", "\"ab\"", NULL },
        { "{}", "\"a\"", NULL },
        { "", "\"a\"", NULL }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        responses = str(cases[i][0]);
        key = str(cases[i][1]);
        found = ngx_mcp_input_answer(&responses, &key, &answer);

        is(found, cases[i][2] != NULL, "%s in %s", cases[i][1], cases[i][0]);

        if (found && cases[i][2]) {
            ok(same(&answer.text, cases[i][2]), "the answer as it came");
        }
    }
}


/* the id of an answer is that of the question, if it means the same */

static void
test_ids(void)
{
    ngx_uint_t       i;
    ngx_mcp_json_t   a, b;
    static struct {
        const char  *a;
        const char  *b;
        ngx_uint_t   same;
    } cases[] = {
        { "1", "1", 1 },
        { "-1", "-1", 1 },
        { "1", "2", 0 },
        { "1", "11", 0 },
        { "1", "-1", 0 },
        { "1", "\"1\"", 0 },
        { "123456789012345678901234567890", "123456789012345678901234567890",
          1 },
        { "123456789012345678901234567890", "123456789012345678901234567891",
          0 },
        { "\"\"", "\"\"", 1 },
        { "\"a\"", "\"a\"", 1 },
        { "\"a\"", "\"A\"", 0 },
        { "\"a\"", "\"ab\"", 0 },
        { "\"a\"", "\"\\u0061\"", 1 },
        { "\"\\/\"", "\"/\"", 1 },
        { "\"\\u00e4\"", "\"\xc3\xa4\"", 1 },
        { "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"", 1 },
        { "\"\\\\u0061\"", "\"\\u0061\"", 0 },
        { "\"a\\u0000\"", "\"a\"", 0 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        a = test_json(cases[i].a);
        b = test_json(cases[i].b);

        is(ngx_mcp_rpc_same_id(&a, &b), cases[i].same,
           "%s and %s: %s", cases[i].a, cases[i].b,
           cases[i].same ? "the same" : "not the same");
        is(ngx_mcp_rpc_same_id(&b, &a), cases[i].same,
           "and the other way round");
    }
}


static void
test_patch(void)
{
    ngx_uint_t           i;
    ngx_str_t            old, result;
    ngx_mcp_json_t       patch;
    static const char   *cases[][3] = {
        { "", "{\"a\":1}", "{\"a\":1}" },
        { "{\"a\":1,\"b\":2}", "{\"b\":3,\"c\":4}",
          "{\"a\":1,\"b\":3,\"c\":4}" },
        { "{\"a\":1,\"b\":2}", "{\"a\":null}", "{\"b\":2}" },
        { "{\"a\":1}", "{\"a\":null}", "{}" },
        { "{\"a\":1}", "{}", "{\"a\":1}" }
    };

    for (i = 0; i < 5; i++) {
        old = str(cases[i][0]);
        patch = test_json(cases[i][1]);
        (void) ngx_mcp_input_patch(test_pool, &old, &patch, &result);
        ok(same(&result, cases[i][2]), "%s and %s", cases[i][0], cases[i][1]);
    }
}


static void
test_out(void)
{
    ngx_str_t      s;
    ngx_uint_t     i;
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, test_pool, 1);

    for (i = 0; i < 5000; i++) {
        ngx_mcp_out_lit(&out, "abc");
    }

    is(ngx_mcp_out_end(&out, &s), NGX_OK, "it grows");
    is(s.len, 15000, "to what was written");

    ngx_mcp_out_init(&out, test_pool, 4);
    ngx_mcp_out_time(&out, 1785196800123ULL);
    ngx_mcp_out_lit(&out, " ");
    ngx_mcp_out_number(&out, 18446744073709551615ULL);
    ngx_mcp_out_lit(&out, " ");
    ngx_mcp_out_real(&out, 0.1);
    ngx_mcp_out_lit(&out, " ");
    ngx_mcp_out_real(&out, 1.0 / 3);
    ngx_mcp_out_lit(&out, " ");
    ngx_mcp_out_real(&out, 42);
    ngx_mcp_out_lit(&out, " ");
    s = str("a\"\\\n\x01z");
    ngx_mcp_out_string(&out, &s);
    (void) ngx_mcp_out_end(&out, &s);

    ok(same(&s, "\"2026-07-28T00:00:00.123Z\" 18446744073709551615 0.1 "
                "0.3333333333333333 42 \"a\\\"\\\\\\n\\u0001z\""),
       "times, numbers, strings");
}


int
main(void)
{
    test_pool = ngx_create_pool(65536, ngx_cycle->log);

    test_questions();
    test_merge();
    test_drop();
    test_answer();
    test_ids();
    test_patch();
    test_out();

    return done_testing();
}
