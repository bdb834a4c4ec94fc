
/*
 * Operations: the only way to a task, for surfaces, executors and timers.
 *
 * The caller fills in a struct and submits it.  NGX_OK: done, reason says
 * whether it was refused, and the results are filled in.  NGX_AGAIN: the
 * handler will be called when it is.  NGX_ERROR: it was not done, for lack of
 * memory outside of the zone, and nothing has changed.  Which of them a store
 * answers is its own affair; nothing may rely on it.  Until the handler is
 * called the struct, and everything it refers to, belongs to the store.
 * Operations on one task are done in the order in which they were submitted.
 *
 * A request that waits looks again and again, and cannot wait for each of its
 * looks.  It pins what it waits for first, which may take its time: from then
 * on GET, NEWS, SESSION and RECENT may also be looked up, which is answered at
 * once from the memory of this machine.
 */


#ifndef _NGX_MCP_OP_TYPES_H_INCLUDED_
#define _NGX_MCP_OP_TYPES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_payload.h"
#include "ngx_mcp_stats_types.h"


#define NGX_MCP_LIST_MAX      100
#define NGX_MCP_CLAIM_TOOLS   64
#define NGX_MCP_CURSOR_LEN    64

/* tasks looked at for one page: a filter that matches little ends it early */
#define NGX_MCP_LIST_SCAN     1000

/* beside the bits of states: completed, with a tool that says isError */
#define NGX_MCP_LIST_ERROR    (1u << NGX_MCP_STATES)

/* tasks handled in one hold of the lock */
#define NGX_MCP_SWEEP_BATCH   256


/* which bytes of a task are wanted: these, or 1 << ngx_mcp_payload_e */

#define NGX_MCP_WANT(payload)   (1u << (payload))
#define NGX_MCP_WANT_OWNER      0x0100
#define NGX_MCP_WANT_TOOL       0x0200
#define NGX_MCP_WANT_TOKEN      0x0400
#define NGX_MCP_WANT_WORKER     0x0800
#define NGX_MCP_WANT_HISTORY    0x1000
#define NGX_MCP_WANT_ALL        0xffff

/* of an update: not even the record, since nobody looks at it */
#define NGX_MCP_WANT_NOTHING    0x10000


typedef enum {
    NGX_MCP_OP_CREATE = 0,
    NGX_MCP_OP_GET,
    NGX_MCP_OP_LIST,
    NGX_MCP_OP_CLAIM,
    NGX_MCP_OP_UPDATE,
    NGX_MCP_OP_DELETE,
    NGX_MCP_OP_SWEEP,
    NGX_MCP_OP_STATS,
    NGX_MCP_OP_WAIT,
    NGX_MCP_OP_LEAVE,
    NGX_MCP_OP_CHANGES,
    NGX_MCP_OP_SESSION,
    NGX_MCP_OP_ATTEMPT,
    NGX_MCP_OP_ORPHANS,
    NGX_MCP_OP_RECENT,
    NGX_MCP_OP_PAUSE,
    NGX_MCP_OP_DRAIN,
    NGX_MCP_OP_PIN,
    NGX_MCP_OP_UNPIN,

    NGX_MCP_OPS
} ngx_mcp_op_e;


typedef struct ngx_mcp_op_s    ngx_mcp_op_t;
typedef struct ngx_mcp_zone_s  ngx_mcp_zone_t;

typedef void (*ngx_mcp_op_pt)(ngx_mcp_op_t *op);
typedef ngx_int_t (*ngx_mcp_submit_pt)(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);


struct ngx_mcp_op_s {
    ngx_uint_t     type;
    ngx_uint_t     reason;
    ngx_uint_t     detached;   /* nobody is told: it need not be durable yet */
    ngx_pool_t    *pool;
    ngx_mcp_op_pt  handler;
    void          *data;
};


/* a change of a task's state; what went before is told by others */

typedef struct {
    uint64_t    at;         /* wall clock, ms */
    ngx_uint_t  event;
    ngx_uint_t  state;      /* after it */
    ngx_uint_t  attempt;
    ngx_str_t   worker;     /* of a claim; empty: unknown */
} ngx_mcp_view_history_t;


/* a copy of a task */

typedef struct {
    ngx_mcp_id_t             id;
    uint64_t                 seq;
    uint64_t                 changed;
    uint64_t                 turned;
    uint64_t                 moved;
    ngx_mcp_task_t           task;
    ngx_uint_t               asks;     /* its questions are ours now */
    ngx_uint_t               drain;    /* its worker gets no more */
    ngx_str_t                owner;
    ngx_str_t                tool;
    ngx_str_t                token;
    ngx_str_t                worker;   /* that has or had it */
    ngx_mcp_view_history_t  *history;  /* oldest first */
    ngx_uint_t               nhistory;
    ngx_uint_t               dropped;  /* before these; 255: or more */
    ngx_str_t                method;   /* with the params */
    ngx_str_t                payload[NGX_MCP_PAYLOADS];
} ngx_mcp_view_t;


