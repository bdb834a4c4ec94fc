
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * What requests of this machine wait for.
 *
 * Pinning a task registers the seat of this machine in Redis and reads the
 * task, in one step, and puts it into the mirror.  From then on a message
 * announces each change, and the listener reads the task again.  Registrations
 * stay until the task is removed; a machine that no longer listens is taken
 * out by the first message that nobody receives.
 */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_mirror.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_shm.h"
#include "ngx_mcp_signal.h"


#if (NGX_MCP_REDIS)


/* tasks of an owner or a session that are put into the mirror at once */
#define NGX_MCP_REDIS_FILL  1000

/* commands that may be in flight while everything is read again */
#define NGX_MCP_REDIS_PACE  256


/* reading one task, or the ids of a name, on behalf of a pin */

typedef struct ngx_mcp_redis_part_s  ngx_mcp_redis_part_t;

struct ngx_mcp_redis_part_s {
    ngx_mcp_op_t            op;
    ngx_mcp_redis_call_t    call;
    ngx_uint_t              kind;
    ngx_str_t               name;
    ngx_uint_t              pins;       /* the task is pinned, too */
    ngx_mcp_redis_call_t   *parent;     /* NULL: nobody waits for it */
};


typedef struct {
    ngx_uint_t              pending;
    ngx_uint_t              failed;
} ngx_mcp_redis_pinning_t;


static ngx_mcp_redis_pin_t *ngx_mcp_redis_find_pin(ngx_mcp_redis_store_t *st,
    ngx_uint_t kind, ngx_mcp_id_t *id, ngx_str_t *name, ngx_uint_t create);
static void ngx_mcp_redis_drop_pin(ngx_mcp_redis_store_t *st,
    ngx_mcp_redis_pin_t *pin);
static void ngx_mcp_redis_unpinned(ngx_mcp_redis_store_t *st,
    ngx_mcp_op_pin_t *op);
static ngx_int_t ngx_mcp_redis_pin_all(ngx_mcp_redis_call_t *call);
static ngx_int_t ngx_mcp_redis_part(ngx_mcp_redis_store_t *st,
    ngx_mcp_redis_call_t *parent, ngx_mcp_redis_start_pt start,
    ngx_mcp_id_t *id, ngx_uint_t partition, ngx_uint_t kind, ngx_str_t *name,
    ngx_uint_t pins);
