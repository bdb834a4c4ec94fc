
/*
 * claim.lua repeats one row of the rules in ngx_mcp_task.c.  This compares the
 * two for every combination that matters, with a real server, and checks which
 * task is claimed:
 *
 *     redis_claim SOCKET
 *
 * t/redis_scripts.t starts the server.
 */


#include "libredis.h"
#include "ngx_mcp_redis_script.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>


#define P       "u:z:{0}"
#define NOW     REDIS_NOW
#define WALL    (REDIS_NOW + 77)
#define NEVER   NGX_MCP_NEVER
#define LIMIT   NGX_MCP_UNLIMITED
#define TOKEN   0xfedcba9876543210ULL


/* a case of the comparison, and what Redis has after it */

typedef struct {
    ngx_mcp_redis_record_t   rr;
    uint32_t                 lease_time;
    const char              *worker;
    u_char                   bytes[NGX_MCP_REDIS_HEAD + REDIS_REST];
    size_t                   len;
} claim_t;


static redisContext  *conn;
static char          *run_id, *sha;
static claim_t        c;


static redisReply *
command(const char *fmt, ...)
{
    va_list      args;
    redisReply  *reply;

    va_start(args, fmt);
    reply = redisvCommand(conn, fmt, args);
    va_end(args);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        printf("Bail out! %s: %s\n", fmt, reply ? reply->str : conn->errstr);
        exit(2);
    }

    return reply;
}


static void
run(const char *fmt, ...)
{
    va_list      args;
    redisReply  *reply;

    va_start(args, fmt);
    reply = redisvCommand(conn, fmt, args);
    va_end(args);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        printf("Bail out! %s: %s\n", fmt, reply ? reply->str : conn->errstr);
        exit(2);
    }

    freeReplyObject(reply);
}


static char *
text_of(redisReply *reply)
{
    char  *text;

    text = strdup(reply->str);
    freeReplyObject(reply);

    return text;
}


static void
attach(char *path)
{
    char        *info, *p;
    ngx_str_t   *text;

    conn = redisConnectUnix(path);

    if (conn == NULL || conn->err) {
        printf("Bail out! no server at %s\n", path);
        exit(2);
    }

    info = text_of(command("INFO server"));
    p = strstr(info, "run_id:") + 7;
    run_id = strndup(p, 40);
    free(info);

    run("FLUSHALL");
    run("HSET %s run %s seq 1000", P "m", run_id);

    text = &ngx_mcp_redis_scripts[NGX_MCP_REDIS_CLAIM].text;
    sha = text_of(command("SCRIPT LOAD %b", text->data, text->len));
}


static void
put(ngx_uint_t tool, uint64_t score)
{
    u_char  *id;

    id = c.rr.rec.id.data;

    ngx_mcp_redis_encode_head(c.bytes, &c.rr);
    c.len = ngx_mcp_redis_encode_rest(c.bytes + NGX_MCP_REDIS_HEAD, &c.rr)
            - c.bytes;

    run("SET %st%b %b", P, id, (size_t) 16, c.bytes, c.len);
    run("ZADD %sq%d %llu %b", P, (int) tool, (unsigned long long) score, id,
        (size_t) 16);
    run("ZADD %sd 5 %b", P, id, (size_t) 16);

    if (c.rr.worker_len) {
        run("HSET %sx%b w %s", P, id, (size_t) 16, "before");
    }
}


static redisReply *
claim(ngx_uint_t ring, uint64_t token)
{
    u_char      raw[8];
    ngx_uint_t  i;

    for (i = 0; i < 8; i++) {
        raw[i] = (u_char) (token >> (56 - 8 * i));
    }

    return command("EVALSHA %s 8 %s %s %s %s %s %s %s %s %s %b %d %llu %llu "
                   "%u %s %s 1 0 1 2", sha, P "d", P "c", P "m", P "w", P "s7",
                   P "q0", P "q1", P "q2", run_id, raw, (size_t) 8, (int) ring,
                   (unsigned long long) NOW, (unsigned long long) WALL,
                   c.lease_time, c.worker, "");
}


