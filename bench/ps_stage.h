/* SPDX-License-Identifier: Apache-2.0 */
/* bench/ps_stage.h - a real weft-ps over tcp, with a master and light workers that are played by
 * one thread of this process. A light worker has a socket and a link of its own and computes
 * nothing.
 *
 * A step of a client: it pushes all slices, waits for the answer, pulls all, waits for the weights.
 * A failure of anything ends the process with a sentence.
 */
#ifndef WF_BENCH_PS_STAGE_H
#define WF_BENCH_PS_STAGE_H

#include "common/wire/net.h"
#include "common/wire/zeromq.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct stage_conf {
    const char *weft_ps; /* the program */
    const char *rule;    /* of the optimizer */
    uint32_t clients, threads, slices;
    uint64_t elements; /* of each slice */
    bool pulls;        /* a step ends with a pull */
} stage_conf;

typedef enum stage_state {
    STAGE_AWAY,
    STAGE_LISTING,
    STAGE_IDLE,
    STAGE_PUSHING,
    STAGE_PULLING
} stage_state;

typedef struct stage_client {
    wf_net *net;
    wf_peer *to_ps, *ps; /* dialled; NULL while it is not up */
    stage_state state;
    uint32_t step, left; /* slices that the step waits for */
    int64_t asked_ns;    /* when the push or pull in hand was sent */
} stage_client;

typedef struct stage {
    stage_conf conf;
    char folder[64], ps_address[64], master_address[64];
    pid_t pid;
    clockid_t ps_clock; /* processor time of the ps */
    wf_zmq *zmq;
    wf_net *master;
    wf_peer *ps; /* of the master */
    stage_client *clients;
    uint32_t n;             /* that have entered */
    wf_transport **awaited; /* [clients + 1] */
    wf_buf *gradient;
    bool is_set_up;
    uint32_t view_taken; /* the last that the ps has acknowledged */
    int64_t swept_ns;
    /* what was measured since stage_measure */
    uint64_t pushes;
    int64_t *pull_ns; /* [n_pulls] */
    size_t n_pulls, pulls_room;
} stage;

/* Starts a ps and gives it a job, with all clients in its view and none connected. */
void stage_begin(stage *s, const stage_conf *conf);
/* Connects all clients and registers their lists. */
void stage_enter(stage *s);
void stage_end(stage *s);

/* Begins a step of an idle client. */
void stage_step(stage *s, stage_client *c);
/* Everybody's turn; waits up to a millisecond where nothing has arrived. */
void stage_turn(stage *s);
/* The master tells the ps a view of the first n clients and waits until it has taken it. */
void stage_view(stage *s, uint32_t number, uint32_t n);
/* Forgets what was measured. */
void stage_measure(stage *s);

/* Of the ps: processor time, resident bytes. */
int64_t stage_ps_ns(const stage *s);
size_t stage_ps_bytes(const stage *s);

#endif
