
/*
 * The writer: one process of a zone with a store on disk, that saves what has
 * changed.  While one commit is under way changes pile up for the next.
 */


#include "ngx_mcp_sqlite.h"
#include "ngx_mcp_signal.h"
#include "ngx_mcp_stats.h"


#if (NGX_MCP_SQLITE_STORE)


/* how often each process looks whether all is well, in milliseconds */
#define NGX_MCP_WRITER_LOOK   200
#define NGX_MCP_WRITER_WANT   50

/* between two commits, if nobody waits for them */
#define NGX_MCP_WRITER_PACE   250

/* after a failure */
#define NGX_MCP_WRITER_RETRY  1000

/* how long a process that exits leaves it to others to write */
#define NGX_MCP_WRITER_LEFT   1000

/* how long it tries to save the rest */
#define NGX_MCP_WRITER_EXIT   2000


static void ngx_mcp_writer_look(ngx_event_t *ev);
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

    st->look.handler = ngx_mcp_writer_look;
    st->look.data = &zone->dummy;
    st->look.log = cycle->log;
    st->look.cancelable = 1;

    st->write.handler = ngx_mcp_writer_write;
    st->write.data = &zone->dummy;
    st->write.log = cycle->log;

    /* for all writers: older processes may go on for a while */
    zone->table->sh->disk.sync = st->sync;

    ngx_mcp_watch(zone->local, &st->unsaved, NGX_MCP_UNSAVED, &st->write);

    if (ngx_mcp_attach_try(zone, cycle->log) == NGX_OK
        && ngx_mcp_writer_take(zone))
    {
        ngx_post_event(&st->write, &ngx_posted_events);
    }

    ngx_add_timer(&st->look, NGX_MCP_WRITER_WANT);
}


/* an operation waits: if nobody else writes, we do */

void
ngx_mcp_writer_kick(ngx_mcp_zone_t *zone)
{
    if (ngx_mcp_sqlite_of(zone)->writing
        || ngx_mcp_save_of(zone->table)->writer == 0)
    {
        ngx_post_event(&ngx_mcp_sqlite_of(zone)->write, &ngx_posted_events);
    }

    /* the process must not exit before it has answered */

    ngx_mcp_sqlite_of(zone)->look.cancelable = 0;
}


static void
ngx_mcp_writer_look(ngx_event_t *ev)
{
    ngx_msec_t         next;
    ngx_connection_t  *c;
    ngx_mcp_sqlite_t  *st;
    ngx_mcp_zone_t    *zone;

    c = ev->data;
    zone = c->data;
    st = zone->store_data;
    next = NGX_MCP_WRITER_LOOK;

    if (zone->ready && !st->busy && ngx_mcp_lockfile_lost(zone)) {
        ngx_mcp_writer_drop(zone);
        ngx_mcp_attach_leave(zone);
    }

    if (!zone->ready) {
        next = NGX_MCP_WRITER_WANT;

        if (ngx_mcp_attach_try(zone, ev->log) == NGX_ERROR) {
            next = NGX_MCP_WRITER_RETRY;
        }

    } else if (ngx_exiting) {
        ngx_mcp_writer_leave(zone);
    }

    if (zone->ready) {
        ngx_mcp_writer_write(ev);
    }

    ngx_mcp_sqlite_look(zone);

    st->look.cancelable = ngx_queue_empty(&st->parked);

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


/* words are read without the lock: whoever is wrong looks again soon */

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
        /* up to its end, even if there is nothing to write */
        return 1;
    }

    if (!ngx_mcp_has_unsaved(t)) {
        /* whoever is to write opens the database before it is needed */
        return st->writing && st->db.sqlite == NULL;
    }

    return t->sh->disk.sync == NGX_MCP_SYNC_ALWAYS
           || st->batch.more
           || passed >= NGX_MCP_WRITER_PACE;
}


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
 * A process that exits lets others write, as soon as it has nothing to do;
 * and if another instance waits for the database, it lets go of that, too.
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


/* in a thread, which touches nothing but database and batch */

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
 * NGX_DONE: all tasks have to be written, since the database is not there, or
 * is not what it was when they were saved: a backup of it, or without its log.
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

    /* a new one, whatever somebody else has begun to write */

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
    ngx_mcp_sqlite_look(zone);
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
        /* somebody else has it now: our zone is of no more use */
        ngx_mcp_writer_failed(zone, ngx_mcp_sqlite_of(zone)->db.error);

        if (ngx_mcp_lockfile_holds(zone)) {
            /* not by way of the lock: the file is not the one it was */
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

    if (batch->n + batch->ngone) {
        disk->commits++;
        disk->rows += batch->n + batch->ngone;
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
 * What the database had is in memory.  Which file it will be is known when
 * something was saved: a writer may die as soon as it has made one.
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

    /* it is tried every second, but said once */

    if (!same) {
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "the store of zone \"%V\" failed: \"%V\" %s; changes "
                      "are refused until it works again", &zone->name,
                      &ngx_mcp_sqlite_of(zone)->path, why);
    }
}


/* what is not saved yet; threads are gone already */

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
