/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/plan.h - what the files of this room share; nobody outside includes it.
 *
 * A plan has a side for the host and one for each of its devices that is not the host (devices.c).
 * Each has an arena, a workspace and a stream for kernels, and a device's also one for copies to it
 * and one for copies from it (streams.c). A value lies on one side: that of a port on the host's,
 * or, where the port is resident, on the first device's.
 *
 * Values of the plan's own copy of the graph are numbered (wf_value.index), and `tensors` has a
 * header for each. A `room` is a stretch of memory; values that share one (views, in-place results)
 * are linked through `next_in_room`, so that giving the room another address patches their headers
 * and nothing else.
 *
 * Invariants
 *   P1  two rooms of the arena overlap only if no step lies in both lives
 *   P2  the room of an output lives to the end of a run and nothing else is written to it after the
 *       output is ready
 *   P3  after wf_plan_new nothing is allocated, but once for each output that is never bound and
 *       each input that is brought ahead, and for what a device records
 *   P4  a step on the host begins when all that was queued on the devices is done, and a copy to a
 *       device when what another device writes to the host is there
 *   P5  the room that a copy reads lives to the next step on the host, or to the end: nothing else
 *       waits for readers
 *   P6  what is queued of a run is done before the next one is started
 *   P7  a kernel that reads what a copy brings waits for an event behind the copy; a copy from the
 *       device for one behind the kernels queued so far, and so does a copy to the device, but for
 *       those in front of all kernels
 *   P8  memory for what is brought ahead is written and read on the stream `in` alone
 */
#ifndef WF_EXEC_PLAN_H
#define WF_EXEC_PLAN_H

#include "common/base/arena.h"
#include "common/exec/exec.h"
#include "common/graph/graph.h"
#include "common/kernels/kernel.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WF_NO_ROOM = UINT32_MAX };

typedef enum wf_room_kind {
    WF_ROOM_ARENA = 1, /* at an offset of the plan's memory */
    WF_ROOM_LENT,      /* an input: bound by the caller, never written */
    WF_ROOM_CONSTANT,  /* known before the run, never written */
    WF_ROOM_OUTPUT     /* bound by the caller, or memory of its own */
} wf_room_kind;

typedef struct wf_room {
    wf_room_kind kind;
    uint8_t side; /* of the plan */
    size_t bytes, offset;
    uint32_t first, last; /* steps of its life; last is WF_TO_THE_END for outputs */
    uint32_t written;     /* the last step that writes to it */
    uint32_t group;       /* of copies that bring its content; 0: none */
    uint32_t head;        /* of the values in it */
} wf_room;

#define WF_TO_THE_END UINT32_MAX

typedef struct wf_step {
    const wf_kernel *kernel;
    wf_run run;
    void (*release)(void *state); /* NULL: nothing to give back */
    const wf_tensor **in;         /* padded to WF_KERNEL_PORTS, as kernels read them */
    wf_tensor **out;
    uint8_t side;      /* on one of whose streams it runs */
    uint32_t after;    /* a bit for each side that the host waits for first: P4 */
    uint32_t brings;   /* of a copy to the device: the number of its group in wf_plan.groups */
    bool ends_group;   /* it is the last of that */
    uint32_t needs;    /* of other steps: the group that kernels wait for first; 0: none */
    bool behind;       /* of a copy: it waits for the kernels */
    uint64_t sequence; /* of the node's name; used when it draws */
    bool draws;
    uint32_t first_ready, n_ready; /* in wf_plan.ready */
    wf_buf *room_ahead; /* of a copy to the device: for the next run's content; NULL: none */
    bool asked_ahead;   /* the device was asked for it */
    const void *ahead;  /* what lies there, or is on its way: memory of the host; NULL: nothing */
} wf_step;

/* Steps of one device in a row that it can record: replay.c. */
enum { WF_RECORDINGS = 4 };

typedef struct wf_recorded {
    wf_device_graph *graph; /* NULL: none */
    void **places;          /* [n_rooms]: where the rooms of the stretch were */
} wf_recorded;

typedef struct wf_stretch {
    uint32_t begin, end;      /* steps */
    uint32_t *rooms, n_rooms; /* of its operands, those whose address may change */
    wf_recorded recorded[WF_RECORDINGS];
    uint32_t n_recorded; /* so far */
    bool given_up;       /* the device did not record it */
} wf_stretch;

typedef struct wf_plan_in {
    wf_port port;
    wf_value *value;
    bool used;
} wf_plan_in;

