
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_task.h"


/* ms */
#define NGX_MCP_BACKOFF_MAX  3600000

/* in the rules: the event changes other fields, but not the state */
#define STAY    0x80
#define STATE   0x7f

#define NO      0
#define QUEUED  NGX_MCP_QUEUED
#define RUN     NGX_MCP_RUNNING
#define INPUT   NGX_MCP_INPUT_REQUIRED
#define DONE    NGX_MCP_COMPLETED
#define FAILED  NGX_MCP_FAILED
#define CANCEL  NGX_MCP_CANCELLED


static uint64_t ngx_mcp_after(uint64_t now, uint32_t delay);
static uint64_t ngx_mcp_backoff(ngx_mcp_task_t *task);
static uint64_t ngx_mcp_lease_end(ngx_mcp_task_t *task, ngx_mcp_event_t *ev);
static uint64_t ngx_mcp_lease_prolong(ngx_mcp_task_t *task,
    ngx_mcp_event_t *ev);
static ngx_uint_t ngx_mcp_task_again(ngx_mcp_task_t *task, ngx_uint_t end);
static ngx_uint_t ngx_mcp_task_adoptable(ngx_mcp_task_t *task,
    ngx_mcp_event_t *ev);
static void ngx_mcp_task_enter(ngx_mcp_task_t *task, ngx_mcp_event_t *ev,
    ngx_uint_t next);
static void ngx_mcp_task_end(ngx_mcp_task_t *task, ngx_mcp_event_t *ev);


/*
 * The state that an event leads to, in the order of ngx_mcp_event_e: first a
 * line for events that need the lease token, then one for claims and owners,
 * one for the clock and EV_ANNOUNCE, and one for EV_ORPHANED.
 *
 * EV_RETRY, EV_LEASE_LOST and EV_RUN_TIMEOUT lead to FAILED instead if the
 * policy does not retry them or no attempts are left, and so does EV_ORPHANED
 * if no other process may run the task.  EV_ANSWER_ALL leads to QUEUED instead
 * if EV_ASK has released the task.  Terminal states have no row: they accept
 * only EV_EXPIRE, which removes a task in any state, and EV_ANNOUNCE, which
 * does not depend on the state.
 */

static const uint8_t
    ngx_mcp_rules[NGX_MCP_COMPLETED]
                            [NGX_MCP_EVENTS] =
{
    /* FREE */
    { 0 },

    /* QUEUED */
    {
        NO, NO, NO, NO, NO, NO, NO,
        RUN, NO, NO, CANCEL, STAY|QUEUED, NO,
        STAY|QUEUED, NO, FAILED, NO, NO, NO,
        STAY|QUEUED
    },

    /* RUNNING */
    {
        STAY|RUN, STAY|RUN, INPUT, DONE, FAILED, QUEUED, QUEUED,
        NO, NO, NO, CANCEL, STAY|RUN, STAY|RUN,
        NO, QUEUED, NO, QUEUED, NO, NO,
        QUEUED
    },

    /* INPUT_REQUIRED */
    {
        STAY|INPUT, STAY|INPUT, NO, DONE, FAILED, QUEUED, QUEUED,
        NO, STAY|INPUT, RUN, CANCEL, STAY|INPUT, STAY|INPUT,
        NO, NO, NO, NO, NO, NO,
        QUEUED
    }
};


static ngx_str_t  ngx_mcp_states[] = {
    ngx_string("free"),
    ngx_string("queued"),
    ngx_string("running"),
    ngx_string("input_required"),
    ngx_string("completed"),
    ngx_string("failed"),
    ngx_string("cancelled")
};

static ngx_str_t  ngx_mcp_working = ngx_string("working");


void
ngx_mcp_task_init(ngx_mcp_task_t *task, ngx_mcp_policy_t *policy, uint64_t ttl,
    uint64_t now, uint64_t wall)
{
    ngx_memzero(task, sizeof(ngx_mcp_task_t));

    task->version = 1;
    task->created = wall;
    task->updated = wall;
    task->ttl = ttl;
    task->policy = *policy;
    task->policy.priority = ngx_min(policy->priority, NGX_MCP_PRIORITIES - 1);
    task->state = NGX_MCP_QUEUED;
    task->progress = -1;
    task->total = -1;

    task->expires = (ttl >= NGX_MCP_NEVER - now)
                    ? NGX_MCP_NEVER : now + ttl;
    task->step_end = NGX_MCP_NEVER;
    task->phase_end = ngx_mcp_after(now, policy->queue_timeout);
    task->since = now;
}


