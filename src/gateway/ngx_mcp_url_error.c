
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * What a modern client receives instead of the error that requires URLs, which
 * MCP 2026-07-28 forbids to send: a request for input, or another error.
 */


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_filter.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_question.h"


static ngx_uint_t ngx_mcp_url_error_named(ngx_str_t *message);
static ngx_uint_t ngx_mcp_url_error_find(ngx_mcp_json_t *message,
    ngx_mcp_json_t *id, ngx_mcp_json_t *error);
static ngx_uint_t ngx_mcp_url_error_is(ngx_mcp_json_t *error);
static ngx_uint_t ngx_mcp_url_error_asks(ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_url_error_question(ngx_mcp_url_error_t *e,
    ngx_mcp_json_t *error);
static ngx_int_t ngx_mcp_url_error_ask(ngx_mcp_url_error_t *e,
    ngx_mcp_json_t *error);
static ngx_int_t ngx_mcp_url_error_failed(ngx_mcp_url_error_t *e,
    const char *reason, const char *message, ngx_str_t *detail);
static void ngx_mcp_url_error_begin(ngx_mcp_out_t *out, ngx_mcp_json_t *id,
    const char *member);


ngx_int_t
ngx_mcp_url_error(ngx_mcp_url_error_t *e, ngx_str_t *text)
{
    ngx_str_t        message;
    const char      *err;
    ngx_mcp_out_t    out;
    ngx_mcp_json_t   json, id, error;

    e->status = NGX_HTTP_OK;

    if (text == NULL) {
        return ngx_mcp_url_error_failed(e, "upstream_question",
                                        NGX_MCP_BAD_QUESTION, NULL);
    }

    message = *text;

    if (!ngx_mcp_url_error_named(&message)) {
        return NGX_DECLINED;
    }

    if (message.len >= 3 && ngx_memcmp(message.data, "\xef\xbb\xbf", 3) == 0) {
        message.data += 3;
        message.len -= 3;
    }

    if (ngx_mcp_json_parse(&message, &json, &err) != NGX_OK) {
        /* a client might be able to read it all the same */
        return ngx_mcp_url_error_failed(e, "upstream_invalid",
                                        NGX_MCP_BAD_RESPONSE, NULL);
    }

    if (!ngx_mcp_url_error_find(&json, &id, &error)) {
        return NGX_DECLINED;
    }

    if (ngx_mcp_rpc_same_id(&id, &e->ctx->rpc.id)
        && ngx_mcp_url_error_asks(e->ctx))
    {
        return ngx_mcp_url_error_question(e, &error);
    }

    e->ctx->error = NGX_MCP_RPC_TASK_FAILED;

    ngx_mcp_out_init(&out, e->pool, text->len + 128);
    ngx_mcp_url_error_begin(&out, &id, "error");
    ngx_mcp_render_url_required(&out, &error);
    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_end(&out, &e->text);
}


/* Most errors do not have these digits at all, and need not be parsed. */

static ngx_uint_t
ngx_mcp_url_error_named(ngx_str_t *message)
{
    u_char  *p, *end;

    p = message->data;
    end = p + message->len;

    for ( /* void */ ; end - p >= 5; p++) {

        p = memchr(p, '3', end - p - 4);
        if (p == NULL) {
            return 0;
        }

        if (ngx_memcmp(p, "32042", 5) == 0) {
            return 1;
        }
    }

    return 0;
}


/*
 * Finds an error of that code.  Of duplicate members any counts, since it is
 * not known which of them the client would read.
 */

static ngx_uint_t
ngx_mcp_url_error_find(ngx_mcp_json_t *message, ngx_mcp_json_t *id,
    ngx_mcp_json_t *error)
{
    ngx_uint_t           found;
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;
    static ngx_str_t     id_name = ngx_string("id");
    static ngx_str_t     error_name = ngx_string("error");

    found = 0;
    id->type = NGX_MCP_JSON_NONE;
    ngx_str_null(&id->text);

    if (message->type != NGX_MCP_JSON_OBJECT) {
        return 0;
    }

    ngx_mcp_json_iter(&it, message);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (ngx_mcp_json_is(&key, &id_name)) {
            *id = value;

        } else if (ngx_mcp_json_is(&key, &error_name)
                   && ngx_mcp_url_error_is(&value))
        {
            *error = value;
            found = 1;
        }
    }

    return found;
}


static ngx_uint_t
ngx_mcp_url_error_is(ngx_mcp_json_t *error)
{
    double               code;
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;
    static ngx_str_t     code_name = ngx_string("code");

    if (error->type != NGX_MCP_JSON_OBJECT) {
        return 0;
    }

    ngx_mcp_json_iter(&it, error);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (ngx_mcp_json_is(&key, &code_name)
            && ngx_mcp_json_real(&value, &code) == NGX_OK
            && code == (double) NGX_MCP_RPC_URL_REQUIRED)
        {
            return 1;
        }
    }

    return 0;
}


/* Tells if MCP allows to answer the request by a request for input. */

