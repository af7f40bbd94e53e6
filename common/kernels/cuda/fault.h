/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/fault.h - what a kernel says of its operands' content: a label that is no
 * class, an index beyond its axis.
 *
 * Each stream has one fault, in memory that the host and the GPU see; one that was made beside
 * another has that of the other. The first kernel that finds something writes it, and goes on
 * without using what is wrong; the wait that follows says it.
 */
#ifndef WF_KERNELS_CUDA_FAULT_H
#define WF_KERNELS_CUDA_FAULT_H

#include "common/base/status.h"
#include <stdint.h>

typedef enum wf_cuda_fault_kind {
    WF_CUDA_BAD_LABEL = 1, /* label, record, classes */
    WF_CUDA_BAD_INDEX,     /* index, its number, the axis */
    WF_CUDA_BAD_RATIO,     /* the bits of a double */
    WF_CUDA_BAD_LENGTH,    /* row, its length, steps */
    WF_CUDA_BAD_BRANCH,    /* the number of a result */
    WF_CUDA_BAD_ID,        /* id, its number, rows of the table */
    WF_CUDA_BAD_TUPLE,     /* index, its number among those of WF_MAX_RANK a tuple, the axis */
    WF_CUDA_BAD_SEQUENCE,  /* sequence, its length, steps */
    WF_CUDA_BAD_AXIS,      /* axis, nothing, axes */
    WF_CUDA_NO_NUMBER,     /* of a roi */
} wf_cuda_fault_kind;

typedef struct wf_cuda_fault {
    int taken;
    wf_cuda_fault_kind kind;
    const void *node; /* wf_node, for the host alone */
    int64_t values[3];
} wf_cuda_fault;

/* The status and sentence of a fault that is taken. */
wf_status wf_cuda_fault_say(const wf_cuda_fault *f, wf_err *err);

#endif
