
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The store "redis": several machines share the tasks of a zone.
 *
 * Redis is the source of truth.  A change reads the task, applies the event
 * with ngx_mcp_record_change(), and writes the result by a script that first
 * compares the revision; if another machine was faster, it starts again.  The
 * zone in shared memory is the mirror of this machine: it has the tasks that
 * requests wait for here, and tasks that have ended, which never change.
 *
 * A machine is known by its seat, a number that is never used twice.  One
 * process of each machine, the listener, receives messages about changes of
 * what is pinned here, and puts the new state into the mirror.  The zone's own
 * signals then wake the waiting requests.
 */


#ifndef _NGX_MCP_REDIS_H_INCLUDED_
#define _NGX_MCP_REDIS_H_INCLUDED_


#include "ngx_mcp_redis_conn.h"
#include "ngx_mcp_redis_record.h"
#include "ngx_mcp_redis_script.h"
#include "ngx_mcp_op.h"
#include "ngx_mcp_store.h"
#include "ngx_mcp_table.h"


/* the version of the data in Redis */
#define NGX_MCP_REDIS_SCHEMA   1

/* queues of pending operations, by the hash of their task */
#define NGX_MCP_REDIS_QUEUES   1024

/* claims of a machine that are remembered, to answer them again */
#define NGX_MCP_REDIS_RING     4096

/* local numbers of changes begin with the seat in the upper bits */
#define NGX_MCP_REDIS_NUMBERS  40


/* in the store's part of the zone's header; all processes of the machine */

typedef struct {
    uint64_t           attached;    /* secret and seat are valid */
    uint64_t           seat;
    int64_t            offset;      /* of store time to the monotonic clock */
    uint64_t           claims;      /* sent so far */
    volatile uint64_t  listener;    /* pid of the listener; 0: none */
    uint64_t           beat;        /* its last sign of life, monotonic, ms */

    /* for the status */
    uint64_t           up;          /* the last state, of any process */
    uint64_t           conflicts;
    uint64_t           messages;
    volatile uint64_t  relooks;     /* grows when messages may be lost */
    uint64_t           resent;
    uint64_t           reconnects;
    uint64_t           hits;        /* ended tasks read from the mirror */
} ngx_mcp_redis_shared_t;


typedef char  ngx_mcp_redis_shared_fits[
    sizeof(ngx_mcp_redis_shared_t) <= NGX_MCP_STORE_AREA ? 1 : -1
];


/* something that requests of this process wait for */

typedef struct {
    ngx_rbtree_node_t  node;       /* by a hash */
    ngx_uint_t         kind;       /* ngx_mcp_pin_e */
    ngx_mcp_id_t       id;
    ngx_str_t          name;
    ngx_uint_t         count;
} ngx_mcp_redis_pin_t;


typedef struct {
    /* configuration */
    ngx_str_t              block;
    ngx_mcp_redis_conf_t  *conf;
    uint64_t               max_tasks;  /* in Redis; 0: no limit */
    ngx_uint_t             recent;     /* 0: the console sees no list */
    unsigned               recent_set:1;

    /* of this process */
    ngx_mcp_zone_t        *zone;
    ngx_mcp_redis_t       *rd;
    ngx_uint_t             opened;     /* partitions that accept scripts */
    ngx_uint_t             opening;
    ngx_msec_t             refused;    /* time of the last refusal; 0: none */
    ngx_uint_t             listening;  /* this process is the listener */
    ngx_uint_t             partition;  /* where a claim was found last */
    ngx_event_t            timer;
    ngx_queue_t            queues[NGX_MCP_REDIS_QUEUES];
    ngx_rbtree_t           pins;
    ngx_rbtree_node_t      sentinel;
    ngx_rbtree_node_t     *relooking;  /* next pin to read again; or NULL */
    uint64_t               relooks;    /* the last one handled */
    ngx_str_t             *channels;
    ngx_uint_t             subscribed;
    ngx_uint_t             beats;      /* without an echo */
    ngx_msec_t             beat;       /* time of the last one */
    ngx_uint_t             sweeping;   /* operations of the sweeper */
    ngx_msec_t             swept;      /* time of the last sweep */
} ngx_mcp_redis_store_t;


typedef struct ngx_mcp_redis_call_s  ngx_mcp_redis_call_t;

