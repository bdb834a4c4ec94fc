
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Streams that answer a POST and can be resumed, in the legacy era.  A client
 * whose connection was lost sends a GET with the id of the last event, and gets
 * what it would have got on that stream, in any worker process.
 *
 * The id of an event is all that is known of such a stream: the task, what the
 * request waits for, its JSON-RPC id, and the progress sent so far.  It is
 * sealed for the owner and the session.  The number of the stream makes it
 * unique.  The last event of a stream says so in its id, because some clients
 * reconnect even after an error response.
 */


#include "ngx_mcp_methods.h"
#include "ngx_mcp_hash.h"


/* ids of the session stream begin with a hexadecimal digit */
#define NGX_MCP_RESUME_PREFIX  'r'

/* the maximum length of the JSON-RPC id of a request */
#define NGX_MCP_RESUME_MAX     64


typedef struct {
    u_char          id[NGX_MCP_ID_LEN];
    uint64_t        stream;
    double          progress;
    uint64_t        mode;           /* NGX_MCP_WAIT_*, NGX_MCP_RESUME_ENDED */
} ngx_mcp_resume_fixed_t;

typedef struct {
    ngx_mcp_seal_t          seal;
    ngx_mcp_resume_fixed_t  fixed;
    u_char                  request[NGX_MCP_RESUME_MAX];
} ngx_mcp_resume_id_t;


/* a bit of the mode: the event was the last one of its stream */
#define NGX_MCP_RESUME_ENDED   0x100


static void ngx_mcp_resume_seal(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_resume_id_t *id, size_t len, ngx_mcp_seal_t *seal);
static ngx_int_t ngx_mcp_resume_ended(ngx_http_request_t *r,
    ngx_mcp_ctx_t *ctx);
static ngx_int_t ngx_mcp_resume_open(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_str_t *text, ngx_mcp_resume_id_t *id, size_t *len);


/*
 * Whether the client of the request is sent a first event without data.
 * Clients of earlier revisions take the empty data for a message.
 */

ngx_uint_t
ngx_mcp_primes(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    ngx_str_t            value;
    ngx_mcp_revision_t  *rev;
    static ngx_str_t     header = ngx_string("mcp-protocol-version");

    rev = ngx_mcp_header(r, &header, &value) ? ngx_mcp_revision(&value)
                                             : ctx->revision;

    return rev == ngx_mcp_legacy_latest;
}


/* whether the stream of the request can be resumed */

ngx_uint_t
ngx_mcp_resumable(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    return ctx->era == NGX_MCP_LEGACY
           && ctx->session.len
           && ctx->rpc.id.text.len <= NGX_MCP_RESUME_MAX
           && ngx_mcp_primes(r, ctx);
}


/*
 * Writes the id of an event; NGX_MCP_RESUME_LEN bytes are sufficient.  The
 * progress is the last one sent, or negative; ended: it is the last event.
 */

u_char *
ngx_mcp_resume_id(u_char *p, ngx_mcp_wait_t *w, ngx_uint_t mode,
    double progress, ngx_uint_t ended)
{
    size_t               len;
    ngx_mcp_resume_id_t  id;

    ngx_memcpy(id.fixed.id, w->id.data, NGX_MCP_ID_LEN);
    id.fixed.stream = w->stream_id;
    id.fixed.progress = progress;
    id.fixed.mode = mode | (ended ? NGX_MCP_RESUME_ENDED : 0);

    len = w->ctx->rpc.id.text.len;
    ngx_memcpy(id.request, w->ctx->rpc.id.text.data, len);

    ngx_mcp_resume_seal(w->r, w->ctx, &id, len, &id.seal);

    *p++ = NGX_MCP_RESUME_PREFIX;
    *p++ = '-';

    return ngx_mcp_hex(p, &id, offsetof(ngx_mcp_resume_id_t, request) + len);
}


