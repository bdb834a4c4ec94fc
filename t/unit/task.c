
/*
 * The state machine: every state times every event, against a table written
 * down by hand from the documentation, and the fields that change with it.
 */


#include "libtest.h"


#define NOW    1000000
#define WALL   1700000000000ULL
#define LEASE  77

/* input required, and the worker has released the task */
#define RELEASED  NGX_MCP_STATES


static const char  *events[] = {
    "heartbeat", "progress", "ask", "complete", "fail", "retry", "release",
    "claim", "answer", "answer_all", "cancel", "annotate", "report",
    "ready", "lease_lost", "queue_timeout", "run_timeout", "expire",
    "announce", "orphaned"
};

/*
 * For each state the outcome of each event, in that order.  A letter is the
 * state afterwards: q r i c f x (cancelled) - (gone); capital where it is the
 * same state and must be a change within it, A for all terminal ones;
 * ! state_invalid, T terminal, L lease_lost, 0 not found.  The lease is right
 * where there is one, the TTL has not run out.
 */

static struct {
    ngx_uint_t   state;
    const char  *outcome;
} rules[] = {
    { NGX_MCP_FREE,           "00000000000000000000" },
    { NGX_MCP_QUEUED,         "LLLLLLL" "r!!xQ!" "Q!f!!Q" "f" },
    { NGX_MCP_RUNNING,        "RRicfqq" "!!!xRR" "!q!f!R" "f" },
    { NGX_MCP_INPUT_REQUIRED, "II!cfqq" "!IrxII" "!!!!!I" "f" },
    { NGX_MCP_COMPLETED,      "TTTTTTT" "TTTTTT" "TTTT!A" "T" },
    { NGX_MCP_FAILED,         "TTTTTTT" "TTTTTT" "TTTT!A" "T" },
    { NGX_MCP_CANCELLED,      "TTTTTTT" "TTTTTT" "TTTT!A" "T" },
    { RELEASED,               "LLLLLLL" "!IqxII" "!!!!!I" "f" }
};


/* a task that got into the state by the way of its rules */

static void
make(ngx_mcp_task_t *task, ngx_uint_t state)
{
    ngx_mcp_event_t   ev;
    ngx_mcp_policy_t  policy;

    test_policy(&policy);
    ngx_mcp_task_init(task, &policy, 3600000, NOW, WALL);

    ngx_memzero(&ev, sizeof(ev));
    ev.now = NOW;
    ev.wall = WALL;
    ev.lease_token = LEASE;
    ev.progress = -1;

    if (state == NGX_MCP_FREE) {
        task->state = NGX_MCP_FREE;
        return;
    }

    if (state == NGX_MCP_QUEUED) {
        return;
    }

    ev.type = NGX_MCP_EV_CLAIM;
    (void) ngx_mcp_task_apply(task, &ev);

    switch (state) {
    case NGX_MCP_RUNNING:
        return;
    case RELEASED:
        ev.release = 1;
        /* fall through */
    case NGX_MCP_INPUT_REQUIRED:
        ev.type = NGX_MCP_EV_ASK;
        break;
    case NGX_MCP_COMPLETED:
        ev.type = NGX_MCP_EV_COMPLETE;
        break;
    case NGX_MCP_FAILED:
        ev.type = NGX_MCP_EV_FAIL;
        break;
    default:
        ev.type = NGX_MCP_EV_CANCEL;
    }

    (void) ngx_mcp_task_apply(task, &ev);
}


