/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/init.c - first values of variables, by Keras's initializers.
 *
 * Limits and deviations: Keras 3, keras/initializers/random_initializers.py (VarianceScaling:
 * Glorot & Bengio 2010; He et al. 2015; LeCun et al. 1998; Orthogonal: Saxe et al. 2014). Element i
 * is drawn by counter i from (seed, variable name): no order, thread or neighbour changes it. The
 * numbers are not Keras's own.
 */
#include "common/base/distribution.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/compile/pass.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum fan { FIXED, FAN_IN, FAN_OUT, FAN_MEAN } fan;

typedef struct initializer {
    const char *name;
    wf_distribution_kind kind;
    fan fan;
    double scale; /* the constant; or the fixed limit or deviation; or the variance's numerator */
    /* Fills t by itself; NULL: by the distribution. */
    wf_status (*fill)(const wf_conf_item *how, const wf_fans *fans, wf_rng_key key, wf_tensor *t,
                      wf_err *err);
} initializer;

/* The deviation of a standard normal cut at 2, by which Keras divides so that the cut one has the
 * deviation asked for. */
static const double cut_deviation = 0.87962566103423978;

/* Fans as Keras counts them: the last axis is out, the one before it in, and what is before both
 * multiplies each. */
static wf_fans fans_of(const wf_tensor *t)
{
    double field = 1.0;
    wf_fans f = {.in = 1.0, .out = 1.0};

    for (uint32_t i = 0; i + 2 < t->rank; i++)
        field *= (double)t->dims[i];
    if (t->rank)
        f.in = f.out = (double)t->dims[t->rank - 1];
    if (t->rank > 1)
        f.in = (double)t->dims[t->rank - 2];
    f.in *= field;
    f.out *= field;
    return f;
}

/* The flat matrix of Keras: all axes but the last against the last, or turned (fans->out_first). */
static void matrix_of(const wf_tensor *t, const wf_fans *fans, int64_t *rows, int64_t *columns)
{
    int64_t one = t->rank ? t->dims[fans->out_first ? 0 : t->rank - 1] : 1;

    *rows = fans->out_first ? one : wf_elems(t) / (one > 0 ? one : 1);
    *columns = fans->out_first ? wf_elems(t) / (one > 0 ? one : 1) : one;
}

/* Makes vector i of q, [n, length], orthogonal to those before it and of length 1. Twice is enough
 * (Giraud et al. 2005): the second time takes away what rounding left. */
static void orthogonalize(double *q, int64_t i, int64_t length)
{
    double *v = q + i * length, sum;

    for (int round = 0; round < 2; round++)
        for (int64_t k = 0; k < i; k++) {
            const double *u = q + k * length;

            sum = 0.0;
            for (int64_t j = 0; j < length; j++)
                sum += u[j] * v[j];
            for (int64_t j = 0; j < length; j++)
                v[j] -= sum * u[j];
        }
    sum = 0.0;
    for (int64_t j = 0; j < length; j++)
        sum += v[j] * v[j];
    for (int64_t j = 0; j < length; j++)
        v[j] /= sqrt(sum);
}

/* Orthonormal rows or columns, whichever are fewer, of normal draws: what Keras has from QR with
 * the signs of R's diagonal taken out. */
static wf_status orthogonal(const wf_conf_item *how, const wf_fans *fans, wf_rng_key key,
                            wf_tensor *t, wf_err *err)
{
    static const double most_work = 1e10; /* some ten seconds */
    double gain = wf_conf_number(how, "gain", 1.0), *q;
    int64_t rows, columns, n, length;
    float *w = wf_f32_mut(t);
    size_t bytes;

    matrix_of(t, fans, &rows, &columns);
    n = rows < columns ? rows : columns;
    length = rows < columns ? columns : rows;
    if (t->rank < 2)
        return wf_fail(err, WF_USAGE, "choose another", "orthogonal wants two axes or more");
    if ((double)n * (double)n * (double)length > most_work)
        return wf_fail(err, WF_UNSUPPORTED, "choose glorot_uniform, or a smaller layer",
                       "orthogonal of a matrix %lld x %lld takes too long", (long long)rows,
                       (long long)columns);
    if (!wf_mul_size((size_t)wf_elems(t), sizeof(*q), &bytes) || !(q = malloc(bytes + 1)))
        return wf_fail_nomem(err, (size_t)wf_elems(t));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < length; k++)
            q[i * length + k] = wf_rng_normal(key, (uint64_t)(i * length + k), 0);
        orthogonalize(q, i, length);
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            w[i * columns + k] =
                (float)(gain * (rows < columns ? q[i * length + k] : q[k * length + i]));
    free(q);
    return WF_OK;
}

static wf_status identity(const wf_conf_item *how, const wf_fans *fans, wf_rng_key key,
                          wf_tensor *t, wf_err *err)
{
    double gain = wf_conf_number(how, "gain", 1.0);

    (void)fans, (void)key;
    if (t->rank != 2)
        return wf_fail(err, WF_USAGE, "choose another", "identity wants two axes, and there %s %u",
                       t->rank == 1 ? "is" : "are", t->rank);
    for (int64_t i = 0; i < t->dims[0]; i++)
        for (int64_t k = 0; k < t->dims[1]; k++)
            wf_f32_mut(t)[i * t->dims[1] + k] = i == k ? (float)gain : 0.0f;
    return WF_OK;
}

