
/* The JSON scanner and the JSON-RPC envelope. */


#include "libtest.h"
#include "ngx_mcp_rpc.h"

#include <stdio.h>


static ngx_pool_t  *pool;


/* in memory of exactly that size, so that a sanitizer sees a read too far */

static ngx_str_t
exact(const void *data, size_t len)
{
    ngx_str_t  s;

    s.len = len;
    s.data = malloc(len ? len : 1);

    if (s.data == NULL) {
        exit(2);
    }

    ngx_memcpy(s.data, data, len);

    if (len == 0) {
        /* not even the byte that malloc() must have had */
        s.data++;
    }

    return s;
}


static void
release(ngx_str_t *s)
{
    free(s->len ? s->data : s->data - 1);
}


/* the reason of a refusal; NULL if there is none */

static const char *
why(const void *data, size_t len)
{
    ngx_int_t        rc;
    ngx_str_t        s;
    const char      *err;
    ngx_mcp_json_t   value;

    s = exact(data, len);
    err = "?";
    rc = ngx_mcp_json_parse(&s, &value, &err);
    release(&s);

    return (rc == NGX_OK) ? NULL : err;
}


static ngx_mcp_json_t
parse(const char *text)
{
    ngx_str_t        s;
    const char      *err;
    ngx_mcp_json_t   value;

    ngx_memzero(&value, sizeof(value));
    s = str(text);

    if (ngx_mcp_json_parse(&s, &value, &err) != NGX_OK) {
        ok(0, "%s: %s", text, err);
        exit(2);
    }

    return value;
}


static ngx_uint_t
same(ngx_str_t *s, const char *text)
{
    return s->len == ngx_strlen(text)
           && (s->len == 0 || ngx_memcmp(s->data, text, s->len) == 0);
}


static void
test_types(void)
{
    ngx_uint_t      i;
    ngx_mcp_json_t  v;
    static struct {
        const char  *text;
        const char  *span;
        ngx_uint_t   type;
    } t[] = {
        { "null", "null", NGX_MCP_JSON_NULL },
        { " false ", "false", NGX_MCP_JSON_FALSE },
        { "\ttrue\n", "true", NGX_MCP_JSON_TRUE },
        { "0", "0", NGX_MCP_JSON_NUMBER },
        { "\r-1.50e+07 ", "-1.50e+07", NGX_MCP_JSON_NUMBER },
        { " \"a \\\" b\" ", "\"a \\\" b\"", NGX_MCP_JSON_STRING },
        { "\"\"", "\"\"", NGX_MCP_JSON_STRING },
        { " [ ] ", "[ ]", NGX_MCP_JSON_ARRAY },
        { " [1, [2], {}] ", "[1, [2], {}]", NGX_MCP_JSON_ARRAY },
        { " { } ", "{ }", NGX_MCP_JSON_OBJECT },
        { "{\"[\":\"}\"}\n", "{\"[\":\"}\"}", NGX_MCP_JSON_OBJECT }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        v = parse(t[i].text);
        ok(v.type == t[i].type && same(&v.text, t[i].span),
           "type and span of %s", t[i].span);
    }
}


