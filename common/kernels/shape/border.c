/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/border.c */
#include "common/kernels/shape/border.h"
#include "common/kernels/shape/axes.h"
#include "common/kernels/shape/numbers.h"

wf_status wf_border_of(const wf_node *node, const wf_tensor *pads, const wf_tensor *axes,
                       uint32_t rank, wf_border *b, wf_err *err)
{
    const char *mode = wf_node_string(node, "mode", "constant");
    int64_t n;

    *b = (wf_border){.mode = mode[0] == 'r'   ? WF_BORDER_REFLECT
                             : mode[0] == 'e' ? WF_BORDER_EDGE
                             : mode[0] == 'w' ? WF_BORDER_WRAP
                                              : WF_BORDER_CONSTANT};
    if ((wf_elems(pads) && !pads->data) || (axes && wf_elems(axes) && !axes->data))
        return wf_fail(err, WF_UNSUPPORTED, "make pads and axes constants",
                       "how much is padded depends on the run");
    n = axes ? wf_elems(axes) : rank;
    for (int64_t i = 0; i < n; i++)
        b->before[axes ? wf_axis_at(wf_int_at(axes, i), rank) : i] = wf_int_at(pads, i);
    return WF_OK;
}

wf_border wf_border_centred(const wf_tensor *from, const wf_tensor *to)
{
    wf_border b = {.mode = WF_BORDER_CONSTANT};

    for (uint32_t i = 0; i < to->rank; i++) {
        int64_t more = to->dims[i] - from->dims[i];

        b.before[i] = more >= 0 ? more / 2 : -(-more / 2);
    }
    return b;
}
