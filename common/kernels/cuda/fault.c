/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/fault.c */
#include "common/kernels/cuda/fault.h"
#include "common/graph/graph.h"
#include "common/graph/op.h"

#include <inttypes.h>
#include <string.h>

wf_status wf_cuda_fault_say(const wf_cuda_fault *f, wf_err *err)
{
    const wf_node *node = f->node;
    const int64_t *v = f->values;
    double ratio;

    switch (f->kind) {
    case WF_CUDA_BAD_LABEL:
        return wf_fail(
            err, WF_INVALID, "check the labels, or the number of units of the last layer",
            "%s \"%s\": label %" PRId64 " of record %" PRId64 " is none of the %" PRId64 " classes",
            node->op->name, node->name, v[0], v[1], v[2]);
    case WF_CUDA_BAD_INDEX:
        return wf_fail(err, WF_INVALID, NULL,
                       "%s \"%s\": index %" PRId64 ", number %" PRId64
                       " of them, is not in an axis of %" PRId64,
                       node->op->name, node->name, v[0], v[1], v[2]);
    case WF_CUDA_BAD_RATIO:
        memcpy(&ratio, &v[0], sizeof ratio);
        return wf_fail(err, WF_INVALID, NULL,
                       "%s \"%s\": the ratio is %g; it must be at least 0 and below 1",
                       node->op->name, node->name, ratio);
    case WF_CUDA_BAD_LENGTH:
        return wf_fail(err, WF_INVALID, NULL,
                       "%s \"%s\": sequence_lens[%" PRId64 "] is %" PRId64 ", and X has %" PRId64
                       " steps",
                       node->op->name, node->name, v[0], v[1], v[2]);
    case WF_CUDA_BAD_BRANCH:
        return wf_fail(err, WF_SHAPE, NULL,
                       "%s \"%s\": result %" PRId64 " of the branch has another shape",
                       node->op->name, node->name, v[0]);
    case WF_CUDA_BAD_ID:
        return wf_fail(err, WF_INVALID, NULL,
                       "%s \"%s\": id %" PRId64 ", number %" PRId64
                       " of them, is not in a table of %" PRId64 " rows",
                       node->op->name, node->name, v[0], v[1], v[2]);
    case WF_CUDA_BAD_TUPLE:
        return wf_fail(err, WF_INVALID, NULL,
                       "%s \"%s\": index %" PRId64 ", place %" PRId64 " of tuple %" PRId64
                       ", is not in an axis of %" PRId64,
                       node->op->name, node->name, v[0], v[1] % WF_MAX_RANK, v[1] / WF_MAX_RANK,
                       v[2]);
    case WF_CUDA_BAD_SEQUENCE:
        return wf_fail(err, WF_INVALID, NULL,
                       "%s \"%s\": sequence %" PRId64 " has length %" PRId64 ", of %" PRId64
                       " steps",
                       node->op->name, node->name, v[0], v[1], v[2]);
    case WF_CUDA_BAD_AXIS:
        return wf_fail(err, WF_INVALID, NULL,
                       "%s \"%s\": axis %" PRId64 " is not in a tensor of %" PRId64 " axes",
                       node->op->name, node->name, v[0], v[2]);
    case WF_CUDA_NO_NUMBER:
        return wf_fail(err, WF_INVALID, NULL, "%s \"%s\": the scale or roi is no number",
                       node->op->name, node->name);
    }
    return wf_fail(err, WF_INVALID, NULL, "%s \"%s\": fault %d", node->op->name, node->name,
                   (int)f->kind);
}
