/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/blocks.h - the elements of DepthToSpace and SpaceToDepth. */
#ifndef WF_KERNELS_SHAPE_BLOCKS_H
#define WF_KERNELS_SHAPE_BLOCKS_H

#include "common/graph/graph.h"
#include "common/kernels/shape/walk.h"
#include "common/tensor/tensor.h"

/* A walk over the spatial side, `wide`, in its own order; operand 0 is the deep side. It goes over
 * [n, c, h, b, w, b]. */
void wf_blocks_walk(const wf_node *node, const wf_tensor *deep, const wf_tensor *wide, wf_walk *w);

#endif
