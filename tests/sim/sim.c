/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/sim.c - processes that live and die on one agenda.
 *
 * A process is a net with a role on it. It runs when a packet reaches it, when something that it
 * began is over (a step's arithmetic, a shard on disk), and when its next deadline comes. A frozen
 * one runs again later, with all that has reached it.
 */
#include "tests/sim/sim.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw(wf_sim *s)
{
    return wf_rng_u64((wf_rng_key){s->spec.seed, 77}, s->draws++);
}

uint64_t wf_sim_below(wf_sim *s, uint64_t n)
{
    return n ? (uint64_t)((unsigned __int128)draw(s) * n >> 64) : 0;
}

int64_t wf_sim_between(wf_sim *s, int64_t least, int64_t most)
{
    return least + (int64_t)wf_sim_below(s, (uint64_t)(most - least + 1));
}

uint64_t wf_sim_id(void *sim)
{
    return draw(sim) | 1;
}

void wf_sim_plan(wf_sim *s, int64_t after_ns, wf_happening h)
{
    h.at_ns = s->now_ns + after_ns;
    wf_agenda_add(&s->agenda, h);
}

void wf_sim_broken(wf_sim *s, const char *claim, uint64_t a, uint64_t b)
{
    if (s->rc == WF_OK)
        s->rc = wf_fail(&s->err, WF_INVALID, NULL, "at %ld ms: %s (%lu, %lu)",
                        (long)(s->now_ns / MS), claim, (unsigned long)a, (unsigned long)b);
}

void wf_sim_failed(wf_sim *s, const char *where, wf_status rc, const wf_err *err)
{
    if (s->rc == WF_OK)
        s->rc = wf_fail(&s->err, rc, NULL, "at %ld ms: %s: %s", (long)(s->now_ns / MS), where,
                        err->what);
}

static wf_status submit(process *p, wf_err *err)
{
    wf_sim *s = p->sim;
    const char *state = wf_master_job_state(p->master, s->job);

    if (!state[0]) {
        if (s->submitted && !s->recovered_all)
            wf_sim_broken(s, "a submitted job stays known", 0, 0);
        WF_TRY(wf_master_submit(p->master, s->job, "ledger", "", false, err));
    } else if (strcmp(state, "interrupted") == 0) {
        s->oracle.from_step = -1;
        WF_TRY(wf_master_recover(p->master, s->job, -1, err));
    } else if (wf_master_durable(p->master)) {
        s->submitted = true;
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
    wf_oracle_hear(p, ev);
    if (p->master)
        return wf_master_on_event(p->master, ev, wf_sim_clock(p), err);
    if (p->ps)
        return wf_ps_on_event(p->ps, ev, wf_sim_clock(p), err);
    if (p->worker)
        return wf_worker_on_event(p->worker, ev, wf_sim_clock(p), err);
    if (p->supervisor) {
        wf_supervisor_on_event(p->supervisor, ev);
        return WF_OK;
    }
    if (ev->kind == WF_EV_MESSAGE)
        wf_net_free_msg(p->net, &ev->msg);
    return WF_OK;
}

static wf_status advance(process *p, wf_err *err)
{
    if (p->master) {
        WF_TRY(submit(p, err));
        return wf_master_advance(p->master, wf_sim_clock(p), err);
    }
    if (p->task.role == WF_ROLE_CLIENT && !p->sim->down_ns)
        wf_sim_client_advance(p);
    if (p->supervisor)
        wf_sim_supervisor_advance(p);
    if (p->ps)
        WF_TRY(wf_ps_advance(p->ps, wf_sim_clock(p), err));
    return p->worker ? wf_worker_advance(p->worker, wf_sim_clock(p), err) : WF_OK;
}

/* A role that ends by itself (given up by the master, its journal or a device failed) is started
 * again. */
void wf_sim_run_process(process *p)
{
    wf_sim *s = p->sim;
    int64_t now_ns = wf_sim_clock(p);
    wf_event ev;
    wf_err err;
    wf_status rc = WF_OK;

    if (!p->alive || wf_sim_stands_still(p))
        return;
    p->turns++;
    wf_net_poll(p->net, now_ns);
    while (rc == WF_OK && wf_net_event(p->net, now_ns, &ev))
        rc = take_event(p, &ev, &err);
    if (rc == WF_OK)
        rc = advance(p, &err);
    if (!p->alive) /* a supervisor that is over */
        return;
    if (rc == WF_OK) {
        wf_sim_check_copy(p);
        wf_net_poll(p->net, now_ns);
        wf_sim_wake_at(p,
                       s->now_ns + WF_MIN(wf_net_deadline(p->net, now_ns) - now_ns, TICK_MS * MS));
    } else if (rc == WF_SUPERSEDED || rc == WF_TIMEOUT || (rc == WF_BROKEN && p->worker) ||
               (rc == WF_IO && p->master)) {
        wf_sim_ends(p, (wf_exit){.code = wf_exit_code(rc)});
    } else {
        wf_sim_failed(s, wf_role_name(p->task.role), rc, &err);
    }
}

static void happen(wf_sim *s, wf_happening *h)
{
    process *p = &s->procs[h->who];

    switch ((wf_sim_kind)h->kind) {
    case PACKET:
        p = &s->procs[wf_sim_arrive(s, h->what)];
        break;
    case CONNECT:
        wf_socket_connect(s, (uint32_t)h->number);
        return;
    case LOST:
        wf_socket_lost(s, (uint32_t)h->number);
        return;
    case BEAT:
        if (p->alive && p->life == h->life)
            wf_sim_beat(p);
        return;
    case BOOT:
        wf_sim_boot(p, h->life);
        break;
    case ENDED:
        wf_sim_reap(s, h);
        return;
    case TERM:
        if (p->alive && p->life == h->life)
            wf_sim_term(p);
        return;
    case COMPUTED:
    case EVALUATED:
    case SAVED:
    case WORKED:
        wf_sim_over(p, h);
        wf_oracle_check(p);
        return;
    case WAKE:
        if (p->life != h->life || p->next_wake_ns != h->at_ns) /* another was planned since */
            return;
        p->next_wake_ns = 0;
        break;
    default:
        wf_sim_fault(s, h);
        return;
    }
    wf_sim_run_process(p);
    wf_oracle_check(p);
}

/* What the oracle knows of a job goes with it; of tasks and views it knows on. */
static void begin_job(wf_sim *s)
{
    oracle *o = &s->oracle;

    snprintf(s->job, sizeof s->job, "ledger-%u", s->n_done);
    s->submitted = s->recovered_all = s->stop_wanted = s->recovered = false;
    s->stop_again = s->spec.stops_again;
    o->committed_generation = o->most_complete = o->n_committed = 0;
    o->committed_step = 0;
    o->checked_step = UINT64_MAX;
    o->from_step = -1;
    o->went_back = false;
    o->era = wf_era((uint16_t)((o->era >> 16) + 1), 0); /* what is under way is of the one before */
}

/* Whether the last job is done; the one after another is submitted at the master's next turn, while
 * all that is under way of the one before still is. */
static bool is_done(wf_sim *s)
{
    const wf_master *m = s->procs[0].alive ? s->procs[0].master : NULL;

    if (!m || !wf_master_durable(m) || strcmp(wf_master_job_state(m, s->job), "done") != 0)
        return false;
    wf_sim_check_end(s);
    if (++s->n_done < s->spec.jobs)
        begin_job(s);
    return s->n_done >= s->spec.jobs;
}

static void say_status(const wf_sim *s)
{
    char *text =
        s->procs[0].alive ? wf_master_status(s->procs[0].master, wf_sim_clock(&s->procs[0])) : NULL;

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
                            s->procs[0].alive ? wf_master_job_state(s->procs[0].master, s->job)
                                              : "master down");
            return;
        }
        s->result.events++;
        s->result.trace =
            wf_rng_fold(s->result.trace, (uint64_t)h.at_ns ^ (uint64_t)h.kind << 56 ^ h.who);
        happen(s, &h);
        if (s->oracle.look_at_disk || (s->result.events % 1024 == 0 &&
                                       s->oracle.disk_changes != wf_memdisk_changes(s->memdisk)))
            wf_sim_check_disk(s);
    }
}