static void
test_refused(void)
{
    ngx_uint_t   i;
    const char  *err;
    static struct {
        const char  *text;
        const char  *err;
    } t[] = {
        { "", "unexpected end of input" },
        { "  ", "unexpected end of input" },
        { "[1", "unexpected end of input" },
        { "{\"a\\n\"", "unexpected end of input" },
        { "{\"a\"", "unexpected end of input" },
        { "{\"a\":", "unexpected end of input" },
        { "{\"a\":-1", "unexpected end of input" },
        { "tru", "invalid or missing value" },
        { "fals", "invalid or missing value" },
        { "nul", "invalid or missing value" },
        { "[1,]", "invalid or missing value" },
        { "{\"a\":1,}", "expected an object key in double quotes" },
        { "{1:2}", "expected an object key in double quotes" },
        { "{\"a\" 1}", "expected a colon after an object key" },
        { "[1 2]", "expected a comma or a closing bracket" },
        { "[1}", "expected a comma or a closing bracket" },
        { "{\"a\":1]", "expected a comma or a closing bracket" },
        { "1 1", "unexpected characters after the value" },
        { "{}{}", "unexpected characters after the value" },
        { "-", "invalid number" },
        { "01", "invalid number" },
        { "1.", "invalid number" },
        { "1e", "invalid number" },
        { "1e+", "invalid number" },
        { "\"\\", "invalid escape sequence in a string" },
        { "\"\\x", "invalid escape sequence in a string" },
        { "\"\\u123", "invalid escape sequence in a string" },
        { "\"\\u123g\"", "invalid escape sequence in a string" },
        { "\"a", "unterminated string" },
        { "\"a\x01\"", "unescaped control character in a string" },
        { "\"\x80\"", "invalid UTF-8 in a string" },
        { "\"\xc3", "invalid UTF-8 in a string" }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        err = why(t[i].text, ngx_strlen(t[i].text));

        if (!ok(err && ngx_strcmp(err, t[i].err) == 0, "%lu: %s",
                (unsigned long) i, t[i].err))
        {
            diag("got \"%s\"", err ? err : "no refusal");
        }
    }

    ok(why("\"a\0b\"", 5) != NULL, "a NUL in a string");
    ok(why("[]\0", 3) != NULL, "a NUL at the end");
    ok(why("\0", 1) != NULL, "a NUL alone");
}


/* every prefix of a text is refused, without a look behind its end */

static void
test_cut(void)
{
    size_t       len;
    ngx_uint_t   bad;
    const char  *text = "{\"a\\u00e9\":[-1.5e+3,true,false,null,"
                        "\"\\ud83d\\ude00\xc3\xa9\xe2\x82\xac"
                        "\xf0\x9f\x98\x80\","
                        "{},[],{\"b\" : "
                        "[ 0 , 1 ] }]}";

    ok(why(text, ngx_strlen(text)) == NULL, "a text");

    for (bad = 0, len = 0; len < ngx_strlen(text); len++) {
        bad += (why(text, len) == NULL);
    }

    is(bad, 0, "cut at any byte it is none");
}


/* strings are scanned by words: a byte counts wherever in them it stands */

static void
test_words(void)
{
    char                 text[64];
    u_char               buf[32];
    ngx_int_t            n;
    ngx_uint_t           c, at, bad, plain, lost;
    ngx_mcp_json_t       array, value;
    ngx_mcp_json_iter_t  it;

    for (bad = 0, c = 0; c < 256; c++) {
        plain = (c >= 0x20 && c < 0x80 && c != '"' && c != '\\');

        for (at = 1; at < 25; at++) {
            ngx_memset(buf, 'a', 26);
            buf[0] = '"';
            buf[25] = '"';
            buf[at] = (u_char) c;
            bad += ((why(buf, 26) == NULL) != plain);
        }
    }

    is(bad, 0, "bytes in strings are told from each other at any place");

    for (lost = 0, at = 0; at < 20; at++) {
        sprintf(text, "[\"%.*s\\\"%.*s\",7]", (int) at,
                "abcdefghijklmnopqrst", (int) (20 - at),
                "abcdefghijklmnopqrst");
        array = parse(text);
        ngx_mcp_json_iter(&it, &array);

        for (n = 0;
             ngx_mcp_json_next(&it, NULL, &value) == NGX_OK;
             n++)
        {
            /* void */
        }

        lost += (n != 2 || !same(&value.text, "7"));
    }

    is(lost, 0, "a quote with a backslash does not end a string");
}


static void
test_depth(void)
{
    size_t   n;
    u_char   buf[4096], *p;

    for (n = 1; n <= NGX_MCP_JSON_DEPTH + 1; n++) {
        ngx_memset(buf, '[', n);
        ngx_memset(buf + n, ']', n);

        if ((why(buf, 2 * n) == NULL) != (n <= NGX_MCP_JSON_DEPTH)) {
            break;
        }
    }

    is(n, NGX_MCP_JSON_DEPTH + 2, "arrays to the greatest depth");

    for (n = 1; n <= NGX_MCP_JSON_DEPTH + 1; n++) {
        size_t  i;

        for (p = buf, i = 0; i < n; i++) {
            p = ngx_cpymem(p, (i & 1) ? "{\"a\":" : "[{},", (i & 1) ? 5 : 4);
        }

        *p++ = '0';

        for (i = n; i > 0; i--) {
            *p++ = ((i - 1) & 1) ? '}' : ']';
        }

        /* an empty object stands beside the last array */

        if ((why(buf, p - buf) == NULL)
            != (n + (n & 1) <= NGX_MCP_JSON_DEPTH))
        {
            break;
        }
    }

    is(n, NGX_MCP_JSON_DEPTH + 2, "both in turn likewise");
}


