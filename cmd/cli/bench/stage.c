/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/stage.c */
#include "cmd/cli/bench/stage.h"
#include "cmd/cli/bench/bare.h"
#include "cmd/cli/bench/job.h"
#include "cmd/cli/place.h"
#include "cmd/cli/spawn.h"
#include "cmd/cli/tail.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "common/wire/control.h"
#include "common/wire/wait.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 50, LONGEST_S = 30 };

const wf_bench_wire wf_bench_wires[] = {
    {"shm", false, true}, {"ipc", false, false}, {"tcp", true, false}, {0}};

const wf_bench_wire *wf_bench_wire_find(const char *name)
{
    for (const wf_bench_wire *w = wf_bench_wires; w->name; w++)
        if (strcmp(w->name, name) == 0)
            return w;
    return NULL;
}

/* ---- folder and processes ---- */

static wf_status make_folder(wf_bench_stage *s, wf_err *err)
{
    const char *below = getenv("TMPDIR");
    char run[PATH_MAX];

    snprintf(s->folder, sizeof s->folder, "%s/weft-bench-XXXXXX", below && *below ? below : "/tmp");
    if (!mkdtemp(s->folder)) {
        int why = errno;

        wf_status rc = wf_fail_errno(err, why, "set TMPDIR to a folder that can be written",
                                     "cannot make %s", s->folder);
        s->folder[0] = 0;
        return rc;
    }
    WF_TRY(wf_cluster_local(s->folder, 2 * s->of.n_ps, s->of.n_workers, s->of.wire->tcp, &s->conf,
                            err));
    s->conf->n_ps = s->of.n_ps; /* the addresses behind them are of processes with bare ZeroMQ */
    s->conf->shared_memory_off = !s->of.wire->shares;
    snprintf(run, sizeof run, "%s/run", s->folder);
    WF_TRY(wf_make_dirs(run, err));
    return wf_cluster_write(s->conf, s->conf->path, err);
}

static void log_path(const wf_bench_stage *s, uint32_t index, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/ps-%u.log", s->folder, index);
}

static wf_status start_ps(wf_bench_stage *s, uint32_t index, wf_err *err)
{
    char program[PATH_MAX], log[PATH_MAX], number[16];
    const char *const argv[] = {program, "--cluster", s->conf->path, "--task", number, NULL};

    WF_TRY(wf_place_program("weft-ps", program, sizeof program, err));
    snprintf(number, sizeof number, "%u", index);
    log_path(s, index, log);
    return wf_spawn(argv, log, &s->ps[index], err);
}

static wf_status start_all(wf_bench_stage *s, wf_err *err)
{
    for (uint32_t i = 0; !s->of.draw && i < s->of.n_ps; i++) /* before this process has threads */
        WF_TRY(
            wf_bare_start(s->conf->ps[s->of.n_ps + i].address, WF_SLICE_BYTES, &s->echo[i], err));
    for (uint32_t i = 0; i < s->of.n_ps; i++)
        WF_TRY(start_ps(s, i, err));
    return WF_OK;
}

