
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The task table: what lies in a zone's shared memory.
 *
 * The zone is carved once, when it is created:
 *
 *   slab pool | header | id hash | name hash | log | statistics | slots |
 *   block map | blocks
 *
 * A slot is one task.  Whatever has no fixed size (params, result, names)
 * lies in blocks of one size, so that any free block serves any payload and
 * the zone does not fragment.  Everything is linked by 32-bit index; index 0
 * means none, and slot 0 and block 0 are not used.
 *
 * Slots are the truth: a slot whose state is not FREE is whole, at every
 * instruction.  A new slot is filled first and gets its state last; a change
 * writes new blocks first, then is journaled, then copied into the slot.  The
 * hashes, lists, queues, wheel, free lists and gauges only serve to find
 * slots and blocks quickly: they are rebuilt from the slots if a process dies
 * while it holds the lock (ngx_mcp_recover.c).  What was counted is known
 * nowhere else, and stays.
 *
 * The lock is the slab pool's mutex, because that is the one which the master
 * process releases when a worker process dies.
 */


#ifndef _NGX_MCP_TABLE_TYPES_H_INCLUDED_
#define _NGX_MCP_TABLE_TYPES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_key.h"
#include "ngx_mcp_payload.h"
#include "ngx_mcp_stats_types.h"
#include "ngx_mcp_hold.h"


#define NGX_MCP_MAGIC         0x6d63707461736b73ULL
#define NGX_MCP_LAYOUT        9

#define NGX_MCP_BLOCK_SIZE    128
#define NGX_MCP_BLOCK_DATA  (NGX_MCP_BLOCK_SIZE - sizeof(uint32_t))

#define NGX_MCP_ORDER_LEVELS  3

/* places for processes; each has a bit of 64, which some have to share */
#define NGX_MCP_PROCESSES     256

/* tasks that a session may be behind with its news */
#define NGX_MCP_SESSION_CHANGES  256

#define NGX_MCP_WHEEL_LEVELS  7
#define NGX_MCP_WHEEL_SLOTS   64

/* without max_tasks a zone has a slot for so many of its bytes */
#define NGX_MCP_BYTES_PER_TASK  2048

#define NGX_MCP_MIN_TASKS     8
#define NGX_MCP_SESSIONS      256
#define NGX_MCP_SESSION_SET   8

/* what is counted by tool and by worker, and the part of a zone it may take */
#define NGX_MCP_STAT_WORKERS  64
#define NGX_MCP_TOOLS_PART    24
#define NGX_MCP_WORKERS_PART  128

/* bytes of a zone's header that belong to its store */
#define NGX_MCP_STORE_AREA    256


typedef struct {
    uint32_t  next;
    u_char    data[NGX_MCP_BLOCK_DATA];
} ngx_mcp_block_t;


/*
 * A chain is a ring that is known by its last block: a whole chain is then
 * freed in one step, however long it is.
 */

typedef struct {
    uint32_t  last;
    uint32_t  len;               /* bytes, 0: no chain */
} ngx_mcp_chain_t;


/* what changes during a task's life: this is what is journaled */

typedef struct {
    ngx_mcp_task_t   task;
    ngx_mcp_chain_t  payload[NGX_MCP_PAYLOADS];
    uint64_t         revision;          /* how many writes */
    uint64_t         queue_seq;         /* place in the queue */

    /* its place in the order of all changes: of the last one, of the last of
     * its status, and of the last to bring progress beyond any before */
    uint64_t         changed;
    uint64_t         turned;
    uint64_t         moved;
    double           peak;
} ngx_mcp_body_t;


typedef struct {
    uint32_t  prev;
    uint32_t  next;
} ngx_mcp_link_t;


typedef struct {
    ngx_mcp_id_t    id;
    uint64_t        seq;               /* order of creation */
    uint32_t        owner;             /* name */
    uint32_t        tool;              /* name */
    uint32_t        token;             /* name, 0: none */
    uint32_t        session;           /* name, 0: none */

    ngx_mcp_body_t  body;

    /* who waits; not the truth, see ngx_mcp_signal.h */

    uint64_t        waiters;           /* processes to tell */
    uint64_t        carrier;           /* stream that asks */
    uint32_t        epoch;             /* of the two counts */
    uint16_t        waiting;           /* requests */
    uint16_t        results;           /* tasks/result of them */

    /* links, rebuilt by recovery */

    uint32_t        hash_next;         /* free list, if free */
    uint32_t        wheel_prev;
    uint32_t        wheel_next;
    uint32_t        queue_prev;
    uint32_t        queue_next;
    ngx_mcp_link_t  by_seq[NGX_MCP_ORDER_LEVELS];
    ngx_mcp_link_t  by_change[NGX_MCP_ORDER_LEVELS];
    ngx_mcp_link_t  changes;           /* of the session, or of those
                                          that are not announced */
    ngx_mcp_link_t  recent;            /* of all by change */
    uint16_t        bucket;            /* of the wheel + 1 */
    uint8_t         queued:1;          /* is in its queue */
    uint8_t         written:7;         /* payloads, since a store
                                          has taken them */
    uint8_t         method_len;        /* heads params' chain */
} ngx_mcp_slot_t;


