/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/synonyms.h - words of other programs, and the field's words for the same things. */
#ifndef WF_BASE_SYNONYMS_H
#define WF_BASE_SYNONYMS_H

#include <stddef.h>

/* Meaning i of a word, NULL past the last: "lr" is "learning_rate"; "crossentropy" may be one of
 * several. A meaning may be a word that the reader does not know either: look for it there. */
const char *wf_synonym(const char *word, size_t i);

#endif
