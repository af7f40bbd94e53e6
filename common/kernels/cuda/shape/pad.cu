/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/pad.cu - Pad, CenterCropPad, and PadGrad: a thread adds up what Pad
 * took from one element, in the order of dy. */
#include "common/kernels/cuda/shape/border.h"

namespace
{

/* ---- forward ---- */

wf_status pad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    return wf_border_around(run, *static_cast<const wf_border *>(run->state), in[0], in[2], out[0],
                            err);
}

wf_status center(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    return wf_border_around(run, wf_border_centred(in[0], out[0]), in[0], nullptr, out[0], err);
}

/* Of a tensor of x's rank. */
wf_status prepare(wf_prep *prep, const wf_tensor *x, const wf_tensor *pads, const wf_tensor *axes,
                  wf_err *err)
{
    wf_border *b = static_cast<wf_border *>(wf_arena_alloc(prep->arena, sizeof *b));

    if (!b)
        return wf_fail_nomem(err, sizeof *b);
    prep->state = b;
    return wf_border_of(prep->node, pads, axes, x->rank, b, err);
}

wf_status prepare_pad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                      wf_err *err)
{
    (void)out;
    return prepare(prep, in[0], in[1], in[3], err);
}

/* ---- gradient ---- */

/* The indices of an axis with its border that hold one element: first, first + gap, and the same
 * again each `period`. */
struct places {
    int64_t first, gap, period, count;

    WF_CODE int64_t at(int64_t i) const
    {
        return first + i / 2 * period + i % 2 * gap;
    }
};

/* How many of first, first + step... are below n. */
WF_CODE int64_t count_of(int64_t first, int64_t step, int64_t n)
{
    return first < n ? (n - 1 - first) / step + 1 : 0;
}

WF_CODE places each_of(int64_t first, int64_t step, int64_t n)
{
    return {first, step, 2 * step, count_of(first, step, n)};
}

/* Those of element k. */
WF_CODE places places_of(const wf_bordered &t, uint32_t axis, int64_t k)
{
    const int64_t before = t.border.before[axis], size = t.dims[axis], n = t.with[axis];
    const int64_t around = 2 * (size - 1);
    int64_t first = k + before, last = first, back;

    switch (t.border.mode) {
    case WF_BORDER_WRAP:
        return each_of(wf_modulo(first, size), size, n);
    case WF_BORDER_REFLECT:
        if (size == 1)
            return each_of(0, 1, n);
        first = wf_modulo(first, around);
        back = wf_modulo(before - k, around);
        if (first == back)
            return each_of(first, around, n);
        last = first < back ? back : first;
        first = first < back ? first : back;
        return {first, last - first, around,
                count_of(first, around, n) + count_of(last, around, n)};
    case WF_BORDER_EDGE:
        first = k == 0 || first < 0 ? 0 : first;
        last = k == size - 1 || last >= n ? n - 1 : last;
        return {first, 1, 2, last < first ? 0 : last - first + 1};
    case WF_BORDER_CONSTANT:
        break;
    }
    return {first, 0, 0, first >= 0 && first < n ? 1 : 0};
}

/* The element of dy that is number i of those that the places name. */
WF_CODE int64_t element_of(const wf_bordered &t, const places p[], int64_t i)
{
    int64_t at = 0, step = 1;

    for (uint32_t axis = t.rank; axis-- > 0; i /= p[axis].count) {
        at += p[axis].at(i % p[axis].count) * step;
        step *= t.with[axis];
    }
    return at;
}

template <class T> __global__ void add_up(const T *dy, T *dx, int64_t elems, wf_bordered t)
{
    for (int64_t e = wf_first(); e < elems; e += wf_all()) {
        places p[WF_MAX_RANK];
        int64_t rest = e, n = 1;
        double sum = 0;

        for (uint32_t axis = t.rank; axis-- > 0; rest /= t.dims[axis]) {
            p[axis] = places_of(t, axis, rest % t.dims[axis]);
            n *= p[axis].count;
        }
        for (int64_t i = 0; i < n; i++)
            sum += dy[element_of(t, p, i)];
        dx[e] = (T)sum;
    }
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    (void)out;
    return prepare(prep, in[1], in[2], in[3], err);
}

template <class T>
wf_status grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    wf_bordered t = wf_bordered_of(*static_cast<const wf_border *>(run->state), out[0], in[0]);
    int64_t elems = wf_elems(out[0]);

    if (elems == 0)
        return WF_OK;
    return wf_launch(run, "PadGrad", add_up<T>, wf_blocks(run, elems), err,
                     static_cast<const T *>(in[0]->data), static_cast<T *>(out[0]->data), elems, t);
}

} // namespace

#define GRAD(dtype, T)                                                                             \
    {                                                                                              \
        .op = "PadGrad", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),                       \
        .prepare = prepare_grad, .run = grad<T>                                                    \
    }

WF_CUDA_ROWS(pad){
    {.op = "CenterCropPad", .dtypes = WF_TYPES_ALL, .run = center},
    {.op = "Pad", .dtypes = WF_TYPES_ALL, .prepare = prepare_pad, .run = pad},
    GRAD(WF_F32, float),
    GRAD(WF_F64, double),
    {},
};
