
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The keywords of a schema, and what is kept of them in its node. */


#include "ngx_mcp_schema_types.h"


/* in rows of the table: where a keyword is kept */
#define in_node(m)      NGX_MCP_IN_NODE, offsetof(ngx_mcp_node_t, m)
#define in_string(m)    NGX_MCP_IN_STRING, offsetof(ngx_mcp_string_rules_t, m)
#define in_array(m)     NGX_MCP_IN_ARRAY, offsetof(ngx_mcp_array_rules_t, m)
#define in_object(m)    NGX_MCP_IN_OBJECT, offsetof(ngx_mcp_object_rules_t, m)
#define in_property(m)  NGX_MCP_IN_OBJECT, offsetof(ngx_mcp_property_t, m)

#define ngx_mcp_keyword_at(found, type)                                       \
    ((type *) (void *) ((u_char *) (found)->rules + (found)->keyword->offset))

/* steps for the hash of a constant: the file is as long as it is */
#define NGX_MCP_SCHEMA_CONSTANT  (1LL << 40)

#define NGX_MCP_DIALECT  "https://json-schema.org/draft/2020-12/schema"


typedef struct ngx_mcp_keyword_s  ngx_mcp_keyword_t;

/* of one schema: the keyword, where it is, and its value */

typedef struct {
    ngx_mcp_keyword_t  *keyword;
    ngx_mcp_node_t     *node;
    void               *rules;    /* what the keyword is kept in */
    ngx_mcp_json_t      key;
    ngx_mcp_json_t      value;
} ngx_mcp_said_t;


/* what a value must be, unless the handler finds out */

typedef enum {
    NGX_MCP_VALUE_ANY = 0,        /* 0 in the table */
    NGX_MCP_VALUE_BOOLEAN,
    NGX_MCP_VALUE_STRING,
    NGX_MCP_VALUE_ARRAY,
    NGX_MCP_VALUE_STRINGS,        /* an array of them */
    NGX_MCP_VALUE_SCHEMAS,        /* by name */
    NGX_MCP_VALUE_LISTS           /* of strings, by name */
} ngx_mcp_keyword_value_e;


struct ngx_mcp_keyword_s {
    ngx_str_t     name;
    ngx_int_t   (*handler)(ngx_mcp_compile_t *c, ngx_mcp_said_t *found);
    ngx_uint_t    value;          /* ngx_mcp_keyword_value_e */
    ngx_uint_t    rules;          /* ngx_mcp_rules_e */
    size_t        offset;         /* or what the handler makes of it */
};


