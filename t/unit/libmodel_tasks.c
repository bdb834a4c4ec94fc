
/*
 * Operations on the tasks of the table and of the model: create, read, claim,
 * change, delete and list them, and let time pass.
 */


#include "libmodel.h"
#include "ngx_mcp_arena.h"


void
model_compare_task(model_task_t *m, ngx_mcp_view_t *v)
{
    expect(v->task.state, m->state, "state");
    expect(v->task.version, m->version, "version");
    expect(v->task.lease_token, m->lease, "lease");
    expect(v->task.attempt, m->attempt, "attempt");
    expect(v->task.expires, m->expires, "expires");
    expect(v->task.step_end, m->step, "step");
    expect(v->task.phase_end, m->phase, "phase");
    expect(v->task.cause, m->cause, "cause");
    expect(v->task.holder, m->holder, "holder");
    expect(v->seq, m->seq, "seq");
    expect(v->changed, m->changed, "changed");
    expect(v->turned, m->turned, "turned");
    expect(v->moved, m->moved, "moved");
    expect((v->task.flags & NGX_MCP_ANNOUNCED) != 0, m->announced,
           "announced");

    if (v->task.progress != m->progress) {
        fail("progress");
    }
}


void
model_compare(model_task_t *m, ngx_mcp_view_t *v)
{
    int     k;
    u_char  buf[BYTES];

    model_compare_task(m, v);

    if (v->owner.len != strlen(model_owner_names[m->owner])
        || memcmp(v->owner.data, model_owner_names[m->owner], v->owner.len)
           != 0)
    {
        fail("owner");
    }

    for (k = 0; k < NGX_MCP_PAYLOADS; k++) {
        model_fill(buf, m->seed[k], m->len[k]);

        if (v->payload[k].len != m->len[k]
            || memcmp(v->payload[k].data, buf, m->len[k]) != 0)
        {
            fail("payload %d: %lu bytes, expected %lu", k,
                 (unsigned long) v->payload[k].len,
                 (unsigned long) m->len[k]);
        }
    }
}


