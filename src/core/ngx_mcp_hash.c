
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_hash.h"


#define ngx_mcp_rotl(x, b)  (((x) << (b)) | ((x) >> (64 - (b))))


static ngx_inline void
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


static ngx_inline void
ngx_mcp_sip_init(uint64_t v[4], const uint64_t key[2])
{
    v[0] = key[0] ^ 0x736f6d6570736575ULL;
    v[1] = key[1] ^ 0x646f72616e646f6dULL;
    v[2] = key[0] ^ 0x6c7967656e657261ULL;
    v[3] = key[1] ^ 0x7465646279746573ULL;
}


/* SipHash defines words as little endian on every machine */

static ngx_inline uint64_t
ngx_mcp_sip_word(const u_char *p)
{
    uint64_t  m;

#if (NGX_HAVE_LITTLE_ENDIAN)

    ngx_memcpy(&m, p, sizeof(uint64_t));

#else

    size_t  i;

    for (m = 0, i = 0; i < 8; i++) {
        m |= (uint64_t) p[i] << (8 * i);
    }

#endif

    return m;
}


static ngx_inline void
ngx_mcp_sip_update(uint64_t v[4], const u_char *p, size_t len)
{
    uint64_t  m;
    size_t    i, left;

    for (left = len; left >= 8; left -= 8, p += 8) {

        m = ngx_mcp_sip_word(p);

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
}


static ngx_inline uint64_t
ngx_mcp_sip_final(uint64_t v[4])
{
    ngx_mcp_sipround(v);
    ngx_mcp_sipround(v);
    ngx_mcp_sipround(v);
    ngx_mcp_sipround(v);

    return v[0] ^ v[1] ^ v[2] ^ v[3];
}


/* SipHash-2-4 (Aumasson, Bernstein) */

uint64_t
ngx_mcp_siphash(const uint64_t key[2], const u_char *p, size_t len)
{
    uint64_t  v[4];

    ngx_mcp_sip_init(v, key);
    ngx_mcp_sip_update(v, p, len);

    v[2] ^= 0xff;

    return ngx_mcp_sip_final(v);
}


/* the authors' variant of SipHash-2-4 with 128 bits of output */

void
ngx_mcp_siphash128(uint64_t hash[2], const uint64_t key[2], const u_char *p,
    size_t len)
{
    uint64_t  v[4];

    ngx_mcp_sip_init(v, key);

    v[1] ^= 0xee;

    ngx_mcp_sip_update(v, p, len);

    v[2] ^= 0xee;
    hash[0] = ngx_mcp_sip_final(v);

    v[1] ^= 0xdd;
    hash[1] = ngx_mcp_sip_final(v);
}


/*
 * The key is derived from the secret and the owner, and the purpose is part of
 * the sealed message: a seal is valid for one owner and one purpose only.  len
 * must not exceed NGX_MCP_SEAL_MAX.
 */

void
ngx_mcp_seal(ngx_mcp_seal_t *seal, const uint64_t secret[2],
    ngx_mcp_seal_e purpose, ngx_str_t *owner, const void *data, size_t len)
{
    u_char    *p, message[NGX_MCP_SEAL_MAX + 1];
    uint64_t   key[2];

    ngx_mcp_siphash128(key, secret, owner->data, owner->len);

    message[0] = (u_char) purpose;
    p = ngx_cpymem(message + 1, data, len);

    ngx_mcp_siphash128(seal->word, key, message, p - message);
}


/* in constant time: timing must not show how much of a guess is right */

ngx_uint_t
ngx_mcp_seal_equal(const ngx_mcp_seal_t *a, const ngx_mcp_seal_t *b)
{
    volatile uint64_t  diff;

    diff = a->word[0] ^ b->word[0];
    diff |= a->word[1] ^ b->word[1];

    return diff == 0;
}
