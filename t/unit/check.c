
/*
 * The check that other tests rely on: does it see what is wrong?  Each case
 * breaks one thing in a table that is whole, and names what must be said;
 * recovery then mends all that does not touch the slots.
 */


#include "libtest.h"
#include "libcrash.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_recover.h"


#define TASK   (&t->slots[2])
#define OWNER  ngx_mcp_name(t, TASK->owner)
#define HELD   (&t->slots[t->sh->held.head])
#define CALLS(s)  ngx_mcp_name(t, (s)->tool)->running
#define DELIVERY  ngx_mcp_name(t, announced(t)->session)->u.delivery

#define BREAK(label, message, mend, ...)                                      \
    static void label(ngx_mcp_table_t *t) { __VA_ARGS__; }                    \
    static const case_t  label##_case = { #label, message, mend, label }


typedef struct {
    const char  *name;
    const char  *message;
    int          mend;         /* recovery knows better */
    void       (*run)(ngx_mcp_table_t *t);
} case_t;


/* a claimable task, with others before and after it in its queue */

static ngx_mcp_slot_t *
queued(ngx_mcp_table_t *t)
{
    uint32_t  n;

    for (n = 1; n < t->sh->slot.fresh; n++) {
        if (t->slots[n].queued && t->slots[n].queue_next) {
            return &t->slots[n];
        }
    }

    exit(2);
}


/* the task of a session that changed first of those that its client knows */

static ngx_mcp_slot_t *
announced(ngx_mcp_table_t *t)
{
    uint32_t  n;

    for (n = 1; n < t->sh->slot.fresh; n++) {
        if (t->slots[n].body.task.state != NGX_MCP_FREE
            && ngx_mcp_changes_has(&t->slots[n])
            && t->slots[n].changes.next == 0)
        {
            return &t->slots[n];
        }
    }

    exit(2);
}


/* a call that waits for its turn, with others before and after it */

static ngx_mcp_slot_t *
waiting(ngx_mcp_table_t *t)
{
    uint32_t  n;

    for (n = t->sh->held.head; n; n = t->slots[n].queue_next) {
        if (t->slots[n].body.task.state == NGX_MCP_QUEUED) {
            return &t->slots[n];
        }
    }

    exit(2);
}


/* the second of those that run, of another tool than the first */

static ngx_mcp_slot_t *
second(ngx_mcp_table_t *t)
{
    return &t->slots[HELD->queue_next];
}


/* the length of a chain of many blocks */

static uint32_t *
long_chain(ngx_mcp_table_t *t)
{
    uint32_t  n;

    for (n = 1; n < t->sh->slot.fresh; n++) {
        if (t->slots[n].body.task.state == NGX_MCP_INPUT_REQUIRED) {
            return &t->slots[n].body.payload[NGX_MCP_REQUESTS].len;
        }
    }

    exit(2);
}


BREAK(magic, "wrong magic", 0, t->sh->magic++);
BREAK(journal, "unfinished change in the journal", 0, t->sh->journal = 1);
BREAK(state, "unknown state", 0, TASK->body.task.state = 99);
BREAK(hash, "not found by its id", 1,
      ngx_memzero(t->hash, (t->sh->hash_mask + 1) * sizeof(uint32_t)));
BREAK(future, "from the future", 1, t->sh->seq = 0);
BREAK(chain_out, "invalid block index", 0,
      TASK->body.payload[0].last = 1000000);
BREAK(chain_shared, "used twice", 0,
      TASK->body.payload[5] = TASK->body.payload[0]);
