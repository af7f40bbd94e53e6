/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/binary_focal_crossentropy.c - binary crossentropy times (1 - p of the
 * label)^gamma: what is right already counts less (Lin et al. 2017, section 3). alpha weighs the
 * classes when apply_class_balancing is true. */
#include "common/compile/losses/losses.h"

/* (1 - p_t)^gamma, p_t the probability that was given to the label. */
static wf_value *focus(wf_emit *e, const wf_goal *g, wf_value *y, double gamma)
{
    wf_value *one = wf_emit_scalar(e, g->scores->dtype, 1.0), *p, *hit, *miss, *missing;

    p = g->scores_are_logits ? wf_emit_unary(e, "Sigmoid", g->scores)
                             : wf_loss_clipped(e, g->scores);
    hit = wf_emit_mul(e, y, p);
    miss = wf_emit_mul(e, wf_emit_sub(e, one, y), wf_emit_sub(e, one, p));
    missing = wf_emit_sub(e, one, wf_emit_add(e, hit, miss));
    if (gamma == 2.0)
        return wf_emit_mul(e, missing, missing);
    /* Below 1 the power has no slope at 0; a rounding may even make it negative. */
    missing = wf_emit_binary(e, "Max", missing, wf_emit_scalar(e, g->scores->dtype, 1e-7));
    return wf_emit_pow(e, missing, wf_emit_scalar(e, g->scores->dtype, gamma));
}

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    double gamma = wf_goal_number(g, "gamma", 2.0), alpha = wf_goal_number(g, "alpha", 0.25);
    wf_value *y = wf_loss_smoothed(e, g, 0.5), *v = wf_loss_binary_values(e, g), *balance;

    if (gamma != 0.0)
        v = wf_emit_mul(e, v, focus(e, g, y, gamma));
    if (wf_goal_number(g, "apply_class_balancing", 0.0) == 0.0 || !y)
        return v;
    /* y alpha + (1 - y) (1 - alpha) */
    balance = wf_emit_add(e, wf_emit_scale(e, y, 2.0 * alpha - 1.0),
                          wf_emit_scalar(e, y->dtype, 1.0 - alpha));
    return wf_emit_mul(e, v, balance);
}

static const wf_option_row options[] = {
    WF_LOSS_FROM_LOGITS,
    WF_LOSS_NUMBER("label_smoothing", 0.0, 1.0),
    WF_LOSS_NUMBER("gamma", 0.0, 100.0),
    WF_LOSS_NUMBER("alpha", 0.0, 1.0),
    {.name = "apply_class_balancing", .kind = WF_CONF_BOOL},
    {0},
};

const wf_loss_row wf_loss_binary_focal_crossentropy = {
    .name = "binary_focal_crossentropy",
    .kind = WF_LOSS_BINARY,
    .activation = "Sigmoid",
    .options = options,
    .values = values,
};
