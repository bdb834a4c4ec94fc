
/* Ids, random bytes, hashes. */


#include <sys/wait.h>

#include "libtest.h"
#include "ngx_mcp_hash.h"


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


int
main(void)
{
    test_digits();
    test_ids();
    test_fork();
    test_hash();

    return done_testing();
}
