
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_rpc.h"
#include "ngx_mcp_equal.h"


static ngx_int_t ngx_mcp_rpc_kind(ngx_pool_t *pool, ngx_mcp_rpc_t *rpc,
    ngx_mcp_rpc_error_t *err);
static ngx_int_t ngx_mcp_rpc_invalid(ngx_mcp_rpc_error_t *err,
    const char *detail);
static ngx_uint_t ngx_mcp_rpc_valid_id(ngx_mcp_json_t *id);


static ngx_str_t  ngx_mcp_rpc_version = ngx_string("2.0");


ngx_int_t
ngx_mcp_rpc_parse(ngx_pool_t *pool, ngx_str_t *body, ngx_mcp_shape_t *params,
    ngx_mcp_rpc_t *rpc, ngx_mcp_rpc_error_t *err)
{
    ngx_int_t        rc;
    ngx_mcp_json_t   message, id;
    ngx_mcp_shape_t  shape[] = {
        { ngx_string("jsonrpc"),
          offsetof(ngx_mcp_rpc_t, version), NULL },
        { ngx_string("id"), offsetof(ngx_mcp_rpc_t, id), NULL },
        { ngx_string("method"),
          offsetof(ngx_mcp_rpc_t, verb), NULL },
        { ngx_string("params"),
          offsetof(ngx_mcp_rpc_t, params), params },
        { ngx_string("result"),
          offsetof(ngx_mcp_rpc_t, result), NULL },
        { ngx_string("error"),
          offsetof(ngx_mcp_rpc_t, error), NULL },
        { ngx_null_string, 0, NULL }
    };

    ngx_memzero(rpc, sizeof(ngx_mcp_rpc_t));

    rc = ngx_mcp_json_shape(body, &message, shape, rpc, &err->detail);

    id = rpc->id;
    ngx_memzero(&rpc->id, sizeof(ngx_mcp_json_t));

    if (rc != NGX_OK) {
        ngx_memzero(rpc, sizeof(ngx_mcp_rpc_t));
        err->code = NGX_MCP_RPC_PARSE;
        err->message = "Parse error";
        return NGX_DECLINED;
    }

    if (message.type == NGX_MCP_JSON_ARRAY) {
        return ngx_mcp_rpc_invalid(err,
                                   "batches are not supported, send one "
                                   "message per POST");
    }

    if (message.type != NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_rpc_invalid(err, "the message must be a JSON object");
    }

    if (id.type == NGX_MCP_JSON_DUPLICATE
        || rpc->version.type == NGX_MCP_JSON_DUPLICATE
        || rpc->verb.type == NGX_MCP_JSON_DUPLICATE
        || rpc->params.type == NGX_MCP_JSON_DUPLICATE
        || rpc->result.type == NGX_MCP_JSON_DUPLICATE
        || rpc->error.type == NGX_MCP_JSON_DUPLICATE)
    {
        return ngx_mcp_rpc_invalid(err, "duplicate member");
    }

    /* the id is set first, so that errors found below are sent with it */

    if (id.type != NGX_MCP_JSON_NONE) {
        if (!ngx_mcp_rpc_valid_id(&id)) {
            return ngx_mcp_rpc_invalid(err,
                                       "id must be a string or an integer");
        }

        rpc->id = id;
    }

    if (rpc->version.type != NGX_MCP_JSON_STRING
        || !ngx_mcp_json_is(&rpc->version,
                            &ngx_mcp_rpc_version))
    {
        return ngx_mcp_rpc_invalid(err, "jsonrpc must be the string 2.0");
    }

    return ngx_mcp_rpc_kind(pool, rpc, err);
}


/* Sets the kind of the message and checks the members that it requires. */

static ngx_int_t
ngx_mcp_rpc_kind(ngx_pool_t *pool, ngx_mcp_rpc_t *rpc,
    ngx_mcp_rpc_error_t *err)
{
    ngx_int_t  rc;

    if (rpc->verb.type == NGX_MCP_JSON_NONE) {

        if (rpc->id.type == NGX_MCP_JSON_NONE
            || (rpc->result.type == NGX_MCP_JSON_NONE)
               == (rpc->error.type == NGX_MCP_JSON_NONE))
        {
            return ngx_mcp_rpc_invalid(err,
                                       "the message has no method and is not "
                                       "a valid response");
        }

        rpc->kind = NGX_MCP_RPC_RESPONSE;

        return NGX_OK;
    }

    if (rpc->verb.type != NGX_MCP_JSON_STRING) {
        return ngx_mcp_rpc_invalid(err, "method must be a string");
    }

    rc = ngx_mcp_json_string(pool, &rpc->verb, &rpc->method);

    if (rc != NGX_OK) {
        return (rc == NGX_ERROR) ? rc
               : ngx_mcp_rpc_invalid(err,
                                     "method must not contain NUL or a lone "
                                     "surrogate");
    }

    rpc->kind = (rpc->id.type == NGX_MCP_JSON_NONE)
                ? NGX_MCP_RPC_NOTIFICATION
                : NGX_MCP_RPC_REQUEST;

    if (rpc->params.type != NGX_MCP_JSON_NONE
        && rpc->params.type != NGX_MCP_JSON_OBJECT)
    {
        err->code = NGX_MCP_RPC_INVALID_PARAMS;
        err->message = "Invalid params";
        err->detail = "params must be an object";
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_rpc_invalid(ngx_mcp_rpc_error_t *err, const char *detail)
{
    err->code = NGX_MCP_RPC_INVALID_REQUEST;
    err->message = "Invalid Request";
    err->detail = detail;

    return NGX_DECLINED;
}


/* MCP allows strings and integers; the number of digits is not limited. */

static ngx_uint_t
ngx_mcp_rpc_valid_id(ngx_mcp_json_t *id)
{
    size_t  i;

    if (id->type == NGX_MCP_JSON_STRING) {
        return 1;
    }

    if (id->type != NGX_MCP_JSON_NUMBER) {
        return 0;
    }

    for (i = (id->text.data[0] == '-'); i < id->text.len; i++) {
        if (id->text.data[i] < '0' || id->text.data[i] > '9') {
            return 0;
        }
    }

    return 1;
}


/* A string may be escaped differently when it is sent again. */

ngx_uint_t
ngx_mcp_rpc_same_id(ngx_mcp_json_t *a, ngx_mcp_json_t *b)
{
    if (a->type != b->type) {
        return 0;
    }

    if (a->type == NGX_MCP_JSON_STRING) {
        return ngx_mcp_json_same(a, b);
    }

    return a->text.len == b->text.len
           && ngx_memcmp(a->text.data, b->text.data, a->text.len) == 0;
}
