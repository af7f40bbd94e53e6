/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/range.c - Range: start, start + delta, ... as long as limit is not
 * reached. */
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include <math.h>

/* The one element of a float constant. */
static bool float_of(const wf_value *v, double *out)
{
    if (!wf_value_is_constant(v) || wf_elems(v->known) != 1)
        return false;
    if (v->dtype == WF_F32)
        *out = *(const float *)v->known->data;
    else if (v->dtype == WF_F64)
        *out = *(const double *)v->known->data;
    else
        return false;
    return true;
}

static wf_status zero_step(wf_err *err)
{
    return wf_fail(err, WF_SHAPE, NULL, "delta is 0");
}

static wf_status float_length(const wf_node *n, wf_axis *axis, wf_err *err)
{
    double start, limit, delta, count;

    if (!float_of(n->in[0], &start) || !float_of(n->in[1], &limit) || !float_of(n->in[2], &delta))
        return WF_OK;
    if (delta == 0)
        return zero_step(err);
    count = ceil((limit - start) / delta);
    if (!(count < 0x1p53))
        return wf_fail(err, WF_SHAPE, NULL, "from %g to %g by %g has no end", start, limit, delta);
    *axis = wf_axis_of(count > 0 ? (int64_t)count : 0);
    return WF_OK;
}

/* Integers are followed: positions of an exported model are Range(0, sequence, 1). */
static wf_status int_length(const wf_node *n, wf_elem bounds[3], wf_axis *axis, wf_err *err)
{
    uint64_t apart, step;
    bool up;

    for (uint32_t i = 0; i < 3; i++) {
        wf_elem elems[WF_MAX_CARRIED];
        uint32_t count;

        if (!wf_value_elems(n->in[i], elems, &count) || count != 1)
            return WF_OK;
        bounds[i] = elems[0];
    }
    if (bounds[2].is_known && bounds[2].value == 0)
        return zero_step(err);
    if (bounds[0].is_known && bounds[0].value == 0 && bounds[2].is_known && bounds[2].value == 1 &&
        !bounds[1].is_known && bounds[1].symbol)
        *axis = wf_axis_of_elem(&bounds[1]);
    if (!bounds[0].is_known || !bounds[1].is_known || !bounds[2].is_known)
        return WF_OK;
    up = bounds[2].value > 0;
    apart = up ? (uint64_t)bounds[1].value - (uint64_t)bounds[0].value
               : (uint64_t)bounds[0].value - (uint64_t)bounds[1].value;
    step = up ? (uint64_t)bounds[2].value : -(uint64_t)bounds[2].value;
    if (up ? bounds[1].value <= bounds[0].value : bounds[1].value >= bounds[0].value)
        apart = 0;
    apart = apart ? (apart - 1) / step + 1 : 0;
    if (apart > INT64_MAX)
        return wf_fail(err, WF_SHAPE, NULL, "a range of more than 2^63 numbers");
    *axis = wf_axis_of((int64_t)apart);
    return WF_OK;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_dtype dtype = n->in[0]->dtype;
    wf_axis axis = wf_axis_unknown(-1);
    wf_elem bounds[3] = {wf_elem_unknown(), wf_elem_unknown(), wf_elem_unknown()};
    wf_elem elems[WF_MAX_CARRIED];

    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    if (wf_dtype_is_float(dtype))
        WF_TRY(float_length(n, &axis, err));
    else
        WF_TRY(int_length(n, bounds, &axis, err));
    wf_out_axes(n, 0, dtype, 1, &axis);
    if (axis.size < 0 || axis.size > WF_MAX_CARRIED || wf_dtype_is_float(dtype))
        return WF_OK;
    for (int64_t i = 0; i < axis.size; i++)
        elems[i] = wf_elem_of(bounds[0].value + i * bounds[2].value);
    return wf_out_carry(g, n, 0, (uint32_t)axis.size, elems, err);
}

const wf_op wf_op_range = WF_FOLDABLE(WF_DOMAIN_ONNX, "Range", 11, 3, 3, infer, .no_grad_in = 7);
