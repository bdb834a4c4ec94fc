
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Validates values by compiled schemas.  It reads the text from the start to
 * the end, as often as the schema has subschemas for it; where an array or an
 * object ends becomes known on the way.
 */


#include "ngx_mcp_schema_types.h"


/* steps that a match of a pattern takes, at least */
#define NGX_MCP_VALIDATE_MATCH  16

/* so many values are compared without sorting them, or hashing */
#define NGX_MCP_VALIDATE_FEW    16

/* the characters of numbers that are not digits */
#define ngx_mcp_is_number(c)                                                  \
    ((c) == '.' || (c) == 'e' || (c) == 'E' || (c) == '+' || (c) == '-')


static ngx_uint_t ngx_mcp_validate_same(ngx_array_t *list,
    ngx_mcp_json_t *value);
static ngx_uint_t ngx_mcp_validate_integer(ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_validate_rules(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_node_t *node, ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_validate_constant(ngx_mcp_validation_t *v,
    ngx_array_t *list, ngx_mcp_json_t *value, const char *keyword);
static ngx_int_t ngx_mcp_validate_number(ngx_mcp_validation_t *v,
    ngx_mcp_number_rules_t *number, ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_validate_string(ngx_mcp_validation_t *v,
    ngx_mcp_string_rules_t *string, ngx_mcp_json_t *value);
static size_t ngx_mcp_validate_length(ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_validate_array(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_array_rules_t *array,
    ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_validate_item(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_array_rules_t *array, size_t n,
    ngx_mcp_json_t *item);
static ngx_int_t ngx_mcp_validate_unique(ngx_mcp_validation_t *v,
    ngx_mcp_json_t *value, size_t n);
static int ngx_libc_cdecl ngx_mcp_validate_cmp(const void *one,
    const void *two);
static ngx_int_t ngx_mcp_validate_apply(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_apply_t *apply, ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_validate_some(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_apply_t *apply, ngx_mcp_json_t *value);
static ngx_int_t ngx_mcp_validate_if(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_node_t *node, ngx_mcp_json_t *value);


ngx_int_t
ngx_mcp_schema_validate(ngx_mcp_schema_t *schema, ngx_pool_t *pool,
    ngx_mcp_json_t *value, ngx_mcp_mismatch_t *mismatch)
{
    ngx_int_t             rc;
    ngx_mcp_json_t        copy;
    ngx_mcp_scope_t       scope;
    ngx_mcp_validation_t  v;

    ngx_memzero(&v, sizeof(ngx_mcp_validation_t));
    ngx_memzero(mismatch, sizeof(ngx_mcp_mismatch_t));

    v.schema = schema;
    v.pool = pool;
    ngx_str_set(&v.name, "");
    v.end = value->text.data + value->text.len;
    v.steps = NGX_MCP_SCHEMA_STEPS
              + NGX_MCP_SCHEMA_BYTE * (int64_t) value->text.len;

    scope.outer = NULL;
    scope.resource = schema->root->resource;
    copy = *value;

    rc = ngx_mcp_validate_node(&v, &scope, schema->root, &copy, "");

    if (rc == NGX_DECLINED) {
        mismatch->keyword = v.keyword;
        mismatch->name = v.name;

        if (ngx_mcp_value_pointer(pool, value, v.where, &mismatch->pointer)
            != NGX_OK)
        {
            rc = NGX_ERROR;
        }
    }

    if (v.temp) {
        ngx_destroy_pool(v.temp);
    }

    return rc;
}


ngx_int_t
ngx_mcp_validate_fail(ngx_mcp_validation_t *v, ngx_mcp_json_t *value,
    const char *keyword)
{
    if (!v->quiet) {
        v->where = value->text.data;
        v->keyword = keyword;
    }

    return NGX_DECLINED;
}


ngx_pool_t *
ngx_mcp_validate_pool(ngx_mcp_validation_t *v)
{
    if (v->temp == NULL) {
        v->temp = ngx_create_pool(4096, v->pool->log);
    }

    return v->temp;
}


/* the value that begins there; only of scalars the length is known */

void
ngx_mcp_validate_at(ngx_mcp_validation_t *v, u_char *p, ngx_mcp_json_t *value)
{
    value->text.data = p;
    value->text.len = 0;

    switch (*p) {

    case '{':
        value->type = NGX_MCP_JSON_OBJECT;
        break;

    case '[':
        value->type = NGX_MCP_JSON_ARRAY;
        break;

    case '-': case '0': case '1': case '2': case '3': case '4': case '5':
    case '6': case '7': case '8': case '9':
        value->type = NGX_MCP_JSON_NUMBER;

        do {
            p++;
        } while ((u_char) (*p - '0') < 10 || ngx_mcp_is_number(*p));

        value->text.len = p - value->text.data;
        v->steps -= value->text.len / NGX_MCP_VALIDATE_STEP;
        break;

    default:
        value->text.len = ngx_mcp_json_skip(p, v->end, &value->type) - p;
        v->steps -= value->text.len / (4 * NGX_MCP_VALIDATE_STEP);
    }
}


u_char *
ngx_mcp_validate_after(ngx_mcp_validation_t *v, ngx_mcp_json_t *value)
{
    u_char  *p;

    p = value->text.data;

    if (value->text.len == 0) {
        value->text.len = ngx_mcp_json_skip(p, v->end, &value->type) - p;
        v->steps -= value->text.len / NGX_MCP_VALIDATE_STEP;
    }

    return p + value->text.len;
}


/* keyword is what to report of a schema that is false */

ngx_int_t
ngx_mcp_validate_node(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_node_t *node, ngx_mcp_json_t *value, const char *keyword)
{
    ngx_int_t        rc;
    ngx_mcp_scope_t  inner;

    if (--v->steps < 0) {
        return NGX_ABORT;
    }

    while (node->only) {
        node = node->only;
        keyword = "$ref";
    }

    if (node->never) {
        return ngx_mcp_validate_fail(v, value, keyword);
    }

    if (!(node->types & ngx_mcp_type_bit(value->type))) {

        if (value->type != NGX_MCP_JSON_NUMBER
            || !(node->types & NGX_MCP_TYPE_INTEGER)
            || !ngx_mcp_validate_integer(value))
        {
            return ngx_mcp_validate_fail(v, value, "type");
        }
    }

    if (node->simple) {
        return NGX_OK;
    }

    if (v->depth == NGX_MCP_SCHEMA_DEPTH) {
        return NGX_ABORT;
    }

    if (node->resource != scope->resource) {
        inner.outer = scope;
        inner.resource = node->resource;
        scope = &inner;
    }

    v->depth++;
    rc = ngx_mcp_validate_rules(v, scope, node, value);
    v->depth--;

    return rc;
}


ngx_uint_t
ngx_mcp_validate_quick(ngx_mcp_node_t *node, ngx_mcp_json_t *value)
{
    size_t      len;
    int64_t     n;
    ngx_uint_t  typed;

    typed = node->types & ngx_mcp_type_bit(value->type);

    switch (node->quick) {

    case NGX_MCP_QUICK_TYPE:
        return typed != 0;

    case NGX_MCP_QUICK_NUMBER:
        return value->type == NGX_MCP_JSON_NUMBER
               && (typed || (node->types & NGX_MCP_TYPE_INTEGER))
               && ngx_mcp_json_integer(value, &n) == NGX_OK
               && n >= node->number->min && n <= node->number->max;

    case NGX_MCP_QUICK_STRING:
        /* a character takes 1 to 12 bytes */

        len = value->text.len - 2;

        return typed && value->type == NGX_MCP_JSON_STRING
               && len <= node->string->max
               && (len / 12 >= node->string->min
                   || (len && node->string->min == 1));

    case NGX_MCP_QUICK_ENUM:
        return typed && value->text.len
               && ngx_mcp_validate_same(node->enumeration, value);
    }

    return 0;
}


/* whether one of the first constants is written in the same way */

static ngx_uint_t
ngx_mcp_validate_same(ngx_array_t *list, ngx_mcp_json_t *value)
{
    ngx_uint_t           i;
    ngx_mcp_constant_t  *constant;

    constant = list->elts;

    for (i = 0; i < list->nelts && i < NGX_MCP_VALIDATE_FEW; i++) {
        if (constant[i].value.text.len == value->text.len
            && ngx_memcmp(constant[i].value.text.data, value->text.data,
                          value->text.len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_mcp_validate_integer(ngx_mcp_json_t *value)
{
    u_char             *p, *end;
    ngx_mcp_decimal_t   d;

    p = value->text.data;
    end = p + value->text.len;

    p += (*p == '-');

    while (p < end && *p >= '0' && *p <= '9') {
        p++;
    }

    if (p == end) {
        return 1;
    }

    (void) ngx_mcp_decimal(&value->text, &d);

    return ngx_mcp_number_is_integer(&d);
}


ngx_int_t
ngx_mcp_validate_quietly(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_node_t *node, ngx_mcp_json_t *value)
{
    ngx_int_t  rc;

    v->quiet++;
    rc = ngx_mcp_validate_node(v, scope, node, value, "");
    v->quiet--;

    return rc;
}


static ngx_int_t
ngx_mcp_validate_rules(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_node_t *node, ngx_mcp_json_t *value)
{
    ngx_int_t         rc;
    ngx_uint_t        i;
    ngx_mcp_apply_t  *apply;

    rc = NGX_OK;

    if (node->constant) {
        rc = ngx_mcp_validate_constant(v, node->constant, value, "const");
    }

    if (rc == NGX_OK && node->enumeration) {
        rc = ngx_mcp_validate_constant(v, node->enumeration, value, "enum");
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (value->type == NGX_MCP_JSON_OBJECT && node->object) {
        rc = ngx_mcp_validate_object(v, scope, node->object, value);

    } else if (value->type == NGX_MCP_JSON_STRING && node->string) {
        rc = ngx_mcp_validate_string(v, node->string, value);

    } else if (value->type == NGX_MCP_JSON_NUMBER && node->number) {
        rc = ngx_mcp_validate_number(v, node->number, value);

    } else if (value->type == NGX_MCP_JSON_ARRAY && node->array) {
        rc = ngx_mcp_validate_array(v, scope, node->array, value);
    }

    if (node->apply) {
        apply = node->apply->elts;

        for (i = 0; rc == NGX_OK && i < node->apply->nelts; i++) {
            rc = ngx_mcp_validate_apply(v, scope, &apply[i], value);
        }
    }

    if (rc == NGX_OK && node->condition) {
        rc = ngx_mcp_validate_if(v, scope, node, value);
    }

    if (rc == NGX_OK
        && ((value->type == NGX_MCP_JSON_OBJECT
             && node->unevaluated_properties)
            || (value->type == NGX_MCP_JSON_ARRAY && node->unevaluated_items)))
    {
        rc = ngx_mcp_unevaluated(v, scope, node, value);
    }

    return rc;
}


static ngx_int_t
ngx_mcp_validate_constant(ngx_mcp_validation_t *v, ngx_array_t *list,
    ngx_mcp_json_t *value, const char *keyword)
{
    uint64_t             hash;
    ngx_uint_t           i, equal;
    ngx_mcp_constant_t  *constant;

    (void) ngx_mcp_validate_after(v, value);

    constant = list->elts;

    if (ngx_mcp_validate_same(list, value)) {
        return NGX_OK;
    }

    hash = ngx_mcp_value_hash(value, &v->steps);
    v->steps -= list->nelts / NGX_MCP_VALIDATE_STEP;

    for (i = 0; v->steps >= 0 && i < list->nelts; i++) {

        if (constant[i].hash != hash) {
            continue;
        }

        equal = ngx_mcp_value_equal(&constant[i].value, value, &v->steps);

        if (equal) {
            return NGX_OK;
        }
    }

    return (v->steps < 0) ? NGX_ABORT
                          : ngx_mcp_validate_fail(v, value, keyword);
}


static ngx_int_t
ngx_mcp_validate_number(ngx_mcp_validation_t *v,
    ngx_mcp_number_rules_t *number, ngx_mcp_json_t *value)
{
    int64_t             n;
    ngx_int_t           rc;
    ngx_uint_t          i, valid;
    ngx_mcp_decimal_t   d;
    static const char  *keywords[] = {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"
    };

    if (number->plain && ngx_mcp_json_integer(value, &n) == NGX_OK
        && n >= number->min && n <= number->max)
    {
        return NGX_OK;
    }

    v->steps -= value->text.len / NGX_MCP_VALIDATE_STEP;

    (void) ngx_mcp_decimal(&value->text, &d);

    for (i = 0; i < NGX_MCP_LIMITS; i++) {

        if (!(number->set >> i & 1)) {
            continue;
        }

        rc = ngx_mcp_number_cmp(&d, &number->limit[i]);

        switch (i) {

        case NGX_MCP_MINIMUM:
            valid = (rc >= 0);
            break;

        case NGX_MCP_MAXIMUM:
            valid = (rc <= 0);
            break;

        case NGX_MCP_EXCLUSIVE_MINIMUM:
            valid = (rc > 0);
            break;

        default: /* NGX_MCP_EXCLUSIVE_MAXIMUM */
            valid = (rc < 0);
        }

        if (!valid) {
            return ngx_mcp_validate_fail(v, value, keywords[i]);
        }
    }

    if (number->multiple_of.digits
        && !ngx_mcp_number_divides(&number->multiple_of, &d))
    {
        return ngx_mcp_validate_fail(v, value, "multipleOf");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_validate_string(ngx_mcp_validation_t *v,
    ngx_mcp_string_rules_t *string, ngx_mcp_json_t *value)
{
    size_t      len;
    ngx_int_t   rc;
    ngx_str_t   s;

    /* a character takes 1 to 12 bytes; most often there is no need to count */

    len = value->text.len - 2;

    if (len < string->min) {
        return ngx_mcp_validate_fail(v, value, "minLength");
    }

    if (len > string->max || len / 12 < string->min) {

        v->steps -= len / NGX_MCP_VALIDATE_STEP;
        len = ngx_mcp_validate_length(value);

        if (len < string->min) {
            return ngx_mcp_validate_fail(v, value, "minLength");
        }

        if (len > string->max) {
            return ngx_mcp_validate_fail(v, value, "maxLength");
        }
    }

    if (string->pattern == NULL) {
        return NGX_OK;
    }

    if (ngx_mcp_validate_name(v, value, &s) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_validate_match(v, string->pattern, &s);

    return (rc == NGX_DECLINED) ? ngx_mcp_validate_fail(v, value, "pattern")
                                : rc;
}


/* in characters, not bytes */

static size_t
ngx_mcp_validate_length(ngx_mcp_json_t *value)
{
    u_char    *p, *end, *next;
    size_t     n;
    uint32_t   code;

    p = value->text.data + 1;
    end = value->text.data + value->text.len - 1;

    for (n = 0; p < end; /* void */ ) {

        if (*p != '\\') {
            n += ((*p++ & 0xc0) != 0x80);
            continue;
        }

        next = ngx_mcp_json_code_point(p, end, &code);
        p = next ? next : p + sizeof("\\ud800") - 1;
        n++;
    }

    return n;
}


ngx_int_t
ngx_mcp_validate_match(ngx_mcp_validation_t *v, void *regex, ngx_str_t *s)
{
    v->steps -= NGX_MCP_VALIDATE_MATCH + s->len / NGX_MCP_VALIDATE_STEP;

    if (v->steps < 0) {
        return NGX_ABORT;
    }

    return v->schema->regex->match(regex, s);
}


/* a key, or another string, as UTF-8 */

ngx_int_t
ngx_mcp_validate_name(ngx_mcp_validation_t *v, ngx_mcp_json_t *key,
    ngx_str_t *name)
{
    name->data = key->text.data + 1;
    name->len = key->text.len - 2;

    if (memchr(name->data, '\\', name->len) == NULL) {
        return NGX_OK;
    }

    v->steps -= name->len / NGX_MCP_VALIDATE_STEP;

    if (ngx_mcp_validate_pool(v) == NULL) {
        return NGX_ERROR;
    }

    return ngx_mcp_value_string(v->temp, key, name);
}


static ngx_int_t
ngx_mcp_validate_array(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_array_rules_t *array, ngx_mcp_json_t *value)
{
    u_char          *p;
    size_t           n, contained, prefix;
    ngx_int_t        rc;
    ngx_mcp_json_t   item;

    p = value->text.data + 1;
    prefix = array->prefix ? array->prefix->nelts : 0;
    n = 0;
    contained = 0;

    ngx_mcp_skip_space(p);

    while (*p != ']') {

        ngx_mcp_validate_at(v, p, &item);

        if (array->contains) {
            rc = ngx_mcp_validate_quietly(v, scope, array->contains, &item);

            if (rc != NGX_OK && rc != NGX_DECLINED) {
                return rc;
            }

            contained += (rc == NGX_OK);
        }

        if (n < prefix || array->items == NULL
            || !ngx_mcp_validate_quick(array->items, &item))
        {
            rc = ngx_mcp_validate_item(v, scope, array, n, &item);

            if (rc != NGX_OK) {
                return rc;
            }
        }

        n++;
        p = ngx_mcp_validate_next(v, &item);

        if (v->steps < 0) {
            return NGX_ABORT;
        }
    }

    value->text.len = p + 1 - value->text.data;

    if (n < array->min) {
        return ngx_mcp_validate_fail(v, value, "minItems");
    }

    if (n > array->max) {
        return ngx_mcp_validate_fail(v, value, "maxItems");
    }

    if (array->contains && contained < array->min_contains) {
        return ngx_mcp_validate_fail(v, value, array->min_contains == 1
                                               ? "contains" : "minContains");
    }

    if (array->contains && contained > array->max_contains) {
        return ngx_mcp_validate_fail(v, value, "maxContains");
    }

    return (array->unique && n > 1) ? ngx_mcp_validate_unique(v, value, n)
                                    : NGX_OK;
}


static ngx_int_t
ngx_mcp_validate_item(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_array_rules_t *array, size_t n, ngx_mcp_json_t *item)
{
    ngx_mcp_node_t  **prefix;

    if (array->prefix && n < array->prefix->nelts) {
        prefix = array->prefix->elts;
        return ngx_mcp_validate_node(v, scope, prefix[n], item, "prefixItems");
    }

    return array->items ? ngx_mcp_validate_node(v, scope, array->items, item,
                                                "items")
                        : NGX_OK;
}


/* sorted by hash: only those with the same one are compared */

static ngx_int_t
ngx_mcp_validate_unique(ngx_mcp_validation_t *v, ngx_mcp_json_t *value,
    size_t n)
{
    size_t                i, j;
    ngx_mcp_constant_t    few[NGX_MCP_VALIDATE_FEW], *items;
    ngx_mcp_json_iter_t   it;

    v->steps -= n + value->text.len / NGX_MCP_VALIDATE_STEP;

    if (v->steps < 0) {
        return NGX_ABORT;
    }

    items = few;

    if (n > NGX_MCP_VALIDATE_FEW) {
        items = ngx_mcp_validate_pool(v)
                ? ngx_palloc(v->temp, n * sizeof(ngx_mcp_constant_t)) : NULL;

        if (items == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_mcp_json_iter(&it, value);

    for (i = 0; i < n; i++) {
        (void) ngx_mcp_json_next(&it, NULL, &items[i].value);
        items[i].hash = ngx_mcp_value_hash(&items[i].value, &v->steps);
    }

    if (items != few) {
        ngx_qsort(items, n, sizeof(ngx_mcp_constant_t), ngx_mcp_validate_cmp);
    }

    for (i = 0; i < n; i++) {

        for (j = i + 1; j < n; j++) {

            if (items[j].hash != items[i].hash) {

                if (items == few) {
                    continue;
                }

                break;
            }

            if (v->steps < 0) {
                return NGX_ABORT;
            }

            if (ngx_mcp_value_equal(&items[i].value, &items[j].value,
                                    &v->steps))
            {
                return ngx_mcp_validate_fail(v, value, "uniqueItems");
            }
        }
    }

    if (items != few) {
        (void) ngx_pfree(v->temp, items);
    }

    return (v->steps < 0) ? NGX_ABORT : NGX_OK;
}


static int ngx_libc_cdecl
ngx_mcp_validate_cmp(const void *one, const void *two)
{
    const ngx_mcp_constant_t  *a, *b;

    a = one;
    b = two;

    return (a->hash < b->hash) ? -1 : (a->hash > b->hash);
}


static ngx_int_t
ngx_mcp_validate_apply(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_apply_t *apply, ngx_mcp_json_t *value)
{
    ngx_int_t         rc;
    ngx_uint_t        i;
    ngx_mcp_node_t  **nodes;

    switch (apply->kind) {

    case NGX_MCP_APPLY_REF:
        return ngx_mcp_validate_node(v, scope, apply->node, value, "$ref");

    case NGX_MCP_APPLY_DYNAMIC:
        return ngx_mcp_validate_node(v, scope,
                                     ngx_mcp_validate_target(scope, apply),
                                     value, "$dynamicRef");

    case NGX_MCP_APPLY_ALL:
        nodes = apply->nodes->elts;

        for (i = 0; i < apply->nodes->nelts; i++) {
            rc = ngx_mcp_validate_node(v, scope, nodes[i], value, "allOf");

            if (rc != NGX_OK) {
                return rc;
            }
        }

        return NGX_OK;
    }

    return ngx_mcp_validate_some(v, scope, apply, value);
}


/* the outermost resource that has the anchor */

ngx_mcp_node_t *
ngx_mcp_validate_target(ngx_mcp_scope_t *scope, ngx_mcp_apply_t *apply)
{
    ngx_mcp_node_t    *node;
    ngx_mcp_anchor_t  *anchor;

    for (node = apply->node;
         apply->kind == NGX_MCP_APPLY_DYNAMIC && scope;
         scope = scope->outer)
    {
        anchor = ngx_mcp_schema_anchor_find(scope->resource, &apply->anchor);

        if (anchor && anchor->dynamic) {
            node = anchor->node;
        }
    }

    return node;
}


/* "anyOf", "oneOf" and "not": what matters is how many match */

static ngx_int_t
ngx_mcp_validate_some(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_apply_t *apply, ngx_mcp_json_t *value)
{
    ngx_int_t         rc;
    ngx_uint_t        i, n;
    ngx_mcp_node_t  **nodes;

    nodes = apply->nodes->elts;
    n = 0;

    for (i = 0; i < apply->nodes->nelts; i++) {

        rc = ngx_mcp_validate_quietly(v, scope, nodes[i], value);

        if (rc != NGX_OK && rc != NGX_DECLINED) {
            return rc;
        }

        n += (rc == NGX_OK);

        if (n && apply->kind == NGX_MCP_APPLY_ANY) {
            return NGX_OK;
        }

        if (n > 1) {
            break;
        }
    }

    switch (apply->kind) {

    case NGX_MCP_APPLY_ANY:
        return ngx_mcp_validate_fail(v, value, "anyOf");

    case NGX_MCP_APPLY_ONE:
        return (n == 1) ? NGX_OK : ngx_mcp_validate_fail(v, value, "oneOf");

    default: /* NGX_MCP_APPLY_NOT */
        return (n == 0) ? NGX_OK : ngx_mcp_validate_fail(v, value, "not");
    }
}


static ngx_int_t
ngx_mcp_validate_if(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_node_t *node, ngx_mcp_json_t *value)
{
    ngx_int_t  rc;

    if (node->then == NULL && node->otherwise == NULL) {
        return NGX_OK;
    }

    rc = ngx_mcp_validate_quietly(v, scope, node->condition, value);

    if (rc == NGX_OK) {
        return node->then ? ngx_mcp_validate_node(v, scope, node->then, value,
                                                  "then")
                          : NGX_OK;
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return node->otherwise ? ngx_mcp_validate_node(v, scope, node->otherwise,
                                                   value, "else")
                           : NGX_OK;
}
