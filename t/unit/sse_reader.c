
/* Reading server-sent events, however they are cut. */


#include "libtest.h"
#include "ngx_mcp_sse_reader.h"

#include <stdio.h>
#include <time.h>


#define BOM   "\xef\xbb\xbf"
#define MANY  ((size_t) 1 << 30)


/*
 * What came of a text, as text: for each event "(id retry data)", at the end
 * "id retry", and "!" where it was refused.
 */

typedef struct {
    u_char     *data;
    size_t      len;
    size_t      size;
    ngx_uint_t  events;
    ngx_uint_t  stop;         /* at which event to refuse; 0: never */
    ngx_int_t   code;
} record_t;


static void
put(record_t *r, const void *p, size_t n)
{
    if (r->len + n > r->size) {
        r->size = 2 * (r->len + n);
        r->data = realloc(r->data, r->size);

        if (r->data == NULL) {
            exit(2);
        }
    }

    if (n) {
        memcpy(r->data + r->len, p, n);
        r->len += n;
    }
}


static void
put_state(record_t *r, u_char *id, size_t len, uint64_t retry)
{
    int   n;
    char  buf[32];

    put(r, id, len);
    n = snprintf(buf, sizeof(buf), " %llu", (unsigned long long) retry);
    put(r, buf, n);
}


static void
put_event(record_t *r, u_char *id, size_t len, uint64_t retry, u_char *data,
    size_t size)
{
    put(r, "(", 1);
    put_state(r, id, len, retry);
    put(r, " ", 1);
    put(r, data, size);
    put(r, ")", 1);
}


static void
forget(record_t *r)
{
    free(r->data);
    memset(r, 0, sizeof(record_t));
}


static ngx_uint_t
equal(record_t *a, const void *p, size_t n)
{
    return a->len == n && (n == 0 || memcmp(a->data, p, n) == 0);
}


static ngx_int_t
note(void *ctx, ngx_mcp_sse_reader_t *reader, ngx_str_t *data)
{
    record_t  *r = ctx;

    put_event(r, reader->id.data, reader->id.len, reader->retry, data->data,
              data->len);

    return (++r->events == r->stop) ? r->code : NGX_OK;
}


/* in memory of exactly that size, so that a sanitizer sees a read too far */

static ngx_int_t
give(ngx_mcp_sse_reader_t *reader, const void *p, size_t n, record_t *r)
{
    u_char     *copy;
    ngx_int_t   rc;

    copy = malloc(n ? n : 1);

    if (copy == NULL) {
        exit(2);
    }

    memcpy(copy, p, n);
    rc = ngx_mcp_sse_reader_read(reader, n ? copy : NULL, n, note, r);
    free(copy);

    return rc;
}


static void
finish(ngx_mcp_sse_reader_t *reader, ngx_int_t rc, record_t *r)
{
    if (rc == NGX_OK) {
        put_state(r, reader->id.data, reader->id.len, reader->retry);

    } else {
        put(r, "!", 1);
    }

    ngx_mcp_sse_reader_free(reader);
}


/* in up to three pieces */

static void
feed_cut(const char *text, size_t len, size_t a, size_t b, size_t max,
    record_t *r)
{
    ngx_int_t             rc;
    ngx_mcp_sse_reader_t  reader;

    ngx_mcp_sse_reader_init(&reader, max, ngx_cycle->log);

    rc = give(&reader, text, a, r);

    if (rc == NGX_OK) {
        rc = give(&reader, text + a, b - a, r);
    }

    if (rc == NGX_OK) {
        rc = give(&reader, text + b, len - b, r);
    }

    finish(&reader, rc, r);
}


static void
feed_bytes(const char *text, size_t len, size_t max, record_t *r)
{
    size_t                i;
    ngx_int_t             rc;
    ngx_mcp_sse_reader_t  reader;

    ngx_mcp_sse_reader_init(&reader, max, ngx_cycle->log);
    rc = NGX_OK;

    for (i = 0; i < len && rc == NGX_OK; i++) {
        rc = give(&reader, text + i, 1, r);
    }

    finish(&reader, rc, r);
}


/* all ways to cut it in three make the same of it */

