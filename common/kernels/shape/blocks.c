/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/blocks.c */
#include "common/kernels/shape/blocks.h"

#include <stdbool.h>

void wf_blocks_walk(const wf_node *node, const wf_tensor *deep, const wf_tensor *wide, wf_walk *w)
{
    const char *mode = wf_node_string(node, "mode", "DCR");
    int64_t b = wf_node_int(node, "blocksize", 1), c = wide->dims[1];
    int64_t height = deep->dims[2], width = deep->dims[3], channel = height * width;
    int64_t dims[6] = {wide->dims[0], c, height, b, width, b};
    /* Channels of the deep side are [b, b, c] with DCR and [c, b, b] with CRD. */
    bool leading = mode[0] == 'D';
    int64_t strides[1][WF_MAX_RANK] = {
        {deep->dims[1] * channel, leading ? channel : channel * b * b, width,
         leading ? channel * b * c : channel * b, 1, leading ? channel * c : channel}};

    wf_walk_strided(w, 6, dims, 1, (const int64_t(*)[WF_MAX_RANK])strides);
}
