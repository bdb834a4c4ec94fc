
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Questions and answers of a task: both are JSON objects with the same keys.
 * The record keeps the questions that are still open, and all answers.
 */


#ifndef _NGX_MCP_INPUT_H_INCLUDED_
#define _NGX_MCP_INPUT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/* open at once: each is compared with all answers */
#define NGX_MCP_MAX_QUESTIONS  64


/* members are compared with each other, so there must not be too many */
#define NGX_MCP_MAX_METADATA  65536
#define NGX_MCP_MAX_MEMBERS   64


typedef struct {
    ngx_str_t   requests;   /* what is left, may be empty */
    ngx_str_t   responses;
    ngx_uint_t  taken;
    ngx_uint_t  left;
} ngx_mcp_merge_t;


/* NULL, or what is wrong with new questions, given the answers so far */
const char *ngx_mcp_input_check(ngx_mcp_json_t *requests,
    ngx_str_t *responses);

ngx_int_t ngx_mcp_input_add_answers(ngx_pool_t *pool, ngx_str_t *requests,
    ngx_str_t *responses, ngx_mcp_json_t *answers, ngx_mcp_merge_t *merge);

/* without that one; taken says whether it was there */
ngx_int_t ngx_mcp_input_drop(ngx_pool_t *pool, ngx_str_t *requests,
    ngx_mcp_json_t *key, ngx_mcp_merge_t *merge);

/* the answer with that key; 0: there is none */
ngx_uint_t ngx_mcp_input_answer(ngx_str_t *responses, ngx_str_t *key,
    ngx_mcp_json_t *answer);

/* NULL, or what is wrong with answers, an object, whatever the questions */
const char *ngx_mcp_input_answers(ngx_pool_t *pool, ngx_mcp_json_t *answers);

/* NULL, or what is wrong with it as metadata; NONE is none */
const char *ngx_mcp_input_metadata(ngx_pool_t *pool,
    ngx_mcp_json_t *metadata);

/* NULL, or in which way an object is too much for metadata */
const char *ngx_mcp_input_size(ngx_mcp_json_t *metadata);

/*
 * New members replace old ones; null removes, as in RFC 7396, at the top.
 * NGX_DECLINED: it would become more than metadata may be.
 */
ngx_int_t ngx_mcp_input_patch(ngx_pool_t *pool, ngx_str_t *old,
    ngx_mcp_json_t *patch, ngx_str_t *result);


#endif /* _NGX_MCP_INPUT_H_INCLUDED_ */
