
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Questions, answers and metadata of a task.  Questions and answers are JSON
 * objects with the same keys.  A task keeps the questions that are still open
 * and all answers received so far.  An empty text is an empty object.
 */


#ifndef _NGX_MCP_INPUT_H_INCLUDED_
#define _NGX_MCP_INPUT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/* maximum number of open questions: each is compared with all answers */
#define NGX_MCP_MAX_QUESTIONS  64


/* limits of metadata, bytes and members: members are compared in pairs */
#define NGX_MCP_MAX_METADATA  65536
#define NGX_MCP_MAX_MEMBERS   64


typedef struct {
    ngx_str_t   requests;   /* open questions, empty if there are none */
    ngx_str_t   responses;  /* all answers; not set by input_drop() */
    ngx_uint_t  taken;      /* questions answered or dropped by this call */
    ngx_uint_t  left;       /* questions still open */
} ngx_mcp_input_change_t;


/*
 * Checks new questions against the answers received so far.  Returns NULL or
 * an error message.
 */
const char *ngx_mcp_input_check(ngx_mcp_json_t *requests,
    ngx_str_t *responses);

/*
 * Adds the answers to open questions to the responses, and removes these
 * questions; answers without an open question are ignored.  NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_mcp_input_add_answers(ngx_pool_t *pool, ngx_str_t *requests,
    ngx_str_t *responses, ngx_mcp_json_t *answers,
    ngx_mcp_input_change_t *input);

/*
 * Removes a question; input->taken is 0 if it was not open.  NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_mcp_input_drop(ngx_pool_t *pool, ngx_str_t *requests,
    ngx_mcp_json_t *key, ngx_mcp_input_change_t *input);

/*
 * Finds the answer with a key, which is JSON text with the quotes.  Returns 0
 * if there is none.
 */
ngx_uint_t ngx_mcp_input_answer(ngx_str_t *responses, ngx_str_t *key,
    ngx_mcp_json_t *answer);

/*
 * Checks an object of answers without looking at the questions.  Returns NULL
 * or an error message.
 */
const char *ngx_mcp_input_answers(ngx_pool_t *pool, ngx_mcp_json_t *answers);

/*
 * Checks type, size and keys of metadata; NGX_MCP_JSON_NONE is valid.  Returns
 * NULL or an error message.
 */
const char *ngx_mcp_input_metadata(ngx_pool_t *pool,
    ngx_mcp_json_t *metadata);

/* Checks an object against the limits.  Returns NULL or an error message. */
const char *ngx_mcp_input_size(ngx_mcp_json_t *metadata);

/*
 * Applies a merge patch (RFC 7396) to the top level of metadata: a member
 * replaces the one with the same key, null removes it.  NGX_DECLINED: the
 * result exceeds the limits of metadata; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_input_patch(ngx_pool_t *pool, ngx_str_t *old,
    ngx_mcp_json_t *patch, ngx_str_t *result);


#endif /* _NGX_MCP_INPUT_H_INCLUDED_ */
