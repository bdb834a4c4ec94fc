
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The status surface: figures of the zone as JSON and for Prometheus.  Without
 * "public", only clients on this machine have access, because the names of
 * tools and workers may be confidential.
 */


#include "ngx_mcp_status.h"
#include "ngx_mcp_store.h"


#define zone32(field)                                                         \
    NGX_MCP_FIGURE_32,                                                        \
    offsetof(ngx_mcp_op_stats_t, field)
#define zone64(field)                                                         \
    NGX_MCP_FIGURE_64,                                                        \
    offsetof(ngx_mcp_op_stats_t, field)
#define zone_ms(field)                                                        \
    NGX_MCP_FIGURE_MS,                                                        \
    offsetof(ngx_mcp_op_stats_t, field)
#define zone_times(field)                                                     \
    NGX_MCP_FIGURE_TIMES,                                                     \
    offsetof(ngx_mcp_op_stats_t, field)
#define zone_state(state)  zone32(states[NGX_MCP_ ## state])
#define zone_refused(reason)  zone64(count.refused[NGX_MCP_ ## reason])

#define tool32(field)                                                         \
    NGX_MCP_FIGURE_32,                                                        \
    offsetof(ngx_mcp_tool_view_t, field)
#define tool64(field)                                                         \
    NGX_MCP_FIGURE_64,                                                        \
    offsetof(ngx_mcp_tool_view_t, field)
#define tool_ms(field)                                                        \
    NGX_MCP_FIGURE_MS,                                                        \
    offsetof(ngx_mcp_tool_view_t, field)
#define tool_times(field)                                                     \
    NGX_MCP_FIGURE_TIMES,                                                     \
    offsetof(ngx_mcp_tool_view_t, field)
#define tool_state(state)  tool32(stat.states[NGX_MCP_ ## state])

#define worker32(field)                                                       \
    NGX_MCP_FIGURE_32,                                                        \
    offsetof(ngx_mcp_worker_stat_t, field)
#define worker64(field)                                                       \
    NGX_MCP_FIGURE_64,                                                        \
    offsetof(ngx_mcp_worker_stat_t, field)
#define worker_ms(field)                                                      \
    NGX_MCP_FIGURE_MS,                                                        \
    offsetof(ngx_mcp_worker_stat_t, field)


#define TASKS     "Tasks by state."
#define FINISHED  "Finished tasks by outcome."
#define REMOVED   "Removed tasks by reason, ended or not."
#define REFUSED   "Refused operations on tasks by reason."


static ngx_int_t ngx_mcp_status_done(ngx_http_request_t *r, ngx_mcp_op_t *o);
static ngx_uint_t ngx_mcp_status_wanted(ngx_http_request_t *r,
    ngx_uint_t *format);
static ngx_uint_t ngx_mcp_status_accepts(ngx_http_request_t *r,
    const char *type);


