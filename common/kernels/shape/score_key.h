/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/score_key.h - the bin of a score in a histogram by class, see the operation
 * ScoreKeys. Bins are those of logits: equal steps of a probability would put all of 0.9999 to 1
 * into one. */
#ifndef WF_KERNELS_SHAPE_SCORE_KEY_H
#define WF_KERNELS_SHAPE_SCORE_KEY_H

#include "common/kernels/shape/anywhere.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WF_SCORE_DROPPED_BITS = 8 }; /* of 23: 32768 bins for each power of two */

/* The bits of an f32 as a number that ascends with it: negative ones are turned round. */
WF_ANYWHERE uint32_t wf_ascending(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

WF_ANYWHERE int64_t wf_score_key(double score, bool logit, bool positive)
{
    double x = logit        ? score
               : score <= 0 ? -(double)INFINITY
               : score >= 1 ? (double)INFINITY
                            : log(score) - log1p(-score);

    /* -0 and 0 are one score; NaN goes above all. */
    x = x != x ? (double)INFINITY : x + 0.0;
    return (int64_t)(wf_ascending((float)x) >> WF_SCORE_DROPPED_BITS) * 2 + positive;
}

#endif
