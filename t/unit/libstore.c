
#include "libstore.h"

#include <stdio.h>
#include <sqlite3.h>


ngx_mcp_db_t     store_db;
ngx_mcp_batch_t  store_batch;
char             store_path[128];

static char      store_dir[64];


/* a directory for databases; nothing of it is left in the end */

ngx_int_t
store_begin(void)
{
    snprintf(store_dir, sizeof(store_dir), "/tmp/mcp_tasks_store_XXXXXX");

    if (mkdtemp(store_dir) == NULL) {
        return NGX_ERROR;
    }

    snprintf(store_path, sizeof(store_path), "%s/tasks.db", store_dir);
    ngx_cached_time->sec = STORE_WALL / 1000;

    return NGX_OK;
}


void
store_end(void)
{
    ngx_mcp_batch_free(&store_batch);
    (void) rmdir(store_dir);
}

void
store_init(void)
{
    ngx_memzero(&store_db, sizeof(store_db));
    store_db.path = store_path;
}


void
store_remove(void)
{
    char         name[160];
    ngx_uint_t   i;
    const char  *suffix[] = { "", "-wal", "-shm", "-journal" };

    ngx_mcp_db_close(&store_db);

    for (i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "%s%s", store_path, suffix[i]);
        (void) unlink(name);
    }
}


ngx_mcp_zone_t *
store_zone(size_t size)
{
    ngx_mcp_zone_t  *zone;

    zone = test_zone(size, 0);
    ngx_mcp_save_attach(zone->table, 0);
    STORE_SAVE(zone)->saved = 0;
    STORE_SAVE(zone)->safe = 0;
    STORE_SAVE(zone)->instance = 7;

    return zone;
}


void
store_collect(ngx_mcp_zone_t *zone)
{
    (void) ngx_mcp_batch_init(&store_batch, ngx_cycle->log);
    STORE_SAVE(zone)->clock.offset = STORE_WALL - ngx_current_msec;

    while (ngx_mcp_save_locked(zone->table, &store_batch) == NGX_AGAIN) {
        (void) ngx_mcp_batch_grow(&store_batch, ngx_cycle->log);
    }

    ngx_mcp_batch_times(&store_batch, ngx_current_msec, STORE_WALL);
}


/* everything that there is to save, in as many commits as it takes */

ngx_uint_t
store_save(ngx_mcp_zone_t *zone)
{
    uint64_t    saved;
    ngx_uint_t  n;

    for (n = 0; ngx_mcp_has_unsaved(zone->table); n++) {
        saved = STORE_SAVE(zone)->saved;
        store_collect(zone);

        if (ngx_mcp_db_write(&store_db, &store_batch) != NGX_OK) {
            diag("write: %s", store_db.error);
            return 0;
        }

        ngx_mcp_saved_locked(zone->table, &store_batch);

        if (STORE_SAVE(zone)->saved <= saved) {
            diag("saved does not grow");
            return 0;
        }
    }

    return n;
}


static ngx_int_t
store_row(void *data, ngx_mcp_record_t *rec)
{
    store_load_t  *l = data;

    ngx_mcp_load_locked(l->zone->table, &l->load, rec);

    return NGX_OK;
}


ngx_int_t
store_load(store_load_t *l, size_t size)
{
    l->zone = test_zone(size, 0);
    ngx_mcp_save_attach(l->zone->table, 0);

    return store_fill(l);
}


/* what the zone had is gone */

ngx_int_t
store_fill(store_load_t *l)
{
    ngx_int_t  rc;

    l->load.now = ngx_current_msec;

    ngx_mcp_load_begin_locked(l->zone->table, NULL, &l->load);
    rc = ngx_mcp_db_read(&store_db, store_row, l);

    if (rc == NGX_OK
        && ngx_mcp_load_end_locked(l->zone->table, &l->load) != NGX_OK)
    {
        rc = ngx_mcp_db_invalid(&store_db, l->load.row, l->load.field);
    }

    return rc;
}


int64_t
store_number(const char *sql)
{
    sqlite3        *other;
    sqlite3_stmt   *stmt;
    sqlite3_int64   n;

    n = -1;

    if (sqlite3_open(store_path, &other) == SQLITE_OK
        && sqlite3_prepare_v2(other, sql, -1, &stmt, NULL) == SQLITE_OK)
    {
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            n = sqlite3_column_int64(stmt, 0);
        }

        (void) sqlite3_finalize(stmt);
    }

    (void) sqlite3_close(other);

    return n;
}


void
store_execute(const char *sql)
{
    char     *err;
    sqlite3  *other;

    err = NULL;

    if (sqlite3_open(store_path, &other) != SQLITE_OK
        || sqlite3_exec(other, sql, NULL, NULL, &err) != SQLITE_OK)
    {
        diag("%s: %s", sql, err ? err : "not opened");
    }

    (void) sqlite3_close(other);
}


void
store_tasks(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id)
{
    ngx_uint_t      i;
    ngx_mcp_view_t  v;

    test_token = "\"a token\"";
    test_session = "a session";
    (void) test_create(zone, "a\"l\xffice", "dig", "{\"a\": 1.0}", &id[0]);
    test_token = NULL;
    test_session = NULL;

    for (i = 1; i < 8; i++) {
        (void) test_create(zone, i % 2 ? "" : "bob", "dig",
                           "{\"n\": 12345678901234567890}", &id[i]);
    }

    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_COMPLETE,
                      v.task.lease_token, NGX_MCP_RESULT, "{\"r\": 1}");
    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_FAIL, v.task.lease_token,
                      NGX_MCP_MESSAGE, "\"no\"");
    (void) test_claim(zone, "dig", &v);
    ngx_current_msec += 1000;
    (void) test_event(zone, &v.id, NGX_MCP_EV_ASK, v.task.lease_token,
                      NGX_MCP_REQUESTS,
                      "{\"q\": {\"method\": \"m\", \"params\": {}}}");
    (void) test_claim(zone, "dig", &v);
    (void) test_move(zone, &v.id, v.task.lease_token, 0.25, "\"a quarter\"");
    (void) test_claim(zone, "dig", &v);
    (void) test_event(zone, &v.id, NGX_MCP_EV_RETRY, v.task.lease_token, 0,
                      NULL);
    (void) test_event(zone, &id[6], NGX_MCP_EV_CANCEL, 0,
                      NGX_MCP_MESSAGE, "\"why not\"");
}
