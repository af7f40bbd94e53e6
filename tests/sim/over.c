/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/over.c - what a process began is over: a step's arithmetic, an evaluation, a shard on
 * disk, the master's work. */
#include "tests/sim/world.h"

#include <math.h>
#include <string.h>

static void give_fault(process *p)
{
    wf_train_result failed = {.why = {.status = WF_NUMERIC, .what = "a step fails"}};
    wf_err err;

    p->sim->oracle.failing_era =
        wf_era(wf_worker_job_number(p->worker), wf_worker_generation(p->worker));
    wf_assert(wf_worker_on_computed(p->worker, &failed, &err) == WF_OK);
}

static void give_gradients(process *p, const wf_train_step *of)
{
    wf_sim *s = p->sim;
    wf_exchange *x = of->exchange;
    uint32_t step = of->step;
    float *steps = wf_exchange_gradient(x, step, WF_MODEL_STEPS);
    float *records = wf_exchange_gradient(x, step, WF_MODEL_RECORDS);
    bool copies = wf_sim_copies(s);
    wf_err err;

    for (uint32_t i = 0; i < WF_MODEL_STEP_SLICES * wf_model_shards(s->spec.ps); i++)
        steps[i] = -1;
    memset(records, 0, s->spec.records * sizeof *records);
    for (uint64_t at = of->batch.begin; at < of->batch.end; at++)
        records[wf_sim_record(p, at)] = -1 / (float)(copies ? of->batch.end - of->batch.begin : 1);
    if (s->spec.ps == 0 && wf_sim_in_trouble(s)) { /* the shell finds it before it gives anything */
        give_fault(p);
        return;
    }
    if (s->spec.ps > 0 &&
        wf_sim_in_trouble(s)) { /* one ps finds it, the others apply their parts */
        records[wf_sim_below(s, s->spec.records)] = NAN;
        s->oracle.failing_era =
            wf_era(wf_worker_job_number(p->worker), wf_worker_generation(p->worker));
    }
    wf_oracle_pushes(p);
    if (s->spec.hybrid) {
        *wf_exchange_gradient(x, step, WF_MODEL_SHARED) = -1;
        wf_assert(wf_exchange_push(x, step, WF_MODEL_SHARED, &err) == WF_OK);
    }
    if (copies)
        wf_sim_gave(p, of);
    wf_assert(wf_exchange_push(x, step, WF_MODEL_STEPS, &err) == WF_OK);
    wf_assert(wf_exchange_push(x, step, WF_MODEL_RECORDS, &err) == WF_OK);
    wf_assert(wf_worker_on_computed(p->worker, &(wf_train_result){0}, &err) == WF_OK);
}

/* Steps end in their order, whichever is computed first. */
static void on_computed(process *p, bool *which)
{
    *which = true;
    for (;;) {
        uint32_t step = wf_worker_step(p->worker) + 1, at = step % WF_WORKER_AT_ONCE;
        uint64_t work = p->work;

        if (!p->computed[at] || p->steps[at].step != step)
            return;
        p->computed[at] = false;
        give_gradients(p, &p->steps[at]);
        if (work != p->work || wf_worker_step(p->worker) != step) /* halted, or a fault */
            return;
    }
}

static void on_saved(process *p, wf_ps_fork *f)
{
    wf_ps_saved saved = {0};
    wf_err why = {0};
    wf_status rc = wf_ps_fork_write(p->sim->disk, f, &saved, &why);

    wf_ps_on_saved(p->ps, &f, rc, &saved, &why);
}

static void on_evaluated(process *p)
{
    const wf_model_spec model = wf_sim_model(p->sim);
    wf_measure loss = {.name = "loss", .sum = wf_model_loss(&model, p->eval_epoch), .count = 1};
    wf_err err;

    if (wf_worker_on_evaluated(
            p->worker,
            &(wf_eval_result){.records = WF_MODEL_EVAL_RECORDS, .n_metrics = 1, .metrics = &loss},
            &err) != WF_OK)
        wf_sim_failed(p->sim, "evaluated", err.status, &err);
}

static void on_worked(process *p, wf_work *w, bool early)
{
    wf_err err;
    wf_status rc;

    if (!early)
        wf_work_run(w);
    rc = wf_master_on_work(p->master, &w, wf_sim_clock(p), &err);
    if (rc == WF_IO)
        wf_sim_ends(p, (wf_exit){.code = wf_exit_code(rc)});
    else if (rc != WF_OK)
        wf_sim_failed(p->sim, "work", rc, &err);
}

void wf_sim_over(process *p, wf_happening *h)
{
    wf_ps_fork *f = h->kind == SAVED ? h->what : NULL;
    wf_work *w = h->kind == WORKED ? h->what : NULL;

    if (wf_sim_stands_still(p) && p->life == h->life) { /* it ends when the process runs again */
        wf_sim_plan(p->sim, 20 * MS, *h);
        return;
    }
    if (!p->alive || p->life != h->life) {
        wf_ps_fork_free(&f);
        wf_work_free(&w);
        return;
    }
    if (h->kind == WORKED)
        on_worked(p, w, h->number);
    else if (h->kind == SAVED)
        on_saved(p, f);
    else if (h->number != p->work)
        return; /* the job was halted meanwhile */
    else if (h->kind == COMPUTED)
        on_computed(p, h->what);
    else
        on_evaluated(p);
    wf_sim_run_process(p);
}
