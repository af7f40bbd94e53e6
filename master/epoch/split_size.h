/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/split_size.h - how many batches a split has. */
#ifndef WF_MASTER_EPOCH_SPLIT_SIZE_H
#define WF_MASTER_EPOCH_SPLIT_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Why a job is better off with longer splits. */
typedef struct wf_split_job {
    bool drains;  /* the pipeline of a worker is empty at each split's end */
    bool in_step; /* all workers make each step together: none gets ahead of another */
} wf_split_job;

/* The batches of each split but the last, of an epoch of so many batches: small enough that no
 * worker waits long for another at the epoch's end, large enough that a split's word to the master
 * is rare. At least 1. */
uint64_t wf_split_size(uint64_t batches, uint32_t workers, const wf_split_job *job);

/* How many batches the worker makes that makes the most of them, where workers are equally fast
 * and take splits of `each` in turns. */
uint64_t wf_split_size_longest(uint64_t batches, uint32_t workers, uint64_t each);

#endif
