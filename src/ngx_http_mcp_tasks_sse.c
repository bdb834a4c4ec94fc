
#include "ngx_http_mcp_tasks_sse.h"


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

    for (p = text->data; p < end; p++) {
        if (*p == '\n' || *p == '\r') {
            size += sizeof("data: ") - 1;
        }
    }

    return size;
}


/* a line of the text is a line of data, whichever way it ends */

u_char *
ngx_http_mcp_tasks_sse_event(u_char *p, ngx_str_t *id, ngx_str_t *text)
{
    u_char  *s, *end;

    if (id) {
        p = ngx_cpymem(p, "id: ", 4);
        p = ngx_cpymem(p, id->data, id->len);
        *p++ = '\n';
    }

    p = ngx_cpymem(p, "data: ", 6);
    end = text->data + text->len;

    for (s = text->data; s < end; s++) {

        if (*s == '\r' && s + 1 < end && s[1] == '\n') {
            /* both together end one line */
            continue;
        }

        if (*s == '\n' || *s == '\r') {
            p = ngx_cpymem(p, "\ndata: ", 7);

        } else {
            *p++ = *s;
        }
    }

    return ngx_cpymem(p, "\n\n", 2);
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
