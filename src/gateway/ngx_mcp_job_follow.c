
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Tools that the upstream runs only as tasks of its own.
 *
 * A call is first sent without a task.  If the upstream responds that the tool
 * requires one, the call is sent again as a task, and the upstream's task is
 * followed until it ends: legacy by "tasks/result", which waits and carries
 * questions like the stream of a call; modern by "tasks/get", whose questions
 * are answered by "tasks/update".
 */


#include "ngx_mcp_job.h"
#include "ngx_mcp_code.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_sse_writer.h"


/* limits of the delay between two polls, in milliseconds */
#define NGX_MCP_FOLLOW_MIN  200
#define NGX_MCP_FOLLOW_MAX  60000

/* maximum length of an id of the upstream's task, as JSON */
#define NGX_MCP_FOLLOW_ID  256

/* maximum number of questions that one task of the upstream may ask */
#define NGX_MCP_FOLLOW_KEYS  1024


static ngx_uint_t ngx_mcp_job_task_required(ngx_mcp_job_t *job,
    ngx_mcp_json_t *error);
static ngx_int_t ngx_mcp_job_remote(ngx_mcp_job_t *job, ngx_mcp_json_t *id);
static void ngx_mcp_job_renew(ngx_mcp_job_t *job, ngx_msec_t delay);
static ngx_msec_t ngx_mcp_job_poll_delay(ngx_mcp_json_t *interval);
static void ngx_mcp_job_status_message(ngx_mcp_job_t *job,
    ngx_mcp_json_t *message);
static void ngx_mcp_job_follow_input(ngx_mcp_job_t *job,
    ngx_mcp_json_t *requests, ngx_msec_t delay);
static ngx_uint_t ngx_mcp_job_was_answered(ngx_mcp_job_t *job,
    ngx_str_t *key);
static ngx_int_t ngx_mcp_job_remember(ngx_mcp_job_t *job,
    ngx_str_t *responses);
static void ngx_mcp_job_out_meta(ngx_mcp_job_t *job, ngx_mcp_out_t *out);
static void ngx_mcp_job_not_valid(ngx_mcp_job_t *job);


/* values of headers are preceded by a space, see ngx_mcp_sender_str() */

#define ngx_mcp_follow_method(str)                                            \
    { sizeof(str) - 1, (u_char *) " " str + 1 }

static ngx_str_t  ngx_mcp_follow_call = ngx_mcp_follow_method("tools/call");
static ngx_str_t  ngx_mcp_follow_get = ngx_mcp_follow_method("tasks/get");
static ngx_str_t  ngx_mcp_follow_result =
                                      ngx_mcp_follow_method("tasks/result");
static ngx_str_t  ngx_mcp_follow_update =
                                      ngx_mcp_follow_method("tasks/update");
static ngx_str_t  ngx_mcp_follow_end = ngx_mcp_follow_method("tasks/cancel");


/*
 * Sends the call again as a task if the error says that the tool requires one;
 * the upstream has not run it.  Returns 0 if the error is the outcome.
 */

ngx_uint_t
ngx_mcp_job_as_task(ngx_mcp_job_t *job, ngx_mcp_json_t *error)
{
    ngx_mcp_json_t  params;

    /* an upstream that has asked questions has run the tool */

    if (job->as_task
        || job->state != NGX_MCP_JOB_CALLING || job->questions.nelts
        || !ngx_mcp_job_task_required(job, error))
    {
        return 0;
    }

    params.type = NGX_MCP_JSON_OBJECT;
    params.text = job->params;

    job->as_task = 1;

    if (ngx_mcp_job_params(job, &params) != NGX_OK) {
        return 0;
    }

    ngx_mcp_job_renew(job, 0);

    return 1;
}


static ngx_uint_t
ngx_mcp_job_task_required(ngx_mcp_job_t *job, ngx_mcp_json_t *error)
{
    int64_t           n;
    ngx_mcp_json_t    code, data, required, extensions, tasks;
    ngx_mcp_member_t  members[] = {
        { ngx_string("code"), &code },
        { ngx_string("data"), &data }
    };
    ngx_mcp_member_t  in_data[] = {
        { ngx_string("requiredCapabilities"), &required }
    };
    ngx_mcp_member_t  in_required[] = {
        { ngx_string("extensions"), &extensions }
    };
    ngx_mcp_member_t  in_extensions[] = {
        { ngx_string("io.modelcontextprotocol/tasks"), &tasks }
    };

    if (ngx_mcp_json_members(error, members, 2) != NGX_OK
        || ngx_mcp_json_integer(&code, &n) != NGX_OK)
    {
        return 0;
    }

    if (job->sender.era == NGX_MCP_LEGACY) {
        return n == NGX_MCP_RPC_NO_METHOD;
    }

    return n == NGX_MCP_RPC_CAPABILITY
           && ngx_mcp_json_members(&data, in_data, 1) == NGX_OK
           && ngx_mcp_json_members(&required, in_required, 1) == NGX_OK
           && ngx_mcp_json_members(&extensions, in_extensions, 1) == NGX_OK
           && tasks.type != NGX_MCP_JSON_NONE;
}


