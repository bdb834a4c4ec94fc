
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The task table: the layout of a zone's shared memory.
 *
 * The zone is divided once, when it is created:
 *
 *   slab pool | header | id hash | name hash | log | statistics | slots |
 *   block map | blocks
 *
 * A slot is one task.  Data of variable size (params, result, names) is in
 * blocks of one size, so that any free block serves any payload and the zone
 * does not fragment.  All links are 32-bit indexes; index 0 means none, and
 * slot 0 and block 0 are not used.
 *
 * The slots are authoritative: a slot whose state is not FREE, together with
 * the journal, is complete at every instruction.  A new slot is filled first
 * and gets its state last; a change writes new blocks first, then is
 * journaled, then copied into the slot.  The hashes, lists, queues, wheel,
 * free lists and gauges are derived: if a process dies while it holds the
 * lock, they are rebuilt from the slots (ngx_mcp_recover.c).  Counters cannot
 * be rebuilt and are kept.
 *
 * The lock is the slab pool's mutex, because the master process releases this
 * one when a worker process dies.  Functions named *_locked need it.
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
#define NGX_MCP_LAYOUT        10

#define NGX_MCP_BLOCK_SIZE    128
#define NGX_MCP_BLOCK_DATA  (NGX_MCP_BLOCK_SIZE - sizeof(uint32_t))

#define NGX_MCP_ORDER_LEVELS  3

/* places for processes; place n has bit n % 64 in sets of processes */
#define NGX_MCP_PROCESSES     256

/* undelivered changes that are kept for a session */
#define NGX_MCP_SESSION_CHANGES  256

#define NGX_MCP_WHEEL_LEVELS  7
#define NGX_MCP_WHEEL_SLOTS   64

/* without max_tasks a zone has one slot per so many bytes */
#define NGX_MCP_BYTES_PER_TASK  2048

#define NGX_MCP_MIN_TASKS     8
#define NGX_MCP_SESSIONS      256
#define NGX_MCP_SESSION_SET   8

/* statistics of workers and tools: entries, and 1/n of a zone at most */
#define NGX_MCP_STAT_WORKERS  64
#define NGX_MCP_TOOLS_PART    24
#define NGX_MCP_WORKERS_PART  128

/* bytes of a zone's header that its store uses */
#define NGX_MCP_STORE_AREA    256


typedef struct {
    uint32_t  next;
    u_char    data[NGX_MCP_BLOCK_DATA];
} ngx_mcp_block_t;


/*
 * A chain is a ring of blocks.  It is referred to by its last block, so that a
 * chain of any length is freed in one step.
 */

typedef struct {
    uint32_t  last;              /* block, 0: no chain */
    uint32_t  len;               /* bytes, 0: no chain */
} ngx_mcp_chain_t;


/* the part of a slot that changes after its creation; it is journaled */