static void
test_rules(void)
{
    char               want, got;
    ngx_uint_t         i, e, rc;
    ngx_mcp_task_t     task, before;
    ngx_mcp_event_t    ev;
    static const char  after[] = "-qricfx";
    static const char  stay[] = "-QRIAAA";

    for (i = 0; i <= RELEASED; i++) {
        for (e = 0; e < NGX_MCP_EVENTS; e++) {

            make(&task, rules[i].state);
            before = task;
            want = rules[i].outcome[e];

            ngx_memzero(&ev, sizeof(ev));
            ev.type = e;
            ev.now = NOW + 10;
            ev.wall = WALL + 10;
            ev.lease_token = LEASE;
            ev.progress = 1;
            ev.total = 2;

            rc = ngx_mcp_task_apply(&task, &ev);

            switch (rc) {
            case NGX_MCP_OK:
                got = (task.state == before.state) ? stay[task.state]
                                                   : after[task.state];
                break;
            case NGX_MCP_STATE_INVALID:
                got = '!';
                break;
            case NGX_MCP_TERMINAL:
                got = 'T';
                break;
            case NGX_MCP_LEASE_LOST:
                got = 'L';
                break;
            case NGX_MCP_NOT_FOUND:
                got = '0';
                break;
            default:
                got = '?';
            }

            ok(got == want, "%s%s: %s gives %c",
               i == RELEASED ? "released, " : "",
               ngx_mcp_state_name(before.state)->data, events[e], want);

            if (rc != NGX_MCP_OK) {
                ok(ngx_memcmp(&task, &before, sizeof(task)) == 0,
                   "  refused: nothing has changed");

            } else if (e == NGX_MCP_EV_HEARTBEAT
                       || e == NGX_MCP_EV_ANNOUNCE
                       || e == NGX_MCP_EV_READY)
            {
                is(task.version, before.version, "  not a new version");

            } else {
                is(task.version, before.version + 1, "  a new version");
                is(task.updated, WALL + 10, "  with a new time");
            }
        }
    }
}


static void
test_leases(void)
{
    ngx_uint_t       i, e, bad;
    ngx_mcp_task_t   task, before;
    ngx_mcp_event_t  ev;

    /* whatever the state, a wrong token or none is refused */

    for (bad = 0, i = 1; i < NGX_MCP_STATES; i++) {
        for (e = 0; e <= NGX_MCP_EV_RELEASE; e++) {
            make(&task, i);
            before = task;
            ngx_memzero(&ev, sizeof(ev));
            ev.type = e;
            ev.now = NOW;

            bad += (ngx_mcp_task_apply(&task, &ev) != NGX_MCP_LEASE_LOST);
            ev.lease_token = LEASE + 1;
            bad += (ngx_mcp_task_apply(&task, &ev) != NGX_MCP_LEASE_LOST);
            bad += (ngx_memcmp(&task, &before, sizeof(task)) != 0);
        }
    }

    is(bad, 0, "no event of a worker without the token");
}


static ngx_uint_t
apply(ngx_mcp_task_t *task, ngx_uint_t type, uint64_t now)
{
    ngx_mcp_event_t  ev;

    ngx_memzero(&ev, sizeof(ev));
    ev.type = type;
    ev.now = now;
    ev.wall = WALL;
    ev.lease_token = LEASE;
    ev.progress = -1;

    return ngx_mcp_task_apply(task, &ev);
}


