
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The writer: the process of a zone with a store on disk that saves changes.
 * While a commit is in progress, changes accumulate for the next one.
 */


#include "ngx_mcp_sqlite.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"


#if (NGX_MCP_SQLITE_STORE)


/* interval of the periodic check, and while waiting for the zone, ms */
#define NGX_MCP_WRITER_CHECK  200
#define NGX_MCP_WRITER_WAIT   50

/* ms between two commits, if no operation waits for them */
#define NGX_MCP_WRITER_DELAY  250

/* ms until the next attempt after a failure */
#define NGX_MCP_WRITER_RETRY  1000

/* ms for which an exiting process leaves writing to others */
#define NGX_MCP_WRITER_LEFT   1000

/* ms for which an exiting process tries to save the rest */
#define NGX_MCP_WRITER_EXIT   2000


static void ngx_mcp_writer_check(ngx_event_t *ev);
static void ngx_mcp_writer_write(ngx_event_t *ev);
static ngx_uint_t ngx_mcp_writer_take(ngx_mcp_zone_t *zone);
static void ngx_mcp_writer_drop(ngx_mcp_zone_t *zone);
static void ngx_mcp_writer_leave(ngx_mcp_zone_t *zone);
static ngx_uint_t ngx_mcp_writer_due(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_writer_collect(ngx_mcp_zone_t *zone);
static void ngx_mcp_writer_begin(ngx_mcp_zone_t *zone);
static void ngx_mcp_writer_thread(void *data, ngx_log_t *log);
static ngx_int_t ngx_mcp_writer_open(ngx_mcp_sqlite_t *st);
static void ngx_mcp_writer_end(ngx_event_t *ev);
static void ngx_mcp_writer_done(ngx_mcp_zone_t *zone);
static void ngx_mcp_writer_saved(ngx_mcp_zone_t *zone);
static void ngx_mcp_writer_fresh(ngx_mcp_zone_t *zone);


typedef struct {
    ngx_mcp_zone_t  *zone;
} ngx_mcp_commit_t;


void
ngx_mcp_writer_process(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone)
{
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;

    st->check.handler = ngx_mcp_writer_check;
    st->check.data = &zone->dummy;
    st->check.log = cycle->log;
    st->check.cancelable = 1;

    st->write.handler = ngx_mcp_writer_write;
    st->write.data = &zone->dummy;
    st->write.log = cycle->log;

    /* applies to all writers: processes of older configurations may remain */
    zone->table->sh->disk.sync = st->sync;

    ngx_mcp_watch(zone->local, &st->unsaved, NGX_MCP_UNSAVED, &st->write);

    if (ngx_mcp_attach_try(zone, cycle->log) == NGX_OK
        && ngx_mcp_writer_take(zone))
    {
        ngx_post_event(&st->write, &ngx_posted_events);
    }

    ngx_add_timer(&st->check, NGX_MCP_WRITER_WAIT);
}


/*
 * Called when an operation waits: starts a commit, unless another process is
 * the writer.
 */

void
ngx_mcp_writer_kick(ngx_mcp_zone_t *zone)
{
    if (ngx_mcp_sqlite_of(zone)->writing
        || ngx_mcp_save_of(zone->table)->writer == 0)
    {
        ngx_post_event(&ngx_mcp_sqlite_of(zone)->write, &ngx_posted_events);
    }

    /* the process must not exit before the operation is answered */

    ngx_mcp_sqlite_of(zone)->check.cancelable = 0;
}


/*
 * The periodic check in each process: attaches to the zone, detects a removed
 * lock file, and saves what no signal has announced.
 */

static void
ngx_mcp_writer_check(ngx_event_t *ev)
{
    ngx_msec_t         next;
    ngx_connection_t  *c;
    ngx_mcp_sqlite_t  *st;
    ngx_mcp_zone_t    *zone;

    c = ev->data;
    zone = c->data;
    st = zone->store_data;
    next = NGX_MCP_WRITER_CHECK;

    if (zone->ready && !st->busy && ngx_mcp_lockfile_lost(zone)) {
        ngx_mcp_writer_drop(zone);
        ngx_mcp_attach_leave(zone);
    }

    if (!zone->ready) {
        next = NGX_MCP_WRITER_WAIT;

        if (ngx_mcp_attach_try(zone, ev->log) == NGX_ERROR) {
            next = NGX_MCP_WRITER_RETRY;
        }

    } else if (ngx_exiting) {
        ngx_mcp_writer_leave(zone);
    }

    if (zone->ready) {
        ngx_mcp_writer_write(ev);
    }

    ngx_mcp_sqlite_answer(zone);

    st->check.cancelable = ngx_queue_empty(&st->parked);

    ngx_add_timer(ev, next);
}


static void
ngx_mcp_writer_write(ngx_event_t *ev)
{
    ngx_connection_t  *c;
    ngx_mcp_zone_t    *zone;

    c = ev->data;
    zone = c->data;

    if (ngx_mcp_writer_due(zone)
        && ngx_mcp_writer_take(zone))
    {
        ngx_mcp_writer_begin(zone);
    }
}


/*
 * Whether a commit has to start.  This reads without the lock: a wrong result
 * is corrected by the next check.
 */

static ngx_uint_t
ngx_mcp_writer_due(ngx_mcp_zone_t *zone)
{
    ngx_msec_t         passed;
    ngx_mcp_save_t    *sv;
    ngx_mcp_table_t   *t;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    t = zone->table;
    sv = ngx_mcp_save_of(t);

    if (st->busy || !zone->ready) {
        return 0;
    }

    passed = ngx_current_msec - st->begun;

    if (!t->sh->disk.up
        && (!sv->rewrite || (st->rc != NGX_OK && st->rc != NGX_DONE)))
    {
        return passed >= NGX_MCP_WRITER_RETRY;
    }

    if (sv->rewrite) {
        /* until the rewrite is complete, even with nothing to write */
        return 1;
    }

    if (!ngx_mcp_has_unsaved(t)) {
        /* a new writer opens the database before it is needed */
        return st->writing && st->db.sqlite == NULL;
    }

    return t->sh->disk.sync == NGX_MCP_SYNC_ALWAYS
           || st->batch.more
           || passed >= NGX_MCP_WRITER_DELAY;
}


/* 0: another process is the writer, or this one leaves writing to others */

static ngx_uint_t
ngx_mcp_writer_take(ngx_mcp_zone_t *zone)
{
    ngx_mcp_table_t   *t;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    t = zone->table;

    if (st->writing) {
        return 1;
    }

    if (st->left
        && ngx_current_msec - st->left < NGX_MCP_WRITER_LEFT)
    {
        return 0;
    }

    if (ngx_mcp_lockfile_lost(zone)
        || ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_WRITER, F_WRLCK)
           != NGX_OK)
    {
        return 0;
    }

    st->writing = 1;
    ngx_mcp_save_of(t)->writer = (ngx_atomic_uint_t) ngx_pid;

    ngx_mcp_lock_read(t);
    ngx_mcp_await_key_locked(t, NGX_MCP_UNSAVED);
    ngx_mcp_unlock(t);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp tasks writer of zone \"%V\"", &zone->name);

    return 1;
}


