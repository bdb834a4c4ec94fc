
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Loading a zone from a database. */


#include "ngx_mcp_sqlite.h"
#include "ngx_mcp_subprocess.h"
#include "ngx_mcp_load.h"


#if (NGX_MCP_SQLITE_STORE)


/*
 * Expired tasks stay in the database for a day, in ms: the clock may be wrong
 * when the machine has just started.
 */
#define NGX_MCP_FILL_KEEP    86400000

/* tasks loaded while the lock is held once */
#define NGX_MCP_FILL_ROWS    1000


typedef struct {
    ngx_mcp_table_t  *table;
    ngx_mcp_load_t    load;
    ngx_uint_t        n;
} ngx_mcp_filling_t;


static ngx_int_t ngx_mcp_fill_clock(ngx_mcp_db_t *db, ngx_mcp_clock_t *clock,
    ngx_mcp_load_t *load);
static uint64_t ngx_mcp_fill_boot(void);
static ngx_int_t ngx_mcp_fill_row(void *data, ngx_mcp_record_t *rec);
static void ngx_mcp_fill_full(ngx_mcp_zone_t *zone, ngx_mcp_load_t *load,
    ngx_mcp_db_t *db);


/*
 * Replaces the tasks of the zone by those of the database, within a
 * transaction of the caller.  Takes the lock, and releases it between batches
 * of tasks.
 */

ngx_int_t
ngx_mcp_fill(ngx_mcp_zone_t *zone, ngx_mcp_db_t *db, uint64_t instance,
    ngx_log_t *log)
{
    uint64_t           secret[2], seq;
    ngx_int_t          rc, known;
    ngx_mcp_load_t    *load;
    ngx_mcp_clock_t    clock;
    ngx_mcp_table_t   *t;
    ngx_mcp_filling_t  filling;

    t = zone->table;

    ngx_memzero(&filling, sizeof(ngx_mcp_filling_t));
    filling.table = t;
    load = &filling.load;

    if (ngx_mcp_fill_clock(db, &clock, load) != NGX_OK
        || ngx_mcp_db_expire(db,
                             load->store_now - NGX_MCP_FILL_KEEP,
                             &load->expired)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    known = ngx_mcp_db_get(db, "secret", secret, 2);
    rc = ngx_mcp_db_get(db, "seq", &seq, 1);

    if (known == NGX_ERROR || rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    load->seq = (rc == NGX_OK) ? seq : 0;

    if (load->seq > NGX_MCP_RECORD_COUNT) {
        return ngx_mcp_db_invalid(db, 0, "seq");
    }

    ngx_mcp_lock(t);

    ngx_mcp_load_begin_locked(t, known == NGX_OK ? secret : NULL,
                              load);
    rc = ngx_mcp_db_read(db, ngx_mcp_fill_row, &filling);

    if (rc == NGX_OK && load->full) {
        ngx_mcp_fill_full(zone, load, db);
        rc = NGX_ERROR;
    }

    if (rc == NGX_OK && ngx_mcp_load_end_locked(t, load) != NGX_OK) {
        rc = ngx_mcp_db_invalid(db, load->row, load->field);
    }

    seq = ngx_mcp_save_of(t)->saved;
    ngx_mcp_save_of(t)->clock = clock;

    ngx_mcp_unlock(t);

    if (rc != NGX_OK
        || (known != NGX_OK
            && ngx_mcp_db_set(db, "secret", t->sh->secret, 2)
               != NGX_OK)
        || ngx_mcp_db_set(db, "seq", &seq, 1) != NGX_OK
        || ngx_mcp_db_set(db, "clock", (uint64_t *) &clock,
                          NGX_MCP_CLOCK_WORDS)
           != NGX_OK
        || ngx_mcp_db_set(db, "instance", &instance, 1) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "zone \"%V\": %uL tasks loaded from \"%V\", %uL expired "
                  "tasks skipped", &zone->name, load->tasks,
                  &ngx_mcp_sqlite_of(zone)->path, load->expired);

    return NGX_OK;
}


/* computes the current store time, see ngx_mcp_save.h */

static ngx_int_t
ngx_mcp_fill_clock(ngx_mcp_db_t *db, ngx_mcp_clock_t *clock,
    ngx_mcp_load_t *load)
{
    uint64_t          then;
    ngx_int_t         rc;
    ngx_time_t       *tp;
    ngx_mcp_clock_t   last;

    tp = ngx_timeofday();

    ngx_memzero(clock, sizeof(ngx_mcp_clock_t));
    clock->boot = ngx_mcp_fill_boot();
    clock->now = ngx_current_msec;
    clock->wall = (uint64_t) tp->sec * 1000 + tp->msec;
    clock->offset = clock->wall - clock->now;

    ngx_memzero(&last, sizeof(ngx_mcp_clock_t));
    rc = ngx_mcp_db_get(db, "clock", (uint64_t *) &last, NGX_MCP_CLOCK_WORDS);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_OK) {
        then = last.offset + last.now;

        if (then > NGX_MCP_RECORD_COUNT || last.wall > NGX_MCP_RECORD_COUNT) {
            return ngx_mcp_db_invalid(db, 0, "clock");
        }

        if (last.boot && last.boot == clock->boot && last.now <= clock->now) {
            clock->offset = last.offset;

        } else {
            /* if the wall clock was set back, no time has passed */
            clock->offset = then - clock->now + clock->wall
                            - ngx_min(last.wall, clock->wall);
        }

        load->elapsed = clock->offset + clock->now - then;
        load->clock_diff = (int64_t) (then - last.wall);
    }

    load->now = clock->now;
    load->store_now = clock->offset + clock->now;

    return NGX_OK;
}


/* a number that identifies this boot of the machine; 0: unknown */

static uint64_t
ngx_mcp_fill_boot(void)
{
    u_char     buf[64];
    ssize_t    n, i;
    ngx_fd_t   fd;
    uint64_t   boot;
    ngx_int_t  digit;

    fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return 0;
    }

    n = read(fd, buf, sizeof(buf));
    (void) close(fd);

    for (boot = 0, i = 0; i < n; i++) {
        digit = ngx_hextoi(&buf[i], 1);

        if (digit != NGX_ERROR) {
            boot = boot * 31 + (uint64_t) digit;
        }
    }

    return boot;
}


