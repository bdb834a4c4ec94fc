
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Writing and reading the rows of a database. */


#include "ngx_mcp_db.h"
#include "ngx_mcp_valid.h"


#if (NGX_MCP_SQLITE)

#include <sqlite3.h>


static ngx_int_t ngx_mcp_db_batch(ngx_mcp_db_t *db, ngx_mcp_batch_t *batch);
static ngx_int_t ngx_mcp_db_fence(ngx_mcp_db_t *db, uint64_t instance);
static ngx_int_t ngx_mcp_db_set_instance(ngx_mcp_db_t *db, uint64_t instance);
static ngx_int_t ngx_mcp_db_delete(ngx_mcp_db_t *db, uint64_t seq);
static ngx_int_t ngx_mcp_db_record(ngx_mcp_db_t *db, ngx_mcp_record_t *rec);
static void ngx_mcp_db_bind(sqlite3_stmt *stmt, int i, ngx_mcp_value_t *value);
static ngx_int_t ngx_mcp_db_execute(ngx_mcp_db_t *db, sqlite3_stmt *stmt);
static ngx_int_t ngx_mcp_db_fields(ngx_mcp_db_t *db, sqlite3_stmt *stmt,
    ngx_mcp_record_t *rec);
static void ngx_mcp_db_column(sqlite3_stmt *stmt, int i,
    ngx_mcp_value_t *value);
static ngx_int_t ngx_mcp_db_payloads(ngx_mcp_db_t *db, sqlite3_stmt *stmt,
    int *rc, ngx_mcp_record_t *rec, ngx_mcp_batch_t *buf);


