/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/rule.h - the front door of common/optim: optimizers' update rules.
 *
 * One const row per optimizer, in common/optim/NAME.c: slots, options, defaults and where they come
 * from; the table is made from the list in common/optim/meson.build. Names, options and defaults
 * are Keras 3's. All rules here are dense, f32, and work on any sub-range of a variable: element i
 * of the weights changes by element i of gradient and slots alone.
 *
 * Equal bits everywhere: an apply uses + - * / and sqrt of f32 in one fixed order, without fused
 * multiply-add (the build sets -ffp-contract=off), so every processor and every vector width gives
 * the same result; tests compare them. What depends on the number of updates (bias correction) is
 * worked out in double, by multiplication and sqrt only, for the same reason.
 *
 * `weight_decay` (0 by default, 0.004 in adamw) is decoupled in every rule, as Keras does it:
 * before the update, w -= w * learning_rate * weight_decay.
 */
#ifndef WF_OPTIM_RULE_H
#define WF_OPTIM_RULE_H

#include "common/base/status.h"
#include "common/tensor/finite.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_MAX_SLOTS = 4, WF_MAX_OPTIONS = 12 };

typedef struct wf_opt wf_opt;

/* One option of a rule. */
typedef struct wf_option {
    const char *name;
    double otherwise;   /* the default */
    double least, most; /* inclusive; a value outside or NaN is refused */
} wf_option;

/* One array beside the weights, as long as they. */
typedef struct wf_slot_row {
    const char *name;    /* as in checkpoints: "m", "v", "momentum", "accumulator" */
    const char *initial; /* the option that gives every element's first value; NULL: zero */
    const char *only_if; /* the option that must not be 0 for the slot to exist; NULL: always */
} wf_slot_row;

typedef struct wf_rule {
    const char *name;
    const wf_slot_row *slots; /* ends with a NULL name; NULL: none */
    const wf_option *options; /* ends with a NULL name; learning_rate is the first */
    /* See wf_opt_apply. */
    void (*apply)(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                  float *const slots[]);
} wf_rule;

/* A rule with its options chosen: plain data, to be copied. */
struct wf_opt {
    const wf_rule *rule;
    double values[WF_MAX_OPTIONS]; /* in the order of rule->options */
};

/* NULL when there is no such rule. */
const wf_rule *wf_rule_find(const char *name);
/* The rule with the nearest name, or NULL: for "did you mean". */
const char *wf_rule_nearest(const char *name);
/* Row i, NULL past the end. */
const wf_rule *wf_rule_at(size_t i);

/* Chooses a rule and its options: names[n] and values[n]; what is not named has its default.
 * Errors: WF_INVALID: an unknown rule or option (with the nearest), a value out of its bounds. */
WF_MUST_USE wf_status wf_opt_init(wf_opt *opt, const char *rule, uint32_t n,
                                  const char *const names[], const double values[], wf_err *err);

/* Options by number, to write them down; wf_opt_init of all of them gives the same wf_opt back. */
uint32_t wf_opt_n_options(const wf_opt *opt);
const char *wf_opt_option_name(const wf_opt *opt, uint32_t i);
double wf_opt_option_value(const wf_opt *opt, uint32_t i);
/* By name; the name must be one of the rule's. */
double wf_opt_option(const wf_opt *opt, const char *name);

uint32_t wf_opt_n_slots(const wf_opt *opt);
const char *wf_opt_slot_name(const wf_opt *opt, uint32_t i);
/* What every element of slot i starts with. */
float wf_opt_slot_initial(const wf_opt *opt, uint32_t i);

/* Applies one gradient in a single pass.
 *   updates  how many the slice has had with this one: 1 for the first
 *   w, g     [n]; w is changed
 *   slots    [n slots], each [n], changed
 * No two arrays may overlap. */
void wf_opt_apply(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                  float *const slots[]);

#endif
