
/*
 * Measures the scripts of the Redis store without nginx:
 *
 *     redis SOCKET [TASKS]
 *
 * Sends each script 64 deep, and shows its rate, the time that Redis took for a
 * call, Redis's CPU time with input and output, and its memory per task.  All
 * data of the server is deleted.
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_redis_record.h"
#include "ngx_mcp_redis_script.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <sys/time.h>


#define P        "mt:bench:{0}"
#define DEEP     64
#define OWNERS   100
#define PARAMS   200
#define RESULT   1024
#define ARGS     40
#define BIG      (NGX_MCP_REDIS_HEAD + 1024)


typedef struct {
    ngx_mcp_id_t  id;
    u_char        o[16];
    u_char        bytes[BIG];
    size_t        len;
} task_t;


typedef struct {
    const char    *argv[ARGS];
    size_t         len[ARGS];
    int            n;
    char           space[ARGS][64];
} args_t;


typedef void (*build_pt)(args_t *a, ngx_uint_t i);
typedef void (*reply_pt)(redisReply *reply, ngx_uint_t i);


static redisContext  *conn;
static char           run_id[41], shas[NGX_MCP_REDIS_SCRIPTS][41];
static task_t        *tasks;
static uint64_t       now;
static ngx_uint_t     ntasks = 20000;
static char           result[RESULT];


static void
fail(const char *what)
{
    fprintf(stderr, "redis: %s: %s\n", what, conn ? conn->errstr : "");
    exit(1);
}


static void
arg(args_t *a, const void *p, size_t len)
{
    a->argv[a->n] = p;
    a->len[a->n++] = len;
}


static void
text(args_t *a, const char *s)
{
    arg(a, s, strlen(s));
}


static void
number(args_t *a, uint64_t n)
{
    char  *p;

    p = a->space[a->n];
    arg(a, p, sprintf(p, "%llu", (unsigned long long) n));
}


/* a key: the name, and up to 16 bytes */

static void
key(args_t *a, const char *name, u_char *id)
{
    char    *p;
    size_t   len;

    p = a->space[a->n];
    len = sprintf(p, P "%s", name);

    if (id) {
        memcpy(p + len, id, 16);
        len += 16;
    }

    arg(a, p, len);
}


static void
begin(args_t *a, ngx_uint_t script, ngx_uint_t keys)
{
    a->n = 0;
    text(a, "EVALSHA");
    text(a, shas[script]);
    number(a, keys);
}


static redisReply *
command(const char *fmt, ...)
{
    va_list      args;
    redisReply  *reply;

    va_start(args, fmt);
    reply = redisvCommand(conn, fmt, args);
    va_end(args);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        fail(reply ? reply->str : fmt);
    }

    return reply;
}


static void
run(const char *fmt)
{
    freeReplyObject(command(fmt));
}


static double
info(const char *section, const char *name)
{
    char        *p;
    double       n;
    redisReply  *reply;

    reply = command("INFO %s", section);
    p = strstr(reply->str, name);
    n = p ? strtod(p + strlen(name), NULL) : 0;
    freeReplyObject(reply);

    return n;
}


static double
seconds(void)
{
    struct timeval  tv;

    gettimeofday(&tv, NULL);

    return tv.tv_sec + tv.tv_usec / 1e6;
}


static void
attach(char *path)
{
    char        *p;
    ngx_str_t   *script;
    ngx_uint_t   i;
    redisReply  *reply;

    conn = redisConnectUnix(path);

    if (conn == NULL || conn->err) {
        fail(path);
    }

    run("FLUSHALL");

    reply = command("INFO server");
    p = strstr(reply->str, "run_id:") + 7;
    memcpy(run_id, p, 40);
    freeReplyObject(reply);

    for (i = 0; i < NGX_MCP_REDIS_SCRIPTS; i++) {
        script = &ngx_mcp_redis_scripts[i].text;
        reply = command("SCRIPT LOAD %b", script->data, script->len);
        memcpy(shas[i], reply->str, 40);
        freeReplyObject(reply);
    }

    freeReplyObject(command("EVALSHA %s 2 " P "m " P "w %s",
                            shas[NGX_MCP_REDIS_OPEN], run_id));
}


static void
make_task(ngx_uint_t i)
{
    u_char                   params[PARAMS];
    task_t                  *task;
    ngx_mcp_record_t        *rec;
    ngx_mcp_policy_t         policy;
    ngx_mcp_redis_record_t   rr;

    task = &tasks[i];
    rec = &rr.rec;

    ngx_memzero(&rr, sizeof(rr));
    ngx_memzero(&policy, sizeof(policy));
    policy.lease = 30000;
    policy.queue_timeout = 600000;
    policy.run_timeout = 600000;
    policy.attempts = 3;

    (void) ngx_mcp_id_new(&task->id);
    memset(task->o, 0, 16);
    sprintf((char *) task->o, "o%d", (int) (i % OWNERS));
    memcpy(rr.owner_hash, task->o, 16);

    ngx_mcp_task_init(&rec->task, &policy, 86400000, now, now);
    rec->revision = 1;
    rec->peak = -1;
    ngx_str_set(&rec->owner, "somebody@example.org");
    ngx_str_set(&rec->tool, "render");
    ngx_str_set(&rec->method, "tools/call");
    memset(params, 'p', PARAMS);
    rec->payload[NGX_MCP_PARAMS].data = params;
    rec->payload[NGX_MCP_PARAMS].len = PARAMS;
    rr.lengths[NGX_MCP_PARAMS] = PARAMS;
    ngx_mcp_redis_token_push(&rr, task->id.data);

    ngx_mcp_redis_encode_head(task->bytes, &rr);
    task->len = ngx_mcp_redis_encode_rest(task->bytes + NGX_MCP_REDIS_HEAD,
                                          &rr) - task->bytes;
}


