/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/pad.c - Pad, CenterCropPad, and PadGrad, which adds dy up where Pad took
 * from. Where an axis ends lies in lists made beforehand (maps.h), so one loop serves all modes. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/mapped.h"

#include <string.h>

/* How much lies before each axis, and what is put there. */
typedef struct border {
    int64_t before[WF_MAX_RANK];
    enum { CONSTANT, REFLECT, EDGE, WRAP } mode;
} border;

/* The remainder that is never negative. */
static int64_t modulo(int64_t a, int64_t n)
{
    return (a % n + n) % n;
}

static int64_t place(const void *arg, uint32_t axis, int64_t i, int64_t from)
{
    const border *b = arg;
    int64_t at;

    if (__builtin_sub_overflow(i, b->before[axis], &at)) /* cropped by more than any axis has */
        at = INT64_MAX;
    if (at >= 0 && at < from)
        return at;
    switch (b->mode) {
    case EDGE:
        return at < 0 ? 0 : from - 1;
    case WRAP:
        return modulo(at, from);
    case REFLECT:
        /* There and back, without the ends twice; a single element is its own mirror image. */
        at = from > 1 ? modulo(at, 2 * (from - 1)) : 0;
        return at < from ? at : 2 * (from - 1) - at;
    default:
        return -1;
    }
}

static wf_status border_of(const wf_node *node, const wf_tensor *pads, const wf_tensor *axes,
                           uint32_t rank, border *b, wf_err *err)
{
    const char *mode = wf_node_string(node, "mode", "constant");
    int64_t n;

    b->mode = mode[0] == 'r' ? REFLECT : mode[0] == 'e' ? EDGE : mode[0] == 'w' ? WRAP : CONSTANT;
    if ((wf_elems(pads) && !pads->data) || (axes && wf_elems(axes) && !axes->data))
        return wf_fail(err, WF_UNSUPPORTED, "make pads and axes constants",
                       "how much is padded depends on the run");
    n = axes ? wf_elems(axes) : rank;
    for (int64_t i = 0; i < n; i++)
        b->before[axes ? wf_axis_at(wf_int_at(axes, i), rank) : i] = wf_int_at(pads, i);
    return WF_OK;
}

static wf_status prepare_pad(wf_prep *prep, const wf_tensor *const in[],
                             const wf_tensor *const out[], wf_err *err)
{
    border b = {{0}, CONSTANT};

    WF_TRY(border_of(prep->node, in[1], in[3], in[0]->rank, &b, err));
    return wf_maps_make(out[0], in[0], place, &b, prep->arena, (wf_maps **)&prep->state, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    border b = {{0}, CONSTANT};

    WF_TRY(border_of(prep->node, in[2], in[3], in[1]->rank, &b, err));
    return wf_maps_make(in[0], out[0], place, &b, prep->arena, (wf_maps **)&prep->state, err);
}

/* Both round the middle down: the smaller half comes first. */
static wf_status prepare_center(wf_prep *prep, const wf_tensor *const in[],
                                const wf_tensor *const out[], wf_err *err)
{
    border b = {{0}, CONSTANT};

    for (uint32_t i = 0; i < out[0]->rank; i++) {
        int64_t more = out[0]->dims[i] - in[0]->dims[i];

        b.before[i] = more >= 0 ? more / 2 : -(-more / 2);
    }
    return wf_maps_make(out[0], in[0], place, &b, prep->arena, (wf_maps **)&prep->state, err);
}

const wf_kernel wf_kernels_pad[] = {
    WF_ROW("CenterCropPad", WF_TYPES_ALL, wf_run_gather, .prepare = prepare_center),
    WF_ROW("Pad", WF_TYPES_ALL, wf_run_gather, .prepare = prepare_pad),
    WF_ROW("PadGrad", WF_TYPES_FLOAT, wf_run_gather_grad, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare_grad),
    {0},
};
