
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Passes messages that the module does not handle itself to the upstream. */


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_filter.h"
#include "ngx_mcp_merge.h"


/* a client's response, while the store is asked if it answers a question */

typedef struct {
    ngx_mcp_op_get_t     op;      /* must be the first */
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_dispatch_pt  dispatch;
} ngx_mcp_pass_answer_t;


/* an Accept-Encoding header of the client, and its value */

typedef struct {
    ngx_table_elt_t     *header;
    ngx_str_t            value;
} ngx_mcp_pass_encoding_t;


static ngx_uint_t ngx_mcp_pass_is_local(ngx_mcp_loc_conf_t *lcf,
    ngx_mcp_ctx_t *ctx, ngx_uint_t modern);
static ngx_int_t ngx_mcp_pass_answer(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_dispatch_pt dispatch);
static ngx_int_t ngx_mcp_pass_answer_id(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_id_t *id);
static ngx_int_t ngx_mcp_pass_answer_done(ngx_http_request_t *r,
    ngx_mcp_op_t *o);
static ngx_uint_t ngx_mcp_pass_listens(ngx_mcp_ctx_t *ctx);
static ngx_uint_t ngx_mcp_pass_is(ngx_mcp_ctx_t *ctx, const char *method);
static void ngx_mcp_pass_merge(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_pass_plain(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
static ngx_uint_t ngx_mcp_is_batch(ngx_http_request_t *r, ngx_str_t *body);


/*
 * Routes a client's message.  NGX_DECLINED: the module handles it.  If a store
 * operation has to decide this, the function is called later instead.
 */

ngx_int_t
ngx_mcp_pass_message(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t modern, ngx_mcp_dispatch_pt dispatch)
{
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ctx->era = modern ? NGX_MCP_MODERN : NGX_MCP_LEGACY;

    if (ctx->rpc.kind == NGX_MCP_RPC_RESPONSE) {
        return ngx_mcp_pass_answer(r, ctx, dispatch);
    }

    if (ctx->rpc.kind == NGX_MCP_RPC_NOTIFICATION && lcf->schemas
        && ngx_mcp_pass_is(ctx, "tools/call"))
    {
        /* not a call, but the upstream might take it for one */
        return ngx_mcp_accepted(r);
    }

    if (ngx_mcp_pass_is_local(lcf, ctx, modern)) {
        return NGX_DECLINED;
    }

    return ngx_mcp_pass_on(r, ctx);
}


ngx_int_t
ngx_mcp_pass_on(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_mcp_pass_check_era(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_mcp_pass_merge(r, ctx);

    return ngx_mcp_pass(r, ctx);
}


/* Tells if the module handles the message. */

static ngx_uint_t
ngx_mcp_pass_is_local(ngx_mcp_loc_conf_t *lcf, ngx_mcp_ctx_t *ctx,
    ngx_uint_t modern)
{
    if (ctx->rpc.kind == NGX_MCP_RPC_NOTIFICATION) {

        /* it may be for a call of the module's own tools */

        return !modern && lcf->tools
               && ngx_mcp_pass_is(ctx, "notifications/cancelled");
    }

    if (modern && ngx_mcp_pass_is(ctx, "subscriptions/listen")) {
        return ngx_mcp_pass_listens(ctx);
    }

    return ngx_mcp_pass_is(ctx, "tools/call")
           || (ctx->rpc.method.len > 6
               && ngx_strncmp(ctx->rpc.method.data, "tasks/", 6) == 0);
}


/*
 * The upstream may use ids of the same form for its own requests: a response
 * answers a question of a task only if the task exists.
 */

static ngx_int_t
ngx_mcp_pass_answer(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_dispatch_pt dispatch)
{
    ngx_mcp_id_t            id;
    ngx_mcp_pass_answer_t  *answer;

    if (ngx_mcp_pass_answer_id(r, ctx, &id) != NGX_OK) {
        return ngx_mcp_pass_on(r, ctx);
    }

    answer = ngx_mcp_op(r, NGX_MCP_OP_GET, sizeof(ngx_mcp_pass_answer_t));
    if (answer == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    answer->op.id = id;
    answer->op.owner = &ctx->owner;
    answer->ctx = ctx;
    answer->dispatch = dispatch;

    return ngx_mcp_request_op(r, &answer->op.op, ngx_mcp_pass_answer_done);
}


/* The id of a question begins with the id of its task and a slash. */

static ngx_int_t
ngx_mcp_pass_answer_id(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_id_t *id)
{
    ngx_str_t  text;

    if (ctx->rpc.id.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &ctx->rpc.id, &text)
           != NGX_OK
        || text.len <= NGX_MCP_ID_TEXT
        || text.data[NGX_MCP_ID_TEXT] != '/')
    {
        return NGX_DECLINED;
    }

    text.len = NGX_MCP_ID_TEXT;

    return ngx_mcp_id_parse(id, &text);
}


static ngx_int_t
ngx_mcp_pass_answer_done(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_pass_answer_t  *answer;

    answer = (ngx_mcp_pass_answer_t *) o;

    return (o->reason == NGX_MCP_OK) ? answer->dispatch(r, answer->ctx)
                                     : ngx_mcp_pass_on(r, answer->ctx);
}


/* Tells if a subscription is for tasks. */

static ngx_uint_t
ngx_mcp_pass_listens(ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_json_t    notifications, ids;
    ngx_mcp_member_t  members[] = {
        { ngx_string("notifications"), &notifications }
    };
    ngx_mcp_member_t  inner[] = {
        { ngx_string("taskIds"), &ids }
    };

    (void) ngx_mcp_json_members(&ctx->rpc.params, members, 1);
    (void) ngx_mcp_json_members(&notifications, inner, 1);

    return ids.type != NGX_MCP_JSON_NONE;
}


static ngx_uint_t
ngx_mcp_pass_is(ngx_mcp_ctx_t *ctx, const char *method)
{
    return ctx->rpc.method.len == ngx_strlen(method)
           && ngx_strncmp(ctx->rpc.method.data, method, ctx->rpc.method.len)
              == 0;
}


/* Sets ctx->merge if the response has to be changed. */

static void
ngx_mcp_pass_merge(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t            version;
    ngx_mcp_revision_t  *rev;
    static ngx_str_t     header = ngx_string("mcp-protocol-version");

    if (ctx->rpc.kind != NGX_MCP_RPC_REQUEST) {
        return;
    }

    if (ngx_mcp_pass_is(ctx, "initialize")) {
        ctx->merge = NGX_MCP_MERGE_INITIALIZE;

    } else if (ngx_mcp_pass_is(ctx, "server/discover")) {
        ctx->merge = NGX_MCP_MERGE_DISCOVER;

    } else if (ngx_mcp_pass_is(ctx, "tools/list")) {
        ctx->merge = NGX_MCP_MERGE_TOOLS;

        rev = ngx_mcp_header(r, &header, &version)
              ? ngx_mcp_revision(&version) : ngx_mcp_legacy_latest;
        ctx->tasks = (ctx->era == NGX_MCP_LEGACY && rev && rev->tasks);
    }
}


/*
 * Rejects a message whose era the upstream does not support, according to the
 * "era" parameter: its response would be unpredictable.  NGX_DECLINED: the
 * message may be passed.
 */

ngx_int_t
ngx_mcp_pass_check_era(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_uint_t           modern;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    modern = (ctx->era == NGX_MCP_MODERN);

    if (lcf->pass_eras & (modern ? NGX_MCP_PASS_MODERN
                                 : NGX_MCP_PASS_LEGACY))
    {
        return NGX_DECLINED;
    }

    if (ctx->rpc.kind != NGX_MCP_RPC_REQUEST) {
        return ngx_mcp_accepted(r);
    }

    return modern ? ngx_mcp_modern_refuse(r, ctx)
                  : ngx_mcp_legacy_refuse(r, ctx);
}


/* Passes GET (a legacy stream) and DELETE (the end of a legacy session). */

ngx_int_t
ngx_mcp_pass_other(ngx_http_request_t *r)
{
    ngx_mcp_ctx_t  *ctx;

    /* a body, if there is one, is read by the proxy */

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_pass(r, ctx);
}


/*
 * Passes a body that is not a single message.  Some revisions of MCP have
 * batches, which the upstream may support; with schemas, calls in them would
 * not be validated.  NGX_DECLINED: the body is not passed.
 */

ngx_int_t
ngx_mcp_pass_unparsed(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *body)
{
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    return (lcf->schemas == NULL && ngx_mcp_is_batch(r, body))
           ? ngx_mcp_pass(r, ctx) : NGX_DECLINED;
}


static ngx_uint_t
ngx_mcp_is_batch(ngx_http_request_t *r, ngx_str_t *body)
{
    size_t  i;

    if (!ngx_mcp_header_batches(r)) {
        return 0;
    }

    for (i = 0; i < body->len; i++) {
        switch (body->data[i]) {
        case ' ':
        case '\t':
        case CR:
        case LF:
            continue;
        default:
            return body->data[i] == '[';
        }
    }

    return 0;
}


ngx_int_t
ngx_mcp_pass(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t            uri, args;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (ngx_mcp_set_ctx(r, ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->passed = 1;
    ctx->lcf = lcf;

    if ((ctx->merge || ngx_mcp_url_filter_is_for(ctx))
        && ngx_mcp_pass_plain(r, ctx) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    uri = lcf->pass;
    args = r->args;

    return ngx_http_internal_redirect(r, &uri, &args);
}


/* A response that has to be read must not be compressed. */

static ngx_int_t
ngx_mcp_pass_plain(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_uint_t                i;
    ngx_list_part_t          *part;
    ngx_table_elt_t          *h;
    ngx_mcp_pass_encoding_t  *encoding;
    static ngx_str_t          name = ngx_string("Accept-Encoding");

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].key.len != name.len
                || ngx_strncasecmp(h[i].key.data, name.data, name.len) != 0)
            {
                continue;
            }

            if (ctx->encodings == NULL) {
                ctx->encodings = ngx_array_create(r->pool, 1,
                                              sizeof(ngx_mcp_pass_encoding_t));
                if (ctx->encodings == NULL) {
                    return NGX_ERROR;
                }
            }

            encoding = ngx_array_push(ctx->encodings);
            if (encoding == NULL) {
                return NGX_ERROR;
            }

            encoding->header = &h[i];
            encoding->value = h[i].value;
            ngx_str_set(&h[i].value, "identity");
        }
    }

    return NGX_OK;
}


/* For nginx itself, which may compress the response. */

void
ngx_mcp_pass_encodings(ngx_mcp_ctx_t *ctx)
{
    ngx_uint_t                i;
    ngx_mcp_pass_encoding_t  *encoding;

    if (ctx->encodings == NULL) {
        return;
    }

    encoding = ctx->encodings->elts;

    for (i = 0; i < ctx->encodings->nelts; i++) {
        encoding[i].header->value = encoding[i].value;
    }

    ctx->encodings = NULL;
}
