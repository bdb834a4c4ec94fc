
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Keyed hashes.  Owners and tool names come from clients, so their hashes must
 * not be predictable: otherwise a client could fill one bucket on purpose.
 *
 * A seal is a keyed hash of 128 bits.  Clients receive sealed data and send it
 * back; without the secret they can neither forge nor change it.
 */


#ifndef _NGX_MCP_HASH_H_INCLUDED_
#define _NGX_MCP_HASH_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* the maximum length of sealed data, in bytes */
#define NGX_MCP_SEAL_MAX  48


/* the purpose of a seal */

typedef enum {
    NGX_MCP_SEAL_SESSION = 1,
    NGX_MCP_SEAL_CURSOR,
    NGX_MCP_SEAL_CURSOR_MASK,
    NGX_MCP_SEAL_REQUEST_STATE,
    NGX_MCP_SEAL_CALL,
    NGX_MCP_SEAL_STREAM,
    NGX_MCP_SEAL_OWNER
} ngx_mcp_seal_e;


typedef struct {
    uint64_t  word[2];
} ngx_mcp_seal_t;


uint64_t ngx_mcp_siphash(const uint64_t key[2], const u_char *p, size_t len);
void ngx_mcp_siphash128(uint64_t hash[2], const uint64_t key[2],
    const u_char *p, size_t len);

void ngx_mcp_seal(ngx_mcp_seal_t *seal, const uint64_t secret[2],
    ngx_mcp_seal_e purpose, ngx_str_t *owner, const void *data, size_t len);
ngx_uint_t ngx_mcp_seal_equal(const ngx_mcp_seal_t *a,
    const ngx_mcp_seal_t *b);


/* splitmix64's finalizer: spreads a counter over all 64 bits */

static ngx_inline uint64_t
ngx_mcp_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebULL;
    x ^= x >> 31;

    return x;
}


#endif /* _NGX_MCP_HASH_H_INCLUDED_ */
