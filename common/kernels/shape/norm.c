/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/norm.c */
#include "common/kernels/shape/norm.h"
#include "common/graph/graph.h"
#include "common/graph/op.h"
#include "common/kernels/shape/axes.h"

#include <inttypes.h>

wf_status wf_layer_norm_of(const wf_node *n, const wf_tensor *x, const wf_tensor *scale,
                           const wf_tensor *bias, wf_layer_norm *v, wf_err *err)
{
    uint32_t axis = wf_axis_at(wf_node_int(n, "axis", -1), x->rank);

    *v = (wf_layer_norm){.rows = 1, .n = 1, .rms = n->op->name[0] == 'R'};
    for (uint32_t i = 0; i < x->rank; i++)
        *(i < axis ? &v->rows : &v->n) *= x->dims[i];
    v->epsilon = (double)wf_node_float(n, "epsilon", 1e-5f);
    if (wf_elems(scale) != v->n || (bias && wf_elems(bias) != v->n))
        return wf_fail(err, WF_UNSUPPORTED, "Expand the scale and the bias to the row first",
                       "scale has %" PRId64 " elements, and a row that is normalised %" PRId64,
                       wf_elems(scale), v->n);
    return WF_OK;
}

wf_status wf_group_norm_of(const wf_node *node, const wf_tensor *x, const wf_tensor *scale,
                           const wf_tensor *bias, wf_group_norm *v, wf_err *err)
{
    int64_t channels = x->rank >= 2 ? x->dims[1] : 0;
    int64_t groups = wf_node_int(node, "num_groups", channels);
    int64_t n = scale->rank == 1 ? scale->dims[0] : -1;

    if (x->rank < 2 || (channels && (groups < 1 || channels % groups)) ||
        (n != groups && n != channels) || (bias && (bias->rank != 1 || bias->dims[0] != n)))
        return wf_fail(err, WF_SHAPE, NULL,
                       "%" PRId64 " channels, %" PRId64 " groups and %" PRId64
                       " scales do not fit each other",
                       channels, groups, n);
    *v = (wf_group_norm){.images = x->dims[0],
                         .groups = groups,
                         .inner = 1,
                         .each = groups ? channels / groups : 0,
                         .per_group = n != channels};
    for (uint32_t i = 2; i < x->rank; i++)
        v->inner *= x->dims[i];
    v->epsilon = (double)wf_node_float(node, "epsilon", 1e-5f);
    return WF_OK;
}

/* Every channel's tensor, of in[from, to), has one element a channel. */
static wf_status check(const wf_tensor *x, const wf_tensor *const in[], uint32_t from, uint32_t to,
                       wf_err *err)
{
    if (x->rank < 2)
        return wf_fail(err, WF_SHAPE, NULL, "X has %u axes, and must have [batch, channels, ...]",
                       x->rank);
    for (uint32_t i = from; i < to; i++)
        if (in[i] && (in[i]->rank != 1 || in[i]->dims[0] != x->dims[1]))
            return wf_fail(err, WF_SHAPE, NULL, "input %u must have one element a channel", i);
    return WF_OK;
}

static void read(const wf_node *n, const wf_tensor *x, wf_batch_norm *v)
{
    *v = (wf_batch_norm){.batch = x->dims[0], .channels = x->dims[1], .inner = 1};
    for (uint32_t i = 2; i < x->rank; i++)
        v->inner *= x->dims[i];
    v->epsilon = (double)wf_node_float(n, "epsilon", 1e-5f);
    v->momentum = (double)wf_node_float(n, "momentum", 0.9f);
    v->training = wf_node_int(n, "training_mode", 0) != 0;
}

wf_status wf_batch_norm_of(const wf_node *n, const wf_tensor *const in[], wf_batch_norm *v,
                           wf_err *err)
{
    WF_TRY(check(in[0], in, 1, 5, err));
    read(n, in[0], v);
    if (!in[3]) {
        v->training = true;
        v->momentum = 0;
    }
    return WF_OK;
}

wf_status wf_batch_norm_grad_of(const wf_node *n, const wf_tensor *const in[], wf_batch_norm *v,
                                wf_err *err)
{
    WF_TRY(check(in[1], in, 2, 5, err));
    read(n, in[1], v);
    if (!v->training && !(in[3] && in[4]))
        return wf_fail(err, WF_INVALID, NULL, "without training_mode mean and var must be given");
    return (!in[3]) == (!in[4]) ? WF_OK
                                : wf_fail(err, WF_INVALID, NULL, "mean and var come together");
}

wf_status wf_lrn_of(const wf_node *n, const wf_tensor *x, wf_lrn *v, wf_err *err)
{
    int64_t size = wf_node_int(n, "size", 0);

    if (x->rank < 2)
        return wf_fail(err, WF_SHAPE, NULL, "X has %u axes, and must have [batch, channels, ...]",
                       x->rank);
    if (size < 1 || size > INT32_MAX)
        return wf_fail(err, WF_INVALID, NULL, "its size is %" PRId64 ", and must be 1 or more",
                       size);
    *v = (wf_lrn){.channels = x->dims[1], .inner = 1, .size = size};
    for (uint32_t i = 2; i < x->rank; i++)
        v->inner *= x->dims[i];
    v->alpha = (double)wf_node_float(n, "alpha", 1e-4f);
    v->beta = (double)wf_node_float(n, "beta", 0.75f);
    v->bias = (double)wf_node_float(n, "bias", 1.0f);
    return WF_OK;
}

wf_status wf_lrn_grad_of(const wf_node *n, const wf_tensor *dy, const wf_tensor *x, wf_lrn *v,
                         wf_err *err)
{
    WF_TRY(wf_lrn_of(n, x, v, err));
    for (uint32_t i = 0; i < x->rank; i++)
        if (dy->rank != x->rank || dy->dims[i] != x->dims[i])
            return wf_fail(err, WF_SHAPE, NULL, "dy and x have other shapes");
    return WF_OK;
}
