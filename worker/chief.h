/* SPDX-License-Identifier: Apache-2.0 */
/* worker/chief.h - the chief's part of a checkpoint: it gathers the workers' reports, asks the ps
 * to save their copies, and commits (docs/checkpoints.md, "Commit order").
 *
 *   IDLE --cut open, chief is me--> REPORTS --all in--> SAVING --all forked, all saved--> ASKING
 *   ASKING --master: yes--> (commit) IDLE        any --abort, failure, new generation--> IDLE
 *
 * Invariants
 *   H1  a worker's report is gathered before any ps is asked to copy, so the data ledger never
 *       claims a record whose push came after the copy
 *   H2  the folder is renamed only with the master's consent for this cut's id
 */
#ifndef WF_WORKER_CHIEF_H
#define WF_WORKER_CHIEF_H

#include "common/base/status.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_worker wf_worker;

typedef enum wf_chief_state {
    WF_CHIEF_IDLE = 0,
    WF_CHIEF_REPORTS,
    WF_CHIEF_SAVING,
    WF_CHIEF_ASKING
} wf_chief_state;

typedef struct wf_chief {
    wf_chief_state state;
    Weft__Cut *cut;
    Weft__CutReport **reports; /* [cut->n_workers]; NULL: not in */
    size_t last;               /* index of the newest report: its ledger counts */
    Weft__Saved **saved;       /* [n_ps]; NULL: not in */
    bool *forked;              /* [n_ps] */
    uint32_t n_ps, cut_number;
    char *folder; /* temporary; NULL before it is made */
    int64_t began_ns, forked_ns;
} wf_chief;

/* A cut is open with this worker as chief. */
WF_MUST_USE wf_status wf_chief_begin(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err);
WF_MUST_USE wf_status wf_chief_on_report(wf_worker *w, const wf_msg *m, int64_t now_ns,
                                         wf_err *err);
/* The link to a ps is fresh: repeats the request. A ps that has taken its copies for this cut takes
 * no others, and reports again how far it is. */
WF_MUST_USE wf_status wf_chief_on_up(wf_worker *w, uint32_t ps, wf_err *err);
/* Forked or saved, from a ps. */
WF_MUST_USE wf_status wf_chief_on_ps(wf_worker *w, uint32_t ps, const wf_msg *m, int64_t now_ns,
                                     wf_err *err);
/* The master allows the commit. */
WF_MUST_USE wf_status wf_chief_on_commit(wf_worker *w, const wf_msg *m, int64_t now_ns,
                                         wf_err *err);
/* Ends a cut that is under way, and removes its temporary folder. */
void wf_chief_abort(wf_worker *w);

#endif
