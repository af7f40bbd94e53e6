/* SPDX-License-Identifier: Apache-2.0 */
/* ps/slice.h - one slice: a contiguous part of a dense variable, with its optimizer slots.
 *
 * The weights lie in a counted buffer that answers of pulls and forks for checkpoints borrow. The
 * buffer is never written while anyone else holds it: the next update goes to a spare buffer, which
 * then becomes the weights. So a pull copies nothing and always sees one instant of its slice.
 *
 * Invariants
 *   V1  updates grows by exactly 1 per applied part; a restore brings the saved number back
 *   V2  a buffer with more than the slice's own reference is never written
 */
#ifndef WF_PS_SLICE_H
#define WF_PS_SLICE_H

#include "common/base/status.h"
#include "common/optim/rule.h"
#include "common/tensor/buf.h"
#include "ps/seen.h"
#include <stdint.h>

enum { WF_SLICE_SPARES = 4 };

typedef struct wf_slice {
    uint32_t id, variable;
    uint64_t offset, count; /* elements of the variable, f32 */
    bool trainable;         /* updated by the optimizer's rule */
    bool statistic;         /* a moving average of pushed values; neither: never pushed */
    double momentum;        /* of a statistic: how much of the old value an update keeps */
    wf_buf *weights;        /* [count] */
    wf_buf *spares[WF_SLICE_SPARES];
    float *slots[WF_MAX_SLOTS]; /* each [count] */
    uint32_t n_slots;
    uint64_t updates; /* V1 */
    wf_seen seen;
} wf_slice;

/* Sets up zeroed weights and slots; slots start as the rule says. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_slice_init(wf_slice *s, const wf_opt *opt, wf_err *err);
void wf_slice_close(wf_slice *s);

static inline float *wf_slice_weights(const wf_slice *s)
{
    return (float *)s->weights->data;
}

static inline bool wf_slice_is_frozen(const wf_slice *s)
{
    return !s->trainable && !s->statistic;
}

/* An update under way: the slice has a buffer that nobody else holds, and `old` is a reference to
 * the weights before the update, NULL when they lie in that buffer already. */
typedef struct wf_slice_update {
    wf_slice *slice;
    wf_buf *old;
} wf_slice_update;

/* Begins to apply one part and moves updates on by 1; wf_slice_update_range for all elements and
 * wf_slice_update_end have to follow before anything else is done with the slice. Errors: WF_NOMEM;
 * nothing is changed then. */
WF_MUST_USE wf_status wf_slice_update_begin(wf_slice *s, wf_slice_update *out, wf_err *err);
/* Elements [begin, end) of a part [count], a gradient or a batch's statistic. Ranges that do not
 * overlap may be done by several threads at once, unless the rule is `whole`: then there is one. */
void wf_slice_update_range(const wf_slice_update *u, const wf_opt *opt, const float *grad,
                           uint64_t begin, uint64_t end);
void wf_slice_update_end(wf_slice_update *u);
/* All of one part, by this thread. Errors as of wf_slice_update_begin. */
WF_MUST_USE wf_status wf_slice_apply(wf_slice *s, const wf_opt *opt, const float *grad,
                                     wf_err *err);

#endif
