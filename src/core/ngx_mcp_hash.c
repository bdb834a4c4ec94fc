
#include "ngx_mcp_hash.h"


#define ngx_mcp_rotl(x, b)  (((x) << (b)) | ((x) >> (64 - (b))))


static void
ngx_mcp_sipround(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ngx_mcp_rotl(v[1], 13);
    v[1] ^= v[0];
    v[0] = ngx_mcp_rotl(v[0], 32);

    v[2] += v[3];
    v[3] = ngx_mcp_rotl(v[3], 16);
    v[3] ^= v[2];

    v[0] += v[3];
    v[3] = ngx_mcp_rotl(v[3], 21);
    v[3] ^= v[0];

    v[2] += v[1];
    v[1] = ngx_mcp_rotl(v[1], 17);
    v[1] ^= v[2];
    v[2] = ngx_mcp_rotl(v[2], 32);
}


/* SipHash-2-4 (Aumasson, Bernstein) */

uint64_t
ngx_mcp_siphash(const uint64_t key[2], const u_char *p, size_t len)
{
    uint64_t  v[4], m;
    size_t    i, left;

    v[0] = key[0] ^ 0x736f6d6570736575ULL;
    v[1] = key[1] ^ 0x646f72616e646f6dULL;
    v[2] = key[0] ^ 0x6c7967656e657261ULL;
    v[3] = key[1] ^ 0x7465646279746573ULL;

    for (left = len; left >= 8; left -= 8, p += 8) {

        /* little endian whatever the machine, as the definition says */

        for (m = 0, i = 0; i < 8; i++) {
            m |= (uint64_t) p[i] << (8 * i);
        }

        v[3] ^= m;
        ngx_mcp_sipround(v);
        ngx_mcp_sipround(v);
        v[0] ^= m;
    }

    m = (uint64_t) len << 56;

    for (i = 0; i < left; i++) {
        m |= (uint64_t) p[i] << (8 * i);
    }

    v[3] ^= m;
    ngx_mcp_sipround(v);
    ngx_mcp_sipround(v);
    v[0] ^= m;

    v[2] ^= 0xff;
    ngx_mcp_sipround(v);
    ngx_mcp_sipround(v);
    ngx_mcp_sipround(v);
    ngx_mcp_sipround(v);

    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
