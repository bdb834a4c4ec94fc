
/*
 * Messages that are not ours, and go to the upstream as they came.
 */


#include "ngx_mcp_gateway.h"
#include "ngx_mcp_merge.h"


static ngx_uint_t ngx_mcp_pass_ours(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t modern);
static ngx_uint_t ngx_mcp_pass_answer(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_uint_t ngx_mcp_pass_listens(ngx_mcp_ctx_t *ctx);
static ngx_uint_t ngx_mcp_pass_is(ngx_mcp_ctx_t *ctx, const char *method);
static void ngx_mcp_pass_merge(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_pass_era(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t modern);
static void ngx_mcp_pass_plain(ngx_http_request_t *r);
static ngx_uint_t ngx_mcp_is_batch(ngx_http_request_t *r, ngx_str_t *body);


/* a message of a client; NGX_DECLINED: it is ours */

ngx_int_t
ngx_mcp_pass_message(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_uint_t modern)
{
    ngx_int_t  rc;

    ctx->era = modern ? NGX_MCP_MODERN : NGX_MCP_LEGACY;

    if (ngx_mcp_pass_ours(r, ctx, modern)) {
        return NGX_DECLINED;
    }

    rc = ngx_mcp_pass_era(r, ctx, modern);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_mcp_pass_merge(r, ctx);

    return ngx_mcp_pass(r, ctx);
}


static ngx_uint_t
ngx_mcp_pass_ours(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_uint_t modern)
{
    switch (ctx->rpc.kind) {

    case NGX_MCP_RPC_NOTIFICATION:
        return 0;

    case NGX_MCP_RPC_RESPONSE:
        return ngx_mcp_pass_answer(r, ctx);
    }

    if (modern && ngx_mcp_pass_is(ctx, "subscriptions/listen")) {
        return ngx_mcp_pass_listens(ctx);
    }

    return ngx_mcp_pass_is(ctx, "tools/call")
           || (ctx->rpc.method.len > 6
               && ngx_strncmp(ctx->rpc.method.data, "tasks/", 6) == 0);
}


/* to a question of a task, which has the task's id before a slash */

static ngx_uint_t
ngx_mcp_pass_answer(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t            text;
    ngx_mcp_op_get_t     op;
    ngx_mcp_loc_conf_t  *lcf;

    if (ctx->rpc.id.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_string(r->pool, &ctx->rpc.id, &text)
           != NGX_OK
        || text.len <= NGX_MCP_ID_TEXT
        || text.data[NGX_MCP_ID_TEXT] != '/')
    {
        return 0;
    }

    text.len = NGX_MCP_ID_TEXT;

    ngx_memzero(&op, sizeof(ngx_mcp_op_get_t));

    if (ngx_mcp_id_parse(&op.id, &text) != NGX_OK) {
        return 0;
    }

    /* the upstream may have such ids, too */

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    op.op.type = NGX_MCP_OP_GET;
    op.op.pool = r->pool;
    op.owner = &ctx->owner;

    return ngx_mcp_now(lcf->zone, &op.op) == NGX_OK
           && op.op.reason == NGX_MCP_OK;
}


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


/* what has to be changed in the response */

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
 * An upstream that does not speak the client's era might answer anything, if
 * it answers: so the operator may say which one it speaks.
 */

static ngx_int_t
ngx_mcp_pass_era(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_uint_t modern)
{
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

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


/* a call that the upstream cannot be asked; NGX_DECLINED: it can */

ngx_int_t
ngx_mcp_pass_speaks(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ngx_mcp_pass_era(r, ctx, ctx->era == NGX_MCP_MODERN);
}


/* GET and DELETE: the legacy era's stream, and the end of its session */

ngx_int_t
ngx_mcp_pass_other(ngx_http_request_t *r)
{
    ngx_mcp_ctx_t  *ctx;

    /* if there is a body, it is the upstream's to read */

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_pass(r, ctx);
}


/*
 * What is no message.  A batch is one in some revision, which the upstream may
 * know; NGX_DECLINED: it is not that either.
 */

ngx_int_t
ngx_mcp_pass_unparsed(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *body)
{
    return ngx_mcp_is_batch(r, body) ? ngx_mcp_pass(r, ctx) : NGX_DECLINED;
}


static ngx_uint_t
ngx_mcp_is_batch(ngx_http_request_t *r, ngx_str_t *body)
{
    size_t               i;
    ngx_str_t            version;
    ngx_mcp_revision_t  *rev;
    static ngx_str_t     header = ngx_string("mcp-protocol-version");

    if (ngx_mcp_header(r, &header, &version)) {
        rev = ngx_mcp_revision(&version);

        if (rev == NULL || !rev->batches) {
            return 0;
        }
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

    if (ngx_mcp_mark(r, ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->passed = 1;
    ctx->lcf = lcf;

    if (ctx->merge) {
        ngx_mcp_pass_plain(r);
    }

    uri = lcf->pass;
    args = r->args;

    return ngx_http_internal_redirect(r, &uri, &args);
}


/* what has to be changed must not come compressed */

static void
ngx_mcp_pass_plain(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;
    static ngx_str_t  name = ngx_string("Accept-Encoding");

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].key.len == name.len
                && ngx_strncasecmp(h[i].key.data, name.data, name.len) == 0)
            {
                ngx_str_set(&h[i].value, "identity");
            }
        }
    }
}
