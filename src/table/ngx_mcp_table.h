
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
 * while it holds the lock (ngx_mcp_recover.c).  What was counted
 * is known nowhere else, and stays.
 *
 * The lock is the slab pool's mutex, because that is the one which the master
 * process releases when a worker process dies.
 */


#ifndef _NGX_MCP_TABLE_H_INCLUDED_
#define _NGX_MCP_TABLE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_reason.h"
#include "ngx_mcp_task.h"
#include "ngx_mcp_id.h"
#include "ngx_mcp_failpoint.h"
#include "ngx_mcp_hold.h"


#define NGX_MCP_MAGIC         0x6d63707461736b73ULL
#define NGX_MCP_LAYOUT        7

#define NGX_MCP_BLOCK_SIZE    128
#define NGX_MCP_BLOCK_DATA                                                    \
    (NGX_MCP_BLOCK_SIZE - sizeof(uint32_t))

#define NGX_MCP_ORDER_LEVELS  3

/* places for processes; each has a bit of 64, which some have to share */
#define NGX_MCP_PROCESSES     256

/* those who wait for an owner, session or tool, by the hash of its name */
#define NGX_MCP_AWAITED       256

/* what else may be awaited, see signal.h */
#define NGX_MCP_KEYS          (NGX_MCP_AWAITED + 2)

/* tasks that a session may be behind with its news */
#define NGX_MCP_SESSION_NEWS  256

#define NGX_MCP_WHEEL_LEVELS  7
#define NGX_MCP_WHEEL_SLOTS   64

/* without max_tasks a zone has a slot for so many of its bytes */
#define NGX_MCP_BYTES_PER_TASK  2048

#define NGX_MCP_MIN_TASKS     8
#define NGX_MCP_SESSIONS      256
#define NGX_MCP_SESSION_SET   8
#define NGX_MCP_MAX_NAME      1024
#define NGX_MCP_MAX_METHOD    255

/* what is counted by tool and by worker, and the part of a zone it may take */
#define NGX_MCP_STAT_TOOLS    128
#define NGX_MCP_STAT_WORKERS  64
#define NGX_MCP_TOOLS_PART    24
#define NGX_MCP_WORKERS_PART  128

/* longer names of tools share an entry; workers have none that are longer */
#define NGX_MCP_STAT_NAME     128
#define NGX_MCP_WORKER_NAME   64

/* why a store on disk failed, with a zero at its end */
#define NGX_MCP_STORE_ERROR   256

/* of a histogram; the last has no bound */
#define NGX_MCP_BUCKETS       12

/* a token fits into the block of a name, after the number of its owner */
#define NGX_MCP_MAX_TOKEN     60

/* numbers that may have been given away, though nothing saved has them */
#define NGX_MCP_LOAD_AHEAD    1000000


/*
 * A process that is killed leaves behind all it stored up to some
 * instruction, so only the compiler has to be kept from reordering.
 */

#define ngx_mcp_barrier()  __asm__ volatile ("" ::: "memory")


/* the exact bytes that a task carries */

typedef enum {
    NGX_MCP_PARAMS = 0,       /* and the history, see there */
    NGX_MCP_METADATA,
    NGX_MCP_MESSAGE,
    NGX_MCP_RESULT,           /* or error, as the flags say */
    NGX_MCP_REQUESTS,
    NGX_MCP_RESPONSES,

    NGX_MCP_PAYLOADS
} ngx_mcp_payload_e;


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
    ngx_mcp_link_t  news;              /* of the session */
    ngx_mcp_link_t  recent;            /* of all by change */
    uint16_t        bucket;            /* of the wheel + 1 */
    uint8_t         queued:1;          /* is in its queue */
    uint8_t         unsaved:7;         /* payloads, see save.h */
    uint8_t         method_len;        /* heads params' chain */
} ngx_mcp_slot_t;


/*
 * An owner, a tool, a progress token of an owner, or a session: lives in a
 * block as long as a task refers to it.
 */