static const initializer initializers[] = {
    {"zeros", WF_CONSTANT, FIXED, 0.0, NULL},
    {"ones", WF_CONSTANT, FIXED, 1.0, NULL},
    {"constant", WF_CONSTANT, FIXED, 0.0, NULL},
    {"glorot_uniform", WF_UNIFORM, FAN_MEAN, 1.0, NULL},
    {"glorot_normal", WF_TRUNCATED_NORMAL, FAN_MEAN, 1.0, NULL},
    {"he_uniform", WF_UNIFORM, FAN_IN, 2.0, NULL},
    {"he_normal", WF_TRUNCATED_NORMAL, FAN_IN, 2.0, NULL},
    {"lecun_uniform", WF_UNIFORM, FAN_IN, 1.0, NULL},
    {"lecun_normal", WF_TRUNCATED_NORMAL, FAN_IN, 1.0, NULL},
    {"random_uniform", WF_UNIFORM, FIXED, 0.05, NULL},
    {"uniform", WF_UNIFORM, FIXED, 0.05, NULL},
    {"random_normal", WF_NORMAL, FIXED, 0.05, NULL},
    {"normal", WF_NORMAL, FIXED, 0.05, NULL},
    {"truncated_normal", WF_TRUNCATED_NORMAL, FIXED, 0.05, NULL},
    {"variance_scaling", WF_TRUNCATED_NORMAL, FAN_IN, 1.0, NULL},
    {"orthogonal", WF_NORMAL, FIXED, 1.0, orthogonal},
    {"identity", WF_CONSTANT, FIXED, 1.0, identity},
};

static double fan_of(fan which, const wf_fans *fans)
{
    double in = fmax(1.0, fans->in), out = fmax(1.0, fans->out);

    return which == FAN_IN ? in : which == FAN_OUT ? out : (in + out) / 2.0;
}

/* The row's numbers, changed by the options that are given. */
static wf_distribution distribution_of(const initializer *row, const wf_conf_item *how,
                                       const wf_fans *fans)
{
    const char *mode = wf_conf_text(how, "mode", "");
    const char *distribution = wf_conf_text(how, "distribution", "");
    double low = wf_conf_number(how, "minval", -row->scale);
    double high = wf_conf_number(how, "maxval", row->scale), variance;
    wf_distribution p = {.kind = row->kind};
    fan of = row->fan;

    if (of != FIXED) {
        of = !strcmp(mode, "fan_out") ? FAN_OUT : !strcmp(mode, "fan_avg") ? FAN_MEAN : of;
        p.kind = !strcmp(distribution, "uniform")              ? WF_UNIFORM
                 : !strcmp(distribution, "untruncated_normal") ? WF_NORMAL
                                                               : row->kind;
        variance = wf_conf_number(how, "scale", row->scale) / fan_of(of, fans);
        p.spread = p.kind == WF_UNIFORM  ? sqrt(3.0 * variance)
                   : p.kind == WF_NORMAL ? sqrt(variance)
                                         : sqrt(variance) / cut_deviation;
    } else if (p.kind == WF_CONSTANT) {
        p.centre = wf_conf_number(how, "value", row->scale);
    } else if (p.kind == WF_UNIFORM) {
        p.centre = (low + high) / 2.0;
        p.spread = (high - low) / 2.0;
    } else {
        p.centre = wf_conf_number(how, "mean", 0.0);
        p.spread = wf_conf_number(how, "stddev", row->scale);
    }
    return p;
}

uint64_t wf_initial_stream(const char *variable)
{
    return wf_rng_fold_str(wf_rng_fold_str(0, "initial"), variable);
}

static wf_status find_initializer(const wf_conf_item *how, const initializer **out, wf_err *err)
{
    const char *names[WF_COUNT(initializers)], *near;

    for (size_t i = 0; i < WF_COUNT(initializers); i++) {
        names[i] = initializers[i].name;
        *out = &initializers[i];
        if (strcmp(names[i], how->type) == 0)
            return WF_OK;
    }
    near = wf_nearest(how->type, names, WF_COUNT(names));
    return wf_fail(err, WF_USAGE, "docs/jobs.md lists the initializers",
                   "unknown initializer \"%s\"%s%s%s", how->type, near ? "; did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}

wf_status wf_initial_distribution(const wf_conf_item *how, wf_distribution *out, wf_err *err)
{
    const wf_fans none = {.in = 1, .out = 1};
    const initializer *row = NULL;

    WF_TRY(find_initializer(how, &row, err));
    if (row->fill || row->fan != FIXED)
        return wf_fail(err, WF_USAGE, "choose uniform or normal, with their options",
                       "%s goes by the number of rows, and with input_dim: unbounded it is not "
                       "known",
                       row->name);
    *out = distribution_of(row, how, &none);
    return WF_OK;
}

wf_status wf_initial_of_shape(const wf_conf_item *how, uint32_t rank, const int64_t dims[],
                              bool *has, wf_distribution *out, wf_err *err)
{
    wf_tensor shape = {.rank = rank};
    const initializer *row = NULL;
    wf_fans fans;

    WF_TRY(find_initializer(how, &row, err));
    *has = row->fill == NULL;
    if (!*has)
        return WF_OK;
    memcpy(shape.dims, dims, rank * sizeof dims[0]);
    fans = fans_of(&shape);
    *out = distribution_of(row, how, &fans);
    return WF_OK;
}

wf_status wf_initialize(const wf_conf_item *how, const wf_fans *fans, uint64_t seed,
                        const char *variable, wf_tensor *t, wf_err *err)
{
    wf_rng_key key = {.seed = seed, .stream = wf_initial_stream(variable)};
    wf_fans by_shape = fans_of(t);
    const initializer *row = NULL;
    wf_distribution d;

    if (!fans)
        fans = &by_shape;
    WF_TRY(find_initializer(how, &row, err));
    if (row->fill)
        return wf_err_wrap(err, row->fill(how, fans, key, t, err), "\"%s\"", variable);
    d = distribution_of(row, how, fans);
    wf_distribution_fill(&d, key, 0, wf_f32_mut(t), (uint64_t)wf_elems(t));
    return WF_OK;
}
