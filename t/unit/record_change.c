
/*
 * A record changes as a task in a table does: random events with random
 * payloads and limits are applied to both, and give the same.
 */


#include "libtest.h"
#include "ngx_mcp_changes.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_record_change.h"
#include "ngx_mcp_slot.h"

#include <stdio.h>
#include <stdlib.h>


#define TASKS   24
#define EVENTS  60


static char        text[400];
static ngx_uint_t  seen[NGX_MCP_REASONS];
static ngx_uint_t  plain, diagnosed, requeued, turned, moved, unseen, removed;


static ngx_uint_t
chance(ngx_uint_t n)
{
    return (ngx_uint_t) random() % n == 0;
}


/* a part of a text that stays: records refer to it */

static ngx_str_t
some(void)
{
    size_t     len;
    ngx_str_t  s;

    len = chance(4) ? 0 : (size_t) random() % 300;
    s.data = (u_char *) text + random() % (sizeof(text) - 300);
    s.len = len;

    return s;
}


static ngx_mcp_slot_t *
create(ngx_mcp_zone_t *zone)
{
    ngx_mcp_id_t         id;
    ngx_mcp_op_create_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CREATE;
    op.task.owner = str("alice");
    op.task.tool = str("dig");
    op.task.method = str("tools/call");
    op.task.params = some();
    op.task.metadata = some();
    op.task.token = str(chance(2) ? "\"token\"" : NULL);
    op.task.session = str(chance(2) ? "a session" : NULL);
    op.task.ttl = 1000 + random() % 100000;

    test_policy(&op.task.policy);
    op.task.policy.route = chance(3) ? 7 : 0;
    op.task.policy.backoff = chance(2) ? 1000 : 0;
    op.task.policy.calls = (uint8_t) (random() & NGX_MCP_CALLS);
    op.task.policy.attempts = (uint8_t) (1 + random() % 4);
    op.task.holder = 5;

    if (test_submit(zone, &op.op) != NGX_MCP_OK) {
        exit(2);
    }

    id = op.view.id;

    return ngx_mcp_find_locked(zone->table, &id, NULL, 0);
}


static void
read_slot(ngx_mcp_zone_t *zone, ngx_mcp_slot_t *s, ngx_mcp_record_t *rec)
{
    u_char  *p;

    p = ngx_palloc(test_pool, ngx_mcp_slot_size_locked(zone->table, s,
                                                       NGX_MCP_RECORD_ALL));
    (void) ngx_mcp_slot_read_locked(zone->table, s, NGX_MCP_RECORD_ALL, rec, p);
}


static ngx_uint_t
same_str(ngx_str_t *a, ngx_str_t *b)
{
    return a->len == b->len
           && (a->len == 0 || ngx_memcmp(a->data, b->data, a->len) == 0);
}


/* the name of what differs, or NULL */

static const char *
differs(ngx_mcp_record_t *a, ngx_mcp_record_t *b)
{
    ngx_uint_t       i;
    ngx_mcp_value_t  x, y;

    for (i = 0; i < ngx_mcp_nfields; i++) {
        ngx_mcp_record_get(a, &ngx_mcp_fields[i], &x);
        ngx_mcp_record_get(b, &ngx_mcp_fields[i], &y);

        if (x.type != y.type
            || (x.type == NGX_MCP_VALUE_NUMBER && x.number != y.number)
            || (x.type == NGX_MCP_VALUE_REAL && x.real != y.real)
            || (x.type >= NGX_MCP_VALUE_TEXT
                && !same_str(&x.text, &y.text)
                && ngx_strcmp(ngx_mcp_fields[i].name, "history") != 0))
        {
            return ngx_mcp_fields[i].name;
        }
    }

    /* what follows the entries is undefined */

    if (a->history.len != b->history.len
        || ngx_memcmp(a->history.data, b->history.data,
                      NGX_MCP_HISTORY_MIN + a->history.data[0]) != 0)
    {
        return "history";
    }

    if (a->task.holder != b->task.holder || a->task.worker != b->task.worker) {
        return "holder or worker";
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (!same_str(&a->payload[i], &b->payload[i])) {
            return (char *) ngx_mcp_payload_fields[i].name.data;
        }
    }

    return NULL;
}


