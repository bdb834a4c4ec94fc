
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_sse_writer.h"


typedef struct {
    u_char  *lf;        /* next LF, or the end of the text */
    u_char  *cr;        /* next CR, or the end of the text */
    u_char  *end;       /* end of the text */
} ngx_mcp_sse_lines_t;


static void ngx_mcp_sse_lines(ngx_mcp_sse_lines_t *lines, ngx_str_t *text);
static u_char *ngx_mcp_sse_line(ngx_mcp_sse_lines_t *lines, u_char *p);
static u_char *ngx_mcp_sse_find(u_char *p, u_char *end, u_char c);


size_t
ngx_mcp_sse_size(ngx_str_t *id, ngx_str_t *text)
{
    u_char               *p;
    size_t                size;
    ngx_mcp_sse_lines_t   lines;

    size = sizeof("id: \ndata: \n\n") - 1 + text->len;

    if (id) {
        size += id->len;
    }

    ngx_mcp_sse_lines(&lines, text);

    for (p = ngx_mcp_sse_line(&lines, text->data);
         p < lines.end;
         p = ngx_mcp_sse_line(&lines, p + 1))
    {
        size += sizeof("data: ") - 1;
    }

    return size;
}


/* LF, CR and CRLF end a line of the text, and each line is a data field. */

u_char *
ngx_mcp_sse_event(u_char *p, ngx_str_t *id, ngx_str_t *text)
{
    u_char               *s, *line;
    ngx_mcp_sse_lines_t   lines;

    if (id) {
        p = ngx_cpymem(p, "id: ", 4);
        p = ngx_cpymem(p, id->data, id->len);
        *p++ = '\n';
    }

    p = ngx_cpymem(p, "data: ", 6);
    ngx_mcp_sse_lines(&lines, text);

    for (s = text->data; /* void */ ; s = line + 1) {

        line = ngx_mcp_sse_line(&lines, s);
        p = ngx_cpymem(p, s, line - s);

        if (line == lines.end) {
            break;
        }

        if (*line == '\r' && line + 1 < lines.end && line[1] == '\n') {
            /* CRLF ends one line, not two */
            continue;
        }

        p = ngx_cpymem(p, "\ndata: ", 7);
    }

    return ngx_cpymem(p, "\n\n", 2);
}


static void
ngx_mcp_sse_lines(ngx_mcp_sse_lines_t *lines, ngx_str_t *text)
{
    lines->end = text->data + text->len;
    lines->lf = ngx_mcp_sse_find(text->data, lines->end, '\n');
    lines->cr = ngx_mcp_sse_find(text->data, lines->end, '\r');
}


/*
 * Returns the end of the line that begins at p.  The next LF and the next CR
 * are kept until they are passed.  With a new search for each line, a text
 * that has no CR would be read to its end once per line.
 */

static u_char *
ngx_mcp_sse_line(ngx_mcp_sse_lines_t *lines, u_char *p)
{
    if (lines->lf < p) {
        lines->lf = ngx_mcp_sse_find(p, lines->end, '\n');
    }

    if (lines->cr < p) {
        lines->cr = ngx_mcp_sse_find(p, lines->end, '\r');
    }

    return ngx_min(lines->lf, lines->cr);
}


static u_char *
ngx_mcp_sse_find(u_char *p, u_char *end, u_char c)
{
    u_char  *found;

    if (p == end) {
        return end;
    }

    found = memchr(p, c, end - p);

    return found ? found : end;
}


/* Not allocated in a pool: the event may outlive any of the requests. */

ngx_mcp_sse_shared_t *
ngx_mcp_sse_share(ngx_str_t *id, ngx_str_t *text, ngx_log_t *log)
{
    ngx_mcp_sse_shared_t  *shared;

    shared = ngx_alloc(sizeof(ngx_mcp_sse_shared_t)
                       + ngx_mcp_sse_size(id, text), log);
    if (shared == NULL) {
        return NULL;
    }

    shared->refs = 1;
    shared->data = (u_char *) shared + sizeof(ngx_mcp_sse_shared_t);
    shared->len = ngx_mcp_sse_event(shared->data, id, text)
                  - shared->data;

    return shared;
}


void
ngx_mcp_sse_unshare(ngx_mcp_sse_shared_t *shared)
{
    if (shared && --shared->refs == 0) {
        ngx_free(shared);
    }
}
