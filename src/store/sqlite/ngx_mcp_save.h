
/*
 * Between the table and a store on disk: which tasks are not saved yet, and
 * copies of them.
 *
 * All tasks are in a list by their last change, so those that are not saved
 * are its front: what changed after "saved".  The oldest of them is known,
 * and the writer goes from there to the front, so that "saved" only grows.
 * Of each task it is known which payloads have changed since; to save more
 * than that does no harm.  Both are cleared after a commit, and only for what
 * has not changed meanwhile: if the writer dies, the next one does it again.
 *
 * A task that is removed leaves its slot until its row has been removed.
 *
 * A change may be waited for while its task changes again, and so moves behind
 * what one commit takes: "saved" passes it, though it is not on disk.  Such
 * changes are counted ("mixed"), and while there may be some "safe" stays
 * behind, up to a commit that takes everything.  Whoever waits, waits for that.
 *
 * The table tells of changes by the hooks that ngx_mcp_save_attach() gives it.
 */


#ifndef _NGX_MCP_SAVE_H_INCLUDED_
#define _NGX_MCP_SAVE_H_INCLUDED_


#include "ngx_mcp_table.h"
#include "ngx_mcp_record.h"


/* copied in one hold of the lock, and saved in one commit */
#define NGX_MCP_SAVE_TASKS    512
#define NGX_MCP_SAVE_BYTES    1048576
#define NGX_MCP_SAVE_GONE     4096


/*
 * Store time goes on as the monotonic clock does, so that nobody who sets the
 * wall clock changes a deadline.  With each commit it is noted how the clocks
 * stood: on the same boot store time is known from that, and later, or on
 * another machine, from how far the wall clock has moved since.
 */

typedef struct {
    uint64_t           boot;         /* 0: not known */
    uint64_t           offset;       /* of store time to monotonic time */
    uint64_t           now;          /* monotonic, ms */
    uint64_t           wall;         /* ms */
} ngx_mcp_clock_t;


#define NGX_MCP_CLOCK_WORDS  (sizeof(ngx_mcp_clock_t) / sizeof(uint64_t))


/* what is in the zone, for all processes */

typedef struct {
    /* whose tasks these are, 0: the database was not read yet */
    uint64_t           instance;

    /* numbers of changes; saved and safe are NEVER while it is not */
    volatile uint64_t  saved;
    volatile uint64_t  safe;
    volatile uint64_t  failed;       /* to be saved, up to this */

    /* changes that were overtaken, so far and at the last full commit */
    uint64_t           mixed;
    uint64_t           settled;

    /* the time of the first change that may not be safe, now, and once what
     * is being saved is saved; 0: none */
    volatile uint64_t  since;
    uint64_t           since_next;

    /* tasks that are not saved, and the one of them that changed first */
    uint32_t           unsaved;
    uint32_t           oldest;

    /* slots whose rows have to go, by when that was decided */
    ngx_mcp_queue_t    gone;
    uint32_t           ngone;

    uint32_t           rewrite;      /* all is to be saved */
    ngx_atomic_t       writer;       /* pid, 0: none */

    uint64_t           device;       /* of the database */
    uint64_t           inode;
    uint64_t           lock_device;  /* of its lock */
    uint64_t           lock_inode;

    ngx_mcp_clock_t    clock;        /* since the zone was filled */
} ngx_mcp_save_t;


typedef struct {
    ngx_mcp_record_t  *records;
    uint32_t          *slots;        /* of each */
    ngx_uint_t         n;
    uint64_t          *gone;         /* seq of each */
    ngx_uint_t         ngone;
    u_char            *data;
    size_t             size;
    size_t             need;         /* of data, if too small */

    uint64_t           upto;         /* the last change in it */
    uint64_t           instance;
    ngx_uint_t         more;         /* there is, after it */
    uint64_t           mixed;
    ngx_mcp_clock_t    clock;        /* when it was copied */
} ngx_mcp_batch_t;


#define ngx_mcp_save_of(t)  ((ngx_mcp_save_t *) (void *) (t)->sh->store)

#define ngx_mcp_has_unsaved(t)                                                \
    (ngx_mcp_save_of(t)->oldest || ngx_mcp_save_of(t)->gone.head)


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
