/* SPDX-License-Identifier: Apache-2.0 */
/* master/ledger.h - the splits of the open epoch: to do, leased, done.
 *
 * A split is a range of positions in the epoch's order of records. Splits are dealt in order. What
 * a lost lease had trained, as far as it was acknowledged and reported, is not dealt again.
 *
 * Invariants
 *   S1  every position below `records` is in exactly one split
 *   S2  a split is done only by the report of the incarnation that holds it, or by the checkpoint
 *   S3  done is for good: a split never leaves it, but by going back to a checkpoint
 */
#ifndef WF_MASTER_LEDGER_H
#define WF_MASTER_LEDGER_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum wf_split_state {
    WF_SPLIT_TODO = 0,
    WF_SPLIT_LEASED,
    WF_SPLIT_FINISHED
} wf_split_state;

typedef struct wf_split_row {
    uint8_t state;
    uint8_t deaths;       /* workers that died with it in hand */
    uint64_t incarnation; /* of the holder */
    uint64_t next;        /* first position not known to be trained */
} wf_split_row;

typedef struct wf_ledger {
    uint32_t epoch;
    uint64_t records, split_records;
    uint64_t n, done; /* splits */
    uint64_t again;   /* records that were dealt a second time in this epoch */
    wf_split_row *rows;
} wf_ledger;

/* Begins an epoch: all splits are to do. Errors: WF_NOMEM, WF_INVALID. */
WF_MUST_USE wf_status wf_ledger_begin(wf_ledger *l, uint32_t epoch, uint64_t records,
                                      uint64_t split_records, wf_err *err);
void wf_ledger_close(wf_ledger *l);
/* The range of split id. */
uint64_t wf_ledger_begins(const wf_ledger *l, uint64_t id);
uint64_t wf_ledger_ends(const wf_ledger *l, uint64_t id);

/* Leases the first split to do. False when there is none. */
bool wf_ledger_deal(wf_ledger *l, uint64_t incarnation, uint64_t *id);
/* A holder says where it is; ignored unless it holds the split. */
void wf_ledger_progress(wf_ledger *l, uint64_t id, uint64_t incarnation, uint64_t next);
/* A holder claims a split after the master was away. False when another holds it, or it is done. */
bool wf_ledger_claim(wf_ledger *l, uint64_t id, uint64_t incarnation, uint64_t next);
/* A split is done. False when it was not leased to that incarnation: 0 means any. */
bool wf_ledger_finish(wf_ledger *l, uint64_t id, uint64_t incarnation);
/* All that an incarnation holds is to do again. Returns how many splits. */
uint32_t wf_ledger_release(wf_ledger *l, uint64_t incarnation, bool died);
/* From a checkpoint: records [begin, end) are trained. A split that is covered in part goes on
 * behind the part if that is its beginning, else it is dealt whole. */
void wf_ledger_restore(wf_ledger *l, uint64_t begin, uint64_t end);
/* Whether an incarnation holds any split. */
bool wf_ledger_holds(const wf_ledger *l, uint64_t incarnation);
/* Records known to be trained in this epoch. */
uint64_t wf_ledger_trained(const wf_ledger *l);

static inline bool wf_ledger_complete(const wf_ledger *l)
{
    return l->done == l->n;
}

#endif