static void
ngx_mcp_writer_drop(ngx_mcp_zone_t *zone)
{
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;

    if (!st->writing) {
        return;
    }

    ngx_mcp_db_close(&st->db);

    (void) ngx_atomic_cmp_set(&ngx_mcp_save_of(zone->table)->writer,
                              (ngx_atomic_uint_t) ngx_pid, 0);
    (void) ngx_mcp_lockfile_lock(st->fd, NGX_MCP_LOCK_WRITER, F_UNLCK);
    st->writing = 0;
}


/*
 * An exiting process lets others write as soon as nothing is left to do, and
 * leaves the database if another instance waits for it.
 */

static void
ngx_mcp_writer_leave(ngx_mcp_zone_t *zone)
{
    ngx_mcp_table_t   *t;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    t = zone->table;

    if (st->exiting == 0) {
        st->exiting = ngx_current_msec ? ngx_current_msec : 1;
    }

    if (st->busy
        || ((ngx_mcp_has_unsaved(t)
             || !ngx_queue_empty(&st->parked))
            && ngx_current_msec - st->exiting
               < NGX_MCP_WRITER_EXIT))
    {
        return;
    }

    if (st->writing) {
        st->left = ngx_current_msec ? ngx_current_msec : 1;
        ngx_mcp_writer_drop(zone);
    }

    if (ngx_mcp_lockfile_wanted(zone)
        && (zone->leaves == NULL || zone->leaves(zone)))
    {
        ngx_mcp_attach_leave(zone);
    }
}


