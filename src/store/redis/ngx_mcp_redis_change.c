
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Changes of a task that exists: it is read, the event is applied, and the
 * result is written if nobody has changed the task since.  A change that was
 * sent again finds its own token among the last ones of the task.
 */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_mirror.h"
#include "ngx_mcp_record_change.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_REDIS)


/* a change that meets others so often is answered as not done */
#define NGX_MCP_REDIS_TRIES  64

/* keys and arguments of a script, without the payloads */
#define NGX_MCP_REDIS_ARGS   28


typedef struct {
    ngx_mcp_event_t          event;
    ngx_mcp_change_t        *change;     /* may be NULL */
    ngx_mcp_record_change_t  made;
    ngx_uint_t               state;      /* before */
    ngx_uint_t               sure;       /* do not read again before */
} ngx_mcp_redis_edit_t;


static ngx_int_t ngx_mcp_redis_edit(ngx_mcp_redis_call_t *call,
    ngx_uint_t type, ngx_mcp_change_t *change);
static void ngx_mcp_redis_token(ngx_mcp_redis_cmd_t *cmd, redisReply *reply);
static void ngx_mcp_redis_edited(ngx_mcp_redis_cmd_t *cmd, redisReply *reply);
static ngx_int_t ngx_mcp_redis_apply(ngx_mcp_redis_call_t *call);
static ngx_uint_t ngx_mcp_redis_refused(ngx_mcp_redis_call_t *call,
    ngx_mcp_redis_edit_t *edit);
static ngx_int_t ngx_mcp_redis_commit(ngx_mcp_redis_call_t *call,
    ngx_mcp_redis_edit_t *edit);
static ngx_uint_t ngx_mcp_redis_flags(ngx_mcp_redis_call_t *call,
    ngx_mcp_redis_edit_t *edit);
static ngx_uint_t ngx_mcp_redis_payloads(ngx_mcp_redis_call_t *call,
    ngx_uint_t written, ngx_str_t *argv);
