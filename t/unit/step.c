
/*
 * Death at every instruction, not only at the labelled ones: a process runs
 * each operation one instruction at a time, and after each the shared memory
 * is copied, as a kill at that moment would leave it.  The copy is recovered,
 * checked, and every task found as before or as after the operation.
 */


#include "libcrash.h"

#include <sys/ptrace.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <stdio.h>


static crash_dump_t               before, after, now;
static ngx_mcp_zone_t   replica;
static ngx_mcp_table_t  replica_table;


/* the copy lies elsewhere: what points into the zone has to be moved along */

static void
copy_zone(ngx_mcp_zone_t *zone)
{
    u_char           *data;
    ngx_slab_pool_t  *from, *to;

    from = zone->table->shpool;
    to = replica_table.shpool;

    ngx_memcpy(to, from, CRASH_ZONE);

    data = from->data;
    to->data = (u_char *) to + (data - (u_char *) from);
    (void) ngx_shmtx_create(&to->mutex, &to->lock, NULL);
    *to->mutex.lock = 0;

    ngx_mcp_table_attach(&replica_table, to);
    replica_table.persist = zone->table->persist;
}


static pid_t
traced(crash_case_t *c, ngx_mcp_zone_t *zone)
{
    int    status;
    pid_t  pid;

    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        ngx_pid = getpid();

        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == -1) {
            _exit(3);
        }

        (void) raise(SIGSTOP);
        c->run(zone);
        _exit(0);
    }

    if (pid == -1 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
        printf("Bail out! cannot trace a process\n");
        exit(3);
    }

    return pid;
}


static void
test_case(crash_case_t *c)
{
    int              status;
    pid_t            pid;
    uint64_t         time;
    ngx_uint_t       dirty, total;
    const char      *err;
    ngx_mcp_zone_t  *zone;

    zone = crash_zone();

    if (replica_table.shpool == NULL) {
        replica = *zone;
        replica_table = *zone->table;
        replica.table = &replica_table;
        replica_table.shpool = test_slab(CRASH_ZONE);
    }

    crash_dump(zone, &before);

    if (c->prepare) {
        c->prepare(zone);
    }

    time = ngx_current_msec;

    copy_zone(zone);
    ngx_current_msec = 100000;

    if (!zone->table->sh->dirty) {
        crash_dump(&replica, &before);
    }

    /* what it comes to if nobody dies */

    ngx_current_msec = time;
    c->run(&replica);
    ngx_current_msec = 100000;
    crash_dump(&replica, &after);
    ngx_current_msec = time;

    pid = traced(c, zone);
    ngx_current_msec = 100000;

    err = NULL;
    dirty = total = 0;

    for ( ;; ) {

        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == -1
            || waitpid(pid, &status, 0) != pid
            || !WIFSTOPPED(status))
        {
            break;
        }

        total++;

        if (zone->table->sh->dirty == 0) {
            continue;
        }

        dirty++;

        if (err) {
            continue;
        }

        copy_zone(zone);
        crash_mark(&replica);
        err = test_check(&replica);

        if (err == NULL) {
            err = crash_signalled(&replica);
        }

        if (err == NULL) {
            err = crash_saved(&replica);
        }

        if (err == NULL) {
            crash_dump(&replica, &now);
            err = crash_judge(&before, &after, &now);
        }

        if (err == NULL && dirty % 64 == 0) {
            err = crash_usable(&replica);
        }

        ngx_reset_pool(test_pool);
    }

    ok(WIFEXITED(status) && dirty > 20, "%s: %lu instructions, %lu of them "
       "while the table is being changed", c->name, (unsigned long) total,
       (unsigned long) dirty);
    ok(err == NULL, "%s: recovered from death at each of these%s%s", c->name,
       err ? ", but " : "", err ? err : "");
}


int
main(void)
{
    crash_case_t  *c;

    for (crash_stored = 0; crash_stored < 2; crash_stored++) {
        for (c = crash_cases; c->name; c++) {
            test_case(c);
        }
    }

    return done_testing();
}