static ngx_int_t
ngx_mcp_db_statement(ngx_mcp_db_t *db, const char *sql, void **stmt)
{
    if (sqlite3_prepare_v3(db->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT,
                           (sqlite3_stmt **) stmt, NULL)
        != SQLITE_OK)
    {
        return ngx_mcp_db_fail(db, "does not have the expected tables");
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_db_prepare(ngx_mcp_db_t *db)
{
    u_char      buf[4096], *p, *last;
    ngx_uint_t  i, first;

    last = buf + sizeof(buf);
    p = ngx_slprintf(buf, last, "INSERT INTO task (");

    for (i = 0; i < ngx_mcp_nfields; i++) {
        p = ngx_slprintf(p, last, "%s%s", i ? "," : "",
                         ngx_mcp_fields[i].name);
    }

    p = ngx_slprintf(p, last, ") VALUES (");

    for (i = 0; i < ngx_mcp_nfields; i++) {
        p = ngx_slprintf(p, last, "%s?", i ? "," : "");
    }

    p = ngx_slprintf(p, last, ") ON CONFLICT (seq) DO UPDATE SET ");

    for (first = 1, i = 0; i < ngx_mcp_nfields; i++) {
        if (ngx_mcp_fields[i].changes) {
            p = ngx_slprintf(p, last, "%s%s=excluded.%s", first ? "" : ",",
                             ngx_mcp_fields[i].name, ngx_mcp_fields[i].name);
            first = 0;
        }
    }

    *ngx_min(p, last - 1) = '\0';

    if (ngx_mcp_db_statement(db, (char *) buf, &db->task)
        != NGX_OK
        || ngx_mcp_db_statement(db,
               "INSERT OR REPLACE INTO payload VALUES (?, ?)", &db->payload)
           != NGX_OK
        || ngx_mcp_db_statement(db,
               "DELETE FROM payload WHERE key = ?", &db->no_payload)
           != NGX_OK
        || ngx_mcp_db_statement(db,
                                "DELETE FROM task WHERE seq = ?", &db->no_task)
           != NGX_OK
        || ngx_mcp_db_statement(db,
               "DELETE FROM payload WHERE key BETWEEN ? AND ?",
                                &db->no_payloads)
           != NGX_OK
        || ngx_mcp_db_statement(db,
               "SELECT value FROM meta WHERE key = ?", &db->meta)
           != NGX_OK
        || ngx_mcp_db_statement(db,
               "INSERT OR REPLACE INTO meta VALUES (?, ?)", &db->set_meta)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Writes the whole batch or nothing.  NGX_OK: it is committed to the files
 * that the path refers to.  NGX_DECLINED: the database belongs to another
 * instance.
 */

ngx_int_t
ngx_mcp_db_write(ngx_mcp_db_t *db, ngx_mcp_batch_t *batch)
{
    ngx_int_t  rc;

    if (ngx_mcp_db_same(db) != NGX_OK
        || (db->sync != db->synced && ngx_mcp_db_sync(db) != NGX_OK)
        || ngx_mcp_db_begin(db) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_mcp_db_commit(db, ngx_mcp_db_batch(db, batch));

    return (rc == NGX_OK) ? ngx_mcp_db_same(db) : rc;
}


ngx_int_t
ngx_mcp_db_begin(ngx_mcp_db_t *db)
{
    return ngx_mcp_db_exec(db, "BEGIN IMMEDIATE", "cannot be written");
}


/*
 * Ends a transaction: commits if rc is NGX_OK, or else rolls back and returns
 * rc.
 */

ngx_int_t
ngx_mcp_db_commit(ngx_mcp_db_t *db, ngx_int_t rc)
{
    if (rc == NGX_OK) {
        rc = ngx_mcp_db_exec(db, "COMMIT", "cannot be written");
    }

    if (rc != NGX_OK && !sqlite3_get_autocommit(db->sqlite)) {
        (void) sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    }

    return rc;
}


/* deletes all rows, before all tasks are written again */

ngx_int_t
ngx_mcp_db_empty(ngx_mcp_db_t *db, uint64_t instance)
{
    uint64_t   seq;
    ngx_int_t  rc;

    if (ngx_mcp_db_begin(db) != NGX_OK) {
        return NGX_ERROR;
    }

    seq = 0;
    rc = ngx_mcp_db_fence(db, instance);

    if (rc == NGX_OK) {
        rc = ngx_mcp_db_exec(db, "DELETE FROM task;"
                             "DELETE FROM payload",
                             "cannot be written");
    }

    if (rc == NGX_OK) {
        rc = ngx_mcp_db_set_instance(db, instance);
    }

    if (rc == NGX_OK) {
        rc = ngx_mcp_db_set(db, "seq", &seq, 1);
    }

    return ngx_mcp_db_commit(db, rc);
}


static ngx_int_t
ngx_mcp_db_batch(ngx_mcp_db_t *db, ngx_mcp_batch_t *batch)
{
    ngx_int_t   rc;
    ngx_uint_t  i;

    rc = ngx_mcp_db_fence(db, batch->instance);

    if (rc != NGX_OK) {
        return rc;
    }

    for (i = 0; i < batch->ndeletions; i++) {
        if (ngx_mcp_db_delete(db, batch->deletions[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < batch->n; i++) {
        if (ngx_mcp_db_record(db, &batch->records[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_mcp_db_set(db, "clock", (uint64_t *) &batch->clock,
                       NGX_MCP_CLOCK_WORDS)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_mcp_db_set(db, "seq", &batch->upto, 1);
}


/*
 * Two instances must never write to one database, even if locks were lost.  A
 * database without an instance and without tasks counts as new.  NGX_DECLINED:
 * it belongs to another instance.
 */

static ngx_int_t
ngx_mcp_db_fence(ngx_mcp_db_t *db, uint64_t instance)
{
    int64_t    tasks;
    uint64_t   value;
    ngx_int_t  rc;

    value = 0;
    rc = ngx_mcp_db_get(db, "instance", &value, 1);

    if (rc == NGX_ERROR || (rc == NGX_OK && value == instance)) {
        return rc;
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_mcp_db_number(db, "SELECT count(*) FROM"
                               " (SELECT 1 FROM task LIMIT 1)",
                               &tasks);
        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        if (tasks == 0) {
            return ngx_mcp_db_set_instance(db, instance);
        }
    }

    (void) sqlite3_snprintf(sizeof(db->error), db->error,
                            "belongs to another instance of nginx");

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_db_set_instance(ngx_mcp_db_t *db, uint64_t instance)
{
    if (db->instance
        && ngx_mcp_db_set(db, "secret", db->secret, 2) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_mcp_db_set(db, "instance", &instance, 1);
}


static ngx_int_t
ngx_mcp_db_delete(ngx_mcp_db_t *db, uint64_t seq)
{
    sqlite3_bind_int64(db->no_task, 1, (sqlite3_int64) seq);
    sqlite3_bind_int64(db->no_payloads, 1,
                       (sqlite3_int64) (seq * NGX_MCP_PAYLOAD_NUMBERS));
    sqlite3_bind_int64(db->no_payloads, 2,
                       (sqlite3_int64) ((seq + 1) * NGX_MCP_PAYLOAD_NUMBERS
                                        - 1));

    if (ngx_mcp_db_execute(db, db->no_task) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_db_execute(db, db->no_payloads);
}


static ngx_int_t
ngx_mcp_db_record(ngx_mcp_db_t *db, ngx_mcp_record_t *rec)
{
    ngx_str_t        *str;
    ngx_uint_t        i;
    sqlite3_stmt     *stmt;
    sqlite3_int64     key;
    ngx_mcp_value_t   value;

    for (i = 0; i < ngx_mcp_nfields; i++) {
        ngx_mcp_record_get(rec, &ngx_mcp_fields[i], &value);
        ngx_mcp_db_bind(db->task, (int) i + 1, &value);
    }

    if (ngx_mcp_db_execute(db, db->task) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {

        if (!(rec->mask & (1u << i))) {
            continue;
        }

        str = &rec->payload[i];
        stmt = str->len ? db->payload : db->no_payload;
        key = (sqlite3_int64) (rec->seq * NGX_MCP_PAYLOAD_NUMBERS
                               + ngx_mcp_payload_fields[i].number);

        sqlite3_bind_int64(stmt, 1, key);

        if (str->len) {
            sqlite3_bind_text64(stmt, 2, (char *) str->data, str->len,
                                SQLITE_STATIC, SQLITE_UTF8);

        } else if (rec->mask == NGX_MCP_RECORD_ALL
                   && rec->task.version == 1)
        {
            /* a new task: there is no row to delete */
            continue;
        }

        if (ngx_mcp_db_execute(db, stmt) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_mcp_db_bind(sqlite3_stmt *stmt, int i, ngx_mcp_value_t *value)
{
    ngx_str_t  *text;

    text = &value->text;

    switch (value->type) {

    case NGX_MCP_VALUE_NUMBER:
        sqlite3_bind_int64(stmt, i, (sqlite3_int64) value->number);
        return;

    case NGX_MCP_VALUE_REAL:
        sqlite3_bind_double(stmt, i, value->real);
        return;

    case NGX_MCP_VALUE_TEXT:
        sqlite3_bind_text(stmt, i, text->len ? (char *) text->data : "",
                          (int) text->len,
                          text->data == value->id ? SQLITE_TRANSIENT
                                                  : SQLITE_STATIC);
        return;

    case NGX_MCP_VALUE_BYTES:
        sqlite3_bind_blob(stmt, i, text->data, (int) text->len, SQLITE_STATIC);
        return;

    default: /* NGX_MCP_VALUE_NONE */
        sqlite3_bind_null(stmt, i);
    }
}


static ngx_int_t
ngx_mcp_db_execute(ngx_mcp_db_t *db, sqlite3_stmt *stmt)
{
    int  rc;

    rc = sqlite3_step(stmt);

    if (rc != SQLITE_DONE) {
        (void) ngx_mcp_db_fail(db, "cannot be written");
    }

    (void) sqlite3_reset(stmt);

    return (rc == SQLITE_DONE) ? NGX_OK : NGX_ERROR;
}


/*
 * Deletes the tasks that expired up to this store time, and counts them in n.
 */

ngx_int_t
ngx_mcp_db_expire(ngx_mcp_db_t *db, uint64_t wall, uint64_t *n)
{
    int             rc;
    ngx_int_t       done;
    sqlite3_stmt   *stmt;

    *n = 0;

    if (sqlite3_prepare_v2(db->sqlite,
                           "SELECT seq FROM task WHERE expires_at <= ?", -1,
                           &stmt, NULL)
        != SQLITE_OK)
    {
        return ngx_mcp_db_fail(db, "cannot be read");
    }

    sqlite3_bind_int64(stmt, 1, (sqlite3_int64) wall);
    ngx_mcp_db_deadline(db, 1);
    done = NGX_OK;

    for ( ;; ) {
        rc = sqlite3_step(stmt);

        if (rc != SQLITE_ROW) {
            break;
        }

        (*n)++;
        ngx_mcp_db_deadline(db, 1);
        done = ngx_mcp_db_delete(db, (uint64_t) sqlite3_column_int64(stmt, 0));
        if (done != NGX_OK) {
            break;
        }
    }

    if (done == NGX_OK && rc != SQLITE_DONE) {
        done = ngx_mcp_db_fail(db, "cannot be read");
    }

    ngx_mcp_db_deadline(db, 0);
    (void) sqlite3_finalize(stmt);

    return done;
}


/*
 * Reads all tasks in the order of their creation, and validates them.  A
 * record is valid until the row handler returns.  If the handler returns
 * NGX_ERROR, reading ends.
 */

ngx_int_t
ngx_mcp_db_read(ngx_mcp_db_t *db, ngx_mcp_db_row_pt row, void *data)
{
    int                rc, more;
    u_char             buf[2048], *p;
    ngx_int_t          done;
    ngx_uint_t         i;
    const char        *field;
    sqlite3_stmt      *stmt, *payloads;
    ngx_mcp_batch_t    bytes;
    ngx_mcp_record_t   rec;

    p = ngx_cpymem(buf, "SELECT ", 7);

    for (i = 0; i < ngx_mcp_nfields; i++) {
        p = ngx_slprintf(p, buf + sizeof(buf), "%s%s", i ? "," : "",
                         ngx_mcp_fields[i].name);
    }

    p = ngx_slprintf(p, buf + sizeof(buf) - 1, " FROM task ORDER BY seq");
    *p = '\0';

    stmt = NULL;
    payloads = NULL;
    ngx_memzero(&bytes, sizeof(ngx_mcp_batch_t));

    if (sqlite3_prepare_v2(db->sqlite, (char *) buf, -1, &stmt, NULL)
        != SQLITE_OK
        || sqlite3_prepare_v2(db->sqlite,
                              "SELECT key, data FROM payload ORDER BY key", -1,
                              &payloads, NULL)
           != SQLITE_OK)
    {
        done = ngx_mcp_db_fail(db, "cannot be read");
        (void) sqlite3_finalize(stmt);
        return done;
    }

    ngx_mcp_db_deadline(db, 1);

    more = sqlite3_step(payloads);
    done = NGX_OK;

    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {

        ngx_memzero(&rec, sizeof(ngx_mcp_record_t));
        rec.mask = NGX_MCP_RECORD_ALL;

        done = ngx_mcp_db_fields(db, stmt, &rec);

        if (done == NGX_OK) {
            done = ngx_mcp_db_payloads(db, payloads, &more, &rec, &bytes);
        }

        if (done == NGX_OK) {
            field = ngx_mcp_record_valid(&rec);
            done = field ? ngx_mcp_db_invalid(db, rec.seq, field)
                         : row(data, &rec);
        }

        if (done != NGX_OK) {
            break;
        }

        ngx_mcp_db_deadline(db, 1);
    }

    if (done == NGX_OK
        && (rc != SQLITE_DONE || (more != SQLITE_ROW && more != SQLITE_DONE)))
    {
        done = ngx_mcp_db_fail(db, "cannot be read");
    }

    ngx_mcp_db_deadline(db, 0);
    (void) sqlite3_finalize(stmt);
    (void) sqlite3_finalize(payloads);
    ngx_mcp_batch_free(&bytes);

    return done;
}


static ngx_int_t
ngx_mcp_db_fields(ngx_mcp_db_t *db, sqlite3_stmt *stmt, ngx_mcp_record_t *rec)
{
    ngx_uint_t        i;
    ngx_mcp_value_t   value;
    ngx_mcp_field_t  *field;

    for (i = 0; i < ngx_mcp_nfields; i++) {
        field = &ngx_mcp_fields[i];
        ngx_mcp_db_column(stmt, (int) i, &value);

        if (ngx_mcp_record_set(rec, field, &value) != NGX_OK) {
            return ngx_mcp_db_invalid(db,
                                      (uint64_t) sqlite3_column_int64(stmt, 0),
                                      field->name);
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_db_invalid(ngx_mcp_db_t *db, uint64_t seq, const char *what)
{
    (void) sqlite3_snprintf(sizeof(db->error), db->error,
                            "has an invalid task: row %lld, column \"%s\"",
                            (long long) seq, what);

    return NGX_ERROR;
}


static void
ngx_mcp_db_column(sqlite3_stmt *stmt, int i, ngx_mcp_value_t *value)
{
    switch (sqlite3_column_type(stmt, i)) {

    case SQLITE_NULL:
        value->type = NGX_MCP_VALUE_NONE;
        return;

    case SQLITE_INTEGER:
        value->type = NGX_MCP_VALUE_NUMBER;
        value->number = (uint64_t) sqlite3_column_int64(stmt, i);
        return;

    case SQLITE_FLOAT:
        value->type = NGX_MCP_VALUE_REAL;
        value->real = sqlite3_column_double(stmt, i);
        return;

    default:
        value->type = NGX_MCP_VALUE_BYTES;
        value->text.data = (u_char *) sqlite3_column_blob(stmt, i);
        value->text.len = sqlite3_column_bytes(stmt, i);
    }
}


/*
 * Reads the payloads of a record.  Tasks and payloads are read in the order of
 * their keys, so these are the next rows.
 */

static ngx_int_t
ngx_mcp_db_payloads(ngx_mcp_db_t *db, sqlite3_stmt *stmt, int *rc,
    ngx_mcp_record_t *rec, ngx_mcp_batch_t *bytes)
{
    size_t       used, len, at[NGX_MCP_PAYLOADS];
    u_char      *data, *grown;
    int64_t      key;
    ngx_uint_t   i;

    used = 0;

    for ( /* void */ ; *rc == SQLITE_ROW; *rc = sqlite3_step(stmt)) {
        key = sqlite3_column_int64(stmt, 0);

        if (key < 0) {
            continue;
        }

        if ((uint64_t) key / NGX_MCP_PAYLOAD_NUMBERS > rec->seq) {
            break;
        }

        i = ngx_mcp_record_payload((ngx_uint_t) key % NGX_MCP_PAYLOAD_NUMBERS);

        if ((uint64_t) key / NGX_MCP_PAYLOAD_NUMBERS < rec->seq
            || i == NGX_MCP_PAYLOADS)
        {
            /* without a task, or of an unknown kind */
            continue;
        }

        data = (u_char *) sqlite3_column_text(stmt, 1);
        len = sqlite3_column_bytes(stmt, 1);

        if (used + len > bytes->size) {
            grown = realloc(bytes->data, (used + len) * 2);

            if (grown == NULL) {
                (void) sqlite3_snprintf(sizeof(db->error), db->error,
                                        "cannot be read: out of memory");
                return NGX_ERROR;
            }

            bytes->data = grown;
            bytes->size = (used + len) * 2;
        }

        if (len) {
            ngx_memcpy(bytes->data + used, data, len);
        }

        at[i] = used;
        rec->payload[i].len = len;
        used += len;
    }

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (rec->payload[i].len) {
            rec->payload[i].data = bytes->data + at[i];
        }
    }

    return NGX_OK;
}


/*
 * Reads n words, which the table meta has in hexadecimal.  NGX_DECLINED: there
 * is no such value.
 */

ngx_int_t
ngx_mcp_db_get(ngx_mcp_db_t *db, const char *key, uint64_t *value,
    ngx_uint_t n)
{
    int          rc;
    u_char      *text;
    ngx_int_t    done, byte;
    ngx_uint_t   i;

    sqlite3_bind_text(db->meta, 1, key, -1, SQLITE_STATIC);
    rc = sqlite3_step(db->meta);
    done = NGX_DECLINED;

    if (rc == SQLITE_ROW
        && sqlite3_column_bytes(db->meta, 0) == (int) (n * 16))
    {
        text = (u_char *) sqlite3_column_text(db->meta, 0);
        done = NGX_OK;

        for (i = 0; i < n * 8; i++) {
            byte = ngx_hextoi(text + i * 2, 2);

            if (byte == NGX_ERROR) {
                done = NGX_DECLINED;
                break;
            }

            value[i / 8] = value[i / 8] << 8 | (uint64_t) byte;
        }

    } else if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        done = ngx_mcp_db_fail(db, "cannot be read");
    }

    (void) sqlite3_reset(db->meta);

    return done;
}


ngx_int_t
ngx_mcp_db_set(ngx_mcp_db_t *db, const char *key, const uint64_t *value,
    ngx_uint_t n)
{
    u_char      text[64], *p;
    ngx_uint_t  i;

    for (p = text, i = 0; i < n; i++) {
        p = ngx_sprintf(p, "%016xL", value[i]);
    }

    sqlite3_bind_text(db->set_meta, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(db->set_meta, 2, (char *) text, (int) (p - text),
                      SQLITE_TRANSIENT);

    return ngx_mcp_db_execute(db, db->set_meta);
}


#endif /* NGX_MCP_SQLITE */
