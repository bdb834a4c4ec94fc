
/*
 * Many readers of event streams, and changes that all of them are to hear of:
 *
 *     fanout ours|nchan|held -p PORT [-n readers] [-k tasks] [-P pid,pid]
 *            [-u changes] [-m changes] [-i interval] [-f changes] [-b bytes]
 *
 * First come -u changes that nobody reads, to know what it costs to publish
 * them.  Then come the readers: i reads the stream of task i % k.  When all
 * have their first event, -m changes are made, one each -i microseconds as
 * before, and then -f changes as fast as they are taken.
 *
 * A task is changed again only after all of its readers have got its last
 * change: a server may leave out states that a reader was too slow for, so
 * this makes one change one event everywhere, for every server alike.  What
 * has not come in STALLED ns counts as lost.
 *
 * The text of a change carries the time when the change was due, so whatever
 * it had to wait for is part of its latency, and its number, so a reader
 * notices what it has missed and what it gets twice.
 *
 * What the server's processes (-P) used up is read from /proc: memory before
 * the readers come and when they idle, processor time around the changes.
 * That includes what it takes the server to accept the changes.
 *
 * "nchan" publishes -b bytes at a time, to be made as long as our events
 * are.  "held" has requests that are not answered at all, and measures only
 * memory.
 *
 * Prints one line of names and values, see report().
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>


#define PUBLISHERS   8
#define CONNECTING   256
#define EVENTS       512
#define PIDS         64
#define BUFFER       65536
#define REQUEST      4096
#define STRIDE       7919
#define SETTLE       500000000LL
#define DRAIN        100000000LL
#define STALLED      10000000000LL

/* in the text of a change: when it was due, in ns, and its number */
#define MARK         "@@"
#define MARK_FORMAT  MARK "%016llx.%08x."
#define MARK_SIZE    (2 + 16 + 1 + 8 + 1)
#define TEXT         100


typedef enum {
    OURS = 0,
    NCHAN,
    HELD
} server_t;


typedef struct {
    char                 id[40];
    char                 lease[20];
    unsigned             readers;
    unsigned             waiting;       /* readers that lack the last change */
    unsigned             changes;
} task_t;


typedef struct {
    int                  fd;
    unsigned             publisher:1;
    unsigned             connected:1;
    unsigned             in_body:1;
    unsigned             chunked:1;
    unsigned             chunk_ends:1;  /* CR LF is due before the next one */
    unsigned             ready:1;
    unsigned             busy:1;
    uint64_t             left;          /* of the chunk */
    task_t              *task;
    unsigned             last;          /* change that was read */
    char                *raw;           /* not understood yet, of the wire */
    size_t               nraw;
    char                *text;          /* not understood yet, of the stream */
    size_t               ntext;
} conn_t;


typedef struct {
    uint64_t             expected;
    uint64_t             delivered;
    uint64_t             duplicates;
    uint64_t             data;          /* bytes of data lines */
    uint64_t             wire;          /* bytes that came to readers */
    uint32_t            *latency;       /* ns */
    int64_t              cpu;
    int64_t              time;
} phase_t;


static server_t   server;
static unsigned   port, nreaders = 1000, ntasks = 1, nready;
static unsigned   nbusy, nanswered;
static size_t     bytes = 300;
static pid_t      pids[PIDS];
static unsigned   npids;
static int        ep;
static conn_t    *readers, publishers[PUBLISHERS];
static task_t    *tasks;
static phase_t   *phase;


static void die(const char *format, ...) __attribute__((noreturn,
                                                format(printf, 1, 2)));


static void
die(const char *format, ...)
{
    va_list  args;

    fprintf(stderr, "fanout: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");

    exit(2);
}


static int64_t
now_ns(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}


static void *
allocate(size_t n, size_t size)
{
    void  *p;

    p = calloc(n, size);

    if (p == NULL) {
        die("no memory");
    }

    return p;
}


/* processor time of the server, in ns */

