
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Sends the call to the upstream: the first request, further round trips,
 * repeated requests, and the cancellation.
 */


#include "ngx_mcp_job.h"
#include "ngx_mcp_sse_writer.h"
#include "ngx_mcp_hash.h"


static void ngx_mcp_job_meta(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_mcp_json_t *meta);
static void ngx_mcp_job_capabilities(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_mcp_json_t *capabilities);
static void ngx_mcp_job_extensions(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_mcp_json_t *extensions);
static void ngx_mcp_job_separate(ngx_mcp_out_t *out);
static void ngx_mcp_job_member(ngx_mcp_out_t *out, ngx_mcp_json_t *key);
static ngx_int_t ngx_mcp_job_token(ngx_mcp_job_t *job, ngx_mcp_json_t *meta);
static void ngx_mcp_job_clear(ngx_mcp_job_t *job);
static ngx_int_t ngx_mcp_job_request(ngx_mcp_job_t *job, ngx_str_t *body);
static ngx_int_t ngx_mcp_job_later(ngx_mcp_job_t *job);
static ngx_int_t ngx_mcp_job_body(ngx_mcp_job_t *job, ngx_str_t *responses,
    ngx_pool_t *pool, ngx_str_t *body);
static void ngx_mcp_job_next_params(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_str_t *responses);
static void ngx_mcp_job_cancel_call(ngx_mcp_job_t *job, ngx_uint_t state,
    const char *reason);


/*
 * Copies the client's params without the members that request a task, so that
 * the upstream does not create one unless its tool requires it, and adds a
 * progress token, so that it reports progress.  NGX_ERROR: no memory.
 */

ngx_int_t
ngx_mcp_job_params(ngx_mcp_job_t *job, ngx_mcp_json_t *params)
{
    ngx_mcp_out_t        out;
    ngx_mcp_json_t       key, value, meta;
    ngx_mcp_json_iter_t  it;
    static ngx_str_t     task = ngx_string("task");
    static ngx_str_t     meta_key = ngx_string("_meta");

    meta.type = NGX_MCP_JSON_NONE;

    ngx_mcp_out_init(&out, job->pool, params->text.len + 128);
    ngx_mcp_out_lit(&out, "{");

    if (job->as_task && job->sender.era == NGX_MCP_LEGACY) {
        ngx_mcp_out_lit(&out, "\"task\":{}");
    }

    ngx_mcp_json_iter(&it, params);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (ngx_mcp_json_is(&key, &meta_key)) {
            meta = value;
            continue;
        }

        if (job->sender.era == NGX_MCP_LEGACY
            && ngx_mcp_json_is(&key, &task))
        {
            continue;
        }

        ngx_mcp_job_member(&out, &key);
        ngx_mcp_out_str(&out, &value.text);
    }

    if (ngx_mcp_job_token(job, &meta) != NGX_OK
        || ngx_mcp_sender_trace(&job->sender, &meta) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_mcp_job_meta(job, &out, &meta);
    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_end(&out, &job->params);
}


/* The token is the client's, or else one that no other job has. */

static ngx_int_t
ngx_mcp_job_token(ngx_mcp_job_t *job, ngx_mcp_json_t *meta)
{
    u_char           *p;
    uint64_t          hash;
    ngx_mcp_json_t    token;
    ngx_mcp_member_t  members[] = {
        { ngx_string("progressToken"), &token }
    };

    if (meta->type == NGX_MCP_JSON_OBJECT) {
        (void) ngx_mcp_json_members(meta, members, 1);

        if (token.type != NGX_MCP_JSON_NONE) {
            job->token.len = token.text.len;
            job->token.data = ngx_pstrdup(job->pool, &token.text);
            return job->token.data ? NGX_OK : NGX_ERROR;
        }
    }

    p = ngx_pnalloc(job->pool, sizeof("\"nginx-\"") + 16);
    if (p == NULL) {
        return NGX_ERROR;
    }

    hash = ngx_mcp_siphash(job->zone->secret,
                           (u_char *) &job->holder, sizeof(job->holder));

    job->token.data = p;

    p = ngx_cpymem(p, "\"nginx-", sizeof("\"nginx-") - 1);
    p = ngx_mcp_hex(p, &hash, sizeof(hash));
    *p++ = '"';

    job->token.len = p - job->token.data;

    return NGX_OK;
}