/*
 * Called with the lock held.  It releases the lock from time to time, which is
 * possible because a partly loaded table is consistent.
 */

static ngx_int_t
ngx_mcp_fill_row(void *data, ngx_mcp_record_t *rec)
{
    ngx_mcp_filling_t *filling = data;

    /* both are in store time */

    if (rec->task.expires != NGX_MCP_NEVER
        && rec->task.expires <= filling->load.store_now)
    {
        filling->load.seq = ngx_max(filling->load.seq, rec->seq);
        filling->load.expired++;
        return NGX_OK;
    }

    ngx_mcp_load_locked(filling->table, &filling->load, rec);

    if (++filling->n % NGX_MCP_FILL_ROWS == 0) {
        ngx_mcp_subprocess_alive();
        ngx_mcp_unlock(filling->table);
        ngx_mcp_lock(filling->table);
    }

    return NGX_OK;
}


/* sets db->error to the size that the tasks need */

static void
ngx_mcp_fill_full(ngx_mcp_zone_t *zone, ngx_mcp_load_t *load,
    ngx_mcp_db_t *db)
{
    u_char           *p;
    size_t            size;
    ngx_mcp_layout_t  l;

    if (zone->max_tasks && load->tasks > zone->max_tasks) {
        p = ngx_slprintf((u_char *) db->error,
                         (u_char *) db->error + sizeof(db->error) - 1,
                         "has %uL tasks, but max_tasks is %uL", load->tasks,
                         zone->max_tasks);
        *p = '\0';
        return;
    }

    for (size = zone->shm_zone->shm.size; /* void */ ; size += size / 16) {

        if (ngx_mcp_table_layout(&l,
                                 ngx_mcp_table_usable(size),
                                 zone->max_tasks)
            == NGX_OK
            && l.tasks >= load->tasks && l.blocks > load->blocks + 1)
        {
            break;
        }
    }

    p = ngx_slprintf((u_char *) db->error,
                     (u_char *) db->error + sizeof(db->error) - 1,
                     "has %uL tasks, which require a zone of at least %uzm",
                     load->tasks, size / 1048576 + 1);
    *p = '\0';
}


#endif /* NGX_MCP_SQLITE_STORE */
