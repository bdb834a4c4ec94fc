
/*
 * What operations on the table cost, with 1,000 and with 1,000,000 tasks in
 * one zone, and what a task costs in memory.  Each figure is the best of
 * several rounds, taken in turns at both sizes, so that a noisy machine
 * disturbs both alike.  Exits with 1 if a ratio or figure does not hold.
 *
 * Both sizes are measured in the same state of the caches, as in life: those
 * 1,000 tasks that are in use are polled, the newest pages are listed, and
 * nobody has touched a task for a while when it is claimed or expires, so
 * that the caches are emptied before these two.  What remains is the
 * cost of the algorithms.  Two more lines show, without a limit, what it
 * costs to pick any task at random out of all, beside the time that this
 * machine needs for one access to memory of that size.
 */


#include "libtest.h"

#include <sys/mman.h>
#include <stdio.h>
#include <time.h>


#define FEW        1000
#define MANY       1000000
#define ROUNDS     9
#define OWNERS     10
#define IN_USE     1000
#define NEWEST     400
#define BURST      100000
#define TOUCH      ((size_t) 64 << 20)
#define JUNK       ((size_t) 256 << 20)

#define PARAMS     "{\"name\":\"render\",\"arguments\":{\"scene\":\"s-0042\"," \
                   "\"frames\":[1,250],\"quality\":\"final\",\"notify\":"      \
                   "\"ops@example.org\"},\"_meta\":{\"progressToken\":42}}"
#define RESULT     "{\"content\":[{\"type\":\"text\",\"text\":\"250 frames "   \
                   "in 184 s\"}],\"structuredContent\":{\"frames\":250,"       \
                   "\"url\":\"https://example.org/out/s-0042.mp4\"}}"


typedef struct {
    const char  *name;
    ngx_uint_t   per_round;
    double     (*run)(ngx_uint_t size, ngx_uint_t n);
    double       limit;      /* of the ratio; 0: none */
    double       best[2];
} measure_t;


static ngx_mcp_zone_t  *zones[2];
static ngx_mcp_id_t    *ids[2];
static uint64_t                    last_seq[2];
static const ngx_uint_t            sizes[2] = { FEW, MANY };
static uint64_t                    rnd_state = 88172645463325252ULL;
static ngx_pool_t                 *pool;

/* what is only read to have it read */
static volatile uint64_t           sink;


static uint64_t
rnd(uint64_t n)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;

    return (rnd_state >> 11) % n;
}


static double
now_ns(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec * 1e9 + ts.tv_nsec;
}


/* reads so much else that the caches hold nothing of the table */

static void
forget(void)
{
    size_t          i;
    static u_char  *junk;

    if (junk == NULL) {
        junk = malloc(JUNK);
        memset(junk, 1, JUNK);
    }

    for (i = 0; i < JUNK; i += 64) {
        sink += junk[i];
    }
}


static void
prepare_create(ngx_mcp_op_create_t *op, ngx_uint_t i)
{
    static char  *owners[OWNERS] = {
        "user-0@example.org", "user-1@example.org", "user-2@example.org",
        "user-3@example.org", "user-4@example.org", "user-5@example.org",
        "user-6@example.org", "user-7@example.org", "user-8@example.org",
        "user-9@example.org"
    };

    ngx_memzero(op, sizeof(ngx_mcp_op_create_t));
    op->op.type = NGX_MCP_OP_CREATE;
    op->op.pool = pool;
    op->task.owner = str(owners[i % OWNERS]);
    op->task.tool = str("render");
    op->task.method = str("tools/call");
    op->task.params = str(PARAMS);
    op->task.ttl = 86400000;
    test_policy(&op->task.policy);
    op->task.policy.queue_timeout = NGX_MCP_UNLIMITED;
}


static ngx_mcp_id_t
create(ngx_uint_t size, ngx_uint_t i)
{
    ngx_mcp_op_create_t  op;

    prepare_create(&op, i);
    (void) ngx_mcp_submit(zones[size], &op.op);

    if (op.op.reason != NGX_MCP_OK) {
        fprintf(stderr, "create: %s\n",
                ngx_mcp_reason_name(op.op.reason)->data);
        exit(2);
    }

    last_seq[size] = op.view.seq;

    return op.view.id;
}


