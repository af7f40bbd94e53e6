/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/time_distributed.c - one layer for every step of a series: the steps of all
 * records are the records of the inner layer. Its variables are "<name>/kernel" and so on. */
#include "common/compile/layers/layer.h"
#include <string.h>

/* x [a, b, ...] with other leading axes and its own from `from` on. */
static wf_value *with_lead(wf_layer *l, wf_value *x, int32_t from, uint32_t n, const int64_t lead[])
{
    int64_t dims[WF_MAX_RANK];

    for (uint32_t i = 0; i < n; i++)
        dims[i] = lead[i];
    for (int32_t i = from; x && i < x->rank; i++)
        dims[n++] = x->axes[i].size;
    return x ? wf_emit_reshape(&l->e, x, n, dims) : NULL;
}

/* The inner layer over all steps as one batch. */
static wf_value *run(wf_layer *l, const wf_conf_item *inner, wf_value *x)
{
    const wf_conf_item *outer = l->item;
    const wf_flow *in = l->in;
    char hint[WF_NEAREST_HINT];
    const wf_layer_row *row = wf_layer_find(inner->type, hint);
    wf_flow f = {with_lead(l, x, 2, 1, (const int64_t[]){-1}), false};

    if (!row || row->n_in_min != 1) {
        wf_layer_refuse(l, WF_USAGE, "docs/jobs.md lists the layers",
                        "\"layer\" is no layer of one input");
        return NULL;
    }
    if (!f.value)
        return NULL;
    l->item = inner;
    l->in = &f;
    f = row->build(l);
    l->item = outer;
    l->in = in;
    return f.value ? wf_layer_plain(l, f) : NULL;
}

static wf_flow build(wf_layer *l)
{
    const wf_conf_option *inner = wf_conf_find(l->item, "layer");
    wf_value *x = wf_layer_plain(l, l->in[0]), *y;
    int64_t lead[2] = {-1, 0};
    char text[128];

    if (!x)
        return (wf_flow){0};
    if (!inner || !inner->item)
        return wf_layer_refuse(l, WF_USAGE, "write layer: {dense: {units: 8}}",
                               "\"layer\" is a layer with its options");
    if (x->rank < 3)
        return wf_layer_refuse(l, WF_USAGE, "put a reshape before it",
                               "it takes records of [steps, ...]; what comes is %s",
                               wf_layer_shape(l->in[0], text, sizeof(text)));
    lead[1] = x->axes[1].size;
    y = run(l, inner->item, x);
    if (y && y->rank + 1 > WF_MAX_RANK)
        return wf_layer_refuse(l, WF_USAGE, NULL, "there is no room for one axis more");
    return wf_layer_give(with_lead(l, y, 1, 2, lead));
}

const wf_layer_row wf_layer_time_distributed = {"time_distributed", 1, 1, build};
