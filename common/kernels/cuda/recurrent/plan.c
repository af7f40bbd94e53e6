/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/recurrent/plan.c
 *
 * Products run one after the other, so they share workspace. A matrix may begin behind the start of
 * a tensor, at the second direction, at a step or at gate h, which decides how it is aligned.
 */
#include "common/kernels/cuda/recurrent/plan.h"
#include "common/base/cc.h"
#include "common/base/size.h"

/* Bytes to which the tensors of a plan and the arrays of the workspace are aligned. */
enum { ALIGNED = 64 };

static void release(void *state)
{
    wf_layer_plan *v = state;

    for (size_t i = 0; i < WF_COUNT(v->products); i++)
        wf_cuda_gemm_free(v->products[i]);
}

/* Plans a product of m x k by k x n. `offsets`: elements by which matrices may begin behind the
 * start of a tensor, or-ed. */
static wf_status add_product(wf_prep *prep, wf_layer_plan *v, wf_layer_product name, wf_cuda_gemm g,
                             int64_t offsets, wf_err *err)
{
    uint64_t aligned = ALIGNED | (uint64_t)offsets * v->of.size;
    size_t most = prep->workspace_bytes;

    g.dtype = v->of.dtype;
    g.alpha = 1;
    g.batch = 1;
    g.aligned = (uint32_t)(aligned & (~aligned + 1));
    if (g.m == 0 || g.n == 0 || g.k == 0) {
        v->zeros[name] = g.beta == 0 ? (size_t)(g.m * g.n) * v->of.size : 0;
        return WF_OK;
    }
    WF_TRY(wf_cuda_gemm_new(prep, &g, &v->products[name], err));
    prep->workspace_bytes = WF_MAX(prep->workspace_bytes, most);
    return WF_OK;
}

static wf_cuda_gemm shape_of(int64_t m, int64_t n, int64_t k)
{
    return (wf_cuda_gemm){.m = m, .n = n, .k = k};
}

/* Elements between the parts of two directions, or 0. */
static int64_t between(const wf_recurrent_sizes *s, int64_t per_direction)
{
    return s->dirs > 1 ? per_direction : 0;
}

/* Blocks read R once a step each, which is worth a launch a step until there are more blocks than
 * the GPU runs at a time. */
static bool is_at_once(const wf_prep *prep, const wf_recurrent_sizes *s)
{
    int64_t processors = wf_cuda_gpu_of(prep->device)->has.processors;

    return s->dtype == WF_F32 && !wf_recurrent_two(s) && s->hidden > 0 && s->hidden % 4 == 0 &&
           s->hidden <= WF_STEPS_HIDDEN && s->gates * s->hidden <= WF_STEPS_GATES &&
           s->batch <= 2 * processors * WF_STEPS_ROWS;
}

static wf_status add_forward(wf_prep *prep, wf_layer_plan *v, wf_err *err)
{
    const wf_recurrent_sizes *s = &v->of;
    int64_t h = s->hidden, n = s->gates * h, rows = s->steps * s->batch;
    wf_cuda_gemm input = shape_of(rows, n, s->input);
    wf_cuda_gemm state = shape_of(s->batch, wf_layer_early(s) * h, h);
    wf_cuda_gemm late = shape_of(s->batch, h, h);

    input.trans_b = state.trans_b = late.trans_b = true;
    WF_TRY(add_product(prep, v, WF_LAYER_INPUT, input,
                       between(s, n * s->input) | between(s, rows * n), err));
    if (v->at_once)
        return WF_OK;
    WF_TRY(add_product(prep, v, WF_LAYER_STATE, state, between(s, n * h), err));
    if (!wf_recurrent_two(s))
        return WF_OK;
    return add_product(prep, v, WF_LAYER_STATE_LATE, late,
                       between(s, n * h) | 2 * h * h | s->batch * h | between(s, rows * h), err);
}

