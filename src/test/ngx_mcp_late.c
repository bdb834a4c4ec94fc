
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Test build only: "store=late:MS", a store in shared memory that delays each
 * operation, and then its answer, like a store on another machine.  Operations
 * on one task, or of one waiting request, are done and answered in the order
 * in which they were submitted; otherwise the order is random.  Lookups are
 * answered at once, and only for what is pinned.
 *
 * With "store=late:MS,drop" some requests end while an operation is pending,
 * as if the client had closed the connection.  With "store=late:MS,drop,fail"
 * some pins and detached changes are refused as well.
 */


#include "ngx_mcp_late.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_http.h"
#include "ngx_mcp_shm.h"
#include "ngx_mcp_wait.h"


#if (NGX_MCP_TEST)


/* queues of pending operations, by the hash of their key */
#define NGX_MCP_LATE_QUEUES  1024

/* counters of pins, by the hash of what is pinned */
#define NGX_MCP_LATE_PINS    65536

/* one of so many operations takes ten times as long */
#define NGX_MCP_LATE_RARE    16

/* with "drop", one of so many requests is ended */
#define NGX_MCP_LATE_DROP    4

/* with "fail", one of so many changes is refused */
#define NGX_MCP_LATE_FAIL    4


/* an operation waits for earlier ones, is delayed, is done, may be answered */

typedef enum {
    NGX_MCP_LATE_QUEUED = 0,
    NGX_MCP_LATE_DOING,
    NGX_MCP_LATE_DONE,
    NGX_MCP_LATE_DUE
} ngx_mcp_late_e;


typedef struct ngx_mcp_late_s  ngx_mcp_late_t;

struct ngx_mcp_late_s {
    ngx_queue_t      queue;
    ngx_event_t      event;
    struct {
        ngx_mcp_late_t  *data;
        ngx_event_t     *read;
        ngx_event_t     *write;
        ngx_socket_t     fd;
    } ident;

    ngx_uint_t       state;
    uint64_t         key;
    ngx_mcp_zone_t  *zone;
    ngx_mcp_op_t    *op;
};


typedef struct {
    ngx_msec_t   delay;
    ngx_uint_t   drop;
    ngx_uint_t   fail;
    ngx_shm_t    shm;
    ngx_queue_t  queues[NGX_MCP_LATE_QUEUES];
    int32_t      pins[NGX_MCP_LATE_PINS];
} ngx_mcp_late_conf_t;


static ngx_int_t ngx_mcp_late_create(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_str_t *argument);
static ngx_int_t ngx_mcp_late_param(ngx_mcp_zone_t *zone, ngx_str_t *arg);
static ngx_int_t ngx_mcp_late_conf(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_array_t *zones);
static ngx_uint_t ngx_mcp_late_same(ngx_mcp_zone_t *zone,
    ngx_mcp_zone_t *other);
static ngx_int_t ngx_mcp_late_init_zone(ngx_mcp_zone_t *zone, ngx_uint_t kept);
static void ngx_mcp_late_init_process(ngx_cycle_t *cycle,
    ngx_mcp_zone_t *zone);