static void ngx_mcp_redis_part_done(ngx_mcp_op_t *op);
static void ngx_mcp_redis_pinned(ngx_mcp_redis_call_t *call);
static ngx_int_t ngx_mcp_redis_fetch(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_fetched(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_register(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_registered(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static ngx_str_t ngx_mcp_redis_field(ngx_mcp_redis_call_t *call,
    ngx_uint_t kind, ngx_str_t *name);
static ngx_int_t ngx_mcp_redis_fill(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_filled(ngx_mcp_redis_cmd_t *cmd, redisReply *reply);


/* answered at once, from the memory of this machine */

ngx_int_t
ngx_mcp_redis_lookup(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    uint64_t               seat;
    ngx_mcp_op_changes_t  *changes;

    if (!zone->ready) {
        op->reason = NGX_MCP_STORE_UNAVAILABLE;
        return NGX_OK;
    }

    if (op->type == NGX_MCP_OP_CHANGES) {
        changes = (ngx_mcp_op_changes_t *) op;
        seat = ngx_mcp_redis_shared(zone)->seat;

        /*
         * The number of a change of another machine means nothing here: the
         * client receives all tasks again, so that it misses none.
         */

        if (changes->after >> NGX_MCP_REDIS_NUMBERS
            != (seat & ((1 << (52 - NGX_MCP_REDIS_NUMBERS)) - 1)))
        {
            changes->after = 0;
            changes->hint = 0;
        }
    }

    return ngx_mcp_shm_submit(zone, op);
}


/*
 * A request begins to wait.  The limits are those of this machine; only
 * whether the task exists has to be known, so it is put into the mirror.
 */

ngx_int_t
ngx_mcp_redis_wait(ngx_mcp_redis_call_t *call)
{
    ngx_uint_t                known;
    ngx_mcp_table_t          *t;
    ngx_mcp_op_wait_t        *op;
    ngx_mcp_redis_pinning_t  *p;

    op = (ngx_mcp_op_wait_t *) call->op;
    t = call->st->zone->table;
    known = 1;

    if (op->id) {
        ngx_mcp_lock_read(t);
        known = (ngx_mcp_find_locked(t, op->id, NULL, ngx_current_msec)
                 != NULL);
        ngx_mcp_unlock(t);
    }

    if (known) {
        return ngx_mcp_shm_submit(call->st->zone, call->op);
    }

    p = ngx_pcalloc(call->pool, sizeof(ngx_mcp_redis_pinning_t));
    if (p == NULL) {
        return NGX_ERROR;
    }

    call->data = p;
    p->pending = 1;

    if (ngx_mcp_redis_part(call->st, call, ngx_mcp_redis_fetch, op->id,
                           ngx_mcp_redis_partition_of(call->st, op->id),
                           NGX_MCP_PIN_TASKS, NULL, 0)
        != NGX_OK)
    {
        return ngx_mcp_redis_over(call, NGX_MCP_STORE_UNAVAILABLE);
    }

    return NGX_AGAIN;
}


ngx_int_t
ngx_mcp_redis_pin(ngx_mcp_redis_call_t *call)
{
    ngx_uint_t                i;
    ngx_mcp_op_pin_t         *op;
    ngx_mcp_redis_pin_t      *pin;
    ngx_mcp_redis_store_t    *st;
    ngx_mcp_redis_pinning_t  *p;

    op = (ngx_mcp_op_pin_t *) call->op;
    st = call->st;

    p = ngx_pcalloc(call->pool, sizeof(ngx_mcp_redis_pinning_t));
    if (p == NULL) {
        return NGX_ERROR;
    }

    call->data = p;

    if (op->kind != NGX_MCP_PIN_TASKS) {
        pin = ngx_mcp_redis_find_pin(st, op->kind, NULL, &op->name, 1);
        if (pin == NULL) {
            return NGX_ERROR;
        }

        pin->count++;

    } else {

        for (i = 0; i < op->n; i++) {
            pin = ngx_mcp_redis_find_pin(st, op->kind, &op->ids[i], NULL, 1);
            if (pin == NULL) {
                op->n = i;
                ngx_mcp_redis_unpinned(st, op);
                return NGX_ERROR;
            }

            pin->count++;
        }
    }

    op->held = 1;

    return ngx_mcp_redis_pin_all(call);
}


/* sends all commands that the pin needs */

static ngx_int_t
ngx_mcp_redis_pin_all(ngx_mcp_redis_call_t *call)
{
    ngx_uint_t                i, first, last;
    ngx_mcp_op_pin_t         *op;
    ngx_mcp_redis_store_t    *st;
    ngx_mcp_redis_pinning_t  *p;

    op = (ngx_mcp_op_pin_t *) call->op;
    st = call->st;
    p = call->data;

    /* 1: for this function, so that nothing completes before its end */
    p->pending = 1;

    if (op->kind == NGX_MCP_PIN_TASKS) {

        for (i = 0; i < op->n; i++) {
            p->pending++;

            if (ngx_mcp_redis_part(st, call, ngx_mcp_redis_fetch, &op->ids[i],
                                   ngx_mcp_redis_partition_of(st,
                                                              &op->ids[i]),
                                   op->kind, NULL, 1)
                != NGX_OK)
            {
                p->pending--;
                p->failed = 1;
            }
        }

    } else {
        first = 0;
        last = st->conf->partitions;

        if (op->kind == NGX_MCP_PIN_OWNER) {
            first = ngx_mcp_redis_home(st, &op->name, &op->name);
            last = first + 1;
        }

        for (i = first; i < last; i++) {
            p->pending++;

            if (ngx_mcp_redis_part(st, call, ngx_mcp_redis_register, NULL, i,
                                   op->kind, &op->name, 1)
                != NGX_OK)
            {
                p->pending--;
                p->failed = 1;
            }
        }
    }

    if (--p->pending) {
        return NGX_AGAIN;
    }

    if (p->failed) {
        ngx_mcp_redis_unpinned(st, op);
        op->held = 0;
        return ngx_mcp_redis_over(call, NGX_MCP_STORE_UNAVAILABLE);
    }

    return ngx_mcp_redis_over(call, NGX_MCP_OK);
}


/*
 * Submits a part as an operation of its own, with memory of its own.  Its
 * result is in p->failed of the parent.
 */

static ngx_int_t
ngx_mcp_redis_part(ngx_mcp_redis_store_t *st, ngx_mcp_redis_call_t *parent,
    ngx_mcp_redis_start_pt start, ngx_mcp_id_t *id, ngx_uint_t partition,
    ngx_uint_t kind, ngx_str_t *name, ngx_uint_t pins)
{
    ngx_int_t              rc;
    ngx_pool_t            *pool;
    ngx_mcp_redis_call_t  *call;
    ngx_mcp_redis_part_t  *part;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    part = ngx_pcalloc(pool, sizeof(ngx_mcp_redis_part_t));
    if (part == NULL) {
        goto failed;
    }

    part->op.type = NGX_MCP_OP_GET;
    part->op.pool = pool;
    part->op.handler = ngx_mcp_redis_part_done;
    part->op.data = part;
    part->kind = kind;
    part->pins = pins;
    part->parent = parent;

    if (name && name->len) {
        part->name.len = name->len;
        part->name.data = ngx_pstrdup(pool, name);

        if (part->name.data == NULL) {
            goto failed;
        }
    }

    call = &part->call;
    call->st = st;
    call->op = &part->op;
    call->pool = pool;
    call->start = start;
    call->partition = partition;
    call->started = 1;
    call->until = ngx_current_msec + st->conf->timeout;
    call->data = part;

    if (id) {
        call->id = *id;
    }

    ngx_queue_insert_tail(&st->queues[0], &call->queue);

    rc = start(call);

    if (rc == NGX_AGAIN) {
        return NGX_OK;
    }

    ngx_queue_remove(&call->queue);

failed:

    ngx_destroy_pool(pool);

    return NGX_ERROR;
}


static void
ngx_mcp_redis_part_done(ngx_mcp_op_t *op)
{
    ngx_uint_t                failed;
    ngx_mcp_redis_call_t     *parent;
    ngx_mcp_redis_part_t     *part;
    ngx_mcp_redis_pinning_t  *p;

    part = op->data;
    parent = part->parent;
    failed = (op->reason != NGX_MCP_OK);

    ngx_destroy_pool(op->pool);

    if (parent == NULL) {
        return;
    }

    p = parent->data;
    p->failed |= failed;

    if (--p->pending == 0) {
        ngx_mcp_redis_pinned(parent);
    }
}


static void
ngx_mcp_redis_pinned(ngx_mcp_redis_call_t *call)
{
    ngx_int_t                 rc;
    ngx_mcp_op_pin_t         *op;
    ngx_mcp_redis_pinning_t  *p;

    p = call->data;

    if (call->op->type == NGX_MCP_OP_WAIT) {

        rc = p->failed ? ngx_mcp_redis_over(call, NGX_MCP_STORE_UNAVAILABLE)
                       : ngx_mcp_shm_submit(call->st->zone, call->op);

        ngx_mcp_redis_finish(call, rc);
        return;
    }

    op = (ngx_mcp_op_pin_t *) call->op;

    if (p->failed) {
        ngx_mcp_redis_unpinned(call->st, op);
        op->held = 0;
    }

    ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                  p->failed ? NGX_MCP_STORE_UNAVAILABLE
                                            : NGX_MCP_OK));
}


ngx_int_t
ngx_mcp_redis_unpin(ngx_mcp_zone_t *zone, ngx_mcp_op_t *o)
{
    ngx_mcp_redis_unpinned(zone->store_data, (ngx_mcp_op_pin_t *) o);

    return NGX_OK;
}


static void
ngx_mcp_redis_unpinned(ngx_mcp_redis_store_t *st, ngx_mcp_op_pin_t *op)
{
    ngx_uint_t            i, n;
    ngx_mcp_redis_pin_t  *pin;

    n = (op->kind == NGX_MCP_PIN_TASKS) ? op->n : 1;

    for (i = 0; i < n; i++) {
        pin = ngx_mcp_redis_find_pin(st, op->kind,
                                     op->kind == NGX_MCP_PIN_TASKS
                                     ? &op->ids[i] : NULL,
                                     &op->name, 0);

        if (pin && --pin->count == 0) {
            ngx_mcp_redis_drop_pin(st, pin);
        }
    }
}


static ngx_mcp_redis_pin_t *
ngx_mcp_redis_find_pin(ngx_mcp_redis_store_t *st, ngx_uint_t kind,
    ngx_mcp_id_t *id, ngx_str_t *name, ngx_uint_t create)
{
    uint64_t              hash;
    ngx_str_t             key;
    ngx_rbtree_node_t    *node;
    ngx_mcp_redis_pin_t  *pin;

    if (id) {
        key.data = id->data;
        key.len = sizeof(ngx_mcp_id_t);

    } else {
        key = *name;
    }

    hash = kind + (key.len ? ngx_mcp_siphash(st->zone->secret, key.data,
                                             key.len)
                           : 0);
    node = st->pins.root;

    /* what has the same hash is to the right of each other */

    while (node != &st->sentinel) {

        if ((ngx_rbtree_key_t) hash != node->key) {
            node = ((ngx_rbtree_key_t) hash < node->key) ? node->left
                                                         : node->right;
            continue;
        }

        pin = (ngx_mcp_redis_pin_t *) node;

        if (pin->kind == kind && pin->name.len == key.len
            && ngx_memcmp(pin->name.data, key.data, key.len) == 0)
        {
            return pin;
        }

        node = node->right;
    }

    if (!create) {
        return NULL;
    }

    pin = ngx_calloc(sizeof(ngx_mcp_redis_pin_t) + key.len, ngx_cycle->log);
    if (pin == NULL) {
        return NULL;
    }

    pin->node.key = (ngx_rbtree_key_t) hash;
    pin->kind = kind;
    pin->name.data = (u_char *) (pin + 1);
    pin->name.len = key.len;

    if (key.len) {
        ngx_memcpy(pin->name.data, key.data, key.len);
    }

    if (id) {
        pin->id = *id;
    }

    ngx_rbtree_insert(&st->pins, &pin->node);

    return pin;
}


static void
ngx_mcp_redis_drop_pin(ngx_mcp_redis_store_t *st, ngx_mcp_redis_pin_t *pin)
{
    ngx_mcp_slot_t   *s;
    ngx_mcp_table_t  *t;

    t = st->zone->table;

    if (pin->kind == NGX_MCP_PIN_TASKS) {
        ngx_mcp_lock(t);

        s = ngx_mcp_find_locked(t, &pin->id, NULL, 0);
        if (s) {
            ngx_mcp_mirror_unpin_locked(t, s);
        }

        ngx_mcp_unlock(t);
    }

    if (st->relooking == &pin->node) {
        st->relooking = ngx_rbtree_next(&st->pins, &pin->node);
    }

    ngx_rbtree_delete(&st->pins, &pin->node);
    ngx_free(pin);
}


/* Reads a task and puts it into the mirror; with pins, registers for it. */

static ngx_int_t
ngx_mcp_redis_fetch(ngx_mcp_redis_call_t *call)
{
    ngx_str_t              field;
    ngx_mcp_redis_part_t  *part;

    part = call->data;

    if (!part->pins) {
        return ngx_mcp_redis_watch_read(call, NULL, 0, ngx_mcp_redis_fetched);
    }

    field.len = 1 + sizeof(ngx_mcp_id_t);
    field.data = ngx_pnalloc(call->pool, field.len);

    if (field.data == NULL) {
        return NGX_ERROR;
    }

    field.data[0] = 't';
    ngx_memcpy(field.data + 1, &call->id, sizeof(ngx_mcp_id_t));

    return ngx_mcp_redis_watch_read(call, &field, 1, ngx_mcp_redis_fetched);
}


static void
ngx_mcp_redis_fetched(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    int64_t                code;
    ngx_int_t              rc;
    ngx_mcp_slot_t        *s;
    ngx_mcp_table_t       *t;
    ngx_mcp_redis_call_t  *call;
    ngx_mcp_redis_part_t  *part;

    call = cmd->data;
    part = call->data;
    t = call->st->zone->table;

    if (ngx_mcp_redis_code(call, reply, &code) != NGX_OK) {
        return;
    }

    rc = (code == 1 && reply->elements == 4)
         ? ngx_mcp_redis_load(call, reply->element[1], reply->element[2],
                              reply->element[3])
         : NGX_DECLINED;

    if (rc == NGX_OK) {
        ngx_mcp_redis_mirror(call);
    }

    ngx_mcp_lock(t);

    if (rc == NGX_DECLINED) {
        ngx_mcp_mirror_remove_locked(t, &call->id);

    } else if (part->pins) {
        s = ngx_mcp_find_locked(t, &call->id, NULL, 0);

        if (s == NULL) {
            rc = NGX_ERROR;

        } else if (ngx_mcp_redis_find_pin(call->st, NGX_MCP_PIN_TASKS,
                                          &call->id, NULL, 0))
        {
            ngx_mcp_mirror_pin_locked(t, s);
        }
    }

    ngx_mcp_unlock(t);

    ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                  (rc == NGX_OK || rc == NGX_DECLINED)
                                  ? NGX_MCP_OK : NGX_MCP_STORE_FAILED));
}


/* Registers for all tasks of an owner, a session or the zone. */

static ngx_int_t
ngx_mcp_redis_register(ngx_mcp_redis_call_t *call)
{
    ngx_str_t               argv[8];
    ngx_mcp_redis_part_t   *part;
    ngx_mcp_redis_store_t  *st;

    st = call->st;
    part = call->data;

    ngx_str_set(&argv[0], "2");
    argv[1] = ngx_mcp_redis_key(st, call->pool, call->partition, "w", NULL, 0);
    argv[2] = ngx_mcp_redis_key(st, call->pool, call->partition, "m", NULL, 0);
    argv[3] = ngx_mcp_redis_run(st);
    argv[4] = ngx_mcp_redis_number(call->pool,
                                   ngx_mcp_redis_shared(st->zone)->seat);
    ngx_str_set(&argv[5], "+");
    argv[6] = ngx_mcp_redis_field(call, part->kind, &part->name);

    return ngx_mcp_redis_eval(call, NGX_MCP_REDIS_READS, NGX_MCP_REDIS_AWAIT,
                              ngx_mcp_redis_registered, argv, 7);
}


static void
ngx_mcp_redis_registered(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    int64_t                code;
    ngx_mcp_redis_call_t  *call;
    ngx_mcp_redis_part_t  *part;

    call = cmd->data;
    part = call->data;

    if (ngx_mcp_redis_code(call, reply, &code) != NGX_OK) {
        return;
    }

    /* the console's stream begins with the next change */

    ngx_mcp_redis_finish(call, (part->kind == NGX_MCP_PIN_ZONE)
                               ? ngx_mcp_redis_over(call, NGX_MCP_OK)
                               : ngx_mcp_redis_fill(call));
}


static ngx_str_t
ngx_mcp_redis_field(ngx_mcp_redis_call_t *call, ngx_uint_t kind,
    ngx_str_t *name)
{
    u_char     owner[16];
    ngx_str_t  field, data;

    switch (kind) {

    case NGX_MCP_PIN_OWNER:
        ngx_mcp_redis_owner(call->st, name, owner);
        data.data = owner;
        data.len = sizeof(owner);
        break;

    case NGX_MCP_PIN_SESSION:
        data = *name;
        break;

    default:
        ngx_str_set(&field, "a");
        return field;
    }

    field.len = 1 + data.len;
    field.data = ngx_pnalloc(call->pool, field.len);

    if (field.data) {
        field.data[0] = (kind == NGX_MCP_PIN_OWNER) ? 'o' : 's';
        ngx_memcpy(field.data + 1, data.data, data.len);
    }

    return field;
}


/* Puts the tasks of an owner or a session into the mirror. */

static ngx_int_t
ngx_mcp_redis_fill(ngx_mcp_redis_call_t *call)
{
    u_char                  owner[16];
    ngx_str_t               argv[4];
    ngx_mcp_redis_part_t   *part;
    ngx_mcp_redis_store_t  *st;

    st = call->st;
    part = call->data;

    ngx_str_set(&argv[0], "ZREVRANGE");

    if (part->kind == NGX_MCP_PIN_OWNER) {
        ngx_mcp_redis_owner(st, &part->name, owner);
        argv[1] = ngx_mcp_redis_key(st, call->pool, call->partition, "i",
                                    owner, sizeof(owner));
    } else {
        argv[1] = ngx_mcp_redis_key(st, call->pool, call->partition, "z",
                                    part->name.data, part->name.len);
    }

    ngx_str_set(&argv[2], "0");
    argv[3] = ngx_mcp_redis_number(call->pool, NGX_MCP_REDIS_FILL - 1);

    return ngx_mcp_redis_call(call, 0, NGX_MCP_REDIS_READS,
                              ngx_mcp_redis_filled, argv, 4);
}


/* the oldest first: the order of changes in the mirror is that of arrival */

static void
ngx_mcp_redis_filled(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    size_t                    i;
    ngx_mcp_id_t              id;
    ngx_mcp_redis_call_t     *call, *parent;
    ngx_mcp_redis_part_t     *part;
    ngx_mcp_redis_pinning_t  *p;

    call = cmd->data;
    part = call->data;
    parent = part->parent;
    p = parent ? parent->data : NULL;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                               NGX_MCP_STORE_UNAVAILABLE));
        return;
    }

    for (i = reply->elements; i-- > 0; /* void */) {

        if (reply->element[i]->type != REDIS_REPLY_STRING
            || reply->element[i]->len != sizeof(ngx_mcp_id_t))
        {
            continue;
        }

        ngx_memcpy(&id, reply->element[i]->str, sizeof(ngx_mcp_id_t));

        if (p) {
            p->pending++;
        }

        if (ngx_mcp_redis_part(call->st, parent, ngx_mcp_redis_fetch, &id,
                               call->partition, NGX_MCP_PIN_TASKS, NULL, 0)
            != NGX_OK && p)
        {
            p->pending--;
            p->failed = 1;
        }
    }

    ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call, NGX_MCP_OK));
}