static int64_t
cpu_ns(void)
{
    char       name[64];
    FILE      *f;
    int64_t    sum;
    unsigned   i;
    long long  ns;

    sum = 0;

    for (i = 0; i < npids; i++) {
        snprintf(name, sizeof(name), "/proc/%d/schedstat", (int) pids[i]);
        f = fopen(name, "r");

        if (f == NULL || fscanf(f, "%lld", &ns) != 1) {
            die("cannot read %s", name);
        }

        fclose(f);
        sum += ns;
    }

    return sum;
}


/*
 * Memory of the server, in bytes: its own, and its part of what is shared.
 * Mapped files are left out, since their part depends on who else maps them.
 */

static int64_t
memory(void)
{
    char       name[64], line[256];
    FILE      *f;
    int64_t    sum;
    unsigned   i;
    long long  kb;

    sum = 0;

    for (i = 0; i < npids; i++) {
        snprintf(name, sizeof(name), "/proc/%d/smaps_rollup", (int) pids[i]);
        f = fopen(name, "r");

        if (f == NULL) {
            die("cannot read %s", name);
        }

        while (fgets(line, sizeof(line), f)) {
            if (sscanf(line, "Pss_Anon: %lld", &kb) == 1
                || sscanf(line, "Pss_Shmem: %lld", &kb) == 1)
            {
                sum += kb * 1024;
            }
        }

        fclose(f);
    }

    return sum;
}


static void
change_came(conn_t *c, const char *mark, size_t len, int64_t now)
{
    char      number[20];
    int64_t   due;
    unsigned  n;

    memcpy(number, mark + 2, 16);
    number[16] = '\0';
    due = strtoll(number, NULL, 16);

    memcpy(number, mark + 2 + 16 + 1, 8);
    number[8] = '\0';
    n = strtoul(number, NULL, 16);

    if (n <= c->last) {
        phase->duplicates++;
        return;
    }

    c->last = n;

    if (n != c->task->changes) {
        /* too late to be counted: it was given up, and others came */
        return;
    }

    c->task->waiting--;
    phase->latency[phase->delivered++] = now - due;
    phase->data += len;
}


static void
event_came(conn_t *c, const char *p, const char *end, int64_t now)
{
    const char  *line, *mark;

    for (line = p; line < end; line = p + 1) {
        p = memchr(line, '\n', end - line);

        if (p == NULL) {
            p = end;
        }

        if (p - line < 5 || memcmp(line, "data:", 5) != 0) {
            continue;
        }

        if (!c->ready) {
            /* the state as it was when the reader came */
            c->ready = 1;
            nready++;
            return;
        }

        mark = memmem(line, p - line, MARK, sizeof(MARK) - 1);

        if (mark == NULL || p - mark < MARK_SIZE || phase == NULL) {
            die("unexpected event: %.*s", (int) (p - line), line);
        }

        change_came(c, mark, p - line - 6, now);

        return;
    }
}


/* keeps the rest of what was read for the next time */

static void
keep(char **buf, size_t *n, const char *p, const char *end)
{
    if (p == end) {
        *n = 0;
        return;
    }

    if (end - p > BUFFER) {
        die("no end in sight of: %.200s", p);
    }

    if (*buf == NULL) {
        *buf = allocate(1, BUFFER * 2);
    }

    memmove(*buf, p, end - p);
    *n = end - p;
}


static void
text_came(conn_t *c, const char *p, const char *end, int64_t now)
{
    const char  *stop;

    if (c->ntext) {
        if (c->ntext + (end - p) > BUFFER * 2) {
            die("an event is too long");
        }

        memcpy(c->text + c->ntext, p, end - p);
        c->ntext += end - p;
        p = c->text;
        end = p + c->ntext;
    }

    for ( ;; ) {
        stop = memmem(p, end - p, "\n\n", 2);

        if (stop == NULL) {
            break;
        }

        event_came(c, p, stop, now);
        p = stop + 2;
    }

    keep(&c->text, &c->ntext, p, end);
}


/* returns what was not used */

