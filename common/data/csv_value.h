/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/csv_value.h - what the cells of a column count as. For this room only. */
#ifndef WF_DATA_CSV_VALUE_H
#define WF_DATA_CSV_VALUE_H

#include "common/base/arena.h"
#include "common/data/csv_cell.h"
#include "common/data/data.h"
#include "common/data/vocabulary.h"

typedef struct wf_csv_word {
    const char *text;
    int64_t index;
} wf_csv_word;

typedef struct wf_csv_column {
    const char *name;
    wf_dtype dtype;
    wf_csv_word *words; /* [n_words], sorted; NULL: the cells are numbers */
    size_t n_words;
} wf_csv_column;

/* How the cells of a field are read. */
typedef struct wf_csv_values {
    wf_dtype dtype;
    bool fills;           /* an empty cell is NaN, which a step fills */
    bool hashes;          /* the first step is hash: a cell that is no whole number, and each of a
                           * column of words, is its XXH3 */
    wf_vocabulary *words; /* the first step is vocabulary: a cell is its place, from 1; owned */
    bool learns;          /* the words are not known yet: they are counted, and each is 0 */
} wf_csv_values;

/* Copies the words that a schema names for a column. Errors: WF_USAGE for one that is too long or
 * there twice; WF_NOMEM. */
WF_MUST_USE wf_status wf_csv_words(const wf_column_spec *from, wf_arena *arena, wf_csv_column *c,
                                   wf_err *err);
/* What hash has of `count` columns of words side by side, of which the first begins at text[at] of
 * a regular record [n] (csv_cell.h): as wf_csv_value gives them one by one. */
void wf_csv_hash_words(const char *text, size_t n, char delimiter, size_t at, size_t count,
                       int64_t out[]);
/* Writes the value of a cell as element `at` of out. Errors: WF_INVALID, WF_FULL (too many words
 * to learn), WF_NOMEM. */
WF_MUST_USE wf_status wf_csv_value(const wf_csv_values *v, const wf_csv_column *c,
                                   const wf_csv_cell *cell, void *out, size_t at, wf_err *err);

#endif