typedef struct {
    ngx_mcp_op_t    op;
    ngx_mcp_new_t   task;       /* id and times are filled in */

    ngx_mcp_view_t  view;       /* without bytes */
} ngx_mcp_op_create_t;


typedef struct {
    ngx_mcp_op_t    op;
    ngx_mcp_id_t    id;
    ngx_str_t      *owner;      /* NULL: not for a client */
    ngx_uint_t      want;
    ngx_uint_t      watch;      /* tell this process of changes */
    uint64_t        carrier;    /* stream that would ask */

    ngx_mcp_view_t  view;
} ngx_mcp_op_get_t;


/* where a page ended: which task was the last, and where it was kept */

typedef struct {
    uint64_t  seq;        /* 0: none */
    uint64_t  hint;
} ngx_mcp_cursor_t;


typedef struct {
    ngx_mcp_op_t      op;
    ngx_str_t         owner;
    ngx_str_t         tool;       /* empty: any */
    ngx_uint_t        states;     /* a bit each; 0: any */
    ngx_mcp_cursor_t  after;      /* none: from the newest */
    ngx_uint_t        limit;
    ngx_uint_t        want;

    ngx_mcp_view_t   *views;
    ngx_uint_t        n;
    ngx_mcp_cursor_t  next;       /* none: that was all */
} ngx_mcp_op_list_t;


typedef struct {
    ngx_mcp_op_t     op;
    ngx_str_t       *tools;
    ngx_uint_t       ntools;
    ngx_uint_t       max;        /* tasks; 0: one */
    uint32_t         lease_time; /* 0: as the task says */
    ngx_str_t        worker;     /* empty: not known */
    ngx_uint_t       want;
    ngx_uint_t       watch;      /* if there is none */

    ngx_mcp_view_t  *views;
    ngx_uint_t       n;
    ngx_uint_t       more;       /* none was found, but there may be */
    ngx_uint_t       drain;      /* there is none for this one */
} ngx_mcp_op_claim_t;


/* any event but a claim or one of time, with the bytes that come with it */

typedef struct {
    ngx_mcp_op_t      op;
    ngx_mcp_id_t      id;
    ngx_str_t        *owner;      /* NULL: not for a client */
    ngx_str_t         token;      /* of the owner, for the id */
    uint64_t          version;    /* only if still so; 0: any */
    ngx_mcp_event_t   event;      /* times are filled in */
    ngx_mcp_change_t  change;
    ngx_uint_t        want;

    ngx_mcp_view_t    view;       /* after the event */
} ngx_mcp_op_update_t;


typedef struct {
    ngx_mcp_op_t  op;
    ngx_mcp_id_t  id;
    ngx_str_t    *owner;
    uint64_t      unsaved;    /* only if this is; 0: anyway */

    uint64_t      changed;
} ngx_mcp_op_delete_t;


typedef struct {
    ngx_mcp_op_t  op;
    ngx_uint_t    limit;      /* tasks at most */

    ngx_uint_t    done;
    uint64_t      next;       /* when to come back */
} ngx_mcp_op_sweep_t;


/* how a tool or a worker gets on */

typedef struct {
    ngx_mcp_tool_stat_t  stat;
    uint64_t             oldest;     /* ms in the queue */
} ngx_mcp_tool_view_t;


typedef struct {
    ngx_mcp_op_t            op;
    ngx_uint_t              detail;     /* tools and workers, too */

    ngx_mcp_counters_t       count;
    ngx_mcp_task_counters_t  task_counters;
    uint32_t                 states[NGX_MCP_STATES];
    uint32_t                 owners;
    uint32_t                 tools;
    uint32_t                 sessions;
    uint32_t                 workers;    /* seen lately */
    uint64_t                 bytes;
    uint32_t                 slots;
    uint32_t                 slots_used;
    uint32_t                 blocks;
    uint32_t                 blocks_used;
    uint64_t                 sweep_at;
    uint64_t                 lock_held;  /* ms; then that is all */
    uint64_t                 oldest;     /* ms in the queue */
    uint32_t                 waiting;    /* in all processes */
    uint32_t                 streams;    /* of these */
    uint32_t                 running;
    uint32_t                 unsaved;
    ngx_mcp_store_stat_t     disk;

    /* with the detail */
    ngx_mcp_tool_view_t    *tool_views;
    ngx_uint_t              ntools;
    ngx_mcp_worker_stat_t  *worker_views;
    ngx_uint_t              nworkers;
} ngx_mcp_op_stats_t;


/* a request begins to wait, or ceases to */

