
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The states of a job, and the events that lead from one to the other.
 *
 * This is the only place that knows which event is legal in which state.  It
 * knows neither requests nor the store.
 */


#ifndef _NGX_MCP_JOB_STATE_H_INCLUDED_
#define _NGX_MCP_JOB_STATE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef enum {
    NGX_MCP_JOB_NEW = 0,         /* there is no task yet */
    NGX_MCP_JOB_PINNING,         /* its task is being pinned */
    NGX_MCP_JOB_FRESH,           /* begins after what is due already */
    NGX_MCP_JOB_READY,           /* the next look begins an attempt */
    NGX_MCP_JOB_TURN,            /* others have to end before */
    NGX_MCP_JOB_BEGINNING,       /* RUN is submitted */

    /* it has a lease; the round is open */
    NGX_MCP_JOB_CALLING,         /* the upstream has to answer */
    NGX_MCP_JOB_RESUMING,        /* the request is to be repeated */

    /* the same, while the client has to answer questions */
    NGX_MCP_JOB_CALLING_ASKED,
    NGX_MCP_JOB_RESUMING_ASKED,
    NGX_MCP_JOB_INPUT_REQUIRED,  /* the round has ended with them */

    NGX_MCP_JOB_ENDING,          /* its end is submitted or about to be */
    NGX_MCP_JOB_KEPT,            /* the store did not take it */
    NGX_MCP_JOB_OVER,            /* so is the task, for this job */

    NGX_MCP_JOB_STATES
} ngx_mcp_job_state_e;


/* the round has not got its response */
#define ngx_mcp_job_is_open(state)                                            \
    ((state) >= NGX_MCP_JOB_CALLING && (state) <= NGX_MCP_JOB_RESUMING_ASKED)

/* it goes on when the task runs again */
#define ngx_mcp_job_is_asked(state)                                           \
    ((state) >= NGX_MCP_JOB_CALLING_ASKED                                     \
     && (state) <= NGX_MCP_JOB_INPUT_REQUIRED)

#define ngx_mcp_job_is_resuming(state)                                        \
    ((state) == NGX_MCP_JOB_RESUMING || (state) == NGX_MCP_JOB_RESUMING_ASKED)


typedef enum {
    NGX_MCP_JOB_EV_CREATED = 0,  /* the task is there */
    NGX_MCP_JOB_EV_PINNED,       /* it can be looked at */

    NGX_MCP_JOB_EV_ATTEMPT,      /* an attempt is submitted */
    NGX_MCP_JOB_EV_FULL,         /* no more may run at once */
    NGX_MCP_JOB_EV_DELAYED,      /* not before a time */
    NGX_MCP_JOB_EV_BEGUN,        /* the call may go out */

    NGX_MCP_JOB_EV_CUT,             /* the response is not complete */
    NGX_MCP_JOB_EV_RESUMED,         /* the request is repeated */
    NGX_MCP_JOB_EV_ASK,             /* questions are submitted */
    NGX_MCP_JOB_EV_INPUT_REQUIRED,  /* the response is questions */
    NGX_MCP_JOB_EV_ANSWERED,        /* by the client, all of them */

    NGX_MCP_JOB_EV_END,          /* with a result or a failure */
    NGX_MCP_JOB_EV_KEEP,         /* it is submitted again later */
    NGX_MCP_JOB_EV_RETRY,        /* another attempt instead */
    NGX_MCP_JOB_EV_OVER,         /* there is no more to do */

    NGX_MCP_JOB_EVENTS
} ngx_mcp_job_event_e;


/*
 * NGX_OK: the state is the one that the event leads to.  NGX_DECLINED: the
 * event does not matter any more.  NGX_ERROR: it must not happen in this
 * state.  The state is unchanged in both cases.
 */
ngx_int_t ngx_mcp_job_apply(ngx_uint_t *state, ngx_uint_t event);

const char *ngx_mcp_job_state_name(ngx_uint_t state);


#endif /* _NGX_MCP_JOB_STATE_H_INCLUDED_ */