static void
ngx_mcp_job_meta(ngx_mcp_job_t *job, ngx_mcp_out_t *out, ngx_mcp_json_t *meta)
{
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;
    static ngx_str_t     token = ngx_string("progressToken");
    static ngx_str_t     capabilities = ngx_string(
                            "io.modelcontextprotocol/clientCapabilities");

    ngx_mcp_job_separate(out);

    ngx_mcp_out_lit(out, "\"_meta\":{");

    if (meta->type == NGX_MCP_JSON_OBJECT) {
        ngx_mcp_json_iter(&it, meta);

        while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

            if (ngx_mcp_json_is(&key, &token)) {
                continue;
            }

            ngx_mcp_job_member(out, &key);

            if (value.type == NGX_MCP_JSON_OBJECT
                && ngx_mcp_json_is(&key, &capabilities))
            {
                ngx_mcp_job_capabilities(job, out, &value);

            } else {
                ngx_mcp_out_str(out, &value.text);
            }
        }
    }

    ngx_mcp_job_separate(out);

    ngx_mcp_out_lit(out, "\"progressToken\":");
    ngx_mcp_out_str(out, &job->token);
    ngx_mcp_out_lit(out, "}");
}


static void
ngx_mcp_job_capabilities(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_mcp_json_t *capabilities)
{
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;
    static ngx_str_t     extensions = ngx_string("extensions");

    ngx_mcp_out_lit(out, "{");
    ngx_mcp_json_iter(&it, capabilities);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        ngx_mcp_job_member(out, &key);

        if (value.type == NGX_MCP_JSON_OBJECT
            && ngx_mcp_json_is(&key, &extensions))
        {
            ngx_mcp_job_extensions(job, out, &value);

        } else {
            ngx_mcp_out_str(out, &value.text);
        }
    }

    ngx_mcp_out_lit(out, "}");
}


static void
ngx_mcp_job_extensions(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_mcp_json_t *extensions)
{
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;
    static ngx_str_t     tasks = ngx_string("io.modelcontextprotocol/tasks");
    static ngx_str_t     extended = ngx_string(NGX_MCP_EXTENSION);
    static ngx_str_t     extended_old = ngx_string(NGX_MCP_EXTENSION_OLD);

    ngx_mcp_out_lit(out, "{");
    ngx_mcp_json_iter(&it, extensions);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (!ngx_mcp_json_is(&key, &tasks)
            && !ngx_mcp_json_is(&key, &extended)
            && !ngx_mcp_json_is(&key, &extended_old))
        {
            ngx_mcp_job_member(out, &key);
            ngx_mcp_out_str(out, &value.text);
        }
    }

    if (job->as_task) {
        ngx_mcp_job_separate(out);
        ngx_mcp_out_lit(out, "\"io.modelcontextprotocol/tasks\":{}");
    }

    ngx_mcp_out_lit(out, "}");
}


static void
ngx_mcp_job_separate(ngx_mcp_out_t *out)
{
    if (out->pos && out->pos[-1] != '{') {
        ngx_mcp_out_lit(out, ",");
    }
}


static void
ngx_mcp_job_member(ngx_mcp_out_t *out, ngx_mcp_json_t *key)
{
    ngx_mcp_job_separate(out);

    ngx_mcp_out_str(out, &key->text);
    ngx_mcp_out_lit(out, ":");
}


/*
 * Starts a round trip; responses is NULL for the first one of an attempt.
 * NGX_ERROR: no memory or no connection.
 */

ngx_int_t
ngx_mcp_job_send(ngx_mcp_job_t *job, ngx_str_t *responses)
{
    ngx_str_t    body;
    ngx_pool_t  *pool;

    /*
     * Memory of the previous round trip is freed, since there may be many.
     * Most calls have only one, which uses the pool of the job.
     */

    pool = job->round_trips ? ngx_create_pool(4096, ngx_cycle->log)
                            : job->pool;

    if (pool == NULL) {
        return NGX_ERROR;
    }

    if (ngx_mcp_job_body(job, responses, pool, &body) != NGX_OK) {
        ngx_mcp_job_drop(job, pool);
        return NGX_ERROR;
    }

    ngx_mcp_job_drop(job, job->round_pool);
    job->round_pool = pool;
    job->body = body;
    job->resumed = 0;
    job->last_id.len = 0;
    ngx_str_null(&job->request_state);
    job->answers = (responses != NULL);
    ngx_mcp_job_clear(job);

    return ngx_mcp_job_request(job, &job->body);
}


