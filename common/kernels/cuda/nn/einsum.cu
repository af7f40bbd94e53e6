/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/einsum.cu - Einsum: packing, products, and a walk to the result
 * (shape/einsum.h). An operand or a result that lies as the product has it is not copied. */
#include "common/kernels/cuda/product/batch.h"
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/einsum.h"
}

namespace
{

struct plan {
    wf_einsum_plan e;
    wf_batch product;
    size_t packed[WF_EINSUM_OPERANDS], made; /* in the workspace */
};

/* Whether a walk goes through its tensor as it lies. */
bool is_dense(const wf_walk &w)
{
    return w.rank == 1 && (w.strides[0][0] == 1 || w.dims[0] == 1);
}

bool is_packed(const wf_packing &p)
{
    return p.alone == 1 && is_dense(p.walk);
}

/* A block sums what an operand has alone, for one element after the other. */
template <class T> __global__ void sum_alone(const T *x, wf_packing p, T *to)
{
    for (int64_t e = blockIdx.x; e < p.elems; e += gridDim.x) {
        double all = 0;

        for (int64_t i = threadIdx.x; i < p.alone; i += blockDim.x)
            all += (double)x[wf_at(p.walk, 0, e * p.alone + i)];
        all = wf_join_block(all, 0.0, wf_plus());
        if (threadIdx.x == 0)
            to[e] = (T)all;
    }
}

template <class T> __global__ void spread(const T *x, wf_walk w, T *to)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all())
        to[wf_at(w, 0, i)] = x[i];
}

void release(void *state)
{
    wf_batch_free(&static_cast<plan *>(state)->product);
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    const wf_dtype dtype = out[0]->dtype;
    const size_t size = wf_dtype_size(dtype);
    plan *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    prep->release = release;
    WF_TRY(wf_einsum_plan_of(prep->node, in, out[0], &p->e, err));
    p->product = {dtype, false, false, p->e.batch, p->e.m, p->e.n, p->e.k, 1, NULL};
    if (p->e.n_in == 2)
        WF_TRY(wf_batch_new(prep, &p->product, err));
    for (uint32_t i = 0; i < p->e.n_in; i++)
        if (!is_packed(p->e.in[i]))
            WF_TRY(wf_take_room(prep, p->e.in[i].elems, size, &p->packed[i], err));
    return is_dense(p->e.result) ? WF_OK
                                 : wf_take_room(prep, p->e.result.elems, size, &p->made, err);
}

/* Puts operand i where the product reads it; *at is there. */
template <class T>
wf_status pack(const wf_run *run, const plan *p, uint32_t i, const wf_tensor *t, const T **at,
               wf_err *err)
{
    const wf_packing &how = p->e.in[i];
    T *to = wf_room<T>(run, p->packed[i]);

    *at = is_packed(how) ? wf_in<T>(t) : to;
    if (is_packed(how) || how.elems == 0)
        return WF_OK;
    if (how.alone == 1)
        return wf_launch(run, "pack", wf_gather_walk<T>, wf_blocks(run, how.elems), err,
                         wf_in<T>(t), to, how.walk);
    return wf_launch_meeting(run, "pack", sum_alone<T>, wf_blocks(run, how.elems * WF_BLOCK),
                             wf_threads(how.alone), err, wf_in<T>(t), how, to);
}

template <class T>
wf_status einsum(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    T *made = is_dense(p->e.result) ? wf_out<T>(out[0]) : wf_room<T>(run, p->made);
    const T *at[WF_EINSUM_OPERANDS];

    if (p->e.result.elems == 0)
        return WF_OK;
    for (uint32_t i = 0; i < p->e.n_in; i++)
        WF_TRY(pack(run, p, i, in[i], &at[i], err));
    if (p->e.n_in == 2)
        WF_TRY(wf_batch_go(&p->product, run, at[0], at[1], made, err));
    if (p->e.n_in == 2 && is_dense(p->e.result))
        return WF_OK;
    return wf_launch(run, "Einsum", spread<T>, wf_blocks(run, p->e.result.elems), err,
                     p->e.n_in == 2 ? static_cast<const T *>(made) : at[0], p->e.result,
                     wf_out<T>(out[0]));
}

} // namespace

WF_CUDA_ROWS(einsum){
    {.op = "Einsum", .dtypes = WF_TYPE(WF_F32), .prepare = prepare, .run = einsum<float>},
    {.op = "Einsum", .dtypes = WF_TYPE(WF_F64), .prepare = prepare, .run = einsum<double>},
    {},
};
