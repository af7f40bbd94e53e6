/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/group.h - devices that add up arrays in their memory between each other, without a
 * copy on the host: the gradients of a model's replicas. */
#ifndef WF_KERNELS_GROUP_H
#define WF_KERNELS_GROUP_H

#include "common/base/status.h"
#include "common/tensor/device.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_device_group wf_device_group;

/* An array of one device. */
typedef struct wf_group_segment {
    uint64_t n; /* elements; may be 0 */
    float *x;   /* [n], changed in place */
} wf_group_segment;

typedef struct wf_device_groups {
    /* A group of distinct devices[n] of this kind; the caller owns *out. Errors: WF_UNSUPPORTED
     * without the library that it takes; WF_NOMEM; what the devices say. */
    wf_status (*open)(const wf_device *const devices[], uint32_t n, wf_device_group **out,
                      wf_err *err);
    /* Frees *g, of which nothing is queued any more, and sets it to NULL; NULL is fine. */
    void (*close)(wf_device_group **g);
    /* Queues sums: segment i of each device becomes the sum over segments i of all devices, with
     * the same bits on each. segments[k] is [n], and read before it returns; streams[k] is of
     * device k, and what is queued on it goes on when all devices are there. Errors: what the
     * devices say. */
    wf_status (*sum)(wf_device_group *g, wf_stream *const streams[], size_t n,
                     const wf_group_segment *const segments[], wf_err *err);
} wf_device_groups;

/* What makes groups of devices of that kind, or NULL: nothing does. */
const wf_device_groups *wf_groups_of(const wf_device *device);

#endif
