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
#include "common/optim/update.h"

enum { RATE, RHO, EPSILON, DECAY };

static const wf_option options_of_adadelta[] = {
    [RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [RHO] = {"rho", 0.95, WF_RANGE_FRACTION},
    [EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_adadelta[] = {
    {.name = "accumulated_grad"},
    {.name = "accumulated_delta_var"},
    {0},
};

typedef struct scalars {
    float rate, rho, fresh /* 1 - rho */, epsilon, decay;
} scalars;

static WF_INLINE void loop(scalars s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict a, float *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * s.decay;
        float square = s.rho * a[i] + s.fresh * (g[i] * g[i]);
        float step = g[i] * sqrtf(x[i] + s.epsilon) / sqrtf(square + s.epsilon);

        a[i] = square;
        x[i] = s.rho * x[i] + s.fresh * (step * step);
        w[i] = at - s.rate * step;
    }
}

static WF_INLINE void adadelta_body(WF_UPDATE_ARGS)
{
    scalars s = {
        .rate = (float)options[RATE],
        .rho = (float)options[RHO],
        .fresh = (float)(1 - options[RHO]),
        .epsilon = (float)options[EPSILON],
        .decay = (float)(options[DECAY] * options[RATE]),
    };

    (void)updates;
    loop(s, n, w, g, slots[0], slots[1]);
}
WF_UPDATE_FORMS(adadelta)

const wf_rule wf_rule_adadelta = {
    .name = "adadelta",
    .options = options_of_adadelta,
    .slots = slots_of_adadelta,
    .update = adadelta_update,
    .portable = adadelta_portable,
};
