
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Arguments of calls, and results, that do not match the tool's schemas. */


#include "ngx_mcp_http.h"
#include "ngx_mcp_question.h"


static ngx_int_t ngx_mcp_arguments_data(ngx_pool_t *pool, const char *reason,
    ngx_mcp_mismatch_t *mismatch, ngx_str_t *data);


/*
 * NGX_OK, or NGX_DECLINED with what is wrong: text is UTF-8, not JSON.  The
 * pointer has names that the client sent, so it goes to the client only.
 */

ngx_int_t
ngx_mcp_schema_check(ngx_pool_t *pool, ngx_mcp_schema_t *schema,
    ngx_mcp_json_t *value, ngx_mcp_mismatch_t *mismatch, ngx_str_t *text)
{
    ngx_int_t  rc;

    rc = ngx_mcp_schema_validate(schema, pool, value, mismatch);

    return ngx_mcp_mismatch_text(pool, rc, mismatch, text);
}


/* the same for what a validation has returned */

ngx_int_t
ngx_mcp_mismatch_text(ngx_pool_t *pool, ngx_int_t rc,
    ngx_mcp_mismatch_t *mismatch, ngx_str_t *text)
{
    ngx_mcp_out_t  out;

    if (rc == NGX_OK || rc == NGX_ERROR) {
        return rc;
    }

    ngx_mcp_out_init(&out, pool, mismatch->pointer.len + 128);

    if (rc == NGX_ABORT) {
        ngx_mcp_out_lit(&out, "too complex to be validated");

    } else {
        if (mismatch->pointer.len) {
            ngx_mcp_out_str(&out, &mismatch->pointer);
            ngx_mcp_out_lit(&out, ": ");
        }

        ngx_mcp_out_text(&out, mismatch->keyword);
        ngx_mcp_out_lit(&out, " is not satisfied");

        if (mismatch->name.len) {
            ngx_mcp_out_lit(&out, ", \"");
            ngx_mcp_out_str(&out, &mismatch->name);
            ngx_mcp_out_lit(&out, "\" is missing");
        }

        /* a schema never reports it: there it is an annotation */

        if (ngx_strcmp(mismatch->keyword, NGX_MCP_QUESTION_URL) == 0) {
            ngx_mcp_out_lit(&out, ", a URL must be absolute and valid, use "
                                  "https, or http on a loopback host, and "
                                  "have no user information");
        }
    }

    return (ngx_mcp_out_end(&out, text) == NGX_OK) ? NGX_DECLINED : NGX_ERROR;
}


/* the same for the arguments of a call; there may be none */

ngx_int_t
ngx_mcp_arguments_check(ngx_pool_t *pool, ngx_mcp_tool_t *tool,
    ngx_mcp_json_t *arguments, ngx_mcp_mismatch_t *mismatch, ngx_str_t *text)
{
    ngx_mcp_json_t  none;

    if (tool == NULL || tool->input == NULL) {
        return NGX_OK;
    }

    if (arguments->type == NGX_MCP_JSON_NONE) {
        none.type = NGX_MCP_JSON_OBJECT;
        ngx_str_set(&none.text, "{}");
        arguments = &none;
    }

    return ngx_mcp_schema_check(pool, tool->input, arguments, mismatch, text);
}


/* a result of the tool that the model can read, and correct itself */

ngx_int_t
ngx_mcp_arguments_result(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *text)
{
    ngx_str_t      what;
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, r->pool, text->len + 32);
    ngx_mcp_out_lit(&out, "Invalid arguments: ");
    ngx_mcp_out_str(&out, text);

    if (ngx_mcp_out_end(&out, &what) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_mcp_out_answer(&out, r, ctx, text->len + 256);
    ngx_mcp_out_lit(&out, "{");

    if (ctx->era == NGX_MCP_MODERN) {
        ngx_mcp_out_lit(&out, "\"resultType\":\"complete\","
                        NGX_MCP_SERVER_META ",");
    }

    ngx_mcp_out_lit(&out, "\"content\":[{\"type\":\"text\",\"text\":");
    ngx_mcp_out_string(&out, &what);
    ngx_mcp_out_lit(&out, "}],\"isError\":true}");

    return ngx_mcp_out_result(r, &out);
}