/* RFC 3629, written down another way: by the code point */

static int
valid_utf8(const u_char *s, size_t len)
{
    size_t    i;
    uint32_t  code;

    static const uint32_t  least[] = { 0, 0x80, 0x800, 0x10000 };

    if (len == 1) {
        return s[0] >= 0x20 && s[0] < 0x80;
    }

    if ((len == 2 && s[0] >> 5 != 6)
        || (len == 3 && s[0] >> 4 != 14)
        || (len == 4 && s[0] >> 3 != 30))
    {
        return 0;
    }

    code = s[0] & (0x7f >> len);

    for (i = 1; i < len; i++) {
        if (s[i] >> 6 != 2) {
            return 0;
        }

        code = code << 6 | (s[i] & 0x3f);
    }

    return code >= least[len - 1] && code <= 0x10ffff
           && (code < 0xd800 || code > 0xdfff);
}


static void
test_utf8(void)
{
    u_char      buf[8], *s;
    ngx_uint_t  a, b, c, d, bad, n;

    static const u_char  edge[] = {
        0x00, 0x1f, 0x20, 0x22, 0x41, 0x5c, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
        0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4,
        0xf5, 0xff
    };

    buf[0] = '"';
    s = buf + 1;

    for (bad = 0, n = 0, a = 0x80; a < 256; a++) {
        s[0] = (u_char) a;
        s[1] = '"';
        bad += (why(buf, 3) == NULL);

        for (b = 0; b < 256; b++) {
            s[1] = (u_char) b;
            s[2] = '"';
            n++;

            if (b == '"' || b == '\\') {
                bad += (why(buf, 4) == NULL);
                continue;
            }

            bad += ((why(buf, 4) == NULL) != valid_utf8(s, 2));
        }
    }

    is(bad, 0, "%lu pairs of bytes", (unsigned long) n);

    for (bad = 0, n = 0, a = 0xe0; a < 256; a++) {
        for (b = 0x7f; b <= 0xc0; b++) {
            for (c = 0; c < sizeof(edge); c++) {
                s[0] = (u_char) a;
                s[1] = (u_char) b;
                s[2] = edge[c];
                s[3] = '"';
                n++;
                bad += ((why(buf, 5) == NULL) != valid_utf8(s, 3));

                if (a < 0xf0) {
                    continue;
                }

                for (d = 0; d < sizeof(edge); d++) {
                    s[3] = edge[d];
                    s[4] = '"';
                    n++;
                    bad += ((why(buf, 6) == NULL) != valid_utf8(s, 4));
                }
            }
        }
    }

    is(bad, 0, "%lu of 3 and 4 bytes", (unsigned long) n);
}