/*
 * Starts to follow the task if the result is one and the call has asked for
 * it.  Returns 0 if the result is not a task.
 */

ngx_uint_t
ngx_mcp_job_follow(ngx_mcp_job_t *job, ngx_mcp_json_t *result)
{
    ngx_mcp_json_t    inner, type, task, id, interval;
    ngx_mcp_member_t  kinds[] = {
        { ngx_string("task"), &inner },
        { ngx_string("resultType"), &type }
    };
    ngx_mcp_member_t  members[] = {
        { ngx_string("taskId"), &id },
        { ngx_string("pollIntervalMs"), &interval }
    };
    static ngx_str_t  is_task = ngx_string("task");

    if (!job->as_task || job->remote.len
        || ngx_mcp_json_members(result, kinds, 2) != NGX_OK)
    {
        return 0;
    }

    task = (job->sender.era == NGX_MCP_LEGACY) ? inner : *result;

    if (task.type != NGX_MCP_JSON_OBJECT
        || (job->sender.era == NGX_MCP_MODERN
            && !(type.type == NGX_MCP_JSON_STRING
                 && ngx_mcp_json_is(&type, &is_task))))
    {
        return 0;
    }

    if (ngx_mcp_json_members(&task, members, 2) != NGX_OK
        || job->state != NGX_MCP_JOB_CALLING || job->questions.nelts
        || ngx_mcp_job_remote(job, &id) != NGX_OK)
    {
        ngx_mcp_job_not_valid(job);
        return 1;
    }

    ngx_mcp_job_renew(job, job->sender.era == NGX_MCP_LEGACY
                           ? 0 : ngx_mcp_job_poll_delay(&interval));

    return 1;
}


/*
 * Keeps the id.  Modern requests repeat it in a header, so only ids are
 * accepted that are the same there.
 */

