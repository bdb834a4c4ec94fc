
/*
 * A model of the table that knows nothing of hashes, wheels or blocks, and the
 * operations that compare the table with it.  For t/unit/model.c.
 */


#ifndef _LIBMODEL_H_INCLUDED_
#define _LIBMODEL_H_INCLUDED_


#include "libtest.h"

#include <stdio.h>


#define MAX            300
#define OWNERS         5
#define TOOLS          4
#define BYTES          6000
#define SESSIONS       3
#define PLACES         3
#define WORKERS        3

#define NEVER          NGX_MCP_NEVER

/* the policy of all tasks, in milliseconds */
#define MODEL_LEASE    300
#define MODEL_QUEUE    2000
#define MODEL_RUN      1500
#define MODEL_BACKOFF  50


typedef struct {
    int           live;
    ngx_mcp_id_t  id;
    uint64_t      seq;
    int           owner;
    int           tool;
    int           priority;
    int           state;
    uint64_t      version;
    uint64_t      lease;
    int           attempt;
    int           attempts;
    uint64_t      expires;
    uint64_t      step;
    uint64_t      phase;
    int           cause;
    double        progress;
    uint64_t      batch;        /* when it became claimable */
    uint64_t      since;        /* in its phase, or a time */
    int           worker;       /* -1: none */
    int           session;      /* -1: none */
    int           announced;
    uint64_t      changed;
    uint64_t      turned;
    uint64_t      moved;
    double        peak;
    uint64_t      asker;
    ngx_uint_t    waiting;
    ngx_uint_t    results;
    int           held;         /* by a process of ours */
    uint64_t      holder;
    int           calls;
    uint32_t      lease_time;
    int           refused;      /* and not told of room since */
    uint32_t      max_zone;
    uint32_t      max_tool;
    uint64_t      seed[NGX_MCP_PAYLOADS];
    size_t        len[NGX_MCP_PAYLOADS];
} model_task_t;


/* a session's client: the changes it received, and on which stream */

typedef struct {
    uint64_t  delivered;
    uint64_t  stream;
    uint32_t  opened;
    uint32_t  epoch;
} model_session_t;


/* what happened to the tasks of a tool */

typedef struct {
    uint64_t  created;
    uint64_t  ended[NGX_MCP_STATES];
    uint64_t  lapsed;
    uint64_t  dropped;
    uint64_t  claimed;
    uint64_t  requeued;
    uint64_t  leases_lost;
    uint64_t  runs;
    uint64_t  waited;       /* ms */
    uint64_t  ran;
} model_counters_t;


typedef struct {
    uint64_t  claimed;
    uint64_t  completed;
    uint64_t  failed;
    uint64_t  seen;
} model_worker_t;


typedef struct {
    model_task_t      tasks[MAX];
    model_counters_t  counters[TOOLS];
    model_worker_t    workers[WORKERS];
    model_session_t   sessions[SESSIONS];
    int               paused[TOOLS];
    int               draining[WORKERS];
    uint32_t          incarnations[PLACES];
    uint32_t          epoch;
    ngx_uint_t        waiting;
    uint64_t          batch;

    /* how often the rare cases occurred */
    ngx_uint_t        delivered_changes, asked, touched, limited;
    ngx_uint_t        began, refused, overtaken, adopted, orphans, announced;
    ngx_uint_t        controls;

    ngx_uint_t        errors;
    ngx_uint_t        ops;
    ngx_mcp_zone_t   *zone;
} model_state_t;


#define fail(...)                                                             \
    do {                                                                      \
        if (model.errors++ < 20) {                                            \
            printf("# op %lu, %s:%d: ", (unsigned long) model.ops,            \
                   __FILE__, __LINE__);                                       \
            printf(__VA_ARGS__);                                              \
            printf("\n");                                                     \
        }                                                                     \
    } while (0)

#define expect(got, want, what)                                               \
    if ((uint64_t) (got) != (uint64_t) (want)) {                              \
        fail("%s: got %llu, expected %llu", what,                             \
             (unsigned long long) (got), (unsigned long long) (want));        \
    }


/* t/unit/libmodel.c: the state, random choices and lookups */

void model_seed(uint64_t seed);
uint64_t model_rnd(uint64_t n);
void model_fill(u_char *p, uint64_t seed, size_t len);
size_t model_random_len(void);
size_t model_used_blocks(void);
int model_live(void);
model_task_t *model_pick(void);
model_task_t *model_pick_asking(void);
model_task_t *model_pick_held(void);
model_task_t *model_find(ngx_mcp_id_t *id);
int model_alive(uint64_t stream);
uint64_t model_any_stream(void);
int model_session_exists(int session);
void model_end_sessions(void);


/* t/unit/libmodel_rules.c: what events and time do to a task of the model */

uint64_t model_lease_end(model_task_t *m, uint64_t now);
void model_made(model_task_t *m, model_task_t *old, int noted, uint64_t before,
    uint64_t changed);
ngx_uint_t model_asks(model_task_t *m, uint64_t stream, int yields);
ngx_uint_t model_event(model_task_t *m, ngx_mcp_event_t *ev);
void model_work(model_task_t *m, ngx_uint_t event);
void model_time(model_task_t *m, uint64_t now);


/* t/unit/libmodel_tasks.c: operations on tasks */

void model_compare_task(model_task_t *m, ngx_mcp_view_t *v);
void model_compare(model_task_t *m, ngx_mcp_view_t *v);
void model_do_create(void);
void model_do_get(void);
void model_do_claim(void);
void model_do_event(void);
void model_do_delete(void);
void model_sweep(void);
void model_do_time(void);
int model_newer(const void *a, const void *b);
void model_do_list(void);


/* t/unit/libmodel_calls.c: calls that processes hold and run */

void model_check_capacity(void);
void model_check_running(void);
void model_do_run(void);
void model_do_orphans(void);


/* t/unit/libmodel_sessions.c: changes, sessions and waiting requests */

void model_do_changes(void);
void model_do_session(void);
void model_do_wait(void);
void model_do_leave(void);
void model_do_death(void);


/* t/unit/libmodel_stats.c: pauses, drains and statistics */

void model_do_control(void);
void model_do_stats(void);


extern model_state_t   model;

extern const char     *model_owner_names[OWNERS];
extern const char     *model_tool_names[TOOLS];
extern const char     *model_worker_names[WORKERS];
extern const char     *model_session_names[SESSIONS];


#endif /* _LIBMODEL_H_INCLUDED_ */
