
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Replaces the error that requires URLs in responses to modern clients.
 *
 * Results are not held back.  The header and the first bytes of a JSON response
 * wait until it is known whether it is an error; then a result is passed as it
 * arrives, and an error is collected.  For a stream, each event is treated so.
 * Only lines with data wait: the order of the other fields has no meaning, and
 * comments keep connections open.
 */


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_filter.h"
#include "ngx_mcp_peek.h"
#include "ngx_mcp_sse_reader.h"
#include "ngx_mcp_sse_writer.h"


/* Maximum size of an error.  A larger one cannot be checked. */
#define NGX_MCP_URL_FILTER_MAX   (1024 * 1024)

/*
 * Size of a buffer for bytes that are copied.  Larger than the pool's own
 * blocks, so that ngx_pfree() can free it.
 */
#define NGX_MCP_URL_FILTER_SIZE  8192


typedef enum {
    NGX_MCP_URL_START = 0,       /* before the first byte of a line */
    NGX_MCP_URL_NAME,            /* in a name that may be "data" */
    NGX_MCP_URL_DATA,
    NGX_MCP_URL_OTHER
} ngx_mcp_url_line_e;


struct ngx_mcp_url_filter_s {
    ngx_http_request_t  *r;
    ngx_mcp_url_error_t  error;
    ngx_mcp_peek_t       peek;      /* of the message, or of the event */

    /* a message, or the lines of the event that have data */
    u_char              *held;
    size_t               len;
    size_t               size;      /* of the buffer */

    /*
     * A stream.  Of the current buffer, bytes from "from" are passed, and from
     * "mark" held, if it is not NULL.  Bytes from "tail" are neither: they are
     * the first "name" bytes of "data".
     */
    u_char              *from;
    u_char              *mark;
    u_char              *tail;
    ngx_uint_t           line;      /* ngx_mcp_url_line_e */
    size_t               name;

    ngx_chain_t         *out;
    ngx_chain_t        **last_out;
    ngx_buf_t           *copy;      /* the last of out, if it has room */
    ngx_chain_t         *free;
    ngx_chain_t         *busy;

    unsigned             stream:1;
    unsigned             sent:1;    /* the header, and the response passes */
    unsigned             large:1;   /* too large to be held */
    unsigned             bom:2;     /* bytes of the mark read, 3: past it */
    unsigned             cr:1;      /* the last byte was a CR */
    unsigned             waits:1;   /* the last line is held */
};


static void ngx_mcp_url_filter_free(void *data);
static ngx_int_t ngx_mcp_url_filter_json(ngx_mcp_url_filter_t *f,
    ngx_chain_t *in, ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next);
static ngx_int_t ngx_mcp_url_filter_collect(ngx_mcp_url_filter_t *f,
    ngx_chain_t *in, ngx_uint_t *last);
static void ngx_mcp_url_filter_replace(ngx_mcp_url_filter_t *f,
    ngx_str_t *text);
static ngx_int_t ngx_mcp_url_filter_hold(ngx_mcp_url_filter_t *f, u_char *p,
    size_t n);
static ngx_int_t ngx_mcp_url_filter_stream(ngx_mcp_url_filter_t *f,
    ngx_chain_t *in, ngx_http_output_body_filter_pt next);
static ngx_int_t ngx_mcp_url_filter_buf(ngx_mcp_url_filter_t *f, ngx_buf_t *b);
static ngx_int_t ngx_mcp_url_filter_trim(ngx_mcp_url_filter_t *f, ngx_buf_t *b);
static u_char *ngx_mcp_url_filter_bom(ngx_mcp_url_filter_t *f, u_char *p,
    u_char *end);
static ngx_int_t ngx_mcp_url_filter_part(ngx_mcp_url_filter_t *f, u_char **pos,
    u_char *end);
static ngx_int_t ngx_mcp_url_filter_name(ngx_mcp_url_filter_t *f, u_char **pos,
    u_char *end);
static ngx_int_t ngx_mcp_url_filter_store(ngx_mcp_url_filter_t *f, u_char *p);
static ngx_int_t ngx_mcp_url_filter_release(ngx_mcp_url_filter_t *f);
static ngx_int_t ngx_mcp_url_filter_event(ngx_mcp_url_filter_t *f, u_char *p);
static ngx_int_t ngx_mcp_url_filter_checked(ngx_mcp_url_filter_t *f,
    ngx_uint_t whole);