typedef enum {
    NGX_MCP_OWNER = 0,
    NGX_MCP_TOOL,
    NGX_MCP_TOKEN,
    NGX_MCP_SESSION,

    NGX_MCP_NAMES
} ngx_mcp_name_e;


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
    uint64_t  told;              /* changes up to here */
    uint64_t  stream;            /* that tells them */
    uint32_t  news;
    uint32_t  behind;            /* tasks changed since */
    uint32_t  opened;            /* when the stream was */
    uint32_t  epoch;             /* deaths known of */
} ngx_mcp_told_t;


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
        ngx_mcp_owned_t  owned;
        ngx_mcp_told_t   told;
        /* a tool's tasks that may be claimed, oldest first */
        ngx_mcp_queue_t  queue[NGX_MCP_PRIORITIES];
        /* the newest of the tasks with this token */
        uint32_t         task;
    } u;

    u_char    data[NGX_MCP_NAME_INLINE];
} ngx_mcp_name_t;


typedef struct {
    uint64_t  base;              /* swept up to here */
    uint64_t  map[NGX_MCP_WHEEL_LEVELS];
    uint32_t                     head[NGX_MCP_WHEEL_LEVELS
                                      * NGX_MCP_WHEEL_SLOTS];
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
} ngx_mcp_store_t;


/* how long something took: how often up to each bound, and in all */

typedef struct {
    uint64_t  bucket[NGX_MCP_BUCKETS];
    uint64_t  sum;               /* ms */
} ngx_mcp_histogram_t;


/* what became of tasks: of all in the zone, and of those of a tool */

typedef struct {
    uint64_t             created;
    uint64_t             completed;
    uint64_t             failed;
    uint64_t             cancelled;
    uint64_t             lapsed;            /* expired, not ended */
    uint64_t             dropped;           /* deleted, not ended */
    uint64_t             claimed;
    uint64_t             requeued;
    uint64_t             leases_lost;

    /* until claimed; of an attempt, without the time it waits for input */
    ngx_mcp_histogram_t  wait;
    ngx_mcp_histogram_t  run;
} ngx_mcp_fates_t;


typedef struct {
    uint64_t  expired;           /* ended or not */
    uint64_t  deleted;
    uint64_t  stale_leases;
    uint64_t  sweeps;
    uint64_t  swept;
    uint64_t  sweep_lag;         /* ms, of the last */
    uint64_t  sweep_lag_max;
    uint64_t  sweep_batch;       /* tasks of the last */
    uint64_t  recoveries;
    uint64_t  news_dropped;
    uint64_t  signals;
    uint64_t  refused[NGX_MCP_REASONS];
} ngx_mcp_counters_t;


/*
 * Of a tool; outlives its name.  The first entry is for all the tools that
 * have none of their own.
 */

typedef struct {
    ngx_mcp_fates_t  count;

    /* gauges, rebuilt by recovery */
    uint32_t         states[NGX_MCP_STATES];
    uint32_t         running;           /* calls */
    uint32_t         tool;              /* name, 0: none now */

    uint32_t         paused;            /* no task is begun */
    uint16_t         len;
    u_char           name[NGX_MCP_STAT_NAME];
} ngx_mcp_tool_stat_t;


/* of a worker; the one that was not seen for longest makes room for another */

typedef struct {
    uint64_t  seen;              /* monotonic, ms */
    uint64_t  seen_wall;
    uint64_t  claimed;
    uint64_t  completed;
    uint64_t  failed;
    uint32_t  life;              /* how many had it */
    uint32_t  draining;          /* gets no more tasks */
    uint16_t  len;
    u_char    name[NGX_MCP_WORKER_NAME];
} ngx_mcp_worker_stat_t;


/* of a store on disk: how it gets on */

typedef struct {
    uint64_t             up;                /* the last commit did */
    uint64_t             commits;
    uint64_t             rows;
    uint64_t             failures;
    uint64_t             last_wall;         /* when one was made */
    ngx_mcp_histogram_t  time;              /* of commits */
    uint64_t             device;            /* of the database */
    uint64_t             inode;
    uint64_t             sync;              /* as configured last */
    uint64_t             lock_device;       /* of its lock */
    uint64_t             lock_inode;
    u_char               error[NGX_MCP_STORE_ERROR];
} ngx_mcp_store_stat_t;


/* requests of a process; its own affair, until it is dead */

