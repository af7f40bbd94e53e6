/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/dropout.c - dropout: training_mode false is what the graph says; the mode
 * pass turns it on for training. */
#include "common/compile/layers/layer.h"

static wf_flow build(wf_layer *l)
{
    double rate = wf_conf_number(l->item, "rate", -1.0);
    wf_flow f = wf_layer_float(l, 0);
    wf_value *in[3] = {f.value, NULL, NULL};

    if (!(rate >= 0.0 && rate < 1.0))
        return wf_layer_refuse(l, WF_USAGE, NULL, "\"rate\" is %g, and must be in [0, 1)", rate);
    in[1] = wf_emit_scalar(&l->e, WF_F32, rate);
    in[2] = wf_emit_scalar(&l->e, WF_BOOL, 0.0);
    f.value = wf_emit_op(&l->e, "Dropout", 3, in, 0, NULL);
    return f;
}

const wf_layer_row wf_layer_dropout = {"dropout", 1, 1, build};