/* copies the next batch, and all else that the thread needs; takes the lock */

static ngx_int_t
ngx_mcp_writer_collect(ngx_mcp_zone_t *zone)
{
    ngx_int_t          rc;
    ngx_time_t        *tp;
    ngx_mcp_save_t    *sv;
    ngx_mcp_table_t   *t;
    ngx_mcp_batch_t   *batch;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    batch = &st->batch;
    t = zone->table;
    sv = ngx_mcp_save_of(t);

    if (ngx_mcp_batch_init(batch, ngx_cycle->log) != NGX_OK) {
        return NGX_ERROR;
    }

    for ( ;; ) {
        ngx_mcp_lock_read(t);

        rc = ngx_mcp_save_locked(t, batch);
        st->device = sv->device;
        st->inode = sv->inode;
        st->upto = sv->saved;
        st->db.sync = (ngx_uint_t) t->sh->disk.sync;
        st->db.instance = sv->instance;
        st->db.secret[0] = t->sh->secret[0];
        st->db.secret[1] = t->sh->secret[1];

        ngx_mcp_unlock(t);

        if (rc == NGX_OK) {
            break;
        }

        if (ngx_mcp_batch_grow(batch, ngx_cycle->log) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    tp = ngx_timeofday();
    ngx_mcp_batch_times(batch, ngx_current_msec,
                        (uint64_t) tp->sec * 1000 + tp->msec);

    return NGX_OK;
}


/* starts a commit in a thread; if it cannot, the next check tries again */

static void
ngx_mcp_writer_begin(ngx_mcp_zone_t *zone)
{
    ngx_thread_task_t  *task;
    ngx_mcp_sqlite_t   *st;

    st = zone->store_data;
    st->begun = ngx_current_msec;

    if (st->task == NULL) {
        task = ngx_thread_task_alloc(ngx_cycle->pool,
                                     sizeof(ngx_mcp_commit_t));
        if (task == NULL) {
            return;
        }

        ((ngx_mcp_commit_t *) task->ctx)->zone = zone;
        task->handler = ngx_mcp_writer_thread;
        task->event.data = zone;
        task->event.handler = ngx_mcp_writer_end;
        st->task = task;
    }

    if (ngx_mcp_writer_collect(zone) != NGX_OK) {
        return;
    }

    st->busy = 1;

    if (ngx_thread_task_post(st->threads, st->task) != NGX_OK) {
        st->busy = 0;
    }
}


/* runs in a thread, and accesses only the database and the batch */

static void
ngx_mcp_writer_thread(void *data, ngx_log_t *log)
{
    ngx_mcp_commit_t *commit = data;

    struct timespec    from, to;
    ngx_mcp_sqlite_t  *st;

    st = commit->zone->store_data;

    (void) clock_gettime(CLOCK_MONOTONIC, &from);

    st->rc = ngx_mcp_writer_open(st);

    if (st->rc == NGX_OK) {
        st->rc = ngx_mcp_db_write(&st->db, &st->batch);
    }

    if (st->rc != NGX_OK && st->rc != NGX_DONE) {
        ngx_mcp_db_close(&st->db);
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &to);

    st->took = (to.tv_sec - from.tv_sec) * 1000
               + (to.tv_nsec - from.tv_nsec) / 1000000;
}


/*
 * Opens the database if necessary.  NGX_DONE: all tasks have to be written
 * again, because the database does not exist, or lacks what was saved: it is a
 * backup, or its log was lost.  NGX_DECLINED: it belongs to another instance.
 */

static ngx_int_t
ngx_mcp_writer_open(ngx_mcp_sqlite_t *st)
{
    uint64_t     seq;
    ngx_int_t    rc;
    struct stat  sb;

    if (st->db.sqlite) {
        return NGX_OK;
    }

    if (st->inode) {

        if (stat(st->db.path, &sb) == -1) {

            if (ngx_errno == NGX_ENOENT) {
                return NGX_DONE;
            }

        } else if (sb.st_dev != (dev_t) st->device
                   || sb.st_ino != (ino_t) st->inode)
        {
            ngx_memcpy(st->db.error, "was replaced by another file",
                       sizeof("was replaced by another file"));
            return NGX_ERROR;
        }
    }

    if (ngx_mcp_db_open(&st->db) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_db_get(&st->db, "seq", &seq, 1);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        seq = 0;
    }

    /* a new file must be empty, whatever was written to it meanwhile */

    if (seq >= st->upto && (st->inode || seq == 0)) {
        return NGX_OK;
    }

    rc = ngx_mcp_db_empty(&st->db, st->db.instance);

    return (rc == NGX_OK) ? NGX_DONE : rc;
}


static void
ngx_mcp_writer_end(ngx_event_t *ev)
{
    ngx_mcp_zone_t  *zone;

    zone = ev->data;
    ngx_mcp_sqlite_of(zone)->busy = 0;

    ngx_mcp_writer_done(zone);
    ngx_mcp_sqlite_answer(zone);
    ngx_mcp_writer_write(&ngx_mcp_sqlite_of(zone)->write);
}


static void
ngx_mcp_writer_done(ngx_mcp_zone_t *zone)
{
    switch (ngx_mcp_sqlite_of(zone)->rc) {

    case NGX_OK:
        ngx_mcp_writer_saved(zone);
        return;

    case NGX_DONE:
        ngx_mcp_writer_fresh(zone);
        return;

    case NGX_DECLINED:
        /* another instance has it, and this zone is outdated */
        ngx_mcp_writer_failed(zone, ngx_mcp_sqlite_of(zone)->db.error);

        if (ngx_mcp_lockfile_holds(zone)) {
            /* the lock still names this zone: the file was replaced */
            return;
        }

        ngx_mcp_writer_drop(zone);
        ngx_mcp_attach_leave(zone);
        return;

    default:
        ngx_mcp_writer_failed(zone, ngx_mcp_sqlite_of(zone)->db.error);
    }
}


static void
ngx_mcp_writer_saved(ngx_mcp_zone_t *zone)
{
    ngx_uint_t             was;
    ngx_mcp_save_t        *sv;
    ngx_mcp_table_t       *t;
    ngx_mcp_batch_t       *batch;
    ngx_mcp_store_stat_t  *disk;

    t = zone->table;
    sv = ngx_mcp_save_of(t);
    batch = &ngx_mcp_sqlite_of(zone)->batch;
    disk = &t->sh->disk;

    ngx_mcp_lock(t);

    ngx_mcp_saved_locked(t, batch);

    was = disk->up;

    if (!batch->more) {
        sv->rewrite = 0;
    }

    disk->up = !sv->rewrite;
    sv->device = ngx_mcp_sqlite_of(zone)->db.device;
    sv->inode = ngx_mcp_sqlite_of(zone)->db.inode;

    if (batch->n + batch->ndeletions) {
        disk->commits++;
        disk->rows += batch->n + batch->ndeletions;
        disk->last_wall = batch->clock.wall;
        ngx_mcp_stats_time(&disk->time, ngx_mcp_sqlite_of(zone)->took);
    }

    if (disk->up) {
        disk->error[0] = '\0';
    }

    ngx_mcp_signal_key_locked(t, NGX_MCP_SAVED);
    ngx_mcp_await_key_locked(t, NGX_MCP_UNSAVED);

    ngx_mcp_unlock(t);

    if (!was && disk->up) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "the store of zone \"%V\" works again, all changes "
                      "are saved in \"%V\"", &zone->name,
                      &ngx_mcp_sqlite_of(zone)->path);
    }
}


