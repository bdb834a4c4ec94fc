
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * "unevaluatedItems" and "unevaluatedProperties": which items or members of a
 * value no other keyword has looked at.  A schema that has matched is walked
 * again, and marks what it evaluates; nothing is recorded for all the schemas
 * that do not ask for it.
 */


#include "ngx_mcp_schema_types.h"


/* the items of an array or the members of an object, and those evaluated */

typedef struct {
    ngx_mcp_validation_t  *v;
    ngx_mcp_json_t        *value;
    ngx_uint_t             object;
    size_t                 n;
    ngx_mcp_json_t        *keys;
    ngx_mcp_json_t        *items;
    u_char                *marks;
    ngx_uint_t             all;
} ngx_mcp_evaluated_t;


static ngx_int_t ngx_mcp_evaluated_init(ngx_mcp_evaluated_t *e,
    ngx_mcp_validation_t *v, ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_evaluated_node(ngx_mcp_evaluated_t *e,
    ngx_mcp_scope_t *scope, ngx_mcp_node_t *node, ngx_uint_t top);
static ngx_int_t ngx_mcp_evaluated_items(ngx_mcp_evaluated_t *e,
    ngx_mcp_scope_t *scope, ngx_mcp_array_rules_t *array);
static ngx_int_t ngx_mcp_evaluated_members(ngx_mcp_evaluated_t *e,
    ngx_mcp_scope_t *scope, ngx_mcp_object_rules_t *object);
static ngx_int_t ngx_mcp_evaluated_mark(ngx_mcp_evaluated_t *e, size_t i,
    ngx_int_t rc);
static ngx_int_t ngx_mcp_evaluated_apply(ngx_mcp_evaluated_t *e,
    ngx_mcp_scope_t *scope, ngx_mcp_apply_t *apply);
static ngx_int_t ngx_mcp_evaluated_if(ngx_mcp_evaluated_t *e,
    ngx_mcp_scope_t *scope, ngx_mcp_node_t *node);


ngx_int_t
ngx_mcp_unevaluated(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_node_t *node, ngx_mcp_json_t *value)
{
    size_t               i;
    ngx_int_t            rc;
    ngx_mcp_node_t      *rest;
    ngx_mcp_evaluated_t  e;

    rc = ngx_mcp_evaluated_init(&e, v, value);

    if (rc == NGX_OK) {
        rc = ngx_mcp_evaluated_node(&e, scope, node, 1);
    }

    rest = e.object ? node->unevaluated_properties : node->unevaluated_items;

    for (i = 0; rc == NGX_OK && !e.all && i < e.n; i++) {
        if (!e.marks[i]) {
            rc = ngx_mcp_validate_node(v, scope, rest, &e.items[i],
                                       e.object ? "unevaluatedProperties"
                                                : "unevaluatedItems");
        }
    }

    return rc;
}


static ngx_int_t
ngx_mcp_evaluated_init(ngx_mcp_evaluated_t *e, ngx_mcp_validation_t *v,
    ngx_mcp_json_t *value)
{
    size_t                i;
    ngx_mcp_json_t        key, item;
    ngx_mcp_json_iter_t   it;

    ngx_memzero(e, sizeof(ngx_mcp_evaluated_t));

    e->v = v;
    e->value = value;
    e->object = (value->type == NGX_MCP_JSON_OBJECT);

    (void) ngx_mcp_validate_after(v, value);

    if (ngx_mcp_validate_pool(v) == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_json_iter(&it, value);

    while (ngx_mcp_json_next(&it, &key, &item) == NGX_OK) {
        e->n++;
    }

    v->steps -= 8 * e->n + value->text.len / 8;

    if (v->steps < 0) {
        return NGX_ABORT;
    }

    e->keys = ngx_palloc(v->temp, (e->n + 1) * sizeof(ngx_mcp_json_t));
    e->items = ngx_palloc(v->temp, (e->n + 1) * sizeof(ngx_mcp_json_t));
    e->marks = ngx_pcalloc(v->temp, e->n + 1);

    if (e->keys == NULL || e->items == NULL || e->marks == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_json_iter(&it, value);

    for (i = 0; i < e->n; i++) {
        (void) ngx_mcp_json_next(&it, &e->keys[i], &e->items[i]);
    }

    return NGX_OK;
}


/* of a schema that is known to match; top is the one that asks */

static ngx_int_t
ngx_mcp_evaluated_node(ngx_mcp_evaluated_t *e, ngx_mcp_scope_t *scope,
    ngx_mcp_node_t *node, ngx_uint_t top)
{
    ngx_int_t         rc;
    ngx_uint_t        i;
    ngx_mcp_apply_t  *apply;
    ngx_mcp_scope_t   inner;

    if (--e->v->steps < 0 || e->v->depth == NGX_MCP_SCHEMA_DEPTH) {
        return NGX_ABORT;
    }

    if (!top
        && (e->object ? node->unevaluated_properties
                      : node->unevaluated_items))
    {
        e->all = 1;
    }

    if (e->all || node->simple) {
        return NGX_OK;
    }

    if (node->resource != scope->resource) {
        inner.outer = scope;
        inner.resource = node->resource;
        scope = &inner;
    }

    e->v->depth++;
    rc = NGX_OK;

    if (e->object && node->object) {
        rc = ngx_mcp_evaluated_members(e, scope, node->object);

    } else if (!e->object && node->array) {
        rc = ngx_mcp_evaluated_items(e, scope, node->array);
    }

    if (node->apply) {
        apply = node->apply->elts;

        for (i = 0; rc == NGX_OK && i < node->apply->nelts; i++) {
            rc = ngx_mcp_evaluated_apply(e, scope, &apply[i]);
        }
    }

    if (rc == NGX_OK && node->condition) {
        rc = ngx_mcp_evaluated_if(e, scope, node);
    }

    e->v->depth--;

    return rc;
}


static ngx_int_t
ngx_mcp_evaluated_items(ngx_mcp_evaluated_t *e, ngx_mcp_scope_t *scope,
    ngx_mcp_array_rules_t *array)
{
    size_t     i;
    ngx_int_t  rc;

    if (array->items) {
        e->all = 1;
        return NGX_OK;
    }

    if (array->prefix) {
        ngx_memset(e->marks, 1, ngx_min(e->n, array->prefix->nelts));
    }

    for (i = 0; array->contains && i < e->n; i++) {

        rc = ngx_mcp_validate_quietly(e->v, scope, array->contains,
                                      &e->items[i]);
        rc = ngx_mcp_evaluated_mark(e, i, rc);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_evaluated_members(ngx_mcp_evaluated_t *e, ngx_mcp_scope_t *scope,
    ngx_mcp_object_rules_t *object)
{
    size_t               i;
    ngx_int_t            rc, index;
    ngx_str_t            name;
    ngx_uint_t           j;
    ngx_mcp_named_t     *named;
    ngx_mcp_property_t  *property;

    if (object->additional) {
        e->all = 1;
        return NGX_OK;
    }

    for (i = 0; i < e->n; i++) {

        if (--e->v->steps < 0) {
            return NGX_ABORT;
        }

        if (ngx_mcp_validate_name(e->v, &e->keys[i], &name) != NGX_OK) {
            return NGX_ERROR;
        }

        index = ngx_mcp_validate_property(object, &name);

        if (index != NGX_DECLINED) {
            property = (ngx_mcp_property_t *) object->properties.elts + index;

            if (property->node) {
                e->marks[i] = 1;
            }

            if (property->dependent) {
                rc = ngx_mcp_evaluated_node(e, scope, property->dependent, 0);

                if (rc != NGX_OK) {
                    return rc;
                }
            }
        }

        named = object->patterns ? object->patterns->elts : NULL;

        for (j = 0; named && !e->marks[i] && j < object->patterns->nelts; j++) {
            rc = ngx_mcp_validate_match(e->v, named[j].regex, &name);
            rc = ngx_mcp_evaluated_mark(e, i, rc);

            if (rc != NGX_OK) {
                return rc;
            }
        }
    }

    return NGX_OK;
}


/* marks what has matched; NGX_OK as well if it has not */

static ngx_int_t
ngx_mcp_evaluated_mark(ngx_mcp_evaluated_t *e, size_t i, ngx_int_t rc)
{
    if (rc == NGX_OK) {
        e->marks[i] = 1;
    }

    return (rc == NGX_DECLINED) ? NGX_OK : rc;
}


static ngx_int_t
ngx_mcp_evaluated_apply(ngx_mcp_evaluated_t *e, ngx_mcp_scope_t *scope,
    ngx_mcp_apply_t *apply)
{
    ngx_int_t         rc;
    ngx_uint_t        i;
    ngx_mcp_node_t  **nodes;

    if (apply->kind == NGX_MCP_APPLY_NOT) {
        return NGX_OK;
    }

    if (apply->node) {
        return ngx_mcp_evaluated_node(e, scope,
                                      ngx_mcp_validate_target(scope, apply), 0);
    }

    nodes = apply->nodes->elts;

    for (i = 0; i < apply->nodes->nelts; i++) {

        rc = NGX_OK;

        if (apply->kind != NGX_MCP_APPLY_ALL) {
            rc = ngx_mcp_validate_quietly(e->v, scope, nodes[i], e->value);
        }

        if (rc == NGX_OK) {
            rc = ngx_mcp_evaluated_node(e, scope, nodes[i], 0);
        }

        if (rc != NGX_OK && rc != NGX_DECLINED) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_evaluated_if(ngx_mcp_evaluated_t *e, ngx_mcp_scope_t *scope,
    ngx_mcp_node_t *node)
{
    ngx_int_t        rc;
    ngx_mcp_node_t  *then;

    rc = ngx_mcp_validate_quietly(e->v, scope, node->condition, e->value);

    if (rc != NGX_OK && rc != NGX_DECLINED) {
        return rc;
    }

    then = node->otherwise;

    if (rc == NGX_OK) {
        then = node->then;
        rc = ngx_mcp_evaluated_node(e, scope, node->condition, 0);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return then ? ngx_mcp_evaluated_node(e, scope, then, 0) : NGX_OK;
}
