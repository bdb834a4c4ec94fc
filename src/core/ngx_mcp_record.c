
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_record.h"

#include <math.h>


#define FIELD(name, type, member, max, changes)                               \
    { name, NGX_MCP_FIELD_##type, offsetof(ngx_mcp_record_t, member), max,    \
      changes }

#define ngx_mcp_member(type, rec, field)                                      \
    (*(type *) ((u_char *) (rec) + (field)->offset))

/* upper limits of fields */
#define NUMBER  NGX_MCP_RECORD_MAX
#define COUNT   NGX_MCP_RECORD_COUNT
#define ANY32   0xffffffff
#define ANY8    0xff
#define CAUSES  NGX_MCP_CAUSE_PROCESS_LOST
#define CALLS   NGX_MCP_CALLS


typedef uint64_t (*ngx_mcp_clock_pt)(uint64_t time, uint64_t now,
    uint64_t wall);


static ngx_int_t ngx_mcp_record_text(ngx_mcp_field_t *field,
    ngx_mcp_value_t *value, ngx_str_t *text);
static ngx_int_t ngx_mcp_record_state(ngx_str_t *text, uint8_t *state);
static ngx_int_t ngx_mcp_record_real(ngx_mcp_value_t *value, double *real);
static ngx_int_t ngx_mcp_record_number(ngx_mcp_field_t *field,
    ngx_mcp_value_t *value, uint64_t *number);
static void ngx_mcp_record_times(ngx_mcp_record_t *rec,
    ngx_mcp_clock_pt convert, uint64_t now, uint64_t wall);
static uint64_t ngx_mcp_to_store(uint64_t time, uint64_t now, uint64_t wall);
static uint64_t ngx_mcp_from_store(uint64_t time, uint64_t now, uint64_t wall);


/*
 * task.holder and task.worker are not saved: they are valid only in the memory
 * of one zone.
 */

ngx_mcp_field_t  ngx_mcp_fields[] = {
    FIELD("seq", U64, seq, COUNT, 0),
    FIELD("id", ID, id, NGX_MCP_ID_TEXT, 0),
    FIELD("owner", NAME, owner, NGX_MCP_MAX_NAME, 0),
    FIELD("tool", NAME, tool, NGX_MCP_MAX_NAME, 0),
    FIELD("method", TEXT, method, NGX_MCP_MAX_METHOD, 0),
    FIELD("token", TEXT, token, NGX_MCP_MAX_TOKEN, 0),
    FIELD("session", TEXT, session, NGX_MCP_MAX_NAME, 0),
    FIELD("state", STATE, task.state, NGX_MCP_MAX_NAME, 1),
    FIELD("version", U64, task.version, COUNT, 1),
    FIELD("revision", U64, revision, COUNT, 1),
    FIELD("attempt", U8, task.attempt, ANY8, 1),
    FIELD("progress", REAL, task.progress, 0, 1),
    FIELD("total", REAL, task.total, 0, 1),
    FIELD("cause", U8, task.cause, CAUSES, 1),
    FIELD("flags", U8, task.flags, NGX_MCP_FLAGS_SAVED, 1),
    FIELD("lease", BITS, task.lease_token, 0, 1),
    FIELD("created_at", U64, task.created, NUMBER, 0),
    FIELD("updated_at", U64, task.updated, NUMBER, 1),
    FIELD("expires_at", TIME, task.expires, NUMBER, 1),
    FIELD("step_end_at", TIME, task.step_end, NUMBER, 1),
    FIELD("phase_end_at", PHASE, task.phase_end, NUMBER, 1),
    FIELD("phase_left", PHASE_SPAN, task.phase_end, NUMBER, 1),
    FIELD("since_at", PHASE, task.since, NUMBER, 1),
    FIELD("ran", PHASE_SPAN, task.since, NUMBER, 1),
    FIELD("changed", U64, changed, COUNT, 1),
    FIELD("turned", U64, turned, COUNT, 1),
    FIELD("moved", U64, moved, COUNT, 1),
    FIELD("queue_seq", U64, queue_seq, COUNT, 1),
    FIELD("peak", REAL, peak, 0, 1),
    FIELD("ttl", SPAN, task.ttl, NUMBER, 0),
    FIELD("lease_time", SPAN32, task.policy.lease, ANY32, 0),
    FIELD("queue_timeout", SPAN32, task.policy.queue_timeout, ANY32, 0),
    FIELD("run_timeout", SPAN32, task.policy.run_timeout, ANY32, 0),
    FIELD("backoff", SPAN32, task.policy.backoff, ANY32, 0),
    FIELD("poll_interval", SPAN32, task.policy.poll_interval, ANY32, 0),
    FIELD("keep_completed", SPAN32, task.policy.keep_completed, ANY32, 0),
    FIELD("keep_failed", SPAN32, task.policy.keep_failed, ANY32, 0),
    FIELD("keep_cancelled", SPAN32, task.policy.keep_cancelled, ANY32, 0),
    FIELD("route", U32, task.policy.route, ANY32, 0),
    FIELD("attempts", U8, task.policy.attempts, ANY8, 0),
    FIELD("priority", U8, task.policy.priority, NGX_MCP_PRIORITIES - 1, 0),
    FIELD("calls", U8, task.policy.calls, CALLS, 0),
    FIELD("history", BYTES, history, NGX_MCP_MAX_NAME, 1)
};

