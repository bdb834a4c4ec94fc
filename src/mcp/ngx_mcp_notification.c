
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Notifications of clients in the legacy era.  Of these, nginx acts on
 * notifications/cancelled, which stops a plain call of the same session.
 *
 * The notification may reach any worker process.  It has the request id of the
 * call, but not the id of its task, which the client does not know.  So the
 * task id of such a call is derived from the session and the request id, by a
 * keyed hash, and there is no table of calls.  Without a session there is
 * nothing that a request id could belong to, and the task id is random.
 *
 * In a gateway, sessions are those of the upstream, and their ids are taken as
 * they are.  A notification that stops no call is passed.
 */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_gateway.h"
#include "ngx_mcp_hash.h"


/* the sealed data; the owner is part of the seal's key */

typedef struct {
    uint64_t  session[2];
    uint64_t  request[2];
    uint64_t  type;
} ngx_mcp_call_key_t;


static ngx_int_t ngx_mcp_call_cancel(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_call_cancelled(ngx_http_request_t *r,
    ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_call_unknown(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);


/* always accepted: there is no response that could tell why it is ignored */

ngx_int_t
ngx_mcp_notification(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    static ngx_str_t  cancelled = ngx_string("notifications/cancelled");

    if (ctx->rpc.method.len == cancelled.len
        && ngx_strncmp(ctx->rpc.method.data, cancelled.data, cancelled.len)
           == 0)
    {
        return ngx_mcp_call_cancel(r, ctx);
    }

    return ngx_mcp_accepted(r);
}


/*
 * Cancels the call if it is one, and if it runs.  A reason that is too long for
 * a status message is dropped.
 */

static ngx_int_t
ngx_mcp_call_cancel(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t             rc;
    ngx_mcp_json_t        request, reason;
    ngx_mcp_op_update_t  *op;
    ngx_mcp_member_t      members[] = {
        { ngx_string("requestId"), &request },
        { ngx_string("reason"), &reason }
    };

    if (ngx_mcp_members(ctx, members, 2) != NGX_OK
        || (request.type != NGX_MCP_JSON_STRING
            && request.type != NGX_MCP_JSON_NUMBER))
    {
        return ngx_mcp_call_unknown(r, ctx);
    }

    op = ngx_mcp_op(r, NGX_MCP_OP_UPDATE, sizeof(ngx_mcp_op_update_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_mcp_call_id(r, ctx, &request, &op->id);

    if (rc != NGX_OK) {
        return (rc == NGX_DECLINED) ? ngx_mcp_call_unknown(r, ctx)
                                    : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (reason.type == NGX_MCP_JSON_STRING
        && reason.text.len <= NGX_MCP_MAX_MESSAGE)
    {
        op->change.payload[NGX_MCP_MESSAGE] = reason.text;
    }

    op->owner = &ctx->owner;
    op->event.type = NGX_MCP_EV_CANCEL;
    op->event.flags = NGX_MCP_UNANSWERED;
    op->want = NGX_MCP_WANT_NOTHING;
    op->op.detached = 1;

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_call_cancelled);
}


static ngx_int_t
ngx_mcp_call_cancelled(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_tasks_module);

    return (o->reason == NGX_MCP_OK) ? ngx_mcp_accepted(r)
                                     : ngx_mcp_call_unknown(r, ctx);
}


/* the module has no such call; the upstream of a gateway may have it */

static ngx_int_t
ngx_mcp_call_unknown(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    return lcf->pass.len ? ngx_mcp_pass_on(r, ctx) : ngx_mcp_accepted(r);
}


/*
 * The id of the task of a plain call, by its session and the id of the request.
 * A string may be escaped differently when it is sent again; the number 1 and
 * the string "1" are different ids.  NGX_DECLINED: there is no session.
 */

ngx_int_t
ngx_mcp_call_id(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_json_t *request, ngx_mcp_id_t *id)
{
    ngx_int_t            rc;
    ngx_str_t            text, session;
    ngx_mcp_seal_t       seal;
    ngx_mcp_call_key_t   key;
    ngx_mcp_loc_conf_t  *lcf;
    static ngx_str_t     header = ngx_string("mcp-session-id");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    session = ctx->session;

    if ((lcf->pass.len && ngx_mcp_header(r, &header, &session) != 1)
        || session.len == 0)
    {
        return NGX_DECLINED;
    }

    text = request->text;
    key.type = request->type;

    if (request->type == NGX_MCP_JSON_STRING) {
        rc = ngx_mcp_json_string(r->pool, request, &text);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_DECLINED) {
            /* it cannot be decoded, and is taken as it is written */
            text = request->text;
            key.type = NGX_MCP_JSON_NONE;
        }
    }

    ngx_mcp_siphash128(key.session, lcf->zone->secret, session.data,
                       session.len);
    ngx_mcp_siphash128(key.request, lcf->zone->secret, text.data, text.len);

    ngx_mcp_seal(&seal, lcf->zone->secret, NGX_MCP_SEAL_CALL, &ctx->owner,
                 &key, sizeof(ngx_mcp_call_key_t));

    ngx_memcpy(id->data, seal.word, NGX_MCP_ID_LEN);
    ngx_mcp_id_form(id);

    return NGX_OK;
}
