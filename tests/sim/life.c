/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/life.c - processes are born and die; the shells around the roles do at a later moment
 * what costs time: a step's arithmetic, a shard on disk. A killed process leaves nothing but its
 * files. */
#include "common/base/size.h"
#include "tests/sim/world.h"

#include <math.h>
#include <stdio.h>

static wf_status own(const process *p, wf_status rc, wf_transport *const *t)
{
    if (rc == WF_OK)
        wf_sim_own(p->sim, p->number, *t);
    return rc;
}

/* ---- the shells ---- */

static wf_status worker_start(void *arg, const Weft__Start *start, wf_worker_job *out, wf_err *err)
{
    const wf_sim *s = ((process *)arg)->sim;

    (void)start, (void)err;
    *out = (wf_worker_job){.batch = s->spec.batch,
                           .train_records = s->spec.records,
                           .eval_records = 8,
                           .pipeline = s->spec.pipeline};
    return WF_OK;
}

static void worker_halt(void *arg)
{
    ((process *)arg)->work++;
}

static wf_status worker_read(void *arg, const wf_batch_id *range, wf_err *err)
{
    (void)arg, (void)range, (void)err;
    return WF_OK;
}

static void worker_cancel(void *arg)
{
    (void)arg;
}

/* Whether a step goes wrong: while faults are about, now and then one does. */
static bool in_trouble(wf_sim *s)
{
    return s->spec.trouble_per_mille && s->now_ns < s->spec.faults_end_ms * MS &&
           wf_sim_below(s, 1000) < s->spec.trouble_per_mille;
}

static wf_status worker_compute(void *arg, uint32_t step, int set, const wf_batch_id *batch,
                                wf_err *err)
{
    process *p = arg;

    if (in_trouble(p->sim))
        return wf_fail(err, WF_NUMERIC, NULL, "a step fails");
    wf_oracle_computes(p, step, wf_worker_weights(p->worker, set, WF_MODEL_STEPS));
    p->batch = *batch;
    wf_sim_plan(
        p->sim, wf_sim_between(p->sim, 1, 8) * MS,
        (wf_happening){.kind = COMPUTED, .who = p->number, .life = p->life, .number = p->work});
    return WF_OK;
}

static wf_status worker_evaluate(void *arg, int set, wf_err *err)
{
    process *p = arg;
    const float *records = wf_worker_weights(p->worker, set, WF_MODEL_RECORDS);

    (void)err;
    /* The weights of one instant, after all of an epoch: no record can be missing. */
    for (uint32_t r = 0; r < p->sim->spec.records; r++)
        if (records[r] < 1 && !wf_sim_left_out(p->sim))
            wf_sim_broken(p->sim, "an evaluation sees every record trained", r,
                          (uint64_t)records[r]);
    wf_sim_plan(
        p->sim, 5 * MS,
        (wf_happening){.kind = EVALUATED, .who = p->number, .life = p->life, .number = p->work});
    return WF_OK;
}

static wf_status worker_dial(void *arg, wf_task task, const char *address, wf_transport **out,
                             wf_err *err)
{
    process *p = arg;

    (void)task;
    return own(p, wf_mem_dial(p->sim->mem, address, out, err), out);
}

static wf_status ps_save(void *arg, wf_ps_fork **f, wf_err *err)
{
    process *p = arg;

    bool hangs = p->sim->spec.stuck_per_mille && p->sim->now_ns < p->sim->spec.faults_end_ms * MS &&
                 wf_sim_between(p->sim, 0, 999) < p->sim->spec.stuck_per_mille;

    (void)err; /* a disk that hangs answers after the end of all */
    wf_sim_plan(p->sim, hangs ? 2 * p->sim->spec.end_ms * MS : wf_sim_between(p->sim, 1, 30) * MS,
                (wf_happening){.kind = SAVED, .who = p->number, .life = p->life, .what = *f});
    *f = NULL;
    return WF_OK;
}