/*
 * Resumes a stream.  NGX_DECLINED: the client has not sent the id of such a
 * stream; any other value finalizes the request.
 */

ngx_int_t
ngx_mcp_resume(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    size_t                len;
    ngx_str_t             text;
    ngx_mcp_id_t          task;
    ngx_mcp_resume_id_t  *id;
    static ngx_str_t      header = ngx_string("last-event-id");

    if (ngx_mcp_header(r, &header, &text) != 1
        || text.len < 2
        || text.data[0] != NGX_MCP_RESUME_PREFIX || text.data[1] != '-')
    {
        return NGX_DECLINED;
    }

    id = ngx_palloc(r->pool, sizeof(ngx_mcp_resume_id_t));
    if (id == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_resume_open(r, ctx, &text, id, &len) != NGX_OK) {
        return ngx_mcp_error(r, ctx, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_RPC_INVALID_REQUEST,
                             "Invalid Request: Last-Event-ID is not of this "
                             "session", NULL);
    }

    if (id->fixed.mode & NGX_MCP_RESUME_ENDED) {
        return ngx_mcp_resume_ended(r, ctx);
    }

    /* errors are sent on the stream, with the id of the request */

    ctx->rpc.id.text.data = id->request;
    ctx->rpc.id.text.len = len;
    ctx->rpc.id.type = (id->request[0] == '"') ? NGX_MCP_JSON_STRING
                                               : NGX_MCP_JSON_NUMBER;

    ngx_memcpy(task.data, id->fixed.id, NGX_MCP_ID_LEN);

    return ngx_mcp_resume_outcome(r, ctx, &task, (ngx_uint_t) id->fixed.mode,
                                  id->fixed.progress);
}


/*
 * The client has received everything.  The specification allows only a stream
 * or 405, and after a stream the client might reconnect again.
 */

static ngx_int_t
ngx_mcp_resume_ended(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx)
{
    static ngx_str_t  allow = ngx_string("POST, DELETE, OPTIONS");

    if (ngx_mcp_add_header(r, "Allow", &allow) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_error(r, ctx, NGX_HTTP_NOT_ALLOWED,
                         NGX_MCP_RPC_INVALID_REQUEST,
                         "Invalid Request: the stream of this Last-Event-ID "
                         "has ended", NULL);
}


/* verifies the seal; len is the length of the JSON-RPC id */

static ngx_int_t
ngx_mcp_resume_open(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx, ngx_str_t *text,
    ngx_mcp_resume_id_t *id, size_t *len)
{
    size_t          size;
    ngx_mcp_seal_t  seal;

    size = (text->len - 2) / 2;

    if (text->len % 2
        || size <= offsetof(ngx_mcp_resume_id_t, request)
        || size > sizeof(ngx_mcp_resume_id_t)
        || ngx_mcp_unhex((u_char *) id, text->data + 2, size) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    *len = size - offsetof(ngx_mcp_resume_id_t, request);

    ngx_mcp_resume_seal(r, ctx, id, *len, &seal);

    return ngx_mcp_seal_equal(&seal, &id->seal) ? NGX_OK : NGX_DECLINED;
}


static void
ngx_mcp_resume_seal(ngx_http_request_t *r, ngx_mcp_ctx_t *ctx,
    ngx_mcp_resume_id_t *id, size_t len, ngx_mcp_seal_t *seal)
{
    uint64_t             data[4];
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    ngx_mcp_siphash128(data, lcf->zone->secret,
                       (u_char *) id + offsetof(ngx_mcp_resume_id_t, fixed),
                       sizeof(ngx_mcp_resume_fixed_t) + len);
    ngx_mcp_siphash128(data + 2, lcf->zone->secret, ctx->session.data,
                       ctx->session.len);

    ngx_mcp_seal(seal, lcf->zone->secret, NGX_MCP_SEAL_STREAM, &ctx->owner,
                 data, sizeof(data));
}
