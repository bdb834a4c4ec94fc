
/* Server-sent events: what a client makes of them, and how much they take. */


#include "libtest.h"
#include "ngx_mcp_sse_writer.h"

#include <stdio.h>


#define CANARY  0xa5

/* if each line took a look at all the rest, this would take minutes */
#define MANY    (4 * 1024 * 1024)


/* an event, in a buffer that has just the size that was said to do */

static size_t
event(u_char *buf, size_t size, ngx_str_t *id, ngx_str_t *text)
{
    size_t  i, room, len;

    room = ngx_mcp_sse_size(id, text);

    if (room + 8 > size) {
        printf("Bail out! the buffer is too small\n");
        exit(2);
    }

    memset(buf, CANARY, size);
    len = ngx_mcp_sse_event(buf, id, text) - buf;

    if (len > room) {
        return 0;
    }

    for (i = len; i < size; i++) {
        if (buf[i] != CANARY) {
            return 0;
        }
    }

    return len;
}


static void
frame(const char *id, const char *text, const char *want, const char *name)
{
    u_char     buf[512];
    size_t     n, len;
    ngx_str_t  i, t;

    i = str(id);
    t = str(text);
    len = event(buf, sizeof(buf), id ? &i : NULL, &t);

    if (!ok(len == strlen(want) && memcmp(buf, want, len) == 0, "%s", name)) {

        for (n = 0; n < len; n++) {
            buf[n] = (buf[n] == '\n') ? '|' : buf[n];
        }

        diag("%.*s", (int) len, (char *) buf);
    }
}


static void
test_frames(void)
{
    frame(NULL, "{}", "data: {}\n\n", "a line");
    frame("7", "{}", "id: 7\ndata: {}\n\n", "with an id");
    frame("", "{}", "id: \ndata: {}\n\n", "with an empty id");
    frame(NULL, "", "data: \n\n", "nothing");
    frame("0a-1", "", "id: 0a-1\ndata: \n\n", "nothing, with an id");
    frame(NULL, "a\nb", "data: a\ndata: b\n\n", "two lines");
    frame(NULL, "a\rb", "data: a\ndata: b\n\n", "two lines, with CR");
    frame(NULL, "a\r\nb", "data: a\ndata: b\n\n", "two lines, with CR LF");
    frame(NULL, "a\n\nb", "data: a\ndata: \ndata: b\n\n", "an empty line");
    frame(NULL, "a\r\rb", "data: a\ndata: \ndata: b\n\n",
          "an empty line, with CR");
    frame(NULL, "a\r\n\r\nb", "data: a\ndata: \ndata: b\n\n",
          "an empty line, with CR LF");
    frame(NULL, "a\n\rb", "data: a\ndata: \ndata: b\n\n",
          "LF CR are two ends of lines");
    frame(NULL, "\n", "data: \ndata: \n\n", "nothing but the end of a line");
    frame(NULL, "a\n", "data: a\ndata: \n\n", "LF at the end");
    frame(NULL, "a\r\n", "data: a\ndata: \n\n", "CR LF at the end");
    frame("1", "\r\r\r", "id: 1\ndata: \ndata: \ndata: \ndata: \n\n",
          "only ends of lines");
    frame(NULL, "data: x\n\nid: 9", "data: data: x\ndata: \ndata: id: 9\n\n",
          "text that looks like an event");
}


/*
 * As a client reads it: lines up to an empty one, and what "data" says in
 * them, joined by LF.
 */

static size_t
read_event(u_char *p, size_t len, u_char *text)
{
    u_char  *end, *line, *t;

    end = p + len;
    t = text;

    while (p < end) {
        line = p;

        while (p < end && *p != '\n' && *p != '\r') {
            p++;
        }

        if (p == line) {
            /* the end of the event, and of all there is */
            return (p + 1 == end && t > text) ? (size_t) (t - text - 1)
                                              : (size_t) -1;
        }

        if (p - line >= 6 && memcmp(line, "data: ", 6) == 0) {
            t = ngx_cpymem(t, line + 6, p - line - 6);
            *t++ = '\n';

        } else if (p - line < 4 || memcmp(line, "id: ", 4) != 0) {
            return (size_t) -1;
        }

        p++;
    }

    return (size_t) -1;
}


