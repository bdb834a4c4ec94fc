
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A zone with a store on disk.
 *
 * All processes work in shared memory.  One of them, the writer, saves the
 * changes to a database, in a thread of nginx's thread pool.  With sync=always
 * the response to an operation that changes something is sent after the change
 * is committed.  Otherwise it is sent at once, unless saving is about a second
 * late.  An operation that changes nothing never waits for the disk.
 *
 * The locks are in a file next to the database.  The first byte is locked by
 * the writer.  The second is shared by all processes of one instance, which is
 * the memory of one zone whose tasks are those of the database.  Another
 * instance (after a restart, with another size of the zone, or of a new
 * binary) needs this lock exclusively before it loads the database and becomes
 * its owner; while it waits, it holds a lock of the third byte.
 */


#ifndef _NGX_MCP_SQLITE_H_INCLUDED_
#define _NGX_MCP_SQLITE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#if (NGX_THREADS)
#include <ngx_thread_pool.h>
#endif

#include "ngx_mcp_store.h"
#include "ngx_mcp_wake.h"
#include "ngx_mcp_db.h"


#if (NGX_MCP_SQLITE && NGX_THREADS && defined(F_OFD_SETLK))
#define NGX_MCP_SQLITE_STORE  1
#endif


/* bytes of the lock file */
#define NGX_MCP_LOCK_WRITER  0
#define NGX_MCP_LOCK_ZONE    1
#define NGX_MCP_LOCK_WANTED  2


typedef struct ngx_mcp_sqlite_s {
    /* configuration */
    ngx_str_t        path;
    ngx_str_t        lock;
    ngx_uint_t       sync;
    void            *threads;    /* ngx_thread_pool_t */
    ngx_cycle_t     *cycle;

    /* of this process */
    ngx_fd_t         fd;         /* of the lock file; -1: not open */
    ngx_queue_t      parked;     /* operations waiting for a commit */
    ngx_event_t      check;      /* timer of the periodic check */
    ngx_event_t      write;      /* posted: there are unsaved changes */
    ngx_event_t      ready;      /* posted: changes were saved */
    ngx_mcp_watch_t  unsaved;    /* posts write */
    ngx_mcp_watch_t  saved;      /* posts ready */

    /* used if this process is the writer */
    ngx_mcp_db_t     db;
    ngx_mcp_batch_t  batch;
    void            *task;       /* ngx_thread_task_t */
    ngx_int_t        rc;         /* of the thread */
    uint64_t         device;     /* of the file that it has to be */
    uint64_t         inode;      /* 0: any file */
    uint64_t         upto;       /* the last change it has to have */
    ngx_uint_t       took;       /* duration of the last commit, ms */
    ngx_msec_t       begun;      /* time of the last commit */
    ngx_msec_t       exiting;    /* time when exiting started */
    ngx_msec_t       left;       /* when it left writing to others; 0: not */

    unsigned         synced:1;   /* "sync=" was given */
    unsigned         wanted:1;   /* has the lock WANTED */
    unsigned         writing:1;  /* has the lock WRITER */
    unsigned         busy:1;     /* a thread uses db and batch */
    unsigned         logged:1;   /* do not log it again */
} ngx_mcp_sqlite_t;


#define ngx_mcp_sqlite_of(zone)  ((ngx_mcp_sqlite_t *) (zone)->store_data)


/* ngx_mcp_sqlite.c */

extern ngx_mcp_store_t  ngx_mcp_sqlite_store;

/* ngx_mcp_sqlite_op.c */

void ngx_mcp_sqlite_zone(ngx_mcp_zone_t *zone);
void ngx_mcp_sqlite_process(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone);
ngx_int_t ngx_mcp_sqlite_op(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
ngx_int_t ngx_mcp_sqlite_look_up(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
void ngx_mcp_sqlite_answer(ngx_mcp_zone_t *zone);

/* ngx_mcp_writer.c */

void ngx_mcp_writer_process(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone);
void ngx_mcp_writer_kick(ngx_mcp_zone_t *zone);
void ngx_mcp_writer_failed(ngx_mcp_zone_t *zone, const char *why);
void ngx_mcp_writer_exit(ngx_mcp_zone_t *zone);

/* ngx_mcp_attach.c */

ngx_int_t ngx_mcp_attach_zone(ngx_mcp_zone_t *zone);
ngx_int_t ngx_mcp_attach_try(ngx_mcp_zone_t *zone, ngx_log_t *log);
void ngx_mcp_attach_leave(ngx_mcp_zone_t *zone);

/* ngx_mcp_fill.c */

ngx_int_t ngx_mcp_fill(ngx_mcp_zone_t *zone, ngx_mcp_db_t *db,
    uint64_t instance, ngx_log_t *log);

/* ngx_mcp_lockfile.c */

ngx_fd_t ngx_mcp_lockfile_open(ngx_mcp_zone_t *zone, ngx_log_t *log);
ngx_int_t ngx_mcp_lockfile_lock(ngx_fd_t fd, off_t byte, int type);
ngx_uint_t ngx_mcp_lockfile_wanted(ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_lockfile_lost(ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_lockfile_holds(ngx_mcp_zone_t *zone);
uint64_t ngx_mcp_lockfile_instance(ngx_fd_t fd);
ngx_int_t ngx_mcp_lockfile_name(ngx_mcp_zone_t *zone, ngx_fd_t fd,
    uint64_t instance);

/* ngx_mcp_path.c */

ngx_int_t ngx_mcp_path_conf(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
    ngx_array_t *zones);
ngx_int_t ngx_mcp_path_check(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_SQLITE_H_INCLUDED_ */