static void
test_iterate(void)
{
    ngx_uint_t            n;
    ngx_mcp_json_t        v, key, value;
    ngx_mcp_json_iter_t   it;
    static const char    *elements[] = {
        "1", "\"a,]\"", "[2,[3]]", "{\"b\":\"}\"}", "true", "false", "null",
        "-1.5e3", "[]", "{}"
    };

    v = parse("[ 1 ,\"a,]\",\n[2,[3]] , {\"b\":\"}\"},true,false, null,-1.5e3,"
              "[],{} ]");
    ngx_mcp_json_iter(&it, &v);

    for (n = 0;
         ngx_mcp_json_next(&it, NULL, &value) == NGX_OK;
         n++)
    {
        if (n == 10 || !same(&value.text, elements[n])) {
            break;
        }
    }

    is(n, 10, "the elements of an array");

    v = parse("{ \"a\" : 1,\"\\\"b\\\\\":{\"c\":[]} ,\"\":\"\"}");
    ngx_mcp_json_iter(&it, &v);

    ok(ngx_mcp_json_next(&it, &key, &value) == NGX_OK
       && same(&key.text, "\"a\"") && same(&value.text, "1")
       && key.type == NGX_MCP_JSON_STRING
       && value.type == NGX_MCP_JSON_NUMBER, "a member");
    ok(ngx_mcp_json_next(&it, &key, &value) == NGX_OK
       && same(&key.text, "\"\\\"b\\\\\"")
       && same(&value.text, "{\"c\":[]}")
       && value.type == NGX_MCP_JSON_OBJECT, "the next");
    ok(ngx_mcp_json_next(&it, &key, &value) == NGX_OK
       && same(&key.text, "\"\"") && same(&value.text, "\"\"")
       && value.type == NGX_MCP_JSON_STRING, "the last");
    ok(ngx_mcp_json_next(&it, &key, &value) == NGX_DONE, "and no more");

    v = parse("{ }");
    ngx_mcp_json_iter(&it, &v);
    ok(ngx_mcp_json_next(&it, &key, &value) == NGX_DONE, "an empty object");

    v = parse("[\n]");
    ngx_mcp_json_iter(&it, &v);
    ok(ngx_mcp_json_next(&it, NULL, &value) == NGX_DONE, "an empty array");
}


static void
test_members(void)
{
    ngx_mcp_json_t    v, a, b, c;
    ngx_mcp_member_t  members[] = {
        { ngx_string("a"), &a },
        { ngx_string("b/c"), &b },
        { ngx_string("\xc3\xa9"), &c }
    };

    v = parse("{\"x\":0,\"b\\/c\":[1],\"a\":2,\"x\":3,\"\\u00E9\":4}");
    is(ngx_mcp_json_members(&v, members, 3), NGX_OK, "members");
    ok(same(&a.text, "2") && same(&b.text, "[1]") && same(&c.text, "4")
       && b.type == NGX_MCP_JSON_ARRAY,
       "are found, also by another spelling");

    v = parse("{\"aa\":1,\"\":2,\"A\":3,\"b\":{\"a\":4}}");
    is(ngx_mcp_json_members(&v, members, 3), NGX_OK, "others");
    ok(a.type == NGX_MCP_JSON_NONE && a.text.len == 0
       && b.type == NGX_MCP_JSON_NONE
       && c.type == NGX_MCP_JSON_NONE, "are not");

    v = parse("{\"a\":1,\"a\":1}");
    is(ngx_mcp_json_members(&v, members, 3), NGX_DECLINED, "a member twice");
    v = parse("{\"a\":null,\"\\u0061\":null}");
    is(ngx_mcp_json_members(&v, members, 3), NGX_DECLINED,
       "twice, the second spelled with an escape");
    v = parse("{\"\\u0061\":1,\"a\":1}");
    is(ngx_mcp_json_members(&v, members, 3), NGX_DECLINED,
       "twice, the first spelled with an escape");

    v = parse("[{\"a\":1}]");
    ok(ngx_mcp_json_members(&v, members, 3) == NGX_OK
       && a.type == NGX_MCP_JSON_NONE, "an array has none");
    v = parse("\"a\"");
    ok(ngx_mcp_json_members(&v, members, 3) == NGX_OK
       && a.type == NGX_MCP_JSON_NONE, "nor has a string");
}


