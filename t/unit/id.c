
/* Ids, random bytes, hashes, seals. */


#include "libtest.h"
#include "ngx_mcp_hash.h"

#include <sys/wait.h>


static void
test_digits(void)
{
    u_char      data[256], text[513], back[256], two[3], *p;
    ngx_uint_t  i, n, bad;

    for (i = 0; i < 256; i++) {
        data[i] = (u_char) (i * 37 + 11);
    }

    for (bad = 0, n = 0; n <= 256; n++) {
        text[2 * n] = 'x';
        p = ngx_mcp_hex(text, data, n);
        bad += (p != text + 2 * n || *p != 'x');

        for (i = 0; i < n; i++) {
            (void) ngx_sprintf(two, "%02xd", (int) data[i]);
            bad += (ngx_memcmp(two, text + 2 * i, 2) != 0);
        }

        bad += (ngx_mcp_unhex(back, text, n) != NGX_OK
                || ngx_memcmp(data, back, n) != 0);
    }

    is(bad, 0, "bytes of all values and numbers, to digits and back");
}


static void
test_ids(void)
{
    u_char        text[37], again[37];
    ngx_str_t     s;
    ngx_uint_t    i, k, bad, seen;
    ngx_mcp_id_t  id, back;

    text[36] = again[36] = '\0';
    s.data = text;
    s.len = 36;

    for (bad = 0, i = 0; i < 10000; i++) {
        (void) ngx_mcp_id_new(&id);
        (void) ngx_mcp_id_text(text, &id);

        bad += (text[14] != '4' || ngx_strchr("89ab", text[19]) == NULL);
        bad += (ngx_mcp_id_parse(&back, &s) != NGX_OK);
        bad += (ngx_memcmp(&id, &back, sizeof(id)) != 0);
    }

    is(bad, 0, "10000 version 4 UUIDs, to text and back");

    for (bad = 0, i = 0; i < 36; i++) {
        for (k = 0; k < 256; k++) {
            (void) ngx_mcp_id_text(text, &id);

            if (text[i] == k || (text[i] != '-' && k >= '0' && k <= '9')
                || (text[i] != '-' && k >= 'a' && k <= 'f'))
            {
                continue;
            }

            text[i] = (u_char) k;
            bad += (ngx_mcp_id_parse(&back, &s) == NGX_OK);
        }
    }

    is(bad, 0, "no other spelling is an id, nor upper case");

    s.len = 35;
    ok(ngx_mcp_id_parse(&back, &s) == NGX_DECLINED, "too short");
    s.len = 37;
    ok(ngx_mcp_id_parse(&back, &s) == NGX_DECLINED, "too long");

    /* each of the 122 bits is random: seen as 0 and as 1 */

    for (seen = 0, k = 0; k < 128; k++) {
        for (bad = 0, i = 0; i < 64; i++) {
            (void) ngx_mcp_id_new(&id);
            bad += id.data[k / 8] >> (k % 8) & 1;
        }

        seen += (bad > 0 && bad < 64);
    }

    is(seen, 122, "122 bits of an id are random");
}


static void
test_fork(void)
{
    int     fd[2];
    u_char  mine[32], theirs[32], big[4096];
    pid_t   pid;

    (void) ngx_mcp_random(mine, 1);

    if (pipe(fd) == -1) {
        exit(2);
    }

    pid = fork();

    if (pid == 0) {
        ngx_pid = getpid();
        (void) ngx_mcp_random(theirs, 32);
        _exit(write(fd[1], theirs, 32) != 32);
    }

    (void) ngx_mcp_random(mine, 32);
    ok(read(fd[0], theirs, 32) == 32, "a child draws as well");
    ok(ngx_memcmp(mine, theirs, 32) != 0, "parent and child draw others");
    (void) waitpid(pid, NULL, 0);

    ngx_memzero(big, sizeof(big));
    ok(ngx_mcp_random(big, sizeof(big)) == NGX_OK
       && (big[4090] | big[4091] | big[4092] | big[4093] | big[4094]),
       "many at once");
}


static void
test_hash(void)
{
    u_char          in[64];
    uint64_t        key[2];
    ngx_uint_t      i;
    const uint64_t  vectors[] = {
        /* of the reference implementation: key 00..0f, input 00.. */
        0x726fdb47dd0e0e31ULL, 0x74f839c593dc67fdULL, 0x0d6c8009d9a94f5aULL,
        0x85676696d7fb7e2dULL, 0xcf2794e0277187b7ULL, 0x18765564cd99a68dULL,
        0xcbc9466e58fee3ceULL, 0xab0200f58b01d137ULL, 0x93f5f5799a932462ULL
    };

    for (i = 0; i < 64; i++) {
        in[i] = (u_char) i;
    }

    key[0] = 0x0706050403020100ULL;
    key[1] = 0x0f0e0d0c0b0a0908ULL;

    for (i = 0; i < 9; i++) {
        ok(ngx_mcp_siphash(key, in, i) == vectors[i],
           "SipHash-2-4 of %d bytes", (int) i);
    }

    ok(ngx_mcp_siphash(key, in, 15) == 0xa129ca6149be45e5ULL,
       "SipHash-2-4 of 15 bytes");
}


