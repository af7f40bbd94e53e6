/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/nearest.h - "did you mean": the known word nearest to a misspelt one. */
#ifndef WF_BASE_NEAREST_H
#define WF_BASE_NEAREST_H

#include <stddef.h>

/* The word of words[n] with the smallest edit distance to `given`, if that is at most a third of
 * its length and at least 1 (so 2 for "optimiser"); NULL when none is near. Borrowed from words. */
const char *wf_nearest(const char *given, const char *const words[], size_t n);

#endif
