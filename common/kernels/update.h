/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/update.h - one update of many variables in memory of a device, by a rule of
 * common/optim. Weights then need not leave the device between steps. */
#ifndef WF_KERNELS_UPDATE_H
#define WF_KERNELS_UPDATE_H

#include "common/base/status.h"
#include "common/optim/rule.h"
#include "common/tensor/device.h"
#include <stddef.h>
#include <stdint.h>

/* A variable, or for a rule that is not `whole` a part of one. */
typedef struct wf_update_segment {
    uint64_t n;                 /* elements; may be 0 */
    float *w;                   /* [n], changed in place */
    const float *g;             /* [n], overlaps nothing */
    float *slots[WF_MAX_SLOTS]; /* [n] each: those that are present, in the rule's order */
} wf_update_segment;

/* Queues one update of all segments on the stream, with the same bits as the rule's own update
 * (lamb: norms are summed in another order, so that a weight differs by at most 1e-5 of the way
 * that it went, and a unit in its last place), and with the same bits each time.
 *   options   of the rule: wf_opt_options
 *   updates   how many updates the segments have had, this one counted
 *   segments  [n], read before the function returns; what they point to is of the device
 * Errors: WF_UNSUPPORTED for a rule that the device lacks; what the device says. */
typedef wf_status wf_update_fn(wf_stream *stream, const wf_rule *rule, const double options[],
                               uint64_t updates, size_t n, const wf_update_segment segments[],
                               wf_err *err);

/* The device's, or NULL: it has none, or is a host, whose memory wf_opt_apply reaches. */
wf_update_fn *wf_device_update(const wf_device *device);

#endif
