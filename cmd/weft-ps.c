/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/weft-ps.c - a parameter server's process: one thread owns the slices and the sockets; shards
 * are written by threads of their own, one each, so that serving goes on. */
#include "cmd/shell.h"
#include "common/base/clock.h"
#include "common/log/log.h"
#include "ps/ps.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WRITERS_MOST = 2 };

typedef struct saving {
    struct saver *saver;
    wf_ps_fork *fork;
    wf_ps_saved saved;
    wf_status rc;
    wf_err why;
    struct saving *next;
} saving;

/* Written shards on their way back to the ps's thread. */
typedef struct saver {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    saving *done;
    uint32_t running;
    int fd; /* an eventfd: something is done */
} saver;

static void *write_shard(void *arg)
{
    saving *s = arg;
    saver *to = s->saver;
    uint64_t one = 1;

    s->rc = wf_ps_fork_write(wf_disk_posix(), s->fork, &s->saved, &s->why);
    pthread_mutex_lock(&to->lock);
    s->next = to->done;
    to->done = s;
    to->running--;
    pthread_cond_signal(&to->idle);
    if (write(to->fd, &one, sizeof one) < 0)
        WF_LOG_DEBUG("ps.saved_unsaid", "the main loop looks every 50 ms anyway");
    pthread_mutex_unlock(&to->lock);
    return NULL;
}

/* Each holds a copy of the weights: on a disk that hangs they must not pile up. */
static bool may_begin(saver *s)
{
    bool may;

    pthread_mutex_lock(&s->lock);
    may = s->running < WRITERS_MOST;
    s->running += may;
    pthread_mutex_unlock(&s->lock);
    return may;
}

static wf_status begin_save(void *arg, wf_ps_fork **f, wf_err *err)
{
    saver *to = arg;
    saving *s;
    pthread_t thread;

    if (!may_begin(to))
        return wf_fail(err, WF_IO, "look whether the disk of checkpoint_dir still answers",
                       "%d shards of earlier checkpoints are still being written", WRITERS_MOST);
    s = calloc(1, sizeof *s);
    if (!s) {
        pthread_mutex_lock(&to->lock);
        to->running--;
        pthread_mutex_unlock(&to->lock);
        return wf_fail_nomem(err, sizeof *s);
    }
    s->saver = to;
    s->fork = *f;
    *f = NULL;
    if (pthread_create(&thread, NULL, write_shard, s) == 0)
        pthread_detach(thread);
    else
        write_shard(s);
    return WF_OK;
}

static saving *take_saved(saver *from)
{
    uint64_t count;
    saving *s;

    if (read(from->fd, &count, sizeof count) < 0)
        return NULL; /* nothing new */
    pthread_mutex_lock(&from->lock);
    s = from->done;
    from->done = NULL;
    pthread_mutex_unlock(&from->lock);
    return s;
}

static void give_back(saver *from, wf_ps *ps)
{
    saving *s = take_saved(from);

    while (s) {
        saving *next = s->next;

        if (ps)
            wf_ps_on_saved(ps, &s->fork, s->rc, &s->saved, &s->why);
        wf_ps_fork_free(&s->fork);
        free(s);
        s = next;
    }
}

static void wait_for_writers(saver *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->running > 0)
        pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void tell(const void *ps, wf_vitals *out)
{
    wf_ps_vitals(ps, out);
}

static wf_status run(wf_shell *s, wf_ps *ps, saver *writer, wf_err *err)
{
    int64_t busy_ns = 0;

    while (!wf_shell_stopping()) {
        int64_t now_ns = wf_now_ns();
        bool heard = false;
        wf_event ev;

        wf_shell_turn(s, tell, ps, now_ns);
        wf_net_poll(s->net, now_ns);
        while (wf_net_event(s->net, now_ns, &ev)) {
            heard |= ev.kind == WF_EV_MESSAGE && ev.peer != s->master;
            WF_TRY(wf_ps_on_event(ps, &ev, now_ns, err));
            wf_net_flush(s->net, now_ns);
        }
        give_back(writer, ps);
        WF_TRY(wf_ps_advance(ps, now_ns, err));
        wf_net_flush(s->net, now_ns);
        if (heard) {
            busy_ns = now_ns;
            continue;
        }
        /* Spin only while workers are at it, so that an idle ps costs nothing. */
        wf_shell_wait(s, writer->fd, now_ns - busy_ns < 5 * WF_NS_PER_MS);
    }
    return WF_OK;
}

/* The net is made before the ps that judges hellos. */
static wf_status admit(void *arg, const wf_hello *hello, wf_err *err)
{
    wf_ps *const *ps = arg;

    return wf_ps_admit(*ps, hello, err);
}

/* On a disk of its own where somebody has made it a link. */
static wf_status find_rows_dir(const wf_shell *s, char *out, size_t size, wf_err *err)
{
    if (snprintf(out, size, "%s/rows", s->conf->state_dir) >= (int)size)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", s->conf->state_dir);
    return WF_OK;
}

static wf_status make(wf_shell *s, saver *writer, const char *rows_dir, wf_ps **ps, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();

    conf.admit = admit;
    conf.admit_arg = ps;
    WF_TRY(wf_shell_connect(s, &conf, err));
    return wf_ps_new(&(wf_ps_conf){.index = s->self.index,
                                   .incarnation = s->incarnation,
                                   .session = s->session,
                                   .disk = wf_disk_posix(),
                                   .rows_dir = rows_dir,
                                   .ops = {.arg = writer,
                                           .save = begin_save,
                                           .dial = wf_shell_dial,
                                           .dial_arg = s,
                                           .now = wf_now_ns},
                                   .threads = s->me->threads,
                                   .checksums = !s->one_host,
                                   .tasks = &s->tasks},
                     s->net, s->master, ps, err);
}

int main(int argc, char *argv[])
{
    saver writer = {.lock = PTHREAD_MUTEX_INITIALIZER,
                    .idle = PTHREAD_COND_INITIALIZER,
                    .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    char rows_dir[PATH_MAX];
    wf_ps *ps = NULL;
    wf_shell s;
    wf_err err;
    wf_status rc = wf_shell_begin(&s, WF_ROLE_PS, argc, argv, &err);

    if (rc == WF_OK)
        rc = find_rows_dir(&s, rows_dir, sizeof rows_dir, &err);
    if (rc == WF_OK)
        rc = make(&s, &writer, rows_dir, &ps, &err);
    if (rc == WF_OK)
        rc = run(&s, ps, &writer, &err);
    wait_for_writers(&writer);
    give_back(&writer, NULL);
    wf_ps_free(&ps);
    close(writer.fd);
    return wf_shell_end(&s, rc, &err);
}