/* all texts of up to seven of the bytes that matter */

static void
test_all(void)
{
    u_char      buf[128], got[128], want[16], bytes[16];
    size_t      i, k, len, n, wants;
    ngx_str_t   id, text;
    ngx_uint_t  bad, total;

    id = str("id");
    text.data = bytes;
    bad = total = 0;

    for (len = 0; len <= 7; len++) {
        for (n = 0; n < (size_t) 1 << (2 * len); n++) {

            for (i = 0; i < len; i++) {
                bytes[i] = "\n\ra:"[n >> (2 * i) & 3];
            }

            text.len = len;

            for (wants = 0, i = 0; i < len; i++) {
                if (bytes[i] == '\r') {
                    i += (i + 1 < len && bytes[i + 1] == '\n');
                    want[wants++] = '\n';

                } else {
                    want[wants++] = bytes[i];
                }
            }

            for (k = 0; k < 2; k++) {
                i = event(buf, sizeof(buf), k ? &id : NULL, &text);
                total++;

                if (i == 0
                    || read_event(buf, i, got) != wants
                    || memcmp(got, want, wants) != 0)
                {
                    bad++;
                }
            }
        }
    }

    is(bad, 0, "%lu events are read as they were written, and fit",
       (unsigned long) total);
}


static void
test_size(void)
{
    u_char     buf[64];
    ngx_str_t  id, text;

    id = str("12");
    text = str("a\nb");

    is(ngx_mcp_sse_size(&id, &text),
       event(buf, sizeof(buf), &id, &text), "an event with an id needs it all");

    text = str("");
    is(ngx_mcp_sse_size(&id, &text),
       event(buf, sizeof(buf), &id, &text), "so does an empty one");
}


/* as many lines as bytes, and no end of a line of the other kind */

static void
test_many(const char *ends, const char *name)
{
    u_char     *buf;
    size_t      i, size, len;
    ngx_str_t   text;

    text.len = MANY;
    text.data = malloc(MANY);

    for (i = 0; i < MANY; i++) {
        text.data[i] = ends[i * strlen(ends) / MANY];
    }

    size = ngx_mcp_sse_size(NULL, &text);
    buf = malloc(size);
    len = ngx_mcp_sse_event(buf, NULL, &text) - buf;

    ok(size >= len, "%s: the event fits", name);
    is(len, sizeof("data: \n\n") - 1 + MANY * (sizeof("data: \n") - 1),
       "%s: each begins a line", name);

    free(buf);
    free(text.data);
}


static void
test_shared(void)
{
    ngx_str_t              id, text;
    ngx_mcp_sse_shared_t  *shared;

    id = str("5");
    text = str("{\n}");

    shared = ngx_mcp_sse_share(&id, &text, ngx_cycle->log);

    is(shared->refs, 1, "who makes it holds it");
    ok(shared->len == 23
       && memcmp(shared->data, "id: 5\ndata: {\ndata: }\n\n", 23) == 0,
       "the event");

    shared->refs += 2;
    ngx_mcp_sse_unshare(shared);
    is(shared->refs, 2, "one has sent it");

    /* the text belongs to it, not to who made it */

    text = str("");
    ngx_mcp_sse_unshare(shared);
    is(shared->refs, 1, "another has");
    ok(memcmp(shared->data, "id: 5\n", 6) == 0, "it is still there");

    /* whether it is freed, only a sanitizer sees */

    ngx_mcp_sse_unshare(shared);
    ngx_mcp_sse_unshare(NULL);

    shared = ngx_mcp_sse_share(NULL, &text, ngx_cycle->log);
    ok(shared->len == 8 && memcmp(shared->data, "data: \n\n", 8) == 0,
       "one of nothing");
    ngx_mcp_sse_unshare(shared);
}


int
main(void)
{
    test_frames();
    test_all();
    test_size();
    test_many("\r", "many CR");
    test_many("\n", "many LF");
    test_many("\n\r", "many LF, then many CR");
    test_shared();

    return done_testing();
}
