
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The questions that a client has declared to answer, and what a question
 * needs: a client is asked only in ways that it declared.
 */


#ifndef _NGX_MCP_CAPABILITY_H_INCLUDED_
#define _NGX_MCP_CAPABILITY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


/*
 * A mask of what a client can answer.  Session ids carry it, so the numbers
 * must not change.
 */
#define NGX_MCP_CAN_FORM      0x01    /* elicitation in form mode */
#define NGX_MCP_CAN_URL       0x02    /* elicitation in URL mode */
#define NGX_MCP_CAN_SAMPLING  0x04
#define NGX_MCP_CAN_TOOLS     0x08    /* sampling with tools */
#define NGX_MCP_CAN_ROOTS     0x10

#define NGX_MCP_CAN_ALL       0x1f


/*
 * The mask of members of a client's capabilities.  If modes is 0, the revision
 * has neither modes of elicitation nor sampling with tools.
 */
ngx_uint_t ngx_mcp_can(ngx_mcp_json_t *elicitation, ngx_mcp_json_t *sampling,
    ngx_mcp_json_t *roots, ngx_uint_t modes);

/* the bits that a client must have to be asked this question; 0: none */
ngx_uint_t ngx_mcp_question_needs(ngx_mcp_json_t *question);

/* the bits that any of these questions needs */
ngx_uint_t ngx_mcp_questions_need(ngx_str_t *requests);

/* whether a client can answer the question, or at least one of the questions */
#define ngx_mcp_question_is_for(question, can)                                \
    ((ngx_mcp_question_needs(question) & ~(can)) == 0)
ngx_uint_t ngx_mcp_questions_any(ngx_str_t *requests, ngx_uint_t can);

/*
 * The first of the bits as a member of a client's capabilities; NULL: there
 * are none
 */
const char *ngx_mcp_can_text(ngx_uint_t bits);


#endif /* _NGX_MCP_CAPABILITY_H_INCLUDED_ */
