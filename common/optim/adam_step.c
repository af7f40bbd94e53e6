/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adam_step.c - Adam (Kingma and Ba 2015, end of section 2), as Keras 3's Adam has it
 * (keras/src/optimizers/adam.py); t counts the slice's own updates:
 *   alpha = rate * sqrt(1 - beta_2^t) / (1 - beta_1^t)
 *   m += (g - m) * (1 - beta_1);  v += (g^2 - v) * (1 - beta_2)
 *   amsgrad:  h = max(h, v), used for v below
 *   w -= m * alpha / (sqrt(v) + epsilon)
 */
#include "common/base/cc.h"
#include "common/optim/step.h"

typedef struct numbers {
    float alpha, decay, rest_1, rest_2, epsilon;
} numbers;

WF_MULTIVERSION static void plain(size_t n, float *restrict w, const float *restrict g,
                                  float *restrict m, float *restrict v, numbers k)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * k.decay;
        float mi = m[i] + (g[i] - m[i]) * k.rest_1;
        float vi = v[i] + (g[i] * g[i] - v[i]) * k.rest_2;

        m[i] = mi;
        v[i] = vi;
        w[i] = x - mi * k.alpha / (sqrtf(vi) + k.epsilon);
    }
}

WF_MULTIVERSION static void amsgrad(size_t n, float *restrict w, const float *restrict g,
                                    float *restrict m, float *restrict v, float *restrict h,
                                    numbers k)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * k.decay;
        float mi = m[i] + (g[i] - m[i]) * k.rest_1;
        float vi = v[i] + (g[i] * g[i] - v[i]) * k.rest_2;
        float hi = vi > h[i] ? vi : h[i];

        m[i] = mi;
        v[i] = vi;
        h[i] = hi;
        w[i] = x - mi * k.alpha / (sqrtf(hi) + k.epsilon);
    }
}

void wf_adam_step(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                  float *const slots[])
{
    double beta_1 = wf_opt_option(opt, "beta_1"), beta_2 = wf_opt_option(opt, "beta_2");
    double rate = wf_opt_option(opt, "learning_rate");
    double alpha = rate * sqrt(1 - wf_power(beta_2, updates)) / (1 - wf_power(beta_1, updates));
    numbers k = {.alpha = (float)alpha,
                 .decay = wf_decay(opt),
                 .rest_1 = (float)(1 - beta_1),
                 .rest_2 = (float)(1 - beta_2),
                 .epsilon = (float)wf_opt_option(opt, "epsilon")};

    if (wf_opt_option(opt, "amsgrad") != 0)
        amsgrad(n, w, g, slots[0], slots[1], slots[2], k);
    else
        plain(n, w, g, slots[0], slots[1], k);
}
