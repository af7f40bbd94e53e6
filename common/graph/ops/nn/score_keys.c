/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/score_keys.c - ai.weft ScoreKeys: which bin of a histogram each score falls
 * in.
 */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *scores = n->in[0], *labels = n->in[1];
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "scores", err));
    wf_out_like(n, 0, WF_I64, scores);
    if (scores->rank >= 1 && labels->rank >= 1 && wf_axes_clash(&scores->axes[0], &labels->axes[0]))
        return wf_fail(err, WF_SHAPE, NULL,
                       "scores are %s and labels %s; there must be a label a score",
                       wf_value_str(scores, a, sizeof a), wf_value_str(labels, b, sizeof b));
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"logits", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_score_keys =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "ScoreKeys", 1, 2, 2, infer,
                .means = "(scores, labels) -> int64, as scores; for a histogram of scores by "
                         "class: 2 b + (label > 0.5), where b is the bin of the score's logit, or "
                         "of the score itself with attr logits = 1: the leading 24 bits of its "
                         "f32, in an order that ascends with the number",
                .no_grad_in = 1u << 0 | 1u << 1, .attrs = attrs);