/* NGX_OK: done, op->reason is set; NGX_AGAIN; NGX_ERROR: no memory */
typedef ngx_int_t (*ngx_mcp_redis_start_pt)(ngx_mcp_redis_call_t *call);


/* an operation that waits for Redis */

struct ngx_mcp_redis_call_s {
    ngx_mcp_redis_cmd_t      cmd[2];
    ngx_queue_t              queue;      /* in st->queues */
    ngx_mcp_redis_store_t   *st;
    ngx_mcp_op_t            *op;
    ngx_pool_t              *pool;
    ngx_mcp_redis_start_pt   start;      /* begins, or begins again */

    ngx_mcp_id_t             id;         /* of the task */
    ngx_uint_t               partition;
    uint64_t                 key;        /* of the task; 0: of none */
    unsigned                 change:1;   /* others for the task wait for it */
    unsigned                 started:1;
    unsigned                 whole:1;    /* rr has all payloads */
    unsigned                 unsure:1;   /* something may have been done */

    ngx_msec_t               until;      /* no attempt begins after this */
    ngx_uint_t               tries;
    ngx_event_t              timer;
    struct {
        ngx_mcp_redis_call_t  *data;
        ngx_event_t           *read;
        ngx_event_t           *write;
        ngx_socket_t           fd;
    } ident;                             /* debug logs read an fd */

    u_char                   token[NGX_MCP_REDIS_TOKEN];
    ngx_mcp_redis_record_t   rr;         /* the task, as it was read */
    u_char                   expected[8];  /* its revision */
    ngx_str_t                worker;     /* name of the last one */
    void                    *data;       /* of the operation */
};


#define ngx_mcp_redis_of(zone)                                                \
    ((ngx_mcp_redis_store_t *) (zone)->store_data)

#define ngx_mcp_redis_shared(zone)                                            \
    ((ngx_mcp_redis_shared_t *) (zone)->table->sh->store)

/* store time: the time of the Redis server, ms */

#define ngx_mcp_redis_now(zone)                                               \
    ((uint64_t) ((int64_t) ngx_current_msec                                   \
                 + ngx_mcp_redis_shared(zone)->offset))


/* ngx_mcp_redis_store.c */

extern ngx_mcp_store_t  ngx_mcp_redis_store;

/* ngx_mcp_redis_key.c: keys, and arguments of commands */

void ngx_mcp_redis_owner(ngx_mcp_redis_store_t *st, ngx_str_t *owner,
    u_char *hash);
ngx_uint_t ngx_mcp_redis_home(ngx_mcp_redis_store_t *st, ngx_str_t *owner,
    ngx_str_t *session);
ngx_uint_t ngx_mcp_redis_partition_of(ngx_mcp_redis_store_t *st,
    ngx_mcp_id_t *id);

/* text.data is NULL if there is no memory */
ngx_str_t ngx_mcp_redis_key(ngx_mcp_redis_store_t *st, ngx_pool_t *pool,
    ngx_uint_t partition, const char *kind, const void *data, size_t len);
ngx_str_t ngx_mcp_redis_key2(ngx_mcp_redis_store_t *st, ngx_pool_t *pool,
    ngx_uint_t partition, const char *kind, const void *data, size_t len,
    ngx_str_t *more);
ngx_str_t ngx_mcp_redis_number(ngx_pool_t *pool, uint64_t n);
ngx_str_t ngx_mcp_redis_deadline(ngx_pool_t *pool, ngx_mcp_task_t *task,
    uint64_t now, uint64_t store_now);
ngx_str_t ngx_mcp_redis_base(ngx_pool_t *pool, ngx_mcp_task_t *task);
ngx_str_t ngx_mcp_redis_run(ngx_mcp_redis_store_t *st);

/* ngx_mcp_redis_op.c: operations from submit to answer */

ngx_int_t ngx_mcp_redis_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
ngx_int_t ngx_mcp_redis_start(ngx_mcp_redis_call_t *call);
ngx_int_t ngx_mcp_redis_over(ngx_mcp_redis_call_t *call, ngx_uint_t reason);
void ngx_mcp_redis_finish(ngx_mcp_redis_call_t *call, ngx_int_t rc);
ngx_int_t ngx_mcp_redis_again(ngx_mcp_redis_call_t *call, ngx_msec_t delay);
ngx_int_t ngx_mcp_redis_call(ngx_mcp_redis_call_t *call, ngx_uint_t n,
    ngx_uint_t conn, ngx_mcp_redis_reply_pt handler, ngx_str_t *argv,
    ngx_uint_t argc);
