/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/loss/label_loss.c */
#include "common/graph/ops/loss/label_loss.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"

#include <string.h>

const wf_attr_row wf_label_loss_rows[] = {
    {"ignore_index", WF_ATTR_INT, false}, {"reduction", WF_ATTR_STRING, false}, {0}};

/* labels are scores without axis 1. */
static wf_status check_labels(const wf_value *scores, const wf_value *labels, wf_err *err)
{
    char a[WF_VALUE_STR], b[WF_VALUE_STR];
    bool fits = scores->rank >= 2 && labels->rank == scores->rank - 1;

    for (int32_t i = 0; fits && i < labels->rank; i++)
        fits = !wf_axes_clash(&labels->axes[i], &scores->axes[i == 0 ? 0 : i + 1]);
    return fits ? WF_OK
                : wf_fail(
                      err, WF_SHAPE, "labels are class numbers, not one-hot rows",
                      "scores are %s, which must be [n, classes, ...], and labels %s, which must "
                      "be the same without classes",
                      wf_value_str(scores, a, sizeof a), wf_value_str(labels, b, sizeof b));
}

static wf_status check_weights(const wf_value *scores, const wf_value *weights, wf_err *err)
{
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    if (weights->rank < 0 ||
        (weights->rank == 1 && !wf_axes_clash(&weights->axes[0], &scores->axes[1])))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL,
                   "scores are %s and weights %s; there must be one weight a class",
                   wf_value_str(scores, a, sizeof a), wf_value_str(weights, b, sizeof b));
}

wf_status wf_infer_label_loss(wf_node *n, wf_err *err)
{
    const wf_value *scores = n->in[0], *labels = n->in[1];
    const char *reduction = wf_node_string(n, "reduction", "mean");

    WF_TRY(wf_need_float(n, 0, "scores", err));
    WF_TRY(wf_need_int(n, 1, "labels", err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    if (strcmp(reduction, "mean") != 0 && strcmp(reduction, "sum") != 0 &&
        strcmp(reduction, "none") != 0)
        return wf_fail(err, WF_INVALID, NULL,
                       "reduction is \"%s\", and must be \"mean\", \"sum\" or \"none\"", reduction);
    if (scores->rank >= 0 && labels->rank >= 0)
        WF_TRY(check_labels(scores, labels, err));
    if (scores->rank >= 2 && wf_node_has_in(n, 2))
        WF_TRY(check_weights(scores, n->in[2], err));
    if (strcmp(reduction, "none") == 0)
        wf_out_like(n, 0, scores->dtype, labels);
    else
        wf_out_axes(n, 0, scores->dtype, 0, NULL);
    return WF_OK;
}

wf_status wf_infer_label_loss_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 1, "scores", err));
    WF_TRY(wf_need_int(n, 2, "labels", err));
    wf_out_like(n, 0, n->in[1]->dtype, n->in[1]);
    return WF_OK;
}