/* a message of another machine, or of another process of this one */

void
ngx_mcp_redis_message(void *data, ngx_str_t *channel, ngx_str_t *text)
{
    ngx_mcp_redis_store_t *st = data;

    ngx_str_t         tool;
    ngx_mcp_id_t      id;
    ngx_mcp_table_t  *t;

    t = st->zone->table;

    if (text->len == 0) {
        return;
    }

    ngx_mcp_redis_shared(st->zone)->messages++;

    switch (text->data[0]) {

    case 't':
        if (text->len < 1 + sizeof(ngx_mcp_id_t)) {
            return;
        }

        ngx_memcpy(&id, text->data + 1, sizeof(ngx_mcp_id_t));

        if (ngx_mcp_redis_part(st, NULL, ngx_mcp_redis_fetch, &id,
                               ngx_mcp_redis_partition_of(st, &id),
                               NGX_MCP_PIN_TASKS, NULL, 0)
            != NGX_OK)
        {
            /* too much is in flight: everything is read again later */
            ngx_mcp_redis_shared(st->zone)->relooks++;
        }

        return;

    case 'q':
        tool.data = text->data + 1;
        tool.len = text->len - 1;

        ngx_mcp_lock_read(t);
        ngx_mcp_signal_name_locked(t, ngx_mcp_name_hash(t, NGX_MCP_TOOL,
                                                        &tool));
        ngx_mcp_unlock(t);
        return;

    case 'b':
        st->beats = 0;
        return;
    }
}


