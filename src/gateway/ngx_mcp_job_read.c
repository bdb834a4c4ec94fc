
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Reads the upstream's response to a call: one message, or a stream of
 * messages.  The upstream is not trusted: each message is checked.
 */


#include "ngx_mcp_job.h"
#include "ngx_mcp_filter.h"
#include "ngx_mcp_result.h"
#include "ngx_mcp_sse_writer.h"


/* bytes read of a response with an error status, which may have an error */
#define NGX_MCP_JOB_ERROR  65536

/* limits of the delay that a stream requests by "retry", in milliseconds */
#define NGX_MCP_JOB_RETRY_MIN  200
#define NGX_MCP_JOB_RETRY_MAX  60000


static ngx_int_t ngx_mcp_job_header(ngx_mcp_detached_t *d);
static ngx_int_t ngx_mcp_job_body_part(ngx_mcp_detached_t *d, u_char *p,
    size_t n);
static ngx_int_t ngx_mcp_job_collect(ngx_mcp_job_t *job, u_char *p, size_t n);
static void ngx_mcp_job_whole(ngx_mcp_detached_t *d);
static void ngx_mcp_job_done(ngx_mcp_detached_t *d);
static void ngx_mcp_job_repeat(ngx_mcp_job_t *job);
static ngx_uint_t ngx_mcp_job_is_poll(ngx_mcp_job_t *job);
static ngx_int_t ngx_mcp_job_last_id(ngx_mcp_job_t *job);
static void ngx_mcp_job_set_failure(ngx_mcp_job_t *job, ngx_mcp_detached_t *d);
static ngx_int_t ngx_mcp_job_event_data(void *data, ngx_mcp_sse_reader_t *sse,
    ngx_str_t *text);
static void ngx_mcp_job_keep_text(ngx_mcp_job_t *job, ngx_str_t *text);
static void ngx_mcp_job_message(ngx_mcp_job_t *job, ngx_str_t *text,
    ngx_pool_t *pool);
static void ngx_mcp_job_response(ngx_mcp_job_t *job, ngx_mcp_rpc_t *rpc);
static void ngx_mcp_job_result(ngx_mcp_job_t *job, ngx_mcp_json_t *object);
static void ngx_mcp_job_refusal(ngx_mcp_job_t *job);
static void ngx_mcp_job_notified(ngx_mcp_job_t *job, ngx_mcp_rpc_t *rpc);
static void ngx_mcp_job_progress(ngx_mcp_job_t *job, ngx_mcp_json_t *params);
static void ngx_mcp_job_logged(ngx_mcp_job_t *job, ngx_mcp_json_t *params);


ngx_mcp_reader_t  ngx_mcp_job_reader = {
    ngx_mcp_job_header,
    ngx_mcp_job_body_part,
    ngx_mcp_job_whole,
    ngx_mcp_job_done
};