typedef struct {
    uint32_t  waiting;
    uint32_t  streams;
} ngx_mcp_present_t;


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

    uint64_t              seq;
    uint64_t              secret[2];

    ngx_mcp_store_t       slot;
    ngx_mcp_store_t       block;
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

    ngx_mcp_counters_t    count;
    ngx_mcp_fates_t       fates;
    uint32_t              tool_stats;        /* entries in use */
    uint32_t              tool_stats_end;
    uint32_t              worker_stats;
    uint32_t              worker_stats_end;
    uint32_t              tool_hash[NGX_MCP_STAT_TOOLS];
    uint32_t              worker_hash[NGX_MCP_STAT_WORKERS];
    volatile uint32_t     drains;            /* of workers, so far */

    /* signals, in a ring of which logged is the end */
    volatile uint64_t     logged;
    uint64_t              log_mask;
    uint64_t              awaited[NGX_MCP_KEYS];

    /* how many processes have had each of the places */
    uint32_t              lives[NGX_MCP_PROCESSES];
    ngx_mcp_present_t     present[NGX_MCP_PROCESSES];

    /* streams of sessions that were opened */
    uint32_t              opened;

    /* requests that wait; the counts of another epoch hold no more */
    uint32_t              epoch;
    uint32_t              waiting;

    /* the epoch whose dead have left no calls behind */
    uint32_t              orphaned;

    /* sessions that were ended: their seals, in sets */
    volatile uint64_t     ended[NGX_MCP_SESSIONS];

    /* the process that sweeps, and when it means to */
    uint64_t              sweeper;
    uint64_t              sweep_at;

    /*
     * A store on disk: whose tasks these are, 0 if it was not read yet; the
     * changes up to which are saved, NEVER without a store; and those up to
     * which failed to be.
     */
    uint64_t              instance;
    uint64_t              loaded;            /* changes up to this */
    volatile uint64_t     saved;
    volatile uint64_t     failed;
    uint32_t              durable;           /* there is a store */
    uint32_t              rewrite;           /* all is to be saved */
    ngx_atomic_t          writer;            /* pid, 0: none */
    ngx_mcp_store_stat_t  disk;

    /* tasks that are not saved, and the one of them that changed first */
    uint32_t              unsaved;
    uint32_t              oldest;

    /* see _save.h */
    volatile uint64_t     safe;
    uint64_t              mixed;
    uint64_t              settled;
    volatile uint64_t     since;
    uint64_t              since_next;

    /* slots whose rows have to go, by when that was decided */
    ngx_mcp_queue_t       gone;
    uint32_t              ngone;

#if (NGX_MCP_TEST)
    ngx_mcp_hold_t        hold;
#endif
} ngx_mcp_header_t;


/* a process's way into the zone */

typedef struct ngx_mcp_table_s  ngx_mcp_table_t;

typedef void (*ngx_mcp_wake_pt)(ngx_mcp_table_t *t, uint64_t processes);

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


typedef struct {
    ngx_str_t         owner;
    ngx_str_t         tool;
    ngx_str_t         token;             /* empty: none */
    ngx_str_t         session;           /* empty: none */
    ngx_str_t         method;
    ngx_str_t         params;
    ngx_str_t         metadata;
    ngx_str_t         message;
    ngx_str_t         responses;         /* to what it will ask */
    ngx_mcp_policy_t  policy;
    uint64_t          holder;            /* with a route */
    uint64_t          ttl;
    uint64_t          now;
    uint64_t          wall;

    /* limits; 0: none */
    size_t            max_payload;
    uint64_t          max_owner_bytes;
    uint32_t          max_owner_tasks;

    /* made by the caller, before it takes the lock */
    ngx_mcp_id_t      id;
    uint32_t          owner_hash;
    uint32_t          tool_hash;
    uint32_t          session_hash;
} ngx_mcp_new_t;


/* bytes to replace: data NULL keeps what is there, len 0 removes it */

typedef struct {
    ngx_str_t  payload[NGX_MCP_PAYLOADS];
    size_t     max_payload;
    uint64_t   max_owner_bytes;
} ngx_mcp_change_t;


