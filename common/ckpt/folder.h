/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/folder.h - the folders of a job: their names, and what is in each. For this room
 * only. */
#ifndef WF_CKPT_FOLDER_H
#define WF_CKPT_FOLDER_H

#include "common/ckpt/ckpt.h"
#include <stdbool.h>

typedef enum wf_folder_kind {
    WF_FOLDER_OTHER, /* not ours */
    WF_FOLDER_STEP,  /* step-N */
    WF_FOLDER_CUT,   /* .tmp-gG-cC-CHIEF: being written, or left by a crash */
    WF_FOLDER_OLD    /* .old-step-N: stepped aside while another takes its name */
} wf_folder_kind;

/* What a name says; *step and *cut are set for their kinds. */
wf_folder_kind wf_folder_kind_of(const char *name, uint64_t *step, wf_cut_id *cut);
const char *wf_folder_step_name(uint64_t step, char *name, size_t size);

/* Reads the manifest of a folder, and checks that each of its files is there with its size. */
WF_MUST_USE wf_status wf_folder_read(wf_disk *disk, const char *folder, wf_arena *arena,
                                     wf_manifest *out, wf_err *err);
/* Gives a complete folder (by wf_folder_read) its name step-N, durably. A folder that has the name
 * and a lower cut, or is not complete, is replaced. Errors: WF_EXISTS when a higher cut has it;
 * WF_IO. What is in `folder` is not lost by a failure. */
WF_MUST_USE wf_status wf_folder_publish(wf_disk *disk, const char *job_dir, const char *folder,
                                        const wf_manifest *m, wf_err *err);
/* A folder's manifest first, so that a crash midway leaves none that looks complete, then the rest.
 */
WF_MUST_USE wf_status wf_folder_remove(wf_disk *disk, const char *folder, wf_err *err);

/* Paths, cut with an error when they are too long. */
WF_MUST_USE wf_status wf_folder_path(char path[WF_CKPT_PATH], wf_err *err, const char *above,
                                     const char *name);

#endif
