
/* Trace contexts: which are valid, which one counts, and how it is kept. */


#include "libtest.h"
#include "ngx_mcp_trace.h"


#define ID      "0af7651916cd43dd8448eb211c80319c"
#define SPAN    "00f067aa0ba902b7"
#define PARENT  "00-" ID "-" SPAN "-01"
#define OTHER   "00-11111111111111111111111111111111-2222222222222222-00"


static struct {
    const char  *text;
    ngx_uint_t   valid;
} parents[] = {
    { PARENT, 1 },
    { OTHER, 1 },
    { "00-" ID "-" SPAN "-ff", 1 },
    { "", 0 },
    { "00", 0 },
    { "00-" ID "-" SPAN, 0 },
    { "00-" ID "-" SPAN "-1", 0 },
    { "00-" ID "-" SPAN "-0g", 0 },
    { "00-" ID "-" SPAN "-0A", 0 },
    { "00-" ID "-" SPAN "-01 ", 0 },
    { " 00-" ID "-" SPAN "-01", 0 },
    { "00_" ID "-" SPAN "-01", 0 },
    { "00-" ID "_" SPAN "-01", 0 },
    { "00-" ID "-" SPAN "_01", 0 },
    { "00-00000000000000000000000000000000-" SPAN "-01", 0 },
    { "00-" ID "-0000000000000000-01", 0 },
    { "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", 0 },
    { "00-" ID "-00F067AA0BA902B7-01", 0 },
    { "00-0af7651916cd43dd8448eb211c80319-" SPAN "-010", 0 },

    /* versions: ff is forbidden, later ones may have more fields */

    { "ff-" ID "-" SPAN "-01", 0 },
    { "0F-" ID "-" SPAN "-01", 0 },
    { "01-" ID "-" SPAN "-01", 1 },
    { "cc-" ID "-" SPAN "-01-what-0815", 1 },
    { "cc-" ID "-" SPAN "-01.what", 0 },
    { "cc-" ID "-" SPAN "-01-wh\nat", 0 },
    { "cc-" ID "-" SPAN "-01-\"", 0 },
    { "00-" ID "-" SPAN "-01-what", 0 },
    { "cc-" ID "-" SPAN "-01-" ID "-" ID "-" ID, 0 },
    { NULL, 0 }
};

static struct {
    const char  *text;
    ngx_uint_t   valid;
} states[] = {
    { "rojo=00f067aa0ba902b7", 1 },
    { "rojo=1,congo=t61rcWkgMzE", 1 },
    { "rojo=1 , congo=2,", 1 },
    { "tenant@sys=a b!\"\\,_=", 0 },
    { "tenant@sys=a b!\"\\", 1 },
    { "1a=b", 1 },
    { "", 0 },
    { " ", 0 },
    { ",", 0 },
    { "a", 0 },
    { "a=", 0 },
    { "=b", 0 },
    { "A=b", 0 },
    { "@a=b", 0 },
    { "a=b=c", 0 },
    { "a=b\x7f", 0 },
    { "a=b\nX: 1", 0 },
    { "a=\xc3\xa9", 0 },
    { NULL, 0 }
};

static struct {
    const char  *text;
    ngx_uint_t   valid;
} baggages[] = {
    { "user=ann", 1 },
    { "user=ann, region=eu;p=1", 1 },
    { "", 0 },
    { "user", 0 },
    { "=ann", 0 },
    { "user=\"ann\"", 0 },
    { "user=a\\", 0 },
    { "user=a\r\nX: 1", 0 },
    { "user=\xc3\xa9", 0 },
    { NULL, 0 }
};


