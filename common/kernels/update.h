/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/update.h - what a device does with variables in its memory between two runs of a
 * plan: an update by a rule of common/optim or a moving average, and the look at gradients before.
 * Weights then need not leave the device between steps.
 *
 * Each function takes many variables in one call, and queues its work on a stream. Segments [n] are
 * read before it returns; what they point to is memory of the device, and no array overlaps another
 * that is written. */
#ifndef WF_KERNELS_UPDATE_H
#define WF_KERNELS_UPDATE_H

#include "common/base/status.h"
#include "common/optim/rule.h"
#include "common/tensor/device.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A variable, or for a rule that is not `whole` a part of one. */
typedef struct wf_update_segment {
    uint64_t n;                 /* elements; may be 0 */
    float *w;                   /* [n], changed in place */
    const float *g;             /* [n] */
    float *slots[WF_MAX_SLOTS]; /* [n] each: those that are present, in the rule's order */
} wf_update_segment;

/* Queues one update of all segments, with the same bits as the rule's own update (lamb: norms are
 * summed in another order, so that a weight differs by at most 1e-5 of the way that it went, and a
 * unit in its last place), and with the same bits each time. The host's are those of a thread that
 * flushes subnormal numbers, as each of weft's programs does (common/base/subnormal.h).
 *   options   of the rule: wf_opt_options
 *   updates   how many updates the segments have had, this one counted
 * Errors: WF_UNSUPPORTED for a rule that the device lacks; what the device says. */
typedef wf_status wf_update_fn(wf_stream *stream, const wf_rule *rule, const double options[],
                               uint64_t updates, size_t n, const wf_update_segment segments[],
                               wf_err *err);

/* A statistic, or a part of one. */
typedef struct wf_average_segment {
    uint64_t n; /* elements; may be 0 */
    double momentum;
    float *w;         /* [n], changed in place */
    const float *now; /* [n], the value of a batch */
} wf_average_segment;

/* Queues the moving average of each segment, with the bits of wf_statistic_apply. Errors: what the
 * device says. */
typedef wf_status wf_average_fn(wf_stream *stream, size_t n, const wf_average_segment segments[],
                                wf_err *err);

/* A gradient, all of it, and memory of the device that norms need. */
typedef struct wf_clip_segment {
    uint64_t n;      /* elements; may be 0 */
    float *g;        /* [n], changed in place */
    double *scratch; /* [wf_clip_scratch(n)]; unused without a limit of norms */
} wf_clip_segment;

/* What an element is held to, and norms: of each gradient, and of all together. 0: not. `by`: what
 * all are multiplied by, where their norm together is known to the caller; 0: nothing. */
typedef struct wf_clip_limits {
    double value, norm, global_norm;
    float by;
} wf_clip_limits;

/* What norms are summed over: squares of a block's elements in so many lanes, each in order; lanes
 * in order; blocks in order. */
enum { WF_CLIP_BLOCK = 1 << 16, WF_CLIP_LANES = 16 };

static inline uint64_t wf_clip_scratch(uint64_t n)
{
    return (n + WF_CLIP_BLOCK - 1) / WF_CLIP_BLOCK * (WF_CLIP_LANES + 1) + 1;
}

/* Queues clipping: elements are held to +-value, and NaN stays; then each gradient is scaled so
 * that its norm is at most `norm`; then all are, so that their norm together is at most
 * `global_norm`; then all are multiplied by `by`. With the bits of the host's (worker/gradients.h).
 *   total   [1] of the device, for the norm of all; unused without a limit of it
 * Errors: what the device says. */
typedef wf_status wf_clip_fn(wf_stream *stream, const wf_clip_limits *limits, double *total,
                             size_t n, const wf_clip_segment segments[], wf_err *err);

/* Queues the sum of squares of each gradient, with the bits of the host's; an empty one has 0.
 *   squares   [n] of the device
 * Errors: what the device says. */
typedef wf_status wf_squares_fn(wf_stream *stream, double *squares, size_t n,
                                const wf_clip_segment segments[], wf_err *err);

/* A gradient, or a part of one. */
typedef struct wf_finite_segment {
    uint64_t n;     /* elements; may be 0 */
    const float *x; /* [n] */
    int32_t *bad;   /* [1]; segments may share one */
} wf_finite_segment;

/* Queues the look at all segments: *bad becomes 1 where any of x is NaN or infinite, and stays as
 * it is elsewhere. Errors: what the device says. */
typedef wf_status wf_finite_fn(wf_stream *stream, size_t n, const wf_finite_segment segments[],
                               wf_err *err);

/* A gradient of a batch, and that of a step of several batches; or parts of both. */
typedef struct wf_sum_segment {
    uint64_t n; /* elements; may be 0 */
    float *to;
    const float *from; /* [n] */
} wf_sum_segment;

/* Queues to = by * from for the first batch, to += by * from for others, with the host's bits
 * (worker/gradients.h). Errors: what the device says. */
typedef wf_status wf_sum_fn(wf_stream *stream, float by, bool first, size_t n,
                            const wf_sum_segment segments[], wf_err *err);

typedef struct wf_device_updates {
    wf_update_fn *update;
    wf_average_fn *average;
    wf_clip_fn *clip;
    wf_squares_fn *squares;
    wf_finite_fn *finite;
    wf_sum_fn *sum;
} wf_device_updates;

/* The device's, or NULL: it has none, or is a host, whose memory wf_opt_apply reaches. */
const wf_device_updates *wf_updates_of(const wf_device *device);

#endif