static void
check(const char *text, size_t len, size_t max, const char *want,
    const char *name)
{
    size_t      a, b;
    record_t    r;
    ngx_uint_t  bad;

    memset(&r, 0, sizeof(r));
    bad = 0;

    for (a = 0; a <= len; a++) {
        for (b = a; b <= len; b++) {

            feed_cut(text, len, a, b, max, &r);

            if (!equal(&r, want, strlen(want))) {
                if (bad++ == 0) {
                    diag("cut at %lu and %lu: %.*s", (unsigned long) a,
                         (unsigned long) b, (int) r.len, (char *) r.data);
                }
            }

            forget(&r);
        }
    }

    feed_bytes(text, len, max, &r);

    if (!equal(&r, want, strlen(want))) {
        diag("byte by byte: %.*s", (int) r.len, (char *) r.data);
        bad++;
    }

    forget(&r);

    is(bad, 0, "%s", name);
}


#define events(text, want, name)                                              \
    check(text, sizeof(text) - 1, MANY, want, name)
#define limited(text, max, want, name)                                        \
    check(text, sizeof(text) - 1, max, want, name)


static void
test_lines(void)
{
    events("", " 0", "nothing");
    events("\n\n\r\r\n", " 0", "empty lines");
    events("data: {}\n\n", "( 0 {}) 0", "LF");
    events("data: {}\r\r", "( 0 {}) 0", "CR");
    events("data: {}\r\n\r\n", "( 0 {}) 0", "CRLF");
    events("data:a\r\ndata:b\rdata:c\ndata:d\r\n\ndata:e\n\r\n",
           "( 0 a\nb\nc\nd)( 0 e) 0", "all three of them");
    events("data:a\n\rdata:b\r\n\r", "( 0 a)( 0 b) 0", "LF CR are two");
    events("data:a\n\ndata:b\n\ndata:c\n\n", "( 0 a)( 0 b)( 0 c) 0",
           "several events");
    events("data:a\n\ndata:b\n", "( 0 a) 0", "no empty line, no event");
    events("data:a\n\ndata:b", "( 0 a) 0", "not even a line");

    events(BOM "data:a\n\n", "( 0 a) 0", "a BOM");
    events(BOM "\n" BOM "data:a\n\ndata:b\n\n", "( 0 b) 0",
           "a BOM in the midst of it is a part of the name");
    events(BOM BOM "data:a\n\ndata:b\n\n", "( 0 b) 0", "so is a second one");
    events("\xef\xbb" "data:a\n\ndata:b\n\n", "( 0 b) 0",
           "and a part of one");
    events("\xef\ndata:b\n\n", "( 0 b) 0", "and a line of it");
    events("\n" BOM "data:a\n\ndata:b\n\n", "( 0 b) 0",
           "a BOM comes first, or not");
}


static void
test_fields(void)
{
    events("data\n\n", "( 0 ) 0", "data without a colon");
    events("data:\n\n", "( 0 ) 0", "data without a value");
    events("data: \n\n", "( 0 ) 0", "nor with a space");
    events("data:  a \n\n", "( 0  a ) 0", "one space is taken away");
    events("data:\ta\n\n", "( 0 \ta) 0", "but not a tab");
    events("data::a:\n\n", "( 0 :a:) 0", "colons in a value");
    events("data\ndata\n\n", "( 0 \n) 0", "two that are empty");
    events("data:a\ndata\ndata: b\n\n", "( 0 a\n\nb) 0", "lines are joined");
    events("data:a\n:x\nx:y\ndata:b\n\n", "( 0 a\nb) 0",
           "also over other lines");
    events("data:a\n\n\ndata:b\n\n\n", "( 0 a)( 0 b) 0",
           "no data is no event");

    events(":\n: a comment\n:data:a\ndata:b\n\n", "( 0 b) 0", "comments");
    events(" data:a\ndata :a\nDATA:a\ndat:a\ndataa:a\nd\n\ndata:b\n\n",
           "( 0 b) 0", "names that are almost known");
    events("eventdata:a\nunknown\nunknown: data:a\nretryx\ndata:b\n\n",
           "( 0 b) 0", "names that are not known");

    events("event:message\ndata:a\n\n", "( 0 a) 0", "a message");
    events("event:\ndata:a\n\n", "( 0 a) 0", "an empty type");
    events("event\ndata:a\n\n", "( 0 a) 0", "a type without a colon");
    events("event:ping\ndata:a\n\ndata:b\n\n", "( 0 b) 0", "another type");
    events("data:a\nevent: ping\n\ndata:b\n\n", "( 0 b) 0",
           "also after the data");
    events("event:messages\ndata:a\n\nevent:mess\ndata:b\n\n"
           "event:Message\ndata:c\n\nevent: message \ndata:d\n\n"
           "event:  message\ndata:e\n\n",
           " 0", "types that are almost right");
    events("event:ping\nevent:message\ndata:a\n\n"
           "event:message\nevent:ping\ndata:b\n\n"
           "event:ping\nevent\ndata:c\n\n",
           "( 0 a)( 0 c) 0", "the last type counts");
}


