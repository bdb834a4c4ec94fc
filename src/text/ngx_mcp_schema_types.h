
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A compiled schema.  Each subschema is a node; what it says about one type of
 * values is kept apart, so that nothing is looked at for other types.
 */


#ifndef _NGX_MCP_SCHEMA_TYPES_H_INCLUDED_
#define _NGX_MCP_SCHEMA_TYPES_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_number.h"


#define ngx_mcp_type_bit(type)  ((ngx_uint_t) 1 << (type))

/* beside the bits of ngx_mcp_json_e */
#define NGX_MCP_TYPE_INTEGER    ngx_mcp_type_bit(16)
#define NGX_MCP_TYPE_ANY        0xffff

/* bytes that are one step */
#define NGX_MCP_VALIDATE_STEP   16


/* over the space between tokens of a text that was parsed */
#define ngx_mcp_skip_space(p)  while (*(p) <= ' ') { (p)++; }


typedef struct ngx_mcp_node_s      ngx_mcp_node_t;
typedef struct ngx_mcp_resource_s  ngx_mcp_resource_t;


/* a value of "enum" or "const" */

typedef struct {
    ngx_mcp_json_t  value;
    uint64_t        hash;
} ngx_mcp_constant_t;


typedef enum {
    NGX_MCP_MINIMUM = 0,
    NGX_MCP_MAXIMUM,
    NGX_MCP_EXCLUSIVE_MINIMUM,
    NGX_MCP_EXCLUSIVE_MAXIMUM,
    NGX_MCP_LIMITS
} ngx_mcp_limit_e;


typedef struct {
    ngx_uint_t         set;                     /* bits of limits */
    ngx_mcp_decimal_t  limit[NGX_MCP_LIMITS];
    int64_t            min;                     /* as far as they are plain */
    int64_t            max;
    ngx_uint_t         plain;                   /* all of them are */
    ngx_mcp_divisor_t  multiple_of;             /* 0 digits: none */
} ngx_mcp_number_rules_t;


typedef struct {
    size_t             min;
    size_t             max;
    void              *pattern;
} ngx_mcp_string_rules_t;


typedef struct {
    ngx_array_t       *prefix;                  /* of ngx_mcp_node_t * */
    ngx_mcp_node_t    *items;
    ngx_mcp_node_t    *contains;
    size_t             min_contains;
    size_t             max_contains;
    size_t             min;
    size_t             max;
    ngx_uint_t         unique;
} ngx_mcp_array_rules_t;


/* a name that the schema knows, for whatever reason */

typedef struct {
    ngx_str_t          name;
    ngx_uint_t         plain;       /* without a backslash */
    ngx_mcp_node_t    *node;        /* of "properties" */
    ngx_uint_t         required;
    ngx_array_t       *requires;    /* indexes of "dependentRequired" */
    ngx_mcp_node_t    *dependent;   /* of "dependentSchemas" */
} ngx_mcp_property_t;


typedef struct {
    void              *regex;
    ngx_mcp_node_t    *node;
} ngx_mcp_named_t;


typedef struct {
    ngx_array_t        properties;  /* of ngx_mcp_property_t */
    uint32_t          *table;       /* indexes plus 1, by hash of the name */
    uint32_t           mask;
    ngx_array_t       *patterns;    /* of ngx_mcp_named_t */
    ngx_mcp_node_t    *additional;
    ngx_mcp_node_t    *names;
    size_t             min;
    size_t             max;
} ngx_mcp_object_rules_t;


typedef enum {
    NGX_MCP_APPLY_REF = 0,
    NGX_MCP_APPLY_DYNAMIC,
    NGX_MCP_APPLY_ALL,
    NGX_MCP_APPLY_ANY,
    NGX_MCP_APPLY_ONE,
    NGX_MCP_APPLY_NOT
} ngx_mcp_apply_e;


/* a keyword that applies schemas to the value itself */

typedef struct {
    ngx_uint_t         kind;
    ngx_mcp_node_t    *node;        /* of a reference */
    ngx_str_t          anchor;      /* of a dynamic one */
    ngx_array_t       *nodes;       /* of ngx_mcp_node_t * */
} ngx_mcp_apply_t;


/* schemas that have no keywords but these can be checked at once */

typedef enum {
    NGX_MCP_QUICK_NOT = 0,
    NGX_MCP_QUICK_TYPE,
    NGX_MCP_QUICK_NUMBER,           /* and limits */
    NGX_MCP_QUICK_STRING,           /* and lengths */
    NGX_MCP_QUICK_ENUM              /* and nothing but constants */
} ngx_mcp_quick_e;


struct ngx_mcp_node_s {
    ngx_uint_t               types;
    unsigned                 never:1;     /* the schema is false */
    unsigned                 simple:1;    /* nothing but types */
    unsigned                 quick:3;     /* ngx_mcp_quick_e */
    unsigned                 entered:1;   /* while loops are looked for */
    unsigned                 checked:1;

