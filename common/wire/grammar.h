/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/grammar.h - every kind of message: its number, who may send it to whom, how large.
 *
 * Kinds below 16 belong to net.c (link and liveness), the rest to the roles. The numbers are the
 * protocol: they never change meaning.
 */
#ifndef WF_WIRE_GRAMMAR_H
#define WF_WIRE_GRAMMAR_H

#include "common/wire/task.h"
#include <stddef.h>
#include <stdint.h>

typedef enum wf_kind {
    WF_HELLO = 1,  /* "this is who I am, and where my sequence starts" */
    WF_WELCOME,    /* the answer, with the other start */
    WF_REFUSE,     /* the answer to a hello that may not come in: a sentence */
    WF_RESET,      /* "I do not know this link; say hello" */
    WF_PING,       /* acknowledges, and names the last message that was sent before it (link.h) */
    WF_BEAT,       /* a heartbeat, from a thread of its own; outside any link */
    WF_RESEND,     /* the answer to a ping: messages after `ack` are missing (link.h) */
    WF_BYE,        /* the sender closes its links */
    WF_STREAM_ASK, /* asks for a connection of stream.h's, which alone handles these two */
    WF_STREAM_AT,  /* the port, and the token to say there */

    WF_REGISTER = 16, /* task -> master: what this task holds */
    WF_VIEW,          /* master -> ps: the members; -> worker: who adds up gradients with it */
    WF_VIEW_OK,
    WF_SETUP, /* master -> ps: load the slices of a job */
    WF_SETUP_OK,
    WF_START, /* master -> worker: the partition, the slice map, the data */
    WF_START_OK,
    WF_HALT,    /* master -> task: this generation is over */
    WF_FAULT,   /* task -> master: a step, its data or an update failed, in a sentence */
    WF_DISMISS, /* master -> task: this incarnation is no member any more */
    WF_TUNE,    /* master -> ps, between two epochs: a new learning rate */
    WF_TUNE_OK,
    WF_MOVE,  /* master -> ps: give a slice to another ps */
    WF_MOVED, /* ps -> master: it is there, or why not */
    WF_LOAD,  /* ps -> master, each second: what slices cost */

    WF_SPLIT_WANT = 32, /* worker -> master */
    WF_SPLIT,           /* master -> worker: a lease on a range of records */
    WF_SPLIT_DONE,      /* worker -> master: all its pushes are acknowledged */
    WF_SPLIT_DONE_OK,   /* master -> worker: that is on disk */
    WF_PROGRESS,        /* worker -> master: steps, losses, position in open splits */
    WF_EVAL,            /* master -> worker: evaluate these records */
    WF_EVAL_RESULT = 39,
    WF_ROUND,    /* master -> worker: the files that are trained next, of data that grows */
    WF_ROUND_OK, /* worker -> master: it has them open */

    WF_CUT_DUE = 48, /* worker -> master: the place for a checkpoint is reached */
    WF_CUT_OPEN,     /* master -> worker: hold at the next step boundary */
    WF_CUT_REPORT,   /* worker -> master -> chief: its steps and its place in the data */
    WF_CUT_SAVE,     /* chief -> ps */
    WF_CUT_FORKED,   /* ps -> chief, chief -> master: copies are taken, training may go on */
    WF_CUT_SAVED,    /* ps -> chief: the shard is durable, or failed and why */
    WF_CUT_RESUME,   /* master -> worker */
    WF_CUT_COMMIT,   /* chief -> master: asks to commit; master -> chief: allows it */
    WF_CUT_DONE,     /* chief -> master: committed, or failed and why */
    WF_CUT_ABORT,    /* master -> chief: drop the cut */

    WF_LIST = 64, /* worker -> ps: the slices that the worker pulls, under a number */
    WF_PULL,
    WF_WEIGHTS, /* ps -> worker: parts of the answer to a pull */
    WF_PUSH,
    WF_PUSH_OK,    /* ps -> worker: the named slices have this step */
    WF_DENIED,     /* ps -> worker: wrong job, generation, map or view; and where slices moved */
    WF_LIST_OK,    /* ps -> worker: the list is registered, pulls and pushes may follow */
    WF_STATE,      /* ps -> ps: the state of a slice that moves */
    WF_STATE_OK,   /* ps -> ps: it is taken, or why not */
    WF_CLOCK,      /* worker -> ps: it joins those who wait for each other, or leaves them */
    WF_CLOCK_OK,   /* ps -> worker: the clock of its next step */
    WF_DECIDED,    /* ps -> worker -> ps: whose gradients make up a step of all workers */
    WF_RING_SUMS,  /* worker -> worker: a range of gradients that are added up */
    WF_RING_GIVEN, /* worker -> worker: its part of a step is complete */
    WF_RING_DONE,  /* worker -> worker: a step is applied */
    WF_RING_PLACE, /* worker -> worker: where it is, when steps begin anew */

    WF_ASK = 80, /* client -> master: any command of the command line */
    WF_ANSWER,
    WF_DIED, /* supervisor -> master: a task's process ended */

    WF_RING_VALUES, /* worker -> worker: variables for one that lacks them */
    WF_TASKS_ASK,   /* client -> any task: who belongs to this cluster? */
    WF_TASKS,
    WF_VARIABLE, /* client -> ps: makes, changes or reads a variable of a container */
    WF_VARIABLE_OK,
    WF_PLAN, /* client -> worker: a compiled graph, under a handle */
    WF_PLAN_OK,
    WF_RUN, /* client -> worker: what it is fed; the worker reads and writes the variables */
    WF_RUN_OK,
    WF_RING_WEIGHTS, /* worker -> worker: what it has updated for all */

    /* Between workers that a model is divided among; all but the values from or to the first stage.
     */
    WF_STAGE_START, /* a stage's part of the start of a job */
    WF_STAGE_READY, /* it has begun, or why not */
    WF_STAGE_ROUND, /* a step, or a unit of an evaluation, begins */
    WF_STAGE_VALUE, /* an activation, a gradient or a result, of a micro-batch */
    WF_STAGE_DONE,  /* a stage has done its part of a round, and made its update; or why not */
    WF_STAGE_SAVE,  /* a checkpoint is written */
    WF_STAGE_SAVED, /* its file is */
    WF_STAGE_TUNE,  /* another learning rate */
    WF_STAGE_STOP,  /* the job is over for this stage */

    WF_TAKE, /* client -> worker: a value that was sent there under a key */
    WF_TAKE_OK,
    WF_CONTAINED_ASK, /* client -> ps: which variables of sessions it has */
    WF_CONTAINED,

    /* Between stages, where a step is applied by all of them or by none. */
    WF_STAGE_SUMS,  /* what the gradients of a stage come to */
    WF_STAGE_APPLY, /* whether the step is applied, and by which norm */

    WF_PROCESSES, /* supervisor -> master, each second: those that run */
    WF_HUNG,      /* master -> supervisor: it is to kill a process that was given up long ago */
    WF_N_KINDS
} wf_kind;

/* The reason of a dismissal, in the header's `request`. */
enum { WF_DISMISS_RESTART = 0, WF_DISMISS_SUPERSEDED = 1 };

typedef struct wf_kind_row {
    uint16_t kind;
    const char *name;
    uint8_t from, to; /* bits 1 << wf_role */
    size_t control_limit;
    uint32_t frames_limit;
} wf_kind_row;

/* NULL for a number that is no kind. */
const wf_kind_row *wf_kind_find(uint16_t kind);
/* For logs: "push"; "?" for a number that is no kind. */
const char *wf_kind_name(uint16_t kind);

#endif
