
/*
 * Clients that receive changes, by owner or by session, and requests that wait
 * for a task.
 */


#include "libmodel.h"
#include "ngx_mcp_signal.h"


#define READERS  8
#define WAITERS  40
#define BEHIND   NGX_MCP_SESSION_CHANGES


/* somebody who is told of an owner's tasks */

typedef struct {
    int       owner;
    uint64_t  after;
    uint64_t  hint;
} model_reader_t;


/* a request that waits */

typedef struct {
    int           used;
    int           task;         /* for none, if it is not */
    ngx_mcp_id_t  id;
    int           result;
    uint64_t      stream;
    uint32_t      epoch;
} model_waiter_t;


static model_reader_t  readers[READERS];
static model_waiter_t  waiters[WAITERS];
static uint64_t        dropped_changes;


static int
earlier(const void *a, const void *b)
{
    const model_task_t  *x = *(model_task_t **) a, *y = *(model_task_t **) b;

    return (x->changed > y->changed) - (x->changed < y->changed);
}


/* those of an owner or of a session that changed, in this order */

static int
changed_since(model_task_t **sorted, int owner, int session, uint64_t after)
{
    int            i, n;
    model_task_t  *m;

    for (n = 0, i = 0; i < MAX; i++) {
        m = &model.tasks[i];

        if (m->live && m->changed > after
            && (owner == -1 || m->owner == owner)
            && (session == -1 || (m->session == session && m->announced)))
        {
            sorted[n++] = m;
        }
    }

    qsort(sorted, n, sizeof(model_task_t *), earlier);

    return n;
}


/* an owner's tasks that changed since somebody looked last */

void
model_do_changes(void)
{
    int                   i, n, k;
    model_task_t         *sorted[MAX];
    model_reader_t       *reader;
    ngx_mcp_op_changes_t  op;

    reader = &readers[model_rnd(READERS)];

    if (model_rnd(50) == 0) {
        reader->owner = model_rnd(OWNERS);
        reader->after = 0;
    }

    if (model_rnd(5) == 0) {
        reader->hint = model_rnd(MAX + 10);
    }

    n = changed_since(sorted, reader->owner, -1, reader->after);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CHANGES;
    op.op.pool = test_pool;
    op.owner = str(model_owner_names[reader->owner]);
    op.after = reader->after;
    op.hint = reader->hint;
    op.want = NGX_MCP_WANT_ALL;
    op.watch = model_rnd(2);

    k = 0;

    do {
        op.limit = 1 + model_rnd(40);
        (void) ngx_mcp_submit(model.zone, &op.op);
        expect(op.n, ngx_min((int) op.limit, n - k), "news");

        for (i = 0; i < (int) op.n && k < n; i++, k++) {
            model_compare(sorted[k], &op.views[i]);
        }

        expect(op.after, k ? sorted[k - 1]->changed : reader->after, "cursor");

    } while (op.n && model.errors == 0 && model_rnd(10));

    reader->after = op.after;
    reader->hint = op.hint;
}


/* what the stream before asked, or one that is dead, is to be asked again */

static void
model_regain(int k, uint64_t before, uint64_t seq)
{
    int               i, n;
    model_task_t     *sorted[MAX];
    model_session_t  *session;

    session = &model.sessions[k];
    n = changed_since(sorted, -1, k, 0);

    for (i = n - 1; i >= 0; i--) {

        if (sorted[i]->state != NGX_MCP_INPUT_REQUIRED
            || (sorted[i]->asker != before
                && model_alive(sorted[i]->asker)))
        {
            continue;
        }

        sorted[i]->asker = 0;

        if (sorted[i]->changed <= session->delivered) {
            sorted[i]->changed = ++seq;
            model.touched++;
        }
    }

    session->epoch = model.epoch;
}


void
model_do_session(void)
{
    int                    i, n, k, from, newer;
    model_task_t          *sorted[MAX];
    uint32_t               opened;
    uint64_t               after, seq;
    model_session_t       *session;
    ngx_mcp_op_session_t   op;

    k = model_rnd(SESSIONS);
    session = &model.sessions[k];

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_SESSION;
    op.op.pool = test_pool;
    op.session = str(model_session_names[k]);
    op.stream = (model_alive(session->stream) && model_rnd(4))
                ? session->stream : model_any_stream();
    op.opened = model_rnd(5) ? session->opened + 1 - model_rnd(3) : 0;
    op.after = model_rnd(2) ? 0 : model_rnd(model.zone->table->sh->seq + 100);
    op.limit = 1 + model_rnd(60);
    op.want = NGX_MCP_WANT_ALL;
    op.watch = model_rnd(2);

    from = n = 0;
    seq = model.zone->table->sh->seq;
    opened = op.opened ? op.opened : model.zone->table->sh->opened + 1;
    newer = ((int32_t) (opened - session->opened) >= 0);

    if (model_session_exists(k)
        && (newer || op.stream == session->stream
            || !model_alive(session->stream)))
    {
        if (op.stream != session->stream) {
            model_regain(k, session->stream, seq);
            session->stream = op.stream;
            session->opened = opened;
            after = op.after;

        } else {
            if (session->epoch != model.epoch) {
                model_regain(k, 0, seq);
            }

            after = 0;
        }

        if (after) {
            for (i = 0; i < MAX; i++) {
                if (model.tasks[i].live) {
                    seq = ngx_max(seq, model.tasks[i].changed);
                }
            }

            after = ngx_min(after, seq);
            n = changed_since(sorted, -1, k, after);
            session->delivered = (n > BEHIND) ? sorted[n - BEHIND - 1]->changed
                                              : after;
        }

        n = changed_since(sorted, -1, k, session->delivered);

        if (n > BEHIND) {
            from = n - BEHIND;
            dropped_changes += from;
            session->delivered = sorted[from - 1]->changed;
        }
    }

    (void) ngx_mcp_submit(model.zone, &op.op);

    expect(op.silent, model_session_exists(k) && op.stream != session->stream,
           "silent");
    expect(op.n, ngx_min((int) op.limit, n - from), "a session's news");
    expect(model.zone->table->sh->count.changes_dropped, dropped_changes,
           "dropped");

    for (i = 0; i < (int) op.n && from < n; i++, from++) {
        model_compare(sorted[from], &op.views[i]);
        expect(op.views[i].asks, model_asks(sorted[from], op.stream, 1),
               "a session asks");
        session->delivered = sorted[from]->changed;
        model.delivered_changes++;
    }
}