BREAK(chain_long, "does not match its length", 0, *long_chain(t) -= 200);
BREAK(method, "method is longer", 0, TASK->method_len = 255);
BREAK(claimable, "queued but not claimable", 1, queued(t)->queued = 0);
BREAK(deadline, "with a deadline is not in the wheel", 1, TASK->bucket = 0);
BREAK(name_empty, "has no task", 1, OWNER->tasks = 0);
BREAK(name_count, "list", 1, OWNER->tasks++);
BREAK(name_bytes, "an owner's bytes", 1, OWNER->bytes++);
BREAK(names, "number of tasks of names", 1, t->sh->names[0]++);
BREAK(order, "list", 1, OWNER->u.owned.by_seq[0] = TASK->by_seq[0].next);
BREAK(order_back, "out of order", 1,
      t->slots[OWNER->u.owned.by_seq[0]].by_seq[0].prev = 1);
BREAK(change, "list", 1,
      OWNER->u.owned.by_change[0] = TASK->by_change[0].next);
BREAK(change_back, "out of order", 1,
      t->slots[OWNER->u.owned.by_change[0]].by_change[0].prev = 1);
BREAK(change_future, "from the future", 1, TASK->body.changed = t->sh->seq + 1);
BREAK(session_count, "number of tasks of names", 1,
      ngx_mcp_name(t, announced(t)->session)->tasks++);
BREAK(changes_foreign, "session's list has a foreign task", 1,
      DELIVERY.changes = 2);
BREAK(changes_loop, "session's list has a foreign task or a loop", 1,
      announced(t)->changes.next = DELIVERY.changes);
BREAK(changes_back, "out of order", 1,
      t->slots[DELIVERY.changes].changes.prev = 1);
BREAK(changes_short, "not in the list of its session", 1,
      t->slots[announced(t)->changes.prev].changes.next = 0);
BREAK(changes_count, "wrong number of undelivered changes", 1,
      DELIVERY.undelivered++);
BREAK(changes_delivered, "wrong number of undelivered changes", 1,
      DELIVERY.delivered = 0);
BREAK(queue_back, "foreign task or is out of order", 1,
      t->slots[queued(t)->queue_next].queue_prev = 0);
BREAK(queue_tail, "wrong tail", 1,
      ngx_mcp_name(t, queued(t)->tool)->u.queue[1].tail = 1);
BREAK(held_head, "foreign task or is out of order", 1,
      t->sh->held.head = HELD->queue_next);
BREAK(held_back, "foreign task or is out of order", 1,
      second(t)->queue_prev = 0);
BREAK(held_loop, "foreign task or is out of order", 1,
      t->slots[t->sh->held.tail].queue_next = t->sh->held.head);
BREAK(held_order, "foreign task or is out of order", 1,
      uint64_t  seq = HELD->body.queue_seq;
      HELD->body.queue_seq = second(t)->body.queue_seq;
      second(t)->body.queue_seq = seq);
BREAK(held_worker, "foreign task or is out of order", 1,
      waiting(t)->body.task.policy.route = 0);
BREAK(held_claimable, "foreign task or is out of order", 1,
      queued(t)->body.task.policy.route = 1);
BREAK(held_tail, "wrong tail", 1, t->sh->held.tail = t->sh->held.head);
BREAK(held_none, "of a tool's running calls", 1,
      t->sh->held.head = 0; t->sh->held.tail = 0);
BREAK(held_last, "not in its queue", 1,
      t->sh->held.tail = t->slots[t->sh->held.tail].queue_prev;
      t->slots[t->sh->held.tail].queue_next = 0);
BREAK(held_short, "wrong tail", 1, second(t)->queue_next = 0);
BREAK(held_lost, "queued but not claimable", 1, HELD->queued = 0);
BREAK(held_ended, "queued but not claimable", 1,
      waiting(t)->body.task.state = NGX_MCP_FAILED;
      t->sh->states[NGX_MCP_QUEUED]--;
      t->sh->states[NGX_MCP_FAILED]++);
BREAK(holding, "wrong number of running calls", 1, t->sh->holding++);
BREAK(running, "wrong number of running calls", 1, t->sh->running--);
BREAK(tool_more, "of a tool's running calls", 1, CALLS(HELD)++);
BREAK(tool_less, "of a tool's running calls", 1, CALLS(HELD)--);
BREAK(tool_other, "of a tool's running calls", 1,
      CALLS(HELD)++; CALLS(second(t))--);