static void end_process(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void wf_bench_stage_close(wf_bench_stage **stage)
{
    wf_bench_stage *s = *stage;

    *stage = NULL;
    if (!s)
        return;
    for (uint32_t i = 0; i < s->of.n_ps; i++) {
        end_process(s->ps[i]);
        end_process(s->echo[i]);
    }
    wf_net_free(&s->net, 0);
    wf_wires_free(&s->wires);
    wf_cluster_free(&s->conf);
    wf_arena_free(&s->arena);
    if (s->folder[0])
        (void)!wf_remove_tree(s->folder, NULL);
    free(s);
}

/* ---- the master ---- */

static wf_status listen_as_master(wf_bench_stage *s, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();
    wf_transport *t = NULL;

    conf.self = (wf_task){WF_ROLE_MASTER, 0};
    conf.incarnation = wf_random_id();
    conf.pid = (uint64_t)getpid();
    conf.cluster = s->conf->name;
    WF_TRY(wf_wires_new(2 * s->of.n_ps, &s->wires, err));
    wf_wires_share(s->wires, s->of.wire->shares);
    WF_TRY(wf_net_new(&conf, &s->net, err));
    WF_TRY(wf_wires_listen(s->wires, s->conf->master.address, &t, err));
    wf_net_listen(s->net, &t);
    return WF_OK;
}

static wf_status send_setup(wf_bench_stage *s, wf_peer *to, wf_err *err)
{
    Weft__Setup body = WEFT__SETUP__INIT;
    wf_msg *m = NULL;
    wf_status rc;

    body.job = s->start->job;
    body.checkpoint_dir = s->start->checkpoint_dir;
    body.digest = s->start->digest;
    body.rule = s->start->rule;
    body.initial = true;
    body.variables = s->start->variables;
    body.n_variables = s->start->n_variables;
    body.slices = s->start->slices;
    body.n_slices = s->start->n_slices;
    body.view = s->start->view;
    WF_TRY(wf_net_msg(s->net, WF_SETUP, &m, err));
    rc = wf_control_put(m, &body.base, err);
    m->head.job = WF_BENCH_JOB;
    m->head.view = WF_BENCH_VIEW;
    m->head.generation = WF_BENCH_GENERATION;
    m->head.map = WF_BENCH_GENERATION;
    if (rc == WF_OK)
        rc = wf_net_send(s->net, to, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(s->net, &m);
    return rc;
}

/* The view names all ps, so the job is given once the last of them is there. */
static wf_status on_up(wf_bench_stage *s, wf_peer *peer, wf_err *err)
{
    uint32_t i = peer->task.index;

    if (peer->task.role != WF_ROLE_PS || i >= s->of.n_ps || s->peer[i])
        return WF_OK;
    s->peer[i] = peer;
    s->n_up++;
    WF_TRY(wf_bench_job_add(s, peer->task, peer->incarnation, err));
    for (i = 0; s->n_up == s->of.n_ps && i < s->of.n_ps; i++)
        WF_TRY(send_setup(s, s->peer[i], err));
    return WF_OK;
}

static wf_status on_outcome(wf_bench_stage *s, const wf_peer *from, const wf_msg *m, wf_err *err)
{
    Weft__Outcome *said = NULL;
    wf_status rc = WF_OK;

    WF_TRY(wf_control_get(m, &weft__outcome__descriptor, &said, err));
    if (said->what[0])
        rc = wf_fail(err, said->status ? (wf_status)said->status : WF_IO, said->hint, "ps %u: %s",
                     from->task.index, said->what);
    s->n_ready += m->head.kind == WF_SETUP_OK;
    wf_control_free(&said);
    return rc;
}

static wf_status on_event(wf_bench_stage *s, wf_event *ev, wf_err *err)
{
    wf_status rc = WF_OK;

    if (ev->kind == WF_EV_UP)
        rc = on_up(s, ev->peer, err);
    else if (ev->kind == WF_EV_MESSAGE && ev->msg->head.kind == WF_SETUP_OK)
        rc = on_outcome(s, ev->peer, ev->msg, err);
    else if (ev->kind == WF_EV_MESSAGE && ev->msg->head.kind == WF_FAULT)
        rc = wf_fail(err, WF_IO, "run weft bench again; if it comes back, this is a fault of weft",
                     "ps %u reports a fault", ev->peer->task.index);
    wf_net_free_msg(s->net, &ev->msg);
    return rc;
}

/* What it wrote last says why. */
static wf_status ps_has_ended(const wf_bench_stage *s, uint32_t index, wf_err *err)
{
    enum { MOST = 512 };
    char path[PATH_MAX];
    const char *line;
    wf_bytes text = {0};
    wf_status rc;

    log_path(s, index, path);
    (void)!wf_tail_read(path, MOST, &text, NULL, NULL);
    while (text.size > 0 && text.data[text.size - 1] == '\n')
        text.data[--text.size] = 0;
    line = text.size ? strrchr(wf_bytes_str(&text), '\n') : NULL;
    rc = wf_fail(err, WF_IO, "run weft bench again; weft doctor looks at the machine",
                 "ps %u has ended: %s", index, line ? line + 1 : wf_bytes_str(&text));
    wf_bytes_close(&text);
    return rc;
}

wf_status wf_bench_stage_turn(wf_bench_stage *s, wf_err *err)
{
    int64_t now_ns = wf_now_ns();
    wf_transport *const *t;
    wf_event ev;
    size_t n;

    wf_net_poll(s->net, now_ns);
    while (wf_net_event(s->net, now_ns, &ev))
        WF_TRY(on_event(s, &ev, err));
    wf_net_flush(s->net, now_ns);
    for (uint32_t i = 0; i < s->of.n_ps; i++)
        if (waitpid(s->ps[i], NULL, WNOHANG) == s->ps[i]) {
            s->ps[i] = 0;
            return ps_has_ended(s, i, err);
        }
    t = wf_net_transports(s->net, &n);
    wf_wait(t, n, -1, LOOK_MS, NULL);
    return WF_OK;
}

static wf_status await_ready(wf_bench_stage *s, bool (*stopped)(void), wf_err *err)
{
    int64_t end_ns = wf_now_ns() + LONGEST_S * WF_NS_PER_S;

    while (s->n_ready < s->of.n_ps) {
        WF_TRY(wf_bench_stage_turn(s, err));
        if (stopped())
            return wf_fail(err, WF_STOPPED, NULL, "the measurement was stopped");
        if (wf_now_ns() > end_ns)
            return wf_fail(err, WF_TIMEOUT, "look whether the machine is overloaded",
                           "of %u ps %u serve after %d s", s->of.n_ps, s->n_ready, LONGEST_S);
    }
    return WF_OK;
}

static wf_status open_stage(wf_bench_stage *s, wf_err *err)
{
    for (uint32_t i = 0; i < s->of.n_workers; i++)
        s->incarnation[i] = wf_random_id();
    s->arena = wf_arena_new(0);
    if (!s->arena)
        return wf_fail_nomem(err, sizeof *s);
    WF_TRY(wf_opt_init(&s->opt, s->of.rule, 0, NULL, NULL, err));
    WF_TRY(make_folder(s, err));
    WF_TRY(wf_bench_job_make(s, err));
    WF_TRY(wf_bench_job_write(s, err));
    WF_TRY(start_all(s, err));
    return listen_as_master(s, err);
}

wf_status wf_bench_stage_open(const wf_bench_case *of, bool (*stopped)(void), wf_bench_stage **out,
                              wf_err *err)
{
    wf_bench_stage *s = calloc(1, sizeof *s);

    *out = s;
    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->of = *of;
    WF_TRY(open_stage(s, err));
    return await_ready(s, stopped, err);
}
