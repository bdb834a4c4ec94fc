
#include "libtest.h"
#include "ngx_mcp_recover.h"

#include <sys/mman.h>
#include <stdarg.h>
#include <stdio.h>


ngx_pool_t  *test_pool;
const char  *test_token;
const char  *test_session;
uint64_t     test_holder;
uint64_t     test_announcer;
ngx_uint_t   test_calls;

static ngx_pool_t  *zones;
static int          tests;
static int          failed;


int
test_ok(int pass, const char *file, int line, const char *fmt, ...)
{
    va_list  args;

    tests++;

    printf("%sok %d - ", pass ? "" : "not ", tests);

    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);

    printf("\n");

    if (!pass) {
        failed++;
        printf("# failed at %s line %d\n", file, line);
    }

    return pass;
}


int
test_is(uint64_t got, uint64_t want, const char *file, int line,
    const char *fmt, ...)
{
    char     buf[512];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(buf, sizeof(buf), fmt, args);
    va_end(args);

    if (!test_ok(got == want, file, line, "%s", buf)) {
        printf("#   got %lld, expected %lld\n", (long long) got,
               (long long) want);
        return 0;
    }

    return 1;
}


void
diag(const char *fmt, ...)
{
    va_list  args;

    printf("# ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}


int
done_testing(void)
{
    printf("1..%d\n", tests);

    return failed ? 1 : 0;
}


/* what is parsed has to be JSON */

ngx_mcp_json_t
test_json(const char *text)
{
    ngx_str_t        s;
    const char      *err;
    ngx_mcp_json_t   v;

    s = str(text);

    if (ngx_mcp_json_parse(&s, &v, &err) != NGX_OK) {
        diag("%s: %s", text, err);
        exit(2);
    }

    return v;
}


ngx_str_t
str(const char *s)
{
    ngx_str_t  v;

    v.data = (u_char *) s;
    v.len = s ? ngx_strlen(s) : 0;

    return v;
}


/* as ngx_init_zone_pool() makes one of shared memory */

ngx_slab_pool_t *
test_slab(size_t size)
{
    ngx_slab_pool_t  *sp;

    sp = mmap(NULL, size, PROT_READ|PROT_WRITE,
              MAP_ANON|MAP_SHARED|MAP_NORESERVE, -1, 0);

    if (sp == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }

    sp->end = (u_char *) sp + size;
    sp->min_shift = 3;
    sp->addr = (u_char *) sp;

    if (ngx_shmtx_create(&sp->mutex, &sp->lock, NULL) != NGX_OK) {
        exit(2);
    }

    ngx_slab_init(sp);

    return sp;
}


ngx_mcp_zone_t *
test_zone(size_t size, uint64_t max_tasks)
{
    ngx_slab_pool_t  *sp;
    ngx_mcp_zone_t   *zone;

    if (test_pool == NULL) {
        test_pool = ngx_create_pool(65536, ngx_cycle->log);
        zones = ngx_create_pool(4096, ngx_cycle->log);
    }

    sp = test_slab(size);
    zone = ngx_pcalloc(zones, sizeof(ngx_mcp_zone_t));
    zone->table = ngx_pcalloc(zones, sizeof(ngx_mcp_table_t));
    zone->submit = ngx_mcp_shm_submit;
    zone->lookup = ngx_mcp_shm_submit;

    if (ngx_mcp_table_create(zone->table, sp, max_tasks) != NGX_OK) {
        return NULL;
    }

    return zone;
}


void
test_policy(ngx_mcp_policy_t *policy)
{
    ngx_memzero(policy, sizeof(ngx_mcp_policy_t));

    policy->lease = 30000;
    policy->queue_timeout = 600000;
    policy->run_timeout = 3600000;
    policy->backoff = 1000;
    policy->poll_interval = 1000;
    policy->keep_completed = 60;
    policy->keep_failed = 50;
    policy->keep_cancelled = 40;
    policy->attempts = 3;
    policy->priority = 1;
}


const char *
test_check(ngx_mcp_zone_t *zone)
{
    const char  *err;

    ngx_mcp_lock_read(zone->table);
    err = ngx_mcp_check_locked(zone->table);
    ngx_mcp_unlock(zone->table);

    if (err) {
        diag("check: %s", err);
    }

    return err;
}


ngx_uint_t
test_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    op->pool = test_pool;

    if (ngx_mcp_submit(zone, op) != NGX_OK) {
        fprintf(stderr, "operation %lu failed\n", (unsigned long) op->type);
        exit(2);
    }

    return op->reason;
}


ngx_uint_t
test_create(ngx_mcp_zone_t *zone, const char *owner, const char *tool,
    const char *params, ngx_mcp_id_t *id)
{
    ngx_uint_t           rc;
    ngx_mcp_op_create_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CREATE;
    op.task.owner = str(owner);
    op.task.tool = str(tool);
    op.task.method = str("tools/call");
    op.task.params = str(params);
    op.task.token = str(test_token);
    op.task.session = str(test_session);
    op.task.ttl = 86400000;
    test_policy(&op.task.policy);

    if (test_session) {
        op.task.holder = test_announcer;
    }

    if (test_holder) {
        op.task.holder = test_holder;
        op.task.policy.route = 1;
        op.task.policy.calls = (uint8_t) test_calls;
    }

    rc = test_submit(zone, &op.op);

    if (rc == NGX_MCP_OK && id) {
        *id = op.view.id;
    }

    return rc;
}


ngx_uint_t
test_get(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id, ngx_mcp_view_t *view)
{
    ngx_uint_t        rc;
    ngx_mcp_op_get_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_GET;
    op.id = *id;
    op.want = NGX_MCP_WANT_ALL;

    rc = test_submit(zone, &op.op);

    if (rc == NGX_MCP_OK && view) {
        *view = op.view;
    }

    return rc;
}


/* whether a task was found */

ngx_uint_t
test_claim(ngx_mcp_zone_t *zone, const char *tool, ngx_mcp_view_t *view)
{
    ngx_str_t           tools[1];
    ngx_mcp_op_claim_t  op;

    tools[0] = str(tool);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_CLAIM;
    op.tools = tools;
    op.ntools = 1;
    op.want = NGX_MCP_WANT_ALL;

    (void) test_submit(zone, &op.op);

    if (op.n && view) {
        *view = *op.views;
    }

    return op.n;
}


ngx_uint_t
test_event(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id, ngx_uint_t type,
    uint64_t lease, ngx_uint_t payload, const char *bytes)
{
    ngx_mcp_op_update_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.id = *id;
    op.event.type = type;
    op.event.lease_token = lease;
    op.event.progress = -1;

    if (bytes) {
        op.change.payload[payload] = str(bytes);
    }

    return test_submit(zone, &op.op);
}


ngx_uint_t
test_move(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id, uint64_t lease,
    double progress, const char *message)
{
    ngx_mcp_op_update_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_UPDATE;
    op.id = *id;
    op.event.type = NGX_MCP_EV_PROGRESS;
    op.event.lease_token = lease;
    op.event.progress = progress;
    op.event.total = -1;

    if (message) {
        op.change.payload[NGX_MCP_MESSAGE] = str(message);
    }

    return test_submit(zone, &op.op);
}


ngx_uint_t
test_delete(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id)
{
    ngx_mcp_op_delete_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_DELETE;
    op.id = *id;

    return test_submit(zone, &op.op);
}


/* how many were handled */

ngx_uint_t
test_sweep(ngx_mcp_zone_t *zone, ngx_uint_t limit)
{
    ngx_mcp_op_sweep_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_SWEEP;
    op.limit = limit;

    (void) test_submit(zone, &op.op);

    return op.done;
}


/* a call begins, with limits on how many run at once */

ngx_uint_t
test_run(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id, uint64_t holder,
    uint32_t max_zone, uint32_t max_tool, ngx_mcp_view_t *view)
{
    ngx_mcp_op_attempt_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_ATTEMPT;
    op.id = *id;
    op.holder = holder;
    op.max_zone = max_zone;
    op.max_tool = max_tool;

    (void) test_submit(zone, &op.op);

    if (view) {
        *view = op.view;
    }

    return op.op.reason;
}


/* a tool is paused, a worker drained; or they go on */

ngx_uint_t
test_control(ngx_mcp_zone_t *zone, ngx_uint_t type, const char *name,
    ngx_uint_t on)
{
    ngx_mcp_op_control_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = type;
    op.name = str(name);
    op.on = on;

    return test_submit(zone, &op.op);
}


/* how many calls of dead processes have a new holder */

ngx_uint_t
test_orphans(ngx_mcp_zone_t *zone, uint64_t holder)
{
    ngx_mcp_op_orphans_t  op;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_ORPHANS;
    op.holder = holder;
    op.limit = NGX_MCP_LIST_MAX;
    op.want = NGX_MCP_WANT_ALL;

    (void) test_submit(zone, &op.op);

    return op.n;
}


/* how many tasks changed; the cursor in the operation goes on */

ngx_uint_t
test_read_changes(ngx_mcp_zone_t *zone, ngx_mcp_op_changes_t *op,
    const char *owner)
{
    op->op.type = NGX_MCP_OP_CHANGES;
    op->op.reason = NGX_MCP_OK;
    op->owner = str(owner);

    if (op->limit == 0) {
        op->limit = NGX_MCP_LIST_MAX;
    }

    (void) test_submit(zone, &op->op);

    return op->n;
}


/* how many tasks the session is told of, by the stream */

ngx_uint_t
test_read_session(ngx_mcp_zone_t *zone, ngx_mcp_op_session_t *op,
    const char *session, uint64_t stream)
{
    op->op.type = NGX_MCP_OP_SESSION;
    op->op.reason = NGX_MCP_OK;
    op->session = str(session);
    op->stream = stream;

    if (op->limit == 0) {
        op->limit = NGX_MCP_LIST_MAX;
    }

    (void) test_submit(zone, &op->op);

    return op->n;
}