static void
test_id(void)
{
    events("id: 7\ndata:a\n\n", "(7 0 a)7 0", "an id");
    events("data:a\nid:7\n\ndata:b\n\n", "(7 0 a)(7 0 b)7 0",
           "it stays for the next event");
    events("id:7\n\nid:8\ndata:b\n\n", "(8 0 b)8 0", "and changes");
    events("id:7\n\n", "7 0", "an id without data");
    events("id:7\nevent:ping\ndata:a\n\n", "7 0", "and of another type");
    events("id:7\ndata:a\n\nid:8\ndata:b\n", "(7 0 a)7 0",
           "what is not complete has no id");
    events("id:7\n\nid\ndata:a\n\n", "( 0 a) 0", "an id is taken back");
    events("id:7\n\nid:\ndata:a\n\n", "( 0 a) 0", "with a colon, too");
    events("id:7\nid:8\ndata:a\n\n", "(8 0 a)8 0", "the last one counts");
    events("id:7\nid:8\0\ndata:a\n\n", "(7 0 a)7 0", "but not with a NUL");
    events("id:7\nid:\0" "8\ndata:a\n\n", "(7 0 a)7 0", "wherever that is");
}


static void
test_id_length(void)
{
    char      text[1024], want[1024];
    record_t  r;
    size_t    n, i;

    for (n = NGX_MCP_SSE_ID - 1;
         n <= NGX_MCP_SSE_ID + 1;
         n++)
    {
        i = sprintf(text, "id:first\n\nid:");
        memset(text + i, 'x', n);
        i += n;
        i += sprintf(text + i, "\ndata:a\n\n");

        if (n <= NGX_MCP_SSE_ID) {
            sprintf(want, "(%.*s 0 a)%.*s 0", (int) n, text + 13,
                    (int) n, text + 13);

        } else {
            sprintf(want, "(first 0 a)first 0");
        }

        memset(&r, 0, sizeof(r));
        feed_cut(text, i, i, i, MANY, &r);
        ok(equal(&r, want, strlen(want)), "an id of %lu bytes",
           (unsigned long) n);
        forget(&r);

        feed_bytes(text, i, MANY, &r);
        ok(equal(&r, want, strlen(want)), "byte by byte");
        forget(&r);
    }
}


static void
test_retry(void)
{
    events("retry: 1500\n", " 1500", "a retry, which needs no event");
    events("retry:1500\ndata:a\n\nretry:10\n", "( 1500 a) 10", "it changes");
    events("retry:1500\nretry\nretry:\nretry: \n", " 1500",
           "an empty one is ignored");
    events("retry:5\nretry:-1\nretry:1.5\nretry:1s\nretry:  1\nretry:1 \n"
           "retry:0x1\n",
           " 5", "what is not digits is ignored");
    events("retry:5", " 0", "a line that does not end is ignored");
    events("retry:007\n", " 7", "zeros at the front");
    events("retry:2147483647\n", " 2147483647", "the most there is");
    events("retry:2147483648\n", " 2147483647", "and more");
    events("retry:99999999999999999999999999999999\n", " 2147483647",
           "much more");
}