static ngx_mcp_figure_t  ngx_mcp_zone_figures[] = {

    { "tasks", "queued", "tasks", "state", TASKS, zone_state(QUEUED) },
    { "tasks", "running", "tasks", "state", TASKS, zone_state(RUNNING) },
    { "tasks", "input_required", "tasks", "state", TASKS,
      zone_state(INPUT_REQUIRED) },
    { "tasks", "completed", "tasks", "state", TASKS, zone_state(COMPLETED) },
    { "tasks", "failed", "tasks", "state", TASKS, zone_state(FAILED) },
    { "tasks", "cancelled", "tasks", "state", TASKS, zone_state(CANCELLED) },

    { NULL, "oldestQueued", "queue_oldest_seconds", NULL,
      "How long the oldest queued task has been claimable.",
      zone_ms(oldest) },

    { NULL, "waitingRequests", "waiting_requests", NULL,
      "Requests that wait for a change, including event streams.",
      zone32(waiting) },
    { NULL, "streams", "streams", NULL,
      "Open event streams.", zone32(streams) },
    { NULL, "runningCalls", "running_calls", NULL,
      "Running background calls to upstreams.", zone32(running) },

    { "slots", "used", "slots_used", NULL,
      "Task slots in use.", zone32(slots_used) },
    { "slots", "total", "slots", NULL,
      "Task slots in the zone.", zone32(slots) },
    { "blocks", "used", "blocks_used", NULL,
      "Blocks of 128 bytes in use.", zone32(blocks_used) },
    { "blocks", "total", "blocks", NULL,
      "Blocks of 128 bytes in the zone.", zone32(blocks) },
    { NULL, "payloadBytes", "payload_bytes", NULL,
      "Payload of all tasks in bytes.", zone64(bytes) },

    { NULL, "owners", "owners", NULL,
      "Owners that have tasks.", zone32(owners) },
    { NULL, "tools", "tools", NULL,
      "Tools that have tasks.", zone32(tools) },
    { NULL, "sessions", "sessions", NULL,
      "Sessions that have tasks.", zone32(sessions) },
    { NULL, "workers", "workers", NULL,
      "Workers seen in the last two minutes.", zone32(workers) },

    { NULL, "created", "created_total", NULL,
      "Created tasks.", zone64(task_counters.created) },

    { "finished", "completed", "finished_total", "outcome", FINISHED,
      zone64(task_counters.completed) },
    { "finished", "failed", "finished_total", "outcome", FINISHED,
      zone64(task_counters.failed) },
    { "finished", "cancelled", "finished_total", "outcome", FINISHED,
      zone64(task_counters.cancelled) },
    { "finished", "expired", "finished_total", "outcome", FINISHED,
      zone64(task_counters.lapsed) },
    { "finished", "deleted", "finished_total", "outcome", FINISHED,
      zone64(task_counters.dropped) },

    { "removed", "expired", "removed_total", "reason", REMOVED,
      zone64(count.expired) },
    { "removed", "deleted", "removed_total", "reason", REMOVED,
      zone64(count.deleted) },

    { NULL, "claims", "claims_total", NULL,
      "Attempts started, by workers or as background calls.",
      zone64(task_counters.claimed) },
    { NULL, "retries", "retries_total", NULL,
      "Attempts after which the task was queued again.",
      zone64(task_counters.requeued) },
    { NULL, "lostLeases", "lost_leases_total", NULL,
      "Expired leases.", zone64(task_counters.leases_lost) },
    { NULL, "staleTokens", "stale_tokens_total", NULL,
      "Worker requests with a lease token that is no longer valid.",
      zone64(count.stale_leases) },

    { "refused", "task_not_found", "refused_total", "reason", REFUSED,
      zone_refused(NOT_FOUND) },
    { "refused", "task_terminal", "refused_total", "reason", REFUSED,
      zone_refused(TERMINAL) },
    { "refused", "task_state_invalid", "refused_total", "reason", REFUSED,
      zone_refused(STATE_INVALID) },
    { "refused", "lease_lost", "refused_total", "reason", REFUSED,
      zone_refused(LEASE_LOST) },
    { "refused", "progress_backwards", "refused_total", "reason", REFUSED,
      zone_refused(PROGRESS_BACKWARDS) },
    { "refused", "version_conflict", "refused_total", "reason", REFUSED,
      zone_refused(VERSION_CONFLICT) },
    { "refused", "limit_tasks", "refused_total", "reason", REFUSED,
      zone_refused(LIMIT_TASKS) },
    { "refused", "limit_owner_tasks", "refused_total", "reason", REFUSED,
      zone_refused(LIMIT_OWNER_TASKS) },
    { "refused", "limit_owner_bytes", "refused_total", "reason", REFUSED,
      zone_refused(LIMIT_OWNER_BYTES) },
    { "refused", "payload_too_large", "refused_total", "reason", REFUSED,
      zone_refused(PAYLOAD_TOO_LARGE) },
    { "refused", "zone_full", "refused_total", "reason", REFUSED,
      zone_refused(ZONE_FULL) },
    { "refused", "limit_waiters", "refused_total", "reason", REFUSED,
      zone_refused(LIMIT_WAITERS) },
    { "refused", "store_unavailable", "refused_total", "reason", REFUSED,
      zone_refused(STORE_UNAVAILABLE) },
    { "refused", "store_failed", "refused_total", "reason", REFUSED,
      zone_refused(STORE_FAILED) },

    { NULL, "newsDropped", "dropped_news_total", NULL,
      "Changes not sent to sessions that were too far behind.",
      zone64(count.changes_dropped) },
    { NULL, "signals", "signals_total", NULL,
      "Change notifications sent to worker processes.", zone64(count.signals) },
    { NULL, "recoveries", "recoveries_total", NULL,
      "Times the zone was rebuilt after a crash.",
      zone64(count.recoveries) },

    { "sweep", "runs", "sweeps_total", NULL,
      "Sweeps for due tasks.", zone64(count.sweeps) },
    { "sweep", "tasks", "swept_tasks_total", NULL,
      "Tasks handled by sweeps.", zone64(count.swept) },
    { "sweep", "batch", "sweep_batch_tasks", NULL,
      "Tasks handled by the last sweep.", zone64(count.sweep_batch) },
    { "sweep", "lag", "sweep_lag_seconds", NULL,
      "Maximum delay of a task in the last sweep.",
      zone_ms(count.sweep_lag) },
    { "sweep", "maxLag", "sweep_lag_max_seconds", NULL,
      "Maximum delay of a task in any sweep.", zone_ms(count.sweep_lag_max) },

    { "lock", "held", "lock_held_seconds", NULL,
      "How long a process has held the zone lock, if over a second.",
      zone_ms(lock_held) },
    { "lock", "waits", "lock_waits_total", NULL,
      "Times a process waited over 0.1 seconds for the lock.",
      zone64(count.lock_waits) },
    { "lock", "maxWait", "lock_wait_max_seconds", NULL,
      "Longest wait for the lock.", zone_ms(count.lock_wait_max) },

    { NULL, "wait", "wait_seconds", NULL,
      "Time from when a task became claimable until its claim.",
      zone_times(task_counters.wait) },
    { NULL, "run", "run_seconds", NULL,
      "Duration of attempts, excluding the wait for input.",
      zone_times(task_counters.run) },

    { NULL, NULL, NULL, NULL, NULL, 0, 0 }
};


