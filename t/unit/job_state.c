
/*
 * The states of a job: every state times every event, against what was
 * written down by hand for each event, and what follows from the table.
 */


#include "libtest.h"
#include "ngx_mcp_job_state.h"


/*
 * What an event does, as pairs "from to" in the letters below; "from -" where
 * it is ignored.  In all other states it is an error.
 */

static struct {
    ngx_uint_t   event;
    const char  *name;
    const char  *pairs;
} events[] = {
    { NGX_MCP_JOB_EV_CREATED, "created", "NP" },
    { NGX_MCP_JOB_EV_PINNED, "pinned", "PF O-" },
    { NGX_MCP_JOB_EV_ATTEMPT, "run", "FB RB TB" },
    { NGX_MCP_JOB_EV_FULL, "full", "FT BT O-" },
    { NGX_MCP_JOB_EV_DELAYED, "delayed", "BR O-" },
    { NGX_MCP_JOB_EV_BEGUN, "begun", "BC O-" },
    { NGX_MCP_JOB_EV_CUT, "cut", "CS cs" },
    { NGX_MCP_JOB_EV_RESUMED, "resumed", "SC sc" },
    { NGX_MCP_JOB_EV_ASK, "ask", "Cc Ss QQ" },
    { NGX_MCP_JOB_EV_NOT_ASKED, "not_asked", "cC sS QQ E- O-" },
    { NGX_MCP_JOB_EV_INPUT_REQUIRED, "input_required", "CQ" },
    { NGX_MCP_JOB_EV_ANSWERED, "answered", "cC sS QC" },
    { NGX_MCP_JOB_EV_END, "end", "CE SE cE sE QE EE KE O-" },
    { NGX_MCP_JOB_EV_KEEP, "keep", "EK O-" },
    { NGX_MCP_JOB_EV_RETRY, "retry", "CR SR cR sR QR ER KR O-" },
    { NGX_MCP_JOB_EV_OVER, "over", "PO FO RO TO BO CO SO cO sO QO EO KO O-" }
};


/* a letter for each state, in the order of ngx_mcp_job_state_e */

static const char  letters[] = "NPFRTB" "CScsQ" "EKO";

static const char  *names[] = {
    "new", "pinning", "fresh", "ready", "turn", "beginning",
    "calling", "resuming", "calling_asked", "resuming_asked", "input_required",
    "ending", "kept", "over"
};


#define NSTATES  (sizeof(names) / sizeof(names[0]))
#define NEVENTS  (sizeof(events) / sizeof(events[0]))


/* where the event leads; '-': it is ignored; 0: it is an error */

static char
expected(ngx_uint_t event, char from)
{
    const char  *p;

    for (p = events[event].pairs; *p; p += 2 + (p[2] == ' ')) {
        if (*p == from) {
            return p[1];
        }
    }

    return 0;
}


static ngx_uint_t
state_of(char letter)
{
    return strchr(letters, letter) - letters;
}


static void
test_rules(void)
{
    char        want;
    ngx_int_t   rc;
    ngx_uint_t  i, e, state, before;

    is(NSTATES, NGX_MCP_JOB_STATES, "all states");
    is(strlen(letters), NGX_MCP_JOB_STATES, "and their letters");
    is(NEVENTS, NGX_MCP_JOB_EVENTS, "all events");

    for (i = 0; i < NSTATES; i++) {
        for (e = 0; e < NEVENTS; e++) {

            before = i;
            state = i;
            want = expected(e, letters[i]);

            rc = ngx_mcp_job_apply(&state, events[e].event);

            switch (want) {
            case 0:
                ok(rc == NGX_ERROR && state == before, "%s: %s is an error",
                   names[i], events[e].name);
                break;
            case '-':
                ok(rc == NGX_DECLINED && state == before, "%s: %s is ignored",
                   names[i], events[e].name);
                break;
            default:
                ok(rc == NGX_OK && state == state_of(want), "%s: %s gives %c",
                   names[i], events[e].name, want);
            }
        }
    }
}


static void
test_limits(void)
{
    ngx_uint_t  i, state;

    for (i = 0; i < NSTATES; i++) {
        state = i;
        is(ngx_mcp_job_apply(&state, NGX_MCP_JOB_EVENTS), NGX_ERROR,
           "%s: no such event", names[i]);
        is(state, i, "  nothing has changed");

        ok(strcmp(ngx_mcp_job_state_name(state), names[i]) == 0,
           "%s: its name", names[i]);
        is(ngx_mcp_job_is_open(state), strchr("CScs", letters[i]) != NULL,
           "  open");
        is(ngx_mcp_job_is_asked(state), strchr("csQ", letters[i]) != NULL,
           "  asked");
        is(ngx_mcp_job_is_resuming(state), strchr("Ss", letters[i]) != NULL,
           "  resuming");
    }

    state = NGX_MCP_JOB_STATES;
    is(ngx_mcp_job_apply(&state, NGX_MCP_JOB_EV_OVER), NGX_ERROR,
       "no such state");
    is(state, NGX_MCP_JOB_STATES, "nothing has changed");
    ok(strcmp(ngx_mcp_job_state_name(state), "unknown") == 0, "nor a name");
}


/* a bit for each state that can be reached, in any number of steps */

static ngx_uint_t
reachable(ngx_uint_t from)
{
    ngx_uint_t  i, e, seen, before, state;

    seen = 1u << from;

    do {
        before = seen;

        for (i = 0; i < NGX_MCP_JOB_STATES; i++) {
            for (e = 0; (seen & (1u << i)) && e < NGX_MCP_JOB_EVENTS; e++) {
                state = i;

                if (ngx_mcp_job_apply(&state, e) == NGX_OK) {
                    seen |= 1u << state;
                }
            }
        }

    } while (seen != before);

    return seen;
}


static void
test_reach(void)
{
    ngx_uint_t  i;

    is(reachable(NGX_MCP_JOB_NEW), (1u << NGX_MCP_JOB_STATES) - 1,
       "every state is reached from the first one");

    for (i = 0; i < NGX_MCP_JOB_STATES; i++) {
        ok(reachable(i) & (1u << NGX_MCP_JOB_OVER), "%s: can be over",
           ngx_mcp_job_state_name(i));
    }

    is(reachable(NGX_MCP_JOB_OVER), 1u << NGX_MCP_JOB_OVER,
       "nothing leads out of the last one");
}


int
main(void)
{
    test_rules();
    test_limits();
    test_reach();

    return done_testing();
}
