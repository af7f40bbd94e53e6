/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/life.c - processes are born and die; the shells around the roles do at a later moment
 * what costs time: a step's arithmetic, a shard on disk. A killed process leaves nothing but its
 * files. */
#include "common/base/size.h"
#include "common/conf/conf.h"
#include "tests/sim/world.h"
#include <string.h>

#include <stdio.h>

/* ---- the shells ---- */

static bool fails_to_start(process *p)
{
    wf_sim *s = p->sim;

    if (p->task.index + 1 != s->spec.unfit &&
        (s->now_ns >= s->spec.faults_end_ms * MS ||
         wf_sim_below(s, 1000) >= s->spec.start_fails_per_mille))
        return false;
    return true;
}

/* Where the records of a file begin: files grow in size. */
static uint64_t shard_at(const wf_sim *s, uint64_t i)
{
    uint64_t n = s->spec.shards;

    return s->spec.records * i * (i + 1) / (n * (n + 1));
}

static void list_shards(wf_sim *s, wf_worker_job *out)
{
    static char path[] = "part";

    for (uint32_t i = 0; i < s->spec.shards; i++) {
        weft__file_records__init(&s->shards[i]);
        s->shards[i].path = path;
        s->shards[i].records = shard_at(s, i + 1) - shard_at(s, i);
        s->shard_list[i] = &s->shards[i];
    }
    out->files = s->shard_list;
    out->n_files = s->spec.shards;
}

static wf_status worker_start(void *arg, const Weft__Start *start, wf_worker_job *out, wf_err *err)
{
    wf_sim *s = ((process *)arg)->sim;

    if (fails_to_start(arg))
        return wf_fail(err, WF_IO, NULL, "the data cannot be read");
    *out = (wf_worker_job){.batch = s->spec.batch,
                           .train_records = s->spec.records,
                           .eval_records = WF_MODEL_EVAL_RECORDS,
                           .checksums = s->spec.flip_per_mille > 0,
                           .pipeline = s->spec.pipeline,
                           .at_once = s->spec.ps ? s->spec.at_once : 1};
    if (s->spec.shards)
        list_shards(s, out);
    return s->spec.files ? wf_sim_open_round(arg, start->round, out, err) : WF_OK;
}

static void worker_halt(void *arg)
{
    process *p = arg;

    p->work++;
    memset(p->computed, 0, sizeof p->computed);
}

static wf_status worker_read(void *arg, const wf_batch_id *range, wf_err *err)
{
    wf_sim *s = ((process *)arg)->sim;

    (void)err;
    for (uint32_t i = 0; i < s->spec.shards; i++)
        if (shard_at(s, i) <= range->begin && range->begin < shard_at(s, i + 1) &&
            (range->order_begin != shard_at(s, i) || range->order_end != shard_at(s, i + 1) ||
             range->end > range->order_end))
            wf_sim_broken(s, "a split is of one file", range->begin, range->end);
    return WF_OK;
}

bool wf_sim_in_trouble(wf_sim *s)
{
    return s->spec.trouble_per_mille && s->now_ns < s->spec.faults_end_ms * MS &&
           wf_sim_below(s, 1000) < s->spec.trouble_per_mille;
}

/* Frozen weights are in before anything is computed from them, whatever became of links. */
static void check_frozen(const process *p, const wf_exchange *x, int set)
{
    const float *frozen = wf_exchange_weights(x, set, WF_MODEL_FROZEN);

    for (uint32_t i = 0; i < WF_MODEL_FROZEN_SIZE; i++)
        if (frozen[i] != wf_model_frozen(i))
            wf_sim_broken(p->sim, "frozen weights are what they were", i, (uint64_t)frozen[i]);
}

/* It counts common steps, which nobody in a generation goes back behind. A process that began again
 * may compute the step that another had not given before it. */
static void check_shared(process *p, const wf_train_step *step)
{
    uint32_t era = wf_era(wf_worker_job_number(p->worker), wf_worker_generation(p->worker));
    float now;

    if (!p->sim->spec.hybrid)
        return;
    now = *wf_exchange_weights(step->exchange, step->set, WF_MODEL_SHARED);
    if (p->shared_life == p->life && p->shared_era == era && now < p->shared + 0.5F)
        wf_sim_broken(p->sim, "each common step counts", (uint64_t)now, (uint64_t)p->shared);
    p->shared_life = p->life;
    p->shared_era = era;
    p->shared = now;
}

