
#include "libredis.h"
#include "ngx_mcp_history.h"


static u_char  texts[REDIS_REST];


/* less than n; the same sequence in each run */

uint64_t
redis_random(uint64_t n)
{
    static uint64_t  state = 88172645463325252ULL;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;

    return state % n;
}


ngx_uint_t
redis_one_of(ngx_uint_t n)
{
    return redis_random(n) == 0;
}


static uint64_t
number(void)
{
    uint64_t  n;

    n = redis_random(NGX_MCP_RECORD_COUNT) >> redis_random(52);

    return redis_one_of(4) ? NGX_MCP_RECORD_COUNT : n;
}


static uint64_t
moment(void)
{
    return redis_one_of(4) ? NGX_MCP_NEVER
                           : REDIS_NOW - 100000 + redis_random(10000000);
}


static uint32_t
span(void)
{
    return redis_one_of(4) ? NGX_MCP_UNLIMITED
                           : (uint32_t) redis_random(10000000);
}


static double
real(void)
{
    return redis_one_of(3) ? -1 : (double) redis_random(1000000) / 7;
}


static ngx_str_t
text(size_t *used, size_t max)
{
    size_t     i;
    ngx_str_t  s;

    s.data = texts + *used;
    s.len = redis_random(max + 1);

    for (i = 0; i < s.len; i++) {
        s.data[i] = (u_char) redis_random(256);
    }

    *used += s.len;

    return s;
}


static void
random_policy(ngx_mcp_policy_t *policy)
{
    policy->lease = span();
    policy->queue_timeout = span();
    policy->run_timeout = span();
    policy->backoff = span();
    policy->poll_interval = span();
    policy->keep_completed = span();
    policy->keep_failed = span();
    policy->keep_cancelled = span();
    policy->route = span();
    policy->attempts = (uint8_t) redis_random(256);
    policy->priority = (uint8_t) redis_random(NGX_MCP_PRIORITIES);
    policy->calls = (uint8_t) redis_random(256) & NGX_MCP_CALLS;
}


static void
random_task(ngx_mcp_task_t *task)
{
    random_policy(&task->policy);

    task->version = number();
    task->created = REDIS_NOW - redis_random(1000000);
    task->updated = task->created + redis_random(1000000);
    task->ttl = moment();
    task->expires = moment();
    task->step_end = moment();
    task->phase_end = moment();
    task->since = moment();
    task->lease_token = redis_random((uint64_t) -1);
    task->holder = redis_random((uint64_t) -1);
    task->progress = real();
    task->total = real();
    task->attempt = (uint8_t) redis_random(256);
    task->state = (uint8_t) (1 + redis_random(NGX_MCP_STATES - 1));
    task->flags = (uint8_t) redis_random(256) & NGX_MCP_FLAGS_SAVED;
    task->cause = (uint8_t) redis_random(NGX_MCP_CAUSE_PROCESS_LOST + 1);
}


/* valid by itself, but not as a task */

void
redis_record(ngx_mcp_redis_record_t *rr)
{
    size_t             used;
    ngx_uint_t         i;
    ngx_mcp_record_t  *rec;

    ngx_memzero(rr, sizeof(ngx_mcp_redis_record_t));

    rec = &rr->rec;
    used = 0;

    (void) ngx_mcp_id_new(&rec->id);
    random_task(&rec->task);

    rec->seq = number();
    rec->revision = number();
    rec->changed = number();
    rec->turned = number();
    rec->moved = number();
    rec->queue_seq = number();
    rec->peak = real();

    rec->owner = text(&used, redis_one_of(2) ? 8 : NGX_MCP_MAX_NAME);
    rec->tool = text(&used, redis_one_of(2) ? 8 : NGX_MCP_MAX_NAME);
    rec->token = text(&used, NGX_MCP_MAX_TOKEN);
    rec->session = text(&used, 255);
    rec->method = text(&used, NGX_MCP_MAX_METHOD);
    rec->payload[NGX_MCP_PARAMS] = text(&used, redis_one_of(2) ? 0 : 2000);
    rec->mask = 1u << NGX_MCP_PARAMS;

    for (i = 1; i < NGX_MCP_PAYLOADS; i++) {
        rr->lengths[i] = (uint32_t) redis_random((uint32_t) -1);
    }

    rr->lengths[NGX_MCP_PARAMS] = (uint32_t) rec->payload[NGX_MCP_PARAMS].len;

    rr->seat = (uint32_t) redis_random(100);
    rr->epoch = (uint32_t) redis_random(100);
    rr->worker_len = (uint32_t) redis_random(NGX_MCP_WORKER_NAME + 1);
    (void) ngx_mcp_random(rr->owner_hash, 16);

    if (redis_one_of(2)) {
        (void) ngx_mcp_random(rr->tokens, sizeof(rr->tokens));
    }

    for (i = redis_random(12); i; i--) {
        ngx_mcp_history_append(rr->history, NGX_MCP_REDIS_HISTORY,
                               rec->task.created,
                               rec->task.created + redis_random(1000000),
                               redis_random(NGX_MCP_EVENTS),
                               1 + redis_random(NGX_MCP_STATES - 1), 0);
    }

    rec->history.data = rr->history;
    rec->history.len = NGX_MCP_REDIS_HISTORY;
}