static void
test_hash128(void)
{
    u_char      in[64], out[16], text[33];
    uint64_t    key[2], hash[2];
    ngx_uint_t  i, k;
    static struct {
        size_t       len;
        const char  *hash;
    } vectors[] = {
        /* of the reference implementation: key 00..0f, input 00.. */
        { 0, "a3817f04ba25a8e66df67214c7550293" },
        { 1, "da87c1d86b99af44347659119b22fc45" },
        { 2, "8177228da4a45dc7fca38bdef60affe4" },
        { 3, "9c70b60c5267a94e5f33b6b02985ed51" },
        { 4, "f88164c12d9c8faf7d0f6e7c7bcd5579" },
        { 5, "1368875980776f8854527a07690e9627" },
        { 6, "14eeca338b208613485ea0308fd7a15e" },
        { 7, "a1f1ebbed8dbc153c0b84aa61ff08239" },
        { 8, "3b62a9ba6258f5610f83e264f31497b4" },
        { 9, "264499060ad9baabc47f8b02bb6d71ed" },
        { 10, "00110dc378146956c95447d3f3d0fbba" },
        { 11, "0151c568386b6677a2b4dc6f81e5dc18" },
        { 12, "d626b266905ef35882634df68532c125" },
        { 13, "9869e247e9c08b10d029934fc4b952f7" },
        { 14, "31fcefac66d7de9c7ec7485fe4494902" },
        { 15, "5493e99933b0a8117e08ec0f97cfc3d9" },
        { 16, "6ee2a4ca67b054bbfd3315bf85230577" },
        { 17, "473d06e8738db89854c066c47ae47740" },
        { 31, "2939b0183223fafc1723de4f52c43d35" },
        { 32, "7c3956ca5eeafc3e363e9d556546eb68" },
        { 62, "5853542321f567a005d547a4f04759bd" },
        { 63, "5150d1772f50834a503e069a973fbd7c" }
    };

    for (i = 0; i < 64; i++) {
        in[i] = (u_char) i;
    }

    key[0] = 0x0706050403020100ULL;
    key[1] = 0x0f0e0d0c0b0a0908ULL;
    text[32] = '\0';

    for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        ngx_mcp_siphash128(hash, key, in, vectors[i].len);

        for (k = 0; k < 16; k++) {
            out[k] = (u_char) (hash[k / 8] >> (8 * (k % 8)));
        }

        (void) ngx_mcp_hex(text, out, 16);

        ok(ngx_strcmp(text, vectors[i].hash) == 0,
           "SipHash-2-4 with 128 bits of %d bytes", (int) vectors[i].len);
    }
}


static void
test_seal(void)
{
    u_char           data[NGX_MCP_SEAL_MAX];
    uint64_t         secret[2], other[2];
    ngx_str_t        a, b;
    ngx_uint_t       i, bad;
    ngx_mcp_seal_t   seal, again;

    a = str("a");
    b = str("b");
    secret[0] = 1;
    secret[1] = 2;
    ngx_memzero(data, sizeof(data));

    ngx_mcp_seal(&seal, secret, NGX_MCP_SEAL_REQUEST_STATE, &a, data,
                 sizeof(data));
    ngx_mcp_seal(&again, secret, NGX_MCP_SEAL_REQUEST_STATE, &a, data,
                 sizeof(data));
    ok(ngx_mcp_seal_equal(&seal, &again), "a seal is what it was");

    for (bad = 0, i = 0; i < 128; i++) {
        again = seal;
        again.word[i / 64] ^= (uint64_t) 1 << (i % 64);
        bad += ngx_mcp_seal_equal(&seal, &again);
    }

    is(bad, 0, "each of its 128 bits is compared");

    ngx_mcp_seal(&again, secret, NGX_MCP_SEAL_REQUEST_STATE, &b, data,
                 sizeof(data));
    ok(!ngx_mcp_seal_equal(&seal, &again), "another owner's differs");

    ngx_mcp_seal(&again, secret, NGX_MCP_SEAL_SESSION, &a, data, sizeof(data));
    ok(!ngx_mcp_seal_equal(&seal, &again), "so does that of another thing");

    other[0] = secret[0];
    other[1] = secret[1] ^ 1;
    ngx_mcp_seal(&again, other, NGX_MCP_SEAL_REQUEST_STATE, &a, data,
                 sizeof(data));
    ok(!ngx_mcp_seal_equal(&seal, &again), "and that of another secret");

    for (bad = 0, i = 0; i < 8 * sizeof(data); i++) {
        data[i / 8] ^= (u_char) (1 << (i % 8));
        ngx_mcp_seal(&again, secret, NGX_MCP_SEAL_REQUEST_STATE, &a, data,
                     sizeof(data));
        bad += (again.word[0] == seal.word[0] || again.word[1] == seal.word[1]);
        data[i / 8] ^= (u_char) (1 << (i % 8));
    }

    is(bad, 0, "each bit that is sealed changes both halves");
}


int
main(void)
{
    test_digits();
    test_ids();
    test_fork();
    test_hash();
    test_hash128();
    test_seal();

    return done_testing();
}
