
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* References between schemas: URIs, anchors, JSON pointers, and loops. */


#include "ngx_mcp_schema_types.h"


static ngx_int_t ngx_mcp_uri_resolve(ngx_pool_t *pool, ngx_str_t *base,
    ngx_str_t *ref, ngx_str_t *uri);
static size_t ngx_mcp_uri_scheme(ngx_str_t *uri);
static size_t ngx_mcp_uri_authority(ngx_str_t *uri);
static u_char *ngx_mcp_uri_path(u_char *path, u_char *end);
static ngx_int_t ngx_mcp_schema_reference(ngx_mcp_compile_t *c,
    ngx_mcp_reference_t *reference);
static ngx_mcp_resource_t *ngx_mcp_schema_find(ngx_mcp_compile_t *c,
    ngx_str_t *uri);
static ngx_int_t ngx_mcp_schema_fragment(ngx_mcp_compile_t *c,
    ngx_mcp_reference_t *reference, ngx_mcp_resource_t *resource,
    ngx_str_t *fragment);
static void ngx_mcp_schema_only(ngx_mcp_node_t *node, ngx_mcp_node_t *target);
static ngx_int_t ngx_mcp_schema_walk(ngx_pool_t *pool, ngx_str_t *pointer,
    ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_schema_step(ngx_pool_t *pool, ngx_str_t *token,
    ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_schema_loop(ngx_mcp_compile_t *c,
    ngx_mcp_node_t *node, ngx_uint_t depth);
static ngx_int_t ngx_mcp_schema_loop_apply(ngx_mcp_compile_t *c,
    ngx_mcp_node_t *node, ngx_uint_t depth);


/* the part of a schema that has a URI; base is NULL for the whole of it */

ngx_mcp_resource_t *
ngx_mcp_schema_resource(ngx_mcp_compile_t *c, ngx_mcp_json_t *text,
    ngx_mcp_json_t *id, ngx_mcp_resource_t *base)
{
    ngx_str_t             s, uri;
    ngx_mcp_resource_t   *resource, **resources;

    ngx_str_set(&uri, "");

    if (base) {
        if (id->type != NGX_MCP_JSON_STRING) {
            (void) ngx_mcp_schema_error(c, id->text.data, "must be a string");
            return NULL;
        }

        if (ngx_mcp_value_string(c->pool, id, &s) != NGX_OK) {
            return NULL;
        }

        if (s.len && s.data[s.len - 1] == '#') {
            s.len--;
        }

        if (ngx_strlchr(s.data, s.data + s.len, '#') != NULL) {
            (void) ngx_mcp_schema_error(c, id->text.data,
                                        "must be a URI without a fragment");
            return NULL;
        }

        if (ngx_mcp_uri_resolve(c->pool, &base->uri, &s, &uri) != NGX_OK) {
            return NULL;
        }

        if (uri.len && ngx_mcp_schema_find(c, &uri)) {
            (void) ngx_mcp_schema_error(c, id->text.data, "is duplicate");
            return NULL;
        }
    }

    resource = ngx_pcalloc(c->pool, sizeof(ngx_mcp_resource_t));
    resources = ngx_array_push(&c->resources);

    if (resource == NULL || resources == NULL
        || ngx_array_init(&resource->anchors, c->pool, 2,
                          sizeof(ngx_mcp_anchor_t))
           != NGX_OK)
    {
        return NULL;
    }

    resource->uri = uri;
    resource->text = *text;
    *resources = resource;

    return resource;
}


static ngx_mcp_resource_t *
ngx_mcp_schema_find(ngx_mcp_compile_t *c, ngx_str_t *uri)
{
    ngx_uint_t            i;
    ngx_mcp_resource_t  **resources;

    resources = c->resources.elts;

    for (i = 0; i < c->resources.nelts; i++) {
        if (resources[i]->uri.len == uri->len
            && ngx_memcmp(resources[i]->uri.data, uri->data, uri->len) == 0)
        {
            return resources[i];
        }
    }

    return NULL;
}


ngx_int_t
ngx_mcp_schema_anchor(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_str_t *name, ngx_uint_t dynamic)
{
    ngx_mcp_anchor_t  *anchor;

    anchor = ngx_array_push(&node->resource->anchors);
    if (anchor == NULL) {
        return NGX_ERROR;
    }

    anchor->name = *name;
    anchor->node = node;
    anchor->dynamic = dynamic;

    return NGX_OK;
}


ngx_mcp_anchor_t *
ngx_mcp_schema_anchor_find(ngx_mcp_resource_t *resource, ngx_str_t *name)
{
    ngx_uint_t         i;
    ngx_mcp_anchor_t  *anchor;

    anchor = resource->anchors.elts;

    for (i = 0; i < resource->anchors.nelts; i++) {
        if (anchor[i].name.len == name->len
            && ngx_memcmp(anchor[i].name.data, name->data, name->len) == 0)
        {
            return &anchor[i];
        }
    }

    return NULL;
}


/* RFC 3986, section 5.2; neither has a fragment */

static ngx_int_t
ngx_mcp_uri_resolve(ngx_pool_t *pool, ngx_str_t *base, ngx_str_t *ref,
    ngx_str_t *uri)
{
    size_t   keep, authority;
    u_char  *p, *slash;

    authority = ngx_mcp_uri_authority(base);
    keep = 0;

    if (ref->len == 0) {
        keep = base->len;

    } else if (ngx_mcp_uri_scheme(ref)) {
        authority = ngx_mcp_uri_authority(ref);

    } else if (ref->len > 1 && ref->data[0] == '/' && ref->data[1] == '/') {
        keep = ngx_mcp_uri_scheme(base);
        authority = keep + ngx_mcp_uri_authority(ref);

    } else if (ref->data[0] == '/') {
        keep = authority;

    } else {
        slash = ngx_strlchr(base->data, base->data + base->len, '?');
        keep = slash ? (size_t) (slash - base->data) : base->len;

        while (ref->data[0] != '?' && keep > authority
               && base->data[keep - 1] != '/')
        {
            keep--;
        }
    }

    uri->data = ngx_pnalloc(pool, keep + 1 + ref->len);
    if (uri->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(uri->data, base->data, keep);

    if (keep && keep == authority && ref->len && ref->data[0] != '/') {
        *p++ = '/';
    }

    p = ngx_cpymem(p, ref->data, ref->len);
    p = ngx_mcp_uri_path(uri->data + authority, p);

    uri->len = p - uri->data;

    return NGX_OK;
}


/* with its colon */

static size_t
ngx_mcp_uri_scheme(ngx_str_t *uri)
{
    u_char  c;
    size_t  i;

    for (i = 0; i < uri->len; i++) {
        c = uri->data[i];

        if (c == ':') {
            return i ? i + 1 : 0;
        }

        if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-'
                            || c == '.')))
        {
            break;
        }
    }

    return 0;
}


