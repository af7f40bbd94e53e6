/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/score_keys.c - ai.weft ScoreKeys(scores, labels): the bin of each score in
 * a histogram by class (shape/score_key.h). */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/shape/score_key.h"

#include <inttypes.h>

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    (void)prep, (void)out;
    if (wf_elems(in[0]) != wf_elems(in[1]))
        return wf_fail(err, WF_SHAPE, NULL, "%" PRId64 " scores and %" PRId64 " labels",
                       wf_elems(in[0]), wf_elems(in[1]));
    return WF_OK;
}

static wf_status score_keys(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    bool logits = wf_node_int(run->node, "logits", 0) != 0;
    int64_t *keys = out[0]->data;

    (void)err;
    for (int64_t i = 0; i < wf_elems(in[0]); i++)
        keys[i] = wf_score_key(wf_number_at(in[0], i), logits, wf_number_at(in[1], i) > 0.5);
    return WF_OK;
}

const wf_kernel wf_kernels_score_keys[] = {
    WF_ROW("ScoreKeys", WF_TYPES_FLOAT, score_keys, .domain = WF_DOMAIN_WEFT, .prepare = prepare),
    {0},
};
