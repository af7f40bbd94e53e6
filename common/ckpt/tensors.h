/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/tensors.h - the tensors of an open checkpoint. For the room alone. */
#ifndef WF_CKPT_TENSORS_H
#define WF_CKPT_TENSORS_H

#include "common/ckpt/ckpt.h"

struct wf_ckpt {
    wf_disk *disk;
    wf_arena *arena;
    char folder[WF_CKPT_PATH];
    char name[64];
    wf_manifest m;
    wf_shard **shards; /* [m.n_files], opened when first read from */
};

/* The shard of a file of the manifest, opened if it was not: it belongs to this checkpoint. */
WF_MUST_USE wf_status wf_ckpt_shard(wf_ckpt *c, uint32_t file, wf_shard **out, wf_err *err);
/* The tensor of a slice's values (slot NULL) or one of its slots, of the shape and type that the
 * manifest says. Errors: WF_CORRUPT, those of wf_shard_open. */
WF_MUST_USE wf_status wf_ckpt_tensor(wf_ckpt *c, const wf_ckpt_variable *v, const char *slot,
                                     const wf_ckpt_slice *s, wf_shard **shard,
                                     const wf_shard_tensor **t, wf_err *err);
/* The scales of a slice of int8 values, one for each row. Errors: the same. */
WF_MUST_USE wf_status wf_ckpt_scales(wf_ckpt *c, const wf_ckpt_variable *v, const wf_ckpt_slice *s,
                                     wf_shard **shard, const wf_shard_tensor **t, wf_err *err);
/* Elements [from, from + count) of one slice, in whatever type it is: as of wf_ckpt_read_as. */
WF_MUST_USE wf_status wf_ckpt_read_part(wf_ckpt *c, const wf_ckpt_variable *v, const char *slot,
                                        const wf_ckpt_slice *s, wf_dtype as, uint64_t from,
                                        uint64_t count, void *out, wf_err *err);
/* That every slice and slot of the manifest is in its shard. */
WF_MUST_USE wf_status wf_ckpt_check_tensors(wf_ckpt *c, wf_err *err);

/* Elements of a row of a variable: all that lies behind axis 0. */
uint64_t wf_ckpt_row(const wf_ckpt_variable *v);

#endif
