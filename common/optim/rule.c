/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/rule.c - the table of rules; a rule's options chosen by name. */
#include "common/optim/rule.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/optim/schedule.h"
#include "common/optim/update.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WF_RULE(name) &wf_rule_##name,
const wf_rule *const wf_rules[] = {
#include "common/optim/rows.def"
    NULL};
#undef WF_RULE

/* Keras's, known and not built yet: to be told from a misspelt name. */
static const char *const later_rules[] = {"adafactor", "muon"};
static const char *const later_options[] = {"ema_momentum", "ema_overwrite_frequency",
                                            "loss_scale_factor", "use_ema"};

/* In the order of wf_opt_shared. */
static const wf_option shared_options[] = {
    [WF_OPT_WARMUP_STEPS] = {"warmup_steps", 0, WF_RANGE_COUNT},
    [WF_OPT_CLIPVALUE] = {"clipvalue", 0, WF_RANGE_POSITIVE},
    [WF_OPT_CLIPNORM] = {"clipnorm", 0, WF_RANGE_POSITIVE},
    [WF_OPT_GLOBAL_CLIPNORM] = {"global_clipnorm", 0, WF_RANGE_POSITIVE},
    [WF_OPT_ACCUMULATION] = {"gradient_accumulation_steps", 0, WF_RANGE_COUNT},
    {0},
};