static void
build_create(args_t *a, ngx_uint_t i)
{
    task_t  *task;

    task = &tasks[i];

    begin(a, NGX_MCP_REDIS_CREATE, 9);
    key(a, "t", task->id.data);
    key(a, "x", task->id.data);
    key(a, "i", task->o);
    key(a, "d", NULL);
    key(a, "qrender", NULL);
    key(a, "c", NULL);
    key(a, "m", NULL);
    key(a, "w", NULL);
    key(a, "t", task->id.data);

    text(a, run_id);
    arg(a, task->id.data, 16);
    arg(a, task->id.data, 6);
    arg(a, task->o, 16);
    number(a, 10000000);
    number(a, 10000000);
    number(a, 0);
    number(a, PARAMS + 10);
    arg(a, task->bytes, NGX_MCP_REDIS_HEAD);
    arg(a, task->bytes + NGX_MCP_REDIS_HEAD, task->len - NGX_MCP_REDIS_HEAD);
    number(a, now + 600000);
    number(a, 3ULL << 46);
    text(a, "render");
    number(a, 0);
}


static void
build_claim(args_t *a, ngx_uint_t i)
{
    begin(a, NGX_MCP_REDIS_CLAIM, 6);
    key(a, "d", NULL);
    key(a, "c", NULL);
    key(a, "m", NULL);
    key(a, "w", NULL);
    key(a, "s1", NULL);
    key(a, "qrender", NULL);

    text(a, run_id);
    arg(a, tasks[i].id.data + 8, 8);
    number(a, i % 1024);
    number(a, now);
    number(a, now);
    number(a, 0);
    text(a, "worker-1");
    text(a, "");
    number(a, 0);
    text(a, "render");
}


static void
claimed(redisReply *reply, ngx_uint_t i)
{
    task_t  *task;

    if (reply->elements != 4 || reply->element[0]->integer != 1) {
        fail("nothing was claimed");
    }

    /* first in, first out */

    task = &tasks[i];

    if (memcmp(reply->element[1]->str, task->id.data, 16) != 0) {
        fail("claimed in another order");
    }

    memcpy(task->bytes, reply->element[2]->str, task->len);
}


static void
build_commit(args_t *a, ngx_uint_t i)
{
    task_t                         *task;
    u_char                         *head;
    const char                     *what;
    ngx_mcp_event_t                 ev;
    static u_char                   revision[8];
    static ngx_mcp_redis_record_t   rr;

    task = &tasks[i];
    head = task->bytes;
    memcpy(revision, head, 8);

    if (ngx_mcp_redis_decode(&rr, &task->id, head, task->len, &what)
        != NGX_OK)
    {
        fail(what);
    }

    ngx_memzero(&ev, sizeof(ev));
    ev.type = NGX_MCP_EV_COMPLETE;
    ev.now = now;
    ev.wall = now;
    ev.lease_token = rr.rec.task.lease_token;

    if (ngx_mcp_task_apply(&rr.rec.task, &ev) != NGX_MCP_OK) {
        fail("cannot be completed");
    }

    rr.rec.revision++;
    rr.lengths[NGX_MCP_RESULT] = RESULT;
    ngx_mcp_redis_token_push(&rr, revision + 2);
    ngx_mcp_redis_encode_head(head, &rr);

    begin(a, NGX_MCP_REDIS_COMMIT, 9);
    key(a, "t", task->id.data);
    key(a, "r", task->id.data);
    key(a, "x", task->id.data);
    key(a, "d", NULL);
    key(a, "qrender", NULL);
    key(a, "c", NULL);
    key(a, "m", NULL);
    key(a, "w", NULL);
    key(a, "t", task->id.data);

    text(a, run_id);
    arg(a, task->id.data, 16);
    arg(a, revision + 2, 6);
    arg(a, revision, 8);
    arg(a, task->o, 16);
    arg(a, head, NGX_MCP_REDIS_HEAD);
    number(a, NGX_MCP_REDIS_CHANGED|NGX_MCP_REDIS_TURNED);
    number(a, now + 86400000);
    text(a, "");
    number(a, NGX_MCP_RUNNING);
    number(a, NGX_MCP_COMPLETED);
    number(a, RESULT);
    number(a, 0);
    text(a, "render");
    text(a, "");
    number(a, 1);
    arg(a, result, RESULT);
}


