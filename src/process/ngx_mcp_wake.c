
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_wake.h"
#include "ngx_mcp_signal.h"


/*
 * How often a process reads the logs without a wake-up, in ms: a process may
 * have died before it sent one.  Without a place this is the only way, and
 * POLL is the interval.
 */
#define NGX_MCP_WAKE_LOOK   500
#define NGX_MCP_WAKE_POLL   50

#define NGX_MCP_WAKE_BATCH  64

/* lists of watches: one for each key of a name, the others for tasks */
#define NGX_MCP_WATCH_TASKS  4096
#define NGX_MCP_WATCH_LISTS  (NGX_MCP_KEYS + NGX_MCP_WATCH_TASKS)

/* not a key of a name or a task: matches all watches */
#define NGX_MCP_WATCH_ANY   ((uint64_t) NGX_MCP_KEYS)


/* the place in numbers of streams of all processes that have none */
#define NGX_MCP_NO_PLACE    (NGX_MCP_PROCESSES - 1)


/*
 * The pid of the process that has the place, 0: free.  That of NO_PLACE is the
 * number of streams that processes without a place have used so far.
 */
typedef ngx_atomic_t  ngx_mcp_place_t;


typedef struct {
    ngx_mcp_place_t   *places;     /* in shared memory */
    ngx_fd_t           fds[NGX_MCP_PROCESSES];
    ngx_uint_t         n;          /* places with an eventfd */

    /* of this process */
    ngx_int_t          place;      /* -1: none was free */
    ngx_mcp_local_t  **locals;     /* its zones */
    ngx_uint_t         nlocals;
    ngx_mcp_hooks_t   *hooks;
    ngx_event_t        drain;      /* posted to wake this process */
    ngx_event_t        look;       /* the timer */
    ngx_connection_t   dummy;      /* debug logging reads its fd */
    uint32_t           streams;    /* numbers used so far */
} ngx_mcp_wake_t;


static ngx_int_t ngx_mcp_wake_local(ngx_cycle_t *cycle,
    ngx_mcp_local_t *local);
static void ngx_mcp_wake_reap(void);
static ngx_int_t ngx_mcp_wake_place(ngx_cycle_t *cycle);
static ngx_int_t ngx_mcp_wake_listen(ngx_cycle_t *cycle, ngx_fd_t fd);
static void ngx_mcp_wake_zone(ngx_mcp_local_t *local);
static void ngx_mcp_wake(ngx_mcp_table_t *t, uint64_t processes);
static void ngx_mcp_wake_stuck(ngx_mcp_table_t *t, ngx_pid_t holder,
    uint64_t waited);
static void ngx_mcp_wake_read(ngx_event_t *ev);
static void ngx_mcp_wake_look(ngx_event_t *ev);
static void ngx_mcp_wake_drain(ngx_event_t *ev);
static void ngx_mcp_wake_died(ngx_mcp_local_t *local);
static void ngx_mcp_wake_signals(ngx_mcp_local_t *local);
static void ngx_mcp_wake_all(ngx_mcp_local_t *local);
static void ngx_mcp_wake_list(ngx_queue_t *list, uint64_t key);
static ngx_queue_t *ngx_mcp_watch_list(ngx_mcp_local_t *local, uint64_t key);


/* places and eventfds are created in the master and inherited by fork() */

static ngx_mcp_wake_t  ngx_mcp_wake_ctx;

ngx_uint_t  ngx_mcp_wakeups;


/*
 * In the master, for each configuration: adds places if there are more worker
 * processes now; existing places stay.  Failures are not errors, because an
 * error would end the master: processes without a place poll.
 */

