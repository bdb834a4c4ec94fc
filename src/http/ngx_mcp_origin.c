
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Access by Origin and Host.  A page that a browser has loaded from another
 * site must not reach a server on the user's machine, neither directly nor by
 * DNS rebinding, where a name of that site resolves to a local address.
 */


#include "ngx_mcp_http.h"


static ngx_uint_t ngx_mcp_origin_allowed(ngx_http_request_t *r,
    ngx_str_t *from);
static u_char *ngx_mcp_origin_host(ngx_http_request_t *r, ngx_str_t *origin);
static ngx_int_t ngx_mcp_origin_headers(ngx_http_request_t *r,
    ngx_str_t *origin);
static ngx_uint_t ngx_mcp_header_names(ngx_str_t *list);
static ngx_uint_t ngx_mcp_own_name(ngx_http_request_t *r, ngx_str_t *host);
static ngx_uint_t ngx_mcp_same(ngx_str_t *pattern, ngx_str_t *s);
static ngx_uint_t ngx_mcp_allowed(ngx_http_request_t *r, ngx_str_t *s);


/*
 * Returns 1 if the request is allowed.  A page of that origin may read the
 * response then.
 */

ngx_uint_t
ngx_mcp_origin(ngx_http_request_t *r)
{
    ngx_str_t  origin;

    ngx_str_null(&origin);

    if (!ngx_mcp_origin_allowed(r, &origin)) {
        return 0;
    }

    return origin.len == 0
           || ngx_mcp_origin_headers(r, &origin) == NGX_OK;
}


static ngx_uint_t
ngx_mcp_origin_allowed(ngx_http_request_t *r, ngx_str_t *from)
{
    u_char              *p, *end;
    ngx_str_t            origin, host;
    ngx_mcp_loc_conf_t  *lcf;
    static ngx_str_t     name = ngx_string("origin");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (lcf->any_origin) {
        (void) ngx_mcp_header(r, &name, from);
        return 1;
    }

    /* nginx has validated it: it is in lower case and has no port */

    host = r->headers_in.server;

    if (host.len
        && !ngx_mcp_own_name(r, &host)
        && !ngx_mcp_allowed(r, &host))
    {
        return 0;
    }

    switch (ngx_mcp_header(r, &name, &origin)) {
    case 0:
        return 1;
    case 1:
        break;
    default:
        return 0;
    }

    *from = origin;

    if (ngx_mcp_allowed(r, &origin)) {
        return 1;
    }

    /* scheme://host:port */

    end = origin.data + origin.len;
    p = ngx_strlchr(origin.data, end, ':');

    if (p == NULL || end - p < 4 || p[1] != '/' || p[2] != '/') {
        return 0;
    }

    host.data = p + 3;
    p = host.data;

    if (*p == '[') {
        while (p < end && *p != ']') {
            p++;
        }
    }

    while (p < end && *p != ':') {
        p++;
    }

    host.len = p - host.data;

    return ngx_mcp_own_name(r, &host)
           || ngx_mcp_allowed(r, &host);
}


/*
 * For surfaces that only pages of this server may use: an Origin has to match
 * the Host, and the Host has to be a name of this server or listed in
 * mcp_tasks_allow_origin.  The parameter "any" has no effect here.
 */

ngx_uint_t
ngx_mcp_same_origin(ngx_http_request_t *r)
{
    u_char            *p, *end;
    ngx_str_t          origin, host;
    static ngx_str_t   name = ngx_string("origin");

    host = r->headers_in.server;

    if (host.len
        && !ngx_mcp_own_name(r, &host)
        && !ngx_mcp_allowed(r, &host))
    {
        return 0;
    }

    switch (ngx_mcp_header(r, &name, &origin)) {
    case 0:
        return 1;
    case 1:
        break;
    default:
        return 0;
    }

    if (r->headers_in.host) {
        host = r->headers_in.host->value;
    }

    end = origin.data + origin.len;
    p = ngx_mcp_origin_host(r, &origin);

    if (p == NULL || host.len == 0 || (size_t) (end - p) < host.len
        || ngx_strncasecmp(p, host.data, host.len) != 0)
    {
        return 0;
    }

    p += host.len;

    /* an HTTP/3 request may have no Host header, then its port is unknown */

    return p == end || (r->headers_in.host == NULL && *p == ':');
}


/*
 * Returns the host and port of an origin; NULL: the scheme is not allowed.
 * With TLS, pages loaded without TLS are refused, since anyone on the network
 * path could have modified them.  Without TLS both schemes are allowed, since a
 * proxy in front of nginx may terminate TLS.
 */

static u_char *
ngx_mcp_origin_host(ngx_http_request_t *r, ngx_str_t *origin)
{
    ngx_uint_t        i;
    static ngx_str_t  schemes[] = {
        ngx_string("https://"),
        ngx_string("http://")
    };

    for (i = 0; i < 2; i++) {

        if (origin->len > schemes[i].len
            && ngx_strncasecmp(origin->data, schemes[i].data, schemes[i].len)
               == 0)
        {
            return origin->data + schemes[i].len;
        }

#if (NGX_HTTP_SSL)
        if (r->connection->ssl) {
            break;
        }
#endif
    }

    return NULL;
}