static void ngx_mcp_late_exit_process(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_late_lookup(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
static void ngx_mcp_late_pin(ngx_mcp_zone_t *zone, ngx_mcp_op_pin_t *op);
static int32_t *ngx_mcp_late_pins(ngx_mcp_zone_t *zone, ngx_uint_t kind,
    void *data, size_t len);
static ngx_int_t ngx_mcp_late_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
static uint64_t ngx_mcp_late_key(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
static void ngx_mcp_late_timer(ngx_mcp_late_t *late);
static void ngx_mcp_late_handler(ngx_event_t *ev);
static void ngx_mcp_late_do(ngx_mcp_late_t *late);
static void ngx_mcp_late_answer(ngx_mcp_late_t *late);
static void ngx_mcp_late_end(ngx_mcp_op_t *op);


/* by ngx_mcp_late_away(); an UNPIN is detached, but must not be refused */
#define ngx_mcp_late_affected(op)                                             \
    (((op)->detached && (op)->type != NGX_MCP_OP_UNPIN)                       \
     || (op)->type == NGX_MCP_OP_ATTEMPT || (op)->type == NGX_MCP_OP_PIN)


ngx_uint_t        ngx_mcp_late_pending;

static ngx_str_t  ngx_mcp_late_params[] = { ngx_null_string };


ngx_mcp_store_t  ngx_mcp_late_store = {
    ngx_string("late"),
    ngx_mcp_late_params,
    ngx_mcp_late_create,
    ngx_mcp_late_param,
    ngx_mcp_late_conf,
    ngx_mcp_late_same,
    ngx_mcp_late_init_zone,
    ngx_mcp_late_init_process,
    ngx_mcp_late_exit_process,
    ngx_mcp_late_submit,
    ngx_mcp_late_lookup,
    1,
    0,
    NULL
};


static ngx_int_t
ngx_mcp_late_create(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ngx_str_t *argument)
{
    u_char               *comma;
    ngx_int_t             delay;
    ngx_uint_t            i;
    ngx_mcp_late_conf_t  *lc;

    lc = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_late_conf_t));
    if (lc == NULL) {
        return NGX_ERROR;
    }

    comma = ngx_strlchr(argument->data, argument->data + argument->len, ',');

    if (comma) {
        lc->drop = (ngx_strstr(comma, ",drop") != NULL);
        lc->fail = (ngx_strstr(comma, ",fail") != NULL);
    }

    delay = ngx_atoi(argument->data, comma ? (size_t) (comma - argument->data)
                                           : argument->len);
    if (delay == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid time of a late store \"%V\"", argument);
        return NGX_ERROR;
    }

    lc->delay = delay;

    for (i = 0; i < NGX_MCP_LATE_QUEUES; i++) {
        ngx_queue_init(&lc->queues[i]);
    }

    zone->store_data = lc;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_late_param(ngx_mcp_zone_t *zone, ngx_str_t *arg)
{
    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_late_conf(ngx_conf_t *cf, ngx_mcp_zone_t *zone, ngx_array_t *zones)
{
    return NGX_OK;
}


static ngx_uint_t
ngx_mcp_late_same(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *other)
{
    return 1;
}


static ngx_int_t
ngx_mcp_late_init_zone(ngx_mcp_zone_t *zone, ngx_uint_t kept)
{
    ngx_mcp_late_conf_t  *lc;

    lc = zone->store_data;

    lc->shm.size = (NGX_MCP_OPS + 1) * sizeof(ngx_atomic_t);
    lc->shm.log = ngx_cycle->log;
    ngx_str_set(&lc->shm.name, "late");

    return ngx_shm_alloc(&lc->shm);
}


ngx_atomic_t *
ngx_mcp_late_count(ngx_mcp_zone_t *zone)
{
    ngx_mcp_late_conf_t  *lc;

    lc = zone->store_data;

    return (zone->store == &ngx_mcp_late_store)
           ? (ngx_atomic_t *) lc->shm.addr : NULL;
}


static void
ngx_mcp_late_init_process(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone)
{
    /* void */
}


/* all requests have ended, so no pin may be left */

static void
ngx_mcp_late_exit_process(ngx_mcp_zone_t *zone)
{
    ngx_uint_t            i;
    ngx_mcp_late_conf_t  *lc;

    lc = zone->store_data;

    for (i = 0; ngx_exiting && i < NGX_MCP_LATE_PINS; i++) {
        if (lc->pins[i]) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                          "late store: %D pins are left", lc->pins[i]);
        }
    }
}


/* a lookup of what is not pinned is logged as an alert, and still answered */

static ngx_int_t
ngx_mcp_late_lookup(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    int32_t    *pins;
    ngx_str_t  *name;

    (void) ngx_atomic_fetch_add(&ngx_mcp_late_count(zone)[op->type], 1);

    switch (op->type) {

    case NGX_MCP_OP_GET:
        pins = ngx_mcp_late_pins(zone, NGX_MCP_PIN_TASKS,
                                 &((ngx_mcp_op_get_t *) op)->id,
                                 sizeof(ngx_mcp_id_t));
        break;

    case NGX_MCP_OP_CHANGES:
        name = &((ngx_mcp_op_changes_t *) op)->owner;
        pins = ngx_mcp_late_pins(zone, NGX_MCP_PIN_OWNER, name->data,
                                 name->len);
        break;

    case NGX_MCP_OP_SESSION:
        name = &((ngx_mcp_op_session_t *) op)->session;
        pins = ngx_mcp_late_pins(zone, NGX_MCP_PIN_SESSION, name->data,
                                 name->len);
        break;

    default: /* NGX_MCP_OP_RECENT */
        pins = ngx_mcp_late_pins(zone, NGX_MCP_PIN_ZONE, NULL, 0);
    }

    if (*pins <= 0) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "late store: operation %ui looks at what is not pinned",
                      op->type);
    }

    return ngx_mcp_shm_submit(zone, op);
}