static void
test_limits(void)
{
    limited("data:abcd\n\n", 4, "( 0 abcd) 0", "just the limit");
    limited("data:abcde\n\n", 4, "!", "a byte more");
    limited("data:abcde", 4, "!", "it is not waited for the end of the line");
    limited("data:ab\ndata:c\n\n", 4, "( 0 ab\nc) 0", "the limit in two lines");
    limited("data:ab\ndata:cd\n\n", 4, "!", "a byte more in two lines");
    limited("data:abcd\ndata\n\n", 4, "!", "a byte more that joins lines");
    limited("data:abcd\ndata:", 4, "!", "which is seen at once");
    limited("data\ndata\ndata\n\n", 2, "( 0 \n\n) 0", "nothing but joints");
    limited("data\ndata\ndata\ndata\n\n", 2, "!", "too many of them");
    limited("data:abcd\n\ndata:abcd\n\n", 4, "( 0 abcd)( 0 abcd) 0",
            "each event has its own limit");
    limited("data:ab\n\ndata:abcde\n\ndata:ab\n\n", 4, "( 0 ab)!",
            "what was before it is handed out");
    limited("event:ping\ndata:abcde\n\n", 4, "!", "an event of another type");
    limited("id:12345\n:abcdef\nunknown:abcdef\nevent:message\nretry:10000\n"
            "data:abcd\n\n", 4, "(12345 10000 abcd)12345 10000",
            "other fields are not limited by it");
    limited("data\n\n", 0, "( 0 ) 0", "nothing allowed, nothing there");
    limited("data:a\n\n", 0, "!", "nothing allowed");
}


/* lines that never end, of n bytes or more each */

static void
test_memory(void)
{
    u_char               *piece;
    size_t                i, n;
    record_t              r;
    ngx_int_t             rc;
    ngx_uint_t            k;
    ngx_mcp_sse_reader_t  reader;
    static const char    *endless[] = {
        ":", "", "unknown:", "id:", "event:", "retry:", "data"
    };

    n = 65536;
    piece = malloc(n);

    if (piece == NULL) {
        exit(2);
    }

    memset(&r, 0, sizeof(r));

    for (k = 0; k < sizeof(endless) / sizeof(endless[0]); k++) {

        /* digits, as no other value may be long */
        memset(piece, '1', n);

        ngx_mcp_sse_reader_init(&reader, 100, ngx_cycle->log);
        rc = give(&reader, endless[k], strlen(endless[k]), &r);

        for (i = 0; i < 100 && rc == NGX_OK; i++) {
            rc = give(&reader, piece, n, &r);
        }

        is(rc, NGX_OK, "an endless line: \"%s\"", endless[k]);
        is(reader.size, 0, "costs no memory");

        rc = give(&reader, "\nevent\ndata:a\n\n", 15, &r);
        is(r.events, 1, "and the rest is read");

        ngx_mcp_sse_reader_free(&reader);
        forget(&r);
    }

    /* data: by and by up to its limit, and back */

    ngx_mcp_sse_reader_init(&reader, 100000, ngx_cycle->log);

    (void) give(&reader, "data:", 5, &r);
    is(reader.size, 0, "no data needs no memory");

    (void) give(&reader, piece, 1, &r);
    is(reader.size, NGX_MCP_SSE_SIZE, "a little to begin with");

    (void) give(&reader, piece, NGX_MCP_SSE_SIZE, &r);
    is(reader.size, 2 * NGX_MCP_SSE_SIZE, "it doubles");

    (void) give(&reader, piece, n, &r);
    is(reader.size, n + NGX_MCP_SSE_SIZE + 1, "or takes what it is");

    (void) give(&reader, piece, 20000, &r);
    is(reader.size, 100000, "but no more than it may");

    i = 100000 - 1 - NGX_MCP_SSE_SIZE - n - 20000;
    is(give(&reader, piece, i, &r), NGX_OK, "all that it may");
    is(give(&reader, "\n\n", 2, &r), NGX_OK, "the end of it");
    is(r.events, 1, "an event");
    is(r.len, 100000 + sizeof("( 0 )") - 1, "all of it");
    is(reader.size, 0, "the buffer is not kept");

    (void) give(&reader, "data:abc\n\n", 10, &r);
    is(r.events, 2, "another event");
    is(reader.size, NGX_MCP_SSE_SIZE, "a small buffer is kept");

    ngx_mcp_sse_reader_free(&reader);
    ngx_mcp_sse_reader_free(&reader);
    is(reader.size, 0, "until it is freed, even twice");

    ngx_mcp_sse_reader_init(&reader, 100, ngx_cycle->log);
    (void) give(&reader, "data:abc\n\n", 10, &r);
    is(reader.size, 100, "a buffer not larger than what it may get");
    ngx_mcp_sse_reader_free(&reader);

    forget(&r);
    free(piece);
}