static void
delete(ngx_uint_t size, ngx_mcp_id_t *id)
{
    ngx_mcp_op_delete_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_DELETE;
    op.id = *id;
    (void) ngx_mcp_submit(zones[size], &op.op);
}


/* the table keeps its size: random tasks go, and as many new ones come */

static double
run_create(ngx_uint_t size, ngx_uint_t n)
{
    double              start, total;
    ngx_uint_t          i, k;
    static ngx_uint_t   gone[1000];

    for (i = 0; i < n; i++) {
        gone[i] = i ? (gone[i - 1] + 1) % sizes[size] : rnd(sizes[size]);
        delete(size, &ids[size][gone[i]]);
    }

    start = now_ns();

    for (i = 0; i < n; i++) {
        k = gone[i];
        ids[size][k] = create(size, k);
    }

    total = now_ns() - start;

    return total;
}


/* as a request comes: with the id as text, and its owner's name */

static double
get(ngx_uint_t size, ngx_uint_t n, ngx_uint_t *which)
{
    double            start;
    u_char            text[1000][NGX_MCP_ID_TEXT];
    ngx_str_t         id, owner[OWNERS];
    ngx_uint_t        i, k;
    ngx_mcp_op_get_t  op;

    for (i = 0; i < OWNERS; i++) {
        ngx_mcp_op_create_t  c;
        prepare_create(&c, i);
        owner[i] = c.task.owner;
    }

    for (i = 0; i < n; i++) {
        (void) ngx_mcp_id_text(text[i], &ids[size][which[i]]);
    }

    start = now_ns();

    for (i = 0; i < n; i++) {
        ngx_memzero(&op, sizeof(op));
        op.op.type = NGX_MCP_OP_GET;
        op.op.pool = pool;
        op.want = NGX_MCP_WANT(NGX_MCP_MESSAGE)
                  | NGX_MCP_WANT(NGX_MCP_RESULT)
                  | NGX_MCP_WANT(NGX_MCP_REQUESTS);

        id.data = text[i];
        id.len = NGX_MCP_ID_TEXT;
        k = which[i] % OWNERS;
        op.owner = &owner[k];

        (void) ngx_mcp_id_parse(&op.id, &id);
        (void) ngx_mcp_submit(zones[size], &op.op);

        if (op.op.reason != NGX_MCP_OK) {
            fprintf(stderr, "get: %s\n",
                    ngx_mcp_reason_name(op.op.reason)->data);
            exit(2);
        }

        ngx_reset_pool(pool);
    }

    return now_ns() - start;
}


static double
run_get(ngx_uint_t size, ngx_uint_t n)
{
    ngx_uint_t         i, which[1000];
    static ngx_uint_t  in_use[2][IN_USE];

    if (in_use[size][0] == 0) {
        for (i = 0; i < IN_USE; i++) {
            in_use[size][i] = rnd(sizes[size]);
        }
    }

    for (i = 0; i < n; i++) {
        which[i] = in_use[size][rnd(IN_USE)];
    }

    /* once to have them in use, and once to measure */

    (void) get(size, n, which);

    return get(size, n, which);
}


static double
run_get_any(ngx_uint_t size, ngx_uint_t n)
{
    ngx_uint_t  i, which[1000];

    for (i = 0; i < n; i++) {
        which[i] = rnd(sizes[size]);
    }

    return get(size, n, which);
}



