
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Compiles schemas: their nodes, and what is wrong with them. */


#include "ngx_mcp_schema_types.h"


ngx_int_t
ngx_mcp_schema_compile(ngx_pool_t *pool, ngx_mcp_json_t *text,
    ngx_mcp_schema_regex_t *regex, ngx_mcp_schema_t **schema, ngx_str_t *err)
{
    ngx_int_t            rc;
    ngx_mcp_json_t       none;
    ngx_mcp_compile_t    c;
    ngx_mcp_resource_t  *resource;

    ngx_memzero(&c, sizeof(ngx_mcp_compile_t));
    ngx_memzero(&none, sizeof(ngx_mcp_json_t));
    ngx_str_null(err);

    c.pool = pool;
    c.text = text;
    c.regex = regex;
    c.err = err;

    *schema = ngx_pcalloc(pool, sizeof(ngx_mcp_schema_t));

    if (*schema == NULL
        || ngx_array_init(&c.nodes, pool, 16, sizeof(void *)) != NGX_OK
        || ngx_array_init(&c.resources, pool, 2, sizeof(void *)) != NGX_OK
        || ngx_array_init(&c.references, pool, 4, sizeof(ngx_mcp_reference_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    resource = ngx_mcp_schema_resource(&c, text, &none, NULL);
    if (resource == NULL) {
        return NGX_ERROR;
    }

    (*schema)->regex = regex;
    (*schema)->root = ngx_mcp_schema_node(&c, text, resource);

    if ((*schema)->root == NULL) {
        return err->len ? NGX_DECLINED : NGX_ERROR;
    }

    rc = ngx_mcp_schema_resolve(&c);

    return (rc == NGX_OK) ? ngx_mcp_schema_loops(&c) : rc;
}


ngx_int_t
ngx_mcp_schema_error(ngx_mcp_compile_t *c, u_char *where, const char *what)
{
    ngx_str_t  pointer;

    if (c->err->len) {
        /* the first one counts */
        return NGX_DECLINED;
    }

    if (ngx_mcp_value_pointer(c->pool, c->text, where, &pointer) != NGX_OK) {
        return NGX_ERROR;
    }

    c->err->len = pointer.len + ngx_strlen(what) + sizeof("\"#\" ") - 1;
    c->err->data = ngx_pnalloc(c->pool, c->err->len);

    if (c->err->data == NULL) {
        c->err->len = 0;
        return NGX_ERROR;
    }

    (void) ngx_sprintf(c->err->data, "\"#%V\" %s", &pointer, what);

    return NGX_DECLINED;
}


ngx_mcp_node_t *
ngx_mcp_schema_node(ngx_mcp_compile_t *c, ngx_mcp_json_t *text,
    ngx_mcp_resource_t *resource)
{
    ngx_uint_t         i;
    ngx_mcp_json_t     id;
    ngx_mcp_node_t    *node, **nodes;
    ngx_mcp_member_t   members[] = {
        { ngx_string("$id"), &id }
    };

    nodes = c->nodes.elts;

    for (i = 0; i < c->nodes.nelts; i++) {
        if (nodes[i]->text == text->text.data) {
            return nodes[i];
        }
    }

    if (text->type != NGX_MCP_JSON_OBJECT && text->type != NGX_MCP_JSON_TRUE
        && text->type != NGX_MCP_JSON_FALSE)
    {
        (void) ngx_mcp_schema_error(c, text->text.data,
                                    "must be a schema: an object or a boolean");
        return NULL;
    }

    if (c->nodes.nelts == NGX_MCP_SCHEMA_NODES) {
        (void) ngx_mcp_schema_error(c, text->text.data,
                                    "is one of more than 10000 subschemas");
        return NULL;
    }

    node = ngx_pcalloc(c->pool, sizeof(ngx_mcp_node_t));
    nodes = ngx_array_push(&c->nodes);

    if (node == NULL || nodes == NULL) {
        return NULL;
    }

    *nodes = node;

    (void) ngx_mcp_json_members(text, members, 1);

    if (id.type != NGX_MCP_JSON_NONE) {
        resource = ngx_mcp_schema_resource(c, text, &id, resource);
        if (resource == NULL) {
            return NULL;
        }
    }

    node->types = NGX_MCP_TYPE_ANY;
    node->text = text->text.data;
    node->resource = resource;
    node->never = (text->type == NGX_MCP_JSON_FALSE);
    node->simple = (text->type == NGX_MCP_JSON_TRUE);
    node->quick = node->simple ? NGX_MCP_QUICK_TYPE : NGX_MCP_QUICK_NOT;

    if (text->type == NGX_MCP_JSON_OBJECT
        && ngx_mcp_schema_keywords(c, node, text) != NGX_OK)
    {
        return NULL;
    }

    return node;
}


/* all names are known now: at most half of the table is used */

ngx_int_t
ngx_mcp_schema_table(ngx_mcp_compile_t *c, ngx_mcp_object_rules_t *object)
{
    uint32_t             i, n;
    ngx_mcp_property_t  *property;

    property = object->properties.elts;

    if (object->properties.nelts == 0) {
        return NGX_OK;
    }

    for (n = 4; n < 2 * object->properties.nelts; n *= 2) { /* void */ }

    object->mask = n - 1;
    object->table = ngx_pcalloc(c->pool, n * sizeof(uint32_t));
    if (object->table == NULL) {
        return NGX_ERROR;
    }

    for (n = 0; n < object->properties.nelts; n++) {

        i = ngx_mcp_name_hash(property[n].name.data, property[n].name.len);

        while (object->table[i & object->mask]) {
            i++;
        }

        object->table[i & object->mask] = n + 1;
    }

    return NGX_OK;
}


/* the struct that a keyword is kept in, made when it is needed first */

void *
ngx_mcp_schema_rules(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_uint_t rules)
{
    switch (rules) {

    case NGX_MCP_IN_NUMBER:
        if (node->number == NULL) {
            node->number = ngx_pcalloc(c->pool, sizeof(*node->number));
            if (node->number) {
                node->number->min = NGX_MCP_NUMBER_MIN;
                node->number->max = NGX_MCP_NUMBER_MAX;
                node->number->plain = 1;
            }
        }

        return node->number;

    case NGX_MCP_IN_STRING:
        if (node->string == NULL) {
            node->string = ngx_pcalloc(c->pool, sizeof(*node->string));
            if (node->string) {
                node->string->max = (size_t) -1;
            }
        }

        return node->string;

    case NGX_MCP_IN_ARRAY:
        if (node->array == NULL) {
            node->array = ngx_pcalloc(c->pool, sizeof(*node->array));
            if (node->array) {
                node->array->max = (size_t) -1;
                node->array->min_contains = 1;
                node->array->max_contains = (size_t) -1;
            }
        }

        return node->array;

    case NGX_MCP_IN_OBJECT:
        if (node->object == NULL) {
            node->object = ngx_pcalloc(c->pool, sizeof(*node->object));
            if (node->object) {
                node->object->max = (size_t) -1;

                if (ngx_array_init(&node->object->properties, c->pool, 4,
                                   sizeof(ngx_mcp_property_t))
                    != NGX_OK)
                {
                    node->object = NULL;
                }
            }
        }

        return node->object;
    }

    return node;
}


/* the index of a name, which is added if it is new */

ngx_int_t
ngx_mcp_schema_property(ngx_mcp_compile_t *c, ngx_mcp_object_rules_t *object,
    ngx_mcp_json_t *name)
{
    ngx_str_t            s;
    ngx_uint_t           i;
    ngx_mcp_property_t  *property;

    if (ngx_mcp_value_string(c->pool, name, &s) != NGX_OK) {
        return NGX_ERROR;
    }

    property = object->properties.elts;

    for (i = 0; i < object->properties.nelts; i++) {
        if (property[i].name.len == s.len
            && ngx_memcmp(property[i].name.data, s.data, s.len) == 0)
        {
            return i;
        }
    }

    property = ngx_array_push(&object->properties);
    if (property == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(property, sizeof(ngx_mcp_property_t));
    property->name = s;
    property->plain = (memchr(s.data, '\\', s.len) == NULL);

    return i;
}


void *
ngx_mcp_schema_pattern(ngx_mcp_compile_t *c, ngx_mcp_json_t *pattern)
{
    void       *regex;
    u_char     *p;
    ngx_str_t   s, err;

    if (c->regex == NULL) {
        (void) ngx_mcp_schema_error(c, pattern->text.data,
                                    "needs nginx with the PCRE library");
        return NULL;
    }

    if (ngx_mcp_value_string(c->pool, pattern, &s) != NGX_OK) {
        return NULL;
    }

    ngx_str_null(&err);

    if (c->regex->compile(c->pool, &s, &regex, &err) == NGX_OK) {
        return regex;
    }

    if (err.len == 0) {
        return NULL;
    }

    p = ngx_pnalloc(c->pool, err.len + sizeof("is not a valid pattern: "));
    if (p == NULL) {
        return NULL;
    }

    (void) ngx_sprintf(p, "is not a valid pattern: %V%Z", &err);
    (void) ngx_mcp_schema_error(c, pattern->text.data, (char *) p);

    return NULL;
}