/* a handler that takes the feed with it */

static ngx_int_t
leave(void *ctx, ngx_mcp_sse_reader_t *reader, ngx_str_t *data)
{
    ngx_mcp_sse_reader_free(reader);
    free(reader);

    return NGX_DONE;
}


static void
test_refusal(void)
{
    u_char                  *text;
    size_t                   n;
    record_t                 r;
    ngx_mcp_sse_reader_t     reader, *gone;
    static const ngx_int_t   codes[] = {
        NGX_DONE, NGX_ERROR, NGX_DECLINED, NGX_AGAIN, NGX_ABORT, 1
    };

    for (n = 0; n < sizeof(codes) / sizeof(codes[0]); n++) {
        memset(&r, 0, sizeof(r));
        r.stop = 2;
        r.code = codes[n];

        ngx_mcp_sse_reader_init(&reader, 100, ngx_cycle->log);
        is(give(&reader, "data:a\n\ndata:b\n\nid:1\ndata:c\n\n", 29, &r),
           codes[n], "a handler says %ld", (long) codes[n]);
        ok(equal(&r, "( 0 a)( 0 b)", 12), "and gets no more");
        is(reader.id.len, 0, "nothing more is read");
        ngx_mcp_sse_reader_free(&reader);

        forget(&r);
    }

    /* with a buffer that is kept, and with one that is not */

    for (n = 100; n <= 100000; n *= 1000) {
        gone = malloc(sizeof(ngx_mcp_sse_reader_t));
        text = malloc(n);

        if (gone == NULL || text == NULL) {
            exit(2);
        }

        memset(text, 'x', n);
        memcpy(text, "data:", 5);
        memcpy(text + n - 10, "\r\n\r\ndata:\n", 10);

        ngx_mcp_sse_reader_init(gone, MANY, ngx_cycle->log);
        is(ngx_mcp_sse_reader_read(gone, text, n, leave, NULL), NGX_DONE,
           "a handler frees all, after %lu bytes", (unsigned long) n);

        free(text);
    }
}


/* a handler that keeps the data of every other event */

typedef struct {
    ngx_str_t   data[4];
    ngx_uint_t  n;
    ngx_uint_t  events;
} kept_t;


static ngx_int_t
keep(void *ctx, ngx_mcp_sse_reader_t *reader, ngx_str_t *data)
{
    kept_t  *k = ctx;

    if (k->events++ % 2 == 0) {
        k->data[k->n++] = *data;
        data->data = NULL;
    }

    return NGX_OK;
}


static void
test_keep(void)
{
    size_t                i, n, bad;
    u_char               *text;
    kept_t                k;
    ngx_mcp_sse_reader_t  reader;
    static size_t         size[] = { 10, 20, 3 * NGX_MCP_SSE_SIZE,
                                2 * NGX_MCP_SSE_SIZE, 100, 5,
                                4 * NGX_MCP_SSE_SIZE };

    memset(&k, 0, sizeof(k));
    text = malloc(5 * NGX_MCP_SSE_SIZE);

    if (text == NULL) {
        exit(2);
    }

    ngx_mcp_sse_reader_init(&reader, MANY, ngx_cycle->log);

    for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        n = sprintf((char *) text, "data:");
        memset(text + n, 'a' + (int) i, size[i]);
        memcpy(text + n + size[i], "\n\n", 2);

        is(ngx_mcp_sse_reader_read(&reader, text, n + size[i] + 2, keep, &k),
           NGX_OK, "an event of %lu bytes", (unsigned long) size[i]);
    }

    free(text);
    is(k.events, 7, "all events");
    is(k.n, 4, "every other is kept");

    for (i = 0; i < k.n; i++) {
        is(k.data[i].len, size[2 * i], "of that size");

        for (bad = 0, n = 0; n < k.data[i].len; n++) {
            bad += (k.data[i].data[n] != 'a' + 2 * i);
        }

        is(bad, 0, "and is what it was");
        ngx_free(k.data[i].data);
    }

    ngx_mcp_sse_reader_free(&reader);
}


