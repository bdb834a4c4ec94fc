
/*
 * Preloaded into nginx: a wall clock that is MCP_TASKS_CLOCK seconds ahead, or
 * behind.  The monotonic clock is as it is.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>


/* worker processes have no such environment */
static long  clock_ahead;


static void __attribute__((constructor))
clock_init(void)
{
    const char  *ahead;

    ahead = getenv("MCP_TASKS_CLOCK");
    clock_ahead = ahead ? atol(ahead) : 0;
}


int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    int           rc;
    static int  (*next)(struct timeval *tv, void *tz);

    if (next == NULL) {
        *(void **) &next = dlsym(RTLD_NEXT, "gettimeofday");
    }

    rc = next(tv, tz);

    if (rc == 0) {
        tv->tv_sec += clock_ahead;
    }

    return rc;
}
