/* SPDX-License-Identifier: Apache-2.0 */
/* worker/chief.h - the chief's part of a checkpoint: it gathers the workers' reports, has the
 * exchange save its variables, and commits (docs/checkpoints.md, "Commit order").
 *
 * Its life cycle is drawn in worker/life.h.
 *
 * Invariants
 *   H1  a worker's report is gathered before any copy is taken, so the data ledger never
 *       claims a record whose push came after the copy
 *   H2  the folder is renamed only with the master's consent for this cut's id
 */
#ifndef WF_WORKER_CHIEF_H
#define WF_WORKER_CHIEF_H

#include "common/base/status.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include "worker/life.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_worker wf_worker;

typedef struct wf_chief {
    wf_chief_state state; /* written by one function of chief.c */
    Weft__Cut *cut;
    Weft__CutReport **reports; /* [cut->n_workers]; NULL: not in */
    size_t last;               /* index of the newest report: its ledger counts */
    uint32_t cut_number;
    char *folder;                /* temporary; NULL before it is made */
    int64_t began_ns, copied_ns; /* 0: not all copies are taken */
} wf_chief;

/* A cut is open with this worker as chief. */
WF_MUST_USE wf_status wf_chief_begin(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err);
WF_MUST_USE wf_status wf_chief_on_report(wf_worker *w, const wf_msg *m, int64_t now_ns,
                                         wf_err *err);
/* Goes on with what the exchange has saved meanwhile. */
WF_MUST_USE wf_status wf_chief_advance(wf_worker *w, int64_t now_ns, wf_err *err);
/* The master allows the commit. */
WF_MUST_USE wf_status wf_chief_on_commit(wf_worker *w, const wf_msg *m, int64_t now_ns,
                                         wf_err *err);
/* Ends a cut that is under way, and removes its temporary folder. */
void wf_chief_abort(wf_worker *w);

#endif