static void
ngx_mcp_late_pin(ngx_mcp_zone_t *zone, ngx_mcp_op_pin_t *op)
{
    int32_t     *pins;
    ngx_uint_t   i, n;

    n = (op->kind == NGX_MCP_PIN_TASKS) ? op->n : 1;

    for (i = 0; i < n; i++) {
        pins = (op->kind == NGX_MCP_PIN_TASKS)
               ? ngx_mcp_late_pins(zone, op->kind, &op->ids[i],
                                   sizeof(ngx_mcp_id_t))
               : ngx_mcp_late_pins(zone, op->kind, op->name.data,
                                   op->name.len);

        *pins += (op->op.type == NGX_MCP_OP_PIN) ? 1 : -1;

        if (*pins < 0) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                          "late store: what is not pinned is unpinned");
        }
    }

    op->held = 1;
}


static int32_t *
ngx_mcp_late_pins(ngx_mcp_zone_t *zone, ngx_uint_t kind, void *data,
    size_t len)
{
    uint64_t              hash;
    ngx_mcp_late_conf_t  *lc;

    lc = zone->store_data;

    hash = len ? ngx_mcp_siphash(zone->secret, data, len) : 0;

    return &lc->pins[ngx_mcp_mix(hash + kind) % NGX_MCP_LATE_PINS];
}


static ngx_int_t
ngx_mcp_late_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    ngx_queue_t          *q, *queue;
    ngx_mcp_late_t       *late, *before;
    ngx_mcp_late_conf_t  *lc;

    lc = zone->store_data;
    before = NULL;

    (void) ngx_atomic_fetch_add(&ngx_mcp_late_count(zone)[op->type], 1);

    if (op->handler == NULL) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "late store: operation %ui has no handler", op->type);
        return NGX_ERROR;
    }

    if (ngx_mcp_late_affected(op)
        && *ngx_mcp_late_away(zone) == NGX_MCP_LATE_NO_MEMORY)
    {
        return NGX_ERROR;
    }

    late = ngx_calloc(sizeof(ngx_mcp_late_t), ngx_cycle->log);
    if (late == NULL) {
        return NGX_ERROR;
    }

    late->zone = zone;
    late->op = op;
    late->key = ngx_mcp_late_key(zone, op);
    late->ident.fd = (ngx_socket_t) -1;
    late->ident.data = late;
    late->event.data = &late->ident;
    late->event.handler = ngx_mcp_late_handler;
    late->event.log = ngx_cycle->log;

    queue = &lc->queues[late->key % NGX_MCP_LATE_QUEUES];

    /* operations with other keys may share the queue */

    for (q = ngx_queue_last(queue);
         q != ngx_queue_sentinel(queue);
         q = ngx_queue_prev(q))
    {
        before = ngx_queue_data(q, ngx_mcp_late_t, queue);

        if (before->key == late->key) {
            break;
        }
    }

    if (q == ngx_queue_sentinel(queue) || before->state >= NGX_MCP_LATE_DONE) {
        late->state = NGX_MCP_LATE_DOING;
        ngx_mcp_late_timer(late);
    }

    ngx_queue_insert_tail(queue, &late->queue);
    ngx_mcp_late_pending++;

    return NGX_AGAIN;
}


/* the task of the operation, or else the waiting request */

static uint64_t
ngx_mcp_late_key(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    ngx_str_t           name;
    ngx_mcp_op_pin_t   *pin;
    ngx_mcp_op_wait_t  *wait;

    name.data = (u_char *) &op;
    name.len = sizeof(ngx_mcp_op_t *);

    switch (op->type) {

    case NGX_MCP_OP_GET:
        name.data = (u_char *) &((ngx_mcp_op_get_t *) op)->id;
        name.len = sizeof(ngx_mcp_id_t);
        break;

    case NGX_MCP_OP_UPDATE:
        name.data = (u_char *) &((ngx_mcp_op_update_t *) op)->id;
        name.len = sizeof(ngx_mcp_id_t);
        break;

    case NGX_MCP_OP_DELETE:
        name.data = (u_char *) &((ngx_mcp_op_delete_t *) op)->id;
        name.len = sizeof(ngx_mcp_id_t);
        break;

    case NGX_MCP_OP_ATTEMPT:
        name.data = (u_char *) &((ngx_mcp_op_attempt_t *) op)->id;
        name.len = sizeof(ngx_mcp_id_t);
        break;

    case NGX_MCP_OP_WAIT:
    case NGX_MCP_OP_LEAVE:
        wait = (ngx_mcp_op_wait_t *) op;

        if (wait->id) {
            name.data = (u_char *) wait->id;
            name.len = sizeof(ngx_mcp_id_t);

        } else if (wait->session.len) {
            name = wait->session;
        }

        break;

    case NGX_MCP_OP_PIN:
    case NGX_MCP_OP_UNPIN:
        pin = (ngx_mcp_op_pin_t *) op;

        if (pin->n) {
            name.data = (u_char *) pin->ids;
            name.len = sizeof(ngx_mcp_id_t);

        } else if (pin->name.len) {
            name = pin->name;
        }

        break;
    }

    return ngx_mcp_siphash(zone->secret, name.data, name.len);
}