static ngx_int_t
ngx_mcp_job_remote(ngx_mcp_job_t *job, ngx_mcp_json_t *id)
{
    u_char      *p;
    ngx_uint_t   i;

    if (id->type != NGX_MCP_JSON_STRING
        || id->text.len <= 2 || id->text.len > NGX_MCP_FOLLOW_ID
        || id->text.data[1] == '=')
    {
        return NGX_ERROR;
    }

    for (i = 1; i < id->text.len - 1; i++) {
        if (id->text.data[i] <= ' ' || id->text.data[i] >= 0x7f
            || id->text.data[i] == '\\')
        {
            return NGX_ERROR;
        }
    }

    /* the id twice: as JSON, and as the value of a header */

    p = ngx_pnalloc(job->pool, 2 * id->text.len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    job->remote.data = p;
    job->remote.len = id->text.len;
    p = ngx_cpymem(p, id->text.data, id->text.len);

    *p++ = ' ';
    job->remote_name.data = p;
    job->remote_name.len = id->text.len - 2;
    p = ngx_cpymem(p, id->text.data + 1, id->text.len - 2);
    *p = '\0';

    job->remote_message = 0;
    job->remote_keys.nelts = 0;

    return NGX_OK;
}


/* Sends the next request after the delay, when the current one has ended. */

static void
ngx_mcp_job_renew(ngx_mcp_job_t *job, ngx_msec_t delay)
{
    if (ngx_mcp_job_enter(job, NGX_MCP_JOB_EV_CUT) == NGX_OK) {
        job->renew = 1;
        job->resume_at = ngx_current_msec + delay;
        ngx_mcp_job_post(job);
    }
}


static ngx_msec_t
ngx_mcp_job_poll_delay(ngx_mcp_json_t *interval)
{
    int64_t  n;

    if (ngx_mcp_json_integer(interval, &n) != NGX_OK) {
        n = NGX_MCP_RETRY;
    }

    n = ngx_max(n, NGX_MCP_FOLLOW_MIN);

    return (ngx_msec_t) ngx_min(n, NGX_MCP_FOLLOW_MAX);
}


/* Modern: handles the response to a request about the upstream's task. */

void
ngx_mcp_job_followed(ngx_mcp_job_t *job, ngx_mcp_json_t *result)
{
    ngx_msec_t        delay;
    ngx_mcp_json_t    status, message, interval, requests, value, error;
    ngx_mcp_member_t  members[] = {
        { ngx_string("status"), &status },
        { ngx_string("statusMessage"), &message },
        { ngx_string("pollIntervalMs"), &interval },
        { ngx_string("inputRequests"), &requests },
        { ngx_string("result"), &value },
        { ngx_string("error"), &error }
    };
    static ngx_str_t  working = ngx_string("working");
    static ngx_str_t  input = ngx_string("input_required");
    static ngx_str_t  completed = ngx_string("completed");
    static ngx_str_t  failed = ngx_string("failed");
    static ngx_str_t  cancelled = ngx_string("cancelled");

    if (job->answers) {
        /* "tasks/update" is acknowledged */
        ngx_mcp_job_renew(job, NGX_MCP_FOLLOW_MIN);
        return;
    }

    if (ngx_mcp_json_members(result, members, 6) != NGX_OK
        || status.type != NGX_MCP_JSON_STRING)
    {
        ngx_mcp_job_not_valid(job);
        return;
    }

    delay = ngx_mcp_job_poll_delay(&interval);

    if (ngx_mcp_json_is(&status, &working)) {
        ngx_mcp_job_status_message(job, &message);
        ngx_mcp_job_renew(job, delay);

    } else if (ngx_mcp_json_is(&status, &input)) {
        ngx_mcp_job_follow_input(job, &requests, delay);

    } else if (ngx_mcp_json_is(&status, &completed)
               && value.type == NGX_MCP_JSON_OBJECT)
    {
        ngx_mcp_job_outcome(job, &value);

    } else if (ngx_mcp_json_is(&status, &failed)
               && ngx_mcp_job_is_error(&error))
    {
        ngx_mcp_job_error(job, &error.text);

    } else if (ngx_mcp_json_is(&status, &cancelled)) {
        job->failure = NGX_MCP_FAILED_CANCELLED;
        ngx_mcp_job_failed(job);

    } else {
        ngx_mcp_job_not_valid(job);
    }
}


static void
ngx_mcp_job_status_message(ngx_mcp_job_t *job, ngx_mcp_json_t *message)
{
    uint64_t         hash;
    ngx_mcp_note_t  *n;

    if (message->type != NGX_MCP_JSON_STRING
        || message->text.len > NGX_MCP_MAX_MESSAGE)
    {
        return;
    }

    /* most polls find the message of the last one */

    hash = ngx_mcp_siphash(job->zone->secret, message->text.data,
                           message->text.len);

    if (hash == job->remote_message) {
        return;
    }

    n = ngx_mcp_job_note_new(job, &message->text);

    if (n) {
        job->remote_message = hash;
        ngx_mcp_job_note(job, n);
    }
}


/*
 * Asks the questions that were not answered before: a task may show a question
 * for some time after its answer was acknowledged.
 */

static void
ngx_mcp_job_follow_input(ngx_mcp_job_t *job, ngx_mcp_json_t *requests,
    ngx_msec_t delay)
{
    ngx_uint_t           n;
    ngx_mcp_out_t        out;
    ngx_mcp_json_t       key, value, asked;
    ngx_mcp_json_iter_t  it;

    if (requests->type != NGX_MCP_JSON_OBJECT) {
        ngx_mcp_job_not_valid(job);
        return;
    }

    ngx_mcp_out_init(&out, job->round_pool, requests->text.len + 64);
    ngx_mcp_out_lit(&out, "{\"inputRequests\":{");

    n = 0;
    ngx_mcp_json_iter(&it, requests);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (ngx_mcp_job_was_answered(job, &key.text)) {
            continue;
        }

        if (n++) {
            ngx_mcp_out_lit(&out, ",");
        }

        ngx_mcp_out_str(&out, &key.text);
        ngx_mcp_out_lit(&out, ":");
        ngx_mcp_out_str(&out, &value.text);
    }

    ngx_mcp_out_lit(&out, "}}");

    if (n == 0) {
        ngx_mcp_job_renew(job, delay);
        return;
    }

    asked.type = NGX_MCP_JSON_OBJECT;

    if (ngx_mcp_out_end(&out, &asked.text) != NGX_OK) {
        ngx_mcp_job_not_valid(job);
        return;
    }

    ngx_mcp_job_input_required(job, &asked);
}