static ngx_mcp_figure_t  ngx_mcp_tool_figures[] = {

    { "tasks", "queued", "tool_tasks", "state", TASKS, tool_state(QUEUED) },
    { "tasks", "running", "tool_tasks", "state", TASKS, tool_state(RUNNING) },
    { "tasks", "input_required", "tool_tasks", "state", TASKS,
      tool_state(INPUT_REQUIRED) },
    { "tasks", "completed", "tool_tasks", "state", TASKS,
      tool_state(COMPLETED) },
    { "tasks", "failed", "tool_tasks", "state", TASKS, tool_state(FAILED) },
    { "tasks", "cancelled", "tool_tasks", "state", TASKS,
      tool_state(CANCELLED) },

    { NULL, "oldestQueued", "tool_queue_oldest_seconds", NULL,
      "How long the oldest queued task has been claimable.",
      tool_ms(oldest) },
    { NULL, "runningCalls", "tool_running_calls", NULL,
      "Running background calls to upstreams.",
      tool32(stat.running) },
    { NULL, "paused", "tool_paused", NULL,
      "1 while the tool is paused, otherwise 0.", tool32(stat.paused) },

    { NULL, "created", "tool_created_total", NULL,
      "Created tasks.", tool64(stat.count.created) },

    { "finished", "completed", "tool_finished_total", "outcome", FINISHED,
      tool64(stat.count.completed) },
    { "finished", "failed", "tool_finished_total", "outcome", FINISHED,
      tool64(stat.count.failed) },
    { "finished", "cancelled", "tool_finished_total", "outcome", FINISHED,
      tool64(stat.count.cancelled) },
    { "finished", "expired", "tool_finished_total", "outcome", FINISHED,
      tool64(stat.count.lapsed) },
    { "finished", "deleted", "tool_finished_total", "outcome", FINISHED,
      tool64(stat.count.dropped) },

    { NULL, "claims", "tool_claims_total", NULL,
      "Attempts started, by workers or as background calls.",
      tool64(stat.count.claimed) },
    { NULL, "retries", "tool_retries_total", NULL,
      "Attempts after which the task was queued again.",
      tool64(stat.count.requeued) },
    { NULL, "lostLeases", "tool_lost_leases_total", NULL,
      "Expired leases.", tool64(stat.count.leases_lost) },

    { NULL, "wait", "tool_wait_seconds", NULL,
      "Time from when a task became claimable until its claim.",
      tool_times(stat.count.wait) },
    { NULL, "run", "tool_run_seconds", NULL,
      "Duration of attempts, excluding the wait for input.",
      tool_times(stat.count.run) },

    { NULL, NULL, NULL, NULL, NULL, 0, 0 }
};


static ngx_mcp_figure_t  ngx_mcp_worker_figures[] = {

    { NULL, "claims", "worker_claims_total", NULL,
      "Tasks claimed by the worker.", worker64(claimed) },
    { NULL, "completed", "worker_completed_total", NULL,
      "Tasks completed by the worker.", worker64(completed) },
    { NULL, "failed", "worker_failed_total", NULL,
      "Attempts reported as failed by the worker.", worker64(failed) },
    { NULL, "lastSeen", "worker_last_seen_timestamp_seconds", NULL,
      "Time of the last request of the worker, Unix time.",
      worker_ms(seen_wall) },
    { NULL, "draining", "worker_draining", NULL,
      "1 while the worker is drained, otherwise 0.", worker32(draining) },

    { NULL, NULL, NULL, NULL, NULL, 0, 0 }
};


