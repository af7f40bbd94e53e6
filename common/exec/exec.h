/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/exec.h - the front door of common/exec: plans, and how they run.
 *
 * A plan is made once per graph and concrete shapes: inference is done again with the extents at
 * hand, what follows from constants alone is computed, kernels are resolved to function pointers,
 * and every buffer gets an offset in one arena by liveness (in place where a kernel allows it;
 * Reshape and its like share memory). Running it allocates nothing.
 *
 *     wf_plan_options o = {.pool = pool, .n_symbols = 1, .symbols = &(wf_plan_symbol){"batch",
 * 32}}; WF_TRY(wf_plan_new(graph, &o, &plan, err)); wf_plan_bind_input(plan, x, batch_data);
 *     wf_plan_bind_output(plan, grad, payload);     (each step anew: costs nothing)
 *     WF_TRY(wf_plan_run(plan, &key, on_ready, arg, err));
 *
 * A plan is made for one or more devices. A node runs on the device that it is marked with
 * (wf_node.device), or on the first; where that has no kernel for it, it runs on the cpu. Copies
 * are put between, and run beside the kernels. Each device has an arena of its own. Inputs and
 * outputs are memory of the host, but for those that `resident` names: they lie in memory of the
 * first device, and no copy is made. With `outputs_on_host` these are inputs alone.
 *
 * A device that can record work (common/tensor/device.h) queues steps that follow each other by one
 * call from the second run on, for up to four sets of memory that resident ports are bound to.
 *
 * Inputs of a plan are, in this order: the graph's inputs; the outputs of Pull nodes, in node
 * order; the variables that stay in the graph. The last start out bound to their known content.
 * Outputs are, in this order: the graph's outputs; the inputs of Push nodes, in node order. Nodes
 * that none of the outputs needs are left out.
 *
 * Threading: a plan belongs to one thread at a time. The graph is only read, and may be freed once
 * the plan is made; constants and known content share its storage.
 */
#ifndef WF_EXEC_EXEC_H
#define WF_EXEC_EXEC_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/kernels/pool.h"
#include "common/tensor/compute.h"
#include "common/tensor/device.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_plan wf_plan;

enum { WF_PLAN_DEVICES = 16 };

/* The extent of a symbolic dimension, wherever it occurs in the plan's inputs. */
typedef struct wf_plan_symbol {
    const char *name;
    int64_t size;
} wf_plan_symbol;

/* The dims of one input, by the value's name. */
typedef struct wf_plan_shape {
    const char *name;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
} wf_plan_shape;

/* All borrowed for the call, but the pool: for the plan's life. Zero is a good default. */
typedef struct wf_plan_options {
    const wf_device *device;         /* the first; NULL: the cpu */
    const wf_device *const *devices; /* [n_devices]: those behind the first */
    size_t n_devices;
    wf_pool *pool; /* NULL: one thread */
    size_t n_symbols;
    const wf_plan_symbol *symbols;
    size_t n_shapes;
    const wf_plan_shape *shapes; /* before symbols */
    size_t n_resident;
    const char *const *resident; /* ports that lie in memory of the first device, by the name of
                                  * their value or variable: a variable's name is that of its
                                  * weights and of its gradient. Other names are passed over */
    bool outputs_on_host;        /* no output is resident, whatever is named */
    size_t limit_bytes;     /* the most that all of it may take; 0: the memory of the machine and
                             * of its devices, each of which has its own limit */
    const char *limit_hint; /* what to do about that limit; NULL: lower the batch */
    bool measure_only;      /* for wf_plan_memory alone: nothing large is allocated */
    wf_compute compute;     /* what f32 products and convolutions round their factors to */
    bool deterministic; /* algorithms of a GPU's libraries are those that these name first: none are
                         * measured, whose times differ from run to run */
} wf_plan_options;

/* What a port of the plan is. Strings are borrowed for the plan's life. */
typedef struct wf_port {
    const char *name;     /* of the value */
    const char *variable; /* of the Pull, Push or variable; NULL for a feed or a fetch */
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    int64_t elems;
    size_t bytes;
    const wf_device *device; /* whose memory it is: wf_cpu, or of a resident one the first device */
} wf_port;

/* Which draw of random numbers a run uses: Dropout's mask depends on this and its node's name. */
typedef struct wf_step_key {
    uint64_t seed, epoch, split, batch;
} wf_step_key;

