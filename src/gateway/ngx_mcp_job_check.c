
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Checks what the upstream asks, and the error that requires URLs, which is a
 * question in the modern era.
 */


#include "ngx_mcp_job.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_question.h"


static ngx_int_t ngx_mcp_job_required(ngx_mcp_job_t *job,
    ngx_mcp_json_t *error);


/* NGX_ERROR: the failure is set, and what is wrong. */

ngx_int_t
ngx_mcp_job_check(ngx_mcp_job_t *job, ngx_uint_t kind, ngx_mcp_json_t *value)
{
    ngx_int_t            rc;
    ngx_str_t            text;
    ngx_mcp_out_t        out;
    ngx_mcp_mismatch_t   mismatch;

    rc = ngx_mcp_question_check(job->round_pool, kind, value, &mismatch);
    rc = ngx_mcp_mismatch_text(job->round_pool, rc, &mismatch, &text);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    job->failure = NGX_MCP_FAILED_BAD_QUESTION;
    ngx_str_null(&job->detail);

    if (rc == NGX_DECLINED) {
        ngx_mcp_out_init(&out, job->pool, text.len + 64);
        ngx_mcp_out_string(&out, &text);

        if (ngx_mcp_out_end(&out, &job->detail) != NGX_OK) {
            ngx_str_null(&job->detail);
        }
    }

    return NGX_ERROR;
}


/*
 * Responds to a question whose params are invalid.  The server learns what is
 * wrong, and its tool decides how the call continues.
 */

ngx_uint_t
ngx_mcp_job_refuses(ngx_mcp_job_t *job, ngx_str_t *id, ngx_str_t *request)
{
    ngx_int_t            rc;
    ngx_str_t            text, error;
    ngx_pool_t          *pool;
    ngx_mcp_out_t        out;
    ngx_mcp_json_t       question;
    ngx_mcp_mismatch_t   mismatch;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        job->invalid = 1;
        return 1;
    }

    question.type = NGX_MCP_JSON_OBJECT;
    question.text = *request;

    rc = ngx_mcp_question_check(pool, NGX_MCP_QUESTION_ONE, &question,
                                &mismatch);
    rc = ngx_mcp_mismatch_text(pool, rc, &mismatch, &text);

    if (rc == NGX_DECLINED) {
        ngx_mcp_out_init(&out, pool, text.len + 128);
        ngx_mcp_out_lit(&out, "{\"code\":-32602,\"message\":"
                              "\"Invalid params\",\"data\":{\"reason\":"
                              "\"invalid_question\",\"detail\":");
        ngx_mcp_out_string(&out, &text);
        ngx_mcp_out_lit(&out, "}}");

        if (ngx_mcp_out_end(&out, &error) == NGX_OK) {
            ngx_mcp_job_answer(job, id, "error", &error);

        } else {
            rc = NGX_ERROR;
        }
    }

    if (rc == NGX_ERROR) {
        job->invalid = 1;
    }

    ngx_destroy_pool(pool);

    return rc != NGX_OK;
}


/*
 * Handles an error.  The error that requires URLs is for legacy clients only:
 * a modern client is asked to open them, and the call is sent again.
 */

void
ngx_mcp_job_refused(ngx_mcp_job_t *job, ngx_mcp_json_t *error)
{
    if (!ngx_mcp_question_is_error(error)) {
        ngx_mcp_job_error(job, &error->text);
        return;
    }

    if (ngx_mcp_job_check(job, NGX_MCP_QUESTION_ERROR, error) != NGX_OK) {
        ngx_mcp_job_failed(job);
        return;
    }

    if (job->sender.era == NGX_MCP_LEGACY) {
        ngx_mcp_job_error(job, &error->text);
        return;
    }

    if (ngx_mcp_job_required(job, error) != NGX_OK) {
        ngx_mcp_job_not_asked(job, NGX_MCP_FAILED_NO_MEMORY);
    }
}


/*
 * Modern: the URLs of the error become the questions of this round.  NGX_ERROR:
 * no memory.
 */

static ngx_int_t
ngx_mcp_job_required(ngx_mcp_job_t *job, ngx_mcp_json_t *error)
{
    ngx_str_t            text;
    ngx_uint_t           i;
    ngx_mcp_out_t        out;
    ngx_mcp_json_t       requests;
    ngx_mcp_question_t  *q;

    ngx_mcp_out_init(&out, job->round_pool, error->text.len + 256);
    ngx_mcp_question_of_error(&out, error, job->round_trips);

    requests.type = NGX_MCP_JSON_OBJECT;

    if (ngx_mcp_out_end(&out, &requests.text) != NGX_OK) {
        return NGX_ERROR;
    }

    if (job->caller && job->asks) {

        /* "input=call": as a result of this era */

        ngx_mcp_out_init(&out, job->pool, requests.text.len + 64);
        ngx_mcp_out_lit(&out, "{\"resultType\":\"input_required\","
                              "\"inputRequests\":");
        ngx_mcp_question_modern(&out, &requests.text, NGX_MCP_CAN_ALL);
        ngx_mcp_out_lit(&out, "}");

        if (ngx_mcp_out_end(&out, &text) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_mcp_job_complete(job, &text, 0);
        return NGX_OK;
    }

    if (ngx_mcp_job_questions(job, &requests) != NGX_OK) {
        return NGX_ERROR;
    }

    q = job->questions.elts;

    for (i = 0; i < job->questions.nelts; i++) {
        q[i].required = 1;
    }

    ngx_mcp_job_round_ended(job);

    return NGX_OK;
}


/* Tells if the user has agreed to open the URL. */

ngx_uint_t
ngx_mcp_job_accepted(ngx_mcp_json_t *answer)
{
    ngx_mcp_json_t    action;
    ngx_mcp_member_t  members[] = {
        { ngx_string("action"), &action }
    };
    static ngx_str_t  accept = ngx_string("accept");

    return ngx_mcp_json_members(answer, members, 1) == NGX_OK
           && action.type == NGX_MCP_JSON_STRING
           && ngx_mcp_json_is(&action, &accept);
}
