/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/init.c - first values of variables, by Keras's initializers.
 *
 * Limits and deviations: Keras 3, keras/initializers/random_initializers.py (VarianceScaling:
 * Glorot & Bengio 2010; He et al. 2015; LeCun et al. 1998). Element i is drawn by counter i from
 * (seed, variable name): no order, thread or neighbour changes it. The numbers are not Keras's own.
 */
#include "common/base/nearest.h"
#include "common/base/rng.h"
#include "common/compile/pass.h"
#include <math.h>
#include <string.h>

typedef enum draw { CONSTANT, UNIFORM, TRUNCATED_NORMAL, NORMAL } draw;
typedef enum fan { FIXED, FAN_IN, FAN_MEAN } fan;

typedef struct initializer {
    const char *name;
    draw draw;
    fan fan;
    double scale; /* the constant; or the fixed limit or deviation; or the variance's numerator */
} initializer;

static const initializer initializers[] = {
    {"zeros", CONSTANT, FIXED, 0.0},
    {"ones", CONSTANT, FIXED, 1.0},
    {"glorot_uniform", UNIFORM, FAN_MEAN, 1.0},
    {"glorot_normal", TRUNCATED_NORMAL, FAN_MEAN, 1.0},
    {"he_uniform", UNIFORM, FAN_IN, 2.0},
    {"he_normal", TRUNCATED_NORMAL, FAN_IN, 2.0},
    {"lecun_uniform", UNIFORM, FAN_IN, 1.0},
    {"lecun_normal", TRUNCATED_NORMAL, FAN_IN, 1.0},
    {"random_uniform", UNIFORM, FIXED, 0.05},
    {"random_normal", NORMAL, FIXED, 0.05},
};

/* The deviation of a standard normal cut at 2, by which Keras divides so that the cut one has the
 * deviation asked for. */
static const double cut_deviation = 0.87962566103423978;

/* Fans as Keras counts them: the last axis is out, the one before it in, and what is before both
 * multiplies each. */
static void fans(const wf_tensor *t, double *in, double *out)
{
    double field = 1.0;

    for (uint32_t i = 0; i + 2 < t->rank; i++)
        field *= (double)t->dims[i];
    *in = *out = t->rank ? (double)t->dims[t->rank - 1] : 1.0;
    if (t->rank > 1)
        *in = (double)t->dims[t->rank - 2];
    *in = fmax(1.0, *in * field);
    *out = fmax(1.0, *out * field);
}

/* Box-Muller from two words of one counter; `attempt` tells redraws apart. */
static double normal(wf_rng_key key, uint64_t i, uint64_t attempt)
{
    double a, b;

    key.stream = wf_rng_fold(key.stream, attempt);
    a = wf_rng_f64(key, 2 * i);
    b = wf_rng_f64(key, 2 * i + 1);
    return sqrt(-2.0 * log(1.0 - a)) * cos(6.283185307179586 * b);
}

static double truncated(wf_rng_key key, uint64_t i)
{
    double x;
    uint64_t attempt = 0;

    /* Falls outside once in 22 draws; 64 misses in a row do not happen, and the bound says so. */
    do
        x = normal(key, i, attempt++);
    while (fabs(x) > 2.0 && attempt < 64);
    return fmin(2.0, fmax(-2.0, x));
}

static void fill(const initializer *how, wf_rng_key key, wf_tensor *t)
{
    float *w = wf_f32_mut(t);
    uint64_t n = (uint64_t)wf_elems(t);
    double in, out, spread = how->scale;

    fans(t, &in, &out);
    if (how->fan != FIXED) {
        double variance = how->scale / (how->fan == FAN_IN ? in : (in + out) / 2.0);

        spread = how->draw == UNIFORM ? sqrt(3.0 * variance) : sqrt(variance) / cut_deviation;
    }
    for (uint64_t i = 0; i < n; i++) {
        double x = 1.0;

        if (how->draw == UNIFORM)
            x = 2.0 * (double)wf_rng_f32(key, i) - 1.0;
        else if (how->draw == NORMAL)
            x = normal(key, i, 0);
        else if (how->draw == TRUNCATED_NORMAL)
            x = truncated(key, i);
        w[i] = (float)(x * spread);
    }
}

wf_status wf_initialize(const char *name, uint64_t seed, const char *variable, wf_tensor *t,
                        wf_err *err)
{
    const char *names[WF_COUNT(initializers)], *near;
    wf_rng_key key = {.seed = seed,
                      .stream = wf_rng_fold_str(wf_rng_fold_str(0, "initial"), variable)};

    for (size_t i = 0; i < WF_COUNT(initializers); i++) {
        names[i] = initializers[i].name;
        if (!strcmp(names[i], name)) {
            fill(&initializers[i], key, t);
            return WF_OK;
        }
    }
    near = wf_nearest(name, names, WF_COUNT(names));
    return wf_fail(err, WF_USAGE, "see docs for the initializers that there are",
                   "unknown initializer \"%s\"%s%s%s", name, near ? "; did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}