/* grads: the outputs, NULL for those that nobody wants. */
static wf_status add_back(wf_prep *prep, wf_layer_plan *v, const wf_tensor *const grads[],
                          wf_err *err)
{
    const wf_recurrent_sizes *s = &v->of;
    int64_t h = s->hidden, n = s->gates * h, rows = s->steps * s->batch,
            early = wf_layer_early(s) * h;
    int64_t of_w = between(s, n * s->input), of_r = between(s, n * h);
    bool two = wf_recurrent_two(s);
    wf_cuda_gemm back = shape_of(s->batch, h, early), dx = shape_of(rows, s->input, early);
    wf_cuda_gemm dx_more = dx, dx_late = shape_of(rows, s->input, h);
    wf_cuda_gemm dw = shape_of(early, s->input, rows), dw_late = shape_of(h, s->input, rows);
    wf_cuda_gemm dr = shape_of(early, h, rows), dr_late = shape_of(h, h, rows);

    back.beta = dx_more.beta = dx_late.beta = 1;
    dw.trans_a = dw_late.trans_a = dr.trans_a = dr_late.trans_a = true;
    if (!v->at_once)
        WF_TRY(add_product(prep, v, WF_LAYER_STATE_BACK, back, of_r | s->batch * early, err));
    if (two)
        WF_TRY(add_product(prep, v, WF_LAYER_STATE_BACK_LATE, shape_of(s->batch, h, h),
                           of_r | 2 * h * h | s->batch * h, err));
    if (grads[0]) {
        WF_TRY(add_product(prep, v, WF_LAYER_DX, dx, of_w, err));
        if (s->dirs > 1)
            WF_TRY(add_product(prep, v, WF_LAYER_DX_MORE, dx_more, of_w, err));
        if (two)
            WF_TRY(add_product(prep, v, WF_LAYER_DX_LATE, dx_late, of_w | 2 * h * s->input, err));
    }
    if (grads[1]) {
        WF_TRY(add_product(prep, v, WF_LAYER_DW, dw, of_w, err));
        if (two)
            WF_TRY(add_product(prep, v, WF_LAYER_DW_LATE, dw_late, of_w | 2 * h * s->input, err));
    }
    if (grads[2]) {
        WF_TRY(add_product(prep, v, WF_LAYER_DR, dr, of_r, err));
        if (two)
            WF_TRY(add_product(prep, v, WF_LAYER_DR_LATE, dr_late,
                               of_r | 2 * h * h | between(s, rows * h), err));
    }
    return WF_OK;
}

/* Room for count elements; SIZE_MAX in *end stays. */
static size_t carve(const wf_recurrent_sizes *s, size_t *end, int64_t rows, int64_t columns)
{
    size_t begin = *end, bytes;

    if (*end == SIZE_MAX || !wf_mul_size((size_t)rows, (size_t)columns, &bytes) ||
        !wf_mul_size(bytes, s->size, &bytes) || !wf_add_size(bytes, *end, &bytes) ||
        !wf_add_size(bytes, ALIGNED, &bytes))
        *end = SIZE_MAX;
    else
        *end = wf_align_up(bytes - ALIGNED, ALIGNED);
    return begin;
}

static wf_status carve_all(wf_prep *prep, wf_layer_plan *v, wf_err *err)
{
    const wf_recurrent_sizes *s = &v->of;
    int64_t h = s->hidden, n = s->gates * h, rows = s->steps * s->batch,
            early = wf_layer_early(s) * h;
    bool two = wf_recurrent_two(s), forward = !v->back || s->again;
    size_t end = wf_align_up(prep->workspace_bytes, ALIGNED);
    wf_layer_rooms *at = &v->at;

    at->x = carve(s, &end, s->batch_first ? rows : 0, s->input);
    at->dx = carve(s, &end, s->batch_first && v->back ? rows : 0, s->input);
    at->activations = carve(s, &end, forward && !s->keeps ? rows : 0, n);
    at->slope = carve(s, &end, s->again && s->clip > 0 ? rows : 0, n);
    at->beside = carve(s, &end, s->again ? rows : forward && two && !s->keeps ? s->batch : 0, h);
    at->one = carve(s, &end, forward ? s->batch : 0, early);
    at->late = carve(s, &end, forward && two ? s->batch : 0, h);
    at->h = carve(s, &end, s->batch, h);
    at->cell = carve(s, &end, s->batch, h);
    at->turned = carve(s, &end, forward && v->at_once ? h : 0, n);
    at->before = carve(s, &end, v->back ? rows : 0, h);
    at->dearly = carve(s, &end, v->back ? rows : 0, early);
    at->dlate = carve(s, &end, v->back && two ? rows : 0, h);
    at->drecurrent = carve(s, &end, v->back && s->kind == WF_GRU && s->linear ? rows : 0, n);
    at->dh = carve(s, &end, v->back ? s->batch : 0, h);
    at->dc = carve(s, &end, v->back ? s->batch : 0, h);
    at->dreset = carve(s, &end, v->back && two ? s->batch : 0, h);
    if (end == SIZE_MAX)
        return wf_fail_nomem(err, SIZE_MAX);
    prep->workspace_bytes = end;
    return WF_OK;
}

static wf_layer_plan *new_plan(wf_prep *prep)
{
    wf_layer_plan *v = wf_arena_alloc(prep->arena, sizeof *v);

    if (v) {
        *v = (wf_layer_plan){0};
        prep->state = v;
        prep->release = release;
    }
    return v;
}

wf_status wf_layer_prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                           wf_err *err)
{
    wf_layer_plan *v = new_plan(prep);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    WF_TRY(wf_recurrent_sizes_of(prep->node, in, out, &v->of, err));
    v->at_once = is_at_once(prep, &v->of);
    WF_TRY(add_forward(prep, v, err));
    return carve_all(prep, v, err);
}

wf_status wf_layer_prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                                const wf_tensor *const out[], wf_err *err)
{
    wf_layer_plan *v = new_plan(prep);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    v->back = true;
    WF_TRY(wf_recurrent_grad_sizes_of(prep->node, in, &v->of, err));
    v->at_once = is_at_once(prep, &v->of);
    if (v->of.again)
        WF_TRY(add_forward(prep, v, err));
    WF_TRY(add_back(prep, v, out, err));
    return carve_all(prep, v, err);
}
