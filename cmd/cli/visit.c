/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/visit.c */
#include "cmd/cli/visit.h"
#include "cmd/cli/ask.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Down: longer than the supervisor gives its tasks before it kills them. */
enum { READY_MS = 20000, DOWN_MS = 20000, ANSWER_MS = 3000 };

static const char WITH_USERS[] = "ends with its users\n";

static bool lock(int fd, short type, bool wait)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET};
    int rc;

    do
        rc = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l);
    while (rc != 0 && errno == EINTR && wait);
    return rc == 0;
}

static bool path_of(const wf_cluster_conf *conf, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/users.lock", conf->state_dir) < PATH_MAX;
}

static int open_file(const wf_cluster_conf *conf)
{
    char path[PATH_MAX];

    if (!path_of(conf, path) || wf_make_dirs(conf->state_dir, NULL) != WF_OK)
        return -1;
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

wf_visit wf_visit_begin(const wf_cluster_conf *conf)
{
    wf_visit v = {.fd = open_file(conf)};

    if (v.fd >= 0)
        (void)lock(v.fd, F_RDLCK, true);
    return v;
}

static void write_mark(int fd, const char *text)
{
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
        wf_term_print(stderr, "warning: the cluster stays up until: weft down\n");
}

static bool ends_with_users(int fd)
{
    char text[sizeof WITH_USERS] = "";

    return pread(fd, text, sizeof text - 1, 0) > 0 && strcmp(text, WITH_USERS) == 0;
}

/* The supervisor is a child that would share the lock: it is taken again when that has begun. Until
 * the mark is written nobody ends the cluster. */
wf_status wf_visit_start(wf_visit *v, const wf_cluster_conf *conf, wf_err *err)
{
    wf_status rc;

    if (wf_super_pid(conf))
        return WF_OK;
    if (v->fd >= 0)
        close(v->fd);
    rc = wf_super_start(conf, err);
    *v = wf_visit_begin(conf);
    if (rc == WF_EXISTS) /* another was quicker */
        return wf_super_wait_ready(conf, READY_MS, err);
    WF_TRY(rc);
    if (v->fd >= 0)
        write_mark(v->fd, WITH_USERS);
    wf_term_print(stderr, "cluster %s: 1 master, %u ps, %u workers   logs %s/logs\n", conf->name,
                  conf->n_ps, conf->n_workers, conf->state_dir);
    return wf_super_wait_ready(conf, READY_MS, err);
}

void wf_visit_keep(const wf_cluster_conf *conf)
{
    int fd = open_file(conf);

    if (fd < 0)
        return;
    write_mark(fd, "");
    close(fd);
}

/* Names a job that is not over; "" when there is none, or when the master does not say. */
static void find_live(const wf_cluster_conf *conf, char *name, size_t size)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    json_t *picture = NULL, *job;
    wf_ask *a = NULL;
    wf_err ignored;
    size_t i;

    name[0] = 0;
    ask.command = "status";
    if (wf_ask_open(conf, &a, &ignored) == WF_OK &&
        wf_ask_send(a, &ask, ANSWER_MS, &picture, &ignored) == WF_OK)
        json_array_foreach(json_object_get(picture, "jobs"), i, job)
        {
            if (!wf_ask_is_over(job))
                snprintf(name, size, "%s", json_string_value(json_object_get(job, "name")));
        }
    json_decref(picture);
    wf_ask_close(&a);
}

static void end_cluster(const wf_cluster_conf *conf)
{
    char live[WF_RUN_NAME];
    wf_err ignored;

    find_live(conf, live, sizeof live);
    if (live[0])
        wf_term_print(stderr,
                      "cluster %s stays up for job %s; follow it with: weft follow, and end it "
                      "with: weft down\n",
                      conf->name, live);
    else if (wf_super_stop(conf, DOWN_MS, &ignored) != WF_OK)
        wf_term_print(stderr, "warning: %s\n", ignored.what);
}

/* Whether fd is still the file of this state folder. When the folder was removed or moved
 * meanwhile, a cluster that is up there now is another. */
static bool is_of(int fd, const wf_cluster_conf *conf)
{
    struct stat mine, theirs;
    char path[PATH_MAX];

    return path_of(conf, path) && fstat(fd, &mine) == 0 && stat(path, &theirs) == 0 &&
           mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

/* Two that end at once both let go first, and one of them then is the last. */
void wf_visit_end(wf_visit *v, const wf_cluster_conf *conf)
{
    if (v->fd < 0)
        return;
    (void)lock(v->fd, F_UNLCK, false);
    if (is_of(v->fd, conf) && wf_super_pid(conf) && lock(v->fd, F_WRLCK, false) &&
        ends_with_users(v->fd))
        end_cluster(conf);
    close(v->fd);
    v->fd = -1;
}
