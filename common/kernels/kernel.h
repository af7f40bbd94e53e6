/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/kernel.h - the front door of common/kernels: what computes an operation.
 *
 * One const row per operation, device and set of dtypes, in the file that is called as the
 * operation's under common/graph/ops (a test checks it); each device has its table of rows, the
 * cpu's is made from the list in common/kernels/cpu/meson.build. `prepare` runs once per shape, on
 * the host: it chooses a way, keeps what it worked out in memory of the plan, and says how much
 * workspace `run` needs. `run` queues the work on a stream (on the cpu: does it) and allocates
 * nothing.
 *
 * Shapes are checked before a kernel sees them (wf_infer); what depends on content (an index out of
 * range, a label that is no class) is checked by the kernel. Errors of kernels do not name the
 * node: who calls them does, or the device, where they come from a wait.
 *
 * Other headers of this room: pool.h (threads); for kernels of any device: shape/.
 */
#ifndef WF_KERNELS_KERNEL_H
#define WF_KERNELS_KERNEL_H

#include "common/base/arena.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/kernels/group.h"
#include "common/kernels/pool.h"
#include "common/kernels/update.h"
#include "common/tensor/compute.h"
#include "common/tensor/device.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_kernel wf_kernel;

/* What prepare is given and what it says. */
typedef struct wf_prep {
    const wf_node *node;     /* attributes */
    const wf_kernel *kernel; /* the row: several may share their functions */
    const wf_device *device; /* that run will get */
    wf_arena *arena;  /* of the plan: what prepare allocates here lives as long as run is called */
    uint32_t threads; /* of the pool that run will get */
    wf_compute compute; /* what f32 products may round their factors to, where a device is faster
                         * with it */
    bool untimed;   /* a library's algorithm is the one that it names first: none are measured */
    bool takes_any; /* with it: the plan will take another one, so workspace is for any of them */
    size_t workspace_bytes;       /* out: what run wants, 0 at the start */
    void *state;                  /* out: handed to run, read-only there */
    void (*release)(void *state); /* out: called once, after the last run, also when prepare
                                   * failed; NULL: the arena holds all of state */
    bool widens; /* out: run does not take the narrow tensors as they are; prepare is called again
                  * with float32 ones */
} wf_prep;

/* What run is given. */
typedef struct wf_run {
    const wf_node *node;
    const wf_kernel *kernel;
    const wf_device *device; /* where the tensors lie and the kernel runs */
    wf_stream *stream;       /* of the device: runs of one stream take effect in their order */
    wf_pool *pool;           /* the host's threads; NULL: run inline */
    void *workspace; /* of the device: the bytes that prepare asked for, aligned to 64, of undefined
                      * content; never NULL */
    const void *state;
    wf_rng_key key;              /* of (seed, node's name, epoch, split, batch) */
    const wf_rng_key *key_there; /* of a device that is not the host: the same in its memory, when
                                  * the kernel runs */
} wf_run;

/* Tensors of absent optional inputs and outputs are NULL, also past the node's own n_in or n_out up
 * to WF_KERNEL_PORTS. In prepare `data` is NULL but for constants, whose content lies on the host
 * there, whatever the device. In run `data` is memory of the device. */
enum { WF_KERNEL_PORTS = 8 };
typedef wf_status wf_prepare_fn(wf_prep *prep, const wf_tensor *const in[],
                                const wf_tensor *const out[], wf_err *err);
typedef wf_status wf_run_fn(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err);

/* Of an operation whose extents depend on content (NonZero): sets dims[i] [rank of output i] from
 * the inputs. wf_kernel_eval alone asks; a plan has no such nodes left. */
typedef wf_status wf_extents_fn(const wf_node *node, const wf_tensor *const in[],
                                int64_t dims[WF_KERNEL_PORTS][WF_MAX_RANK], wf_err *err);

#define WF_TYPE(dtype) (1u << (dtype))
#define WF_TYPES_FLOAT (WF_TYPE(WF_F32) | WF_TYPE(WF_F64))
#define WF_TYPES_INT (WF_TYPE(WF_I32) | WF_TYPE(WF_I64))
#define WF_TYPES_NUMBER (WF_TYPES_FLOAT | WF_TYPES_INT)
/* Every dtype of the graph: for kernels that move bytes. */
#define WF_TYPES_ALL                                                                               \
    (WF_TYPES_NUMBER | WF_TYPE(WF_U8) | WF_TYPE(WF_BOOL) | WF_TYPE(WF_F16) | WF_TYPE(WF_BF16))

enum { WF_TYPED_BY_OUTPUT = 255 };

