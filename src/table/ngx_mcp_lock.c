
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Waiting for the lock of a zone.
 *
 * This is nginx's ngx_shmtx_lock() with a limit on each sleep.  An unlock wakes
 * only one of the waiting processes.  If that process is stopped or killed
 * before it takes the lock, the others would sleep without limit although the
 * lock is free.
 */


#include "ngx_mcp_lock.h"

#include <time.h>


/* the limit of one sleep, ms; a longer wait is counted */
#define NGX_MCP_LOCK_SLEEP  100


static ngx_uint_t ngx_mcp_lock_spin(ngx_shmtx_t *mtx);
static ngx_uint_t ngx_mcp_lock_sleep(ngx_shmtx_t *mtx);
static uint64_t ngx_mcp_lock_now(void);


/*
 * Takes the lock, after ngx_shmtx_trylock() has failed.  Calls t->stuck once,
 * without the lock, if that takes long.
 */

void
ngx_mcp_lock_wait(ngx_mcp_table_t *t)
{
    uint64_t      begun, waited;
    ngx_uint_t    reported;
    ngx_shmtx_t  *mtx;

    mtx = &t->shpool->mutex;

    if (ngx_mcp_lock_spin(mtx)) {
        return;
    }

    begun = ngx_mcp_lock_now();
    reported = 0;

    while (!ngx_mcp_lock_sleep(mtx) && !ngx_mcp_lock_spin(mtx)) {
        waited = ngx_mcp_lock_now() - begun;

        if (waited >= NGX_MCP_LOCK_LONG && !reported && t->stuck) {
            reported = 1;
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


/* returns 1 if it has taken the lock */

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


/* returns 1 if it has taken the lock; 0: woken, or the sleep is over */

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
             * This process needs no wake-up.  If another process posts one at
             * this moment, the next sleep of some process ends early.
             */

            (void) ngx_atomic_fetch_add(mtx->wait, -1);
        }

        return taken;
    }

#endif

    ngx_sched_yield();

    return 0;
}


/* monotonic, ms; ngx_current_msec does not advance while the process waits */

static uint64_t
ngx_mcp_lock_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


/*
 * How long a process has held the lock, in ms; 0: free, or less than
 * NGX_MCP_LOCK_LONG.  Needs no lock.  The time of locking is that of the
 * holder's event loop, which may be late.
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