/* Called on the running thread as soon as the work that makes output `i` final is queued, alone or
 * with the steps behind it: no kernel writes it later in this run. Its content is there when `done`
 * is, which the plan owns, and which a plan for the cpu hands over done. Resident outputs become
 * final on one stream, in the order of their calls: the event of one stands for those before it. A
 * failure ends the run with it. */
typedef wf_status wf_ready_fn(void *arg, uint32_t i, wf_device_event *done, wf_err *err);

/* A limit for a graph from an unknown hand: 1 GiB and 1024 times the bytes that it was given (its
 * own constants and variables, and what is fed), and never more than the machine's memory. */
size_t wf_plan_fair_limit(size_t given_bytes);

/* The caller owns *out. Errors: WF_SHAPE with the node's name, also when an extent remains unknown;
 * WF_UNSUPPORTED for an operation without a kernel, or more than WF_PLAN_DEVICES devices; WF_NOMEM,
 * before anything large is allocated, with the node that asks for most and its shape, when
 * limit_bytes do not suffice. */
WF_MUST_USE wf_status wf_plan_new(const wf_graph *g, const wf_plan_options *options, wf_plan **out,
                                  wf_err *err);
/* Frees *p and sets it to NULL; NULL is fine. */
void wf_plan_free(wf_plan **p);

uint32_t wf_plan_n_inputs(const wf_plan *p);
uint32_t wf_plan_n_outputs(const wf_plan *p);
const wf_port *wf_plan_input(const wf_plan *p, uint32_t i);
const wf_port *wf_plan_output(const wf_plan *p, uint32_t i);
/* The port of that value's name or variable; -1 when there is none. */
int64_t wf_plan_find_input(const wf_plan *p, const char *name);
int64_t wf_plan_find_output(const wf_plan *p, const char *name);

/* Lends input i its content, wf_plan_input(p, i)->bytes of it in memory of the port's device, until
 * it is bound again. A resident input starts out unbound. */
void wf_plan_bind_input(wf_plan *p, uint32_t i, const void *data);
/* Has output i written to `data` from the next run on: the producing kernel writes straight there.
 * NULL takes the loan back: it then lands in memory of the plan. The memory may be read or written
 * at any time of a run (an output can be an operand of later nodes) and must not overlap another's.
 * A value that is several outputs, or a view of an input, is copied where it has to be. The memory
 * is of the port's device. */
void wf_plan_bind_output(wf_plan *p, uint32_t i, void *data);
/* Where output i was written by the last run; of a resident one it is memory of the device. */
const void *wf_plan_output_data(const wf_plan *p, uint32_t i);

/* Runs once, and returns when all outputs are there. `on_ready` may be NULL. Errors: WF_INVALID for
 * an input without content; what kernels say, with the node's name in front. Outputs are undefined
 * then. */
WF_MUST_USE wf_status wf_plan_run(wf_plan *p, const wf_step_key *key, wf_ready_fn *on_ready,
                                  void *arg, wf_err *err);

/* The two halves of a run: queue it, and wait until it is done. Between them, and when the first
 * one fails, inputs and outputs are the devices': they stay bound, and the plan is neither freed
 * nor started again. A plan for the cpu does its work in the first half. */
WF_MUST_USE wf_status wf_plan_start(wf_plan *p, const wf_step_key *key, wf_ready_fn *on_ready,
                                    void *arg, wf_err *err);
WF_MUST_USE wf_status wf_plan_wait(wf_plan *p, wf_err *err);
/* Between the two halves: begins to copy what input i, memory of the host, is given in the next
 * run, beside the kernels of this one. `data` is borrowed until wf_plan_wait has returned. Does
 * nothing on the cpu, and where the device has no memory for it: such a run copies it in its turn.
 * Errors: what the device says. */
WF_MUST_USE wf_status wf_plan_bring_ahead(wf_plan *p, uint32_t i, const void *data, wf_err *err);
/* The next run takes what was brought ahead since the last one began, of inputs that are bound to
 * the memory that it was copied from and whose content is still that. Without this call it takes
 * nothing of it. */
