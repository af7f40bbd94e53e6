/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_lock.c - one supervisor for each state_dir. The lock is of the open file (OFD): it
 * goes with the process however that ends, and asking whether somebody has it takes nothing. A
 * question by flock would hold the lock itself for a moment, and a supervisor that starts then
 * would believe that another one runs. */
#include "cmd/cli/super.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static wf_status lock_path(const wf_cluster_conf *conf, char path[PATH_MAX], wf_err *err)
{
    if (snprintf(path, PATH_MAX, "%s/supervisor.lock", conf->state_dir) >= PATH_MAX)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", conf->state_dir);
    return WF_OK;
}

static pid_t holder_of(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32] = "";

    /* The lock tells whether it runs; the number in the file may be of one that is gone. */
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return 0;
    return pread(fd, text, sizeof text - 1, 0) > 0 ? (pid_t)atol(text) : 0;
}

pid_t wf_super_pid(const wf_cluster_conf *conf)
{
    char path[PATH_MAX];
    pid_t pid;
    int fd;

    if (lock_path(conf, path, NULL) != WF_OK)
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    pid = holder_of(fd);
    close(fd);
    return pid;
}

wf_status wf_super_up_already(const wf_cluster_conf *conf, pid_t pid, wf_err *err)
{
    return wf_fail(err, WF_EXISTS, "\"weft down\" ends it",
                   "the cluster of %s is up already (supervisor %ld)", conf->state_dir, (long)pid);
}

static wf_status lock_file(const wf_cluster_conf *conf, int fd, const char *path, wf_err *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32];
    int n;

    if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        if (errno == EAGAIN || errno == EACCES)
            return wf_super_up_already(conf, holder_of(fd), err);
        return wf_fail_errno(err, errno, NULL, "cannot lock %s", path);
    }
    n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* Never empty: whoever reads it while it is written finds an old number or this one. */
    if (pwrite(fd, text, (size_t)n, 0) != n || ftruncate(fd, n) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot write %s", path);
    return WF_OK;
}

wf_status wf_super_lock(const wf_cluster_conf *conf, int *fd, wf_err *err)
{
    char path[PATH_MAX];
    wf_status rc;

    WF_TRY(lock_path(conf, path, err));
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*fd < 0)
        return wf_fail_errno(err, errno, NULL, "cannot open %s", path);
    rc = lock_file(conf, *fd, path, err);
    if (rc != WF_OK) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}
