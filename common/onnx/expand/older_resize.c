/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/older_resize.c - Upsample, and Resize of opset 10, before there were modes of
 * coordinates: output i is taken at i / scale. */
#include "common/onnx/call.h"
#include "common/onnx/expand/older.h"
#include "common/onnx/proto.h"

#include <string.h>

/* Adds a Resize whose nearest element is the one before, or after, i / scale. */
static wf_status resize(wf_call *c, wf_value *scales, const char *nearest, wf_err *err)
{
    bool linear = wf_onnx_says(c->p, "mode", "linear");
    wf_attr attrs[] = {wf_attr_string("mode", linear ? "linear" : "nearest"),
                       wf_attr_string("coordinate_transformation_mode", "asymmetric"),
                       wf_attr_string("nearest_mode", nearest)};
    wf_value *in[] = {c->in[0], NULL, scales};

    if (!linear && !wf_onnx_says(c->p, "mode", "nearest") && !wf_onnx_says(c->p, "mode", ""))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its mode is neither nearest nor linear");
    c->out[0] = wf_emit_op(c->e, "Resize", 3, in, linear ? 2 : 3, attrs);
    return WF_OK;
}

/* Scales by attr scales before opset 9, and by an input since. */
static wf_status upsample(wf_call *c, wf_err *err)
{
    size_t n;
    const float *scales = wf_onnx_floats(c->p, "scales", &n);
    wf_tensor *t = NULL;

    if (c->in[1])
        return resize(c, c->in[1], "floor", err);
    if (!scales || n > WF_MAX_RANK)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu scales", n);
    WF_TRY(wf_tensor_new(WF_F32, 1, (int64_t[]){(int64_t)n}, &t, err));
    memcpy(t->data, scales, n * sizeof scales[0]);
    return resize(c, wf_emit_constant(c->e, "scales", &t), "floor", err);
}

/* To smaller sizes the nearest element was the one after i / scale, as all readers had it. */
static wf_status resize_of_10(wf_call *c, wf_err *err)
{
    const wf_tensor *scales = c->in[1]->known;
    bool up = true, down = true;

    if (wf_onnx_says(c->p, "mode", "linear"))
        return resize(c, c->in[1], "floor", err);
    if (!scales || scales->dtype != WF_F32)
        return wf_fail(err, WF_UNSUPPORTED, "make them a constant, or export it with opset 11",
                       "its scales are known only during the run");
    for (int64_t i = 0; i < wf_elems(scales); i++) {
        up = up && ((const float *)scales->data)[i] >= 1;
        down = down && ((const float *)scales->data)[i] <= 1;
    }
    if (!up && !down)
        return wf_fail(err, WF_UNSUPPORTED, "export it with opset 11",
                       "it makes one axis longer and another shorter");
    return resize(c, c->in[1], up ? "floor" : "ceil", err);
}

static const wf_attr_row upsample_attrs[] = {
    {"mode", WF_ATTR_STRING, false}, {"scales", WF_ATTR_FLOATS, false}, {0}};
static const wf_attr_row resize_attrs[] = {{"mode", WF_ATTR_STRING, false}, {0}};

WF_OLDER(resize, "Resize", 10, 11, 2, 2, 1, resize_attrs, resize_of_10)
WF_OLDER(upsample, "Upsample", 7, 10, 1, 2, 1, upsample_attrs, upsample)
