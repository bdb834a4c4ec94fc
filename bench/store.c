
/*
 * What a store does to its database, and nothing else: the limit of what
 * bench/store.py measures.
 *
 *   store DATABASE create|finish BATCH SECONDS
 *
 * DATABASE was made by nginx and has a task that is completed.  "create"
 * saves tasks like that as they are when they are new, "finish" saves each
 * twice more, as it is claimed and completed; BATCH changes in each commit,
 * which is synced.  Prints how many tasks a second.
 */


#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


#define COLUMNS   64
#define PAYLOADS  8

/* of payloads, as in the keys */
#define PARAMS    0
#define RESULT    3


typedef struct {
    sqlite3        *db;
    sqlite3_stmt   *task;
    sqlite3_stmt   *payload;
    sqlite3_stmt   *begin;
    sqlite3_stmt   *commit;
    int             columns;
    sqlite3_value  *column[COLUMNS];        /* the first is the key */
    sqlite3_value  *data[PAYLOADS];
} store_t;


static void
fail(store_t *st, const char *what)
{
    fprintf(stderr, "store: %s: %s\n", what, sqlite3_errmsg(st->db));
    exit(2);
}


static sqlite3_stmt *
prepare(store_t *st, const char *sql)
{
    sqlite3_stmt  *stmt;

    if (sqlite3_prepare_v2(st->db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        fail(st, sql);
    }

    return stmt;
}


static void
run(store_t *st, sqlite3_stmt *stmt)
{
    if (sqlite3_step(stmt) != SQLITE_DONE) {
        fail(st, sqlite3_sql(stmt));
    }

    (void) sqlite3_reset(stmt);
}


/* the task that is there, and where the next one goes */

static sqlite3_int64
sample(store_t *st)
{
    int            i;
    char           sql[512], *p;
    sqlite3_int64  seq;
    sqlite3_stmt  *stmt;

    stmt = prepare(st, "SELECT * FROM task ORDER BY seq LIMIT 1");

    if (sqlite3_step(stmt) != SQLITE_ROW) {
        fail(st, "no task");
    }

    st->columns = sqlite3_column_count(stmt);

    if (st->columns > COLUMNS) {
        fail(st, "too many columns");
    }

    p = sql + sprintf(sql, "INSERT OR REPLACE INTO task VALUES (?");

    for (i = 0; i < st->columns; i++) {
        st->column[i] = sqlite3_value_dup(sqlite3_column_value(stmt, i));
        p += sprintf(p, "%s", i ? ", ?" : "");
    }

    (void) sprintf(p, ")");
    seq = sqlite3_column_int64(stmt, 0);
    (void) sqlite3_finalize(stmt);

    stmt = prepare(st, "SELECT key - ?1 * 8, data FROM payload"
                       " WHERE key BETWEEN ?1 * 8 AND ?1 * 8 + 7");
    (void) sqlite3_bind_int64(stmt, 1, seq);

    while (sqlite3_step(stmt) == SQLITE_ROW) {
        i = sqlite3_column_int(stmt, 0);
        st->data[i] = sqlite3_value_dup(sqlite3_column_value(stmt, 1));
    }

    (void) sqlite3_finalize(stmt);

    if (st->data[PARAMS] == NULL || st->data[RESULT] == NULL) {
        fail(st, "the task is not completed");
    }

    st->task = prepare(st, sql);
    st->payload = prepare(st, "INSERT OR REPLACE INTO payload VALUES (?, ?)");
    st->begin = prepare(st, "BEGIN IMMEDIATE");
    st->commit = prepare(st, "COMMIT");

    stmt = prepare(st, "SELECT max(seq) + 1 FROM task");
    (void) sqlite3_step(stmt);
    seq = sqlite3_column_int64(stmt, 0);
    (void) sqlite3_finalize(stmt);

    return seq;
}


static void
save(store_t *st, sqlite3_int64 seq, int payload)
{
    int  i;

    (void) sqlite3_bind_int64(st->task, 1, seq);

    for (i = 1; i < st->columns; i++) {
        (void) sqlite3_bind_value(st->task, i + 1, st->column[i]);
    }

    run(st, st->task);

    if (payload != -1) {
        (void) sqlite3_bind_int64(st->payload, 1, seq * 8 + payload);
        (void) sqlite3_bind_value(st->payload, 2, st->data[payload]);
        run(st, st->payload);
    }
}


static double
now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


int
main(int argc, char **argv)
{
    int            i, batch, finish;
    long           n;
    double         from, seconds;
    store_t        st;
    sqlite3_int64  seq;

    if (argc != 5) {
        fprintf(stderr, "usage: store DATABASE create|finish BATCH SECONDS\n");
        return 2;
    }

    finish = (strcmp(argv[2], "finish") == 0);
    batch = atoi(argv[3]);
    seconds = atof(argv[4]);

    memset(&st, 0, sizeof(store_t));

    if (sqlite3_open(argv[1], &st.db) != SQLITE_OK
        || sqlite3_exec(st.db, "PRAGMA journal_mode = WAL;"
                               "PRAGMA synchronous = FULL", NULL, NULL, NULL)
           != SQLITE_OK)
    {
        fail(&st, argv[1]);
    }

    seq = sample(&st);
    from = now();
    n = 0;

    while (now() - from < seconds) {
        run(&st, st.begin);

        for (i = 0; i < batch; i++) {
            if (!finish) {
                save(&st, seq++, PARAMS);
                n++;

            } else if (n++ % 2 == 0) {
                save(&st, seq, -1);

            } else {
                save(&st, seq++, RESULT);
            }
        }

        run(&st, st.commit);
    }

    printf("%.1f\n", (finish ? n / 2 : n) / (now() - from));

    return 0;
}