static const char *
chunks_came(conn_t *c, const char *p, const char *end, int64_t now)
{
    size_t       n;
    const char  *line;

    while (p < end) {
        if (c->left) {
            n = end - p;
            n = (n < c->left) ? n : c->left;
            text_came(c, p, p + n, now);
            p += n;
            c->left -= n;
            c->chunk_ends = (c->left == 0);
            continue;
        }

        if (c->chunk_ends) {
            if (end - p < 2) {
                break;
            }

            p += 2;
            c->chunk_ends = 0;
            continue;
        }

        line = memchr(p, '\n', end - p);

        if (line == NULL) {
            break;
        }

        c->left = strtoull(p, NULL, 16);

        if (c->left == 0) {
            die("a stream has ended");
        }

        p = line + 1;
    }

    return p;
}


/* the head of a response, which must be there as a whole; or NULL */

static const char *
head_came(conn_t *c, const char *p, const char *end)
{
    const char  *stop;

    stop = memmem(p, end - p, "\r\n\r\n", 4);

    if (stop == NULL) {
        return NULL;
    }

    if (end - p < 12 || memcmp(p, "HTTP/1.1 2", 10) != 0) {
        die("refused: %.*s", (int) (end - p), p);
    }

    c->chunked = memmem(p, stop - p, "chunked", 7) != NULL;

    return stop + 4;
}


static void
answer_came(conn_t *c, const char *p, const char *end)
{
    size_t       len;
    const char  *body, *line;

    body = head_came(c, p, end);

    if (body == NULL) {
        keep(&c->raw, &c->nraw, p, end);
        return;
    }

    line = memmem(p, body - p, "Content-Length: ", 16);

    if (line == NULL) {
        die("no length: %.*s", (int) (body - p), p);
    }

    len = strtoul(line + 16, NULL, 10);

    if ((size_t) (end - body) < len) {
        keep(&c->raw, &c->nraw, p, end);
        return;
    }

    if (server == OURS && memmem(body, len, "\"result\"", 8) == NULL) {
        die("refused: %.*s", (int) len, body);
    }

    c->nraw = 0;
    c->busy = 0;
    nbusy--;
    nanswered++;
}


static void
bytes_came(conn_t *c)
{
    char         *p;
    size_t        n;
    ssize_t       got;
    int64_t       now;
    const char   *begin, *end;
    static char   buf[BUFFER * 2 + 1];

    n = c->nraw;

    if (n) {
        memcpy(buf, c->raw, n);
    }

    got = recv(c->fd, buf + n, BUFFER, 0);

    if (got == -1 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (got <= 0 || server == HELD) {
        die("a connection was %s", got > 0 ? "answered" : "closed");
    }

    now = now_ns();
    p = buf;
    end = buf + n + got;
    buf[n + got] = '\0';

    if (c->publisher) {
        answer_came(c, p, end);
        return;
    }

    if (phase) {
        phase->wire += got;
    }

    begin = p;

    if (!c->in_body) {
        begin = head_came(c, p, end);

        if (begin == NULL) {
            keep(&c->raw, &c->nraw, p, end);
            return;
        }

        c->in_body = 1;
    }

    if (c->chunked) {
        begin = chunks_came(c, begin, end, now);

    } else {
        text_came(c, begin, end, now);
        begin = end;
    }

    keep(&c->raw, &c->nraw, begin, end);
}


static void
say(conn_t *c, const char *request, size_t len)
{
    if (send(c->fd, request, len, MSG_NOSIGNAL) != (ssize_t) len) {
        die("a request was not taken: %s", strerror(errno));
    }
}


static void
subscribe(conn_t *c)
{
    int   n;
    char  request[REQUEST], uri[64];

    switch (server) {

    case OURS:
        snprintf(uri, sizeof(uri), "/mcp/tasks/%s/events", c->task->id);
        break;

    case NCHAN:
        snprintf(uri, sizeof(uri), "/sub?id=%s", c->task->id);
        break;

    default:
        snprintf(uri, sizeof(uri), "/held");
    }

    n = snprintf(request, sizeof(request),
                 "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                 "Accept: text/event-stream\r\n\r\n", uri);
    say(c, request, n);

    if (server == HELD) {
        c->ready = 1;
        nready++;
    }
}


/* handles what comes until a time, but returns after the first events */

static void
pump(int64_t until)
{
    int                        i, n, error;
    conn_t                    *c;
    int64_t                    wait;
    socklen_t                  len;
    struct timespec            ts;
    struct epoll_event         event;
    static struct epoll_event  events[EVENTS];

    wait = until - now_ns();
    wait = (wait > 0) ? wait : 0;
    ts.tv_sec = wait / 1000000000;
    ts.tv_nsec = wait % 1000000000;

    n = epoll_pwait2(ep, events, EVENTS, &ts, NULL);

    if (n == -1 && errno != EINTR) {
        die("epoll_pwait2: %s", strerror(errno));
    }

    for (i = 0; i < n; i++) {
        c = events[i].data.ptr;

        if (c->connected) {
            bytes_came(c);
            continue;
        }

        len = sizeof(error);
        (void) getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);

        if (error) {
            die("cannot connect: %s", strerror(error));
        }

        c->connected = 1;
        event.events = EPOLLIN;
        event.data.ptr = c;
        (void) epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &event);

        if (!c->publisher) {
            subscribe(c);
        }
    }
}