static bool is_among(const char *name, const char *const words[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

const wf_rule *wf_rule_find(const char *name)
{
    for (size_t i = 0; wf_rules[i]; i++)
        if (strcmp(wf_rules[i]->name, name) == 0)
            return wf_rules[i];
    return NULL;
}

static wf_status unknown_rule(const char *name, wf_err *err)
{
    const char *names[WF_COUNT(wf_rules)];
    char hint[WF_NEAREST_HINT];
    size_t n = 0;

    if (is_among(name, later_rules, WF_COUNT(later_rules)))
        return wf_fail(err, WF_UNSUPPORTED, "adam or adamw does for most models",
                       "optimizer \"%s\" is not built yet", name);
    for (; wf_rules[n]; n++)
        names[n] = wf_rules[n]->name;
    return wf_fail(err, WF_USAGE, wf_nearest_hint(name, names, n, "weft help optimizers", hint),
                   "unknown optimizer \"%s\"", name);
}

/* The place of an option in a list, or -1. */
static int find_option(const wf_option options[], const char *name)
{
    for (int i = 0; options[i].name; i++)
        if (strcmp(options[i].name, name) == 0)
            return i;
    return -1;
}

static wf_status unknown_option(const wf_rule *rule, const char *name, wf_err *err)
{
    const char *names[WF_MAX_OPTIONS + WF_OPT_N_SHARED];
    char hint[WF_NEAREST_HINT];
    size_t n = 0;

    if (is_among(name, later_options, WF_COUNT(later_options)))
        return wf_fail(err, WF_UNSUPPORTED, "leave it out",
                       "optimizer %s: option \"%s\" is not built yet", rule->name, name);
    for (; rule->options[n].name; n++)
        names[n] = rule->options[n].name;
    for (size_t i = 0; shared_options[i].name; i++)
        names[n++] = shared_options[i].name;
    return wf_fail(err, WF_USAGE, wf_nearest_hint(name, names, n, "weft help optimizers", hint),
                   "optimizer %s has no option \"%s\"", rule->name, name);
}

static bool is_in(wf_option_range range, double x)
{
    if (!isfinite(x))
        return false;
    switch (range) {
    case WF_RANGE_POSITIVE:
        return x > 0;
    case WF_RANGE_NOT_NEGATIVE:
        return x >= 0;
    case WF_RANGE_FRACTION:
        return x >= 0 && x < 1;
    case WF_RANGE_FLAG:
        return x == 0 || x == 1;
    case WF_RANGE_COUNT:
        return x >= 0 && x <= 1e15 && floor(x) == x;
    case WF_RANGE_FROM_ONE:
        return x >= 1;
    case WF_RANGE_MINUS_HALF:
        return x == -0.5;
    }
    return false;
}

static wf_status check_value(const wf_rule *rule, const wf_option *o, double x, wf_err *err)
{
    static const char *const words[] = {
        [WF_RANGE_POSITIVE] = "above 0",
        [WF_RANGE_NOT_NEGATIVE] = "0 or above",
        [WF_RANGE_FRACTION] = "at least 0 and below 1",
        [WF_RANGE_FLAG] = "true or false",
        [WF_RANGE_COUNT] = "a whole number, 0 or above",
        [WF_RANGE_FROM_ONE] = "1 or above",
        [WF_RANGE_MINUS_HALF] = "-0.5",
    };
    bool later = o->range == WF_RANGE_MINUS_HALF && isfinite(x);

    if (is_in(o->range, x))
        return WF_OK;
    return wf_fail(err, later ? WF_UNSUPPORTED : WF_USAGE, NULL,
                   "optimizer %s: %s is %g; it must be %s", rule->name, o->name, x,
                   words[o->range]);
}

/* One option by name, wherever it belongs; `given` notes those of the row and the shared ones. */
static wf_status take_option(wf_opt *opt, const char *name, double value, bool given[], wf_err *err)
{
    int at = find_option(opt->rule->options, name), shared = find_option(shared_options, name);
    const wf_schedule *schedule;
    int param;

    if (at < 0 && shared < 0 && strchr(name, '.')) {
        wf_status rc = wf_schedule_find(name, &schedule, &param, err);

        if (rc != WF_OK)
            return wf_err_wrap(err, rc, "optimizer %s", opt->rule->name);
        if (opt->schedule && opt->schedule != schedule)
            return wf_fail(err, WF_USAGE, NULL,
                           "optimizer %s: learning_rate has two schedules, %s "
                           "and %s",
                           opt->rule->name, opt->schedule->name, schedule->name);
        if (!opt->schedule)
            for (int i = 0; schedule->params[i].name; i++)
                opt->plan[i] = schedule->params[i].otherwise;
        opt->schedule = schedule;
        opt->plan[param] = value;
        return check_value(opt->rule, &schedule->params[param], value, err);
    }
    if (at < 0 && shared < 0)
        return unknown_option(opt->rule, name, err);
    if (at < 0)
        at = WF_MAX_OPTIONS + shared;
    if (given[at])
        return wf_fail(err, WF_USAGE, NULL, "optimizer %s: %s is given twice", opt->rule->name,
                       name);
    given[at] = true;
    if (shared >= 0) {
        opt->shared[shared] = value;
        return check_value(opt->rule, &shared_options[shared], value, err);
    }
    opt->values[at] = value;
    return check_value(opt->rule, &opt->rule->options[at], value, err);
}

static wf_status check_schedule(const wf_opt *opt, wf_err *err)
{
    const wf_schedule *s = opt->schedule;
    wf_status rc;

    for (int i = 0; s && s->params[i].name; i++)
        if (isnan(opt->plan[i]))
            return wf_fail(err, WF_USAGE, NULL, "optimizer %s: %s is missing", opt->rule->name,
                           s->params[i].name);
    if (s && opt->shared[WF_OPT_WARMUP_STEPS] != 0)
        return wf_fail(err, WF_USAGE, "cosine_decay has a warmup_steps of its own",
                       "optimizer %s: warmup_steps goes with a constant learning_rate, not with %s",
                       opt->rule->name, s->name);
    if (!s || !s->check)
        return WF_OK;
    rc = s->check(opt->plan, err);
    return wf_err_wrap(err, rc, "optimizer %s: schedule %s", opt->rule->name, s->name);
}

static wf_status check_shared(const wf_opt *opt, wf_err *err)
{
    int n = 0;

    if (opt->shared[WF_OPT_ACCUMULATION] > WF_MAX_ACCUMULATION)
        return wf_fail(err, WF_USAGE, NULL,
                       "optimizer %s: gradient_accumulation_steps is %g; it may be %d",
                       opt->rule->name, opt->shared[WF_OPT_ACCUMULATION], WF_MAX_ACCUMULATION);

    for (int i = WF_OPT_CLIPVALUE; i <= WF_OPT_GLOBAL_CLIPNORM; i++)
        n += opt->shared[i] != 0;
    if (n <= 1)
        return WF_OK;
    return wf_fail(err, WF_USAGE, NULL,
                   "optimizer %s: only one of clipvalue, clipnorm and global_clipnorm may be given",
                   opt->rule->name);
}

wf_status wf_opt_init(wf_opt *out, const char *rule, uint32_t n, const char *const names[],
                      const double values[], wf_err *err)
{
    wf_opt opt = {.rule = wf_rule_find(rule)};
    bool given[WF_MAX_OPTIONS + WF_OPT_N_SHARED] = {false};

    if (!opt.rule)
        return unknown_rule(rule, err);
    for (uint32_t i = 0; opt.rule->options[i].name; i++)
        opt.values[i] = opt.rule->options[i].otherwise;
    for (uint32_t i = 0; i < n; i++)
        WF_TRY(take_option(&opt, names[i], values[i], given, err));
    WF_TRY(check_schedule(&opt, err));
    WF_TRY(check_shared(&opt, err));
    if (opt.schedule)
        opt.values[0] = wf_opt_rate(&opt, 1);
    *out = opt;
    return WF_OK;
}

/* The i-th setting, false beyond the last. */
static bool setting_at(const wf_opt *opt, uint32_t i, const char **name, double *value)
{
    const wf_option *row = opt->rule->options;
    uint32_t n = 0;

    for (; row[n].name; n++)
        if (n == i) {
            *name = row[n].name;
            *value = opt->values[n];
            return true;
        }
    for (int k = 0; shared_options[k].name; k++)
        if (opt->shared[k] != 0 && n++ == i) {
            *name = shared_options[k].name;
            *value = opt->shared[k];
            return true;
        }
    for (int k = 0; opt->schedule && opt->schedule->params[k].name; k++)
        if (isfinite(opt->plan[k]) && n++ == i) {
            *name = opt->schedule->params[k].name;
            *value = opt->plan[k];
            return true;
        }
    return false;
}

uint32_t wf_opt_n_options(const wf_opt *opt)
{
    const char *name;
    uint32_t n = 0;
    double value;

    while (setting_at(opt, n, &name, &value))
        n++;
    return n;
}

const char *wf_opt_option_name(const wf_opt *opt, uint32_t i)
{
    const char *name = NULL;
    double value;
    bool there = setting_at(opt, i, &name, &value);

    wf_assert(there);
    return name;
}

double wf_opt_option_value(const wf_opt *opt, uint32_t i)
{
    const char *name;
    double value = 0;
    bool there = setting_at(opt, i, &name, &value);

    wf_assert(there);
    return value;
}

double wf_opt_value(const wf_opt *opt, const char *name, double otherwise)
{
    int at = find_option(opt->rule->options, name);

    return at < 0 ? otherwise : opt->values[at];
}

double wf_opt_rate(const wf_opt *opt, uint64_t updates)
{
    double warmup = opt->shared[WF_OPT_WARMUP_STEPS];

    if (opt->schedule)
        return opt->schedule->rate(opt->plan, (double)(updates - 1));
    if ((double)updates < warmup)
        return opt->values[0] * ((double)updates / warmup);
    return opt->values[0];
}

wf_status wf_opt_set_rate(wf_opt *opt, double rate, wf_err *err)
{
    if (opt->schedule)
        return wf_fail(err, WF_USAGE, NULL, "optimizer %s: its learning rate follows %s",
                       opt->rule->name, opt->schedule->name);
    WF_TRY(check_value(opt->rule, &opt->rule->options[0], rate, err));
    opt->values[0] = rate;
    return WF_OK;
}

/* The i-th slot that is present, or NULL beyond the last. */
static const wf_slot *slot_at(const wf_opt *opt, uint32_t i)
{
    for (const wf_slot *s = opt->rule->slots; s->name; s++)
        if (!s->needs || wf_opt_value(opt, s->needs, 0) != 0)
            if (i-- == 0)
                return s;
    return NULL;
}

uint32_t wf_opt_n_slots(const wf_opt *opt)
{
    uint32_t n = 0;

    while (slot_at(opt, n))
        n++;
    return n;
}

const char *wf_opt_slot_name(const wf_opt *opt, uint32_t i)
{
    const wf_slot *s = slot_at(opt, i);

    wf_assert(s);
    return s->name;
}

float wf_opt_slot_initial(const wf_opt *opt, uint32_t i)
{
    const wf_slot *s = slot_at(opt, i);

    wf_assert(s);
    return s->initial_from ? (float)wf_opt_value(opt, s->initial_from, 0) : 0.0f;
}

void wf_opt_options(const wf_opt *opt, uint64_t updates, double out[WF_MAX_OPTIONS])
{
    wf_assert(updates > 0);
    memcpy(out, opt->values, sizeof opt->values);
    out[0] = wf_opt_rate(opt, updates);
    if (opt->divisor > 0)
        out[0] /= opt->divisor;
}

void wf_opt_apply(const wf_opt *opt, uint64_t updates, uint64_t n, float *w, const float *g,
                  float *const slots[])
{
    double values[WF_MAX_OPTIONS];

    wf_opt_options(opt, updates, values);
    opt->rule->update(values, updates, n, w, g, slots);
}