ngx_int_t
ngx_mcp_wake_module(ngx_cycle_t *cycle)
{
#if (NGX_HAVE_EVENTFD)

    ngx_shm_t         shm;
    ngx_uint_t        n;
    ngx_core_conf_t  *ccf;
    ngx_mcp_wake_t   *ctx;

    ctx = &ngx_mcp_wake_ctx;

    if (ctx->places == NULL) {
        ngx_memzero(&shm, sizeof(ngx_shm_t));
        shm.size = NGX_MCP_PROCESSES * sizeof(ngx_mcp_place_t);
        shm.log = cycle->log;
        ngx_str_set(&shm.name, "mcp_tasks_places");

        if (ngx_shm_alloc(&shm) != NGX_OK) {
            return NGX_OK;
        }

        ctx->places = (ngx_mcp_place_t *) shm.addr;
        ngx_memzero((void *) ctx->places, shm.size);
    }

    /* four generations of worker processes may overlap */

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    n = ngx_min(ngx_max(64, 4 * (ngx_uint_t) ccf->worker_processes),
                NGX_MCP_NO_PLACE);

#if (NGX_MCP_TEST)
    if (getenv("MCP_TASKS_PLACES")) {
        n = atoi(getenv("MCP_TASKS_PLACES"));
    }
#endif

    while (ctx->n < n) {
        ctx->fds[ctx->n] = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);

        if (ctx->fds[ctx->n] == -1) {
            ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                          "eventfd() failed, %ui wake-up slots created",
                          ctx->n);
            break;
        }

        ctx->n++;
    }

#endif

    return NGX_OK;
}


/* in a worker process that starts: locals are its zones, as pointers */

