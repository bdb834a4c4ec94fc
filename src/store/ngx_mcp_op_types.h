
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Operations: the only interface to tasks, for surfaces, jobs and timers.
 *
 * The caller fills in a struct and submits it.  NGX_OK: the operation is done,
 * reason says whether it was refused, and the results are filled in.
 * NGX_AGAIN: the handler is called when it is done.  NGX_ERROR: there was no
 * memory outside of the zone, and nothing has changed.  A store may return any
 * of them for any operation, and callers must handle all.  Until the handler
 * is called, the struct and everything that it refers to belong to the store.
 * Operations on one task are done in the order in which they were submitted.
 *
 * A waiting request looks up its tasks again after each change, and cannot
 * wait for the store each time.  It first pins what it waits for, which may
 * take time.  Then GET, CHANGES, SESSION and RECENT may also be looked up,
 * which is answered at once from the memory of this machine.
 *
 * In each struct a blank line separates arguments from results.
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

/* tasks examined for one page: if few of them match, the page is short */
#define NGX_MCP_LIST_SCAN     1000

/* an additional bit of states: completed with isError */
#define NGX_MCP_LIST_ERROR    (1u << NGX_MCP_STATES)

/* tasks handled while the lock is held once */
#define NGX_MCP_SWEEP_BATCH   256


/* parts of a task to copy: these, or NGX_MCP_WANT(payload) */

#define NGX_MCP_WANT(payload)   (1u << (payload))
#define NGX_MCP_WANT_OWNER      0x0100
#define NGX_MCP_WANT_TOOL       0x0200
#define NGX_MCP_WANT_TOKEN      0x0400
#define NGX_MCP_WANT_WORKER     0x0800
#define NGX_MCP_WANT_HISTORY    0x1000
#define NGX_MCP_WANT_ALL        0xffff

/* of an update: not even the record is copied */
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
    ngx_uint_t     detached;   /* no response depends on it: it need
                                  not be durable when it is done */
    ngx_pool_t    *pool;
    ngx_mcp_op_pt  handler;
    void          *data;
};


/* a change of the task's state */

typedef struct {
    uint64_t    at;         /* wall clock, ms */
    ngx_uint_t  event;
    ngx_uint_t  state;      /* after the change */
    ngx_uint_t  attempt;
    ngx_str_t   worker;     /* that claimed it; empty: unknown */
} ngx_mcp_view_history_t;


/* a copy of a task */

typedef struct {
    ngx_mcp_id_t             id;
    uint64_t                 seq;      /* order of creation */
    uint64_t                 changed;  /* number of the last change */
    uint64_t                 turned;   /* of the last change of status */
    uint64_t                 moved;    /* of the last higher progress */
    ngx_mcp_task_t           task;
    ngx_uint_t               asks;     /* this stream asks its questions */
    ngx_uint_t               drain;    /* its worker is draining */
    ngx_str_t                owner;
    ngx_str_t                tool;
    ngx_str_t                token;
    ngx_str_t                worker;   /* name of the last one */
    ngx_mcp_view_history_t  *history;  /* oldest first */
    ngx_uint_t               nhistory;
    ngx_uint_t               dropped;  /* older ones; 255: or more */
    ngx_str_t                method;   /* of the call */
    ngx_str_t                payload[NGX_MCP_PAYLOADS];
} ngx_mcp_view_t;


typedef struct {
    ngx_mcp_op_t    op;
    ngx_mcp_new_t   task;       /* the store sets id and times */
    ngx_mcp_id_t   *id;         /* to be used unless a task has it;
                                   NULL, or a task has it: random */

    ngx_mcp_view_t  view;       /* without payloads */
} ngx_mcp_op_create_t;


typedef struct {
    ngx_mcp_op_t    op;
    ngx_mcp_id_t    id;
    ngx_str_t      *owner;      /* NULL: not for a client */
    ngx_uint_t      want;
    ngx_uint_t      watch;      /* wake this process on changes */
    uint64_t        asker;    /* stream to ask questions; 0: none */

    ngx_mcp_view_t  view;
} ngx_mcp_op_get_t;


/* the end of a page: the last task on it, and its slot */

typedef struct {
    uint64_t  seq;        /* 0: no cursor */
    uint64_t  hint;
} ngx_mcp_cursor_t;


typedef struct {
    ngx_mcp_op_t      op;
    ngx_str_t         owner;
    ngx_str_t         tool;       /* empty: any */
    ngx_uint_t        states;     /* bits; 0: any */
    ngx_mcp_cursor_t  after;      /* none: start at the newest */
    ngx_uint_t        limit;
    ngx_uint_t        want;

    ngx_mcp_view_t   *views;
    ngx_uint_t        n;
    ngx_mcp_cursor_t  next;       /* none: this is the last page */
} ngx_mcp_op_list_t;


