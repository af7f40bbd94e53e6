/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/reduce.h - reducing a tensor over any of its axes: a block gathers an
 * output after the other, in double or 64 bits, in an order that depends on the shape alone.
 *
 * How it reduces is a type with the members
 *
 *   A             what it gathers in
 *   first()       before any element
 *   take(A, T)    one element more
 *   join(A, A)    two that are gathered
 *   end(A, n)     the result, of n elements
 */
#ifndef WF_KERNELS_CUDA_REDUCE_H
#define WF_KERNELS_CUDA_REDUCE_H

#include "common/kernels/cuda/elementwise/each.h"
extern "C" {
#include "common/kernels/shape/reduce.h"
}

template <class H> struct wf_joiner {
    WF_CODE typename H::A operator()(typename H::A x, typename H::A y) const
    {
        return H::join(x, y);
    }
};

template <class T, class R, class H>
__global__ void wf_reduce_block(const T *x, R *y, wf_reduce_plan p)
{
    for (int64_t out = blockIdx.x; out < p.kept.elems; out += gridDim.x) {
        const T *from = x + wf_at(p.kept, 0, out);
        typename H::A all = H::first();

        for (int64_t i = threadIdx.x; i < p.reduced.elems; i += blockDim.x)
            all = H::take(all, from[wf_at(p.reduced, 0, i)]);
        all = wf_join_block(all, H::first(), wf_joiner<H>());
        if (threadIdx.x == 0)
            y[out] = (R)H::end(all, p.reduced.elems);
    }
}

/* out = in reduced by the plan in run->state, an R of Ts. */
template <class T, class R, class H>
wf_status wf_reduce(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                    wf_err *err)
{
    const wf_reduce_plan *p = static_cast<const wf_reduce_plan *>(run->state);

    if (p->kept.elems == 0)
        return WF_OK;
    return wf_launch_meeting(run, run->node->op->name, wf_reduce_block<T, R, H>,
                             wf_blocks(run, p->kept.elems * WF_BLOCK), wf_threads(p->reduced.elems),
                             err, static_cast<const T *>(in[0]->data),
                             static_cast<R *>(out[0]->data), *p);
}

/* A plan for the axes in mask, in the plan's arena. Errors: WF_NOMEM. */
static inline wf_status wf_reduce_over(wf_prep *prep, const wf_tensor *x, uint32_t mask,
                                       wf_err *err)
{
    wf_reduce_plan *p = static_cast<wf_reduce_plan *>(wf_arena_alloc(prep->arena, sizeof *p));

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    wf_reduce_plan_of(x, mask, p);
    prep->state = p;
    return WF_OK;
}

/* Sums, in double or 64 bits. */
template <class Of> struct wf_sum {
    using A = Of;
    static WF_CODE A first()
    {
        return 0;
    }
    template <class T> static WF_CODE A take(A all, T x)
    {
        return all + (A)x;
    }
    static WF_CODE A join(A x, A y)
    {
        return x + y;
    }
    static WF_CODE A end(A all, int64_t)
    {
        return all;
    }
};

#endif