static void
test_attempts(void)
{
    ngx_uint_t      n;
    ngx_mcp_task_t  task;

    make(&task, NGX_MCP_QUEUED);

    for (n = 1; n <= 3; n++) {
        is(apply(&task, NGX_MCP_EV_CLAIM, NOW), 0, "claim %d", (int) n);
        is(task.attempt, n, "attempt %d", (int) n);
        is(task.step_end, NOW + 30000, "the lease's end");
        is(ngx_mcp_task_due(&task, NOW + 29999),
           NGX_MCP_EVENTS, "nothing is due before it");
        is(ngx_mcp_task_due(&task, NOW + 30000),
           NGX_MCP_EV_LEASE_LOST, "then the lease is lost");
        is(apply(&task, NGX_MCP_EV_LEASE_LOST, NOW), 0, "lost");

        if (n == 3) {
            break;
        }

        is(task.state, NGX_MCP_QUEUED, "queued again");
        is(task.lease_token, 0, "without a lease");
        is(task.step_end, NOW + (n == 1 ? 1000 : 2000), "after a backoff");
        is(apply(&task, NGX_MCP_EV_CLAIM, NOW),
           NGX_MCP_STATE_INVALID, "not claimed during the backoff");
        is(ngx_mcp_task_due(&task, task.step_end),
           NGX_MCP_EV_READY, "ready after it");
        is(apply(&task, NGX_MCP_EV_READY, NOW), 0, "ready");
    }

    is(task.state, NGX_MCP_FAILED, "failed after three attempts");
    is(task.cause, NGX_MCP_CAUSE_LEASE_LOST, "and why");

    /* a release does not count as an attempt */

    make(&task, NGX_MCP_RUNNING);
    is(apply(&task, NGX_MCP_EV_RELEASE, NOW), 0, "release");
    is(task.attempt, 0, "is no attempt");
    ok(ngx_mcp_task_claimable(&task), "claimable at once");

    /* neither does one that ends with questions, and is queued when answered */

    make(&task, RELEASED);
    is(task.state, NGX_MCP_INPUT_REQUIRED, "released with questions");
    is(task.lease_token, 0, "without a lease");
    is(task.attempt, 1, "the attempt is shown");
    is(apply(&task, NGX_MCP_EV_ANSWER, NOW + 5), 0, "an answer");
    is(task.state, NGX_MCP_INPUT_REQUIRED, "one is left");
    is(apply(&task, NGX_MCP_EV_ANSWER_ALL, NOW + 900000), 0, "all answers");
    is(task.state, NGX_MCP_QUEUED, "queued");
    is(task.attempt, 0, "is no attempt");
    ok(ngx_mcp_task_claimable(&task), "claimable at once");
    is(task.phase_end, NOW + 900000 + task.policy.queue_timeout,
       "with the time of a new one to be claimed");
    is(apply(&task, NGX_MCP_EV_CLAIM, NOW + 900000), 0, "claimed");
    is(task.lease_token, LEASE, "with a lease");
    is(task.attempt, 1, "the same attempt");

    /* a retry does, and ends when there are none left */

    make(&task, NGX_MCP_RUNNING);
    task.attempt = 3;
    is(apply(&task, NGX_MCP_EV_RETRY, NOW), 0, "retry");
    is(task.state, NGX_MCP_FAILED, "no attempt is left");

    /* the backoff doubles, up to an hour */

    make(&task, NGX_MCP_RUNNING);
    task.policy.attempts = 255;
    task.attempt = 200;
    is(apply(&task, NGX_MCP_EV_RETRY, NOW), 0, "a late retry");
    is(task.step_end, NOW + 3600000, "waits an hour at most");
}


/*
 * Which ends of an attempt another one follows: each set of them, with
 * attempts left and without, against what is written down for the set.  A
 * letter is the state afterwards of a run timeout, a lost lease and an error.
 */

