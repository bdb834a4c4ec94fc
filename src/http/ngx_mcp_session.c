
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The owner of a request, and sessions of the legacy era.
 *
 * A session id is a random number, the revision and the capabilities that
 * initialize has settled, and a seal over these and the owner, made with the
 * secret of the zone.  So every process verifies an id, and knows what it may
 * ask the client, without a table that clients could fill.  Ended sessions are
 * kept in a table of fixed size, where new entries replace old ones: this is
 * sufficient, because a session id does not authenticate a client.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_hash.h"


#define NGX_MCP_SESSION_LEN  (2 * sizeof(ngx_mcp_session_t))


typedef struct {
    u_char          random[14];
    uint8_t         revision;     /* number of ngx_mcp_revision_t */
    uint8_t         can;          /* NGX_MCP_CAN_* */
    ngx_mcp_seal_t  seal;         /* of all before */
} ngx_mcp_session_t;


static void ngx_mcp_session_seal(ngx_http_request_t *r,
    ngx_mcp_session_t *session, ngx_str_t *owner, ngx_mcp_seal_t *seal);
static ngx_int_t ngx_mcp_session_ended(ngx_http_request_t *r,
    ngx_mcp_op_t *o);
static ngx_int_t ngx_mcp_session_parse(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx, ngx_mcp_session_t *session);


static ngx_str_t  ngx_mcp_session_header = ngx_string("mcp-session-id");


/*
 * The owner is empty if the client is not identified.  NGX_DECLINED: the value
 * of mcp_tasks_owner is too long.
 */

ngx_int_t
ngx_mcp_owner(ngx_http_request_t *r, ngx_str_t *owner)
{
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ngx_str_null(owner);

    if (lcf->owner == NULL) {
        return NGX_OK;
    }

    if (ngx_http_complex_value(r, lcf->owner, owner) != NGX_OK) {
        return NGX_ERROR;
    }

    return (owner->len <= NGX_MCP_MAX_NAME) ? NGX_OK : NGX_DECLINED;
}


/* adds a new session id to the response */

ngx_int_t
ngx_mcp_session_new(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_revision_t *rev, ngx_uint_t can)
{
    ngx_str_t          value;
    ngx_mcp_session_t  session;

    if (ngx_mcp_random(session.random, sizeof(session.random)) != NGX_OK) {
        return NGX_ERROR;
    }

    session.revision = rev->number;
    session.can = (uint8_t) can;

    ngx_mcp_session_seal(r, &session, &ctx->owner, &session.seal);

    value.len = NGX_MCP_SESSION_LEN;
    value.data = ngx_pnalloc(r->pool, value.len);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_hex_dump(value.data, (u_char *) &session, sizeof(session));

    return ngx_mcp_add_header(r, "Mcp-Session-Id", &value);
}


/*
 * Sets the session of a request, its revision and capabilities.  NGX_DONE: the
 * request has no session id; NGX_DECLINED: the id is not valid, or the session
 * has ended.
 */

ngx_int_t
ngx_mcp_session_check(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_mcp_session_t    session;
    ngx_mcp_loc_conf_t  *lcf;

    rc = ngx_mcp_session_parse(r, ctx, &session);

    if (rc != NGX_OK) {
        return rc;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (ngx_mcp_zone_session_ended(lcf->zone, session.seal.word[0])) {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* DELETE on the endpoint; this also ends the stream of the session */

ngx_int_t
ngx_mcp_session_end(ngx_http_request_t *r)
{
    ngx_int_t            rc;
    ngx_mcp_ctx_t       *ctx;
    ngx_mcp_session_t    session;
    ngx_mcp_op_wait_t   *op;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_mcp_ctx_t));

    if (ctx == NULL || ngx_mcp_owner(r, &ctx->owner) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_mcp_session_check(r, ctx);

    if (rc == NGX_DONE) {
        return ngx_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                              NGX_MCP_RPC_INVALID_REQUEST,
                              "Invalid Request: the Mcp-Session-Id header is "
                              "missing");
    }

    if (rc != NGX_OK) {
        return ngx_mcp_refuse(r, NGX_HTTP_NOT_FOUND, NGX_MCP_RPC_NO_SESSION,
                              "Session not found");
    }

    (void) ngx_mcp_session_parse(r, ctx, &session);

    op = ngx_mcp_op(r, NGX_MCP_OP_LEAVE, sizeof(ngx_mcp_op_wait_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op->session = ctx->session;
    op->ended = 1;
    op->seal = session.seal.word[0];

    return ngx_mcp_request_op(r, &op->op, ngx_mcp_session_ended);
}


static ngx_int_t
ngx_mcp_session_ended(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    if (o->reason != NGX_MCP_OK) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_send_header(r);
}


/* NGX_DONE: no session id; NGX_DECLINED: it was not issued to this owner */

static ngx_int_t
ngx_mcp_session_parse(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_session_t *session)
{
    size_t               len;
    u_char              *p;
    ngx_str_t            value;
    ngx_mcp_seal_t       seal;
    ngx_mcp_revision_t  *rev;

    if (ngx_mcp_header(r, &ngx_mcp_session_header, &value) == 0) {
        return NGX_DONE;
    }

    if (value.len != NGX_MCP_SESSION_LEN) {
        return NGX_DECLINED;
    }

    len = sizeof(ngx_mcp_session_t);

    if (ngx_mcp_unhex((u_char *) session, value.data, len) != NGX_OK) {
        /* tasks are found by the text of the id, so it must be in lower case */

        p = ngx_pnalloc(r->pool, value.len);
        if (p == NULL) {
            return NGX_DECLINED;
        }

        ngx_strlow(p, value.data, value.len);
        value.data = p;

        if (ngx_mcp_unhex((u_char *) session, p, len) != NGX_OK) {
            return NGX_DECLINED;
        }
    }

    ngx_mcp_session_seal(r, session, &ctx->owner, &seal);
    rev = ngx_mcp_revision_of(session->revision);

    if (!ngx_mcp_seal_equal(&seal, &session->seal) || rev == NULL) {
        return NGX_DECLINED;
    }

    ctx->session = value;
    ctx->revision = rev;
    ctx->can = session->can;

    return NGX_OK;
}


static void
ngx_mcp_session_seal(ngx_http_request_t *r, ngx_mcp_session_t *session,
    ngx_str_t *owner, ngx_mcp_seal_t *seal)
{
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ngx_mcp_seal(seal, lcf->zone->secret, NGX_MCP_SEAL_SESSION, owner, session,
                 offsetof(ngx_mcp_session_t, seal));
}
