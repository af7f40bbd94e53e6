/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/faults.c - what goes wrong: processes are killed or stand still, links are cut or
 * clogged, the disk fails, the power goes, and somebody stops the job. All of it before
 * faults_end_ms; after that the job must end. */
#include "common/base/size.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static process *victim(wf_sim *s)
{
    for (int tries = 0; tries < 20; tries++) {
        process *p = &s->procs[wf_sim_below(s, s->n)];

        if ((p->task.role == WF_ROLE_MASTER && s->spec.kill_master) ||
            (p->task.role == WF_ROLE_PS && s->spec.kill_ps) ||
            (p->task.role == WF_ROLE_WORKER && s->spec.kill_workers))
            return p;
    }
    return NULL;
}

static void kill_one(wf_sim *s, process *p)
{
    uint64_t life = p->life;

    wf_sim_restart_later(p);
    if (s->spec.tells)
        wf_sim_plan(s, wf_sim_between(s, 1, 20) * MS,
                    (wf_happening){.kind = TELL, .who = p->number, .number = life});
}

/* The power goes: all go back to a checkpoint together, so no record counts twice. */
static void kill_all(wf_sim *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        wf_sim_die(&s->procs[i]);
    wf_memdisk_crash(s->memdisk, wf_sim_id(s));
    s->session++;
    s->recovered_all = true;
    s->oracle.look_at_disk = true;
    wf_sim_check_disk(s);
    for (uint32_t i = 0; i < s->n; i++)
        wf_sim_plan(s, wf_sim_between(s, 10, 300) * MS, (wf_happening){.kind = BOOT, .who = i});
}

static void freeze(wf_sim *s, process *p)
{
    wf_oracle_may_be_given_up(s, p);
    p->frozen = true;
    wf_sim_plan(s, wf_sim_between(s, 50, 1500) * MS,
                (wf_happening){.kind = THAW, .who = p->number, .life = p->life});
}

static void sever(wf_sim *s, bool heal, uint64_t pair)
{
    uint32_t a = (uint32_t)(pair / MOST_PROCESSES), b = (uint32_t)(pair % MOST_PROCESSES);

    s->severed[a][b] = !heal;
    s->severed[b][a] = !heal;
}

static void cut(wf_sim *s)
{
    uint64_t a = wf_sim_below(s, s->n), b = wf_sim_below(s, s->n), pair = a * MOST_PROCESSES + b;

    wf_oracle_may_be_given_up(s, &s->procs[a]);
    wf_oracle_may_be_given_up(s, &s->procs[b]);
    sever(s, false, pair);
    wf_sim_plan(s, wf_sim_between(s, 50, 1500) * MS, (wf_happening){.kind = HEAL, .number = pair});
}

/* Swizzled clogging (FoundationDB): some processes' links are clogged one after the other, and
 * freed in another order. */
static void swizzle(wf_sim *s)
{
    int64_t begin_ms = 0, end_ms = wf_sim_between(s, 100, 1500);

    for (uint32_t i = 0; i < s->n; i++) {
        int64_t free_ns;

        if (wf_sim_below(s, 2))
            continue;
        begin_ms += wf_sim_between(s, 0, 60);
        free_ns = s->now_ns + WF_MAX(begin_ms, wf_sim_between(s, 0, end_ms)) * MS;
        wf_oracle_may_be_given_up(s, &s->procs[i]);
        for (uint32_t k = 0; k < s->n; k++) {
            s->clogged_ns[i][k] = WF_MAX(s->clogged_ns[i][k], free_ns);
            s->clogged_ns[k][i] = WF_MAX(s->clogged_ns[k][i], free_ns);
        }
    }
}

void wf_sim_fault(wf_sim *s, const wf_happening *h)
{
    process *p = h->kind == THAW || h->kind == TELL ? &s->procs[h->who] : victim(s);

    switch (h->kind) {
    case KILL:
        if (p && p->alive)
            kill_one(s, p);
        break;
    case KILL_ALL:
        kill_all(s);
        break;
    case TELL:
        wf_sim_tell(&s->procs[s->n - 1], p, h->number);
        break;
    case FREEZE:
        if (p && p->alive)
            freeze(s, p);
        break;
    case THAW:
        if (p->life == h->life) {
            p->frozen = false;
            wf_sim_run_process(p);
        }
        break;
    case CUT:
        cut(s);
        break;
    case SWIZZLE:
        swizzle(s);
        break;
    case HEAL:
        sever(s, true, h->number);
        break;
    case STOP:
        s->stop_wanted = true;
        break;
    default:
        wf_memdisk_fail(s->memdisk, 1 + wf_sim_below(s, 40), wf_sim_below(s, 2) ? ENOSPC : EIO,
                        false);
    }
}

void wf_sim_plan_faults(wf_sim *s)
{
    static const struct {
        size_t count;
        wf_sim_kind kind;
    } rows[] = {{offsetof(wf_sim_spec, kills), KILL},
                {offsetof(wf_sim_spec, freezes), FREEZE},
                {offsetof(wf_sim_spec, cuts), CUT},
                {offsetof(wf_sim_spec, swizzles), SWIZZLE},
                {offsetof(wf_sim_spec, kill_alls), KILL_ALL},
                {offsetof(wf_sim_spec, disk_errors), DISK_ERROR},
                {offsetof(wf_sim_spec, stops), STOP}};

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        uint32_t n;

        memcpy(&n, (const char *)&s->spec + rows[i].count, sizeof n);
        for (uint32_t k = 0; k < n; k++)
            wf_sim_plan(s, wf_sim_between(s, 100, s->spec.faults_end_ms) * MS,
                        (wf_happening){.kind = rows[i].kind});
    }
}
