
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Between the table and a store on disk: which tasks are not saved yet, and
 * copies of them.
 *
 * The table has a list of all tasks by their last change, so the unsaved tasks
 * are at its front: they have changed after "saved".  The writer starts at the
 * oldest of them and continues to the front, so that "saved" only grows.  Each
 * slot has a bit for each payload that has changed since it was saved; to save
 * a payload once more is harmless.  Bits are cleared after a commit, and only
 * if the task has not changed since it was copied.  If the writer dies, the
 * next one repeats its work.
 *
 * The slot of a removed task is kept until its row is deleted.
 *
 * An operation may wait for a change whose task then changes again, and so
 * moves beyond what the next commit contains: "saved" passes the first change,
 * which is not on disk.  Such changes are counted in "overtaken".  While there
 * may be one, "safe" does not advance, until a commit contains all changes.
 * Operations wait for "safe".
 *
 * ngx_mcp_save_attach() gives the table the hooks that report changes.
 */


#ifndef _NGX_MCP_SAVE_H_INCLUDED_
#define _NGX_MCP_SAVE_H_INCLUDED_


#include "ngx_mcp_table.h"
#include "ngx_mcp_record.h"


/* limits of one commit, which is copied while the lock is held once */
#define NGX_MCP_SAVE_TASKS      512
#define NGX_MCP_SAVE_BYTES      1048576
#define NGX_MCP_SAVE_DELETIONS  4096


/*
 * Store time advances like the monotonic clock, so that setting the wall clock
 * changes no deadline.  Each commit stores the values of the clocks.  During
 * the same boot, store time follows from the monotonic clock.  After a reboot,
 * or on another machine, it follows from how far the wall clock has advanced.
 */

typedef struct {
    uint64_t           boot;         /* 0: unknown */
    uint64_t           offset;       /* store time - monotonic time */
    uint64_t           now;          /* monotonic, ms */
    uint64_t           wall;         /* ms */
} ngx_mcp_clock_t;


#define NGX_MCP_CLOCK_WORDS  (sizeof(ngx_mcp_clock_t) / sizeof(uint64_t))


/* data of the store in shared memory, for all processes */

typedef struct {
    /* the instance, 0: the zone is not loaded */
    uint64_t           instance;

    /* numbers of changes; saved and safe are NEVER until it is loaded */
    volatile uint64_t  saved;
    volatile uint64_t  safe;
    volatile uint64_t  failed;       /* up to this, saving failed */

    /* the count of overtaken changes, now and at the last full commit */
    uint64_t           overtaken;
    uint64_t           overtaken_saved;

    /*
     * the time of the first change that may not be safe, now, and after the
     * commit that is in progress; 0: none
     */
    volatile uint64_t  since;
    uint64_t           since_next;

    /* number of unsaved tasks, and the one that changed first */
    uint32_t           unsaved;
    uint32_t           oldest;

    /* removed slots whose rows are not deleted, in the order of removal */
    ngx_mcp_queue_t    deletions;
    uint32_t           ndeletions;

    uint32_t           rewrite;      /* all tasks are to be saved */
    ngx_atomic_t       writer;       /* pid, 0: none */

    uint64_t           device;       /* of the database file */
    uint64_t           inode;
    uint64_t           lock_device;  /* of the lock file */
    uint64_t           lock_inode;

    ngx_mcp_clock_t    clock;        /* when the zone was loaded */
} ngx_mcp_save_t;


/* what one commit writes; a copy, since a thread must not take the lock */

typedef struct {
    ngx_mcp_record_t  *records;
    uint32_t          *slots;        /* of each record */
    ngx_uint_t         n;
    uint64_t          *deletions;    /* seq of deleted tasks */
    ngx_uint_t         ndeletions;
    u_char            *data;         /* bytes of the records */
    size_t             size;
    size_t             need;         /* size of data that is required */

    uint64_t           upto;         /* the last change contained */
    uint64_t           instance;
    ngx_uint_t         more;         /* some changes did not fit */
    uint64_t           overtaken;    /* sv->overtaken, when it was copied */
    ngx_mcp_clock_t    clock;        /* when it was copied */
} ngx_mcp_batch_t;


#define ngx_mcp_save_of(t)  ((ngx_mcp_save_t *) (void *) (t)->sh->store)

#define ngx_mcp_has_unsaved(t)                                                \
    (ngx_mcp_save_of(t)->oldest || ngx_mcp_save_of(t)->deletions.head)


void ngx_mcp_save_attach(ngx_mcp_table_t *t, ngx_uint_t kept);

ngx_int_t ngx_mcp_batch_init(ngx_mcp_batch_t *batch, ngx_log_t *log);
ngx_int_t ngx_mcp_batch_grow(ngx_mcp_batch_t *batch, ngx_log_t *log);
void ngx_mcp_batch_free(ngx_mcp_batch_t *batch);
void ngx_mcp_batch_times(ngx_mcp_batch_t *batch, uint64_t now, uint64_t wall);

ngx_int_t ngx_mcp_save_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch);
void ngx_mcp_saved_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch);
void ngx_mcp_save_all_locked(ngx_mcp_table_t *t);
uint32_t ngx_mcp_save_count_locked(ngx_mcp_table_t *t);


#endif /* _NGX_MCP_SAVE_H_INCLUDED_ */
