
/* What events and time do to a task of the model. */


#include "libmodel.h"


/* an attempt is over, if there was one */

static void
ran(model_task_t *m, uint64_t now)
{
    if (m->state == NGX_MCP_QUEUED) {
        return;
    }

    model.counters[m->tool].runs++;
    model.counters[m->tool].ran += (m->state == NGX_MCP_RUNNING)
                          ? now - m->since : m->since;
}


static void
end(model_task_t *m, int state, int cause, uint64_t now)
{
    static const int  keep[] = { 0, 0, 0, 0, 2, 3, 1 };

    ran(m, now);
    model.counters[m->tool].ended[state]++;
    m->state = state;
    m->cause = cause;
    m->step = NEVER;
    m->phase = NEVER;
    m->expires = ngx_max(m->expires, now + keep[state] * 1000);
}


static void
requeue(model_task_t *m, uint64_t now, uint64_t delay)
{
    ran(m, now);
    model.counters[m->tool].requeued++;
    m->since = now + delay;
    m->state = NGX_MCP_QUEUED;
    m->lease = 0;
    m->progress = -1;
    m->step = delay ? now + delay : NEVER;
    m->phase = now + delay + MODEL_QUEUE;
    m->batch = model.batch;
}


uint64_t
model_lease_end(model_task_t *m, uint64_t now)
{
    return m->lease_time == NGX_MCP_UNLIMITED
           ? NEVER : now + m->lease_time;
}


static uint64_t
backoff(model_task_t *m)
{
    return (uint64_t) MODEL_BACKOFF << (m->attempt - 1);
}


/* whether an attempt that ended in this way is repeated */

static int
again(model_task_t *m, int end)
{
    int  differs;

    if (m->attempt >= m->attempts) {
        return 0;
    }

    differs = m->calls & end;

    return (end == NGX_MCP_RETRY_TIMEOUT) ? differs : !differs;
}


static const char *
status(int state)
{
    return (char *) ngx_mcp_status_name(state)->data;
}


/*
 * A change, if it is one to those who are told of changes.  Its number is the
 * table's to choose, but it has to be greater than any before.
 */

void
model_made(model_task_t *m, model_task_t *old, int noted, uint64_t before,
    uint64_t changed)
{
    int  announced, moved;

    announced = (m->announced != old->announced);

    if (m->version == old->version && !announced) {
        return;
    }

    if (changed <= before) {
        fail("a change without a number of its own");
    }

    moved = (m->progress > m->peak);
    m->changed = changed;
    m->peak = ngx_max(m->peak, m->progress);

    if ((announced && m->turned) || noted
        || strcmp(status(m->state), status(old->state)) != 0)
    {
        m->turned = changed;
    }

    if ((announced && m->moved) || moved) {
        m->moved = changed;
    }
}


ngx_uint_t
model_asks(model_task_t *m, uint64_t stream, int yields)
{
    if (m->state != NGX_MCP_INPUT_REQUIRED
        || model_alive(m->asker)
        || (yields && m->results))
    {
        return 0;
    }

    if (stream) {
        m->asker = stream;
        model.asked++;
    }

    return 1;
}


/* what the event does to the model; the reason it is refused with */