ngx_int_t ngx_mcp_redis_eval(ngx_mcp_redis_call_t *call, ngx_uint_t conn,
    ngx_uint_t script, ngx_mcp_redis_reply_pt handler, ngx_str_t *argv,
    ngx_uint_t argc);

/*
 * The first element of a script's reply, an array.  NGX_DECLINED: the call
 * has been finished or begins again.
 */
ngx_int_t ngx_mcp_redis_code(ngx_mcp_redis_call_t *call, redisReply *reply,
    int64_t *code);

/* ngx_mcp_redis_view.c: from replies to copies of tasks */

ngx_int_t ngx_mcp_redis_load(ngx_mcp_redis_call_t *call, redisReply *task,
    redisReply *result, redisReply *others);
ngx_uint_t ngx_mcp_redis_needs_others(ngx_mcp_redis_record_t *rr,
    ngx_uint_t want);
ngx_uint_t ngx_mcp_redis_visible(ngx_mcp_redis_call_t *call,
    ngx_str_t *owner);
ngx_int_t ngx_mcp_redis_view(ngx_mcp_redis_call_t *call, ngx_uint_t want,
    ngx_mcp_view_t *view);
void ngx_mcp_redis_mirror(ngx_mcp_redis_call_t *call);
void ngx_mcp_redis_remember(ngx_mcp_redis_call_t *call);

/* ngx_mcp_redis_read.c */

ngx_int_t ngx_mcp_redis_get(ngx_mcp_redis_call_t *call);
ngx_int_t ngx_mcp_redis_watch_read(ngx_mcp_redis_call_t *call,
    ngx_str_t *fields, ngx_uint_t n, ngx_mcp_redis_reply_pt handler);

/* ngx_mcp_redis_list.c: pages of tasks, and numbers of all tasks */

ngx_int_t ngx_mcp_redis_list(ngx_mcp_redis_call_t *call);
ngx_int_t ngx_mcp_redis_recent(ngx_mcp_redis_call_t *call);

/* ngx_mcp_redis_status.c */

ngx_int_t ngx_mcp_redis_stats(ngx_mcp_redis_call_t *call);

/* ngx_mcp_redis_create.c */

ngx_int_t ngx_mcp_redis_create(ngx_mcp_redis_call_t *call);

/* ngx_mcp_redis_change.c */

ngx_int_t ngx_mcp_redis_update(ngx_mcp_redis_call_t *call);
ngx_int_t ngx_mcp_redis_attempt(ngx_mcp_redis_call_t *call);
ngx_int_t ngx_mcp_redis_delete(ngx_mcp_redis_call_t *call);
ngx_int_t ngx_mcp_redis_due(ngx_mcp_redis_call_t *call);

/* ngx_mcp_redis_claim.c */

ngx_int_t ngx_mcp_redis_claim(ngx_mcp_redis_call_t *call);

/* ngx_mcp_redis_pin.c: what requests of this machine wait for */

ngx_int_t ngx_mcp_redis_lookup(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
ngx_int_t ngx_mcp_redis_wait(ngx_mcp_redis_call_t *call);
ngx_int_t ngx_mcp_redis_pin(ngx_mcp_redis_call_t *call);
ngx_int_t ngx_mcp_redis_unpin(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
void ngx_mcp_redis_message(void *data, ngx_str_t *channel, ngx_str_t *text);
void ngx_mcp_redis_relook(ngx_mcp_redis_store_t *st);

/* ngx_mcp_redis_role.c: attaching, the listener, the sweeper */

void ngx_mcp_redis_process(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone);
void ngx_mcp_redis_exit(ngx_mcp_zone_t *zone);
void ngx_mcp_redis_reopen(ngx_mcp_redis_store_t *st);

/* ngx_mcp_redis_sweep.c */

void ngx_mcp_redis_sweep(ngx_mcp_redis_store_t *st);


#endif /* _NGX_MCP_REDIS_H_INCLUDED_ */
