/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_hands.c - steps that are computed at once, each on a thread of its own.
 *
 * A step on all threads of a worker waits at each of its kernels for the slowest of them, and next
 * to a ps on the same processors one of them often is without a processor. Two steps on half of the
 * threads each never wait for each other. A kernel's result does not depend on the number of its
 * threads, so a step's bits are the same both ways, and which way it goes may depend on timing.
 *
 * Short steps stay with the trainer's own thread: giving them away would cost as much as they take.
 */
#include "common/base/clock.h"
#include "common/base/machine.h"
#include "common/log/log.h"
#include "worker/trainer_state.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    MEASURED = 8, /* steps in a row that have to be long */
    OF_MEMORY = 4 /* plans of all hands take so small a part of the machine's */
};
/* But not too long: who waits for this process sees that its main thread goes on (cmd/beat.h). So
 * the main thread stands still with a step that takes so much longer than those before. */
static const int64_t MOST_NS = WF_NS_PER_S, OVERDUE_NS = 5 * WF_NS_PER_S;

static wf_hand *hand_of(wf_trainer *t, uint32_t step)
{
    return &t->hands[1 + step % WF_WORKER_AT_ONCE];
}

bool wf_hands_take(const wf_trainer *t)
{
    return t->shares && !t->step.lonely;
}

/* With the plan that most steps take: there may be no memory for it. */
static wf_status open_hand(wf_trainer *t, uint32_t number, wf_err *err)
{
    wf_hand *h = &t->hands[number];
    uint64_t ignored, threads = wf_replica_share(wf_pool_threads(t->conf.pool), WF_WORKER_AT_ONCE,
                                                 number - 1, &ignored);
    wf_plan *first;

    h->of = t;
    h->first_replica = number;
    WF_TRY(wf_pool_new((uint32_t)threads, &h->pool, err));
    WF_TRY(wf_replicas_open(&h->replicas, t->devices, t->conf.n_devices, false, h->pool, err));
    WF_TRY(wf_trainer_new_gradients(t, h, err));
    WF_TRY(wf_stepper_new(t->fd, &h->thread, err));
    t->on[number] = h->replicas.on[0];
    return wf_side_plan(&t->train, number, t->hand->step.batch.end - t->hand->step.batch.begin,
                        &first, err);
}

static wf_status check_memory(const wf_trainer *t, wf_err *err)
{
    const wf_plan_usage one = wf_plan_memory(t->hand->replicas.of[0].plan);
    const size_t bytes = one.arena_bytes + one.constants_bytes + one.workspace_bytes;

    if (bytes > wf_machine_memory() / OF_MEMORY / WF_HANDS)
        return wf_fail(err, WF_NOMEM, NULL, "plans of %zu bytes for each would not leave enough",
                       bytes);
    return WF_OK;
}

wf_status wf_trainer_open_fd(wf_trainer *t, wf_err *err)
{
    if (t->fd < 0)
        t->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return t->fd >= 0 ? WF_OK : wf_fail_errno(err, errno, NULL, "making an eventfd");
}

static wf_status open_all(wf_trainer *t, wf_err *err)
{
    WF_TRY(check_memory(t, err));
    WF_TRY(wf_trainer_open_fd(t, err));
    for (uint32_t i = 1; i < WF_HANDS; i++)
        WF_TRY(open_hand(t, i, err));
    return WF_OK;
}

/* The first long ones decide for the job. Without memory for more hands it goes on with one. */
void wf_hands_note(wf_trainer *t, int64_t took_ns)
{
    wf_err why;

    if (!t->may_share || t->shares)
        return;
    t->measured = took_ns < t->conf.long_ns || took_ns > MOST_NS ? 0 : t->measured + 1;
    if (t->measured < MEASURED)
        return;
    if (open_all(t, &why) == WF_OK) {
        t->shares = true;
        WF_LOG_INFO("worker.steps_at_once", "n=%d", WF_WORKER_AT_ONCE);
        return;
    }
    WF_LOG_WARN("worker.steps_at_once", "n=1 why=\"%s\"", why.what);
    wf_hands_close(t);
}

static void run(void *arg)
{
    wf_hand *h = arg;

    wf_step_compute(h->of, h);
}

/* What cannot begin is told in its turn. */
void wf_hands_give(wf_trainer *t)
{
    wf_hand *h = hand_of(t, t->step.step);

    wf_assert(!h->busy);
    t->hand = h;
    h->step = t->step;
    h->began_ns = wf_now_ns();
    h->result = (wf_train_result){0};
    h->busy = true;
    h->rc = WF_OK;
    if (t->opening.begun && atomic_load(&t->opening.ended)) /* as trainer_step.c does */
        h->rc = wf_trainer_join_opening(t, &h->result.why);
    if (h->rc == WF_OK)
        h->rc = wf_step_prepare(t, &h->step.batch, &h->result.why);
    if (h->rc == WF_OK)
        wf_stepper_give(h->thread, run, h);
}

void wf_hands_forget(wf_trainer *t)
{
    for (int i = 1; i < WF_HANDS; i++) {
        wf_hand *h = &t->hands[i];

        if (!h->busy)
            continue;
        wf_stepper_wait(h->thread);
        wf_data_reader_release(t->train.reader, &h->batch);
        h->busy = false;
    }
}

void wf_trainer_drain_fd(const wf_trainer *t)
{
    uint64_t ignored;

    while (t->fd >= 0 && read(t->fd, &ignored, sizeof ignored) < 0 && errno == EINTR)
        ;
}

wf_status wf_hands_collect(wf_trainer *t, wf_worker *w, wf_err *err)
{
    if (!t->shares)
        return WF_OK;
    wf_trainer_drain_fd(t);
    if (wf_worker_begun(w) == wf_worker_step(w)) { /* a fault has ended what was in hand */
        wf_hands_forget(t);
        return WF_OK;
    }
    for (;;) {
        uint32_t step = wf_worker_step(w) + 1;
        wf_hand *h = hand_of(t, step);
        wf_status rc = h->rc;

        if (!h->busy || h->step.step != step)
            return WF_OK;
        if (rc == WF_OK && wf_now_ns() - h->began_ns > OVERDUE_NS)
            wf_stepper_wait(h->thread);
        if (rc == WF_OK && !wf_stepper_is_done(h->thread))
            return WF_OK;
        t->hand = h;
        if (rc == WF_OK)
            rc = wf_step_take(t, &h->result.why);
        if (rc == WF_OK)
            h->busy = false;
        else
            wf_hands_forget(t); /* of the others as well */
        WF_TRY(wf_step_tell(t, w, rc, err));
    }
}

void wf_hands_close(wf_trainer *t)
{
    wf_hands_forget(t);
    for (int i = 1; i < WF_HANDS; i++) {
        wf_hand *h = &t->hands[i];

        wf_stepper_free(&h->thread);
        wf_gradients_free(&h->gradients);
        wf_replicas_close(&h->replicas);
        wf_pool_free(&h->pool);
        *h = (wf_hand){0};
    }
    t->may_share = t->shares = false;
    t->measured = 0;
}
