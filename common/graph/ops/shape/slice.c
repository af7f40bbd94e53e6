/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/slice.c - Slice and SliceGrad. */
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* Slice: starts, ends, axes and steps are inputs; negative ones count from the end, and all are
 * cut to the axis. */

typedef struct range {
    wf_elem start, end, step;
} range;

/* Brings start and end of a known range into an axis of known size; returns the number of elements.
 */
static int64_t clamp(range *r, int64_t size)
{
    int64_t step = r->step.value, start = r->start.value, end = r->end.value;
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;

    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
    start = WF_MIN(WF_MAX(start, step > 0 ? 0 : WF_MIN(0, size - 1)), high);
    end = WF_MIN(WF_MAX(end, low), high);
    r->start.value = start;
    r->end.value = end;
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    return start > end ? (int64_t)((uint64_t)(start - end - 1) / -(uint64_t)step) + 1 : 0;
}

/* What is left of an axis. */
static wf_axis cut(const wf_axis *axis, range r)
{
    bool from_zero = r.start.is_known && r.start.value == 0;
    bool by_one = r.step.is_known && r.step.value == 1;
    wf_axis end = wf_axis_of_elem(&r.end);

    if (from_zero && by_one && axis->size < 0 &&
        ((r.end.is_known && r.end.value >= INT32_MAX) ||
         (!r.end.is_known && wf_axis_same(axis, &end))))
        return *axis;
    if (!r.start.is_known || !r.end.is_known || !r.step.is_known || axis->size < 0)
        return wf_axis_unknown(axis->bound);
    return wf_axis_of(clamp(&r, axis->size));
}

/* The ranges by axis; whole ones where none is given. *known is false when it is not known which
 * axes are cut. */
static wf_status ranges(const wf_node *n, uint32_t rank, range by_axis[], bool *known, wf_err *err)
{
    wf_elem lists[4][WF_MAX_CARRIED];
    uint32_t count[4] = {0};
    bool there[4];
    static const char *const names[] = {"starts", "ends", "axes", "steps"};

    *known = false;
    for (uint32_t i = 0; i < rank; i++)
        by_axis[i] = (range){wf_elem_of(0), wf_elem_of(INT64_MAX), wf_elem_of(1)};
    for (uint32_t k = 0; k < 4; k++) {
        there[k] = wf_node_has_in(n, k + 1);
        if (!there[k])
            continue;
        WF_TRY(wf_need_int(n, k + 1, names[k], err));
        if (!wf_value_elems(n->in[k + 1], lists[k], &count[k]))
            return WF_OK;
        if (count[k] != count[0])
            return wf_fail(err, WF_SHAPE, NULL, "%u starts and %u %s", count[0], count[k],
                           names[k]);
    }
    for (uint32_t i = 0; i < count[0]; i++) {
        uint32_t axis;

        if (there[2] && !lists[2][i].is_known)
            return WF_OK;
        WF_TRY(wf_axis_number(there[2] ? lists[2][i].value : i, rank, &axis, err));
        by_axis[axis].start = lists[0][i];
        by_axis[axis].end = lists[1][i];
        if (there[3])
            by_axis[axis].step = lists[3][i];
        if (by_axis[axis].step.is_known && by_axis[axis].step.value == 0)
            return wf_fail(err, WF_SHAPE, NULL, "a step of 0 along axis %u", axis);
    }
    *known = true;
    return WF_OK;
}

static wf_status carry(wf_graph *g, wf_node *n, range r, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED], out[WF_MAX_CARRIED];
    uint32_t count;
    int64_t left;

    if (!wf_value_elems(n->in[0], elems, &count) || !r.start.is_known || !r.end.is_known ||
        !r.step.is_known)
        return WF_OK;
    left = clamp(&r, count);
    for (int64_t i = 0; i < left; i++)
        out[i] = elems[r.start.value + i * r.step.value];
    return wf_out_carry(g, n, 0, (uint32_t)left, out, err);
}

static wf_status infer_slice(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    range by_axis[WF_MAX_RANK];
    wf_axis axes[WF_MAX_RANK];
    bool known;

    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(ranges(n, (uint32_t)x->rank, by_axis, &known, err));
    for (int32_t i = 0; i < x->rank; i++)
        axes[i] = known ? cut(&x->axes[i], by_axis[i]) : wf_axis_unknown(x->axes[i].bound);
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return known && x->rank == 1 ? carry(g, n, by_axis[0], err) : WF_OK;
}

const wf_op wf_op_slice = WF_FOLDABLE(WF_DOMAIN_ONNX, "Slice", 13, 3, 5, infer_slice,
                                      .note = "bounds, axes and steps known before the run",
                                      .no_grad_in = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
                                      WF_GRAD_NODE("SliceGrad", "d0 x0 x1 x2 x3 x4"));

/* ai.weft SliceGrad: zeros of the shape of x, and dy where Slice with the same starts, ends, axes
 * and steps takes from. */

const wf_op wf_op_slice_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "SliceGrad", 1, 4, 6, wf_infer_grad_of_1,
                .means = "(dy, x, starts, ends, (axes), (steps)) -> as x; zeros, and dy where "
                         "Slice took from; of x only the shape is read");
