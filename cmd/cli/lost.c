/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/lost.c */
#include "cmd/cli/lost.h"
#include "common/base/clock.h"
#include "common/wire/owner.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 20 };

/* A file of /proc/PID, as much as there is room for; its length. */
static size_t read_proc(const char *pid, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%.16s/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

/* The cluster file of a process that is a task (weft-ROLE --cluster FILE ...). */
static bool file_of(const char *pid, char file[PATH_MAX])
{
    char words[PATH_MAX * 2 + 256];
    size_t n = read_proc(pid, "cmdline", words, sizeof words);
    const char *slash = strrchr(words, '/'), *name = slash ? slash + 1 : words;
    bool named = false;

    if (n == 0 || strncmp(name, "weft-", 5) != 0)
        return false;
    for (size_t at = 0; at < n; at += strlen(words + at) + 1) {
        if (named)
            return snprintf(file, PATH_MAX, "%s", words + at) < PATH_MAX;
        named = strcmp(words + at, "--cluster") == 0;
    }
    return false;
}

/* The parent, when that is a supervisor; 0: it has died, and its tasks die with it. */
static pid_t supervisor_of(const char *pid)
{
    char text[512], parent[24];
    const char *end;
    long ppid = 0;

    read_proc(pid, "stat", text, sizeof text);
    end = strrchr(text, ')'); /* a name may hold anything */
    if (!end || sscanf(end, ") %*c %ld", &ppid) != 1 || ppid <= 1)
        return 0;
    snprintf(parent, sizeof parent, "%ld", ppid);
    read_proc(parent, "comm", text, sizeof text);
    return strcmp(text, "weft\n") == 0 ? (pid_t)ppid : 0;
}

static void add(wf_lost *l, pid_t pid, bool supervises)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->pids[i] == pid)
            return;
    if (l->n == WF_LOST_MOST)
        return;
    l->supervises[l->n] = supervises;
    l->pids[l->n++] = pid;
}

bool wf_lost_find(const char *cluster_file, wf_lost *out)
{
    DIR *d = opendir("/proc");
    const struct dirent *e;

    out->n = 0;
    while (d && (e = readdir(d))) {
        char file[PATH_MAX];
        pid_t supervisor;

        if (!isdigit((unsigned char)e->d_name[0]) || !file_of(e->d_name, file) ||
            strcmp(file, cluster_file) != 0)
            continue;
        supervisor = supervisor_of(e->d_name);
        if (supervisor) {
            add(out, supervisor, true);
            add(out, (pid_t)atol(e->d_name), false);
        }
    }
    if (d)
        closedir(d);
    return out->n > 0;
}

wf_status wf_lost_check(const wf_cluster_conf *conf, wf_err *err)
{
    enum { NAMED = 12 };
    char list[NAMED * 24 + 48] = "";
    size_t used = 0;
    wf_lost l;

    if (!wf_lost_find(conf->path, &l))
        return WF_OK;
    for (size_t i = 0; i < l.n && i < NAMED; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%ld", i ? ", " : "",
                                 (long)l.pids[i]);
    if (l.n > NAMED)
        snprintf(list + used, sizeof list - used, " and %zu more", l.n - NAMED);
    return wf_fail(err, WF_INVALID, "end them with: weft down",
                   "the cluster that ran here lost its folder %s; processes %s still run",
                   conf->state_dir, list);
}

static bool are_gone(const char *cluster_file, int64_t timeout_ms)
{
    int64_t end_ns = wf_now_ns() + timeout_ms * WF_NS_PER_MS;
    wf_lost l;

    while (wf_lost_find(cluster_file, &l)) {
        if (wf_now_ns() > end_ns)
            return false;
        poll(NULL, 0, LOOK_MS);
    }
    return true;
}

wf_status wf_lost_end(const wf_cluster_conf *conf, int64_t timeout_ms, bool *any, wf_err *err)
{
    enum { KILLED_MS = 5000 };
    wf_lost l;

    *any = wf_lost_find(conf->path, &l);
    for (size_t i = 0; i < l.n; i++)
        if (l.supervises[i]) { /* which takes its tasks down; a stopped one cannot */
            (void)kill(l.pids[i], SIGTERM);
            (void)kill(l.pids[i], SIGCONT);
        }
    if (are_gone(conf->path, timeout_ms))
        return WF_OK;
    for (size_t i = 0; i < l.n; i++)
        (void)kill(l.pids[i], SIGKILL);
    if (are_gone(conf->path, KILLED_MS))
        return WF_OK;
    return wf_fail(err, WF_TIMEOUT, "end them as the user who started them",
                   "%zu processes of the cluster that ran here do not end", l.n);
}

bool wf_lost_owner(const char *address, char file[PATH_MAX])
{
    char holder[160], pid[24];

    return wf_port_owner(address, holder, sizeof holder) &&
           sscanf(holder, "process %23[0-9]", pid) == 1 && file_of(pid, file);
}
