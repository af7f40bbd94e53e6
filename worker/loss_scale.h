/* SPDX-License-Identifier: Apache-2.0 */
/* worker/loss_scale.h - the factor of a loss whose gradients are computed in float16, where what is
 * below 6e-8 is zero and what is above 65504 is infinite.
 *
 * The graph multiplies the loss by it, and divides the gradients. It halves when they are not
 * finite, in which case the step is left out, and doubles after many steps in a row in which they
 * are: Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2; the options are
 * those of Keras's LossScaleOptimizer. Powers of two change no gradient that float16 holds.
 */
#ifndef WF_WORKER_LOSS_SCALE_H
#define WF_WORKER_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* {0} scales nothing. */
typedef struct wf_loss_scale {
    float scale;           /* what the graph is given; at least 1 */
    uint32_t growth_steps; /* 0: it stays as it is */
    uint32_t good;         /* steps in a row since it changed last */
} wf_loss_scale;

/* `moves`: the device computes in float16. Else the scale is 1 for good. */
wf_loss_scale wf_loss_scale_begin(bool moves, float initial, uint32_t growth_steps);
/* Whether gradients that are not finite may be due to it: a smaller one is still to be tried. */
bool wf_loss_scale_may_fall(const wf_loss_scale *s);
/* The gradients of a step were all finite, or not, in which case it may fall. True when it has
 * changed. */
bool wf_loss_scale_note(wf_loss_scale *s, bool finite);

#endif