static double
run_claim(ngx_uint_t size, ngx_uint_t n)
{
    double                start, total;
    ngx_str_t             tool;
    ngx_uint_t            i;
    ngx_mcp_op_claim_t    claim;
    ngx_mcp_op_update_t   finish;
    static ngx_mcp_id_t   done[1000];

    tool = str("render");
    forget();
    start = now_ns();

    for (i = 0; i < n; i++) {
        ngx_memzero(&claim, sizeof(claim));
        claim.op.type = NGX_MCP_OP_CLAIM;
        claim.op.pool = pool;
        claim.tools = &tool;
        claim.ntools = 1;
        claim.want = NGX_MCP_WANT(NGX_MCP_PARAMS)
                     | NGX_MCP_WANT(NGX_MCP_METADATA);
        (void) ngx_mcp_submit(zones[size], &claim.op);

        if (!claim.n) {
            fprintf(stderr, "nothing to claim\n");
            exit(2);
        }

        ngx_memzero(&finish, sizeof(finish));
        finish.op.type = NGX_MCP_OP_UPDATE;
        finish.op.pool = pool;
        finish.id = done[i] = claim.views->id;
        finish.event.type = NGX_MCP_EV_COMPLETE;
        finish.event.lease_token = claim.views->task.lease_token;
        finish.change.payload[NGX_MCP_RESULT] = str(RESULT);
        (void) ngx_mcp_submit(zones[size], &finish.op);

        ngx_reset_pool(pool);
    }

    total = now_ns() - start;

    return total;
}


static double
list(ngx_uint_t size, ngx_uint_t n, ngx_uint_t range)
{
    double               start;
    ngx_uint_t           i, total;
    ngx_mcp_op_list_t    op;
    ngx_mcp_op_create_t  c;

    prepare_create(&c, 0);
    start = now_ns();
    total = 0;

    for (i = 0; i < n; i++) {
        ngx_memzero(&op, sizeof(op));
        op.op.type = NGX_MCP_OP_LIST;
        op.op.pool = pool;
        op.owner = c.task.owner;
        op.limit = 50;
        op.want = NGX_MCP_WANT(NGX_MCP_MESSAGE);

        op.after.seq = last_seq[size] - rnd(range);

        (void) ngx_mcp_submit(zones[size], &op.op);
        total += op.n;

        ngx_reset_pool(pool);
    }

    if (total < n * 45) {
        fprintf(stderr, "pages are not full: %lu of %lu\n",
                (unsigned long) total, (unsigned long) n * 50);
        exit(2);
    }

    return now_ns() - start;
}


static double
run_list(ngx_uint_t size, ngx_uint_t n)
{
    return list(size, n, NEWEST);
}


static double
run_list_any(ngx_uint_t size, ngx_uint_t n)
{
    return list(size, n, ngx_max(NEWEST, sizes[size] / 2));
}


/* one access to as much memory as the slots of so many tasks take */

static double
run_memory(ngx_uint_t size, ngx_uint_t n)
{
    u_char      *p;
    double       start;
    uint64_t     sum;
    ngx_uint_t   i;

    p = (u_char *) zones[size]->table.slots;
    sum = 0;
    start = now_ns();

    for (i = 0; i < n; i++) {
        /* where to look next depends upon what was found */
        sum += p[(rnd(sizes[size]) + (sum & 1)) * sizeof(ngx_mcp_slot_t)];
    }

    sink = sum;

    return now_ns() - start;
}


static measure_t  measures[] = {
    { "create", 500, run_create, 2, { 0, 0 } },
    { "get", 1000, run_get, 2, { 0, 0 } },
    { "claim+finish", 50, run_claim, 2, { 0, 0 } },
    { "list, page of 50", 100, run_list, 2, { 0, 0 } },
    { "get, any of all", 1000, run_get_any, 0, { 0, 0 } },
    { "list, any page of all", 100, run_list_any, 0, { 0, 0 } },
    { "one memory access", 1000, run_memory, 0, { 0, 0 } },
    { NULL, 0, NULL, 0, { 0, 0 } }
};


static void
fill(ngx_uint_t size)
{
    ngx_uint_t        i;
    ngx_mcp_table_t  *t;

    zones[size] = test_zone((size_t) 1400 << 20, MANY + BURST);
    ids[size] = malloc(sizes[size] * sizeof(ngx_mcp_id_t));

    for (i = 0; i < sizes[size]; i++) {
        ids[size][i] = create(size, i);
    }

    /* the first touch of a page costs the kernel's time, not the table's */

    t = &zones[size]->table;
    memset(ngx_mcp_block(t, t->sh->block.fresh), 0, TOUCH);
    memset(ngx_mcp_slot(t, t->sh->slot.fresh), 0,
           BURST * sizeof(ngx_mcp_slot_t));
}


/* all of n tasks are due at once, in a zone with so many others */

