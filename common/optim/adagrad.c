/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adagrad.c - a step for each weight that shrinks with the gradients it has seen.
 *
 *   w -= w * weight_decay * learning_rate
 *   a += g * g                                      a starts at initial_accumulator_value
 *   w -= learning_rate * g / sqrt(a + epsilon)
 *
 * Keras 3's Adagrad (Duchi et al. 2011), with epsilon inside the root as there; PyTorch has it
 * outside.
 */
#include "common/optim/formula/adagrad.h"
#include "common/optim/update.h"

static const wf_option options_of_adagrad[] = {
    [WF_ADAGRAD_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [WF_ADAGRAD_INITIAL] = {"initial_accumulator_value", 0.1, WF_RANGE_NOT_NEGATIVE},
    [WF_ADAGRAD_EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [WF_ADAGRAD_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_adagrad[] = {
    {.name = "accumulator", .initial_from = "initial_accumulator_value"},
    {0},
};

static WF_INLINE void loop(wf_adagrad s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict a)
{
    for (size_t i = 0; i < n; i++)
        wf_adagrad_element(s, &w[i], g[i], &a[i]);
}

static WF_INLINE void adagrad_body(WF_UPDATE_ARGS)
{
    loop(wf_adagrad_scalars(options, updates), n, w, g, slots[0]);
}
WF_UPDATE_FORMS(adagrad)

const wf_rule wf_rule_adagrad = {
    .name = "adagrad",
    .options = options_of_adagrad,
    .slots = slots_of_adagrad,
    .update = adagrad_update,
    .portable = adagrad_portable,
};
