/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/plans.h - plans of one graph for several batch sizes. The one used longest ago
 * gives way: most runs are full batches, and short ones come at the ends. Where memory does not
 * suffice for one beside the others, all of them do.
 *
 * Belongs to one thread at a time.
 */
#ifndef WF_SESSION_PLANS_H
#define WF_SESSION_PLANS_H

#include "common/base/status.h"
#include "common/exec/exec.h"
#include <stdint.h>

enum { WF_PLANS_MOST = 8 };

/* {0} is empty. */
typedef struct wf_plans {
    struct wf_sized_plan {
        uint64_t records;
        wf_plan *plan;
        uint64_t used; /* when last, to make room */
    } rows[WF_PLANS_MOST];
    uint64_t uses;
} wf_plans;

/* Makes the plan for so many records; the caller owns *out. */
typedef wf_status wf_plans_make(void *arg, uint64_t records, wf_plan **out, wf_err *err);

/* Lends the plan for so many records, made now if it is not at hand, until the next call. Errors:
 * those of `make`. */
WF_MUST_USE wf_status wf_plans_get(wf_plans *p, uint64_t records, wf_plans_make *make, void *arg,
                                   wf_plan **out, wf_err *err);
/* Frees all plans; {0} again. */
void wf_plans_close(wf_plans *p);

#endif