static ngx_int_t
ngx_mcp_origin_headers(ngx_http_request_t *r, ngx_str_t *origin)
{
    ngx_str_t  value;

    if (ngx_mcp_add_header(r, "Access-Control-Allow-Origin", origin)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_str_set(&value, "Mcp-Session-Id, ETag, Location, Retry-After");

    if (ngx_mcp_add_header(r, "Access-Control-Expose-Headers",
                           &value)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_str_set(&value, "Origin");

    return ngx_mcp_add_header(r, "Vary", &value);
}


/* the response to a CORS preflight request */

ngx_int_t
ngx_mcp_options(ngx_http_request_t *r, const char *allow)
{
    ngx_int_t         rc;
    ngx_str_t         names, methods, age;
    static ngx_str_t  asked = ngx_string("access-control-request-headers");
    static ngx_str_t  usual = ngx_string(
                          "Accept, Authorization, Content-Type, "
                          "Last-Event-ID, Mcp-Method, Mcp-Name, "
                          "MCP-Protocol-Version, Mcp-Session-Id");

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    methods.data = (u_char *) allow;
    methods.len = ngx_strlen(allow);
    ngx_str_set(&age, "86400");

    if (ngx_mcp_add_header(r, "Allow", &methods) != NGX_OK
        || ngx_mcp_add_header(r, "Access-Control-Allow-Methods",
                              &methods)
           != NGX_OK
        || ngx_mcp_add_header(r, "Access-Control-Max-Age", &age)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the schema of a tool may require further headers: Mcp-Param-... */

    if (ngx_mcp_header(r, &asked, &names) != 1
        || !ngx_mcp_header_names(&names))
    {
        names = usual;
    }

    if (ngx_mcp_add_header(r, "Access-Control-Allow-Headers",
                           &names)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_send_header(r);
}


/* whether it is a list of header names, which is safe to send back */

static ngx_uint_t
ngx_mcp_header_names(ngx_str_t *list)
{
    u_char  c, *p;

    for (p = list->data; p < list->data + list->len; p++) {
        c = ngx_tolower(*p);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')
              || c == '-' || c == ',' || c == ' '))
        {
            return 0;
        }
    }

    return list->len != 0;
}


/* whether it is a name of this server, or of the loopback interface */

static ngx_uint_t
ngx_mcp_own_name(ngx_http_request_t *r, ngx_str_t *host)
{
    ngx_str_t               *s;
    ngx_uint_t               i;
    ngx_http_server_name_t  *names;
    ngx_mcp_loc_conf_t      *lcf;
    static ngx_str_t         loopback[] = {
        ngx_string("localhost"),
        ngx_string("127.0.0.1"),
        ngx_string("[::1]"),
        ngx_null_string
    };

    for (s = loopback; s->len; s++) {
        if (ngx_mcp_same(s, host)) {
            return 1;
        }
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    names = lcf->names->elts;

    for (i = 0; i < lcf->names->nelts; i++) {

#if (NGX_PCRE)
        if (names[i].regex) {
            if (ngx_regex_exec(names[i].regex->regex, host, NULL, 0) >= 0) {
                return 1;
            }

            continue;
        }
#endif

        if (ngx_mcp_same(&names[i].name, host)) {
            return 1;
        }
    }

    return 0;
}


/* whether mcp_tasks_allow_origin lists it */

static ngx_uint_t
ngx_mcp_allowed(ngx_http_request_t *r, ngx_str_t *s)
{
    ngx_str_t           *origin;
    ngx_uint_t           i;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (lcf->origins == NULL) {
        return 0;
    }

    origin = lcf->origins->elts;

    for (i = 0; i < lcf->origins->nelts; i++) {
        if (ngx_mcp_same(&origin[i], s)) {
            return 1;
        }
    }

    return 0;
}


/*
 * Compares as server_name does: "*.example.com" matches all names below,
 * ".example.com" also matches that name itself, and "www.example.*" matches all
 * names that begin with "www.example.".
 */

static ngx_uint_t
ngx_mcp_same(ngx_str_t *pattern, ngx_str_t *s)
{
    ngx_str_t  p;

    p = *pattern;

    if (p.len > 2 && p.data[p.len - 1] == '*' && p.data[p.len - 2] == '.') {
        return s->len >= p.len
               && ngx_strncasecmp(p.data, s->data, p.len - 1) == 0;
    }

    if (p.len > 2 && p.data[0] == '*' && p.data[1] == '.') {
        p.data++;
        p.len--;

    } else if (p.len > 1 && p.data[0] == '.') {

        if (s->len == p.len - 1
            && ngx_strncasecmp(p.data + 1, s->data, s->len) == 0)
        {
            return 1;
        }

    } else {
        return p.len && p.len == s->len
               && (ngx_memcmp(p.data, s->data, s->len) == 0
                   || ngx_strncasecmp(p.data, s->data, s->len) == 0);
    }

    return s->len > p.len
           && ngx_strncasecmp(p.data, s->data + s->len - p.len, p.len) == 0;
}


/*
 * Whether the client is on this machine: it has a loopback address or uses a
 * unix socket.  A request that nginx makes for a background call is not local,
 * since its URI may come from a server on another machine.
 */

ngx_uint_t
ngx_mcp_local(ngx_http_request_t *r)
{
    ngx_mcp_ctx_t        *ctx;
    struct sockaddr      *sa;
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6  *sin6;
#endif

    ctx = ngx_mcp_ctx(r);

    if (ctx && ctx->detached) {
        return 0;
    }

    sa = r->connection->sockaddr;

    switch (sa->sa_family) {

    case AF_INET:
        sin = (struct sockaddr_in *) sa;
        return (ntohl(sin->sin_addr.s_addr) >> 24) == 127;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) sa;
        return IN6_IS_ADDR_LOOPBACK(&sin6->sin6_addr)
               || (IN6_IS_ADDR_V4MAPPED(&sin6->sin6_addr)
                   && sin6->sin6_addr.s6_addr[12] == 127);
#endif

#if (NGX_HAVE_UNIX_DOMAIN)
    case AF_UNIX:
        return 1;
#endif
    }

    return 0;
}