/* Destroys the pool of a round trip, unless it is the pool of the job. */

void
ngx_mcp_job_drop(ngx_mcp_job_t *job, ngx_pool_t *round_pool)
{
    if (round_pool && round_pool != job->pool) {
        ngx_destroy_pool(round_pool);
    }
}


/* Resets the state of the response. */

static void
ngx_mcp_job_clear(ngx_mcp_job_t *job)
{
    job->invalid = 0;
    job->stream = 0;
    job->failure = NGX_MCP_FAILED_NOT;
    job->status = 0;
    job->len = 0;

    ngx_mcp_sse_reader_free(&job->sse);
    ngx_mcp_sse_reader_init(&job->sse, ngx_mcp_job_max(job), ngx_cycle->log);
}


static ngx_int_t
ngx_mcp_job_request(ngx_mcp_job_t *job, ngx_str_t *body)
{
    job->call = ngx_mcp_detached(&job->sender, body, &job->last_id,
                                 &ngx_mcp_job_reader, job);
    if (job->call == NULL) {
        return ngx_mcp_job_later(job);
    }

    job->requests++;
    job->last_read = ngx_current_msec;
    ngx_mcp_detached_start(job->call);

    return NGX_OK;
}


/*
 * The request could not be created.  If it would resume a stream or has
 * answers, it is sent later.
 */

static ngx_int_t
ngx_mcp_job_later(ngx_mcp_job_t *job)
{
    if (!(job->last_id.len || job->answers || job->remote.len)
        || job->resumed++ == NGX_MCP_JOB_RESUMES)
    {
        return NGX_ERROR;
    }

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_CUT) != NGX_OK) {
        return NGX_ERROR;
    }

    job->resume_at = ngx_current_msec + NGX_MCP_RETRY;
    ngx_mcp_job_wait(job, NGX_MCP_RETRY);

    return NGX_OK;
}


/*
 * Repeats a request.  Legacy: a GET for the events after the last one of a
 * stream that ended early.  Modern: a round trip with answers, which would be
 * lost if the call started again.  A call that has to be a task, and requests
 * about a task of the upstream, are new requests.
 */

ngx_int_t
ngx_mcp_job_resume(ngx_mcp_job_t *job)
{
    ngx_msec_t  retry;

    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_RESUMED) != NGX_OK) {
        return NGX_ERROR;
    }

    if (job->renew) {
        job->renew = 0;
        return ngx_mcp_job_send(job, NULL);
    }

    /* the delay is valid until the server changes it */

    retry = job->sse.retry;
    ngx_mcp_job_clear(job);
    job->sse.retry = retry;

    return ngx_mcp_job_request(job, job->last_id.len ? NULL
                                                     : &job->body);
}


