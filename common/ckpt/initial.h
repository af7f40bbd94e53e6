/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/initial.h - DIR/JOB/initial.safetensors: the first values of a job's variables.
 *
 * No manifest has its checksum, so the file carries one: `sum` in its metadata is the XXH3-128 of
 * job, digest, and each tensor's name, dtype, dims and content, in the order of their names.
 *
 * A run that goes on with the optimizer of another has its slots there too, under the names that
 * they have in a shard (ckpt.h), and how many updates a variable has had as "V/updates" [1] int64.
 */
#ifndef WF_CKPT_INITIAL_H
#define WF_CKPT_INITIAL_H

#include "common/ckpt/shard.h"
#include "common/tensor/tensor.h"

#define WF_INITIAL_NAME "initial.safetensors"
#define WF_INITIAL_SUM "sum" /* the key of the metadata */
#define WF_INITIAL_UPDATES "updates"

/* The checksum for the metadata of a file of tensors[n] with this content. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_initial_sum(const char *job, const char *digest, size_t n,
                                     const wf_shard_tensor tensors[],
                                     const wf_tensor *const content[], char sum[WF_SUM_TEXT],
                                     wf_err *err);

/* Whether the file of a job is there, whole, and has this checksum; reads it to the end. Errors:
 * WF_NOMEM; WF_IO. */
WF_MUST_USE wf_status wf_initial_matches(wf_disk *disk, const char *dir, const char *job,
                                         const char *sum, bool *matches, wf_err *err);

/* Reads the whole file of a job. *has_sum is false for one that a weft without checksums wrote: its
 * structure alone was checked. Errors: WF_NOTFOUND when there is none; WF_CORRUPT; WF_IO. */
WF_MUST_USE wf_status wf_initial_verify(wf_disk *disk, const char *dir, const char *job,
                                        bool *has_sum, wf_err *err);

#endif