/* time that grows with the square would be minutes here */

static void
test_time(void)
{
    u_char               *text;
    size_t                i, n, len;
    record_t              r;
    clock_t               start;
    ngx_uint_t            k;
    ngx_mcp_sse_reader_t  reader;
    static const char    *lines[] = {
        "\r", "\n", "data:x\r", "data:x\n", ":x\r", "id:1\r\r", "data:x"
    };

    n = 4 * 1024 * 1024;
    text = malloc(n);

    if (text == NULL) {
        exit(2);
    }

    for (k = 0; k < sizeof(lines) / sizeof(lines[0]); k++) {

        len = strlen(lines[k]);

        for (i = 0; i < n; i++) {
            text[i] = lines[k][i % len];
        }

        memset(&r, 0, sizeof(r));
        ngx_mcp_sse_reader_init(&reader, MANY, ngx_cycle->log);
        start = clock();

        (void) ngx_mcp_sse_reader_read(&reader, text, n, note, &r);

        for (i = 0; i < n; i += 8) {
            (void) ngx_mcp_sse_reader_read(&reader, text + i, 8, note, &r);
        }

        ok(clock() - start < 10 * CLOCKS_PER_SEC,
           "lines %lu, millions of bytes in one piece and in many",
           (unsigned long) k);

        ngx_mcp_sse_reader_free(&reader);
        forget(&r);
    }

    free(text);
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


/* the standard read word by word, from a text that is all there */

typedef struct {
    u_char    data[8192];
    size_t    len;
    u_char    id[8192];
    size_t    id_len;
    u_char    last[8192];
    size_t    last_len;
    u_char    type[8192];
    size_t    type_len;
    uint64_t  retry;
    size_t    max;
} model_t;


static ngx_uint_t
model_is(u_char *p, size_t n, const char *s)
{
    return n == strlen(s) && memcmp(p, s, n) == 0;
}


/* whether it may go on */

static ngx_uint_t
model_field(model_t *m, u_char *name, size_t n, u_char *value, size_t len,
    ngx_uint_t complete)
{
    size_t    i;
    uint64_t  retry;

    if (model_is(name, n, "data")) {
        memcpy(m->data + m->len, value, len);
        m->len += len;
        m->data[m->len++] = '\n';

        /* the last LF is not a part of the data */
        return m->len - 1 <= m->max;
    }

    if (!complete) {
        return 1;
    }

    if (model_is(name, n, "event")) {
        memcpy(m->type, value, len);
        m->type_len = len;
    }

    if (model_is(name, n, "id")
        && len <= NGX_MCP_SSE_ID
        && memchr(value, '\0', len) == NULL)
    {
        memcpy(m->id, value, len);
        m->id_len = len;
    }

    if (model_is(name, n, "retry") && len) {
        retry = 0;

        for (i = 0; i < len; i++) {
            if (value[i] < '0' || value[i] > '9') {
                return 1;
            }

            retry = ngx_min(retry * 10 + (value[i] - '0'), 0x7fffffff);
        }

        m->retry = retry;
    }

    return 1;
}


static void
model_dispatch(model_t *m, record_t *r)
{
    memcpy(m->last, m->id, m->id_len);
    m->last_len = m->id_len;

    if (m->len && (m->type_len == 0
                   || model_is(m->type, m->type_len, "message")))
    {
        put_event(r, m->last, m->last_len, m->retry, m->data, m->len - 1);
    }

    m->len = 0;
    m->type_len = 0;
}


static void
model_read(model_t *m, u_char *text, size_t len, record_t *r)
{
    u_char  *colon, *value;
    size_t   i, n;

    i = 0;

    if (len >= 3 && memcmp(text, BOM, 3) == 0) {
        i = 3;
    }

    while (i < len) {

        for (n = i; n < len && text[n] != '\n' && text[n] != '\r'; n++) {
            /* void */
        }

        colon = memchr(text + i, ':', n - i);
        value = text + n;

        if (colon) {
            value = colon + 1;
            value += (value < text + n && *value == ' ');

        } else if (n < len) {
            colon = text + n;
        }

        if (n == i && n < len) {
            model_dispatch(m, r);

        } else if (colon && colon > text + i
                   && !model_field(m, text + i, colon - text - i, value,
                                   text + n - value, n < len))
        {
            put(r, "!", 1);
            return;
        }

        i = n + 1 + (n + 1 < len && text[n] == '\r' && text[n + 1] == '\n');
    }

    put_state(r, m->last, m->last_len, m->retry);
}


/* words that make a stream, and what may stand in its way */

static size_t
random_text(u_char *text, size_t room)
{
    size_t             len, n;
    const char        *word;
    static const char  long_word[] =
        "01234567890123456789012345678901234567890123456789"
        "01234567890123456789012345678901234567890123456789"
        "01234567890123456789012345678901234567890123456789";
    static const char *words[] = {
        "data", "data:", "data: ", "data:a\n", "data: {\"a\": 1}\n\n",
        "event", "event:", "event: message\n", "event: ping\r", "mess", "age",
        "id", "id:", "id: 1\r\n", "id", "retry", "retry: ", "retry:12\n",
        "unknown: ", ":", ":", " ", "x", "7", "1000", BOM, "\xef", "\xbb",
        "\n", "\n", "\n", "\r", "\r", "\r\n", "\r\n", "\n\n", "\r\n\r\n",
        "", long_word
    };

    len = 0;

    for (n = draw(40); n; n--) {

        word = words[draw(sizeof(words) / sizeof(words[0]))];

        if (len + sizeof(long_word) > room) {
            break;
        }

        if (*word == '\0') {
            /* the NUL itself */
            text[len++] = '\0';
            continue;
        }

        memcpy(text + len, word, strlen(word));
        len += strlen(word);
    }

    return len;
}


static void
test_random(void)
{
    u_char                text[4096];
    size_t                len, at, n, max;
    record_t              want, got;
    ngx_int_t             rc;
    ngx_uint_t            i, k, bad, rounds, events, refused;
    static model_t        m;
    ngx_mcp_sse_reader_t  reader;

    rounds = 100000;
    bad = 0;
    events = 0;
    refused = 0;

    for (i = 0; i < rounds && bad < 5; i++) {

        len = random_text(text, sizeof(text));
        max = draw(4) ? MANY : draw(30);

        memset(&want, 0, sizeof(want));
        m.len = m.id_len = m.last_len = m.type_len = 0;
        m.retry = 0;
        m.max = max;
        model_read(&m, text, len, &want);

        events += (want.len && want.data[0] == '(');
        refused += (want.len && want.data[want.len - 1] == '!');

        for (k = 0; k < 3; k++) {
            memset(&got, 0, sizeof(got));
            ngx_mcp_sse_reader_init(&reader, max, ngx_cycle->log);
            rc = NGX_OK;

            for (at = 0; at < len && rc == NGX_OK; at += n) {
                n = (k == 0) ? len : 1 + draw(k == 1 ? 4 : 200);
                n = ngx_min(n, len - at);
                rc = give(&reader, text + at, n, &got);
            }

            finish(&reader, rc, &got);

            if (!equal(&got, want.data, want.len)) {
                bad++;
                diag("round %lu: got %.*s, expected %.*s", (unsigned long) i,
                     (int) got.len, (char *) got.data, (int) want.len,
                     (char *) want.data);
            }

            forget(&got);
        }

        forget(&want);
    }

    is(bad, 0, "%lu texts by chance", (unsigned long) rounds);
    ok(events > rounds / 10 && refused > rounds / 100,
       "of which enough have events (%lu) and are refused (%lu)",
       (unsigned long) events, (unsigned long) refused);
}


int
main(void)
{
    test_lines();
    test_fields();
    test_id();
    test_id_length();
    test_retry();
    test_limits();
    test_memory();
    test_refusal();
    test_keep();
    test_time();
    test_random();

    return done_testing();
}
