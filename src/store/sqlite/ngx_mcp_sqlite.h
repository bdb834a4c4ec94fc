
/*
 * A zone with a store on disk.
 *
 * Shared memory is what everybody works with; what changes there is written
 * to a database by one of the processes, the writer, in a thread of nginx's
 * pool.  With sync=always an operation that changed something is answered
 * when the change is on disk; nothing else waits.
 *
 * A file beside the database has the locks: the first byte is the writer's.
 * The second is shared by all processes whose zone has what the database has:
 * one zone's memory, an instance.  Another instance (after a restart, of a
 * zone with another size, of a new binary) has to have it for itself before
 * it reads the database and goes on from there; while it waits for that, it
 * has the third.
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


/* in the lock file */
#define NGX_MCP_LOCK_WRITER  0
#define NGX_MCP_LOCK_ZONE    1
#define NGX_MCP_LOCK_WANTED  2


typedef struct ngx_mcp_sqlite_s {
    /* of the configuration */
    ngx_str_t        path;
    ngx_str_t        lock;
    ngx_uint_t       sync;
    void            *threads;    /* ngx_thread_pool_t */
    ngx_cycle_t     *cycle;

    /* of this process */
    ngx_fd_t         fd;         /* of the lock file; -1 */
    ngx_queue_t      parked;     /* operations that wait */
    ngx_event_t      look;       /* now and then */
    ngx_event_t      write;      /* there is something to save */
    ngx_event_t      ready;      /* something was saved */
    ngx_mcp_watch_t  unsaved;
    ngx_mcp_watch_t  saved;

    /* of the writer */
    ngx_mcp_db_t     db;
    ngx_mcp_batch_t  batch;
    void            *task;       /* ngx_thread_task_t */
    ngx_int_t        rc;
    uint64_t         device;     /* the file that it has to be */
    uint64_t         inode;      /* 0: any */
    uint64_t         upto;       /* what it has to have */
    ngx_uint_t       took;       /* ms, of a commit */
    ngx_msec_t       begun;
    ngx_msec_t       exiting;    /* since when */
    ngx_msec_t       left;       /* others are to write since */

    unsigned         synced:1;   /* the configuration has it */
    unsigned         wanting:1;
    unsigned         writing:1;  /* we are the writer */
    unsigned         busy:1;     /* a thread has db and batch */
    unsigned         logged:1;   /* why we wait for the zone */
} ngx_mcp_sqlite_t;


#define ngx_mcp_sqlite_of(zone)  ((ngx_mcp_sqlite_t *) (zone)->store_data)


/* ngx_mcp_sqlite.c */

extern ngx_mcp_store_t  ngx_mcp_sqlite_store;

/* ngx_mcp_sqlite_op.c */

void ngx_mcp_sqlite_zone(ngx_mcp_zone_t *zone);
void ngx_mcp_sqlite_process(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone);
ngx_int_t ngx_mcp_sqlite_op(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
ngx_int_t ngx_mcp_sqlite_look_up(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
void ngx_mcp_sqlite_look(ngx_mcp_zone_t *zone);

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