/*
 * All tasks are written again from memory.  The file is not known until
 * something is committed, since a writer may die just after it created one.
 */

static void
ngx_mcp_writer_fresh(ngx_mcp_zone_t *zone)
{
    ngx_mcp_save_t    *sv;
    ngx_mcp_table_t   *t;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    t = zone->table;
    sv = ngx_mcp_save_of(t);

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "the database \"%V\" of zone \"%V\" %s, all tasks are "
                  "written again", &st->path, &zone->name,
                  st->db.sqlite ? "lacks saved changes" : "was removed");

    ngx_mcp_lock(t);

    ngx_mcp_save_all_locked(t);
    sv->rewrite = 1;
    t->sh->disk.up = 0;
    sv->device = 0;
    sv->inode = 0;

    ngx_mcp_unlock(t);
}


/*
 * Changes up to now count as failed, so that waiting operations are answered.
 */

void
ngx_mcp_writer_failed(ngx_mcp_zone_t *zone, const char *why)
{
    ngx_uint_t             same;
    ngx_mcp_table_t       *t;
    ngx_mcp_store_stat_t  *disk;

    t = zone->table;
    disk = &t->sh->disk;

    ngx_mcp_lock(t);

    same = (!disk->up && ngx_strcmp(disk->error, why) == 0);

    (void) ngx_cpystrn(disk->error, (u_char *) why, sizeof(disk->error));
    disk->up = 0;
    disk->failures++;
    ngx_mcp_save_of(t)->failed = t->sh->seq;

    ngx_mcp_signal_key_locked(t, NGX_MCP_SAVED);

    ngx_mcp_unlock(t);

    /* retried every second, but logged once */

    if (!same) {
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "the store of zone \"%V\" failed: \"%V\" %s; changes "
                      "are refused until it works again", &zone->name,
                      &ngx_mcp_sqlite_of(zone)->path, why);
    }
}