static ngx_uint_t
ngx_mcp_job_was_answered(ngx_mcp_job_t *job, ngx_str_t *key)
{
    uint64_t     hash, *known;
    ngx_uint_t   i;

    hash = ngx_mcp_siphash(job->zone->secret, key->data, key->len);
    known = job->remote_keys.elts;

    for (i = 0; i < job->remote_keys.nelts; i++) {
        if (known[i] == hash) {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_mcp_job_remember(ngx_mcp_job_t *job, ngx_str_t *responses)
{
    uint64_t             *hash;
    ngx_mcp_json_t        object, key, value;
    ngx_mcp_json_iter_t   it;

    if (job->remote_keys.elts == NULL
        && ngx_array_init(&job->remote_keys, job->pool, 4, sizeof(uint64_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    object.type = NGX_MCP_JSON_OBJECT;
    object.text = *responses;
    ngx_mcp_json_iter(&it, &object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (job->remote_keys.nelts >= NGX_MCP_FOLLOW_KEYS) {
            return NGX_ERROR;
        }

        hash = ngx_array_push(&job->remote_keys);
        if (hash == NULL) {
            return NGX_ERROR;
        }

        *hash = ngx_mcp_siphash(job->zone->secret, key.text.data,
                                key.text.len);
    }

    return NGX_OK;
}


/*
 * Writes method and params of the next request about the upstream's task;
 * responses: answers to its questions, or NULL.  NGX_ERROR: no memory, or too
 * many questions.
 */

ngx_int_t
ngx_mcp_job_follow_body(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_str_t *responses)
{
    ngx_str_t  *method;

    if (job->sender.era == NGX_MCP_LEGACY) {
        method = &ngx_mcp_follow_result;

    } else {
        method = responses ? &ngx_mcp_follow_update : &ngx_mcp_follow_get;
        ngx_mcp_sender_method(&job->sender, method, &job->remote_name);
    }

    ngx_mcp_out_lit(out, "\"");
    ngx_mcp_out_str(out, method);
    ngx_mcp_out_lit(out, "\",\"params\":{\"taskId\":");
    ngx_mcp_out_str(out, &job->remote);

    if (responses) {
        ngx_mcp_out_lit(out, ",\"inputResponses\":");
        ngx_mcp_out_str(out, responses);
    }

    ngx_mcp_job_out_meta(job, out);
    ngx_mcp_out_lit(out, "}");

    return responses ? ngx_mcp_job_remember(job, responses) : NGX_OK;
}


/* Modern: every request has the metadata of the call. */

static void
ngx_mcp_job_out_meta(ngx_mcp_job_t *job, ngx_mcp_out_t *out)
{
    ngx_mcp_json_t    params, meta;
    ngx_mcp_member_t  members[] = {
        { ngx_string("_meta"), &meta }
    };

    params.type = NGX_MCP_JSON_OBJECT;
    params.text = job->params;

    if (job->sender.era == NGX_MCP_MODERN
        && ngx_mcp_json_members(&params, members, 1) == NGX_OK)
    {
        ngx_mcp_out_lit(out, ",\"_meta\":");
        ngx_mcp_out_str(out, &meta.text);
    }
}


/* The outcome of the upstream's task is not needed any more. */

void
ngx_mcp_job_follow_cancel(ngx_mcp_job_t *job)
{
    ngx_str_t      message;
    ngx_pool_t    *pool;
    ngx_mcp_out_t  out;

    if (job->remote.len == 0) {
        return;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    if (job->sender.era == NGX_MCP_MODERN) {
        ngx_mcp_sender_method(&job->sender, &ngx_mcp_follow_end,
                              &job->remote_name);
    }

    /* no other request of this job has this id */

    ngx_mcp_out_init(&out, pool, 512);
    ngx_mcp_out_lit(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    ngx_mcp_out_add(&out, job->rpc_id.data, job->rpc_id.len - 1);
    ngx_mcp_out_lit(&out, "-end\",\"method\":\"tasks/cancel\",\"params\":"
                    "{\"taskId\":");
    ngx_mcp_out_str(&out, &job->remote);
    ngx_mcp_job_out_meta(job, &out);
    ngx_mcp_out_lit(&out, "}}");

    if (ngx_mcp_out_end(&out, &message) == NGX_OK) {
        (void) ngx_mcp_job_notify(job, &message, 0);
    }

    ngx_destroy_pool(pool);
}


/* The next request is a call again. */

void
ngx_mcp_job_follow_clear(ngx_mcp_job_t *job)
{
    job->renew = 0;

    if (job->remote.len) {
        job->remote.len = 0;
        ngx_mcp_sender_method(&job->sender, &ngx_mcp_follow_call, NULL);
    }
}


static void
ngx_mcp_job_not_valid(ngx_mcp_job_t *job)
{
    job->failure = NGX_MCP_FAILED_NOT_VALID;
    ngx_mcp_job_failed(job);
}
