/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/shards.h - the files of a job's training data under `shard: file`: no batch, and so
 * no split, has records of two of them. The order of an epoch permutes the records of each file.
 */
#ifndef WF_MASTER_EPOCH_SHARDS_H
#define WF_MASTER_EPOCH_SHARDS_H

#include "master/job/job.h"
#include <stddef.h>
#include <stdint.h>

/* {0}: positions are of all records, whichever files these are of. */
typedef struct wf_shards {
    uint64_t *ends; /* [n]: of the records of each file among all; ascending */
    size_t n;
} wf_shards;

/* Takes the files of so many records in place of those before: ends[n] never fall; files without
 * records are left out, and what is beyond `records`, which evaluation has. n 0: none. Errors:
 * WF_INVALID when they do not reach to `records`; WF_NOMEM. *s is as it was then. */
WF_MUST_USE wf_status wf_shards_take(wf_shards *s, size_t n, const uint64_t ends[],
                                     uint64_t records, wf_err *err);
void wf_shards_close(wf_shards *s);

/* How many batches the records before position `at` make. */
uint64_t wf_shards_batches(const wf_shards *s, uint64_t at, uint64_t batch);
/* The records of the first so many batches of an epoch of `records`. */
uint64_t wf_shards_records(const wf_shards *s, uint64_t records, uint64_t batches, uint64_t batch);

/* Whether it can be decided for an epoch that is to begin: not before a worker of the generation
 * has said which files there are, if the job's `shard` goes by them. */
bool wf_shards_known(const wf_job *j);
/* Decides it, by `shard` and the files. Errors: those of wf_shards_take. */
WF_MUST_USE wf_status wf_shards_choose(wf_master *m, wf_job *j, wf_err *err);

#endif
