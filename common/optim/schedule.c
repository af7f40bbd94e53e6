/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/schedule.c - Keras 3's learning-rate schedules, with its names, parameters and
 * defaults. `s` is the count of updates before this one (Keras's `iterations`).
 *
 *   exponential_decay         initial * decay_rate^(s / decay_steps)
 *   inverse_time_decay        initial / (1 + decay_rate * s / decay_steps)
 *                             staircase: the whole part of s / decay_steps, in both
 *   polynomial_decay          (initial - end) * (1 - s / decay_steps)^power + end, s <= decay_steps
 *                             cycle: decay_steps is the smallest multiple that s does not pass
 *   piecewise_constant_decay  values[i] up to and with s = boundaries[i], then the next
 *   cosine_decay              initial * ((1 - alpha) * (1 + cos(pi * s / decay_steps)) / 2 +
 * alpha); with warmup_target a straight line leads there from the initial rate in warmup_steps, and
 * it decays from there cosine_decay_restarts     (Loshchilov & Hutter 2017) periods of
 * first_decay_steps * t_mul^i, each beginning at initial * m_mul^i
 *
 * Departures: they are worked out in f64 by exact.h, Keras does it in f32; t_mul below 1, where
 * Keras gives NaN after the last period, is refused, and so is warmup_steps without warmup_target,
 * which Keras passes over in silence.
 */
#include "common/optim/schedule.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/optim/exact.h"

#include <math.h>
#include <string.h>

#define PREFIX "learning_rate."
#define P(schedule, param, otherwise, range)                                                       \
    {                                                                                              \
        PREFIX schedule "." param, otherwise, range                                                \
    }
#define INITIAL(schedule) P(schedule, "initial_learning_rate", NAN, WF_RANGE_NOT_NEGATIVE)

enum { PIECES = 16 };

/* exponential_decay and inverse_time_decay have the same parameters. */
enum { START, STEPS, DECAY_RATE, STAIRCASE };

static const wf_option exponential_params[] = {
    INITIAL("exponential_decay"),
    P("exponential_decay", "decay_steps", NAN, WF_RANGE_POSITIVE),
    P("exponential_decay", "decay_rate", NAN, WF_RANGE_POSITIVE),
    P("exponential_decay", "staircase", 0, WF_RANGE_FLAG),
    {0},
};

static const wf_option inverse_params[] = {
    INITIAL("inverse_time_decay"),
    P("inverse_time_decay", "decay_steps", NAN, WF_RANGE_POSITIVE),
    P("inverse_time_decay", "decay_rate", NAN, WF_RANGE_NOT_NEGATIVE),
    P("inverse_time_decay", "staircase", 0, WF_RANGE_FLAG),
    {0},
};

static double part_of(const double p[], double steps)
{
    double part = steps / p[STEPS];

    return p[STAIRCASE] != 0 ? floor(part) : part;
}

static double exponential_rate(const double p[], double steps)
{
    return p[START] * wf_exact_power(p[DECAY_RATE], part_of(p, steps));
}

static double inverse_rate(const double p[], double steps)
{
    return p[START] / (1 + p[DECAY_RATE] * part_of(p, steps));
}

enum { POLY_END = 2, POLY_POWER, POLY_CYCLE };

static const wf_option polynomial_params[] = {
    INITIAL("polynomial_decay"),
    P("polynomial_decay", "decay_steps", NAN, WF_RANGE_POSITIVE),
    P("polynomial_decay", "end_learning_rate", 0.0001, WF_RANGE_NOT_NEGATIVE),
    P("polynomial_decay", "power", 1, WF_RANGE_POSITIVE),
    P("polynomial_decay", "cycle", 0, WF_RANGE_FLAG),
    {0},
};

static double polynomial_rate(const double p[], double steps)
{
    double all = p[STEPS];

    if (p[POLY_CYCLE] != 0 && steps > 0)
        all *= ceil(steps / p[STEPS]);
    else
        steps = WF_MIN(steps, all);
    return (p[START] - p[POLY_END]) * wf_exact_power(1 - steps / all, p[POLY_POWER]) + p[POLY_END];
}

static const wf_option piecewise_params[] = {
    P("piecewise_constant_decay", "values.0", NAN, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.1", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.2", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.3", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.4", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.5", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.6", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.7", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.8", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.9", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.10", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.11", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.12", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.13", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.14", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.15", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "values.16", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.0", NAN, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.1", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.2", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.3", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.4", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.5", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.6", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.7", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.8", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.9", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.10", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.11", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.12", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.13", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.14", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("piecewise_constant_decay", "boundaries.15", INFINITY, WF_RANGE_NOT_NEGATIVE),
    {0},
};

static double piecewise_rate(const double p[], double steps)
{
    const double *boundaries = p + PIECES + 1;
    int i = 0;

    while (i < PIECES && isfinite(boundaries[i]) && steps > boundaries[i])
        i++;
    return p[i];
}

static wf_status piecewise_check(const double p[], wf_err *err)
{
    const double *boundaries = p + PIECES + 1;
    int n = 0, values = 0;

    while (n < PIECES && isfinite(boundaries[n]))
        n++;
    while (values <= PIECES && isfinite(p[values]))
        values++;
    if (values != n + 1)
        return wf_fail(err, WF_USAGE, NULL,
                       "%d boundaries and %d values: there is one value more than boundaries", n,
                       values);
    for (int i = 1; i < n; i++)
        if (boundaries[i] <= boundaries[i - 1])
            return wf_fail(err, WF_USAGE, NULL,
                           "boundary %g comes after %g: each is above the last", boundaries[i],
                           boundaries[i - 1]);
    return WF_OK;
}

enum { COS_ALPHA = 2, COS_TARGET, COS_WARMUP };

static const wf_option cosine_params[] = {
    INITIAL("cosine_decay"),
    P("cosine_decay", "decay_steps", NAN, WF_RANGE_POSITIVE),
    P("cosine_decay", "alpha", 0, WF_RANGE_NOT_NEGATIVE),
    P("cosine_decay", "warmup_target", INFINITY, WF_RANGE_NOT_NEGATIVE),
    P("cosine_decay", "warmup_steps", 0, WF_RANGE_NOT_NEGATIVE),
    {0},
};

static double cosine_part(double alpha, double part)
{
    return (1 - alpha) * (0.5 * (1 + wf_exact_cos_pi(part))) + alpha;
}

static double cosine_rate(const double p[], double steps)
{
    double from = isfinite(p[COS_TARGET]) ? p[COS_TARGET] : p[START];

    if (steps < p[COS_WARMUP])
        return (from - p[START]) * (steps / p[COS_WARMUP]) + p[START];
    steps = WF_MIN(steps - p[COS_WARMUP], p[STEPS]);
    return from * cosine_part(p[COS_ALPHA], steps / p[STEPS]);
}

static wf_status cosine_check(const double p[], wf_err *err)
{
    if (p[COS_WARMUP] > 0 && !isfinite(p[COS_TARGET]))
        return wf_fail(err, WF_USAGE, "give warmup_target, the rate after the warm-up",
                       "warmup_steps leads to no warmup_target");
    return WF_OK;
}

enum { RE_T = 2, RE_M, RE_ALPHA };

static const wf_option restarts_params[] = {
    INITIAL("cosine_decay_restarts"),
    P("cosine_decay_restarts", "first_decay_steps", NAN, WF_RANGE_POSITIVE),
    P("cosine_decay_restarts", "t_mul", 2, WF_RANGE_FROM_ONE),
    P("cosine_decay_restarts", "m_mul", 1, WF_RANGE_NOT_NEGATIVE),
    P("cosine_decay_restarts", "alpha", 0, WF_RANGE_NOT_NEGATIVE),
    {0},
};

/* Which period `part` first periods after the beginning lie in, and how far into it, of 1. */
static double period_of(double t_mul, double part, double *into)
{
    double i, length, begins;

    if (t_mul == 1) {
        i = floor(part);
        *into = part - i;
        return i;
    }
    i = floor(wf_exact_log(1 + part * (t_mul - 1)) / wf_exact_log(t_mul));
    length = wf_exact_power(t_mul, i);
    begins = (length - 1) / (t_mul - 1);
    if (part < begins) { /* rounding, at a period's very beginning */
        i--;
        begins -= length / t_mul;
        length /= t_mul;
    } else if (part - begins >= length) {
        i++;
        begins += length;
        length *= t_mul;
    }
    *into = WF_MAX(WF_MIN((part - begins) / length, 1.0), 0.0);
    return i;
}

static double restarts_rate(const double p[], double steps)
{
    double into, i = period_of(p[RE_T], steps / p[STEPS], &into);
    double cosine = wf_exact_power(p[RE_M], i) * (0.5 * (1 + wf_exact_cos_pi(into)));

    return p[START] * ((1 - p[RE_ALPHA]) * cosine + p[RE_ALPHA]);
}

const wf_schedule wf_schedules[] = {
    {"cosine_decay", cosine_params, cosine_rate, cosine_check},
    {"cosine_decay_restarts", restarts_params, restarts_rate, NULL},
    {"exponential_decay", exponential_params, exponential_rate, NULL},
    {"inverse_time_decay", inverse_params, inverse_rate, NULL},
    {"piecewise_constant_decay", piecewise_params, piecewise_rate, piecewise_check},
    {"polynomial_decay", polynomial_params, polynomial_rate, NULL},
    {0},
};

static wf_status unknown_schedule(const char *name, size_t n, wf_err *err)
{
    const char *names[WF_COUNT(wf_schedules)];
    char word[64], hint[WF_NEAREST_HINT];
    size_t k = 0;

    n = WF_MIN(n, sizeof word - 1);
    memcpy(word, name, n);
    word[n] = 0;
    for (; wf_schedules[k].name; k++)
        names[k] = wf_schedules[k].name;
    return wf_fail(err, WF_USAGE, wf_nearest_hint(word, names, k, NULL, hint),
                   "unknown schedule \"%s\"", word);
}

static wf_status unknown_param(const wf_schedule *s, const char *param, wf_err *err)
{
    size_t skip = strlen(PREFIX) + strlen(s->name) + 1;
    const char *names[WF_MAX_PLAN];
    char hint[WF_NEAREST_HINT];
    size_t n = 0;

    for (; s->params[n].name; n++)
        names[n] = s->params[n].name + skip;
    return wf_fail(err, WF_USAGE, wf_nearest_hint(param, names, n, NULL, hint),
                   "schedule %s has no \"%.64s\"", s->name, param);
}

wf_status wf_schedule_find(const char *option, const wf_schedule **out, int *param, wf_err *err)
{
    const char *name = option + strlen(PREFIX), *dot;

    if (strncmp(option, PREFIX, strlen(PREFIX)) != 0)
        return wf_fail(err, WF_USAGE, NULL,
                       "\"%.64s\" is a number; only learning_rate may follow "
                       "a schedule",
                       option);
    dot = strchr(name, '.');
    for (const wf_schedule *s = wf_schedules; dot && s->name; s++) {
        if (strlen(s->name) != (size_t)(dot - name) || strncmp(s->name, name, strlen(s->name)) != 0)
            continue;
        *out = s;
        for (*param = 0; s->params[*param].name; ++*param)
            if (strcmp(s->params[*param].name, option) == 0)
                return WF_OK;
        return unknown_param(s, dot + 1, err);
    }
    return unknown_schedule(name, dot ? (size_t)(dot - name) : strlen(name), err);
}