static ngx_int_t ngx_mcp_keyword_read(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_uint_t ngx_mcp_schema_quick(ngx_mcp_node_t *node);
static ngx_int_t ngx_mcp_keyword_type(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_schema_type(ngx_mcp_compile_t *c,
    ngx_mcp_node_t *node, ngx_mcp_json_t *name);
static ngx_int_t ngx_mcp_keyword_constant(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_schema_constant(ngx_array_t *list,
    ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_keyword_limit(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_multiple(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_size(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_pattern(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_unique(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_schema(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_prefix(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_properties(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_patterns(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_required(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_dependent(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_apply(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_ref(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_defs(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_anchor(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_int_t ngx_mcp_keyword_dialect(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_mcp_apply_t *ngx_mcp_schema_apply(ngx_mcp_compile_t *c,
    ngx_mcp_node_t *node);
static ngx_array_t *ngx_mcp_schema_list(ngx_mcp_compile_t *c,
    ngx_mcp_said_t *found);
static ngx_array_t *ngx_mcp_schema_names(ngx_mcp_compile_t *c,
    ngx_mcp_object_rules_t *object, ngx_mcp_json_t *list);


/* all others are annotations, or not known, and are ignored */

static ngx_mcp_keyword_t  ngx_mcp_keywords[] = {

    { ngx_string("$schema"), ngx_mcp_keyword_dialect, 0, NGX_MCP_IN_NODE, 0 },
    { ngx_string("$anchor"), ngx_mcp_keyword_anchor, NGX_MCP_VALUE_STRING,
      NGX_MCP_IN_NODE, 0 },
    { ngx_string("$dynamicAnchor"), ngx_mcp_keyword_anchor,
      NGX_MCP_VALUE_STRING, NGX_MCP_IN_NODE, 1 },
    { ngx_string("$ref"), ngx_mcp_keyword_ref, NGX_MCP_VALUE_STRING,
      NGX_MCP_IN_NODE, NGX_MCP_APPLY_REF },
    { ngx_string("$dynamicRef"), ngx_mcp_keyword_ref, NGX_MCP_VALUE_STRING,
      NGX_MCP_IN_NODE, NGX_MCP_APPLY_DYNAMIC },
    { ngx_string("$defs"), ngx_mcp_keyword_defs, NGX_MCP_VALUE_SCHEMAS,
      NGX_MCP_IN_NODE, 0 },

    { ngx_string("type"), ngx_mcp_keyword_type, 0, NGX_MCP_IN_NODE, 0 },
    { ngx_string("enum"), ngx_mcp_keyword_constant, NGX_MCP_VALUE_ARRAY,
      in_node(enumeration) },
    { ngx_string("const"), ngx_mcp_keyword_constant, 0, in_node(constant) },

    { ngx_string("minimum"), ngx_mcp_keyword_limit, 0,
      NGX_MCP_IN_NUMBER, NGX_MCP_MINIMUM },
    { ngx_string("maximum"), ngx_mcp_keyword_limit, 0,
      NGX_MCP_IN_NUMBER, NGX_MCP_MAXIMUM },
    { ngx_string("exclusiveMinimum"), ngx_mcp_keyword_limit, 0,
      NGX_MCP_IN_NUMBER, NGX_MCP_EXCLUSIVE_MINIMUM },
    { ngx_string("exclusiveMaximum"), ngx_mcp_keyword_limit, 0,
      NGX_MCP_IN_NUMBER, NGX_MCP_EXCLUSIVE_MAXIMUM },
    { ngx_string("multipleOf"), ngx_mcp_keyword_multiple, 0,
      NGX_MCP_IN_NUMBER, 0 },

    { ngx_string("minLength"), ngx_mcp_keyword_size, 0, in_string(min) },
    { ngx_string("maxLength"), ngx_mcp_keyword_size, 0, in_string(max) },
    { ngx_string("pattern"), ngx_mcp_keyword_pattern, NGX_MCP_VALUE_STRING,
      NGX_MCP_IN_STRING, 0 },

    { ngx_string("minItems"), ngx_mcp_keyword_size, 0, in_array(min) },
    { ngx_string("maxItems"), ngx_mcp_keyword_size, 0, in_array(max) },
    { ngx_string("minContains"), ngx_mcp_keyword_size, 0,
      in_array(min_contains) },
    { ngx_string("maxContains"), ngx_mcp_keyword_size, 0,
      in_array(max_contains) },
    { ngx_string("uniqueItems"), ngx_mcp_keyword_unique, NGX_MCP_VALUE_BOOLEAN,
      NGX_MCP_IN_ARRAY, 0 },
    { ngx_string("prefixItems"), ngx_mcp_keyword_prefix, 0,
      NGX_MCP_IN_ARRAY, 0 },
    { ngx_string("items"), ngx_mcp_keyword_schema, 0, in_array(items) },
    { ngx_string("contains"), ngx_mcp_keyword_schema, 0, in_array(contains) },
    { ngx_string("unevaluatedItems"), ngx_mcp_keyword_schema, 0,
      in_node(unevaluated_items) },

    { ngx_string("minProperties"), ngx_mcp_keyword_size, 0, in_object(min) },
    { ngx_string("maxProperties"), ngx_mcp_keyword_size, 0, in_object(max) },
    { ngx_string("properties"), ngx_mcp_keyword_properties,
      NGX_MCP_VALUE_SCHEMAS, in_property(node) },
    { ngx_string("dependentSchemas"), ngx_mcp_keyword_properties,
      NGX_MCP_VALUE_SCHEMAS, in_property(dependent) },
    { ngx_string("patternProperties"), ngx_mcp_keyword_patterns,
      NGX_MCP_VALUE_SCHEMAS, NGX_MCP_IN_OBJECT, 0 },
    { ngx_string("additionalProperties"), ngx_mcp_keyword_schema, 0,
      in_object(additional) },
    { ngx_string("propertyNames"), ngx_mcp_keyword_schema, 0,
      in_object(names) },
    { ngx_string("required"), ngx_mcp_keyword_required, NGX_MCP_VALUE_STRINGS,
      NGX_MCP_IN_OBJECT, 0 },
    { ngx_string("dependentRequired"), ngx_mcp_keyword_dependent,
      NGX_MCP_VALUE_LISTS, NGX_MCP_IN_OBJECT, 0 },
    { ngx_string("unevaluatedProperties"), ngx_mcp_keyword_schema, 0,
      in_node(unevaluated_properties) },

    { ngx_string("allOf"), ngx_mcp_keyword_apply, 0,
      NGX_MCP_IN_NODE, NGX_MCP_APPLY_ALL },
    { ngx_string("anyOf"), ngx_mcp_keyword_apply, 0,
      NGX_MCP_IN_NODE, NGX_MCP_APPLY_ANY },
    { ngx_string("oneOf"), ngx_mcp_keyword_apply, 0,
      NGX_MCP_IN_NODE, NGX_MCP_APPLY_ONE },
    { ngx_string("not"), ngx_mcp_keyword_apply, 0,
      NGX_MCP_IN_NODE, NGX_MCP_APPLY_NOT },
    { ngx_string("if"), ngx_mcp_keyword_schema, 0, in_node(condition) },
    { ngx_string("then"), ngx_mcp_keyword_schema, 0, in_node(then) },
    { ngx_string("else"), ngx_mcp_keyword_schema, 0, in_node(otherwise) },

    { ngx_null_string, NULL, 0, 0, 0 }
};


ngx_int_t
ngx_mcp_schema_keywords(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_mcp_json_t *text)
{
    ngx_mcp_said_t        found;
    ngx_mcp_json_iter_t   it;

    found.node = node;

    ngx_mcp_json_iter(&it, text);

    while (ngx_mcp_json_next(&it, &found.key, &found.value) == NGX_OK) {

        for (found.keyword = ngx_mcp_keywords;
             found.keyword->name.len;
             found.keyword++)
        {
            if (!ngx_mcp_json_is(&found.key, &found.keyword->name)) {
                continue;
            }

            if (ngx_mcp_keyword_read(c, &found) != NGX_OK) {
                return NGX_ERROR;
            }

            break;
        }
    }

    if (node->object && ngx_mcp_schema_table(c, node->object) != NGX_OK) {
        return NGX_ERROR;
    }

    node->quick = ngx_mcp_schema_quick(node);
    node->simple = (node->quick == NGX_MCP_QUICK_TYPE);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_keyword_read(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_keyword_t  *keyword;
    static struct {
        ngx_uint_t      types;
        const char     *err;
    } values[] = {
        { NGX_MCP_TYPE_ANY, NULL },
        { ngx_mcp_type_bit(NGX_MCP_JSON_FALSE)
          | ngx_mcp_type_bit(NGX_MCP_JSON_TRUE),
          "must be a boolean" },
        { ngx_mcp_type_bit(NGX_MCP_JSON_STRING), "must be a string" },
        { ngx_mcp_type_bit(NGX_MCP_JSON_ARRAY), "must be an array" },
        { ngx_mcp_type_bit(NGX_MCP_JSON_ARRAY),
          "must be an array of strings" },
        { ngx_mcp_type_bit(NGX_MCP_JSON_OBJECT),
          "must be an object of schemas" },
        { ngx_mcp_type_bit(NGX_MCP_JSON_OBJECT),
          "must be an object of arrays of strings" }
    };

    keyword = found->keyword;

    if (!(values[keyword->value].types & ngx_mcp_type_bit(found->value.type))) {
        return ngx_mcp_schema_error(c, found->key.text.data,
                                    values[keyword->value].err);
    }

    found->rules = ngx_mcp_schema_rules(c, found->node, keyword->rules);
    if (found->rules == NULL) {
        return NGX_ERROR;
    }

    return keyword->handler(c, found);
}


/* how most values can be checked at once */

static ngx_uint_t
ngx_mcp_schema_quick(ngx_mcp_node_t *node)
{
    if (node->constant || node->array || node->object || node->apply
        || node->condition || node->unevaluated_items
        || node->unevaluated_properties)
    {
        return NGX_MCP_QUICK_NOT;
    }

    if (node->enumeration) {
        return (node->number || node->string) ? NGX_MCP_QUICK_NOT
                                              : NGX_MCP_QUICK_ENUM;
    }

    if (node->number) {
        return (node->number->plain && node->string == NULL)
               ? NGX_MCP_QUICK_NUMBER : NGX_MCP_QUICK_NOT;
    }

    if (node->string) {
        return (node->string->pattern == NULL) ? NGX_MCP_QUICK_STRING
                                               : NGX_MCP_QUICK_NOT;
    }

    return NGX_MCP_QUICK_TYPE;
}


static ngx_int_t
ngx_mcp_keyword_type(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_json_t        item;
    ngx_mcp_json_iter_t   it;

    found->node->types = 0;

    if (found->value.type != NGX_MCP_JSON_ARRAY) {
        return ngx_mcp_schema_type(c, found->node, &found->value);
    }

    ngx_mcp_json_iter(&it, &found->value);

    while (ngx_mcp_json_next(&it, NULL, &item) == NGX_OK) {
        if (ngx_mcp_schema_type(c, found->node, &item) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_schema_type(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_mcp_json_t *name)
{
    ngx_uint_t  i;
    static struct {
        ngx_str_t   name;
        ngx_uint_t  bits;
    } types[] = {
        { ngx_string("null"), ngx_mcp_type_bit(NGX_MCP_JSON_NULL) },
        { ngx_string("boolean"), ngx_mcp_type_bit(NGX_MCP_JSON_FALSE)
                                 | ngx_mcp_type_bit(NGX_MCP_JSON_TRUE) },
        { ngx_string("number"), ngx_mcp_type_bit(NGX_MCP_JSON_NUMBER) },
        { ngx_string("integer"), NGX_MCP_TYPE_INTEGER },
        { ngx_string("string"), ngx_mcp_type_bit(NGX_MCP_JSON_STRING) },
        { ngx_string("array"), ngx_mcp_type_bit(NGX_MCP_JSON_ARRAY) },
        { ngx_string("object"), ngx_mcp_type_bit(NGX_MCP_JSON_OBJECT) },
        { ngx_null_string, 0 }
    };

    for (i = 0; types[i].name.len; i++) {
        if (name->type == NGX_MCP_JSON_STRING
            && ngx_mcp_json_is(name, &types[i].name))
        {
            node->types |= types[i].bits;
            return NGX_OK;
        }
    }

    return ngx_mcp_schema_error(c, name->text.data,
                                "must be the name of a type: null, boolean, "
                                "number, integer, string, array or object");
}


/* "const" has one value, "enum" a list of them */

static ngx_int_t
ngx_mcp_keyword_constant(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_array_t          *list;
    ngx_mcp_json_t        item;
    ngx_mcp_json_iter_t   it;

    list = ngx_array_create(c->pool, 4, sizeof(ngx_mcp_constant_t));
    if (list == NULL) {
        return NGX_ERROR;
    }

    *ngx_mcp_keyword_at(found, ngx_array_t *) = list;

    if (found->keyword->value == NGX_MCP_VALUE_ANY) {
        return ngx_mcp_schema_constant(list, &found->value);
    }

    ngx_mcp_json_iter(&it, &found->value);

    while (ngx_mcp_json_next(&it, NULL, &item) == NGX_OK) {
        if (ngx_mcp_schema_constant(list, &item) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_schema_constant(ngx_array_t *list, ngx_mcp_json_t *value)
{
    int64_t              steps;
    ngx_mcp_constant_t  *constant;

    constant = ngx_array_push(list);
    if (constant == NULL) {
        return NGX_ERROR;
    }

    steps = NGX_MCP_SCHEMA_CONSTANT;
    constant->value = *value;
    constant->hash = ngx_mcp_value_hash(value, &steps);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_keyword_limit(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    int64_t                  n;
    ngx_mcp_number_rules_t  *number;

    number = found->rules;

    if (found->value.type != NGX_MCP_JSON_NUMBER
        || ngx_mcp_decimal(&found->value.text,
                           &number->limit[found->keyword->offset])
           != NGX_OK)
    {
        return ngx_mcp_schema_error(c, found->key.text.data,
                                    "must be a number with an exponent of at "
                                    "most 15 digits");
    }

    number->set |= (ngx_uint_t) 1 << found->keyword->offset;

    /* most limits are such that they can be compared at once */

    if (ngx_mcp_json_integer(&found->value, &n) != NGX_OK) {
        number->plain = 0;
        return NGX_OK;
    }

    switch (found->keyword->offset) {

    case NGX_MCP_MINIMUM:
        number->min = ngx_max(number->min, n);
        break;

    case NGX_MCP_EXCLUSIVE_MINIMUM:
        number->min = ngx_max(number->min, n + 1);
        break;

    case NGX_MCP_MAXIMUM:
        number->max = ngx_min(number->max, n);
        break;

    default: /* NGX_MCP_EXCLUSIVE_MAXIMUM */
        number->max = ngx_min(number->max, n - 1);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_keyword_multiple(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_decimal_t        d;
    ngx_mcp_number_rules_t  *number;

    number = found->rules;

    if (found->value.type != NGX_MCP_JSON_NUMBER
        || ngx_mcp_decimal(&found->value.text, &d) != NGX_OK
        || ngx_mcp_number_divisor(&d, &number->multiple_of) != NGX_OK)
    {
        return ngx_mcp_schema_error(c, found->key.text.data,
                                    "must be a number greater than 0 of at "
                                    "most 18 significant digits");
    }

    number->plain = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_keyword_size(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_decimal_t  d;

    if (found->value.type == NGX_MCP_JSON_NUMBER) {
        /* beyond 15 digits, the exponent says how large it is, or how small */
        (void) ngx_mcp_decimal(&found->value.text, &d);

        if (ngx_mcp_number_size(&d, ngx_mcp_keyword_at(found, size_t))
            == NGX_OK)
        {
            return NGX_OK;
        }
    }

    return ngx_mcp_schema_error(c, found->key.text.data,
                                "must be a non-negative integer");
}


static ngx_int_t
ngx_mcp_keyword_pattern(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_string_rules_t  *string;

    string = found->rules;
    string->pattern = ngx_mcp_schema_pattern(c, &found->value);

    return string->pattern ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_mcp_keyword_unique(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_array_rules_t  *array;

    array = found->rules;
    array->unique = (found->value.type == NGX_MCP_JSON_TRUE);

    return NGX_OK;
}


/* a keyword with one schema */

static ngx_int_t
ngx_mcp_keyword_schema(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_node_t  *node;

    node = ngx_mcp_schema_node(c, &found->value, found->node->resource);

    *ngx_mcp_keyword_at(found, ngx_mcp_node_t *) = node;

    return node ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_mcp_keyword_prefix(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_array_rules_t  *array;

    array = found->rules;
    array->prefix = ngx_mcp_schema_list(c, found);

    return array->prefix ? NGX_OK : NGX_ERROR;
}


static ngx_array_t *
ngx_mcp_schema_list(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_array_t          *list;
    ngx_mcp_node_t      **node;
    ngx_mcp_json_t        item;
    ngx_mcp_json_iter_t   it;

    if (found->value.type != NGX_MCP_JSON_ARRAY
        || !ngx_mcp_json_filled(&found->value))
    {
        (void) ngx_mcp_schema_error(c, found->key.text.data,
                                    "must be a non-empty array of schemas");
        return NULL;
    }

    list = ngx_array_create(c->pool, 4, sizeof(ngx_mcp_node_t *));
    if (list == NULL) {
        return NULL;
    }

    ngx_mcp_json_iter(&it, &found->value);

    while (ngx_mcp_json_next(&it, NULL, &item) == NGX_OK) {

        node = ngx_array_push(list);
        if (node == NULL) {
            return NULL;
        }

        *node = ngx_mcp_schema_node(c, &item, found->node->resource);
        if (*node == NULL) {
            return NULL;
        }
    }

    return list;
}


/* a schema for each of some names */

static ngx_int_t
ngx_mcp_keyword_properties(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    u_char                  *property;
    ngx_int_t                i;
    ngx_mcp_json_t           key, item;
    ngx_mcp_node_t          *node;
    ngx_mcp_json_iter_t      it;
    ngx_mcp_object_rules_t  *object;

    object = found->rules;
    ngx_mcp_json_iter(&it, &found->value);

    while (ngx_mcp_json_next(&it, &key, &item) == NGX_OK) {

        node = ngx_mcp_schema_node(c, &item, found->node->resource);
        i = ngx_mcp_schema_property(c, object, &key);

        if (node == NULL || i == NGX_ERROR) {
            return NGX_ERROR;
        }

        property = (u_char *) object->properties.elts
                   + i * sizeof(ngx_mcp_property_t);

        *(ngx_mcp_node_t **) (void *) (property + found->keyword->offset)
            = node;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_keyword_patterns(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_json_t           key, item;
    ngx_mcp_named_t         *named;
    ngx_mcp_json_iter_t      it;
    ngx_mcp_object_rules_t  *object;

    object = found->rules;
    object->patterns = ngx_array_create(c->pool, 4, sizeof(ngx_mcp_named_t));
    if (object->patterns == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_json_iter(&it, &found->value);

    while (ngx_mcp_json_next(&it, &key, &item) == NGX_OK) {

        named = ngx_array_push(object->patterns);
        if (named == NULL) {
            return NGX_ERROR;
        }

        named->regex = ngx_mcp_schema_pattern(c, &key);
        if (named->regex == NULL) {
            return NGX_ERROR;
        }

        named->node = ngx_mcp_schema_node(c, &item, found->node->resource);
        if (named->node == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_keyword_required(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_uint_t               i, *index;
    ngx_array_t             *names;
    ngx_mcp_property_t      *property;
    ngx_mcp_object_rules_t  *object;

    object = found->rules;

    names = ngx_mcp_schema_names(c, object, &found->value);
    if (names == NULL) {
        return NGX_ERROR;
    }

    index = names->elts;
    property = object->properties.elts;

    for (i = 0; i < names->nelts; i++) {
        property[index[i]].required = 1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_keyword_dependent(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_int_t                i;
    ngx_array_t             *names;
    ngx_mcp_json_t           key, list;
    ngx_mcp_property_t      *property;
    ngx_mcp_json_iter_t      it;
    ngx_mcp_object_rules_t  *object;

    object = found->rules;
    ngx_mcp_json_iter(&it, &found->value);

    while (ngx_mcp_json_next(&it, &key, &list) == NGX_OK) {

        if (list.type != NGX_MCP_JSON_ARRAY) {
            return ngx_mcp_schema_error(c, list.text.data,
                                        "must be an array of strings");
        }

        i = ngx_mcp_schema_property(c, object, &key);
        if (i == NGX_ERROR) {
            return NGX_ERROR;
        }

        names = ngx_mcp_schema_names(c, object, &list);
        if (names == NULL) {
            return NGX_ERROR;
        }

        property = (ngx_mcp_property_t *) object->properties.elts + i;
        property->requires = names;
    }

    return NGX_OK;
}


/* the indexes of properties with these names; NULL: the error is set */

static ngx_array_t *
ngx_mcp_schema_names(ngx_mcp_compile_t *c, ngx_mcp_object_rules_t *object,
    ngx_mcp_json_t *list)
{
    ngx_int_t             i;
    ngx_uint_t           *index;
    ngx_array_t          *names;
    ngx_mcp_json_t        item;
    ngx_mcp_json_iter_t   it;

    names = ngx_array_create(c->pool, 4, sizeof(ngx_uint_t));
    if (names == NULL) {
        return NULL;
    }

    ngx_mcp_json_iter(&it, list);

    while (ngx_mcp_json_next(&it, NULL, &item) == NGX_OK) {

        if (item.type != NGX_MCP_JSON_STRING) {
            (void) ngx_mcp_schema_error(c, item.text.data, "must be a string");
            return NULL;
        }

        index = ngx_array_push(names);
        i = ngx_mcp_schema_property(c, object, &item);

        if (index == NULL || i == NGX_ERROR) {
            return NULL;
        }

        *index = i;
    }

    return names;
}


static ngx_int_t
ngx_mcp_keyword_apply(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_node_t   *node, **nodes;
    ngx_array_t      *list;
    ngx_mcp_apply_t  *apply;

    if (found->keyword->offset == NGX_MCP_APPLY_NOT) {
        list = ngx_array_create(c->pool, 1, sizeof(ngx_mcp_node_t *));
        node = ngx_mcp_schema_node(c, &found->value, found->node->resource);

        if (list == NULL || node == NULL) {
            return NGX_ERROR;
        }

        nodes = ngx_array_push(list);
        if (nodes == NULL) {
            return NGX_ERROR;
        }

        *nodes = node;

    } else {
        list = ngx_mcp_schema_list(c, found);
        if (list == NULL) {
            return NGX_ERROR;
        }
    }

    apply = ngx_mcp_schema_apply(c, found->node);
    if (apply == NULL) {
        return NGX_ERROR;
    }

    apply->kind = found->keyword->offset;
    apply->nodes = list;

    return NGX_OK;
}


static ngx_mcp_apply_t *
ngx_mcp_schema_apply(ngx_mcp_compile_t *c, ngx_mcp_node_t *node)
{
    ngx_mcp_apply_t  *apply;

    if (node->apply == NULL) {
        node->apply = ngx_array_create(c->pool, 2, sizeof(ngx_mcp_apply_t));
        if (node->apply == NULL) {
            return NULL;
        }
    }

    apply = ngx_array_push(node->apply);

    if (apply) {
        ngx_memzero(apply, sizeof(ngx_mcp_apply_t));
    }

    return apply;
}


static ngx_int_t
ngx_mcp_keyword_ref(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_apply_t      *apply;
    ngx_mcp_reference_t  *reference;

    apply = ngx_mcp_schema_apply(c, found->node);
    reference = ngx_array_push(&c->references);

    if (apply == NULL || reference == NULL) {
        return NGX_ERROR;
    }

    apply->kind = found->keyword->offset;
    reference->node = found->node;
    reference->index = found->node->apply->nelts - 1;
    reference->where = found->key.text.data;

    return ngx_mcp_value_string(c->pool, &found->value, &reference->uri);
}


static ngx_int_t
ngx_mcp_keyword_defs(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_mcp_json_t        key, item;
    ngx_mcp_json_iter_t   it;

    ngx_mcp_json_iter(&it, &found->value);

    while (ngx_mcp_json_next(&it, &key, &item) == NGX_OK) {
        if (ngx_mcp_schema_node(c, &item, found->node->resource) == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_keyword_anchor(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    ngx_str_t  name;

    if (ngx_mcp_value_string(c->pool, &found->value, &name) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_mcp_schema_anchor_find(found->node->resource, &name)) {
        return ngx_mcp_schema_error(c, found->key.text.data, "is duplicate");
    }

    return ngx_mcp_schema_anchor(c, found->node, &name, found->keyword->offset);
}


static ngx_int_t
ngx_mcp_keyword_dialect(ngx_mcp_compile_t *c, ngx_mcp_said_t *found)
{
    static ngx_str_t  dialect = ngx_string(NGX_MCP_DIALECT);
    static ngx_str_t  fragment = ngx_string(NGX_MCP_DIALECT "#");

    if (found->value.type == NGX_MCP_JSON_STRING
        && (ngx_mcp_json_is(&found->value, &dialect)
            || ngx_mcp_json_is(&found->value, &fragment)))
    {
        return NGX_OK;
    }

    return ngx_mcp_schema_error(c, found->key.text.data,
                                "must be \"" NGX_MCP_DIALECT "\", no other "
                                "version of JSON Schema is supported");
}
