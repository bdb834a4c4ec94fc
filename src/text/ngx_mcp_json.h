
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The only JSON parser of the request path.  It validates a text once, without
 * recursion, and returns spans of it.  Nothing is copied or converted: numbers,
 * escapes and the order of keys stay as received.
 */


#ifndef _NGX_MCP_JSON_H_INCLUDED_
#define _NGX_MCP_JSON_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* maximum nesting of containers */
#define NGX_MCP_JSON_DEPTH   128

/* maximum nesting of a shape */
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

    /* the shape names the member, and the member is duplicate */
    NGX_MCP_JSON_DUPLICATE
} ngx_mcp_json_e;


typedef struct {
    ngx_str_t   text;       /* exact bytes, a string with its quotes */
    ngx_uint_t  type;       /* ngx_mcp_json_e */
} ngx_mcp_json_t;


/* a member to be found by ngx_mcp_json_members() */

typedef struct {
    ngx_str_t        name;
    ngx_mcp_json_t  *value;
} ngx_mcp_member_t;


/*
 * Members to be found while a text is parsed, so that the text is read only
 * once.  The list ends with an empty name.
 */

typedef struct ngx_mcp_shape_s  ngx_mcp_shape_t;

struct ngx_mcp_shape_s {
    ngx_str_t         name;
    size_t            value;      /* offset of an ngx_mcp_json_t from base */
    ngx_mcp_shape_t  *members;    /* members to be found in it, or NULL */
};


/* iterates over the members of an object or the elements of an array */

typedef struct {
    u_char     *pos;
    u_char     *end;
    ngx_uint_t  object;     /* unsigned  object:1; */
} ngx_mcp_json_iter_t;


/* NGX_OK, or NGX_DECLINED with an error message: the text is invalid */
ngx_int_t ngx_mcp_json_parse(ngx_str_t *text, ngx_mcp_json_t *value,
    const char **err);

/*
 * The same, and sets the values that the shape names.  The caller must have
 * set them to NGX_MCP_JSON_NONE before.  The type of a duplicate member
 * becomes NGX_MCP_JSON_DUPLICATE.
 */
ngx_int_t ngx_mcp_json_shape(ngx_str_t *text, ngx_mcp_json_t *value,
    ngx_mcp_shape_t *shape, void *base, const char **err);

/*
 * Returns the end of the character at p, which is not ASCII; NULL: invalid
 * UTF-8.
 */
u_char *ngx_mcp_json_utf8(u_char *p, u_char *end);

/* the functions below need values that come from the parser */

void ngx_mcp_json_iter(ngx_mcp_json_iter_t *it, ngx_mcp_json_t *value);

/* NGX_DONE after the last one; key may be NULL for an array */
ngx_int_t ngx_mcp_json_next(ngx_mcp_json_iter_t *it, ngx_mcp_json_t *key,
    ngx_mcp_json_t *value);

/*
 * Sets the values of members by name; the type is NGX_MCP_JSON_NONE if there
 * is no such member, or if the value is not an object.  NGX_DECLINED: one of
 * the members is duplicate.
 */
ngx_int_t ngx_mcp_json_members(ngx_mcp_json_t *object,
    ngx_mcp_member_t *members, ngx_uint_t n);

/*
 * Decodes the escapes of a string.  A string without escapes is not copied.
 * NGX_DECLINED: it has an escaped NUL or an unpaired surrogate; NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_mcp_json_string(ngx_pool_t *pool, ngx_mcp_json_t *value,
    ngx_str_t *s);

/*
 * Tells if a string, decoded, is equal to s.  A string with an escaped NUL or
 * an unpaired surrogate is equal to nothing.
 */
ngx_uint_t ngx_mcp_json_is(ngx_mcp_json_t *string, ngx_str_t *s);

/* 0: an empty object or array */
ngx_uint_t ngx_mcp_json_filled(ngx_mcp_json_t *value);

/*
 * NGX_DECLINED: not a number, has a fraction or an exponent, or more than 18
 * digits.
 */
ngx_int_t ngx_mcp_json_integer(ngx_mcp_json_t *value, int64_t *n);

/* NGX_DECLINED: not a number, beyond 1e300, or longer than 63 bytes */
ngx_int_t ngx_mcp_json_real(ngx_mcp_json_t *value, double *n);

/* returns the end of the value at p, of whatever type it is */
u_char *ngx_mcp_json_skip(u_char *p, u_char *end, ngx_uint_t *type);

/* returns the end of the string that begins at p */
u_char *ngx_mcp_json_skip_string(u_char *p, u_char *end);

/* returns the end of the escape at p; NULL: an unpaired surrogate */
u_char *ngx_mcp_json_code_point(u_char *p, u_char *end, uint32_t *code);


#endif /* _NGX_MCP_JSON_H_INCLUDED_ */