ngx_int_t
ngx_mcp_wake_process(ngx_cycle_t *cycle, ngx_array_t *locals,
    ngx_mcp_hooks_t *hooks)
{
    ngx_uint_t       i;
    ngx_mcp_wake_t  *ctx;

    ctx = &ngx_mcp_wake_ctx;
    ctx->locals = locals->elts;
    ctx->nlocals = locals->nelts;
    ctx->hooks = hooks;

    if (ctx->nlocals == 0) {
        return NGX_OK;
    }

    ctx->dummy.fd = (ngx_socket_t) -1;
    ctx->drain.handler = ngx_mcp_wake_drain;
    ctx->drain.data = &ctx->dummy;
    ctx->drain.log = cycle->log;
    ctx->look.handler = ngx_mcp_wake_look;
    ctx->look.data = &ctx->dummy;
    ctx->look.log = cycle->log;
    ctx->look.cancelable = 1;

    ctx->place = -1;

    for (i = 0; i < ctx->nlocals; i++) {
        if (ngx_mcp_wake_local(cycle, ctx->locals[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    ngx_mcp_wake_reap();

    ctx->place = ngx_mcp_wake_place(cycle);

    if (ctx->place != -1
        && ngx_mcp_wake_listen(cycle, ctx->fds[ctx->place]) != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < ctx->nlocals; i++) {
        ngx_mcp_wake_zone(ctx->locals[i]);
    }

    ngx_add_timer(&ctx->look, NGX_MCP_WAKE_POLL);

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_wake_local(ngx_cycle_t *cycle, ngx_mcp_local_t *local)
{
    ngx_uint_t  i;

    local->watches = ngx_palloc(cycle->pool,
                                NGX_MCP_WATCH_LISTS * sizeof(ngx_queue_t));
    if (local->watches == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_MCP_WATCH_LISTS; i++) {
        ngx_queue_init(&local->watches[i]);
    }

    local->table->woken = ngx_mcp_wake;
    local->table->stuck = ngx_mcp_wake_stuck;

    return NGX_OK;
}


/*
 * Frees the places of processes that died, and takes the lock of each zone to
 * record it: the next incarnation of a place ends the streams of the last one,
 * and in a new epoch all processes count their waiting requests again.  Until
 * that is done the place contains the pid of this process, so that no other
 * process claims it.
 */

static void
ngx_mcp_wake_reap(void)
{
    u_char             dead[NGX_MCP_PROCESSES];
    ngx_uint_t         i, j, n;
    ngx_atomic_uint_t  pid;
    ngx_mcp_wake_t    *ctx;
    ngx_mcp_table_t   *t;

    ctx = &ngx_mcp_wake_ctx;

    for (n = 0, i = 0; i < ctx->n; i++) {
        pid = ctx->places[i];

        if (pid != 0
            && kill((ngx_pid_t) pid, 0) == -1
            && ngx_errno == NGX_ESRCH
            && ngx_atomic_cmp_set(&ctx->places[i], pid,
                                  (ngx_atomic_uint_t) ngx_pid))
        {
            dead[n++] = (u_char) i;
        }
    }

    for (i = 0; n && i < ctx->nlocals; i++) {
        t = ctx->locals[i]->table;

        ngx_mcp_lock(t);

        for (j = 0; j < n; j++) {
            t->sh->incarnations[dead[j]]++;
            ngx_memzero(&t->sh->present[dead[j]], sizeof(ngx_mcp_present_t));
        }

        t->sh->epoch++;
        t->sh->waiting = 0;
        ngx_mcp_signal_all_locked(t);

        ngx_mcp_unlock(t);
    }

    for (j = 0; j < n; j++) {
        ctx->places[dead[j]] = 0;
    }
}


/* claims a place; -1: all are in use */

static ngx_int_t
ngx_mcp_wake_place(ngx_cycle_t *cycle)
{
    ngx_uint_t       i;
    ngx_mcp_wake_t  *ctx;

    ctx = &ngx_mcp_wake_ctx;

    for (i = 0; i < ctx->n; i++) {
        if (ngx_atomic_cmp_set(&ctx->places[i], 0,
                               (ngx_atomic_uint_t) ngx_pid))
        {
            return i;
        }
    }

    ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                  "all %ui wake-up slots in use, polling every %d ms",
                  ctx->n, NGX_MCP_WAKE_POLL);

    return -1;
}


/*
 * "channel" as for nginx's own channel: nginx does not report the connection
 * as left open when the process exits.  "idle": nginx sets c->close and calls
 * the read handler when the process begins to exit.
 */

static ngx_int_t
ngx_mcp_wake_listen(ngx_cycle_t *cycle, ngx_fd_t fd)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(fd, cycle->log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->pool = cycle->pool;
    c->idle = 1;
    c->log = cycle->log;

    c->read->log = cycle->log;
    c->read->channel = 1;
    c->read->handler = ngx_mcp_wake_read;
    c->write->log = cycle->log;
    c->write->channel = 1;

    /* edge-triggered, each write is an event, and the eventfd is not read */

    if (ngx_add_event(c->read, NGX_READ_EVENT,
                      (ngx_event_flags & NGX_USE_CLEAR_EVENT) ? NGX_CLEAR_EVENT
                                                              : 0)
        != NGX_OK)
    {
        ngx_free_connection(c);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* takes the lock of the zone */

static void
ngx_mcp_wake_zone(ngx_mcp_local_t *local)
{
    ngx_mcp_wake_t   *ctx;
    ngx_mcp_table_t  *t;

    ctx = &ngx_mcp_wake_ctx;
    t = local->table;

    ngx_mcp_lock(t);

    if (ctx->place != -1) {
        t->self = (uint64_t) 1 << (ctx->place & 63);
        t->sh->incarnations[ctx->place]++;
        t->sh->present[ctx->place] = local->present;
    }

    /* a past epoch: the first drain calls the hooks for dead processes */

    local->epoch = t->sh->epoch - 1;
    local->cursor = t->sh->logged;

    ngx_mcp_unlock(t);
}


void
ngx_mcp_wake_exit(void)
{
    ngx_uint_t        i;
    ngx_mcp_wake_t   *ctx;
    ngx_mcp_table_t  *t;

    ctx = &ngx_mcp_wake_ctx;

    /*
     * A fast shutdown does not end the requests that wait.  The place keeps
     * the pid, so that another process reaps it like that of a killed one.
     */

    if (ngx_terminate || ctx->nlocals == 0 || ctx->place == -1 || ctx->n == 0)
    {
        return;
    }

    for (i = 0; i < ctx->nlocals; i++) {
        t = ctx->locals[i]->table;
        ngx_memzero(&t->sh->present[ctx->place], sizeof(ngx_mcp_present_t));
    }

    (void) ngx_atomic_cmp_set(&ctx->places[ctx->place],
                              (ngx_atomic_uint_t) ngx_pid, 0);
}


/*
 * The number of a new stream, unique in the zone.  Processes without a place
 * count together; without shared memory for places they may use the same ones.
 */

uint64_t
ngx_mcp_stream_new(ngx_mcp_local_t *local)
{
    uint32_t         n;
    ngx_uint_t       place;
    ngx_mcp_wake_t  *ctx;

    ctx = &ngx_mcp_wake_ctx;

    place = (ctx->place == -1) ? NGX_MCP_NO_PLACE : (ngx_uint_t) ctx->place;
    n = ++ctx->streams;

    if (ctx->place == -1 && ctx->places) {
        n = (uint32_t) ngx_atomic_fetch_add(&ctx->places[place], 1) + 1;
    }

    return ngx_mcp_stream(place, local->table->sh->incarnations[place], n);
}


/* publishes how many requests wait here; not counted without a place */

void
ngx_mcp_present(ngx_mcp_local_t *local)
{
    ngx_mcp_wake_t  *ctx;

    ctx = &ngx_mcp_wake_ctx;

    if (ctx->place != -1) {
        local->table->sh->present[ctx->place] = local->present;
    }
}


void
ngx_mcp_watch(ngx_mcp_local_t *local, ngx_mcp_watch_t *watch, uint64_t key,
    ngx_event_t *event)
{
    /* fired is not reset: the caller may have set it */

    watch->key = key;
    watch->event = event;

    ngx_queue_insert_tail(ngx_mcp_watch_list(local, key), &watch->queue);
}


static ngx_queue_t *
ngx_mcp_watch_list(ngx_mcp_local_t *local, uint64_t key)
{
    return &local->watches[ngx_mcp_signal_is_name(key)
                           ? key : NGX_MCP_KEYS + key % NGX_MCP_WATCH_TASKS];
}


void
ngx_mcp_unwatch(ngx_mcp_watch_t *watch)
{
    ngx_queue_remove(&watch->queue);
}


/* the table's hook after an unlock: wakes the processes that were signalled */

static void
ngx_mcp_wake(ngx_mcp_table_t *t, uint64_t processes)
{
    uint64_t         one;
    ngx_uint_t       i, bit;
    ngx_mcp_wake_t  *ctx;

    ctx = &ngx_mcp_wake_ctx;
    one = 1;

    for ( /* void */ ; processes; processes &= processes - 1) {

        bit = __builtin_ctzll(processes);

        /* places beyond the first 64 share their bits */

        for (i = bit; i < ctx->n; i += 64) {

            if (ctx->places[i] == 0) {
                continue;
            }

            if ((ngx_int_t) i == ctx->place) {
                ngx_post_event(&ctx->drain, &ngx_posted_events);
                continue;
            }

            /* EAGAIN: the counter is full, so a wake-up is pending */

            if (write(ctx->fds[i], &one, sizeof(uint64_t)) == -1
                && ngx_errno != NGX_EAGAIN)
            {
                ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                              "write() to eventfd failed");
            }
        }
    }
}


/* the table's hook while it waits for the lock */

static void
ngx_mcp_wake_stuck(ngx_mcp_table_t *t, ngx_pid_t holder, uint64_t waited)
{
    ngx_uint_t       i;
    ngx_mcp_wake_t  *ctx;

    ctx = &ngx_mcp_wake_ctx;

    for (i = 0; i < ctx->nlocals; i++) {
        if (ctx->locals[i]->table == t) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "waiting for the lock of zone \"%V\" for %uL ms, "
                          "held by process %P, which may be stopped",
                          ctx->locals[i]->name, waited, holder);
        }
    }
}


static void
ngx_mcp_wake_read(ngx_event_t *ev)
{
    uint64_t           n;
    ngx_uint_t         i;
    ngx_connection_t  *c;
    ngx_mcp_wake_t    *ctx;
    ngx_mcp_hooks_t   *hook;

    c = ev->data;
    ctx = &ngx_mcp_wake_ctx;

    if (c->close) {

        /* the process begins to exit: waiting requests must end */

        c->close = 0;
        c->idle = 0;

        for (i = 0; i < ctx->nlocals; i++) {
            for (hook = ctx->hooks; hook->exits; hook++) {
                hook->exits(ctx->locals[i]->data);
            }
        }

        return;
    }

    if (!(ngx_event_flags & NGX_USE_CLEAR_EVENT)) {
        (void) (read(c->fd, &n, sizeof(uint64_t)) == -1);
    }

    ngx_mcp_wake_drain(ev);
}


static void
ngx_mcp_wake_look(ngx_event_t *ev)
{
    ngx_mcp_wake_drain(ev);

    /* no new process replaces, and reaps, one that dies while it exits */

    ngx_mcp_wake_reap();

    ngx_add_timer(ev, (ngx_mcp_wake_ctx.place == -1) ? NGX_MCP_WAKE_POLL
                                                     : NGX_MCP_WAKE_LOOK);
}


/* reads the headers of the zones without their locks */

static void
ngx_mcp_wake_drain(ngx_event_t *ev)
{
    ngx_uint_t        i;
    ngx_mcp_wake_t   *ctx;
    ngx_mcp_local_t  *local;

    ctx = &ngx_mcp_wake_ctx;

    for (i = 0; i < ctx->nlocals; i++) {
        local = ctx->locals[i];

        if (local->epoch != local->table->sh->epoch) {
            ngx_mcp_wake_died(local);
        }

        if (local->table->self == 0) {
            ngx_mcp_wakeups++;
            ngx_mcp_wake_all(local);

        } else if (local->cursor != local->table->sh->logged) {
            ngx_mcp_wake_signals(local);
        }
    }
}


static void
ngx_mcp_wake_died(ngx_mcp_local_t *local)
{
    ngx_mcp_hooks_t  *hook;

    local->epoch = local->table->sh->epoch;

    for (hook = ngx_mcp_wake_ctx.hooks; hook->died; hook++) {
        hook->died(local->data);
    }
}


static void
ngx_mcp_wake_signals(ngx_mcp_local_t *local)
{
    ngx_uint_t         i, n, woken;
    ngx_mcp_table_t   *t;
    ngx_mcp_signal_t   signals[NGX_MCP_WAKE_BATCH];

    t = local->table;
    woken = 0;

    do {
        n = ngx_mcp_signal_read(t, &local->cursor, signals,
                                NGX_MCP_WAKE_BATCH);

        if (n > NGX_MCP_WAKE_BATCH) {
            ngx_mcp_wakeups++;
            ngx_mcp_wake_all(local);
            return;
        }

        for (i = 0; i < n; i++) {

            if (signals[i].processes & t->self) {
                woken |= ngx_mcp_signal_is_change(signals[i].key);
                ngx_mcp_wake_list(ngx_mcp_watch_list(local, signals[i].key),
                                  signals[i].key);
            }
        }

    } while (n == NGX_MCP_WAKE_BATCH);

    ngx_mcp_wakeups += woken;
}


/* if it is not known what has changed */

static void
ngx_mcp_wake_all(ngx_mcp_local_t *local)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_WATCH_LISTS; i++) {
        ngx_mcp_wake_list(&local->watches[i], NGX_MCP_WATCH_ANY);
    }
}


static void
ngx_mcp_wake_list(ngx_queue_t *list, uint64_t key)
{
    ngx_queue_t      *q;
    ngx_mcp_watch_t  *watch;

    for (q = ngx_queue_head(list);
         q != ngx_queue_sentinel(list);
         q = ngx_queue_next(q))
    {
        watch = ngx_queue_data(q, ngx_mcp_watch_t, queue);

        if (watch->key == key || key == NGX_MCP_WATCH_ANY) {
            watch->fired = 1;
            ngx_post_event(watch->event, &ngx_posted_events);
        }
    }
}
