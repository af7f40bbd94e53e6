/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/stage.h - what `weft bench` measures against: real weft-ps with a job of one
 * variable, and for a dense one an echo over bare ZeroMQ beside each. All are processes at private
 * addresses; this process plays their master.
 *
 * The processes end with the thread that opened the stage, however that ends; the folder of the
 * stage is below TMPDIR, or /tmp.
 */
#ifndef WF_CMD_CLI_BENCH_STAGE_H
#define WF_CMD_CLI_BENCH_STAGE_H

#include "cmd/cli/bench/ids.h"
#include "common/conf/conf.h"
#include "common/optim/rule.h"
#include "common/wire/coding.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include "common/wire/wires.h"
#include "worker/exchange.h"
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum {
    WF_BENCH_TASKS = 64 /* ps, and workers, at most */,
    WF_BENCH_AT_ONCE = WF_STEP_SETS,
    WF_BENCH_BATCHES = 12
};

/* The kinds of transport, by name; a row with a NULL name ends them. */
typedef struct wf_bench_wire {
    const char *name;
    bool tcp;    /* or else the path of a socket */
    bool shares; /* memory, where processes can; the echo goes over ZeroMQ all the same */
} wf_bench_wire;
extern const wf_bench_wire wf_bench_wires[];
const wf_bench_wire *wf_bench_wire_find(const char *name); /* NULL: there is none */

/* What a stage is for. */
typedef struct wf_bench_case {
    const wf_bench_wire *wire;
    const char *rule;     /* of the optimizer, with its default options */
    const char *size;     /* as it was asked for; of a table: NULL */
    size_t bytes;         /* of the variable: whole float32, at least one */
    wf_coding push, pull; /* how gradients and weights travel; top-k keeps one of a hundred */
    /* Of a table, [rows, dim]: how each batch draws `drawn` ids. NULL: the variable is dense. */
    const wf_bench_draw *draw;
    uint64_t rows;
    uint32_t dim;
    wf_dtype dtype; /* of its values */
    size_t drawn;
    uint32_t at_once; /* batches that a worker has under way; of a dense variable 1 */
    bool is_apart;    /* the flat loops come before the ps, for both do not fit into the memory */
    uint32_t n_ps, n_workers;
    uint64_t steps; /* of each kind of work and worker; 0: as many as fit into budget_ns,
                         with what has to be prepared, and a few at least */
    int64_t budget_ns;
} wf_bench_case;

typedef struct wf_bench_stage {
    wf_bench_case of;
    char folder[PATH_MAX / 2];
    /* Of all processes: 2 n_ps "ps", of which the second half are the addresses of the echoes. */
    wf_cluster_conf *conf;
    pid_t ps[WF_BENCH_TASKS], echo[WF_BENCH_TASKS];
    wf_opt opt;
    wf_arena *arena;                      /* of `start` */
    Weft__Start *start;                   /* the job, as a worker is told it */
    uint64_t incarnation[WF_BENCH_TASKS]; /* of the workers */
    /* the master */
    wf_wires *wires;
    wf_net *net;
    wf_peer *peer[WF_BENCH_TASKS]; /* the ps; NULL until one has dialled */
    uint32_t n_up, n_ready;
} wf_bench_stage;

enum { WF_BENCH_JOB = 1, WF_BENCH_GENERATION = 1, WF_BENCH_VIEW = 1 };

/* Starts the processes and gives the ps their job; returns when they serve it. `stopped` is asked
 * while it waits. The caller owns *out, also on failure. Errors: WF_STOPPED; WF_TIMEOUT; WF_IO and
 * what a ps says. */
WF_MUST_USE wf_status wf_bench_stage_open(const wf_bench_case *of, bool (*stopped)(void),
                                          wf_bench_stage **out, wf_err *err);
/* The master's turn; waits up to 50 ms for something to do. Errors: those of a ps that has ended or
 * reports a fault. */
WF_MUST_USE wf_status wf_bench_stage_turn(wf_bench_stage *s, wf_err *err);
/* Ends the processes and removes the folder; NULL is fine. */
void wf_bench_stage_close(wf_bench_stage **s);

#endif
