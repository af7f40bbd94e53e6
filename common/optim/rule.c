/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/rule.c - the table of rules, and the choice of options. */
#include "common/optim/rule.h"
#include "common/base/cc.h"
#include "common/base/nearest.h"
#include "common/optim/step.h"

#include <string.h>

#define WF_RULE(name) extern const wf_rule wf_rule_##name;
#include "common/optim/rows.def"
#undef WF_RULE

static const wf_rule *const rules[] = {
#define WF_RULE(name) &wf_rule_##name,
#include "common/optim/rows.def"
#undef WF_RULE
};

const wf_rule *wf_rule_at(size_t i)
{
    return i < WF_COUNT(rules) ? rules[i] : NULL;
}

const wf_rule *wf_rule_find(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rules); i++)
        if (strcmp(rules[i]->name, name) == 0)
            return rules[i];
    return NULL;
}

const char *wf_rule_nearest(const char *name)
{
    const char *words[WF_COUNT(rules)];

    for (size_t i = 0; i < WF_COUNT(rules); i++)
        words[i] = rules[i]->name;
    return wf_nearest(name, words, WF_COUNT(rules));
}

static uint32_t count_options(const wf_rule *rule)
{
    uint32_t n = 0;

    while (rule->options[n].name)
        n++;
    return n;
}

static int64_t find_option(const wf_rule *rule, const char *name)
{
    for (uint32_t i = 0; rule->options[i].name; i++)
        if (strcmp(rule->options[i].name, name) == 0)
            return i;
    return -1;
}

static wf_status unknown_option(const wf_rule *rule, const char *name, wf_err *err)
{
    const char *words[WF_MAX_OPTIONS], *near;
    uint32_t n = count_options(rule);

    for (uint32_t i = 0; i < n; i++)
        words[i] = rule->options[i].name;
    near = wf_nearest(name, words, n);
    return wf_fail(err, WF_INVALID, NULL, "optimizer %s has no option \"%s\"%s%s%s", rule->name,
                   name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

wf_status wf_opt_init(wf_opt *opt, const char *rule_name, uint32_t n, const char *const names[],
                      const double values[], wf_err *err)
{
    const wf_rule *rule = wf_rule_find(rule_name);
    wf_opt made = {.rule = rule};

    if (!rule) {
        const char *near = wf_rule_nearest(rule_name);

        return wf_fail(err, WF_INVALID, NULL, "unknown optimizer \"%s\"%s%s%s", rule_name,
                       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    for (uint32_t i = 0; rule->options[i].name; i++)
        made.values[i] = rule->options[i].otherwise;
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = find_option(rule, names[i]);
        const wf_option *o = at < 0 ? NULL : &rule->options[at];

        if (!o)
            return unknown_option(rule, names[i], err);
        if (!(values[i] >= o->least && values[i] <= o->most))
            return wf_fail(err, WF_INVALID, NULL,
                           "optimizer %s: %s is %g; it must be from %g to %g", rule->name, o->name,
                           values[i], o->least, o->most);
        made.values[at] = values[i];
    }
    *opt = made;
    return WF_OK;
}

uint32_t wf_opt_n_options(const wf_opt *opt)
{
    return count_options(opt->rule);
}

const char *wf_opt_option_name(const wf_opt *opt, uint32_t i)
{
    wf_assert(i < count_options(opt->rule));
    return opt->rule->options[i].name;
}

double wf_opt_option_value(const wf_opt *opt, uint32_t i)
{
    wf_assert(i < count_options(opt->rule));
    return opt->values[i];
}

double wf_opt_option(const wf_opt *opt, const char *name)
{
    int64_t at = find_option(opt->rule, name);

    wf_assert(at >= 0);
    return opt->values[at];
}

/* The row of slot i, counting those that the options call for; NULL past the last. */
static const wf_slot_row *slot_row(const wf_opt *opt, uint32_t i)
{
    for (const wf_slot_row *s = opt->rule->slots; s && s->name; s++) {
        if (s->only_if && wf_opt_option(opt, s->only_if) == 0)
            continue;
        if (i-- == 0)
            return s;
    }
    return NULL;
}

uint32_t wf_opt_n_slots(const wf_opt *opt)
{
    uint32_t n = 0;

    while (slot_row(opt, n))
        n++;
    return n;
}

const char *wf_opt_slot_name(const wf_opt *opt, uint32_t i)
{
    const wf_slot_row *s = slot_row(opt, i);

    wf_assert(s);
    return s->name;
}

float wf_opt_slot_initial(const wf_opt *opt, uint32_t i)
{
    const wf_slot_row *s = slot_row(opt, i);

    wf_assert(s);
    return s->initial ? (float)wf_opt_option(opt, s->initial) : 0.0f;
}

void wf_opt_apply(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                  float *const slots[])
{
    opt->rule->apply(opt, updates, n, w, g, slots);
}

double wf_power(double base, uint64_t exponent)
{
    double r = 1;

    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            r *= base;
    return r;
}
