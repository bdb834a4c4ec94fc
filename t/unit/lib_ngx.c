
/*
 * What the parts of nginx that unit tests link with expect of the rest of it.
 * Time stands still until a test moves it.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <stdarg.h>
#include <stdio.h>


static ngx_log_t        ngx_unit_log;
static ngx_open_file_t  ngx_unit_log_file;
static ngx_cycle_t      ngx_unit_cycle;
static ngx_time_t       ngx_unit_time;

volatile ngx_cycle_t   *ngx_cycle = &ngx_unit_cycle;
volatile ngx_time_t    *ngx_cached_time = &ngx_unit_time;
volatile ngx_msec_t     ngx_current_msec;

ngx_pid_t               ngx_pid;
ngx_int_t               ngx_ncpu;
ngx_uint_t              ngx_process;
ngx_uint_t              ngx_worker;


/* before main(): a test has nothing to set up */

__attribute__((constructor))
static void
ngx_unit_init(void)
{
    ngx_uint_t  n;

    ngx_pid = getpid();
    ngx_ncpu = sysconf(_SC_NPROCESSORS_ONLN);

    ngx_pagesize = getpagesize();
    ngx_cacheline_size = NGX_CPU_CACHE_LINE;

    for (n = ngx_pagesize; n >>= 1; ngx_pagesize_shift++) { /* void */ }

    ngx_unit_log_file.fd = STDERR_FILENO;
    ngx_unit_log.file = &ngx_unit_log_file;
    ngx_unit_log.log_level = NGX_LOG_NOTICE;
    ngx_unit_cycle.log = &ngx_unit_log;

    ngx_slab_sizes_init();

    setvbuf(stdout, NULL, _IOLBF, 0);
}


/* a diagnostic of TAP, so that it does not disturb the results */

void
ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
    u_char   buf[NGX_MAX_ERROR_STR], *p;
    va_list  args;

    va_start(args, fmt);
    p = ngx_vslprintf(buf, buf + sizeof(buf) - 1, fmt, args);
    va_end(args);

    *p = '\0';

    if (err) {
        fprintf(stderr, "# log %lu: %s (%d: %s)\n", (unsigned long) level,
                (char *) buf, err, strerror(err));

    } else {
        fprintf(stderr, "# log %lu: %s\n", (unsigned long) level,
                (char *) buf);
    }
}


void
ngx_debug_point(void)
{
    abort();
}




/* as the one in ngx_times.c, whose clock is not wanted here */

void
ngx_gmtime(time_t t, ngx_tm_t *tp)
{
    (void) gmtime_r(&t, tp);

    tp->ngx_tm_mon++;
    tp->ngx_tm_year += 1900;
}
