/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/sequence.h - the records of one field from the first to the last, a range at a time:
 * for whoever reads them once, and has no use for all of them in memory.
 *
 * Of text the blocks are read as in a data set. Of npy and idx a window of a file is held. Of other
 * arrays (in an npz file, of a tfrecord, packed with gzip or zstd, images) one file at a time is
 * held whole.
 *
 * Belongs to one thread at a time.
 */
#ifndef WF_DATA_SEQUENCE_H
#define WF_DATA_SEQUENCE_H

#include "common/base/status.h"
#include "common/data/data.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_sequence wf_sequence;

/* Opens a field: `set` has it alone, with its steps and its files (patterns too), and a reference
 * where its steps learn. The spec is read during the call only, but for what it points to, which
 * outlives the sequence. The caller owns *out. Errors: those of wf_dataset_open. */
WF_MUST_USE wf_status wf_sequence_open(const wf_dataset_spec *set, wf_sequence **out, wf_err *err);
/* Frees *s and sets it to NULL; NULL is fine. */
void wf_sequence_free(wf_sequence **s);

uint64_t wf_sequence_records(const wf_sequence *s);
/* What a record is, after the steps; borrowed for the sequence's life. */
const wf_field_info *wf_sequence_field(const wf_sequence *s);
/* The files, in order, without "#NAME"; borrowed. NULL behind the last. */
const char *wf_sequence_file(const wf_sequence *s, size_t i);

/* File i with how many records are of it, as wf_dataset_part says. */
bool wf_sequence_part(const wf_sequence *s, size_t i, const char **path, uint64_t *records);

/* Writes n records from `first` on, which there are, into out as wf_dataset_gather does. Going on
 * where the last call ended is cheapest. Errors: those of wf_dataset_open and wf_dataset_gather;
 * WF_INVALID for a file that has changed. */
WF_MUST_USE wf_status wf_sequence_read(wf_sequence *s, uint64_t first, size_t n, void *out,
                                       wf_err *err);

#endif
