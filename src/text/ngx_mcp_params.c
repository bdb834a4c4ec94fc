
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_params.h"
#include "ngx_mcp_equal.h"


#define NGX_MCP_PARAM_MARK    "x-mcp-header"
#define NGX_MCP_PARAM_PREFIX  "Mcp-Param-"
#define NGX_MCP_PARAM_DEPTH   16


/* a property of the schema, linked to the property that contains it */

typedef struct ngx_mcp_property_s  ngx_mcp_property_t;

struct ngx_mcp_property_s {
    ngx_mcp_property_t  *parent;
    const char          *name;    /* NULL: the schema itself */
    ngx_uint_t           depth;   /* 0: the schema itself */
};


static const char *ngx_mcp_params_schema(ngx_array_t *params, json_t *schema,
    ngx_mcp_property_t *prop);
static const char *ngx_mcp_params_elsewhere(json_t *json, ngx_uint_t depth);
static const char *ngx_mcp_params_add(ngx_array_t *params, json_t *schema,
    json_t *mark, ngx_mcp_property_t *prop);
static ngx_uint_t ngx_mcp_params_token(const char *s, size_t len);


const char *
ngx_mcp_params_read(ngx_pool_t *pool, json_t *schema, ngx_array_t **params)
{
    ngx_mcp_property_t  root;

    *params = ngx_array_create(pool, 2, sizeof(ngx_mcp_param_t));
    if (*params == NULL) {
        return "cannot be read: out of memory";
    }

    ngx_memzero(&root, sizeof(ngx_mcp_property_t));

    return ngx_mcp_params_schema(*params, schema, &root);
}


/*
 * Only properties, and properties of properties, may have a mark: for these
 * the schema alone defines the path of the value in the arguments.
 */

static const char *
ngx_mcp_params_schema(ngx_array_t *params, json_t *schema,
    ngx_mcp_property_t *prop)
{
    json_t              *value, *property;
    const char          *key, *name, *err;
    ngx_mcp_property_t   below;

    if (!json_is_object(schema)) {
        return NULL;
    }

    if (prop->depth == NGX_MCP_PARAM_DEPTH) {
        return "has properties nested more than 15 levels deep";
    }

    json_object_foreach(schema, key, value) {

        err = NULL;

        if (ngx_strcmp(key, NGX_MCP_PARAM_MARK) == 0) {
            err = ngx_mcp_params_add(params, schema, value, prop);

        } else if (ngx_strcmp(key, "properties") == 0) {

            below.parent = prop;
            below.depth = prop->depth + 1;

            json_object_foreach(value, name, property) {
                below.name = name;
                err = ngx_mcp_params_schema(params, property, &below);
                if (err) {
                    break;
                }
            }

        } else {
            err = ngx_mcp_params_elsewhere(value, 0);
        }

        if (err) {
            return err;
        }
    }

    return NULL;
}


/* Returns an error if there is a mark where none is allowed. */

static const char *
ngx_mcp_params_elsewhere(json_t *json, ngx_uint_t depth)
{
    size_t       i;
    json_t      *value;
    const char  *key, *err;

    if (depth == 8 * NGX_MCP_PARAM_DEPTH) {
        return "is nested too deeply";
    }

    json_object_foreach(json, key, value) {
        if (ngx_strcmp(key, NGX_MCP_PARAM_MARK) == 0) {
            return "has \"" NGX_MCP_PARAM_MARK "\" outside of a property";
        }

        err = ngx_mcp_params_elsewhere(value, depth + 1);
        if (err) {
            return err;
        }
    }

    json_array_foreach(json, i, value) {
        err = ngx_mcp_params_elsewhere(value, depth + 1);
        if (err) {
            return err;
        }
    }

    return NULL;
}


