/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/plans.c */
#include "common/session/plans.h"

static bool any(const wf_plans *p)
{
    for (int i = 0; i < WF_PLANS_MOST; i++)
        if (p->rows[i].plan)
            return true;
    return false;
}

/* The rows stay free if it fails. */
static wf_status make_alone(wf_plans *p, uint64_t records, wf_plans_make *make, void *arg,
                            wf_plan **out, wf_err *err)
{
    wf_status rc = make(arg, records, out, err);

    if (rc != WF_NOMEM || !any(p))
        return rc;
    wf_plans_close(p);
    return make(arg, records, out, err);
}

wf_status wf_plans_get(wf_plans *p, uint64_t records, wf_plans_make *make, void *arg, wf_plan **out,
                       wf_err *err)
{
    struct wf_sized_plan *at = &p->rows[0];
    wf_plan *made = NULL;

    for (int i = 0; i < WF_PLANS_MOST; i++) {
        if (p->rows[i].plan && p->rows[i].records == records) {
            p->rows[i].used = ++p->uses;
            *out = p->rows[i].plan;
            return WF_OK;
        }
        if (p->rows[i].used < at->used)
            at = &p->rows[i];
    }
    wf_plan_free(&at->plan);
    at->used = 0;
    WF_TRY(make_alone(p, records, make, arg, &made, err));
    at->plan = made;
    at->records = records;
    at->used = ++p->uses;
    *out = at->plan;
    return WF_OK;
}

void wf_plans_close(wf_plans *p)
{
    for (int i = 0; i < WF_PLANS_MOST; i++)
        wf_plan_free(&p->rows[i].plan);
    *p = (wf_plans){0};
}