static ngx_int_t
ngx_mcp_job_body(ngx_mcp_job_t *job, ngx_str_t *responses, ngx_pool_t *pool,
    ngx_str_t *body)
{
    u_char         *p;
    u_char          data[sizeof(job->id) + sizeof(job->holder)];
    uint64_t        hash;
    ngx_mcp_out_t   out;

    /*
     * The id is unique for each round trip and each attempt, in all processes.
     * The client's id cannot be used: the client may use it again while the
     * upstream still runs this call.
     */

    p = job->rpc_id.data;

    if (p == NULL) {
        p = ngx_pnalloc(job->pool, sizeof("\"nginx--\"") + 16 + NGX_INT_T_LEN);
        if (p == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_memcpy(data, &job->id, sizeof(job->id));
    ngx_memcpy(data + sizeof(job->id), &job->holder, sizeof(job->holder));

    hash = ngx_mcp_siphash(job->zone->secret, data, sizeof(data));

    job->rpc_id.data = p;

    p = ngx_cpymem(p, "\"nginx-", sizeof("\"nginx-") - 1);
    p = ngx_mcp_hex(p, &hash, sizeof(hash));
    p = ngx_sprintf(p, "-%ui\"", ++job->round_trips);

    job->rpc_id.len = p - job->rpc_id.data;

    ngx_mcp_out_init(&out, pool, job->params.len + 256
                                        + (responses ? responses->len : 0));
    ngx_mcp_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    ngx_mcp_out_str(&out, &job->rpc_id);
    ngx_mcp_out_lit(&out, ",\"method\":");

    if (job->remote.len) {

        if (ngx_mcp_job_follow_body(job, &out, responses) != NGX_OK) {
            return NGX_ERROR;
        }

    } else if (responses) {
        ngx_mcp_out_lit(&out, "\"tools/call\",\"params\":");
        ngx_mcp_job_next_params(job, &out, responses);

    } else {
        ngx_mcp_out_lit(&out, "\"tools/call\",\"params\":");
        ngx_mcp_out_str(&out, &job->params);
    }

    ngx_mcp_out_lit(&out, "}");

    return ngx_mcp_out_end(&out, body);
}


/*
 * Writes the params with the answers and the request state.  There always is
 * a member before them, since ngx_mcp_job_params() adds "_meta".
 */

static void
ngx_mcp_job_next_params(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_str_t *responses)
{
    ngx_mcp_json_t       params, key, value;
    ngx_mcp_json_iter_t  it;
    static ngx_str_t     before = ngx_string("inputResponses");
    static ngx_str_t     state = ngx_string("requestState");

    params.type = NGX_MCP_JSON_OBJECT;
    params.text = job->params;

    ngx_mcp_out_lit(out, "{");
    ngx_mcp_json_iter(&it, &params);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (!ngx_mcp_json_is(&key, &before)
            && !ngx_mcp_json_is(&key, &state))
        {
            ngx_mcp_job_member(out, &key);
            ngx_mcp_out_str(out, &value.text);
        }
    }

    ngx_mcp_out_lit(out, ",\"inputResponses\":");
    ngx_mcp_out_str(out, responses);

    if (job->request_state.len) {
        ngx_mcp_out_lit(out, ",\"requestState\":");
        ngx_mcp_out_str(out, &job->request_state);
    }

    ngx_mcp_out_lit(out, "}");
}


/* The task has ended, or this job does not own it any more. */

void
ngx_mcp_job_cancel(ngx_mcp_job_t *job)
{
    ngx_uint_t  state;

    state = job->state;
    ngx_mcp_job_over(job);

    ngx_mcp_job_cancel_call(job, state, "The task has ended");

    if (job->call) {
        ngx_mcp_detached_end(job->call);
    }
}


/* The run timeout has ended the attempt, and another one follows. */

void
ngx_mcp_job_repeat_attempt(ngx_mcp_job_t *job)
{
    ngx_mcp_job_cancel_call(job, job->state, "The call timed out");
    ngx_mcp_job_restart(job);
}


/*
 * A modern server treats the closed request as a cancellation; a legacy server
 * needs a notification.
 */

static void
ngx_mcp_job_cancel_call(ngx_mcp_job_t *job, ngx_uint_t state,
    const char *reason)
{
    ngx_str_t      message;
    ngx_mcp_out_t  out;

    if (job->remote.len) {

        /* a task of the upstream, not a call */

        if (ngx_mcp_job_is_open(state) || state == NGX_MCP_JOB_INPUT_REQUIRED) {
            ngx_mcp_job_follow_cancel(job);
        }

        return;
    }

    if (job->sender.era != NGX_MCP_LEGACY || !ngx_mcp_job_is_open(state)
        || (job->call == NULL && !ngx_mcp_job_is_resuming(state)))
    {
        return;
    }

    ngx_mcp_out_init(&out, job->pool, 256);
    ngx_mcp_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"method\":"
                    "\"notifications/cancelled\",\"params\":"
                    "{\"requestId\":");
    ngx_mcp_out_str(&out, &job->rpc_id);
    ngx_mcp_out_lit(&out, ",\"reason\":\"");
    ngx_mcp_out_text(&out, reason);
    ngx_mcp_out_lit(&out, "\"}}");

    if (ngx_mcp_out_end(&out, &message) == NGX_OK) {
        (void) ngx_mcp_job_notify(job, &message, 0);
    }
}