static void
test_strings(void)
{
    size_t          i, n;
    u_char          buf[2048], *p;
    ngx_str_t       s, text, name;
    const char     *err;
    ngx_mcp_json_t  v;
    static struct {
        const char  *json;
        const char  *text;          /* NULL: there is none */
    } t[] = {
        { "\"\"", "" },
        { "\"abc\"", "abc" },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
        { "\"a\\u0062c\"", "abc" },
        { "\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
          "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf" },
        { "\"\\uD7FF\\uE000\"", "\xed\x9f\xbf\xee\x80\x80" },
        { "\"\\ud800\\udc00\"", "\xf0\x90\x80\x80" },
        { "\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf" },
        { "\"\\ud83d\\ude00x\"", "\xf0\x9f\x98\x80x" },
        { "\"\xc3\xa9\\n\xe2\x82\xac\"", "\xc3\xa9\n\xe2\x82\xac" },
        { "\"\\u0001\\u001f\"", "\x01\x1f" },
        { "\"\\u0000\"", NULL },
        { "\"a\\u0000b\"", NULL },
        { "\"\\ud800\"", NULL },
        { "\"\\udc00\"", NULL },
        { "\"\\ud800x\"", NULL },
        { "\"\\ud800xxxxxx\"", NULL },
        { "\"\\ud800\\n1234\"", NULL },
        { "\"\\ud800\\u0041\"", NULL },
        { "\"\\ud800\\ud800\"", NULL },
        { "\"\\udc00\\ud800\"", NULL },
        { "\"\\ud83d\\ude00\\ud83d\"", NULL }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {

        /* the text must not be read behind its end here either */

        text = exact(t[i].json, ngx_strlen(t[i].json));

        if (ngx_mcp_json_parse(&text, &v, &err) != NGX_OK) {
            ok(0, "%s: %s", t[i].json, err);
            continue;
        }

        if (t[i].text == NULL) {
            is(ngx_mcp_json_string(pool, &v, &s), NGX_DECLINED,
               "%s is no text", t[i].json);

        } else {
            ok(ngx_mcp_json_string(pool, &v, &s) == NGX_OK
               && same(&s, t[i].text), "%s", t[i].json);

            name = str(t[i].text);
            ok(ngx_mcp_json_is(&v, &name), "and compares as such");
        }

        name = str("abd");
        ok(!ngx_mcp_json_is(&v, &name), "and not as another");

        if (ngx_strchr(t[i].json, '\\')) {
            name.data = v.text.data + 1;
            name.len = v.text.len - 2;
            ok(!ngx_mcp_json_is(&v, &name),
               "nor as its escapes, taken for text");
        }

        release(&text);
    }

    /* long ones, and that all of the text is compared */

    for (n = 250; n < 260; n++) {
        p = buf;
        *p++ = '"';

        for (i = 0; i < n; i++) {
            p = ngx_cpymem(p, "\\u0061", 6);
        }

        *p++ = '"';

        text = exact(buf, p - buf);
        (void) ngx_mcp_json_parse(&text, &v, &err);

        ngx_memset(buf, 'a', n);
        name.data = buf;
        name.len = n;

        if (!ngx_mcp_json_is(&v, &name)
            || ngx_mcp_json_string(pool, &v, &s) != NGX_OK
            || s.len != n)
        {
            break;
        }

        name.len = n - 1;

        if (ngx_mcp_json_is(&v, &name)) {
            break;
        }

        name.len = n + 1;
        buf[n] = 'a';

        if (ngx_mcp_json_is(&v, &name)) {
            break;
        }

        name.len = n;
        buf[n - 1] = 'b';

        if (ngx_mcp_json_is(&v, &name)) {
            break;
        }

        release(&text);
    }

    is(n, 260, "long strings, with escapes");

    /* a text that ends within an escaped character */

    text = str("\"\\u20ac\"");
    (void) ngx_mcp_json_parse(&text, &v, &err);

    for (n = 0; n < 3; n++) {
        name = exact("\xe2\x82", n);
        ok(!ngx_mcp_json_is(&v, &name), "%d bytes of three", (int) n);
        release(&name);
    }
}


static void
test_integers(void)
{
    int64_t             n;
    ngx_uint_t          i;
    ngx_mcp_json_t      v;
    static struct {
        const char  *text;
        int64_t      n;
    } good[] = {
        { "0", 0 }, { "-0", 0 }, { "1", 1 }, { "-1", -1 },
        { "123456789012345678", 123456789012345678LL },
        { "999999999999999999", 999999999999999999LL },
        { "-999999999999999999", -999999999999999999LL }
    };
    static const char  *bad[] = {
        "1.0", "1e3", "1E3", "0.5", "-1.5", "1e0", "1000000000000000000",
        "-1000000000000000000", "9223372036854775808",
        "123456789012345678901234567890", "\"1\"", "null", "true", "[]", "{}"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        v = parse(good[i].text);
        n = 7;
        ok(ngx_mcp_json_integer(&v, &n) == NGX_OK
           && n == good[i].n, "integer %s", good[i].text);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        v = parse(bad[i]);
        is(ngx_mcp_json_integer(&v, &n), NGX_DECLINED, "%s is none", bad[i]);
    }
}


/* what is found while a text is parsed is what is found in it afterwards */

static void
test_shape(void)
{
    ngx_str_t        s;
    const char      *err;
    ngx_uint_t       i, n;
    ngx_mcp_json_t   v, in[4];
    ngx_mcp_shape_t  deepest[] = {
        { ngx_string("c"), 2 * sizeof(v), NULL }, { ngx_null_string, 0, NULL }
    };
    ngx_mcp_shape_t  deeper[] = {
        { ngx_string("b"), sizeof(v), deepest }, { ngx_null_string, 0, NULL }
    };
    ngx_mcp_shape_t  shape[] = {
        { ngx_string("a"), 0, deeper },
        { ngx_string("d"), 3 * sizeof(v), NULL },
        { ngx_null_string, 0, NULL }
    };
    static struct {
        const char  *text;
        const char  *found[4];       /* "": none; "2": twice */
    } t[] = {
        { "{}", { "", "", "", "" } },
        { "[]", { "", "", "", "" } },
        { "\"a\"", { "", "", "", "" } },
        { "{\"a\":1,\"d\":[1,{\"a\":2}]}",
          { "1", "", "", "[1,{\"a\":2}]" } },
        { " { \"d\" : null , \"a\" : { \"b\" : \"x\" } } ",
          { "{ \"b\" : \"x\" }", "\"x\"", "", "null" } },
        { "{\"a\":{\"b\":{\"c\":{\"d\":0}}},\"d\":{\"a\":{\"b\":5}}}",
          { "{\"b\":{\"c\":{\"d\":0}}}", "{\"c\":{\"d\":0}}", "{\"d\":0}",
            "{\"a\":{\"b\":5}}" } },
        { "{\"x\":{\"a\":1},\"b\":2,\"a\":[{\"b\":1}],\"c\":3}",
          { "[{\"b\":1}]", "", "", "" } },
        { "{\"\\u0061\":{\"\\u0062\":{\"c\":true}},\"aa\":1}",
          { "{\"\\u0062\":{\"c\":true}}", "{\"c\":true}", "true", "" } },
        { "{\"a\":1,\"a\":2,\"d\":1}", { "2", "", "", "1" } },
        { "{\"a\":{\"b\":1},\"\\u0061\":{\"b\":2},\"d\":1}",
          { "2", "1", "", "1" } },
        { "{\"a\":{\"b\":1,\"b\":1,\"b\":1}}",
          { "{\"b\":1,\"b\":1,\"b\":1}", "2", "", "" } },
        { "{\"a\":[[[[[[[[[[{\"a\":1}]]]]]]]]]],\"d\":[[]]}",
          { "[[[[[[[[[[{\"a\":1}]]]]]]]]]]", "", "", "[[]]" } },
        { "{\"d\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":"
          "{\"a\":{}}}}}}}}}},\"a\":{\"c\":1}}",
          { "{\"c\":1}", "", "",
            "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":"
            "{\"a\":{}}}}}}}}}}" } }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        s = exact(t[i].text, ngx_strlen(t[i].text));
        ngx_memzero(in, sizeof(in));

        is(ngx_mcp_json_shape(&s, &v, shape, in, &err), NGX_OK,
           "with a shape: %s", t[i].text);

        for (n = 0; n < 4; n++) {
            v = in[n];

            if (v.type == NGX_MCP_JSON_DUPLICATE) {
                ngx_str_set(&v.text, "2");
            }

            ok(same(&v.text, t[i].found[n]), "%c is there", "abcd"[n]);
        }

        release(&s);
    }
}


static void
test_rpc(void)
{
    ngx_int_t             rc;
    ngx_str_t             s;
    ngx_uint_t            i;
    ngx_mcp_rpc_t         rpc;
    ngx_mcp_rpc_error_t   err;
    static struct {
        const char  *text;
        ngx_int_t    code;           /* 0: fine */
        ngx_uint_t   kind;
        const char  *id;             /* "": none */
        const char  *method;
    } t[] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a/b\",\"params\":{}}", 0,
          NGX_MCP_RPC_REQUEST, "1", "a/b" },
        { "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0031\",\"method\":\"\\u0061\"}", 0,
          NGX_MCP_RPC_REQUEST, "\"\\u0031\"", "a" },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", 0,
          NGX_MCP_RPC_NOTIFICATION, "", "a" },
        { "{\"jsonrpc\":\"2.0\",\"id\":-5,\"result\":null}", 0,
          NGX_MCP_RPC_RESPONSE, "-5", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{}}", 0,
          NGX_MCP_RPC_RESPONSE, "0", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{},\"result\":1}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "0", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":0}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "0", "" },
        { "{\"jsonrpc\":\"2.0\",\"result\":0}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"a\"}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "", "" },
        { "{\"id\":3,\"method\":\"a\"}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "3", "" },
        { "{\"jsonrpc\":2.0,\"id\":3,\"method\":\"a\"}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "3", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":[]}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "3", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"\\ud800\"}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "3", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":3,\"id\":3,\"method\":\"a\"}",
          NGX_MCP_RPC_INVALID_REQUEST, 0, "", "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"params\":[]}",
          NGX_MCP_RPC_INVALID_PARAMS, 0, "3", "a" },
        { "[]", NGX_MCP_RPC_INVALID_REQUEST, 0, "", "" },
        { "1", NGX_MCP_RPC_INVALID_REQUEST, 0, "", "" },
        { "{", NGX_MCP_RPC_PARSE, 0, "", "" },
        { "", NGX_MCP_RPC_PARSE, 0, "", "" }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        s = exact(t[i].text, ngx_strlen(t[i].text));
        ngx_memzero(&err, sizeof(err));

        rc = ngx_mcp_rpc_parse(pool, &s, NULL, &rpc, &err);

        ok(rc == (t[i].code ? NGX_DECLINED : NGX_OK)
           && err.code == t[i].code
           && (err.detail != NULL || t[i].code == 0)
           && (t[i].code || rpc.kind == t[i].kind)
           && same(&rpc.id.text, t[i].id)
           && same(&rpc.method, t[i].method), "message %s", t[i].text);

        release(&s);
    }
}


