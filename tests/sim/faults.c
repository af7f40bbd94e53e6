/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/faults.c - what goes wrong: processes are killed, stand still, hang, or are in one call
 * for long; links are cut, broken or clogged; the disk fails or is full, clocks jump, the power
 * goes, and somebody stops the job. All of it before faults_end_ms; after that the job must end. */
#include "common/base/size.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <signal.h>
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

/* The power goes, or the supervisor is killed and its processes with it: all go back to a
 * checkpoint together, so no record counts twice. */
static void kill_all(wf_sim *s)
{
    bool power = !s->spec.supervised || wf_sim_below(s, 2);

    for (uint32_t i = 0; i < s->n; i++)
        wf_sim_die(&s->procs[i], 0);
    s->session++;
    s->down_ns = 0;
    if (power) {
        wf_memdisk_crash(s->memdisk, wf_sim_id(s));
        s->recovered_all = true;
    }
    s->oracle.look_at_disk = true;
    wf_sim_check_disk(s);
    for (uint32_t i = s->spec.supervised ? s->n - 1 : 0; i < s->n; i++)
        wf_sim_plan(s, wf_sim_between(s, 10, 300) * MS, (wf_happening){.kind = BOOT, .who = i});
}

/* In half of the cases while a process waits for its restart. */
static void down(wf_sim *s)
{
    process *p = victim(s);

    if (p && p->alive && wf_sim_below(s, 2)) {
        wf_sim_ends(p, (wf_exit){.signal = SIGKILL});
        wf_sim_plan(s, wf_sim_between(s, 1, 60) * MS, (wf_happening){.kind = DOWN, .number = 1});
    } else {
        wf_sim_down(s);
    }
}

static void freeze(wf_sim *s, process *p)
{
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

static void break_some(wf_sim *s, uint64_t a, uint64_t b)
{
    bool half = wf_sim_below(s, 2);

    wf_socket_break(s, (uint32_t)a, (uint32_t)b, half, (int)wf_sim_below(s, N_WAYS));
}

static void cut(wf_sim *s)
{
    uint64_t a = wf_sim_below(s, s->n), b = wf_sim_below(s, s->n), pair = a * MOST_PROCESSES + b;

    sever(s, false, pair);
    break_some(s, a, b);
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
        for (uint32_t k = 0; k < s->n; k++) {
            s->clogged_ns[i][k] = WF_MAX(s->clogged_ns[i][k], free_ns);
            s->clogged_ns[k][i] = WF_MAX(s->clogged_ns[k][i], free_ns);
        }
    }
}

static void hang(wf_sim *s, process *p)
{
    if (!p->beat || p->hung || p->frozen)
        return;
    s->result.hangs++;
    p->hung = true;
}

/* The master's is a call that blocks, a worker's a long step. A ps has none that is as long. */
static void call(wf_sim *s, process *p)
{
    int64_t most_ms = p->worker ? 3 * STUCK_MS / 2 : p->ps ? STUCK_MS / 4 : 5 * DEAD_MS;
    int64_t takes_ns = wf_sim_between(s, 50, most_ms) * MS;

    p->busy_until_ns = WF_MAX(p->busy_until_ns, s->now_ns + takes_ns);
    p->next_wake_ns = p->busy_until_ns; /* it does not run before */
    wf_sim_plan(s, p->busy_until_ns - s->now_ns,
                (wf_happening){.kind = WAKE, .who = p->number, .life = p->life});
}

static void fill_disk(wf_sim *s)
{
    wf_memdisk_fill(s->memdisk, true);
    wf_sim_plan(s, wf_sim_between(s, 50, 2000) * MS, (wf_happening){.kind = DISK_FREE});
}

void wf_sim_disturbed(wf_sim *s)
{
    s->quiet_ns = WF_MAX(s->quiet_ns, s->now_ns + 2 * STUCK_MS * MS);
}

static void process_fault(wf_sim *s, int kind, process *p)
{
    switch (kind) {
    case KILL:
        wf_sim_ends(p, (wf_exit){.signal = SIGKILL});
        break;
    case FREEZE:
        freeze(s, p);
        break;
    case HANG:
        hang(s, p);
        break;
    case BUSY:
        call(s, p);
        break;
    default: /* JUMP: as after a suspension */
        p->ahead_ns += wf_sim_between(s, 1, 10000) * MS;
    }
}

void wf_sim_fault(wf_sim *s, const wf_happening *h)
{
    process *p = h->kind == THAW || h->kind == TELL ? &s->procs[h->who] : victim(s);

    if (h->kind == KILL && s->spec.is_calm)
        p = &s->procs[0];

    if (h->kind != HANG && h->kind != STOP && h->kind != MOVE)
        wf_sim_disturbed(s);
    switch (h->kind) {
    case KILL:
    case FREEZE:
    case HANG:
    case BUSY:
    case JUMP:
        if (p && p->alive)
            process_fault(s, h->kind, p);
        break;
    case KILL_ALL:
        kill_all(s);
        break;
    case TELL:
        wf_sim_tell(&s->procs[s->n - 1], p, h->number);
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
    case BREAK:
        break_some(s, wf_sim_below(s, s->n), wf_sim_below(s, s->n));
        break;
    case DISK_FULL:
        fill_disk(s);
        break;
    case DISK_FREE:
        wf_memdisk_fill(s->memdisk, false);
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
    case MOVE:
        wf_sim_move(s);
        break;
    case DOWN:
        if (h->number)
            wf_sim_down(s);
        else
            down(s);
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
                {offsetof(wf_sim_spec, breaks), BREAK},
                {offsetof(wf_sim_spec, hangs), HANG},
                {offsetof(wf_sim_spec, calls), BUSY},
                {offsetof(wf_sim_spec, jumps), JUMP},
                {offsetof(wf_sim_spec, fulls), DISK_FULL},
                {offsetof(wf_sim_spec, stops), STOP},
                {offsetof(wf_sim_spec, moves), MOVE},
                {offsetof(wf_sim_spec, downs), DOWN}};

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        uint32_t n;

        memcpy(&n, (const char *)&s->spec + rows[i].count, sizeof n);
        for (uint32_t k = 0; k < n; k++)
            wf_sim_plan(s, wf_sim_between(s, 100, s->spec.faults_end_ms) * MS,
                        (wf_happening){.kind = rows[i].kind});
    }
}
