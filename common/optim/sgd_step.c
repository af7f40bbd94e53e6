/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/sgd_step.c - gradient descent, with momentum if asked for.
 *
 * Formulas as Keras 3's SGD (keras/src/optimizers/sgd.py):
 *   plain     w -= rate * g
 *   momentum  m = momentum * m - rate * g;  w += m
 *   nesterov  m = momentum * m - rate * g;  w += momentum * m - rate * g
 */
#include "common/base/cc.h"
#include "common/optim/step.h"

WF_MULTIVERSION static void plain(size_t n, float *restrict w, const float *restrict g, float rate,
                                  float decay)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * decay;

        w[i] = x - rate * g[i];
    }
}

WF_MULTIVERSION static void with_momentum(size_t n, float *restrict w, const float *restrict g,
                                          float *restrict m, float rate, float decay,
                                          float momentum)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * decay;
        float mi = momentum * m[i] - rate * g[i];

        m[i] = mi;
        w[i] = x + mi;
    }
}

WF_MULTIVERSION static void with_nesterov(size_t n, float *restrict w, const float *restrict g,
                                          float *restrict m, float rate, float decay,
                                          float momentum)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * decay;
        float down = rate * g[i];
        float mi = momentum * m[i] - down;

        m[i] = mi;
        w[i] = x + (momentum * mi - down);
    }
}

void wf_sgd_step(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                 float *const slots[])
{
    float rate = (float)wf_opt_option(opt, "learning_rate");
    float momentum = (float)wf_opt_option(opt, "momentum");
    float decay = wf_decay(opt);

    (void)updates;
    if (wf_opt_n_slots(opt) == 0)
        plain(n, w, g, rate, decay);
    else if (wf_opt_option(opt, "nesterov") != 0)
        with_nesterov(n, w, g, slots[0], rate, decay, momentum);
    else
        with_momentum(n, w, g, slots[0], rate, decay, momentum);
}
