
/*
 * A process is killed at every labelled step inside every critical section,
 * with the lock held.  Another takes the lock from the dead one, as nginx's
 * master process does, recovers, and finds every task as it was before the
 * operation or as it is after it; after it, if it had been acknowledged.
 */


#include "libcrash.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <stdio.h>


typedef struct {
    volatile int         acked;
    volatile ngx_uint_t  hits;
    char                 label[64];
} shared_t;


static crash_dump_t             before, after, now;
static shared_t                *shared;
static char                     seen[256][64];
static int                      nseen;


static void
remember(const char *label)
{
    int  i;

    for (i = 0; i < nseen; i++) {
        if (strcmp(seen[i], label) == 0) {
            return;
        }
    }

    snprintf(seen[nseen++], sizeof(seen[0]), "%s", label);
}


static int
run_child(crash_case_t *c, ngx_mcp_zone_t *zone, ngx_uint_t hit, pid_t *pid)
{
    int  status;

    shared->acked = 0;
    shared->hits = 0;

    fflush(stdout);
    *pid = fork();

    if (*pid == 0) {
        ngx_pid = getpid();
        ngx_mcp_failpoint_note(shared->label, sizeof(shared->label));
        ngx_mcp_failpoint_arm(NULL, hit);
        c->run(zone);
        shared->acked = 1;
        shared->hits = ngx_mcp_failpoint_hits();
        _exit(0);
    }

    if (*pid == -1 || waitpid(*pid, &status, 0) != *pid) {
        perror("fork");
        exit(2);
    }

    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}


static void
test_case(crash_case_t *c)
{
    int               killed;
    pid_t             pid;
    u_char           *copy;
    uint64_t          time;
    ngx_uint_t        hit, locked;
    const char       *err;
    ngx_slab_pool_t  *sp;
    ngx_mcp_zone_t   *zone;

    zone = crash_zone();
    sp = zone->table->shpool;

    crash_dump(zone, &before);

    if (c->prepare) {
        c->prepare(zone);
        /* a clean table tells what there is; a dirty one was dumped above */
        if (!zone->table->sh->dirty) {
            time = ngx_current_msec;
            ngx_current_msec = 100000;
            crash_dump(zone, &before);
            ngx_current_msec = time;
        }
    }

    copy = malloc(CRASH_ZONE);
    ngx_memcpy(copy, sp, CRASH_ZONE);

    (void) run_child(c, zone, 0, &pid);
    ok(shared->acked && shared->hits > 0, "%s%s: %d steps", c->name,
       crash_stored ? ", with a store" : "", (int) shared->hits);

    time = ngx_current_msec;
    ngx_current_msec = 100000;
    crash_dump(zone, &after);

    err = NULL;
    locked = 0;

    for (hit = 1; err == NULL; hit++) {

        ngx_memcpy(sp, copy, CRASH_ZONE);
        crash_mark(zone);
        ngx_current_msec = time;
        killed = run_child(c, zone, hit, &pid);
        ngx_current_msec = 100000;

        if (!killed) {
            break;
        }

        remember(shared->label);

        if (*sp->mutex.lock == (ngx_atomic_uint_t) pid) {
            locked++;
            (void) ngx_shmtx_force_unlock(&sp->mutex, pid);
        }

        err = test_check(zone);

        if (err == NULL) {
            err = crash_signalled(zone);
        }

        if (err == NULL) {
            err = crash_saved(zone);
        }

        if (err == NULL) {
            crash_dump(zone, &now);
            err = crash_judge(&before, &after, &now);
        }

        if (err == NULL && shared->acked) {
            err = crash_judge(&after, &after, &now);
        }

        if (err == NULL) {
            err = crash_usable(zone);
        }
    }

    ok(err == NULL, "%s: recovered from death at each of them%s%s%s", c->name,
       err ? ", but " : "", err ? err : "", err ? shared->label : "");
    ok(locked == hit - 1 && locked > 0, "%s: with the lock held", c->name);

    free(copy);
}


/*
 * the labels in the sources are all the labels that were died at; those
 * outside of the lock have tests over HTTP
 */

static void
test_labels(void)
{
    int    i, n, missing;
    char   line[64];
    FILE  *f;

    f = popen("sed -n 's/.*_failpoint(\"\\([a-z_]*\\)\").*/\\1/p'"
              " src/table/*.c src/store/*/*.c | sort -u", "r");

    for (n = 0, missing = 0; f && fgets(line, sizeof(line), f); n++) {
        line[strcspn(line, "\n")] = '\0';

        for (i = 0; i < nseen && strcmp(seen[i], line) != 0; i++) {
            /* void */
        }

        if (i == nseen) {
            diag("never died at %s", line);
            missing++;
        }
    }

    pclose(f);

    ok(n > 20 && missing == 0, "each of %d labels was died at", n);
}


int
main(void)
{
    crash_case_t  *c;

    shared = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_ANON|MAP_SHARED, -1, 0);

    if (shared == MAP_FAILED) {
        return 2;
    }

    for (crash_stored = 0; crash_stored < 2; crash_stored++) {
        for (c = crash_cases; c->name; c++) {
            test_case(c);
        }
    }

    test_labels();

    return done_testing();
}
