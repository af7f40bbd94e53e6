/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/rmsprop.c - a step for each weight, over the root of its recent squared gradients.
 *
 *   w -= w * weight_decay * learning_rate
 *   v  = rho * v + (1 - rho) * g * g
 *   d  = v + epsilon                                not centered
 *   a  = rho * a + (1 - rho) * g                    centered:
 *   d  = v - a * a + epsilon
 *   s  = learning_rate * g / sqrt(d)
 *   w -= s                                          momentum 0
 *   m  = momentum * m + s;  w -= m                  otherwise
 *
 * Keras 3's RMSprop (Hinton's lecture 6e; centered: Graves 2013). Departure: v - a * a, never
 * negative but for rounding, is not let fall below 0, where the root would be NaN.
 */
#include "common/optim/formula/rmsprop.h"
#include "common/optim/update.h"

static const wf_option options_of_rmsprop[] = {
    [WF_RMSPROP_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [WF_RMSPROP_RHO] = {"rho", 0.9, WF_RANGE_FRACTION},
    [WF_RMSPROP_MOMENTUM] = {"momentum", 0, WF_RANGE_FRACTION},
    [WF_RMSPROP_EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [WF_RMSPROP_CENTERED] = {"centered", 0, WF_RANGE_FLAG},
    [WF_RMSPROP_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_rmsprop[] = {
    {.name = "velocity"},
    {.name = "momentum", .needs = "momentum"},
    {.name = "average_gradient", .needs = "centered"},
    {0},
};

/* `moving` and `centered` are constants at each call: four plain loops come of this one. m and a
 * may be NULL where they are not used. */
static WF_INLINE void loop(wf_rmsprop s, bool moving, bool centered, size_t n, float *restrict w,
                           const float *restrict g, float *restrict v, float *restrict m,
                           float *restrict a)
{
    for (size_t i = 0; i < n; i++)
        wf_rmsprop_element(s, moving, centered, &w[i], g[i], &v[i], moving ? &m[i] : NULL,
                           centered ? &a[i] : NULL);
}

static WF_INLINE void rmsprop_body(WF_UPDATE_ARGS)
{
    wf_rmsprop s = wf_rmsprop_scalars(options, updates);
    bool moving = options[WF_RMSPROP_MOMENTUM] != 0, centered = options[WF_RMSPROP_CENTERED] != 0;

    if (moving && centered)
        loop(s, true, true, n, w, g, slots[0], slots[1], slots[2]);
    else if (moving)
        loop(s, true, false, n, w, g, slots[0], slots[1], NULL);
    else if (centered)
        loop(s, false, true, n, w, g, slots[0], NULL, slots[1]);
    else
        loop(s, false, false, n, w, g, slots[0], NULL, NULL);
}
WF_UPDATE_FORMS(rmsprop)

const wf_rule wf_rule_rmsprop = {
    .name = "rmsprop",
    .options = options_of_rmsprop,
    .slots = slots_of_rmsprop,
    .update = rmsprop_update,
    .portable = rmsprop_portable,
};
