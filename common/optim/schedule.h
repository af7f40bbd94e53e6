/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/schedule.h - learning rates that follow the count of updates: one row each. For this
 * room only; the others see a schedule as options of a rule (rule.h).
 *
 * A parameter's name is its path in a job file: "learning_rate.cosine_decay.decay_steps"; the
 * elements of a list are numbered: "learning_rate.piecewise_constant_decay.values.0".
 */
#ifndef WF_OPTIM_SCHEDULE_H
#define WF_OPTIM_SCHEDULE_H

#include "common/base/status.h"
#include "common/optim/rule.h"
#include <stdint.h>

typedef struct wf_schedule {
    const char *name;
    /* `otherwise` NaN: must be given; infinite: may be left out, and has no default. Ends with a
     * NULL name; at most WF_MAX_PLAN. */
    const wf_option *params;
    /* The rate of the update with `steps` updates before it. */
    double (*rate)(const double params[], double steps);
    /* What must hold between parameters; may be NULL. The sentence is about the schedule. */
    wf_status (*check)(const double params[], wf_err *err);
} wf_schedule;

/* Every schedule, ends with a NULL name. */
extern const wf_schedule wf_schedules[];

/* The schedule and the parameter that an option "learning_rate.NAME.PARAM" names.
 * Errors: WF_USAGE, naming the nearest; WF_UNSUPPORTED for Keras's that weft does not have. */
WF_MUST_USE wf_status wf_schedule_find(const char *option, const wf_schedule **out, int *param,
                                       wf_err *err);

#endif
