
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_redis_record.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_valid.h"

#include <math.h>


/* offsets of what is not in the table of fields */
#define NGX_MCP_REDIS_AT_LENGTHS  208
#define NGX_MCP_REDIS_AT_TOKENS   232
#define NGX_MCP_REDIS_AT_HISTORY  280
#define NGX_MCP_REDIS_AT_REST     NGX_MCP_REDIS_HEAD

/* the owner's hash, and the lengths of the names */
#define NGX_MCP_REDIS_FIXED       (16 + 8)

/* upper limits of fields */
#define COUNT     NGX_MCP_RECORD_COUNT
#define NUMBER    NGX_MCP_RECORD_MAX
#define DATE      NGX_MCP_VALID_DATE
#define ANY64     ((uint64_t) -1)
#define ANY32     ((uint32_t) -1)
#define ANY8      0xff
#define STATES    (NGX_MCP_STATES - 1)
#define CAUSES    NGX_MCP_CAUSE_PROCESS_LOST
#define PRIORITY  (NGX_MCP_PRIORITIES - 1)

#define FIELD(at, type, name, member, max)                                    \
    { name, at, NGX_MCP_REDIS_##type,                                         \
      offsetof(ngx_mcp_redis_record_t, member), max }

#define ngx_mcp_redis_member(type, rr, field)                                 \
    (*(type *) ((u_char *) (rr) + (field)->member))


typedef enum {
    NGX_MCP_REDIS_U8 = 0,
    NGX_MCP_REDIS_BITS8,         /* max has the bits that may be set */
    NGX_MCP_REDIS_U32,
    NGX_MCP_REDIS_U64,
    NGX_MCP_REDIS_TIME,          /* or a duration; NEVER: none */
    NGX_MCP_REDIS_REAL           /* negative: none */
} ngx_mcp_redis_field_e;


typedef struct {
    const char  *name;
    size_t       at;             /* in the head */
    ngx_uint_t   type;
    size_t       member;         /* offset in the record */
    uint64_t     max;
} ngx_mcp_redis_field_t;


static ngx_int_t ngx_mcp_redis_decode_field(ngx_mcp_redis_record_t *rr,
    ngx_mcp_redis_field_t *field, u_char *p);
static ngx_int_t ngx_mcp_redis_decode_history(ngx_mcp_redis_record_t *rr,
    u_char *p, const char **what);
static ngx_int_t ngx_mcp_redis_decode_rest(ngx_mcp_redis_record_t *rr,
    u_char *p, size_t len, const char **what);
static void ngx_mcp_redis_encode_field(u_char *p, ngx_mcp_redis_record_t *rr,
    ngx_mcp_redis_field_t *field);
static uint64_t ngx_mcp_redis_get(u_char *p, size_t size);
static u_char *ngx_mcp_redis_put(u_char *p, size_t size, uint64_t n);
static u_char *ngx_mcp_redis_put_text(u_char *p, ngx_str_t *text);
static ngx_uint_t ngx_mcp_redis_permute(ngx_mcp_id_t *id,
    const uint64_t secret[2]);


static ngx_mcp_redis_field_t  ngx_mcp_redis_fields[] = {
    FIELD(0, U64, "revision", rec.revision, COUNT),
    FIELD(8, U64, "version", rec.task.version, COUNT),
    FIELD(16, U64, "changed", rec.changed, COUNT),
    FIELD(24, U64, "turned", rec.turned, COUNT),
    FIELD(32, U64, "moved", rec.moved, COUNT),
    FIELD(40, U64, "queue_seq", rec.queue_seq, COUNT),
    FIELD(48, U64, "seq", rec.seq, COUNT),
    FIELD(56, U8, "state", rec.task.state, STATES),
    FIELD(57, U8, "attempt", rec.task.attempt, ANY8),
    FIELD(58, BITS8, "flags", rec.task.flags, NGX_MCP_FLAGS_SAVED),
    FIELD(59, U8, "cause", rec.task.cause, CAUSES),
    FIELD(60, U8, "attempts", rec.task.policy.attempts, ANY8),
    FIELD(61, U8, "priority", rec.task.policy.priority, PRIORITY),
    FIELD(62, BITS8, "calls", rec.task.policy.calls, NGX_MCP_CALLS),
    FIELD(64, U64, "created_at", rec.task.created, DATE),
    FIELD(72, U64, "updated_at", rec.task.updated, DATE),
    FIELD(80, TIME, "expires_at", rec.task.expires, NUMBER),
    FIELD(88, TIME, "step_end_at", rec.task.step_end, NUMBER),
    FIELD(96, TIME, "phase_end_at", rec.task.phase_end, NUMBER),
    FIELD(104, TIME, "since_at", rec.task.since, NUMBER),
    FIELD(112, TIME, "ttl", rec.task.ttl, NUMBER),
    FIELD(120, U64, "lease", rec.task.lease_token, ANY64),
    FIELD(128, U64, "holder", rec.task.holder, ANY64),
    FIELD(136, U32, "seat", seat, ANY32),
    FIELD(140, U32, "worker", worker_len, NGX_MCP_WORKER_NAME),
    FIELD(144, REAL, "progress", rec.task.progress, 0),
    FIELD(152, REAL, "total", rec.task.total, 0),
    FIELD(160, REAL, "peak", rec.peak, 0),
    FIELD(168, U32, "lease_time", rec.task.policy.lease, ANY32),
    FIELD(172, U32, "queue_timeout", rec.task.policy.queue_timeout, ANY32),
    FIELD(176, U32, "run_timeout", rec.task.policy.run_timeout, ANY32),
    FIELD(180, U32, "backoff", rec.task.policy.backoff, ANY32),
    FIELD(184, U32, "poll_interval", rec.task.policy.poll_interval, ANY32),
    FIELD(188, U32, "keep_completed", rec.task.policy.keep_completed, ANY32),
    FIELD(192, U32, "keep_failed", rec.task.policy.keep_failed, ANY32),
    FIELD(196, U32, "keep_cancelled", rec.task.policy.keep_cancelled, ANY32),
    FIELD(200, U32, "route", rec.task.policy.route, ANY32),
    FIELD(204, U32, "epoch", epoch, ANY32)
};

