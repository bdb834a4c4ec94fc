
#include "ngx_mcp_subprocess.h"

#include <grp.h>
#include <poll.h>

#if (NGX_LINUX)
#include <sys/prctl.h>
#endif


/* what is sent: signs of life, and in the end how it went */
#define NGX_MCP_SUBPROCESS_ALIVE   '.'
#define NGX_MCP_SUBPROCESS_OK      '+'
#define NGX_MCP_SUBPROCESS_FAILED  '-'


static void ngx_mcp_subprocess_child(ngx_core_conf_t *ccf,
    ngx_mcp_subprocess_pt run, void *data);
static ngx_int_t ngx_mcp_subprocess_rights(ngx_core_conf_t *ccf);
static void ngx_mcp_subprocess_say(u_char what);
static ngx_int_t ngx_mcp_subprocess_wait(ngx_fd_t fd, ngx_msec_t timeout);


/* in the process itself: where it says how it goes */
static ngx_fd_t  ngx_mcp_subprocess_fd = -1;


ngx_int_t
ngx_mcp_subprocess(ngx_cycle_t *cycle, ngx_mcp_subprocess_pt run, void *data,
    ngx_msec_t timeout, const char **why)
{
    int               status;
    ngx_fd_t          fd[2];
    ngx_pid_t         pid;
    ngx_int_t         rc;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (pipe2(fd, O_CLOEXEC) == -1) {
        *why = "pipe2() failed";
        return NGX_ABORT;
    }

    pid = fork();

    switch (pid) {

    case -1:
        (void) close(fd[0]);
        (void) close(fd[1]);
        *why = "fork() failed";
        return NGX_ABORT;

    case 0:
        (void) close(fd[0]);
        ngx_mcp_subprocess_fd = fd[1];
        ngx_mcp_subprocess_child(ccf, run, data);
        break;
    }

    (void) close(fd[1]);
    rc = ngx_mcp_subprocess_wait(fd[0], timeout);
    (void) close(fd[0]);

    *why = (rc == NGX_BUSY) ? "the helper process timed out"
                            : "the helper process died";

    if (rc != NGX_OK) {
        /* dead or not, it is of no more use */
        (void) kill(pid, SIGKILL);
    }

    while (waitpid(pid, &status, 0) == -1 && ngx_errno == NGX_EINTR) {
        /* void */
    }

    return (rc == NGX_BUSY) ? NGX_ABORT : rc;
}


/* handlers of the master's, for its exit, are not for this process */

static void
ngx_mcp_subprocess_child(ngx_core_conf_t *ccf, ngx_mcp_subprocess_pt run,
    void *data)
{
    ngx_int_t  rc;

    /* locks in shared memory are held by this number */
    ngx_pid = ngx_getpid();

    rc = ngx_mcp_subprocess_rights(ccf);

    if (rc == NGX_OK) {
        rc = run(data);
    }

    ngx_mcp_subprocess_say(rc == NGX_OK ? NGX_MCP_SUBPROCESS_OK
                                        : NGX_MCP_SUBPROCESS_FAILED);

    _exit(0);
}


/* those of a worker process: there is no way back from them */

static ngx_int_t
ngx_mcp_subprocess_rights(ngx_core_conf_t *ccf)
{
    if (geteuid() == 0
        && (setgid(ccf->group) == -1
            || initgroups(ccf->username, ccf->group) == -1
            || setuid(ccf->user) == -1))
    {
        ngx_log_error(NGX_LOG_EMERG, ngx_cycle->log, ngx_errno,
                      "the helper process cannot switch to the user and "
                      "groups of worker processes");
        return NGX_ERROR;
    }

#if (NGX_LINUX)
    /* now, since a change of the user would undo it */
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
#endif

    return NGX_OK;
}


/* also called where there is nobody to hear it */

void
ngx_mcp_subprocess_alive(void)
{
    ngx_mcp_subprocess_say(NGX_MCP_SUBPROCESS_ALIVE);
}


static void
ngx_mcp_subprocess_say(u_char what)
{
    if (ngx_mcp_subprocess_fd != -1
        && write(ngx_mcp_subprocess_fd, &what, 1) == -1)
    {
        /* nobody waits any more */
        _exit(1);
    }
}


/* NGX_BUSY: no sign of life; NGX_ABORT: it is dead */

static ngx_int_t
ngx_mcp_subprocess_wait(ngx_fd_t fd, ngx_msec_t timeout)
{
    int            n;
    u_char         what;
    struct pollfd  pfd;

    for ( ;; ) {
        what = 0;
        pfd.fd = fd;
        pfd.events = POLLIN;

        n = poll(&pfd, 1, (int) timeout);

        if (n == 0) {
            return NGX_BUSY;
        }

        n = (n == 1) ? (int) read(fd, &what, 1) : -1;

        if (n == -1 && ngx_errno == NGX_EINTR) {
            continue;
        }

        if (n != 1) {
            return NGX_ABORT;
        }

        switch (what) {

        case NGX_MCP_SUBPROCESS_OK:
            return NGX_OK;

        case NGX_MCP_SUBPROCESS_FAILED:
            return NGX_ERROR;
        }
    }
}