/* up to the path */

static size_t
ngx_mcp_uri_authority(ngx_str_t *uri)
{
    size_t  i;

    i = ngx_mcp_uri_scheme(uri);

    if (uri->len - i < 2 || uri->data[i] != '/' || uri->data[i + 1] != '/') {
        return i;
    }

    for (i += 2; i < uri->len; i++) {
        if (uri->data[i] == '/' || uri->data[i] == '?') {
            break;
        }
    }

    return i;
}


/* removes "." and ".." from a path, which the text ends with; the new end */

static u_char *
ngx_mcp_uri_path(u_char *path, u_char *end)
{
    size_t   len;
    u_char  *p, *dst, *segment;

    if (path == end || *path != '/') {
        return end;
    }

    dst = path;
    p = path;

    while (p < end && *p == '/') {

        segment = p++;

        while (p < end && *p != '/' && *p != '?') {
            p++;
        }

        len = p - segment;

        if (len == 2 && segment[1] == '.') {
            /* void */

        } else if (len == 3 && segment[1] == '.' && segment[2] == '.') {

            while (dst > path && *--dst != '/') { /* void */ }

        } else {
            ngx_memmove(dst, segment, len);
            dst += len;
            continue;
        }

        if (p == end || *p == '?') {
            *dst++ = '/';
        }
    }

    ngx_memmove(dst, p, end - p);

    return dst + (end - p);
}


/* more may come up meanwhile: a reference may lead to what no keyword does */

