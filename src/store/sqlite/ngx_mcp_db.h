
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The database of a store: creating and opening it, writing a batch of tasks,
 * and reading all tasks.  This part knows records and SQLite, but neither
 * shared memory nor events, and may run in a thread.
 *
 * All functions that fail leave a message in db->error.
 */


#ifndef _NGX_MCP_DB_H_INCLUDED_
#define _NGX_MCP_DB_H_INCLUDED_


#include "ngx_mcp_save.h"


#define NGX_MCP_DB_APPLICATION  0x4d435054      /* "MCPT" */
#define NGX_MCP_DB_VERSION      4

/* how long another program may lock the database, ms */
#define NGX_MCP_DB_BUSY         1000

/* how long opening it, or reading one task, may take, ms */
#define NGX_MCP_DB_TIMEOUT      25000


typedef enum {
    NGX_MCP_SYNC_ALWAYS = 0,
    NGX_MCP_SYNC_EVERYSEC,
    NGX_MCP_SYNC_OFF
} ngx_mcp_sync_e;


typedef struct {
    const char  *path;
    ngx_uint_t   sync;
    size_t       longest;           /* maximum bytes of a value, 0: any */

    /* of a new database: its owner, 0: none, and the secret of its tasks */
    uint64_t     instance;
    uint64_t     secret[2];

    void        *sqlite;            /* NULL: not open */
    void        *task;              /* prepared statements */
    void        *payload;
    void        *no_payload;
    void        *no_task;
    void        *no_payloads;
    void        *meta;
    void        *set_meta;

    /* inodes of the open files */
    uint64_t     device;
    uint64_t     inode;
    uint64_t     wal;

    uint64_t     until;             /* time limit, monotonic ms, 0: none */
    ngx_uint_t   synced;            /* the sync mode in effect */
    ngx_uint_t   created;           /* the file was created */
    char         error[NGX_MCP_STORE_ERROR];
} ngx_mcp_db_t;


typedef ngx_int_t (*ngx_mcp_db_row_pt)(void *data, ngx_mcp_record_t *rec);


ngx_int_t ngx_mcp_db_check(ngx_mcp_db_t *db);
ngx_int_t ngx_mcp_db_open(ngx_mcp_db_t *db);
void ngx_mcp_db_close(ngx_mcp_db_t *db);

ngx_int_t ngx_mcp_db_write(ngx_mcp_db_t *db, ngx_mcp_batch_t *batch);
ngx_int_t ngx_mcp_db_empty(ngx_mcp_db_t *db, uint64_t instance);
ngx_int_t ngx_mcp_db_begin(ngx_mcp_db_t *db);
ngx_int_t ngx_mcp_db_commit(ngx_mcp_db_t *db, ngx_int_t rc);
ngx_int_t ngx_mcp_db_expire(ngx_mcp_db_t *db, uint64_t wall, uint64_t *n);
ngx_int_t ngx_mcp_db_read(ngx_mcp_db_t *db, ngx_mcp_db_row_pt row, void *data);
ngx_int_t ngx_mcp_db_invalid(ngx_mcp_db_t *db, uint64_t seq, const char *what);

/* internal functions of the ngx_mcp_db*.c files */

ngx_int_t ngx_mcp_db_fail(ngx_mcp_db_t *db, const char *what);
ngx_int_t ngx_mcp_db_exec(ngx_mcp_db_t *db, const char *sql, const char *what);
ngx_int_t ngx_mcp_db_number(ngx_mcp_db_t *db, const char *sql, int64_t *value);
ngx_int_t ngx_mcp_db_schema(ngx_mcp_db_t *db);
ngx_int_t ngx_mcp_db_prepare(ngx_mcp_db_t *db);
void ngx_mcp_db_deadline(ngx_mcp_db_t *db, ngx_uint_t on);
ngx_int_t ngx_mcp_db_sync(ngx_mcp_db_t *db);
ngx_int_t ngx_mcp_db_same(ngx_mcp_db_t *db);
ngx_int_t ngx_mcp_db_stat(ngx_mcp_db_t *db, struct stat *st, struct stat *wal);

ngx_int_t ngx_mcp_db_get(ngx_mcp_db_t *db, const char *key, uint64_t *value,
    ngx_uint_t n);
ngx_int_t ngx_mcp_db_set(ngx_mcp_db_t *db, const char *key,
    const uint64_t *value, ngx_uint_t n);


#endif /* _NGX_MCP_DB_H_INCLUDED_ */
