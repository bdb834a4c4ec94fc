
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Calls with several round trips, in the modern era.  If a tool asks before its
 * call has become a task, the response to the call is the questions, and the
 * client calls again with the answers.  Between the round trips there is a task
 * in state input_required as usual, but the client does not know it.
 *
 * The requestState that the client sends back identifies the task.  It is
 * sealed for the owner, the tool and the version of the task.  So a client can
 * neither forge it, nor use it for another owner or tool, nor use it after the
 * questions were answered.
 */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_input.h"
#include "ngx_mcp_question.h"


typedef struct {
    u_char          id[NGX_MCP_ID_LEN];
    uint64_t        version;
    ngx_mcp_seal_t  seal;
} ngx_mcp_request_state_t;


static const char *ngx_mcp_input_responses(ngx_pool_t *pool,
    ngx_mcp_json_t *responses);
static ngx_int_t ngx_mcp_request_state_open(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_resumed_call_t *resumed);
static void ngx_mcp_request_state_seal(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_request_state_t *state, ngx_mcp_seal_t *seal);


/* NGX_DECLINED: the request is valid; any other value finalizes it */

ngx_int_t
ngx_mcp_request_state_parse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_resumed_call_t *resumed)
{
    const char        *err;
    ngx_mcp_member_t   members[] = {
        { ngx_string("inputResponses"), &resumed->responses },
        { ngx_string("requestState"), &resumed->state }
    };

    if (ngx_mcp_members(ctx, members, 2) != NGX_OK) {
        return ngx_mcp_duplicate(r, ctx);
    }

    err = ngx_mcp_input_responses(r->pool, &resumed->responses);

    if (err) {
        return ngx_mcp_invalid(r, ctx, NGX_HTTP_OK, err);
    }

    if (resumed->state.type != NGX_MCP_JSON_NONE
        && ngx_mcp_request_state_open(r, ctx, resumed) != NGX_OK)
    {
        return ngx_mcp_request_state_invalid(r, ctx);
    }

    return NGX_DECLINED;
}


/* forged, of another owner, or used before: the error does not say which */

ngx_int_t
ngx_mcp_request_state_invalid(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    static ngx_str_t  data = ngx_string(
                                   "{\"reason\":\"invalid_request_state\"}");

    return ngx_mcp_error(r, ctx, NGX_HTTP_OK, NGX_MCP_RPC_INVALID_PARAMS,
                         "Invalid params: requestState is unknown, was already "
                         "used, or is for another owner or tool", &data);
}


static const char *
ngx_mcp_input_responses(ngx_pool_t *pool, ngx_mcp_json_t *responses)
{
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;

    if (responses->type == NGX_MCP_JSON_NONE) {
        return NULL;
    }

    if (responses->type != NGX_MCP_JSON_OBJECT) {
        return "inputResponses must be an object";
    }

    ngx_mcp_json_iter(&it, responses);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {
        if (value.type != NGX_MCP_JSON_OBJECT) {
            return "each member of inputResponses must be an object";
        }
    }

    return ngx_mcp_input_answers(pool, responses);
}


/* verifies the seal; sets the id and the version */

static ngx_int_t
ngx_mcp_request_state_open(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_resumed_call_t *resumed)
{
    ngx_str_t                text;
    ngx_mcp_seal_t           seal;
    ngx_mcp_request_state_t  state;

    if (resumed->state.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &resumed->state, &text)
           != NGX_OK
        || text.len != 2 * sizeof(ngx_mcp_request_state_t)
        || ngx_mcp_unhex((u_char *) &state, text.data,
                         sizeof(ngx_mcp_request_state_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_mcp_request_state_seal(r, ctx, &state, &seal);

    if (!ngx_mcp_seal_equal(&seal, &state.seal)) {
        return NGX_ERROR;
    }

    ngx_memcpy(&resumed->id, state.id, NGX_MCP_ID_LEN);
    resumed->version = state.version;

    return NGX_OK;
}


static void
ngx_mcp_request_state_seal(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_request_state_t *state, ngx_mcp_seal_t *seal)
{
    ngx_mcp_loc_conf_t  *lcf;
    struct {
        uint64_t         tool[2];
        u_char           id[NGX_MCP_ID_LEN];
        uint64_t         version;
    } data;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ngx_mcp_siphash128(data.tool, lcf->zone->secret, ctx->tool.data,
                       ctx->tool.len);
    ngx_memcpy(data.id, state->id, NGX_MCP_ID_LEN);
    data.version = state->version;

    ngx_mcp_seal(seal, lcf->zone->secret, NGX_MCP_SEAL_REQUEST_STATE,
                 &ctx->owner, &data, sizeof(data));
}


/* sends the questions as the response to the call */

ngx_int_t
ngx_mcp_request_state_ask(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_view_t *v)
{
    u_char                   text[2 * sizeof(ngx_mcp_request_state_t)];
    ngx_str_t               *requests;
    ngx_mcp_out_t            out;
    ngx_mcp_request_state_t  state;

    requests = &v->payload[NGX_MCP_REQUESTS];

    ngx_memcpy(state.id, &v->id, NGX_MCP_ID_LEN);
    state.version = v->task.version;
    ngx_mcp_request_state_seal(r, ctx, &state, &state.seal);

    (void) ngx_hex_dump(text, (u_char *) &state, sizeof(state));

    ngx_mcp_out_answer(&out, r, ctx, requests->len + 384);
    ngx_mcp_out_lit(&out, "{\"resultType\":\"input_required\","
                    NGX_MCP_SERVER_META ",\"inputRequests\":");
    ngx_mcp_question_modern(&out, requests, ctx->can);
    ngx_mcp_out_lit(&out, ",\"requestState\":\"");
    ngx_mcp_out_add(&out, text, sizeof(text));
    ngx_mcp_out_lit(&out, "\"}");

    return ngx_mcp_out_result(r, &out);
}


/*
 * The first capability that a question needs and that the client has not
 * declared, as a member of the client's capabilities; NULL: none.
 */

const char *
ngx_mcp_request_state_missing(ngx_mcp_ctx_t *ctx, ngx_mcp_view_t *v)
{
    ngx_uint_t  needs;

    needs = ngx_mcp_questions_need(&v->payload[NGX_MCP_REQUESTS]);

    return ngx_mcp_can_text(needs & ~ctx->can);
}
