
#include "ngx_mcp_save.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_recover.h"


static size_t ngx_mcp_load_blocks_locked(ngx_mcp_table_t *t,
    ngx_mcp_record_t *rec);
static uint32_t ngx_mcp_load_name_locked(ngx_mcp_table_t *t, ngx_uint_t kind,
    ngx_str_t *text, ngx_uint_t create);
static void ngx_mcp_load_times(ngx_mcp_load_t *load, ngx_mcp_task_t *task);


/*
 * The zone is emptied, whatever is in there, and gets the secret of those
 * tasks that are to come.
 */

void
ngx_mcp_load_begin_locked(ngx_mcp_table_t *t, uint64_t *secret,
    ngx_mcp_load_t *load)
{
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    sh->instance = 0;
    sh->journal = 0;
    sh->loaded = 0;
    sh->durable = 1;
    sh->rewrite = 0;
    sh->saved = NGX_MCP_NEVER;
    sh->safe = NGX_MCP_NEVER;
    sh->since = 0;
    sh->since_next = 0;
    sh->slot.fresh = 1;
    sh->block.fresh = 1;

    if (secret) {
        sh->secret[0] = secret[0];
        sh->secret[1] = secret[1];
    }

    ngx_mcp_rebuild_locked(t);

    /* as near as possible to what will be due */
    sh->wheel.base = load->now;
}


/* what does not fit is counted all the same */

void
ngx_mcp_load_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load,
    ngx_mcp_record_t *rec)
{
    size_t           blocks;
    uint32_t         n;
    uint8_t          state;
    ngx_str_t        parts[3];
    ngx_uint_t       i;
    ngx_mcp_slot_t  *s;
    ngx_mcp_body_t  *body;
    static u_char    room[NGX_MCP_HISTORY];

    load->seq = ngx_max(load->seq, rec->seq);
    load->seq = ngx_max(load->seq, rec->body.changed);
    load->seq = ngx_max(load->seq, rec->body.queue_seq);

    blocks = ngx_mcp_load_blocks_locked(t, rec);

    load->tasks++;
    load->blocks += blocks;

    if (ngx_mcp_available(&t->sh->slot) == 0
        || blocks > ngx_mcp_available(&t->sh->block))
    {
        load->full = 1;
    }

    if (load->full) {
        return;
    }

    n = ngx_mcp_slot_alloc_locked(t);
    s = ngx_mcp_slot(t, n);

    ngx_memzero((u_char *) s + sizeof(ngx_mcp_id_t),
                sizeof(ngx_mcp_slot_t)
                - sizeof(ngx_mcp_id_t));

    s->id = rec->id;
    s->seq = rec->seq;
    s->owner = ngx_mcp_load_name_locked(t, NGX_MCP_OWNER, &rec->owner, 1);
    s->tool = ngx_mcp_load_name_locked(t, NGX_MCP_TOOL, &rec->tool, 1);

    if (rec->session.len) {
        s->session = ngx_mcp_load_name_locked(t, NGX_MCP_SESSION,
                                              &rec->session, 1);
    }

    if (rec->token.len) {
        s->token = ngx_mcp_token_locked(t, s->owner, &rec->token, 1);
    }

    s->method_len = (uint8_t) rec->method.len;
    s->epoch = t->sh->epoch;

    body = &rec->body;
    ngx_mcp_load_times(load, &body->task);

    parts[0] = rec->method;
    parts[1] = rec->payload[NGX_MCP_PARAMS];
    parts[2].data = room;
    parts[2].len = sizeof(room);

    ngx_mcp_chain_write_locked(t, &body->payload[NGX_MCP_PARAMS], parts, 3);

    for (i = NGX_MCP_PARAMS + 1; i < NGX_MCP_PAYLOADS;
         i++)
    {
        ngx_mcp_chain_write_locked(t, &body->payload[i], &rec->payload[i], 1);
    }

    state = body->task.state;
    body->task.state = NGX_MCP_FREE;
    s->body = *body;

    ngx_mcp_history_load_locked(t, s, rec->history.data, rec->history.len);

    ngx_mcp_barrier();
    s->body.task.state = state;
    ngx_mcp_barrier();
}


static size_t
ngx_mcp_load_blocks_locked(ngx_mcp_table_t *t, ngx_mcp_record_t *rec)
{
    size_t      blocks;
    ngx_uint_t  i;

    blocks = ngx_mcp_blocks_for(rec->method.len
                              + rec->payload[NGX_MCP_PARAMS].len
                              + NGX_MCP_HISTORY);

    for (i = NGX_MCP_PARAMS + 1; i < NGX_MCP_PAYLOADS;
         i++)
    {
        blocks += ngx_mcp_blocks_for(rec->payload[i].len);
    }

    if (ngx_mcp_load_name_locked(t, NGX_MCP_OWNER, &rec->owner, 0) == 0) {
        blocks += ngx_mcp_name_blocks(&rec->owner);
    }

    if (ngx_mcp_load_name_locked(t, NGX_MCP_TOOL, &rec->tool, 0) == 0) {
        blocks += ngx_mcp_name_blocks(&rec->tool);
    }

    return blocks
           + (rec->session.len ? ngx_mcp_name_blocks(&rec->session)
                               : 0)
           + (rec->token.len ? 1 : 0);
}


static uint32_t
ngx_mcp_load_name_locked(ngx_mcp_table_t *t, ngx_uint_t kind, ngx_str_t *text,
    ngx_uint_t create)
{
    uint32_t  n, hash;

    hash = ngx_mcp_name_hash(t, kind, text);
    n = ngx_mcp_name_find_locked(t, kind, text, hash);

    if (n == 0 && create) {
        n = ngx_mcp_name_new_locked(t, kind, text, hash);
    }

    return n;
}


/*
 * Deadlines are where they would be had we been there all the time, but for
 * leases: nobody could prolong his.  Processes that had calls are dead, and
 * workers are counted anew.
 */

static void
ngx_mcp_load_times(ngx_mcp_load_t *load, ngx_mcp_task_t *task)
{
    uint64_t  lease;

    /* as long as whoever has it was given, which may be more than usual */

    lease = task->policy.lease;

    if (task->step_end > task->updated) {
        lease = ngx_max(lease, task->step_end - task->updated);
    }

    task->expires = ngx_mcp_from_wall(task->expires, load->now, load->wall);
    task->step_end = ngx_mcp_from_wall(task->step_end, load->now, load->wall);

    if (task->state != NGX_MCP_INPUT_REQUIRED) {
        task->phase_end = ngx_mcp_from_wall(task->phase_end, load->now,
                                            load->wall);
        task->since = ngx_mcp_from_wall(task->since, load->now, load->wall);
    }

    if (task->state == NGX_MCP_RUNNING
        && task->step_end != NGX_MCP_NEVER)
    {
        lease = (task->policy.lease == NGX_MCP_UNLIMITED)
                ? NGX_MCP_NEVER : load->now + lease;

        task->step_end = ngx_max(task->step_end, lease);
    }

    task->holder = 0;
    task->worker = 0;

    /* the answer to the call may have been sent */
    task->flags |= NGX_MCP_ANNOUNCED;
}


/* everything else follows from the slots */

void
ngx_mcp_load_end_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load)
{
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    sh->seq = ngx_max(sh->seq, load->seq) + NGX_MCP_LOAD_AHEAD;

    ngx_mcp_rebuild_locked(t);

    sh->saved = sh->seq;
    sh->safe = sh->seq;
    sh->loaded = sh->seq;
    sh->failed = 0;

    /* calls of processes that were here before have to be looked after */
    sh->epoch++;
    sh->waiting = 0;
}
