
#include "ngx_mcp_save.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_recover.h"
#include "ngx_mcp_signal.h"


static size_t ngx_http_mcp_tasks_load_blocks_locked(
    ngx_http_mcp_tasks_table_t *t, ngx_http_mcp_tasks_record_t *rec);
static uint32_t ngx_http_mcp_tasks_load_name_locked(
    ngx_http_mcp_tasks_table_t *t, ngx_uint_t kind, ngx_str_t *text,
    ngx_uint_t create);
static void ngx_http_mcp_tasks_load_times(ngx_http_mcp_tasks_load_t *load,
    ngx_http_mcp_tasks_task_t *task);


/*
 * The zone is emptied, whatever is in there, and gets the secret of those
 * tasks that are to come.
 */

void
ngx_http_mcp_tasks_load_begin_locked(ngx_http_mcp_tasks_table_t *t,
    uint64_t *secret, ngx_http_mcp_tasks_load_t *load)
{
    ngx_http_mcp_tasks_header_t  *sh;

    sh = t->sh;

    sh->instance = 0;
    sh->journal = 0;
    sh->loaded = 0;
    sh->durable = 1;
    sh->rewrite = 0;
    sh->saved = NGX_HTTP_MCP_TASKS_NEVER;
    sh->safe = NGX_HTTP_MCP_TASKS_NEVER;
    sh->since = 0;
    sh->since_next = 0;
    sh->slot.fresh = 1;
    sh->block.fresh = 1;

    if (secret) {
        sh->secret[0] = secret[0];
        sh->secret[1] = secret[1];
    }

    ngx_http_mcp_tasks_rebuild_locked(t);

    /* as near as possible to what will be due */
    sh->wheel.base = load->now;
}


/* what does not fit is counted all the same */

void
ngx_http_mcp_tasks_load_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_load_t *load, ngx_http_mcp_tasks_record_t *rec)
{
    size_t                      blocks;
    uint32_t                    n;
    uint8_t                     state;
    ngx_str_t                   parts[3];
    ngx_uint_t                  i;
    ngx_http_mcp_tasks_slot_t  *s;
    ngx_http_mcp_tasks_body_t  *body;
    static u_char               room[NGX_HTTP_MCP_TASKS_HISTORY];

    load->seq = ngx_max(load->seq, rec->seq);
    load->seq = ngx_max(load->seq, rec->body.changed);
    load->seq = ngx_max(load->seq, rec->body.queue_seq);

    blocks = ngx_http_mcp_tasks_load_blocks_locked(t, rec);

    load->tasks++;
    load->blocks += blocks;

    if (ngx_http_mcp_tasks_available(&t->sh->slot) == 0
        || blocks > ngx_http_mcp_tasks_available(&t->sh->block))
    {
        load->full = 1;
    }

    if (load->full) {
        return;
    }

    n = ngx_http_mcp_tasks_slot_alloc_locked(t);
    s = ngx_http_mcp_tasks_slot(t, n);

    ngx_memzero((u_char *) s + sizeof(ngx_http_mcp_tasks_id_t),
                sizeof(ngx_http_mcp_tasks_slot_t)
                - sizeof(ngx_http_mcp_tasks_id_t));

    s->id = rec->id;
    s->seq = rec->seq;
    s->owner = ngx_http_mcp_tasks_load_name_locked(t,
                                   NGX_HTTP_MCP_TASKS_OWNER, &rec->owner, 1);
    s->tool = ngx_http_mcp_tasks_load_name_locked(t,
                                   NGX_HTTP_MCP_TASKS_TOOL, &rec->tool, 1);

    if (rec->session.len) {
        s->session = ngx_http_mcp_tasks_load_name_locked(t,
                                 NGX_HTTP_MCP_TASKS_SESSION, &rec->session, 1);
    }

    if (rec->token.len) {
        s->token = ngx_http_mcp_tasks_token_locked(t, s->owner, &rec->token,
                                                   1);
    }

    s->method_len = (uint8_t) rec->method.len;
    s->epoch = t->sh->epoch;

    body = &rec->body;
    ngx_http_mcp_tasks_load_times(load, &body->task);

    parts[0] = rec->method;
    parts[1] = rec->payload[NGX_HTTP_MCP_TASKS_PARAMS];
    parts[2].data = room;
    parts[2].len = sizeof(room);

    ngx_http_mcp_tasks_chain_write_locked(t,
                    &body->payload[NGX_HTTP_MCP_TASKS_PARAMS], parts, 3);

    for (i = NGX_HTTP_MCP_TASKS_PARAMS + 1; i < NGX_HTTP_MCP_TASKS_PAYLOADS;
         i++)
    {
        ngx_http_mcp_tasks_chain_write_locked(t, &body->payload[i],
                                              &rec->payload[i], 1);
    }

    state = body->task.state;
    body->task.state = NGX_HTTP_MCP_TASKS_FREE;
    s->body = *body;

    ngx_http_mcp_tasks_history_load_locked(t, s, rec->history.data,
                                           rec->history.len);

    ngx_http_mcp_tasks_barrier();
    s->body.task.state = state;
    ngx_http_mcp_tasks_barrier();
}