static ngx_int_t
ngx_mcp_job_header(ngx_mcp_detached_t *d)
{
    ngx_http_request_t  *r;
    ngx_mcp_job_t       *job;
    static ngx_str_t     json = ngx_string("application/json");

    r = d->r;
    job = d->data;
    job->status = r->headers_out.status;
    job->last_read = ngx_current_msec;
    job->reached |= ngx_mcp_job_connected(r);

    if (job->status != NGX_HTTP_OK) {
        return NGX_OK;
    }

    job->stream = ngx_mcp_is_stream(r);

    if (r->headers_out.content_encoding
        || (!job->stream
            && !ngx_mcp_media_type(&r->headers_out.content_type,
                                   &json)))
    {
        job->failure = NGX_MCP_FAILED_NOT_VALID;
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_job_body_part(ngx_mcp_detached_t *d, u_char *p, size_t n)
{
    ngx_mcp_job_t  *job;

    job = d->data;
    job->last_read = ngx_current_msec;

    if (!ngx_mcp_job_is_open(job->state) && !job->stream) {
        return NGX_OK;
    }

    if (!job->stream) {
        return ngx_mcp_job_collect(job, p, n);
    }

    switch (ngx_mcp_sse_reader_read(&job->sse, p, n,
                                    ngx_mcp_job_event_data,
                                    job))
    {
    case NGX_OK:
        return NGX_OK;

    case NGX_DECLINED:
        job->failure = NGX_MCP_FAILED_TOO_LARGE;
        return NGX_ERROR;

    default:
        return NGX_ERROR;
    }
}


static ngx_int_t
ngx_mcp_job_collect(ngx_mcp_job_t *job, u_char *p, size_t n)
{
    u_char  *text;
    size_t   max, size;

    if (job->status == NGX_HTTP_OK) {
        max = ngx_mcp_job_max(job);

        if (n > max - job->len) {
            job->failure = NGX_MCP_FAILED_TOO_LARGE;
            return NGX_ERROR;
        }

    } else {
        max = NGX_MCP_JOB_ERROR;
        n = ngx_min(n, max - job->len);
    }

    if (job->len + n > job->size) {
        size = ngx_min(max, ngx_max(4096, 2 * (job->len + n)));

        text = ngx_alloc(size, ngx_cycle->log);
        if (text == NULL) {
            return NGX_ERROR;
        }

        if (job->text) {
            ngx_memcpy(text, job->text, job->len);
            ngx_free(job->text);
        }

        job->text = text;
        job->size = size;
    }

    ngx_memcpy(job->text + job->len, p, n);
    job->len += n;

    return NGX_OK;
}


/* Handles a complete response that is one message. */

static void
ngx_mcp_job_whole(ngx_mcp_detached_t *d)
{
    ngx_str_t       text;
    ngx_mcp_job_t  *job;

    job = d->data;

    if (!ngx_mcp_job_is_open(job->state) || job->failure || job->stream) {
        return;
    }

    if (job->status != NGX_HTTP_OK) {

        /* with last_id, the error is about resuming, not about the call */

        if (job->last_id.len == 0) {
            ngx_mcp_job_refusal(job);
        }

        return;
    }

    text.data = job->text;
    text.len = job->len;
    ngx_mcp_job_message(job, &text, d->r->pool);

    if (ngx_mcp_job_is_open(job->state) && !job->renew) {
        job->failure = NGX_MCP_FAILED_NOT_VALID;
    }
}


/* The request has ended; d->r is still valid. */

static void
ngx_mcp_job_done(ngx_mcp_detached_t *d)
{
    ngx_mcp_job_t  *job;

    job = d->data;
    job->requests--;
    ngx_mcp_job_post(job);

    if (job->call != d) {
        /* the request belongs to an earlier attempt */
        return;
    }

    job->call = NULL;
    job->connected = ngx_mcp_job_connected(d->r);
    job->reached |= job->connected;

    if (ngx_mcp_job_is_open(job->state) && !job->renew
        && job->failure == NGX_MCP_FAILED_NOT)
    {
        ngx_mcp_job_set_failure(job, d);
        ngx_mcp_job_repeat(job);
    }
}


/*
 * Decides if the request is repeated.  Legacy servers may end a stream early
 * and send the rest to a GET with Last-Event-ID.  A request that resumes a
 * stream or that has answers is also repeated if no connection was made, so
 * that the stream and the answers are not lost.  A request about a task of the
 * upstream changes nothing there, and is repeated after any failure that may
 * be temporary.
 */

static void
ngx_mcp_job_repeat(ngx_mcp_job_t *job)
{
    ngx_msec_t  after;

    after = NGX_MCP_RETRY;

    if (job->status >= NGX_HTTP_BAD_REQUEST
        && job->status < NGX_HTTP_INTERNAL_SERVER_ERROR)
    {
        /* the server would refuse a repeated request, too */
        return;
    }

    if (job->failure == NGX_MCP_FAILED_CUT_SHORT
        && (job->sse.id.len || job->last_id.len)
        && job->sender.era == NGX_MCP_LEGACY)
    {
        if (ngx_mcp_job_last_id(job) != NGX_OK) {
            return;
        }

        if (job->sse.retry) {
            after = ngx_max(job->sse.retry, NGX_MCP_JOB_RETRY_MIN);
            after = ngx_min(after, NGX_MCP_JOB_RETRY_MAX);
        }

    } else if (!ngx_mcp_job_is_poll(job)
               && (job->connected || !(job->last_id.len || job->answers)))
    {
        return;
    }

    if (job->resumed++ == NGX_MCP_JOB_RESUMES) {
        return;
    }

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_CUT) == NGX_OK) {
        job->failure = NGX_MCP_FAILED_NOT;
        job->resume_at = ngx_current_msec + after;
    }
}