/* a request begins to wait */

void
model_do_wait(void)
{
    int                 i;
    model_task_t       *m;
    ngx_uint_t          expected;
    model_waiter_t     *w;
    ngx_mcp_op_wait_t   op;

    for (i = 0; i < WAITERS && waiters[i].used; i++) { /* void */ }

    if (i == WAITERS) {
        return;
    }

    w = &waiters[i];
    m = model_rnd(4) ? model_rnd(2) ? model_pick() : model_pick_asking()
                     : NULL;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_WAIT;
    op.op.pool = test_pool;
    op.id = m ? &m->id : NULL;
    op.max_task = 1 + model_rnd(3);
    op.max_zone = 5 + model_rnd(20);
    op.result = model_rnd(2);

    expected = NGX_MCP_OK;

    if ((model.waiting >= op.max_zone || (m && m->waiting >= op.max_task))
        && (m == NULL || m->state < NGX_MCP_COMPLETED))
    {
        expected = NGX_MCP_LIMIT_WAITERS;
    }

    (void) ngx_mcp_submit(model.zone, &op.op);
    expect(op.op.reason, expected, "wait");

    if (op.op.reason != NGX_MCP_OK) {
        model.limited++;
        return;
    }

    expect(op.epoch, model.epoch, "epoch");

    w->used = 1;
    w->task = (m != NULL);
    w->result = op.result;
    w->stream = model_any_stream();
    w->epoch = op.epoch;
    model.waiting++;

    if (m) {
        w->id = m->id;
        m->waiting++;
        m->results += op.result;
    }

    expect(model.zone->table->sh->waiting, model.waiting, "waiting");
}


/* another ceases to; at times it spoke for a session */

void
model_do_leave(void)
{
    int                 k, ended, mine;
    model_task_t       *m;
    uint64_t            seq;
    model_waiter_t     *w;
    ngx_mcp_op_wait_t   op;
    ngx_mcp_slot_t     *s;

    w = &waiters[model_rnd(WAITERS)];

    if (!w->used) {
        return;
    }

    k = model_rnd(SESSIONS);
    w->used = 0;
    m = w->task ? model_find(&w->id) : NULL;

    if (m && model_rnd(2)) {
        /* as it happens to those that ask */
        w->stream = m->asker ? m->asker : w->stream;
    }

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_LEAVE;
    op.op.pool = test_pool;
    op.id = w->task ? &w->id : NULL;
    op.result = w->result;
    op.counted = 1;
    op.epoch = w->epoch;
    op.asker = w->stream;

    if (model_rnd(4) == 0) {
        op.session = str(model_session_names[k]);
        op.asker = model_rnd(2) ? op.asker : model_any_stream();
    }

    seq = model.zone->table->sh->seq;
    ended = (op.session.len && model_session_exists(k)
             && model.sessions[k].stream
             && model.sessions[k].stream == op.asker);

    (void) ngx_mcp_submit(model.zone, &op.op);
    expect(op.ended, ended, "ended");

    if (w->epoch == model.epoch) {
        model.waiting--;

        /* the id may have been given to another task since */

        if (m) {
            m->waiting -= (m->waiting != 0);
            m->results -= (w->result && m->results);
        }
    }

    expect(model.zone->table->sh->waiting, model.waiting, "waiting");

    mine = (m && m->asker == op.asker);

    if (mine) {
        m->asker = 0;
    }

    if (m && (mine || w->result) && model_asks(m, 0, 0)) {
        s = ngx_mcp_find_locked(model.zone->table, &m->id, NULL, 0);
        model.touched++;

        if (s->body.changed <= seq) {
            fail("left without a question being asked again");
        }

        m->changed = ++seq;
    }

    if (ended) {
        model_regain(k, model.sessions[k].stream, seq);
        model.sessions[k].stream = 0;
    }
}


/* a process dies, and another has its place; those who wait count anew */

void
model_do_death(void)
{
    int                i;
    ngx_mcp_header_t  *sh;

    sh = model.zone->table->sh;
    i = model_rnd(PLACES);

    sh->incarnations[i] = ++model.incarnations[i];
    sh->epoch = ++model.epoch;
    sh->waiting = 0;
    model.waiting = 0;
    ngx_mcp_signal_all_locked(model.zone->table);

    for (i = 0; i < MAX; i++) {
        model.tasks[i].waiting = 0;
        model.tasks[i].results = 0;
    }

    for (i = 0; i < WAITERS; i++) {
        if (waiters[i].used && !model_alive(waiters[i].stream)) {
            waiters[i].used = 0;
        }
    }
}