ngx_uint_t  ngx_mcp_nfields = sizeof(ngx_mcp_fields)
                              / sizeof(ngx_mcp_field_t);


ngx_mcp_payload_field_t  ngx_mcp_payload_fields[NGX_MCP_PAYLOADS] = {
    { ngx_string("params"), 0 },
    { ngx_string("metadata"), 1 },
    { ngx_string("message"), 2 },
    { ngx_string("result"), 3 },
    { ngx_string("input_requests"), 4 },
    { ngx_string("input_responses"), 5 }
};


ngx_uint_t
ngx_mcp_record_payload(ngx_uint_t number)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (ngx_mcp_payload_fields[i].number == number) {
            break;
        }
    }

    return i;
}


/*
 * The value refers to the record's own text or bytes; the text of an id is in
 * the value itself.
 */

void
ngx_mcp_record_get(ngx_mcp_record_t *rec, ngx_mcp_field_t *field,
    ngx_mcp_value_t *value)
{
    ngx_uint_t  asks;

    asks = (rec->task.state == NGX_MCP_INPUT_REQUIRED);
    value->type = NGX_MCP_VALUE_NUMBER;

    switch (field->type) {

    case NGX_MCP_FIELD_ID:
        value->type = NGX_MCP_VALUE_TEXT;
        value->text.data = value->id;
        value->text.len = ngx_mcp_id_text(value->id, &rec->id) - value->id;
        return;

    case NGX_MCP_FIELD_STATE:
        value->type = NGX_MCP_VALUE_TEXT;
        value->text = *ngx_mcp_state_name(rec->task.state);
        return;

    case NGX_MCP_FIELD_NAME:
    case NGX_MCP_FIELD_TEXT:
    case NGX_MCP_FIELD_BYTES:
        value->text = ngx_mcp_member(ngx_str_t, rec, field);
        value->type = (field->type == NGX_MCP_FIELD_BYTES)
                      ? NGX_MCP_VALUE_BYTES : NGX_MCP_VALUE_TEXT;

        if (value->text.len == 0 && field->type != NGX_MCP_FIELD_NAME) {
            value->type = NGX_MCP_VALUE_NONE;
        }

        return;

    case NGX_MCP_FIELD_REAL:
        value->real = ngx_mcp_member(double, rec, field);
        value->type = (value->real < 0) ? NGX_MCP_VALUE_NONE
                                        : NGX_MCP_VALUE_REAL;
        return;

    case NGX_MCP_FIELD_U8:
        value->number = ngx_mcp_member(uint8_t, rec, field);
        return;

    case NGX_MCP_FIELD_U32:
        value->number = ngx_mcp_member(uint32_t, rec, field);
        return;

    case NGX_MCP_FIELD_SPAN32:
        value->number = ngx_mcp_member(uint32_t, rec, field);

        if (value->number == NGX_MCP_UNLIMITED) {
            value->type = NGX_MCP_VALUE_NONE;
        }

        return;

    case NGX_MCP_FIELD_U64:
    case NGX_MCP_FIELD_BITS:
        value->number = ngx_mcp_member(uint64_t, rec, field);
        return;
    }

    value->number = ngx_mcp_member(uint64_t, rec, field);

    if (value->number == NGX_MCP_NEVER
        || (field->type == NGX_MCP_FIELD_PHASE && asks)
        || (field->type == NGX_MCP_FIELD_PHASE_SPAN && !asks))
    {
        value->type = NGX_MCP_VALUE_NONE;
    }
}


/*
 * The reverse; the record then refers to the value's text or bytes.  NGX_ERROR
 * if the value is not valid for the field: data from a store is checked like
 * data from a client.
 */

