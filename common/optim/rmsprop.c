/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/rmsprop.c - RMSprop (Tieleman and Hinton 2012, lecture 6.5), as Keras 3's RMSprop
 * has it (keras/src/optimizers/rmsprop.py), with its defaults: v = rho * v + (1 - rho) * g^2
 *   centered:  a = rho * a + (1 - rho) * g;  d = v - a^2 + epsilon;  otherwise  d = v + epsilon
 *   u = rate * g / sqrt(d)
 *   momentum > 0:  b = momentum * b + u;  w -= b;  otherwise  w -= u
 */
#include "common/base/cc.h"
#include "common/optim/step.h"

typedef struct numbers {
    float rate, decay, rho, rest, epsilon, momentum;
} numbers;

WF_MULTIVERSION static void plain(size_t n, float *restrict w, const float *restrict g,
                                  float *restrict v, numbers k)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * k.decay;
        float vi = k.rho * v[i] + k.rest * (g[i] * g[i]);

        v[i] = vi;
        w[i] = x - k.rate * g[i] / sqrtf(vi + k.epsilon);
    }
}

WF_MULTIVERSION static void with_momentum(size_t n, float *restrict w, const float *restrict g,
                                          float *restrict v, float *restrict b, numbers k)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * k.decay;
        float vi = k.rho * v[i] + k.rest * (g[i] * g[i]);
        float bi = k.momentum * b[i] + k.rate * g[i] / sqrtf(vi + k.epsilon);

        v[i] = vi;
        b[i] = bi;
        w[i] = x - bi;
    }
}

/* v - a^2 is a variance: at least 0 but for rounding, which epsilon covers. */
WF_MULTIVERSION static void centered(size_t n, float *restrict w, const float *restrict g,
                                     float *restrict v, float *restrict a, numbers k)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * k.decay;
        float vi = k.rho * v[i] + k.rest * (g[i] * g[i]);
        float ai = k.rho * a[i] + k.rest * g[i];

        v[i] = vi;
        a[i] = ai;
        w[i] = x - k.rate * g[i] / sqrtf(vi - ai * ai + k.epsilon);
    }
}

WF_MULTIVERSION static void centered_with_momentum(size_t n, float *restrict w,
                                                   const float *restrict g, float *restrict v,
                                                   float *restrict b, float *restrict a, numbers k)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * k.decay;
        float vi = k.rho * v[i] + k.rest * (g[i] * g[i]);
        float ai = k.rho * a[i] + k.rest * g[i];
        float bi = k.momentum * b[i] + k.rate * g[i] / sqrtf(vi - ai * ai + k.epsilon);

        v[i] = vi;
        a[i] = ai;
        b[i] = bi;
        w[i] = x - bi;
    }
}

static void apply(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                  float *const slots[])
{
    double rho = wf_opt_option(opt, "rho");
    numbers k = {.rate = (float)wf_opt_option(opt, "learning_rate"),
                 .decay = wf_decay(opt),
                 .rho = (float)rho,
                 .rest = (float)(1 - rho),
                 .epsilon = (float)wf_opt_option(opt, "epsilon"),
                 .momentum = (float)wf_opt_option(opt, "momentum")};
    int has_momentum = wf_opt_option(opt, "momentum") != 0;

    (void)updates;
    if (wf_opt_option(opt, "centered") != 0) {
        if (has_momentum)
            centered_with_momentum(n, w, g, slots[0], slots[1], slots[2], k);
        else
            centered(n, w, g, slots[0], slots[1], k);
    } else if (has_momentum) {
        with_momentum(n, w, g, slots[0], slots[1], k);
    } else {
        plain(n, w, g, slots[0], k);
    }
}

static const wf_option options[] = {
    WF_OPTION_RATE(0.001),
    WF_OPTION_UNIT("rho", 0.9),
    WF_OPTION_UNIT("momentum", 0),
    WF_OPTION_EPSILON(1e-7),
    WF_OPTION_FLAG("centered", 0),
    WF_OPTION_DECAY(0),
    {0},
};
static const wf_slot_row slots[] = {
    {.name = "velocity"},
    {.name = "momentum", .only_if = "momentum"},
    {.name = "average_gradient", .only_if = "centered"},
    {0},
};

const wf_rule wf_rule_rmsprop = {
    .name = "rmsprop", .slots = slots, .options = options, .apply = apply};
