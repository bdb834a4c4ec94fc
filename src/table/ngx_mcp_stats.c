
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_stats.h"
#include "ngx_mcp_json.h"


static ngx_uint_t ngx_mcp_stats_shown(ngx_str_t *name);
static ngx_uint_t ngx_mcp_stats_oldest_locked(ngx_mcp_table_t *t);
static void ngx_mcp_stats_count(ngx_mcp_task_counters_t *count,
    ngx_mcp_event_t *ev, ngx_uint_t from, ngx_uint_t to, uint64_t age);
static void ngx_mcp_stats_work_locked(ngx_mcp_table_t *t, ngx_mcp_task_t *task,
    ngx_mcp_event_t *ev);


/* the index of an entry must fit into a name, or into a worker's id */

typedef char  ngx_mcp_stats_fit[
    NGX_MCP_STAT_TOOLS <= 256
    && NGX_MCP_STAT_WORKERS <= 255 ? 1 : -1
];


const uint32_t  ngx_mcp_bounds[NGX_MCP_BUCKETS - 1] = {
    5, 10, 50, 100, 500, 1000, 5000, 10000, 60000, 300000, 1800000
};


/* takes a small part of the zone, with at least one entry of each kind */

void
ngx_mcp_stats_layout(ngx_mcp_layout_t *l, size_t size, size_t *offset)
{
    size_t  n;

    n = size / NGX_MCP_TOOLS_PART
        / sizeof(ngx_mcp_tool_stat_t);

    l->tool_stats = (uint32_t) ngx_min(ngx_max(n, 1), NGX_MCP_STAT_TOOLS);

    n = size / NGX_MCP_WORKERS_PART
        / sizeof(ngx_mcp_worker_stat_t);

    l->worker_stats = (uint32_t) ngx_min(ngx_max(n, 1), NGX_MCP_STAT_WORKERS);

    l->tool_stat = *offset = ngx_align(*offset, ngx_cacheline_size);
    *offset += l->tool_stats * sizeof(ngx_mcp_tool_stat_t);

    l->worker_stat = *offset = ngx_align(*offset, ngx_cacheline_size);
    *offset += l->worker_stats * sizeof(ngx_mcp_worker_stat_t);
}


/* the memory is zeroed */

void
ngx_mcp_stats_create(ngx_mcp_table_t *t, ngx_mcp_layout_t *l)
{
    ngx_mcp_tool_stat_t  *other;

    other = &t->tool_stats[NGX_MCP_OTHER];
    other->len = sizeof(NGX_MCP_OTHER_NAME) - 1;
    ngx_memcpy(other->name, NGX_MCP_OTHER_NAME, other->len);

    t->sh->tool_stats = 1;
    t->sh->tool_stats_end = l->tool_stats;
    t->sh->worker_stats_end = l->worker_stats;
}


/* clears the gauges, which recovery counts again */

void
ngx_mcp_stats_reset_locked(ngx_mcp_table_t *t)
{
    uint32_t              i;
    ngx_mcp_tool_stat_t  *stat;

    ngx_memzero(t->sh->states, sizeof(t->sh->states));
    t->sh->running = 0;

    for (i = 0; i < t->sh->tool_stats; i++) {
        stat = &t->tool_stats[i];

        ngx_memzero(stat->states, sizeof(stat->states));
        stat->running = 0;
        stat->tool = 0;
    }
}


/* returns the index of the entry, or sh->tool_stats if there is none */

ngx_uint_t
ngx_mcp_stats_find_tool_locked(ngx_mcp_table_t *t, ngx_str_t *name,
    uint32_t hash)
{
    uint32_t              i;
    ngx_mcp_tool_stat_t  *stat;

    for (i = 1; i < t->sh->tool_stats; i++) {

        if (t->sh->tool_hash[i] != hash) {
            continue;
        }

        stat = &t->tool_stats[i];

        if (stat->len == name->len
            && ngx_memcmp(stat->name, name->data, name->len) == 0)
        {
            break;
        }
    }

    return i;
}


ngx_uint_t
ngx_mcp_stats_is_other(ngx_str_t *name)
{
    return name->len == sizeof(NGX_MCP_OTHER_NAME) - 1
           && ngx_memcmp(name->data, NGX_MCP_OTHER_NAME, name->len)
              == 0;
}


/*
 * The index of a tool's entry, which may be a new one.  A tool with the name
 * "other" has the common entry.
 */