#define NGX_MCP_REDIS_FIELDS                                                  \
    (sizeof(ngx_mcp_redis_fields) / sizeof(ngx_mcp_redis_field_t))

#define NGX_MCP_REDIS_AT_PENDING  63


ngx_int_t
ngx_mcp_redis_decode(ngx_mcp_redis_record_t *rr, ngx_mcp_id_t *id, u_char *p,
    size_t len, const char **what)
{
    u_char      *q;
    ngx_uint_t   i;

    ngx_memzero(rr, sizeof(ngx_mcp_redis_record_t));

    if (len < NGX_MCP_REDIS_HEAD) {
        *what = "length";
        return NGX_ERROR;
    }

    rr->rec.id = *id;

    for (i = 0; i < NGX_MCP_REDIS_FIELDS; i++) {
        if (ngx_mcp_redis_decode_field(rr, &ngx_mcp_redis_fields[i], p)
            != NGX_OK)
        {
            *what = ngx_mcp_redis_fields[i].name;
            return NGX_ERROR;
        }
    }

    if (rr->rec.task.state == NGX_MCP_FREE) {
        *what = "state";
        return NGX_ERROR;
    }

    q = p + NGX_MCP_REDIS_AT_LENGTHS;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        rr->lengths[i] = (uint32_t) ngx_mcp_redis_get(q, 4);
        q += 4;
    }

    ngx_memcpy(rr->tokens, p + NGX_MCP_REDIS_AT_TOKENS, sizeof(rr->tokens));

    if (ngx_mcp_redis_decode_history(rr, p, what) != NGX_OK) {
        return NGX_ERROR;
    }

    if (len == NGX_MCP_REDIS_HEAD) {
        return NGX_OK;
    }

    return ngx_mcp_redis_decode_rest(rr, p + NGX_MCP_REDIS_AT_REST,
                                     len - NGX_MCP_REDIS_AT_REST, what);
}


static ngx_int_t
ngx_mcp_redis_decode_field(ngx_mcp_redis_record_t *rr,
    ngx_mcp_redis_field_t *field, u_char *p)
{
    double    real;
    uint64_t  n;

    p += field->at;

    switch (field->type) {

    case NGX_MCP_REDIS_U8:
        ngx_mcp_redis_member(uint8_t, rr, field) = *p;
        return (*p <= field->max) ? NGX_OK : NGX_ERROR;

    case NGX_MCP_REDIS_BITS8:
        ngx_mcp_redis_member(uint8_t, rr, field) = *p;
        return (*p & ~field->max) ? NGX_ERROR : NGX_OK;

    case NGX_MCP_REDIS_U32:
        n = ngx_mcp_redis_get(p, 4);
        ngx_mcp_redis_member(uint32_t, rr, field) = (uint32_t) n;
        return (n <= field->max) ? NGX_OK : NGX_ERROR;

    case NGX_MCP_REDIS_REAL:
        n = ngx_mcp_redis_get(p, 8);
        ngx_memcpy(&real, &n, sizeof(double));

        if (!isfinite(real)) {
            return NGX_ERROR;
        }

        ngx_mcp_redis_member(double, rr, field) = (real < 0) ? -1 : real;
        return NGX_OK;

    default: /* NGX_MCP_REDIS_U64, NGX_MCP_REDIS_TIME */
        n = ngx_mcp_redis_get(p, 8);
        ngx_mcp_redis_member(uint64_t, rr, field) = n;

        return (n <= field->max
                || (field->type == NGX_MCP_REDIS_TIME && n == NGX_MCP_NEVER))
               ? NGX_OK : NGX_ERROR;
    }
}


