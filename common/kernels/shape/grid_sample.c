/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/grid_sample.c */
#include "common/kernels/shape/grid_sample.h"

#include <string.h>

wf_sampling wf_sampling_of(const wf_node *node, const wf_tensor *x, const wf_tensor *grid)
{
    const char *mode = wf_node_string(node, "mode", "linear");
    const char *padding = wf_node_string(node, "padding_mode", "zeros");
    wf_sampling s = {.mode = mode[0] == 'n'          ? WF_SAMPLE_NEAREST
                             : strstr(mode, "cubic") ? WF_SAMPLE_CUBIC
                                                     : WF_SAMPLE_LINEAR,
                     .padding = padding[0] == 'z'   ? WF_SAMPLE_ZEROS
                                : padding[0] == 'b' ? WF_SAMPLE_BORDER
                                                    : WF_SAMPLE_REFLECTION,
                     .aligned = wf_node_int(node, "align_corners", 0) != 0,
                     .rank = x->rank - 2,
                     .images = x->dims[0],
                     .elements = 1,
                     .channels = x->dims[1],
                     .image = 1,
                     .points = 1};

    for (uint32_t i = s.rank; i-- > 0; s.image *= s.size[i]) {
        s.size[i] = x->dims[2 + i];
        s.stride[i] = s.image;
        s.points *= grid->dims[1 + i];
        s.elements *= s.mode == WF_SAMPLE_NEAREST ? 1 : s.mode == WF_SAMPLE_LINEAR ? 2 : 4;
    }
    return s;
}
