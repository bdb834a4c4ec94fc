
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_sse_reader.h"


/* milliseconds, as much as a timer of nginx accepts */
#define NGX_MCP_SSE_MAX_RETRY  NGX_MAX_INT32_VALUE


typedef enum {
    NGX_MCP_SSE_IN_NAME = 0,
    NGX_MCP_SSE_IN_SPACE,
    NGX_MCP_SSE_IN_VALUE,
    NGX_MCP_SSE_SKIP
} ngx_mcp_sse_reader_state_e;


typedef enum {
    NGX_MCP_SSE_DATA = 0,
    NGX_MCP_SSE_EVENT,
    NGX_MCP_SSE_EVENT_ID,
    NGX_MCP_SSE_RETRY,
    NGX_MCP_SSE_UNKNOWN
} ngx_mcp_sse_reader_field_e;


static u_char *ngx_mcp_sse_reader_bom(ngx_mcp_sse_reader_t *reader, u_char *p,
    u_char *end);
static u_char *ngx_mcp_sse_reader_find(u_char *p, u_char *end, u_char c);
static ngx_int_t ngx_mcp_sse_reader_part(ngx_mcp_sse_reader_t *reader,
    u_char *p, u_char *end);
static ngx_int_t ngx_mcp_sse_reader_begin(ngx_mcp_sse_reader_t *reader);
static ngx_int_t ngx_mcp_sse_reader_value(ngx_mcp_sse_reader_t *reader,
    u_char *p, size_t n);
static ngx_int_t ngx_mcp_sse_reader_id(ngx_mcp_sse_reader_t *reader, u_char *p,
    size_t n);
static void ngx_mcp_sse_reader_digits(ngx_mcp_sse_reader_t *reader, u_char *p,
    u_char *end);
static ngx_int_t ngx_mcp_sse_reader_append(ngx_mcp_sse_reader_t *reader,
    u_char *p, size_t n);
static ngx_int_t ngx_mcp_sse_reader_line(ngx_mcp_sse_reader_t *reader,
    ngx_mcp_sse_reader_pt handler, void *ctx);
static ngx_int_t ngx_mcp_sse_reader_dispatch(ngx_mcp_sse_reader_t *reader,
    ngx_mcp_sse_reader_pt handler, void *ctx);


static ngx_str_t  ngx_mcp_sse_reader_message = ngx_string("message");

/* in the order of ngx_mcp_sse_reader_field_e */

static ngx_str_t  ngx_mcp_sse_reader_names[] = {
    ngx_string("data"),
    ngx_string("event"),
    ngx_string("id"),
    ngx_string("retry")
};


void
ngx_mcp_sse_reader_init(ngx_mcp_sse_reader_t *reader, size_t max,
    ngx_log_t *log)
{
    ngx_memzero(reader, sizeof(ngx_mcp_sse_reader_t));

    reader->max = max;
    reader->log = log;
}


void
ngx_mcp_sse_reader_free(ngx_mcp_sse_reader_t *reader)
{
    if (reader->data) {
        ngx_free(reader->data);
    }

    if (reader->line_id) {
        ngx_free(reader->line_id);
    }

    reader->data = NULL;
    reader->size = 0;
    reader->len = 0;

    reader->line_id = NULL;
    reader->next_len = 0;
    ngx_str_null(&reader->id);
}


