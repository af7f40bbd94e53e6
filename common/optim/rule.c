/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/rule.c - the table of rules; a rule's options chosen by name. */
#include "common/optim/rule.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/optim/update.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const wf_rule *const wf_rules[] = {
    &wf_rule_adagrad,  &wf_rule_adam,    &wf_rule_adamw, &wf_rule_momentum,
    &wf_rule_nesterov, &wf_rule_rmsprop, &wf_rule_sgd,   NULL,
};

/* Keras's, known and not built yet: to be told from a misspelt name. */
static const char *const later_rules[] = {"adadelta", "adafactor", "adamax", "ftrl",   "lamb",
                                          "lion",     "muon",      "nadam",  "amsgrad"};
static const char *const later_options[] = {"clipnorm",          "clipvalue",
                                            "ema_momentum",      "ema_overwrite_frequency",
                                            "global_clipnorm",   "gradient_accumulation_steps",
                                            "loss_scale_factor", "use_ema"};

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

const char *wf_rule_nearest(const char *name)
{
    const char *names[WF_COUNT(wf_rules)];
    size_t n = 0;

    for (; wf_rules[n]; n++)
        names[n] = wf_rules[n]->name;
    return wf_nearest(name, names, n);
}

static wf_status unknown_rule(const char *name, wf_err *err)
{
    const char *near = wf_rule_nearest(name);
    char known[256] = "";
    size_t at = 0;

    if (is_among(name, later_rules, WF_COUNT(later_rules)))
        return wf_fail(err, WF_UNSUPPORTED, "adam or adamw does for most models",
                       "optimizer \"%s\" is not built yet", name);
    if (near)
        return wf_fail(err, WF_USAGE, NULL, "unknown optimizer \"%s\"; did you mean \"%s\"?", name,
                       near);
    for (size_t i = 0; wf_rules[i] && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                               wf_rules[i]->name);
    return wf_fail(err, WF_USAGE, NULL, "unknown optimizer \"%s\"; there are %s", name, known);
}

/* The place of an option in the row, or -1. */
static int find_option(const wf_rule *rule, const char *name)
{
    for (int i = 0; rule->options[i].name; i++)
        if (strcmp(rule->options[i].name, name) == 0)
            return i;
    return -1;
}

static wf_status unknown_option(const wf_rule *rule, const char *name, wf_err *err)
{
    const char *names[WF_MAX_OPTIONS], *near;
    size_t n = 0;

    if (is_among(name, later_options, WF_COUNT(later_options)))
        return wf_fail(err, WF_UNSUPPORTED, "leave it out",
                       "optimizer %s: option \"%s\" is not built yet", rule->name, name);
    for (; rule->options[n].name; n++)
        names[n] = rule->options[n].name;
    near = wf_nearest(name, names, n);
    if (near)
        return wf_fail(err, WF_USAGE, NULL,
                       "optimizer %s: unknown option \"%s\"; did you mean \"%s\"?", rule->name,
                       name, near);
    return wf_fail(err, WF_USAGE, NULL, "optimizer %s has no option \"%s\"", rule->name, name);
}

static wf_status check_value(const wf_rule *rule, const wf_option *o, double x, wf_err *err)
{
    static const char *const words[] = {
        [WF_RANGE_POSITIVE] = "above 0",
        [WF_RANGE_NOT_NEGATIVE] = "0 or above",
        [WF_RANGE_FRACTION] = "at least 0 and below 1",
        [WF_RANGE_FLAG] = "true or false",
    };
    bool fine = isfinite(x) && x >= 0;

    if (o->range == WF_RANGE_POSITIVE)
        fine = fine && x > 0;
    else if (o->range == WF_RANGE_FRACTION)
        fine = fine && x < 1;
    else if (o->range == WF_RANGE_FLAG)
        fine = x == 0 || x == 1;
    if (fine)
        return WF_OK;
    return wf_fail(err, WF_USAGE, NULL, "optimizer %s: %s is %g; it must be %s", rule->name,
                   o->name, x, words[o->range]);
}

wf_status wf_opt_init(wf_opt *out, const char *rule, uint32_t n, const char *const names[],
                      const double values[], wf_err *err)
{
    wf_opt opt = {.rule = wf_rule_find(rule)};
    bool given[WF_MAX_OPTIONS] = {false};

    if (!opt.rule)
        return unknown_rule(rule, err);
    for (uint32_t i = 0; opt.rule->options[i].name; i++)
        opt.values[i] = opt.rule->options[i].otherwise;
    for (uint32_t i = 0; i < n; i++) {
        int at = find_option(opt.rule, names[i]);

        if (at < 0)
            return unknown_option(opt.rule, names[i], err);
        if (given[at])
            return wf_fail(err, WF_USAGE, NULL, "optimizer %s: %s is given twice", rule, names[i]);
        WF_TRY(check_value(opt.rule, &opt.rule->options[at], values[i], err));
        given[at] = true;
        opt.values[at] = values[i];
    }
    *out = opt;
    return WF_OK;
}

uint32_t wf_opt_n_options(const wf_opt *opt)
{
    uint32_t n = 0;

    while (opt->rule->options[n].name)
        n++;
    return n;
}

const char *wf_opt_option_name(const wf_opt *opt, uint32_t i)
{
    wf_assert(i < wf_opt_n_options(opt));
    return opt->rule->options[i].name;
}

double wf_opt_option_value(const wf_opt *opt, uint32_t i)
{
    wf_assert(i < wf_opt_n_options(opt));
    return opt->values[i];
}

double wf_opt_value(const wf_opt *opt, const char *name, double otherwise)
{
    int at = find_option(opt->rule, name);

    return at < 0 ? otherwise : opt->values[at];
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

void wf_opt_apply(const wf_opt *opt, uint64_t updates, uint64_t n, float *w, const float *g,
                  float *const slots[])
{
    wf_assert(updates > 0);
    opt->rule->update(opt->values, updates, n, w, g, slots);
}