static void
settle(int64_t time)
{
    int64_t  until;

    until = now_ns() + time;

    while (now_ns() < until) {
        pump(until);
    }
}


static void
open_connection(conn_t *c)
{
    int                  one;
    struct linger        linger;
    struct epoll_event   event;
    struct sockaddr_in   to;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (c->fd == -1) {
        die("socket: %s", strerror(errno));
    }

    one = 1;
    (void) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

    /* closed with a reset, so that no port waits for the next run */

    linger.l_onoff = 1;
    linger.l_linger = 0;
    (void) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));

    memset(&to, 0, sizeof(to));
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    if (connect(c->fd, (struct sockaddr *) &to, sizeof(to)) == -1
        && errno != EINPROGRESS)
    {
        die("connect: %s", strerror(errno));
    }

    event.events = EPOLLOUT;
    event.data.ptr = c;

    if (epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &event) == -1) {
        die("epoll_ctl: %s", strerror(errno));
    }
}


static void
post(conn_t *c, const char *uri, const char *body, size_t len)
{
    int   n;
    char  request[REQUEST];

    n = snprintf(request, sizeof(request),
                 "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                 "Content-Type: application/json\r\n"
                 "Content-Length: %zu\r\n\r\n", uri, len);

    if (n + len > sizeof(request)) {
        die("the message is too long");
    }

    memcpy(request + n, body, len);
    say(c, request, n + len);

    c->busy = 1;
    nbusy++;
}


static void
publish(conn_t *c, task_t *t, int64_t due)
{
    int   n;
    char  text[TEXT + 1], uri[64], body[REQUEST];

    /* the first one is what readers find when they come */

    if (phase) {
        t->changes++;
        t->waiting = t->readers;
        phase->expected += t->readers;
    }

    memset(text, '.', TEXT);
    text[TEXT] = '\0';
    n = sprintf(text, MARK_FORMAT, (unsigned long long) due, t->changes);
    text[n] = '.';

    if (server == OURS) {
        n = snprintf(body, sizeof(body),
                     "{\"jsonrpc\":\"2.0\",\"id\":1,"
                     "\"method\":\"worker/progress\",\"params\":{"
                     "\"taskId\":\"%s\",\"lease\":\"%s\",\"message\":\"%s\"}}",
                     t->id, t->lease, text);
        post(c, "/worker", body, n);
        return;
    }

    /* as much as our events have, with the text in the middle of it */

    memset(body, '.', sizeof(body));
    memcpy(body + (bytes - TEXT) / 2, text, TEXT);
    snprintf(uri, sizeof(uri), "/pub?id=%s", t->id);
    post(c, uri, body, bytes);
}


/* in turns, since they may belong to different processes of the server */