/* a JSON-RPC error, where a result of the tool is not allowed */

ngx_int_t
ngx_mcp_arguments_error(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *of, ngx_mcp_mismatch_t *mismatch, ngx_str_t *text)
{
    return ngx_mcp_mismatch_error(r, ctx, of, NULL, mismatch, text);
}


/* the same, with a reason unless it is NULL */

ngx_int_t
ngx_mcp_mismatch_error(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    const char *of, const char *reason, ngx_mcp_mismatch_t *mismatch,
    ngx_str_t *text)
{
    ngx_str_t      data, message, what;
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, r->pool, text->len + 64);
    ngx_mcp_out_lit(&out, "Invalid params: ");
    ngx_mcp_out_text(&out, of);
    ngx_mcp_out_lit(&out, ": ");
    ngx_mcp_out_str(&out, text);

    if (ngx_mcp_out_end(&out, &what) != NGX_OK
        || ngx_mcp_arguments_data(r->pool, reason, mismatch, &data) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* as JSON, without its quotes, and with an end */

    ngx_mcp_out_init(&out, r->pool, what.len + 64);
    ngx_mcp_out_string(&out, &what);

    if (ngx_mcp_out_end(&out, &message) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    message.data[message.len - 1] = '\0';

    return ngx_mcp_error(r, ctx, NGX_HTTP_OK, NGX_MCP_RPC_INVALID_PARAMS,
                         (char *) message.data + 1,
                         data.len > 2 ? &data : NULL);
}


static ngx_int_t
ngx_mcp_arguments_data(ngx_pool_t *pool, const char *reason,
    ngx_mcp_mismatch_t *mismatch, ngx_str_t *data)
{
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, pool, mismatch->pointer.len + 64);
    ngx_mcp_out_lit(&out, "{");

    if (reason) {
        ngx_mcp_out_lit(&out, "\"reason\":\"");
        ngx_mcp_out_text(&out, reason);
        ngx_mcp_out_lit(&out, "\"");
    }

    if (mismatch->keyword) {

        if (reason) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_out_lit(&out, "\"pointer\":");
        ngx_mcp_out_string(&out, &mismatch->pointer);
        ngx_mcp_out_lit(&out, ",\"keyword\":\"");
        ngx_mcp_out_text(&out, mismatch->keyword);
        ngx_mcp_out_lit(&out, "\"");
    }

    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_end(&out, data);
}


/* over plain HTTP */

ngx_int_t
ngx_mcp_arguments_problem(ngx_http_request_t *r, ngx_mcp_mismatch_t *mismatch,
    ngx_str_t *text)
{
    ngx_str_t      body;
    ngx_mcp_out_t  out;

    ngx_mcp_out_init(&out, r->pool, 2 * text->len + 256);
    ngx_mcp_out_lit(&out, "{\"title\":\"Unprocessable Content\","
                          "\"status\":422,\"reason\":\"invalid_arguments\","
                          "\"detail\":");
    ngx_mcp_out_string(&out, text);

    if (mismatch->keyword) {
        ngx_mcp_out_lit(&out, ",\"pointer\":");
        ngx_mcp_out_string(&out, &mismatch->pointer);
        ngx_mcp_out_lit(&out, ",\"keyword\":\"");
        ngx_mcp_out_text(&out, mismatch->keyword);
        ngx_mcp_out_lit(&out, "\"");
    }

    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, &body) != NGX_OK
        || ngx_mcp_no_store(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&r->headers_out.content_type, "application/problem+json");

    return ngx_mcp_send(r, NGX_MCP_HTTP_UNPROCESSABLE, &body, 1);
}