typedef struct wf_plan_out {
    wf_port port;
    wf_value *value;
    bool direct;           /* written in place by its kernel; otherwise copied when ready */
    wf_stream *stream;     /* which makes it final */
    void *bound;           /* lent by the caller */
    wf_buf *own;           /* made when it is needed and nothing is bound */
    wf_device_event *done; /* recorded on the stream when it is final; always done on the cpu */
} wf_plan_out;

enum { WF_SIDE_HOST = 0, WF_SIDES = 1 + WF_PLAN_DEVICES };

typedef struct wf_plan_side {
    const wf_device *device;
    wf_stream *stream;     /* of kernels */
    wf_stream *in, *out;   /* of copies; not on the host */
    wf_device_event *mark; /* of one stream, for another of them; not on the host */
    uint32_t brought;      /* the last group that was queued and is not waited for; 0: none */
    bool took;             /* a copy to the host was queued and is not waited for */
    bool beside;           /* a copy ahead was queued and is not waited for */
    wf_buf *memory;        /* arena rooms */
    wf_buf *constants;     /* not on the host */
    wf_buf *workspace;     /* of one step at a time */
    wf_buf *keys;          /* wf_rng_key [n_keys]: of the steps here that draw, in their order, in
                            * memory of the host; not on the host's side */
    wf_buf *keys_there;    /* the same, in memory of the device */
    uint32_t n_keys;
    size_t arena_bytes, workspace_bytes;
    const wf_node *hungriest; /* whose kernel wants the workspace */
} wf_plan_side;

struct wf_plan {
    wf_graph *g;     /* our copy, with concrete shapes */
    wf_arena *arena; /* of everything below but big memory */
    wf_pool *pool;
    wf_compute compute;
    bool deterministic, measure_only;
    size_t limit_bytes, taken; /* taken <= limit_bytes */
    size_t foldable;           /* bytes that folding may still make */
    const char *limit_hint;
    uint8_t *side_of;       /* [g->n_values] */
    wf_tensor *tensors;     /* [g->n_values] */
    uint32_t *room_of;      /* [g->n_values], WF_NO_ROOM for values that no run touches */
    uint32_t *next_in_room; /* [g->n_values] */
    bool *needed;           /* [g->n_values] */
    wf_room *rooms;
    uint32_t n_rooms;
    wf_node **nodes; /* [n_nodes]: those that a run needs, views too */
    uint32_t n_nodes;
    const wf_kernel **kernels; /* [n_nodes] */
    wf_step *steps;            /* those that do something */
    uint32_t n_steps;
    wf_stretch *stretches;
    uint32_t n_stretches;
    wf_device_event **groups; /* [n_groups]: behind each group of copies to a device; the first is
                               * number 1 */
    uint32_t n_groups;
    bool has_run, told; /* told: that a stretch was not recorded */
    bool takes_ahead;   /* the next run takes what was brought ahead, */
    bool taking;        /* and so does the one that is being queued */
    wf_plan_in *ins;
    uint32_t n_ins;
    wf_plan_out *outs;
    uint32_t n_outs;
    uint32_t *ready;              /* [n_outs]: outputs, grouped by the step that makes them final */
    uint32_t n_ready_at_start;    /* the first of them: views of inputs, constants */
    wf_plan_side sides[WF_SIDES]; /* [n_sides]; the first is the host's */
    uint32_t n_sides;
    uint32_t first_side; /* of the first device */
    wf_plan_usage usage;
};

/* shapes.c: makes all shapes of p->g concrete and computes what follows from constants. */
WF_MUST_USE wf_status wf_plan_shapes(wf_plan *p, const wf_plan_options *o, wf_err *err);

/* layout.c: chooses which images of p->g, whose shapes are known, have their channels last, for a
 * plan whose devices are GPUs. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_plan_layout(wf_plan *p, wf_err *err);

/* devices.c: makes the sides, sets p->side_of, and puts Copy nodes between the sides. */
WF_MUST_USE wf_status wf_plan_sides(wf_plan *p, const wf_plan_options *o, wf_err *err);
bool wf_plan_is_copy(const wf_node *n);
/* The side where a node runs: that of its results, and of a copy the one that is not the host. */
uint32_t wf_plan_side_of(const wf_plan *p, const wf_node *n);
/* The stream of that side on which it runs. */
wf_stream *wf_plan_stream(const wf_plan *p, const wf_node *n);
/* The stream behind whose work a value is final: that of the copy which brings it to the host, or
 * that of the kernels of its side. */
