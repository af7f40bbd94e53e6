/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/embedding.c - embedding: a row of a table for each id. A table without
 * bounds has rows for any ids: it is to be one of the job's `tables` (tables.c). */
#include "common/compile/layers/layer.h"

static wf_flow build(wf_layer *l)
{
    wf_value *in[2] = {NULL, wf_layer_plain(l, l->in[0])};
    int64_t dims[2] = {wf_conf_int(l->item, "input_dim", 1), wf_conf_int(l->item, "output_dim", 1)};
    wf_attr axis = wf_attr_int("axis", 0);
    char text[128];

    if (!in[1])
        return (wf_flow){0};
    if (in[1]->rank + 1 > WF_MAX_RANK)
        return wf_layer_refuse(l, WF_USAGE, NULL,
                               "what comes is %s, and there is no room for one "
                               "axis more",
                               wf_layer_shape(wf_layer_give(in[1]), text, sizeof(text)));
    if (in[1]->dtype != WF_I32 && in[1]->dtype != WF_I64)
        in[1] = wf_emit_cast(&l->e, in[1], WF_I64);
    if (wf_conf_text(l->item, "input_dim", NULL))
        in[0] = wf_layer_unbounded(l, "embeddings", dims[1], "uniform");
    else
        in[0] = wf_layer_variable(l, "embeddings", 2, dims, "uniform", NULL);
    return wf_layer_give(wf_emit_op(&l->e, "Gather", 2, in, 1, &axis));
}

const wf_layer_row wf_layer_embedding = {"embedding", 1, 1, build};