typedef struct {
    uint32_t  head;
    uint32_t  tail;
} ngx_mcp_queue_t;


/* an owner's tasks, newest first: by creation, and by their last change */

typedef struct {
    uint32_t  by_seq[NGX_MCP_ORDER_LEVELS];
    uint32_t  by_change[NGX_MCP_ORDER_LEVELS];
} ngx_mcp_owned_t;


/* a session's tasks that its client knows of, the last changed first */

typedef struct {
    uint64_t  delivered;         /* changes up to here */
    uint64_t  stream;            /* that tells them */
    uint32_t  changes;
    uint32_t  behind;            /* tasks changed since */
    uint32_t  opened;            /* when the stream was */
    uint32_t  epoch;             /* deaths known of */
} ngx_mcp_delivery_t;


#define NGX_MCP_NAME_INLINE  64

typedef struct {
    uint32_t  next;              /* in the hash */
    uint32_t  tasks;
    uint64_t  bytes;             /* of their payloads */
    uint32_t  hash;
    uint32_t  rest;              /* last block, see chain */
    uint16_t  len;
    uint8_t   kind;
    uint8_t   stat;              /* entry, of a tool */
    uint32_t  running;           /* calls, of a tool */

    union {
        ngx_mcp_owned_t     owned;
        ngx_mcp_delivery_t  delivery;
        /* a tool's tasks that may be claimed, oldest first */
        ngx_mcp_queue_t     queue[NGX_MCP_PRIORITIES];
        /* the newest of the tasks with this token */
        uint32_t            task;
    } u;

    u_char    data[NGX_MCP_NAME_INLINE];
} ngx_mcp_name_t;


typedef struct {
    uint64_t  base;              /* swept up to here */
    uint64_t  map[NGX_MCP_WHEEL_LEVELS];
    uint32_t  head[NGX_MCP_WHEEL_LEVELS * NGX_MCP_WHEEL_SLOTS];
} ngx_mcp_wheel_t;


/* something happened that processes wait for: which ones, and what it was */

typedef struct {
    uint64_t  processes;
    uint64_t  key;
} ngx_mcp_signal_t;


/* slots or blocks: the freed ones, then those never used before */

typedef struct {
    uint32_t  free;
    uint32_t  fresh;
    uint32_t  end;
    uint32_t  used;
} ngx_mcp_freelist_t;


