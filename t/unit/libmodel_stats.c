
/* Tools are paused, workers drained, and the statistics of both compared. */


#include "libmodel.h"
#include "ngx_mcp_stats.h"


/* a tool is paused or goes on, a worker is drained or goes on */

void
model_do_control(void)
{
    int                   i;
    ngx_uint_t            reason;
    ngx_mcp_op_control_t  op;

    ngx_memzero(&op, sizeof(op));
    op.on = model_rnd(3) == 0;

    if (model_rnd(2)) {
        i = model_rnd(TOOLS);
        op.op.type = NGX_MCP_OP_PAUSE;
        op.name = str(model_tool_names[i]);
        reason = NGX_MCP_TOOL_NOT_FOUND;

        if (model.counters[i].created) {
            model.paused[i] = (int) op.on;
            reason = NGX_MCP_OK;
        }

    } else {
        i = model_rnd(WORKERS);
        op.op.type = NGX_MCP_OP_DRAIN;
        op.name = str(model_worker_names[i]);
        reason = NGX_MCP_WORKER_NOT_FOUND;

        if (model.workers[i].seen) {
            model.draining[i] = (int) op.on;
            reason = NGX_MCP_OK;
        }
    }

    (void) ngx_mcp_submit(model.zone, &op.op);
    expect(op.op.reason, reason, "control");
    model.controls += (reason == NGX_MCP_OK && op.on);
}


/* the figures of a tool, which are always there for these few */

static void
compare_counters(int tool, ngx_mcp_tool_view_t *v)
{
    int                       i, states[NGX_MCP_STATES];
    uint64_t                  waits, runs, oldest;
    model_counters_t         *f;
    ngx_mcp_task_counters_t  *count;

    f = &model.counters[tool];
    count = &v->stat.count;
    waits = runs = oldest = 0;

    for (i = 0; i < NGX_MCP_BUCKETS; i++) {
        waits += count->wait.bucket[i];
        runs += count->run.bucket[i];
    }

    expect(count->created, f->created, "created");
    expect(count->completed, f->ended[NGX_MCP_COMPLETED], "completed");
    expect(count->failed, f->ended[NGX_MCP_FAILED], "failed");
    expect(count->cancelled, f->ended[NGX_MCP_CANCELLED], "cancelled");
    expect(count->lapsed, f->lapsed, "lapsed");
    expect(count->dropped, f->dropped, "dropped");
    expect(count->claimed, f->claimed, "claimed");
    expect(count->requeued, f->requeued, "requeued");
    expect(count->leases_lost, f->leases_lost, "leases lost");
    expect(waits, f->claimed, "times waited");
    expect(count->wait.sum, f->waited, "time waited");
    expect(runs, f->runs, "times run");
    expect(count->run.sum, f->ran, "time run");

    memset(states, 0, sizeof(states));

    for (i = 0; i < MAX; i++) {
        if (!model.tasks[i].live || model.tasks[i].tool != tool) {
            continue;
        }

        states[model.tasks[i].state]++;

        if (model.tasks[i].state == NGX_MCP_QUEUED
            && model.tasks[i].step == NEVER)
        {
            oldest = ngx_max(oldest, ngx_current_msec - model.tasks[i].since);
        }
    }

    for (i = 1; i < NGX_MCP_STATES; i++) {
        expect(v->stat.states[i], states[i], "tasks of a tool by state");
    }

    /* those that one sweep makes claimable come in any order */

    if (v->oldest > oldest) {
        fail("the oldest waits for %lu, not for %lu",
             (unsigned long) v->oldest, (unsigned long) oldest);
    }
}


void
model_do_stats(void)
{
    int                 i;
    ngx_uint_t          k, found;
    ngx_str_t           name;
    ngx_mcp_op_stats_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_STATS;
    op.op.pool = test_pool;
    op.detail = 1;
    (void) ngx_mcp_submit(model.zone, &op.op);

    for (found = 0, i = 0; i < TOOLS; i++) {
        name = str(model_tool_names[i]);

        for (k = 1; k < op.ntools; k++) {
            if (op.tool_views[k].stat.len == name.len
                && memcmp(op.tool_views[k].stat.name, name.data, name.len)
                   == 0)
            {
                compare_counters(i, &op.tool_views[k]);
                expect(op.tool_views[k].stat.paused, model.paused[i],
                       "whether a tool is paused");
                found++;
            }
        }
    }

    expect(found + 1, op.ntools, "tools");
    expect(op.tool_views[0].stat.count.created, 0, "other tools");

    for (found = 0, i = 0; i < WORKERS; i++) {
        name = str(model_worker_names[i]);

        for (k = 0; k < op.nworkers; k++) {
            if (op.worker_views[k].len == name.len
                && memcmp(op.worker_views[k].name, name.data, name.len) == 0)
            {
                expect(op.worker_views[k].claimed, model.workers[i].claimed,
                       "claims of a worker");
                expect(op.worker_views[k].completed,
                       model.workers[i].completed, "completed by a worker");
                expect(op.worker_views[k].failed, model.workers[i].failed,
                       "failed by a worker");
                expect(op.worker_views[k].seen, model.workers[i].seen,
                       "when a worker was seen");
                expect(op.worker_views[k].draining, model.draining[i],
                       "whether it drains");
                found++;
            }
        }
    }

    expect(found, op.nworkers, "workers");
}
