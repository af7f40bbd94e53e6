/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/normalization.c - batch, layer, group, rms and unit normalisation.
 *
 * Variables have Keras's names: gamma, beta, moving_mean, moving_variance. Batch normalisation is
 * in its inference form here; the mode pass brings the form of training. */
#include "common/compile/layers/layer.h"

/* gamma or beta of n elements, or a constant where the option turns it off. */
static wf_value *scaled_by(wf_layer *l, const char *part, const char *option, int64_t n,
                           double neutral)
{
    if (wf_layer_flag(l, option, true))
        return wf_layer_variable(l, part, 1, &n, neutral == 1.0 ? "ones" : "zeros", NULL);
    return wf_layer_numbers(l, 1, &n, neutral);
}

/* Input 0 as [batch, channels, ...] with the option "axis" at the channels. */
static wf_flow with_channels(wf_layer *l)
{
    wf_flow f = wf_layer_float(l, 0), plain;
    int64_t axis = wf_layer_axis(l, f, wf_conf_int(l->item, "axis", -1));

    if (axis < 0)
        return (wf_flow){0};
    if (f.channels_second && axis != 1) { /* Keras's axis 1 of an image is its height */
        plain = wf_layer_give(wf_layer_plain(l, f));
        axis = wf_layer_axis(l, plain, wf_conf_int(l->item, "axis", -1));
        f = plain;
    }
    if (!f.value || axis == 1)
        return f;
    if (axis == f.value->rank - 1)
        return wf_layer_channels_second(l, f);
    return wf_layer_refuse(l, WF_UNSUPPORTED, "use -1 or 1", "\"axis\" is %lld",
                           (long long)wf_conf_int(l->item, "axis", -1));
}

static wf_value *running(wf_layer *l, const char *part, int64_t n, const char *otherwise)
{
    wf_tensor *t = wf_layer_first(l, part, 1, &n, otherwise, NULL);

    return wf_layer_keep(l, part, WF_VAR_STATISTIC, &t);
}

static wf_flow batch(wf_layer *l)
{
    wf_flow f = with_channels(l);
    wf_value *in[5] = {f.value};
    int64_t n;
    wf_attr attrs[] = {
        wf_attr_float("epsilon", (float)wf_conf_number(l->item, "epsilon", 1e-3)),
        wf_attr_float("momentum", (float)wf_conf_number(l->item, "momentum", 0.99)),
    };

    if (!f.value)
        return f;
    n = f.value->axes[1].size;
    in[1] = scaled_by(l, "gamma", "scale", n, 1.0);
    in[2] = scaled_by(l, "beta", "center", n, 0.0);
    in[3] = running(l, "moving_mean", n, "zeros");
    in[4] = running(l, "moving_variance", n, "ones");
    f.value = wf_emit_op(&l->e, "BatchNormalization", 5, in, 2, attrs);
    return f;
}

/* The last axis in Keras's order, which these two work along; 0 after a failure. */
static int64_t last_axis(wf_layer *l, const wf_value *x)
{
    int64_t asked = wf_conf_int(l->item, "axis", -1);

    if (!x || wf_layer_axis(l, wf_layer_give((wf_value *)x), asked) < 0)
        return 0;
    if (asked == -1 || asked == x->rank - 1)
        return x->axes[x->rank - 1].size;
    wf_layer_refuse(l, WF_UNSUPPORTED, "put a permute before it",
                    "\"axis\" is %lld, and weft has -1", (long long)asked);
    return 0;
}

static wf_flow layer(wf_layer *l)
{
    wf_value *in[3] = {wf_layer_in(l, 0), NULL, NULL};
    int64_t n = last_axis(l, in[0]);
    bool center = wf_layer_flag(l, "center", true);
    wf_attr attrs[] = {
        wf_attr_int("axis", -1),
        wf_attr_float("epsilon", (float)wf_conf_number(l->item, "epsilon", 1e-3)),
    };

    if (!n)
        return (wf_flow){0};
    in[1] = scaled_by(l, "gamma", "scale", n, 1.0);
    if (center)
        in[2] = scaled_by(l, "beta", "center", n, 0.0);
    return wf_layer_give(wf_emit_op(&l->e, "LayerNormalization", center ? 3 : 2, in, 2, attrs));
}

static wf_flow rms(wf_layer *l)
{
    wf_value *in[2] = {wf_layer_in(l, 0), NULL};
    int64_t n = last_axis(l, in[0]);
    wf_attr attrs[] = {
        wf_attr_int("axis", -1),
        wf_attr_float("epsilon", (float)wf_conf_number(l->item, "epsilon", 1e-6)),
    };

    if (!n)
        return (wf_flow){0};
    in[1] = wf_layer_variable(l, "scale", 1, &n, "ones", NULL);
    return wf_layer_give(wf_emit_op(&l->e, "RMSNormalization", 2, in, 2, attrs));
}

static wf_flow group(wf_layer *l)
{
    wf_flow f = with_channels(l);
    wf_value *in[3] = {f.value};
    int64_t n, groups = wf_conf_int(l->item, "groups", 32);
    wf_attr attrs[2];

    if (!f.value)
        return f;
    n = f.value->axes[1].size;
    groups = groups == -1 ? n : groups;
    if (groups < 1 || n % groups)
        return wf_layer_refuse(l, WF_USAGE, "choose a divisor, or -1 for a group a channel",
                               "%lld channels do not divide into %lld groups", (long long)n,
                               (long long)groups);
    attrs[0] = wf_attr_int("num_groups", groups);
    attrs[1] = wf_attr_float("epsilon", (float)wf_conf_number(l->item, "epsilon", 1e-3));
    in[1] = scaled_by(l, "gamma", "scale", n, 1.0);
    in[2] = scaled_by(l, "beta", "center", n, 0.0);
    f.value = wf_emit_op(&l->e, "GroupNormalization", 3, in, 2, attrs);
    return f;
}

/* x / sqrt(max(sum x^2, 1e-24)), as Keras keeps the length of nothing away from 0. */
static wf_flow unit(wf_layer *l)
{
    wf_flow f = wf_layer_float(l, 0);
    int64_t axis = wf_layer_axis(l, f, wf_conf_int(l->item, "axis", -1));
    wf_value *sum = wf_emit_reduce_sum(&l->e, wf_emit_mul(&l->e, f.value, f.value), 1, &axis, true);

    sum = wf_emit_binary(&l->e, "Max", sum, wf_layer_number(l, 1e-24));
    f.value = wf_emit_div(&l->e, f.value, wf_emit_unary(&l->e, "Sqrt", sum));
    return f;
}

const wf_layer_row wf_layer_batch_normalization = {"batch_normalization", 1, 1, batch};
const wf_layer_row wf_layer_group_normalization = {"group_normalization", 1, 1, group};
const wf_layer_row wf_layer_layer_normalization = {"layer_normalization", 1, 1, layer};
const wf_layer_row wf_layer_rms_normalization = {"rms_normalization", 1, 1, rms};
const wf_layer_row wf_layer_unit_normalization = {"unit_normalization", 1, 1, unit};
