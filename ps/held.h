/* SPDX-License-Identifier: Apache-2.0 */
/* ps/held.h - parts of pushes that a slice holds until the step that they belong to is complete:
 * where workers make each step together, it is applied as one, the mean of their gradients
 * (together.c).
 *
 * A held part is not applied, not marked as seen and not acknowledged: its worker has it still, and
 * pushes it again if this slice goes elsewhere.
 */
#ifndef WF_PS_HELD_H
#define WF_PS_HELD_H

#include "common/base/status.h"
#include "common/wire/msg.h"
#include "ps/slice_ops.h"
#include <stdint.h>

typedef struct wf_held_part {
    wf_slice_part part; /* its values and ids lie in `frames` */
    wf_buf *frames[2];  /* references of its own, which may be NULL */
    uint32_t slice;
    uint32_t clock;   /* of the step; at least 1 */
    uint32_t records; /* that the gradient is a mean over; 0: the step was dropped */
    uint32_t worker;  /* its index */
    int64_t since_ns;
} wf_held_part;

typedef struct wf_held {
    wf_held_part *rows; /* [n] */
    uint32_t n, room;
} wf_held;

void wf_held_close(wf_held *h);
/* Holds a part, which then has a reference to each of the frames of `m` that it lies in. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_held_add(wf_held *h, const wf_held_part *row, const wf_msg *m,
                                  const wf_part *p, wf_err *err);
/* The part of a step; NULL: it is not held. */
const wf_held_part *wf_held_find(const wf_held *h, uint64_t incarnation, uint32_t step);
/* The smallest clock of all; 0: none is held. */
uint32_t wf_held_least(const wf_held *h);
/* Gives back what an incarnation has pushed. */
void wf_held_forget(wf_held *h, uint64_t incarnation);
/* Moves the parts of a clock to the end of `to`, in the order of the workers. Errors: WF_NOMEM; all
 * stay then. */
WF_MUST_USE wf_status wf_held_take(wf_held *h, uint32_t clock, wf_held *to, wf_err *err);
/* Gives back all parts; the memory is used again. */
void wf_held_clear(wf_held *h);

#endif