static void
test_retry_on(void)
{
    char                want;
    ngx_uint_t          i, e, left, calls;
    ngx_mcp_task_t      task;
    static ngx_uint_t   ends[] = {
        NGX_MCP_EV_RUN_TIMEOUT, NGX_MCP_EV_LEASE_LOST, NGX_MCP_EV_RETRY
    };
    static ngx_uint_t   causes[] = {
        NGX_MCP_CAUSE_RUN_TIMEOUT, NGX_MCP_CAUSE_LEASE_LOST,
        NGX_MCP_CAUSE_NONE
    };
    static struct {
        ngx_uint_t      calls;
        const char     *after;
    } sets[] = {
        { 0, "fqq" },
        { NGX_MCP_RETRY_TIMEOUT, "qqq" },
        { NGX_MCP_RETRY_LEASE, "ffq" },
        { NGX_MCP_RETRY_ERROR, "fqf" },
        { NGX_MCP_RETRY_TIMEOUT|NGX_MCP_RETRY_LEASE, "qfq" },
        { NGX_MCP_RETRY_TIMEOUT|NGX_MCP_RETRY_ERROR, "qqf" },
        { NGX_MCP_RETRY_LEASE|NGX_MCP_RETRY_ERROR, "fff" },
        { NGX_MCP_RETRY_TIMEOUT|NGX_MCP_RETRY_LEASE|NGX_MCP_RETRY_ERROR,
          "qff" }
    };

    is(NGX_MCP_CALLS, NGX_MCP_IDEMPOTENT|NGX_MCP_BOUND|NGX_MCP_ASKABLE
                      |NGX_MCP_RETRY_TIMEOUT|NGX_MCP_RETRY_LEASE
                      |NGX_MCP_RETRY_ERROR,
       "all flags are saved");

    for (i = 0; i < 8 * 3 * 2; i++) {
        e = i % 3;
        left = i / 3 % 2;
        calls = sets[i / 6].calls;
        want = left ? sets[i / 6].after[e] : 'f';

        make(&task, NGX_MCP_RUNNING);
        task.policy.calls = (uint8_t) calls;
        task.progress = 1;

        if (!left) {
            task.attempt = task.policy.attempts;
        }

        is(apply(&task, ends[e], NOW + 10), NGX_MCP_OK, "%s, calls 0x%lx, %s",
           events[ends[e]], (unsigned long) calls,
           left ? "attempts left" : "the last attempt");
        is(task.state, want == 'q' ? NGX_MCP_QUEUED : NGX_MCP_FAILED,
           "  gives %c", want);

        if (want == 'f') {
            is(task.cause, causes[e], "  and why");
            is(task.lease_token, LEASE, "  the token is known");
            continue;
        }

        is(task.cause, NGX_MCP_CAUSE_NONE, "  without a cause");
        is(task.lease_token, 0, "  the old worker is fenced");
        is(apply(&task, NGX_MCP_EV_COMPLETE, NOW + 20), NGX_MCP_LEASE_LOST,
           "  and its result refused");
        is(task.step_end, NOW + 10 + 1000, "  after a backoff");
        ok(task.progress < 0, "  it begins anew");
    }

    /* questions suspend the run timeout, whatever the policy */

    make(&task, NGX_MCP_INPUT_REQUIRED);
    task.policy.calls = NGX_MCP_RETRY_TIMEOUT;
    is(apply(&task, NGX_MCP_EV_RUN_TIMEOUT, NOW), NGX_MCP_STATE_INVALID,
       "no run timeout while it waits for input");
}


/*
 * A call whose process is dead goes to another one, if there is one, if it
 * does not take what only the dead one knew, and, once it may have begun, if
 * running it again does no harm and is still allowed.
 */