/*
 * With questions open, "tasks/result" is not repeated: the upstream would ask
 * them again.
 */

static ngx_uint_t
ngx_mcp_job_is_poll(ngx_mcp_job_t *job)
{
    return job->remote.len && !job->answers
           && !ngx_mcp_job_is_asked(job->state)
           && job->failure != NGX_MCP_FAILED_NOT_VALID
           && job->failure != NGX_MCP_FAILED_SHUTDOWN;
}


static ngx_int_t
ngx_mcp_job_last_id(ngx_mcp_job_t *job)
{
    u_char     *p;
    ngx_str_t  *id;

    id = job->sse.id.len ? &job->sse.id : &job->last_id;

    for (p = id->data; p < id->data + id->len; p++) {
        if (*p < 0x20 || *p == 0x7f) {
            /* not allowed in the value of a header */
            return NGX_ERROR;
        }
    }

    if (job->last_id.data == NULL) {
        job->last_id.data = ngx_pnalloc(job->pool, NGX_MCP_SSE_ID);
        if (job->last_id.data == NULL) {
            return NGX_ERROR;
        }
    }

    job->last_id.len = id->len;
    ngx_memmove(job->last_id.data, id->data, id->len);

    return NGX_OK;
}


/* Sets the reason of the failure of a request that ended without a result. */

static void
ngx_mcp_job_set_failure(ngx_mcp_job_t *job, ngx_mcp_detached_t *d)
{
    ngx_uint_t            own, silent;
    ngx_http_upstream_t  *u;

    u = d->r->upstream;

    /* timers may expire early: nginx does not move them by a short time */

    silent = (u && ngx_current_msec - job->last_read + NGX_TIMER_LAZY_DELAY
                   >= u->conf->read_timeout);

    /* the response is nginx's own: the upstream's was not complete */

    own = (u && !u->header_sent && job->status != u->headers_in.status_n);

    if (d->r->connection->close) {
        job->failure = NGX_MCP_FAILED_SHUTDOWN;

    } else if (u && !job->connected) {
        job->failure = NGX_MCP_FAILED_UNREACHABLE;

    } else if (silent || (own && job->status == NGX_HTTP_GATEWAY_TIME_OUT)) {
        job->failure = NGX_MCP_FAILED_TIMED_OUT;

    } else if (job->last_id.len && job->status != NGX_HTTP_OK) {
        /* the server refused to resume the stream, not the call */
        job->failure = NGX_MCP_FAILED_CUT_SHORT;

    } else if (job->status >= NGX_HTTP_SPECIAL_RESPONSE
               && !(own && job->status == NGX_HTTP_BAD_GATEWAY))
    {
        job->failure = NGX_MCP_FAILED_BAD_STATUS;

    } else if (job->invalid
               || (d->header && job->status != NGX_HTTP_OK && !own))
    {
        job->failure = NGX_MCP_FAILED_NOT_VALID;

    } else {
        job->failure = NGX_MCP_FAILED_CUT_SHORT;
    }
}


/* Tells if any of the servers tried may have received the request. */

ngx_uint_t
ngx_mcp_job_connected(ngx_http_request_t *r)
{
    ngx_uint_t                  i;
    ngx_http_upstream_state_t  *state;

    if (r->upstream_states == NULL) {
        return 0;
    }

    state = r->upstream_states->elts;

    for (i = 0; i < r->upstream_states->nelts; i++) {
        if (state[i].peer && state[i].connect_time != (ngx_msec_t) -1) {
            return 1;
        }
    }

    return 0;
}


/* A response with an error status may have a JSON-RPC error in its body. */

static void
ngx_mcp_job_refusal(ngx_mcp_job_t *job)
{
    ngx_str_t         text;
    const char       *err;
    ngx_mcp_json_t    message, error;
    ngx_mcp_member_t  members[] = {
        { ngx_string("error"), &error }
    };

    text.data = job->text;
    text.len = job->len;

    if (text.len
        && ngx_mcp_json_parse(&text, &message, &err) == NGX_OK
        && message.type == NGX_MCP_JSON_OBJECT
        && ngx_mcp_json_members(&message, members, 1) == NGX_OK
        && ngx_mcp_job_is_error(&error)
        && !ngx_mcp_job_as_task(job, &error))
    {
        ngx_mcp_job_refused(job, &error);
    }
}


