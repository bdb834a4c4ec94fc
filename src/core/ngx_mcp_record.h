
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A task outside of a table, and the table of its fields.
 *
 * This is the only codec of a task: a store iterates over the fields and
 * writes or reads one value for each, without knowing its meaning.  Payloads
 * are large and change independently, so they are not fields.
 *
 * In memory, deadlines are on the monotonic clock, which starts again with
 * the machine.  In a store they are in store time: milliseconds since 1970.
 * A record uses one of the two for all its times and is converted as a whole.
 *
 * The revision grows with every write, also with writes that do not make a
 * new version for clients.
 */


#ifndef _NGX_MCP_RECORD_H_INCLUDED_
#define _NGX_MCP_RECORD_H_INCLUDED_


#include "ngx_mcp_payload.h"


#define NGX_MCP_RECORD_ALL   ((1u << NGX_MCP_PAYLOADS) - 1)

/* numbers in a store are signed */
#define NGX_MCP_RECORD_MAX   ((uint64_t) -1 >> 1)

/*
 * The limit of numbers that grow by one per change and jump with each start.
 * Clients read them as JSON numbers, which are exact up to 53 bits; and a
 * store may multiply a task's seq to make the keys of its payloads.
 */
#define NGX_MCP_RECORD_COUNT  (1ULL << 52)


typedef struct {
    ngx_mcp_id_t    id;
    uint64_t        seq;               /* order of creation */
    uint64_t        revision;          /* number of writes */
    uint64_t        changed;           /* see ngx_mcp_body_t for these */
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

    ngx_uint_t      mask;              /* payloads present, as bits */
    ngx_str_t       payload[NGX_MCP_PAYLOADS];
} ngx_mcp_record_t;


/* the type of a field; most types have a value that means "none" */

typedef enum {
    /* bytes */
    NGX_MCP_FIELD_ID = 0,     /* as text */
    NGX_MCP_FIELD_STATE,      /* its name */
    NGX_MCP_FIELD_NAME,       /* may be empty */
    NGX_MCP_FIELD_TEXT,       /* empty: none */
    NGX_MCP_FIELD_BYTES,      /* empty: none */

    /* numbers */
    NGX_MCP_FIELD_U64,
    NGX_MCP_FIELD_BITS,       /* any 64 bits */
    NGX_MCP_FIELD_U32,
    NGX_MCP_FIELD_U8,

    /* optional numbers */
    NGX_MCP_FIELD_SPAN,       /* duration; NEVER: none */
    NGX_MCP_FIELD_SPAN32,     /* 32 bits; UNLIMITED: none */
    NGX_MCP_FIELD_REAL,       /* negative: none */
    NGX_MCP_FIELD_TIME,       /* NEVER: none */

    /* two fields of one member, which depends on the state */
    NGX_MCP_FIELD_PHASE,      /* time; none if input is required */
    NGX_MCP_FIELD_PHASE_SPAN  /* duration; only if input is required */
} ngx_mcp_field_e;


typedef struct {
    const char  *name;
    ngx_uint_t   type;
    size_t       offset;            /* in a record */
    uint64_t     max;               /* value, or length in bytes */
    ngx_uint_t   changes;           /* 1: may change after creation */
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


/* the key is first; the state precedes the fields that depend on it */
extern ngx_mcp_field_t  ngx_mcp_fields[];
extern ngx_uint_t       ngx_mcp_nfields;

/* the name and number of a payload in stores; neither may ever change */

typedef struct {
    ngx_str_t   name;
    ngx_uint_t  number;
} ngx_mcp_payload_field_t;


/* all numbers are less than this */
#define NGX_MCP_PAYLOAD_NUMBERS  8

/* in the order of ngx_mcp_payload_e */
extern ngx_mcp_payload_field_t  ngx_mcp_payload_fields[];

/* the payload with that number; NGX_MCP_PAYLOADS: none has it */
ngx_uint_t ngx_mcp_record_payload(ngx_uint_t number);


void ngx_mcp_record_get(ngx_mcp_record_t *rec, ngx_mcp_field_t *field,
    ngx_mcp_value_t *value);
ngx_int_t ngx_mcp_record_set(ngx_mcp_record_t *rec, ngx_mcp_field_t *field,
    ngx_mcp_value_t *value);

/* now and wall are the same moment, monotonic and in store time */
void ngx_mcp_record_to_store(ngx_mcp_record_t *rec, uint64_t now,
    uint64_t wall);
void ngx_mcp_record_from_store(ngx_mcp_record_t *rec, uint64_t now,
    uint64_t wall);


#endif /* _NGX_MCP_RECORD_H_INCLUDED_ */
