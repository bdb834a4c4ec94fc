
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A task outside of a table, and the table of its fields.
 *
 * The only codec of a task: a store walks the fields, and writes or reads a
 * value for each; what a value means is known here.  Payloads, which are
 * large and change by themselves, are beside the fields.
 *
 * In memory a task's times are of the monotonic clock, which ends with the
 * machine's life.  In a store they are of the wall clock, in milliseconds:
 * store time.  A record has the one or the other, and is converted as a whole.
 *
 * The revision grows with every write, also with those that clients do not
 * see as a version.
 */


#ifndef _NGX_MCP_RECORD_H_INCLUDED_
#define _NGX_MCP_RECORD_H_INCLUDED_


#include "ngx_mcp_payload.h"


#define NGX_MCP_RECORD_ALL   ((1u << NGX_MCP_PAYLOADS) - 1)

/* numbers of a store are signed */
#define NGX_MCP_RECORD_MAX   ((uint64_t) -1 >> 1)

/*
 * Numbers that grow by one, and by a jump with each start, are far below this,
 * as they are for clients, whose numbers may have 53 bits.  A store may number
 * payloads by that of their task.
 */
#define NGX_MCP_RECORD_COUNT  (1ULL << 52)


typedef struct {
    ngx_mcp_id_t    id;
    uint64_t        seq;               /* order of creation */
    uint64_t        revision;
    uint64_t        changed;           /* see ngx_mcp_body_t */
    uint64_t        turned;
    uint64_t        moved;
    uint64_t        queue_seq;
    double          peak;
    ngx_mcp_task_t  task;

    ngx_str_t       owner;
    ngx_str_t       tool;
    ngx_str_t       token;             /* empty: none */
    ngx_str_t       session;           /* empty: none */
    ngx_str_t       method;
    ngx_str_t       history;           /* see ngx_mcp_history.h */

    ngx_uint_t      mask;              /* payloads that are here */
    ngx_str_t       payload[NGX_MCP_PAYLOADS];
} ngx_mcp_record_t;


/* what a field has; some values stand for none */

typedef enum {
    /* bytes */
    NGX_MCP_FIELD_ID = 0,     /* as text */
    NGX_MCP_FIELD_STATE,      /* its name */
    NGX_MCP_FIELD_NAME,       /* may be empty */
    NGX_MCP_FIELD_TEXT,       /* empty: none */
    NGX_MCP_FIELD_BYTES,      /* empty: none */

    /* numbers */
    NGX_MCP_FIELD_U64,
    NGX_MCP_FIELD_BITS,       /* 64, any of them */
    NGX_MCP_FIELD_U32,
    NGX_MCP_FIELD_U8,

    /* numbers that there may be none of */
    NGX_MCP_FIELD_SPAN,       /* 64 bits; NEVER: none */
    NGX_MCP_FIELD_SPAN32,     /* UNLIMITED: none */
    NGX_MCP_FIELD_REAL,       /* negative: none */
    NGX_MCP_FIELD_TIME,       /* NEVER: none */

    /* a time, and for a task that waits for input a duration instead */
    NGX_MCP_FIELD_PHASE,
    NGX_MCP_FIELD_PHASE_SPAN
} ngx_mcp_field_e;


typedef struct {
    const char  *name;
    ngx_uint_t   type;
    size_t       offset;            /* in a record */
    uint64_t     max;               /* value, or bytes */
    ngx_uint_t   changes;           /* during a task's life */
} ngx_mcp_field_t;


typedef enum {
    NGX_MCP_VALUE_NONE = 0,
    NGX_MCP_VALUE_NUMBER,
    NGX_MCP_VALUE_REAL,
    NGX_MCP_VALUE_TEXT,
    NGX_MCP_VALUE_BYTES
} ngx_mcp_value_e;


typedef struct {
    ngx_uint_t  type;
    uint64_t    number;
    double      real;
    ngx_str_t   text;              /* or bytes */
    u_char      id[NGX_MCP_ID_TEXT];
} ngx_mcp_value_t;


/* the key comes first, and the state before what depends on it */
extern ngx_mcp_field_t  ngx_mcp_fields[];
extern ngx_uint_t       ngx_mcp_nfields;

/* a payload has a name and a number in stores, which never change */

typedef struct {
    ngx_str_t   name;
    ngx_uint_t  number;
} ngx_mcp_payload_field_t;


/* numbers are below this */
#define NGX_MCP_PAYLOAD_NUMBERS  8

/* in the order of ngx_mcp_payload_e */
extern ngx_mcp_payload_field_t  ngx_mcp_payload_fields[];

/* of that number; NGX_MCP_PAYLOADS: there is none */
ngx_uint_t ngx_mcp_record_payload(ngx_uint_t number);


void ngx_mcp_record_get(ngx_mcp_record_t *rec, ngx_mcp_field_t *field,
    ngx_mcp_value_t *value);
ngx_int_t ngx_mcp_record_set(ngx_mcp_record_t *rec, ngx_mcp_field_t *field,
    ngx_mcp_value_t *value);

void ngx_mcp_record_to_store(ngx_mcp_record_t *rec, uint64_t now,
    uint64_t wall);
void ngx_mcp_record_from_store(ngx_mcp_record_t *rec, uint64_t now,
    uint64_t wall);


#endif /* _NGX_MCP_RECORD_H_INCLUDED_ */