static void ngx_mcp_redis_committed(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_changed(ngx_mcp_redis_call_t *call,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_repeated(ngx_mcp_redis_call_t *call,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_answer(ngx_mcp_redis_call_t *call,
    ngx_uint_t reason);
static ngx_int_t ngx_mcp_redis_remove(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_removed(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);


ngx_int_t
ngx_mcp_redis_update(ngx_mcp_redis_call_t *call)
{
    u_char                owner[16];
    ngx_str_t             argv[2];
    ngx_mcp_op_update_t  *op;

    op = (ngx_mcp_op_update_t *) call->op;

    if (op->token.len == 0) {
        return ngx_mcp_redis_edit(call, op->event.type, &op->change);
    }

    /* clients without an owner share the empty name: they need the id */

    if (op->owner->len == 0 || op->token.len > NGX_MCP_MAX_TOKEN) {
        return ngx_mcp_redis_over(call, NGX_MCP_NOT_FOUND);
    }

    ngx_mcp_redis_owner(call->st, op->owner, owner);
    call->partition = ngx_mcp_redis_home(call->st, op->owner, op->owner);

    ngx_str_set(&argv[0], "GET");
    argv[1] = ngx_mcp_redis_key2(call->st, call->pool, call->partition, "k",
                                 owner, sizeof(owner), &op->token);

    return ngx_mcp_redis_call(call, 0, NGX_MCP_REDIS_READS,
                              ngx_mcp_redis_token, argv, 2);
}


/* the task of a progress token */

static void
ngx_mcp_redis_token(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_op_update_t   *op;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;
    op = (ngx_mcp_op_update_t *) call->op;

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                               NGX_MCP_STORE_UNAVAILABLE));
        return;
    }

    if (reply->type != REDIS_REPLY_STRING
        || reply->len != sizeof(ngx_mcp_id_t))
    {
        ngx_mcp_redis_finish(call,
                             ngx_mcp_redis_over(call, NGX_MCP_NOT_FOUND));
        return;
    }

    ngx_memcpy(&call->id, reply->str, sizeof(ngx_mcp_id_t));

    ngx_mcp_redis_finish(call, ngx_mcp_redis_edit(call, op->event.type,
                                                  &op->change));
}


/*
 * Starts a background call that this process holds.  The limits are those of
 * this machine, so they are checked in its mirror.
 */

ngx_int_t
ngx_mcp_redis_attempt(ngx_mcp_redis_call_t *call)
{
    ngx_int_t              rc;
    ngx_mcp_op_attempt_t  *op;
    ngx_mcp_redis_edit_t  *edit;

    op = (ngx_mcp_op_attempt_t *) call->op;

    if (call->data == NULL) {
        rc = ngx_mcp_shm_attempt_check(call->st->zone, op);

        if (rc != NGX_OK || op->op.reason != NGX_MCP_OK) {
            return rc;
        }
    }

    rc = ngx_mcp_redis_edit(call, NGX_MCP_EV_CLAIM, NULL);

    edit = call->data;

    if (edit && edit->event.lease_token == 0
        && ngx_mcp_random_token(&edit->event.lease_token) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return rc;
}


/* what is due: for the sweeper */

ngx_int_t
ngx_mcp_redis_due(ngx_mcp_redis_call_t *call)
{
    return ngx_mcp_redis_edit(call, NGX_MCP_EVENTS, NULL);
}


ngx_int_t
ngx_mcp_redis_delete(ngx_mcp_redis_call_t *call)
{
    ngx_mcp_slot_t       *s;
    ngx_mcp_table_t      *t;
    ngx_mcp_op_delete_t  *op;

    op = (ngx_mcp_op_delete_t *) call->op;
    t = call->st->zone->table;

    if (op->waiting) {
        ngx_mcp_lock_read(t);

        s = ngx_mcp_find_locked(t, &op->id, op->owner, ngx_current_msec);

        if (s && s->epoch == t->sh->epoch && s->waiting >= op->waiting) {
            op->op.reason = NGX_MCP_STATE_INVALID;
        }

        ngx_mcp_unlock(t);

        if (op->op.reason != NGX_MCP_OK) {
            return NGX_OK;
        }
    }

    return ngx_mcp_redis_edit(call, NGX_MCP_EV_EXPIRE, NULL);
}


/* reads the task: all of it, if the answer or the event needs payloads */

static ngx_int_t
ngx_mcp_redis_edit(ngx_mcp_redis_call_t *call, ngx_uint_t type,
    ngx_mcp_change_t *change)
{
    ngx_mcp_redis_edit_t  *edit;

    edit = call->data;

    if (edit == NULL) {
        edit = ngx_pcalloc(call->pool, sizeof(ngx_mcp_redis_edit_t));
        if (edit == NULL) {
            return NGX_ERROR;
        }

        if (call->op->type == NGX_MCP_OP_UPDATE) {
            edit->event = ((ngx_mcp_op_update_t *) call->op)->event;
        }

        edit->event.type = type;
        edit->change = change;
        call->data = edit;
    }

    if (call->tries > NGX_MCP_REDIS_TRIES) {
        return ngx_mcp_redis_over(call, NGX_MCP_STORE_UNAVAILABLE);
    }

    return ngx_mcp_redis_watch_read(call, NULL, 0, ngx_mcp_redis_edited);
}


static void
ngx_mcp_redis_edited(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    int64_t                code;
    ngx_int_t              rc;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;

    if (ngx_mcp_redis_code(call, reply, &code) != NGX_OK) {
        return;
    }

    rc = (code == 1 && reply->elements == 4)
         ? ngx_mcp_redis_load(call, reply->element[1], reply->element[2],
                              reply->element[3])
         : NGX_DECLINED;

    switch (rc) {

    case NGX_OK:
        rc = ngx_mcp_redis_apply(call);
        break;

    case NGX_DECLINED:
        rc = ngx_mcp_redis_over(call, NGX_MCP_NOT_FOUND);
        break;

    case NGX_ABORT:
        rc = ngx_mcp_redis_over(call, NGX_MCP_STORE_FAILED);
        break;
    }

    ngx_mcp_redis_finish(call, rc);
}


static ngx_int_t
ngx_mcp_redis_apply(ngx_mcp_redis_call_t *call)
{
    ngx_uint_t             reason;
    ngx_mcp_op_t          *op;
    ngx_mcp_redis_edit_t  *edit;

    op = call->op;
    edit = call->data;

    reason = ngx_mcp_redis_refused(call, edit);

    if (reason != NGX_MCP_OK) {
        return ngx_mcp_redis_over(call, reason);
    }

    if (op->type == NGX_MCP_OP_DELETE) {
        return ngx_mcp_redis_remove(call);
    }

    ngx_mcp_event_time(&edit->event);
    edit->state = call->rr.rec.task.state;
    ngx_memcpy(edit->made.lengths, call->rr.lengths,
               sizeof(call->rr.lengths));

    if (op->type == NGX_MCP_OP_SWEEP) {
        edit->event.type = ngx_mcp_task_due(&call->rr.rec.task,
                                            edit->event.now);

        if (edit->event.type == NGX_MCP_EVENTS) {
            /* somebody has changed it since */
            return ngx_mcp_redis_over(call, NGX_MCP_STATE_INVALID);
        }
    }

    reason = ngx_mcp_record_change(&call->rr.rec, &edit->event, edit->change,
                                   &edit->made);

    if (reason != NGX_MCP_OK) {
        return ngx_mcp_redis_answer(call, reason);
    }

    if (edit->made.removed) {
        return ngx_mcp_redis_remove(call);
    }

    return ngx_mcp_redis_commit(call, edit);
}


/* what the store checks before the rules of the task do */

static ngx_uint_t
ngx_mcp_redis_refused(ngx_mcp_redis_call_t *call, ngx_mcp_redis_edit_t *edit)
{
    ngx_mcp_task_t        *task;
    ngx_mcp_op_update_t   *update;
    ngx_mcp_op_attempt_t  *attempt;

    task = &call->rr.rec.task;

    switch (call->op->type) {

    case NGX_MCP_OP_UPDATE:
        update = (ngx_mcp_op_update_t *) call->op;

        if (!ngx_mcp_redis_visible(call, update->owner)) {
            return NGX_MCP_NOT_FOUND;
        }

        if (update->version && update->version != task->version) {
            return NGX_MCP_VERSION_CONFLICT;
        }

        break;

    case NGX_MCP_OP_DELETE:
        if (!ngx_mcp_redis_visible(call,
                                   ((ngx_mcp_op_delete_t *) call->op)->owner))
        {
            return NGX_MCP_NOT_FOUND;
        }

        break;

    case NGX_MCP_OP_ATTEMPT:
        attempt = (ngx_mcp_op_attempt_t *) call->op;

        if (!ngx_mcp_redis_visible(call, NULL)) {
            return NGX_MCP_NOT_FOUND;
        }

        if (task->holder != attempt->holder) {
            return NGX_MCP_LEASE_LOST;
        }

        break;
    }

    return NGX_MCP_OK;
}


static ngx_int_t
ngx_mcp_redis_commit(ngx_mcp_redis_call_t *call, ngx_mcp_redis_edit_t *edit)
{
    u_char                  *head;
    uint64_t                 now, store_now;
    ngx_int_t                rc;
    ngx_str_t                argv[NGX_MCP_REDIS_ARGS + 2 * NGX_MCP_PAYLOADS];
    ngx_uint_t               n, p;
    ngx_pool_t              *pool;
    ngx_mcp_record_t        *rec;
    ngx_mcp_redis_store_t   *st;
    ngx_mcp_redis_record_t  *rr;

    st = call->st;
    rr = &call->rr;
    rec = &rr->rec;
    pool = call->pool;
    p = call->partition;
    now = ngx_current_msec;
    store_now = ngx_mcp_redis_now(st->zone);

    head = ngx_pnalloc(pool, NGX_MCP_REDIS_HEAD);
    if (head == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(rr->lengths, edit->made.lengths, sizeof(rr->lengths));
    ngx_mcp_redis_token_push(rr, call->token);

    ngx_str_set(&argv[0], "9");
    argv[1] = ngx_mcp_redis_key(st, pool, p, "t", &call->id, 16);
    argv[2] = ngx_mcp_redis_key(st, pool, p, "r", &call->id, 16);
    argv[3] = ngx_mcp_redis_key(st, pool, p, "x", &call->id, 16);
    argv[4] = ngx_mcp_redis_key(st, pool, p, "d", NULL, 0);
    argv[5] = ngx_mcp_redis_key(st, pool, p, "q", rec->tool.data,
                                rec->tool.len);
    argv[6] = ngx_mcp_redis_key(st, pool, p, "c", NULL, 0);
    argv[7] = ngx_mcp_redis_key(st, pool, p, "m", NULL, 0);
    argv[8] = ngx_mcp_redis_key(st, pool, p, "w", NULL, 0);
    argv[9] = rec->session.len
              ? ngx_mcp_redis_key(st, pool, p, "z", rec->session.data,
                                  rec->session.len)
              : argv[1];

    argv[10] = ngx_mcp_redis_run(st);
    argv[11].data = (u_char *) &call->id;
    argv[11].len = sizeof(ngx_mcp_id_t);
    argv[12].data = call->token;
    argv[12].len = sizeof(call->token);
    argv[13].data = call->expected;
    argv[13].len = sizeof(call->expected);
    argv[14].data = rr->owner_hash;
    argv[14].len = sizeof(rr->owner_hash);
    argv[15].data = head;
    argv[15].len = NGX_MCP_REDIS_HEAD;
    argv[16] = ngx_mcp_redis_number(pool, ngx_mcp_redis_flags(call, edit));
    argv[17] = ngx_mcp_redis_deadline(pool, &rec->task, now, store_now);
    argv[18] = ngx_mcp_redis_base(pool, &rec->task);
    argv[19] = ngx_mcp_redis_number(pool, edit->state);
    argv[20] = ngx_mcp_redis_number(pool, rec->task.state);

    argv[21].data = ngx_pnalloc(pool, NGX_INT64_LEN);
    if (argv[21].data == NULL) {
        return NGX_ERROR;
    }

    argv[21].len = ngx_sprintf(argv[21].data, "%L", edit->made.growth)
                   - argv[21].data;
    argv[22] = ngx_mcp_redis_number(pool, edit->change
                                          ? edit->change->max_owner_bytes : 0);
    argv[23] = rec->tool;
    argv[24] = rec->session;

    ngx_str_set(&argv[25], "0");
    ngx_str_set(&argv[26], "");

    if (edit->made.written & (1u << NGX_MCP_RESULT)) {
        ngx_str_set(&argv[25], "1");
        argv[26] = rec->payload[NGX_MCP_RESULT];
    }

    n = ngx_mcp_redis_payloads(call, edit->made.written, &argv[27]);

    /* in store time only while it is written: it may be used again */

    ngx_mcp_record_to_store(rec, now, store_now);
    ngx_mcp_redis_encode_head(head, rr);
    ngx_mcp_record_from_store(rec, now, store_now);

    rc = ngx_mcp_redis_eval(call, NGX_MCP_REDIS_CHANGES, NGX_MCP_REDIS_COMMIT,
                            ngx_mcp_redis_committed, argv, 27 + n);

    return rc;
}


static ngx_uint_t
ngx_mcp_redis_flags(ngx_mcp_redis_call_t *call, ngx_mcp_redis_edit_t *edit)
{
    ngx_uint_t         flags;
    ngx_mcp_record_t  *rec;

    rec = &call->rr.rec;
    flags = call->st->recent ? NGX_MCP_REDIS_RECENT : 0;

    if (edit->made.changed) {
        flags |= NGX_MCP_REDIS_CHANGED;

        if (rec->session.len && rec->task.flags & NGX_MCP_ANNOUNCED) {
            flags |= NGX_MCP_REDIS_ANNOUNCE;
        }
    }

    return flags | (edit->made.turned ? NGX_MCP_REDIS_TURNED : 0)
                 | (edit->made.moved ? NGX_MCP_REDIS_MOVED : 0)
                 | (edit->made.requeued ? NGX_MCP_REDIS_REQUEUED : 0);
}


/* fields of the hash of payloads and their new values */

static ngx_uint_t
ngx_mcp_redis_payloads(ngx_mcp_redis_call_t *call, ngx_uint_t written,
    ngx_str_t *argv)
{
    ngx_uint_t      i, n;
    static u_char   digits[] = "01234567";

    for (n = 0, i = 0; i < NGX_MCP_PAYLOADS; i++) {

        if (!(written & (1u << i)) || i == NGX_MCP_PARAMS
            || i == NGX_MCP_RESULT)
        {
            continue;
        }

        argv[n].data = &digits[ngx_mcp_payload_fields[i].number];
        argv[n++].len = 1;
        argv[n++] = call->rr.rec.payload[i];
    }

    return n;
}


static void
ngx_mcp_redis_committed(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    int64_t                code;
    ngx_int_t              rc;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;

    if (ngx_mcp_redis_code(call, reply, &code) != NGX_OK) {
        return;
    }

    switch (code) {

    case 1:
        rc = ngx_mcp_redis_changed(call, reply);
        break;

    case 2:
        rc = ngx_mcp_redis_repeated(call, reply);
        break;

    case 0:
        if (reply->elements == 1) {
            rc = ngx_mcp_redis_over(call, NGX_MCP_NOT_FOUND);
            break;
        }

        /* another change was first */

        (void) ngx_atomic_fetch_add((ngx_atomic_t *)
                         &ngx_mcp_redis_shared(call->st->zone)->conflicts, 1);
        call->tries++;
        rc = call->start(call);
        break;

    case -3:
        rc = ngx_mcp_redis_over(call, NGX_MCP_LIMIT_OWNER_BYTES);
        break;

    default:
        rc = ngx_mcp_redis_over(call, NGX_MCP_STORE_FAILED);
    }

    ngx_mcp_redis_finish(call, rc);
}


static ngx_int_t
ngx_mcp_redis_changed(ngx_mcp_redis_call_t *call, redisReply *reply)
{
    uint64_t               number;
    ngx_mcp_record_t      *rec;
    ngx_mcp_redis_edit_t  *edit;

    rec = &call->rr.rec;
    edit = call->data;

    if (reply->elements == 3
        && reply->element[1]->type == REDIS_REPLY_INTEGER
        && reply->element[2]->type == REDIS_REPLY_INTEGER)
    {
        number = reply->element[1]->integer;

        if (edit->made.changed) {
            rec->changed = number;
            rec->turned = edit->made.turned ? number : rec->turned;
            rec->moved = edit->made.moved ? number : rec->moved;
        }

        if (edit->made.requeued) {
            rec->queue_seq = reply->element[2]->integer;
        }
    }

    /* waiting requests of this machine need not wait for the message */

    rec->mask = NGX_MCP_RECORD_ALL;
    ngx_mcp_redis_remember(call);

    return ngx_mcp_redis_answer(call, NGX_MCP_OK);
}


/* it was done when it was sent before, and others may have followed */

static ngx_int_t
ngx_mcp_redis_repeated(ngx_mcp_redis_call_t *call, redisReply *reply)
{
    return ngx_mcp_redis_answer(call, NGX_MCP_OK);
}


/* the task as it is now, also if the event was refused */

static ngx_int_t
ngx_mcp_redis_answer(ngx_mcp_redis_call_t *call, ngx_uint_t reason)
{
    ngx_int_t             rc;
    ngx_mcp_op_update_t  *update;

    rc = NGX_OK;

    switch (call->op->type) {

    case NGX_MCP_OP_UPDATE:
        update = (ngx_mcp_op_update_t *) call->op;

        if (update->want != NGX_MCP_WANT_NOTHING) {
            rc = ngx_mcp_redis_view(call, update->want, &update->view);
        }

        break;

    case NGX_MCP_OP_ATTEMPT:
        rc = ngx_mcp_redis_view(call, 0,
                                &((ngx_mcp_op_attempt_t *) call->op)->view);
        break;
    }

    return (rc == NGX_OK) ? ngx_mcp_redis_over(call, reason) : rc;
}


static ngx_int_t
ngx_mcp_redis_remove(ngx_mcp_redis_call_t *call)
{
    uint64_t                 bytes;
    ngx_str_t                argv[20];
    ngx_uint_t               i, p, flags;
    ngx_pool_t              *pool;
    ngx_mcp_record_t        *rec;
    ngx_mcp_redis_edit_t    *edit;
    ngx_mcp_redis_store_t   *st;
    ngx_mcp_redis_record_t  *rr;

    st = call->st;
    rr = &call->rr;
    rec = &rr->rec;
    pool = call->pool;
    p = call->partition;
    edit = call->data;

    for (bytes = rec->method.len, i = 0; i < NGX_MCP_PAYLOADS; i++) {
        bytes += rr->lengths[i];
    }

    /* machines that have the ended task in their mirror must drop it */

    flags = (rec->token.len ? 1 : 0)
            | (call->op->type == NGX_MCP_OP_DELETE ? 2 : 0);

    ngx_str_set(&argv[0], "11");
    argv[1] = ngx_mcp_redis_key(st, pool, p, "t", &call->id, 16);
    argv[2] = ngx_mcp_redis_key(st, pool, p, "r", &call->id, 16);
    argv[3] = ngx_mcp_redis_key(st, pool, p, "x", &call->id, 16);
    argv[4] = ngx_mcp_redis_key(st, pool, p, "i", rr->owner_hash, 16);
    argv[5] = ngx_mcp_redis_key(st, pool, p, "d", NULL, 0);
    argv[6] = ngx_mcp_redis_key(st, pool, p, "q", rec->tool.data,
                                rec->tool.len);
    argv[7] = ngx_mcp_redis_key(st, pool, p, "c", NULL, 0);
    argv[8] = ngx_mcp_redis_key(st, pool, p, "m", NULL, 0);
    argv[9] = ngx_mcp_redis_key(st, pool, p, "w", NULL, 0);
    argv[10] = rec->token.len
               ? ngx_mcp_redis_key2(st, pool, p, "k", rr->owner_hash, 16,
                                    &rec->token)
               : argv[1];
    argv[11] = rec->session.len
               ? ngx_mcp_redis_key(st, pool, p, "z", rec->session.data,
                                   rec->session.len)
               : argv[1];

    argv[12] = ngx_mcp_redis_run(st);
    argv[13].data = (u_char *) &call->id;
    argv[13].len = sizeof(ngx_mcp_id_t);
    argv[14].data = call->expected;
    argv[14].len = sizeof(call->expected);
    argv[15].data = rr->owner_hash;
    argv[15].len = sizeof(rr->owner_hash);
    argv[16] = ngx_mcp_redis_number(pool, edit->made.removed
                                          ? edit->state : rec->task.state);
    argv[17] = ngx_mcp_redis_number(pool, bytes);
    argv[18] = rec->session;
    argv[19] = ngx_mcp_redis_number(pool, flags);

    return ngx_mcp_redis_eval(call, NGX_MCP_REDIS_CHANGES,
                              NGX_MCP_REDIS_REMOVE, ngx_mcp_redis_removed,
                              argv, 20);
}


static void
ngx_mcp_redis_removed(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    int64_t                code;
    ngx_int_t              rc;
    ngx_mcp_table_t       *t;
    ngx_mcp_redis_call_t  *call;

    call = cmd->data;

    if (ngx_mcp_redis_code(call, reply, &code) != NGX_OK) {
        return;
    }

    if (code == 0 && reply->elements > 1) {
        call->tries++;
        ngx_mcp_redis_finish(call, call->start(call));
        return;
    }

    /* 0: the first attempt of this call may have removed it */

    t = call->st->zone->table;

    ngx_mcp_lock(t);
    ngx_mcp_mirror_remove_locked(t, &call->id);
    ngx_mcp_unlock(t);

    rc = ngx_mcp_redis_over(call, NGX_MCP_OK);

    ngx_mcp_redis_finish(call, rc);
}


#endif /* NGX_MCP_REDIS */
