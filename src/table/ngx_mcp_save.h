
/*
 * Between the table and a store on disk: which tasks are not saved yet, copies
 * of them, and the way back.
 *
 * All tasks are in a list by their last change, so those that are not saved
 * are its front: what changed after sh->saved.  The oldest of them is known,
 * and the writer goes from there to the front, so that sh->saved only grows.
 * Of each task it is known which payloads have changed since; to save more
 * than that does no harm.  Both are cleared after a commit, and only for what
 * has not changed meanwhile: if the writer dies, the next one does it again.
 *
 * A task that is removed leaves its slot until its row has been removed.
 *
 * A change may be waited for while its task changes again, and so moves behind
 * what one commit takes: sh->saved passes it, though it is not on disk.  Such
 * changes are counted (sh->mixed), and while there may be some sh->safe stays
 * behind, up to a commit that takes everything.  Whoever waits, waits for that.
 *
 * The time of the first change that may not be safe is in sh->since.
 */


#ifndef _NGX_MCP_SAVE_H_INCLUDED_
#define _NGX_MCP_SAVE_H_INCLUDED_


#include "ngx_mcp_table.h"


#define NGX_MCP_UNSAVED_ALL  ((1u << NGX_MCP_PAYLOADS) - 1)

/* copied in one hold of the lock, and saved in one commit */
#define NGX_MCP_SAVE_TASKS    512
#define NGX_MCP_SAVE_BYTES    1048576
#define NGX_MCP_SAVE_GONE     4096


/* a task as it is saved; of payloads only those in the mask */

typedef struct {
    ngx_mcp_id_t    id;
    uint64_t        seq;
    ngx_mcp_body_t  body;
    uint32_t        slot;
    ngx_uint_t      mask;
    ngx_str_t       owner;
    ngx_str_t       tool;
    ngx_str_t       token;
    ngx_str_t       session;
    ngx_str_t       method;            /* with the params */
    ngx_str_t       payload[NGX_MCP_PAYLOADS];
    ngx_str_t       history;           /* see ngx_mcp_history.h */
} ngx_mcp_record_t;


typedef struct {
    ngx_mcp_record_t  *records;
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

    /* when it was copied */
    uint64_t           now;
    uint64_t           wall;
} ngx_mcp_batch_t;


/* how far a load has come, and what it would take */

typedef struct {
    uint64_t    tasks;
    uint64_t    blocks;
    uint64_t    expired;
    uint64_t    seq;               /* the largest */
    ngx_uint_t  full;              /* it did not fit */
    uint64_t    now;
    uint64_t    wall;
} ngx_mcp_load_t;


void ngx_mcp_save_put_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_save_take_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);
void ngx_mcp_save_gone_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s);

void ngx_mcp_save_since_locked(ngx_mcp_table_t *t);
void ngx_mcp_unsaved_locked(ngx_mcp_table_t *t);

ngx_int_t ngx_mcp_batch_init(ngx_mcp_batch_t *batch, ngx_log_t *log);
ngx_int_t ngx_mcp_batch_grow(ngx_mcp_batch_t *batch, ngx_log_t *log);
void ngx_mcp_batch_free(ngx_mcp_batch_t *batch);

ngx_int_t ngx_mcp_save_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch);
void ngx_mcp_saved_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch);
void ngx_mcp_save_all_locked(ngx_mcp_table_t *t);

void ngx_mcp_load_begin_locked(ngx_mcp_table_t *t, uint64_t *secret,
    ngx_mcp_load_t *load);
void ngx_mcp_load_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load,
    ngx_mcp_record_t *rec);
void ngx_mcp_load_end_locked(ngx_mcp_table_t *t, ngx_mcp_load_t *load);

uint64_t ngx_mcp_to_wall(uint64_t time, uint64_t now, uint64_t wall);
uint64_t ngx_mcp_from_wall(uint64_t time, uint64_t now, uint64_t wall);


#define ngx_mcp_has_unsaved(t)  ((t)->sh->oldest || (t)->sh->gone.head)


#endif /* _NGX_MCP_SAVE_H_INCLUDED_ */
