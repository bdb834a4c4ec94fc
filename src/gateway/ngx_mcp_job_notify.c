
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Messages that a job sends to the upstream beside the call: answers,
 * responses to pings, and cancellations.  The upstream only acknowledges them.
 * A message that was not delivered is sent again, and the call fails if an
 * answer cannot be delivered.
 */


#include "ngx_mcp_job.h"
#include "ngx_mcp_filter.h"
#include "ngx_mcp_sse_writer.h"


#define NGX_MCP_NOTIFY_TRIES  4

/* maximum size of an acknowledgement */
#define NGX_MCP_NOTIFY_MAX    65536


static void ngx_mcp_notify_send(ngx_mcp_notify_t *l);
static void ngx_mcp_notify_free(ngx_mcp_notify_t *l);
static void ngx_mcp_notify_lost(ngx_mcp_notify_t *l);
static ngx_int_t ngx_mcp_notify_header(ngx_mcp_detached_t *d);
static ngx_int_t ngx_mcp_notify_body(ngx_mcp_detached_t *d, u_char *p,
    size_t n);
static void ngx_mcp_notify_done(ngx_mcp_detached_t *d);


static ngx_mcp_reader_t  ngx_mcp_notify_reader = {
    ngx_mcp_notify_header,
    ngx_mcp_notify_body,
    NULL,
    ngx_mcp_notify_done
};


/*
 * Sends a message, which is copied.  With answer set, the call fails if the
 * upstream does not accept it.  NGX_ERROR: no memory.
 */

ngx_int_t
ngx_mcp_job_notify(ngx_mcp_job_t *job, ngx_str_t *message, ngx_uint_t answer)
{
    u_char            *text;
    ngx_pool_t        *pool;
    ngx_mcp_notify_t  *l;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    l = ngx_pcalloc(pool, sizeof(ngx_mcp_notify_t));
    text = ngx_pstrdup(pool, message);

    if (l == NULL || text == NULL) {
        ngx_destroy_pool(pool);
        return NGX_ERROR;
    }

    l->pool = pool;
    l->job = job;
    l->text.data = text;
    l->text.len = message->len;
    l->answer = answer;
    ngx_queue_insert_tail(&job->outgoing, &l->queue);

    ngx_mcp_notify_send(l);

    return NGX_OK;
}


static void
ngx_mcp_notify_send(ngx_mcp_notify_t *l)
{
    ngx_mcp_job_t       *job;
    ngx_mcp_detached_t  *d;

    job = l->job;
    l->tries++;
    l->status = 0;
    l->again = 1;
    l->due = ngx_current_msec + l->tries * NGX_MCP_RETRY;

    d = ngx_mcp_detached(&job->sender, &l->text, NULL, &ngx_mcp_notify_reader,
                         l);
    if (d == NULL) {
        ngx_mcp_job_post(job);
        return;
    }

    l->request = d;
    job->requests++;
    ngx_mcp_detached_start(d);
}


/* Sends messages again that were not delivered, when their time has come. */

void
ngx_mcp_job_notify_retry(ngx_mcp_job_t *job)
{
    ngx_queue_t       *q, *next;
    ngx_msec_int_t     left;
    ngx_mcp_notify_t  *l;

    for (q = ngx_queue_head(&job->outgoing);
         q != ngx_queue_sentinel(&job->outgoing)
         && job->state != NGX_MCP_JOB_OVER;
         q = next)
    {
        next = ngx_queue_next(q);
        l = ngx_queue_data(q, ngx_mcp_notify_t, queue);

        if (l->request) {
            continue;
        }

        if (!l->again || l->tries == NGX_MCP_NOTIFY_TRIES) {
            ngx_mcp_notify_lost(l);
            continue;
        }

        left = (ngx_msec_int_t) (l->due - ngx_current_msec);

        if (left > 0) {
            ngx_mcp_job_wait(job, left);

        } else {
            ngx_mcp_notify_send(l);
        }
    }
}


/* The job is over: ends requests that have a status but are still open. */

void
ngx_mcp_job_notify_close(ngx_mcp_job_t *job)
{
    ngx_queue_t       *q, *next;
    ngx_mcp_notify_t  *l;

    for (q = ngx_queue_head(&job->outgoing);
         q != ngx_queue_sentinel(&job->outgoing);
         q = next)
    {
        next = ngx_queue_next(q);
        l = ngx_queue_data(q, ngx_mcp_notify_t, queue);

        if (l->request && l->status) {
            ngx_mcp_detached_end(l->request);
        }
    }
}


/* Discards messages that were not delivered; no request may be open. */

void
ngx_mcp_job_notify_free(ngx_mcp_job_t *job)
{
    while (!ngx_queue_empty(&job->outgoing)) {
        ngx_mcp_notify_free(
            ngx_queue_data(ngx_queue_head(&job->outgoing), ngx_mcp_notify_t,
                           queue));
    }
}


static void
ngx_mcp_notify_free(ngx_mcp_notify_t *l)
{
    ngx_queue_remove(&l->queue);
    ngx_destroy_pool(l->pool);
}


/* The message cannot be delivered: a call that needs it has to fail. */

static void
ngx_mcp_notify_lost(ngx_mcp_notify_t *l)
{
    ngx_uint_t      needed, status;
    ngx_mcp_job_t  *job;

    job = l->job;
    needed = l->answer;
    status = l->status;
    ngx_mcp_notify_free(l);

    if (needed && ngx_mcp_job_is_open(job->state)) {
        job->failure = status ? NGX_MCP_FAILED_BAD_STATUS
                          : NGX_MCP_FAILED_UNREACHABLE;
        job->status = status;
        ngx_mcp_job_failed(job);
    }
}


static ngx_int_t
ngx_mcp_notify_header(ngx_mcp_detached_t *d)
{
    ngx_mcp_notify_t  *l;

    l = d->data;
    l->status = d->r->headers_out.status;

    /* an acknowledgement is not a stream */

    return ngx_mcp_is_stream(d->r) ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_mcp_notify_body(ngx_mcp_detached_t *d, u_char *p, size_t n)
{
    return (d->r->connection->sent > NGX_MCP_NOTIFY_MAX)
           ? NGX_ERROR : NGX_OK;
}


static void
ngx_mcp_notify_done(ngx_mcp_detached_t *d)
{
    ngx_mcp_job_t     *job;
    ngx_mcp_notify_t  *l;

    l = d->data;
    job = l->job;

    l->request = NULL;
    job->requests--;

    if (l->status && l->status < NGX_HTTP_SPECIAL_RESPONSE) {
        ngx_mcp_notify_free(l);

    } else if (!ngx_mcp_job_connected(d->r)) {
        /* the response is nginx's own, the upstream was not reached */
        l->status = 0;
        l->again = 1;

    } else {
        l->again = (l->status == 0
                    || l->status >= NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    ngx_mcp_job_post(job);
}