typedef struct {
    ngx_mcp_op_t     op;
    ngx_str_t       *tools;
    ngx_uint_t       ntools;
    ngx_uint_t       max;        /* number of tasks; 0: one */
    uint32_t         lease_time; /* ms; 0: of the task's policy */
    ngx_str_t        worker;     /* name; empty: unknown */
    ngx_uint_t       want;
    ngx_uint_t       watch;      /* wake this process, if none */

    ngx_mcp_view_t  *views;
    ngx_uint_t       n;
    ngx_uint_t       more;       /* none found yet, try again */
    ngx_uint_t       drain;      /* the worker is draining */
} ngx_mcp_op_claim_t;


/* any event except claims and timeouts, with its payloads */

typedef struct {
    ngx_mcp_op_t      op;
    ngx_mcp_id_t      id;
    ngx_str_t        *owner;      /* NULL: not for a client */
    ngx_str_t         token;      /* progress token, instead of id */
    uint64_t          version;    /* expected; 0: any */
    ngx_mcp_event_t   event;      /* the store sets the times */
    ngx_mcp_change_t  change;
    ngx_uint_t        want;

    ngx_mcp_view_t    view;       /* after the event */
} ngx_mcp_op_update_t;


typedef struct {
    ngx_mcp_op_t  op;
    ngx_mcp_id_t  id;
    ngx_str_t    *owner;
    uint64_t      unsaved;    /* a change: delete only if it is not
                                 saved; 0: delete in any case */
    ngx_uint_t    waiting;    /* delete only if fewer requests wait for
                                 it; 0: delete in any case */

    uint64_t      changed;
} ngx_mcp_op_delete_t;


typedef struct {
    ngx_mcp_op_t  op;
    ngx_uint_t    limit;      /* maximum number of tasks */

    ngx_uint_t    done;
    uint64_t      next;       /* time of the next deadline */
} ngx_mcp_op_sweep_t;


/* counters of a tool */

typedef struct {
    ngx_mcp_tool_stat_t  stat;
    uint64_t             oldest;     /* age of its oldest queued task, ms */
} ngx_mcp_tool_view_t;


typedef struct {
    ngx_mcp_op_t            op;
    ngx_uint_t              detail;     /* include tools and workers */

    ngx_mcp_counters_t       count;
    ngx_mcp_task_counters_t  task_counters;
    uint32_t                 states[NGX_MCP_STATES];
    uint32_t                 owners;
    uint32_t                 tools;
    uint32_t                 sessions;
    uint32_t                 workers;    /* active recently */
    uint64_t                 bytes;
    uint32_t                 slots;
    uint32_t                 slots_used;
    uint32_t                 blocks;
    uint32_t                 blocks_used;
    uint64_t                 sweep_at;
    uint64_t                 lock_held;  /* ms; not 0: no detail */
    uint64_t                 oldest;     /* detail: oldest queued task, ms */
    uint32_t                 waiting;    /* requests, in all processes */
    uint32_t                 streams;    /* of these, event streams */
    uint32_t                 running;
    uint32_t                 unsaved;
    ngx_mcp_store_stat_t     disk;

    /* only with detail */
    ngx_mcp_tool_view_t    *tool_views;
    ngx_uint_t              ntools;
    ngx_mcp_worker_stat_t  *worker_views;
    ngx_uint_t              nworkers;
} ngx_mcp_op_stats_t;


/* a request starts to wait (WAIT), or ends (LEAVE) */

typedef struct {
    ngx_mcp_op_t   op;
    ngx_mcp_id_t  *id;         /* NULL: not for a task */
    ngx_mcp_id_t   task;       /* where id may point to */
    ngx_str_t     *owner;      /* NULL: not for a client */
    ngx_uint_t     max_task;   /* waiters; 0: no limit */
    ngx_uint_t     max_zone;
    ngx_uint_t     result;     /* it waits in tasks/result */
    ngx_uint_t     counted;    /* LEAVE: the WAIT succeeded */
    uint64_t       asker;    /* LEAVE: its stream; 0: none */
    ngx_str_t      session;    /* LEAVE: of its stream */
    ngx_uint_t     ended;      /* LEAVE: wake its streams */
    uint64_t       seal;       /* LEAVE: of an ended session; or 0 */

    uint32_t       epoch;      /* of the WAIT; LEAVE needs it */
} ngx_mcp_op_wait_t;


