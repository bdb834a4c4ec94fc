
/*
 * The bytes of a task in Redis: every record comes back as it was, and bytes
 * that no record has are refused.  Partitions are spread evenly.
 */


#include "libredis.h"
#include "ngx_mcp_history.h"

#include <math.h>


static u_char  bytes[NGX_MCP_REDIS_HEAD + REDIS_REST];


static size_t
encode(u_char *p, ngx_mcp_redis_record_t *rr)
{
    u_char  *end;

    ngx_mcp_redis_encode_head(p, rr);
    end = ngx_mcp_redis_encode_rest(p + NGX_MCP_REDIS_HEAD, rr);

    return end - p;
}


static ngx_uint_t
same_text(ngx_str_t *a, ngx_str_t *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}


static ngx_uint_t
same(ngx_mcp_redis_record_t *a, ngx_mcp_redis_record_t *b, ngx_uint_t rest)
{
    ngx_mcp_record_t  *x, *y;

    x = &a->rec;
    y = &b->rec;

    if (memcmp(&x->id, &y->id, sizeof(x->id))
        || memcmp(&x->task, &y->task, sizeof(x->task))
        || memcmp(a->lengths, b->lengths, sizeof(a->lengths))
        || memcmp(a->tokens, b->tokens, sizeof(a->tokens))
        || memcmp(a->history, b->history,
                  NGX_MCP_HISTORY_MIN + a->history[0])
        || x->seq != y->seq || x->revision != y->revision
        || x->changed != y->changed || x->turned != y->turned
        || x->moved != y->moved || x->queue_seq != y->queue_seq
        || x->peak != y->peak || a->seat != b->seat
        || a->worker_len != b->worker_len || a->epoch != b->epoch
        || a->pending != b->pending)
    {
        return 0;
    }

    return !rest
           || (same_text(&x->owner, &y->owner) && same_text(&x->tool, &y->tool)
               && same_text(&x->token, &y->token)
               && same_text(&x->session, &y->session)
               && same_text(&x->method, &y->method)
               && same_text(&x->payload[0], &y->payload[0])
               && x->mask == y->mask
               && memcmp(a->owner_hash, b->owner_hash, 16) == 0);
}


static void
test_round_trip(void)
{
    size_t                   len;
    ngx_uint_t               i, size, head, whole;
    const char              *what;
    ngx_mcp_redis_record_t   rr, got;

    size = head = whole = 0;

    for (i = 0; i < 20000; i++) {
        redis_record(&rr);
        len = encode(bytes, &rr);

        size += (len == NGX_MCP_REDIS_HEAD + ngx_mcp_redis_rest_size(&rr));

        head += ngx_mcp_redis_decode(&got, &rr.rec.id, bytes,
                                     NGX_MCP_REDIS_HEAD, &what) == NGX_OK
                && same(&rr, &got, 0) && got.rec.mask == 0;

        whole += ngx_mcp_redis_decode(&got, &rr.rec.id, bytes, len, &what)
                 == NGX_OK && same(&rr, &got, 1)
                 && got.rec.history.data == got.history;
    }

    is(size, 20000, "the size of the rest is known before");
    is(head, 20000, "heads come back");
    is(whole, 20000, "records come back");
}


static void
test_truncated(void)
{
    u_char                  *p;
    size_t                   len, n;
    ngx_uint_t               i, wrong;
    const char              *what;
    ngx_mcp_redis_record_t   rr, got;

    wrong = 0;

    for (i = 0; i < 20; i++) {
        redis_record(&rr);
        len = encode(bytes, &rr);

        /* in memory of exactly this size: a sanitizer finds reads beyond it */

        for (n = 0; n <= len + 1; n++) {
            p = malloc(n + 1);
            memset(p, 0, n + 1);
            memcpy(p, bytes, ngx_min(n, len));
            p = realloc(p, n ? n : 1);

            wrong += (ngx_mcp_redis_decode(&got, &rr.rec.id, p, n, &what)
                      == NGX_OK)
                     != (n == len || n == NGX_MCP_REDIS_HEAD);
            free(p);
        }
    }

    is(wrong, 0, "every other length is refused");
}


/* what is accepted has valid values, and is encoded as it was */

static void
test_mutated(void)
{
    size_t                   len, at, to;
    u_char                   again[sizeof(bytes)];
    ngx_uint_t               i, refused, harmless, wrong;
    const char              *what;
    ngx_mcp_redis_record_t   rr, got;

    refused = harmless = wrong = 0;

    for (i = 0; i < 200000; i++) {
        if (i % 100 == 0) {
            redis_record(&rr);
        }

        len = encode(bytes, &rr);

        for (at = redis_random(3); at < 3; at++) {
            to = redis_one_of(2) ? len : NGX_MCP_REDIS_HEAD + 24;
            bytes[redis_random(to)] = redis_one_of(2)
                                      ? 0xff : (u_char) redis_random(256);
        }

        if (ngx_mcp_redis_decode(&got, &rr.rec.id, bytes, len, &what)
            != NGX_OK)
        {
            refused++;
            continue;
        }

        harmless++;

        if (got.rec.task.state == 0 || got.rec.task.state >= NGX_MCP_STATES
            || got.rec.task.policy.priority >= NGX_MCP_PRIORITIES
            || got.rec.revision > NGX_MCP_RECORD_COUNT
            || !isfinite(got.rec.task.progress)
            || got.worker_len > NGX_MCP_WORKER_NAME || got.pending)
        {
            wrong++;
        }

        if (bytes[63] == 0) {
            encode(again, &got);

            /* except negative numbers and what follows the history */

            wrong += memcmp(again, bytes, 144) != 0
                     || memcmp(again + 168, bytes + 168, 112) != 0
                     || memcmp(again + 320, bytes + 320, len - 320) != 0;
        }
    }

    ok(refused > 1000 && harmless > 1000, "mutated: %d refused, %d harmless",
       (int) refused, (int) harmless);
    is(wrong, 0, "no invalid value is accepted");
}


