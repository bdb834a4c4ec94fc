
/*
 * The one JSON scanner of the request path.  It checks a text once, without
 * recursion, and hands out spans of it; nothing is copied or converted, so
 * that numbers, escapes and the order of keys survive as they came.
 */


#ifndef _NGX_MCP_JSON_H_INCLUDED_
#define _NGX_MCP_JSON_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_MCP_JSON_DEPTH   128

/* how deep a shape may be */
#define NGX_MCP_JSON_SHAPES  8


typedef enum {
    NGX_MCP_JSON_NONE = 0,
    NGX_MCP_JSON_NULL,
    NGX_MCP_JSON_FALSE,
    NGX_MCP_JSON_TRUE,
    NGX_MCP_JSON_NUMBER,
    NGX_MCP_JSON_STRING,
    NGX_MCP_JSON_ARRAY,
    NGX_MCP_JSON_OBJECT,

    /* a member that the shape names stands there more than once */
    NGX_MCP_JSON_TWICE
} ngx_mcp_json_e;


/* a value: its exact bytes, with the quotes of a string, without space */

typedef struct {
    ngx_str_t   text;
    ngx_uint_t  type;
} ngx_mcp_json_t;


/* a member that is looked for */

typedef struct {
    ngx_str_t        name;
    ngx_mcp_json_t  *value;
} ngx_mcp_member_t;


/*
 * The same for what is looked for while a text is parsed: no part of it has to
 * be skipped again.  The list ends with an empty name.
 */

typedef struct ngx_mcp_shape_s  ngx_mcp_shape_t;

struct ngx_mcp_shape_s {
    ngx_str_t         name;
    size_t            value;      /* its offset from a base */
    ngx_mcp_shape_t  *members;    /* if it is an object; or NULL */
};


/* walks over the members of an object or the elements of an array */

typedef struct {
    u_char     *pos;
    u_char     *end;
    ngx_uint_t  object;     /* unsigned  object:1; */
} ngx_mcp_json_iter_t;


/* NGX_OK, or NGX_DECLINED with the reason why it is no JSON */
ngx_int_t ngx_mcp_json_parse(ngx_str_t *text, ngx_mcp_json_t *value,
    const char **err);

/* the same; values that the shape names must be NONE, and are filled in */
ngx_int_t ngx_mcp_json_shape(ngx_str_t *text, ngx_mcp_json_t *value,
    ngx_mcp_shape_t *shape, void *base, const char **err);

/* past a character that is not ASCII; NULL: it is none */
u_char *ngx_mcp_json_utf8(u_char *p, u_char *end);

/* what follows is for values that were parsed */

void ngx_mcp_json_iter(ngx_mcp_json_iter_t *it, ngx_mcp_json_t *value);
ngx_int_t ngx_mcp_json_next(ngx_mcp_json_iter_t *it, ngx_mcp_json_t *key,
    ngx_mcp_json_t *value);

/* NGX_OK, or NGX_DECLINED: a member that is looked for stands there twice */
ngx_int_t ngx_mcp_json_members(ngx_mcp_json_t *object,
    ngx_mcp_member_t *members, ngx_uint_t n);

/* NGX_DECLINED: the string cannot be written as UTF-8, or has a NUL in it */
ngx_int_t ngx_mcp_json_string(ngx_pool_t *pool, ngx_mcp_json_t *value,
    ngx_str_t *s);
ngx_uint_t ngx_mcp_json_is(ngx_mcp_json_t *string, ngx_str_t *s);
ngx_uint_t ngx_mcp_json_filled(ngx_mcp_json_t *value);
ngx_int_t ngx_mcp_json_integer(ngx_mcp_json_t *value, int64_t *n);
ngx_int_t ngx_mcp_json_real(ngx_mcp_json_t *value, double *n);

/* past a value, of whatever type it is */
u_char *ngx_mcp_json_skip(u_char *p, u_char *end, ngx_uint_t *type);

/* past a string, an escape; NULL: half of a surrogate pair */
u_char *ngx_mcp_json_skip_string(u_char *p, u_char *end);
u_char *ngx_mcp_json_code_point(u_char *p, u_char *end, uint32_t *code);


#endif /* _NGX_MCP_JSON_H_INCLUDED_ */