/* a score of the task; NEVER: it has none */

static uint64_t
score(const char *set)
{
    uint64_t     n;
    redisReply  *reply;

    reply = command("ZSCORE %s%s %b", P, set, c.rr.rec.id.data, (size_t) 16);
    n = (reply->type == REDIS_REPLY_STRING) ? strtoull(reply->str, NULL, 10)
                                            : NEVER;
    freeReplyObject(reply);

    return n;
}


static ngx_uint_t
stored(u_char *p, size_t len)
{
    redisReply  *reply;
    ngx_uint_t   equal;

    reply = command("GET %st%b", P, c.rr.rec.id.data, (size_t) 16);
    equal = reply->type == REDIS_REPLY_STRING && (size_t) reply->len == len
            && memcmp(reply->str, p, len) == 0;
    freeReplyObject(reply);

    return equal;
}


static ngx_uint_t
same_worker(redisReply *x)
{
    size_t  i;

    for (i = 0; i < x->elements; i += 2) {
        if (strcmp(x->element[i]->str, "w") == 0) {
            return strcmp(x->element[i + 1]->str, c.worker) == 0;
        }
    }

    return c.worker[0] == '\0';
}


/* what ngx_mcp_task.c makes of the same record */

static ngx_uint_t
expect(void)
{
    const char              *what;
    ngx_mcp_id_t             id;
    ngx_mcp_event_t          ev;
    ngx_mcp_redis_record_t  *rr;

    rr = &c.rr;
    id = rr->rec.id;

    if (ngx_mcp_redis_decode(rr, &id, c.bytes, c.len, &what) != NGX_OK) {
        printf("Bail out! invalid: %s\n", what);
        exit(2);
    }

    ngx_memzero(&ev, sizeof(ev));
    ev.type = NGX_MCP_EV_CLAIM;
    ev.now = NOW;
    ev.wall = WALL;
    ev.lease_token = TOKEN;
    ev.lease_time = c.lease_time;

    if (ngx_mcp_task_due(&rr->rec.task, NOW) != NGX_MCP_EVENTS
        || ngx_mcp_task_apply(&rr->rec.task, &ev) != NGX_MCP_OK)
    {
        return 0;
    }

    rr->rec.revision++;
    rr->worker_len = (uint32_t) strlen(c.worker);
    rr->pending = 1;

    return 1;
}


static ngx_uint_t
compare(void)
{
    u_char       head[NGX_MCP_REDIS_HEAD];
    uint64_t     seq;
    ngx_uint_t   equal, taken;
    redisReply  *reply, *m;

    put(0, 1);
    taken = expect();

    reply = claim(3, TOKEN);

    if (!taken) {
        equal = reply->element[0]->integer == 0 && stored(c.bytes, c.len)
                && score("q0") == 1;
        freeReplyObject(reply);
        return equal;
    }

    m = command("HGET %s seq", P "m");
    seq = strtoull(m->str, NULL, 10);
    freeReplyObject(m);

    c.rr.rec.changed = seq;
    ngx_mcp_redis_encode_head(head, &c.rr);
    memcpy(c.bytes, head, sizeof(head));

    equal = reply->element[0]->integer == 1
            && memcmp(reply->element[1]->str, c.rr.rec.id.data, 16) == 0
            && (size_t) reply->element[2]->len == c.len
            && memcmp(reply->element[2]->str, c.bytes, c.len) == 0
            && same_worker(reply->element[3])
            && stored(c.bytes, c.len) && score("q0") == NEVER
            && score("d") == ngx_mcp_task_deadline(&c.rr.rec.task)
            && score("c") == seq;

    freeReplyObject(reply);

    return equal;
}


static void
clear(void)
{
    run("DEL %s %s %s %s %s %s", P "q0", P "q1", P "q2", P "d", P "c",
        P "s7");
    run("HSET %s s1 1 s2 0", P "m");
    run("DEL %st%b %sx%b", P, c.rr.rec.id.data, (size_t) 16, P,
        c.rr.rec.id.data, (size_t) 16);
}


