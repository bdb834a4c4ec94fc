
/* Questions and answers, merged metadata, and text that grows. */


#include "libtest.h"
#include "ngx_http_mcp_tasks_input.h"
#include "ngx_http_mcp_tasks_out.h"


static ngx_http_mcp_tasks_json_t
json(const char *text)
{
    ngx_str_t                   s;
    const char                 *err;
    ngx_http_mcp_tasks_json_t   v;

    s = str(text);

    if (ngx_http_mcp_tasks_json_parse(&s, &v, &err) != NGX_OK) {
        diag("%s: %s", text, err);
        exit(2);
    }

    return v;
}


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
    ngx_uint_t                  i;
    ngx_str_t                   none, some;
    ngx_http_mcp_tasks_json_t   v;
    static const char          *bad[] = {
        "[]", "1", "{}", "{\"a\":1}", "{\"a\":{}}",
        "{\"a\":{\"method\":1,\"params\":{}}}",
        "{\"a\":{\"method\":\"m\"}}",
        "{\"a\":{\"method\":\"m\",\"params\":[]}}",
        "{\"a\":{\"method\":\"m\",\"params\":{}},\"b\":null}",
        NULL
    };

    none = str("");
    some = str("{\"a\":{\"action\":\"accept\"}}");

    for (i = 0; bad[i]; i++) {
        v = json(bad[i]);
        ok(ngx_http_mcp_tasks_input_check(&v, &none) != NULL, "%s is refused",
           bad[i]);
    }

    v = json("{\"a\":{\"method\":\"m\",\"params\":{}}}");
    ok(ngx_http_mcp_tasks_input_check(&v, &none) == NULL, "a new key");
    ok(ngx_http_mcp_tasks_input_check(&v, &some) != NULL, "a used key");

    v = json("{\"\\u0061\":{\"method\":\"m\",\"params\":{}}}");
    ok(ngx_http_mcp_tasks_input_check(&v, &some) != NULL,
       "a used key in disguise");
}


static void
test_merge(void)
{
    ngx_str_t                   requests, responses;
    ngx_http_mcp_tasks_json_t   answers;
    ngx_http_mcp_tasks_merge_t  m;

    requests = str("{ \"a\": {\"q\": 1} , \"b\":{\"q\":2}}");
    responses = str("");

    answers = json("{\"b\": {\"n\": 1.0}, \"zzz\": 1}");
    is(ngx_http_mcp_tasks_input_merge(test_pool, &requests, &responses,
                                      &answers, &m), NGX_OK, "merge");
    is(m.taken, 1, "one is taken");
    is(m.left, 1, "one is left");
    ok(same(&m.requests, "{\"a\":{\"q\": 1}}"), "which");
    ok(same(&m.responses, "{\"b\":{\"n\": 1.0}}"), "the answer as it came");

    requests = m.requests;
    responses = m.responses;
    answers = json("{\"b\": 5}");
    (void) ngx_http_mcp_tasks_input_merge(test_pool, &requests, &responses,
                                          &answers, &m);
    is(m.taken, 0, "an answered key is not taken again");

    answers = json("{\"\\u0061\": true}");
    (void) ngx_http_mcp_tasks_input_merge(test_pool, &requests, &responses,
                                          &answers, &m);
    is(m.taken, 1, "the last one, its key escaped");
    is(m.left, 0, "none is left");
    is(m.requests.len, 0, "no questions");
    ok(same(&m.responses, "{\"b\":{\"n\": 1.0},\"a\":true}"), "all answers");
}


static void
test_patch(void)
{
    ngx_uint_t                  i;
    ngx_str_t                   old, result;
    ngx_http_mcp_tasks_json_t   patch;
    static const char          *cases[][3] = {
        { "", "{\"a\":1}", "{\"a\":1}" },
        { "{\"a\":1,\"b\":2}", "{\"b\":3,\"c\":4}",
          "{\"a\":1,\"b\":3,\"c\":4}" },
        { "{\"a\":1,\"b\":2}", "{\"a\":null}", "{\"b\":2}" },
        { "{\"a\":1}", "{\"a\":null}", "{}" },
        { "{\"a\":1}", "{}", "{\"a\":1}" }
    };

    for (i = 0; i < 5; i++) {
        old = str(cases[i][0]);
        patch = json(cases[i][1]);
        (void) ngx_http_mcp_tasks_input_patch(test_pool, &old, &patch,
                                              &result);
        ok(same(&result, cases[i][2]), "%s and %s", cases[i][0], cases[i][1]);
    }
}


static void
test_out(void)
{
    ngx_str_t                 s;
    ngx_uint_t                i;
    ngx_http_mcp_tasks_out_t  out;

    ngx_http_mcp_tasks_out_init(&out, test_pool, 1);

    for (i = 0; i < 5000; i++) {
        ngx_http_mcp_tasks_out_lit(&out, "abc");
    }

    is(ngx_http_mcp_tasks_out_end(&out, &s), NGX_OK, "it grows");
    is(s.len, 15000, "to what was written");

    ngx_http_mcp_tasks_out_init(&out, test_pool, 4);
    ngx_http_mcp_tasks_out_time(&out, 1785196800123ULL);
    ngx_http_mcp_tasks_out_lit(&out, " ");
    ngx_http_mcp_tasks_out_number(&out, 18446744073709551615ULL);
    ngx_http_mcp_tasks_out_lit(&out, " ");
    ngx_http_mcp_tasks_out_real(&out, 0.1);
    ngx_http_mcp_tasks_out_lit(&out, " ");
    ngx_http_mcp_tasks_out_real(&out, 1.0 / 3);
    ngx_http_mcp_tasks_out_lit(&out, " ");
    ngx_http_mcp_tasks_out_real(&out, 42);
    ngx_http_mcp_tasks_out_lit(&out, " ");
    s = str("a\"\\\n\x01z");
    ngx_http_mcp_tasks_out_string(&out, &s);
    (void) ngx_http_mcp_tasks_out_end(&out, &s);

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
    test_patch();
    test_out();

    return done_testing();
}