typedef struct {
    ngx_mcp_task_t   task;
    ngx_mcp_chain_t  payload[NGX_MCP_PAYLOADS];
    uint64_t         revision;          /* number of writes */
    uint64_t         queue_seq;         /* order in the queue */

    /* numbers in the order of all changes of the zone; 0: none yet */
    uint64_t         changed;           /* of the last change */
    uint64_t         turned;            /* of status or message */
    uint64_t         moved;             /* to a new highest progress */
    double           peak;              /* that progress; -1: none */
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

    /* what waits for the task; not authoritative, see ngx_mcp_signal.h */

    uint64_t        waiters;           /* processes to signal, as bits */
    uint64_t        pinned;            /* of a mirror: processes that need
                                          the copy, as bits */
    uint64_t        asker;           /* stream that sent the questions;
                                          0: none */
    uint32_t        epoch;             /* in which the counts are valid */
    uint16_t        waiting;           /* requests that wait */
    uint16_t        results;           /* tasks/result among them */

    /* links, rebuilt by recovery */

    uint32_t        hash_next;         /* or next free slot */
    uint32_t        wheel_prev;
    uint32_t        wheel_next;
    uint32_t        queue_prev;
    uint32_t        queue_next;
    ngx_mcp_link_t  by_seq[NGX_MCP_ORDER_LEVELS];
    ngx_mcp_link_t  by_change[NGX_MCP_ORDER_LEVELS];
    ngx_mcp_link_t  changes;           /* in the session's list, or in
                                          that of unannounced tasks */
    ngx_mcp_link_t  recent;            /* in the zone's list by change */
    uint16_t        bucket;            /* of the wheel, + 1; 0: none */
    uint8_t         queued:1;          /* is in its queue */
    uint8_t         written:7;         /* payloads not saved yet, as bits */
    uint8_t         method_len;        /* bytes before the params */
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


/* a session's announced tasks, the last changed first */

typedef struct {
    uint64_t  delivered;         /* the last change delivered */
    uint64_t  stream;            /* that delivers; 0: none */
    uint32_t  changes;           /* first task of the list */
    uint32_t  undelivered;            /* tasks changed since */
    uint32_t  opened;            /* order of the stream's opening */
    uint32_t  epoch;             /* the last one handled */
} ngx_mcp_delivery_t;


#define NGX_MCP_NAME_INLINE  64

typedef struct {
    uint32_t  next;              /* in the hash */
    uint32_t  tasks;             /* references */
    uint64_t  bytes;             /* of their payloads */
    uint32_t  hash;
    uint32_t  rest;              /* last block of the chain */
    uint16_t  len;
    uint8_t   kind;              /* ngx_mcp_name_e */
    uint8_t   stat;              /* of a tool: its statistics entry */
    uint32_t  running;           /* of a tool: running calls */

    union {
        /* of an owner */
        ngx_mcp_owned_t     owned;
        /* of a session */
        ngx_mcp_delivery_t  delivery;
        /* of a tool: claimable tasks, oldest first */
        ngx_mcp_queue_t     queue[NGX_MCP_PRIORITIES];
        /* of a token: its newest task, 0: that one was removed */
        uint32_t            task;
    } u;

    u_char    data[NGX_MCP_NAME_INLINE];
} ngx_mcp_name_t;


typedef struct {
    uint64_t  base;              /* swept up to here, monotonic, ms */
    uint64_t  map[NGX_MCP_WHEEL_LEVELS];    /* a bit per used bucket */
    uint32_t  head[NGX_MCP_WHEEL_LEVELS * NGX_MCP_WHEEL_SLOTS];
} ngx_mcp_wheel_t;


/* an entry of the log, see ngx_mcp_signal.h */

typedef struct {
    uint64_t  processes;         /* that wait for the key, as bits */
    uint64_t  key;
} ngx_mcp_signal_t;


/* slots or blocks: freed ones are used first, then new ones */

typedef struct {
    uint32_t  free;              /* first freed one, 0: none */
    uint32_t  fresh;             /* first one never used */
    uint32_t  end;               /* number of all, with number 0 */
    uint32_t  used;
} ngx_mcp_freelist_t;


typedef struct {
    uint64_t              magic;
    uint32_t              layout;
    uint32_t              slot_size;
    uint64_t              size;              /* of the table, bytes */
    uint64_t              max_tasks;         /* as configured, 0: unset */

    /* pid of the process that changes the table; 0: none */
    volatile uint32_t     dirty;

    /* the journal: the slot and its next body; recovery copies it again */
    volatile uint32_t     journal;           /* 0: no change pending */
    ngx_mcp_body_t        change;

    /* when the lock was taken, monotonic, ms, made odd; 0: not locked */
    volatile uint32_t     locked;

    uint64_t              seq;               /* of the last change */
    uint64_t              secret[2];         /* key of hashes and seals */

    ngx_mcp_freelist_t    slot;
    ngx_mcp_freelist_t    block;
    uint32_t              hash_mask;
    uint32_t              name_mask;

    uint32_t              states[NGX_MCP_STATES];
    uint32_t              names[NGX_MCP_NAMES];
    uint64_t              bytes;             /* of all payloads */
    uint32_t              recent;            /* task changed last */

    /* background calls that wait or run */
    ngx_mcp_queue_t       held;
    uint32_t              holding;           /* in that queue */
    uint32_t              running;           /* of them */

    ngx_mcp_wheel_t       wheel;

    ngx_mcp_counters_t       count;
    ngx_mcp_task_counters_t  task_counters;
    uint32_t                 tool_stats;     /* entries in use */
    uint32_t                 tool_stats_end;
    uint32_t                 worker_stats;   /* entries in use */
    uint32_t                 worker_stats_end;
    uint32_t                 tool_hash[NGX_MCP_STAT_TOOLS];
    uint32_t                 worker_hash[NGX_MCP_STAT_WORKERS];
    volatile uint32_t        drains;         /* grows when workers drain */

    /*
     * the log is a ring of signals, and logged is their number so far; it is
     * read without the lock, so it must not span cache lines
     */
    volatile uint64_t     logged __attribute__((aligned(8)));
    uint64_t              log_mask;
    uint64_t              awaited[NGX_MCP_KEYS];    /* processes, as bits */

    /* number of processes that have had each place */
    uint32_t              incarnations[NGX_MCP_PROCESSES];
    ngx_mcp_present_t     present[NGX_MCP_PROCESSES];

    /* number of session streams opened so far */
    uint32_t              opened;

    /* grows when processes have died; then all requests count again */
    uint32_t              epoch;
    uint32_t              waiting;           /* requests, this epoch */

    /* tasks of sessions that are not announced, the newest first */
    uint32_t              unannounced;

    /* the last epoch whose orphaned calls and tasks were all handled */
    uint32_t              orphaned;

    /* of a mirror: the slot from which copies are evicted next */
    uint32_t              evict;

    /* the seals of sessions that were ended, in sets; 0: unused */
    volatile uint64_t     ended[NGX_MCP_SESSIONS];

    /* the pid of the sweeper, and its next sweep, monotonic, ms */
    uint64_t              sweeper;
    uint64_t              sweep_at;

    /* of a store: its statistics, and private data */
    ngx_mcp_store_stat_t  disk;
    u_char                store[NGX_MCP_STORE_AREA]
                              __attribute__((aligned(8)));

#if (NGX_MCP_TEST)
    ngx_mcp_hold_t        hold;
#endif
} ngx_mcp_header_t;


/* a table as one process sees it: addresses, and data of the process */

typedef struct ngx_mcp_table_s  ngx_mcp_table_t;

typedef void (*ngx_mcp_wake_pt)(ngx_mcp_table_t *t, uint64_t processes);
typedef void (*ngx_mcp_stuck_pt)(ngx_mcp_table_t *t, ngx_pid_t holder,
    uint64_t waited);


/*
 * Persistence: hooks of a store that keeps a copy of the zone.  All are called
 * with the lock held.
 */

typedef struct {
    /* a changed task was inserted at the front of the zone's list by change */
    void         (*put)(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

    /* a task is about to leave that list */
    void         (*take)(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

    /* a task was removed; the store frees its slot later */
    void         (*removed)(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

    /* before the lock is released, if there may have been changes */
    void         (*notify)(ngx_mcp_table_t *t);

    /* whether a change is saved */
    ngx_uint_t   (*saved)(ngx_mcp_table_t *t, uint64_t changed);

    /* before the table is rebuilt */
    void         (*reset)(ngx_mcp_table_t *t);

    /* after it was rebuilt: the slots of removed tasks, linked by hash_next
     * in the order of their last changes */
    void         (*restore)(ngx_mcp_table_t *t, uint32_t removed);

    /* the violated invariant, or NULL */
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
    uint64_t               *map;              /* scratch, a bit per block */
    ngx_mcp_block_t        *blocks;
    ngx_uint_t              recovered;        /* recoveries not logged yet */

    uint64_t                self;             /* bit of this process;
                                                 0: no place */
    uint64_t                wake;             /* processes to wake after
                                                 the unlock, as bits */
    ngx_mcp_wake_pt         woken;            /* wakes them; or NULL */
    ngx_mcp_stuck_pt        stuck;            /* on a long wait for the
                                                 lock; or NULL */
    ngx_mcp_persist_t      *persist;          /* NULL: no store */
    ngx_uint_t              mirror;           /* 1: a copy of tasks that a
                                                 store has, with its
                                                 revisions */
};


/* the division of a zone: numbers of entries, then offsets in bytes */

typedef struct {
    uint32_t  tasks;
    uint32_t  blocks;
    uint32_t  hash_size;
    uint32_t  name_size;
    uint32_t  log_size;
    uint32_t  tool_stats;
    uint32_t  worker_stats;
    size_t    hash;
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
