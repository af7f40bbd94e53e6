/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/sim.c - processes that live and die on one agenda.
 *
 * A process is a net with a role on it. It runs when a packet reaches it, when something that it
 * began is over (a step's arithmetic, a shard on disk), and when its next deadline comes. A killed
 * process leaves nothing but its files; a frozen one runs again later, with all that has reached
 * it.
 */
#include "tests/sim/sim.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "common/log/log.h"
#include "common/wire/mem.h"
#include "common/wire/net.h"
#include "master/master.h"
#include "ps/ps.h"
#include "tests/sim/clock.h"
#include "tests/sim/memdisk.h"
#include "tests/sim/model.h"
#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS WF_NS_PER_MS
enum { MOST_PROCESSES = 16, MOST_ENDPOINTS = 65536, TICK_MS = 50 };
static const char JOB[] = "ledger";

enum {
    PACKET,
    WAKE,
    COMPUTED,
    EVALUATED,
    SAVED,
    KILL,
    KILL_ALL,
    BOOT,
    FREEZE,
    THAW,
    CUT,
    HEAL,
    DISK_ERROR
};

typedef struct process {
    struct wf_sim *sim;
    uint32_t number;
    wf_task task;
    char address[32];
    bool alive, frozen;
    uint64_t life; /* the incarnation; 0 before the first boot */
    wf_net *net;
    wf_peer *to_master;
    wf_master *master;
    wf_ps *ps;
    wf_worker *worker;
    int64_t next_wake_ns;
    /* a worker's step in hand */
    wf_batch_id batch;
    uint32_t last_step;
} process;

struct wf_sim {
    wf_sim_spec spec;
    int64_t now_ns;
    uint64_t draws, session;
    wf_agenda agenda;
    wf_mem *mem;
    wf_memdisk *memdisk;
    wf_disk *disk;
    process procs[MOST_PROCESSES];
    uint32_t n;
    uint32_t owner[MOST_ENDPOINTS]; /* which process an endpoint is of */
    bool severed[MOST_PROCESSES][MOST_PROCESSES];
    bool submitted, recovered_all;
    uint64_t worker_deaths, checked_step;
    wf_sim_result result;
    wf_status rc;
    wf_err err;
};

static uint64_t draw(wf_sim *s)
{
    return wf_rng_u64((wf_rng_key){s->spec.seed, 77}, s->draws++);
}

static uint64_t below(wf_sim *s, uint64_t n)
{
    return n ? (uint64_t)((unsigned __int128)draw(s) * n >> 64) : 0;
}

static int64_t between(wf_sim *s, int64_t least, int64_t most)
{
    return least + (int64_t)below(s, (uint64_t)(most - least + 1));
}

static void plan(wf_sim *s, int64_t after_ns, wf_happening h)
{
    h.at_ns = s->now_ns + after_ns;
    wf_agenda_add(&s->agenda, h);
}

static void broken(wf_sim *s, const char *claim, uint64_t a, uint64_t b)
{
    if (s->rc == WF_OK)
        s->rc = wf_fail(&s->err, WF_INVALID, NULL, "at %ld ms: %s (%lu, %lu)",
                        (long)(s->now_ns / MS), claim, (unsigned long)a, (unsigned long)b);
}

static void failed(wf_sim *s, const char *where, wf_status rc, const wf_err *err)
{
    if (s->rc == WF_OK)
        s->rc = wf_fail(&s->err, rc, NULL, "at %ld ms: %s: %s", (long)(s->now_ns / MS), where,
                        err->what);
}

/* ---- the network ---- */

static void deliver_later(wf_sim *s, const wf_packet *packet)
{
    wf_packet *p = malloc(sizeof *p);
    int64_t delay_us = between(s, s->spec.delay_us_min, s->spec.delay_us_max);

    wf_assert(p);
    *p = *packet;
    if (below(s, 100) == 0)
        delay_us *= 20; /* now and then one is very late */
    plan(s, delay_us * 1000, (wf_happening){.kind = PACKET, .what = p});
}

static void carry(void *arg, const wf_packet *packet)
{
    wf_sim *s = arg;
    wf_packet p = *packet, again;
    uint32_t from = s->owner[packet->from], to = s->owner[packet->to];

    if (s->severed[from][to] || below(s, 1000) < s->spec.drop_per_mille) {
        wf_mem_drop(s->mem, &p);
        return;
    }
    if (below(s, 1000) < s->spec.dup_per_mille && wf_mem_repeat(s->mem, &p, &again, NULL) == WF_OK)
        deliver_later(s, &again);
    deliver_later(s, &p);
}

static wf_status own(wf_sim *s, uint32_t number, wf_status rc, wf_transport *const *t)
{
    if (rc == WF_OK) {
        wf_assert(wf_mem_endpoint(*t) < MOST_ENDPOINTS);
        s->owner[wf_mem_endpoint(*t)] = number;
    }
    return rc;
}

static uint64_t random_id(void *arg)
{
    return draw(arg) | 1;
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
    ((process *)arg)->last_step = 0;
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

static wf_status worker_compute(void *arg, uint32_t step, int set, const wf_batch_id *batch,
                                wf_err *err)
{
    process *p = arg;
    const float *steps = wf_worker_weights(p->worker, set, WF_MODEL_STEPS);

    (void)err;
    if (steps[0] < 0)
        broken(p->sim, "weights are counts", step, 0);
    p->batch = *batch;
    plan(p->sim, between(p->sim, 1, 8) * MS,
         (wf_happening){.kind = COMPUTED,
                        .who = p->number,
                        .life = p->life,
                        .number = (uint64_t)wf_worker_generation(p->worker) << 32 | step});
    return WF_OK;
}

static wf_status worker_evaluate(void *arg, int set, wf_err *err)
{
    process *p = arg;
    const float *records = wf_worker_weights(p->worker, set, WF_MODEL_RECORDS);

    (void)err;
    /* The weights of one instant, after all of an epoch: no record can be missing. */
    for (uint32_t r = 1; r < p->sim->spec.records; r++)
        if (records[r] < 1)
            broken(p->sim, "an evaluation sees every record trained", r, (uint64_t)records[r]);
    plan(p->sim, 5 * MS, (wf_happening){.kind = EVALUATED, .who = p->number, .life = p->life});
    return WF_OK;
}

static wf_status worker_dial(void *arg, wf_task task, const char *address, wf_transport **out,
                             wf_err *err)
{
    process *p = arg;

    (void)task;
    return own(p->sim, p->number, wf_mem_dial(p->sim->mem, address, out, err), out);
}

static void ps_save(void *arg, wf_ps_fork **f)
{
    process *p = arg;

    plan(p->sim, between(p->sim, 1, 30) * MS,
         (wf_happening){.kind = SAVED, .who = p->number, .life = p->life, .what = *f});
    *f = NULL;
}

static wf_status master_prepare(void *arg, const char *job, const char *text, const char *path,
                                wf_prepared **out, wf_err *err)
{
    (void)text, (void)path;
    return wf_model_prepare(&((process *)arg)->sim->spec, job, out, err);
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
    conf.gone_ns = 3000 * MS;
    conf.resend_ns = 150 * MS;
    conf.ack_delay_ns = 10 * MS;
    conf.random_id = random_id;
    conf.random_arg = s;
    conf.admit = p->task.role == WF_ROLE_MASTER ? wf_master_admit : NULL;
    conf.admit_arg = p->master;
    WF_TRY(wf_net_new(&conf, &p->net, err));
    if (p->task.role != WF_ROLE_WORKER) {
        WF_TRY(own(s, p->number, wf_mem_listen(s->mem, p->address, &t, err), &t));
        wf_net_listen(p->net, &t);
    }
    if (p->task.role != WF_ROLE_MASTER) {
        WF_TRY(own(s, p->number, wf_mem_dial(s->mem, s->procs[0].address, &t, err), &t));
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
    for (uint32_t i = 1; i < s->n; i++)
        tasks[i - 1] = (wf_master_task){s->procs[i].task, s->procs[i].address};
    return wf_master_new(&(wf_master_conf){.incarnation = p->life,
                                           .session = session,
                                           .tasks = tasks,
                                           .n_tasks = s->n - 1,
                                           .disk = s->disk,
                                           .journal_dir = "/state",
                                           .checkpoint_dir = "/ckpt",
                                           .dead_ns = 600 * MS,
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

static void plan_wake(process *p, int64_t at_ns)
{
    wf_sim *s = p->sim;
    int64_t after = WF_MAX(at_ns - s->now_ns, 100000);

    if (p->next_wake_ns > s->now_ns && p->next_wake_ns <= s->now_ns + after)
        return;
    p->next_wake_ns = s->now_ns + after;
    plan(s, after, (wf_happening){.kind = WAKE, .who = p->number, .life = p->life});
}

static void die(process *p)
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

static void boot(process *p)
{
    wf_sim *s = p->sim;
    wf_err err;
    wf_status rc;

    if (p->alive)
        return;
    p->life = draw(s) | 1;
    p->alive = true;
    p->next_wake_ns = 0;
    rc = make_role(p, &err);
    if (rc == WF_IO) { /* the disk fails just now: the supervisor tries again */
        die(p);
        plan(s, 200 * MS, (wf_happening){.kind = BOOT, .who = p->number});
        return;
    }
    if (rc != WF_OK)
        failed(s, "boot", rc, &err);
    plan_wake(p, s->now_ns);
    s->result.restarts++;
}

static void restart_later(process *p)
{
    if (p->task.role == WF_ROLE_WORKER)
        p->sim->worker_deaths++;
    die(p);
    plan(p->sim, between(p->sim, 20, 500) * MS, (wf_happening){.kind = BOOT, .who = p->number});
}

/* ---- running ---- */

static wf_status submit(process *p, wf_err *err)
{
    wf_sim *s = p->sim;
    const char *state = wf_master_job_state(p->master, JOB);

    if (!state[0]) {
        if (s->submitted && !s->recovered_all)
            broken(s, "a submitted job stays known", 0, 0);
        WF_TRY(wf_master_submit(p->master, JOB, "ledger", "", false, err));
        s->submitted = true;
    } else if (strcmp(state, "interrupted") == 0) {
        WF_TRY(wf_master_recover(p->master, JOB, -1, err));
    }
    return WF_OK;
}

static void say_event(const process *p, const wf_event *ev)
{
    static const char *const names[] = {"", "up", "down", "silent", "refused"};
    const wf_header *h = ev->kind == WF_EV_MESSAGE ? &ev->msg->head : NULL;
    char me[32], them[32];

    wf_task_str(p->task, me, sizeof me);
    wf_task_str(ev->peer->task, them, sizeof them);
    if (h)
        printf("%8.3f %s <- %s %s gen=%u view=%u step=%u cut=%u request=%u\n",
               (double)p->sim->now_ns / (double)MS, me, them, wf_kind_name(h->kind), h->generation,
               h->view, h->step, h->cut, h->request);
    else
        printf("%8.3f %s: %s %s\n", (double)p->sim->now_ns / (double)MS, me, them, names[ev->kind]);
}

static wf_status take_event(process *p, wf_event *ev, wf_err *err)
{
    if (p->sim->spec.loud)
        say_event(p, ev);
    if (p->master)
        return wf_master_on_event(p->master, ev, p->sim->now_ns, err);
    if (p->ps)
        return wf_ps_on_event(p->ps, ev, p->sim->now_ns, err);
    return wf_worker_on_event(p->worker, ev, p->sim->now_ns, err);
}

static wf_status advance(process *p, wf_err *err)
{
    if (p->master) {
        WF_TRY(submit(p, err));
        return wf_master_advance(p->master, p->sim->now_ns, err);
    }
    return p->worker ? wf_worker_advance(p->worker, p->sim->now_ns, err) : WF_OK;
}

/* A role that ends by itself (given up by the master, its journal failed) is started again. */
static void run(process *p)
{
    wf_sim *s = p->sim;
    wf_event ev;
    wf_err err;
    wf_status rc = WF_OK;

    if (!p->alive || p->frozen)
        return;
    wf_net_poll(p->net, s->now_ns);
    while (rc == WF_OK && wf_net_event(p->net, s->now_ns, &ev))
        rc = take_event(p, &ev, &err);
    if (rc == WF_OK)
        rc = advance(p, &err);
    if (rc == WF_OK) {
        wf_net_poll(p->net, s->now_ns);
        plan_wake(p, WF_MIN(wf_net_deadline(p->net, s->now_ns), s->now_ns + TICK_MS * MS));
    } else if (rc == WF_SUPERSEDED || rc == WF_TIMEOUT || (rc == WF_IO && p->master)) {
        restart_later(p);
    } else {
        failed(s, wf_role_name(p->task.role), rc, &err);
    }
}

static void give_gradients(process *p)
{
    const wf_sim *s = p->sim;
    float *steps = wf_worker_gradient_buffer(p->worker, WF_MODEL_STEPS);
    float *records = wf_worker_gradient_buffer(p->worker, WF_MODEL_RECORDS);
    wf_err err;

    for (uint32_t i = 0; i < WF_MODEL_STEP_SLICES * s->spec.ps; i++)
        steps[i] = -1;
    for (uint32_t r = 0; r < s->spec.records; r++)
        records[r] = r >= p->batch.begin && r < p->batch.end ? -1 : 0;
    wf_assert(wf_worker_gradient(p->worker, WF_MODEL_STEPS, &err) == WF_OK);
    wf_assert(wf_worker_gradient(p->worker, WF_MODEL_RECORDS, &err) == WF_OK);
    wf_assert(wf_worker_computed(p->worker, 0, NULL, &err) == WF_OK);
}

static void on_computed(process *p, uint64_t number)
{
    if (!p->worker || number != ((uint64_t)wf_worker_generation(p->worker) << 32 |
                                 (wf_worker_step(p->worker) + 1)))
        return; /* the job was halted, or began anew, meanwhile */
    give_gradients(p);
}

static void on_saved(process *p, wf_ps_fork *f)
{
    wf_ps_saved saved = {0};
    wf_err why = {0};
    wf_status rc = wf_ps_fork_write(p->sim->disk, f, &saved, &why);

    wf_ps_on_saved(p->ps, &f, rc, &saved, &why);
}

/* ---- what must always hold ---- */

static void check_slices(wf_sim *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const wf_slice *slice;

        for (uint32_t k = 0; s->procs[i].ps && (slice = wf_ps_slice_at(s->procs[i].ps, k)); k++) {
            if (slice->variable != WF_MODEL_STEPS)
                continue;
            for (uint64_t e = 0; e < slice->count; e++)
                if ((uint64_t)wf_slice_weights(slice)[e] != slice->updates)
                    broken(s, "a slice holds one for each update",
                           (uint64_t)wf_slice_weights(slice)[e], slice->updates);
        }
    }
}

/* A committed checkpoint holds each record that its ledger claims, and while no worker has died no
 * other: the cut is one instant of data and weights. */
static void check_records(wf_sim *s, wf_ckpt *c)
{
    const wf_ckpt_ledger *l = &wf_ckpt_manifest(c)->ledger;
    float *records = calloc(s->spec.records, sizeof *records);
    uint8_t *claimed = calloc(s->spec.records, 1);
    wf_err err;

    wf_assert(records && claimed);
    if (wf_ckpt_read_range(c, "records", NULL, 0, s->spec.records, records, &err) != WF_OK)
        failed(s, "reading a checkpoint", err.status, &err);
    for (size_t i = 0; i < l->n_finished; i++)
        memset(claimed + l->finished[i].begin, 1, l->finished[i].end - l->finished[i].begin);
    for (size_t i = 0; i < l->n_open; i++)
        memset(claimed + l->open[i].begin, 1, l->open[i].next - l->open[i].begin);
    for (uint32_t r = 0; r < s->spec.records; r++) {
        uint64_t wanted = l->epoch + claimed[r], got = (uint64_t)records[r];

        if (got < wanted)
            broken(s, "a checkpoint holds every record that its ledger claims", got, wanted);
        if (s->worker_deaths == 0 && got > wanted)
            broken(s, "a checkpoint holds no record that its ledger does not claim", got, wanted);
    }
    free(records);
    free(claimed);
}

static void check_newest(wf_sim *s)
{
    wf_arena *a = wf_arena_new(0);
    wf_ckpt_entry *list = NULL;
    wf_ckpt *c = NULL;
    size_t n = 0;
    wf_err err;

    if (wf_ckpt_list(s->disk, "/ckpt", JOB, a, &list, &n, &err) == WF_OK && n > 0 &&
        !list[0].fault && list[0].step != s->checked_step) {
        s->checked_step = list[0].step;
        s->result.checkpoints++;
        if (wf_ckpt_open(s->disk, "/ckpt", JOB, list[0].step, true, &c, &err) != WF_OK)
            failed(s, "a committed checkpoint verifies", err.status, &err);
        else
            check_records(s, c);
        wf_ckpt_close(&c);
    }
    wf_arena_free(&a);
}

static void check_end(wf_sim *s)
{
    wf_ckpt *c = NULL;
    float *records = calloc(s->spec.records, sizeof *records);
    wf_err err;

    wf_assert(records);
    if (wf_ckpt_newest(s->disk, "/ckpt", JOB, "ledger", UINT64_MAX, NULL, NULL, &c, &err) !=
        WF_OK) {
        failed(s, "a job that is done has a checkpoint", err.status, &err);
    } else if (wf_ckpt_read_range(c, "records", NULL, 0, s->spec.records, records, &err) == WF_OK) {
        for (uint32_t r = 0; r < s->spec.records; r++) {
            if (records[r] < (float)s->spec.epochs)
                broken(s, "every record is trained once an epoch", r, (uint64_t)records[r]);
            if (s->worker_deaths == 0 && records[r] > (float)s->spec.epochs)
                broken(s, "without a worker's death no record is trained twice", r,
                       (uint64_t)records[r]);
        }
        s->result.generation = wf_ckpt_manifest(c)->cut.generation;
    }
    wf_ckpt_close(&c);
    free(records);
}

/* ---- faults ---- */

static process *victim(wf_sim *s)
{
    for (int tries = 0; tries < 20; tries++) {
        process *p = &s->procs[below(s, s->n)];

        if ((p->task.role == WF_ROLE_MASTER && s->spec.kill_master) ||
            (p->task.role == WF_ROLE_PS && s->spec.kill_ps) ||
            (p->task.role == WF_ROLE_WORKER && s->spec.kill_workers))
            return p;
    }
    return NULL;
}

static void kill_all(wf_sim *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        die(&s->procs[i]); /* all go back to a checkpoint together: no record counts twice */
    wf_memdisk_crash(s->memdisk, draw(s));
    s->session++;
    s->recovered_all = true;
    s->checked_step = UINT64_MAX;
    for (uint32_t i = 0; i < s->n; i++)
        plan(s, between(s, 10, 300) * MS, (wf_happening){.kind = BOOT, .who = i});
}

static void sever(wf_sim *s, bool heal, uint64_t pair)
{
    uint32_t a = (uint32_t)(pair / MOST_PROCESSES), b = (uint32_t)(pair % MOST_PROCESSES);

    s->severed[a][b] = !heal;
    s->severed[b][a] = !heal;
}

/* The master may take it for dead; what it trained and had not reported is then trained again. */
static void may_be_given_up(wf_sim *s, const process *p)
{
    s->worker_deaths += p->task.role == WF_ROLE_WORKER;
}

static void do_fault(wf_sim *s, const wf_happening *h)
{
    process *p = h->kind == THAW ? &s->procs[h->who] : victim(s);
    uint64_t pair = below(s, s->n) * MOST_PROCESSES + below(s, s->n);

    switch (h->kind) {
    case KILL:
        if (p && p->alive)
            restart_later(p);
        break;
    case KILL_ALL:
        kill_all(s);
        break;
    case FREEZE:
        if (p && p->alive) {
            may_be_given_up(s, p);
            p->frozen = true;
            plan(s, between(s, 50, 1500) * MS,
                 (wf_happening){.kind = THAW, .who = p->number, .life = p->life});
        }
        break;
    case THAW:
        if (p->life == h->life) {
            p->frozen = false;
            run(p);
        }
        break;
    case CUT:
        may_be_given_up(s, &s->procs[pair / MOST_PROCESSES]);
        may_be_given_up(s, &s->procs[pair % MOST_PROCESSES]);
        sever(s, false, pair);
        plan(s, between(s, 50, 1500) * MS, (wf_happening){.kind = HEAL, .number = pair});
        break;
    case HEAL:
        sever(s, true, h->number);
        break;
    default:
        wf_memdisk_fail(s->memdisk, 1 + below(s, 40), below(s, 2) ? ENOSPC : EIO, false);
    }
}

static void plan_faults(wf_sim *s)
{
    static const struct {
        size_t count;
        int kind;
    } rows[] = {{offsetof(wf_sim_spec, kills), KILL},
                {offsetof(wf_sim_spec, freezes), FREEZE},
                {offsetof(wf_sim_spec, cuts), CUT},
                {offsetof(wf_sim_spec, kill_alls), KILL_ALL},
                {offsetof(wf_sim_spec, disk_errors), DISK_ERROR}};

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        uint32_t n;

        memcpy(&n, (const char *)&s->spec + rows[i].count, sizeof n);
        for (uint32_t k = 0; k < n; k++)
            plan(s, between(s, 100, s->spec.faults_end_ms) * MS,
                 (wf_happening){.kind = rows[i].kind});
    }
}

/* ---- the loop ---- */

static void happen(wf_sim *s, wf_happening *h)
{
    process *p = &s->procs[h->who];
    wf_err err;

    switch (h->kind) {
    case PACKET: {
        wf_packet *packet = h->what;

        p = &s->procs[s->owner[packet->to]];
        if (s->severed[s->owner[packet->from]][p->number])
            wf_mem_drop(s->mem, packet);
        else
            wf_mem_deliver(s->mem, packet);
        free(packet);
        break;
    }
    case BOOT:
        boot(p);
        break;
    case COMPUTED:
    case EVALUATED:
    case SAVED:
        if (p->frozen && p->life == h->life) { /* it ends when the process runs again */
            plan(s, 20 * MS, *h);
            return;
        }
        if (!p->alive || p->life != h->life) {
            wf_ps_fork *f = h->what;

            wf_ps_fork_free(&f);
            return;
        }
        if (h->kind == COMPUTED)
            on_computed(p, h->number);
        else if (h->kind == SAVED)
            on_saved(p, h->what);
        else if (wf_worker_evaluated(p->worker, 0, NULL, NULL, &err) != WF_OK)
            failed(s, "evaluated", err.status, &err);
        break;
    case WAKE:
        if (p->life != h->life)
            return;
        p->next_wake_ns = 0;
        break;
    default:
        do_fault(s, h);
        return;
    }
    run(p);
}

static bool is_done(wf_sim *s)
{
    const wf_master *m = s->procs[0].alive ? s->procs[0].master : NULL;

    return m && strcmp(wf_master_job_state(m, JOB), "done") == 0;
}

static void say_status(const wf_sim *s)
{
    char *text = s->procs[0].alive ? wf_master_status(s->procs[0].master, s->now_ns) : NULL;

    if (wf_log_on(WF_DEBUG) && text)
        puts(text);
    free(text);
}

static void loop(wf_sim *s)
{
    wf_happening h;

    while (s->rc == WF_OK && !is_done(s) && wf_agenda_pop(&s->agenda, &h)) {
        s->now_ns = h.at_ns;
        if (s->now_ns > s->spec.end_ms * MS) {
            say_status(s);
            wf_agenda_add(&s->agenda, h); /* freed with the rest */
            s->rc = wf_fail(&s->err, WF_TIMEOUT, NULL, "not done after %ld virtual ms: job %s",
                            (long)s->spec.end_ms,
                            s->procs[0].alive ? wf_master_job_state(s->procs[0].master, JOB)
                                              : "master down");
            return;
        }
        s->result.events++;
        s->result.trace =
            wf_rng_fold(s->result.trace, (uint64_t)h.at_ns ^ (uint64_t)h.kind << 56 ^ h.who);
        happen(s, &h);
        check_slices(s);
        if (h.kind == PACKET && s->result.events % 16 == 0)
            check_newest(s);
    }
}

static void place(wf_sim *s)
{
    uint32_t n = 1 + s->spec.ps + s->spec.workers;

    wf_assert(n <= MOST_PROCESSES);
    s->n = n;
    for (uint32_t i = 0; i < n; i++) {
        process *p = &s->procs[i];

        p->sim = s;
        p->number = i;
        p->task = i == 0            ? (wf_task){WF_ROLE_MASTER, 0}
                  : i <= s->spec.ps ? (wf_task){WF_ROLE_PS, i - 1}
                                    : (wf_task){WF_ROLE_WORKER, i - 1 - s->spec.ps};
        wf_task_str(p->task, p->address, sizeof p->address);
        plan(s, between(s, 0, 50) * MS, (wf_happening){.kind = BOOT, .who = i});
    }
}

wf_status wf_sim_run(const wf_sim_spec *spec, wf_sim_result *out, wf_err *err)
{
    wf_sim *s = calloc(1, sizeof *s);
    wf_happening h;
    wf_status rc;

    wf_assert(s);
    s->spec = *spec;
    s->checked_step = UINT64_MAX;
    s->memdisk = wf_memdisk_new();
    s->disk = wf_memdisk_disk(s->memdisk);
    wf_assert(wf_mem_new(&s->mem, err) == WF_OK);
    wf_mem_set_carrier(s->mem, carry, s);
    place(s);
    plan_faults(s);
    loop(s);
    s->result.virtual_ms = (uint64_t)(s->now_ns / MS);
    if (s->rc == WF_OK)
        check_end(s);
    while (wf_agenda_pop(&s->agenda, &h)) {
        wf_ps_fork *f = h.kind == SAVED ? h.what : NULL;

        wf_ps_fork_free(&f);
        if (h.kind == PACKET) {
            wf_mem_drop(s->mem, h.what);
            free(h.what);
        }
    }
    for (uint32_t i = 0; i < s->n; i++)
        die(&s->procs[i]);
    wf_agenda_close(&s->agenda);
    wf_mem_free(&s->mem);
    wf_memdisk_free(&s->memdisk);
    *out = s->result;
    rc = s->rc;
    if (rc != WF_OK)
        *err = s->err;
    free(s);
    return rc;
}

wf_sim_spec wf_sim_draw(uint64_t seed)
{
    wf_sim s = {.spec = {.seed = seed}, .draws = 1000000};
    wf_sim_spec spec = {.seed = seed};

    spec.workers = 1 + (uint32_t)below(&s, 4);
    spec.ps = 1 + (uint32_t)below(&s, 3);
    spec.batch = 1 + (uint32_t)below(&s, 8);
    spec.records = spec.batch * (20 + (uint32_t)below(&s, 60)) + (uint32_t)below(&s, spec.batch);
    spec.epochs = 1 + (uint32_t)below(&s, 3);
    spec.every_steps = (uint32_t)below(&s, 4) * 13;
    spec.pipeline = (uint32_t)below(&s, 2);
    spec.evaluates = below(&s, 2);
    spec.delay_us_min = 50;
    spec.delay_us_max = 50 + (int64_t)below(&s, 8000);
    spec.drop_per_mille = below(&s, 2) ? (uint32_t)below(&s, 60) : 0;
    spec.dup_per_mille = below(&s, 2) ? (uint32_t)below(&s, 30) : 0;
    spec.kill_workers = below(&s, 2);
    spec.kill_ps = below(&s, 2);
    spec.kill_master = below(&s, 2);
    spec.kills = (uint32_t)below(&s, 5);
    spec.freezes = (uint32_t)below(&s, 2);
    spec.cuts = (uint32_t)below(&s, 3);
    spec.kill_alls = below(&s, 4) == 0;
    spec.disk_errors = below(&s, 4) == 0 ? 1 + (uint32_t)below(&s, 3) : 0;
    spec.faults_end_ms = 200 + (int64_t)below(&s, 3000);
    spec.end_ms = 60000;
    return spec;
}
