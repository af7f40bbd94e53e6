/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/nearest.h - "did you mean": the known word nearest to one that is not known.
 *
 * A word that people know from elsewhere ("lr", "gpu", "sync") is answered with what it is called
 * here (synonyms.h), before any spelling is compared: "sync" is near "async" and its opposite.
 */
#ifndef WF_BASE_NEAREST_H
#define WF_BASE_NEAREST_H

#include <stddef.h>

/* The word of words[n] that `given` stands for, or else the one with the smallest edit distance to
 * it, if that is at most a third of its length and at least 1 (so 2 for "optimiser"); NULL when
 * none is near. Borrowed from words. */
const char *wf_nearest(const char *given, const char *const words[], size_t n);

/* As long as a hint of wf_err. */
enum { WF_NEAREST_HINT = 256 };

/* What to do about an unknown word, for wf_fail: `did you mean "a"?`, or where none is near all
 * words, `known: a, b`. If they do not all fit, the number of the others and `see`, where they are
 * listed (NULL: nowhere): `known: a, b and 6 more; see weft help keys`. Returns hint. */
const char *wf_nearest_hint(const char *given, const char *const words[], size_t n, const char *see,
                            char hint[static WF_NEAREST_HINT]);

#endif