/* a claim that is pending is added */

static ngx_int_t
ngx_mcp_redis_decode_history(ngx_mcp_redis_record_t *rr, u_char *p,
    const char **what)
{
    ngx_uint_t       pending;
    ngx_mcp_task_t  *task;

    task = &rr->rec.task;
    pending = p[NGX_MCP_REDIS_AT_PENDING];

    if (pending > 1 || (pending && task->state != NGX_MCP_RUNNING)) {
        *what = "pending";
        return NGX_ERROR;
    }

    ngx_memcpy(rr->history, p + NGX_MCP_REDIS_AT_HISTORY,
               NGX_MCP_REDIS_HISTORY);

    if (ngx_mcp_history_valid(rr->history, NGX_MCP_REDIS_HISTORY,
                              NGX_MCP_VALID_DATE - task->created)
        != NGX_OK)
    {
        *what = "history";
        return NGX_ERROR;
    }

    if (pending) {
        ngx_mcp_history_append(rr->history, NGX_MCP_REDIS_HISTORY,
                               task->created, task->updated, NGX_MCP_EV_CLAIM,
                               NGX_MCP_RUNNING, 0);
    }

    rr->rec.history.data = rr->history;
    rr->rec.history.len = NGX_MCP_REDIS_HISTORY;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_redis_decode_rest(ngx_mcp_redis_record_t *rr, u_char *p, size_t len,
    const char **what)
{
    size_t             names;
    ngx_mcp_record_t  *rec;

    rec = &rr->rec;
    *what = "length";

    if (len < NGX_MCP_REDIS_FIXED) {
        return NGX_ERROR;
    }

    ngx_memcpy(rr->owner_hash, p, 16);
    p += 16;

    rec->owner.len = (size_t) ngx_mcp_redis_get(p, 2);
    rec->tool.len = (size_t) ngx_mcp_redis_get(p + 2, 2);
    rec->token.len = p[4];
    rec->session.len = p[5];
    rec->method.len = p[6];

    if (p[7] != 0
        || rec->owner.len > NGX_MCP_MAX_NAME
        || rec->tool.len > NGX_MCP_MAX_NAME
        || rec->token.len > NGX_MCP_MAX_TOKEN)
    {
        return NGX_ERROR;
    }

    names = rec->owner.len + rec->tool.len + rec->token.len
            + rec->session.len + rec->method.len;

    len -= NGX_MCP_REDIS_FIXED;

    if (names > len || len - names != rr->lengths[NGX_MCP_PARAMS]) {
        return NGX_ERROR;
    }

    rec->owner.data = p + 8;
    rec->tool.data = rec->owner.data + rec->owner.len;
    rec->token.data = rec->tool.data + rec->tool.len;
    rec->session.data = rec->token.data + rec->token.len;
    rec->method.data = rec->session.data + rec->session.len;

    rec->payload[NGX_MCP_PARAMS].data = rec->method.data + rec->method.len;
    rec->payload[NGX_MCP_PARAMS].len = len - names;
    rec->mask = 1u << NGX_MCP_PARAMS;

    return NGX_OK;
}


void
ngx_mcp_redis_encode_head(u_char *p, ngx_mcp_redis_record_t *rr)
{
    size_t       len;
    u_char      *q;
    ngx_uint_t   i;

    ngx_memzero(p, NGX_MCP_REDIS_HEAD);

    for (i = 0; i < NGX_MCP_REDIS_FIELDS; i++) {
        ngx_mcp_redis_encode_field(p, rr, &ngx_mcp_redis_fields[i]);
    }

    p[NGX_MCP_REDIS_AT_PENDING] = (u_char) rr->pending;

    q = p + NGX_MCP_REDIS_AT_LENGTHS;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        q = ngx_mcp_redis_put(q, 4, rr->lengths[i]);
    }

    ngx_memcpy(p + NGX_MCP_REDIS_AT_TOKENS, rr->tokens, sizeof(rr->tokens));

    /* without what dropped entries have left behind */

    len = ngx_min(rr->history[0] + NGX_MCP_HISTORY_MIN,
                  NGX_MCP_REDIS_HISTORY);
    ngx_memcpy(p + NGX_MCP_REDIS_AT_HISTORY, rr->history, len);
}