static ngx_mcp_figure_t  ngx_mcp_store_figures[] = {

    { NULL, "up", "store_up", NULL,
      "1 if changes are saved, 0 if the store fails.", zone64(disk.up) },
    { NULL, "unsaved", "store_unsaved_tasks", NULL,
      "Tasks changed or removed since they were last saved.",
      zone32(unsaved) },
    { NULL, "commits", "store_commits_total", NULL,
      "Successful commits.", zone64(disk.commits) },
    { NULL, "rows", "store_rows_total", NULL,
      "Tasks written or removed by commits.", zone64(disk.rows) },
    { NULL, "failures", "store_failures_total", NULL,
      "Failed commits.", zone64(disk.failures) },
    { NULL, "lastCommit", "store_last_commit_timestamp_seconds", NULL,
      "Time of the last successful commit, Unix time.",
      zone_ms(disk.last_wall) },
    { NULL, "commitTime", "store_commit_seconds", NULL,
      "Duration of commits.", zone_times(disk.time) },

    { NULL, NULL, NULL, NULL, NULL, 0, 0 }
};


ngx_uint_t
ngx_mcp_status_format(ngx_str_t *name)
{
    if (name->len == 4 && ngx_strncmp(name->data, "json", 4) == 0) {
        return NGX_MCP_FORMAT_JSON;
    }

    if (name->len == 10 && ngx_strncmp(name->data, "prometheus", 10) == 0) {
        return NGX_MCP_FORMAT_PROMETHEUS;
    }

    return NGX_MCP_FORMAT_ANY;
}