static void
build_remove(args_t *a, ngx_uint_t i)
{
    task_t  *task;

    task = &tasks[i];

    begin(a, NGX_MCP_REDIS_REMOVE, 11);
    key(a, "t", task->id.data);
    key(a, "r", task->id.data);
    key(a, "x", task->id.data);
    key(a, "i", task->o);
    key(a, "d", NULL);
    key(a, "qrender", NULL);
    key(a, "t", task->id.data);
    key(a, "m", NULL);
    key(a, "w", NULL);
    key(a, "t", task->id.data);
    key(a, "t", task->id.data);

    text(a, run_id);
    arg(a, task->id.data, 16);
    arg(a, task->bytes, 8);
    arg(a, task->o, 16);
    number(a, NGX_MCP_COMPLETED);
    number(a, PARAMS + 10 + RESULT);
    text(a, "");
    number(a, 0);
}


static void
build_get(args_t *a, ngx_uint_t i)
{
    a->n = 0;
    text(a, "GET");
    key(a, "t", tasks[i].id.data);
}


static void
build_watch(args_t *a, ngx_uint_t i)
{
    char  *p;

    begin(a, NGX_MCP_REDIS_WATCH, 5);
    key(a, "t", tasks[i].id.data);
    key(a, "r", tasks[i].id.data);
    key(a, "x", tasks[i].id.data);
    key(a, "w", NULL);
    key(a, "m", NULL);

    text(a, run_id);
    number(a, 1);

    p = a->space[a->n];
    *p = 't';
    memcpy(p + 1, tasks[i].id.data, 16);
    arg(a, p, 17);
}


static void
done(redisReply *reply, ngx_uint_t i)
{
    if (reply->type == REDIS_REPLY_ARRAY && reply->element[0]->integer != 1) {
        fail("was not done");
    }
}


static double
redis_cpu(void)
{
    return info("cpu", "used_cpu_sys:") + info("cpu", "used_cpu_user:");
}


/* of the command since the last reset; includes the time that others ran */

static double
call_time(const char *name)
{
    char        *p;
    double       usec;
    redisReply  *reply;

    reply = command("INFO commandstats");
    p = strstr(reply->str, name);
    p = p ? strstr(p, "usec_per_call=") : NULL;
    usec = p ? strtod(p + sizeof("usec_per_call=") - 1, NULL) : 0;
    freeReplyObject(reply);

    return usec;
}


static void
measure(const char *name, build_pt build, reply_pt check)
{
    double       begun, rate, cpu;
    args_t       a;
    ngx_uint_t   i, k, n;
    redisReply  *reply;

    run("CONFIG RESETSTAT");
    cpu = redis_cpu();
    begun = seconds();

    for (i = 0; i < ntasks; i += n) {
        n = ngx_min(DEEP, ntasks - i);

        for (k = 0; k < n; k++) {
            build(&a, i + k);
            redisAppendCommandArgv(conn, a.n, a.argv, a.len);
        }

        for (k = 0; k < n; k++) {
            if (redisGetReply(conn, (void **) &reply) != REDIS_OK
                || reply->type == REDIS_REPLY_ERROR)
            {
                fail(reply ? reply->str : name);
            }

            check(reply, i + k);
            freeReplyObject(reply);
        }
    }

    rate = ntasks / (seconds() - begun);
    cpu = (redis_cpu() - cpu) * 1e6 / ntasks;

    printf("%-14s %9.0f/s %8.2f us %8.2f us\n", name, rate,
           call_time(build == build_get ? "cmdstat_get:"
                                        : "cmdstat_evalsha:"),
           cpu);
}


int
main(int argc, char **argv)
{
    double      empty, queued, ended;
    ngx_uint_t  i;

    if (argc < 2) {
        fprintf(stderr, "usage: redis SOCKET [TASKS]\n");
        return 1;
    }

    if (argc > 2) {
        ntasks = atoi(argv[2]);
    }

    now = (uint64_t) (seconds() * 1000);
    memset(result, 'r', RESULT);
    tasks = calloc(ntasks, sizeof(task_t));

    attach(argv[1]);

    for (i = 0; i < ntasks; i++) {
        make_task(i);
    }

    printf("%-14s %11s %11s %11s\n", "64 deep", "rate", "per call",
           "all CPU");

    empty = info("memory", "used_memory:");
    measure("create", build_create, done);
    queued = info("memory", "used_memory:");
    measure("get", build_get, done);
    measure("claim", build_claim, claimed);
    measure("complete", build_commit, done);
    ended = info("memory", "used_memory:");
    measure("remove", build_remove, done);

    for (i = 0; i < ntasks; i++) {
        make_task(i);
    }

    measure("create again", build_create, done);
    measure("watch", build_watch, done);

    printf("\nbytes per task, without params and result:\n");
    printf("queued         %9.0f\n", (queued - empty) / ntasks - PARAMS);
    printf("ended          %9.0f\n",
           (ended - empty) / ntasks - PARAMS - RESULT);

    return 0;
}
