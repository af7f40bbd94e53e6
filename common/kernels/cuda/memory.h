/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/memory.h - the memory that a kernel is given: elements of tensors, and pieces
 * of the workspace. */
#ifndef WF_KERNELS_CUDA_MEMORY_H
#define WF_KERNELS_CUDA_MEMORY_H

#include "common/kernels/cuda/code.h"

#include <cmath> /* before formulas of headers in C, which want math.h */

/* Elements of an operand; nullptr: it is absent. */
template <class T> inline const T *wf_in(const wf_tensor *t)
{
    return t ? static_cast<const T *>(t->data) : nullptr;
}

/* The same of a result. */
template <class T> inline T *wf_out(const wf_tensor *t)
{
    return t ? static_cast<T *>(t->data) : nullptr;
}

/* A piece of the run's workspace. */
template <class T> inline T *wf_room(const wf_run *run, size_t at)
{
    return reinterpret_cast<T *>(static_cast<char *>(run->workspace) + at);
}

/* Adds n things of `size` bytes to the workspace; *at is where they begin. Errors: WF_NOMEM for
 * more than memory can have. */
static inline wf_status wf_take_room(wf_prep *prep, int64_t n, size_t size, size_t *at, wf_err *err)
{
    size_t from = wf_align_up(prep->workspace_bytes, WF_ALIGNED), bytes = 0;

    if (!wf_mul_size((size_t)n, size, &bytes) || bytes > SIZE_MAX / 2 - from)
        return wf_fail_nomem(err, SIZE_MAX);
    *at = from;
    prep->workspace_bytes = from + bytes;
    return WF_OK;
}

/* A plan of that type, in the plan's arena. Errors: WF_NOMEM. */
template <class P> wf_status wf_new_plan(wf_prep *prep, P **out, wf_err *err)
{
    P *p = static_cast<P *>(wf_arena_alloc(prep->arena, sizeof *p));

    prep->state = *out = p;
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    *p = P{};
    return WF_OK;
}

#endif
