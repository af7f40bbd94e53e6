/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/reduce.h - reducing a tensor over any of its axes, in double or 64
 * bits, in an order that depends on the shape alone.
 *
 * A power of 2 of threads gathers one output; the threads of a block have as many outputs as there
 * is room for. Where the elements of one output are neighbours, neighbouring threads take them;
 * where neighbouring outputs have neighbouring elements, as along axis 0 of a matrix, neighbouring
 * threads have neighbouring outputs. The elements of few outputs are cut into parts, each of which
 * is gathered by another block, and the parts are reduced like a tensor of their own.
 *
 * How it reduces is a type with the members
 *
 *   A             what it gathers in, of 8 bytes at most
 *   begin(out)    what follows is for output `out`
 *   first()       before any element
 *   take(A, T, i) one element more, number i of the output's
 *   join(A, A)    two that are gathered
 *   end(A, n)     the result, of n elements
 */
#ifndef WF_KERNELS_CUDA_REDUCE_H
#define WF_KERNELS_CUDA_REDUCE_H

#include "common/kernels/cuda/elementwise/each.h"
extern "C" {
#include "common/kernels/shape/reduce.h"
}

enum {
    WF_REDUCE_EACH = 16,       /* elements of an output that a thread takes before another helps */
    WF_REDUCE_PART = 16,       /* elements that each thread takes of a part, at least */
    WF_REDUCE_BLOCKS = 1024,   /* blocks that outputs are cut into parts for, at most */
    WF_REDUCE_ACROSS = WF_WARP /* neighbouring outputs, whose elements fill a line of memory */
};

typedef struct wf_reduction {
    wf_reduce_plan plan;
    bool across;          /* neighbouring threads have neighbouring outputs */
    int64_t threads;      /* of an output */
    int64_t parts, share; /* parts of an output; elements of each */
} wf_reduction;

static inline wf_reduction wf_reduction_of(const wf_reduce_plan &p)
{
    const int64_t n = p.reduced.elems, outputs = p.kept.elems;
    int64_t wide = 1, tiles;
    wf_reduction r = {};

    r.plan = p;
    r.across = p.kept.dims[p.kept.rank - 1] > 1 && p.kept.strides[0][p.kept.rank - 1] == 1 &&
               p.reduced.strides[0][p.reduced.rank - 1] != 1;
    while (r.across && wide < WF_REDUCE_ACROSS && wide < outputs)
        wide *= 2;
    r.threads = 1;
    while (r.threads * wide < WF_BLOCK && r.threads * WF_REDUCE_EACH < n)
        r.threads *= 2;
    tiles = WF_MAX(wf_ceil_div(outputs * r.threads, WF_BLOCK), (int64_t)1);
    r.parts =
        WF_MAX(WF_MIN(WF_REDUCE_BLOCKS / tiles, n / (r.threads * WF_REDUCE_PART)), (int64_t)1);
    r.share = wf_ceil_div(n, r.parts);
    return r;
}

/* Workspace for a reduction. */
static inline size_t wf_reduce_bytes(const wf_reduction &r)
{
    return r.parts > 1 ? (size_t)(r.parts * r.plan.kept.elems) * sizeof(double) : 0;
}

/* y, of more than one part: parts [parts, outputs]. */
template <class T, class R, class H>
__global__ void wf_reduce_block(wf_from<T> x, wf_to<R> y, typename H::A *parts, wf_reduction r,
                                int64_t n, H h)
{
    using A = typename H::A;
    WF_SHARED(A, gathered, WF_BLOCK);
    const int64_t outputs = r.plan.kept.elems, threads = r.threads, lanes = WF_BLOCK / threads;
    const int64_t tiles = (outputs + lanes - 1) / lanes;
    const int64_t lane = r.across ? threadIdx.x % lanes : threadIdx.x / threads;
    const int64_t own = r.across ? threadIdx.x / lanes : threadIdx.x % threads;
    const int64_t cell = own * lanes + lane;

    for (int64_t job = blockIdx.x; job < tiles * r.parts; job += gridDim.x) {
        const int64_t out = job % tiles * lanes + lane, part = job / tiles;
        const int64_t begin = part * r.share, rest = r.plan.reduced.elems - begin;
        const int64_t end = begin + (rest < r.share ? rest : r.share);
        A all = h.first();

        if (out < outputs) {
            const wf_from<T> from = x + wf_at(r.plan.kept, 0, out);

            h.begin(out);
            for (int64_t i = begin + own; i < end; i += threads)
                all = h.take(all, from[wf_at(r.plan.reduced, 0, i)], i);
        }
        gathered[cell] = all;
        for (int64_t half = threads / 2; half > 0; half /= 2) {
            __syncthreads();
            if (own < half) {
                all = h.join(all, gathered[cell + half * lanes]);
                gathered[cell] = all;
            }
        }
        if (own == 0 && out < outputs && r.parts > 1)
            parts[part * outputs + out] = all;
        else if (own == 0 && out < outputs)
            y[out] = (wf_number<R>)h.end(all, n);
        __syncthreads(); /* before the next job writes */
    }
}

