
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The sender of a job: a copy of the parts of the client's request that are
 * sent to the upstream.  It may have credentials, and is kept only in the
 * memory of this process, until the job is freed.
 */


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_detached.h"


typedef struct {
    ngx_str_t   name;
    ngx_uint_t  prefix;     /* 1: matches all names that begin with it */
} ngx_mcp_header_name_t;


static ngx_uint_t ngx_mcp_sender_own_name(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_sender_variables(ngx_mcp_sender_t *sender,
    ngx_http_request_t *r, ngx_uint_t *bound);
static ngx_int_t ngx_mcp_sender_headers(ngx_mcp_sender_t *sender,
    ngx_http_request_t *r, ngx_uint_t *bound);
static ngx_table_elt_t *ngx_mcp_sender_header(ngx_mcp_sender_t *sender,
    ngx_str_t *key, ngx_str_t *value);
static ngx_int_t ngx_mcp_sender_addr(ngx_mcp_sender_t *sender,
    ngx_connection_t *c);
static ngx_uint_t ngx_mcp_sender_known(ngx_mcp_header_name_t *known,
    ngx_table_elt_t *h);
static ngx_int_t ngx_mcp_sender_str(ngx_pool_t *pool, ngx_str_t *dst,
    ngx_str_t *src);


/*
 * Headers that are not copied: they describe the client's connection or body,
 * or would change the encoding or the status of the response.
 */

static ngx_mcp_header_name_t  ngx_mcp_not_sent[] = {
    { ngx_string("connection"), 0 },
    { ngx_string("keep-alive"), 0 },
    { ngx_string("proxy-connection"), 0 },
    { ngx_string("te"), 0 },
    { ngx_string("trailer"), 0 },
    { ngx_string("transfer-encoding"), 0 },
    { ngx_string("upgrade"), 0 },
    { ngx_string("http2-settings"), 0 },
    { ngx_string("expect"), 0 },
    { ngx_string("content-length"), 0 },
    { ngx_string("accept-encoding"), 0 },
    { ngx_string("range"), 0 },
    { ngx_string("if-"), 1 },

    /* set by ngx_mcp_sender_trace() */
    { ngx_string("traceparent"), 0 },
    { ngx_string("tracestate"), 0 },
    { ngx_string("baggage"), 0 },
    { ngx_null_string, 0 }
};


/*
 * Headers that do not identify the client.  If a request has any other header,
 * no other process may run the call: without the header it may be a different
 * call.
 */

static ngx_mcp_header_name_t  ngx_mcp_generic[] = {
    { ngx_string("host"), 0 },
    { ngx_string("user-agent"), 0 },
    { ngx_string("accept"), 0 },
    { ngx_string("accept-language"), 0 },
    { ngx_string("content-type"), 0 },
    { ngx_string("cache-control"), 0 },
    { ngx_string("pragma"), 0 },
    { ngx_string("priority"), 0 },
    { ngx_string("mcp-protocol-version"), 0 },
    { ngx_string("mcp-method"), 0 },
    { ngx_string("mcp-name"), 0 },
    { ngx_string("sec-fetch-"), 1 },
    { ngx_null_string, 0 }
};


ngx_int_t
ngx_mcp_sender_copy(ngx_mcp_sender_t *sender, ngx_http_request_t *r,
    ngx_mcp_loc_conf_t *lcf, ngx_uint_t *bound)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    sender->conf_ctx = lcf->conf_ctx;
    sender->addr_conf = r->http_connection->addr_conf;
    sender->uri = lcf->pass;
    sender->era = ctx->era;

    *bound = (ctx->owner.len || r->args.len
              || !ngx_mcp_sender_own_name(r));

#if (NGX_SSL || NGX_COMPAT)
    if (r->connection->ssl) {
        *bound = 1;
    }
#endif

    if (ngx_mcp_sender_headers(sender, r, bound) != NGX_OK
        || ngx_mcp_sender_variables(sender, r, bound) != NGX_OK
        || ngx_mcp_sender_addr(sender, r->connection) != NGX_OK
        || ngx_mcp_sender_str(sender->pool, &sender->args,
                              &r->args)
           != NGX_OK
        || ngx_mcp_sender_str(sender->pool, &sender->server,
                              &r->headers_in.server)
           != NGX_OK
        || ngx_mcp_sender_str(sender->pool, &sender->tool,
                              &ctx->tool)
           != NGX_OK
        || ngx_mcp_client(r, ctx) != NGX_OK
        || ngx_mcp_sender_str(sender->pool, &sender->client,
                              &ctx->client)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Tells if Host is the server's own name or a local one.  The upstream may
 * treat a call with any other name differently.
 */

static ngx_uint_t
ngx_mcp_sender_own_name(ngx_http_request_t *r)
{
    ngx_str_t                 *host;
    ngx_http_core_srv_conf_t  *cscf;

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    host = &r->headers_in.server;

    return (host->len == cscf->server_name.len
            && ngx_strncasecmp(host->data, cscf->server_name.data, host->len)
               == 0)
           || (host->len == 9 && ngx_strncmp(host->data, "localhost", 9) == 0)
           || (host->len == 9 && ngx_strncmp(host->data, "127.0.0.1", 9) == 0);
}


/*
 * Copies variables that have a value, as set by "set", "auth_request_set" and
 * so on, so that detached requests have them as after an internal redirect.
 */

static ngx_int_t
ngx_mcp_sender_variables(ngx_mcp_sender_t *sender, ngx_http_request_t *r,
    ngx_uint_t *bound)
{
    ngx_str_t                   src, dst;
    ngx_uint_t                  i;
    ngx_http_core_main_conf_t  *cmcf;
    ngx_mcp_kept_t             *kept;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    if (ngx_array_init(&sender->variables, sender->pool, 4,
                       sizeof(ngx_mcp_kept_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < cmcf->variables.nelts; i++) {

        if (!r->variables[i].valid || r->variables[i].no_cacheable) {
            continue;
        }

        kept = ngx_array_push(&sender->variables);
        if (kept == NULL) {
            return NGX_ERROR;
        }

        src.data = r->variables[i].data;
        src.len = r->variables[i].len;

        if (ngx_mcp_sender_str(sender->pool, &dst, &src) != NGX_OK) {
            return NGX_ERROR;
        }

        kept->index = i;
        kept->value = r->variables[i];
        kept->value.data = dst.data;
        *bound = 1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_sender_headers(ngx_mcp_sender_t *sender, ngx_http_request_t *r,
    ngx_uint_t *bound)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h, *copy;

    if (ngx_array_init(&sender->headers, sender->pool, 16,
                       sizeof(ngx_table_elt_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    part = &r->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return NGX_OK;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        copy = ngx_mcp_sender_header(sender, &h[i].key, &h[i].value);
        if (copy == NULL) {
            return NGX_ERROR;
        }

        if (ngx_mcp_sender_known(ngx_mcp_not_sent, copy)) {
            sender->headers.nelts--;

        } else if (!ngx_mcp_sender_known(ngx_mcp_generic, copy)) {
            *bound = 1;
        }
    }
}


static ngx_table_elt_t *
ngx_mcp_sender_header(ngx_mcp_sender_t *sender, ngx_str_t *key,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_array_push(&sender->headers);
    if (h == NULL) {
        return NULL;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->lowcase_key = ngx_pnalloc(sender->pool, key->len);

    if (h->lowcase_key == NULL
        || ngx_mcp_sender_str(sender->pool, &h->key, key) != NGX_OK
        || ngx_mcp_sender_str(sender->pool, &h->value, value)
           != NGX_OK)
    {
        return NULL;
    }

    h->hash = ngx_hash_strlow(h->lowcase_key, h->key.data, h->key.len);

    return h;
}


static ngx_uint_t
ngx_mcp_sender_known(ngx_mcp_header_name_t *known, ngx_table_elt_t *h)
{
    for ( /* void */ ; known->name.len; known++) {

        if ((known->prefix ? h->key.len >= known->name.len
                           : h->key.len == known->name.len)
            && ngx_memcmp(h->lowcase_key, known->name.data, known->name.len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_mcp_sender_addr(ngx_mcp_sender_t *sender, ngx_connection_t *c)
{
    if (ngx_connection_local_sockaddr(c, NULL, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    sender->socklen = c->socklen;
    sender->sockaddr = ngx_palloc(sender->pool, c->socklen);
    sender->local_socklen = c->local_socklen;
    sender->local_sockaddr = ngx_palloc(sender->pool, c->local_socklen);

    if (sender->sockaddr == NULL || sender->local_sockaddr == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(sender->sockaddr, c->sockaddr, c->socklen);
    ngx_memcpy(sender->local_sockaddr, c->local_sockaddr, c->local_socklen);

    return ngx_mcp_sender_str(sender->pool, &sender->addr_text, &c->addr_text);
}


/*
 * For a call that is taken over and does not depend on its client: sets the
 * headers that MCP requires.  The client's address is 0.0.0.0, so that access
 * rules for local clients or for unix sockets do not allow it.
 */

ngx_int_t
ngx_mcp_sender_make(ngx_mcp_sender_t *sender, ngx_mcp_loc_conf_t *lcf,
    ngx_str_t *tool)
{
    ngx_uint_t                  i;
    ngx_str_t                   src, name;
    static ngx_str_t            name_key = ngx_string("Mcp-Name");
    static ngx_str_t            version = ngx_string("MCP-Protocol-Version");
    static ngx_str_t            any_addr_text = ngx_string("0.0.0.0");
    static struct sockaddr      local = { .sa_family = AF_UNIX };
    static struct sockaddr_in   any_addr = { .sin_family = AF_INET };
    static struct {
        ngx_str_t  key;
        ngx_str_t  value;
    } headers[] = {
        { ngx_string("Content-Type"), ngx_string("application/json") },
        { ngx_string("Accept"),
          ngx_string("application/json, text/event-stream") },
        { ngx_string("Mcp-Method"), ngx_string("tools/call") }
    };

    sender->conf_ctx = lcf->conf_ctx;
    sender->uri = lcf->pass;
    sender->era = NGX_MCP_MODERN;
    sender->sockaddr = (struct sockaddr *) &any_addr;
    sender->socklen = sizeof(struct sockaddr_in);
    sender->local_sockaddr = &local;
    sender->local_socklen = sizeof(struct sockaddr);
    sender->addr_text = any_addr_text;

    if (ngx_array_init(&sender->headers, sender->pool, 5,
                       sizeof(ngx_table_elt_t))
        != NGX_OK
        || ngx_mcp_sender_str(sender->pool, &sender->tool, tool)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (ngx_mcp_sender_header(sender, &headers[i].key, &headers[i].value)
            == NULL)
        {
            return NGX_ERROR;
        }
    }

    if (ngx_mcp_sender_header(sender, &version, &ngx_mcp_modern_latest->name)
        == NULL)
    {
        return NGX_ERROR;
    }

    /* a name may have characters that a header cannot have */

    src = sender->tool;

    name.data = ngx_pnalloc(sender->pool, ngx_base64_encoded_length(src.len)
                                          + sizeof("=?base64?" "?="));
    if (name.data == NULL) {
        return NGX_ERROR;
    }

    src.data = sender->tool.data;
    name.data += sizeof("=?base64?") - 1;
    ngx_encode_base64(&name, &src);
    name.data -= sizeof("=?base64?") - 1;
    ngx_memcpy(name.data, "=?base64?", sizeof("=?base64?") - 1);
    name.len += sizeof("=?base64?") - 1;
    ngx_memcpy(name.data + name.len, "?=", 2);
    name.len += 2;

    return ngx_mcp_sender_header(sender, &name_key, &name)
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_mcp_sender_trace(ngx_mcp_sender_t *sender, ngx_mcp_json_t *meta)
{
    ngx_str_t        *value;
    ngx_uint_t        i;
    ngx_mcp_json_t    members[NGX_MCP_TRACES];
    ngx_table_elt_t  *h;
    ngx_mcp_member_t  names[NGX_MCP_TRACES];

    for (i = 0; i < NGX_MCP_TRACES; i++) {
        names[i].name = ngx_mcp_trace_names[i];
        names[i].value = &members[i];
    }

    if (ngx_mcp_json_members(meta, names, NGX_MCP_TRACES) != NGX_OK) {
        /* not written by this release: the context is ambiguous */
        return NGX_OK;
    }

    if (ngx_mcp_trace_read(sender->pool, members, NULL, &sender->trace)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_MCP_TRACES; i++) {
        value = &sender->trace.value[i];

        if (value->len == 0) {
            continue;
        }

        h = ngx_mcp_sender_header(sender, &ngx_mcp_trace_names[i], value);
        if (h == NULL) {
            return NGX_ERROR;
        }

        /* the params are freed with the client's request */

        *value = h->value;
    }

    return NGX_OK;
}


/*
 * Sets the headers that repeat the method and a name of the body, where the
 * client sent them; NULL: the name of the call.  Both are not copied.
 */

void
ngx_mcp_sender_method(ngx_mcp_sender_t *sender, ngx_str_t *method,
    ngx_str_t *name)
{
    ngx_uint_t                     i;
    ngx_table_elt_t               *h;
    static ngx_mcp_header_name_t   is_method[] = {
        { ngx_string("mcp-method"), 0 },
        { ngx_null_string, 0 }
    };
    static ngx_mcp_header_name_t   is_name[] = {
        { ngx_string("mcp-name"), 0 },
        { ngx_null_string, 0 }
    };

    h = sender->headers.elts;

    for (i = 0; i < sender->headers.nelts; i++) {

        if (ngx_mcp_sender_known(is_method, &h[i])) {
            h[i].value = *method;

        } else if (ngx_mcp_sender_known(is_name, &h[i])) {

            if (sender->name.data == NULL) {
                sender->name = h[i].value;
            }

            h[i].value = name ? *name : sender->name;
        }
    }
}


/*
 * Copies a string with a space before it and a null after it.  nginx expects
 * header values to end with a null, and reads the byte before an empty value,
 * which is a space in a client's request.
 */

static ngx_int_t
ngx_mcp_sender_str(ngx_pool_t *pool, ngx_str_t *dst, ngx_str_t *src)
{
    u_char  *p;

    p = ngx_pnalloc(pool, src->len + 2);
    if (p == NULL) {
        return NGX_ERROR;
    }

    *p++ = ' ';

    if (src->len) {
        ngx_memcpy(p, src->data, src->len);
    }

    p[src->len] = '\0';

    dst->data = p;
    dst->len = src->len;

    return NGX_OK;
}