/*
 * Registers for everything that requests of this process wait for, and reads
 * it again: messages may have been lost.
 */

void
ngx_mcp_redis_relook(ngx_mcp_redis_store_t *st)
{
    ngx_uint_t            i;
    ngx_rbtree_node_t    *node;
    ngx_mcp_redis_pin_t  *pin;

    if (st->pins.root == &st->sentinel) {
        st->relooking = NULL;
        return;
    }

    node = st->relooking ? st->relooking
                         : ngx_rbtree_min(st->pins.root, &st->sentinel);

    while (node && st->rd->in_flight < NGX_MCP_REDIS_PACE) {
        pin = (ngx_mcp_redis_pin_t *) node;

        if (pin->kind == NGX_MCP_PIN_TASKS) {
            (void) ngx_mcp_redis_part(st, NULL, ngx_mcp_redis_fetch, &pin->id,
                                      ngx_mcp_redis_partition_of(st, &pin->id),
                                      pin->kind, NULL, 1);

        } else {
            for (i = 0; i < st->conf->partitions; i++) {
                if (pin->kind != NGX_MCP_PIN_OWNER
                    || i == ngx_mcp_redis_home(st, &pin->name, &pin->name))
                {
                    (void) ngx_mcp_redis_part(st, NULL, ngx_mcp_redis_register,
                                              NULL, i, pin->kind, &pin->name,
                                              1);
                }
            }
        }

        node = ngx_rbtree_next(&st->pins, node);
    }

    st->relooking = node;
}


#endif /* NGX_MCP_REDIS */