static void
any_event(ngx_mcp_slot_t *s, ngx_mcp_event_t *ev, ngx_mcp_change_t *change)
{
    ngx_uint_t  i;

    ngx_memzero(ev, sizeof(ngx_mcp_event_t));
    ngx_memzero(change, sizeof(ngx_mcp_change_t));

    ngx_current_msec += random() % 300;

    ev->type = (ngx_uint_t) random() % NGX_MCP_EVENTS;

    if (ev->type >= NGX_MCP_EV_COMPLETE && ev->type <= NGX_MCP_EV_FAIL
        && chance(2))
    {
        ev->type = NGX_MCP_EV_PROGRESS;
    }

    if (s->body.task.state == NGX_MCP_QUEUED && chance(3)) {
        ev->type = chance(3) ? NGX_MCP_EV_READY : NGX_MCP_EV_CLAIM;
    }

    ev->now = ngx_current_msec;
    ev->wall = 1700000000000ULL + ngx_current_msec;
    ev->lease_token = chance(10) ? 99 : s->body.task.lease_token;

    if (ev->type == NGX_MCP_EV_CLAIM) {
        ev->lease_token = 1 + random() % 1000;
        ev->worker = (uint32_t) random() % 100000;
    }

    ev->holder = chance(2) ? 6 : 0;
    ev->lease_time = chance(3) ? 5000 : 0;
    ev->delay = chance(3) ? 700 : 0;
    ev->progress = chance(2) ? -1 : random() % 50;
    ev->total = -1;
    ev->flags = chance(3) ? NGX_MCP_TOOL_ERROR : 0;
    ev->release = (uint8_t) chance(4);

    for (i = NGX_MCP_METADATA; i < NGX_MCP_PAYLOADS; i++) {
        if (chance(3)) {
            change->payload[i] = some();
        }
    }

    if (chance(2)) {
        change->diagnosis = some();
    }

    change->max_payload = chance(3) ? 200 : 0;
    change->max_owner_bytes = chance(3) ? 9000 : 0;
}


/* as a store does it: it checks the owner's bytes after all the rest */

static ngx_uint_t
change_record(ngx_mcp_record_t *rec, ngx_mcp_event_t *ev,
    ngx_mcp_change_t *change, uint64_t bytes, ngx_mcp_record_change_t *rc)
{
    u_char            history[NGX_MCP_BLOCK_DATA];
    ngx_uint_t        i, reason;
    ngx_mcp_record_t  before;

    before = *rec;
    ngx_memcpy(history, rec->history.data, rec->history.len);
    ngx_memzero(rc, sizeof(ngx_mcp_record_change_t));

    for ( ;; ) {

        for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
            rc->lengths[i] = (uint32_t) rec->payload[i].len;
        }

        reason = ngx_mcp_record_change(rec, ev, change, rc);

        if (reason != NGX_MCP_OK || change == NULL
            || change->max_owner_bytes == 0
            || rc->growth <= 0
            || bytes + rc->growth <= change->max_owner_bytes)
        {
            return reason;
        }

        *rec = before;
        ngx_memcpy(rec->history.data, history, rec->history.len);

        if (!rc->diagnosed) {
            return NGX_MCP_LIMIT_OWNER_BYTES;
        }

        rc->plain = 1;
        plain++;
    }
}


static void
count(ngx_uint_t reason, ngx_mcp_record_change_t *rc)
{
    seen[reason]++;

    if (reason == NGX_MCP_OK) {
        diagnosed += rc->diagnosed;
        requeued += rc->requeued;
        turned += rc->turned;
        moved += rc->moved;
        unseen += !rc->changed;
        removed += rc->removed;
    }
}


/* flags of the change by what the table did; numbers as the store sets them */