static void
ngx_mcp_redis_encode_field(u_char *p, ngx_mcp_redis_record_t *rr,
    ngx_mcp_redis_field_t *field)
{
    uint64_t  n;

    p += field->at;

    switch (field->type) {

    case NGX_MCP_REDIS_U8:
        *p = ngx_mcp_redis_member(uint8_t, rr, field);
        return;

    case NGX_MCP_REDIS_BITS8:
        /* other flags belong to a slot */
        *p = ngx_mcp_redis_member(uint8_t, rr, field) & (u_char) field->max;
        return;

    case NGX_MCP_REDIS_U32:
        (void) ngx_mcp_redis_put(p, 4,
                                 ngx_mcp_redis_member(uint32_t, rr, field));
        return;

    default: /* NGX_MCP_REDIS_U64, NGX_MCP_REDIS_TIME, NGX_MCP_REDIS_REAL */
        ngx_memcpy(&n, (u_char *) rr + field->member, 8);
        (void) ngx_mcp_redis_put(p, 8, n);
    }
}


size_t
ngx_mcp_redis_rest_size(ngx_mcp_redis_record_t *rr)
{
    ngx_mcp_record_t  *rec;

    rec = &rr->rec;

    return NGX_MCP_REDIS_FIXED + rec->owner.len + rec->tool.len
           + rec->token.len + rec->session.len + rec->method.len
           + rec->payload[NGX_MCP_PARAMS].len;
}


u_char *
ngx_mcp_redis_encode_rest(u_char *p, ngx_mcp_redis_record_t *rr)
{
    ngx_mcp_record_t  *rec;

    rec = &rr->rec;

    p = ngx_cpymem(p, rr->owner_hash, 16);

    p = ngx_mcp_redis_put(p, 2, rec->owner.len);
    p = ngx_mcp_redis_put(p, 2, rec->tool.len);
    *p++ = (u_char) rec->token.len;
    *p++ = (u_char) rec->session.len;
    *p++ = (u_char) rec->method.len;
    *p++ = 0;

    p = ngx_mcp_redis_put_text(p, &rec->owner);
    p = ngx_mcp_redis_put_text(p, &rec->tool);
    p = ngx_mcp_redis_put_text(p, &rec->token);
    p = ngx_mcp_redis_put_text(p, &rec->session);
    p = ngx_mcp_redis_put_text(p, &rec->method);

    return ngx_mcp_redis_put_text(p, &rec->payload[NGX_MCP_PARAMS]);
}


void
ngx_mcp_redis_token_push(ngx_mcp_redis_record_t *rr, u_char *token)
{
    ngx_memmove(rr->tokens[1], rr->tokens[0],
                (NGX_MCP_REDIS_TOKENS - 1) * NGX_MCP_REDIS_TOKEN);
    ngx_memcpy(rr->tokens[0], token, NGX_MCP_REDIS_TOKEN);
}


ngx_uint_t
ngx_mcp_redis_token_has(u_char *head, u_char *token)
{
    ngx_uint_t  i;

    head += NGX_MCP_REDIS_AT_TOKENS;

    for (i = 0; i < NGX_MCP_REDIS_TOKENS; i++) {
        if (ngx_memcmp(head + i * NGX_MCP_REDIS_TOKEN, token,
                       NGX_MCP_REDIS_TOKEN)
            == 0)
        {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_mcp_redis_partition(ngx_mcp_id_t *id, const uint64_t secret[2],
    ngx_uint_t partitions)
{
    ngx_uint_t  n;

    n = (ngx_uint_t) ngx_mcp_redis_get(id->data + 14, 2);

    return (n ^ ngx_mcp_redis_permute(id, secret)) & (partitions - 1);
}


void
ngx_mcp_redis_place(ngx_mcp_id_t *id, const uint64_t secret[2],
    ngx_uint_t partitions, ngx_uint_t partition)
{
    ngx_uint_t  n;

    n = (ngx_uint_t) ngx_mcp_redis_get(id->data + 14, 2);
    n ^= ngx_mcp_redis_partition(id, secret, partitions) ^ partition;

    (void) ngx_mcp_redis_put(id->data + 14, 2, n);
}


static ngx_uint_t
ngx_mcp_redis_permute(ngx_mcp_id_t *id, const uint64_t secret[2])
{
    return (ngx_uint_t) (ngx_mcp_siphash(secret, id->data, 14) & 0xffff);
}


static uint64_t
ngx_mcp_redis_get(u_char *p, size_t size)
{
    uint64_t  n;

    for (n = 0; size; size--) {
        n = n << 8 | *p++;
    }

    return n;
}


static u_char *
ngx_mcp_redis_put(u_char *p, size_t size, uint64_t n)
{
    size_t  i;

    for (i = size; i-- > 0; /* void */) {
        p[i] = (u_char) n;
        n >>= 8;
    }

    return p + size;
}


static u_char *
ngx_mcp_redis_put_text(u_char *p, ngx_str_t *text)
{
    /* the data of an empty text may be NULL */

    return text->len ? ngx_cpymem(p, text->data, text->len) : p;
}
