/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/compile/compile.h - kernels that are compiled while weft runs.
 *
 * A kernel of a source is compiled once: all plans of a GPU share it, and a file keeps its code for
 * the next process (kept.h). The code's key is a hash of the source, the options with the GPU's
 * architecture, and NVRTC's version.
 *
 * Where there is no compiler, or it fails, the caller goes on without: a warning says why, once for
 * each GPU, and what failed is not tried again.
 *
 * Threading: any thread may call; one compiles at a time.
 */
#ifndef WF_KERNELS_CUDA_COMPILE_H
#define WF_KERNELS_CUDA_COMPILE_H

#include "common/base/status.h"
#include "common/kernels/cuda/calls.h"

typedef struct wf_cuda_compiled wf_cuda_compiled;

/* What a GPU has compiled: nothing yet. `calls` and `gpu` (its name) are borrowed. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_cuda_compiled_new(const wf_cuda_calls *calls, int index, const char *gpu,
                                           const wf_cuda_properties *has, wf_cuda_compiled **out,
                                           wf_err *err);
/* Frees *c with all its kernels, and sets it to NULL; NULL is fine. No plan uses them any more. */
void wf_cuda_compiled_free(wf_cuda_compiled **c);
/* The kernel `name` of a source, as wf_cuda_function.kernel wants it; NULL: it cannot be had. */
const void *wf_cuda_compiled_kernel(wf_cuda_compiled *c, const char *source, const char *name);

#endif
