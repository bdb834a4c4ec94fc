
/*
 * Calls that a process holds and runs: which may run, which have to wait, and
 * who takes over what a process that has died leaves behind.
 */


#include "libmodel.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_signal.h"


static uint64_t  capacity_cursor;


static int
runs(model_task_t *m)
{
    return m->live && m->held
           && (m->state == NGX_MCP_RUNNING
               || m->state == NGX_MCP_INPUT_REQUIRED);
}


/* how many calls run, of a tool or, if it is -1, of all */

static uint32_t
running(int tool)
{
    int       i;
    uint32_t  n;

    for (n = 0, i = 0; i < MAX; i++) {
        n += runs(&model.tasks[i])
             && (tool == -1 || model.tasks[i].tool == tool);
    }

    return n;
}


static int
waits(model_task_t *m)
{
    return m->live && m->held && m->state == NGX_MCP_QUEUED
           && m->step == NEVER;
}


/* a call that waits may run, if those who wait for longer leave room for it */

static int
may_run(model_task_t *m, uint32_t max_zone, uint32_t max_tool)
{
    int            i;
    uint32_t       zone_calls, tool_calls;
    model_task_t  *b;

    zone_calls = running(-1);
    tool_calls = running(m->tool);

    for (i = 0; i < MAX; i++) {
        b = &model.tasks[i];

        if (waits(b) && b->seq < m->seq && model_alive(b->holder)
            && !model.paused[b->tool]
            && (max_tool == 0 || running(b->tool) < max_tool))
        {
            zone_calls++;
            tool_calls += (b->tool == m->tool);
        }
    }

    return !model.paused[m->tool]
           && (max_zone == 0 || zone_calls < max_zone)
           && (max_tool == 0 || tool_calls < max_tool);
}


/* the one that has waited for longest, of those whose process is alive */

static model_task_t *
pick_first(void)
{
    int            i;
    model_task_t  *first;

    for (first = NULL, i = 0; i < MAX; i++) {
        if (waits(&model.tasks[i]) && model_alive(model.tasks[i].holder)
            && (first == NULL || model.tasks[i].seq < first->seq))
        {
            first = &model.tasks[i];
        }
    }

    return first;
}


/* who was refused and may run now has been told, and looks again */

void
model_check_capacity(void)
{
    int                i, delivery;
    ngx_uint_t         n, k;
    model_task_t      *m;
    ngx_mcp_signal_t   signals[16];

    delivery = 0;

    do {
        n = ngx_mcp_signal_read(model.zone->table, &capacity_cursor, signals,
                                16);

        for (k = 0; k < ngx_min(n, 16); k++) {
            delivery |= (n > 16 || signals[k].key == NGX_MCP_CAPACITY);
        }

    } while (n && n <= 16);

    for (i = 0; i < MAX; i++) {

        if (!model.tasks[i].refused) {
            continue;
        }

        m = &model.tasks[i];

        if (delivery || !waits(m) || !model_alive(m->holder)) {
            m->refused = 0;

        } else if (may_run(m, m->max_zone, m->max_tool)) {
            fail("a call may run, and is not told");
        }
    }
}


void
model_check_running(void)
{
    int                i;
    uint32_t           n;
    ngx_str_t          name;
    ngx_uint_t         holding;
    ngx_mcp_table_t   *t;

    t = model.zone->table;

    for (holding = 0, i = 0; i < MAX; i++) {
        holding += model.tasks[i].live && model.tasks[i].held
                   && model.tasks[i].state < NGX_MCP_COMPLETED;
    }

    expect(t->sh->holding, holding, "calls that are held");
    expect(t->sh->running, running(-1), "calls that run");

    for (i = 0; i < TOOLS; i++) {
        name = str(model_tool_names[i]);
        n = ngx_mcp_name_find_locked(t, NGX_MCP_TOOL,
                &name, ngx_mcp_name_hash(t, NGX_MCP_TOOL, &name));
        expect(n ? ngx_mcp_name(t, n)->running : 0, running(i),
               "calls of a tool that run");
    }
}


/* a process begins a call that it has; at times one that another has */

static ngx_uint_t
model_run(model_task_t *m, ngx_mcp_op_attempt_t *op)
{
    uint64_t  now;

    now = ngx_current_msec;

    if (now >= m->expires) {
        return NGX_MCP_NOT_FOUND;
    }

    if (op->holder != m->holder) {
        return NGX_MCP_LEASE_LOST;
    }

    model_time(m, now);

    if (m->state >= NGX_MCP_COMPLETED) {
        return NGX_MCP_TERMINAL;
    }

    if (!waits(m)) {
        return NGX_MCP_STATE_INVALID;
    }

    if (!may_run(m, op->max_zone, op->max_tool)) {
        model.overtaken += !model.paused[m->tool]
                     && (op->max_zone == 0 || running(-1) < op->max_zone)
                     && (op->max_tool == 0 || running(m->tool) < op->max_tool);
        m->refused = 1;
        m->max_zone = op->max_zone;
        m->max_tool = op->max_tool;
        return NGX_MCP_LIMIT_RUNNING;
    }

    model.counters[m->tool].claimed++;
    model.counters[m->tool].waited += now - m->since;
    m->since = now;
    m->state = NGX_MCP_RUNNING;
    m->version++;
    m->attempt++;
    m->step = model_lease_end(m, now);
    m->phase = now + MODEL_RUN;

    return NGX_MCP_OK;
}


