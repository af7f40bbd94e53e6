/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/noise.c - gaussian_noise, gaussian_dropout and alpha_dropout: noise in
 * training, and their input otherwise; ai.weft Training says which. */
#include "common/compile/layers/layer.h"
#include <math.h>

static wf_flow chosen(wf_layer *l, wf_flow f, wf_value *noisy)
{
    wf_value *training = wf_emit_op(&l->e, "Training", 0, NULL, 0, NULL);

    f.value = wf_emit_where(&l->e, training, noisy, f.value);
    return f;
}

static wf_value *normal(wf_layer *l, wf_value *like, double mean, double deviation)
{
    wf_attr attrs[] = {wf_attr_float("mean", (float)mean),
                       wf_attr_float("scale", (float)deviation)};

    return like ? wf_emit_op(&l->e, "RandomNormalLike", 1, &like, 2, attrs) : NULL;
}

static wf_flow noise(wf_layer *l)
{
    wf_flow f = wf_layer_float(l, 0);
    double deviation = wf_conf_number(l->item, "stddev", 0.0);

    return chosen(l, f, wf_emit_add(&l->e, f.value, normal(l, f.value, 0.0, deviation)));
}

/* Srivastava et al. 2014, section 10: noise of the variance that dropout has. */
static wf_flow gaussian_dropout(wf_layer *l)
{
    wf_flow f = wf_layer_float(l, 0);
    double rate = wf_conf_number(l->item, "rate", 0.0);

    return chosen(l, f,
                  wf_emit_mul(&l->e, f.value, normal(l, f.value, 1.0, sqrt(rate / (1.0 - rate)))));
}

/* Klambauer et al. 2017: what is dropped takes selu's value at minus infinity, and a x + b brings
 * mean and variance back. */
static wf_flow alpha_dropout(wf_layer *l)
{
    const double low = -1.6732632423543772 * 1.0507009873554805;
    wf_flow f = wf_layer_float(l, 0);
    double rate = wf_conf_number(l->item, "rate", 0.0);
    double a = 1.0 / sqrt((1.0 - rate) * (1.0 + rate * low * low)), b = -a * low * rate;
    wf_value *drawn, *x;

    if (!f.value)
        return f;
    drawn = wf_emit_op(&l->e, "RandomUniformLike", 1, &f.value, 0, NULL);
    drawn = wf_emit_binary(&l->e, "Less", drawn, wf_layer_number(l, rate));
    x = wf_emit_where(&l->e, drawn, wf_layer_number(l, low), f.value);
    x = wf_emit_add(&l->e, wf_emit_scale(&l->e, x, a), wf_layer_number(l, b));
    return chosen(l, f, x);
}

const wf_layer_row wf_layer_alpha_dropout = {"alpha_dropout", 1, 1, alpha_dropout};
const wf_layer_row wf_layer_gaussian_dropout = {"gaussian_dropout", 1, 1, gaussian_dropout};
const wf_layer_row wf_layer_gaussian_noise = {"gaussian_noise", 1, 1, noise};
