
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Errors of surfaces other than JSON-RPC, as application/problem+json. */


#include "ngx_mcp_http.h"


/* the largest response, in bytes */
#define NGX_MCP_PROBLEM    256


static const char *ngx_mcp_problem_title(ngx_uint_t status);


/*
 * Sends an error.  The reason and the detail, which may be NULL, are constants
 * of this module and are not escaped.  A body that has not been read is
 * discarded.
 */

ngx_int_t
ngx_mcp_problem(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t *reason,
    const char *detail)
{
    u_char     *p, *end;
    ngx_int_t   rc;
    ngx_str_t   text, retry;

    if (r->request_body == NULL) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (ngx_mcp_no_store(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (status == NGX_HTTP_TOO_MANY_REQUESTS
        || status == NGX_HTTP_SERVICE_UNAVAILABLE)
    {
        ngx_str_set(&retry, "1");

        if (ngx_mcp_add_header(r, "Retry-After", &retry) != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    text.data = ngx_pnalloc(r->pool, NGX_MCP_PROBLEM);
    if (text.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    end = text.data + NGX_MCP_PROBLEM;

    p = ngx_slprintf(text.data, end,
                     "{\"title\":\"%s\",\"status\":%ui,\"reason\":\"%V\"",
                     ngx_mcp_problem_title(status), status, reason);

    if (detail) {
        p = ngx_slprintf(p, end - 1, ",\"detail\":\"%s\"", detail);
    }

    *p++ = '}';
    text.len = p - text.data;

    ngx_str_set(&r->headers_out.content_type, "application/problem+json");

    return ngx_mcp_send(r, status, &text, 1);
}


static const char *
ngx_mcp_problem_title(ngx_uint_t status)
{
    switch (status) {
    case NGX_HTTP_BAD_REQUEST:
        return "Bad Request";
    case NGX_HTTP_FORBIDDEN:
        return "Forbidden";
    case NGX_HTTP_NOT_FOUND:
        return "Not Found";
    case NGX_HTTP_NOT_ALLOWED:
        return "Method Not Allowed";
    case NGX_HTTP_CONFLICT:
        return "Conflict";
    case NGX_MCP_HTTP_GONE:
        return "Gone";
    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return "Content Too Large";
    case NGX_HTTP_UNSUPPORTED_MEDIA_TYPE:
        return "Unsupported Media Type";
    case NGX_HTTP_TOO_MANY_REQUESTS:
        return "Too Many Requests";
    case NGX_HTTP_SERVICE_UNAVAILABLE:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}


/* sends the error for an operation that was refused for this reason */

ngx_int_t
ngx_mcp_problem_refused(ngx_http_request_t *r, ngx_uint_t reason)
{
    ngx_mcp_refusal_t  *refusal;

    refusal = ngx_mcp_reason(reason);

    return ngx_mcp_problem(r, refusal->status, &refusal->word, NULL);
}


ngx_int_t
ngx_mcp_problem_invalid(ngx_http_request_t *r, const char *detail)
{
    static ngx_str_t  reason = ngx_string("invalid_argument");

    return ngx_mcp_problem(r, NGX_HTTP_BAD_REQUEST, &reason, detail);
}