static const char *
numbers(ngx_mcp_record_t *rec, ngx_mcp_record_t *now,
    ngx_mcp_record_change_t *rc)
{
    ngx_uint_t  i;

    if (rc->changed != (rec->changed != now->changed)
        || rc->turned != (rec->turned != now->turned)
        || rc->moved != (rec->moved != now->moved)
        || rc->requeued != (rec->queue_seq != now->queue_seq))
    {
        return "flags";
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (rc->lengths[i] != now->payload[i].len) {
            return "lengths";
        }
    }

    rec->changed = now->changed;
    rec->turned = now->turned;
    rec->moved = now->moved;
    rec->queue_seq = now->queue_seq;

    return NULL;
}


static const char *
life(ngx_mcp_zone_t *zone)
{
    uint64_t                  bytes;
    ngx_uint_t                i, reason, want;
    const char               *err;
    ngx_mcp_slot_t           *s;
    ngx_mcp_event_t           ev;
    ngx_mcp_table_t          *t;
    ngx_mcp_change_t          change, *payloads;
    ngx_mcp_record_t          rec, now;
    ngx_mcp_record_change_t   rc;

    t = zone->table;
    s = create(zone);
    read_slot(zone, s, &rec);

    for (i = 0; i < EVENTS; i++) {
        any_event(s, &ev, &change);

        payloads = (chance(8) || ev.type == NGX_MCP_EV_EXPIRE) ? NULL
                                                               : &change;

        bytes = ngx_mcp_name(t, s->owner)->bytes;
        want = ngx_mcp_change_locked(t, s, &ev, payloads);
        reason = change_record(&rec, &ev, payloads, bytes, &rc);

        if (reason != want) {
            diag("event %lu: reason %lu, in the table %lu",
                 (unsigned long) ev.type, (unsigned long) reason,
                 (unsigned long) want);
            return "reason";
        }

        count(reason, &rc);

        if (reason == NGX_MCP_OK && ev.type == NGX_MCP_EV_EXPIRE) {
            return rc.removed ? NULL : "removed";
        }

        if (reason == NGX_MCP_OK
            && ngx_mcp_name(t, s->owner)->bytes != bytes + rc.growth)
        {
            return "growth";
        }

        read_slot(zone, s, &now);

        err = (reason == NGX_MCP_OK) ? numbers(&rec, &now, &rc) : NULL;

        if (err == NULL) {
            err = differs(&rec, &now);
        }

        if (err) {
            diag("event %lu to state %d", (unsigned long) ev.type,
                 now.task.state);
            return err;
        }
    }

    return NULL;
}


int
main(void)
{
    ngx_uint_t       i, lives;
    const char      *err;
    ngx_mcp_zone_t  *zone;

    srandom(20);
    ngx_current_msec = 100000;

    for (i = 0; i < sizeof(text); i++) {
        text[i] = (char) ('a' + i % 26);
    }

    err = NULL;
    zone = NULL;

    for (lives = 0; lives < 4000 && err == NULL; lives++) {

        if (lives % TASKS == 0) {
            zone = test_zone(1 << 20, 0);
        }

        err = life(zone);
        ngx_reset_pool(test_pool);
    }

    ok(err == NULL, "%lu tasks change in the same way%s%s",
       (unsigned long) lives, err ? ", but not: " : "", err ? err : "");

    ok(seen[NGX_MCP_OK] > 10000 && seen[NGX_MCP_TERMINAL]
       && seen[NGX_MCP_STATE_INVALID] && seen[NGX_MCP_LEASE_LOST]
       && seen[NGX_MCP_PROGRESS_BACKWARDS]
       && seen[NGX_MCP_PAYLOAD_TOO_LARGE] && seen[NGX_MCP_LIMIT_OWNER_BYTES],
       "with every refusal");
    ok(plain && diagnosed && requeued && turned && moved && unseen && removed,
       "with and without diagnoses, in the queue again, and removed");

    return done_testing();
}
