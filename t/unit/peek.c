
/* Whether a message may be an error, from its first bytes. */


#include "libtest.h"
#include "ngx_mcp_peek.h"

#include <stdio.h>


#define BOM  "\xef\xbb\xbf"


static const char  *verdicts[] = { "more", "pass", "hold" };


/*
 * Reads the text in three parts, cut at every two positions.  With "until" the
 * verdict must be known after exactly so many bytes.
 */

static void
test(const char *text, ngx_uint_t want, size_t until)
{
    u_char          *p;
    size_t           i, j, n, first;
    ngx_uint_t       got, wrong;
    ngx_mcp_peek_t   peek;

    p = (u_char *) text;
    n = strlen(text);
    wrong = 0;

    for (i = 0; i <= n; i++) {
        for (j = i; j <= n; j++) {
            ngx_mcp_peek_init(&peek);
            (void) ngx_mcp_peek(&peek, p, i);
            (void) ngx_mcp_peek(&peek, p + i, j - i);
            got = ngx_mcp_peek(&peek, p + j, n - j);
            wrong += (got != want);
        }
    }

    is(wrong, 0, "%s: %s", verdicts[want], text);

    ngx_mcp_peek_init(&peek);

    for (first = 0; first < n; first++) {
        if (ngx_mcp_peek(&peek, p + first, 1) != NGX_MCP_PEEK_MORE) {
            first++;
            break;
        }
    }

    is(first, until ? until : n, "after that many bytes");

    /* and whatever follows */

    (void) ngx_mcp_peek(&peek, (u_char *) "\"error\":{", 9);
    ok(want == NGX_MCP_PEEK_MORE || peek.verdict == want, "for good");
}


static void
pass(const char *text, size_t until)
{
    test(text, NGX_MCP_PEEK_PASS, until);
}


static void
hold(const char *text)
{
    test(text, NGX_MCP_PEEK_HOLD, 0);
}


static void
more(const char *text)
{
    test(text, NGX_MCP_PEEK_MORE, 0);
}


static void
test_results(void)
{
    pass("{\"result\":1", 0);
    pass("{\"result\":{\"error\":{\"code\":-32042}}}", 11);
    pass("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"error\":{}}}", 34);
    pass(" \t\r\n{ \"id\" : 1 , \"result\" : 1", 0);
    pass("{\"id\":\"error\",\"result\":1", 0);
    pass("{\"id\":\"\\\"error\\\":{\",\"result\":1", 0);
    pass("{\"id\":\"\\\\\",\"result\":1", 0);
    pass("{\"_meta\":{\"error\":{\"code\":-32042}},\"result\":1", 0);
    pass("{\"_meta\":[[{\"error\":{}},\"]\"],{}],\"result\":1", 0);
    pass("{\"_meta\":{\"a\":\"}\",\"b\":\"\\\"}\"},\"result\":1", 0);
    pass("{\"errors\":{},\"erro\":{},\"Error\":{},\"\":{},\"result\":1", 0);
    pass("{\"result\":null}", 0);
    pass("{\"result\":\"null\",\"error\":{", 11);
    pass("{\"error\":null,\"id\":1,\"result\":1", 0);
    pass("{\"error\":\"{\",\"result\":1", 0);
    pass("{\"error\":[{}],\"result\":1", 0);
    pass("{\"error\":-1.5e3,\"result\":1", 0);
    pass("{\"a\\u0062\":1,\"result\":1", 0);
    pass(BOM "{\"result\":1", 0);
}


static void
test_errors(void)
{
    hold("{\"error\":{");
    hold("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{");
    hold(" {\r\n\t\"error\" :\n {");
    hold("{\"id\":\"a\\\\\",\"error\":{");
    hold("{\"id\":\"a\\\"\",\"error\":{");
    hold("{\"id\":null,\"_meta\":{\"result\":{}},\"error\":{");
    hold("{\"a\":[],\"error\":{");
    hold("{\"a\":[\"\\\"],\"],\"error\":{");
    hold("{\"resul\":1,\"results\":1,\"error\":{");
    hold("{\"error\":null,\"error\":{");
    hold("{\"result\":null,\"error\":{");
    hold("{\"result\" : null , \"id\":1,\"error\":{");
    hold(BOM "{\"error\":{");

    /* a name with an escape may be any name */

    hold("{\"\\u0065rror\":{");
    hold("{\"erro\\u0072\":{");
    hold("{\"a\\\"\":{");
    hold("{\"\\u0072esult\":{");
}


static void
test_others(void)
{
    pass("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"error\":{}}}",
         25);
    pass("{\"params\":{\"error\":{}},\"method\":\"x\"}", 9);
    pass("{}", 0);
    pass("{\"error\":1}", 0);
    pass("{\"error\":\"invalid_token\",\"error_description\":\"no\"}", 0);
    pass("[{\"error\":{\"code\":-32042}}]", 1);
    pass("\"error\":{", 1);
    pass("<h1>", 1);
    pass("null", 1);
    pass("{error:{", 2);
    pass("{'error':{", 2);
    pass("{\"error\"{", 9);
    pass("{\"a\":1]", 0);
    pass("{,\"error\":{", 2);

    more("");
    more(" \r\n");
    more("{");
    more("{\"resul");
    more("{\"result\"");
    more("{\"result\": ");
    more("{\"result\":null");
    more("{\"error\"");
    more("{\"error\": ");
    more("{\"id\":\"error\\\":{");
    more("{\"a\":{\"error\":{}}");
    more("{\"id\":1");
}


int
main(void)
{
    test_results();
    test_errors();
    test_others();

    return done_testing();
}