static ngx_int_t ngx_mcp_url_filter_message(void *data,
    ngx_mcp_sse_reader_t *sse, ngx_str_t *text);
static ngx_int_t ngx_mcp_url_filter_end(ngx_mcp_url_filter_t *f);
static ngx_int_t ngx_mcp_url_filter_pass(ngx_mcp_url_filter_t *f, u_char *p,
    size_t n);
static ngx_buf_t *ngx_mcp_url_filter_new(ngx_mcp_url_filter_t *f);
static void ngx_mcp_url_filter_consume(ngx_buf_t *b, u_char *p);


static u_char  ngx_mcp_url_filter_data[] = "data";


/*
 * Sets ctx->url_filter if the response may have to be changed.  The header of
 * a JSON response is sent with the body, since the status may change.
 */

ngx_int_t
ngx_mcp_url_filter_header(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_http_output_header_filter_pt next)
{
    ngx_uint_t             stream;
    ngx_pool_cleanup_t    *cln;
    ngx_mcp_url_filter_t  *f;
    static ngx_str_t       json = ngx_string("application/json");

    stream = ngx_mcp_is_stream(r);
    ctx->url_filter = NULL;

    if (!ngx_mcp_url_filter_is_for(ctx)
        || r->header_only
        || r->headers_out.content_length_n == 0
        || r->headers_out.status == NGX_HTTP_NO_CONTENT
        || r->headers_out.content_encoding
        || (!stream
            && !ngx_mcp_media_type(&r->headers_out.content_type, &json)))
    {
        return next(r);
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_mcp_url_filter_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    f = cln->data;
    ngx_memzero(f, sizeof(ngx_mcp_url_filter_t));
    cln->handler = ngx_mcp_url_filter_free;

    f->r = r;
    f->error.ctx = ctx;
    f->error.log = r->connection->log;
    f->stream = stream;

    ctx->url_filter = f;
    r->filter_need_in_memory = 1;

    if (!stream) {
        return NGX_OK;
    }

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);

    return next(r);
}


static void
ngx_mcp_url_filter_free(void *data)
{
    ngx_mcp_url_filter_t *f = data;

    if (f->held) {
        ngx_free(f->held);
        f->held = NULL;
    }
}


ngx_int_t
ngx_mcp_url_filter_body(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_chain_t *in, ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next)
{
    ngx_mcp_url_filter_t  *f;

    f = ctx->url_filter;

    if (f->stream) {
        return ngx_mcp_url_filter_stream(f, in, next);
    }

    if (f->sent) {
        return next(r, in);
    }

    return in ? ngx_mcp_url_filter_json(f, in, next_header, next) : NGX_OK;
}