static void
orphan(ngx_uint_t state, ngx_uint_t calls, ngx_uint_t left, uint64_t holder)
{
    ngx_uint_t       want, cause, lived;
    ngx_mcp_task_t   task, before;
    ngx_mcp_event_t  ev;

    ngx_memzero(&ev, sizeof(ev));
    ev.type = NGX_MCP_EV_ORPHANED;
    ev.now = NOW + 10;
    ev.wall = WALL + 10;
    ev.holder = holder;

    make(&task, state);
    task.policy.route = 5;
    task.policy.calls = (uint8_t) calls;
    task.holder = 33;
    task.progress = 1;

    if (!left) {
        task.attempt = task.policy.attempts;
    }

    before = task;
    want = NGX_MCP_FAILED;
    cause = NGX_MCP_CAUSE_PROCESS_LOST;
    lived = (state == NGX_MCP_RUNNING
             || state == NGX_MCP_INPUT_REQUIRED);

    /* written out, not worked out as the rules do it */

    if (holder) {
        if (calls == 0 && state == NGX_MCP_QUEUED) {
            want = NGX_MCP_QUEUED;
        }

        if (calls == NGX_MCP_IDEMPOTENT
            && (left || state == NGX_MCP_QUEUED))
        {
            want = NGX_MCP_QUEUED;
        }

        /* a lost attempt is not repeated */

        if (calls == (NGX_MCP_IDEMPOTENT|NGX_MCP_RETRY_LEASE)
            && state == NGX_MCP_QUEUED)
        {
            want = NGX_MCP_QUEUED;
        }
    }

    if (want == NGX_MCP_QUEUED) {
        cause = NGX_MCP_CAUSE_NONE;
    }

    diag("%s, %s%s%s%s attempts, %s",
         ngx_mcp_state_name(state)->data,
         calls & NGX_MCP_IDEMPOTENT ? "idempotent, " : "",
         calls & NGX_MCP_BOUND ? "bound, " : "",
         calls & NGX_MCP_RETRY_LEASE ? "not if lost, " : "",
         left ? "more" : "no", holder ? "a new holder" : "no holder");

    if (state == NGX_MCP_FREE
        || ngx_mcp_terminal(state))
    {
        is(ngx_mcp_task_apply(&task, &ev),
           state ? NGX_MCP_TERMINAL
                 : NGX_MCP_NOT_FOUND, "too late");
        ok(ngx_memcmp(&task, &before, sizeof(task)) == 0,
           "nothing has changed");
        return;
    }

    is(ngx_mcp_task_apply(&task, &ev), 0, "orphaned");
    is(task.state, want, "it is %s", ngx_mcp_state_name(want)->data);
    is(task.cause, cause, "and why");
    is(task.holder, holder, "who has it");
    ok(task.flags & NGX_MCP_ANNOUNCED, "who was to announce it is dead");
    is(task.version, before.version + 1, "a new version");
    is(task.updated, WALL + 10, "of now");
    is(task.attempt, before.attempt, "in the same attempt");

    if (want == NGX_MCP_FAILED) {
        is(task.step_end, NGX_MCP_NEVER, "no step to come");
        is(task.phase_end, NGX_MCP_NEVER, "nor a phase");
        is(task.lease_token, before.lease_token,
           "the lease is known to have ended");

    } else if (lived) {
        is(task.step_end, NOW + 10 + 1000, "after a backoff");
        is(task.phase_end, NOW + 10 + 1000 + 600000, "it queues anew");
        is(task.lease_token, 0, "without a lease");
        ok(task.progress < 0, "or progress");

    } else {
        is(task.step_end, before.step_end, "it need not wait");
        is(task.phase_end, before.phase_end, "nor may it for longer");
    }
}


static void
test_orphaned(void)
{
    ngx_uint_t       i;
    ngx_mcp_task_t   task;
    ngx_mcp_event_t  ev;

    for (i = 0; i < NGX_MCP_STATES * 16; i++) {
        orphan(i >> 4, i & 3, i >> 2 & 1, i & 8 ? 44 : 0);
    }

    for (i = 0; i < NGX_MCP_STATES * 4; i++) {
        orphan(i >> 2, NGX_MCP_IDEMPOTENT|NGX_MCP_RETRY_LEASE, i & 1,
               i & 2 ? 44 : 0);
    }

    /* a backoff goes on with the new holder */

    make(&task, NGX_MCP_RUNNING);
    task.policy.route = 5;
    (void) apply(&task, NGX_MCP_EV_RETRY, NOW);

    ngx_memzero(&ev, sizeof(ev));
    ev.type = NGX_MCP_EV_ORPHANED;
    ev.now = NOW + 10;
    ev.holder = 44;
    is(ngx_mcp_task_apply(&task, &ev), 0, "orphaned in a backoff");
    is(task.step_end, NOW + 1000, "which goes on");
    is(ngx_mcp_task_due(&task, NOW + 1000), NGX_MCP_EV_READY, "to its end");
}


/* in which lists and counts a task is, by its state; with and without route */

static void
test_lists(void)
{
    ngx_uint_t      state, route, open, runs, claimable;
    ngx_mcp_task_t  task;

    for (route = 0; route < 2; route++) {
        for (state = 1; state < NGX_MCP_STATES; state++) {

            make(&task, state);
            task.policy.route = route ? 7 : 0;

            claimable = (state == NGX_MCP_QUEUED);
            runs = (state == NGX_MCP_RUNNING
                    || state == NGX_MCP_INPUT_REQUIRED);
            open = claimable || runs;

            is(ngx_mcp_task_claimable(&task), claimable,
               "%s: %sclaimable", ngx_mcp_state_name(state)->data,
               claimable ? "" : "not ");
            is(ngx_mcp_task_listed(&task),
               route ? open : claimable, "%s", route ? "held" : "queued");
            is(ngx_mcp_task_runs(&task), route && runs,
               "counted, if it is a call that runs");
        }

        make(&task, NGX_MCP_RUNNING);
        task.policy.route = route;
        (void) apply(&task, NGX_MCP_EV_RETRY, NOW);

        is(ngx_mcp_task_claimable(&task), 0, "not in a backoff");
        is(ngx_mcp_task_listed(&task), route, "a call stays where it was");
        is(ngx_mcp_task_runs(&task), 0, "and does not run");
    }
}


