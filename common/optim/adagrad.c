/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adagrad.c - Adagrad (Duchi, Hazan and Singer 2011), as Keras 3's Adagrad has it
 * (keras/src/optimizers/adagrad.py), with its defaults:
 *   a += g * g;  w -= rate * g / sqrt(a + epsilon)
 */
#include "common/base/cc.h"
#include "common/optim/step.h"

WF_MULTIVERSION static void step(size_t n, float *restrict w, const float *restrict g,
                                 float *restrict a, float rate, float decay, float epsilon)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - w[i] * decay;
        float ai = a[i] + g[i] * g[i];

        a[i] = ai;
        w[i] = x - rate * g[i] / sqrtf(ai + epsilon);
    }
}

static void apply(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                  float *const slots[])
{
    (void)updates;
    step(n, w, g, slots[0], (float)wf_opt_option(opt, "learning_rate"), wf_decay(opt),
         (float)wf_opt_option(opt, "epsilon"));
}

static const wf_option options[] = {
    WF_OPTION_RATE(0.001),
    {"initial_accumulator_value", 0.1, 0, 1e30},
    WF_OPTION_EPSILON(1e-7),
    WF_OPTION_DECAY(0),
    {0},
};
static const wf_slot_row slots[] = {{.name = "accumulator", .initial = "initial_accumulator_value"},
                                    {0}};

const wf_rule wf_rule_adagrad = {
    .name = "adagrad", .slots = slots, .options = options, .apply = apply};