static ngx_int_t
ngx_mcp_url_filter_json(ngx_mcp_url_filter_t *f, ngx_chain_t *in,
    ngx_http_output_header_filter_pt next_header,
    ngx_http_output_body_filter_pt next)
{
    ngx_int_t     rc;
    ngx_str_t     text;
    ngx_buf_t    *b;
    ngx_uint_t    last;
    ngx_chain_t   out;

    last = 0;

    if (ngx_mcp_url_filter_collect(f, in, &last) != NGX_OK) {
        return NGX_ERROR;
    }

    text.data = f->held;
    text.len = f->len;

    if (f->peek.verdict != NGX_MCP_PEEK_PASS) {

        if (!last) {
            return NGX_OK;
        }

        in = NULL;

        if (f->large || f->peek.verdict == NGX_MCP_PEEK_HOLD) {

            f->error.pool = f->r->pool;
            rc = ngx_mcp_url_error(&f->error, f->large ? NULL : &text);

            if (rc == NGX_ERROR) {
                return NGX_ERROR;
            }

            if (rc == NGX_OK) {
                ngx_mcp_url_filter_replace(f, &text);
            }
        }
    }

    f->sent = 1;
    rc = next_header(f->r);

    if (rc == NGX_ERROR || rc > NGX_OK || f->r->header_only) {
        return rc;
    }

    if (text.len == 0 && in) {
        return next(f->r, in);
    }

    b = ngx_calloc_buf(f->r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->start = text.data;
    b->pos = text.data;
    b->last = text.data + text.len;
    b->end = b->last;
    b->memory = (text.len != 0);
    b->last_buf = (in == NULL);
    b->last_in_chain = (in == NULL);

    out.buf = b;
    out.next = in;

    return next(f->r, &out);
}


/* Copies what must wait; nothing, if the response can be passed. */

static ngx_int_t
ngx_mcp_url_filter_collect(ngx_mcp_url_filter_t *f, ngx_chain_t *in,
    ngx_uint_t *last)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    for (cl = in; cl; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_in_memory(b)) {
            (void) ngx_mcp_peek(&f->peek, b->pos, b->last - b->pos);
        }
    }

    if (f->peek.verdict == NGX_MCP_PEEK_PASS) {

        if (!f->large) {
            return NGX_OK;
        }

        /* its beginning is lost */
        f->peek.verdict = NGX_MCP_PEEK_HOLD;
    }

    for (cl = in; cl; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_in_memory(b)) {

            if (ngx_mcp_url_filter_hold(f, b->pos, b->last - b->pos)
                != NGX_OK)
            {
                return NGX_ERROR;
            }

            ngx_mcp_url_filter_consume(b, b->last);
        }

        if (b->last_buf) {
            *last = 1;
        }
    }

    return NGX_OK;
}


/* Sets the header for the text that replaces the response. */

static void
ngx_mcp_url_filter_replace(ngx_mcp_url_filter_t *f, ngx_str_t *text)
{
    ngx_http_request_t  *r;

    r = f->r;
    *text = f->error.text;

    r->headers_out.status = f->error.status;
    r->headers_out.status_line.len = 0;

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_etag(r);
    ngx_http_clear_last_modified(r);

    r->headers_out.content_length_n = text->len;
}


/* Appends to what is held, if it is not too large. */

