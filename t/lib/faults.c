
/*
 * Preloaded into nginx, it makes calls on a store's files fail or slow, and
 * records them.  By its environment, as it is when nginx starts:
 *
 *   MCP_TASKS_FAULTS_FILES  the database; files whose names go on from there
 *                           (-wal, -shm, -lock, -journal) are of it, too
 *   MCP_TASKS_FAULTS        what is to happen; the file is read with each call
 *                           and may change, or be missing, at any time
 *   MCP_TASKS_FAULTS_LOG    where calls are recorded, if that is wanted
 *
 * Lines of MCP_TASKS_FAULTS, and what they apply to:
 *
 *   write ENOSPC      any write fails
 *   short ENOSPC      any write is cut in half, and fails at last
 *   read EIO          any read
 *   truncate EIO      ftruncate() and unlink()
 *   open EROFS        open() for writing
 *   sync EIO          fsync() and fdatasync()
 *   slow 1000         these take so many milliseconds longer
 *   only -wal         all of the above for that file alone
 *
 * A record is a faults_record_t and the bytes that were written.  A call that
 * changes something is made and recorded under one lock, so their order in the
 * log is that in which they took effect, over all processes.  The memory that
 * is mapped of -shm is not recorded: SQLite makes it anew after a crash.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>


#define FAULTS_FDS    65536
#define FAULTS_MAGIC  0x4641554c


/* bytes in memory as the reader in t/lib/powercut.py unpacks them */

typedef struct {
    uint32_t  magic;
    uint32_t  pid;
    char      call;         /* [c]reate [w]rite [t]runcate [u]nlink; a sync
                               is [b]egun, and [d]one if it succeeded */
    char      file;         /* index into faults_names */
    char      pad[6];
    uint64_t  offset;
    uint64_t  size;
} faults_record_t;


/* what may be wrong with a file; its value is an errno, or milliseconds */

enum { WRITE, SHORT, READ, TRUNCATE, OPEN, SYNC, SLOW, FAULTS };


static const char *const  faults_words[FAULTS] = {
    "write", "short", "read", "truncate", "open", "sync", "slow"
};

/* the directory is there because a new file lasts only once it is synced */

static const char *const  faults_names[] = {
    NULL, "", "-wal", "-shm", "-lock", "-journal", "/"
};

#define FAULTS_DIRECTORY  6


static char             *faults_files;
static char             *faults_control;
static int               faults_log = -1;
static pthread_mutex_t   faults_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char     faults_fds[FAULTS_FDS];

static int      (*real_open)(const char *, int, ...);
static int      (*real_close)(int);
static ssize_t  (*real_read)(int, void *, size_t);
static ssize_t  (*real_write)(int, const void *, size_t);
static ssize_t  (*real_pread)(int, void *, size_t, off64_t);
static ssize_t  (*real_pwrite)(int, const void *, size_t, off64_t);
static int      (*real_ftruncate)(int, off64_t);
static int      (*real_fsync)(int);
static int      (*real_fdatasync)(int);
static int      (*real_unlink)(const char *);


/* it may be that somebody writes before our constructor is called */

static void
faults_init(void)
{
    if (real_unlink) {
        return;
    }

    real_open = dlsym(RTLD_NEXT, "open64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_read = dlsym(RTLD_NEXT, "read");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pread = dlsym(RTLD_NEXT, "pread64");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
}


__attribute__((constructor))
static void
faults_start(void)
{
    char  *log;

    faults_init();

    /* nginx clears its environment */

    faults_files = getenv("MCP_TASKS_FAULTS_FILES");
    faults_control = getenv("MCP_TASKS_FAULTS");
    log = getenv("MCP_TASKS_FAULTS_LOG");

    faults_files = faults_files ? strdup(faults_files) : NULL;
    faults_control = faults_control ? strdup(faults_control) : NULL;

    if (log) {
        faults_log = real_open(log, O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0666);
    }
}


/* which of the store's files this is, 0: none */

static int
faults_file(const char *path)
{
    int     i;
    size_t  len;

    if (faults_files == NULL || path == NULL) {
        return 0;
    }

    len = strlen(faults_files);

    if (strncmp(path, faults_files, len) == 0) {
        for (i = 1; i < FAULTS_DIRECTORY; i++) {
            if (strcmp(path + len, faults_names[i]) == 0) {
                return i;
            }
        }

        return 0;
    }

    len = strrchr(faults_files, '/') - faults_files;

    if (strncmp(path, faults_files, len) == 0 && path[len] == '\0') {
        return FAULTS_DIRECTORY;
    }

    return 0;
}


static int
faults_fd(int fd)
{
    faults_init();

    return (fd >= 0 && fd < FAULTS_FDS) ? faults_fds[fd] : 0;
}


static int
faults_value(const char *word)
{
    static const struct {
        const char  *name;
        int          value;
    } names[] = {
        { "ENOSPC", ENOSPC }, { "EIO", EIO }, { "EROFS", EROFS },
        { "EACCES", EACCES }
    };

    size_t  i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(word, names[i].name) == 0) {
            return names[i].value;
        }
    }

    return atoi(word);
}


