
#include "ngx_mcp_feed.h"


/* as a timer can take it */
#define NGX_MCP_FEED_MAX_RETRY  NGX_MAX_INT32_VALUE


typedef enum {
    NGX_MCP_FEED_IN_NAME = 0,
    NGX_MCP_FEED_IN_SPACE,
    NGX_MCP_FEED_IN_VALUE,
    NGX_MCP_FEED_SKIP
} ngx_mcp_feed_state_e;


typedef enum {
    NGX_MCP_FEED_DATA = 0,
    NGX_MCP_FEED_EVENT,
    NGX_MCP_FEED_EVENT_ID,
    NGX_MCP_FEED_RETRY,
    NGX_MCP_FEED_UNKNOWN
} ngx_mcp_feed_field_e;


static u_char *ngx_mcp_feed_bom(ngx_mcp_feed_t *feed, u_char *p, u_char *end);
static u_char *ngx_mcp_feed_find(u_char *p, u_char *end, u_char c);
static ngx_int_t ngx_mcp_feed_part(ngx_mcp_feed_t *feed, u_char *p,
    u_char *end);
static ngx_int_t ngx_mcp_feed_begin(ngx_mcp_feed_t *feed);
static ngx_int_t ngx_mcp_feed_value(ngx_mcp_feed_t *feed, u_char *p, size_t n);
static ngx_int_t ngx_mcp_feed_id(ngx_mcp_feed_t *feed, u_char *p, size_t n);
static void ngx_mcp_feed_digits(ngx_mcp_feed_t *feed, u_char *p, u_char *end);
static ngx_int_t ngx_mcp_feed_append(ngx_mcp_feed_t *feed, u_char *p,
    size_t n);
static ngx_int_t ngx_mcp_feed_line(ngx_mcp_feed_t *feed,
    ngx_mcp_feed_pt handler, void *ctx);
static ngx_int_t ngx_mcp_feed_dispatch(ngx_mcp_feed_t *feed,
    ngx_mcp_feed_pt handler, void *ctx);


static ngx_str_t  ngx_mcp_feed_message = ngx_string("message");

/* in the order of the fields' numbers */

static ngx_str_t  ngx_mcp_feed_names[] = {
    ngx_string("data"),
    ngx_string("event"),
    ngx_string("id"),
    ngx_string("retry")
};


void
ngx_mcp_feed_init(ngx_mcp_feed_t *feed, size_t max, ngx_log_t *log)
{
    ngx_memzero(feed, sizeof(ngx_mcp_feed_t));

    feed->max = max;
    feed->log = log;
}


void
ngx_mcp_feed_free(ngx_mcp_feed_t *feed)
{
    if (feed->data) {
        ngx_free(feed->data);
    }

    if (feed->line_id) {
        ngx_free(feed->line_id);
    }

    feed->data = NULL;
    feed->size = 0;
    feed->len = 0;

    feed->line_id = NULL;
    feed->next_len = 0;
    ngx_str_null(&feed->id);
}


