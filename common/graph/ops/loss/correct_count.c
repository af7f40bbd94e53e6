/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/loss/correct_count.c - ai.weft CorrectCount: how many rows of scores hit their
 * label.
 */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *scores = n->in[0], *labels = n->in[1];
    bool binary = wf_node_attr(n, "threshold") != NULL;
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "scores", err));
    wf_out_axes(n, 0, WF_I64, 0, NULL);
    if (scores->rank < 0 || labels->rank < 0)
        return WF_OK;
    if (!binary)
        WF_TRY(wf_need_int(n, 1, "labels", err));
    if (wf_node_int(n, "k", 1) < 1)
        return wf_fail(err, WF_INVALID, NULL, "k is at least 1, not %lld",
                       (long long)wf_node_int(n, "k", 1));
    if (scores->rank < 1 || labels->rank < 1 || (!binary && scores->rank != 2) ||
        wf_axes_clash(&scores->axes[0], &labels->axes[0]))
        return wf_fail(err, WF_SHAPE, NULL,
                       "scores are %s and labels %s; there must be a label a row",
                       wf_value_str(scores, a, sizeof a), wf_value_str(labels, b, sizeof b));
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"k", WF_ATTR_INT, false}, {"threshold", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_correct_count =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "CorrectCount", 1, 2, 2, infer,
                .means = "(scores, labels) -> int64 []; scores [n, classes], labels [n]: rows "
                         "whose largest score, the first of equals, is the label's; with attr k, "
                         "rows in which fewer than k scores are above the label's; with attr "
                         "threshold, scores [n] or [n, 1]: rows where (score > threshold) equals "
                         "(label > 0.5)",
                .no_grad_in = 1u << 0 | 1u << 1, .attrs = attrs);