ngx_uint_t
ngx_mcp_stats_tool_locked(ngx_mcp_table_t *t, ngx_str_t *name, uint32_t hash)
{
    uint32_t              i;
    ngx_mcp_header_t     *sh;
    ngx_mcp_tool_stat_t  *stat;

    sh = t->sh;
    i = ngx_mcp_stats_find_tool_locked(t, name, hash);

    if (i < sh->tool_stats) {
        return i;
    }

    if (i == sh->tool_stats_end
        || name->len > NGX_MCP_STAT_NAME
        || ngx_mcp_stats_is_other(name)
        || !ngx_mcp_stats_shown(name))
    {
        return NGX_MCP_OTHER;
    }

    stat = &t->tool_stats[i];
    stat->len = (uint16_t) name->len;
    ngx_memcpy(stat->name, name->data, name->len);
    sh->tool_hash[i] = hash;

    /* now the entry is in use */

    ngx_mcp_failpoint("stat_new");

    ngx_mcp_barrier();
    sh->tool_stats = i + 1;

    return i;
}


/* statistics are shown as UTF-8, so other names get no entry */

static ngx_uint_t
ngx_mcp_stats_shown(ngx_str_t *name)
{
    u_char  *p, *end;

    p = name->data;
    end = p + name->len;

    while (p < end) {
        p = (*p < 0x80) ? p + 1 : ngx_mcp_json_utf8(p, end);

        if (p == NULL) {
            return 0;
        }
    }

    return 1;
}


/* returns the index of the entry, or sh->worker_stats if there is none */

ngx_uint_t
ngx_mcp_stats_find_worker_locked(ngx_mcp_table_t *t, ngx_str_t *name,
    uint32_t hash)
{
    uint32_t                i;
    ngx_mcp_worker_stat_t  *stat;

    for (i = 0; i < t->sh->worker_stats; i++) {
        stat = &t->worker_stats[i];

        if (t->sh->worker_hash[i] == hash
            && stat->len == name->len
            && ngx_memcmp(stat->name, name->data, name->len) == 0)
        {
            break;
        }
    }

    return i;
}


/*
 * A worker was seen.  Returns its id for the tasks that it claims, see
 * ngx_mcp_worker_id(); 0: the name is empty, too long or not UTF-8.
 */

uint32_t
ngx_mcp_stats_worker_locked(ngx_mcp_table_t *t, ngx_str_t *name, uint32_t hash,
    ngx_mcp_event_t *ev)
{
    uint32_t                i;
    ngx_mcp_header_t       *sh;
    ngx_mcp_worker_stat_t  *stat;

    sh = t->sh;

    if (name->len == 0 || name->len > NGX_MCP_WORKER_NAME) {
        return 0;
    }

    i = ngx_mcp_stats_find_worker_locked(t, name, hash);
    stat = &t->worker_stats[i];

    if (i < sh->worker_stats) {
        goto found;
    }

    if (!ngx_mcp_stats_shown(name)) {
        return 0;
    }

    if (i == sh->worker_stats_end) {
        i = ngx_mcp_stats_oldest_locked(t);
    }

    stat = &t->worker_stats[i];

    /* tasks of the entry's previous worker do not count for this one */

    stat->incarnation++;
    stat->draining = 0;
    stat->claimed = 0;
    stat->completed = 0;
    stat->failed = 0;
    stat->len = (uint16_t) name->len;
    ngx_memcpy(stat->name, name->data, name->len);
    sh->worker_hash[i] = hash;

    ngx_mcp_barrier();
    sh->worker_stats = ngx_max(sh->worker_stats, i + 1);

found:

    stat->seen = ev->now;
    stat->seen_wall = ev->wall;

    return ngx_mcp_worker_id(i, stat->incarnation);
}


static ngx_uint_t
ngx_mcp_stats_oldest_locked(ngx_mcp_table_t *t)
{
    uint32_t  i, oldest;

    for (oldest = 0, i = 1; i < t->sh->worker_stats; i++) {
        if (t->worker_stats[i].seen < t->worker_stats[oldest].seen) {
            oldest = i;
        }
    }

    return oldest;
}


/* from FREE: the task is new; to FREE: the task is removed */

void
ngx_mcp_stats_state_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t from, ngx_uint_t to)
{
    ngx_mcp_tool_stat_t  *stat;

    stat = ngx_mcp_tool_stat(t, s);

    if (from != NGX_MCP_FREE) {
        t->sh->states[from]--;
        stat->states[from]--;
    }

    if (to != NGX_MCP_FREE) {
        t->sh->states[to]++;
        stat->states[to]++;
    }
}