static wf_status worker_compute(void *arg, const wf_train_step *step, wf_err *err)
{
    process *p = arg;
    uint32_t at = step->step % WF_WORKER_AT_ONCE;
    int64_t takes_ns = wf_sim_between(p->sim, 1, 8) * MS;

    if (wf_sim_in_trouble(p->sim))
        return wf_fail(err, wf_sim_below(p->sim, 2) ? WF_NUMERIC : WF_BROKEN, NULL, "a step fails");
    check_frozen(p, step->exchange, step->set);
    check_shared(p, step);
    wf_oracle_computes(p, step->step,
                       wf_exchange_weights(step->exchange, step->set, WF_MODEL_STEPS));
    p->steps[at] = *step;
    p->computed[at] = false;
    if (p->sim->spec.steps_block && p->sim->spec.at_once <= 1)
        p->busy_until_ns = p->sim->now_ns + takes_ns;
    wf_sim_plan(p->sim, takes_ns,
                (wf_happening){.kind = COMPUTED,
                               .who = p->number,
                               .life = p->life,
                               .what = &p->computed[at],
                               .number = p->work});
    return WF_OK;
}

static wf_status worker_evaluate(void *arg, const wf_eval_unit *unit, wf_err *err)
{
    process *p = arg;
    const float *records = wf_exchange_weights(unit->exchange, unit->set, WF_MODEL_RECORDS);

    (void)err;
    check_frozen(p, unit->exchange, unit->set);
    /* The weights of one instant, after all of an epoch: no record can be missing. */
    for (uint32_t r = 0; !p->sim->spec.files && r < p->sim->spec.records; r++)
        if (records[r] < (wf_sim_copies(p->sim) ? 1e-6F : 1) && !wf_sim_left_out(p->sim) &&
            !p->sim->spec.backups)
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
    uint32_t first = task.role == WF_ROLE_WORKER ? 1 + ((process *)arg)->sim->spec.ps : 1;

    (void)address, (void)err;
    *out = wf_socket_dial(arg, first + task.index);
    return WF_OK;
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
    WF_TRY(wf_model_prepare(&model, job, out, err));
    (*out)->shard = ((process *)arg)->sim->spec.shards ? WF_SHARD_FILE : WF_SHARD_DATA;
    return WF_OK;
}

/* What the master begins is on disk at its beginning or at its end, and no call of the disk lies
 * between: a master that dies meanwhile has done it, or has not. */
static void master_begin(void *arg, wf_work *w)
{
    process *p = arg;
    wf_sim *s = p->sim;
    bool early = wf_sim_below(s, 2) == 0;
    int64_t most_ms = wf_work_is_sync(w) ? WF_MIN(s->spec.work_ms, 20) : s->spec.work_ms;

    if (early)
        wf_work_run(w);
    wf_sim_plan(s, wf_sim_between(s, 1, 1000 * most_ms) * MS / 1000,
                (wf_happening){
                    .kind = WORKED, .who = p->number, .life = p->life, .what = w, .number = early});
}

/* ---- birth and death ---- */