void wf_plan_take_ahead(wf_plan *p);
/* Runs that are started from now on use the memory of e's device when e is done: whoever writes
 * weights on a stream of their own records e behind that. Errors: WF_USAGE when the plan lacks e's
 * device; what the device says. */
WF_MUST_USE wf_status wf_plan_after_event(wf_plan *p, wf_device_event *e, wf_err *err);

/* What a step of a run takes. */
typedef struct wf_step_time {
    const wf_node *node; /* borrowed for the plan's life */
    double us;           /* the mean of several times, one right behind the other */
} wf_step_time;

/* The steps of a run, copies between host and devices among them. */
uint32_t wf_plan_n_steps(const wf_plan *p);
/* Runs once, each step alone and then `times` more, for out[wf_plan_n_steps(p)]: a step that has
 * less to do than it takes to queue it shows the latter. Outputs hold nothing of use then, since
 * steps that work in place did so several times. Errors: as wf_plan_run. */
WF_MUST_USE wf_status wf_plan_profile(wf_plan *p, const wf_step_key *key, uint32_t times,
                                      wf_step_time *out, wf_err *err);

/* Looks for NaN and Inf in outputs[n] of the last run (all outputs when outputs is NULL); integers
 * are finite. A resident output is copied to the host for it. Errors: WF_NUMERIC, naming the
 * variable or value; WF_NOMEM. */
WF_MUST_USE wf_status wf_plan_check_finite(const wf_plan *p, uint32_t n, const uint32_t outputs[],
                                           wf_err *err);

typedef enum wf_blame_kind {
    WF_BLAME_NOTHING = 0, /* all is finite: a run with this key makes no bad value */
    WF_BLAME_NODE,        /* a node made it of what was none */
    WF_BLAME_INPUT        /* it was fed, or is in a variable or constant */
} wf_blame_kind;

/* What a node was given for one input: least > greatest when all of it is NaN. */
typedef struct wf_blame_range {
    uint32_t input;
    double least, greatest; /* of what is not NaN */
} wf_blame_range;

enum { WF_BLAME_RANGES = 4 };

/* Where a NaN or an infinity came from. Strings are borrowed for the plan's life. */
typedef struct wf_blame {
    wf_blame_kind kind;
    bool is_nan;      /* else infinite */
    const char *name; /* of the node or the value */
    const char *op;   /* NODE */
    uint32_t n_parts; /* NODE, of operations that were fused: how many they are */
    const char *const *parts;
    const char *variable; /* INPUT: of the Pull or variable; NULL for a feed or a constant */
    const char *cause;    /* NODE: the node whose infinity it made the NaN of, or NULL */
    uint32_t n_ranges;
    wf_blame_range ranges[WF_BLAME_RANGES]; /* of the first float inputs */
} wf_blame;

/* Runs the plan again, twice, on what is bound, with the draws of `key`, and finds the first node,
 * in order of execution, that made what is bad in `output`: NaN of what held none; or if `output`
 * holds no NaN, infinity of what was finite. Only values on the way to `output` that are as bad are
 * followed: a mask's -inf is nobody's fault. The outputs are written: bind them to memory that
 * nobody reads. Slow; for errors alone. Errors: as wf_plan_run. */
WF_MUST_USE wf_status wf_plan_blame(wf_plan *p, const wf_step_key *key, uint32_t output,
                                    wf_blame *out, wf_err *err);
/* In words, into text: `first bad value: Log "Log_3", input min 0 max 0.5`; "" for NOTHING. */
void wf_blame_text(const wf_blame *b, char *text, size_t size);

typedef struct wf_plan_usage {
    size_t arena_bytes;     /* what inner tensors take, by liveness, on host and device */
    size_t tensors_bytes;   /* what they would take without sharing */
    size_t constants_bytes; /* computed while planning, or brought by the graph */
    size_t workspace_bytes; /* the largest that a kernel asked for, on host and device */
    uint32_t n_nodes;       /* that a run executes */
    size_t device_bytes;    /* of arena, constants and workspace, what is not on the host */
    uint32_t n_on_host;     /* of the nodes; copies between host and device are none of them */
} wf_plan_usage;
wf_plan_usage wf_plan_memory(const wf_plan *p);
/* Writes which operations a plan for another device has the host compute, as "TopK, Unique"; "" for
 * none. */
void wf_plan_host_operations(const wf_plan *p, char *text, size_t size);

#endif
