/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/weft-worker.c - a worker's process: one thread computes, moves what is due between two steps,
 * and waits; another sends signs of life. Steps may be computed beside it (trainer_hands.c). */
#include "cmd/fellows.h"
#include "cmd/sessions.h"
#include "cmd/shell.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/kernels/kernel.h"
#include "worker/trainer.h"
#include "worker/worker.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void flush(void *arg)
{
    const wf_shell *s = arg;

    wf_net_flush(s->net, wf_now_ns());
}

/* Giving a step to another thread takes some 50 us. WEFT_LONG_STEP_US is for tests. */
static int64_t long_step_ns(void)
{
    const char *given = getenv("WEFT_LONG_STEP_US");

    return given ? strtol(given, NULL, 10) * 1000 : WF_NS_PER_MS;
}

static int64_t wall_ms(void *arg)
{
    (void)arg;
    return wf_wall_ns() / WF_NS_PER_MS;
}

static void tell(const void *worker, wf_vitals *out)
{
    wf_worker_waiting(worker, &out->waits);
}

static wf_status run(wf_shell *s, wf_trainer *t, wf_worker *w, wf_err *err)
{
    while (!wf_shell_stopping()) {
        uint32_t step = wf_worker_step(w), begun = wf_worker_begun(w);
        int64_t began_ns = wf_now_ns(), moved_ns;
        bool waits, heard = false;
        wf_event ev;

        wf_shell_turn(s, tell, w, began_ns);
        wf_net_poll(s->net, began_ns);
        while (wf_net_event(s->net, began_ns, &ev)) {
            WF_TRY(wf_worker_on_event(w, &ev, began_ns, err));
            heard = true;
        }
        moved_ns = wf_now_ns();
        wf_worker_spent(w, &(wf_worker_times){.transfer_ns = moved_ns - began_ns});
        WF_TRY(wf_worker_advance(w, moved_ns, err));
        WF_TRY(wf_trainer_work(t, w, err));
        wf_net_flush(s->net, moved_ns);
        if (heard || wf_worker_step(w) != step || wf_worker_begun(w) != begun ||
            wf_trainer_is_busy(t))
            continue;
        waits = wf_worker_waits_for_weights(w);
        moved_ns = wf_now_ns();
        if (waits && wf_trainer_read_ahead(t)) {
            wf_worker_spent(w, &(wf_worker_times){.data_ns = wf_now_ns() - moved_ns});
            continue;
        }
        wf_shell_wait(s, wf_trainer_fd(t),
                      waits); /* a wake-up would cost as much as the weights' copy */
        if (waits)
            wf_worker_spent(w, &(wf_worker_times){.wait_ns = wf_now_ns() - moved_ns});
    }
    return WF_OK;
}

/* Where a step that made NaN is kept, on which host that is, and where it listens. */
typedef struct place {
    char jobs_dir[PATH_MAX], host[HOST_NAME_MAX + 1];
    char fellows[WF_ADDRESSES_MAX]; /* where other workers dial this one, if not at its address */
} place;

static void find_place(const wf_shell *s, place *p)
{
    snprintf(p->jobs_dir, sizeof p->jobs_dir, "%s/jobs", s->conf->state_dir);
    if (s->one_host || gethostname(p->host, sizeof p->host - 1) != 0)
        p->host[0] = 0;
}

/* Who may dial the main thread. */
static wf_status admit(void *arg, const wf_hello *hello, wf_err *err)
{
    const wf_shell *s = arg;
    char text[32];

    if (hello->task.role == WF_ROLE_CLIENT && s->conf->n_ps == 0)
        return wf_fail(err, WF_UNSUPPORTED, "name a ps in cluster.yaml",
                       "the cluster has no ps, where variables of sessions live");

    if (hello->task.role == WF_ROLE_WORKER && hello->task.index < s->conf->n_workers &&
        hello->task.index != s->self.index)
        return WF_OK;
    return wf_fail(err, WF_MISMATCH, "check the addresses in cluster.yaml",
                   "worker %u is dialled by other workers alone, and not by %s", s->self.index,
                   wf_task_str(hello->task, text, sizeof text));
}

static wf_status make(wf_shell *s, place *at, wf_pool **pool, wf_trainer **t, wf_worker **w,
                      wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();

    conf.admit = admit;
    conf.admit_arg = s;
    WF_TRY(wf_shell_connect(s, &conf, err));
    wf_fellows_listen(s, at->fellows);
    WF_TRY(wf_pool_new(WF_MAX(s->me->threads, 1u), pool, err));
    WF_TRY(wf_trainer_new(&(wf_trainer_conf){.index = s->self.index,
                                             .pool = *pool,
                                             .devices = s->me->devices,
                                             .n_devices = s->me->n_devices,
                                             .checksums = !s->one_host,
                                             .jobs_dir = at->jobs_dir,
                                             .host = at->host[0] ? at->host : NULL,
                                             .loss_log = getenv("WEFT_LOSS_LOG"),
                                             .long_ns = long_step_ns(),
                                             .dial = wf_shell_dial,
                                             .dial_arg = s,
                                             .flush = flush,
                                             .flush_arg = s},
                          t, err));
    WF_TRY(wf_worker_new(&(wf_worker_conf){.index = s->self.index,
                                           .incarnation = s->incarnation,
                                           .ops = wf_trainer_ops(*t),
                                           .disk = wf_disk_posix(),
                                           .pool = *pool,
                                           .progress_ns = 100 * WF_NS_PER_MS,
                                           .session = s->session,
                                           .fellows = at->fellows,
                                           .wall_ms = wall_ms},
                         s->net, s->master, w, err));
    return WF_OK;
}

int main(int argc, char *argv[])
{
    wf_session_server *sessions = NULL;
    wf_pool *pool = NULL;
    wf_trainer *t = NULL;
    wf_worker *w = NULL;
    place at = {0};
    wf_shell s;
    wf_err err;
    wf_status rc = wf_shell_begin(&s, WF_ROLE_WORKER, argc, argv, &err);

    wf_kernels_own_process();
    if (rc == WF_OK)
        find_place(&s, &at);
    if (rc == WF_OK)
        rc = make(&s, &at, &pool, &t, &w, &err);
    if (rc == WF_OK)
        wf_session_server_start(&s, &sessions);
    if (rc == WF_OK)
        rc = run(&s, t, w, &err);
    wf_session_server_stop(&sessions);
    wf_worker_free(&w);
    wf_trainer_free(&t);
    wf_pool_free(&pool);
    return wf_shell_end(&s, rc, &err);
}
