
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The state machine of a job.
 *
 * Only this unit defines which events are valid in which state.  It does not
 * depend on requests or on the store.
 */


#ifndef _NGX_MCP_JOB_STATE_H_INCLUDED_
#define _NGX_MCP_JOB_STATE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef enum {
    NGX_MCP_JOB_NEW = 0,         /* there is no task yet */
    NGX_MCP_JOB_PINNING,         /* the task is being pinned */
    NGX_MCP_JOB_FRESH,           /* starts after events posted before it */
    NGX_MCP_JOB_READY,           /* the next event submits an attempt */
    NGX_MCP_JOB_TURN,            /* waits until fewer calls are running */
    NGX_MCP_JOB_BEGINNING,       /* an attempt is submitted */

    /* the job has a lease, and a round trip is open */
    NGX_MCP_JOB_CALLING,         /* the upstream has to respond */
    NGX_MCP_JOB_RESUMING,        /* the request has to be repeated */

    /* the same, and the client has to answer questions */
    NGX_MCP_JOB_CALLING_ASKED,
    NGX_MCP_JOB_RESUMING_ASKED,
    NGX_MCP_JOB_INPUT_REQUIRED,  /* questions have ended the round trip */

    NGX_MCP_JOB_ENDING,          /* the outcome is or will be submitted */
    NGX_MCP_JOB_KEPT,            /* the store did not accept the outcome */
    NGX_MCP_JOB_OVER,            /* nothing more to do for the task */

    NGX_MCP_JOB_STATES
} ngx_mcp_job_state_e;


/* the round trip has no response yet */
#define ngx_mcp_job_is_open(state)                                            \
    ((state) >= NGX_MCP_JOB_CALLING && (state) <= NGX_MCP_JOB_RESUMING_ASKED)

/* the job continues when all questions are answered */
#define ngx_mcp_job_is_asked(state)                                           \
    ((state) >= NGX_MCP_JOB_CALLING_ASKED                                     \
     && (state) <= NGX_MCP_JOB_INPUT_REQUIRED)

#define ngx_mcp_job_is_resuming(state)                                        \
    ((state) == NGX_MCP_JOB_RESUMING || (state) == NGX_MCP_JOB_RESUMING_ASKED)


typedef enum {
    NGX_MCP_JOB_EV_CREATED = 0,  /* the task exists */
    NGX_MCP_JOB_EV_PINNED,       /* the task can be read */

    NGX_MCP_JOB_EV_ATTEMPT,      /* an attempt is submitted */
    NGX_MCP_JOB_EV_FULL,         /* the limit of running calls is reached */
    NGX_MCP_JOB_EV_DELAYED,      /* the attempt has to be repeated later */
    NGX_MCP_JOB_EV_BEGUN,        /* the call may be sent */

    NGX_MCP_JOB_EV_CUT,             /* the response is not complete */
    NGX_MCP_JOB_EV_RESUMED,         /* the request is repeated */
    NGX_MCP_JOB_EV_ASK,             /* questions are submitted */
    NGX_MCP_JOB_EV_NOT_ASKED,       /* the store did not accept them */
    NGX_MCP_JOB_EV_INPUT_REQUIRED,  /* the response has questions */
    NGX_MCP_JOB_EV_ANSWERED,        /* all questions are answered */

    NGX_MCP_JOB_EV_END,          /* a result or a failure is known */
    NGX_MCP_JOB_EV_KEEP,         /* the outcome is submitted again later */
    NGX_MCP_JOB_EV_RETRY,        /* the task gets another attempt */
    NGX_MCP_JOB_EV_OVER,         /* nothing more to do for the task */

    NGX_MCP_JOB_EVENTS
} ngx_mcp_job_event_e;


/*
 * Applies an event.  NGX_OK: the state has changed as defined.  NGX_DECLINED:
 * the event is ignored, since the job is over or ends.  NGX_ERROR: the event
 * is invalid in this state.  The last two leave the state unchanged.
 */
ngx_int_t ngx_mcp_job_apply(ngx_uint_t *state, ngx_uint_t event);

const char *ngx_mcp_job_state_name(ngx_uint_t state);


#endif /* _NGX_MCP_JOB_STATE_H_INCLUDED_ */