/*
 * Documents with noise in them.  Whatever is taken for JSON must be walked
 * through without leaving it, each part of it must be JSON by itself, and the
 * parts must be what lies between commas.
 */

static uint64_t  state;

static uint32_t
draw(uint32_t n)
{
    /* splitmix64: the same everywhere for the same seed */

    uint64_t  z;

    z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;

    return (uint32_t) ((z ^ (z >> 31)) % n);
}


static ngx_uint_t
walk(ngx_mcp_json_t *v, ngx_uint_t depth)
{
    u_char               *last;
    int64_t               n;
    ngx_str_t             s, part;
    const char           *err;
    ngx_uint_t            bad;
    ngx_mcp_json_t        key, value, again;
    ngx_mcp_json_iter_t   it;

    bad = (depth > NGX_MCP_JSON_DEPTH);

    /* by itself it is the same */

    part = exact(v->text.data, v->text.len);
    bad += (ngx_mcp_json_parse(&part, &again, &err) != NGX_OK
            || again.type != v->type
            || again.text.len != v->text.len);
    release(&part);

    (void) ngx_mcp_json_integer(v, &n);

    if (v->type == NGX_MCP_JSON_STRING) {
        if (ngx_mcp_json_string(pool, v, &s) == NGX_OK) {
            bad += !ngx_mcp_json_is(v, &s);
            bad += (s.len > v->text.len - 2);
        }

        return bad;
    }

    if (v->type != NGX_MCP_JSON_ARRAY
        && v->type != NGX_MCP_JSON_OBJECT)
    {
        return bad;
    }

    last = v->text.data;
    ngx_mcp_json_iter(&it, v);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (it.object) {
            bad += (key.text.data <= last);
            last = key.text.data + key.text.len;
            bad += walk(&key, depth + 1);
        }

        bad += (value.text.data <= last);
        last = value.text.data + value.text.len;
        bad += (last >= v->text.data + v->text.len);

        if (bad) {
            return bad;
        }

        bad += walk(&value, depth + 1);
    }

    return bad;
}


