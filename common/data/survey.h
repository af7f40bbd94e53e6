/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/survey.h - what the columns of a file hold, for a person who is about to train with
 * it. */
#ifndef WF_DATA_SURVEY_H
#define WF_DATA_SURVEY_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/data/data.h"
#include "common/data/distinct.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_SURVEY_EACH = 256,      /* numbers of a row that are columns of their own, at most, */
    WF_SURVEY_EXACT = 1 << 16, /* and different values of a column that are counted exactly */
    WF_SURVEY_WORDS = 32,
    WF_SURVEY_LINES = 3,
    WF_SURVEY_DISTINCT = 1 << 20 /* words that are counted, of all columns together */
};

typedef struct wf_survey_column {
    const char *name;         /* "1", "2", ... without a header */
    uint64_t numbers, wholes; /* cells that are numbers, and whole ones among these */
    uint64_t empty;           /* cells; of an array NaN; of libsvm what a line does not name */
    wf_distinct values;       /* all that are not empty */
    double least, most;       /* of the numbers */
    double mean, squares;     /* of them: squares of what is left without the mean */
    const char *words[WF_SURVEY_WORDS]; /* [n_words] different ones that are no number, sorted */
    uint32_t n_words;
    uint64_t distinct; /* words, as far as they were counted */
    bool more_words;   /* than have room above */
    bool uncounted;    /* more than were counted, or one that a vocabulary cannot hold */
    struct wf_vocabulary *seen;
} wf_survey_column;

typedef struct wf_survey {
    wf_arena *arena; /* of all that this points to */
    uint64_t records;
    bool header; /* the first row is no record: none of its cells is a number */
    char delimiter;
    wf_survey_column *columns; /* [n_columns] */
    uint32_t n_columns;
    uint64_t distinct; /* words of all columns */
    size_t exact;      /* different values of a column that are counted exactly */
} wf_survey;

/* For those who make one. Columns [n] in the arena. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_survey_columns(wf_survey *s, uint32_t n, wf_err *err);
/* A cell that is a number; NaN is an empty one. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_survey_number(const wf_survey *s, wf_survey_column *c, double number,
                                       wf_err *err);

/* Reads a csv file whole, also through gzip. The delimiter is the comma, semicolon, tab or bar that
 * the first row has most of. Close *out after an error as well. Errors: WF_NOTFOUND, WF_IO;
 * WF_INVALID for a file without records, or a row that is no good, with its line; WF_NOMEM. */
WF_MUST_USE wf_status wf_csv_survey(const char *path, wf_survey *out, wf_err *err);
/* Reads a libsvm file whole. The column "label", and one for each index by its number in the file;
 * or, beyond WF_SURVEY_EACH of these, "features" for all. Close *out after an error as well.
 * Errors: as above.
 */
typedef struct wf_libsvm_facts {
    uint64_t features; /* the largest index, and one more when indices count from 0 */
    bool zero_based;
    uint64_t least_pairs, most_pairs, pairs; /* of a line, and in all */
} wf_libsvm_facts;
WF_MUST_USE wf_status wf_libsvm_survey(const char *path, wf_survey *out, wf_libsvm_facts *facts,
                                       wf_err *err);
/* Reads a plain text file whole: the columns "label", where each line begins with a number and a
 * tab; "words" and "characters", how many of them a line has; and "word", the different words, in
 * small letters without punctuation. What is no UTF-8 has no characters. Close *out after an error
 * as well. Errors: as above. */
typedef struct wf_text_facts {
    bool labelled;
    uint64_t empty, words, characters, bytes; /* lines; in all */
    uint64_t least_words, most_words;         /* of a line */
    uint64_t distinct_words, distinct_characters;
    bool exact_words; /* they were counted, and not estimated */
    bool is_utf8;
    uint64_t bad_line;                  /* where it is not */
    const char *first[WF_SURVEY_LINES]; /* [n_first] lines, cut */
    uint32_t n_first;
} wf_text_facts;
WF_MUST_USE wf_status wf_text_survey(const char *path, wf_survey *out, wf_text_facts *facts,
                                     wf_err *err);
/* Surveys all records of a data set whose fields are float64: a column for each field, or for each
 * number of a field whose records are rows of up to WF_SURVEY_EACH. Close *out after an error as
 * well. Errors: those of gathering; WF_NOMEM. */
WF_MUST_USE wf_status wf_dataset_survey(const wf_dataset *d, wf_survey *out, wf_err *err);
void wf_survey_close(wf_survey *s);

#endif
