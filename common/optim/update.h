/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/update.h - what the files of update rules share. For this room only.
 *
 * A rule's arithmetic stands in formula/NAME.h: its scalars, worked out in f64 on the host, and one
 * element of the update, in words that a GPU's compiler takes as well. NAME_body, a WF_INLINE
 * function in plain C, is the loop; WF_UPDATE_FORMS(NAME) makes of it NAME_update, compiled for
 * several processors, and NAME_portable. All must give the same bits: no libm but sqrt, no
 * reassociation, no contraction (the build sets -ffp-contract=off).
 */
#ifndef WF_OPTIM_UPDATE_H
#define WF_OPTIM_UPDATE_H

#include "common/base/cc.h"
#include "common/optim/rule.h"
#include <stddef.h>
#include <stdint.h>

#define WF_UPDATE_ARGS                                                                             \
    const double options[], uint64_t updates, size_t n, float *w, const float *g,                  \
        float *const slots[]

#define WF_UPDATE_FORMS(name)                                                                      \
    WF_MULTIVERSION static void name##_update(WF_UPDATE_ARGS)                                      \
    {                                                                                              \
        name##_body(options, updates, n, w, g, slots);                                             \
    }                                                                                              \
    static void name##_portable(WF_UPDATE_ARGS)                                                    \
    {                                                                                              \
        name##_body(options, updates, n, w, g, slots);                                             \
    }

/* The rows, one for each rule of meson.build. */
#define WF_RULE(name) extern const wf_rule wf_rule_##name;
#include "common/optim/rows.def"
#undef WF_RULE

#endif