/* Tells if a value is a valid JSON-RPC error object. */

ngx_uint_t
ngx_mcp_job_is_error(ngx_mcp_json_t *error)
{
    int64_t           n;
    ngx_mcp_json_t    code, message;
    ngx_mcp_member_t  members[] = {
        { ngx_string("code"), &code },
        { ngx_string("message"), &message }
    };

    return error->type == NGX_MCP_JSON_OBJECT
           && ngx_mcp_json_members(error, members, 2) == NGX_OK
           && ngx_mcp_json_integer(&code, &n) == NGX_OK
           && message.type == NGX_MCP_JSON_STRING;
}


/* The handler of the reader for server-sent events. */

static ngx_int_t
ngx_mcp_job_event_data(void *data, ngx_mcp_sse_reader_t *sse, ngx_str_t *text)
{
    ngx_mcp_job_t *job = data;

    ngx_pool_t  *pool;

    /* events after the response and events without data are ignored */

    if (!ngx_mcp_job_is_open(job->state) || job->renew || text->len == 0) {
        return NGX_OK;
    }

    job->resumed = 0;

    pool = ngx_create_pool(2048, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    job->message = pool;

    ngx_mcp_job_message(job, text, pool);

    if (job->message) {
        ngx_destroy_pool(job->message);
        job->message = NULL;
    }

    if (job->state == NGX_MCP_JOB_ENDING || job->state == NGX_MCP_JOB_KEPT) {
        ngx_mcp_job_keep_text(job, text);
    }

    return NGX_OK;
}


/* Takes the event's data, since job->result refers to it. */

static void
ngx_mcp_job_keep_text(ngx_mcp_job_t *job, ngx_str_t *text)
{
    if (job->text) {
        ngx_free(job->text);
    }

    job->text = text->data;
    job->len = 0;
    job->size = 0;

    text->data = NULL;
}


/* An invalid message is skipped, but it may be why the call fails later. */

static void
ngx_mcp_job_message(ngx_mcp_job_t *job, ngx_str_t *text, ngx_pool_t *pool)
{
    ngx_mcp_rpc_t        rpc;
    ngx_mcp_rpc_error_t  err;

    if (ngx_mcp_rpc_parse(pool, text, NULL, &rpc, &err) != NGX_OK) {
        job->invalid = 1;
        return;
    }

    switch (rpc.kind) {

    case NGX_MCP_RPC_RESPONSE:
        ngx_mcp_job_response(job, &rpc);
        return;

    case NGX_MCP_RPC_NOTIFICATION:
        ngx_mcp_job_notified(job, &rpc);
        return;

    default:
        if (job->stream && job->sender.era == NGX_MCP_LEGACY) {
            ngx_mcp_job_question(job, &rpc);

        } else {
            job->invalid = 1;
        }
    }
}


static void
ngx_mcp_job_response(ngx_mcp_job_t *job, ngx_mcp_rpc_t *rpc)
{
    ngx_mcp_json_t  id;

    id.text = job->rpc_id;
    id.type = NGX_MCP_JSON_STRING;

    if (!ngx_mcp_rpc_same_id(&rpc->id, &id)) {
        job->invalid = 1;
        return;
    }

    if (ngx_mcp_job_is_error(&rpc->error)) {

        if (!ngx_mcp_job_as_task(job, &rpc->error)) {
            ngx_mcp_job_refused(job, &rpc->error);
        }

        return;
    }

    if (rpc->result.type == NGX_MCP_JSON_OBJECT) {
        ngx_mcp_job_result(job, &rpc->result);
        return;
    }

    job->invalid = 1;
}


static void
ngx_mcp_job_result(ngx_mcp_job_t *job, ngx_mcp_json_t *object)
{
    if (job->remote.len && job->sender.era == NGX_MCP_MODERN) {
        ngx_mcp_job_followed(job, object);

    } else if (!ngx_mcp_job_follow(job, object)) {
        ngx_mcp_job_outcome(job, object);
    }
}


/* Handles the result of a call, or of a task of the upstream. */

void
ngx_mcp_job_outcome(ngx_mcp_job_t *job, ngx_mcp_json_t *object)
{
    ngx_mcp_result_t  result;
    static ngx_str_t  input = ngx_string("input_required");
    static ngx_str_t  task = ngx_string("task");

    ngx_mcp_result_read(object, &result);

    if (result.type.type == NGX_MCP_JSON_DUPLICATE
        || result.is_error.type == NGX_MCP_JSON_DUPLICATE
        || result.meta.type == NGX_MCP_JSON_DUPLICATE
        || (result.type.type == NGX_MCP_JSON_STRING
            && ngx_mcp_json_is(&result.type, &task)))
    {
        /* a call has asked for a task only if ngx_mcp_job_follow() takes it */
        job->failure = NGX_MCP_FAILED_NOT_VALID;
        ngx_mcp_job_failed(job);
        return;
    }

    if (job->sender.era == NGX_MCP_MODERN
        && result.type.type == NGX_MCP_JSON_STRING
        && ngx_mcp_json_is(&result.type, &input))
    {
        ngx_mcp_job_input_required(job, object);
        return;
    }

    ngx_mcp_job_complete(job, &object->text, result.flags);
}


static void
ngx_mcp_job_notified(ngx_mcp_job_t *job, ngx_mcp_rpc_t *rpc)
{
    ngx_uint_t  i;
    static struct {
        ngx_str_t  method;
        void     (*handler)(ngx_mcp_job_t *job, ngx_mcp_json_t *params);
    } known[] = {
        { ngx_string("notifications/progress"),
          ngx_mcp_job_progress },
        { ngx_string("notifications/message"),
          ngx_mcp_job_logged },
        { ngx_string("notifications/cancelled"),
          ngx_mcp_job_withdrawn }
    };

    if (rpc->params.type != NGX_MCP_JSON_OBJECT) {
        return;
    }

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (rpc->method.len == known[i].method.len
            && ngx_strncmp(rpc->method.data, known[i].method.data,
                           rpc->method.len)
               == 0)
        {
            known[i].handler(job, &rpc->params);
            return;
        }
    }
}


