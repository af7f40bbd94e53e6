/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/zip_map.c - ZipMap of ai.onnx.ml. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"

/* Maps from label to probability: the probabilities, in the labels' order. */
static wf_status zip_map(wf_call *c, wf_err *err)
{
    (void)err;
    c->out[0] = c->in[0];
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"classlabels_int64s", WF_ATTR_INTS, false},
                                    {"classlabels_strings", WF_ATTR_STRINGS, false},
                                    {0}};

const wf_expansion wf_expansion_zip_map =
    WF_EXPANDS(WF_DOMAIN_ML, "ZipMap", 1, 1, 1, 1, 1, zip_map,
               .note = "a tensor, in the order of the labels", .attrs = attrs);