ngx_int_t
ngx_mcp_schema_resolve(ngx_mcp_compile_t *c)
{
    ngx_int_t            rc;
    ngx_uint_t           i;
    ngx_mcp_reference_t  reference;

    for (i = 0; i < c->references.nelts; i++) {

        reference = ((ngx_mcp_reference_t *) c->references.elts)[i];
        rc = ngx_mcp_schema_reference(c, &reference);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_schema_reference(ngx_mcp_compile_t *c, ngx_mcp_reference_t *reference)
{
    u_char              *p, *src, *hash, *end;
    ngx_str_t            ref, fragment, uri;
    ngx_mcp_resource_t  *resource;

    ref = reference->uri;
    end = ref.data + ref.len;
    ngx_str_null(&fragment);

    hash = ngx_strlchr(ref.data, end, '#');

    if (hash) {
        ref.len = hash - ref.data;
        src = hash + 1;

        p = ngx_pnalloc(c->pool, end - src + 1);
        if (p == NULL) {
            return NGX_ERROR;
        }

        fragment.data = p;
        ngx_unescape_uri(&p, &src, end - src, 0);
        fragment.len = p - fragment.data;
    }

    resource = reference->node->resource;

    if (ref.len) {
        if (ngx_mcp_uri_resolve(c->pool, &resource->uri, &ref, &uri)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        resource = ngx_mcp_schema_find(c, &uri);
    }

    if (resource == NULL) {
        return ngx_mcp_schema_error(c, reference->where,
                                    "refers to another document, only "
                                    "references within the schema are "
                                    "supported");
    }

    return ngx_mcp_schema_fragment(c, reference, resource, &fragment);
}


static ngx_int_t
ngx_mcp_schema_fragment(ngx_mcp_compile_t *c, ngx_mcp_reference_t *reference,
    ngx_mcp_resource_t *resource, ngx_str_t *fragment)
{
    ngx_int_t          rc;
    ngx_mcp_json_t     text;
    ngx_mcp_node_t    *node;
    ngx_mcp_apply_t   *apply;
    ngx_mcp_anchor_t  *anchor;

    apply = (ngx_mcp_apply_t *) reference->node->apply->elts
            + reference->index;

    if (fragment->len && fragment->data[0] != '/') {
        anchor = ngx_mcp_schema_anchor_find(resource, fragment);

        if (anchor == NULL) {
            return ngx_mcp_schema_error(c, reference->where,
                                        "refers to a missing anchor");
        }

        if (apply->kind == NGX_MCP_APPLY_DYNAMIC && anchor->dynamic) {
            apply->anchor = *fragment;
        }

        node = anchor->node;

    } else {
        text = resource->text;
        rc = ngx_mcp_schema_walk(c->pool, fragment, &text);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_DECLINED) {
            return ngx_mcp_schema_error(c, reference->where,
                                        "refers to a missing location");
        }

        node = ngx_mcp_schema_node(c, &text, resource);

        if (node == NULL) {
            return c->err->len ? NGX_DECLINED : NGX_ERROR;
        }
    }

    if (apply->anchor.len == 0) {
        apply->kind = NGX_MCP_APPLY_REF;
    }

    apply->node = node;

    ngx_mcp_schema_only(reference->node, node);

    return NGX_OK;
}


/* a schema that is a reference and nothing else is not looked at again */

static void
ngx_mcp_schema_only(ngx_mcp_node_t *node, ngx_mcp_node_t *target)
{
    ngx_mcp_apply_t  *apply;

    apply = node->apply->elts;

    if (node->apply->nelts == 1 && apply->kind == NGX_MCP_APPLY_REF
        && node->resource == target->resource
        && node->types == NGX_MCP_TYPE_ANY && node->constant == NULL
        && node->enumeration == NULL && node->number == NULL
        && node->string == NULL && node->array == NULL
        && node->object == NULL && node->condition == NULL
        && node->unevaluated_items == NULL
        && node->unevaluated_properties == NULL)
    {
        node->only = target;
    }
}


/* NGX_DECLINED: there is no such value */

static ngx_int_t
ngx_mcp_schema_walk(ngx_pool_t *pool, ngx_str_t *pointer,
    ngx_mcp_json_t *value)
{
    u_char     *p, *end, *dst;
    ngx_int_t   rc;
    ngx_str_t   token;

    p = pointer->data;
    end = p + pointer->len;

    while (p < end) {

        token.data = ++p;
        dst = p;

        while (p < end && *p != '/') {

            if (*p == '~' && end - p > 1 && (p[1] == '0' || p[1] == '1')) {
                *dst++ = (p[1] == '0') ? '~' : '/';
                p += 2;
                continue;
            }

            *dst++ = *p++;
        }

        token.len = dst - token.data;
        rc = ngx_mcp_schema_step(pool, &token, value);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_schema_step(ngx_pool_t *pool, ngx_str_t *token, ngx_mcp_json_t *value)
{
    ngx_int_t             n;
    ngx_str_t             name;
    ngx_mcp_json_t        key, item;
    ngx_mcp_json_iter_t   it;

    if (value->type != NGX_MCP_JSON_OBJECT
        && value->type != NGX_MCP_JSON_ARRAY)
    {
        return NGX_DECLINED;
    }

    n = ngx_atoi(token->data, token->len);

    ngx_mcp_json_iter(&it, value);

    while (ngx_mcp_json_next(&it, &key, &item) == NGX_OK) {

        if (value->type == NGX_MCP_JSON_ARRAY) {
            if (n-- == 0) {
                *value = item;
                return NGX_OK;
            }

            continue;
        }

        if (ngx_mcp_value_string(pool, &key, &name) != NGX_OK) {
            return NGX_ERROR;
        }

        if (name.len == token->len
            && ngx_memcmp(name.data, token->data, name.len) == 0)
        {
            *value = item;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


/*
 * A schema that applies itself to the same value would never end.  Dynamic
 * references are followed as far as they are known; the depth of a validation
 * bounds the rest.
 */

ngx_int_t
ngx_mcp_schema_loops(ngx_mcp_compile_t *c)
{
    ngx_int_t         rc;
    ngx_uint_t        i;
    ngx_mcp_node_t  **nodes;

    nodes = c->nodes.elts;

    for (i = 0; i < c->nodes.nelts; i++) {
        rc = ngx_mcp_schema_loop(c, nodes[i], 0);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_schema_loop(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_uint_t depth)
{
    ngx_int_t            rc;
    ngx_uint_t           i;
    ngx_mcp_property_t  *property;

    if (node == NULL || node->checked) {
        return NGX_OK;
    }

    if (node->entered || depth == NGX_MCP_SCHEMA_DEPTH) {
        return ngx_mcp_schema_error(c, node->text,
                                    node->entered
                                    ? "applies itself to the same value"
                                    : "is applied through more than 256 "
                                      "references");
    }

    node->entered = 1;
    depth++;

    rc = ngx_mcp_schema_loop_apply(c, node, depth);

    if (rc == NGX_OK) {
        rc = ngx_mcp_schema_loop(c, node->condition, depth);
    }

    if (rc == NGX_OK) {
        rc = ngx_mcp_schema_loop(c, node->then, depth);
    }

    if (rc == NGX_OK) {
        rc = ngx_mcp_schema_loop(c, node->otherwise, depth);
    }

    if (node->object) {
        property = node->object->properties.elts;

        for (i = 0; rc == NGX_OK && i < node->object->properties.nelts; i++) {
            rc = ngx_mcp_schema_loop(c, property[i].dependent, depth);
        }
    }

    node->entered = 0;
    node->checked = 1;

    return rc;
}


static ngx_int_t
ngx_mcp_schema_loop_apply(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_uint_t depth)
{
    ngx_int_t         rc;
    ngx_uint_t        i, j;
    ngx_mcp_node_t  **nodes;
    ngx_mcp_apply_t  *apply;

    if (node->apply == NULL) {
        return NGX_OK;
    }

    apply = node->apply->elts;

    for (i = 0; i < node->apply->nelts; i++) {

        rc = ngx_mcp_schema_loop(c, apply[i].node, depth);
        nodes = apply[i].nodes ? apply[i].nodes->elts : NULL;

        for (j = 0; rc == NGX_OK && nodes && j < apply[i].nodes->nelts; j++) {
            rc = ngx_mcp_schema_loop(c, nodes[j], depth);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}