ngx_int_t
ngx_mcp_feed_read(ngx_mcp_feed_t *feed, u_char *p, size_t n,
    ngx_mcp_feed_pt handler, void *ctx)
{
    u_char     *end, *eol, *lf, *cr;
    ngx_int_t   rc;

    if (n == 0) {
        return NGX_OK;
    }

    end = p + n;

    p = ngx_mcp_feed_bom(feed, p, end);

    lf = ngx_mcp_feed_find(p, end, LF);
    cr = ngx_mcp_feed_find(p, end, CR);

    while (p < end) {

        if (feed->cr) {
            feed->cr = 0;

            if (*p == LF) {
                p++;
                continue;
            }
        }

        /*
         * What was found is kept until it is passed: a search for each line
         * would read the whole piece again if it has none of the other kind.
         */

        if (lf < p) {
            lf = ngx_mcp_feed_find(p, end, LF);
        }

        if (cr < p) {
            cr = ngx_mcp_feed_find(p, end, CR);
        }

        eol = ngx_min(lf, cr);

        rc = ngx_mcp_feed_part(feed, p, eol);
        if (rc != NGX_OK) {
            return rc;
        }

        if (eol == end) {
            break;
        }

        feed->cr = (*eol == CR);
        p = eol + 1;

        rc = ngx_mcp_feed_line(feed, handler, ctx);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static u_char *
ngx_mcp_feed_bom(ngx_mcp_feed_t *feed, u_char *p, u_char *end)
{
    static const u_char  bom[] = { 0xef, 0xbb, 0xbf };

    while (feed->bom < sizeof(bom) && p < end) {

        if (*p == bom[feed->bom]) {
            feed->bom++;
            p++;
            continue;
        }

        if (feed->bom) {
            /* a part of it begins a name, which is none that we know */
            feed->state = NGX_MCP_FEED_SKIP;
        }

        feed->bom = sizeof(bom);
    }

    return p;
}


static u_char *
ngx_mcp_feed_find(u_char *p, u_char *end, u_char c)
{
    u_char  *found;

    if (p == end) {
        return end;
    }

    found = memchr(p, c, end - p);

    return found ? found : end;
}


/* bytes of a line, perhaps not its first ones nor its last ones */

static ngx_int_t
ngx_mcp_feed_part(ngx_mcp_feed_t *feed, u_char *p, u_char *end)
{
    ngx_int_t  rc;

    if (feed->state == NGX_MCP_FEED_IN_NAME) {

        for ( /* void */ ; p < end && *p != ':'; p++) {

            if (feed->got == sizeof(feed->name)) {
                feed->state = NGX_MCP_FEED_SKIP;
                return NGX_OK;
            }

            feed->name[feed->got++] = *p;
        }

        if (p == end) {
            return NGX_OK;
        }

        p++;

        rc = ngx_mcp_feed_begin(feed);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (feed->state == NGX_MCP_FEED_SKIP || p == end) {
        return NGX_OK;
    }

    if (feed->state == NGX_MCP_FEED_IN_SPACE) {
        feed->state = NGX_MCP_FEED_IN_VALUE;

        if (*p == ' ' && ++p == end) {
            return NGX_OK;
        }
    }

    return ngx_mcp_feed_value(feed, p, end - p);
}


/* the name is complete; a comment has an empty one */

static ngx_int_t
ngx_mcp_feed_begin(ngx_mcp_feed_t *feed)
{
    ngx_str_t   *name;
    ngx_uint_t   i;

    for (i = 0; i < NGX_MCP_FEED_UNKNOWN; i++) {
        name = &ngx_mcp_feed_names[i];

        if (name->len == feed->got
            && ngx_memcmp(name->data, feed->name, name->len) == 0)
        {
            break;
        }
    }

    feed->field = i;
    feed->got = 0;
    feed->number = 0;

    if (i == NGX_MCP_FEED_UNKNOWN) {
        feed->state = NGX_MCP_FEED_SKIP;
        return NGX_OK;
    }

    feed->state = NGX_MCP_FEED_IN_SPACE;

    if (i == NGX_MCP_FEED_DATA) {

        if (feed->filled) {
            return ngx_mcp_feed_append(feed, (u_char *) "\n", 1);
        }

        feed->filled = 1;
    }

    return NGX_OK;
}


/* some bytes of a value; what cannot be right any more is skipped */

static ngx_int_t
ngx_mcp_feed_value(ngx_mcp_feed_t *feed, u_char *p, size_t n)
{
    ngx_str_t  *message;

    switch (feed->field) {

    case NGX_MCP_FEED_DATA:
        return ngx_mcp_feed_append(feed, p, n);

    case NGX_MCP_FEED_EVENT:
        message = &ngx_mcp_feed_message;

        if (n > message->len - feed->got
            || ngx_memcmp(message->data + feed->got, p, n) != 0)
        {
            feed->other = 1;
            feed->state = NGX_MCP_FEED_SKIP;
            break;
        }

        feed->got += n;
        break;

    case NGX_MCP_FEED_EVENT_ID:
        return ngx_mcp_feed_id(feed, p, n);

    default: /* NGX_MCP_FEED_RETRY */
        ngx_mcp_feed_digits(feed, p, p + n);
        break;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_feed_id(ngx_mcp_feed_t *feed, u_char *p, size_t n)
{
    if (n > NGX_MCP_FEED_ID - feed->got
        || memchr(p, '\0', n) != NULL)
    {
        feed->state = NGX_MCP_FEED_SKIP;
        return NGX_OK;
    }

    if (feed->line_id == NULL) {
        feed->line_id = ngx_alloc(3 * NGX_MCP_FEED_ID, feed->log);
        if (feed->line_id == NULL) {
            return NGX_ERROR;
        }

        feed->next_id = feed->line_id + NGX_MCP_FEED_ID;
        feed->id.data = feed->next_id + NGX_MCP_FEED_ID;
    }

    ngx_memcpy(feed->line_id + feed->got, p, n);
    feed->got += n;

    return NGX_OK;
}


static void
ngx_mcp_feed_digits(ngx_mcp_feed_t *feed, u_char *p, u_char *end)
{
    uint64_t  n;

    for ( /* void */ ; p < end; p++) {

        if (*p < '0' || *p > '9') {
            feed->state = NGX_MCP_FEED_SKIP;
            return;
        }

        n = (uint64_t) feed->number * 10 + (*p - '0');

        feed->number = (ngx_msec_t)
                           ngx_min(n, NGX_MCP_FEED_MAX_RETRY);
    }

    /* how many digits there are does not matter, but that there are some */
    feed->got = 1;
}


static ngx_int_t
ngx_mcp_feed_append(ngx_mcp_feed_t *feed, u_char *p, size_t n)
{
    u_char  *data;
    size_t   size;

    if (n > feed->max - feed->len) {
        return NGX_DECLINED;
    }

    if (n > feed->size - feed->len) {

        size = ngx_max(2 * feed->size, feed->len + n);
        size = ngx_max(size, NGX_MCP_FEED_SIZE);
        size = ngx_min(size, feed->max);

        data = ngx_alloc(size, feed->log);
        if (data == NULL) {
            return NGX_ERROR;
        }

        if (feed->data) {
            ngx_memcpy(data, feed->data, feed->len);
            ngx_free(feed->data);
        }

        feed->data = data;
        feed->size = size;
    }

    ngx_memcpy(feed->data + feed->len, p, n);
    feed->len += n;

    return NGX_OK;
}


/* the end of a line */

static ngx_int_t
ngx_mcp_feed_line(ngx_mcp_feed_t *feed, ngx_mcp_feed_pt handler, void *ctx)
{
    ngx_int_t  rc;

    if (feed->state == NGX_MCP_FEED_IN_NAME) {

        if (feed->got == 0) {
            return ngx_mcp_feed_dispatch(feed, handler, ctx);
        }

        /* no colon: a name with an empty value */

        rc = ngx_mcp_feed_begin(feed);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (feed->state != NGX_MCP_FEED_SKIP) {

        switch (feed->field) {

        case NGX_MCP_FEED_EVENT:
            feed->other = (feed->got != 0
                           && feed->got != ngx_mcp_feed_message.len);
            break;

        case NGX_MCP_FEED_EVENT_ID:
            if (feed->got) {
                ngx_memcpy(feed->next_id, feed->line_id, feed->got);
            }

            feed->next_len = feed->got;
            break;

        case NGX_MCP_FEED_RETRY:
            if (feed->got) {
                feed->retry = feed->number;
            }

            break;
        }
    }

    feed->state = NGX_MCP_FEED_IN_NAME;
    feed->got = 0;

    return NGX_OK;
}


/*
 * An empty line ends an event.  All is ready for the next one before the
 * handler is called, since the feed may be gone after it.
 */

static ngx_int_t
ngx_mcp_feed_dispatch(ngx_mcp_feed_t *feed, ngx_mcp_feed_pt handler, void *ctx)
{
    u_char      *large;
    ngx_int_t    rc;
    ngx_str_t    data;
    ngx_uint_t   wanted;

    if (feed->next_len) {
        ngx_memcpy(feed->id.data, feed->next_id, feed->next_len);
    }

    feed->id.len = feed->next_len;

    wanted = feed->filled && !feed->other;

    data.len = feed->len;
    data.data = feed->data ? feed->data : (u_char *) "";

    feed->len = 0;
    feed->filled = 0;
    feed->other = 0;

    large = NULL;

    if (feed->size > NGX_MCP_FEED_SIZE) {
        large = feed->data;
        feed->data = NULL;
        feed->size = 0;
    }

    rc = wanted ? handler(ctx, feed, &data) : NGX_OK;

    if (data.data == NULL) {

        if (large == NULL) {
            feed->data = NULL;
            feed->size = 0;
        }

    } else if (large) {
        ngx_free(large);
    }

    return rc;
}