    u_char                  *text;        /* where it is; no two share it */
    ngx_mcp_resource_t      *resource;

    ngx_array_t             *constant;    /* of ngx_mcp_constant_t */
    ngx_array_t             *enumeration;

    ngx_mcp_number_rules_t  *number;
    ngx_mcp_string_rules_t  *string;
    ngx_mcp_array_rules_t   *array;
    ngx_mcp_object_rules_t  *object;

    ngx_array_t             *apply;       /* of ngx_mcp_apply_t */
    ngx_mcp_node_t          *only;        /* it is a reference to this */
    ngx_mcp_node_t          *condition;   /* of "if" */
    ngx_mcp_node_t          *then;
    ngx_mcp_node_t          *otherwise;

    ngx_mcp_node_t          *unevaluated_items;
    ngx_mcp_node_t          *unevaluated_properties;
};


/* a name of a subschema within its resource */

typedef struct {
    ngx_str_t                name;
    ngx_mcp_node_t          *node;
    ngx_uint_t               dynamic;
} ngx_mcp_anchor_t;


/* a schema with a URI of its own */

struct ngx_mcp_resource_s {
    ngx_str_t                uri;         /* without fragment */
    ngx_mcp_json_t           text;
    ngx_array_t              anchors;     /* of ngx_mcp_anchor_t */
};


struct ngx_mcp_schema_s {
    ngx_mcp_node_t          *root;
    ngx_mcp_schema_regex_t  *regex;
};


/* which struct a keyword is kept in */

typedef enum {
    NGX_MCP_IN_NODE = 0,
    NGX_MCP_IN_NUMBER,
    NGX_MCP_IN_STRING,
    NGX_MCP_IN_ARRAY,
    NGX_MCP_IN_OBJECT
} ngx_mcp_rules_e;


/* a reference that is resolved when all subschemas are known */

typedef struct {
    ngx_mcp_node_t          *node;        /* that has it */
    ngx_uint_t               index;       /* in node->apply */
    ngx_str_t                uri;
    u_char                  *where;
} ngx_mcp_reference_t;


typedef struct {
    ngx_pool_t              *pool;
    ngx_mcp_json_t          *text;
    ngx_mcp_schema_regex_t  *regex;
    ngx_str_t               *err;
    ngx_array_t              nodes;       /* of ngx_mcp_node_t * */
    ngx_array_t              resources;   /* of ngx_mcp_resource_t * */
    ngx_array_t              references;  /* of ngx_mcp_reference_t */
} ngx_mcp_compile_t;


/* the resources that a validation has come through */

typedef struct ngx_mcp_scope_s  ngx_mcp_scope_t;

struct ngx_mcp_scope_s {
    ngx_mcp_scope_t         *outer;
    ngx_mcp_resource_t      *resource;
};


typedef struct {
    ngx_mcp_schema_t        *schema;
    ngx_pool_t              *pool;
    ngx_pool_t              *temp;        /* made when it is needed */
    u_char                  *end;         /* of the whole value */
    int64_t                  steps;
    ngx_uint_t               depth;
    ngx_uint_t               quiet;       /* a mismatch is not the end */

    /* of a mismatch */
    u_char                  *where;
    const char              *keyword;
    ngx_str_t                name;
} ngx_mcp_validation_t;


/* ngx_mcp_schema.c */

/* NULL: the error is set; a schema that is compiled already is found again */
ngx_mcp_node_t *ngx_mcp_schema_node(ngx_mcp_compile_t *c,
    ngx_mcp_json_t *text, ngx_mcp_resource_t *resource);

/* returns NGX_DECLINED, or NGX_ERROR */
ngx_int_t ngx_mcp_schema_error(ngx_mcp_compile_t *c, u_char *where,
    const char *what);

/* these return NULL, or NGX_ERROR, as well if the error is set */
ngx_int_t ngx_mcp_schema_table(ngx_mcp_compile_t *c,
    ngx_mcp_object_rules_t *object);
void *ngx_mcp_schema_rules(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_uint_t rules);
ngx_int_t ngx_mcp_schema_property(ngx_mcp_compile_t *c,
    ngx_mcp_object_rules_t *object, ngx_mcp_json_t *name);
void *ngx_mcp_schema_pattern(ngx_mcp_compile_t *c, ngx_mcp_json_t *pattern);

/* ngx_mcp_schema_keywords.c: all of a schema that is an object */

ngx_int_t ngx_mcp_schema_keywords(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_mcp_json_t *text);

/* ngx_mcp_schema_ref.c */

