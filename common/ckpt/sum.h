/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/sum.h - XXH3-128 as hex text: it finds accidents, and is no defence against malice.
 */
#ifndef WF_CKPT_SUM_H
#define WF_CKPT_SUM_H

#include "common/ckpt/shard.h"
#include <stddef.h>

typedef struct wf_sum wf_sum;

/* NULL when there is no memory; freed by wf_sum_end. */
wf_sum *wf_sum_begin(void);
void wf_sum_add(wf_sum *s, const void *data, size_t n);
/* Writes the digest if `text` is not NULL; frees *s and sets it to NULL. */
void wf_sum_end(wf_sum **s, char text[WF_SUM_TEXT]);
/* Of n bytes at once. */
void wf_sum_of(const void *data, size_t n, char text[WF_SUM_TEXT]);

#endif