static const char *
ngx_mcp_params_add(ngx_array_t *params, json_t *schema, json_t *mark,
    ngx_mcp_property_t *prop)
{
    size_t            len;
    ngx_str_t        *name, *names, s;
    ngx_uint_t        i;
    const char       *type;
    ngx_mcp_param_t  *param, *others;

    type = json_string_value(json_object_get(schema, "type"));
    len = json_string_length(mark);

    if (prop->name == NULL
        || type == NULL
        || (ngx_strcmp(type, "string") != 0
            && ngx_strcmp(type, "integer") != 0
            && ngx_strcmp(type, "boolean") != 0))
    {
        return "has \"" NGX_MCP_PARAM_MARK "\" on a property that is not "
               "a string, integer or boolean";
    }

    if (!json_is_string(mark)
        || !ngx_mcp_params_token(json_string_value(mark), len))
    {
        return "has an \"" NGX_MCP_PARAM_MARK "\" that is not a valid header "
               "name";
    }

    s.len = sizeof(NGX_MCP_PARAM_PREFIX) - 1 + len;
    s.data = ngx_pnalloc(params->pool, s.len);

    if (s.data == NULL) {
        return "cannot be read: out of memory";
    }

    (void) ngx_sprintf(s.data, NGX_MCP_PARAM_PREFIX "%s",
                       json_string_value(mark));
    ngx_strlow(s.data, s.data, s.len);

    others = params->elts;

    for (i = 0; i < params->nelts; i++) {
        if (others[i].header.len == s.len
            && ngx_memcmp(others[i].header.data, s.data, s.len) == 0)
        {
            return "has a duplicate \"" NGX_MCP_PARAM_MARK "\"";
        }
    }

    param = ngx_array_push(params);

    if (param == NULL
        || ngx_array_init(&param->path, params->pool, prop->depth,
                          sizeof(ngx_str_t))
           != NGX_OK)
    {
        return "cannot be read: out of memory";
    }

    param->header = s;
    names = ngx_array_push_n(&param->path, prop->depth);

    if (names == NULL) {
        return "cannot be read: out of memory";
    }

    for ( /* void */ ; prop->name; prop = prop->parent) {
        name = &names[prop->depth - 1];
        s.data = (u_char *) prop->name;
        s.len = ngx_strlen(prop->name);

        name->len = s.len;
        name->data = ngx_pstrdup(params->pool, &s);

        if (name->data == NULL) {
            return "cannot be read: out of memory";
        }
    }

    return NULL;
}


/* A header name as RFC 9110 defines it (token), of 1 to 128 bytes. */

static ngx_uint_t
ngx_mcp_params_token(const char *s, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if ((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z')
            || (s[i] >= '0' && s[i] <= '9')
            || (s[i] && ngx_strchr("!#$%&'*+-.^_`|~", s[i])))
        {
            continue;
        }

        return 0;
    }

    return len > 0 && len <= 128;
}


ngx_int_t
ngx_mcp_params_value(ngx_mcp_param_t *param, ngx_mcp_json_t *arguments,
    ngx_mcp_json_t *value)
{
    ngx_str_t         *names;
    ngx_uint_t         i;
    ngx_mcp_json_t     object;
    ngx_mcp_member_t   member;

    names = param->path.elts;
    *value = *arguments;

    for (i = 0; i < param->path.nelts; i++) {
        object = *value;
        member.name = names[i];
        member.value = value;

        if (ngx_mcp_json_members(&object, &member, 1) != NGX_OK) {
            return NGX_DECLINED;
        }
    }

    if (value->type == NGX_MCP_JSON_NULL) {
        value->type = NGX_MCP_JSON_NONE;
    }

    return NGX_OK;
}


ngx_uint_t
ngx_mcp_params_same(ngx_str_t *header, ngx_mcp_json_t *value)
{
    const char      *err;
    ngx_mcp_json_t   number;

    switch (value->type) {

    case NGX_MCP_JSON_STRING:
        return ngx_mcp_json_is(value, header);

    case NGX_MCP_JSON_NUMBER:

        /* a JSON number; the length excludes space around it */

        return ngx_mcp_json_parse(header, &number, &err) == NGX_OK
               && number.type == NGX_MCP_JSON_NUMBER
               && number.text.len == header->len
               && ngx_mcp_json_same_number(&number, value);

    default: /* true and false; other types have no mark */
        return header->len == value->text.len
               && ngx_memcmp(header->data, value->text.data, header->len) == 0;
    }
}
