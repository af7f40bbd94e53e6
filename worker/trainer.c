/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer.c - a trainer is made and freed, and what its worker asks for is noted and done.
 */
#include "common/base/size.h"
#include "common/kernels/kernel.h"
#include "common/wire/pinned.h"
#include "worker/trainer_state.h"

#include <stdlib.h>
#include <unistd.h>

static wf_status find_devices(wf_trainer *t, wf_err *err)
{
    if (t->conf.n_devices > WF_COUNT(t->devices))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "more than %zu devices", WF_COUNT(t->devices));
    for (size_t i = 0; i < t->conf.n_devices; i++)
        WF_TRY(wf_device_open(t->conf.devices[i], &t->devices[i], err));
    for (size_t i = 0; i < t->conf.n_devices; i++)
        wf_pinned_by(t->devices[i]);
    return WF_OK;
}

wf_status wf_trainer_new(const wf_trainer_conf *conf, wf_trainer **out, wf_err *err)
{
    wf_trainer *t = calloc(1, sizeof *t);
    wf_status rc;

    if (!t)
        return wf_fail_nomem(err, sizeof *t);
    t->conf = *conf;
    t->links =
        (wf_stage_links){.self = conf->index, .dial = conf->dial, .dial_arg = conf->dial_arg};
    t->fd = -1;
    t->hand = &t->hands[0];
    rc = find_devices(t, err);
    if (rc == WF_OK && conf->loss_log) {
        t->loss_log = fopen(conf->loss_log, "ae");
        if (!t->loss_log)
            rc = wf_fail(err, WF_IO, NULL, "cannot open %s", conf->loss_log);
    }
    if (rc != WF_OK)
        wf_trainer_free(&t);
    *out = t;
    return rc;
}

void wf_trainer_free(wf_trainer **t)
{
    if (!*t)
        return;
    wf_trainer_halt(*t);
    wf_trainer_end_stages(*t);
    wf_trainer_forget_later(*t);
    wf_stage_links_close(&(*t)->links);
    wf_measures_close((*t)->measures, WF_MEASURES_MOST);
    if ((*t)->fd >= 0)
        close((*t)->fd);
    if ((*t)->loss_log)
        fclose((*t)->loss_log);
    free(*t);
    *t = NULL;
}

bool wf_trainer_is_busy(const wf_trainer *t)
{
    return (t->later.n && !t->start) || wf_trainer_stages_can_work(t);
}

int wf_trainer_fd(const wf_trainer *t)
{
    return t->fd;
}

wf_status wf_trainer_work(wf_trainer *t, wf_worker *w, wf_err *err)
{
    int begun = t->begun;

    t->begun = NOTHING;
    if (begun == A_STEP && t->prediction)
        return wf_trainer_make_prediction(t, w, err);
    if (t->later.n && !t->start)
        WF_TRY(wf_trainer_take_later(t, err));
    if (t->stage && begun != NOTHING)
        WF_TRY(wf_trainer_begin_round(t, begun == A_STEP, w, err));
    if (t->stage || t->guests.n || t->links.first)
        return wf_trainer_work_stages(t, w, err);
    WF_TRY(wf_hands_collect(t, w, err));
    if (begun == A_STEP && wf_hands_take(t))
        wf_hands_give(t);
    else if (begun == A_STEP)
        return wf_trainer_make_step(t, w, err);
    return begun == A_UNIT ? wf_trainer_make_unit(t, w, err) : WF_OK;
}

/* ---- the operations ---- */

static wf_status begin_step(void *arg, const wf_train_step *step, wf_err *err)
{
    wf_trainer *t = arg;

    (void)err;
    t->step = *step;
    t->begun = A_STEP;
    return WF_OK;
}

static wf_status begin_unit(void *arg, const wf_eval_unit *unit, wf_err *err)
{
    wf_trainer *t = arg;

    (void)err;
    t->unit = *unit;
    t->begun = A_UNIT;
    return WF_OK;
}

static wf_status dial(void *arg, wf_task task, const char *address, wf_transport **out, wf_err *err)
{
    wf_trainer *t = arg;

    return t->conf.dial(t->conf.dial_arg, task, address, out, err);
}

wf_worker_ops wf_trainer_ops(wf_trainer *t)
{
    return (wf_worker_ops){.arg = t,
                           .start = wf_trainer_start,
                           .halt = wf_trainer_halt,
                           .open_round = wf_trainer_open_round,
                           .read = wf_trainer_read,
                           .compute = begin_step,
                           .evaluate = begin_unit,
                           .name_step = wf_trainer_name_step,
                           .name_unit = wf_trainer_name_unit,
                           .on_stage = wf_trainer_on_stage,
                           .dial = dial};
}