static double
expire(ngx_uint_t size, ngx_uint_t n, double *longest)
{
    double                start, before, step;
    ngx_uint_t            i;
    ngx_mcp_op_sweep_t    sweep;
    ngx_mcp_op_create_t   op;

    for (i = 0; i < n; i++) {
        prepare_create(&op, i);
        op.task.ttl = 60000;
        (void) ngx_mcp_submit(zones[size], &op.op);

        if (op.op.reason != NGX_MCP_OK) {
            fprintf(stderr, "create: %s\n",
                    ngx_mcp_reason_name(op.op.reason)->data);
            exit(2);
        }
    }

    ngx_current_msec += 60000;
    forget();
    *longest = 0;
    start = now_ns();
    before = start;

    do {
        ngx_memzero(&sweep, sizeof(sweep));
        sweep.op.type = NGX_MCP_OP_SWEEP;
        sweep.limit = NGX_MCP_SWEEP_BATCH;
        (void) ngx_mcp_submit(zones[size], &sweep.op);

        step = now_ns();
        *longest = ngx_max(*longest, step - before);
        before = step;

    } while (sweep.done == NGX_MCP_SWEEP_BATCH);

    return (before - start) / n;
}


static int
report(const char *name, double few, double many, double limit)
{
    int  failed;

    failed = (limit && many / few > limit);

    printf("%-22s %12.0f %12.0f %10.2f   %s\n", name, few, many, many / few,
           failed ? "DOES NOT HOLD" : limit ? "holds" : "");

    return failed;
}


int
main(void)
{
    int                  failed;
    double               t, few, many, longest, ignored, bytes;
    uint64_t             payload, used;
    ngx_uint_t           round, size;
    measure_t           *m;
    ngx_mcp_op_stats_t   stats;

    pool = ngx_create_pool(65536, ngx_cycle->log);
    ngx_current_msec = 1000000;

    fill(0);
    fill(1);

    for (round = 0; round < ROUNDS; round++) {
        for (m = measures; m->name; m++) {
            for (size = 0; size < 2; size++) {
                t = m->run(size, m->per_round) / m->per_round;

                if (round == 0 || t < m->best[size]) {
                    m->best[size] = t;
                }
            }
        }
    }

    printf("%-22s %12s %12s %10s\n", "ns per operation", "1,000 tasks",
           "1,000,000", "ratio");

    failed = 0;

    for (m = measures; m->name; m++) {
        failed |= report(m->name, m->best[0], m->best[1], m->limit);
    }

    few = many = longest = 0;

    for (round = 0; round < 3; round++) {
        t = expire(0, FEW, &ignored);
        few = (round == 0 || t < few) ? t : few;

        t = expire(1, BURST, &ignored);
        many = (round == 0 || t < many) ? t : many;
        longest = (round == 0 || ignored < longest) ? ignored : longest;
    }

    failed |= report("expiry of a task", few, many, 2);

    printf("\nlongest sweep step, 100,000 tasks due at once: %.3f ms   %s\n",
           longest / 1e6, longest <= 5e6 ? "holds" : "DOES NOT HOLD");
    failed |= longest > 5e6;

    ngx_memzero(&stats, sizeof(stats));
    stats.op.type = NGX_MCP_OP_STATS;
    (void) ngx_mcp_submit(zones[1], &stats.op);

    payload = stats.bytes;
    used = (uint64_t) stats.slots_used * sizeof(ngx_mcp_slot_t)
           + (uint64_t) stats.blocks_used * NGX_MCP_BLOCK_SIZE
           + (uint64_t) stats.blocks_used / 8
           + ((uint64_t) zones[1]->table.sh->hash_mask + 1) * 4
           + ((uint64_t) zones[1]->table.sh->name_mask + 1) * 4;
    bytes = (double) (used - payload) / stats.slots_used;

    printf("bytes per task: %.0f, of these payload %.0f, beside it %.0f   %s\n",
           (double) used / stats.slots_used,
           (double) payload / stats.slots_used, bytes,
           bytes <= 512 ? "holds" : "DOES NOT HOLD");
    failed |= bytes > 512;

    return failed;
}
