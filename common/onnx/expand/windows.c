/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/windows.c - BlackmanWindow, HammingWindow and HannWindow. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

#include <inttypes.h>
#include <math.h>

/* a - b cos(2 pi i / n) + d cos(4 pi i / n), i from 0 to size - 1, in f64; n is the size, or one
 * less when it is not periodic. */
static wf_status window(wf_call *c, double a, double b, double d, wf_err *err)
{
    int64_t to = wf_onnx_int(c->p, "output_datatype", WF_F32);
    wf_value *count, *angle, *y;

    if (to != WF_F32 && to != WF_F64 && to != WF_F16 && to != WF_BF16)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "output_datatype is %" PRId64 ", which is no float", to);
    count = wf_emit_reshape(c->e, wf_emit_cast(c->e, c->in[0], WF_F64), 0, NULL);
    if (!wf_onnx_int(c->p, "periodic", 1))
        count = wf_emit_sub(c->e, count, wf_emit_scalar(c->e, WF_F64, 1));
    angle = wf_emit_cast(c->e, wf_call_count(c, c->in[0]), WF_F64);
    angle = wf_emit_div(c->e, wf_emit_scale(c->e, angle, 2 * M_PI), count);
    y = wf_emit_scale(c->e, wf_emit_unary(c->e, "Cos", angle), -b);
    y = wf_emit_add(c->e, y, wf_emit_scalar(c->e, WF_F64, a));
    if (d != 0)
        y = wf_emit_add(
            c->e, y,
            wf_emit_scale(c->e, wf_emit_unary(c->e, "Cos", wf_emit_scale(c->e, angle, 2)), d));
    c->out[0] = wf_emit_cast(c->e, y, (wf_dtype)to);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"output_datatype", WF_ATTR_INT, false}, {"periodic", WF_ATTR_INT, false}, {0}};

#define WINDOW(id, name, a, b, d)                                                                  \
    static wf_status id(wf_call *c, wf_err *err)                                                   \
    {                                                                                              \
        return window(c, a, b, d, err);                                                            \
    }                                                                                              \
    const wf_expansion wf_expansion_##id =                                                         \
        WF_EXPANDS(WF_DOMAIN_ONNX, name, 17, 1, 1, 1, 1, id, .note = WF_EXPANDED, .no_grad_in = 1, \
                   .attrs = attrs);

WINDOW(blackman_window, "BlackmanWindow", 0.42, 0.5, 0.08)
WINDOW(hamming_window, "HammingWindow", 25.0 / 46, 21.0 / 46, 0)
WINDOW(hann_window, "HannWindow", 0.5, 0.5, 0)
