
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Questions as the protocol defines them: elicitation by form or URL, sampling
 * and roots.  What a task asks is checked when it is asked; a question that a
 * store has loaded may be of any kind.
 */


#ifndef _NGX_MCP_QUESTION_H_INCLUDED_
#define _NGX_MCP_QUESTION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"
#include "ngx_mcp_out.h"
#include "ngx_mcp_schema.h"


/* the keyword of a mismatch: the text is not a URL that may be asked for */
#define NGX_MCP_QUESTION_URL  "format"


typedef enum {
    NGX_MCP_QUESTION_ONE = 0,    /* a question */
    NGX_MCP_QUESTION_ALL,        /* an object of questions */
    NGX_MCP_QUESTION_ERROR,      /* an error object of the code -32042 */

    NGX_MCP_QUESTION_KINDS
} ngx_mcp_question_e;


/*
 * Compiles the schemas of the questions into the pool, which must live until
 * they are compiled again.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_question_init(ngx_pool_t *pool);

/*
 * Checks a value of the kind.  NGX_OK, or as ngx_mcp_schema_validate() does:
 * NGX_DECLINED with the first mismatch, NGX_ABORT or NGX_ERROR.
 */
ngx_int_t ngx_mcp_question_check(ngx_pool_t *pool, ngx_uint_t kind,
    ngx_mcp_json_t *value, ngx_mcp_mismatch_t *mismatch);

/*
 * Tells if a URL is absolute, with the scheme https, or http on a loopback
 * host, and without user information.
 */
ngx_uint_t ngx_mcp_question_url(ngx_str_t *url);

/* Tells if a question asks to open a URL, and finds its params. */
ngx_uint_t ngx_mcp_question_is_url(ngx_mcp_json_t *question,
    ngx_mcp_json_t *params);

/* Tells if a JSON-RPC error object has the code -32042. */
ngx_uint_t ngx_mcp_question_is_error(ngx_mcp_json_t *error);

/*
 * Writes the URLs of an error object that has been checked as questions.  The
 * keys have the number, which must be another one for each error of a task.
 */
void ngx_mcp_question_of_error(ngx_mcp_out_t *out, ngx_mcp_json_t *error,
    uint64_t n);

/*
 * Writes an object of questions without the ids that only legacy has: those
 * that a client with these capabilities can answer, a mask of NGX_MCP_CAN_*.
 * MCP forbids to send others; an operator or a user of REST may answer these.
 */
void ngx_mcp_question_modern(ngx_mcp_out_t *out, ngx_str_t *requests,
    ngx_uint_t can);


#endif /* _NGX_MCP_QUESTION_H_INCLUDED_ */
