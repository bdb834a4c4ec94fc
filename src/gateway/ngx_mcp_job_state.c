
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_job_state.h"


/* in the table: the event is invalid (NO) or ignored (SKIP) */
#define NO        0
#define SKIP      0xff

#define PINNING   NGX_MCP_JOB_PINNING
#define FRESH     NGX_MCP_JOB_FRESH
#define READY     NGX_MCP_JOB_READY
#define TURN      NGX_MCP_JOB_TURN
#define BEGIN     NGX_MCP_JOB_BEGINNING
#define CALL      NGX_MCP_JOB_CALLING
#define RESUME    NGX_MCP_JOB_RESUMING
#define CALL_A    NGX_MCP_JOB_CALLING_ASKED
#define RESUME_A  NGX_MCP_JOB_RESUMING_ASKED
#define INPUT     NGX_MCP_JOB_INPUT_REQUIRED
#define ENDING    NGX_MCP_JOB_ENDING
#define KEPT      NGX_MCP_JOB_KEPT
#define OVER      NGX_MCP_JOB_OVER


/*
 * The next state for each state and event, in the order of
 * ngx_mcp_job_event_e: a line each for events of the task, of an attempt, of a
 * round trip, and of the end.  NO can be 0, since no event leads to NEW.
 * ENDING and OVER ignore events of operations that complete too late.
 */

static const uint8_t
    ngx_mcp_job_rules[NGX_MCP_JOB_STATES][NGX_MCP_JOB_EVENTS] =
{
    /* NEW */
    {
        PINNING, NO,
        NO, NO, NO, NO,
        NO, NO, NO, NO, NO, NO,
        NO, NO, NO, NO
    },

    /* PINNING */
    {
        NO, FRESH,
        NO, NO, NO, NO,
        NO, NO, NO, NO, NO, NO,
        NO, NO, NO, OVER
    },

    /* FRESH */
    {
        NO, NO,
        BEGIN, TURN, NO, NO,
        NO, NO, NO, NO, NO, NO,
        NO, NO, NO, OVER
    },

    /* READY */
    {
        NO, NO,
        BEGIN, NO, NO, NO,
        NO, NO, NO, NO, NO, NO,
        NO, NO, NO, OVER
    },

    /* TURN */
    {
        NO, NO,
        BEGIN, NO, NO, NO,
        NO, NO, NO, NO, NO, NO,
        NO, NO, NO, OVER
    },

    /* BEGINNING */
    {
        NO, NO,
        NO, TURN, READY, CALL,
        NO, NO, NO, NO, NO, NO,
        NO, NO, NO, OVER
    },

    /* CALLING */
    {
        NO, NO,
        NO, NO, NO, NO,
        RESUME, NO, CALL_A, NO, INPUT, NO,
        ENDING, NO, READY, OVER
    },

    /* RESUMING */
    {
        NO, NO,
        NO, NO, NO, NO,
        NO, CALL, RESUME_A, NO, NO, NO,
        ENDING, NO, READY, OVER
    },

    /* CALLING_ASKED */
    {
        NO, NO,
        NO, NO, NO, NO,
        RESUME_A, NO, NO, CALL, NO, CALL,
        ENDING, NO, READY, OVER
    },

    /* RESUMING_ASKED */
    {
        NO, NO,
        NO, NO, NO, NO,
        NO, CALL_A, NO, RESUME, NO, RESUME,
        ENDING, NO, READY, OVER
    },

    /* INPUT */
    {
        NO, NO,
        NO, NO, NO, NO,
        NO, NO, INPUT, INPUT, NO, CALL,
        ENDING, NO, READY, OVER
    },

    /* ENDING */
    {
        NO, NO,
        NO, NO, NO, NO,
        NO, NO, NO, SKIP, NO, NO,
        ENDING, KEPT, READY, OVER
    },

    /* KEPT */
    {
        NO, NO,
        NO, NO, NO, NO,
        NO, NO, NO, NO, NO, NO,
        ENDING, NO, READY, OVER
    },

    /* OVER */
    {
        NO, SKIP,
        NO, SKIP, SKIP, SKIP,
        NO, NO, NO, SKIP, NO, NO,
        SKIP, SKIP, SKIP, SKIP
    }
};


static const char  *ngx_mcp_job_states[] = {
    "new",
    "pinning",
    "fresh",
    "ready",
    "turn",
    "beginning",
    "calling",
    "resuming",
    "calling_asked",
    "resuming_asked",
    "input_required",
    "ending",
    "kept",
    "over"
};


ngx_int_t
ngx_mcp_job_apply(ngx_uint_t *state, ngx_uint_t event)
{
    ngx_uint_t  next;

    if (*state >= NGX_MCP_JOB_STATES || event >= NGX_MCP_JOB_EVENTS) {
        return NGX_ERROR;
    }

    next = ngx_mcp_job_rules[*state][event];

    switch (next) {

    case NO:
        return NGX_ERROR;

    case SKIP:
        return NGX_DECLINED;

    default:
        *state = next;
        return NGX_OK;
    }
}


const char *
ngx_mcp_job_state_name(ngx_uint_t state)
{
    return (state < NGX_MCP_JOB_STATES) ? ngx_mcp_job_states[state]
                                        : "unknown";
}
