/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/rule.h - the front door of common/optim: update rules, one row and one file each.
 *
 * A rule turns a gradient into new weights, element by element, so it may be applied to any part of
 * a variable. Names, options and defaults are Keras 3's; each rule's file gives its formula and
 * where we depart from it. A `wf_opt` is a rule with its options chosen: a plain struct that may be
 * copied, and rebuilt elsewhere from its rule's name and its options' names and values. A learning
 * rate may follow a schedule, which counts a slice's own updates as bias correction does.
 *
 * Equal bits everywhere: rules and schedules use + - * / and sqrt alone, each rounded as IEEE 754
 * says, in a fixed order and with no contraction to fused operations. So a replica, a replay and a
 * ps on another processor arrive at the same weights (tests/unit/optim.c compares every form).
 *
 * Threading: everything here is read-only after wf_opt_init; calls on different slices may run at
 * once.
 */
#ifndef WF_OPTIM_RULE_H
#define WF_OPTIM_RULE_H

#include "common/base/status.h"
#include "common/optim/finite.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_MAX_SLOTS = 4,
    WF_MAX_OPTIONS = 12,  /* of a rule's row */
    WF_MAX_PLAN = 40,     /* parameters of a schedule */
    WF_MAX_SETTINGS = 64, /* options that one wf_opt may have in all */
    WF_MAX_ACCUMULATION = 65536,
};

/* What values an option may have; all must be finite. */
typedef enum wf_option_range {
    WF_RANGE_POSITIVE,     /* > 0 */
    WF_RANGE_NOT_NEGATIVE, /* >= 0 */
    WF_RANGE_FRACTION,     /* 0 <= x < 1 */
    WF_RANGE_FLAG,         /* 0 or 1 */
    WF_RANGE_COUNT,        /* a whole number, 0 or above */
    WF_RANGE_FROM_ONE,     /* >= 1 */
    WF_RANGE_MINUS_HALF    /* -0.5 and nothing else */
} wf_option_range;

typedef struct wf_option {
    const char *name; /* Keras's, "learning_rate" */
    double otherwise; /* the default */
    wf_option_range range;
} wf_option;

/* One f32 array beside the weights, of their shape. */
typedef struct wf_slot {
    const char *name;         /* Keras's, "momentum" */
    const char *initial_from; /* the option that gives its first value; NULL: 0 */
    const char *needs;        /* present only if this option is not 0; NULL: always */
} wf_slot;

/* One step over n elements.
 *   options  [of the rule], in the row's order; the learning rate is that of this very update
 *   updates  how many updates the elements have had, this one counted: 1 for the first
 *   w, g     [n] weights, changed in place, and gradient; they do not overlap
 *   slots    [n] each: those that are present, in the row's order */
typedef void wf_update(const double options[], uint64_t updates, size_t n, float *w, const float *g,
                       float *const slots[]);

typedef struct wf_rule {
    const char *name;
    const wf_option *options; /* "learning_rate" first; ends with a NULL name; at most
                               * WF_MAX_OPTIONS */
    const wf_slot *slots;     /* ends with a NULL name; at most WF_MAX_SLOTS */
    wf_update *update;        /* the fastest form for this processor */
    wf_update *portable;      /* the same bits, without vector extensions: for tests */
    bool whole;               /* it takes norms over the variable: n is all of it, never a part */
} wf_rule;

/* Every rule, in alphabetical order; ends with NULL. */
extern const wf_rule *const wf_rules[];

/* The rule of that name, or NULL. */
const wf_rule *wf_rule_find(const char *name);

/* Options that every rule has, 0 unless given. The worker heeds all but the first before a push:
 * a slice's update knows one slice, and these are of whole gradients or of several. */
typedef enum wf_opt_shared {
    WF_OPT_WARMUP_STEPS = 0, /* the first so many updates rise to the rate in a straight line */
    WF_OPT_CLIPVALUE,
    WF_OPT_CLIPNORM,
    WF_OPT_GLOBAL_CLIPNORM,
    WF_OPT_ACCUMULATION, /* gradient_accumulation_steps: batches to a step */
    WF_OPT_N_SHARED
} wf_opt_shared;

/* A rule with its options. Plain and copyable; pointers are to constant rows. */
typedef struct wf_opt {
    const wf_rule *rule;
    double values[WF_MAX_OPTIONS]; /* one for each option of the row, in its order */
    double shared[WF_OPT_N_SHARED];
    const struct wf_schedule *schedule; /* NULL: the learning rate is that of `values` */
    double plan[WF_MAX_PLAN];           /* one for each parameter of the schedule */
    double divisor; /* of the learning rate in wf_opt_apply, for one update; 0: none */
} wf_opt;

/* Chooses a rule and its options; what is not named has its default. n 0 takes all defaults. A
 * schedule is given by options like "learning_rate.cosine_decay.decay_steps"; a "learning_rate"
 * beside it is passed over (schedule.h).
 *   names, values  [n]; a bool is 0 or 1
 * Errors: WF_USAGE for an unknown rule or option (names the nearest), an option given twice or out
 * of its range; WF_UNSUPPORTED for one of Keras's that weft does not have yet. *out is unchanged
 * then. The sentence does not say the file and line: the caller puts them in front. */
WF_MUST_USE wf_status wf_opt_init(wf_opt *out, const char *rule, uint32_t n,
                                  const char *const names[], const double values[], wf_err *err);

/* Everything that wf_opt_init needs to make this again, as names and values; i < wf_opt_n_options,
 * which is at most WF_MAX_SETTINGS. Options of the rule's row come first, in its order; under a
 * schedule learning_rate is that of the first update. */
uint32_t wf_opt_n_options(const wf_opt *opt);
const char *wf_opt_option_name(const wf_opt *opt, uint32_t i);
double wf_opt_option_value(const wf_opt *opt, uint32_t i);
/* The value of a named option of the row, or `otherwise` if the rule has none of that name. */
double wf_opt_value(const wf_opt *opt, const char *name, double otherwise);
/* The learning rate of an update; `updates` as for wf_opt_apply. */
double wf_opt_rate(const wf_opt *opt, uint64_t updates);

/* Another constant learning rate. Errors: WF_USAGE for one out of its range, or under a schedule.
 */
WF_MUST_USE wf_status wf_opt_set_rate(wf_opt *opt, double rate, wf_err *err);

/* The slots that are present with these options; i < wf_opt_n_slots. */
uint32_t wf_opt_n_slots(const wf_opt *opt);
const char *wf_opt_slot_name(const wf_opt *opt, uint32_t i);
/* What every element of a new slot holds. */
float wf_opt_slot_initial(const wf_opt *opt, uint32_t i);

/* The options of the rule for that very update, as its `update` wants them. */
void wf_opt_options(const wf_opt *opt, uint64_t updates, double out[WF_MAX_OPTIONS]);

/* Applies one update in a single pass over n elements, any part of a variable (all of it if the
 * rule is `whole`).
 *   updates  how many updates these elements have had, this one counted: 1 for the first. It must
 *            be the count of the very slice that is given, for the correction of bias
 *   w, g     [n], weights and gradient; they do not overlap
 *   slots    [wf_opt_n_slots][n] */
void wf_opt_apply(const wf_opt *opt, uint64_t updates, uint64_t n, float *w, const float *g,
                  float *const slots[]);

#endif