static ngx_uint_t
ngx_mcp_url_error_asks(ngx_mcp_ctx_t *ctx)
{
    ngx_uint_t        i;
    static ngx_str_t  methods[] = {
        ngx_string("tools/call"),
        ngx_string("prompts/get"),
        ngx_string("resources/read")
    };

    for (i = 0; i < 3; i++) {
        if (ctx->rpc.method.len == methods[i].len
            && ngx_memcmp(ctx->rpc.method.data, methods[i].data,
                          methods[i].len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* Checks the URLs, and if the client can be asked to open them. */

static ngx_int_t
ngx_mcp_url_error_question(ngx_mcp_url_error_t *e, ngx_mcp_json_t *error)
{
    ngx_int_t                  rc;
    ngx_str_t                  detail;
    ngx_uint_t                 can;
    ngx_mcp_out_t              out;
    ngx_mcp_mismatch_t         mismatch;
    ngx_mcp_request_params_t  *params;

    rc = ngx_mcp_question_check(e->pool, NGX_MCP_QUESTION_ERROR, error,
                                &mismatch);
    rc = ngx_mcp_mismatch_text(e->pool, rc, &mismatch, &detail);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_mcp_url_error_failed(e, "upstream_question",
                                        NGX_MCP_BAD_QUESTION, &detail);
    }

    /* ctx->can is not set for a message that is passed unchecked */

    params = &e->ctx->params;
    can = ngx_mcp_can(&params->elicitation, &params->sampling, &params->roots,
                      1);

    if (can & NGX_MCP_CAN_URL) {
        return ngx_mcp_url_error_ask(e, error);
    }

    e->status = NGX_HTTP_BAD_REQUEST;
    e->ctx->error = NGX_MCP_RPC_CAPABILITY;

    ngx_mcp_out_init(&out, e->pool, 256);
    ngx_mcp_url_error_begin(&out, &e->ctx->rpc.id, "error");
    ngx_mcp_out_lit(&out, "{\"code\":" ngx_value(NGX_MCP_RPC_CAPABILITY)
                          ",\"message\":\"Missing required client capability\""
                          ",\"data\":{\"requiredCapabilities\":{");
    ngx_mcp_out_text(&out, ngx_mcp_can_text(NGX_MCP_CAN_URL));
    ngx_mcp_out_lit(&out, "}}}}");

    return ngx_mcp_out_end(&out, &e->text);
}


/* As with "input=call": the client opens the URLs and repeats the call. */

static ngx_int_t
ngx_mcp_url_error_ask(ngx_mcp_url_error_t *e, ngx_mcp_json_t *error)
{
    ngx_str_t      requests;
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, e->pool, error->text.len + 256);
    ngx_mcp_question_of_error(&out, error, 1);

    if (ngx_mcp_out_end(&out, &requests) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_mcp_out_init(&out, e->pool, requests.len + 256);
    ngx_mcp_url_error_begin(&out, &e->ctx->rpc.id, "result");
    ngx_mcp_out_lit(&out, "{\"resultType\":\"input_required\","
                          NGX_MCP_SERVER_META ",\"inputRequests\":");
    ngx_mcp_question_modern(&out, &requests, NGX_MCP_CAN_URL);
    ngx_mcp_out_lit(&out, "}}");

    return ngx_mcp_out_end(&out, &e->text);
}


/* The errors that a background call would fail with. */

static ngx_int_t
ngx_mcp_url_error_failed(ngx_mcp_url_error_t *e, const char *reason,
    const char *message, ngx_str_t *detail)
{
    ngx_mcp_out_t  out;

    e->ctx->error = NGX_MCP_RPC_UPSTREAM;

    ngx_log_error(NGX_LOG_ERR, e->log, 0, "upstream response is not passed: %s",
                  reason);

    ngx_mcp_out_init(&out, e->pool, 512);
    ngx_mcp_url_error_begin(&out, &e->ctx->rpc.id, "error");
    ngx_mcp_out_lit(&out, "{\"code\":" ngx_value(NGX_MCP_RPC_UPSTREAM)
                          ",\"message\":\"");
    ngx_mcp_out_text(&out, message);
    ngx_mcp_out_lit(&out, "\",\"data\":{\"reason\":\"");
    ngx_mcp_out_text(&out, reason);
    ngx_mcp_out_lit(&out, "\"");

    if (detail) {
        ngx_mcp_out_lit(&out, ",\"detail\":");
        ngx_mcp_out_string(&out, detail);
    }

    ngx_mcp_out_lit(&out, "}}}");

    return ngx_mcp_out_end(&out, &e->text);
}


static void
ngx_mcp_url_error_begin(ngx_mcp_out_t *out, ngx_mcp_json_t *id,
    const char *member)
{
    ngx_mcp_out_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");

    if (id->type == NGX_MCP_JSON_NONE) {
        ngx_mcp_out_lit(out, "null");

    } else {
        ngx_mcp_out_str(out, &id->text);
    }

    ngx_mcp_out_lit(out, ",\"");
    ngx_mcp_out_text(out, member);
    ngx_mcp_out_lit(out, "\":");
}
