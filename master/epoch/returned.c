/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/returned.c */
#include "master/epoch/returned.h"
#include "common/base/size.h"
#include "master/epoch/epoch.h"

#include <inttypes.h>
#include <stdio.h>

void wf_returned_note(wf_master *m, const wf_job *j, wf_member *who)
{
    const wf_ledger *l = &j->epoch->ledger;
    wf_returned r = {.generation = j->generation, .epoch = l->epoch, .begin = UINT64_MAX};

    for (uint64_t id = UINT64_MAX; l->n && wf_ledger_held(l, who->incarnation, &id); r.n++) {
        r.begin = WF_MIN(r.begin, l->rows[id].next);
        r.end = WF_MAX(r.end, wf_ledger_ends(l, id));
        if (r.waiting < WF_RETURNED)
            r.ids[r.waiting++] = id;
    }
    who->returned = r;
    m->any_returned |= r.waiting > 0;
}

/* Whether the split is one that waits; it does not any more. */
static bool take(wf_returned *r, uint64_t id)
{
    for (uint32_t i = 0; i < r->waiting; i++)
        if (r->ids[i] == id) {
            r->ids[i] = r->ids[--r->waiting];
            return true;
        }
    return false;
}

void wf_returned_dealt(wf_master *m, const wf_job *j, uint64_t id, wf_task to)
{
    bool any = false;

    for (uint32_t i = 0; m->any_returned && i < m->n_members; i++) {
        wf_returned *r = &m->members[i].returned;

        if (r->generation != j->generation || r->epoch != j->epoch->ledger.epoch)
            continue;
        if (take(r, id)) {
            r->to_several |= r->to.role != WF_ROLE_NONE && r->to.index != to.index;
            r->to = to;
        }
        any |= r->waiting > 0;
    }
    m->any_returned = any;
}

const char *wf_returned_text(const wf_member *who, char *text, size_t size)
{
    const wf_returned *r = &who->returned;

    text[0] = 0;
    if (r->n)
        snprintf(text, size,
                 "; its %" PRIu32 " split%s (records %" PRIu64 " to %" PRIu64
                 ") %s given out again",
                 r->n, r->n == 1 ? "" : "s", r->begin, r->end, r->n == 1 ? "is" : "are");
    return text;
}