static void place(wf_sim *s)
{
    uint32_t n = 1 + s->spec.ps + s->spec.workers + 1;

    wf_assert(n <= MOST_PROCESSES);
    s->n = n;
    for (uint32_t i = 0; i < n; i++) {
        process *p = &s->procs[i];

        p->sim = s;
        p->number = i;
        if (i == 0)
            p->task = (wf_task){WF_ROLE_MASTER, 0};
        else if (i == n - 1)
            p->task = (wf_task){WF_ROLE_CLIENT, 0};
        else if (i <= s->spec.ps)
            p->task = (wf_task){WF_ROLE_PS, i - 1};
        else
            p->task = (wf_task){WF_ROLE_WORKER, i - 1 - s->spec.ps};
        if (s->spec.apart && p->task.role == WF_ROLE_WORKER)
            snprintf(p->address, sizeof p->address, "tcp://host-%u:1", p->task.index);
        else
            wf_task_str(p->task, p->address, sizeof p->address);
        if (!s->spec.supervised || p->task.role == WF_ROLE_CLIENT)
            wf_sim_plan(s, wf_sim_between(s, 0, 50) * MS, (wf_happening){.kind = BOOT, .who = i});
    }
}

wf_status wf_sim_run(const wf_sim_spec *spec, wf_sim_result *out, wf_err *err)
{
    wf_sim *s = calloc(1, sizeof *s);
    wf_happening h;
    wf_status rc;

    wf_assert(s);
    s->spec = *spec;
    wf_sim_make_files(s);
    begin_job(s);
    s->memdisk = wf_memdisk_new();
    s->disk = wf_memdisk_disk(s->memdisk);
    place(s);
    wf_sim_plan_faults(s);
    loop(s);
    if (s->rc == WF_OK)
        wf_oracle_end(s);
    s->result.virtual_ms = (uint64_t)(s->now_ns / MS);
    while (wf_agenda_pop(&s->agenda, &h)) {
        wf_ps_fork *f = h.kind == SAVED ? h.what : NULL;
        wf_work *w = h.kind == WORKED ? h.what : NULL;

        wf_ps_fork_free(&f);
        wf_work_free(&w);
        if (h.kind == PACKET) {
            wf_msg_free(&s->pool, &((wf_packet *)h.what)->msg);
            free(h.what);
        }
    }
    for (uint32_t i = 0; i < s->n; i++)
        wf_sim_die(&s->procs[i], 0);
    wf_agenda_close(&s->agenda);
    wf_socket_end(s);
    wf_memdisk_free(&s->memdisk);
    wf_sim_free_copies(s);
    *out = s->result;
    rc = s->rc;
    if (rc != WF_OK)
        *err = s->err;
    free(s);
    return rc;
}
