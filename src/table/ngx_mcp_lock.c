
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Waiting for the lock of a zone.
 *
 * As nginx's ngx_shmtx_lock() waits, but for a while at a time.  An unlock
 * wakes one of those who wait, and if that is stopped, or killed, before it
 * has taken the lock, the others would sleep beside a lock that is free, with
 * nobody left to wake them.
 */


#include "ngx_mcp_lock.h"

#include <time.h>


/* of one sleep; a wait that lasts longer is counted */
#define NGX_MCP_LOCK_SLEEP  100


static ngx_uint_t ngx_mcp_lock_spin(ngx_shmtx_t *mtx);
static ngx_uint_t ngx_mcp_lock_sleep(ngx_shmtx_t *mtx);
static uint64_t ngx_mcp_lock_now(void);


/* the lock has been tried, and somebody else has it */

void
ngx_mcp_lock_wait(ngx_mcp_table_t *t)
{
    uint64_t      begun, waited;
    ngx_uint_t    delivery;
    ngx_shmtx_t  *mtx;

    mtx = &t->shpool->mutex;

    if (ngx_mcp_lock_spin(mtx)) {
        return;
    }

    begun = ngx_mcp_lock_now();
    delivery = 0;

    while (!ngx_mcp_lock_sleep(mtx) && !ngx_mcp_lock_spin(mtx)) {
        waited = ngx_mcp_lock_now() - begun;

        if (waited >= NGX_MCP_LOCK_LONG && !delivery && t->stuck) {
            delivery = 1;
            t->stuck(t, (ngx_pid_t) *mtx->lock, waited);
        }
    }

    waited = ngx_mcp_lock_now() - begun;

    if (waited >= NGX_MCP_LOCK_SLEEP) {
        t->sh->count.lock_waits++;
        t->sh->count.lock_wait_max = ngx_max(t->sh->count.lock_wait_max,
                                             waited);
    }
}


static ngx_uint_t
ngx_mcp_lock_spin(ngx_shmtx_t *mtx)
{
    ngx_uint_t  i, n;

    for (n = 1; ngx_ncpu > 1 && n < mtx->spin; n <<= 1) {

        for (i = 0; i < n; i++) {
            ngx_cpu_pause();
        }

        if (ngx_shmtx_trylock(mtx)) {
            return 1;
        }
    }

    return ngx_shmtx_trylock(mtx);
}


/* whether it has the lock; if not, it was woken, or has slept long enough */

static ngx_uint_t
ngx_mcp_lock_sleep(ngx_shmtx_t *mtx)
{
#if (NGX_HAVE_POSIX_SEM)

    ngx_uint_t       taken;
    struct timespec  ts;

    if (mtx->semaphore) {
        (void) ngx_atomic_fetch_add(mtx->wait, 1);

        taken = ngx_shmtx_trylock(mtx);

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        ts.tv_nsec += NGX_MCP_LOCK_SLEEP * 1000000;
        ts.tv_sec += ts.tv_nsec / 1000000000;
        ts.tv_nsec %= 1000000000;

        if (taken || sem_timedwait(&mtx->sem, &ts) == -1) {

            /*
             * Nobody has to wake us.  Who is about to do so leaves one wake-up
             * too many, for the next one that sleeps.
             */

            (void) ngx_atomic_fetch_add(mtx->wait, -1);
        }

        return taken;
    }

#endif

    ngx_sched_yield();

    return 0;
}


/* ms; the time of the event loop stands still meanwhile */

static uint64_t
ngx_mcp_lock_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


/*
 * For how long somebody has had the lock, in ms; 0: not for long.  The time is
 * that of the event loop of whoever took it, which may lag behind.
 */

uint64_t
ngx_mcp_lock_held(ngx_mcp_table_t *t)
{
    int32_t   held;
    uint32_t  since;

    since = t->sh->locked;
    held = (int32_t) ((uint32_t) ngx_current_msec - since);

    if (since == 0 || *t->shpool->mutex.lock == 0
        || held < NGX_MCP_LOCK_LONG)
    {
        return 0;
    }

    return held;
}
