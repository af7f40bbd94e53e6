/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/places.h - the places in a tensor that ids name, for operations that gather
 * from them or scatter to them. */
#ifndef WF_KERNELS_SHAPE_PLACES_H
#define WF_KERNELS_SHAPE_PLACES_H

#include "common/graph/graph.h"
#include "common/kernels/shape/walk.h"
#include "common/tensor/tensor.h"
#include <stdint.h>

/* What scattering does with the number that is there: attr reduction. */
typedef enum wf_scatter_way {
    WF_SCATTER_PUT,
    WF_SCATTER_ADD,
    WF_SCATTER_MULTIPLY,
    WF_SCATTER_LARGEST,
    WF_SCATTER_SMALLEST
} wf_scatter_way;

wf_scatter_way wf_scatter_way_of(const wf_node *node);

/* GatherElements and ScatterElements: an id names a place along one axis; the other places are the
 * id's own. */
typedef struct wf_elements {
    wf_walk walk;         /* over the ids; operand 0 is data, which does not move along the axis */
    int64_t size, stride; /* of the axis in data */
} wf_elements;

wf_elements wf_elements_of(const wf_node *node, const wf_tensor *data, const wf_tensor *ids);

/* GatherND and ScatterND: the last axis of the ids holds a tuple of places, which names a slice of
 * data. */
typedef struct wf_slices {
    int64_t n, per_batch;       /* tuples, in all and in each part of the batch */
    int64_t inner, batch_elems; /* elements of a slice, and of data in each part of the batch */
    uint32_t depth;             /* of a tuple */
    int64_t sizes[WF_MAX_RANK], strides[WF_MAX_RANK]; /* of the axes that a tuple names */
} wf_slices;

wf_slices wf_slices_of(const wf_node *node, const wf_tensor *data, const wf_tensor *ids);

#endif