/*
 * Returns NGX_MCP_OK, or the reason why the event is refused; a refused event
 * leaves the task unchanged.  A task that expires becomes FREE: the caller
 * removes it.
 */

ngx_uint_t
ngx_mcp_task_apply(ngx_mcp_task_t *task, ngx_mcp_event_t *ev)
{
    ngx_uint_t  next;

    if (task->state == NGX_MCP_FREE) {
        return NGX_MCP_NOT_FOUND;
    }

    if (ngx_mcp_fenced(ev->type)
        && (ev->lease_token == 0 || ev->lease_token != task->lease_token))
    {
        return NGX_MCP_LEASE_LOST;
    }

    if (ev->type == NGX_MCP_EV_EXPIRE) {
        if (ev->now < task->expires) {
            return NGX_MCP_STATE_INVALID;
        }

        task->state = NGX_MCP_FREE;
        return NGX_MCP_OK;
    }

    if (ev->type == NGX_MCP_EV_ANNOUNCE) {
        /* clients see no difference: not a new version */
        task->flags |= NGX_MCP_ANNOUNCED;
        return NGX_MCP_OK;
    }

    if (ngx_mcp_terminal(task->state)) {
        return NGX_MCP_TERMINAL;
    }

    next = ngx_mcp_rules[task->state][ev->type];

    if (next == NO
        || (ev->type == NGX_MCP_EV_CLAIM
            && !ngx_mcp_task_claimable(task)))
    {
        return NGX_MCP_STATE_INVALID;
    }

    switch (ev->type) {

    case NGX_MCP_EV_HEARTBEAT:
        /* clients do not see the lease: not a new version */
        if (task->state == NGX_MCP_RUNNING) {
            task->step_end = ngx_mcp_lease_prolong(task, ev);
        }

        return NGX_MCP_OK;

    case NGX_MCP_EV_READY:
        /* clients see the same queued task: not a new version */
        task->step_end = NGX_MCP_NEVER;
        return NGX_MCP_OK;

    case NGX_MCP_EV_PROGRESS:
    case NGX_MCP_EV_REPORT:
        if (ev->progress >= 0) {
            if (ev->progress < task->progress) {
                return NGX_MCP_PROGRESS_BACKWARDS;
            }

            task->progress = ev->progress;
            task->total = ev->total;
        }

        /* progress also extends the lease */

        if (ev->type == NGX_MCP_EV_PROGRESS
            && task->state == NGX_MCP_RUNNING)
        {
            task->step_end = ngx_mcp_lease_prolong(task, ev);
        }

        break;

    case NGX_MCP_EV_ANSWER_ALL:
        if (task->lease_token == 0) {
            next = NGX_MCP_QUEUED;
        }

        break;

    case NGX_MCP_EV_RETRY:
        if (!ngx_mcp_task_again(task, NGX_MCP_RETRY_ERROR)) {
            next = NGX_MCP_FAILED;
        }

        break;

    case NGX_MCP_EV_LEASE_LOST:
        if (!ngx_mcp_task_again(task, NGX_MCP_RETRY_LEASE)) {
            next = NGX_MCP_FAILED;
            task->cause = NGX_MCP_CAUSE_LEASE_LOST;
        }

        break;

    case NGX_MCP_EV_QUEUE_TIMEOUT:
        task->cause = NGX_MCP_CAUSE_QUEUE_TIMEOUT;
        break;

    case NGX_MCP_EV_RUN_TIMEOUT:
        if (!ngx_mcp_task_again(task, NGX_MCP_RETRY_TIMEOUT)) {
            next = NGX_MCP_FAILED;
            task->cause = NGX_MCP_CAUSE_RUN_TIMEOUT;
        }

        break;

    case NGX_MCP_EV_CANCEL:
        task->cause = NGX_MCP_CAUSE_CANCELLED;
        break;

    case NGX_MCP_EV_ORPHANED:
        if (!ngx_mcp_task_adoptable(task, ev)) {
            next = NGX_MCP_FAILED;
            task->cause = NGX_MCP_CAUSE_PROCESS_LOST;
        }

        /* the new holder does not announce the task */

        task->flags |= NGX_MCP_ANNOUNCED;
        task->holder = ev->holder;
        break;
    }

    if (!(next & STAY)) {
        ngx_mcp_task_enter(task, ev, next & STATE);
    }

    task->version++;
    task->updated = ev->wall;

    return NGX_MCP_OK;
}