static void
test_compare(void)
{
    static uint64_t    ends[] = { NEVER, NOW + 1, NOW, NOW - 1, NOW + 50000 };
    static uint32_t    leases[] = { 0, 5000, LIMIT };
    static const char *workers[] = { "", "w", "a worker with a longer name" };

    ngx_uint_t       n, i, wrong, taken;
    ngx_mcp_task_t  *task;

    wrong = taken = 0;

    for (n = 0; n < 6 * 5 * 5 * 5 * 12; n++) {
        redis_record(&c.rr);
        task = &c.rr.rec.task;
        i = n;

        task->state = (uint8_t) (1 + i % 6);
        i /= 6;
        task->step_end = ends[i % 5];
        i /= 5;
        task->expires = ends[i % 5];
        i /= 5;
        task->phase_end = ends[i % 5];
        i /= 5;
        task->policy.lease = (i & 1) ? LIMIT : 30000;
        task->policy.run_timeout = (i & 2) ? LIMIT : 60000;
        c.lease_time = leases[i / 4];

        c.rr.rec.revision &= 0xffffffffff;
        task->version &= 0xffffffffff;
        task->attempt = (uint8_t) (n % 255);
        c.worker = workers[redis_random(3)];

        if (redis_one_of(3)) {
            c.rr.worker_len = 0;
        }

        if (!compare()) {
            if (wrong++ < 5) {
                diag("differs: n=%d state=%d", (int) n, (int) task->state);
            }
        }

        taken += (c.rr.pending == 1);
        clear();
    }

    is(wrong, 0, "claim.lua and ngx_mcp_task.c agree");
    is(taken, 3 * 3 * 12, "so many of %d were claimed", (int) n);
}


/* the best of several queues, past tasks that cannot be claimed */

static void
test_order(void)
{
    u_char          first[16];
    uint64_t        key, best;
    ngx_uint_t      round, i, wrong, valid, n;
    redisReply     *reply;
    ngx_mcp_task_t  *task;

    wrong = 0;
    c.lease_time = 0;
    c.worker = "";

    for (round = 0; round < 300; round++) {
        best = NEVER;
        n = 1 + redis_random(80);

        for (i = 0; i < n; i++) {
            redis_record(&c.rr);
            task = &c.rr.rec.task;
            task->state = NGX_MCP_QUEUED;
            task->attempt = 0;
            task->step_end = task->phase_end = NEVER;
            task->expires = NEVER;
            c.rr.worker_len = 0;

            valid = redis_one_of(20);

            if (!valid && redis_one_of(2)) {
                task->state = NGX_MCP_RUNNING;

            } else if (!valid) {
                task->expires = NOW;
            }

            key = (3 - task->policy.priority) * (1ULL << 46) + 1000 + i;
            put(redis_random(3), key);

            if (!valid && redis_one_of(3)) {
                run("DEL %st%b", P, c.rr.rec.id.data, (size_t) 16);
            }

            if (valid && key < best) {
                best = key;
                memcpy(first, c.rr.rec.id.data, 16);
            }
        }

        /* how many are before it */

        valid = (best != NEVER);

        for (n = 0, i = 0; valid && i < 3; i++) {
            reply = command("ZCOUNT %sq%d 0 (%llu", P, (int) i,
                            (unsigned long long) best);
            n += reply->integer;
            freeReplyObject(reply);
        }

        reply = claim(1, TOKEN + round);

        if (valid && n < 64) {
            wrong += reply->element[0]->integer != 1
                     || memcmp(reply->element[1]->str, first, 16) != 0;
        } else {
            wrong += reply->element[0]->integer != 0;
        }

        freeReplyObject(reply);
        run("FLUSHDB");
        run("HSET %s run %s seq 1000 s1 100", P "m", run_id);
    }

    is(wrong, 0, "the best task is claimed, at most 64 are looked at");
}


int
main(int argc, char **argv)
{
    if (argc < 2) {
        printf("1..0 # SKIP needs the socket of a server\n");
        return 0;
    }

    attach(argv[1]);

    test_compare();
    test_order();

    return done_testing();
}