ngx_uint_t
model_event(model_task_t *m, ngx_mcp_event_t *ev)
{
    int       run, input;
    uint64_t  now;

    now = ngx_current_msec;
    run = (m->state == NGX_MCP_RUNNING);
    input = (m->state == NGX_MCP_INPUT_REQUIRED);

    if (ngx_mcp_fenced(ev->type)) {
        if (ev->lease_token == 0 || ev->lease_token != m->lease) {
            return NGX_MCP_LEASE_LOST;
        }
    }

    if (ev->type == NGX_MCP_EV_ANNOUNCE) {
        m->announced = 1;
        return NGX_MCP_OK;
    }

    if (m->state >= NGX_MCP_COMPLETED) {
        return NGX_MCP_TERMINAL;
    }

    switch (ev->type) {

    case NGX_MCP_EV_HEARTBEAT:
        if (run) {
            m->step = model_lease_end(m, now);
        }

        return NGX_MCP_OK;

    case NGX_MCP_EV_PROGRESS:
    case NGX_MCP_EV_REPORT:
        if (!run && !input) {
            return NGX_MCP_STATE_INVALID;
        }

        if (ev->progress < m->progress) {
            return NGX_MCP_PROGRESS_BACKWARDS;
        }

        m->progress = ev->progress;

        if (run && ev->type == NGX_MCP_EV_PROGRESS) {
            m->step = model_lease_end(m, now);
        }

        break;

    case NGX_MCP_EV_ASK:
        if (!run) {
            return NGX_MCP_STATE_INVALID;
        }

        m->state = NGX_MCP_INPUT_REQUIRED;
        m->asker = 0;
        m->lease = ev->release ? 0 : m->lease;
        m->step = NEVER;
        m->phase = (m->phase > now) ? m->phase - now : 0;
        m->since = now - m->since;
        break;

    case NGX_MCP_EV_COMPLETE:
        end(m, NGX_MCP_COMPLETED, NGX_MCP_CAUSE_NONE, now);
        break;

    case NGX_MCP_EV_FAIL:
        end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_NONE, now);
        break;

    case NGX_MCP_EV_RETRY:
        if (!again(m, NGX_MCP_RETRY_ERROR)) {
            end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_NONE, now);

        } else {
            requeue(m, now, backoff(m));
        }

        break;

    case NGX_MCP_EV_RELEASE:
        model.batch++;
        requeue(m, now, 0);
        m->attempt--;
        break;

    case NGX_MCP_EV_ANSWER:
        if (!input) {
            return NGX_MCP_STATE_INVALID;
        }

        break;

    case NGX_MCP_EV_ANSWER_ALL:
        if (!input) {
            return NGX_MCP_STATE_INVALID;
        }

        if (m->lease == 0) {
            model.batch++;
            requeue(m, now, 0);
            m->attempt--;
            break;
        }

        m->state = NGX_MCP_RUNNING;
        m->step = model_lease_end(m, now);
        m->phase += now;
        m->since = now - m->since;
        break;

    case NGX_MCP_EV_CANCEL:
        end(m, NGX_MCP_CANCELLED, NGX_MCP_CAUSE_CANCELLED, now);
        break;

    case NGX_MCP_EV_ORPHANED:
        if (ev->holder == 0
            || m->calls & NGX_MCP_BOUND
            || ((run || input)
                && (!(m->calls & NGX_MCP_IDEMPOTENT)
                    || !again(m, NGX_MCP_RETRY_LEASE))))
        {
            end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_PROCESS_LOST, now);

        } else if (run || input) {
            requeue(m, now, backoff(m));
        }

        m->announced = 1;
        m->holder = ev->holder;
        break;
    }

    m->version++;

    return NGX_MCP_OK;
}


/* what it means for the worker that has the task */

void
model_work(model_task_t *m, ngx_uint_t event)
{
    if (m->worker == -1 || !ngx_mcp_fenced(event)) {
        return;
    }

    model.workers[m->worker].seen = ngx_current_msec;

    switch (event) {
    case NGX_MCP_EV_COMPLETE:
        model.workers[m->worker].completed++;
        break;
    case NGX_MCP_EV_FAIL:
    case NGX_MCP_EV_RETRY:
        model.workers[m->worker].failed++;
        break;
    }
}


void
model_time(model_task_t *m, uint64_t now)
{
    while (m->live) {

        if (now >= m->expires) {
            m->live = 0;
            model.counters[m->tool].lapsed += (m->state < NGX_MCP_COMPLETED);

        } else if (m->state == NGX_MCP_QUEUED && now >= m->phase) {
            end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_QUEUE_TIMEOUT, now);
            m->version++;

        } else if (m->state == NGX_MCP_QUEUED && now >= m->step) {
            m->step = NEVER;
            m->batch = model.batch;

        } else if (m->state == NGX_MCP_RUNNING && now >= m->phase) {
            m->version++;

            if (again(m, NGX_MCP_RETRY_TIMEOUT)) {
                requeue(m, now, backoff(m));

            } else {
                end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_RUN_TIMEOUT, now);
            }

        } else if (m->state == NGX_MCP_RUNNING && now >= m->step) {
            m->version++;
            model.counters[m->tool].leases_lost++;

            if (!again(m, NGX_MCP_RETRY_LEASE)) {
                end(m, NGX_MCP_FAILED, NGX_MCP_CAUSE_LEASE_LOST, now);

            } else {
                requeue(m, now, backoff(m));
            }

        } else {
            return;
        }
    }
}