/* Takes what is gathered already. */
template <class H> struct wf_joins : H {
    using A = typename H::A;

    WF_CODE A take(A all, A part, int64_t) const
    {
        return H::join(all, part);
    }
};

template <class T, class R, class H>
wf_status wf_reduce_once(const wf_run *run, const wf_reduction &r, wf_from<T> x, wf_to<R> y,
                         void *parts, int64_t n, H h, wf_err *err)
{
    return wf_launch_meeting(run, run->node->op->name, wf_reduce_block<T, R, H>,
                             wf_blocks(run, r.plan.kept.elems * r.threads * r.parts), WF_BLOCK, err,
                             x, y, static_cast<typename H::A *>(parts), r, n, h);
}

/* y = x reduced, an R of Ts; `room` has wf_reduce_bytes. */
template <class T, class R, class H>
wf_status wf_reduce_by(const wf_run *run, const wf_reduction &r, wf_from<T> x, wf_to<R> y,
                       void *room, H h, wf_err *err)
{
    using A = typename H::A;
    const int64_t outputs = r.plan.kept.elems, n = r.plan.reduced.elems;
    wf_reduction joins = {};

    if (outputs == 0)
        return WF_OK;
    WF_TRY((wf_reduce_once<T, R, H>(run, r, x, y, room, n, h, err)));
    if (r.parts == 1)
        return WF_OK;
    joins.plan.kept = {1, 1, outputs, {outputs}, {{1}}};
    joins.plan.reduced = {1, 1, r.parts, {r.parts}, {{outputs}}};
    joins = wf_reduction_of(joins.plan);
    return wf_reduce_once<A, R, wf_joins<H>>(run, joins, static_cast<const A *>(room), y, nullptr,
                                             n, wf_joins<H>{h}, err);
}

/* out = in reduced as run->state has it. */
template <class T, class R, class H>
wf_status wf_reduce(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                    wf_err *err)
{
    return wf_reduce_by<T, R, H>(run, *static_cast<const wf_reduction *>(run->state),
                                 wf_read<T>(in[0]), wf_write<R>(out[0]), run->workspace, H{}, err);
}

/* A reduction, in the plan's arena, and its workspace. Errors: WF_NOMEM. */
static inline wf_status wf_reduce_as(wf_prep *prep, const wf_reduce_plan &p, wf_err *err)
{
    wf_reduction *r = static_cast<wf_reduction *>(wf_arena_alloc(prep->arena, sizeof *r));

    if (!r)
        return wf_fail_nomem(err, sizeof *r);
    *r = wf_reduction_of(p);
    prep->state = r;
    prep->workspace_bytes = wf_reduce_bytes(*r);
    return WF_OK;
}

/* One of the axes in mask. */
static inline wf_status wf_reduce_over(wf_prep *prep, const wf_tensor *x, uint32_t mask,
                                       wf_err *err)
{
    wf_reduce_plan p;

    wf_reduce_plan_of(x, mask, &p);
    return wf_reduce_as(prep, p, err);
}

/* For those whose outputs are all reduced alike. */
struct wf_alike {
    WF_CODE void begin(int64_t)
    {
    }
};

/* Sums, in double or 64 bits. */
template <class Of> struct wf_sum : wf_alike {
    using A = Of;
    static WF_CODE A first()
    {
        return 0;
    }
    template <class T> static WF_CODE A take(A all, T x, int64_t)
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