BREAK(tool_foreign, "of a tool's running calls", 1,
      CALLS(TASK)++);
BREAK(wheel_map, "map does not match", 1, t->sh->wheel.map[6] |= 1);
BREAK(wheel_lost, "foreign task or a loop", 1, TASK->wheel_prev = 3);
BREAK(slots, "used or free slots", 1, t->sh->slot.free = 0);
BREAK(slot_live, "task is on the free list", 1, t->sh->slot.free = 2);
BREAK(blocks, "used or free blocks", 1, t->sh->block.free = 0);
BREAK(block_used, "block in use", 1,
      t->sh->block.free = TASK->body.payload[0].last);
BREAK(states, "number of tasks by state", 1, t->sh->states[1]++);
BREAK(bytes, "number of payload bytes", 1, t->sh->bytes++);
BREAK(stat_state, "of a tool's tasks", 1,
      t->tool_stats[1].states[1]++);
BREAK(stat_running, "of a tool's tasks", 1,
      t->tool_stats[0].running++);
BREAK(stat_tool, "belongs to another tool", 1, t->tool_stats[1].tool = 0);
BREAK(stat_swapped, "belongs to another tool", 0,
      t->tool_stats[1].name[0]++);
BREAK(stat_index, "missing statistics entry", 1,
      ngx_mcp_name(t, TASK->tool)->stat = 255);
BREAK(stat_tools, "too many statistics", 0, t->sh->tool_stats = 1000000);
BREAK(stat_workers, "too many statistics", 0, t->sh->worker_stats = 1000000);


static const case_t  *cases[] = {
    &magic_case, &journal_case, &state_case, &hash_case, &future_case,
    &chain_out_case, &chain_shared_case, &chain_long_case, &method_case,
    &claimable_case, &deadline_case, &name_empty_case, &name_count_case,
    &name_bytes_case, &names_case, &order_case, &order_back_case,
    &change_case, &change_back_case, &change_future_case,
    &session_count_case, &changes_foreign_case, &changes_loop_case,
    &changes_back_case, &changes_short_case, &changes_count_case,
    &changes_delivered_case,
    &queue_back_case, &queue_tail_case, &held_head_case, &held_back_case,
    &held_loop_case, &held_order_case, &held_worker_case,
    &held_claimable_case, &held_tail_case, &held_none_case, &held_last_case,
    &held_short_case, &held_lost_case, &held_ended_case, &holding_case,
    &running_case, &tool_more_case, &tool_less_case, &tool_other_case,
    &tool_foreign_case, &wheel_map_case, &wheel_lost_case,
    &slots_case, &slot_live_case, &blocks_case, &block_used_case,
    &states_case, &bytes_case, &stat_state_case, &stat_running_case,
    &stat_tool_case, &stat_swapped_case, &stat_index_case, &stat_tools_case,
    &stat_workers_case, NULL
};


int
main(void)
{
    u_char            *copy;
    const char        *err;
    const case_t     **c;
    ngx_slab_pool_t   *sp;
    ngx_mcp_zone_t    *zone;

    zone = crash_zone();
    sp = zone->table->shpool;
    copy = malloc(CRASH_ZONE);

    ok(test_check(zone) == NULL, "a table that is whole");
    ngx_memcpy(copy, sp, CRASH_ZONE);

    for (c = cases; *c; c++) {
        (*c)->run(zone->table);
        err = ngx_mcp_check_locked(zone->table);

        ok(err && ngx_strstr(err, (*c)->message), "%s: %s", (*c)->name,
           err ? err : "nothing was said");

        if ((*c)->mend) {
            ngx_mcp_recover_locked(zone->table);
            ok(ngx_mcp_check_locked(zone->table) == NULL,
               "%s: recovery mends it", (*c)->name);
        }

        ngx_memcpy(sp, copy, CRASH_ZONE);
    }

    free(copy);

    return done_testing();
}