ngx_int_t
ngx_mcp_sse_reader_read(ngx_mcp_sse_reader_t *reader, u_char *p, size_t n,
    ngx_mcp_sse_reader_pt handler, void *ctx)
{
    u_char     *end, *eol, *lf, *cr;
    ngx_int_t   rc;

    if (n == 0) {
        return NGX_OK;
    }

    end = p + n;

    p = ngx_mcp_sse_reader_bom(reader, p, end);

    lf = ngx_mcp_sse_reader_find(p, end, LF);
    cr = ngx_mcp_sse_reader_find(p, end, CR);

    while (p < end) {

        if (reader->cr) {
            reader->cr = 0;

            if (*p == LF) {
                p++;
                continue;
            }
        }

        /*
         * The next LF and the next CR are kept until they are passed.  With a
         * new search for each line, a chunk that has no CR would be read to
         * its end once per line.
         */

        if (lf < p) {
            lf = ngx_mcp_sse_reader_find(p, end, LF);
        }

        if (cr < p) {
            cr = ngx_mcp_sse_reader_find(p, end, CR);
        }

        eol = ngx_min(lf, cr);

        rc = ngx_mcp_sse_reader_part(reader, p, eol);
        if (rc != NGX_OK) {
            return rc;
        }

        if (eol == end) {
            break;
        }

        reader->cr = (*eol == CR);
        p = eol + 1;

        rc = ngx_mcp_sse_reader_line(reader, handler, ctx);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


/* Skips a byte order mark at the start of the stream. */

static u_char *
ngx_mcp_sse_reader_bom(ngx_mcp_sse_reader_t *reader, u_char *p, u_char *end)
{
    static const u_char  bom[] = { 0xef, 0xbb, 0xbf };

    while (reader->bom < sizeof(bom) && p < end) {

        if (*p == bom[reader->bom]) {
            reader->bom++;
            p++;
            continue;
        }

        if (reader->bom) {
            /* a partial mark begins a field name, which is unknown */
            reader->state = NGX_MCP_SSE_SKIP;
        }

        reader->bom = sizeof(bom);
    }

    return p;
}


static u_char *
ngx_mcp_sse_reader_find(u_char *p, u_char *end, u_char c)
{
    u_char  *found;

    if (p == end) {
        return end;
    }

    found = memchr(p, c, end - p);

    return found ? found : end;
}


/* Reads a part of a line, which may lack the line's beginning and end. */

static ngx_int_t
ngx_mcp_sse_reader_part(ngx_mcp_sse_reader_t *reader, u_char *p, u_char *end)
{
    ngx_int_t  rc;

    if (reader->state == NGX_MCP_SSE_IN_NAME) {

        for ( /* void */ ; p < end && *p != ':'; p++) {

            if (reader->got == sizeof(reader->name)) {
                reader->state = NGX_MCP_SSE_SKIP;
                return NGX_OK;
            }

            reader->name[reader->got++] = *p;
        }

        if (p == end) {
            return NGX_OK;
        }

        p++;

        rc = ngx_mcp_sse_reader_begin(reader);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (reader->state == NGX_MCP_SSE_SKIP || p == end) {
        return NGX_OK;
    }

    if (reader->state == NGX_MCP_SSE_IN_SPACE) {
        reader->state = NGX_MCP_SSE_IN_VALUE;

        if (*p == ' ' && ++p == end) {
            return NGX_OK;
        }
    }

    return ngx_mcp_sse_reader_value(reader, p, end - p);
}


/* Called when the field name is complete; it is empty in a comment. */

static ngx_int_t
ngx_mcp_sse_reader_begin(ngx_mcp_sse_reader_t *reader)
{
    ngx_str_t   *name;
    ngx_uint_t   i;

    for (i = 0; i < NGX_MCP_SSE_UNKNOWN; i++) {
        name = &ngx_mcp_sse_reader_names[i];

        if (name->len == reader->got
            && ngx_memcmp(name->data, reader->name, name->len) == 0)
        {
            break;
        }
    }

    reader->field = i;
    reader->got = 0;
    reader->number = 0;

    if (i == NGX_MCP_SSE_UNKNOWN) {
        reader->state = NGX_MCP_SSE_SKIP;
        return NGX_OK;
    }

    reader->state = NGX_MCP_SSE_IN_SPACE;

    if (i == NGX_MCP_SSE_DATA) {

        if (reader->filled) {
            return ngx_mcp_sse_reader_append(reader, (u_char *) "\n", 1);
        }

        reader->filled = 1;
    }

    return NGX_OK;
}


/* Reads a part of a value; skips the rest of the line if it is invalid. */

static ngx_int_t
ngx_mcp_sse_reader_value(ngx_mcp_sse_reader_t *reader, u_char *p, size_t n)
{
    ngx_str_t  *message;

    switch (reader->field) {

    case NGX_MCP_SSE_DATA:
        return ngx_mcp_sse_reader_append(reader, p, n);

    case NGX_MCP_SSE_EVENT:
        message = &ngx_mcp_sse_reader_message;

        if (n > message->len - reader->got
            || ngx_memcmp(message->data + reader->got, p, n) != 0)
        {
            reader->other = 1;
            reader->state = NGX_MCP_SSE_SKIP;
            break;
        }

        reader->got += n;
        break;

    case NGX_MCP_SSE_EVENT_ID:
        return ngx_mcp_sse_reader_id(reader, p, n);

    default: /* NGX_MCP_SSE_RETRY */
        ngx_mcp_sse_reader_digits(reader, p, p + n);
        break;
    }

    return NGX_OK;
}


/* As the HTML standard requires, an id with a NUL is ignored. */

static ngx_int_t
ngx_mcp_sse_reader_id(ngx_mcp_sse_reader_t *reader, u_char *p, size_t n)
{
    if (n > NGX_MCP_SSE_ID - reader->got
        || memchr(p, '\0', n) != NULL)
    {
        reader->state = NGX_MCP_SSE_SKIP;
        return NGX_OK;
    }

    if (reader->line_id == NULL) {
        reader->line_id = ngx_alloc(3 * NGX_MCP_SSE_ID, reader->log);
        if (reader->line_id == NULL) {
            return NGX_ERROR;
        }

        reader->next_id = reader->line_id + NGX_MCP_SSE_ID;
        reader->id.data = reader->next_id + NGX_MCP_SSE_ID;
    }

    ngx_memcpy(reader->line_id + reader->got, p, n);
    reader->got += n;

    return NGX_OK;
}


static void
ngx_mcp_sse_reader_digits(ngx_mcp_sse_reader_t *reader, u_char *p, u_char *end)
{
    uint64_t  n;

    for ( /* void */ ; p < end; p++) {

        if (*p < '0' || *p > '9') {
            reader->state = NGX_MCP_SSE_SKIP;
            return;
        }

        n = (uint64_t) reader->number * 10 + (*p - '0');

        reader->number = (ngx_msec_t)
                           ngx_min(n, NGX_MCP_SSE_MAX_RETRY);
    }

    /* there is at least one digit */
    reader->got = 1;
}


static ngx_int_t
ngx_mcp_sse_reader_append(ngx_mcp_sse_reader_t *reader, u_char *p, size_t n)
{
    u_char  *data;
    size_t   size;

    if (n > reader->max - reader->len) {
        return NGX_DECLINED;
    }

    if (n > reader->size - reader->len) {

        size = ngx_max(2 * reader->size, reader->len + n);
        size = ngx_max(size, NGX_MCP_SSE_SIZE);
        size = ngx_min(size, reader->max);

        data = ngx_alloc(size, reader->log);
        if (data == NULL) {
            return NGX_ERROR;
        }

        if (reader->data) {
            ngx_memcpy(data, reader->data, reader->len);
            ngx_free(reader->data);
        }

        reader->data = data;
        reader->size = size;
    }

    ngx_memcpy(reader->data + reader->len, p, n);
    reader->len += n;

    return NGX_OK;
}


/* Called at the end of each line. */

static ngx_int_t
ngx_mcp_sse_reader_line(ngx_mcp_sse_reader_t *reader,
    ngx_mcp_sse_reader_pt handler, void *ctx)
{
    ngx_int_t  rc;

    if (reader->state == NGX_MCP_SSE_IN_NAME) {

        if (reader->got == 0) {
            return ngx_mcp_sse_reader_dispatch(reader, handler, ctx);
        }

        /* a line without a colon is a field with an empty value */

        rc = ngx_mcp_sse_reader_begin(reader);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (reader->state != NGX_MCP_SSE_SKIP) {

        switch (reader->field) {

        case NGX_MCP_SSE_EVENT:
            reader->other = (reader->got != 0
                             && reader->got != ngx_mcp_sse_reader_message.len);
            break;

        case NGX_MCP_SSE_EVENT_ID:
            if (reader->got) {
                ngx_memcpy(reader->next_id, reader->line_id, reader->got);
            }

            reader->next_len = reader->got;
            break;

        case NGX_MCP_SSE_RETRY:
            if (reader->got) {
                reader->retry = reader->number;
            }

            break;
        }
    }

    reader->state = NGX_MCP_SSE_IN_NAME;
    reader->got = 0;

    return NGX_OK;
}


/*
 * An empty line ends an event.  The reader is reset for the next event before
 * the handler is called, since the handler may free the reader.
 */

static ngx_int_t
ngx_mcp_sse_reader_dispatch(ngx_mcp_sse_reader_t *reader,
    ngx_mcp_sse_reader_pt handler, void *ctx)
{
    u_char      *large;
    ngx_int_t    rc;
    ngx_str_t    data;
    ngx_uint_t   wanted;

    if (reader->next_len) {
        ngx_memcpy(reader->id.data, reader->next_id, reader->next_len);
    }

    reader->id.len = reader->next_len;

    wanted = reader->filled && !reader->other;

    data.len = reader->len;
    data.data = reader->data ? reader->data : (u_char *) "";

    reader->len = 0;
    reader->filled = 0;
    reader->other = 0;

    large = NULL;

    if (reader->size > NGX_MCP_SSE_SIZE) {
        large = reader->data;
        reader->data = NULL;
        reader->size = 0;
    }

    rc = wanted ? handler(ctx, reader, &data) : NGX_OK;

    if (data.data == NULL) {

        if (large == NULL) {
            reader->data = NULL;
            reader->size = 0;
        }

    } else if (large) {
        ngx_free(large);
    }

    return rc;
}