static wf_status master_prepare(void *arg, const char *job, const char *text, const char *path,
                                wf_prepared **out, wf_err *err)
{
    const wf_model_spec model = wf_sim_model(((process *)arg)->sim);

    (void)text, (void)path;
    return wf_model_prepare(&model, job, out, err);
}

/* ---- birth and death ---- */

static wf_status make_net(process *p, wf_err *err)
{
    wf_sim *s = p->sim;
    wf_net_conf conf = wf_net_defaults();
    wf_transport *t = NULL;

    conf.self = p->task;
    conf.incarnation = p->life;
    conf.pid = p->life;
    conf.cluster = "sim";
    conf.hello_ns = 20 * MS;
    conf.ping_ns = 100 * MS;
    conf.silent_ns = 500 * MS;
    conf.gone_ns = s->spec.gone_ms * MS;
    conf.resend_ns = 150 * MS;
    conf.ack_delay_ns = 10 * MS;
    conf.random_id = wf_sim_id;
    conf.random_arg = s;
    conf.admit = p->task.role == WF_ROLE_MASTER ? wf_master_admit : NULL;
    conf.admit_arg = p->master;
    WF_TRY(wf_net_new(&conf, &p->net, err));
    if (p->task.role == WF_ROLE_MASTER || p->task.role == WF_ROLE_PS) {
        WF_TRY(own(p, wf_mem_listen(s->mem, p->address, &t, err), &t));
        wf_net_listen(p->net, &t);
    }
    if (p->task.role != WF_ROLE_MASTER) {
        WF_TRY(own(p, wf_mem_dial(s->mem, s->procs[0].address, &t, err), &t));
        WF_TRY(wf_net_dial(p->net, (wf_task){WF_ROLE_MASTER, 0}, s->procs[0].address, &t,
                           &p->to_master, err));
    }
    return WF_OK;
}

static wf_status make_master(process *p, wf_err *err)
{
    wf_sim *s = p->sim;
    wf_master_task tasks[MOST_PROCESSES];
    char session[24];

    snprintf(session, sizeof session, "%lu", (unsigned long)s->session);
    for (uint32_t i = 1; i + 1 < s->n; i++) /* all but itself and the client */
        tasks[i - 1] = (wf_master_task){s->procs[i].task, s->procs[i].address};
    return wf_master_new(&(wf_master_conf){.incarnation = p->life,
                                           .session = session,
                                           .tasks = tasks,
                                           .n_tasks = s->n - 2,
                                           .disk = s->disk,
                                           .journal_dir = "/state",
                                           .checkpoint_dir = "/ckpt",
                                           .dead_ns = 600 * MS,
                                           .cut_ns = 3000 * MS,
                                           .ops = {.arg = p, .prepare = master_prepare}},
                         s->now_ns, &p->master, err);
}

static wf_status make_role(process *p, wf_err *err)
{
    wf_sim *s = p->sim;

    if (p->task.role == WF_ROLE_MASTER)
        WF_TRY(make_master(p, err));
    WF_TRY(make_net(p, err));
    if (p->task.role == WF_ROLE_MASTER) {
        wf_master_set_net(p->master, p->net);
        return WF_OK;
    }
    if (p->task.role == WF_ROLE_CLIENT)
        return WF_OK;
    if (p->task.role == WF_ROLE_PS)
        return wf_ps_new(&(wf_ps_conf){.index = p->task.index,
                                       .incarnation = p->life,
                                       .disk = s->disk,
                                       .ops = {.arg = p, .save = ps_save}},
                         p->net, p->to_master, &p->ps, err);
    return wf_worker_new(&(wf_worker_conf){.index = p->task.index,
                                           .incarnation = p->life,
                                           .disk = s->disk,
                                           .progress_ns = 40 * MS,
                                           .ops = {.arg = p,
                                                   .start = worker_start,
                                                   .halt = worker_halt,
                                                   .read = worker_read,
                                                   .cancel = worker_cancel,
                                                   .compute = worker_compute,
                                                   .evaluate = worker_evaluate,
                                                   .dial = worker_dial}},
                         p->net, p->to_master, &p->worker, err);
}