static void
test_noise(void)
{
    char                 *env;
    size_t                len, at, from, size;
    u_char                buf[1024];
    uint64_t              seed, i, rounds;
    ngx_int_t             rc;
    ngx_str_t             s;
    ngx_uint_t            k, bad, good;
    const char           *err, *text;
    ngx_mcp_rpc_t         rpc;
    ngx_mcp_json_t        value;
    ngx_mcp_rpc_error_t   error;

    static const char  *documents[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
        "{\"name\":\"a\\u00e9\",\"arguments\":{\"x\":[1,-2.5e10,true,null]}}}",
        "[[],{},\"\",0,[{\"a\":[{\"b\":{}}]}],\"\\ud83d\\ude00\",false]",
        " { \"a\" : [ 1 , 2 ] , \"b\\\\\" : \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98"
        "\x80\" } ",
        "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\udc00\",1E-5,-0,0.1]",
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"a\":{\"b\":{\"c\":"
        "[[[1]]]}}},\"x\":\"\\\\\\\"\"}",
        "-123.456e+789"
    };
    static const char  pieces[] = "{}[]\",:\\u0a1-+.eEtfn \n\x01\x7f\x80\xc3"
                                  "\xff";

    env = getenv("MCP_TASKS_SEED");
    seed = env ? strtoull(env, NULL, 10)
               : (uint64_t) time(NULL) * 1000003 + getpid();
    rounds = 300000;
    state = seed;

    diag("MCP_TASKS_SEED=%llu", (unsigned long long) seed);

    for (bad = 0, good = 0, i = 0; i < rounds && bad == 0; i++) {

        text = documents[draw(sizeof(documents) / sizeof(documents[0]))];
        len = ngx_strlen(text);
        ngx_memcpy(buf, text, len);

        for (k = draw(4); k; k--) {

            at = draw((uint32_t) len);

            switch (draw(5)) {

            case 0:
                buf[at] = (u_char) draw(256);
                break;

            case 1:
                buf[at] = (u_char) pieces[draw(sizeof(pieces) - 1)];
                break;

            case 2:
                size = 1 + draw(4);
                size = ngx_min(size, len - at);
                len -= size;
                ngx_memmove(buf + at, buf + at + size, len - at);
                break;

            case 3:
                /* a copy of another part */
                from = draw((uint32_t) len);
                size = 1 + draw(16);
                size = ngx_min(size, len - from);

                if (len + size > sizeof(buf)) {
                    break;
                }

                ngx_memmove(buf + at + size, buf + at, len - at);
                ngx_memmove(buf + at, buf + (from < at ? from : from + size),
                            from < at ? ngx_min(size, at - from) : size);
                len += size;
                break;

            default:
                len = at;
                break;
            }

            if (len == 0) {
                break;
            }
        }

        s = exact(buf, len);
        rc = ngx_mcp_json_parse(&s, &value, &err);

        if (rc == NGX_OK) {
            good++;
            bad += (value.text.data < s.data
                    || value.text.data + value.text.len > s.data + s.len
                    || value.text.len == 0);
            bad += walk(&value, 1);
        }

        (void) ngx_mcp_rpc_parse(pool, &s, NULL, &rpc, &error);

        if (bad) {
            diag("round %llu: %.*s", (unsigned long long) i, (int) s.len,
                 s.data);
        }

        release(&s);
        ngx_reset_pool(pool);
    }

    is(bad, 0, "%llu texts with noise", (unsigned long long) rounds);
    ok(good > rounds / 10, "of which enough were JSON still: %lu",
       (unsigned long) good);
}


int
main(void)
{
    pool = ngx_create_pool(4096, ngx_cycle->log);

    test_types();
    test_refused();
    test_cut();
    test_words();
    test_depth();
    test_utf8();
    test_iterate();
    test_members();
    test_strings();
    test_integers();
    test_shape();
    test_rpc();
    test_noise();

    ngx_destroy_pool(pool);

    return done_testing();
}
