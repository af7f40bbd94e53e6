/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/manifest_learnt.h - the member "learnt" of a manifest. For this room only. */
#ifndef WF_CKPT_MANIFEST_LEARNT_H
#define WF_CKPT_MANIFEST_LEARNT_H

#include "common/ckpt/json.h"
#include "common/ckpt/manifest.h"

/* The member's value, the caller's; NULL when there is no memory, or a text is not UTF-8. */
json_t *wf_manifest_learnt_of(const wf_manifest *m);
/* Reads it; a manifest without it has nothing learnt. Errors: WF_CORRUPT, WF_NOMEM. */
WF_MUST_USE wf_status wf_manifest_learnt_read(const json_t *root, const char *path, wf_arena *arena,
                                              wf_manifest *out, wf_err *err);
/* Holds it against its bounds; `bad` is the status. */
WF_MUST_USE wf_status wf_manifest_learnt_check(const wf_manifest *m, const char *path,
                                               wf_status bad, wf_err *err);

#endif