/* whether another attempt follows one that ended in this way */

static ngx_uint_t
ngx_mcp_task_again(ngx_mcp_task_t *task, ngx_uint_t end)
{
    return (task->policy.calls ^ NGX_MCP_RETRY_DEFAULT) & end
           && task->attempt < task->policy.attempts;
}


/*
 * Whether another process may run an orphaned call.  A call that may have
 * begun is repeated only if it is idempotent and another attempt may follow a
 * lost one.
 */

static ngx_uint_t
ngx_mcp_task_adoptable(ngx_mcp_task_t *task, ngx_mcp_event_t *ev)
{
    if (ev->holder == 0
        || task->policy.calls & NGX_MCP_BOUND)
    {
        return 0;
    }

    return task->state == NGX_MCP_QUEUED
           || (task->policy.calls & NGX_MCP_IDEMPOTENT
               && ngx_mcp_task_again(task, NGX_MCP_RETRY_LEASE));
}


static void
ngx_mcp_task_enter(ngx_mcp_task_t *task, ngx_mcp_event_t *ev, ngx_uint_t next)
{
    uint64_t    left, from;
    ngx_uint_t  prev;

    prev = task->state;
    task->state = (uint8_t) next;

    switch (next) {

    case NGX_MCP_QUEUED:

        if (ev->type == NGX_MCP_EV_RELEASE
            || ev->type == NGX_MCP_EV_ANSWER_ALL)
        {
            /* a released attempt does not count */
            task->attempt--;
            from = ev->now;

        } else {
            from = ev->now + (ev->delay ? ev->delay
                                        : ngx_mcp_backoff(task));
        }

        task->step_end = (from > ev->now) ? from : NGX_MCP_NEVER;
        task->phase_end = ngx_mcp_after(from, task->policy.queue_timeout);
        task->since = from;
        task->lease_token = 0;
        task->progress = -1;
        task->total = -1;
        return;

    case NGX_MCP_RUNNING:

        task->step_end = ngx_mcp_lease_end(task, ev);

        if (prev == NGX_MCP_INPUT_REQUIRED) {
            left = task->phase_end;
            task->phase_end = (left == NGX_MCP_NEVER)
                              ? left : ev->now + left;
            task->since = ev->now - task->since;
            return;
        }

        task->since = ev->now;
        task->worker = ev->worker;
        task->lease_token = ev->lease_token;
        task->attempt++;
        task->phase_end = ngx_mcp_after(ev->now, task->policy.run_timeout);
        return;

    case NGX_MCP_INPUT_REQUIRED:

        task->step_end = NGX_MCP_NEVER;
        left = task->phase_end;

        if (left != NGX_MCP_NEVER) {
            task->phase_end = (left > ev->now) ? left - ev->now : 0;
        }

        task->since = ev->now - task->since;

        if (ev->release) {
            task->lease_token = 0;
        }

        return;

    default: /* terminal */
        ngx_mcp_task_end(task, ev);
        return;
    }
}


static void
ngx_mcp_task_end(ngx_mcp_task_t *task, ngx_mcp_event_t *ev)
{
    uint32_t  keep;
    uint64_t  until;

    switch (task->state) {
    case NGX_MCP_COMPLETED:
        keep = task->policy.keep_completed;
        break;
    case NGX_MCP_FAILED:
        keep = task->policy.keep_failed;
        break;
    default:
        keep = task->policy.keep_cancelled;
    }

    /*
     * the lease token stays: a worker that still uses it gets the reason
     * NGX_MCP_TERMINAL and not NGX_MCP_LEASE_LOST
     */

    task->flags |= ev->flags;
    task->step_end = NGX_MCP_NEVER;
    task->phase_end = NGX_MCP_NEVER;

    /* retention may extend the TTL sent to the client, never shorten it */

    until = (keep == NGX_MCP_UNLIMITED)
            ? NGX_MCP_NEVER : ev->now + (uint64_t) keep * 1000;

    task->expires = ngx_max(task->expires, until);
}


