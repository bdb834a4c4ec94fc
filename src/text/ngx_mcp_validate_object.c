
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Validates objects: members by their names, and which names are there. */


#include "ngx_mcp_schema_types.h"


/* names that are known without allocating memory */
#define NGX_MCP_VALIDATE_NAMES  256

#define ngx_mcp_seen(seen, i)   ((seen)[(i) / 64] >> ((i) % 64) & 1)


static ngx_int_t ngx_mcp_validate_key(ngx_mcp_validation_t *v,
    ngx_mcp_object_rules_t *object, ngx_int_t next, ngx_mcp_json_t *key);
static ngx_int_t ngx_mcp_validate_member(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_object_rules_t *object, ngx_int_t index,
    ngx_mcp_json_t *key, ngx_mcp_json_t *member, uint64_t *seen);
static ngx_int_t ngx_mcp_validate_seen(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_object_rules_t *object,
    ngx_mcp_json_t *value, uint64_t *seen);
static ngx_int_t ngx_mcp_validate_missing(ngx_mcp_validation_t *v,
    ngx_mcp_json_t *value, ngx_str_t *name, const char *keyword);


ngx_int_t
ngx_mcp_validate_object(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_object_rules_t *object, ngx_mcp_json_t *value)
{
    u_char          *p;
    size_t           n, size;
    uint64_t         room[NGX_MCP_VALIDATE_NAMES / 64], *seen;
    ngx_int_t        rc, index;
    ngx_mcp_json_t   key, member;

    seen = room;
    size = (object->properties.nelts + 63) / 64 * sizeof(uint64_t);

    if (size > sizeof(room)) {
        v->steps -= size / NGX_MCP_VALIDATE_STEP;

        if (ngx_mcp_validate_pool(v) == NULL) {
            return NGX_ERROR;
        }

        seen = ngx_palloc(v->temp, size);
        if (seen == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(seen, size);

    } else {
        ngx_memzero(room, sizeof(room));
    }

    p = value->text.data + 1;
    key.type = NGX_MCP_JSON_STRING;
    n = 0;

    ngx_mcp_skip_space(p);

    index = 0;

    while (*p != '}') {

        key.text.data = p;
        index = ngx_mcp_validate_key(v, object, index, &key);
        p += key.text.len;

        ngx_mcp_skip_space(p);
        p++;
        ngx_mcp_skip_space(p);

        ngx_mcp_validate_at(v, p, &member);

        if (index == NGX_ERROR) {
            return NGX_ERROR;
        }

        rc = ngx_mcp_validate_member(v, scope, object, index, &key, &member,
                                     seen);
        if (rc != NGX_OK) {
            return rc;
        }

        index++;

        n++;
        p = ngx_mcp_validate_next(v, &member);

        if (v->steps < 0) {
            return NGX_ABORT;
        }
    }

    value->text.len = p + 1 - value->text.data;

    if (n < object->min) {
        return ngx_mcp_validate_fail(v, value, "minProperties");
    }

    if (n > object->max) {
        return ngx_mcp_validate_fail(v, value, "maxProperties");
    }

    return ngx_mcp_validate_seen(v, scope, object, value, seen);
}


/*
 * The index of the name at the start of the key, whose length is set, or
 * NGX_DECLINED.  Members often have the order of the schema: next is the one
 * to try first.
 */

static ngx_int_t
ngx_mcp_validate_key(ngx_mcp_validation_t *v, ngx_mcp_object_rules_t *object,
    ngx_int_t next, ngx_mcp_json_t *key)
{
    size_t               len;
    u_char              *p;
    ngx_str_t            name;
    ngx_mcp_property_t  *property;

    p = key->text.data;

    if (next >= 0 && (ngx_uint_t) next < object->properties.nelts) {
        property = (ngx_mcp_property_t *) object->properties.elts + next;
        len = property->name.len;

        if (property->plain && (size_t) (v->end - p) > len + 2
            && p[len + 1] == '"'
            && ngx_memcmp(p + 1, property->name.data, len) == 0)
        {
            key->text.len = len + 2;
            return next;
        }
    }

    key->text.len = ngx_mcp_json_skip_string(p, v->end) - p;

    if (object->table == NULL) {
        return NGX_DECLINED;
    }

    if (ngx_mcp_validate_name(v, key, &name) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_validate_property(object, &name);
}


/* the index of a name, or NGX_DECLINED */

ngx_int_t
ngx_mcp_validate_property(ngx_mcp_object_rules_t *object, ngx_str_t *name)
{
    uint32_t             hash, i;
    ngx_mcp_property_t  *property;

    if (object->table == NULL) {
        return NGX_DECLINED;
    }

    property = object->properties.elts;

    for (hash = ngx_mcp_name_hash(name->data, name->len); /* void */ ; hash++) {

        i = object->table[hash & object->mask];

        if (i == 0) {
            return NGX_DECLINED;
        }

        if (property[i - 1].name.len == name->len
            && ngx_memcmp(property[i - 1].name.data, name->data, name->len)
               == 0)
        {
            return i - 1;
        }
    }
}


static ngx_int_t
ngx_mcp_validate_member(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_object_rules_t *object, ngx_int_t index, ngx_mcp_json_t *key,
    ngx_mcp_json_t *member, uint64_t *seen)
{
    ngx_int_t            rc;
    ngx_str_t            name;
    ngx_uint_t           i, evaluated;
    ngx_mcp_named_t     *named;
    ngx_mcp_property_t  *property;

    if (object->names) {
        rc = ngx_mcp_validate_node(v, scope, object->names, key,
                                   "propertyNames");
        if (rc != NGX_OK) {
            return rc;
        }
    }

    evaluated = 0;

    if (index != NGX_DECLINED) {

        /* whoever reads the value next may take either of them */

        if (ngx_mcp_seen(seen, index)) {
            return ngx_mcp_validate_fail(v, key, "properties");
        }

        seen[index / 64] |= (uint64_t) 1 << (index % 64);

        property = (ngx_mcp_property_t *) object->properties.elts + index;

        if (property->node) {
            evaluated = 1;

            if (!ngx_mcp_validate_quick(property->node, member)) {
                rc = ngx_mcp_validate_node(v, scope, property->node, member,
                                           "properties");
                if (rc != NGX_OK) {
                    return rc;
                }
            }
        }
    }

    if (object->patterns) {
        named = object->patterns->elts;

        if (ngx_mcp_validate_name(v, key, &name) != NGX_OK) {
            return NGX_ERROR;
        }

        for (i = 0; i < object->patterns->nelts; i++) {
            rc = ngx_mcp_validate_match(v, named[i].regex, &name);

            if (rc == NGX_DECLINED) {
                continue;
            }

            evaluated = 1;

            if (rc == NGX_OK) {
                rc = ngx_mcp_validate_node(v, scope, named[i].node, member,
                                           "patternProperties");
            }

            if (rc != NGX_OK) {
                return rc;
            }
        }
    }

    if (object->additional && !evaluated) {
        return ngx_mcp_validate_node(v, scope, object->additional, member,
                                     "additionalProperties");
    }

    return NGX_OK;
}


/* what depends on which names are there */

static ngx_int_t
ngx_mcp_validate_seen(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_object_rules_t *object, ngx_mcp_json_t *value, uint64_t *seen)
{
    ngx_int_t            rc;
    ngx_uint_t           i, j, *requires;
    ngx_mcp_property_t  *property;

    property = object->properties.elts;
    v->steps -= object->properties.nelts / NGX_MCP_VALIDATE_STEP;

    for (i = 0; i < object->properties.nelts; i++) {

        if (!ngx_mcp_seen(seen, i)) {

            if (property[i].required) {
                return ngx_mcp_validate_missing(v, value, &property[i].name,
                                                "required");
            }

            continue;
        }

        if (property[i].requires) {
            requires = property[i].requires->elts;

            for (j = 0; j < property[i].requires->nelts; j++) {
                if (!ngx_mcp_seen(seen, requires[j])) {
                    return ngx_mcp_validate_missing(v, value,
                                                &property[requires[j]].name,
                                                "dependentRequired");
                }
            }
        }

        if (property[i].dependent) {
            rc = ngx_mcp_validate_node(v, scope, property[i].dependent, value,
                                       "dependentSchemas");
            if (rc != NGX_OK) {
                return rc;
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_validate_missing(ngx_mcp_validation_t *v, ngx_mcp_json_t *value,
    ngx_str_t *name, const char *keyword)
{
    if (!v->quiet) {
        v->name = *name;
    }

    return ngx_mcp_validate_fail(v, value, keyword);
}
