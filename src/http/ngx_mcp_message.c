
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * JSON-RPC messages received by POST, at the MCP endpoint and at the worker
 * surface.
 */


#include "ngx_mcp_http.h"


static ngx_int_t ngx_mcp_not_a_message(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_rpc_error_t *err);


static ngx_mcp_shape_t  ngx_mcp_extensions[] = {
    { ngx_string("io.modelcontextprotocol/tasks"),
      ngx_mcp_param_offset(tasks), NULL },
    { ngx_string(NGX_MCP_EXTENSION),
      ngx_mcp_param_offset(extended), NULL },
    { ngx_string(NGX_MCP_EXTENSION_OLD),
      ngx_mcp_param_offset(extended_old), NULL },
    { ngx_null_string, 0, NULL }
};


static ngx_mcp_shape_t  ngx_mcp_capabilities[] = {
    { ngx_string("extensions"), ngx_mcp_param_offset(extensions),
      ngx_mcp_extensions },
    { ngx_string("elicitation"), ngx_mcp_param_offset(elicitation), NULL },
    { ngx_string("sampling"), ngx_mcp_param_offset(sampling), NULL },
    { ngx_string("roots"), ngx_mcp_param_offset(roots), NULL },
    { ngx_null_string, 0, NULL }
};


static ngx_mcp_shape_t  ngx_mcp_meta[] = {
    { ngx_string("progressToken"), ngx_mcp_param_offset(token), NULL },
    { ngx_string("io.modelcontextprotocol/protocolVersion"),
      ngx_mcp_param_offset(version), NULL },
    { ngx_string("io.modelcontextprotocol/clientInfo"),
      ngx_mcp_param_offset(client), NULL },
    { ngx_string("io.modelcontextprotocol/clientCapabilities"),
      ngx_mcp_param_offset(capabilities),
      ngx_mcp_capabilities },
    { ngx_string("traceparent"),
      ngx_mcp_param_offset(trace[NGX_MCP_TRACEPARENT]), NULL },
    { ngx_string("tracestate"),
      ngx_mcp_param_offset(trace[NGX_MCP_TRACESTATE]), NULL },
    { ngx_string("baggage"),
      ngx_mcp_param_offset(trace[NGX_MCP_BAGGAGE]), NULL },
    { ngx_string(NGX_MCP_NAMESPACE "timeout"),
      ngx_mcp_param_offset(timeout), NULL },
    { ngx_string(NGX_MCP_NAMESPACE "priority"),
      ngx_mcp_param_offset(priority), NULL },
    { ngx_null_string, 0, NULL }
};


static ngx_mcp_shape_t  ngx_mcp_wanted[] = {
    { ngx_string("ttl"), ngx_mcp_param_offset(ttl), NULL },
    { ngx_null_string, 0, NULL }
};


static ngx_mcp_shape_t  ngx_mcp_params[] = {
    { ngx_string("taskId"), ngx_mcp_param_offset(id), NULL },
    { ngx_string("name"), ngx_mcp_param_offset(name), NULL },
    { ngx_string("arguments"), ngx_mcp_param_offset(arguments), NULL },
    { ngx_string("task"), ngx_mcp_param_offset(task),
      ngx_mcp_wanted },
    { ngx_string("_meta"), ngx_mcp_param_offset(meta),
      ngx_mcp_meta },
    { ngx_null_string, 0, NULL }
};


/*
 * Reads the body of a POST request and calls the handler, which has to finalize
 * the request.  Returns the value for nginx to finalize with.
 */

ngx_int_t
ngx_mcp_post(ngx_http_request_t *r, ngx_http_client_body_handler_pt handler)
{
    ngx_int_t  rc;

    if (!ngx_mcp_is_json(r)) {
        return ngx_mcp_refuse(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              NGX_MCP_RPC_INVALID_REQUEST,
                              "Invalid Request: Content-Type must be "
                              "application/json");
    }

    rc = ngx_http_read_client_request_body(r, handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


/*
 * Parses the message in the body and determines its owner.  NGX_DECLINED: the
 * message is valid and the store is ready; any other value finalizes the
 * request.
 */

ngx_int_t
ngx_mcp_read(ngx_http_request_t *r, ngx_mcp_ctx_t **pctx)
{
    ngx_int_t             rc;
    ngx_str_t             body;
    ngx_mcp_ctx_t        *ctx;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_rpc_error_t   err;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_tasks_module);
    *pctx = ctx;

    /*
     * The body is read completely.  With lingering_close, a worker process that
     * exits would wait for seconds for clients that do not close.
     */

    r->lingering_close = 0;

    if (ngx_mcp_body(r, &body) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_mcp_rpc_parse(r->pool, &body, ngx_mcp_params, &ctx->rpc, &err);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED && lcf->unparsed) {
        rc = lcf->unparsed(r, ctx, &body);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (rc == NGX_DECLINED) {
        return ngx_mcp_not_a_message(r, ctx, &err);
    }

    return ngx_mcp_identify(r, ctx);
}


/* parses a message of a batch; returns as ngx_mcp_read() does */

ngx_int_t
ngx_mcp_read_message(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *message)
{
    ngx_int_t            rc;
    ngx_mcp_rpc_error_t  err;

    rc = ngx_mcp_rpc_parse(r->pool, &message->text, ngx_mcp_params, &ctx->rpc,
                           &err);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {

        if (message->type == NGX_MCP_JSON_ARRAY) {
            err.detail = "the message must be a JSON object";
        }

        return ngx_mcp_not_a_message(r, ctx, &err);
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_not_a_message(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_rpc_error_t *err)
{
    u_char  message[256];

    *ngx_snprintf(message, sizeof(message) - 1, "%s: %s", err->message,
                  err->detail) = '\0';

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "client sent an invalid JSON-RPC message: %s", err->detail);

    return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST, err->code,
                         (char *) message, NULL);
}


/*
 * Determines the owner of a request.  NGX_DECLINED: the store is ready; any
 * other value finalizes the request.
 */

ngx_int_t
ngx_mcp_identify(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    rc = ngx_mcp_owner(r, &ctx->owner);

    if (rc == NGX_DECLINED) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "the value of \"mcp_tasks_owner\" is longer than %d "
                      "bytes", NGX_MCP_MAX_NAME);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!lcf->zone->ready) {
        return ngx_mcp_refused(r, ctx, NGX_MCP_STORE_UNAVAILABLE);
    }

    return NGX_DECLINED;
}


/* refuses a request whose body has not been read */

ngx_int_t
ngx_mcp_refuse(ngx_http_request_t *r, ngx_uint_t status, ngx_int_t code,
    const char *why)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_mcp_error(r, NULL, status, code, why, NULL);
}


/* the list ends with an entry without a handler; NULL: no such method */

ngx_mcp_method_t *
ngx_mcp_method_find(ngx_mcp_method_t *methods, ngx_str_t *name)
{
    ngx_mcp_method_t  *m;

    for (m = methods; m->handler; m++) {
        if (m->name.len == name->len
            && ngx_strncmp(m->name.data, name->data, name->len) == 0)
        {
            return m;
        }
    }

    return NULL;
}
