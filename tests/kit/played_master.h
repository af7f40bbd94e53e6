/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/played_master.h - a task's net, and a master that the test plays, over a transport in
 * memory and under the test's own clock.
 *
 * What fails here is a mistake of the test, and ends it.
 */
#ifndef WF_TESTS_KIT_PLAYED_MASTER_H
#define WF_TESTS_KIT_PLAYED_MASTER_H

#include "common/base/clock.h"
#include "common/wire/net.h"
#include "tests/kit/memnet.h"
#include <stdint.h>

/* What the task and the master do; `arg` is given to each. */
typedef struct wf_played_acts {
    void *arg;
    void (*on_event)(void *arg, wf_event *ev); /* at the task */
    void (*advance)(void *arg);                /* the task, after its events */
    void (*hear)(void *arg, const wf_msg *m);  /* the master; borrows m */
} wf_played_acts;

typedef struct wf_played_master {
    wf_memnet nets;
    wf_net *net;    /* the task's, which has dialled */
    wf_peer *peer;  /* the master, to the task */
    wf_net *master; /* NULL: nobody listens */
    bool deaf;      /* it is there, and does nothing */
    wf_peer *task;  /* who was heard last, to the master; NULL: nobody */
    int64_t now_ns;
    wf_played_acts acts;
} wf_played_master;

/* The task's side, with incarnation `incarnation`, at the time 1 s; no master listens yet. */
void wf_played_init(wf_played_master *p, wf_task self, uint64_t incarnation,
                    const wf_played_acts *acts);
void wf_played_close(wf_played_master *p);

/* A master listens from now on; 3 s pass. */
void wf_played_begin_master(wf_played_master *p, uint64_t incarnation);
void wf_played_end_master(wf_played_master *p);

/* The master tells the task something. */
void wf_played_say(wf_played_master *p, uint16_t kind, const ProtobufCMessage *body);

/* Both sides run, a turn each 10 ms. */
void wf_played_pass(wf_played_master *p, int64_t ms);

#endif