void wf_sim_wake_at(process *p, int64_t at_ns)
{
    wf_sim *s = p->sim;
    int64_t after = WF_MAX(at_ns - s->now_ns, 100000);

    if (p->next_wake_ns > s->now_ns && p->next_wake_ns <= s->now_ns + after)
        return;
    p->next_wake_ns = s->now_ns + after;
    wf_sim_plan(s, after, (wf_happening){.kind = WAKE, .who = p->number, .life = p->life});
}

void wf_sim_die(process *p)
{
    if (!p->alive)
        return;
    p->alive = p->frozen = false;
    wf_worker_free(&p->worker);
    wf_ps_free(&p->ps);
    wf_net_free(&p->net, 0);
    wf_master_free(&p->master);
    p->to_master = NULL;
}

void wf_sim_boot(process *p)
{
    wf_sim *s = p->sim;
    wf_err err;
    wf_status rc;

    if (p->alive)
        return;
    p->life = wf_sim_id(s);
    p->alive = true;
    p->next_wake_ns = 0;
    wf_oracle_reborn(p);
    rc = make_role(p, &err);
    if (rc == WF_IO) { /* the disk fails just now: the supervisor tries again */
        wf_sim_die(p);
        wf_sim_plan(s, 200 * MS, (wf_happening){.kind = BOOT, .who = p->number});
        return;
    }
    if (rc != WF_OK)
        wf_sim_failed(s, "boot", rc, &err);
    wf_sim_wake_at(p, s->now_ns);
    s->result.restarts++;
}

void wf_sim_restart_later(process *p)
{
    wf_oracle_may_be_given_up(p->sim, p);
    wf_sim_die(p);
    wf_sim_plan(p->sim, wf_sim_between(p->sim, 20, 500) * MS,
                (wf_happening){.kind = BOOT, .who = p->number});
}

/* ---- what was begun ends ---- */

static void give_gradients(process *p)
{
    wf_sim *s = p->sim;
    float *steps = wf_worker_gradient_buffer(p->worker, WF_MODEL_STEPS);
    float *records = wf_worker_gradient_buffer(p->worker, WF_MODEL_RECORDS);
    wf_err err;

    for (uint32_t i = 0; i < WF_MODEL_STEP_SLICES * s->spec.ps; i++)
        steps[i] = -1;
    for (uint32_t r = 0; r < s->spec.records; r++)
        records[r] = r >= p->batch.begin && r < p->batch.end ? -1 : 0;
    if (in_trouble(s)) { /* one ps finds it, the others apply their parts */
        records[wf_sim_below(s, s->spec.records)] = NAN;
        s->oracle.failing_era =
            wf_era(wf_worker_job_number(p->worker), wf_worker_generation(p->worker));
    }
    wf_oracle_pushes(p);
    wf_assert(wf_worker_gradient(p->worker, WF_MODEL_STEPS, &err) == WF_OK);
    wf_assert(wf_worker_gradient(p->worker, WF_MODEL_RECORDS, &err) == WF_OK);
    wf_assert(wf_worker_computed(p->worker, 0, NULL, &err) == WF_OK);
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

    if (wf_worker_evaluated(p->worker, 1, &loss, NULL, &err) != WF_OK)
        wf_sim_failed(p->sim, "evaluated", err.status, &err);
}

void wf_sim_over(process *p, wf_happening *h)
{
    wf_ps_fork *f = h->what;

    if (p->frozen && p->life == h->life) { /* it ends when the process runs again */
        wf_sim_plan(p->sim, 20 * MS, *h);
        return;
    }
    if (!p->alive || p->life != h->life) {
        wf_ps_fork_free(&f);
        return;
    }
    if (h->kind == SAVED)
        on_saved(p, f);
    else if (h->number != p->work)
        return; /* the job was halted meanwhile */
    else if (h->kind == COMPUTED)
        give_gradients(p);
    else
        on_evaluated(p);
    wf_sim_run_process(p);
}