/* how this kind of call on the file is to end: 0 if well */

static int
faults_get(int file, int fault)
{
    int      fd, found;
    char     text[1024], word[16], value[16], *line, *last;
    ssize_t  n;

    if (file == 0 || faults_control == NULL) {
        return 0;
    }

    fd = real_open(faults_control, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return 0;
    }

    n = real_read(fd, text, sizeof(text) - 1);
    (void) real_close(fd);

    if (n <= 0) {
        return 0;
    }

    text[n] = '\0';
    found = 0;

    for (line = strtok_r(text, "\n", &last);
         line;
         line = strtok_r(NULL, "\n", &last))
    {
        if (sscanf(line, "%15s %15s", word, value) != 2) {
            continue;
        }

        if (strcmp(word, "only") == 0 && strcmp(value, faults_names[file])) {
            return 0;
        }

        if (strcmp(word, faults_words[fault]) == 0) {
            found = faults_value(value);
        }
    }

    return found;
}


static int
faults_fail(int file, int fault)
{
    int  err;

    err = faults_get(file, fault);

    if (err) {
        errno = err;
    }

    return err;
}


/* POSIX locks are a process's, so its threads have the mutex in addition */

static void
faults_lock(int type)
{
    int           err;
    struct flock  lock;

    if (faults_log == -1) {
        return;
    }

    err = errno;

    if (type != F_UNLCK) {
        (void) pthread_mutex_lock(&faults_mutex);
    }

    memset(&lock, 0, sizeof(struct flock));
    lock.l_type = type;

    while (fcntl(faults_log, F_SETLKW, &lock) == -1 && errno == EINTR) {
        /* again */
    }

    if (type == F_UNLCK) {
        (void) pthread_mutex_unlock(&faults_mutex);
    }

    errno = err;
}


static void
faults_record(char call, int file, uint64_t offset, const void *data,
    uint64_t size)
{
    int              err;
    char            *p;
    size_t           len;
    faults_record_t  record;

    if (faults_log == -1) {
        return;
    }

    err = errno;

    memset(&record, 0, sizeof(faults_record_t));
    record.magic = FAULTS_MAGIC;
    record.pid = getpid();
    record.call = call;
    record.file = file;
    record.offset = offset;
    record.size = size;

    /* one write, so that a record is there as a whole, or not at all */

    len = data ? size : 0;
    p = malloc(sizeof(faults_record_t) + len);

    if (p == NULL) {
        abort();
    }

    memcpy(p, &record, sizeof(faults_record_t));

    if (len) {
        memcpy(p + sizeof(faults_record_t), data, len);
    }

    len += sizeof(faults_record_t);

    if (real_write(faults_log, p, len) != (ssize_t) len) {
        abort();
    }

    free(p);
    errno = err;
}


static int
faults_open(const char *path, int flags, mode_t mode)
{
    int          fd, file;
    struct stat  st;

    faults_init();

    file = faults_file(path);

    if (file == 0) {
        fd = real_open(path, flags, mode);

    } else if ((flags & O_ACCMODE) != O_RDONLY && faults_fail(file, OPEN)) {
        return -1;

    } else {
        faults_lock(F_WRLCK);

        if ((flags & O_CREAT) && stat(path, &st) == -1) {
            faults_record('c', file, 0, NULL, 0);
        }

        fd = real_open(path, flags, mode);

        if (fd != -1 && (flags & O_TRUNC)) {
            faults_record('t', file, 0, NULL, 0);
        }

        faults_lock(F_UNLCK);
    }

    if (fd >= 0 && fd < FAULTS_FDS) {
        faults_fds[fd] = file;
    }

    return fd;
}