static void
refused(size_t at, u_char byte, const char *field)
{
    const char              *what;
    ngx_mcp_redis_record_t   rr, got;

    redis_record(&rr);
    rr.rec.task.state = NGX_MCP_QUEUED;
    encode(bytes, &rr);
    bytes[at] = byte;
    what = "none";

    ok(ngx_mcp_redis_decode(&got, &rr.rec.id, bytes, NGX_MCP_REDIS_HEAD, &what)
       == NGX_ERROR && strcmp(what, field) == 0, "refused: %s (%s)", field,
       what);
}


static void
test_fields(void)
{
    refused(0, 0xff, "revision");
    refused(8, 0x11, "version");
    refused(48, 0xff, "seq");
    refused(56, 0, "state");
    refused(56, NGX_MCP_STATES, "state");
    refused(58, 0x08, "flags");
    refused(59, 6, "cause");
    refused(61, NGX_MCP_PRIORITIES, "priority");
    refused(62, 0x80, "calls");
    refused(63, 1, "pending");
    refused(63, 2, "pending");
    refused(64, 0x01, "created_at");
    refused(80, 0x80, "expires_at");
    refused(140, 0x01, "worker");
    refused(280, 34, "history");
}


static void
test_pending(void)
{
    ngx_uint_t                n, dropped;
    const char               *what;
    ngx_mcp_redis_record_t    rr, got;
    ngx_mcp_history_entry_t   entry[NGX_MCP_HISTORY_MAX];

    redis_record(&rr);
    ngx_memzero(rr.history, sizeof(rr.history));
    rr.rec.task.state = NGX_MCP_RUNNING;
    rr.pending = 1;
    encode(bytes, &rr);

    is(ngx_mcp_redis_decode(&got, &rr.rec.id, bytes, NGX_MCP_REDIS_HEAD,
                            &what), NGX_OK, "a pending claim");
    is(got.pending, 0, "is no longer pending");

    n = ngx_mcp_history_read(got.rec.history.data, got.rec.history.len,
                             got.rec.task.created, entry, &dropped);
    ok(n == 1 && entry[0].event == NGX_MCP_EV_CLAIM
       && entry[0].state == NGX_MCP_RUNNING && entry[0].worker == 0
       && entry[0].at == rr.rec.task.updated, "it is in the history");
}


static void
test_tokens(void)
{
    u_char                  token[NGX_MCP_REDIS_TOKEN];
    ngx_uint_t              i, has;
    ngx_mcp_redis_record_t  rr;

    redis_record(&rr);

    for (i = 1; i <= 9; i++) {
        memset(token, (int) i, sizeof(token));
        ngx_mcp_redis_token_push(&rr, token);
    }

    encode(bytes, &rr);
    has = 0;

    for (i = 2; i <= 9; i++) {
        memset(token, (int) i, sizeof(token));
        has += ngx_mcp_redis_token_has(bytes, token);
    }

    is(has, 8, "the last 8 tokens are known");
    memset(token, 1, sizeof(token));
    ok(!ngx_mcp_redis_token_has(bytes, token), "the one before is not");
    is(bytes[232], 9, "the newest is the first");
}


static void
test_partitions(void)
{
    uint64_t      secret[2], other[2];
    ngx_uint_t    i, p, n[64], wrong, apart, least, most;
    ngx_mcp_id_t  id, placed;

    (void) ngx_mcp_random(secret, sizeof(secret));
    (void) ngx_mcp_random(other, sizeof(other));
    ngx_memzero(n, sizeof(n));
    wrong = apart = 0;

    for (i = 0; i < 64000; i++) {
        (void) ngx_mcp_id_new(&id);

        p = ngx_mcp_redis_partition(&id, secret, 64);
        n[p]++;
        apart += (p != ngx_mcp_redis_partition(&id, other, 64));
        wrong += (ngx_mcp_redis_partition(&id, secret, 1) != 0);

        placed = id;
        p = redis_random(16384);
        ngx_mcp_redis_place(&placed, secret, 16384, p);

        wrong += ngx_mcp_redis_partition(&placed, secret, 16384) != p
                 || memcmp(&placed, &id, 14) != 0
                 || ((placed.data[14] ^ id.data[14]) & 0xc0);

        /* in its own partition it stays as it is */

        p = ngx_mcp_redis_partition(&id, secret, 64);
        placed = id;
        ngx_mcp_redis_place(&placed, secret, 64, p);
        wrong += memcmp(&placed, &id, 16) != 0;
    }

    least = most = n[0];

    for (i = 1; i < 64; i++) {
        least = ngx_min(least, n[i]);
        most = ngx_max(most, n[i]);
    }

    is(wrong, 0, "ids are placed, and nothing else of them changes");
    ok(least > 800 && most < 1200, "partitions are even: %d to %d",
       (int) least, (int) most);
    ok(apart > 60000, "they depend on the secret");
}


int
main(void)
{
    test_round_trip();
    test_truncated();
    test_mutated();
    test_fields();
    test_pending();
    test_tokens();
    test_partitions();

    return done_testing();
}