/*
 * Saves what is left when the process exits.  Threads have ended already, so
 * the commits run here.
 */

void
ngx_mcp_writer_exit(ngx_mcp_zone_t *zone)
{
    ngx_uint_t         tries;
    ngx_mcp_table_t   *t;
    ngx_mcp_sqlite_t  *st;

    st = zone->store_data;
    t = zone->table;
    tries = 0;
    st->left = 0;

    while (zone->ready && ngx_mcp_has_unsaved(t)) {

        if (!ngx_mcp_writer_take(zone)) {

            if (++tries == NGX_MCP_WRITER_EXIT / 10) {
                break;
            }

            ngx_msleep(10);
            continue;
        }

        if (ngx_mcp_writer_collect(zone) != NGX_OK) {
            break;
        }

        st->rc = ngx_mcp_writer_open(st);

        if (st->rc == NGX_OK) {
            st->rc = ngx_mcp_db_write(&st->db, &st->batch);
        }

        ngx_mcp_writer_done(zone);

        if (st->rc != NGX_OK && st->rc != NGX_DONE) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "changes of %uD tasks of zone \"%V\" were not saved "
                          "before the process exited: \"%V\" %s",
                          ngx_mcp_save_count_locked(t), &zone->name,
                          &st->path, st->db.error);
            break;
        }
    }

    ngx_mcp_writer_drop(zone);
    ngx_mcp_attach_leave(zone);
    ngx_mcp_batch_free(&st->batch);
}


#endif /* NGX_MCP_SQLITE_STORE */