/* Ignores progress of other calls and invalid values. */

static void
ngx_mcp_job_progress(ngx_mcp_job_t *job, ngx_mcp_json_t *params)
{
    double             value, of;
    ngx_str_t          text;
    ngx_mcp_note_t    *n;
    ngx_mcp_json_t     token, progress, total, message, own;
    ngx_mcp_member_t   members[] = {
        { ngx_string("progressToken"), &token },
        { ngx_string("progress"), &progress },
        { ngx_string("total"), &total },
        { ngx_string("message"), &message }
    };

    own.text = job->token;
    own.type = (own.text.data[0] == '"') ? NGX_MCP_JSON_STRING
                                         : NGX_MCP_JSON_NUMBER;

    if (ngx_mcp_json_members(params, members, 4) != NGX_OK
        || !ngx_mcp_rpc_same_id(&token, &own)
        || ngx_mcp_json_real(&progress, &value) != NGX_OK
        || value < 0)
    {
        return;
    }

    if (ngx_mcp_json_real(&total, &of) != NGX_OK || of < value) {
        of = -1;
    }

    ngx_str_null(&text);

    if (message.type == NGX_MCP_JSON_STRING
        && message.text.len <= NGX_MCP_MAX_MESSAGE)
    {
        text = message.text;
    }

    n = ngx_mcp_job_note_new(job, &text);
    if (n == NULL) {
        return;
    }

    n->progress = value;
    n->total = of;

    ngx_mcp_job_note(job, n);
}


/* A log message that is a string becomes the task's status message. */

static void
ngx_mcp_job_logged(ngx_mcp_job_t *job, ngx_mcp_json_t *params)
{
    ngx_mcp_note_t    *n;
    ngx_mcp_json_t     level, data;
    ngx_mcp_member_t   members[] = {
        { ngx_string("level"), &level },
        { ngx_string("data"), &data }
    };
    static ngx_str_t   debug = ngx_string("debug");

    if (ngx_mcp_json_members(params, members, 2) != NGX_OK
        || data.type != NGX_MCP_JSON_STRING
        || data.text.len > NGX_MCP_MAX_MESSAGE
        || level.type != NGX_MCP_JSON_STRING
        || ngx_mcp_json_is(&level, &debug))
    {
        return;
    }

    n = ngx_mcp_job_note_new(job, &data.text);

    if (n) {
        ngx_mcp_job_note(job, n);
    }
}