void
model_do_create(void)
{
    int                   i, k, session, used;
    u_char                buf[3][BYTES];
    size_t                need, before;
    model_task_t         *m;
    ngx_mcp_id_t          id;
    ngx_mcp_op_create_t   op;

    for (i = 0; i < MAX && model.tasks[i].live; i++) { /* void */ }

    m = (i < MAX) ? &model.tasks[i] : NULL;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CREATE;
    op.op.pool = test_pool;

    i = model_rnd(OWNERS);
    k = model_rnd(TOOLS);
    op.task.owner = str(model_owner_names[i]);
    op.task.tool = str(model_tool_names[k]);
    op.task.method = str("tools/call");
    session = (int) model_rnd(SESSIONS + 1) - 1;
    op.task.session = str(session == -1 ? NULL : model_session_names[session]);
    op.task.ttl = model_rnd(4) ? 1000 + model_rnd(20000)
                         : model_rnd(4) ? 1 + model_rnd(100) : NEVER;
    op.task.policy.priority = model_rnd(NGX_MCP_PRIORITIES);
    op.task.policy.lease = MODEL_LEASE;
    op.task.policy.queue_timeout = MODEL_QUEUE;
    op.task.policy.run_timeout = MODEL_RUN;
    op.task.policy.backoff = MODEL_BACKOFF;
    op.task.policy.keep_completed = 2;
    op.task.policy.keep_failed = 3;
    op.task.policy.keep_cancelled = 1;
    op.task.policy.attempts = 1 + model_rnd(3);
    op.task.max_payload = 5500;

    if (session != -1) {
        op.task.holder = model_any_stream();
    }

    if (model_rnd(3) == 0) {
        op.task.holder = model_any_stream();
        op.task.policy.route = 1 + model_rnd(5);
        op.task.policy.calls = model_rnd(4) ? model_rnd(2) : model_rnd(4);
        op.task.policy.lease = model_rnd(2) ? MODEL_LEASE
                                      : NGX_MCP_UNLIMITED;
    }

    /* half of the tasks are retried as by default */

    if (model_rnd(2)) {
        op.task.policy.calls |= model_rnd(8) << 4;
    }

    op.task.params.len = model_random_len();
    op.task.params.data = buf[0];
    op.task.metadata.len = model_rnd(3) ? 0 : model_random_len();
    op.task.metadata.data = buf[1];
    op.task.message.len = model_rnd(3) ? 0 : model_random_len();
    op.task.message.data = buf[2];

    model_fill(buf[0], model.ops, op.task.params.len);
    model_fill(buf[1], model.ops + 1, op.task.metadata.len);
    model_fill(buf[2], model.ops + 2, op.task.message.len);

    /* the id of a task that exists, of one that did, or a new one */

    used = 0;

    if (model_rnd(4) == 0) {
        id = model.tasks[model_rnd(MAX)].id;
        op.id = &id;

        if (model_rnd(3) == 0) {
            (void) ngx_mcp_id_new(&id);
        }

        used = (model_find(&id) != NULL);
    }

    before = model_used_blocks();

    if (ngx_mcp_submit(model.zone, &op.op) != NGX_OK) {
        fail("create failed");
        return;
    }

    if (op.task.params.len > 5500 || op.task.metadata.len > 5500
        || op.task.message.len > 5500)
    {
        expect(op.op.reason, NGX_MCP_PAYLOAD_TOO_LARGE, "create");
        return;
    }

    if (m == NULL) {
        expect(op.op.reason, NGX_MCP_LIMIT_TASKS, "create");
        return;
    }

    m->live = 1;
    m->owner = i;
    m->tool = k;
    m->session = session;
    ngx_memzero(m->len, sizeof(m->len));
    m->len[NGX_MCP_PARAMS] = op.task.params.len;
    m->len[NGX_MCP_METADATA] = op.task.metadata.len;
    m->len[NGX_MCP_MESSAGE] = op.task.message.len;
    need = model_used_blocks() - before;

    if (before + need + model.zone->table->sh->block.end / 16
        > model.zone->table->sh->block.end - 1)
    {
        m->live = 0;
        expect(op.op.reason, NGX_MCP_ZONE_FULL, "create");
        return;
    }

    expect(op.op.reason, NGX_MCP_OK, "create");

    if (op.op.reason != NGX_MCP_OK) {
        m->live = 0;
        return;
    }

    if (op.id) {
        expect(ngx_memcmp(&op.view.id, &id, sizeof(id)) == 0, !used,
               "the id of a new task");
    }

    m->id = op.view.id;
    m->seq = op.view.seq;
    m->priority = op.task.policy.priority;
    m->state = NGX_MCP_QUEUED;
    m->version = 1;
    m->lease = 0;
    m->attempt = 0;
    m->attempts = op.task.policy.attempts;
    m->expires = (op.task.ttl == NEVER) ? NEVER
                                        : ngx_current_msec + op.task.ttl;
    m->step = NEVER;
    m->phase = ngx_current_msec + MODEL_QUEUE;
    m->progress = -1;
    m->since = ngx_current_msec;
    m->worker = -1;
    model.counters[m->tool].created++;
    m->batch = ++model.batch;
    m->announced = (session == -1);
    m->changed = op.view.seq;
    m->turned = 0;
    m->moved = 0;
    m->peak = -1;
    m->asker = 0;
    m->waiting = 0;
    m->results = 0;
    m->cause = NGX_MCP_CAUSE_NONE;
    m->held = (op.task.policy.route != 0);
    m->holder = op.task.holder;
    m->calls = op.task.policy.calls;
    m->lease_time = op.task.policy.lease;
    m->refused = 0;

    for (i = 0; i < 3; i++) {
        m->seed[i] = model.ops + i;
    }
}


void
model_do_get(void)
{
    model_task_t      *m;
    ngx_str_t          owner;
    ngx_uint_t         expected;
    ngx_mcp_op_get_t   op;

    m = model_rnd(10) ? model_pick() : model_pick_asking();

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_GET;
    op.op.pool = test_pool;
    op.want = NGX_MCP_WANT_ALL;
    op.watch = model_rnd(2);
    op.asker = model_rnd(2) ? model_any_stream() : 0;
    expected = NGX_MCP_OK;

    if (m == NULL || model_rnd(20) == 0) {
        (void) ngx_mcp_id_new(&op.id);
        expected = NGX_MCP_NOT_FOUND;

    } else {
        op.id = m->id;

        if (model_rnd(2)) {
            owner = str(model_owner_names[model_rnd(OWNERS)]);
            op.owner = &owner;

            if (strcmp((char *) owner.data, model_owner_names[m->owner]) != 0)
            {
                expected = NGX_MCP_NOT_FOUND;
            }
        }

        if (ngx_current_msec >= m->expires) {
            expected = NGX_MCP_NOT_FOUND;
        }
    }

    (void) ngx_mcp_submit(model.zone, &op.op);
    expect(op.op.reason, expected, "get");

    if (op.op.reason == NGX_MCP_OK && m) {
        model_compare(m, &op.view);
        expect(op.view.asks, model_asks(m, op.asker, 0), "asks");
    }
}


