/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/reverse_sequence.c - ReverseSequence: along attr time_axis, the first
 * sequence_lens[b] elements of each b of attr batch_axis backwards, the rest as it is. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *lens = n->in[1];
    int64_t batch = wf_node_int(n, "batch_axis", 1), time = wf_node_int(n, "time_axis", 0);

    WF_TRY(wf_need_int(n, 1, "sequence_lens", err));
    if (x->rank >= 0 && (x->rank < 2 || batch + time != 1 || batch < 0 || time < 0))
        return wf_fail(err, WF_SHAPE, NULL,
                       "batch_axis is %lld and time_axis %lld of %d axes; one must be 0 and the "
                       "other 1",
                       (long long)batch, (long long)time, x->rank);
    if (x->rank >= 0 && lens->rank >= 0 &&
        (lens->rank != 1 || wf_axes_clash(&lens->axes[0], &x->axes[batch])))
        return wf_fail(err, WF_SHAPE, NULL, "sequence_lens must have one length for each of %lld",
                       (long long)x->axes[batch].size);
    return wf_infer_like_input(g, n, err);
}

static const wf_attr_row attrs[] = {
    {"batch_axis", WF_ATTR_INT, false}, {"time_axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_reverse_sequence =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "ReverseSequence", 10, 2, 2, infer, .no_grad_in = 1u << 1,
                .attrs = attrs, WF_GRAD_NODE("ReverseSequence", "d0 x1"));