static conn_t *
idle_publisher(void)
{
    conn_t           *c;
    unsigned          i;
    static unsigned   last;

    for (i = 0; i < PUBLISHERS; i++) {
        c = &publishers[(last + 1 + i) % PUBLISHERS];

        if (c->connected && !c->busy) {
            last = c - publishers;
            return c;
        }
    }

    return NULL;
}


/* one request whose answer is waited for; what came is in buf */

static void
ask(const char *request, size_t len, char *buf, size_t size)
{
    char                *body, *line;
    size_t               got;
    ssize_t              n;
    struct sockaddr_in   to;
    static int           fd = -1;

    if (fd == -1) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        memset(&to, 0, sizeof(to));
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

        if (connect(fd, (struct sockaddr *) &to, sizeof(to)) == -1) {
            die("connect: %s", strerror(errno));
        }
    }

    if (send(fd, request, len, MSG_NOSIGNAL) != (ssize_t) len) {
        die("a request was not taken: %s", strerror(errno));
    }

    for (got = 0; got < size - 1; got += n) {
        n = recv(fd, buf + got, size - 1 - got, 0);

        if (n <= 0) {
            die("no answer to: %.*s", (int) len, request);
        }

        buf[got + n] = '\0';
        body = strstr(buf, "\r\n\r\n");

        if (body == NULL) {
            continue;
        }

        line = strstr(buf, "Content-Length: ");

        if (strncmp(buf, "HTTP/1.1 200", 12) != 0 || line == NULL) {
            die("refused: %s", buf);
        }

        if (strlen(body + 4) >= strtoul(line + 16, NULL, 10)) {
            return;
        }
    }

    die("an answer is too long");
}


static void
ask_json(const char *uri, const char *json, char *buf, size_t size)
{
    int   n;
    char  request[REQUEST];

    n = snprintf(request, sizeof(request),
                 "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                 "Content-Type: application/json\r\n"
                 "Accept: application/json, text/event-stream\r\n"
                 "Content-Length: %zu\r\n\r\n%s", uri, strlen(json), json);
    ask(request, n, buf, size);

    if (strstr(buf, "\"error\"") != NULL) {
        die("refused: %s", buf);
    }
}


static void
ask_get(const char *uri, char *buf, size_t size)
{
    int   n;
    char  request[REQUEST];

    n = snprintf(request, sizeof(request),
                 "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", uri);
    ask(request, n, buf, size);
}


/* creates our tasks, and claims them */

static void
create_tasks(void)
{
    char         *p;
    unsigned      i;
    static char   buf[BUFFER];

    for (i = 0; i < ntasks; i++) {
        ask_json("/mcp",
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                 "\"params\":{\"name\":\"bench\",\"task\":{}}}",
                 buf, sizeof(buf));
    }

    for (i = 0; i < ntasks; /* void */ ) {
        ask_json("/worker",
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"worker/claim\","
                 "\"params\":{\"tools\":[\"bench\"],\"max\":32,"
                 "\"leaseMs\":3600000}}",
                 buf, sizeof(buf));

        p = strstr(buf, "\"taskId\":\"");

        if (p == NULL) {
            die("no task to claim: %s", buf);
        }

        while (p && i < ntasks) {
            if (sscanf(p, "\"taskId\":\"%39[^\"]\",\"lease\":\"%19[^\"]\"",
                       tasks[i].id, tasks[i].lease) != 2)
            {
                die("no lease: %s", buf);
            }

            i++;
            p = strstr(p + 1, "\"taskId\":\"");
        }
    }
}