/* what a waiting request looks up, until it is unpinned */

typedef enum {
    NGX_MCP_PIN_TASKS = 0,
    NGX_MCP_PIN_OWNER,
    NGX_MCP_PIN_SESSION,
    NGX_MCP_PIN_ZONE
} ngx_mcp_pin_e;


typedef struct {
    ngx_mcp_op_t   op;
    ngx_uint_t     kind;
    ngx_mcp_id_t  *ids;        /* PIN_TASKS */
    ngx_uint_t     n;
    ngx_str_t      name;       /* PIN_OWNER, PIN_SESSION */

    ngx_uint_t     held;       /* an UNPIN is required */
} ngx_mcp_op_pin_t;


/* the changed tasks of an owner, earliest change first */

typedef struct {
    ngx_mcp_op_t     op;
    ngx_str_t        owner;
    /* the operation advances after and hint to the last task returned */
    uint64_t         after;      /* number of a change; 0: all */
    uint64_t         hint;       /* slot of it; 0: unknown */
    ngx_uint_t       limit;
    ngx_uint_t       want;
    ngx_uint_t       watch;

    ngx_mcp_view_t  *views;
    ngx_uint_t       n;
    ngx_uint_t       more;       /* call again */
} ngx_mcp_op_changes_t;


/*
 * The changed tasks of a session.  The zone stores which changes were
 * delivered.  The stream that was opened last delivers them; earlier ones are
 * silent.
 */

typedef struct {
    ngx_mcp_op_t     op;
    ngx_str_t        session;
    uint64_t         stream;     /* that delivers */
    uint32_t         opened;     /* its order; 0: opened now */
    uint64_t         after;      /* client has up to; 0: unknown */
    ngx_uint_t       mute;       /* 1: the client cannot be asked */
    ngx_uint_t       limit;
    ngx_uint_t       want;
    ngx_uint_t       watch;

    ngx_uint_t       silent;     /* another stream delivers */
    uint64_t         delivered;  /* the last change before these */
    ngx_mcp_view_t  *views;
    ngx_uint_t       n;
} ngx_mcp_op_session_t;


/* starts a background call that this process holds, if the limits allow it */

typedef struct {
    ngx_mcp_op_t    op;
    ngx_mcp_id_t    id;
    uint64_t        holder;
    uint32_t        max_zone;   /* running calls; 0: no limit */
    uint32_t        max_tool;

    ngx_mcp_view_t  view;       /* without payloads */
} ngx_mcp_op_attempt_t;


/*
 * Takes over from processes that died: calls, of which the views are those
 * that the holder may run again, and tasks that were not announced yet.
 */

typedef struct {
    ngx_mcp_op_t     op;
    uint64_t         holder;
    ngx_uint_t       limit;
    ngx_uint_t       want;

    ngx_mcp_view_t  *views;
    ngx_uint_t       n;
    ngx_uint_t       more;       /* call again */
} ngx_mcp_op_orphans_t;


/* which tasks of the zone; times are of the wall clock, in ms */

typedef struct {
    ngx_str_t  *owner;      /* NULL: any */
    ngx_str_t   tool;       /* empty: any */
    ngx_uint_t  states;     /* bits; 0: any */
    uint64_t    from;       /* created then or later */
    uint64_t    to;         /* created then or earlier; 0: any */
} ngx_mcp_criteria_t;


/*
 * Tasks of all owners, for the console: the last changed first, or as changes
 * the earliest change after a known one.
 */

typedef struct {
    ngx_mcp_op_t        op;
    ngx_mcp_criteria_t  criteria;
    ngx_uint_t          changes;
    ngx_mcp_cursor_t    after;    /* seq is a change; none: from the
                                     last change, or from now on */
    ngx_uint_t          limit;
    ngx_uint_t          want;
    ngx_uint_t          watch;

    ngx_mcp_view_t   *views;
    ngx_uint_t        n;
    ngx_mcp_cursor_t  next;       /* page: none, if this is the last
                                     one */
    ngx_uint_t        more;       /* changes: call again */
    ngx_uint_t        lost;       /* too many changes since after */
} ngx_mcp_op_recent_t;


/* pauses a tool (PAUSE) or drains a worker (DRAIN), or ends that */

typedef struct {
    ngx_mcp_op_t  op;
    ngx_str_t     name;
    ngx_uint_t    on;         /* 0: resume */
} ngx_mcp_op_control_t;


#endif /* _NGX_MCP_OP_TYPES_H_INCLUDED_ */
