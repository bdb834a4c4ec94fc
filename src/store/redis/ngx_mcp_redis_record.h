
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The bytes of a task in Redis.  A head of fixed size has everything that
 * changes, except payloads; a script replaces it as a whole.  The rest never
 * changes: names, method and params.  Integers are big-endian, and times are
 * in store time.
 *
 * claim.lua is the only script that changes fields of a head; it does not add
 * the claim to the history, but sets "pending", and the next reader adds it.
 */


#ifndef _NGX_MCP_REDIS_RECORD_H_INCLUDED_
#define _NGX_MCP_REDIS_RECORD_H_INCLUDED_


#include "ngx_mcp_record.h"


#define NGX_MCP_REDIS_HEAD     320

/* the last operations, by which one that is sent again is recognized */
#define NGX_MCP_REDIS_TOKENS   8
#define NGX_MCP_REDIS_TOKEN    6

#define NGX_MCP_REDIS_HISTORY  40


typedef struct {
    ngx_mcp_record_t  rec;            /* texts are in the decoded bytes */
    uint32_t          lengths[NGX_MCP_PAYLOADS];
    u_char            owner_hash[16];
    u_char            tokens[NGX_MCP_REDIS_TOKENS][NGX_MCP_REDIS_TOKEN];
    u_char            history[NGX_MCP_REDIS_HISTORY];
                                      /* rec.history points here */
    uint32_t          seat;           /* of the holder; 0: none */
    uint32_t          worker_len;     /* of the name of the last worker */
    uint32_t          epoch;
    ngx_uint_t        pending;        /* see above */
} ngx_mcp_redis_record_t;


/*
 * Decodes a head, or a head and the rest.  NGX_ERROR: invalid, and *what names
 * the field; data from a store is checked like data from a client.
 */
ngx_int_t ngx_mcp_redis_decode(ngx_mcp_redis_record_t *rr, ngx_mcp_id_t *id,
    u_char *p, size_t len, const char **what);

void ngx_mcp_redis_encode_head(u_char *p, ngx_mcp_redis_record_t *rr);
size_t ngx_mcp_redis_rest_size(ngx_mcp_redis_record_t *rr);
u_char *ngx_mcp_redis_encode_rest(u_char *p, ngx_mcp_redis_record_t *rr);

/* the newest token is the first */
void ngx_mcp_redis_token_push(ngx_mcp_redis_record_t *rr, u_char *token);
ngx_uint_t ngx_mcp_redis_token_has(u_char *head, u_char *token);

/*
 * Every id names a valid partition, and without the secret nobody can tell
 * which one.  partitions is a power of two, at most 65536.  place() changes
 * only those bits of an id that select the partition.
 */
ngx_uint_t ngx_mcp_redis_partition(ngx_mcp_id_t *id, const uint64_t secret[2],
    ngx_uint_t partitions);
void ngx_mcp_redis_place(ngx_mcp_id_t *id, const uint64_t secret[2],
    ngx_uint_t partitions, ngx_uint_t partition);


#endif /* _NGX_MCP_REDIS_RECORD_H_INCLUDED_ */