static size_t
ngx_http_mcp_tasks_load_blocks_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_record_t *rec)
{
    size_t      blocks;
    ngx_uint_t  i;

    blocks = ngx_http_mcp_tasks_blocks_for(rec->method.len
                              + rec->payload[NGX_HTTP_MCP_TASKS_PARAMS].len
                              + NGX_HTTP_MCP_TASKS_HISTORY);

    for (i = NGX_HTTP_MCP_TASKS_PARAMS + 1; i < NGX_HTTP_MCP_TASKS_PAYLOADS;
         i++)
    {
        blocks += ngx_http_mcp_tasks_blocks_for(rec->payload[i].len);
    }

    if (ngx_http_mcp_tasks_load_name_locked(t, NGX_HTTP_MCP_TASKS_OWNER,
                                            &rec->owner, 0)
        == 0)
    {
        blocks += ngx_http_mcp_tasks_name_blocks(&rec->owner);
    }

    if (ngx_http_mcp_tasks_load_name_locked(t, NGX_HTTP_MCP_TASKS_TOOL,
                                            &rec->tool, 0)
        == 0)
    {
        blocks += ngx_http_mcp_tasks_name_blocks(&rec->tool);
    }

    return blocks
           + (rec->session.len ? ngx_http_mcp_tasks_name_blocks(&rec->session)
                               : 0)
           + (rec->token.len ? 1 : 0);
}


static uint32_t
ngx_http_mcp_tasks_load_name_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_uint_t kind, ngx_str_t *text, ngx_uint_t create)
{
    uint32_t  n, hash;

    hash = ngx_http_mcp_tasks_name_hash(t, kind, text);
    n = ngx_http_mcp_tasks_name_find_locked(t, kind, text, hash);

    if (n == 0 && create) {
        n = ngx_http_mcp_tasks_name_new_locked(t, kind, text, hash);
    }

    return n;
}


/*
 * Deadlines are where they would be had we been there all the time, but for
 * leases: nobody could prolong his.  Processes that had calls are dead, and
 * workers are counted anew.
 */

static void
ngx_http_mcp_tasks_load_times(ngx_http_mcp_tasks_load_t *load,
    ngx_http_mcp_tasks_task_t *task)
{
    uint64_t  lease;

    /* as long as whoever has it was given, which may be more than usual */

    lease = task->policy.lease;

    if (task->step_end > task->updated) {
        lease = ngx_max(lease, task->step_end - task->updated);
    }

    task->expires = ngx_http_mcp_tasks_from_wall(task->expires, load->now,
                                                 load->wall);
    task->step_end = ngx_http_mcp_tasks_from_wall(task->step_end, load->now,
                                                  load->wall);

    if (task->state != NGX_HTTP_MCP_TASKS_INPUT_REQUIRED) {
        task->phase_end = ngx_http_mcp_tasks_from_wall(task->phase_end,
                                                       load->now, load->wall);
        task->since = ngx_http_mcp_tasks_from_wall(task->since, load->now,
                                                   load->wall);
    }

    if (task->state == NGX_HTTP_MCP_TASKS_RUNNING
        && task->step_end != NGX_HTTP_MCP_TASKS_NEVER)
    {
        lease = (task->policy.lease == NGX_HTTP_MCP_TASKS_UNLIMITED)
                ? NGX_HTTP_MCP_TASKS_NEVER : load->now + lease;

        task->step_end = ngx_max(task->step_end, lease);
    }

    task->holder = 0;
    task->worker = 0;

    /* the answer to the call may have been sent */
    task->flags |= NGX_HTTP_MCP_TASKS_ANNOUNCED;
}


/* everything else follows from the slots */

void
ngx_http_mcp_tasks_load_end_locked(ngx_http_mcp_tasks_table_t *t,
    ngx_http_mcp_tasks_load_t *load)
{
    ngx_http_mcp_tasks_header_t  *sh;

    sh = t->sh;

    sh->seq = ngx_max(sh->seq, load->seq) + NGX_HTTP_MCP_TASKS_LOAD_AHEAD;

    ngx_http_mcp_tasks_rebuild_locked(t);

    sh->saved = sh->seq;
    sh->safe = sh->seq;
    sh->loaded = sh->seq;
    sh->failed = 0;

    /* calls of processes that were here before have to be looked after */
    sh->epoch++;
    sh->waiting = 0;
}