ngx_mcp_resource_t *ngx_mcp_schema_resource(ngx_mcp_compile_t *c,
    ngx_mcp_json_t *text, ngx_mcp_json_t *id, ngx_mcp_resource_t *base);
ngx_int_t ngx_mcp_schema_anchor(ngx_mcp_compile_t *c, ngx_mcp_node_t *node,
    ngx_str_t *name, ngx_uint_t dynamic);
ngx_mcp_anchor_t *ngx_mcp_schema_anchor_find(ngx_mcp_resource_t *resource,
    ngx_str_t *name);
ngx_int_t ngx_mcp_schema_resolve(ngx_mcp_compile_t *c);

/* NGX_DECLINED: a schema applies itself to the same value without end */
ngx_int_t ngx_mcp_schema_loops(ngx_mcp_compile_t *c);

/*
 * ngx_mcp_validate.c: values of these have no length yet if they are arrays or
 * objects, and get one as soon as it is known
 */

ngx_int_t ngx_mcp_validate_node(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_node_t *node, ngx_mcp_json_t *value,
    const char *keyword);
ngx_int_t ngx_mcp_validate_fail(ngx_mcp_validation_t *v,
    ngx_mcp_json_t *value, const char *keyword);
ngx_int_t ngx_mcp_validate_quietly(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_node_t *node, ngx_mcp_json_t *value);
ngx_mcp_node_t *ngx_mcp_validate_target(ngx_mcp_scope_t *scope,
    ngx_mcp_apply_t *apply);
ngx_int_t ngx_mcp_validate_match(ngx_mcp_validation_t *v, void *regex,
    ngx_str_t *s);
ngx_int_t ngx_mcp_validate_name(ngx_mcp_validation_t *v, ngx_mcp_json_t *key,
    ngx_str_t *name);
ngx_pool_t *ngx_mcp_validate_pool(ngx_mcp_validation_t *v);
void ngx_mcp_validate_at(ngx_mcp_validation_t *v, u_char *p,
    ngx_mcp_json_t *value);
u_char *ngx_mcp_validate_after(ngx_mcp_validation_t *v, ngx_mcp_json_t *value);

/* whether it certainly matches, as most values do */
ngx_uint_t ngx_mcp_validate_quick(ngx_mcp_node_t *node, ngx_mcp_json_t *value);

#define ngx_mcp_validate_end(v, value)                                        \
    ((value)->text.len ? (value)->text.data + (value)->text.len               \
                       : ngx_mcp_validate_after(v, value))

/*
 * The place after an item or a member, and after the comma.  It takes a step,
 * of which there may be too few.
 */

static ngx_inline u_char *
ngx_mcp_validate_next(ngx_mcp_validation_t *v, ngx_mcp_json_t *value)
{
    u_char  *p;

    v->steps--;
    p = ngx_mcp_validate_end(v, value);

    ngx_mcp_skip_space(p);

    if (*p == ',') {
        p++;
        ngx_mcp_skip_space(p);
    }

    return p;
}


/* ngx_mcp_validate_object.c */

ngx_int_t ngx_mcp_validate_object(ngx_mcp_validation_t *v,
    ngx_mcp_scope_t *scope, ngx_mcp_object_rules_t *object,
    ngx_mcp_json_t *value);
ngx_int_t ngx_mcp_validate_property(ngx_mcp_object_rules_t *object,
    ngx_str_t *name);

/* ngx_mcp_unevaluated.c */

ngx_int_t ngx_mcp_unevaluated(ngx_mcp_validation_t *v, ngx_mcp_scope_t *scope,
    ngx_mcp_node_t *node, ngx_mcp_json_t *value);

/* ngx_mcp_value.c */

/* each takes steps, which become negative if there are too few */
uint64_t ngx_mcp_value_hash(ngx_mcp_json_t *value, int64_t *steps);
ngx_uint_t ngx_mcp_value_equal(ngx_mcp_json_t *a, ngx_mcp_json_t *b,
    int64_t *steps);

/* as UTF-8, with halves of surrogate pairs replaced; may have a NUL in it */
ngx_int_t ngx_mcp_value_string(ngx_pool_t *pool, ngx_mcp_json_t *value,
    ngx_str_t *s);

/* the JSON pointer to what is at a place in the text of a value */
ngx_int_t ngx_mcp_value_pointer(ngx_pool_t *pool, ngx_mcp_json_t *root,
    u_char *where, ngx_str_t *pointer);


/* a hash of a name, for the tables of properties */

static ngx_inline uint32_t
ngx_mcp_name_hash(u_char *p, size_t len)
{
    uint32_t  hash;

    for (hash = 2166136261u; len; len--) {
        hash = (hash ^ *p++) * 16777619;
    }

    return hash ^ hash >> 15;
}


#endif /* _NGX_MCP_SCHEMA_TYPES_H_INCLUDED_ */