static mode_t
faults_mode(int flags, va_list args)
{
    return (flags & O_CREAT) ? va_arg(args, unsigned) : 0;
}


int
open(const char *path, int flags, ...)
{
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = faults_mode(flags, args);
    va_end(args);

    return faults_open(path, flags, mode);
}


int
open64(const char *path, int flags, ...)
{
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = faults_mode(flags, args);
    va_end(args);

    return faults_open(path, flags, mode);
}


int
close(int fd)
{
    if (faults_fd(fd)) {
        faults_fds[fd] = 0;
    }

    return real_close(fd);
}


ssize_t
pread64(int fd, void *buf, size_t size, off64_t offset)
{
    if (faults_fail(faults_fd(fd), READ)) {
        return -1;
    }

    return real_pread(fd, buf, size, offset);
}


ssize_t
pread(int fd, void *buf, size_t size, off_t offset)
{
    return pread64(fd, buf, size, offset);
}


ssize_t
pwrite64(int fd, const void *buf, size_t size, off64_t offset)
{
    int      file;
    ssize_t  n;

    file = faults_fd(fd);

    if (file == 0) {
        return real_pwrite(fd, buf, size, offset);
    }

    if (faults_get(file, SHORT)) {
        size /= 2;

        if (size == 0) {
            errno = faults_get(file, SHORT);
            return -1;
        }
    }

    if (faults_fail(file, WRITE)) {
        return -1;
    }

    faults_lock(F_WRLCK);

    n = real_pwrite(fd, buf, size, offset);

    if (n > 0) {
        faults_record('w', file, offset, buf, n);
    }

    faults_lock(F_UNLCK);

    return n;
}


ssize_t
pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    return pwrite64(fd, buf, size, offset);
}


/* of files that are known, none is written at its end */

ssize_t
write(int fd, const void *buf, size_t size)
{
    off64_t  offset;
    ssize_t  n;

    if (faults_fd(fd) == 0) {
        return real_write(fd, buf, size);
    }

    offset = lseek64(fd, 0, SEEK_CUR);
    n = pwrite64(fd, buf, size, offset);

    if (n > 0) {
        (void) lseek64(fd, offset + n, SEEK_SET);
    }

    return n;
}


int
ftruncate64(int fd, off64_t size)
{
    int  rc, file;

    file = faults_fd(fd);

    if (file == 0) {
        return real_ftruncate(fd, size);
    }

    if (faults_fail(file, TRUNCATE)) {
        return -1;
    }

    faults_lock(F_WRLCK);

    rc = real_ftruncate(fd, size);

    if (rc == 0) {
        faults_record('t', file, size, NULL, 0);
    }

    faults_lock(F_UNLCK);

    return rc;
}


int
ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}


int
unlink(const char *path)
{
    int  rc, file;

    faults_init();

    file = faults_file(path);

    if (file == 0) {
        return real_unlink(path);
    }

    if (faults_fail(file, TRUNCATE)) {
        return -1;
    }

    faults_lock(F_WRLCK);

    rc = real_unlink(path);

    if (rc == 0) {
        faults_record('u', file, 0, NULL, 0);
    }

    faults_lock(F_UNLCK);

    return rc;
}


/* what was written before it began will last when it is done */

static int
faults_sync(int fd, int (*sync)(int))
{
    int              rc, file, slow;
    struct timespec  ts;

    file = faults_fd(fd);

    if (file == 0) {
        return sync(fd);
    }

    slow = faults_get(file, SLOW);

    if (slow) {
        ts.tv_sec = slow / 1000;
        ts.tv_nsec = slow % 1000 * 1000000;
        (void) nanosleep(&ts, NULL);
    }

    if (faults_fail(file, SYNC)) {
        return -1;
    }

    faults_lock(F_WRLCK);
    faults_record('b', file, 0, NULL, 0);
    faults_lock(F_UNLCK);

    /* what is recorded needs no disk, and many are */

    rc = faults_log == -1 ? sync(fd) : 0;

    if (rc == 0) {
        faults_lock(F_WRLCK);
        faults_record('d', file, 0, NULL, 0);
        faults_lock(F_UNLCK);
    }

    return rc;
}


int
fsync(int fd)
{
    faults_init();

    return faults_sync(fd, real_fsync);
}


int
fdatasync(int fd)
{
    faults_init();

    return faults_sync(fd, real_fdatasync);
}