static void
test_valid(void)
{
    u_char      long_state[600];
    ngx_str_t   s;
    ngx_uint_t  i, n;

    for (i = 0; parents[i].text; i++) {
        s = str(parents[i].text);
        is(ngx_mcp_traceparent_valid(&s), parents[i].valid, "traceparent %d",
           (int) i);
    }

    for (i = 0; states[i].text; i++) {
        s = str(states[i].text);
        is(ngx_mcp_tracestate_valid(&s), states[i].valid, "tracestate %d",
           (int) i);
    }

    for (i = 0; baggages[i].text; i++) {
        s = str(baggages[i].text);
        is(ngx_mcp_baggage_valid(&s), baggages[i].valid, "baggage %d",
           (int) i);
    }

    /* 32 members, 512 bytes, 256 bytes of a value */

    for (n = 31; n <= 33; n++) {
        s.data = long_state;

        for (s.len = 0, i = 0; i < n; i++) {
            ngx_memcpy(s.data + s.len, "a=b,", 4);
            s.len += 4;
        }

        is(ngx_mcp_tracestate_valid(&s), n <= 32, "%d members", (int) n);
    }

    ngx_memset(long_state, 'x', sizeof(long_state));
    long_state[1] = '=';

    for (s.len = 257; s.len <= 259; s.len++) {
        is(ngx_mcp_tracestate_valid(&s), s.len <= 258, "%d bytes",
           (int) s.len);
    }

    long_state[256] = ',';
    long_state[258] = '=';
    s.len = 512;
    is(ngx_mcp_tracestate_valid(&s), 1, "512 bytes");
    s.len = 513;
    is(ngx_mcp_tracestate_valid(&s), 0, "and not more");
}


static struct {
    const char  *params;
    const char  *parent;      /* headers */
    const char  *state;
    const char  *baggage;
    const char  *want;        /* params afterwards; NULL: unchanged */
    const char  *traceparent; /* the one that counts */
} cases[] = {
    { "{\"name\":\"a\"}", NULL, NULL, NULL, NULL, "" },
    { "{\"name\":\"a\"}", "x", "a=b", NULL, NULL, "" },
    { "{\"name\":\"a\"}", PARENT, NULL, NULL,
      "{\"_meta\":{\"traceparent\":\"" PARENT "\"},\"name\":\"a\"}", PARENT },
    { "{ \"name\" : 1.0 }", PARENT, "a=\"\\", "u=v",
      "{\"_meta\":{\"traceparent\":\"" PARENT "\",\"tracestate\":"
      "\"a=\\\"\\\\\",\"baggage\":\"u=v\"}, \"name\" : 1.0 }", PARENT },
    { "{ }", PARENT, NULL, NULL,
      "{\"_meta\":{\"traceparent\":\"" PARENT "\"} }", PARENT },
    { "{\"_meta\":{ },\"n\":1}", PARENT, NULL, NULL,
      "{\"_meta\":{\"traceparent\":\"" PARENT "\" },\"n\":1}", PARENT },
    { "{\"n\":1, \"_meta\": { \"x\" : 1e5 } }", PARENT, NULL, NULL,
      "{\"n\":1, \"_meta\": {\"traceparent\":\"" PARENT "\", \"x\" : 1e5 } }",
      PARENT },

    /* "_meta" has precedence, and its tracestate is not mixed */

    { "{\"_meta\":{\"traceparent\":\"" OTHER "\"}}", PARENT, "a=b", NULL,
      NULL, OTHER },
    { "{\"_meta\":{\"traceparent\":\"" OTHER "\"}}", PARENT, "a=b", "u=v",
      "{\"_meta\":{\"baggage\":\"u=v\",\"traceparent\":\"" OTHER "\"}}",
      OTHER },
    { "{\"_meta\":{\"trace\\u0070arent\":\"\\u0030" "0-" ID "-" SPAN "-01\","
      "\"tracestate\":\"a=c\",\"baggage\":\"x=y\"}}", OTHER, "a=b", "u=v",
      NULL, PARENT },

    /* what is invalid is removed */

    { "{\"_meta\":{\"a\":1,\"traceparent\":\"evil\",\"b\":2}}", NULL, NULL,
      NULL, "{\"_meta\":{\"a\":1,\"b\":2}}", "" },
    { "{\"_meta\":{\"traceparent\":\"evil\",\"tracestate\":\"a=b\"}}", NULL,
      NULL, NULL, "{\"_meta\":{}}", "" },
    { "{\"_meta\":{\"trac\\u0065parent\":7,\"x\":1}}", PARENT, NULL, NULL,
      "{\"_meta\":{\"traceparent\":\"" PARENT "\",\"x\":1}}", PARENT },
    { "{\"_meta\":{\"traceparent\":\"" OTHER "\",\"x\":1,"
      "\"traceparent\":\"" OTHER "\"}}", NULL, NULL, NULL,
      "{\"_meta\":{\"x\":1}}", "" },
    { "{\"_meta\":{\"tracestate\":\"a=b\"}}", PARENT, "c=d", NULL,
      "{\"_meta\":{\"traceparent\":\"" PARENT "\",\"tracestate\":\"c=d\"}}",
      PARENT },
    { "{\"_meta\":{\"traceparent\":\"" OTHER "\",\"tracestate\":\"\"}}",
      PARENT, "a=b", NULL, "{\"_meta\":{\"traceparent\":\"" OTHER "\"}}",
      OTHER },
    { "{\"_meta\":{\"baggage\":\"\\n\",\"x\":1}}", NULL, NULL, "u=v",
      "{\"_meta\":{\"baggage\":\"u=v\",\"x\":1}}", "" },
    { NULL, NULL, NULL, NULL, NULL, NULL }
};


