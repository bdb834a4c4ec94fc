
/*
 * The lock of a zone, when those who hold it or wait for it are stopped.  The
 * processes here are threads: all that matters of a process is its pid in the
 * lock.
 */


#include "libtest.h"
#include "ngx_mcp_lock.h"

#include <pthread.h>
#include <time.h>


/* nobody waits for longer, unless it is for ever */
#define SOON  5000


static ngx_mcp_zone_t     *zone;
static volatile int        asleep, got;
static volatile ngx_pid_t  delivery;
static volatile uint64_t   waited;


static uint64_t
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


static int
until(volatile int *what, uint64_t ms)
{
    uint64_t  end;

    for (end = now() + ms; !*what && now() < end; /* void */ ) {
        usleep(1000);
    }

    return *what;
}


static void *
waiter(void *data)
{
    asleep = 1;
    ngx_mcp_lock(zone->table);
    got = 1;
    ngx_mcp_unlock(zone->table);

    return NULL;
}


static pthread_t
begin_to_wait(void)
{
    pthread_t  thread;

    asleep = 0;
    got = 0;
    pthread_create(&thread, NULL, waiter, NULL);
    (void) until(&asleep, SOON);

    /* it spins for less than that */
    usleep(50000);

    return thread;
}


static void
stuck(ngx_mcp_table_t *t, ngx_pid_t holder, uint64_t ms)
{
    delivery = holder;
    waited = ms;
}


/* who is woken by an unlock does nothing any more */

static void *
stopped(void *data)
{
    ngx_shmtx_t  *mtx;

    mtx = &zone->table->shpool->mutex;

    (void) ngx_atomic_fetch_add(mtx->wait, 1);
    asleep = 1;
    while (sem_wait(&mtx->sem) == -1) { /* void */ }

    return NULL;
}


static void
test_lost_wakeup(void)
{
    int        i;
    pthread_t  first, second;

    for (i = 0; i < 10; i++) {
        ngx_mcp_lock(zone->table);

        asleep = 0;
        pthread_create(&first, NULL, stopped, NULL);
        (void) until(&asleep, SOON);
        usleep(50000);

        second = begin_to_wait();

        if (i == 0) {
            ok(!got, "one waits for the lock, behind another");
        }

        ngx_mcp_unlock(zone->table);

        if (!until(&got, SOON)) {
            ok(0, "it sleeps beside a lock that is free");
            exit(1);
        }

        pthread_join(second, NULL);

        /* if it was not the one that was woken */
        (void) sem_post(&zone->table->shpool->mutex.sem);
        pthread_join(first, NULL);
    }

    ok(got, "it gets the lock, though the other one was woken, and stopped");
    is(*zone->table->shpool->mutex.lock, 0, "the lock is free");
}


static void
test_held(void)
{
    pthread_t         thread;
    ngx_mcp_table_t  *t;

    t = zone->table;
    t->stuck = stuck;

    ngx_memzero(&t->sh->count, sizeof(ngx_mcp_counters_t));
    ngx_current_msec = 5000;

    is(ngx_mcp_lock_held(t), 0, "nobody holds the lock");
    ngx_mcp_lock(t);
    is(ngx_mcp_lock_held(t), 0, "somebody does now");

    ngx_current_msec += NGX_MCP_LOCK_LONG - 2;
    is(ngx_mcp_lock_held(t), 0, "for almost a second");
    ngx_current_msec += 502;
    ok(ngx_mcp_lock_held(t) >= 1499 && ngx_mcp_lock_held(t) <= 1501,
       "for a second and a half");

    ngx_current_msec = 1000;
    is(ngx_mcp_lock_held(t), 0, "to somebody whose time lags behind");
    ngx_current_msec = 6500;

    thread = begin_to_wait();
    usleep(1500000);
    is(delivery, ngx_pid, "who waits for a second says who has the lock");
    ok(waited >= NGX_MCP_LOCK_LONG && waited < SOON, "and for how long");
    ok(!got, "it goes on waiting");

    ngx_mcp_unlock(t);
    ok(until(&got, SOON), "and gets the lock in the end");
    pthread_join(thread, NULL);

    is(ngx_mcp_lock_held(t), 0, "nobody has it for long now");
    is(t->sh->count.lock_waits, 1, "the wait is counted");
    ok(t->sh->count.lock_wait_max >= 1400
       && t->sh->count.lock_wait_max < 2 * SOON, "and how long it was");
}


/* figures do without the lock, if nobody else will give it back soon */

static void
test_stats(void)
{
    ngx_mcp_op_stats_t  op;

    (void) test_create(zone, "alice", "dig", "{}", NULL);
    ngx_mcp_lock(zone->table);
    ngx_current_msec += 3000;

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_STATS;
    op.detail = 1;
    is(test_submit(zone, &op.op), NGX_MCP_OK, "figures, without the lock");
    ok(op.lock_held >= 2999 && op.lock_held <= 3001, "say how long it is held");
    is(op.states[NGX_MCP_QUEUED], 1, "and what else is known");
    ok(!op.detail && op.ntools == 0 && op.nworkers == 0, "but no details");

    ngx_mcp_unlock(zone->table);

    ngx_memzero(&op, sizeof(op));
    op.op.type = NGX_MCP_OP_STATS;
    op.detail = 1;
    (void) test_submit(zone, &op.op);
    is(op.lock_held, 0, "afterwards it is not held");
    ok(op.ntools > 0, "and there are details");
}


int
main(void)
{
    ngx_ncpu = 2;
    ngx_current_msec = 1000;
    zone = test_zone(1 << 20, 0);

    test_lost_wakeup();
    test_held();
    test_stats();

    return done_testing();
}