typedef struct {
    uint64_t              magic;
    uint32_t              layout;
    uint32_t              slot_size;
    uint64_t              size;              /* of all this */
    uint64_t              max_tasks;         /* as configured */

    volatile uint32_t     dirty;             /* pid that changes it */

    /* a change that is decided: copied into the slot, again if need be */
    volatile uint32_t     journal;           /* slot */
    ngx_mcp_body_t        change;

    /* ms, an odd number: since when somebody has the lock; 0: nobody has */
    volatile uint32_t     locked;

    uint64_t              seq;
    uint64_t              secret[2];

    ngx_mcp_freelist_t    slot;
    ngx_mcp_freelist_t    block;
    uint32_t              hash_mask;
    uint32_t              name_mask;

    uint32_t              states[NGX_MCP_STATES];
    uint32_t              names[NGX_MCP_NAMES];
    uint64_t              bytes;
    uint32_t              recent;            /* task changed last */

    /* calls that processes of ours run or will run, and how many run now */
    ngx_mcp_queue_t       held;
    uint32_t              holding;
    uint32_t              running;

    ngx_mcp_wheel_t       wheel;

    ngx_mcp_counters_t       count;
    ngx_mcp_task_counters_t  task_counters;
    uint32_t                 tool_stats;     /* entries in use */
    uint32_t                 tool_stats_end;
    uint32_t                 worker_stats;
    uint32_t                 worker_stats_end;
    uint32_t                 tool_hash[NGX_MCP_STAT_TOOLS];
    uint32_t                 worker_hash[NGX_MCP_STAT_WORKERS];
    volatile uint32_t        drains;         /* of workers, so far */

    /*
     * signals, in a ring of which logged is the end; that is read without the
     * lock, so it must not be split between cache lines
     */
    volatile uint64_t     logged __attribute__((aligned(8)));
    uint64_t              log_mask;
    uint64_t              awaited[NGX_MCP_KEYS];

    /* how many processes have had each of the places */
    uint32_t              incarnations[NGX_MCP_PROCESSES];
    ngx_mcp_present_t     present[NGX_MCP_PROCESSES];

    /* streams of sessions that were opened */
    uint32_t              opened;

    /* requests that wait; the counts of another epoch hold no more */
    uint32_t              epoch;
    uint32_t              waiting;

    /* tasks of sessions that are not announced, the newest first */
    uint32_t              unannounced;

    /* the epoch whose dead have left neither calls nor any of these */
    uint32_t              orphaned;

    /* sessions that were ended: their seals, in sets */
    volatile uint64_t     ended[NGX_MCP_SESSIONS];

    /* the process that sweeps, and when it means to */
    uint64_t              sweeper;
    uint64_t              sweep_at;

    /* a store: its figures, and what it keeps here for itself */
    ngx_mcp_store_stat_t  disk;
    u_char                store[NGX_MCP_STORE_AREA]
                              __attribute__((aligned(8)));

#if (NGX_MCP_TEST)
    ngx_mcp_hold_t        hold;
#endif
} ngx_mcp_header_t;


/* a process's way into the zone */

typedef struct ngx_mcp_table_s  ngx_mcp_table_t;

typedef void (*ngx_mcp_wake_pt)(ngx_mcp_table_t *t, uint64_t processes);
typedef void (*ngx_mcp_stuck_pt)(ngx_mcp_table_t *t, ngx_pid_t holder,
    uint64_t waited);


/*
 * Persistence: a store that keeps a copy of the zone has to know what happens
 * to tasks, and gives these functions to the table.  All are called under the
 * lock.
 */

typedef struct {
    /* a task is the first in the list of changes; or leaves its place there */
    void         (*put)(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
    void         (*take)(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

    /* a task is removed: its slot is kept until the store frees it */
    void         (*removed)(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

    /* before the lock is given back: there may have been changes */
    void         (*notify)(ngx_mcp_table_t *t);

    /* whether a change is saved */
    ngx_uint_t   (*saved)(ngx_mcp_table_t *t, uint64_t changed);

    /* before the table is rebuilt; and after that, with the slots that are
     * kept, in the order of their last changes */
    void         (*reset)(ngx_mcp_table_t *t);
    void         (*restore)(ngx_mcp_table_t *t, uint32_t removed);

    /* NULL, or what is wrong */
    const char  *(*check)(ngx_mcp_table_t *t);
} ngx_mcp_persist_t;


struct ngx_mcp_table_s {
    ngx_slab_pool_t        *shpool;
    ngx_mcp_header_t       *sh;
    uint32_t               *hash;
    uint32_t               *names;
    ngx_mcp_signal_t       *log;
    ngx_mcp_tool_stat_t    *tool_stats;
    ngx_mcp_worker_stat_t  *worker_stats;
    ngx_mcp_slot_t         *slots;
    uint64_t               *map;              /* scratch, a bit a block */
    ngx_mcp_block_t        *blocks;
    ngx_uint_t              recovered;        /* by us, not logged yet */

    uint64_t                self;             /* our bit; 0: none */
    uint64_t                wake;             /* to do, once unlocked */
    ngx_mcp_wake_pt         woken;            /* does it; may be NULL */
    ngx_mcp_stuck_pt        stuck;            /* for long; may be NULL */
    ngx_mcp_persist_t      *persist;          /* NULL: no store */
};


typedef struct {
    uint32_t  tasks;
    uint32_t  blocks;
    uint32_t  hash_size;
    uint32_t  name_size;
    uint32_t  log_size;
    uint32_t  tool_stats;
    uint32_t  worker_stats;
    size_t    hash;              /* offsets */
    size_t    names;
    size_t    log;
    size_t    tool_stat;
    size_t    worker_stat;
    size_t    slots;
    size_t    map;
    size_t    block;
    size_t    size;
} ngx_mcp_layout_t;


#endif /* _NGX_MCP_TABLE_TYPES_H_INCLUDED_ */
