/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/spawn.c - between fork and exec only calls that are safe there: the supervisor has one
 * thread, but a library may have started others. */
#include "cmd/cli/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void redirect(int log)
{
    int null = open("/dev/null", O_RDONLY);

    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
}

static int open_log(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static void become(const char *const argv[], int log, pid_t parent)
{
    sigset_t none;

    /* However the supervisor ends, its tasks do not outlive it: two sets of one cluster's tasks
     * would fight for its ports and its checkpoints. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);  /* it died in between */
    setpgid(0, 0); /* Ctrl-C is for the parent, which ends its tasks in its own order */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    redirect(log);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

wf_status wf_spawn(const char *const argv[], const char *log_path, pid_t *pid, wf_err *err)
{
    pid_t parent = getpid();
    int log = open_log(log_path);

    if (log < 0)
        return wf_fail_errno(err, errno, NULL, "cannot open %s", log_path);
    *pid = fork();
    if (*pid == 0)
        become(argv, log, parent);
    if (*pid < 0) {
        int why = errno;

        close(log);
        *pid = 0;
        return wf_fail_errno(err, why, NULL, "cannot start %s", argv[0]);
    }
    close(log);
    return WF_OK;
}

static wf_status hear(int fd, wf_err *err)
{
    wf_err said;
    size_t at = 0;

    while (at < sizeof said) {
        ssize_t n = read(fd, (char *)&said + at, sizeof said - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return wf_fail(err, WF_IO, "look into its log", "it ended before it was ready");
        at += (size_t)n;
    }
    if (said.status != WF_OK && err)
        *err = said; /* of the same program: its pointers hold here too */
    return said.status;
}

wf_status wf_spawn_daemon(const char *log_path, void (*body)(void *arg, int fd), void *arg,
                          wf_err *err)
{
    int pipe_fds[2], log = open_log(log_path);
    wf_status rc;
    pid_t child;

    if (log < 0)
        return wf_fail_errno(err, errno, NULL, "cannot open %s", log_path);
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
        close(log);
        return wf_fail_errno(err, errno, NULL, "cannot make a pipe");
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        /* Twice: the second is nobody's session leader, so no terminal can become its own. */
        close(pipe_fds[0]);
        setsid();
        if (fork() != 0)
            _exit(0);
        redirect(log);
        body(arg, pipe_fds[1]);
        _exit(0);
    }
    close(log);
    close(pipe_fds[1]);
    if (child < 0) {
        close(pipe_fds[0]);
        return wf_fail_errno(err, errno, NULL, "cannot start a process");
    }
    waitpid(child, NULL, 0);
    rc = hear(pipe_fds[0], err);
    close(pipe_fds[0]);
    return rc;
}
