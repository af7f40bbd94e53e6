/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/weft-master.c - the master's process: a loop with one socket, and what it must not wait for
 * in the background. */
#include "cmd/background.h"
#include "cmd/shell.h"
#include "common/base/clock.h"
#include "common/base/disk.h"
#include "common/log/log.h"
#include "master/generation/prepare.h"
#include "master/master.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* A shard of many GB on a slow disk is written by then; one that is not hangs. */
enum { CUT_S = 600 };

typedef struct shell {
    wf_shell base;
    wf_background *background;
    wf_master *master;
    wf_master_cluster cluster; /* a compilation may go on while base.conf is freed */
    int lock;
} shell;

static void begin(void *arg, wf_work *w)
{
    wf_background_begin(((shell *)arg)->background, w);
}

static wf_status prepare(void *arg, const char *job, const char *text, const char *path,
                         wf_prepared **out, wf_err *err)
{
    const shell *s = arg;

    (void)job;
    return wf_master_prepare(text, path, &s->cluster, out, err);
}

/* One line of JSON per event, in the job's folder. */
static void note(void *arg, const char *job, const char *json)
{
    const shell *s = arg;
    char folder[PATH_MAX], line[2048], when[32];
    int64_t now_ns = wf_wall_ns();
    time_t seconds = (time_t)(now_ns / WF_NS_PER_S);
    struct tm tm;
    int n;

    gmtime_r(&seconds, &tm);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    n = snprintf(line, sizeof line, "{\"ts\": \"%s.%03dZ\", %s\n", when,
                 (int)(now_ns / WF_NS_PER_MS % 1000), json + 1);
    if (n < 0 || n >= (int)sizeof line)
        return;
    snprintf(folder, sizeof folder, "%s/jobs/%s", s->base.conf->state_dir, job);
    wf_background_write(s->background, folder, "events.jsonl", line);
}

/* Two masters on one state_dir would each believe their own journal. The lock goes with the
 * process; the file descriptor stays open on purpose. */
static wf_status lock_state(const wf_shell *s, int *fd, wf_err *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/master", s->conf->state_dir);
    WF_TRY(wf_disk_make_dirs(wf_disk_posix(), path, err));
    snprintf(path, sizeof path, "%s/master/lock", s->conf->state_dir);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*fd < 0)
        return wf_fail(err, WF_IO, NULL, "cannot open %s", path);
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0)
        return wf_fail(err, WF_EXISTS, "end it with: weft down", "another master uses %s",
                       s->conf->state_dir);
    return WF_OK;
}

static wf_status make_master(shell *sh, wf_err *err)
{
    const wf_shell *s = &sh->base;
    uint32_t n = s->conf->n_ps + s->conf->n_workers;
    wf_master_task *tasks = calloc(n, sizeof *tasks);
    char journal[PATH_MAX];
    wf_status rc;

    if (!tasks)
        return wf_fail_nomem(err, n * sizeof *tasks);
    for (uint32_t i = 0; i < s->conf->n_ps; i++)
        tasks[i] = (wf_master_task){{WF_ROLE_PS, i}, s->conf->ps[i].address};
    for (uint32_t i = 0; i < s->conf->n_workers; i++)
        tasks[s->conf->n_ps + i] =
            (wf_master_task){{WF_ROLE_WORKER, i}, s->conf->workers[i].address};
    snprintf(journal, sizeof journal, "%s/master", s->conf->state_dir);
    rc = wf_master_new(
        &(wf_master_conf){.incarnation = s->incarnation,
                          .session = s->session,
                          .tasks = tasks,
                          .n_tasks = n,
                          .disk = wf_disk_posix(),
                          .journal_dir = journal,
                          .checkpoint_dir = s->conf->checkpoint_dir,
                          .dead_ns = s->conf->dead_ms * WF_NS_PER_MS,
                          .stuck_ns = s->conf->stuck_ms * WF_NS_PER_MS,
                          .cut_ns = CUT_S * WF_NS_PER_S,
                          .ops = {.arg = sh, .begin = begin, .prepare = prepare, .note = note}},
        wf_now_ns(), &sh->master, err);
    free(tasks);
    return rc;
}

static wf_status make(shell *s, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();

    WF_TRY(lock_state(&s->base, &s->lock, err));
    WF_TRY(wf_disk_make_dirs(wf_disk_posix(), s->base.conf->checkpoint_dir, err));
    s->cluster = (wf_master_cluster){s->base.conf->n_ps, s->base.conf->n_workers, NULL};
    WF_TRY(wf_background_new(&s->background, err));
    WF_TRY(make_master(s, err));
    conf.admit = wf_master_admit;
    conf.admit_arg = s->master;
    conf.on_stranger = wf_master_on_stranger;
    conf.stranger_arg = s->master;
    WF_TRY(wf_shell_connect(&s->base, &conf, err));
    wf_master_set_net(s->master, s->base.net);
    return WF_OK;
}

static wf_status run(shell *s, wf_err *err)
{
    while (!wf_shell_stopping()) {
        int64_t now_ns = wf_now_ns();
        wf_event ev;
        wf_work *done;

        wf_net_poll(s->base.net, now_ns);
        while (wf_net_event(s->base.net, now_ns, &ev))
            WF_TRY(wf_master_on_event(s->master, &ev, now_ns, err));
        while ((done = wf_background_done(s->background)))
            WF_TRY(wf_master_on_work(s->master, &done, now_ns, err));
        WF_TRY(wf_master_advance(s->master, now_ns, err));
        wf_net_flush(s->base.net, now_ns);
        wf_shell_wait(&s->base, wf_background_fd(s->background), 0);
    }
    return WF_OK;
}

int main(int argc, char *argv[])
{
    shell s = {.lock = -1};
    wf_err err;
    wf_status rc = wf_shell_begin(&s.base, WF_ROLE_MASTER, argc, argv, &err);
    bool ended;
    int code;

    if (rc == WF_OK)
        rc = make(&s, &err);
    if (rc == WF_OK)
        rc = run(&s, &err);
    ended = wf_background_end(&s.background);
    if (ended)
        wf_master_free(&s.master);
    code = wf_shell_end(&s.base, rc, &err);
    if (!ended) /* a thread still compiles or reads: nobody waits for what would come of it */
        _exit(code);
    if (s.lock >= 0)
        close(s.lock);
    return code;
}