ngx_int_t
ngx_mcp_status_handler(ngx_http_request_t *r)
{
    ngx_int_t            rc;
    ngx_uint_t           format;
    ngx_mcp_loc_conf_t  *lcf;
    static ngx_str_t     local = ngx_string("not_local");
    static ngx_str_t     origin = ngx_string("origin_not_allowed");

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    r->disable_not_modified = 1;

    if (!lcf->open && !ngx_mcp_local(r)) {
        return ngx_mcp_problem(r, NGX_HTTP_FORBIDDEN, &local, NULL);
    }

    if (!ngx_mcp_same_origin(r)) {
        return ngx_mcp_problem(r, NGX_HTTP_FORBIDDEN, &origin, NULL);
    }

    if (!(r->method & NGX_MCP_READS)) {
        return ngx_mcp_rest_allow(r, "GET, HEAD");
    }

    if (!ngx_mcp_status_wanted(r, &format)) {
        return ngx_mcp_problem_invalid(r,
                                       "format must be json or prometheus");
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_mcp_status_read(r, ngx_mcp_status_done);
}


/* reads all figures of the zone */

ngx_int_t
ngx_mcp_status_read(ngx_http_request_t *r, ngx_mcp_done_pt done)
{
    ngx_mcp_op_stats_t  *op;

    op = ngx_mcp_op(r, NGX_MCP_OP_STATS, sizeof(ngx_mcp_op_stats_t));
    if (op == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    op->detail = 1;

    return ngx_mcp_request_op(r, &op->op, done);
}


static ngx_int_t
ngx_mcp_status_done(ngx_http_request_t *r, ngx_mcp_op_t *o)
{
    ngx_str_t            text;
    ngx_uint_t           format;
    ngx_mcp_out_t        out;
    ngx_mcp_loc_conf_t  *lcf;
    ngx_mcp_figures_t    all[NGX_MCP_FIGURES];

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (ngx_mcp_status_figures(r, (ngx_mcp_op_stats_t *) o, all) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    (void) ngx_mcp_status_wanted(r, &format);

    ngx_mcp_out_init(&out, r->pool, 16384);

    if (format == NGX_MCP_FORMAT_PROMETHEUS) {
        ngx_str_set(&r->headers_out.content_type,
                    "text/plain; version=0.0.4; charset=utf-8");
        ngx_mcp_status_prometheus(&out, &lcf->zone->name, all);

    } else {
        ngx_mcp_status_json(&out, lcf->zone, all);
    }

    if (ngx_mcp_out_end(&out, &text) != NGX_OK
        || ngx_mcp_no_store(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_mcp_send(r, NGX_HTTP_OK, &text, 1);
}


/* the format of the response; 0: the query names an unknown format */

static ngx_uint_t
ngx_mcp_status_wanted(ngx_http_request_t *r, ngx_uint_t *format)
{
    ngx_str_t            name;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    *format = lcf->format;

    if (ngx_http_arg(r, (u_char *) "format", 6, &name) == NGX_OK) {
        *format = ngx_mcp_status_format(&name);
        return *format != NGX_MCP_FORMAT_ANY;
    }

    /* a client that also accepts JSON is not a Prometheus server */

    if (*format == NGX_MCP_FORMAT_ANY) {
        *format = (!ngx_mcp_status_accepts(r, "application/json")
                   && (ngx_mcp_status_accepts(r, "text/plain")
                       || ngx_mcp_status_accepts(r,
                                           "application/openmetrics-text")))
                  ? NGX_MCP_FORMAT_PROMETHEUS
                  : NGX_MCP_FORMAT_JSON;
    }

    return 1;
}


static ngx_uint_t
ngx_mcp_status_accepts(ngx_http_request_t *r, const char *type)
{
    ngx_str_t         value;
    static ngx_str_t  accept = ngx_string("accept");

    return ngx_mcp_header(r, &accept, &value)
           && ngx_strlcasestrn(value.data, value.data + value.len,
                               (u_char *) type, ngx_strlen(type) - 1);
}


/*
 * Fills in all figures: of the zone, of tools, of workers, and of the store if
 * it has a status.  While the lock is held for too long, the store is left out.
 */

ngx_int_t
ngx_mcp_status_figures(ngx_http_request_t *r, ngx_mcp_op_stats_t *op,
    ngx_mcp_figures_t *all)
{
    ngx_str_t              *names;
    ngx_uint_t              i;
    ngx_mcp_store_t        *store;
    ngx_mcp_loc_conf_t     *lcf;
    ngx_mcp_tool_stat_t    *tool;
    ngx_mcp_worker_stat_t  *worker;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);
    store = lcf->zone->store;

    names = ngx_palloc(r->pool,
                       (op->ntools + op->nworkers) * sizeof(ngx_str_t));
    if (names == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(all, NGX_MCP_FIGURES * sizeof(ngx_mcp_figures_t));

    all[0].figures = ngx_mcp_zone_figures;
    all[0].data = (u_char *) op;
    all[0].n = 1;

    all[1].figures = ngx_mcp_tool_figures;
    all[1].list = "byTool";
    all[1].label = "tool";
    all[1].data = (u_char *) op->tool_views;
    all[1].size = sizeof(ngx_mcp_tool_view_t);
    all[1].n = op->ntools;
    all[1].names = names;

    all[2].figures = ngx_mcp_worker_figures;
    all[2].list = "byWorker";
    all[2].label = "worker";
    all[2].data = (u_char *) op->worker_views;
    all[2].size = sizeof(ngx_mcp_worker_stat_t);
    all[2].n = op->nworkers;
    all[2].names = names + op->ntools;

    all[3].figures = ngx_mcp_store_figures;
    all[3].data = (u_char *) op;
    all[3].n = (store && store->status && op->lock_held == 0);

    if (all[3].n) {
        store->status(lcf->zone, op);
    }

    for (i = 0; i < op->ntools; i++) {
        tool = &op->tool_views[i].stat;
        all[1].names[i].data = tool->name;
        all[1].names[i].len = tool->len;
    }

    for (i = 0; i < op->nworkers; i++) {
        worker = &op->worker_views[i];
        all[2].names[i].data = worker->name;
        all[2].names[i].len = worker->len;
    }

    /* the first entry, shared by tools without their own, may be unused */

    if (op->ntools
        && op->tool_views[NGX_MCP_OTHER].stat.count.created == 0)
    {
        all[1].data += all[1].size;
        all[1].names++;
        all[1].n--;
    }

    return NGX_OK;
}


uint64_t
ngx_mcp_figure(ngx_mcp_figures_t *of, ngx_uint_t i, ngx_mcp_figure_t *f)
{
    u_char  *p;

    p = of->data + i * of->size + f->offset;

    return (f->type == NGX_MCP_FIGURE_32) ? *(uint32_t *) p
                                          : *(uint64_t *) p;
}


/* the upper bound of a bucket of a histogram, in seconds */

void
ngx_mcp_out_bound(ngx_mcp_out_t *out, ngx_uint_t bucket)
{
    if (bucket == NGX_MCP_BUCKETS - 1) {
        ngx_mcp_out_lit(out, "+Inf");
        return;
    }

    ngx_mcp_out_seconds(out, ngx_mcp_bounds[bucket]);
}