/* the time of the next event from the clock; NGX_MCP_NEVER: none */

uint64_t
ngx_mcp_task_deadline(ngx_mcp_task_t *task)
{
    uint64_t  deadline;

    deadline = ngx_min(task->expires, task->step_end);

    if (task->state == NGX_MCP_QUEUED
        || task->state == NGX_MCP_RUNNING)
    {
        deadline = ngx_min(deadline, task->phase_end);
    }

    return deadline;
}


/* the event from the clock that is due; NGX_MCP_EVENTS: none */

ngx_uint_t
ngx_mcp_task_due(ngx_mcp_task_t *task, uint64_t now)
{
    if (now >= task->expires) {
        return NGX_MCP_EV_EXPIRE;
    }

    switch (task->state) {

    case NGX_MCP_QUEUED:
        if (now >= task->phase_end) {
            return NGX_MCP_EV_QUEUE_TIMEOUT;
        }

        if (now >= task->step_end) {
            return NGX_MCP_EV_READY;
        }

        break;

    case NGX_MCP_RUNNING:
        if (now >= task->phase_end) {
            return NGX_MCP_EV_RUN_TIMEOUT;
        }

        if (now >= task->step_end) {
            return NGX_MCP_EV_LEASE_LOST;
        }

        break;
    }

    return NGX_MCP_EVENTS;
}


ngx_uint_t
ngx_mcp_task_claimable(ngx_mcp_task_t *task)
{
    return task->state == NGX_MCP_QUEUED
           && task->step_end == NGX_MCP_NEVER;
}


/*
 * Whether the task belongs in a queue: a background call in the zone's queue
 * of held calls until it ends, any other task in its tool's queue while it can
 * be claimed.
 */

ngx_uint_t
ngx_mcp_task_listed(ngx_mcp_task_t *task)
{
    return task->policy.route ? !ngx_mcp_terminal(task->state)
                              : ngx_mcp_task_claimable(task);
}


/* a background call counts as running also while it waits for input */

ngx_uint_t
ngx_mcp_task_runs(ngx_mcp_task_t *task)
{
    return task->policy.route
           && (task->state == NGX_MCP_RUNNING
               || task->state == NGX_MCP_INPUT_REQUIRED);
}


/* how long the task has been claimable, or has run in this attempt; ms */

uint64_t
ngx_mcp_task_age(ngx_mcp_task_t *task, uint64_t now)
{
    if (task->state == NGX_MCP_INPUT_REQUIRED) {
        return task->since;
    }

    return (now > task->since) ? now - task->since : 0;
}


/* the name of the internal state; the status below is the protocol's */

ngx_str_t *
ngx_mcp_state_name(ngx_uint_t state)
{
    return &ngx_mcp_states[state < NGX_MCP_STATES
                           ? state : NGX_MCP_FREE];
}


ngx_str_t *
ngx_mcp_status_name(ngx_uint_t state)
{
    if (state == NGX_MCP_QUEUED
        || state == NGX_MCP_RUNNING)
    {
        return &ngx_mcp_working;
    }

    return ngx_mcp_state_name(state);
}


static uint64_t
ngx_mcp_after(uint64_t now, uint32_t delay)
{
    return (delay == NGX_MCP_UNLIMITED) ? NGX_MCP_NEVER
                                        : now + delay;
}


static uint64_t
ngx_mcp_lease_end(ngx_mcp_task_t *task, ngx_mcp_event_t *ev)
{
    return ngx_mcp_after(ev->now, ev->lease_time ? ev->lease_time
                                                     : task->policy.lease);
}


/* extends the lease; only an event with a lease time may shorten it */

static uint64_t
ngx_mcp_lease_prolong(ngx_mcp_task_t *task, ngx_mcp_event_t *ev)
{
    uint64_t  end;

    end = ngx_mcp_lease_end(task, ev);

    return ev->lease_time ? end : ngx_max(end, task->step_end);
}


static uint64_t
ngx_mcp_backoff(ngx_mcp_task_t *task)
{
    uint64_t    delay;
    ngx_uint_t  n;

    delay = task->policy.backoff;

    for (n = 1; n < task->attempt && delay < NGX_MCP_BACKOFF_MAX;
         n++)
    {
        delay *= 2;
    }

    return ngx_min(delay, NGX_MCP_BACKOFF_MAX);
}
