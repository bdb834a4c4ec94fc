
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_subprocess.h"

#include <grp.h>
#include <poll.h>

#if (NGX_LINUX)
#include <sys/prctl.h>
#endif


/* what the child writes to the pipe: any number of ALIVE, then the outcome */
#define NGX_MCP_SUBPROCESS_ALIVE   '.'
#define NGX_MCP_SUBPROCESS_OK      '+'
#define NGX_MCP_SUBPROCESS_FAILED  '-'


static void ngx_mcp_subprocess_child(ngx_core_conf_t *ccf,
    ngx_mcp_subprocess_pt run, void *data);
static ngx_int_t ngx_mcp_subprocess_rights(ngx_core_conf_t *ccf);
static void ngx_mcp_subprocess_write(u_char byte);
static ngx_int_t ngx_mcp_subprocess_wait(ngx_fd_t fd, ngx_msec_t timeout);


/* the child's end of the pipe; -1 in all other processes */
static ngx_fd_t  ngx_mcp_subprocess_fd = -1;


ngx_int_t
ngx_mcp_subprocess(ngx_cycle_t *cycle, ngx_mcp_subprocess_pt run, void *data,
    ngx_msec_t timeout, const char **reason)
{
    int               status;
    ngx_fd_t          fd[2];
    ngx_pid_t         pid;
    ngx_int_t         rc;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (pipe2(fd, O_CLOEXEC) == -1) {
        *reason = "pipe2() failed";
        return NGX_ABORT;
    }

    pid = fork();

    switch (pid) {

    case -1:
        (void) close(fd[0]);
        (void) close(fd[1]);
        *reason = "fork() failed";
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

    *reason = (rc == NGX_BUSY) ? "the helper process timed out"
                               : "the helper process died";

    if (rc != NGX_OK) {
        /* it may still run */
        (void) kill(pid, SIGKILL);
    }

    while (waitpid(pid, &status, 0) == -1 && ngx_errno == NGX_EINTR) {
        /* void */
    }

    return (rc == NGX_BUSY) ? NGX_ABORT : rc;
}


/* does not return: the master's exit handlers must not run in the child */

static void
ngx_mcp_subprocess_child(ngx_core_conf_t *ccf, ngx_mcp_subprocess_pt run,
    void *data)
{
    ngx_int_t  rc;

    /* a lock in shared memory contains the pid of its holder */
    ngx_pid = ngx_getpid();

    rc = ngx_mcp_subprocess_rights(ccf);

    if (rc == NGX_OK) {
        rc = run(data);
    }

    ngx_mcp_subprocess_write(rc == NGX_OK ? NGX_MCP_SUBPROCESS_OK
                                          : NGX_MCP_SUBPROCESS_FAILED);

    _exit(0);
}


/* takes the rights of a worker process; this cannot be undone */

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
    /* after setuid(), which clears the setting */
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
#endif

    return NGX_OK;
}


/* does nothing if this process is not such a child */

void
ngx_mcp_subprocess_alive(void)
{
    ngx_mcp_subprocess_write(NGX_MCP_SUBPROCESS_ALIVE);
}


static void
ngx_mcp_subprocess_write(u_char byte)
{
    if (ngx_mcp_subprocess_fd != -1
        && write(ngx_mcp_subprocess_fd, &byte, 1) == -1)
    {
        /* the parent no longer reads */
        _exit(1);
    }
}


/* the outcome; NGX_BUSY: nothing within the timeout; NGX_ABORT: it died */

static ngx_int_t
ngx_mcp_subprocess_wait(ngx_fd_t fd, ngx_msec_t timeout)
{
    int            n;
    u_char         byte;
    struct pollfd  pfd;

    for ( ;; ) {
        byte = 0;
        pfd.fd = fd;
        pfd.events = POLLIN;

        n = poll(&pfd, 1, (int) timeout);

        if (n == 0) {
            return NGX_BUSY;
        }

        n = (n == 1) ? (int) read(fd, &byte, 1) : -1;

        if (n == -1 && ngx_errno == NGX_EINTR) {
            continue;
        }

        if (n != 1) {
            return NGX_ABORT;
        }

        switch (byte) {

        case NGX_MCP_SUBPROCESS_OK:
            return NGX_OK;

        case NGX_MCP_SUBPROCESS_FAILED:
            return NGX_ERROR;
        }
    }
}
