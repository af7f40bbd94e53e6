/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/pad.c - CenterCropPad, Pad and PadGrad. */
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* Pad: input 1 says how much goes before each axis, then how much after (less than 0 takes off);
 * input 3 names the axes, all when absent. attr mode says what is put there: input 2 or 0, the
 * mirrored inside, the edge, or the other end. */

static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};

/* What an axis becomes. */
static wf_status padded(const wf_node *n, uint32_t at, const wf_elem *before, const wf_elem *after,
                        wf_axis *axis, wf_err *err)
{
    const char *mode = wf_node_string(n, "mode", "constant");
    int64_t more, size;

    if (!before->is_known || !after->is_known ||
        __builtin_add_overflow(before->value, after->value, &more)) {
        *axis = wf_axis_unknown(-1);
        return WF_OK;
    }
    if (axis->size < 0) {
        if (before->value || after->value)
            *axis = wf_axis_unknown(
                axis->bound >= 0 && more < INT32_MAX ? WF_MAX(axis->bound + more, (int64_t)0) : -1);
        return WF_OK;
    }
    if (__builtin_add_overflow(axis->size, more, &size) || size < 0)
        return wf_fail(err, WF_SHAPE, NULL, "axis %u of %lld, padded by %lld and %lld", at,
                       (long long)axis->size, (long long)before->value, (long long)after->value);
    if (axis->size == 0 && size > 0 && strcmp(mode, "constant") != 0)
        return wf_fail(err, WF_SHAPE, NULL, "axis %u is empty, and has nothing to %s", at, mode);
    *axis = wf_axis_of(size);
    return WF_OK;
}

static wf_status infer_pad(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_elem pads[WF_MAX_CARRIED], named[WF_MAX_CARRIED];
    uint32_t count, n_named = 0, mask = 0;
    wf_axis axes[WF_MAX_RANK];
    bool known;

    (void)g;
    WF_TRY(wf_need_choice(n, "mode", modes, err));
    WF_TRY(wf_need_int(n, 1, "pads", err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    memcpy(axes, x->axes, sizeof axes);
    known = wf_value_elems(n->in[1], pads, &count);
    n_named = (uint32_t)x->rank;
    if (wf_node_has_in(n, 3)) {
        WF_TRY(wf_need_int(n, 3, "axes", err));
        known = wf_value_elems(n->in[3], named, &n_named) && known;
    }
    if (known && count != 2 * n_named)
        return wf_fail(err, WF_SHAPE, NULL, "%u pads for %u axes; there must be two for each",
                       count, n_named);
    for (uint32_t i = 0; known && i < n_named; i++) {
        uint32_t at = i;

        if (wf_node_has_in(n, 3)) {
            known = named[i].is_known;
            if (known)
                WF_TRY(wf_axis_number(named[i].value, (uint32_t)x->rank, &at, err));
        }
        if (known && mask >> at & 1u)
            return wf_fail(err, WF_SHAPE, NULL, "axis %u is named twice", at);
        mask |= 1u << at;
        if (known)
            WF_TRY(padded(n, at, &pads[i], &pads[i + n_named], &axes[at], err));
    }
    for (int32_t i = 0; !known && i < x->rank; i++)
        axes[i] = wf_axis_unknown(-1);
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

static const wf_attr_row pad_attrs[] = {{"mode", WF_ATTR_STRING, false}, {0}};

const wf_op wf_op_pad = WF_FOLDABLE(WF_DOMAIN_ONNX, "Pad", 18, 2, 4, infer_pad,
                                    .note = "pads and axes known before the run",
                                    .no_grad_in = 1u << 1 | 1u << 2 | 1u << 3, .attrs = pad_attrs,
                                    WF_GRAD_NODE("PadGrad", "d0 x0 x1 x3"));

/* ai.weft PadGrad: dy added up where Pad with the same mode, pads and axes took from. */

const wf_op wf_op_pad_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "PadGrad", 1, 3, 4, wf_infer_grad_of_1,
                .means = "(dy, x, pads, (axes)) -> as x; attr mode; dy added where Pad took from; "
                         "of x only the shape is read",
                .attrs = pad_attrs);

/* CenterCropPad: the middle of x, or x in the middle of zeros, so that attr axes (all when absent)
 * get the sizes in input 1. */

static wf_status infer_center_crop_pad(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_elem sizes[WF_MAX_CARRIED];
    wf_axis axes[WF_MAX_RANK];
    size_t n_named;
    const int64_t *named = wf_node_ints(n, "axes", &n_named);
    uint32_t count, mask = 0;
    bool known;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "shape", err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    if (!named)
        n_named = (size_t)x->rank;
    known = wf_value_elems(n->in[1], sizes, &count);
    if (n_named > WF_MAX_RANK || (known && count != n_named))
        return wf_fail(err, WF_SHAPE, NULL, "the shape must have a size for each of %zu axes",
                       n_named);
    memcpy(axes, x->axes, sizeof axes);
    for (uint32_t i = 0; i < n_named; i++) {
        uint32_t at;

        WF_TRY(wf_axis_number(named ? named[i] : i, (uint32_t)x->rank, &at, err));
        if (mask >> at & 1u || (known && sizes[i].is_known && sizes[i].value < 0))
            return wf_fail(err, WF_SHAPE, NULL, "axis %u is named twice, or has a negative size",
                           at);
        mask |= 1u << at;
        axes[at] = known ? wf_axis_of_elem(&sizes[i]) : wf_axis_unknown(-1);
    }
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

/* Padding what was cropped, and cropping what was padded: both round the middle down, so the same
 * operation towards the shape of x undoes either. */
static wf_status grad_center_crop_pad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *in[] = {wf_grads_upstream(g, n, 0), wf_emit_shape_of(e, n->in[0])};

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(e, "CenterCropPad", 2, in, 0, NULL));
}

static const wf_attr_row center_crop_pad_attrs[] = {{"axes", WF_ATTR_INTS, false}, {0}};

const wf_op wf_op_center_crop_pad = WF_FOLDABLE(
    WF_DOMAIN_ONNX, "CenterCropPad", 18, 2, 2, infer_center_crop_pad, .no_grad_in = 1u << 1,
    .attrs = center_crop_pad_attrs, .grad = grad_center_crop_pad);
