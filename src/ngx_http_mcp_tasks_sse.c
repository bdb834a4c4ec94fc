
#include "ngx_http_mcp_tasks_sse.h"


static u_char *ngx_http_mcp_tasks_sse_line(u_char *p, u_char *end);


/* what an event takes at most */

size_t
ngx_http_mcp_tasks_sse_size(ngx_str_t *id, ngx_str_t *text)
{
    u_char  *p, *end;
    size_t   size;

    size = sizeof("id: \ndata: \n\n") - 1 + text->len;

    if (id) {
        size += id->len;
    }

    end = text->data + text->len;

    for (p = ngx_http_mcp_tasks_sse_line(text->data, end);
         p < end;
         p = ngx_http_mcp_tasks_sse_line(p + 1, end))
    {
        size += sizeof("data: ") - 1;
    }

    return size;
}


/* a line of the text is a line of data, whichever way it ends */

u_char *
ngx_http_mcp_tasks_sse_event(u_char *p, ngx_str_t *id, ngx_str_t *text)
{
    u_char  *s, *line, *end;

    if (id) {
        p = ngx_cpymem(p, "id: ", 4);
        p = ngx_cpymem(p, id->data, id->len);
        *p++ = '\n';
    }

    p = ngx_cpymem(p, "data: ", 6);
    end = text->data + text->len;

    for (s = text->data; /* void */ ; s = line + 1) {

        line = ngx_http_mcp_tasks_sse_line(s, end);
        p = ngx_cpymem(p, s, line - s);

        if (line == end) {
            break;
        }

        if (*line == '\r' && line + 1 < end && line[1] == '\n') {
            /* both together end one line */
            continue;
        }

        p = ngx_cpymem(p, "\ndata: ", 7);
    }

    return ngx_cpymem(p, "\n\n", 2);
}


/* where the line ends; nearly all texts are one line */

static u_char *
ngx_http_mcp_tasks_sse_line(u_char *p, u_char *end)
{
    u_char  *lf, *cr;

    lf = memchr(p, '\n', end - p);

    if (lf) {
        end = lf;
    }

    cr = memchr(p, '\r', end - p);

    return cr ? cr : end;
}


/* not in a pool: it belongs to no request */

ngx_http_mcp_tasks_shared_t *
ngx_http_mcp_tasks_share(ngx_str_t *id, ngx_str_t *text, ngx_log_t *log)
{
    ngx_http_mcp_tasks_shared_t  *shared;

    shared = ngx_alloc(sizeof(ngx_http_mcp_tasks_shared_t)
                       + ngx_http_mcp_tasks_sse_size(id, text), log);
    if (shared == NULL) {
        return NULL;
    }

    shared->refs = 1;
    shared->data = (u_char *) shared + sizeof(ngx_http_mcp_tasks_shared_t);
    shared->len = ngx_http_mcp_tasks_sse_event(shared->data, id, text)
                  - shared->data;

    return shared;
}


void
ngx_http_mcp_tasks_unshare(ngx_http_mcp_tasks_shared_t *shared)
{
    if (shared && --shared->refs == 0) {
        ngx_free(shared);
    }
}