static void
ngx_mcp_late_timer(ngx_mcp_late_t *late)
{
    ngx_msec_t            delay;
    ngx_mcp_late_conf_t  *lc;

    lc = late->zone->store_data;
    delay = ngx_random() % (lc->delay + 1);

    if (ngx_random() % NGX_MCP_LATE_RARE == 0) {
        delay *= 10;
    }

    ngx_add_timer(&late->event, delay);
}


static void
ngx_mcp_late_handler(ngx_event_t *ev)
{
    ngx_connection_t  *c;
    ngx_mcp_late_t    *late;

    c = ev->data;
    late = c->data;

    if (late->state == NGX_MCP_LATE_DOING) {
        ngx_mcp_late_do(late);

    } else {
        late->state = NGX_MCP_LATE_DUE;
        ngx_mcp_late_answer(late);
    }
}


/*
 * Does the operation, and starts the delays of its answer and of its
 * successor.
 */

static void
ngx_mcp_late_do(ngx_mcp_late_t *late)
{
    ngx_uint_t            away;
    ngx_queue_t          *q;
    ngx_mcp_op_t         *op;
    ngx_mcp_late_t       *next;
    ngx_mcp_late_conf_t  *lc;

    op = late->op;
    lc = late->zone->store_data;
    away = *ngx_mcp_late_away(late->zone);

    if (lc->fail && (op->detached || op->type == NGX_MCP_OP_PIN)
        && ngx_random() % NGX_MCP_LATE_FAIL == 0)
    {
        op->reason = NGX_MCP_STORE_UNAVAILABLE;

    } else if (ngx_mcp_late_affected(op) && away == NGX_MCP_LATE_AWAY) {
        op->reason = NGX_MCP_STORE_UNAVAILABLE;

    } else if (op->type == NGX_MCP_OP_PIN || op->type == NGX_MCP_OP_UNPIN) {
        ngx_mcp_late_pin(late->zone, (ngx_mcp_op_pin_t *) op);

    } else if (ngx_mcp_shm_submit(late->zone, op) != NGX_OK) {
        op->reason = NGX_MCP_STORE_FAILED;

    } else if (op->type == NGX_MCP_OP_UPDATE && op->detached
               && away == NGX_MCP_LATE_UNSURE)
    {
        op->reason = NGX_MCP_STORE_FAILED;
    }

    late->state = NGX_MCP_LATE_DONE;
    ngx_mcp_late_timer(late);

    for (q = ngx_queue_next(&late->queue);
         q != ngx_queue_sentinel(&lc->queues[late->key % NGX_MCP_LATE_QUEUES]);
         q = ngx_queue_next(q))
    {
        next = ngx_queue_data(q, ngx_mcp_late_t, queue);

        if (next->key == late->key) {
            next->state = NGX_MCP_LATE_DOING;
            ngx_mcp_late_timer(next);
            break;
        }
    }

    if (lc->drop && ngx_random() % NGX_MCP_LATE_DROP == 0) {
        ngx_mcp_late_end(op);
    }
}


/*
 * Answers the operation, and then those that were due before but waited for
 * it.
 */

static void
ngx_mcp_late_answer(ngx_mcp_late_t *late)
{
    uint64_t              key;
    ngx_queue_t          *q, *queue;
    ngx_mcp_op_t         *op;
    ngx_mcp_late_conf_t  *lc;

    lc = late->zone->store_data;
    key = late->key;
    queue = &lc->queues[key % NGX_MCP_LATE_QUEUES];

    for ( ;; ) {

        for (q = ngx_queue_head(queue);
             q != ngx_queue_sentinel(queue);
             q = ngx_queue_next(q))
        {
            late = ngx_queue_data(q, ngx_mcp_late_t, queue);

            if (late->key == key) {
                break;
            }
        }

        if (q == ngx_queue_sentinel(queue) || late->state != NGX_MCP_LATE_DUE) {
            return;
        }

        op = late->op;
        ngx_queue_remove(q);
        ngx_free(late);
        ngx_mcp_late_pending--;

        op->handler(op);
    }
}


/* ends the request as if its client had closed the connection */

static void
ngx_mcp_late_end(ngx_mcp_op_t *op)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ngx_mcp_op_request(op);

    if (r == NULL) {
        r = ngx_mcp_wait_request(op);
    }

    if (r == NULL || r->connection->error) {
        return;
    }

    c = r->connection;

    ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
    ngx_http_run_posted_requests(c);
}


#endif /* NGX_MCP_TEST */