static ngx_int_t
ngx_mcp_url_filter_hold(ngx_mcp_url_filter_t *f, u_char *p, size_t n)
{
    u_char  *held;
    size_t   size;

    if (f->large || n == 0) {
        return NGX_OK;
    }

    if (n > NGX_MCP_URL_FILTER_MAX - f->len) {
        f->large = 1;
        f->len = 0;
        return NGX_OK;
    }

    if (n > f->size - f->len) {
        size = ngx_max(2 * f->size, f->len + n);
        size = ngx_max(size, 4096);

        held = ngx_alloc(size, f->r->connection->log);
        if (held == NULL) {
            return NGX_ERROR;
        }

        if (f->held) {
            ngx_memcpy(held, f->held, f->len);
            ngx_free(f->held);
        }

        f->held = held;
        f->size = size;
    }

    ngx_memcpy(f->held + f->len, p, n);
    f->len += n;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_url_filter_stream(ngx_mcp_url_filter_t *f, ngx_chain_t *in,
    ngx_http_output_body_filter_pt next)
{
    ngx_int_t    rc;
    ngx_uint_t   last;

    last = 0;
    f->out = NULL;
    f->last_out = &f->out;
    f->copy = NULL;

    for ( /* void */ ; in; in = in->next) {

        if (in->buf->last_buf) {
            last = 1;
        }

        if (ngx_mcp_url_filter_buf(f, in->buf) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (last && ngx_mcp_url_filter_end(f) != NGX_OK) {
        return NGX_ERROR;
    }

    if (f->out == NULL && f->busy == NULL) {
        return NGX_OK;
    }

    rc = next(f->r, f->out);

    ngx_chain_update_chains(f->r->pool, &f->free, &f->busy, &f->out,
                            (ngx_buf_tag_t) &ngx_mcp_url_filter_data);

    return rc;
}


/* A buffer that is passed completely, or at its end, is not copied. */

static ngx_int_t
ngx_mcp_url_filter_buf(ngx_mcp_url_filter_t *f, ngx_buf_t *b)
{
    u_char       *p;
    ngx_chain_t  *cl;

    if (ngx_buf_in_memory(b) && b->pos < b->last) {

        f->from = b->pos;
        f->mark = (f->line == NGX_MCP_URL_DATA && f->waits) ? b->pos : NULL;
        f->tail = NULL;

        p = ngx_mcp_url_filter_bom(f, b->pos, b->last);

        while (p < b->last) {
            if (ngx_mcp_url_filter_part(f, &p, b->last) != NGX_OK) {
                return NGX_ERROR;
            }
        }

        if (ngx_mcp_url_filter_trim(f, b) != NGX_OK) {
            return NGX_ERROR;
        }

        /* the last buffer must follow what is still held */

        if (b->last_buf
            && ngx_mcp_url_filter_pass(f, f->from, b->last - f->from)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_mcp_url_filter_consume(b, b->last_buf ? b->last : f->from);

        if (b->pos == b->last) {
            return NGX_OK;
        }

    } else if (b->last_buf) {
        return NGX_OK;
    }

    cl = ngx_alloc_chain_link(f->r->pool);
    if (cl == NULL) {
        return NGX_ERROR;
    }

    cl->buf = b;
    cl->next = NULL;

    *f->last_out = cl;
    f->last_out = &cl->next;
    f->copy = NULL;

    return NGX_OK;
}


/*
 * Takes the end of a buffer that is not passed.  The rest of the buffer is not
 * copied: otherwise the upstream would be read however slow the client is.
 */

static ngx_int_t
ngx_mcp_url_filter_trim(ngx_mcp_url_filter_t *f, ngx_buf_t *b)
{
    u_char  *end;

    end = f->tail ? f->tail : b->last;

    if (f->mark) {

        if (ngx_mcp_url_filter_hold(f, f->mark, end - f->mark) != NGX_OK) {
            return NGX_ERROR;
        }

        end = f->mark;
        f->mark = NULL;
    }

    if (b->in_file) {
        b->file_last -= b->last - end;
    }

    b->last = end;

    return NGX_OK;
}


/* A byte order mark at the start of the stream is not a part of a line. */

static u_char *
ngx_mcp_url_filter_bom(ngx_mcp_url_filter_t *f, u_char *p, u_char *end)
{
    static const u_char  bom[] = { 0xef, 0xbb, 0xbf };

    while (f->bom < sizeof(bom) && p < end) {

        if (*p == bom[f->bom]) {
            f->bom++;
            p++;
            continue;
        }

        if (f->bom) {
            f->line = NGX_MCP_URL_OTHER;
        }

        f->bom = sizeof(bom);
    }

    return p;
}


/* Reads a part of a line. */

static ngx_int_t
ngx_mcp_url_filter_part(ngx_mcp_url_filter_t *f, u_char **pos, u_char *end)
{
    u_char  *p, *start;

    p = *pos;

    if (f->cr) {
        f->cr = 0;

        if (*p == LF) {

            /* it belongs to the line that the CR has ended */

            if (f->waits && f->mark == NULL) {
                f->mark = p;
            }

            *pos = p + 1;
            return NGX_OK;
        }
    }

    if (f->line == NGX_MCP_URL_START) {

        if (*p == CR || *p == LF) {
            f->cr = (*p == CR);
            *pos = p + 1;
            return ngx_mcp_url_filter_event(f, p);
        }

        f->line = (f->peek.verdict == NGX_MCP_PEEK_PASS) ? NGX_MCP_URL_OTHER
                                                         : NGX_MCP_URL_NAME;
        f->name = 0;
    }

    if (f->line == NGX_MCP_URL_NAME) {
        return ngx_mcp_url_filter_name(f, pos, end);
    }

    for (start = p; p < end && *p != CR && *p != LF; p++) { /* void */ }

    *pos = p;

    if (f->line == NGX_MCP_URL_DATA
        && f->waits
        && !f->large
        && ngx_mcp_peek(&f->peek, start, p - start) == NGX_MCP_PEEK_PASS
        && ngx_mcp_url_filter_release(f) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (p < end) {
        f->cr = (*p == CR);
        f->line = NGX_MCP_URL_START;
        *pos = p + 1;
    }

    return NGX_OK;
}


/* Reads a name until it is known whether it is "data". */

static ngx_int_t
ngx_mcp_url_filter_name(ngx_mcp_url_filter_t *f, u_char **pos, u_char *end)
{
    u_char  *p, *start;
    size_t   before;

    p = *pos;
    start = p;
    before = f->name;

    while (p < end && f->name < 4 && *p == ngx_mcp_url_filter_data[f->name]) {
        f->name++;
        p++;
    }

    *pos = p;

    if (p == end) {
        /* the bytes are known, and need not be kept */
        f->tail = start;
        f->waits = 0;
        return NGX_OK;
    }

    if (f->name == 4 && (*p == ':' || *p == CR || *p == LF)) {

        f->line = NGX_MCP_URL_DATA;
        f->waits = 1;

        /* lines are joined by LF */
        (void) ngx_mcp_peek(&f->peek, (u_char *) "\n", 1);

        if (ngx_mcp_url_filter_hold(f, ngx_mcp_url_filter_data, before)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (f->mark == NULL) {
            f->mark = start;
        }

        if (*p == ':') {
            *pos = p + 1;
        }

        return NGX_OK;
    }

    f->line = NGX_MCP_URL_OTHER;
    f->waits = 0;

    if (f->mark && ngx_mcp_url_filter_store(f, start) != NGX_OK) {
        return NGX_ERROR;
    }

    return before ? ngx_mcp_url_filter_pass(f, ngx_mcp_url_filter_data, before)
                  : NGX_OK;
}


/* Keeps the bytes from f->mark to p, and passes those before them. */

static ngx_int_t
ngx_mcp_url_filter_store(ngx_mcp_url_filter_t *f, u_char *p)
{
    u_char  *mark;

    mark = f->mark ? f->mark : p;

    if (ngx_mcp_url_filter_pass(f, f->from, mark - f->from) != NGX_OK
        || ngx_mcp_url_filter_hold(f, mark, p - mark) != NGX_OK)
    {
        return NGX_ERROR;
    }

    f->from = p;
    f->mark = NULL;

    return NGX_OK;
}


/* Passes what is held, which is not an error. */

static ngx_int_t
ngx_mcp_url_filter_release(ngx_mcp_url_filter_t *f)
{
    f->waits = 0;

    if (f->len) {

        if (f->mark) {

            if (ngx_mcp_url_filter_pass(f, f->from, f->mark - f->from)
                != NGX_OK)
            {
                return NGX_ERROR;
            }

            f->from = f->mark;
        }

        if (ngx_mcp_url_filter_pass(f, f->held, f->len) != NGX_OK) {
            return NGX_ERROR;
        }

        f->len = 0;
    }

    f->mark = NULL;

    return NGX_OK;
}


/* Called for an empty line, at p, which ends the event. */

static ngx_int_t
ngx_mcp_url_filter_event(ngx_mcp_url_filter_t *f, u_char *p)
{
    if (f->large || f->peek.verdict == NGX_MCP_PEEK_HOLD) {

        if (ngx_mcp_url_filter_store(f, p) != NGX_OK
            || ngx_mcp_url_filter_checked(f, 1) != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else if (f->peek.verdict == NGX_MCP_PEEK_MORE
               && ngx_mcp_url_filter_release(f) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_mcp_peek_init(&f->peek);
    f->waits = 0;
    f->large = 0;

    return NGX_OK;
}


/* Passes the lines of an error, or what replaces them. */

static ngx_int_t
ngx_mcp_url_filter_checked(ngx_mcp_url_filter_t *f, ngx_uint_t whole)
{
    u_char                *p, *last;
    ngx_int_t              rc;
    ngx_pool_t            *pool;
    ngx_mcp_sse_reader_t   sse;

    /* a stream can have many of them */

    pool = ngx_create_pool(4096, f->r->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    f->error.pool = pool;

    if (f->large) {
        rc = ngx_mcp_url_error(&f->error, NULL);

    } else {
        ngx_mcp_sse_reader_init(&sse, NGX_MCP_URL_FILTER_MAX,
                                f->r->connection->log);

        rc = ngx_mcp_sse_reader_read(&sse, f->held, f->len,
                                     ngx_mcp_url_filter_message, f);

        if (rc == NGX_OK) {
            rc = ngx_mcp_sse_reader_read(&sse, (u_char *) "\n\n", 2,
                                         ngx_mcp_url_filter_message, f);
            rc = (rc == NGX_DONE) ? NGX_OK
                                  : (rc == NGX_ERROR) ? NGX_ERROR
                                                      : NGX_DECLINED;
        }

        ngx_mcp_sse_reader_free(&sse);
    }

    if (rc == NGX_OK) {
        p = ngx_palloc(pool, ngx_mcp_sse_size(NULL, &f->error.text));
        rc = NGX_ERROR;

        if (p) {
            /* the stream has the empty line already, if the event is whole */
            last = ngx_mcp_sse_event(p, NULL, &f->error.text) - whole;
            rc = ngx_mcp_url_filter_pass(f, p, last - p);
        }

    } else if (rc == NGX_DECLINED) {
        rc = ngx_mcp_url_filter_pass(f, f->held, f->len);
    }

    ngx_destroy_pool(pool);
    f->len = 0;

    return rc;
}


/* NGX_DONE: the message is replaced */

static ngx_int_t
ngx_mcp_url_filter_message(void *data, ngx_mcp_sse_reader_t *sse,
    ngx_str_t *text)
{
    ngx_mcp_url_filter_t *f = data;

    ngx_int_t  rc;

    rc = ngx_mcp_url_error(&f->error, text);

    return (rc == NGX_OK) ? NGX_DONE : rc;
}


/*
 * The end of the stream.  Clients ignore an event that is not complete, but
 * some might not; an error is therefore checked.
 */

static ngx_int_t
ngx_mcp_url_filter_end(ngx_mcp_url_filter_t *f)
{
    ngx_int_t   rc;
    ngx_buf_t  *b;

    f->mark = NULL;

    if (f->large || f->peek.verdict == NGX_MCP_PEEK_HOLD) {
        rc = ngx_mcp_url_filter_checked(f, 0);

    } else {
        rc = ngx_mcp_url_filter_release(f);
    }

    if (rc == NGX_OK && f->line == NGX_MCP_URL_NAME) {
        rc = ngx_mcp_url_filter_pass(f, ngx_mcp_url_filter_data, f->name);
    }

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    b = ngx_mcp_url_filter_new(f);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->temporary = 0;
    b->flush = 0;
    b->last_buf = 1;
    b->last_in_chain = 1;
    f->copy = NULL;

    return NGX_OK;
}


/* Appends a copy to the output. */

static ngx_int_t
ngx_mcp_url_filter_pass(ngx_mcp_url_filter_t *f, u_char *p, size_t n)
{
    size_t      size;
    ngx_buf_t  *b;

    while (n) {

        if (f->copy == NULL || f->copy->last == f->copy->end) {

            b = ngx_mcp_url_filter_new(f);
            if (b == NULL) {
                return NGX_ERROR;
            }

            if (b->start == NULL) {
                b->start = ngx_palloc(f->r->pool, NGX_MCP_URL_FILTER_SIZE);
                if (b->start == NULL) {
                    return NGX_ERROR;
                }

                b->end = b->start + NGX_MCP_URL_FILTER_SIZE;
            }

            b->pos = b->start;
            b->last = b->start;
            f->copy = b;
        }

        size = ngx_min(n, (size_t) (f->copy->end - f->copy->last));
        f->copy->last = ngx_cpymem(f->copy->last, p, size);

        p += size;
        n -= size;
    }

    return NGX_OK;
}


/* A buffer of the filter's own, at the end of the output. */

static ngx_buf_t *
ngx_mcp_url_filter_new(ngx_mcp_url_filter_t *f)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    cl = ngx_chain_get_free_buf(f->r->pool, &f->free);
    if (cl == NULL) {
        return NULL;
    }

    b = cl->buf;
    b->tag = (ngx_buf_tag_t) &ngx_mcp_url_filter_data;
    b->temporary = 1;
    b->flush = 1;

    *f->last_out = cl;
    f->last_out = &cl->next;

    return b;
}


static void
ngx_mcp_url_filter_consume(ngx_buf_t *b, u_char *p)
{
    if (b->in_file) {
        b->file_pos += p - b->pos;
    }

    b->pos = p;
}