typedef struct {
    ngx_mcp_op_t   op;
    ngx_mcp_id_t  *id;         /* NULL: for no task */
    ngx_mcp_id_t   task;       /* room for it, where there is no other */
    ngx_str_t     *owner;      /* NULL: not for a client */
    ngx_uint_t     max_task;   /* 0: no limit */
    ngx_uint_t     max_zone;
    ngx_uint_t     result;     /* tasks/result */
    ngx_uint_t     counted;    /* who leaves was */
    uint64_t       carrier;    /* the stream that leaves */
    ngx_str_t      session;    /* that it spoke for */
    ngx_uint_t     ended;      /* so does the session */
    uint64_t       seal;       /* which is known by this */

    uint32_t       epoch;      /* to be kept until it leaves */
} ngx_mcp_op_wait_t;


/* what a request looks at while it waits, and then no longer does */

typedef enum {
    NGX_MCP_PIN_TASKS = 0,
    NGX_MCP_PIN_OWNER,
    NGX_MCP_PIN_SESSION,
    NGX_MCP_PIN_ZONE
} ngx_mcp_pin_e;


typedef struct {
    ngx_mcp_op_t   op;
    ngx_uint_t     kind;
    ngx_mcp_id_t  *ids;        /* of tasks */
    ngx_uint_t     n;
    ngx_str_t      name;       /* of an owner or a session */

    ngx_uint_t     held;       /* until it is unpinned */
} ngx_mcp_op_pin_t;


/* an owner's tasks that changed, the earliest change first */

typedef struct {
    ngx_mcp_op_t     op;
    ngx_str_t        owner;
    uint64_t         after;      /* a change; 0: from the first */
    uint64_t         hint;       /* both go on from the last */
    ngx_uint_t       limit;
    ngx_uint_t       want;
    ngx_uint_t       watch;

    ngx_mcp_view_t  *views;
    ngx_uint_t       n;
    ngx_uint_t       more;       /* there may be */
} ngx_mcp_op_changes_t;


/* the same for a session, which remembers what it was told */

typedef struct {
    ngx_mcp_op_t     op;
    ngx_str_t        session;
    uint64_t         stream;     /* that will tell it */
    uint32_t         opened;     /* when; 0: now */
    uint64_t         after;      /* if opened now; 0: goes on */
    ngx_uint_t       limit;
    ngx_uint_t       want;
    ngx_uint_t       watch;

    ngx_uint_t       silent;     /* another stream speaks */
    uint64_t         delivered;  /* before */
    ngx_mcp_view_t  *views;
    ngx_uint_t       n;
} ngx_mcp_op_session_t;


/* a call that this process has begins, if it may */

typedef struct {
    ngx_mcp_op_t    op;
    ngx_mcp_id_t    id;
    uint64_t        holder;
    uint32_t        max_zone;   /* running at once; 0: any */
    uint32_t        max_tool;

    ngx_mcp_view_t  view;       /* without bytes */
} ngx_mcp_op_attempt_t;


/*
 * What processes that are dead have left: calls, of which those that may be
 * run again are ours now, and tasks that they were to announce
 */

typedef struct {
    ngx_mcp_op_t     op;
    uint64_t         holder;
    ngx_uint_t       limit;
    ngx_uint_t       want;

    ngx_mcp_view_t  *views;
    ngx_uint_t       n;
    ngx_uint_t       more;       /* there may be */
} ngx_mcp_op_orphans_t;


/* which of all tasks in the zone */

typedef struct {
    ngx_str_t  *owner;      /* NULL: any */
    ngx_str_t   tool;       /* empty: any */
    ngx_uint_t  states;     /* a bit each; 0: any */
    uint64_t    from;       /* created then or later, and */
    uint64_t    to;         /* not after; wall clock, ms */
} ngx_mcp_criteria_t;


/*
 * Tasks whosever they are, which is not for clients: those that changed last
 * come first, or, as news, the earliest change after the one that is known.
 */

typedef struct {
    ngx_mcp_op_t        op;
    ngx_mcp_criteria_t  criteria;
    ngx_uint_t          changes;
    ngx_mcp_cursor_t    after;    /* seq is of the change; none:
                                     the last, or from now on */
    ngx_uint_t          limit;
    ngx_uint_t          want;
    ngx_uint_t          watch;

    ngx_mcp_view_t   *views;
    ngx_uint_t        n;
    ngx_mcp_cursor_t  next;       /* of a page: none, if it was
                                     the last one */
    ngx_uint_t        more;       /* news, there may be */
    ngx_uint_t        lost;       /* too much has changed since */
} ngx_mcp_op_recent_t;


/* a tool is paused, or a worker drained; or goes on */

typedef struct {
    ngx_mcp_op_t  op;
    ngx_str_t     name;
    ngx_uint_t    on;         /* 0: goes on */
} ngx_mcp_op_control_t;


#endif /* _NGX_MCP_OP_TYPES_H_INCLUDED_ */