static void
prepare(void)
{
    char      buf[4096];
    conn_t   *c;
    int64_t   stalled;
    unsigned  i;

    tasks = allocate(ntasks, sizeof(task_t));
    readers = allocate(nreaders, sizeof(conn_t));

    for (i = 0; i < nreaders; i++) {
        readers[i].task = &tasks[i % ntasks];
    }

    if (server == HELD) {
        /* the first one is let through, and from then on they are held */
        ask_get("/held", buf, sizeof(buf));
        return;
    }

    for (i = 0; i < ntasks; i++) {
        snprintf(tasks[i].id, sizeof(tasks[i].id), "%08x", i);
    }

    if (server == OURS) {
        create_tasks();
    }

    for (i = 0; i < PUBLISHERS; i++) {
        publishers[i].publisher = 1;
        open_connection(&publishers[i]);
    }

    /* each task has a text from the beginning, and each channel exists */

    stalled = now_ns() + STALLED;

    for (i = 0; i < ntasks || nanswered < ntasks; /* void */ ) {
        while (i < ntasks && (c = idle_publisher()) != NULL) {
            publish(c, &tasks[i++], 0);
        }

        pump(stalled);

        if (now_ns() > stalled) {
            die("tasks could not be prepared");
        }
    }
}


static void
connect_readers(void)
{
    char      buf[4096], *p;
    int64_t   stalled;
    unsigned  opened, n, parked;

    stalled = now_ns() + STALLED;
    opened = 0;

    while (nready < nreaders) {
        while (opened < nreaders && opened - nready < CONNECTING) {
            readers[opened].task->readers++;
            open_connection(&readers[opened++]);
        }

        n = nready;
        pump(stalled);

        if (nready > n) {
            stalled = now_ns() + STALLED;

        } else if (now_ns() > stalled) {
            die("%u of %u readers got nothing", nreaders - nready, nreaders);
        }
    }

    settle(SETTLE);

    if (server == HELD) {
        /* all of them, and the one that asks */
        ask_get("/status", buf, sizeof(buf));
        p = strstr(buf, "Writing: ");
        parked = p ? strtoul(p + 9, NULL, 10) : 0;

        if (parked != nreaders + 1) {
            die("not all requests are held: %s", buf);
        }
    }
}


static void
make_changes(phase_t *ph, unsigned changes, int64_t interval)
{
    conn_t    *c;
    task_t    *t;
    int64_t    start, due, stalled;
    uint64_t   seen, most;
    unsigned   next;

    most = nready ? (uint64_t) changes * ((nreaders + ntasks - 1) / ntasks) : 0;
    memset(ph, 0, sizeof(phase_t));
    ph->latency = allocate(most + 1, sizeof(uint32_t));
    phase = ph;

    ph->cpu = cpu_ns();
    start = now_ns();
    stalled = start + STALLED;
    seen = 0;
    next = 0;

    while (next < changes || ph->delivered < ph->expected || nbusy) {
        due = stalled;

        while (next < changes) {

            /* not in the order in which they were made */

            t = &tasks[(uint64_t) next * STRIDE % ntasks];

            if (t->waiting) {
                break;
            }

            due = interval ? start + next * interval : now_ns();

            if (now_ns() < due) {
                break;
            }

            c = idle_publisher();

            if (c == NULL) {
                due = stalled;
                break;
            }

            publish(c, t, due);
            next++;
            due = stalled;
        }

        pump(due);

        if (ph->delivered + nanswered > seen) {
            seen = ph->delivered + nanswered;
            stalled = now_ns() + STALLED;

        } else if (now_ns() > stalled) {
            /* what has not been tried is lost, too */
            ph->expected = most;
            break;
        }
    }

    ph->time = now_ns() - start;
    ph->cpu = cpu_ns() - ph->cpu;

    /* something may come once too often */
    settle(DRAIN);
}


static int
compare(const void *one, const void *two)
{
    uint32_t  a, b;

    a = *(const uint32_t *) one;
    b = *(const uint32_t *) two;

    return (a > b) - (a < b);
}


static double
percentile(phase_t *ph, double p)
{
    uint64_t  i;

    if (ph->delivered == 0) {
        return 0;
    }

    i = ph->delivered * p;

    return ph->latency[i < ph->delivered ? i : ph->delivered - 1] / 1e3;
}


/*
 * The line of a run has mem, bytes of the server for each idle reader, and
 * mem_after, the same after all changes; publish, us of the server for a
 * change that nobody reads; and of each phase, with fast_ in front of those of
 * the second one:
 *
 * events, lost, twice: how many came, did not come, or came again;
 * p50, p99, max: latency in us;
 * cpu: us of the server for each event;
 * rate: events in a second;
 * data, wire: bytes of an event, alone and with all that surrounds it.
 */