void
model_do_claim(void)
{
    int                  i, tool, worker;
    model_task_t        *m, *best, old;
    uint64_t             before;
    ngx_str_t            name;
    ngx_mcp_op_claim_t   op;

    tool = model_rnd(TOOLS);
    name = str(model_tool_names[tool]);

    for (best = NULL, i = 0; i < MAX; i++) {
        m = &model.tasks[i];

        if (m->live && m->tool == tool && !m->held && !model.paused[tool]
            && m->state == NGX_MCP_QUEUED
            && m->step == NEVER
            && (best == NULL || m->priority > best->priority
                || (m->priority == best->priority && m->batch < best->batch)))
        {
            best = m;
        }
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CLAIM;
    op.op.pool = test_pool;
    op.tools = &name;
    op.ntools = 1;
    op.want = NGX_MCP_WANT_ALL;
    op.watch = model_rnd(2);
    worker = (int) model_rnd(WORKERS + 1) - 1;
    op.worker = str(worker == -1 ? NULL : model_worker_names[worker]);
    before = model.zone->table->sh->seq;

    if (worker != -1) {
        model.workers[worker].seen = ngx_current_msec;
    }

    if (worker != -1 && model.draining[worker]) {
        best = NULL;
    }

    (void) ngx_mcp_submit(model.zone, &op.op);
    expect(op.n, best != NULL, "claim");
    expect(op.drain, worker != -1 && model.draining[worker], "drain");
    expect(op.more, 0, "more to claim");

    if (!op.n || best == NULL) {
        return;
    }

    /* those that became claimable in one sweep are equals */

    m = model_find(&op.views->id);

    if (m == NULL || m->tool != tool || m->priority != best->priority
        || m->batch != best->batch)
    {
        fail("claimed another task than the first");
        return;
    }

    old = *m;
    m->state = NGX_MCP_RUNNING;
    m->version++;
    m->lease = op.views->task.lease_token;
    m->attempt++;
    m->step = ngx_current_msec + MODEL_LEASE;
    m->phase = ngx_current_msec + MODEL_RUN;
    model.counters[tool].claimed++;
    model.counters[tool].waited += ngx_current_msec - m->since;
    m->since = ngx_current_msec;
    m->worker = worker;

    if (worker != -1) {
        model.workers[worker].claimed++;
    }

    model_made(m, &old, 0, before, op.views->changed);

    model_compare(m, op.views);
}


void
model_do_event(void)
{
    int                   k, dropped, noted;
    model_counters_t      were;
    u_char                buf[BYTES];
    size_t                need, room;
    model_task_t         *m, next;
    uint64_t              before;
    ngx_uint_t            expected;
    ngx_mcp_op_update_t   op;

    m = model_pick();

    if (m == NULL) {
        return;
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.op.pool = test_pool;
    op.id = m->id;
    op.want = NGX_MCP_WANT_ALL;

    do {
        op.event.type = model_rnd(NGX_MCP_EV_REPORT + 1);
    } while (op.event.type == NGX_MCP_EV_CLAIM);

    if (model_rnd(m->announced ? 30 : 3) == 0) {
        op.event.type = NGX_MCP_EV_ANNOUNCE;

    } else if (m->state == NGX_MCP_RUNNING && model_rnd(3) == 0) {
        op.event.type = NGX_MCP_EV_ASK;
    }

    if (m->held && !model_alive(m->holder) && model_rnd(4) == 0) {
        op.event.type = NGX_MCP_EV_ORPHANED;
        op.event.holder = model_rnd(2) ? model_any_stream() : 0;
    }

    /* only workers release a task when they ask */

    op.event.release = (!m->held && op.event.type == NGX_MCP_EV_ASK)
                       ? (uint8_t) model_rnd(2) : 0;
    op.event.lease_token = model_rnd(10) ? m->lease
                                         : model_rnd(2) ? model_rnd(1000) : 0;
    op.event.progress = model_rnd(100) / 100.0;

    k = model_rnd(NGX_MCP_PAYLOADS - 1) + 1;

    if (model_rnd(3)) {
        op.change.payload[k].data = buf;
        op.change.payload[k].len = model_random_len();
        model_fill(buf, model.ops, op.change.payload[k].len);
    }

    op.change.max_payload = 5800;
    op.version = model_rnd(5) ? 0 : m->version + (model_rnd(2) ? 0 : 1);

    dropped = 0;
    next = *m;
    were = model.counters[m->tool];
    expected = model_event(&next, &op.event);

    need = ngx_mcp_blocks_for(op.change.payload[k].len);
    room = model.zone->table->sh->block.end - 1 - model_used_blocks();

    if (expected == NGX_MCP_OK) {

        if (op.change.payload[k].len > 5800) {
            expected = NGX_MCP_PAYLOAD_TOO_LARGE;

        } else if (need > room) {

            if (op.event.type == NGX_MCP_EV_CANCEL) {
                dropped = 1;

            } else {
                expected = NGX_MCP_ZONE_FULL;
            }
        }
    }

    if (op.version && op.version != m->version) {
        expected = NGX_MCP_VERSION_CONFLICT;
    }

    if (ngx_current_msec >= m->expires) {
        expected = NGX_MCP_NOT_FOUND;
    }

    before = model.zone->table->sh->seq;
    noted = (k == NGX_MCP_MESSAGE && !dropped
             && op.change.payload[k].data
             && (m->len[k] || op.change.payload[k].len));

    (void) ngx_mcp_submit(model.zone, &op.op);
    expect(op.op.reason, expected, "event");

    if (op.op.reason != NGX_MCP_OK) {
        model.counters[m->tool] = were;
        return;
    }

    model_work(&next, op.event.type);
    model_made(&next, m, noted, before, op.view.changed);
    *m = next;

    if (op.change.payload[k].data && !dropped) {
        m->len[k] = op.change.payload[k].len;
        m->seed[k] = model.ops;
    }

    model_compare(m, &op.view);
}


void
model_do_delete(void)
{
    model_task_t         *m;
    ngx_mcp_op_delete_t   op;

    m = model_pick();

    if (m) {
        ngx_memzero(&op, sizeof(op));
        op.op.type = NGX_MCP_OP_DELETE;
        op.id = m->id;
        op.waiting = model_rnd(3);

        (void) ngx_mcp_submit(model.zone, &op.op);

        if (op.waiting && m->waiting >= op.waiting
            && ngx_current_msec < m->expires)
        {
            expect(op.op.reason, NGX_MCP_STATE_INVALID,
                   "delete of a task that others wait for");
            return;
        }

        expect(op.op.reason,
               ngx_current_msec < m->expires ? NGX_MCP_OK
                                             : NGX_MCP_NOT_FOUND,
               "delete");
        m->live = (ngx_current_msec >= m->expires);
        model.counters[m->tool].dropped += (!m->live
                                   && m->state < NGX_MCP_COMPLETED);
        model_end_sessions();
    }
}


/* everything that is due happens */

void
model_sweep(void)
{
    int              i;
    model_task_t     old;
    uint64_t         before;
    ngx_uint_t       limit;
    ngx_mcp_slot_t  *s;

    before = model.zone->table->sh->seq;
    limit = 1 + model_rnd(50);

    for (i = 0; test_sweep(model.zone, limit) == limit; i++) {
        if (i > 10000) {
            fail("the sweep does not end");
            return;
        }
    }

    model.batch++;

    for (i = 0; i < MAX; i++) {
        if (!model.tasks[i].live) {
            continue;
        }

        old = model.tasks[i];
        model_time(&model.tasks[i], ngx_current_msec);

        if (!model.tasks[i].live) {
            continue;
        }

        s = ngx_mcp_find_locked(model.zone->table, &model.tasks[i].id, NULL,
                                0);

        if (s == NULL) {
            fail("a task is lost");

        } else {
            model_made(&model.tasks[i], &old, 0, before, s->body.changed);
        }
    }

    model_end_sessions();

    expect(model.zone->table->sh->slot.used, model_live(),
           "tasks after a sweep");
}


void
model_do_time(void)
{
    ngx_current_msec += model_rnd(20) ? model_rnd(20) : model_rnd(30000);
    model_sweep();
}


int
model_newer(const void *a, const void *b)
{
    const model_task_t  *x = *(model_task_t **) a, *y = *(model_task_t **) b;

    return (x->seq < y->seq) - (x->seq > y->seq);
}


void
model_do_list(void)
{
    int                 i, n, k, owner;
    model_task_t       *sorted[MAX];
    ngx_mcp_op_list_t   op;

    owner = model_rnd(OWNERS);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LIST;
    op.op.pool = test_pool;
    op.owner = str(model_owner_names[owner]);
    op.limit = 1 + model_rnd(40);
    op.want = NGX_MCP_WANT_ALL;
    op.states = model_rnd(2) ? 0 : model_rnd(128);

    for (n = 0, i = 0; i < MAX; i++) {
        if (model.tasks[i].live && model.tasks[i].owner == owner
            && (op.states == 0 || (op.states & 1u << model.tasks[i].state)))
        {
            sorted[n++] = &model.tasks[i];
        }
    }

    qsort(sorted, n, sizeof(model_task_t *), model_newer);

    k = 0;

    do {
        (void) ngx_mcp_submit(model.zone, &op.op);

        for (i = 0; i < (int) op.n && k < n; i++, k++) {
            model_compare(sorted[k], &op.views[i]);
        }

        if (i < (int) op.n) {
            fail("a page has too many tasks");
        }

        op.after = op.next;

    } while (op.next.seq);

    expect(k, n, "listed tasks");
}
