/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/channels_last.h - nodes of a plan for GPUs whose images are [n, h, w, c] in memory,
 * and not [n, c, h, w].
 *
 * cuDNN's kernels for bfloat16 and float16 multiply images of that order; of others they make
 * copies. A plan decides it for each value (common/exec/layout.c), whose axes are then those of the
 * memory. A node whose kernel has to know of it has attr `channels_last`: bit i is set if input i
 * is such an image, and bit 16 + k if output k is. Elementwise nodes do not have it: their operands
 * are all of one order.
 */
#ifndef WF_GRAPH_CHANNELS_LAST_H
#define WF_GRAPH_CHANNELS_LAST_H

#include "common/graph/graph.h"

#define WF_CHANNELS_LAST "channels_last"

/* Of a batch normalisation of such images, 1: its result is Relu of what it computes. */
#define WF_THEN_RELU "then_relu"

enum {
    WF_CHANNELS_LAST_OUT = 16, /* the bit of output 0 */
    WF_CHANNELS_TOGETHER = 8   /* an image has a multiple of so many channels: 16 bytes of them */
};

/* Whether the node has the attribute. */
static inline bool wf_has_channels_last(const wf_node *n)
{
    return wf_node_attr(n, WF_CHANNELS_LAST) != NULL;
}

static inline bool wf_in_is_channels_last(const wf_node *n, uint32_t i)
{
    return wf_node_int(n, WF_CHANNELS_LAST, 0) >> i & 1;
}

static inline bool wf_out_is_channels_last(const wf_node *n, uint32_t k)
{
    return wf_node_int(n, WF_CHANNELS_LAST, 0) >> (WF_CHANNELS_LAST_OUT + k) & 1;
}

/* The extents of t in the order n, c, h, w, for what computes a geometry of them. */
static inline wf_tensor wf_channels_second(const wf_tensor *t)
{
    wf_tensor v = *t;

    v.dims[1] = t->dims[3];
    v.dims[2] = t->dims[1];
    v.dims[3] = t->dims[2];
    return v;
}

#endif
