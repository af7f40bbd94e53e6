/* SPDX-License-Identifier: Apache-2.0 */
/* ps/sums.h - what a session's last additions came to. A client that has lost its link asks for the
 * same change again, and is to be told what its own addition came to, and not what others have made
 * of the variable since. */
#ifndef WF_PS_SUMS_H
#define WF_PS_SUMS_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_SUMS_MOST = 256 }; /* of one session */

/* Of one session, {0} is empty. */
typedef struct wf_sums {
    struct wf_sum *first; /* the newest */
    uint32_t n;
} wf_sums;

/* What one takes of memory. */
size_t wf_sums_bytes(const wf_tensor *value);
/* Keeps the value of the change `sequence`, whose storage is shared. Errors: WF_FULL, WF_NOMEM. */
WF_MUST_USE wf_status wf_sums_keep(wf_sums *s, uint64_t sequence, const wf_tensor *value,
                                   wf_err *err);
/* The value after that change; NULL when it is not kept. */
const wf_tensor *wf_sums_find(const wf_sums *s, uint64_t sequence);
/* Drops those below `since`; UINT64_MAX: all. Returns their bytes. */
size_t wf_sums_drop(wf_sums *s, uint64_t since);

#endif
