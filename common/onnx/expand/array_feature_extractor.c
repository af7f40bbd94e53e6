/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/array_feature_extractor.c - ArrayFeatureExtractor of ai.onnx.ml. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"

/* Elements of the last axis by position: ArrayFeatureExtractor. A vector counts as one row. */
static wf_status array_feature_extractor(wf_call *c, wf_err *err)
{
    wf_value *x = c->in[0], *at = wf_emit_reshape(c->e, c->in[1], 1, (int64_t[]){-1});
    wf_attr axis = wf_attr_int("axis", -1);

    WF_TRY(wf_call_need_rank(c, 0, 1, WF_MAX_RANK, err));
    if (x->rank == 1)
        x = wf_emit_reshape(c->e, x, 2, (int64_t[]){1, -1});
    c->out[0] = wf_emit_op(c->e, "Gather", 2, (wf_value *[]){x, at}, 1, &axis);
    return WF_OK;
}

const wf_expansion wf_expansion_array_feature_extractor =
    WF_EXPANDS(WF_DOMAIN_ML, "ArrayFeatureExtractor", 1, 2, 2, 1, 1, array_feature_extractor,
               .note = WF_EXPANDED);
