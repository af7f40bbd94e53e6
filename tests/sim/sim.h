/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/sim.h - a whole cluster in one process: the roles' own logic under a virtual clock, a
 * bad network and a disk that crashes, all by one seed. One seed, one history.
 *
 * The job is the ledger model (docs/simulator.md): sgd with rate 1 and gradients of -1 or 0, so
 * that weights count what was applied.
 *   steps    every element grows by 1 with each part applied to its slice
 *   records  element r grows by 1 each time record r is trained
 *   frozen   stays what it was, and is whole when a worker computes
 * An evaluation's loss is a number drawn for the epoch (tests/kit), so that it is known beforehand
 * after which epoch early stopping ends the job, and whose weights are its best.
 * After every event the simulator checks what must always hold; at the end the ledger.
 */
#ifndef WF_TESTS_SIM_SIM_H
#define WF_TESTS_SIM_SIM_H

#include "common/base/status.h"
#include "common/wire/coding.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_sim wf_sim;

typedef struct wf_sim_spec {
    uint64_t seed;
    uint32_t workers, ps; /* without ps each worker has all variables */
    uint32_t jobs;        /* one after the other */
    uint32_t records, batch, epochs, every_steps, pipeline;
    uint32_t at_once;       /* steps that a worker computes at a time; 0: as 1 */
    uint32_t every_seconds; /* checkpoints by time; 0: none */
    uint32_t files;         /* that the records appear in, at random times; 0: they are there */
    uint32_t shards;        /* files that splits keep to; 0: they are of any records */
    uint32_t bounded;       /* 1 + the staleness that workers wait for; 0: they do not */
    bool together;          /* workers make steps together, */
    uint32_t backups;       /* and need not wait for so many of them */
    wf_coding push, pull;   /* how gradients and weights are written */
    bool logged;            /* slices keep a log of what they applied (tests/kit/logged.h) */
    bool evaluates, calls_back;
    bool restores_best; /* early stopping that ends the job with its best weights */
    bool stops_again;   /* and is stopped once more as soon as it runs */
    bool goes_back; /* a job that was stopped goes on from a checkpoint that is not the newest */
    /* the network */
    bool packets; /* no connections: each packet for itself may be lost, repeated, overtaken */
    uint32_t drop_per_mille, dup_per_mille;
    uint32_t flip_per_mille; /* packets that are damaged */
    uint32_t bytes_per_ms;   /* of a connection, each way; 0: any number */
    int64_t delay_us_min, delay_us_max;
    int64_t
        gone_ms; /* a silent peer is forgotten after so long: if soon, links are made anew often */
    /* faults, at random moments before faults_end_ms */
    uint32_t kills, freezes, cuts, swizzles, kill_alls, disk_errors;
    uint32_t breaks;  /* connections that break, half of them on one side only */
    uint32_t hangs;   /* main threads that go on no more, while signs of life are sent */
    uint32_t calls;   /* main threads that are in one call for long */
    uint32_t jumps;   /* clocks that jump ahead */
    uint32_t fulls;   /* times in which the disk is full */
    bool is_calm;     /* nothing happens that would be a reason to give anybody up */
    bool steps_block; /* a worker takes no message while it computes a step */
    uint32_t start_fails_per_mille; /* starts of workers that fail */
    uint32_t unfit;                 /* the worker whose start always fails, from 1; 0: none */
    size_t journal_least;           /* bytes of log that bring a snapshot */
    int64_t work_ms;                /* what the master begins takes up to so long; 0: no time */
    uint32_t stuck_per_mille;       /* shards whose writing never ends */
    uint32_t moves;                 /* slices that go to another ps */
    bool hybrid;                    /* a variable lies in the workers, beside those on the ps */
    bool divides;                   /* workers that all hold the variables each update a share */
    bool apart;                     /* each worker is on a host of its own */
    bool balances;                  /* the master moves slices, which all lie on ps 0 at first */
    uint32_t stops;                 /* the job is stopped, and recovered once it is */
    uint32_t trouble_per_mille;     /* steps that fail, or whose gradients are NaN: the job fails */
    bool tells;                     /* the master is told of a death, where nobody supervises */
    bool supervised; /* processes run under the supervisor's role, which always tells */
    uint32_t downs;  /* `weft down` and `weft up` while a job runs, where supervised */
    bool kill_workers, kill_ps, kill_master; /* who may be killed */
    int64_t faults_end_ms, end_ms;           /* liveness: done by end_ms */
    bool loud;                               /* print every event that a role takes */
} wf_sim_spec;

/* What a run came to. */
typedef struct wf_sim_result {
    uint64_t events, virtual_ms, restarts, checkpoints, trace; /* a hash of the history */
    uint64_t flips, hangs, resent; /* damaged packets, hung processes, bytes sent again */
    uint64_t moves;                /* slices that another ps has taken */
    uint64_t downs;                /* of the whole cluster, as ordered */
    uint32_t generation;
} wf_sim_result;

/* A spec drawn from a seed: sizes, network and faults. */
wf_sim_spec wf_sim_draw(uint64_t seed);
/* The same of a cluster without ps, in which each of several workers has all variables. */
wf_sim_spec wf_sim_draw_mirrored(uint64_t seed);
/* The same of a cluster with ps and several workers, which have some variables each. */
wf_sim_spec wf_sim_draw_hybrid(uint64_t seed);
/* Runs a history to its end. Errors: WF_INVALID with the first broken claim, and the virtual time;
 * WF_TIMEOUT when the job is not done by end_ms. */
WF_MUST_USE wf_status wf_sim_run(const wf_sim_spec *spec, wf_sim_result *out, wf_err *err);

#endif
