/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/score_keys.c - ai.weft ScoreKeys(scores, labels): the bin of each score in
 * a histogram by class, see op.h. Bins are those of logits: equal steps of a probability would put
 * all of 0.9999 to 1 into one. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { DROPPED_BITS = 8 }; /* of 23: 32768 bins for each power of two */

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    (void)prep, (void)out;
    if (wf_elems(in[0]) != wf_elems(in[1]))
        return wf_fail(err, WF_SHAPE, NULL, "%" PRId64 " scores and %" PRId64 " labels",
                       wf_elems(in[0]), wf_elems(in[1]));
    return WF_OK;
}

/* The bits of an f32 as a number that ascends with it: negative ones are turned round. */
static uint32_t ascending(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static int64_t key_of(double score, bool logit, bool positive)
{
    double x = logit        ? score
               : score <= 0 ? -INFINITY
               : score >= 1 ? INFINITY
                            : log(score) - log1p(-score);

    /* -0 and 0 are one score; NaN goes above all. */
    x = isnan(x) ? INFINITY : x + 0.0;
    return (int64_t)(ascending((float)x) >> DROPPED_BITS) * 2 + positive;
}

static wf_status score_keys(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    bool logits = wf_node_int(run->node, "logits", 0) != 0;
    int64_t *keys = out[0]->data;

    (void)err;
    for (int64_t i = 0; i < wf_elems(in[0]); i++)
        keys[i] = key_of(wf_number_at(in[0], i), logits, wf_number_at(in[1], i) > 0.5);
    return WF_OK;
}

const wf_kernel wf_kernels_score_keys[] = {
    WF_ROW("ScoreKeys", WF_TYPES_FLOAT, score_keys, .domain = WF_DOMAIN_WEFT, .prepare = prepare),
    {0},
};
