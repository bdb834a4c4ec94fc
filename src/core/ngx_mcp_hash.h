
/*
 * Keyed hashes.  Owners and tool names come from clients, so their hashes
 * must not be predictable: one bucket must not be filled on purpose.
 */


#ifndef _NGX_MCP_HASH_H_INCLUDED_
#define _NGX_MCP_HASH_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


uint64_t ngx_mcp_siphash(const uint64_t key[2], const u_char *p, size_t len);


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