struct wf_kernel {
    const char *op, *domain; /* domain NULL is ONNX's */
    uint8_t typed_by;        /* the input whose dtype chooses among rows, or WF_TYPED_BY_OUTPUT */
    uint32_t dtypes;         /* WF_TYPE bits that this row computes */
    uint32_t in_place;       /* bit i: output 0 may lie in the memory of input i, if as large */
    bool is_narrow; /* prepare and run of float32 may be given wf_device_rows.narrow too: see
                     * wf_prep.widens */
    bool is_view;   /* output 0 has the bytes of input 0: the plan shares memory; run copies */
    wf_prepare_fn *prepare; /* NULL: nothing to prepare */
    wf_run_fn *run;
    wf_extents_fn *extents; /* NULL: shapes follow from shapes */
};

/* A device and what computes on it. */
typedef struct wf_device_rows {
    const wf_device *device;
    const wf_kernel *const *files; /* [n_files]: lists of rows, each ended by one without op */
    size_t n_files;
    const wf_device_updates *updates; /* update.h; NULL: the device has none */
    const wf_device_groups *groups;   /* group.h; NULL: likewise */
    /* Of all narrow nodes (common/graph/narrow.h), without op; NULL: the device computes none. */
    const wf_kernel *widened;
    uint32_t narrow; /* WF_TYPE bits: what rows with is_narrow take as it is; values are kept so */
    bool keeps_convolved; /* convolutions make narrow results at no cost, and norms read them */
} wf_device_rows;

/* Makes a device known by its name; rows are borrowed for the rest of the process. The cpu is known
 * from the start. Others may use this room meanwhile, but for other calls of this. Errors:
 * WF_EXISTS; WF_FULL. */
WF_MUST_USE wf_status wf_device_add(const wf_device_rows *rows, wf_err *err);
/* The device of that name. Errors: WF_NOTFOUND, naming those that are known. */
WF_MUST_USE wf_status wf_device_find(const char *name, const wf_device **out, wf_err *err);
/* The same, and of a GPU ("cuda:0") that is not known yet: loads weft-cuda.so and makes it known.
 * Any thread may. Errors: WF_NOTFOUND for a name that is none;
 * WF_UNSUPPORTED without the plug-in, a library that it needs, a driver or the GPU, or for one that
 * is too old; WF_IO; WF_FULL. */
WF_MUST_USE wf_status wf_device_open(const char *name, const wf_device **out, wf_err *err);
/* The same for plans that are measured (wf_plan_options.measure_only): a GPU need not be there. In
 * a process that opens a device of that name in no other way. */
WF_MUST_USE wf_status wf_device_open_planned(const char *name, const wf_device **out, wf_err *err);

/* The row of a table for a node, whose values have their dtypes; for a narrow node that of float32.
 * Errors: WF_UNSUPPORTED, naming node, operation and dtype. */
WF_MUST_USE wf_status wf_kernel_in(const wf_device_rows *rows, const wf_node *node,
                                   const wf_kernel **out, wf_err *err);
/* The device's row for a node; for a narrow node `widened`, if the device has the operation in
 * float32. Errors: as of wf_kernel_in; WF_UNSUPPORTED for a narrow node of a device without it. */
WF_MUST_USE wf_status wf_kernel_find(const wf_node *node, const wf_device *device,
                                     const wf_kernel **out, wf_err *err);
/* For programs, at their start: OpenBLAS, which has one number of threads for the whole process,
 * runs on its caller's thread alone and ends its own threads, with kernels for this processor even
 * if it does not know it (cpu/product/blas.h). Kernels are cut into pieces for the threads of a
 * pool. */
void wf_kernels_own_process(void);
/* Whether this processor multiplies in bfloat16: without it WF_COMPUTE_BF16 changes nothing. */
bool wf_kernels_have_bf16(void);
/* Whether the device computes narrow nodes of that type, and multiplies what they keep: a GPU does,
 * a processor may. */
bool wf_kernels_keep_narrow(const wf_device *device, wf_dtype type);
/* Whether it then keeps those narrow too that a graph has so for GPUs alone
 * (common/graph/narrow.h). */
bool wf_kernels_keep_convolved(const wf_device *device);
/* Row i of the device's table, NULL past its end; for documentation and table-driven tests. */
const wf_kernel *wf_kernel_at(const wf_device *device, size_t i);

/* Whether the extents of the node's results depend on content: they are found by computing it. */
bool wf_kernel_counts(const wf_node *node);

/* Computes a single node on the cpu into fresh tensors, as constant folding wants it.
 *   in   [n_in]: tensors of the dtype and dims of node->in; NULL for what is absent
 *   out  [n_out], filled: tensors of the dtype and dims of node->out (which must all be known),
 * that the caller owns; NULL for outputs that are absent. Extents that depend on content may be
 * unknown in node->out. All NULL on failure.
 *   limit_bytes  of results, workspace and tables together, checked before they are made
 * Errors: WF_UNSUPPORTED when there is no kernel or an output's shape depends on the run, WF_SHAPE,
 * WF_INVALID, WF_NOMEM; each names the node. */
WF_MUST_USE wf_status wf_kernel_eval(const wf_node *node, uint32_t n_in,
                                     const wf_tensor *const in[], uint32_t n_out, wf_tensor *out[],
                                     size_t limit_bytes, wf_err *err);

#endif
