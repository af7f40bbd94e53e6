/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/max_unpool.c - MaxUnpool. */
#include "common/base/size.h"
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/expand/side.h"
#include "common/onnx/proto.h"

#include <inttypes.h>

/* Shape of what was pooled: the smallest that gives x. */
static wf_status unpooled(const wf_call *c, int64_t dims[WF_MAX_RANK], wf_err *err)
{
    const wf_value *x = c->in[0];
    uint32_t n = (uint32_t)x->rank - 2;

    for (int32_t i = 0; i < x->rank; i++)
        if (x->axes[i].size < 0)
            return wf_fail(err, WF_UNSUPPORTED, "export it with fixed sizes",
                           "axis %d has a size that is known only during the run, and the indices "
                           "are of the whole tensor",
                           i);
    dims[0] = x->axes[0].size;
    dims[1] = x->axes[1].size;
    for (uint32_t i = 0; i < n; i++) {
        int64_t kernel = wf_call_entry(c, "kernel_shape", i, 0);
        int64_t stride = wf_call_entry(c, "strides", i, 1);
        int64_t begin = wf_call_entry(c, "pads", i, 0), end = wf_call_entry(c, "pads", n + i, 0);

        WF_TRY(wf_check_side(kernel, 1, "a kernel's side is", err));
        WF_TRY(wf_check_side(stride, 1, "a stride is", err));
        WF_TRY(wf_check_side(begin, 0, "a pad is", err));
        WF_TRY(wf_check_side(end, 0, "a pad is", err));
        WF_TRY(wf_check_side(x->axes[2 + i].size, 1, "a side of its input is", err));
        dims[2 + i] = (x->axes[2 + i].size - 1) * stride + kernel - begin - end;
        WF_TRY(wf_check_side(dims[2 + i], 1, "a side of its output would be", err));
    }
    return WF_OK;
}

/* Each element of x at its index, in zeros; more zeros behind them where a larger shape is asked
 * for. */
static wf_status max_unpool(wf_call *c, wf_err *err)
{
    int64_t dims[WF_MAX_RANK], want[WF_MAX_RANK], pads[2 * WF_MAX_RANK] = {0}, all = 1, flat = -1;
    uint32_t rank, n_want;
    bool larger = false;
    wf_value *zeros, *y;

    WF_TRY(wf_call_need_rank(c, 0, 3, WF_MAX_RANK, err));
    rank = (uint32_t)c->in[0]->rank;
    WF_TRY(unpooled(c, dims, err));
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(all, dims[i], &all))
            return wf_fail_nomem(err, SIZE_MAX);
    if (c->in[2]) {
        WF_TRY(wf_call_need_ints(c, 2, rank, rank, want, &n_want, err));
        for (uint32_t i = 0; i < rank; i++) {
            if (want[i] < dims[i] || want[i] > WF_LONGEST_SIDE)
                return wf_fail(err, WF_SHAPE, NULL,
                               "axis %u has %" PRId64 ", and shall have %" PRId64, i, dims[i],
                               want[i]);
            pads[rank + i] = want[i] - dims[i];
            larger = larger || pads[rank + i];
        }
    }
    zeros = wf_emit_binary(c->e, "Expand", wf_emit_scalar(c->e, c->in[0]->dtype, 0),
                           wf_emit_ints(c->e, 1, &all));
    y = wf_emit_reshape(c->e, c->in[0], 1, &flat);
    if (zeros && y)
        y = wf_emit_op(c->e, "ScatterElements", 3,
                       (wf_value *[]){zeros, wf_emit_reshape(c->e, c->in[1], 1, &flat), y}, 0,
                       NULL);
    y = wf_emit_reshape(c->e, y, rank, dims);
    c->out[0] = larger ? wf_emit_binary(c->e, "Pad", y, wf_emit_ints(c->e, 2 * rank, pads)) : y;
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"kernel_shape", WF_ATTR_INTS, true},
                                    {"pads", WF_ATTR_INTS, false},
                                    {"strides", WF_ATTR_INTS, false},
                                    {0}};

const wf_expansion wf_expansion_max_unpool =
    WF_EXPANDS(WF_DOMAIN_ONNX, "MaxUnpool", 11, 2, 3, 1, 1, max_unpool,
               .note = WF_EXPANDED "; shapes known when it is read", .attrs = attrs);
