/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/older_inputs.c - Clip, Pad, Slice, TopK and Unsqueeze as they were before what
 * they do was said by inputs: by attributes. */
#include "common/base/cc.h"
#include "common/onnx/call.h"
#include "common/onnx/expand/older.h"
#include "common/onnx/proto.h"

/* The integers of an attribute as a constant; NULL when it is absent. Bounded: no list of these has
 * more entries than twice the axes of a tensor. */
static wf_status list(const wf_call *c, const char *name, wf_value **out, wf_err *err)
{
    size_t n;
    const int64_t *values = wf_onnx_ints(c->p, name, &n);

    *out = NULL;
    if (n > 2 * WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "its list %s has %zu entries", name, n);
    if (values)
        *out = wf_emit_ints(c->e, (uint32_t)n, values);
    return WF_OK;
}

/* attrs min and max */
static wf_status clip(wf_call *c, wf_err *err)
{
    static const char *const names[] = {"min", "max"};
    wf_value *in[3] = {c->in[0], NULL, NULL};

    (void)err;
    for (uint32_t i = 0; i < 2; i++) {
        float bound = wf_onnx_float(c->p, names[i], 0);

        if (wf_onnx_has(c->p, names[i]))
            in[1 + i] = wf_emit_scalar(c->e, in[0]->dtype, (double)bound);
    }
    c->out[0] = wf_emit_op(c->e, "Clip", 3, in, 0, NULL);
    return WF_OK;
}

/* attrs mode, pads and value */
static wf_status pad(wf_call *c, wf_err *err)
{
    static const char *const modes[] = {"constant", "edge", "reflect"};
    wf_attr mode = wf_attr_string("mode", modes[0]);
    wf_value *in[3] = {c->in[0]};
    bool known = wf_onnx_says(c->p, "mode", "");

    for (size_t i = 0; i < WF_COUNT(modes); i++)
        if (wf_onnx_says(c->p, "mode", modes[i])) {
            mode = wf_attr_string("mode", modes[i]);
            known = true;
        }
    if (!known)
        return wf_fail(err, WF_INVALID, NULL, "its mode is none of constant, edge and reflect");
    WF_TRY(list(c, "pads", &in[1], err));
    in[2] = wf_emit_scalar(c->e, in[0]->dtype, (double)wf_onnx_float(c->p, "value", 0));
    c->out[0] = wf_emit_op(c->e, "Pad", 3, in, 1, &mode);
    return WF_OK;
}

/* attrs starts, ends and axes */
static wf_status slice(wf_call *c, wf_err *err)
{
    wf_value *in[4] = {c->in[0]};

    WF_TRY(list(c, "starts", &in[1], err));
    WF_TRY(list(c, "ends", &in[2], err));
    WF_TRY(list(c, "axes", &in[3], err));
    c->out[0] = wf_emit_op(c->e, "Slice", in[3] ? 4 : 3, in, 0, NULL);
    return WF_OK;
}

/* attr k */
static wf_status top_k(wf_call *c, wf_err *err)
{
    wf_attr axis = wf_attr_int("axis", wf_onnx_int(c->p, "axis", -1));
    int64_t k = wf_onnx_int(c->p, "k", 0);
    wf_value *in[2] = {c->in[0], wf_emit_ints(c->e, 1, &k)};

    (void)err;
    wf_emit_node(c->e, "TopK", 2, in, 1, &axis, 2, c->out);
    return WF_OK;
}

/* attr axes */
static wf_status unsqueeze(wf_call *c, wf_err *err)
{
    wf_value *axes;

    WF_TRY(list(c, "axes", &axes, err));
    c->out[0] = wf_emit_binary(c->e, "Unsqueeze", c->in[0], axes);
    return WF_OK;
}

static const wf_attr_row clip_attrs[] = {
    {"max", WF_ATTR_FLOAT, false}, {"min", WF_ATTR_FLOAT, false}, {0}};
static const wf_attr_row pad_attrs[] = {{"mode", WF_ATTR_STRING, false},
                                        {"pads", WF_ATTR_INTS, true},
                                        {"value", WF_ATTR_FLOAT, false},
                                        {0}};
static const wf_attr_row slice_attrs[] = {{"axes", WF_ATTR_INTS, false},
                                          {"ends", WF_ATTR_INTS, true},
                                          {"starts", WF_ATTR_INTS, true},
                                          {0}};
static const wf_attr_row top_k_attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"k", WF_ATTR_INT, true}, {0}};
static const wf_attr_row unsqueeze_attrs[] = {{"axes", WF_ATTR_INTS, true}, {0}};

WF_OLDER(clip, "Clip", 6, 11, 1, 1, 1, clip_attrs, clip)
WF_OLDER(pad, "Pad", 2, 11, 1, 1, 1, pad_attrs, pad)
WF_OLDER(slice, "Slice", 1, 10, 1, 1, 1, slice_attrs, slice)
WF_OLDER(top_k, "TopK", 1, 10, 1, 1, 2, top_k_attrs, top_k)
WF_OLDER(unsqueeze, "Unsqueeze", 1, 13, 1, 1, 1, unsqueeze_attrs, unsqueeze)