/* The net is made before the ps that judges hellos. */
static wf_status admit_to_task(void *arg, const wf_hello *hello, wf_err *err)
{
    const process *p = arg;

    return p->task.role == WF_ROLE_PS ? wf_ps_admit(p->ps, hello, err) : WF_OK;
}

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
    conf.gone_ns = s->spec.gone_ms * MS;
    conf.probe_ns = 100 * MS;
    conf.ack_delay_ns = 10 * MS;
    conf.random_id = wf_sim_id;
    conf.random_arg = s;
    conf.admit = p->task.role == WF_ROLE_MASTER ? wf_master_admit : admit_to_task;
    conf.admit_arg = p->task.role == WF_ROLE_MASTER ? (void *)p->master : p;
    conf.on_refused = p->master ? wf_master_on_refused : NULL;
    conf.on_stranger = p->master ? wf_master_on_stranger : NULL;
    conf.stranger_arg = p->master;
    WF_TRY(wf_net_new(&conf, &p->net, err));
    if (p->task.role == WF_ROLE_MASTER || p->task.role == WF_ROLE_PS ||
        (p->task.role == WF_ROLE_WORKER && (wf_sim_copies(s) || s->spec.hybrid))) {
        t = wf_socket_listen(p);
        wf_net_listen(p->net, &t);
    }
    if (p->task.role != WF_ROLE_MASTER) {
        t = wf_socket_dial(p, 0);
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
                                           .journal_least = s->spec.journal_least,
                                           .dead_ns = DEAD_MS * MS,
                                           .stuck_ns = STUCK_MS * MS,
                                           .cut_ns = CUT_MS * MS,
                                           .ops = {.arg = p,
                                                   .begin = s->spec.work_ms ? master_begin : NULL,
                                                   .list = wf_sim_list_files,
                                                   .prepare = master_prepare}},
                         wf_sim_clock(p), &p->master, err);
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
        return s->spec.supervised ? wf_sim_supervise(p, err) : WF_OK;
    if (p->task.role == WF_ROLE_PS)
        return wf_ps_new(
            &(wf_ps_conf){.index = p->task.index,
                          .incarnation = p->life,
                          .disk = s->disk,
                          .kinds = wf_logged_kinds,
                          .adds = s->spec.together,
                          .load_ns = s->spec.balances ? 100 * MS : 0,
                          .checksums = s->spec.flip_per_mille > 0,
                          .ops = {.arg = p, .save = ps_save, .dial = worker_dial, .dial_arg = p}},
            p->net, p->to_master, &p->ps, err);
    return wf_worker_new(&(wf_worker_conf){.index = p->task.index,
                                           .incarnation = p->life,
                                           .disk = s->disk,
                                           .file_bytes = 1, /* each worker writes one */
                                           .progress_ns = 40 * MS,
                                           .ops = {.arg = p,
                                                   .start = worker_start,
                                                   .halt = worker_halt,
                                                   .open_round = wf_sim_open_round,
                                                   .read = worker_read,
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

void wf_sim_die(process *p, int linger_ms)
{
    p->starting = 0;
    if (!p->alive)
        return;
    p->alive = p->frozen = p->hung = false;
    p->busy_until_ns = 0;
    if (p->beat)
        p->beat->ops->close(p->beat, 0);
    p->beat = NULL;
    wf_worker_free(&p->worker);
    wf_ps_free(&p->ps);
    wf_supervisor_free(&p->supervisor);
    wf_net_free(&p->net, linger_ms);
    wf_master_free(&p->master);
    p->to_master = NULL;
}

void wf_sim_boot(process *p, uint64_t life)
{
    wf_sim *s = p->sim;
    wf_err err;
    wf_status rc;

    if (p->alive || life != p->starting)
        return;
    p->life = life ? life : wf_sim_id(s);
    p->starting = 0;
    p->alive = true;
    p->next_wake_ns = 0;
    wf_oracle_reborn(p);
    rc = make_role(p, &err);
    if (rc == WF_IO) { /* the disk fails just now: the supervisor tries again */
        wf_sim_die(p, 0);
        if (s->spec.supervised)
            wf_sim_reap_later(p, p->life, (wf_exit){.code = wf_exit_code(rc)});
        else
            wf_sim_plan(s, 200 * MS, (wf_happening){.kind = BOOT, .who = p->number});
        return;
    }
    if (rc != WF_OK)
        wf_sim_failed(s, "boot", rc, &err);
    wf_sim_begin_beats(p);
    wf_sim_wake_at(p, s->now_ns);
    s->result.restarts++;
    s->master_boots += p->master != NULL;
    if (s->spec.supervised && p->master)
        wf_sim_disturbed(s);
}

void wf_sim_ends(process *p, wf_exit how)
{
    wf_sim *s = p->sim;
    uint64_t pid = p->starting ? p->starting : p->life;

    wf_oracle_dies(p);
    if (p->master)
        wf_sim_disturbed(s);
    wf_sim_die(p, how.signal || how.code ? 0 : 100);
    if (s->spec.supervised) {
        wf_sim_reap_later(p, pid, how);
        return;
    }
    wf_sim_plan(s, wf_sim_between(s, 20, 500) * MS, (wf_happening){.kind = BOOT, .who = p->number});
    if (how.signal && s->spec.tells)
        wf_sim_plan(s, wf_sim_between(s, 1, 20) * MS,
                    (wf_happening){.kind = TELL, .who = p->number, .number = pid});
}
