/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/ledger.h - the splits of the open epoch: to do, leased, done.
 *
 * A split is a range of positions in the epoch's order of records. Splits are dealt in order. What
 * a lost lease had trained, as far as it was acknowledged and reported, is not dealt again.
 *
 * Records may kill whoever trains them. Of a split, the processes are counted that ended with it in
 * hand and came no further than the one before. A worker has several splits in hand, and nobody can
 * say of which it died; so a split that may be the next to be given up is dealt alone, to a worker
 * that holds nothing else, and only that one tells.
 *
 * Under `shard: file` no split has records of two files, so that splits have unequal sizes. Whoever
 * holds a split of a file is dealt the rest of that file first, and a worker without a file begins
 * one that nobody has begun, as long as there are any.
 *
 * What happens to a split costs the same whatever their number; what happens to a holder costs as
 * much as it holds.
 *
 * Invariants
 *   S1  every position below `records` is in exactly one split
 *   S2  a split is done only by the report of the incarnation that holds it, or by the checkpoint
 *   S3  done is for good: a split never leaves it, but by going back to a checkpoint
 */
#ifndef WF_MASTER_EPOCH_LEDGER_H
#define WF_MASTER_EPOCH_LEDGER_H

#include "common/base/index.h"
#include "common/base/status.h"
#include "common/base/todo.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    WF_SPLIT_DEATHS = 3, /* and no further one is risked */
    WF_LEDGER_HOSTS = 64 /* that splits may be near */
};

typedef enum wf_split_state {
    WF_SPLIT_TODO = 0,
    WF_SPLIT_LEASED,
    WF_SPLIT_FINISHED
} wf_split_state;

typedef struct wf_split_row {
    uint8_t state;
    uint8_t deaths;         /* processes that ended with it in hand, at this `next` */
    uint64_t incarnation;   /* of the holder */
    uint64_t next;          /* first position not known to be trained */
    uint32_t before, after; /* 1 + the id of its neighbours in the holder's list; 0: none */
} wf_split_row;

/* Splits of a file: ids [first, last), positions [begin, end). */
typedef struct wf_ledger_file {
    uint64_t first, last, begin, end;
    uint64_t begun_by; /* an incarnation; 0: nobody, or its worker is lost */
} wf_ledger_file;

typedef struct wf_ledger {
    uint32_t epoch;
    uint64_t records, split_records;
    uint64_t n, done; /* splits */
    wf_split_row *rows;
    uint64_t trained; /* records */
    /* Of splits to do: those that may be dealt to anybody, and those that may be the next to be
     * given up. */
    wf_todo plain, suspects;
    /* Where files are near some hosts: of each split a bit for each of these, and the plain ones by
     * host; behind the last host those that are near none. NULL: nobody has said. */
    uint64_t *near;
    wf_todo *near_plain; /* [n_hosts + 1] */
    uint32_t n_hosts;
    wf_index held; /* incarnation: the row that it was dealt last */
    /* Under `shard: file`; NULL and 0 otherwise, where all splits but the last have one size. */
    uint64_t *begins;      /* [n + 1] */
    uint32_t *file_of;     /* [n] */
    wf_ledger_file *files; /* [n_files] */
    size_t n_files;
    wf_todo unbegun; /* files that nobody has begun; some may have nothing to deal any more */
    wf_index begun;  /* incarnation: the file that it has begun last */
} wf_ledger;

/* Begins an epoch: all splits are to do. Errors: WF_NOMEM, WF_INVALID. */
WF_MUST_USE wf_status wf_ledger_begin(wf_ledger *l, uint32_t epoch, uint64_t records,
                                      uint64_t split_records, wf_err *err);
/* The same where no split may have records of two files: their records end at ends[n_files],
 * ascending, the last at or behind `records`. Splits are of split_records, but for the last of each
 * file. n_files 0: as above. */
WF_MUST_USE wf_status wf_ledger_begin_files(wf_ledger *l, uint32_t epoch, uint64_t records,
                                            uint64_t split_records, size_t n_files,
                                            const uint64_t ends[], wf_err *err);
void wf_ledger_close(wf_ledger *l);
/* The records that the order of a split is of: those of its file, or all of the data (0, 0). */
void wf_ledger_order_of(const wf_ledger *l, uint64_t id, uint64_t *begin, uint64_t *end);
/* The range of split id. */
uint64_t wf_ledger_begins(const wf_ledger *l, uint64_t id);
uint64_t wf_ledger_ends(const wf_ledger *l, uint64_t id);

/* The splits that an incarnation holds, the one that it was dealt last first: true while there is
 * one more, *id. Begin with *id = UINT64_MAX. */
bool wf_ledger_held(const wf_ledger *l, uint64_t incarnation, uint64_t *id);

bool wf_ledger_any_to_do(const wf_ledger *l);
/* Says which splits are near which hosts, in place of what was said before: near [l->n] has a bit
 * for each host. Errors: WF_INVALID for too many hosts; WF_NOMEM, where it is as if nobody had said
 * it. */
WF_MUST_USE wf_status wf_ledger_place(wf_ledger *l, uint32_t n_hosts, const uint64_t near[],
                                      wf_err *err);
/* Leases a split to do: one of the file that the worker has begun, or else of one that nobody has
 * begun, if there are files; in either case, or without files, the first that is near the worker's
 * host, else the first that is near none, else the first, so that nobody waits for a split near it.
 * host -1: it is near none. False when there is none for that worker. */
bool wf_ledger_deal_near(wf_ledger *l, uint64_t incarnation, int host, uint64_t *id);
/* The same for whoever has no host: the first split to do, where nobody said which are near. */
bool wf_ledger_deal(wf_ledger *l, uint64_t incarnation, uint64_t *id);
/* Whether a split is near a host. */
bool wf_ledger_is_near(const wf_ledger *l, uint64_t id, int host);
/* A holder says where it is; ignored unless it holds the split. */
void wf_ledger_progress(wf_ledger *l, uint64_t id, uint64_t incarnation, uint64_t next);
/* A holder claims a split after the master was away. False when another holds it, or it is done. */
bool wf_ledger_claim(wf_ledger *l, uint64_t id, uint64_t incarnation, uint64_t next);
/* A split is done. False when it was not leased to that incarnation: 0 means any. */
bool wf_ledger_finish(wf_ledger *l, uint64_t id, uint64_t incarnation);
/* All that an incarnation holds is to do again. Returns how many splits. `died`: its process has
 * ended, which a silent one's need not have. */
uint32_t wf_ledger_release(wf_ledger *l, uint64_t incarnation, bool died);
/* A split to do that has killed WF_SPLIT_DEATHS processes. False when there is none. */
bool wf_ledger_deadly(const wf_ledger *l, uint64_t *id);
/* From a checkpoint: records [begin, end) are trained. A split that is covered in part goes on
 * behind the part if that is its beginning, else it is dealt whole. */
void wf_ledger_restore(wf_ledger *l, uint64_t begin, uint64_t end);
/* Records known to be trained in this epoch. */
uint64_t wf_ledger_trained(const wf_ledger *l);

static inline bool wf_ledger_complete(const wf_ledger *l)
{
    return l->done == l->n;
}

#endif