static void
report(const char *prefix, phase_t *ph)
{
    double  n;

    n = ph->delivered ? ph->delivered : 1;
    qsort(ph->latency, ph->delivered, sizeof(uint32_t), compare);

    printf(" %sevents=%llu %slost=%llu %stwice=%llu", prefix,
           (unsigned long long) ph->delivered, prefix,
           (unsigned long long) (ph->expected - ph->delivered), prefix,
           (unsigned long long) ph->duplicates);
    printf(" %sp50=%.0f %sp99=%.0f %smax=%.0f", prefix,
           percentile(ph, 0.5), prefix, percentile(ph, 0.99), prefix,
           percentile(ph, 1));
    printf(" %scpu=%.2f %srate=%.0f %sdata=%.0f %swire=%.0f", prefix,
           ph->cpu / n / 1e3, prefix, ph->delivered / (ph->time / 1e9), prefix,
           ph->data / n, prefix, ph->wire / n);
}


int
main(int argc, char **argv)
{
    int            option;
    char          *p;
    int64_t        before;
    unsigned       unread, changes, interval, fast;
    phase_t        nobody, paced, rest;
    struct rlimit  limit;

    unread = 0;
    changes = 0;
    interval = 1000;
    fast = 0;

    if (argc < 2) {
        die("which server?");
    }

    if (strcmp(argv[1], "ours") == 0) {
        server = OURS;

    } else if (strcmp(argv[1], "nchan") == 0) {
        server = NCHAN;

    } else if (strcmp(argv[1], "held") == 0) {
        server = HELD;

    } else {
        die("unknown server \"%s\"", argv[1]);
    }

    while ((option = getopt(argc - 1, argv + 1, "p:n:k:P:u:m:i:f:b:")) != -1) {
        switch (option) {

        case 'p':
            port = atoi(optarg);
            break;

        case 'n':
            nreaders = atoi(optarg);
            break;

        case 'k':
            ntasks = atoi(optarg);
            break;

        case 'P':
            for (p = strtok(optarg, ","); p; p = strtok(NULL, ",")) {
                if (npids == PIDS) {
                    die("too many processes");
                }

                pids[npids++] = atoi(p);
            }

            break;

        case 'u':
            unread = atoi(optarg);
            break;

        case 'm':
            changes = atoi(optarg);
            break;

        case 'i':
            interval = atoi(optarg);
            break;

        case 'f':
            fast = atoi(optarg);
            break;

        case 'b':
            bytes = atoi(optarg);
            break;

        default:
            return 2;
        }
    }

    if (nreaders == 0 || ntasks == 0 || ntasks > nreaders) {
        die("each task needs a reader");
    }

    if (bytes < TEXT || bytes > REQUEST / 2) {
        die("not so many bytes in a message");
    }

    if (getrlimit(RLIMIT_NOFILE, &limit) == -1) {
        die("getrlimit: %s", strerror(errno));
    }

    limit.rlim_cur = limit.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &limit);

    /* timers to the microsecond, not to the default of 50 */
    (void) prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);

    ep = epoll_create1(0);

    prepare();

    if (unread && server != HELD) {
        make_changes(&nobody, unread, interval * 1000LL);
    }

    before = memory();
    connect_readers();

    printf("readers=%u tasks=%u mem=%lld", nreaders, ntasks,
           (long long) ((memory() - before) / nreaders));

    if (unread && server != HELD) {
        printf(" publish=%.2f", nobody.cpu / 1e3 / unread);
    }

    if (changes && server != HELD) {
        make_changes(&paced, changes, interval * 1000LL);
        report("", &paced);
    }

    if (fast && server != HELD) {
        make_changes(&rest, fast, 0);
        report("fast_", &rest);
    }

    printf(" mem_after=%lld\n", (long long) ((memory() - before) / nreaders));

    return 0;
}