#define ngx_mcp_slot(t, n)   (&(t)->slots[n])
#define ngx_mcp_block(t, n)  (&(t)->blocks[n])
#define ngx_mcp_name(t, n)                                                    \
    ((ngx_mcp_name_t *) &(t)->blocks[n])
/*
 * A slot is five cache lines and a bit, and in a large zone none is cached.
 * Fetching the next one while this one is handled saves most of the wait.
 */

#define ngx_mcp_prefetch(t, n)                                                \
    __builtin_prefetch((u_char *) ngx_mcp_slot(t, n));                        \
    __builtin_prefetch((u_char *) ngx_mcp_slot(t, n) + 64);                   \
    __builtin_prefetch((u_char *) ngx_mcp_slot(t, n) + 128);                  \
    __builtin_prefetch((u_char *) ngx_mcp_slot(t, n) + 192)

/* those that a session would be among, if it was ended */

#define ngx_mcp_ended(t, seal)                                                \
    (&(t)->sh->ended[(seal) % (NGX_MCP_SESSIONS                               \
                               / NGX_MCP_SESSION_SET)                         \
                     * NGX_MCP_SESSION_SET])

#define ngx_mcp_index(t, s)  ((uint32_t) ((s) - (t)->slots))


/*
 * Before the lock is taken, so that it is not held while memory is waited for:
 * what will be needed is fetched.  Others may change it all until then, so
 * nothing that is read here is relied upon.
 */

static ngx_inline void
ngx_mcp_expect(ngx_mcp_table_t *t, ngx_mcp_id_t *id)
{
    uint32_t  n;

    n = t->hash[ngx_mcp_id_hash(id) & t->sh->hash_mask];
    ngx_mcp_prefetch(t, n);
}


/* a new task; the first to use a page has to wait for the kernel to map it */

static ngx_inline void
ngx_mcp_expect_new(ngx_mcp_table_t *t)
{
    uint32_t  n;

    n = t->sh->slot.free ? t->sh->slot.free : t->sh->slot.fresh;

    if (n < t->sh->slot.end) {
        (void) *(volatile u_char *) ngx_mcp_slot(t, n);
        (void) *((volatile u_char *) ngx_mcp_slot(t, n + 1) - 1);
    }

    n = t->sh->block.free ? t->sh->block.free : t->sh->block.fresh + 1;

    if (n < t->sh->block.end) {
        (void) *(volatile u_char *) ngx_mcp_block(t, n);
    }
}


ngx_int_t ngx_mcp_table_layout(ngx_mcp_layout_t *l, size_t size,
    uint64_t max_tasks);
size_t ngx_mcp_table_usable(size_t size);
ngx_int_t ngx_mcp_table_create(ngx_mcp_table_t *t, ngx_slab_pool_t *shpool,
    uint64_t max_tasks);
void ngx_mcp_table_attach(ngx_mcp_table_t *t, ngx_slab_pool_t *shpool);

void ngx_mcp_lock(ngx_mcp_table_t *t);
void ngx_mcp_lock_read(ngx_mcp_table_t *t);
void ngx_mcp_unlock(ngx_mcp_table_t *t);

ngx_mcp_slot_t *ngx_mcp_find_locked(ngx_mcp_table_t *t, ngx_mcp_id_t *id,
    ngx_str_t *owner, uint64_t now);
ngx_mcp_slot_t *ngx_mcp_find_token_locked(ngx_mcp_table_t *t, ngx_str_t *owner,
    ngx_str_t *token, uint64_t now);
ngx_uint_t ngx_mcp_new_locked(ngx_mcp_table_t *t, ngx_mcp_new_t *nt,
    ngx_mcp_slot_t **slot);
ngx_uint_t ngx_mcp_change_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev, ngx_mcp_change_t *change);
uint32_t ngx_mcp_slot_alloc_locked(ngx_mcp_table_t *t);
uint32_t ngx_mcp_token_locked(ngx_mcp_table_t *t, uint32_t owner,
    ngx_str_t *token, ngx_uint_t create);
void ngx_mcp_remove_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
uint64_t ngx_mcp_bytes(ngx_mcp_slot_t *s);
void ngx_mcp_link_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_touch_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);


#endif /* _NGX_MCP_TABLE_H_INCLUDED_ */
