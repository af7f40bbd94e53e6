/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ckpt_make.h - a small checkpoint of two shards, whose values tell its step. */
#ifndef WF_TESTS_UNIT_CKPT_MAKE_H
#define WF_TESTS_UNIT_CKPT_MAKE_H

#include "common/ckpt/ckpt.h"
#include <stdint.h>

/* dense/kernel [6, 4] f32, cut in two after 10 elements, slots m and v; dense/bias [4], whole, in
 * the second shard, slots m and v. */
enum { KERNEL = 24, CUT_AT = 10, BIAS = 4 };

/* Element i of a variable (slot 0) or of its slots (1, 2) in the checkpoint of a step. */
static inline float value_at(uint64_t step, int slot, uint64_t i)
{
    return (float)step + (float)slot * 0.25f + (float)i * 1000.0f;
}

/* Begins, writes both shards and commits; then keeps `keep` (0: no gc). */
wf_status make_ckpt(wf_disk *disk, const char *dir, const char *job, const char *digest,
                    wf_cut_id cut, uint64_t step, uint32_t keep, wf_err *err);
/* Reads it all back and compares; false when a value is not that of the step. */
int ckpt_is_of(wf_ckpt *c, uint64_t step);

#endif
