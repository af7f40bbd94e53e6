/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/values.h - the values of variables at the beginning of a generation: those of a
 * checkpoint, or the job's first ones. Frozen variables are in no checkpoint: they come from the
 * first values in either case.
 */
#ifndef WF_CKPT_VALUES_H
#define WF_CKPT_VALUES_H

#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/tensor/dtype.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_values wf_values;

/* Opens the values of a job below `dir`: its first ones if `initial`, else those of the checkpoint
 * of `step`. Sizes and ranges are checked; checksums were, by the master. The caller owns *out.
 * Errors: those of wf_ckpt_open and wf_shard_open. */
WF_MUST_USE wf_status wf_values_open(wf_disk *disk, const char *dir, const char *job, bool initial,
                                     uint64_t step, wf_values **out, wf_err *err);
/* Closes *v and sets it to NULL; NULL is fine. */
void wf_values_close(wf_values **v);

/* Elements [offset, offset + count) of a variable, however it was sliced when it was saved. Errors:
 * WF_MISMATCH for one that a checkpoint does not have; WF_CORRUPT; WF_IO. */
WF_MUST_USE wf_status wf_values_read(wf_values *v, const char *variable, bool frozen,
                                     uint64_t offset, uint64_t count, float *to, wf_err *err);
/* Whether the first values have a variable; true where they cannot be read, which reading tells. */
bool wf_values_begin_with(wf_values *v, const char *variable);
/* In which type the rows of a variable are stored; float32 for first values. */
wf_dtype wf_values_dtype(const wf_values *v, const char *variable);
/* The same as wf_values_read of a variable that is trained, in that type or float32; and the scales
 * of rows of int8. Errors: those of wf_ckpt_read_as and wf_ckpt_read_scales. */
WF_MUST_USE wf_status wf_values_read_as(wf_values *v, const char *variable, wf_dtype as,
                                        uint64_t offset, uint64_t count, void *to, wf_err *err);
WF_MUST_USE wf_status wf_values_read_scales(wf_values *v, const char *variable, uint64_t first,
                                            uint64_t n, float *to, wf_err *err);
/* The same of an optimizer's slot; first values that have none leave `to` as it is. */
WF_MUST_USE wf_status wf_values_read_slot(wf_values *v, const char *variable, const char *slot,
                                          uint64_t offset, uint64_t count, float *to, wf_err *err);
/* All of an array of a slice whose size the checkpoint knows, as wf_ckpt_read_array; first values
 * have none. */
WF_MUST_USE wf_status wf_values_read_array(wf_values *v, const char *variable, const char *slot,
                                           uint64_t offset, void **out, uint64_t *bytes,
                                           wf_err *err);
/* The updates that the elements from `offset` have had; 0 for first values, unless they say it
 * (WF_INITIAL_UPDATES). */
uint64_t wf_values_updates(wf_values *v, const char *variable, uint64_t offset);

#endif