void
model_do_run(void)
{
    int                   late;
    model_task_t         *m, old;
    uint64_t              before;
    ngx_uint_t            expected;
    ngx_mcp_op_attempt_t  op;

    m = model_rnd(2) ? pick_first() : NULL;
    m = m ? m : model_pick_held();

    if (m == NULL) {
        return;
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_ATTEMPT;
    op.op.pool = test_pool;
    op.id = m->id;
    op.holder = model_rnd(20) ? m->holder : model_any_stream();
    op.max_zone = model_rnd(4) ? 4 + model_rnd(20) : 0;
    op.max_tool = model_rnd(2) ? 1 + model_rnd(6) : 0;

    /* before it is swept */

    late = (model_rnd(20) == 0);

    if (late) {
        ngx_current_msec += model_rnd(2) ? model_rnd(100) : model_rnd(3000);
    }

    old = *m;
    before = model.zone->table->sh->seq;
    expected = model_run(m, &op);

    (void) ngx_mcp_submit(model.zone, &op.op);
    expect(op.op.reason, expected, "run");

    if (expected != NGX_MCP_NOT_FOUND) {

        if (expected == NGX_MCP_OK) {
            m->lease = op.view.task.lease_token;
            model.began++;
        }

        model.refused += (expected == NGX_MCP_LIMIT_RUNNING);
        model_made(m, &old, 0, before, op.view.changed);
        model_compare_task(m, &op.view);
    }

    if (late) {
        model_check_capacity();
        model_sweep();
    }
}


static int
older(const void *a, const void *b)
{
    return model_newer(b, a);
}


static int
changed_later(const void *a, const void *b)
{
    const model_task_t *x = *(model_task_t *const *) a,
                       *y = *(model_task_t *const *) b;

    return (x->changed < y->changed) - (x->changed > y->changed);
}


/* tasks that the dead were to announce, the last changed first */

static int
unannounced(model_task_t **sorted)
{
    int            i, n;
    model_task_t  *m;

    for (n = 0, i = 0; i < MAX; i++) {
        m = &model.tasks[i];

        if (m->live && m->session != -1 && !m->announced
            && !model_alive(m->holder))
        {
            sorted[n++] = m;
        }
    }

    qsort(sorted, n, sizeof(model_task_t *), changed_later);

    return n;
}


static void
announce(model_task_t **sorted, int n, uint64_t before)
{
    int              i;
    model_task_t     old;
    ngx_mcp_slot_t  *s;

    for (i = 0; i < n; i++) {
        old = *sorted[i];
        sorted[i]->announced = 1;
        model.announced++;

        s = ngx_mcp_find_locked(model.zone->table, &old.id, NULL, 0);

        if (s == NULL) {
            fail("a task is lost");
            return;
        }

        if (!(s->body.task.flags & NGX_MCP_ANNOUNCED)) {
            fail("a task is not announced");
        }

        model_made(sorted[i], &old, 0, before, s->body.changed);
    }
}


/* the calls of the dead, in the order in which they came */

void
model_do_orphans(void)
{
    int                    i, n, known, was[MAX];
    model_task_t          *sorted[MAX], *unknown[MAX], old;
    uint64_t               before;
    ngx_uint_t             k;
    ngx_mcp_event_t        ev;
    ngx_mcp_slot_t        *s;
    ngx_mcp_op_orphans_t   op;

    for (n = 0, i = 0; i < MAX; i++) {
        if (model.tasks[i].live && model.tasks[i].held
            && !model_alive(model.tasks[i].holder)
            && model.tasks[i].state < NGX_MCP_COMPLETED)
        {
            sorted[n++] = &model.tasks[i];
        }
    }

    qsort(sorted, n, sizeof(model_task_t *), older);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_ORPHANS;
    op.op.pool = test_pool;
    op.holder = model_rnd(3) ? model_any_stream() : 0;
    op.limit = model_rnd(2) ? 1 + model_rnd(5) : NGX_MCP_LIST_MAX;
    op.want = NGX_MCP_WANT_ALL;

    before = model.zone->table->sh->seq;
    n = ngx_min((int) op.limit, n);

    (void) ngx_mcp_submit(model.zone, &op.op);

    ngx_memzero(&ev, sizeof(ev));
    ev.type = NGX_MCP_EV_ORPHANED;
    ev.holder = op.holder;

    /* those whose calls are taken over are announced by that */

    for (i = 0; i < n; i++) {
        was[i] = sorted[i]->announced;
        sorted[i]->announced = 1;
    }

    known = ngx_min((int) op.limit, unannounced(unknown));
    expect(op.more, (int) op.limit == n || (int) op.limit == known,
           "more orphans");

    for (k = 0, i = 0; i < n; i++) {
        sorted[i]->announced = was[i];
        old = *sorted[i];
        expect(model_event(sorted[i], &ev), NGX_MCP_OK, "orphaned");
        sorted[i]->len[NGX_MCP_REQUESTS] = 0;

        s = ngx_mcp_find_locked(model.zone->table, &old.id, NULL, 0);

        if (s == NULL) {
            fail("a call is lost");
            return;
        }

        model_made(sorted[i], &old, 0, before, s->body.changed);
        model.orphans++;

        if (sorted[i]->state == NGX_MCP_QUEUED) {

            if (k == op.n) {
                fail("a call was not handed over");
                return;
            }

            model_compare(sorted[i], &op.views[k++]);
            model.adopted++;
        }
    }

    expect(op.n, k, "calls handed over");

    announce(unknown, known, before);
}
