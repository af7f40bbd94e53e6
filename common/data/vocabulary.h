/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/vocabulary.h - words, numbered: found by their bytes. For this room only.
 *
 * A word is UTF-8 of 1 to WF_LEARNT_WORD bytes without a 0. A vocabulary is made once, of a list
 * or of a file, or it counts what it meets and then keeps what is most frequent.
 *
 * Threading: any number of threads may find words while nobody adds or counts any.
 */
#ifndef WF_DATA_VOCABULARY_H
#define WF_DATA_VOCABULARY_H

#include "common/data/learnt.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_vocabulary wf_vocabulary;

/* An empty one, which the caller owns. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_vocabulary_new(wf_vocabulary **out, wf_err *err);
/* Frees *v and sets it to NULL; NULL is fine. */
void wf_vocabulary_free(wf_vocabulary **v);

size_t wf_vocabulary_n(const wf_vocabulary *v);
/* The words [n], each ended by 0: borrowed until one is added. */
const char *const *wf_vocabulary_words(const wf_vocabulary *v);
/* The place of a word, from 0; -1: it is none of them. */
int64_t wf_vocabulary_find(const wf_vocabulary *v, const char *text, size_t n);

/* Adds a word unless it is there, and counts it. Errors: WF_INVALID for what is no word; WF_FULL at
 * the bounds of learnt.h; WF_NOMEM. */
WF_MUST_USE wf_status wf_vocabulary_count(wf_vocabulary *v, const char *text, size_t n,
                                          wf_err *err);
/* Leaves the `most` words that were counted most often, in that order; equally frequent ones in the
 * order of their bytes, or (last_first) the other way round. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_vocabulary_keep(wf_vocabulary *v, size_t most, bool last_first,
                                         wf_err *err);

/* Adds words [n], in their order. Errors: those of wf_vocabulary_count; WF_INVALID for one that is
 * there. */
WF_MUST_USE wf_status wf_vocabulary_add(wf_vocabulary *v, const char *const words[], size_t n,
                                        wf_err *err);
/* Adds the words of a file, one a line, in their order; lines end with LF or CRLF, and blank ones
 * at its end do not count. Errors: those of wf_file_read; the above, with file and line; WF_INVALID
 * for a file without words. */
WF_MUST_USE wf_status wf_vocabulary_read(wf_vocabulary *v, const char *path, wf_err *err);

#endif