wf_stream *wf_plan_final_stream(const wf_plan *p, const wf_value *v);
/* The sides that a node of the host, or a copy, waits for: P4. */
uint32_t wf_plan_after(const wf_plan *p, const wf_node *n);
/* The kernel of a node that runs. Errors: WF_UNSUPPORTED: neither the device nor the cpu has one.
 */
WF_MUST_USE wf_status wf_plan_kernel(const wf_plan *p, const wf_node *n, const wf_kernel **out,
                                     wf_err *err);
/* Copies constants to the device, once kernels have been prepared with those of the host. */
WF_MUST_USE wf_status wf_plan_upload(wf_plan *p, wf_err *err);

/* steps.c: whether a node hands its input out of the plan. */
bool wf_plan_is_sink(const wf_node *n);
/* steps.c: lists ports; finds what is needed and its kernels; makes steps once rooms are known. */
WF_MUST_USE wf_status wf_plan_ports(wf_plan *p, wf_err *err);
WF_MUST_USE wf_status wf_plan_nodes(wf_plan *p, wf_err *err);
WF_MUST_USE wf_status wf_plan_steps(wf_plan *p, wf_err *err);

/* memory.c: gives every needed value a room; rooms of the arena an offset in memory that is had
 * before any kernel is prepared, so that no kernel prepares for tensors that can never be; then the
 * workspace, and headers their addresses. */
WF_MUST_USE wf_status wf_plan_rooms(wf_plan *p, wf_err *err);
WF_MUST_USE wf_status wf_plan_lay_out(wf_plan *p, wf_err *err);
WF_MUST_USE wf_status wf_plan_place(wf_plan *p, wf_err *err);
/* Puts a room at an address: patches the headers of its values. */
void wf_room_move(wf_plan *p, uint32_t room, void *data);

/* limit.c: counts bytes that are about to be allocated for node n (NULL: for all of them). Errors:
 * WF_NOMEM, naming n, or the node whose result takes most. */
WF_MUST_USE wf_status wf_plan_take(wf_plan *p, size_t bytes, const wf_node *n, wf_err *err);
/* The same, and allocates them, unless the plan is for measuring only. */
WF_MUST_USE wf_status wf_plan_reserve(wf_plan *p, const wf_device *d, size_t bytes,
                                      const wf_node *n, wf_buf **out, wf_err *err);
wf_status wf_plan_too_large(const wf_plan *p, size_t bytes, const wf_node *n, wf_err *err);

/* draws.c: makes room for the keys of random draws; sets and brings those of a run. */
WF_MUST_USE wf_status wf_plan_draws(wf_plan *p, wf_err *err);
WF_MUST_USE wf_status wf_plan_draw(wf_plan *p, const wf_step_key *key, wf_err *err);

/* streams.c: makes the streams of a side, which knows its device; waits for them, and frees them.
 */
WF_MUST_USE wf_status wf_plan_side_open(wf_plan_side *side, wf_err *err);
WF_MUST_USE wf_status wf_plan_side_wait(wf_plan_side *side, wf_err *err);
void wf_plan_side_close(wf_plan_side *side);
/* Queues a copy to the device ahead of all others, for all kernels that follow. */
WF_MUST_USE wf_status wf_plan_side_bring(wf_plan_side *side, void *to, const void *from,
                                         size_t bytes, wf_err *err);
/* Finds what each step waits for, and makes the events for it. */
WF_MUST_USE wf_status wf_plan_order(wf_plan *p, wf_err *err);
/* Has the host, and the streams, wait for what must be done before s; what stands behind s. */
WF_MUST_USE wf_status wf_step_before(wf_plan *p, const wf_step *s, wf_err *err);
WF_MUST_USE wf_status wf_step_behind(wf_plan *p, const wf_step *s, wf_err *err);

/* run.c: before the first step of a run; one step of it, without and with what it waits for. */
WF_MUST_USE wf_status wf_plan_prepare_run(wf_plan *p, const wf_step_key *key, wf_err *err);
WF_MUST_USE wf_status wf_step_queue(wf_step *s, wf_err *err);
WF_MUST_USE wf_status wf_step_run(wf_plan *p, wf_step *s, wf_err *err);

/* ahead.c: a step that copies to a device, from where its content is. */
WF_MUST_USE wf_status wf_step_bring(wf_plan *p, wf_step *s, wf_err *err);

/* replay.c: finds stretches; frees what was recorded of them; queues one. */
WF_MUST_USE wf_status wf_plan_stretches(wf_plan *p, wf_err *err);
void wf_plan_forget(wf_plan *p);
WF_MUST_USE wf_status wf_stretch_run(wf_plan *p, wf_stretch *s, wf_err *err);

#endif
