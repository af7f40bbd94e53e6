/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adadelta.c - steps as long as recent steps were, over the root of recent gradients.
 *
 *   w -= w * weight_decay * learning_rate
 *   a  = rho * a + (1 - rho) * g * g
 *   d  = g * sqrt(x + epsilon) / sqrt(a + epsilon)
 *   x  = rho * x + (1 - rho) * d * d
 *   w -= learning_rate * d
 *
 * Keras 3's Adadelta (Zeiler 2012) and its defaults; the paper has a learning rate of 1.
 */
#include "common/optim/formula/adadelta.h"
#include "common/optim/update.h"

static const wf_option options_of_adadelta[] = {
    [WF_ADADELTA_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [WF_ADADELTA_RHO] = {"rho", 0.95, WF_RANGE_FRACTION},
    [WF_ADADELTA_EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [WF_ADADELTA_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_adadelta[] = {
    {.name = "accumulated_grad"},
    {.name = "accumulated_delta_var"},
    {0},
};

static WF_INLINE void loop(wf_adadelta s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict a, float *restrict x)
{
    for (size_t i = 0; i < n; i++)
        wf_adadelta_element(s, &w[i], g[i], &a[i], &x[i]);
}

static WF_INLINE void adadelta_body(WF_UPDATE_ARGS)
{
    loop(wf_adadelta_scalars(options, updates), n, w, g, slots[0], slots[1]);
}
WF_UPDATE_FORMS(adadelta)

const wf_rule wf_rule_adadelta = {
    .name = "adadelta",
    .options = options_of_adadelta,
    .slots = slots_of_adadelta,
    .update = adadelta_update,
    .portable = adadelta_portable,
};