ngx_int_t
ngx_mcp_record_set(ngx_mcp_record_t *rec, ngx_mcp_field_t *field,
    ngx_mcp_value_t *value)
{
    double      real;
    uint64_t    number;
    ngx_str_t   text;
    ngx_uint_t  asks;

    if (field->type <= NGX_MCP_FIELD_BYTES) {

        if (ngx_mcp_record_text(field, value, &text) != NGX_OK) {
            return NGX_ERROR;
        }

        if (field->type == NGX_MCP_FIELD_ID) {
            return ngx_mcp_id_parse(&rec->id, &text) == NGX_OK ? NGX_OK
                                                               : NGX_ERROR;
        }

        if (field->type == NGX_MCP_FIELD_STATE) {
            return ngx_mcp_record_state(&text, &rec->task.state);
        }

        ngx_mcp_member(ngx_str_t, rec, field) = text;

        return NGX_OK;
    }

    if (field->type == NGX_MCP_FIELD_REAL) {

        if (ngx_mcp_record_real(value, &real) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_mcp_member(double, rec, field) = real;

        return NGX_OK;
    }

    if (ngx_mcp_record_number(field, value, &number) != NGX_OK) {
        return NGX_ERROR;
    }

    asks = (rec->task.state == NGX_MCP_INPUT_REQUIRED);

    if (field->type == NGX_MCP_FIELD_U8) {
        ngx_mcp_member(uint8_t, rec, field) = (uint8_t) number;

    } else if (field->type == NGX_MCP_FIELD_U32
               || field->type == NGX_MCP_FIELD_SPAN32)
    {
        ngx_mcp_member(uint32_t, rec, field) = (uint32_t) number;

    } else if (field->type != (asks ? NGX_MCP_FIELD_PHASE
                                    : NGX_MCP_FIELD_PHASE_SPAN))
    {
        /* the state decides which of PHASE and PHASE_SPAN is used */

        ngx_mcp_member(uint64_t, rec, field) = number;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_record_text(ngx_mcp_field_t *field, ngx_mcp_value_t *value,
    ngx_str_t *text)
{
    if (value->type == NGX_MCP_VALUE_NONE) {
        ngx_str_null(text);

        return (field->type == NGX_MCP_FIELD_TEXT
                || field->type == NGX_MCP_FIELD_BYTES) ? NGX_OK : NGX_ERROR;
    }

    *text = value->text;

    return ((value->type == NGX_MCP_VALUE_TEXT
             || value->type == NGX_MCP_VALUE_BYTES)
            && text->len <= field->max) ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_mcp_record_state(ngx_str_t *text, uint8_t *state)
{
    ngx_str_t  *name;

    for (*state = NGX_MCP_QUEUED; *state < NGX_MCP_STATES; (*state)++) {
        name = ngx_mcp_state_name(*state);

        if (name->len == text->len
            && ngx_memcmp(name->data, text->data, text->len) == 0)
        {
            return NGX_OK;
        }
    }

    return NGX_ERROR;
}


/* infinity is an error: JSON has no such number */

static ngx_int_t
ngx_mcp_record_real(ngx_mcp_value_t *value, double *real)
{
    switch (value->type) {

    case NGX_MCP_VALUE_NONE:
        *real = -1;
        return NGX_OK;

    case NGX_MCP_VALUE_NUMBER:
        *real = (double) (int64_t) value->number;
        break;

    case NGX_MCP_VALUE_REAL:
        *real = value->real;
        break;

    default:
        return NGX_ERROR;
    }

    if (*real < 0) {
        *real = -1;
    }

    return isfinite(*real) ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_mcp_record_number(ngx_mcp_field_t *field, ngx_mcp_value_t *value,
    uint64_t *number)
{
    if (value->type == NGX_MCP_VALUE_NONE) {
        *number = (field->type == NGX_MCP_FIELD_SPAN32) ? NGX_MCP_UNLIMITED
                                                        : NGX_MCP_NEVER;

        return (field->type >= NGX_MCP_FIELD_SPAN) ? NGX_OK : NGX_ERROR;
    }

    *number = value->number;

    return (value->type == NGX_MCP_VALUE_NUMBER
            && (*number <= field->max
                || field->type == NGX_MCP_FIELD_BITS))
           ? NGX_OK : NGX_ERROR;
}


void
ngx_mcp_record_to_store(ngx_mcp_record_t *rec, uint64_t now, uint64_t wall)
{
    ngx_mcp_record_times(rec, ngx_mcp_to_store, now, wall);
}


void
ngx_mcp_record_from_store(ngx_mcp_record_t *rec, uint64_t now, uint64_t wall)
{
    ngx_mcp_record_times(rec, ngx_mcp_from_store, now, wall);
}


static void
ngx_mcp_record_times(ngx_mcp_record_t *rec, ngx_mcp_clock_pt convert,
    uint64_t now, uint64_t wall)
{
    uint64_t         *time;
    ngx_uint_t        i, asks;
    ngx_mcp_field_t  *field;

    asks = (rec->task.state == NGX_MCP_INPUT_REQUIRED);

    for (i = 0; i < ngx_mcp_nfields; i++) {
        field = &ngx_mcp_fields[i];

        if (field->type == NGX_MCP_FIELD_TIME
            || (field->type == NGX_MCP_FIELD_PHASE && !asks))
        {
            time = &ngx_mcp_member(uint64_t, rec, field);

            if (*time != NGX_MCP_NEVER) {
                *time = convert(*time, now, wall);
            }
        }
    }
}


/* a time beyond the range of a store becomes NGX_MCP_NEVER */

static uint64_t
ngx_mcp_to_store(uint64_t time, uint64_t now, uint64_t wall)
{
    if (time > now) {
        return (time - now <= NGX_MCP_RECORD_MAX - wall) ? time - now + wall
                                                         : NGX_MCP_NEVER;
    }

    return (now - time < wall) ? wall - (now - time) : 0;
}


/* a time before the start of the monotonic clock becomes 0 */

static uint64_t
ngx_mcp_from_store(uint64_t time, uint64_t now, uint64_t wall)
{
    if (time > wall) {
        return time - wall + now;
    }

    return (wall - time < now) ? now - (wall - time) : 0;
}
