/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/restore.h - where a generation begins: a checkpoint, or the job's first values.
 *
 * First values are written once, as CKPT/JOB/initial.safetensors, and loaded by the ps as a
 * checkpoint is: so a job begins, recovers and goes back by one path, whatever its values come from
 * (initialisers drawn by counter, or an ONNX file). The ps take frozen variables from that file
 * beside a checkpoint too.
 */
#ifndef WF_MASTER_GENERATION_RESTORE_H
#define WF_MASTER_GENERATION_RESTORE_H

#include "common/data/learnt.h"
#include "master/master.h"

typedef struct wf_restored {
    bool initial; /* no checkpoint: the first values, written beside the checkpoints */
    uint64_t global_step;
    uint16_t generation;  /* that saved it; 0: none did */
    Weft__Ledger *ledger; /* of a checkpoint; finished: the trained ranges */
    wf_callbacks_state callbacks;
    wf_learnt_list learnt; /* by steps of data.map; of a checkpoint */
    char *passed;          /* a line for each checkpoint passed over; "" */
    wf_arena *arena;
} wf_restored;

/* Where checkpoints are. */
typedef struct wf_restore_from {
    wf_disk *disk;
    const char *checkpoint_dir;
    int64_t step; /* -1: the newest */
} wf_restore_from;

/* The newest checkpoint that verifies, or the one of a step, or the first values where there is
 * none. On any thread. Errors: WF_MISMATCH for another model's; WF_CORRUPT where there are some and
 * none verifies; WF_FULL for one of the last generation that there can be. */
WF_MUST_USE wf_status wf_master_restore(const wf_restore_from *from, const wf_prepared *p,
                                        wf_restored *out, wf_err *err);
void wf_restored_free(wf_restored *r);
/* Workers that are started from now on are told what the steps of data.map have learnt. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_restored_give(const wf_restored *r, wf_prepared *p, wf_err *err);

#endif