static void
test_kept(void)
{
    ngx_str_t         text, out, headers[NGX_MCP_TRACES];
    ngx_uint_t        i, changes;
    const char       *err, *want;
    ngx_mcp_json_t    params, meta, members[NGX_MCP_TRACES];
    ngx_mcp_trace_t   trace;
    ngx_mcp_member_t  outer[] = {
        { ngx_string("_meta"), &meta }
    };
    ngx_mcp_member_t  inner[] = {
        { ngx_string("traceparent"), &members[0] },
        { ngx_string("tracestate"), &members[1] },
        { ngx_string("baggage"), &members[2] }
    };

    for (i = 0; cases[i].params; i++) {
        text = str(cases[i].params);
        headers[0] = str(cases[i].parent ? cases[i].parent : "");
        headers[1] = str(cases[i].state ? cases[i].state : "");
        headers[2] = str(cases[i].baggage ? cases[i].baggage : "");

        is(ngx_mcp_json_parse(&text, &params, &err), NGX_OK, "%s",
           cases[i].params);
        (void) ngx_mcp_json_members(&params, outer, 1);

        if (ngx_mcp_json_members(&meta, inner, 3) == NGX_DECLINED) {
            members[0].type = NGX_MCP_JSON_DUPLICATE;
        }

        is(ngx_mcp_trace_read(test_pool, members, headers, &trace), NGX_OK,
           "  is read");
        ok(trace.value[0].len == strlen(cases[i].traceparent)
           && (trace.value[0].len == 0
               || memcmp(trace.value[0].data, cases[i].traceparent,
                         trace.value[0].len) == 0),
           "  its traceparent is \"%s\"", cases[i].traceparent);

        changes = (trace.add || trace.drop);
        is(changes, cases[i].want != NULL, "  it is %s",
           cases[i].want ? "changed" : "left as it is");

        want = cases[i].want;

        if (want) {
            is(ngx_mcp_trace_write(test_pool, &trace, &params, &meta, &out),
               NGX_OK, "  is written");
            ok(out.len == strlen(want)
               && memcmp(out.data, want, out.len) == 0, "  as %s", want);
        }
    }
}


int
main(void)
{
    test_pool = ngx_create_pool(4096, ngx_cycle->log);

    test_valid();
    test_kept();

    return done_testing();
}