static void
test_times(void)
{
    ngx_mcp_task_t    task;
    ngx_mcp_event_t   ev;
    ngx_mcp_policy_t  policy;

    test_policy(&policy);

    make(&task, NGX_MCP_QUEUED);
    is(ngx_mcp_task_deadline(&task), NOW + 600000,
       "queued: the queue timeout comes first");
    is(ngx_mcp_task_due(&task, NOW + 600000),
       NGX_MCP_EV_QUEUE_TIMEOUT, "and is due");

    make(&task, NGX_MCP_RUNNING);
    task.step_end = NGX_MCP_NEVER;
    task.expires = NOW + 9999999;
    is(ngx_mcp_task_due(&task, NOW + 3600000),
       NGX_MCP_EV_RUN_TIMEOUT, "running: the run timeout");

    /* the run timeout stands still while the task waits for input */

    make(&task, NGX_MCP_RUNNING);
    (void) apply(&task, NGX_MCP_EV_ASK, NOW + 1000);
    is(ngx_mcp_task_deadline(&task), task.expires,
       "waiting for input: only the TTL runs");
    (void) apply(&task, NGX_MCP_EV_ANSWER_ALL, NOW + 500000);
    is(task.phase_end, NOW + 500000 + 3599000,
       "answered: what was left of the run timeout");
    is(task.step_end, NOW + 530000, "and a fresh lease");
    is(task.lease_token, LEASE, "with the same token");
    is(task.attempt, 1, "in the same attempt");

    /* TTL */

    make(&task, NGX_MCP_RUNNING);
    is(apply(&task, NGX_MCP_EV_EXPIRE, NOW + 3599999),
       NGX_MCP_STATE_INVALID, "not before the TTL's end");
    is(apply(&task, NGX_MCP_EV_EXPIRE, NOW + 3600000), 0, "then it expires");
    is(task.state, NGX_MCP_FREE, "and is gone");

    /* retention prolongs, and never cuts the TTL */

    make(&task, NGX_MCP_RUNNING);
    (void) apply(&task, NGX_MCP_EV_COMPLETE, NOW + 10);
    is(task.expires, NOW + 3600000, "a short retention does not cut the TTL");

    make(&task, NGX_MCP_RUNNING);
    task.policy.keep_failed = 86400;
    (void) apply(&task, NGX_MCP_EV_FAIL, NOW + 10);
    is(task.expires, NOW + 10 + 86400000, "a long one prolongs it");

    make(&task, NGX_MCP_RUNNING);
    task.policy.keep_cancelled = NGX_MCP_UNLIMITED;
    (void) apply(&task, NGX_MCP_EV_CANCEL, NOW + 10);
    is(task.expires, NGX_MCP_NEVER, "an unlimited one for good");

    policy.priority = 99;
    ngx_mcp_task_init(&task, &policy, NGX_MCP_NEVER, NOW, WALL);
    is(task.expires, NGX_MCP_NEVER, "no TTL, no expiry");
    is(task.policy.priority, NGX_MCP_PRIORITIES - 1, "priority is capped");

    /* heartbeats prolong the lease, by their own time if they say so */

    make(&task, NGX_MCP_RUNNING);
    (void) apply(&task, NGX_MCP_EV_HEARTBEAT, NOW + 20000);
    is(task.step_end, NOW + 50000, "a heartbeat prolongs the lease");

    ngx_memzero(&ev, sizeof(ev));
    ev.type = NGX_MCP_EV_HEARTBEAT;
    ev.now = NOW;
    ev.lease_token = LEASE;
    ev.lease_time = 5;
    (void) ngx_mcp_task_apply(&task, &ev);
    is(task.step_end, NOW + 5, "or sets it");
}