void
ngx_mcp_stats_created_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    t->sh->task_counters.created++;
    ngx_mcp_tool_stat(t, s)->count.created++;
}


/* after an event: the state before it, and ngx_mcp_task_age() before it */

void
ngx_mcp_stats_changed_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev, ngx_uint_t from, uint64_t age)
{
    ngx_uint_t            to;
    ngx_mcp_tool_stat_t  *stat;

    to = s->body.task.state;

    if (from != to) {
        stat = ngx_mcp_tool_stat(t, s);

        ngx_mcp_stats_count(&t->sh->task_counters, ev, from, to, age);
        ngx_mcp_stats_count(&stat->count, ev, from, to, age);
    }

    if (s->body.task.worker
        && (ev->type == NGX_MCP_EV_CLAIM
            || ngx_mcp_fenced(ev->type)))
    {
        ngx_mcp_stats_work_locked(t, &s->body.task, ev);
    }
}


static void
ngx_mcp_stats_count(ngx_mcp_task_counters_t *count, ngx_mcp_event_t *ev,
    ngx_uint_t from, ngx_uint_t to, uint64_t age)
{
    if (ev->type == NGX_MCP_EV_CLAIM) {
        count->claimed++;
        ngx_mcp_stats_time(&count->wait, age);
        return;
    }

    if (ev->type == NGX_MCP_EV_LEASE_LOST) {
        count->leases_lost++;
    }

    switch (to) {
    case NGX_MCP_QUEUED:
        count->requeued++;
        break;
    case NGX_MCP_COMPLETED:
        count->completed++;
        break;
    case NGX_MCP_FAILED:
        count->failed++;
        break;
    case NGX_MCP_CANCELLED:
        count->cancelled++;
        break;
    default:
        /* the attempt continues */
        return;
    }

    if (from != NGX_MCP_QUEUED) {
        ngx_mcp_stats_time(&count->run, age);
    }
}


/* NULL: the task has no worker, or another worker has its entry now */

ngx_mcp_worker_stat_t *
ngx_mcp_stats_worker_of_locked(ngx_mcp_table_t *t, uint32_t worker)
{
    uint32_t  i;

    i = (worker & 0xff) - 1;

    if (i >= t->sh->worker_stats
        || ngx_mcp_worker_id(i, t->worker_stats[i].incarnation) != worker)
    {
        return NULL;
    }

    return &t->worker_stats[i];
}


static void
ngx_mcp_stats_work_locked(ngx_mcp_table_t *t, ngx_mcp_task_t *task,
    ngx_mcp_event_t *ev)
{
    ngx_mcp_worker_stat_t  *stat;

    stat = ngx_mcp_stats_worker_of_locked(t, task->worker);

    if (stat == NULL) {
        return;
    }

    stat->seen = ev->now;
    stat->seen_wall = ev->wall;

    switch (ev->type) {
    case NGX_MCP_EV_CLAIM:
        stat->claimed++;
        break;
    case NGX_MCP_EV_COMPLETE:
        stat->completed++;
        break;
    case NGX_MCP_EV_FAIL:
    case NGX_MCP_EV_RETRY:
        stat->failed++;
        break;
    }
}


/* called before the removal, which may free the name of the tool */

void
ngx_mcp_stats_removed_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t expired)
{
    ngx_uint_t            ended;
    ngx_mcp_tool_stat_t  *stat;

    stat = ngx_mcp_tool_stat(t, s);
    ended = ngx_mcp_terminal(s->body.task.state);

    if (expired) {
        t->sh->count.expired++;
        t->sh->task_counters.lapsed += !ended;
        stat->count.lapsed += !ended;

    } else {
        t->sh->count.deleted++;
        t->sh->task_counters.dropped += !ended;
        stat->count.dropped += !ended;
    }
}


void
ngx_mcp_stats_swept_locked(ngx_mcp_table_t *t, ngx_uint_t tasks, uint64_t lag)
{
    ngx_mcp_counters_t  *count;

    count = &t->sh->count;

    count->sweeps++;
    count->swept += tasks;
    count->sweep_batch = tasks;
    count->sweep_lag = lag;
    count->sweep_lag_max = ngx_max(count->sweep_lag_max, lag);
}


void
ngx_mcp_stats_time(ngx_mcp_histogram_t *h, uint64_t ms)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_BUCKETS - 1; i++) {
        if (ms <= ngx_mcp_bounds[i]) {
            break;
        }
    }

    h->bucket[i]++;
    h->sum += ms;
}