static void
test_progress(void)
{
    ngx_mcp_task_t   task;
    ngx_mcp_event_t  ev;

    make(&task, NGX_MCP_RUNNING);

    ngx_memzero(&ev, sizeof(ev));
    ev.type = NGX_MCP_EV_PROGRESS;
    ev.lease_token = LEASE;
    ev.progress = 0.5;
    ev.total = 1;
    is(ngx_mcp_task_apply(&task, &ev), 0, "progress");
    ok(task.progress == 0.5 && task.total == 1, "is kept");

    ev.progress = 0.4;
    is(ngx_mcp_task_apply(&task, &ev),
       NGX_MCP_PROGRESS_BACKWARDS, "never backwards");
    ok(task.progress == 0.5, "and is kept");

    ev.progress = -1;
    is(ngx_mcp_task_apply(&task, &ev), 0, "a message alone");
    ok(task.progress == 0.5, "leaves it alone");

    (void) apply(&task, NGX_MCP_EV_RELEASE, NOW);
    ok(task.progress < 0, "another attempt begins anew");
}


/* what an event says of a result holds once the task has ended with it */

static void
test_flags(void)
{
    ngx_uint_t        i, flags;
    ngx_mcp_task_t    task;
    ngx_mcp_event_t   ev;
    static struct {
        ngx_uint_t    event;
        ngx_uint_t    kept;
    } ends[] = {
        { NGX_MCP_EV_COMPLETE, 1 },
        { NGX_MCP_EV_FAIL, 1 },
        { NGX_MCP_EV_RETRY, 0 },
        { NGX_MCP_EV_RELEASE, 0 },
        { NGX_MCP_EV_PROGRESS, 0 },
        { NGX_MCP_EV_ASK, 0 }
    };

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        make(&task, NGX_MCP_RUNNING);
        task.flags = NGX_MCP_ANNOUNCED;

        ngx_memzero(&ev, sizeof(ev));
        ev.type = ends[i].event;
        ev.lease_token = LEASE;
        ev.now = NOW;
        ev.progress = -1;
        ev.flags = NGX_MCP_RESULT_READ|NGX_MCP_HAS_TYPE|NGX_MCP_HAS_META;
        flags = NGX_MCP_ANNOUNCED | (ends[i].kept ? ev.flags : 0);

        is(ngx_mcp_task_apply(&task, &ev), NGX_MCP_OK, "%s with flags",
           events[ends[i].event]);
        is(task.flags, flags, "  %s", ends[i].kept ? "kept" : "not kept");
    }
}


static void
test_names(void)
{
    is(ngx_strcmp(ngx_mcp_status_name(
                                      NGX_MCP_QUEUED)->data,
                  "working"), 0, "clients see queued as working");
    is(ngx_strcmp(ngx_mcp_status_name(
                                      NGX_MCP_RUNNING)->data,
                  "working"), 0, "and running, too");
    is(ngx_strcmp(ngx_mcp_status_name(
                                      NGX_MCP_CANCELLED)->data,
                  "cancelled"), 0, "the others by their names");
    is(ngx_strcmp(ngx_mcp_state_name(99)->data, "free"), 0,
       "no state beyond the last");
    is(ngx_strcmp(ngx_mcp_reason_name(
                                      NGX_MCP_ZONE_FULL)->data,
                  "zone_full"), 0, "reasons have names");
    is(ngx_strcmp(ngx_mcp_reason_name(
                                      NGX_MCP_REASONS - 1)->data,
                  "worker_not_found"), 0, "up to the last of them");
    is(ngx_strcmp(ngx_mcp_reason_name(
                                      NGX_MCP_REASONS)->data,
                  "unknown"), 0, "and none beyond");
}


int
main(void)
{
    test_rules();
    test_leases();
    test_attempts();
    test_retry_on();
    test_orphaned();
    test_lists();
    test_times();
    test_progress();
    test_flags();
    test_names();

    return done_testing();
}
